// SPDX-License-Identifier: MIT
// Scalar operands, and the instructions of the scalar ALU.
#include "machine/access.h"
#include "operands.h"
#include "semantics.h"

uint64_t tessera_sim_read_scalar(struct sim_wave *wave, const struct sim_operand *operand) {
    switch (operand->kind) {
    case SIM_SGPR:
        return operand->bits > 32 ? sim_get_sgpr64(wave, operand->index) : wave->sgpr[operand->index];
    case SIM_CONST:
    case SIM_LITERAL:
        return operand->value;
    case SIM_SPECIAL:
        break;
    default:
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "operand kind %u as a scalar", operand->kind);
        return 0;
    }
    switch (operand->index) { // as 32 bits the bases read as 0: they are in the high half
    case SIM_SHARED_BASE:
        return operand->bits > 32 ? SIM_SHARED_APERTURE : 0;
    case SIM_PRIVATE_BASE:
        return operand->bits > 32 ? SIM_PRIVATE_APERTURE : 0;
    case SIM_VCCZ:
        return sim_get_sgpr64(wave, SIM_VCC) == 0;
    case SIM_EXECZ:
        return sim_exec(wave) == 0;
    case SIM_SCC:
        return wave->scc;
    default:
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "special operand %u", operand->index);
        return 0;
    }
}

void tessera_sim_write_scalar(struct sim_wave *wave, const struct sim_operand *operand, uint64_t value) {
    if (operand->kind != SIM_SGPR) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "operand kind %u as a scalar result",
                            operand->kind);
    } else if (operand->bits > 32) {
        sim_set_sgpr64(wave, operand->index, value);
    } else {
        wave->sgpr[operand->index] = (uint32_t)value;
    }
}

static inline uint64_t source(struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot) {
    return tessera_sim_read_scalar(wave, &code->inst.op[slot]);
}

static inline void result(struct sim_wave *wave, const struct sim_code *code, uint64_t value) {
    tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], value);
}

// Instructions with one and two sources. SCC becomes `condition`, which may use the result d; KEEP leaves it as it is.
#define KEEP (wave->scc)
#define UNARY(name, type, value, condition)                                                                            \
    static void name(struct sim_wave *wave, const struct sim_code *code) {                                             \
        const type a = (type)source(wave, code, SIM_SRC0);                                                             \
        const type d = (type)(value);                                                                                  \
        result(wave, code, (uint64_t)d);                                                                               \
        wave->scc = (condition);                                                                                       \
    }
#define BINARY(name, type, value, condition)                                                                           \
    static void name(struct sim_wave *wave, const struct sim_code *code) {                                             \
        const type a = (type)source(wave, code, SIM_SRC0), b = (type)source(wave, code, SIM_SRC1);                     \
        const type d = (type)(value);                                                                                  \
        result(wave, code, (uint64_t)d);                                                                               \
        wave->scc = (condition);                                                                                       \
    }
#define COMPARE(name, type, condition)                                                                                 \
    static void name(struct sim_wave *wave, const struct sim_code *code) {                                             \
        const type a = (type)source(wave, code, SIM_SRC0), b = (type)source(wave, code, SIM_SRC1);                     \
        wave->scc = (condition);                                                                                       \
    }
// SOPK instructions that work with a constant.
#define CONSTANT(name, type, immediate)                                                                                \
    static inline type name(const struct sim_code *code) { return (type)(immediate)code->inst.imm; }
CONSTANT(signed_constant, int32_t, int16_t)
CONSTANT(unsigned_constant, uint32_t, uint16_t)
#define COMPARE_CONSTANT(name, type, read, condition)                                                                  \
    static void name(struct sim_wave *wave, const struct sim_code *code) {                                             \
        const type a = (type)source(wave, code, SIM_SRC0), b = (type)read(code);                                       \
        wave->scc = (condition);                                                                                       \
    }

static inline uint32_t popcount(uint64_t value) { return (uint32_t)__builtin_popcountll(value); }

static inline uint64_t reverse(uint64_t value, unsigned bits) {
    uint64_t reversed = 0;
    for (unsigned i = 0; i < bits; i++) reversed |= (value >> i & 1) << (bits - 1 - i);
    return reversed;
}

// The number of the lowest set bit, or -1.
static inline int32_t find_low(uint64_t value) { return value ? __builtin_ctzll(value) : -1; }
// The number of the highest set bit, counted from the top of `bits`, or -1.
static inline int32_t find_high(uint64_t value, int bits) { return value ? __builtin_clzll(value) - (64 - bits) : -1; }
// The number, from the top, of the first bit that differs from the sign, or -1.
static inline int32_t find_sign(int64_t value, int bits) { return find_high((uint64_t)(value ^ value >> 63), bits); }

static inline uint64_t whole_quads(uint64_t value) {
    uint64_t any = value | value >> 1;
    any = (any | any >> 2) & UINT64_C(0x1111111111111111);
    return any * 15;
}
static inline uint64_t quad_mask(uint64_t value) {
    uint64_t mask = 0;
    for (int i = 0; i < 16; i++) mask |= (uint64_t)((value >> 4 * i & 15) != 0) << i;
    return mask;
}
static inline uint64_t replicate(uint32_t value) {
    uint64_t twice = 0;
    for (int i = 0; i < 32; i++) twice |= (uint64_t)(value >> i & 1) * 3 << 2 * i;
    return twice;
}

UNARY(mov_b32, uint32_t, a, KEEP)
UNARY(mov_b64, uint64_t, a, KEEP)
UNARY(not_b32, uint32_t, ~a, d != 0)
UNARY(not_b64, uint64_t, ~a, d != 0)
UNARY(wqm_b32, uint32_t, whole_quads(a), d != 0)
UNARY(wqm_b64, uint64_t, whole_quads(a), d != 0)
UNARY(quadmask_b32, uint32_t, quad_mask(a), d != 0)
UNARY(quadmask_b64, uint64_t, quad_mask(a), d != 0)
UNARY(brev_b32, uint32_t, reverse(a, 32), KEEP)
UNARY(brev_b64, uint64_t, reverse(a, 64), KEEP)
UNARY(bcnt0_b32, uint32_t, 32 - popcount(a), d != 0)
UNARY(bcnt0_b64, uint64_t, 64 - popcount(a), d != 0)
UNARY(bcnt1_b32, uint32_t, popcount(a), d != 0)
UNARY(bcnt1_b64, uint64_t, popcount(a), d != 0)
UNARY(ff0_b32, uint32_t, find_low((uint32_t)~a), KEEP)
UNARY(ff0_b64, uint64_t, find_low(~a), KEEP)
UNARY(ff1_b32, uint32_t, find_low(a), KEEP)
UNARY(ff1_b64, uint64_t, find_low(a), KEEP)
UNARY(flbit_b32, uint32_t, find_high(a, 32), KEEP)
UNARY(flbit_b64, uint64_t, find_high(a, 64), KEEP)
UNARY(flbit_i32, int32_t, find_sign(a, 32), KEEP)
UNARY(flbit_i64, int64_t, find_sign(a, 64), KEEP)
UNARY(sext_i8, int32_t, (int8_t)a, KEEP)
UNARY(sext_i16, int32_t, (int16_t)a, KEEP)
UNARY(abs_i32, uint32_t, (int32_t)a < 0 ? 0u - a : a, d != 0)
UNARY(bitreplicate, uint64_t, replicate((uint32_t)a), KEEP)

static void cmov(struct sim_wave *wave, const struct sim_code *code) {
    if (wave->scc) result(wave, code, source(wave, code, SIM_SRC0));
}

// s_bitset; a row's detail is the bit's new value.
static void bitset(struct sim_wave *wave, const struct sim_code *code) {
    const unsigned bits = code->inst.op[SIM_DST].bits;
    const uint64_t bit = UINT64_C(1) << (source(wave, code, SIM_SRC0) & (bits - 1));
    const uint64_t old = source(wave, code, SIM_DST);
    result(wave, code, code->detail ? old | bit : old & ~bit);
}

BINARY(add_u32, uint32_t, a + b, d < a)
BINARY(sub_u32, uint32_t, a - b, b > a)
BINARY(add_i32, uint32_t, a + b, (~(a ^ b) & (a ^ d)) >> 31)
BINARY(sub_i32, uint32_t, a - b, ((a ^ b) & (a ^ d)) >> 31)
BINARY(addc_u32, uint32_t, a + b + wave->scc, (uint64_t)a + b + wave->scc > UINT32_MAX)
BINARY(subb_u32, uint32_t, a - b - wave->scc, (uint64_t)b + wave->scc > a)
BINARY(min_i32, int32_t, a < b ? a : b, a < b)
BINARY(min_u32, uint32_t, a < b ? a : b, a < b)
BINARY(max_i32, int32_t, a > b ? a : b, a >= b)
BINARY(max_u32, uint32_t, a > b ? a : b, a >= b)
BINARY(cselect_b32, uint32_t, wave->scc ? a : b, KEEP)
BINARY(cselect_b64, uint64_t, wave->scc ? a : b, KEEP)
BINARY(and_b32, uint32_t, a &b, d != 0)
BINARY(and_b64, uint64_t, a &b, d != 0)
BINARY(or_b32, uint32_t, a | b, d != 0)
BINARY(or_b64, uint64_t, a | b, d != 0)
BINARY(xor_b32, uint32_t, a ^ b, d != 0)
BINARY(xor_b64, uint64_t, a ^ b, d != 0)
BINARY(andn2_b32, uint32_t, a & ~b, d != 0)
BINARY(andn2_b64, uint64_t, a & ~b, d != 0)
BINARY(orn2_b32, uint32_t, a | ~b, d != 0)
BINARY(orn2_b64, uint64_t, a | ~b, d != 0)
BINARY(nand_b32, uint32_t, ~(a &b), d != 0)
BINARY(nand_b64, uint64_t, ~(a &b), d != 0)
BINARY(nor_b32, uint32_t, ~(a | b), d != 0)
BINARY(nor_b64, uint64_t, ~(a | b), d != 0)
BINARY(xnor_b32, uint32_t, ~(a ^ b), d != 0)
BINARY(xnor_b64, uint64_t, ~(a ^ b), d != 0)
BINARY(lshl_b32, uint32_t, a << (b & 31), d != 0)
BINARY(lshl_b64, uint64_t, a << (b & 63), d != 0)
BINARY(lshr_b32, uint32_t, a >> (b & 31), d != 0)
BINARY(lshr_b64, uint64_t, a >> (b & 63), d != 0)
BINARY(ashr_i32, int32_t, a >> (b & 31), d != 0)
BINARY(ashr_i64, int64_t, a >> (b & 63), d != 0)
BINARY(bfm_b32, uint32_t, ((UINT32_C(1) << (a & 31)) - 1) << (b & 31), KEEP)
BINARY(bfm_b64, uint64_t, ((UINT64_C(1) << (a & 63)) - 1) << (b & 63), KEEP)
BINARY(mul_i32, uint32_t, a *b, KEEP)
BINARY(mul_hi_u32, uint32_t, (uint64_t)a *b >> 32, KEEP)
BINARY(mul_hi_i32, int32_t, (int64_t)a *b >> 32, KEEP)
// The magnitude of the wrapped difference: 0x80000000 and 1 give 0x7fffffff.
BINARY(absdiff_i32, uint32_t, (int32_t)(a - b) < 0 ? b - a : a - b, d != 0)
BINARY(lshl1_add_u32, uint32_t, (a << 1) + b, ((uint64_t)a << 1) + b > UINT32_MAX)
BINARY(lshl2_add_u32, uint32_t, (a << 2) + b, ((uint64_t)a << 2) + b > UINT32_MAX)
BINARY(lshl3_add_u32, uint32_t, (a << 3) + b, ((uint64_t)a << 3) + b > UINT32_MAX)
BINARY(lshl4_add_u32, uint32_t, (a << 4) + b, ((uint64_t)a << 4) + b > UINT32_MAX)
BINARY(pack_ll, uint32_t, (a & 0xffff) | b << 16, KEEP)
BINARY(pack_lh, uint32_t, (a & 0xffff) | (b & 0xffff0000), KEEP)
BINARY(pack_hh, uint32_t, a >> 16 | (b & 0xffff0000), KEEP)

// Bit fields: the low bits of b hold the first bit, bits 22:16 the width.
static inline uint64_t extract(uint64_t value, unsigned first, unsigned width, unsigned bits, bool sign) {
    if (width == 0) return 0;
    if (width > bits) width = bits;
    if (first + width > bits)
        return sign ? (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits + first)) : value >> first;
    const uint64_t top = value << (64 - first - width);
    return sign ? (uint64_t)((int64_t)top >> (64 - width)) : top >> (64 - width);
}
BINARY(bfe_u32, uint32_t, extract(a, b & 31, b >> 16 & 127, 32, false), d != 0)
BINARY(bfe_i32, uint32_t, extract(a, b & 31, b >> 16 & 127, 32, true), d != 0)
BINARY(bfe_u64, uint64_t, extract(a, b & 63, b >> 16 & 127, 64, false), d != 0)
BINARY(bfe_i64, uint64_t, extract(a, b & 63, b >> 16 & 127, 64, true), d != 0)

COMPARE(eq_32, uint32_t, a == b)
COMPARE(lg_32, uint32_t, a != b)
COMPARE(eq_64, uint64_t, a == b)
COMPARE(lg_64, uint64_t, a != b)
COMPARE(gt_i32, int32_t, a > b)
COMPARE(ge_i32, int32_t, a >= b)
COMPARE(lt_i32, int32_t, a < b)
COMPARE(le_i32, int32_t, a <= b)
COMPARE(gt_u32, uint32_t, a > b)
COMPARE(ge_u32, uint32_t, a >= b)
COMPARE(lt_u32, uint32_t, a < b)
COMPARE(le_u32, uint32_t, a <= b)
COMPARE(bitcmp0_b32, uint32_t, !(a >> (b & 31) & 1))
COMPARE(bitcmp1_b32, uint32_t, a >> (b & 31) & 1)
COMPARE(bitcmp0_b64, uint64_t, !(a >> (b & 63) & 1))
COMPARE(bitcmp1_b64, uint64_t, a >> (b & 63) & 1)

COMPARE_CONSTANT(eq_k_i32, int32_t, signed_constant, a == b)
COMPARE_CONSTANT(lg_k_i32, int32_t, signed_constant, a != b)
COMPARE_CONSTANT(gt_k_i32, int32_t, signed_constant, a > b)
COMPARE_CONSTANT(ge_k_i32, int32_t, signed_constant, a >= b)
COMPARE_CONSTANT(lt_k_i32, int32_t, signed_constant, a < b)
COMPARE_CONSTANT(le_k_i32, int32_t, signed_constant, a <= b)
COMPARE_CONSTANT(eq_k_u32, uint32_t, unsigned_constant, a == b)
COMPARE_CONSTANT(lg_k_u32, uint32_t, unsigned_constant, a != b)
COMPARE_CONSTANT(gt_k_u32, uint32_t, unsigned_constant, a > b)
COMPARE_CONSTANT(ge_k_u32, uint32_t, unsigned_constant, a >= b)
COMPARE_CONSTANT(lt_k_u32, uint32_t, unsigned_constant, a < b)
COMPARE_CONSTANT(le_k_u32, uint32_t, unsigned_constant, a <= b)

static void movk(struct sim_wave *wave, const struct sim_code *code) {
    result(wave, code, (uint32_t)signed_constant(code));
}

static void cmovk(struct sim_wave *wave, const struct sim_code *code) {
    if (wave->scc) movk(wave, code);
}

static void addk(struct sim_wave *wave, const struct sim_code *code) {
    const uint32_t a = (uint32_t)source(wave, code, SIM_DST), b = (uint32_t)signed_constant(code), d = a + b;
    result(wave, code, d);
    wave->scc = (~(a ^ b) & (a ^ d)) >> 31;
}

static void mulk(struct sim_wave *wave, const struct sim_code *code) {
    result(wave, code, (uint32_t)source(wave, code, SIM_DST) * (uint32_t)signed_constant(code));
}

// s_and_saveexec_b64 and the like: the destination gets the old EXEC, and EXEC a combination.
#define SAVE_EXEC(name, value)                                                                                         \
    static void name(struct sim_wave *wave, const struct sim_code *code) {                                             \
        const uint64_t a = source(wave, code, SIM_SRC0), exec = sim_exec(wave);                                        \
        result(wave, code, exec);                                                                                      \
        sim_set_sgpr64(wave, SIM_EXEC, (value));                                                                       \
        wave->scc = sim_exec(wave) != 0;                                                                               \
    }
SAVE_EXEC(and_saveexec, a &exec)
SAVE_EXEC(or_saveexec, a | exec)
SAVE_EXEC(xor_saveexec, a ^ exec)
SAVE_EXEC(andn1_saveexec, ~a &exec)
SAVE_EXEC(andn2_saveexec, a & ~exec)
SAVE_EXEC(orn1_saveexec, ~a | exec)
SAVE_EXEC(orn2_saveexec, a | ~exec)
SAVE_EXEC(nand_saveexec, ~(a &exec))
SAVE_EXEC(nor_saveexec, ~(a | exec))
SAVE_EXEC(xnor_saveexec, ~(a ^ exec))
// As above, but the destination gets the new EXEC.
#define WRITE_EXEC(name, value)                                                                                        \
    static void name(struct sim_wave *wave, const struct sim_code *code) {                                             \
        const uint64_t a = source(wave, code, SIM_SRC0), exec = sim_exec(wave);                                        \
        sim_set_sgpr64(wave, SIM_EXEC, (value));                                                                       \
        result(wave, code, sim_exec(wave));                                                                            \
        wave->scc = sim_exec(wave) != 0;                                                                               \
    }
WRITE_EXEC(andn1_wrexec, ~a &exec)
WRITE_EXEC(andn2_wrexec, a & ~exec)

// Relative moves of SGPRs: M0 is added to the register's number.
static void movrel(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_operand from = code->inst.op[SIM_SRC0], to = code->inst.op[SIM_DST];
    const uint32_t index = wave->sgpr[SIM_M0];
    struct sim_operand *moved = code->detail ? &to : &from;
    if (moved->kind != SIM_SGPR || index + moved->index + (moved->bits > 32) >= SIM_FLAT_SCRATCH) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, -1, 0, "m0 = %u leads out of the SGPRs", index);
        return;
    }
    moved->index = (uint16_t)(moved->index + index);
    tessera_sim_write_scalar(wave, &to, tessera_sim_read_scalar(wave, &from));
}

#define ROW(op, execute)                                                                                               \
    { SIM_OP_##op, execute, NULL, 0 }
static const struct sim_semantics rows[] = {
    ROW(s_mov_b32, mov_b32),
    ROW(s_mov_b64, mov_b64),
    ROW(s_cmov_b32, cmov),
    ROW(s_cmov_b64, cmov),
    ROW(s_not_b32, not_b32),
    ROW(s_not_b64, not_b64),
    ROW(s_wqm_b32, wqm_b32),
    ROW(s_wqm_b64, wqm_b64),
    ROW(s_quadmask_b32, quadmask_b32),
    ROW(s_quadmask_b64, quadmask_b64),
    ROW(s_brev_b32, brev_b32),
    ROW(s_brev_b64, brev_b64),
    ROW(s_bcnt0_i32_b32, bcnt0_b32),
    ROW(s_bcnt0_i32_b64, bcnt0_b64),
    ROW(s_bcnt1_i32_b32, bcnt1_b32),
    ROW(s_bcnt1_i32_b64, bcnt1_b64),
    ROW(s_ff0_i32_b32, ff0_b32),
    ROW(s_ff0_i32_b64, ff0_b64),
    ROW(s_ff1_i32_b32, ff1_b32),
    ROW(s_ff1_i32_b64, ff1_b64),
    ROW(s_flbit_i32_b32, flbit_b32),
    ROW(s_flbit_i32_b64, flbit_b64),
    ROW(s_flbit_i32, flbit_i32),
    ROW(s_flbit_i32_i64, flbit_i64),
    ROW(s_sext_i32_i8, sext_i8),
    ROW(s_sext_i32_i16, sext_i16),
    ROW(s_abs_i32, abs_i32),
    ROW(s_bitreplicate_b64_b32, bitreplicate),
    {SIM_OP_s_bitset0_b32, bitset, NULL, 0},
    {SIM_OP_s_bitset0_b64, bitset, NULL, 0},
    {SIM_OP_s_bitset1_b32, bitset, NULL, 1},
    {SIM_OP_s_bitset1_b64, bitset, NULL, 1},
    {SIM_OP_s_movrels_b32, movrel, NULL, 0},
    {SIM_OP_s_movrels_b64, movrel, NULL, 0},
    {SIM_OP_s_movreld_b32, movrel, NULL, 1},
    {SIM_OP_s_movreld_b64, movrel, NULL, 1},
    ROW(s_and_saveexec_b64, and_saveexec),
    ROW(s_or_saveexec_b64, or_saveexec),
    ROW(s_xor_saveexec_b64, xor_saveexec),
    ROW(s_andn1_saveexec_b64, andn1_saveexec),
    ROW(s_andn2_saveexec_b64, andn2_saveexec),
    ROW(s_orn1_saveexec_b64, orn1_saveexec),
    ROW(s_orn2_saveexec_b64, orn2_saveexec),
    ROW(s_nand_saveexec_b64, nand_saveexec),
    ROW(s_nor_saveexec_b64, nor_saveexec),
    ROW(s_xnor_saveexec_b64, xnor_saveexec),
    ROW(s_andn1_wrexec_b64, andn1_wrexec),
    ROW(s_andn2_wrexec_b64, andn2_wrexec),
    ROW(s_add_u32, add_u32),
    ROW(s_sub_u32, sub_u32),
    ROW(s_add_i32, add_i32),
    ROW(s_sub_i32, sub_i32),
    ROW(s_addc_u32, addc_u32),
    ROW(s_subb_u32, subb_u32),
    ROW(s_min_i32, min_i32),
    ROW(s_min_u32, min_u32),
    ROW(s_max_i32, max_i32),
    ROW(s_max_u32, max_u32),
    ROW(s_cselect_b32, cselect_b32),
    ROW(s_cselect_b64, cselect_b64),
    ROW(s_and_b32, and_b32),
    ROW(s_and_b64, and_b64),
    ROW(s_or_b32, or_b32),
    ROW(s_or_b64, or_b64),
    ROW(s_xor_b32, xor_b32),
    ROW(s_xor_b64, xor_b64),
    ROW(s_andn2_b32, andn2_b32),
    ROW(s_andn2_b64, andn2_b64),
    ROW(s_orn2_b32, orn2_b32),
    ROW(s_orn2_b64, orn2_b64),
    ROW(s_nand_b32, nand_b32),
    ROW(s_nand_b64, nand_b64),
    ROW(s_nor_b32, nor_b32),
    ROW(s_nor_b64, nor_b64),
    ROW(s_xnor_b32, xnor_b32),
    ROW(s_xnor_b64, xnor_b64),
    ROW(s_lshl_b32, lshl_b32),
    ROW(s_lshl_b64, lshl_b64),
    ROW(s_lshr_b32, lshr_b32),
    ROW(s_lshr_b64, lshr_b64),
    ROW(s_ashr_i32, ashr_i32),
    ROW(s_ashr_i64, ashr_i64),
    ROW(s_bfm_b32, bfm_b32),
    ROW(s_bfm_b64, bfm_b64),
    ROW(s_mul_i32, mul_i32),
    ROW(s_mul_hi_u32, mul_hi_u32),
    ROW(s_mul_hi_i32, mul_hi_i32),
    ROW(s_absdiff_i32, absdiff_i32),
    ROW(s_lshl1_add_u32, lshl1_add_u32),
    ROW(s_lshl2_add_u32, lshl2_add_u32),
    ROW(s_lshl3_add_u32, lshl3_add_u32),
    ROW(s_lshl4_add_u32, lshl4_add_u32),
    ROW(s_pack_ll_b32_b16, pack_ll),
    ROW(s_pack_lh_b32_b16, pack_lh),
    ROW(s_pack_hh_b32_b16, pack_hh),
    ROW(s_bfe_u32, bfe_u32),
    ROW(s_bfe_i32, bfe_i32),
    ROW(s_bfe_u64, bfe_u64),
    ROW(s_bfe_i64, bfe_i64),
    ROW(s_cmp_eq_i32, eq_32),
    ROW(s_cmp_lg_i32, lg_32),
    ROW(s_cmp_eq_u32, eq_32),
    ROW(s_cmp_lg_u32, lg_32),
    ROW(s_cmp_eq_u64, eq_64),
    ROW(s_cmp_lg_u64, lg_64),
    ROW(s_cmp_gt_i32, gt_i32),
    ROW(s_cmp_ge_i32, ge_i32),
    ROW(s_cmp_lt_i32, lt_i32),
    ROW(s_cmp_le_i32, le_i32),
    ROW(s_cmp_gt_u32, gt_u32),
    ROW(s_cmp_ge_u32, ge_u32),
    ROW(s_cmp_lt_u32, lt_u32),
    ROW(s_cmp_le_u32, le_u32),
    ROW(s_bitcmp0_b32, bitcmp0_b32),
    ROW(s_bitcmp1_b32, bitcmp1_b32),
    ROW(s_bitcmp0_b64, bitcmp0_b64),
    ROW(s_bitcmp1_b64, bitcmp1_b64),
    ROW(s_cmpk_eq_i32, eq_k_i32),
    ROW(s_cmpk_lg_i32, lg_k_i32),
    ROW(s_cmpk_gt_i32, gt_k_i32),
    ROW(s_cmpk_ge_i32, ge_k_i32),
    ROW(s_cmpk_lt_i32, lt_k_i32),
    ROW(s_cmpk_le_i32, le_k_i32),
    ROW(s_cmpk_eq_u32, eq_k_u32),
    ROW(s_cmpk_lg_u32, lg_k_u32),
    ROW(s_cmpk_gt_u32, gt_k_u32),
    ROW(s_cmpk_ge_u32, ge_k_u32),
    ROW(s_cmpk_lt_u32, lt_k_u32),
    ROW(s_cmpk_le_u32, le_k_u32),
    ROW(s_movk_i32, movk),
    ROW(s_cmovk_i32, cmovk),
    ROW(s_addk_i32, addk),
    ROW(s_mulk_i32, mulk),
};
const struct sim_semantics_list tessera_sim_scalar = {rows, sizeof rows / sizeof *rows};
