// SPDX-License-Identifier: MIT
// Where keys lie in a cache: the table says in which page.
//
// Takes args, PAGED.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SPOTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SPOTS_H

#include "tessera/device/attention/cuda/task.h"

struct spot {
    int page, row;
};

// Rows of its first page that lie before a sequence's first key.
INLINE int first_key_of(const args *a, int batch) { return a->pages.offset ? read_int(a->pages.offset, batch) : 0; }

INLINE struct spot spot_of(const args *a, int batch, int key) {
    const struct tessera_fmha_fwd_cuda_pages *const p = &a->pages;
    const int64_t begin = p->begin ? read_int(p->begin, batch) : batch * p->table_stride;
    const uint32_t at = (uint32_t)(key + first_key_of(a, batch)), page = at / (uint32_t)p->page_size;
    return (struct spot){read_int(p->table + begin, (int)page), (int)(at - page * (uint32_t)p->page_size)};
}

#endif
