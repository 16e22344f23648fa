// SPDX-License-Identifier: MIT
// What the drivers that tests put in place of real ones have in common: they count their calls, record launches, and
// fail when they are told to.
#ifndef TESSERA_TEST_FAKE_DRIVER_H
#define TESSERA_TEST_FAKE_DRIVER_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/device.h"

struct FakeLaunch {
    std::string symbol;
    int device; // the current one
    unsigned grid[3], block[3], lds_bytes;
    void *stream;
    std::vector<unsigned char> argument;
    unsigned cluster = 0;  // workgroups of one, where the launch says so
    bool overlaps = false; // it may begin before the launch before it has ended
};

// A loaded image, which is text that contains the symbols of its kernels.
struct FakeModule {
    std::string image;
    void *context; // that was current
};
struct FakeFunction {
    FakeModule *module;
    std::string symbol;
    unsigned most_lds; // that a launch may ask for
};

// A call of the library, which needs a function of the driver.
struct CallOf {
    const char *function;
    std::function<tessera_status(const tessera_device *device)> call;
    bool capturing = false; // in a capture of the fake's stream
};

// While this object exists, the library's devices of its kind are its own. There may be one of a kind at a time.
class FakeDriver {
  public:
    FakeDriver(const FakeDriver &) = delete;
    FakeDriver &operator=(const FakeDriver &) = delete;

    // Its functions by name, for tests that leave some out.
    virtual std::vector<tessera_driver_entry> entries() const = 0;

    std::map<std::string, int> fails; // function -> error that it returns
    std::map<std::string, int> calls; // function -> how often it was called
    std::vector<std::string> order;   // of the calls
    int units = 100;                  // compute units of the first, one more of each that follows
    void *capturing = nullptr;        // the stream that captures
    void *filled = nullptr;           // the stream that was last given a fill or a copy
    std::vector<FakeLaunch> launches;
    std::vector<std::string> images; // of loaded modules
    int memory = 0;                  // allocations that are not freed

    std::mutex mutex;
    int calls_of_all() const;

    // ---- for tests

    // Each call fails with the driver's text of the error 700, whose name is `error`, when its function does.
    // `as_before` then expects that nothing else is left of it.
    void expect_errors(const tessera_device *device, const std::vector<CallOf> &calls, const std::string &error,
                       const std::function<void(const char *function)> &as_before);
    // Each call fails on a device of a table without its function, and names that.
    void expect_needs(const char *device, const std::vector<CallOf> &calls, void *stream);

    // ---- for the functions of a driver

    int called(const char *name); // counts, and returns the error that the function is to return
    void *allocate(size_t bytes);
    void release(void *memory);
    void *load(const std::string &image, void *context);
    void unload(void *module);
    FakeFunction *find(void *module, const char *symbol, unsigned most_lds); // nullptr: the image has no such kernel

  protected:
    explicit FakeDriver(std::string kind);
    virtual ~FakeDriver();
    void begin(); // its functions are called from now on

  private:
    std::string kind;
    std::vector<std::unique_ptr<FakeFunction>> functions;
};

// A pack as codegen/pack.py writes it. Code objects may be any text that contains the kernel's symbol.
std::string make_pack(const std::string &op, const std::string &target,
                      const std::map<std::string, std::string> &objects, bool compress = false);

#endif
