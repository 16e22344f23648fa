// SPDX-License-Identifier: MIT
// A thread's share of a task's products, whose order fragments.h says: scores of KEYS keys, and results.
//
// KEYS: of a tile, those that a warpgroup, or with KEYS_APART a warp, makes scores of at once. ROWS: queries that it
// has.
//
// Takes KEYS, KEYS_APART, DV, BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H

#include "tessera/device/attention/cuda/fragments.h"

enum { SCORES = KEYS / 2, RESULTS = DV / 2, P_WORDS = KEYS * BITS / 64, ROWS = KEYS_APART ? 16 : 64 };

#endif
