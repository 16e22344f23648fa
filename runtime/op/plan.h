// SPDX-License-Identifier: MIT
// What a call does after its checks: it zeroes some regions of its workspace and then runs steps one after the other.
// An operation fills in the plan; op/call.c does the rest, in the same way for every operation and device.
#ifndef TESSERA_RUNTIME_OP_PLAN_H
#define TESSERA_RUNTIME_OP_PLAN_H

#include "device/device.h"
#include "op/select.h"

enum {
    TESSERA_PLAN_ROWS = 8,
    TESSERA_PLAN_REGIONS = 8,
    TESSERA_PLAN_STEPS = 8,
    TESSERA_PLAN_ALIGNMENT = 64, // of regions, of a thread's scratch, of room
    TESSERA_PLAN_ROOM = 16384,   // bytes for objects that steps point to
    TESSERA_PLAN_COPY = 4096     // the most bytes of one copy
};

// An instance that a call takes, how it cuts the work, and the operation whose packs hold its code.
struct tessera_taken {
    const tessera_instance *row;
    struct tessera_cut cut;
    const char *op;
};

struct tessera_region {
    const char *name; // for messages
    size_t bytes;
    bool zeroed;  // before the first step
    void *memory; // aligned; set before the operation adds steps
};

// Work of the CPU: called once for every index below the step's count, in any order, by several threads at once.
// `scratch` is the thread's own.
typedef void tessera_work_body(void *context, int64_t index, void *scratch);

struct tessera_step {
    enum { TESSERA_STEP_LAUNCH, TESSERA_STEP_WORK, TESSERA_STEP_COPY } kind;
    union {
        struct {
            struct tessera_gpu_kernel kernel;
            struct tessera_launch how;
            const void *argument;
            size_t bytes;
        } launch;
        struct {
            tessera_work_body *body;
            void *context;
            int64_t count;
            int64_t workers; // threads
            char *scratch;
            size_t scratch_bytes; // of one thread
        } work;
        struct {
            void *to;
            const void *from;
            size_t bytes;
        } copy;
    } of;
};

// The struct is large and never cleared as a whole: only elements below the counts are valid.
struct tessera_plan {
    const tessera_device_facts *facts;
    const tessera_device *device; // set before the operation adds steps
    const tessera_instance *row;  // chosen for the call
    int threads;                  // of the CPU, each of which needs scratch

    uint32_t row_count, region_count, step_count;
    struct tessera_taken rows[TESSERA_PLAN_ROWS]; // the first is that of the call
    struct tessera_region regions[TESSERA_PLAN_REGIONS];
    struct tessera_step steps[TESSERA_PLAN_STEPS];

    size_t room_used;
    unsigned char room[TESSERA_PLAN_ROOM] __attribute__((aligned(64)));
};

// ---- functions for operations; they fail where the plan has no room left

// Chooses an instance of another table for a step: `wanted`, or if that is NULL that of least cost for `traits`, a
// struct that the table's schema describes, and `call`, which the kernels' functions read.
tessera_status tessera_plan_choose(struct tessera_plan *plan, const struct tessera_kernels *kernels, const void *traits,
                                   const void *call, const tessera_instance *wanted, const tessera_instance **out);

// How an instance that the plan has taken cuts the work.
struct tessera_cut tessera_plan_cut(const struct tessera_plan *plan, const tessera_instance *row);

tessera_status tessera_add_region(struct tessera_plan *plan, const char *name, size_t bytes, bool zeroed);

// The memory of the region of this name, which was added: whose steps share a plan need not know what came before.
void *tessera_region_memory(const struct tessera_plan *plan, const char *name);

// Zeroed memory that lasts as long as the plan: equal calls have equal bytes of padding, too.
tessera_status tessera_plan_room(struct tessera_plan *plan, size_t bytes, void **out);

// Adds a launch of a row's kernel with `grid` workgroups of the row's threads, and `lds_bytes` of LDS beside what the
// kernel declares. The argument, which is passed by value, must last as long as the plan.
tessera_status tessera_add_launch(struct tessera_plan *plan, const tessera_instance *row, const uint32_t grid[3],
                                  uint32_t lds_bytes, const void *argument, size_t bytes);

// Likewise, in clusters of `cluster` workgroups along x (NVIDIA's GPUs).
tessera_status tessera_add_launch_of_clusters(struct tessera_plan *plan, const tessera_instance *row,
                                              const uint32_t grid[3], uint32_t lds_bytes, uint32_t cluster,
                                              const void *argument, size_t bytes);

// Adds work of the CPU on at most `workers` threads, each with `scratch_bytes` (a multiple of 64) of `scratch`.
tessera_status tessera_add_work(struct tessera_plan *plan, tessera_work_body *body, void *context, int64_t count,
                                int64_t workers, void *scratch, size_t scratch_bytes);

// Adds a copy of host memory, a multiple of four bytes, which must last as long as the plan.
tessera_status tessera_add_copy(struct tessera_plan *plan, void *to, const void *from, size_t bytes);

// ---- functions for op/call.c

void tessera_begin_plan(struct tessera_plan *plan, const tessera_device_facts *facts, const char *op,
                        const struct tessera_choice *chosen, int threads);

// Bytes of all regions, each rounded up to its alignment.
size_t tessera_plan_workspace(const struct tessera_plan *plan);
tessera_status tessera_check_workspace(const struct tessera_plan *plan, const void *workspace, size_t bytes);
void tessera_place_regions(struct tessera_plan *plan, void *workspace);

// Loads the code of all rows of a GPU.
tessera_status tessera_load_plan(const tessera_device *device, const struct tessera_plan *plan);

// Zeroes regions and runs the steps. Where a GPU's code would have to be loaded while the stream captures, it fails and
// puts nothing into the stream.
tessera_status tessera_run_plan(const tessera_device *device, const struct tessera_plan *plan, void *stream);

#endif
