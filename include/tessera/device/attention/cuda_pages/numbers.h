// SPDX-License-Identifier: MIT
// Numbers of rows of a quantised cache, which lanes make in registers: fp16, which has all those of 8 bits.
//
// Lane l reads of row l / 4 of K, and of rows 2 (l % 4) and the next one of V, what is one or two accesses: which of a
// step's columns they are to the product makes no difference where both factors, or O and who stores it, agree. Those
// of K are features key_feature(), those of V columns of O by value_feature().
//
// Takes args, DQ, DV, KEYS, HEADS, KV, Q_BF16.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_NUMBERS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_NUMBERS_H

#include "tessera/device/attention/cuda_pages/sizes.h"
#include "tessera/device/attention/gpu/powers.h"
#include "tessera/device/common/cuda/reads.h"
#include "tessera/isa/sm90_quantised.h"
#include "tessera/turbo4.h"

enum {
    WORD_PAIRS = 16 / RAW_BITS,  // of numbers in a word
    K_BYTES = RAW_ROW / 4,       // of a row that a lane reads, in runs of which four lanes' lie side by side
    K_MOST = HEADS > 1 ? 4 : 32, // 4: as matrices are read, which is without conflicts
    K_RUN = K_BYTES < K_MOST ? K_BYTES : K_MOST,
    K_ACCESS = K_BYTES < 16 ? K_BYTES : 16
};

INLINE int key_byte(int lane, int i) { return i / K_RUN * 4 * K_RUN + lane % 4 * K_RUN + i % K_RUN; }
INLINE int key_feature(int i) { return key_byte(lane_id(), i * RAW_BITS / 8) * 8 / RAW_BITS; } // i: even
// Of columns 8 j + part of O, the number that a lane with this `part` = lane / 4 reads as its j-th.
INLINE int value_feature(int j, int part) { return j / V_RUN * 8 * V_RUN + part * V_RUN + j % V_RUN; }

// ---- turbo4's table: for each byte the pair of its numbers, centroids rounded to the type of Q, once for each bank,
// in the first half of 256 bytes, so that the byte is one of the address

#if Q_BF16
INLINE float rounded(float x) { return unpack_bf16(pack_bf16(x, x)); }
#else
INLINE float rounded(float x) { return x; }
#endif

// Each lane has one of the centroids.
INLINE float own_centroid(const args *a) {
    return rounded(read_float(a->pages.centroids, lane_id() % TESSERA_TURBO4_CENTROIDS));
}

// What numbers of K and of V are to be multiplied by, as the table has them.
INLINE float unit_of_numbers(const args *a) {
    if (KV != TESSERA_KV_TURBO4 || !Q_BF16) return 1.0f;
    return unit_of(AS_F32(greatest_of_lanes(AS_U32(abs_f32(own_centroid(a))))));
}

INLINE void fill_table(const args *a, uint32_t base) {
    if (KV != TESSERA_KV_TURBO4) return;
    const uint32_t number = pack_fp16(own_centroid(a) * over_unit(unit_of_numbers(a)), 0.0f);
    for (int i = thread_id(); i < 256 * 8; i += THREADS) {
        const int byte = i / 8;
        const uint32_t x = of_lane(number, byte % 16) | of_lane(number, byte / 16) << 16;
        shared_store_16(base + AT_TABLE + 256 * byte + 16 * (i % 8), (u32x4){x, x, x, x});
    }
}
INLINE uint32_t pair_of_byte(uint32_t base, uint32_t x, int byte) {
    return shared_read_4(base + AT_TABLE + pick_bytes(x, 4 * lane_id(), 0x5504 + 16 * byte));
}

// ---- words to numbers

INLINE u32x2 fp16_of_four(uint32_t x) { return KV == TESSERA_KV_INT8 ? fp16_of_int8(x) : fp16_of_e4m3(x); }

// A word's numbers in their order. The low four bits of a byte come first.
INLINE void widen(uint32_t y[WORD_PAIRS], uint32_t x, uint32_t base) {
    if (KV == TESSERA_KV_TURBO4) {
        UNROLL
        for (int b = 0; b < WORD_PAIRS; b++) y[b] = pair_of_byte(base, x, b);
    } else {
        const u32x2 four = fp16_of_four(x);
        y[0] = four.x, y[1] = four.y;
    }
}

// Pairs of a number of one word and that of the other, in their order.
INLINE void widen_both(uint32_t y[2 * WORD_PAIRS], uint32_t one, uint32_t other, uint32_t base) {
    if (KV == TESSERA_KV_TURBO4) {
        const uint32_t even = select_bits(0x0f0f0f0f, one, other << 4), odd = select_bits(0x0f0f0f0f, one >> 4, other);
        UNROLL
        for (int b = 0; b < WORD_PAIRS; b++) {
            y[2 * b] = pair_of_byte(base, even, b);
            y[2 * b + 1] = pair_of_byte(base, odd, b);
        }
    } else {
        const u32x2 low = fp16_of_four(pick_bytes(one, other, 0x5140)),
                    high = fp16_of_four(pick_bytes(one, other, 0x7362));
        y[0] = low.x, y[1] = low.y, y[2] = high.x, y[3] = high.y;
    }
}

// ---- rows

// `bytes` of a row from one on that four lanes, or eight, begin at multiples of. Rows that begin anywhere are shifted,
// and need the first bits behind.
INLINE void load_words(uint32_t *x, uint32_t raw, int eights, int row, int byte, int bytes, int aligned) {
    const uint32_t from = raw_at(raw, eights, row, byte);
    if (bytes == 16) {
        const u32x4 y = shared_load_16(from);
        x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
    } else if (bytes == 8) {
        const uint64_t y = shared_load_8(from);
        x[0] = (uint32_t)y, x[1] = (uint32_t)(y >> 32);
    } else {
        x[0] = shared_load_4(from);
    }
#if HEADS > 1
    (void)aligned; // they always are
#else
    if (aligned) return;
    const int number = 8 * eights + row, end = byte + bytes;
    const uint32_t shift = shared_load_2(raw + RAW_SHIFTS + 2 * number);
    const uint32_t behind = shared_load_4(end < RAW_ROW ? raw_at(raw, eights, row, end) : tail_at(raw, number));
    UNROLL
    for (int w = 0; w < bytes / 4; w++) x[w] = from_bit(x[w], 4 * w + 4 < bytes ? x[w + 1] : behind, shift);
#endif
}

#endif
