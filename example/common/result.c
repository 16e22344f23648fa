// SPDX-License-Identifier: MIT
#include "result.h"

#include <stdarg.h>
#include <stdio.h>

example_outcome example_fail(example_result *result, example_outcome outcome, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(result->message, sizeof result->message, format, values);
    va_end(values);
    return result->outcome = outcome;
}

example_outcome example_fail_status(example_result *result, tessera_status status, const char *call) {
    example_outcome outcome = status == TESSERA_ERROR_INVALID_ARGUMENT ? EXAMPLE_WRONG_ARGUMENT
                              : status == TESSERA_ERROR_NO_INSTANCE    ? EXAMPLE_NO_INSTANCE
                                                                       : EXAMPLE_DEVICE_ERROR;
    const char *reason = tessera_last_error();
    example_fail(result, outcome, "%s: %s", call, *reason ? reason : tessera_status_string(status));
    result->status = status;
    return outcome;
}
