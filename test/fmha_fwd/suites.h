// SPDX-License-Identifier: MIT
// CK's test matrices of fmha_fwd and similar ones: one list, for CPUs and for GPUs.
#ifndef TESSERA_TEST_FMHA_FWD_SUITES_H
#define TESSERA_TEST_FMHA_FWD_SUITES_H

#include "case.h"
#include "suite.h"

// Data types, with arguments that they require.
extern const Axis precs;

// Head dims that kernels are made for, and the orders of v, whose rows begin at multiples of 16 bytes.
extern const Axis kernel_hdims, vlayouts;

std::vector<Suite> suites(const Place &on);

#endif
