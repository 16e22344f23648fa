// SPDX-License-Identifier: MIT
#include "observer.h"

#include <stdlib.h>

#include "launch.h"

// Appends the observer's hook, if it has one, to its list in `watch`.
#define ADD(hook)                                                                                                      \
    do {                                                                                                               \
        unsigned count = 0;                                                                                            \
        while (watch->hook[count]) count++;                                                                            \
        watch->hook[count] = observer->hook;                                                                           \
    } while (0)

static void add_observer(struct sim_watch *watch, const struct sim_observer *observer) {
    unsigned count = 0;
    while (watch->observers[count]) count++;
    if (count == SIM_MOST_OBSERVERS || (observer->execute && watch->execute) || (observer->access && watch->access))
        abort(); // the GPU's list of observers is a constant that fits
    watch->observers[count] = observer;
    if (observer->execute) watch->execute = observer->execute;
    if (observer->access) watch->access = observer->access;
    ADD(next);
    ADD(issue);
    ADD(executed);
    ADD(passed);
}

void tessera_sim_find_watch(struct sim_launch *launch) {
    struct sim_watch *watch = &launch->watch;
    for (const struct sim_observer *const *observer = launch->sim->observers; *observer; observer++)
        if (!(*observer)->wanted || (*observer)->wanted(launch)) add_observer(watch, *observer);
    watch->instructions = watch->next[0] || watch->issue[0] || watch->execute || watch->executed[0] || watch->passed[0];
}

void tessera_sim_execute(struct sim_wave *wave, const struct sim_code *code) {
    const struct sim_watch *watch = &wave->group->launch->watch;
    (watch->execute ? watch->execute : code->execute)(wave, code);
    for (const sim_instruction_hook *executed = watch->executed; *executed; executed++) (*executed)(wave, code);
}
