// SPDX-License-Identifier: MIT
#include "rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "json.h"
#include "progress.h"
#include "random.h"

// ---- arguments

int rows_settle_arguments(void *values, char *message, size_t size) {
    rows_options *o = values;
    const struct {
        const char *name;
        int32_t *value;
    } strides[] = {{"x_stride", &o->x_stride},
                   {"xr_stride", &o->xr_stride},
                   {"y_stride", &o->y_stride},
                   {"yr_stride", &o->yr_stride}};
    if (o->common.v < 0 || o->common.v > 1) return example_refuse(message, size, "-v=%d: 0 or 1", o->common.v);
    if (o->m < 0) return example_refuse(message, size, "-m=%d: 0 or more rows", o->m);
    if (o->n < 1) return example_refuse(message, size, "-n=%d: at least 1 column", o->n);
    if (o->fadd < 0 || o->fadd > 2) return example_refuse(message, size, "-fadd=%d: 0, 1 or 2", o->fadd);
    if (o->fquant < 0 || o->fquant > 2) return example_refuse(message, size, "-fquant=%d: 0, 1 or 2", o->fquant);
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        if (*strides[i].value == -1) *strides[i].value = o->n;
        if (*strides[i].value < 0)
            return example_refuse(message, size, "-%s=%d: 0 or more, or -1 for the columns", strides[i].name,
                                  *strides[i].value);
    }
    return 0;
}

static int is(const char *text, const char *word) { return text && strcmp(text, word) == 0; }

static int is_input(tessera_type type) {
    return type == TESSERA_TYPE_FP32 || type == TESSERA_TYPE_FP16 || type == TESSERA_TYPE_BF16;
}

static int is_quantized(tessera_type type) {
    return type == TESSERA_TYPE_INT8 || type == TESSERA_TYPE_E4M3 || type == TESSERA_TYPE_E4M3FNUZ;
}

// The program's argument that a member of rows_options is.
static const char *name_of(const rows_problem *p, size_t offset) {
    const example_arguments *arguments = p->base.program->arguments;
    for (int i = 0; i < arguments->count; i++)
        if (arguments->table[i].offset == offset) return arguments->table[i].name;
    return "";
}
#define NAME_OF(member) name_of(p, offsetof(rows_options, member))

// The device's fp8 is not known yet: OCP's until rows_lay_out().
static example_outcome read_types(rows_problem *p, example_result *result) {
    const rows_options *o = &p->options;
    const int fused = o->prec_sm != NULL; // the quantization is, and may be left away
    if (tessera_type_from_string(o->prec_i, &p->call.in) != TESSERA_SUCCESS || !is_input(p->call.in))
        return EXAMPLE_WRONG("-%s=%s: fp32, fp16 or bf16", NAME_OF(prec_i), o->prec_i);
    p->call.out = fused && is(o->prec_o, "auto") ? p->call.in : TESSERA_TYPE_COUNT;
    if (is(o->prec_o, "fp8")) p->call.out = TESSERA_TYPE_E4M3;
    if (p->call.out == TESSERA_TYPE_COUNT && (tessera_type_from_string(o->prec_o, &p->call.out) != TESSERA_SUCCESS ||
                                              !(is_quantized(p->call.out) || (fused && is_input(p->call.out)))))
        return EXAMPLE_WRONG("-%s=%s: int8, fp8 (the device's), e4m3 or e4m3fnuz%s", NAME_OF(prec_o), o->prec_o,
                             fused ? "; without -fquant auto, which is -prec_i" : "");
    if (fused && !is(o->prec_sm, "auto") && !is(o->prec_sm, "fp32"))
        return EXAMPLE_WRONG("-prec_sm=%s: auto or fp32", o->prec_sm);
    if (fused && !is(o->prec_sy, "auto") && !is(o->prec_sy, "fp32"))
        return EXAMPLE_WRONG("-prec_sy=%s: auto or fp32", o->prec_sy);
    return EXAMPLE_OK;
}

example_outcome rows_settle(rows_problem *p, const void *arguments, rows_statistics statistics, void *traits,
                            tessera_type *prec_o, void *args, example_result *result) {
    p->options = *(const rows_options *)arguments;
    const rows_options *o = &p->options;
    p->base.options = &o->common;
    p->base.traits = traits;
    p->base.args = args;
    p->prec_o = prec_o;
    if (read_types(p, result)) return result->outcome;
    p->call.statistics = statistics;
    p->call.rounds_twice = o->s;
    p->call.quantized = o->fquant != 0;
    p->call.m = o->topk ? (int64_t)o->topk * o->m : o->m;
    p->call.n = o->n;
    p->call.epsilon = o->e;
    p->call.tokens = o->m, p->call.topk = o->topk, p->call.experts = o->experts;
    p->call.x_stride = o->x_stride, p->call.residual_stride = o->xr_stride;
    p->call.y_stride = o->y_stride, p->call.residual_out_stride = o->yr_stride;
    snprintf(p->base.sizes, sizeof p->base.sizes, "-%s=%d -%s=%d", NAME_OF(m), o->m, NAME_OF(n), o->n);
    return EXAMPLE_OK;
}

// ---- tensors

static void use(rows_problem *p, rows_tensor tensor, rows_shape shape) {
    const int64_t all = example_times(shape.rows - 1, shape.stride);
    p->shapes[tensor] = shape;
    example_use(&p->base, (int)tensor,
                shape.rows == 0 ? 0
                : all < 0       ? -1
                                : all + shape.columns,
                element_bits(shape.type));
    if (shape.type == TESSERA_TYPE_INT8 || shape.type == TESSERA_TYPE_E4M3FNUZ)
        p->base.buffers[tensor].unwritten = 0x80; // what no right result has
}

example_outcome rows_lay_out(example_problem *base, example_result *result) {
    rows_problem *p = (rows_problem *)base;
    const rows_options *o = &p->options;
    const rows_call *c = &p->call;
    const tessera_type number = TESSERA_TYPE_FP32;
    const rows_shape columns = {c->in, 1, o->n, o->n}, numbers = {number, c->m, 1, 1};
    (void)result;
    if (is(o->prec_o, "fp8") && tessera_device_fp8_format(base->device) == TESSERA_E4M3FNUZ)
        p->call.out = TESSERA_TYPE_E4M3FNUZ;
    *p->prec_o = c->out;
    use(p, ROWS_X, (rows_shape){c->in, o->m, o->n, o->x_stride});
    if (o->fadd) use(p, ROWS_RESIDUAL, (rows_shape){c->in, o->m, o->n, o->xr_stride});
    if (o->xbias) use(p, ROWS_BIAS, columns);
    if (c->statistics != ROWS_NONE) use(p, ROWS_GAMMA, columns);
    if (c->statistics == ROWS_MEAN) use(p, ROWS_BETA, columns);
    if (o->fquant == 1) use(p, ROWS_SMOOTH, (rows_shape){number, o->topk ? o->experts : 1, o->n, o->n});
    if (o->topk) use(p, ROWS_IDS, (rows_shape){number, o->m, o->topk, o->topk}); // of as many bits
    use(p, ROWS_Y, (rows_shape){c->out, c->m, o->n, o->y_stride});
    if (o->fadd == 1) use(p, ROWS_RESIDUAL_OUT, (rows_shape){c->in, o->m, o->n, o->yr_stride});
    if (o->save_unquant) use(p, ROWS_UNQUANTIZED, (rows_shape){c->in, o->m, o->n, o->y_stride});
    if (o->fquant) use(p, ROWS_Y_SCALE, numbers);
    if (o->save && c->statistics == ROWS_MEAN) use(p, ROWS_SAVED_MEAN, numbers);
    if (o->save) use(p, ROWS_SAVED_INV, numbers);
    return EXAMPLE_OK;
}

// Experts of a token are different ones.
void rows_put(example_problem *base) {
    const rows_options *o = &((rows_problem *)base)->options;
    uint64_t state = base->seed * ROWS_TENSORS + ROWS_IDS;
    int32_t *ids = example_pointer(base, ROWS_IDS);
    for (int32_t token = 0; ids && token < o->m; token++, ids += o->topk)
        for (int32_t slot = 0; slot < o->topk; slot++) {
            int again = 1;
            while (again) {
                ids[slot] = (int32_t)(example_random(&state) % (uint64_t)o->experts);
                again = 0;
                for (int32_t before = 0; before < slot; before++) again |= ids[before] == ids[slot];
            }
        }
}

// CK's distributions: +-0.5, and of sm_scale +-1, or 0.001 to 0.5 where nothing is normalized.
void rows_fill(example_problem *base) {
    const rows_problem *p = (const rows_problem *)base;
    const int plain = p->call.statistics == ROWS_NONE;
    for (int tensor = ROWS_X; tensor <= ROWS_SMOOTH; tensor++) {
        const rows_shape *shape = &p->shapes[tensor];
        const double greatest = tensor != ROWS_SMOOTH || plain ? 0.5 : 1;
        const double least = tensor == ROWS_SMOOTH && plain ? 1e-3 : -greatest;
        uint64_t state = base->seed * ROWS_TENSORS + (uint64_t)tensor;
        state = example_random(&state);
        for (int64_t row = 0; base->buffers[tensor].used && row < shape->rows; row++)
            for (int64_t column = 0; column < shape->columns; column++)
                element_store(shape->type, example_pointer(base, tensor), row * shape->stride + column,
                              example_uniform(&state, least, greatest));
    }
}

// ---- work

// Of how many experts are rows asked for?
static int64_t experts_used(const rows_problem *p) {
    const int32_t *ids = example_pointer(&p->base, ROWS_IDS);
    const int64_t count = (int64_t)p->options.m * p->options.topk;
    int64_t used = 0;
    for (int32_t expert = 0; expert < p->options.experts; expert++)
        for (int64_t i = 0; i < count; i++)
            if (ids[i] == expert) {
                used++;
                break;
            }
    return used;
}

// Every tensor once, padding left out, and the scales of experts that a token goes to.
void rows_count(const example_problem *base, example_result *result) {
    const rows_problem *p = (const rows_problem *)base;
    for (int tensor = 0; tensor < ROWS_TENSORS; tensor++) {
        const rows_shape *shape = &p->shapes[tensor];
        const int of_experts = tensor == ROWS_SMOOTH && p->options.topk > 0;
        if (!base->buffers[tensor].used) continue;
        result->bytes += (double)(of_experts ? experts_used(p) : shape->rows) * (double)shape->columns *
                         element_bits(shape->type) / 8;
    }
    result->rows = p->call.m;
}

// ---- verification

static void set_pointers(rows_problem *p) {
    const example_problem *base = &p->base;
    rows_call *c = &p->call;
    c->x = example_pointer(base, ROWS_X);
    c->residual = example_pointer(base, ROWS_RESIDUAL);
    c->bias = example_pointer(base, ROWS_BIAS);
    c->gamma = example_pointer(base, ROWS_GAMMA);
    c->beta = example_pointer(base, ROWS_BETA);
    c->smooth = example_pointer(base, ROWS_SMOOTH);
    c->topk_ids = example_pointer(base, ROWS_IDS);
    c->y = example_pointer(base, ROWS_Y);
    c->residual_out = example_pointer(base, ROWS_RESIDUAL_OUT);
    c->unquantized = example_pointer(base, ROWS_UNQUANTIZED);
    c->y_scale = example_pointer(base, ROWS_Y_SCALE);
    c->mean = example_pointer(base, ROWS_SAVED_MEAN);
    c->inv = example_pointer(base, ROWS_SAVED_INV);
}

// Is what lies between the rows of the outputs as it was?
static example_outcome check_padding(const rows_problem *p, example_result *result) {
    for (int tensor = ROWS_Y; tensor <= ROWS_UNQUANTIZED; tensor++) {
        const example_buffer *buffer = &p->base.buffers[tensor];
        const rows_shape *shape = &p->shapes[tensor];
        for (int64_t row = 0; buffer->used && row + 1 < shape->rows; row++) {
            const uint8_t *end = (const uint8_t *)example_pointer(&p->base, tensor) +
                                 (row * shape->stride + shape->columns) * buffer->element_bytes;
            if (!example_all_bytes(end, (shape->stride - shape->columns) * buffer->element_bytes, buffer->unwritten))
                return example_fail(result, EXAMPLE_WRONG_RESULT, "what lies behind row %" PRId64 " of %s was written",
                                    row, p->base.program->tensors[tensor].name);
        }
    }
    return EXAMPLE_OK;
}

example_outcome rows_verify(example_problem *base, example_result *result) {
    rows_problem *p = (rows_problem *)base;
    rows_verdict *all = &p->verdict;
    const int64_t at_once = 1 + (1 << 18) / p->call.n;
    set_pointers(p);
    if (check_padding(p, result)) return result->outcome;
    example_progress progress = example_progress_begin("rows verified", p->call.m);
    for (int64_t begin = 0; begin < p->call.m && !all->wrong; begin += at_once) {
        const int64_t end = begin + at_once < p->call.m ? begin + at_once : p->call.m;
        rows_verdict some = {0};
        if (rows_check(&p->call, begin, end, example_threads(base), &some) != 0)
            return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the reference");
        all->checked += some.checked;
        all->unspecified += some.unspecified;
        all->wrong += some.wrong;
        result->rows_checked = end;
        for (int64_t row = begin; row < end; row++) example_progress_step(&progress);
        if (some.wrong)
            example_fail(result, EXAMPLE_WRONG_RESULT,
                         "%s (and %" PRId64 " elements more of rows %" PRId64 " to %" PRId64 ")", some.first,
                         some.wrong - 1, begin, end - 1);
    }
    example_progress_end(&progress);
    return result->outcome;
}

// ---- output

void rows_print_types(const rows_options *o, FILE *file) {
    fprintf(file, "[%s", o->prec_i);
    if (!is(o->prec_o, "auto") && !is(o->prec_o, o->prec_i)) fprintf(file, "|%s", o->prec_o);
    fputs(o->fquant == 1 ? "(fp32)]" : "]", file);
}

void rows_put_error(const example_problem *base, FILE *file) {
    const rows_verdict *verdict = &((const rows_problem *)base)->verdict;
    example_put_integer(file, "elements_verified", verdict->checked);
    example_put_integer(file, "elements_wrong", verdict->wrong);
    example_put_integer(file, "elements_unspecified", verdict->unspecified);
}
