// SPDX-License-Identifier: MIT
// A HIP runtime of a few lines that counts its calls, records its launches, and fails when it is told to.
#ifndef TESSERA_TEST_FAKE_HIP_H
#define TESSERA_TEST_FAKE_HIP_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
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
};

// While this object exists, the library's "hip:N" are its devices. There may be one at a time.
class FakeHip {
  public:
    explicit FakeHip(std::vector<std::string> archs, bool with_r0600 = true);
    ~FakeHip();
    FakeHip(const FakeHip &) = delete;
    FakeHip &operator=(const FakeHip &) = delete;

    // Its functions by name, for tests that leave some out.
    std::vector<tessera_driver_entry> entries() const;

    std::vector<std::string> archs;
    bool with_r0600;
    std::map<std::string, int> fails; // function -> error that it returns
    std::map<std::string, int> calls; // function -> how often it was called
    int last_error = 0;               // what hipGetLastError returns and forgets
    int current = 0;
    int units = 100;           // compute units of the first, one more of each that follows
    void *capturing = nullptr; // the stream that captures
    void *filled = nullptr;    // the stream that was last given a fill or a copy
    std::vector<FakeLaunch> launches;
    std::vector<std::string> images; // of loaded modules
    int memory = 0;                  // allocations that are not freed

    std::mutex mutex;
    int calls_of_all() const;
};

// A pack as codegen/pack.py writes it. Code objects may be any text that contains the kernel's symbol.
std::string make_pack(const std::string &op, const std::string &target,
                      const std::map<std::string, std::string> &objects, bool compress = false);

#endif
