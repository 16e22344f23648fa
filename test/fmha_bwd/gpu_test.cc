// SPDX-License-Identifier: MIT
// The suites on GPUs, which are simulated unless TESSERA_TEST_DEVICE names a real one. A problem without an instance
// must be refused with a reason; the suite Landed lists problems that must be served.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "suites.h"
#include "tessera/kernel/fmha_bwd.h"

namespace {

// ---- problems that must be served, whatever the covers are: every trait with every data type and head dim

// clang-format off
const Axis hdims{"-d=32", "-d=64", "-d=128", "-d=96"}, large{"-d=192 -d_v=128", "-d=192", "-d=256", "-d=160 -d_v=240"},
    traits{"-mask=t", "-mask=b:9,9", "-mode=1", "-mode=1 -deterministic=1", "-deterministic=1", "-bias=e -dbias=1", "-bias=a", "-logits_soft_cap=5",
           "-p_drop=0.2", "-sink_grad=1 -mask=b:20,5,3", "-h_k=1 -dkv_heads=k", "-iperm=0 -operm=0 -scale=-0.2"};
// clang-format on

Suite landed_suite(const Place &on) {
    return {"Landed", {kinds(on, {"fp16", "bf16"}), {"-b=1 -h=2 -s=70 -s_k=140"}}, {hdims, traits}};
}
// Several passes over the queries.
Suite landed_large_suite(const Place &on) {
    return {"LandedLarge", {kinds(on, {"fp16", "bf16"}), {"-b=1 -h=2 -s=34 -s_k=140"}}, {large, traits}};
}
Suite landed_fp32_suite(const Place &on) {
    return {"LandedFp32",
            {kinds(on, {"fp32"}), {"-b=1 -h=2 -s=70 -s_k=140"}},
            {{"-d=32", "-d=64", "-d=128", "-d=72 -d_v=104"}, traits}};
}

// Errors that few samples show: the soft cap's own, where the cap is large; do that MFMA of CDNA 2 take for 0, in a row
// of dv that few queries add to.
Suite landed_errors_suite(const Place &on) {
    return {"LandedErrors",
            {kinds(on, {"fp32", "fp16"}),
             {"-d=32 -mode=1 -logits_soft_cap=50 -p_drop=0.2 -init=uf -b=1 -h=2 -s=100 -s_k=130 -mask=b",
              "-d=64 -mode=1 -init=nf -iperm=0 -operm=0 -b=2 -h=2 -s=512 -s_k=200 -s_kpad=256 -mask=2"}},
            {}};
}

// ---- what only kernels for NVIDIA's GPUs have: lengths beside those of their tiles, and workgroups that stay and take
// tasks in turns, of which there are more here than multiprocessors

Axis nvidia_kinds(const Place &on) {
    Axis some;
    for (const std::string &kind : kinds(on, {"bf16"}))
        if (kind.find("-device=cuda") != std::string::npos) some.push_back(kind);
    return some;
}

// clang-format off
Suite edges_suite(const Place &on) {
    return {"Edges",
            {nvidia_kinds(on), {"-d=64", "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"},
             {"-b=1 -h=1 -s=1 -s_k=1", "-b=1 -h=2 -s=63 -s_k=129", "-b=1 -h=1 -s=64 -s_k=128", "-b=2 -h=2 -h_k=1 -s=65 -s_k=127", "-b=1 -h=1 -s=193 -s_k=256", "-b=1 -h=1 -s=320 -s_k=65", "-b=1 -h=2 -s=127 -s_k=129", "-b=1 -h=1 -s=128 -s_k=128", "-b=2 -h=2 -s=129 -s_k=64"}},
            {{"-mask=0", "-mask=t", "-mask=b:30,9"}, {"-bias=n", "-bias=e:2 -dbias=1", "-bias=a", "-logits_soft_cap=3"}, {"-p_drop=0", "-p_drop=0.3"}, {"-deterministic=0", "-deterministic=1"}, {"-dkv_heads=q", "-dkv_heads=k"}}};
}
Suite turns_suite(const Place &on) {
    return {"Turns",
            {nvidia_kinds(on), {"-b=4 -h=16 -h_k=8 -s=70 -s_k=550"}, {"-d=64", "-d=128", "-d=192 -d_v=128", "-d=192", "-d=256"},
             {"-mask=0", "-mask=b -deterministic=1", "-dkv_heads=k -p_drop=0.2", "-mode=1 -mask=t:50,20 -bias=e:1 -dbias=1", "-mode=1 -deterministic=1 -bias=a"}},
            {}};
}
// Many blocks of keys that wait for each other at many tiles of queries, which not all of them have.
Suite ordered_suite(const Place &on) {
    return {"Ordered",
            {nvidia_kinds(on), {"-deterministic=1"},
             {"-d=64 -b=2 -h=20 -s=650 -s_k=1100", "-d=128 -b=3 -h=16 -s=1100 -s_k=900", "-d=128 -b=1 -h=4 -s=64 -s_k=5000"},
             {"-mask=0", "-mask=t", "-mask=b", "-mask=t:150,60", "-mask=b:0,300,200", "-mask=t:100,0,300", "-mask=b:-1,200", "-mask=t:0,-1",
              "-mode=1 -mask=b", "-mode=1 -mask=t:200,100,130 -h_k=4 -dkv_heads=k"}},
            {{"-bias=n", "-logits_soft_cap=3", "-p_drop=0.2"}}};
}
Suite ordered_large_suite(const Place &on) {
    return {"OrderedLarge",
            {nvidia_kinds(on), {"-deterministic=1 -b=2 -h=10 -s=450 -s_k=700"}, {"-d=192 -d_v=128", "-d=192", "-d=256"},
             {"-mask=0", "-mask=b", "-mask=t:100,60,200", "-mode=1 -mask=t -h_k=5 -dkv_heads=k"}},
            {}};
}
// clang-format on

// ---- few queries: instances that have all of them at once, and need no workspace

// "-device=D -prec=P -instance=NAME", of each, with the head dims that it serves.
Axis resident(const Place &on) {
    const tessera_table *table = tessera_fmha_bwd_get_table();
    Axis all;
    for (const Device &device : devices(on, table))
        for (uint32_t i = 0; i < table->row_count; i++) {
            const auto *row = reinterpret_cast<const tessera_fmha_bwd_instance *>(tessera_row(table, i));
            if (row->base.target != device.target || !row->tile.max_q) continue;
            const bool half = tessera_set_of(row->base.served, &table->schema->traits[0]) >> TESSERA_FMHA_FP16 & 1;
            const std::string kind = device.argument() + (half ? " -prec=fp16" : " -prec=bf16");
            const Axis small{"32", "64", "40 -d_v=24"}, great{"128", "96", "72 -d_v=104"};
            for (const std::string &hdim : row->tile.dq == 64 ? small : great)
                all.push_back(kind + " -instance=" + row->base.name + " -d=" + hdim);
        }
    return all;
}

// clang-format off
Suite few_queries_suite(const Place &on) {
    return {"LandedFewQueries",
            {resident(on), {"-s=1", "-s=16", "-s=31", "-s=32"},
             {"-s_k=0", "-s_k=1", "-s_k=31", "-s_k=33", "-s_k=127", "-s_k=128", "-s_k=129", "-s_k=256", "-s_k=257", "-s_k=600"}},
            {{"-bias=n", "-bias=e", "-bias=e:2 -dbias=1", "-bias=a", "-logits_soft_cap=5"}, {"-p_drop=0", "-p_drop=0.2"},
             {"-h=2", "-h=4 -h_k=2", "-b=3 -h=3 -h_k=1"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}, {"-scale=0", "-scale=-0.2"},
             {"-sink_grad=0", "-sink_grad=1"}, {"-deterministic=0", "-deterministic=1"}, {"-init=uf", "-init=nf"}}};
}
Suite few_of_room_suite(const Place &on) {
    return {"LandedFewOfRoom", {resident(on), {"-b=3 -s=32 -s_k=200 -q_eff_lens=1,32,0 -kv_eff_lens=200,1,70", "-b=2 -s=20 -s_k=129 -kv_eff_lens=0,129"}},
            {{"-h=2", "-h=4 -h_k=2"}, {"-bias=n", "-bias=e:2 -dbias=1", "-p_drop=0.2"}, {"-iperm=1 -operm=1", "-iperm=0 -operm=0"}}};
}
// clang-format on

// Refused with the instance: more queries, masks, groups, dk and dv of fewer heads.
const Axis not_few{"-s=33", "-s=32 -mask=t", "-s=32 -mode=1", "-s=32 -h_k=1 -dkv_heads=k"};

// ---- refused with a reason: there is no instance, and nothing runs

const Axis refusals{"-d=100", "-d=64 -d_v=44", "-d=7", "-d=264", "-d=64 -d_v=512"},
    refusals_of_fp32{"-d=136", "-d=64 -d_v=256"};

// ---- deterministic calls have the same bytes whatever the order of waves

const char *const deterministic[] = {
    "-b=2 -h=2 -h_k=1 -s=150 -s_k=300 -d=64 -mask=b -sink_grad=1",
    "-b=1 -h=2 -s=70 -s_k=400 -d=128 -p_drop=0.2",
    "-b=1 -h=4 -h_k=2 -s=65 -s_k=300 -d=32 -dkv_heads=k",
    "-mode=1 -b=2 -h=2 -s=64,133 -s_k=300,90 -d=64",
    "-mode=1 -b=2 -h=2 -s=64,33 -s_k=300,90 -d=128 -mask=t:50,20 -bias=e:1 -dbias=1",
    "-b=2 -h=4 -h_k=2 -s=150 -s_k=300 -d=128 -mask=b -dkv_heads=k",
    "-mode=1 -b=2 -h=2 -s=64,133 -s_k=300,90 -s_kpad=450,100 -d=96",
    "-b=1 -h=2 -s=40 -s_k=300 -d=192 -mask=b",
    "-mode=1 -b=2 -h=1 -s=40,33 -s_k=200,90 -d=256 -p_drop=0.2",
};

void expect_same_in_all_orders(const std::string &arguments) {
    std::vector<uint8_t> want;
    for (const char *order : {"forward", "backward", "alternate", "random:1"}) {
        setenv("TESSERA_SIM_ORDER", order, 1);
        Problem p(arguments + " -deterministic=1");
        unsetenv("TESSERA_SIM_ORDER");
        p.launch(want.empty());
        if (want.empty()) want = p.outputs();
        EXPECT_EQ(p.outputs(), want) << command(fmha_bwd, arguments) << ", waves " << order;
    }
}

// ---- no workspace

// Few queries of many heads take an instance without one; one query more does not.
void expect_no_workspace(const std::string &arguments) {
    Problem few(arguments + " -b=16 -h=16 -s=16 -s_k=40");
    few.launch(true);
    const std::vector<uint8_t> want = few.outputs();
    tessera_fmha_bwd_launcher l;
    ASSERT_EQ(tessera_fmha_bwd_launcher_init(few.device, few.traits, &l), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_GT(l.instance->tile.max_q, 0);
    EXPECT_EQ(l.workspace_size, 0U);
    EXPECT_EQ(l.host_ws_size + l.device_ws_size + l.offsets_offset + l.scratch_offset, 0U);
    EXPECT_EQ(l.needs_zero_dq_acc, 0);
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace(&l, nullptr, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace_async(&l, nullptr, nullptr, nullptr, nullptr), TESSERA_SUCCESS);
    few.args->is_workspace_prepared = 1;
    few.launch();
    EXPECT_EQ(few.outputs(), want);

    tessera_fmha_bwd_traits more = *few.traits;
    more.seqlen_q = 33;
    ASSERT_EQ(tessera_fmha_bwd_launcher_init(few.device, &more, &l), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(l.instance->tile.max_q, 0);
    EXPECT_EQ(l.device_ws_size, 16U * 16 * 33 * static_cast<size_t>(more.hdim_q) * 4);
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace(&l, nullptr, nullptr), TESSERA_ERROR_WORKSPACE);
}

// ---- the workspace's head, written on the device

struct Closer {
    void operator()(tessera_device *device) const { tessera_device_close(device); }
};

template <class T> std::vector<T> read(const tessera_device *device, const char *from, size_t count) {
    std::vector<T> all(count);
    EXPECT_EQ(tessera_device_copy_from(device, all.data(), from, count * sizeof(T)), TESSERA_SUCCESS);
    return all;
}

void *upload(const tessera_device *device, const std::vector<int32_t> &list) {
    void *to = nullptr;
    EXPECT_EQ(tessera_device_malloc(device, list.size() * 4, &to), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_copy_to(device, to, list.data(), list.size() * 4), TESSERA_SUCCESS);
    return to;
}

// Lengths of so many sequences, which the host tells the launcher or not.
void expect_head(const std::string &arguments) {
    const Case one(fmha_bwd, arguments);
    const int32_t batch = static_cast<const fmha_bwd_arguments *>(one.values())->forward.options.b;
    const bool known = arguments.find("-seed=1") != std::string::npos;
    tessera_device *opened = nullptr;
    ASSERT_EQ(tessera_device_open(one.options().device, &opened), TESSERA_SUCCESS) << tessera_last_error();
    const std::unique_ptr<tessera_device, Closer> device(opened);
    std::vector<int32_t> q{0}, k{0};
    for (int32_t b = 0; b < batch; b++) {
        q.push_back(q.back() + b * 7 % 23);
        k.push_back(k.back() + b * 37 % 300);
    }
    tessera_fmha_bwd_traits t = tessera_fmha_bwd_traits_init();
    t.data_type = TESSERA_FMHA_BF16, t.is_group_mode = t.is_deterministic = 1;
    t.mask_type = TESSERA_MASK_TOP_LEFT; // parts are zeroed
    t.batch = batch, t.seqlen_q = q.back(), t.seqlen_k = k.back(), t.max_seqlen_q = 22, t.max_seqlen_k = 299;
    t.hdim_q = t.hdim_v = 32, t.nhead_q = 2, t.nhead_k = 1;
    if (known) t.seqstart_qs = q.data(), t.seqstart_ks = k.data();
    tessera_fmha_bwd_launcher l;
    ASSERT_EQ(tessera_fmha_bwd_launcher_init(device.get(), &t, &l), TESSERA_SUCCESS) << tessera_last_error();
    void *workspace = nullptr, *const device_q = upload(device.get(), q), *const device_k = upload(device.get(), k);
    ASSERT_EQ(tessera_device_malloc(device.get(), l.workspace_size, &workspace), TESSERA_SUCCESS);
    ASSERT_EQ(tessera_device_set(device.get(), workspace, 0xff, l.workspace_size), TESSERA_SUCCESS);
    ASSERT_EQ(known ? tessera_fmha_bwd_prepare_workspace(&l, workspace, nullptr)
                    : tessera_fmha_bwd_prepare_workspace_async(&l, workspace, device_q, device_k, nullptr),
              TESSERA_SUCCESS)
        << tessera_last_error();
    ASSERT_EQ(tessera_device_synchronize(device.get()), TESSERA_SUCCESS);

    const char *const at = static_cast<const char *>(workspace);
    const auto count = static_cast<size_t>(batch);
    const std::vector<int32_t> parts = read<int32_t>(device.get(), at, count);
    const std::vector<int64_t> offsets = read<int64_t>(device.get(), at + l.offsets_offset, count + 1);
    int64_t offset = 0;
    for (size_t b = 0; b < count; b++) {
        const int32_t bn0 = l.instance->tile.bn0, blocks = (k[b + 1] - k[b] + bn0 - 1) / bn0;
        const int32_t own = l.instance->tile.is_ordered ? 1 : blocks;
        EXPECT_EQ(parts[b], own) << b;
        EXPECT_EQ(offsets[b], offset) << b;
        offset += int64_t{2} * own * (q[b + 1] - q[b]) * 32;
    }
    EXPECT_EQ(offsets[count], offset);
    EXPECT_LE(static_cast<size_t>(offset) * 4, l.device_ws_size);
    for (float x : read<float>(device.get(), at + l.host_ws_size, static_cast<size_t>(offset))) ASSERT_EQ(x, 0.0F);
    for (void *memory : {workspace, device_q, device_k}) tessera_device_free(device.get(), memory);
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    const Axis usual = kinds(gpus, {"bf16"});
    if (usual.empty()) {
        std::printf("this build has no instances for the GPU, or no simulator\n");
        return 77;
    }
    Place valid = gpus, refused = gpus, orders = gpus, heads = gpus, bare = gpus;
    valid.run = cpus.run;
    refused.run = [](const std::string &arguments) { expect_refused(fmha_bwd, arguments); };
    for (const Suite &suite : suites(gpus)) register_suite(gpus, suite);
    register_suite(valid, landed_suite(gpus));
    register_suite(valid, landed_large_suite(gpus));
    register_suite(valid, landed_fp32_suite(gpus));
    register_suite(valid, landed_errors_suite(gpus));
    register_suite(valid, edges_suite(gpus));
    register_suite(valid, turns_suite(gpus));
    register_suite(valid, ordered_suite(gpus));
    register_suite(valid, ordered_large_suite(gpus));
    const Axis few = resident(gpus);
    if (!few.empty()) {
        register_suite(valid, few_queries_suite(gpus));
        register_suite(valid, few_of_room_suite(gpus));
        register_suite(refused, {"RefusedFewQueries", {few, {"-b=1 -h=2 -s_k=64"}, not_few}, {}});
        bare.run = expect_no_workspace;
        register_suite(bare, {"LandedBare",
                              {{"-device=sim:gfx950 -prec=bf16", "-device=sim:gfx950 -prec=fp16"}, {"-d=64", "-d=128"}},
                              {}});
    }
    register_suite(refused, {"Refused", {usual, {"-b=1 -h=2 -s=64"}, refusals}, {}});
    register_suite(refused, {"RefusedFp32", {kinds(gpus, {"fp32"}), {"-b=1 -h=2 -s=64"}, refusals_of_fp32}, {}});
    orders.run = expect_same_in_all_orders;
    if (!real_gpu()) {
        register_suite(orders, {"Orders", {usual, Axis(std::begin(deterministic), std::end(deterministic))}, {}});
        if (!few.empty())
            register_suite(orders, {"OrdersFewQueries", {few, {"-b=1 -h=3 -s=20 -s_k=500 -p_drop=0.2"}}, {}});
    }
    heads.run = expect_head;
    register_suite(heads, {"Heads", {usual, {"-b=1", "-b=5", "-b=700"}, {"-seed=0", "-seed=1"}}, {}});
    const int status = RUN_ALL_TESTS();
    print_refused();
    return status;
}
