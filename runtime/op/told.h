// SPDX-License-Identifier: MIT
// A launch that TESSERA_VERBOSE tells of.
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

// Between these two the launch is made. A GPU's call is waited for, and so is what its stream holds before, unless the
// stream captures; its code is loaded before the clock starts. The second prints a line; `problem` says the call.
tessera_status tessera_told_begin(struct tessera_told *told);
tessera_status tessera_told_end(struct tessera_told *told, const char *problem);

#endif
