// SPDX-License-Identifier: MIT
#include "shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "execute/effects.h"
#include "sanitize.h"

enum {
    MAX_VECTORS = 128, // most registers that one instruction names
    MAX_SCALARS = 48,
    MAX_ACCESSES = 1024,
    MAX_BYTES = 64, // most bytes of one access
    ORIGINS = 1024, // number of places of undefined data whose origin is remembered
};

// ---- where undefined bits come from

enum origin_kind { NOWHERE, FROM_VECTOR, FROM_SCALAR, FROM_SCC, FROM_LDS, FROM_SCRATCH, FROM_MEMORY };

struct origin {
    enum origin_kind kind;
    uint64_t place; // a register or an address
    uintptr_t pc;   // for memory: the instruction that loaded the bits
};

// Origins in the registers of one wave. All lanes of a register share one.
struct origins {
    struct origin vector[2 * SIM_VGPRS], scalar[SIM_SGPRS], scc;
};

// Origins of undefined data that were stored, in a hash table over their words' addresses; new ones replace old ones.
struct stored_origin {
    uintptr_t word;
    struct origin origin;
};

// ---- registers of one instruction

struct named {
    uint16_t index;
    uint8_t operand; // its number: operands get different values
    uint8_t slot;
    uint8_t word; // of its operand
    bool written;
};

struct registers {
    unsigned vectors, scalars;
    bool scc_written;
    uint64_t seen[2 * SIM_VGPRS / 64], seen_scalars[SIM_SGPRS / 64];
    struct named vector[MAX_VECTORS], scalar[MAX_SCALARS];
};

// The values of those registers at one time.
struct values {
    sim_vgpr vector[MAX_VECTORS] __attribute__((aligned(64)));
    uint32_t scalar[MAX_SCALARS];
    bool scc;
    uint32_t mode;
    uintptr_t next_pc;
};

struct sim_shadow_memory {
    uint8_t *lds, *scratch;
    size_t lds_bytes, wave_scratch_bytes, scratch_bytes;
    unsigned access_count, next_copy;
    bool rehearsing;
    struct registers registers;
    struct values before, after, changed;
    struct sim_touched access[MAX_ACCESSES];
    uint8_t copy[MAX_ACCESSES][MAX_BYTES], plain[MAX_ACCESSES][MAX_BYTES], changed_bytes[MAX_ACCESSES][MAX_BYTES];
    struct stored_origin stored[ORIGINS];
    struct origins origins[]; // one for each wave
};

static struct sim_shadow *shadow_of(const struct sim_wave *wave) { return &wave->checks->shadow; }
static struct sim_shadow_memory *memory_of(const struct sim_wave *wave) { return wave->checks->memory; }
static struct origins *origins_of(const struct sim_wave *wave) { return &memory_of(wave)->origins[wave->index]; }

static void close_memory(struct sim_shadow_memory *memory) {
    if (!memory) return;
    free(memory->lds);
    free(memory->scratch);
    free(memory);
}

static struct sim_shadow_memory *open_memory(const struct sim_launch *launch) {
    struct sim_shadow_memory *memory =
        aligned_alloc(64, (sizeof *memory + launch->waves_per_group * sizeof(struct origins) + 63) / 64 * 64);
    if (!memory) return NULL;
    memory->lds_bytes = launch->lds_bytes;
    memory->wave_scratch_bytes = (size_t)SIM_LANES * launch->lane_scratch_bytes;
    memory->scratch_bytes = launch->waves_per_group * memory->wave_scratch_bytes;
    memory->lds = malloc(memory->lds_bytes + 1);
    memory->scratch = malloc(memory->scratch_bytes + 1);
    if (memory->lds && memory->scratch) return memory;
    close_memory(memory);
    return NULL;
}

static bool open_shadow(struct sim_group *group) {
    struct sim_shadow_memory *memory = open_memory(group->launch);
    group->checks->group->memory = memory;
    if (memory) group->lds_undefined = memory->lds;
    return memory;
}

static void close_shadow(struct sim_group *group) { close_memory(group->checks->group->memory); }

// Marks registers and scratch undefined except what the hardware sets, and LDS with the group's first wave.
static void start_wave(struct sim_wave *wave) {
    struct sim_shadow *shadow = shadow_of(wave);
    struct sim_shadow_memory *memory = wave->checks->memory = wave->checks->group->memory;
    struct origins *origins = origins_of(wave);
    memset(shadow, 0xff, sizeof *shadow);
    shadow->scc = true;
    for (unsigned i = 0; i < wave->set_sgprs; i++) shadow->sgpr[i] = 0;
    shadow->sgpr[SIM_EXEC] = shadow->sgpr[SIM_EXEC + 1] = 0;
    if (wave->group->launch->sim->arch != SIM_GFX90A)
        shadow->sgpr[SIM_FLAT_SCRATCH] = shadow->sgpr[SIM_FLAT_SCRATCH + 1] = 0;
    memset(shadow->vgpr[0], 0, sizeof shadow->vgpr[0]);
    for (unsigned i = 0; i < 2 * SIM_VGPRS; i++) origins->vector[i] = (struct origin){.kind = FROM_VECTOR, .place = i};
    for (unsigned i = 0; i < SIM_SGPRS; i++) origins->scalar[i] = (struct origin){.kind = FROM_SCALAR, .place = i};
    origins->scc = (struct origin){.kind = FROM_SCC};
    wave->scratch_undefined = memory->scratch + wave->index * memory->wave_scratch_bytes;
    memset(wave->scratch_undefined, 0xff, memory->wave_scratch_bytes);
    if (wave->index > 0) return;
    memset(memory->lds, 0xff, memory->lds_bytes);
    memset(memory->stored, 0, sizeof memory->stored);
    memory->rehearsing = false;
}

// ---- accesses

// Notes an access of the instruction that runs, and returns where it finds its bytes: a copy of them while the
// instruction is run again.
static uint8_t *note_access(struct sim_wave *wave, int lane, uint8_t *host, uint8_t *undefined, size_t bytes) {
    struct sim_shadow_memory *memory = memory_of(wave);
    if (memory->rehearsing) return memory->copy[memory->access[memory->next_copy++ % MAX_ACCESSES].twin];
    if (memory->access_count == MAX_ACCESSES || bytes > MAX_BYTES) abort(); // no instruction has so many
    struct sim_touched *access = &memory->access[memory->access_count];
    *access = (struct sim_touched){.host = host,
                                   .undefined = undefined,
                                   .lane = (int16_t)lane,
                                   .bytes = (uint16_t)bytes,
                                   .twin = (uint16_t)memory->access_count};
    memory->access_count++;
    memcpy(access->before, host, bytes);
    return host;
}

const struct sim_touched *tessera_sim_touched(const struct sim_wave *wave, unsigned *count) {
    *count = memory_of(wave)->access_count;
    return memory_of(wave)->access;
}

static bool any_byte(const uint8_t *bytes, size_t count) {
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++) any |= bytes[i];
    return any != 0;
}

static const struct sim_touched *find_undefined_access(const struct sim_shadow_memory *memory) {
    for (unsigned i = 0; i < memory->access_count; i++) {
        const struct sim_touched *access = &memory->access[i];
        if (access->undefined && any_byte(access->undefined, access->bytes)) return access;
    }
    return NULL;
}

// ---- which registers, and whether they have undefined bits

static inline bool any_bit(const uint32_t *words, const uint32_t *lanes) {
    uint32_t any = 0;
    for (int i = 0; i < SIM_LANES; i++) any |= words[i] & lanes[i];
    return any != 0;
}

static void add_name(struct named *list, unsigned *count, unsigned most, uint64_t *seen, struct named name) {
    uint64_t *word = &seen[name.index / 64], bit = UINT64_C(1) << name.index % 64;
    if (*word & bit) {
        for (unsigned i = 0; i < *count; i++)
            if (list[i].index == name.index) list[i].written |= name.written;
        return;
    }
    if (*count == most) abort(); // no instruction has so many
    *word |= bit;
    list[(*count)++] = name;
}

// Whether the register has undefined bits in lanes that the instruction touches.
static bool is_undefined(struct sim_wave *wave, const struct sim_effect *effect, unsigned index) {
    const struct sim_shadow *shadow = shadow_of(wave);
    if (effect->file == SIM_FILE_SCC) return shadow->scc;
    if (effect->file == SIM_FILE_SCALAR) return shadow->sgpr[index];
    if (!(effect->access & SIM_ALL_LANES)) return any_bit(shadow->vgpr[index], tessera_sim_exec_lanes(wave));
    return any_byte((const uint8_t *)shadow->vgpr[index], sizeof shadow->vgpr[index]);
}

enum undefined { DEFINED = 0, OLD_RESULT = 1, SOURCES = 2, MEMORY = 4 };

// Lists the registers of the instruction; returns which kinds of them have undefined bits that can matter.
static unsigned find_registers(struct sim_wave *wave, const struct sim_code *code, struct registers *out) {
    unsigned undefined = DEFINED;
    memset(out, 0, offsetof(struct registers, vector));
    for (unsigned i = 0; i < code->effects.count; i++) {
        const struct sim_effect *effect = &code->effects.list[i];
        const unsigned first = tessera_sim_effect_first(wave, code, effect);
        const bool written = effect->access & SIM_WRITES;
        const unsigned limit = effect->file == SIM_FILE_VECTOR ? 2 * SIM_VGPRS : SIM_SGPRS;
        if (effect->file == SIM_FILE_SCC) out->scc_written |= written;
        for (unsigned k = 0; k < effect->count && first + k < limit && effect->file != SIM_FILE_MODE; k++) {
            const struct named name = {(uint16_t)(first + k), (uint8_t)i, effect->slot, (uint8_t)k, written};
            if (effect->file == SIM_FILE_VECTOR) add_name(out->vector, &out->vectors, MAX_VECTORS, out->seen, name);
            if (effect->file == SIM_FILE_SCALAR)
                add_name(out->scalar, &out->scalars, MAX_SCALARS, out->seen_scalars, name);
            if (is_undefined(wave, effect, name.index)) undefined |= effect->access & SIM_READS ? SOURCES : OLD_RESULT;
        }
    }
    return undefined;
}

static void keep(struct sim_wave *wave, const struct registers *registers, struct values *values) {
    for (unsigned i = 0; i < registers->vectors; i++)
        memcpy(values->vector[i], wave->vgpr[registers->vector[i].index], sizeof(sim_vgpr));
    for (unsigned i = 0; i < registers->scalars; i++) values->scalar[i] = wave->sgpr[registers->scalar[i].index];
    values->scc = wave->scc;
    values->mode = wave->mode;
    values->next_pc = wave->next_pc;
}

static void put_back(struct sim_wave *wave, const struct registers *registers, const struct values *values) {
    for (unsigned i = 0; i < registers->vectors; i++)
        memcpy(wave->vgpr[registers->vector[i].index], values->vector[i], sizeof(sim_vgpr));
    for (unsigned i = 0; i < registers->scalars; i++) wave->sgpr[registers->scalar[i].index] = values->scalar[i];
    wave->scc = values->scc;
    if (wave->mode != values->mode) tessera_sim_set_mode(wave, values->mode);
    wave->next_pc = values->next_pc;
}

// ---- values to try

// Values that take the place of undefined bits. A row is a trial; its column is the operand's number modulo 3, so that
// operands differ. Bitwise instructions need all combinations of zeros and ones, comparisons need extreme
// integers and floats.
static const uint32_t patterns[][3] = {
    {0, 0, 0},
    {UINT32_MAX, UINT32_MAX, UINT32_MAX},
    {UINT32_MAX, 0, 0},
    {0, UINT32_MAX, 0},
    {0, 0, UINT32_MAX},
    {UINT32_MAX, UINT32_MAX, 0},
    {0x7fffffff, 0x80000000, 0x7fffffff},
    {0x80000000, 0x7fffffff, UINT32_MAX},
    {0x7f800000, 0xff800000, 0},
    {0xff800000, 0x7f800000, 0},
};
enum {
    FLIPPED, // the inverse of the bits
    FROM_OTHER_0,
    FROM_OTHER_1, // the bits of the other source, so that both operands are equal
    SCATTERED,
    FIRST_PATTERN = SCATTERED + 8,
    TRIALS = FIRST_PATTERN + sizeof patterns / sizeof *patterns
};

static uint32_t scatter(unsigned trial, const struct named *name, unsigned lane) {
    uint32_t mixed = (name->index * 64u + lane) * 0x9e3779b9u + trial * 0x85ebca6bu;
    mixed = (mixed ^ mixed >> 15) * 0x2c1b3c6du;
    mixed = (mixed ^ mixed >> 12) * 0x297a2d39u;
    return mixed ^ mixed >> 15;
}

static const struct named *find_slot(const struct named *list, unsigned count, unsigned slot, unsigned word) {
    for (unsigned i = 0; i < count; i++)
        if (list[i].slot == slot && list[i].word == word) return &list[i];
    return NULL;
}

// A word of the other source than `slot`, with its value before the instruction; false where there is none.
static bool other_source(const struct sim_shadow_memory *memory, const struct sim_code *code, unsigned slot,
                         unsigned word, unsigned lane, uint32_t *out) {
    const unsigned other = slot == SIM_SRC0 ? SIM_SRC1 : SIM_SRC0;
    const struct registers *registers = &memory->registers;
    const struct sim_operand *operand = &code->inst.op[other];
    if (slot != SIM_SRC0 && slot != SIM_SRC1) return false;
    if (operand->kind == SIM_CONST || operand->kind == SIM_LITERAL) {
        *out = (uint32_t)(operand->value >> 32 * (word & 1));
        return true;
    }
    if (code->inst.format == SIM_SOPK) {
        *out = (uint32_t)code->inst.imm;
        return true;
    }
    const struct named *vector = find_slot(registers->vector, registers->vectors, other, word);
    if (vector) *out = memory->before.vector[vector - registers->vector][lane];
    const struct named *scalar = find_slot(registers->scalar, registers->scalars, other, word);
    if (scalar) *out = memory->before.scalar[scalar - registers->scalar];
    return vector || scalar;
}

static uint32_t trial_word(const struct sim_shadow_memory *memory, const struct sim_code *code, unsigned trial,
                           const struct named *name, unsigned lane, uint32_t value, uint32_t undefined) {
    uint32_t other = ~value;
    if (!undefined) return value;
    if (trial == FROM_OTHER_0 || trial == FROM_OTHER_1) {
        const unsigned slot = trial == FROM_OTHER_0 ? SIM_SRC0 : SIM_SRC1;
        if (name->slot != slot || !other_source(memory, code, slot, name->word, lane, &other)) return value;
    } else if (trial >= FIRST_PATTERN) {
        other = patterns[trial - FIRST_PATTERN][name->operand % 3];
    } else if (trial >= SCATTERED) {
        other = scatter(trial, name, lane);
    }
    return (value & ~undefined) | (other & undefined);
}

// Sets registers to their values before the instruction, with this trial's values in undefined bits.
static void set_trial(struct sim_wave *wave, const struct sim_code *code, unsigned trial) {
    const struct sim_shadow_memory *memory = memory_of(wave);
    const struct sim_shadow *shadow = shadow_of(wave);
    const struct registers *registers = &memory->registers;
    put_back(wave, registers, &memory->before);
    for (unsigned i = 0; i < registers->vectors; i++) {
        const struct named *name = &registers->vector[i];
        uint32_t *words = wave->vgpr[name->index];
        const uint32_t *undefined = shadow->vgpr[name->index];
        for (unsigned lane = 0; lane < SIM_LANES; lane++)
            words[lane] = trial_word(memory, code, trial, name, lane, words[lane], undefined[lane]);
    }
    for (unsigned i = 0; i < registers->scalars; i++) {
        const struct named *name = &registers->scalar[i];
        uint32_t *word = &wave->sgpr[name->index];
        *word = trial_word(memory, code, trial, name, 0, *word, shadow->sgpr[name->index]);
    }
    if (shadow->scc) wave->scc = trial == FLIPPED ? !wave->scc : trial & 1;
}

static void set_trial_bytes(struct sim_shadow_memory *memory, unsigned trial) {
    for (unsigned i = 0; i < memory->access_count; i++) {
        const struct sim_touched *access = &memory->access[i];
        const struct named name = {.index = (uint16_t)i, .operand = 1};
        memcpy(memory->copy[i], access->before, access->bytes);
        for (unsigned k = 0; access->undefined && k < access->bytes; k++) {
            const uint32_t old = access->before[k] * 0x01010101u, undefined = access->undefined[k] * 0x01010101u;
            memory->copy[i][k] = (uint8_t)(trial_word(memory, NULL, trial, &name, k, old, undefined) >> 8 * (k & 3));
        }
    }
}

// ---- running an instruction again

static void rehearse(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_shadow_memory *memory = memory_of(wave);
    memory->rehearsing = true;
    memory->next_copy = 0;
    code->execute(wave, code);
    memory->rehearsing = false;
}

// Finds accesses to the same place, which share their bytes.
static void find_twins(struct sim_shadow_memory *memory) {
    for (unsigned i = 1; i < memory->access_count; i++)
        for (unsigned k = 0; k < i; k++)
            if (memory->access[k].host == memory->access[i].host &&
                memory->access[k].bytes == memory->access[i].bytes) {
                memory->access[i].twin = (uint16_t)k;
                break;
            }
}

static void add_changes(struct sim_wave *wave) {
    struct sim_shadow_memory *memory = memory_of(wave);
    const struct registers *registers = &memory->registers;
    struct values *changed = &memory->changed;
    for (unsigned i = 0; i < registers->vectors; i++) {
        const uint32_t *words = wave->vgpr[registers->vector[i].index];
        for (int lane = 0; lane < SIM_LANES && registers->vector[i].written; lane++)
            changed->vector[i][lane] |= words[lane] ^ memory->after.vector[i][lane];
    }
    for (unsigned i = 0; i < registers->scalars; i++)
        changed->scalar[i] |= wave->sgpr[registers->scalar[i].index] ^ memory->after.scalar[i];
    changed->scc |= wave->scc != memory->after.scc;
    for (unsigned i = 0; i < memory->access_count; i++)
        for (unsigned k = 0; k < memory->access[i].bytes; k++)
            memory->changed_bytes[i][k] |= memory->copy[i][k] ^ memory->plain[i][k];
}

static void clear_changes(struct sim_shadow_memory *memory) {
    for (unsigned i = 0; i < memory->registers.vectors; i++)
        memset(memory->changed.vector[i], 0, sizeof memory->changed.vector[i]);
    memset(memory->changed.scalar, 0, sizeof memory->changed.scalar);
    memory->changed.scc = false;
    memset(memory->changed_bytes, 0, memory->access_count * sizeof *memory->changed_bytes);
}

static bool begins(const struct sim_code *code, const char *prefix) {
    return strncmp(code->inst.row->mnemonic, prefix, strlen(prefix)) == 0;
}

static bool touches_memory(const struct sim_code *code) {
    return code->effects.unit >= SIM_UNIT_MEMORY || code->effects.unit == SIM_UNIT_SCALAR_MEMORY;
}

static bool is_load(const struct sim_code *code) {
    return strstr(code->inst.row->mnemonic, "load") || begins(code, "ds_read");
}

static bool is_store(const struct sim_code *code) {
    return strstr(code->inst.row->mnemonic, "store") || (begins(code, "ds_write") && !begins(code, "ds_wrx"));
}

// Marks all bits of a floating-point number as changed if one of them is: the trials seldom reach every bit.
static void widen_changes(struct sim_shadow_memory *memory, const struct sim_code *code) {
    const struct sim_operand *result = &code->inst.op[SIM_DST];
    const unsigned element = code->element[SIM_DST];
    if ((result->type != SIM_F && result->type != SIM_BF) || element < 16 || code->inst.format == SIM_SDWA) return;
    for (unsigned i = 0; i < memory->registers.vectors; i++) {
        if (memory->registers.vector[i].slot != SIM_DST) continue;
        uint32_t *words = memory->changed.vector[i];
        for (int lane = 0; lane < SIM_LANES; lane++) {
            const uint32_t low = element == 16 ? 0xffff : UINT32_MAX, high = element == 16 ? 0xffff0000 : UINT32_MAX;
            words[lane] |= (words[lane] & low ? low : 0) | (words[lane] & high ? high : 0);
        }
    }
}

// Finds the bits of results that change with the undefined bits of sources, memory and old results.
static void find_changes(struct sim_wave *wave, const struct sim_code *code, unsigned undefined) {
    struct sim_shadow_memory *memory = memory_of(wave);
    // Where bits are only moved, one trial with the bits flipped is enough.
    const bool moves = undefined == OLD_RESULT || (touches_memory(code) && (is_load(code) || is_store(code)));
    keep(wave, &memory->registers, &memory->after);
    clear_changes(memory);
    if (memory->access_count) {
        if (!is_load(code)) find_twins(memory);
        for (unsigned i = 0; i < memory->access_count; i++)
            memcpy(memory->copy[i], memory->access[i].before, memory->access[i].bytes);
        put_back(wave, &memory->registers, &memory->before);
        rehearse(wave, code);
        memcpy(memory->plain, memory->copy, memory->access_count * sizeof *memory->plain);
    }
    for (unsigned trial = FLIPPED; trial < (moves ? FLIPPED + 1 : TRIALS); trial++) {
        set_trial(wave, code, trial);
        set_trial_bytes(memory, trial);
        rehearse(wave, code);
        add_changes(wave);
    }
    if (undefined & SOURCES) widen_changes(memory, code);
    put_back(wave, &memory->registers, &memory->after);
}

// ---- origins

static struct stored_origin *stored_at(struct sim_shadow_memory *memory, const uint8_t *host) {
    const uintptr_t word = (uintptr_t)host / 4;
    return &memory->stored[(word ^ word / ORIGINS) % ORIGINS];
}

static struct origin origin_of_access(const struct sim_wave *wave, const struct sim_touched *access) {
    struct sim_shadow_memory *memory = memory_of(wave);
    const struct sim_group *group = wave->group;
    const uint8_t *host = access->host;
    while (!access->undefined[host - access->host]) host++;
    const struct stored_origin *stored = stored_at(memory, host);
    if (stored->word == (uintptr_t)host / 4) return stored->origin;
    struct origin origin = {.kind = FROM_MEMORY, .place = (uintptr_t)host, .pc = wave->pc};
    if (host >= group->lds && host < group->lds + group->lds_bytes) {
        origin.kind = FROM_LDS;
        origin.place = (uint64_t)(host - group->lds);
    } else if (host >= wave->scratch && host < wave->scratch + memory->wave_scratch_bytes) {
        const uint64_t at = (uint64_t)(host - wave->scratch);
        origin.kind = FROM_SCRATCH;
        origin.place = at / (4 * SIM_LANES) * 4 + at % 4;
    }
    return origin;
}

static struct origin find_origin(struct sim_wave *wave, bool stores) {
    const struct sim_shadow_memory *memory = memory_of(wave);
    const struct sim_shadow *shadow = shadow_of(wave);
    const struct registers *registers = &memory->registers;
    const struct sim_touched *access = stores ? NULL : find_undefined_access(memory);
    if (access) return origin_of_access(wave, access);
    for (int results = 0; results < 2; results++) {
        for (unsigned i = 0; i < registers->vectors; i++) {
            const uint32_t *words = shadow->vgpr[registers->vector[i].index];
            if (registers->vector[i].written == results && any_bit(words, tessera_sim_exec_lanes(wave)))
                return origins_of(wave)->vector[registers->vector[i].index];
        }
        for (unsigned i = 0; i < registers->scalars; i++)
            if (registers->scalar[i].written == results && shadow->sgpr[registers->scalar[i].index])
                return origins_of(wave)->scalar[registers->scalar[i].index];
    }
    return origins_of(wave)->scc;
}

static void print_register(char *text, size_t size, const struct sim_wave *wave, enum origin_kind kind,
                           unsigned index) {
    static const char *const names[SIM_SGPRS] = {[SIM_VCC] = "vcc_lo",     [SIM_VCC + 1] = "vcc_hi",
                                                 [SIM_M0] = "m0",          [SIM_FLAT_SCRATCH] = "flat_scratch_lo",
                                                 [SIM_EXEC] = "exec_lo",   [SIM_EXEC + 1] = "exec_hi",
                                                 [103] = "flat_scratch_hi"};
    if (kind == FROM_SCALAR && names[index])
        snprintf(text, size, "%s", names[index]);
    else if (kind == FROM_SCALAR)
        snprintf(text, size, "s%u", index);
    else if (index >= wave->first_agpr)
        snprintf(text, size, "a%u", index - wave->first_agpr);
    else
        snprintf(text, size, "v%u", index);
}

static void print_origin(char *text, size_t size, const struct sim_wave *wave, const struct origin *origin) {
    const unsigned long long at = origin->pc - wave->group->launch->kernel->entry;
    void *base = NULL;
    size_t bytes = 0;
    char name[24];
    switch (origin->kind) {
    case FROM_VECTOR:
    case FROM_SCALAR:
        print_register(name, sizeof name, wave, origin->kind, (unsigned)origin->place);
        snprintf(text, size, "%s, which nothing has set", name);
        break;
    case FROM_LDS:
        snprintf(text, size, "LDS %llu, which nothing has stored, loaded at +0x%llx", (unsigned long long)origin->place,
                 at);
        break;
    case FROM_SCRATCH:
        snprintf(text, size, "scratch %llu, which nothing has stored, loaded at +0x%llx",
                 (unsigned long long)origin->place, at);
        break;
    case FROM_MEMORY:
        tessera_sim_find(wave->group->launch->sim, (const void *)(uintptr_t)origin->place, &base, &bytes);
        snprintf(text, size, "byte %llu of %zu at %p, which nothing has stored, loaded at +0x%llx",
                 (unsigned long long)(origin->place - (uintptr_t)base), bytes, base, at);
        break;
    default:
        snprintf(text, size, "scc, which nothing has set");
    }
}

// ---- shadows of the results

// Stores the shadows of the results. Undefined bits that were not in the old result get the origin of the source.
static void store_shadows(struct sim_wave *wave, const struct sim_code *code, bool fresh) {
    struct sim_shadow_memory *memory = memory_of(wave);
    struct sim_shadow *shadow = shadow_of(wave);
    struct origins *origins = origins_of(wave);
    const struct registers *registers = &memory->registers;
    const struct origin origin = find_origin(wave, is_store(code));
    for (unsigned i = 0; i < registers->vectors; i++) {
        const unsigned index = registers->vector[i].index;
        if (!registers->vector[i].written) continue;
        if (fresh && any_bit(memory->changed.vector[i], tessera_sim_exec_lanes(wave))) origins->vector[index] = origin;
        memcpy(shadow->vgpr[index], memory->changed.vector[i], sizeof(sim_vgpr));
    }
    for (unsigned i = 0; i < registers->scalars; i++) {
        const unsigned index = registers->scalar[i].index;
        if (!registers->scalar[i].written) continue;
        if (fresh && memory->changed.scalar[i]) origins->scalar[index] = origin;
        shadow->sgpr[index] = memory->changed.scalar[i];
    }
    if (registers->scc_written) {
        if (fresh && memory->changed.scc) origins->scc = origin;
        shadow->scc = memory->changed.scc;
    }
    for (unsigned i = 0; i < memory->access_count; i++) {
        const struct sim_touched *access = &memory->access[i];
        const uint8_t *changed = memory->changed_bytes[access->twin];
        if (!access->undefined) continue;
        if (!is_load(code) && any_byte(changed, access->bytes))
            *stored_at(memory, access->host) = (struct stored_origin){(uintptr_t)access->host / 4, origin};
        memcpy(access->undefined, changed, access->bytes);
    }
}

static void mark_stored(struct sim_shadow_memory *memory) {
    for (unsigned i = 0; i < memory->access_count; i++)
        if (memory->access[i].undefined) memset(memory->access[i].undefined, 0, memory->access[i].bytes);
}

// ---- uses that undefined bits must not reach

static bool report(struct sim_wave *wave, int lane, enum origin_kind kind, unsigned index, const char *what) {
    const struct origins *origins = origins_of(wave);
    const struct origin *origin = kind == FROM_VECTOR   ? &origins->vector[index]
                                  : kind == FROM_SCALAR ? &origins->scalar[index]
                                                        : &origins->scc;
    char name[24] = "scc", from[160];
    if (kind != FROM_SCC) print_register(name, sizeof name, wave, kind, index);
    print_origin(from, sizeof from, wave, origin);
    const bool is_exec = kind == FROM_SCALAR && index >= SIM_EXEC;
    if (is_exec || (origin->kind == kind && origin->place == index))
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNDEFINED, lane, 0, "%s depends on %s", what, from);
    else
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNDEFINED, lane, 0, "%s depends on %s, and that on %s", what, name,
                            from);
    return false;
}

static bool check_vector(struct sim_wave *wave, unsigned index, const char *what) {
    const uint32_t *words = shadow_of(wave)->vgpr[index], *lanes = tessera_sim_exec_lanes(wave);
    if (!any_bit(words, lanes)) return true;
    int lane = 0;
    while (!(words[lane] & lanes[lane])) lane++;
    return report(wave, lane, FROM_VECTOR, index, what);
}

static bool check_scalar(struct sim_wave *wave, unsigned index, uint32_t bits, const char *what) {
    return !(shadow_of(wave)->sgpr[index] & bits) || report(wave, -1, FROM_SCALAR, index, what);
}

static bool is_address(const struct sim_code *code, const struct sim_effect *effect) {
    if (effect->slot == SIM_ADDR)
        return code->inst.row->op != SIM_OP_ds_swizzle_b32 && code->inst.row->op != SIM_OP_ds_bpermute_b32 &&
               code->inst.row->op != SIM_OP_ds_permute_b32;
    return effect->slot == SIM_BASE || effect->slot == SIM_OFFSET ||
           (effect->slot == SIM_SLOTS && effect->file == SIM_FILE_SCALAR && effect->first == SIM_M0);
}

static bool check_addresses(struct sim_wave *wave, const struct sim_code *code) {
    if (sim_exec(wave) == 0 && code->effects.unit != SIM_UNIT_SCALAR_MEMORY) return true;
    for (unsigned i = 0; i < code->effects.count; i++) {
        const struct sim_effect *effect = &code->effects.list[i];
        const unsigned first = tessera_sim_effect_first(wave, code, effect);
        if (!is_address(code, effect) || first + effect->count > 2 * SIM_VGPRS) continue;
        for (unsigned k = 0; k < effect->count; k++)
            if (!(effect->file == SIM_FILE_VECTOR ? check_vector(wave, first + k, "an address")
                                                  : check_scalar(wave, first + k, UINT32_MAX, "an address")))
                return false;
    }
    return true;
}

static bool check_vcc_branch(struct sim_wave *wave) {
    const uint32_t *bits = &shadow_of(wave)->sgpr[SIM_VCC], *vcc = &wave->sgpr[SIM_VCC];
    if ((vcc[0] & ~bits[0]) | (vcc[1] & ~bits[1])) return true; // not 0 whatever undefined bits are
    return check_scalar(wave, SIM_VCC, UINT32_MAX, "a branch") &&
           check_scalar(wave, SIM_VCC + 1, UINT32_MAX, "a branch");
}

static bool check_control(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_operand *target = &code->inst.op[SIM_SRC0];
    switch (code->inst.row->op) {
    case SIM_OP_s_cbranch_scc0:
    case SIM_OP_s_cbranch_scc1:
        return !shadow_of(wave)->scc || report(wave, -1, FROM_SCC, 0, "a branch");
    case SIM_OP_s_cbranch_vccz:
    case SIM_OP_s_cbranch_vccnz:
        return check_vcc_branch(wave);
    case SIM_OP_s_setpc_b64:
    case SIM_OP_s_swappc_b64:
        return check_scalar(wave, target->index, UINT32_MAX, "the address of a jump") &&
               check_scalar(wave, target->index + 1u, UINT32_MAX, "the address of a jump");
    case SIM_OP_s_setreg_b32:
        return target->kind != SIM_SGPR || check_scalar(wave, target->index, UINT32_MAX, "MODE");
    case SIM_OP_s_movrels_b32:
    case SIM_OP_s_movrels_b64:
    case SIM_OP_s_movreld_b32:
    case SIM_OP_s_movreld_b64:
        return check_scalar(wave, SIM_M0, UINT32_MAX, "a register's number");
    }
    return true;
}

static bool check_uses(struct sim_wave *wave, const struct sim_code *code) {
    enum { INDEX_BITS = 0xf0ff }; // the bits of M0 that index VGPRs
    if (code->effects.unit == SIM_UNIT_SCALAR) return check_control(wave, code);
    if (touches_memory(code)) return check_addresses(wave, code);
    return !(wave->mode & SIM_MODE_INDEX) || check_scalar(wave, SIM_M0, INDEX_BITS, "a register's number");
}

static void check_exec(struct sim_wave *wave) {
    if (check_scalar(wave, SIM_EXEC, UINT32_MAX, "EXEC")) check_scalar(wave, SIM_EXEC + 1, UINT32_MAX, "EXEC");
}

// ---- one instruction

static void execute(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_shadow_memory *memory = memory_of(wave);
    memory->access_count = 0;
    if (!check_uses(wave, code)) return;
    unsigned undefined = find_registers(wave, code, &memory->registers);
    const bool touches = touches_memory(code);
    if (undefined || touches) keep(wave, &memory->registers, &memory->before);
    code->execute(wave, code);
    if (wave->state == SIM_FAULTED) return;
    if (touches && find_undefined_access(memory)) undefined |= MEMORY;
    if (undefined == MEMORY && is_store(code))
        mark_stored(memory);
    else if (undefined && !code->inst.gds) { // GWS has no results
        find_changes(wave, code, undefined);
        if (wave->state == SIM_FAULTED) return;
        store_shadows(wave, code, undefined & (SOURCES | MEMORY));
        check_exec(wave);
    }
}

const struct sim_observer tessera_sim_shadow_check = {
    .wanted = tessera_sim_is_sanitized,
    .open = open_shadow,
    .close = close_shadow,
    .start_wave = start_wave,
    .execute = execute,
    .access = note_access,
};
