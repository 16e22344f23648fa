// SPDX-License-Identifier: MIT
// A HIP runtime of a few lines.
#ifndef TESSERA_TEST_FAKE_HIP_H
#define TESSERA_TEST_FAKE_HIP_H

#include "fake_driver.h"

// While this object exists, the library's "hip:N" are its devices.
class FakeHip : public FakeDriver {
  public:
    explicit FakeHip(std::vector<std::string> archs, bool with_r0600 = true);
    ~FakeHip() override;
    std::vector<tessera_driver_entry> entries() const override;

    std::vector<std::string> archs;
    bool with_r0600;
    int last_error = 0; // what hipGetLastError returns and forgets
    int current = 0;
};

#endif
