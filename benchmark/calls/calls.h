// SPDX-License-Identifier: MIT
// A call of an operation through the C API, as benchmark_calls times it. Each operation has a file here, which makes
// tensors and fills in the structs of a problem, and CALL_OF(operation) behind it does what is the same for all.
#ifndef BENCHMARK_CALLS_H
#define BENCHMARK_CALLS_H

#include "answer.h"
#include "tessera/call.h"
#include "tessera/rows.h"

// What the command line says. Words that an operation does not have are ignored by it.
typedef struct problem {
    int32_t m, n;                    // rows and columns; of moe_smoothquant: tokens and hidden size
    tessera_type prec_i, prec_o;     // -prec_i, -prec_o: as in tessera/types.h
    tessera_fused_add fused_add;     // -fadd=0|1|2
    tessera_fused_quant fused_quant; // -fquant=0|1|2
    int32_t save_x, experts, topk;   // -save_x, -experts, -topk
} problem;

// What is timed: the function repeats the call so often and returns the milliseconds of one.
typedef struct timed_call {
    const char *instance;
    double (*time)(void *call, long count);
    void *call;
} timed_call;

// An operation's file defines timed_call OPERATION_call(device, problem).
typedef timed_call (*make_call)(const tessera_device *device, const problem *p);

// Tensors: m rows of n numbers of a type, all in 0.5 .. 1; an output is all zero.
void *input_of(tessera_type type, int64_t m, int64_t n);
void *output_of(tessera_type type, int64_t m, int64_t n);

void must(tessera_status status); // or else the program ends

#define CALL_OF(op)                                                                                                    \
    struct op##_timed {                                                                                                \
        const tessera_device *device;                                                                                  \
        tessera_##op##_traits traits;                                                                                  \
        tessera_##op##_args args;                                                                                      \
    };                                                                                                                 \
    static void op##_once(void *call) {                                                                                \
        const struct op##_timed *c = call;                                                                             \
        must(tessera_##op(c->device, &c->traits, &c->args, NULL));                                                     \
    }                                                                                                                  \
    static double op##_time(void *call, long count) { return milliseconds(op##_once, call, count); }                   \
    timed_call op##_call(const tessera_device *device, const problem *p);                                              \
    timed_call op##_call(const tessera_device *device, const problem *p) {                                             \
        static struct op##_timed c;                                                                                    \
        const tessera_##op##_instance *instance;                                                                       \
        c.device = device;                                                                                             \
        c.traits = tessera_##op##_traits_init();                                                                       \
        c.args = tessera_##op##_args_init();                                                                           \
        op##_fill(p, &c.traits, &c.args);                                                                              \
        must(tessera_##op##_workspace_size(device, &c.traits, &c.args, &c.args.workspace_size));                       \
        c.args.workspace_ptr = memory_of(c.args.workspace_size, 0);                                                    \
        must(tessera_##op##_select(tessera_device_get_facts(device), &c.traits, &c.args, &instance));                  \
        op##_once(&c);                                                                                                 \
        return (timed_call){tessera_##op##_instance_name(instance), op##_time, &c};                                    \
    }

#endif
