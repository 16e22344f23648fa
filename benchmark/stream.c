// SPDX-License-Identifier: MIT
// How fast this CPU moves what an operation must: some tensors read, some written, each once in a call.
//
//   benchmark_stream -threads=N -read=BYTES,... -write=BYTES,...
//
// It answers as answer.h says. Nothing is computed; a call goes through the tensors side by side, in the way that was
// the fastest of several tried before: with plain stores or such as pass the caches by, so much of a tensor at a time,
// memory asked for ahead or not, on all threads or on one. Threads wait for each other by spinning, and sleep between
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
enum { MAX_TENSORS = 16, MAX_THREADS = 256, LINE = 64, TRIED_PASSES = 2, FINALISTS = 2, LITTLE = 1 << 20, WRITTEN = 1 };
static const double TRIED_SECONDS = 3e-3;

typedef struct tensor {
    char *memory;
    size_t bytes; // a multiple of LINE
    bool written;
} tensor;

// A way to go through the tensors.
typedef struct way {
    bool passing; // stores that pass the caches by
    size_t step;  // bytes of the largest tensor before it is the next one's turn
    size_t ahead; // memory is asked for so many bytes before it is read; 0: the processor finds out itself
    int threads;
    double milliseconds; // as tried
} way;

typedef void (*mover)(char *at, const char *end, size_t ahead);

typedef struct stream {
    tensor tensors[MAX_TENSORS];
    int tensor_count, threads;
    const way *chosen;
    mover read, write, write_past;
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

// ---- a thread's share of a call

static void move_share(const stream *s, const way *w, int thread) {
    struct {
        char *at, *end;
        size_t step;
        mover move;
    } pieces[MAX_TENSORS];
    size_t steps = 1;
    for (int i = 0; i < s->tensor_count; i++)
        if (s->tensors[i].bytes / (size_t)w->threads / w->step + 1 > steps)
            steps = s->tensors[i].bytes / (size_t)w->threads / w->step + 1;
    for (int i = 0; i < s->tensor_count; i++) {
        const tensor *t = &s->tensors[i];
        const size_t lines = t->bytes / LINE, threads = (size_t)w->threads, n = (size_t)thread;
        pieces[i].at = t->memory + lines * n / threads * LINE;
        pieces[i].end = t->memory + lines * (n + 1) / threads * LINE;
        pieces[i].step = ((size_t)(pieces[i].end - pieces[i].at) / LINE + steps - 1) / steps * LINE;
        pieces[i].move = !t->written ? s->read : w->passing ? s->write_past : s->write;
    }
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < s->tensor_count; i++) {
            char *const to = pieces[i].end - pieces[i].at > (ptrdiff_t)pieces[i].step ? pieces[i].at + pieces[i].step
                                                                                      : pieces[i].end;
            pieces[i].move(pieces[i].at, to, w->ahead);
            pieces[i].at = to;
            more |= to < pieces[i].end;
        }
    }
    if (w->passing) _mm_sfence();
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

static void try_way(stream *s, way *w, int passes) {
    s->chosen = w;
    move_all(s);
    const double begin = now();
    for (int i = 0; i < passes || now() - begin < TRIED_SECONDS; i++) {
        const double start = now();
        move_all(s);
        const double took = (now() - start) * 1e3;
        if (took < w->milliseconds) w->milliseconds = took;
    }
}

static int by_time(const void *a, const void *b) {
    const double x = ((const way *)a)->milliseconds, y = ((const way *)b)->milliseconds;
    return (x > y) - (x < y);
}

static way fastest(stream *s) {
    static const size_t steps[] = {512, 4096}, aheads[] = {0, 2048};
    static way ways[32];
    size_t bytes = 0, count = 0;
    for (int i = 0; i < s->tensor_count; i++) bytes += s->tensors[i].bytes;
    for (int fewer = 0; fewer < 2; fewer++) {
        if (fewer && (s->threads == 1 || bytes > LITTLE)) continue; // one thread may do as well with little
        for (int i = 0; i < 8; i++)
            ways[count++] = (way){.passing = i & 1,
                                  .step = steps[i >> 1 & 1],
                                  .ahead = aheads[i >> 2],
                                  .threads = fewer ? 1 : s->threads,
                                  .milliseconds = 1e30};
    }
    for (size_t i = 0; i < count; i++) try_way(s, &ways[i], TRIED_PASSES);
    qsort(ways, count, sizeof *ways, by_time);
    for (size_t i = 0; i < FINALISTS; i++) try_way(s, &ways[i], 2 * TRIED_PASSES);
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
    s.write = wide ? write_avx512 : write_avx2;
    s.write_past = wide ? write_past_avx512 : write_past_avx2;
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
    snprintf(what, sizeof what, "%s, %zu bytes at a time, %zu ahead, %d threads",
             best.passing ? "past caches" : "plain", best.step, best.ahead, best.threads);
    answer(what, time_awake, &s);
    return 0;
}
#endif
