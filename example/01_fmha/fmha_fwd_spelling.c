// SPDX-License-Identifier: MIT
// Reads CK's spellings of masks, biases, scales and initializations.
#include "fmha_fwd_problem.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// Reads `least` to `most` integers separated by commas that make up the whole text. Returns how many, or -1.
static int read_integers(const char *text, int least, int most, int32_t *out) {
    for (int count = 0; count < most; count++) {
        char *end;
        errno = 0;
        long value = strtol(text, &end, 10);
        if (end == text || errno || value < INT32_MIN || value > INT32_MAX) return -1;
        out[count] = (int32_t)value;
        if (*end == '\0') return count + 1 >= least ? count + 1 : -1;
        if (*end != ',') return -1;
        text = end + 1;
    }
    return -1;
}

static int is(const char *text, const char *first, const char *second) {
    return strcmp(text, first) == 0 || strcmp(text, second) == 0;
}

static int starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// "t:l,r[,sink]", "b:l,r[,sink]", "g:y,x"
static int read_window(const char *text, tessera_mask type, fmha_fwd_mask *out) {
    int32_t values[3] = {0, 0, 0};
    if (read_integers(text + 2, 2, type == TESSERA_MASK_GENERIC ? 2 : 3, values) < 0 || values[2] < 0) return -1;
    *out = (fmha_fwd_mask){type, values[0], values[1], values[2]};
    return 0;
}

// "xt:w", "xb:w": xformers' window, of w keys around the diagonal; w <= 0 is causal.
static int read_xformers(const char *text, tessera_mask type, fmha_fwd_mask *out) {
    int32_t window;
    if (read_integers(text + 3, 1, 1, &window) < 0) return -1;
    fmha_fwd_mask causal = {type, -1, 0, 0}, around = {type, window / 2, window - 1 - window / 2, 0};
    *out = window > 0 ? around : causal;
    return 0;
}

int fmha_fwd_read_mask(const char *text, fmha_fwd_mask *out) {
    if (is(text, "0", "n")) return *out = (fmha_fwd_mask){TESSERA_MASK_NONE, -1, -1, 0}, 0;
    if (is(text, "1", "t")) return *out = (fmha_fwd_mask){TESSERA_MASK_TOP_LEFT, -1, 0, 0}, 0;
    if (is(text, "2", "b")) return *out = (fmha_fwd_mask){TESSERA_MASK_BOTTOM_RIGHT, -1, 0, 0}, 0;
    if (starts_with(text, "t:")) return read_window(text, TESSERA_MASK_TOP_LEFT, out);
    if (starts_with(text, "b:")) return read_window(text, TESSERA_MASK_BOTTOM_RIGHT, out);
    if (starts_with(text, "g:")) return read_window(text, TESSERA_MASK_GENERIC, out);
    if (starts_with(text, "xt:")) return read_xformers(text, TESSERA_MASK_TOP_LEFT, out);
    if (starts_with(text, "xb:")) return read_xformers(text, TESSERA_MASK_BOTTOM_RIGHT, out);
    return -1;
}

int fmha_fwd_read_bias(const char *text, fmha_fwd_bias *out) {
    static const struct {
        const char *name;
        tessera_bias type;
        int32_t ranks;
    } names[] = {{"n", TESSERA_BIAS_NONE, 0},        {"0", TESSERA_BIAS_NONE, 0},
                 {"1", TESSERA_BIAS_ELEMENTWISE, 0}, {"2", TESSERA_BIAS_ALIBI, 0},
                 {"e", TESSERA_BIAS_ELEMENTWISE, 3}, {"elementwise", TESSERA_BIAS_ELEMENTWISE, 3},
                 {"a", TESSERA_BIAS_ALIBI, 2},       {"alibi", TESSERA_BIAS_ALIBI, 2}};
    size_t length = strcspn(text, ":");
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (strlen(names[n].name) != length || strncmp(text, names[n].name, length) != 0) continue;
        int32_t rank = 0;
        if (text[length] == ':' && (!names[n].ranks || read_integers(text + length + 1, 1, 1, &rank) < 0)) return -1;
        if (rank < 0 || rank > names[n].ranks - (names[n].ranks > 0)) return -1;
        *out = (fmha_fwd_bias){names[n].type, rank};
        return 0;
    }
    return -1;
}

int fmha_fwd_read_qscale(const char *text, tessera_qscale *out) {
    static const char *const names[TESSERA_QSCALE_COUNT][2] = {{"n", "0"},    {"pt", "1"}, {"bs", "2"},
                                                               {"kvbs", "3"}, {"mx", "4"}, {"th", "5"}};
    for (int n = 0; n < TESSERA_QSCALE_COUNT; n++)
        if (is(text, names[n][0], names[n][1])) return *out = (tessera_qscale)n, 0;
    return -1;
}

int fmha_fwd_read_init(const char *text, fmha_fwd_init *out) {
    static const struct {
        const char *name, *alias;
        fmha_fwd_init init;
    } names[] = {{"ui", "0", INIT_UNIFORM_INTEGER},
                 {"ni", "ni", INIT_NORMAL_INTEGER},
                 {"uf", "1", INIT_UNIFORM},
                 {"nf", "nf", INIT_NORMAL},
                 {"tf", "2", INIT_TRIG},
                 {"3", "uf:q", INIT_RANGE}};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (is(text, names[n].name, names[n].alias)) return *out = names[n].init, 0;
    return -1;
}
