// SPDX-License-Identifier: MIT
// Work that threads share.
#ifndef TEST_REFERENCE_PARTS_H
#define TEST_REFERENCE_PARTS_H

#include <stdint.h>

enum { MOST_PARTS = 64 };

// Part number n is of begin to end - 1.
typedef void part_of_work(void *context, int n, int64_t begin, int64_t end);

// Does 0 to count - 1 in as many parts of equal size as there are threads, at most MOST_PARTS and at least one. The
// caller is one of them, and does what a thread that cannot be started would.
void do_in_parts(int64_t count, int threads, part_of_work *part, void *context);

#endif
