// SPDX-License-Identifier: MIT
// A kernel that shows whether a compiler knows a target and the vocabulary.
#include "tessera/isa/cdna.h"

KERNEL WORKGROUP(64) void tessera_probe(uint32_t *x) { x[lane_id()] = 0; }
