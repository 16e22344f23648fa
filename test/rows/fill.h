// SPDX-License-Identifier: MIT
// Inputs that are hard on rows.
#ifndef TESSERA_TEST_ROWS_FILL_H
#define TESSERA_TEST_ROWS_FILL_H

#include "case.h"

// Their names; "plain" leaves what the program fills in.
extern const Axis fills, fills_of_numbers;

void fill(rows_problem *problem, const std::string &name);

// Ids of which some are none of an expert.
void spoil_ids(rows_problem *problem);

#endif
