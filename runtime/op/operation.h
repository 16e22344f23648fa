// SPDX-License-Identifier: MIT
// An operation's own data and functions, which op/call.c uses for all of them. op/typed.h defines the public functions.
#ifndef TESSERA_RUNTIME_OP_OPERATION_H
#define TESSERA_RUNTIME_OP_OPERATION_H

#include "op/plan.h"
#include "tensors.h"

// A call is the operation's own struct with members `traits` and `args`: copies of the caller's structs, completed by
// defaults where the caller was compiled with an older header. Other members are the operation's affair. A call lasts
// as long as its plan, whose steps may point into it.
struct tessera_operation {
    const char *name;
    // Offsets in the call and sizes of both structs; a macro of op/typed.h fills these in.
    uint32_t traits, traits_bytes, args, args_bytes;
    uint32_t instance, workspace_ptr, workspace_size; // offsets in args
    void (*set_defaults)(void *call);                 // of traits and args

    struct tessera_kernels kernels; // the caller may name one of them; plans may choose from other tables too

    // Validates traits, sizes and numbers, reads no memory, and fills in the rest of the call.
    tessera_status (*check_sizes)(void *call);
    // Adds every tensor of the call for the checks that all operations share; may do further checks. Reads tensors'
    // contents only where `on_gpu` is false.
    tessera_status (*check_memory)(const void *call, bool on_gpu, struct tessera_tensors *all);
    // Checks limits of the chosen instance that other devices do not have; or NULL.
    tessera_status (*check_row)(const void *call, const tessera_instance *row);
    // Adds regions of workspace, and chooses rows of other tables; or NULL. Reads only sizes.
    tessera_status (*add_regions)(void *call, struct tessera_plan *plan);
    // Adds steps to a plan whose regions have memory. On the CPU it may read the contents of tensors.
    tessera_status (*add_steps)(void *call, struct tessera_plan *plan);
    // Adds the call's sizes and traits as arguments of the operation's example program.
    void (*add_problem)(struct tessera_text *out, const void *call);
};

#endif
