// SPDX-License-Identifier: MIT
#include "clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "compute_unit.h"
#include "machine/error.h"
#include "sample.h"
#include "traffic.h"

// The clock's state of a launch.
struct sim_clocked {
    struct sim_sample sample;
    struct sim_recording **recordings;
    size_t count;
    float *own; // for each word of code: see struct sim_neighbours
    struct sim_replay sum;
    struct sim_profile profile;
    struct sim_timeline timeline; // of the first point
    struct sim_timed timed[SIM_MOST_POINTS * SIM_MOST_RESIDENT];
    size_t timed_count;
};

struct sim_clock *tessera_sim_clock_new(enum sim_arch arch) {
    struct sim_clock *clock = calloc(1, sizeof *clock);
    if (clock) clock->page = tessera_sim_page(arch);
    return clock;
}

void tessera_sim_clock_free(struct sim_clock *clock) {
    if (!clock) return;
    for (int i = 0; i < TESSERA_SIM_OUTPUT_COUNT; i++) free(clock->outputs[i]);
    free(clock);
}

bool tessera_sim_clock_write(struct sim_clock *clock, tessera_sim_output output, const char *path) {
    char *copy = path && *path ? strdup(path) : NULL;
    if (path && *path && !copy) return false;
    free(clock->outputs[output]);
    clock->outputs[output] = copy;
    if (output == TESSERA_SIM_OUTPUT_TIMELINE) clock->timelines = 0;
    return true;
}

// ---- recording

static bool is_wanted(const struct sim_launch *launch) { return launch->sim->clock->mode != TESSERA_SIM_CLOCK_OFF; }

static bool is_executed(const struct sim_launch *launch, uint64_t number) {
    return tessera_sim_is_sampled(&launch->clocked->sample, number);
}

static tessera_status begin(struct sim_launch *launch) {
    enum { MOST = SIM_MOST_POINTS * SIM_MOST_RESIDENT + SIM_NEIGHBOURS };
    struct sim_clocked *clocked = calloc(1, sizeof *clocked);
    if (clocked) clocked->recordings = calloc(MOST, sizeof *clocked->recordings);
    if (!clocked || !clocked->recordings) {
        free(clocked);
        return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the clock");
    }
    clocked->sample = tessera_sim_sample(launch, &launch->sim->clock->page);
    launch->clocked = clocked;
    if (launch->sim->clock->outputs[TESSERA_SIM_OUTPUT_ANNOTATION] &&
        !tessera_sim_profile_open(&clocked->profile, launch))
        return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the clock");
    if (launch->sim->clock->mode == TESSERA_SIM_CLOCK_SAMPLE) launch->is_executed = is_executed;
    return TESSERA_SUCCESS;
}

static void start_group(struct sim_group *group) {
    const bool wanted = tessera_sim_is_sampled(&group->launch->clocked->sample, group->number);
    group->recording = wanted ? tessera_sim_recording_new(group) : NULL;
}

static void next_instruction(struct sim_wave *wave, const struct sim_code *code) {
    if (wave->group->recording) tessera_sim_record(wave->group->recording, wave, code);
}

static void finish_group(struct sim_group *group) {
    struct sim_launch *launch = group->launch;
    if (!group->recording) return;
    pthread_mutex_lock(&launch->lock);
    launch->clocked->recordings[launch->clocked->count++] = group->recording;
    pthread_mutex_unlock(&launch->lock);
    group->recording = NULL;
}

// ---- what other units read too

static const struct sim_recording *find_recording(const struct sim_clocked *clocked, uint64_t number) {
    for (size_t i = 0; i < clocked->count; i++)
        if (clocked->recordings[i]->number == number) return clocked->recordings[i];
    return NULL;
}

// Of the first point's workgroup and those beside it.
static void find_own_shares(struct sim_clocked *clocked, const struct sim_launch *launch, uint32_t units) {
    const struct sim_recording *first = find_recording(clocked, clocked->sample.points[0].numbers[0]);
    struct sim_neighbour neighbours[SIM_NEIGHBOURS + 1] = {{first, 0}};
    size_t count = first ? 1 : 0;
    for (int i = 0; first && i < SIM_NEIGHBOURS; i++) {
        const struct sim_recording *other = find_recording(clocked, clocked->sample.neighbours[i]);
        if (other && other != first) neighbours[count++] = (struct sim_neighbour){other, tessera_sim_neighbours[i]};
    }
    if (count > 1)
        clocked->own =
            tessera_sim_own_shares(neighbours, count, launch->kernel->module->code_bytes / 4 + 1,
                                   (units + launch->sim->clock->page.dies - 1) / launch->sim->clock->page.dies);
}

static bool fits_mall(tessera_sim *sim) {
    size_t bytes = 0;
    pthread_rwlock_rdlock(&sim->memory.lock);
    for (size_t i = 0; i < sim->memory.count; i++)
        bytes += sim->memory.ranges[i].owned ? sim->memory.ranges[i].bytes : 0;
    pthread_rwlock_unlock(&sim->memory.lock);
    return bytes >> 20 < sim->clock->page.mall_megabytes;
}

// ---- replaying

static void add_replay(struct sim_replay *sum, const struct sim_replay *more) {
    sum->cycles += more->cycles;
    for (int i = 0; i < TESSERA_SIM_CAUSE_COUNT; i++) sum->cause[i] += more->cause[i];
    for (int i = 0; i < SIM_KINDS; i++) sum->issued[i] += more->issued[i];
    for (int i = 0; i < TESSERA_SIM_LEVEL_COUNT; i++) sum->bytes[i] += more->bytes[i];
    sum->valu_cycles += more->valu_cycles;
    sum->wave_cycles += more->wave_cycles;
    sum->lds_cycles += more->lds_cycles;
    sum->lds_conflicts += more->lds_conflicts;
    sum->loaded += more->loaded;
    sum->groups += more->groups;
}

// Replays a point; false where a recording or memory is lacking.
static bool replay_point(struct sim_launch *launch, const struct sim_neighbours *neighbours, uint32_t index) {
    struct sim_clocked *clocked = launch->clocked;
    const struct sim_point *point = &clocked->sample.points[index];
    const struct sim_recording *groups[SIM_MOST_RESIDENT];
    const bool refilled = (uint64_t)neighbours->units * clocked->sample.resident < launch->group_count;
    double stays[SIM_MOST_RESIDENT];
    struct sim_replay replay = {.profile = clocked->profile.issues ? &clocked->profile : NULL};
    if (index == 0 && launch->sim->clock->outputs[TESSERA_SIM_OUTPUT_TIMELINE]) replay.timeline = &clocked->timeline;
    for (uint32_t i = 0; i < point->count; i++) {
        groups[i] = find_recording(clocked, point->numbers[i]);
        if (!groups[i] || groups[i]->failed) return false;
    }
    if (!tessera_sim_replay(&launch->sim->clock->page, neighbours, groups, point->count, refilled, &replay, stays))
        return false;
    add_replay(&clocked->sum, &replay);
    if (index == 0) clocked->timeline.cycles = replay.cycles;
    for (uint32_t i = 0; i < point->count; i++)
        clocked->timed[clocked->timed_count++] = (struct sim_timed){point->numbers[i], stays[i]};
    return true;
}

static bool replay_all(struct sim_launch *launch) {
    const struct sim_parameters *page = &launch->sim->clock->page;
    const uint32_t units = launch->group_count < page->units ? (uint32_t)launch->group_count : page->units;
    find_own_shares(launch->clocked, launch, units);
    const struct sim_neighbours neighbours = {
        .units = units, .own = launch->clocked->own, .in_mall = fits_mall(launch->sim)};
    for (uint32_t i = 0; i < launch->clocked->sample.count; i++)
        if (!replay_point(launch, &neighbours, i)) return false;
    return true;
}

// ---- results

// Milliseconds. Where power is the limit, the work of a cycle times the clock times the square of the voltage is the
// same for all kernels, and that square rises about as the clock does.
static double clock_mhz(const struct sim_parameters *page, double matrix_share, double valu_share) {
    const double power = matrix_share + valu_share * page->valu_power / 100, dense = page->dense_power / 100.0;
    const double mhz = power > 0 ? page->dense_mhz * sqrt(dense / power) : page->clock_mhz;
    return mhz < page->clock_mhz ? mhz : page->clock_mhz;
}

static size_t count_matrix(const struct sim_recording *recording) {
    size_t sum = 0;
    for (uint32_t i = 0; i < recording->wave_count; i++)
        for (size_t k = 0; k < recording->waves[i].count; k++)
            sum += recording->waves[i].steps[k].code->kind == SIM_KIND_MATRIX;
    return sum;
}

// Matrix instructions of the whole launch.
static double all_matrix(const struct sim_launch *launch) {
    const struct sim_clocked *clocked = launch->clocked;
    double sum = 0;
    for (size_t i = 0; i < clocked->timed_count; i++)
        sum += (double)count_matrix(find_recording(clocked, clocked->timed[i].number));
    return sum * (double)launch->group_count / (double)clocked->timed_count;
}

// The bytes of the whole launch by levels. Stores leave L2 once, in whole lines. Where workgroups had not ended,
// replays have seen more of their loads than of all that they do.
static void add_bytes(const struct sim_launch *launch, double bytes[TESSERA_SIM_LEVEL_COUNT]) {
    const struct sim_clocked *clocked = launch->clocked;
    const tessera_sim_level memory = fits_mall(launch->sim) ? TESSERA_SIM_LEVEL_MALL : TESSERA_SIM_LEVEL_HBM;
    double loaded = 0, stored = 0;
    for (size_t i = 0; i < clocked->timed_count; i++) {
        const struct sim_recording *recording = find_recording(clocked, clocked->timed[i].number);
        loaded += (double)tessera_sim_loaded_lines(recording);
        stored += (double)tessera_sim_stored_lines(recording) * launch->sim->clock->page.line;
    }
    const double groups = (double)launch->group_count / (double)clocked->timed_count;
    const double scale = clocked->sum.loaded ? loaded / (double)clocked->sum.loaded * groups : 0;
    for (int i = 0; i < TESSERA_SIM_LEVEL_COUNT; i++) bytes[i] = (double)clocked->sum.bytes[i] * scale;
    bytes[TESSERA_SIM_LEVEL_L2] += stored * groups;
    bytes[memory] += stored * groups;
}

// Cycles that memory takes for all that it loads and stores, if it never rests.
static double memory_cycles(const struct sim_parameters *page, const double bytes[TESSERA_SIM_LEVEL_COUNT]) {
    const double mall = page->mall_gbs ? bytes[TESSERA_SIM_LEVEL_MALL] / page->mall_gbs : 0;
    const double hbm = bytes[TESSERA_SIM_LEVEL_HBM] / page->hbm_gbs;
    return fmax(mall, hbm) * page->clock_mhz / 1000 * 100 / page->mixed_rate;
}

static tessera_sim_timing make_timing(const struct sim_launch *launch, const struct sim_estimate *estimate) {
    const struct sim_parameters *page = &launch->sim->clock->page;
    const struct sim_clocked *clocked = launch->clocked;
    const struct sim_replay *sum = &clocked->sum;
    const double slots = SIM_SIMDS * (double)sum->cycles, scale = (double)launch->group_count / sum->groups;
    tessera_sim_timing timing = {.launches = 1, .sampling_error = estimate->error};
    add_bytes(launch, timing.bytes);
    timing.cycles = fmax(estimate->cycles, floor(memory_cycles(page, timing.bytes)) + page->launch_cycles);
    const double at_work = timing.cycles > 0 ? estimate->cycles / timing.cycles : 1, all = slots / at_work;
    for (int i = 0; i < TESSERA_SIM_CAUSE_COUNT; i++) timing.share[i] = slots > 0 ? (double)sum->cause[i] / all : 0;
    timing.share[TESSERA_SIM_CAUSE_MEMORY] += 1 - at_work;
    timing.valu_busy = slots > 0 ? (double)sum->valu_cycles / all : 0;
    timing.clock_mhz = clock_mhz(page, timing.share[TESSERA_SIM_CAUSE_MATRIX], timing.valu_busy);
    timing.ms = timing.cycles / timing.clock_mhz / 1e3;
    timing.ms_band = timing.ms * page->clock_band / 100;
    timing.matrix = all_matrix(launch);
    if (sum->issued[SIM_KIND_MATRIX]) timing.cycles_a_matrix = all / (double)sum->issued[SIM_KIND_MATRIX];
    timing.waves_a_simd = slots > 0 ? (double)sum->wave_cycles / slots : 0;
    timing.lds_cycles = (double)sum->lds_cycles * scale;
    timing.lds_conflicts = (double)sum->lds_conflicts * scale;
    return timing;
}

// Adds a launch to the sum: shares and the like are weighted by cycles.
static void add_timing(tessera_sim_timing *sum, const tessera_sim_timing *more) {
    const double all = sum->cycles + more->cycles, old = all > 0 ? sum->cycles / all : 0, new = 1 - old;
    for (int i = 0; i < TESSERA_SIM_CAUSE_COUNT; i++) sum->share[i] = old * sum->share[i] + new * more->share[i];
    for (int i = 0; i < TESSERA_SIM_LEVEL_COUNT; i++) sum->bytes[i] += more->bytes[i];
    sum->sampling_error = old * sum->sampling_error + new * more->sampling_error;
    sum->cycles_a_matrix = old * sum->cycles_a_matrix + new * more->cycles_a_matrix;
    sum->valu_busy = old * sum->valu_busy + new * more->valu_busy;
    sum->waves_a_simd = old * sum->waves_a_simd + new * more->waves_a_simd;
    sum->launches += more->launches;
    sum->cycles = all;
    sum->ms += more->ms;
    sum->ms_band += more->ms_band;
    sum->clock_mhz = sum->ms > 0 ? sum->cycles / sum->ms / 1e3 : 0;
    sum->matrix += more->matrix;
    sum->lds_cycles += more->lds_cycles;
    sum->lds_conflicts += more->lds_conflicts;
}

static tessera_status cannot_write(const char *what, const char *path) {
    return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "%s=%s: cannot be written", what, path);
}

static tessera_status annotate(const struct sim_launch *launch) {
    const char *path = launch->sim->clock->outputs[TESSERA_SIM_OUTPUT_ANNOTATION];
    if (!path || tessera_sim_annotate(path, launch, &launch->clocked->profile)) return TESSERA_SUCCESS;
    return cannot_write("annotation", path);
}

static tessera_status write_timeline(const struct sim_launch *launch) {
    struct sim_clock *clock = launch->sim->clock;
    const char *path = clock->outputs[TESSERA_SIM_OUTPUT_TIMELINE];
    const struct sim_clocked *clocked = launch->clocked;
    if (!path) return TESSERA_SUCCESS;
    if (clocked->timeline.failed) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the timeline");
    if (tessera_sim_timeline_write(path, clock->timelines++, launch, &clocked->sample.points[0], &clocked->timeline))
        return TESSERA_SUCCESS;
    return cannot_write("timeline", path);
}

static tessera_status write_line(const struct sim_launch *launch, const tessera_sim_timing *timing) {
    const char *path = launch->sim->clock->outputs[TESSERA_SIM_OUTPUT_TIMING];
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!path) return TESSERA_SUCCESS;
    if (file) {
        fprintf(file, "{\"kernel\": \"%s\", \"arch\": \"%s\", \"modelled_cycles\": %.0f, \"sampling_error\": %.4f",
                launch->kernel->info.name, tessera_sim_arch_names[launch->sim->arch], timing->cycles,
                timing->sampling_error);
        fprintf(file, ", \"resident\": %u, \"matrix\": %.0f, \"cycles_a_matrix\": %.3f, \"lds_conflicts\": %.0f",
                launch->clocked->sample.resident, timing->matrix, timing->cycles_a_matrix, timing->lds_conflicts);
        for (int i = 0; i < TESSERA_SIM_CAUSE_COUNT; i++)
            fprintf(file, ", \"%s\": %.4f", tessera_sim_cause_name((tessera_sim_cause)i), timing->share[i]);
        fputs("}\n", file);
    }
    if (file && fclose(file) == 0) return TESSERA_SUCCESS;
    return cannot_write("timing", path);
}

static tessera_status time_launch(struct sim_launch *launch) {
    if (!replay_all(launch)) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the clock");
    const struct sim_clocked *clocked = launch->clocked;
    const struct sim_estimate estimate = tessera_sim_estimate(
        launch, &launch->sim->clock->page, clocked->sample.resident, clocked->timed, clocked->timed_count);
    const tessera_sim_timing timing = make_timing(launch, &estimate);
    pthread_mutex_lock(&launch->sim->lock);
    add_timing(&launch->sim->clock->timing, &timing);
    tessera_status status = write_line(launch, &timing);
    if (status == TESSERA_SUCCESS) status = annotate(launch);
    if (status == TESSERA_SUCCESS) status = write_timeline(launch);
    pthread_mutex_unlock(&launch->sim->lock);
    return status;
}

static tessera_status end(struct sim_launch *launch, const tessera_sim_launch_stats *stats) {
    struct sim_clocked *clocked = launch->clocked;
    (void)stats;
    const bool whole = launch->trouble.fault == TESSERA_SIM_FAULT_NONE;
    const tessera_status status = whole ? time_launch(launch) : TESSERA_SUCCESS;
    for (size_t i = 0; i < clocked->count; i++) tessera_sim_recording_free(clocked->recordings[i]);
    free(clocked->recordings);
    free(clocked->own);
    tessera_sim_profile_close(&clocked->profile);
    free(clocked->timeline.spans);
    free(clocked);
    return status;
}

const struct sim_observer tessera_sim_clock_observer = {
    .decoded = tessera_sim_find_kind,
    .wanted = is_wanted,
    .begin = begin,
    .end = end,
    .start = start_group,
    .next = next_instruction,
    .finish = finish_group,
};

// ---- for callers

tessera_status tessera_sim_set_clock(tessera_sim *sim, tessera_sim_clock clock) {
    if ((unsigned)clock >= TESSERA_SIM_CLOCK_COUNT)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "clock=%d: accepted are 0 to %d", (int)clock,
                                TESSERA_SIM_CLOCK_COUNT - 1);
    sim->clock->mode = clock;
    return TESSERA_SUCCESS;
}

tessera_status tessera_sim_set_output(tessera_sim *sim, tessera_sim_output output, const char *path) {
    if ((unsigned)output >= TESSERA_SIM_OUTPUT_COUNT)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "output=%d: accepted are 0 to %d", (int)output,
                                TESSERA_SIM_OUTPUT_COUNT - 1);
    pthread_mutex_lock(&sim->lock);
    const bool done = tessera_sim_clock_write(sim->clock, output, path);
    pthread_mutex_unlock(&sim->lock);
    return done ? TESSERA_SUCCESS : tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a path");
}

void tessera_sim_take_timing(tessera_sim *sim, tessera_sim_timing *out) {
    pthread_mutex_lock(&sim->lock);
    *out = sim->clock->timing;
    memset(&sim->clock->timing, 0, sizeof sim->clock->timing);
    pthread_mutex_unlock(&sim->lock);
}

const char *tessera_sim_cause_name(tessera_sim_cause cause) {
    static const char *const names[TESSERA_SIM_CAUSE_COUNT] = {"mfma",   "valu",    "transcendental", "lds",
                                                               "memory", "barrier", "issue",          "idle"};
    return (unsigned)cause < TESSERA_SIM_CAUSE_COUNT ? names[cause] : "";
}

bool tessera_sim_parameter_at(const tessera_sim *sim, size_t index, tessera_sim_parameter *out) {
    if (index >= tessera_sim_parameter_count) return false;
    const struct sim_parameter *row = &tessera_sim_parameters[index];
    const uint32_t value = *(const uint32_t *)((const char *)&sim->clock->page + row->offset);
    *out = (tessera_sim_parameter){row->name, value, row->unit, row->meaning, row->source, row->fit};
    return true;
}
