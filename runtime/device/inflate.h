// SPDX-License-Identifier: MIT
#ifndef TESSERA_RUNTIME_INFLATE_H
#define TESSERA_RUNTIME_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

// Unpacks a zlib stream (RFC 1950, 1951) to exactly out_bytes, and returns false where it gives more or less. The
// stream's checksum is not read: the caller has another.
bool tessera_inflate(const unsigned char *in, size_t in_bytes, unsigned char *out, size_t out_bytes);

#endif
