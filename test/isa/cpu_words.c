// SPDX-License-Identifier: MIT
// Checks every word of a CPU vocabulary, lane by lane, against a scalar statement of its meaning. Compiled once for
// each vocabulary: -DVOCABULARY='"tessera/isa/cpu_avx2.h"' with the flags of its target. Exit status: 0 all passed, 1
// some failed, 77 this CPU lacks the instructions.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include VOCABULARY

#include "tessera/isa/cpu_common.h"
#ifdef TESSERA_ISA_CPU_AMX_H
#include <sys/syscall.h>
#endif
#ifdef TESSERA_ISA_CPU_AVX512FP16_H
#include <cpuid.h>
#endif

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

// ---- framework -----------------------------------------------------------------------------------------------------

typedef union {
    float f[LANES];
    int32_t i[LANES];
    uint32_t u[LANES];
} lanes;

static const char *test;  // the test that runs
static int failed_checks; // of this test

// Counts a failed check; returns whether to print it, which only the first few are.
static bool complain(void) { return ++failed_checks <= 8; }

static bool same_bits(uint32_t a, uint32_t b) { return a == b; }

static float as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t as_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Whether both are the same number, where -0 differs from 0, and all NaNs are the same.
static bool same_float(uint32_t a, uint32_t b) { return a == b || (isnan(as_float(a)) && isnan(as_float(b))); }

// Whether both are the same number, where -0 equals 0.
static bool same_value(uint32_t a, uint32_t b) { return as_float(a) == as_float(b); }

static void check(const char *word, bool (*same)(uint32_t, uint32_t), const lanes *got, const lanes *want, int inputs,
                  const lanes *input) {
    for (int l = 0; l < LANES; l++) {
        if (same(got->u[l], want->u[l]) || !complain()) continue;
        printf("%s: %s, lane %d:", test, word, l);
        for (int k = 0; k < inputs; k++) printf(" %08x (%g)", input[k].u[l], input[k].f[l]);
        printf(" gave %08x (%g), not %08x (%g)\n", got->u[l], got->f[l], want->u[l], want->f[l]);
    }
}

static lanes of_f(vf x) {
    lanes list;
    v_store(list.f, x);
    return list;
}

static lanes of_i(vi x) {
    lanes list;
    v_store_i(list.i, x);
    return list;
}

static uint32_t random_bits(void) { // xorshift
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

// ---- floats --------------------------------------------------------------------------------------------------------

static const uint32_t edges[] = {
    0x00000000, 0x80000000,                                     // 0, -0
    0x00000001, 0x80000001, 0x007fffff, 0x807fffff,             // denormals
    0x00800000, 0x80800000,                                     // least normal
    0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff,             // 1, -1, and about 1
    0x3f000000, 0x3fc00000, 0x40200000, 0xc0200000, 0x40490fdb, // 0.5, 1.5, 2.5, -2.5, pi
    0x4affffff, 0x4b000000, 0xcb000001,                         // about 2^23
    0x7e967699, 0xfe967699, 0x7f7fffff, 0xff7fffff,             // 1e38, -1e38, greatest
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,             // inf, -inf, NaN, -NaN
    0x7f800001, 0xff800001,                                     // signaling NaN
};

// A different edge value in each lane. Over all i, every lane sees every value.
static lanes edge(int i, int step) {
    lanes x;
    for (int l = 0; l < LANES; l++) x.u[l] = edges[(i + l * step) % COUNT(edges)];
    return x;
}

static float add(float a, float b) { return a + b; }
static float sub(float a, float b) { return a - b; }
static float mul(float a, float b) { return a * b; }
static float max(float a, float b) { return a > b ? a : b; } // b where either is NaN
static float min(float a, float b) { return a < b ? a : b; }

static void test_float_words(void) {
    static const struct {
        const char *word;
        vf (*vector)(vf, vf);
        float (*scalar)(float, float);
    } words[] = {{"v_add", v_add, add},
                 {"v_sub", v_sub, sub},
                 {"v_mul", v_mul, mul},
                 {"v_max", v_max, max},
                 {"v_min", v_min, min}};
    for (int w = 0; w < COUNT(words); w++)
        for (int i = 0; i < COUNT(edges); i++)
            for (int j = 0; j < COUNT(edges); j++) {
                const lanes in[2] = {edge(i, 1), edge(j, 3)},
                            got = of_f(words[w].vector(v_load(in[0].f), v_load(in[1].f)));
                lanes want;
                for (int l = 0; l < LANES; l++) want.f[l] = words[w].scalar(in[0].f[l], in[1].f[l]);
                check(words[w].word, same_float, &got, &want, 2, in);
            }
}

// a * b + c with one rounding or with two: which of them is the vocabulary's choice.
static void check_fma(const char *word, vf result, const lanes in[3]) {
    const lanes got = of_f(result);
    lanes want;
    for (int l = 0; l < LANES; l++) {
        const volatile float product = in[0].f[l] * in[1].f[l];
        want.f[l] = fmaf(in[0].f[l], in[1].f[l], in[2].f[l]);
        if (!same_float(got.u[l], want.u[l])) want.f[l] = product + in[2].f[l];
    }
    check(word, same_float, &got, &want, 3, in);
}

// Magnitudes from 2^-60 to 2^60 of either sign, within 2^-23; NaN for NaN.
static void test_quotient(void) {
    for (int i = 0; i < 1 << 18; i++) {
        lanes in[2];
        for (int x = 0; x < 2; x++)
            for (int l = 0; l < LANES; l++) {
                in[x].f[l] = ldexpf(1.0f + (float)(random_bits() >> 9) * 0x1p-23f, (int)(random_bits() % 120) - 60);
                in[x].u[l] |= random_bits() & 0x80000000u;
            }
        const lanes got = of_f(v_quotient(v_load(in[0].f), v_load(in[1].f)));
        lanes want;
        for (int l = 0; l < LANES; l++) {
            const double exact = (double)in[0].f[l] / in[1].f[l];
            want.f[l] = fabs(got.f[l] / exact - 1.0) <= 0x1p-23 ? got.f[l] : (float)exact;
        }
        check("v_quotient", same_bits, &got, &want, 2, in);
    }
    const lanes want = of_f(v_set1(NAN)), first = of_f(v_quotient(v_set1(NAN), v_set1(1.0f))),
                second = of_f(v_quotient(v_set1(1.0f), v_set1(NAN)));
    check("v_quotient of NaN", same_float, &first, &want, 0, NULL);
    check("v_quotient by NaN", same_float, &second, &want, 0, NULL);
}

static void test_fma(void) {
    for (int i = 0; i < COUNT(edges); i++)
        for (int j = 0; j < COUNT(edges); j++)
            for (int k = 0; k < COUNT(edges); k++) {
                const lanes in[3] = {edge(i, 1), edge(j, 3), edge(k, 5)};
                const vf a = v_load(in[0].f), b = v_load(in[1].f), c = v_load(in[2].f);
                check_fma("v_fma", v_fma(a, b, c), in);
                check_fma("v_mac", v_mac(c, a, b), in);
                const lanes word[3] = {of_f(v_set1(in[0].f[0])), in[1], in[2]};
                check_fma("v_mac_word", v_mac_word(c, in[0].f, b), word);
            }
}

static void test_unary_words(void) {
    for (int i = 0; i < COUNT(edges); i++) {
        const lanes in = edge(i, 1);
        lanes want, got = of_f(v_abs(v_load(in.f)));
        for (int l = 0; l < LANES; l++) want.u[l] = in.u[l] & 0x7fffffff;
        check("v_abs", same_float, &got, &want, 1, &in);

        got = of_f(v_set1(as_float(edges[i])));
        for (int l = 0; l < LANES; l++) want.u[l] = edges[i];
        check("v_set1", same_float, &got, &want, 0, NULL);
    }
    for (int i = -32768; i < 32768; i += LANES) { // quarters, so halves as well
        lanes in, want;
        for (int l = 0; l < LANES; l++) {
            in.f[l] = (float)(i + l) * 0.25f;
            want.f[l] = rintf(in.f[l]);
        }
        const lanes got = of_f(v_round(v_load(in.f)));
        check("v_round", same_value, &got, &want, 1, &in);
    }
}

// To the nearest integer, as v_round; of NaN the low half is 0.
static void test_to_i(void) {
    for (int i = -32768; i < 32768; i += LANES) {
        lanes in, want;
        for (int l = 0; l < LANES; l++) {
            in.f[l] = (float)(i + l) * 0.25f;
            want.i[l] = (int32_t)rintf(in.f[l]);
        }
        const lanes got = of_i(v_to_i(v_load(in.f)));
        check("v_to_i", same_bits, &got, &want, 1, &in);
    }
    const uint32_t nans[] = {0x7fc00000, 0xffc00001, 0x7fffffff, 0x7f812345};
    for (int i = 0; i < COUNT(nans); i++) {
        lanes in, got, want = {.u = {0}};
        for (int l = 0; l < LANES; l++) in.u[l] = nans[i];
        got = of_i(v_to_i(v_load(in.f)));
        for (int l = 0; l < LANES; l++) got.u[l] &= 0xffff;
        check("v_to_i of NaN", same_bits, &got, &want, 1, &in);
    }
}

static void test_round_limits(void) {
    static const float numbers[] = {0x1p-149f,      0x1p-30f,        0x1.fffffep-2f,
                                    0x1.000002p-1f, 0x1.fffff8p+21f, 0x1.fffffcp+21f};
    for (int i = 0; i < COUNT(numbers); i++) {
        lanes in, want;
        for (int l = 0; l < LANES; l++) {
            in.f[l] = l % 2 ? -numbers[i] : numbers[i];
            want.f[l] = rintf(in.f[l]);
        }
        const lanes got = of_f(v_round(v_load(in.f)));
        check("v_round", same_value, &got, &want, 1, &in);
    }
}

// v_scale2(a, n) = a * 2^n for a in [1/2, 2); 0 where n < -125.
static void test_scale2(void) {
    for (int n = -160; n <= 126; n++) {
        lanes in[2], want;
        for (int l = 0; l < LANES; l++) {
            in[0].f[l] = 0.5f + 1.5f * (float)l / LANES;
            in[1].f[l] = (float)n;
            want.f[l] = n < -125 ? 0.0f : ldexpf(in[0].f[l], n);
        }
        const lanes got = of_f(v_scale2(v_load(in[0].f), v_load(in[1].f)));
        check("v_scale2", same_bits, &got, &want, 2, in);
    }
    const lanes nan = of_f(v_scale2(v_set1(NAN), v_set1(NAN))), want = of_f(v_set1(NAN));
    check("v_scale2 of NaN", same_float, &nan, &want, 0, NULL);
}

// ---- integers and choices ------------------------------------------------------------------------------------------

static uint32_t add_i(uint32_t a, uint32_t b) { return a + b; }
static uint32_t sub_i(uint32_t a, uint32_t b) { return a - b; }
static uint32_t and_i(uint32_t a, uint32_t b) { return a & b; }
static uint32_t or_i(uint32_t a, uint32_t b) { return a | b; }
static uint32_t xor_i(uint32_t a, uint32_t b) { return a ^ b; }

static uint32_t max_i(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }

static void test_integer_words(void) {
    static const struct {
        const char *word;
        vi (*vector)(vi, vi);
        uint32_t (*scalar)(uint32_t, uint32_t);
    } words[] = {{"v_add_i", v_add_i, add_i}, {"v_sub_i", v_sub_i, sub_i}, {"v_and_i", v_and_i, and_i},
                 {"v_or_i", v_or_i, or_i},    {"v_max_i", v_max_i, max_i}, {"v_xor_i", v_xor_i, xor_i}};
    for (int w = 0; w < COUNT(words); w++)
        for (int i = 0; i < COUNT(edges); i++)
            for (int j = 0; j < COUNT(edges); j++) {
                const lanes in[2] = {edge(i, 1), edge(j, 3)};
                const lanes got = of_i(words[w].vector(v_load_i(in[0].i), v_load_i(in[1].i)));
                lanes want;
                for (int l = 0; l < LANES; l++) want.u[l] = words[w].scalar(in[0].u[l], in[1].u[l]);
                check(words[w].word, same_bits, &got, &want, 2, in);
            }
}

static void test_shifts(void) {
    for (int i = 0; i < COUNT(edges); i++)
        for (int bits = 0; bits < 32; bits++) {
            const lanes in = edge(i, 1);
            const lanes left = of_i(v_shl_i(v_load_i(in.i), bits)), right = of_i(v_shr_i(v_load_i(in.i), bits));
            lanes want_left, want_right;
            for (int l = 0; l < LANES; l++) {
                want_left.u[l] = in.u[l] << bits;
                want_right.u[l] = in.u[l] >> bits;
            }
            check("v_shl_i", same_bits, &left, &want_left, 1, &in);
            check("v_shr_i", same_bits, &right, &want_right, 1, &in);
        }
}

static void test_int_and_float(void) {
    for (int i = 0; i < COUNT(edges); i++) {
        const lanes in = edge(i, 1);
        lanes got = of_f(v_to_f(v_load_i(in.i))), want;
        for (int l = 0; l < LANES; l++) want.f[l] = (float)in.i[l];
        check("v_to_f", same_bits, &got, &want, 1, &in);
        got = of_f(v_as_f(v_load_i(in.i)));
        check("v_as_f", same_bits, &got, &in, 1, &in);
        got = of_i(v_as_i(v_load(in.f)));
        check("v_as_i", same_bits, &got, &in, 1, &in);
        got = of_i(v_set1_i((int32_t)edges[i]));
        for (int l = 0; l < LANES; l++) want.u[l] = edges[i];
        check("v_set1_i", same_bits, &got, &want, 0, NULL);
    }
}

static void test_mul_wide(void) {
    for (int i = 0; i < COUNT(edges); i++)
        for (int j = 0; j < COUNT(edges) + 2; j++) {
            const uint32_t factor = j < COUNT(edges) ? edges[j] : j == COUNT(edges) ? 0xD2511F53u : 0xffffffffu;
            const lanes in = edge(i, 1);
            lanes want_high, want_low;
            vi high, low;
            v_mul_wide(v_load_i(in.i), factor, &high, &low);
            for (int l = 0; l < LANES; l++) {
                const uint64_t product = (uint64_t)in.u[l] * factor;
                want_high.u[l] = (uint32_t)(product >> 32);
                want_low.u[l] = (uint32_t)product;
            }
            const lanes got_high = of_i(high), got_low = of_i(low);
            check("v_mul_wide, high", same_bits, &got_high, &want_high, 1, &in);
            check("v_mul_wide, low", same_bits, &got_low, &want_low, 1, &in);
        }
}

static void test_choices(void) {
    lanes then, otherwise;
    for (int l = 0; l < LANES; l++) {
        then.u[l] = 0x7f800001u + (uint32_t)l; // signaling NaNs: the bits must pass as they are
        otherwise.u[l] = 0x80000000u + (uint32_t)l;
    }
    for (int i = 0; i < COUNT(edges); i++)
        for (int j = 0; j < COUNT(edges); j++) {
            const lanes in[2] = {edge(i, 1), edge(j, 3)};
            const vf t = v_load(then.f), o = v_load(otherwise.f);
            const lanes greater = of_f(v_if_gt_i(v_load_i(in[0].i), v_load_i(in[1].i), t, o));
            const lanes equal = of_f(v_if_equal(v_load(in[0].f), v_load(in[1].f), t, o));
            lanes want_greater, want_equal;
            for (int l = 0; l < LANES; l++) {
                want_greater.u[l] = in[0].i[l] > in[1].i[l] ? then.u[l] : otherwise.u[l];
                want_equal.u[l] = in[0].f[l] == in[1].f[l] ? then.u[l] : otherwise.u[l];
            }
            check("v_if_gt_i", same_bits, &greater, &want_greater, 2, in);
            check("v_if_equal", same_bits, &equal, &want_equal, 2, in);
        }
}

// Moves keep every bit, since packed words of any kind are moved as floats.
static void test_transpose(void) {
    lanes rows[LANES];
    vf x[LANES];
    for (int r = 0; r < LANES; r++) {
        for (int c = 0; c < LANES; c++) rows[r].u[c] = 0x7f800001u + (uint32_t)(r * 256 + c);
        x[r] = v_load(rows[r].f);
    }
    v_transpose(x);
    for (int r = 0; r < LANES; r++) {
        const lanes got = of_f(x[r]);
        lanes want;
        for (int c = 0; c < LANES; c++) want.u[c] = rows[c].u[r];
        check("v_transpose", same_bits, &got, &want, 0, NULL);
    }
}

// Sums of small integers are exact in any order.
static void test_sums(void) {
    lanes rows[LANES], want;
    vf x[LANES];
    for (int r = 0; r < LANES; r++) {
        want.f[r] = 0;
        for (int c = 0; c < LANES; c++) {
            rows[r].f[c] = (float)((r * 37 + c * c * 11) % 256 << (c % 4)) * (r % 2 ? 1.0f : -1.0f);
            want.f[r] += rows[r].f[c];
        }
        x[r] = v_load(rows[r].f);
    }
    const lanes got = of_f(v_sums(x));
    check("v_sums", same_bits, &got, &want, 0, NULL);
    for (int r = 0; r < LANES; r++) {
        lanes sum, most, want_sum, want_most;
        for (int c = 0; c < LANES; c++) {
            want_sum.f[c] = want.f[r];
            want_most.f[c] = rows[r].f[0];
            for (int i = 1; i < LANES; i++) want_most.f[c] = fmaxf(want_most.f[c], rows[r].f[i]);
            sum.f[c] = v_sum(v_load(rows[r].f));
            most.f[c] = v_greatest(v_load(rows[r].f));
        }
        check("v_sum", same_bits, &sum, &want_sum, 1, &rows[r]);
        check("v_greatest", same_bits, &most, &want_most, 1, &rows[r]);
    }
}

// ---- memory --------------------------------------------------------------------------------------------------------

// A page between two without access: a read or write past either end stops the program at once.
static uint8_t *page;
static size_t page_bytes;

static void on_fault(int signal_number) {
    (void)signal_number;
    static const char text[] = ": reads or writes past its operand\n";
    if (write(STDOUT_FILENO, test, strlen(test)) < 0 || write(STDOUT_FILENO, text, sizeof text - 1) < 0) _exit(2);
    _exit(1);
}

static bool make_page(void) {
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *all = mmap(NULL, 3 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page_bytes, page_bytes, PROT_READ | PROT_WRITE)) return false;
    page = all + page_bytes;
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    return true;
}

// A place for `bytes` bytes: 0 at the page's beginning, 1 at its end, 2 in between.
static uint8_t *place(int where, size_t bytes) {
    return where == 0 ? page : where == 1 ? page + page_bytes - bytes : page + 12;
}

static void fill_page(void) {
    for (size_t n = 0; n < page_bytes; n++) page[n] = (uint8_t)random_bits();
}

static uint32_t load_bits(const uint8_t *p, int bytes) {
    uint32_t bits = 0;
    memcpy(&bits, p, (size_t)bytes);
    return bits;
}

// Element n of numbers of `bits` bits, of two in a byte the low one first.
static uint32_t load_element(const uint8_t *p, int bits, int n) {
    return bits < 8 ? load_bits(p + n / 2, 1) >> n % 2 * 4 & 15 : load_bits(p + n * bits / 8, bits / 8);
}

static lanes load_f(const void *p) { return of_f(v_load(p)); }
static lanes load_i(const void *p) { return of_i(v_load_i(p)); }
static lanes load_u16(const void *p) { return of_i(v_load_u16(p)); }
static lanes load_u8(const void *p) { return of_i(v_load_u8(p)); }
static lanes load_s8(const void *p) { return of_i(v_load_s8(p)); }
static lanes load_u4(const void *p) { return of_i(v_load_u4(p)); }

static void test_loads(void) {
    static const struct {
        const char *word;
        int bits; // below 0: with a sign
        lanes (*load)(const void *);
    } words[] = {{"v_load", 32, load_f},    {"v_load_i", 32, load_i},   {"v_load_u16", 16, load_u16},
                 {"v_load_u8", 8, load_u8}, {"v_load_s8", -8, load_s8}, {"v_load_u4", 4, load_u4}};
    for (int w = 0; w < COUNT(words); w++)
        for (int where = 0; where < 3; where++) {
            const int bits = abs(words[w].bits);
            const uint8_t *p = place(where, (size_t)(bits * LANES / 8));
            fill_page();
            lanes want;
            for (int l = 0; l < LANES; l++) {
                want.u[l] = load_element(p, bits, l);
                if (words[w].bits < 0) want.i[l] = (int8_t)want.u[l];
            }
            const lanes got = words[w].load(p);
            check(words[w].word, same_bits, &got, &want, 0, NULL);
        }
    for (int where = 0; where < 3; where++) {
        const uint8_t *p = place(where, 16 * sizeof(float));
        fill_page();
        for (uint32_t first = 0; first < 16; first++) {
            lanes codes, want;
            for (uint32_t l = 0; l < LANES; l++) {
                codes.u[l] = (first + 5 * l) % 16;
                want.u[l] = load_element(p, 32, (int)codes.u[l]);
            }
            const lanes got = of_f(v_lookup((const float *)(const void *)p, v_load_i(codes.i)));
            check("v_lookup", same_bits, &got, &want, 1, &codes);
        }
    }
    for (int where = 0; where < 3; where++) {
        const uint8_t *p = place(where, 4);
        lanes want;
        for (int l = 0; l < LANES; l++) want.u[l] = load_bits(p, 4);
        const lanes got = of_f(v_word(p));
        check("v_word", same_bits, &got, &want, 0, NULL);
    }
}

static void store_f(void *p, const lanes *x) { v_store(p, v_load(x->f)); }
static void store_i(void *p, const lanes *x) { v_store_i(p, v_load_i(x->i)); }
static void store_u16(void *p, const lanes *x) { v_store_u16(p, v_load_i(x->i)); }
static void store_u8(void *p, const lanes *x) { v_store_u8(p, v_load_i(x->i)); }

static uint8_t *before; // the page as it was

// Bytes of the page outside [p, p + bytes) must be as they were.
static void check_untouched(const char *word, const uint8_t *p, size_t bytes) {
    const size_t at = (size_t)(p - page);
    for (size_t n = 0; n < page_bytes; n++)
        if ((n < at || n >= at + bytes) && page[n] != before[n] && complain())
            printf("%s: %s wrote byte %ld of its %zu\n", test, word, (long)n - (long)at, bytes);
}

static void test_stores(void) {
    static const struct {
        const char *word;
        int bytes;
        void (*store)(void *, const lanes *);
    } words[] = {
        {"v_store", 4, store_f}, {"v_store_i", 4, store_i}, {"v_store_u16", 2, store_u16}, {"v_store_u8", 1, store_u8}};
    for (int w = 0; w < COUNT(words); w++)
        for (int where = 0; where < 3; where++) {
            const int bytes = words[w].bytes;
            uint8_t *p = place(where, (size_t)(bytes * LANES));
            lanes in, got, want;
            for (int l = 0; l < LANES; l++) in.u[l] = random_bits();
            fill_page();
            memcpy(before, page, page_bytes);
            words[w].store(p, &in);
            for (int l = 0; l < LANES; l++) {
                got.u[l] = load_bits(p + l * bytes, bytes);
                want.u[l] = in.u[l] & (0xffffffffu >> (32 - 8 * bytes));
            }
            check(words[w].word, same_bits, &got, &want, 1, &in);
            check_untouched(words[w].word, p, (size_t)(bytes * LANES));
        }
}

// 2 * LANES numbers, of which one vector gets the even ones and one the odd ones.
static void test_split(void) {
    for (int where = 0; where < 3; where++) {
        const uint8_t *p = place(where, 8 * LANES), *q = place(where, 4 * LANES);
        vf floats[2], bf16[2];
        fill_page();
        v_load_split((const float *)p, floats);
        v_load_bf16_split((const uint16_t *)q, bf16);
        for (int odd = 0; odd < 2; odd++) {
            const lanes got = of_f(floats[odd]), got_bf16 = of_f(bf16[odd]);
            lanes want, want_bf16;
            for (int l = 0; l < LANES; l++) {
                want.u[l] = load_element(p, 32, 2 * l + odd);
                want_bf16.u[l] = load_element(q, 16, 2 * l + odd) << 16;
            }
            check("v_load_split", same_bits, &got, &want, 0, NULL);
            check("v_load_bf16_split", same_bits, &got_bf16, &want_bf16, 0, NULL);
        }
    }
}

// The bits that are stored, and nothing else.
#define TEST_SMALL_STREAM(size, value)                                                                                 \
    {                                                                                                                  \
        lanes got = {0}, want = {0};                                                                                   \
        const size_t bytes = LANES * sizeof(*(size##_bits *)NULL);                                                     \
        fill_page();                                                                                                   \
        memcpy(before, page, page_bytes);                                                                              \
        v_store_##size((size##_bits *)(void *)&want, value);                                                           \
        v_stream_##size((size##_bits *)(void *)(page + at), value);                                                    \
        stream_end();                                                                                                  \
        memcpy(&got, page + at, bytes);                                                                                \
        check("v_stream_" #size, same_bits, &got, &want, 0, NULL);                                                     \
        check_untouched("v_stream_" #size, page + at, bytes);                                                          \
    }
typedef uint8_t u8_bits;
typedef uint16_t u16_bits, f16_bits;

static void test_small_streams(void) {
    for (size_t at = 0; at < page_bytes; at += page_bytes - sizeof(lanes)) {
        lanes in;
        for (int l = 0; l < LANES; l++) in.u[l] = random_bits();
        TEST_SMALL_STREAM(u8, v_load_i(in.i))
        TEST_SMALL_STREAM(u16, v_load_i(in.i))
        TEST_SMALL_STREAM(f16, v_load(in.f))
    }
}

// Like v_store_i, to whole lines.
static void test_stream(void) {
    for (size_t at = 0; at < page_bytes; at += page_bytes - sizeof(lanes)) {
        lanes in, got;
        for (int l = 0; l < LANES; l++) in.u[l] = random_bits();
        fill_page();
        memcpy(before, page, page_bytes);
        v_stream_i(page + at, v_load_i(in.i));
        stream_end();
        memcpy(&got, page + at, sizeof got);
        check("v_stream_i", same_bits, &got, &in, 0, NULL);
        check_untouched("v_stream_i", page + at, sizeof got);
    }
}

// ---- storages ------------------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    int bits;
    uint32_t last, after; // the greatest finite code, and what lies beyond it
    uint32_t nan;         // one code of NaN
} formats[] = {
    [TESSERA_TYPE_FP32] = {"fp32", 32, 0, 0, 0},
    [TESSERA_TYPE_FP16] = {"fp16", 16, 0x7bff, 0x7c00, 0x7e00},
    [TESSERA_TYPE_BF16] = {"bf16", 16, 0x7f7f, 0x7f80, 0x7fc0},
    [TESSERA_TYPE_E4M3] = {"e4m3", 8, 0x7e, 0x7e, 0x7f},
    [TESSERA_TYPE_E2M1] = {"e2m1", 4, 0, 0, 0},
};

// The number with this sign, exponent and mantissa, where exponent 0 marks denormals.
static float small_float(uint32_t code, int exponent_bits, int mantissa_bits) {
    const int exponent = (int)(code >> mantissa_bits) & ((1 << exponent_bits) - 1),
              bias = (1 << (exponent_bits - 1)) - 1;
    const int mantissa = (int)code & ((1 << mantissa_bits) - 1), hidden = exponent ? 1 << mantissa_bits : 0;
    const int power = (exponent ? exponent : 1) - bias - mantissa_bits; // not by ldexpf(), which takes a test's third
    const float magnitude = (float)(hidden + mantissa) * as_float((uint32_t)(power + 127) << 23);
    return code >> (exponent_bits + mantissa_bits) ? -magnitude : magnitude;
}

static float decode(tessera_type storage, uint32_t code) {
    switch (storage) {
    case TESSERA_TYPE_FP16:
        if ((code & 0x7fff) >= 0x7c00) return as_float((code & 0x8000) << 16 | 0x7f800000 | (code & 0x3ff) << 13);
        return small_float(code, 5, 10);
    case TESSERA_TYPE_BF16:
        return as_float(code << 16);
    case TESSERA_TYPE_E4M3:
        return (code & 0x7f) == 0x7f ? as_float(code << 24 | 0x7fc00000) : small_float(code, 4, 3);
    case TESSERA_TYPE_E2M1:
        return small_float(code, 2, 1);
    default:
        return as_float(code);
    }
}

// The nearest code, of two the even one; too great a number becomes what lies after the last.
static uint32_t encode(tessera_type storage, float x) {
    const uint32_t sign = storage == TESSERA_TYPE_E4M3 ? as_bits(x) >> 24 & 0x80 : as_bits(x) >> 16 & 0x8000;
    const double a = fabs((double)x);
    if (isnan(x)) return sign | formats[storage].nan;
    uint32_t low = 0, end = formats[storage].last + 1; // the last code that is no greater than a: low <= it < end
    while (end - low > 1) {
        const uint32_t middle = (low + end) / 2;
        *(decode(storage, middle) <= a ? &low : &end) = middle;
    }
    const bool top = low == formats[storage].last;
    const double value = decode(storage, low);
    const double next = top ? 2 * value - decode(storage, low - 1) : decode(storage, low + 1);
    const uint32_t high = top ? formats[storage].after : low + 1;
    const double below = a - value, above = next - a;
    return sign | (below < above ? low : below > above ? high : low & 1 ? high : low);
}

static bool is_nan_code(tessera_type storage, uint32_t code) { return isnan(decode(storage, code)); }

// Flushes denormals to zero and reads them as zero, as a host that was linked with -ffast-math does. Types with
// denormal codes of their own must be converted all the same.
static void flush_denormals(bool on) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(on ? 0x1f80u | 0x8040u : 0x1f80u);
#elif defined(__aarch64__)
    const uint64_t fpcr = on ? 1u << 24 : 0;
    __asm__ volatile("msr fpcr, %0" ::"r"(fpcr) : "memory");
#else
    (void)on;
#endif
}

__attribute__((noinline)) static void fetch(tessera_type storage, const void *base, int64_t at, int count, lanes *x) {
    *x = of_f(v_fetch(storage, base, at, count));
}

__attribute__((noinline)) static void put(tessera_type storage, void *base, int64_t at, int count, const lanes *x) {
    v_put(storage, base, at, count, v_load(x->f));
}

// Every code of a storage read, and written back.
static void check_codes(tessera_type storage, bool flush) {
    const int bits = formats[storage].bits;
    for (uint32_t first = 0; first < 1u << bits; first += LANES) {
        lanes code, got, back, want;
        uint8_t bytes[4 * LANES] = {0}, again[4 * LANES] = {0};
        for (uint32_t l = 0; l < LANES; l++) {
            code.u[l] = (first + l) & ((1u << bits) - 1);
            want.f[l] = decode(storage, code.u[l]);
            for (uint32_t b = 0; b < (uint32_t)bits; b += 4)
                bytes[(l * (uint32_t)bits + b) / 8] |= (uint8_t)((code.u[l] >> b & 15) << (l * (uint32_t)bits + b) % 8);
        }
        flush_denormals(flush);
        fetch(storage, bytes, 0, LANES, &got);
        if (bits > 4) put(storage, again, 0, LANES, &want);
        flush_denormals(false);
        check(formats[storage].name, same_float, &got, &want, 1, &code);
        if (bits == 4) continue;
        for (int l = 0; l < LANES; l++) {
            back.u[l] = load_bits(again + l * bits / 8, bits / 8);
            if (is_nan_code(storage, code.u[l]) && is_nan_code(storage, back.u[l])) back.u[l] = code.u[l];
        }
        check(formats[storage].name, same_bits, &back, &code, 1, &want);
    }
}

static void test_codes(void) {
    for (int storage = TESSERA_TYPE_FP16; storage <= TESSERA_TYPE_E2M1; storage++) {
        check_codes((tessera_type)storage, false);
        check_codes((tessera_type)storage, true);
    }
}

static void check_rounding_of(tessera_type storage, const lanes *in) {
    const int bytes = formats[storage].bits / 8;
    lanes want;
    for (int l = 0; l < LANES; l++) want.u[l] = encode(storage, in->f[l]);
    for (int flush = 0; flush < 2; flush++) {
        uint8_t list[4 * LANES];
        lanes got;
        flush_denormals(flush);
        put(storage, list, 0, LANES, in);
        flush_denormals(false);
        for (int l = 0; l < LANES; l++) {
            got.u[l] = load_bits(list + l * bytes, bytes);
            if (is_nan_code(storage, want.u[l]) && is_nan_code(storage, got.u[l])) got.u[l] = want.u[l];
        }
        check(formats[storage].name, same_bits, &got, &want, 1, in);
    }
}

// Each midpoint of two codes and its neighbours, with both signs, and numbers anywhere.
static void test_rounding(void) {
    for (int storage = TESSERA_TYPE_FP16; storage <= TESSERA_TYPE_E4M3; storage++) {
        const uint32_t last = formats[storage].last;
        lanes in;
        int filled = 0;
        for (uint32_t code = 0; code <= last; code++) {
            const double low = decode((tessera_type)storage, code);
            const double high = code == last ? 2 * low - decode((tessera_type)storage, code - 1)
                                             : decode((tessera_type)storage, code + 1);
            const float middle = (float)((low + high) / 2);
            const float about[] = {nextafterf(middle, 0.0f), middle, nextafterf(middle, INFINITY)};
            for (int n = 0; n < 6; n++) {
                in.f[filled++] = n % 2 ? -about[n / 2] : about[n / 2];
                if (filled < LANES) continue;
                check_rounding_of((tessera_type)storage, &in);
                filled = 0;
            }
        }
        for (int l = 0; l < LANES && filled; l++) in.f[l] = l < filled ? in.f[l] : 0.0f;
        check_rounding_of((tessera_type)storage, &in);
        for (int n = 0; n < 20000; n++) {
            for (int l = 0; l < LANES; l++) in.u[l] = random_bits();
            check_rounding_of((tessera_type)storage, &in);
        }
        for (int i = 0; i < COUNT(edges); i++) {
            in = edge(i, 1);
            check_rounding_of((tessera_type)storage, &in);
        }
    }
}

// As v_store_bf16, but for NaN whose lower half is not 0.
static void test_bf16_split(void) {
    for (int n = 0; n < 100000; n++) {
        lanes in[2];
        uint16_t *const p = (uint16_t *)place(n % 3, 4 * LANES);
        for (int odd = 0; odd < 2; odd++)
            for (int l = 0; l < LANES; l++) {
                in[odd].u[l] = n % 4 ? random_bits() : edges[random_bits() % COUNT(edges)];
                if (n % 3 == 0) in[odd].u[l] = (in[odd].u[l] & 0xffff0000) + 0x7fff + random_bits() % 3; // halves
                if (isnan(in[odd].f[l])) in[odd].u[l] &= 0xffff0000;
            }
        const vf x[2] = {v_load(in[0].f), v_load(in[1].f)};
        if (n < 3) memcpy(before, page, page_bytes);
        v_store_i(p, v_to_bf16_split(x));
        if (n < 3) check_untouched("v_to_bf16_split", (uint8_t *)p, 4 * LANES);
        for (int odd = 0; odd < 2; odd++) {
            lanes got, want;
            for (int l = 0; l < LANES; l++) {
                got.u[l] = (uint32_t)p[2 * l + odd] << 16;
                want.u[l] = encode(TESSERA_TYPE_BF16, in[odd].f[l]) << 16;
            }
            check("v_to_bf16_split", same_float, &got, &want, 1, &in[odd]);
        }
    }
}

// The operand lies at the head or the end of the page, so that it alone can be read.
static void check_fetch(tessera_type storage, int where, int at, int count) {
    const int bits = formats[storage].bits;
    const int begin = at * bits / 8, end = count ? ((at + count) * bits + 7) / 8 : begin;
    const uint8_t *operand = place(where, (size_t)(end - begin));
    const void *base = (const void *)((uintptr_t)operand - (uintptr_t)begin);
    lanes got, want = {.u = {0}};
    fill_page();
    const int skipped = at - 8 * begin / bits; // of the operand's first byte
    for (int l = 0; l < count; l++) want.f[l] = decode(storage, load_element(operand, bits, skipped + l));
    fetch(storage, base, at, count, &got);
    check(formats[storage].name, same_float, &got, &want, 0, NULL);
}

static void test_fetch(void) {
    for (int storage = TESSERA_TYPE_FP32; storage <= TESSERA_TYPE_E2M1; storage++)
        for (int where = 0; where < 2; where++)
            for (int at = 0; at < 2 * LANES; at++)
                for (int count = 0; count <= LANES; count++) check_fetch((tessera_type)storage, where, at, count);
}

// It neither reads nor writes, whatever the address.
static void test_prefetch(void) {
    const uintptr_t first = (uintptr_t)page;
    const uintptr_t places[] = {0, first - page_bytes, first, first + page_bytes - 1, first + page_bytes, UINTPTR_MAX};
    fill_page();
    memcpy(before, page, page_bytes);
    for (int n = 0; n < COUNT(places); n++) {
        prefetch(places[n]);
        prefetch_first(places[n]);
    }
    if (memcmp(before, page, page_bytes) != 0 && complain()) printf("prefetch: changed memory\n");
}

static void check_put(tessera_type storage, int where, int at, int count) {
    const int bytes = formats[storage].bits / 8;
    uint8_t *operand = place(where, (size_t)(count * bytes));
    lanes in, got = {.u = {0}}, want = {.u = {0}};
    for (int l = 0; l < LANES; l++) in.f[l] = (float)(int32_t)random_bits() * 0x1p-29f;
    fill_page();
    memcpy(before, page, page_bytes);
    put(storage, (void *)((uintptr_t)operand - (uintptr_t)(at * bytes)), at, count, &in);
    for (int l = 0; l < count; l++) {
        got.u[l] = load_bits(operand + l * bytes, bytes);
        want.u[l] = storage == TESSERA_TYPE_FP32 ? in.u[l] : encode(storage, in.f[l]);
    }
    check(formats[storage].name, same_bits, &got, &want, 1, &in);
    check_untouched(formats[storage].name, operand, (size_t)(count * bytes));
}

static void test_put(void) {
    for (int storage = TESSERA_TYPE_FP32; storage <= TESSERA_TYPE_E4M3; storage++)
        for (int where = 0; where < 3; where++)
            for (int at = 0; at < 3; at++)
                for (int count = 0; count <= LANES; count++) check_put((tessera_type)storage, where, at, count);
}

static void test_scalars(void) {
    for (int byte = 0; byte < 256; byte++) {
        const float want = byte == 255 ? NAN : ldexpf(1.0f, byte - 127), got = e8m0((uint8_t)byte);
        if (!same_float(as_bits(got), as_bits(want)) && complain())
            printf("e8m0(%d) gave %g, not %g\n", byte, got, want);
    }
}

// ---- mathematics ---------------------------------------------------------------------------------------------------

// Greatest error of `word` at LANES points: relative to the result, or absolute.
static double worst(vf (*word)(vf), double (*exact)(double), const lanes *x, bool relative) {
    const lanes got = of_f(word(v_load(x->f)));
    double greatest = 0.0;
    for (int l = 0; l < LANES; l++) {
        const double want = exact(x->f[l]), unit = relative && want != 0.0 ? fabs(want) : 1.0;
        const double error = fabs(got.f[l] - want) / unit;
        if (!(error <= greatest)) greatest = error; // a NaN is the greatest error
    }
    return greatest;
}

// The word's greatest error from `from` to `to`, in steps of `step`, must not exceed `bound`, which cpu_common.h
// states; nor may it be far below, since the statement would be out of date.
static void check_bound(const char *word, vf (*vector)(vf), double (*exact)(double), double from, double to,
                        double step, bool relative, double bound) {
    double greatest = 0.0;
    for (double at = from; at <= to; at += step * LANES) {
        lanes x;
        for (int l = 0; l < LANES; l++) x.f[l] = (float)fmin(at + step * l, to);
        const double error = worst(vector, exact, &x, relative);
        if (!(error <= greatest)) greatest = error;
    }
    printf("%s: %s from %g to %g: %s error %.3g\n", test, word, from, to, relative ? "relative" : "absolute", greatest);
    if (!(greatest <= bound && greatest > bound / 2) && complain())
        printf("%s: %s is stated as %g\n", test, word, bound);
}

static vf exp2_of(vf x) { return v_exp2(x); }
#ifdef __AVX512BF16__
static vf exp2_short_of(vf x) { return v_exp2_short(x); }
#endif
static vf tanh_of(vf x) { return v_tanh(x); }

static void check_point(const char *word, vf (*vector)(vf), float x, float least, float greatest) {
    const lanes got = of_f(vector(v_set1(x)));
    for (int l = 0; l < LANES; l++) {
        const bool right = isnan(least) ? isnan(got.f[l]) : got.f[l] >= least && got.f[l] <= greatest;
        if (!right && complain())
            printf("%s: %s(%g) gave %g, not %g to %g\n", test, word, x, got.f[l], least, greatest);
    }
}

static void test_exp2(void) {
    check_bound("v_exp2", v_exp2, exp2, -1.5, 1.5, 0x1p-19, true, 1.7e-7);
    check_bound("v_exp2", v_exp2, exp2, -125.49, 126.0, 0x1.01p-12, true, 1.7e-7);
    check_point("v_exp2", exp2_of, 0.0f, 1.0f, 1.0f);
#ifdef __AVX512BF16__
    check_bound("v_exp2_short", v_exp2_short, exp2, -1.5, 1.5, 0x1p-19, true, 7.5e-5);
    check_bound("v_exp2_short", v_exp2_short, exp2, -125.49, 126.0, 0x1.01p-12, true, 7.5e-5);
#endif
}

static void test_tanh(void) {
    check_bound("v_tanh", v_tanh, tanh, -1.0, 1.0, 0x1p-19, true, 3.9e-7);
    check_bound("v_tanh", v_tanh, tanh, -12.0, 12.0, 0x1.01p-16, true, 3.9e-7);
}

static void test_math_limits(void) {
    static const float tiny[] = {-INFINITY, -FLT_MAX, -1e30f,  -1000.0f, -160.5f,
                                 -160.0f,   -151.0f,  -149.0f, -127.0f,  -126.1f};
    for (int i = 0; i < COUNT(tiny); i++) {
        check_point("v_exp2", exp2_of, tiny[i], 0.0f, 0.0f);
#ifdef __AVX512BF16__
        check_point("v_exp2_short", exp2_short_of, tiny[i], 0.0f, 0.0f);
#endif
    }
    for (float x = -126.0f; x < -125.5f; x += 0.0625f) { // 0 or the number
        check_point("v_exp2", exp2_of, x, 0.0f, exp2f(x) * 1.001f);
#ifdef __AVX512BF16__
        check_point("v_exp2_short", exp2_short_of, x, 0.0f, exp2f(x) * 1.001f);
#endif
    }
    static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0x7fc12345};
    for (int i = 0; i < COUNT(nans); i++) {
        check_point("v_exp2", exp2_of, as_float(nans[i]), NAN, NAN);
#ifdef __AVX512BF16__
        check_point("v_exp2_short", exp2_short_of, as_float(nans[i]), NAN, NAN);
#endif
        check_point("v_tanh", tanh_of, as_float(nans[i]), NAN, NAN);
    }
    static const float large[] = {20.0f, 50.0f, 1e10f, FLT_MAX, INFINITY};
    for (int i = 0; i < COUNT(large); i++) {
        check_point("v_tanh", tanh_of, large[i], 1.0f - 3.9e-7f, 1.0f + 3.9e-7f);
        check_point("v_tanh", tanh_of, -large[i], -1.0f - 3.9e-7f, -1.0f + 3.9e-7f);
    }
}

// Philox4x32-10 as the paper states it.
static void philox(uint32_t c[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ key0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ key1,
                                  (uint32_t)p0};
        memcpy(c, next, sizeof next);
    }
}

static void check_philox(const lanes counter[4], uint64_t seed) {
    vi x[4];
    lanes want[4];
    for (int n = 0; n < 4; n++) x[n] = v_load_i(counter[n].i);
    v_philox(x, seed);
    for (int l = 0; l < LANES; l++) {
        uint32_t c[4] = {counter[0].u[l], counter[1].u[l], counter[2].u[l], counter[3].u[l]};
        philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
        for (int n = 0; n < 4; n++) want[n].u[l] = c[n];
    }
    for (int n = 0; n < 4; n++) {
        const lanes got = of_i(x[n]);
        check("v_philox", same_bits, &got, &want[n], 4, counter);
    }
}

static void test_philox(void) {
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        // Random123, kat_vectors
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    lanes counter[4];
    for (int k = 0; k < COUNT(known); k++) {
        vi x[4];
        for (int n = 0; n < 4; n++) x[n] = v_set1_i((int32_t)known[k].counter[n]);
        v_philox(x, (uint64_t)known[k].key[1] << 32 | known[k].key[0]);
        for (int n = 0; n < 4; n++) {
            const lanes got = of_i(x[n]), want = of_i(v_set1_i((int32_t)known[k].answer[n]));
            check("v_philox, known answer", same_bits, &got, &want, 0, NULL);
        }
    }
    for (int n = 0; n < 1000; n++) {
        for (int c = 0; c < 4; c++)
            for (int l = 0; l < LANES; l++) counter[c].u[l] = random_bits();
        check_philox(counter, (uint64_t)random_bits() << 32 | random_bits());
    }
}

// ---- integers of 16 bits -------------------------------------------------------------------------------------------

#if defined(TESSERA_ISA_CPU_AVX2_H) || defined(__AVX512BF16__)
typedef union {
    uint8_t bytes[4 * LANES];
    int16_t words[2 * LANES];
    lanes lanes;
} parts;

static parts random_parts(void) {
    parts x;
    for (int l = 0; l < LANES; l++) x.lanes.u[l] = random_bits();
    return x;
}

static parts of_parts(vi x) {
    parts list;
    v_store_i(list.lanes.i, x);
    return list;
}

// Every code, at both ends of the page.
static void test_loads_of_words(void) {
    for (int first = 0; first < 256; first++) {
        uint8_t *const p = place(first % 2, 2 * LANES);
        parts s8;
        for (int n = 0; n < 2 * LANES; n++) {
            p[n] = (uint8_t)(first + 37 * n);
            s8.words[n] = (int16_t)(int8_t)p[n];
        }
        const parts got = of_parts(v_load_s8_words(p));
        check("v_load_s8_words", same_bits, &got.lanes, &s8.lanes, 0, NULL);
    }
}

// Numbers that lie between words, and beyond them.
static void test_stored_words(void) {
    const float numbers[] = {0,     0.5f, 1.5f,   -0.5f, -1.5f, 2.25f, -2.75f,  32767,
                             32768, 1e6f, -32768, -1e6f, 100,   -7,    8191.5f, 3};
    const int want[] = {0, 0, 2, 0, -2, 2, -3, 32767, 32767, 32767, -32768, -32768, 100, -7, 8192, 3};
    for (int first = 0; first < COUNT(numbers); first += LANES) {
        int16_t *const got = (int16_t *)(void *)place(1, LANES * sizeof *got);
        v_store_words(got, v_load(numbers + first));
        for (int l = 0; l < LANES; l++)
            if (got[l] != want[first + l] && complain())
                printf("%s: v_store_words(%g) stored %d\n", test, numbers[first + l], got[l]);
    }
}

static void test_products_of_words(void) {
    for (int round = 0; round < 500; round++) {
        const parts a = random_parts(), b = random_parts();
        parts want;
        for (int l = 0; l < LANES; l++) {
            int64_t sum = round;
            for (int n = 2 * l; n < 2 * l + 2; n++) sum += (int64_t)a.words[n] * b.words[n];
            want.lanes.u[l] = (uint32_t)sum;
        }
        const parts dot = of_parts(v_dot_words(v_set1_i(round), v_load_i(&a), v_load_i(&b)));
        check("v_dot_words", same_bits, &dot.lanes, &want.lanes, 1, &a.lanes);
#ifdef __AVX512BF16__
        const vf acc = v_as_f(v_set1_i(round)), x = v_as_f(v_load_i(&a)), y = v_as_f(v_load_i(&b));
        const parts as_f = of_parts(v_as_i(v_dot_words_as_f(acc, x, y)));
        check("v_dot_words_as_f", same_bits, &as_f.lanes, &want.lanes, 1, &a.lanes);
#endif
    }
}
#endif

// ---- pairs of bf16 -------------------------------------------------------------------------------------------------

#ifdef __AVX512BF16__
// As v_store_bf16, but denormals become 0.
static uint32_t pair_code(float x) {
    const uint32_t sign = as_bits(x) >> 16 & 0x8000;
    return fabsf(x) < FLT_MIN ? sign : encode(TESSERA_TYPE_BF16, x);
}

static bool same_pair(uint32_t a, uint32_t b) {
    return same_float(a << 16, b << 16) && same_float(a & 0xffff0000, b & 0xffff0000);
}

static void check_pairs(const lanes in[2]) {
    const vf low = v_load(in[0].f), high = v_load(in[1].f);
    const lanes across = of_i(v_pair_lanes(low, high)), row = of_i(v_pair_row(low, high));
    lanes want_across, want_row;
    for (int l = 0; l < LANES; l++) {
        const float *from = l < LANES / 2 ? &in[0].f[2 * l] : &in[1].f[2 * l - LANES];
        want_across.u[l] = pair_code(in[1].f[l]) << 16 | pair_code(in[0].f[l]);
        want_row.u[l] = pair_code(from[1]) << 16 | pair_code(from[0]);
    }
    check("v_pair_lanes", same_pair, &across, &want_across, 2, in);
    check("v_pair_row", same_pair, &row, &want_row, 2, in);
}

static void test_pairs(void) {
    for (int i = 0; i < COUNT(edges); i++)
        for (int j = 0; j < COUNT(edges); j++) check_pairs((lanes[2]){edge(i, 1), edge(j, 3)});
    for (uint32_t code = 0; code < 0x10000; code += LANES) { // each midpoint, and a number beside it
        lanes in[2];
        for (uint32_t l = 0; l < LANES; l++) {
            in[0].u[l] = (code + l) << 16 | 0x8000;
            in[1].u[l] = in[0].u[l] + (l % 2 ? 1u : -1u);
        }
        check_pairs(in);
    }
}

static void test_zip(void) {
    lanes in[2], want[2];
    vi first, rest;
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 2; i++) in[i].u[l] = 0x7f800001u + (uint32_t)(i * 0x10000 + l * 2 * 0x10001);
    for (int half = 0; half < 2 * LANES; half++) {
        const uint32_t low = in[0].u[half / 2] >> half % 2 * 16 & 0xffff, high = in[1].u[half / 2] >> half % 2 * 16;
        want[half / LANES].u[half % LANES] = high << 16 | low;
    }
    v_zip_pairs(v_as_i(v_load(in[0].f)), v_as_i(v_load(in[1].f)), &first, &rest);
    const lanes got_first = of_i(first), got_rest = of_i(rest);
    check("v_zip_pairs", same_bits, &got_first, &want[0], 2, in);
    check("v_zip_pairs", same_bits, &got_rest, &want[1], 2, in);
}

// 2 * LANES numbers of 4 bits, each in the lowest bits of half a word.
static void test_u4_pairs(void) {
    for (int where = 0; where < 3; where++) {
        const uint8_t *p = place(where, LANES);
        lanes want;
        fill_page();
        for (int l = 0; l < LANES; l++) want.u[l] = load_element(p, 4, 2 * l) | load_element(p, 4, 2 * l + 1) << 16;
        lanes got = of_i(v_load_u4_pairs(p));
        for (int l = 0; l < LANES; l++) got.u[l] &= 0xf000f;
        check("v_load_u4_pairs", same_bits, &got, &want, 0, NULL);
    }
}

// Every code, in order of memory.
static void test_e4m3_pairs(void) {
    for (int where = 0; where < 3; where++)
        for (uint32_t first = 0; first < 256; first += 2 * LANES) {
            uint8_t *p = place(where, 2 * LANES);
            lanes want;
            for (uint32_t n = 0; n < 2 * LANES; n++) p[n] = (uint8_t)(first + n);
            for (int l = 0; l < LANES; l++)
                want.u[l] = pair_code(decode(TESSERA_TYPE_E4M3, p[2 * l])) |
                            pair_code(decode(TESSERA_TYPE_E4M3, p[2 * l + 1])) << 16;
            const lanes got = of_i(v_load_e4m3_pairs(p));
            check("v_load_e4m3_pairs", same_pair, &got, &want, 0, NULL);
        }
}

static void test_pair_lookup(void) {
    lanes in[2], want; // the table, and numbers of its halves, of which 4 bits count
    for (uint32_t l = 0; l < LANES; l++) in[0].u[l] = 2 * (l % 8) * 0x101 + ((2 * (l % 8) + 1) * 0x101 << 16);
    for (uint32_t first = 0; first < 16; first++) {
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t low = (first + 3 * l) % 16, high = (first + 7 * l) % 16;
            in[1].u[l] = (low | high << 16) + random_bits() % 16 * 0x100010;
            want.u[l] = low * 0x101 + (high * 0x101 << 16);
        }
        const lanes got = of_i(v_lookup_pairs(v_load_i(in[0].i), v_load_i(in[1].i)));
        check("v_lookup_pairs", same_bits, &got, &want, 2, in);
    }
}

// Every pair of codes.
static void check_pair_codes(const char *word, vi (*vector)(vi), tessera_type storage) {
    const uint32_t codes = 1u << formats[storage].bits;
    for (uint32_t high = 0; high < codes; high++)
        for (uint32_t low = 0; low < codes; low += LANES) {
            lanes in, want;
            for (uint32_t l = 0; l < LANES; l++) {
                in.u[l] = high << 16 | (low + l);
                want.u[l] = pair_code(decode(storage, high)) << 16 | pair_code(decode(storage, low + l));
            }
            const lanes got = of_i(vector(v_load_i(in.i)));
            check(word, same_pair, &got, &want, 1, &in);
        }
}

static void test_pair_codes(void) {
    check_pair_codes("v_bf16_of_e4m3", v_bf16_of_e4m3, TESSERA_TYPE_E4M3);
    check_pair_codes("v_bf16_of_e2m1", v_bf16_of_e2m1, TESSERA_TYPE_E2M1);
}

// Pairs of any bf16 but denormals, by every power of 2 that leaves them in range; NaN by anything.
static void test_scale_pairs(void) {
    for (uint32_t code = 0; code < 0x10000; code++) {
        lanes in[2], want;
        for (uint32_t l = 0; l < LANES; l++) {
            const int exponent = (int)(code >> 7 & 255), scale = (int)(random_bits() % 254) + 1; // of fp32, biased
            const int clear = exponent == 0 ? 0 : exponent == 255 ? 255 : exponent + scale - 127;
            const bool in_range = clear == exponent || (clear > 0 && clear < 255);
            in[1].u[l] = (uint32_t)(in_range ? scale : 127) << 23;
            in[0].u[l] = exponent == 0 ? (code & 0x8000) * 0x10001 : code * 0x10001;
            want.u[l] = as_bits(as_float(in[0].u[l] & 0xffff0000) * in[1].f[l]);
            want.u[l] = (want.u[l] & 0xffff0000) | want.u[l] >> 16;
        }
        const lanes got = of_i(v_scale_pairs(v_load_i(in[0].i), v_load(in[1].f)));
        check("v_scale_pairs", same_pair, &got, &want, 2, in);
    }
}

// acc + a.low * b.low + a.high * b.high, a rounding or two.
static void test_dot2(void) {
    for (int n = 0; n < 100000; n++) {
        lanes in[3], want;
        double slack[LANES];
        for (int l = 0; l < LANES; l++) {
            in[0].f[l] = (float)(int32_t)random_bits() * 0x1p-29f;
            for (int k = 1; k < 3; k++) // exponents -8 .. 7, all signs and mantissas
                in[k].u[l] = (random_bits() & 0x87ff87ffu) + 0x3b803b80u;
            const double low = (double)as_float(in[1].u[l] << 16) * as_float(in[2].u[l] << 16);
            const double high = (double)as_float(in[1].u[l] & 0xffff0000) * as_float(in[2].u[l] & 0xffff0000);
            want.f[l] = (float)(in[0].f[l] + low + high);
            slack[l] = 0x1p-23 * (fabs(in[0].f[l]) + fabs(low) + fabs(high));
        }
        const lanes got = of_f(v_dot2(v_load(in[0].f), v_load(in[1].f), v_load(in[2].f)));
        for (int l = 0; l < LANES; l++)
            if (fabs((double)got.f[l] - want.f[l]) <= slack[l]) want.f[l] = got.f[l];
        check("v_dot2", same_float, &got, &want, 3, in);
    }
}

// ---- pieces of two rows

static void check_word(const char *word, int lane, uint16_t got, int want) {
    if ((int16_t)got == want || !complain()) return;
    printf("%s: %s, word %d: %d, not %d\n", test, word, lane, (int16_t)got, want);
}

static void test_piece_loads(void) {
    const uint8_t *const p = place(0, 256);
    fill_page();
    const lanes halves = of_i(v_load_halves(p + 3, p + 101)), repeated = of_i(v_repeat_half(p + 17));
    lanes want;
    memcpy(want.u, p + 3, 32);
    memcpy(want.u + LANES / 2, p + 101, 32);
    check("v_load_halves", same_bits, &halves, &want, 0, NULL);
    for (int half = 0; half < 2; half++) memcpy(want.u + half * LANES / 2, p + 17, 32);
    check("v_repeat_half", same_bits, &repeated, &want, 0, NULL);
}

// Every code: numbers 16 q .. of a vector of bytes are those of its quarter q, eight of them for each part.
static void test_bytes_as_pairs(void) {
    for (uint32_t first = 0; first < 256; first += 16)
        for (int part = 0; part < 2; part++) {
            lanes in, want_e4m3, want_bf16;
            parts want_s8;
            uint8_t codes[4 * LANES];
            for (int n = 0; n < 4 * LANES; n++) codes[n] = (uint8_t)(first + (uint32_t)(n * 17 % 64));
            memcpy(in.u, codes, sizeof codes);
            for (int l = 0; l < LANES; l++) {
                const uint8_t *const pair = codes + l / 4 * 16 + part * 8 + l % 4 * 2;
                want_e4m3.u[l] =
                    pair_code(decode(TESSERA_TYPE_E4M3, pair[0])) | pair_code(decode(TESSERA_TYPE_E4M3, pair[1])) << 16;
                want_bf16.u[l] = in.u[l] >> 16 * part << 16;
            }
            for (int n = 0; n < 2 * LANES; n++) want_s8.words[n] = (int8_t)codes[2 * n + part];
            const lanes e4m3 = of_i(v_bf16_of_e4m3_bytes(v_load_i(in.i), part));
            const parts s8 = of_parts(v_words_of_s8(v_load_i(in.i), part));
            const lanes bf16 = of_f(v_floats_of_bf16(v_load_i(in.i), part));
            check("v_bf16_of_e4m3_bytes", same_pair, &e4m3, &want_e4m3, 1, &in);
            check("v_words_of_s8", same_bits, &s8.lanes, &want_s8.lanes, 1, &in);
            check("v_floats_of_bf16", same_bits, &bf16, &want_bf16, 1, &in);
        }
}

// Which byte, or half of a word, of the two rows lies where, and what puts it in order.
static void test_piece_orders(void) {
    uint8_t bytes[4 * LANES], zipped[4 * LANES];
    uint16_t words[4 * LANES], moved[4 * LANES];
    for (int n = 0; n < 4 * LANES; n++) bytes[n] = (uint8_t)n, words[n] = (uint16_t)(1000 + n);
    v_store_i(zipped, v_zip_bytes(v_load_i(bytes)));
    for (int n = 0; n < 2 * LANES; n++) { // pair n % 16 of part n / 16
        const int at = n % LANES / 4 * 16 + n / LANES * 8 + n % 4 * 2;
        check_word("v_zip_bytes", n, zipped[at], n);
        check_word("v_zip_bytes", n, zipped[at + 1], 2 * LANES + n);
    }
    v_store_i(moved, v_zip_words(v_load_i(words)));
    for (int n = 0; n < LANES; n++) {
        const int at = n % 4 * 8 + n / 4 * 2;
        check_word("v_zip_words", n, moved[at], words[n]);
        check_word("v_zip_words", n, moved[at + 1], words[LANES + n]);
    }
    v_store_i(moved, v_order_bytes(v_load_i(words)));
    for (int n = 0; n < 2 * LANES; n++) // number n of a piece of bytes
        check_word("v_order_bytes", n, moved[n % 16 / 8 * 16 + n / 16 * 8 + n % 8], words[n]);
    vi x[2] = {v_load_i(words), v_load_i(words + 2 * LANES)};
    v_order_u4(x);
    v_store_i(moved, x[0]);
    v_store_i(moved + 2 * LANES, x[1]);
    for (int n = 0; n < 4 * LANES; n++) check_word("v_order_u4", n, moved[n % 4 * 16 + n / 4], words[n]);
    float in[4][LANES], out[LANES];
    vf rows[4];
    for (int r = 0; r < 4; r++) {
        for (int l = 0; l < LANES; l++) in[r][l] = (float)(100 * r + l);
        rows[r] = v_load(in[r]);
    }
    v_transpose_quarters(rows);
    for (int r = 0; r < 4; r++) {
        v_store(out, rows[r]);
        for (int l = 0; l < LANES; l++)
            check_word("v_transpose_quarters", l, (uint16_t)out[l], (int)in[l % 4][l / 4 * 4 + r]);
    }
}

// Whole numbers, whose sums are exact.
static void test_part_sums(void) {
    lanes in[8], of_quarters, of_halves;
    vf x[8];
    for (int r = 0; r < 8; r++) {
        for (int l = 0; l < LANES; l++) in[r].f[l] = (float)(random_bits() % 1000);
        x[r] = v_load(in[r].f);
    }
    for (int l = 0; l < LANES; l++) {
        of_quarters.f[l] = of_halves.f[l] = 0;
        for (int n = 0; n < 4; n++) of_quarters.f[l] += in[l % 4].f[l / 4 * 4 + n];
        for (int n = 0; n < 8; n++) of_halves.f[l] += in[l / 8 * 4 + l % 4].f[l / 4 % 2 * 8 + n];
    }
    const lanes quarters = of_f(v_sums_of_quarters(x)), halves = of_f(v_sums_of_halves(x));
    check("v_sums_of_quarters", same_float, &quarters, &of_quarters, 0, NULL);
    check("v_sums_of_halves", same_float, &halves, &of_halves, 0, NULL);
    vi words[8];
    for (int r = 0; r < 8; r++) words[r] = v_to_i(x[r]);
    const lanes of_words = of_f(v_to_f(v_sums_of_halves_i(words)));
    check("v_sums_of_halves_i", same_float, &of_words, &of_halves, 0, NULL);
}
#endif

// ---- upper halves, and tiles ---------------------------------------------------------------------------------------

#ifdef TESSERA_ISA_CPU_AVX2_H

// ---- words of 16 bits, of bytes and of numbers of 4 bits ------------------------------------------------------------

// Every code, at both ends of the page.
static void test_loads_of_halves(void) {
    for (int first = 0; first < 256; first++) {
        uint8_t *const p = place(first % 2, 2 * LANES);
        parts e4m3;
        for (int n = 0; n < 2 * LANES; n++) {
            p[n] = (uint8_t)(first + 37 * n);
            const int magnitude = p[n] & 0x7f;
            const double value = magnitude == 0x7f ? 480 : decode(TESSERA_TYPE_E4M3, (uint32_t)magnitude);
            e4m3.words[n] = (int16_t)(encode(TESSERA_TYPE_FP16, (float)(value * 0x1p-8)) | (p[n] & 0x80u) << 8);
        }
        const parts got_e4m3 = of_parts(v_load_e4m3_halves(p));
        check("v_load_e4m3_halves", same_bits, &got_e4m3.lanes, &e4m3.lanes, 0, NULL);
    }
}

static void test_words(void) {
    for (int round = 0; round < 500; round++) {
        const parts a = random_parts(), b = random_parts();
        parts zipped[2], zipped_words[2], found[2];
        const int16_t table[] = {-8000, -2001, 255, 256, -1, 0, 1, 32767, -32768, 4660, 17, -300, 99, 12345, 128, -129};
        parts low, upper, codes;
        for (int n = 0; n < 4 * LANES; n++) {
            low.bytes[n] = (uint8_t)table[n % 16];
            upper.bytes[n] = (uint8_t)(table[n % 16] >> 8);
            codes.bytes[n] = a.bytes[n] & 15;
            const int at = n / 16 * 16 + n % 16 / 2, second = at + 8;
            zipped[0].bytes[n] = n % 2 ? b.bytes[at] : a.bytes[at];
            zipped[1].bytes[n] = n % 2 ? b.bytes[second] : a.bytes[second];
        }
        for (int n = 0; n < 2 * LANES; n++) {
            const int at = n / 8 * 8 + n % 8 / 2;
            for (int x = 0; x < 2; x++) {
                zipped_words[x].words[n] = n % 2 ? b.words[at + 4 * x] : a.words[at + 4 * x];
                found[x].words[n] = table[codes.bytes[n / 8 * 16 + 8 * x + n % 8]];
            }
        }
        vi got[3][2];
        v_zip_8(v_load_i(&a), v_load_i(&b), got[0]);
        v_zip_16(v_load_i(&a), v_load_i(&b), got[1]);
        v_lookup_words(v_load_i(&low), v_load_i(&upper), v_load_i(&codes), got[2]);
        for (int x = 0; x < 2; x++) {
            const parts list[] = {of_parts(got[0][x]), of_parts(got[1][x]), of_parts(got[2][x])};
            check("v_zip_8", same_bits, &list[0].lanes, &zipped[x].lanes, 1, &a.lanes);
            check("v_zip_16", same_bits, &list[1].lanes, &zipped_words[x].lanes, 1, &a.lanes);
            check("v_lookup_words", same_bits, &list[2].lanes, &found[x].lanes, 1, &codes.lanes);
        }
    }
}

static void test_greatest_byte(void) {
    for (int round = 0; round < 500; round++) {
        parts a = random_parts(), twice;
        const parts b = random_parts();
        const uint32_t limit = 1 + random_bits() % 256;
        int greatest = 0;
        for (int n = 0; n < 4 * LANES; n++) {
            a.bytes[n] = (uint8_t)(a.bytes[n] % limit);
            const uint8_t shifted = (uint8_t)(b.bytes[n] << 1);
            twice.bytes[n] = a.bytes[n] > shifted ? a.bytes[n] : shifted;
            if (a.bytes[n] > greatest) greatest = a.bytes[n];
        }
        const parts most = of_parts(v_most_twice(v_load_i(&a), v_load_i(&b)));
        check("v_most_twice", same_bits, &most.lanes, &twice.lanes, 1, &b.lanes);
        const int found = v_greatest_byte(v_load_i(&a));
        if (found != greatest && complain()) printf("%s: v_greatest_byte %d, not %d\n", test, found, greatest);
    }
}

// As v_sums, whose two halves they are.
static void test_sums_of_twos(void) {
    for (int round = 0; round < 500; round++) {
        lanes rows[LANES], want;
        vf x[LANES], twos[LANES / 2];
        for (int r = 0; r < LANES; r++) {
            want.f[r] = 0.0f;
            for (int l = 0; l < LANES; l++) {
                rows[r].f[l] = (float)(int32_t)(random_bits() % 2001) - 1000.0f;
                want.f[r] += rows[r].f[l];
            }
            x[r] = v_load(rows[r].f);
        }
        for (int r = 0; r < LANES; r += 2) twos[r / 2] = v_sums_of_two(x[r], x[r + 1]);
        const lanes got = of_f(v_sums_of_twos(twos));
        check("v_sums_of_twos", same_bits, &got, &want, 0, NULL);
    }
}
#endif

#ifdef TESSERA_ISA_CPU_AVX512FP16_H

// ---- halves --------------------------------------------------------------------------------------------------------

typedef union {
    uint16_t u[2 * LANES];
    lanes words;
} halves;

static double half_value(uint16_t half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const double magnitude = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
                             : exponent == 0 ? ldexp(mantissa, -24)
                                             : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static vh load_h(const halves *x) { return v_as_h(v_load_i(x->words.i)); }

static halves of_h(vh x) {
    halves list;
    v_store_i(list.words.i, (vi)x);
    return list;
}

static void check_half(const char *word, int lane, uint16_t got, double want) {
    const double value = half_value(got);
    if (value == want || (isnan(value) && isnan(want)) || !complain()) return;
    printf("%s: %s, half %d: %04x (%g), not %g\n", test, word, lane, got, value, want);
}

// Every code of 8 bits in either byte of a word, beside random ones; of each number of 4 bits in each place.
static void test_half_codes(void) {
    halves in, table;
    for (int code = 0; code < 256; code++)
        for (int which = 0; which < 2; which++) {
            for (int n = 0; n < 2 * LANES; n++)
                in.u[n] = (uint16_t)((code + 7 * n) % 256 << 8 * which | random_bits() % 256 << 8 * (1 - which));
            const vi codes = v_load_i(in.words.i);
            const halves e4m3 = of_h(v_halves_of_e4m3(codes, which)), s8 = of_h(v_halves_of_s8(codes, which));
            for (int n = 0; n < 2 * LANES; n++) {
                const int at = (code + 7 * n) % 256, exponent = at >> 3 & 15;
                const double magnitude = ldexp(at % 8 + (exponent ? 8 : 0), (exponent ? exponent : 1) - 10 - 8);
                check_half("v_halves_of_e4m3", n, e4m3.u[n], at & 128 ? -magnitude : magnitude);
                check_half("v_halves_of_s8", n, s8.u[n], at < 128 ? at : at - 256);
            }
        }
    for (int n = 0; n < 2 * LANES; n++) table.u[n] = (uint16_t)(0x3c00 + n % 16);
    for (int which = 0; which < 4; which++) {
        for (int n = 0; n < 2 * LANES; n++) in.u[n] = (uint16_t)random_bits();
        const halves got = of_h(v_halves_of_u4(v_load_i(table.words.i), v_load_i(in.words.i), which));
        for (int n = 0; n < 2 * LANES; n++)
            check_half("v_halves_of_u4", n, got.u[n], half_value((uint16_t)(0x3c00 + (in.u[n] >> 4 * which & 15))));
    }
}

static void test_half_loads(void) {
    const uint8_t *const p = place(0, 256);
    fill_page();
    const lanes quarters = of_i(v_load_quarters(p + 3, p + 100, p + 50, p + 201));
    const int first[] = {3, 100, 50, 201};
    lanes want;
    for (int q = 0; q < 4; q++) memcpy(want.u + 4 * q, p + first[q], 16);
    check("v_load_quarters", same_bits, &quarters, &want, 0, NULL);
    const lanes repeated = of_i(v_repeat_quarter(p + 17));
    for (int q = 0; q < 4; q++) memcpy(want.u + 4 * q, p + 17, 16);
    check("v_repeat_quarter", same_bits, &repeated, &want, 0, NULL);
}

// All halves as floats; products and sums that are halves are exact, denormals too.
static void test_half_arithmetic(void) {
    for (uint32_t first = 0; first < 0x10000; first += 2 * LANES) {
        halves in;
        lanes want[2];
        for (uint32_t n = 0; n < 2 * LANES; n++) {
            in.u[n] = (uint16_t)(first + n);
            want[n / LANES].f[n % LANES] = (float)half_value(in.u[n]);
        }
        const vh x = load_h(&in);
        const vf first_floats = v_first_floats(x);
        const lanes got = of_f(first_floats), other = of_f(v_other_floats(x));
        check("v_first_floats", same_float, &got, &want[0], 0, NULL);
        check("v_other_floats", same_float, &other, &want[1], 0, NULL);
        const uint16_t two = 0x4000, three = 0x4200;
        const halves five = of_h(v_mac_half(v_mac_half(v_zero_h(), &two, x), &three, x));
        for (uint32_t n = 0; n < 2 * LANES; n++) // the last sum is exact where 5 x has 11 bits
            if ((in.u[n] >> 10 & 31) < 28 && in.u[n] % 8 == 0) {
                check_half("v_mac_half", (int)n, five.u[n], 5 * half_value(in.u[n]));
                check_half("v_mac_h", (int)n, of_h(v_mac_h(x, v_set1_h(4), x)).u[n], 5 * half_value(in.u[n]));
                check_half("v_add_h", (int)n, of_h(v_add_h(x, x)).u[n], 2 * half_value(in.u[n]));
            }
        for (uint32_t l = 0; l < LANES; l++) { // what a half holds comes back, twice
            const halves twice = of_h(v_as_h(v_twice_h(first_floats)));
            check_half("v_twice_h", (int)l, twice.u[2 * l], (double)want[0].f[l]);
            check_half("v_twice_h", (int)l, twice.u[2 * l + 1], (double)want[0].f[l]);
        }
    }
}

// Numbers between halves, beyond the greatest and below the least, to nearest even.
static void test_rounded_halves(void) {
    const float in[LANES] = {2049,       2051,       -2049,      65519,       65520,         -1e9f,
                             0x1p-25f,   0x1.8p-24f, 0x1.8p-25f, -0x1.1p-25f, 0x1.0008p-14f, 0x1.ffcp-15f,
                             0x1.001p0f, 0x1.003p0f, 0,          -0.0f};
    const double want[LANES] = {2048, 2052,      -2048,   65504,    (double)INFINITY, -(double)INFINITY,
                                0,    0x1p-23,   0x1p-24, -0x1p-24, 0x1p-14,          0x1p-14,
                                1,    0x1.004p0, 0,       0};
    const halves twice = of_h(v_as_h(v_twice_h(v_load(in))));
    for (int n = 0; n < 2 * LANES; n++) check_half("v_twice_h", n, twice.u[n], want[n / 2]);
}

static void test_greatests(void) {
    for (int repeat = 0; repeat < 100; repeat++) {
        vi x[LANES];
        lanes want;
        for (int r = 0; r < LANES; r++) {
            lanes row;
            for (int l = 0; l < LANES; l++) row.u[l] = (uint32_t)random_bits() >> repeat % 32;
            x[r] = v_load_i(row.i);
            want.i[r] = row.i[0];
            for (int l = 1; l < LANES; l++) want.i[r] = row.i[l] > want.i[r] ? row.i[l] : want.i[r];
        }
        const lanes got = of_i(v_greatests_i(x));
        check("v_greatests_i", same_bits, &got, &want, 0, NULL);
    }
}

// Every code in either byte of a word, beside random ones, times a power of 2 that leaves whole numbers or not; of each
// number of 4 bits in each place.
static void test_words(void) {
    halves in, other, table;
    for (int code = 0; code < 256; code++)
        for (int which = 0; which < 2; which++)
            for (int exponent = 12; exponent <= 17; exponent++) {
                for (int n = 0; n < 2 * LANES; n++)
                    in.u[n] = (uint16_t)((code + 7 * n) % 256 << 8 * which | random_bits() % 256 << 8 * (1 - which));
                const vi codes = v_load_i(in.words.i);
                const halves numbers = of_h(v_halves_of_e4m3(codes, which));
                const halves e4m3 = of_h(v_as_h(v_words_of_e4m3(codes, which, v_set1_h((float)exponent))));
                for (int n = 0; n < 2 * LANES; n++) {
                    const double number = ldexp(half_value(numbers.u[n]), exponent);
                    if (fabs(number) < 32768) check_word("v_words_of_e4m3", n, e4m3.u[n], (int)nearbyint(number));
                }
            }
    for (int n = 0; n < 2 * LANES; n++) table.u[n] = (uint16_t)(1000 * (n % 16) - 8000);
    for (int which = 0; which < 4; which++) {
        for (int n = 0; n < 2 * LANES; n++) in.u[n] = (uint16_t)random_bits(), other.u[n] = (uint16_t)random_bits();
        const halves got = of_h(v_as_h(v_words_of_u4(v_load_i(table.words.i), v_load_i(in.words.i), which)));
        for (int n = 0; n < 2 * LANES; n++)
            check_word("v_words_of_u4", n, got.u[n], 1000 * (in.u[n] >> 4 * which & 15) - 8000);
        const halves greater = of_h(v_as_h(v_greater_pairs(v_load_i(in.words.i), v_load_i(other.words.i))));
        for (int n = 0; n < 2 * LANES; n++) {
            const int magnitude = other.u[n] & 0x7fff;
            check_word("v_greater_pairs", n, greater.u[n], (int16_t)(in.u[n] > magnitude ? in.u[n] : magnitude));
        }
    }
}

// Numbers that lie between words, and beyond them.
static void test_packed_words(void) {
    const float numbers[LANES] = {0,     0.5f, 1.5f,   -0.5f, -1.5f, 2.25f, -2.75f,  32767,
                                  32768, 1e6f, -32768, -1e6f, 100,   -7,    8191.5f, 3};
    const int want[LANES] = {0, 0, 2, 0, -2, 2, -3, 32767, 32767, 32767, -32768, -32768, 100, -7, 8192, 3};
    const halves both = of_h(v_as_h(v_words_of_i(v_to_i(v_load(numbers)), v_set1_i(-40000))));
    for (int l = 0; l < LANES; l++) {
        check_word("v_words_of_i", l, both.u[l / 4 * 8 + l % 4], want[l]);
        check_word("v_words_of_i", l, both.u[l / 4 * 8 + 4 + l % 4], -32768);
    }
}

static void test_greatest_byte(void) {
    for (int round = 0; round < 500; round++) {
        union {
            uint8_t u[4 * LANES];
            lanes words;
        } a, b, twice;
        int greatest = 0;
        const uint32_t limit = 1 + random_bits() % 256;
        for (int n = 0; n < 4 * LANES; n++) {
            a.u[n] = (uint8_t)(random_bits() % limit), b.u[n] = (uint8_t)random_bits();
            const uint8_t shifted = (uint8_t)(b.u[n] << 1);
            twice.u[n] = a.u[n] > shifted ? a.u[n] : shifted;
            if (a.u[n] > greatest) greatest = a.u[n];
        }
        const lanes most = of_i(v_most_twice(v_load_i(a.words.i), v_load_i(b.words.i)));
        check("v_most_twice", same_bits, &most, &twice.words, 1, &b.words);
        const int found = v_greatest_byte(v_load_i(a.words.i));
        if (found != greatest && complain()) printf("%s: v_greatest_byte %d, not %d\n", test, found, greatest);
    }
}
#endif

#ifdef TESSERA_ISA_CPU_AMX_H
static void check_upper(const lanes in[2]) {
    const vf low = v_load(in[0].f), high = v_load(in[1].f);
    const lanes upper = of_f(v_upper(low)), across = of_i(v_upper_lanes(low, high)), row = of_i(v_upper_row(low, high));
    const lanes low_half = of_f(v_low_half(v_as_i(low))), high_half = of_f(v_high_half(v_as_i(low)));
    lanes want_upper, want_across, want_row, want_low;
    for (int l = 0; l < LANES; l++) {
        const uint32_t *from = l < LANES / 2 ? &in[0].u[2 * l] : &in[1].u[2 * l - LANES];
        want_upper.u[l] = in[0].u[l] & 0xffff0000;
        want_low.u[l] = in[0].u[l] << 16;
        want_across.u[l] = (in[1].u[l] & 0xffff0000) | in[0].u[l] >> 16;
        want_row.u[l] = (from[1] & 0xffff0000) | from[0] >> 16;
    }
    check("v_upper", same_bits, &upper, &want_upper, 2, in);
    check("v_high_half", same_bits, &high_half, &want_upper, 2, in);
    check("v_low_half", same_bits, &low_half, &want_low, 2, in);
    check("v_upper_lanes", same_bits, &across, &want_across, 2, in);
    check("v_upper_row", same_bits, &row, &want_row, 2, in);
}

static void test_upper(void) {
    for (int i = 0; i < COUNT(edges); i++)
        for (int j = 0; j < COUNT(edges); j++) check_upper((lanes[2]){edge(i, 1), edge(j, 3)});
    for (int n = 0; n < 10000; n++) {
        lanes in[2];
        for (int l = 0; l < LANES; l++)
            for (int i = 0; i < 2; i++) in[i].u[l] = random_bits();
        check_upper(in);
    }
}

// Each bf16, the midpoint beyond it, and the numbers about that.
static void test_round_half_away(void) {
    for (uint32_t code = 0; code <= 0x7f80; code++) {
        lanes in, want;
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t sign = l < LANES / 2 ? 0 : 0x80000000u;
            const uint32_t below[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, random_bits() & 0xffff, 0x8000};
            in.u[l] = code == 0x7f80 ? 0x7f800000 : code << 16 | below[l % 8];
            want.u[l] = code << 16;
            const double value = as_float(code << 16), next = code < 0x7f7f ? as_float((code + 1) << 16) : 0x1p128;
            if (code < 0x7f80 && next - in.f[l] <= in.f[l] - value) want.u[l] += 0x10000;
            in.u[l] |= sign;
            want.u[l] |= sign;
        }
        const lanes got = of_f(v_upper(v_round_half_away(v_load(in.f))));
        check("v_round_half_away", same_bits, &got, &want, 1, &in);
    }
    const lanes nan = of_f(v_upper(v_round_half_away(v_set1(NAN)))), want = of_f(v_set1(NAN));
    check("v_round_half_away of NaN", same_float, &nan, &want, 0, NULL);
}

// Bytes and halves of words within quarters, and as bytes or bf16 in memory.
static void test_tile_pieces(void) {
    for (int round = 0; round < 200; round++) {
        uint8_t a[4 * LANES], b[4 * LANES], zipped[2][4 * LANES], upper[2 * LANES], lower[2 * LANES];
        uint16_t words[2][2 * LANES], halves[2 * LANES], other[2 * LANES];
        for (int n = 0; n < 4 * LANES; n++) a[n] = (uint8_t)random_bits(), b[n] = (uint8_t)random_bits();
        memcpy(halves, a, sizeof a);
        memcpy(other, b, sizeof b);
        vi x[2];
        v_zip_8(v_load_i(a), v_load_i(b), x);
        for (int h = 0; h < 2; h++) v_store_i(zipped[h], x[h]);
        v_zip_16(v_load_i(a), v_load_i(b), x);
        for (int h = 0; h < 2; h++) v_store_i(words[h], x[h]);
        for (int h = 0; h < 2; h++)
            for (int n = 0; n < 2 * LANES; n++) {
                const int byte = n / 8 * 16 + h * 8 + n % 8, word = n / 2 / 4 * 8 + h * 4 + n / 2 % 4;
                check_word("v_zip_8", n, zipped[h][2 * n], a[byte]);
                check_word("v_zip_8", n, zipped[h][2 * n + 1], b[byte]);
                check_word("v_zip_16", n, words[h][n], (int16_t)(n % 2 ? other[word] : halves[word]));
            }
        v_store_bytes(upper, lower, v_load_i(a));
        for (int n = 0; n < 2 * LANES; n++) {
            check_word("v_store_bytes", n, upper[n], halves[n] >> 8);
            check_word("v_store_bytes", n, lower[n], halves[n] & 255);
        }
        int32_t numbers[2 * LANES];
        float floats[LANES];
        for (int n = 0; n < 2 * LANES; n++) numbers[n] = (int32_t)random_bits() >> random_bits() % 32;
        for (int n = 0; n < LANES; n++) floats[n] = as_float((random_bits() & 0x8fffffffu) + 0x30000000u);
        v_store_i(halves, v_halves_of_i(v_load_i(numbers), v_load_i(numbers + LANES)));
        v_store_pairs(other, v_load(floats));
        for (int n = 0; n < 2 * LANES; n++) {
            const int near = numbers[n] < -32768 ? -32768 : numbers[n] > 32767 ? 32767 : numbers[n];
            check_word("v_halves_of_i", n, halves[n], near);
        }
        for (int n = 0; n < LANES; n++) {
            const uint32_t bits = as_bits(floats[n]);
            check_word("v_store_pairs", n, other[n], (int16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
        }
    }
}

// So many bytes, and nothing behind them: they end where a page does.
static void test_some_bytes(void) {
    for (int count = 1; count <= 80; count++) {
        const int read = count < 4 * LANES ? count : 4 * LANES;
        uint8_t got[4 * LANES];
        fill_page();
        const uint8_t *p = place(2, (size_t)read);
        v_store_i(got, v_load_bytes(p, count));
        for (int n = 0; n < 4 * LANES; n++) check_word("v_load_bytes", n, got[n], n < read ? p[n] : 0);
    }
}

// Vectors of 1 to 16 rows.
static void test_rows_of_lanes(void) {
    for (int rows = 1; rows <= LANES; rows *= 2) {
        lanes in, greatest, sum, of_row, of_key, swapped, number;
        for (int l = 0; l < LANES; l++) in.f[l] = (float)(int)(random_bits() % 1000) - 500;
        for (int l = 0; l < LANES; l++) {
            greatest.f[l] = -INFINITY, sum.f[l] = 0;
            for (int other = l % rows; other < LANES; other += rows) {
                greatest.f[l] = fmaxf(greatest.f[l], in.f[other]);
                sum.f[l] += in.f[other];
            }
            of_row.f[l] = in.f[l % rows];
            number.i[l] = l / rows;
        }
        const lanes got[] = {of_f(v_greatest_of_row(v_load(in.f), rows)), of_f(v_sum_of_row(v_load(in.f), rows)),
                             of_f(v_of_row(v_load(in.f), rows)), of_i(v_of_row_i(v_load_i(in.i), rows)),
                             of_i(v_key_lanes(rows))};
        check("v_greatest_of_row", same_bits, &got[0], &greatest, 1, &in);
        check("v_sum_of_row", same_bits, &got[1], &sum, 1, &in);
        check("v_of_row", same_bits, &got[2], &of_row, 1, &in);
        check("v_of_row_i", same_bits, &got[3], &of_row, 1, &in);
        check("v_key_lanes", same_bits, &got[4], &number, 0, NULL);
        for (int first = 0; first < LANES; first += LANES / rows) {
            for (int l = 0; l < LANES; l++) of_key.f[l] = in.f[first + l / rows];
            const lanes found = of_f(v_of_key(v_load(in.f), rows, first));
            check("v_of_key", same_bits, &found, &of_key, 1, &in);
        }
        for (int distance = 1; distance < LANES; distance *= 2) {
            for (int l = 0; l < LANES; l++) swapped.f[l] = in.f[l ^ distance];
            const lanes found = of_f(v_swap_lanes(v_load(in.f), distance));
            check("v_swap_lanes", same_bits, &found, &swapped, 1, &in);
        }
        lanes keys[LANES]; // number 100 * row + key
        vf x[LANES];
        for (int n = 0; n < rows; n++) {
            for (int l = 0; l < LANES; l++) keys[n].f[l] = (float)(100 * (l % rows) + n * (LANES / rows) + l / rows);
            x[n] = v_load(keys[n].f);
        }
        v_rows_of_keys(x, rows);
        for (int r = 0; r < rows; r++) {
            lanes want;
            for (int l = 0; l < LANES; l++) want.f[l] = (float)(100 * r + v_key_of_lane(rows, l));
            const lanes found = of_f(x[r]);
            check("v_rows_of_keys", same_bits, &found, &want, 0, NULL);
        }
        for (int key = 0, count; key < LANES; key++) {
            count = 0;
            for (int l = 0; l < LANES; l++) count += v_key_of_lane(rows, l) == key;
            check_word("v_key_of_lane", key, (uint16_t)count, 1);
        }
    }
}

typedef lanes tile[TILE];

// Tile registers are numbers that the compiler has to know.
#define EACH_TILE(word) word(0) word(1) word(2) word(3) word(4) word(5) word(6) word(7)

static void load_tile(int t, const void *p, int64_t stride, int once) {
    t_see_stores();
    switch (t) {
#define LOAD(number)                                                                                                   \
    case number:                                                                                                       \
        if (once)                                                                                                      \
            t_load_once(number, p, stride);                                                                            \
        else                                                                                                           \
            t_load(number, p, stride);                                                                                 \
        break;
        EACH_TILE(LOAD)
    }
}

static void store_tile(int t, void *p, int64_t stride) {
    switch (t) {
#define STORE(number)                                                                                                  \
    case number:                                                                                                       \
        t_store(number, p, stride);                                                                                    \
        break;
        EACH_TILE(STORE)
    }
}

static void zero_tile(int t) {
    switch (t) {
#define ZERO(number)                                                                                                   \
    case number:                                                                                                       \
        t_zero(number);                                                                                                \
        break;
        EACH_TILE(ZERO)
    }
}

static void check_tile(const char *word, int t, const tile want) {
    tile got;
    store_tile(t, got, TILE);
    for (int r = 0; r < TILE; r++) check(word, same_bits, &got[r], &want[r], 0, NULL);
}

// Loads and stores keep all bits, with rows at a distance, and memory between the rows is not changed.
static void test_tile_memory(void) {
    static const int strides[] = {TILE, TILE + 1, 3 * TILE};
    static const tile zero;
    t_start();
    for (int t = 0; t < TILES; t++) check_tile("t_start", t, zero);
    for (int s = 0; s < COUNT(strides); s++)
        for (int where = 0; where < 3; where++) {
            const size_t step = 4 * (size_t)strides[s], bytes = (TILE - 1) * step + sizeof(lanes);
            uint8_t *p = place(where, bytes);
            tile in[TILES];
            for (int t = 0; t < TILES; t++) {
                fill_page();
                for (int r = 0; r < TILE; r++) memcpy(&in[t][r], p + (size_t)r * step, sizeof(lanes));
                load_tile(t, p, strides[s], (t + where) % 2);
            }
            for (int t = 0; t < TILES; t++) { // each is still what was loaded
                check_tile("t_load, t_load_once", t, in[t]);
                fill_page();
                memcpy(before, page, page_bytes);
                for (int r = 0; r < TILE; r++) memcpy(before + (p - page) + (size_t)r * step, &in[t][r], sizeof(lanes));
                store_tile(t, p, strides[s]);
                if (memcmp(page, before, page_bytes) && complain())
                    printf("%s: t_store of tile %d, stride %d, is not the tile alone\n", test, t, strides[s]);
            }
            for (int t = 0; t < TILES; t++) {
                zero_tile(t);
                check_tile("t_zero", t, zero);
                if (t + 1 < TILES) check_tile("t_zero of another", t + 1, in[t + 1]);
            }
            load_tile(where, in[0], TILE, 0);
            t_end();
            t_start();
            check_tile("t_start", where, zero);
        }
    t_end();
}

// c += a b
static void tile_product(tile c, const tile a, const tile b) {
    t_start();
    t_see_stores();
    t_load(3, c->f, TILE);
    t_load(5, a->f, TILE);
    t_load(7, b->f, TILE);
    t_dot2(3, 5, 7);
    t_store(3, c->f, TILE);
    t_end();
}

// Sums of 33 numbers, each rounded at most once a step.
static void test_tile_products(void) {
    for (int n = 0; n < 200; n++) {
        tile a, b, c, got;
        for (int r = 0; r < TILE; r++)
            for (int l = 0; l < LANES; l++) {
                c[r].f[l] = (float)(int32_t)random_bits() * 0x1p-29f;
                a[r].u[l] = (random_bits() & 0x87ff87ffu) + 0x3b803b80u; // exponents -8 .. 7, all signs and mantissas
                b[r].u[l] = (random_bits() & 0x87ff87ffu) + 0x3b803b80u;
            }
        memcpy(got, c, sizeof got);
        tile_product(got, a, b);
        for (int r = 0; r < TILE; r++) {
            lanes want;
            for (int l = 0; l < LANES; l++) {
                double sum = c[r].f[l], size = fabs(sum);
                for (int w = 0; w < TILE; w++)
                    for (int half = 16; half >= 0; half -= 16) {
                        const double x = as_float(a[r].u[w] << half & 0xffff0000);
                        const double product = x * as_float(b[w].u[l] << half & 0xffff0000);
                        sum += product;
                        size += fabs(product);
                    }
                want.f[l] = fabs(got[r].f[l] - sum) <= 33 * 0x1p-24 * size ? got[r].f[l] : (float)sum;
            }
            check("t_dot2", same_float, &got[r], &want, 0, NULL);
        }
    }
}

// Sums of small integers are exact in any order: they show that each product is added where it belongs, once.
static void test_tile_places(void) {
    for (int half = 0; half <= 16; half += 16)
        for (int w = 0; w < TILE; w++) {
            tile a = {0}, b = {0}, c, want;
            for (int r = 0; r < TILE; r++) {
                a[r].u[w] = as_bits((float)(r + 1)) >> 16 << half;
                for (int l = 0; l < LANES; l++) {
                    b[w].u[l] = as_bits((float)(l - 7)) >> 16 << half;
                    c[r].f[l] = (float)(r * LANES + l);
                    want[r].f[l] = c[r].f[l] + (float)((r + 1) * (l - 7));
                }
            }
            tile_product(c, a, b);
            for (int r = 0; r < TILE; r++) check("t_dot2", same_bits, &c[r], &want[r], 0, NULL);
        }
}

// Products of bytes, signed or not, in tiles of other shapes: nothing else is read or stored.
static void test_tile_shapes(void) {
    for (int round = 0; round < 300; round++) {
        enum { SIGNED, UNSIGNED_A, UNSIGNED_B, WAYS };
        const int rows = 1 + round % TILE, columns = 1 + (int)(random_bits() % LANES), words = 1 + round / 3 % TILE;
        const int of_rows[TILES] = {16, 16, 16, rows, 16, rows, 16, words};
        const int of_words[TILES] = {16, 16, 16, columns, 16, words, 16, columns};
        for (int way = 0; way < WAYS; way++) {
            tile a, b, c, got, want;
            for (int r = 0; r < TILE; r++)
                for (int l = 0; l < LANES; l++)
                    a[r].u[l] = random_bits(), b[r].u[l] = random_bits(), c[r].i[l] = (int32_t)random_bits() >> 4;
            memset(got, 1, sizeof got);
            memcpy(want, got, sizeof want);
            for (int r = 0; r < rows; r++)
                for (int l = 0; l < columns; l++) {
                    want[r].i[l] = c[r].i[l];
                    for (int n = 0; n < 4 * words; n++) {
                        const uint8_t x = (uint8_t)(a[r].u[n / 4] >> n % 4 * 8),
                                      y = (uint8_t)(b[n / 4].u[l] >> n % 4 * 8);
                        want[r].i[l] += (way == UNSIGNED_A ? x : (int8_t)x) * (way == UNSIGNED_B ? y : (int8_t)y);
                    }
                }
            t_start_as(of_rows, of_words);
            t_see_stores();
            t_load(3, c->f, TILE);
            t_load(5, a->f, TILE);
            t_load(7, b->f, TILE);
            if (way == SIGNED) t_dot4(3, 5, 7);
            if (way == UNSIGNED_A) t_dot4_unsigned_a(3, 5, 7);
            if (way == UNSIGNED_B) t_dot4_unsigned_b(3, 5, 7);
            t_store(3, got->f, TILE);
            t_end();
            for (int r = 0; r < TILE; r++) check("t_dot4", same_bits, &got[r], &want[r], 0, NULL);
        }
    }
}

// One pair times one pair is added to c in row 3 and lane 5, and to no other row or lane.
static void test_tile_limits(void) {
    static const struct {
        uint32_t a, b; // low halves first
        float c, want;
    } limits[] = {
        {0x0000007f, 0x00007f00, 1, 1},                             // denormals are 0,
        {0x00007f00, 0x0000007f, 0, 0},                             // of either factor
        {0x007f0000, 0x7f000000, 2, 2},                             // and half
        {0x00000000, 0x00000000, 0x1p-130f, 0},                     // so is c,
        {0x00001f80, 0x00002000, 0, 0},                             // so are products: 2^-64 * 2^-63,
        {0x1f801f80, 0x20002000, 0, 0},                             // two as well
        {0x00002000, 0x00002000, 0, 0x1p-126f},                     // the least normal number stays
        {0x00007f00, 0x00007f00, 0, INFINITY},                      // 2^127 * 2^127
        {0x00007f80, 0x00003f80, 1, INFINITY},                      // infinity
        {0x00007f80, 0x00000000, 1, NAN},                           // times 0,
        {0x00007f80, 0x0000007f, 1, NAN},                           // and times a denormal
        {0x7f80ff80, 0x3f803f80, 1, NAN},                           // less infinity
        {0x00003f80, 0x00003f80, -INFINITY, -INFINITY},             // of c
        {0x00007fc0, 0x00003f80, 1, NAN},                           // NaN
        {0x00000000, 0x00000000, NAN, NAN},                         // of c
        {0x00003f80, 0x00003f80, 0x1p24f, 0x1p24f},                 // halves to even, down
        {0x00003f80, 0x00003f80, 0x1.000002p24f, 0x1.000004p24f},   // and up
        {0x0000bf80, 0x00003f80, -0x1.000002p24f, -0x1.000004p24f}, // of either sign
    };
    enum { ROW = 3, LANE = 5, WORD = 9 };
    for (int n = 0; n < COUNT(limits); n++) {
        tile a = {0}, b = {0}, c = {0}, want = {0};
        a[ROW].u[WORD] = limits[n].a;
        b[WORD].u[LANE] = limits[n].b;
        c[ROW].f[LANE] = limits[n].c;
        want[ROW].f[LANE] = limits[n].want;
        for (int l = 0; l < TILE; l++) { // an infinity or NaN by zeros: NaN
            const bool bad_a = isnan(0 * as_float(limits[n].a << 16)) || isnan(0 * as_float(limits[n].a & 0xffff0000));
            if (l != LANE && bad_a) want[ROW].f[l] = NAN;
        }
        tile_product(c, a, b);
        for (int r = 0; r < TILE; r++) check("t_dot2", same_float, &c[r], &want[r], 0, NULL);
    }
}

static const char *tiles_missing(void) { // NULL: they may be used from here on
#ifdef TESSERA_EMULATE_TILES
    return NULL;
#else
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) ? "AMX" : NULL;
#endif
}
#endif

// ---- all of it -----------------------------------------------------------------------------------------------------

static const char *missing(void) { // instructions that this CPU lacks, or NULL
#if defined(__x86_64__)
    __builtin_cpu_init();
#if defined(__AVX512BF16__)
    if (!__builtin_cpu_supports("avx512bf16")) return "AVX512_BF16";
    if (!__builtin_cpu_supports("avx512vnni")) return "AVX512_VNNI";
#endif
#if defined(TESSERA_ISA_CPU_AVX512FP16_H) && !defined(TESSERA_EMULATE_HALVES)
    unsigned a, b, c, d; // clang 14 has no name for it
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & 1u << 23)) return "AVX512_FP16";
#endif
#if defined(__AVX512F__)
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")))
        return "AVX-512";
#if defined(TESSERA_ISA_CPU_AMX_H)
    return tiles_missing();
#endif
#elif defined(__AVX2__)
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return "AVX2";
#elif defined(__SSE4_2__)
    if (!__builtin_cpu_supports("sse4.2")) return "SSE4.2";
#endif
#endif
    return NULL;
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"float words", test_float_words},
    {"v_quotient", test_quotient},
    {"multiply-add", test_fma},
    {"unary words", test_unary_words},
    {"limits of v_round", test_round_limits},
    {"v_scale2", test_scale2},
    {"integer words", test_integer_words},
    {"shifts", test_shifts},
    {"integers and floats", test_int_and_float},
    {"v_mul_wide", test_mul_wide},
    {"choices", test_choices},
    {"v_transpose", test_transpose},
    {"v_sums", test_sums},
    {"loads", test_loads},
    {"stores", test_stores},
    {"split loads", test_split},
    {"stores past caches", test_stream},
    {"parts of vectors past caches", test_small_streams},
    {"every code", test_codes},
    {"rounding", test_rounding},
    {"v_to_bf16_split", test_bf16_split},
    {"v_to_i", test_to_i},
    {"v_fetch", test_fetch},
    {"v_put", test_put},
    {"prefetch", test_prefetch},
    {"scales", test_scalars},
    {"v_exp2", test_exp2},
    {"v_tanh", test_tanh},
    {"limits of mathematics", test_math_limits},
    {"v_philox", test_philox},
#if defined(TESSERA_ISA_CPU_AVX2_H) || defined(__AVX512BF16__)
    {"loads of words", test_loads_of_words},
    {"stores of words", test_stored_words},
    {"products of words", test_products_of_words},
#endif
#ifdef TESSERA_ISA_CPU_AVX2_H
    {"loads of halves", test_loads_of_halves},
    {"words of 16 bits", test_words},
    {"greatest bytes", test_greatest_byte},
    {"sums in two halves", test_sums_of_twos},
#endif
#ifdef __AVX512BF16__
    {"pairs", test_pairs},
    {"v_zip_pairs", test_zip},
    {"loads of 4 bits", test_u4_pairs},
    {"loads of e4m3", test_e4m3_pairs},
    {"lookups of pairs", test_pair_lookup},
    {"codes of pairs", test_pair_codes},
    {"v_scale_pairs", test_scale_pairs},
    {"v_dot2", test_dot2},
    {"loads of pieces", test_piece_loads},
    {"bytes as pairs", test_bytes_as_pairs},
    {"orders of pieces", test_piece_orders},
    {"sums of parts", test_part_sums},
#endif
#ifdef TESSERA_ISA_CPU_AVX512FP16_H
    {"codes as halves", test_half_codes},
    {"loads of quarters", test_half_loads},
    {"arithmetic of halves", test_half_arithmetic},
    {"rounded halves", test_rounded_halves},
    {"the greatest of rows", test_greatests},
    {"words of 16 bits", test_words},
    {"packed words", test_packed_words},
    {"greatest bytes", test_greatest_byte},
#endif
#ifdef TESSERA_ISA_CPU_AMX_H
    {"upper halves", test_upper},
    {"v_round_half_away", test_round_half_away},
    {"pieces of tiles", test_tile_pieces},
    {"v_load_bytes", test_some_bytes},
    {"rows of lanes", test_rows_of_lanes},
    {"memory of tiles", test_tile_memory},
    {"shapes of tiles", test_tile_shapes},
    {"t_dot2", test_tile_products},
    {"places of t_dot2", test_tile_places},
    {"limits of t_dot2", test_tile_limits},
#endif
};

__attribute__((noinline)) static int run_all(void) {
    int passed = 0;
    before = malloc(page_bytes);
    if (!before) return 2;
    for (int n = 0; n < COUNT(tests); n++) {
        test = tests[n].name;
        failed_checks = 0;
        tests[n].run();
        if (failed_checks) printf("%s: %d checks failed\n", test, failed_checks);
        passed += failed_checks == 0;
    }
    free(before);
    printf("%d passed, %d failed\n", passed, COUNT(tests) - passed);
    return passed == COUNT(tests) ? 0 : 1;
}

int main(void) {
    const char *lacking = missing();
    if (lacking) {
        printf("skipped: this CPU lacks %s\n", lacking);
        return 77;
    }
    if (!make_page()) {
        perror("mmap");
        return 2;
    }
    return run_all();
}
