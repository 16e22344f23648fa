// SPDX-License-Identifier: MIT
// A tile lies in shared memory as slices of 128 bytes of each row, COLUMNS elements, one slice after the other.
//
// Takes BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SLICES_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SLICES_H

#include "tessera/device/attention/cuda/place.h"

enum { SLICE = 128, COLUMNS = 8 * SLICE / BITS };

// Where 16 bytes lie beside the first of a slice, which begins at a multiple of 1024: `piece` of a row. From there
// other pieces are ^ 16 times a number, and rows that are as many eights further are + SLICE times a number.
INLINE uint32_t piece_at(int row, int piece) { return row * SLICE + (piece ^ row % 8) * 16; }

// Copies the tile with this row, head and sequence of a tensor map: one lane starts it, and hardware does the rest.
INLINE void fill_by_map(struct place place, const void *map, int most, int slices, int row, int head, int batch) {
    if (lane_id() != 0) return;
    arrive_and_announce(place.full, slices * most * SLICE);
    for (int slice = 0; slice < slices; slice++)
        copy_box(place.at + slice * most * SLICE, map, place.full, slice * COLUMNS, row, head, batch);
}

// Whether the rows of a map end where this task's sequence does.
INLINE int ends_with(const int32_t *seqstart, const int32_t *cumulative) { return !seqstart && !cumulative; }

#endif
