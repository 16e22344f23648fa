// SPDX-License-Identifier: MIT
// Members of a JSON object, a line each.
#ifndef EXAMPLE_JSON_H
#define EXAMPLE_JSON_H

#include <stdint.h>
#include <stdio.h>

void example_put_number(FILE *file, const char *key, double value);
void example_put_integer(FILE *file, const char *key, int64_t value);
void example_put_bool(FILE *file, const char *key, int value);
void example_put_text(FILE *file, const char *key, const char *value);

#endif
