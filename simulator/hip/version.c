// SPDX-License-Identifier: MIT
// The version of the HIP runtime that this library stands in for. This file is compiled once for each.
#include "state.h"

#ifndef TESSERA_HIP_MAJOR
#error "TESSERA_HIP_MAJOR: 5, 6 or 7"
#endif

// Major, minor and patch of a release of that line: 5.2 (Debian 12's), 6.3 and 7.0.
enum { VERSION_5 = 50221153, VERSION_6 = 60342134, VERSION_7 = 70051831 };

const int tessera_hip_major = TESSERA_HIP_MAJOR;
const int tessera_hip_version = TESSERA_HIP_MAJOR == 5 ? VERSION_5 : TESSERA_HIP_MAJOR == 6 ? VERSION_6 : VERSION_7;
