// SPDX-License-Identifier: MIT
// Which tiles of keys a workgroup computes, and what its waves see of them.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_TILES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_TILES_H

#include "tessera/device/attention/cdna/task.h"

// The tiles that any query of the workgroup sees, and the wave's queries; a wave that has none sees no key.
struct tiles {
    int begin, end; // keys that the mask leaves
    int sink_end;   // keys 0 .. sink_end - 1 are seen as well
    int wave_first, wave_last;
};

INLINE struct tiles find_tiles(const args *a, const struct task *task) {
    const int rows = count_rows(a, task), first = row_query(a, task->first);
    const int last = row_query(a, min_i32(task->first + BM, rows) - 1), wave_row = task->first + WAVE_ROWS * wave_id();
    const int all = a->features & TESSERA_GPU_RANDVAL; // bytes of dropout are stored for hidden keys too
    const int begin = all ? 0 : max_i32(0, first - task->mask_y + 1) / BN * BN;
    const int end = all ? task->seqlen_k : min_i32(task->seqlen_k, last + task->mask_x);
    const int sink_end = first < task->seqlen_k ? min_i32(task->sink, end) : 0;
    const int wave_last = wave_row < rows ? row_query(a, min_i32(wave_row + WAVE_ROWS, rows) - 1) : INT32_MIN / 2;
    const struct tiles t = {begin, end, sink_end, row_query(a, wave_row), wave_last};
    return t;
}

INLINE int first_tile(const struct tiles *t) { return t->sink_end > 0 ? 0 : t->begin; }
INLINE int tile_after(const struct tiles *t, int tile) {
    tile += BN;
    return tile >= t->sink_end ? max_i32(tile, t->begin) : tile;
}

#if MERGED
// Keeps a part of the tiles, and returns its first one, or one that is not before the end: parts are of `each` tiles,
// or of more where the sequence has more than the host knew of.
INLINE int keep_part(struct tiles *t, int part, int parts, int each) {
    const int sinks = min_i32((max_i32(t->sink_end, 0) + BN - 1) / BN, t->begin / BN), gap = t->begin - BN * sinks;
    const int count = sinks + max_i32((max_i32(t->end, 0) + BN - 1) / BN - t->begin / BN, 0);
    each = max_i32(each, (count + parts - 1) / parts);
    const int from = part * each, to = from + each;
    if (to < count) t->end = BN * to + (to < sinks ? 0 : gap);
    if (from >= count) t->end = 0;
    return BN * from + (from < sinks ? 0 : gap);
}
#endif

// Whether any of the wave's queries sees any key of the tile; whether any of them does not see all.
INLINE int is_seen(const struct tiles *t, const struct task *task, int tile) {
    const int end = min_i32(t->end, t->wave_last + task->mask_x);
    return tile < end && (tile + BN > t->wave_first - task->mask_y + 1 || tile < task->sink);
}
INLINE int is_cut(const struct tiles *t, const struct task *task, int tile) {
    return tile <= t->wave_last - task->mask_y || tile + BN > min_i32(task->seqlen_k, t->wave_first + task->mask_x);
}

#endif
