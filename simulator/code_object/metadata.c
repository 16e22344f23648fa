// SPDX-License-Identifier: MIT
// Reads the metadata note of a code object, which describes its kernels and their arguments.
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "machine/error.h"
#include "msgpack.h"

struct sim_names {
    struct sim_names *next;
    char text[];
};

const char *tessera_sim_keep_string(tessera_sim_module *module, const char *text, size_t length) {
    struct sim_names *names = malloc(sizeof *names + length + 1);
    if (!names) return NULL;
    memcpy(names->text, text, length);
    names->text[length] = 0;
    names->next = module->names;
    module->names = names;
    return names->text;
}

void tessera_sim_free_strings(tessera_sim_module *module) {
    while (module->names) {
        struct sim_names *names = module->names;
        module->names = names->next;
        free(names);
    }
}

// A key of a map, and the member of a record that its number or string goes to.
struct key {
    const char *name;
    size_t offset;
    bool is_string;
};

static bool read_member(tessera_sim_module *module, const struct key *keys, size_t count,
                        const struct sim_msgpack_value *name, const struct sim_msgpack_value *value, void *record) {
    for (size_t i = 0; i < count; i++) {
        if (!tessera_sim_msgpack_is(name, keys[i].name)) continue;
        void *member = (char *)record + keys[i].offset;
        if (keys[i].is_string && value->kind == SIM_MSGPACK_STRING) {
            const char *text = tessera_sim_keep_string(module, value->text, value->number);
            if (!text) return false;
            memcpy(member, &text, sizeof text);
        } else if (!keys[i].is_string && value->kind == SIM_MSGPACK_INTEGER) {
            const uint32_t number = (uint32_t)value->number;
            memcpy(member, &number, sizeof number);
        }
    }
    return true;
}

static const struct key argument_keys[] = {
    {".name", offsetof(tessera_sim_argument, name), true},
    {".value_kind", offsetof(tessera_sim_argument, value_kind), true},
    {".offset", offsetof(tessera_sim_argument, offset), false},
    {".size", offsetof(tessera_sim_argument, size), false},
};

// The values that are read for a kernel, before they go into its info.
struct kernel_record {
    const char *name, *symbol;
    tessera_sim_kernel_info info;
};

static const struct key kernel_keys[] = {
    {".name", offsetof(struct kernel_record, name), true},
    {".symbol", offsetof(struct kernel_record, symbol), true},
    {".kernarg_segment_size", offsetof(struct kernel_record, info.kernarg_bytes), false},
    {".group_segment_fixed_size", offsetof(struct kernel_record, info.lds_bytes), false},
    {".private_segment_fixed_size", offsetof(struct kernel_record, info.private_bytes), false},
    {".vgpr_count", offsetof(struct kernel_record, info.vgprs), false},
    {".agpr_count", offsetof(struct kernel_record, info.agprs), false},
    {".sgpr_count", offsetof(struct kernel_record, info.sgprs), false},
    {".vgpr_spill_count", offsetof(struct kernel_record, info.vgpr_spills), false},
    {".sgpr_spill_count", offsetof(struct kernel_record, info.sgpr_spills), false},
    {".max_flat_workgroup_size", offsetof(struct kernel_record, info.max_workgroup_size), false},
};

// An array inside a map.
struct list {
    struct sim_msgpack reader;
    uint64_t count;
};

// Reads one map into a record. Skips arrays and maps among its values, but notes where ".args" is.
static bool read_map(tessera_sim_module *module, struct sim_msgpack *reader, const struct key *keys, size_t count,
                     void *record, struct list *arguments) {
    struct sim_msgpack_value map, name, value;
    if (!tessera_sim_msgpack_next(reader, &map) || map.kind != SIM_MSGPACK_MAP) return false;
    for (uint64_t i = 0; i < map.number; i++) {
        if (!tessera_sim_msgpack_next(reader, &name)) return false;
        struct sim_msgpack here = *reader;
        if (!tessera_sim_msgpack_next(&here, &value) || !tessera_sim_msgpack_skip(reader)) return false;
        if (!read_member(module, keys, count, &name, &value, record)) return false;
        if (arguments && tessera_sim_msgpack_is(&name, ".args") && value.kind == SIM_MSGPACK_ARRAY) {
            arguments->reader = here; // at the first element
            arguments->count = value.number;
        }
    }
    return true;
}

static bool read_arguments(tessera_sim_module *module, const struct list *list, tessera_sim_kernel *kernel) {
    struct sim_msgpack reader = list->reader;
    const size_t count = list->count;
    if (count > (size_t)(reader.end - reader.at)) return false;
    kernel->arguments = calloc(count ? count : 1, sizeof *kernel->arguments);
    if (!kernel->arguments) return false;
    kernel->info.arguments = kernel->arguments;
    kernel->info.argument_count = count;
    kernel->info.explicit_kernarg_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        tessera_sim_argument *argument = &kernel->arguments[i];
        argument->name = argument->value_kind = "";
        if (!read_map(module, &reader, argument_keys, sizeof argument_keys / sizeof *argument_keys, argument, NULL))
            return false;
        const uint32_t end = argument->offset + argument->size;
        if (strncmp(argument->value_kind, "hidden_", 7) != 0 && end > kernel->info.explicit_kernarg_bytes)
            kernel->info.explicit_kernarg_bytes = end;
    }
    return true;
}

static tessera_sim_kernel *find_symbol(tessera_sim_module *module, const char *symbol) {
    const size_t length = strlen(symbol);
    for (size_t i = 0; i < module->kernel_count; i++) {
        const char *name = module->kernels[i].info.name;
        if (length == strlen(name) + 3 && strncmp(symbol, name, length - 3) == 0) return &module->kernels[i];
    }
    return NULL;
}

static bool read_kernel(tessera_sim_module *module, struct sim_msgpack *reader) {
    struct kernel_record record = {.symbol = ""};
    struct list arguments = {0};
    if (!read_map(module, reader, kernel_keys, sizeof kernel_keys / sizeof *kernel_keys, &record, &arguments))
        return false;
    tessera_sim_kernel *kernel = find_symbol(module, record.symbol);
    if (!kernel) return true;
    record.info.name = record.name ? record.name : kernel->info.name;
    kernel->info = record.info;
    return read_arguments(module, &arguments, kernel);
}

tessera_status tessera_sim_read_metadata(tessera_sim_module *module, const uint8_t *note, size_t bytes) {
    struct sim_msgpack reader = {note, note + bytes};
    struct sim_msgpack_value map, name, list;
    bool good = tessera_sim_msgpack_next(&reader, &map) && map.kind == SIM_MSGPACK_MAP;
    for (uint64_t i = 0; good && i < map.number; i++) {
        good = tessera_sim_msgpack_next(&reader, &name);
        if (!good || !tessera_sim_msgpack_is(&name, "amdhsa.kernels")) {
            good = good && tessera_sim_msgpack_skip(&reader);
            continue;
        }
        good = tessera_sim_msgpack_next(&reader, &list) && list.kind == SIM_MSGPACK_ARRAY;
        for (uint64_t k = 0; good && k < list.number; k++) good = read_kernel(module, &reader);
    }
    if (!good) return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "image: its metadata note cannot be read");
    return TESSERA_SUCCESS;
}
