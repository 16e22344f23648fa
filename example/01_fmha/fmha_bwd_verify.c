// SPDX-License-Identifier: MIT
// Counts the work of a problem, and compares its outputs with the reference.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fmha_bwd_problem.h"
#include "tessera/kernel/fmha_bwd.h"

// CK's: five products of all pairs of query and key, whatever a mask hides; each tensor once.
void fmha_bwd_count(const example_problem *base, example_result *result) {
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    const tessera_fmha_bwd_args *a = &p->args;
    const double bytes = element_bits(fmha_bwd_element(p->traits.data_type)) / 8.0;
    double pairs = 0, q = 0, k = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        const fmha_bwd_sequence s = fmha_bwd_sequence_of(&p->traits, a, b);
        pairs += (double)s.seqlen_q * s.seqlen_k;
        q += s.seqlen_q, k += s.seqlen_k;
    }
    result->rows = (int64_t)a->batch * a->nhead_k; // units of the reference
    result->flop = 2.0 * a->nhead_q * pairs * (3.0 * a->hdim_q + 2.0 * a->hdim_v);
    result->bytes = bytes * (a->hdim_q + a->hdim_v) * 2 * (a->nhead_q * q + a->nhead_k * k);
}

// ---- what must be left alone

// Whether `count` elements of a row, from `first` on, are as they were before the call.
static int untouched(const fmha_bwd_problem *p, fmha_bwd_tensor tensor, int32_t b, int32_t head, int64_t row,
                     int64_t first, int64_t count) {
    tessera_type type;
    const char *at = fmha_bwd_row_at(&p->traits, &p->args, tensor, b, head, row, &type);
    const int64_t bytes = element_bits(type) / 8;
    return example_all_bytes(at + first * bytes, count * bytes, EXAMPLE_UNWRITTEN_BYTE);
}

// A query's outputs: all of them where it is past the logical length, else those of keys past theirs.
static int queries_untouched(const fmha_bwd_problem *p, const fmha_bwd_sequence *s, int32_t b, int32_t h, int64_t row) {
    const int past = row >= s->seqlen_q;
    const int64_t first_key = past ? 0 : s->seqlen_k;
    const fmha_fwd_problem *f = p->forward;
    const int64_t columns = f->columns - first_key;
    if (past &&
        (!untouched(p, FMHA_BWD_D, b, h, row, 0, 1) || !untouched(p, FMHA_BWD_DQ, b, h, row, 0, p->args.hdim_q)))
        return 0;
    if (p->args.dbias_ptr && !untouched(p, FMHA_BWD_DBIAS, b, h, row, first_key, columns)) return 0;
    return !p->args.rand_val_ptr || untouched(p, FMHA_BWD_RANDVAL, b, h, row, first_key, columns);
}

static example_outcome check_untouched(const fmha_bwd_problem *p, example_result *result) {
    const fmha_fwd_problem *f = p->forward;
    const int32_t heads = p->traits.is_dkv_reduced ? p->args.nhead_k : p->args.nhead_q;
    for (int32_t b = 0; b < p->args.batch; b++) {
        const fmha_bwd_sequence s = fmha_bwd_sequence_of(&p->traits, &p->args, b);
        const int64_t room_q = f->options.mode ? f->room_q[b] : f->shape_seqlen_q;
        const int64_t room_k = f->options.mode ? f->room_k[b] : f->shape_seqlen_k;
        for (int32_t h = 0; h < p->args.nhead_q; h++)
            for (int64_t i = 0; i < room_q; i++)
                if (!queries_untouched(p, &s, b, h, i))
                    return example_fail(result, EXAMPLE_WRONG_RESULT,
                                        "something past a logical length was written: query %lld of sequence %d",
                                        (long long)i, b);
        for (int32_t h = 0; h < heads; h++)
            for (int64_t j = s.seqlen_k; j < room_k; j++)
                if (!untouched(p, FMHA_BWD_DK, b, h, j, 0, p->args.hdim_q) ||
                    !untouched(p, FMHA_BWD_DV, b, h, j, 0, p->args.hdim_v))
                    return example_fail(result, EXAMPLE_WRONG_RESULT,
                                        "key %lld of sequence %d, which is past the logical length, was written",
                                        (long long)j, b);
    }
    return EXAMPLE_OK;
}

// ---- gradients

typedef struct check {
    fmha_bwd_problem *problem;
    example_result *result;
    pthread_mutex_t lock;
    double worst; // the row that the message is about
} check;

static void check_row(void *user, const fmha_bwd_row *row) {
    static const char *const names[FMHA_BWD_TENSORS] = {"d", "dq", "dk", "dv", "dbias", "rand_val"};
    check *c = user;
    fmha_bwd_problem *p = c->problem;
    double error = 0;
    const double ratio = fmha_bwd_compare(&p->traits, &p->args, row, &error);
    pthread_mutex_lock(&c->lock);
    if (error > p->max_error[row->tensor]) p->max_error[row->tensor] = error;
    if (ratio > p->max_error_ratio && row->tensor != FMHA_BWD_RANDVAL) p->max_error_ratio = ratio;
    if (!(ratio <= 1) && !(ratio <= c->worst)) {
        c->worst = ratio;
        example_fail(c->result, EXAMPLE_WRONG_RESULT,
                     "%s of sequence %d, head %d, row %d is wrong: off by %.3g, which is %.3g times what is allowed",
                     names[row->tensor], row->batch, row->head, row->row, error, ratio);
    }
    pthread_mutex_unlock(&c->lock);
}

static example_outcome check_d_sink(fmha_bwd_problem *p, example_result *result) {
    for (int32_t h = 0; h < p->args.nhead_q; h++) {
        double want, bound;
        fmha_bwd_reference_d_sink(&p->traits, &p->args, h, &want, &bound);
        const double got = ((const float *)p->args.d_sink_ptr)[h], error = fabs(got - want);
        if (!(error <= bound))
            return example_fail(result, EXAMPLE_WRONG_RESULT,
                                "d_sink of head %d is %g, and should be %g: off by %.3g times what is allowed", h, got,
                                want, error / bound);
    }
    return EXAMPLE_OK;
}

static const double SAMPLED_ABOVE_FLOP = 34359738368.0; // 2^35

// Units to check: all, or as many as that takes, spread evenly.
static int32_t *choose_units(const fmha_bwd_problem *p, const example_result *result, int64_t *count) {
    int64_t chosen = result->rows;
    if (p->base.options->v != 3 && result->flop > SAMPLED_ABOVE_FLOP)
        chosen = (int64_t)((double)chosen * SAMPLED_ABOVE_FLOP / result->flop) + 1;
    if (chosen > result->rows) chosen = result->rows;
    int32_t *units = malloc((size_t)chosen * sizeof *units);
    for (int64_t n = 0; units && n < chosen; n++)
        units[n] = (int32_t)((n * result->rows / chosen + (int64_t)(p->base.seed % (uint64_t)(result->rows / chosen))) %
                             result->rows);
    *count = chosen;
    return units;
}

// GPUs multiply fp16 numbers, CPUs fp32 ones. MFMA of CDNA 2 takes subnormal numbers for 0
// (simulator/sources.md, denormals of 16 bits).
static double least_fp16(const fmha_bwd_problem *p) {
    const tessera_fmha_bwd_instance *instance;
    if (tessera_fmha_bwd_select(tessera_device_get_facts(p->base.device), &p->traits, &p->args, &instance) ||
        !instance->base.symbol)
        return 0;
    return instance->base.target == TESSERA_TARGET_GFX90A ? 0x1p-14 : 0x1p-25;
}

example_outcome fmha_bwd_verify(example_problem *base, example_result *result) {
    fmha_bwd_problem *p = (fmha_bwd_problem *)base;
    if (check_untouched(p, result)) return result->outcome;
    if (p->args.sink_ptr && check_d_sink(p, result)) return result->outcome;
    int64_t count;
    int32_t *units = choose_units(p, result, &count);
    if (!units) return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the list of heads to verify");
    check check = {.problem = p, .result = result};
    pthread_mutex_init(&check.lock, NULL);
    const int failed =
        fmha_bwd_reference(&p->traits, &p->args, least_fp16(p), units, count, example_threads(base), check_row, &check);
    pthread_mutex_destroy(&check.lock);
    free(units);
    result->rows_checked = count;
    return failed ? example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the reference") : result->outcome;
}
