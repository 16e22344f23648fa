// SPDX-License-Identifier: MIT
// Random bits, of GPUs' vocabularies.
//
// Takes INLINE, UNROLL, u32x4.
#ifndef TESSERA_ISA_GPU_PHILOX_H
#define TESSERA_ISA_GPU_PHILOX_H

// Philox4x32-10 (Salmon et al., 2011).
INLINE u32x4 philox_rounds(u32x4 counter, uint64_t seed) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    UNROLL
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)counter.x * 0xd2511f53, b = (uint64_t)counter.z * 0xcd9e8d57;
        counter = (u32x4){(uint32_t)(b >> 32) ^ counter.y ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ counter.w ^ key1,
                          (uint32_t)a};
        key0 += 0x9e3779b9;
        key1 += 0xbb67ae85;
    }
    return counter;
}

#endif
