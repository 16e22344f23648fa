// SPDX-License-Identifier: MIT
// SMEM: loads and stores of SGPRs, scalar buffers, clocks.
#include "internal.h"
#include "semantics.h"

#include <string.h>

enum { STORE = 1 << 8, BUFFER = 1 << 9, WORDS = 0xff }; // detail of a row

static uint64_t offset_of(struct sim_wave *wave, const struct sim_inst *inst) {
    uint64_t offset = inst->has_offset ? (uint64_t)(int64_t)inst->offset : 0;
    if (inst->op[SIM_OFFSET].kind != SIM_ABSENT)
        offset += (uint32_t)tessera_sim_read_scalar(wave, &inst->op[SIM_OFFSET]);
    return offset & ~UINT64_C(3);
}

// The words of a buffer that are within its bounds; others read as 0.
static unsigned words_in_buffer(const uint32_t *descriptor, uint64_t offset, unsigned words) {
    const uint32_t stride = descriptor[1] >> 16 & 0x3fff;
    const uint64_t bytes = stride ? (uint64_t)stride * descriptor[2] : descriptor[2];
    unsigned inside = 0;
    while (inside < words && offset + 4 * (inside + 1) <= bytes) inside++;
    return inside;
}

static void scalar_memory(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const bool store = code->detail & STORE;
    const unsigned words = code->detail & WORDS, base_register = inst->op[SIM_BASE].index;
    const struct sim_operand *data = &inst->op[store ? SIM_DATA : SIM_DST];
    if (data->kind != SIM_SGPR || data->index + words > SIM_SGPRS) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "data that are not SGPRs");
        return;
    }
    uint64_t address = sim_get_sgpr64(wave, base_register) & ~UINT64_C(3), offset = offset_of(wave, inst);
    unsigned inside = words;
    if (code->detail & BUFFER) {
        address &= UINT64_C(0xffffffffffff);
        inside = words_in_buffer(&wave->sgpr[base_register], offset, words);
        if (!store) memset(&wave->sgpr[data->index], 0, 4 * words);
        if (inside == 0) return;
    }
    address += offset;
    if (!tessera_sim_may_touch(wave, -1, address, 4 * inside, store)) return;
    if (store)
        memcpy((void *)(uintptr_t)address, &wave->sgpr[data->index], 4 * inside);
    else
        memcpy(&wave->sgpr[data->index], (const void *)(uintptr_t)address, 4 * inside);
}

// Clocks count instructions, so that runs repeat.
static void read_clock(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], wave->executed);
}

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

#define LOAD(op, detail)                                                                                               \
    { SIM_OP_S_##op, scalar_memory, NULL, detail }
static const struct sim_semantics rows[] = {
    LOAD(LOAD_DWORD, 1),
    LOAD(LOAD_DWORDX2, 2),
    LOAD(LOAD_DWORDX4, 4),
    LOAD(LOAD_DWORDX8, 8),
    LOAD(LOAD_DWORDX16, 16),
    LOAD(BUFFER_LOAD_DWORD, BUFFER | 1),
    LOAD(BUFFER_LOAD_DWORDX2, BUFFER | 2),
    LOAD(BUFFER_LOAD_DWORDX4, BUFFER | 4),
    LOAD(BUFFER_LOAD_DWORDX8, BUFFER | 8),
    LOAD(BUFFER_LOAD_DWORDX16, BUFFER | 16),
    LOAD(STORE_DWORD, STORE | 1),
    LOAD(STORE_DWORDX2, STORE | 2),
    LOAD(STORE_DWORDX4, STORE | 4),
    LOAD(BUFFER_STORE_DWORD, STORE | BUFFER | 1),
    LOAD(BUFFER_STORE_DWORDX2, STORE | BUFFER | 2),
    LOAD(BUFFER_STORE_DWORDX4, STORE | BUFFER | 4),
    {SIM_OP_S_MEMTIME, read_clock, NULL, 0},
    {SIM_OP_S_MEMREALTIME, read_clock, NULL, 0},
    {SIM_OP_S_DCACHE_INV, nothing, NULL, 0},
    {SIM_OP_S_DCACHE_INV_VOL, nothing, NULL, 0},
    {SIM_OP_S_DCACHE_WB, nothing, NULL, 0},
    {SIM_OP_S_DCACHE_WB_VOL, nothing, NULL, 0},
};
const struct sim_semantics_list tessera_sim_scalar_memory = {rows, sizeof rows / sizeof *rows};
