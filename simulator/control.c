// SPDX-License-Identifier: MIT
// Scalar instructions that steer a wave: branches, calls, barriers, ends, traps, hardware registers.
#include "internal.h"
#include "semantics.h"

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

static void end_program(struct sim_wave *wave, const struct sim_code *code) {
    (void)code;
    wave->state = SIM_ENDED;
}

static void barrier(struct sim_wave *wave, const struct sim_code *code) {
    (void)code;
    wave->state = SIM_AT_BARRIER;
}

static void trap(struct sim_wave *wave, const struct sim_code *code) {
    enum { DEBUG_TRAP = 3 }; // without a debugger: nothing
    if ((code->inst.imm & 0xff) != DEBUG_TRAP)
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_TRAP, -1, 0, "trap %d", code->inst.imm & 0xff);
}

// ---- branches

static void jump(struct sim_wave *wave, const struct sim_code *code) {
    wave->next_pc += (uintptr_t)((intptr_t)(int16_t)code->inst.imm * 4);
}

static void branch_scc0(struct sim_wave *wave, const struct sim_code *code) {
    if (!wave->scc) jump(wave, code);
}
static void branch_scc1(struct sim_wave *wave, const struct sim_code *code) {
    if (wave->scc) jump(wave, code);
}
static void branch_vccz(struct sim_wave *wave, const struct sim_code *code) {
    if (sim_get_sgpr64(wave, SIM_VCC) == 0) jump(wave, code);
}
static void branch_vccnz(struct sim_wave *wave, const struct sim_code *code) {
    if (sim_get_sgpr64(wave, SIM_VCC) != 0) jump(wave, code);
}
static void branch_execz(struct sim_wave *wave, const struct sim_code *code) {
    if (sim_exec(wave) == 0) jump(wave, code);
}
static void branch_execnz(struct sim_wave *wave, const struct sim_code *code) {
    if (sim_exec(wave) != 0) jump(wave, code);
}

static void get_pc(struct sim_wave *wave, const struct sim_code *code) {
    tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], wave->next_pc);
}

static void set_pc(struct sim_wave *wave, const struct sim_code *code) {
    wave->next_pc = (uintptr_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]);
}

static void swap_pc(struct sim_wave *wave, const struct sim_code *code) {
    const uintptr_t target = (uintptr_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]);
    get_pc(wave, code);
    wave->next_pc = target;
}

static void call(struct sim_wave *wave, const struct sim_code *code) {
    get_pc(wave, code);
    jump(wave, code);
}

// ---- hardware registers

enum hwreg { HWREG_MODE = 1, HWREG_STATUS = 2, HWREG_TRAPSTS = 3, HWREG_HW_ID = 4, HWREG_SH_MEM_BASES = 15 };

static bool read_hwreg(struct sim_wave *wave, unsigned id, uint32_t *value) {
    switch (id) {
    case HWREG_MODE:
        *value = wave->mode;
        return true;
    case HWREG_STATUS:
        *value = (uint32_t)wave->scc | (sim_exec(wave) == 0) << 9 | (sim_get_sgpr64(wave, SIM_VCC) == 0) << 10;
        return true;
    case HWREG_TRAPSTS:
        *value = 0;
        return true;
    case HWREG_HW_ID:
        *value = wave->index;
        return true;
    case HWREG_SH_MEM_BASES:
        *value = (uint32_t)(SIM_SHARED_APERTURE >> 48) << 16 | (uint32_t)(SIM_PRIVATE_APERTURE >> 48);
        return true;
    default:
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "hardware register %u", id);
        return false;
    }
}

static inline uint32_t field_mask(unsigned code) {
    const unsigned bits = (code >> 11 & 31) + 1;
    return bits == 32 ? UINT32_MAX : (1u << bits) - 1;
}

static void get_register(struct sim_wave *wave, const struct sim_code *code) {
    const unsigned which = (unsigned)code->inst.imm & 0xffff;
    uint32_t value;
    if (read_hwreg(wave, which & 63, &value))
        tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], value >> (which >> 6 & 31) & field_mask(which));
}

static void set_register(struct sim_wave *wave, const struct sim_code *code) {
    const unsigned which = (unsigned)code->inst.imm & 0xffff, shift = which >> 6 & 31;
    if ((which & 63) != HWREG_MODE) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "writing hardware register %u", which & 63);
        return;
    }
    const uint32_t mask = field_mask(which) << shift;
    const uint32_t value = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]);
    tessera_sim_set_mode(wave, (wave->mode & ~mask) | (value << shift & mask));
}

// s_round_mode and s_denorm_mode do not exist here. VGPR indexing: M0 holds the index in its low byte and in bits
// 15:12 which operands it is added to.
enum { INDEX_BITS = 0xff, INDEX_USES_SHIFT = 12, INDEX_USES_BITS = 0xf };

static void set_index(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t index = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]) & INDEX_BITS;
    wave->sgpr[SIM_M0] = (wave->sgpr[SIM_M0] & ~(uint32_t)INDEX_BITS) | index;
}

static void set_index_uses(struct sim_wave *wave, uint32_t uses) {
    const uint32_t mask = (uint32_t)INDEX_USES_BITS << INDEX_USES_SHIFT;
    wave->sgpr[SIM_M0] = (wave->sgpr[SIM_M0] & ~mask) | (uses << INDEX_USES_SHIFT & mask);
}

static void index_on(struct sim_wave *wave, const struct sim_code *code) {
    set_index(wave, code);
    set_index_uses(wave, (uint32_t)code->inst.imm);
    tessera_sim_set_mode(wave, wave->mode | SIM_MODE_INDEX);
}

static void index_off(struct sim_wave *wave, const struct sim_code *code) {
    (void)code;
    tessera_sim_set_mode(wave, wave->mode & ~(uint32_t)SIM_MODE_INDEX);
}

static void index_mode(struct sim_wave *wave, const struct sim_code *code) {
    set_index_uses(wave, (uint32_t)code->inst.imm);
}

#define ROW(op, execute)                                                                                               \
    { SIM_OP_S_##op, execute, NULL, 0 }
static const struct sim_semantics rows[] = {
    ROW(NOP, nothing),
    ROW(WAITCNT, nothing),
    ROW(SLEEP, nothing),
    ROW(WAKEUP, nothing),
    ROW(SETPRIO, nothing),
    ROW(SENDMSG, nothing),
    ROW(ICACHE_INV, nothing),
    ROW(INCPERFLEVEL, nothing),
    ROW(DECPERFLEVEL, nothing),
    ROW(TTRACEDATA, nothing),
    ROW(ENDPGM, end_program),
    ROW(BARRIER, barrier),
    ROW(TRAP, trap),
    ROW(BRANCH, jump),
    ROW(CBRANCH_SCC0, branch_scc0),
    ROW(CBRANCH_SCC1, branch_scc1),
    ROW(CBRANCH_VCCZ, branch_vccz),
    ROW(CBRANCH_VCCNZ, branch_vccnz),
    ROW(CBRANCH_EXECZ, branch_execz),
    ROW(CBRANCH_EXECNZ, branch_execnz),
    ROW(GETPC_B64, get_pc),
    ROW(SETPC_B64, set_pc),
    ROW(SWAPPC_B64, swap_pc),
    ROW(CALL_B64, call),
    ROW(GETREG_B32, get_register),
    ROW(SETREG_B32, set_register),
    ROW(SETREG_IMM32_B32, set_register),
    ROW(SET_GPR_IDX_ON, index_on),
    ROW(SET_GPR_IDX_OFF, index_off),
    ROW(SET_GPR_IDX_MODE, index_mode),
    ROW(SET_GPR_IDX_IDX, set_index),
};
const struct sim_semantics_list tessera_sim_scalar_control = {rows, sizeof rows / sizeof *rows};
