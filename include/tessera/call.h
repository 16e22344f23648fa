// SPDX-License-Identifier: MIT
// The functions that every operation has. TESSERA_CALLS(scale) declares those of an operation `scale`, whose header
// defines the structs tessera_scale_traits and tessera_scale_args before it and describes them.
#ifndef TESSERA_CALL_H
#define TESSERA_CALL_H

#include "tessera/device.h"

// What an explanation lists: a line for each reason with a count, or a line for each instance with all of its reasons.
typedef enum tessera_explain { TESSERA_EXPLAIN_REASONS = 1, TESSERA_EXPLAIN_INSTANCES = 2 } tessera_explain;

// Defines type_init(), whose result is zero except for struct_size and what the statement says of `all`.
#define TESSERA_INIT_WITH(type, statement)                                                                             \
    static inline type type##_init(void) {                                                                             \
        type all;                                                                                                      \
        for (size_t i = 0; i < sizeof all; i++) ((unsigned char *)&all)[i] = 0;                                        \
        all.struct_size = sizeof all;                                                                                  \
        statement;                                                                                                     \
        return all;                                                                                                    \
    }
#define TESSERA_INIT(type) TESSERA_INIT_WITH(type, (void)0)

// tessera_OP(device, traits, args, stream) runs the operation. `stream` is a raw handle of the device (of a GPU a
// hipStream_t) or NULL for its default stream; on the CPU it must be NULL, and the call returns when the result is
// there. On a GPU the call puts its launches into the stream and reads no memory, so that wrong contents of arrays are
// not noticed; once its code is loaded (see _prepare) it allocates nothing, takes no lock and does not wait. On any
// error nothing is written. Tensors whose lengths a GPU alone can read are checked as if they had one row, unless the
// longest length is given as 0: they must have room for it.
//
// _check(traits, args) validates traits, sizes, pointers, strides, alignment and overlap without launching, as the call
// does, except for the workspace. It reads arrays that the operation's header names, which must be in host memory
// whatever the device. _check_on(device, ...) validates as that device does, including the choice of an instance.
//
// _select(facts, traits, args, &instance) chooses the instance of least estimated cost, or args->instance if that
// serves the call; where a further step of the call has none, it fails, as the call would. It is pure: it reads only
// traits, facts and the sizes in args, and does no I/O.
//
// _explain(facts, traits, args, how, text, size) lists the instances that serve the call with their costs, best first,
// the chosen one behind a `*`, and the reasons why others do not. Where none serves, it says what would have to change.
// It writes at most `size` bytes including the final NUL, and returns the bytes that the whole text needs (what
// snprintf returns, plus 1).
//
// _instance_name(instance) returns the short name of an instance. _ck_name(instance, traits, args, text, size) writes
// CK's name of the traits and tile that this call takes; `text`, `size` and the result are as for _explain.
//
// _workspace_size(device, traits, args, &bytes) sets the bytes of workspace that the call needs on this device with the
// present number of threads. It reads only sizes.
//
// _prepare(device, traits, args) loads the code that a call with these traits and sizes will run, so that the call
// itself loads and allocates nothing.
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
