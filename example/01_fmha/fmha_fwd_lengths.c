// SPDX-License-Identifier: MIT
// Lengths and rooms of the sequences, which are given, drawn, padded or shortened.
#include "fmha_fwd_problem.h"

#include <inttypes.h>
#include <stdlib.h>

// Sets the rooms of q or of k and v: the pads where given, else 0.
static example_outcome settle_rooms(fmha_fwd_problem *p, const char *name, int32_t pad, const int32_t *list,
                                    int32_t *rooms, example_result *result) {
    if (list && !p->options.mode) return EXAMPLE_WRONG("-%s: one value in batch mode (-mode=0)", name);
    for (int32_t b = 0; b < p->options.b; b++) {
        int32_t room = list ? list[b] : pad;
        if (room == 0 || room < -1)
            return EXAMPLE_WRONG("-%s=%d: at least the sequence's length, or -1 for none", name, room);
        rooms[b] = room > 0 ? room : 0;
    }
    return EXAMPLE_OK;
}

// Sets the logical lengths of q or of k and v: from a list, drawn up to `rooms`, or all the same.
static example_outcome settle_lengths(fmha_fwd_problem *p, const char *name, int32_t mean, const int32_t *list,
                                      int32_t least, const int32_t *rooms, uint64_t salt, int32_t *lengths,
                                      example_result *result) {
    const fmha_fwd_options *o = &p->options;
    if (list && !o->mode)
        return EXAMPLE_WRONG("-%s: one length in batch mode (-mode=0); see -q_eff_lens, -kv_eff_lens", name);
    if (o->mode && !list && (int64_t)mean * o->b > INT32_MAX)
        return EXAMPLE_WRONG("-%s=%d: -b=%d sequences of that mean are longer than %d in all", name, mean, o->b,
                             INT32_MAX);
    if (!list && mean < least) return EXAMPLE_WRONG("-%s=%d: at least %d", name, mean, least);
    for (int32_t b = 0; b < o->b; b++) {
        lengths[b] = list ? list[b] : mean;
        if (lengths[b] < 0) return EXAMPLE_WRONG("-%s: length %d of sequence %d is less than 0", name, lengths[b], b);
        if (rooms[b] && lengths[b] > rooms[b])
            return EXAMPLE_WRONG("-%s: length %d of sequence %d does not fit its pad of %d", name, lengths[b], b,
                                 rooms[b]);
    }
    if (o->mode && !list) fmha_fwd_draw_lengths(p->base.seed + salt, o->b, mean, rooms, lengths);
    return EXAMPLE_OK;
}

static example_outcome apply_effective(fmha_fwd_problem *p, const char *name, const int32_t *list, int32_t *lengths,
                                       example_result *result) {
    if (!list) return EXAMPLE_OK;
    if (p->options.mode)
        return EXAMPLE_WRONG("-%s: for batch mode; with -mode=1 use -s, -s_k, -s_qpad and -s_kpad", name);
    for (int32_t b = 0; b < p->options.b; b++) {
        if (list[b] < 0 || list[b] > lengths[b])
            return EXAMPLE_WRONG("-%s: %d of sequence %d is not between 0 and its length of %d", name, list[b], b,
                                 lengths[b]);
        lengths[b] = list[b];
    }
    return EXAMPLE_OK;
}

// Sets the shape of the tensors. Sums of lengths in group mode are int32 in the API.
static example_outcome settle_shape(fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *o = &p->options;
    int64_t total_q = 0, total_k = 0;
    for (int32_t b = 0; b < o->b; b++) {
        if (!p->room_q[b]) p->room_q[b] = p->seqlen_q[b];
        if (!p->room_k[b]) p->room_k[b] = p->seqlen_k[b];
        // A byte of mxfp4 holds two keys of v in column-major order, both of one sequence.
        if (o->mode && p->dtype == TESSERA_FMHA_MXFP4 && o->vlayout[0] == 'c') p->room_k[b] += p->room_k[b] % 2;
        if (p->seqlen_q[b] > p->max_seqlen_q) p->max_seqlen_q = p->seqlen_q[b];
        if (p->seqlen_k[b] > p->max_seqlen_k) p->max_seqlen_k = p->seqlen_k[b];
        total_q += p->room_q[b];
        total_k += p->room_k[b];
    }
    if (o->mode && (total_q > INT32_MAX || total_k > INT32_MAX))
        return EXAMPLE_WRONG("-b=%d sequences have %" PRId64 " queries and %" PRId64 " keys in all: at most %d of each",
                             o->b, total_q, total_k, INT32_MAX);
    p->shape_batch = o->mode ? 1 : o->b;
    p->shape_seqlen_q = o->mode ? total_q : p->room_q[0];
    p->shape_seqlen_k = o->mode ? total_k : p->room_k[0];
    p->columns = o->mode ? p->max_seqlen_k : p->shape_seqlen_k;
    return EXAMPLE_OK;
}

static example_outcome settle(fmha_fwd_problem *p, example_result *result) {
    fmha_fwd_options *o = &p->options;
    if (!o->s_k_list && o->s_k == -1) {
        o->s_k_list = o->s_list;
        o->s_k = o->s;
    }
    if (settle_rooms(p, "s_qpad", o->s_qpad, o->s_qpad_list, p->room_q, result) ||
        settle_rooms(p, "s_kpad", o->s_kpad, o->s_kpad_list, p->room_k, result))
        return result->outcome;
    // -s_k=-1 makes keys as many as queries also where lengths are drawn, which must fit both pads then.
    int same = o->mode && !o->s_list && !o->s_k_list && o->s_k == o->s;
    int32_t *caps = p->seqlen_k; // used as scratch until the keys' lengths are set
    for (int32_t b = 0; b < o->b; b++)
        caps[b] = same && p->room_k[b] && (!p->room_q[b] || p->room_k[b] < p->room_q[b]) ? p->room_k[b] : p->room_q[b];
    if (settle_lengths(p, "s", o->s, o->s_list, 1, caps, 0, p->seqlen_q, result)) return result->outcome;
    if (same) o->s_k_list = p->seqlen_q;
    if (settle_lengths(p, "s_k", o->s_k, o->s_k_list, 0, p->room_k, 1, p->seqlen_k, result)) return result->outcome;
    // The tensors keep the room of the whole length; only the logical one shrinks.
    if (!o->mode) {
        if (!p->room_q[0]) p->room_q[0] = o->s;
        if (!p->room_k[0]) p->room_k[0] = o->s_k;
    }
    if (apply_effective(p, "q_eff_lens", o->q_eff_lens, p->seqlen_q, result) ||
        apply_effective(p, "kv_eff_lens", o->kv_eff_lens, p->seqlen_k, result))
        return result->outcome;
    return settle_shape(p, result);
}

example_outcome fmha_fwd_settle_lengths(fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *o = &p->options;
    // Lists are allocated before sizes are known, so a huge -b is caught by the least memory that q can take.
    double q = (double)o->b * o->h * (o->s_list ? 1 : o->s) * o->d / 2, lists = 4.0 * sizeof(int32_t) * o->b;
    if (example_check_memory(&p->base, q + lists, "q and the lengths", result)) return result->outcome;
    size_t count = (size_t)o->b;
    p->seqlen_q = calloc(count, sizeof(int32_t)), p->seqlen_k = calloc(count, sizeof(int32_t));
    p->room_q = calloc(count, sizeof(int32_t)), p->room_k = calloc(count, sizeof(int32_t));
    if (!p->seqlen_q || !p->seqlen_k || !p->room_q || !p->room_k)
        return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for the lengths of -b=%d sequences", o->b);
    return settle(p, result);
}
