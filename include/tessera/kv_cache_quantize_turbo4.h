// SPDX-License-Identifier: MIT
// Writes new keys and values to pages of a turbo4 cache (tessera/turbo4.h has the slot), as vLLM's reshape_and_cache
// does for other types.
//
// For every token t and head g, with x = knew[t, g, :], rotated as tessera/hadamard_rotate.h does it if has_rotation,
// and slot s = slot_mapping[t]:
//
//   norm     |x| in fp32, rounded to fp16, to nearest even; infinity from 65520 on
//   number i that of the centroid nearest to x[i] / |x| in fp32; of two as near the smaller one
//
// go to row s % page_block_size of page s / page_block_size of k. The same of vnew and v. Tokens with a slot below 0
// are left out. Of a row whose norm before rounding is 0 the numbers are those of 0; of one whose norm is NaN or
// infinite they are any, and its norm is NaN or infinity.
#ifndef TESSERA_KV_CACHE_QUANTIZE_TURBO4_H
#define TESSERA_KV_CACHE_QUANTIZE_TURBO4_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_kv_cache_quantize_turbo4_traits {
    size_t struct_size;           // sizeof(tessera_kv_cache_quantize_turbo4_traits)
    int32_t hdim_q, hdim_v;       // of k and v: even, 2 .. 512; with has_rotation 64, 128, 256
    tessera_fmha_dtype data_type; // of knew and vnew: fp32, fp16, bf16
    int32_t has_rotation;
} tessera_kv_cache_quantize_turbo4_traits;

// Pointers are aligned to the element, slots and norms within them to nothing. Outputs overlap nothing. Memory must
// stay valid until the stream has finished the call.
//
//   tensor           indexed by                                                       innermost      strides count
//   knew, vnew       stride (t), nhead_stride (g)                                     hdim_q, hdim_v elements
//   k, v             batch_stride (page), nhead_stride (g), stride (row of the page)  a slot         bytes
//   k_norm, v_norm   likewise                                                         1 fp16         elements
//   centroids        [16] fp32 in ascending order, as tessera_turbo4_codebook() has them
//   slot_mapping     [tokens] int64
//
// Norms lie in slots where k_norm_ptr and v_norm_ptr are NULL. A slot that two tokens have holds the bytes of either.
// On the CPU a call refuses slots that are not below num_total_pages * page_block_size and centroids that do not
// ascend; on GPUs it leaves such tokens out as those below 0. There hdim_q is hdim_v and 64, 128 or 256, tokens *
// nhead_k is at most 2^24 and num_total_pages * page_block_size less than 2^31. A GPU reads rows by vectors where they
// begin at multiples of 16 bytes, and slots at even addresses.
typedef struct tessera_kv_cache_quantize_turbo4_args {
    size_t struct_size; // sizeof(tessera_kv_cache_quantize_turbo4_args)

    const void *knew_ptr, *vnew_ptr;
    void *k_ptr, *v_ptr;
    void *k_norm_ptr, *v_norm_ptr; // both or neither
    const void *centroids_ptr, *slot_mapping_ptr;

    int32_t tokens, nhead_k; // 0 or more, 1 or more
    int32_t num_total_pages; // 0 or more
    int32_t page_block_size; // 1 or more

    int64_t stride_knew, stride_vnew, stride_k, stride_v;
    int64_t nhead_stride_knew, nhead_stride_vnew, nhead_stride_k, nhead_stride_v;
    int64_t batch_stride_k, batch_stride_v;
    int64_t stride_k_norm, nhead_stride_k_norm, batch_stride_k_norm;
    int64_t stride_v_norm, nhead_stride_v_norm, batch_stride_v_norm;

    void *workspace_ptr; // none is needed
    size_t workspace_size;
    const struct tessera_kv_cache_quantize_turbo4_instance *instance; // that must be taken; NULL: that of least cost
} tessera_kv_cache_quantize_turbo4_args;

typedef struct tessera_kv_cache_quantize_turbo4_instance tessera_kv_cache_quantize_turbo4_instance;

TESSERA_INIT(tessera_kv_cache_quantize_turbo4_traits)
TESSERA_INIT(tessera_kv_cache_quantize_turbo4_args)

// tessera_kv_cache_quantize_turbo4_check() reads centroids and slot_mapping. On the CPU a call reads them too.
TESSERA_CALLS(kv_cache_quantize_turbo4)

#ifdef __cplusplus
}
#endif
#endif
