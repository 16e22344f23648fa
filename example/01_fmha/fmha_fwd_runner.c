// SPDX-License-Identifier: MIT
// Launches a problem through the public API, times it, and checks everything that it may have written.
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include "fmha_fwd_problem.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tessera/kernel/fmha_fwd.h"

// --- launch ----------------------------------------------------------------------------------------------------------

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Memory for `bytes` with guard zones around it.
static fmha_fwd_outcome make_workspace(fmha_fwd_problem *p, size_t bytes, fmha_fwd_result *result) {
    free(p->workspace);
    p->workspace = NULL;
    p->workspace_bytes = (int64_t)bytes;
    p->args.workspace_ptr = NULL;
    p->args.workspace_size = bytes;
    if (bytes == 0) return FMHA_FWD_OK;
    size_t rounded = (bytes + 63) / 64 * 64;
    p->workspace = aligned_alloc(64, rounded + 2 * FMHA_FWD_GUARD);
    if (!p->workspace)
        return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory for %zu bytes of workspace", bytes);
    memset(p->workspace, FMHA_FWD_GUARD_BYTE, FMHA_FWD_GUARD);
    memset(p->workspace + FMHA_FWD_GUARD + bytes, FMHA_FWD_GUARD_BYTE, rounded - bytes + FMHA_FWD_GUARD);
    p->args.workspace_ptr = p->workspace + FMHA_FWD_GUARD;
    return FMHA_FWD_OK;
}

// Picks the instance for its names, makes the workspace and has the code loaded.
static fmha_fwd_outcome prepare(fmha_fwd_problem *p, fmha_fwd_result *result) {
    if (fmha_fwd_upload(p, result)) return result->outcome;
    const tessera_fmha_fwd_args args = fmha_fwd_device_args(p);
    const tessera_fmha_fwd_instance *instance;
    tessera_status status = tessera_fmha_fwd_select(tessera_device_get_facts(p->device), &p->traits, &args, &instance);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "tessera_fmha_fwd_select");
    snprintf(result->short_name, sizeof result->short_name, "%s", tessera_fmha_fwd_instance_name(instance));
    tessera_fmha_fwd_ck_name(instance, &p->traits, &args, result->ck_name, sizeof result->ck_name);
    p->tile_rows = instance->tile.bm0;
    p->fold = fmha_fwd_on_cpu(p) ? p->args.nhead_q / p->args.nhead_k : 1;

    size_t bytes = 0;
    status = tessera_fmha_fwd_workspace_size(p->device, &p->traits, &args, &bytes);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "tessera_fmha_fwd_workspace_size");
    if (make_workspace(p, bytes, result)) return result->outcome;
    status = tessera_fmha_fwd_prepare(p->device, &p->traits, &args);
    return status == TESSERA_SUCCESS ? FMHA_FWD_OK : fmha_fwd_fail_status(result, status, "tessera_fmha_fwd_prepare");
}

// Pairs of query and key that the mask lets through, and CK's bytes: each of q, k, v, o once.
static void count_work(const fmha_fwd_problem *p, fmha_fwd_result *result) {
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

// Runs and times on the CPU. Under a limit, warming up may take half of it, and a single run that exceeds it is the
// measurement.
static tessera_status run_on_cpu(const fmha_fwd_problem *p, fmha_fwd_result *result, double *seconds) {
    const fmha_fwd_options *o = &p->options;
    double limit = o->time_limit_s > 0 ? o->time_limit_s : INFINITY, start = now(), spent = 0;
    for (int32_t n = -o->warmup; n < o->repeat; n++) {
        double before = now();
        if (n < 0 && n > -o->warmup && before - start > limit / 2) continue;
        if (result->runs > 0 && before - start > limit) break;
        tessera_status status = tessera_fmha_fwd(p->device, &p->traits, &p->args, NULL);
        double took = now() - before;
        if (status != TESSERA_SUCCESS) return status;
        if (n < 0 && took <= limit) continue;
        spent += took;
        result->runs++;
    }
    *seconds = spent / result->runs;
    return TESSERA_SUCCESS;
}

// The same on a GPU, whose runs follow one another without the host between them.
static tessera_status run_on_gpu(const fmha_fwd_problem *p, fmha_fwd_result *result, double *seconds) {
    const fmha_fwd_options *o = &p->options;
    const tessera_fmha_fwd_args args = fmha_fwd_device_args(p);
    tessera_status status = TESSERA_SUCCESS;
    for (int32_t n = 0; n < o->warmup && status == TESSERA_SUCCESS; n++)
        status = tessera_fmha_fwd(p->device, &p->traits, &args, NULL);
    if (status == TESSERA_SUCCESS) status = tessera_device_synchronize(p->device);
    double start = now();
    for (; result->runs < o->repeat && status == TESSERA_SUCCESS; result->runs++)
        status = tessera_fmha_fwd(p->device, &p->traits, &args, NULL);
    if (status == TESSERA_SUCCESS) status = tessera_device_synchronize(p->device);
    *seconds = (now() - start) / o->repeat;
    return status;
}

fmha_fwd_outcome fmha_fwd_launch(fmha_fwd_problem *p, fmha_fwd_result *result) {
    memset(result, 0, sizeof *result);
    if (prepare(p, result)) return result->outcome;
    count_work(p, result);
    double seconds = 0;
    tessera_status status = fmha_fwd_on_cpu(p) ? run_on_cpu(p, result, &seconds) : run_on_gpu(p, result, &seconds);
    if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "tessera_fmha_fwd");
    result->time_ms = seconds * 1e3;
    result->simulated = fmha_fwd_is_simulated(p);
    if (!result->simulated) {
        result->tflops = result->flop / seconds / 1e12;
        result->gbps = result->bytes / seconds / 1e9;
    }
    return fmha_fwd_download(p, result);
}

// --- verification ----------------------------------------------------------------------------------------------------

typedef struct check {
    const fmha_fwd_problem *problem;
    fmha_fwd_result *result;
    fmha_fwd_tolerance tolerance;
    pthread_mutex_t lock;
    double worst; // the row that the message is about
    fmha_fwd_progress progress;
} check;

static fmha_fwd_tolerance tolerance_of(const fmha_fwd_problem *p) {
    const fmha_fwd_options *o = &p->options;
    fmha_fwd_tolerance t = fmha_fwd_tolerance_of(p->dtype, !fmha_fwd_on_cpu(p));
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

// The first key whose byte of dropout is wrong, or -1. Those of hidden keys may be left alone, those beyond must be.
static int32_t wrong_randval(const fmha_fwd_problem *p, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    const uint8_t *got = randval_row(p, row);
    for (int32_t j = 0; j < p->max_seqlen_k; j++) {
        int same = j < want->seqlen_k && got[j] == want->randval[j];
        int alone = (j >= want->seqlen_k || !want->visible[j]) && got[j] == FMHA_FWD_UNWRITTEN_BYTE;
        if (!same && !alone) return j;
    }
    return -1;
}

static void check_row(void *user, int64_t index, const fmha_fwd_row *row, const fmha_fwd_reference_row *want) {
    check *c = user;
    const fmha_fwd_problem *p = c->problem;
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
    fmha_fwd_result *r = c->result;
    r->rows_checked++;
    fmha_fwd_progress_step(&c->progress);
    if (error > r->max_error) r->max_error = error;
    if (ratio > r->max_error_ratio) r->max_error_ratio = ratio;
    if (lse_error > r->max_lse_error) r->max_lse_error = lse_error;
    if (worst > 1 && worst > c->worst) {
        c->worst = worst;
        const char *what = wrong_byte >= 0 ? "rand_val" : ratio >= lse_ratio ? "o" : "lse";
        fmha_fwd_fail(r, FMHA_FWD_WRONG_RESULT, "%s of sequence %d, head %d, query %d is wrong: ", what, row->batch,
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

static int all_bytes(const void *begin, int64_t count, uint8_t value) {
    const uint8_t *bytes = begin;
    return count <= 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, (size_t)count - 1) == 0);
}

static fmha_fwd_outcome check_guards(const fmha_fwd_problem *p, fmha_fwd_result *result) {
    if (fmha_fwd_input_sum(p) != p->input_sum)
        return fmha_fwd_fail(result, FMHA_FWD_WRONG_RESULT, "an input, or a guard zone around one, was written");
    int64_t end = p->input_bytes;
    for (int id = BUFFER_O; id <= BUFFER_COUNT; id++) {
        if (id < BUFFER_COUNT && !p->buffers[id].used) continue;
        int64_t next = id < BUFFER_COUNT ? p->buffers[id].offset : p->arena_bytes;
        if (!all_bytes(p->arena + end, next - end, FMHA_FWD_GUARD_BYTE))
            return fmha_fwd_fail(result, FMHA_FWD_WRONG_RESULT, "a guard zone next to %s was written",
                                 fmha_fwd_buffer_name(id < BUFFER_COUNT ? (fmha_fwd_buffer_id)id : BUFFER_O));
        if (id < BUFFER_COUNT) end = next + p->buffers[id].bytes;
    }
    if (p->workspace &&
        (!all_bytes(p->workspace, FMHA_FWD_GUARD, FMHA_FWD_GUARD_BYTE) ||
         !all_bytes(p->workspace + FMHA_FWD_GUARD + p->workspace_bytes, FMHA_FWD_GUARD, FMHA_FWD_GUARD_BYTE)))
        return fmha_fwd_fail(result, FMHA_FWD_WRONG_RESULT, "a guard zone next to the workspace was written");
    return FMHA_FWD_OK;
}

// Is what belongs to query `i` of every head of sequence `b` as it was before the call?
static int untouched(const fmha_fwd_problem *p, int32_t b, int32_t i) {
    const tessera_fmha_fwd_args *a = &p->args;
    int64_t o_bytes = (int64_t)a->hdim_v * (element_bits(fmha_fwd_output_element(p->dtype, p->fp8)) / 8);
    for (int32_t h = 0; h < a->nhead_q; h++) {
        fmha_fwd_row row = {b, h, i};
        if (!all_bytes(fmha_fwd_o_row(&p->traits, a, row), o_bytes, fmha_fwd_unwritten_byte(p, BUFFER_O))) return 0;
        if (p->traits.has_lse &&
            !all_bytes(fmha_fwd_lse_of(&p->traits, a, row), sizeof(float), FMHA_FWD_UNWRITTEN_BYTE))
            return 0;
        if (a->s_randval && !all_bytes(randval_row(p, &row), p->max_seqlen_k, FMHA_FWD_UNWRITTEN_BYTE)) return 0;
    }
    return 1;
}

static fmha_fwd_outcome check_untouched(const fmha_fwd_problem *p, fmha_fwd_result *result) {
    for (int32_t b = 0; b < p->args.batch; b++) {
        fmha_fwd_sequence s = fmha_fwd_sequence_of(&p->traits, &p->args, b);
        int32_t room = p->options.mode ? p->room_q[b] : (int32_t)p->shape_seqlen_q;
        for (int32_t i = s.skipped ? 0 : s.seqlen_q; i < room; i++)
            if (!untouched(p, b, i))
                return fmha_fwd_fail(result, FMHA_FWD_WRONG_RESULT, "query %d of sequence %d, which is %s, was written",
                                     i, b, s.skipped ? "to be skipped" : "past the logical length");
    }
    return FMHA_FWD_OK;
}

// --- rows to check ---------------------------------------------------------------------------------------------------

static const double SAMPLED_ABOVE_FLOP = 137438953472.0; // 2^37
enum { SAMPLED_ROWS = 4096 };

static int sampled(const fmha_fwd_problem *p, const fmha_fwd_result *result) {
    return p->options.v != 3 && result->flop > SAMPLED_ABOVE_FLOP && result->rows > SAMPLED_ROWS;
}

// First and last query of every tile, whose rows are folded over heads.
static int at_tile_edge(const fmha_fwd_problem *p, int32_t i, int32_t seqlen_q) {
    int64_t fold = p->fold, tile = p->tile_rows, first = i * fold, last = first + fold - 1;
    return i == seqlen_q - 1 || first % tile + fold >= tile || last % tile < fold;
}

// One row of each of SAMPLED_ROWS equal parts of all rows, by the seed; rows are asked for in order.
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

// Every row, or those picked and those at tile edges. Sorted as the reference likes them. Returns -1 when memory ran
// out.
static int choose_rows(const fmha_fwd_problem *p, const fmha_fwd_result *result, row_list *list) {
    int some = sampled(p, result);
    picker picker = {.rows = result->rows, .state = p->seed};
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

fmha_fwd_outcome fmha_fwd_verify(fmha_fwd_problem *p, fmha_fwd_result *result) {
    if (p->options.v == 0) return result->outcome;
    row_list list = {0};
    if (choose_rows(p, result, &list) != 0) {
        free(list.rows);
        return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory for the list of rows to verify");
    }
    check check = {.problem = p,
                   .result = result,
                   .tolerance = tolerance_of(p),
                   .progress = fmha_fwd_progress_begin("rows verified", list.count)};
    int threads = p->options.threads > 0 ? p->options.threads : tessera_num_threads();
    pthread_mutex_init(&check.lock, NULL);
    int failed = check_guards(p, result) == FMHA_FWD_OK && check_untouched(p, result) == FMHA_FWD_OK &&
                 fmha_fwd_reference(&p->traits, &p->args, p->fp8, list.rows, list.count, threads, check_row, &check);
    pthread_mutex_destroy(&check.lock);
    fmha_fwd_progress_end(&check.progress);
    free(list.rows);
    if (failed) return fmha_fwd_fail(result, FMHA_FWD_DEVICE_ERROR, "no memory for the reference");
    result->verification = result->outcome == FMHA_FWD_OK ? FMHA_FWD_VALID : FMHA_FWD_INVALID;
    return result->outcome;
}

fmha_fwd_outcome fmha_fwd_run(const fmha_fwd_options *options, fmha_fwd_result *result) {
    fmha_fwd_problem *problem;
    if (fmha_fwd_build(options, &problem, result) == FMHA_FWD_OK && fmha_fwd_launch(problem, result) == FMHA_FWD_OK)
        fmha_fwd_verify(problem, result);
    fmha_fwd_destroy(problem);
    return result->outcome;
}
