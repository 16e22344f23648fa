// SPDX-License-Identifier: MIT
// The registers that instructions read and write. The tables list operands; implicit registers are listed here, from
// AMD's "Instinct MI300" ISA, chapters "Scalar ALU Operations", "Vector ALU Operations" and "Data Share".
#include "effects.h"

#include <string.h>

#include "vector.h"

static bool begins(const struct sim_inst *inst, const char *prefix) {
    return strncmp(inst->row->mnemonic, prefix, strlen(prefix)) == 0;
}

static bool contains(const struct sim_inst *inst, const char *part) { return strstr(inst->row->mnemonic, part); }

static bool begins_any(const struct sim_inst *inst, const char *const *prefixes) {
    while (*prefixes)
        if (begins(inst, *prefixes++)) return true;
    return false;
}

static void add(struct sim_effects *effects, unsigned slot, enum sim_file file, unsigned first, unsigned count,
                unsigned access) {
    effects->list[effects->count++] =
        (struct sim_effect){(uint8_t)slot, (uint8_t)file, (uint8_t)access, (uint8_t)count, (uint16_t)first};
}

static void add_implicit(struct sim_effects *effects, unsigned first, unsigned count, unsigned access) {
    add(effects, SIM_SLOTS, SIM_FILE_SCALAR, first, count, access);
}

// ---- units

static enum sim_unit find_unit(const struct sim_inst *inst) {
    switch (inst->format) {
    case SIM_SMEM:
        return SIM_UNIT_SCALAR_MEMORY;
    case SIM_MAI:
        return SIM_UNIT_MATRIX;
    case SIM_DS:
        return SIM_UNIT_LDS;
    case SIM_FLAT:
        return SIM_UNIT_FLAT;
    case SIM_MUBUF:
    case SIM_MTBUF:
    case SIM_GLOBAL:
    case SIM_SCRATCH:
        return SIM_UNIT_MEMORY;
    default:
        return inst->format >= SIM_VOP1 && inst->format <= SIM_DPP ? SIM_UNIT_VALU : SIM_UNIT_SCALAR;
    }
}

static bool is_vector(enum sim_unit unit) { return unit >= SIM_UNIT_VALU; }

// ---- operands

// Whether some bits of the destination stay as they were.
static bool keeps_bits(const struct sim_code *code) {
    const struct sim_inst *inst = &code->inst;
    if (inst->row->op == SIM_OP_v_writelane_b32 || contains(inst, "_d16")) return true;
    if (begins(inst, "v_fma_mixlo") || begins(inst, "v_fma_mixhi")) return true;
    if (begins(inst, "v_cvt_scalef32_") || begins(inst, "v_cvt_sr_"))
        return inst->op[SIM_DST].bits <= 16 || contains(inst, "_sr_fp8") || contains(inst, "_sr_bf8");
    if (find_unit(inst) != SIM_UNIT_VALU || !code->lanes) return false;
    if (inst->format == SIM_SDWA) return inst->op[SIM_DST].sel != SIM_DWORD && inst->dst_unused == SIM_UNUSED_PRESERVE;
    return inst->op[SIM_DST].bits <= 16 && (inst->op[SIM_DST].op_sel || code->detail & SIM_KEEP_HIGH);
}

// Whether the destination is a source too.
static bool accumulates(const struct sim_code *code) {
    static const char *const names[] = {"s_cmov", "s_bitset", "s_addk", "s_mulk", "v_smfmac", NULL};
    const struct sim_inst *inst = &code->inst;
    if (begins_any(inst, names)) return true;
    return find_unit(inst) == SIM_UNIT_VALU && code->lanes && code->detail & SIM_ACCUMULATE &&
           inst->op[SIM_SRC2].kind == SIM_ABSENT;
}

static bool is_swap(const struct sim_inst *inst) { return begins(inst, "v_swap") || begins(inst, "v_permlane"); }

static unsigned access_of(const struct sim_code *code, unsigned slot) {
    const struct sim_inst *inst = &code->inst;
    const bool result = slot == SIM_DST || slot == SIM_SDST;
    unsigned access = result ? SIM_WRITES : SIM_READS;
    if (slot == SIM_DST && accumulates(code)) access |= SIM_READS;
    if (slot == SIM_DATA && inst->format == SIM_SMEM && inst->row->flags & SIM_FLAG_ATOMIC && inst->sc0)
        access |= SIM_WRITES; // the old value replaces the data
    if (slot == SIM_DST && keeps_bits(code)) access |= SIM_PARTLY;
    if (is_swap(inst) && (slot == SIM_DST || slot == SIM_SRC0)) access = SIM_READS | SIM_WRITES;
    if (inst->format == SIM_MAI || begins(inst, "v_permlane") || contains(inst, "lane_b32")) access |= SIM_ALL_LANES;
    return access;
}

static void add_operand(struct sim_effects *effects, const struct sim_code *code, unsigned slot) {
    const struct sim_operand *operand = &code->inst.op[slot];
    const unsigned count = (operand->bits + 31u) / 32u, access = access_of(code, slot);
    switch (operand->kind) {
    case SIM_SGPR:
        add(effects, slot, SIM_FILE_SCALAR, operand->index, count, access & (SIM_READS | SIM_WRITES));
        break;
    case SIM_VGPR:
        add(effects, slot, SIM_FILE_VECTOR, operand->index, count, access);
        break;
    case SIM_AGPR:
        add(effects, slot, SIM_FILE_VECTOR, SIM_VGPRS + operand->index, count, access);
        break;
    case SIM_SPECIAL:
        if (operand->index == SIM_SCC) add(effects, slot, SIM_FILE_SCC, 0, 1, SIM_READS);
        if (operand->index == SIM_VCCZ) add(effects, slot, SIM_FILE_SCALAR, SIM_VCC, 2, SIM_READS);
        if (operand->index == SIM_EXECZ) add(effects, slot, SIM_FILE_SCALAR, SIM_EXEC, 2, SIM_READS);
        if (operand->index == SIM_LDS_DIRECT) add(effects, slot, SIM_FILE_SCALAR, SIM_M0, 1, SIM_READS);
        break;
    default:
        break;
    }
}

// ---- implicit registers

static unsigned scc_access(const struct sim_inst *inst) {
    static const char *const readers[] = {"s_cselect", "s_cmov", "s_cbranch_scc", NULL};
    static const char *const both[] = {"s_addc", "s_subb", NULL};
    static const char *const sop1_writers[] = {"s_not", "s_wqm", "s_bcnt", "s_quadmask", "s_abs", NULL};
    static const char *const sop2_others[] = {"s_bfm", "s_mul", "s_pack", "s_cbranch", "s_rfe", NULL};
    static const char *const sopc_others[] = {"s_setvskip", "s_set_gpr", NULL};
    static const char *const sopk_writers[] = {"s_cmpk", "s_addk", NULL};
    if (begins_any(inst, readers)) return SIM_READS;
    if (begins_any(inst, both)) return SIM_READS | SIM_WRITES;
    switch (inst->format) {
    case SIM_SOP1:
        return begins_any(inst, sop1_writers) || contains(inst, "saveexec") || contains(inst, "wrexec") ? SIM_WRITES
                                                                                                        : 0;
    case SIM_SOP2:
        return begins_any(inst, sop2_others) ? 0 : SIM_WRITES;
    case SIM_SOPC:
        return begins_any(inst, sopc_others) ? 0 : SIM_WRITES;
    case SIM_SOPK:
        return begins_any(inst, sopk_writers) ? SIM_WRITES : 0;
    default:
        return 0;
    }
}

static bool forks(const struct sim_inst *inst) { return contains(inst, "_fork") || begins(inst, "s_cbranch_join"); }

static unsigned exec_access(const struct sim_inst *inst, enum sim_unit unit) {
    if (forks(inst)) return SIM_READS | SIM_WRITES;
    if (begins(inst, "s_cbranch_exec")) return SIM_READS;
    if (contains(inst, "saveexec") || contains(inst, "wrexec")) return SIM_READS | SIM_WRITES;
    if (begins(inst, "v_cmpx")) return SIM_READS | SIM_WRITES;
    if (begins(inst, "v_readlane") || begins(inst, "v_writelane")) return 0;
    return is_vector(unit) && unit != SIM_UNIT_MATRIX && inst->row->fields ? SIM_READS : 0;
}

static unsigned m0_access(const struct sim_inst *inst, bool to_lds) {
    static const char *const readers[] = {"s_movrel",   "s_sendmsg", "s_ttracedata", "ds_gws", "ds_append",
                                          "ds_consume", NULL};
    if (begins(inst, "s_set_gpr_idx") && !begins(inst, "s_set_gpr_idx_off")) return SIM_READS | SIM_WRITES;
    return to_lds || begins_any(inst, readers) || contains(inst, "addtid") ? SIM_READS : 0;
}

static unsigned mode_access(const struct sim_inst *inst) {
    if (begins(inst, "s_getreg")) return SIM_READS;
    return forks(inst) || begins(inst, "s_setreg") || begins(inst, "s_set_gpr_idx") || begins(inst, "s_setvskip")
               ? SIM_READS | SIM_WRITES
               : 0;
}

static void add_implicit_registers(struct sim_effects *effects, const struct sim_inst *inst) {
    const unsigned scc = scc_access(inst), exec = exec_access(inst, (enum sim_unit)effects->unit);
    const unsigned m0 = m0_access(inst, effects->to_lds), mode = mode_access(inst);
    if (scc) add(effects, SIM_SLOTS, SIM_FILE_SCC, 0, 1, scc);
    if (exec) add_implicit(effects, SIM_EXEC, 2, exec);
    if (m0) add_implicit(effects, SIM_M0, 1, m0);
    if (mode) add(effects, SIM_SLOTS, SIM_FILE_MODE, 0, 1, mode);
    if (begins(inst, "v_div_fmas") || begins(inst, "s_cbranch_vcc")) add_implicit(effects, SIM_VCC, 2, SIM_READS);
    if (inst->format == SIM_SCRATCH && inst->arch == SIM_GFX90A) add_implicit(effects, SIM_FLAT_SCRATCH, 2, SIM_READS);
}

void tessera_sim_find_effects(const struct sim_code *code, struct sim_effects *effects) {
    const struct sim_inst *inst = &code->inst;
    effects->count = 0;
    effects->unit = (uint8_t)find_unit(inst);
    effects->to_lds = inst->lds || inst->row->flags & SIM_FLAG_LDS_ADDRESS;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) add_operand(effects, code, slot);
    add_implicit_registers(effects, inst);
}

// ---- effects that depend on the wave's state

// Whether VGPR indexing moves the instruction's operands: arithmetic, and v_readlane and the like.
static bool is_indexed(const struct sim_code *code) {
    return code->lanes || begins(&code->inst, "v_read") || begins(&code->inst, "v_writelane");
}

unsigned tessera_sim_effect_moved(const struct sim_wave *wave, const struct sim_code *code,
                                  const struct sim_effect *effect) {
    static const int8_t uses[SIM_SLOTS] = {[SIM_SRC0] = 1, [SIM_SRC1] = 2, [SIM_SRC2] = 3, [SIM_DST] = 4};
    if (!is_indexed(code)) return effect->first;
    const int use = uses[effect->slot] - 1;
    if (use < 0 || !(wave->sgpr[SIM_M0] >> (12 + use) & 1)) return effect->first;
    return effect->first + (wave->sgpr[SIM_M0] & 0xff);
}

uint64_t tessera_sim_effect_lanes(const struct sim_wave *wave, const struct sim_code *code,
                                  const struct sim_effect *effect) {
    const struct sim_inst *inst = &code->inst;
    const uint64_t exec = sim_exec(wave);
    if (!(effect->access & SIM_ALL_LANES)) return exec;
    if (inst->row->op == SIM_OP_v_readfirstlane_b32) return exec ? exec & -exec : 1;
    if (inst->row->op != SIM_OP_v_readlane_b32 && inst->row->op != SIM_OP_v_writelane_b32) return UINT64_MAX;
    const struct sim_operand *lane = &inst->op[SIM_SRC1];
    return UINT64_C(1) << ((lane->kind == SIM_SGPR ? wave->sgpr[lane->index] : (uint32_t)lane->value) & 63);
}
