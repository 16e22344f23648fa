// SPDX-License-Identifier: MIT
#include "fake_driver.h"

extern "C" {
#include "library.h"
}

#include <cstdlib>
#ifdef TESSERA_HAVE_ZLIB
#include <zlib.h>
#endif

namespace {

uint32_t crc32_of(const std::string &bytes) {
    uint32_t crc = ~0u;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

std::string number(uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; i++) text += static_cast<char>(value >> 8 * i);
    return text;
}

std::string padded(std::string name, size_t bytes) {
    name.resize(bytes, '\0');
    return name;
}

std::string compressed(const std::string &plain) {
#ifdef TESSERA_HAVE_ZLIB
    uLongf bytes = compressBound(plain.size());
    std::string out(bytes, '\0');
    if (compress(reinterpret_cast<Bytef *>(out.data()), &bytes, reinterpret_cast<const Bytef *>(plain.data()),
                 plain.size()) != Z_OK)
        abort();
    out.resize(bytes);
    return out;
#else
    return plain;
#endif
}

} // namespace

std::string make_pack(const std::string &op, const std::string &target,
                      const std::map<std::string, std::string> &objects, bool compress) {
    const size_t head = 88, entry = 144;
    std::string entries, data;
    for (const auto &[symbol, text] : objects) {
        const std::string plain = text + '\0', squeezed = compress ? compressed(plain) : plain;
        const std::string &packed = squeezed.size() < plain.size() ? squeezed : plain;
        data.resize(data.size() + (64 - (head + objects.size() * entry + data.size()) % 64) % 64, '\0');
        entries += padded(symbol, 120) + number(head + objects.size() * entry + data.size(), 8) +
                   number(packed.size(), 4) + number(plain.size(), 4) + number(packed.size() < plain.size(), 4) +
                   number(crc32_of(plain), 4);
        data += packed;
    }
    return "TSRPACK2" + padded(op, 32) + padded(target, 32) + number(objects.size(), 4) + number(crc32_of(entries), 4) +
           number(tessera_kernel_interface, 8) + entries + data;
}
