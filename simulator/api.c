// SPDX-License-Identifier: MIT
// Opening and closing a simulated GPU, and what it is told.
#include <stdlib.h>
#include <string.h>

#include "check/deadlock.h"
#include "check/hazards.h"
#include "check/races.h"
#include "check/sanitize.h"
#include "check/shadow.h"
#include "check/waits.h"
#include "clock/clock.h"
#include "machine/error.h"
#include "machine/gpu.h"
#include "observe/coverage.h"
#include "observe/report.h"
#include "observe/stats.h"
#include "observe/trace.h"

static const struct sim_observer *const observers[] = {
    &tessera_sim_coverage,   &tessera_sim_sanitizer,    &tessera_sim_deadlock_check, &tessera_sim_hazard_check,
    &tessera_sim_wait_check, &tessera_sim_shadow_check, &tessera_sim_race_check,     &tessera_sim_tracer,
    &tessera_sim_reporter,   &tessera_sim_statistics,   &tessera_sim_clock_observer, NULL,
};

static bool find_arch(const char *text, enum sim_arch *arch) {
    const size_t length = strcspn(text, ":");
    for (int i = 0; i < SIM_ARCHS; i++)
        if (strlen(tessera_sim_arch_names[i]) == length && strncmp(text, tessera_sim_arch_names[i], length) == 0) {
            *arch = (enum sim_arch)i;
            return true;
        }
    return false;
}

// ---- the environment

static const char *const order_names[TESSERA_SIM_ORDER_COUNT] = {
    [TESSERA_SIM_ORDER_FORWARD] = "forward",
    [TESSERA_SIM_ORDER_BACKWARD] = "backward",
    [TESSERA_SIM_ORDER_ALTERNATE] = "alternate",
    [TESSERA_SIM_ORDER_RANDOM] = "random",
};
static const char *const landing_names[TESSERA_SIM_LANDING_COUNT] = {
    [TESSERA_SIM_LANDING_LATE] = "late",
    [TESSERA_SIM_LANDING_AT_ONCE] = "at-once",
    [TESSERA_SIM_LANDING_RANDOM] = "random",
};

// The index of the name that `text` starts with, up to its end or a colon; 0 where it is none of them.
static int find_name(const char *const *names, int count, const char *text) {
    const size_t length = strcspn(text, ":");
    for (int i = 1; i < count; i++)
        if (strlen(names[i]) == length && strncmp(text, names[i], length) == 0) return i;
    return 0;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *out) {
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value > most) return false;
    *out = value;
    return true;
}

static bool read_order(tessera_sim *sim, const char *text) {
    const char *colon = strchr(text, ':');
    const int order = find_name(order_names, TESSERA_SIM_ORDER_COUNT, text);
    if (order) sim->order = (tessera_sim_order)order;
    if (colon) return order == TESSERA_SIM_ORDER_RANDOM && parse_number(colon + 1, UINT64_MAX, &sim->seed);
    return order != 0;
}

static bool read_landing(tessera_sim *sim, const char *text) {
    sim->landing = (tessera_sim_landing)find_name(landing_names, TESSERA_SIM_LANDING_COUNT, text);
    return sim->landing != TESSERA_SIM_LANDING_DEFAULT && !strchr(text, ':');
}

static bool read_sanitize(tessera_sim *sim, const char *text) {
    uint64_t on = 0;
    const bool good = parse_number(text, 1, &on);
    sim->sanitize = on;
    return good;
}

static bool read_trace(tessera_sim *sim, const char *text) {
    sim->trace_path = strdup(text);
    return sim->trace_path != NULL;
}

enum { MOST_THREADS = 1024 };

static bool read_threads(tessera_sim *sim, const char *text) {
    uint64_t threads = 0;
    const bool good = parse_number(text, MOST_THREADS, &threads);
    sim->threads = (int)threads;
    return good;
}

static bool read_stats(tessera_sim *sim, const char *text) {
    sim->stats_path = strdup(text);
    return sim->stats_path != NULL;
}

static bool read_clock(tessera_sim *sim, const char *text) {
    static const char *const names[TESSERA_SIM_CLOCK_COUNT] = {"off", "on", "sample"};
    for (int i = 0; i < TESSERA_SIM_CLOCK_COUNT; i++)
        if (strcmp(text, names[i]) == 0) return tessera_sim_set_clock(sim, (tessera_sim_clock)i) == TESSERA_SUCCESS;
    return false;
}

static bool read_parameters(tessera_sim *sim, const char *text) {
    return tessera_sim_change_page(&sim->clock->page, text);
}

static bool read_timing(tessera_sim *sim, const char *text) {
    return tessera_sim_clock_write(sim->clock, TESSERA_SIM_OUTPUT_TIMING, text);
}

static bool read_annotation(tessera_sim *sim, const char *text) {
    return tessera_sim_clock_write(sim->clock, TESSERA_SIM_OUTPUT_ANNOTATION, text);
}

static bool read_timeline(tessera_sim *sim, const char *text) {
    return tessera_sim_clock_write(sim->clock, TESSERA_SIM_OUTPUT_TIMELINE, text);
}

static const struct {
    const char *name;
    bool (*read)(tessera_sim *sim, const char *text);
    const char *accepted;
} settings[] = {
    {"TESSERA_SIM_SANITIZE", read_sanitize, "0 and 1"},
    {"TESSERA_SIM_ORDER", read_order, "forward, backward, alternate, random and random:SEED"},
    {"TESSERA_SIM_LANDING", read_landing, "late, at-once and random"},
    {"TESSERA_SIM_THREADS", read_threads, "0 to 1024"},
    {"TESSERA_SIM_TRACE", read_trace, "a path"},
    {"TESSERA_SIM_STATS", read_stats, "a path"},
    {"TESSERA_SIM_CLOCK", read_clock, "off, on and sample"},
    {"TESSERA_SIM_PARAMETERS", read_parameters, "NAME=NUMBER,NAME=NUMBER with names of docs/simulator.md"},
    {"TESSERA_SIM_TIMING", read_timing, "a path"},
    {"TESSERA_SIM_ANNOTATE", read_annotation, "a path"},
    {"TESSERA_SIM_TIMELINE", read_timeline, "a path"},
};

static tessera_status read_environment(tessera_sim *sim) {
    sim->order = TESSERA_SIM_ORDER_FORWARD;
    sim->landing = TESSERA_SIM_LANDING_LATE;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *text = getenv(settings[i].name);
        if (text && *text && !settings[i].read(sim, text))
            return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "%s=%s: accepted are %s", settings[i].name, text,
                                    settings[i].accepted);
    }
    return TESSERA_SUCCESS;
}

tessera_status tessera_sim_open(const char *arch, tessera_sim **out) {
    enum sim_arch found;
    if (!arch || !find_arch(arch, &found))
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "arch=%s: accepted are gfx90a, gfx942 and gfx950",
                                arch ? arch : "NULL");
    tessera_sim *sim = calloc(1, sizeof *sim);
    if (sim) sim->clock = tessera_sim_clock_new(found);
    if (!sim || !sim->clock) {
        free(sim);
        return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a GPU");
    }
    sim->arch = found;
    sim->observers = observers;
    const tessera_status status = read_environment(sim);
    if (status != TESSERA_SUCCESS) {
        tessera_sim_clock_free(sim->clock);
        free(sim->trace_path);
        free(sim->stats_path);
        free(sim);
        return status;
    }
    tessera_sim_memory_open(&sim->memory);
    pthread_mutex_init(&sim->lock, NULL);
    *out = sim;
    return TESSERA_SUCCESS;
}

void tessera_sim_close(tessera_sim *sim) {
    if (!sim) return;
    while (sim->modules) tessera_sim_unload(sim->modules);
    tessera_sim_set_trace(sim, NULL);
    tessera_sim_memory_close(&sim->memory);
    pthread_mutex_destroy(&sim->lock);
    free(sim->stats_path);
    tessera_sim_clock_free(sim->clock);
    free(sim);
}

tessera_status tessera_sim_set_threads(tessera_sim *sim, int count) {
    if (count < 0 || count > MOST_THREADS)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "count=%d: accepted are 0 to %d", count, MOST_THREADS);
    sim->threads = count;
    return TESSERA_SUCCESS;
}

void tessera_sim_set_sanitize(tessera_sim *sim, bool on) { sim->sanitize = on; }

void tessera_sim_set_report(tessera_sim *sim, tessera_sim_report_fn fn, void *user) {
    pthread_mutex_lock(&sim->lock);
    sim->report = fn;
    sim->report_user = user;
    pthread_mutex_unlock(&sim->lock);
}

void tessera_sim_set_hostcall(tessera_sim *sim, void *buffer, tessera_sim_hostcall_fn fn, void *user) {
    pthread_mutex_lock(&sim->lock);
    sim->hostcall_buffer = buffer;
    sim->hostcall = fn;
    sim->hostcall_user = user;
    pthread_mutex_unlock(&sim->lock);
}
