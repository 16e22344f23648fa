// SPDX-License-Identifier: MIT
// Counts the work of a problem, and compares its outputs with the reference.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fmha_fwd_problem.h"
#include "progress.h"
#include "tessera/kernel/fmha_fwd.h"

// Pairs of query and key that the mask lets through, and CK's bytes: each of q, k, v, o once.
void fmha_fwd_count(const example_problem *base, example_result *result) {
    const fmha_fwd_problem *p = (const fmha_fwd_problem *)base;
    const tessera_fmha_fwd_args *a = &p->args;
    double in_bytes = element_bits(fmha_fwd_input_element(p->dtype, p->fp8)) / 8.0;
    double out_bytes = element_bits(fmha_fwd_output_element(p->dtype, p->fp8)) / 8.0;
    double pairs = 0, q = 0, k = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        fmha_fwd_sequence s = fmha_fwd_sequence_of(&p->traits, a, b);
        if (s.skipped) continue;
        for (int32_t i = 0; i < s.seqlen_q; i++) pairs += fmha_fwd_keys_seen(a, s.seqlen_q, s.seqlen_k, i);
        q += s.seqlen_q;
        k += s.seqlen_k;
        result->rows += (int64_t)s.seqlen_q * a->nhead_q;
    }
    result->flop = 2.0 * a->nhead_q * pairs * (a->hdim_q + a->hdim_v);
    result->bytes = a->nhead_q * q * (in_bytes * a->hdim_q + out_bytes * a->hdim_v) +
                    a->nhead_k * k * in_bytes * (a->hdim_q + a->hdim_v);
}

// --- verification ----------------------------------------------------------------------------------------------------

typedef struct check {
    fmha_fwd_problem *problem;
    example_result *result;
    fmha_fwd_tolerance tolerance;
    pthread_mutex_t lock;
    double worst; // the row that the message is about
    example_progress progress;
} check;

static fmha_fwd_tolerance tolerance_of(const fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    fmha_fwd_tolerance t = fmha_fwd_tolerance_of(p->dtype, tessera_device_name(p->base.device));
    if (o->rtol >= 0) t.rtol = o->rtol;
    if (o->atol >= 0) t.atol = o->atol;
    if (o->lse_atol >= 0) t.lse_atol = o->lse_atol;
    return t;
}

static const uint8_t *randval_row(const fmha_fwd_problem *p, const fmha_fwd_row *row) {
    const tessera_fmha_fwd_args *a = &p->args;
    int64_t token = fmha_fwd_sequence_of(&p->traits, a, row->batch).token_q + row->query;
    int64_t batch = p->traits.is_group_mode ? 0 : row->batch * a->batch_stride_randval;
    return (const uint8_t *)a->rand_val_ptr + batch + row->head * a->nhead_stride_randval + token * a->stride_randval;
}

// The first key whose byte of dropout is wrong, or -1. Bytes of hidden keys may be unwritten; bytes past the logical
// length must be.
static int32_t wrong_randval(const fmha_fwd_problem *p, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const uint8_t *got = randval_row(p, row);
    for (int32_t j = 0; j < p->columns; j++) {
        int same = j < want->seqlen_k && got[j] == want->randval[j];
        int alone = (j >= want->seqlen_k || !want->visible[j]) && got[j] == EXAMPLE_UNWRITTEN_BYTE;
        if (!same && !alone) return j;
    }
    return -1;
}

static void check_row(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    check *c = user;
    fmha_fwd_problem *p = c->problem;
    (void)index;
    double error = 0, lse_error = 0, lse_ratio = 0;
    double ratio =
        fmha_fwd_compare_row(fmha_fwd_output_element(p->dtype, p->fp8), fmha_fwd_o_row(&p->traits, &p->args, *row),
                             want, p->args.hdim_v, &c->tolerance, &error);
    if (p->traits.has_lse)
        lse_ratio = fmha_fwd_compare_lse(*fmha_fwd_lse_of(&p->traits, &p->args, *row), want, &c->tolerance, &lse_error);
    int32_t wrong_byte = p->args.s_randval ? wrong_randval(p, row, want) : -1;
    double worst = wrong_byte >= 0 ? INFINITY : ratio > lse_ratio ? ratio : lse_ratio;

    pthread_mutex_lock(&c->lock);
    example_result *r = c->result;
    r->rows_checked++;
    example_progress_step(&c->progress);
    if (error > p->max_error) p->max_error = error;
    if (ratio > p->max_error_ratio) p->max_error_ratio = ratio;
    if (lse_error > p->max_lse_error) p->max_lse_error = lse_error;
    if (worst > 1 && worst > c->worst) {
        c->worst = worst;
        const char *what = wrong_byte >= 0 ? "rand_val" : ratio >= lse_ratio ? "o" : "lse";
        example_fail(r, EXAMPLE_WRONG_RESULT, "%s of sequence %d, head %d, query %d is wrong: ", what, row->batch,
                     row->head, row->query);
        size_t used = strlen(r->message), room = sizeof r->message - used;
        if (wrong_byte >= 0)
            snprintf(r->message + used, room, "the byte of key %d", wrong_byte);
        else
            snprintf(r->message + used, room, "off by %.3g, which is %.3g times what is allowed",
                     ratio >= lse_ratio ? error : lse_error, worst);
    }
    pthread_mutex_unlock(&c->lock);
}

// Whether the outputs of query `i`, for every head of sequence `b`, are as they were before the call.
static int untouched(const fmha_fwd_problem *p, int32_t b, int32_t i) {
    const tessera_fmha_fwd_args *a = &p->args;
    int64_t o_bytes = (int64_t)a->hdim_v * (element_bits(fmha_fwd_output_element(p->dtype, p->fp8)) / 8);
    for (int32_t h = 0; h < a->nhead_q; h++) {
        fmha_fwd_row row = {b, h, i};
        if (!example_all_bytes(fmha_fwd_o_row(&p->traits, a, row), o_bytes, p->base.buffers[BUFFER_O].unwritten))
            return 0;
        if (p->traits.has_lse &&
            !example_all_bytes(fmha_fwd_lse_of(&p->traits, a, row), sizeof(float), EXAMPLE_UNWRITTEN_BYTE))
            return 0;
        if (a->s_randval && !example_all_bytes(randval_row(p, &row), p->columns, EXAMPLE_UNWRITTEN_BYTE)) return 0;
    }
    return 1;
}

static example_outcome check_untouched(const fmha_fwd_problem *p, example_result *result) {
    for (int32_t b = 0; b < p->args.batch; b++) {
        fmha_fwd_sequence s = fmha_fwd_sequence_of(&p->traits, &p->args, b);
        int32_t room = p->options.mode ? p->room_q[b] : (int32_t)p->shape_seqlen_q;
        for (int32_t i = s.skipped ? 0 : s.seqlen_q; i < room; i++)
            if (!untouched(p, b, i))
                return example_fail(result, EXAMPLE_WRONG_RESULT, "query %d of sequence %d, which is %s, was written",
                                    i, b, s.skipped ? "to be skipped" : "past the logical length");
    }
    return EXAMPLE_OK;
}

// --- rows to check ---------------------------------------------------------------------------------------------------

static const double SAMPLED_ABOVE_FLOP = 137438953472.0; // 2^37
enum { SAMPLED_ROWS = 4096 };

static int sampled(const fmha_fwd_problem *p, const example_result *result) {
    return p->options.common.v != 3 && result->flop > SAMPLED_ABOVE_FLOP && result->rows > SAMPLED_ROWS;
}

// Whether a query is the first or last one of a tile, whose rows are folded over heads.
static int at_tile_edge(const fmha_fwd_problem *p, int32_t i, int32_t seqlen_q) {
    const int64_t tile =
        p->api == FMHA_FWD_PLAIN ? ((const tessera_fmha_fwd_instance *)p->base.instance)->tile.bm0 : 64;
    const int64_t fold = example_on_cpu(&p->base) ? p->args.nhead_q / p->args.nhead_k : 1;
    const int64_t first = i * fold, last = first + fold - 1;
    return i == seqlen_q - 1 || first % tile + fold >= tile || last % tile < fold;
}

// Picks one row from each of SAMPLED_ROWS equal ranges of all rows, by the seed. Rows are asked for in ascending order.
typedef struct picker {
    int64_t rows, part, picked;
    uint64_t state;
} picker;

static void pick_next(picker *p) {
    int64_t first = p->part * p->rows / SAMPLED_ROWS, next = ++p->part * p->rows / SAMPLED_ROWS;
    p->state = p->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    p->picked = first + (int64_t)((p->state >> 24) % (uint64_t)(next - first));
}

static int is_picked(picker *p, int64_t row) {
    if (row != p->picked) return 0;
    if (p->part < SAMPLED_ROWS) pick_next(p);
    return 1;
}

typedef struct row_list {
    fmha_fwd_row *rows;
    int64_t count, room;
} row_list;

static int append(row_list *list, fmha_fwd_row row) {
    if (list->count == list->room) {
        int64_t room = list->room ? list->room * 2 : 1024;
        fmha_fwd_row *more = realloc(list->rows, (size_t)room * sizeof *more);
        if (!more) return -1;
        *list = (row_list){more, list->count, room};
    }
    list->rows[list->count++] = row;
    return 0;
}

// Lists every row, or those that were picked and those at tile edges, in the order that is fastest for the reference.
// Returns -1 if memory ran out.
static int choose_rows(const fmha_fwd_problem *p, const example_result *result, row_list *list) {
    int some = sampled(p, result);
    picker picker = {.rows = result->rows, .state = p->base.seed};
    if (some) pick_next(&picker);
    int64_t n = 0;
    for (int32_t b = 0; b < p->args.batch; b++) {
        fmha_fwd_sequence s = fmha_fwd_sequence_of(&p->traits, &p->args, b);
        for (int32_t h = 0; h < p->args.nhead_q && !s.skipped; h++)
            for (int32_t i = 0; i < s.seqlen_q; i++, n++)
                if ((!some || is_picked(&picker, n) || at_tile_edge(p, i, s.seqlen_q)) &&
                    append(list, (fmha_fwd_row){b, h, i}) != 0)
                    return -1;
    }
    return 0;
}

example_outcome fmha_fwd_verify(example_problem *base, example_result *result) {
    fmha_fwd_problem *p = (fmha_fwd_problem *)base;
    if (check_untouched(p, result) || fmha_fwd_verify_appended(p, result)) return result->outcome;
    row_list list = {0};
    if (choose_rows(p, result, &list) != 0) {
        free(list.rows);
        return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the list of rows to verify");
    }
    check check = {.problem = p,
                   .result = result,
                   .tolerance = tolerance_of(p),
                   .progress = example_progress_begin("rows verified", list.count)};
    pthread_mutex_init(&check.lock, NULL);
    const int cuts = fmha_fwd_cuts_products(p->dtype, tessera_device_name(base->device));
    const int failed = fmha_fwd_reference(&p->traits, &p->args, p->fp8, cuts, list.rows, list.count,
                                          example_threads(base), check_row, &check);
    pthread_mutex_destroy(&check.lock);
    example_progress_end(&check.progress);
    free(list.rows);
    return failed ? example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the reference") : result->outcome;
}
