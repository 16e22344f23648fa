// SPDX-License-Identifier: MIT
// The decoded form of one instruction of gfx90a, gfx942 or gfx950, and the functions that make and print it.
//
// The instructions are rows of simulator/instructions/*.txt; generate_tables.py there renders them to instructions.h
// (the enum sim_op) and instructions.c (the rows). A row's `op` names what the instruction does: SIM_OP_ and the
// mnemonic without the encoding's suffix (v_add_f32 is SIM_OP_v_add_f32 in VOP2, VOP3, SDWA and DPP). A row with `is:`
// has the `op` of the instruction that it names.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instructions.h"

enum sim_arch { SIM_GFX90A, SIM_GFX942, SIM_GFX950, SIM_ARCHS };

// Encodings. Rows of VOP1, VOP2 and VOPC also have VOP3, SDWA and DPP: then inst.format and row->format differ.
enum sim_format {
    SIM_SOP1,
    SIM_SOP2,
    SIM_SOPC,
    SIM_SOPK,
    SIM_SOPP,
    SIM_SMEM,
    SIM_VOP1,
    SIM_VOP2,
    SIM_VOPC,
    SIM_VOP3, // VOP3A, and VOP3B where the row has an SDST
    SIM_VOP3P,
    SIM_MAI, // VOP3P with MFMA fields
    SIM_SDWA,
    SIM_DPP,
    SIM_DS,
    SIM_MUBUF,
    SIM_MTBUF,
    SIM_FLAT,
    SIM_GLOBAL,
    SIM_SCRATCH,
    SIM_FORMATS
};

enum sim_operand_kind {
    SIM_ABSENT,
    SIM_SGPR,    // index as encoded, 0..127: s0..s101, then flat_scratch 102, xnack_mask 104, vcc 106, ttmp0 108,
                 // m0 124, exec 126 (low halves first); a 64-bit operand is index and index + 1
    SIM_VGPR,    // index 0..255
    SIM_AGPR,    // index 0..255
    SIM_CONST,   // an inline constant: index is its code, value holds the bits as the operand's type sees them
    SIM_LITERAL, // the word after the instruction: value likewise (an f64 has it in its high half)
    SIM_SPECIAL, // enum sim_special in index
};

enum sim_special {
    SIM_SHARED_BASE = 235,
    SIM_SHARED_LIMIT = 236,
    SIM_PRIVATE_BASE = 237,
    SIM_PRIVATE_LIMIT = 238,
    SIM_POPS_EXITING_WAVE_ID = 239,
    SIM_VCCZ = 251,
    SIM_EXECZ = 252,
    SIM_SCC = 253,
    SIM_LDS_DIRECT = 254,
};

enum { SIM_VCC = 106, SIM_M0 = 124, SIM_EXEC = 126, SIM_FLAT_SCRATCH = 102, SIM_XNACK_MASK = 104, SIM_TTMP0 = 108 };

// The index of an operand in struct sim_inst.
enum sim_slot {
    SIM_DST,    // vdst or sdst; of an atomic: where the old value goes (absent without sc0)
    SIM_SDST,   // second result: carry of VOP3B, scale flag of v_div_scale
    SIM_SRC0,   // MFMA: a
    SIM_SRC1,   // MFMA: b
    SIM_SRC2,   // MFMA: c; v_smfmac: the index (its c is SIM_DST); the VCC read by v_cndmask, v_addc, v_div_fmas
    SIM_SCALE0, // scaled MFMA: the scale of a
    SIM_SCALE1, // scaled MFMA: the scale of b
    SIM_ADDR,   // vaddr: DS: one VGPR; MUBUF: as many as idxen and offen ask for; FLAT: 64 bits, or 32 with
                // SIM_BASE
    SIM_DATA,   // the value to store, or an atomic's operand (cmpswap: the new value, then the one to compare with)
    SIM_DATA2,  // ds_write2, ds_cmpst and the like: the second value
    SIM_BASE,   // sbase of SMEM, srsrc of MUBUF (4 SGPRs), saddr of GLOBAL and SCRATCH
    SIM_OFFSET, // soffset of MUBUF and SMEM
    SIM_SLOTS
};

enum sim_type {
    SIM_B, // bits: no arithmetic
    SIM_I, // signed
    SIM_U, // unsigned
    SIM_F, // floating point
    SIM_BF,
};

// The part of a register that SDWA selects.
enum sim_sel { SIM_BYTE_0, SIM_BYTE_1, SIM_BYTE_2, SIM_BYTE_3, SIM_WORD_0, SIM_WORD_1, SIM_DWORD };
enum sim_unused { SIM_UNUSED_PAD, SIM_UNUSED_SEXT, SIM_UNUSED_PRESERVE };

// An operand in a row of the tables.
struct sim_field {
    uint8_t slot;     // enum sim_slot
    uint8_t type;     // enum sim_type of an element
    uint16_t element; // bits of an element; packed operands and MFMA operands have several elements
    uint16_t bits;
    uint8_t source; // enum sim_source of decode_tables.h: where it is encoded, and what it may be
};

enum { SIM_MAX_FIELDS = 6 };

struct sim_row {
    const char *mnemonic;
    uint16_t op;                            // enum sim_op: what the instruction does
    uint8_t format;                         // enum sim_format
    uint8_t fields;                         // number of operands
    int16_t opcode[SIM_ARCHS];              // -1: the architecture lacks it
    uint32_t flags;                         // SIM_FLAG_*
    struct sim_field field[SIM_MAX_FIELDS]; // in the order in which they print
};

struct sim_operand {
    uint8_t kind; // enum sim_operand_kind
    uint8_t type; // enum sim_type
    uint16_t index;
    uint16_t bits; // width; a register operand takes (bits + 31) / 32 registers
    uint8_t sel;   // enum sim_sel, of SDWA; SIM_DWORD elsewhere
    bool sext;     // SDWA: sign extend the selected part
    bool abs;
    bool neg;         // VOP3P: negates the low half
    bool neg_hi;      // VOP3P: negates the high half
    bool op_sel;      // VOP3: take the high half (dst: write it); VOP3P: for the low result. Scale: low bit of its byte
    bool op_sel_hi;   // VOP3P: for the high result take the high half. Scale: high bit of its byte
    uint32_t literal; // SIM_LITERAL: the word itself
    uint64_t value;   // SIM_CONST, SIM_LITERAL. Packed operands: 32 bits, f16 and bf16 in the low half
};

struct sim_inst {
    const struct sim_row *row;
    uint8_t arch;
    uint8_t format; // enum sim_format, as encoded
    uint8_t size;   // bytes: 4, 8, 12 or 16
    struct sim_operand op[SIM_SLOTS];

    int32_t imm;     // SOPK, SOPP: simm16 with its sign; s_setreg_*, s_getreg_*: hwreg code, unsigned
    int32_t offset;  // memory: bytes, sign extended where the format is signed; DS: offset, or offset0 of a pair
    uint8_t offset1; // DS pairs: offset1

    // VOP3, SDWA
    bool clamp;
    uint8_t omod;       // 0: none, 1: * 2, 2: * 4, 3: / 2
    uint8_t dst_unused; // SDWA: enum sim_unused (dst_sel is op[SIM_DST].sel)

    uint8_t bitop3; // v_bitop3: the truth table; bit 4 * a + 2 * b + c is the result for bits a, b, c of the sources

    // DPP; v_permlane*_swap in VOP3 has bound_ctrl and fi
    bool fi;
    uint16_t dpp_ctrl;
    uint8_t row_mask, bank_mask;
    bool bound_ctrl; // the encoded bit: set means that lanes out of bounds read 0

    // MFMA
    uint8_t cbsz, abid, blgp; // gfx942's f64: blgp is neg of a, b, c; f8f6f4: cbsz and blgp are the formats of a and b

    // Memory. Names are gfx942's; of gfx90a: sc0 is glc, nt is slc, sc1 is scc.
    bool sc0, sc1, nt;
    bool nv;            // SMEM of gfx90a
    bool gds;           // DS
    bool lds;           // MUBUF: to LDS instead of VGPRs; SIM_DST is absent
    bool offen, idxen;  // MUBUF, MTBUF
    bool has_offset;    // SMEM: offset counts (with SIM_OFFSET absent or not)
    bool sve;           // SCRATCH of gfx942: SIM_ADDR is present
    uint8_t dfmt, nfmt; // MTBUF
};

enum sim_decode_error {
    SIM_DECODED = 0,
    SIM_TRUNCATED,        // the instruction has more words than are available
    SIM_UNKNOWN_ENCODING, // no format has these first bits
    SIM_UNKNOWN_OPCODE,   // the format has no such instruction on this architecture
    SIM_RESERVED_OPERAND, // a code that names no operand
    SIM_RESERVED_FIELD,   // a modifier or reserved bit that this instruction must not have
};

// Decodes the instruction at words[0]. After an error only inst->row may be relied on, where it is not NULL.
enum sim_decode_error tessera_sim_decode(enum sim_arch arch, const uint32_t *words, size_t available,
                                         struct sim_inst *inst);
const char *tessera_sim_decode_error_name(enum sim_decode_error error);

// Writes the instruction in LLVM's syntax, without a newline, into text; returns the length of the
// whole text, as snprintf does. Branch targets print as their immediate, so that no labels are needed.
size_t tessera_sim_print(const struct sim_inst *inst, char *text, size_t size);
