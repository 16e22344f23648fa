// SPDX-License-Identifier: MIT
// s_waitcnt: memory operations in flight, and instructions that touch their registers before they are done.
//
// From AMD's "Instinct MI300" ISA, section 4.4 "Manually inserted wait states and s_waitcnt", and LLVM's "User Guide
// for AMDGPU backend", memory model of gfx90a and gfx942:
//   vmcnt    loads, stores and atomics of memory; they are done in the order in which they were issued
//   lgkmcnt  LDS, in order among themselves; scalar memory, in any order; FLAT
//   expcnt   nothing here: there are no exports, and stores have read their data when they are issued
// FLAT counts in vmcnt and lgkmcnt. If all its lanes reach memory, it completes in the order of memory operations and
// lgkmcnt says nothing about it (LLVM relies on that); else its accesses to LDS complete in any order.
// So after s_waitcnt with a count of n, all but the last n operations of an ordered queue are done. Operations that
// complete in any order are all done if n is 0, and none of them is known to be done otherwise.
//
// An operation does its work between its issue and the wait that covers it, as launch->landing says. It reads its
// registers at its issue and memory and LDS when it lands; queues land in their order.
#include "waits.h"

#include <stdio.h>
#include <string.h>

#include "code_object/module.h"
#include "execute/effects.h"
#include "execute/vector_memory.h"
#include "machine/access.h"
#include "sanitize.h"

enum sim_counter { COUNT_VM = 1, COUNT_LGKM = 2 };

static void start_wave(struct sim_wave *wave) {
    struct sim_waits *waits = &wave->checks->waits;
    memset(waits, 0, offsetof(struct sim_waits, memory_operations));
    waits->memory = (struct sim_queue){.size = SIM_MAX_MEMORY_OPS, .operations = waits->memory_operations};
    waits->lds = (struct sim_queue){.size = SIM_MAX_LDS_OPS, .operations = waits->lds_operations};
    waits->random = (wave->group->random ^ (wave->index + 1) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static struct sim_operation *at(struct sim_queue *queue, uint32_t i) {
    return &queue->operations[(queue->first + i) & (queue->size - 1)];
}

// ---- ranges of bits

static void set_bits(uint64_t *bits, unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; i++) bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool any_bit(const uint64_t *bits, unsigned first, unsigned count) {
    const unsigned last = first + count - 1;
    const uint64_t above = ~UINT64_C(0) << first % 64, below = ~UINT64_C(0) >> (63 - last % 64);
    if (first / 64 == last / 64) return bits[first / 64] & above & below;
    return bits[first / 64] & above || bits[last / 64] & below; // no range is longer than 32
}

// ---- registers that operations in flight write

static bool is_written(const struct sim_effect *effect) {
    return effect->access & SIM_WRITES && effect->file <= SIM_FILE_SCALAR;
}

static void mark(struct sim_wave *wave, const struct sim_operation *operation) {
    struct sim_waits *waits = &wave->checks->waits;
    const struct sim_effects *effects = &operation->code->effects;
    for (unsigned i = 0; i < effects->count; i++) {
        const struct sim_effect *effect = &effects->list[i];
        if (!is_written(effect)) continue;
        if (effect->file == SIM_FILE_SCALAR)
            set_bits(waits->scalars, effect->first, effect->count);
        else if (operation->lanes)
            set_bits(waits->vectors, tessera_sim_effect_first(wave, operation->code, effect), effect->count);
    }
}

static void mark_all(struct sim_wave *wave) {
    struct sim_waits *waits = &wave->checks->waits;
    memset(waits->vectors, 0, sizeof waits->vectors);
    memset(waits->scalars, 0, sizeof waits->scalars);
    for (uint32_t i = 0; i < waits->memory.count; i++) mark(wave, at(&waits->memory, i));
    for (uint32_t i = 0; i < waits->lds.count; i++) mark(wave, at(&waits->lds, i));
    for (uint32_t i = 0; i < waits->loose_count; i++) mark(wave, &waits->loose[i]);
}

// ---- registers put aside

static void keep_vector(struct sim_kept *kept, unsigned index) {
    for (unsigned i = 0; i < kept->vectors; i++)
        if (kept->vector_index[i] == index) return;
    kept->vector_index[kept->vectors++] = (uint16_t)index;
}

static void keep_scalar(struct sim_kept *kept, unsigned index) {
    for (unsigned i = 0; i < kept->scalars; i++)
        if (kept->scalar_index[i] == index) return;
    kept->scalar_index[kept->scalars++] = (uint8_t)index;
}

// Copies what the instruction reads.
static void keep(struct sim_wave *wave, const struct sim_code *code, struct sim_kept *kept) {
    const struct sim_shadow *shadow = &wave->checks->shadow;
    kept->vectors = kept->scalars = 0;
    for (unsigned i = 0; i < code->effects.count; i++) {
        const struct sim_effect *effect = &code->effects.list[i];
        if (!(effect->access & SIM_READS)) continue;
        const unsigned first = tessera_sim_effect_first(wave, code, effect);
        for (unsigned k = first; k < first + effect->count; k++) {
            if (effect->file == SIM_FILE_VECTOR) keep_vector(kept, k);
            if (effect->file == SIM_FILE_SCALAR) keep_scalar(kept, k);
        }
    }
    for (unsigned i = 0; i < kept->vectors; i++) {
        memcpy(kept->vector[i], wave->vgpr[kept->vector_index[i]], sizeof *kept->vector);
        memcpy(kept->vector_shadow[i], shadow->vgpr[kept->vector_index[i]], sizeof *kept->vector);
    }
    for (unsigned i = 0; i < kept->scalars; i++) {
        kept->scalar[i] = wave->sgpr[kept->scalar_index[i]];
        kept->scalar_shadow[i] = shadow->sgpr[kept->scalar_index[i]];
    }
}

static void exchange_words(uint32_t *a, uint32_t *b, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const uint32_t word = a[i];
        a[i] = b[i];
        b[i] = word;
    }
}

static void exchange(struct sim_wave *wave, struct sim_kept *kept) {
    struct sim_shadow *shadow = &wave->checks->shadow;
    for (unsigned i = 0; i < kept->vectors; i++) {
        exchange_words(wave->vgpr[kept->vector_index[i]], kept->vector[i], SIM_LANES);
        exchange_words(shadow->vgpr[kept->vector_index[i]], kept->vector_shadow[i], SIM_LANES);
    }
    for (unsigned i = 0; i < kept->scalars; i++) {
        exchange_words(&wave->sgpr[kept->scalar_index[i]], &kept->scalar[i], 1);
        exchange_words(&shadow->sgpr[kept->scalar_index[i]], &kept->scalar_shadow[i], 1);
    }
}

// Copies the operation's results into the registers put aside, so that they survive when those are restored.
static void take_results(struct sim_wave *wave, const struct sim_operation *operation, struct sim_kept *kept) {
    const struct sim_shadow *shadow = &wave->checks->shadow;
    const struct sim_effect *effect = &operation->code->effects.list[0]; // a result is the first operand
    if (!is_written(effect)) return;
    const unsigned first = tessera_sim_effect_first(wave, operation->code, effect);
    for (unsigned i = 0; i < kept->vectors && effect->file == SIM_FILE_VECTOR; i++) {
        const unsigned index = kept->vector_index[i];
        if (index - first >= effect->count) continue;
        for (unsigned lane = 0; lane < SIM_LANES; lane++) {
            if (!(operation->lanes >> lane & 1)) continue;
            kept->vector[i][lane] = wave->vgpr[index][lane];
            kept->vector_shadow[i][lane] = shadow->vgpr[index][lane];
        }
    }
    for (unsigned i = 0; i < kept->scalars && effect->file == SIM_FILE_SCALAR; i++) {
        const unsigned index = kept->scalar_index[i];
        if (index - first >= effect->count) continue;
        kept->scalar[i] = wave->sgpr[index];
        kept->scalar_shadow[i] = shadow->sgpr[index];
    }
}

// ---- landing

static void land(struct sim_wave *wave, struct sim_operation *operation) {
    const struct sim_code *code = wave->code;
    const uintptr_t pc = wave->pc, next_pc = wave->next_pc;
    const enum sim_wave_state state = wave->state; // it may stand at a barrier
    if (operation->landed || wave->state == SIM_FAULTED) return;
    operation->landed = true;
    wave->state = SIM_RUNNING;
    exchange(wave, &operation->kept);
    wave->code = operation->code;
    wave->pc = operation->pc;
    tessera_sim_execute(wave, operation->code);
    if (wave->state == SIM_FAULTED) return;
    take_results(wave, operation, &operation->kept);
    exchange(wave, &operation->kept);
    wave->state = state;
    wave->code = code;
    wave->pc = pc;
    wave->next_pc = next_pc;
}

// Makes the oldest `count` operations of a queue land.
static void land_queue(struct sim_wave *wave, struct sim_queue *queue, uint32_t count) {
    while (queue->landed < count) land(wave, at(queue, queue->landed++));
}

static void forget(struct sim_wave *wave, const struct sim_operation *operation) {
    struct sim_checks *checks = wave->checks;
    checks->waits.in_flight--;
    if (operation->code->effects.to_lds) checks->group->lds_loads--;
}

// Waits until a queue has at most `count` operations in flight.
static bool wait_queue(struct sim_wave *wave, struct sim_queue *queue, uint32_t count) {
    if (queue->count <= count) return false;
    const uint32_t done = queue->count - count;
    land_queue(wave, queue, done);
    for (uint32_t i = 0; i < done; i++) forget(wave, at(queue, i));
    queue->first += done;
    queue->count -= done;
    queue->landed -= done;
    return true;
}

// Waits for the unordered operations of a counter, as a count of 0 does.
static bool wait_loose(struct sim_wave *wave, unsigned counter) {
    struct sim_waits *waits = &wave->checks->waits;
    uint32_t left = 0;
    for (uint32_t i = 0; i < waits->loose_count; i++) {
        struct sim_operation *operation = &waits->loose[i];
        operation->counters &= (uint8_t)~counter;
        if (operation->counters) {
            if (left != i) waits->loose[left] = *operation;
            left++;
        } else {
            land(wave, operation);
            forget(wave, operation);
        }
    }
    const bool changed = left != waits->loose_count;
    waits->loose_count = left;
    return changed;
}

static void wait(struct sim_wave *wave, uint32_t vmcnt, uint32_t lgkmcnt) {
    struct sim_waits *waits = &wave->checks->waits;
    bool changed = wait_queue(wave, &waits->memory, vmcnt);
    changed |= wait_queue(wave, &waits->lds, lgkmcnt);
    if (vmcnt == 0) changed |= wait_loose(wave, COUNT_VM);
    if (lgkmcnt == 0) changed |= wait_loose(wave, COUNT_LGKM);
    if (changed) mark_all(wave);
}

static void wait_as_told(struct sim_wave *wave, const struct sim_inst *inst) {
    const uint32_t imm = (uint32_t)inst->imm & 0xffff;
    wait(wave, (imm & 15) | (imm >> 14 & 3) << 4, imm >> 8 & 15);
}

// Makes some operations land if the launch's landings are random.
static void land_some(struct sim_wave *wave) {
    enum { ONE_IN = 8 };
    struct sim_waits *waits = &wave->checks->waits;
    if (waits->in_flight == 0 || wave->group->launch->landing != TESSERA_SIM_LANDING_RANDOM) return;
    const uint32_t choice = tessera_sim_random(&waits->random, 3 * ONE_IN);
    if (choice == 0 && waits->memory.landed < waits->memory.count)
        land_queue(wave, &waits->memory, waits->memory.landed + 1);
    if (choice == 1 && waits->lds.landed < waits->lds.count) land_queue(wave, &waits->lds, waits->lds.landed + 1);
    if (choice == 2 && waits->loose_count)
        land(wave, &waits->loose[tessera_sim_random(&waits->random, waits->loose_count)]);
}

// ---- early uses

static void name_register(const struct sim_effect *effect, unsigned index, char *text, size_t size) {
    if (effect->file == SIM_FILE_SCALAR)
        snprintf(text, size, "s%u", index);
    else if (effect->first >= SIM_VGPRS)
        snprintf(text, size, "a%u", index - SIM_VGPRS);
    else
        snprintf(text, size, "v%u", index);
}

static void report_early_use(struct sim_wave *wave, const struct sim_operation *operation, const struct sim_effect *use,
                             const struct sim_effect *result, uint64_t lanes) {
    char name[16], text[80];
    const unsigned first_use = tessera_sim_effect_first(wave, wave->code, use);
    const unsigned first = tessera_sim_effect_first(wave, operation->code, result);
    const unsigned offset = first > first_use ? 0 : first_use - first;
    name_register(result, result->first + offset, name, sizeof name);
    tessera_sim_print(&operation->code->inst, text, sizeof text);
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_EARLY_USE, lanes ? __builtin_ctzll(lanes) : -1, 0,
                        "%s is %s before s_waitcnt covers +0x%llx: %s", name,
                        use->access & SIM_READS ? "read" : "overwritten",
                        (unsigned long long)(operation->pc - wave->group->launch->kernel->entry), text);
}

// Reports a fault if the operation writes a register of the range that the wave's instruction uses.
static void check_use(struct sim_wave *wave, const struct sim_operation *operation, const struct sim_effect *use) {
    const struct sim_effects *effects = &operation->code->effects;
    const unsigned first_use = tessera_sim_effect_first(wave, wave->code, use);
    for (unsigned i = 0; i < effects->count; i++) {
        const struct sim_effect *result = &effects->list[i];
        if (!is_written(result) || result->file != use->file) continue;
        const unsigned first = tessera_sim_effect_first(wave, operation->code, result);
        if (first_use >= first + result->count || first >= first_use + use->count) continue;
        const bool vector = use->file == SIM_FILE_VECTOR;
        const uint64_t lanes = vector ? operation->lanes & tessera_sim_effect_lanes(wave, wave->code, use) : 0;
        if (lanes || !vector) report_early_use(wave, operation, use, result, lanes);
    }
}

static struct sim_queue *queue_of(struct sim_wave *wave, const struct sim_code *code);

// Looks for the operation in flight that writes the register of `use`. An instruction of the same queue may write it
// again: results of a queue arrive in order, so the later one stays.
static void find_early_use(struct sim_wave *wave, const struct sim_code *code, const struct sim_effect *use) {
    struct sim_waits *waits = &wave->checks->waits;
    struct sim_queue *own = use->access & (SIM_READS | SIM_PARTLY) ? NULL : queue_of(wave, code);
    for (uint32_t i = 0; i < waits->memory.count && own != &waits->memory; i++)
        check_use(wave, at(&waits->memory, i), use);
    for (uint32_t i = 0; i < waits->lds.count && own != &waits->lds; i++) check_use(wave, at(&waits->lds, i), use);
    for (uint32_t i = 0; i < waits->loose_count; i++) check_use(wave, &waits->loose[i], use);
}

static void check_early_uses(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_waits *waits = &wave->checks->waits;
    for (unsigned i = 0; i < code->effects.count; i++) {
        const struct sim_effect *use = &code->effects.list[i];
        if (use->file > SIM_FILE_SCALAR) continue;
        const uint64_t *bits = use->file == SIM_FILE_VECTOR ? waits->vectors : waits->scalars;
        if (any_bit(bits, tessera_sim_effect_first(wave, code, use), use->count)) find_early_use(wave, code, use);
    }
}

// ---- loads to LDS

static uint32_t bytes_of_lane(const struct sim_code *code) {
    const uint32_t bytes = code->detail & 0xff; // the width of the access, as in vector_memory.c
    return bytes < 4 ? 4 : bytes;
}

static void check_lds_operation(struct sim_wave *wave, int lane, const struct sim_operation *operation,
                                uint32_t address, uint32_t bytes) {
    const uint32_t size = bytes_of_lane(operation->code);
    char text[80];
    for (uint32_t i = 0; i < SIM_LANES; i++) {
        const uint32_t from = operation->lds_base + i * size;
        if (!(operation->lanes >> i & 1) || address >= from + size || from >= address + bytes) continue;
        tessera_sim_print(&operation->code->inst, text, sizeof text);
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_EARLY_USE, lane, address,
                            "LDS %u is touched before s_waitcnt covers +0x%llx: %s", address,
                            (unsigned long long)(operation->pc - wave->group->launch->kernel->entry), text);
        return;
    }
}

static void check_lds(struct sim_wave *wave, int lane, uint32_t address, uint32_t bytes) {
    const struct sim_group *group = wave->group;
    for (uint32_t w = 0; w < group->wave_count; w++) {
        struct sim_queue *queue = &group->checks[w].waits.memory;
        for (uint32_t i = 0; i < queue->count; i++)
            if (at(queue, i)->code->effects.to_lds) check_lds_operation(wave, lane, at(queue, i), address, bytes);
    }
}

// Checks the accesses of the instruction that ran.
static void check_accesses(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_group *group = wave->group;
    unsigned count;
    if (!wave->checks->group->lds_loads || code->effects.to_lds) return; // loads to the same place come in order
    const struct sim_touched *touched = tessera_sim_touched(wave, &count);
    for (unsigned i = 0; i < count && wave->state != SIM_FAULTED; i++) {
        const uintptr_t address = (uintptr_t)touched[i].host - (uintptr_t)group->lds;
        if (address < group->lds_bytes) check_lds(wave, touched[i].lane, (uint32_t)address, touched[i].bytes);
    }
}

// ---- issue

// Whether some active lane of a FLAT operation reaches LDS.
static bool reaches_lds(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_operand *address = &code->inst.op[SIM_ADDR];
    const uint64_t exec = sim_exec(wave);
    const sim_vgpr *high = &wave->vgpr[address->index + 1];
    for (unsigned lane = 0; lane < SIM_LANES; lane++)
        if (exec >> lane & 1 && (*high)[lane] == SIM_SHARED_APERTURE >> SIM_APERTURE_SHIFT) return true;
    return false;
}

// The queue of an operation; NULL where it completes in any order, or the instruction is no memory operation.
static struct sim_queue *queue_of(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_waits *waits = &wave->checks->waits;
    switch (code->effects.unit) {
    case SIM_UNIT_MEMORY:
        return &waits->memory;
    case SIM_UNIT_FLAT:
        return reaches_lds(wave, code) ? NULL : &waits->memory;
    case SIM_UNIT_LDS:
        return &waits->lds;
    default:
        return NULL;
    }
}

static struct sim_operation *push(struct sim_wave *wave, struct sim_queue *queue) {
    struct sim_waits *waits = &wave->checks->waits;
    waits->in_flight++;
    if (queue) {
        if (queue->count == queue->size) { // the counter is full: hardware issues no more until one is done
            wait_queue(wave, queue, queue->size - 1);
            mark_all(wave);
        }
        return at(queue, queue->count++);
    }
    if (waits->loose_count == SIM_MAX_LOOSE_OPS) {
        wait_loose(wave, COUNT_VM | COUNT_LGKM);
        mark_all(wave);
    }
    return &waits->loose[waits->loose_count++];
}

// Whether an instruction of a memory unit neither returns nor stores anything. Global wave sync counts as one: the wave
// itself waits there.
static bool is_bare(const struct sim_code *code) {
    return (code->inst.row->fields == 0 && !code->effects.to_lds) || code->inst.row->flags & SIM_FLAG_GDS;
}

// Puts a memory operation into its queue. Returns whether it executes now.
static bool enter(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_waits *waits = &wave->checks->waits;
    struct sim_queue *queue = queue_of(wave, code);
    const bool flat_to_lds = !queue && code->effects.unit == SIM_UNIT_FLAT;
    const bool now = wave->group->launch->landing == TESSERA_SIM_LANDING_AT_ONCE || flat_to_lds;
    if (flat_to_lds) { // it lands in the order of both queues
        land_queue(wave, &waits->memory, waits->memory.count);
        land_queue(wave, &waits->lds, waits->lds.count);
    }
    struct sim_operation *operation = push(wave, queue);
    operation->code = code;
    operation->pc = wave->pc;
    operation->lanes = code->effects.unit == SIM_UNIT_SCALAR_MEMORY ? 0 : sim_exec(wave);
    operation->counters = flat_to_lds ? COUNT_VM | COUNT_LGKM : COUNT_LGKM;
    operation->landed = now;
    operation->lds_base = tessera_sim_lds_target(wave, &code->inst);
    if (queue && now) queue->landed++;
    if (!now) keep(wave, code, &operation->kept);
    if (code->effects.to_lds) wave->checks->group->lds_loads++;
    mark(wave, operation);
    return now;
}

static bool issue(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_waits *waits = &wave->checks->waits;
    if (waits->in_flight) {
        check_early_uses(wave, code);
        if (code->inst.row->op == SIM_OP_s_waitcnt) wait_as_told(wave, &code->inst);
        if (code->inst.row->op == SIM_OP_s_endpgm) wait(wave, 0, 0);
        if (wave->state == SIM_FAULTED) return false;
    }
    switch (code->effects.unit) {
    case SIM_UNIT_SCALAR_MEMORY:
    case SIM_UNIT_MEMORY:
    case SIM_UNIT_FLAT:
    case SIM_UNIT_LDS:
        return is_bare(code) || enter(wave, code);
    default:
        return true;
    }
}

const struct sim_observer tessera_sim_wait_check = {
    .wanted = tessera_sim_is_sanitized,
    .start_wave = start_wave,
    .issue = issue,
    .passed = land_some,
    .executed = check_accesses,
};
