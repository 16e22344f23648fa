// SPDX-License-Identifier: MIT
// Contexts of NVIDIA's driver: memory, streams and modules belong to one of them. A device of this library belongs to
// the context that was current when it was opened, if that is one of the GPU, else to the GPU's primary context, which
// NVIDIA's runtime and PyTorch use.
#include "device/driver_cuda.h"
#include "guard.h"

static tessera_status number_of(const struct tessera_chip *chip, int *device) {
    return CUDA_CALL(chip, cuDeviceGet, device, chip->ordinal);
}

// Whether there is a current context and it is one of this GPU.
static tessera_status is_own(const struct tessera_chip *chip, const void *current, bool *out) {
    int own, device;
    *out = false;
    if (!current) return TESSERA_SUCCESS;
    TRY(number_of(chip, &own));
    TRY(CUDA_CALL(chip, cuCtxGetDevice, &device));
    *out = own == device;
    return TESSERA_SUCCESS;
}

tessera_status tessera_cuda_attach(struct tessera_chip *chip) {
    void *current;
    bool own;
    int device;
    TRY(CUDA_CALL(chip, cuCtxGetCurrent, &current));
    TRY(is_own(chip, current, &own));
    if (own) {
        chip->context = current;
        return TESSERA_SUCCESS;
    }
    TRY(number_of(chip, &device));
    TRY(CUDA_CALL(chip, cuDevicePrimaryCtxRetain, &chip->context, device));
    chip->retained = true;
    return TESSERA_SUCCESS;
}

// The driver may be gone already when a program ends.
void tessera_cuda_detach(const struct tessera_chip *chip) {
    int device;
    if (chip->retained && tessera_cuda_of(chip)->cuDeviceGet(&device, chip->ordinal) == 0)
        tessera_cuda_of(chip)->cuDevicePrimaryCtxRelease_v2(device);
}

// Memory of another context of the same GPU would be reached by an address that means nothing in this one, which ends
// the context.
tessera_status tessera_cuda_enter(const struct tessera_chip *chip, intptr_t *previous) {
    void *current;
    bool own;
    TRY(CUDA_CALL(chip, cuCtxGetCurrent, &current));
    *previous = (intptr_t)current;
    if (current == chip->context) return TESSERA_SUCCESS;
    TRY(is_own(chip, current, &own));
    if (own)
        return tessera_fail(TESSERA_ERROR_DEVICE,
                            "%s: the current context is another one of this GPU than that in which the device was "
                            "opened: open a device in each",
                            chip->name);
    return CUDA_CALL(chip, cuCtxPushCurrent_v2, chip->context);
}

tessera_status tessera_cuda_leave(const struct tessera_chip *chip, intptr_t previous) {
    void *popped;
    return previous == (intptr_t)chip->context ? TESSERA_SUCCESS : CUDA_CALL(chip, cuCtxPopCurrent_v2, &popped);
}
