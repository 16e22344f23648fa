// SPDX-License-Identifier: MIT
#include "tessera/device.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fake_cuda.h"
#include "fake_hip.h"

extern "C" {
#include "device/cpu.h"
#include "library.h"
}

namespace {

TEST(Device, Cpu) {
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_STREQ(tessera_device_name(device), "cpu");
    const tessera_device_facts *facts = tessera_device_get_facts(device);
    EXPECT_EQ(facts->struct_size, sizeof *facts);
    EXPECT_EQ(facts->targets, tessera_cpu_targets());
    EXPECT_EQ(facts->compute_units, tessera_cpu_count());
    EXPECT_GE(facts->l1_bytes, 8 << 10);
    EXPECT_LE(facts->l1_bytes, 1 << 20);
    EXPECT_GE(facts->l2_bytes, facts->l1_bytes);
    EXPECT_TRUE(facts->l3_bytes == 0 || facts->l3_bytes >= facts->l2_bytes);
    tessera_device_close(device);
    tessera_device_close(nullptr);
    EXPECT_EQ(tessera_device_name(nullptr), nullptr);
    EXPECT_EQ(tessera_device_get_facts(nullptr), nullptr);
}

TEST(Device, OnlySimulatedDevicesHaveAClock) {
    tessera_device *device = nullptr;
    tessera_sim_timing timing;
    ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS) << tessera_last_error();
    EXPECT_EQ(tessera_device_set_clock(device, TESSERA_SIM_CLOCK_ON), TESSERA_ERROR_DEVICE);
    EXPECT_STREQ(tessera_last_error(), "the CPU has no clock: only simulated devices do");
    EXPECT_EQ(tessera_device_take_timing(device, &timing), TESSERA_ERROR_DEVICE);
    EXPECT_EQ(tessera_device_set_output(device, TESSERA_SIM_OUTPUT_TIMING, "x"), TESSERA_ERROR_DEVICE);
    EXPECT_EQ(tessera_device_set_clock(nullptr, TESSERA_SIM_CLOCK_ON), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_device_set_output(nullptr, TESSERA_SIM_OUTPUT_TIMING, "x"), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_device_take_timing(nullptr, &timing), TESSERA_ERROR_INVALID_ARGUMENT);
    tessera_device_close(device);
}

TEST(Device, FactsDoNotFollowTheThreads) {
    tessera_device *device = nullptr;
    ASSERT_EQ(tessera_set_num_threads(tessera_cpu_count() + 5), TESSERA_SUCCESS);
    ASSERT_EQ(tessera_device_open("cpu", &device), TESSERA_SUCCESS);
    EXPECT_EQ(tessera_device_get_facts(device)->compute_units, tessera_cpu_count());
    tessera_device_close(device);
    tessera_set_num_threads(0);
}

TEST(Device, AutoIsTheCpuWithoutADriver) {
    tessera_device *device = nullptr;
    setenv("TESSERA_HIP_LIBRARY", "/nonexistent", 1);
    ASSERT_EQ(tessera_device_open("auto", &device), TESSERA_SUCCESS);
    unsetenv("TESSERA_HIP_LIBRARY");
    EXPECT_STREQ(tessera_device_name(device), "cpu");
    tessera_device_close(device);
}

bool has_instances(tessera_target target) {
    for (size_t t = 0; t < tessera_table_count; t++) {
        const tessera_table *const table = tessera_tables[t]();
        for (uint32_t i = 0; i < table->row_count; i++)
            if (tessera_row(table, i)->target == target) return true;
    }
    return false;
}

bool has_gpu_instances() { return has_instances(TESSERA_TARGET_GFX942) || has_instances(TESSERA_TARGET_SM_90A); }

TEST(Device, AutoIsTheFirstGpuWithInstances) {
    FakeHip hip({"gfx1100", "gfx950", "gfx942:sramecc+:xnack-", "gfx942"});
    FakeCuda cuda({80, 90});
    tessera_device *device = nullptr;
    const std::string error = tessera_last_error();
    ASSERT_EQ(tessera_device_open("auto", &device), TESSERA_SUCCESS);
    EXPECT_STREQ(tessera_device_name(device), has_instances(TESSERA_TARGET_GFX950)   ? "hip:1"
                                              : has_instances(TESSERA_TARGET_GFX942) ? "hip:2"
                                              : has_instances(TESSERA_TARGET_SM_90A) ? "cuda:1"
                                                                                     : "cpu");
    EXPECT_EQ(tessera_last_error(), error) << "what was tried is no failure";
    tessera_device_close(device);
    EXPECT_EQ(hip.calls_of_all() > 0, has_gpu_instances()) << "no driver is asked for nothing";
}

TEST(Device, AutoGoesOnWhereGpusFail) {
    for (const char *name : {"hipInit", "hipGetDeviceCount", "hipGetDevicePropertiesR0600", "hipDeviceGetAttribute"}) {
        FakeHip hip({"gfx942"});
        FakeCuda cuda({});
        hip.fails[name] = 100;
        tessera_device *device = nullptr;
        ASSERT_EQ(tessera_device_open("auto", &device), TESSERA_SUCCESS);
        EXPECT_STREQ(tessera_device_name(device), "cpu") << name;
        EXPECT_EQ(hip.last_error, 0) << name;
        tessera_device_close(device);
    }
}

TEST(Device, OneTarget) {
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++) {
        const std::string word = tessera_target_string(static_cast<tessera_target>(target)), name = "cpu:" + word;
        tessera_device *device = nullptr;
        const tessera_status status = tessera_device_open(name.c_str(), &device);
        if (tessera_cpu_targets() >> target & 1) {
            ASSERT_EQ(status, TESSERA_SUCCESS) << tessera_last_error();
            EXPECT_EQ(tessera_device_name(device), name);
            EXPECT_EQ(tessera_device_get_facts(device)->targets, 1u << target);
            tessera_device_close(device);
        } else {
            EXPECT_EQ(status, TESSERA_ERROR_DEVICE) << name;
            EXPECT_EQ(tessera_last_error(), "device \"" + name + "\": this machine cannot run " + word);
            EXPECT_EQ(device, nullptr);
        }
    }
}

TEST(Device, Fp8Format) {
    FakeHip hip({"gfx90a", "gfx942:sramecc+:xnack-", "gfx950"});
    const std::pair<const char *, tessera_fp8_format> formats[] = {
        {"cpu", TESSERA_E4M3FN}, {"hip:0", TESSERA_FP8_NONE}, {"hip:1", TESSERA_E4M3FNUZ}, {"hip:2", TESSERA_E4M3FN}};
    for (const auto &[name, format] : formats) {
        tessera_device *device = nullptr;
        ASSERT_EQ(tessera_device_open(name, &device), TESSERA_SUCCESS) << tessera_last_error();
        EXPECT_EQ(tessera_device_fp8_format(device), format) << name;
        tessera_device_close(device);
    }
    EXPECT_EQ(tessera_device_fp8_format(nullptr), TESSERA_FP8_NONE);
}

TEST(Device, RefusedNames) {
    tessera_device *device = nullptr;
    setenv("TESSERA_HIP_LIBRARY", "/nonexistent", 1);
    setenv("TESSERA_SIM_LIBRARY", "/nonexistent", 1);
    setenv("TESSERA_CUDA_LIBRARY", "/nonexistent", 1);
    for (const char *name : {"hip:0", "sim:gfx942", "cuda:0"}) {
        EXPECT_EQ(tessera_device_open(name, &device), TESSERA_ERROR_DEVICE) << name;
        EXPECT_NE(std::string(tessera_last_error()).find(name), std::string::npos);
    }
    unsetenv("TESSERA_HIP_LIBRARY");
    unsetenv("TESSERA_SIM_LIBRARY");
    unsetenv("TESSERA_CUDA_LIBRARY");
    for (const char *name : {"", "CPU", "cpu:", "cpu:sse", "hip", "gpu", "cuda", "nvidia:0"}) {
        EXPECT_EQ(tessera_device_open(name, &device), TESSERA_ERROR_INVALID_ARGUMENT) << name;
        EXPECT_NE(std::string(tessera_last_error()).find("is unknown"), std::string::npos) << tessera_last_error();
    }
    EXPECT_STREQ(tessera_last_error(),
                 "device \"nvidia:0\" is unknown: auto, cpu, cpu:TARGET, hip:N, cuda:N or sim:ARCH");
    EXPECT_EQ(tessera_device_open(nullptr, &device), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(tessera_device_open("cpu", nullptr), TESSERA_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(device, nullptr);
}

TEST(CpuTargets, PortableAlways) { EXPECT_TRUE(tessera_cpu_targets() >> TESSERA_TARGET_PORTABLE & 1); }

#if defined(__x86_64__)
std::string first_flags() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("flags", 0) == 0) return line + " ";
    return "";
}

bool has(const std::string &flags, std::initializer_list<const char *> words) {
    for (const char *word : words)
        if (flags.find(std::string(" ") + word + " ") == std::string::npos) return false;
    return true;
}

#ifdef TESSERA_EMULATE_TILES
bool may_use_tiles(const std::string &) { return true; }
#else
bool may_use_tiles(const std::string &flags) { // ARCH_REQ_XCOMP_PERM of the tiles' data
    return has(flags, {"amx_tile", "amx_bf16"}) && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
#endif

#ifdef TESSERA_EMULATE_HALVES
constexpr bool halves_are_emulated = true;
#else
constexpr bool halves_are_emulated = false;
#endif

TEST(CpuTargets, AgreeWithTheKernel) {
    const std::string flags = first_flags();
    // Emulators run on the flags of their host.
    if (flags.empty() || getenv("TESSERA_TEST_EMULATED")) GTEST_SKIP() << "no flags of this processor to compare with";
    const bool v2 = has(flags, {"pni", "ssse3", "cx16", "sse4_1", "sse4_2", "popcnt", "lahf_lm"});
    const bool v3 = v2 && has(flags, {"fma", "movbe", "avx", "f16c", "bmi1", "avx2", "bmi2", "abm"});
    const bool v4 = v3 && has(flags, {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"});
    const bool bf16 = v4 && has(flags, {"avx512_bf16", "avx512vbmi"});
    const uint32_t targets = tessera_cpu_targets();
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V2 & 1, v2);
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V3 & 1, v3);
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V4 & 1, v4);
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V4_BF16 & 1, bf16);
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V4_FP16 & 1,
              bf16 && has(flags, {"avx512_vnni"}) && (halves_are_emulated || has(flags, {"avx512_fp16"})));
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V4_VP2INTERSECT & 1,
              bf16 && has(flags, {"avx512_vnni", "avx512_vp2intersect"}));
    EXPECT_EQ(targets >> TESSERA_TARGET_X86_64_V4_AMX & 1, bf16 && may_use_tiles(flags));
    EXPECT_EQ(targets >> TESSERA_TARGET_ARMV8_A & 1, 0u);
}
#endif

class Cgroup : public ::testing::Test {
  protected:
    Cgroup() : root(std::filesystem::temp_directory_path() / ("tessera_cgroup_" + std::to_string(getpid()))) {}
    ~Cgroup() override { std::filesystem::remove_all(root); }

    void write(const std::string &path, const std::string &text) {
        std::filesystem::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text << "\n";
    }
    int cpus(const std::string &membership) {
        write("membership", membership);
        return tessera_cgroup_cpus((root / "membership").c_str(), (root / "hierarchy").c_str());
    }

    std::filesystem::path root;
};

TEST_F(Cgroup, NoneWithoutFiles) {
    EXPECT_EQ(tessera_cgroup_cpus((root / "missing").c_str(), root.c_str()), 0);
    EXPECT_EQ(cpus("0::/"), 0);
    EXPECT_EQ(cpus("nonsense"), 0);
}

TEST_F(Cgroup, Version2) {
    write("hierarchy/cpu.max", "max 100000");
    EXPECT_EQ(cpus("0::/"), 0);
    write("hierarchy/cpu.max", "400000 100000");
    EXPECT_EQ(cpus("0::/"), 4);
    write("hierarchy/cpu.max", "150000 100000"); // rounded up
    EXPECT_EQ(cpus("0::/"), 2);
    write("hierarchy/cpu.max", "50000 100000");
    EXPECT_EQ(cpus("0::/"), 1);
}

TEST_F(Cgroup, Version2TakesTheLeastOnTheWayUp) {
    write("hierarchy/cpu.max", "800000 100000");
    write("hierarchy/a/cpu.max", "300000 100000");
    write("hierarchy/a/b/cpu.max", "500000 100000");
    EXPECT_EQ(cpus("0::/a/b"), 3);
    EXPECT_EQ(cpus("0::/elsewhere/unseen"), 8);
}

TEST_F(Cgroup, Version1) {
    const std::string membership = "11:memory:/a\n7:cpuset:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/a";
    write("hierarchy/cpu/cpu.cfs_period_us", "100000");
    write("hierarchy/cpu/cpu.cfs_quota_us", "-1");
    EXPECT_EQ(cpus(membership), 0);
    write("hierarchy/cpu/a/cpu.cfs_period_us", "50000");
    write("hierarchy/cpu/a/cpu.cfs_quota_us", "250000");
    EXPECT_EQ(cpus(membership), 5);
    EXPECT_EQ(cpus("7:cpuset:/a"), 0);
    EXPECT_EQ(cpus("7:cpuacct,cpu:/a"), 5);
}

} // namespace
