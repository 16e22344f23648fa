// SPDX-License-Identifier: MIT
#include "fuzz.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elements.h"

// ---- choices

static struct {
    uint64_t state;       // xorshift64*
    const uint8_t *bytes; // libFuzzer's, which are used first
    size_t size;
} choices;

uint32_t below(uint32_t n) {
    if (choices.size >= 2) {
        const uint32_t value = choices.bytes[0] | (uint32_t)choices.bytes[1] << 8;
        choices.bytes += 2;
        choices.size -= 2;
        return value % n;
    }
    choices.state ^= choices.state >> 12;
    choices.state ^= choices.state << 25;
    choices.state ^= choices.state >> 27;
    return (uint32_t)((choices.state * UINT64_C(0x2545F4914F6CDD1D)) >> 32) % n;
}

int chance(uint32_t one_in) { return below(one_in) == 0; }
int32_t between(int32_t least, int32_t most) { return least + (int32_t)below((uint32_t)(most - least) + 1); }
double uniform(double least, double most) { return least + (most - least) * below(4097) / 4096; }

int32_t odd_int(void) {
    static const int32_t values[] = {0, 1, -1, 2, 7, 512, 513, 1 << 24, 1 << 30, INT32_MAX, INT32_MIN, -77};
    return values[below(sizeof values / sizeof *values)];
}

float odd_float(void) {
    static const float values[] = {0, 1, -1, -0.1f, 0.5f, NAN, INFINITY, -INFINITY};
    return values[below(sizeof values / sizeof *values)];
}

size_t odd_size(size_t right) {
    const size_t sizes[] = {0, 8, 12, right - 8, right / 16 * 8, right + 4, right + 8, right + 64, 70000, SIZE_MAX};
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

int64_t odd_stride(void) {
    return chance(2) ? odd_int() : (int64_t)(chance(2) ? INT64_MAX : INT64_MIN) / between(1, 9);
}

static tessera_device *devices[10];
static int device_count;

static void open_devices(void) {
    static const char *const names[] = {"cpu",
                                        "cpu:portable",
                                        "cpu:x86-64-v2",
                                        "cpu:x86-64-v3",
                                        "cpu:x86-64-v4",
                                        "cpu:x86-64-v4-bf16",
                                        "cpu:x86-64-v4-amx",
                                        "cpu:x86-64-v4-fp16",
                                        "cpu:armv8-a",
                                        "cpu:x86-64-v4-vp2intersect"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        device_count += tessera_device_open(names[n], &devices[device_count]) == TESSERA_SUCCESS;
}

const tessera_device *some_device(void) { return devices[below((uint32_t)device_count)]; }

void choose_strides(int64_t heads, int64_t tokens, int64_t inner, int64_t *batch, int64_t *head, int64_t *token) {
    const int64_t spare = chance(3) ? 2 * between(0, 5) : 0;
    inner += inner % 2 + spare;
    const int tokens_first = chance(2);
    *token = tokens_first ? inner * heads : inner;
    *head = tokens_first ? inner : inner * tokens;
    *batch = inner * heads * tokens;
}

int32_t choose_side(const struct side *side, int32_t batch, int group, int32_t most, int is_even) {
    const uint32_t way = below(3); // with padding but in the first
    int32_t longest = 0;
    side->starts[0] = side->cumulative[0] = 0;
    for (int32_t b = 0; b < batch; b++) {
        int32_t size = chance(6) ? 0 : between(0, most);
        if (is_even) size -= size % 2;
        side->starts[b + 1] = side->starts[b] + size;
        side->lengths[b] = way > 0 ? between(0, size) : size;
        side->cumulative[b + 1] = side->cumulative[b] + side->lengths[b];
        longest = side->lengths[b] > longest ? side->lengths[b] : longest;
    }
    if (group) *side->seqstart = side->starts;
    if (group && way == 1) *side->seqlen = side->lengths;
    if (way == 2) *side->cu_seqlen = side->cumulative;
    return longest;
}

// ---- memory

static union {
    uint8_t bytes[ROOMS][ROOM];
    uint64_t align;
} memory, snapshot, writable; // writable: 1 where the call may write

void *room(int number) { return memory.bytes[number] + BEFORE; }

static void encode(enum pattern pattern, double x, int n, uint8_t *bytes) {
    const uint16_t half = pattern == FP16 ? element_encode_fp16(x) : element_encode_bf16(x);
    const float single = pattern == SLOPES    ? 0.5f / (float)(1 + n % 64)
                         : pattern == LOGS_4  ? 4 + (float)x
                         : pattern == LOGS_10 ? 10 + (float)x
                                              : (float)x;
    switch (pattern) {
    case FP16:
    case BF16:
        memcpy(bytes + 2 * n, &half, 2);
        break;
    case E4M3:
        bytes[n] = element_encode_e4m3(x);
        break;
    case E2M1:
        bytes[n] = (uint8_t)(n * 37 + n / 256);
        break;
    case E8M0:
        bytes[n] = (uint8_t)(121 + n * 7 % 5);
        break;
    default:
        memcpy(bytes + 4 * n, &single, 4);
    }
}

static const uint8_t *pattern_of(enum pattern pattern) {
    static const int sizes[PATTERNS] = {4, 2, 2, 1, 1, 1, 4, 4, 4};
    static uint8_t patterns[PATTERNS][2 * ROOM];
    static int made[PATTERNS];
    for (int n = 0; !made[pattern] && n < 2 * ROOM / sizes[pattern]; n++)
        encode(pattern, (double)((uint32_t)n * 2654435761u >> 16) / 32768 - 1, n, patterns[pattern]);
    made[pattern] = 1;
    return patterns[pattern];
}

// A room holds its section of the pattern. It is filled unless it holds that already.
void fill_room(int number, enum pattern pattern) {
    static int filled[ROOMS]; // pattern + 1
    if (filled[number] == (int)pattern + 1) return;
    memcpy(memory.bytes[number], pattern_of(pattern) + 1024 * number, ROOM);
    filled[number] = (int)pattern + 1;
}

void *odd_pointer(void) { return chance(2) ? NULL : (char *)room((int)below(ROOMS)) + below(64); }

double last_of(double batches, double heads, double rows, double inner, int64_t batch, int64_t head, int64_t row) {
    if (batches < 1 || heads < 1 || rows < 1 || inner < 1) return -1;
    return (batches - 1) * (double)batch + (heads - 1) * (double)head + (rows - 1) * (double)row + inner - 1;
}

int fits(const void *pointer, double last, double bits, int *comparable) {
    if (last < 0) return 1;
    const uint8_t *const begin = pointer, *const all = (const uint8_t *)&memory;
    if (begin < all || begin >= all + sizeof memory) return 0;
    const size_t offset = (size_t)(begin - all);
    const double end = (last + 1) * bits / 8 + 8;
    *comparable &= offset % ROOM == BEFORE && BEFORE + end < ROOM;
    return (double)offset + end < (double)sizeof memory;
}

void begin_call(void) {
    memcpy(&snapshot, &memory, sizeof memory);
    memset(&writable, 0, sizeof writable);
}

void allow(const void *pointer, int64_t bytes) {
    if (bytes > 0) memset((uint8_t *)&writable + ((const uint8_t *)pointer - (uint8_t *)&memory), 1, (size_t)bytes);
}

void end_call(int succeeded) {
    enum { BLOCK = 512 };
    const uint8_t *const now = (uint8_t *)&memory, *const before = (uint8_t *)&snapshot,
                         *const may = (uint8_t *)&writable;
    for (size_t block = 0; block < sizeof memory; block += BLOCK) {
        if (memcmp(now + block, before + block, BLOCK) == 0) continue;
        if (!succeeded) fail("a call that failed wrote something");
        for (size_t n = block; n < block + BLOCK; n++)
            if (now[n] != before[n] && !may[n]) fail("something beside the outputs was written");
    }
    memcpy(&memory, &snapshot, sizeof memory);
}

enum { GUARD_BYTES = 64 };

uint8_t *new_workspace(size_t bytes) {
    uint8_t *const workspace = aligned_alloc(64, (bytes + 63 + GUARD_BYTES) / 64 * 64);
    if (!workspace) fail("no memory for the workspace");
    memset(workspace + bytes, 0xc3, GUARD_BYTES);
    return workspace;
}

void free_workspace(uint8_t *workspace, size_t bytes) {
    for (int n = 0; n < GUARD_BYTES; n++)
        if (workspace[bytes + (size_t)n] != 0xc3) fail("something behind the workspace was written");
    free(workspace);
}

void read_struct(void *whole, const void *given, size_t right) {
    size_t size;
    memcpy(&size, given, sizeof size);
    memcpy(whole, given, size < right ? size : right);
    memcpy(whole, &right, sizeof right);
}

// ---- verdicts

static uint64_t seed = 1, iteration;
struct fuzz_counts counts;

void fail(const char *what) {
    fprintf(stderr, "%s 0 %" PRIu64 " %" PRIu64 ": %s\n", fuzz_name, seed, iteration, what);
    fuzz_describe();
    fprintf(stderr, "  last error: %s\n", tessera_last_error());
    abort();
}

void check_refusal(tessera_status checked) {
    counts.calls++;
    if (strcmp(tessera_status_string(checked), "unknown status") == 0) fail("check returned no status");
    if (checked != TESSERA_SUCCESS && *tessera_last_error() == 0) fail("a refusal without a word");
    counts.refusals += checked != TESSERA_SUCCESS;
}

// ---- the loop

#ifdef TESSERA_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!device_count) open_devices();
    choices.state = 88172645463325252u;
    choices.bytes = bytes;
    choices.size = size;
    fuzz_iterate();
    return 0;
}
#else
static void iterate_number(uint64_t number) {
    iteration = number;
    choices.state = (seed * UINT64_C(0x9E3779B97F4A7C15) ^ (number + 1) * UINT64_C(0xD1342543DE82EF95)) | 1;
    for (int n = 0; n < 8; n++) below(2);
    fuzz_iterate();
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 20;
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    open_devices();
    if (argc > 3) return iterate_number(strtoull(argv[3], NULL, 10)), 0;
    const time_t end = time(NULL) + (time_t)seconds;
    for (uint64_t number = 0; time(NULL) < end; number++) iterate_number(number);
    printf("seed %" PRIu64 ": %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " ran, %" PRIu64 " rows compared\n",
           seed, counts.calls, counts.refusals, counts.launches, counts.rows);
    return counts.launches && counts.refusals && counts.rows ? 0 : 1;
}
#endif
