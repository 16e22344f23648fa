// SPDX-License-Identifier: MIT
// The functions of an operation (tessera/call.h) without its types, as the harness calls them.
#ifndef EXAMPLE_CALLS_H
#define EXAMPLE_CALLS_H

#include "tessera/call.h"
#include "tessera/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct example_calls {
    const char *operation;
    size_t args_bytes, workspace_ptr, workspace_size, instance; // of the args struct, and where these lie in it
    const tessera_table *(*get_table)(void);
    tessera_status (*call)(const tessera_device *device, const void *traits, const void *args);
    tessera_status (*check)(const void *traits, const void *args);
    tessera_status (*select)(const tessera_device_facts *facts, const void *traits, const void *args,
                             const tessera_instance **out);
    size_t (*explain)(const tessera_device_facts *facts, const void *traits, const void *args, tessera_explain how,
                      char *text, size_t size);
    size_t (*ck_name)(const tessera_instance *instance, const void *traits, const void *args, char *text, size_t size);
    tessera_status (*workspace_bytes)(const tessera_device *device, const void *traits, const void *args,
                                      size_t *bytes);
    tessera_status (*prepare)(const tessera_device *device, const void *traits, const void *args);
} example_calls;

// Defines `op_calls`.
#define EXAMPLE_CALLS(op)                                                                                              \
    TESSERA_API const tessera_table *tessera_##op##_get_table(void);                                                   \
    static tessera_status op##_call(const tessera_device *device, const void *traits, const void *args) {              \
        return tessera_##op(device, traits, args, NULL);                                                               \
    }                                                                                                                  \
    static tessera_status op##_check(const void *traits, const void *args) {                                           \
        return tessera_##op##_check(traits, args);                                                                     \
    }                                                                                                                  \
    static tessera_status op##_select(const tessera_device_facts *facts, const void *traits, const void *args,         \
                                      const tessera_instance **out) {                                                  \
        const tessera_##op##_instance *instance = NULL;                                                                \
        tessera_status status = tessera_##op##_select(facts, traits, args, &instance);                                 \
        *out = (const tessera_instance *)(const void *)instance;                                                       \
        return status;                                                                                                 \
    }                                                                                                                  \
    static size_t op##_explain(const tessera_device_facts *facts, const void *traits, const void *args,                \
                               tessera_explain how, char *text, size_t size) {                                         \
        return tessera_##op##_explain(facts, traits, args, how, text, size);                                           \
    }                                                                                                                  \
    static size_t op##_ck_name(const tessera_instance *instance, const void *traits, const void *args, char *text,     \
                               size_t size) {                                                                          \
        return tessera_##op##_ck_name((const tessera_##op##_instance *)(const void *)instance, traits, args, text,     \
                                      size);                                                                           \
    }                                                                                                                  \
    static tessera_status op##_workspace_bytes(const tessera_device *device, const void *traits, const void *args,     \
                                               size_t *bytes) {                                                        \
        return tessera_##op##_workspace_size(device, traits, args, bytes);                                             \
    }                                                                                                                  \
    static tessera_status op##_prepare(const tessera_device *device, const void *traits, const void *args) {           \
        return tessera_##op##_prepare(device, traits, args);                                                           \
    }                                                                                                                  \
    static const example_calls op##_calls = {                                                                          \
        .operation = #op,                                                                                              \
        .args_bytes = sizeof(tessera_##op##_args),                                                                     \
        .workspace_ptr = offsetof(tessera_##op##_args, workspace_ptr),                                                 \
        .workspace_size = offsetof(tessera_##op##_args, workspace_size),                                               \
        .instance = offsetof(tessera_##op##_args, instance),                                                           \
        .get_table = tessera_##op##_get_table,                                                                         \
        .call = op##_call,                                                                                             \
        .check = op##_check,                                                                                           \
        .select = op##_select,                                                                                         \
        .explain = op##_explain,                                                                                       \
        .ck_name = op##_ck_name,                                                                                       \
        .workspace_bytes = op##_workspace_bytes,                                                                       \
        .prepare = op##_prepare,                                                                                       \
    };

#ifdef __cplusplus
}
#endif
#endif
