// SPDX-License-Identifier: MIT
// FLAT, GLOBAL, SCRATCH and MUBUF: loads, stores, loads to LDS and atomics.
#include "vector_memory.h"

#include "atomics.h"
#include "narrow.h"
#include "semantics.h"
#include "vector.h"

// Bits of a row's detail, beside those of narrow.h.
enum {
    TO_LDS = 1 << 8,
    ATOMIC = 1 << 9, // an atomic; enum sim_atomic is in the bits above
    ATOMIC_SHIFT = 16,
};

// ---- one lane

// The start of a wave's scratch, in which lanes are interleaved word by word. Where a register holds its place, the
// register counts.
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

// The host's address of `bytes` of memory, LDS or scratch; NULL after a fault.
static uint8_t *touch(struct sim_wave *wave, int lane, const struct sim_place *place, uint32_t bytes, bool store) {
    if (place->space == SIM_LDS) return tessera_sim_lds(wave, lane, (uint32_t)place->address, bytes);
    return tessera_sim_touch(wave, lane, place->address, bytes, store);
}

bool tessera_sim_copy(struct sim_wave *wave, int lane, const struct sim_place *place, uint8_t *bytes, uint32_t count,
                      bool store) {
    if (place->space == SIM_PRIVATE) return copy_scratch(wave, lane, place->address, bytes, count, store);
    if (place->reachable < count) {
        if (!store) memset(bytes, 0, count);
        count = place->reachable & ~3u; // only whole words are within bounds
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

// Whether all lanes are active, within bounds and in one allocation, so that no lane needs further checks.
static bool all_at_hand(const struct sim_wave *wave, const struct sim_place *places, uint32_t bytes, bool store) {
    const struct sim_range range = wave->range;
    uint64_t outside = 0;
    if (bytes & 3 || range.bytes < bytes || (store && range.read_only) || sim_exec(wave) != UINT64_MAX || wave->access)
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

// Loads to LDS, past the registers. The places of successive lanes lie one word apart, or four words for loads of three
// and four words ("CDNA4", section 9.1.9).
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
    // For sums of floats in memory (not in LDS) the documents say that all three architectures flush denormals, LLVM
    // says that gfx942 and gfx950 do not.
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
        if (places[lane].reachable < bytes)
            places[lane].reachable = 0; // an atomic is within bounds as a whole or not at all
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

#define ATOMIC_DETAIL(what, bytes) (ATOMIC | (uint32_t)SIM_ATOMIC_##what << ATOMIC_SHIFT | (bytes))
#define ROW(op, execute, detail)                                                                                       \
    { SIM_OP_##op, execute, NULL, detail }
// The same row for instructions of several encodings.
#define ROWS2(a, b, execute, detail) ROW(a, execute, detail), ROW(b, execute, detail)
#define ROWS3(a, b, c, execute, detail) ROWS2(a, b, execute, detail), ROW(c, execute, detail)
#define ROWS4(a, b, c, d, execute, detail) ROWS2(a, b, execute, detail), ROWS2(c, d, execute, detail)
static const struct sim_semantics rows[] = {
    ROWS4(buffer_load_ubyte, flat_load_ubyte, global_load_ubyte, scratch_load_ubyte, load_maybe_to_lds, 1),
    ROWS4(buffer_load_sbyte, flat_load_sbyte, global_load_sbyte, scratch_load_sbyte, load_maybe_to_lds, 1 | SIGNED),
    ROWS4(buffer_load_ushort, flat_load_ushort, global_load_ushort, scratch_load_ushort, load_maybe_to_lds, 2),
    ROWS4(buffer_load_sshort, flat_load_sshort, global_load_sshort, scratch_load_sshort, load_maybe_to_lds, 2 | SIGNED),
    ROWS4(buffer_load_dword, flat_load_dword, global_load_dword, scratch_load_dword, load_maybe_to_lds, 4),
    ROWS4(buffer_load_dwordx2, flat_load_dwordx2, global_load_dwordx2, scratch_load_dwordx2, load_maybe_to_lds, 8),
    ROWS4(buffer_load_dwordx3, flat_load_dwordx3, global_load_dwordx3, scratch_load_dwordx3, load_maybe_to_lds, 12),
    ROWS4(buffer_load_dwordx4, flat_load_dwordx4, global_load_dwordx4, scratch_load_dwordx4, load_maybe_to_lds, 16),
    ROWS4(buffer_load_ubyte_d16, flat_load_ubyte_d16, global_load_ubyte_d16, scratch_load_ubyte_d16, load_maybe_to_lds,
          1 | D16),
    ROWS4(buffer_load_ubyte_d16_hi, flat_load_ubyte_d16_hi, global_load_ubyte_d16_hi, scratch_load_ubyte_d16_hi,
          load_maybe_to_lds, 1 | D16_HIGH),
    ROWS4(buffer_load_sbyte_d16, flat_load_sbyte_d16, global_load_sbyte_d16, scratch_load_sbyte_d16, load_maybe_to_lds,
          1 | SIGNED | D16),
    ROWS4(buffer_load_sbyte_d16_hi, flat_load_sbyte_d16_hi, global_load_sbyte_d16_hi, scratch_load_sbyte_d16_hi,
          load_maybe_to_lds, 1 | SIGNED | D16_HIGH),
    ROWS4(buffer_load_short_d16, flat_load_short_d16, global_load_short_d16, scratch_load_short_d16, load_maybe_to_lds,
          2 | D16),
    ROWS4(buffer_load_short_d16_hi, flat_load_short_d16_hi, global_load_short_d16_hi, scratch_load_short_d16_hi,
          load_maybe_to_lds, 2 | D16_HIGH),
    ROWS2(global_load_lds_ubyte, scratch_load_lds_ubyte, load_to_lds, 1),
    ROWS2(global_load_lds_sbyte, scratch_load_lds_sbyte, load_to_lds, 1 | SIGNED),
    ROWS2(global_load_lds_ushort, scratch_load_lds_ushort, load_to_lds, 2),
    ROWS2(global_load_lds_sshort, scratch_load_lds_sshort, load_to_lds, 2 | SIGNED),
    ROWS2(global_load_lds_dword, scratch_load_lds_dword, load_to_lds, 4),
    ROW(global_load_lds_dwordx3, load_to_lds, 12),
    ROW(global_load_lds_dwordx4, load_to_lds, 16),
    ROWS4(buffer_store_byte, flat_store_byte, global_store_byte, scratch_store_byte, store, 1),
    ROWS4(buffer_store_byte_d16_hi, flat_store_byte_d16_hi, global_store_byte_d16_hi, scratch_store_byte_d16_hi, store,
          1 | D16_HIGH),
    ROWS4(buffer_store_short, flat_store_short, global_store_short, scratch_store_short, store, 2),
    ROWS4(buffer_store_short_d16_hi, flat_store_short_d16_hi, global_store_short_d16_hi, scratch_store_short_d16_hi,
          store, 2 | D16_HIGH),
    ROWS4(buffer_store_dword, flat_store_dword, global_store_dword, scratch_store_dword, store, 4),
    ROWS4(buffer_store_dwordx2, flat_store_dwordx2, global_store_dwordx2, scratch_store_dwordx2, store, 8),
    ROWS4(buffer_store_dwordx3, flat_store_dwordx3, global_store_dwordx3, scratch_store_dwordx3, store, 12),
    ROWS4(buffer_store_dwordx4, flat_store_dwordx4, global_store_dwordx4, scratch_store_dwordx4, store, 16),
    ROWS3(buffer_atomic_swap, flat_atomic_swap, global_atomic_swap, atomic, ATOMIC_DETAIL(SWAP, 4)),
    ROWS3(buffer_atomic_swap_x2, flat_atomic_swap_x2, global_atomic_swap_x2, atomic, ATOMIC_DETAIL(SWAP, 8)),
    ROWS3(buffer_atomic_cmpswap, flat_atomic_cmpswap, global_atomic_cmpswap, atomic, ATOMIC_DETAIL(CMPSWAP, 4)),
    ROWS3(buffer_atomic_cmpswap_x2, flat_atomic_cmpswap_x2, global_atomic_cmpswap_x2, atomic,
          ATOMIC_DETAIL(CMPSWAP, 8)),
    ROWS3(buffer_atomic_add, flat_atomic_add, global_atomic_add, atomic, ATOMIC_DETAIL(ADD, 4)),
    ROWS3(buffer_atomic_add_x2, flat_atomic_add_x2, global_atomic_add_x2, atomic, ATOMIC_DETAIL(ADD, 8)),
    ROWS3(buffer_atomic_sub, flat_atomic_sub, global_atomic_sub, atomic, ATOMIC_DETAIL(SUB, 4)),
    ROWS3(buffer_atomic_sub_x2, flat_atomic_sub_x2, global_atomic_sub_x2, atomic, ATOMIC_DETAIL(SUB, 8)),
    ROWS3(buffer_atomic_smin, flat_atomic_smin, global_atomic_smin, atomic, ATOMIC_DETAIL(SMIN, 4)),
    ROWS3(buffer_atomic_smin_x2, flat_atomic_smin_x2, global_atomic_smin_x2, atomic, ATOMIC_DETAIL(SMIN, 8)),
    ROWS3(buffer_atomic_umin, flat_atomic_umin, global_atomic_umin, atomic, ATOMIC_DETAIL(UMIN, 4)),
    ROWS3(buffer_atomic_umin_x2, flat_atomic_umin_x2, global_atomic_umin_x2, atomic, ATOMIC_DETAIL(UMIN, 8)),
    ROWS3(buffer_atomic_smax, flat_atomic_smax, global_atomic_smax, atomic, ATOMIC_DETAIL(SMAX, 4)),
    ROWS3(buffer_atomic_smax_x2, flat_atomic_smax_x2, global_atomic_smax_x2, atomic, ATOMIC_DETAIL(SMAX, 8)),
    ROWS3(buffer_atomic_umax, flat_atomic_umax, global_atomic_umax, atomic, ATOMIC_DETAIL(UMAX, 4)),
    ROWS3(buffer_atomic_umax_x2, flat_atomic_umax_x2, global_atomic_umax_x2, atomic, ATOMIC_DETAIL(UMAX, 8)),
    ROWS3(buffer_atomic_and, flat_atomic_and, global_atomic_and, atomic, ATOMIC_DETAIL(AND, 4)),
    ROWS3(buffer_atomic_and_x2, flat_atomic_and_x2, global_atomic_and_x2, atomic, ATOMIC_DETAIL(AND, 8)),
    ROWS3(buffer_atomic_or, flat_atomic_or, global_atomic_or, atomic, ATOMIC_DETAIL(OR, 4)),
    ROWS3(buffer_atomic_or_x2, flat_atomic_or_x2, global_atomic_or_x2, atomic, ATOMIC_DETAIL(OR, 8)),
    ROWS3(buffer_atomic_xor, flat_atomic_xor, global_atomic_xor, atomic, ATOMIC_DETAIL(XOR, 4)),
    ROWS3(buffer_atomic_xor_x2, flat_atomic_xor_x2, global_atomic_xor_x2, atomic, ATOMIC_DETAIL(XOR, 8)),
    ROWS3(buffer_atomic_inc, flat_atomic_inc, global_atomic_inc, atomic, ATOMIC_DETAIL(INC, 4)),
    ROWS3(buffer_atomic_inc_x2, flat_atomic_inc_x2, global_atomic_inc_x2, atomic, ATOMIC_DETAIL(INC, 8)),
    ROWS3(buffer_atomic_dec, flat_atomic_dec, global_atomic_dec, atomic, ATOMIC_DETAIL(DEC, 4)),
    ROWS3(buffer_atomic_dec_x2, flat_atomic_dec_x2, global_atomic_dec_x2, atomic, ATOMIC_DETAIL(DEC, 8)),
    ROWS3(buffer_atomic_add_f32, flat_atomic_add_f32, global_atomic_add_f32, atomic, ATOMIC_DETAIL(ADD_F, 4)),
    ROWS3(buffer_atomic_pk_add_f16, flat_atomic_pk_add_f16, global_atomic_pk_add_f16, atomic,
          ATOMIC_DETAIL(PK_ADD_F16, 4)),
    ROWS3(buffer_atomic_pk_add_bf16, flat_atomic_pk_add_bf16, global_atomic_pk_add_bf16, atomic,
          ATOMIC_DETAIL(PK_ADD_BF16, 4)),
    ROWS3(buffer_atomic_add_f64, flat_atomic_add_f64, global_atomic_add_f64, atomic, ATOMIC_DETAIL(ADD_F, 8)),
    ROWS3(buffer_atomic_min_f64, flat_atomic_min_f64, global_atomic_min_f64, atomic, ATOMIC_DETAIL(MIN_F, 8)),
    ROWS3(buffer_atomic_max_f64, flat_atomic_max_f64, global_atomic_max_f64, atomic, ATOMIC_DETAIL(MAX_F, 8)),
    ROW(buffer_wbl2, nothing, 0),
    ROW(buffer_inv, nothing, 0),
    ROW(buffer_invl2, nothing, 0),
    ROW(buffer_wbinvl1, nothing, 0),
    ROW(buffer_wbinvl1_vol, nothing, 0),
};
const struct sim_semantics_list tessera_sim_vector_memory = {rows, sizeof rows / sizeof *rows};
