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
// Takes KEYS, KEYS_APART, TURNED, DV, BITS, V_COLUMNS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H
#define TESSERA_DEVICE_ATTENTION_CUDA_SHARE_H

#include "tessera/device/attention/cuda/fragments.h"

enum { ROWS = !KEYS_APART ? 64 : TURNED ? 8 : 16, SCORES = KEYS / 2 / (1 + TURNED), RESULTS = DV / 2 / (1 + TURNED) };
enum { P_WORDS = SCORES * BITS / 32 };

#define IN_FOURS (BITS == 8 && V_COLUMNS)
// KEY: that of the scores in column COLUMN(j, e) of a tile's product, beside thread_key(); KEY_OF: that of score i.
// COLUMN_IN: the j of those of a block of 32 keys, which has four.
#if IN_FOURS
enum { FOURS = KEYS / 16 }; // that a thread has, of all keys a sixteenth
#define KEY(j, e) ((j) % FOURS * 16 + (j) / FOURS * 2 + (e))
#define KEY_OF(i) KEY((i) / 4, (i) % 2)
#define COLUMN_IN(block, j) ((j) % 2 * FOURS + 2 * (block) + (j) / 2)
INLINE int thread_key(void) { return 4 * (lane_id() % 4); }
#else
#define KEY(j, e) COLUMN(j, e)
#define KEY_OF(i) COLUMN_OF(i)
#define COLUMN_IN(block, j) (4 * (block) + (j))
INLINE int thread_key(void) { return thread_column(); }
#endif

#endif
