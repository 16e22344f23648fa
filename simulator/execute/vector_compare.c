// SPDX-License-Identifier: MIT
// Comparisons of the vector ALU: they write a mask of lanes to SGPRs, and to EXEC if the name has cmpx.
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
// Comparisons of a type whose values are in words of another type.
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

// The class of a number: one of ten bits is set.
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

#define WITH(to_mask, to_exec, lanes, detail)                                                                          \
    {SIM_OP_##to_mask, tessera_sim_execute_vector, lanes, SIM_CONDITION | (detail)}, {                                 \
        SIM_OP_##to_exec, tessera_sim_execute_vector, lanes, SIM_CONDITION | SIM_TO_EXEC | (detail)                    \
    }
#define ROW(to_mask, to_exec, lanes) WITH(to_mask, to_exec, lanes, 0)
static const struct sim_semantics rows[] = {
    ROW(v_cmp_f_i16, v_cmpx_f_i16, never),
    ROW(v_cmp_lt_i16, v_cmpx_lt_i16, lt_i16),
    ROW(v_cmp_eq_i16, v_cmpx_eq_i16, eq_i16),
    ROW(v_cmp_le_i16, v_cmpx_le_i16, le_i16),
    ROW(v_cmp_gt_i16, v_cmpx_gt_i16, gt_i16),
    ROW(v_cmp_ne_i16, v_cmpx_ne_i16, ne_i16),
    ROW(v_cmp_ge_i16, v_cmpx_ge_i16, ge_i16),
    ROW(v_cmp_t_i16, v_cmpx_t_i16, always),
    ROW(v_cmp_f_u16, v_cmpx_f_u16, never),
    ROW(v_cmp_lt_u16, v_cmpx_lt_u16, lt_u16),
    ROW(v_cmp_eq_u16, v_cmpx_eq_u16, eq_u16),
    ROW(v_cmp_le_u16, v_cmpx_le_u16, le_u16),
    ROW(v_cmp_gt_u16, v_cmpx_gt_u16, gt_u16),
    ROW(v_cmp_ne_u16, v_cmpx_ne_u16, ne_u16),
    ROW(v_cmp_ge_u16, v_cmpx_ge_u16, ge_u16),
    ROW(v_cmp_t_u16, v_cmpx_t_u16, always),
    ROW(v_cmp_f_i32, v_cmpx_f_i32, never),
    ROW(v_cmp_lt_i32, v_cmpx_lt_i32, lt_i32),
    ROW(v_cmp_eq_i32, v_cmpx_eq_i32, eq_i32),
    ROW(v_cmp_le_i32, v_cmpx_le_i32, le_i32),
    ROW(v_cmp_gt_i32, v_cmpx_gt_i32, gt_i32),
    ROW(v_cmp_ne_i32, v_cmpx_ne_i32, ne_i32),
    ROW(v_cmp_ge_i32, v_cmpx_ge_i32, ge_i32),
    ROW(v_cmp_t_i32, v_cmpx_t_i32, always),
    ROW(v_cmp_f_u32, v_cmpx_f_u32, never),
    ROW(v_cmp_lt_u32, v_cmpx_lt_u32, lt_u32),
    ROW(v_cmp_eq_u32, v_cmpx_eq_u32, eq_u32),
    ROW(v_cmp_le_u32, v_cmpx_le_u32, le_u32),
    ROW(v_cmp_gt_u32, v_cmpx_gt_u32, gt_u32),
    ROW(v_cmp_ne_u32, v_cmpx_ne_u32, ne_u32),
    ROW(v_cmp_ge_u32, v_cmpx_ge_u32, ge_u32),
    ROW(v_cmp_t_u32, v_cmpx_t_u32, always),
    ROW(v_cmp_f_i64, v_cmpx_f_i64, never),
    ROW(v_cmp_lt_i64, v_cmpx_lt_i64, lt_i64),
    ROW(v_cmp_eq_i64, v_cmpx_eq_i64, eq_i64),
    ROW(v_cmp_le_i64, v_cmpx_le_i64, le_i64),
    ROW(v_cmp_gt_i64, v_cmpx_gt_i64, gt_i64),
    ROW(v_cmp_ne_i64, v_cmpx_ne_i64, ne_i64),
    ROW(v_cmp_ge_i64, v_cmpx_ge_i64, ge_i64),
    ROW(v_cmp_t_i64, v_cmpx_t_i64, always),
    ROW(v_cmp_f_u64, v_cmpx_f_u64, never),
    ROW(v_cmp_lt_u64, v_cmpx_lt_u64, lt_u64),
    ROW(v_cmp_eq_u64, v_cmpx_eq_u64, eq_u64),
    ROW(v_cmp_le_u64, v_cmpx_le_u64, le_u64),
    ROW(v_cmp_gt_u64, v_cmpx_gt_u64, gt_u64),
    ROW(v_cmp_ne_u64, v_cmpx_ne_u64, ne_u64),
    ROW(v_cmp_ge_u64, v_cmpx_ge_u64, ge_u64),
    ROW(v_cmp_t_u64, v_cmpx_t_u64, always),
    ROW(v_cmp_f_f16, v_cmpx_f_f16, never),
    ROW(v_cmp_lt_f16, v_cmpx_lt_f16, lt_f16),
    ROW(v_cmp_eq_f16, v_cmpx_eq_f16, eq_f16),
    ROW(v_cmp_le_f16, v_cmpx_le_f16, le_f16),
    ROW(v_cmp_gt_f16, v_cmpx_gt_f16, gt_f16),
    ROW(v_cmp_lg_f16, v_cmpx_lg_f16, lg_f16),
    ROW(v_cmp_ge_f16, v_cmpx_ge_f16, ge_f16),
    ROW(v_cmp_o_f16, v_cmpx_o_f16, o_f16),
    ROW(v_cmp_u_f16, v_cmpx_u_f16, u_f16),
    ROW(v_cmp_nge_f16, v_cmpx_nge_f16, nge_f16),
    ROW(v_cmp_nlg_f16, v_cmpx_nlg_f16, nlg_f16),
    ROW(v_cmp_ngt_f16, v_cmpx_ngt_f16, ngt_f16),
    ROW(v_cmp_nle_f16, v_cmpx_nle_f16, nle_f16),
    ROW(v_cmp_neq_f16, v_cmpx_neq_f16, neq_f16),
    ROW(v_cmp_nlt_f16, v_cmpx_nlt_f16, nlt_f16),
    ROW(v_cmp_tru_f16, v_cmpx_tru_f16, always),
    WITH(v_cmp_class_f16, v_cmpx_class_f16, is_class_f16, SIM_MOVES),
    ROW(v_cmp_f_f32, v_cmpx_f_f32, never),
    ROW(v_cmp_lt_f32, v_cmpx_lt_f32, lt_f32),
    ROW(v_cmp_eq_f32, v_cmpx_eq_f32, eq_f32),
    ROW(v_cmp_le_f32, v_cmpx_le_f32, le_f32),
    ROW(v_cmp_gt_f32, v_cmpx_gt_f32, gt_f32),
    ROW(v_cmp_lg_f32, v_cmpx_lg_f32, lg_f32),
    ROW(v_cmp_ge_f32, v_cmpx_ge_f32, ge_f32),
    ROW(v_cmp_o_f32, v_cmpx_o_f32, o_f32),
    ROW(v_cmp_u_f32, v_cmpx_u_f32, u_f32),
    ROW(v_cmp_nge_f32, v_cmpx_nge_f32, nge_f32),
    ROW(v_cmp_nlg_f32, v_cmpx_nlg_f32, nlg_f32),
    ROW(v_cmp_ngt_f32, v_cmpx_ngt_f32, ngt_f32),
    ROW(v_cmp_nle_f32, v_cmpx_nle_f32, nle_f32),
    ROW(v_cmp_neq_f32, v_cmpx_neq_f32, neq_f32),
    ROW(v_cmp_nlt_f32, v_cmpx_nlt_f32, nlt_f32),
    ROW(v_cmp_tru_f32, v_cmpx_tru_f32, always),
    WITH(v_cmp_class_f32, v_cmpx_class_f32, is_class_f32, SIM_MOVES),
    ROW(v_cmp_f_f64, v_cmpx_f_f64, never),
    ROW(v_cmp_lt_f64, v_cmpx_lt_f64, lt_f64),
    ROW(v_cmp_eq_f64, v_cmpx_eq_f64, eq_f64),
    ROW(v_cmp_le_f64, v_cmpx_le_f64, le_f64),
    ROW(v_cmp_gt_f64, v_cmpx_gt_f64, gt_f64),
    ROW(v_cmp_lg_f64, v_cmpx_lg_f64, lg_f64),
    ROW(v_cmp_ge_f64, v_cmpx_ge_f64, ge_f64),
    ROW(v_cmp_o_f64, v_cmpx_o_f64, o_f64),
    ROW(v_cmp_u_f64, v_cmpx_u_f64, u_f64),
    ROW(v_cmp_nge_f64, v_cmpx_nge_f64, nge_f64),
    ROW(v_cmp_nlg_f64, v_cmpx_nlg_f64, nlg_f64),
    ROW(v_cmp_ngt_f64, v_cmpx_ngt_f64, ngt_f64),
    ROW(v_cmp_nle_f64, v_cmpx_nle_f64, nle_f64),
    ROW(v_cmp_neq_f64, v_cmpx_neq_f64, neq_f64),
    ROW(v_cmp_nlt_f64, v_cmpx_nlt_f64, nlt_f64),
    ROW(v_cmp_tru_f64, v_cmpx_tru_f64, always),
    WITH(v_cmp_class_f64, v_cmpx_class_f64, is_class_f64, SIM_MOVES),
};
const struct sim_semantics_list tessera_sim_vector_compare = {rows, sizeof rows / sizeof *rows};
