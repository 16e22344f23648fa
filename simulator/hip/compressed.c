// SPDX-License-Identifier: MIT
// Compressed offload bundles ("CCOB"), as clang's --offload-compress writes them. The layouts of their headers: LLVM's
// "Clang Offload Bundler" page, section "Compression and Decompression". libzstd and libz are opened when they
// are needed.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { METHOD_ZLIB = 0, METHOD_ZSTD = 1 };

struct header {
    unsigned version, method;
    uint64_t file_bytes; // with this header
    uint64_t plain_bytes;
    size_t bytes; // size of the header
};

static uint64_t read_number(const uint8_t *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes); // little-endian
    return value;
}

// Reads a header: magic, version and method, then sizes, of 4 bytes each up to version 2, then a hash of 8 bytes.
static bool read_header(const uint8_t *image, size_t limit, struct header *header) {
    enum { VERSION = 4, METHOD = 6, SIZES = 8, HASH_BYTES = 8, LONGEST = 32 };
    if (limit < LONGEST) return false;
    header->version = (unsigned)read_number(image + VERSION, 2);
    header->method = (unsigned)read_number(image + METHOD, 2);
    const size_t width = header->version >= 3 ? 8 : 4;
    const uint8_t *at = image + SIZES;
    header->file_bytes = limit; // version 1 does not store it
    if (header->version >= 2) {
        header->file_bytes = read_number(at, width);
        at += width;
    }
    header->plain_bytes = read_number(at, width);
    header->bytes = (size_t)(at + width + HASH_BYTES - image);
    return header->version >= 1 && header->version <= 3 && header->file_bytes >= header->bytes &&
           header->file_bytes <= limit;
}

static bool unpack_zstd(uint8_t *to, size_t plain, const uint8_t *from, size_t bytes) {
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
    if (library) *(void **)&decompress = dlsym(library, "ZSTD_decompress");
    if (!decompress) {
        tessera_hip_say("a bundle of code is compressed by zstd, and there is no libzstd.so.1");
        return false;
    }
    return decompress(to, plain, from, bytes) == plain;
}

static bool unpack_zlib(uint8_t *to, size_t plain, const uint8_t *from, size_t bytes) {
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*uncompress)(uint8_t *, unsigned long *, const uint8_t *, unsigned long) = NULL;
    if (library) *(void **)&uncompress = dlsym(library, "uncompress");
    if (!uncompress) {
        tessera_hip_say("a bundle of code is compressed by zlib, and there is no libz.so.1");
        return false;
    }
    unsigned long made = plain;
    return uncompress(to, &made, from, bytes) == 0 && made == plain;
}

hipError_t tessera_hip_decompress(const void *image, size_t limit, void **out, size_t *bytes) {
    struct header header;
    if (!read_header(image, limit, &header)) return hipErrorInvalidImage;
    if (header.file_bytes == SIZE_MAX) {
        tessera_hip_say("a compressed bundle of version 1 does not say how long it is; recompile it");
        return hipErrorInvalidImage;
    }
    uint8_t *plain = malloc(header.plain_bytes + 1);
    if (!plain) return hipErrorOutOfMemory;
    const uint8_t *from = (const uint8_t *)image + header.bytes;
    const size_t from_bytes = header.file_bytes - header.bytes;
    const bool good = header.method == METHOD_ZSTD   ? unpack_zstd(plain, header.plain_bytes, from, from_bytes)
                      : header.method == METHOD_ZLIB ? unpack_zlib(plain, header.plain_bytes, from, from_bytes)
                                                     : false;
    if (!good) {
        free(plain);
        return hipErrorInvalidImage;
    }
    *out = plain;
    *bytes = header.plain_bytes;
    return hipSuccess;
}
