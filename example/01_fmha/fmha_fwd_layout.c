// SPDX-License-Identifier: MIT
// All buffers of a problem in one arena, with guard zones between them.
#include "fmha_fwd_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER
#endif
#endif

#ifdef ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define POISON(address, bytes) ((void)0)
#define UNPOISON(address, bytes) ((void)0)
#endif

const char *fmha_fwd_buffer_name(fmha_fwd_buffer_id id) {
    static const char *const names[BUFFER_COUNT] = {
        "q",
        "k",
        "v",
        "bias",
        "q_descale",
        "k_descale",
        "v_descale",
        "seqstart_q",
        "seqstart_k",
        "seqlen_q",
        "seqlen_k",
        "cu_seqlen_q",
        "cu_seqlen_k",
        "block_scale_seqstart_q",
        "block_scale_seqstart_k",
        "seqstart_v_scale",
        "sink",
        "drop_seed",
        "drop_offset",
        "o",
        "lse",
        "rand_val",
    };
    return names[id];
}

static int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Product of sizes; negative once it overflows.
static int64_t times(int64_t a, int64_t b) {
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int64_t times4(int64_t a, int64_t b, int64_t c, int64_t d) { return times(times(a, b), times(c, d)); }

static void use(fmha_fwd_problem *p, fmha_fwd_buffer_id id, int64_t elements, int32_t bits) {
    int64_t all_bits = times(elements, bits);
    p->buffers[id] = (fmha_fwd_buffer){1, all_bits < 0 ? -1 : ceil_div(all_bits, 8), bits < 8 ? 1 : bits / 8, 0, NULL};
}

// A tensor of tokens [batch, head, token, column], or [batch, token, head, column].
static void use_tokens(fmha_fwd_problem *p, fmha_fwd_buffer_id id, int permuted, int64_t heads, int64_t tokens,
                       int64_t columns, int32_t bits, int64_t *batch_stride, int64_t *nhead_stride, int64_t *stride) {
    *batch_stride = times(times(heads, tokens), columns);
    *nhead_stride = permuted ? times(tokens, columns) : columns;
    *stride = permuted ? columns : times(heads, columns);
    use(p, id, times(p->shape_batch, *batch_stride), bits);
}

static void use_qkvo(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    int32_t in = element_bits(fmha_fwd_input_element(p->dtype, p->fp8));
    int32_t out = element_bits(fmha_fwd_output_element(p->dtype, p->fp8));
    int32_t multiple = o->pad_columns ? 512 / in : in < 8 ? 2 : 1; // mxfp4 strides are even
    use_tokens(p, BUFFER_Q, o->iperm, o->h, p->shape_seqlen_q, o->d, in, &a->batch_stride_q, &a->nhead_stride_q,
               &a->stride_q);
    use_tokens(p, BUFFER_K, o->iperm, o->h_k, p->shape_seqlen_k, o->d, in, &a->batch_stride_k, &a->nhead_stride_k,
               &a->stride_k);
    // In column-major order a row is a column of the head.
    if (p->traits.is_v_rowmajor)
        use_tokens(p, BUFFER_V, o->iperm, o->h_k, p->shape_seqlen_k, o->d_v, in, &a->batch_stride_v, &a->nhead_stride_v,
                   &a->stride_v);
    else
        use_tokens(p, BUFFER_V, o->iperm, o->h_k, o->d_v, ceil_div(p->shape_seqlen_k, multiple) * multiple, in,
                   &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    use_tokens(p, BUFFER_O, o->operm, o->h, p->shape_seqlen_q, o->d_v, out, &a->batch_stride_o, &a->nhead_stride_o,
               &a->stride_o);
    if (o->lse) {
        int64_t unused;
        use_tokens(p, BUFFER_LSE, 1, o->h, p->shape_seqlen_q, 1, 32, &a->batch_stride_lse, &a->nhead_stride_lse,
                   &unused);
    }
}

// Elementwise: [1, 1, s, s], [1, h, s, s] or [b, h, s, s] by rank, permuted as the inputs are. Alibi: [1, h] or [b, h].
static void use_bias(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (p->bias.type == TESSERA_BIAS_ALIBI) {
        use(p, BUFFER_BIAS, times(p->bias.rank ? o->b : 1, o->h), 32);
        a->stride_bias = p->bias.rank ? o->h : 0;
    } else if (p->bias.type == TESSERA_BIAS_ELEMENTWISE) {
        int64_t heads = p->bias.rank ? o->h : 1;
        use_tokens(p, BUFFER_BIAS, o->iperm, heads, p->shape_seqlen_q, p->max_seqlen_k,
                   element_bits(fmha_fwd_bias_element(p->dtype)), &a->batch_stride_bias, &a->nhead_stride_bias,
                   &a->stride_bias);
        if (p->bias.rank < 2) {
            p->buffers[BUFFER_BIAS].bytes = times(a->batch_stride_bias, p->buffers[BUFFER_BIAS].element_bytes);
            a->batch_stride_bias = 0;
        }
        if (p->bias.rank < 1) a->nhead_stride_bias = 0;
    }
}

// Blocks of `size` that each sequence of a side has, one after the other; group mode's starts.
static int64_t sum_of_blocks(const fmha_fwd_problem *p, const int32_t *lengths, int32_t size, int32_t *starts) {
    int64_t sum = 0;
    for (int32_t b = 0; b < p->options.b; b++) {
        if (starts) starts[b] = (int32_t)sum;
        sum += ceil_div(lengths[b], size);
    }
    if (starts) starts[p->options.b] = (int32_t)sum;
    return sum;
}

enum { BLOCK_SCALE_SIZE = 128, MX_SIZE = 32 };

static void use_descales(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (p->qscale == TESSERA_QSCALE_PER_TENSOR)
        for (fmha_fwd_buffer_id id = BUFFER_Q_DESCALE; id <= BUFFER_V_DESCALE; id++) use(p, id, 1, 32);
    if (p->qscale == TESSERA_QSCALE_BLOCK) {
        int64_t unused, q, k;
        const int32_t size_q = o->block_scale_size_q ? o->block_scale_size_q : BLOCK_SCALE_SIZE;
        const int32_t size_k = o->block_scale_size_kv ? o->block_scale_size_kv : BLOCK_SCALE_SIZE;
        q = o->mode ? sum_of_blocks(p, p->seqlen_q, size_q, NULL) : ceil_div(p->room_q[0], size_q);
        k = o->mode ? sum_of_blocks(p, p->seqlen_k, size_k, NULL) : ceil_div(p->room_k[0], size_k);
        a->block_scale_size_q = size_q;
        a->block_scale_size_kv = size_k;
        use_tokens(p, BUFFER_Q_DESCALE, 1, o->h, q, 1, 32, &a->batch_stride_q_descale, &a->nhead_stride_q_descale,
                   &unused);
        use_tokens(p, BUFFER_K_DESCALE, 1, o->h_k, k, 1, 32, &a->batch_stride_k_descale, &a->nhead_stride_k_descale,
                   &unused);
        use_tokens(p, BUFFER_V_DESCALE, 1, o->h_k, k, 1, 32, &a->batch_stride_v_descale, &a->nhead_stride_v_descale,
                   &unused);
    }
    if (p->qscale == TESSERA_QSCALE_MX) {
        int64_t columns = ceil_div(o->d, MX_SIZE);
        int64_t v = o->mode ? sum_of_blocks(p, p->seqlen_k, MX_SIZE, NULL) : ceil_div(p->room_k[0], MX_SIZE);
        use_tokens(p, BUFFER_Q_DESCALE, o->iperm, o->h, p->shape_seqlen_q, columns, 8, &a->batch_stride_q_descale,
                   &a->nhead_stride_q_descale, &a->stride_q_descale);
        use_tokens(p, BUFFER_K_DESCALE, o->iperm, o->h_k, p->shape_seqlen_k, columns, 8, &a->batch_stride_k_descale,
                   &a->nhead_stride_k_descale, &a->stride_k_descale);
        use_tokens(p, BUFFER_V_DESCALE, o->iperm, o->h_k, o->d_v, v, 8, &a->batch_stride_v_descale,
                   &a->nhead_stride_v_descale, &a->stride_v_descale);
    }
}

static void use_lengths(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    int padded_q = o->s_qpad_list || o->s_qpad > 0, padded_k = o->s_kpad_list || o->s_kpad > 0;
    for (int32_t b = 0; b < o->b; b++) padded_k |= p->room_k[b] != p->seqlen_k[b];
    if (o->mode) {
        use(p, BUFFER_SEQSTART_Q, (int64_t)o->b + 1, 32);
        use(p, BUFFER_SEQSTART_K, (int64_t)o->b + 1, 32);
        int cumulative = o->cu_seqlen != 0;
        if (padded_q) use(p, cumulative ? BUFFER_CU_SEQLEN_Q : BUFFER_SEQLEN_Q, (int64_t)o->b + cumulative, 32);
        if (padded_k) use(p, cumulative ? BUFFER_CU_SEQLEN_K : BUFFER_SEQLEN_K, (int64_t)o->b + cumulative, 32);
        if (p->qscale == TESSERA_QSCALE_BLOCK) {
            use(p, BUFFER_BLOCK_START_Q, (int64_t)o->b + 1, 32);
            use(p, BUFFER_BLOCK_START_K, (int64_t)o->b + 1, 32);
        }
        if (p->qscale == TESSERA_QSCALE_MX) use(p, BUFFER_V_SCALE_START, (int64_t)o->b + 1, 32);
    } else {
        if (o->q_eff_lens) use(p, BUFFER_CU_SEQLEN_Q, (int64_t)o->b + 1, 32);
        if (o->kv_eff_lens) use(p, BUFFER_CU_SEQLEN_K, (int64_t)o->b + 1, 32);
    }
}

// Bytes of dropout are stored to be compared; beyond this they are checked through o alone.
static const int64_t RANDVAL_LIMIT = INT64_C(1) << 30;

static void use_dropout(fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    tessera_fmha_fwd_args *a = &p->args;
    if (o->drop_prefs) {
        use(p, BUFFER_DROP_SEED, 1, 64);
        use(p, BUFFER_DROP_OFFSET, 1, 64);
    }
    // A GPU's rows are as long as the room, since the library does not read effective lengths there.
    int64_t columns = o->mode ? p->max_seqlen_k : p->shape_seqlen_k;
    int64_t bytes = times4(p->shape_batch, o->h, p->shape_seqlen_q, columns);
    if (o->p_drop == 0 || o->v == 0 || bytes < 0 || bytes > RANDVAL_LIMIT) return;
    use_tokens(p, BUFFER_RANDVAL, 1, o->h, p->shape_seqlen_q, columns, 8, &a->batch_stride_randval,
               &a->nhead_stride_randval, &a->stride_randval);
    a->s_randval = 1;
}

// Bytes that this machine could give; infinite where it does not say.
static double memory_available(void) {
    double kilobytes = INFINITY;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf kB", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes * 1024;
}

fmha_fwd_outcome fmha_fwd_check_memory(const fmha_fwd_options *o, double bytes, const char *what,
                                       fmha_fwd_result *result) {
    double available = memory_available();
    if (bytes >= 0x1p62)
        return FMHA_FWD_WRONG("-b=%d -h=%d -s=%d -s_k=%d -d=%d: the bytes of %s overflow 64 bits", o->b, o->h, o->s,
                              o->s_k, o->d, what);
    if (bytes > available)
        return FMHA_FWD_WRONG("-b=%d -h=%d -s=%d -s_k=%d -d=%d: %s take %.1f GB, and this machine has %.1f GB to give",
                              o->b, o->h, o->s, o->s_k, o->d, what, bytes / 1e9, available / 1e9);
    return FMHA_FWD_OK;
}

// Places the buffers one after the other, at least FMHA_FWD_GUARD bytes apart.
static fmha_fwd_outcome place(fmha_fwd_problem *p, fmha_fwd_result *result) {
    const fmha_fwd_options *o = &p->options;
    int64_t end = 0;
    for (int id = 0; id < BUFFER_COUNT; id++) {
        fmha_fwd_buffer *buffer = &p->buffers[id];
        if (id == BUFFER_O) p->input_bytes = end;
        if (!buffer->used) continue;
        if (buffer->bytes < 0 || buffer->bytes > INT64_MAX / BUFFER_COUNT / 2)
            return fmha_fwd_check_memory(o, INFINITY, fmha_fwd_buffer_name((fmha_fwd_buffer_id)id), result);
        buffer->offset = (end + FMHA_FWD_GUARD + 63) / 64 * 64 + (int64_t)o->misalign * buffer->element_bytes;
        end = buffer->offset + buffer->bytes + FMHA_FWD_GUARD;
    }
    p->arena_bytes = (end + 63) / 64 * 64;
    return fmha_fwd_check_memory(o, (double)p->arena_bytes, "the buffers", result);
}

fmha_fwd_outcome fmha_fwd_lay_out(fmha_fwd_problem *p, fmha_fwd_result *result) {
    use_qkvo(p);
    use_bias(p);
    use_descales(p);
    use_lengths(p);
    use_dropout(p);
    if (p->options.init_sink) use(p, BUFFER_SINK, p->options.h, 32);
    return place(p, result);
}

uint8_t fmha_fwd_unwritten_byte(const fmha_fwd_problem *p, fmha_fwd_buffer_id id) {
    const int input = id == BUFFER_Q || id == BUFFER_K || id == BUFFER_V;
    const int fnuz = (input && fmha_fwd_input_element(p->dtype, p->fp8) == TESSERA_TYPE_E4M3FNUZ) ||
                     (id == BUFFER_O && fmha_fwd_output_element(p->dtype, p->fp8) == TESSERA_TYPE_E4M3FNUZ);
    return fnuz ? 0x80 : FMHA_FWD_UNWRITTEN_BYTE;
}

fmha_fwd_outcome fmha_fwd_allocate(fmha_fwd_problem *p, fmha_fwd_result *result) {
    p->arena = aligned_alloc(64, (size_t)p->arena_bytes);
    if (!p->arena)
        return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory for %.1f GB of buffers",
                             (double)p->arena_bytes / 1e9);
    int64_t end = 0;
    for (int id = 0; id < BUFFER_COUNT; id++) {
        const fmha_fwd_buffer *buffer = &p->buffers[id];
        if (!buffer->used) continue;
        memset(p->arena + end, FMHA_FWD_GUARD_BYTE, (size_t)(buffer->offset - end));
        memset(p->arena + buffer->offset, fmha_fwd_unwritten_byte(p, (fmha_fwd_buffer_id)id), (size_t)buffer->bytes);
        end = buffer->offset + buffer->bytes;
    }
    memset(p->arena + end, FMHA_FWD_GUARD_BYTE, (size_t)(p->arena_bytes - end));
    return FMHA_FWD_OK;
}

void *fmha_fwd_pointer(const fmha_fwd_problem *p, fmha_fwd_buffer_id id) {
    return p->buffers[id].used ? p->arena + p->buffers[id].offset : NULL;
}

static void put_starts(fmha_fwd_problem *p, fmha_fwd_buffer_id id, const int32_t *lengths) {
    int32_t *starts = fmha_fwd_pointer(p, id);
    if (!starts) return;
    starts[0] = 0;
    for (int32_t b = 0; b < p->options.b; b++) starts[b + 1] = starts[b] + lengths[b];
}

void fmha_fwd_put_lengths(fmha_fwd_problem *p) {
    put_starts(p, BUFFER_SEQSTART_Q, p->room_q);
    put_starts(p, BUFFER_SEQSTART_K, p->room_k);
    put_starts(p, BUFFER_CU_SEQLEN_Q, p->seqlen_q);
    put_starts(p, BUFFER_CU_SEQLEN_K, p->seqlen_k);
    size_t bytes = (size_t)p->options.b * sizeof(int32_t);
    if (p->args.seqlen_q_ptr) memcpy(fmha_fwd_pointer(p, BUFFER_SEQLEN_Q), p->seqlen_q, bytes);
    if (p->args.seqlen_k_ptr) memcpy(fmha_fwd_pointer(p, BUFFER_SEQLEN_K), p->seqlen_k, bytes);
    if (p->args.block_scale_seqstart_q_ptr)
        sum_of_blocks(p, p->seqlen_q, p->args.block_scale_size_q, fmha_fwd_pointer(p, BUFFER_BLOCK_START_Q));
    if (p->args.block_scale_seqstart_k_ptr)
        sum_of_blocks(p, p->seqlen_k, p->args.block_scale_size_kv, fmha_fwd_pointer(p, BUFFER_BLOCK_START_K));
    if (p->args.seqstart_v_scale_ptr) sum_of_blocks(p, p->seqlen_k, MX_SIZE, fmha_fwd_pointer(p, BUFFER_V_SCALE_START));
    if (p->args.drop_prefs) {
        *(uint64_t *)fmha_fwd_pointer(p, BUFFER_DROP_SEED) = p->options.drop_seed;
        *(uint64_t *)fmha_fwd_pointer(p, BUFFER_DROP_OFFSET) = p->options.drop_offset;
    }
}

void fmha_fwd_guard(const fmha_fwd_problem *p) {
    POISON(p->arena, (size_t)p->arena_bytes);
    for (int id = 0; id < BUFFER_COUNT; id++)
        if (p->buffers[id].used) UNPOISON(p->arena + p->buffers[id].offset, (size_t)p->buffers[id].bytes);
}

void fmha_fwd_unguard(const fmha_fwd_problem *p) {
    if (p->arena) UNPOISON(p->arena, (size_t)p->arena_bytes);
}

uint64_t fmha_fwd_input_sum(const fmha_fwd_problem *p) {
    fmha_fwd_unguard(p);
    uint64_t sums[4] = {1, 2, 3, 4}, sum = 0;
    int64_t n = 0;
    for (; n + 32 <= p->input_bytes; n += 32)
        for (int lane = 0; lane < 4; lane++) {
            uint64_t word;
            memcpy(&word, p->arena + n + lane * 8, sizeof word);
            sums[lane] = (sums[lane] ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        }
    for (; n < p->input_bytes; n++) sum = (sum ^ p->arena[n]) * UINT64_C(0x9E3779B97F4A7C15);
    for (int lane = 0; lane < 4; lane++) sum = (sum ^ sums[lane] >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return sum;
}
