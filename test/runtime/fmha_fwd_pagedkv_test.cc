// SPDX-License-Identifier: MIT
// What calls of fmha_fwd_pagedkv refuse beside what those of fmha_fwd_splitkv do, by the same code; and their names.
#include <gtest/gtest.h>

#include <string>

#include "tessera/kernel/fmha_fwd_pagedkv.h"

namespace {

// Nothing of it is read but sizes.
TEST(Pagedkv, NamesAndRefusals) {
    tessera_fmha_fwd_pagedkv_traits traits = tessera_fmha_fwd_pagedkv_traits_init();
    tessera_fmha_fwd_pagedkv_args args = tessera_fmha_fwd_pagedkv_args_init();
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS);
    traits.hdim_q = args.hdim_q = traits.hdim_v = args.hdim_v = 128;
    traits.data_type = TESSERA_FMHA_BF16;
    traits.skip_min_seqlen_q = 1;
    args.batch = args.nhead_q = args.nhead_k = args.seqlen_q = args.seqlen_k = args.cache_blocks = 1;
    args.scale_s = 1, args.page_block_size = 16;
    const int32_t table = 0;
    args.block_table_ptr = &table;

    const tessera_fmha_fwd_pagedkv_instance *instance = nullptr;
    char text[256] = "";
    ASSERT_EQ(tessera_fmha_fwd_pagedkv_select(tessera_device_get_facts(device), &traits, &args, &instance),
              TESSERA_SUCCESS)
        << tessera_last_error();
    tessera_fmha_fwd_pagedkv_ck_name(instance, &traits, &args, text, sizeof text);
    EXPECT_STREQ(text, "fmha_fwd_pagedkv_d128_bf16_batch_b128x128x32x128x32x128_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_"
                       "pagedkv_vr_psskddv_nlogits_nbias_nmask_nlse_skip_nsquant_pagedkv_nsink");
    args.min_seqlen_q = -1;
    EXPECT_EQ(tessera_fmha_fwd_pagedkv_check(&traits, &args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "min_seqlen_q is -1: 0 or more");
    args.page_block_size = 0;
    EXPECT_EQ(tessera_fmha_fwd_pagedkv_check(&traits, &args), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), "page_block_size is 0: 1 or more");
    tessera_device_close(device);
}

} // namespace
