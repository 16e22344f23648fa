// SPDX-License-Identifier: MIT
// The functions that every operation has. TESSERA_CALLS(scale) declares those of an operation `scale`, whose structs
// tessera_scale_traits and tessera_scale_args are defined before it; its header says what they mean.
#ifndef TESSERA_CALL_H
#define TESSERA_CALL_H

#include "tessera/device.h"

// What an explanation lists: a line a reason with a count, or a line an instance with all of its reasons.
typedef enum tessera_explain { TESSERA_EXPLAIN_REASONS = 1, TESSERA_EXPLAIN_INSTANCES = 2 } tessera_explain;

// Defines type_init(), which is all zero but the struct's size.
#define TESSERA_INIT(type)                                                                                             \
    static inline type type##_init(void) {                                                                             \
        type all;                                                                                                      \
        for (size_t i = 0; i < sizeof all; i++) ((unsigned char *)&all)[i] = 0;                                        \
        all.struct_size = sizeof all;                                                                                  \
        return all;                                                                                                    \
    }

// tessera_OP(device, traits, args, stream) computes. `stream` is the device's raw handle (a hipStream_t of its GPU),
// NULL its default stream; on the CPU it must be NULL and the call returns when the result is there. On a GPU the call
// puts its launches into the stream and reads no memory, so that arrays that are not as they must be are not noticed
// there; once its code is loaded (prepare) it allocates, locks and waits for nothing. On any error nothing is written.
//
// _check(traits, args) validates traits, sizes, pointers, strides, alignment and overlap without launching: it says
// what the call would, but for the workspace. It reads arrays that the header names, which must be in host memory
// whatever the device. _check_on(device, ...) does as that device would, choice of an instance included.
//
// _select(facts, traits, args, &instance) chooses the instance of least estimated cost, or args->instance if that
// serves the call. Pure: reads only traits, the sizes in args and facts, does no I/O.
//
// _explain(facts, traits, args, how, text, size) lists the instances that serve the call with their costs, best first,
// the chosen one behind a `*`, and why the others do not. Where none serves, what would have to change. Writes at most
// `size` bytes including the final NUL and returns the bytes that the whole text needs (as snprintf does, plus 1).
//
// _instance_name(instance) is the short name of an instance. _ck_name(instance, traits, args, text, size) writes CK's
// name of the combination of traits and tile that this call takes, as _explain writes.
//
// _workspace_size(device, traits, args, &bytes): what the call needs on this device with its present number of
// threads. Reads only sizes.
//
// _prepare(device, traits, args) loads what a call with these traits and sizes will run, so that the call itself loads
// and allocates nothing.
#define TESSERA_CALLS(op)                                                                                              \
    TESSERA_API tessera_status tessera_##op(const tessera_device *device, const tessera_##op##_traits *traits,         \
                                            const tessera_##op##_args *args, void *stream);                            \
    TESSERA_API tessera_status tessera_##op##_check(const tessera_##op##_traits *traits,                               \
                                                    const tessera_##op##_args *args);                                  \
    TESSERA_API tessera_status tessera_##op##_check_on(                                                                \
        const tessera_device *device, const tessera_##op##_traits *traits, const tessera_##op##_args *args);           \
    TESSERA_API tessera_status tessera_##op##_select(                                                                  \
        const tessera_device_facts *facts, const tessera_##op##_traits *traits, const tessera_##op##_args *args,       \
        const tessera_##op##_instance **out);                                                                          \
    TESSERA_API size_t tessera_##op##_explain(const tessera_device_facts *facts, const tessera_##op##_traits *traits,  \
                                              const tessera_##op##_args *args, tessera_explain how, char *text,        \
                                              size_t size);                                                            \
    TESSERA_API const char *tessera_##op##_instance_name(const tessera_##op##_instance *instance);                     \
    TESSERA_API size_t tessera_##op##_ck_name(const tessera_##op##_instance *instance,                                 \
                                              const tessera_##op##_traits *traits, const tessera_##op##_args *args,    \
                                              char *text, size_t size);                                                \
    TESSERA_API tessera_status tessera_##op##_workspace_size(const tessera_device *device,                             \
                                                             const tessera_##op##_traits *traits,                      \
                                                             const tessera_##op##_args *args, size_t *bytes);          \
    TESSERA_API tessera_status tessera_##op##_prepare(                                                                 \
        const tessera_device *device, const tessera_##op##_traits *traits, const tessera_##op##_args *args);

#endif
