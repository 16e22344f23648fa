// SPDX-License-Identifier: MIT
// A kernel that shows whether a compiler knows a target and the vocabulary.
#include "tessera/isa/sm90.h"

struct probe {
    uint32_t *x;
};

KERNEL WORKGROUP(32) void tessera_probe(ARGUMENT struct probe p) { p.x[lane_id()] = 0; }
