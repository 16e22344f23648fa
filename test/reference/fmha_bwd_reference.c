// SPDX-License-Identifier: MIT
// The fp64 reference. A unit holds all of its keys decoded; queries pass one by one, and each adds to all gradients.
#include "fmha_bwd_reference.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fmha_fwd_reference.h"
#include "parts.h"
#include "wide.h"

// ---- places

tessera_type fmha_bwd_element(tessera_fmha_dtype dtype) { return fmha_fwd_input_element(dtype, TESSERA_FP8_NONE); }

// What the forward reference reads of lengths and masks.
static void view_forward(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a,
                         tessera_fmha_fwd_traits *traits, tessera_fmha_fwd_args *args) {
    *traits = tessera_fmha_fwd_traits_init();
    *args = tessera_fmha_fwd_args_init();
    traits->is_group_mode = t->is_group_mode;
    args->seqstart_q_ptr = a->seqstart_q_ptr, args->seqstart_k_ptr = a->seqstart_k_ptr;
    args->seqlen_q_ptr = a->seqlen_q_ptr, args->seqlen_k_ptr = a->seqlen_k_ptr;
    args->cu_seqlen_q_ptr = a->cu_seqlen_q_ptr, args->cu_seqlen_k_ptr = a->cu_seqlen_k_ptr;
    args->seqlen_q = a->seqlen_q, args->seqlen_k = a->seqlen_k, args->batch = a->batch;
    args->mask_type = a->mask_type;
    args->window_size_left = a->window_size_left, args->window_size_right = a->window_size_right;
    args->sink_size = a->mask_type == TESSERA_MASK_NONE ? 0 : a->sink_size;
}

fmha_bwd_sequence fmha_bwd_sequence_of(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, int32_t b) {
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    view_forward(t, a, &traits, &args);
    const fmha_fwd_sequence s = fmha_fwd_sequence_of(&traits, &args, b);
    return (fmha_bwd_sequence){s.seqlen_q, s.seqlen_k, s.token_q, s.token_k};
}

int64_t fmha_bwd_pairs(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, int32_t b) {
    const fmha_bwd_sequence s = fmha_bwd_sequence_of(t, a, b);
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    int64_t pairs = 0;
    view_forward(t, a, &traits, &args);
    for (int32_t i = 0; i < s.seqlen_q; i++) pairs += fmha_fwd_keys_seen(&args, s.seqlen_q, s.seqlen_k, i);
    return pairs;
}

static int64_t index_of(const tessera_fmha_bwd_traits *t, int32_t b, int64_t batch_stride, int64_t head,
                        int64_t nhead_stride, int64_t token, int64_t stride) {
    return (t->is_group_mode ? 0 : b * batch_stride) + head * nhead_stride + token * stride;
}

#define INDEX(x, head, token) index_of(t, b, a->batch_stride_##x, head, a->nhead_stride_##x, token, a->stride_##x)
#define INDEX_LSED(head, token) index_of(t, b, a->batch_stride_lsed, head, a->nhead_stride_lsed, token, 1)

const void *fmha_bwd_row_at(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, fmha_bwd_tensor tensor,
                            int32_t b, int32_t head, int64_t row, tessera_type *type) {
    const fmha_bwd_sequence s = fmha_bwd_sequence_of(t, a, b);
    const int64_t q = s.token_q + row, k = s.token_k + row;
    const int bytes = element_bits(*type = fmha_bwd_element(t->data_type)) / 8;
    switch (tensor) {
    case FMHA_BWD_D:
        *type = TESSERA_TYPE_FP32;
        return (const float *)a->d_ptr + INDEX_LSED(head, q);
    case FMHA_BWD_DQ:
        return (const char *)a->dq_ptr + INDEX(dq, head, q) * bytes;
    case FMHA_BWD_DK:
        return (const char *)a->dk_ptr + INDEX(dk, head, k) * bytes;
    case FMHA_BWD_DV:
        return (const char *)a->dv_ptr + INDEX(dv, head, k) * bytes;
    case FMHA_BWD_DBIAS:
        return (const char *)a->dbias_ptr + INDEX(dbias, head, q) * bytes;
    default:
        *type = TESSERA_TYPE_INT8;
        return (const char *)a->rand_val_ptr + INDEX(randval, head, q);
    }
}

// ---- the computation

typedef struct job {
    const tessera_fmha_bwd_traits *t;
    const tessera_fmha_bwd_args *a;
    tessera_fmha_fwd_traits fwd_traits;
    tessera_fmha_fwd_args fwd_args;
    const int32_t *units;
    int64_t count;
    int32_t longest_k;
    uint64_t drop_seed, drop_offset;
    int keep_below;
    double keep;
    double step, p_step, exp_step; // relative errors: half a step of the type, of p and dx, of exp
    double p_least, dx_least;      // errors of small p and dx
    double cap_error;              // of scores, by the soft cap
    fmha_bwd_visit visit;
    void *user;
    atomic_llong next;
    atomic_int failed;
} job;

// The memory of one thread.
typedef struct bench {
    double *k, *kt, *v, *vt;               // [keys][hdim], transposed
    double *k_size, *v_size;               // [keys]: lengths
    double *k_lost, *v_lost;               // [keys]: lengths of what products take for 0
    double *dk, *dv, *dk_bound, *dv_bound; // [keys][hdim]
    double *s, *dp, *w, *wp, *e, *ep;      // [keys]: scores; gradients; weights of dq and dk, dv; their errors
    double q[512], g[512], o[512];         // a row of q, do, o
    double dq[512], dq_bound[512];
    double *row_bound, *bytes; // [keys]
    int32_t keys;
} bench;

WIDE static void dots(const double *x, const double *yt, int32_t hdim, int32_t keys, double *out) {
    memset(out, 0, sizeof(double) * (size_t)keys);
    for (int32_t d = 0; d < hdim; d++)
        for (int32_t j = 0; j < keys; j++) out[j] += x[d] * yt[(int64_t)d * keys + j];
}

// sum += w x, and bound += e |x|, or of numbers below `least`, which may be lost, (e + |w|) |x|
WIDE static void add(double w, double e, const double *x, int32_t count, double least, double *sum, double *bound) {
    const double all = e + fabs(w);
    for (int32_t d = 0; d < count; d++) {
        sum[d] += w * x[d];
        bound[d] += (fabs(x[d]) < least ? all : e) * fabs(x[d]);
    }
}

// The length of the part of x that is below `least`.
static double length_below(double least, const double *x, int32_t count) {
    double square = 0;
    for (int32_t d = 0; d < count; d++) square += fabs(x[d]) < least ? x[d] * x[d] : 0;
    return sqrt(square);
}

static double length_of(const double *x, int32_t count) { return length_below(INFINITY, x, count); }

static void load(const job *job, const void *base, int64_t at, int32_t count, double *out) {
    for (int32_t d = 0; d < count; d++) out[d] = element_load(fmha_bwd_element(job->t->data_type), base, at + d);
}

static void load_keys(const job *job, bench *x, int32_t b, int32_t g, const fmha_bwd_sequence *s) {
    const tessera_fmha_bwd_traits *t = job->t;
    const tessera_fmha_bwd_args *a = job->a;
    const int32_t hq = a->hdim_q, hv = a->hdim_v;
    for (int32_t j = 0; j < s->seqlen_k; j++) {
        double *k = x->k + (int64_t)j * hq, *v = x->v + (int64_t)j * hv;
        load(job, a->k_ptr, INDEX(k, g, s->token_k + j), hq, k);
        load(job, a->v_ptr, INDEX(v, g, s->token_k + j), hv, v);
        x->k_size[j] = length_of(k, hq), x->v_size[j] = length_of(v, hv);
        x->k_lost[j] = length_below(job->dx_least, k, hq), x->v_lost[j] = length_below(job->dx_least, v, hv);
        for (int32_t d = 0; d < hq; d++) x->kt[(int64_t)d * s->seqlen_k + j] = k[d];
        for (int32_t d = 0; d < hv; d++) x->vt[(int64_t)d * s->seqlen_k + j] = v[d];
    }
    memset(x->dk, 0, sizeof(double) * (size_t)s->seqlen_k * (size_t)hq);
    memset(x->dk_bound, 0, sizeof(double) * (size_t)s->seqlen_k * (size_t)hq);
    memset(x->dv, 0, sizeof(double) * (size_t)s->seqlen_k * (size_t)hv);
    memset(x->dv_bound, 0, sizeof(double) * (size_t)s->seqlen_k * (size_t)hv);
}

// The score after scale, soft cap, bias and mask; *slope is its derivative by the product.
static double score_of(const job *job, const fmha_bwd_sequence *s, int32_t b, int32_t h, int32_t i, int32_t j,
                       double product, double *slope) {
    const tessera_fmha_bwd_traits *t = job->t;
    const tessera_fmha_bwd_args *a = job->a;
    double score = (double)a->scale * product;
    *slope = a->scale;
    if (t->has_logits_soft_cap) {
        const double x = tanh(score / (double)a->logits_soft_cap);
        score = (double)a->logits_soft_cap * x;
        *slope *= 1 - x * x;
    }
    if (t->bias_type == TESSERA_BIAS_ELEMENTWISE)
        score += element_load(fmha_bwd_element(t->data_type), a->bias_ptr, INDEX(bias, h, s->token_q + i) + j);
    if (t->bias_type == TESSERA_BIAS_ALIBI)
        score += fmha_fwd_alibi(&job->fwd_args, ((const float *)a->bias_ptr)[b * a->stride_bias + h], s->seqlen_q,
                                s->seqlen_k, i, j);
    return score;
}

static void tell(const job *job, fmha_bwd_tensor tensor, int32_t b, int32_t head, int32_t row, int32_t count,
                 const double *want, const double *bound) {
    const fmha_bwd_row one = {tensor, b, head, row, count, want, bound};
    job->visit(job->user, &one);
}

// Half a step of the type beside what was summed up.
static void finish_bound(const job *job, const double *want, int32_t count, double *bound) {
    const double least = job->t->data_type == TESSERA_FMHA_FP16 ? 0x1p-25 : 0x1p-116;
    for (int32_t d = 0; d < count; d++) bound[d] += job->step * (fabs(want[d]) + bound[d]) + least;
}

static double weight_of_dropout(const job *job, int32_t b, int32_t h, int32_t i, int32_t j, double *byte) {
    if (!job->t->has_dropout) return 1;
    const uint32_t head = (uint32_t)(b * job->a->nhead_q + h);
    const uint8_t x = fmha_fwd_dropout_byte(job->drop_seed, job->drop_offset, head, (uint32_t)i, (uint32_t)j);
    *byte = x;
    return x <= job->keep_below ? 1 / job->keep : 0;
}

static void add_query(const job *job, bench *x, const fmha_bwd_sequence *s, int32_t b, int32_t h, int32_t i) {
    const tessera_fmha_bwd_traits *t = job->t;
    const tessera_fmha_bwd_args *a = job->a;
    const int32_t hq = a->hdim_q, hv = a->hdim_v, keys = s->seqlen_k;
    const int64_t token = s->token_q + i;
    const double lse = ((const float *)a->lse_ptr)[INDEX_LSED(h, token)];
    const double growth = 0x1p-23 * sqrt((double)(hq + hv + keys + s->seqlen_q)), least = job->dx_least;
    load(job, a->q_ptr, INDEX(q, h, token), hq, x->q);
    load(job, a->do_ptr, INDEX(do, h, token), hv, x->g);
    load(job, a->o_ptr, INDEX(o, h, token), hv, x->o);
    double d = 0, d_size = 0;
    for (int32_t n = 0; n < hv; n++) d += x->g[n] * x->o[n], d_size += fabs(x->g[n] * x->o[n]);
    const double q_size = length_of(x->q, hq), g_size = length_of(x->g, hv), d_bound = growth * d_size + 0x1p-116;
    const double q_lost = length_below(least, x->q, hq), g_lost = length_below(least, x->g, hv);
    tell(job, FMHA_BWD_D, b, h, i, 1, &d, &d_bound);
    dots(x->q, x->kt, hq, keys, x->s);
    dots(x->g, x->vt, hv, keys, x->dp);
    for (int32_t j = 0; j < keys; j++) {
        double slope, p = 0, z = weight_of_dropout(job, b, h, i, j, &x->bytes[j]);
        const double product = x->s[j], score = score_of(job, s, b, h, i, j, product, &slope);
        if (fmha_fwd_sees(&job->fwd_args, s->seqlen_q, s->seqlen_k, i, j)) p = lse == -INFINITY ? 0 : exp(score - lse);
        const double ds = p * (z * x->dp[j] - d), sizes = p * (z * g_size * x->v_size[j] + d_size);
        const double size = fabs((double)a->scale) * q_size * x->k_size[j] + fabs(score) + fabs(lse);
        const double s_lost = fabs((double)a->scale) * (q_lost * x->k_size[j] + q_size * x->k_lost[j]);
        const double dp_lost = z * (g_lost * x->v_size[j] + g_size * x->v_lost[j]);
        const double p_error = job->exp_step + (p > 0 ? 0x1p-22 * size + job->cap_error + s_lost : 0),
                     error = p_error * fabs(ds) + growth * sizes + p * dp_lost;
        x->wp[j] = z * p;
        x->ep[j] = z * p * (p_error + job->p_step + growth) + (p > 0 ? z * job->p_least : 0);
        x->w[j] = ds * slope;
        // The cap's derivative is a difference from 1, whose error is that of the cap, 4e-7 of it.
        x->e[j] = fabs(slope) * (error + (job->p_step + growth) * fabs(ds)) + 0x1p-20 * fabs((double)a->scale * ds) +
                  (p > 0 ? job->dx_least : 0);
        x->s[j] = ds;
        x->row_bound[j] = error;
    }
    if (job->t->has_dbias) {
        finish_bound(job, x->s, keys, x->row_bound);
        tell(job, FMHA_BWD_DBIAS, b, h, i, keys, x->s, x->row_bound);
    }
    if (job->t->is_store_randval) {
        memset(x->row_bound, 0, sizeof(double) * (size_t)keys);
        tell(job, FMHA_BWD_RANDVAL, b, h, i, keys, x->bytes, x->row_bound);
    }
    memset(x->dq, 0, sizeof x->dq);
    memset(x->dq_bound, 0, sizeof x->dq_bound);
    for (int32_t j = 0; j < keys; j++) {
        if (x->wp[j] == 0 && x->w[j] == 0 && x->e[j] == 0) continue; // hidden
        add(x->w[j], x->e[j], x->k + (int64_t)j * hq, hq, least, x->dq, x->dq_bound);
        add(x->w[j], x->e[j], x->q, hq, least, x->dk + (int64_t)j * hq, x->dk_bound + (int64_t)j * hq);
        add(x->wp[j], x->ep[j], x->g, hv, least, x->dv + (int64_t)j * hv, x->dv_bound + (int64_t)j * hv);
    }
    finish_bound(job, x->dq, hq, x->dq_bound);
    tell(job, FMHA_BWD_DQ, b, h, i, hq, x->dq, x->dq_bound);
}

static void tell_keys(const job *job, bench *x, const fmha_bwd_sequence *s, int32_t b, int32_t head) {
    const int32_t hq = job->a->hdim_q, hv = job->a->hdim_v;
    for (int32_t j = 0; j < s->seqlen_k; j++) {
        double *dk = x->dk + (int64_t)j * hq, *dk_bound = x->dk_bound + (int64_t)j * hq;
        double *dv = x->dv + (int64_t)j * hv, *dv_bound = x->dv_bound + (int64_t)j * hv;
        finish_bound(job, dk, hq, dk_bound);
        finish_bound(job, dv, hv, dv_bound);
        tell(job, FMHA_BWD_DK, b, head, j, hq, dk, dk_bound);
        tell(job, FMHA_BWD_DV, b, head, j, hv, dv, dv_bound);
    }
}

static void run_unit(const job *job, bench *x, int32_t unit) {
    const tessera_fmha_bwd_args *a = job->a;
    const int32_t b = unit / a->nhead_k, g = unit % a->nhead_k, heads = a->nhead_q / a->nhead_k;
    const fmha_bwd_sequence s = fmha_bwd_sequence_of(job->t, a, b);
    for (int32_t h = g * heads; h < (g + 1) * heads; h++) {
        if (h == g * heads || !job->t->is_dkv_reduced) load_keys(job, x, b, g, &s);
        for (int32_t i = 0; i < s.seqlen_q; i++) add_query(job, x, &s, b, h, i);
        if (!job->t->is_dkv_reduced) tell_keys(job, x, &s, b, h);
    }
    if (job->t->is_dkv_reduced) tell_keys(job, x, &s, b, g);
}

static double *room(size_t count) { return malloc(sizeof(double) * (count ? count : 1)); }

static void bench_free(bench *x) {
    double *const all[] = {x->k,      x->kt, x->v,  x->vt,       x->k_size,    x->v_size, x->k_lost,
                           x->v_lost, x->dk, x->dv, x->dk_bound, x->dv_bound,  x->s,      x->dp,
                           x->w,      x->wp, x->e,  x->ep,       x->row_bound, x->bytes};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
    free(x);
}

static bench *bench_new(const job *job) {
    const size_t keys = (size_t)job->longest_k, hq = (size_t)job->a->hdim_q, hv = (size_t)job->a->hdim_v;
    bench *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    double **const of_q[] = {&x->k, &x->kt, &x->dk, &x->dk_bound},
                   **const of_v[] = {&x->v, &x->vt, &x->dv, &x->dv_bound};
    double **const of_keys[] = {&x->k_size, &x->v_size, &x->k_lost, &x->v_lost, &x->s,         &x->dp,
                                &x->w,      &x->wp,     &x->e,      &x->ep,     &x->row_bound, &x->bytes};
    int failed = 0;
    for (int n = 0; n < 4; n++) {
        *of_q[n] = room(keys * hq), *of_v[n] = room(keys * hv);
        failed |= !*of_q[n] || !*of_v[n];
    }
    for (size_t n = 0; n < sizeof of_keys / sizeof *of_keys; n++) failed |= !(*of_keys[n] = room(keys));
    if (!failed) return x;
    bench_free(x);
    return NULL;
}

static void work(void *context, int part, int64_t begin, int64_t end) {
    (void)part, (void)begin, (void)end; // whoever is done takes the next unit
    job *job = context;
    bench *x = bench_new(job);
    if (!x) atomic_store(&job->failed, 1);
    for (int64_t n; x && (n = atomic_fetch_add(&job->next, 1)) < job->count;) run_unit(job, x, job->units[n]);
    if (x) bench_free(x);
}

static void begin_job(job *job, const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, double fp16_least) {
    const int fp16_products = fp16_least > 0 && t->data_type == TESSERA_FMHA_FP16;
    memset(job, 0, sizeof *job);
    job->t = t;
    job->a = a;
    view_forward(t, a, &job->fwd_traits, &job->fwd_args);
    const int by_pointer = t->has_dropout && a->drop_prefs;
    job->drop_seed = by_pointer ? *a->drop_seed_ptr : a->drop_seed;
    job->drop_offset = by_pointer ? *a->drop_offset_ptr : a->drop_offset;
    const float keep = t->has_dropout ? 1.0f - a->p_drop : 1.0f;
    job->keep = (double)keep;
    job->keep_below = (int)floorf(keep * 255.0f);
    const int bf16 = t->data_type == TESSERA_FMHA_BF16;
    job->step = bf16 ? 0x1p-8 : t->data_type == TESSERA_FMHA_FP16 ? 0x1p-11 : 0x1p-24;
    job->p_step = bf16 ? 0x1p-8 : fp16_products ? 0x1p-11 : 0;
    job->p_least = fp16_products ? 0x1p-25 : 0;
    job->dx_least = fp16_products ? fp16_least : 0;
    job->exp_step = bf16 ? 0x1p-13 : 0x1p-22;
    job->cap_error = t->has_logits_soft_cap ? 0x1p-21 * (double)a->logits_soft_cap : 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const int32_t keys = fmha_bwd_sequence_of(t, a, b).seqlen_k;
        if (keys > job->longest_k) job->longest_k = keys;
    }
}

int fmha_bwd_reference(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, double fp16_least,
                       const int32_t *units, int64_t count, int threads, fmha_bwd_visit visit, void *user) {
    const int parts = (int)(threads < count ? threads : count);
    job job;
    begin_job(&job, t, a, fp16_least);
    job.units = units, job.count = count, job.visit = visit, job.user = user;
    do_in_parts(parts, parts, work, &job);
    return atomic_load(&job.failed) && atomic_load(&job.next) < count ? -1 : 0;
}

void fmha_bwd_reference_d_sink(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, int32_t h,
                               double *want, double *bound) {
    *want = 0;
    *bound = 0x1p-116;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_bwd_sequence s = fmha_bwd_sequence_of(t, a, b);
        const double sink = ((const float *)a->sink_ptr)[b * a->batch_stride_sink + h];
        for (int32_t i = 0; i < s.seqlen_q; i++) {
            const int64_t token = s.token_q + i;
            const double lse = ((const float *)a->lse_ptr)[INDEX_LSED(h, token)];
            double d = 0, size = 0;
            for (int32_t n = 0; n < a->hdim_v; n++) {
                const tessera_type type = fmha_bwd_element(t->data_type);
                const double x = element_load(type, a->do_ptr, INDEX(do, h, token) + n) *
                                 element_load(type, a->o_ptr, INDEX(o, h, token) + n);
                d += x, size += fabs(x);
            }
            const double weight = exp(sink - lse);
            if (weight == 0) continue; // nor is there an error, even of a sink of -inf
            *want -= weight * d;
            *bound += weight * ((0x1p-22 + 0x1p-22 * (fabs(sink) + fabs(lse))) * fabs(d) +
                                0x1p-23 * sqrt((double)a->hdim_v) * size);
        }
    }
    *bound += 0x1p-24 * fabs(*want);
}

// ---- comparison

// The least magnitude that rounds to infinity.
static double infinite_from(tessera_type type) {
    return type == TESSERA_TYPE_FP16 ? 65520 : type == TESSERA_TYPE_BF16 ? 0x1.ffp127 : 0x1.ffffffp127;
}

double fmha_bwd_compare(const tessera_fmha_bwd_traits *t, const tessera_fmha_bwd_args *a, const fmha_bwd_row *row,
                        double *max_error) {
    tessera_type type;
    const void *const at = fmha_bwd_row_at(t, a, row->tensor, row->batch, row->head, row->row, &type);
    double greatest = 0;
    for (int32_t n = 0; n < row->count; n++) {
        const double want = row->want[n];
        const double got = row->tensor == FMHA_BWD_RANDVAL ? ((const uint8_t *)at)[n] : element_load(type, at, n);
        if (got == want || (isnan(got) && isnan(want))) continue;
        if (isinf(got) && fabs(want) + row->bound[n] >= infinite_from(type) && (got > 0) == (want > 0)) continue;
        const double error = fabs(got - want), ratio = isfinite(error) ? error / row->bound[n] : INFINITY;
        if (isfinite(error) && error > *max_error) *max_error = error;
        if (!(ratio <= greatest)) greatest = ratio;
    }
    return greatest;
}
