// SPDX-License-Identifier: MIT
// Backward: where the chunks of rows lie that go from memory straight to LDS, and are read by rows and by columns.
//
// LDS_BANKS: banks of LDS.
//
// Takes LDS_BANKS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_SLOTS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_SLOTS_H

#include "tessera/isa/cdna.h"

// Rows hold their chunks in an order of their own. Two kinds of reads must find all banks: of one chunk of as many
// successive rows as banks hold chunks (SLOTS), and of 4 successive chunks, aligned, of 4 successive rows, aligned.
enum { SLOTS = LDS_BANKS / 4 };
INLINE uint32_t slot_of(uint32_t row, uint32_t chunk, uint32_t chunks) {
    const uint32_t cycle = chunks < SLOTS ? chunks : SLOTS, turn = row / (SLOTS / cycle) % cycle;
    return chunk ^ (turn % (cycle / 4) * 4 + turn / (cycle / 4));
}

#endif
