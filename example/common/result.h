// SPDX-License-Identifier: MIT
// What came of a problem, and how a program says so.
#ifndef EXAMPLE_RESULT_H
#define EXAMPLE_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "tessera/clock.h"
#include "tessera/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Values are the programs' exit codes.
typedef enum example_outcome {
    EXAMPLE_OK = 0,
    EXAMPLE_WRONG_ARGUMENT = 1, // message names argument, value and what is accepted
    EXAMPLE_NO_INSTANCE = 2,
    EXAMPLE_WRONG_RESULT = 3, // also: a guard zone, an input or what must be left alone was written
    EXAMPLE_DEVICE_ERROR = 4  // also: no memory, or stdout cannot be written
} example_outcome;

typedef enum example_verification {
    EXAMPLE_NOT_VERIFIED = 0,
    EXAMPLE_VALID = 1,
    EXAMPLE_INVALID = 2
} example_verification;

typedef struct example_result {
    example_outcome outcome;
    tessera_status status;       // of the library call that failed, else TESSERA_SUCCESS
    char message[768];           // "" when all is well
    char short_name[128];        // of the instance that ran
    char ck_name[384];           // CK's name of this call
    double flop, bytes;          // as the program's README counts them
    double time_ms;              // mean of the timed runs
    int32_t runs;                // timed runs
    int32_t simulated;           // 1: the time is what the simulation took this machine, and says nothing of a GPU
    tessera_sim_timing modelled; // of a run on a simulated GPU; no launches elsewhere
    double tflops, gbps;         // where simulated, of the modelled time
    example_verification verification;
    int64_t rows, rows_checked; // what the program calls rows
} example_result;

// Sets outcome and message; returns the outcome.
__attribute__((format(printf, 3, 4))) example_outcome example_fail(example_result *result, example_outcome outcome,
                                                                   const char *format, ...);
// The same for a call of the library that failed.
example_outcome example_fail_status(example_result *result, tessera_status status, const char *call);

#define EXAMPLE_WRONG(...) example_fail(result, EXAMPLE_WRONG_ARGUMENT, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
