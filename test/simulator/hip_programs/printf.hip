// SPDX-License-Identifier: MIT
// printf in kernels: what arrives at the program's own stdout is compared with what the host prints.
#include "check.h"

#include <string>
#include <unistd.h>

__device__ __host__ static const char *word(int i) {
    return i % 2 ? "odd" : "even and rather longer than a packet of words holds";
}

__global__ void print(int first) {
    const int i = first + threadIdx.x;
    if (threadIdx.x % 3 == 1) return;
    printf("%d %5d|%-6d|%+d %u %x %#lx %lld\n", i, i, i, i, 3000000000u + i, 255 + i, 1ul << (40 + i),
           -(1ll << 50) - i);
    printf("[%s] %c %% %*d %.*f %8.3f %g %e\n", word(i), 'a' + i, 6, i, 3, i / 3.0, i * 0.5f, i * 1e10, 1.5);
    if (threadIdx.x == 5) printf("no argument\n");
}

template <class... Arguments> static void append(std::string &text, const char *format, Arguments... arguments) {
    char line[256];
    std::snprintf(line, sizeof line, format, arguments...);
    text += line;
}

// Lanes print in turn, statement by statement.
static std::string expected(int first) {
    std::string text;
    for (int t = 0; t < 8; t++) {
        const int i = first + t;
        if (t % 3 == 1) continue;
        append(text, "%d %5d|%-6d|%+d %u %x %#lx %lld\n", i, i, i, i, 3000000000u + i, 255 + i, 1ul << (40 + i),
               -(1ll << 50) - i);
    }
    for (int t = 0; t < 8; t++) {
        const int i = first + t;
        if (t % 3 == 1) continue;
        append(text, "[%s] %c %% %*d %.*f %8.3f %g %e\n", word(i), 'a' + i, 6, i, 3, i / 3.0, i * 0.5f, i * 1e10, 1.5);
    }
    return text + "no argument\n";
}

int main() {
    std::fflush(stdout);
    FILE *file = std::tmpfile();
    const int terminal = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    print<<<1, 8>>>(0);
    print<<<1, 8>>>(4);
    const hipError_t error = hipDeviceSynchronize();
    std::fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    EXPECT(error == hipSuccess);
    std::string got;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) got += (char)c;
    EXPECT(got == expected(0) + expected(4));
    std::puts("ok");
}
