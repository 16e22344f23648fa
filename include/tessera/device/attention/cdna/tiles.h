// SPDX-License-Identifier: MIT
// Which tiles of keys a workgroup computes, and what its waves see of them.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_TILES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_TILES_H

#include "tessera/device/attention/cdna/part.h"

// The tiles that any query of the workgroup sees, and the wave's queries; a wave that has none sees no key.
struct tiles {
    int begin, end; // of those that follow the sink's,
    int sink_end;   // which are from 0 on
    int wave_first, wave_last;
};

INLINE struct tiles find_tiles(const args *a, const struct part *p) {
    const int last = min_i32(p->first + BM, p->seqlen_q) - 1, wave_first = p->first + 32 * wave_id();
    const int all = a->features & TESSERA_CDNA_RANDVAL; // are wanted
    const int begin = all ? 0 : max_i32(0, p->first - p->mask_y + 1) / BN * BN;
    const int end = all ? p->seqlen_k : min_i32(p->seqlen_k, last + p->mask_x);
    const int sink_end = p->first < p->seqlen_k ? min_i32(p->sink, end) : 0;
    const int wave_last = wave_first < p->seqlen_q ? min_i32(wave_first + 32, p->seqlen_q) - 1 : INT32_MIN / 2;
    const struct tiles t = {begin, end, sink_end, wave_first, wave_last};
    return t;
}

INLINE int first_tile(const struct tiles *t) { return t->sink_end > 0 ? 0 : t->begin; }
INLINE int tile_after(const struct tiles *t, int tile) {
    tile += BN;
    return tile >= t->sink_end ? max_i32(tile, t->begin) : tile;
}

// Whether the wave's queries see some of a tile's keys, and whether some do not see all.
INLINE int is_seen(const struct tiles *t, const struct part *p, int tile) {
    const int end = min_i32(t->end, t->wave_last + p->mask_x);
    return tile < end && (tile + BN > t->wave_first - p->mask_y + 1 || tile < p->sink);
}
INLINE int is_cut(const struct tiles *t, const struct part *p, int tile) {
    return tile <= t->wave_last - p->mask_y || tile + BN > min_i32(p->seqlen_k, t->wave_first + p->mask_x);
}

#endif
