// SPDX-License-Identifier: MIT
// The query head of workgroup x of a grid of group * nhead_k: the transpose over the rectangle of key heads and members
// of their groups. Workgroups beside one another, which hardware deals to the dies of a GPU in turns, read K and V of
// different key heads. Each head occurs once; with group = 1 or nhead_k = 1 it is x.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_HEAD_ORDER_H
#define TESSERA_DEVICE_ATTENTION_CDNA_HEAD_ORDER_H

#include "tessera/isa/cdna.h"

INLINE uint32_t transposed_head(uint32_t x, uint32_t group, uint32_t nhead_k) {
    return x % group * nhead_k + x / group;
}

#endif
