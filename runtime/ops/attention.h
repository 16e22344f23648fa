// SPDX-License-Identifier: MIT
// What the operations of attention share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_ATTENTION_H
#define TESSERA_RUNTIME_OPS_ATTENTION_H

#include "tessera/attention.h"

// How the tensors of a combination are stored. E4M3 stands for the device's own.
struct tessera_attention_storages {
    tessera_type qkv, o, bias;
};
extern const struct tessera_attention_storages tessera_attention_storages[TESSERA_FMHA_DTYPE_COUNT];

#endif
