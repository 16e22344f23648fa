// SPDX-License-Identifier: MIT
// What the programs share: they end with status 1 and a line that says what was wrong.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define HIP(call)                                                                                                      \
    do {                                                                                                               \
        const hipError_t error_ = (call);                                                                              \
        if (error_ != hipSuccess) {                                                                                    \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(error_));                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                        \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

// Memory of the device that holds a copy of a vector.
template <class T> class Buffer {
  public:
    explicit Buffer(const std::vector<T> &values) : count_(values.size()) {
        HIP(hipMalloc(&data_, count_ * sizeof(T)));
        HIP(hipMemcpy(data_, values.data(), count_ * sizeof(T), hipMemcpyHostToDevice));
    }
    explicit Buffer(size_t count) : count_(count) { HIP(hipMalloc(&data_, count * sizeof(T))); }
    ~Buffer() { (void)hipFree(data_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    T *data() const { return data_; }
    std::vector<T> fetch() const {
        std::vector<T> values(count_);
        HIP(hipMemcpy(values.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost));
        return values;
    }

  private:
    T *data_ = nullptr;
    size_t count_;
};
