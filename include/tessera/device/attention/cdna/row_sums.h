// SPDX-License-Identifier: MIT
// Sums over the 16 lanes of a row, each of which gets it. All lanes of the wave must be active.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_ROW_SUMS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_ROW_SUMS_H

#include "tessera/isa/cdna.h"

// As OVER_LANES, but for the steps from one row of 16 lanes to others.
INLINE float sum_of_row_lanes(float x) {
    uint32_t sum = AS_U32(x);
    sum = add_bits_f32(sum, LLVM_DPP(sum, 0xb1));
    sum = add_bits_f32(sum, LLVM_DPP(sum, 0x4e));
    sum = add_bits_f32(sum, LLVM_DPP(sum, 0x141));
    return AS_F32(add_bits_f32(sum, LLVM_DPP(sum, 0x140)));
}

#endif
