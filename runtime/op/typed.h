// SPDX-License-Identifier: MIT
// Defines the public functions of an operation: those of op/call.h with the operation's types.
#ifndef TESSERA_RUNTIME_OP_TYPED_H
#define TESSERA_RUNTIME_OP_TYPED_H

#include <stddef.h>

#include "op/call.h"

// Initializes the first members of tessera_OP_operation. The call is a struct tessera_OP_call with `traits` and `args`.
#define TESSERA_CALL_OF(op)                                                                                            \
    .name = #op, .traits = offsetof(struct tessera_##op##_call, traits),                                               \
    .traits_bytes = sizeof(tessera_##op##_traits), .args = offsetof(struct tessera_##op##_call, args),                 \
    .args_bytes = sizeof(tessera_##op##_args), .instance = offsetof(tessera_##op##_args, instance),                    \
    .workspace_ptr = offsetof(tessera_##op##_args, workspace_ptr),                                                     \
    .workspace_size = offsetof(tessera_##op##_args, workspace_size), .set_defaults = op##_set_defaults

// Defines the functions that TESSERA_CALLS(op) and TESSERA_TABLE_CALLS(op) declare, except get_table. They refer to
// tessera_OP_operation, which the operation's file defines below the macro.
#define TESSERA_DEFINE_CALLS(op)                                                                                       \
    extern const tessera_op tessera_##op##_operation;                                                                  \
    static void op##_set_defaults(void *call) {                                                                        \
        ((struct tessera_##op##_call *)call)->traits = tessera_##op##_traits_init();                                   \
        ((struct tessera_##op##_call *)call)->args = tessera_##op##_args_init();                                       \
    }                                                                                                                  \
    tessera_status tessera_##op(const tessera_device *device, const tessera_##op##_traits *traits,                     \
                                const tessera_##op##_args *args, void *stream) {                                       \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_run(&tessera_##op##_operation, &call, device, traits, args, stream);                       \
    }                                                                                                                  \
    tessera_status tessera_##op##_check(const tessera_##op##_traits *traits, const tessera_##op##_args *args) {        \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_check(&tessera_##op##_operation, &call, traits, args);                                     \
    }                                                                                                                  \
    tessera_status tessera_##op##_check_on(const tessera_device *device, const tessera_##op##_traits *traits,          \
                                           const tessera_##op##_args *args) {                                          \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_check_on(&tessera_##op##_operation, &call, device, traits, args);                          \
    }                                                                                                                  \
    tessera_status tessera_##op##_table_select(const tessera_table *table, const tessera_device_facts *facts,          \
                                               const tessera_##op##_traits *traits, const tessera_##op##_args *args,   \
                                               const tessera_##op##_instance **out) {                                  \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_select(&tessera_##op##_operation, &call, table, facts, traits, args, out);                 \
    }                                                                                                                  \
    tessera_status tessera_##op##_select(const tessera_device_facts *facts, const tessera_##op##_traits *traits,       \
                                         const tessera_##op##_args *args, const tessera_##op##_instance **out) {       \
        return tessera_##op##_table_select(tessera_##op##_get_table(), facts, traits, args, out);                      \
    }                                                                                                                  \
    size_t tessera_##op##_table_explain(const tessera_table *table, const tessera_device_facts *facts,                 \
                                        const tessera_##op##_traits *traits, const tessera_##op##_args *args,          \
                                        tessera_explain how, char *text, size_t size) {                                \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_explain(&tessera_##op##_operation, &call, table, facts, traits, args, how, text, size);    \
    }                                                                                                                  \
    size_t tessera_##op##_explain(const tessera_device_facts *facts, const tessera_##op##_traits *traits,              \
                                  const tessera_##op##_args *args, tessera_explain how, char *text, size_t size) {     \
        return tessera_##op##_table_explain(tessera_##op##_get_table(), facts, traits, args, how, text, size);         \
    }                                                                                                                  \
    const char *tessera_##op##_instance_name(const tessera_##op##_instance *instance) {                                \
        return instance ? ((const tessera_instance *)instance)->name : NULL;                                           \
    }                                                                                                                  \
    size_t tessera_##op##_ck_name(const tessera_##op##_instance *instance, const tessera_##op##_traits *traits,        \
                                  const tessera_##op##_args *args, char *text, size_t size) {                          \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_ck_name(&tessera_##op##_operation, &call, (const tessera_instance *)instance, traits,      \
                                    args, text, size);                                                                 \
    }                                                                                                                  \
    tessera_status tessera_##op##_workspace_size(const tessera_device *device, const tessera_##op##_traits *traits,    \
                                                 const tessera_##op##_args *args, size_t *bytes) {                     \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_workspace_size(&tessera_##op##_operation, &call, device, traits, args, bytes);             \
    }                                                                                                                  \
    tessera_status tessera_##op##_prepare(const tessera_device *device, const tessera_##op##_traits *traits,           \
                                          const tessera_##op##_args *args) {                                           \
        struct tessera_##op##_call call;                                                                               \
        return tessera_call_prepare(&tessera_##op##_operation, &call, device, traits, args);                           \
    }

#endif
