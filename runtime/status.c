// SPDX-License-Identifier: MIT
// Names of statuses, each thread's error line, the log.
#include <stdarg.h>
#include <stdio.h>

#include "callback.h"
#include "internal.h"
#include "verbose.h"

#ifndef TESSERA_VERSION
#error "the build passes -DTESSERA_VERSION=\"major.minor.patch\""
#endif

const char *tessera_version(void) { return TESSERA_VERSION; }

const char *tessera_status_string(tessera_status status) {
    switch (status) {
    case TESSERA_SUCCESS:
        return "TESSERA_SUCCESS";
    case TESSERA_ERROR_INVALID_ARGUMENT:
        return "TESSERA_ERROR_INVALID_ARGUMENT";
    case TESSERA_ERROR_NO_INSTANCE:
        return "TESSERA_ERROR_NO_INSTANCE";
    case TESSERA_ERROR_WORKSPACE:
        return "TESSERA_ERROR_WORKSPACE";
    case TESSERA_ERROR_DEVICE:
        return "TESSERA_ERROR_DEVICE";
    case TESSERA_ERROR_NOT_PREPARED:
        return "TESSERA_ERROR_NOT_PREPARED";
    case TESSERA_ERROR_OUT_OF_MEMORY:
        return "TESSERA_ERROR_OUT_OF_MEMORY";
    }
    return "unknown status";
}

enum { LINE_BYTES = 1024 };
static _Thread_local char last_error[LINE_BYTES];
static _Thread_local bool quiet;

void tessera_fail_quietly(bool quietly) { quiet = quietly; }

const char *tessera_last_error(void) { return last_error; }

static struct tessera_callback log_callback;
static atomic_int log_level = -1; // the greatest level that goes to log_callback

void tessera_set_log(tessera_log_fn fn, void *user, tessera_log_level level) {
    atomic_store(&log_level, -1);
    tessera_callback_set(&log_callback, (tessera_any_function)fn, user);
    if (fn) atomic_store(&log_level, (int)level);
}

bool tessera_log_enabled(tessera_log_level level) { return (int)level <= atomic_load(&log_level); }

static void log_line(tessera_log_level level, const char *line) {
    tessera_any_function function;
    void *user;
    if (tessera_log_enabled(level) && tessera_callback_get(&log_callback, &function, &user))
        ((tessera_log_fn)function)(user, level, line);
}

void tessera_log(tessera_log_level level, const char *format, ...) {
    if (!tessera_log_enabled(level)) return;
    char line[LINE_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    log_line(level, line);
}

tessera_status tessera_fail(tessera_status status, const char *format, ...) {
    if (quiet) return status;
    char line[LINE_BYTES]; // not written to last_error directly, which may be among the values
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    for (size_t i = 0; i < LINE_BYTES; i++) {
        last_error[i] = line[i];
        if (!line[i]) break;
    }
    log_line(TESSERA_LOG_ERROR, line);
    if (tessera_verbose()) tessera_verbose_line("error %s", line);
    return status;
}
