// SPDX-License-Identifier: MIT
// A thread's share of a task's products, whose order fragments.h says: scores of KEYS keys, and results.
//
// KEYS: of a tile, those that a warpgroup, or with KEYS_APART a warp, makes scores of at once. ROWS: queries that it
// has.
//
// Takes KEYS, KEYS_APART, TURNED, DV, BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H

#include "tessera/device/attention/cuda/fragments.h"

enum { ROWS = !KEYS_APART ? 64 : TURNED ? 8 : 16, SCORES = KEYS / 2 / (1 + TURNED), RESULTS = DV / 2 / (1 + TURNED) };
enum { P_WORDS = SCORES * BITS / 32 };

#endif
