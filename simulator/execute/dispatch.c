// SPDX-License-Identifier: MIT
// Launches: checks arguments, fills in hidden ones and the dispatch packet, spreads workgroups over host threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "fetch.h"
#include "machine/access.h"
#include "machine/error.h"
#include "run.h"
#include "runtime/device/cpu.h"

enum {
    MAX_WORKGROUP = 1024,
    DEFAULT_STACK = 16 * 1024,
    SCRATCH_GRANULE = 16, // a lane's scratch is a multiple of so many bytes
    MAX_LANE_SCRATCH = 512 * 1024,
    POISON = 0xcd,
};

// The system memory that a launch lends to the kernel, in one block.
enum {
    PACKET_OFFSET = 0, // hsa_kernel_dispatch_packet_t
    PACKET_BYTES = 64,
    QUEUE_OFFSET = 64, // amd_queue_t
    QUEUE_BYTES = 256,
    QUEUE_GROUP_APERTURE = 64, // group_segment_aperture_base_hi, then the private one
    KERNARG_OFFSET = QUEUE_OFFSET + QUEUE_BYTES,
    KERNARG_GRANULE = 64, // compilers read ahead to the end of an aligned block
};

#define BAD_ARGUMENT(...) tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

static tessera_status check_shape(const tessera_sim_kernel_info *info, const tessera_sim_launch_args *args) {
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        if (args->grid[i] == 0 || args->block[i] == 0)
            return BAD_ARGUMENT("grid[%d]=%u, block[%d]=%u: neither may be 0", i, args->grid[i], i, args->block[i]);
        items *= args->block[i];
        if (items > MAX_WORKGROUP) break;
    }
    const uint32_t most = info->max_workgroup_size < MAX_WORKGROUP ? info->max_workgroup_size : MAX_WORKGROUP;
    if (items > most)
        return BAD_ARGUMENT("block=%ux%ux%u: kernel %s takes at most %u work-items", args->block[0], args->block[1],
                            args->block[2], info->name, most);
    return TESSERA_SUCCESS;
}

// The bytes of scratch that a lane needs.
static uint64_t lane_scratch(const tessera_sim_kernel *kernel, const tessera_sim_launch_args *args) {
    uint64_t bytes = kernel->descriptor.private_segment_fixed_size;
    if (kernel->dynamic_stack) bytes += args->stack_bytes ? args->stack_bytes : DEFAULT_STACK;
    return (bytes + SCRATCH_GRANULE - 1) / SCRATCH_GRANULE * SCRATCH_GRANULE;
}

static tessera_status check_args(const tessera_sim_kernel *kernel, const tessera_sim_launch_args *args) {
    if (!kernel || !args) return BAD_ARGUMENT("kernel=%p, args=%p: neither may be NULL", (void *)kernel, (void *)args);
    if (args->struct_size != sizeof *args)
        return BAD_ARGUMENT("args.struct_size=%zu: accepted is %zu", args->struct_size, sizeof *args);
    if ((unsigned)args->order >= TESSERA_SIM_ORDER_COUNT)
        return BAD_ARGUMENT("args.order=%d: accepted are 0 to %d", (int)args->order, TESSERA_SIM_ORDER_COUNT - 1);
    if ((unsigned)args->landing >= TESSERA_SIM_LANDING_COUNT)
        return BAD_ARGUMENT("args.landing=%d: accepted are 0 to %d", (int)args->landing, TESSERA_SIM_LANDING_COUNT - 1);
    const tessera_sim_kernel_info *info = &kernel->info;
    if (args->kernarg_bytes < info->explicit_kernarg_bytes || args->kernarg_bytes > info->kernarg_bytes)
        return BAD_ARGUMENT("kernarg_bytes=%zu: kernel %s takes %u", args->kernarg_bytes, info->name,
                            info->explicit_kernarg_bytes);
    if (args->kernarg_bytes && !args->kernarg)
        return BAD_ARGUMENT("kernarg=NULL: %zu bytes wanted", args->kernarg_bytes);
    const uint64_t lds = (uint64_t)kernel->descriptor.group_segment_fixed_size + args->dynamic_lds_bytes;
    if (lane_scratch(kernel, args) > MAX_LANE_SCRATCH)
        return BAD_ARGUMENT("stack_bytes=%u: with %u static bytes of scratch more than a lane's %d", args->stack_bytes,
                            kernel->descriptor.private_segment_fixed_size, MAX_LANE_SCRATCH);
    const uint32_t limit = tessera_sim_lds_limit(kernel->module->sim->arch);
    if (lds > limit)
        return BAD_ARGUMENT("dynamic_lds_bytes=%u: with %u static ones more than %u", args->dynamic_lds_bytes,
                            kernel->descriptor.group_segment_fixed_size, limit);
    return check_shape(info, args);
}

// Finds the value of a hidden argument; false for a kind that has no value here.
static bool hidden_value(const struct sim_launch *launch, const char *kind, uint64_t *value) {
    const tessera_sim_launch_args *args = launch->args;
    static const char *const axes[] = {"x", "y", "z"};
    for (int i = 0; i < 3; i++) {
        const struct {
            const char *name;
            uint64_t value;
        } of_axis[] = {
            {"hidden_block_count_", args->grid[i] / args->block[i]},
            {"hidden_group_size_", args->block[i]},
            {"hidden_remainder_", args->grid[i] % args->block[i]},
            {"hidden_global_offset_", 0},
        };
        for (size_t k = 0; k < sizeof of_axis / sizeof *of_axis; k++) {
            const size_t length = strlen(of_axis[k].name);
            if (strncmp(kind, of_axis[k].name, length) != 0 || strcmp(kind + length, axes[i]) != 0) continue;
            *value = of_axis[k].value;
            return true;
        }
    }
    const struct {
        const char *name;
        uint64_t value;
    } others[] = {
        {"hidden_grid_dims", args->grid[2] > 1   ? 3
                             : args->grid[1] > 1 ? 2
                                                 : 1},
        {"hidden_dynamic_lds_size", args->dynamic_lds_bytes},
        {"hidden_private_base", SIM_PRIVATE_APERTURE >> SIM_APERTURE_SHIFT},
        {"hidden_shared_base", SIM_SHARED_APERTURE >> SIM_APERTURE_SHIFT},
        {"hidden_queue_ptr", (uintptr_t)launch->system + QUEUE_OFFSET},
        {"hidden_hostcall_buffer", (uintptr_t)launch->sim->hostcall_buffer},
    };
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (strcmp(kind, others[k].name) == 0) {
            *value = others[k].value;
            return true;
        }
    return false; // null: the heap, buffers for printf without hostcalls, and the like
}

static void fill_kernarg(const struct sim_launch *launch) {
    const tessera_sim_kernel_info *info = &launch->kernel->info;
    if (launch->args->kernarg_bytes) memcpy(launch->kernarg, launch->args->kernarg, launch->args->kernarg_bytes);
    for (size_t i = 0; i < info->argument_count; i++) {
        const tessera_sim_argument *argument = &info->arguments[i];
        uint64_t value = 0;
        if (strncmp(argument->value_kind, "hidden_", 7) != 0 || argument->size > sizeof value) continue;
        if (argument->offset > info->kernarg_bytes || argument->size > info->kernarg_bytes - argument->offset) continue;
        hidden_value(launch, argument->value_kind, &value);
        memcpy(launch->kernarg + argument->offset, &value, argument->size);
    }
}

static void fill_packet(const struct sim_launch *launch) {
    enum { PACKET_TYPE_DISPATCH = 2 };
    const tessera_sim_launch_args *args = launch->args;
    struct {
        uint16_t header, setup, block[3], reserved0;
        uint32_t grid[3], private_bytes, group_bytes;
        uint64_t kernel_object, kernarg, reserved1, signal;
    } packet = {
        .header = PACKET_TYPE_DISPATCH,
        .setup = args->grid[2] > 1   ? 3
                 : args->grid[1] > 1 ? 2
                                     : 1,
        .block = {(uint16_t)args->block[0], (uint16_t)args->block[1], (uint16_t)args->block[2]},
        .grid = {args->grid[0], args->grid[1], args->grid[2]},
        .private_bytes = launch->lane_scratch_bytes,
        .group_bytes = launch->lds_bytes,
        .kernel_object = launch->kernel->descriptor_address,
        .kernarg = (uintptr_t)launch->kernarg,
    };
    _Static_assert(sizeof packet == PACKET_BYTES, "the layout of a dispatch packet");
    memcpy(launch->system + PACKET_OFFSET, &packet, sizeof packet);
    const uint32_t apertures[2] = {(uint32_t)(SIM_SHARED_APERTURE >> SIM_APERTURE_SHIFT),
                                   (uint32_t)(SIM_PRIVATE_APERTURE >> SIM_APERTURE_SHIFT)};
    memcpy(launch->system + QUEUE_OFFSET + QUEUE_GROUP_APERTURE, apertures, sizeof apertures);
}

static tessera_status open_system(struct sim_launch *launch) {
    const size_t kernarg =
        ((size_t)launch->kernel->info.kernarg_bytes + KERNARG_GRANULE - 1) / KERNARG_GRANULE * KERNARG_GRANULE;
    const size_t bytes = KERNARG_OFFSET + kernarg;
    launch->system = aligned_alloc(KERNARG_GRANULE, bytes);
    if (!launch->system) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a launch");
    memset(launch->system, 0, bytes);
    launch->kernarg = launch->system + KERNARG_OFFSET;
    fill_kernarg(launch);
    fill_packet(launch);
    return tessera_sim_memory_add(
        &launch->sim->memory, (struct sim_range){.base = (uintptr_t)launch->system, .bytes = bytes, .read_only = true});
}

static void close_system(struct sim_launch *launch) {
    tessera_sim_memory_remove(&launch->sim->memory, (uintptr_t)launch->system);
    free(launch->system);
}

// ---- workgroups

static void place_group(struct sim_group *group, uint64_t number) {
    const struct sim_launch *launch = group->launch;
    group->number = number;
    group->id[0] = (uint32_t)(number % launch->groups[0]);
    group->id[1] = (uint32_t)(number / launch->groups[0] % launch->groups[1]);
    group->id[2] = (uint32_t)(number / launch->groups[0] / launch->groups[1]);
    uint32_t items = 1;
    for (int i = 0; i < 3; i++) {
        const uint32_t left = launch->args->grid[i] - group->id[i] * launch->args->block[i];
        group->size[i] = left < launch->args->block[i] ? left : launch->args->block[i];
        items *= group->size[i];
    }
    group->wave_count = (items + SIM_LANES - 1) / SIM_LANES;
}

// Keeps the fault of the lowest workgroup of several, so that the report does not depend on the order of threads.
static void keep_trouble(struct sim_launch *launch, const struct sim_trouble *trouble) {
    if (trouble->workgroup > atomic_load(&launch->faulted_group)) return;
    atomic_store(&launch->faulted_group, trouble->workgroup);
    launch->trouble = *trouble;
}

static void add_issued(uint64_t *sum, const uint64_t *issued) {
    for (int unit = 0; unit < SIM_UNITS; unit++) sum[unit] += issued[unit];
}

static void run_groups(struct sim_group *group) {
    struct sim_launch *launch = group->launch;
    uint64_t issued[SIM_UNITS] = {0};
    for (;;) {
        const uint64_t number = atomic_fetch_add(&launch->next_group, 1);
        if (number >= launch->group_count || number > atomic_load(&launch->faulted_group)) break;
        if (launch->is_executed && !launch->is_executed(launch, number)) continue;
        place_group(group, number);
        memset(group->lds, POISON, group->lds_bytes);
        tessera_sim_group_run(group);
        for (uint32_t i = 0; i < group->wave_count; i++) add_issued(issued, group->waves[i].issued);
        if (group->trouble.fault == TESSERA_SIM_FAULT_NONE) continue;
        pthread_mutex_lock(&launch->lock);
        keep_trouble(launch, &group->trouble);
        pthread_mutex_unlock(&launch->lock);
    }
    pthread_mutex_lock(&launch->lock);
    add_issued(launch->issued, issued);
    pthread_mutex_unlock(&launch->lock);
}

static bool open_group(struct sim_group *group, struct sim_launch *launch) {
    enum { LINE = 64, SLACK = 256 }; // one byte more, which nothing touches: malloc() may return NULL for 0 bytes
    const size_t scratch = (size_t)launch->waves_per_group * SIM_LANES * launch->lane_scratch_bytes;
    *group = (struct sim_group){.launch = launch, .lds_bytes = launch->lds_bytes};
    group->waves = aligned_alloc(LINE, launch->waves_per_group * sizeof *group->waves);
    group->lds = aligned_alloc(LINE, (launch->lds_bytes + SLACK) / LINE * LINE);
    group->scratch = aligned_alloc(SLACK, scratch + SLACK);
    if (!group->waves || !group->lds || !group->scratch) return false;
    memset(group->scratch, POISON, scratch);
    for (const struct sim_observer *observer; (observer = launch->watch.observers[group->opened]); group->opened++)
        if (observer->open && !observer->open(group)) return false;
    return true;
}

static void close_group(struct sim_group *group) {
    while (group->opened > 0) {
        const struct sim_observer *observer = group->launch->watch.observers[--group->opened];
        if (observer->close) observer->close(group);
    }
    free(group->waves);
    free(group->lds);
    free(group->scratch);
}

static void *thread_main(void *user) {
    struct sim_group group;
    if (open_group(&group, user)) run_groups(&group);
    close_group(&group);
    return NULL;
}

static int usable_threads(const struct sim_launch *launch) {
    enum { MOST = 256 };
    int threads = launch->sim->threads ? launch->sim->threads : tessera_cpu_count();
    if (threads > MOST) threads = MOST;
    if ((uint64_t)threads > launch->group_count) threads = (int)launch->group_count;
    return tessera_sim_has_atomics(launch->kernel) ? 1 : threads;
}

static tessera_status run_launch(struct sim_launch *launch) {
    const int threads = launch->threads = usable_threads(launch);
    pthread_t others[256];
    int started = 0;
    struct sim_group group;
    if (!open_group(&group, launch)) {
        close_group(&group);
        return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a workgroup");
    }
    while (started < threads - 1 && pthread_create(&others[started], NULL, thread_main, launch) == 0) started++;
    run_groups(&group);
    close_group(&group);
    while (started > 0) pthread_join(others[--started], NULL);
    return TESSERA_SUCCESS;
}

// Takes the order from the arguments, or the GPU's where they name none.
static void set_order(struct sim_launch *launch) {
    const tessera_sim *sim = launch->sim;
    const tessera_sim_launch_args *args = launch->args;
    const bool open = args->order == TESSERA_SIM_ORDER_DEFAULT;
    launch->order = open ? sim->order : args->order;
    launch->seed = open ? sim->seed : args->seed;
    launch->landing = args->landing == TESSERA_SIM_LANDING_DEFAULT ? sim->landing : args->landing;
    launch->sanitize = sim->sanitize;
}

static void set_sizes(struct sim_launch *launch) {
    const tessera_sim_launch_args *args = launch->args;
    launch->group_count = 1;
    for (int i = 0; i < 3; i++) {
        launch->groups[i] = args->grid[i] / args->block[i] + (args->grid[i] % args->block[i] != 0);
        launch->group_count *= launch->groups[i];
    }
    launch->waves_per_group = (args->block[0] * args->block[1] * args->block[2] + SIM_LANES - 1) / SIM_LANES;
    launch->lds_bytes = launch->kernel->descriptor.group_segment_fixed_size + args->dynamic_lds_bytes;
    launch->lane_scratch_bytes = (uint32_t)lane_scratch(launch->kernel, args);
}

static void fill_stats(const struct sim_launch *launch, tessera_sim_launch_stats *stats) {
    const uint64_t *issued = launch->issued;
    *stats = (tessera_sim_launch_stats){
        .waves = launch->group_count * launch->waves_per_group,
        .scalar = issued[SIM_UNIT_SCALAR] + issued[SIM_UNIT_SCALAR_MEMORY],
        .vector = issued[SIM_UNIT_VALU],
        .matrix = issued[SIM_UNIT_MATRIX],
        .lds = issued[SIM_UNIT_LDS],
        .memory = issued[SIM_UNIT_MEMORY] + issued[SIM_UNIT_FLAT],
    };
    stats->instructions = stats->scalar + stats->vector + stats->matrix + stats->lds + stats->memory;
}

// ---- observers of the launch as a whole

static tessera_status begin_launch(struct sim_launch *launch) {
    tessera_sim_find_watch(launch);
    for (const struct sim_observer *const *observer = launch->watch.observers; *observer; observer++) {
        const tessera_status status = (*observer)->begin ? (*observer)->begin(launch) : TESSERA_SUCCESS;
        if (status != TESSERA_SUCCESS) return status;
    }
    return TESSERA_SUCCESS;
}

// The status of a launch that ran: that of its fault, or else of the first observer that failed.
static tessera_status end_launch(struct sim_launch *launch, const tessera_sim_launch_stats *stats) {
    tessera_status first = launch->trouble.fault == TESSERA_SIM_FAULT_NONE ? TESSERA_SUCCESS : TESSERA_ERROR_DEVICE;
    for (const struct sim_observer *const *observer = launch->watch.observers; *observer; observer++) {
        const tessera_status status = (*observer)->end ? (*observer)->end(launch, stats) : TESSERA_SUCCESS;
        if (first == TESSERA_SUCCESS) first = status;
    }
    return first;
}

tessera_status tessera_sim_launch(const tessera_sim_kernel *kernel, const tessera_sim_launch_args *args,
                                  tessera_sim_launch_stats *stats) {
    tessera_status status = check_args(kernel, args);
    if (status != TESSERA_SUCCESS) return status;
    struct sim_launch launch = {
        .sim = kernel->module->sim, .kernel = kernel, .args = args, .faulted_group = UINT64_MAX};
    set_order(&launch);
    set_sizes(&launch);
    pthread_mutex_init(&launch.lock, NULL);
    tessera_sim_launch_stats done = {0};
    status = begin_launch(&launch);
    if (status == TESSERA_SUCCESS) status = open_system(&launch);
    if (status == TESSERA_SUCCESS) {
        status = run_launch(&launch);
        fill_stats(&launch, &done);
        if (status == TESSERA_SUCCESS) status = end_launch(&launch, &done);
        close_system(&launch);
    }
    pthread_mutex_destroy(&launch.lock);
    if (stats) *stats = done;
    return status;
}
