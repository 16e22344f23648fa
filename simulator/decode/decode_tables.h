// SPDX-License-Identifier: MIT
// What the generated tables, the decoder and the printer share.
#pragma once

#include "decode.h"

// How an operand is encoded: which field, and which kinds of operands it can name.
enum sim_source {
    SIM_FROM_VGPR,     // 8 bits
    SIM_FROM_AGPR,     // 8 bits
    SIM_FROM_MEMORY,   // 8 bits, VGPR or AGPR by the bit acc of the instruction; SMEM has SIM_FROM_SDST
    SIM_FROM_SDST,     // 7 bits: SGPR
    SIM_FROM_SSRC,     // 8 bits: SGPR, constant or literal
    SIM_FROM_SRC,      // 9 bits: VGPR too
    SIM_FROM_LANE,     // 9 bits: SGPR or constant
    SIM_FROM_VCC,      // none in the short encodings: VCC; in VOP3 an SGPR pair
    SIM_FROM_LITERAL,  // the word after the instruction
    SIM_FROM_MATRIX,   // 9 bits: VGPR, or AGPR by the operand's bit acc
    SIM_FROM_MATRIX_C, // 9 bits: VGPR, or AGPR by acc_cd, or constant
    SIM_FROM_MATRIX_D, // 8 bits: VGPR, or AGPR by acc_cd

    SIM_FROM_IMM_I16, // SIM_IMM: from here on, how the 16 bits of SOPK and SOPP are read
    SIM_FROM_IMM_U16,
    SIM_FROM_IMM_BRANCH,
    SIM_FROM_IMM_HWREG,
    SIM_FROM_IMM_WAITCNT,
    SIM_FROM_IMM_SENDMSG,
    SIM_FROM_IMM_GPR_IDX,
    SIM_FROM_IMM_OPTIONAL, // 0 is not printed
    SIM_FROM_IMM_PROBE,    // s_atc_probe: 7 bits in place of sdata
};

enum { SIM_IMM = SIM_SLOTS }; // the slot of fields that go to inst.imm

extern const unsigned sim_row_count;
extern const struct sim_row sim_rows[];

// The row of each opcode, plus one; 0: no such instruction.
extern const uint16_t sim_index_sop1[SIM_ARCHS][256], sim_index_sop2[SIM_ARCHS][96], sim_index_sopc[SIM_ARCHS][128],
    sim_index_sopk[SIM_ARCHS][32], sim_index_sopp[SIM_ARCHS][128], sim_index_smem[SIM_ARCHS][256],
    sim_index_vop1[SIM_ARCHS][256], sim_index_vop2[SIM_ARCHS][62], sim_index_vopc[SIM_ARCHS][256],
    sim_index_vop3[SIM_ARCHS][1024], sim_index_vop3p[SIM_ARCHS][128], sim_index_mai[SIM_ARCHS][128],
    sim_index_scaled[SIM_ARCHS][128], sim_index_ds[SIM_ARCHS][256], sim_index_mubuf[SIM_ARCHS][128],
    sim_index_mtbuf[SIM_ARCHS][16], sim_index_flat[SIM_ARCHS][128], sim_index_global[SIM_ARCHS][128],
    sim_index_scratch[SIM_ARCHS][128];
