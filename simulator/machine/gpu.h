// SPDX-License-Identifier: MIT
// A simulated GPU: the state that its launches share.
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "decode/decode.h"
#include "memory.h"
#include "observer.h"
#include "tessera/simulator.h"

// A resource of global wave sync (execute/gws.c): a semaphore, or a barrier with its phase.
struct sim_gws {
    int32_t counter;
    uint32_t released; // how often all its waves were released
    bool flag;
};

enum { SIM_GWS_RESOURCES = 64 };

struct sim_clock;

struct tessera_sim {
    enum sim_arch arch;
    const struct sim_observer *const *observers; // ends with NULL
    int threads;
    bool sanitize;
    tessera_sim_order order; // for launches that do not name an order
    uint64_t seed;
    tessera_sim_landing landing;
    struct sim_memory memory;
    pthread_mutex_t lock; // guards the list of modules, and callbacks
    tessera_sim_module *modules;
    tessera_sim_report_fn report;
    void *report_user;
    void *hostcall_buffer;
    tessera_sim_hostcall_fn hostcall;
    void *hostcall_user;
    char *trace_path;     // NULL: no trace
    FILE *trace;          // opened by the first launch
    uint32_t trace_count; // launches in it
    char *stats_path;     // NULL: stats are not written
    struct sim_clock *clock;
    struct sim_gws gws[SIM_GWS_RESOURCES];
};

extern const char *const tessera_sim_arch_names[SIM_ARCHS];
uint32_t tessera_sim_lds_limit(enum sim_arch arch);
