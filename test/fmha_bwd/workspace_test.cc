// SPDX-License-Identifier: MIT
// The workspace by itself: sizes against values computed by hand, what is written into it, and calls with one that a
// launcher prepared.
#include <cmath>
#include <cstring>
#include <memory>

#include "case.h"
#include "tessera/kernel/fmha_bwd.h"

namespace {

enum { GUARD = 64 };

// Memory with guard zones, poisoned.
class Memory {
  public:
    explicit Memory(size_t bytes) : size(bytes), storage(bytes + 3 * GUARD, 0xff) {
        base = storage.data() + GUARD + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
    }
    void *at(size_t offset = 0) const { return base + offset; }
    bool is_guarded() const {
        for (int n = 1; n <= GUARD; n++)
            if (base[-n] != 0xff || base[size + static_cast<size_t>(n) - 1] != 0xff) return false;
        return true;
    }
    bool holds(size_t begin, size_t end, uint8_t value) const {
        for (size_t n = begin; n < end; n++)
            if (base[n] != value) return false;
        return true;
    }

  private:
    size_t size;
    std::vector<uint8_t> storage;
    uint8_t *base;
};

struct Closer {
    void operator()(tessera_device *device) const { tessera_device_close(device); }
};

class Workspace : public testing::Test {
  protected:
    Workspace() {
        tessera_device *opened = nullptr;
        EXPECT_EQ(tessera_device_open("cpu", &opened), TESSERA_SUCCESS) << tessera_last_error();
        device.reset(opened);
        traits.seqlen_q = 100, traits.seqlen_k = 300, traits.batch = 2;
        traits.hdim_q = 40, traits.hdim_v = 24, traits.nhead_q = 6, traits.nhead_k = 3;
    }

    tessera_fmha_bwd_launcher make() {
        tessera_fmha_bwd_launcher l;
        EXPECT_EQ(tessera_fmha_bwd_launcher_init(device.get(), &traits, &l), TESSERA_SUCCESS) << tessera_last_error();
        return l;
    }
    void make_group() {
        traits.is_group_mode = 1, traits.batch = 3;
        traits.seqlen_q = 60, traits.seqlen_k = 500, traits.max_seqlen_q = 40, traits.max_seqlen_k = 400;
        traits.seqstart_qs = starts_q, traits.seqstart_ks = starts_k;
    }
    // Blocks of keys of a sequence.
    static int64_t blocks(const tessera_fmha_bwd_launcher &l, int64_t keys) {
        return (keys + l.instance->tile.bn0 - 1) / l.instance->tile.bn0;
    }

    std::unique_ptr<tessera_device, Closer> device;
    tessera_fmha_bwd_traits traits = tessera_fmha_bwd_traits_init();
    const int32_t starts_q[4] = {0, 10, 20, 60}, starts_k[4] = {0, 100, 100, 500};
};

TEST_F(Workspace, BatchModeHasOnePart) {
    const tessera_fmha_bwd_launcher l = make();
    EXPECT_EQ(l.host_ws_size, 16U); // one int32
    EXPECT_EQ(l.device_ws_size, 2U * 6 * 100 * 40 * 4);
    EXPECT_EQ(l.scratch_offset, (16U + 192000 + 63) / 64 * 64);
    EXPECT_GE(l.workspace_size, l.scratch_offset);
    EXPECT_EQ(l.needs_zero_dq_acc, 1);
}

TEST_F(Workspace, GroupModeHasOnePartOfAllTokens) {
    make_group();
    const tessera_fmha_bwd_launcher l = make();
    EXPECT_EQ(l.offsets_offset, 16U);
    EXPECT_EQ(l.host_ws_size, 16U + 32); // four int64
    EXPECT_EQ(l.device_ws_size, 6U * 60 * 40 * 4);
    EXPECT_EQ(l.needs_zero_dq_acc, 1);
}

TEST_F(Workspace, DeterministicGroupModeIsCompact) {
    make_group();
    traits.is_deterministic = 1;
    const tessera_fmha_bwd_launcher l = make();
    const int64_t elements = 6 * 40 * (blocks(l, 100) * 10 + blocks(l, 0) * 10 + blocks(l, 400) * 40);
    EXPECT_EQ(l.offsets_offset, 16U); // three int32
    EXPECT_EQ(l.host_ws_size, 48U);
    EXPECT_EQ(l.device_ws_size, static_cast<size_t>(elements) * 4);
    EXPECT_EQ(l.needs_zero_dq_acc, 0); // every part is written as a whole
    const size_t rectangular = 4U * 6 * 40 * 60 * static_cast<size_t>(blocks(l, 400));
    EXPECT_LT(l.device_ws_size, rectangular);
    traits.mask_type = TESSERA_MASK_TOP_LEFT;
    EXPECT_EQ(make().needs_zero_dq_acc, 1);
    EXPECT_EQ(make().device_ws_size, l.device_ws_size);
    traits.seqstart_qs = traits.seqstart_ks = nullptr; // then it is for the worst case
    EXPECT_EQ(make().device_ws_size, rectangular);
}

TEST_F(Workspace, SectionsAreMultiplesOf16) {
    make_group();
    traits.is_deterministic = 1;
    traits.batch = 2;
    const tessera_fmha_bwd_launcher two = make();
    EXPECT_EQ(two.offsets_offset, 16U);
    EXPECT_EQ(two.host_ws_size, 16U + 32); // 24 bytes of offsets
    traits.seqstart_qs = traits.seqstart_ks = nullptr;
    traits.batch = 5;
    const tessera_fmha_bwd_launcher five = make();
    EXPECT_EQ(five.offsets_offset, 32U); // 20 bytes of parts
    EXPECT_EQ(five.host_ws_size, 32U + 48);
}

// CK's rule, with four workers for each compute unit.
TEST_F(Workspace, DeterministicBatchModeHasPartsByWorkers) {
    traits.is_deterministic = 1;
    const int64_t workers = 4 * tessera_device_get_facts(device.get())->compute_units;
    for (int32_t keys : {1, 127, 128, 129, 300, 640, 1024, 1500, 5000})
        for (int32_t batch : {1, 2, 7})
            for (int32_t heads : {1, 3, 6}) {
                traits.seqlen_k = keys, traits.batch = batch, traits.nhead_q = traits.nhead_k = heads;
                const tessera_fmha_bwd_launcher l = make();
                const int64_t n = blocks(l, keys), w = (batch * heads * n + workers - 1) / workers;
                const int64_t parts = n % w == 0 ? n / w : w % n == 0 ? 1 : 1 + (n - 1 + w - 1) / w;
                EXPECT_EQ(l.host_ws_size, 16U);
                EXPECT_EQ(l.device_ws_size, static_cast<size_t>(batch * heads * parts * 100 * 40 * 4))
                    << keys << " keys, " << batch << " sequences, " << heads << " heads";
            }
}

TEST_F(Workspace, WhatPreparingWrites) {
    make_group();
    for (int deterministic : {0, 1})
        for (tessera_mask mask : {TESSERA_MASK_NONE, TESSERA_MASK_BOTTOM_RIGHT}) {
            traits.is_deterministic = deterministic, traits.mask_type = mask;
            const tessera_fmha_bwd_launcher l = make();
            const Memory memory(l.workspace_size);
            ASSERT_EQ(tessera_fmha_bwd_prepare_workspace(&l, memory.at(), nullptr), TESSERA_SUCCESS);
            const int32_t *parts = static_cast<const int32_t *>(memory.at());
            const int64_t *offsets = static_cast<const int64_t *>(memory.at(l.offsets_offset));
            int64_t offset = 0;
            for (int b = 0; b < 3; b++) {
                const int64_t own = deterministic ? blocks(l, starts_k[b + 1] - starts_k[b]) : 1;
                EXPECT_EQ(parts[deterministic ? b : 0], own);
                EXPECT_EQ(offsets[b], offset);
                offset += 6 * own * (starts_q[b + 1] - starts_q[b]) * 40;
            }
            EXPECT_EQ(offsets[3], offset);
            EXPECT_EQ(static_cast<size_t>(offset) * 4, l.device_ws_size);
            const uint8_t held = l.needs_zero_dq_acc ? 0 : 0xff;
            EXPECT_TRUE(memory.holds(l.host_ws_size, l.host_ws_size + l.device_ws_size, held));
            EXPECT_TRUE(memory.holds(l.scratch_offset, l.workspace_size, 0xff));
            EXPECT_TRUE(memory.is_guarded());
        }
}

TEST_F(Workspace, Refusals) {
    make_group();
    const tessera_fmha_bwd_launcher l = make();
    const Memory memory(l.workspace_size);
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace(&l, nullptr, nullptr), TESSERA_ERROR_WORKSPACE);
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace(&l, memory.at(4), nullptr), TESSERA_ERROR_WORKSPACE);
    const int32_t longer[4] = {0, 10, 20, 61};
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace_async(&l, memory.at(), longer, starts_k, nullptr),
              TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("room for 14400"), std::string::npos) << tessera_last_error();
    EXPECT_TRUE(memory.holds(0, l.workspace_size, 0xff));
    traits.seqstart_qs = nullptr;
    const tessera_fmha_bwd_launcher blind = make();
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace(&blind, memory.at(), nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("_async()"), std::string::npos) << tessera_last_error();
}

// By which the workspace is sized: it would be of any size.
TEST_F(Workspace, StartsOfTheTraitsAscend) {
    make_group();
    const auto refused = [this](const std::string &says) {
        tessera_fmha_bwd_launcher l;
        size_t bytes = 0;
        tessera_fmha_bwd_args args = tessera_fmha_bwd_args_init();
        args.batch = traits.batch, args.seqlen_q = traits.seqlen_q, args.seqlen_k = traits.seqlen_k;
        args.max_seqlen_q = traits.max_seqlen_q, args.max_seqlen_k = traits.max_seqlen_k;
        args.hdim_q = traits.hdim_q, args.hdim_v = traits.hdim_v;
        args.nhead_q = traits.nhead_q, args.nhead_k = traits.nhead_k;
        EXPECT_EQ(tessera_fmha_bwd_launcher_init(device.get(), &traits, &l), TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find(says), std::string::npos) << tessera_last_error();
        EXPECT_EQ(tessera_fmha_bwd_workspace_size(device.get(), &traits, &args, &bytes),
                  TESSERA_ERROR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(tessera_last_error()).find(says), std::string::npos) << tessera_last_error();
    };
    const int32_t descending[4] = {0, 30, 20, 60}, negative[4] = {-1, 10, 20, 60}, least[4] = {0, 78, INT32_MIN, 500};
    for (int deterministic : {0, 1}) {
        traits.is_deterministic = deterministic;
        traits.seqstart_qs = descending, refused("seqstart_qs[2] is 20: at least the one before, 30");
        traits.seqstart_qs = negative, refused("seqstart_qs[0] is -1: 0 or more");
        traits.seqstart_qs = starts_q;
        traits.seqstart_ks = least, refused("seqstart_ks[2] is -2147483648: at least the one before, 78");
        traits.seqstart_ks = starts_k;
    }
}

// Their product, 3 * 2^65 - 3 * 2^34, is negative in 64 bits where blocks have 128 keys.
TEST_F(Workspace, RoomForLengthsDoesNotWrap) {
    make_group();
    traits.hdim_q = 512, traits.is_deterministic = 1, traits.seqstart_qs = traits.seqstart_ks = nullptr;
    const tessera_fmha_bwd_launcher l = make();
    const Memory memory(l.workspace_size);
    const int32_t most[4] = {0, 0, 0, INT32_MAX};
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace_async(&l, memory.at(), most, most, nullptr),
              TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tessera_last_error()).find("these lengths need"), std::string::npos) << tessera_last_error();
    EXPECT_TRUE(memory.holds(0, l.workspace_size, 0xff));
}

TEST_F(Workspace, NoInstanceIsAWarningAndAStatus) {
    static std::vector<std::string> lines;
    lines.clear();
    tessera_set_log([](void *, tessera_log_level, const char *line) { lines.emplace_back(line); }, nullptr,
                    TESSERA_LOG_WARNING);
    tessera_device *opened = nullptr;
    tessera_fmha_bwd_launcher l;
    if (tessera_device_open("cpu:x86-64-v4-bf16", &opened) != TESSERA_SUCCESS) {
        tessera_set_log(nullptr, nullptr, TESSERA_LOG_ERROR);
        GTEST_SKIP() << tessera_last_error();
    }
    const tessera_fmha_bwd_args args = tessera_fmha_bwd_args_init();
    EXPECT_EQ(tessera_fmha_bwd_launcher_init(opened, &traits, &l), TESSERA_ERROR_NO_INSTANCE); // fp32
    EXPECT_EQ(l.workspace_size, 0U);
    EXPECT_EQ(tessera_fmha_bwd_prepare_workspace(&l, nullptr, nullptr), TESSERA_ERROR_NO_INSTANCE);
    EXPECT_EQ(tessera_fmha_bwd_launcher_run(&l, &args, nullptr), TESSERA_ERROR_NO_INSTANCE);
    tessera_set_log(nullptr, nullptr, TESSERA_LOG_ERROR);
    tessera_device_close(opened);
    ASSERT_GE(lines.size(), 3U);
    EXPECT_NE(lines[0].find("no instance serves this call"), std::string::npos) << lines[0];
}

// ---- calls with a prepared workspace

void run_prepared(Problem &p, int32_t with_starts) {
    if (!with_starts) p.traits->seqstart_qs = p.traits->seqstart_ks = nullptr;
    tessera_fmha_bwd_launcher l;
    ASSERT_EQ(tessera_fmha_bwd_launcher_init(p.device, p.traits, &l), TESSERA_SUCCESS) << tessera_last_error();
    const Memory memory(l.workspace_size);
    p.poison();
    p.args->workspace_ptr = memory.at();
    EXPECT_NE(tessera_fmha_bwd_launcher_run(&l, p.args, nullptr), TESSERA_SUCCESS) << "not prepared";
    ASSERT_EQ(with_starts ? tessera_fmha_bwd_prepare_workspace(&l, memory.at(), nullptr)
                          : tessera_fmha_bwd_prepare_workspace_async(&l, memory.at(), p.args->seqstart_q_ptr,
                                                                     p.args->seqstart_k_ptr, nullptr),
              TESSERA_SUCCESS)
        << tessera_last_error();
    ASSERT_EQ(tessera_fmha_bwd_launcher_run(&l, p.args, nullptr), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_TRUE(memory.is_guarded());
}

TEST(Launcher, GivesTheBytesOfACall) {
    for (const char *arguments :
         {"-b=2 -h=2 -s=70 -s_k=300 -d=40", "-b=2 -h=2 -s=70 -s_k=300 -d=40 -deterministic=1 -mask=t",
          "-mode=1 -b=3 -h=2 -s=70,3,30 -s_k=300,0,140 -d=40",
          "-mode=1 -b=3 -h=2 -s=70,3,30 -s_k=300,0,140 -s_kpad=400,100,200 -d=40 -deterministic=1",
          "-mode=1 -b=3 -h=2 -s=70,3,30 -s_k=300,0,140 -d=40 -deterministic=1 -mask=b:20,30"})
        for (int with_starts : {1, 0}) {
            SCOPED_TRACE(command(fmha_bwd, arguments));
            Problem p(std::string("-prec=fp32 -init=nf ") + arguments);
            p.launch(true);
            const std::vector<uint8_t> want = p.outputs();
            run_prepared(p, with_starts || !p.traits->is_group_mode);
            EXPECT_EQ(p.outputs(), want);
        }
}

} // namespace
