// SPDX-License-Identifier: MIT
// C = A B in fp32 with tiles in shared memory that the launch sizes, and sizes that are no multiples of the tile.
#include "check.h"

constexpr int TILE = 16;

template <class T> __global__ void multiply(const T *a, const T *b, T *c, int m, int n, int k) {
    extern __shared__ char memory[];
    T *left = (T *)memory, *right = left + TILE * TILE;
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    T sum = 0;
    for (int first = 0; first < k; first += TILE) {
        left[y * TILE + x] = row < m && first + x < k ? a[row * k + first + x] : T(0);
        right[y * TILE + x] = first + y < k && column < n ? b[(first + y) * n + column] : T(0);
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += left[y * TILE + i] * right[i * TILE + x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

template <class T> void check() {
    const int m = 37, n = 50, k = 29;
    std::vector<T> a(m * k), b(k * n);
    for (size_t i = 0; i < a.size(); i++) a[i] = T(i % 13) - 6;
    for (size_t i = 0; i < b.size(); i++) b[i] = T(i % 7) - 3;
    Buffer<T> da(a), db(b), dc(m * n);
    const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), block(TILE, TILE);
    multiply<T><<<grid, block, 2 * TILE * TILE * sizeof(T)>>>(da.data(), db.data(), dc.data(), m, n, k);
    HIP(hipGetLastError());
    const std::vector<T> c = dc.fetch();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            T expected = 0;
            for (int l = 0; l < k; l++) expected += a[i * k + l] * b[l * n + j];
            EXPECT(c[i * n + j] == expected);
        }
}

int main() {
    check<float>();
    check<double>();
    check<int>();
    std::puts("ok");
}
