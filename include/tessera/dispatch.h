// SPDX-License-Identifier: MIT
// The form of the generated dispatch tables. A build's own table is declared in its generated tessera_fmha_fwd_table.h.
#ifndef TESSERA_DISPATCH_H
#define TESSERA_DISPATCH_H

#include "tessera/kernel/fmha_fwd_cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

// A product of sets of trait values; bit v of a set is set when value v is served. Booleans have bits 0 and 1.
typedef struct tessera_fmha_fwd_served {
    uint16_t data_type, mask, bias, qscale;
    uint8_t mode, v_rowmajor, soft_cap, lse, dropout, skip, sink;
    uint16_t hdim_q_min, hdim_q_max, hdim_q_multiple; // min <= hdim_q <= max and hdim_q % multiple == 0
    uint16_t hdim_v_min, hdim_v_max, hdim_v_multiple;
} tessera_fmha_fwd_served;

// CK's tile, and the warps' shapes.
typedef struct tessera_fmha_fwd_tile {
    uint16_t bm0, bn0, bk0, bn1, bk1, bk0max; // bn1, bk0max 0: those of the head dims (v, q) in the call's CK name
    uint16_t rm0, rn0, rk0, rm1, rn1, rk1;    // warps (CPU: threads that share a tile) along m, n, k of both products
    uint16_t wm0, wn0, wk0, wm1, wn1, wk1;    // MMA shape (CPU: register tile)
} tessera_fmha_fwd_tile;

struct tessera_fmha_fwd_instance {
    const char *name; // short name
    tessera_target target;
    const tessera_fmha_fwd_served *served; // disjoint products whose union is what this instance serves
    uint32_t served_count;
    tessera_fmha_fwd_tile tile;
    const char *pipeline, *epilogue; // "qr", "store"
    float macs_per_cycle;            // estimated rate of one compute unit in the main loop
    float tile_cycles;               // estimated overhead of one tile of bm0 x bn0
    tessera_fmha_fwd_cpu_run *run;   // CPU instances
    tessera_fmha_fwd_cpu_combine *combine;
    tessera_fmha_fwd_cpu_scratch *scratch_bytes;
    const char *symbol;  // GPU instances: the kernel, which names its code object in the target's pack; else NULL
    uint32_t threads;    // GPU instances: those of a workgroup
    uint32_t workgroups; // GPU instances: that a compute unit has room for
    float alone_cycles, busy_cycles; // GPU instances: a block's, see runtime/fmha_fwd_cost_cdna.c
    uint32_t alignment;              // bytes that every row of q, k, v and o begins at a multiple of; 0: the element's
};

// Rows that may serve (target, data_type, bucket of hdim): order[first .. first + count) are row numbers. Buckets:
// tessera_fmha_fwd_table.bucket_hdim[i] is the greatest max(hdim_q, hdim_v) of bucket i.
typedef struct tessera_fmha_fwd_slice {
    uint32_t first, count;
} tessera_fmha_fwd_slice;

typedef struct tessera_fmha_fwd_table {
    const struct tessera_fmha_fwd_instance *rows;
    uint32_t row_count;
    const uint16_t *bucket_hdim; // ascending
    uint32_t bucket_count;
    const tessera_fmha_fwd_slice *slices; // [target][data_type][bucket]
    const uint32_t *order;
    uint64_t ck_combinations; // names of CK that the rows cover
} tessera_fmha_fwd_table;

// Selection over any table, as tests and tools need it; tessera_fmha_fwd_select() is this over the build's own.
TESSERA_API tessera_status tessera_fmha_fwd_table_select(const tessera_fmha_fwd_table *table,
                                                         const tessera_device_facts *facts,
                                                         const tessera_fmha_fwd_traits *traits,
                                                         const tessera_fmha_fwd_args *args,
                                                         const tessera_fmha_fwd_instance **out);
TESSERA_API size_t tessera_fmha_fwd_table_explain(const tessera_fmha_fwd_table *table,
                                                  const tessera_device_facts *facts,
                                                  const tessera_fmha_fwd_traits *traits,
                                                  const tessera_fmha_fwd_args *args, tessera_explain how, char *text,
                                                  size_t size);

// The table that this library was generated with.
TESSERA_API const tessera_fmha_fwd_table *tessera_fmha_fwd_get_table(void);

#ifdef __cplusplus
}
#endif
#endif
