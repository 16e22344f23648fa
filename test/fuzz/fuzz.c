// SPDX-License-Identifier: MIT
#include "fuzz.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elements.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) ((void)0)
#endif

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

static struct fuzz_device devices[12];
static uint32_t device_count;
struct fuzz_device on;
int contents_are_wrong;

enum { NOT_RUN = 77 }; // status of a test that is skipped

// A device that cannot be opened is none; where it was asked for, the test is skipped.
static void open_device(const char *name, size_t length, int is_asked_for) {
    struct fuzz_device *const device = &devices[device_count];
    char *const copy = calloc(1, length + 1);
    if (!copy || device_count == sizeof devices / sizeof *devices) abort();
    memcpy(copy, name, length);
    if (tessera_device_open(copy, &device->device) != TESSERA_SUCCESS) {
        if (is_asked_for) printf("%s\n", tessera_last_error()), exit(NOT_RUN);
        free(copy);
        return;
    }
    device->name = copy;
    device->is_gpu = strncmp(copy, "cpu", 3) != 0;
    device->fp8 = tessera_device_fp8_format(device->device);
    if (device->fp8 == TESSERA_FP8_NONE) device->fp8 = TESSERA_E4M3FN;
    device_count++;
}

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
    const char *given = getenv("TESSERA_TEST_DEVICE");
    for (size_t length; given && *given; given += length + (given[length] == ',')) {
        length = strcspn(given, ",");
        open_device(given, length, 1);
    }
    for (size_t n = 0; device_count == 0 || (!devices[0].is_gpu && n < sizeof names / sizeof *names); n++)
        open_device(names[n], strlen(names[n]), 0);
}

int32_t choose_hdim(int32_t most, int bits) {
    const int32_t multiple = !on.is_gpu ? 1 : bits == 8 ? 16 : 8;
    return multiple * between(1, most > multiple ? most / multiple : 1);
}

void choose_strides(int64_t heads, int64_t tokens, int64_t inner, int64_t *batch, int64_t *head, int64_t *token) {
    const int64_t multiple = on.is_gpu ? 16 : 2, spare = chance(3) ? multiple * between(0, on.is_gpu ? 2 : 5) : 0;
    inner = (inner + multiple - 1) / multiple * multiple + spare;
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
    max_align_t align;
} memory, snapshot, results, writable; // writable: 1 where the call may write

static size_t used = ROOM; // bytes of the rooms that anybody has asked for

void *room(int number) {
    const size_t bytes = ((size_t)number + 1) * ROOM;
    used = bytes > used ? bytes : used;
    return memory.bytes[number] + BEFORE;
}

enum { SHIFTS = 256 }; // bytes that a tensor begins behind its room's first one at most

void *odd_room(int number, int bytes) {
    return (char *)room(number) + (on.is_gpu || !chance(4) ? 0 : bytes * between(0, SHIFTS / bytes));
}

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
    case E4M3FNUZ:
        bytes[n] = element_encode_e4m3fnuz(x);
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
    static const int sizes[PATTERNS] = {4, 2, 2, 1, 1, 1, 1, 4, 4, 4};
    static uint8_t patterns[PATTERNS][2 * ROOM];
    static int made[PATTERNS];
    for (int n = 0; !made[pattern] && n < 2 * ROOM / sizes[pattern]; n++)
        encode(pattern, (double)((uint32_t)n * 2654435761u >> 16) / 32768 - 1, n, patterns[pattern]);
    made[pattern] = 1;
    return patterns[pattern];
}

static int filled[ROOMS]; // pattern + 1

void forget_room(int number) { filled[number] = 0; }

// A room holds its section of the pattern. It is filled unless it holds that already.
void fill_room(int number, enum pattern pattern) {
    if (filled[number] == (int)pattern + 1) return;
    memcpy(memory.bytes[number], pattern_of(pattern) + 1024 * number, ROOM);
    filled[number] = (int)pattern + 1;
}

static void put_special(enum pattern pattern, uint8_t *tensor, int32_t n) {
    static const float numbers[] = {NAN, INFINITY, -INFINITY};
    const uint32_t which = below(3);
    if (pattern == E4M3) tensor[n] = which == 0 ? 0xff : 0x7f;
    if (pattern == E4M3FNUZ) tensor[n] = 0x80;
    if (pattern <= BF16) encode(pattern, (double)numbers[which], n, tensor);
}

void sprinkle(int number, const void *tensor, enum pattern pattern, int32_t numbers) {
    for (int32_t n = between(1, 3); n > 0; n--)
        put_special(pattern, (uint8_t *)(uintptr_t)tensor, (int32_t)below((uint32_t)numbers));
    forget_room(number);
}

void spoil_run(void *all, const struct run *run) {
    const size_t size = run->kind == STRIDES ? 8 : 4;
    char *const field = (char *)all + run->first + size * below((uint32_t)((run->last - run->first) / size + 1));
    const int32_t number = chance(2) ? odd_int() : between(-1, 200);
    const float value = odd_float();
    const int64_t stride = odd_stride();
    memcpy(field,
           run->kind == INTS     ? (const void *)&number
           : run->kind == FLOATS ? (const void *)&value
                                 : &stride,
           size);
}

int spoil_one(void *args, const struct run *runs, size_t run_count, const size_t *pointers, uint32_t pointer_count) {
    const uint32_t kinds = (uint32_t)run_count, kind = below(kinds + 2);
    if (kind < kinds) spoil_run(args, &runs[kind]);
    if (kind == kinds) *pointer_at(args, pointers[below(pointer_count)]) = odd_pointer();
    return kind <= kinds;
}

void *odd_pointer(void) { return chance(2) ? NULL : (char *)room((int)below((uint32_t)(used / ROOM))) + below(64); }

double last_of(double batches, double heads, double rows, double inner, int64_t batch, int64_t head, int64_t row) {
    if (batches < 1 || heads < 1 || rows < 1 || inner < 1) return -1;
    return (batches - 1) * (double)batch + (heads - 1) * (double)head + (rows - 1) * (double)row + inner - 1;
}

// What the call may touch, from the first byte to that before the end; of GPUs, and its copy there.
static struct extent {
    uint8_t *begin, *end;
    uint8_t *copy;
} extents[2 * ROOMS];
static int extent_count;

int fits(const void *pointer, double last, double bits, int *comparable) {
    if (last < 0) return 1;
    uint8_t *const begin = (uint8_t *)(uintptr_t)pointer, *const all = (uint8_t *)&memory;
    if (begin < all || begin >= all + used) return 0;
    const size_t offset = (size_t)(begin - all), in_room = offset % ROOM;
    const double end = ceil((last + 1) * bits / 8);
    *comparable &= in_room >= BEFORE && in_room <= BEFORE + SHIFTS && (double)in_room + end + 8 < ROOM;
    if ((double)offset + end + 8 >= (double)used || extent_count == 2 * ROOMS) return 0;
    extents[extent_count++] = (struct extent){begin, begin + (size_t)end, NULL};
    return 1;
}

enum { BLOCK = 1024 };

// Most of the rooms stays the same from call to call.
static void copy_blocks(void *to, const void *from) {
    for (size_t block = 0; block < used; block += BLOCK)
        if (memcmp((char *)to + block, (const char *)from + block, BLOCK) != 0)
            memcpy((char *)to + block, (const char *)from + block, BLOCK);
}

void begin_call(void) {
    copy_blocks(&snapshot, &memory);
    memset(&writable, 0, used);
    extent_count = 0;
}

void allow(const void *pointer, int64_t bytes) {
    if (bytes > 0) memset((uint8_t *)&writable + ((const uint8_t *)pointer - (uint8_t *)&memory), 1, (size_t)bytes);
}

const void *before_call(const void *pointer) {
    return (uint8_t *)&snapshot + ((const uint8_t *)pointer - (uint8_t *)&memory);
}

void end_call(int succeeded) {
    uint8_t *const now = (uint8_t *)&memory;
    const uint8_t *const before = (uint8_t *)&snapshot, *const may = (uint8_t *)&writable;
    for (size_t block = 0; block < used; block += BLOCK) {
        if (memcmp(now + block, before + block, BLOCK) == 0) continue;
        if (!succeeded) fail("a call that failed wrote something");
        for (size_t n = block; n < block + BLOCK; n++)
            if (now[n] != before[n] && !may[n]) fail("something beside the outputs was written");
        memcpy(now + block, before + block, BLOCK);
    }
}

void keep_results(void) {
    copy_blocks(&results, &memory);
    copy_blocks(&memory, &snapshot);
}

void compare_results(void) {
    if (memcmp(&results, &memory, used) != 0) fail("another number of threads gave other bytes");
}

// ---- what a call may touch

// What is shut, AddressSanitizer finds touched.
static void shut(void *begin, size_t bytes) {
    ASAN_POISON_MEMORY_REGION(begin, bytes);
    (void)begin, (void)bytes;
}
static void reveal(void *begin, size_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
    (void)begin, (void)bytes;
}

void shut_rooms(void) {
    shut(&memory, used);
    for (int n = 0; n < extent_count; n++) reveal(extents[n].begin, (size_t)(extents[n].end - extents[n].begin));
}

void open_rooms(void) { reveal(&memory, used); }

static int by_begin(const void *a, const void *b) {
    const uint8_t *const x = ((const struct extent *)a)->begin, *const y = ((const struct extent *)b)->begin;
    return (x > y) - (x < y);
}

// Those that overlap become one.
static void join_extents(void) {
    int count = 0;
    qsort(extents, (size_t)extent_count, sizeof *extents, by_begin);
    for (int n = 0; n < extent_count; n++)
        if (count > 0 && extents[n].begin < extents[count - 1].end) {
            if (extents[n].end > extents[count - 1].end) extents[count - 1].end = extents[n].end;
        } else {
            extents[count++] = extents[n];
        }
    extent_count = count;
}

static void done(tessera_status status) {
    if (status != TESSERA_SUCCESS) fail("the device failed");
}

// Copies begin as far from a multiple of 16 bytes as what they are of.
static size_t shift_of(const struct extent *x) { return (size_t)(x->begin - (uint8_t *)room(0)) % 16; }

void lend_rooms(void *args, const size_t *pointers, int count) {
    join_extents();
    for (struct extent *x = extents; x < extents + extent_count; x++) {
        const size_t bytes = (size_t)(x->end - x->begin);
        void *copy = NULL;
        done(tessera_device_malloc(on.device, bytes + shift_of(x), &copy));
        x->copy = (uint8_t *)copy + shift_of(x);
        done(tessera_device_copy_to(on.device, x->copy, x->begin, bytes));
    }
    for (int n = 0; n < count; n++) {
        uint8_t *const at = *pointer_at(args, pointers[n]);
        for (const struct extent *x = extents; x < extents + extent_count; x++)
            if (at >= x->begin && at < x->end) *pointer_at(args, pointers[n]) = x->copy + (at - x->begin);
    }
}

void take_back_rooms(void) {
    done(tessera_device_synchronize(on.device));
    for (struct extent *x = extents; x < extents + extent_count; x++) {
        done(tessera_device_copy_from(on.device, x->begin, x->copy, (size_t)(x->end - x->begin)));
        done(tessera_device_free(on.device, x->copy - shift_of(x)));
    }
}

enum { GUARD_BYTES = 64 };
static const uint8_t guard[GUARD_BYTES] = {0xc3, 0x5a, 0xff, 1};

static size_t with_guard(size_t bytes) { return (bytes + GUARD_BYTES + 63) / 64 * 64; }

uint8_t *new_workspace(size_t bytes) {
    void *workspace = NULL;
    if (on.is_gpu) {
        done(tessera_device_malloc(on.device, with_guard(bytes), &workspace));
        done(tessera_device_copy_to(on.device, (uint8_t *)workspace + bytes, guard, GUARD_BYTES));
        return workspace;
    }
    workspace = aligned_alloc(64, with_guard(bytes));
    if (!workspace) fail("no memory for the workspace");
    memset(workspace, 0xff, bytes); // numbers that are none
    memcpy((uint8_t *)workspace + bytes, guard, GUARD_BYTES);
    shut((uint8_t *)workspace + bytes, with_guard(bytes) - bytes);
    return workspace;
}

void free_workspace(uint8_t *workspace, size_t bytes) {
    uint8_t now[GUARD_BYTES];
    if (on.is_gpu) {
        done(tessera_device_copy_from(on.device, now, workspace + bytes, GUARD_BYTES));
        done(tessera_device_free(on.device, workspace));
    } else {
        reveal(workspace + bytes, with_guard(bytes) - bytes);
        memcpy(now, workspace + bytes, GUARD_BYTES);
        free(workspace);
    }
    if (memcmp(now, guard, GUARD_BYTES) != 0) fail("something behind the workspace was written");
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

static void describe(const char *what) {
    open_rooms();
    fprintf(stderr, "%s 0 %" PRIu64 " %" PRIu64 " on %s: %s\n", fuzz_name, seed, iteration, on.name, what);
    fuzz_describe();
}

void fail(const char *what) {
    describe(what);
    fprintf(stderr, "  last error: %s\n", tessera_last_error());
    abort();
}

#if defined(__SANITIZE_ADDRESS__)
void __asan_on_error(void);
void __asan_on_error(void) { describe("AddressSanitizer"); }
#endif

const void *with_infinities(tessera_type type, const void *o, const double *want, int32_t count) {
    static float copy[512];
    for (int32_t d = 0; d < count; d++) {
        const double got = element_load(type, o, d);
        element_store(type, copy, d, isnan(got) && isinf(want[d]) ? want[d] : got);
    }
    return copy;
}

void check_refusal(tessera_status checked) {
    counts.calls++;
    if (strcmp(tessera_status_string(checked), "unknown status") == 0) fail("check returned no status");
    if (checked != TESSERA_SUCCESS && *tessera_last_error() == 0) fail("a refusal without a word");
    counts.refusals += checked != TESSERA_SUCCESS;
}

// ---- the loop

static void iterate(void) {
    on = devices[below(device_count)];
    tessera_set_num_threads(between(1, 4));
    fuzz_iterate();
}

#ifdef TESSERA_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!device_count) open_devices();
    choices.state = 88172645463325252u;
    choices.bytes = bytes;
    choices.size = size;
    iterate();
    return 0;
}
#else
static void iterate_number(uint64_t number) {
    iteration = number;
    choices.state = (seed * UINT64_C(0x9E3779B97F4A7C15) ^ (number + 1) * UINT64_C(0xD1342543DE82EF95)) | 1;
    for (int n = 0; n < 8; n++) below(2);
    iterate();
}

static double now(void) {
    struct timespec time;
    if (timespec_get(&time, TIME_UTC) != TIME_UTC) abort();
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Whether there was a bit of everything, which takes a simulated GPU longer than a second at times.
static int has_seen_all(void) { return counts.launches && counts.refusals && counts.rows; }

int main(int argc, char **argv) {
    enum { ENOUGH = 2000 };
    const double seconds = argc > 1 ? atof(argv[1]) : 20;
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    open_devices();
    if (argc > 3) return iterate_number(strtoull(argv[3], NULL, 10)), 0;
    const double end = now() + seconds;
    for (uint64_t number = 0; now() < end || (!has_seen_all() && number < ENOUGH); number++) iterate_number(number);
    printf("seed %" PRIu64 ": %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " without instance, %" PRIu64
           " ran, %" PRIu64 " rows compared\n",
           seed, counts.calls, counts.refusals, counts.unserved, counts.launches, counts.rows);
    if (counts.launches == 0 && counts.unserved > 0) return NOT_RUN;
    return has_seen_all() ? 0 : 1;
}
#endif
