// SPDX-License-Identifier: MIT
// Code that the compiler does not inline: recursion, calls through pointers, local arrays, virtual functions.
#include "check.h"

__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ __attribute__((noinline)) int twice(int x) { return 2 * x; }
__device__ __attribute__((noinline)) int square(int x) { return x * x; }

struct Shape {
    __device__ virtual int area() const = 0;
};

struct Square : Shape {
    int side;
    __device__ explicit Square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};

struct Bar : Shape {
    int length;
    __device__ explicit Bar(int l) : length(l) {}
    __device__ int area() const override { return 3 * length; }
};

__global__ void run(int *out) {
    const int t = threadIdx.x;
    int (*const function)(int) = t % 2 ? twice : square;
    int local[16];
    for (int i = 0; i < 16; i++) local[(i + t) % 16] = i * t;
    Square square_shape(t);
    Bar bar_shape(t);
    const Shape *shape = t % 3 ? (const Shape *)&square_shape : &bar_shape;
    out[4 * t] = fibonacci(t % 12);
    out[4 * t + 1] = function(t);
    out[4 * t + 2] = local[t % 5];
    out[4 * t + 3] = shape->area();
}

int main() {
    const int n = 128;
    Buffer<int> out(4 * n);
    run<<<1, n>>>(out.data());
    HIP(hipDeviceSynchronize());
    const std::vector<int> got = out.fetch();
    const int fibonaccis[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    for (int t = 0; t < n; t++) {
        EXPECT(got[4 * t] == fibonaccis[t % 12]);
        EXPECT(got[4 * t + 1] == (t % 2 ? 2 * t : t * t));
        EXPECT(got[4 * t + 2] == ((t % 5 - t) % 16 + 16) % 16 * t);
        EXPECT(got[4 * t + 3] == (t % 3 ? t * t : 3 * t));
    }
    std::puts("ok");
}
