// SPDX-License-Identifier: MIT
// Code of many kinds for the compiler to translate; nothing runs it.
#include "device.h"

typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float2_ __attribute__((ext_vector_type(2)));
typedef float float4_ __attribute__((ext_vector_type(4)));
typedef float float16_ __attribute__((ext_vector_type(16)));
typedef double double4_ __attribute__((ext_vector_type(4)));
typedef int int4_ __attribute__((ext_vector_type(4)));

static u32 id(void) {
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

KERNEL integers(GLOBAL u32 *out, const GLOBAL u32 *in, int n) {
    u32 x = in[id()], y = in[id() + n], sum = 0;
    for (int i = 0; i < n; i++) {
        if (x & 1)
            sum += x * y + (x >> (i & 31));
        else
            sum ^= y / (x | 1) + (u32)__builtin_clz(x | 1) + (u32)__builtin_popcount(y);
        x = x << 5 | x >> 27;
        y -= sum;
    }
    out[id()] = sum + (u32)((u64)x * y >> 32) + x % (y | 1);
}

KERNEL wide(GLOBAL u64 *out, const GLOBAL u64 *in, long n) {
    u64 x = in[id()], y = in[id() + 1];
    for (long i = 0; i < n; i++) x = x * y + (x >> 17 | y << 3) - (u64)((long)y >> 5) + (x < y ? x : y);
    out[id()] = x / (y | 1);
}

KERNEL floats(GLOBAL float *out, const GLOBAL float *in, double d) {
    const float x = in[id()], y = in[id() + 64];
    float z = __builtin_fmaf(x, y, -x) / (y + 1.5f) + __builtin_fabsf(x) * 0.15915494f;
    z += __builtin_sqrtf(z) + __builtin_floorf(x) + __builtin_amdgcn_exp2f(y) + __builtin_amdgcn_rcpf(x);
    z = __builtin_fmaxf(z, -y) + (float)(int)x + (float)(u32)y + __builtin_amdgcn_fmed3f(x, y, z);
    d = d * (double)z + (double)x / (double)y - __builtin_fabs((double)y);
    out[id()] = z + (float)d + (float)(long)d;
}

KERNEL halves(GLOBAL half2 *out, const GLOBAL half2 *in) {
    const half2 x = in[id()], y = in[id() + 9];
    half2 z = x * y + x - y / (half2)(_Float16)3;
    z[0] = __builtin_fabsf16(z[1]) + (_Float16)(short)x[0] - (_Float16)0.5f;
    out[id()] = z + (half2){x[1], y[0]};
}

KERNEL shared(GLOBAL float *out, GLOBAL u32 *counter) {
    LDS float tile[256];
    LDS u32 count;
    const u32 lane = __builtin_amdgcn_workitem_id_x();
    tile[lane] = out[id()];
    barrier();
    float4_ v = *(__attribute__((address_space(3))) float4_ *)&tile[lane & 124];
    __atomic_fetch_add(&count, lane, __ATOMIC_RELAXED);
    __atomic_fetch_max(counter, lane, __ATOMIC_SEQ_CST);
    u32 expected = lane;
    __atomic_compare_exchange_n(counter + 1, &expected, 7u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    out[id()] = v[0] + v[1] * tile[lane ^ 1] + (float)expected + (float)count;
}

KERNEL lanes(GLOBAL int *out) {
    int x = out[id()];
    x += __builtin_amdgcn_update_dpp(0, x, 0x111, 0xf, 0xf, 1) + __builtin_amdgcn_ds_bpermute(x * 4, x);
    x += __builtin_amdgcn_ds_swizzle(x, 0x1f) + __builtin_amdgcn_readlane(x, 5) + __builtin_amdgcn_readfirstlane(x);
    x += (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)) +
         (int)__builtin_amdgcn_perm((u32)x, 3u, 0x01000302u);
    out[id()] = __builtin_amdgcn_sdot4(x, x + 1, x, 0) + (x > 3 ? out[7] : (int)(signed char)x) + (short)(x >> 16);
}

static NOINLINE int recurse(int n, GLOBAL int *p) { return n < 2 ? p[n] : recurse(n - 1, p) + recurse(n - 2, p); }

KERNEL scratch(GLOBAL int *out, int n) {
    volatile int local[40];
    for (int i = 0; i < 40; i++) local[i] = i * n;
    int (*function)(int, GLOBAL int *) = recurse;
    out[id()] = local[n & 31] + function(n & 7, out);
    switch (n) {
    case 0:
        out[1] = 4;
        break;
    case 1:
        out[2] = local[9];
        break;
    case 2:
        __builtin_trap();
    default:
        ((volatile char *)out)[n] = (char)n;
        break;
    }
}

KERNEL matrices(GLOBAL float16_ *out, const GLOBAL half4 *in, GLOBAL double4_ *doubles) {
    float16_ c = out[id()];
    for (int i = 0; i < 8; i++) c = __builtin_amdgcn_mfma_f32_32x32x8f16(in[i], in[i + 1], c, 0, 0, 0);
    float4_ small = {c[0], c[1], c[2], c[3]};
    small = __builtin_amdgcn_mfma_f32_4x4x4f16(in[0], in[1], small, 1, 0, 2);
    c[0] = small[3];
    out[id()] = c;
    doubles[id()] = __builtin_amdgcn_mfma_f64_16x16x4f64(doubles[0][1], doubles[1][0], doubles[2], 0, 0, 0);
}

KERNEL packed(GLOBAL float2_ *out, GLOBAL double *d, GLOBAL half2 *h) {
    const float2_ x = out[id()], y = out[id() + 1];
    out[id()] = x * y + (float2_){y[1], x[0]} * 2.0f;
    __builtin_amdgcn_global_atomic_fadd_f64(d, *d);
    __builtin_amdgcn_global_atomic_fadd_v2f16(h, *h);
    __builtin_amdgcn_s_sleep(2);
    __builtin_amdgcn_s_setprio(1);
    __builtin_amdgcn_sched_barrier(0);
    __builtin_amdgcn_s_waitcnt(0xf70);
}
