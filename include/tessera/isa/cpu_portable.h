// SPDX-License-Identifier: MIT
// The CPU vocabulary in plain C with the vector types of gcc and clang: for any machine, without intrinsics.
// docs/vocabulary.md says what each word means.
#ifndef TESSERA_ISA_CPU_PORTABLE_H
#define TESSERA_ISA_CPU_PORTABLE_H

#include "tessera/isa/common.h"

#define LANES 4

typedef float vf __attribute__((vector_size(16)));   // LANES floats
typedef int32_t vi __attribute__((vector_size(16))); // LANES 32-bit integers
typedef uint32_t vu __attribute__((vector_size(16)));

// memory
INLINE vf v_load(const float *p) {
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void v_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
INLINE vi v_load_i(const void *p) {
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void v_store_i(void *p, vi x) { memcpy(p, &x, sizeof x); }
INLINE void v_stream_i(void *p, vi x) { memcpy(p, &x, sizeof x); }
INLINE void stream_end(void) {}
INLINE void v_load_split(const float *p, vf x[2]) {
    x[0] = (vf){p[0], p[2], p[4], p[6]};
    x[1] = (vf){p[1], p[3], p[5], p[7]};
}
INLINE vi v_load_u4(const uint8_t *p) { return (vi){p[0] & 15, p[0] >> 4, p[1] & 15, p[1] >> 4}; }
INLINE vf v_lookup(const float *p, vi codes) { return (vf){p[codes[0]], p[codes[1]], p[codes[2]], p[codes[3]]}; }
INLINE vi v_load_u8(const uint8_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
INLINE vi v_load_s8(const uint8_t *p) { return (vi){(int8_t)p[0], (int8_t)p[1], (int8_t)p[2], (int8_t)p[3]}; }
INLINE vi v_load_u16(const uint16_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
INLINE void v_store_u8(uint8_t *p, vi x) {
    for (int i = 0; i < LANES; i++) p[i] = (uint8_t)x[i];
}
INLINE void v_store_u16(uint16_t *p, vi x) {
    for (int i = 0; i < LANES; i++) p[i] = (uint16_t)x[i];
}

// floats
INLINE vf v_set1(float x) { return (vf){x, x, x, x}; }
INLINE vf v_add(vf a, vf b) { return a + b; }
INLINE vf v_sub(vf a, vf b) { return a - b; }
INLINE vf v_mul(vf a, vf b) { return a * b; }
INLINE vf v_quotient(vf a, vf b) { return a / b; }
INLINE vf v_fma(vf a, vf b, vf c) { return a * b + c; }

// integers
INLINE vi v_set1_i(int32_t x) { return (vi){x, x, x, x}; }
INLINE vi v_add_i(vi a, vi b) { return (vi)((vu)a + (vu)b); }
INLINE vi v_sub_i(vi a, vi b) { return (vi)((vu)a - (vu)b); }
INLINE vi v_and_i(vi a, vi b) { return a & b; }
INLINE vi v_or_i(vi a, vi b) { return a | b; }
INLINE vi v_xor_i(vi a, vi b) { return a ^ b; }
INLINE vi v_shl_i(vi a, int bits) { return (vi)((vu)a << (uint32_t)bits); }
INLINE vi v_shr_i(vi a, int bits) { return (vi)((vu)a >> (uint32_t)bits); }
INLINE vf v_to_f(vi a) { return __builtin_convertvector(a, vf); }
INLINE vf v_as_f(vi a) { return (vf)a; }
INLINE vi v_as_i(vf a) { return (vi)a; }
INLINE void v_mul_wide(vi a, uint32_t b, vi *high, vi *low) {
    for (int i = 0; i < LANES; i++) {
        uint64_t product = (uint64_t)(uint32_t)a[i] * b;
        (*high)[i] = (int32_t)(uint32_t)(product >> 32);
        (*low)[i] = (int32_t)(uint32_t)product;
    }
}

// choices
INLINE vf v_choose(vi mask, vf then, vf otherwise) { return (vf)((mask & (vi)then) | (~mask & (vi)otherwise)); }
INLINE vf v_if_gt_i(vi a, vi b, vf then, vf otherwise) { return v_choose(a > b, then, otherwise); }
INLINE vf v_if_equal(vf a, vf b, vf then, vf otherwise) { return v_choose(a == b, then, otherwise); }
INLINE vi v_max_i(vi a, vi b) { return (vi)v_choose(a > b, (vf)a, (vf)b); }
INLINE vf v_max(vf a, vf b) { return v_choose(a > b, a, b); }
INLINE vf v_min(vf a, vf b) { return v_choose(a < b, a, b); }
INLINE vf v_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
INLINE vf v_round(vf a) { // for |a| < 2^22: the last bit of the sum has the value 1
    const vf magic = v_set1(0x1.8p23f);
    return (a + magic) - magic;
}
INLINE vi v_to_i(vf a) { // likewise
    const vf magic = v_set1(0x1.8p23f);
    return (vi)v_choose(a == a, (vf)v_sub_i((vi)(a + magic), (vi)magic), v_set1(0.0f));
}
INLINE vf v_scale2(vf a, vf n) {
    vi exponent = (vi)(n + v_set1(0x1.8p23f)); // its low bits are those of n
    vi shifted = v_add_i((vi)a, v_shl_i(exponent, 23));
    return v_choose(n >= v_set1(-125.0f), (vf)shifted, a * v_set1(0.0f));
}

// half precision: 112 is the difference of the exponents' biases. No operand is a denormal, as the host may have them
// flushed.
INLINE vf v_load_f16(const uint16_t *p) {
    vi half = v_load_u16(p), magnitude = half & 0x7fff;
    vf normal = (vf)(v_shl_i(magnitude, 13) + (112 << 23)), denormal = v_to_f(magnitude) * v_set1(0x1p-24f);
    vf special = (vf)(v_shl_i(magnitude, 13) | 0x7f800000);
    vf value = v_choose(magnitude > 0x7bff, special, v_choose(magnitude < 0x400, denormal, normal));
    return (vf)((vi)value | v_shl_i(half & 0x8000, 16));
}
INLINE void v_store_f16(uint16_t *p, vf x) { // to nearest even
    vi bits = (vi)x, sign = v_shr_i(bits, 16) & 0x8000;
    vf a = v_abs(x);
    vi odd = v_shr_i((vi)a, 13) & 1;
    vi normal = v_shr_i((vi)a + odd + 0xfff, 13) - (112 << 10);
    vi small = (vi)(a + v_set1(0x1p-1f)) - (vi)v_set1(0x1p-1f); // steps of 2^-24
    vi value = (vi)v_choose((vi)a < 0x38800000, (vf)small, (vf)normal);
    value = (vi)v_choose((vi)a >= 0x477ff000, (vf)v_set1_i(0x7c00), (vf)value);
    value = (vi)v_choose((vi)a > 0x7f800000, (vf)v_set1_i(0x7e00), (vf)value);
    v_store_u16(p, value | sign);
}
INLINE void v_stream_u8(uint8_t *p, vi x) { v_store_u8(p, x); }
INLINE void v_stream_u16(uint16_t *p, vi x) { v_store_u16(p, x); }
INLINE void v_stream_f16(uint16_t *p, vf x) { v_store_f16(p, x); }

// x[r] lane c becomes x[c] lane r.
INLINE void v_transpose(vf x[LANES]) {
    vf t[LANES];
    for (int r = 0; r < LANES; r++) t[r] = (vf){x[0][r], x[1][r], x[2][r], x[3][r]};
    for (int r = 0; r < LANES; r++) x[r] = t[r];
}

// over all lanes
INLINE float v_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
INLINE float v_greatest(vf a) {
    const float even = a[0] > a[2] ? a[0] : a[2], odd = a[1] > a[3] ? a[1] : a[3];
    return even > odd ? even : odd;
}

// Lane r gets the sum of the lanes of x[r], by adding halves again and again.
INLINE vf v_sums(vf x[LANES]) {
    v_transpose(x);
    return (x[0] + x[2]) + (x[1] + x[3]);
}

// products: acc + a * b, where a is one fp32 word of memory in all lanes
INLINE vf v_word(const void *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return v_set1(x);
}
INLINE vf v_mac(vf acc, vf a, vf b) { return acc + a * b; }
INLINE vf v_mac_word(vf acc, const float *p, vf b) { return v_mac(acc, v_word(p), b); }

#endif
