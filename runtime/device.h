// SPDX-License-Identifier: MIT
// The inside of a device.
#ifndef TESSERA_RUNTIME_DEVICE_H
#define TESSERA_RUNTIME_DEVICE_H

#include "internal.h"

struct tessera_gpu;

struct tessera_device {
    char name[32];
    tessera_device_facts facts;
    struct tessera_gpu *gpu; // NULL: the CPU
};

#endif
