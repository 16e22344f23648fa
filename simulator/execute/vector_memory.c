// SPDX-License-Identifier: MIT
// FLAT, GLOBAL, SCRATCH and MUBUF: loads, stores, loads to LDS and atomics.
#include "vector_memory.h"

#include "atomics.h"
#include "narrow.h"
#include "semantics.h"
#include "vector.h"

// detail of a row, beside what narrow.h has
enum {
    TO_LDS = 1 << 8,
    ATOMIC = 1 << 9, // enum sim_atomic above
    ATOMIC_SHIFT = 16,
};

// ---- one lane

// A wave's scratch holds word after word of all its lanes. Where the wave has a register for its place, that counts.
static uint8_t *scratch_base(const struct sim_wave *wave) {
    if (wave->group->launch->sim->arch != SIM_GFX90A) return wave->scratch;
    return (uint8_t *)(uintptr_t)sim_get_sgpr64(wave, SIM_FLAT_SCRATCH);
}

static bool copy_scratch(struct sim_wave *wave, int lane, uint64_t offset, uint8_t *bytes, uint32_t count, bool store) {
    const uint32_t limit = wave->group->launch->lane_scratch_bytes;
    if (offset >= limit || count > limit - offset) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, lane, offset,
                            "scratch offset %llu, %u bytes, but a lane has %u", (unsigned long long)offset, count,
                            limit);
        return false;
    }
    uint8_t *base = scratch_base(wave);
    for (uint32_t i = 0; i < count;) {
        const uint64_t at = offset + i;
        const uint32_t piece = 4 - (uint32_t)(at & 3) < count - i ? 4 - (uint32_t)(at & 3) : count - i;
        const uintptr_t address = (uintptr_t)base + at / 4 * (4 * SIM_LANES) + 4 * (uint32_t)lane + (at & 3);
        uint8_t *host = tessera_sim_touch(wave, lane, address, piece, store);
        if (!host) return false;
        memcpy(store ? host : bytes + i, store ? bytes + i : host, piece);
        i += piece;
    }
    return true;
}

// The host's address of `bytes` of memory or LDS; NULL after a fault.
static uint8_t *touch(struct sim_wave *wave, int lane, const struct sim_place *place, uint32_t bytes, bool store) {
    if (place->space == SIM_LDS) return tessera_sim_lds(wave, lane, (uint32_t)place->address, bytes);
    return tessera_sim_touch(wave, lane, place->address, bytes, store);
}

bool tessera_sim_copy(struct sim_wave *wave, int lane, const struct sim_place *place, uint8_t *bytes, uint32_t count,
                      bool store) {
    if (place->space == SIM_PRIVATE) return copy_scratch(wave, lane, place->address, bytes, count, store);
    if (place->reachable < count) {
        if (!store) memset(bytes, 0, count);
        count = place->reachable & ~3u; // whole words of what is asked for
        if (count == 0) return true;
    }
    const uint32_t first = place->second ? 4 - (uint32_t)(place->address & 3) : count;
    uint8_t *host = touch(wave, lane, place, first, store);
    if (!host) return false;
    memcpy(store ? host : bytes, store ? bytes : host, first);
    if (first == count) return true;
    host = tessera_sim_touch(wave, lane, place->second, count - first, store);
    if (host) memcpy(store ? host : bytes + first, store ? bytes + first : host, count - first);
    return host != NULL;
}

// ---- loads and stores

// Whether all lanes are active, in one allocation and within bounds, so that no more is to be asked of any of them.
static bool all_at_hand(const struct sim_wave *wave, const struct sim_place *places, uint32_t bytes, bool store) {
    const struct sim_range range = wave->range;
    uint64_t outside = 0;
    if (bytes & 3 || range.bytes < bytes || (store && range.read_only) || sim_exec(wave) != UINT64_MAX || wave->checks)
        return false;
    for (int lane = 0; lane < SIM_LANES; lane++)
        outside |= (uint64_t)(places[lane].address - range.base > range.bytes - bytes) |
                   (uint64_t)(places[lane].space != SIM_MEMORY) | (uint64_t)(places[lane].reachable < bytes) |
                   places[lane].second;
    return !outside;
}

static void load(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, words = (bytes + 3) / 4;
    const uint64_t exec = sim_exec(wave);
    struct sim_place places[SIM_LANES];
    if (exec == 0) return;
    sim_vgpr *registers = tessera_sim_registers(wave, &code->inst.op[SIM_DST], words);
    if (!registers || !tessera_sim_find_places(wave, &code->inst, bytes, places)) return;
    if (all_at_hand(wave, places, bytes, false)) {
        for (int lane = 0; lane < SIM_LANES; lane++)
            get_words(registers, lane, (const uint8_t *)(uintptr_t)places[lane].address, words);
        return;
    }
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint32_t data[4] = {0};
        if (!(exec >> lane & 1)) continue;
        if (!tessera_sim_copy(wave, lane, &places[lane], (uint8_t *)data, bytes, false)) return;
        data[0] = merge(code->detail, registers[0][lane], extend(code->detail, data[0]));
        for (uint32_t k = 0; k < words; k++) registers[k][lane] = data[k];
    }
}

static void store(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, words = (bytes + 3) / 4;
    const uint64_t exec = sim_exec(wave);
    struct sim_place places[SIM_LANES];
    if (exec == 0) return;
    sim_vgpr *registers = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], words);
    if (!registers || !tessera_sim_find_places(wave, &code->inst, bytes, places)) return;
    if (all_at_hand(wave, places, bytes, true)) {
        for (int lane = 0; lane < SIM_LANES; lane++)
            put_words(registers, lane, (uint8_t *)(uintptr_t)places[lane].address, words);
        return;
    }
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint32_t data[4];
        if (!(exec >> lane & 1)) continue;
        for (uint32_t k = 0; k < words; k++) data[k] = registers[k][lane];
        if (code->detail & D16_HIGH) data[0] >>= 16;
        if (!tessera_sim_copy(wave, lane, &places[lane], (uint8_t *)data, bytes, true)) return;
    }
}

uint32_t tessera_sim_lds_target(const struct sim_wave *wave, const struct sim_inst *inst) {
    return tessera_sim_m0_address(wave) + (uint32_t)inst->offset;
}

// Loads that pass registers by. Lanes' places lie a word apart, those of three and four words four ("CDNA4", section
// 9.1.9).
static void load_to_lds(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t bytes = code->detail & BYTES, size = bytes < 4 ? 4 : bytes, apart = bytes == 12 ? 16 : size;
    const uint64_t exec = sim_exec(wave);
    const uint32_t base = tessera_sim_lds_target(wave, &code->inst);
    struct sim_place places[SIM_LANES];
    if (exec == 0 || !tessera_sim_find_places(wave, &code->inst, bytes, places)) return;
    const struct sim_group *group = wave->group;
    const bool fits = base <= group->lds_bytes && apart * SIM_LANES <= group->lds_bytes - base;
    if (fits && all_at_hand(wave, places, bytes, false)) {
        for (uint32_t lane = 0; lane < SIM_LANES; lane++)
            memcpy(group->lds + base + apart * lane, (const void *)(uintptr_t)places[lane].address, size);
        return;
    }
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint32_t data[4] = {0};
        if (!(exec >> lane & 1)) continue;
        if (!tessera_sim_copy(wave, lane, &places[lane], (uint8_t *)data, bytes, false)) return;
        data[0] = extend(code->detail, data[0]);
        uint8_t *lds = tessera_sim_lds(wave, lane, base + apart * (uint32_t)lane, size);
        if (!lds) return;
        memcpy(lds, data, size);
    }
}

static void load_maybe_to_lds(struct sim_wave *wave, const struct sim_code *code) {
    if (code->inst.lds)
        load_to_lds(wave, code);
    else
        load(wave, code);
}

// ---- atomics

static void atomic(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_operand *old_to = &code->inst.op[SIM_DST];
    const enum sim_atomic what = (enum sim_atomic)(code->detail >> ATOMIC_SHIFT);
    const uint32_t bytes = code->detail & BYTES, words = bytes / 4;
    const unsigned operands = what == SIM_ATOMIC_CMPSWAP ? 2 : 1;
    // Sums of floats in memory, not in LDS: the documents say that all three flush, LLVM that gfx942 and gfx950 do not.
    const bool flushing = what == SIM_ATOMIC_ADD_F && bytes == 4 && code->inst.arch == SIM_GFX90A;
    const unsigned flush = flushing ? SIM_FLUSH_SOURCES : 0;
    const uint64_t exec = sim_exec(wave);
    struct sim_place places[SIM_LANES];
    if (exec == 0) return;
    sim_vgpr *data = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], words * operands);
    sim_vgpr *result = old_to->kind == SIM_ABSENT ? NULL : tessera_sim_registers(wave, old_to, words);
    if (!data || (old_to->kind != SIM_ABSENT && !result) || !tessera_sim_find_places(wave, &code->inst, bytes, places))
        return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint64_t operand[2] = {0}, old = 0, fresh;
        if (!(exec >> lane & 1)) continue;
        if (places[lane].reachable < bytes) places[lane].reachable = 0; // within bounds as a whole or not at all
        if (places[lane].address % bytes != 0) {
            tessera_sim_trouble(wave, TESSERA_SIM_FAULT_MISALIGNED, lane, places[lane].address,
                                "an atomic of %u bytes at 0x%llx", bytes, (unsigned long long)places[lane].address);
            return;
        }
        for (unsigned k = 0; k < operands; k++)
            operand[k] = words == 1 ? data[k][lane] : data[2 * k][lane] | (uint64_t)data[2 * k + 1][lane] << 32;
        if (!tessera_sim_copy(wave, lane, &places[lane], (uint8_t *)&old, bytes, false)) return;
        fresh = words == 1
                    ? tessera_sim_atomic32(what, (uint32_t)old, (uint32_t)operand[0], (uint32_t)operand[1], flush)
                    : tessera_sim_atomic64(what, old, operand[0], operand[1], flush);
        if (!tessera_sim_copy(wave, lane, &places[lane], (uint8_t *)&fresh, bytes, true)) return;
        if (result) result[0][lane] = (uint32_t)old;
        if (result && words == 2) result[1][lane] = (uint32_t)(old >> 32);
    }
}

// ---- caches

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

#define LOAD(op, detail)                                                                                               \
    { SIM_OP_LOAD_##op, load_maybe_to_lds, NULL, detail }
#define TO_LDS_ROW(op, detail)                                                                                         \
    { SIM_OP_LOAD_LDS_##op, load_to_lds, NULL, detail }
#define STORE(op, detail)                                                                                              \
    { SIM_OP_STORE_##op, store, NULL, detail }
#define ATOMIC_DETAIL(what, bytes) (ATOMIC | (uint32_t)SIM_ATOMIC_##what << ATOMIC_SHIFT | (bytes))
#define ATOMICS(op)                                                                                                    \
    {SIM_OP_ATOMIC_##op, atomic, NULL, ATOMIC_DETAIL(op, 4)}, {                                                        \
        SIM_OP_ATOMIC_##op##_X2, atomic, NULL, ATOMIC_DETAIL(op, 8)                                                    \
    }
#define ATOMIC_ROW(op, what, bytes)                                                                                    \
    { SIM_OP_ATOMIC_##op, atomic, NULL, ATOMIC_DETAIL(what, bytes) }
#define FORMATS(channels, count)                                                                                       \
    {SIM_OP_LOAD_FORMAT_##channels, tessera_sim_load_format, NULL, count},                                             \
        {SIM_OP_STORE_FORMAT_##channels, tessera_sim_store_format, NULL, count},                                       \
        {SIM_OP_LOAD_FORMAT_D16_##channels, tessera_sim_load_format, NULL, SIM_FORMAT_D16 | (count)}, {                \
        SIM_OP_STORE_FORMAT_D16_##channels, tessera_sim_store_format, NULL, SIM_FORMAT_D16 | (count)                   \
    }
static const struct sim_semantics rows[] = {
    LOAD(UBYTE, 1),
    LOAD(SBYTE, 1 | SIGNED),
    LOAD(USHORT, 2),
    LOAD(SSHORT, 2 | SIGNED),
    LOAD(DWORD, 4),
    LOAD(DWORDX2, 8),
    LOAD(DWORDX3, 12),
    LOAD(DWORDX4, 16),
    LOAD(UBYTE_D16, 1 | D16),
    LOAD(UBYTE_D16_HI, 1 | D16_HIGH),
    LOAD(SBYTE_D16, 1 | SIGNED | D16),
    LOAD(SBYTE_D16_HI, 1 | SIGNED | D16_HIGH),
    LOAD(SHORT_D16, 2 | D16),
    LOAD(SHORT_D16_HI, 2 | D16_HIGH),
    TO_LDS_ROW(UBYTE, 1),
    TO_LDS_ROW(SBYTE, 1 | SIGNED),
    TO_LDS_ROW(USHORT, 2),
    TO_LDS_ROW(SSHORT, 2 | SIGNED),
    TO_LDS_ROW(DWORD, 4),
    TO_LDS_ROW(DWORDX3, 12),
    TO_LDS_ROW(DWORDX4, 16),
    STORE(BYTE, 1),
    STORE(BYTE_D16_HI, 1 | D16_HIGH),
    STORE(SHORT, 2),
    STORE(SHORT_D16_HI, 2 | D16_HIGH),
    STORE(DWORD, 4),
    STORE(DWORDX2, 8),
    STORE(DWORDX3, 12),
    STORE(DWORDX4, 16),
    ATOMICS(SWAP),
    ATOMICS(CMPSWAP),
    ATOMICS(ADD),
    ATOMICS(SUB),
    ATOMICS(SMIN),
    ATOMICS(UMIN),
    ATOMICS(SMAX),
    ATOMICS(UMAX),
    ATOMICS(AND),
    ATOMICS(OR),
    ATOMICS(XOR),
    ATOMICS(INC),
    ATOMICS(DEC),
    ATOMIC_ROW(ADD_F32, ADD_F, 4),
    ATOMIC_ROW(PK_ADD_F16, PK_ADD_F16, 4),
    ATOMIC_ROW(PK_ADD_BF16, PK_ADD_BF16, 4),
    ATOMIC_ROW(ADD_F64, ADD_F, 8),
    ATOMIC_ROW(MIN_F64, MIN_F, 8),
    ATOMIC_ROW(MAX_F64, MAX_F, 8),
    FORMATS(X, 1),
    FORMATS(XY, 2),
    FORMATS(XYZ, 3),
    FORMATS(XYZW, 4),
    {SIM_OP_LOAD_FORMAT_D16_HI_X, tessera_sim_load_format, NULL, SIM_FORMAT_D16 | SIM_FORMAT_HIGH | 1},
    {SIM_OP_STORE_FORMAT_D16_HI_X, tessera_sim_store_format, NULL, SIM_FORMAT_D16 | SIM_FORMAT_HIGH | 1},
    {SIM_OP_WBL2, nothing, NULL, 0},
    {SIM_OP_INV, nothing, NULL, 0},
    {SIM_OP_INVL2, nothing, NULL, 0},
    {SIM_OP_WBINVL1, nothing, NULL, 0},
    {SIM_OP_WBINVL1_VOL, nothing, NULL, 0},
};
const struct sim_semantics_list tessera_sim_vector_memory = {rows, sizeof rows / sizeof *rows};
