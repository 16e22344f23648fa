// SPDX-License-Identifier: MIT
// Facts about the machine that this process runs on: the targets it can run, its caches, the processors it may use.
#define _GNU_SOURCE // sched_getaffinity
#include "cpu.h"    // beside this file: the simulator compiles it too

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define BIT(n) (1u << (n))

#if defined(__x86_64__)

struct leaf {
    unsigned a, b, c, d;
};

static struct leaf cpuid(unsigned leaf, unsigned subleaf) {
    struct leaf r = {0, 0, 0, 0};
    if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return (struct leaf){0, 0, 0, 0};
    return r;
}

// Register state that the operating system saves: bit 1 SSE, 2 AVX, 5 to 7 AVX-512, 17 and 18 AMX.
static unsigned saved_state(struct leaf one) {
    if (!(one.c & BIT(27))) return 0; // OSXSAVE
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// Linux saves the 8 KiB of tile registers only for processes that ask, and from then on for all of their threads. It
// refuses where a thread's alternate signal stack has no room for them.
static bool may_use_tiles(void) {
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

// In builds for tests, see include/tessera/isa/cpu_amx.h and cpu_avx512fp16.h.
#ifdef TESSERA_EMULATE_TILES
enum { TILES_ARE_EMULATED = true };
#else
enum { TILES_ARE_EMULATED = false };
#endif
#ifdef TESSERA_EMULATE_HALVES
enum { HALVES_ARE_EMULATED = true };
#else
enum { HALVES_ARE_EMULATED = false };
#endif

static bool all(unsigned value, unsigned bits) { return (value & bits) == bits; }

// The levels of the x86-64 psABI.
uint32_t tessera_cpu_targets(void) {
    const struct leaf one = cpuid(1, 0), seven = cpuid(7, 0), extended = cpuid(0x80000001u, 0);
    const unsigned state = saved_state(one);
    uint32_t targets = BIT(TESSERA_TARGET_PORTABLE);

    // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
    if (!all(one.c, BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23)) || !all(extended.c, BIT(0)))
        return targets;
    targets |= BIT(TESSERA_TARGET_X86_64_V2);

    // FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
    if (!all(one.c, BIT(12) | BIT(22) | BIT(28) | BIT(29)) || !all(seven.b, BIT(3) | BIT(5) | BIT(8)) ||
        !all(extended.c, BIT(5)) || !all(state, BIT(1) | BIT(2)))
        return targets;
    targets |= BIT(TESSERA_TARGET_X86_64_V3);

    // AVX-512 F, DQ, CD, BW, VL
    if (!all(seven.b, BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31)) || !all(state, BIT(5) | BIT(6) | BIT(7)))
        return targets;
    targets |= BIT(TESSERA_TARGET_X86_64_V4);

    // AVX-512 BF16; VBMI, which Cooper Lake lacks, and VNNI
    if (seven.a < 1 || !all(cpuid(7, 1).a, BIT(5)) || !all(seven.c, BIT(1) | BIT(11))) return targets;
    targets |= BIT(TESSERA_TARGET_X86_64_V4_BF16);

    // AVX-512 VP2INTERSECT
    if (all(seven.d, BIT(8))) targets |= BIT(TESSERA_TARGET_X86_64_V4_VP2INTERSECT);

    // AVX-512 FP16
    if (HALVES_ARE_EMULATED || all(seven.d, BIT(23))) targets |= BIT(TESSERA_TARGET_X86_64_V4_FP16);

    // AMX-BF16, AMX-TILE, AMX-INT8
    if (!TILES_ARE_EMULATED &&
        (!all(seven.d, BIT(22) | BIT(24) | BIT(25)) || !all(state, BIT(17) | BIT(18)) || !may_use_tiles()))
        return targets;
    return targets | BIT(TESSERA_TARGET_X86_64_V4_AMX);
}

// Reads cache sizes from CPUID, for where sysfs lacks them: leaf 4 (Intel) and 0x8000001D (AMD) have the same form.
static void caches_of_processor(int64_t size[4]) {
    const unsigned leaf = (cpuid(0x80000001u, 0).c & BIT(22)) ? 0x8000001Du : 4;
    for (unsigned i = 0; i < 8; i++) {
        const struct leaf r = cpuid(leaf, i);
        const unsigned type = r.a & 31, level = (r.a >> 5) & 7; // type 1: data, 2: instruction, 3: both
        if (type == 0) break;
        if (type == 2 || level > 3) continue;
        size[level] = (int64_t)((r.b >> 22) + 1) * (((r.b >> 12) & 1023) + 1) * ((r.b & 4095) + 1) * ((int64_t)r.c + 1);
    }
}

#else

uint32_t tessera_cpu_targets(void) {
#if defined(__aarch64__)
    return BIT(TESSERA_TARGET_PORTABLE) | BIT(TESSERA_TARGET_ARMV8_A);
#else
    return BIT(TESSERA_TARGET_PORTABLE);
#endif
}

static void caches_of_processor(int64_t size[4]) { (void)size; }

#endif

// Reads the first line of a small file, without its newline; returns false where there is none.
static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool read = fgets(line, size, file) != NULL;
    fclose(file);
    if (read) line[strcspn(line, "\n")] = 0;
    return read;
}

static void caches_of_sysfs(int64_t size[4]) {
    for (int i = 0; i < 8; i++) {
        char path[96], level[16], type[32], text[32], unit = 0;
        long long value = 0;
        const char *const directory = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%d/level", directory, i);
        if (!read_line(path, level, sizeof level)) break;
        snprintf(path, sizeof path, "%s%d/type", directory, i);
        if (!read_line(path, type, sizeof type) || strcmp(type, "Instruction") == 0) continue;
        snprintf(path, sizeof path, "%s%d/size", directory, i);
        if (!read_line(path, text, sizeof text) || sscanf(text, "%lld%c", &value, &unit) < 1) continue;
        const int at = atoi(level);
        if (at >= 1 && at <= 3) size[at] = value * (unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1);
    }
}

void tessera_cpu_caches(int64_t *l1, int64_t *l2, int64_t *l3) {
    int64_t size[4] = {0, 32 * 1024, 512 * 1024, 0}; // defaults, where neither source knows
    caches_of_processor(size);
    caches_of_sysfs(size);
    *l1 = size[1];
    *l2 = size[2];
    *l3 = size[3];
}

// Processors that the quota in `directory` of a cgroup allows, rounded up; 0: no limit there.
static int quota_at(const char *directory, bool version2) {
    char path[640], line[64];
    long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/%s", directory, version2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (!read_line(path, line, sizeof line)) return 0;
    if (version2) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2) return 0; // "max 100000": no limit
    } else {
        quota = atoll(line);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
        if (read_line(path, line, sizeof line)) period = atoll(line);
    }
    if (quota <= 0 || period <= 0) return 0;
    const long long cpus = (quota + period - 1) / period;
    return cpus > INT32_MAX ? INT32_MAX : (int)cpus;
}

// The least quota of a group and of all groups above it. In a container the group's own path may be invisible, but the
// root is visible.
static int least_quota(const char *hierarchy, const char *group, bool version2) {
    char path[512];
    int least = 0;
    snprintf(path, sizeof path, "%s%s%s", hierarchy, version2 ? "" : "/cpu", group);
    const size_t root = strlen(hierarchy) + (version2 ? 0 : strlen("/cpu"));
    for (;;) {
        const int cpus = quota_at(path, version2);
        if (cpus && (!least || cpus < least)) least = cpus;
        char *const last = strrchr(path, '/');
        if (!last || (size_t)(last - path) < root) return least;
        *last = 0;
    }
}

static bool lists_cpu(const char *controllers) {
    for (const char *at = controllers; (at = strstr(at, "cpu")); at += 3)
        if ((at == controllers || at[-1] == ',') && (at[3] == 0 || at[3] == ',')) return true;
    return false;
}

// Lines of `membership` are "id:controllers:group"; version 2 has id 0 and no controllers.
int tessera_cgroup_cpus(const char *membership, const char *hierarchy) {
    FILE *file = fopen(membership, "re");
    if (!file) return 0;
    char line[512];
    int least = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *const controllers = strchr(line, ':');
        char *const group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group = 0;
        const bool version2 = controllers[1] == 0;
        if (!version2 && !lists_cpu(controllers + 1)) continue;
        const int cpus = least_quota(hierarchy, strcmp(group + 1, "/") == 0 ? "" : group + 1, version2);
        if (cpus && (!least || cpus < least)) least = cpus;
    }
    fclose(file);
    return least;
}

static int affinity_cpus(void) {
#if defined(__linux__)
    for (int cpus = 1024; cpus <= 65536; cpus *= 4) { // the kernel refuses a set smaller than its own
        cpu_set_t *const set = CPU_ALLOC((size_t)cpus);
        if (!set) break;
        const size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        const bool known = sched_getaffinity(0, bytes, set) == 0;
        const int count = known ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (known) return count;
    }
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int tessera_cpu_count(void) {
    const int affinity = affinity_cpus(), quota = tessera_cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota && quota < affinity ? quota : affinity;
}
