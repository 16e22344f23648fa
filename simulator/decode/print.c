// SPDX-License-Identifier: MIT
// Prints struct sim_inst in LLVM's syntax. clang assembles the text to the same bytes.
#include <stdarg.h>
#include <stdio.h>

#include "decode_tables.h"

struct printer {
    const struct sim_inst *inst;
    char *text;
    size_t size;
    size_t length;
    bool first; // no operand has been printed
};

__attribute__((format(printf, 2, 3))) static void put(struct printer *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t left = p->length < p->size ? p->size - p->length : 0;
    const int written = vsnprintf(left ? p->text + p->length : NULL, left, format, arguments);
    va_end(arguments);
    if (written > 0) p->length += (size_t)written;
}

static bool has(const struct printer *p, uint32_t flag) { return p->inst->row->flags & flag; }

static void separate(struct printer *p) {
    put(p, p->first ? " " : ", ");
    p->first = false;
}

// Operands

static void put_sgpr(struct printer *p, unsigned index, unsigned count) {
    static const struct {
        uint8_t index;
        const char *name;
    } pairs[] = {
        {SIM_FLAT_SCRATCH, "flat_scratch"}, {SIM_XNACK_MASK, "xnack_mask"}, {SIM_VCC, "vcc"}, {SIM_EXEC, "exec"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (index - pairs[i].index > 1u) continue;
        if (count == 1) {
            put(p, "%s_%s", pairs[i].name, index == pairs[i].index ? "lo" : "hi");
        } else {
            put(p, "%s", pairs[i].name);
        }
        return;
    }
    if (index == SIM_M0) {
        put(p, "m0");
        return;
    }
    const bool trap = index >= SIM_TTMP0 && index < SIM_M0;
    const char *name = trap ? "ttmp" : "s";
    if (trap) index -= SIM_TTMP0;
    if (count == 1) {
        put(p, "%s%u", name, index);
    } else {
        put(p, "%s[%u:%u]", name, index, index + count - 1);
    }
}

static void put_vector(struct printer *p, char file, unsigned index, unsigned count) {
    if (count == 1) {
        put(p, "%c%u", file, index);
    } else {
        put(p, "%c[%u:%u]", file, index, index + count - 1);
    }
}

static void put_constant(struct printer *p, unsigned code, unsigned element) {
    static const char *const floats[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"};
    if (code == 248 && element == 64) {
        put(p, "0.15915494309189532"); // 1 / (2 pi)
    } else if (code >= 240) {
        put(p, "%s", floats[code - 240]);
    } else {
        put(p, "%d", code <= 192 ? (int)code - 128 : 192 - (int)code);
    }
}

static void put_special(struct printer *p, unsigned code) {
    static const struct {
        uint8_t code;
        const char *name;
    } names[] = {{SIM_SHARED_BASE, "src_shared_base"},
                 {SIM_SHARED_LIMIT, "src_shared_limit"},
                 {SIM_PRIVATE_BASE, "src_private_base"},
                 {SIM_PRIVATE_LIMIT, "src_private_limit"},
                 {SIM_POPS_EXITING_WAVE_ID, "src_pops_exiting_wave_id"},
                 {SIM_VCCZ, "src_vccz"},
                 {SIM_EXECZ, "src_execz"},
                 {SIM_SCC, "src_scc"},
                 {SIM_LDS_DIRECT, "src_lds_direct"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) put(p, "%s", names[i].name);
}

// A literal whose value is also an inline constant is printed as lit(), or the assembler would choose the constant.
static void put_literal(struct printer *p, uint32_t word, const struct sim_operand *operand) {
    if (operand->bits == 16 && operand->type <= SIM_U && word >= 0xffff8000) {
        put(p, "lit(%d)", (int)word); // compilers extend the sign, and only a negative number assembles to that
        return;
    }
    static const uint32_t floats[] = {0x3800,     0x3c00,     0x4000,     0x4400,     0x3118,     0x3f000000,
                                      0x3f800000, 0x40000000, 0x40800000, 0x3e22f983, 0x3fe00000, 0x3ff00000,
                                      0x40000000, 0x40100000, 0x3f00,     0x3f80,     0x4080,     0x3e22};
    bool inlinable = word <= 64 || word >= 0xfffffff0 || (word >= 0xfff0 && word <= 0xffff);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        const uint32_t sign = floats[i] > 0xffff ? 0x80000000 : 0x8000;
        inlinable |= word == floats[i] || word == (floats[i] | sign);
    }
    put(p, inlinable ? "lit(0x%x)" : "0x%x", word);
}

static void put_operand(struct printer *p, const struct sim_operand *operand) {
    const unsigned count = (operand->bits + 31u) / 32u;
    const bool number = operand->kind == SIM_CONST || operand->kind == SIM_LITERAL;
    const bool neg = operand->neg && (p->inst->format != SIM_VOP3P || has(p, SIM_FLAG_MIX));
    if (neg) put(p, number && !operand->abs ? "neg(" : "-");
    if (operand->abs) put(p, "|");
    if (operand->sext) put(p, "sext(");
    switch ((enum sim_operand_kind)operand->kind) {
    case SIM_SGPR:
        put_sgpr(p, operand->index, count);
        break;
    case SIM_VGPR:
        put_vector(p, 'v', operand->index, count);
        break;
    case SIM_AGPR:
        put_vector(p, 'a', operand->index, count);
        break;
    case SIM_CONST:
        put_constant(p, operand->index, operand->bits);
        break;
    case SIM_LITERAL:
        put_literal(p, operand->literal, operand);
        break;
    case SIM_SPECIAL:
        put_special(p, operand->index);
        break;
    case SIM_ABSENT:
        break;
    }
    if (operand->sext) put(p, ")");
    if (operand->abs) put(p, "|");
    if (neg && number && !operand->abs) put(p, ")");
}

static void put_hwreg(struct printer *p, unsigned code) {
    static const char *const names[] = {
        [1] = "HW_REG_MODE",      [2] = "HW_REG_STATUS",    [3] = "HW_REG_TRAPSTS", [4] = "HW_REG_HW_ID",
        [5] = "HW_REG_GPR_ALLOC", [6] = "HW_REG_LDS_ALLOC", [7] = "HW_REG_IB_STS"};
    const unsigned id = code & 63, offset = code >> 6 & 31, width = (code >> 11) + 1;
    if (id < sizeof names / sizeof *names && names[id]) {
        put(p, "hwreg(%s, %u, %u)", names[id], offset, width);
    } else {
        put(p, "hwreg(%u, %u, %u)", id, offset, width);
    }
}

static void put_waitcnt(struct printer *p, unsigned code) {
    const unsigned vm = (code & 15) | (code >> 14 & 3) << 4, exp = code >> 4 & 7, lgkm = code >> 8 & 15;
    if (code & 0x3080) {
        put(p, "0x%x", code); // counters with bits that mean nothing
        return;
    }
    put(p, "vmcnt(%u) expcnt(%u) lgkmcnt(%u)", vm, exp, lgkm);
}

static void put_immediate(struct printer *p, enum sim_source how) {
    const unsigned value = (uint16_t)p->inst->imm;
    if (how == SIM_FROM_IMM_OPTIONAL && value == 0) return;
    separate(p);
    switch (how) {
    case SIM_FROM_IMM_HWREG:
        put_hwreg(p, value);
        break;
    case SIM_FROM_IMM_WAITCNT:
        put_waitcnt(p, value);
        break;
    case SIM_FROM_IMM_BRANCH:
    case SIM_FROM_IMM_OPTIONAL:
    case SIM_FROM_IMM_PROBE:
        put(p, "%u", value);
        break;
    default:
        put(p, value < 10 ? "%u" : "0x%x", value);
        break;
    }
}

static void put_fields(struct printer *p) {
    const struct sim_row *row = p->inst->row;
    for (unsigned i = 0; i < row->fields; i++) {
        const struct sim_field *field = &row->field[i];
        if (field->slot == SIM_IMM) {
            put_immediate(p, (enum sim_source)field->source);
            continue;
        }
        const struct sim_operand *operand = &p->inst->op[field->slot];
        if (operand->kind == SIM_ABSENT) continue;
        separate(p);
        put_operand(p, operand);
    }
}

// Modifiers

static void put_bits(struct printer *p, const char *name, const bool *values, unsigned count) {
    put(p, " %s:[", name);
    for (unsigned i = 0; i < count; i++) put(p, i ? ",%d" : "%d", values[i]);
    put(p, "]");
}

static unsigned sources(const struct sim_inst *inst) {
    unsigned count = 0;
    for (unsigned i = 0; i < inst->row->fields; i++)
        count += inst->row->field[i].slot >= SIM_SRC0 && inst->row->field[i].slot <= SIM_SRC2;
    return count;
}

static void put_clamp_and_omod(struct printer *p) {
    static const char *const omod[] = {"", " mul:2", " mul:4", " div:2"};
    if (p->inst->clamp) put(p, " clamp");
    put(p, "%s", omod[p->inst->omod]);
}

static void put_vop3(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    if (has(p, SIM_FLAG_BITOP3) && inst->bitop3)
        put(p, inst->bitop3 < 10 ? " bitop3:%u" : " bitop3:0x%x", inst->bitop3);
    if (has(p, SIM_FLAG_OP_SEL | SIM_FLAG_OP_SEL4)) {
        const unsigned count = has(p, SIM_FLAG_OP_SEL4) ? 3 : sources(inst);
        bool op_sel[4];
        bool any = false;
        for (unsigned i = 0; i <= count; i++) {
            op_sel[i] = inst->op[i < count ? SIM_SRC0 + i : SIM_DST].op_sel;
            any |= op_sel[i];
        }
        if (any) put_bits(p, "op_sel", op_sel, count + 1);
    }
    if (inst->bound_ctrl) put(p, " bound_ctrl:1");
    if (inst->fi) put(p, " fi:1");
    put_clamp_and_omod(p);
}

static void put_packed(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    const unsigned count = sources(inst);
    bool op_sel[3], op_sel_hi[3], neg[3], neg_hi[3];
    bool any[4] = {false};
    for (unsigned i = 0; i < count; i++) {
        const struct sim_operand *operand = &inst->op[SIM_SRC0 + i];
        any[0] |= op_sel[i] = operand->op_sel;
        op_sel_hi[i] = operand->op_sel_hi;
        any[1] |= operand->op_sel_hi == has(p, SIM_FLAG_MIX);
        any[2] |= neg[i] = operand->neg;
        any[3] |= neg_hi[i] = operand->neg_hi;
    }
    if (any[0]) put_bits(p, "op_sel", op_sel, count);
    if (any[1]) put_bits(p, "op_sel_hi", op_sel_hi, count);
    if (any[2] && !has(p, SIM_FLAG_MIX)) put_bits(p, "neg_lo", neg, count);
    if (any[3]) put_bits(p, "neg_hi", neg_hi, count);
    if (inst->clamp) put(p, " clamp");
}

static void put_matrix(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    if (has(p, SIM_FLAG_SCALED)) {
        const bool op_sel[3] = {inst->op[SIM_SCALE0].op_sel, inst->op[SIM_SCALE1].op_sel};
        const bool op_sel_hi[3] = {inst->op[SIM_SCALE0].op_sel_hi, inst->op[SIM_SCALE1].op_sel_hi};
        if (op_sel[0] || op_sel[1]) put_bits(p, "op_sel", op_sel, 3);
        put_bits(p, "op_sel_hi", op_sel_hi, 3);
    }
    if (inst->cbsz) put(p, " cbsz:%u", inst->cbsz);
    if (inst->abid) put(p, " abid:%u", inst->abid);
    if (inst->blgp == 0) return;
    const bool f64 = inst->op[SIM_DST].type == SIM_F && inst->row->field[0].element == 64;
    if (f64 && inst->arch != SIM_GFX90A) {
        const bool neg[3] = {inst->blgp & 1, inst->blgp >> 1 & 1, inst->blgp >> 2 & 1};
        put_bits(p, "neg", neg, 3);
    } else {
        put(p, " blgp:%u", inst->blgp);
    }
}

static void put_sdwa(struct printer *p) {
    static const char *const sel[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
    static const char *const unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
    const struct sim_inst *inst = p->inst;
    put_clamp_and_omod(p);
    if (inst->row->format != SIM_VOPC && !has(p, SIM_FLAG_FP8))
        put(p, " dst_sel:%s dst_unused:%s", sel[inst->op[SIM_DST].sel], unused[inst->dst_unused]);
    put(p, " src0_sel:%s", sel[inst->op[SIM_SRC0].sel]);
    if (inst->row->format != SIM_VOP1) put(p, " src1_sel:%s", sel[inst->op[SIM_SRC1].sel]);
}

static void put_dpp(struct printer *p) {
    const unsigned ctrl = p->inst->dpp_ctrl, lanes = ctrl & 15;
    switch (ctrl >> 4) {
    case 0x10:
        put(p, " row_shl:%u", lanes);
        break;
    case 0x11:
        put(p, " row_shr:%u", lanes);
        break;
    case 0x12:
        put(p, " row_ror:%u", lanes);
        break;
    case 0x13:
        put(p, " wave_%s:1", lanes == 0 ? "shl" : lanes == 4 ? "rol" : lanes == 8 ? "shr" : "ror");
        break;
    case 0x14:
        put(p, lanes == 0   ? " row_mirror"
               : lanes == 1 ? " row_half_mirror"
               : lanes == 2 ? " row_bcast:15"
                            : " row_bcast:31");
        break;
    case 0x15:
        put(p, " row_newbcast:%u", lanes);
        break;
    default:
        put(p, " quad_perm:[%u,%u,%u,%u]", ctrl & 3, ctrl >> 2 & 3, ctrl >> 4 & 3, ctrl >> 6 & 3);
        break;
    }
    put(p, " row_mask:0x%x bank_mask:0x%x", p->inst->row_mask, p->inst->bank_mask);
    if (p->inst->bound_ctrl) put(p, " bound_ctrl:1");
}

// Memory

static void put_cache_bits(struct printer *p) {
    const bool old = p->inst->arch == SIM_GFX90A || p->inst->format == SIM_SMEM;
    if (p->inst->sc0) put(p, old ? " glc" : " sc0");
    if (p->inst->nt) put(p, old ? " slc" : " nt");
    if (p->inst->sc1) put(p, old ? " scc" : " sc1");
}

static void put_smem(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    const struct sim_operand *soffset = &inst->op[SIM_OFFSET];
    if (soffset->kind != SIM_ABSENT) {
        separate(p);
        put_operand(p, soffset);
        if (inst->has_offset) put(p, " offset:0x%x", (unsigned)inst->offset);
    } else if (inst->has_offset) {
        separate(p);
        put(p, inst->offset < 0 ? "-0x%x" : "0x%x",
            inst->offset < 0 ? -(unsigned)inst->offset : (unsigned)inst->offset);
    }
    put_cache_bits(p);
    if (inst->nv) put(p, " nv");
}

static void put_ds(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    if (has(p, SIM_FLAG_PAIR)) {
        if (inst->offset) put(p, " offset0:%d", inst->offset);
        if (inst->offset1) put(p, " offset1:%u", inst->offset1);
    } else if (inst->offset) {
        put(p, " offset:%d", inst->offset);
    }
    if (inst->gds) put(p, " gds");
}

// Prints an operand, or "off" where it is absent.
static void put_or_off(struct printer *p, enum sim_slot slot) {
    separate(p);
    if (p->inst->op[slot].kind == SIM_ABSENT) {
        put(p, "off");
    } else {
        put_operand(p, &p->inst->op[slot]);
    }
}

static void put_if_there(struct printer *p, enum sim_slot slot) {
    if (p->inst->op[slot].kind != SIM_ABSENT) put_or_off(p, slot);
}

static void put_buffer(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    if (!has(p, SIM_FLAG_BARE)) {
        put_if_there(p, inst->op[SIM_DATA].kind != SIM_ABSENT ? SIM_DATA : SIM_DST);
        put_or_off(p, SIM_ADDR);
        put_or_off(p, SIM_BASE);
        put_or_off(p, SIM_OFFSET);
        if (inst->format == SIM_MTBUF) put(p, " format:%u", inst->dfmt | inst->nfmt << 4);
        if (inst->idxen) put(p, " idxen");
        if (inst->offen) put(p, " offen");
        if (inst->offset) put(p, " offset:%d", inst->offset);
    }
    if (!has(p, SIM_FLAG_BARE) || inst->arch != SIM_GFX90A) put_cache_bits(p); // gfx90a's assembler knows none there
    if (inst->lds) put(p, " lds");
}

static void put_flat(struct printer *p) {
    const struct sim_inst *inst = p->inst;
    put_if_there(p, SIM_DST);
    put_or_off(p, SIM_ADDR);
    put_if_there(p, SIM_DATA);
    if (inst->format != SIM_FLAT) put_or_off(p, SIM_BASE);
    if (inst->offset) put(p, " offset:%d", inst->offset);
    put_cache_bits(p);
}

// The whole instruction

static const char *suffix(const struct sim_inst *inst) {
    const unsigned home = inst->row->format;
    if (inst->format == SIM_SDWA) return "_sdwa";
    if (inst->format == SIM_DPP) return "_dpp";
    if (home != SIM_VOP1 && home != SIM_VOP2 && home != SIM_VOPC) return "";
    if (inst->format == SIM_VOP3) return "_e64";
    return inst->row->flags & SIM_FLAG_VOP3 && inst->row->fields ? "_e32" : "";
}

size_t tessera_sim_print(const struct sim_inst *inst, char *text, size_t size) {
    struct printer printer = {.inst = inst, .text = text, .size = size, .first = true}, *p = &printer;
    put(p, "%s%s", inst->row->mnemonic, suffix(inst));
    switch ((enum sim_format)inst->format) {
    case SIM_MUBUF:
    case SIM_MTBUF:
        put_buffer(p);
        break;
    case SIM_FLAT:
    case SIM_GLOBAL:
    case SIM_SCRATCH:
        put_flat(p);
        break;
    default:
        put_fields(p);
        break;
    }
    switch ((enum sim_format)inst->format) {
    case SIM_VOP3:
        put_vop3(p);
        break;
    case SIM_VOP3P:
        put_packed(p);
        break;
    case SIM_MAI:
        put_matrix(p);
        break;
    case SIM_SDWA:
        put_sdwa(p);
        break;
    case SIM_DPP:
        put_dpp(p);
        break;
    case SIM_SMEM:
        put_smem(p);
        break;
    case SIM_DS:
        put_ds(p);
        break;
    default:
        break;
    }
    return p->length;
}
