// SPDX-License-Identifier: MIT
// Text for a caller's buffer, which may be too small: what does not fit is counted and dropped.
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

void tessera_text_add(struct tessera_text *out, const char *format, ...) {
    if (!out) return;
    const size_t room = out->text && out->used < out->size ? out->size - out->used : 0;
    va_list values;
    va_start(values, format);
    const int added = vsnprintf(room ? out->text + out->used : NULL, room, format, values);
    va_end(values);
    if (added > 0) out->used += (size_t)added;
}
