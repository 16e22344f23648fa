// SPDX-License-Identifier: MIT
// Modules: loaded code objects and their kernels.
#include <stdlib.h>

#include "state.h"

hipError_t tessera_hip_module_open(struct hip_device *device, const void *image, size_t limit,
                                   struct hip_module **out) {
    struct hip_code code;
    hipError_t error = tessera_hip_find_code(device, image, limit, &code);
    if (error != hipSuccess) return error;
    struct hip_module *module = calloc(1, sizeof *module);
    if (!module) {
        free(code.unpacked);
        return hipErrorOutOfMemory;
    }
    module->device = device;
    pthread_mutex_init(&module->lock, NULL);
    const tessera_status status = tessera_sim_load(device->sim, code.image, code.bytes, &module->code);
    free(code.unpacked); // the simulator has its copy
    if (status != TESSERA_SUCCESS) {
        tessera_hip_say("%s", tessera_sim_last_error());
        error = status == TESSERA_ERROR_OUT_OF_MEMORY ? hipErrorOutOfMemory : hipErrorNoBinaryForGpu;
    } else if (!tessera_hip_handle_add(module, HIP_MODULE)) {
        error = hipErrorOutOfMemory;
    }
    if (error == hipSuccess)
        *out = module;
    else
        tessera_hip_module_close(module);
    return error;
}

void tessera_hip_module_close(struct hip_module *module) {
    tessera_hip_handle_remove(module);
    while (module->functions) {
        struct hip_function *function = module->functions;
        module->functions = function->next;
        tessera_hip_handle_remove(function);
        free(function);
    }
    tessera_sim_unload(module->code);
    pthread_mutex_destroy(&module->lock);
    free(module);
}

hipError_t tessera_hip_module_function(struct hip_module *module, const char *name, struct hip_function **out) {
    const tessera_sim_kernel *kernel = tessera_sim_kernel_find(module->code, name);
    if (!kernel) return hipErrorNotFound;
    pthread_mutex_lock(&module->lock);
    struct hip_function *function = module->functions;
    while (function && function->kernel != kernel) function = function->next;
    if (!function && (function = calloc(1, sizeof *function)) && tessera_hip_handle_add(function, HIP_FUNCTION)) {
        *function = (struct hip_function){kernel, tessera_sim_kernel_get_info(kernel), module, module->functions};
        module->functions = function;
    }
    pthread_mutex_unlock(&module->lock);
    *out = function;
    return function ? hipSuccess : hipErrorOutOfMemory;
}
