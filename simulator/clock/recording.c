// SPDX-License-Identifier: MIT
// Records the instructions of a workgroup. Addresses are taken before an instruction executes, since it may overwrite
// the registers that hold them.
#include "recording.h"

#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "execute/narrow.h"
#include "execute/scalar_memory.h"
#include "execute/vector_memory.h"
#include "kinds.h"
#include "lds_phases.h"

struct sim_recording *tessera_sim_recording_new(const struct sim_group *group) {
    struct sim_recording *recording = calloc(1, sizeof *recording);
    if (!recording) return NULL;
    recording->number = group->number;
    memcpy(recording->id, group->id, sizeof recording->id);
    recording->wave_count = group->wave_count;
    recording->waves = calloc(group->wave_count, sizeof *recording->waves);
    if (recording->waves) return recording;
    free(recording);
    return NULL;
}

void tessera_sim_recording_free(struct sim_recording *recording) {
    if (!recording) return;
    for (uint32_t i = 0; i < recording->wave_count; i++) free(recording->waves[i].steps);
    free(recording->waves);
    free(recording->words);
    free(recording);
}

// Returns `items`, grown so that one more than `count` fit; NULL where there is no memory, and `items` stay.
static void *grow(void *items, size_t count, size_t *capacity, size_t size) {
    enum { FIRST = 1024 };
    if (count < *capacity) return items;
    const size_t more = *capacity ? 2 * *capacity : FIRST;
    void *grown = realloc(items, more * size);
    if (grown) *capacity = more;
    return grown;
}

static void add_word(struct sim_recording *recording, uint64_t word) {
    void *grown = grow(recording->words, recording->word_count, &recording->word_capacity, sizeof word);
    if (!grown) {
        recording->failed = true;
        return;
    }
    recording->words = grown;
    recording->words[recording->word_count++] = word;
}

// ---- LDS

static uint32_t pack(struct sim_lds_cost cost) { return cost.phases | (uint32_t)cost.conflicts << 16; }

// An instruction that moves words between lanes, or one address of all lanes: as accesses of a word without conflicts.
static uint32_t plain_cost(const struct sim_wave *wave, const struct sim_code *code) {
    uint32_t address[SIM_LANES];
    for (uint32_t lane = 0; lane < SIM_LANES; lane++) address[lane] = 4 * lane;
    return pack(tessera_sim_lds_cost((enum sim_arch)code->inst.arch, false, 4, sim_exec(wave), address));
}

static unsigned bits_of(const struct sim_inst *inst, bool store) { return inst->op[store ? SIM_DATA : SIM_DST].bits; }

static uint32_t lds_cost(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const bool moves = strstr(inst->row->mnemonic, "permute") || strstr(inst->row->mnemonic, "swizzle");
    const bool pair = inst->row->flags & SIM_FLAG_PAIR, store = inst->op[SIM_DST].kind == SIM_ABSENT;
    const unsigned bits = bits_of(inst, store), bytes = (pair && !store ? bits / 2 : bits) / 8;
    if (moves || inst->op[SIM_ADDR].kind != SIM_VGPR || bytes == 0) return plain_cost(wave, code);
    const uint32_t unit = strstr(inst->row->mnemonic, "st64") ? 64 * bytes : bytes;
    const uint32_t offset[2] = {pair ? (uint32_t)(inst->offset & 0xff) * unit : (uint32_t)inst->offset,
                                inst->offset1 * unit};
    sim_vgpr *base = tessera_sim_registers(wave, &inst->op[SIM_ADDR], 1);
    struct sim_lds_cost sum = {0, 0};
    uint32_t address[SIM_LANES];
    for (unsigned k = 0; base && k < 1u + pair; k++) {
        for (int lane = 0; lane < SIM_LANES; lane++) address[lane] = base[0][lane] + offset[k];
        const struct sim_lds_cost cost =
            tessera_sim_lds_cost((enum sim_arch)inst->arch, store, bytes, sim_exec(wave), address);
        sum.phases = (uint16_t)(sum.phases + cost.phases);
        sum.conflicts = (uint16_t)(sum.conflicts + cost.conflicts);
    }
    return pack(sum);
}

// ---- memory

static bool add_number(uint64_t *numbers, unsigned *count, uint64_t number) {
    for (unsigned i = *count; i > 0; i--)
        if (numbers[i - 1] == number) return false;
    numbers[(*count)++] = number;
    return true;
}

// The address that stands for a lane's place: lanes of scratch are interleaved word by word.
static uint64_t address_of(const struct sim_wave *wave, const struct sim_place *place, unsigned lane) {
    if (place->space != SIM_PRIVATE) return place->address;
    return (uintptr_t)wave->scratch + place->address / 4 * (4 * SIM_LANES) + 4 * lane;
}

static uint32_t record_lines(struct sim_recording *recording, struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, index = (uint32_t)recording->word_count;
    struct sim_place places[SIM_LANES];
    uint64_t blocks[2 * SIM_LANES], lines[2 * SIM_LANES], exec = sim_exec(wave);
    unsigned block_count = 0, line_count = 0, used = 0;
    if (exec == 0 || bytes == 0 || !tessera_sim_find_places(wave, &code->inst, bytes, places)) exec = 0;
    for (; exec; exec &= exec - 1) {
        const unsigned lane = (unsigned)__builtin_ctzll(exec);
        if (places[lane].space == SIM_LDS || places[lane].reachable == 0) continue;
        const uint64_t first = address_of(wave, &places[lane], lane), last = first + bytes - 1;
        used += bytes;
        for (uint64_t block = first >> SIM_BLOCK_SHIFT; block <= last >> SIM_BLOCK_SHIFT; block++)
            if (add_number(blocks, &block_count, block))
                add_number(lines, &line_count, block >> (SIM_LINE_SHIFT - SIM_BLOCK_SHIFT));
    }
    add_word(recording, used | (uint64_t)line_count << 32 | (uint64_t)block_count << 48);
    for (unsigned i = 0; i < line_count; i++) add_word(recording, lines[i]);
    return index;
}

static uint32_t record_scalar(struct sim_recording *recording, struct sim_wave *wave, const struct sim_code *code) {
    unsigned bytes;
    const uint64_t address = tessera_sim_scalar_address(wave, code, &bytes), first = address >> SIM_SCALAR_SHIFT;
    if (bytes == 0) return SIM_NO_LINES;
    const uint32_t index = (uint32_t)recording->word_count;
    add_word(recording, first << 1 | ((address + bytes - 1) >> SIM_SCALAR_SHIFT != first));
    return index;
}

// ---- steps

static uint32_t find_extra(struct sim_recording *recording, struct sim_wave *wave, const struct sim_code *code) {
    switch (code->kind) {
    case SIM_KIND_LDS:
        return lds_cost(wave, code);
    case SIM_KIND_SCALAR_MEMORY:
        return record_scalar(recording, wave, code);
    case SIM_KIND_LOAD:
    case SIM_KIND_STORE:
        return record_lines(recording, wave, code);
    default:
        return 0;
    }
}

void tessera_sim_record(struct sim_recording *recording, struct sim_wave *wave, const struct sim_code *code) {
    struct sim_wave_recording *to = &recording->waves[wave->index];
    void *grown = grow(to->steps, to->count, &to->capacity, sizeof *to->steps);
    if (!grown || recording->failed) {
        recording->failed = true;
        return;
    }
    to->steps = grown;
    const uintptr_t at = wave->pc - wave->group->launch->kernel->module->code_base;
    to->steps[to->count++] = (struct sim_step){code, (uint32_t)at, find_extra(recording, wave, code)};
}
