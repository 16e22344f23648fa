// SPDX-License-Identifier: MIT
// Attention of a sequence by itself: fmha_fwd in fp32 on the CPU, over its own contiguous copy of keys and values.
#include <math.h>
#include <stdlib.h>

#include "elements.h"
#include "serving.h"
#include "tessera/fmha_fwd.h"

static tessera_status attend(const serving_model *m, const serving_sequence *s, float *o) {
    tessera_fmha_fwd_traits t = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args a = TESSERA_FMHA_FWD_ARGS_INIT;
    t.hdim_q = t.hdim_v = a.hdim_q = a.hdim_v = m->hdim;
    t.data_type = TESSERA_FMHA_FP32;
    a.q_ptr = s->q, a.k_ptr = s->k, a.v_ptr = s->v, a.o_ptr = o;
    a.batch = 1, a.seqlen_q = a.max_seqlen_q = 1, a.seqlen_k = s->length;
    a.nhead_q = m->heads, a.nhead_k = m->heads_k;
    a.scale_s = 1 / sqrtf((float)m->hdim);
    a.nhead_stride_q = a.nhead_stride_o = a.nhead_stride_k = a.nhead_stride_v = m->hdim;
    a.stride_q = a.stride_o = (int64_t)m->heads * m->hdim;
    a.stride_k = a.stride_v = (int64_t)m->heads_k * m->hdim;
    tessera_status status = tessera_fmha_fwd_workspace_size(m->alone, &t, &a, &a.workspace_size);
    if (status != TESSERA_SUCCESS) return status;
    status = tessera_device_malloc(m->alone, a.workspace_size, &a.workspace_ptr);
    if (status == TESSERA_SUCCESS) status = tessera_fmha_fwd(m->alone, &t, &a, NULL);
    tessera_device_free(m->alone, a.workspace_ptr);
    return status;
}

// CK's tolerances, relative and absolute: a unit in the last place of bf16 is 8 of fp16.
static double tolerance(tessera_type type) { return type == TESSERA_TYPE_BF16 ? 1e-2 : 1e-3; }

tessera_status serving_check(const serving_model *m, const serving_sequence *s, const void *o, double *ratio) {
    const int32_t count = m->heads * m->hdim;
    float *const want = malloc(sizeof *want * (size_t)count);
    if (!want) abort();
    const tessera_status status = attend(m, s, want);
    *ratio = 0;
    for (int32_t i = 0; i < count && status == TESSERA_SUCCESS; i++) {
        const double right = (double)want[i], error = fabs(element_load(m->type, o, i) - right);
        const double found = error / (tolerance(m->type) * (1 + fabs(right)));
        if (!(found <= *ratio)) *ratio = isnan(found) ? INFINITY : found;
    }
    free(want);
    return status;
}
