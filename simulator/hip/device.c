// SPDX-License-Identifier: MIT
// Devices: one for each architecture of TESSERA_SIM_DEVICES; their properties, attributes and limits.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define DEFAULT_DEVICES "gfx90a,gfx942,gfx950"

static struct hip_device devices[HIP_MOST_DEVICES];
static int device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int current;

// ---- opening

static hipError_t fault_error(tessera_sim_fault fault) {
    switch (fault) {
    case TESSERA_SIM_FAULT_OUT_OF_BOUNDS:
    case TESSERA_SIM_FAULT_USE_AFTER_FREE:
    case TESSERA_SIM_FAULT_MISALIGNED:
    case TESSERA_SIM_FAULT_READ_ONLY:
        return hipErrorIllegalAddress;
    default:
        return hipErrorLaunchFailure;
    }
}

static void on_fault(void *user, const tessera_sim_report *report) {
    struct hip_device *device = user;
    tessera_hip_say("device %d (%s): %s", device->index, device->facts->arch, report->text);
    int none = hipSuccess;
    atomic_compare_exchange_strong(&device->error, &none, (int)fault_error(report->fault));
}

static bool open_device(const char *arch) {
    struct hip_device *device = &devices[device_count];
    if (device_count == HIP_MOST_DEVICES || tessera_sim_open(arch, &device->sim) != TESSERA_SUCCESS) {
        tessera_hip_say("TESSERA_SIM_DEVICES: %s",
                        device_count == HIP_MOST_DEVICES ? "at most 16 devices" : tessera_sim_last_error());
        return false;
    }
    device->facts = tessera_hip_find_facts(tessera_sim_arch(device->sim));
    device->index = device_count++;
    device->pool = device;
    pthread_mutex_init(&device->run, NULL);
    tessera_sim_set_report(device->sim, on_fault, device);
    return true;
}

static void open_devices(void) {
    const char *named = getenv("TESSERA_SIM_DEVICES");
    char *list = strdup(named ? named : DEFAULT_DEVICES), *rest = list;
    for (const char *arch; list && (arch = strsep(&rest, ","));)
        if (!open_device(arch)) {
            device_count = 0; // one wrong name makes the whole list void
            break;
        }
    free(list);
}

hipError_t tessera_hip_open(void) {
    pthread_once(&once, open_devices);
    return device_count ? hipSuccess : hipErrorNoDevice;
}

int tessera_hip_device_count(void) { return device_count; }

struct hip_device *tessera_hip_device(int index) {
    return index >= 0 && index < device_count ? &devices[index] : NULL;
}

struct hip_device *tessera_hip_current(void) {
    return &devices[current];
}

hipError_t tessera_hip_device_error(struct hip_device *device) { return (hipError_t)atomic_load(&device->error); }

// ---- which runtime this is, and which devices there are

HIP_API hipError_t hipRuntimeGetVersion(int *version) {
    HIP_REQUIRE(version, hipErrorInvalidValue);
    *version = tessera_hip_version;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

HIP_API hipError_t hipInit(unsigned flags) {
    HIP_ENTER();
    return tessera_hip_result(flags ? hipErrorInvalidValue : hipSuccess);
}

HIP_API hipError_t hipGetDeviceCount(int *count) {
    HIP_REQUIRE(count, hipErrorInvalidValue);
    *count = 0;
    HIP_ENTER();
    *count = device_count;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipSetDevice(int device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    current = device;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipGetDevice(int *device) {
    HIP_ENTER();
    HIP_REQUIRE(device, hipErrorInvalidValue);
    *device = current;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
    HIP_ENTER();
    HIP_REQUIRE(device, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(ordinal), hipErrorInvalidDevice);
    *device = ordinal;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipSetValidDevices(int *list, int count) {
    HIP_ENTER();
    HIP_REQUIRE(count >= 0 && (list || count == 0), hipErrorInvalidValue);
    for (int i = 0; i < count; i++) HIP_REQUIRE(tessera_hip_device(list[i]), hipErrorInvalidDevice);
    if (count) current = list[0];
    return tessera_hip_result(hipSuccess);
}

// ---- properties of devices

HIP_API hipError_t hipGetDeviceProperties(void *properties, int device) {
    HIP_ENTER();
    HIP_REQUIRE(properties, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    tessera_hip_fill_properties_old(devices[device].facts, device, properties);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipGetDevicePropertiesR0000(void *properties, int device) {
    return hipGetDeviceProperties(properties, device);
}

HIP_API hipError_t hipGetDevicePropertiesR0600(void *properties, int device) {
    HIP_ENTER();
    HIP_REQUIRE(properties, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    tessera_hip_fill_properties_r0600(devices[device].facts, device, properties);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceGetAttribute(int *value, int attribute, int device) {
    HIP_ENTER();
    HIP_REQUIRE(value, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    int64_t found;
    HIP_REQUIRE(tessera_hip_attribute(devices[device].facts, device, attribute, &found), hipErrorInvalidValue);
    *value = (int)(found > INT32_MAX ? INT32_MAX : found);
    return tessera_hip_result(hipSuccess);
}

static void copy_name(char *to, int length, const char *name) { snprintf(to, (size_t)length, "%s", name); }

HIP_API hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(name && length > 0, hipErrorInvalidValue);
    copy_name(name, length, devices[device].facts->name);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(major && minor, hipErrorInvalidValue);
    *major = (int)devices[device].facts->major;
    *minor = (int)devices[device].facts->minor;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(bytes, hipErrorInvalidValue);
    *bytes = (size_t)devices[device].facts->memory_bytes;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceGetPCIBusId(char *id, int length, int device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(id && length >= 13, hipErrorInvalidValue);
    snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceGetByPCIBusId(int *device, const char *id) {
    HIP_ENTER();
    unsigned domain, bus, unit, function;
    HIP_REQUIRE(device && id, hipErrorInvalidValue);
    HIP_REQUIRE(sscanf(id, "%x:%x:%x.%x", &domain, &bus, &unit, &function) == 4, hipErrorInvalidValue);
    HIP_REQUIRE(domain == 0 && unit == 0 && function == 0 && tessera_hip_device((int)bus), hipErrorInvalidDevice);
    *device = (int)bus;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceGetUuid(char (*uuid)[16], hipDevice_t device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(uuid, hipErrorInvalidValue);
    snprintf(*uuid, sizeof *uuid, "tessera-sim");
    (*uuid)[15] = (char)device;
    return tessera_hip_result(hipSuccess);
}

// ---- flags and limits

HIP_API hipError_t hipDeviceReset(void) {
    HIP_ENTER();
    return tessera_hip_result(hipSuccess); // allocations stay, as in AMD's runtime while other threads use the device
}

HIP_API hipError_t hipSetDeviceFlags(unsigned flags) {
    enum { SCHEDULES = 7, MAP_HOST = 8, RESIZE_LOCAL = 16 };
    HIP_ENTER();
    const unsigned schedule = flags & SCHEDULES;
    HIP_REQUIRE((flags & ~(unsigned)(SCHEDULES | MAP_HOST | RESIZE_LOCAL)) == 0, hipErrorInvalidValue);
    HIP_REQUIRE((schedule & (schedule - 1)) == 0, hipErrorInvalidValue); // at most one schedule
    tessera_hip_current()->flags = flags;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipGetDeviceFlags(unsigned *flags) {
    HIP_ENTER();
    HIP_REQUIRE(flags, hipErrorInvalidValue);
    *flags = tessera_hip_current()->flags;
    return tessera_hip_result(hipSuccess);
}

enum { STACK_DEFAULT = 16 * 1024, STACK_MOST = 131056, FIFO_BYTES = 1 << 20, HEAP_BYTES = 4 << 20 };

HIP_API hipError_t hipDeviceGetLimit(size_t *value, hipLimit_t limit) {
    HIP_ENTER();
    HIP_REQUIRE(value, hipErrorInvalidValue);
    const size_t stack = tessera_hip_current()->stack_bytes;
    switch (limit) {
    case hipLimitStackSize:
        *value = stack ? stack : STACK_DEFAULT;
        break;
    case hipLimitPrintfFifoSize:
        *value = FIFO_BYTES;
        break;
    case hipLimitMallocHeapSize:
        *value = HEAP_BYTES;
        break;
    default:
        return tessera_hip_result(hipErrorUnsupportedLimit);
    }
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
    HIP_ENTER();
    HIP_REQUIRE(limit == hipLimitStackSize || limit == hipLimitMallocHeapSize, hipErrorUnsupportedLimit);
    HIP_REQUIRE(limit != hipLimitStackSize || value <= STACK_MOST, hipErrorInvalidValue);
    if (limit == hipLimitStackSize) tessera_hip_current()->stack_bytes = value;
    return tessera_hip_result(hipSuccess);
}

// ---- preferences that AMD's runtime takes and ignores, and so does this one

HIP_API hipError_t hipDeviceSetCacheConfig(int config) {
    HIP_ENTER();
    return tessera_hip_result(config >= 0 && config <= 3 ? hipSuccess : hipErrorInvalidValue);
}

HIP_API hipError_t hipDeviceGetCacheConfig(int *config) {
    HIP_ENTER();
    HIP_REQUIRE(config, hipErrorInvalidValue);
    *config = 0;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceSetSharedMemConfig(int config) {
    HIP_ENTER();
    return tessera_hip_result(config >= 0 && config <= 2 ? hipSuccess : hipErrorInvalidValue);
}

HIP_API hipError_t hipDeviceGetSharedMemConfig(int *config) {
    HIP_ENTER();
    HIP_REQUIRE(config, hipErrorInvalidValue);
    *config = 1; // banks of four bytes
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipProfilerStart(void) { return tessera_hip_result(hipErrorNotSupported); }

HIP_API hipError_t hipProfilerStop(void) { return tessera_hip_result(hipErrorNotSupported); }

// ---- peers: no simulated device reaches another's memory; copies between them work

HIP_API hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
    HIP_ENTER();
    HIP_REQUIRE(can, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(device) && tessera_hip_device(peer), hipErrorInvalidDevice);
    *can = 0;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    HIP_ENTER();
    HIP_REQUIRE(flags == 0, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(peer) && peer != current, hipErrorInvalidDevice);
    return tessera_hip_result(hipErrorPeerAccessUnsupported);
}

HIP_API hipError_t hipDeviceDisablePeerAccess(int peer) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(peer), hipErrorInvalidDevice);
    return tessera_hip_result(hipErrorPeerAccessNotEnabled);
}
