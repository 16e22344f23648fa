// SPDX-License-Identifier: MIT
// TESSERA_VERBOSE on a GPU: what the library waits for. test/example/test_verbose.py tests the lines about calls.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "fake_hip.h"
#include "fmha_fwd_fixture.h"

extern "C" {
#include "device/device.h"
#include "verbose.h"
}

namespace {

const std::string path = testing::TempDir() + "tessera_verbose_test." + std::to_string(getpid());

// The variables are set before anything reads them.
const int variables = setenv("TESSERA_VERBOSE", "1", 1) | setenv("TESSERA_VERBOSE_FILE", path.c_str(), 1);

std::string last_line() {
    std::ifstream file(path);
    std::string line, last;
    while (std::getline(file, line)) last = line;
    return last;
}

class Verbose : public ::testing::Test {
  protected:
    static void TearDownTestSuite() { std::remove(path.c_str()); }

    Verbose() : hip({"gfx942"}) {
        EXPECT_EQ(variables, 0);
        EXPECT_EQ(tessera_verbose(), 1);
        open();
        instance = make_instance("short_name", TESSERA_TARGET_GFX942, &all, 128, 64);
        instance.base.symbol = "kernel";
        instance.base.threads = 256;
        const std::string pack = make_pack("fmha_fwd", "gfx942", {{"kernel", "ELF kernel"}});
        EXPECT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS);
        call.dtype(TESSERA_FMHA_FP16, TESSERA_QSCALE_NONE);
    }
    ~Verbose() override { tessera_device_close(device); }

    void open() {
        tessera_device_close(device);
        EXPECT_EQ(tessera_device_open("hip:0", &device), TESSERA_SUCCESS) << tessera_last_error();
    }

    tessera_status launch(void *in) {
        tessera_fmha_fwd_call whole = call.whole();
        tessera_plan plan;
        hip.calls.clear();
        hip.launches.clear();
        const tessera_status planned =
            tessera_plan_call(&tessera_fmha_fwd_operation, &whole, &instance.base, &device->facts, 1, &plan);
        return planned ? planned : tessera_run_call_told(&tessera_fmha_fwd_operation, &whole, device, &plan, in);
    }

    // Expects the line of the call, which ends with a time or with other words.
    static void expect_line(const std::string &end) {
        const std::string begin = "tessera: fmha_fwd hip:0 short_name -prec=fp16 -mode=0 -b=2 -h=4 -h_k=2 -s=6 -s_k=10 "
                                  "-d=8 -d_v=16 ";
        EXPECT_TRUE(std::regex_match(last_line(), std::regex(begin + end))) << last_line();
    }

    FakeHip hip;
    Call call;
    const Served all;
    tessera_fmha_fwd_instance instance;
    tessera_device *device = nullptr;
    int object = 0;
    void *const stream = &object;
};

TEST_F(Verbose, CallsAreWaitedFor) {
    for (void *const in : {stream, static_cast<void *>(nullptr)}) {
        EXPECT_EQ(launch(in), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(hip.launches.size(), 1u);
        EXPECT_EQ(hip.calls["hipStreamSynchronize"], 2); // before the call and after it
        expect_line("[0-9]+\\.[0-9]{3} ms");
    }
}

TEST_F(Verbose, CapturesAreNot) {
    EXPECT_EQ(launch(stream), TESSERA_SUCCESS); // loads
    hip.capturing = stream;
    for (void *const in : {stream, static_cast<void *>(nullptr)}) {
        EXPECT_EQ(launch(in), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(hip.launches.size(), 1u);
        EXPECT_EQ(hip.calls["hipStreamSynchronize"], 0);
        EXPECT_EQ(hip.last_error, 0);
        expect_line("not timed");
    }
    EXPECT_EQ(launch(&hip), TESSERA_SUCCESS) << tessera_last_error(); // another stream
    EXPECT_EQ(hip.calls["hipStreamSynchronize"], 2);
}

TEST_F(Verbose, ADriverMayRefuseToWait) {
    hip.fails["hipStreamSynchronize"] = 900; // hipErrorStreamCaptureUnsupported
    EXPECT_EQ(launch(stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(hip.launches.size(), 1u);
    EXPECT_EQ(hip.last_error, 0);
    expect_line("not timed");
}

TEST_F(Verbose, OrHaveNothingToWaitWith) {
    std::vector<tessera_driver_entry> some;
    for (const tessera_driver_entry &entry : hip.entries())
        if (std::string(entry.name) != "hipStreamSynchronize") some.push_back(entry);
    ASSERT_EQ(tessera_set_driver("hip", some.data(), some.size()), TESSERA_SUCCESS);
    open();
    EXPECT_EQ(launch(stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(hip.launches.size(), 1u);
    expect_line("not timed");
}

TEST_F(Verbose, WhatFailsFailsAtOnce) {
    hip.fails["hipStreamSynchronize"] = 719; // hipErrorLaunchFailure
    EXPECT_EQ(launch(stream), TESSERA_ERROR_DEVICE);
    EXPECT_EQ(last_line().find("tessera: error hip:0: hipStreamSynchronize failed with"), 0u) << last_line();
}

} // namespace
