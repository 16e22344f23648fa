// SPDX-License-Identifier: MIT
// C = A B in fp16 with fp32 sums by v_mfma_f32_32x32x8f16: each wave makes 32 x 32 of C, K in steps of 8.
#include "check.h"

typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));

constexpr int M = 128, N = 96, K = 64;

__global__ __launch_bounds__(256) void multiply(const _Float16 *a, const _Float16 *b, float *c) {
    const int lane = threadIdx.x % 64, wave = threadIdx.x / 64;
    const int row = 32 * wave, column = 32 * blockIdx.x, within = lane % 32, half = lane / 32;
    float16v sum = {};
    for (int k = 0; k < K; k += 8) {
        half4 left, right;
        for (int i = 0; i < 4; i++) {
            left[i] = a[(row + within) * K + k + 4 * half + i];
            right[i] = b[(k + 4 * half + i) * N + column + within];
        }
        sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sum, 0, 0, 0);
    }
    for (int i = 0; i < 16; i++) c[(row + 8 * (i / 4) + 4 * half + i % 4) * N + column + within] = sum[i];
}

int main() {
    std::vector<_Float16> a(M * K), b(K * N);
    for (int i = 0; i < M * K; i++) a[i] = (_Float16)((i * 7 % 23 - 11) * 0.25f);
    for (int i = 0; i < K * N; i++) b[i] = (_Float16)((i * 5 % 19 - 9) * 0.5f);
    Buffer<_Float16> da(a), db(b);
    Buffer<float> dc(M * N);
    multiply<<<N / 32, 64 * (M / 32)>>>(da.data(), db.data(), dc.data());
    HIP(hipDeviceSynchronize());
    const std::vector<float> c = dc.fetch();
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float expected = 0; // exact: small multiples of 1/8
            for (int k = 0; k < K; k++) expected += (float)a[m * K + k] * (float)b[k * N + n];
            EXPECT(c[m * N + n] == expected);
        }
    std::puts("ok");
}
