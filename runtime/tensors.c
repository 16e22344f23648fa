// SPDX-License-Identifier: MIT
// Checks of a call's tensors: pointers, alignment, strides, overlaps.
#include "tensors.h"

#include "guard.h"
#include "integers.h"

void tessera_add_array(struct tessera_tensors *all, const char *name, const void *pointer, int bits, int64_t count) {
    const struct tessera_axis none = {NULL, 1, 0};
    tessera_add_tensor(all, name, pointer, bits, false, none, none, none, count);
}

static int element_bytes(const struct tessera_tensor *x) { return x->bits < 8 ? 1 : x->bits / 8; }

static bool is_empty(const struct tessera_tensor *x) {
    return x->axes[0].count == 0 || x->axes[1].count == 0 || x->axes[2].count == 0 || x->axes[3].count == 0;
}

// Sets x->end. Returns false where the tensor does not fit the address space.
static bool find_end(struct tessera_tensor *x) {
    int64_t last = 0, reach, bits;
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(x->axes[i].count - 1, x->axes[i].stride, &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, x->bits, &bits)) return false;
    return !__builtin_add_overflow((uintptr_t)x->pointer, (uintptr_t)tessera_ceil_div(bits, 8), &x->end);
}

// An output's axes must nest: the stride of each exceeds the span of all axes with smaller strides. Returns an axis
// that breaks this, or NULL.
static const struct tessera_axis *axis_that_overlaps(const struct tessera_tensor *x) {
    const struct tessera_axis *by_stride[4]; // of more than one element, the innermost first among equals
    int count = 0;
    for (int i = 3, at; i >= 0; i--) {
        if (x->axes[i].count == 1) continue;
        for (at = count++; at > 0 && by_stride[at - 1]->stride > x->axes[i].stride; at--)
            by_stride[at] = by_stride[at - 1];
        by_stride[at] = &x->axes[i];
    }
    int64_t span = 0;
    for (int i = 0; i < count; i++) {
        if (by_stride[i]->stride <= span) return by_stride[i];
        span += (by_stride[i]->count - 1) * by_stride[i]->stride;
    }
    return NULL;
}

static tessera_status check_tensor(struct tessera_tensor *x) {
    if (is_empty(x)) return TESSERA_SUCCESS;
    GUARD(x->pointer, "%s is NULL: this call needs it", x->name);
    GUARD(((uintptr_t)x->pointer & (uintptr_t)(element_bytes(x) - 1)) == 0, "%s is %p: must be aligned to %d bytes",
          x->name, x->pointer, element_bytes(x));
    for (int i = 0; i < 4; i++) {
        const struct tessera_axis *const axis = &x->axes[i];
        if (!axis->stride_name || axis->count == 1) continue;
        GUARD(axis->stride >= 0, "%s is %lld: 0 or more", axis->stride_name, (long long)axis->stride);
        GUARD(x->bits >= 8 || axis->stride % 2 == 0, "%s is %lld: even for mxfp4, which packs two elements a byte",
              axis->stride_name, (long long)axis->stride);
    }
    GUARD(find_end(x), "%s: its sizes and strides reach beyond the address space", x->name);
    const struct tessera_axis *const overlapping = x->written ? axis_that_overlaps(x) : NULL;
    GUARD(!overlapping, "%s overlaps itself: %s is %lld for %lld elements", x->name, overlapping->stride_name,
          (long long)overlapping->stride, (long long)overlapping->count);
    return TESSERA_SUCCESS;
}

// Whether two tensors are disjoint when addresses are taken modulo `period` bytes. So are views of one packed buffer,
// such as q and o in batch x tokens x 4 x heads x hdim.
static bool apart_modulo(const struct tessera_tensor *x, const struct tessera_tensor *y, int64_t period) {
    int64_t span[2];
    const struct tessera_tensor *const both[2] = {x, y};
    for (int t = 0; t < 2; t++) {
        int64_t bits = both[t]->bits;
        for (int i = 0; i < 4; i++) {
            const int64_t step = both[t]->axes[i].stride * both[t]->bits;
            if (both[t]->axes[i].count > 1 && step % (8 * period) != 0) bits += (both[t]->axes[i].count - 1) * step;
        }
        span[t] = tessera_ceil_div(bits, 8);
    }
    const int64_t shift = (int64_t)(((uintptr_t)y->pointer - (uintptr_t)x->pointer) % (uintptr_t)period);
    return span[0] <= shift && shift + span[1] <= period;
}

static bool apart(const struct tessera_tensor *x, const struct tessera_tensor *y) {
    if (x->end <= (uintptr_t)y->pointer || y->end <= (uintptr_t)x->pointer) return true;
    for (int i = 0; i < 3; i++) {
        const int64_t bytes = x->axes[i].count > 1 ? x->axes[i].stride * x->bits / 8 : 0;
        // Differences wrap around at 2^64, of which `bytes` need not be a divisor: subtract the lower address.
        if (bytes &&
            ((uintptr_t)x->pointer <= (uintptr_t)y->pointer ? apart_modulo(x, y, bytes) : apart_modulo(y, x, bytes)))
            return true;
    }
    return false;
}

// Whether both are the same tensor, element by element, and may be.
static bool same(const struct tessera_tensor *x, const struct tessera_tensor *y) {
    if (!x->in_place || !y->in_place || x->pointer != y->pointer || x->bits != y->bits) return false;
    for (int i = 0; i < 4; i++)
        if (x->axes[i].count != y->axes[i].count || (x->axes[i].count > 1 && x->axes[i].stride != y->axes[i].stride))
            return false;
    return true;
}

tessera_status tessera_check_tensors(struct tessera_tensors *all) {
    for (int i = 0; i < all->count; i++) TRY(check_tensor(&all->list[i]));
    for (int i = 0; i < all->count; i++) {
        const struct tessera_tensor *const x = &all->list[i];
        if (!x->written || is_empty(x)) continue;
        for (int j = 0; j < all->count; j++) {
            const struct tessera_tensor *const y = &all->list[j];
            if (j == i || is_empty(y) || (y->written && j < i)) continue;
            if (!y->written && same(x, y)) continue;
            GUARD(apart(x, y), "%s [%p, %p) overlaps %s [%p, %p)", x->name, x->pointer, (void *)x->end, y->name,
                  y->pointer, (void *)y->end);
        }
    }
    return TESSERA_SUCCESS;
}
