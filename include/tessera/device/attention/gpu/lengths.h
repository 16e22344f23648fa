// SPDX-License-Identifier: MIT
// Lengths of sequences.
//
// Takes read_int.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_LENGTHS_H
#define TESSERA_DEVICE_ATTENTION_GPU_LENGTHS_H

// That of sequence b, which has room for `physical`.
INLINE int logical_length(const int32_t *lengths, const int32_t *cumulative, int b, int physical) {
    if (lengths) return min_i32(physical, read_int(lengths, b));
    if (cumulative) return min_i32(physical, read_int(cumulative, b + 1) - read_int(cumulative, b));
    return physical;
}

#endif
