// SPDX-License-Identifier: MIT
#ifndef TESSERA_RUNTIME_INFLATE_H
#define TESSERA_RUNTIME_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

// Unpacks a zlib stream (RFC 1950, 1951) that makes exactly out_bytes; false where it does not. Its checksum is left to
// the caller, who has another.
bool tessera_inflate(const unsigned char *in, size_t in_bytes, unsigned char *out, size_t out_bytes);

#endif
