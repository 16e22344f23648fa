// SPDX-License-Identifier: MIT
// Conversions to and from formats of 16, 8, 6 and 4 bits: with a scale for 1, 2 or 32 values, and with stochastic
// rounding. A scale is the exponent of a float; if it is all ones, every result is NaN.
//
// Stochastic rounding adds the upper bits of a random word below the last place that stays, and cuts. For each further
// value the word advances as in v_prng_b32. A result of less than a register leaves the rest of the register alone.
#include "semantics.h"
#include "vector.h"

enum number { F32, F16, BF16, FP8, BF8, FP6, BF6, FP4 };

#define CONVERT(from, to, count) ((uint32_t)(from) | (uint32_t)(to) << 4 | (uint32_t)(count) << 8)
enum { SCALED = 1 << 16, STOCHASTIC = 1 << 17, MOST_VALUES = 32, PRNG_TAPS = 197 };

struct conversion {
    enum number from, to;
    unsigned count;
    bool scaled, stochastic;
    enum sim_slot scale;
    unsigned value_slots; // 2: values come alternately from SRC0 and SRC1
};

static struct conversion read_conversion(const struct sim_code *code) {
    const bool three = code->inst.op[SIM_SRC2].kind != SIM_ABSENT, stochastic = code->detail & STOCHASTIC;
    return (struct conversion){
        .from = (enum number)(code->detail & 15),
        .to = (enum number)(code->detail >> 4 & 15),
        .count = code->detail >> 8 & 0xff,
        .scaled = code->detail & SCALED,
        .stochastic = stochastic,
        .scale = three ? SIM_SRC2 : SIM_SRC1,
        .value_slots = three && !stochastic ? 2 : 1,
    };
}

static unsigned width_of(enum number number) {
    static const uint8_t widths[] = {32, 16, 16, 8, 8, 6, 6, 4};
    return widths[number];
}

static struct sim_small_format format_of(enum number number, enum sim_arch arch) {
    switch (number) {
    case F16:
        return sim_e5m10;
    case BF16:
        return sim_e8m7;
    case FP8:
        return arch == SIM_GFX950 ? sim_e4m3_ocp : sim_e4m3_fnuz;
    case BF8:
        return arch == SIM_GFX950 ? sim_e5m2_ocp : sim_e5m2_fnuz;
    case FP6:
        return sim_e2m3;
    case BF6:
        return sim_e3m2;
    default:
        return sim_e2m1;
    }
}

// ---- operands

struct bits_of_lane {
    uint32_t words[MOST_VALUES + 1]; // one more than needed, so that 64 bits can be read at every place
};

static uint32_t get_bits(const struct bits_of_lane *from, unsigned at, unsigned width) {
    const uint64_t two = from->words[at / 32] | (uint64_t)from->words[at / 32 + 1] << 32;
    return (uint32_t)(two >> at % 32 & ((UINT64_C(1) << width) - 1));
}

static void put_bits(struct bits_of_lane *to, unsigned at, unsigned width, uint32_t value) {
    const uint64_t mask = ((UINT64_C(1) << width) - 1) << at % 32, placed = (uint64_t)value << at % 32;
    to->words[at / 32] = (to->words[at / 32] & ~(uint32_t)mask) | (uint32_t)placed;
    to->words[at / 32 + 1] = (to->words[at / 32 + 1] & ~(uint32_t)(mask >> 32)) | (uint32_t)(placed >> 32);
}

// Reads the registers of an operand, lane by lane.
static bool read_operand(struct sim_wave *wave, const struct sim_operand *operand, unsigned registers,
                         struct bits_of_lane *lanes) {
    uint32_t space[SIM_LANES];
    for (unsigned r = 0; r < registers; r++) {
        const uint32_t *words = tessera_sim_read_vector(wave, operand, r, space);
        if (!words) return false;
        for (int i = 0; i < SIM_LANES; i++) lanes[i].words[r] = words[i];
    }
    for (int i = 0; i < SIM_LANES; i++) lanes[i].words[registers] = 0;
    return true;
}

// The place of a source that is less than a register: op_sel's bits of the first two sources name a byte of the source,
// those of the last two operands a byte of the result. One bit is enough to name a half.
static unsigned place_of_source(const struct sim_inst *inst, unsigned bits) {
    const unsigned low = inst->op[SIM_SRC0].op_sel, high = inst->op[SIM_SRC1].op_sel;
    return bits == 8 ? 8 * (low + 2 * high) : bits == 16 ? 16 * low : 0;
}
static unsigned place_of_result(const struct sim_inst *inst, unsigned bits) {
    const unsigned low = inst->op[SIM_SRC2].op_sel, high = inst->op[SIM_DST].op_sel;
    return bits == 8 ? 8 * (low + 2 * high) : bits == 16 ? 16 * high : 0;
}

// ---- one value

static float to_float(enum number from, enum sim_arch arch, const struct sim_operand *operand, uint32_t bits) {
    const float value = from == F32   ? sim_float(bits)
                        : from == F16 ? sim_half_to_float(bits)
                                      : sim_small_to_float(format_of(from, arch), bits);
    const float magnitude = operand->abs ? fabsf(value) : value;
    return operand->neg ? -magnitude : magnitude;
}

static uint32_t widen(enum number to, float value, int scale) {
    const float scaled = (float)ldexp((double)value, scale);
    return to == F32 ? sim_bits(scaled) : to == F16 ? sim_float_to_half(scaled) : sim_float_to_bf16(scaled);
}

static uint32_t convert(const struct sim_wave *wave, const struct conversion *conversion, float value, int scale,
                        uint32_t random) {
    const enum sim_arch arch = (enum sim_arch)wave->code->inst.arch;
    static const uint8_t mantissas[] = {23, 10, 7};
    if (conversion->from >= FP8) return widen(conversion->to, value, scale);
    const struct sim_small_rounding rounding = {conversion->stochastic, random, mantissas[conversion->from]};
    return sim_small_from_float(format_of(conversion->to, arch), value, scale, wave->mode & SIM_MODE_FP16_OVFL,
                                rounding);
}

// ---- the instruction

struct sources {
    struct bits_of_lane values[2][SIM_LANES], scale[SIM_LANES], random[SIM_LANES];
};

static bool read_sources(struct sim_wave *wave, const struct sim_inst *inst, const struct conversion *c,
                         struct sources *to) {
    const unsigned registers = (c->count / c->value_slots * width_of(c->from) + 31) / 32;
    for (unsigned k = 0; k < c->value_slots; k++)
        if (!read_operand(wave, &inst->op[SIM_SRC0 + k], registers ? registers : 1, to->values[k])) return false;
    if (c->stochastic && !read_operand(wave, &inst->op[SIM_SRC1], 1, to->random)) return false;
    return !c->scaled || read_operand(wave, &inst->op[c->scale], 1, to->scale);
}

static void convert_lane(const struct sim_wave *wave, const struct conversion *c, const struct sources *from, int lane,
                         struct bits_of_lane *result) {
    enum { BIAS = 127, NOT_A_NUMBER = 255 };
    const struct sim_inst *inst = &wave->code->inst;
    const unsigned width = width_of(c->from), to_width = width_of(c->to);
    const unsigned first = place_of_source(inst, c->count / c->value_slots * width);
    const unsigned to_first = place_of_result(inst, c->count * to_width);
    const unsigned exponent = c->scaled ? from->scale[lane].words[0] >> 23 & 0xff : BIAS;
    const int scale = (int)exponent - BIAS;
    uint32_t random = from->random[lane].words[0];
    for (unsigned e = 0; e < c->count; e++) {
        const unsigned k = e % c->value_slots, at = first + e / c->value_slots * width;
        const uint32_t bits = get_bits(&from->values[k][lane], at, width);
        float value = to_float(c->from, (enum sim_arch)inst->arch, &inst->op[SIM_SRC0 + k], bits);
        if (exponent == NOT_A_NUMBER) value = copysignf(NAN, value);
        put_bits(result, to_first + e * to_width, to_width, convert(wave, c, value, scale, random));
        random = random << 1 ^ (random >> 31 ? PRNG_TAPS : 0);
    }
}

static void convert_small(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    const struct conversion c = read_conversion(code);
    const unsigned registers = (c.count * width_of(c.to) + 31) / 32;
    struct sources from;
    struct bits_of_lane result[SIM_LANES];
    memset(from.random, 0, sizeof from.random);
    if (!read_sources(wave, inst, &c, &from) || !read_operand(wave, &inst->op[SIM_DST], registers, result)) return;
    for (int lane = 0; lane < SIM_LANES; lane++) convert_lane(wave, &c, &from, lane, &result[lane]);
    for (unsigned r = 0; r < registers; r++) {
        uint32_t words[SIM_LANES];
        for (int lane = 0; lane < SIM_LANES; lane++) words[lane] = result[lane].words[r];
        tessera_sim_write_vector(wave, &inst->op[SIM_DST], r, sim_exec(wave), words);
    }
}

#define SCALE(op, from, to, count)                                                                                     \
    { SIM_OP_##op, convert_small, NULL, CONVERT(from, to, count) | SCALED }
#define RANDOM(op, from, to, count)                                                                                    \
    { SIM_OP_##op, convert_small, NULL, CONVERT(from, to, count) | SCALED | STOCHASTIC }
#define UNSCALED(op, to)                                                                                               \
    { SIM_OP_##op, convert_small, NULL, CONVERT(F32, to, 1) | STOCHASTIC }
static const struct sim_semantics rows[] = {
    UNSCALED(v_cvt_sr_fp8_f32, FP8),
    UNSCALED(v_cvt_sr_bf8_f32, BF8),
    UNSCALED(v_cvt_sr_f16_f32, F16),
    UNSCALED(v_cvt_sr_bf16_f32, BF16),
    SCALE(v_cvt_scalef32_pk_fp8_f32, F32, FP8, 2),
    SCALE(v_cvt_scalef32_pk_fp8_f16, F16, FP8, 2),
    SCALE(v_cvt_scalef32_pk_fp8_bf16, BF16, FP8, 2),
    SCALE(v_cvt_scalef32_pk_f32_fp8, FP8, F32, 2),
    SCALE(v_cvt_scalef32_pk_f16_fp8, FP8, F16, 2),
    SCALE(v_cvt_scalef32_pk_bf16_fp8, FP8, BF16, 2),
    SCALE(v_cvt_scalef32_f32_fp8, FP8, F32, 1),
    SCALE(v_cvt_scalef32_f16_fp8, FP8, F16, 1),
    RANDOM(v_cvt_scalef32_sr_fp8_f32, F32, FP8, 1),
    RANDOM(v_cvt_scalef32_sr_fp8_f16, F16, FP8, 1),
    RANDOM(v_cvt_scalef32_sr_fp8_bf16, BF16, FP8, 1),
    SCALE(v_cvt_scalef32_pk_bf8_f32, F32, BF8, 2),
    SCALE(v_cvt_scalef32_pk_bf8_f16, F16, BF8, 2),
    SCALE(v_cvt_scalef32_pk_bf8_bf16, BF16, BF8, 2),
    SCALE(v_cvt_scalef32_pk_f32_bf8, BF8, F32, 2),
    SCALE(v_cvt_scalef32_pk_f16_bf8, BF8, F16, 2),
    SCALE(v_cvt_scalef32_pk_bf16_bf8, BF8, BF16, 2),
    SCALE(v_cvt_scalef32_f32_bf8, BF8, F32, 1),
    SCALE(v_cvt_scalef32_f16_bf8, BF8, F16, 1),
    RANDOM(v_cvt_scalef32_sr_bf8_f32, F32, BF8, 1),
    RANDOM(v_cvt_scalef32_sr_bf8_f16, F16, BF8, 1),
    RANDOM(v_cvt_scalef32_sr_bf8_bf16, BF16, BF8, 1),
    SCALE(v_cvt_scalef32_2xpk16_fp6_f32, F32, FP6, 32),
    SCALE(v_cvt_scalef32_pk32_fp6_f16, F16, FP6, 32),
    SCALE(v_cvt_scalef32_pk32_fp6_bf16, BF16, FP6, 32),
    SCALE(v_cvt_scalef32_pk32_f32_fp6, FP6, F32, 32),
    SCALE(v_cvt_scalef32_pk32_f16_fp6, FP6, F16, 32),
    SCALE(v_cvt_scalef32_pk32_bf16_fp6, FP6, BF16, 32),
    RANDOM(v_cvt_scalef32_sr_pk32_fp6_f32, F32, FP6, 32),
    RANDOM(v_cvt_scalef32_sr_pk32_fp6_f16, F16, FP6, 32),
    RANDOM(v_cvt_scalef32_sr_pk32_fp6_bf16, BF16, FP6, 32),
    SCALE(v_cvt_scalef32_2xpk16_bf6_f32, F32, BF6, 32),
    SCALE(v_cvt_scalef32_pk32_bf6_f16, F16, BF6, 32),
    SCALE(v_cvt_scalef32_pk32_bf6_bf16, BF16, BF6, 32),
    SCALE(v_cvt_scalef32_pk32_f32_bf6, BF6, F32, 32),
    SCALE(v_cvt_scalef32_pk32_f16_bf6, BF6, F16, 32),
    SCALE(v_cvt_scalef32_pk32_bf16_bf6, BF6, BF16, 32),
    RANDOM(v_cvt_scalef32_sr_pk32_bf6_f32, F32, BF6, 32),
    RANDOM(v_cvt_scalef32_sr_pk32_bf6_f16, F16, BF6, 32),
    RANDOM(v_cvt_scalef32_sr_pk32_bf6_bf16, BF16, BF6, 32),
    SCALE(v_cvt_scalef32_pk_fp4_f32, F32, FP4, 2),
    SCALE(v_cvt_scalef32_pk_fp4_f16, F16, FP4, 2),
    SCALE(v_cvt_scalef32_pk_fp4_bf16, BF16, FP4, 2),
    SCALE(v_cvt_scalef32_pk_f32_fp4, FP4, F32, 2),
    SCALE(v_cvt_scalef32_pk_f16_fp4, FP4, F16, 2),
    SCALE(v_cvt_scalef32_pk_bf16_fp4, FP4, BF16, 2),
    RANDOM(v_cvt_scalef32_sr_pk_fp4_f32, F32, FP4, 2),
    RANDOM(v_cvt_scalef32_sr_pk_fp4_f16, F16, FP4, 2),
    RANDOM(v_cvt_scalef32_sr_pk_fp4_bf16, BF16, FP4, 2),
};
const struct sim_semantics_list tessera_sim_vector_small = {rows, sizeof rows / sizeof *rows};
