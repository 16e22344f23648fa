// SPDX-License-Identifier: MIT
// Packs of code objects. Numbers are little-endian; names are padded with zero bytes, at least one:
//
//   at    bytes  head                                    at    bytes  entry
//   0     8      "TSRPACK2"                              0     120    symbol of the kernel
//   8     32     operation: "fmha_fwd"                   120   8      offset of its code object in the pack
//   40    32     target: "gfx942"                        128   4      bytes of the packed code object
//   72    4      number of entries                       132   4      bytes of the code object
//   76    4      CRC-32 of all entries                   136   4      method: 0 stored, 1 zlib
//   80    8      interface of its kernels                140   4      CRC-32 of the code object
//   88    144 each, in ascending order of symbols
//
// codegen/pack.py writes them. Nothing in a pack is trusted before it is checked.
#include "device/pack.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/inflate.h"
#include "guard.h"
#include "library.h"

enum { NAME_BYTES = 32, SYMBOL_BYTES = 120, HEAD_BYTES = 88, ENTRY_BYTES = 144 };
enum { STORED = 0, ZLIB = 1 };
enum { ZLIB_MOST = 1040 }; // an upper bound of the bytes that one packed byte can become

struct pack {
    char name[256]; // for messages: the file
    const unsigned char *begin;
    size_t bytes;
    const char *op, *target;
    uint32_t count;
    struct pack *next; // that was added before it
};

struct entry {
    const char *symbol;
    uint64_t offset;
    uint32_t packed_bytes, bytes, method, crc;
};

static uint32_t read32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static uint64_t read64(const unsigned char *at) { return read32(at) | (uint64_t)read32(at + 4) << 32; }

// CRC-32 of IEEE 802.3, four bits at a time.
static uint32_t crc32_of(const unsigned char *bytes, size_t count) {
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

// ---- reading

static struct entry entry_at(const struct pack *p, uint32_t index) {
    const unsigned char *const at = p->begin + HEAD_BYTES + (size_t)index * ENTRY_BYTES;
    return (struct entry){(const char *)at, read64(at + 120), read32(at + 128),
                          read32(at + 132), read32(at + 136), read32(at + 140)};
}

static tessera_status check_entry(const struct pack *p, uint32_t index) {
    const struct entry e = entry_at(p, index);
    GUARD(memchr(e.symbol, 0, SYMBOL_BYTES) && *e.symbol, "pack %s: the symbol of entry %u has no end or no beginning",
          p->name, index);
    GUARD(index == 0 || strcmp(entry_at(p, index - 1).symbol, e.symbol) < 0, "pack %s: entry %u, %s, is out of order",
          p->name, index, e.symbol);
    GUARD(e.offset >= HEAD_BYTES + (uint64_t)p->count * ENTRY_BYTES && e.offset <= p->bytes &&
              e.packed_bytes <= p->bytes - e.offset,
          "pack %s: %s lies at %llu to %llu, outside of the %zu bytes", p->name, e.symbol, (unsigned long long)e.offset,
          (unsigned long long)e.offset + e.packed_bytes, p->bytes);
    GUARD(e.method == STORED || e.method == ZLIB, "pack %s: %s is packed by method %u: 0 or 1", p->name, e.symbol,
          e.method);
    GUARD(e.method == STORED ? e.bytes == e.packed_bytes : e.bytes / ZLIB_MOST <= e.packed_bytes,
          "pack %s: %s takes %u bytes and cannot become %u", p->name, e.symbol, e.packed_bytes, e.bytes);
    return TESSERA_SUCCESS;
}

static tessera_status read_pack(const char *name, const unsigned char *begin, size_t bytes, struct pack *p) {
    GUARD(bytes >= HEAD_BYTES && memcmp(begin, "TSRPACK2", 8) == 0,
          "pack %s is none: it does not begin with TSRPACK2 and a head of %d bytes", name, HEAD_BYTES);
    GUARD(read64(begin + 80) == tessera_kernel_interface,
          "pack %s is of another version of the library: its kernels have interface %016llx, not %016llx", name,
          (unsigned long long)read64(begin + 80), (unsigned long long)tessera_kernel_interface);
    *p = (struct pack){
        .begin = begin, .bytes = bytes, .op = (const char *)begin + 8, .target = (const char *)begin + 40};
    snprintf(p->name, sizeof p->name, "%s", name);
    GUARD(memchr(p->op, 0, NAME_BYTES) && memchr(p->target, 0, NAME_BYTES),
          "pack %s: the name of its operation or target has no end", name);
    p->count = read32(begin + 72);
    GUARD(p->count <= (bytes - HEAD_BYTES) / ENTRY_BYTES, "pack %s: %zu bytes cannot hold %u entries", name, bytes,
          p->count);
    GUARD(crc32_of(begin + HEAD_BYTES, (size_t)p->count * ENTRY_BYTES) == read32(begin + 76),
          "pack %s: the checksum of its entries is wrong", name);
    for (uint32_t i = 0; i < p->count; i++) TRY(check_entry(p, i));
    return TESSERA_SUCCESS;
}

// ---- unpacking

static tessera_status unpack_to(const struct pack *p, const struct entry *e, unsigned char *out) {
    const unsigned char *const packed = p->begin + e->offset;
    if (e->method == STORED)
        memcpy(out, packed, e->bytes);
    else if (!tessera_inflate(packed, e->packed_bytes, out, e->bytes))
        return tessera_fail(TESSERA_ERROR_DEVICE, "pack %s: %s cannot be unpacked to %u bytes", p->name, e->symbol,
                            e->bytes);
    if (crc32_of(out, e->bytes) != e->crc)
        return tessera_fail(TESSERA_ERROR_DEVICE, "pack %s: the checksum of %s is wrong", p->name, e->symbol);
    return TESSERA_SUCCESS;
}

static tessera_status unpack(const struct pack *p, const struct entry *e, void **image, size_t *bytes) {
    unsigned char *const out = malloc(e->bytes ? e->bytes : 1);
    if (!out) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %u bytes of %s", e->bytes, e->symbol);
    const tessera_status status = unpack_to(p, e, out);
    *bytes = e->bytes;
    if (status == TESSERA_SUCCESS)
        *image = out;
    else
        free(out);
    return status;
}

static bool find_entry(const struct pack *p, const char *symbol, struct entry *out) {
    uint32_t low = 0, high = p->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        *out = entry_at(p, middle);
        const int order = strcmp(out->symbol, symbol);
        if (order == 0) return true;
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return false;
}

// ---- finding: first among packs that were added, from the last to the first, then among the library's own

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards `added`, whose packs are never freed
static struct pack *added;

static const struct pack *first_added(void) {
    pthread_mutex_lock(&mutex);
    const struct pack *const first = added;
    pthread_mutex_unlock(&mutex);
    return first;
}

static bool is_of(const char *pack_op, const char *pack_target, const char *op, const char *target) {
    return strcmp(pack_op, op) == 0 && strcmp(pack_target, target) == 0;
}

bool tessera_pack_exists(const char *op, const char *target) {
    for (const struct pack *p = first_added(); p; p = p->next)
        if (is_of(p->op, p->target, op, target)) return true;
    for (size_t i = 0; i < tessera_embedded_pack_count; i++)
        if (is_of(tessera_embedded_packs[i].op, tessera_embedded_packs[i].target, op, target)) return true;
    return false;
}

tessera_status tessera_pack_unpack(const char *op, const char *target, const char *symbol, void **image,
                                   size_t *bytes) {
    struct entry entry;
    for (const struct pack *p = first_added(); p; p = p->next)
        if (is_of(p->op, p->target, op, target) && find_entry(p, symbol, &entry))
            return unpack(p, &entry, image, bytes);
    for (size_t i = 0; i < tessera_embedded_pack_count; i++) {
        const struct tessera_embedded_pack *const own = &tessera_embedded_packs[i];
        struct pack p;
        if (!is_of(own->op, own->target, op, target)) continue;
        TRY(read_pack("of this library", own->begin, (size_t)(own->end - own->begin), &p));
        if (find_entry(&p, symbol, &entry)) return unpack(&p, &entry, image, bytes);
    }
    return tessera_fail(TESSERA_ERROR_DEVICE,
                        "no pack of %s for %s has %s: tessera_load_pack() adds one, where this library has none inside",
                        op, target, symbol);
}

// ---- adding

// Takes ownership of the bytes.
static tessera_status add(const char *name, unsigned char *bytes, size_t count) {
    struct pack *const p = calloc(1, sizeof *p);
    tessera_status status =
        p ? read_pack(name, bytes, count, p) : tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for pack %s", name);
    if (status != TESSERA_SUCCESS) {
        free(p);
        free(bytes);
        return status;
    }
    pthread_mutex_lock(&mutex);
    p->next = added;
    added = p;
    pthread_mutex_unlock(&mutex);
    tessera_log(TESSERA_LOG_INFO, "pack %s: %u code objects of %s for %s", name, p->count, p->op, p->target);
    return TESSERA_SUCCESS;
}

// Returns the rest of a file, or NULL with errno set.
static unsigned char *read_all(FILE *file, size_t *count) {
    size_t room = 1 << 16;
    unsigned char *bytes = malloc(room);
    for (*count = 0; bytes; room *= 2) {
        *count += fread(bytes + *count, 1, room - *count, file);
        if (ferror(file)) break;
        if (*count < room) return bytes;
        unsigned char *const more = realloc(bytes, 2 * room);
        if (!more) break;
        bytes = more;
    }
    free(bytes);
    return NULL;
}

tessera_status tessera_load_pack(const char *path) {
    GUARD(path, "path is NULL");
    size_t count = 0;
    errno = 0;
    FILE *const file = fopen(path, "rb");
    unsigned char *const bytes = file ? read_all(file, &count) : NULL;
    const int error = errno;
    if (file) fclose(file);
    if (!bytes)
        return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "pack %s cannot be read: %s", path, strerror(error));
    return add(path, bytes, count);
}

tessera_status tessera_load_pack_memory(const void *pack, size_t bytes) {
    GUARD(pack || !bytes, "pack is NULL: %zu bytes", bytes);
    unsigned char *const copy = malloc(bytes ? bytes : 1);
    if (!copy) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a pack of %zu bytes", bytes);
    if (bytes) memcpy(copy, pack, bytes);
    return add("in memory", copy, bytes);
}
