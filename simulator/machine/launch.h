// SPDX-License-Identifier: MIT
// Launches, their workgroups, and the faults that end them.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "gpu.h"
#include "wave.h"

// A fault of one workgroup, before it becomes a report.
struct sim_trouble {
    tessera_sim_fault fault;
    uint64_t workgroup;
    uint32_t id[3];
    uint32_t wave;
    int32_t lane;
    uintptr_t pc;
    uint64_t address;
    char instruction[128];
    char what[256];
};

struct sim_trace;
struct sim_recording;
struct sim_clocked;

// A workgroup while it runs; a host thread uses one for all its workgroups.
struct sim_group {
    struct sim_launch *launch;
    uint64_t number; // in order of x, y, z
    uint32_t id[3];
    uint32_t size[3]; // work-items; smaller than the block at the grid's end
    uint32_t wave_count;
    struct sim_wave *waves;
    unsigned opened;                 // how many of launch->watch.observers have opened their state for the group
    struct sim_checks *checks;       // the sanitizer's state, one for each wave
    struct sim_trace *trace;         // the trace's state
    struct sim_recording *recording; // the clock's; NULL: the workgroup is not timed
    uint64_t random;                 // state of the random order
    uint8_t *lds, *lds_undefined;    // the latter like `undefined` of struct sim_range
    uint32_t lds_bytes;
    uint8_t *scratch; // scratch of all waves
    struct sim_trouble trouble;
};

struct sim_launch {
    tessera_sim *sim;
    const tessera_sim_kernel *kernel;
    const tessera_sim_launch_args *args;
    struct sim_watch watch;
    bool sanitize;
    tessera_sim_order order;
    uint64_t seed;
    tessera_sim_landing landing;
    uint32_t trace_number;
    int threads; // host threads
    uint32_t groups[3];
    uint64_t group_count;
    uint32_t waves_per_group;
    uint32_t lds_bytes;
    uint32_t lane_scratch_bytes;
    uint8_t *system; // memory that the kernel's system pointers point to: see dispatch.c
    uint8_t *kernarg;
    atomic_uint_fast64_t next_group;
    atomic_uint_fast64_t faulted_group; // the number of the lowest workgroup with a fault
    pthread_mutex_t lock;               // guards trouble and issued
    struct sim_trouble trouble;
    uint64_t issued[SIM_UNITS];                                            // instructions of all waves
    struct sim_clocked *clocked;                                           // the clock's state
    bool (*is_executed)(const struct sim_launch *launch, uint64_t number); // of workgroups; NULL: all are
};

// Notes a fault of the running instruction and stops the wave. `lane` -1: the wave as a whole.
void tessera_sim_trouble(struct sim_wave *wave, tessera_sim_fault fault, int lane, uint64_t address, const char *format,
                         ...) __attribute__((format(printf, 5, 6)));
// A random number below `limit`; `state` must not be 0.
uint32_t tessera_sim_random(uint64_t *state, uint32_t limit);
