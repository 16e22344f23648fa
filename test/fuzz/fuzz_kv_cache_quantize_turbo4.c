// SPDX-License-Identifier: MIT
// Calls the public functions of kv_cache_quantize_turbo4 with random traits and args, sensible ones and nonsense: slots
// of any distance, norms in them and apart, tokens that are left out. None may crash; each returns a status, and writes
// only the outputs of a call that succeeds, which match the reference.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tessera/kernel/kv_cache_quantize_turbo4.h"
#include "tessera/turbo4.h"
#include "turbo4_reference.h"

const char fuzz_name[] = "fuzz_kv_cache_quantize_turbo4";

typedef tessera_kv_cache_quantize_turbo4_args args_t;
typedef tessera_kv_cache_quantize_turbo4_traits traits_t;

// The rooms, and the pointers of args to them.
enum { KNEW, VNEW, K, V, K_NORM, V_NORM, CENTROIDS, SLOT_MAPPING, POINTERS };
static const size_t pointers[POINTERS] = {
    [KNEW] = offsetof(args_t, knew_ptr),
    [VNEW] = offsetof(args_t, vnew_ptr),
    [K] = offsetof(args_t, k_ptr),
    [V] = offsetof(args_t, v_ptr),
    [K_NORM] = offsetof(args_t, k_norm_ptr),
    [V_NORM] = offsetof(args_t, v_norm_ptr),
    [CENTROIDS] = offsetof(args_t, centroids_ptr),
    [SLOT_MAPPING] = offsetof(args_t, slot_mapping_ptr),
};

FUZZ_CALL;

// ---- a sensible call

enum { MOST_TOKENS = 24 };

static int bytes_of(const traits_t *t) { return element_bits(turbo4_type(t->data_type)) / 8; }

static void choose_traits(traits_t *t) {
    *t = tessera_kv_cache_quantize_turbo4_traits_init();
    t->data_type = (tessera_fmha_dtype)below(TESSERA_FMHA_BF16 + 1);
    t->has_rotation = (int32_t)below(2);
    const int is_any = !t->has_rotation && !on.is_gpu, most = chance(8) ? 256 : 64;
    t->hdim_q = is_any ? 2 * between(1, most) : 64 << below(3);
    t->hdim_v = is_any ? 2 * between(1, most) : on.is_gpu ? t->hdim_q : 64 << below(3);
}

// Slots of a page and norms, which lie in any order of rows and heads, with any gaps.
static void choose_slots(const args_t *a, int64_t bytes, int64_t *page, int64_t *head, int64_t *row) {
    const int rows_first = chance(2);
    bytes += chance(2) ? between(0, 9) : 0;
    *row = rows_first ? bytes * a->nhead_k : bytes;
    *head = rows_first ? bytes : bytes * a->page_block_size;
    *page = bytes * a->nhead_k * a->page_block_size + (chance(3) ? between(0, 20) : 0);
}

static int64_t slots_of(const args_t *a) { return (int64_t)a->num_total_pages * a->page_block_size; }

// Each token has a slot of its own, in no order, or is left out.
static void choose_mapping(args_t *a) {
    int64_t *const mapping = room(SLOT_MAPPING);
    const int32_t step = a->num_total_pages * a->page_block_size / a->tokens, first = between(0, step - 1);
    for (int32_t t = 0; t < a->tokens; t++)
        mapping[t] = chance(5) ? (chance(2) ? -1 : INT64_MIN + between(0, 9)) : first + t * 7 % a->tokens * step;
}

static void choose_args(const traits_t *t, args_t *a) {
    int64_t unused;
    *a = tessera_kv_cache_quantize_turbo4_args_init();
    const int32_t primes[] = {0, 1, 2, 3, 5, 11, 13, 17, 19, 23}; // so that 7 t % tokens are all of them
    a->tokens = primes[below(10)], a->nhead_k = between(1, 3);
    a->page_block_size = between(1, 20);
    a->num_total_pages = a->tokens / a->page_block_size + 1 + between(0, 2);
    choose_strides(a->nhead_k, a->tokens, t->hdim_q, &unused, &a->nhead_stride_knew, &a->stride_knew);
    choose_strides(a->nhead_k, a->tokens, t->hdim_v, &unused, &a->nhead_stride_vnew, &a->stride_vnew);
    const int are_apart = (int)below(2), tail = are_apart ? 0 : 2;
    choose_slots(a, t->hdim_q / 2 + tail, &a->batch_stride_k, &a->nhead_stride_k, &a->stride_k);
    choose_slots(a, t->hdim_v / 2 + tail, &a->batch_stride_v, &a->nhead_stride_v, &a->stride_v);
    choose_slots(a, 1, &a->batch_stride_k_norm, &a->nhead_stride_k_norm, &a->stride_k_norm);
    choose_slots(a, 1, &a->batch_stride_v_norm, &a->nhead_stride_v_norm, &a->stride_v_norm);
    a->knew_ptr = odd_room(KNEW, bytes_of(t)), a->vnew_ptr = odd_room(VNEW, bytes_of(t));
    a->k_ptr = odd_room(K, 1), a->v_ptr = odd_room(V, 1);
    if (are_apart) a->k_norm_ptr = odd_room(K_NORM, 2), a->v_norm_ptr = odd_room(V_NORM, 2);
    a->centroids_ptr = room(CENTROIDS), a->slot_mapping_ptr = room(SLOT_MAPPING);
    if (a->tokens > 0) choose_mapping(a);
    if (!on.is_gpu || a->tokens == 0 || !chance(4)) return;
    ((int64_t *)room(SLOT_MAPPING))[below((uint32_t)a->tokens)] = slots_of(a) + (chance(2) ? 0 : INT64_MAX / 4);
    contents_are_wrong = 1;
}

// Centroids of the usual codebook, or any that ascend.
static void fill_inputs(const traits_t *t, const args_t *a) {
    static const enum pattern patterns[] = {FP32, FP16, BF16};
    float *const centroids = room(CENTROIDS);
    fill_room(KNEW, patterns[t->data_type]), fill_room(VNEW, patterns[t->data_type]);
    if (chance(2)) {
        if (tessera_turbo4_codebook(t->hdim_q, centroids) != TESSERA_SUCCESS) fail("there is no codebook");
    } else {
        centroids[0] = (float)uniform(-1, 0);
        for (int n = 1; n < 16; n++) centroids[n] = centroids[n - 1] + (float)uniform(0.001, 0.2);
    }
    (void)a;
}

// ---- nonsense

static void spoil_traits(traits_t *t) {
    static const struct run run = RUN(INTS, traits_t, hdim_q, has_rotation);
    spoil_run(t, &run);
}

static void spoil_args(args_t *a) {
    static const struct run runs[] = {RUN(INTS, args_t, tokens, page_block_size),
                                      RUN(STRIDES, args_t, stride_knew, batch_stride_v_norm)};
    switch (below(5)) {
    case 0:
        *pointer_at(a, pointers[below(POINTERS)]) = odd_pointer();
        break;
    case 1:
        ((int64_t *)room(SLOT_MAPPING))[below(MOST_TOKENS)] = odd_stride();
        break;
    case 2:
        ((float *)room(CENTROIDS))[below(16)] = odd_float();
        break;
    default:
        spoil_run(a, &runs[below(2)]);
    }
}

static const struct wrong wrongs[] = {
    WRONG(0, args_t, tokens, -1),          WRONG(0, args_t, nhead_k, 0),
    WRONG(0, args_t, num_total_pages, -1), WRONG(0, args_t, page_block_size, 0),
    WRONG(1, traits_t, hdim_q, 63),        WRONG(1, traits_t, hdim_v, 514),
    WRONG(1, traits_t, hdim_v, 0),         WRONG(1, traits_t, data_type, TESSERA_FMHA_FP8),
    WRONG(1, traits_t, data_type, -1),     WRONG(1, traits_t, has_rotation, 2),
};

// ---- what the call may touch

// Whether the arrays that the check reads lie in the rooms where it can come to read them.
static int arrays_fit(const traits_t *t, const args_t *a) {
    int unused;
    (void)t;
    return (!a->centroids_ptr || fits(a->centroids_ptr, 15, 32, &unused)) &&
           (!a->slot_mapping_ptr || fits(a->slot_mapping_ptr, a->tokens - 1.0, 64, &unused));
}

static int all_fits(const traits_t *t, const args_t *a, int *comparable) {
    const int bits = 8 * bytes_of(t);
    const double tail = a->k_norm_ptr ? 0 : 2, pages = a->num_total_pages, heads = a->nhead_k,
                 rows = a->page_block_size;
#define FITS(x, bits, inner)                                                                                           \
    fits(a->x##_ptr, last_of(pages, heads, rows, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x),      \
         bits, comparable)
    int good = fits(a->knew_ptr, last_of(1, heads, a->tokens, t->hdim_q, 0, a->nhead_stride_knew, a->stride_knew), bits,
                    comparable) &&
               fits(a->vnew_ptr, last_of(1, heads, a->tokens, t->hdim_v, 0, a->nhead_stride_vnew, a->stride_vnew), bits,
                    comparable) &&
               FITS(k, 8, t->hdim_q / 2 + tail) && FITS(v, 8, t->hdim_v / 2 + tail);
    if (a->k_norm_ptr) good = good && FITS(k_norm, 16, 1) && FITS(v_norm, 16, 1);
#undef FITS
    return good;
}

// ---- verdicts

void fuzz_describe(void) {
    const traits_t *const t = &call_before.traits;
    const args_t *const a = &call_before.args;
    fprintf(stderr, "  dtype %d d %d/%d rotation %d tokens %d heads %d pages %d of %d norms apart %d\n",
            (int)t->data_type, t->hdim_q, t->hdim_v, t->has_rotation, a->tokens, a->nhead_k, a->num_total_pages,
            a->page_block_size, a->k_norm_ptr != NULL);
}

// Keys or values.
struct half_of_cache {
    const void *from;
    uint8_t *slots;
    uint16_t *norms;
    int64_t token, token_head, page, head, row, norm_page, norm_head, norm_row;
    int32_t hdim;
};

static struct half_of_cache side_of(const traits_t *t, const args_t *a, int is_v) {
    if (is_v)
        return (struct half_of_cache){
            a->vnew_ptr,       a->v_ptr,          a->v_norm_ptr, a->stride_vnew,         a->nhead_stride_vnew,
            a->batch_stride_v, a->nhead_stride_v, a->stride_v,   a->batch_stride_v_norm, a->nhead_stride_v_norm,
            a->stride_v_norm,  t->hdim_v};
    return (struct half_of_cache){
        a->knew_ptr,       a->k_ptr,          a->k_norm_ptr, a->stride_knew,         a->nhead_stride_knew,
        a->batch_stride_k, a->nhead_stride_k, a->stride_k,   a->batch_stride_k_norm, a->nhead_stride_k_norm,
        a->stride_k_norm,  t->hdim_q};
}

// A slot's first byte and its norm's.
static uint8_t *slot_of(const args_t *a, const struct half_of_cache *s, int64_t slot, int32_t g, uint8_t **norm) {
    const int64_t page = slot / a->page_block_size, row = slot % a->page_block_size;
    uint8_t *const numbers = s->slots + page * s->page + g * s->head + row * s->row;
    *norm = s->norms ? (uint8_t *)(s->norms + page * s->norm_page + g * s->norm_head + row * s->norm_row)
                     : numbers + s->hdim / 2;
    return numbers;
}

static void allow_outputs(const traits_t *t, const args_t *a) {
    for (int is_v = 0; is_v < 2; is_v++) {
        const struct half_of_cache s = side_of(t, a, is_v);
        for (int32_t token = 0; token < a->tokens; token++)
            for (int32_t g = 0; g < a->nhead_k; g++) {
                uint8_t *norm;
                const int64_t slot = ((const int64_t *)a->slot_mapping_ptr)[token];
                if (slot < 0 || slot >= slots_of(a)) continue;
                allow(slot_of(a, &s, slot, g, &norm), s.hdim / 2);
                allow(norm, 2);
            }
    }
}

static void check_row(const traits_t *t, const args_t *a, const struct half_of_cache *s, int32_t token, int32_t g) {
    double row[TURBO4_MOST_HDIM], rotated[TURBO4_MOST_HDIM];
    uint8_t *norm;
    uint16_t half;
    const uint8_t *const numbers = slot_of(a, s, ((const int64_t *)a->slot_mapping_ptr)[token], g, &norm);
    memcpy(&half, norm, sizeof half);
    for (int32_t d = 0; d < s->hdim; d++)
        row[d] = element_load(turbo4_type(t->data_type), s->from, token * s->token + g * s->token_head + d);
    if (t->has_rotation) hadamard_rotate_row(row, s->hdim, rotated);
    const char *const wrong = turbo4_wrong(t->has_rotation ? rotated : row, s->hdim, a->centroids_ptr, numbers, half);
    if (wrong) fail(wrong);
    counts.rows++;
}

static void compare(const traits_t *t, const args_t *a) {
    for (int is_v = 0; is_v < 2; is_v++) {
        const struct half_of_cache s = side_of(t, a, is_v);
        for (int32_t token = between(0, 2); token < a->tokens; token += 3) {
            const int64_t slot = ((const int64_t *)a->slot_mapping_ptr)[token];
            for (int32_t g = 0; g < a->nhead_k && slot >= 0 && slot < slots_of(a); g++) check_row(t, a, &s, token, g);
        }
    }
}

FUZZ_PROGRAM(kv_cache_quantize_turbo4)
