// SPDX-License-Identifier: MIT
// Builds a problem, launches it through the public API, times it, and has everything checked that it may have written.
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A function of the operation failed.
static example_outcome fail_call(const example_problem *p, example_result *result, tessera_status status,
                                 const char *which) {
    char call[96];
    snprintf(call, sizeof call, "tessera_%s%s", p->program->calls->operation, which);
    return example_fail_status(result, status, call);
}

// ---- build

// Sets a field of args to the row of this name; 0 where the table has none.
static int set_instance(example_problem *p, size_t field, const tessera_table *table, const char *name) {
    const void **const instance = example_field(p->args, field);
    for (uint32_t i = 0; i < table->row_count; i++)
        if (strcmp(name, tessera_row(table, i)->name) == 0) *instance = tessera_row(table, i);
    return *instance != NULL;
}

// The instance that was asked for by its name: the operation's own, or one that attends for it.
static example_outcome find_instance(example_problem *p, example_result *result) {
    const char *const name = p->options->instance;
    const example_program *const program = p->program;
    if (!name || !*name) return EXAMPLE_OK;
    if (set_instance(p, program->calls->instance, program->calls->get_table(), name)) return EXAMPLE_OK;
    if (program->get_attending && set_instance(p, program->attends, program->get_attending(), name)) return EXAMPLE_OK;
    return example_fail(result, EXAMPLE_NO_INSTANCE, "-instance=%s: there is none; -explain=2 lists all", name);
}

static example_outcome build(example_problem *p, const void *arguments, example_result *result) {
    const example_program *const program = p->program;
    p->seed = p->options->seed ? p->options->seed : (uint64_t)time(NULL) * 1000003 + (uint64_t)clock();
    if (program->settle(p, arguments, result)) return result->outcome;
    tessera_status status = tessera_device_open(p->options->device, &p->device);
    if (status != TESSERA_SUCCESS) return example_fail_status(result, status, "-device");
    if (find_instance(p, result)) return result->outcome;
    if (program->lay_out(p, result)) return result->outcome;
    if (example_allocate(p, result)) return result->outcome;
    if (program->put) program->put(p);
    status = p->program->calls->check(p->traits, p->args);
    if (status != TESSERA_SUCCESS) return fail_call(p, result, status, "_check");
    if (example_begin_outputs(p, result)) return result->outcome;
    program->fill(p);
    if (p->options->v) p->input_sum = example_input_sum(p);
    example_guard(p);
    return EXAMPLE_OK;
}

example_outcome example_build(const example_program *program, const void *arguments, example_problem **problem,
                              example_result *result) {
    memset(result, 0, sizeof *result);
    *problem = NULL;
    example_problem *p = calloc(1, program->problem_bytes);
    if (!p) return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory");
    p->program = program;
    p->options = arguments;
    if (build(p, arguments, result) != EXAMPLE_OK) {
        example_destroy(p);
        return result->outcome;
    }
    *problem = p;
    return EXAMPLE_OK;
}

void example_destroy(example_problem *p) {
    if (!p) return;
    example_unguard(p);
    example_free_device_memory(p);
    example_end_outputs(p);
    if (p->program->destroy) p->program->destroy(p);
    free(p->arena);
    tessera_device_close(p->device);
    free(p);
}

// ---- launch

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Picks the instance for its names, makes the workspace and has the code loaded.
static example_outcome prepare(example_problem *p, example_result *result) {
    const example_calls *const calls = p->program->calls;
    if (example_upload(p, result)) return result->outcome;
    tessera_status status = calls->select(tessera_device_get_facts(p->device), p->traits, p->device_args, &p->instance);
    if (status != TESSERA_SUCCESS) return fail_call(p, result, status, "_select");
    snprintf(result->short_name, sizeof result->short_name, "%s", p->instance->name);
    calls->ck_name(p->instance, p->traits, p->device_args, result->ck_name, sizeof result->ck_name);

    size_t bytes = 0;
    status = calls->workspace_bytes(p->device, p->traits, p->device_args, &bytes);
    if (status != TESSERA_SUCCESS) return fail_call(p, result, status, "_workspace_size");
    if (example_make_workspace(p, bytes, result)) return result->outcome;
    status = calls->prepare(p->device, p->traits, p->device_args);
    return status == TESSERA_SUCCESS ? EXAMPLE_OK : fail_call(p, result, status, "_prepare");
}

static tessera_status call(const example_problem *p) {
    return p->program->calls->call(p->device, p->traits, p->device_args);
}

// Runs and times on the CPU. Under a limit, warming up may take half of it, and a single run that exceeds it is the
// measurement.
static tessera_status run_on_cpu(const example_problem *p, example_result *result, double *seconds) {
    const example_options *o = p->options;
    double limit = o->time_limit_s > 0 ? o->time_limit_s : INFINITY, start = now(), spent = 0;
    for (int32_t n = -o->warmup; n < o->repeat; n++) {
        double before = now();
        if (n < 0 && n > -o->warmup && before - start > limit / 2) continue;
        if (result->runs > 0 && before - start > limit) break;
        tessera_status status = call(p);
        double took = now() - before;
        if (status != TESSERA_SUCCESS) return status;
        if (n < 0 && took <= limit) continue;
        spent += took;
        result->runs++;
    }
    *seconds = spent / result->runs;
    return TESSERA_SUCCESS;
}

// The modelled time of one of several runs.
static tessera_status take_timing(const example_problem *p, example_result *result) {
    tessera_sim_timing *t = &result->modelled;
    tessera_status status = tessera_device_take_timing(p->device, t);
    double share = 1.0 / result->runs;
    t->launches = (uint64_t)((double)t->launches * share);
    t->cycles *= share, t->ms *= share, t->ms_band *= share;
    t->matrix *= share, t->lds_cycles *= share, t->lds_conflicts *= share;
    for (int i = 0; i < TESSERA_SIM_LEVEL_COUNT; i++) t->bytes[i] *= share;
    return status;
}

static tessera_status set_clock(const example_problem *p) {
    if (!example_is_simulated(p)) return TESSERA_SUCCESS;
    const tessera_sim_clock clock = p->options->sample ? TESSERA_SIM_CLOCK_SAMPLE : TESSERA_SIM_CLOCK_ON;
    const tessera_status status = tessera_device_set_clock(p->device, clock);
    return status == TESSERA_SUCCESS ? example_set_outputs(p) : status;
}

// The same on a GPU, whose runs follow one another without the host between them.
static tessera_status run_on_gpu(const example_problem *p, example_result *result, double *seconds) {
    const example_options *o = p->options;
    tessera_status status = TESSERA_SUCCESS;
    for (int32_t n = 0; n < o->warmup && status == TESSERA_SUCCESS; n++) status = call(p);
    if (status == TESSERA_SUCCESS) status = tessera_device_synchronize(p->device);
    if (status == TESSERA_SUCCESS) status = set_clock(p);
    double start = now();
    for (; result->runs < o->repeat && status == TESSERA_SUCCESS; result->runs++) status = call(p);
    if (status == TESSERA_SUCCESS) status = tessera_device_synchronize(p->device);
    *seconds = (now() - start) / o->repeat;
    if (status == TESSERA_SUCCESS && example_is_simulated(p)) status = take_timing(p, result);
    return status;
}

example_outcome example_launch(example_problem *p, example_result *result) {
    memset(result, 0, sizeof *result);
    if (prepare(p, result)) return result->outcome;
    p->program->count(p, result);
    double seconds = 0;
    tessera_status status = example_on_cpu(p) ? run_on_cpu(p, result, &seconds) : run_on_gpu(p, result, &seconds);
    if (status != TESSERA_SUCCESS) return fail_call(p, result, status, "");
    result->time_ms = seconds * 1e3;
    result->simulated = example_is_simulated(p);
    if (result->simulated) seconds = result->modelled.ms / 1e3;
    if (seconds > 0) {
        result->tflops = result->flop / seconds / 1e12;
        result->gbps = result->bytes / seconds / 1e9;
    }
    return example_download(p, result);
}

// ---- verify

example_outcome example_verify(example_problem *p, example_result *result) {
    if (p->options->v == 0) return result->outcome;
    if (example_check_guards(p, result) == EXAMPLE_OK) p->program->verify(p, result);
    if (result->outcome == EXAMPLE_OK) result->verification = EXAMPLE_VALID;
    if (result->outcome == EXAMPLE_WRONG_RESULT) result->verification = EXAMPLE_INVALID;
    return result->outcome;
}

example_outcome example_run(const example_program *program, const void *arguments, example_result *result) {
    example_problem *problem;
    if (example_build(program, arguments, &problem, result) == EXAMPLE_OK &&
        example_launch(problem, result) == EXAMPLE_OK)
        example_verify(problem, result);
    example_destroy(problem);
    return result->outcome;
}
