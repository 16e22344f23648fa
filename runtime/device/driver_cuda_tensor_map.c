// SPDX-License-Identifier: MIT
// Tensor maps by NVIDIA's driver.
#include "device/device.h"
#include "device/driver_cuda.h"
#include "guard.h"

typedef const struct tessera_tensor_map_shape shape_t;

// Values of CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion in cuda.h of CUDA 12 and 13; -1: none.
// The type matters only to sums, which are of fp32, and to what is outside, which is zeros here: unsigned integers
// stand for the others.
static int element_of(uint32_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 7 : -1; }
static int swizzle_of(uint32_t bytes) {
    return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : bytes == 128 ? 3 : -1;
}
static int promotion_of(uint32_t bytes) {
    return bytes == 0 ? 0 : bytes == 64 ? 1 : bytes == 128 ? 2 : bytes == 256 ? 3 : -1;
}

// What the driver, which only says that a value is invalid, objects to first: the limits of the CUDA Driver API's
// description of cuTensorMapEncodeTiled().
static void find_fault(shape_t *s, struct tessera_text *out) {
    const unsigned inner = s->box[0] * s->element_bytes;
#define LIMIT(holds, ...)                                                                                              \
    if (!(holds)) {                                                                                                    \
        tessera_text_add(out, __VA_ARGS__);                                                                            \
        return;                                                                                                        \
    }
    LIMIT((uintptr_t)s->base % 16 == 0, "base is %p: a multiple of 16", s->base)
    for (unsigned i = 0; i < s->rank; i++) {
        LIMIT(s->sizes[i] - 1 < UINT64_C(1) << 32, "sizes[%u] is %llu: 1 to 2^32", i, (unsigned long long)s->sizes[i])
        LIMIT(s->box[i] - 1 < 256, "box[%u] is %u: 1 to 256", i, s->box[i])
    }
    for (unsigned i = 0; i + 1 < s->rank; i++)
        LIMIT(s->strides[i] % 16 == 0 && s->strides[i] < UINT64_C(1) << 40,
              "strides[%u] is %llu: a multiple of 16 below 2^40", i, (unsigned long long)s->strides[i])
    LIMIT(inner % 16 == 0, "a row of the box has %u bytes: a multiple of 16", inner)
    LIMIT(!s->swizzle || inner <= s->swizzle, "a row of the box has %u bytes: at most those of the swizzle, %u", inner,
          s->swizzle)
#undef LIMIT
}

tessera_status tessera_cuda_make_tensor_map(const struct tessera_chip *chip, shape_t *s,
                                            struct tessera_tensor_map *out) {
    static const uint32_t ones[5] = {1, 1, 1, 1, 1};
    const int element = element_of(s->element_bytes), swizzle = swizzle_of(s->swizzle),
              promotion = promotion_of(s->l2_bytes);
    GUARD(s->rank >= 1 && s->rank <= 5, "rank is %u: 1 to 5", s->rank);
    GUARD(element >= 0, "element_bytes is %u: 1, 2, 4", s->element_bytes);
    GUARD(swizzle >= 0, "swizzle is %u: 0, 32, 64, 128", s->swizzle);
    GUARD(promotion >= 0, "l2_bytes is %u: 0, 64, 128, 256", s->l2_bytes);
    CUDA_NEED(chip, cuTensorMapEncodeTiled);
    const int error =
        tessera_cuda_of(chip)->cuTensorMapEncodeTiled(out, element, s->rank, (void *)(uintptr_t)s->base, s->sizes,
                                                      s->strides, s->box, ones, 0, swizzle, promotion, 0);
    if (!error) return TESSERA_SUCCESS;
    char fault[128] = "";
    struct tessera_text text = {fault, sizeof fault, 0};
    find_fault(s, &text);
    return tessera_cuda_fail(tessera_cuda_of(chip), chip->name, "cuTensorMapEncodeTiled", error, fault);
}
