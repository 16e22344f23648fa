// SPDX-License-Identifier: MIT
// Calls on AMD GPUs whose last workgroups leave most units idle. Without a mask all workgroups take as long, so that
// those beyond whole rounds of all places take as long as a round, however few they are. The last sequences, or the
// last key heads of the only one, then become a launch of their own, by the instance that is best for them: smaller
// blocks are work for more units. It is done where both launches take clearly less by costs.
#include "library.h"
#include "ops/attention_gpu.h"
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;
typedef struct tessera_fmha_fwd_shape shape_t;

enum { LAUNCH_CYCLES = 10000 };   // before a launch's first and behind its last workgroup (docs/simulator.md)
static const double WORTH = 0.95; // of the cost of one launch: a lesser gain is not sure

shape_t tessera_fmha_fwd_narrow(const shape_t *s, int64_t count) {
    shape_t part = *s;
    if (s->batch > 1) {
        part.batch = (int32_t)count;
    } else {
        part.nhead_q = (int32_t)(count * (s->nhead_q / s->nhead_k));
        part.nhead_k = (int32_t)count;
    }
    part.heads = (int64_t)part.batch * part.nhead_k;
    part.apart = 1; // of a part there is no rest
    return part;
}

// Those beyond what fills whole rounds, where they leave half of the places empty; else 0.
static int64_t count_beyond(const instance_t *row, const shape_t *s, int64_t units) {
    const int64_t group = s->nhead_q / s->nhead_k, heads = s->batch > 1 ? s->nhead_q : group;
    const int64_t each = heads * tessera_fmha_fwd_count_blocks(row, s->queries, group); // workgroups
    const int64_t places = units * row->workgroups, rounds = s->apart * each / places;
    int64_t kept = rounds * places / each;
    if (s->batch == 1) kept -= kept % tessera_target_rates[row->base.target].dies; // so that heads stay on theirs
    const int64_t rest = s->apart - kept;
    return kept > 0 && 2 * rest * each <= places ? rest : 0;
}

struct tessera_cut tessera_fmha_fwd_find_rest(const instance_t *row, const struct tessera_request *r, double *cost) {
    const shape_t *const s = (const void *)r->shape;
    const struct tessera_cut none = {.rest = 0};
    *cost = tessera_fmha_fwd_cdna_cost(row, s, r->units);
    if (row->merged || r->wanted || s->apart == 1 || s->has_left || s->has_right || s->queries == 0) return none;
    const int64_t rest = count_beyond(row, s, r->units);
    if (rest == 0) return none;
    const shape_t first = tessera_fmha_fwd_narrow(s, s->apart - rest), last = tessera_fmha_fwd_narrow(s, rest);
    struct tessera_request of_last = *r;
    of_last.targets = 1u << row->base.target;
    memcpy(of_last.shape, &last, sizeof last);
    const instance_t *const other = (const instance_t *)tessera_best(&of_last);
    if (!other || other == row || other->merged) return none;
    const double both = tessera_fmha_fwd_cdna_cost(row, &first, r->units) +
                        tessera_fmha_fwd_cdna_cost(other, &last, r->units) + LAUNCH_CYCLES;
    if (both >= WORTH * *cost) return none;
    *cost = both;
    return (struct tessera_cut){.rest = rest, .other = &other->base};
}

// ---- the calls of the two launches

static void *advance(const void *from, int64_t elements, int bits) {
    return from ? (char *)(uintptr_t)from + elements * bits / 8 : NULL;
}

// That of `count` sequences, or key heads of the only one, from the one numbered `first` on.
static struct tessera_fmha_fwd_call take(const struct tessera_fmha_fwd_call *call, int64_t first, int64_t count) {
    struct tessera_fmha_fwd_call part = *call;
    tessera_fmha_fwd_args *const a = &part.args;
    const struct tessera_attention_storages *const storages = &tessera_attention_storages[call->traits.data_type];
    const int in = tessera_type_bits(storages->qkv), out = tessera_type_bits(storages->o);
    const bool sequences = a->batch > 1;
    const int64_t group = a->nhead_q / a->nhead_k, first_q = sequences ? first : first * group;
#define ADVANCE(x, bits, number)                                                                                       \
    a->x##_ptr = advance(a->x##_ptr, (number) * (sequences ? a->batch_stride_##x : a->nhead_stride_##x), bits)
    ADVANCE(q, in, first_q);
    ADVANCE(k, in, first);
    ADVANCE(v, in, first);
    ADVANCE(o, out, first_q);
    ADVANCE(lse, 32, first_q);
#undef ADVANCE
    if (sequences) {
        a->batch = (int32_t)count;
    } else {
        a->nhead_q = (int32_t)(count * group);
        a->nhead_k = (int32_t)count;
    }
    part.heads = (int64_t)a->batch * a->nhead_k;
    return part;
}

static int64_t count_all(const tessera_fmha_fwd_args *a) { return a->batch > 1 ? a->batch : a->nhead_k; }

struct tessera_fmha_fwd_call tessera_fmha_fwd_kept(const struct tessera_fmha_fwd_call *call, int64_t rest) {
    return take(call, 0, count_all(&call->args) - rest);
}

struct tessera_fmha_fwd_call tessera_fmha_fwd_rest(const struct tessera_fmha_fwd_call *call, int64_t rest) {
    return take(call, count_all(&call->args) - rest, rest);
}
