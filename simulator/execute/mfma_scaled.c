// SPDX-License-Identifier: MIT
// gfx950's matrix instructions on 8, 6 and 4 bits, with and without a scale for each 32 in k.
//
// Lanes form groups of as many lanes as A has rows (B: columns), and each lane holds 32 values of its row. Values of 4
// and 6 bits are neighbours in k. Values of 8 bits are two runs of 16, of which the second run comes after the first
// runs of all groups. Each block of 32 in k has a scale; that of block n comes from lane group n, whichever lanes hold
// the block's values. test_values_matrix.py names the sources.
//
// Sums start with C and add products in ascending k. A product with its scales is exact; each addition rounds to float.
#include "semantics.h"
#include "vector.h"

enum { EACH = 32, RUN = 16, DEEPEST = 128, ROWS = 32 }; // EACH: values of a lane, also values that share a scale
enum { SCALED = 1 << 8, SIZE = 0xff };                  // a row's detail: rows of D, and whether there are scales

// The format of A or B from cbsz or blgp.
static struct sim_small_format read_format(unsigned code) {
    switch (code) {
    case 0:
        return sim_e4m3_ocp;
    case 1:
        return sim_e5m2_ocp;
    case 2:
        return sim_e2m3;
    case 3:
        return sim_e3m2;
    default:
        return sim_e2m1;
    }
}

struct matrix {
    double of[DEEPEST][ROWS]; // [k][row]: values times their scales, which are powers of two
};

// The k of value e of a lane.
static unsigned place_in_k(unsigned bits, unsigned groups, unsigned group, unsigned e) {
    return bits == 8 ? e / RUN * RUN * groups + RUN * group + e % RUN : EACH * group + e;
}

static bool read_values(struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot, unsigned format_code,
                        struct matrix *to) {
    const struct sim_small_format format = read_format(format_code);
    const unsigned bits = 1u + format.exponent_bits + format.mantissa_bits;
    const unsigned size = code->detail & SIZE, groups = SIM_LANES / size;
    const struct sim_operand *operand = &code->inst.op[slot];
    const sim_vgpr *registers = tessera_sim_registers(wave, operand, EACH * bits / 32);
    if (!registers) return false;
    double numbers[1 << 8];
    for (uint32_t n = 0; n < 1u << bits; n++) numbers[n] = sim_small_to_float(format, n);
    for (unsigned lane = 0; lane < SIM_LANES; lane++) {
        uint32_t words[EACH * 8 / 32 + 1] = {0};
        for (unsigned w = 0; w < EACH * bits / 32; w++) words[w] = registers[w][lane];
        for (unsigned e = 0; e < EACH; e++) {
            const unsigned at = e * bits;
            const uint64_t two = words[at / 32] | (uint64_t)words[at / 32 + 1] << 32;
            const double number = numbers[two >> at % 32 & ((1u << bits) - 1)];
            to->of[place_in_k(bits, groups, lane / size, e)][lane % size] = number;
        }
    }
    return true;
}

// Multiplies by the scales. A scale is a byte of its operand: a power of two, or NaN. The exponents of two scales
// together are within a double's range.
static bool apply_scales(struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot, struct matrix *to) {
    enum { BIAS = 127, NOT_A_NUMBER = 255 };
    if (!(code->detail & SCALED)) return true;
    const struct sim_operand *operand = &code->inst.op[slot];
    uint32_t space[SIM_LANES];
    const uint32_t *words = tessera_sim_read_vector(wave, operand, 0, space);
    if (!words) return false;
    const unsigned size = code->detail & SIZE, shift = 8 * (operand->op_sel + 2u * operand->op_sel_hi);
    for (unsigned lane = 0; lane < SIM_LANES; lane++) {
        const unsigned first = lane / size * EACH, byte = words[lane] >> shift & 0xff;
        const double scale = byte == NOT_A_NUMBER ? NAN : sim_power_of_two((int)byte - BIAS);
        for (unsigned k = first; k < first + EACH; k++) to->of[k][lane % size] *= scale;
    }
    return true;
}

// Adds the products of row `row` of A and the `size` columns of B.
static void add_products(const struct matrix *a, unsigned row, const struct matrix *b, unsigned size, float *sums) {
    for (unsigned k = 0; k < EACH * SIM_LANES / size; k++)
        for (unsigned n = 0; n < size; n++) sums[n] = (float)((double)sums[n] + a->of[k][row] * b->of[k][n]);
}

static void mfma(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const unsigned size = code->detail & SIZE, groups = SIM_LANES / size, registers = size * size / SIM_LANES;
    struct matrix a, b;
    uint32_t space[SIM_LANES], result[16][SIM_LANES];
    if (!read_values(wave, code, SIM_SRC0, inst->cbsz, &a) || !read_values(wave, code, SIM_SRC1, inst->blgp, &b) ||
        !apply_scales(wave, code, SIM_SCALE0, &a) || !apply_scales(wave, code, SIM_SCALE1, &b))
        return;
    sim_vgpr *to = tessera_sim_registers(wave, &inst->op[SIM_DST], registers);
    for (unsigned r = 0; r < registers; r++) {
        const uint32_t *c = tessera_sim_read_vector(wave, &inst->op[SIM_SRC2], r, space);
        if (!c || !to) return;
        float sums[SIM_LANES];
        memcpy(sums, c, sizeof sums);
        for (unsigned lane = 0; lane < SIM_LANES; lane += size) {
            const unsigned row = r / 4 * 4 * groups + lane / size * 4 + r % 4;
            add_products(&a, row, &b, size, sums + lane);
        }
        memcpy(result[r], sums, sizeof sums);
    }
    memcpy(to, result, registers * sizeof *to);
}

static const struct sim_semantics rows[] = {
    {SIM_OP_v_mfma_f32_16x16x128_f8f6f4, mfma, NULL, 16},
    {SIM_OP_v_mfma_f32_32x32x64_f8f6f4, mfma, NULL, 32},
    {SIM_OP_v_mfma_scale_f32_16x16x128_f8f6f4, mfma, NULL, 16 | SCALED},
    {SIM_OP_v_mfma_scale_f32_32x32x64_f8f6f4, mfma, NULL, 32 | SCALED},
};
const struct sim_semantics_list tessera_sim_matrix_scaled = {rows, sizeof rows / sizeof *rows};
