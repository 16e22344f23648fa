// SPDX-License-Identifier: MIT
// Moves bytes between accesses of a lane and its registers, for memory and LDS alike.
#pragma once

#include <string.h>

#include "machine/wave.h"

// The low bits of a row's detail: the kind of access.
enum {
    BYTES = 0x1f,      // size of one access
    SIGNED = 1 << 5,   // bytes and halves are sign extended
    D16 = 1 << 6,      // a load fills the low half of the register and leaves the other half alone
    D16_HIGH = 1 << 7, // loads and stores use the high half of the register
};

static inline uint32_t extend(uint32_t detail, uint32_t word) {
    const unsigned bits = 8 * (detail & BYTES);
    if (bits >= 32) return word;
    word &= (1u << bits) - 1;
    return detail & SIGNED ? (uint32_t)((int32_t)(word << (32 - bits)) >> (32 - bits)) : word;
}

static inline uint32_t merge(uint32_t detail, uint32_t old, uint32_t word) {
    if (detail & D16_HIGH) return (old & 0xffff) | word << 16;
    if (detail & D16) return (old & 0xffff0000) | (word & 0xffff);
    return word;
}

static inline void get_words(sim_vgpr *registers, int lane, const uint8_t *bytes, uint32_t words) {
    for (uint32_t k = 0; k < words; k++) memcpy(&registers[k][lane], bytes + 4 * k, 4);
}

static inline void put_words(sim_vgpr *registers, int lane, uint8_t *bytes, uint32_t words) {
    for (uint32_t k = 0; k < words; k++) memcpy(bytes + 4 * k, &registers[k][lane], 4);
}
