// SPDX-License-Identifier: MIT
// SMEM: loads and stores of SGPRs, scalar buffers and scratch, scalar atomics, clocks.
// "AMD Instinct MI300 Instruction Set Architecture", chapter "Scalar Memory Operations".
#include <string.h>

#include "atomics.h"
#include "machine/access.h"
#include "operands.h"
#include "semantics.h"

// detail of a row
enum {
    WORDS = 0xff,
    STORE = 1 << 8,
    BUFFER = 1 << 9,
    SCRATCH = 1 << 10, // the SGPR's offset counts in 64 bytes
    ATOMIC_SHIFT = 16, // enum sim_atomic above
};

// The two lowest bits of every part of an address are ignored.
static uint64_t offset_of(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    uint64_t offset = inst->has_offset ? (uint64_t)(int64_t)(inst->offset & ~3) : 0;
    if (inst->op[SIM_OFFSET].kind == SIM_ABSENT) return offset;
    const uint64_t scalar = (uint32_t)tessera_sim_read_scalar(wave, &inst->op[SIM_OFFSET]);
    return offset + (code->detail & SCRATCH ? 64 * scalar : scalar & ~UINT64_C(3));
}

// The words of a buffer that are within its bounds; others read as 0.
static unsigned words_in_buffer(const uint32_t *descriptor, uint64_t offset, unsigned words) {
    const uint32_t stride = descriptor[1] >> 16 & 0x3fff;
    const uint64_t bytes = stride ? (uint64_t)stride * descriptor[2] : descriptor[2];
    unsigned inside = 0;
    while (inside < words && offset + 4 * (inside + 1) <= bytes) inside++;
    return inside;
}

// Where an access of `words` goes, how many of them are within bounds, and which SGPRs take part.
struct access {
    uint64_t address;
    unsigned inside;
    uint32_t *sgprs;
};

// `count` SGPRs take part; false after a fault.
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

// Once for the wave, whatever EXEC says. The old value comes back to the data's SGPRs with sc0 (glc).
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
    const unsigned inside = access.inside == words ? words : 0; // all or nothing
    if (!copy(wave, access.address, &old, inside, false)) return;
    uint64_t fresh = words == 1 ? tessera_sim_atomic32(what, (uint32_t)old, (uint32_t)data[0], (uint32_t)data[1], 0)
                                : tessera_sim_atomic64(what, old, data[0], data[1], 0);
    if (!copy(wave, access.address, &fresh, inside, true)) return;
    if (code->inst.sc0) memcpy(access.sgprs, &old, 4 * words);
}

// Clocks count instructions, so that runs repeat.
static void read_clock(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], wave->executed);
}

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

#define ROW(op, execute, detail)                                                                                       \
    { SIM_OP_S_##op, execute, NULL, detail }
#define LOADS(op, detail)                                                                                              \
    ROW(op##_DWORD, load_or_store, (detail) | 1), ROW(op##_DWORDX2, load_or_store, (detail) | 2),                      \
        ROW(op##_DWORDX4, load_or_store, (detail) | 4)
#define ATOMIC_DETAIL(op, words) ((uint32_t)SIM_ATOMIC_##op << ATOMIC_SHIFT | (words))
#define ATOMICS(op)                                                                                                    \
    ROW(ATOMIC_##op, atomic, ATOMIC_DETAIL(op, 1)), ROW(ATOMIC_##op##_X2, atomic, ATOMIC_DETAIL(op, 2)),               \
        ROW(BUFFER_ATOMIC_##op, atomic, ATOMIC_DETAIL(op, BUFFER | 1)),                                                \
        ROW(BUFFER_ATOMIC_##op##_X2, atomic, ATOMIC_DETAIL(op, BUFFER | 2))
static const struct sim_semantics rows[] = {
    LOADS(LOAD, 0),
    ROW(LOAD_DWORDX8, load_or_store, 8),
    ROW(LOAD_DWORDX16, load_or_store, 16),
    LOADS(BUFFER_LOAD, BUFFER),
    ROW(BUFFER_LOAD_DWORDX8, load_or_store, BUFFER | 8),
    ROW(BUFFER_LOAD_DWORDX16, load_or_store, BUFFER | 16),
    LOADS(SCRATCH_LOAD, SCRATCH),
    LOADS(STORE, STORE),
    LOADS(BUFFER_STORE, STORE | BUFFER),
    LOADS(SCRATCH_STORE, STORE | SCRATCH),
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
    ROW(MEMTIME, read_clock, 0),
    ROW(MEMREALTIME, read_clock, 0),
    // Memory has no caches here, and its addresses need no translation.
    ROW(DCACHE_INV, nothing, 0),
    ROW(DCACHE_INV_VOL, nothing, 0),
    ROW(DCACHE_WB, nothing, 0),
    ROW(DCACHE_WB_VOL, nothing, 0),
    ROW(DCACHE_DISCARD, nothing, 0),
    ROW(DCACHE_DISCARD_X2, nothing, 0),
    ROW(ATC_PROBE, nothing, 0),
    ROW(ATC_PROBE_BUFFER, nothing, 0),
};
const struct sim_semantics_list tessera_sim_scalar_memory = {rows, sizeof rows / sizeof *rows};
