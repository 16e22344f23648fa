// SPDX-License-Identifier: MIT
// What programs share that call an operation with random traits and args: choices, memory, verdicts, the loop.
//
//   fuzz_OP [seconds [seed]]        default 20 seconds, seed 1
//   fuzz_OP 0 SEED ITERATION        one iteration again
//
// TESSERA_TEST_DEVICE names devices, with commas between, such as sim:gfx90a,sim:gfx950; else they are this machine's
// CPU with all of its instances, and with those of each target.
//
// With -DTESSERA_LIBFUZZER and clang's -fsanitize=fuzzer the choices come from libFuzzer instead.
#ifndef TESSERA_TEST_FUZZ_H
#define TESSERA_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tessera/operation.h"

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

// The device of an iteration. A GPU has a copy of what a call may touch, and of nothing else.
extern struct fuzz_device {
    tessera_device *device;
    const char *name;
    int is_gpu;
    tessera_fp8_format fp8; // of fp8 where tests have it: OCP's on devices that have none
} on;

// A head dim up to `most` that the device may serve: GPUs do multiples of 8, of 8 bits 16.
int32_t choose_hdim(int32_t most, int bits);
// Strides of [batch, head, token, hdim] or [batch, token, head, hdim], sometimes with gaps; even ones, for mxfp4. On
// GPUs they are multiples of 16.
void choose_strides(int64_t heads, int64_t tokens, int64_t inner, int64_t *batch, int64_t *head, int64_t *token);

// Lengths of q, or of k and v: in group mode all, in batch mode effective ones, as a call is given them in three ways.
enum { LENGTHS = 4 }; // sensible calls have LENGTHS - 1 sequences at most
struct side {
    int32_t *starts, *lengths, *cumulative;       // arrays to write
    const void **seqstart, **seqlen, **cu_seqlen; // pointers of a call to set
};
// Sequences have up to `most` tokens, an even number of them where is_even. Returns the longest logical length.
int32_t choose_side(const struct side *side, int32_t batch, int group, int32_t most, int is_even);

// Set by choose_args() where arrays that a GPU alone reads say what it leaves out: the check, which reads them,
// refuses.
extern int contents_are_wrong;

// ---- memory: a room for each pointer of args, all in one block

enum { ROOM = 320 << 10, ROOMS = 24, BEFORE = 1024 }; // a sensible tensor has up to 255 KB
void *room(int number);
// The same, or on CPUs an address somewhat behind that is aligned to so many bytes alone.
void *odd_room(int number, int bytes);

// Numbers from -1 to 1 in each format; E8M0 from 2^-6 to 2^-2, slopes of alibi from 0.5 down, logarithms of sums about
// 4 and 10.
enum pattern { FP32, FP16, BF16, E4M3, E4M3FNUZ, E2M1, E8M0, SLOPES, LOGS_4, LOGS_10, PATTERNS };
void fill_room(int number, enum pattern pattern);
// Puts NaN or infinities among so many numbers of a tensor in this room. What has a pattern of any bytes stays as it
// is.
void sprinkle(int number, const void *tensor, enum pattern pattern, int32_t numbers);
void forget_room(int number); // the caller has written to it

static inline void **pointer_at(const void *args, size_t offset) {
    return (void **)(uintptr_t)((const char *)args + offset);
}
// Another address: NULL, or odd, or that of another tensor, or inside of one.
void *odd_pointer(void);

// The index of a tensor's last element; -1 if it is empty, and a huge number where it would overflow. Strides were
// checked: none is negative.
double last_of(double batches, double heads, double rows, double inner, int64_t batch, int64_t head, int64_t row);
// Whether elements up to the last one lie in the rooms. *comparable becomes 0 where they reach beyond their own room or
// begin inside of one: they may hold any numbers. The call may touch what has been asked about since begin_call(), and
// nothing else, which AddressSanitizer watches.
int fits(const void *pointer, double last, double bits, int *comparable);

void begin_call(void);                          // keeps what the rooms hold
void allow(const void *pointer, int64_t bytes); // the call may write these
void end_call(int succeeded);                   // fails if anything else was written, and puts back what there was
const void *before_call(const void *pointer);   // what a room held then

void shut_rooms(void); // but for what the call may touch
void open_rooms(void);
// Copies on a GPU of what the call may touch, to which the pointers at these places of args then point.
void lend_rooms(void *args, const size_t *pointers, int count);
void take_back_rooms(void); // waits for the call
// The results are kept and the rooms are as before the call, for another one that must leave the same.
void keep_results(void);
void compare_results(void);

// Exactly as many bytes as were asked for, so that AddressSanitizer detects an access to the next one; on a GPU its
// memory.
uint8_t *new_workspace(size_t bytes);
void free_workspace(uint8_t *workspace, size_t bytes); // fails if something behind it was written

// What the library sees of a struct of a given size: its fields as far as it reaches, and defaults, which are there,
// beyond.
void read_struct(void *whole, const void *given, size_t right);

// ---- verdicts

extern struct fuzz_counts { uint64_t calls, launches, rows, refusals, unserved; } counts;
_Noreturn void fail(const char *what);
// A row of results, with the infinities that it should have in place of NaN: a weight that fp32 takes for 0 makes NaN
// of an infinite value.
const void *with_infinities(tessera_type type, const void *o, const double *want, int32_t count);
void check_refusal(tessera_status checked); // says a status, and why

// Makes a field wrong in a run of those that lie side by side in a struct.
enum field { INTS, FLOATS, STRIDES };
struct run {
    enum field kind;
    size_t first, last; // offsets
};
#define RUN(kind, type, first, last)                                                                                   \
    { kind, offsetof(type, first), offsetof(type, last) }
void spoil_run(void *all, const struct run *run);
// Makes a field of one of the runs wrong, or one of the pointers, or nothing: returns whether it did.
int spoil_one(void *args, const struct run *runs, size_t run_count, const size_t *pointers, uint32_t pointer_count);

// A number that no call may have.
struct wrong {
    int of_traits;
    size_t offset;
    int32_t value;
};
#define WRONG(of_traits, type, field, value)                                                                           \
    { of_traits, offsetof(type, field), value }

// The call of a program, and as it was before: structs may be said to be longer than they are.
#define FUZZ_CALL                                                                                                      \
    static struct {                                                                                                    \
        traits_t traits;                                                                                               \
        uint8_t traits_tail[64];                                                                                       \
        args_t args;                                                                                                   \
        uint8_t args_tail[64];                                                                                         \
    } call, call_before

// ---- what is done alike with every operation, whose program has `call`, `call_before`, `pointers`, `wrongs`,
// spoil_traits(), spoil_args(); the operation's kernel header declares its table

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
    /* A sensible call with one number that none may have. */                                                          \
    static void refuse_wrong(void) {                                                                                   \
        const struct wrong *const wrong = wrongs + below(sizeof wrongs / sizeof *wrongs);                              \
        char *const all = wrong->of_traits ? (char *)&call.traits : (char *)&call.args;                                \
        *(int32_t *)(void *)(all + wrong->offset) = wrong->value;                                                      \
        if (tessera_##op##_check(&call.traits, &call.args) != TESSERA_ERROR_INVALID_ARGUMENT)                          \
            fail("a wrong number was accepted");                                                                       \
    }                                                                                                                  \
    static void refuse_nothing(void) {                                                                                 \
        size_t bytes;                                                                                                  \
        if (tessera_##op##_check(NULL, &call.args) != TESSERA_ERROR_INVALID_ARGUMENT ||                                \
            tessera_##op##_check(&call.traits, NULL) != TESSERA_ERROR_INVALID_ARGUMENT ||                              \
            tessera_##op(on.device, NULL, &call.args, NULL) != TESSERA_ERROR_INVALID_ARGUMENT ||                       \
            tessera_##op(on.device, &call.traits, NULL, NULL) != TESSERA_ERROR_INVALID_ARGUMENT ||                     \
            tessera_##op(NULL, &call.traits, &call.args, NULL) != TESSERA_ERROR_INVALID_ARGUMENT ||                    \
            tessera_##op##_workspace_size(on.device, &call.traits, NULL, &bytes) != TESSERA_ERROR_INVALID_ARGUMENT)    \
            fail("a pointer to nothing was accepted");                                                                 \
    }                                                                                                                  \
    /* An instance of the device that the call must take, if it can. */                                                \
    static void name_instance(void) {                                                                                  \
        const tessera_table *const table = tessera_##op##_get_table();                                                 \
        const tessera_instance *const row = tessera_row(table, below(table->row_count));                               \
        if (tessera_device_get_facts(on.device)->targets >> row->target & 1)                                           \
            call.args.instance = (const tessera_##op##_instance *)(const void *)row;                                   \
    }                                                                                                                  \
    /* Asks all functions but the call. Returns whether an instance serves it, with the bytes of its workspace. */     \
    static int ask_all(int sensible, size_t *bytes) {                                                                  \
        char text[512];                                                                                                \
        const tessera_##op##_instance *instance = NULL;                                                                \
        const tessera_device_facts *const facts = tessera_device_get_facts(on.device);                                 \
        const tessera_status checked = tessera_##op##_check(&call.traits, &call.args);                                 \
        check_refusal(checked);                                                                                        \
        if (sensible && !contents_are_wrong && checked != TESSERA_SUCCESS) fail("a sensible call was refused");        \
        const tessera_status sized = tessera_##op##_workspace_size(on.device, &call.traits, &call.args, bytes);        \
        const tessera_status selected = tessera_##op##_select(facts, &call.traits, &call.args, &instance);             \
        const tessera_status all = tessera_##op##_check_on(on.device, &call.traits, &call.args);                       \
        tessera_##op##_explain(facts, &call.traits, &call.args,                                                        \
                               chance(2) ? TESSERA_EXPLAIN_REASONS : TESSERA_EXPLAIN_INSTANCES, text,                  \
                               below(sizeof text + 1));                                                                \
        if (selected == TESSERA_SUCCESS)                                                                               \
            tessera_##op##_ck_name(instance, &call.traits, &call.args, text, below(sizeof text + 1));                  \
        if (checked == TESSERA_SUCCESS && sized != selected) fail("workspace_size and select do not agree");           \
        if (all > TESSERA_ERROR_NO_INSTANCE) fail("check_on returned another status than a refusal's");                \
        if (all == TESSERA_SUCCESS && (selected != all || (checked != all && !on.is_gpu)))                             \
            fail("check_on allows what check or select does not");                                                     \
        if (chance(16) && all == TESSERA_SUCCESS && checked == all &&                                                  \
            tessera_##op##_prepare(on.device, &call.traits, &call.args) != TESSERA_SUCCESS)                            \
            fail("prepare refuses what check_on does not");                                                            \
        counts.unserved += checked == TESSERA_SUCCESS && all == TESSERA_ERROR_NO_INSTANCE;                             \
        return (checked == TESSERA_SUCCESS || (sensible && contents_are_wrong)) && all == TESSERA_SUCCESS;             \
    }                                                                                                                  \
    static tessera_status launch_once(void *workspace, size_t bytes) {                                                 \
        call.args.workspace_ptr = workspace, call.args.workspace_size = bytes;                                         \
        if (on.is_gpu)                                                                                                 \
            lend_rooms(&call.args, pointers, sizeof pointers / sizeof *pointers);                                      \
        else                                                                                                           \
            shut_rooms();                                                                                              \
        const tessera_status status = tessera_##op(on.device, &call.traits, &call.args, NULL);                         \
        if (on.is_gpu)                                                                                                 \
            take_back_rooms();                                                                                         \
        else                                                                                                           \
            open_rooms();                                                                                              \
        call.args = call_before.args;                                                                                  \
        return status;                                                                                                 \
    }                                                                                                                  \
    /* Calls, sometimes with a workspace that must be refused. */                                                      \
    static tessera_status launch(int sensible, size_t bytes) {                                                         \
        (void)sensible;                                                                                                \
        uint8_t *const workspace = new_workspace(bytes);                                                               \
        const int wrong = bytes > 0 && chance(10), is_elsewhere = wrong && chance(2);                                  \
        const tessera_status status =                                                                                  \
            launch_once(is_elsewhere ? (chance(2) ? NULL : workspace + 8) : workspace, wrong ? bytes - 1 : bytes);     \
        free_workspace(workspace, bytes);                                                                              \
        if (wrong && status != TESSERA_ERROR_WORKSPACE) fail("a wrong workspace was accepted");                        \
        return status;                                                                                                 \
    }                                                                                                                  \
    /* A call that was refused before is refused now, by the same status. */                                           \
    static void launch_refused(void) {                                                                                 \
        const tessera_status expected = tessera_##op##_check_on(on.device, &call.traits, &call.args);                  \
        if (expected == TESSERA_SUCCESS) return; /* contents of arrays, which a GPU does not see */                    \
        shut_rooms();                                                                                                  \
        if (tessera_##op(on.device, &call.traits, &call.args, NULL) != expected)                                       \
            fail("check_on and the call do not agree");                                                                \
        open_rooms();                                                                                                  \
    }

// Of operations whose program has choose_traits(), choose_args(), fill_inputs(), arrays_fit(), all_fits(),
// allow_outputs() and compare(). `start` is launch(), or what calls it.
#define FUZZ_ITERATE(op, start)                                                                                        \
    /* The same with another number of threads. */                                                                     \
    static void launch_again(void) {                                                                                   \
        size_t bytes;                                                                                                  \
        keep_results();                                                                                                \
        tessera_set_num_threads(between(1, 7));                                                                        \
        if (tessera_##op##_workspace_size(on.device, &call.traits, &call.args, &bytes) != TESSERA_SUCCESS)             \
            fail("threads decide whether a call is served");                                                           \
        uint8_t *const workspace = new_workspace(bytes);                                                               \
        if (launch_once(workspace, bytes) != TESSERA_SUCCESS) fail("threads decide whether a call is served");         \
        free_workspace(workspace, bytes);                                                                              \
        compare_results();                                                                                             \
    }                                                                                                                  \
    /* Runs a call that the check allows. Returns whether it ran. */                                                   \
    static int run(int sensible, size_t bytes) {                                                                       \
        traits_t traits = tessera_##op##_traits_init();                                                                \
        args_t args = tessera_##op##_args_init();                                                                      \
        int comparable = sensible;                                                                                     \
        read_struct(&traits, &call.traits, sizeof traits);                                                             \
        read_struct(&args, &call.args, sizeof args);                                                                   \
        if (call.args.struct_size != sizeof args || bytes >= 1 << 28 || !all_fits(&traits, &args, &comparable))        \
            return 0;                                                                                                  \
        if (on.is_gpu && !comparable) return 0;                                                                        \
        const tessera_status status = start(sensible, bytes);                                                          \
        if (status != TESSERA_SUCCESS && status != TESSERA_ERROR_WORKSPACE)                                            \
            fail("check_on said success, the call did not");                                                           \
        if (status != TESSERA_SUCCESS) return 0;                                                                       \
        counts.launches++;                                                                                             \
        allow_outputs(&traits, &args);                                                                                 \
        if (!on.is_gpu && comparable && chance(4)) launch_again(); /* rows that two write are of either */             \
        if (comparable) compare(&traits, &args);                                                                       \
        return 1;                                                                                                      \
    }                                                                                                                  \
    void fuzz_iterate(void) {                                                                                          \
        contents_are_wrong = 0;                                                                                        \
        memset(&call, 0, sizeof call);                                                                                 \
        choose_traits(&call.traits);                                                                                   \
        choose_args(&call.traits, &call.args);                                                                         \
        fill_inputs(&call.traits, &call.args);                                                                         \
        const int sensible = !chance(on.is_gpu ? 12 : 3), wrong = !sensible && chance(6);                              \
        if (chance(4)) name_instance();                                                                                \
        if (wrong)                                                                                                     \
            refuse_wrong();                                                                                            \
        else if (!sensible)                                                                                            \
            spoil();                                                                                                   \
        begin_call();                                                                                                  \
        if (!arrays_fit(&call.traits, &call.args)) return;                                                             \
        call_before = call;                                                                                            \
        size_t bytes = 0;                                                                                              \
        if (chance(200)) refuse_nothing();                                                                             \
        const int served = ask_all(sensible, &bytes);                                                                  \
        const int succeeded = served && run(sensible, bytes);                                                          \
        if (!served) launch_refused();                                                                                 \
        if (memcmp(&call, &call_before, sizeof call) != 0) fail("traits or args were written");                        \
        end_call(succeeded);                                                                                           \
    }

#define FUZZ_PROGRAM(op) FUZZ_DEFINE(op) FUZZ_ITERATE(op, launch)

#endif
