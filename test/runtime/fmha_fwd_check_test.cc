// SPDX-License-Identifier: MIT
// Every guard of fmha_fwd_check.c: a call that passes, the one change that it refuses, and the line that it gives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "fmha_fwd_fixture.h"

namespace {

struct Guard {
    const char *name;
    std::function<void(Call &)> arrange; // makes a call that passes
    std::function<void(Call &)> break_it;
    const char *line; // a piece of the error line
};

void PrintTo(const Guard &guard, std::ostream *out) { *out << guard.line; }

void nothing(Call &) {}
void group(Call &c) { c.group(); }
void dropout(Call &c) { c.traits.has_dropout = 1; }
void randval(Call &c) { c.traits.has_dropout = c.args.s_randval = 1; }
void alibi(Call &c) { c.traits.bias_type = TESSERA_BIAS_ALIBI, c.set_strides(); }
void bias(Call &c) { c.traits.bias_type = TESSERA_BIAS_ELEMENTWISE; }
void lse(Call &c) { c.traits.has_lse = 1; }
void sink(Call &c) { c.traits.has_sink = 1; }
void per_tensor(Call &c) { c.dtype(TESSERA_FMHA_FP8, TESSERA_QSCALE_PER_TENSOR); }
void blocks(Call &c) { c.dtype(TESSERA_FMHA_FP8BF16, TESSERA_QSCALE_BLOCK); }
void blocks_of_group(Call &c) { blocks(c), group(c); }
void mxfp8(Call &c) { c.dtype(TESSERA_FMHA_MXFP8, TESSERA_QSCALE_MX); }
void mxfp8_of_group(Call &c) { mxfp8(c), group(c); }
void mxfp4(Call &c) { c.dtype(TESSERA_FMHA_MXFP4, TESSERA_QSCALE_MX); }
void lengths_of_group(Call &c) {
    group(c);
    c.args.seqlen_q_ptr = c.seqlen_q.data();
    c.args.seqlen_k_ptr = c.seqlen_k.data();
}
void cumulative_lengths(Call &c) {
    c.args.cu_seqlen_q_ptr = c.cu_q.data();
    c.args.cu_seqlen_k_ptr = c.cu_k.data();
}
// The limits of dropout, with inputs that repeat one row.
void long_dropout(Call &c) {
    c.traits.has_dropout = 1;
    c.args.batch = c.args.nhead_q = c.args.nhead_k = 1;
    c.args.stride_q = c.args.stride_k = c.args.stride_v = 0;
    c.args.seqlen_q = c.args.seqlen_k = 1 << 24;
}
void column_major_mxfp4_of_group(Call &c) {
    c.traits.is_v_rowmajor = 0;
    mxfp4(c);
    group(c);
}

const Guard guards[] = {
    // traits
    {"HdimQZero", nothing, [](Call &c) { c.traits.hdim_q = c.args.hdim_q = 0; }, "hdim_q is 0: 1 to 512"},
    {"HdimQLarge", nothing, [](Call &c) { c.traits.hdim_q = c.args.hdim_q = 513; }, "hdim_q is 513: 1 to 512"},
    {"HdimVZero", nothing, [](Call &c) { c.traits.hdim_v = c.args.hdim_v = 0; }, "hdim_v is 0: 1 to 512"},
    {"HdimVLarge", nothing, [](Call &c) { c.traits.hdim_v = c.args.hdim_v = 513; }, "hdim_v is 513: 1 to 512"},
    {"DataType", nothing, [](Call &c) { c.traits.data_type = static_cast<tessera_fmha_dtype>(8); }, "data_type is 8"},
    {"GroupMode", nothing, [](Call &c) { c.traits.is_group_mode = 2; }, "is_group_mode is 2"},
    {"GroupModeNegative", nothing, [](Call &c) { c.traits.is_group_mode = -1; }, "is_group_mode is -1"},
    {"VRowmajorNegative", nothing, [](Call &c) { c.traits.is_v_rowmajor = -1; }, "is_v_rowmajor is -1"},
    {"HasSoftCapNegative", nothing, [](Call &c) { c.traits.has_logits_soft_cap = -1; }, "has_logits_soft_cap is -1"},
    {"HasLseNegative", nothing, [](Call &c) { c.traits.has_lse = -1; }, "has_lse is -1"},
    {"HasDropoutNegative", nothing, [](Call &c) { c.traits.has_dropout = -1; }, "has_dropout is -1"},
    {"SkipMinSeqlenQNegative", nothing, [](Call &c) { c.traits.skip_min_seqlen_q = -1; }, "skip_min_seqlen_q is -1"},
    {"HasSinkNegative", nothing, [](Call &c) { c.traits.has_sink = -1; }, "has_sink is -1"},
    {"VRowmajor", nothing, [](Call &c) { c.traits.is_v_rowmajor = 2; }, "is_v_rowmajor is 2"},
    {"HasSoftCap", nothing, [](Call &c) { c.traits.has_logits_soft_cap = 2; }, "has_logits_soft_cap is 2"},
    {"MaskType", nothing, [](Call &c) { c.traits.mask_type = c.args.mask_type = static_cast<tessera_mask>(4); },
     "mask_type is 4"},
    {"BiasType", nothing, [](Call &c) { c.traits.bias_type = static_cast<tessera_bias>(3); }, "bias_type is 3"},
    {"HasLse", nothing, [](Call &c) { c.traits.has_lse = 2; }, "has_lse is 2"},
    {"HasDropout", nothing, [](Call &c) { c.traits.has_dropout = 2; }, "has_dropout is 2"},
    {"QscaleType", nothing, [](Call &c) { c.traits.qscale_type = static_cast<tessera_qscale>(6); }, "qscale_type is 6"},
    {"SkipMinSeqlenQ", nothing, [](Call &c) { c.traits.skip_min_seqlen_q = 2; }, "skip_min_seqlen_q is 2"},
    {"HasSink", nothing, [](Call &c) { c.traits.has_sink = 2; }, "has_sink is 2"},
    {"SoftCapWithBias", bias, [](Call &c) { c.traits.has_logits_soft_cap = 1; },
     "has_logits_soft_cap and bias_type bias"},
    {"KvBlock", per_tensor, [](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_KV_BLOCK; }, "qscale_type kvbs"},
    {"TokenHead", per_tensor, [](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_TOKEN_HEAD; }, "qscale_type th"},
    {"PerTensorOfFp16", nothing, [](Call &c) { c.dtype(TESSERA_FMHA_FP16, TESSERA_QSCALE_PER_TENSOR); },
     "qscale_type pt with data_type fp16"},
    {"BlocksOfFp32", nothing, [](Call &c) { c.dtype(TESSERA_FMHA_FP32, TESSERA_QSCALE_BLOCK); },
     "qscale_type bs with data_type fp32"},
    {"BlocksOfMx", mxfp8, [](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_BLOCK; },
     "qscale_type bs with data_type mxfp8"},
    {"MxOfFp8", per_tensor, [](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_MX; },
     "qscale_type mx with data_type fp8"},
    {"Mxfp8WithoutScales", mxfp8, [](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_NONE; },
     "data_type mxfp8 with qscale_type no"},
    {"Mxfp4WithoutScales", mxfp4, [](Call &c) { c.traits.qscale_type = TESSERA_QSCALE_NONE; },
     "data_type mxfp4 with qscale_type no"},
    {"OddHdimQOfMxfp4", mxfp4, [](Call &c) { c.traits.hdim_q = c.args.hdim_q = 7; }, "hdim_q is 7: even"},
    {"OddHdimVOfMxfp4", mxfp4, [](Call &c) { c.traits.hdim_v = c.args.hdim_v = 7; }, "hdim_v is 7: even"},

    // sizes
    {"HdimQDiffers", nothing, [](Call &c) { c.args.hdim_q = 9; }, "args->hdim_q is 9: traits->hdim_q is 8"},
    {"HdimVDiffers", nothing, [](Call &c) { c.args.hdim_v = 9; }, "args->hdim_v is 9: traits->hdim_v is 16"},
    {"MaskDiffers", nothing, [](Call &c) { c.args.mask_type = TESSERA_MASK_GENERIC; }, "args->mask_type is 3"},
    {"Batch", nothing, [](Call &c) { c.args.batch = 0; }, "batch is 0: 1 or more"},
    {"NheadQ", nothing, [](Call &c) { c.args.nhead_q = 0; }, "nhead_q is 0: 1 or more"},
    {"NheadK", nothing, [](Call &c) { c.args.nhead_k = 0; }, "nhead_k is 0: 1 or more"},
    {"NheadMultiple", nothing, [](Call &c) { c.args.nhead_k = 3; }, "nhead_q is 4: a multiple of nhead_k, which is 3"},
    {"Heads", nothing, [](Call &c) { c.args.batch = 1 << 29; }, "batch * nhead_q is 2147483648: at most 2147483647"},
    {"SeqlenQ", nothing, [](Call &c) { c.args.seqlen_q = -1; }, "seqlen_q is -1"},
    {"SeqlenQLarge", nothing, [](Call &c) { c.args.seqlen_q = 1 << 30; }, "seqlen_q is 1073741824"},
    {"SeqlenK", nothing, [](Call &c) { c.args.seqlen_k = -1; }, "seqlen_k is -1"},
    {"SeqlenKLarge", nothing, [](Call &c) { c.args.seqlen_k = 1 << 30; }, "seqlen_k is 1073741824"},
    {"MaxSeqlenQNegative", group, [](Call &c) { c.args.max_seqlen_q = -1; }, "max_seqlen_q is -1"},
    {"MaxSeqlenQLarge", group, [](Call &c) { c.args.max_seqlen_q = 1 << 30; }, "max_seqlen_q is 1073741824"},
    {"DropoutSeqlenQ", long_dropout, [](Call &c) { c.args.seqlen_q++; }, "seqlen_q is 16777217: dropout"},
    {"DropoutSeqlenK", long_dropout, [](Call &c) { c.args.seqlen_k++; }, "seqlen_k is 16777217: dropout"},
    {"DropoutHeads", [](Call &c) { dropout(c), c.args.batch = 1 << 18, c.args.seqlen_q = 0; },
     [](Call &c) { c.args.batch++; }, "batch * nhead_q is 1048580: dropout"},

    // numbers
    {"ScaleNan", nothing, [](Call &c) { c.args.scale_s = NAN; }, "scale_s is nan"},
    {"ScaleInfinite", nothing, [](Call &c) { c.args.scale_s = -INFINITY; }, "scale_s is -inf"},
    {"ScaleTooGreat", nothing, [](Call &c) { c.args.scale_s = 1e38f; }, "scale_s is 1e+38: -2^64 to 2^64"},
    {"ScaleTooSmall", nothing, [](Call &c) { c.args.scale_s = -0x1.000002p64f; }, "scale_s is -1.84"},
    {"SoftCapZero", [](Call &c) { c.traits.has_logits_soft_cap = 1; }, [](Call &c) { c.args.logits_soft_cap = 0; },
     "logits_soft_cap is 0"},
    {"SoftCapInfinite", [](Call &c) { c.traits.has_logits_soft_cap = 1; },
     [](Call &c) { c.args.logits_soft_cap = INFINITY; }, "logits_soft_cap is inf"},
    {"SoftCapTooGreat", [](Call &c) { c.traits.has_logits_soft_cap = 1; },
     [](Call &c) { c.args.logits_soft_cap = 0x1.000002p64f; }, "logits_soft_cap is 1.84"},
    {"SinkSize", sink, [](Call &c) { c.args.sink_size = -1; }, "sink_size is -1"},
    {"MinSeqlenQ", [](Call &c) { c.traits.skip_min_seqlen_q = 1; }, [](Call &c) { c.args.min_seqlen_q = -1; },
     "min_seqlen_q is -1"},
    {"SRandvalNegative", dropout, [](Call &c) { c.args.s_randval = -1; }, "s_randval is -1"},
    {"DropPrefsNegative", dropout, [](Call &c) { c.args.drop_prefs = -1; }, "drop_prefs is -1"},
    {"PDropNegative", dropout, [](Call &c) { c.args.p_drop = -0.1f; }, "p_drop is -0.1"},
    {"PDropOne", dropout, [](Call &c) { c.args.p_drop = 1; }, "p_drop is 1: 0 <= p_drop < 1"},
    {"PDropNan", dropout, [](Call &c) { c.args.p_drop = NAN; }, "p_drop is nan"},
    {"SRandval", dropout, [](Call &c) { c.args.s_randval = 2; }, "s_randval is 2"},
    {"DropPrefs", dropout, [](Call &c) { c.args.drop_prefs = 2; }, "drop_prefs is 2"},
    {"BlockSizeQ", blocks, [](Call &c) { c.args.block_scale_size_q = 0; }, "block_scale_size_q is 0"},
    {"BlockSizeKv", blocks, [](Call &c) { c.args.block_scale_size_kv = 0; }, "block_scale_size_kv is 0"},

    // pointers
    {"NullQ", nothing, [](Call &c) { c.args.q_ptr = nullptr; }, "q_ptr is NULL"},
    {"NullK", nothing, [](Call &c) { c.args.k_ptr = nullptr; }, "k_ptr is NULL"},
    {"NullV", nothing, [](Call &c) { c.args.v_ptr = nullptr; }, "v_ptr is NULL"},
    {"NullO", nothing, [](Call &c) { c.args.o_ptr = nullptr; }, "o_ptr is NULL"},
    {"NullBias", bias, [](Call &c) { c.args.bias_ptr = nullptr; }, "bias_ptr is NULL"},
    {"NullAlibi", alibi, [](Call &c) { c.args.bias_ptr = nullptr; }, "bias_ptr is NULL"},
    {"NullLse", lse, [](Call &c) { c.args.lse_ptr = nullptr; }, "lse_ptr is NULL"},
    {"NullRandval", randval, [](Call &c) { c.args.rand_val_ptr = nullptr; }, "rand_val_ptr is NULL"},
    {"NullSeed", [](Call &c) { dropout(c), c.args.drop_prefs = 1; }, [](Call &c) { c.args.drop_seed_ptr = nullptr; },
     "drop_seed_ptr is NULL"},
    {"NullOffset", [](Call &c) { dropout(c), c.args.drop_prefs = 1; },
     [](Call &c) { c.args.drop_offset_ptr = nullptr; }, "drop_offset_ptr is NULL"},
    {"NullQDescale", per_tensor, [](Call &c) { c.args.q_descale_ptr = nullptr; }, "q_descale_ptr is NULL"},
    {"NullKDescale", per_tensor, [](Call &c) { c.args.k_descale_ptr = nullptr; }, "k_descale_ptr is NULL"},
    {"NullVDescale", per_tensor, [](Call &c) { c.args.v_descale_ptr = nullptr; }, "v_descale_ptr is NULL"},
    {"NullQBlocks", blocks, [](Call &c) { c.args.q_descale_ptr = nullptr; }, "q_descale_ptr is NULL"},
    {"NullKBlocks", blocks, [](Call &c) { c.args.k_descale_ptr = nullptr; }, "k_descale_ptr is NULL"},
    {"NullVBlocks", blocks, [](Call &c) { c.args.v_descale_ptr = nullptr; }, "v_descale_ptr is NULL"},
    {"NullQScales", mxfp8, [](Call &c) { c.args.q_descale_ptr = nullptr; }, "q_descale_ptr is NULL"},
    {"NullKScales", mxfp8, [](Call &c) { c.args.k_descale_ptr = nullptr; }, "k_descale_ptr is NULL"},
    {"NullVScales", mxfp4, [](Call &c) { c.args.v_descale_ptr = nullptr; }, "v_descale_ptr is NULL"},
    {"NullSeqstartQ", group, [](Call &c) { c.args.seqstart_q_ptr = nullptr; }, "seqstart_q_ptr is NULL"},
    {"NullSeqstartK", group, [](Call &c) { c.args.seqstart_k_ptr = nullptr; }, "seqstart_k_ptr is NULL"},
    {"NullBlockStartQ", blocks_of_group, [](Call &c) { c.args.block_scale_seqstart_q_ptr = nullptr; },
     "block_scale_seqstart_q_ptr is NULL"},
    {"NullBlockStartK", blocks_of_group, [](Call &c) { c.args.block_scale_seqstart_k_ptr = nullptr; },
     "block_scale_seqstart_k_ptr is NULL"},
    {"NullVScaleStart", mxfp8_of_group, [](Call &c) { c.args.seqstart_v_scale_ptr = nullptr; },
     "seqstart_v_scale_ptr is NULL"},

    // alignment
    {"AlignQ", nothing, [](Call &c) { c.args.q_ptr = c.room(0) + 2; }, "must be aligned to 4 bytes"},
    {"AlignQOfFp16", [](Call &c) { c.dtype(TESSERA_FMHA_FP16, TESSERA_QSCALE_NONE), c.args.q_ptr = c.room(0) + 2; },
     [](Call &c) { c.args.q_ptr = c.room(0) + 1; }, "must be aligned to 2 bytes"},
    {"AlignO", [](Call &c) { blocks(c), c.args.o_ptr = c.room(10) + 2; },
     [](Call &c) { c.args.o_ptr = c.room(10) + 1; }, "o_ptr is"},
    {"AlignLse", lse, [](Call &c) { c.args.lse_ptr = c.room(9) + 2; }, "lse_ptr is"},
    {"AlignAlibi", [](Call &c) { c.dtype(TESSERA_FMHA_FP16, TESSERA_QSCALE_NONE), alibi(c); },
     [](Call &c) { c.args.bias_ptr = c.room(3) + 2; }, "bias_ptr is"},
    {"AlignSeed", [](Call &c) { dropout(c), c.args.drop_prefs = 1; },
     [](Call &c) { c.args.drop_seed_ptr = reinterpret_cast<uint64_t *>(c.room(11) + 4); }, "drop_seed_ptr is"},
    {"AlignSeqstart", group, [](Call &c) { c.args.seqstart_k_ptr = reinterpret_cast<char *>(c.seqstart_k.data()) + 2; },
     "seqstart_k_ptr is"},
    {"AlignSink", sink, [](Call &c) { c.args.sink_ptr = c.room(7) + 1; }, "sink_ptr is"},

    // strides
    {"NegativeStrideQ", nothing, [](Call &c) { c.args.stride_q = -8; }, "stride_q is -8: 0 or more"},
    {"NegativeStrideK", nothing, [](Call &c) { c.args.stride_k = -8; }, "stride_k is -8: 0 or more"},
    {"NegativeStrideV", nothing, [](Call &c) { c.args.stride_v = -8; }, "stride_v is -8: 0 or more"},
    {"NegativeStrideO", nothing, [](Call &c) { c.args.stride_o = -8; }, "stride_o is -8: 0 or more"},
    {"NegativeHeadStride", nothing, [](Call &c) { c.args.nhead_stride_k = -1; }, "nhead_stride_k is -1: 0 or more"},
    {"NegativeBatchStride", nothing, [](Call &c) { c.args.batch_stride_v = -1; }, "batch_stride_v is -1: 0 or more"},
    {"NegativeStrideBias", bias, [](Call &c) { c.args.stride_bias = -1; }, "stride_bias is -1: 0 or more"},
    {"NegativeStrideAlibi", alibi, [](Call &c) { c.args.stride_bias = -1; }, "stride_bias is -1: 0 or more"},
    {"NegativeStrideLse", lse, [](Call &c) { c.args.nhead_stride_lse = -1; }, "nhead_stride_lse is -1: 0 or more"},
    {"NegativeStrideRandval", randval, [](Call &c) { c.args.stride_randval = -1; }, "stride_randval is -1: 0 or more"},
    {"NegativeStrideDescale", blocks, [](Call &c) { c.args.nhead_stride_v_descale = -1; },
     "nhead_stride_v_descale is -1: 0 or more"},
    {"NegativeStrideScale", mxfp8, [](Call &c) { c.args.stride_v_descale = -1; }, "stride_v_descale is -1: 0 or more"},
    {"OddStrideQ", mxfp4, [](Call &c) { c.args.stride_q = 9; }, "stride_q is 9: even for mxfp4"},
    {"OddHeadStrideV", mxfp4, [](Call &c) { c.args.nhead_stride_v++; }, "nhead_stride_v is 161: even for mxfp4"},
    {"OddBatchStrideK", mxfp4, [](Call &c) { c.args.batch_stride_k++; }, "batch_stride_k is 161: even for mxfp4"},
    {"HugeStride", nothing, [](Call &c) { c.args.batch_stride_q = INT64_MAX; }, "q_ptr: its sizes and strides reach"},
    {"HugeProduct", nothing, [](Call &c) { c.args.stride_k = INT64_MAX / 4; }, "k_ptr: its sizes and strides reach"},
    {"HugeSum", nothing, [](Call &c) { c.args.nhead_stride_k = c.args.batch_stride_k = INT64_MAX - 100; },
     "k_ptr: its sizes and strides reach"},
    {"HugeBytes", nothing, [](Call &c) { c.args.batch_stride_v = INT64_MAX / 8; },
     "v_ptr: its sizes and strides reach"},
    {"BeyondAddresses", nothing, [](Call &c) { c.args.v_ptr = reinterpret_cast<void *>(UINTPTR_MAX - 63); },
     "v_ptr: its sizes and strides reach"},

    // outputs
    {"OOverlapsRows", nothing, [](Call &c) { c.args.stride_o = 15; }, "o_ptr overlaps itself: stride_o is 15"},
    {"OOverlapsBroadcast", nothing, [](Call &c) { c.args.nhead_stride_o = 0; },
     "o_ptr overlaps itself: nhead_stride_o is 0"},
    {"OOverlapsHeads", nothing, [](Call &c) { c.args.nhead_stride_o = 95; },
     "o_ptr overlaps itself: nhead_stride_o is 95"},
    {"OOverlapsBatches", nothing, [](Call &c) { c.args.batch_stride_o = 383; },
     "o_ptr overlaps itself: batch_stride_o is 383"},
    {"LseOverlapsHeads", lse, [](Call &c) { c.args.nhead_stride_lse = 5; },
     "lse_ptr overlaps itself: nhead_stride_lse is 5"},
    {"RandvalOverlapsRows", randval, [](Call &c) { c.args.stride_randval = 9; },
     "rand_val_ptr overlaps itself: stride_randval is 9"},
    {"OIsQ", nothing, [](Call &c) { c.args.o_ptr = const_cast<void *>(c.args.q_ptr); }, "o_ptr"},
    {"OTouchesKEnd", nothing, [](Call &c) { c.args.o_ptr = c.room(1) + 2 * 2 * 10 * 8 * 4 - 4; }, "o_ptr"},
    {"OTouchesKStart", nothing, [](Call &c) { c.args.o_ptr = c.room(1) - 2 * 4 * 6 * 16 * 4 + 4; }, "o_ptr"},
    {"LseIsV", lse, [](Call &c) { c.args.lse_ptr = const_cast<void *>(c.args.v_ptr); }, "lse_ptr"},
    {"LseIsO", lse, [](Call &c) { c.args.lse_ptr = c.args.o_ptr; }, "overlaps lse_ptr"},
    {"RandvalIsBias", [](Call &c) { randval(c), bias(c); },
     [](Call &c) { c.args.rand_val_ptr = const_cast<void *>(c.args.bias_ptr); }, "rand_val_ptr"},
    {"RandvalIsLse", [](Call &c) { randval(c), lse(c); }, [](Call &c) { c.args.rand_val_ptr = c.args.lse_ptr; },
     "overlaps rand_val_ptr"},
    {"OIsSink", sink, [](Call &c) { c.args.sink_ptr = c.args.o_ptr; }, "overlaps sink_ptr"},
    {"OIsDescale", per_tensor, [](Call &c) { c.args.v_descale_ptr = c.args.o_ptr; }, "overlaps v_descale_ptr"},
    {"OIsSeed", [](Call &c) { dropout(c), c.args.drop_prefs = 1; },
     [](Call &c) { c.args.drop_seed_ptr = static_cast<uint64_t *>(c.args.o_ptr); }, "overlaps drop_seed_ptr"},
    {"LseIsSeqstart", [](Call &c) { group(c), lse(c); }, [](Call &c) { c.args.lse_ptr = c.seqstart_q.data(); },
     "lse_ptr"},

    // lengths
    {"SeqstartQNegative", group, [](Call &c) { c.seqstart_q[0] = -1; }, "seqstart_q_ptr[0] is -1: 0 or more"},
    {"SeqstartKNegative", group, [](Call &c) { c.seqstart_k[0] = -1; }, "seqstart_k_ptr[0] is -1: 0 or more"},
    {"SeqstartQFalls", group, [](Call &c) { c.seqstart_q[2] = 5; },
     "seqstart_q_ptr[2] is 5: at least the one before, 6"},
    {"SeqstartKFalls", group, [](Call &c) { c.seqstart_k[2] = 9; },
     "seqstart_k_ptr[2] is 9: at least the one before, 10"},
    {"MaxSeqlenQ", group, [](Call &c) { c.args.max_seqlen_q = 5; }, "max_seqlen_q is 5: sequence 0 has 6 queries"},
    {"SeqlenQNegative", lengths_of_group, [](Call &c) { c.seqlen_q[1] = -1; }, "sequence 1 has -1 queries"},
    {"SeqlenQBeyondRoom", lengths_of_group, [](Call &c) { c.seqlen_q[1] = 5; },
     "sequence 1 has 5 queries: 0 to its room of 4"},
    {"SeqlenKNegative", lengths_of_group, [](Call &c) { c.seqlen_k[0] = -1; }, "sequence 0 has -1 keys"},
    {"SeqlenKBeyondRoom", lengths_of_group, [](Call &c) { c.seqlen_k[0] = 11; },
     "sequence 0 has 11 keys: 0 to its room of 10"},
    {"CuSeqlenQFalls", cumulative_lengths, [](Call &c) { c.cu_q[2] = 4; }, "sequence 1 has -1 queries"},
    {"CuSeqlenQBeyondRoom", cumulative_lengths, [](Call &c) { c.cu_q[1] = 7; }, "sequence 0 has 7 queries"},
    {"CuSeqlenKFalls", cumulative_lengths, [](Call &c) { c.cu_k[2] = 4; }, "sequence 1 has -1 keys"},
    {"CuSeqlenKBeyondRoom", cumulative_lengths, [](Call &c) { c.cu_k[1] = 11; }, "sequence 0 has 11 keys"},
    {"CuSeqlenOverflows", cumulative_lengths, [](Call &c) { c.cu_k[0] = INT32_MIN, c.cu_k[1] = INT32_MAX; },
     "sequence 0 has 2147483647 keys"},
    {"CuSeqlenOverflowsDown", cumulative_lengths, [](Call &c) { c.cu_k[0] = INT32_MAX, c.cu_k[1] = INT32_MIN; },
     "sequence 0 has -1 keys"},
    {"KeysLarge",
     [](Call &c) {
         group(c), c.args.stride_k = c.args.stride_v = 0, c.seqstart_k = {0, 10, 1073741833};
     },
     [](Call &c) { c.seqstart_k[2]++; }, "sequence 1 has 1073741824 keys: at most"},
    {"DropoutKeysOfGroup",
     [](Call &c) {
         long_dropout(c), c.args.batch = 2, group(c), c.args.stride_k = c.args.stride_v = 0,
                          c.seqstart_k = {0, 1 << 24, 1 << 24};
     },
     [](Call &c) {
         c.seqstart_k = {0, (1 << 24) + 1, (1 << 24) + 1};
     },
     "sequence 0 has 16777217 keys: dropout"},
    {"OddTokenOfMxfp4", column_major_mxfp4_of_group, [](Call &c) { c.seqstart_k[1] = 9; },
     "seqstart_k_ptr[1] is 9: even for column-major v of mxfp4"},
    {"BlockStartQNegative", blocks_of_group, [](Call &c) { c.block_q[0] = -1; }, "block_scale_seqstart_q_ptr[0] is -1"},
    {"BlockStartQOverlaps", blocks_of_group, [](Call &c) { c.block_q[1] = 0; },
     "block_scale_seqstart_q_ptr[1] is 0: at least 1"},
    {"BlockStartKOverlaps",
     [](Call &c) {
         blocks_of_group(c), c.args.block_scale_size_kv = 3, c.block_k = {0, 4, 9};
     },
     [](Call &c) { c.block_k[1] = 3; }, "block_scale_seqstart_k_ptr[1] is 3: at least 4"},
    {"VScaleStartOverlaps", mxfp8_of_group, [](Call &c) { c.v_scale[1] = 0; },
     "seqstart_v_scale_ptr[1] is 0: at least 1"},
};

class EveryGuard : public ::testing::TestWithParam<Guard> {};

TEST_P(EveryGuard, RefusesByName) {
    const Guard &guard = GetParam();
    Call call;
    guard.arrange(call);
    ASSERT_EQ(call.check(), TESSERA_SUCCESS) << tessera_last_error();
    guard.break_it(call);
    ASSERT_EQ(call.check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find(guard.line), std::string::npos)
        << "said: " << tessera_last_error() << "\nnot:  " << guard.line;
    EXPECT_EQ(std::string(tessera_last_error()).find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(FmhaFwd, EveryGuard, ::testing::ValuesIn(guards),
                         [](const auto &info) { return std::string(info.param.name); });

class Accepts : public ::testing::Test {
  protected:
    void expect_accepted() { EXPECT_EQ(call.check(), TESSERA_SUCCESS) << tessera_last_error(); }
    Call call;
};

TEST_F(Accepts, EveryDtype) {
    for (int dtype = 0; dtype < TESSERA_FMHA_DTYPE_COUNT; dtype++) {
        call.dtype(static_cast<tessera_fmha_dtype>(dtype),
                   dtype >= TESSERA_FMHA_MXFP8 ? TESSERA_QSCALE_MX : TESSERA_QSCALE_NONE);
        expect_accepted();
    }
}

TEST_F(Accepts, WhatTraitsDoNotAskForIsIgnored) {
    call.args.bias_ptr = call.args.sink_ptr = call.args.q_descale_ptr = call.args.o_ptr;
    call.args.lse_ptr = call.args.rand_val_ptr = const_cast<void *>(call.args.q_ptr);
    call.args.logits_soft_cap = call.args.p_drop = -1;
    call.args.sink_size = call.args.min_seqlen_q = call.args.s_randval = -1;
    call.args.seqstart_q_ptr = call.args.o_ptr;
    call.args.stride_bias = call.args.nhead_stride_lse = -1;
    expect_accepted();
}

TEST_F(Accepts, BatchStridesOfGroupAreIgnored) {
    call.group();
    call.args.batch_stride_q = call.args.batch_stride_o = -1;
    expect_accepted();
}

TEST_F(Accepts, EmptyTensorsMayBeNull) {
    call.args.seqlen_k = 0;
    call.args.k_ptr = call.args.v_ptr = nullptr;
    expect_accepted();
    call.args.seqlen_q = 0;
    call.args.q_ptr = nullptr;
    call.args.o_ptr = nullptr;
    expect_accepted();
}

TEST_F(Accepts, BroadcastInputs) {
    call.args.stride_k = call.args.nhead_stride_k = call.args.batch_stride_k = 0;
    call.args.batch_stride_q = 0;
    expect_accepted();
}

TEST_F(Accepts, StridesOfOneElementDoNotMatter) {
    call.args.batch = 1;
    call.args.batch_stride_q = call.args.batch_stride_o = -7;
    expect_accepted();
}

TEST_F(Accepts, PackedViews) { // batch x tokens x {q, k, v, o} x heads x hdim
    auto &a = call.args;
    call.traits.hdim_v = a.hdim_v = 8;
    a.nhead_k = 4;
    a.seqlen_k = 6;
    const int64_t head = 8, part = 4 * head, token = 4 * part;
    auto *const base = reinterpret_cast<float *>(call.room(0));
    a.q_ptr = base;
    a.k_ptr = base + part;
    a.v_ptr = base + 2 * part;
    a.o_ptr = base + 3 * part;
    for (int64_t *stride : {&a.nhead_stride_q, &a.nhead_stride_k, &a.nhead_stride_v, &a.nhead_stride_o}) *stride = head;
    for (int64_t *stride : {&a.stride_q, &a.stride_k, &a.stride_v, &a.stride_o}) *stride = token;
    for (int64_t *stride : {&a.batch_stride_q, &a.batch_stride_k, &a.batch_stride_v, &a.batch_stride_o})
        *stride = 6 * token;
    expect_accepted();
    a.o_ptr = base + 3 * part - 1; // one element into v
    EXPECT_EQ(call.check(), TESSERA_ERROR_INVALID_ARGUMENT);
    a.o_ptr = base + 3 * part + 1; // one element into the next token's q
    EXPECT_EQ(call.check(), TESSERA_ERROR_INVALID_ARGUMENT);
    a.o_ptr = const_cast<void *>(a.v_ptr);
    a.v_ptr = base + 3 * part;
    expect_accepted(); // the other way round, o before v
}

TEST_F(Accepts, OutputsInAnyOrderOfAxes) { // [token, head, batch, hdim]
    call.args.batch_stride_o = 16;
    call.args.nhead_stride_o = 32;
    call.args.stride_o = 128;
    expect_accepted();
}

TEST_F(Accepts, LimitsOfHdim) {
    for (const int hdim : {1, 512}) {
        call.traits.hdim_q = call.args.hdim_q = call.traits.hdim_v = call.args.hdim_v = hdim;
        call.args.seqlen_q = call.args.seqlen_k = 1;
        call.set_strides();
        expect_accepted();
    }
}

TEST_F(Accepts, NeighboursThatTouch) {
    call.args.o_ptr = call.room(1) + 2 * 2 * 10 * 8 * 4; // right behind k
    expect_accepted();
    call.args.o_ptr = call.room(1) - 2 * 4 * 6 * 16 * 4; // right before it
    expect_accepted();
}

TEST_F(Accepts, CumulativeLengthsOnlyWithoutLengths) {
    call.group();
    call.args.seqlen_q_ptr = call.seqlen_q.data();
    call.args.cu_seqlen_q_ptr = call.room(0) + 1; // not looked at
    expect_accepted();
}

// ---- structs of other sizes

TEST(StructSize, Zero) {
    Call call;
    call.traits.struct_size = 0;
    EXPECT_EQ(call.check(), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("traits->struct_size is 0"), std::string::npos);
}

TEST(StructSize, NoWholeWords) {
    Call call;
    struct {
        tessera_fmha_fwd_args args;
        uint64_t later;
    } newer = {call.args, 0};
    newer.args.struct_size = sizeof newer.args + 4;
    EXPECT_EQ(tessera_fmha_fwd_check(&call.traits, &newer.args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("args->struct_size is"), std::string::npos);
}

TEST(StructSize, BeyondAnyStruct) {
    Call call;
    std::vector<uint64_t> newer(65536 / 8 + 1);
    memcpy(newer.data(), &call.args, sizeof call.args);
    newer[0] = 65536 + 8;
    const auto *const args = reinterpret_cast<const tessera_fmha_fwd_args *>(newer.data());
    EXPECT_EQ(tessera_fmha_fwd_check(&call.traits, args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("args->struct_size is 65544"), std::string::npos);
    newer[0] = 65536;
    EXPECT_EQ(tessera_fmha_fwd_check(&call.traits, args), TESSERA_SUCCESS) << tessera_last_error();
}

TEST(StructSize, NullStructs) {
    Call call;
    EXPECT_EQ(tessera_fmha_fwd_check(nullptr, &call.args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "traits is NULL");
    EXPECT_EQ(tessera_fmha_fwd_check(&call.traits, nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "args is NULL");
}

TEST(StructSize, NewerCallersWithAnUnusedTail) {
    Call call;
    struct {
        tessera_fmha_fwd_traits traits;
        uint64_t later[2];
    } newer = {call.traits, {0, 0}};
    newer.traits.struct_size = sizeof newer;
    EXPECT_EQ(tessera_fmha_fwd_check(&newer.traits, &call.args), TESSERA_SUCCESS) << tessera_last_error();
    newer.later[1] = 1;
    EXPECT_EQ(tessera_fmha_fwd_check(&newer.traits, &call.args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("traits has a field at byte"), std::string::npos);
}

TEST(StructSize, OlderCallersHaveDefaults) {
    Call call;
    call.args.struct_size = offsetof(tessera_fmha_fwd_args, p_drop) / 8 * 8; // without the fields of dropout
    call.traits.has_dropout = 1;
    call.args.p_drop = 7; // beyond the caller's struct
    EXPECT_EQ(call.check(), TESSERA_SUCCESS) << tessera_last_error();
    call.traits.struct_size = offsetof(tessera_fmha_fwd_traits, is_v_rowmajor) / 8 * 8; // row-major by default
    call.traits.is_v_rowmajor = 7;
    EXPECT_EQ(call.check(), TESSERA_SUCCESS) << tessera_last_error();
}

} // namespace
