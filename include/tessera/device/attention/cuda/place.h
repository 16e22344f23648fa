// SPDX-License-Identifier: MIT
// A place in shared memory that some warps fill and others empty, and the two barriers between them.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PLACE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PLACE_H

#include "tessera/isa/sm90_async.h"

struct place {
    uint32_t full, empty; // barriers
    uint32_t at;          // its bytes
    uint32_t parity;      // of the full barrier's phase
};

INLINE void wait_until_full(struct place p) { wait_for(p.full, p.parity); }
INLINE void wait_until_empty(struct place p) { wait_for(p.empty, p.parity ^ 1); }

// A warp is done with a place, whose products it has waited for.
INLINE void release(struct place p) {
    if (lane_id() == 0) arrive(p.empty);
}

// The numbers of warps that fill a place, and that empty it.
INLINE void start_place(struct place p, int filling, int emptying) {
    start_barrier(p.full, filling);
    start_barrier(p.empty, emptying);
}

#endif
