// SPDX-License-Identifier: MIT
// The device library: functions of float and double against the host's.
#include <cmath>

#include "check.h"

__global__ void run(const float *x, float *y, const double *dx, double *dy, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float *f = y + 8 * i;
    f[0] = sinf(x[i]);
    f[1] = expf(x[i]);
    f[2] = logf(fabsf(x[i]) + 0.1f);
    f[3] = sqrtf(fabsf(x[i]));
    f[4] = tanhf(x[i]);
    f[5] = powf(fabsf(x[i]) + 0.5f, 1.7f);
    f[6] = erff(x[i]);
    f[7] = x[i] / (fabsf(x[i]) + 3.0f);
    double *d = dy + 4 * i;
    d[0] = exp(dx[i]);
    d[1] = cos(dx[i]);
    d[2] = sqrt(fabs(dx[i]));
    d[3] = dx[i] / 3.0;
}

static bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance * (1 + std::fabs(b)); }

int main() {
    const int n = 500;
    std::vector<float> x(n);
    std::vector<double> dx(n);
    for (int i = 0; i < n; i++) dx[i] = x[i] = (i - 250) * 0.04f;
    Buffer<float> in(x), out(8 * n);
    Buffer<double> din(dx), dout(4 * n);
    run<<<(n + 63) / 64, 64>>>(in.data(), out.data(), din.data(), dout.data(), n);
    HIP(hipDeviceSynchronize());
    const std::vector<float> y = out.fetch();
    const std::vector<double> dy = dout.fetch();
    for (int i = 0; i < n; i++) {
        const double v = x[i], expected[8] = {std::sin(v),
                                              std::exp(v),
                                              std::log(std::fabs(v) + 0.1),
                                              std::sqrt(std::fabs(v)),
                                              std::tanh(v),
                                              std::pow(std::fabs(v) + 0.5, 1.7),
                                              std::erf(v),
                                              v / (std::fabs(v) + 3)};
        for (int k = 0; k < 8; k++) EXPECT(near(y[8 * i + k], expected[k], 2e-6));
        const double wide[4] = {std::exp(v), std::cos(v), std::sqrt(std::fabs(v)), v / 3};
        for (int k = 0; k < 4; k++) EXPECT(near(dy[4 * i + k], wide[k], 1e-14));
    }
    std::puts("ok");
}
