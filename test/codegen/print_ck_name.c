// SPDX-License-Identifier: MIT
// Prints CK's name of each call on stdin, for test_ck_name.py to compare. A line holds the tile's bm0 bn0 bk0 bk1 bn1
// bk0max rm wm wn wk, the pipeline, and the traits and lengths of a call in the order of print_name().
#include <stdio.h>

#include "tessera/kernel/fmha_fwd.h"

static void print_name(const tessera_fmha_fwd_instance *instance, const int *n, const char *dtype) {
    tessera_fmha_fwd_traits t = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args a = TESSERA_FMHA_FWD_ARGS_INIT;
    char name[256];
    tessera_fmha_dtype_from_string(dtype, &t.data_type);
    t.hdim_q = a.hdim_q = n[0];
    t.hdim_v = a.hdim_v = n[1];
    t.is_group_mode = n[2];
    t.is_v_rowmajor = n[3];
    t.has_logits_soft_cap = n[4];
    t.bias_type = (tessera_bias)n[5];
    t.mask_type = a.mask_type = (tessera_mask)n[6];
    t.has_lse = n[7];
    t.has_dropout = n[8];
    t.skip_min_seqlen_q = n[9];
    t.qscale_type = (tessera_qscale)n[10];
    t.has_sink = n[11];
    a.seqlen_q = a.max_seqlen_q = n[12];
    a.seqlen_k = n[13];
    a.batch = a.nhead_q = a.nhead_k = 1;
    tessera_fmha_fwd_ck_name(instance, &t, &a, name, sizeof name);
    puts(name);
}

int main(void) {
    int tile[11], n[14];
    char pipeline[32], dtype[16];
    for (;;) {
        for (int i = 0; i < 11; i++)
            if (scanf("%d", &tile[i]) != 1) return 0;
        if (scanf("%31s %15s", pipeline, dtype) != 2) return 1;
        for (int i = 0; i < 14; i++)
            if (scanf("%d", &n[i]) != 1) return 1;
        const uint16_t rm = (uint16_t)tile[6];
        const uint16_t wm = (uint16_t)tile[7], wn = (uint16_t)tile[8], wk = (uint16_t)tile[9];
        const tessera_fmha_fwd_instance instance = {
            .base = {.pipeline = pipeline},
            .tile = {.bm0 = (uint16_t)tile[0],
                     .bn0 = (uint16_t)tile[1],
                     .bk0 = (uint16_t)tile[2],
                     .bk1 = (uint16_t)tile[3],
                     .bn1 = (uint16_t)tile[4],
                     .bk0max = (uint16_t)tile[5],
                     .rm0 = rm,
                     .rn0 = 1,
                     .rk0 = 1,
                     .rm1 = rm,
                     .rn1 = 1,
                     .rk1 = 1,
                     .wm0 = wm,
                     .wn0 = wn,
                     .wk0 = wk,
                     .wm1 = wm,
                     .wn1 = (uint16_t)tile[10],
                     .wk1 = wk},
        };
        print_name(&instance, n, dtype);
    }
}
