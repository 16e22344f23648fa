// SPDX-License-Identifier: MIT
// Wait states that software must keep between two instructions, because hardware does not wait by itself.
//
// Sources: AMD's ISA documents of "Instinct MI200" (CDNA2), "Instinct MI300" (CDNA3) and "CDNA4", section "Manually
// Inserted Wait States (NOPs)", and LLVM's GCNHazardRecognizer.cpp; hazards.md names those of each rule. The passes of
// matrix instructions agree with the s_nops that clang 22 puts before a store of each one's result.
//
// The last rules of the table are those that LLVM keeps and hardware does not need: the sanitizer ignores them,
// tessera_sim_padding names them.
//
// Hardware waits by itself in all other cases of VALU before VALU, VALU or SALU before a memory operation, and SALU
// before SALU: the table leaves them out. hazards.md lists the rules of documents that it leaves out for other reasons.
#include "hazards.h"

#include <stdio.h>
#include <string.h>

#include "code_object/module.h"
#include "execute/effects.h"
#include "sanitize.h"

// The kinds of instructions that rules speak of; an instruction may be of several.
enum kind {
    VALU = 1 << 0, // every instruction of the vector ALU except matrix instructions
    DOT = 1 << 1,
    TRANS = 1 << 2,   // transcendental
    PARTIAL = 1 << 3, // writes only some bits of a register: SDWA, op_sel of the result
    XDL = 1 << 4,     // most matrix instructions; on gfx90a all except those on doubles
    SGEMM = 1 << 5,   // matrix instructions in single precision, from gfx942 on
    DGEMM_4 = 1 << 6, // matrix instructions on doubles, 4x4x4
    DGEMM_16 = 1 << 7,
    TWO_PASS = 1 << 8,
    DPP = 1 << 9,
    READ_LANE = 1 << 10, // v_readlane and v_readfirstlane
    WRITE_LANE = 1 << 11,
    DIV_FMAS = 1 << 12,
    FMA_64 = 1 << 13,
    LANE_SWAP = 1 << 14,
    MEMORY = 1 << 15, // memory operations, FLAT among them
    LDS = 1 << 16,
    WIDE_STORE = 1 << 17, // stores of more than 64 bits; MUBUF only where no SGPR is its offset
    SALU = 1 << 18,
    SET_REGISTER = 1 << 19,
    GET_REGISTER = 1 << 20,
    TO_LDS = 1 << 21, // loads to LDS, and other instructions that read M0 late
    BUFFER_TO_LDS = 1 << 22,
    SET_SKIP = 1 << 23, // s_setreg of MODE.vskip
    SETVSKIP = 1 << 24, // s_setvskip
    GET_MODE = 1 << 25,
    PACKED = 1 << 26, // VOP3P with op_sel_hi of its first source
    SCALAR_MEMORY = 1 << 27,
};

enum {
    DGEMM = DGEMM_4 | DGEMM_16,
    MATRIX = XDL | SGEMM | DGEMM,
    VECTOR = VALU | MATRIX,
    OUTSIDE = MEMORY | LDS,
};

// How the second instruction must meet the first.
enum meeting {
    ALWAYS,
    READS_VECTOR,       // reads a VGPR or AGPR that the first instruction wrote
    READS_AB,           // reads it, but not as C
    READS_C,            // reads it as C, and C is not exactly the first one's result
    READS_SAME_C,       // reads it as C, and C is exactly the first one's result
    READS_OF_ANOTHER,   // reads it; left out: the same instruction as the first, reading it as C
    USES_VECTOR,        // reads it, or writes some of its bits
    READS_BEHIND_DGEMM, // reads it, and a matrix instruction on doubles was issued in between
    READS_SCALAR,       // reads an SGPR that the first wrote; VCC and M0 count as SGPRs
    READS_CONSTANT,     // reads it (EXEC counts too) as an operand that is the same for all lanes
    READS_CARRY,        // reads it as one bit for each lane: carry, v_cndmask
    READS_LANE,         // reads it as the number of a lane
    READS_VCC,
    READS_EXEC,
    READS_ZERO_FLAG, // reads VCCZ or EXECZ
    WRITES_VECTOR,
    TOUCHES_VECTOR,    // reads or writes a VGPR that the first wrote
    WRITES_OF_ANOTHER, // writes it; left out: the same instruction as the first
    WRITES_C,          // writes what the first reads as C
    WRITES_DATA,       // what the first stores
    SAME_REGISTER,     // names the same hardware register
    SAME_CLAUSE,       // both are of scalar memory, or neither is
};

// The wait states of a rule for each architecture; 0: the architecture has no such rule. PASSES: the passes of the
// first instruction plus CONSTANT. LONGER: one more where it has more than two passes.
enum { PASSES = 0x80, LONGER = 0x40, CONSTANT = 0x1f };
#define P(constant) (PASSES | ((constant) + 1))
#define L(constant) (PASSES | LONGER | ((constant) + 1))

static const struct rule {
    uint32_t first, second; // kinds
    uint8_t meeting;
    uint8_t states[SIM_ARCHS]; // gfx90a, gfx942, gfx950
    const char *text;
} rules[] = {
    // VALU and SALU
    {VALU, MEMORY, READS_SCALAR, {5, 5, 5}, "VALU writes an SGPR, memory operation reads it"},
    {VALU, DPP, READS_VECTOR, {2, 2, 2}, "VALU writes a VGPR, DPP reads it"},
    {VALU, DPP, READS_EXEC, {5, 5, 5}, "VALU writes EXEC, DPP"},
    {VALU, DIV_FMAS, READS_VCC, {4, 4, 4}, "VALU writes VCC, v_div_fmas reads it"},
    {VALU, VALU, READS_ZERO_FLAG, {5, 5, 5}, "VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ"},
    {VALU, VALU, READS_CONSTANT, {0, 2, 2}, "VALU writes an SGPR or EXEC, VALU reads it as a constant"},
    {VALU, READ_LANE | WRITE_LANE, READS_LANE, {4, 4, 4}, "VALU writes an SGPR, the number of a lane"},
    {VALU, READ_LANE, READS_VECTOR, {0, 1, 1}, "VALU writes a VGPR, v_readlane reads it"},
    {VALU, READ_LANE | WRITE_LANE, READS_EXEC, {0, 4, 4}, "VALU writes EXEC, v_readlane or v_writelane"},
    {TRANS, VALU, READS_VECTOR, {0, 1, 1}, "transcendental VALU writes a VGPR, other VALU reads it"},
    {PARTIAL, VECTOR, USES_VECTOR, {0, 1, 1}, "VALU writes part of a VGPR, VALU reads it or writes another part"},
    {VALU, LANE_SWAP, READS_VECTOR, {0, 0, 2}, "VALU writes a VGPR, v_permlane swaps it"},
    {VALU, LANE_SWAP, READS_EXEC, {0, 0, 4}, "VALU writes EXEC, v_permlane"},
    {WIDE_STORE, VECTOR, WRITES_DATA, {1, 2, 2}, "store of more than 64 bits, VALU writes its data"},
    {SALU, TO_LDS, READS_SCALAR, {1, 1, 1}, "SALU writes M0, read by what addresses with it"},
    {SET_REGISTER, SET_REGISTER | GET_REGISTER, SAME_REGISTER, {2, 2, 2}, "s_setreg of the same hardware register"},
    {SETVSKIP, GET_MODE, ALWAYS, {2, 2, 2}, "s_setvskip, s_getreg of MODE"},
    {SET_SKIP, VECTOR | OUTSIDE, ALWAYS, {2, 2, 2}, "s_setreg of MODE.vskip, vector instruction"},
    {DOT, VECTOR | OUTSIDE, READS_OF_ANOTHER, {3, 3, 3}, "dot product writes a VGPR, read by another instruction"},
    {DOT, VECTOR | OUTSIDE, WRITES_OF_ANOTHER, {3, 3, 3}, "dot product writes a VGPR, written by another instruction"},
    // VALU before a matrix instruction
    {VALU, MATRIX, READS_EXEC, {4, 4, 4}, "VALU writes EXEC, MFMA"},
    {VALU, MATRIX, READS_OF_ANOTHER, {2, 2, 2}, "VALU writes a VGPR, MFMA reads it"},
    // a matrix instruction before another one
    {DGEMM_4, DGEMM_4, READS_SAME_C, {4, 4, 4}, "DGEMM 4x4 writes a VGPR, DGEMM 4x4 reads it as the same C"},
    {TWO_PASS, MATRIX, READS_SAME_C, {0, 2, 2}, "MFMA of 2 passes writes a VGPR, MFMA reads it as the same C"},
    {DGEMM_4, SGEMM | DGEMM, READS_C, {4, 4, 4}, "DGEMM 4x4 writes a VGPR, MFMA reads it as C"},
    {DGEMM_16, SGEMM | DGEMM, READS_C, {9, 9, 17}, "DGEMM 16x16 writes a VGPR, MFMA reads it as C"},
    {XDL, XDL, READS_C, {P(0), P(1), P(2)}, "MFMA writes a VGPR, MFMA reads it as C"},
    {XDL, SGEMM | DGEMM, READS_C, {P(1), P(1), L(1)}, "MFMA writes a VGPR, MFMA of f32 or DGEMM reads it as C"},
    {SGEMM, SGEMM | DGEMM, READS_C, {0, P(0), P(0)}, "MFMA of f32 writes a VGPR, MFMA reads it as C"},
    {DGEMM_4, MATRIX, READS_AB, {6, 6, 6}, "DGEMM 4x4 writes a VGPR, MFMA reads it as A or B"},
    {DGEMM_16, MATRIX, READS_AB, {11, 11, 19}, "DGEMM 16x16 writes a VGPR, MFMA reads it as A or B"},
    {XDL, MATRIX, READS_AB, {P(3), P(3), L(3)}, "MFMA writes a VGPR, MFMA reads it as A or B"},
    {SGEMM, MATRIX, READS_AB, {0, P(2), P(2)}, "MFMA of f32 writes a VGPR, MFMA reads it as A or B"},
    // a matrix instruction before VALU, memory or LDS operations
    {DGEMM_4, VALU, READS_VECTOR, {6, 6, 6}, "DGEMM 4x4 writes a VGPR, VALU reads it"},
    {DGEMM_4, OUTSIDE, READS_VECTOR, {9, 9, 9}, "DGEMM 4x4 writes a VGPR, memory or LDS operation reads it"},
    {DGEMM_16, VALU, READS_VECTOR, {11, 11, 19}, "DGEMM 16x16 writes a VGPR, VALU reads it"},
    {DGEMM_16, OUTSIDE, READS_VECTOR, {18, 18, 18}, "DGEMM 16x16 writes a VGPR, memory or LDS operation reads it"},
    {XDL, VALU | OUTSIDE, READS_VECTOR, {P(3), P(3), L(3)}, "MFMA writes a VGPR, VALU, memory or LDS reads it"},
    {SGEMM, VALU | OUTSIDE, READS_VECTOR, {0, P(2), P(2)}, "MFMA of f32 writes a VGPR, VALU, memory or LDS reads it"},
    {DGEMM, FMA_64, ALWAYS, {2, 2, 2}, "DGEMM, v_fma_f64"},
    {VALU, OUTSIDE, READS_BEHIND_DGEMM, {2, 0, 0}, "VALU writes a VGPR, memory or LDS reads it behind a DGEMM"},
    {DGEMM_4, VALU | OUTSIDE, WRITES_VECTOR, {6, 6, 6}, "DGEMM 4x4 writes a VGPR, VALU or memory overwrites it"},
    {DGEMM_16, VALU | OUTSIDE, WRITES_VECTOR, {11, 11, 19}, "DGEMM 16x16 writes a VGPR, VALU or memory overwrites it"},
    {XDL, VALU | OUTSIDE, WRITES_VECTOR, {P(3), P(3), L(3)}, "MFMA writes a VGPR, VALU or memory overwrites it"},
    {SGEMM, VALU | OUTSIDE, WRITES_VECTOR, {0, P(2), P(2)}, "MFMA of f32 writes a VGPR, VALU or memory overwrites it"},
    {XDL, VALU | OUTSIDE, WRITES_C, {P(-1), P(-1), P(-1)}, "MFMA reads a VGPR as C, VALU or memory overwrites it"},
    // rules that LLVM keeps and hardware does not need
    {VALU, VALU, READS_CARRY, {0, 2, 2}, "VALU writes an SGPR, VALU reads it as a carry or as a choice of lanes"},
    {SALU, BUFFER_TO_LDS, READS_SCALAR, {1, 1, 1}, "SALU writes M0, buffer load to LDS"},
    {PARTIAL, VECTOR, TOUCHES_VECTOR, {0, 1, 1}, "VALU writes part of a VGPR, VALU overwrites all of it"},
    {PACKED, VECTOR, TOUCHES_VECTOR, {0, 1, 1}, "packed VALU writes a VGPR, VALU reads or overwrites it"},
    {VALU, DPP, WRITES_VECTOR, {2, 2, 2}, "VALU writes a VGPR, DPP overwrites it"},
    {MEMORY | SCALAR_MEMORY, MEMORY | SCALAR_MEMORY, SAME_CLAUSE, {1, 1, 1}, "memory operations side by side"},
};

// For each of the last rules, in order, why hardware does not need it; hazards.md has the evidence.
static const char *const reasons[] = {
    "AMD's tables ask for 0 where an SGPR is read as a carry, for 2 as a constant; LLVM makes no difference",
    "AMD's tables have stores, scratch and global only; its own kernels load right behind s_mov_b32 m0",
    "AMD's tables have what consumes the result only; LLVM's source says that it does too much here",
    "nothing is moved to other bits; LLVM takes op_sel_hi of the first source, the same bit, for op_sel of the result",
    "AMD's tables have what DPP reads; LLVM counts the lanes of the result that are kept as read",
    "where page faults are replayed (XNACK), what LLVM splits could not be run twice; there are none here",
};
enum { RULES = sizeof rules / sizeof *rules, NEEDED = RULES - sizeof reasons / sizeof *reasons };
enum { MOST_STATES = 20, MOST_STATES_OF_VALU = 5 };
_Static_assert(RULES < 64, "a set of rules is a word");

// ---- kinds

static bool begins(const struct sim_inst *inst, const char *prefix) {
    return strncmp(inst->row->mnemonic, prefix, strlen(prefix)) == 0;
}

static bool ends(const struct sim_inst *inst, const char *suffix) {
    const size_t length = strlen(inst->row->mnemonic), part = strlen(suffix);
    return length >= part && strcmp(inst->row->mnemonic + length - part, suffix) == 0;
}

static bool is_trans(const struct sim_inst *inst) {
    static const char *const names[] = {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(inst, names[i])) return true;
    return false;
}

// An FP4 result takes one byte of its register. LLVM keeps the wait state whichever byte that is.
static bool is_partial(const struct sim_inst *inst) {
    static const char *const bytes[] = {"_sr_fp8", "_sr_bf8"};
    if (inst->format == SIM_SDWA) return inst->op[SIM_DST].kind == SIM_VGPR && inst->op[SIM_DST].sel != SIM_DWORD;
    if (inst->format != SIM_VOP3) return false;
    if (inst->op[SIM_DST].op_sel || strstr(inst->row->mnemonic, "_pk_fp4_")) return true;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (strstr(inst->row->mnemonic, bytes[i])) return inst->op[SIM_SRC2].op_sel;
    return false;
}

static uint32_t valu_kinds(const struct sim_inst *inst) {
    uint32_t kinds = VALU;
    if (begins(inst, "v_dot")) kinds |= DOT;
    if (is_trans(inst)) kinds |= TRANS;
    if (is_partial(inst)) kinds |= PARTIAL;
    if (inst->format == SIM_DPP) kinds |= DPP;
    if (begins(inst, "v_readlane") || begins(inst, "v_readfirstlane")) kinds |= READ_LANE;
    if (begins(inst, "v_writelane")) kinds |= WRITE_LANE;
    if (begins(inst, "v_div_fmas")) kinds |= DIV_FMAS;
    if (begins(inst, "v_fma_f64") || begins(inst, "v_fmac_f64")) kinds |= FMA_64;
    if (begins(inst, "v_permlane")) kinds |= LANE_SWAP;
    if (inst->format == SIM_VOP3P && inst->op[SIM_SRC0].op_sel_hi) kinds |= PACKED;
    return kinds;
}

// Reads the shape out of a mnemonic such as v_mfma_f32_16x16x32_f16: rows, columns, depth.
static void read_shape(const struct sim_inst *inst, unsigned *rows, unsigned *depth) {
    unsigned columns;
    const char *at = strstr(inst->row->mnemonic, "32_");
    if (!at) at = strstr(inst->row->mnemonic, "64_");
    if (!at || sscanf(at + 3, "%ux%ux%u", rows, &columns, depth) != 3) *rows = *depth = 0;
}

static unsigned count_passes(const struct sim_inst *inst) {
    unsigned rows, depth;
    read_shape(inst, &rows, &depth);
    if (begins(inst, "v_mfma_f64")) return rows == 4 ? 4 : inst->arch == SIM_GFX950 ? 16 : 8;
    if (rows == 4) return 2;
    if (inst->arch == SIM_GFX90A) return rows == 16 ? 8 : 16;
    const unsigned least = rows == 16 ? 4 : 8;
    const bool fp8 = inst->row->flags & SIM_FLAG_F8F6F4 && (inst->cbsz < 2 || inst->blgp < 2);
    const bool shallow = depth <= 4 && !ends(inst, "_xf32");
    return fp8 || shallow ? 2 * least : least;
}

static uint32_t matrix_kinds(const struct sim_inst *inst, unsigned passes) {
    const uint32_t two = passes == 2 ? TWO_PASS : 0;
    if (begins(inst, "v_mfma_f64")) return passes == 4 ? DGEMM_4 : DGEMM_16;
    return two | (inst->arch != SIM_GFX90A && ends(inst, "_f32") ? SGEMM : XDL);
}

static uint32_t memory_kinds(const struct sim_inst *inst) {
    const bool flat = inst->format == SIM_FLAT || inst->format == SIM_GLOBAL || inst->format == SIM_SCRATCH;
    const bool wide = inst->op[SIM_DATA].kind != SIM_ABSENT && inst->op[SIM_DATA].bits > 64;
    return MEMORY | (wide && (flat || inst->op[SIM_OFFSET].kind != SIM_SGPR) ? WIDE_STORE : 0);
}

static uint32_t scalar_kinds(const struct sim_inst *inst) {
    enum { REGISTER = 63, MODE = 1, FIRST = 6, SIZE = 11, VSKIP = 28 };
    const unsigned first = (unsigned)inst->imm >> FIRST & 31, size = (unsigned)inst->imm >> SIZE & 31;
    const bool mode = ((unsigned)inst->imm & REGISTER) == MODE;
    if (begins(inst, "s_setreg"))
        return SALU | SET_REGISTER | (mode && first <= VSKIP && VSKIP <= first + size ? SET_SKIP : 0);
    if (begins(inst, "s_getreg")) return SALU | GET_REGISTER | (mode ? GET_MODE : 0);
    return SALU | (begins(inst, "s_setvskip") ? SETVSKIP : 0);
}

static uint32_t find_kinds(const struct sim_inst *inst, const struct sim_effects *effects, unsigned passes) {
    const bool buffer = inst->format == SIM_MUBUF;
    const bool to_lds = (effects->to_lds && !buffer) || begins(inst, "s_movrel") || begins(inst, "s_sendmsg") ||
                        begins(inst, "s_ttracedata") || begins(inst, "ds_gws") || strstr(inst->row->mnemonic, "addtid");
    const uint32_t more = to_lds ? TO_LDS : effects->to_lds ? BUFFER_TO_LDS : 0;
    switch (effects->unit) {
    case SIM_UNIT_VALU:
        return valu_kinds(inst);
    case SIM_UNIT_MATRIX:
        return matrix_kinds(inst, passes);
    case SIM_UNIT_MEMORY:
    case SIM_UNIT_FLAT:
        return memory_kinds(inst) | more;
    case SIM_UNIT_LDS:
        return LDS | more;
    case SIM_UNIT_SCALAR:
        return scalar_kinds(inst) | more;
    case SIM_UNIT_SCALAR_MEMORY:
        return SCALAR_MEMORY;
    default:
        return 0;
    }
}

void tessera_sim_find_hazards(const struct sim_inst *inst, struct sim_effects *effects) {
    effects->passes = effects->unit == SIM_UNIT_MATRIX ? (uint8_t)count_passes(inst) : 0;
    effects->first_of = effects->second_of = 0;
    const uint32_t kinds = find_kinds(inst, effects, effects->passes);
    for (unsigned i = 0; i < RULES; i++) {
        if (rules[i].states[inst->arch] == 0) continue;
        if (kinds & rules[i].first) effects->first_of |= UINT64_C(1) << i;
        if (kinds & rules[i].second) effects->second_of |= UINT64_C(1) << i;
    }
    if (kinds & TRANS) // transcendental instructions need no wait states among themselves
        for (unsigned i = 0; i < RULES; i++)
            if (rules[i].first == TRANS) effects->second_of &= ~(UINT64_C(1) << i);
}

// ---- meetings

static bool overlap(const struct sim_wave *wave, const struct sim_code *a, const struct sim_effect *of_a,
                    const struct sim_code *b, const struct sim_effect *of_b) {
    if (of_a->file != of_b->file) return false;
    const unsigned first_a = tessera_sim_effect_first(wave, a, of_a), first_b = tessera_sim_effect_first(wave, b, of_b);
    return first_a < first_b + of_b->count && first_b < first_a + of_a->count;
}

// Whether the effect is of operand C of a matrix instruction; v_smfmac's C is its destination.
static bool is_c(const struct sim_code *code, const struct sim_effect *effect) {
    const bool in_place = begins(&code->inst, "v_smfmac") || code->inst.op[SIM_SRC2].kind == SIM_ABSENT;
    return effect->slot == (in_place ? SIM_DST : SIM_SRC2);
}

// Whether the use is of a mask with one bit for each lane: a carry, a borrow or a choice.
static bool is_carry(const struct sim_code *code, const struct sim_effect *use) {
    static const char *const names[] = {"v_cndmask", "v_addc", "v_subb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(&code->inst, names[i])) return use->slot == SIM_SRC2;
    return false;
}

static bool is_exec(const struct sim_effect *effect) {
    return effect->file == SIM_FILE_SCALAR && effect->first + effect->count > SIM_EXEC;
}

// Whether `effect` of the first and `use` of the second instruction, which overlap, are such a meeting.
static bool matches(enum meeting meeting, const struct sim_code *first, const struct sim_effect *effect,
                    const struct sim_code *second, const struct sim_effect *use) {
    const bool vector = use->file == SIM_FILE_VECTOR, scalar = use->file == SIM_FILE_SCALAR;
    const bool read = use->access & SIM_READS && effect->access & SIM_WRITES;
    const bool written = use->access & SIM_WRITES && effect->access & SIM_WRITES;
    const bool same = effect->first == use->first && effect->count == use->count;
    const bool another = first->inst.row->op != second->inst.row->op;
    switch (meeting) {
    case READS_VECTOR:
    case READS_BEHIND_DGEMM:
        return vector && read;
    case USES_VECTOR:
        return vector && (read || (written && use->access & SIM_PARTLY));
    case READS_AB:
        return vector && read && !is_c(second, use);
    case READS_C:
        return vector && read && is_c(second, use) && !same;
    case READS_SAME_C:
        return vector && read && is_c(second, use) && same;
    case READS_OF_ANOTHER:
        return vector && read && (another || !is_c(second, use));
    case READS_SCALAR:
        return scalar && read && !is_exec(use);
    case READS_CONSTANT:
        return scalar && read && use->slot < SIM_SLOTS && !is_carry(second, use);
    case READS_CARRY:
        return scalar && read && is_carry(second, use);
    case READS_LANE:
        return scalar && read && use->slot == SIM_SRC1;
    case READS_VCC:
        return scalar && read && use->slot == SIM_SLOTS && !is_exec(use);
    case READS_ZERO_FLAG:
        return scalar && read && second->inst.op[use->slot < SIM_SLOTS ? use->slot : 0].kind == SIM_SPECIAL;
    case TOUCHES_VECTOR:
        return vector && effect->access & SIM_WRITES;
    case WRITES_VECTOR:
        return vector && written;
    case WRITES_OF_ANOTHER:
        return vector && written && another;
    case WRITES_C:
        return vector && use->access & SIM_WRITES && effect->access & SIM_READS && is_c(first, effect);
    case WRITES_DATA:
        return vector && use->access & SIM_WRITES && effect->slot == SIM_DATA;
    default:
        return false;
    }
}

static bool writes_exec(const struct sim_code *code) {
    for (unsigned i = 0; i < code->effects.count; i++)
        if (code->effects.list[i].access & SIM_WRITES && is_exec(&code->effects.list[i])) return true;
    return false;
}

static bool meet(enum meeting meeting, const struct sim_wave *wave, const struct sim_code *first,
                 const struct sim_code *second) {
    enum { HARDWARE_REGISTER = 63 };
    if (meeting == ALWAYS) return true;
    if (meeting == SAME_CLAUSE)
        return (first->effects.unit == SIM_UNIT_SCALAR_MEMORY) == (second->effects.unit == SIM_UNIT_SCALAR_MEMORY);
    if (meeting == READS_EXEC) return writes_exec(first);
    if (meeting == SAME_REGISTER) return ((first->inst.imm ^ second->inst.imm) & HARDWARE_REGISTER) == 0;
    for (unsigned i = 0; i < second->effects.count; i++)
        for (unsigned k = 0; k < first->effects.count; k++) {
            const struct sim_effect *use = &second->effects.list[i], *effect = &first->effects.list[k];
            if (overlap(wave, first, effect, second, use) && matches(meeting, first, effect, second, use)) return true;
        }
    return false;
}

static unsigned states_needed(const struct rule *rule, const struct sim_code *first) {
    const unsigned states = rule->states[first->inst.arch], passes = first->effects.passes;
    const unsigned longer = states & LONGER && passes > 2;
    if (!(states & PASSES)) return states;
    return passes + (states & CONSTANT) - 1 + longer;
}

bool tessera_sim_find_wait(const struct sim_wave *wave, const struct sim_pair *pair, struct sim_wait *wait) {
    uint64_t both = pair->first->effects.first_of & pair->second->effects.second_of;
    for (both = both >> wait->next << wait->next; both; both &= both - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(both);
        const struct rule *rule = &rules[i];
        const unsigned states = states_needed(rule, pair->first);
        if (pair->between >= states || (rule->meeting == READS_BEHIND_DGEMM && !pair->behind_dgemm)) continue;
        if (!meet((enum meeting)rule->meeting, wave, pair->first, pair->second)) continue;
        *wait = (struct sim_wait){i + 1, states, rule->text, i < NEEDED ? NULL : reasons[i - NEEDED]};
        return true;
    }
    return false;
}

// ---- while a wave runs

static void check(struct sim_wave *wave, const struct sim_issued *first, const struct sim_pair *pair) {
    struct sim_wait wait = {0};
    char text[80];
    if (!tessera_sim_find_wait(wave, pair, &wait) || wait.spare) return; // no needed rule comes after a spare one
    tessera_sim_print(&pair->first->inst, text, sizeof text);
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_WAIT_STATES, -1, 0, "%u of %u since +0x%llx: %s; %s", pair->between,
                        wait.states, (unsigned long long)(first->pc - wave->group->launch->kernel->entry), text,
                        wait.text);
}

unsigned tessera_sim_states_of(const struct sim_inst *inst) {
    return inst->row->op == SIM_OP_s_nop ? ((unsigned)inst->imm & 0xf) + 1 : 1;
}

static void note_rules(struct sim_code *code) { tessera_sim_find_hazards(&code->inst, &code->effects); }

static void start_wave(struct sim_wave *wave) { memset(&wave->checks->hazards, 0, sizeof wave->checks->hazards); }

// Counts the instruction's time. A matrix instruction waits for the passes of the one before it; any other takes one
// state.
static bool issue(struct sim_wave *wave, const struct sim_code *code) {
    struct sim_hazards *hazards = &wave->checks->hazards;
    const struct sim_effects *effects = &code->effects;
    const bool matrix = effects->unit == SIM_UNIT_MATRIX;
    if (matrix && hazards->time < hazards->matrix_free) hazards->time = hazards->matrix_free;
    const uint64_t since_matrix = hazards->time - hazards->matrix_time;
    const uint64_t window = since_matrix <= MOST_STATES ? MOST_STATES : MOST_STATES_OF_VALU;
    if (effects->second_of)
        for (uint32_t i = 1; i <= SIM_MAX_ISSUED && i <= hazards->issued; i++) {
            const struct sim_issued *first = &hazards->list[(hazards->issued - i) % SIM_MAX_ISSUED];
            const uint64_t between = hazards->time - first->time - 1;
            if (between >= window) break;
            const struct sim_pair pair = {first->code, code, (unsigned)between, hazards->dgemm_time > first->time};
            check(wave, first, &pair);
        }
    if (effects->first_of) {
        hazards->list[hazards->issued++ % SIM_MAX_ISSUED] = (struct sim_issued){hazards->time, wave->pc, code};
    }
    if (matrix) {
        hazards->matrix_time = hazards->time;
        if (begins(&code->inst, "v_mfma_f64")) hazards->dgemm_time = hazards->time;
        hazards->matrix_free = hazards->time + effects->passes;
    }
    hazards->time += tessera_sim_states_of(&code->inst);
    return wave->state != SIM_FAULTED;
}

const struct sim_observer tessera_sim_hazard_check = {
    .decoded = note_rules,
    .wanted = tessera_sim_is_sanitized,
    .start_wave = start_wave,
    .issue = issue,
};
