// SPDX-License-Identifier: MIT
// Where the device reads no host memory: a copy of each buffer that is in use, made through the library. A copy has the
// guard zones of its buffer, but for a simulated device, which notices every access beside an allocation.
#include <string.h>

#include "fmha_fwd_problem.h"

int fmha_fwd_on_cpu(const fmha_fwd_problem *p) { return strncmp(tessera_device_name(p->device), "cpu", 3) == 0; }
int fmha_fwd_is_simulated(const fmha_fwd_problem *p) { return strncmp(tessera_device_name(p->device), "sim:", 4) == 0; }

static int64_t guard_bytes(const fmha_fwd_problem *p) { return fmha_fwd_is_simulated(p) ? 0 : FMHA_FWD_GUARD; }

// The copy begins as far from a multiple of 64 bytes as the buffer does.
static int64_t lead_bytes(const fmha_fwd_problem *p, fmha_fwd_buffer_id id) {
    return guard_bytes(p) + p->buffers[id].offset % 64;
}

static void *device_pointer(const fmha_fwd_problem *p, fmha_fwd_buffer_id id) {
    return p->buffers[id].used ? (char *)p->buffers[id].device_memory + lead_bytes(p, id) : NULL;
}

tessera_fmha_fwd_args fmha_fwd_device_args(const fmha_fwd_problem *p) {
    tessera_fmha_fwd_args args = p->args;
    if (!fmha_fwd_on_cpu(p)) fmha_fwd_set_pointers(p, device_pointer, &args);
    return args;
}

static tessera_status copy_buffer(const fmha_fwd_problem *p, fmha_fwd_buffer_id id, int to_device) {
    const fmha_fwd_buffer *buffer = &p->buffers[id];
    uint8_t *host = p->arena + buffer->offset - guard_bytes(p);
    char *device = (char *)buffer->device_memory + lead_bytes(p, id) - guard_bytes(p);
    size_t bytes = (size_t)(buffer->bytes + 2 * guard_bytes(p));
    return to_device ? tessera_device_copy_to(p->device, device, host, bytes)
                     : tessera_device_copy_from(p->device, host, device, bytes);
}

static tessera_status copy_all(const fmha_fwd_problem *p, int to_device) {
    tessera_status status = TESSERA_SUCCESS;
    fmha_fwd_unguard(p);
    for (int id = 0; id < BUFFER_COUNT && status == TESSERA_SUCCESS; id++)
        if (p->buffers[id].used) status = copy_buffer(p, (fmha_fwd_buffer_id)id, to_device);
    fmha_fwd_guard(p);
    return status;
}

fmha_fwd_outcome fmha_fwd_upload(fmha_fwd_problem *p, fmha_fwd_result *result) {
    if (fmha_fwd_on_cpu(p)) return FMHA_FWD_OK;
    for (int id = 0; id < BUFFER_COUNT; id++) {
        fmha_fwd_buffer *buffer = &p->buffers[id];
        if (!buffer->used || buffer->device_memory) continue;
        int64_t bytes = lead_bytes(p, (fmha_fwd_buffer_id)id) + buffer->bytes + guard_bytes(p);
        // At least one byte, so that an empty tensor has an address too.
        tessera_status status = tessera_device_malloc(p->device, (size_t)bytes + !bytes, &buffer->device_memory);
        if (status != TESSERA_SUCCESS) return fmha_fwd_fail_status(result, status, "tessera_device_malloc");
    }
    tessera_status status = copy_all(p, 1);
    return status == TESSERA_SUCCESS ? FMHA_FWD_OK : fmha_fwd_fail_status(result, status, "tessera_device_copy_to");
}

fmha_fwd_outcome fmha_fwd_download(fmha_fwd_problem *p, fmha_fwd_result *result) {
    if (fmha_fwd_on_cpu(p)) return FMHA_FWD_OK;
    tessera_status status = copy_all(p, 0);
    return status == TESSERA_SUCCESS ? FMHA_FWD_OK : fmha_fwd_fail_status(result, status, "tessera_device_copy_from");
}

void fmha_fwd_free_device_memory(fmha_fwd_problem *p) {
    for (int id = 0; id < BUFFER_COUNT; id++)
        if (p->buffers[id].device_memory) tessera_device_free(p->device, p->buffers[id].device_memory);
}
