// SPDX-License-Identifier: MIT
// The clocks of devices, for programs that have no handles of their GPUs. Work that waits in streams is not yet timed.
#include "entries.h"
#include "state.h"

HIP_API hipError_t tessera_hip_set_clock(int device, int clock) {
    HIP_ENTER();
    struct hip_device *const found = tessera_hip_device(device);
    HIP_REQUIRE(found, hipErrorInvalidDevice);
    return tessera_hip_result(tessera_sim_set_clock(found->sim, (tessera_sim_clock)clock) == TESSERA_SUCCESS
                                  ? hipSuccess
                                  : hipErrorInvalidValue);
}

HIP_API hipError_t tessera_hip_set_output(int device, int output, const char *path) {
    HIP_ENTER();
    struct hip_device *const found = tessera_hip_device(device);
    HIP_REQUIRE(found, hipErrorInvalidDevice);
    return tessera_hip_result(tessera_sim_set_output(found->sim, (tessera_sim_output)output, path) == TESSERA_SUCCESS
                                  ? hipSuccess
                                  : hipErrorInvalidValue);
}

HIP_API hipError_t tessera_hip_take_timing(int device, tessera_sim_timing *out) {
    HIP_ENTER();
    struct hip_device *const found = tessera_hip_device(device);
    HIP_REQUIRE(found, hipErrorInvalidDevice);
    tessera_sim_take_timing(found->sim, out);
    return tessera_hip_result(hipSuccess);
}
