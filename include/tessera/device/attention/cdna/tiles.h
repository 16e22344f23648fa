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
    const int last = min_i32(task->first + BM, task->seqlen_q) - 1, wave_first = task->first + 32 * wave_id();
    const int all = a->features & TESSERA_GPU_RANDVAL; // bytes of dropout are stored for hidden keys too
    const int begin = all ? 0 : max_i32(0, task->first - task->mask_y + 1) / BN * BN;
    const int end = all ? task->seqlen_k : min_i32(task->seqlen_k, last + task->mask_x);
    const int sink_end = task->first < task->seqlen_k ? min_i32(task->sink, end) : 0;
    const int wave_last = wave_first < task->seqlen_q ? min_i32(wave_first + 32, task->seqlen_q) - 1 : INT32_MIN / 2;
    const struct tiles t = {begin, end, sink_end, wave_first, wave_last};
    return t;
}

INLINE int first_tile(const struct tiles *t) { return t->sink_end > 0 ? 0 : t->begin; }
INLINE int tile_after(const struct tiles *t, int tile) {
    tile += BN;
    return tile >= t->sink_end ? max_i32(tile, t->begin) : tile;
}

// Whether any of the wave's queries sees any key of the tile; whether any of them does not see all.
INLINE int is_seen(const struct tiles *t, const struct task *task, int tile) {
    const int end = min_i32(t->end, t->wave_last + task->mask_x);
    return tile < end && (tile + BN > t->wave_first - task->mask_y + 1 || tile < task->sink);
}
INLINE int is_cut(const struct tiles *t, const struct task *task, int tile) {
    return tile <= t->wave_last - task->mask_y || tile + BN > min_i32(task->seqlen_k, t->wave_first + task->mask_x);
}

#endif
