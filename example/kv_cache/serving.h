// SPDX-License-Identifier: MIT
// What the files of tile_example_kv_cache_serving share: how numbers lie in a cache, the pages that sequences share,
// and what each of them must get.
#ifndef SERVING_H
#define SERVING_H

#include "result.h"
#include "tessera/attention.h"
#include "tessera/device.h"
#include "tessera/turbo4.h"

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const tessera_status status_ = (call);                                                                         \
        if (status_ != TESSERA_SUCCESS) return status_;                                                                \
    } while (0)

typedef struct serving_kv_type serving_kv_type;

typedef struct serving_model {
    tessera_fmha_dtype dtype; // of queries and results
    tessera_type type;        // the same
    int32_t heads, heads_k, hdim;
    const serving_kv_type *kv;
    int32_t element_bytes, row_elements;       // of a row of the cache: the numbers of a token and head
    float centroids[TESSERA_TURBO4_CENTROIDS]; // turbo4
    const tessera_device *device, *alone;      // that serves, and the CPU, where each sequence is checked by itself
} serving_model;

// ---- how a row lies in a cache (serving_types.c): another type is another entry of the list

struct serving_kv_type {
    int32_t element_bytes;                 // 0: as queries
    int32_t (*row_elements)(int32_t hdim); // NULL: the type is not served
    int32_t has_scales;                    // fp32, one of each token and head
    // Writes a row and what it is read as; returns the scale.
    float (*store)(const serving_model *model, const float *x, void *row, float *read);
};
extern const serving_kv_type serving_kv_types[TESSERA_KV_CACHE_DTYPE_COUNT];

// ---- sequences and pages (serving_pages.c)

typedef enum serving_state { SERVING_TO_COME, SERVING_RUNNING, SERVING_SWAPPED, SERVING_GONE } serving_state;

typedef struct serving_sequence {
    serving_state state;
    int32_t number, arrival, prompt, most; // `most`: keys at its end
    int32_t length;                        // keys in the cache
    int32_t *pages, page_count;
    char *swapped;    // the contents of its pages, while it has none
    int64_t since;    // when it began to run, in steps and turns: the newest one is swapped first
    uint64_t random;  // where its next numbers come from
    float *k, *v, *q; // its own contiguous copy, [token, head, hdim], as the cache's numbers are read; its last query
} serving_sequence;

enum { SERVING_K, SERVING_V, SERVING_K_SCALE, SERVING_V_SCALE, SERVING_TENSORS };
typedef struct serving_pages {
    const tessera_device *device;
    int32_t count, rows;
    struct {
        char *memory; // on the device; NULL: there is none
        size_t page_bytes;
    } tensors[SERVING_TENSORS];
    int32_t *free_list, free_count;
} serving_pages;

// Pages that no sequence has hold 0xff, which is NaN in types that have it.
tessera_status serving_open_pages(serving_pages *pages, const serving_model *model, int32_t count, int32_t rows,
                                  uint64_t seed);
void serving_close_pages(serving_pages *pages);
int serving_take_page(serving_pages *pages, serving_sequence *sequence); // 0: there is none
tessera_status serving_give_pages(serving_pages *pages, serving_sequence *sequence);
tessera_status serving_swap_out(serving_pages *pages, serving_sequence *sequence);
tessera_status serving_swap_in(serving_pages *pages, serving_sequence *sequence); // there must be pages

// ---- calls (serving_calls.c)

// Memory of the device that grows.
typedef struct serving_room {
    void *memory;
    size_t bytes;
} serving_room;

typedef struct serving_calls {
    const serving_model *model;
    serving_pages *pages;
    int32_t columns; // pages of the longest sequence
    serving_room q, knew, vnew, o, lengths, table, centroids, workspace;
    double seconds; // in calls
} serving_calls;

// Draws the next `tokens` tokens of each sequence, appends them, and gets what attention says of the last ones: for
// sequence n of the list rows n * heads and so on of o, numbers of the model's type; NULL: it is not asked. The lengths
// grow. `fused`: append and attend are one call.
tessera_status serving_step(serving_calls *calls, serving_sequence *const *list, int32_t count, int32_t tokens,
                            int fused, void *o);
void serving_close_calls(serving_calls *calls);

// ---- what is right (serving_check.c)

// The greatest error of a sequence's heads over what is allowed, against attention over its own copy.
tessera_status serving_check(const serving_model *model, const serving_sequence *sequence, const void *o,
                             double *ratio);

#endif
