// SPDX-License-Identifier: MIT
// The workspace of a call and its parts of dq.
#include "guard.h"
#include "ops/fmha_bwd_internal.h"

typedef const struct tessera_fmha_bwd_layout layout_t;

// ---- sizes

// Parts of dq of each head in batch mode, where they are the tasks' own: `workers` workers take `share` blocks of keys
// each, one after the other, so that so many of them may meet in a head of n blocks.
static int64_t parts_of(int64_t n, int64_t share) {
    if (n % share == 0) return n / share;
    if (share % n == 0) return 1;
    return 1 + tessera_ceil_div(n - 1, share);
}

// *sum += a * b * c * d; false where that overflows.
static bool add_product(int64_t *sum, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
           !__builtin_mul_overflow(product, d, &product) && !__builtin_add_overflow(*sum, product, sum);
}

static tessera_status check_starts(const char *name, const int32_t *start, int32_t batch) {
    GUARD(start, "%s is NULL: group mode needs it", name);
    GUARD(start[0] >= 0, "%s[0] is %d: 0 or more", name, start[0]);
    for (int32_t b = 0; b < batch; b++)
        GUARD(start[b + 1] >= start[b], "%s[%d] is %d: at least the one before, %d", name, b + 1, start[b + 1],
              start[b]);
    return TESSERA_SUCCESS;
}

// Those that traits have decide how much memory there is.
static tessera_status check_known_starts(const tessera_fmha_bwd_traits *t) {
    if (t->is_group_mode && t->seqstart_qs) TRY(check_starts("seqstart_qs", t->seqstart_qs, t->batch));
    if (t->is_group_mode && t->seqstart_ks) TRY(check_starts("seqstart_ks", t->seqstart_ks, t->batch));
    return TESSERA_SUCCESS;
}

static bool count_group(const tessera_fmha_bwd_traits *t, layout_t *l, int64_t *elements) {
    const int32_t *const q = t->seqstart_qs, *const k = t->seqstart_ks;
    const bool known = q && k;
    if (!l->is_stored) return add_product(elements, t->nhead_q, 1, q ? q[t->batch] : t->seqlen_q, t->hdim_q);
    if (!known)
        return add_product(elements, t->nhead_q, tessera_ceil_div(t->max_seqlen_k, l->bn0), t->seqlen_q, t->hdim_q);
    for (int32_t b = 0; b < t->batch; b++)
        if (!add_product(elements, t->nhead_q, tessera_ceil_div(k[b + 1] - k[b], l->bn0), q[b + 1] - q[b], t->hdim_q))
            return false;
    return true;
}

static void set_parts(const tessera_fmha_bwd_traits *t, int64_t workers, struct tessera_fmha_bwd_layout *l) {
    l->nsplits = 1;
    l->blocks = tessera_ceil_div(t->seqlen_k, l->bn0);
    l->workers = workers;
    l->share = tessera_max(tessera_ceil_div(t->batch * l->heads * l->blocks, l->workers), 1);
    l->is_by_sequence = t->is_deterministic && t->is_group_mode;
    l->is_stored = l->is_parted && t->is_group_mode;
    if (l->is_parted) l->nsplits = l->blocks ? (int32_t)parts_of(l->blocks, l->share) : 0;
}

tessera_status tessera_fmha_bwd_lay_out(const tessera_fmha_bwd_traits *t, const tessera_instance *row, int64_t units,
                                        struct tessera_fmha_bwd_layout *l) {
    const bool group = t->is_group_mode;
    const tessera_fmha_bwd_tile *const tile = &((const tessera_fmha_bwd_instance *)row)->tile;
    int64_t elements = 0;
    *l = (struct tessera_fmha_bwd_layout){.is_direct = tile->max_q > 0,
                                          .is_parted = t->is_deterministic && !tile->is_ordered,
                                          .is_ordered = t->is_deterministic && tile->is_ordered,
                                          .heads = t->is_dkv_reduced ? t->nhead_k : t->nhead_q,
                                          .bn0 = tile->bn0};
    if (l->is_direct) return TESSERA_SUCCESS;
    TRY(check_known_starts(t));
    set_parts(t, units * (row->symbol ? TESSERA_FMHA_BWD_GPU_WORKERS : TESSERA_FMHA_BWD_CPU_WORKERS), l);
    l->nsplits_count = l->is_by_sequence ? t->batch : 1;
    l->is_zeroed = !l->is_stored || t->mask_type != TESSERA_MASK_NONE;
    l->offsets_offset = (size_t)tessera_round_up(l->nsplits_count * 4, TESSERA_FMHA_BWD_ALIGNMENT);
    l->host_bytes = l->offsets_offset;
    if (group) l->host_bytes += (size_t)tessera_round_up(((int64_t)t->batch + 1) * 8, TESSERA_FMHA_BWD_ALIGNMENT);
    // Hardware adds boxes of dq, and a row that lay across one more sector of 32 bytes took a quarter more of L2's
    // time.
    if (row->target == TESSERA_TARGET_SM_90A)
        l->host_bytes = (size_t)tessera_round_up((int64_t)l->host_bytes, TESSERA_PLAN_ALIGNMENT);
    const bool fits = group
                          ? count_group(t, l, &elements)
                          : add_product(&elements, (int64_t)t->batch * t->nhead_q, l->nsplits, t->seqlen_q, t->hdim_q);
    GUARD(fits && elements <= INT64_MAX / 8, "dq_acc: partial sums of dq are more than 2^60 elements");
    l->device_bytes = (size_t)elements * sizeof(float);
    return TESSERA_SUCCESS;
}

// ---- the head

static int32_t nsplits_of(layout_t *l, const int32_t *seqstart_k, int64_t n) {
    return l->is_stored ? (int32_t)tessera_ceil_div(seqstart_k[n + 1] - seqstart_k[n], l->bn0) : l->nsplits;
}

static tessera_status check_room(layout_t *l, int64_t elements) {
    GUARD(elements <= (int64_t)(l->device_bytes / sizeof(float)),
          "the workspace has room for %zu elements of dq_acc, and these lengths need %lld: traits of the longest "
          "sequences, padding included, make it large enough",
          l->device_bytes / sizeof(float), (long long)elements);
    return TESSERA_SUCCESS;
}

// The offset behind sequence b; INT64_MAX, for which there is no room, where it overflows.
static int64_t offset_after(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q, const int32_t *k,
                            int32_t b, int64_t before) {
    return add_product(&before, t->nhead_q, nsplits_of(l, k, b), q[b + 1] - q[b], t->hdim_q) ? before : INT64_MAX;
}

static tessera_status check_lengths(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q, const int32_t *k) {
    int64_t offset = 0;
    if (!t->is_group_mode) return TESSERA_SUCCESS;
    TRY(check_starts("seqstart_q", q, t->batch));
    TRY(check_starts("seqstart_k", k, t->batch));
    for (int32_t b = 0; b < t->batch; b++) offset = offset_after(t, l, q, k, b, offset);
    return check_room(l, offset);
}

tessera_status tessera_fmha_bwd_write_head(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q,
                                           const int32_t *k, void *workspace) {
    TRY(check_lengths(t, l, q, k));
    int32_t *const nsplits = workspace;
    int64_t *const offsets = (int64_t *)(void *)((char *)workspace + l->offsets_offset);
    memset(workspace, 0, l->host_bytes);
    for (int64_t n = 0; n < l->nsplits_count; n++) nsplits[n] = nsplits_of(l, k, n);
    for (int32_t b = 0; t->is_group_mode && b < t->batch; b++) offsets[b + 1] = offset_after(t, l, q, k, b, offsets[b]);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_bwd_check_head(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q,
                                           const int32_t *k, const void *workspace) {
    const char *const what = "the workspace is not one that was prepared for these lengths";
    TRY(check_lengths(t, l, q, k));
    const int32_t *const nsplits = workspace;
    const int64_t *const offsets = (const int64_t *)(const void *)((const char *)workspace + l->offsets_offset);
    for (int64_t n = 0; n < l->nsplits_count; n++)
        if (nsplits[n] != nsplits_of(l, k, n))
            return tessera_fail(TESSERA_ERROR_WORKSPACE, "%s: nsplits[%lld] is %d", what, (long long)n, nsplits[n]);
    for (int32_t b = 0; t->is_group_mode && b < t->batch; b++)
        if (offsets[b + 1] != offset_after(t, l, q, k, b, offsets[b]) || offsets[0] != 0)
            return tessera_fail(TESSERA_ERROR_WORKSPACE, "%s: dq_acc_offsets[%d] is %lld", what, b + 1,
                                (long long)offsets[b + 1]);
    return TESSERA_SUCCESS;
}

// ---- zeroing

enum { PIECE = 1 << 20 };

struct zeroing {
    char *memory;
    size_t bytes;
};

static void zero_piece(void *of, int64_t index, void *scratch) {
    const struct zeroing *const z = of;
    const size_t at = (size_t)index * PIECE, left = z->bytes - at;
    (void)scratch;
    memset(z->memory + at, 0, left < PIECE ? left : PIECE);
}

tessera_status tessera_fmha_bwd_add_zeroing(struct tessera_plan *plan, void *memory, size_t bytes) {
    void *room;
    TRY(tessera_plan_room(plan, sizeof(struct zeroing), &room));
    *(struct zeroing *)room = (struct zeroing){memory, bytes};
    const int64_t pieces = tessera_ceil_div((int64_t)bytes, PIECE);
    return tessera_add_work(plan, zero_piece, room, pieces, pieces, NULL, 0);
}
