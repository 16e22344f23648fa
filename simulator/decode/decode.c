// SPDX-License-Identifier: MIT
// Decodes words to struct sim_inst. Layouts: AMD's ISA documents of CDNA2, CDNA3 and CDNA4, "Microcode Formats".
#include <string.h>

#include "decode_tables.h"

// Codes of a 9-bit source operand.
enum {
    NO_SGPR = 125,
    LAST_SGPR = 127,
    INTEGER_0 = 128, // 128..192: 0..64; 193..208: -1..-16
    INTEGER_64 = 192,
    INTEGER_M16 = 208,
    FIRST_FLOAT = 240, // 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1 / (2 pi)
    LAST_FLOAT = 248,
    SDWA = 249,
    DPP = 250,
    LITERAL = 255,
    FIRST_VGPR = 256,
};

enum { VOP1 = 0x3f, VOPC = 0x3e, LD_SCALE = 0x2c, SADDR_OFF = 0x7f };

struct decoder {
    const uint32_t *words;
    size_t available;
    enum sim_arch arch;
    struct sim_inst *inst;
};

static uint32_t bits(uint32_t word, unsigned low, unsigned count) { return word >> low & ((1u << count) - 1); }
static bool bit(uint32_t word, unsigned at) { return word >> at & 1; }
static int32_t sign_extend(uint32_t value, unsigned width) {
    const uint32_t sign = 1u << (width - 1);
    return (int32_t)((value ^ sign) - sign);
}

static enum sim_decode_error set_row(struct decoder *d, enum sim_format format, unsigned row_plus_1) {
    if (row_plus_1 == 0) return SIM_UNKNOWN_OPCODE;
    d->inst->row = &sim_rows[row_plus_1 - 1];
    d->inst->format = format;
    return SIM_DECODED;
}

static bool has(const struct decoder *d, uint32_t flag) { return d->inst->row->flags & flag; }

// Extends the instruction to `words` words; an error where fewer are available.
static enum sim_decode_error need(struct decoder *d, unsigned words) {
    if (d->available < words) return SIM_TRUNCATED;
    d->inst->size = (uint8_t)(4 * words);
    return SIM_DECODED;
}

// Operands

static uint64_t inline_float(unsigned code, unsigned element, enum sim_type type) {
    static const uint64_t f64[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                   0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                   0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
    static const uint32_t f32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                   0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    static const uint16_t f16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
    const unsigned which = code - FIRST_FLOAT;
    if (element == 64) return f64[which];
    if (element == 16 && type == SIM_F) return f16[which];
    if (element == 16 && type == SIM_BF) return f32[which] >> 16;
    return f32[which]; // also for 16-bit integers, which see f32's low half; packed ones see both halves
}

static void set_register(struct sim_operand *operand, enum sim_operand_kind kind, unsigned index) {
    operand->kind = (uint8_t)kind;
    operand->index = (uint16_t)index;
}

static uint64_t literal_value(uint32_t word, const struct sim_field *field) {
    if (field->element == 64 && field->type == SIM_F) return (uint64_t)word << 32;
    if (field->element == 64 && field->type == SIM_I) return (uint64_t)(int64_t)(int32_t)word;
    return word;
}

// Decodes a source operand of 8 or 9 bits.
static enum sim_decode_error set_source(struct decoder *d, const struct sim_field *field, unsigned code) {
    struct sim_operand *operand = &d->inst->op[field->slot];
    if (code >= FIRST_VGPR) {
        set_register(operand, SIM_VGPR, code - FIRST_VGPR);
    } else if (code <= LAST_SGPR) {
        if (code == NO_SGPR) return SIM_RESERVED_OPERAND;
        set_register(operand, SIM_SGPR, code);
    } else if (code <= INTEGER_M16) {
        operand->kind = SIM_CONST;
        operand->index = (uint16_t)code;
        const int64_t value = code <= INTEGER_64 ? (int64_t)code - INTEGER_0 : INTEGER_64 - (int64_t)code;
        operand->value = field->element == 64 ? (uint64_t)value : (uint32_t)value;
    } else if (code >= FIRST_FLOAT && code <= LAST_FLOAT) {
        operand->kind = SIM_CONST;
        operand->index = (uint16_t)code;
        operand->value = inline_float(code, field->element, field->type);
    } else if (code == LITERAL) {
        if (d->inst->size != 4) return SIM_RESERVED_OPERAND; // only SOP*, VOP1, VOP2 and VOPC have room for it
        const unsigned at = d->inst->size / 4u;
        if (d->available <= at) return SIM_TRUNCATED;
        operand->kind = SIM_LITERAL;
        operand->literal = d->words[at];
        operand->value = literal_value(d->words[at], field);
    } else if ((code >= SIM_SHARED_BASE && code <= SIM_POPS_EXITING_WAVE_ID) ||
               (code >= SIM_VCCZ && code <= SIM_LDS_DIRECT)) {
        operand->kind = SIM_SPECIAL;
        operand->index = (uint16_t)code;
    } else {
        return SIM_RESERVED_OPERAND;
    }
    return SIM_DECODED;
}

// The codes in an instruction's fields, by slot, and the bits that make a VGPR an AGPR.
struct codes {
    uint16_t code[SIM_SLOTS];
    bool acc[SIM_SLOTS];
};

static enum sim_decode_error set_operand(struct decoder *d, const struct sim_field *field, const struct codes *codes) {
    struct sim_operand *operand = &d->inst->op[field->slot];
    operand->type = field->type;
    operand->bits = field->bits;
    operand->sel = SIM_DWORD;
    const unsigned code = codes->code[field->slot];
    const enum sim_operand_kind vector = codes->acc[field->slot] ? SIM_AGPR : SIM_VGPR;
    switch ((enum sim_source)field->source) {
    case SIM_FROM_VGPR:
        set_register(operand, SIM_VGPR, code & 0xff);
        break;
    case SIM_FROM_AGPR:
        set_register(operand, SIM_AGPR, code & 0xff);
        break;
    case SIM_FROM_MEMORY:
    case SIM_FROM_MATRIX_D:
        set_register(operand, vector, code & 0xff);
        break;
    case SIM_FROM_SDST:
        set_register(operand, SIM_SGPR, code & 0x7f);
        break;
    case SIM_FROM_VCC:
        set_register(operand, SIM_SGPR, d->inst->format == SIM_VOP3 ? code & 0x7f : SIM_VCC);
        break;
    case SIM_FROM_SSRC:
    case SIM_FROM_SRC:
        return set_source(d, field, code);
    case SIM_FROM_LANE:
        if (code >= FIRST_VGPR) return SIM_RESERVED_OPERAND;
        return set_source(d, field, code);
    case SIM_FROM_MATRIX:
        if (code < FIRST_VGPR) return SIM_RESERVED_OPERAND;
        set_register(operand, vector, code - FIRST_VGPR);
        break;
    case SIM_FROM_MATRIX_C:
        if (code >= FIRST_VGPR) {
            set_register(operand, vector, code - FIRST_VGPR);
            break;
        }
        if (code <= LAST_SGPR || code > LAST_FLOAT) return SIM_RESERVED_OPERAND;
        return set_source(d, field, code);
    case SIM_FROM_LITERAL:
        if (d->available < 2) return SIM_TRUNCATED;
        operand->kind = SIM_LITERAL;
        operand->literal = d->words[1];
        operand->value = d->words[1];
        break;
    default:
        break; // an immediate: the format's decoder sets inst->imm
    }
    return SIM_DECODED;
}

// Whether a field that the row does not use holds something other than zero. The hardware ignores such fields, but no
// assembler sets them: the words are probably data, not code.
static bool unused_is_set(const struct sim_row *row, const struct codes *codes) {
    unsigned used = 0;
    for (unsigned i = 0; i < row->fields; i++) used |= 1u << row->field[i].slot;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++)
        if (codes->code[slot] && !(used >> slot & 1)) return true;
    return false;
}

// Whether the row asks for a VGPR and the code names a scalar or a constant.
static bool vgpr_only(const struct sim_field *field, unsigned code) {
    return (field->source == SIM_FROM_VGPR || field->source == SIM_FROM_AGPR) && field->slot >= SIM_SRC0 &&
           field->slot <= SIM_SCALE1 && code < FIRST_VGPR;
}

static enum sim_decode_error set_operands(struct decoder *d, const struct codes *codes) {
    const struct sim_row *row = d->inst->row;
    bool literal = false;
    for (unsigned i = 0; i < row->fields; i++) {
        const struct sim_field *field = &row->field[i];
        if (field->slot >= SIM_SLOTS) continue;
        const enum sim_decode_error error = set_operand(d, field, codes);
        if (error) return error;
        literal |= d->inst->op[field->slot].kind == SIM_LITERAL;
    }
    return literal ? need(d, 2) : SIM_DECODED;
}

// Scalar formats

static enum sim_decode_error decode_sop2(struct decoder *d, uint32_t w) {
    const unsigned opcode = bits(w, 23, 7);
    enum sim_decode_error error = set_row(d, SIM_SOP2, sim_index_sop2[d->arch][opcode]);
    if (error) return error;
    const struct codes codes = {
        .code = {[SIM_DST] = bits(w, 16, 7), [SIM_SRC0] = bits(w, 0, 8), [SIM_SRC1] = bits(w, 8, 8)}};
    return set_operands(d, &codes);
}

static enum sim_decode_error decode_sop1(struct decoder *d, uint32_t w) {
    const enum sim_decode_error error = set_row(d, SIM_SOP1, sim_index_sop1[d->arch][bits(w, 8, 8)]);
    if (error) return error;
    const struct codes codes = {.code = {[SIM_DST] = bits(w, 16, 7), [SIM_SRC0] = bits(w, 0, 8)}};
    return set_operands(d, &codes);
}

static enum sim_decode_error decode_sopc(struct decoder *d, uint32_t w) {
    const enum sim_decode_error error = set_row(d, SIM_SOPC, sim_index_sopc[d->arch][bits(w, 16, 7)]);
    if (error) return error;
    const struct codes codes = {.code = {[SIM_SRC0] = bits(w, 0, 8), [SIM_SRC1] = bits(w, 8, 8)}};
    d->inst->imm = (int32_t)bits(w, 8, 8); // s_set_gpr_idx_on
    return set_operands(d, &codes);
}

// The immediate of SOPK and SOPP, sign extended where it is signed.
static int32_t immediate(const struct decoder *d, uint32_t w) {
    const struct sim_row *row = d->inst->row;
    for (unsigned i = 0; i < row->fields; i++) {
        const enum sim_source source = row->field[i].source;
        if (source == SIM_FROM_IMM_I16 || source == SIM_FROM_IMM_BRANCH) return (int16_t)bits(w, 0, 16);
    }
    return (int32_t)bits(w, 0, 16);
}

static enum sim_decode_error decode_sopk(struct decoder *d, uint32_t w) {
    const enum sim_decode_error error = set_row(d, SIM_SOPK, sim_index_sopk[d->arch][bits(w, 23, 5)]);
    if (error) return error;
    d->inst->imm = immediate(d, w);
    const unsigned sdst = bits(w, 16, 7);
    const struct codes codes = {.code = {[SIM_DST] = (uint16_t)sdst, [SIM_SRC0] = (uint16_t)sdst}};
    return set_operands(d, &codes);
}

static enum sim_decode_error decode_sopp(struct decoder *d, uint32_t w) {
    const enum sim_decode_error error = set_row(d, SIM_SOPP, sim_index_sopp[d->arch][bits(w, 16, 7)]);
    if (error) return error;
    if (d->inst->row->fields == 0 && bits(w, 0, 16) != 0) return SIM_RESERVED_FIELD;
    d->inst->imm = immediate(d, w);
    return SIM_DECODED;
}

static enum sim_decode_error decode_smem(struct decoder *d, uint32_t w) {
    enum sim_decode_error error = set_row(d, SIM_SMEM, sim_index_smem[d->arch][bits(w, 18, 8)]);
    if (error) return error;
    error = need(d, 2);
    if (error) return error;
    struct sim_inst *inst = d->inst;
    const uint32_t w1 = d->words[1];
    const unsigned data = bits(w, 6, 7);
    const struct codes codes = {
        .code = {[SIM_DST] = (uint16_t)data, [SIM_DATA] = (uint16_t)data, [SIM_BASE] = (uint16_t)(bits(w, 0, 6) * 2)}};
    error = set_operands(d, &codes);
    if (error) return error;
    inst->imm = (int32_t)data; // s_atc_probe
    inst->sc0 = bit(w, 16);
    inst->nv = bit(w, 15);
    // soffset_en and imm choose: an SGPR beside the offset, an SGPR in the offset's field, or the offset alone.
    const bool soffset = bit(w, 14);
    const bool offset = bit(w, 17);
    struct sim_operand *operand = &inst->op[SIM_OFFSET];
    if (soffset || !offset) {
        const unsigned code = soffset ? bits(w1, 25, 7) : bits(w1, 0, 7);
        set_register(operand, SIM_SGPR, code);
        operand->type = SIM_U;
        operand->bits = 32;
        operand->sel = SIM_DWORD;
    }
    if (offset) {
        inst->has_offset = true;
        inst->offset = sign_extend(bits(w1, 0, 21), 21);
    }
    if (inst->row->fields == 0 || (inst->row->fields == 1 && inst->row->field[0].slot == SIM_DST)) {
        if (bits(w, 14, 4) || bits(w, 0, 6) || w1) return SIM_RESERVED_FIELD; // s_dcache_*, s_memtime
        operand->kind = SIM_ABSENT;
    }
    return SIM_DECODED;
}

// Vector ALU

static void vop_codes(struct codes *codes, uint32_t w) {
    *codes =
        (struct codes){.code = {[SIM_DST] = bits(w, 17, 8), [SIM_SRC0] = bits(w, 0, 9), [SIM_SRC1] = bits(w, 9, 8)}};
}

// Sets neg and abs, which only a row's float sources may have.
static enum sim_decode_error set_modifiers(struct decoder *d, unsigned neg, unsigned abs) {
    const struct sim_row *row = d->inst->row;
    for (unsigned i = 0; i < row->fields; i++) {
        const struct sim_field *field = &row->field[i];
        if (field->slot < SIM_SRC0 || field->slot > SIM_SRC2) continue;
        const unsigned source = field->slot - (unsigned)SIM_SRC0;
        if (field->type != SIM_F && field->type != SIM_BF) continue;
        if (field->source == SIM_FROM_LITERAL || has(d, SIM_FLAG_PLAIN)) continue;
        struct sim_operand *operand = &d->inst->op[field->slot];
        operand->neg = neg >> source & 1;
        operand->abs = abs >> source & 1;
        neg &= ~(1u << source);
        abs &= ~(1u << source);
    }
    return neg || abs ? SIM_RESERVED_FIELD : SIM_DECODED;
}

static enum sim_decode_error decode_sdwa(struct decoder *d, const struct codes *short_codes) {
    struct sim_inst *inst = d->inst;
    const bool compare = inst->row->format == SIM_VOPC;
    const bool two = inst->row->format != SIM_VOP1;
    if (!has(d, SIM_FLAG_SDWA)) return SIM_UNKNOWN_OPCODE;
    enum sim_decode_error error = need(d, 2);
    if (error) return error;
    inst->format = SIM_SDWA;
    const uint32_t w1 = d->words[1];
    struct codes codes = *short_codes;
    codes.code[SIM_SRC0] = (uint16_t)(bits(w1, 0, 8) | (bit(w1, 23) ? 0 : FIRST_VGPR));
    codes.code[SIM_SRC1] = (uint16_t)(codes.code[SIM_SRC1] | (bit(w1, 31) ? 0 : FIRST_VGPR));
    for (unsigned i = 0; i < inst->row->fields; i++) {
        struct sim_field field = inst->row->field[i];
        if (field.slot == SIM_SRC0 || field.slot == SIM_SRC1) field.source = SIM_FROM_SRC;
        error = set_operand(d, &field, &codes);
        if (error) return error;
    }
    if (compare) {
        if (bit(w1, 15)) inst->op[SIM_DST].index = (uint16_t)bits(w1, 8, 7);
    } else {
        inst->op[SIM_DST].sel = (uint8_t)bits(w1, 8, 3);
        inst->dst_unused = (uint8_t)bits(w1, 11, 2);
        inst->clamp = bit(w1, 13);
        inst->omod = (uint8_t)bits(w1, 14, 2);
        if (inst->omod && !(has(d, SIM_FLAG_OMOD) && inst->op[SIM_DST].type == SIM_F)) return SIM_RESERVED_FIELD;
        if (inst->op[SIM_DST].sel > SIM_DWORD || inst->dst_unused > SIM_UNUSED_PRESERVE) return SIM_RESERVED_FIELD;
    }
    inst->op[SIM_SRC0].sel = (uint8_t)bits(w1, 16, 3);
    inst->op[SIM_SRC0].sext = bit(w1, 19);
    if (two) {
        inst->op[SIM_SRC1].sel = (uint8_t)bits(w1, 24, 3);
        inst->op[SIM_SRC1].sext = bit(w1, 27);
    }
    if (inst->op[SIM_SRC0].sel > SIM_DWORD || inst->op[SIM_SRC1].sel > SIM_DWORD) return SIM_RESERVED_FIELD;
    const unsigned neg = bits(w1, 20, 1) | (two ? bits(w1, 28, 1) << 1 : 0);
    const unsigned abs = bits(w1, 21, 1) | (two ? bits(w1, 29, 1) << 1 : 0);
    return set_modifiers(d, neg, abs);
}

static bool known_dpp_ctrl(unsigned ctrl) {
    return ctrl <= 0xff || (ctrl >= 0x101 && ctrl <= 0x10f) || (ctrl >= 0x111 && ctrl <= 0x11f) ||
           (ctrl >= 0x121 && ctrl <= 0x12f) || ctrl == 0x130 || ctrl == 0x134 || ctrl == 0x138 || ctrl == 0x13c ||
           (ctrl >= 0x140 && ctrl <= 0x143) || (ctrl >= 0x150 && ctrl <= 0x15f);
}

static enum sim_decode_error decode_dpp(struct decoder *d, const struct codes *short_codes) {
    struct sim_inst *inst = d->inst;
    if (!has(d, SIM_FLAG_DPP | SIM_FLAG_DPP64)) return SIM_UNKNOWN_OPCODE;
    enum sim_decode_error error = need(d, 2);
    if (error) return error;
    inst->format = SIM_DPP;
    const uint32_t w1 = d->words[1];
    struct codes codes = *short_codes;
    codes.code[SIM_SRC0] = (uint16_t)(bits(w1, 0, 8) | FIRST_VGPR);
    error = set_operands(d, &codes);
    if (error) return error;
    inst->dpp_ctrl = (uint16_t)bits(w1, 8, 9);
    inst->bound_ctrl = bit(w1, 19);
    inst->bank_mask = (uint8_t)bits(w1, 24, 4);
    inst->row_mask = (uint8_t)bits(w1, 28, 4);
    if (!known_dpp_ctrl(inst->dpp_ctrl)) return SIM_RESERVED_FIELD;
    if (has(d, SIM_FLAG_DPP64) && inst->dpp_ctrl < 0x150) return SIM_RESERVED_FIELD;
    return set_modifiers(d, bits(w1, 20, 1) | bits(w1, 22, 1) << 1, bits(w1, 21, 1) | bits(w1, 23, 1) << 1);
}

// Decodes VOP1, VOP2 and VOPC, and their SDWA and DPP forms, which a code of the source chooses.
static enum sim_decode_error decode_short(struct decoder *d, uint32_t w) {
    const unsigned family = bits(w, 25, 6);
    enum sim_decode_error error;
    if (family == VOP1) {
        error = set_row(d, SIM_VOP1, sim_index_vop1[d->arch][bits(w, 9, 8)]);
    } else if (family == VOPC) {
        error = set_row(d, SIM_VOPC, sim_index_vopc[d->arch][bits(w, 17, 8)]);
    } else {
        error = set_row(d, SIM_VOP2, sim_index_vop2[d->arch][family]);
    }
    if (error) return error;
    struct codes codes;
    vop_codes(&codes, w);
    if (codes.code[SIM_SRC0] == SDWA) return decode_sdwa(d, &codes);
    if (codes.code[SIM_SRC0] == DPP) return decode_dpp(d, &codes);
    const struct sim_row *row = d->inst->row;
    if (row->fields == 0 && (bits(w, 17, 8) || bits(w, 0, 9))) return SIM_RESERVED_FIELD; // v_nop, v_clrexcp
    for (unsigned i = 0; i < row->fields; i++)
        if (row->field[i].slot == SIM_SRC0 && vgpr_only(&row->field[i], codes.code[SIM_SRC0]))
            return SIM_RESERVED_OPERAND;
    return set_operands(d, &codes);
}

static void set_op_sel(struct decoder *d, unsigned op_sel, unsigned op_sel_hi) {
    for (unsigned source = 0; source < 3; source++) {
        d->inst->op[SIM_SRC0 + source].op_sel = op_sel >> source & 1;
        d->inst->op[SIM_SRC0 + source].op_sel_hi = op_sel_hi >> source & 1;
    }
}

static enum sim_decode_error decode_vop3(struct decoder *d, uint32_t w) {
    enum sim_decode_error error = set_row(d, SIM_VOP3, sim_index_vop3[d->arch][bits(w, 16, 10)]);
    if (error) return error;
    error = need(d, 2);
    if (error) return error;
    struct sim_inst *inst = d->inst;
    const uint32_t w1 = d->words[1];
    const struct codes codes = {.code = {[SIM_DST] = bits(w, 0, 8),
                                         [SIM_SDST] = bits(w, 8, 7),
                                         [SIM_SRC0] = bits(w1, 0, 9),
                                         [SIM_SRC1] = bits(w1, 9, 9),
                                         [SIM_SRC2] = bits(w1, 18, 9)}};
    const struct codes sources = {
        .code = {[SIM_SRC0] = bits(w1, 0, 9), [SIM_SRC1] = bits(w1, 9, 9), [SIM_SRC2] = bits(w1, 18, 9)}};
    if (unused_is_set(inst->row, &sources)) return SIM_RESERVED_FIELD;
    bool vop3b = false;
    for (unsigned i = 0; i < inst->row->fields; i++) {
        struct sim_field field = inst->row->field[i];
        vop3b |= field.slot == SIM_SDST;
        if (vgpr_only(&field, codes.code[field.slot]) && (field.slot != SIM_SRC1 || inst->row->format == SIM_VOP3))
            return SIM_RESERVED_OPERAND;
        if (field.slot == SIM_SRC1 && inst->row->format != SIM_VOP3) field.source = SIM_FROM_SRC;
        error = set_operand(d, &field, &codes);
        if (error) return error;
    }
    const unsigned neg = bits(w1, 29, 3), abs = vop3b ? 0 : bits(w, 8, 3), omod = bits(w1, 27, 2);
    const unsigned op_sel = vop3b ? 0 : bits(w, 11, 4);
    if (has(d, SIM_FLAG_BITOP3)) {
        inst->bitop3 = (uint8_t)(neg | abs << 3 | omod << 6);
    } else {
        inst->omod = (uint8_t)omod;
        error = set_modifiers(d, neg, abs);
        if (error) return error;
        if (omod && !has(d, SIM_FLAG_OMOD)) return SIM_RESERVED_FIELD;
    }
    if (has(d, SIM_FLAG_PERMLANE)) {
        inst->fi = op_sel & 1;
        inst->bound_ctrl = op_sel >> 1 & 1;
    } else if (has(d, SIM_FLAG_OP_SEL | SIM_FLAG_OP_SEL4)) {
        set_op_sel(d, op_sel, 0);
        inst->op[SIM_DST].op_sel = op_sel >> 3;
    } else if (op_sel) {
        return SIM_RESERVED_FIELD;
    }
    inst->clamp = bit(w, 15);
    return inst->clamp && !has(d, SIM_FLAG_CLAMP) ? SIM_RESERVED_FIELD : SIM_DECODED;
}

// Packed math and MFMA

static enum sim_decode_error decode_packed(struct decoder *d, uint32_t w, uint32_t w1) {
    struct sim_inst *inst = d->inst;
    const struct codes codes = {.code = {[SIM_DST] = bits(w, 0, 8),
                                         [SIM_SRC0] = bits(w1, 0, 9),
                                         [SIM_SRC1] = bits(w1, 9, 9),
                                         [SIM_SRC2] = bits(w1, 18, 9)}};
    if (unused_is_set(inst->row, &codes)) return SIM_RESERVED_FIELD;
    const enum sim_decode_error error = set_operands(d, &codes);
    if (error) return error;
    for (unsigned i = 0; i < inst->row->fields; i++)
        if (vgpr_only(&inst->row->field[i], codes.code[inst->row->field[i].slot])) return SIM_RESERVED_OPERAND;
    const unsigned neg_hi = bits(w, 8, 3), neg = bits(w1, 29, 3);
    const unsigned op_sel = bits(w, 11, 3), op_sel_hi = bits(w1, 27, 2) | bits(w, 14, 1) << 2;
    set_op_sel(d, op_sel, op_sel_hi);
    if ((op_sel || op_sel_hi != 7) && !has(d, SIM_FLAG_OP_SEL | SIM_FLAG_MIX)) return SIM_RESERVED_FIELD;
    for (unsigned source = 0; source < 3; source++) {
        struct sim_operand *operand = &inst->op[SIM_SRC0 + source];
        operand->neg = neg >> source & 1;
        if (has(d, SIM_FLAG_MIX)) {
            operand->abs = neg_hi >> source & 1;
        } else {
            operand->neg_hi = neg_hi >> source & 1;
        }
    }
    if ((neg || neg_hi) && !has(d, SIM_FLAG_NEG | SIM_FLAG_MIX)) return SIM_RESERVED_FIELD;
    inst->clamp = bit(w, 15);
    return inst->clamp && !has(d, SIM_FLAG_CLAMP) ? SIM_RESERVED_FIELD : SIM_DECODED;
}

// Bits that a lane's 32 elements take in a format of f8f6f4 (fp8, bf8, fp6, bf6, fp4); 0: no such format.
static unsigned f8f6f4_bits(unsigned format) {
    static const uint16_t width[8] = {256, 256, 192, 192, 128};
    return width[format];
}

static enum sim_decode_error decode_matrix(struct decoder *d, uint32_t w, uint32_t w1) {
    struct sim_inst *inst = d->inst;
    const bool acc_cd = bit(w, 15);
    const struct codes codes = {
        .code = {[SIM_DST] = bits(w, 0, 8),
                 [SIM_SRC0] = bits(w1, 0, 9),
                 [SIM_SRC1] = bits(w1, 9, 9),
                 [SIM_SRC2] = bits(w1, 18, 9)},
        .acc = {[SIM_DST] = acc_cd, [SIM_SRC0] = bit(w1, 27), [SIM_SRC1] = bit(w1, 28), [SIM_SRC2] = acc_cd}};
    for (unsigned i = 0; i < inst->row->fields; i++) {
        const struct sim_field *field = &inst->row->field[i];
        if (field->slot == SIM_SCALE0 || field->slot == SIM_SCALE1) continue;
        const enum sim_decode_error error = set_operand(d, field, &codes);
        if (error) return error;
    }
    inst->cbsz = (uint8_t)bits(w, 8, 3);
    inst->abid = (uint8_t)bits(w, 11, 4);
    inst->blgp = (uint8_t)bits(w1, 29, 3);
    if (!has(d, SIM_FLAG_F8F6F4)) {
        if (!has(d, SIM_FLAG_BLGP) && inst->row->fields == 4 && inst->blgp) return SIM_RESERVED_FIELD;
        return SIM_DECODED;
    }
    if (f8f6f4_bits(inst->cbsz) == 0 || f8f6f4_bits(inst->blgp) == 0) return SIM_RESERVED_FIELD;
    inst->op[SIM_SRC0].bits = (uint16_t)f8f6f4_bits(inst->cbsz);
    inst->op[SIM_SRC1].bits = (uint16_t)f8f6f4_bits(inst->blgp);
    return SIM_DECODED;
}

// Decodes gfx950's scaled MFMA: two words with the scales, then the two words of the MFMA.
static enum sim_decode_error decode_scaled(struct decoder *d, uint32_t w, uint32_t w1) {
    enum sim_decode_error error = need(d, 4);
    if (error) return error;
    const uint32_t mfma = d->words[2], mfma1 = d->words[3];
    if (bits(mfma, 23, 9) != 0x1a7) return SIM_UNKNOWN_ENCODING;
    error = set_row(d, SIM_MAI, sim_index_scaled[d->arch][bits(mfma, 16, 7)]);
    if (error) return error;
    error = decode_matrix(d, mfma, mfma1);
    if (error) return error;
    if (d->inst->abid != 1) return SIM_RESERVED_FIELD;
    d->inst->abid = 0;
    const struct codes codes = {.code = {[SIM_SCALE0] = bits(w1, 0, 9), [SIM_SCALE1] = bits(w1, 9, 9)}};
    for (unsigned i = 0; i < d->inst->row->fields; i++) {
        const struct sim_field *field = &d->inst->row->field[i];
        if (field->slot != SIM_SCALE0 && field->slot != SIM_SCALE1) continue;
        error = set_operand(d, field, &codes);
        if (error) return error;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct sim_operand *scale = &d->inst->op[SIM_SCALE0 + i];
        scale->op_sel = bit(w, 11 + i);
        scale->op_sel_hi = bit(w1, 27 + i);
    }
    return SIM_DECODED;
}

static enum sim_decode_error decode_vop3p(struct decoder *d, uint32_t w) {
    enum sim_decode_error error = need(d, 2);
    if (error) return error;
    const unsigned opcode = bits(w, 16, 7);
    const uint32_t w1 = d->words[1];
    if (d->arch == SIM_GFX950 && opcode == LD_SCALE) return decode_scaled(d, w, w1);
    if (sim_index_mai[d->arch][opcode]) {
        error = set_row(d, SIM_MAI, sim_index_mai[d->arch][opcode]);
        return error ? error : decode_matrix(d, w, w1);
    }
    error = set_row(d, SIM_VOP3P, sim_index_vop3p[d->arch][opcode]);
    return error ? error : decode_packed(d, w, w1);
}

// Vector memory

static enum sim_decode_error decode_ds(struct decoder *d, uint32_t w) {
    enum sim_decode_error error = set_row(d, SIM_DS, sim_index_ds[d->arch][bits(w, 17, 8)]);
    if (error) return error;
    error = need(d, 2);
    if (error) return error;
    struct sim_inst *inst = d->inst;
    const uint32_t w1 = d->words[1];
    const bool acc = bit(w, 25);
    struct codes codes = {.code = {[SIM_ADDR] = bits(w1, 0, 8),
                                   [SIM_DATA] = bits(w1, 8, 8),
                                   [SIM_DATA2] = bits(w1, 16, 8),
                                   [SIM_DST] = bits(w1, 24, 8)},
                          .acc = {[SIM_DATA] = acc, [SIM_DATA2] = acc, [SIM_DST] = acc}};
    inst->gds = bit(w, 16);
    if (inst->gds != has(d, SIM_FLAG_GDS)) return SIM_RESERVED_FIELD; // these architectures have GWS, but no GDS
    if (inst->gds) {
        codes.code[SIM_DATA] = codes.code[SIM_ADDR]; // GWS has its data in the field that holds the address elsewhere
        codes.code[SIM_ADDR] = 0;
    }
    if (unused_is_set(inst->row, &codes)) return SIM_RESERVED_FIELD;
    const bool pair = has(d, SIM_FLAG_PAIR);
    inst->offset = (int32_t)(pair ? bits(w, 0, 8) : bits(w, 0, 16));
    inst->offset1 = pair ? (uint8_t)bits(w, 8, 8) : 0;
    return set_operands(d, &codes);
}

// Decodes the fields that MUBUF and MTBUF share.
static enum sim_decode_error decode_buffer(struct decoder *d, uint32_t w, uint32_t w1) {
    struct sim_inst *inst = d->inst;
    const bool acc = bit(w1, 23);
    const unsigned data = bits(w1, 8, 8);
    const struct codes codes = {.code = {[SIM_DST] = (uint16_t)data, [SIM_DATA] = (uint16_t)data},
                                .acc = {[SIM_DST] = acc, [SIM_DATA] = acc}};
    inst->offset = (int32_t)bits(w, 0, 12);
    inst->offen = bit(w, 12);
    inst->idxen = bit(w, 13);
    inst->sc0 = bit(w, 14);
    const enum sim_decode_error error = set_operands(d, &codes);
    if (error) return error;
    if (has(d, SIM_FLAG_BARE)) return w1 || bits(w, 0, 14) ? SIM_RESERVED_FIELD : SIM_DECODED;
    if (has(d, SIM_FLAG_ATOMIC) && !inst->sc0) inst->op[SIM_DST].kind = SIM_ABSENT;
    if (inst->lds) {
        if (data || acc) return SIM_RESERVED_FIELD;
        inst->op[SIM_DST].kind = SIM_ABSENT;
    }
    if (inst->offen || inst->idxen) {
        set_register(&inst->op[SIM_ADDR], SIM_VGPR, bits(w1, 0, 8));
        inst->op[SIM_ADDR].bits = inst->offen && inst->idxen ? 64 : 32;
    }
    set_register(&inst->op[SIM_BASE], SIM_SGPR, bits(w1, 16, 5) * 4);
    inst->op[SIM_BASE].bits = 128;
    const struct sim_field soffset = {.slot = SIM_OFFSET, .type = SIM_U, .element = 32, .bits = 32};
    inst->op[SIM_OFFSET].type = SIM_U;
    inst->op[SIM_OFFSET].bits = 32;
    return set_source(d, &soffset, bits(w1, 24, 8));
}

static enum sim_decode_error decode_mubuf(struct decoder *d, uint32_t w) {
    enum sim_decode_error error = set_row(d, SIM_MUBUF, sim_index_mubuf[d->arch][bits(w, 18, 7)]);
    if (error) return error;
    error = need(d, 2);
    if (error) return error;
    d->inst->sc1 = bit(w, 15);
    d->inst->lds = bit(w, 16);
    d->inst->nt = bit(w, 17);
    if (d->inst->lds && !has(d, SIM_FLAG_LDS) && !(has(d, SIM_FLAG_LDS950) && d->arch == SIM_GFX950))
        return SIM_RESERVED_FIELD;
    return decode_buffer(d, w, d->words[1]);
}

static enum sim_decode_error decode_mtbuf(struct decoder *d, uint32_t w) {
    enum sim_decode_error error = set_row(d, SIM_MTBUF, sim_index_mtbuf[d->arch][bits(w, 15, 4)]);
    if (error) return error;
    error = need(d, 2);
    if (error) return error;
    d->inst->dfmt = (uint8_t)bits(w, 19, 4);
    d->inst->nfmt = (uint8_t)bits(w, 23, 3);
    d->inst->sc1 = bit(d->words[1], 21);
    d->inst->nt = bit(d->words[1], 22);
    return decode_buffer(d, w, d->words[1]);
}

// Decodes the address of FLAT, GLOBAL and SCRATCH: a VGPR pair, a VGPR and an SGPR pair, or scratch's VGPR and SGPR, of
// which each may be absent.
static enum sim_decode_error set_flat_address(struct decoder *d, uint32_t w, uint32_t w1) {
    struct sim_inst *inst = d->inst;
    const unsigned saddr = bits(w1, 16, 7);
    const bool has_saddr = inst->format != SIM_FLAT && saddr != SADDR_OFF;
    struct sim_operand *addr = &inst->op[SIM_ADDR], *base = &inst->op[SIM_BASE];
    bool has_addr = true;
    addr->bits = inst->format == SIM_FLAT || !has_saddr ? 64 : 32;
    if (inst->format == SIM_SCRATCH) {
        inst->sve = bit(w, 13);
        has_addr = d->arch == SIM_GFX90A ? !has_saddr : inst->sve;
        addr->bits = 32;
    } else if (bit(w, 13)) {
        return SIM_RESERVED_FIELD;
    }
    if (inst->format == SIM_FLAT && saddr != 0 && saddr != SADDR_OFF) return SIM_RESERVED_FIELD;
    if (has_addr) set_register(addr, SIM_VGPR, bits(w1, 0, 8));
    if (has_saddr) {
        set_register(base, SIM_SGPR, saddr);
        base->bits = inst->format == SIM_SCRATCH ? 32 : 64;
    }
    return SIM_DECODED;
}

static enum sim_decode_error decode_flat(struct decoder *d, uint32_t w) {
    const unsigned segment = bits(w, 14, 2), opcode = bits(w, 18, 7);
    enum sim_decode_error error = SIM_UNKNOWN_ENCODING;
    if (segment == 0) error = set_row(d, SIM_FLAT, sim_index_flat[d->arch][opcode]);
    if (segment == 1) error = set_row(d, SIM_SCRATCH, sim_index_scratch[d->arch][opcode]);
    if (segment == 2) error = set_row(d, SIM_GLOBAL, sim_index_global[d->arch][opcode]);
    if (error) return error;
    error = need(d, 2);
    if (error) return error;
    struct sim_inst *inst = d->inst;
    const uint32_t w1 = d->words[1];
    const bool acc = bit(w1, 23);
    const struct codes codes = {.code = {[SIM_DATA] = bits(w1, 8, 8), [SIM_DST] = bits(w1, 24, 8)},
                                .acc = {[SIM_DATA] = acc, [SIM_DST] = acc}};
    if (unused_is_set(inst->row, &codes)) return SIM_RESERVED_FIELD;
    error = set_operands(d, &codes);
    if (error) return error;
    inst->sc0 = bit(w, 16);
    inst->nt = bit(w, 17);
    inst->sc1 = bit(w, 25);
    if (has(d, SIM_FLAG_ATOMIC) && !inst->sc0) inst->op[SIM_DST].kind = SIM_ABSENT;
    inst->offset = segment == 0 ? (int32_t)bits(w, 0, 12) : sign_extend(bits(w, 0, 13), 13);
    return set_flat_address(d, w, w1);
}

// Whether `count` SGPRs from `index` on can be one operand: tuples are aligned, and do not leave the group of registers
// that they start in.
static bool sgpr_tuple(unsigned index, unsigned count) {
    static const uint8_t ends[] = {SIM_FLAT_SCRATCH, SIM_XNACK_MASK, SIM_VCC, SIM_TTMP0, SIM_M0, SIM_M0 + 1, 128};
    unsigned end = 0;
    for (unsigned i = 0; index >= end; i++) end = ends[i];
    const unsigned alignment = count > 3 ? 4 : count > 1 ? 2 : 1;
    return index % alignment == 0 && index + count <= end;
}

static bool vector_tuple(unsigned index, unsigned count) {
    return (count == 1 || index % 2 == 0) && index + count <= 256;
}

static enum sim_decode_error check_registers(const struct sim_inst *inst) {
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        const struct sim_operand *operand = &inst->op[slot];
        const unsigned count = (operand->bits + 31u) / 32u;
        bool good = true;
        if (operand->kind == SIM_SGPR) good = sgpr_tuple(operand->index, count);
        if (operand->kind == SIM_VGPR || operand->kind == SIM_AGPR) good = vector_tuple(operand->index, count);
        if (!good) return SIM_RESERVED_OPERAND;
    }
    return SIM_DECODED;
}

static enum sim_decode_error decode(struct decoder *d) {
    const uint32_t w = d->words[0];
    if (!bit(w, 31)) return decode_short(d, w);
    if (bits(w, 30, 2) == 2) {
        if (bits(w, 23, 9) == 0x17d) return decode_sop1(d, w);
        if (bits(w, 23, 9) == 0x17e) return decode_sopc(d, w);
        if (bits(w, 23, 9) == 0x17f) return decode_sopp(d, w);
        if (bits(w, 28, 4) == 0xb) return decode_sopk(d, w);
        return decode_sop2(d, w);
    }
    switch (bits(w, 26, 6)) {
    case 0x30:
        return decode_smem(d, w);
    case 0x34:
        return bits(w, 23, 9) == 0x1a7 ? decode_vop3p(d, w) : decode_vop3(d, w);
    case 0x36:
        return decode_ds(d, w);
    case 0x37:
        return decode_flat(d, w);
    case 0x38:
        return decode_mubuf(d, w);
    case 0x3a:
        return decode_mtbuf(d, w);
    default:
        return SIM_UNKNOWN_ENCODING;
    }
}

enum sim_decode_error tessera_sim_decode(enum sim_arch arch, const uint32_t *words, size_t available,
                                         struct sim_inst *inst) {
    memset(inst, 0, sizeof *inst);
    inst->arch = (uint8_t)arch;
    inst->size = 4;
    if (available == 0) return SIM_TRUNCATED;
    struct decoder decoder = {words, available, arch, inst};
    const enum sim_decode_error error = decode(&decoder);
    return error ? error : check_registers(inst);
}

const char *tessera_sim_decode_error_name(enum sim_decode_error error) {
    static const char *const names[] = {
        [SIM_DECODED] = "decoded",
        [SIM_TRUNCATED] = "the code ends within an instruction",
        [SIM_UNKNOWN_ENCODING] = "unknown encoding",
        [SIM_UNKNOWN_OPCODE] = "unknown opcode",
        [SIM_RESERVED_OPERAND] = "reserved operand",
        [SIM_RESERVED_FIELD] = "reserved bits are set",
    };
    return names[error];
}
