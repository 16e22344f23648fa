// SPDX-License-Identifier: MIT
// Scalar instructions that steer a wave: branches, calls, forks, barriers, ends, traps, messages.
#include "machine/launch.h"
#include "operands.h"
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

// ---- messages and halts: interrupts go to the server of hostcalls; a halted wave has no debugger to wake it

static void send_message(struct sim_wave *wave, const struct sim_code *code) {
    enum { INTERRUPT = 1, MESSAGE = 0xf };
    const int message = code->inst.imm & MESSAGE;
    if (message != INTERRUPT) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "message %d: only interrupts are taken",
                            message);
        return;
    }
    tessera_sim *sim = wave->group->launch->sim;
    pthread_mutex_lock(&sim->lock);
    if (sim->hostcall) sim->hostcall(sim->hostcall_user);
    pthread_mutex_unlock(&sim->lock);
}

static void halt(struct sim_wave *wave) {
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "halts, and nobody wakes the wave");
}

static void send_message_and_halt(struct sim_wave *wave, const struct sim_code *code) {
    send_message(wave, code);
    halt(wave);
}

static void set_halt(struct sim_wave *wave, const struct sim_code *code) {
    if (code->inst.imm & 1) halt(wave);
}

static void set_kill(struct sim_wave *wave, const struct sim_code *code) {
    if (code->inst.imm & 1)
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "kills the wave, as only drivers do");
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

// ---- branches that fork: some lanes go one way first, the other lanes later. MODE[31:29] counts the forks that are
// put off; each keeps four SGPRs: the EXEC of its lanes, then their address.

enum { FORKS_SHIFT = 29, FORK_SGPRS = 4 };

static void set_forks(struct sim_wave *wave, uint32_t count) {
    tessera_sim_set_mode(wave, (wave->mode & ((1u << FORKS_SHIFT) - 1)) | count << FORKS_SHIFT);
}

static void fork_to(struct sim_wave *wave, uint64_t condition, uintptr_t target) {
    const uint64_t exec = sim_exec(wave), pass = condition & exec, fail = ~condition & exec;
    if (pass == exec) wave->next_pc = target;
    if (pass == exec || fail == exec) return;
    // The smaller part goes first.
    const bool fail_first = __builtin_popcountll(fail) < __builtin_popcountll(pass);
    const uint32_t forks = wave->mode >> FORKS_SHIFT;
    sim_set_sgpr64(wave, SIM_EXEC, fail_first ? fail : pass);
    sim_set_sgpr64(wave, forks * FORK_SGPRS, fail_first ? pass : fail);
    sim_set_sgpr64(wave, forks * FORK_SGPRS + 2, fail_first ? target : wave->next_pc);
    if (!fail_first) wave->next_pc = target;
    set_forks(wave, forks + 1);
}

static void fork_far(struct sim_wave *wave, const struct sim_code *code) {
    fork_to(wave, tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]),
            (uintptr_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC1]));
}

static void fork_near(struct sim_wave *wave, const struct sim_code *code) {
    fork_to(wave, tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]),
            wave->next_pc + (uintptr_t)((intptr_t)(int16_t)code->inst.imm * 4));
}

// Runs where the ways meet: jumps back for lanes that were put off, or goes on if there are none.
static void join(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t forks = wave->mode >> FORKS_SHIFT;
    if (forks == (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0])) return;
    const uint32_t last = (forks - 1) & 7;
    set_forks(wave, last);
    sim_set_sgpr64(wave, SIM_EXEC, sim_get_sgpr64(wave, last * FORK_SGPRS));
    wave->next_pc = (uintptr_t)sim_get_sgpr64(wave, last * FORK_SGPRS + 2);
}

// ---- modes

// s_round_mode and s_denorm_mode do not exist on these architectures. VGPR indexing: M0 has the index in its low byte,
// and bits 15:12 say which operands it is added to.
enum { INDEX_BITS = 0xff, INDEX_USES_SHIFT = 12, INDEX_USES_BITS = 0xf };

static void set_index(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t index = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]) & INDEX_BITS;
    wave->sgpr[SIM_M0] = (wave->sgpr[SIM_M0] & ~(uint32_t)INDEX_BITS) | index;
}

static void set_index_uses(struct sim_wave *wave, uint32_t uses) {
    const uint32_t mask = (uint32_t)INDEX_USES_BITS << INDEX_USES_SHIFT;
    wave->sgpr[SIM_M0] = (wave->sgpr[SIM_M0] & ~mask) | (uses << INDEX_USES_SHIFT & mask);
}

static void set_skip(struct sim_wave *wave, const struct sim_code *code) {
    const uint64_t word = tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]);
    const bool skip = word >> (tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC1]) & 31) & 1;
    tessera_sim_set_mode(wave, (wave->mode & ~(uint32_t)SIM_MODE_SKIP) | (skip ? SIM_MODE_SKIP : 0));
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
    { SIM_OP_##op, execute, NULL, 0 }
static const struct sim_semantics rows[] = {
    ROW(s_nop, nothing),
    ROW(s_waitcnt, nothing),
    ROW(s_sleep, nothing),
    ROW(s_wakeup, nothing),
    ROW(s_sendmsg, send_message),
    ROW(s_sendmsghalt, send_message_and_halt),
    ROW(s_sethalt, set_halt),
    ROW(s_setkill, set_kill),
    ROW(s_setvskip, set_skip),
    ROW(s_icache_inv, nothing),
    ROW(s_incperflevel, nothing),
    ROW(s_decperflevel, nothing),
    ROW(s_ttracedata, nothing),
    ROW(s_endpgm, end_program),
    ROW(s_endpgm_saved, end_program),
    ROW(s_endpgm_ordered_ps_done, end_program),
    ROW(s_barrier, barrier),
    ROW(s_trap, trap),
    ROW(s_branch, jump),
    ROW(s_cbranch_scc0, branch_scc0),
    ROW(s_cbranch_scc1, branch_scc1),
    ROW(s_cbranch_vccz, branch_vccz),
    ROW(s_cbranch_vccnz, branch_vccnz),
    ROW(s_cbranch_execz, branch_execz),
    ROW(s_cbranch_execnz, branch_execnz),
    // There is no debugger, so the bits of STATUS that these test are 0.
    ROW(s_cbranch_cdbgsys, nothing),
    ROW(s_cbranch_cdbguser, nothing),
    ROW(s_cbranch_cdbgsys_or_user, nothing),
    ROW(s_cbranch_cdbgsys_and_user, nothing),
    ROW(s_cbranch_g_fork, fork_far),
    ROW(s_cbranch_i_fork, fork_near),
    ROW(s_cbranch_join, join),
    ROW(s_getpc_b64, get_pc),
    ROW(s_setpc_b64, set_pc),
    ROW(s_rfe_b64, set_pc), // would also leave the privileged mode, but waves never enter it
    ROW(s_swappc_b64, swap_pc),
    ROW(s_call_b64, call),
    ROW(s_set_gpr_idx_on, index_on),
    ROW(s_set_gpr_idx_off, index_off),
    ROW(s_set_gpr_idx_mode, index_mode),
    ROW(s_set_gpr_idx_idx, set_index),
};
const struct sim_semantics_list tessera_sim_scalar_control = {rows, sizeof rows / sizeof *rows};
