// SPDX-License-Identifier: MIT
// What the library takes of NVIDIA's driver, on the GPU that TESSERA_TEST_DEVICE names: images, LDS, contexts,
// captures, tensor maps. Kernels are PTX that is written here, so that nothing depends on the instances of a build.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fake_driver.h" // make_pack()
#include "inside.h"

extern "C" {
#include "device/pack.h"
#include "library.h"
#include "tessera/operation.h"
}

namespace {

const char *device_name() {
    const char *const name = std::getenv("TESSERA_TEST_DEVICE");
    return name && std::string(name).rfind("cuda:", 0) == 0 ? name : "";
}

// A function of the driver that the library has loaded; 0 is success.
template <typename... Parameters> int driver(const char *name, Parameters... parameters) {
    const char *const file = std::getenv("TESSERA_CUDA_LIBRARY");
    static void *const library = dlopen(file && *file ? file : "libcuda.so.1", RTLD_NOW);
    const auto function = reinterpret_cast<int (*)(Parameters...)>(library ? dlsym(library, name) : nullptr);
    return function ? function(parameters...) : -1;
}

// Puts thread_id() + 7 into the last 512 bytes of the launch's LDS, and what it finds there into memory.
const char *const kLds = R"(.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry tessera_test_lds(.param .align 8 .b8 p[16])
{
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.b64 %d0, [p];
    ld.param.b32 %r0, [p+8];
    mov.u32 %r1, dynamic;
    add.u32 %r2, %r1, %r0;
    mov.u32 %r3, %tid.x;
    shl.b32 %r4, %r3, 2;
    sub.u32 %r2, %r2, 512;
    add.u32 %r2, %r2, %r4;
    add.u32 %r5, %r3, 7;
    st.shared.b32 [%r2], %r5;
    bar.sync 0;
    ld.shared.b32 %r6, [%r2];
    cvta.to.global.u64 %d1, %d0;
    cvt.u64.u32 %d2, %r4;
    add.u64 %d1, %d1, %d2;
    st.global.b32 [%d1], %r6;
    ret;
}
)";
struct LdsArgument {
    void *to;
    uint32_t lds_bytes;
};

// Loads a block of 1024 bytes by the tensor map at the beginning of its argument, and stores it as it lies in LDS.
const char *const kTma = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry tessera_test_tma(.param .align 64 .b8 p[192])
{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 arrived;
    mov.b64 %d0, p;
    cvta.param.u64 %d1, %d0;
    ld.param.b64 %d2, [p+128];
    ld.param.b32 %r0, [p+136];
    ld.param.b32 %r1, [p+140];
    mov.u32 %r2, arrived;
    mov.u32 %r3, tile;
    mov.u32 %r4, %tid.x;
    setp.ne.u32 %p0, %r4, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d1, {%r0, %r1}], [%r2];
READY:
    bar.sync 0;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    @!%p1 bra WAIT;
    shl.b32 %r5, %r4, 2;
    add.u32 %r6, %r3, %r5;
    ld.shared.b32 %r7, [%r6];
    cvta.to.global.u64 %d3, %d2;
    cvt.u64.u32 %d4, %r5;
    add.u64 %d3, %d3, %d4;
    st.global.b32 [%d3], %r7;
    ret;
}
)";
struct TmaArgument {
    tessera_tensor_map map;
    void *to;
    int32_t column, row;
};

const tessera_gpu_kernel kLdsKernel = {"test", "tessera_test_lds"}, kTmaKernel = {"test", "tessera_test_tma"};

void load_pack(const std::string &op, const std::map<std::string, std::string> &images) {
    const std::string pack = make_pack(op, "sm_90a", images);
    ASSERT_EQ(tessera_load_pack_memory(pack.data(), pack.size()), TESSERA_SUCCESS) << tessera_last_error();
}

class Cuda : public testing::Test {
  protected:
    Cuda() {
        EXPECT_EQ(tessera_device_open(device_name(), &device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(tessera_device_malloc(device, kBytes, &memory), TESSERA_SUCCESS) << tessera_last_error();
        load_pack("test", {{"tessera_test_lds", kLds}, {"tessera_test_tma", kTma}});
    }
    ~Cuda() override {
        EXPECT_EQ(tessera_device_synchronize(device), TESSERA_SUCCESS) << tessera_last_error();
        tessera_device_free(device, memory);
        tessera_device_close(device);
        void *current = device;
        EXPECT_EQ(driver("cuCtxGetCurrent", &current), 0);
        EXPECT_EQ(current, nullptr) << "no context is left current";
    }

    void SetUp() override { ASSERT_NE(memory, nullptr); }

    static tessera_status launch_lds(const tessera_device *on, void *to, uint32_t lds_bytes, void *stream = nullptr) {
        const tessera_launch how = {{1, 1, 1}, {128, 1, 1}, lds_bytes, 0, false};
        const LdsArgument argument = {to, lds_bytes};
        return inside(tessera_gpu_launch, on, &kLdsKernel, &how, &argument, sizeof argument, stream);
    }
    // The words that launch_lds() left.
    static bool are_right(const tessera_device *on, const void *at) {
        uint32_t words[128] = {};
        bool right = tessera_device_copy_from(on, words, at, sizeof words) == TESSERA_SUCCESS;
        for (uint32_t i = 0; i < 128; i++) right = right && words[i] == i + 7;
        return right;
    }

    static const size_t kBytes = 1 << 16;
    tessera_device *device = nullptr;
    void *memory = nullptr;
};

TEST_F(Cuda, Facts) {
    const tessera_device_facts *const facts = tessera_device_get_facts(device);
    EXPECT_EQ(facts->targets, 1u << TESSERA_TARGET_SM_90A);
    EXPECT_GE(facts->compute_units, 16); // a part of one may be lent
    EXPECT_EQ(facts->lds_bytes, 227 << 10);
    EXPECT_GE(facts->l2_bytes, 1 << 20);
}

TEST_F(Cuda, LdsOfEverySize) {
    for (const uint32_t bytes : {512u, 48u << 10, (48u << 10) + 512, 200u << 10, 227u << 10}) {
        ASSERT_EQ(tessera_device_set(device, memory, 0, 512), TESSERA_SUCCESS);
        ASSERT_EQ(launch_lds(device, memory, bytes), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_TRUE(are_right(device, memory)) << bytes;
    }
    EXPECT_EQ(launch_lds(device, memory, (227 << 10) + 512), TESSERA_ERROR_DEVICE);
    EXPECT_NE(std::string(tessera_last_error()).find("cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE (1)"),
              std::string::npos)
        << tessera_last_error();
    EXPECT_EQ(launch_lds(device, memory, 512), TESSERA_SUCCESS) << "the context goes on: " << tessera_last_error();
}

// ---- images

std::string *logged;
void keep(void *, tessera_log_level, const char *line) { *logged += std::string(line) + "\n"; }

// Some kernel of this build and its image, if that has a cubin.
bool find_image(tessera_gpu_kernel *kernel, std::string *ptx, std::string *cubin) {
    for (size_t t = 0; t < tessera_table_count; t++) {
        const tessera_table *const table = tessera_tables[t]();
        for (uint32_t i = 0; i < table->row_count; i++) {
            const tessera_instance *const row = tessera_row(table, i);
            void *image;
            size_t bytes;
            *kernel = {table->schema->operation, row->symbol};
            if (row->target != TESSERA_TARGET_SM_90A ||
                tessera_pack_unpack(kernel->op, "sm_90a", kernel->symbol, &image, &bytes) != TESSERA_SUCCESS)
                continue;
            *ptx = static_cast<const char *>(image);
            const size_t begin = (ptx->size() / 64 + 1) * 64;
            if (begin < bytes) cubin->assign(static_cast<const char *>(image) + begin, bytes - begin);
            free(image);
            return !cubin->empty();
        }
    }
    return false;
}

TEST_F(Cuda, PtxIsCompiledWhereTheCubinDoesNotLoad) {
    tessera_gpu_kernel kernel;
    std::string ptx, cubin, lines;
    if (!find_image(&kernel, &ptx, &cubin)) GTEST_SKIP() << "this build has no cubin";
    ASSERT_EQ(cubin.substr(0, 4), "\x7f"
                                  "ELF");
    std::string padded = ptx;
    padded.resize((ptx.size() / 64 + 1) * 64);
    const std::string of_another = cubin.substr(0, 18) + '\xe0' + cubin.substr(19); // e_machine: an AMD GPU's
    logged = &lines;
    tessera_set_log(keep, nullptr, TESSERA_LOG_INFO);
    const struct {
        std::string image;
        tessera_status status;
        bool compiled;
    } cases[] = {{padded + cubin, TESSERA_SUCCESS, false},
                 {std::string(64, '\0') + cubin, TESSERA_SUCCESS, false},
                 {ptx, TESSERA_SUCCESS, false},
                 {padded + of_another, TESSERA_SUCCESS, true},
                 {std::string(64, '\0') + of_another, TESSERA_ERROR_DEVICE, false}};
    for (const auto &c : cases) {
        tessera_device *fresh = nullptr;
        load_pack(kernel.op, {{kernel.symbol, c.image}});
        ASSERT_EQ(tessera_device_open(device_name(), &fresh), TESSERA_SUCCESS) << tessera_last_error();
        lines.clear();
        EXPECT_EQ(tessera_gpu_load(fresh, &kernel), c.status) << tessera_last_error();
        EXPECT_EQ(lines.find("does not load") != std::string::npos, c.compiled) << lines;
        tessera_device_close(fresh);
    }
    tessera_set_log(nullptr, nullptr, TESSERA_LOG_INFO);
    load_pack(kernel.op, {{kernel.symbol, padded + cubin}});
}

TEST_F(Cuda, WhatIsWrongWithPtxIsSaid) {
    const tessera_gpu_kernel kernel = {"test", "tessera_test_wrong"};
    load_pack("test", {{kernel.symbol, ".version 8.0\n.target sm_90a\n.address_size 64\nnonsense\n"}});
    EXPECT_EQ(tessera_gpu_load(device, &kernel), TESSERA_ERROR_DEVICE);
    const std::string error = tessera_last_error();
    EXPECT_NE(error.find("cuModuleLoadDataEx of PTX failed with CUDA_ERROR_INVALID_PTX (218)"), std::string::npos)
        << error;
    EXPECT_NE(error.find("line 4"), std::string::npos) << error;
    EXPECT_EQ(launch_lds(device, memory, 512), TESSERA_SUCCESS) << "the context goes on: " << tessera_last_error();
}

// ---- contexts and captures

TEST_F(Cuda, ADeviceBelongsToItsContext) {
    void *own = nullptr, *popped, *in_own_memory = nullptr, *primary;
    tessera_device *in_own = nullptr;
    int number = 0;
    ASSERT_EQ(driver("cuDeviceGet", &number, std::atoi(device_name() + strlen("cuda:"))), 0);
    ASSERT_EQ(driver("cuCtxCreate_v2", &own, 0u, number), 0);
    ASSERT_EQ(tessera_device_open(device_name(), &in_own), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(launch_lds(device, memory, 512), TESSERA_ERROR_DEVICE);
    EXPECT_NE(std::string(tessera_last_error()).find("the current context is another one of this GPU"),
              std::string::npos);
    ASSERT_EQ(driver("cuCtxPopCurrent_v2", &popped), 0);
    EXPECT_EQ(popped, own);

    ASSERT_EQ(tessera_device_malloc(in_own, 512, &in_own_memory), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(launch_lds(in_own, in_own_memory, 200 << 10), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_TRUE(are_right(in_own, in_own_memory));
    EXPECT_EQ(launch_lds(device, memory, 200 << 10), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_TRUE(are_right(device, memory));

    ASSERT_EQ(driver("cuDevicePrimaryCtxRetain", &primary, number), 0);
    ASSERT_EQ(driver("cuCtxPushCurrent_v2", primary), 0);
    EXPECT_EQ(launch_lds(device, memory, 512), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(launch_lds(in_own, in_own_memory, 512), TESSERA_ERROR_DEVICE);
    ASSERT_EQ(driver("cuCtxPopCurrent_v2", &popped), 0);
    EXPECT_EQ(popped, primary);
    EXPECT_EQ(driver("cuDevicePrimaryCtxRelease_v2", number), 0);

    EXPECT_EQ(tessera_device_free(in_own, in_own_memory), TESSERA_SUCCESS);
    tessera_device_close(in_own);
    EXPECT_EQ(driver("cuCtxDestroy_v2", own), 0);
}

TEST_F(Cuda, LoadingDoesNotEndAnothersCapture) {
    void *primary, *popped, *captures = nullptr, *other = nullptr, *graph = nullptr;
    int number = 0;
    ASSERT_EQ(driver("cuDeviceGet", &number, std::atoi(device_name() + strlen("cuda:"))), 0);
    ASSERT_EQ(driver("cuDevicePrimaryCtxRetain", &primary, number), 0);
    ASSERT_EQ(driver("cuCtxPushCurrent_v2", primary), 0);
    ASSERT_EQ(driver("cuStreamCreate", &captures, 1u), 0); // non-blocking
    ASSERT_EQ(driver("cuStreamCreate", &other, 1u), 0);
    ASSERT_EQ(driver("cuStreamBeginCapture_v2", captures, 0), 0); // for all threads
    EXPECT_EQ(launch_lds(device, memory, 512, captures), TESSERA_ERROR_NOT_PREPARED);
    EXPECT_EQ(launch_lds(device, memory, 512, other), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(launch_lds(device, memory, 512, captures), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(driver("cuStreamEndCapture", captures, &graph), 0) << "the capture is whole";
    EXPECT_EQ(driver("cuStreamSynchronize", other), 0);
    EXPECT_TRUE(are_right(device, memory));
    if (graph) driver("cuGraphDestroy", graph);
    driver("cuStreamDestroy_v2", captures);
    driver("cuStreamDestroy_v2", other);
    EXPECT_EQ(driver("cuCtxPopCurrent_v2", &popped), 0);
    EXPECT_EQ(driver("cuDevicePrimaryCtxRelease_v2", number), 0);
}

// A copy of a few bytes becomes nodes that hold their values, whatever the host's memory contains later.
TEST_F(Cuda, SmallCopiesAndZerosInAGraph) {
    void *primary, *popped, *stream = nullptr, *graph = nullptr, *executable = nullptr;
    uint32_t words[8] = {1, 2, 3, 4, 5, 6, 7, 0xfffefdfc}, back[10] = {};
    const std::vector<uint32_t> expected = {0x99999999, 1, 2, 3, 4, 5, 6, 7, 0xfffefdfc, 0};
    int number = 0;
    ASSERT_EQ(driver("cuDeviceGet", &number, std::atoi(device_name() + strlen("cuda:"))), 0);
    ASSERT_EQ(driver("cuDevicePrimaryCtxRetain", &primary, number), 0);
    ASSERT_EQ(driver("cuCtxPushCurrent_v2", primary), 0);
    ASSERT_EQ(driver("cuStreamCreate", &stream, 1u), 0);
    ASSERT_EQ(driver("cuStreamBeginCapture_v2", stream, 0), 0);
    uint32_t *const at = static_cast<uint32_t *>(memory);
    EXPECT_EQ(inside(tessera_gpu_zero, device, at + 1, 36, stream), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(inside(tessera_gpu_copy_small, device, at + 1, words, sizeof words, stream), TESSERA_SUCCESS)
        << tessera_last_error();
    ASSERT_EQ(driver("cuStreamEndCapture", stream, &graph), 0);
    memset(words, 0, sizeof words);
    ASSERT_EQ(driver("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(tessera_device_set(device, memory, 0x99, sizeof back), TESSERA_SUCCESS);
        ASSERT_EQ(driver("cuGraphLaunch", executable, stream), 0);
        ASSERT_EQ(driver("cuStreamSynchronize", stream), 0);
        ASSERT_EQ(tessera_device_copy_from(device, back, memory, sizeof back), TESSERA_SUCCESS);
        EXPECT_EQ(std::vector<uint32_t>(back, back + 10), expected);
    }
    driver("cuGraphExecDestroy", executable);
    driver("cuGraphDestroy", graph);
    driver("cuStreamDestroy_v2", stream);
    EXPECT_EQ(driver("cuCtxPopCurrent_v2", &popped), 0);
    EXPECT_EQ(driver("cuDevicePrimaryCtxRelease_v2", number), 0);
}

// ---- tensor maps

// A matrix of 20 rows of 100 numbers of 16 bits, of which blocks of 8 rows of 64 are loaded.
class TensorMaps : public Cuda {
  protected:
    static const int rows = 20, columns = 100, stride = 104;
    TensorMaps() {
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < stride; c++)
                matrix[r * stride + c] = static_cast<uint16_t>(c < columns ? 256 * (r + 1) + c : 0xdead);
        EXPECT_EQ(tessera_device_copy_to(device, memory, matrix, sizeof matrix), TESSERA_SUCCESS);
        shape = {memory, 2, 2, {columns, rows}, {stride * 2}, {64, 8}, 0, 128};
    }
    // What lies at a place of a block that begins at a column and a row of the matrix.
    int expected(int column, int row, uint32_t swizzle, int at) const {
        int r = at / 64, chunk = at % 64 / 8;
        // Chunks of 16 bytes: bits 4 to 6 of the address are XORed with bits 7 to 9, of which a smaller swizzle takes
        // the lower: PTX ISA, "Swizzling modes"; CUTLASS, Swizzle<3,4,3>, <2,4,3> and <1,4,3> of cute/swizzle.hpp.
        if (swizzle == 128) chunk ^= r % 8;
        const int c = column + chunk * 8 + at % 8;
        r += row;
        return r < 0 || r >= rows || c < 0 || c >= columns ? 0 : matrix[r * stride + c];
    }

    uint16_t matrix[rows * stride];
    tessera_tensor_map_shape shape;
};

TEST_F(TensorMaps, LoadBlocks) {
    void *const to = static_cast<char *>(memory) + (1 << 15);
    // A block begins at a multiple of 16 bytes of a row, else the load is an illegal instruction: measured, and in
    // Triton's tutorial python/tutorials/gluon/04-tma.py.
    for (const uint32_t swizzle : {0u, 128u})
        for (const auto &[column, row] : {std::pair{0, 0}, {8, 5}, {64, 16}, {-8, -3}, {200, 0}}) {
            TmaArgument argument = {{}, to, column, row};
            uint16_t block[512];
            const tessera_launch how = {{1, 1, 1}, {256, 1, 1}, 0, 0, false};
            shape.swizzle = swizzle;
            ASSERT_EQ(inside(tessera_gpu_make_tensor_map, device, &shape, &argument.map), TESSERA_SUCCESS)
                << tessera_last_error();
            ASSERT_EQ(inside(tessera_gpu_launch, device, &kTmaKernel, &how, &argument, sizeof argument, nullptr),
                      TESSERA_SUCCESS)
                << tessera_last_error();
            ASSERT_EQ(tessera_device_copy_from(device, block, to, sizeof block), TESSERA_SUCCESS)
                << "column " << column << ", row " << row << ": " << tessera_last_error();
            int wrong = 0;
            for (int at = 0; at < 512; at++) wrong += block[at] != expected(column, row, swizzle, at);
            EXPECT_EQ(wrong, 0) << "swizzle " << swizzle << ", column " << column << ", row " << row;
        }
}

// The driver refuses what the library says is wrong, and the library says what it is.
TEST_F(TensorMaps, Limits) {
    using Shape = tessera_tensor_map_shape;
    const struct {
        std::function<void(Shape &)> change;
        const char *says;
    } cases[] = {
        {[](Shape &s) { s.base = static_cast<const char *>(s.base) + 8; }, "; base is "},
        {[](Shape &s) { s.sizes[1] = 0; }, "; sizes[1] is 0: 1 to 2^32"},
        {[](Shape &s) { s.sizes[1] = (UINT64_C(1) << 32) + 1; }, "; sizes[1] is 4294967297: 1 to 2^32"},
        {[](Shape &s) { s.box[1] = 0; }, "; box[1] is 0: 1 to 256"},
        {[](Shape &s) { s.box[1] = 257; }, "; box[1] is 257: 1 to 256"},
        {[](Shape &s) { s.strides[0] = 216; }, "; strides[0] is 216: a multiple of 16 below 2^40"},
        {[](Shape &s) { s.strides[0] = UINT64_C(1) << 40; }, "; strides[0] is 1099511627776: a multiple of 16"},
        {[](Shape &s) { s.box[0] = 60; }, "; a row of the box has 120 bytes: a multiple of 16"},
        {[](Shape &s) { s.swizzle = 64; }, "; a row of the box has 128 bytes: at most those of the swizzle, 64"},
    };
    tessera_tensor_map map;
    for (const auto &c : cases) {
        Shape other = shape;
        c.change(other);
        EXPECT_EQ(inside(tessera_gpu_make_tensor_map, device, &other, &map), TESSERA_ERROR_DEVICE) << c.says;
        EXPECT_NE(std::string(tessera_last_error()).find(c.says), std::string::npos) << tessera_last_error();
    }
    EXPECT_EQ(inside(tessera_gpu_make_tensor_map, device, &shape, &map), TESSERA_SUCCESS) << tessera_last_error();
}

// Heads whose stride is less than that of rows, as in [batch, rows, heads, columns].
TEST_F(TensorMaps, StridesInAnyOrder) {
    tessera_tensor_map map;
    const tessera_tensor_map_shape other = {memory,           2,   5,  {64, 4, 2, 2, 1}, {1024, 128, 256, 4096},
                                            {64, 4, 1, 1, 1}, 128, 256};
    EXPECT_EQ(inside(tessera_gpu_make_tensor_map, device, &other, &map), TESSERA_SUCCESS) << tessera_last_error();
}

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    if (!*device_name()) {
        std::printf("TESSERA_TEST_DEVICE names no GPU of NVIDIA\n");
        return 77;
    }
    return RUN_ALL_TESTS();
}
