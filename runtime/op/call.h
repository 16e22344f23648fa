// SPDX-License-Identifier: MIT
// The functions of tessera/call.h, for any operation. `call` is the operation's call struct, which need not be
// initialized.
#ifndef TESSERA_RUNTIME_OP_CALL_H
#define TESSERA_RUNTIME_OP_CALL_H

#include "op/operation.h"
#include "tessera/call.h"

typedef struct tessera_operation tessera_op;

tessera_status tessera_call_run(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                                const void *args, void *stream);
tessera_status tessera_call_check(const tessera_op *op, void *call, const void *traits, const void *args);
tessera_status tessera_call_check_on(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                                     const void *args);
tessera_status tessera_call_select(const tessera_op *op, void *call, const tessera_table *table,
                                   const tessera_device_facts *facts, const void *traits, const void *args,
                                   void *out); // a pointer to an instance
size_t tessera_call_explain(const tessera_op *op, void *call, const tessera_table *table,
                            const tessera_device_facts *facts, const void *traits, const void *args,
                            tessera_explain how, char *text, size_t size);
size_t tessera_call_ck_name(const tessera_op *op, void *call, const tessera_instance *instance, const void *traits,
                            const void *args, char *text, size_t size);
tessera_status tessera_call_workspace_size(const tessera_op *op, void *call, const tessera_device *device,
                                           const void *traits, const void *args, size_t *bytes);
tessera_status tessera_call_prepare(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                                    const void *args);

// ---- what these are made of, for tests; but for the first, all take a call that was read

// Reads a caller's structs into the call and validates traits and sizes.
tessera_status tessera_read_call(const tessera_op *op, void *call, const void *traits, const void *args);
// Checks the call's memory, and the workspace's too if `with_workspace`.
tessera_status tessera_check_call(const tessera_op *op, const void *call, bool with_workspace, bool on_gpu);
// Plans the regions of workspace that the call needs with this row.
tessera_status tessera_plan_call(const tessera_op *op, void *call, const tessera_instance *row,
                                 const tessera_device_facts *facts, int threads, struct tessera_plan *plan);
// Adds the steps to the plan and runs it.
tessera_status tessera_run_call(const tessera_op *op, void *call, const tessera_device *device,
                                struct tessera_plan *plan, void *stream);
// Does the same and prints a line about it for TESSERA_VERBOSE. Waits for a GPU's call, unless the stream captures.
tessera_status tessera_run_call_told(const tessera_op *op, void *call, const tessera_device *device,
                                     struct tessera_plan *plan, void *stream);

#endif
