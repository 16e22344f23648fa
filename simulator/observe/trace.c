// SPDX-License-Identifier: MIT
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "machine/error.h"
#include "machine/launch.h"

enum { MAX_WAVES = 16, MAX_GROUPS = 64 }; // only a launch's first workgroups are traced

enum row { MFMA, VALU, SALU, LDS, MEMORY, WAIT, BARRIER, ROWS };
static const char *const row_names[ROWS] = {"MFMA", "VALU", "SALU", "LDS", "memory", "wait", "barrier"};

// Successive instructions of one row of the trace.
struct run {
    enum row row;
    uint64_t start, count;
    uintptr_t pc;
    const struct sim_code *code; // the first instruction
};

struct traced_wave {
    uint64_t clock;
    struct run run;
};

struct sim_trace {
    char *text;
    size_t bytes;
    FILE *out; // writes to text
    uint32_t process;
    struct traced_wave waves[MAX_WAVES];
};

static bool is_wanted(const struct sim_launch *launch) { return launch->sim->trace_path; }

static bool open_trace(struct sim_group *group) {
    group->trace = calloc(1, sizeof *group->trace);
    return group->trace;
}

static void close_trace(struct sim_group *group) { free(group->trace); }

static enum row row_of(const struct sim_code *code) {
    switch (code->effects.unit) {
    case SIM_UNIT_MATRIX:
        return MFMA;
    case SIM_UNIT_VALU:
        return VALU;
    case SIM_UNIT_LDS:
        return LDS;
    case SIM_UNIT_SCALAR_MEMORY:
    case SIM_UNIT_MEMORY:
    case SIM_UNIT_FLAT:
        return MEMORY;
    default:
        return code->inst.row->op == SIM_OP_s_waitcnt ? WAIT : code->inst.row->op == SIM_OP_s_barrier ? BARRIER : SALU;
    }
}

static unsigned thread_of(uint32_t wave, enum row row) { return wave * ROWS + row; }

static void write_run(const struct sim_wave *wave, uint64_t end) {
    const struct sim_trace *trace = wave->group->trace;
    const struct run *run = &trace->waves[wave->index].run;
    char text[128];
    if (run->count == 0) return;
    tessera_sim_print(&run->code->inst, text, sizeof text);
    fprintf(trace->out,
            "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%llu,\"dur\":%llu,\"name\":\"%s\","
            "\"args\":{\"instructions\":%llu,\"at\":\"+0x%llx\",\"first\":\"%s\"}},\n",
            trace->process, thread_of(wave->index, run->row), (unsigned long long)run->start,
            (unsigned long long)(end - run->start), run->code->inst.row->mnemonic, (unsigned long long)run->count,
            (unsigned long long)(run->pc - wave->group->launch->kernel->entry), text);
}

static void write_name(const struct sim_trace *trace, const char *what, unsigned thread, const char *name) {
    fprintf(trace->out, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}},\n",
            trace->process, thread, what, name);
}

static void write_names(const struct sim_group *group) {
    char name[256];
    snprintf(name, sizeof name, "%.200s, workgroup %u,%u,%u", group->launch->kernel->info.name, group->id[0],
             group->id[1], group->id[2]);
    write_name(group->trace, "process_name", 0, name);
    for (uint32_t wave = 0; wave < group->wave_count; wave++)
        for (enum row row = 0; row < ROWS; row++) {
            snprintf(name, sizeof name, "wave %u %s", wave, row_names[row]);
            write_name(group->trace, "thread_name", thread_of(wave, row), name);
        }
}

static void start_group(struct sim_group *group) {
    struct sim_trace *trace = group->trace;
    if (group->number >= MAX_GROUPS) return;
    memset(trace->waves, 0, sizeof trace->waves);
    trace->process = group->launch->trace_number * MAX_GROUPS + (uint32_t)group->number;
    trace->out = open_memstream(&trace->text, &trace->bytes);
    if (trace->out) write_names(group);
}

static void note_instruction(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_trace *trace = wave->group->trace;
    struct traced_wave *traced = &trace->waves[wave->index];
    struct run *run = &traced->run;
    if (!trace->out) return;
    const enum row row = row_of(code);
    if (run->count == 0 || row != run->row || row == WAIT || row == BARRIER) {
        write_run(wave, traced->clock);
        *run = (struct run){.row = row, .start = traced->clock, .pc = wave->pc, .code = code};
    }
    run->count++;
    traced->clock++;
}

static void align_clocks(struct sim_group *group) {
    struct sim_trace *trace = group->trace;
    uint64_t last = 0;
    for (uint32_t i = 0; i < group->wave_count; i++)
        if (group->waves[i].state == SIM_AT_BARRIER && trace->waves[i].clock > last) last = trace->waves[i].clock;
    for (uint32_t i = 0; i < group->wave_count; i++)
        if (group->waves[i].state == SIM_AT_BARRIER) trace->waves[i].clock = last;
}

// Writes the group's events to the GPU's file.
static void write_group(struct sim_group *group) {
    struct sim_trace *trace = group->trace;
    tessera_sim *sim = group->launch->sim;
    if (!trace->out) return;
    for (uint32_t i = 0; i < group->wave_count; i++) write_run(&group->waves[i], trace->waves[i].clock);
    fclose(trace->out);
    trace->out = NULL;
    pthread_mutex_lock(&sim->lock);
    fwrite(trace->text, 1, trace->bytes, sim->trace);
    pthread_mutex_unlock(&sim->lock);
    free(trace->text);
    trace->text = NULL;
}

// ---- the file

// The first launch opens the file: several GPUs may be given the same path, of which only one runs anything.
static tessera_status open_file(struct sim_launch *launch) {
    tessera_sim *sim = launch->sim;
    pthread_mutex_lock(&sim->lock);
    if (!sim->trace && (sim->trace = fopen(sim->trace_path, "w"))) fputs("[\n", sim->trace);
    launch->trace_number = sim->trace_count++;
    pthread_mutex_unlock(&sim->lock);
    if (!sim->trace)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "trace=%s: cannot be written", sim->trace_path);
    return TESSERA_SUCCESS;
}

// Writes the last event, because JSON allows no comma behind it. Readers also accept arrays without their end.
static void end_file(tessera_sim *sim) {
    if (!sim->trace) return;
    fputs("{\"ph\":\"M\",\"pid\":0,\"name\":\"trace_end\",\"args\":{}}\n]\n", sim->trace);
    fclose(sim->trace);
    sim->trace = NULL;
}

tessera_status tessera_sim_set_trace(tessera_sim *sim, const char *path) {
    char *copy = path && *path ? strdup(path) : NULL;
    if (path && *path && !copy) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a path");
    pthread_mutex_lock(&sim->lock);
    end_file(sim);
    free(sim->trace_path);
    sim->trace_path = copy;
    sim->trace_count = 0;
    pthread_mutex_unlock(&sim->lock);
    return TESSERA_SUCCESS;
}

const struct sim_observer tessera_sim_tracer = {
    .wanted = is_wanted,
    .begin = open_file,
    .open = open_trace,
    .close = close_trace,
    .start = start_group,
    .barrier = align_clocks,
    .finish = write_group,
    .next = note_instruction,
};
