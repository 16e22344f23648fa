// SPDX-License-Identifier: MIT
// A call that TESSERA_VERBOSE times and prints.
#ifndef TESSERA_RUNTIME_OP_TOLD_H
#define TESSERA_RUNTIME_OP_TOLD_H

#include "op/plan.h"

struct tessera_told {
    const char *operation;
    const tessera_device *device;
    const struct tessera_plan *plan;
    void *stream;
    bool timed;
    double start; // milliseconds
};

// The call runs between these two. On a GPU the first loads the code and waits for the stream before the clock starts,
// and the second waits for the call, unless the stream captures. The second prints the line with the text `problem`.
tessera_status tessera_told_begin(struct tessera_told *told);
tessera_status tessera_told_end(struct tessera_told *told, const char *problem);

#endif
