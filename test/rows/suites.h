// SPDX-License-Identifier: MIT
// CK's test matrices of the row operations and more of the kind: one list, for CPUs and for GPUs.
#ifndef TESSERA_TEST_ROWS_SUITES_H
#define TESSERA_TEST_ROWS_SUITES_H

#include "case.h"

std::vector<Suite> suites(const Place &on, const Operation &op);

// Every instance by its name, whatever the ranking says, at the ends of the columns that it serves.
Suite instances_suite(const Place &on, const Operation &op);

// What must be served on GPUs, and what must be refused there.
Suite landed_suite(const Place &on, const Operation &op);
Suite refused_suite(const Place &on, const Operation &op);

#endif
