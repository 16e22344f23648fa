// SPDX-License-Identifier: MIT
// The fp64 reference. Rows are computed in chunks that share a sequence and a key head, so that each block of keys is
// decoded once per chunk. All scores of a chunk are kept, so softmax is the textbook one and not the online one.
#include "fmha_fwd_reference.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "tensor_cores.h"
#include "wide.h"

enum {
    KEYS = TENSOR_CORES_KEYS, // keys decoded at once
    COLUMNS = 32,             // columns of o summed at once
    CHUNK = 64,               // most rows of a chunk
    CHUNK_SCORES = 4 << 20    // most scores of a chunk, unless one row has more
};

// --- element types ---------------------------------------------------------------------------------------------------

static tessera_type fp8_element(tessera_fp8_format fp8) {
    return fp8 == TESSERA_E4M3FNUZ ? TESSERA_TYPE_E4M3FNUZ : TESSERA_TYPE_E4M3;
}

tessera_type fmha_fwd_input_element(tessera_fmha_dtype dtype, tessera_fp8_format fp8) {
    switch (dtype) {
    case TESSERA_FMHA_FP32:
        return TESSERA_TYPE_FP32;
    case TESSERA_FMHA_FP16:
        return TESSERA_TYPE_FP16;
    case TESSERA_FMHA_BF16:
        return TESSERA_TYPE_BF16;
    case TESSERA_FMHA_MXFP4:
        return TESSERA_TYPE_E2M1;
    case TESSERA_FMHA_MXFP8:
        return TESSERA_TYPE_E4M3;
    default:
        return fp8_element(fp8);
    }
}

tessera_type fmha_fwd_output_element(tessera_fmha_dtype dtype, tessera_fp8_format fp8) {
    switch (dtype) {
    case TESSERA_FMHA_FP16:
        return TESSERA_TYPE_FP16;
    case TESSERA_FMHA_BF16:
    case TESSERA_FMHA_FP8BF16:
        return TESSERA_TYPE_BF16;
    case TESSERA_FMHA_FP8:
        return fp8_element(fp8);
    default:
        return TESSERA_TYPE_FP32;
    }
}

tessera_type fmha_fwd_bias_element(tessera_fmha_dtype dtype) {
    return dtype == TESSERA_FMHA_FP16   ? TESSERA_TYPE_FP16
           : dtype == TESSERA_FMHA_BF16 ? TESSERA_TYPE_BF16
                                        : TESSERA_TYPE_FP32;
}

// --- Philox ----------------------------------------------------------------------------------------------------------

void fmha_fwd_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t x = counter[0], y = counter[1], z = counter[2], w = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)0xD2511F53 * x, second = (uint64_t)0xCD9E8D57 * z;
        x = (uint32_t)(second >> 32) ^ y ^ k0;
        y = (uint32_t)second;
        z = (uint32_t)(first >> 32) ^ w ^ k1;
        w = (uint32_t)first;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = x, out[1] = y, out[2] = z, out[3] = w;
}

static void dropout_words(uint64_t seed, uint64_t offset, uint32_t head, uint32_t i, uint32_t c, uint32_t out[4]) {
    uint32_t counter[4] = {(uint32_t)offset, (uint32_t)(offset >> 32), i + (c << 24), (c >> 8) + (head << 12)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    fmha_fwd_philox(counter, key, out);
}

uint8_t fmha_fwd_dropout_byte(uint64_t seed, uint64_t offset, uint32_t head, uint32_t i, uint32_t j) {
    uint32_t words[4];
    dropout_words(seed, offset, head, i, j / 32 * 2 + j / 4 % 2, words);
    return (uint8_t)(words[j % 32 / 8] >> (j % 4 * 8));
}

// Computes the bytes of keys [0, count) of one row: each counter gives the bytes of 16 keys of a block of 32.
static void dropout_row(uint64_t seed, uint64_t offset, uint32_t head, uint32_t i, int32_t count, uint8_t *bytes) {
    for (int32_t c = 0; c * 16 < count + 16; c++) {
        uint32_t words[4];
        dropout_words(seed, offset, head, i, (uint32_t)c, words);
        for (int n = 0; n < 16; n++) {
            int32_t j = c / 2 * 32 + c % 2 * 4 + n / 4 * 8 + n % 4;
            if (j < count) bytes[j] = (uint8_t)(words[n / 4] >> (n % 4 * 8));
        }
    }
}

// --- lengths and masks -----------------------------------------------------------------------------------------------

static int32_t length_of(const int32_t *starts, const int32_t *lengths, const int32_t *cumulative, int32_t room,
                         int32_t b) {
    if (starts && lengths) return lengths[b];
    if (cumulative) return cumulative[b + 1] - cumulative[b];
    return starts ? starts[b + 1] - starts[b] : room;
}

fmha_fwd_sequence fmha_fwd_sequence_of(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                       int32_t batch) {
    const int32_t *starts_q = traits->is_group_mode ? args->seqstart_q_ptr : NULL;
    const int32_t *starts_k = traits->is_group_mode ? args->seqstart_k_ptr : NULL;
    fmha_fwd_sequence s = {
        .seqlen_q = length_of(starts_q, args->seqlen_q_ptr, args->cu_seqlen_q_ptr, args->seqlen_q, batch),
        .seqlen_k = length_of(starts_k, args->seqlen_k_ptr, args->cu_seqlen_k_ptr, args->seqlen_k, batch),
        .token_q = starts_q ? starts_q[batch] : 0,
        .token_k = starts_k ? starts_k[batch] : 0,
    };
    s.skipped = traits->skip_min_seqlen_q && s.seqlen_q <= args->min_seqlen_q;
    return s;
}

// The keys that a query sees: [begin, end) and [0, sink).
typedef struct sight {
    int64_t begin, end, sink;
} sight;

static int64_t clamp(int64_t value, int64_t least, int64_t greatest) {
    return value < least ? least : value > greatest ? greatest : value;
}

static sight sight_of(const tessera_fmha_fwd_args *args, int32_t sq, int32_t sk, int32_t i) {
    sight all = {0, sk, 0};
    if (args->mask_type == TESSERA_MASK_NONE) return all;
    int64_t far = INT64_C(1) << 40, left = args->window_size_left, right = args->window_size_right;
    int64_t y = left, x = right;
    if (args->mask_type != TESSERA_MASK_GENERIC) {
        int64_t shift = args->mask_type == TESSERA_MASK_BOTTOM_RIGHT ? (int64_t)sk - sq : 0;
        y = 1 + left - shift;
        x = 1 + right + shift;
    }
    if (left < 0) y = far;
    if (right < 0) x = far;
    sight s = {clamp(i - y + 1, 0, sk), clamp(i + x, 0, sk), 0};
    if (args->sink_size > 0 && y < sq && i < sk) s.sink = clamp(i + x, 0, args->sink_size < sk ? args->sink_size : sk);
    return s;
}

static int sees(sight s, int32_t j) { return (j >= s.begin && j < s.end) || j < s.sink; }

int fmha_fwd_sees(const tessera_fmha_fwd_args *args, int32_t seqlen_q, int32_t seqlen_k, int32_t i, int32_t j) {
    return sees(sight_of(args, seqlen_q, seqlen_k, i), j);
}

int32_t fmha_fwd_keys_seen(const tessera_fmha_fwd_args *args, int32_t seqlen_q, int32_t seqlen_k, int32_t i) {
    sight s = sight_of(args, seqlen_q, seqlen_k, i);
    if (s.end <= s.begin) return (int32_t)s.sink;
    if (s.sink <= s.begin) return (int32_t)(s.end - s.begin + s.sink);
    return (int32_t)(s.end > s.sink ? s.end : s.sink);
}

double fmha_fwd_alibi(const tessera_fmha_fwd_args *args, double slope, int64_t sq, int64_t sk, int64_t i, int64_t j) {
    if (args->mask_type != TESSERA_MASK_NONE) {
        if (args->window_size_left < 0 && args->window_size_right == 0) return slope * (double)j;
        if (args->mask_type != TESSERA_MASK_BOTTOM_RIGHT) return -slope * fabs((double)(i - j));
    }
    int64_t more_k = sk > sq ? sk - sq : 0, more_q = sq > sk ? sq - sk : 0;
    return -slope * fabs((double)(i + more_k - j - more_q));
}

// --- addresses -------------------------------------------------------------------------------------------------------

// Index of row `token` of head h, for tensors whose batch stride counts in batch mode only.
static int64_t row_index(const tessera_fmha_fwd_traits *traits, int32_t b, int64_t batch_stride, int64_t h,
                         int64_t nhead_stride, int64_t token, int64_t stride) {
    // Unsigned: strides of tensors that the call does not have may be anything.
    uint64_t batch = traits->is_group_mode ? 0 : (uint64_t)b * (uint64_t)batch_stride;
    return (int64_t)(batch + (uint64_t)h * (uint64_t)nhead_stride + (uint64_t)token * (uint64_t)stride);
}

const void *fmha_fwd_o_row(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args, fmha_fwd_row row) {
    int64_t token = fmha_fwd_sequence_of(traits, args, row.batch).token_q + row.query;
    int64_t index =
        row_index(traits, row.batch, args->batch_stride_o, row.head, args->nhead_stride_o, token, args->stride_o);
    return (const char *)args->o_ptr +
           index * (element_bits(fmha_fwd_output_element(traits->data_type, TESSERA_FP8_NONE)) / 8);
}

const float *fmha_fwd_lse_of(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                             fmha_fwd_row row) {
    int64_t token = fmha_fwd_sequence_of(traits, args, row.batch).token_q + row.query;
    return (const float *)args->lse_ptr +
           row_index(traits, row.batch, args->batch_stride_lse, row.head, args->nhead_stride_lse, token, 1);
}

// --- the computation -------------------------------------------------------------------------------------------------

typedef struct job {
    const tessera_fmha_fwd_traits *traits;
    const tessera_fmha_fwd_args *args;
    tessera_type input;
    int cuts; // whether tensor cores of NVIDIA may make the products, of which they cut bits off
    const fmha_fwd_row *rows;
    const int64_t *chunk_begin; // chunks + 1 row numbers
    int64_t chunks;
    int32_t longest_k;
    uint64_t drop_seed, drop_offset;
    fmha_fwd_visit visit;
    void *user;
    atomic_llong next;
    atomic_int failed;
} job;

// The memory of one thread: scores, visible keys and sums of a chunk, and one block of decoded keys or values.
typedef struct bench {
    double *q;                  // [CHUNK][hdim_q], descaled and times scale_s
    double *scores;             // [rows][longest_k]
    double *block;              // keys: [hdim_q][KEYS]; values: [KEYS][hdim_v rounded up to COLUMNS]
    double *o, *o_size;         // [CHUNK][hdim_v rounded up]
    uint8_t *visible, *randval; // [longest_k]
    double q_size[CHUNK], score_size[CHUNK], value_size[CHUNK], score_gap[CHUNK], lse[CHUNK];
    double *q_raw, *k_raw; // as products get them, where these cut bits off: [CHUNK][hdim_q], [hdim_q][KEYS]
    double q_scale[CHUNK], k_scale[KEYS], score_lost[CHUNK];
    sight sights[CHUNK];
} bench;

static int32_t round_up(int32_t n, int32_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// s[j] += sum_d q[d] k[d][j] for the KEYS keys of a block.
WIDE static void add_dots(const double *q, const double *k, int32_t hdim, double *s) {
    double sums[KEYS] = {0};
    for (int32_t d = 0; d < hdim; d++)
        for (int j = 0; j < KEYS; j++) sums[j] += q[d] * k[d * KEYS + j];
    memcpy(s, sums, sizeof sums);
}

// o[0 .. COLUMNS) += sum_j p[j] v[j][0 .. COLUMNS)
WIDE static void add_weighted(const double *p, const double *v, int32_t keys, int32_t stride, double *o) {
    double sums[COLUMNS];
    memcpy(sums, o, sizeof sums);
    for (int32_t j = 0; j < keys; j++)
        for (int n = 0; n < COLUMNS; n++) sums[n] += p[j] * v[(int64_t)j * stride + n];
    memcpy(o, sums, sizeof sums);
}

// Does the same with magnitudes of v.
WIDE static void add_magnitudes(const double *p, const double *v, int32_t keys, int32_t stride, double *o_size) {
    double sums[COLUMNS];
    memcpy(sums, o_size, sizeof sums);
    for (int32_t j = 0; j < keys; j++)
        for (int n = 0; n < COLUMNS; n++) sums[n] += p[j] * fabs(v[(int64_t)j * stride + n]);
    memcpy(o_size, sums, sizeof sums);
}

static double block_descale(const job *job, const void *scales, const void *seqstart, int32_t b, int64_t batch_stride,
                            int32_t h, int64_t nhead_stride, int32_t position, int32_t block) {
    int64_t first = job->traits->is_group_mode ? ((const int32_t *)seqstart)[b] : 0;
    return (
        (const float *)scales)[row_index(job->traits, b, batch_stride, h, nhead_stride, first + position / block, 1)];
}

// Decodes the query of row r. Returns the length of the vector.
static double decode_query(const job *job, const fmha_fwd_row *row, const fmha_fwd_sequence *s, bench *bench,
                           int32_t r) {
    const tessera_fmha_fwd_args *a = job->args;
    tessera_qscale qscale = job->traits->qscale_type;
    int64_t token = s->token_q + row->query;
    int64_t at =
        row_index(job->traits, row->batch, a->batch_stride_q, row->head, a->nhead_stride_q, token, a->stride_q);
    int64_t scale_at = row_index(job->traits, row->batch, a->batch_stride_q_descale, row->head,
                                 a->nhead_stride_q_descale, token, a->stride_q_descale);
    double scale = a->scale_s;
    if (qscale == TESSERA_QSCALE_PER_TENSOR) scale *= *(const float *)a->q_descale_ptr;
    if (qscale == TESSERA_QSCALE_BLOCK)
        scale *=
            block_descale(job, a->q_descale_ptr, a->block_scale_seqstart_q_ptr, row->batch, a->batch_stride_q_descale,
                          row->head, a->nhead_stride_q_descale, row->query, a->block_scale_size_q);
    double square = 0, *q = bench->q + (int64_t)r * a->hdim_q;
    bench->q_scale[r] = scale;
    for (int32_t d = 0; d < a->hdim_q; d++) {
        const double raw = element_load(job->input, a->q_ptr, at + d);
        q[d] = scale * raw;
        if (job->cuts) bench->q_raw[(int64_t)r * a->hdim_q + d] = raw;
        if (qscale == TESSERA_QSCALE_MX)
            q[d] *= element_decode_e8m0(((const uint8_t *)a->q_descale_ptr)[scale_at + d / 32]);
        square += q[d] * q[d];
    }
    return sqrt(square);
}

// Returns the length of the longest vector.
static double decode_keys(const job *job, int32_t b, int32_t g, const fmha_fwd_sequence *s, int32_t first,
                          int32_t count, bench *bench) {
    const tessera_fmha_fwd_args *a = job->args;
    tessera_qscale qscale = job->traits->qscale_type;
    double longest = 0, *const block = bench->block;
    for (int32_t n = 0; n < KEYS; n++) {
        if (n >= count) {
            for (int32_t d = 0; d < a->hdim_q; d++) block[d * KEYS + n] = 0;
            for (int32_t d = 0; job->cuts && d < a->hdim_q; d++) bench->k_raw[d * KEYS + n] = 0;
            continue;
        }
        int32_t j = first + n;
        int64_t token = s->token_k + j;
        int64_t at = row_index(job->traits, b, a->batch_stride_k, g, a->nhead_stride_k, token, a->stride_k);
        int64_t scale_at = row_index(job->traits, b, a->batch_stride_k_descale, g, a->nhead_stride_k_descale, token,
                                     a->stride_k_descale);
        double scale = 1, square = 0;
        if (qscale == TESSERA_QSCALE_PER_TENSOR) scale = *(const float *)a->k_descale_ptr;
        if (qscale == TESSERA_QSCALE_BLOCK)
            scale = block_descale(job, a->k_descale_ptr, a->block_scale_seqstart_k_ptr, b, a->batch_stride_k_descale, g,
                                  a->nhead_stride_k_descale, j, a->block_scale_size_kv);
        bench->k_scale[n] = scale;
        for (int32_t d = 0; d < a->hdim_q; d++) {
            const double raw = element_load(job->input, a->k_ptr, at + d);
            double value = scale * raw;
            if (job->cuts) bench->k_raw[d * KEYS + n] = raw;
            if (qscale == TESSERA_QSCALE_MX)
                value *= element_decode_e8m0(((const uint8_t *)a->k_descale_ptr)[scale_at + d / 32]);
            block[d * KEYS + n] = value;
            square += value * value;
        }
        if (isfinite(square)) longest = fmax(longest, sqrt(square)); // the scores of others are exact
    }
    return longest;
}

// Returns the greatest magnitude.
static double decode_values(const job *job, int32_t b, int32_t g, const fmha_fwd_sequence *s, int32_t first,
                            int32_t count, int32_t row_stride, double *block) {
    const tessera_fmha_fwd_args *a = job->args;
    tessera_qscale qscale = job->traits->qscale_type;
    int64_t base = row_index(job->traits, b, a->batch_stride_v, g, a->nhead_stride_v, 0, 0);
    int64_t scale_base = row_index(job->traits, b, a->batch_stride_v_descale, g, a->nhead_stride_v_descale, 0, 0);
    if (qscale == TESSERA_QSCALE_MX && job->traits->is_group_mode)
        scale_base += ((const int32_t *)a->seqstart_v_scale_ptr)[b];
    double greatest = 0;
    for (int32_t n = 0; n < count; n++) {
        int32_t j = first + n;
        int64_t token = s->token_k + j;
        double scale = 1;
        if (qscale == TESSERA_QSCALE_PER_TENSOR) scale = *(const float *)a->v_descale_ptr;
        if (qscale == TESSERA_QSCALE_BLOCK)
            scale = block_descale(job, a->v_descale_ptr, a->block_scale_seqstart_k_ptr, b, a->batch_stride_v_descale, g,
                                  a->nhead_stride_v_descale, j, a->block_scale_size_kv);
        for (int32_t d = 0; d < a->hdim_v; d++) {
            int64_t at = job->traits->is_v_rowmajor ? token * a->stride_v + d : d * a->stride_v + token;
            double value = scale * element_load(job->input, a->v_ptr, base + at);
            if (qscale == TESSERA_QSCALE_MX)
                value *= element_decode_e8m0(
                    ((const uint8_t *)a->v_descale_ptr)[scale_base + d * a->stride_v_descale + j / 32]);
            block[(int64_t)n * row_stride + d] = value;
            greatest = fmax(greatest, fabs(value));
        }
        for (int32_t d = a->hdim_v; d < row_stride; d++) block[(int64_t)n * row_stride + d] = 0;
    }
    return greatest;
}

// Applies soft cap, bias and mask to the scores of one row and block.
static void finish_scores(const job *job, const fmha_fwd_row *row, const fmha_fwd_sequence *s, sight seen,
                          int32_t first, int32_t count, double *scores) {
    const tessera_fmha_fwd_args *a = job->args;
    const tessera_fmha_fwd_traits *t = job->traits;
    int64_t bias_at = row_index(t, row->batch, a->batch_stride_bias, row->head, a->nhead_stride_bias,
                                s->token_q + row->query, a->stride_bias);
    double slope = 0;
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        slope = ((const float *)a->bias_ptr)[row->batch * a->stride_bias + row->head];
    for (int32_t n = 0; n < count; n++) {
        int32_t j = first + n;
        if (!sees(seen, j)) {
            scores[n] = -INFINITY;
            continue;
        }
        if (t->has_logits_soft_cap) scores[n] = a->logits_soft_cap * tanh(scores[n] / a->logits_soft_cap);
        if (t->bias_type == TESSERA_BIAS_ELEMENTWISE)
            scores[n] += element_load(fmha_fwd_bias_element(t->data_type), a->bias_ptr, bias_at + j);
        if (t->bias_type == TESSERA_BIAS_ALIBI)
            scores[n] += fmha_fwd_alibi(a, slope, s->seqlen_q, s->seqlen_k, row->query, j);
    }
}

// Turns scores into the weights of the values, dropout included, and returns the log of their sum before it. Adds the
// magnitude of the greatest score to *score_size, and sets *score_gap.
static double softmax(const job *job, const fmha_fwd_row *row, int32_t seqlen_k, double *scores, uint8_t *randval,
                      double *score_size, double *score_gap) {
    const tessera_fmha_fwd_args *a = job->args;
    double sink = job->traits->has_sink && a->sink_ptr ? ((const float *)a->sink_ptr)[row->head] : -INFINITY;
    double greatest = sink, next = -INFINITY, sum = 0;
    for (int32_t j = 0; j < seqlen_k; j++) {
        next = fmax(next, fmin(scores[j], greatest));
        if (scores[j] > greatest || isnan(scores[j])) greatest = scores[j];
    }
    *score_gap = greatest - next;
    if (greatest == -INFINITY) {
        for (int32_t j = 0; j < seqlen_k; j++) scores[j] = 0;
        return -INFINITY;
    }
    for (int32_t j = 0; j < seqlen_k; j++) sum += scores[j] = scores[j] == -INFINITY ? 0 : exp(scores[j] - greatest);
    sum += exp(sink - greatest);
    *score_size += fabs(greatest);
    double weight = 1 / sum;
    uint8_t keep_below = 255;
    if (job->traits->has_dropout) {
        float keep = 1.0f - a->p_drop; // CK rounds to fp32 here
        keep_below = (uint8_t)floorf(keep * 255.0f);
        weight /= (double)keep;
        dropout_row(job->drop_seed, job->drop_offset, (uint32_t)(row->batch * a->nhead_q + row->head),
                    (uint32_t)row->query, seqlen_k, randval);
    }
    for (int32_t j = 0; j < seqlen_k; j++)
        scores[j] *= job->traits->has_dropout && randval[j] > keep_below ? 0 * weight : weight; // NaN stays
    return greatest + log(sum);
}

// The most that products cut off of a score of row r and one of the decoded keys.
static double lost_of_scores(const job *job, const bench *bench, int32_t r, int32_t keys) {
    double lost[KEYS], most = 0;
    tensor_cores_lost(bench->q_raw + (int64_t)r * job->args->hdim_q, bench->k_raw, job->args->hdim_q, lost);
    for (int32_t n = 0; n < keys; n++) most = fmax(most, fabs(bench->q_scale[r] * bench->k_scale[n]) * lost[n]);
    return most;
}

static int block_is_seen(sight s, int32_t first, int32_t count) {
    return first < s.sink || (first < s.end && first + count > s.begin);
}

static void run_chunk(const job *job, bench *bench, int64_t begin, int64_t end) {
    const tessera_fmha_fwd_args *a = job->args;
    const fmha_fwd_row *rows = job->rows + begin;
    int32_t count = (int32_t)(end - begin), b = rows[0].batch, g = rows[0].head / (a->nhead_q / a->nhead_k);
    int32_t columns = round_up(a->hdim_v, COLUMNS), stride = round_up(job->longest_k, KEYS);
    fmha_fwd_sequence s = fmha_fwd_sequence_of(job->traits, a, b);
    for (int32_t r = 0; r < count; r++) {
        bench->q_size[r] = decode_query(job, &rows[r], &s, bench, r);
        bench->score_size[r] = bench->value_size[r] = bench->score_lost[r] = 0;
        bench->sights[r] = sight_of(a, s.seqlen_q, s.seqlen_k, rows[r].query);
    }
    for (int32_t first = 0; first < s.seqlen_k; first += KEYS) {
        int32_t keys = s.seqlen_k - first < KEYS ? s.seqlen_k - first : KEYS;
        double size = -1; // not decoded yet
        for (int32_t r = 0; r < count; r++) {
            double *scores = bench->scores + (int64_t)r * stride + first;
            if (block_is_seen(bench->sights[r], first, keys)) {
                if (size < 0) size = decode_keys(job, b, g, &s, first, keys, bench);
                bench->score_size[r] = fmax(bench->score_size[r], bench->q_size[r] * size);
                if (job->cuts) bench->score_lost[r] = fmax(bench->score_lost[r], lost_of_scores(job, bench, r, keys));
                add_dots(bench->q + (int64_t)r * a->hdim_q, bench->block, a->hdim_q, scores);
                finish_scores(job, &rows[r], &s, bench->sights[r], first, keys, scores);
            } else {
                for (int32_t n = 0; n < keys; n++) scores[n] = -INFINITY;
            }
        }
    }
    const double keep = job->traits->has_dropout ? 1 - (double)a->p_drop : 1;
    memset(bench->o, 0, sizeof(double) * (size_t)count * (size_t)columns);
    memset(bench->o_size, 0, sizeof(double) * (size_t)count * (size_t)columns);
    // The visitor needs the bytes of dropout again, so they are computed twice instead of being kept.
    for (int32_t r = 0; r < count; r++)
        bench->lse[r] = softmax(job, &rows[r], s.seqlen_k, bench->scores + (int64_t)r * stride, bench->randval,
                                &bench->score_size[r], &bench->score_gap[r]);
    for (int32_t first = 0; first < s.seqlen_k; first += KEYS) {
        int32_t keys = s.seqlen_k - first < KEYS ? s.seqlen_k - first : KEYS;
        double size = -1;
        for (int32_t r = 0; r < count; r++) {
            if (!block_is_seen(bench->sights[r], first, keys)) continue;
            if (size < 0) size = decode_values(job, b, g, &s, first, keys, columns, bench->block);
            bench->value_size[r] = fmax(bench->value_size[r], size);
            const double *weights = bench->scores + (int64_t)r * stride + first;
            for (int32_t n = 0; n < columns; n += COLUMNS) {
                add_weighted(weights, bench->block + n, keys, columns, bench->o + (int64_t)r * columns + n);
                add_magnitudes(weights, bench->block + n, keys, columns, bench->o_size + (int64_t)r * columns + n);
            }
        }
    }
    for (int32_t r = 0; r < count; r++) {
        for (int32_t j = 0; j < s.seqlen_k; j++) bench->visible[j] = (uint8_t)sees(bench->sights[r], j);
        if (job->traits->has_dropout)
            dropout_row(job->drop_seed, job->drop_offset, (uint32_t)(b * a->nhead_q + rows[r].head),
                        (uint32_t)rows[r].query, s.seqlen_k, bench->randval);
        fmha_fwd_reference_row answer = {
            .o = bench->o + (int64_t)r * columns,
            .o_size = bench->o_size + (int64_t)r * columns,
            .lse = bench->lse[r],
            .seqlen_k = s.seqlen_k,
            .visible = bench->visible,
            .randval = job->traits->has_dropout ? bench->randval : NULL,
            .score_size = bench->score_size[r],
            .value_size = bench->value_size[r] / keep,
            .score_gap = bench->score_gap[r],
            .score_lost = bench->score_lost[r],
        };
        job->visit(job->user, begin + r, &rows[r], &answer);
    }
}

static int32_t rows_of_chunk(int32_t longest_k) { return (int32_t)clamp(CHUNK_SCORES / (longest_k + 1), 1, CHUNK); }

static void bench_free(bench *bench) {
    free(bench->q), free(bench->scores), free(bench->block), free(bench->o), free(bench->o_size);
    free(bench->visible), free(bench->randval), free(bench->q_raw), free(bench->k_raw), free(bench);
}

static bench *bench_new(const job *job) {
    const tessera_fmha_fwd_args *a = job->args;
    size_t columns = (size_t)round_up(a->hdim_v, COLUMNS), keys = (size_t)round_up(job->longest_k, KEYS) + KEYS;
    size_t deepest = columns > (size_t)a->hdim_q ? columns : (size_t)a->hdim_q;
    bench *bench = calloc(1, sizeof *bench);
    if (!bench) return NULL;
    bench->q = malloc(sizeof(double) * CHUNK * (size_t)a->hdim_q);
    bench->scores = malloc(sizeof(double) * (size_t)rows_of_chunk(job->longest_k) * keys);
    bench->block = malloc(sizeof(double) * KEYS * deepest);
    bench->o = malloc(sizeof(double) * CHUNK * columns);
    bench->o_size = malloc(sizeof(double) * CHUNK * columns);
    bench->visible = malloc(keys);
    bench->randval = malloc(keys);
    bench->q_raw = malloc(sizeof(double) * CHUNK * (size_t)a->hdim_q);
    bench->k_raw = malloc(sizeof(double) * KEYS * (size_t)a->hdim_q);
    if (bench->q_raw && bench->k_raw && bench->q && bench->scores && bench->block && bench->o && bench->o_size &&
        bench->visible && bench->randval)
        return bench;
    bench_free(bench);
    return NULL;
}

static void work(void *context, int part, int64_t begin, int64_t end) {
    (void)part, (void)begin, (void)end; // whoever is done takes the next chunk
    job *job = context;
    bench *bench = bench_new(job);
    if (!bench) atomic_store(&job->failed, 1);
    for (int64_t n; bench && (n = atomic_fetch_add(&job->next, 1)) < job->chunks;)
        run_chunk(job, bench, job->chunk_begin[n], job->chunk_begin[n + 1]);
    if (bench) bench_free(bench);
}

// Cuts the rows where the sequence or the key head changes. Returns the number of chunks.
static int64_t cut(const tessera_fmha_fwd_args *a, const fmha_fwd_row *rows, int64_t count, int32_t most,
                   int64_t *begins) {
    int64_t chunks = 0, group = a->nhead_q / a->nhead_k;
    for (int64_t n = 0; n < count; n++) {
        int same = n && rows[n].batch == rows[n - 1].batch && rows[n].head / group == rows[n - 1].head / group;
        if (!same || n - begins[chunks - 1] >= most) begins[chunks++] = n;
    }
    begins[chunks] = count;
    return chunks;
}

int fmha_fwd_reference(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args, tessera_fp8_format fp8,
                       int cuts, const fmha_fwd_row *rows, int64_t count, int threads, fmha_fwd_visit visit,
                       void *user) {
    job job = {.traits = traits, .args = args, .rows = rows, .visit = visit, .user = user};
    job.input = fmha_fwd_input_element(traits->data_type, fp8);
    job.cuts = cuts;
    int by_pointer = traits->has_dropout && args->drop_prefs;
    job.drop_seed = by_pointer ? *args->drop_seed_ptr : args->drop_seed;
    job.drop_offset = by_pointer ? *args->drop_offset_ptr : args->drop_offset;
    for (int32_t b = 0; b < args->batch; b++) {
        int32_t seqlen_k = fmha_fwd_sequence_of(traits, args, b).seqlen_k;
        if (seqlen_k > job.longest_k) job.longest_k = seqlen_k;
    }
    int64_t *begins = malloc(sizeof *begins * ((size_t)count + 1));
    if (!begins) return -1;
    job.chunk_begin = begins;
    job.chunks = cut(args, rows, count, rows_of_chunk(job.longest_k), begins);
    const int parts = (int)(threads < job.chunks ? threads : job.chunks);
    do_in_parts(parts, parts, work, &job);
    free(begins);
    return atomic_load(&job.failed) && atomic_load(&job.next) < job.chunks ? -1 : 0;
}

typedef struct arrays {
    int32_t hdim_v;
    double *o, *lse;
    uint8_t *randval;
    int64_t randval_stride;
} arrays;

static void store(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *answer) {
    const arrays *to = user;
    (void)row;
    memcpy(to->o + index * to->hdim_v, answer->o, sizeof(double) * (size_t)to->hdim_v);
    if (to->lse) to->lse[index] = answer->lse;
    if (to->randval && answer->randval)
        memcpy(to->randval + index * to->randval_stride, answer->randval, (size_t)answer->seqlen_k);
}

int fmha_fwd_reference_rows(const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                            tessera_fp8_format fp8, const fmha_fwd_row *rows, int64_t count, int threads, double *o,
                            double *lse, uint8_t *randval, int64_t randval_stride) {
    arrays to = {args->hdim_v, o, lse, randval, randval_stride};
    return fmha_fwd_reference(traits, args, fp8, 0, rows, count, threads, store, &to);
}

// --- comparison ------------------------------------------------------------------------------------------------------

static fmha_fwd_tolerance of_8_bits(int on_gpu, double half_step, double least) {
    return (fmha_fwd_tolerance){.lse_atol = 1e-4,
                                .half_step = half_step,
                                .least = least,
                                .p_error = on_gpu ? 0x1p-4 : 0x1p-8,
                                .p_floor = on_gpu ? 0x1p-18 : 0,
                                .score_error = 0x1p-23};
}

int fmha_fwd_cuts_products(tessera_fmha_dtype dtype, const char *device) {
    return strncmp(device, "cuda", 4) == 0 && fmha_fwd_input_element(dtype, TESSERA_E4M3FN) == TESSERA_TYPE_E4M3;
}

fmha_fwd_tolerance fmha_fwd_tolerance_of(tessera_fmha_dtype dtype, const char *device) {
    const int on_gpu = strncmp(device, "cpu", 3) != 0;
    const int may_have_tiles = strcmp(device, "cpu") == 0 || strstr(device, "-amx") != NULL;
    switch (dtype) {
    case TESSERA_FMHA_FP32:
        return (fmha_fwd_tolerance){1e-5, 1e-5, 1e-4, 0, 0, 0, 0, 0x1p-23};
    case TESSERA_FMHA_FP16:
        return (fmha_fwd_tolerance){
            1e-3, 1e-3, 1e-4, 0x1p-11, 0, on_gpu ? 0x1p-11 : 0, 0, may_have_tiles ? 0x1p-18 : 0x1p-23};
    case TESSERA_FMHA_BF16:
        return (fmha_fwd_tolerance){1e-2, 1e-2, 1e-4, 0x1p-8, 0, 0x1p-8, 0, 0x1p-23};
    case TESSERA_FMHA_FP8:
        return of_8_bits(on_gpu, 0x1p-4, 0x1p-10);
    case TESSERA_FMHA_FP8BF16:
        return of_8_bits(on_gpu, 0x1p-8, 0x1p-116);
    default:
        return of_8_bits(on_gpu, 0, 0x1p-116);
    }
}

// The error divided by its bound. Equal infinities agree; NaN agrees only with NaN.
static double excess(double got, double want, double bound, double *max_error) {
    if (got == want || (isnan(got) && isnan(want))) return 0;
    double error = fabs(got - want);
    if (isnan(error) || isinf(error)) error = INFINITY;
    if (error > *max_error) *max_error = error;
    return isinf(error) ? INFINITY : error / bound;
}

// The least magnitude that rounds to infinity.
static double infinite_from(tessera_type output) {
    return output == TESSERA_TYPE_FP16 ? 65520 : output == TESSERA_TYPE_BF16 ? 0x1.ffp127 : 0x1.ffffffp127;
}

static double error_of_scores(const fmha_fwd_reference_row *want, const fmha_fwd_tolerance *t) {
    return t->score_error * want->score_size + want->score_lost;
}

// What errors of scores may change in an element of o, 0 where sizes are not finite.
static double of_scores(const fmha_fwd_reference_row *want, int32_t d, const fmha_fwd_tolerance *t) {
    double twice = 2 * error_of_scores(want, t);
    double spread = 2 * expm1(twice) * want->o_size[d];
    double others = 4 * exp(twice - want->score_gap) * want->seqlen_k * want->value_size;
    double bound = fmin(fmin(spread, others), 2 * want->value_size);
    return isfinite(twice) && isfinite(bound) ? bound : 0;
}

double fmha_fwd_compare_row(tessera_type output, const void *got, const fmha_fwd_reference_row *want, int32_t n,
                            const fmha_fwd_tolerance *t, double *max_error) {
    double saturated = output == TESSERA_TYPE_E4M3       ? 448
                       : output == TESSERA_TYPE_E4M3FNUZ ? 240
                                                         : INFINITY,
           greatest = 0;
    double of_keys = t->least + t->p_floor * want->seqlen_k * want->value_size;
    for (int32_t d = 0; d < n; d++) {
        double target = want->o[d];
        if (fabs(target) > saturated) target = copysign(saturated, target);
        double given = t->rtol * fabs(target) + t->atol;
        double derived = t->half_step * fabs(target) + t->p_error * want->o_size[d] + of_keys;
        double bound = (isfinite(derived) && derived > given ? derived : given) + of_scores(want, d, t);
        double value = element_load(output, got, d);
        int rounds_to_it = isinf(value) && fabs(target) + given >= infinite_from(output);
        if (rounds_to_it && (value > 0) == (target > 0)) continue;
        double ratio = excess(value, target, bound, max_error);
        if (ratio > greatest) greatest = ratio;
    }
    return greatest;
}

double fmha_fwd_compare_lse(float got, const fmha_fwd_reference_row *want, const fmha_fwd_tolerance *t,
                            double *max_error) {
    double lost = error_of_scores(want, t);
    double bound = t->lse_atol * (1 + fabs(want->lse)) + (isfinite(lost) ? lost : 0);
    return excess(got, want->lse, bound, max_error);
}
