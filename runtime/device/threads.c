// SPDX-License-Identifier: MIT
// The library's thread pool, or a host's in its place.
//
// One call at a time uses the pool. A call that finds it taken, by another thread or by the body that it is made from,
// runs all its bodies itself: nothing waits for the pool, so nothing can deadlock on it. A thread that wakes too late
// to help is not waited for either.
#define _POSIX_C_SOURCE 200809L // pthread_sigmask
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "callback.h"
#include "device/cpu.h"
#include "internal.h"

static struct {
    atomic_bool taken;
    pthread_mutex_t mutex; // guards the members below, but for `next`
    pthread_cond_t wake, done;
    int started;        // threads that exist
    atomic_int invited; // threads that may still join the call
    atomic_int active;  // threads that work for it
    bool quit;          // the library is being unloaded
    atomic_llong next;  // the index that the next free thread takes
    int64_t count;
    tessera_parallel_body body;
    void *context;
    pthread_t threads[TESSERA_MAX_THREADS];
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static atomic_int wanted;   // tessera_set_num_threads; 0: the default
static atomic_int detected; // the default; 0: not known yet
static struct tessera_callback host_loop;

// Spins for some microseconds until *value is, or is not, zero. Calls often follow one another, and the threads of one
// call end at about the same time; to sleep and be woken takes longer.
static bool soon(atomic_int *value, bool nonzero) {
    for (int i = 0; i < 400; i++) {
        if ((atomic_load(value) != 0) == nonzero) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
    return false;
}

static void run_indices(void) {
    int64_t index;
    while ((index = atomic_fetch_add(&pool.next, 1)) < pool.count) pool.body(pool.context, index);
}

static void *thread_main(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pool.mutex);
    for (;;) {
        while (!pool.invited && !pool.quit) pthread_cond_wait(&pool.wake, &pool.mutex);
        if (pool.quit) break;
        pool.invited--;
        pool.active++;
        pthread_mutex_unlock(&pool.mutex);
        run_indices();
        pthread_mutex_lock(&pool.mutex);
        if (--pool.active == 0) pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.mutex);
        soon(&pool.invited, true);
        pthread_mutex_lock(&pool.mutex);
    }
    pthread_mutex_unlock(&pool.mutex);
    return NULL;
}

// After fork() only the thread that forked exists, so the pool begins anew, whatever the others held.
static void forget_threads(void) {
    const pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pool.mutex = mutex;
    pool.wake = pool.done = condition;
    pool.started = 0;
    atomic_store(&pool.invited, 0);
    atomic_store(&pool.active, 0);
    atomic_store(&pool.taken, false);
    atomic_store(&detected, 0);
}

static void watch_fork(void) { pthread_atfork(NULL, NULL, forget_threads); }

// Brings the threads up to `count`, or as many as the system grants; the mutex is held.
static void start(int count) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pool.started >= count) return;
    pthread_once(&once, watch_fork);
    sigset_t all, before; // the pool's threads block all signals: the host's own threads handle them
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.started < count && pthread_create(&pool.threads[pool.started], NULL, thread_main, NULL) == 0)
        pool.started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Runs at dlclose() or exit(). If a call is still running, the process is ending, and waiting would only delay that.
__attribute__((destructor)) static void stop(void) {
    if (atomic_exchange(&pool.taken, true)) return;
    pthread_mutex_lock(&pool.mutex);
    pool.quit = true;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);
    for (int i = 0; i < pool.started; i++) pthread_join(pool.threads[i], NULL);
    pool.started = 0;
}

static void run_here(int64_t count, tessera_parallel_body body, void *context) {
    for (int64_t i = 0; i < count; i++) body(context, i);
}

static void run_on_pool(int64_t count, tessera_parallel_body body, void *context) {
    const int threads = tessera_num_threads(), helpers = (count < threads ? (int)count : threads) - 1;
    pthread_mutex_lock(&pool.mutex);
    start(helpers);
    pool.body = body;
    pool.context = context;
    pool.count = count;
    atomic_store(&pool.next, 0);
    pool.invited = helpers < pool.started ? helpers : pool.started;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);

    run_indices();

    pthread_mutex_lock(&pool.mutex);
    pool.invited = 0;
    pthread_mutex_unlock(&pool.mutex);
    soon(&pool.active, false);
    pthread_mutex_lock(&pool.mutex);
    while (pool.active) pthread_cond_wait(&pool.done, &pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
}

void tessera_parallel(int64_t count, tessera_parallel_body body, void *context) {
    tessera_any_function loop;
    void *user;
    if (count <= 1) {
        run_here(count, body, context);
    } else if (tessera_callback_get(&host_loop, &loop, &user)) {
        ((tessera_parallel_for)loop)(user, count, body, context);
    } else if (atomic_exchange(&pool.taken, true)) {
        run_here(count, body, context);
    } else {
        run_on_pool(count, body, context);
        atomic_store(&pool.taken, false);
    }
}

void tessera_start_threads(void) {
    tessera_any_function loop;
    void *user;
    if (tessera_callback_get(&host_loop, &loop, &user) || atomic_exchange(&pool.taken, true)) return;
    pthread_mutex_lock(&pool.mutex);
    start(tessera_num_threads() - 1);
    pthread_mutex_unlock(&pool.mutex);
    atomic_store(&pool.taken, false);
}

void tessera_set_parallel_for(tessera_parallel_for loop, void *user) {
    tessera_callback_set(&host_loop, (tessera_any_function)loop, user);
}

// The value of TESSERA_NUM_THREADS; 0 where it is not set or wrong.
static int threads_of_environment(void) {
    const char *const text = getenv("TESSERA_NUM_THREADS");
    if (!text || !*text) return 0;
    char *end;
    const long value = strtol(text, &end, 10);
    if (*end == 0 && value >= 1) return value < TESSERA_MAX_THREADS ? (int)value : TESSERA_MAX_THREADS;
    tessera_log(TESSERA_LOG_WARNING, "TESSERA_NUM_THREADS is \"%s\" and was ignored: a positive number", text);
    return 0;
}

int tessera_num_threads(void) {
    const int set = atomic_load(&wanted);
    if (set) return set;
    int count = atomic_load(&detected);
    if (count) return count;
    count = tessera_cpu_count();
    const int environment = threads_of_environment();
    if (environment && environment < count) count = environment;
    if (count > TESSERA_MAX_THREADS) count = TESSERA_MAX_THREADS;
    atomic_store(&detected, count);
    return count;
}

tessera_status tessera_set_num_threads(int count) {
    if (count < 0 || count > TESSERA_MAX_THREADS)
        return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "the number of threads is %d: 0 (the default) to %d", count,
                            TESSERA_MAX_THREADS);
    atomic_store(&wanted, count);
    return TESSERA_SUCCESS;
}
