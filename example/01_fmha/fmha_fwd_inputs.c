// SPDX-License-Identifier: MIT
// Fills the inputs of a problem: CK's distributions, drawn from our own generator.
#include <math.h>

#include "fmha_fwd_problem.h"
#include "parts.h"
#include "random.h"

// A stream of random numbers, and the number of the next element.
typedef struct stream {
    uint64_t state;
    fmha_fwd_init init;
    tessera_type element;
    int64_t drawn;
} stream;

static stream stream_of(const fmha_fwd_problem *p, fmha_fwd_buffer_id id, fmha_fwd_init init, tessera_type element) {
    stream s = {p->base.seed * BUFFER_COUNT + (uint64_t)id, init, element, 0};
    s.state = example_random(&s.state);
    return s;
}

static double uniform(stream *s, double least, double greatest) { return example_uniform(&s->state, least, greatest); }

static double normal(stream *s, double mean, double variance) {
    double radius = sqrt(-2 * log(1 - uniform(s, 0, 1))), angle = 6.283185307179586 * uniform(s, 0, 1);
    return mean + sqrt(variance) * radius * cos(angle);
}

static double greatest_of(tessera_type element) {
    switch (element) {
    case TESSERA_TYPE_FP16:
        return 65504;
    case TESSERA_TYPE_E4M3:
        return 448;
    case TESSERA_TYPE_E4M3FNUZ:
        return 240;
    case TESSERA_TYPE_E2M1:
        return 6;
    default:
        return 0x1.fep127;
    }
}

static double draw(stream *s) {
    switch (s->init) {
    case INIT_UNIFORM_INTEGER:
        return nearbyint(uniform(s, -3, 3));
    case INIT_NORMAL_INTEGER:
        return nearbyint(normal(s, -3, 3));
    case INIT_UNIFORM:
        return uniform(s, 0, 1);
    case INIT_NORMAL:
        return normal(s, 0, 3);
    case INIT_TRIG:
        return cos((double)s->drawn++);
    default:
        return uniform(s, -greatest_of(s->element), greatest_of(s->element));
    }
}

typedef struct strides {
    int64_t batch, nhead, row;
} strides;

// As if `count` elements had been drawn.
static void skip(stream *s, int64_t count) {
    const int normals = s->init == INIT_NORMAL || s->init == INIT_NORMAL_INTEGER;
    example_skip(&s->state, normals ? 2 * count : count);
    s->drawn += count;
}

// Rows of a tensor that belong to tokens within logical lengths, numbered by sequences, heads and tokens.
typedef struct token_rows {
    fmha_fwd_problem *problem;
    fmha_fwd_buffer_id id;
    strides at;
    int32_t heads, columns;
    const int32_t *lengths, *rooms;
} token_rows;

// Fills rows begin to end - 1.
static void fill_rows(void *context, int part, int64_t begin, int64_t end) {
    (void)part;
    const token_rows *rows = context;
    const fmha_fwd_problem *p = rows->problem;
    const tessera_type element = fmha_fwd_input_element(p->dtype, p->fp8);
    stream s = stream_of(p, rows->id, p->init, element);
    skip(&s, begin * rows->columns);
    int64_t first = 0, before = 0; // the sequence's first token, rows before the head's
    for (int32_t b = 0; b < p->options.b; b++) {
        const int64_t length = rows->lengths[b];
        for (int32_t h = 0; h < rows->heads; h++, before += length) {
            const int64_t from = begin > before ? begin - before : 0,
                          to = end - before < length ? end - before : length;
            for (int64_t i = from; i < to; i++) {
                const int64_t index =
                    (p->options.mode ? 0 : b * rows->at.batch) + h * rows->at.nhead + (first + i) * rows->at.row;
                for (int32_t d = 0; d < rows->columns; d++)
                    element_store(element, example_pointer(&p->base, rows->id), index + d, draw(&s));
            }
        }
        if (p->options.mode) first += rows->rooms[b];
    }
}

// Fills the rows of a tensor, what they are whatever the number of threads.
static void fill_tokens(fmha_fwd_problem *p, fmha_fwd_buffer_id id, strides at, int32_t heads, const int32_t *lengths,
                        const int32_t *rooms, int32_t columns) {
    enum { FEW = 1 << 18 }; // elements that are made before threads have begun
    token_rows rows = {p, id, at, heads, columns, lengths, rooms};
    int64_t count = 0;
    for (int32_t b = 0; b < p->options.b; b++) count += (int64_t)heads * lengths[b];
    do_in_parts(count, count * columns < FEW ? 1 : example_threads(&p->base), fill_rows, &rows);
}

// Does the same for v in column-major order, whose rows are columns of the head and hold tokens side by side.
static void fill_columns(fmha_fwd_problem *p) {
    const tessera_fmha_fwd_args *a = &p->args;
    tessera_type element = fmha_fwd_input_element(p->dtype, p->fp8);
    stream s = stream_of(p, BUFFER_V, p->init, element);
    int64_t first = 0;
    for (int32_t b = 0; b < p->options.b; b++) {
        for (int32_t g = 0; g < a->nhead_k; g++)
            for (int32_t d = 0; d < a->hdim_v; d++) {
                int64_t index = (p->options.mode ? 0 : b * a->batch_stride_v) + g * a->nhead_stride_v + d * a->stride_v;
                for (int64_t j = first; j < first + p->seqlen_k[b]; j++)
                    element_store(element, example_pointer(&p->base, BUFFER_V), index + j, draw(&s));
            }
        if (p->options.mode) first += p->room_k[b];
    }
}

// Fills the whole bias; INIT_RANGE becomes plain uniform, as in CK.
static void fill_bias(fmha_fwd_problem *p) {
    tessera_type element = fmha_fwd_bias_element(p->dtype);
    stream s = stream_of(p, BUFFER_BIAS, p->init == INIT_RANGE ? INIT_UNIFORM : p->init, element);
    int64_t count = p->base.buffers[BUFFER_BIAS].bytes / (element_bits(element) / 8);
    for (int64_t n = 0; n < count; n++) element_store(element, example_pointer(&p->base, BUFFER_BIAS), n, draw(&s));
}

// ALiBi slopes of Press et al. (2022): powers of 2^(-8/n) for the greatest power of two n <= heads, then every other
// slope of those for 2n.
static void fill_slopes(fmha_fwd_problem *p) {
    int32_t heads = p->args.nhead_q, power = 1;
    while (power * 2 <= heads) power *= 2;
    float *slopes = example_pointer(&p->base, BUFFER_BIAS);
    int64_t count = p->base.buffers[BUFFER_BIAS].bytes / (int64_t)sizeof *slopes;
    for (int64_t n = 0; n < count; n++) {
        int32_t h = (int32_t)(n % heads);
        double exponent = h < power ? -8.0 * (h + 1) / power : -4.0 * (2 * (h - power) + 1) / power;
        slopes[n] = (float)exp2(exponent);
    }
}

// Fills E8M0 bytes so that scales times the greatest element are 2^-range to 2^range. With odd_descales some scales are
// 2^-127 or a thousand times as large.
static void fill_exponents(fmha_fwd_problem *p, fmha_fwd_buffer_id id, double range) {
    stream s = stream_of(p, id, INIT_UNIFORM, TESSERA_TYPE_FP32);
    double middle = -log2(greatest_of(fmha_fwd_input_element(p->dtype, p->fp8)));
    uint8_t *bytes = example_pointer(&p->base, id);
    for (int64_t n = 0; n < p->base.buffers[id].bytes; n++)
        bytes[n] = (uint8_t)(127 + nearbyint(uniform(&s, middle - range, middle + range)));
    for (int64_t n = 0; n < p->base.buffers[id].bytes && p->options.odd_descales; n++)
        bytes[n] = (uint8_t)(n % 5 == 1 ? 0 : n % 5 == 3 ? bytes[n] + 10 : bytes[n]);
}

// Fills descales that bring the greatest element to 3, or to 2.4 to 3 with a descale for each block. With odd_descales
// each block's is also multiplied by a factor of `odd`.
static void fill_descales(fmha_fwd_problem *p, fmha_fwd_buffer_id id) {
    static const double odd[] = {-1, 0x1p-20, 0x1p6, 0, 1, -0x1p-3, 0x1p3, 0x1p-60};
    stream s = stream_of(p, id, INIT_UNIFORM, TESSERA_TYPE_FP32);
    double greatest = 3 / greatest_of(fmha_fwd_input_element(p->dtype, p->fp8));
    float *scales = example_pointer(&p->base, id);
    for (int64_t n = 0; n < p->base.buffers[id].bytes / (int64_t)sizeof *scales; n++)
        scales[n] =
            (float)(p->traits.qscale_type == TESSERA_QSCALE_BLOCK ? uniform(&s, 0.8 * greatest, greatest) : greatest);
    const uint64_t first = example_random(&s.state);
    for (int64_t n = 0; n < p->base.buffers[id].bytes / (int64_t)sizeof *scales && p->options.odd_descales; n++)
        scales[n] *= (float)odd[(first + (uint64_t)n) % (sizeof odd / sizeof *odd)];
}

static void fill_sinks(fmha_fwd_problem *p) {
    stream s = stream_of(p, BUFFER_SINK, INIT_UNIFORM, TESSERA_TYPE_FP32);
    float *sinks = example_pointer(&p->base, BUFFER_SINK);
    for (int32_t h = 0; h < p->args.nhead_q; h++)
        sinks[h] = (float)(p->options.init_sink == 2 ? uniform(&s, -1, 1) : nearbyint(uniform(&s, 30, 60)));
}

void fmha_fwd_fill_inputs(example_problem *base) {
    fmha_fwd_problem *p = (fmha_fwd_problem *)base;
    const tessera_fmha_fwd_args *a = &p->args;
    fill_tokens(p, BUFFER_Q, (strides){a->batch_stride_q, a->nhead_stride_q, a->stride_q}, a->nhead_q, p->seqlen_q,
                p->room_q, a->hdim_q);
    fill_tokens(p, BUFFER_K, (strides){a->batch_stride_k, a->nhead_stride_k, a->stride_k}, a->nhead_k, p->seqlen_k,
                p->room_k, a->hdim_q);
    if (p->traits.is_v_rowmajor)
        fill_tokens(p, BUFFER_V, (strides){a->batch_stride_v, a->nhead_stride_v, a->stride_v}, a->nhead_k, p->seqlen_k,
                    p->room_k, a->hdim_v);
    else
        fill_columns(p);
    if (p->bias.type == TESSERA_BIAS_ELEMENTWISE) fill_bias(p);
    if (p->bias.type == TESSERA_BIAS_ALIBI) fill_slopes(p);
    for (fmha_fwd_buffer_id id = BUFFER_Q_DESCALE; id <= BUFFER_V_DESCALE; id++) {
        if (!p->base.buffers[id].used) continue;
        // CK narrows the scales of v where P would be rounded to fp4.
        if (p->qscale == TESSERA_QSCALE_MX)
            fill_exponents(p, id, id == BUFFER_V_DESCALE && p->dtype == TESSERA_FMHA_MXFP4 ? 1 : 3);
        else
            fill_descales(p, id);
    }
    if (p->base.buffers[BUFFER_SINK].used) fill_sinks(p);
    fmha_fwd_fill_cache(p);
}

void fmha_fwd_draw_lengths(uint64_t seed, int32_t count, int32_t mean, const int32_t *rooms, int32_t *lengths) {
    stream s = {seed, INIT_UNIFORM, TESSERA_TYPE_FP32, 0};
    for (int32_t n = 0; n < count; n++) lengths[n] = mean;
    if (count < 2 || mean == 0) return;
    // Moves tokens between sequences, which keeps the mean: one at a time, as CK does, or several if there are many.
    int64_t all = (int64_t)mean * (count / 2), step = 1 + (all >> 20);
    for (int64_t moved = 0; moved < all; moved += step) {
        int32_t from = (int32_t)(example_random(&s.state) % (uint64_t)count);
        int32_t to = (int32_t)((uint64_t)from + 1 + example_random(&s.state) % (uint64_t)(count - 1)) % count;
        int64_t tokens = lengths[from] - 1 < step ? lengths[from] - 1 : step;
        if (rooms[to] && lengths[to] + tokens > rooms[to]) tokens = rooms[to] - lengths[to];
        lengths[from] -= (int32_t)tokens;
        lengths[to] += (int32_t)tokens;
    }
}
