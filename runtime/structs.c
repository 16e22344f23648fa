// SPDX-License-Identifier: MIT
// Structs that begin with struct_size, from callers that were compiled with an older or newer header.
#include <string.h>

#include "internal.h"

tessera_status tessera_read_struct(const char *name, const void *caller, void *out, size_t out_size) {
    if (!caller) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "%s is NULL", name);
    size_t size;
    memcpy(&size, caller, sizeof size);
    if (size < 2 * sizeof size || size % sizeof size != 0 || size > 65536)
        return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT,
                            "%s->struct_size is %zu: initialize the struct by its _INIT macro, or to %zu", name, size,
                            out_size);
    for (size_t i = out_size; i < size; i++)
        if (((const unsigned char *)caller)[i])
            return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT,
                                "%s has a field at byte %zu that this library, whose struct ends at %zu, lacks: leave "
                                "it zero or update the library",
                                name, i, out_size);
    memcpy(out, caller, size < out_size ? size : out_size);
    memcpy(out, &out_size, sizeof out_size);
    return TESSERA_SUCCESS;
}
