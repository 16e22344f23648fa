// SPDX-License-Identifier: MIT
// fmha_fwd on a device: what a caller calls.
#include "fmha_fwd_internal.h"

// Validates what needs no memory, and chooses the instance.
static tessera_status choose(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                             const tessera_fmha_fwd_args *args, struct tessera_fmha_fwd_call *call,
                             const tessera_fmha_fwd_instance **instance) {
    if (!device) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "device is NULL: tessera_device_open() opens one");
    const tessera_status status = tessera_fmha_fwd_read_sizes(traits, args, call);
    if (status != TESSERA_SUCCESS) return status;
    return tessera_fmha_fwd_choose(tessera_fmha_fwd_get_table(), tessera_device_get_facts(device), call, instance);
}

static tessera_status check_workspace(const tessera_fmha_fwd_args *args, size_t needed) {
    if (!args->workspace_ptr)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace_ptr is NULL: this call needs %zu bytes", needed);
    if ((uintptr_t)args->workspace_ptr % 64 != 0)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace_ptr is %p: must be aligned to 64 bytes",
                            args->workspace_ptr);
    if (args->workspace_size < needed)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace_size is %zu: this call needs %zu", args->workspace_size,
                            needed);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, void *stream) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    const int threads = tessera_num_threads();
    tessera_status status = choose(device, traits, args, &call, &instance);
    if (status == TESSERA_SUCCESS && stream)
        status = tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "stream is %p: NULL on the CPU", stream);
    if (status == TESSERA_SUCCESS) status = tessera_fmha_fwd_check_memory(&call, true);
    if (status == TESSERA_SUCCESS)
        status = check_workspace(&call.args, tessera_fmha_fwd_cpu_workspace(instance, &call, threads));
    if (status != TESSERA_SUCCESS) return status;
    tessera_log(TESSERA_LOG_INFO, "fmha_fwd: %s", instance->name);
    tessera_fmha_fwd_cpu_launch(instance, &call, threads);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd_workspace_size(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                               const tessera_fmha_fwd_args *args, size_t *bytes) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    if (!bytes) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "bytes is NULL");
    const tessera_status status = choose(device, traits, args, &call, &instance);
    if (status == TESSERA_SUCCESS) *bytes = tessera_fmha_fwd_cpu_workspace(instance, &call, tessera_num_threads());
    return status;
}

tessera_status tessera_fmha_fwd_prepare(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                        const tessera_fmha_fwd_args *args) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    const tessera_status status = choose(device, traits, args, &call, &instance);
    if (status == TESSERA_SUCCESS) tessera_start_threads();
    return status;
}
