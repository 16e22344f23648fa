// SPDX-License-Identifier: MIT
// What programs share that call an operation with random traits and args: choices, memory, verdicts, the loop.
//
//   fuzz_OP [seconds [seed]]        default 20 seconds, seed 1
//   fuzz_OP 0 SEED ITERATION        one iteration again
//
// With -DTESSERA_LIBFUZZER and clang's -fsanitize=fuzzer the choices come from libFuzzer instead.
#ifndef TESSERA_TEST_FUZZ_H
#define TESSERA_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "tessera/call.h"

// ---- the program

extern const char fuzz_name[]; // of the program
void fuzz_iterate(void);       // one call
void fuzz_describe(void);      // prints the call to stderr

// ---- choices

uint32_t below(uint32_t n);
int chance(uint32_t one_in);
int32_t between(int32_t least, int32_t most);
double uniform(double least, double most);
int32_t odd_int(void);
float odd_float(void);
size_t odd_size(size_t right); // of a struct
int64_t odd_stride(void);
const tessera_device *some_device(void); // of this machine's CPU

// Strides of [batch, head, token, hdim] or [batch, token, head, hdim], sometimes with gaps; even ones, for mxfp4.
void choose_strides(int64_t heads, int64_t tokens, int64_t inner, int64_t *batch, int64_t *head, int64_t *token);

// Lengths of q, or of k and v: in group mode all, in batch mode effective ones, as a call is given them in three ways.
enum { LENGTHS = 4 }; // sensible calls have LENGTHS - 1 sequences at most
struct side {
    int32_t *starts, *lengths, *cumulative;       // arrays to write
    const void **seqstart, **seqlen, **cu_seqlen; // pointers of a call to set
};
// Sequences have up to `most` tokens, an even number of them where is_even. Returns the longest logical length.
int32_t choose_side(const struct side *side, int32_t batch, int group, int32_t most, int is_even);

// ---- memory: a room for each pointer of args, all in one block

enum { ROOM = 320 << 10, ROOMS = 24, BEFORE = 1024 }; // a sensible tensor has up to 255 KB
void *room(int number);

// Numbers from -1 to 1 in each format; E8M0 from 2^-6 to 2^-2, slopes of alibi from 0.5 down, logarithms of sums about
// 4 and 10.
enum pattern { FP32, FP16, BF16, E4M3, E2M1, E8M0, SLOPES, LOGS_4, LOGS_10, PATTERNS };
void fill_room(int number, enum pattern pattern);

static inline void **pointer_at(void *args, size_t offset) { return (void **)(void *)((char *)args + offset); }
// Another address: NULL, or odd, or that of another tensor, or inside of one.
void *odd_pointer(void);

// The index of a tensor's last element; -1 if it is empty, and a huge number where it would overflow. Strides were
// checked: none is negative.
double last_of(double batches, double heads, double rows, double inner, int64_t batch, int64_t head, int64_t row);
// Whether elements up to the last one lie in the rooms. *comparable becomes 0 where they reach beyond their own room or
// begin inside of one: they may hold any numbers.
int fits(const void *pointer, double last, double bits, int *comparable);

void begin_call(void);                          // keeps what the rooms hold
void allow(const void *pointer, int64_t bytes); // the call may write these
void end_call(int succeeded);                   // fails if anything else was written, and puts back what there was

// Exactly as many bytes as were asked for, so that AddressSanitizer detects an access to the next one.
uint8_t *new_workspace(size_t bytes);
void free_workspace(uint8_t *workspace, size_t bytes); // fails if something behind it was written

// What the library sees of a struct of a given size: its fields as far as it reaches, and defaults, which are there,
// beyond.
void read_struct(void *whole, const void *given, size_t right);

// ---- verdicts

extern struct fuzz_counts { uint64_t calls, launches, rows, refusals; } counts;
_Noreturn void fail(const char *what);
void check_refusal(tessera_status checked); // says a status, and why

// ---- what is done alike with every operation, whose program has `call`, `call_before`, spoil_traits(), spoil_args()

#define FUZZ_DEFINE(op)                                                                                                \
    static void spoil(void) {                                                                                          \
        for (int n = between(1, 3); n > 0; n--) {                                                                      \
            if (chance(3))                                                                                             \
                spoil_traits(&call.traits);                                                                            \
            else                                                                                                       \
                spoil_args(&call.args);                                                                                \
        }                                                                                                              \
        if (chance(20)) call.traits.struct_size = odd_size(sizeof call.traits);                                        \
        if (chance(20)) call.args.struct_size = odd_size(sizeof call.args);                                            \
    }                                                                                                                  \
    /* Asks all functions but the call. Returns whether an instance serves it, with the bytes of its workspace. */     \
    static int ask_all(const tessera_device *device, int sensible, size_t *bytes) {                                    \
        char text[512];                                                                                                \
        const tessera_##op##_instance *instance = NULL;                                                                \
        const tessera_device_facts *const facts = tessera_device_get_facts(device);                                    \
        const tessera_status checked = tessera_##op##_check(&call.traits, &call.args);                                 \
        check_refusal(checked);                                                                                        \
        if (sensible && checked != TESSERA_SUCCESS) fail("a sensible call was refused");                               \
        const tessera_status sized = tessera_##op##_workspace_size(device, &call.traits, &call.args, bytes);           \
        const tessera_status selected = tessera_##op##_select(facts, &call.traits, &call.args, &instance);             \
        tessera_##op##_explain(facts, &call.traits, &call.args,                                                        \
                               chance(2) ? TESSERA_EXPLAIN_REASONS : TESSERA_EXPLAIN_INSTANCES, text,                  \
                               below(sizeof text + 1));                                                                \
        if (selected == TESSERA_SUCCESS)                                                                               \
            tessera_##op##_ck_name(instance, &call.traits, &call.args, text, below(sizeof text + 1));                  \
        if (checked == TESSERA_SUCCESS && sized != selected) fail("workspace_size and select do not agree");           \
        return checked == TESSERA_SUCCESS && sized == TESSERA_SUCCESS;                                                 \
    }                                                                                                                  \
    /* Calls, sometimes with a workspace that must be refused. */                                                      \
    static tessera_status launch(const tessera_device *device, size_t bytes) {                                         \
        uint8_t *const workspace = new_workspace(bytes);                                                               \
        const int wrong = bytes > 0 && chance(10);                                                                     \
        call.args.workspace_ptr = wrong && chance(2) ? (chance(2) ? NULL : workspace + 8) : workspace;                 \
        call.args.workspace_size = wrong ? bytes - 1 : bytes;                                                          \
        const tessera_status status = tessera_##op(device, &call.traits, &call.args, NULL);                            \
        if (wrong && status == TESSERA_SUCCESS) fail("a wrong workspace was accepted");                                \
        free_workspace(workspace, bytes);                                                                              \
        call.args.workspace_ptr = NULL, call.args.workspace_size = 0;                                                  \
        return status;                                                                                                 \
    }

#endif
