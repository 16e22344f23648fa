// SPDX-License-Identifier: MIT
// Packs of code objects: finding code in them, and every way in which a pack can be broken.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "fake_driver.h"

extern "C" {
#include "device/pack.h"
}

namespace {

tessera_status load(const std::string &pack) { return tessera_load_pack_memory(pack.data(), pack.size()); }

// The contents of an unpacked code object, or the error line.
std::string unpacked(const char *op, const char *target, const char *symbol) {
    void *image = nullptr;
    size_t bytes = 0;
    if (tessera_pack_unpack(op, target, symbol, &image, &bytes) != TESSERA_SUCCESS) {
        EXPECT_EQ(image, nullptr);
        return tessera_last_error();
    }
    const std::unique_ptr<void, decltype(&free)> owned(image, free);
    EXPECT_EQ(bytes, strlen(static_cast<const char *>(image)) + 1) << "make_pack() adds a zero byte";
    return static_cast<const char *>(image);
}

std::string with(std::string pack, size_t at, const std::string &bytes) {
    return pack.replace(at, bytes.size(), bytes);
}

uint32_t crc32_of(const std::string &bytes) {
    uint32_t crc = ~0u;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

std::string word(uint32_t value) {
    std::string text;
    for (int i = 0; i < 4; i++) text += static_cast<char>(value >> 8 * i);
    return text;
}

// Changes an entry and corrects the checksum of all entries, so that later checks are reached.
std::string with_entry(const std::string &pack, size_t at, const std::string &bytes) {
    const std::string changed = with(pack, at, bytes);
    const size_t count = static_cast<unsigned char>(pack[72]);
    return with(changed, 76, word(crc32_of(changed.substr(88, count * 144))));
}

const std::string kLong(5000, 'x');

TEST(Pack, FindsEachSymbol) {
    std::map<std::string, std::string> objects;
    for (int i = 0; i < 100; i++) objects["s" + std::to_string(i * 7919 % 1000)] = "object " + std::to_string(i);
    for (const bool compress : {false, true}) {
        const std::string target = compress ? "packed" : "stored";
        objects["long"] = kLong;
        ASSERT_EQ(load(make_pack("op", target, objects, compress)), TESSERA_SUCCESS) << tessera_last_error();
        for (const auto &[symbol, text] : objects) EXPECT_EQ(unpacked("op", target.c_str(), symbol.c_str()), text);
        for (const char *symbol : {"", "s", "s10000", "z"})
            EXPECT_NE(unpacked("op", target.c_str(), symbol).find("no pack of op for"), std::string::npos) << symbol;
    }
}

TEST(Pack, IsOfOneOperationAndTarget) {
    EXPECT_FALSE(tessera_pack_exists("mine", "gfx942"));
    ASSERT_EQ(load(make_pack("mine", "gfx942", {{"s", "text"}})), TESSERA_SUCCESS);
    EXPECT_TRUE(tessera_pack_exists("mine", "gfx942"));
    EXPECT_FALSE(tessera_pack_exists("mine", "gfx950"));
    EXPECT_FALSE(tessera_pack_exists("yours", "gfx942"));
    EXPECT_NE(unpacked("mine", "gfx950", "s"), "text");
}

TEST(Pack, TheLastOneIsPreferred) {
    ASSERT_EQ(load(make_pack("twice", "gfx942", {{"a", "old a"}, {"b", "old b"}})), TESSERA_SUCCESS);
    ASSERT_EQ(load(make_pack("twice", "gfx942", {{"b", "new b"}})), TESSERA_SUCCESS);
    EXPECT_EQ(unpacked("twice", "gfx942", "a"), "old a");
    EXPECT_EQ(unpacked("twice", "gfx942", "b"), "new b");
}

TEST(Pack, Empty) { EXPECT_EQ(load(make_pack("none", "gfx942", {})), TESSERA_SUCCESS); }

TEST(Pack, Files) {
    const auto path = std::filesystem::temp_directory_path() / ("tessera_pack_" + std::to_string(getpid()));
    std::map<std::string, std::string> objects = {{"s", "text"}};
    for (int i = 0; i < 40; i++) objects["big" + std::to_string(i)] = kLong; // more than one read takes
    std::ofstream(path, std::ios::binary) << make_pack("file", "gfx942", objects);
    EXPECT_EQ(tessera_load_pack(path.c_str()), TESSERA_SUCCESS) << tessera_last_error();
    std::filesystem::remove(path);
    EXPECT_EQ(unpacked("file", "gfx942", "s"), "text");
    EXPECT_EQ(unpacked("file", "gfx942", "big39"), kLong);
    EXPECT_EQ(tessera_load_pack(path.c_str()), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_last_error(), "pack " + path.string() + " cannot be read: No such file or directory");
    EXPECT_EQ(tessera_load_pack("/"), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "pack / cannot be read: Is a directory");
    EXPECT_EQ(tessera_load_pack(nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "path is NULL");
    EXPECT_EQ(tessera_load_pack_memory(nullptr, 5), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "pack is NULL: 5 bytes");
}

TEST(Pack, BrokenOnes) {
    const std::string good = make_pack("broken", "gfx942", {{"first", kLong}, {"second", "text"}});
    const size_t entry = 88, second = entry + 144;
    const std::string no_end(120, 'n');
    const struct {
        std::string pack;
        const char *says;
    } cases[] = {
        {"", "is none: it does not begin with TSRPACK2 and a head of 88 bytes"},
        {good.substr(0, 87), "is none"},
        {with(good, 0, "X"), "is none"},
        {with(good, 7, "1"), "is none"},
        {with(good, 80, std::string(8, 0)),
         "is of another version of the library: its kernels have interface 0000000000000000"},
        {with(good, 8, std::string(32, 'o')), "the name of its operation or target has no end"},
        {with(good, 40, std::string(32, 't')), "the name of its operation or target has no end"},
        {good.substr(0, 88), "88 bytes cannot hold 2 entries"},
        {with(good, 72, word(0xffffffff)), "cannot hold 4294967295 entries"},
        {with(good, 76, "????"), "the checksum of its entries is wrong"},
        {with(good, second + 128, "?"), "the checksum of its entries is wrong"},
        {with_entry(good, entry, no_end), "the symbol of entry 0 has no end or no beginning"},
        {with_entry(good, entry, std::string(1, '\0')), "the symbol of entry 0 has no end or no beginning"},
        {with_entry(good, second, std::string("first\0", 6)), "entry 1, first, is out of order"},
        {with_entry(good, second, std::string("a\0", 2)), "entry 1, a, is out of order"},
        {with_entry(good, entry + 120, word(0)), "first lies at 0 to 5001, outside of the"},
        {with_entry(good, entry + 124, word(0x80000000)), "outside of the"},
        {with_entry(good, entry + 120, word(static_cast<uint32_t>(good.size())) + word(0)), "outside of the"},
        {with_entry(good, entry + 128, word(0xffffffff)), "outside of the"},
        {with_entry(good, entry + 136, word(2)), "first is packed by method 2: 0 or 1"},
        {with_entry(good, entry + 132, word(5000)), "first takes 5001 bytes and cannot become 5000"},
        {with_entry(with_entry(good, entry + 136, word(1)), entry + 132, word(0xffffffff)), "cannot become 4294967295"},
        {good.substr(0, good.size() - 1), "second lies at"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(load(c.pack), TESSERA_ERROR_INVALID_ARGUMENT) << c.says;
        EXPECT_EQ(std::string(tessera_last_error()).find("pack in memory"), 0u) << tessera_last_error();
        EXPECT_NE(std::string(tessera_last_error()).find(c.says), std::string::npos) << tessera_last_error();
    }
    EXPECT_FALSE(tessera_pack_exists("broken", "gfx942"));
}

TEST(Pack, BrokenObjects) {
    const std::string stored = make_pack("bits", "stored", {{"s", kLong}});
    ASSERT_EQ(load(with(stored, stored.size() - 9, "y")), TESSERA_SUCCESS);
    EXPECT_EQ(unpacked("bits", "stored", "s"), "pack in memory: the checksum of s is wrong");
    const std::string packed = make_pack("bits", "packed", {{"s", kLong}}, true);
#ifdef TESSERA_HAVE_ZLIB
    ASSERT_EQ(load(with(packed, packed.size() - 9, "?")), TESSERA_SUCCESS);
    EXPECT_EQ(unpacked("bits", "packed", "s"), "pack in memory: s cannot be unpacked to 5001 bytes");
    ASSERT_EQ(load(with_entry(packed, 88 + 132, word(5000))), TESSERA_SUCCESS);
    EXPECT_EQ(unpacked("bits", "packed", "s"), "pack in memory: s cannot be unpacked to 5000 bytes");
    ASSERT_EQ(load(with_entry(packed, 88 + 132, word(5002))), TESSERA_SUCCESS);
    EXPECT_EQ(unpacked("bits", "packed", "s"), "pack in memory: s cannot be unpacked to 5002 bytes");
#endif
}

// Packs with a few changed bytes, some with a corrected checksum, are refused, or the code found in them is intact.
TEST(Pack, Fuzz) {
    std::mt19937 random(20);
    const std::string good = make_pack("fuzz", "gfx942", {{"a", "text a"}, {"b", kLong}, {"c", "text c"}}, true);
    int accepted = 0;
    for (int i = 0; i < 3000; i++) {
        std::string pack = good.substr(0, random() % 8 ? good.size() : random() % good.size());
        for (int n = static_cast<int>(random() % 4); n > 0 && !pack.empty(); n--)
            pack[random() % std::min<size_t>(pack.size(), random() % 2 ? 600 : 5000)] =
                static_cast<char>(random() % 3 ? random() : random() % 4);
        if (pack.size() > 88 + 3 * 144 && pack[72] == 3 && random() % 2) pack = with_entry(pack, 88, "a");
        if (load(pack) != TESSERA_SUCCESS) continue;
        accepted++;
        for (const auto &[symbol, text] : std::map<std::string, std::string>{{"a", "text a"}, {"b", kLong}}) {
            const std::string got = unpacked("fuzz", "gfx942", symbol.c_str());
            EXPECT_TRUE(got == text || got.find("pack") != std::string::npos) << got;
        }
    }
    EXPECT_GT(accepted, 300);
    EXPECT_LT(accepted, 2700);
}

} // namespace
