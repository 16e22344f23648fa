// SPDX-License-Identifier: MIT
// CK's test matrices of fmha_bwd and similar ones: one list, for CPUs and for GPUs. Shapes are smaller where the
// reference would take long.
#ifndef TESSERA_TEST_FMHA_BWD_SUITES_H
#define TESSERA_TEST_FMHA_BWD_SUITES_H

#include "case.h"

std::vector<Suite> suites(const Place &on);

#endif
