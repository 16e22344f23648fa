// SPDX-License-Identifier: MIT
// What calls of the operations on rows refuse, in which words, and that they write nothing then.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tessera/kernel/add_rmsnorm2d_rdquant.h"
#include "tessera/kernel/layernorm2d_fwd.h"
#include "tessera/kernel/moe_smoothquant.h"
#include "tessera/kernel/rmsnorm2d_fwd.h"
#include "tessera/kernel/smoothquant.h"

namespace {

// Memory for one tensor of any call here, apart from the others.
struct Room {
    static constexpr size_t kTensors = 16, kBytes = 4096;
    std::vector<unsigned char> memory = std::vector<unsigned char>(kTensors * kBytes, 0x11);
    void *at(size_t number) { return memory.data() + number * kBytes; }
};

// Each with all that its traits may ask for: 5 rows of 7 fp16, quantized to int8.
struct Layernorm : Room {
    tessera_layernorm2d_fwd_traits traits = tessera_layernorm2d_fwd_traits_init();
    tessera_layernorm2d_fwd_args args = tessera_layernorm2d_fwd_args_init();
    Layernorm() {
        traits.n = 7;
        traits.prec_i = TESSERA_TYPE_FP16;
        traits.prec_o = TESSERA_TYPE_INT8;
        traits.xbias = traits.save_mean_var = 1;
        traits.fused_add = TESSERA_FUSED_ADD_STORE;
        traits.fused_quant = TESSERA_FUSED_QUANT_SMOOTH;
        args.x_ptr = at(0), args.x_residual_ptr = at(1), args.x_bias_ptr = at(2), args.gamma_ptr = at(3);
        args.beta_ptr = at(4), args.sm_scale_ptr = at(5), args.y_ptr = at(6), args.y_residual_ptr = at(7);
        args.y_scale_ptr = at(8), args.mean_ptr = at(9), args.invstd_ptr = at(10);
        args.m = 5;
        args.x_stride = args.xr_stride = args.y_stride = args.yr_stride = 8;
    }
    tessera_status run(const tessera_device *device) {
        return tessera_layernorm2d_fwd(device, &traits, &args, nullptr);
    }
};
struct Rmsnorm : Room {
    tessera_rmsnorm2d_fwd_traits traits = tessera_rmsnorm2d_fwd_traits_init();
    tessera_rmsnorm2d_fwd_args args = tessera_rmsnorm2d_fwd_args_init();
    Rmsnorm() {
        traits.n = 7;
        traits.prec_i = TESSERA_TYPE_BF16;
        traits.prec_o = TESSERA_TYPE_E4M3;
        traits.save_rms = traits.save_unquant = 1;
        traits.fused_add = TESSERA_FUSED_ADD_STORE;
        traits.fused_quant = TESSERA_FUSED_QUANT_SMOOTH;
        args.x_ptr = at(0), args.x_residual_ptr = at(1), args.gamma_ptr = at(3), args.sm_scale_ptr = at(5);
        args.y_ptr = at(6), args.y_residual_ptr = at(7), args.y_unquant_ptr = at(8), args.y_scale_ptr = at(9);
        args.inv_rms_ptr = at(10);
        args.m = 5;
        args.x_stride = args.xr_stride = args.y_stride = args.yr_stride = 8;
    }
    tessera_status run(const tessera_device *device) { return tessera_rmsnorm2d_fwd(device, &traits, &args, nullptr); }
};
struct AddRmsnorm : Room {
    tessera_add_rmsnorm2d_rdquant_traits traits = tessera_add_rmsnorm2d_rdquant_traits_init();
    tessera_add_rmsnorm2d_rdquant_args args = tessera_add_rmsnorm2d_rdquant_args_init();
    AddRmsnorm() {
        traits.n = 7;
        traits.prec_i = TESSERA_TYPE_FP32;
        traits.prec_o = TESSERA_TYPE_INT8;
        traits.save_x = 1;
        args.a_ptr = at(0), args.b_ptr = at(1), args.gamma_ptr = at(2), args.x_ptr = at(3), args.qy_ptr = at(4);
        args.y_scale_ptr = at(5);
        args.m = 5;
        args.a_stride = args.b_stride = args.x_stride = args.y_stride = 8;
    }
    tessera_status run(const tessera_device *device) {
        return tessera_add_rmsnorm2d_rdquant(device, &traits, &args, nullptr);
    }
};
struct Smoothquant : Room {
    tessera_smoothquant_traits traits = tessera_smoothquant_traits_init();
    tessera_smoothquant_args args = tessera_smoothquant_args_init();
    Smoothquant() {
        traits.n = 7;
        traits.prec_i = TESSERA_TYPE_FP16;
        traits.prec_o = TESSERA_TYPE_INT8;
        args.x_ptr = at(0), args.sm_scale_ptr = at(1), args.qy_ptr = at(2), args.y_scale_ptr = at(3);
        args.m = 5;
        args.x_stride = args.y_stride = 8;
    }
    tessera_status run(const tessera_device *device) { return tessera_smoothquant(device, &traits, &args, nullptr); }
};
struct MoeSmoothquant : Room {
    tessera_moe_smoothquant_traits traits = tessera_moe_smoothquant_traits_init();
    tessera_moe_smoothquant_args args = tessera_moe_smoothquant_args_init();
    MoeSmoothquant() {
        traits.hidden_size = 7;
        traits.prec_i = TESSERA_TYPE_FP16;
        traits.prec_o = TESSERA_TYPE_INT8;
        args.x_ptr = at(0), args.sm_scale_ptr = at(1), args.topk_ids_ptr = at(2), args.qy_ptr = at(3);
        args.y_scale_ptr = at(4);
        args.tokens = 5, args.experts = 3, args.topk = 2;
        std::fill_n(static_cast<int32_t *>(at(2)), 10, 1);
        args.x_stride = args.y_stride = 8;
    }
    tessera_status run(const tessera_device *device) {
        return tessera_moe_smoothquant(device, &traits, &args, nullptr);
    }
};

template <class Call> struct Bad {
    std::function<void(Call &)> spoil;
    const char *says;
    tessera_status status = TESSERA_ERROR_INVALID_ARGUMENT;
};

class RowsCheck : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS); }
    void TearDown() override { tessera_device_close(device); }
    tessera_device *device = nullptr;

    template <class Call> void refuse(const std::vector<Bad<Call>> &all) {
        for (const Bad<Call> &bad : all) {
            Call call;
            const std::vector<unsigned char> before = call.memory;
            bad.spoil(call);
            EXPECT_EQ(call.run(device), bad.status) << bad.says;
            EXPECT_NE(std::string(tessera_last_error()).find(bad.says), std::string::npos)
                << bad.says << "\nbut: " << tessera_last_error();
            EXPECT_EQ(call.memory, before) << bad.says;
        }
        Call call;
        const std::vector<unsigned char> before = call.memory;
        EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_NE(call.memory, before);
    }
};

constexpr auto kNone = TESSERA_ERROR_NO_INSTANCE;
constexpr int64_t kFar = INT64_C(1) << 60;
template <class T> void *behind(T pointer, ptrdiff_t bytes) {
    return reinterpret_cast<void *>(reinterpret_cast<intptr_t>(pointer) + bytes);
}

TEST_F(RowsCheck, Layernorm) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    refuse<Layernorm>({
        {[](auto &c) { c.traits.n = 0; }, "n is 0: 1 or more"},
        {[](auto &c) { c.traits.n = -3; }, "n is -3: 1 or more"},
        {[](auto &c) { c.args.m = -1; }, "m is -1: 0 or more"},
        {[](auto &c) { c.traits.prec_i = TESSERA_TYPE_INT8; }, "prec_i is 9 (int8): fp32, fp16, bf16"},
        {[](auto &c) { c.traits.prec_i = static_cast<tessera_type>(77); }, "prec_i is 77 (none of tessera_type)"},
        {[](auto &c) { c.traits.prec_o = TESSERA_TYPE_E5M2; }, "prec_o is 5 (e5m2): prec_i, int8, e4m3, e4m3fnuz"},
        {[](auto &c) { c.traits.prec_o = static_cast<tessera_type>(-1); }, "prec_o is -1 (none of tessera_type)"},
        {[](auto &c) { c.traits.prec_o = TESSERA_TYPE_FP16; }, "prec_o is fp16: int8, or the device's fp8"},
        {[](auto &c) { c.traits.prec_o = TESSERA_TYPE_E4M3FNUZ; }, "prec_o e4m3fnuz (serves", kNone},
        {[](auto &c) { c.traits.fused_quant = TESSERA_FUSED_QUANT_NONE; },
         "prec_o is int8 and prec_i fp16: the same without fused_quant"},
        {[](auto &c) { c.traits.fused_quant = static_cast<tessera_fused_quant>(3); }, "fused_quant is 3: 0, 1, 2"},
        {[](auto &c) { c.traits.fused_add = static_cast<tessera_fused_add>(-1); }, "fused_add is -1: 0, 1, 2"},
        {[](auto &c) { c.traits.xbias = 2; }, "xbias is 2: 0 or 1"},
        {[](auto &c) { c.traits.save_mean_var = -1; }, "save_mean_var is -1: 0 or 1"},
        {[](auto &c) { c.args.epsilon = -1e-5f; }, "epsilon is -1e-05: 0 or more, and finite"},
        {[=](auto &c) { c.args.epsilon = nan; }, "epsilon is nan"},
        {[=](auto &c) { c.args.epsilon = infinity; }, "epsilon is inf"},
        {[](auto &c) { c.args.x_ptr = nullptr; }, "x_ptr is NULL"},
        {[](auto &c) { c.args.x_residual_ptr = nullptr; }, "x_residual_ptr is NULL"},
        {[](auto &c) { c.args.x_bias_ptr = nullptr; }, "x_bias_ptr is NULL"},
        {[](auto &c) { c.args.gamma_ptr = nullptr; }, "gamma_ptr is NULL"},
        {[](auto &c) { c.args.beta_ptr = nullptr; }, "beta_ptr is NULL"},
        {[](auto &c) { c.args.sm_scale_ptr = nullptr; }, "sm_scale_ptr is NULL"},
        {[](auto &c) { c.args.y_ptr = nullptr; }, "y_ptr is NULL"},
        {[](auto &c) { c.args.y_residual_ptr = nullptr; }, "y_residual_ptr is NULL"},
        {[](auto &c) { c.args.y_scale_ptr = nullptr; }, "y_scale_ptr is NULL"},
        {[](auto &c) { c.args.mean_ptr = nullptr; }, "mean_ptr is NULL"},
        {[](auto &c) { c.args.invstd_ptr = nullptr; }, "invstd_ptr is NULL"},
        {[](auto &c) { c.args.x_ptr = behind(c.args.x_ptr, 1); }, "must be aligned to 2 bytes"},
        {[](auto &c) { c.args.sm_scale_ptr = behind(c.args.sm_scale_ptr, 2); }, "must be aligned to 4 bytes"},
        {[](auto &c) { c.args.x_stride = -8; }, "x_stride is -8: 0 or more"},
        {[](auto &c) { c.args.xr_stride = -1; }, "xr_stride is -1: 0 or more"},
        {[](auto &c) { c.args.y_stride = 6; }, "y_stride is 6: 7, the columns, or more"},
        {[](auto &c) { c.args.yr_stride = 0; }, "yr_stride is 0: 7, the columns, or more"},
        {[](auto &c) { c.args.x_stride = kFar << 2; }, "x_ptr: its sizes and strides reach beyond"},
        {[](auto &c) { c.args.y_stride = kFar; }, "y_ptr: its sizes and strides reach beyond"},
        // An output may be an input, but no part of one, and no other output.
        {[](auto &c) { c.args.y_ptr = behind(c.args.x_ptr, 0); }, "overlaps x_ptr"},
        {[](auto &c) { c.args.y_residual_ptr = behind(c.args.x_ptr, 16); }, "overlaps x_ptr"},
        {[](auto &c) { c.args.y_residual_ptr = behind(c.args.x_ptr, 0), c.args.yr_stride = 9; }, "overlaps x_ptr"},
        {[](auto &c) { c.args.y_residual_ptr = c.args.y_ptr; }, "overlaps y_"},
        {[](auto &c) { c.args.mean_ptr = behind(c.args.invstd_ptr, 4); }, "overlaps"},
        {[](auto &c) { c.args.mean_ptr = behind(c.args.sm_scale_ptr, 0); }, "overlaps sm_scale_ptr"},
    });
}

TEST_F(RowsCheck, Rmsnorm) {
    refuse<Rmsnorm>({
        {[](auto &c) { c.traits.n = 0; }, "n is 0"},
        {[](auto &c) { c.args.m = -1; }, "m is -1"},
        {[](auto &c) { c.traits.save_rms = 7; }, "save_rms is 7: 0 or 1"},
        {[](auto &c) { c.traits.save_unquant = 2; }, "save_unquant is 2: 0 or 1"},
        {[](auto &c) { c.traits.use_model_sensitive_rmsnorm = 2; }, "use_model_sensitive_rmsnorm is 2: 0 or 1"},
        {[](auto &c) { c.traits.fused_quant = TESSERA_FUSED_QUANT_NONE, c.traits.prec_o = TESSERA_TYPE_BF16; },
         "save_unquant is 1 and fused_quant 0"},
        {[](auto &c) { c.args.y_unquant_ptr = nullptr; }, "y_unquant_ptr is NULL"},
        {[](auto &c) { c.args.inv_rms_ptr = nullptr; }, "inv_rms_ptr is NULL"},
        {[](auto &c) { c.args.inv_rms_ptr = behind(c.args.inv_rms_ptr, 1); }, "must be aligned to 4 bytes"},
        {[](auto &c) { c.args.y_unquant_ptr = c.args.y_residual_ptr; }, "overlaps"},
        {[](auto &c) { c.args.y_stride = 1; }, "y_stride is 1"},
        {[](auto &c) { c.args.epsilon = -1; }, "epsilon is -1"},
    });
}

TEST_F(RowsCheck, AddRmsnorm) {
    refuse<AddRmsnorm>({
        {[](auto &c) { c.traits.n = 0; }, "n is 0"},
        {[](auto &c) { c.args.m = -1; }, "m is -1"},
        {[](auto &c) { c.traits.prec_o = TESSERA_TYPE_FP32; }, "prec_o is fp32: int8, or the device's fp8"},
        {[](auto &c) { c.traits.prec_o = TESSERA_TYPE_E4M3FNUZ; }, "prec_o e4m3fnuz (serves", kNone},
        {[](auto &c) { c.traits.save_x = 3; }, "save_x is 3: 0 or 1"},
        {[](auto &c) { c.args.b_ptr = nullptr; }, "b_ptr is NULL"},
        {[](auto &c) { c.args.x_ptr = nullptr; }, "x_ptr is NULL"},
        {[](auto &c) { c.args.qy_ptr = nullptr; }, "qy_ptr is NULL"},
        {[](auto &c) { c.args.x_ptr = behind(c.args.b_ptr, 4); }, "x_ptr [0x"},
        {[](auto &c) { c.args.a_stride = -2; }, "a_stride is -2"},
        {[](auto &c) { c.args.x_stride = 3; }, "x_stride is 3: 7, the columns, or more"},
        {[](auto &c) { c.args.epsilon = -1; }, "epsilon is -1"},
    });
}

TEST_F(RowsCheck, Smoothquant) {
    refuse<Smoothquant>({
        {[](auto &c) { c.traits.n = 0; }, "n is 0"},
        {[](auto &c) { c.args.m = -1; }, "m is -1"},
        {[](auto &c) { c.traits.prec_i = TESSERA_TYPE_E4M3; }, "prec_i is 3 (e4m3)"},
        {[](auto &c) { c.traits.prec_o = TESSERA_TYPE_FP16; }, "prec_o is fp16"},
        {[](auto &c) { c.args.sm_scale_ptr = nullptr; }, "sm_scale_ptr is NULL"},
        {[](auto &c) { c.args.y_scale_ptr = nullptr; }, "y_scale_ptr is NULL"},
        {[](auto &c) { c.args.y_scale_ptr = behind(c.args.qy_ptr, 8); }, "overlaps"},
        {[](auto &c) { c.args.y_stride = 0; }, "y_stride is 0"},
    });
}

TEST_F(RowsCheck, MoeSmoothquant) {
    refuse<MoeSmoothquant>({
        {[](auto &c) { c.traits.hidden_size = 0; }, "hidden_size is 0: 1 or more"},
        {[](auto &c) { c.args.tokens = -1; }, "tokens is -1: 0 or more"},
        {[](auto &c) { c.args.topk = -1; }, "topk is -1: 0 or more"},
        {[](auto &c) { c.args.experts = -1; }, "experts is -1: 0 or more"},
        {[](auto &c) { c.args.tokens = c.args.topk = 1 << 16; }, "topk * tokens is 4294967296: at most 2147483647"},
        {[](auto &c) { c.args.topk_ids_ptr = nullptr; }, "topk_ids_ptr is NULL"},
        {[](auto &c) { c.args.sm_scale_ptr = nullptr; }, "sm_scale_ptr is NULL"},
        {[](auto &c) { c.args.x_stride = -1; }, "x_stride is -1"},
        {[](auto &c) { c.args.y_stride = 6; }, "y_stride is 6"},
        {[](auto &c) { c.args.topk_ids_ptr = behind(c.args.topk_ids_ptr, 2); }, "must be aligned to 4 bytes"},
        {[](auto &c) { c.args.y_scale_ptr = behind(c.args.topk_ids_ptr, 0); }, "overlaps topk_ids_ptr"},
    });
}

TEST_F(RowsCheck, NothingIsNeededOfNoRows) {
    Layernorm call;
    call.args = tessera_layernorm2d_fwd_args_init();
    EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
    MoeSmoothquant moe;
    moe.args = tessera_moe_smoothquant_args_init();
    moe.args.topk = 2;
    EXPECT_EQ(moe.run(device), TESSERA_SUCCESS) << tessera_last_error();
}

TEST_F(RowsCheck, WhatIsNotAskedForIsIgnored) {
    Layernorm call;
    call.traits.xbias = call.traits.save_mean_var = 0;
    call.traits.fused_add = TESSERA_FUSED_ADD_NONE;
    call.traits.fused_quant = TESSERA_FUSED_QUANT_NONE;
    call.traits.prec_o = call.traits.prec_i;
    call.args.x_residual_ptr = call.args.x_bias_ptr = behind(call.args.y_ptr, 1);
    call.args.y_residual_ptr = call.args.y_scale_ptr = call.args.mean_ptr = call.args.invstd_ptr = call.args.y_ptr;
    call.args.sm_scale_ptr = nullptr;
    call.args.xr_stride = call.args.yr_stride = -1;
    EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
    call.args.m = 1; // the strides of one row matter to nobody
    call.args.x_stride = call.args.y_stride = -7;
    EXPECT_EQ(call.run(device), TESSERA_SUCCESS) << tessera_last_error();
}

TEST_F(RowsCheck, CallsNeedNoWorkspace) {
    Layernorm call;
    size_t bytes = 1;
    EXPECT_EQ(tessera_layernorm2d_fwd_workspace_size(device, &call.traits, &call.args, &bytes), TESSERA_SUCCESS);
    EXPECT_EQ(bytes, 0u);
}

// The name of the first instance for the portable target, whose vectors have 4 lanes.
#define EXPECT_CK_NAME(op, call, says)                                                                                 \
    do {                                                                                                               \
        const tessera_table *const table = tessera_##op##_get_table();                                                 \
        char name[256] = "";                                                                                           \
        for (uint32_t i = 0; i < table->row_count; i++)                                                                \
            if (tessera_row(table, i)->target == TESSERA_TARGET_PORTABLE)                                              \
                tessera_##op##_ck_name(reinterpret_cast<const tessera_##op##_instance *>(tessera_row(table, i)),       \
                                       &(call).traits, &(call).args, name, sizeof name);                               \
        if (*name) {                                                                                                   \
            EXPECT_STREQ(name, says);                                                                                  \
        }                                                                                                              \
    } while (0)

// test/codegen/test_rows_ops.py has the same names of the generator, and their source.
TEST_F(RowsCheck, NamesOfCk) {
    Layernorm layernorm;
    EXPECT_CK_NAME(layernorm2d_fwd, layernorm,
                   "layernorm2d_fwd_fp16_int8_sxfp32_syfp32_1x4_1x1_1x4_1x4_wpr_op_xbias_pras_smdqt_pn_mv");
    Rmsnorm rmsnorm;
    rmsnorm.traits.fused_add = TESSERA_FUSED_ADD_ONLY;
    rmsnorm.traits.fused_quant = TESSERA_FUSED_QUANT_DYNAMIC;
    rmsnorm.traits.use_model_sensitive_rmsnorm = 1;
    EXPECT_CK_NAME(rmsnorm2d_fwd, rmsnorm,
                   "rmsnorm2d_fwd_bf16_fp8_syfp32_1x4_1x1_1x4_1x4_wpr_op_pra_dqt_pn_rms_saveunquant_t5ml");
    AddRmsnorm add_rmsnorm;
    add_rmsnorm.traits.prec_i = TESSERA_TYPE_FP16;
    EXPECT_CK_NAME(add_rmsnorm2d_rdquant, add_rmsnorm, "add_rmsnorm2d_rdquant_fp16_1x4_1x1_1x4_1x4_wpr_op_pn_x");
    Smoothquant smoothquant;
    smoothquant.traits.prec_i = TESSERA_TYPE_FP32;
    smoothquant.traits.prec_o = TESSERA_TYPE_E4M3;
    EXPECT_CK_NAME(smoothquant, smoothquant, "smoothquant_fp32_fp8_1x4_1x1_1x4_1x4_wpr_op_pn");
    MoeSmoothquant moe_smoothquant;
    moe_smoothquant.traits.prec_i = TESSERA_TYPE_BF16;
    EXPECT_CK_NAME(moe_smoothquant, moe_smoothquant, "moe_smoothquant_bf16_i8_1x4_1x1_1x4_1x4_wpr_op_pn");
}

} // namespace
