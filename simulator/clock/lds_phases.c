// SPDX-License-Identifier: MIT
// LDS serves the lanes of a wave in phases, as many at a time as its banks have words; which lanes come together
// depends on the width of the access. The phases of 16 bytes a lane are those that Triton PR 11365, amd-shark-ai's
// empirical LDS tests and HipKittens's phase tables give; of narrower accesses, successive lanes come together. gfx950
// has 64 banks for loads and 32 for stores, which then take the phases of gfx942.
#include "lds_phases.h"

enum { MOST_PHASES = 8, MOST_BANKS = 64, WORD = 4 };

struct phases {
    unsigned count, banks;
    uint64_t lanes[MOST_PHASES];
};

// The lanes from a to a + 3.
#define FOUR(a) (UINT64_C(15) << (a))
#define EIGHT(a, b) (FOUR(a) | FOUR(b))

static const struct phases narrow_32 = {2, 32, {0xffffffff, UINT64_C(0xffffffff) << 32}};
static const struct phases double_32 = {
    4, 32, {0xffff, UINT64_C(0xffff) << 16, UINT64_C(0xffff) << 32, UINT64_C(0xffff) << 48}};
static const struct phases wide_32 = {8,
                                      32,
                                      {EIGHT(0, 20), EIGHT(32, 52), EIGHT(4, 16), EIGHT(36, 48), EIGHT(8, 28),
                                       EIGHT(40, 60), EIGHT(12, 24), EIGHT(44, 56)}};
static const struct phases narrow_64 = {1, 64, {UINT64_MAX}};
static const struct phases double_64 = {2, 64, {0xffffffff, UINT64_C(0xffffffff) << 32}};
static const struct phases wide_64 = {4,
                                      64,
                                      {EIGHT(0, 12) | EIGHT(20, 24), EIGHT(32, 44) | EIGHT(52, 56),
                                       EIGHT(4, 8) | EIGHT(16, 28), EIGHT(36, 40) | EIGHT(48, 60)}};

static const struct phases *find_phases(enum sim_arch arch, bool store, unsigned bytes) {
    const bool many = arch == SIM_GFX950 && !store;
    if (bytes > 8) return many ? &wide_64 : &wide_32;
    if (bytes > 4) return many ? &double_64 : &double_32;
    return many ? &narrow_64 : &narrow_32;
}

// The words that a phase asks each bank for; lanes that ask for the same word share it.
struct banks {
    uint8_t count[MOST_BANKS];
    uint32_t word[MOST_BANKS][64];
};

static unsigned add_word(struct banks *banks, unsigned bank, uint32_t word) {
    for (unsigned i = 0; i < banks->count[bank]; i++)
        if (banks->word[bank][i] == word) return banks->count[bank];
    if (banks->count[bank] < 64) banks->word[bank][banks->count[bank]++] = word;
    return banks->count[bank];
}

// The cycles of one phase: the most words that it asks one bank for.
static unsigned phase_cycles(unsigned bank_count, unsigned bytes, uint64_t lanes, const uint32_t *address) {
    struct banks banks;
    unsigned most = 0;
    for (unsigned i = 0; i < bank_count; i++) banks.count[i] = 0;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t at = address[__builtin_ctzll(lanes)], last = (at + bytes - 1) / WORD;
        for (uint32_t word = at / WORD; word <= last; word++) {
            const unsigned count = add_word(&banks, word % bank_count, word);
            if (count > most) most = count;
        }
    }
    return most;
}

struct sim_lds_cost tessera_sim_lds_cost(enum sim_arch arch, bool store, unsigned bytes, uint64_t lanes,
                                         const uint32_t *address) {
    const struct phases *phases = find_phases(arch, store, bytes);
    struct sim_lds_cost cost = {0, 0};
    for (unsigned i = 0; i < phases->count; i++) {
        const unsigned cycles = phase_cycles(phases->banks, bytes, lanes & phases->lanes[i], address);
        if (cycles == 0) continue;
        cost.phases++;
        cost.conflicts = (uint16_t)(cost.conflicts + cycles - 1);
    }
    return cost;
}
