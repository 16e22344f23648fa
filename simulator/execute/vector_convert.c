// SPDX-License-Identifier: MIT
// Conversions of the vector ALU.
#include "semantics.h"
#include "vector.h"

// ---- integers and floats: values that are too large saturate, NaN becomes 0

static inline int32_t to_i32(double v) {
    return v != v ? 0 : v >= 2147483647.0 ? INT32_MAX : v <= -2147483648.0 ? INT32_MIN : (int32_t)v;
}
static inline uint32_t to_u32(double v) { return !(v > 0) ? 0 : v >= 4294967295.0 ? UINT32_MAX : (uint32_t)v; }
static inline int32_t to_i16(float v) { return v != v ? 0 : v >= 32767 ? 32767 : v <= -32768 ? -32768 : (int32_t)v; }
static inline uint32_t to_u16(float v) { return !(v > 0) ? 0 : v >= 65535 ? 65535 : (uint32_t)v; }

SIM_LANES1(i32_f32, sim_i32, sim_f32, to_i32((double)a))
SIM_LANES1(u32_f32, sim_u32, sim_f32, to_u32((double)a))
SIM_LANES1(i32_f64, sim_i32, sim_f64, to_i32(a))
SIM_LANES1(u32_f64, sim_u32, sim_f64, to_u32(a))
SIM_LANES1(f32_i32, sim_f32, sim_i32, a)
SIM_LANES1(f32_u32, sim_f32, sim_u32, a)
SIM_LANES1(f64_i32, sim_f64, sim_i32, a)
SIM_LANES1(f64_u32, sim_f64, sim_u32, a)
SIM_LANES1(f32_f64, sim_f32, sim_f64, a)
SIM_LANES1(f64_f32, sim_f64, sim_f32, a)
SIM_LANES1(rpi_i32_f32, sim_i32, sim_f32, to_i32(floor((double)a + 0.5)))
SIM_LANES1(flr_i32_f32, sim_i32, sim_f32, to_i32(floor((double)a)))
SIM_LANES1(off_f32_i4, sim_f32, sim_u32, (float)((int32_t)(a << 28) >> 28) / 16)
SIM_LANES1(f32_ubyte0, sim_f32, sim_u32, a & 0xff)
SIM_LANES1(f32_ubyte1, sim_f32, sim_u32, a >> 8 & 0xff)
SIM_LANES1(f32_ubyte2, sim_f32, sim_u32, a >> 16 & 0xff)
SIM_LANES1(f32_ubyte3, sim_f32, sim_u32, a >> 24)
// Conversions to halves: one loop for MODE's defaults, one for its other settings.
#define TO_HALF(name, A, value)                                                                                        \
    SIM_LANES1(name##_plain, sim_u32, A, sim_float_to_half(value))                                                     \
    SIM_LANES1(name##_special, sim_u32, A, sim_float_to_half_mode(value, alu->half_mode))                              \
    static void name(struct sim_alu *alu) { (alu->special_halves ? name##_special : name##_plain)(alu); }
TO_HALF(f16_u16, sim_u32, (float)(a & 0xffff))
TO_HALF(f16_i16, sim_u32, (float)(int16_t)a)
SIM_LANES1(u16_f16, sim_u32, sim_u32, to_u16(sim_half_to_float(a)))
SIM_LANES1(i16_f16, sim_u32, sim_u32, (uint16_t)to_i16(sim_half_to_float(a)))

// ---- halves and bf16

TO_HALF(f16_f32, sim_f32, a)
SIM_LANES1(f32_f16, sim_f32, sim_u32, sim_half_to_float(a))
SIM_LANES1(f32_bf16, sim_f32, sim_u32, sim_bf16_to_float(a))
SIM_LANES2(pkrtz_f16, sim_u32, sim_f32, sim_f32, sim_float_to_half_rtz(a) | sim_float_to_half_rtz(b) << 16)
SIM_LANES2(pk_f16_plain, sim_u32, sim_f32, sim_f32, sim_float_to_half(a) | sim_float_to_half(b) << 16)
SIM_LANES2(pk_f16_special, sim_u32, sim_f32, sim_f32,
           sim_float_to_half_mode(a, alu->half_mode) | sim_float_to_half_mode(b, alu->half_mode) << 16)
static void pk_f16(struct sim_alu *alu) { (alu->special_halves ? pk_f16_special : pk_f16_plain)(alu); }
SIM_LANES2(pk_bf16, sim_u32, sim_f32, sim_f32, sim_float_to_bf16(a) | sim_float_to_bf16(b) << 16)
SIM_LANES2(pack_halves, sim_u32, sim_u32, sim_u32, (a & 0xffff) | b << 16)

// ---- packed and normalised integers

static inline uint32_t saturate_u16(uint32_t v) { return v > 65535 ? 65535 : v; }
static inline uint32_t saturate_i16(int32_t v) {
    return (uint16_t)(v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v);
}
SIM_LANES2(pk_u16, sim_u32, sim_u32, sim_u32, saturate_u16(a) | saturate_u16(b) << 16)
SIM_LANES2(pk_i16, sim_u32, sim_i32, sim_i32, saturate_i16(a) | saturate_i16(b) << 16)
static inline float unit(float v, float low) { return v != v ? 0 : v > 1 ? 1 : v < low ? low : v; }
static inline uint32_t norm_i16(float v) { return (uint16_t)(int32_t)rintf(unit(v, -1) * 32767); }
static inline uint32_t norm_u16(float v) { return (uint32_t)rintf(unit(v, 0) * 65535); }
SIM_LANES2(pknorm_i16_f32, sim_u32, sim_f32, sim_f32, norm_i16(a) | norm_i16(b) << 16)
SIM_LANES2(pknorm_u16_f32, sim_u32, sim_f32, sim_f32, norm_u16(a) | norm_u16(b) << 16)
SIM_LANES2(pknorm_i16_f16, sim_u32, sim_u32, sim_u32,
           norm_i16(sim_half_to_float(a)) | norm_i16(sim_half_to_float(b)) << 16)
SIM_LANES2(pknorm_u16_f16, sim_u32, sim_u32, sim_u32,
           norm_u16(sim_half_to_float(a)) | norm_u16(sim_half_to_float(b)) << 16)
SIM_LANES1(norm_i16_f16, sim_u32, sim_u32, norm_i16(sim_half_to_float(a)))
SIM_LANES1(norm_u16_f16, sim_u32, sim_u32, norm_u16(sim_half_to_float(a)))
static inline uint32_t insert_byte(float v, uint32_t which, uint32_t into) {
    const uint32_t shift = 8 * (which & 3), byte = v != v || v <= 0 ? 0 : v >= 255 ? 255 : (uint32_t)rintf(v);
    return (into & ~(0xffu << shift)) | byte << shift;
}
SIM_LANES3(pk_u8_f32, sim_u32, sim_f32, sim_u32, sim_u32, insert_byte(a, b, c))

// ---- 8 bits: FNUZ on gfx942, OCP on gfx950

static struct sim_small_format fp8(const struct sim_alu *alu) {
    return alu->inst->arch == SIM_GFX950 ? sim_e4m3_ocp : sim_e4m3_fnuz;
}
static struct sim_small_format bf8(const struct sim_alu *alu) {
    return alu->inst->arch == SIM_GFX950 ? sim_e5m2_ocp : sim_e5m2_fnuz;
}
// Whether finite values stay finite, by MODE's FP16_OVFL.
static bool saturates(const struct sim_alu *alu) { return alu->wave->mode & SIM_MODE_FP16_OVFL; }

SIM_LANES1(f32_fp8, sim_f32, sim_u32, sim_small_to_float(fp8(alu), a & 0xff))
SIM_LANES1(f32_bf8, sim_f32, sim_u32, sim_small_to_float(bf8(alu), a & 0xff))
static inline uint64_t pair(float low, float high) { return sim_bits(low) | (uint64_t)sim_bits(high) << 32; }
SIM_LANES1(pk_f32_fp8, sim_u64, sim_u32,
           pair(sim_small_to_float(fp8(alu), a & 0xff), sim_small_to_float(fp8(alu), a >> 8 & 0xff)))
SIM_LANES1(pk_f32_bf8, sim_u64, sim_u32,
           pair(sim_small_to_float(bf8(alu), a & 0xff), sim_small_to_float(bf8(alu), a >> 8 & 0xff)))
static inline uint32_t pack_small(struct sim_small_format format, float low, float high, bool saturate) {
    return sim_float_to_small(format, low, saturate) | sim_float_to_small(format, high, saturate) << 8;
}
SIM_LANES2(pk_fp8, sim_u32, sim_f32, sim_f32, pack_small(fp8(alu), a, b, saturates(alu)))
SIM_LANES2(pk_bf8, sim_u32, sim_f32, sim_f32, pack_small(bf8(alu), a, b, saturates(alu)))

#define ROW(op, lanes)                                                                                                 \
    { SIM_OP_##op, tessera_sim_execute_vector, lanes, 0 }
#define WITH(op, lanes, detail)                                                                                        \
    { SIM_OP_##op, tessera_sim_execute_vector, lanes, detail }
static const struct sim_semantics rows[] = {
    ROW(v_cvt_i32_f32, i32_f32),
    ROW(v_cvt_u32_f32, u32_f32),
    ROW(v_cvt_i32_f64, i32_f64),
    ROW(v_cvt_u32_f64, u32_f64),
    ROW(v_cvt_f32_i32, f32_i32),
    ROW(v_cvt_f32_u32, f32_u32),
    ROW(v_cvt_f64_i32, f64_i32),
    ROW(v_cvt_f64_u32, f64_u32),
    ROW(v_cvt_f32_f64, f32_f64),
    ROW(v_cvt_f64_f32, f64_f32),
    ROW(v_cvt_rpi_i32_f32, rpi_i32_f32),
    ROW(v_cvt_flr_i32_f32, flr_i32_f32),
    ROW(v_cvt_off_f32_i4, off_f32_i4),
    ROW(v_cvt_f32_ubyte0, f32_ubyte0),
    ROW(v_cvt_f32_ubyte1, f32_ubyte1),
    ROW(v_cvt_f32_ubyte2, f32_ubyte2),
    ROW(v_cvt_f32_ubyte3, f32_ubyte3),
    ROW(v_cvt_f16_u16, f16_u16),
    ROW(v_cvt_f16_i16, f16_i16),
    ROW(v_cvt_u16_f16, u16_f16),
    ROW(v_cvt_i16_f16, i16_f16),
    ROW(v_cvt_f16_f32, f16_f32),
    ROW(v_cvt_f32_f16, f32_f16),
    ROW(v_cvt_f32_bf16, f32_bf16),
    WITH(v_cvt_pkrtz_f16_f32, pkrtz_f16, SIM_OWN_ROUNDING),
    WITH(v_cvt_pk_f16_f32, pk_f16, SIM_OWN_ROUNDING),
    WITH(v_cvt_pk_bf16_f32, pk_bf16, SIM_OWN_ROUNDING),
    ROW(v_pack_b32_f16, pack_halves),
    ROW(v_cvt_pk_u16_u32, pk_u16),
    ROW(v_cvt_pk_i16_i32, pk_i16),
    ROW(v_cvt_pknorm_i16_f32, pknorm_i16_f32),
    ROW(v_cvt_pknorm_u16_f32, pknorm_u16_f32),
    ROW(v_cvt_pknorm_i16_f16, pknorm_i16_f16),
    ROW(v_cvt_pknorm_u16_f16, pknorm_u16_f16),
    ROW(v_cvt_norm_i16_f16, norm_i16_f16),
    ROW(v_cvt_norm_u16_f16, norm_u16_f16),
    ROW(v_cvt_pk_u8_f32, pk_u8_f32),
    WITH(v_cvt_pkaccum_u8_f32, pk_u8_f32, SIM_ACCUMULATE),
    ROW(v_cvt_f32_fp8, f32_fp8),
    ROW(v_cvt_f32_bf8, f32_bf8),
    ROW(v_cvt_pk_f32_fp8, pk_f32_fp8),
    ROW(v_cvt_pk_f32_bf8, pk_f32_bf8),
    WITH(v_cvt_pk_fp8_f32, pk_fp8, SIM_KEEP_HIGH | SIM_OWN_ROUNDING),
    WITH(v_cvt_pk_bf8_f32, pk_bf8, SIM_KEEP_HIGH | SIM_OWN_ROUNDING),
};
const struct sim_semantics_list tessera_sim_vector_convert = {rows, sizeof rows / sizeof *rows};
