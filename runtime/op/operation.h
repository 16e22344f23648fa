// SPDX-License-Identifier: MIT
// What an operation adds to what op/call.c does for all of them. op/typed.h defines its public functions.
#ifndef TESSERA_RUNTIME_OP_OPERATION_H
#define TESSERA_RUNTIME_OP_OPERATION_H

#include "op/plan.h"
#include "tensors.h"

// A call is a struct of the operation's own with the members `traits` and `args`, which hold what the caller gave,
// whole whatever header he was compiled with. The rest of it is the operation's. It lasts as long as its plan: steps
// may point into it.
struct tessera_operation {
    const char *name;
    // Where the call holds what the caller gave; a macro of op/typed.h fills these in.
    uint32_t traits, traits_bytes, args, args_bytes;
    uint32_t instance, workspace_ptr, workspace_size; // members of args
    void (*set_defaults)(void *call);                 // of traits and args

    struct tessera_kernels kernels; // of which a caller may name one; plans may choose from others too

    // Validates traits, sizes and numbers, reads no memory, and fills in the rest of the call.
    tessera_status (*check_sizes)(void *call);
    // Adds every tensor of the call, for checks that are the same for all; may check some itself. Whatever is in memory
    // is read only where `on_gpu` is not set.
    tessera_status (*check_memory)(const void *call, bool on_gpu, struct tessera_tensors *all);
    // What the chosen instance needs beyond what every device does; or NULL.
    tessera_status (*check_row)(const void *call, const tessera_instance *row);
    // Adds regions of workspace, and chooses rows of other tables; or NULL. Reads only sizes.
    tessera_status (*add_regions)(void *call, struct tessera_plan *plan);
    // Adds steps to a plan whose regions have memory. What is to be read from memory may be read on the CPU.
    tessera_status (*add_steps)(void *call, struct tessera_plan *plan);
    // The problem, as the operation's program spells it.
    void (*add_problem)(struct tessera_text *out, const void *call);
};

#endif
