// SPDX-License-Identifier: MIT
// How elements lie in memory: what launchers tell kernels, and words that load and store are told. Not for callers.
#ifndef TESSERA_STORAGE_H
#define TESSERA_STORAGE_H

typedef enum tessera_storage {
    TESSERA_STORAGE_FP32 = 0,
    TESSERA_STORAGE_FP16 = 1,
    TESSERA_STORAGE_BF16 = 2,
    TESSERA_STORAGE_E4M3 = 3,
    TESSERA_STORAGE_E2M1 = 4 // two a byte, low nibble first
} tessera_storage;

#endif
