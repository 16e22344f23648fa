// SPDX-License-Identifier: MIT
#include "paged_attention_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wide.h"

typedef tessera_paged_attention_traits traits_t;
typedef tessera_paged_attention_args args_t;

// ---- queries

static tessera_type type_of(const traits_t *t) { return fmha_fwd_input_element(t->data_type, TESSERA_FP8_NONE); }

static int64_t first_token(const traits_t *t, const args_t *a, int32_t b) {
    return t->is_group_mode ? ((const int32_t *)a->seqstart_q_ptr)[b] : 0;
}

int32_t paged_attention_queries(const traits_t *t, const args_t *a, int32_t b) {
    if (!t->is_group_mode) return a->max_seqlen_q;
    const int64_t count = first_token(t, a, b + 1) - first_token(t, a, b);
    return count <= a->max_seqlen_q ? (int32_t)count : 0;
}

static int64_t place(const traits_t *t, const args_t *a, const fmha_fwd_row *row, int64_t batch, int64_t head,
                     int64_t stride) {
    return (t->is_group_mode ? 0 : row->batch * batch) + row->head * head +
           (first_token(t, a, row->batch) + row->query) * stride;
}

void *paged_attention_o_row(const traits_t *t, const args_t *a, const fmha_fwd_row *row) {
    return (char *)a->o_ptr +
           place(t, a, row, a->batch_stride_o, a->nhead_stride_o, a->stride_o) * element_bits(type_of(t)) / 8;
}

float *paged_attention_lse_of(const traits_t *t, const args_t *a, const fmha_fwd_row *row) {
    return (float *)a->lse_ptr + place(t, a, row, a->batch_stride_lse, a->nhead_stride_lse, 1);
}

// ---- the cache

// One of its two tensors.
typedef struct side {
    const void *base, *scale;
    int64_t page, head, row, scale_page, scale_head, scale_row;
    int32_t hdim, is_v;
} side;

static side side_of(const args_t *a, int is_v) {
    if (is_v)
        return (side){a->v_ptr,
                      a->v_scale_ptr,
                      a->batch_stride_v,
                      a->nhead_stride_v,
                      a->stride_v,
                      a->batch_stride_v_scale,
                      a->nhead_stride_v_scale,
                      a->stride_v_scale,
                      a->hdim_v,
                      1};
    return (side){a->k_ptr,
                  a->k_scale_ptr,
                  a->batch_stride_k,
                  a->nhead_stride_k,
                  a->stride_k,
                  a->batch_stride_k_scale,
                  a->nhead_stride_k_scale,
                  a->stride_k_scale,
                  a->hdim_q,
                  0};
}

// Where element d of row r of a head's page lies, behind the page's first one.
static int64_t within_page(const traits_t *t, const args_t *a, const side *s, int64_t x, int64_t r, int64_t d) {
    const int64_t size = a->page_block_size;
    if (t->kv_memory_layout == TESSERA_KV_LINEAR) return r * s->row + d;
    if (!s->is_v) return (d / x * size + r) * x + d % x;
    if (t->kv_memory_layout == TESSERA_KV_VLLM) return d * size + r;
    return (r / x * s->hdim + d) * x + r % x;
}

// The norm of a row of TURBO4: in a tensor of norms, or behind the row's numbers.
static double norm_of(const side *s, int64_t first, int64_t scale_at) {
    uint16_t half; // which no alignment is promised for
    if (s->scale) return element_load(TESSERA_TYPE_FP16, s->scale, scale_at);
    memcpy(&half, (const char *)s->base + first + s->hdim / 2, sizeof half);
    return element_load(TESSERA_TYPE_FP16, &half, 0);
}

static void decode_turbo4(const traits_t *t, const args_t *a, const side *s, int64_t first, double *out) {
    const uint8_t *const row = (const uint8_t *)s->base + first;
    for (int32_t d = 0; d < s->hdim; d++) {
        unsigned char rounded[sizeof(double)];
        const float centroid = ((const float *)a->centroids_ptr)[row[d / 2] >> d % 2 * 4 & 15];
        element_store(type_of(t), rounded, 0, (double)centroid);
        out[d] = element_load(type_of(t), rounded, 0);
    }
}

// Key j's row, for one head, as elements or centroids. Returns its scale, which the caller applies where the header
// says.
static double decode(const traits_t *t, const args_t *a, const side *s, int32_t b, int32_t g, int64_t j, double *out) {
    static const tessera_type types[TESSERA_KV_CACHE_DTYPE_COUNT] = {
        [TESSERA_KV_FP8_E4M3] = TESSERA_TYPE_E4M3,
        [TESSERA_KV_INT8] = TESSERA_TYPE_INT8,
    };
    const int plain = t->kv_cache_dtype == TESSERA_KV_AUTO;
    const tessera_type type = plain ? type_of(t) : types[t->kv_cache_dtype];
    const int32_t *const table = a->block_table_ptr;
    const int64_t page = table[b * a->batch_stride_block_table + j / a->page_block_size], r = j % a->page_block_size;
    const int64_t first = page * s->page + g * s->head;
    const int64_t scale_at = page * s->scale_page + g * s->scale_head + r * s->scale_row;
    if (t->kv_cache_dtype == TESSERA_KV_TURBO4) {
        decode_turbo4(t, a, s, first + r * s->row, out);
        return norm_of(s, first + r * s->row, scale_at);
    }
    const int64_t x = 128 / element_bits(type);
    for (int32_t d = 0; d < s->hdim; d++) out[d] = element_load(type, s->base, first + within_page(t, a, s, x, r, d));
    return s->scale ? (double)((const float *)s->scale)[scale_at] : 1;
}

// ---- rows

enum { KEYS = 32 }; // keys whose scores are computed at once

typedef struct bench {
    double *k, *v;      // of one sequence and head: [blocks][hdim_q][KEYS], [seqlen_k][hdim_v]
    double *k_size;     // [seqlen_k]: lengths
    double *k_scale;    // [seqlen_k]
    double *p;          // [blocks][KEYS]
    double *o, *o_size; // [hdim_v]
    double *q;          // [hdim_q]
    double *row;        // a decoded row of k
    double value_size;  // of all of v
} bench;

static double length_of(const double *x, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static int sees(const args_t *a, int64_t position, int64_t j) {
    return j <= position && (a->sliding_window == 0 || j > position - a->sliding_window);
}

// s[j] = sum_d q[d] k[d][j] for the keys of a block.
WIDE static void dots(const double *q, const double *k, int32_t hdim, double *s) {
    double sums[KEYS] = {0};
    for (int32_t d = 0; d < hdim; d++)
        for (int j = 0; j < KEYS; j++) sums[j] += q[d] * k[(int64_t)d * KEYS + j];
    memcpy(s, sums, sizeof sums);
}

// o += p v, and the same with magnitudes
WIDE static void add_value(double p, const double *v, int32_t hdim, double *restrict o, double *restrict o_size) {
    for (int32_t d = 0; d < hdim; d++) o[d] += p * v[d];
    for (int32_t d = 0; d < hdim; d++) o_size[d] += p * fabs(v[d]);
}

// What becomes of the product of key j and the query at a position; alibi as in tessera/fmha_fwd.h under the mask that
// is used.
static double score(const traits_t *t, const args_t *a, int32_t head, int64_t position, int64_t j, double product) {
    double s = product * (double)a->scale_s;
    if (t->has_logits_soft_cap) s = (double)a->logits_soft_cap * tanh(s / (double)a->logits_soft_cap);
    if (t->bias_type == TESSERA_BIAS_ALIBI) {
        const double slope = ((const float *)a->alibi_slopes_ptr)[head];
        s += slope * (double)(a->sliding_window ? j - position : j);
    }
    return s;
}

static fmha_fwd_reference_row attend(const traits_t *t, const args_t *a, bench *x, const fmha_fwd_row *row, int64_t n) {
    const int64_t keys = ((const int32_t *)a->seqlen_k_ptr)[row->batch], position = keys - n + row->query;
    const int64_t from = place(t, a, row, a->batch_stride_q, a->nhead_stride_q, a->stride_q);
    double greatest = t->has_sink && a->sink_ptr ? (double)((const float *)a->sink_ptr)[row->head] : -INFINITY;
    double longest = 0, next = -INFINITY, sum = 0;
    const double sink = greatest;
    for (int32_t d = 0; d < a->hdim_q; d++) x->q[d] = element_load(type_of(t), a->q_ptr, from + d);
    for (int64_t j = 0; j < keys; j++) {
        if (j % KEYS == 0) dots(x->q, x->k + j * a->hdim_q, a->hdim_q, x->p + j);
        x->p[j] = sees(a, position, j) ? score(t, a, row->head, position, j, x->p[j] * x->k_scale[j]) : -INFINITY;
        next = fmax(next, fmin(x->p[j], greatest));
        greatest = fmax(greatest, x->p[j]);
        // Of a key that is not finite no rounding changes the score.
        if (sees(a, position, j) && isfinite(x->k_size[j])) longest = fmax(longest, x->k_size[j]);
    }
    for (int64_t j = 0; j < keys; j++) sum += x->p[j] = x->p[j] == -INFINITY ? 0 : exp(x->p[j] - greatest);
    if (sink > -INFINITY) sum += exp(sink - greatest);
    for (int32_t d = 0; d < a->hdim_v; d++) x->o[d] = x->o_size[d] = 0;
    for (int64_t j = 0; j < keys && sum != 0; j++) // a sum of NaN is not 0
        if (sees(a, position, j)) add_value(x->p[j] / sum, x->v + j * a->hdim_v, a->hdim_v, x->o, x->o_size);
    return (fmha_fwd_reference_row){
        .o = x->o,
        .o_size = x->o_size,
        .lse = sum != 0 ? greatest + log(sum) : -INFINITY,
        .seqlen_k = (int32_t)keys,
        .score_size = fabs((double)a->scale_s) * length_of(x->q, a->hdim_q) * longest +
                      (greatest > -INFINITY ? fabs(greatest) : 0),
        .value_size = sum != 0 ? x->value_size : 0,
        .score_gap = greatest - next,
    };
}

static void decode_head(const traits_t *t, const args_t *a, bench *x, int32_t b, int32_t g) {
    const side k = side_of(a, 0), v = side_of(a, 1);
    x->value_size = 0;
    for (int64_t j = 0; j < ((const int32_t *)a->seqlen_k_ptr)[b]; j++) {
        double *const value = x->v + j * a->hdim_v;
        x->k_scale[j] = decode(t, a, &k, b, g, j, x->row);
        const double v_scale = decode(t, a, &v, b, g, j, value);
        for (int32_t d = 0; d < a->hdim_v; d++) value[d] *= v_scale;
        x->k_size[j] = fabs(x->k_scale[j]) * length_of(x->row, a->hdim_q);
        for (int32_t d = 0; d < a->hdim_q; d++) x->k[(j / KEYS * a->hdim_q + d) * KEYS + j % KEYS] = x->row[d];
        for (int32_t d = 0; d < a->hdim_v; d++) x->value_size = fmax(x->value_size, fabs(value[d]));
    }
}

static int64_t visit_head(const traits_t *t, const args_t *a, bench *x, int32_t b, int32_t g, int64_t number,
                          fmha_fwd_visit visit, void *user) {
    const int32_t group = a->nhead_q / a->nhead_k, queries = paged_attention_queries(t, a, b);
    if (queries == 0) return number;
    decode_head(t, a, x, b, g);
    for (int32_t h = g * group; h < (g + 1) * group; h++)
        for (int32_t i = 0; i < queries; i++) {
            const fmha_fwd_row row = {b, h, i};
            const fmha_fwd_reference_row answer = attend(t, a, x, &row, queries);
            visit(user, number++, &row, &answer);
        }
    return number;
}

int64_t paged_attention_reference(const traits_t *t, const args_t *a, fmha_fwd_visit visit, void *user) {
    const size_t hdim_q = (size_t)a->hdim_q, hdim_v = (size_t)a->hdim_v;
    const size_t keys = ((size_t)a->max_seqlen_k / KEYS + 1) * KEYS; // rows of k behind the last one are computed with
    double *const all = calloc(keys * (hdim_q + hdim_v + 3) + 2 * hdim_v + 2 * hdim_q, sizeof *all);
    if (!all) return -1;
    bench x = {.k = all, .v = all + keys * hdim_q};
    x.k_size = x.v + keys * hdim_v;
    x.k_scale = x.k_size + keys;
    x.p = x.k_scale + keys;
    x.o = x.p + keys;
    x.o_size = x.o + hdim_v;
    x.q = x.o_size + hdim_v;
    x.row = x.q + hdim_q;
    int64_t number = 0;
    for (int32_t b = 0; b < a->batch; b++)
        for (int32_t g = 0; g < a->nhead_k; g++) number = visit_head(t, a, &x, b, g, number, visit, user);
    free(all);
    return number;
}
