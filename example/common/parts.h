// SPDX-License-Identifier: MIT
// Work that threads share.
#ifndef EXAMPLE_PARTS_H
#define EXAMPLE_PARTS_H

#include <stdint.h>

typedef void example_part(void *context, int64_t begin, int64_t end);

// Does 0 to count - 1 in as many parts of equal size as there are threads. The caller is one of them, and does what a
// thread that cannot be started would.
void example_in_parts(int64_t count, int threads, example_part *part, void *context);

#endif
