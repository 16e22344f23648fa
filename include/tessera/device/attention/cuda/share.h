// SPDX-License-Identifier: MIT
// A thread's share of a task's products, whose order fragments.h says: scores of KEYS keys, and results.
//
// KEYS: of a tile, those that a warpgroup, or with KEYS_APART a warp, makes scores of at once. ROWS: queries that it
// has.
//
// Products of 8-bit P and V sum over keys as they lie in memory where V does so by columns: then K is brought in an
// order that makes of a thread's scores what it has of the operand P. In 16 keys a thread has four that follow one
// another (PTX ISA, "Register Fragments and Shared Memory Matrix Layouts", A of wgmma.m64nNk32; CUTLASS,
// cute/atom/mma_traits_sm90_gmma.hpp, ALayout_64x32), and the scores of two columns each of two rows of 8: so the first
// two of each four keys are in the first half of a tile's rows, and the other ones in the second half.
//
// Takes KEYS, KEYS_APART, DV, BITS, V_COLUMNS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H

#include "tessera/device/attention/cuda/fragments.h"

enum { SCORES = KEYS / 2, RESULTS = DV / 2, P_WORDS = KEYS * BITS / 64, ROWS = KEYS_APART ? 16 : 64 };

#define IN_FOURS (BITS == 8 && V_COLUMNS)
// KEY: that of the scores in column COLUMN(j, e) of a tile's product, beside thread_key(). COLUMN_OF: the j of those of
// a block of 32 keys, which has four.
#if IN_FOURS
enum { FOURS = KEYS / 16 }; // that a thread has, of all keys a sixteenth
#define KEY(j, e) ((j) % FOURS * 16 + (j) / FOURS * 2 + (e))
#define COLUMN_OF(block, j) ((j) % 2 * FOURS + 2 * (block) + (j) / 2)
INLINE int thread_key(void) { return 4 * (lane_id() % 4); }
#else
#define KEY(j, e) COLUMN(j, e)
#define COLUMN_OF(block, j) (4 * (block) + (j))
INLINE int thread_key(void) { return thread_column(); }
#endif

#endif
