// SPDX-License-Identifier: MIT
// Code objects of GPU instances, in packs: inside the library, or added by tessera_load_pack().
#ifndef TESSERA_RUNTIME_PACK_H
#define TESSERA_RUNTIME_PACK_H

#include "internal.h"

// The packs inside the library (cmake/packs.c.in).
struct tessera_embedded_pack {
    const char *op, *target; // "fmha_fwd", "gfx942"
    const unsigned char *begin, *end;
};
extern const struct tessera_embedded_pack tessera_embedded_packs[];
extern const size_t tessera_embedded_pack_count;

// Whether there is a pack of that operation and target.
bool tessera_pack_exists(const char *op, const char *target);

// Unpacks the code object of a kernel, which the caller frees.
tessera_status tessera_pack_unpack(const char *op, const char *target, const char *symbol, void **image, size_t *bytes);

#endif
