// SPDX-License-Identifier: MIT
// Copies by lanes to a tile in slices.
//
// Takes BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_COPIES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_COPIES_H

#include "tessera/device/attention/cuda/slices.h"

enum { PIECE = 128 / BITS }; // elements that a lane copies at once

// Copies the first `bytes` of a piece of a row of a tile of `most` rows; the others become zeros.
INLINE void copy_piece(uint32_t to, int most, int row, int piece, const char *source, int bytes) {
    copy_16(piece_at(to, most, row, piece, SLICE), source, bytes);
}

#endif
