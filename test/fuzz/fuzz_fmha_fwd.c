// SPDX-License-Identifier: MIT
// Calls the public functions of fmha_fwd with random traits and args, sensible ones and nonsense. None may crash; each
// returns a status, and writes only the outputs of a call that succeeds, which match the reference.
//
//   fuzz_fmha_fwd [seconds [seed]]        default 20 seconds, seed 1
//   fuzz_fmha_fwd 0 SEED ITERATION        one iteration again
//
// With -DTESSERA_LIBFUZZER and clang's -fsanitize=fuzzer the choices come from libFuzzer instead.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fmha_fwd_reference.h"
#include "tessera/fmha_fwd.h"

// ---- choices

static struct {
    uint64_t state;       // xorshift64*
    const uint8_t *bytes; // libFuzzer's, which are used first
    size_t size;
} choices;

static uint32_t below(uint32_t n) {
    if (choices.size >= 2) {
        const uint32_t value = choices.bytes[0] | (uint32_t)choices.bytes[1] << 8;
        choices.bytes += 2;
        choices.size -= 2;
        return value % n;
    }
    choices.state ^= choices.state >> 12;
    choices.state ^= choices.state << 25;
    choices.state ^= choices.state >> 27;
    return (uint32_t)((choices.state * UINT64_C(0x2545F4914F6CDD1D)) >> 32) % n;
}

static int chance(uint32_t one_in) { return below(one_in) == 0; }
static int32_t between(int32_t least, int32_t most) { return least + (int32_t)below((uint32_t)(most - least) + 1); }
static double uniform(double least, double most) { return least + (most - least) * below(4097) / 4096; }

// ---- memory: a room for each pointer of the args, all in one block

typedef tessera_fmha_fwd_args args_t;
typedef tessera_fmha_fwd_traits traits_t;

enum { ROOM = 200 << 10, ROOMS = 22, BEFORE = 1024, LENGTHS = 4 }; // sensible calls have LENGTHS - 1 sequences at most
static union {
    uint8_t bytes[ROOMS][ROOM];
    uint64_t align;
} memory, snapshot, writable; // writable: 1 where the call may write

static const size_t pointers[ROOMS] = {
    offsetof(args_t, q_ptr),
    offsetof(args_t, k_ptr),
    offsetof(args_t, v_ptr),
    offsetof(args_t, bias_ptr),
    offsetof(args_t, q_descale_ptr),
    offsetof(args_t, k_descale_ptr),
    offsetof(args_t, v_descale_ptr),
    offsetof(args_t, sink_ptr),
    offsetof(args_t, drop_seed_ptr),
    offsetof(args_t, drop_offset_ptr),
    offsetof(args_t, seqstart_q_ptr), // from here on int32 lengths
    offsetof(args_t, seqstart_k_ptr),
    offsetof(args_t, seqlen_q_ptr),
    offsetof(args_t, seqlen_k_ptr),
    offsetof(args_t, cu_seqlen_q_ptr),
    offsetof(args_t, cu_seqlen_k_ptr),
    offsetof(args_t, block_scale_seqstart_q_ptr),
    offsetof(args_t, block_scale_seqstart_k_ptr),
    offsetof(args_t, seqstart_v_scale_ptr),
    offsetof(args_t, o_ptr), // from here on outputs
    offsetof(args_t, lse_ptr),
    offsetof(args_t, rand_val_ptr),
};
enum { FIRST_LENGTHS = 10, FIRST_OUTPUT = 19 };

static void **pointer_at(args_t *args, size_t offset) { return (void **)(void *)((char *)args + offset); }
static void *room(int number) { return memory.bytes[number] + BEFORE; }
static int32_t *lengths_of(size_t offset) {
    for (int n = FIRST_LENGTHS; n < FIRST_OUTPUT; n++)
        if (pointers[n] == offset) return room(n);
    abort();
}
#define LENGTHS_OF(field) lengths_of(offsetof(args_t, field))

// ---- a sensible call

static struct {
    traits_t traits;
    uint8_t traits_tail[64];
    args_t args;
    uint8_t args_tail[64];
} call, call_before;
static tessera_device *devices[8];
static int device_count;

static int storage_bits(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP32                                 ? 32
           : dtype == TESSERA_FMHA_FP16 || dtype == TESSERA_FMHA_BF16 ? 16
           : dtype == TESSERA_FMHA_MXFP4                              ? 4
                                                                      : 8;
}
static int output_bytes(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP8                                                                   ? 1
           : dtype == TESSERA_FMHA_FP16 || dtype == TESSERA_FMHA_BF16 || dtype == TESSERA_FMHA_FP8BF16 ? 2
                                                                                                       : 4;
}

// The shape of calls: few rows of wide heads, few rows and keys that are cut into parts, or a bit of everything.
static enum { USUAL, WIDE, LONG } shape;

static void choose_traits(traits_t *t) {
    shape = chance(8) ? WIDE : chance(8) ? LONG : USUAL;
    const traits_t plain = TESSERA_FMHA_FWD_TRAITS_INIT;
    *t = plain;
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_DTYPE_COUNT);
    const int32_t most = shape == WIDE ? 512 : shape == LONG ? 24 : 48;
    t->hdim_q = between(1, most);
    t->hdim_v = between(1, most);
    if (t->data_type == TESSERA_FMHA_MXFP4) {
        t->hdim_q += t->hdim_q % 2;
        t->hdim_v += t->hdim_v % 2;
    }
    t->is_group_mode = (int32_t)below(2);
    t->is_v_rowmajor = (int32_t)below(2);
    t->mask_type = (tessera_mask)below(TESSERA_MASK_COUNT);
    t->bias_type = (tessera_bias)below(TESSERA_BIAS_COUNT);
    t->has_logits_soft_cap = t->bias_type != TESSERA_BIAS_ELEMENTWISE && chance(3);
    t->has_lse = (int32_t)below(2);
    t->has_dropout = chance(3);
    t->skip_min_seqlen_q = t->is_group_mode && chance(4);
    t->has_sink = chance(3);
    if (t->data_type >= TESSERA_FMHA_FP8) t->qscale_type = (tessera_qscale)below(3); // no, pt, bs
    if (t->data_type >= TESSERA_FMHA_MXFP8) t->qscale_type = TESSERA_QSCALE_MX;
}

// Chooses lengths of `batch` sequences: physical starts, and logical lengths in either form.
static void choose_lengths(args_t *a, int32_t most, int32_t *starts, int32_t *lengths, int32_t *cumulative, int pads) {
    starts[0] = cumulative[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        int32_t size = chance(6) ? 0 : between(0, most);
        if (call.traits.data_type == TESSERA_FMHA_MXFP4) size -= size % 2; // column-major v begins at whole bytes
        starts[b + 1] = starts[b] + size;
        lengths[b] = pads ? between(0, size) : size;
        cumulative[b + 1] = cumulative[b] + lengths[b];
    }
}

// Chooses lengths of q, or of k and v: in group mode all, in batch mode effective ones. Returns the longest logical
// length.
static int32_t choose_side(args_t *a, int group, int32_t most, size_t seqstart, size_t seqlen, size_t cu_seqlen) {
    int32_t *const starts = lengths_of(seqstart), *const lengths = lengths_of(seqlen),
                   *const cumulative = lengths_of(cu_seqlen);
    const uint32_t way = below(3);
    choose_lengths(a, most, starts, lengths, cumulative, way > 0);
    if (group) *pointer_at(a, seqstart) = starts;
    if (group && way == 1) *pointer_at(a, seqlen) = lengths;
    if (way == 2) *pointer_at(a, cu_seqlen) = cumulative;
    int32_t longest = 0;
    for (int32_t b = 0; b < a->batch; b++) longest = lengths[b] > longest ? lengths[b] : longest;
    return longest;
}

// Chooses strides of [batch, head, token, hdim] or [batch, token, head, hdim], sometimes with gaps; even ones, for
// mxfp4.
static void choose_strides(int64_t heads, int64_t tokens, int64_t inner, int64_t *batch, int64_t *head,
                           int64_t *token) {
    const int64_t spare = chance(3) ? 2 * between(0, 5) : 0;
    inner += inner % 2 + spare;
    const int tokens_first = chance(2);
    *token = tokens_first ? inner * heads : inner;
    *head = tokens_first ? inner : inner * tokens;
    *batch = inner * heads * tokens;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void choose_scales(const traits_t *t, args_t *a, int64_t tokens_q, int64_t tokens_k) {
    int64_t unused;
    if (t->qscale_type == TESSERA_QSCALE_NONE) return;
    a->q_descale_ptr = room(4), a->k_descale_ptr = room(5), a->v_descale_ptr = room(6);
    if (t->qscale_type == TESSERA_QSCALE_BLOCK) {
        a->block_scale_size_q = between(1, 40), a->block_scale_size_kv = between(1, 40);
        const int64_t q = ceil_div(tokens_q, a->block_scale_size_q) + a->batch,
                      k = ceil_div(tokens_k, a->block_scale_size_kv) + a->batch;
        choose_strides(a->nhead_q, 1, q, &a->batch_stride_q_descale, &a->nhead_stride_q_descale, &unused);
        choose_strides(a->nhead_k, 1, k, &a->batch_stride_k_descale, &a->nhead_stride_k_descale, &unused);
        a->batch_stride_v_descale = a->batch_stride_k_descale, a->nhead_stride_v_descale = a->nhead_stride_k_descale;
    }
    if (t->qscale_type == TESSERA_QSCALE_MX) {
        choose_strides(a->nhead_q, tokens_q, ceil_div(t->hdim_q, 32), &a->batch_stride_q_descale,
                       &a->nhead_stride_q_descale, &a->stride_q_descale);
        choose_strides(a->nhead_k, tokens_k, ceil_div(t->hdim_q, 32), &a->batch_stride_k_descale,
                       &a->nhead_stride_k_descale, &a->stride_k_descale);
        choose_strides(a->nhead_k, t->hdim_v, ceil_div(tokens_k, 32) + a->batch, &a->batch_stride_v_descale,
                       &a->nhead_stride_v_descale, &a->stride_v_descale);
    }
    if (!t->is_group_mode) return;
    int32_t *const q = LENGTHS_OF(block_scale_seqstart_q_ptr), *const k = LENGTHS_OF(block_scale_seqstart_k_ptr),
                   *const v = LENGTHS_OF(seqstart_v_scale_ptr);
    a->block_scale_seqstart_q_ptr = q, a->block_scale_seqstart_k_ptr = k, a->seqstart_v_scale_ptr = v;
    q[0] = k[0] = v[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        q[b + 1] = q[b] + (int32_t)ceil_div(s.seqlen_q, a->block_scale_size_q ? a->block_scale_size_q : 32);
        k[b + 1] = k[b] + (int32_t)ceil_div(s.seqlen_k, a->block_scale_size_kv ? a->block_scale_size_kv : 32);
        v[b + 1] = v[b] + (int32_t)ceil_div(s.seqlen_k, 32);
    }
}

static void choose_numbers(const traits_t *t, args_t *a) {
    a->scale_s = (float)uniform(-1, 1) / sqrtf((float)t->hdim_q);
    a->logits_soft_cap = (float)uniform(0.5, 50);
    a->window_size_left = between(-1, 90), a->window_size_right = between(-1, 90);
    a->sink_size = chance(2) ? between(0, 90) : 0;
    a->min_seqlen_q = between(0, 30);
    a->p_drop = (float)uniform(0, 0.9);
    a->s_randval = (int32_t)below(2), a->drop_prefs = (int32_t)below(2);
    a->drop_seed = below(1u << 31), a->drop_offset = below(1u << 31);
}

static void choose_args(const traits_t *t, args_t *a) {
    *a = tessera_fmha_fwd_args_init();
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v, a->mask_type = t->mask_type;
    a->batch = shape == LONG ? 1 : between(1, LENGTHS - 1), a->nhead_k = shape == LONG ? 1 : between(1, 2);
    a->nhead_q = a->nhead_k * between(1, 3);
    const int32_t sq = between(0, shape == USUAL ? 32 : 5), sk = between(0, shape == USUAL  ? 60
                                                                            : shape == WIDE ? 10
                                                                                            : 1300);
    a->seqlen_q = sq, a->seqlen_k = sk;
    a->max_seqlen_q = choose_side(a, t->is_group_mode, sq, offsetof(args_t, seqstart_q_ptr),
                                  offsetof(args_t, seqlen_q_ptr), offsetof(args_t, cu_seqlen_q_ptr));
    choose_side(a, t->is_group_mode, sk, offsetof(args_t, seqstart_k_ptr), offsetof(args_t, seqlen_k_ptr),
                offsetof(args_t, cu_seqlen_k_ptr));
    const int64_t tokens_q = t->is_group_mode ? LENGTHS_OF(seqstart_q_ptr)[a->batch] : sq;
    const int64_t tokens_k = t->is_group_mode ? LENGTHS_OF(seqstart_k_ptr)[a->batch] : sk;
    int64_t unused;
    choose_strides(a->nhead_q, tokens_q, t->hdim_q, &a->batch_stride_q, &a->nhead_stride_q, &a->stride_q);
    choose_strides(a->nhead_k, tokens_k, t->hdim_q, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_strides(a->nhead_k, t->is_v_rowmajor ? tokens_k : t->hdim_v, t->is_v_rowmajor ? t->hdim_v : tokens_k,
                   &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    choose_strides(a->nhead_q, tokens_q, t->hdim_v, &a->batch_stride_o, &a->nhead_stride_o, &a->stride_o);
    choose_strides(a->nhead_q, tokens_q, sk, &a->batch_stride_randval, &a->nhead_stride_randval, &a->stride_randval);
    choose_strides(a->nhead_q, 1, tokens_q, &a->batch_stride_lse, &a->nhead_stride_lse, &unused);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        a->stride_bias = chance(2) ? 0 : a->nhead_q;
    else
        choose_strides(a->nhead_q, tokens_q, sk, &a->batch_stride_bias, &a->nhead_stride_bias, &a->stride_bias);
    if (chance(4)) a->nhead_stride_bias = a->batch_stride_bias = 0;
    if (chance(8)) a->nhead_stride_k = a->nhead_stride_v = 0;
    a->q_ptr = room(0), a->k_ptr = room(1), a->v_ptr = room(2), a->bias_ptr = room(3),
    a->sink_ptr = chance(2) ? room(7) : NULL;
    a->drop_seed_ptr = room(8), a->drop_offset_ptr = room(9);
    a->o_ptr = room(FIRST_OUTPUT), a->lse_ptr = room(FIRST_OUTPUT + 1), a->rand_val_ptr = room(FIRST_OUTPUT + 2);
    choose_numbers(t, a);
    choose_scales(t, a, tokens_q, tokens_k);
}

// ---- inputs

enum pattern { FP32, FP16, BF16, E4M3, E2M1, E8M0, SLOPES, PATTERNS };

// Numbers from -1 to 1 in each format; E8M0 from 2^-6 to 2^-2, slopes of alibi from 0.5 down.
static void encode(enum pattern pattern, double x, int n, uint8_t *bytes) {
    const uint16_t half = pattern == FP16 ? element_encode_fp16(x) : element_encode_bf16(x);
    const float single = pattern == SLOPES ? 0.5f / (float)(1 + n % 64) : (float)x;
    switch (pattern) {
    case FP16:
    case BF16:
        memcpy(bytes + 2 * n, &half, 2);
        break;
    case E4M3:
        bytes[n] = element_encode_e4m3(x);
        break;
    case E2M1:
        bytes[n] = (uint8_t)(n * 37 + n / 256);
        break;
    case E8M0:
        bytes[n] = (uint8_t)(121 + n * 7 % 5);
        break;
    default:
        memcpy(bytes + 4 * n, &single, 4);
    }
}

static const uint8_t *pattern_of(enum pattern pattern) {
    static const int sizes[PATTERNS] = {4, 2, 2, 1, 1, 1, 4};
    static uint8_t patterns[PATTERNS][2 * ROOM];
    static int made[PATTERNS];
    for (int n = 0; !made[pattern] && n < 2 * ROOM / sizes[pattern]; n++)
        encode(pattern, (double)((uint32_t)n * 2654435761u >> 16) / 32768 - 1, n, patterns[pattern]);
    made[pattern] = 1;
    return patterns[pattern];
}

// Fills a room with its section of the pattern, unless it holds that already.
static void fill_room(int number, enum pattern pattern) {
    static int filled[ROOMS]; // pattern + 1
    if (filled[number] == (int)pattern + 1) return;
    memcpy(memory.bytes[number], pattern_of(pattern) + 1024 * number, ROOM);
    filled[number] = (int)pattern + 1;
}

static void fill_inputs(const traits_t *t) {
    static const enum pattern elements[TESSERA_FMHA_DTYPE_COUNT] = {FP32, FP16, BF16, E4M3, E4M3, E4M3, E4M3, E2M1};
    const enum pattern element = elements[t->data_type];
    for (int n = 0; n < 3; n++) fill_room(n, element);
    fill_room(3, t->bias_type == TESSERA_BIAS_ALIBI ? SLOPES : element == FP16 || element == BF16 ? element : FP32);
    for (int n = 4; n < 7; n++) fill_room(n, t->qscale_type == TESSERA_QSCALE_MX ? E8M0 : FP32);
    fill_room(7, FP32);
    *(uint64_t *)room(8) = 1234567890123, *(uint64_t *)room(9) = 77;
}

// ---- nonsense

static int32_t odd_int(void) {
    static const int32_t values[] = {0, 1, -1, 2, 7, 512, 513, 1 << 24, 1 << 30, INT32_MAX, INT32_MIN, -77};
    return values[below(sizeof values / sizeof *values)];
}

static float odd_float(void) {
    static const float values[] = {0, 1, -1, -0.1f, 0.5f, NAN, INFINITY, -INFINITY};
    return values[below(sizeof values / sizeof *values)];
}

static size_t odd_size(size_t right) {
    const size_t sizes[] = {0, 8, 12, right - 8, right / 16 * 8, right + 4, right + 8, right + 64, 70000, SIZE_MAX};
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

static void spoil_traits(traits_t *t) {
    int32_t *const fields = &t->hdim_q; // enums and int32 alike, to the end
    const uint32_t count = (uint32_t)((sizeof *t - offsetof(traits_t, hdim_q)) / sizeof *fields);
    fields[below(count)] = chance(2) ? odd_int() : between(0, 9);
}

static void spoil_args(args_t *a) {
    static const size_t integers[] = {offsetof(args_t, seqlen_q),
                                      offsetof(args_t, seqlen_k),
                                      offsetof(args_t, max_seqlen_q),
                                      offsetof(args_t, hdim_q),
                                      offsetof(args_t, hdim_v),
                                      offsetof(args_t, nhead_q),
                                      offsetof(args_t, nhead_k),
                                      offsetof(args_t, window_size_left),
                                      offsetof(args_t, window_size_right),
                                      offsetof(args_t, sink_size),
                                      offsetof(args_t, mask_type),
                                      offsetof(args_t, min_seqlen_q),
                                      offsetof(args_t, s_randval),
                                      offsetof(args_t, drop_prefs),
                                      offsetof(args_t, block_scale_size_q),
                                      offsetof(args_t, block_scale_size_kv)};
    static const size_t floats[] = {offsetof(args_t, scale_s), offsetof(args_t, logits_soft_cap),
                                    offsetof(args_t, p_drop)};
    char *const base = (char *)a;
    switch (below(7)) {
    case 0:
        *(int32_t *)(void *)(base + integers[below(sizeof integers / sizeof *integers)]) = odd_int();
        break;
    case 1:
        *(float *)(void *)(base + floats[below(sizeof floats / sizeof *floats)]) = odd_float();
        break;
    case 2: { // the strides lie side by side
        int64_t *const strides = &a->stride_q;
        const uint32_t count =
            (uint32_t)((offsetof(args_t, window_size_left) - offsetof(args_t, stride_q)) / sizeof *strides);
        strides[below(count)] = chance(2) ? odd_int() : (int64_t)(chance(2) ? INT64_MAX : INT64_MIN) / between(1, 9);
        break;
    }
    case 3:
        *pointer_at(a, pointers[below(ROOMS)]) = NULL;
        break;
    case 4: { // another address: odd, or that of another tensor, or inside of one
        *pointer_at(a, pointers[below(ROOMS)]) = (char *)room((int)below(ROOMS)) + below(64);
        break;
    }
    case 5:
        a->batch = chance(2) ? between(-1, 200) : INT32_MIN;
        break; // the rooms hold the lengths of so many
    default:
        ((int32_t *)room(between(FIRST_LENGTHS, FIRST_OUTPUT - 1)))[below(LENGTHS)] = odd_int();
    }
}

// ---- what the call may touch

// The index of a tensor's last element; -1 if it is empty, and a huge number where it would overflow. Strides were
// checked: none is negative.
static double last_of(double batches, double heads, double rows, double inner, int64_t batch, int64_t head,
                      int64_t row) {
    if (batches < 1 || heads < 1 || rows < 1 || inner < 1) return -1;
    return (batches - 1) * (double)batch + (heads - 1) * (double)head + (rows - 1) * (double)row + inner - 1;
}

// False where inputs reach beyond their rooms or lie elsewhere: they may hold any numbers, so results are not compared.
static int comparable;

static int fits(const void *pointer, double last, double bits) {
    if (last < 0) return 1;
    const uint8_t *const begin = pointer, *const all = (const uint8_t *)&memory;
    if (begin < all || begin >= all + sizeof memory) return 0;
    const size_t offset = (size_t)(begin - all);
    const double end = (last + 1) * bits / 8 + 8;
    comparable &= offset % ROOM == BEFORE && BEFORE + end < ROOM;
    return (double)offset + end < (double)sizeof memory;
}

// Whether everything that a successful call may read or write lies in the rooms. The library is not used to find out.
static int all_fits(const traits_t *t, const args_t *a) {
    const int group = t->is_group_mode;
    const double batches = group ? 1 : a->batch, bits = storage_bits(t->data_type);
    const int32_t *const q = a->seqstart_q_ptr, *const k = a->seqstart_k_ptr;
    const double tokens_q = group ? q[a->batch] : a->seqlen_q, tokens_k = group ? k[a->batch] : a->seqlen_k;
    const double bias_bits = bits == 16 ? 16 : 32;
    double columns = group ? 0 : a->seqlen_k;
    comparable = 1;
    for (int32_t b = 0; b < a->batch; b++) columns = fmax(columns, fmha_fwd_sequence_of(t, a, b).seqlen_k);
    const double v_rows = t->is_v_rowmajor ? tokens_k : a->hdim_v, v_inner = t->is_v_rowmajor ? a->hdim_v : tokens_k;
#define LAST(x, heads, rows, inner)                                                                                    \
    last_of(batches, heads, rows, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x)
    int good = fits(a->q_ptr, LAST(q, a->nhead_q, tokens_q, a->hdim_q), bits) &&
               fits(a->k_ptr, LAST(k, a->nhead_k, tokens_k, a->hdim_q), bits) &&
               fits(a->v_ptr, LAST(v, a->nhead_k, v_rows, v_inner), bits) &&
               fits(a->o_ptr, LAST(o, a->nhead_q, tokens_q, a->hdim_v), 8 * output_bytes(t->data_type));
    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE)
        good &= fits(a->bias_ptr, LAST(bias, a->nhead_q, tokens_q, columns), bias_bits);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        good &= fits(a->bias_ptr, last_of(a->batch, 1, 1, a->nhead_q, a->stride_bias, 0, 0), 32);
    if (t->has_lse)
        good &= fits(a->lse_ptr, last_of(batches, a->nhead_q, 1, tokens_q, a->batch_stride_lse, a->nhead_stride_lse, 0),
                     32);
    if (t->has_dropout && a->s_randval) good &= fits(a->rand_val_ptr, LAST(randval, a->nhead_q, tokens_q, columns), 8);
    if (t->has_sink && a->sink_ptr) good &= fits(a->sink_ptr, a->nhead_q - 1, 32);
    const double far = ROOM / 4; // of scales, whose rooms hold more than sensible sizes need
    if (t->qscale_type == TESSERA_QSCALE_BLOCK) {
        good &= fits(a->q_descale_ptr,
                     last_of(batches, a->nhead_q, 1, fmin(tokens_q, far) + a->batch, a->batch_stride_q_descale,
                             a->nhead_stride_q_descale, 0),
                     32) &&
                fits(a->k_descale_ptr,
                     last_of(batches, a->nhead_k, 1, fmin(tokens_k, far) + a->batch, a->batch_stride_k_descale,
                             a->nhead_stride_k_descale, 0),
                     32) &&
                fits(a->v_descale_ptr,
                     last_of(batches, a->nhead_k, 1, fmin(tokens_k, far) + a->batch, a->batch_stride_v_descale,
                             a->nhead_stride_v_descale, 0),
                     32);
        for (int32_t b = 0; group && b < a->batch; b++)
            good &= ((const int32_t *)a->block_scale_seqstart_q_ptr)[b] < 4096 &&
                    ((const int32_t *)a->block_scale_seqstart_k_ptr)[b] < 4096;
    }
    if (t->qscale_type == TESSERA_QSCALE_MX) {
        good &= fits(a->q_descale_ptr, LAST(q_descale, a->nhead_q, tokens_q, 16), 8) &&
                fits(a->k_descale_ptr, LAST(k_descale, a->nhead_k, tokens_k, 16), 8) &&
                fits(a->v_descale_ptr, LAST(v_descale, a->nhead_k, a->hdim_v, tokens_k + a->batch), 8);
        for (int32_t b = 0; group && b < a->batch; b++) good &= ((const int32_t *)a->seqstart_v_scale_ptr)[b] < 4096;
    }
    return good;
#undef LAST
}

static void allow(const void *pointer, int64_t bytes) {
    if (bytes > 0) memset((uint8_t *)&writable + ((const uint8_t *)pointer - (uint8_t *)&memory), 1, (size_t)bytes);
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    memset(&writable, 0, sizeof writable);
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++) {
                const fmha_fwd_row row = {b, h, i};
                allow(fmha_fwd_o_row(t, a, row), (int64_t)a->hdim_v * output_bytes(t->data_type));
                if (t->has_lse) allow(fmha_fwd_lse_of(t, a, row), 4);
                if (t->has_dropout && a->s_randval && s.seqlen_k > 0) // without keys the strides are nonsense
                    allow((const uint8_t *)a->rand_val_ptr + (t->is_group_mode ? 0 : b * a->batch_stride_randval) +
                              h * a->nhead_stride_randval + (s.token_q + i) * a->stride_randval,
                          s.seqlen_k);
            }
    }
}

// ---- verdicts

static uint64_t seed = 1, iteration;
static struct { uint64_t calls, successes, launches, rows, refusals; } counts;

static void fail(const char *what) {
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    fprintf(stderr, "fuzz_fmha_fwd 0 %" PRIu64 " %" PRIu64 ": %s\n", seed, iteration, what);
    fprintf(stderr,
            "  dtype %d d %d/%d group %d vrow %d cap %d mask %d bias %d lse %d drop %d qscale %d skip %d sink %d\n",
            (int)t->data_type, t->hdim_q, t->hdim_v, t->is_group_mode, t->is_v_rowmajor, t->has_logits_soft_cap,
            (int)t->mask_type, (int)t->bias_type, t->has_lse, t->has_dropout, (int)t->qscale_type, t->skip_min_seqlen_q,
            t->has_sink);
    fprintf(stderr, "  b %d h %d/%d s %d/%d max %d window %d,%d sink %d scale %g cap %g p %g last error: %s\n",
            a->batch, a->nhead_q, a->nhead_k, a->seqlen_q, a->seqlen_k, a->max_seqlen_q, a->window_size_left,
            a->window_size_right, a->sink_size, (double)a->scale_s, (double)a->logits_soft_cap, (double)a->p_drop,
            tessera_last_error());
    abort();
}

static void expect_unchanged(int succeeded) {
    enum { BLOCK = 512 };
    const uint8_t *const now = (uint8_t *)&memory, *const before = (uint8_t *)&snapshot,
                         *const may = (uint8_t *)&writable;
    for (size_t block = 0; block < sizeof memory; block += BLOCK) {
        if (memcmp(now + block, before + block, BLOCK) == 0) continue;
        if (!succeeded) fail("a call that failed wrote something");
        for (size_t n = block; n < block + BLOCK; n++)
            if (now[n] != before[n] && !may[n]) fail("something beside the outputs was written");
    }
}

static void check_row(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const struct {
        const traits_t *traits;
        const args_t *args;
    } *const c = user;
    (void)index;
    const tessera_fmha_dtype dtype = c->traits->data_type;
    const fmha_fwd_tolerance tolerance = fmha_fwd_tolerance_of(dtype, "cpu");
    double error = 0;
    if (!(fmha_fwd_compare_row(fmha_fwd_output_element(dtype, TESSERA_E4M3FN), fmha_fwd_o_row(c->traits, c->args, *row),
                               want, c->args->hdim_v, &tolerance, &error) <= 1))
        fail("o differs from the reference");
    if (c->traits->has_lse &&
        !(fmha_fwd_compare_lse(*fmha_fwd_lse_of(c->traits, c->args, *row), want, &tolerance, &error) <= 1))
        fail("lse differs from the reference");
    counts.rows++;
}

// Compares every seventh row, starting with another one each time.
static void compare(const traits_t *t, const args_t *a) {
    static fmha_fwd_row rows[512];
    int64_t count = 0, all = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_fwd_sequence s = fmha_fwd_sequence_of(t, a, b);
        for (int32_t h = 0; h < a->nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++)
                if (all++ % 7 == (int64_t)(iteration % 7) && count < 512) rows[count++] = (fmha_fwd_row){b, h, i};
    }
    struct {
        const traits_t *traits;
        const args_t *args;
    } user = {t, a};
    if (fmha_fwd_reference(t, a, TESSERA_E4M3FN, 0, rows, count, 1, check_row, &user) != 0)
        fail("the reference ran out of memory");
}

// What the library sees of a struct of a given size: its fields as far as it reaches, and defaults beyond.
static void read_struct(void *whole, const void *given, size_t right) {
    size_t size;
    memcpy(&size, given, sizeof size);
    memcpy(whole, given, size < right ? size : right);
    memcpy(whole, &right, sizeof right);
}

// ---- one iteration

static tessera_status launch(const tessera_device *device, size_t bytes) {
    // Exactly as many bytes as were asked for, so that AddressSanitizer detects an access to the next one.
    uint8_t *const workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!workspace) fail("no memory for the workspace");
    memset(workspace + bytes, 0xc3, 64);
    const int spoil = chance(10);
    call.args.workspace_ptr = spoil && chance(2) ? (chance(2) ? NULL : workspace + 8) : workspace;
    call.args.workspace_size = spoil ? bytes - 1 : bytes;
    const tessera_status status = tessera_fmha_fwd(device, &call.traits, &call.args, NULL);
    if (spoil && status == TESSERA_SUCCESS) fail("a wrong workspace was accepted");
    for (int n = 0; n < 64; n++)
        if (workspace[bytes + (size_t)n] != 0xc3) fail("something behind the workspace was written");
    free(workspace);
    call.args.workspace_ptr = NULL;
    call.args.workspace_size = 0;
    return status;
}

static void iterate(void) {
    memset(&call, 0, sizeof call);
    choose_traits(&call.traits);
    choose_args(&call.traits, &call.args);
    const int sensible = !chance(3);
    for (int n = sensible ? 0 : between(1, 3); n > 0; n--) {
        if (chance(3))
            spoil_traits(&call.traits);
        else
            spoil_args(&call.args);
    }
    if (!sensible && chance(20)) call.traits.struct_size = odd_size(sizeof call.traits);
    if (!sensible && chance(20)) call.args.struct_size = odd_size(sizeof call.args);
    if (call.traits.data_type < TESSERA_FMHA_DTYPE_COUNT) fill_inputs(&call.traits);
    memcpy(&snapshot, &memory, sizeof memory);
    call_before = call;

    const tessera_device *const device = devices[below((uint32_t)device_count)];
    tessera_set_num_threads(between(1, 4));
    const tessera_status checked = tessera_fmha_fwd_check(&call.traits, &call.args);
    char text[512];
    size_t bytes = 0;
    const tessera_fmha_fwd_instance *instance = NULL;
    const tessera_status sized = tessera_fmha_fwd_workspace_size(device, &call.traits, &call.args, &bytes);
    const tessera_status selected =
        tessera_fmha_fwd_select(tessera_device_get_facts(device), &call.traits, &call.args, &instance);
    tessera_fmha_fwd_explain(tessera_device_get_facts(device), &call.traits, &call.args,
                             chance(2) ? TESSERA_EXPLAIN_REASONS : TESSERA_EXPLAIN_INSTANCES, text,
                             below(sizeof text + 1));
    if (selected == TESSERA_SUCCESS)
        tessera_fmha_fwd_ck_name(instance, &call.traits, &call.args, text, below(sizeof text + 1));
    counts.calls++;
    if (strcmp(tessera_status_string(checked), "unknown status") == 0) fail("check returned no status");
    if (checked != TESSERA_SUCCESS && *tessera_last_error() == 0) fail("a refusal without a word");
    counts.refusals += checked != TESSERA_SUCCESS;

    int succeeded = 0;
    if (checked == TESSERA_SUCCESS) {
        traits_t traits = TESSERA_FMHA_FWD_TRAITS_INIT;
        args_t args = tessera_fmha_fwd_args_init();
        read_struct(&traits, &call.traits, sizeof traits);
        read_struct(&args, &call.args, sizeof args);
        if (!traits.has_sink) args.sink_size = 0, args.sink_ptr = NULL; // which fmha_fwd_sees() does not know
        counts.successes++;
        if (sized != selected) fail("workspace_size and select do not agree");
        if (sized == TESSERA_SUCCESS && call.args.struct_size == sizeof call.args && bytes < 1 << 28 &&
            all_fits(&traits, &args)) {
            const tessera_status status = launch(device, bytes);
            succeeded = status == TESSERA_SUCCESS;
            if (!succeeded && status != TESSERA_ERROR_WORKSPACE) fail("check said success, the call did not");
            counts.launches += (uint64_t)succeeded;
            if (succeeded) allow_outputs(&traits, &args);
            if (succeeded && comparable) compare(&traits, &args);
        }
    } else if (sensible) {
        fail("a sensible call was refused");
    }
    expect_unchanged(succeeded);
    if (memcmp(&call, &call_before, sizeof call) != 0) fail("traits or args were written");
    memcpy(&memory, &snapshot, sizeof memory);
}

static void start(void) {
    static const char *const names[] = {
        "cpu",           "cpu:portable",       "cpu:x86-64-v2",     "cpu:x86-64-v3",
        "cpu:x86-64-v4", "cpu:x86-64-v4-bf16", "cpu:x86-64-v4-amx", "cpu:x86-64-v4-fp16",
        "cpu:armv8-a"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        device_count += tessera_device_open(names[n], &devices[device_count]) == TESSERA_SUCCESS;
}

#ifdef TESSERA_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!device_count) start();
    choices.state = 88172645463325252u;
    choices.bytes = bytes;
    choices.size = size;
    iterate();
    return 0;
}
#else
static void iterate_number(uint64_t number) {
    iteration = number;
    choices.state = (seed * UINT64_C(0x9E3779B97F4A7C15) ^ (number + 1) * UINT64_C(0xD1342543DE82EF95)) | 1;
    for (int n = 0; n < 8; n++) below(2);
    iterate();
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 20;
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    start();
    if (argc > 3) return iterate_number(strtoull(argv[3], NULL, 10)), 0;
    const time_t end = time(NULL) + (time_t)seconds;
    for (uint64_t number = 0; time(NULL) < end; number++) iterate_number(number);
    printf("seed %" PRIu64 ": %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " ran, %" PRIu64 " rows compared\n",
           seed, counts.calls, counts.refusals, counts.launches, counts.rows);
    return counts.launches && counts.refusals && counts.rows ? 0 : 1;
}
#endif
