// SPDX-License-Identifier: MIT
// Enumerations for the traits of attention operations. The ..._from_string functions accept the spellings of CK's
// programs.
#ifndef TESSERA_ATTENTION_H
#define TESSERA_ATTENTION_H

#include "tessera/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// CK's -prec. Where inputs and output differ, the name is that of the inputs followed by that of the output.
//   name      q, k, v                o      bias   accumulation
//   fp32      fp32                   fp32   fp32   fp32
//   fp16      IEEE half              fp16   fp16   fp32
//   bf16      bfloat16               bf16   bf16   fp32
//   fp8       e4m3, the device's     e4m3   fp32   fp32, output saturates
//   fp8bf16   e4m3, the device's     bf16   fp32   fp32
//   fp8fp32   e4m3, the device's     fp32   fp32   fp32
//   mxfp8     e4m3 x E8M0 / 32       fp32   fp32   fp32; e4m3 is OCP's
//   mxfp4     e2m1 x E8M0 / 32       fp32   fp32   fp32, two elements a byte, low nibble first
typedef enum tessera_fmha_dtype {
    TESSERA_FMHA_FP32 = 0,
    TESSERA_FMHA_FP16 = 1,
    TESSERA_FMHA_BF16 = 2,
    TESSERA_FMHA_FP8 = 3,
    TESSERA_FMHA_FP8BF16 = 4,
    TESSERA_FMHA_FP8FP32 = 5,
    TESSERA_FMHA_MXFP8 = 6,
    TESSERA_FMHA_MXFP4 = 7,
    TESSERA_FMHA_DTYPE_COUNT
} tessera_fmha_dtype;

// Which keys a query sees; see tessera/fmha_fwd.h for the coordinates.
typedef enum tessera_mask {
    TESSERA_MASK_NONE = 0,
    TESSERA_MASK_TOP_LEFT = 1,     // causal or windowed, aligned to the first query and key
    TESSERA_MASK_BOTTOM_RIGHT = 2, // the same, aligned to the last query and key
    TESSERA_MASK_GENERIC = 3,      // coordinates (y, x) as given
    TESSERA_MASK_COUNT
} tessera_mask;

typedef enum tessera_bias {
    TESSERA_BIAS_NONE = 0,
    TESSERA_BIAS_ELEMENTWISE = 1,
    TESSERA_BIAS_ALIBI = 2,
    TESSERA_BIAS_COUNT
} tessera_bias;

typedef enum tessera_qscale {
    TESSERA_QSCALE_NONE = 0,
    TESSERA_QSCALE_PER_TENSOR = 1,
    TESSERA_QSCALE_BLOCK = 2,
    TESSERA_QSCALE_KV_BLOCK = 3, // for batch_prefill only; other operations refuse it
    TESSERA_QSCALE_MX = 4,
    TESSERA_QSCALE_TOKEN_HEAD = 5, // likewise for batch_prefill
    TESSERA_QSCALE_COUNT
} tessera_qscale;

// Rotary position embedding: which two of the first rotary_dim elements of a row are rotated together.
typedef enum tessera_rope {
    TESSERA_ROPE_NONE = 0,
    TESSERA_ROPE_INTERLEAVED = 1, // 2 i and 2 i + 1 (GPT-J)
    TESSERA_ROPE_HALF = 2,        // i and i + rotary_dim / 2 (GPT-NeoX)
    TESSERA_ROPE_COUNT
} tessera_rope;

// How keys and values lie in pages; see tessera/fmha_batch_prefill.h.
typedef enum tessera_kv_layout {
    TESSERA_KV_VECTORIZED = 0, // in pieces of 16 bytes: of a key's elements, and of a column's values
    TESSERA_KV_LINEAR = 1,     // row by row
    TESSERA_KV_VLLM = 2,       // keys as in VECTORIZED, values column by column
    TESSERA_KV_LAYOUT_COUNT
} tessera_kv_layout;

// How pages of a sequence are looked up.
typedef enum tessera_kv_lookup {
    TESSERA_KV_SGLANG_1D = 0, // one list, with the beginning of each sequence's part
    TESSERA_KV_VLLM_2D = 1,   // a row of a table for each sequence
    TESSERA_KV_LOOKUP_COUNT
} tessera_kv_lookup;

// How numbers lie in a cache; see tessera/paged_attention.h.
typedef enum tessera_kv_cache_dtype {
    TESSERA_KV_AUTO = 0,     // as in q
    TESSERA_KV_FP8_E4M3 = 1, // OCP's, with scales
    TESSERA_KV_INT8 = 2,     // -128 to 127, with scales
    TESSERA_KV_TURBO4 = 3,   // numbers of 16 centroids, with the row's norm; see tessera/turbo4.h
    TESSERA_KV_CACHE_DTYPE_COUNT
} tessera_kv_cache_dtype;

// Words are "fp32" ... "mxfp4"; "no", "top_left", ... For any other text the ..._from_string functions return
// TESSERA_ERROR_INVALID_ARGUMENT and leave *out alone (tessera_last_error() lists the words). For any other value the
// ..._string functions return NULL.
TESSERA_API tessera_status tessera_fmha_dtype_from_string(const char *text, tessera_fmha_dtype *out);
TESSERA_API const char *tessera_fmha_dtype_string(tessera_fmha_dtype value);
TESSERA_API tessera_status tessera_mask_from_string(const char *text,
                                                    tessera_mask *out); // no|top_left|bottom_right|generic
TESSERA_API const char *tessera_mask_string(tessera_mask value);
TESSERA_API tessera_status tessera_bias_from_string(const char *text, tessera_bias *out); // no|bias|alibi
TESSERA_API const char *tessera_bias_string(tessera_bias value);
TESSERA_API tessera_status tessera_qscale_from_string(const char *text, tessera_qscale *out); // no|pt|bs|kvbs|mx|th
TESSERA_API const char *tessera_qscale_string(tessera_qscale value);
TESSERA_API tessera_status tessera_rope_from_string(const char *text, tessera_rope *out); // no|inter|half
TESSERA_API const char *tessera_rope_string(tessera_rope value);
TESSERA_API tessera_status tessera_kv_layout_from_string(const char *text,
                                                         tessera_kv_layout *out); // vectorized|linear|vllm
TESSERA_API const char *tessera_kv_layout_string(tessera_kv_layout value);
TESSERA_API tessera_status tessera_kv_lookup_from_string(const char *text, tessera_kv_lookup *out); // sglang|vllm
TESSERA_API const char *tessera_kv_lookup_string(tessera_kv_lookup value);
TESSERA_API tessera_status tessera_kv_cache_dtype_from_string(const char *text,
                                                              tessera_kv_cache_dtype *out); // auto|fp8_e4m3|int8|turbo4
TESSERA_API const char *tessera_kv_cache_dtype_string(tessera_kv_cache_dtype value);

#ifdef __cplusplus
}
#endif
#endif
