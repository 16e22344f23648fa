// SPDX-License-Identifier: MIT
// What the operations of attention share. Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_ATTENTION_H
#define TESSERA_RUNTIME_OPS_ATTENTION_H

#include "internal.h"
#include "tensors.h"
#include "tessera/attention.h"

// How the tensors of a combination are stored. E4M3 stands for the device's own.
struct tessera_attention_storages {
    tessera_type qkv, o, bias;
};
extern const struct tessera_attention_storages tessera_attention_storages[TESSERA_FMHA_DTYPE_COUNT];

enum { TESSERA_ATTENTION_MAX_SEQLEN = INT32_MAX / 2 }; // mask arithmetic of kernels stays within int32

// Dropout numbers an element by 24 bits of its query, 24 bits of its key, and 20 bits of its batch and head.
enum { TESSERA_DROPOUT_SEQLEN = 1 << 24, TESSERA_DROPOUT_HEADS = 1 << 20 };
// It keeps an element whose byte is at most this, of the share that it keeps.
uint32_t tessera_attention_keep_below(float keep);

// Arrays of lengths, as a call gives them.
struct tessera_attention_lengths {
    bool is_group_mode;
    bool is_cached;             // keys lie in a cache: seqstart_k does not matter
    int32_t seqlen_q, seqlen_k; // batch mode
    const int32_t *seqstart_q, *seqstart_k;
    const int32_t *seqlen_q_ptr, *seqlen_k_ptr, *cu_seqlen_q, *cu_seqlen_k;
};

// Those of traits and arguments whose fields have the usual names.
#define TESSERA_ATTENTION_LENGTHS(t, a)                                                                                \
    {                                                                                                                  \
        .is_group_mode = (t)->is_group_mode, .seqlen_q = (a)->seqlen_q, .seqlen_k = (a)->seqlen_k,                     \
        .seqstart_q = (a)->seqstart_q_ptr, .seqstart_k = (a)->seqstart_k_ptr, .seqlen_q_ptr = (a)->seqlen_q_ptr,       \
        .seqlen_k_ptr = (a)->seqlen_k_ptr, .cu_seqlen_q = (a)->cu_seqlen_q_ptr, .cu_seqlen_k = (a)->cu_seqlen_k_ptr    \
    }

// Adds those that count, with the names of the arguments' fields.
void tessera_attention_add_lengths(const struct tessera_attention_lengths *lengths, int32_t batch,
                                   struct tessera_tensors *all);

struct tessera_attention_sequence {
    int32_t batch;
    int32_t seqlen_q, seqlen_k;     // logical lengths
    int32_t physical_q, physical_k; // room that the tensors have for them
    int64_t token_q, token_k;       // group mode: the first token; batch mode: 0
};
struct tessera_attention_sequence tessera_attention_get_sequence(const struct tessera_attention_lengths *lengths,
                                                                 int32_t batch);

// Whether the logical lengths are within the room.
tessera_status tessera_attention_check_room(const struct tessera_attention_sequence *sequence);

// The mask's window and ALiBi's zero point for one sequence, as tessera/fmha_fwd.h defines them and kernels get them.
struct tessera_attention_mask {
    int32_t mask_y, mask_x, sink, alibi_shift, alibi_vertical;
};
struct tessera_attention_mask tessera_attention_get_mask(tessera_mask type, int32_t left, int32_t right,
                                                         int32_t sink_size,
                                                         const struct tessera_attention_sequence *sequence);

#endif
