// SPDX-License-Identifier: MIT
// fmha_fwd on a device: what a caller calls.
#include "device.h"
#include "guard.h"
#include "ops/fmha_fwd_internal.h"
#include "verbose.h"

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

// What tessera_fmha_fwd() does before it launches.
static tessera_status check(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                            const struct tessera_fmha_fwd_call *call, size_t workspace, void *stream) {
    if (stream && !device->gpu)
        return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "stream is %p: NULL on the CPU", stream);
    TRY(tessera_fmha_fwd_check_memory(call, workspace > 0, device->gpu));
    if (device->gpu) TRY(tessera_fmha_fwd_cdna_check(instance, call));
    return workspace ? check_workspace(&call->args, workspace) : TESSERA_SUCCESS;
}

// Kernels of GPUs keep everything in registers and LDS.
static size_t workspace_of(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                           const struct tessera_fmha_fwd_call *call, int threads) {
    const int32_t units = tessera_device_get_facts(device)->compute_units;
    return tessera_fmha_fwd_is_gpu(instance) ? 0 : tessera_fmha_fwd_cpu_workspace(instance, call, units, threads);
}

tessera_status tessera_fmha_fwd_launch(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                                       const struct tessera_fmha_fwd_call *call, int threads, void *stream) {
    if (device->gpu) return tessera_fmha_fwd_cdna_launch(device, instance, call, stream);
    tessera_fmha_fwd_cpu_launch(instance, call, tessera_device_get_facts(device)->compute_units, threads);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, void *stream) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    const int threads = tessera_num_threads(), verbose = tessera_verbose();
    const tessera_status chosen = choose(device, traits, args, &call, &instance);
    if (verbose > 1 && (chosen == TESSERA_SUCCESS || chosen == TESSERA_ERROR_NO_INSTANCE))
        tessera_fmha_fwd_tell_reasons(&device->facts, &call);
    TRY(chosen);
    TRY(check(device, instance, &call, workspace_of(device, instance, &call, threads), stream));
    tessera_log(TESSERA_LOG_INFO, "fmha_fwd: %s", instance->base.name);
    return (verbose ? tessera_fmha_fwd_launch_told : tessera_fmha_fwd_launch)(device, instance, &call, threads, stream);
}

tessera_status tessera_fmha_fwd_check_on(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                         const tessera_fmha_fwd_args *args) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    TRY(choose(device, traits, args, &call, &instance));
    return check(device, instance, &call, 0, NULL);
}

tessera_status tessera_fmha_fwd_workspace_size(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                               const tessera_fmha_fwd_args *args, size_t *bytes) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    if (!bytes) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "bytes is NULL");
    TRY(choose(device, traits, args, &call, &instance));
    *bytes = workspace_of(device, instance, &call, tessera_num_threads());
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd_prepare(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                                        const tessera_fmha_fwd_args *args) {
    struct tessera_fmha_fwd_call call;
    const tessera_fmha_fwd_instance *instance;
    TRY(choose(device, traits, args, &call, &instance));
    if (device->gpu) return tessera_fmha_fwd_cdna_load(device, instance);
    tessera_start_threads();
    return TESSERA_SUCCESS;
}
