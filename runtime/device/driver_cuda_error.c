// SPDX-License-Identifier: MIT
// Error lines: the text of NVIDIA's driver.
#include "device/driver_cuda.h"

tessera_status tessera_cuda_fail(const struct tessera_cuda *cuda, const char *name, const char *call, int error,
                                 const char *more) {
    const char *word = NULL, *text = NULL;
    cuda->cuGetErrorName(error, &word);
    cuda->cuGetErrorString(error, &text);
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s failed with %s (%d): %s%s%s", name, call, word ? word : "no name",
                        error, text ? text : "no text", *more ? "; " : "", more);
}
