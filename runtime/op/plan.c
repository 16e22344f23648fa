// SPDX-License-Identifier: MIT
// Plans: filling them in, checking the workspace, running them.
#include "op/plan.h"

#include <stdatomic.h>

#include "guard.h"
#include "integers.h"

void tessera_begin_plan(struct tessera_plan *plan, const tessera_device_facts *facts, const char *op,
                        const struct tessera_choice *chosen, int threads) {
    plan->facts = facts;
    plan->device = NULL;
    plan->row = chosen->row;
    plan->threads = threads;
    plan->rows[0] = (struct tessera_taken){chosen->row, chosen->cut, op};
    plan->row_count = 1;
    plan->region_count = plan->step_count = 0;
    plan->room_used = 0;
}

// ---- filling in

// The failure of adding too much, which means a mistake in the operation's code.
static tessera_status too_much(const char *what, size_t most) {
    return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "a plan has room for %zu %s", most, what);
}

tessera_status tessera_plan_choose(struct tessera_plan *plan, const struct tessera_kernels *kernels, const void *traits,
                                   const void *call, const tessera_instance *wanted, const tessera_instance **out) {
    struct tessera_request r;
    struct tessera_choice chosen;
    if (plan->row_count == TESSERA_PLAN_ROWS) return too_much("rows", TESSERA_PLAN_ROWS);
    r.kernels = kernels;
    r.table = kernels->get_table();
    r.traits = traits;
    r.call = call;
    r.wanted = wanted;
    tessera_ask(&r, plan->facts);
    TRY(tessera_choose(&r, &chosen));
    plan->rows[plan->row_count++] = (struct tessera_taken){chosen.row, chosen.cut, r.table->schema->operation};
    *out = chosen.row;
    return TESSERA_SUCCESS;
}

static const struct tessera_taken *find_row(const struct tessera_plan *plan, const tessera_instance *row) {
    uint32_t i = 0;
    while (i + 1 < plan->row_count && plan->rows[i].row != row) i++;
    return &plan->rows[i];
}

struct tessera_cut tessera_plan_cut(const struct tessera_plan *plan, const tessera_instance *row) {
    return find_row(plan, row)->cut;
}

tessera_status tessera_add_region(struct tessera_plan *plan, const char *name, size_t bytes, bool zeroed) {
    if (plan->region_count == TESSERA_PLAN_REGIONS) return too_much("regions", TESSERA_PLAN_REGIONS);
    plan->regions[plan->region_count++] = (struct tessera_region){name, bytes, zeroed, NULL};
    return TESSERA_SUCCESS;
}

void *tessera_region_memory(const struct tessera_plan *plan, const char *name) {
    uint32_t i = 0;
    while (i + 1 < plan->region_count && strcmp(plan->regions[i].name, name) != 0) i++;
    return plan->regions[i].memory;
}

tessera_status tessera_plan_room(struct tessera_plan *plan, size_t bytes, void **out) {
    if (bytes > TESSERA_PLAN_ROOM - plan->room_used) return too_much("bytes", TESSERA_PLAN_ROOM);
    *out = memset(plan->room + plan->room_used, 0, bytes);
    plan->room_used += (size_t)tessera_round_up((int64_t)bytes, TESSERA_PLAN_ALIGNMENT);
    return TESSERA_SUCCESS;
}

static tessera_status add_step(struct tessera_plan *plan, const struct tessera_step *step) {
    if (plan->step_count == TESSERA_PLAN_STEPS) return too_much("steps", TESSERA_PLAN_STEPS);
    plan->steps[plan->step_count++] = *step;
    return TESSERA_SUCCESS;
}

tessera_status tessera_add_launch_of_clusters(struct tessera_plan *plan, const tessera_instance *row,
                                              const uint32_t grid[3], uint32_t lds_bytes, uint32_t cluster,
                                              const void *argument, size_t bytes) {
    const bool overlaps = plan->step_count && plan->steps[plan->step_count - 1].kind == TESSERA_STEP_LAUNCH;
    const struct tessera_launch how = {{grid[0], grid[1], grid[2]}, {row->threads, 1, 1}, lds_bytes, cluster, overlaps};
    return add_step(plan, &(struct tessera_step){.kind = TESSERA_STEP_LAUNCH,
                                                 .of.launch = {.kernel = {find_row(plan, row)->op, row->symbol},
                                                               .how = how,
                                                               .argument = argument,
                                                               .bytes = bytes}});
}

tessera_status tessera_add_launch(struct tessera_plan *plan, const tessera_instance *row, const uint32_t grid[3],
                                  uint32_t lds_bytes, const void *argument, size_t bytes) {
    return tessera_add_launch_of_clusters(plan, row, grid, lds_bytes, 0, argument, bytes);
}

tessera_status tessera_add_work(struct tessera_plan *plan, tessera_work_body *body, void *context, int64_t count,
                                int64_t workers, void *scratch, size_t scratch_bytes) {
    const int64_t most = tessera_min(tessera_min(workers, plan->threads), count);
    return add_step(plan, &(struct tessera_step){.kind = TESSERA_STEP_WORK,
                                                 .of.work = {body, context, count, most, scratch, scratch_bytes}});
}

tessera_status tessera_add_copy(struct tessera_plan *plan, void *to, const void *from, size_t bytes) {
    if (bytes > TESSERA_PLAN_COPY) return too_much("bytes of a copy", TESSERA_PLAN_COPY);
    return add_step(plan, &(struct tessera_step){.kind = TESSERA_STEP_COPY, .of.copy = {to, from, bytes}});
}

// ---- the workspace

static size_t room_of(const struct tessera_region *region) {
    return (size_t)tessera_round_up((int64_t)region->bytes, TESSERA_PLAN_ALIGNMENT);
}

size_t tessera_plan_workspace(const struct tessera_plan *plan) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < plan->region_count; i++) bytes += room_of(&plan->regions[i]);
    return bytes;
}

static void list_regions(const struct tessera_plan *plan, char *text, size_t size) {
    struct tessera_text out = {text, size, 0};
    for (uint32_t i = 0; i < plan->region_count; i++)
        tessera_text_add(&out, "%s%s %zu", i ? ", " : "", plan->regions[i].name, room_of(&plan->regions[i]));
}

tessera_status tessera_check_workspace(const struct tessera_plan *plan, const void *workspace, size_t bytes) {
    const size_t needed = tessera_plan_workspace(plan);
    char regions[256];
    if (needed == 0) return TESSERA_SUCCESS;
    if (workspace && (uintptr_t)workspace % TESSERA_PLAN_ALIGNMENT == 0 && bytes >= needed) return TESSERA_SUCCESS;
    list_regions(plan, regions, sizeof regions);
    if (!workspace)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace_ptr is NULL: this call needs %zu bytes (%s)", needed,
                            regions);
    if (bytes < needed)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace_size is %zu: this call needs %zu (%s)", bytes, needed,
                            regions);
    return tessera_fail(TESSERA_ERROR_WORKSPACE,
                        "workspace_ptr is %p: must be aligned to %d bytes, as what it holds (%s)", workspace,
                        TESSERA_PLAN_ALIGNMENT, regions);
}

void tessera_place_regions(struct tessera_plan *plan, void *workspace) {
    char *next = workspace;
    for (uint32_t i = 0; i < plan->region_count; i++) {
        plan->regions[i].memory = next;
        if (plan->regions[i].bytes) next += room_of(&plan->regions[i]); // without a workspace next is NULL
    }
}

// ---- on a GPU

tessera_status tessera_load_plan(const tessera_device *device, const struct tessera_plan *plan) {
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const struct tessera_gpu_kernel kernel = {plan->rows[i].op, plan->rows[i].row->symbol};
        if (kernel.symbol) TRY(tessera_gpu_load(device, &kernel));
    }
    return TESSERA_SUCCESS;
}

static tessera_status run_on_gpu(const tessera_device *device, const struct tessera_plan *plan, void *stream) {
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == TESSERA_STEP_LAUNCH)
            TRY(tessera_gpu_make_ready(device, &plan->steps[i].of.launch.kernel, stream));
    for (uint32_t i = 0; i < plan->region_count; i++)
        if (plan->regions[i].zeroed && plan->regions[i].bytes)
            TRY(tessera_gpu_zero(device, plan->regions[i].memory, plan->regions[i].bytes, stream));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct tessera_step *const step = &plan->steps[i];
        if (step->kind == TESSERA_STEP_COPY)
            TRY(tessera_gpu_copy_small(device, step->of.copy.to, step->of.copy.from, step->of.copy.bytes, stream));
        else
            TRY(tessera_gpu_launch(device, &step->of.launch.kernel, &step->of.launch.how, step->of.launch.argument,
                                   step->of.launch.bytes, stream));
    }
    return TESSERA_SUCCESS;
}

// ---- on the CPU

struct job {
    const struct tessera_step *step;
    atomic_llong next; // the index that the next free thread takes
};

static void work(void *context, int64_t worker) {
    struct job *const job = context;
    const struct tessera_step *const step = job->step;
    void *const scratch = step->of.work.scratch + (size_t)worker * step->of.work.scratch_bytes;
    int64_t index;
    while ((index = atomic_fetch_add(&job->next, 1)) < step->of.work.count)
        step->of.work.body(step->of.work.context, index, scratch);
}

static void run_work(const struct tessera_step *step) {
    struct job job;
    job.step = step;
    atomic_init(&job.next, 0);
    tessera_parallel(step->of.work.workers, work, &job);
}

static void run_on_cpu(const struct tessera_plan *plan) {
    for (uint32_t i = 0; i < plan->region_count; i++)
        if (plan->regions[i].zeroed && plan->regions[i].bytes)
            memset(plan->regions[i].memory, 0, plan->regions[i].bytes);
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == TESSERA_STEP_COPY)
            memcpy(plan->steps[i].of.copy.to, plan->steps[i].of.copy.from, plan->steps[i].of.copy.bytes);
        else
            run_work(&plan->steps[i]);
}

tessera_status tessera_run_plan(const tessera_device *device, const struct tessera_plan *plan, void *stream) {
    if (device->gpu) return run_on_gpu(device, plan, stream);
    run_on_cpu(plan);
    return TESSERA_SUCCESS;
}
