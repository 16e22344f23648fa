// SPDX-License-Identifier: MIT
// What kernels of attention on GPUs are told alike, forward and backward: windows, ALiBi and tensor maps.
#include "ops/attention_gpu.h"

#include "guard.h"
#include "tessera/kernel/fmha_fwd_gpu.h"

// A window of at least the greatest length of a sequence hides nothing, wherever it begins.
static bool is_unbounded(tessera_mask type, int32_t window) {
    return type == TESSERA_MASK_NONE || window < 0 || window >= TESSERA_ATTENTION_MAX_SEQLEN;
}

struct tessera_attention_window tessera_attention_get_window(tessera_mask type, int32_t left, int32_t right) {
    const int32_t edge = type == TESSERA_MASK_GENERIC ? 0 : 1, shift = type == TESSERA_MASK_BOTTOM_RIGHT ? 1 : 0;
    const bool all_left = is_unbounded(type, left), all_right = is_unbounded(type, right);
    return (struct tessera_attention_window){
        .mask_y = all_left ? TESSERA_ATTENTION_MAX_SEQLEN : edge + left,
        .mask_x = all_right ? TESSERA_ATTENTION_MAX_SEQLEN : edge + right,
        .shift_y = all_left ? 0 : shift,
        .shift_x = all_right ? 0 : shift,
    };
}

uint32_t tessera_attention_alibi_features(tessera_mask type, int32_t left, int32_t right) {
    if (type != TESSERA_MASK_NONE && left < 0 && right == 0) return TESSERA_GPU_ALIBI | TESSERA_GPU_ALIBI_VERTICAL;
    if (type == TESSERA_MASK_NONE || type == TESSERA_MASK_BOTTOM_RIGHT)
        return TESSERA_GPU_ALIBI | TESSERA_GPU_ALIBI_SHIFT;
    return TESSERA_GPU_ALIBI;
}

// ---- tensor maps

// Strides of dimensions of one element do not matter, but a map has to have some.
static uint64_t stride_of(int64_t stride, int64_t size, int bits) {
    return size == 1 ? 16 : (uint64_t)stride * (uint64_t)bits / 8;
}

bool tessera_attention_fits_map(uint64_t stride) {
    return stride > 0 && stride % 16 == 0 && stride < UINT64_C(1) << 40;
}

tessera_status tessera_attention_add_map(const tessera_device *device, const struct tessera_attention_tensor *x,
                                         uint32_t bit, struct tessera_tensor_map *out, uint32_t *maps) {
    const struct tessera_tensor_map_shape shape = {
        .base = x->base,
        .element_bytes = (uint32_t)x->bits / 8,
        .rank = 4,
        .sizes = {(uint64_t)x->columns, (uint64_t)x->rows, (uint64_t)x->heads, (uint64_t)x->sequences},
        .strides = {stride_of(x->stride, x->rows, x->bits), stride_of(x->nhead_stride, x->heads, x->bits),
                    stride_of(x->batch_stride, x->sequences, x->bits)},
        .box = {(uint32_t)(TESSERA_ATTENTION_SLICE_BYTES * 8 / x->bits), (uint32_t)x->box_rows, 1, 1},
        .swizzle = TESSERA_ATTENTION_SLICE_BYTES,
        .l2_bytes = 128};
    if (x->rows == 0 || x->sequences == 0) return TESSERA_SUCCESS;
    for (int i = 0; i < 3; i++)
        if (!tessera_attention_fits_map(shape.strides[i])) return TESSERA_SUCCESS;
    TRY(tessera_gpu_make_tensor_map(device, &shape, out));
    *maps |= bit;
    return TESSERA_SUCCESS;
}
