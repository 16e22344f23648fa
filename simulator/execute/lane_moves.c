// SPDX-License-Identifier: MIT
// Instructions that move values between lanes, or between lanes and scalars.
#include "semantics.h"
#include "vector.h"

static void nothing(struct sim_wave *wave, const struct sim_code *code) {
    (void)wave;
    (void)code;
}

static void read_first_lane(struct sim_wave *wave, const struct sim_code *code) {
    const uint64_t exec = sim_exec(wave);
    const struct sim_operand operand = sim_indexed(wave, &code->inst.op[SIM_SRC0], SIM_INDEX_SRC0);
    uint32_t words[SIM_LANES];
    const uint32_t *from = tessera_sim_read_vector(wave, &operand, 0, words);
    if (from) tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], from[exec ? __builtin_ctzll(exec) : 0]);
}

static void read_lane(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_operand operand = sim_indexed(wave, &code->inst.op[SIM_SRC0], SIM_INDEX_SRC0);
    uint32_t words[SIM_LANES];
    const uint32_t *from = tessera_sim_read_vector(wave, &operand, 0, words);
    const uint32_t lane = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC1]) & 63;
    if (from) tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], from[lane]);
}

static void write_lane(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t value = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]);
    const uint32_t lane = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC1]) & 63;
    const struct sim_operand operand = sim_indexed(wave, &code->inst.op[SIM_DST], SIM_INDEX_DST);
    sim_vgpr *to = tessera_sim_registers(wave, &operand, 1);
    if (to) to[0][lane] = value;
}

static void swap(struct sim_wave *wave, const struct sim_code *code) {
    sim_vgpr *a = tessera_sim_registers(wave, &code->inst.op[SIM_DST], 1);
    sim_vgpr *b = tessera_sim_registers(wave, &code->inst.op[SIM_SRC0], 1);
    const uint64_t exec = sim_exec(wave);
    if (!a || !b) return;
    for (int i = 0; i < SIM_LANES; i++) {
        if (!(exec >> i & 1)) continue;
        const uint32_t kept = a[0][i];
        a[0][i] = b[0][i];
        b[0][i] = kept;
    }
}

// v_permlane16_swap and v_permlane32_swap: odd rows (of `detail` lanes) of the first register change places with even
// rows of the second. Lanes that are off keep what they have; an active lane whose partner is off gets the partner's
// value with fi, else 0 with bound_ctrl, else keeps its own: as in DPP's row moves. AMD's document does not
// mention EXEC.
static void permlane_swap(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    sim_vgpr *a = tessera_sim_registers(wave, &inst->op[SIM_DST], 1);
    sim_vgpr *b = tessera_sim_registers(wave, &inst->op[SIM_SRC0], 1);
    const int row = (int)code->detail;
    const uint64_t exec = sim_exec(wave);
    if (!a || !b) return;
    for (int odd = 0; odd < SIM_LANES; odd++) {
        if (odd / row % 2 == 0) continue;
        const int even = odd - row;
        const bool odd_on = exec >> odd & 1, even_on = exec >> even & 1;
        const uint32_t from_odd = a[0][odd], from_even = b[0][even];
        if (odd_on && (even_on || inst->fi || inst->bound_ctrl)) a[0][odd] = even_on || inst->fi ? from_even : 0;
        if (even_on && (odd_on || inst->fi || inst->bound_ctrl)) b[0][even] = odd_on || inst->fi ? from_odd : 0;
    }
}

// ---- through the crossbar of LDS; nothing is stored there

static void bpermute(struct sim_wave *wave, const struct sim_code *code) {
    const uint64_t exec = sim_exec(wave);
    sim_vgpr *address = tessera_sim_registers(wave, &code->inst.op[SIM_ADDR], 1);
    sim_vgpr *from = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], 1);
    uint32_t result[SIM_LANES];
    if (!address || !from) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        const uint32_t source = (address[0][lane] + (uint32_t)code->inst.offset) >> 2 & 63;
        result[lane] = exec >> source & 1 ? from[0][source] : 0;
    }
    tessera_sim_write_vector(wave, &code->inst.op[SIM_DST], 0, exec, result);
}

static void permute(struct sim_wave *wave, const struct sim_code *code) {
    const uint64_t exec = sim_exec(wave);
    sim_vgpr *address = tessera_sim_registers(wave, &code->inst.op[SIM_ADDR], 1);
    sim_vgpr *from = tessera_sim_registers(wave, &code->inst.op[SIM_DATA], 1);
    uint32_t result[SIM_LANES] = {0};
    if (!address || !from) return;
    for (int lane = 0; lane < SIM_LANES; lane++)
        if (exec >> lane & 1) result[(address[0][lane] + (uint32_t)code->inst.offset) >> 2 & 63] = from[0][lane];
    tessera_sim_write_vector(wave, &code->inst.op[SIM_DST], 0, exec, result);
}

// The lane in the order of a fast Fourier transform: reverses the bits of the column, except those of the mask.
static int fft_source(uint32_t mask, int lane) {
    uint32_t reversed = 0;
    for (int i = 0; i < 5; i++) reversed |= (uint32_t)(lane >> i & 1) << (4 - i);
    return (lane & ~31) | (int)(reversed >> __builtin_popcount(mask) | ((uint32_t)lane & mask));
}

// The lane that ds_swizzle reads.
static int swizzle_source(uint32_t pattern, int lane) {
    if (pattern >= 0xe000) return fft_source(pattern & 31, lane);
    if (pattern >= 0xc000) { // rotate within 32
        const int count = (int)(pattern >> 5 & 31), mask = (int)(pattern & 31), column = lane & 31;
        const int moved = pattern >> 10 & 1 ? column - count : column + count;
        return (lane & ~31) | ((column & mask) | (moved & 31 & ~mask));
    }
    if (pattern & 0x8000) return (lane & ~3) | (int)(pattern >> 2 * (lane & 3) & 3);
    const int and_mask = (int)(pattern & 31), or_mask = (int)(pattern >> 5 & 31), xor_mask = (int)(pattern >> 10 & 31);
    return (lane & ~31) | ((((lane & 31) & and_mask) | or_mask) ^ xor_mask);
}

static void swizzle(struct sim_wave *wave, const struct sim_code *code) {
    const uint64_t exec = sim_exec(wave);
    // The values to move are in the address operand.
    sim_vgpr *from = tessera_sim_registers(wave, &code->inst.op[SIM_ADDR], 1);
    uint32_t result[SIM_LANES];
    if (!from) return;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        const int source = swizzle_source((uint32_t)code->inst.offset & 0xffff, lane);
        result[lane] = exec >> source & 1 ? from[0][source] : 0;
    }
    tessera_sim_write_vector(wave, &code->inst.op[SIM_DST], 0, exec, result);
}

#define ROW(op, execute, detail)                                                                                       \
    { SIM_OP_##op, execute, NULL, detail }
static const struct sim_semantics rows[] = {
    ROW(v_nop, nothing, 0),
    ROW(v_clrexcp, nothing, 0),
    ROW(v_readfirstlane_b32, read_first_lane, 0),
    ROW(v_readlane_b32, read_lane, 0),
    ROW(v_writelane_b32, write_lane, 0),
    ROW(v_swap_b32, swap, 0),
    ROW(v_permlane16_swap_b32, permlane_swap, 16),
    ROW(v_permlane32_swap_b32, permlane_swap, 32),
    {SIM_OP_ds_bpermute_b32, bpermute, NULL, 0},
    {SIM_OP_ds_permute_b32, permute, NULL, 0},
    {SIM_OP_ds_swizzle_b32, swizzle, NULL, 0},
};
const struct sim_semantics_list tessera_sim_lane_moves = {rows, sizeof rows / sizeof *rows};
