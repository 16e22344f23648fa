// SPDX-License-Identifier: MIT
// A problem: traits and args of one call, made up from a command line, with buffers in host memory and their copies
// where the device reads none. It is built, launched through the public C API, and verified. Programs, their smoke
// matrices and the tests all do it here. Nothing is kept between calls.
#ifndef EXAMPLE_PROBLEM_H
#define EXAMPLE_PROBLEM_H

#include <stdio.h>

#include "arguments.h"
#include "calls.h"
#include "result.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of pattern before and after every buffer, and what they and unwritten outputs hold. An output of 0xff bytes is
// NaN in every floating-point type that has one but FNUZ's e4m3.
enum { EXAMPLE_GUARD = 256, EXAMPLE_GUARD_BYTE = 0xc3, EXAMPLE_UNWRITTEN_BYTE = 0xff, EXAMPLE_BUFFERS = 40 };

typedef struct example_tensor {
    const char *name; // NULL: the program has none of it
    size_t pointer;   // where in the args its pointer lies
} example_tensor;

typedef struct example_buffer {
    int used;
    int64_t bytes;         // negative: they overflow
    int32_t element_bytes; // at least 1
    uint8_t unwritten;     // what its bytes are before anything is put into them
    int64_t offset;        // in the arena
    void *device_memory;   // that holds a copy, where the device reads no host memory
} example_buffer;

typedef struct example_problem example_problem;

// One operation's program: what is its own. A struct of arguments begins with an example_options, that of a problem
// with an example_problem.
typedef struct example_program {
    const char *name; // "tile_example_fmha_fwd"
    const example_arguments *arguments;
    const example_calls *calls;
    const example_tensor *tensors; // inputs first
    int tensor_count, first_output;
    size_t problem_bytes;
    const char *not_supported; // CK's words, behind the problem
    int in_microseconds;       // the line has us and GB/s; else ms, TFlops and GB/s

    // Steps of building, in this order. Checks the arguments, fills in traits and sizes; it may change the program to
    // one that differs in calls and in where tensors lie in args:
    example_outcome (*settle)(example_problem *problem, const void *arguments, example_result *result);
    // Sizes of buffers (example_use) and strides; the device is open:
    example_outcome (*lay_out)(example_problem *problem, example_result *result);
    // Sets pointers of args, on the host or a device, that point into tensors of other names. NULL: there are none.
    void (*point)(const example_problem *problem, void *args);
    // Arrays that the library's check reads, where buffers are in place. NULL: none.
    void (*put)(example_problem *problem);
    // The other inputs:
    void (*fill)(example_problem *problem);
    void (*destroy)(example_problem *problem); // what the problem owns besides. NULL: nothing

    void (*count)(const example_problem *problem, example_result *result); // flop, bytes, rows
    // Compares outputs with the reference. Guard zones and inputs were looked at:
    example_outcome (*verify)(example_problem *problem, example_result *result);

    void (*print)(const example_problem *problem, FILE *file); // CK's line up to the kernel's name
    // -kname=1 where a call has several kernels. NULL: it has one:
    void (*print_kernels)(const example_problem *problem, FILE *file);
    void (*put_json)(const example_problem *problem, FILE *file);  // the problem's members; NULL: a member an argument
    void (*put_error)(const example_problem *problem, FILE *file); // members of what the verification found
} example_program;

struct example_problem {
    const example_program *program;
    const example_options *options; // borrowed
    uint64_t seed;
    char sizes[256];  // the arguments that sizes come from, for messages
    int32_t misalign; // every buffer starts this many elements after a multiple of 64 bytes

    void *traits, *args; // the program's own; pointers into host memory whatever the device
    void *device_args;   // what the library gets; the same on a CPU

    uint8_t *arena;
    int64_t arena_bytes, input_bytes; // inputs and their guard zones come first
    example_buffer buffers[EXAMPLE_BUFFERS];
    uint64_t input_sum;
    uint8_t *workspace; // its guard zones included
    void *device_workspace;
    int64_t workspace_bytes;
    int32_t bare; // 1: copies on the device have no guard zones, since a tool notices accesses beside allocations

    tessera_device *device;
    const tessera_instance *instance; // that ran
    char *annotation;                 // the file of one that is to be printed; NULL: none
};

// Each returns result->outcome. `build` leaves *problem NULL when it fails; a test may change args between build and
// launch. `run` does all of them.
example_outcome example_build(const example_program *program, const void *arguments, example_problem **problem,
                              example_result *result);
example_outcome example_launch(example_problem *problem, example_result *result); // warm-up, timing
example_outcome example_verify(example_problem *problem, example_result *result); // nothing with v = 0
void example_destroy(example_problem *problem);                                   // NULL is allowed
example_outcome example_run(const example_program *program, const void *arguments, example_result *result);

// ---- for programs' own steps

// A buffer is used.
void example_use(example_problem *problem, int tensor, int64_t elements, int32_t bits);
int64_t example_times(int64_t a, int64_t b); // product of sizes; negative once it overflows

// A buffer, or NULL where the problem has none.
void *example_pointer(const example_problem *problem, int tensor);

// Refuses what no machine, or this one, can hold.
example_outcome example_check_memory(const example_problem *problem, double bytes, const char *what,
                                     example_result *result);

int example_all_bytes(const void *begin, int64_t count, uint8_t value); // are all of them `value`?

int example_on_cpu(const example_problem *problem);
int example_is_simulated(const example_problem *problem);
int example_threads(const example_problem *problem); // for the reference

// Prints the annotation of a launch by -annotate=1.
void example_print_annotation(example_problem *problem);

// ---- between the files of the harness

// The files of -annotate and -trace. They are made before launches; those that are timed write to them.
example_outcome example_begin_outputs(example_problem *problem, example_result *result);
tessera_status example_set_outputs(const example_problem *problem);
void example_end_outputs(example_problem *problem);

// Places the buffers, makes the arena and sets the pointers of args. Guard zones hold their pattern, buffers their
// unwritten byte.
example_outcome example_allocate(example_problem *problem, example_result *result);
// Under AddressSanitizer nothing may even read the guard zones, until they are looked at.
void example_guard(const example_problem *problem);
void example_unguard(const example_problem *problem);
// Sum of the inputs and their guard zones.
uint64_t example_input_sum(const example_problem *problem);
example_outcome example_check_guards(const example_problem *problem, example_result *result);

// Sets the pointers of `args` to what `at` says of each buffer.
void example_set_pointers(const example_problem *problem, void *at(const example_problem *problem, int tensor),
                          void *args);
void *example_field(void *args, size_t offset);

// The copies on a device that reads no host memory, workspace included; on the CPU there are none.
example_outcome example_upload(example_problem *problem, example_result *result);
example_outcome example_download(example_problem *problem, example_result *result);
example_outcome example_make_workspace(example_problem *problem, size_t bytes, example_result *result);
void example_free_device_memory(example_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
