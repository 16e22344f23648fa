// SPDX-License-Identifier: MIT
// Prints a generated dispatch table, slice by slice and combination by combination, for test_table.py to compare.
#include <stdio.h>

#include "tessera/dispatch.h"

static int holds(unsigned set, int value) { return set >> value & 1; }

static void print_slices(const tessera_fmha_fwd_table *t) {
    const tessera_fmha_fwd_slice *slice = t->slices;
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        for (int type = 0; type < TESSERA_DTYPE_COUNT; type++)
            for (uint32_t b = 0; b < t->bucket_count; b++, slice++)
                for (uint32_t i = slice->first; i < slice->first + slice->count; i++)
                    printf("slice %d %d %d %s\n", target, type, t->bucket_hdim[b], t->rows[t->order[i]].name);
}

static void print_served(const char *name, const tessera_fmha_fwd_served *s) {
    for (int type = 0; type < TESSERA_DTYPE_COUNT; type++)
        for (int mask = 0; mask < TESSERA_MASK_COUNT; mask++)
            for (int bias = 0; bias < TESSERA_BIAS_COUNT; bias++)
                for (int qscale = 0; qscale < TESSERA_QSCALE_COUNT; qscale++)
                    for (int flags = 0; flags < 16; flags++) {
                        int mode = flags & 1, v = flags >> 1 & 1, cap = flags >> 2 & 1, drop = flags >> 3;
                        if (holds(s->data_type, type) && holds(s->mask, mask) && holds(s->bias, bias) &&
                            holds(s->qscale, qscale) && holds(s->mode, mode) && holds(s->v_rowmajor, v) &&
                            holds(s->soft_cap, cap) && holds(s->dropout, drop))
                            printf("served %s %d %d %d %d %d %d %d %d  %d %d %d  %d %d %d  %d %d %d\n", name, type,
                                   mode, v, cap, bias, mask, drop, qscale, s->hdim_q_min, s->hdim_q_max,
                                   s->hdim_q_multiple, s->hdim_v_min, s->hdim_v_max, s->hdim_v_multiple, s->lse,
                                   s->skip, s->sink);
                    }
}

int main(void) {
    const tessera_fmha_fwd_table *t = tessera_fmha_fwd_get_table();
    print_slices(t);
    for (uint32_t r = 0; r < t->row_count; r++)
        if (t->rows[r].symbol) printf("kernel %s %s %u\n", t->rows[r].name, t->rows[r].symbol, t->rows[r].threads);
    for (uint32_t r = 0; r < t->row_count; r++)
        for (uint32_t p = 0; p < t->rows[r].served_count; p++) print_served(t->rows[r].name, &t->rows[r].served[p]);
}
