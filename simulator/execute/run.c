// SPDX-License-Identifier: MIT
// Runs waves: sets their first registers, and executes their instructions in turns.
#include "run.h"

#include <string.h>

#include "code_object/module.h"
#include "fetch.h"

enum {
    POISON = 0xcd,       // the bytes of registers that nothing has set
    TURN = 1 << 16,      // instructions that a wave runs before another wave of its workgroup gets its turn
    PRELOAD_ENTRY = 256, // the entry behind code that such kernels have for firmware that cannot preload arguments
};

// ---- the kernel descriptor

static inline uint32_t field(uint32_t word, unsigned low, unsigned bits) { return word >> low & ((1u << bits) - 1); }

enum rsrc2_bits { PRIVATE_SEGMENT = 0, GROUP_ID = 7, GROUP_INFO = 10, ITEM_ID = 11 };
enum property_bits {
    PRIVATE_BUFFER,
    DISPATCH_PTR,
    QUEUE_PTR,
    KERNARG_PTR,
    DISPATCH_ID,
    FLAT_SCRATCH_INIT,
    PRIVATE_SIZE
};

static unsigned push64(struct sim_wave *wave, unsigned at, uint64_t value) {
    sim_set_sgpr64(wave, at, value);
    return at + 2;
}

// Sets up the buffer descriptor through which MUBUF instructions reach scratch: lanes are interleaved word by word. It
// has no bounds, so that an access outside of the wave's scratch is a fault and is not dropped.
static unsigned push_scratch_buffer(struct sim_wave *wave, unsigned at) {
    enum { SWIZZLE = 1u << 31, INDEX_STRIDE_64 = 3 << 21, ADD_TID = 1 << 23 };
    const uint64_t base = (uintptr_t)wave->group->scratch;
    wave->sgpr[at] = (uint32_t)base;
    wave->sgpr[at + 1] = (uint32_t)(base >> 32 & 0xffff) | SWIZZLE;
    wave->sgpr[at + 2] = UINT32_MAX;
    wave->sgpr[at + 3] = INDEX_STRIDE_64 | ADD_TID;
    return at + 4;
}

static unsigned push_preloaded(struct sim_wave *wave, unsigned at) {
    const uint32_t preload = wave->group->launch->kernel->descriptor.kernarg_preload;
    const unsigned words = field(preload, 0, 7), offset = 4 * field(preload, 7, 9);
    if (words == 0) return at;
    memcpy(&wave->sgpr[at], wave->group->launch->kernarg + offset, 4 * words);
    wave->pc += PRELOAD_ENTRY;
    return at + words;
}

static void set_sgprs(struct sim_wave *wave) {
    const struct sim_group *group = wave->group;
    const struct sim_launch *launch = group->launch;
    const struct sim_descriptor *descriptor = &launch->kernel->descriptor;
    const bool architected_scratch = launch->sim->arch != SIM_GFX90A;
    const uint32_t properties = descriptor->kernel_code_properties, rsrc2 = descriptor->compute_pgm_rsrc2;
    unsigned at = 0;
    if (field(properties, PRIVATE_BUFFER, 1)) at = push_scratch_buffer(wave, at);
    if (field(properties, DISPATCH_PTR, 1)) at = push64(wave, at, (uintptr_t)launch->system);
    if (field(properties, QUEUE_PTR, 1)) at = push64(wave, at, (uintptr_t)launch->system + 64);
    if (field(properties, KERNARG_PTR, 1)) at = push64(wave, at, (uintptr_t)launch->kernarg);
    if (field(properties, DISPATCH_ID, 1)) at = push64(wave, at, 0);
    if (field(properties, FLAT_SCRATCH_INIT, 1)) at = push64(wave, at, (uintptr_t)group->scratch);
    if (field(properties, PRIVATE_SIZE, 1)) wave->sgpr[at++] = launch->lane_scratch_bytes;
    push_preloaded(wave, at);
    at = field(rsrc2, 1, 5);
    for (unsigned i = 0; i < 3; i++)
        if (field(rsrc2, GROUP_ID + i, 1)) wave->sgpr[at++] = group->id[i];
    if (field(rsrc2, GROUP_INFO, 1)) wave->sgpr[at++] = (wave->index == 0 ? 1u << 31 : 0) | group->wave_count;
    if (architected_scratch)
        sim_set_sgpr64(wave, SIM_FLAT_SCRATCH, (uintptr_t)wave->scratch);
    else if (field(rsrc2, PRIVATE_SEGMENT, 1))
        wave->sgpr[at++] = wave->scratch_offset;
    wave->set_sgprs = at;
}

// Sets v0 to the work-item ids: three fields of 10 bits.
static void set_vgprs(struct sim_wave *wave) {
    const struct sim_group *group = wave->group;
    const uint32_t axes = field(group->launch->kernel->descriptor.compute_pgm_rsrc2, ITEM_ID, 2);
    const uint32_t items = group->size[0] * group->size[1] * group->size[2];
    uint64_t exec = 0;
    for (uint32_t lane = 0; lane < SIM_LANES; lane++) {
        const uint32_t item = wave->index * SIM_LANES + lane;
        const uint32_t x = item % group->size[0], y = item / group->size[0] % group->size[1],
                       z = item / group->size[0] / group->size[1];
        wave->vgpr[0][lane] = x | (axes > 0 ? y << 10 : 0) | (axes > 1 ? z << 20 : 0);
        if (item < items) exec |= UINT64_C(1) << lane;
    }
    sim_set_sgpr64(wave, SIM_EXEC, exec);
}

static void set_mode(struct sim_wave *wave) {
    const struct sim_descriptor *descriptor = &wave->group->launch->kernel->descriptor;
    const uint32_t rsrc1 = descriptor->compute_pgm_rsrc1, rsrc2 = descriptor->compute_pgm_rsrc2;
    tessera_sim_set_mode(wave, field(rsrc1, 12, 8) | field(rsrc1, 21, 1) << 8 | field(rsrc1, 23, 1) << 9 |
                                   field(rsrc2, 24, 7) << 12 | field(rsrc1, 26, 1) << 23);
}

static void start_wave(struct sim_group *group, uint32_t index) {
    const struct sim_launch *launch = group->launch;
    const struct sim_descriptor *descriptor = &launch->kernel->descriptor;
    struct sim_wave *wave = &group->waves[index];
    memset(wave, 0, offsetof(struct sim_wave, exec_lanes));
    wave->group = group;
    wave->index = index;
    wave->pc = launch->kernel->entry;
    wave->limit = launch->args->max_instructions ? launch->args->max_instructions : UINT64_MAX;
    wave->scratch_offset = index * SIM_LANES * launch->lane_scratch_bytes;
    wave->scratch = group->scratch + wave->scratch_offset;
    // VGPRs and AGPRs are one file: VGPRs beyond the accumulation offset are AGPRs by another name. Compilers do not
    // use such names, hand-written kernels do.
    const uint32_t allocated = 8 * (field(descriptor->compute_pgm_rsrc1, 0, 6) + 1);
    const uint32_t split = 4 * (field(descriptor->compute_pgm_rsrc3, 0, 6) + 1);
    wave->first_agpr = split;
    wave->vgprs = allocated < SIM_VGPRS ? allocated : SIM_VGPRS;
    wave->agprs = allocated < split ? 0 : allocated - split;
    if (wave->agprs > SIM_VGPRS) wave->agprs = SIM_VGPRS;
    memset(wave->sgpr, POISON, sizeof wave->sgpr);
    memset(wave->vgpr, POISON, allocated * sizeof *wave->vgpr);
    wave->exec_of_lanes = 0;
    memset(wave->exec_lanes, 0, sizeof wave->exec_lanes);
    set_mode(wave);
    set_sgprs(wave);
    set_vgprs(wave);
    wave->access = launch->watch.access;
}

// ---- running

static void run_plain(struct sim_wave *wave, uint64_t until) {
    while (wave->state == SIM_RUNNING && wave->executed < until) {
        const struct sim_code *code = tessera_sim_fetch(wave, wave->pc);
        if (!code) return;
        wave->code = code;
        wave->next_pc = wave->pc + code->size;
        if (sim_take(wave, code)) code->execute(wave, code);
        if (wave->state == SIM_FAULTED) return;
        wave->pc = wave->next_pc;
    }
}

// Issues an instruction. Returns whether it executes now.
static bool issue(struct sim_wave *wave, const struct sim_code *code, const struct sim_watch *watch) {
    for (const sim_issue_hook *hook = watch->issue; *hook; hook++)
        if (!(*hook)(wave, code)) return false;
    return true;
}

static void run_observed(struct sim_wave *wave, uint64_t until, const struct sim_watch *watch) {
    while (wave->state == SIM_RUNNING && wave->executed < until) {
        const struct sim_code *code = tessera_sim_fetch(wave, wave->pc);
        if (!code) return;
        wave->code = code;
        wave->next_pc = wave->pc + code->size;
        for (const sim_instruction_hook *next = watch->next; *next && wave->state != SIM_FAULTED; next++)
            (*next)(wave, code);
        if (wave->state == SIM_FAULTED) return;
        if (sim_take(wave, code) && issue(wave, code, watch)) tessera_sim_execute(wave, code);
        if (wave->state == SIM_FAULTED) return;
        wave->pc = wave->next_pc;
        for (const sim_wave_hook *passed = watch->passed; *passed; passed++) (*passed)(wave);
    }
}

static void run_wave(struct sim_wave *wave, uint64_t turn) {
    const uint64_t until = wave->limit - wave->executed < turn ? wave->limit : wave->executed + turn;
    const struct sim_watch *watch = &wave->group->launch->watch;
    if (watch->instructions)
        run_observed(wave, until, watch);
    else
        run_plain(wave, until);
    if (wave->state == SIM_RUNNING && wave->executed == wave->limit)
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_RUNAWAY, -1, 0, "%llu instructions and no end",
                            (unsigned long long)wave->limit);
}

static uint32_t count_state(const struct sim_group *group, enum sim_wave_state state) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->wave_count; i++) count += group->waves[i].state == state;
    return count;
}

// ---- turns

// The wave whose turn `i` of a round is.
static struct sim_wave *pick_wave(const struct sim_group *group, uint32_t i) {
    const bool backward = group->launch->order == TESSERA_SIM_ORDER_BACKWARD;
    return &group->waves[backward ? group->wave_count - 1 - i : i];
}

static uint64_t turn_length(struct sim_group *group) {
    enum { SHORT = 4, LONG = 200, LONG_EVERY = 8 };
    switch (group->launch->order) {
    case TESSERA_SIM_ORDER_ALTERNATE:
        return 1;
    case TESSERA_SIM_ORDER_RANDOM:
        return tessera_sim_random(&group->random, tessera_sim_random(&group->random, LONG_EVERY) ? SHORT : LONG);
    default:
        return TURN;
    }
}

static void start_group(struct sim_group *group) {
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    group->trouble.fault = TESSERA_SIM_FAULT_NONE;
    group->random = ((group->launch->seed + 1) * odd ^ (group->number + 1)) * odd | 1;
    SIM_TELL(group->launch, start, group);
    for (uint32_t i = 0; i < group->wave_count; i++) {
        start_wave(group, i);
        SIM_TELL(group->launch, start_wave, &group->waves[i]);
    }
}

// Passes a barrier: all waves stand at it or have ended.
static void pass_barrier(struct sim_group *group) {
    SIM_TELL(group->launch, barrier, group);
    for (uint32_t i = 0; i < group->wave_count; i++)
        if (group->waves[i].state == SIM_AT_BARRIER) group->waves[i].state = SIM_RUNNING;
}

// Runs waves in turns, to their end or to a fault.
static void run_waves(struct sim_group *group) {
    while (count_state(group, SIM_ENDED) < group->wave_count) {
        for (uint32_t i = 0; i < group->wave_count; i++) {
            struct sim_wave *wave = pick_wave(group, i);
            run_wave(wave, turn_length(group));
            if (wave->state == SIM_FAULTED) return;
        }
        // A barrier opens when all waves that have not ended stand at it.
        if (count_state(group, SIM_RUNNING) == 0) pass_barrier(group);
    }
}

void tessera_sim_group_run(struct sim_group *group) {
    start_group(group);
    run_waves(group);
    SIM_TELL(group->launch, finish, group);
}
