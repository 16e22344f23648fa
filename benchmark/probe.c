// SPDX-License-Identifier: MIT
// The limits that attention on this CPU is measured against: multiply-adds from registers, and reading memory.
//
//   benchmark_probe -threads=N      one line of JSON: GFLOP/s of each kind that the processor has, GB/s read
//
// Every thread runs the same loop, and all start together. Rates of multiply-adds are of the same time and add up. That
// of reading is of the best of several passes, from the first thread's start to the last one's end: what memory gives
// varies from pass to pass, and its limit is what it can give.
#define _GNU_SOURCE

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if !defined(__x86_64__)
int main(void) {
    fprintf(stderr, "benchmark_probe: only for x86-64\n");
    return 1;
}
#else

#include <cpuid.h>
#include <immintrin.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define UNROLL _Pragma("GCC unroll 24")
enum { CHAINS = 24, STEPS = 1 << 14, PASSES = 12, MAX_THREADS = 1024 };
static const double SECONDS = 0.2;
static const size_t READ_BYTES = (size_t)256 << 20; // of all threads: beyond any cache

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    double (*pass)(struct worker *); // does some work and returns how much: FLOP or bytes
    const char *memory;
    size_t bytes;
    double rate;
    float sink;
};

// ---- multiply-adds: CHAINS independent sums hide the latency of two units

__attribute__((target("avx512f"))) static double fma_avx512(struct worker *w) {
    __m512 sum[CHAINS], a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
    UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_ps((float)i);
    for (int n = 0; n < STEPS; n++) UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_fmadd_ps(sum[i], a, b);
    UNROLL
    for (int i = 1; i < CHAINS; i++) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    w->sink += _mm512_cvtss_f32(sum[0]);
    return 2.0 * 16 * CHAINS * STEPS;
}

__attribute__((target("avx2,fma"))) static double fma_avx2(struct worker *w) {
    enum { N = 12 };
    __m256 sum[N], a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
    UNROLL
    for (int i = 0; i < N; i++) sum[i] = _mm256_set1_ps((float)i);
    for (int n = 0; n < STEPS; n++) UNROLL
    for (int i = 0; i < N; i++) sum[i] = _mm256_fmadd_ps(sum[i], a, b);
    UNROLL
    for (int i = 1; i < N; i++) sum[0] = _mm256_add_ps(sum[0], sum[i]);
    w->sink += _mm256_cvtss_f32(sum[0]);
    return 2.0 * 8 * N * STEPS;
}

__attribute__((target("avx512f,avx512bf16"))) static double dot_bf16(struct worker *w) {
    __m512 sum[CHAINS];
    const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f003f00), b = (__m512bh)_mm512_set1_epi32(0x3e803e80);
    UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_ps((float)i);
    for (int n = 0; n < STEPS; n++) UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_dpbf16_ps(sum[i], a, b);
    UNROLL
    for (int i = 1; i < CHAINS; i++) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    w->sink += _mm512_cvtss_f32(sum[0]);
    return 4.0 * 16 * CHAINS * STEPS;
}

// Four sums hide the latency of the one unit. Each pair of products shares an operand, as in the product of matrices.
__attribute__((target("amx-tile,amx-bf16"))) static double tile_bf16(struct worker *w) {
    static const struct { // static: gcc 12 takes only 8 bytes of it for read, and leaves out what is not
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _Static_assert(sizeof shape == 64, "LDTILECFG reads 64 bytes");
    uint16_t operand[16][32];
    float sum[16][16];
    for (int i = 0; i < 16 * 32; i++) operand[i / 32][i % 32] = 0x3e80; // 0.25
    __asm__ volatile("" ::: "memory");                                  // nor does it see that the operand is read
    _tile_loadconfig(&shape);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, operand, sizeof *operand);
    _tile_loadd(5, operand, sizeof *operand);
    _tile_loadd(6, operand, sizeof *operand);
    _tile_loadd(7, operand, sizeof *operand);
    for (int n = 0; n < STEPS; n++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 5, 6);
        _tile_dpbf16ps(2, 5, 7);
        _tile_dpbf16ps(3, 4, 7);
    }
    _tile_stored(0, sum, sizeof *sum);
    _tile_release();
    w->sink += sum[0][0];
    return 2.0 * 16 * 16 * 32 * 4 * STEPS;
}

// Whether the processor has them, and Linux gives this process the registers.
static bool may_use_tiles(void) {
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 && d & AMX_TILE &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

// ---- reading

__attribute__((target("avx2"))) static double read_memory(struct worker *w) {
    __m256i sum[8];
    UNROLL
    for (int i = 0; i < 8; i++) sum[i] = _mm256_setzero_si256();
    for (size_t at = 0; at < w->bytes; at += 8 * sizeof *sum) UNROLL
    for (int i = 0; i < 8; i++)
        sum[i] = _mm256_xor_si256(sum[i], _mm256_load_si256((const __m256i *)(w->memory + at) + i));
    UNROLL
    for (int i = 1; i < 8; i++) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
    w->sink += (float)_mm256_extract_epi32(sum[0], 0);
    return (double)w->bytes;
}

// ---- threads

static void *work(void *argument) {
    struct worker *w = argument;
    w->pass(w); // warms up
    pthread_barrier_wait(w->start);
    double done = 0, begin = now(), seconds;
    do {
        done += w->pass(w);
        seconds = now() - begin;
    } while (seconds < SECONDS);
    w->rate = done / seconds;
    return NULL;
}

static void *read_passes(void *argument) {
    struct worker *w = argument;
    w->pass(w); // touches the memory
    for (int n = 0; n < PASSES; n++) {
        pthread_barrier_wait(w->start);
        const double begin = now(), done = w->pass(w);
        pthread_barrier_wait(w->start);
        const double rate = done / (now() - begin);
        if (rate > w->rate) w->rate = rate;
    }
    return NULL;
}

// Rate of all threads together, in 1e9 a second.
static double measure(int threads, double (*pass)(struct worker *), const char *memory) {
    static struct worker workers[MAX_THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    const size_t bytes = READ_BYTES / (size_t)threads / 256 * 256;
    double rate = 0;
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){.start = &start, .pass = pass, .bytes = bytes};
        if (memory) workers[i].memory = memory + (size_t)i * bytes;
        if (pthread_create(&workers[i].thread, NULL, memory ? read_passes : work, &workers[i]) != 0) {
            fprintf(stderr, "benchmark_probe: thread %d of %d cannot start\n", i, threads);
            exit(4);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        rate += workers[i].rate;
    }
    pthread_barrier_destroy(&start);
    return rate / 1e9;
}

int main(int argc, char **argv) {
    const char option[] = "-threads=";
    char *end = NULL;
    const long threads = argc == 2 && strncmp(argv[1], option, sizeof option - 1) == 0
                             ? strtol(argv[1] + sizeof option - 1, &end, 10)
                             : 0;
    if (threads < 1 || threads > MAX_THREADS || *end) {
        fprintf(stderr, "usage: benchmark_probe -threads=N, N from 1 to %d\n", MAX_THREADS);
        return 1;
    }
    char *memory = aligned_alloc(4096, READ_BYTES);
    if (!memory) {
        fprintf(stderr, "benchmark_probe: no memory\n");
        return 4;
    }
    memset(memory, 1, READ_BYTES);
    __builtin_cpu_init();
    printf("{\"threads\": %ld", threads);
    if (__builtin_cpu_supports("avx512f")) printf(", \"fma_avx512\": %.1f", measure((int)threads, fma_avx512, NULL));
    if (__builtin_cpu_supports("fma")) printf(", \"fma_avx2\": %.1f", measure((int)threads, fma_avx2, NULL));
    if (__builtin_cpu_supports("avx512bf16")) printf(", \"dot_bf16\": %.1f", measure((int)threads, dot_bf16, NULL));
    if (may_use_tiles()) printf(", \"tile_bf16\": %.1f", measure((int)threads, tile_bf16, NULL));
    printf(", \"read\": %.1f}\n", measure((int)threads, read_memory, memory));
    free(memory);
    return 0;
}
#endif
