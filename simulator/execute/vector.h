// SPDX-License-Identifier: MIT
// What the files of the vector ALU share: an instruction's operands, laid out lane by lane, and words to write its
// arithmetic with. vector.c brings operands here and results back, with all modifiers.
#pragma once

#include <string.h>

#include "float_formats.h"
#include "machine/launch.h"
#include "operands.h"

typedef uint32_t sim_u32 __attribute__((may_alias));
typedef int32_t sim_i32 __attribute__((may_alias));
typedef uint64_t sim_u64 __attribute__((may_alias));
typedef int64_t sim_i64 __attribute__((may_alias));
typedef float sim_f32 __attribute__((may_alias));
typedef double sim_f64 __attribute__((may_alias));

struct sim_alu {
    struct sim_wave *wave;
    const struct sim_inst *inst;
    const void *src[3];  // 64 words of 32 or 64 bits each; operands of 16 bits stand in the low half of 32
    void *dst;           // likewise, and never one of the sources
    uint64_t mask;       // in: the lanes of the condition or carry; out: those of the comparison or carry
    bool special_halves; // MODE has settings for halves that are not the default
    struct sim_half_mode half_mode;
};

// detail of a row
enum {
    SIM_MASK_IN = 1,        // SIM_SRC2 is a mask of lanes
    SIM_MASK_OUT = 2,       // SIM_SDST is one
    SIM_ACCUMULATE = 4,     // the destination is the third source too
    SIM_KEEP_HIGH = 8,      // a result of 16 bits leaves the register's other half alone
    SIM_CONDITION = 16,     // SIM_DST is a mask of lanes: a comparison
    SIM_TO_EXEC = 32,       // which goes to EXEC as well
    SIM_MOVES = 64,         // takes bits as they are: MODE flushes no denormals
    SIM_OWN_ROUNDING = 128, // MODE's rounding does not count
};

void tessera_sim_execute_vector(struct sim_wave *wave, const struct sim_code *code);

// Reads a vector operand as raw words, no modifiers: into `words`, or in place. NULL after a fault.
const uint32_t *tessera_sim_read_vector(struct sim_wave *wave, const struct sim_operand *operand, unsigned which,
                                        uint32_t *words);
// Writes the lanes of `mask` of the register `which` of an operand.
void tessera_sim_write_vector(struct sim_wave *wave, const struct sim_operand *operand, unsigned which, uint64_t mask,
                              const uint32_t *words);

// The operands that MODE's VGPR indexing may move: bits 12 to 15 of M0.
enum sim_index_use { SIM_INDEX_SRC0, SIM_INDEX_SRC1, SIM_INDEX_SRC2, SIM_INDEX_DST };

// The operand, moved by M0 where VGPR indexing says so.
static inline struct sim_operand sim_indexed(const struct sim_wave *wave, const struct sim_operand *operand,
                                             unsigned use) {
    struct sim_operand moved = *operand;
    if (wave->mode & SIM_MODE_INDEX && operand->kind == SIM_VGPR && wave->sgpr[SIM_M0] >> (12 + use) & 1)
        moved.index = (uint16_t)(moved.index + (wave->sgpr[SIM_M0] & 0xff));
    return moved;
}

// The bits of 64 flags.
static inline uint64_t sim_pack_flags(const uint8_t *flags) {
    uint64_t mask = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t eight;
        memcpy(&eight, flags + 8 * i, 8);
        mask |= (eight * UINT64_C(0x0102040810204080)) >> 56 << 8 * i;
    }
    return mask;
}

// Functions over 64 lanes: sources a, b, c of types A, B, C, and a result of type D.
#define SIM_LANES1(name, D, A, value)                                                                                  \
    static void name(struct sim_alu *alu) {                                                                            \
        const A *restrict pa = alu->src[0];                                                                            \
        D *restrict pd = alu->dst;                                                                                     \
        for (int i = 0; i < SIM_LANES; i++) {                                                                          \
            const A a = pa[i];                                                                                         \
            pd[i] = (D)(value);                                                                                        \
        }                                                                                                              \
    }
#define SIM_LANES2(name, D, A, B, value)                                                                               \
    static void name(struct sim_alu *alu) {                                                                            \
        const A *restrict pa = alu->src[0];                                                                            \
        const B *restrict pb = alu->src[1];                                                                            \
        D *restrict pd = alu->dst;                                                                                     \
        for (int i = 0; i < SIM_LANES; i++) {                                                                          \
            const A a = pa[i];                                                                                         \
            const B b = pb[i];                                                                                         \
            pd[i] = (D)(value);                                                                                        \
        }                                                                                                              \
    }
#define SIM_LANES3(name, D, A, B, C, value)                                                                            \
    static void name(struct sim_alu *alu) {                                                                            \
        const A *restrict pa = alu->src[0];                                                                            \
        const B *restrict pb = alu->src[1];                                                                            \
        const C *restrict pc = alu->src[2];                                                                            \
        D *restrict pd = alu->dst;                                                                                     \
        for (int i = 0; i < SIM_LANES; i++) {                                                                          \
            const A a = pa[i];                                                                                         \
            const B b = pb[i];                                                                                         \
            const C c = pc[i];                                                                                         \
            pd[i] = (D)(value);                                                                                        \
        }                                                                                                              \
    }
