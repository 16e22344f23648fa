// SPDX-License-Identifier: MIT
// Operands of the vector ALU: reads registers, constants, SDWA and DPP for 64 lanes, and writes results under EXEC.
#include "vector.h"

#include <fenv.h>

// Space for an operand that cannot be read in place.
struct lanes {
    sim_u64 words[SIM_LANES] __attribute__((aligned(64)));
};

// ---- registers

sim_vgpr *tessera_sim_registers(struct sim_wave *wave, const struct sim_operand *operand, unsigned count) {
    unsigned first = operand->index, exist = wave->vgprs;
    if (operand->kind == SIM_AGPR) {
        exist = wave->agprs;
    } else if (operand->kind != SIM_VGPR) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "operand kind %u as a vector", operand->kind);
        return NULL;
    }
    if (first + count > exist) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, -1, 0, "%c%u to %u, but the kernel has %u",
                            operand->kind == SIM_AGPR ? 'a' : 'v', first, first + count - 1, exist);
        return NULL;
    }
    return &wave->vgpr[first + (operand->kind == SIM_AGPR ? wave->first_agpr : 0)];
}

const uint32_t *tessera_sim_read_vector(struct sim_wave *wave, const struct sim_operand *operand, unsigned which,
                                        uint32_t *words) {
    if (operand->kind == SIM_VGPR || operand->kind == SIM_AGPR) {
        sim_vgpr *registers = tessera_sim_registers(wave, operand, which + 1);
        return registers ? registers[which] : NULL;
    }
    uint32_t word;
    if (operand->kind == SIM_SGPR) {
        if (operand->index + which >= SIM_SGPRS) {
            tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, -1, 0, "an SGPR behind the last one");
            return NULL;
        }
        word = wave->sgpr[operand->index + which];
    } else {
        word = (uint32_t)(tessera_sim_read_scalar(wave, operand) >> 32 * (which & 1));
    }
    for (int i = 0; i < SIM_LANES; i++) words[i] = word;
    return words;
}

static void blend(uint32_t *restrict to, const uint32_t *restrict from, const uint32_t *restrict lanes) {
    for (int i = 0; i < SIM_LANES; i++) to[i] = (from[i] & lanes[i]) | (to[i] & ~lanes[i]);
}

static const uint32_t *expand_mask(struct sim_wave *wave, uint64_t mask, uint32_t *lanes) {
    if (mask == sim_exec(wave)) return tessera_sim_exec_lanes(wave);
    for (int i = 0; i < SIM_LANES; i++) lanes[i] = 0u - (uint32_t)(mask >> i & 1);
    return lanes;
}

void tessera_sim_write_vector(struct sim_wave *wave, const struct sim_operand *operand, unsigned which, uint64_t mask,
                              const uint32_t *words) {
    uint32_t lanes[SIM_LANES];
    sim_vgpr *registers = tessera_sim_registers(wave, operand, which + 1);
    if (!registers) return;
    if (mask == UINT64_MAX)
        memcpy(registers[which], words, sizeof *registers);
    else
        blend(registers[which], words, expand_mask(wave, mask, lanes));
}

// ---- sources

static void select_part(const struct sim_operand *operand, const uint32_t *restrict from, uint32_t *restrict to) {
    const unsigned bits = operand->sel <= SIM_BYTE_3 ? 8 : 16;
    const unsigned shift = operand->sel <= SIM_BYTE_3 ? 8u * operand->sel : 16u * (operand->sel - SIM_WORD_0);
    for (int i = 0; i < SIM_LANES; i++) {
        const uint32_t high = from[i] << (32 - bits - shift);
        to[i] = operand->sext ? (uint32_t)((int32_t)high >> (32 - bits)) : high >> (32 - bits);
    }
}

static void apply_signs(const struct sim_operand *operand, struct lanes *lanes) {
    if (operand->bits > 32) {
        const uint64_t sign = UINT64_C(1) << 63;
        for (int i = 0; i < SIM_LANES; i++) {
            const uint64_t magnitude = operand->abs ? lanes->words[i] & ~sign : lanes->words[i];
            lanes->words[i] = operand->neg ? magnitude ^ sign : magnitude;
        }
        return;
    }
    const uint32_t sign = operand->bits == 16 ? 0x8000 : 0x80000000;
    sim_u32 *words = (sim_u32 *)lanes->words;
    for (int i = 0; i < SIM_LANES; i++) {
        const uint32_t magnitude = operand->abs ? words[i] & ~sign : words[i];
        words[i] = operand->neg ? magnitude ^ sign : magnitude;
    }
}

// VOP3P: picks the halves of the source for the low and the high result, and applies their signs.
static const void *arrange_halves(const struct sim_operand *operand, const uint32_t *from, struct lanes *lanes) {
    if (!operand->op_sel && operand->op_sel_hi && !operand->neg && !operand->neg_hi) return from;
    const unsigned low = operand->op_sel ? 16 : 0, high = operand->op_sel_hi ? 16 : 0;
    const uint32_t signs = (operand->neg ? 0x8000u : 0) | (operand->neg_hi ? 0x80000000u : 0);
    sim_u32 *to = (sim_u32 *)lanes->words;
    for (int i = 0; i < SIM_LANES; i++) to[i] = ((from[i] >> low & 0xffff) | (from[i] >> high & 0xffff) << 16) ^ signs;
    return to;
}

// The same for VOP3P on pairs of words, with words for halves.
static const void *arrange_words(const struct sim_operand *operand, const uint32_t *low, const uint32_t *high,
                                 struct lanes *lanes) {
    const uint32_t *first = operand->op_sel ? high : low, *second = operand->op_sel_hi ? high : low;
    const uint64_t signs = (operand->neg ? 0x80000000u : 0) | (operand->neg_hi ? UINT64_C(1) << 63 : 0);
    for (int i = 0; i < SIM_LANES; i++) lanes->words[i] = (first[i] | (uint64_t)second[i] << 32) ^ signs;
    return lanes->words;
}

// Fetches one source, in the form that the arithmetic takes.
static const void *fetch(struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot, unsigned use,
                         struct lanes *lanes) {
    const struct sim_operand operand = sim_indexed(wave, &code->inst.op[slot], use);
    const unsigned element = code->inst.format == SIM_VOP3P ? code->element[slot] : 0;
    uint32_t low_words[SIM_LANES], high_words[SIM_LANES];
    const bool wide = operand.bits > 32;
    const uint32_t *low = tessera_sim_read_vector(wave, &operand, 0, wide ? low_words : (sim_u32 *)lanes->words);
    const uint32_t *high = wide ? tessera_sim_read_vector(wave, &operand, 1, high_words) : NULL;
    if (!low || (wide && !high)) return NULL;
    if (wide && element == 32) return arrange_words(&operand, low, high, lanes);
    if (wide) {
        for (int i = 0; i < SIM_LANES; i++) lanes->words[i] = low[i] | (uint64_t)high[i] << 32;
        if (operand.abs || operand.neg) apply_signs(&operand, lanes);
        return lanes->words;
    }
    if (operand.bits == 32 && element == 16) return arrange_halves(&operand, low, lanes);
    const bool part = operand.sel != SIM_DWORD, high_half = operand.bits == 16 && operand.op_sel;
    if (!part && !high_half && !operand.abs && !operand.neg) return low;
    sim_u32 *words = (sim_u32 *)lanes->words;
    if (part) {
        memcpy(low_words, low, sizeof low_words);
        select_part(&operand, low_words, words);
    } else if (high_half) {
        for (int i = 0; i < SIM_LANES; i++) words[i] = low[i] >> 16;
    } else if (low != words) {
        memcpy(words, low, sizeof low_words);
    }
    if (operand.abs || operand.neg) apply_signs(&operand, lanes);
    return words;
}

// ---- DPP: src0 comes from another lane

// The lane that `lane` reads, or -1.
static int dpp_source(unsigned control, int lane) {
    const int row = lane & ~15, column = lane & 15, count = control & 15;
    if (control <= 0xff) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
    switch (control & ~15u) {
    case 0x100:
        return column + count < 16 ? lane + count : -1;
    case 0x110:
        return column >= count ? lane - count : -1;
    case 0x120:
        return row | ((column - count) & 15);
    case 0x150:
        return row | count;
    }
    switch (control) {
    case 0x130:
        return lane < 63 ? lane + 1 : -1;
    case 0x134:
        return (lane + 1) & 63;
    case 0x138:
        return lane - 1;
    case 0x13c:
        return (lane - 1) & 63;
    case 0x140:
        return row | (15 - column);
    case 0x141:
        return (lane & ~7) | (7 - (lane & 7));
    case 0x142:
        return row - 1;
    case 0x143:
        return lane >= 32 ? 31 : -1;
    }
    return -1;
}

// Returns the lanes that DPP lets write; `moved` gets the words of src0, lane by lane as in VGPRs.
static uint64_t move_lanes(struct sim_wave *wave, const struct sim_inst *inst, const uint32_t *from[2], unsigned words,
                           uint32_t (*moved)[SIM_LANES]) {
    const uint64_t exec = sim_exec(wave);
    uint64_t mask = 0;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        const int source = dpp_source(inst->dpp_ctrl, lane);
        const bool valid = source >= 0 && exec >> source & 1;
        const bool kept = inst->row_mask >> (lane >> 4) & 1 && inst->bank_mask >> (lane >> 2 & 3) & 1;
        if (kept && (valid || inst->bound_ctrl)) mask |= UINT64_C(1) << lane;
        for (unsigned k = 0; k < words; k++) moved[k][lane] = valid ? from[k][source] : 0;
    }
    return mask;
}

static const void *fetch_dpp(struct sim_wave *wave, const struct sim_inst *inst, struct lanes *lanes, uint64_t *mask) {
    const struct sim_operand *operand = &inst->op[SIM_SRC0];
    const unsigned words = operand->bits > 32 ? 2 : 1;
    uint32_t moved[2][SIM_LANES];
    sim_vgpr *registers = tessera_sim_registers(wave, operand, words);
    if (!registers) return NULL;
    const uint32_t *from[2] = {registers[0], registers[words - 1]};
    *mask &= move_lanes(wave, inst, from, words, moved);
    if (words == 2)
        for (int i = 0; i < SIM_LANES; i++) lanes->words[i] = moved[0][i] | (uint64_t)moved[1][i] << 32;
    else
        memcpy(lanes->words, moved[0], sizeof moved[0]);
    if (operand->abs || operand->neg) apply_signs(operand, lanes);
    return lanes->words;
}

// ---- results

static const float output_factors[4] = {1, 2, 4, 0.5f};

// Clamps to 0..1; NaN becomes 0 where MODE's DX10_CLAMP says so.
static float clamp_float(float value, bool nan_to_zero) {
    if (value != value && !nan_to_zero) return value;
    return value > 0 ? (value < 1 ? value : 1) : 0;
}
static double clamp_double(double value, bool nan_to_zero) {
    if (value != value && !nan_to_zero) return value;
    return value > 0 ? (value < 1 ? value : 1) : 0;
}

struct output {
    float factor;
    bool scale, clamp, nan_to_zero;
};

// Applies the output modifiers; a zero that was scaled is +0.
static double modify_double(double value, struct output output) {
    if (output.scale) value = value * (double)output.factor + 0.0;
    return output.clamp ? clamp_double(value, output.nan_to_zero) : value;
}
static float modify_float(float value, struct output output) {
    if (output.scale) value = value * output.factor + 0.0f;
    return output.clamp ? clamp_float(value, output.nan_to_zero) : value;
}
static uint32_t modify_half(uint32_t half, struct output output) {
    return sim_float_to_half(modify_float(sim_half_to_float(half), output));
}

enum { ROUND_32 = 0, ROUND_64 = 2, DENORM_32 = 4, DENORM_64 = 6, DENORM_IN = 1, DENORM_OUT = 2 };

static unsigned denorms_kept(const struct sim_wave *wave,
                             unsigned element) { // 16-bit types share the field of 64-bit ones
    return wave->mode >> (element == 32 ? DENORM_32 : DENORM_64) & 3;
}

// Applies output modifiers to floating-point results. The factor is ignored with MODE's IEEE, or where denormal results
// are kept.
static void modify_result(const struct sim_wave *wave, const struct sim_code *code, struct lanes *result) {
    const struct sim_inst *inst = &code->inst;
    const struct sim_operand *operand = &inst->op[SIM_DST];
    const unsigned element = code->element[SIM_DST];
    const struct output output = {
        .factor = output_factors[inst->omod],
        .scale = inst->omod && !(wave->mode & SIM_MODE_IEEE) && !(denorms_kept(wave, element) & DENORM_OUT),
        .clamp = inst->clamp,
        .nan_to_zero = wave->mode & SIM_MODE_DX10_CLAMP,
    };
    sim_u32 *words = (sim_u32 *)result->words;
    sim_f32 *floats = (sim_f32 *)result->words;
    sim_f64 *doubles = (sim_f64 *)result->words;
    if (operand->type != SIM_F) return; // integers clamp in their arithmetic
    if (element == 16 && operand->bits == 32) {
        for (int i = 0; i < SIM_LANES; i++)
            words[i] = modify_half(words[i] & 0xffff, output) | modify_half(words[i] >> 16, output) << 16;
    } else if (operand->bits == 16) {
        for (int i = 0; i < SIM_LANES; i++) words[i] = modify_half(words[i] & 0xffff, output);
    } else if (element == 32) {
        for (int i = 0; i < (operand->bits > 32 ? 2 : 1) * SIM_LANES; i++) floats[i] = modify_float(floats[i], output);
    } else {
        for (int i = 0; i < SIM_LANES; i++) doubles[i] = modify_double(doubles[i], output);
    }
}

// SDWA: puts the result into the selected bytes of the register.
static void insert_part(const struct sim_inst *inst, const uint32_t *old, sim_u32 *words) {
    const struct sim_operand *operand = &inst->op[SIM_DST];
    if (operand->sel == SIM_DWORD) return;
    const unsigned bits = operand->sel <= SIM_BYTE_3 ? 8 : 16;
    const unsigned shift = operand->sel <= SIM_BYTE_3 ? 8u * operand->sel : 16u * (operand->sel - SIM_WORD_0);
    const uint32_t part = (bits == 8 ? 0xffu : 0xffffu) << shift;
    for (int i = 0; i < SIM_LANES; i++) {
        const uint32_t placed = words[i] << shift & part;
        const uint32_t above = (uint32_t)((int32_t)(words[i] << (32 - bits)) >> 31) & ~(part | ((1u << shift) - 1));
        words[i] = placed | (inst->dst_unused == SIM_UNUSED_PRESERVE ? old[i] & ~part
                             : inst->dst_unused == SIM_UNUSED_SEXT   ? above
                                                                     : 0);
    }
}

// Puts 16 bits into one half of the register and leaves the other half alone.
static void insert_half(bool high, const uint32_t *old, sim_u32 *words) {
    for (int i = 0; i < SIM_LANES; i++)
        words[i] = high ? (old[i] & 0xffff) | words[i] << 16 : (old[i] & 0xffff0000) | (words[i] & 0xffff);
}

static void store(struct sim_wave *wave, const struct sim_code *code, uint64_t mask, struct lanes *result) {
    const struct sim_inst *inst = &code->inst;
    const struct sim_operand operand = sim_indexed(wave, &inst->op[SIM_DST], SIM_INDEX_DST);
    const unsigned count = operand.bits > 32 ? 2 : 1;
    sim_vgpr *registers = tessera_sim_registers(wave, &operand, count);
    if (!registers) return;
    if (inst->clamp || inst->omod) modify_result(wave, code, result);
    if (count == 1) {
        sim_u32 *words = (sim_u32 *)result->words;
        if (inst->format == SIM_SDWA)
            insert_part(inst, registers[0], words);
        else if (operand.bits == 16 && (operand.op_sel || code->detail & SIM_KEEP_HIGH))
            insert_half(operand.op_sel, registers[0], words);
        tessera_sim_write_vector(wave, &operand, 0, mask, words);
        return;
    }
    uint32_t low[SIM_LANES], high[SIM_LANES];
    for (int i = 0; i < SIM_LANES; i++) {
        low[i] = (uint32_t)result->words[i];
        high[i] = (uint32_t)(result->words[i] >> 32);
    }
    tessera_sim_write_vector(wave, &operand, 0, mask, low);
    tessera_sim_write_vector(wave, &operand, 1, mask, high);
}

// ---- MODE's settings of rounding and denormals, where they are not the default

static void flush(unsigned element, unsigned bits, struct lanes *lanes) {
    sim_u32 *words = (sim_u32 *)lanes->words;
    const int count = bits > 32 ? 2 * SIM_LANES : SIM_LANES;
    for (int i = 0; i < count && element == 16; i++) {
        if (!(words[i] & 0x7c00)) words[i] &= ~0x3ffu;
        if (bits > 16 && !(words[i] & 0x7c000000)) words[i] &= ~0x3ff0000u;
    }
    for (int i = 0; i < count && element == 32; i++)
        if (!(words[i] & 0x7f800000)) words[i] &= 0x80000000;
    for (int i = 0; i < SIM_LANES && element == 64; i++)
        if (!(lanes->words[i] & UINT64_C(0x7ff0000000000000))) lanes->words[i] &= UINT64_C(1) << 63;
}

static const void *flush_source(const struct sim_wave *wave, const struct sim_code *code, enum sim_slot slot,
                                const void *source, struct lanes *lanes) {
    const struct sim_operand *operand = &code->inst.op[slot];
    if (operand->type != SIM_F || denorms_kept(wave, code->element[slot]) & DENORM_IN) return source;
    if (source != lanes) memmove(lanes, source, (operand->bits > 32 ? 8 : 4) * SIM_LANES);
    flush(code->element[slot], operand->bits, lanes);
    return lanes;
}

static void run_with_mode(struct sim_wave *wave, const struct sim_code *code, struct sim_alu *alu,
                          struct lanes *lanes) {
    static const int roundings[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const struct sim_operand *result = &code->inst.op[SIM_DST];
    const unsigned element = code->element[SIM_DST];
    const bool is_float = result->type == SIM_F;
    const unsigned asked = wave->mode >> (is_float && element != 32 ? ROUND_64 : ROUND_32) & 3;
    const unsigned rounding = code->detail & SIM_OWN_ROUNDING ? 0 : asked;
    if (is_float && element == 16) {
        alu->half_mode = (struct sim_half_mode){(uint8_t)rounding, wave->mode & SIM_MODE_FP16_OVFL};
        alu->special_halves = rounding || alu->half_mode.finite;
    }
    for (unsigned i = 0; i < 3 && !(code->detail & SIM_MOVES); i++) {
        const bool accumulates = i == 2 && code->detail & SIM_ACCUMULATE && code->inst.op[SIM_SRC2].kind == SIM_ABSENT;
        const enum sim_slot slot = accumulates ? SIM_DST : SIM_SRC0 + i;
        if (alu->src[i]) alu->src[i] = flush_source(wave, code, slot, alu->src[i], &lanes[i]);
    }
    fesetround(roundings[rounding]);
    code->lanes(alu);
    fesetround(FE_TONEAREST);
    if (is_float && !(denorms_kept(wave, element) & DENORM_OUT)) flush(element, result->bits, alu->dst);
}

// ---- one instruction

static bool fetch_sources(struct sim_wave *wave, const struct sim_code *code, struct sim_alu *alu, struct lanes *lanes,
                          uint64_t *mask) {
    const struct sim_inst *inst = &code->inst;
    for (unsigned i = 0; i < 3; i++) {
        const struct sim_operand *operand = &inst->op[SIM_SRC0 + i];
        if (i == 2 && code->detail & SIM_MASK_IN) {
            alu->mask = tessera_sim_read_scalar(wave, operand);
        } else if (i == 2 && code->detail & SIM_ACCUMULATE && operand->kind == SIM_ABSENT) {
            if (!(alu->src[2] = fetch(wave, code, SIM_DST, 3, &lanes[2]))) return false;
        } else if (operand->kind != SIM_ABSENT) {
            alu->src[i] = i == 0 && inst->format == SIM_DPP ? fetch_dpp(wave, inst, &lanes[0], mask)
                                                            : fetch(wave, code, SIM_SRC0 + i, i, &lanes[i]);
            if (!alu->src[i]) return false;
        }
    }
    return true;
}

void tessera_sim_execute_vector(struct sim_wave *wave, const struct sim_code *code) {
    struct lanes lanes[4];
    struct sim_alu alu = {.wave = wave, .inst = &code->inst, .dst = &lanes[3]};
    const uint64_t exec = sim_exec(wave);
    uint64_t mask = exec;
    if (!fetch_sources(wave, code, &alu, lanes, &mask)) return;
    if (wave->special_floats)
        run_with_mode(wave, code, &alu, lanes);
    else
        code->lanes(&alu);
    if (wave->state == SIM_FAULTED) return;
    if (code->detail & SIM_CONDITION) {
        tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], alu.mask & mask);
        if (code->detail & SIM_TO_EXEC) sim_set_sgpr64(wave, SIM_EXEC, alu.mask & mask);
        return;
    }
    store(wave, code, mask, &lanes[3]);
    if (code->detail & SIM_MASK_OUT) tessera_sim_write_scalar(wave, &code->inst.op[SIM_SDST], alu.mask & mask);
}
