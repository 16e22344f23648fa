// SPDX-License-Identifier: MIT
// Tiles of K and V from the pages of a quantised cache, whose rows are looked up as those of paged.h. Each warp copies
// its rows as they lie in memory to a place of its own, several tiles ahead, and makes 16-bit numbers of them where
// products read them: exactly, but for the centroids of turbo4, which are rounded. What a row is scaled by, its scale
// or norm, goes along, for its scores and probabilities, which are fewer (weights.h).
//
// KV: the type of the cache. NUMBERS_OF_FP16 makes operands of two numbers of fp16.
//
// Takes args, BITS, MERGED, PAGED, KV, NUMBERS_OF_FP16, TWO_OF_P, P_SHIFT, RAW_STAGES.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_QUANTISED_H
#define TESSERA_DEVICE_ATTENTION_CUDA_QUANTISED_H

#include "tessera/device/attention/cuda/paged.h"
#include "tessera/device/attention/cuda/pipe.h"
#include "tessera/isa/sm90_quantised.h"
#include "tessera/turbo4.h"

// ---- copies

// A warp's rows of K or of V.
INLINE uint32_t raw_place(uint32_t base, int stage, int warp) {
    return base + AT_RAW + (stage * FILLING_WARPS + warp) * RAW_BYTES;
}
INLINE uint32_t raw_slice(uint32_t raw, int slice, int row) { return raw + (slice * WARP_ROWS + row) * RAW_SLICE; }

// What the lane's row is scaled by: the four bytes that it begins in, and the next ones where it ends there. Rows past
// the end have zeros, since infinity times their probability, which is 0, would be NaN.
INLINE void start_scale(uint32_t raw, const struct tessera_attention_page_scales *x, const struct spot *spot, int head,
                        int there) {
    if (!x->base) return;
    const char *const at = (const char *)x->base + head * x->of.head + spot->page * x->of.page + spot->row * x->of.row;
    const uint32_t shift = (uint32_t)(uint64_t)at % 4, to = raw + RAW_SCALES + 8 * lane_id();
    copy_4(to, at - shift, !there ? 0 : KV == TESSERA_KV_TURBO4 ? min_i32((int)shift + 2, 4) : 4);
    if (KV == TESSERA_KV_TURBO4) {
        if (shift == 3) copy_4(to + 4, at + 1, there ? 1 : 0);
        shared_store_4(raw + RAW_ROWS + 16 * lane_id() + 8, shift);
    }
}

// Copies of 16 bytes, which rows begin at multiples of.
INLINE void copy_aligned(uint32_t raw, int width, int rows) {
    enum { PIECES = RAW_SLICES * RAW_SLICE / 16 }; // of a row
    UNROLL
    for (int i = 0; i < WARP_ROWS * PIECES / 32; i++) {
        const int n = 32 * i + lane_id(), row = n / PIECES, byte = n % PIECES * 16;
        const char *const from = (const char *)shared_load_8(raw + RAW_ROWS + 16 * row);
        const int inside = row < rows && byte < width;
        copy_16(raw_slice(raw, byte / RAW_SLICE, row) + byte % RAW_SLICE, from + (inside ? byte : 0), inside ? 16 : 0);
    }
}

// Copies the four bytes in which byte `byte` of a row would lie, if the row began at a multiple of four: of the row,
// and where it begins the bytes before it there. Others are zeros.
INLINE void copy_word(uint32_t to, uint64_t row, int byte, int width, int there) {
    const int before = (int)(row % 4), left = there ? min_i32(before + width - byte, 4) : 0;
    copy_4(to, (const char *)(row - before) + (left > 0 ? byte : 0), max_i32(left, 0));
}
INLINE void copy_anywhere(uint32_t raw, int width, int rows) {
    enum { WORDS_OF_ROW = RAW_SLICES * RAW_SLICE / 4 };
    _Pragma("unroll 4") for (int i = 0; i < WARP_ROWS * WORDS_OF_ROW / 32; i++) {
        const int n = 32 * i + lane_id(), row = n / WORDS_OF_ROW, byte = n % WORDS_OF_ROW * 4;
        copy_word(raw_slice(raw, byte / RAW_SLICE, row) + byte % RAW_SLICE, shared_load_8(raw + RAW_ROWS + 16 * row),
                  byte, width, row < rows);
    }
    const int row = lane_id();
    if (row < WARP_ROWS)
        copy_word(raw + RAW_TAILS + 4 * row, shared_load_8(raw + RAW_ROWS + 16 * row), 4 * WORDS_OF_ROW, width,
                  row < rows);
}

// Starts copying the warp's part of the tile of k or of v that has `left` keys. Keys past the end are zeros.
INLINE void start_part(uint32_t raw, const args *a, const struct spot *spot, int warp, int head, int left, int values) {
    const int64_t stride = values ? a->call.stride_v : a->call.stride_k;
    const int64_t page_stride = values ? a->pages.stride_v : a->pages.stride_k;
    const int64_t of_head = head * (values ? a->call.nhead_stride_v : a->call.nhead_stride_k);
    const int numbers = values ? a->call.hdim_v : a->call.hdim_q, width = numbers * RAW_BITS / 8;
    const int rows = left - warp * WARP_ROWS;
    const char *const own =
        (const char *)(values ? a->call.v : a->call.k) + of_head + spot->page * page_stride + spot->row * stride;
    if (lane_id() < WARP_ROWS) {
        shared_store_8(raw + RAW_ROWS + 16 * lane_id(), (uint64_t)own);
        start_scale(raw, values ? &a->pages.v_scale : &a->pages.k_scale, spot, head, lane_id() < rows);
    }
    meet_lanes();
    if (a->pages.aligned)
        copy_aligned(raw, width, rows);
    else
        copy_anywhere(raw, width, rows);
}

// ---- numbers

INLINE struct codebook find_codebook(const args *a) {
    uint32_t pairs[TESSERA_TURBO4_CENTROIDS / 2] = {0};
    UNROLL
    for (int i = 0; KV == TESSERA_KV_TURBO4 && i < TESSERA_TURBO4_CENTROIDS; i += 2)
        pairs[i / 2] = TWO_OF_P(read_float(a->pages.centroids, i), read_float(a->pages.centroids, i + 1));
    return codebook_of(pairs);
}

// A lane makes 16 numbers of as many words of a row's slice, the lane % 4-th of them. Where rows begin anywhere the
// word behind them has the last one's rest.
enum { WORDS = RAW_BITS / 2 };
INLINE void load_words(uint32_t x[WORDS + 1], uint32_t raw, int slice, int row) {
    const int part = lane_id() % 4;
    const uint32_t from = raw_slice(raw, slice, row) + 4 * WORDS * part;
    if (WORDS == 4) {
        const u32x4 y = shared_load_16(from);
        x[0] = y.x, x[1] = y.y, x[2 % (WORDS + 1)] = y.z, x[3 % (WORDS + 1)] = y.w;
    } else {
        const uint64_t y = shared_load_8(from);
        x[0] = (uint32_t)y, x[1] = (uint32_t)(y >> 32);
    }
    x[WORDS] = 0;
}
INLINE void shift_words(uint32_t x[WORDS + 1], uint32_t raw, int slice, int row) {
    const int part = lane_id() % 4;
    const uint32_t behind = slice + 1 < RAW_SLICES ? raw_slice(raw, slice + 1, row) : raw + RAW_TAILS + 4 * row;
    const uint32_t shift = shared_load_4(raw + RAW_ROWS + 16 * row) % 4 * 8;
    x[WORDS] = shared_load_4(part < 3 ? raw_slice(raw, slice, row) + 4 * WORDS * (part + 1) : behind);
    UNROLL
    for (int i = 0; i < WORDS; i++) x[i] = from_bit(x[i], x[i + 1], shift);
}

// Eight numbers.
INLINE u32x4 numbers_of(const struct codebook *book, const uint32_t *words) {
    if (KV == TESSERA_KV_TURBO4) return numbers_of_nibbles(book, words[0]);
    u32x4 x;
    UNROLL
    for (int w = 0; w < 2; w++) {
        const u32x2 four = KV == TESSERA_KV_INT8 ? fp16_of_int8(words[w]) : fp16_of_e4m3(words[w]);
        x[2 * w] = NUMBERS_OF_FP16(four.x), x[2 * w + 1] = NUMBERS_OF_FP16(four.y);
    }
    return x;
}

// Four lanes make a row's slice, and eight rows of a warp are made at once.
INLINE void widen_rows(uint32_t to, uint32_t raw, const struct codebook *book, int warp, int aligned) {
    UNROLL
    for (int rows = 0; rows < WARP_ROWS; rows += 8) {
        UNROLL
        for (int slice = 0; slice < RAW_SLICES; slice++) {
            const int row = rows + lane_id() / 4, piece = 2 * (lane_id() % 4);
            const uint32_t at = to + (slice * BN + warp * WARP_ROWS + row) * SLICE;
            uint32_t x[WORDS + 1];
            load_words(x, raw, slice, row);
            if (!aligned) shift_words(x, raw, slice, row);
            shared_store_16(at + (piece ^ row % 8) * 16, numbers_of(book, x));
            shared_store_16(at + ((piece + 1) ^ row % 8) * 16, numbers_of(book, x + WORDS / 2));
        }
    }
}

// The scales of the warp's rows, and the greatest of them.
INLINE void hand_over_scales(uint32_t to, uint32_t raw, int warp) {
    const int row = lane_id() % WARP_ROWS;
    const uint64_t words = shared_load_8(raw + RAW_SCALES + 8 * row);
    float scale = AS_F32((uint32_t)words);
    if (KV == TESSERA_KV_TURBO4)
        scale = unpack_fp16((uint32_t)(words >> 8 * shared_load_4(raw + RAW_ROWS + 16 * row + 8)));
    const uint32_t greatest = greatest_of_lanes(AS_U32(abs_f32(scale))); // bits are in the order of numbers
    if (lane_id() < WARP_ROWS) shared_store_f32(to + 4 * (warp * WARP_ROWS + row), scale);
    if (lane_id() == 0) shared_store_4(to + 4 * (BN + warp), greatest);
}

// Fills the warp's part of a place with what has been copied.
INLINE void fill_widened(struct place place, uint32_t scales, uint32_t raw, const args *a, const struct codebook *book,
                         int warp, int values) {
    if (a->pages.aligned)
        widen_rows(place.at, raw, book, warp, 1);
    else
        widen_rows(place.at, raw, book, warp, 0);
    if ((values ? &a->pages.v_scale : &a->pages.k_scale)->base) hand_over_scales(scales, raw, warp);
    finish_stores();
    meet_lanes();
    if (lane_id() == 0) arrive(place.full);
}

#endif
