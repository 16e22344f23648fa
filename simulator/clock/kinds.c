// SPDX-License-Identifier: MIT
#include "kinds.h"

#include <string.h>

static bool begins_any(const struct sim_inst *inst, const char *const *prefixes) {
    for (; *prefixes; prefixes++)
        if (strncmp(inst->row->mnemonic, *prefixes, strlen(*prefixes)) == 0) return true;
    return false;
}

static enum sim_kind scalar_kind(const struct sim_inst *inst) {
    switch (inst->row->op) {
    case SIM_OP_s_waitcnt:
        return SIM_KIND_WAIT;
    case SIM_OP_s_nop:
    case SIM_OP_s_sleep:
        return SIM_KIND_SLEEP;
    case SIM_OP_s_setprio:
        return SIM_KIND_PRIORITY;
    case SIM_OP_s_barrier:
        return SIM_KIND_BARRIER;
    case SIM_OP_s_endpgm:
        return SIM_KIND_END;
    default:
        return SIM_KIND_SCALAR;
    }
}

static enum sim_kind valu_kind(const struct sim_inst *inst) {
    static const char *const transcendental[] = {"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                                 "v_sqrt_", "v_sin_", "v_cos_", NULL};
    // As in LLVM's isNeverCoissue; pyhip measured v_pk_mul_f32 and v_pk_add_f32.
    static const char *const packed[] = {"v_pk_", "v_dot", "v_mqsad_", "v_qsad_pk_", NULL};
    static const char *const multiplies[] = {"v_mul_lo_u32",  "v_mul_hi_u32",  "v_mul_hi_i32",
                                             "v_mad_u64_u32", "v_mad_i64_i32", NULL};
    // Those that LLVM calls WriteFloatCvt.
    static const char *const converts[] = {"v_cvt_f32_i32",
                                           "v_cvt_f32_u32",
                                           "v_cvt_u32_f32",
                                           "v_cvt_i32_f32",
                                           "v_cvt_f16_f32",
                                           "v_cvt_f32_f16",
                                           "v_cvt_rpi_",
                                           "v_cvt_flr_",
                                           "v_cvt_off_f32_",
                                           "v_cvt_f32_fp8",
                                           "v_cvt_f32_bf8",
                                           "v_cvt_pk_f32_",
                                           "v_cvt_pk_fp8_f32",
                                           "v_cvt_pk_bf8_f32",
                                           "v_cvt_sr_fp8_f32",
                                           "v_cvt_sr_bf8_f32",
                                           NULL};
    if (begins_any(inst, transcendental)) return SIM_KIND_TRANSCENDENTAL;
    if (begins_any(inst, multiplies)) return SIM_KIND_MULTIPLY;
    if (begins_any(inst, converts)) return SIM_KIND_CONVERT;
    return begins_any(inst, packed) ? SIM_KIND_PACKED : SIM_KIND_VALU;
}

static enum sim_kind find_kind(const struct sim_code *code) {
    switch (code->effects.unit) {
    case SIM_UNIT_SCALAR_MEMORY:
        return SIM_KIND_SCALAR_MEMORY;
    case SIM_UNIT_VALU:
        return valu_kind(&code->inst);
    case SIM_UNIT_MATRIX:
        return SIM_KIND_MATRIX;
    case SIM_UNIT_LDS:
        return SIM_KIND_LDS;
    case SIM_UNIT_MEMORY:
    case SIM_UNIT_FLAT:
        return code->inst.op[SIM_DATA].kind != SIM_ABSENT && code->inst.op[SIM_DST].kind == SIM_ABSENT ? SIM_KIND_STORE
                                                                                                       : SIM_KIND_LOAD;
    default:
        return scalar_kind(&code->inst);
    }
}

void tessera_sim_find_kind(struct sim_code *code) { code->kind = (uint8_t)find_kind(code); }

char tessera_sim_letter(const struct sim_code *code) {
    static const char letters[SIM_KINDS + 1] = "ssvPvcT|dmmwnsBs";
    if (code->kind == SIM_KIND_VALU && strncmp(code->inst.row->mnemonic, "v_cvt", 5) == 0) return 'c';
    if (code->kind == SIM_KIND_SCALAR && strstr(code->inst.row->mnemonic, "branch")) return 'b';
    return letters[code->kind];
}
