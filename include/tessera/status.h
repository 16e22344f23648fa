// SPDX-License-Identifier: MIT
// The status that functions return, error lines and the log.
#ifndef TESSERA_STATUS_H
#define TESSERA_STATUS_H

#if defined(_WIN32) || !defined(__GNUC__)
#define TESSERA_API
#else
#define TESSERA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tessera_status {
    TESSERA_SUCCESS = 0,
    TESSERA_ERROR_INVALID_ARGUMENT = 1, // a pointer, size, stride or trait is wrong; nothing was written
    TESSERA_ERROR_NO_INSTANCE = 2,      // arguments are right, but no instance of this build serves them
    TESSERA_ERROR_WORKSPACE = 3,        // the workspace is missing, misaligned or too small
    TESSERA_ERROR_DEVICE = 4,           // the device does not exist here, or its driver failed
    TESSERA_ERROR_NOT_PREPARED = 5,     // a load would be needed while the stream captures a graph
    TESSERA_ERROR_OUT_OF_MEMORY = 6     // host memory
} tessera_status;

// The name of a status, such as "TESSERA_ERROR_NO_INSTANCE"; "unknown status" for any other value.
TESSERA_API const char *tessera_status_string(tessera_status status);

// The error line of this thread's last call that failed: it names the argument, its value and what would be accepted.
// It is "" before any failure, and valid until this thread's next call into the library.
TESSERA_API const char *tessera_last_error(void);

typedef enum tessera_log_level {
    TESSERA_LOG_ERROR = 0,
    TESSERA_LOG_WARNING = 1,
    TESSERA_LOG_INFO = 2
} tessera_log_level;

typedef void (*tessera_log_fn)(void *user, tessera_log_level level, const char *line);

// The library prints nothing unless the environment asks it to. Lines of `level` and below are passed to `fn`, which is
// called from any thread and must not call the library; NULL (the default) drops them. At INFO every call logs its
// instance, and GPUs log their driver and the code that they load.
TESSERA_API void tessera_set_log(tessera_log_fn fn, void *user, tessera_log_level level);

// For people who run a program that they cannot change: TESSERA_VERBOSE=1 in the environment prints a line for every
// call that ran, with its device, instance, sizes and time, and one for every error; 2 also prints why instances were
// chosen. Lines go to stderr, or are appended to the file that TESSERA_VERBOSE_FILE names. Both variables are read
// once. The library waits for calls on GPUs then, unless their stream captures a graph: see docs/devices.md.

// "major.minor.patch" of the library that is linked.
TESSERA_API const char *tessera_version(void);

#ifdef __cplusplus
}
#endif
#endif
