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

static void add_dimension(struct tessera_tensor_map_shape *shape, int64_t size, uint64_t stride, int32_t of_box) {
    const uint32_t i = shape->rank++;
    shape->sizes[i] = (uint64_t)size;
    if (i > 0) shape->strides[i - 1] = stride;
    shape->box[i] = (uint32_t)of_box;
}

tessera_status tessera_attention_add_map(const tessera_device *device, const struct tessera_attention_tensor *x,
                                         uint32_t bit, struct tessera_tensor_map *out, uint32_t *maps) {
    struct tessera_tensor_map_shape shape = {
        .element_bytes = (uint32_t)x->bits / 8, .swizzle = TESSERA_ATTENTION_SLICE_BYTES, .l2_bytes = 128};
    shape.base = x->base;
    add_dimension(&shape, x->columns, 0, TESSERA_ATTENTION_SLICE_BYTES * 8 / x->bits);
    if (x->in_fours) {
        add_dimension(&shape, 4, stride_of(x->stride, 4, x->bits), 2);
        add_dimension(&shape, x->rows / 4, stride_of(4 * x->stride, x->rows / 4, x->bits), x->box_rows / 4);
    } else {
        add_dimension(&shape, x->rows, stride_of(x->stride, x->rows, x->bits), x->box_rows);
    }
    add_dimension(&shape, x->heads, stride_of(x->nhead_stride, x->heads, x->bits), x->box_heads);
    add_dimension(&shape, x->sequences, stride_of(x->batch_stride, x->sequences, x->bits), 1);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.sizes[i] == 0 || (i > 0 && !tessera_attention_fits_map(shape.strides[i - 1]))) return TESSERA_SUCCESS;
    TRY(tessera_gpu_make_tensor_map(device, &shape, out));
    *maps |= bit;
    return TESSERA_SUCCESS;
}
