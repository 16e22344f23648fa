// SPDX-License-Identifier: MIT
// NVIDIA's driver in a few lines.
#ifndef TESSERA_TEST_FAKE_CUDA_H
#define TESSERA_TEST_FAKE_CUDA_H

#include "fake_driver.h"

struct FakeContext {
    int device;
    int users; // of a primary one
};

// The arguments of cuTensorMapEncodeTiled().
struct FakeTensorMap {
    void *out, *base;
    int element, interleave, swizzle, promotion, fill;
    std::vector<uint64_t> sizes, strides;
    std::vector<uint32_t> box, element_strides;
};

// While this object exists, the library's "cuda:N" are its devices, one for each compute capability: 90 is 9.0.
class FakeCuda : public FakeDriver {
  public:
    explicit FakeCuda(std::vector<int> capabilities);
    ~FakeCuda() override;
    std::vector<tessera_driver_entry> entries() const override;

    std::vector<int> capabilities;
    std::vector<FakeContext> primary; // of each device
    int cubin_error = 0;              // what loading an image returns that begins as ELF files do,
    int ptx_error = 0;                // and one that does not, with a line in the log
    int version = 13010;
    size_t argument_bytes = 0;       // of every kernel, as images say
    bool captures_elsewhere = false; // a stream that is not asked about captures, for all threads
    std::vector<FakeTensorMap> maps;

    // The calling thread's contexts, the current one last.
    static std::vector<FakeContext *> &stack();
    static int &capture_mode(); // of the calling thread
};

#endif
