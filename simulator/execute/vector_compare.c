// SPDX-License-Identifier: MIT
// Comparisons of the vector ALU: a mask of lanes to SGPRs, and to EXEC where the name says cmpx.
#include "semantics.h"
#include "vector.h"

#define COMPARE(name, T, condition)                                                                                    \
    static void name(struct sim_alu *alu) {                                                                            \
        const T *restrict pa = alu->src[0], *restrict pb = alu->src[1];                                                \
        uint8_t flags[SIM_LANES];                                                                                      \
        for (int i = 0; i < SIM_LANES; i++) {                                                                          \
            const T a = pa[i], b = pb[i];                                                                              \
            flags[i] = (condition);                                                                                    \
        }                                                                                                              \
        alu->mask = sim_pack_flags(flags);                                                                             \
    }
// Types that stand in words of another one.
#define COMPARE_IN(name, T, words, read, condition)                                                                    \
    static void name(struct sim_alu *alu) {                                                                            \
        const words *restrict pa = alu->src[0], *restrict pb = alu->src[1];                                            \
        uint8_t flags[SIM_LANES];                                                                                      \
        for (int i = 0; i < SIM_LANES; i++) {                                                                          \
            const T a = read(pa[i]), b = read(pb[i]);                                                                  \
            flags[i] = (condition);                                                                                    \
        }                                                                                                              \
        alu->mask = sim_pack_flags(flags);                                                                             \
    }

static void never(struct sim_alu *alu) { alu->mask = 0; }
static void always(struct sim_alu *alu) { alu->mask = UINT64_MAX; }

#define INTEGERS(type, T)                                                                                              \
    COMPARE(lt_##type, T, a < b)                                                                                       \
    COMPARE(eq_##type, T, a == b)                                                                                      \
    COMPARE(le_##type, T, a <= b)                                                                                      \
    COMPARE(gt_##type, T, a > b)                                                                                       \
    COMPARE(ne_##type, T, a != b)                                                                                      \
    COMPARE(ge_##type, T, a >= b)
#define INTEGERS_IN(type, T, words)                                                                                    \
    COMPARE_IN(lt_##type, T, words, (T), a < b)                                                                        \
    COMPARE_IN(eq_##type, T, words, (T), a == b)                                                                       \
    COMPARE_IN(le_##type, T, words, (T), a <= b)                                                                       \
    COMPARE_IN(gt_##type, T, words, (T), a > b)                                                                        \
    COMPARE_IN(ne_##type, T, words, (T), a != b)                                                                       \
    COMPARE_IN(ge_##type, T, words, (T), a >= b)
INTEGERS(i32, sim_i32)
INTEGERS(u32, sim_u32)
INTEGERS(i64, sim_i64)
INTEGERS(u64, sim_u64)
INTEGERS_IN(i16, int16_t, sim_u32)
INTEGERS_IN(u16, uint16_t, sim_u32)

// An "n" comparison is the negation: true where a NaN takes part.
#define FLOATS(type, T, words, read)                                                                                   \
    COMPARE_IN(lt_##type, T, words, read, a < b)                                                                       \
    COMPARE_IN(eq_##type, T, words, read, a == b)                                                                      \
    COMPARE_IN(le_##type, T, words, read, a <= b)                                                                      \
    COMPARE_IN(gt_##type, T, words, read, a > b)                                                                       \
    COMPARE_IN(lg_##type, T, words, read, (a < b) | (a > b))                                                           \
    COMPARE_IN(ge_##type, T, words, read, a >= b)                                                                      \
    COMPARE_IN(o_##type, T, words, read, (a == a) & (b == b))                                                          \
    COMPARE_IN(u_##type, T, words, read, (a != a) | (b != b))                                                          \
    COMPARE_IN(nge_##type, T, words, read, !(a >= b))                                                                  \
    COMPARE_IN(nlg_##type, T, words, read, !((a < b) | (a > b)))                                                       \
    COMPARE_IN(ngt_##type, T, words, read, !(a > b))                                                                   \
    COMPARE_IN(nle_##type, T, words, read, !(a <= b))                                                                  \
    COMPARE_IN(neq_##type, T, words, read, !(a == b))                                                                  \
    COMPARE_IN(nlt_##type, T, words, read, !(a < b))
FLOATS(f16, float, sim_u32, sim_half_to_float)
FLOATS(f32, float, sim_f32, )
FLOATS(f64, double, sim_f64, )

// The class of a number, as one of ten bits.
static inline uint32_t class_of(bool negative, bool top_exponent, bool zero_exponent, bool zero_mantissa, bool quiet) {
    const uint32_t magnitude = top_exponent ? 0 : zero_exponent ? (zero_mantissa ? 3 : 2) : 1;
    if (top_exponent && !zero_mantissa) return quiet ? 2 : 1;
    return 1u << (negative ? 2 + magnitude : 9 - magnitude);
}
static inline uint32_t class_f32(uint32_t v) {
    return class_of(v >> 31, (v >> 23 & 0xff) == 0xff, (v >> 23 & 0xff) == 0, (v & 0x7fffff) == 0, v >> 22 & 1);
}
static inline uint32_t class_f16(uint32_t v) {
    return class_of(v >> 15 & 1, (v >> 10 & 31) == 31, (v >> 10 & 31) == 0, (v & 0x3ff) == 0, v >> 9 & 1);
}
static inline uint32_t class_f64(uint64_t v) {
    return class_of(v >> 63, (v >> 52 & 0x7ff) == 0x7ff, (v >> 52 & 0x7ff) == 0, (v & ((UINT64_C(1) << 52) - 1)) == 0,
                    v >> 51 & 1);
}
#define CLASS(name, words, of)                                                                                         \
    static void name(struct sim_alu *alu) {                                                                            \
        const words *restrict pa = alu->src[0];                                                                        \
        const sim_u32 *restrict pb = alu->src[1];                                                                      \
        uint8_t flags[SIM_LANES];                                                                                      \
        for (int i = 0; i < SIM_LANES; i++) flags[i] = (of(pa[i]) & pb[i]) != 0;                                       \
        alu->mask = sim_pack_flags(flags);                                                                             \
    }
CLASS(is_class_f16, sim_u32, class_f16)
CLASS(is_class_f32, sim_u32, class_f32)
CLASS(is_class_f64, sim_u64, class_f64)

#define WITH(op, lanes, detail)                                                                                        \
    {SIM_OP_V_CMP_##op, tessera_sim_execute_vector, lanes, SIM_CONDITION | (detail)}, {                                \
        SIM_OP_V_CMPX_##op, tessera_sim_execute_vector, lanes, SIM_CONDITION | SIM_TO_EXEC | (detail)                  \
    }
#define ROW(op, lanes) WITH(op, lanes, 0)
#define INTEGER_ROWS(TYPE, type)                                                                                       \
    ROW(F_##TYPE, never), ROW(LT_##TYPE, lt_##type), ROW(EQ_##TYPE, eq_##type), ROW(LE_##TYPE, le_##type),             \
        ROW(GT_##TYPE, gt_##type), ROW(NE_##TYPE, ne_##type), ROW(GE_##TYPE, ge_##type), ROW(T_##TYPE, always)
#define FLOAT_ROWS(TYPE, type)                                                                                         \
    ROW(F_##TYPE, never), ROW(LT_##TYPE, lt_##type), ROW(EQ_##TYPE, eq_##type), ROW(LE_##TYPE, le_##type),             \
        ROW(GT_##TYPE, gt_##type), ROW(LG_##TYPE, lg_##type), ROW(GE_##TYPE, ge_##type), ROW(O_##TYPE, o_##type),      \
        ROW(U_##TYPE, u_##type), ROW(NGE_##TYPE, nge_##type), ROW(NLG_##TYPE, nlg_##type),                             \
        ROW(NGT_##TYPE, ngt_##type), ROW(NLE_##TYPE, nle_##type), ROW(NEQ_##TYPE, neq_##type),                         \
        ROW(NLT_##TYPE, nlt_##type), ROW(TRU_##TYPE, always), WITH(CLASS_##TYPE, is_class_##type, SIM_MOVES)
static const struct sim_semantics rows[] = {
    INTEGER_ROWS(I16, i16), INTEGER_ROWS(U16, u16), INTEGER_ROWS(I32, i32),
    INTEGER_ROWS(U32, u32), INTEGER_ROWS(I64, i64), INTEGER_ROWS(U64, u64),
    FLOAT_ROWS(F16, f16),   FLOAT_ROWS(F32, f32),   FLOAT_ROWS(F64, f64),
};
const struct sim_semantics_list tessera_sim_vector_compare = {rows, sizeof rows / sizeof *rows};
