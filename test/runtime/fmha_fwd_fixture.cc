// SPDX-License-Identifier: MIT
#include "fmha_fwd_fixture.h"

#include <algorithm>
#include <utility>

Call::Call() : memory(32 * kRoom) {
    traits.hdim_q = args.hdim_q = 8;
    traits.hdim_v = args.hdim_v = 16;
    args.batch = 2;
    args.nhead_q = 4;
    args.nhead_k = 2;
    args.seqlen_q = args.max_seqlen_q = 6;
    args.seqlen_k = 10;
    args.scale_s = 0.5f;
    args.logits_soft_cap = 30;
    args.block_scale_size_q = args.block_scale_size_kv = 128;
    int next = 0;
    for (const void **pointer : {&args.q_ptr, &args.k_ptr, &args.v_ptr, &args.bias_ptr, &args.q_descale_ptr,
                                 &args.k_descale_ptr, &args.v_descale_ptr, &args.sink_ptr})
        *pointer = room(next++);
    for (void **pointer : {&args.rand_val_ptr, &args.lse_ptr, &args.o_ptr}) *pointer = room(next++);
    args.drop_seed_ptr = reinterpret_cast<uint64_t *>(room(next++));
    args.drop_offset_ptr = reinterpret_cast<uint64_t *>(room(next++));
    set_strides();
}

unsigned char *Call::room(int number) {
    const auto start = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + ((64 - start % 64) % 64) + static_cast<size_t>(number) * kRoom;
}

void Call::set_strides() {
    auto &a = args;
    const int64_t sq = traits.is_group_mode ? seqstart_q[2] : a.seqlen_q;
    const int64_t sk = traits.is_group_mode ? seqstart_k[2] : a.seqlen_k;
    const int64_t dq = a.hdim_q, dv = a.hdim_v, hq = a.nhead_q, hk = a.nhead_k;
    const auto set = [](int64_t &row, int64_t &head, int64_t &batch, int64_t inner, int64_t rows, int64_t heads) {
        row = inner;
        head = row * rows;
        batch = head * heads;
    };
    set(a.stride_q, a.nhead_stride_q, a.batch_stride_q, dq, sq, hq);
    set(a.stride_k, a.nhead_stride_k, a.batch_stride_k, dq, sk, hk);
    if (traits.is_v_rowmajor)
        set(a.stride_v, a.nhead_stride_v, a.batch_stride_v, dv, sk, hk);
    else
        set(a.stride_v, a.nhead_stride_v, a.batch_stride_v, sk + sk % 2, dv, hk);
    set(a.stride_o, a.nhead_stride_o, a.batch_stride_o, dv, sq, hq);
    if (traits.bias_type == TESSERA_BIAS_ALIBI)
        a.stride_bias = hq;
    else
        set(a.stride_bias, a.nhead_stride_bias, a.batch_stride_bias, sk, sq, hq);
    set(a.stride_randval, a.nhead_stride_randval, a.batch_stride_randval, sk, sq, hq);
    a.nhead_stride_lse = sq;
    a.batch_stride_lse = sq * hq;
    set(a.stride_q_descale, a.nhead_stride_q_descale, a.batch_stride_q_descale, 1, sq, hq);
    set(a.stride_k_descale, a.nhead_stride_k_descale, a.batch_stride_k_descale, 1, sk, hk);
    set(a.stride_v_descale, a.nhead_stride_v_descale, a.batch_stride_v_descale, 2, dv, hk);
}

void Call::group() {
    traits.is_group_mode = 1;
    args.seqlen_q = args.seqlen_k = 0;
    args.seqstart_q_ptr = seqstart_q.data();
    args.seqstart_k_ptr = seqstart_k.data();
    args.block_scale_seqstart_q_ptr = block_q.data();
    args.block_scale_seqstart_k_ptr = block_k.data();
    args.seqstart_v_scale_ptr = v_scale.data();
    set_strides();
}

void Call::dtype(tessera_fmha_dtype dtype, tessera_qscale qscale) {
    traits.data_type = dtype;
    traits.qscale_type = qscale;
    set_strides();
}

static const tessera_schema *schema() { return tessera_fmha_fwd_get_table()->schema; }

Served::Served() : tessera_served{} {
    for (uint32_t i = 0; i < schema()->trait_count; i++) hold(schema()->traits[i].name, ~UINT64_C(0));
    hdim_q() = hdim_v() = {1, 512, 1};
}

void Served::hold(const std::string &name, uint64_t values) {
    for (uint32_t i = 0; i < schema()->trait_count; i++) {
        const tessera_trait &trait = schema()->traits[i];
        const uint64_t all = (UINT64_C(1) << trait.count) - 1;
        if (name == trait.name)
            sets[trait.word] = (sets[trait.word] & ~(all << trait.bit)) | (values & all) << trait.bit;
    }
}

tessera_fmha_fwd_instance make_instance(const char *name, tessera_target target, const tessera_served *served,
                                        uint16_t bm0, uint16_t bn0, float macs_per_cycle, float tile_cycles) {
    tessera_fmha_fwd_instance i = {};
    i.base.name = name;
    i.base.target = target;
    i.base.served = served;
    i.base.served_count = 1;
    i.tile = {bm0, bn0, 16, 0, bn0, 0, 1, 1, 1, 1, 1, 1, 16, 8, 1, 16, 8, 1};
    i.keys_in = TESSERA_KEYS_IN_ROWS;
    i.turns = 1;
    i.workgroups = 1;
    i.rates[TESSERA_KV_AUTO] = 1;
    i.row_step = 16;
    i.base.pipeline = "qr";
    i.base.epilogue = "store";
    i.base.macs_per_cycle = macs_per_cycle;
    i.base.tile_cycles = tile_cycles;
    return i;
}

Table::Table(std::vector<tessera_fmha_fwd_instance> rows_) : rows(std::move(rows_)) {
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        for (int dtype = 0; dtype < TESSERA_FMHA_DTYPE_COUNT; dtype++)
            for (size_t bucket = 0; bucket < buckets.size(); bucket++) {
                const auto first = static_cast<uint32_t>(order.size());
                const int floor = bucket ? static_cast<int>(buckets[bucket - 1]) : 0;
                for (uint32_t row = 0; row < rows.size(); row++) {
                    bool may = false;
                    const tessera_instance &base = rows[row].base;
                    for (uint32_t s = 0; s < base.served_count; s++) {
                        const tessera_served &served = base.served[s];
                        may |= (tessera_set_of(&served, schema()->traits) >> dtype & 1) &&
                               static_cast<int>(std::max(served.ranges[0].max, served.ranges[1].max)) > floor;
                    }
                    if (may && base.target == target) order.push_back(row);
                }
                slices.push_back({first, static_cast<uint32_t>(order.size()) - first});
            }
    table = {schema(),
             rows.data(),
             sizeof rows[0],
             static_cast<uint32_t>(rows.size()),
             buckets.data(),
             static_cast<uint32_t>(buckets.size()),
             slices.data(),
             order.data(),
             0};
}
