// SPDX-License-Identifier: MIT
// The pages of a cache that sequences share: a list of the free ones, and sequences that leave them for a while.
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "serving.h"

enum { FREED = 0xff };

tessera_status serving_open_pages(serving_pages *p, const serving_model *m, int32_t count, int32_t rows,
                                  uint64_t seed) {
    const size_t tokens = (size_t)rows * (size_t)m->heads_k;
    *p = (serving_pages){.device = m->device, .count = count, .rows = rows, .free_count = count};
    p->tensors[SERVING_K].page_bytes = p->tensors[SERVING_V].page_bytes =
        tokens * (size_t)m->row_elements * (size_t)m->element_bytes;
    if (m->kv->has_scales)
        p->tensors[SERVING_K_SCALE].page_bytes = p->tensors[SERVING_V_SCALE].page_bytes = tokens * sizeof(float);
    for (int n = 0; n < SERVING_TENSORS; n++) {
        const size_t bytes = p->tensors[n].page_bytes * (size_t)count;
        void *memory = NULL;
        if (bytes == 0) continue;
        TRY(tessera_device_malloc(p->device, bytes, &memory));
        p->tensors[n].memory = memory;
        TRY(tessera_device_set(p->device, memory, FREED, bytes));
    }
    p->free_list = malloc(sizeof *p->free_list * (size_t)count);
    if (!p->free_list) abort();
    for (int32_t n = 0; n < count; n++) { // in any order
        const int32_t other = (int32_t)(example_random(&seed) % (uint64_t)(n + 1));
        p->free_list[n] = p->free_list[other];
        p->free_list[other] = n;
    }
    return TESSERA_SUCCESS;
}

void serving_close_pages(serving_pages *p) {
    for (int n = 0; n < SERVING_TENSORS; n++) tessera_device_free(p->device, p->tensors[n].memory);
    free(p->free_list);
}

int serving_take_page(serving_pages *p, serving_sequence *s) {
    if (p->free_count == 0) return 0;
    s->pages[s->page_count++] = p->free_list[--p->free_count];
    return 1;
}

tessera_status serving_give_pages(serving_pages *p, serving_sequence *s) {
    for (; s->page_count > 0; s->page_count--) {
        const int32_t page = s->pages[s->page_count - 1];
        for (int n = 0; n < SERVING_TENSORS; n++)
            if (p->tensors[n].memory)
                TRY(tessera_device_set(p->device, p->tensors[n].memory + (size_t)page * p->tensors[n].page_bytes, FREED,
                                       p->tensors[n].page_bytes));
        p->free_list[p->free_count++] = page;
    }
    return TESSERA_SUCCESS;
}

// ---- swapping

// Copies the contents of all of a sequence's pages, page by page and tensor by tensor.
static tessera_status copy_pages(const serving_pages *p, const serving_sequence *s, int to_device) {
    char *host = s->swapped;
    for (int32_t i = 0; i < s->page_count; i++)
        for (int n = 0; n < SERVING_TENSORS; n++) {
            const size_t bytes = p->tensors[n].page_bytes;
            char *const there = p->tensors[n].memory + (size_t)s->pages[i] * bytes;
            if (!bytes) continue;
            TRY(to_device ? tessera_device_copy_to(p->device, there, host, bytes)
                          : tessera_device_copy_from(p->device, host, there, bytes));
            host += bytes;
        }
    return TESSERA_SUCCESS;
}

tessera_status serving_swap_out(serving_pages *p, serving_sequence *s) {
    size_t bytes = 0;
    for (int n = 0; n < SERVING_TENSORS; n++) bytes += p->tensors[n].page_bytes * (size_t)s->page_count;
    s->swapped = malloc(bytes + 1);
    if (!s->swapped) abort();
    TRY(copy_pages(p, s, 0));
    s->state = SERVING_SWAPPED;
    return serving_give_pages(p, s);
}

tessera_status serving_swap_in(serving_pages *p, serving_sequence *s) {
    while (s->page_count * p->rows < s->length) serving_take_page(p, s);
    TRY(copy_pages(p, s, 1));
    free(s->swapped);
    s->swapped = NULL;
    s->state = SERVING_RUNNING;
    return TESSERA_SUCCESS;
}
