// SPDX-License-Identifier: MIT
#include "tessera/status.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/attention.h"

extern "C" {
#include "internal.h"
}

namespace {

TEST(Status, Names) {
    EXPECT_STREQ(tessera_status_string(TESSERA_SUCCESS), "TESSERA_SUCCESS");
    EXPECT_STREQ(tessera_status_string(TESSERA_ERROR_INVALID_ARGUMENT), "TESSERA_ERROR_INVALID_ARGUMENT");
    EXPECT_STREQ(tessera_status_string(TESSERA_ERROR_NO_INSTANCE), "TESSERA_ERROR_NO_INSTANCE");
    EXPECT_STREQ(tessera_status_string(TESSERA_ERROR_WORKSPACE), "TESSERA_ERROR_WORKSPACE");
    EXPECT_STREQ(tessera_status_string(TESSERA_ERROR_DEVICE), "TESSERA_ERROR_DEVICE");
    EXPECT_STREQ(tessera_status_string(TESSERA_ERROR_NOT_PREPARED), "TESSERA_ERROR_NOT_PREPARED");
    EXPECT_STREQ(tessera_status_string(TESSERA_ERROR_OUT_OF_MEMORY), "TESSERA_ERROR_OUT_OF_MEMORY");
    EXPECT_STREQ(tessera_status_string(static_cast<tessera_status>(7)), "unknown status");
    EXPECT_STREQ(tessera_status_string(static_cast<tessera_status>(-1)), "unknown status");
}

TEST(Status, VersionIsThreeNumbers) {
    int major, minor, patch, length = 0;
    ASSERT_EQ(sscanf(tessera_version(), "%d.%d.%d%n", &major, &minor, &patch, &length), 3);
    EXPECT_EQ(tessera_version()[length], 0);
}

TEST(LastError, BelongsToItsThread) {
    tessera_fmha_dtype dtype;
    ASSERT_EQ(tessera_fmha_dtype_from_string("here", &dtype), TESSERA_ERROR_INVALID_ARGUMENT);
    std::thread([] {
        EXPECT_STREQ(tessera_last_error(), "");
        tessera_mask mask;
        EXPECT_EQ(tessera_mask_from_string("there", &mask), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find("there"), std::string::npos);
    }).join();
    EXPECT_NE(std::string(tessera_last_error()).find("here\""), std::string::npos);
}

TEST(LastError, StaysAfterSuccess) {
    tessera_fmha_dtype dtype;
    ASSERT_EQ(tessera_fmha_dtype_from_string("x", &dtype), TESSERA_ERROR_INVALID_ARGUMENT);
    ASSERT_EQ(tessera_fmha_dtype_from_string("fp16", &dtype), TESSERA_SUCCESS);
    EXPECT_STREQ(tessera_last_error(), "dtype \"x\" is unknown: fp32, fp16, bf16, fp8, fp8bf16, fp8fp32, mxfp8, mxfp4");
}

TEST(LastError, MayHoldItself) {
    tessera_fail(TESSERA_ERROR_DEVICE, "inner");
    EXPECT_EQ(tessera_fail(TESSERA_ERROR_WORKSPACE, "outer: %s", tessera_last_error()), TESSERA_ERROR_WORKSPACE);
    EXPECT_STREQ(tessera_last_error(), "outer: inner");
}

TEST(LastError, LongLinesAreCut) {
    const std::string text(5000, 'x');
    tessera_fail(TESSERA_ERROR_DEVICE, "%s", text.c_str());
    EXPECT_EQ(std::string(tessera_last_error()), std::string(1023, 'x'));
}

struct Lines {
    std::vector<std::pair<tessera_log_level, std::string>> all;
    static void take(void *user, tessera_log_level level, const char *line) {
        static_cast<Lines *>(user)->all.emplace_back(level, line);
    }
};

class Log : public ::testing::Test {
  protected:
    ~Log() override { tessera_set_log(nullptr, nullptr, TESSERA_LOG_ERROR); }
    Lines lines;
};

TEST_F(Log, TakesItsLevelAndBelow) {
    tessera_set_log(Lines::take, &lines, TESSERA_LOG_WARNING);
    tessera_log(TESSERA_LOG_INFO, "info");
    tessera_log(TESSERA_LOG_WARNING, "warning %d", 5);
    tessera_fail(TESSERA_ERROR_DEVICE, "error");
    ASSERT_EQ(lines.all.size(), 2u);
    EXPECT_EQ(lines.all[0], std::make_pair(TESSERA_LOG_WARNING, std::string("warning 5")));
    EXPECT_EQ(lines.all[1], std::make_pair(TESSERA_LOG_ERROR, std::string("error")));
}

TEST_F(Log, NullDropsThem) {
    tessera_set_log(Lines::take, &lines, TESSERA_LOG_INFO);
    tessera_set_log(nullptr, nullptr, TESSERA_LOG_INFO);
    tessera_fail(TESSERA_ERROR_DEVICE, "error");
    EXPECT_TRUE(lines.all.empty());
}

TEST_F(Log, MayBeReplacedWhileOthersLog) {
    std::atomic<bool> stop{false};
    struct Pair {
        static void take(void *user, tessera_log_level, const char *) { EXPECT_EQ(*static_cast<int *>(user), 1); }
        static void take_other(void *user, tessera_log_level, const char *) { EXPECT_EQ(*static_cast<int *>(user), 2); }
    };
    int one = 1, two = 2;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&] {
            while (!stop) tessera_log(TESSERA_LOG_INFO, "line");
        });
    for (int i = 0; i < 20000; i++)
        if (i % 2)
            tessera_set_log(Pair::take, &one, TESSERA_LOG_INFO);
        else
            tessera_set_log(Pair::take_other, &two, TESSERA_LOG_INFO);
    stop = true;
    for (auto &thread : threads) thread.join();
}

template <typename Kind>
void expect_words(const std::vector<const char *> &words, tessera_status (*from)(const char *, Kind *),
                  const char *(*to)(Kind)) {
    for (size_t i = 0; i < words.size(); i++) {
        Kind value{};
        EXPECT_EQ(from(words[i], &value), TESSERA_SUCCESS);
        EXPECT_EQ(static_cast<size_t>(value), i);
        EXPECT_STREQ(to(static_cast<Kind>(i)), words[i]);
    }
    EXPECT_EQ(to(static_cast<Kind>(words.size())), nullptr);
    EXPECT_EQ(to(static_cast<Kind>(-1)), nullptr);
    Kind value = static_cast<Kind>(1);
    for (const char *text : {"", "FP32", "fp", " no", "unknown"}) {
        EXPECT_EQ(from(text, &value), TESSERA_ERROR_INVALID_ARGUMENT) << text;
        for (const char *word : words) EXPECT_NE(std::string(tessera_last_error()).find(word), std::string::npos);
    }
    EXPECT_EQ(from(nullptr, &value), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(static_cast<int>(value), 1);
    EXPECT_EQ(from(words[0], nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
}

TEST(Kinds, Words) {
    expect_words<tessera_fmha_dtype>({"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "mxfp8", "mxfp4"},
                                     tessera_fmha_dtype_from_string, tessera_fmha_dtype_string);
    expect_words<tessera_mask>({"no", "top_left", "bottom_right", "generic"}, tessera_mask_from_string,
                               tessera_mask_string);
    expect_words<tessera_bias>({"no", "bias", "alibi"}, tessera_bias_from_string, tessera_bias_string);
    expect_words<tessera_qscale>({"no", "pt", "bs", "kvbs", "mx", "th"}, tessera_qscale_from_string,
                                 tessera_qscale_string);
    expect_words<tessera_type>(
        {"fp32", "fp16", "bf16", "e4m3", "e2m1", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0", "int8", "int4", "int32"},
        tessera_type_from_string, tessera_type_string);
    expect_words<tessera_target>({"portable", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16", "armv8-a",
                                  "gfx90a", "gfx942", "gfx950", "sm_90a", "x86-64-v4-amx", "x86-64-v4-fp16",
                                  "x86-64-v4-vp2intersect"},
                                 tessera_target_from_string, tessera_target_string);
}

TEST(Kinds, TypesHaveBits) {
    const int bits[] = {32, 16, 16, 8, 4, 8, 8, 8, 8, 8, 4, 32, 0};
    for (int type = 0; type <= TESSERA_TYPE_COUNT; type++)
        EXPECT_EQ(tessera_type_bits(static_cast<tessera_type>(type)), bits[type]) << type;
    EXPECT_EQ(tessera_type_bits(static_cast<tessera_type>(-1)), 0);
}

TEST(Text, CountsWhatDoesNotFit) {
    char buffer[8];
    tessera_text out = {buffer, sizeof buffer, 0};
    tessera_text_add(&out, "abc");
    EXPECT_STREQ(buffer, "abc");
    tessera_text_add(&out, "%d", 123456);
    EXPECT_STREQ(buffer, "abc1234");
    tessera_text_add(&out, "more");
    EXPECT_STREQ(buffer, "abc1234");
    EXPECT_EQ(out.used, 13u);
    tessera_text none = {nullptr, 0, 0};
    tessera_text_add(&none, "abc");
    EXPECT_EQ(none.used, 3u);
    tessera_text missing = {nullptr, 8, 0};
    tessera_text_add(&missing, "abc");
    EXPECT_EQ(missing.used, 3u);
}

} // namespace
