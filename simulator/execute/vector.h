// SPDX-License-Identifier: MIT
// Shared by the files of the vector ALU: an instruction's operands, laid out lane by lane, and macros to write its
// arithmetic with. vector.c fetches operands and stores results, with all modifiers.
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
    const void *src[3];  // 64 words of 32 or 64 bits each; 16-bit operands are in the low half of 32
    void *dst;           // the same for the result; never one of the sources
    uint64_t mask;       // in: lanes whose condition or carry is set; out: lanes whose comparison or carry is
    bool special_halves; // MODE's settings for halves are not the default
    struct sim_half_mode half_mode;
};

// Bits of a row's detail.
enum {
    SIM_MASK_IN = 1,        // SIM_SRC2 is a mask of lanes
    SIM_MASK_OUT = 2,       // SIM_SDST is a mask of lanes
    SIM_ACCUMULATE = 4,     // the destination is also the third source
    SIM_KEEP_HIGH = 8,      // a 16-bit result leaves the register's high half alone
    SIM_CONDITION = 16,     // SIM_DST is a mask of lanes: a comparison
    SIM_TO_EXEC = 32,       // a comparison's mask goes to EXEC as well
    SIM_MOVES = 64,         // moves bits as they are: MODE flushes no denormals
    SIM_OWN_ROUNDING = 128, // MODE's rounding has no effect
};

void tessera_sim_execute_vector(struct sim_wave *wave, const struct sim_code *code);

// Reads a vector operand as raw words, without modifiers: returns `words`, or the register itself. NULL after a fault.
const uint32_t *tessera_sim_read_vector(struct sim_wave *wave, const struct sim_operand *operand, unsigned which,
                                        uint32_t *words);
// Writes register `which` of an operand, in the lanes of `mask`.
void tessera_sim_write_vector(struct sim_wave *wave, const struct sim_operand *operand, unsigned which, uint64_t mask,
                              const uint32_t *words);

// The operands that VGPR indexing can move, in the order of bits 12 to 15 of M0.
enum sim_index_use { SIM_INDEX_SRC0, SIM_INDEX_SRC1, SIM_INDEX_SRC2, SIM_INDEX_DST };

// The operand, with M0's index added where VGPR indexing moves it.
static inline struct sim_operand sim_indexed(const struct sim_wave *wave, const struct sim_operand *operand,
                                             unsigned use) {
    struct sim_operand moved = *operand;
    if (wave->mode & SIM_MODE_INDEX && operand->kind == SIM_VGPR && wave->sgpr[SIM_M0] >> (12 + use) & 1)
        moved.index = (uint16_t)(moved.index + (wave->sgpr[SIM_M0] & 0xff));
    return moved;
}

// Packs 64 flags into bits.
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
