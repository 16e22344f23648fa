// SPDX-License-Identifier: MIT
// Functions of device.h that require that the GPU is current, called as a plan calls them.
#ifndef TESSERA_TEST_INSIDE_H
#define TESSERA_TEST_INSIDE_H

extern "C" {
#include "device/device.h"
}

// inside(tessera_gpu_zero, device, ...) calls it with the device's GPU as the thread's current one.
template <typename Function, typename... Arguments>
tessera_status inside(Function *function, const tessera_device *device, Arguments... arguments) {
    intptr_t previous = 0;
    const tessera_status entered = tessera_device_enter(device, &previous);
    if (entered != TESSERA_SUCCESS) return entered;
    return tessera_device_leave(device, previous, function(device, arguments...));
}

#endif
