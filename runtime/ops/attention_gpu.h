// SPDX-License-Identifier: MIT
// What kernels of attention on GPUs are told alike, forward and backward. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_ATTENTION_GPU_H
#define TESSERA_RUNTIME_OPS_ATTENTION_GPU_H

#include "device/device.h"
#include "ops/attention.h"
#include "tessera/kernel/tensor_map.h"

// A window as kernels get it, which know the lengths that move it.
struct tessera_attention_window {
    int32_t mask_y, mask_x, shift_y, shift_x;
};
struct tessera_attention_window tessera_attention_get_window(tessera_mask type, int32_t left, int32_t right);

// The features TESSERA_GPU_ALIBI and those that say where its zero is.
uint32_t tessera_attention_alibi_features(tessera_mask type, int32_t left, int32_t right);

// A tensor with the dimensions column, row, head, sequence, and the part of it that kernels copy at once: rows of 128
// bytes of some heads.
struct tessera_attention_tensor {
    const void *base;
    int bits; // of an element
    int64_t columns, rows, heads, sequences;
    int64_t stride, nhead_stride, batch_stride; // elements
    int32_t box_rows, box_heads;
    bool in_fours; // four rows are a dimension of their own, of which a box has two: the two first, or last, ones of
                   // each
};
enum { TESSERA_ATTENTION_SLICE_BYTES = 128 };

// Whether maps take dimensions that are so many bytes apart.
bool tessera_attention_fits_map(uint64_t stride);

// Makes the tensor's map, and sets its bit; a tensor that maps cannot describe, such as one that is broadcast, is left
// to the lanes that copy.
tessera_status tessera_attention_add_map(const tessera_device *device, const struct tessera_attention_tensor *tensor,
                                         uint32_t bit, struct tessera_tensor_map *out, uint32_t *maps);

#endif
