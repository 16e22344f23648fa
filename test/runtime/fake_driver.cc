// SPDX-License-Identifier: MIT
#include "fake_driver.h"

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
