// SPDX-License-Identifier: MIT
// Streams with each kind of block, handwritten and made by zlib: whole, broken, and of another size than expected.
#include <gtest/gtest.h>

#include <random>
#include <string>
#ifdef TESSERA_HAVE_ZLIB
#include <zlib.h>
#endif

extern "C" {
#include "device/inflate.h"
}

namespace {

#define BYTES(literal) std::string(literal, sizeof literal - 1)

// The inflated stream, or "refused".
std::string inflated(const std::string &in, size_t size) {
    std::string out(size, '?');
    const bool whole = tessera_inflate(reinterpret_cast<const unsigned char *>(in.data()), in.size(),
                                       reinterpret_cast<unsigned char *>(out.data()), size);
    return whole ? out : "refused";
}

const std::string kStored = BYTES("\x78\x01\x01\x03\x00\xfc\xff\x61\x62\x63\x02\x4d\x01\x27");
const std::string kFixed = BYTES("\x78\x01\x4b\x4c\x4a\x84\x42\x05\x10\x01\x00\x2c\x78\x05\x76");
const std::string kDynamic = BYTES("\x78\xda\x0d\xca\xb1\x01\x00\x20\x08\x04\xb1\x85\xae\x80\xe7\x05\xd9\x7f\x31\x4d"
                                   "\x9d\x20\x31\x4b\x36\x3a\x54\xe3\xa5\xcd\x4d\x0a\x19\x0f\x23\x44\x25\x2d\xf6\x8f"
                                   "\x62\x82\x07\x1c\xa3\x0a\x5c");

TEST(Inflate, EachKindOfBlock) {
    EXPECT_EQ(inflated(BYTES("\x78\xda\x03\x00\x00\x00\x00\x01"), 0), "");
    EXPECT_EQ(inflated(kStored, 3), "abc");
    EXPECT_EQ(inflated(kFixed, 15), "ababababab abab");
    EXPECT_EQ(inflated(kDynamic, 54), "0,1,4,9,16,25,36,49,64,81,3,24,47,72,2,31,62,95,33,70,");
}

TEST(Inflate, OtherSizes) {
    for (const auto &[stream, size] : {std::pair{kStored, 3}, {kFixed, 15}, {kDynamic, 54}})
        for (const int wrong : {0, 1, size - 1, size + 1, 1000})
            EXPECT_EQ(inflated(stream, static_cast<size_t>(wrong)), "refused") << wrong;
}

TEST(Inflate, CutStreams) {
    for (const auto &[stream, size] : {std::pair{kStored, 3}, {kFixed, 15}, {kDynamic, 54}})
        for (size_t length = 0; length < stream.size() - 4; length++) // the last 4 bytes are the checksum
            EXPECT_EQ(inflated(stream.substr(0, length), static_cast<size_t>(size)), "refused") << length;
}

TEST(Inflate, BrokenOnes) {
    const struct {
        const char *what;
        std::string stream;
    } cases[] = {
        {"another method", BYTES("\x77\x09\x03\x00")},
        {"a dictionary", BYTES("\x78\xf9\x00\x00\x00\x00\x03\x00")},
        {"a header's check", BYTES("\x78\x02\x03\x00")},
        {"a kind of block that is none", BYTES("\x78\x01\x07\x00")},
        {"a stored size and its complement", BYTES("\x78\x01\x01\x00\x00\xfe\xff")},
        {"a distance to before the beginning", BYTES("\x78\x01\x4b\x04\x42\x00")},
        {"287 literals", BYTES("\x78\x01\xf5\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
        {"no code of lengths", BYTES("\x78\x01\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
    };
    for (const auto &c : cases)
        for (size_t size = 0; size < 8; size++) EXPECT_EQ(inflated(c.stream, size), "refused") << c.what;
}

#ifdef TESSERA_HAVE_ZLIB
std::string deflated(const std::string &text, int level, int strategy) {
    z_stream z = {};
    deflateInit2(&z, level, Z_DEFLATED, 15, 9, strategy);
    std::string out(deflateBound(&z, text.size()) + 64, '\0');
    z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
    z.avail_in = static_cast<uInt>(text.size());
    z.next_out = reinterpret_cast<Bytef *>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}

TEST(Inflate, WhatZlibMakes) {
    std::mt19937 random(3);
    int broken = 0;
    for (int i = 0; i < 200; i++) {
        std::string text(random() % 3 ? random() % 300 : random() % 70000, '\0');
        const unsigned kinds = 1u << random() % 9; // bytes that occur: from one to all
        for (char &c : text) c = static_cast<char>(std::min(random() % kinds, random() % kinds));
        const int level = static_cast<int>(random() % 10);
        std::string stream = deflated(text, level, static_cast<int>(random() % 5)); // Z_DEFAULT_STRATEGY to Z_FIXED
        ASSERT_TRUE(inflated(stream, text.size()) == text) << i;
        for (int n = 0; n < 5; n++) {
            stream[random() % stream.size()] = static_cast<char>(random());
            broken += inflated(stream, text.size()) != text;
        }
    }
    EXPECT_GT(broken, 300);
}
#endif

} // namespace
