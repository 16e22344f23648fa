// SPDX-License-Identifier: MIT
// What a call does once it was checked: regions of its workspace, some of them zeroed, and after that steps in their
// order. An operation fills a plan in, and op/call.c does the rest, the same for every operation and device.
#ifndef TESSERA_RUNTIME_OP_PLAN_H
#define TESSERA_RUNTIME_OP_PLAN_H

#include "device/device.h"
#include "op/select.h"

enum {
    TESSERA_PLAN_ROWS = 8,
    TESSERA_PLAN_REGIONS = 8,
    TESSERA_PLAN_STEPS = 8,
    TESSERA_PLAN_ALIGNMENT = 64, // of regions, of a thread's scratch, of room
    TESSERA_PLAN_ROOM = 16384,   // bytes for what steps point at
    TESSERA_PLAN_COPY = 4096     // bytes that one copy may have
};

// An instance that a call takes, and the operation whose packs hold its code.
struct tessera_taken {
    const tessera_instance *row;
    const char *op;
};

struct tessera_region {
    const char *name; // for messages
    size_t bytes;
    bool zeroed;  // before the first step
    void *memory; // aligned; known when steps are asked for
};

// Work of the CPU: called once for every index below the step's count, one after the other or at the same time.
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

// Large, and never cleared as a whole: only what the counts say is there.
struct tessera_plan {
    const tessera_device_facts *facts;
    const tessera_instance *row; // that was chosen for the call
    int threads;                 // of the CPU, that scratch is for

    uint32_t row_count, region_count, step_count;
    struct tessera_taken rows[TESSERA_PLAN_ROWS]; // the first is that of the call
    struct tessera_region regions[TESSERA_PLAN_REGIONS];
    struct tessera_step steps[TESSERA_PLAN_STEPS];

    size_t room_used;
    unsigned char room[TESSERA_PLAN_ROOM] __attribute__((aligned(64)));
};

// ---- what an operation calls; what does not fit in a plan fails

// Chooses the instance of another table that a step is to run: that of least cost for `traits`, a struct of that
// table's schema, and `call`, which its functions read.
tessera_status tessera_plan_choose(struct tessera_plan *plan, const struct tessera_kernels *kernels, const void *traits,
                                   const void *call, const tessera_instance **out);

tessera_status tessera_add_region(struct tessera_plan *plan, const char *name, size_t bytes, bool zeroed);

// Memory that lasts as long as the plan, its contents any.
tessera_status tessera_plan_room(struct tessera_plan *plan, size_t bytes, void **out);

// The launch of a row's kernel: `grid` workgroups of the row's threads, and beside the LDS that the kernel declares
// `lds_bytes` of it. The argument, which is passed by value, must last as long as the plan.
tessera_status tessera_add_launch(struct tessera_plan *plan, const tessera_instance *row, const uint32_t grid[3],
                                  uint32_t lds_bytes, const void *argument, size_t bytes);

// Work of the CPU on at most `workers` threads, each of which has `scratch_bytes` (a multiple of 64) of `scratch`.
tessera_status tessera_add_work(struct tessera_plan *plan, tessera_work_body *body, void *context, int64_t count,
                                int64_t workers, void *scratch, size_t scratch_bytes);

// A copy of what the host made, whole words of four bytes, which must last as long as the plan. A GPU waits for it
// unless the stream captures.
tessera_status tessera_add_copy(struct tessera_plan *plan, void *to, const void *from, size_t bytes);

// ---- what op/call.c calls

void tessera_begin_plan(struct tessera_plan *plan, const tessera_device_facts *facts, const char *op,
                        const tessera_instance *row, int threads);

// Of all regions, each rounded up to its alignment.
size_t tessera_plan_workspace(const struct tessera_plan *plan);
tessera_status tessera_check_workspace(const struct tessera_plan *plan, const void *workspace, size_t bytes);
void tessera_place_regions(struct tessera_plan *plan, void *workspace);

// Loads the code of all rows of a GPU.
tessera_status tessera_load_plan(const tessera_device *device, const struct tessera_plan *plan);

// Zeroes regions and makes the steps. Where a GPU's code would have to be loaded while the stream captures, nothing is
// put into the stream.
tessera_status tessera_run_plan(const tessera_device *device, const struct tessera_plan *plan, void *stream);

#endif
