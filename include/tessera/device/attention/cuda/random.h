// SPDX-License-Identifier: MIT
// Random bits of dropout: which call of Philox has the bytes of which scores.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_RANDOM_H
#define TESSERA_DEVICE_ATTENTION_CUDA_RANDOM_H

#include "tessera/isa/sm90_async.h"

// The seed and the offset of a call, which may lie in memory.
#define DROP_SEED(call) ((call).drop_seed_ptr ? *(call).drop_seed_ptr : (call).drop_seed)
#define DROP_OFFSET(call) ((call).drop_offset_ptr ? *(call).drop_offset_ptr : (call).drop_offset)

// The bytes of a query and 16 of the 32 keys of a block: byte b of word j is that of key 8 j + 4 half + b. Heads are
// counted over sequences.
INLINE u32x4 random_bits(uint64_t seed, uint64_t offset, uint32_t head, int query, int block, int half) {
    const uint32_t c = (uint32_t)(2 * block + half);
    const u32x4 counter = {(uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)query + (c << 24),
                           (c >> 8) + (head << 12)};
    return philox(counter, seed);
}

#endif
