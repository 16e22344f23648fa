// SPDX-License-Identifier: MIT
#include "caches.h"

#include <stdlib.h>

enum { KILOBYTE = 1024 };

// ---- one cache: sets whose least recently used line gives way

static bool open_cache(struct sim_cache *cache, uint32_t kilobytes, uint32_t ways, uint32_t line) {
    const uint32_t lines = kilobytes * KILOBYTE / line;
    cache->ways = ways < lines ? ways : lines;
    cache->sets = lines / cache->ways;
    cache->line = calloc(lines, sizeof *cache->line);
    cache->used = calloc(lines, sizeof *cache->used);
    return cache->line && cache->used;
}

static void close_cache(struct sim_cache *cache) {
    free(cache->line);
    free(cache->used);
}

// Looks a line up, and brings it in if it is not there. Returns whether it was.
static bool look_up(struct sim_cache *cache, uint64_t line) {
    const size_t first = line % cache->sets * cache->ways;
    size_t oldest = first;
    for (size_t i = first; i < first + cache->ways; i++) {
        if (cache->line[i] == line + 1) {
            cache->used[i] = ++cache->now;
            return true;
        }
        if (cache->used[i] < cache->used[oldest]) oldest = i;
    }
    cache->line[oldest] = line + 1;
    cache->used[oldest] = ++cache->now;
    return false;
}

// ---- levels

static double cycles_a_byte(const struct sim_parameters *page, uint32_t units, uint32_t gbs) {
    return gbs ? (double)units * page->clock_mhz / 1000 / gbs : 0;
}

bool tessera_sim_caches_open(struct sim_caches *caches, const struct sim_parameters *page,
                             const struct sim_neighbours *neighbours) {
    const uint32_t units = neighbours->units, of_die = (units + page->dies - 1) / page->dies;
    *caches = (struct sim_caches){.page = page, .neighbours = *neighbours};
    caches->cycles_a_byte[TESSERA_SIM_LEVEL_L1] = 1.0 / page->l1_bytes;
    caches->cycles_a_byte[TESSERA_SIM_LEVEL_L2] = (double)of_die / page->l2_bytes;
    if (caches->cycles_a_byte[TESSERA_SIM_LEVEL_L2] < 1.0 / page->l1_bytes)
        caches->cycles_a_byte[TESSERA_SIM_LEVEL_L2] = 1.0 / page->l1_bytes;
    caches->cycles_a_byte[TESSERA_SIM_LEVEL_MALL] = cycles_a_byte(page, units, page->mall_gbs);
    caches->cycles_a_byte[TESSERA_SIM_LEVEL_HBM] = cycles_a_byte(page, units, page->hbm_gbs);
    return open_cache(&caches->scalar, page->scalar_kilobytes, page->scalar_ways, 1u << SIM_SCALAR_SHIFT) &&
           open_cache(&caches->l1, page->l1_kilobytes, page->l1_ways, page->line) &&
           open_cache(&caches->l2, page->l2_kilobytes, page->l2_ways, page->line);
}

void tessera_sim_caches_close(struct sim_caches *caches) {
    close_cache(&caches->l1);
    close_cache(&caches->l2);
    close_cache(&caches->scalar);
}

uint32_t tessera_sim_caches_scalar(struct sim_caches *caches, uint64_t line, bool next) {
    const bool first_hits = look_up(&caches->scalar, line), hits = !next || look_up(&caches->scalar, line + 1);
    return first_hits && hits ? caches->page->scalar_memory : caches->page->scalar_miss;
}

// Of the lines that several units read, each unit is the first to read its part; the others find them in L2.
static bool brought_by_neighbour(uint64_t line, float own) {
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    return (double)(line * odd >> 32) >= (double)own * 0x1p32;
}

static tessera_sim_level find_level(struct sim_caches *caches, uint64_t line, struct sim_access_kind kind) {
    if (look_up(&caches->l1, line) && !kind.store) return TESSERA_SIM_LEVEL_L1;
    if (look_up(&caches->l2, line) || kind.store) return TESSERA_SIM_LEVEL_L2;
    if (brought_by_neighbour(line, kind.own)) return TESSERA_SIM_LEVEL_L2;
    return caches->neighbours.in_mall && caches->page->mall_megabytes ? TESSERA_SIM_LEVEL_MALL : TESSERA_SIM_LEVEL_HBM;
}

static uint32_t latency(const struct sim_parameters *page, tessera_sim_level level) {
    const uint32_t latencies[TESSERA_SIM_LEVEL_COUNT] = {page->l1_latency, page->l2_latency, page->mall_latency,
                                                         page->hbm_latency};
    return latencies[level];
}

// A line keeps each level busy for its bytes, from the one that has it to L2. It arrives when the slowest of them has
// come to it, and its latency has passed.
static uint64_t pass_levels(struct sim_caches *caches, uint64_t start, tessera_sim_level level) {
    double begin = (double)start;
    for (tessera_sim_level i = level; i > TESSERA_SIM_LEVEL_L1; i--) {
        const double turn = caches->free[i] > (double)start ? caches->free[i] : (double)start;
        caches->free[i] = turn + caches->page->line * caches->cycles_a_byte[i];
        if (turn > begin) begin = turn;
    }
    return (uint64_t)begin + latency(caches->page, level);
}

uint64_t tessera_sim_caches_access(struct sim_caches *caches, uint64_t start, const uint64_t *lines, unsigned count,
                                   struct sim_access_kind kind) {
    uint64_t done = start + (count ? 0 : caches->page->l1_latency);
    for (unsigned i = 0; i < count; i++) {
        const tessera_sim_level level = find_level(caches, lines[i], kind);
        const uint64_t arrives = pass_levels(caches, start, level);
        if (!kind.store) caches->bytes[level] += caches->page->line;
        if (arrives > done) done = arrives;
    }
    return done;
}
