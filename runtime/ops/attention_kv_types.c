// SPDX-License-Identifier: MIT
#include "ops/attention_kv_types.h"

const struct tessera_kv_type tessera_kv_types[TESSERA_KV_CACHE_DTYPE_COUNT] = {
    [TESSERA_KV_AUTO] = {.numbers = 1},
    [TESSERA_KV_FP8_E4M3] = {.bytes = 1, .numbers = 1, .takes_scales = true},
    [TESSERA_KV_INT8] = {.bytes = 1, .numbers = 1, .takes_scales = true},
    [TESSERA_KV_TURBO4] = {.bytes = 1, .numbers = 2, .tail = 2, .takes_scales = true, .has_norms = true},
};
