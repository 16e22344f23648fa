// SPDX-License-Identifier: MIT
// A kernel for each word of the CDNA vocabulary, for test_cdna_words.py. Thread t reads in[t], in[T + t], ... and
// writes out[t], out[T + t], ..., where T is the number of threads, unless a comment says otherwise.
#include "tessera/isa/cdna_quantised.h"

#define WORD(name) KERNEL WORKGROUP(128) void name(GLOBAL const uint32_t *in, GLOBAL uint32_t *out)
enum { T = 128 };
#define THREAD thread_id()

WORD(word_lane_id) {
    (void)in;
    out[THREAD] = (uint32_t)lane_id();
}

WORD(word_thread_id) {
    (void)in;
    out[thread_id()] = (uint32_t)thread_id();
}

// Each workgroup writes its own T words.
#define OF_GRID(name)                                                                                                  \
    WORD(word_##name) { out[T * name() + THREAD] = in[THREAD] + (uint32_t)name(); }
OF_GRID(workgroup_x)
OF_GRID(workgroup_y)
OF_GRID(workgroup_z)

WORD(word_wave_id) {
    (void)in;
    out[THREAD] = (uint32_t)wave_id();
}

WORD(word_uniform) { out[THREAD] = (uint32_t)uniform((int)in[THREAD]); }

WORD(word_any_lane) { out[THREAD] = (uint32_t)any_lane((int)in[THREAD]); }

WORD(word_other_half) { out[THREAD] = AS_U32(other_half(AS_F32(in[THREAD]))); }

WORD(word_swap_halves) {
    uint32_t a = in[THREAD], b = in[T + THREAD];
    swap_halves(&a, &b);
    out[THREAD] = a;
    out[T + THREAD] = b;
}

WORD(word_sum_of_lanes) { out[THREAD] = AS_U32(sum_of_lanes(AS_F32(in[THREAD]))); }

WORD(word_greatest_of_lanes) { out[THREAD] = greatest_of_lanes(in[THREAD]); }

LDS uint32_t exchange[T];

WORD(word_barrier) { // the other wave's value
    exchange[THREAD] = in[THREAD];
    barrier();
    out[THREAD] = exchange[THREAD ^ 64];
}

WORD(word_meet_lanes) { // the neighbour's value
    exchange[THREAD] = in[THREAD];
    meet_lanes();
    out[THREAD] = exchange[THREAD ^ 1];
}

WORD(word_of_lane) { out[THREAD] = of_lane(in[THREAD], (int)(in[T + THREAD] % 64)); }
WORD(word_of_row) {
    UNROLL
    for (int lane = 0; lane < 16; lane++) out[T * lane + THREAD] = of_row(in[THREAD], lane);
}
WORD(word_other_lane_bits) {
    out[THREAD] = other_lane_bits(in[THREAD], 1);
    out[T + THREAD] = other_lane_bits(in[THREAD], 2);
    out[2 * T + THREAD] = other_lane_bits(in[THREAD], 4);
    out[3 * T + THREAD] = other_lane_bits(in[THREAD], 8);
    out[4 * T + THREAD] = other_lane_bits(in[THREAD], 16);
}
WORD(word_pick_bytes) { out[THREAD] = pick_bytes(in[THREAD], in[T + THREAD], in[2 * T + THREAD] & 0x07070707); }

WORD(word_buffer_add_f32) { // the sum of two, and past the end nothing
    const buffer b = make_buffer(out, 4 * T);
    out[THREAD] = in[THREAD];
    out[T + THREAD] = in[THREAD];
    barrier();
    buffer_add_f32(AS_F32(in[T + THREAD]), b, 4 * THREAD);
    buffer_add_f32(AS_F32(in[T + THREAD]), b, 4 * (T + THREAD));
}

WORD(word_meet) { // the other wave's value, and then its value that was loaded to LDS
    const buffer b = make_buffer((const void *)in, 4 * T);
    exchange[THREAD] = in[THREAD];
    WAIT_FOR_LDS(0);
    meet();
    out[THREAD] = exchange[THREAD ^ 64];
    WAIT_FOR_LDS(0);
    meet();
    load_to_lds_4(b, 4 * THREAD, exchange + 64 * wave_id());
    WAIT_FOR_LOADS(0);
    meet();
    out[T + THREAD] = exchange[THREAD ^ 64];
}

// in: the bytes of the buffer, then 16 bytes for each thread's offset = 4 t.
WORD(word_buffer_load_16) {
    const buffer b = make_buffer((const void *)(in + 4), in[0]);
    const u32x4 x = buffer_load_16(b, 4 * THREAD);
    for (int i = 0; i < 4; i++) out[4 * THREAD + i] = x[i];
}

WORD(word_buffer_load_4) { out[THREAD] = buffer_load_4(make_buffer((const void *)(in + 4), in[0]), 4 * THREAD); }

// in: the bytes of the buffer, which begins 16 bytes later. offset = t.
WORD(word_buffer_load_1) { out[THREAD] = buffer_load_1(make_buffer((const void *)(in + 4), in[0]), THREAD); }

// The same, offset = 2 t.
WORD(word_buffer_load_2) { out[THREAD] = buffer_load_2(make_buffer((const void *)(in + 4), in[0]), 2 * THREAD); }

// The same, offset = 4 t.
WORD(word_buffer_load_8) {
    const u32x2 x = buffer_load_8(make_buffer((const void *)(in + 4), in[0]), 4 * THREAD);
    out[2 * THREAD] = x.x;
    out[2 * THREAD + 1] = x.y;
}

// The buffer is out, of in[0] bytes. Thread t stores the low byte of 256 + t.
WORD(word_buffer_store_1) { buffer_store_1(make_buffer((const void *)out, in[0]), THREAD, 256 + (uint32_t)THREAD); }

// The same, the lower half of 0x10000 + t at 2 t.
WORD(word_buffer_store_2) {
    buffer_store_2(make_buffer((const void *)out, in[0]), 2 * THREAD, 0x10000 + (uint32_t)THREAD);
}

// The buffer is out, of in[0] bytes. Thread t stores t + 1, twice.
WORD(word_buffer_store_8) {
    const u32x2 x = {(uint32_t)THREAD + 1, (uint32_t)THREAD + 1};
    buffer_store_8(make_buffer((const void *)out, in[0]), 8 * THREAD, x);
}

WORD(word_buffer_store_16) { // t + 1 four times
    const uint32_t x = (uint32_t)THREAD + 1;
    buffer_store_16(make_buffer((const void *)out, in[0]), 16 * THREAD, (u32x4){x, x, x, x});
}

WORD(word_buffer_store_4) { buffer_store_4(make_buffer((const void *)out, in[0]), 4 * THREAD, (uint32_t)THREAD + 1); }

#define OF_FLOAT(name)                                                                                                 \
    WORD(word_##name) { out[THREAD] = AS_U32(name(AS_F32(in[THREAD]))); }
OF_FLOAT(exp2_fast)
OF_FLOAT(log2_fast)
OF_FLOAT(reciprocal)
OF_FLOAT(inverse_sqrt)
OF_FLOAT(abs_f32)

WORD(word_min_f32) { out[THREAD] = AS_U32(min_f32(AS_F32(in[THREAD]), AS_F32(in[T + THREAD]))); }
WORD(word_max_f32) { out[THREAD] = AS_U32(max_f32(AS_F32(in[THREAD]), AS_F32(in[T + THREAD]))); }
WORD(word_min_i32) { out[THREAD] = (uint32_t)min_i32((int)in[THREAD], (int)in[T + THREAD]); }
WORD(word_max_i32) { out[THREAD] = (uint32_t)max_i32((int)in[THREAD], (int)in[T + THREAD]); }
WORD(word_trailing_zeros) { out[THREAD] = (uint32_t)trailing_zeros(in[THREAD]); }
#define OF_TWO_WORDS(name)                                                                                             \
    WORD(word_##name) { out[THREAD] = name(in[THREAD], in[T + THREAD]); }
OF_TWO_WORDS(multiply_high)
OF_TWO_WORDS(max_u32)
OF_TWO_WORDS(even_nibbles)
OF_TWO_WORDS(odd_nibbles)
OF_TWO_WORDS(low_bytes)
OF_TWO_WORDS(high_bytes)
OF_TWO_WORDS(low_halves)
OF_TWO_WORDS(high_halves)

#define OF_TWO_FLOATS(name)                                                                                            \
    WORD(word_##name) { out[THREAD] = name(AS_F32(in[THREAD]), AS_F32(in[T + THREAD])); }
OF_TWO_FLOATS(pack_fp16)
OF_TWO_FLOATS(pack_bf16)
OF_TWO_FLOATS(pack_p_bf16_rtne)
OF_TWO_FLOATS(pack_p_bf16_rtna)
OF_TWO_FLOATS(pack_p_bf16_rtz)

WORD(word_pack_int8) { // of numbers t, T + t, 2 T + t, 3 T + t
    float x[4];
    for (int i = 0; i < 4; i++) x[i] = AS_F32(in[i * T + THREAD]);
    out[THREAD] = pack_int8(x[0], x[1], x[2], x[3]);
}

WORD(word_unpack_fp16) { out[THREAD] = AS_U32(unpack_fp16(in[THREAD])); }
WORD(word_unpack_bf16) { out[THREAD] = AS_U32(unpack_bf16(in[THREAD])); }

WORD(word_philox) { // counter: words t, T + t, ...; seed: 4 T + t, 5 T + t of a wave's first thread
    const u32x4 counter = {in[THREAD], in[T + THREAD], in[2 * T + THREAD], in[3 * T + THREAD]};
    const uint32_t low = (uint32_t)uniform((int)in[4 * T + THREAD]), high = (uint32_t)uniform((int)in[5 * T + THREAD]);
    const u32x4 x = philox(counter, low | (uint64_t)high << 32);
    for (int i = 0; i < 4; i++) out[i * T + THREAD] = x[i];
}

WORD(word_kernel_argument) { // the address of in
    const uint64_t address = *(const uint64_t *)kernel_argument();
    out[THREAD] = address == (uint64_t)in;
}

WORD(word_here) {
    const int x = here((int)in[THREAD]);
    one_after_the_other();
    out[THREAD] = (uint32_t)x;
}

WORD(word_here_f32) { out[THREAD] = AS_U32(here_f32(AS_F32(in[THREAD]))); }

WORD(word_pinned) { // words t, T + t, ...
    f32x16 x;
    for (int i = 0; i < 16; i++) x[i] = AS_F32(in[i * T + THREAD]);
    x = pinned(x);
    for (int i = 0; i < 16; i++) out[i * T + THREAD] = AS_U32(x[i]);
}

WORD(word_uniform_here) { out[THREAD] = (uint32_t)uniform_here(uniform((int)in[THREAD])); }

WORD(word_pointer_here) {
    const char *const p = pointer_here((const char *)in + 4 * uniform((int)THREAD));
    out[THREAD] = *(const uint32_t *)(p + 4 * (THREAD % 64));
}

LDS uint32_t area[4 * T];

// in: the bytes of the buffer, which begins 16 bytes later. Lane l of a wave loads the word at 4 (63 - l) + 128 times
// the wave, and its place in LDS is read by the other wave.
WORD(word_load_to_lds_4) {
    const buffer b = make_buffer((const void *)(in + 4), in[0]);
    load_to_lds_4(b, 4 * (63 - lane_id()) + 128 * wave_id(), area + 64 * wave_id());
    barrier_after_loads();
    out[THREAD] = area[THREAD ^ 64];
}

WORD(word_barrier_after_loads) { // waves see what others have stored to LDS, too
    const buffer b = make_buffer((const void *)in, 4 * T);
    exchange[THREAD] = in[T + THREAD];
    load_to_lds_4(b, 4 * THREAD, area + 64 * wave_id());
    barrier_after_loads();
    out[THREAD] = area[THREAD ^ 64];
    out[T + THREAD] = exchange[THREAD ^ 64];
}

#ifdef __gfx950__
WORD(word_load_to_lds_16) { // as word_load_to_lds_4 with 16 bytes at 16 (63 - l) + 512 times the wave
    const buffer b = make_buffer((const void *)(in + 4), in[0]);
    load_to_lds_16(b, 16 * (63 - lane_id()) + 512 * wave_id(), area + 256 * wave_id());
    barrier_after_loads();
    for (int i = 0; i < 4; i++) out[4 * THREAD + i] = area[(4 * THREAD + i) ^ 256];
}
WORD(word_load_further_to_lds_16) { // the same
    const buffer b = make_buffer((const void *)(in + 4), in[0]);
    load_further_to_lds_16(b, 16 * (63 - lane_id()), 512 * wave_id(), area + 256 * wave_id());
    barrier_after_loads();
    for (int i = 0; i < 4; i++) out[4 * THREAD + i] = area[(4 * THREAD + i) ^ 256];
}

WORD(word_read_transposed) { // of words 2 t and 2 t + 1 for thread t ^ 1
    area[THREAD] = in[THREAD];
    area[T + THREAD] = in[T + THREAD];
    barrier();
    const u32x2 x = read_transposed(area + 2 * (THREAD ^ 1));
    out[2 * THREAD] = x.x;
    out[2 * THREAD + 1] = x.y;
}

WORD(word_read_transposed_8) { // likewise
    area[THREAD] = in[THREAD];
    area[T + THREAD] = in[T + THREAD];
    barrier();
    const u32x2 x = read_transposed_8(area + 2 * (THREAD ^ 1));
    out[2 * THREAD] = x.x;
    out[2 * THREAD + 1] = x.y;
}
#endif

// A component of a vector keeps its place.
WORD(word_component) {
    const u32x2 x = {in[THREAD], in[T + THREAD]};
    out[THREAD] = AS_U32(AS_F32(x.y));
}

// Both waves do the same: lane l takes a from words l, T + l, ..., b from words 4 T + l, ..., c, `count` numbers, from
// 8 T + l, ...
#define PRODUCT(name, sums, count)                                                                                     \
    WORD(word_##name) {                                                                                                \
        u32x4 a, b;                                                                                                    \
        sums c;                                                                                                        \
        for (int i = 0; i < 4; i++) {                                                                                  \
            a[i] = in[i * T + THREAD];                                                                                 \
            b[i] = in[(4 + i) * T + THREAD];                                                                           \
        }                                                                                                              \
        for (int i = 0; i < count; i++) c[i] = AS_F32(in[(8 + i) * T + THREAD]);                                       \
        c = name(a, b, c);                                                                                             \
        for (int i = 0; i < count; i++) out[i * T + THREAD] = AS_U32(c[i]);                                            \
    }
PRODUCT(mma_fp16, f32x16, 16)
PRODUCT(mma_bf16, f32x16, 16)
PRODUCT(mma_fp32, f32x16, 16)
PRODUCT(mma_small_fp16, f32x4, 4)
PRODUCT(mma_small_bf16, f32x4, 4)

// ---- 8 bits and less

#if defined(__gfx942__) || defined(__gfx950__)
PRODUCT(mma_fp8, f32x16, 16)

WORD(word_pack_fp8) { // words t, T + t, 2 T + t, 3 T + t
    out[THREAD] =
        pack_fp8(AS_F32(in[THREAD]), AS_F32(in[T + THREAD]), AS_F32(in[2 * T + THREAD]), AS_F32(in[3 * T + THREAD]));
}

WORD(word_pack_fp8_over) { // the same over a word that is none of them
    out[THREAD] = pack_fp8_over(in[4 * T + THREAD], AS_F32(in[THREAD]), AS_F32(in[T + THREAD]),
                                AS_F32(in[2 * T + THREAD]), AS_F32(in[3 * T + THREAD]));
}

WORD(word_saturate) { // the same
    saturate();
    out[THREAD] =
        pack_fp8(AS_F32(in[THREAD]), AS_F32(in[T + THREAD]), AS_F32(in[2 * T + THREAD]), AS_F32(in[3 * T + THREAD]));
}
#endif

#ifdef __gfx950__
WORD(word_settled) { // words t, T + t, ...
    f32x16 x;
    for (int i = 0; i < 16; i++) x[i] = AS_F32(in[i * T + THREAD]);
    x = settled(x);
    for (int i = 0; i < 16; i++) out[i * T + THREAD] = AS_U32(x[i]);
}

INLINE u32x4 four_words(GLOBAL const uint32_t *in) {
    const u32x4 x = {in[THREAD], in[T + THREAD], in[2 * T + THREAD], in[3 * T + THREAD]};
    return x;
}

// Both waves do the same: lane l takes a from words l, T + l, ..., b from words 8 T + l, ..., c from 16 T + l, ..., and
// the scales from 32 T + l and 33 T + l.
#define WIDE_PRODUCT(name, ...)                                                                                        \
    WORD(word_##name) {                                                                                                \
        const u32x4 a[2] = {four_words(in), four_words(in + 4 * T)};                                                   \
        const u32x4 b[2] = {four_words(in + 8 * T), four_words(in + 12 * T)};                                          \
        const uint32_t scale_a = in[32 * T + THREAD], scale_b = in[33 * T + THREAD];                                   \
        f32x16 c;                                                                                                      \
        for (int i = 0; i < 16; i++) c[i] = AS_F32(in[(16 + i) * T + THREAD]);                                         \
        (void)(a[1].x + b[1].x + scale_a + scale_b);                                                                   \
        c = name(__VA_ARGS__);                                                                                         \
        for (int i = 0; i < 16; i++) out[i * T + THREAD] = AS_U32(c[i]);                                               \
    }
WIDE_PRODUCT(mma_wide_fp8, a[0], a[1], b[0], b[1], c)
WIDE_PRODUCT(mma_mxfp8, a[0], a[1], b[0], b[1], c, scale_a, scale_b)
WIDE_PRODUCT(mma_mxfp4, a[0], b[0], c, scale_a, scale_b)
WIDE_PRODUCT(mma_mxfp4_mxfp8, a[0], b[0], b[1], c, scale_a, scale_b)
#endif

// Bytes from in + t on.
#define HERE ((const char *)in + THREAD)
WORD(word_load_16) {
    const u32x4 x = load_16(HERE);
    for (int i = 0; i < 4; i++) out[4 * THREAD + i] = x[i];
}
// 1, 2, 4 and 8 words, in a row.
WORD(word_load_words) {
    uint32_t x[15];
    load_words(x, 1, (const char *)(in + 16 * THREAD));
    load_words(x + 1, 2, (const char *)(in + 16 * THREAD + 1));
    load_words(x + 3, 4, (const char *)(in + 16 * THREAD + 3));
    load_words(x + 7, 8, (const char *)(in + 16 * THREAD + 7));
    UNROLL
    for (int i = 0; i < 15; i++) out[15 * THREAD + i] = x[i];
}
WORD(word_load_8) {
    const u32x2 x = load_8(HERE);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = x[i];
}
WORD(word_load_4) { out[THREAD] = load_4(HERE); }
WORD(word_load_2) { out[THREAD] = load_2(HERE); }
WORD(word_load_1) { out[THREAD] = load_1(HERE); }

WORD(word_fp16_of_int8) {
    const u32x2 x = fp16_of_int8(in[THREAD]);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = x[i];
}
WORD(word_fp16_of_e4m3) {
    const u32x2 x = fp16_of_e4m3(in[THREAD]);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = x[i];
}
WORD(word_bf16_of_int8) {
    const u32x2 x = bf16_of_int8(in[THREAD]);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = x[i];
}
WORD(word_bf16_of_e4m3) {
    const u32x2 x = bf16_of_e4m3(in[THREAD]);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = x[i];
}
WORD(word_bf16_of_fp16) { out[THREAD] = bf16_of_fp16(in[THREAD]); }

#ifdef __gfx942__
WORD(word_unpack_fp8) {
    const f32x2 x = unpack_fp8(in[THREAD]);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = AS_U32(x[i]);
}
WORD(word_unpack_fp8_high) {
    const f32x2 x = unpack_fp8_high(in[THREAD]);
    for (int i = 0; i < 2; i++) out[2 * THREAD + i] = AS_U32(x[i]);
}
WORD(word_fnuz_of_e4m3) { // and which are NaN
    uint32_t nan = 0;
    out[2 * THREAD] = fnuz_of_e4m3(in[THREAD], &nan);
    out[2 * THREAD + 1] = nan;
}
WORD(word_fnuz_with_nan) { // of what that gives
    uint32_t nan = 0;
    out[THREAD] = fnuz_with_nan(fnuz_of_e4m3(in[THREAD], &nan));
}
#endif

WORD(word_numbers_of_nibbles) { // in: 16 numbers of 16 bits, then a word for each thread
    uint32_t pairs[8];
    for (int i = 0; i < 8; i++) pairs[i] = in[i];
    const struct codebook book = codebook_of(pairs);
    const u32x4 x = numbers_of_nibbles(&book, in[8 + THREAD]);
    for (int i = 0; i < 4; i++) out[4 * THREAD + i] = x[i];
}
