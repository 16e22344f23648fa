// SPDX-License-Identifier: MIT
// Finds a device's code object in the image that a program passes: an ELF file, or clang's offload bundle of several.
// The layouts: LLVM's "Clang Offload Bundler" page, sections "Bundled Binary File Layout" and "Compression".
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
static const char compressed_magic[] = "CCOB";
enum { MAGIC_BYTES = sizeof bundle_magic - 1, COMPRESSED_MAGIC_BYTES = sizeof compressed_magic - 1 };

static uint64_t read64(const char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

// The size of an ELF file of which only the start is known.
static size_t elf_bytes(const char *image) {
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    uint64_t end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image + header.e_phoff + (uint64_t)i * sizeof segment, sizeof segment);
        if (segment.p_offset + segment.p_filesz > end) end = segment.p_offset + segment.p_filesz;
    }
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + header.e_shoff + (uint64_t)i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
            end = section.sh_offset + section.sh_size;
    }
    return end;
}

// Whether the code's setting of a feature ("+", "-" or none) is the device's. The device names all of its features.
static bool feature_fits(const char *code, size_t code_bytes, const char *device, const char *feature) {
    const size_t length = strlen(feature);
    for (size_t i = 0; i + length < code_bytes; i++) {
        if (strncmp(code + i, feature, length) != 0) continue;
        const char *of_device = strstr(device, feature);
        return of_device && of_device[length] == code[i + length];
    }
    return true;
}

// Whether a target such as "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" names code that the device can run.
static bool target_fits(const char *target, size_t bytes, const struct hip_device *device) {
    const char *arch = NULL;
    for (size_t i = 0; i + 2 < bytes; i++)
        if (target[i] == '-' && target[i + 1] == '-') arch = target + i + 2;
    if (!arch || bytes < 3 || strncmp(target, "hip", 3) != 0) return false;
    const size_t left = (size_t)(target + bytes - arch), length = strlen(device->facts->arch);
    if (left < length || strncmp(arch, device->facts->arch, length) != 0) return false;
    if (left > length && arch[length] != ':') return false;
    return feature_fits(arch, left, device->facts->arch_name, ":sramecc") &&
           feature_fits(arch, left, device->facts->arch_name, ":xnack");
}

// An entry of a bundle.
struct entry {
    const char *target;
    size_t target_bytes;
    const char *code;
    size_t bytes;
};

// Reads the entry at `*at`, and advances to the next one; false if it is not within the bundle.
static bool read_entry(const char *image, size_t limit, size_t *at, struct entry *entry) {
    enum { HEAD = 24 };
    if (limit - *at < HEAD) return false;
    const uint64_t offset = read64(image + *at), bytes = read64(image + *at + 8), length = read64(image + *at + 16);
    *at += HEAD;
    if (length > limit - *at || offset > limit || bytes > limit - offset) return false;
    *entry = (struct entry){image + *at, length, image + offset, bytes};
    *at += length;
    return true;
}

static hipError_t find_in_bundle(const struct hip_device *device, const char *image, size_t limit,
                                 struct hip_code *code) {
    enum { COUNT = MAGIC_BYTES, FIRST_ENTRY = COUNT + 8 };
    if (limit < FIRST_ENTRY) return hipErrorInvalidImage;
    const uint64_t count = read64(image + COUNT);
    char targets[256] = "";
    size_t at = FIRST_ENTRY, named = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct entry entry;
        if (!read_entry(image, limit, &at, &entry)) return hipErrorInvalidImage;
        if (entry.bytes == 0) continue; // the host's code, which lies elsewhere
        if (target_fits(entry.target, entry.target_bytes, device)) {
            code->image = entry.code;
            code->bytes = entry.bytes;
            return hipSuccess;
        }
        const int more =
            snprintf(targets + named, sizeof targets - named, " %.*s", (int)entry.target_bytes, entry.target);
        named = more > 0 && named + (size_t)more < sizeof targets ? named + (size_t)more : sizeof targets - 1;
    }
    tessera_hip_say("device %d is %s (TESSERA_SIM_DEVICES), and there is code only for:%s", device->index,
                    device->facts->arch_name, targets);
    return hipErrorNoBinaryForGpu;
}

static bool starts_with(const char *text, size_t limit, const char *magic, size_t bytes) {
    return limit >= bytes && memcmp(text, magic, bytes) == 0;
}

hipError_t tessera_hip_find_code(const struct hip_device *device, const void *image, size_t limit,
                                 struct hip_code *code) {
    *code = (struct hip_code){.bytes = limit};
    if (starts_with(image, limit, compressed_magic, COMPRESSED_MAGIC_BYTES)) {
        const hipError_t error = tessera_hip_decompress(image, limit, &code->unpacked, &code->bytes);
        if (error != hipSuccess) return error;
        image = code->unpacked;
        limit = code->bytes;
    }
    hipError_t error = hipErrorInvalidImage;
    if (starts_with(image, limit, bundle_magic, MAGIC_BYTES)) {
        error = find_in_bundle(device, image, limit, code);
    } else if (limit >= sizeof(Elf64_Ehdr) && starts_with(image, limit, ELFMAG, SELFMAG)) {
        code->image = image;
        if (limit == SIZE_MAX) code->bytes = elf_bytes(image);
        error = hipSuccess;
    }
    if (error != hipSuccess) free(code->unpacked);
    return error;
}
