// SPDX-License-Identifier: MIT
#include "fake_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

FakeDriver::FakeDriver(std::string kind_) : kind(std::move(kind_)) {}

FakeDriver::~FakeDriver() { tessera_set_driver(kind.c_str(), nullptr, 0); }

void FakeDriver::begin() {
    const auto all = entries();
    if (tessera_set_driver(kind.c_str(), all.data(), all.size()) != TESSERA_SUCCESS) abort();
}

int FakeDriver::calls_of_all() const {
    int count = 0;
    for (const auto &entry : calls) count += entry.second;
    return count;
}

void FakeDriver::expect_errors(const tessera_device *device, const std::vector<CallOf> &all, const std::string &error,
                               const std::function<void(const char *function)> &as_before) {
    for (const auto &one : all) {
        fails = {{one.function, 700}};
        EXPECT_EQ(one.call(device), TESSERA_ERROR_DEVICE) << one.function;
        EXPECT_EQ(tessera_last_error(), std::string(tessera_device_name(device)) + ": " + one.function +
                                            " failed with " + error + " (700): the fake was told to");
        as_before(one.function);
        fails.clear();
    }
}

void FakeDriver::expect_needs(const char *name, const std::vector<CallOf> &all, void *stream) {
    for (const auto &one : all) {
        std::vector<tessera_driver_entry> some;
        for (const auto &entry : entries())
            if (std::string(entry.name) != one.function) some.push_back(entry);
        ASSERT_EQ(tessera_set_driver(kind.c_str(), some.data(), some.size()), TESSERA_SUCCESS);
        tessera_device *device = nullptr;
        ASSERT_EQ(tessera_device_open(name, &device), TESSERA_SUCCESS) << tessera_last_error();
        capturing = one.capturing ? stream : nullptr;
        EXPECT_EQ(one.call(device), TESSERA_ERROR_DEVICE);
        EXPECT_EQ(tessera_last_error(),
                  std::string(name) + ": the table of tessera_set_driver() lacks the function " + one.function);
        tessera_device_close(device);
    }
}

int FakeDriver::called(const char *name) {
    calls[name]++;
    order.push_back(name);
    const auto failure = fails.find(name);
    return failure == fails.end() ? 0 : failure->second;
}

void *FakeDriver::allocate(size_t bytes) {
    memory++;
    return malloc(bytes);
}

void FakeDriver::release(void *address) {
    free(address);
    memory--;
}

void *FakeDriver::load(const std::string &image, void *context) {
    images.push_back(image);
    return new FakeModule{image, context};
}

void FakeDriver::unload(void *module) {
    auto *const m = static_cast<FakeModule *>(module);
    images.erase(std::find(images.begin(), images.end(), m->image));
    delete m;
}

FakeFunction *FakeDriver::find(void *module, const char *symbol, unsigned most_lds) {
    auto *const m = static_cast<FakeModule *>(module);
    if (m->image.find(symbol) == std::string::npos) return nullptr;
    functions.push_back(std::make_unique<FakeFunction>(FakeFunction{m, symbol, most_lds}));
    return functions.back().get();
}
