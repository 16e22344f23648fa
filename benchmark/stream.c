// SPDX-License-Identifier: MIT
// How fast this CPU moves what an operation must: some tensors read, some written, each once in a call.
//
//   benchmark_stream -threads=N -read=BYTES,... -write=BYTES,...
//
// It answers as answer.h says. Nothing is computed; a call goes through the tensors side by side, in the way that was
// the fastest of several tried before: with plain stores, with string instructions or with stores that pass the caches
// by; so much of a tensor at a time; at one place of each tensor or at several; memory asked for ahead or not; on all
// threads or on one. Threads wait for each other by spinning, and sleep between
// the answers. What stays in a cache from call to call is found there, as an operation that is called again finds it.
#define _GNU_SOURCE

#include "answer.h"

#if !defined(__x86_64__)
int main(void) {
    fprintf(stderr, "benchmark_stream: only for x86-64\n");
    return 1;
}
#else

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define UNROLL _Pragma("GCC unroll 8")
enum {
    MAX_TENSORS = 16,
    MAX_THREADS = 256,
    MAX_PLACES = 4,
    LINE = 64,
    TRIED_PASSES = 3,
    FINALISTS = 2,
    LITTLE = 1 << 20,
    WRITTEN = 1
};
static const double TRIED_SECONDS = 3e-3, PASS_MS = 0.02;

typedef struct tensor {
    char *memory;
    size_t bytes; // a multiple of LINE
    bool written;
} tensor;

typedef enum store { PLAIN, STRING, PAST, STORES } store;
static const char *const store_names[STORES] = {"plain stores", "string stores", "stores past caches"};

// A way to go through the tensors.
typedef struct way {
    store store;
    size_t step;  // bytes of the largest tensor before it is the next one's turn
    int places;   // that a thread is at in each tensor, in turns too
    size_t ahead; // memory is asked for so many bytes before it is read; 0: the processor finds out itself
    int threads;
    double milliseconds; // as tried
} way;

typedef void (*mover)(char *at, const char *end, size_t ahead);

typedef struct stream {
    tensor tensors[MAX_TENSORS];
    int tensor_count, threads;
    const way *chosen;
    mover read, write[STORES];
    pthread_barrier_t awake;
    atomic_long call, done; // numbers of calls: begun, and of threads that ended theirs
    atomic_bool asleep;
} stream;

// ---- a piece of one tensor: [at, end), in whole lines

#define MOVERS(name, target_, vector, load, store, past, value)                                                        \
    __attribute__((target(target_))) static void read_##name(char *at, const char *end, size_t ahead) {                \
        for (; at + 8 * sizeof(vector) <= end; at += 8 * sizeof(vector)) UNROLL                                        \
        for (size_t i = 0; i < 8; i++) {                                                                               \
            if (ahead && i * sizeof(vector) % LINE == 0) _mm_prefetch(at + ahead + i * sizeof(vector), _MM_HINT_T0);   \
            __asm__ volatile("" : : "v"(load((const void *)(at + i * sizeof(vector)))));                               \
        }                                                                                                              \
        for (; at < end; at += sizeof(vector)) __asm__ volatile("" : : "v"(load((const void *)at)));                   \
    }                                                                                                                  \
    __attribute__((target(target_))) static void write_##name(char *at, const char *end, size_t ahead) {               \
        (void)ahead;                                                                                                   \
        const vector one = value;                                                                                      \
        for (; at + 8 * sizeof(vector) <= end; at += 8 * sizeof(vector)) UNROLL                                        \
        for (size_t i = 0; i < 8; i++) store((void *)(at + i * sizeof(vector)), one);                                  \
        for (; at < end; at += sizeof(vector)) store((void *)at, one);                                                 \
    }                                                                                                                  \
    __attribute__((target(target_))) static void write_past_##name(char *at, const char *end, size_t ahead) {          \
        (void)ahead;                                                                                                   \
        const vector one = value;                                                                                      \
        for (; at + 8 * sizeof(vector) <= end; at += 8 * sizeof(vector)) UNROLL                                        \
        for (size_t i = 0; i < 8; i++) past((void *)(at + i * sizeof(vector)), one);                                   \
        for (; at < end; at += sizeof(vector)) past((void *)at, one);                                                  \
    }

MOVERS(avx2, "avx2", __m256i, _mm256_load_si256, _mm256_store_si256, _mm256_stream_si256, _mm256_set1_epi8(WRITTEN))
MOVERS(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_store_si512, _mm512_stream_si512,
       _mm512_set1_epi32(WRITTEN * 0x01010101))

static void write_string(char *at, const char *end, size_t ahead) {
    size_t bytes = (size_t)(end - at);
    (void)ahead;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(WRITTEN) : "memory");
}

// ---- a thread's share of a call

// What a thread moves of a tensor from one place on.
typedef struct piece {
    char *at, *end;
    size_t step;
    mover move;
} piece;

static piece piece_of(const stream *s, const tensor *t, const way *w, size_t number) {
    const size_t lines = t->bytes / LINE, count = (size_t)w->threads * (size_t)w->places;
    char *const at = t->memory + lines * number / count * LINE, *const end =
                                                                    t->memory + lines * (number + 1) / count * LINE;
    return (piece){at, end, 0, t->written ? s->write[w->store] : s->read};
}

static void move_share(const stream *s, const way *w, int thread) {
    piece pieces[MAX_TENSORS * MAX_PLACES];
    size_t count = 0, steps = 1;
    for (int place = 0; place < w->places; place++)
        for (int i = 0; i < s->tensor_count; i++)
            pieces[count++] = piece_of(s, &s->tensors[i], w, (size_t)thread * (size_t)w->places + (size_t)place);
    for (size_t i = 0; i < count; i++) {
        const size_t needed = (size_t)(pieces[i].end - pieces[i].at) / w->step + 1;
        if (needed > steps) steps = needed;
    }
    for (size_t i = 0; i < count; i++)
        pieces[i].step = ((size_t)(pieces[i].end - pieces[i].at) / LINE + steps - 1) / steps * LINE;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            piece *const p = &pieces[i];
            char *const to = p->end - p->at > (ptrdiff_t)p->step ? p->at + p->step : p->end;
            p->move(p->at, to, w->ahead);
            p->at = to;
            more |= to < p->end;
        }
    }
    if (w->store == PAST) _mm_sfence();
}

// ---- threads: number 0 is the caller

// Gives a thread a processor of its own where there are enough: two that spin on one would wait for each other for
// long.
static void settle(int number, int threads) {
    cpu_set_t allowed, own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < threads) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && number-- == 0) CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
}

typedef struct worker {
    pthread_t thread;
    stream *stream;
    int number;
} worker;

static void *work(void *argument) {
    const worker *w = argument;
    stream *s = w->stream;
    settle(w->number, s->threads);
    for (long call = 0;;) {
        pthread_barrier_wait(&s->awake);
        while (!atomic_load(&s->asleep)) {
            const long begun = atomic_load_explicit(&s->call, memory_order_acquire);
            if (begun == call) {
                _mm_pause();
                continue;
            }
            call = begun;
            move_share(s, s->chosen, w->number);
            atomic_fetch_add_explicit(&s->done, 1, memory_order_release);
        }
        pthread_barrier_wait(&s->awake);
    }
    return NULL;
}

static void wake(stream *s) {
    atomic_store(&s->asleep, false);
    pthread_barrier_wait(&s->awake);
}

static void sleep_again(stream *s) {
    atomic_store(&s->asleep, true);
    pthread_barrier_wait(&s->awake);
}

static void move_all(void *context) { // on all threads or on one
    stream *s = context;
    const way *w = s->chosen;
    if (w->threads > 1) {
        atomic_store_explicit(&s->done, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->call, 1, memory_order_release);
    }
    move_share(s, w, 0);
    while (w->threads > 1 && atomic_load_explicit(&s->done, memory_order_acquire) < w->threads - 1) _mm_pause();
}

// ---- which way is the fastest

static double pass(stream *s, int calls) {
    const double begin = now();
    for (int i = 0; i < calls; i++) move_all(s);
    return (now() - begin) / calls * 1e3;
}

// Keeps the time of the best pass, which is long enough for the clock. A way that begins far slower than the best so
// far is not followed.
static void try_way(stream *s, way *w, int passes, double *best) {
    s->chosen = w;
    const double begin = now(), first = pass(s, 1);
    const int calls = first > PASS_MS ? 1 : (int)(PASS_MS / first) + 1;
    for (int i = 0; i < passes || now() - begin < TRIED_SECONDS; i++) {
        const double took = i == 0 && calls == 1 ? first : pass(s, calls);
        if (took < w->milliseconds) w->milliseconds = took;
        if (took > 1.5 * *best) break;
    }
    if (w->milliseconds < *best) *best = w->milliseconds;
}

static int by_time(const void *a, const void *b) {
    const double x = ((const way *)a)->milliseconds, y = ((const way *)b)->milliseconds;
    return (x > y) - (x < y);
}

// All ways with so many threads; returns their number.
static size_t add_ways(way *ways, int threads) {
    static const size_t steps[] = {512, 4096}, aheads[] = {0, 2048};
    size_t count = 0;
    for (int i = 0; i < STORES * 8; i++)
        ways[count++] = (way){.store = (store)(i / 8),
                              .step = steps[i & 1],
                              .places = i & 2 ? MAX_PLACES : 1,
                              .ahead = aheads[i / 4 & 1],
                              .threads = threads,
                              .milliseconds = 1e30};
    return count;
}

static way fastest(stream *s) {
    static way ways[2 * STORES * 8];
    size_t bytes = 0, count = add_ways(ways, s->threads);
    double best = 1e30;
    for (int i = 0; i < s->tensor_count; i++) bytes += s->tensors[i].bytes;
    if (s->threads > 1 && bytes <= LITTLE) count += add_ways(ways + count, 1); // one thread may do as well with little
    for (size_t i = 0; i < count; i++) try_way(s, &ways[i], TRIED_PASSES, &best);
    qsort(ways, count, sizeof *ways, by_time);
    for (size_t i = 0; i < FINALISTS; i++) try_way(s, &ways[i], 2 * TRIED_PASSES, &best);
    qsort(ways, FINALISTS, sizeof *ways, by_time);
    return ways[0];
}

// Whether all has been written, or the program ends.
static void check_written(const stream *s) {
    for (int i = 0; i < s->tensor_count; i++)
        if (s->tensors[i].written && memchr(s->tensors[i].memory, !WRITTEN, s->tensors[i].bytes)) {
            fprintf(stderr, "benchmark_stream: tensor %d has not been written whole\n", i);
            exit(3);
        }
}

// ---- the program

static void add_tensors(stream *s, const char *words, bool written) {
    for (char *end; *words; words = *end ? end + 1 : end) {
        const long long bytes = strtoll(words, &end, 10);
        if (bytes < 1 || end == words || (*end && *end != ',') || s->tensor_count == MAX_TENSORS) {
            fprintf(stderr, "benchmark_stream: '%s' is no list of up to %d numbers of bytes\n", words, MAX_TENSORS);
            exit(1);
        }
        const size_t whole = ((size_t)bytes + LINE - 1) / LINE * LINE;
        s->tensors[s->tensor_count++] = (tensor){memory_of(whole, !WRITTEN), whole, written};
    }
}

static double time_awake(void *context, long count) {
    wake(context);
    const double each = milliseconds(move_all, context, count);
    sleep_again(context);
    return each;
}

int main(int argc, char **argv) {
    static stream s;
    static worker workers[MAX_THREADS];
    s.threads = (int)number_of(argc, argv, "threads", 1);
    add_tensors(&s, word_of(argc, argv, "read", ""), false);
    add_tensors(&s, word_of(argc, argv, "write", ""), true);
    __builtin_cpu_init();
    const bool wide = __builtin_cpu_supports("avx512f");
    if (s.threads < 1 || s.threads > MAX_THREADS || s.tensor_count == 0 || !__builtin_cpu_supports("avx2")) {
        fprintf(stderr, "usage, with AVX2: benchmark_stream -threads=N -read=BYTES,... -write=BYTES,...\n");
        return 1;
    }
    s.read = wide ? read_avx512 : read_avx2;
    s.write[PLAIN] = wide ? write_avx512 : write_avx2;
    s.write[STRING] = write_string;
    s.write[PAST] = wide ? write_past_avx512 : write_past_avx2;
    pthread_barrier_init(&s.awake, NULL, (unsigned)s.threads);
    for (int i = 1; i < s.threads; i++) {
        workers[i] = (worker){.stream = &s, .number = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "benchmark_stream: thread %d of %d cannot start\n", i, s.threads);
            return 4;
        }
    }
    settle(0, s.threads);
    wake(&s);
    const way best = fastest(&s);
    s.chosen = &best;
    sleep_again(&s);
    check_written(&s);
    char what[128];
    snprintf(what, sizeof what, "%s, %zu bytes at a time at %d places, %zu ahead, %d threads", store_names[best.store],
             best.step, best.places, best.ahead, best.threads);
    answer(what, time_awake, &s);
    return 0;
}
#endif
