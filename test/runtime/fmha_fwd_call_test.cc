// SPDX-License-Identifier: MIT
// The public functions with this build's own table: what they refuse beyond fmha_fwd_check_test.
#include <gtest/gtest.h>

#include <cmath>

#include "fmha_fwd_fixture.h"

namespace {

class Calls : public testing::Test {
  protected:
    Calls() {
        tessera_device_open("cpu", &device);
        size_t bytes = 0;
        tessera_fmha_fwd_workspace_size(device, &call.traits, &call.args, &bytes);
        workspace.resize(bytes / 8 + 8 + 8);
        call.args.workspace_ptr = aligned();
        call.args.workspace_size = bytes;
        for (size_t i = 0; i < call.memory.size(); i++) call.memory[i] = static_cast<unsigned char>(i * 7 % 61);
        before = call.memory;
    }
    ~Calls() override { tessera_device_close(device); }

    char *aligned() {
        char *begin = reinterpret_cast<char *>(workspace.data());
        return begin + (64 - reinterpret_cast<uintptr_t>(begin) % 64) % 64;
    }

    tessera_status run(void *stream = nullptr) { return tessera_fmha_fwd(device, &call.traits, &call.args, stream); }

    // The call fails with this status, its error line contains the words, and o is unchanged.
    void expect_refused(tessera_status status, tessera_status want, const std::string &words) {
        EXPECT_EQ(status, want);
        EXPECT_NE(std::string(tessera_last_error()).find(words), std::string::npos) << tessera_last_error();
        EXPECT_TRUE(call.memory == before) << "something was written";
    }

    Call call;
    tessera_device *device = nullptr;
    std::vector<uint64_t> workspace;
    std::vector<unsigned char> before;
};

TEST_F(Calls, Pass) {
    EXPECT_EQ(run(), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(tessera_fmha_fwd_prepare(device, &call.traits, &call.args), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_FALSE(call.memory == before);
}

TEST_F(Calls, NoDevice) {
    size_t bytes = 77;
    const char *const words = "device is NULL";
    expect_refused(tessera_fmha_fwd(nullptr, &call.traits, &call.args, nullptr), TESSERA_ERROR_INVALID_ARGUMENT, words);
    expect_refused(tessera_fmha_fwd_workspace_size(nullptr, &call.traits, &call.args, &bytes),
                   TESSERA_ERROR_INVALID_ARGUMENT, words);
    expect_refused(tessera_fmha_fwd_prepare(nullptr, &call.traits, &call.args), TESSERA_ERROR_INVALID_ARGUMENT, words);
    EXPECT_EQ(bytes, 77u);
}

TEST_F(Calls, NoPlaceForTheAnswer) {
    expect_refused(tessera_fmha_fwd_workspace_size(device, &call.traits, &call.args, nullptr),
                   TESSERA_ERROR_INVALID_ARGUMENT, "bytes is NULL");
    expect_refused(tessera_fmha_fwd_select(tessera_device_get_facts(device), &call.traits, &call.args, nullptr),
                   TESSERA_ERROR_INVALID_ARGUMENT, "out is NULL");
}

TEST_F(Calls, Streams) { expect_refused(run(&call), TESSERA_ERROR_INVALID_ARGUMENT, "stream is"); }

TEST_F(Calls, Workspaces) {
    const tessera_fmha_fwd_args whole = call.args;
    call.args.workspace_ptr = nullptr;
    expect_refused(run(), TESSERA_ERROR_WORKSPACE, "workspace_ptr is NULL");
    call.args.workspace_ptr = aligned() + 32;
    expect_refused(run(), TESSERA_ERROR_WORKSPACE, "aligned to 64 bytes");
    call.args = whole;
    call.args.workspace_size--;
    expect_refused(run(), TESSERA_ERROR_WORKSPACE, "this call needs " + std::to_string(whole.workspace_size));
    call.args = whole;
    EXPECT_EQ(run(), TESSERA_SUCCESS);
}

TEST_F(Calls, WhatCheckRefusesIsNotRun) {
    call.args.scale_s = NAN;
    expect_refused(run(), TESSERA_ERROR_INVALID_ARGUMENT, "scale_s");
    call.args.scale_s = 1;
    call.args.o_ptr = const_cast<void *>(call.args.q_ptr);
    expect_refused(run(), TESSERA_ERROR_INVALID_ARGUMENT, "overlaps");
}

} // namespace
