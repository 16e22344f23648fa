// SPDX-License-Identifier: MIT
// A call of any operation: reads and checks it, chooses its instance, plans it and runs it.
#include "op/call.h"

#include "guard.h"
#include "integers.h"
#include "op/told.h"
#include "verbose.h"

static const void *args_of(const tessera_op *op, const void *call) { return (const char *)call + op->args; }

static const tessera_instance *wanted_by(const tessera_op *op, const void *call) {
    const tessera_instance *wanted;
    memcpy(&wanted, (const char *)args_of(op, call) + op->instance, sizeof wanted);
    return wanted;
}

static void *workspace_of(const tessera_op *op, const void *call, size_t *bytes) {
    void *memory;
    memcpy(&memory, (const char *)args_of(op, call) + op->workspace_ptr, sizeof memory);
    memcpy(bytes, (const char *)args_of(op, call) + op->workspace_size, sizeof *bytes);
    return memory;
}

// ---- reading and checking

static bool is_of_size(const void *caller, size_t bytes) { return caller && memcmp(caller, &bytes, sizeof bytes) == 0; }

tessera_status tessera_read_call(const tessera_op *op, void *call, const void *traits, const void *args) {
    // Structs that are copied whole overwrite all defaults.
    if (!is_of_size(traits, op->traits_bytes) || !is_of_size(args, op->args_bytes)) op->set_defaults(call);
    TRY(tessera_read_struct("traits", traits, (char *)call + op->traits, op->traits_bytes));
    TRY(tessera_read_struct("args", args, (char *)call + op->args, op->args_bytes));
    return op->check_sizes(call);
}

tessera_status tessera_check_call(const tessera_op *op, const void *call, bool with_workspace, bool on_gpu) {
    static const struct tessera_axis none = {NULL, 1, 0};
    struct tessera_tensors all;
    size_t bytes;
    const void *const workspace = workspace_of(op, call, &bytes);
    all.count = 0;
    TRY(op->check_memory(call, on_gpu, &all));
    if (with_workspace && workspace) {
        const int64_t count = tessera_min((int64_t)(bytes & INT64_MAX), INT64_MAX / 8);
        tessera_add_tensor(&all, "workspace_ptr", workspace, 8, true, none, none, none, count);
    }
    return tessera_check_tensors(&all);
}

// ---- planning and running

static void ask(const tessera_op *op, const void *call, const tessera_table *table, const tessera_device_facts *facts,
                struct tessera_request *r) {
    r->kernels = &op->kernels;
    r->table = table;
    r->traits = (const char *)call + op->traits;
    r->call = call;
    r->wanted = wanted_by(op, call);
    tessera_ask(r, facts);
}

static tessera_status plan_chosen(const tessera_op *op, void *call, const struct tessera_choice *chosen,
                                  const tessera_device_facts *facts, int threads, struct tessera_plan *plan) {
    tessera_begin_plan(plan, facts, op->name, chosen, threads);
    return op->add_regions ? op->add_regions(call, plan) : TESSERA_SUCCESS;
}

tessera_status tessera_plan_call(const tessera_op *op, void *call, const tessera_instance *row,
                                 const tessera_device_facts *facts, int threads, struct tessera_plan *plan) {
    struct tessera_request r;
    ask(op, call, op->kernels.get_table(), facts, &r);
    return plan_chosen(op, call, &(struct tessera_choice){row, tessera_cut_by(row, &r)}, facts, threads, plan);
}

// Validates traits and sizes, chooses the instance, and plans the regions of the workspace.
static tessera_status plan_on(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                              const void *args, struct tessera_plan *plan) {
    struct tessera_choice chosen;
    GUARD(device, "device is NULL: tessera_device_open() opens one");
    TRY(tessera_read_call(op, call, traits, args));
    struct tessera_request r;
    ask(op, call, op->kernels.get_table(), &device->facts, &r);
    TRY(tessera_choose(&r, &chosen));
    return plan_chosen(op, call, &chosen, &device->facts, tessera_num_threads(), plan);
}

// Checks the call's memory, but for the size of the workspace.
static tessera_status check_on(const tessera_op *op, const void *call, const tessera_device *device,
                               const struct tessera_plan *plan, bool with_workspace) {
    TRY(tessera_check_call(op, call, with_workspace && tessera_plan_workspace(plan) > 0, device->gpu));
    return op->check_row ? op->check_row(call, plan->row) : TESSERA_SUCCESS;
}

tessera_status tessera_run_call(const tessera_op *op, void *call, const tessera_device *device,
                                struct tessera_plan *plan, void *stream) {
    size_t bytes;
    intptr_t previous = 0;
    plan->device = device;
    tessera_place_regions(plan, workspace_of(op, call, &bytes));
    TRY(tessera_device_enter(device, &previous));
    tessera_status status = op->add_steps(call, plan);
    if (status == TESSERA_SUCCESS) status = tessera_run_plan(device, plan, stream);
    return tessera_device_leave(device, previous, status);
}

tessera_status tessera_run_call_told(const tessera_op *op, void *call, const tessera_device *device,
                                     struct tessera_plan *plan, void *stream) {
    struct tessera_told told = {.operation = op->name, .device = device, .plan = plan, .stream = stream};
    char text[512];
    struct tessera_text problem = {text, sizeof text, 0};
    op->add_problem(&problem, call);
    if (!device->gpu) tessera_text_add(&problem, " -threads=%d", plan->threads);
    TRY(tessera_told_begin(&told));
    TRY(tessera_run_call(op, call, device, plan, stream));
    return tessera_told_end(&told, text);
}

// ---- the public functions

tessera_status tessera_call_run(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                                const void *args, void *stream) {
    struct tessera_plan plan;
    size_t bytes;
    const int verbose = tessera_verbose();
    const tessera_status planned = plan_on(op, call, device, traits, args, &plan);
    if (verbose > 1 && (planned == TESSERA_SUCCESS || planned == TESSERA_ERROR_NO_INSTANCE)) {
        struct tessera_request r;
        ask(op, call, op->kernels.get_table(), &device->facts, &r);
        tessera_tell_reasons(&r);
    }
    TRY(planned);
    GUARD(!stream || device->gpu, "stream is %p: NULL on the CPU", stream);
    TRY(check_on(op, call, device, &plan, true));
    const void *const workspace = workspace_of(op, call, &bytes);
    TRY(tessera_check_workspace(&plan, workspace, bytes));
    tessera_log(TESSERA_LOG_INFO, "%s: %s", op->name, plan.row->name);
    return (verbose ? tessera_run_call_told : tessera_run_call)(op, call, device, &plan, stream);
}

tessera_status tessera_call_check(const tessera_op *op, void *call, const void *traits, const void *args) {
    TRY(tessera_read_call(op, call, traits, args));
    return tessera_check_call(op, call, false, false);
}

tessera_status tessera_call_check_on(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                                     const void *args) {
    struct tessera_plan plan;
    TRY(plan_on(op, call, device, traits, args, &plan));
    return check_on(op, call, device, &plan, false);
}

tessera_status tessera_call_workspace_size(const tessera_op *op, void *call, const tessera_device *device,
                                           const void *traits, const void *args, size_t *bytes) {
    struct tessera_plan plan;
    GUARD(bytes, "bytes is NULL");
    TRY(plan_on(op, call, device, traits, args, &plan));
    *bytes = tessera_plan_workspace(&plan);
    return TESSERA_SUCCESS;
}

tessera_status tessera_call_prepare(const tessera_op *op, void *call, const tessera_device *device, const void *traits,
                                    const void *args) {
    struct tessera_plan plan;
    TRY(plan_on(op, call, device, traits, args, &plan));
    if (device->gpu) return tessera_load_plan(device, &plan);
    tessera_start_threads();
    return TESSERA_SUCCESS;
}

// ---- public functions that take any device's facts

static tessera_status read_request(const tessera_op *op, void *call, const tessera_table *table,
                                   const tessera_device_facts *caller, const void *traits, const void *args,
                                   tessera_device_facts *facts, struct tessera_request *r) {
    TRY(tessera_read_facts(table, caller, facts));
    TRY(tessera_read_call(op, call, traits, args));
    ask(op, call, table, facts, r);
    return TESSERA_SUCCESS;
}

// Whether the instances of the call's other steps are there, too.
static tessera_status check_steps(const tessera_op *op, void *call, const struct tessera_choice *chosen,
                                  const tessera_device_facts *facts, const tessera_table *table) {
    struct tessera_plan plan;
    if (table != op->kernels.get_table()) return TESSERA_SUCCESS; // steps are known of the library's own rows
    return plan_chosen(op, call, chosen, facts, 1, &plan);
}

tessera_status tessera_call_select(const tessera_op *op, void *call, const tessera_table *table,
                                   const tessera_device_facts *caller, const void *traits, const void *args,
                                   void *out) {
    tessera_device_facts facts;
    struct tessera_request r;
    struct tessera_choice chosen;
    GUARD(out, "out is NULL");
    TRY(read_request(op, call, table, caller, traits, args, &facts, &r));
    TRY(tessera_choose(&r, &chosen));
    TRY(check_steps(op, call, &chosen, &facts, table));
    memcpy(out, &chosen.row, sizeof chosen.row); // *out is a pointer to the operation's own instance type
    return TESSERA_SUCCESS;
}

size_t tessera_call_explain(const tessera_op *op, void *call, const tessera_table *table,
                            const tessera_device_facts *caller, const void *traits, const void *args,
                            tessera_explain how, char *text, size_t size) {
    tessera_device_facts facts;
    struct tessera_request r;
    struct tessera_choice chosen;
    struct tessera_text out = {text, size, 0};
    tessera_text_add(&out, "%s", "");
    if (read_request(op, call, table, caller, traits, args, &facts, &r) != TESSERA_SUCCESS) {
        tessera_text_add(&out, "%s\n", tessera_last_error());
        return out.used + 1;
    }
    tessera_add_explanation(&out, &r, how == TESSERA_EXPLAIN_INSTANCES);
    if (tessera_choose(&r, &chosen) == TESSERA_SUCCESS &&
        check_steps(op, call, &chosen, &facts, table) != TESSERA_SUCCESS)
        tessera_text_add(&out, "but a step has none: %s\n", tessera_last_error());
    return out.used + 1;
}

static tessera_status add_ck_name(const tessera_op *op, void *call, const tessera_instance *instance,
                                  const void *traits, const void *args, struct tessera_text *out) {
    TRY(tessera_read_call(op, call, traits, args));
    GUARD(instance, "instance is NULL: tessera_%s_select() gives one", op->name);
    struct tessera_request r;
    ask(op, call, op->kernels.get_table(), &(tessera_device_facts){0}, &r);
    tessera_add_ck_name(out, &r, instance);
    return TESSERA_SUCCESS;
}

size_t tessera_call_ck_name(const tessera_op *op, void *call, const tessera_instance *instance, const void *traits,
                            const void *args, char *text, size_t size) {
    struct tessera_text out = {text, size, 0};
    if (add_ck_name(op, call, instance, traits, args, &out) != TESSERA_SUCCESS)
        tessera_text_add(&out, "%s", tessera_last_error());
    return out.used + 1;
}
