// SPDX-License-Identifier: MIT
// Conversions of halves, which compilers call where the host lacks such instructions; AMD's library exports them too.
#include "execute/float_formats.h"
#include "hip_api.h"

HIP_API uint16_t __gnu_f2h_ieee(float value) { return (uint16_t)sim_float_to_half(value); }

HIP_API float __gnu_h2f_ieee(uint16_t half) { return sim_half_to_float(half); }
