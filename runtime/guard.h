// SPDX-License-Identifier: MIT
// Macros for validation: a guard states a condition that must hold, and the error line where it does not.
#ifndef TESSERA_RUNTIME_GUARD_H
#define TESSERA_RUNTIME_GUARD_H

#include "internal.h"

#define GUARD(holds, ...)                                                                                              \
    if (!(holds)) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const tessera_status status_ = (call);                                                                         \
        if (status_ != TESSERA_SUCCESS) return status_;                                                                \
    } while (0)

static inline bool within(int64_t value, int64_t least, int64_t most) { return least <= value && value <= most; }

#endif
