// SPDX-License-Identifier: MIT
// The order of a row's columns in dq_acc, of NVIDIA's dq_dk_dv and of convert_dq. Where rows are whole boxes of 32
// columns, a box has the first halves of its four groups of eight columns, and then the second ones, so that a warp's
// stores of a product's sums go to different banks (device/attention/cuda_bwd/dq.h). Else columns are in their own
// order.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_DQ_ORDER_H
#define TESSERA_DEVICE_ATTENTION_GPU_DQ_ORDER_H

enum { BOX_COLUMNS = 32 };

INLINE int has_halves(int hdim) { return hdim % BOX_COLUMNS == 0; }

// Where a column lies, with those up to the next multiple of four behind it.
INLINE int dq_position(int column, int hdim) {
    if (!has_halves(hdim)) return column;
    const int box = column / BOX_COLUMNS * BOX_COLUMNS;
    return box + column % 8 / 4 * 16 + (column - box) / 8 * 4 + column % 4;
}

#endif
