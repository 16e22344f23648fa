// SPDX-License-Identifier: MIT
// All buffers of a problem in one arena, with guard zones between them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER
#endif
#endif

#ifdef ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define POISON(address, bytes) ((void)0)
#define UNPOISON(address, bytes) ((void)0)
#endif

int64_t example_times(int64_t a, int64_t b) {
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

void example_use(example_problem *p, int tensor, int64_t elements, int32_t bits) {
    const int64_t all = example_times(elements, bits);
    p->buffers[tensor] = (example_buffer){.used = 1,
                                          .bytes = all < 0 ? -1 : (all + 7) / 8,
                                          .element_bytes = bits < 8 ? 1 : bits / 8,
                                          .unwritten = EXAMPLE_UNWRITTEN_BYTE};
}

void *example_pointer(const example_problem *p, int tensor) {
    return p->buffers[tensor].used ? p->arena + p->buffers[tensor].offset : NULL;
}

void *example_field(void *args, size_t offset) { return (char *)args + offset; }

void example_set_pointers(const example_problem *p, void *at(const example_problem *, int), void *args) {
    for (int n = 0; n < p->program->tensor_count; n++)
        if (p->program->tensors[n].name) *(void **)example_field(args, p->program->tensors[n].pointer) = at(p, n);
    if (p->program->point) p->program->point(p, args);
}

// Bytes that this machine could give; infinite where it does not say.
static double memory_available(void) {
    double kilobytes = INFINITY;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf kB", &kilobytes) == 1) break;
    if (file) fclose(file);
    return kilobytes * 1024;
}

example_outcome example_check_memory(const example_problem *p, double bytes, const char *what, example_result *result) {
    const double available = memory_available();
    if (bytes >= 0x1p62) return EXAMPLE_WRONG("%s: the bytes of %s overflow 64 bits", p->sizes, what);
    if (bytes > available)
        return EXAMPLE_WRONG("%s: %s take %.1f GB, and this machine has %.1f GB to give", p->sizes, what, bytes / 1e9,
                             available / 1e9);
    return EXAMPLE_OK;
}

// The buffers one after the other, at least EXAMPLE_GUARD bytes apart.
static example_outcome place(example_problem *p, example_result *result) {
    int64_t end = 0;
    for (int n = 0; n < p->program->tensor_count; n++) {
        example_buffer *buffer = &p->buffers[n];
        if (n == p->program->first_output) p->input_bytes = end;
        if (!buffer->used) continue;
        if (buffer->bytes < 0 || buffer->bytes > INT64_MAX / EXAMPLE_BUFFERS / 2)
            return example_check_memory(p, INFINITY, p->program->tensors[n].name, result);
        buffer->offset = (end + EXAMPLE_GUARD + 63) / 64 * 64 + (int64_t)p->misalign * buffer->element_bytes;
        end = buffer->offset + buffer->bytes + EXAMPLE_GUARD;
    }
    p->arena_bytes = (end + 63) / 64 * 64;
    return example_check_memory(p, (double)p->arena_bytes, "the buffers", result);
}

example_outcome example_allocate(example_problem *p, example_result *result) {
    if (place(p, result)) return result->outcome;
    p->arena = aligned_alloc(64, (size_t)p->arena_bytes);
    if (!p->arena)
        return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory for %.1f GB of buffers",
                            (double)p->arena_bytes / 1e9);
    int64_t end = 0;
    for (int n = 0; n < p->program->tensor_count; n++) {
        const example_buffer *buffer = &p->buffers[n];
        if (!buffer->used) continue;
        memset(p->arena + end, EXAMPLE_GUARD_BYTE, (size_t)(buffer->offset - end));
        memset(p->arena + buffer->offset, buffer->unwritten, (size_t)buffer->bytes);
        end = buffer->offset + buffer->bytes;
    }
    memset(p->arena + end, EXAMPLE_GUARD_BYTE, (size_t)(p->arena_bytes - end));
    example_set_pointers(p, example_pointer, p->args);
    return EXAMPLE_OK;
}

void example_guard(const example_problem *p) {
    POISON(p->arena, (size_t)p->arena_bytes);
    for (int n = 0; n < p->program->tensor_count; n++)
        if (p->buffers[n].used) UNPOISON(p->arena + p->buffers[n].offset, (size_t)p->buffers[n].bytes);
}

void example_unguard(const example_problem *p) {
    if (p->arena) UNPOISON(p->arena, (size_t)p->arena_bytes);
}

uint64_t example_input_sum(const example_problem *p) {
    example_unguard(p);
    uint64_t sums[4] = {1, 2, 3, 4}, sum = 0;
    int64_t n = 0;
    for (; n + 32 <= p->input_bytes; n += 32)
        for (int lane = 0; lane < 4; lane++) {
            uint64_t word;
            memcpy(&word, p->arena + n + lane * 8, sizeof word);
            sums[lane] = (sums[lane] ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        }
    for (; n < p->input_bytes; n++) sum = (sum ^ p->arena[n]) * UINT64_C(0x9E3779B97F4A7C15);
    for (int lane = 0; lane < 4; lane++) sum = (sum ^ sums[lane] >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return sum;
}

int example_all_bytes(const void *begin, int64_t count, uint8_t value) {
    const uint8_t *bytes = begin;
    return count <= 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, (size_t)count - 1) == 0);
}

example_outcome example_check_guards(const example_problem *p, example_result *result) {
    const example_program *const program = p->program;
    if (example_input_sum(p) != p->input_sum)
        return example_fail(result, EXAMPLE_WRONG_RESULT, "an input, or a guard zone around one, was written");
    int64_t end = p->input_bytes;
    for (int n = program->first_output; n <= program->tensor_count; n++) {
        const int last = n == program->tensor_count;
        if (!last && !p->buffers[n].used) continue;
        const int64_t next = last ? p->arena_bytes : p->buffers[n].offset;
        if (!example_all_bytes(p->arena + end, next - end, EXAMPLE_GUARD_BYTE))
            return example_fail(result, EXAMPLE_WRONG_RESULT, "a guard zone next to %s was written",
                                program->tensors[last ? program->first_output : n].name);
        if (!last) end = next + p->buffers[n].bytes;
    }
    if (p->workspace &&
        (!example_all_bytes(p->workspace, EXAMPLE_GUARD, EXAMPLE_GUARD_BYTE) ||
         !example_all_bytes(p->workspace + EXAMPLE_GUARD + p->workspace_bytes, EXAMPLE_GUARD, EXAMPLE_GUARD_BYTE)))
        return example_fail(result, EXAMPLE_WRONG_RESULT, "a guard zone next to the workspace was written");
    return EXAMPLE_OK;
}
