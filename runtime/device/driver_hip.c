// SPDX-License-Identifier: MIT
// The two kinds of drivers with HIP's functions, libamdhip64 and the simulator: finding the library, making the driver.
#include "device/driver_hip.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"

// ---- making

static tessera_status fill(struct tessera_hip *hip, const char *name, const struct tessera_driver_source *source) {
    // clang-format off
    static const struct tessera_driver_member members[] = {
#define F(f, parameters) TESSERA_DRIVER_MEMBER(struct tessera_hip, f, true),
        HIP_FUNCTIONS(F)
#undef F
        TESSERA_DRIVER_MEMBER(struct tessera_hip, hipGetErrorName, true),
        TESSERA_DRIVER_MEMBER(struct tessera_hip, hipGetErrorString, true),
        TESSERA_DRIVER_MEMBER(struct tessera_hip, hipGetDevicePropertiesR0600, false),
        TESSERA_DRIVER_MEMBER(struct tessera_hip, hipGetDeviceProperties, false),
#define F(f, parameters) TESSERA_DRIVER_MEMBER(struct tessera_hip, f, false),
        HIP_OPTIONAL_FUNCTIONS(F)
#undef F
        TESSERA_DRIVER_MEMBER(struct tessera_hip, tessera_hip_listen, false),
        TESSERA_DRIVER_MEMBER(struct tessera_hip, tessera_hip_set_clock, false),
        TESSERA_DRIVER_MEMBER(struct tessera_hip, tessera_hip_set_output, false),
        TESSERA_DRIVER_MEMBER(struct tessera_hip, tessera_hip_take_timing, false),
    };
    // clang-format on
    TRY(tessera_driver_fill(source, name, members, sizeof members / sizeof *members, &hip->base));
    if (!hip->hipGetDevicePropertiesR0600 && !hip->hipGetDeviceProperties)
        return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s lacks the function hipGetDeviceProperties", name,
                            source->origin);
    return TESSERA_SUCCESS;
}

static tessera_status initialize(const struct tessera_hip *hip, const char *name) {
    tessera_hip_hear(hip);
    int error = hip->hipInit(0), version = 0;
    if (error) return tessera_hip_fail(hip, name, "hipInit", error);
    error = hip->hipRuntimeGetVersion(&version);
    if (error) return tessera_hip_fail(hip, name, "hipRuntimeGetVersion", error);
    tessera_log(TESSERA_LOG_INFO, "driver: %s, HIP %d.%d.%d", hip->base.origin, version / 10000000,
                version / 100000 % 100, version % 100000);
    return TESSERA_SUCCESS;
}

static tessera_status start(const char *name, const struct tessera_driver_source *source,
                            struct tessera_driver *driver) {
    struct tessera_hip *const hip = (struct tessera_hip *)driver;
    TRY(fill(hip, name, source));
    return initialize(hip, name);
}

// ---- libamdhip64

static tessera_status find_hip(const char *device, struct tessera_driver_source *out) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
    enum { NAMES = sizeof names / sizeof *names };
    bool named;
    TRY(tessera_driver_try_variable(out, device, "TESSERA_HIP_LIBRARY", &named));
    if (named) return TESSERA_SUCCESS;
    for (int i = 0; i < NAMES; i++)
        if (tessera_driver_try(out, names[i], RTLD_NOLOAD)) return TESSERA_SUCCESS;
    if (tessera_driver_try_loaded(out, "libamdhip64")) return TESSERA_SUCCESS;
    for (int i = 0; i < NAMES; i++)
        if (tessera_driver_try(out, names[i], 0)) return TESSERA_SUCCESS;
    return tessera_fail(
        TESSERA_ERROR_DEVICE,
        "%s: the HIP runtime is not there: neither %s, %s nor %s can be opened, and TESSERA_HIP_LIBRARY "
        "names no file",
        device, names[0], names[1], names[2]);
}

const struct tessera_driver_kind tessera_driver_hip = {
    .word = "hip",
    .targets = "cdna",
    .form = "hip:N",
    .find = find_hip,
    .bytes = sizeof(struct tessera_hip),
    .calls = &tessera_hip_calls,
    .start = start,
};

// ---- libtessera_sim

static tessera_status find_sim(const char *device, struct tessera_driver_source *out) {
    bool named;
    TRY(tessera_driver_try_variable(out, device, "TESSERA_SIM_LIBRARY", &named));
    if (named) return TESSERA_SUCCESS;
    char name[64];
    snprintf(name, sizeof name, "libtessera_sim.so.%d", atoi(tessera_version()));
    if (tessera_driver_try_beside(out, name) || tessera_driver_try(out, name, 0)) return TESSERA_SUCCESS;
    return tessera_fail(
        TESSERA_ERROR_DEVICE,
        "%s: the simulator is not there: %s can be opened neither beside this library nor by the loader, "
        "and TESSERA_SIM_LIBRARY names no file",
        device, name);
}

// "gfx942", and after it any of ":sramecc+", ":sramecc-", ":xnack+" and ":xnack-".
static bool is_arch(const char *rest) {
    static const char *const features[] = {":sramecc", ":xnack"};
    rest += strcspn(rest, ":");
    while (*rest) {
        size_t length = 0;
        for (int i = 0; i < 2; i++)
            if (strncmp(rest, features[i], strlen(features[i])) == 0) length = strlen(features[i]);
        if (!length || (rest[length] != '+' && rest[length] != '-')) return false;
        rest += length + 1;
    }
    return true;
}

static tessera_status check_arch(const char *rest) {
    GUARD(is_arch(rest), "device \"sim:%s\": sim:ARCH, where ARCH is such as gfx942 or gfx942:sramecc+:xnack-", rest);
    return TESSERA_SUCCESS;
}

const struct tessera_driver_kind tessera_driver_sim = {
    .word = "sim",
    .targets = "cdna",
    .is_simulated = true,
    .form = "sim:ARCH",
    .check = check_arch,
    .find = find_sim,
    .bytes = sizeof(struct tessera_hip),
    .calls = &tessera_hip_calls,
    .start = start,
};
