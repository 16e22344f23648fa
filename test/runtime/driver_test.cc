// SPDX-License-Identifier: MIT
// Where drivers come from, and the errors of those that are unusable.
#include <gtest/gtest.h>

#include <cstdlib>

#include "fake_hip.h"

namespace {

// Sets an environment variable while it lives.
class Variable {
  public:
    Variable(const char *name_, const char *value) : name(name_) {
        const char *const before = getenv(name_);
        had = before;
        if (before) old = before;
        set(value);
    }
    ~Variable() { set(had ? old.c_str() : nullptr); }
    Variable(const Variable &) = delete;
    Variable &operator=(const Variable &) = delete;

  private:
    void set(const char *value) { value ? setenv(name, value, 1) : unsetenv(name); }
    const char *name;
    std::string old;
    bool had = false;
};

std::string failure(const char *name, tessera_status expected = TESSERA_ERROR_DEVICE) {
    tessera_device *device = nullptr;
    EXPECT_EQ(tessera_device_open(name, &device), expected);
    EXPECT_EQ(device, nullptr);
    return tessera_last_error();
}

std::string opened(const char *name) {
    tessera_device *device = nullptr;
    if (tessera_device_open(name, &device) != TESSERA_SUCCESS) return tessera_last_error();
    const std::string as = tessera_device_name(device);
    tessera_device_close(device);
    return as;
}

TEST(Driver, NamedLibraryThatIsNotThere) {
    const Variable hip("TESSERA_HIP_LIBRARY", "/nonexistent/libamdhip64.so"),
        sim("TESSERA_SIM_LIBRARY", "/nonexistent");
    EXPECT_EQ(failure("hip:0").find("hip:0: TESSERA_HIP_LIBRARY=/nonexistent/libamdhip64.so cannot be opened: "), 0u)
        << tessera_last_error();
    EXPECT_EQ(failure("sim:gfx942").find("sim:gfx942: TESSERA_SIM_LIBRARY=/nonexistent cannot be opened: "), 0u)
        << tessera_last_error();
}

TEST(Driver, LibraryThatIsNone) {
    const Variable hip("TESSERA_HIP_LIBRARY", TESSERA_LIBRARY);
    EXPECT_EQ(failure("hip:0"), "hip:0: " TESSERA_LIBRARY " lacks the function hipInit");
}

TEST(Driver, TableThatLacksAFunction) {
    FakeHip hip({"gfx942"});
    const auto all = hip.entries();
    for (const auto &left_out : all) {
        std::vector<tessera_driver_entry> some;
        for (const auto &entry : all)
            if (entry.function != left_out.function) some.push_back(entry);
        ASSERT_EQ(tessera_set_driver("hip", some.data(), some.size()), TESSERA_SUCCESS);
        const std::string name = left_out.name;
        // One of the functions for properties is enough, and opening a device needs no stream.
        if (name.rfind("hipGetDeviceProperties", 0) == 0 || name == "hipStreamSynchronize" ||
            name.rfind("Async") != std::string::npos)
            EXPECT_EQ(opened("hip:0"), "hip:0") << name;
        else
            EXPECT_EQ(failure("hip:0"), "hip:0: the table of tessera_set_driver() lacks the function " + name);
    }
}

TEST(Driver, NeitherOfTheProperties) {
    FakeHip hip({"gfx942"}, false);
    auto some = hip.entries();
    ASSERT_STREQ(some.back().name, "hipGetDeviceProperties");
    some.pop_back();
    ASSERT_EQ(tessera_set_driver("hip", some.data(), some.size()), TESSERA_SUCCESS);
    EXPECT_EQ(failure("hip:0"), "hip:0: the table of tessera_set_driver() lacks the function hipGetDeviceProperties");
}

TEST(Driver, PropertiesOfBothLayouts) {
    for (const bool r0600 : {false, true}) {
        FakeHip hip({"gfx1100", "gfx90a:sramecc+:xnack-"}, r0600);
        EXPECT_EQ(opened("hip:1"), "hip:1");
        EXPECT_EQ(hip.calls["hipGetDevicePropertiesR0600"], r0600);
        EXPECT_EQ(hip.calls["hipGetDeviceProperties"], !r0600);
    }
}

TEST(Driver, UnknownLayout) {
    FakeHip hip({"Radeon"});
    EXPECT_EQ(failure("hip:0"), "hip:0: the table of tessera_set_driver() says that its architecture is \"Radeon\": a "
                                "version of the HIP runtime that this library does not know?");
}

TEST(Driver, NoComputeUnits) {
    FakeHip hip({"gfx942"});
    hip.units = 0;
    EXPECT_EQ(failure("hip:0"), "hip:0 has 0 compute units");
}

TEST(Driver, EveryCallThatFails) {
    for (const char *name : {"hipInit", "hipRuntimeGetVersion", "hipGetDeviceCount", "hipGetDevicePropertiesR0600",
                             "hipDeviceGetAttribute"}) {
        FakeHip hip({"gfx942"});
        hip.fails[name] = 719;
        EXPECT_EQ(failure("hip:0"),
                  std::string("hip:0: ") + name + " failed with hipErrorOfTheFake (719): the fake was told to");
        EXPECT_EQ(hip.last_error, 0) << "a host would take it for its own";
        hip.fails.clear();
        EXPECT_EQ(opened("hip:0"), "hip:0") << "a driver that failed is tried again";
    }
}

TEST(Driver, OneForAllDevices) {
    FakeHip hip({"gfx942", "gfx942"});
    EXPECT_EQ(opened("hip:0"), "hip:0");
    EXPECT_EQ(opened("hip:1"), "hip:1");
    EXPECT_EQ(hip.calls["hipInit"], 1);
}

TEST(Driver, DevicesOutliveTheTable) {
    FakeHip hip({"gfx942"});
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_device_open("hip:0", &device), TESSERA_SUCCESS);
    const Variable named("TESSERA_HIP_LIBRARY", "/nonexistent");
    ASSERT_EQ(tessera_set_driver("hip", nullptr, 0), TESSERA_SUCCESS);
    EXPECT_NE(failure("hip:0").find("/nonexistent"), std::string::npos);
    EXPECT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS);
    EXPECT_EQ(hip.calls["hipDeviceSynchronize"], 1);
    tessera_device_close(device);
}

TEST(Driver, RefusedTables) {
    const tessera_driver_entry no_name = {nullptr, [] {}}, no_function = {"hipInit", nullptr};
    const struct {
        const char *kind;
        const tessera_driver_entry *entries;
        size_t count;
        const char *says;
    } cases[] = {{nullptr, nullptr, 0, "kind is NULL: \"hip\", \"cuda\""},
                 {"vulkan", nullptr, 0, "kind is \"vulkan\": \"hip\", \"cuda\""},
                 {"hip", nullptr, 2, "entries is NULL: 2 of them"},
                 {"hip", &no_name, 1, "entries[0].name is NULL"},
                 {"hip", &no_function, 1, "entries[0].function, which is hipInit, is NULL"}};
    for (const auto &c : cases) {
        EXPECT_EQ(tessera_set_driver(c.kind, c.entries, c.count), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_STREQ(tessera_last_error(), c.says);
    }
}

} // namespace
