// SPDX-License-Identifier: MIT
// SMEM: loads and stores of SGPRs, scalar buffers and scratch, scalar atomics, clocks.
// "AMD Instinct MI300 Instruction Set Architecture", chapter "Scalar Memory Operations".
#include <string.h>

#include "atomics.h"
#include "machine/access.h"
#include "operands.h"
#include "scalar_memory.h"
#include "semantics.h"

// Bits of a row's detail.
enum {
    WORDS = 0xff,
    STORE = 1 << 8,
    BUFFER = 1 << 9,
    SCRATCH = 1 << 10, // the offset in an SGPR counts units of 64 bytes
    ATOMIC_SHIFT = 16, // enum sim_atomic is in the bits above
};

// The two lowest bits of every part of an address are ignored.
static uint64_t offset_of(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    uint64_t offset = inst->has_offset ? (uint64_t)(int64_t)(inst->offset & ~3) : 0;
    if (inst->op[SIM_OFFSET].kind == SIM_ABSENT) return offset;
    const uint64_t scalar = (uint32_t)tessera_sim_read_scalar(wave, &inst->op[SIM_OFFSET]);
    return offset + (code->detail & SCRATCH ? 64 * scalar : scalar & ~UINT64_C(3));
}

// The number of words that are within a buffer's bounds; others read as 0.
static unsigned words_in_buffer(const uint32_t *descriptor, uint64_t offset, unsigned words) {
    const uint32_t stride = descriptor[1] >> 16 & 0x3fff;
    const uint64_t bytes = stride ? (uint64_t)stride * descriptor[2] : descriptor[2];
    unsigned inside = 0;
    while (inside < words && offset + 4 * (inside + 1) <= bytes) inside++;
    return inside;
}

// An access: its address, its words, how many of them are within bounds, and its SGPRs.
struct access {
    uint64_t address;
    unsigned inside;
    uint32_t *sgprs;
};

// Finds an access of `count` SGPRs; false after a fault.
static bool find_access(struct sim_wave *wave, const struct sim_code *code, const struct sim_operand *data,
                        unsigned count, unsigned words, struct access *out) {
    const unsigned base = code->inst.op[SIM_BASE].index;
    if (data->kind != SIM_SGPR || data->index + count > SIM_SGPRS) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "data that are not SGPRs");
        return false;
    }
    const uint64_t offset = offset_of(wave, code);
    const uint64_t address =
        sim_get_sgpr64(wave, base) & (code->detail & BUFFER ? UINT64_C(0xfffffffffffc) : ~UINT64_C(3));
    *out = (struct access){address + offset, words, &wave->sgpr[data->index]};
    if (code->detail & BUFFER) out->inside = words_in_buffer(&wave->sgpr[base], offset, words);
    return true;
}

uint64_t tessera_sim_scalar_address(struct sim_wave *wave, const struct sim_code *code, unsigned *bytes) {
    struct access access;
    const unsigned words = code->detail & WORDS;
    *bytes = 0;
    if (code->inst.op[SIM_BASE].kind == SIM_ABSENT) return 0;
    if (!find_access(wave, code, &code->inst.op[SIM_BASE], 1, words, &access)) return 0;
    *bytes = 4 * access.inside;
    return access.address;
}

// Every scalar access to memory goes through here; false after a fault.
static bool copy(struct sim_wave *wave, uint64_t address, void *sgprs, unsigned words, bool store) {
    if (words == 0) return true;
    void *memory = tessera_sim_touch(wave, -1, address, 4 * words, store);
    if (!memory) return false;
    memcpy(store ? memory : sgprs, store ? sgprs : memory, 4 * words);
    return true;
}

static void load_or_store(struct sim_wave *wave, const struct sim_code *code) {
    const bool store = code->detail & STORE;
    const unsigned words = code->detail & WORDS;
    struct access access;
    if (!find_access(wave, code, &code->inst.op[store ? SIM_DATA : SIM_DST], words, words, &access)) return;
    if (!copy(wave, access.address, access.sgprs, access.inside, store) || store) return;
    memset(access.sgprs + access.inside, 0, 4 * (words - access.inside));
}

// Runs once for the wave, whatever EXEC says. With sc0 (glc) the old value replaces the data in its SGPRs.
static void atomic(struct sim_wave *wave, const struct sim_code *code) {
    const unsigned words = code->detail & WORDS;
    const enum sim_atomic what = (enum sim_atomic)(code->detail >> ATOMIC_SHIFT);
    const unsigned operands = what == SIM_ATOMIC_CMPSWAP ? 2 : 1;
    struct access access;
    uint64_t data[2] = {0}, old = 0;
    if (!find_access(wave, code, &code->inst.op[SIM_DATA], words * operands, words, &access)) return;
    if (access.address % (4 * words) != 0) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_MISALIGNED, -1, access.address, "an atomic of %u bytes at 0x%llx",
                            4 * words, (unsigned long long)access.address);
        return;
    }
    for (unsigned i = 0; i < operands; i++) memcpy(&data[i], access.sgprs + words * i, 4 * words);
    const unsigned inside = access.inside == words ? words : 0; // atomics are within bounds as a whole or not at all
    if (!copy(wave, access.address, &old, inside, false)) return;
    uint64_t fresh = words == 1 ? tessera_sim_atomic32(what, (uint32_t)old, (uint32_t)data[0], (uint32_t)data[1], 0)
                                : tessera_sim_atomic64(what, old, data[0], data[1], 0);
    if (!copy(wave, access.address, &fresh, inside, true)) return;
    if (code->inst.sc0) memcpy(access.sgprs, &old, 4 * words);
}

// Clocks count instructions, so that each run gives the same.
static void read_clock(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], wave->executed);
}

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

#define ROW(op, execute, detail)                                                                                       \
    { SIM_OP_##op, execute, NULL, detail }
#define ATOMIC_DETAIL(op, words) ((uint32_t)SIM_ATOMIC_##op << ATOMIC_SHIFT | (words))
#define ATOMICS(what, word, two_words, of_buffer, two_of_buffer)                                                       \
    ROW(word, atomic, ATOMIC_DETAIL(what, 1)), ROW(two_words, atomic, ATOMIC_DETAIL(what, 2)),                         \
        ROW(of_buffer, atomic, ATOMIC_DETAIL(what, BUFFER | 1)),                                                       \
        ROW(two_of_buffer, atomic, ATOMIC_DETAIL(what, BUFFER | 2))
static const struct sim_semantics rows[] = {
    ROW(s_load_dword, load_or_store, 1),
    ROW(s_load_dwordx2, load_or_store, 2),
    ROW(s_load_dwordx4, load_or_store, 4),
    ROW(s_load_dwordx8, load_or_store, 8),
    ROW(s_load_dwordx16, load_or_store, 16),
    ROW(s_buffer_load_dword, load_or_store, BUFFER | 1),
    ROW(s_buffer_load_dwordx2, load_or_store, BUFFER | 2),
    ROW(s_buffer_load_dwordx4, load_or_store, BUFFER | 4),
    ROW(s_buffer_load_dwordx8, load_or_store, BUFFER | 8),
    ROW(s_buffer_load_dwordx16, load_or_store, BUFFER | 16),
    ROW(s_scratch_load_dword, load_or_store, SCRATCH | 1),
    ROW(s_scratch_load_dwordx2, load_or_store, SCRATCH | 2),
    ROW(s_scratch_load_dwordx4, load_or_store, SCRATCH | 4),
    ROW(s_store_dword, load_or_store, STORE | 1),
    ROW(s_store_dwordx2, load_or_store, STORE | 2),
    ROW(s_store_dwordx4, load_or_store, STORE | 4),
    ROW(s_buffer_store_dword, load_or_store, STORE | BUFFER | 1),
    ROW(s_buffer_store_dwordx2, load_or_store, STORE | BUFFER | 2),
    ROW(s_buffer_store_dwordx4, load_or_store, STORE | BUFFER | 4),
    ROW(s_scratch_store_dword, load_or_store, STORE | SCRATCH | 1),
    ROW(s_scratch_store_dwordx2, load_or_store, STORE | SCRATCH | 2),
    ROW(s_scratch_store_dwordx4, load_or_store, STORE | SCRATCH | 4),
    ATOMICS(SWAP, s_atomic_swap, s_atomic_swap_x2, s_buffer_atomic_swap, s_buffer_atomic_swap_x2),
    ATOMICS(CMPSWAP, s_atomic_cmpswap, s_atomic_cmpswap_x2, s_buffer_atomic_cmpswap, s_buffer_atomic_cmpswap_x2),
    ATOMICS(ADD, s_atomic_add, s_atomic_add_x2, s_buffer_atomic_add, s_buffer_atomic_add_x2),
    ATOMICS(SUB, s_atomic_sub, s_atomic_sub_x2, s_buffer_atomic_sub, s_buffer_atomic_sub_x2),
    ATOMICS(SMIN, s_atomic_smin, s_atomic_smin_x2, s_buffer_atomic_smin, s_buffer_atomic_smin_x2),
    ATOMICS(UMIN, s_atomic_umin, s_atomic_umin_x2, s_buffer_atomic_umin, s_buffer_atomic_umin_x2),
    ATOMICS(SMAX, s_atomic_smax, s_atomic_smax_x2, s_buffer_atomic_smax, s_buffer_atomic_smax_x2),
    ATOMICS(UMAX, s_atomic_umax, s_atomic_umax_x2, s_buffer_atomic_umax, s_buffer_atomic_umax_x2),
    ATOMICS(AND, s_atomic_and, s_atomic_and_x2, s_buffer_atomic_and, s_buffer_atomic_and_x2),
    ATOMICS(OR, s_atomic_or, s_atomic_or_x2, s_buffer_atomic_or, s_buffer_atomic_or_x2),
    ATOMICS(XOR, s_atomic_xor, s_atomic_xor_x2, s_buffer_atomic_xor, s_buffer_atomic_xor_x2),
    ATOMICS(INC, s_atomic_inc, s_atomic_inc_x2, s_buffer_atomic_inc, s_buffer_atomic_inc_x2),
    ATOMICS(DEC, s_atomic_dec, s_atomic_dec_x2, s_buffer_atomic_dec, s_buffer_atomic_dec_x2),
    ROW(s_memtime, read_clock, 0),
    ROW(s_memrealtime, read_clock, 0),
    // The simulator has no caches and no address translation.
    ROW(s_dcache_inv, nothing, 0),
    ROW(s_dcache_inv_vol, nothing, 0),
    ROW(s_dcache_wb, nothing, 0),
    ROW(s_dcache_wb_vol, nothing, 0),
    ROW(s_dcache_discard, nothing, 0),
    ROW(s_dcache_discard_x2, nothing, 0),
    ROW(s_atc_probe, nothing, 0),
    ROW(s_atc_probe_buffer, nothing, 0),
};
const struct sim_semantics_list tessera_sim_scalar_memory = {rows, sizeof rows / sizeof *rows};
