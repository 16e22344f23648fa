// SPDX-License-Identifier: MIT
// Where the device reads no host memory: a copy of each buffer that is in use, made through the library. A copy has the
// guard zones of its buffer, but where every access beside an allocation is noticed, as on a simulated device.
#include <stdlib.h>
#include <string.h>

#include "problem.h"

int example_on_cpu(const example_problem *p) { return strncmp(tessera_device_name(p->device), "cpu", 3) == 0; }
int example_is_simulated(const example_problem *p) { return strncmp(tessera_device_name(p->device), "sim:", 4) == 0; }

int example_threads(const example_problem *p) {
    return p->options->threads > 0 ? p->options->threads : tessera_num_threads();
}

static int64_t guard_bytes(const example_problem *p) { return p->bare || example_is_simulated(p) ? 0 : EXAMPLE_GUARD; }

// Whether the sanitizer watches. A workspace is left undefined then, so that a call may use only what it wrote itself.
static int is_sanitized(const example_problem *p) {
    const char *const value = getenv("TESSERA_SIM_SANITIZE");
    return example_is_simulated(p) && value && strcmp(value, "1") == 0;
}

// The copy begins as far from a multiple of 64 bytes as the buffer does.
static int64_t lead_bytes(const example_problem *p, int tensor) {
    return guard_bytes(p) + p->buffers[tensor].offset % 64;
}

static void *device_pointer(const example_problem *p, int tensor) {
    return p->buffers[tensor].used ? (char *)p->buffers[tensor].device_memory + lead_bytes(p, tensor) : NULL;
}

static tessera_status copy(const example_problem *p, uint8_t *host, void *device, size_t bytes, int to_device) {
    return to_device ? tessera_device_copy_to(p->device, device, host, bytes)
                     : tessera_device_copy_from(p->device, host, device, bytes);
}

static tessera_status copy_all(const example_problem *p, int to_device) {
    const int64_t guard = guard_bytes(p);
    tessera_status status = TESSERA_SUCCESS;
    example_unguard(p);
    for (int n = 0; n < p->program->tensor_count && status == TESSERA_SUCCESS; n++) {
        const example_buffer *buffer = &p->buffers[n];
        if (!buffer->used) continue;
        status = copy(p, p->arena + buffer->offset - guard, (char *)buffer->device_memory + lead_bytes(p, n) - guard,
                      (size_t)(buffer->bytes + 2 * guard), to_device);
    }
    if (p->device_workspace && guard && status == TESSERA_SUCCESS) // else there is nothing to check
        status = copy(p, p->workspace + EXAMPLE_GUARD - guard, p->device_workspace,
                      (size_t)(p->workspace_bytes + 2 * guard), to_device);
    example_guard(p);
    return status;
}

example_outcome example_upload(example_problem *p, example_result *result) {
    const size_t bytes = p->program->calls->args_bytes;
    if (example_on_cpu(p)) return p->device_args = p->args, EXAMPLE_OK;
    for (int n = 0; n < p->program->tensor_count; n++) {
        example_buffer *buffer = &p->buffers[n];
        if (!buffer->used || buffer->device_memory) continue;
        const int64_t all = lead_bytes(p, n) + buffer->bytes + guard_bytes(p);
        // At least one byte, so that an empty tensor has an address too.
        tessera_status status = tessera_device_malloc(p->device, (size_t)all + !all, &buffer->device_memory);
        if (status != TESSERA_SUCCESS) return example_fail_status(result, status, "tessera_device_malloc");
    }
    if (!p->device_args) p->device_args = malloc(bytes);
    if (!p->device_args) return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory");
    memcpy(p->device_args, p->args, bytes);
    example_set_pointers(p, device_pointer, p->device_args);
    tessera_status status = copy_all(p, 1);
    return status == TESSERA_SUCCESS ? EXAMPLE_OK : example_fail_status(result, status, "tessera_device_copy_to");
}

example_outcome example_download(example_problem *p, example_result *result) {
    if (example_on_cpu(p)) return EXAMPLE_OK;
    tessera_status status = copy_all(p, 0);
    return status == TESSERA_SUCCESS ? EXAMPLE_OK : example_fail_status(result, status, "tessera_device_copy_from");
}

static void free_workspace(example_problem *p) {
    if (p->device_workspace) tessera_device_free(p->device, p->device_workspace);
    free(p->workspace);
    p->device_workspace = NULL;
    p->workspace = NULL;
}

static void set_workspace(example_problem *p, void *args, void *pointer) {
    *(void **)example_field(args, p->program->calls->workspace_ptr) = pointer;
    *(size_t *)example_field(args, p->program->calls->workspace_size) = (size_t)p->workspace_bytes;
}

// Memory for `bytes` with guard zones around it.
example_outcome example_make_workspace(example_problem *p, size_t bytes, example_result *result) {
    const size_t rounded = (bytes + 63) / 64 * 64;
    free_workspace(p);
    p->workspace_bytes = (int64_t)bytes;
    set_workspace(p, p->device_args, NULL);
    if (bytes == 0) return EXAMPLE_OK;
    p->workspace = aligned_alloc(64, rounded + 2 * EXAMPLE_GUARD);
    if (!p->workspace) return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for %zu bytes of workspace", bytes);
    memset(p->workspace, EXAMPLE_GUARD_BYTE, EXAMPLE_GUARD);
    memset(p->workspace + EXAMPLE_GUARD, EXAMPLE_UNWRITTEN_BYTE, bytes);
    memset(p->workspace + EXAMPLE_GUARD + bytes, EXAMPLE_GUARD_BYTE, rounded - bytes + EXAMPLE_GUARD);
    if (example_on_cpu(p)) return set_workspace(p, p->args, p->workspace + EXAMPLE_GUARD), EXAMPLE_OK;

    const size_t guard = (size_t)guard_bytes(p);
    tessera_status status = tessera_device_malloc(p->device, bytes + 2 * guard, &p->device_workspace);
    if (status != TESSERA_SUCCESS) return example_fail_status(result, status, "tessera_device_malloc");
    set_workspace(p, p->device_args, (char *)p->device_workspace + guard);
    if (is_sanitized(p)) return EXAMPLE_OK;
    status = copy(p, p->workspace + EXAMPLE_GUARD - guard, p->device_workspace, bytes + 2 * guard, 1);
    return status == TESSERA_SUCCESS ? EXAMPLE_OK : example_fail_status(result, status, "tessera_device_copy_to");
}

void example_free_device_memory(example_problem *p) {
    for (int n = 0; n < p->program->tensor_count; n++)
        if (p->buffers[n].device_memory) tessera_device_free(p->device, p->buffers[n].device_memory);
    free_workspace(p);
    if (p->device_args != p->args) free(p->device_args);
}
