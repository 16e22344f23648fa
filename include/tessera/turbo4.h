// SPDX-License-Identifier: MIT
// Keys and values in 4 bits (turbo4), for caches of paged_attention.
//
// A row x of hdim numbers is stored as its norm |x| and, for each number, which of 16 centroids c is nearest to
// x[i] / |x|; it is read as |x| c[number i]. Rows are rotated before (the normalised Walsh-Hadamard transform), so that
// whatever they were, the numbers of x / |x| are spread much as N(0, 1/hdim) is.
//
// A slot holds one row, of one token and head:
//
//   bytes 0 to hdim / 2 - 1   number 2 i in the low half of byte i, number 2 i + 1 in the high half
//   2 bytes behind them       |x| in fp16, unless norms lie in tensors of their own
//
// Its distance from the next one may be more (72 or 80 bytes for 66 of hdim 128, so that slots are aligned). A token
// and head of 128 takes 132 bytes for key and value, where 8 bits take 256 and 16 bits 512.
//
// Sources: A. Zandieh et al., TurboQuant: Online Vector Quantization with Near-optimal Distortion Rate (2025); the
// slot is that of "AITER turbo4 Kernel Extension". J. Max, Quantizing for Minimum Distortion (1960) has the centroids.
#ifndef TESSERA_TURBO4_H
#define TESSERA_TURBO4_H

#include <stdint.h>

#include "tessera/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESSERA_TURBO4_CENTROIDS = 16 };

// Writes the centroids of least squared error for numbers spread as N(0, 1 / hdim), in ascending order: centroid[15 -
// i] is -centroid[i]. Returns TESSERA_ERROR_INVALID_ARGUMENT, and writes nothing, where hdim < 1 or `centroids` is
// NULL. scripts/turbo4_codebook.py computes them.
TESSERA_API tessera_status tessera_turbo4_codebook(int32_t hdim, float centroids[TESSERA_TURBO4_CENTROIDS]);

#ifdef __cplusplus
}
#endif
#endif
