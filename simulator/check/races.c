// SPDX-License-Identifier: MIT
#include "races.h"

#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "sanitize.h"

enum { MAX_WAVES = 16, SEVERAL = 0xff }; // SEVERAL: more than one wave stored the byte, by atomics

// The waves that have touched a word of LDS since the last barrier.
struct word {
    uint32_t barrier;     // the number of that barrier; what follows counts only while it is the latest
    uint32_t store, load; // places of the last store and load, as offsets in the code
    uint16_t loaders[4];  // for each byte: a bit for each wave that loaded it
    uint8_t storer[4];    // for each byte: the wave that stored it last, plus 1
    uint8_t atomic;       // a bit for each byte that an atomic stored
    uint8_t loader;       // the wave that loaded at `load`
};

struct sim_races {
    uint32_t barrier; // how many barriers this group and those before it have passed
    size_t words;
    uint32_t passed[MAX_WAVES]; // how many barriers each wave has come to
    struct word word[];
};

static struct sim_races *races_of(const struct sim_group *group) { return group->checks->group->races; }

static bool open_races(struct sim_group *group) {
    const size_t words = group->launch->lds_bytes / 4 + 1;
    struct sim_races *races = calloc(1, sizeof *races + words * sizeof(struct word));
    if (races) races->words = words;
    group->checks->group->races = races;
    return races;
}

static void close_races(struct sim_group *group) { free(races_of(group)); }

static void pass_barrier(struct sim_group *group) {
    struct sim_races *races = races_of(group);
    if (++races->barrier) return;
    memset(races->word, 0, races->words * sizeof *races->word); // the count of barriers has wrapped
    races->barrier = 1;
}

// Forgets the accesses of the workgroup before.
static void start_group(struct sim_group *group) {
    struct sim_races *races = races_of(group);
    memset(races->passed, 0, sizeof races->passed);
    pass_barrier(group);
}

// ---- LDS

enum kind { LOAD, STORE, ATOMIC };

static enum kind kind_of(const struct sim_code *code) {
    const char *name = code->inst.row->mnemonic;
    if (code->effects.to_lds) return STORE;
    if (strstr(name, "atomic")) return ATOMIC;
    if (strstr(name, "load") || strncmp(name, "ds_read", 7) == 0) return LOAD;
    if (strstr(name, "store") || strncmp(name, "ds_write", 8) == 0) return STORE;
    return ATOMIC; // the effects of DS atomics do not say that they are atomics
}

static void report(struct sim_wave *wave, int lane, uint32_t address, enum kind kind, const char *did, unsigned other,
                   uint32_t at) {
    static const char *const verbs[] = {[LOAD] = "loads", [STORE] = "stores to", [ATOMIC] = "changes"};
    const struct sim_launch *launch = wave->group->launch;
    const unsigned long long offset = launch->kernel->module->code_base + at - launch->kernel->entry;
    if (other == SEVERAL)
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_LDS_RACE, lane, address,
                            "%s LDS %u, which atomics of other waves %s, the last at +0x%llx, and no barrier between",
                            verbs[kind], address, did, offset);
    else
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_LDS_RACE, lane, address,
                            "%s LDS %u, which wave %u %s at +0x%llx, and no barrier between", verbs[kind], address,
                            other, did, offset);
}

// Checks one byte of an access; false after a fault.
static bool check_byte(struct sim_wave *wave, const struct sim_touched *access, enum kind kind, struct word *word,
                       uint32_t address) {
    const unsigned byte = address % 4, me = wave->index, storer = word->storer[byte];
    const unsigned others = word->loaders[byte] & ~(1u << me);
    const bool atomic = word->atomic >> byte & 1;
    if (storer && storer != me + 1 && !(kind == ATOMIC && atomic)) {
        report(wave, access->lane, address, kind, "stored to", storer == SEVERAL ? SEVERAL : storer - 1, word->store);
        return false;
    }
    if (kind != LOAD && others) {
        const bool known = others >> word->loader & 1;
        report(wave, access->lane, address, kind, "loaded", known ? word->loader : (unsigned)__builtin_ctz(others),
               word->load);
        return false;
    }
    if (kind == LOAD) {
        word->loaders[byte] |= (uint16_t)(1u << me);
    } else {
        word->storer[byte] = (uint8_t)(kind == ATOMIC && storer && storer != me + 1 ? SEVERAL : me + 1);
        word->atomic = (uint8_t)((word->atomic & ~(1u << byte)) | (unsigned)(kind == ATOMIC) << byte);
    }
    return true;
}

static bool check_access(struct sim_wave *wave, const struct sim_touched *access, enum kind kind) {
    struct sim_races *races = races_of(wave->group);
    const uint32_t first = (uint32_t)(access->host - wave->group->lds);
    const uint32_t pc = (uint32_t)(wave->pc - wave->group->launch->kernel->module->code_base);
    for (uint32_t i = 0; i < access->bytes; i++) {
        struct word *word = &races->word[(first + i) / 4];
        if (kind == STORE && access->host[i] == access->before[i]) continue;
        if (word->barrier != races->barrier) *word = (struct word){.barrier = races->barrier};
        if (!check_byte(wave, access, kind, word, first + i)) return false;
        if (kind == LOAD) {
            word->load = pc;
            word->loader = (uint8_t)wave->index;
        } else {
            word->store = pc;
        }
    }
    return true;
}

static void check_lds(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_group *group = wave->group;
    unsigned count;
    const struct sim_touched *accesses = tessera_sim_touched(wave, &count);
    const enum kind kind = kind_of(code);
    for (unsigned i = 0; i < count; i++) {
        const bool lds = accesses[i].host >= group->lds && accesses[i].host < group->lds + group->lds_bytes;
        if (lds && !check_access(wave, &accesses[i], kind)) return;
    }
}

// ---- barriers

static void check_barrier(struct sim_wave *wave) {
    const struct sim_group *group = wave->group;
    uint32_t *passed = races_of(wave->group)->passed;
    passed[wave->index]++;
    for (uint32_t i = 0; i < group->wave_count; i++)
        if (group->waves[i].state == SIM_ENDED && passed[i] > 0) {
            tessera_sim_trouble(wave, TESSERA_SIM_FAULT_BARRIER_MISMATCH, -1, 0,
                                "comes to its barrier %u, but wave %u has ended after %u", passed[wave->index], i,
                                passed[i]);
            return;
        }
}

static void check_end(struct sim_wave *wave) {
    const struct sim_group *group = wave->group;
    const uint32_t *passed = races_of(wave->group)->passed;
    for (uint32_t i = 0; i < group->wave_count && passed[wave->index] > 0; i++)
        if (group->waves[i].state == SIM_AT_BARRIER) {
            tessera_sim_trouble(wave, TESSERA_SIM_FAULT_BARRIER_MISMATCH, -1, 0,
                                "ends after %u barriers, but wave %u waits at its barrier %u", passed[wave->index], i,
                                passed[i]);
            return;
        }
}

// Checks the accesses of an instruction that has run, and whether it was a barrier or ended the wave.
static void check_races(struct sim_wave *wave, const struct sim_code *code) {
    if (wave->group->wave_count == 1 || wave->state == SIM_FAULTED) return;
    switch (code->effects.unit) {
    case SIM_UNIT_LDS:
    case SIM_UNIT_FLAT:
    case SIM_UNIT_MEMORY:
        check_lds(wave, code);
        break;
    default:
        if (code->inst.row->op == SIM_OP_s_barrier) check_barrier(wave);
        if (code->inst.row->op == SIM_OP_s_endpgm) check_end(wave);
    }
}

const struct sim_observer tessera_sim_race_check = {
    .wanted = tessera_sim_is_sanitized,
    .open = open_races,
    .close = close_races,
    .start = start_group,
    .barrier = pass_barrier,
    .executed = check_races,
};
