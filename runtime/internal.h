// SPDX-License-Identifier: MIT
// Declarations that all files of the library share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_INTERNAL_H
#define TESSERA_RUNTIME_INTERNAL_H

#include <stdbool.h>

#include "tessera/device.h"

#if defined(__GNUC__)
#define TESSERA_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TESSERA_PRINTF(text, first)
#endif

// ---- errors and the log (status.c)

// Sets the thread's last error line and returns `status`. A failing function ends in `return tessera_fail(...)`.
tessera_status tessera_fail(tessera_status status, const char *format, ...) TESSERA_PRINTF(2, 3);

// While set, failures of this thread are returned but neither stored nor logged: for attempts that may well fail.
void tessera_fail_quietly(bool quietly);

bool tessera_log_enabled(tessera_log_level level);
void tessera_log(tessera_log_level level, const char *format, ...) TESSERA_PRINTF(2, 3);

// ---- text for a caller's buffer, which may be too small (text.c)

struct tessera_text {
    char *text;
    size_t size, used; // used: bytes of the whole text, without the final NUL
};
void tessera_text_add(struct tessera_text *out, const char *format, ...) TESSERA_PRINTF(2, 3); // NULL: nobody reads it

// ---- structs that begin with struct_size (structs.c)

// Copies a caller's struct over *out, which holds the defaults. Fields that an older caller's struct lacks keep their
// defaults; fields that a newer caller's struct has beyond ours must be zero.
tessera_status tessera_read_struct(const char *name, const void *caller, void *out, size_t out_size);

// ---- threads (device/threads.c)

enum { TESSERA_MAX_THREADS = 1024 };

// Calls body(context, i) once for every i in [0, count) and returns when all have returned. Bodies may run one after
// the other on one thread, so none may wait for another.
void tessera_parallel(int64_t count, tessera_parallel_body body, void *context);
void tessera_start_threads(void); // as many as tessera_num_threads() says

#endif
