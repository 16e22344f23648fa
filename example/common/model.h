// SPDX-License-Identifier: MIT
// What the clock of a simulated GPU says of a run: modelled, not measured.
#ifndef EXAMPLE_MODEL_H
#define EXAMPLE_MODEL_H

#include <stdio.h>

#include "result.h"

void example_print_model(const example_result *result, int in_microseconds); // a part of the line
void example_print_profile(const example_result *result);                    // lines of their own
void example_put_model(FILE *file, const example_result *result);            // the last member of the JSON

#endif
