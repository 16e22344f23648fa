// SPDX-License-Identifier: MIT
// Describes every pointer of a call as a strided tensor, so that one set of guards checks them all.
#ifndef TESSERA_RUNTIME_TENSORS_H
#define TESSERA_RUNTIME_TENSORS_H

#include "internal.h"

struct tessera_axis {
    const char *stride_name; // NULL: contiguous
    int64_t count, stride;   // in elements
};

struct tessera_tensor {
    const char *name;
    const void *pointer;
    int bits; // of an element
    bool written;
    bool in_place;               // an output may be the same tensor as an input if both have this set
    struct tessera_axis axes[4]; // the last is contiguous
    uintptr_t end;               // one past the last byte, once check_tensor() has passed
};

enum { TESSERA_TENSORS = 28 }; // fmha_bwd has at most 24
struct tessera_tensors {
    struct tessera_tensor list[TESSERA_TENSORS];
    int count;
};

// Inline, so that axes are made where they stay.
static inline void tessera_add_tensor(struct tessera_tensors *all, const char *name, const void *pointer, int bits,
                                      bool written, struct tessera_axis batch, struct tessera_axis head,
                                      struct tessera_axis row, int64_t inner) {
    struct tessera_tensor *const x = &all->list[all->count++];
    x->name = name;
    x->pointer = pointer;
    x->bits = bits;
    x->written = written;
    x->in_place = false;
    x->axes[0] = batch, x->axes[1] = head, x->axes[2] = row;
    x->axes[3] = (struct tessera_axis){NULL, inner, 1};
    x->end = (uintptr_t)pointer;
}
void tessera_add_array(struct tessera_tensors *all, const char *name, const void *pointer, int bits, int64_t count);

// Checks that each tensor is not NULL, is aligned, lies within the address space and has valid strides, and that
// outputs overlap neither themselves nor any other tensor, but for in_place.
tessera_status tessera_check_tensors(struct tessera_tensors *all);

#endif
