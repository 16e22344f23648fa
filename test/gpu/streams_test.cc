// SPDX-License-Identifier: MIT
// Streams, graphs and threads on the GPU that TESSERA_TEST_DEVICE names, through its own runtime.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tessera/fmha_bwd.h"
#include "tessera/fmha_fwd.h"
#include "tessera/fmha_fwd_splitkv.h"
#include "tessera/paged_attention.h"

namespace {

const char *device_name() {
    const char *const name = std::getenv("TESSERA_TEST_DEVICE");
    return name ? name : "";
}

// The runtime that the library has loaded. Each function returns 0 where it succeeds, as the runtimes' own do.
class Runtime {
  public:
    Runtime() : is_cuda(std::string(device_name()).rfind("cuda:", 0) == 0) {
        const char *const file = std::getenv(is_cuda ? "TESSERA_CUDA_LIBRARY" : "TESSERA_HIP_LIBRARY");
        const std::vector<std::string> names =
            is_cuda ? std::vector<std::string>{"libcuda.so.1"}
                    : std::vector<std::string>{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
        if (file && *file) library = dlopen(file, RTLD_NOW);
        for (const std::string &name : names)
            if (!library) library = dlopen(name.c_str(), RTLD_NOW);
    }

    // Makes the device the thread's current one.
    int use() const {
        const int number =
            std::atoi(std::string(device_name()).substr(std::string(device_name()).find(':') + 1).c_str());
        if (!is_cuda) return call("hipSetDevice", number);
        void *context = nullptr; // is kept: the library holds it too
        const int status = call("cuDevicePrimaryCtxRetain", &context, number);
        return status ? status : call("cuCtxSetCurrent", context);
    }
    // What is current: a context or a device.
    void *current() const {
        void *context = nullptr;
        int number = -1;
        if (is_cuda) return call("cuCtxGetCurrent", &context) ? nullptr : context;
        return call("hipGetDevice", &number) ? nullptr : reinterpret_cast<void *>(static_cast<intptr_t>(number + 1));
    }
    int create(void **stream) const {
        return is_cuda ? call("cuStreamCreate", stream, 1u) : call("hipStreamCreateWithFlags", stream, 1u);
    }
    int destroy(void *stream) const { return call(is_cuda ? "cuStreamDestroy_v2" : "hipStreamDestroy", stream); }
    int wait(void *stream) const { return call(is_cuda ? "cuStreamSynchronize" : "hipStreamSynchronize", stream); }
    int begin_capture(void *stream) const {
        return call(is_cuda ? "cuStreamBeginCapture_v2" : "hipStreamBeginCapture", stream, 0);
    }
    int end_capture(void *stream, void **graph) const {
        return call(is_cuda ? "cuStreamEndCapture" : "hipStreamEndCapture", stream, graph);
    }
    int instantiate(void **executable, void *graph) const {
        void *none = nullptr;
        return is_cuda ? call("cuGraphInstantiateWithFlags", executable, graph, 0ull)
                       : call("hipGraphInstantiate", executable, graph, none, none, size_t{0});
    }
    int launch(void *executable, void *stream) const {
        return call(is_cuda ? "cuGraphLaunch" : "hipGraphLaunch", executable, stream);
    }
    int destroy_graph(void *graph) const { return call(is_cuda ? "cuGraphDestroy" : "hipGraphDestroy", graph); }
    int destroy_executable(void *executable) const {
        return call(is_cuda ? "cuGraphExecDestroy" : "hipGraphExecDestroy", executable);
    }

  private:
    template <typename... Parameters> int call(const char *name, Parameters... parameters) const {
        const auto function = reinterpret_cast<int (*)(Parameters...)>(library ? dlsym(library, name) : nullptr);
        return function ? function(parameters...) : -1;
    }

    const bool is_cuda;
    void *library = nullptr;
};

// One head and 64 queries that see a single key: o is v's row, whatever q and k are.
struct Attention {
    static constexpr int hdim = 128, rows = 64;
    static constexpr size_t bytes = rows * hdim * 2;

    explicit Attention(const tessera_device *device) : device(device) {
        traits.hdim_q = traits.hdim_v = args.hdim_q = args.hdim_v = hdim;
        traits.data_type = TESSERA_FMHA_FP16;
        args.batch = args.nhead_q = args.nhead_k = args.seqlen_k = 1;
        args.seqlen_q = args.max_seqlen_q = rows;
        args.scale_s = 1;
        args.stride_q = args.stride_k = args.stride_v = args.stride_o = hdim;
        for (void *&m : memory) {
            EXPECT_EQ(tessera_device_malloc(device, bytes, &m), TESSERA_SUCCESS) << tessera_last_error();
            EXPECT_EQ(tessera_device_set(device, m, 0x11, bytes), TESSERA_SUCCESS) << tessera_last_error();
        }
        args.q_ptr = memory[0];
        args.k_ptr = memory[1];
        args.v_ptr = memory[2];
        args.o_ptr = memory[3];
        if (tessera_fmha_fwd_workspace_size(device, &traits, &args, &args.workspace_size) == TESSERA_SUCCESS) {
            EXPECT_EQ(tessera_device_malloc(device, args.workspace_size, &args.workspace_ptr), TESSERA_SUCCESS);
        }
    }
    ~Attention() {
        for (void *m : memory) tessera_device_free(device, m);
        tessera_device_free(device, args.workspace_ptr);
    }
    Attention(const Attention &) = delete;
    Attention &operator=(const Attention &) = delete;

    tessera_status set_v(int byte) { return tessera_device_set(device, memory[2], byte, bytes); }
    tessera_status clear() { return tessera_device_set(device, memory[3], 0x77, bytes); }
    tessera_status run(void *stream) const { return tessera_fmha_fwd(device, &traits, &args, stream); }
    tessera_status prepare() const { return tessera_fmha_fwd_prepare(device, &traits, &args); }
    bool output_is(char byte) const {
        std::string o(bytes, '\0');
        return tessera_device_copy_from(device, o.data(), memory[3], bytes) == TESSERA_SUCCESS &&
               o == std::string(bytes, byte);
    }

    const tessera_device *device;
    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    tessera_fmha_fwd_args args = tessera_fmha_fwd_args_init();
    void *memory[4] = {};
};

// A device's memory, as long as this is there.
struct Memory {
    explicit Memory(const tessera_device *device) : device(device) {}
    ~Memory() {
        for (void *m : all) tessera_device_free(device, m);
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    const tessera_device *device;

  protected:
    void *allocate(size_t bytes) {
        all.push_back(nullptr);
        EXPECT_EQ(tessera_device_malloc(device, bytes, &all.back()), TESSERA_SUCCESS) << tessera_last_error();
        return all.back();
    }
    void *poisoned(size_t bytes) {
        void *const to = allocate(bytes);
        EXPECT_EQ(tessera_device_set(device, to, 0xff, bytes), TESSERA_SUCCESS) << tessera_last_error();
        return to;
    }

  private:
    std::vector<void *> all;
};

// Two sequences of one head and the gradients of them, whose lengths only the device knows.
struct Backward : Memory {
    static constexpr int hdim = 64, queries = 64, keys = 300;
    using Lengths = std::vector<int32_t>; // where sequences start: three of q, three of k

    explicit Backward(const tessera_device *device) : Memory(device) {
        traits.hdim_q = traits.hdim_v = args.hdim_q = args.hdim_v = hdim;
        traits.data_type = TESSERA_FMHA_FP16;
        traits.is_group_mode = traits.is_deterministic = 1;
        traits.batch = args.batch = 2;
        traits.nhead_q = traits.nhead_k = args.nhead_q = args.nhead_k = 1;
        traits.seqlen_q = traits.max_seqlen_q = args.seqlen_q = args.max_seqlen_q = queries;
        traits.seqlen_k = traits.max_seqlen_k = args.seqlen_k = args.max_seqlen_k = keys;
        traits.mask_type = args.mask_type = TESSERA_MASK_TOP_LEFT;
        args.window_size_left = 90, args.window_size_right = 70;
        args.scale = 0.125F;
        args.stride_q = args.stride_k = args.stride_v = args.stride_o = args.stride_do = hdim;
        args.stride_dq = args.stride_dk = args.stride_dv = hdim;
        args.q_ptr = filled(queries), args.k_ptr = filled(keys), args.v_ptr = filled(keys);
        args.o_ptr = filled(queries), args.do_ptr = filled(queries);
        args.lse_ptr = filled(queries), args.d_ptr = filled(queries);
        args.dq_ptr = filled(queries), args.dk_ptr = filled(keys), args.dv_ptr = filled(keys);
        starts = static_cast<int32_t *>(allocate(6 * sizeof(int32_t)));
        args.seqstart_q_ptr = starts, args.seqstart_k_ptr = starts + 3;
    }

    tessera_status make_launcher() {
        const tessera_status status = tessera_fmha_bwd_launcher_init(device, &traits, &launcher);
        if (status != TESSERA_SUCCESS) return status;
        args.workspace_size = launcher.workspace_size;
        args.workspace_ptr = poisoned(launcher.workspace_size);
        return status;
    }
    tessera_status set(const Lengths &to) { return tessera_device_copy_to(device, starts, to.data(), 6 * 4); }
    tessera_status clear() {
        for (void *m : {args.dq_ptr, args.dk_ptr, args.dv_ptr})
            if (tessera_device_set(device, m, 0x77, (m == args.dq_ptr ? queries : keys) * hdim * 2) != TESSERA_SUCCESS)
                return TESSERA_ERROR_DEVICE;
        return TESSERA_SUCCESS;
    }
    // What a graph captures: the preparation, which reads the lengths, and the call.
    tessera_status run(void *stream) {
        const tessera_status status = tessera_fmha_bwd_prepare_workspace_async(
            &launcher, args.workspace_ptr, args.seqstart_q_ptr, args.seqstart_k_ptr, stream);
        return status == TESSERA_SUCCESS ? tessera_fmha_bwd_launcher_run(&launcher, &args, stream) : status;
    }
    // A call that prepares its workspace itself.
    tessera_status run_at_once(void *stream) { return tessera_fmha_bwd(device, &traits, &args, stream); }
    std::string results() {
        std::string all((queries + 2 * keys) * hdim * 2, '\0');
        char *at = all.data();
        for (void *m : {args.dq_ptr, args.dk_ptr, args.dv_ptr}) {
            const size_t bytes = (m == args.dq_ptr ? queries : keys) * hdim * 2;
            EXPECT_EQ(tessera_device_copy_from(device, at, m, bytes), TESSERA_SUCCESS) << tessera_last_error();
            at += bytes;
        }
        return all;
    }

    tessera_fmha_bwd_traits traits = tessera_fmha_bwd_traits_init();
    tessera_fmha_bwd_args args = tessera_fmha_bwd_args_init();
    tessera_fmha_bwd_launcher launcher = {};

  private:
    // Rows of fp16 between 1/8 and 1/2, which as fp32 are between 0.0004 and 0.06: scores and their sums are small.
    void *filled(size_t rows) {
        std::vector<uint16_t> values(rows * hdim);
        for (uint16_t &x : values) x = static_cast<uint16_t>(0x3000 + (random = random * 1103515245 + 12345) % 0x7ff);
        void *const to = allocate(values.size() * 2);
        EXPECT_EQ(tessera_device_copy_to(device, to, values.data(), values.size() * 2), TESSERA_SUCCESS);
        return to;
    }

    int32_t *starts = nullptr;
    uint32_t random = 1;
};

// A step of two sequences that decode over one cache in pages: a key is appended and attended to in one call, and then
// paged_attention attends to what the cache holds. Lengths and pages only the device knows.
struct Decoding : Memory {
    static constexpr int hdim = 128, heads = 8, heads_k = 2, batch = 2, page = 16, keys = 1024;
    static constexpr int columns = keys / page, pages = batch * columns, row = heads_k * hdim;
    static constexpr size_t bytes_o = batch * heads * hdim * 2, bytes_kv = size_t{pages} * page * row * 2;
    using Lengths = std::vector<int32_t>; // before the step

    explicit Decoding(const tessera_device *device) : Memory(device) {
        splits.hdim_q = splits.hdim_v = append.hdim_q = append.hdim_v = hdim;
        pieces.hdim_q = pieces.hdim_v = attend.hdim_q = attend.hdim_v = hdim;
        splits.data_type = pieces.data_type = TESSERA_FMHA_FP16;
        pieces.kv_memory_layout = TESSERA_KV_LINEAR;
        append.batch = attend.batch = batch, append.seqlen_q = attend.max_seqlen_q = 1;
        append.seqlen_k = attend.max_seqlen_k = keys, append.seqlen_knew = 1;
        append.nhead_q = attend.nhead_q = heads, append.nhead_k = attend.nhead_k = heads_k;
        append.cache_blocks = attend.num_total_pages = pages, append.page_block_size = attend.page_block_size = page;
        append.batch_stride_block_table = attend.batch_stride_block_table = columns;
        append.scale_s = attend.scale_s = 0.1F;
        append.stride_q = append.stride_o = attend.stride_q = attend.stride_o = heads * hdim;
        append.batch_stride_q = append.batch_stride_o = attend.batch_stride_q = attend.batch_stride_o = heads * hdim;
        append.nhead_stride_q = append.nhead_stride_o = attend.nhead_stride_q = attend.nhead_stride_o = hdim;
        append.stride_k = append.stride_v = attend.stride_k = attend.stride_v = row;
        append.nhead_stride_k = append.nhead_stride_v = attend.nhead_stride_k = attend.nhead_stride_v = hdim;
        append.batch_stride_k = append.batch_stride_v = attend.batch_stride_k = attend.batch_stride_v = page * row;
        append.stride_knew = append.stride_vnew = append.batch_stride_knew = append.batch_stride_vnew = row;
        append.nhead_stride_knew = append.nhead_stride_vnew = hdim;
        uint32_t random = 1; // fp16 between 1/8 and 1/2
        for (uint16_t &x : numbers) x = static_cast<uint16_t>(0x3000 + (random = random * 1103515245 + 12345) % 0x7ff);
        append.q_ptr = attend.q_ptr = filled(bytes_o, 0);
        append.knew_ptr = filled(batch * row * 2, 100), append.vnew_ptr = filled(batch * row * 2, 200);
        append.k_ptr = attend.k_ptr = k = filled(bytes_kv, 0);
        append.v_ptr = attend.v_ptr = v = filled(bytes_kv, 300);
        append.o_ptr = allocate(bytes_o), attend.o_ptr = allocate(bytes_o);
        append.seqlen_k_ptr = before = static_cast<int32_t *>(allocate(batch * sizeof(int32_t)));
        attend.seqlen_k_ptr = after = static_cast<int32_t *>(allocate(batch * sizeof(int32_t)));
        append.block_table_ptr = attend.block_table_ptr = table =
            static_cast<int32_t *>(allocate(pages * sizeof(int32_t)));
    }

    tessera_status prepare() {
        size_t first = 0, second = 0;
        tessera_status status = tessera_fmha_fwd_splitkv_workspace_size(device, &splits, &append, &first);
        if (status == TESSERA_SUCCESS)
            status = tessera_paged_attention_workspace_size(device, &pieces, &attend, &second);
        if (status != TESSERA_SUCCESS) return status;
        append.workspace_size = first, append.workspace_ptr = poisoned(first);
        attend.workspace_size = second, attend.workspace_ptr = poisoned(second);
        return status;
    }
    // Sequences with other lengths have other pages.
    tessera_status set(const Lengths &to) {
        const Lengths then{to[0] + 1, to[1] + 1};
        std::vector<int32_t> ids;
        for (int i = 0; i < pages; i++) ids.push_back((i * 37 + to[0]) % pages);
        tessera_device_copy_to(device, before, to.data(), sizeof(int32_t) * batch);
        tessera_device_copy_to(device, after, then.data(), sizeof(int32_t) * batch);
        return tessera_device_copy_to(device, table, ids.data(), sizeof(int32_t) * pages);
    }
    tessera_status clear() {
        tessera_device_copy_to(device, k, numbers.data(), bytes_kv);
        tessera_device_copy_to(device, v, numbers.data() + 300, bytes_kv);
        tessera_device_set(device, append.o_ptr, 0x77, bytes_o);
        return tessera_device_set(device, attend.o_ptr, 0x77, bytes_o);
    }
    tessera_status run(void *stream) {
        const tessera_status status = tessera_fmha_fwd_splitkv(device, &splits, &append, stream);
        return status == TESSERA_SUCCESS ? tessera_paged_attention(device, &pieces, &attend, stream) : status;
    }
    tessera_status run_at_once(void *stream) { return run(stream); }
    std::string results() {
        std::string all(2 * bytes_o + 2 * bytes_kv, '\0');
        tessera_device_copy_from(device, all.data(), append.o_ptr, bytes_o);
        tessera_device_copy_from(device, all.data() + bytes_o, attend.o_ptr, bytes_o);
        tessera_device_copy_from(device, all.data() + 2 * bytes_o, k, bytes_kv);
        EXPECT_EQ(tessera_device_copy_from(device, all.data() + 2 * bytes_o + bytes_kv, v, bytes_kv), TESSERA_SUCCESS);
        return all;
    }

    tessera_fmha_fwd_splitkv_traits splits = tessera_fmha_fwd_splitkv_traits_init();
    tessera_fmha_fwd_splitkv_args append = tessera_fmha_fwd_splitkv_args_init();
    tessera_paged_attention_traits pieces = tessera_paged_attention_traits_init();
    tessera_paged_attention_args attend = tessera_paged_attention_args_init();

  private:
    void *filled(size_t bytes, size_t first) {
        void *const to = allocate(bytes);
        EXPECT_EQ(tessera_device_copy_to(device, to, numbers.data() + first, bytes), TESSERA_SUCCESS);
        return to;
    }

    std::vector<uint16_t> numbers = std::vector<uint16_t>(bytes_kv / 2 + 300);
    void *k, *v;
    int32_t *before, *after, *table;
};

class Streams : public testing::Test {
  protected:
    Streams() {
        EXPECT_EQ(tessera_device_open(device_name(), &device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(runtime.use(), 0);
        EXPECT_EQ(runtime.create(&stream), 0);
        current = runtime.current();
        attention = new Attention(device);
    }
    void SetUp() override {
        const tessera_fmha_fwd_instance *instance;
        if (tessera_fmha_fwd_select(tessera_device_get_facts(device), &attention->traits, &attention->args,
                                    &instance) != TESSERA_SUCCESS)
            GTEST_SKIP() << tessera_last_error();
    }
    ~Streams() override {
        delete attention;
        EXPECT_EQ(runtime.current(), current) << "calls leave alone what is current";
        runtime.destroy(stream);
        tessera_device_close(device);
    }

    // Replays of one graph give what calls with the same lengths do, whatever it was captured with.
    template <typename Call> void expect_graph_to_see(Call &call, const std::vector<typename Call::Lengths> &all) {
        void *graph = nullptr, *executable = nullptr;
        std::vector<std::string> want;
        for (const auto &lengths : all) {
            ASSERT_EQ(call.set(lengths), TESSERA_SUCCESS) << tessera_last_error();
            ASSERT_EQ(call.clear(), TESSERA_SUCCESS) << tessera_last_error();
            ASSERT_EQ(call.run_at_once(stream), TESSERA_SUCCESS) << tessera_last_error();
            ASSERT_EQ(runtime.wait(stream), 0);
            const std::string got = call.results();
            for (const std::string &other : want) EXPECT_FALSE(got == other);
            want.push_back(got);
        }
        ASSERT_EQ(runtime.begin_capture(stream), 0);
        EXPECT_EQ(call.run(stream), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(runtime.end_capture(stream, &graph), 0);
        ASSERT_EQ(runtime.instantiate(&executable, graph), 0);
        for (size_t n : {0, 1, 2, 1, 0}) {
            ASSERT_EQ(call.set(all[n]), TESSERA_SUCCESS) << tessera_last_error();
            ASSERT_EQ(call.clear(), TESSERA_SUCCESS) << tessera_last_error();
            ASSERT_EQ(runtime.launch(executable, stream), 0);
            ASSERT_EQ(runtime.wait(stream), 0);
            EXPECT_TRUE(call.results() == want[n]) << "lengths " << n;
        }
        runtime.destroy_executable(executable);
        runtime.destroy_graph(graph);
    }

    Runtime runtime;
    tessera_device *device = nullptr;
    void *stream = nullptr, *current = nullptr;
    Attention *attention = nullptr;
};

TEST_F(Streams, OnTheDefaultAndOnAnother) {
    int byte = 0x21;
    for (void *const on : {static_cast<void *>(nullptr), stream}) {
        ASSERT_EQ(attention->set_v(byte), TESSERA_SUCCESS);
        ASSERT_EQ(attention->clear(), TESSERA_SUCCESS);
        ASSERT_EQ(attention->run(on), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_TRUE(attention->output_is(static_cast<char>(byte++)));
    }
}

// Calls of one stream follow one another: each takes what the one before wrote.
TEST_F(Streams, CallsFollowOneAnother) {
    Attention second(device), third(device);
    second.args.v_ptr = attention->args.o_ptr;
    third.args.v_ptr = second.args.o_ptr;
    ASSERT_EQ(attention->prepare(), TESSERA_SUCCESS) << tessera_last_error();
    for (int byte = 0x20; byte < 0x60; byte++) {
        ASSERT_EQ(attention->set_v(byte), TESSERA_SUCCESS);
        for (Attention *const one : {attention, &second, &third})
            ASSERT_EQ(one->run(stream), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(runtime.wait(stream), 0);
        ASSERT_TRUE(third.output_is(static_cast<char>(byte)));
    }
}

// Code is not loaded while a stream captures; once it is loaded, the call is captured, and each replay reads its inputs
// anew.
TEST_F(Streams, Graph) {
    void *graph = nullptr, *executable = nullptr;
    ASSERT_EQ(runtime.begin_capture(stream), 0);
    EXPECT_EQ(attention->run(stream), TESSERA_ERROR_NOT_PREPARED);
    ASSERT_EQ(runtime.end_capture(stream, &graph), 0) << "the capture is whole";
    EXPECT_EQ(runtime.destroy_graph(graph), 0);

    ASSERT_EQ(attention->prepare(), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(attention->clear(), TESSERA_SUCCESS);
    ASSERT_EQ(runtime.begin_capture(stream), 0);
    EXPECT_EQ(attention->run(stream), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(runtime.end_capture(stream, &graph), 0);
    EXPECT_TRUE(attention->output_is(0x77)) << "nothing ran yet";

    ASSERT_EQ(runtime.instantiate(&executable, graph), 0);
    for (const int byte : {0x33, 0x44}) {
        ASSERT_EQ(attention->set_v(byte), TESSERA_SUCCESS);
        ASSERT_EQ(runtime.launch(executable, stream), 0);
        ASSERT_EQ(runtime.wait(stream), 0);
        EXPECT_TRUE(attention->output_is(static_cast<char>(byte)));
    }
    runtime.destroy_executable(executable);
    runtime.destroy_graph(graph);
}

// A graph of the backward pass takes lengths from the device anew in each replay, its preparation too.
TEST_F(Streams, BackwardGraphSeesNewLengths) {
    Backward backward(device);
    if (backward.make_launcher() == TESSERA_ERROR_NO_INSTANCE) GTEST_SKIP() << tessera_last_error();
    expect_graph_to_see(backward, {{0, 40, 64, 0, 30, 200}, {0, 5, 60, 0, 290, 300}, {0, 0, 64, 0, 150, 150}});
}

// A graph of a decode step likewise, and pages.
TEST_F(Streams, DecodingGraphSeesNewLengths) {
    Decoding decoding(device);
    if (decoding.prepare() == TESSERA_ERROR_NO_INSTANCE) GTEST_SKIP() << tessera_last_error();
    expect_graph_to_see(decoding, {{0, 700}, {1023, 5}, {300, 301}});
}

TEST_F(Streams, PreloadedDevicesLoadNothing) {
    void *graph = nullptr;
    ASSERT_EQ(tessera_preload(device), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(runtime.begin_capture(stream), 0);
    EXPECT_EQ(attention->run(stream), TESSERA_SUCCESS) << tessera_last_error();
    ASSERT_EQ(runtime.end_capture(stream, &graph), 0);
    runtime.destroy_graph(graph);
}

// Calls on two devices in turn, of which one is current: each runs on its own, and the same one stays current.
TEST_F(Streams, AnotherDevice) {
    const std::string name = device_name();
    const size_t digits = name.find(':') + 1;
    const std::string next = name.substr(0, digits) + std::to_string(std::stoi(name.substr(digits)) + 1);
    tessera_device *opened = nullptr;
    if (tessera_device_open(next.c_str(), &opened) != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    const std::unique_ptr<tessera_device, decltype(&tessera_device_close)> other(opened, tessera_device_close);
    Attention there(opened);
    if (there.prepare() != TESSERA_SUCCESS) GTEST_SKIP() << tessera_last_error();
    for (int byte = 0x20; byte < 0x30; byte++) {
        ASSERT_EQ(attention->set_v(byte), TESSERA_SUCCESS) << tessera_last_error();
        ASSERT_EQ(there.set_v(byte + 0x20), TESSERA_SUCCESS) << tessera_last_error();
        for (Attention *const one : {attention, &there}) {
            ASSERT_EQ(one->clear(), TESSERA_SUCCESS) << tessera_last_error();
            ASSERT_EQ(one->run(nullptr), TESSERA_SUCCESS) << tessera_last_error();
        }
        for (const tessera_device *const one : {opened, device})
            ASSERT_EQ(tessera_device_synchronize(one), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_TRUE(attention->output_is(static_cast<char>(byte)));
        EXPECT_TRUE(there.output_is(static_cast<char>(byte + 0x20)));
        EXPECT_EQ(runtime.current(), current);
    }
}

// Threads share the device and its code, which the first of them loads. Their current device is none that they chose.
TEST_F(Streams, Threads) {
    constexpr size_t count = 8;
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(count);
    for (size_t t = 0; t < count; t++)
        threads.emplace_back([&, t] {
            void *const none = runtime.current();
            Attention mine(device);
            const int byte = 0x20 + static_cast<int>(t);
            if (mine.set_v(byte)) wrong[t] = tessera_last_error();
            for (int i = 0; i < 10 && wrong[t].empty(); i++)
                if (mine.clear() || mine.run(nullptr) || tessera_device_synchronize(device))
                    wrong[t] = tessera_last_error();
                else if (!mine.output_is(static_cast<char>(byte)))
                    wrong[t] = "another result";
            if (runtime.current() != none) wrong[t] += " what is current has changed";
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<std::string>(count));
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    if (!*device_name()) {
        std::printf("TESSERA_TEST_DEVICE names no GPU\n");
        return 77;
    }
    return RUN_ALL_TESTS();
}
