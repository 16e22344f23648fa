// SPDX-License-Identifier: MIT
// Services of the host for kernels: printf, and memory for their malloc. A wave puts a packet into a buffer that all
// waves share, rings the doorbell, and waits until the packet's ready flag is cleared; the simulator calls serve() when
// the doorbell rings. The layout is that of the device library's hostcall (ROCm-Device-Libs,
// ockl/src/hostcall_impl.cl).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { PACKETS = 64, LANES = 64, WORDS = 8, READY = 1 };
enum service { FUNCTION_CALL = 1, PRINTF = 2, DEVICE_MEMORY = 3 };

struct packet_header {
    uint64_t next; // tagged index
    uint64_t active;
    uint32_t service, control;
};

struct payload {
    uint64_t words[LANES][WORDS];
};

// amd_signal_t: kernels add to its value and, because there is a mailbox, send an interrupt.
struct signal {
    int64_t kind, value;
    uint64_t mailbox;
    uint32_t event, reserved0;
    uint64_t times[2], queue, reserved1;
};

// A message of printf, whose pieces are collected until the last one has come.
struct message {
    bool live;
    uint64_t *words;
    size_t count;
};

struct hip_hostcall {
    struct {
        uint64_t headers, payloads, doorbell;
        uint64_t free_stack, ready_stack; // tagged indices of packets
        uint64_t index_mask;
    } shared;
    struct signal signal;
    uint64_t mailbox;
    struct packet_header headers[PACKETS];
    struct payload payloads[PACKETS];
    // Kernels may touch the members above this one.
    struct hip_device *device;
    struct message *messages;
    size_t message_count;
};

// ---- printf: a word of flags, the format, then a word for each argument; strings are stored in line, padded to words

struct reader {
    const uint64_t *at, *end;
};

static uint64_t take(struct reader *reader) { return reader->at < reader->end ? *reader->at++ : 0; }

// Reads a string of the message; "" if it has no end.
static const char *take_string(struct reader *reader) {
    const char *text = (const char *)reader->at;
    const size_t room = (size_t)(reader->end - reader->at) * sizeof *reader->at, length = strnlen(text, room);
    if (length == room) {
        reader->at = reader->end;
        return "";
    }
    reader->at += length / sizeof *reader->at + 1;
    return text;
}

// Prints one conversion, such as "%-5.2f" or "%*d"; the stars come before the value.
static void print_conversion(FILE *stream, const char *spec, struct reader *reader) {
    int stars[2] = {0};
    int star_count = 0;
    for (const char *c = spec; *c; c++)
        if (*c == '*' && star_count < 2) stars[star_count++] = (int)take(reader);
    const char kind = spec[strlen(spec) - 1];
#define PRINT(value)                                                                                                   \
    (star_count == 0   ? fprintf(stream, spec, value)                                                                  \
     : star_count == 1 ? fprintf(stream, spec, stars[0], value)                                                        \
                       : fprintf(stream, spec, stars[0], stars[1], value))
    if (kind == 's') {
        PRINT(take_string(reader));
        return;
    }
    const uint64_t word = take(reader);
    double real;
    memcpy(&real, &word, sizeof real);
    if (strchr("fFeEgGaA", kind))
        PRINT(real);
    else if (kind == 'p')
        PRINT((void *)word);
    else if (kind != 'n')
        PRINT(word);
#undef PRINT
}

static void print_message(const struct message *message) {
    enum { TO_STDERR = 1, LONGEST_SPEC = 64 };
    struct reader reader = {message->words, message->words + message->count};
    FILE *stream = take(&reader) & TO_STDERR ? stderr : stdout;
    for (const char *at = take_string(&reader); *at;) {
        const size_t plain = strcspn(at, "%");
        fwrite(at, 1, plain, stream);
        at += plain;
        if (!*at) break;
        const size_t length = at[1] == '%' ? 2 : strcspn(at, "diouxXfFeEgGaAcspn") + 1;
        char spec[LONGEST_SPEC];
        if (length >= sizeof spec || length > strlen(at)) break;
        snprintf(spec, sizeof spec, "%.*s", (int)length, at);
        if (at[1] == '%')
            fputc('%', stream);
        else
            print_conversion(stream, spec, &reader);
        at += length;
    }
}

// ---- messages: the first word of each piece names its message, and says whether it begins or ends it

static struct message *find_message(struct hip_hostcall *hostcall, bool begin, uint64_t *id) {
    if (!begin) return *id < hostcall->message_count && hostcall->messages[*id].live ? &hostcall->messages[*id] : NULL;
    size_t slot = 0;
    while (slot < hostcall->message_count && hostcall->messages[slot].live) slot++;
    if (slot == hostcall->message_count) {
        struct message *messages = realloc(hostcall->messages, (slot + 1) * sizeof *messages);
        if (!messages) return NULL;
        hostcall->messages = messages;
        hostcall->message_count++;
    }
    hostcall->messages[slot] = (struct message){.live = true};
    *id = slot;
    return &hostcall->messages[slot];
}

static void take_piece(struct hip_hostcall *hostcall, uint64_t *words) {
    enum { BEGIN = 1, END = 2, LENGTH_SHIFT = 5, LENGTH_MASK = 7, ID_SHIFT = 8 };
    const uint64_t descriptor = words[0];
    const size_t length = descriptor >> LENGTH_SHIFT & LENGTH_MASK;
    uint64_t id = descriptor >> ID_SHIFT;
    struct message *message = find_message(hostcall, descriptor & BEGIN, &id);
    words[0] = id << ID_SHIFT | (descriptor & ((1u << ID_SHIFT) - 1) & ~(uint64_t)BEGIN);
    if (!message) return;
    uint64_t *grown = realloc(message->words, (message->count + length + 1) * sizeof *grown);
    if (grown) {
        memcpy(grown + message->count, words + 1, length * sizeof *grown);
        message->words = grown;
        message->count += length;
    }
    if (!(descriptor & END)) return;
    print_message(message);
    free(message->words);
    *message = (struct message){.live = false};
    words[0] = 0;
}

// ---- packets

// Slabs for the kernels' malloc(), which finds the start of a slab by clearing low bits of an address in it.
static void *slab_malloc(tessera_sim *sim, size_t bytes) {
    enum { SLAB = 2 << 20 };
    void *slab = bytes && bytes <= SIZE_MAX - SLAB ? aligned_alloc(SLAB, (bytes + SLAB - 1) / SLAB * SLAB) : NULL;
    if (slab && tessera_sim_register(sim, slab, bytes) == TESSERA_SUCCESS) return slab;
    free(slab);
    return NULL; // tells malloc() that there is no memory
}

static void serve_memory(struct hip_hostcall *hostcall, uint64_t *words) {
    void *freed = (void *)words[0];
    if (!freed)
        words[0] = (uintptr_t)slab_malloc(hostcall->device->sim, words[1]);
    else if (tessera_sim_unregister(hostcall->device->sim, freed) == TESSERA_SUCCESS)
        free(freed);
}

static void serve_packet(struct hip_hostcall *hostcall, const struct packet_header *header, struct payload *payload) {
    for (int lane = 0; lane < LANES; lane++) {
        if (!(header->active >> lane & 1)) continue;
        uint64_t *words = payload->words[lane];
        if (header->service == PRINTF)
            take_piece(hostcall, words);
        else if (header->service == DEVICE_MEMORY)
            serve_memory(hostcall, words);
        else
            tessera_hip_say("a kernel calls the host's service %u: not in this stand-in", header->service);
    }
}

static void serve(void *user) {
    struct hip_hostcall *hostcall = user;
    uint64_t at = hostcall->shared.ready_stack;
    hostcall->shared.ready_stack = 0;
    while (at) {
        const size_t index = at & hostcall->shared.index_mask;
        struct packet_header *header = &hostcall->headers[index];
        at = header->next;
        serve_packet(hostcall, header, &hostcall->payloads[index]);
        header->control &= ~(uint32_t)READY;
    }
}

// ---- opening

static bool wants_hostcall(const tessera_sim_kernel_info *info) {
    for (size_t i = 0; i < info->argument_count; i++)
        if (strcmp(info->arguments[i].value_kind, "hidden_hostcall_buffer") == 0) return true;
    return false;
}

hipError_t tessera_hip_open_hostcall(struct hip_device *device, const tessera_sim_kernel_info *info) {
    if (device->hostcall || !wants_hostcall(info)) return hipSuccess;
    struct hip_hostcall *hostcall = calloc(1, sizeof *hostcall);
    if (!hostcall) return hipErrorOutOfMemory;
    hostcall->device = device;
    hostcall->shared.headers = (uintptr_t)hostcall->headers;
    hostcall->shared.payloads = (uintptr_t)hostcall->payloads;
    hostcall->shared.doorbell = (uintptr_t)&hostcall->signal;
    hostcall->shared.index_mask = PACKETS - 1;
    hostcall->signal.mailbox = (uintptr_t)&hostcall->mailbox;
    // Index 0 has a tag, so that no pointer to a packet is 0.
    for (size_t i = 1; i < PACKETS; i++) hostcall->headers[i].next = i == 1 ? PACKETS : i - 1;
    hostcall->shared.free_stack = PACKETS - 1;
    if (tessera_sim_register(device->sim, hostcall, offsetof(struct hip_hostcall, device)) != TESSERA_SUCCESS) {
        free(hostcall);
        return hipErrorOutOfMemory;
    }
    device->hostcall = hostcall;
    tessera_sim_set_hostcall(device->sim, hostcall, serve, hostcall);
    return hipSuccess;
}
