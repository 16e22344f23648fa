// SPDX-License-Identifier: MIT
// gfx950's matrix instructions on 8, 6 and 4 bits, with and without a scale for the 32 values of a lane.
//
// A lane's values are neighbours in k, as those of the other matrix instructions. Sums go over k in its order, from C
// on; a product with its scales is exact, and each addition rounds to a float.
#include "semantics.h"
#include "vector.h"

enum { EACH = 32, SCALED = 1 << 8, SIZE = 0xff }; // detail: rows of D, and whether there are scales

// cbsz and blgp say the formats of A and B.
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

struct values {
    double of[EACH][SIM_LANES];
    double scale[SIM_LANES]; // a power of two, or NaN
};

static bool read_values(struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot, unsigned format_code,
                        struct values *to) {
    const struct sim_small_format format = read_format(format_code);
    const unsigned bits = 1u + format.exponent_bits + format.mantissa_bits;
    const struct sim_operand *operand = &code->inst.op[slot];
    const sim_vgpr *registers = tessera_sim_registers(wave, operand, EACH * bits / 32);
    if (!registers) return false;
    double numbers[1 << 8];
    for (uint32_t n = 0; n < 1u << bits; n++) numbers[n] = sim_small_to_float(format, n);
    for (unsigned lane = 0; lane < SIM_LANES; lane++) {
        uint32_t words[EACH * 8 / 32 + 1] = {0};
        for (unsigned k = 0; k < EACH * bits / 32; k++) words[k] = registers[k][lane];
        for (unsigned e = 0; e < EACH; e++) {
            const unsigned at = e * bits;
            const uint64_t two = words[at / 32] | (uint64_t)words[at / 32 + 1] << 32;
            to->of[e][lane] = numbers[two >> at % 32 & ((1u << bits) - 1)];
        }
    }
    return true;
}

// A scale is a byte of its operand: a power of two.
static bool read_scales(struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot, struct values *to) {
    enum { BIAS = 127, NOT_A_NUMBER = 255 };
    const struct sim_operand *operand = &code->inst.op[slot];
    uint32_t space[SIM_LANES];
    const uint32_t *words = NULL;
    if (code->detail & SCALED && !(words = tessera_sim_read_vector(wave, operand, 0, space))) return false;
    const unsigned shift = 8 * (operand->op_sel + 2u * operand->op_sel_hi);
    for (unsigned lane = 0; lane < SIM_LANES; lane++) {
        const uint32_t byte = words ? words[lane] >> shift & 0xff : BIAS;
        to->scale[lane] = byte == NOT_A_NUMBER ? NAN : sim_power_of_two((int)byte - BIAS);
    }
    return true;
}

// Adds the products of lane `row` of A and `size` lanes of B. Exponents of two scales are within those of a double.
static void add_products(const struct values *a, unsigned row, const struct values *b, unsigned first, unsigned size,
                         float *sums) {
    double scale[SIM_LANES];
    for (unsigned n = 0; n < size; n++) scale[n] = a->scale[row] * b->scale[first + n];
    for (unsigned e = 0; e < EACH; e++)
        for (unsigned n = 0; n < size; n++)
            sums[n] = (float)((double)sums[n] + a->of[e][row] * b->of[e][first + n] * scale[n]);
}

static void mfma(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const unsigned size = code->detail & SIZE, groups = SIM_LANES / size, registers = size * size / SIM_LANES;
    struct values a, b;
    uint32_t space[SIM_LANES], result[16][SIM_LANES];
    if (!read_values(wave, code, SIM_SRC0, inst->cbsz, &a) || !read_values(wave, code, SIM_SRC1, inst->blgp, &b) ||
        !read_scales(wave, code, SIM_SCALE0, &a) || !read_scales(wave, code, SIM_SCALE1, &b))
        return;
    sim_vgpr *to = tessera_sim_registers(wave, &inst->op[SIM_DST], registers);
    for (unsigned r = 0; r < registers; r++) {
        const uint32_t *c = tessera_sim_read_vector(wave, &inst->op[SIM_SRC2], r, space);
        if (!c || !to) return;
        float sums[SIM_LANES];
        memcpy(sums, c, sizeof sums);
        for (unsigned lane = 0; lane < SIM_LANES; lane += size) {
            const unsigned row = r / 4 * 4 * groups + lane / size * 4 + r % 4;
            for (unsigned g = 0; g < groups; g++) add_products(&a, row + size * g, &b, size * g, size, sums + lane);
        }
        memcpy(result[r], sums, sizeof sums);
    }
    memcpy(to, result, registers * sizeof *to);
}

static const struct sim_semantics rows[] = {
    {SIM_OP_V_MFMA_F32_16X16X128_F8F6F4, mfma, NULL, 16},
    {SIM_OP_V_MFMA_F32_32X32X64_F8F6F4, mfma, NULL, 32},
    {SIM_OP_V_MFMA_SCALE_F32_16X16X128_F8F6F4, mfma, NULL, 16 | SCALED},
    {SIM_OP_V_MFMA_SCALE_F32_32X32X64_F8F6F4, mfma, NULL, 32 | SCALED},
};
const struct sim_semantics_list tessera_sim_matrix_scaled = {rows, sizeof rows / sizeof *rows};
