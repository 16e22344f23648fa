// SPDX-License-Identifier: MIT
// The format is section 6.2 of the DWARF standard, versions 2 to 5. Whatever the bytes are, nothing outside of the
// sections is read.
#include "line_table.h"

#include <stdlib.h>
#include <string.h>

// ---- bytes

struct cursor {
    const uint8_t *at, *end;
    bool bad; // something lies outside; what is read then is 0
};

static const uint8_t *take(struct cursor *from, uint64_t bytes) {
    if (bytes > (size_t)(from->end - from->at)) {
        from->bad = true;
        from->at = from->end;
        return NULL;
    }
    const uint8_t *taken = from->at;
    from->at += bytes;
    return taken;
}

static uint64_t take_integer(struct cursor *from, unsigned bytes) {
    uint64_t value = 0;
    const uint8_t *taken = take(from, bytes);
    if (taken) memcpy(&value, taken, bytes); // little-endian, as the machines that this runs on
    return value;
}

static uint64_t take_leb(struct cursor *from, bool is_signed) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)take_integer(from, 1);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && shift < 64 && byte & 0x40) value |= UINT64_MAX << shift;
    return value;
}

static const char *take_string(struct cursor *from) {
    const size_t left = (size_t)(from->end - from->at);
    const uint8_t *nul = left ? memchr(from->at, 0, left) : NULL;
    const uint8_t *text = take(from, nul ? (uint64_t)(nul - from->at) + 1 : (uint64_t)left + 1);
    return text ? (const char *)text : "";
}

static const char *string_at(struct cursor *reader, const struct sim_section *section, uint64_t offset) {
    struct cursor from = {section->bytes, section->bytes + section->size, false};
    take(&from, offset);
    const char *text = take_string(&from);
    reader->bad |= from.bad;
    return text;
}

// ---- a unit

enum { MOST_PATHS = 1 << 14, LONGEST_PATH = 4096 };

struct unit {
    struct cursor from; // its header, then its program
    const struct sim_line_sections *sections;
    unsigned version, offset_bytes;
    uint8_t least_step, line_range, first_special;
    int8_t line_base;
    const uint8_t *operands; // how many each standard opcode takes, from opcode 1 on
    const char **folders;
    size_t folder_count;
    uint32_t *files; // indices of the table's
    size_t file_count;
    const char *wrong; // NULL: nothing
};

static const char no_memory[] = "no memory";

// Returns `items` with room for one more than `count`; NULL where there is no memory, and `items` stay.
static void *grow(struct unit *unit, void *items, size_t count, size_t size) {
    if (count & (count - 1)) return items; // room doubles at powers of two
    if (count >= MOST_PATHS) {
        unit->wrong = "it has too many files";
        return NULL;
    }
    void *grown = realloc(items, (count ? 2 * count : 1) * size);
    if (!grown) unit->wrong = no_memory;
    return grown;
}

static void add_folder(struct unit *unit, const char *path) {
    const char **grown = grow(unit, unit->folders, unit->folder_count, sizeof *unit->folders);
    if (!grown) return;
    unit->folders = grown;
    unit->folders[unit->folder_count++] = path;
}

// A path with its folder and, where that is relative too, the folder of the compilation before it.
static char *join_path(struct unit *unit, const char *name, uint64_t folder) {
    const char *parts[3] = {"", "", name};
    if (*name != '/' && folder < unit->folder_count) parts[1] = unit->folders[folder];
    if (*name != '/' && *parts[1] != '/' && folder != 0 && unit->folder_count) parts[0] = unit->folders[0];
    const size_t size = strlen(parts[0]) + strlen(parts[1]) + strlen(name) + 3;
    char *path = size > LONGEST_PATH ? NULL : malloc(size);
    unit->wrong = path ? unit->wrong : size > LONGEST_PATH ? "it has a path that is too long" : no_memory;
    if (!path) return NULL;
    *path = 0;
    for (int i = 0; i < 3; i++) {
        if (*path && *parts[i] && path[strlen(path) - 1] != '/') strcat(path, "/");
        strcat(path, parts[i]);
    }
    return path;
}

// Finds a path in the table, or adds it.
static uint32_t keep_path(struct unit *unit, struct sim_line_table *table, char *path) {
    for (size_t i = 0; path && i < table->file_count; i++)
        if (strcmp(table->files[i], path) == 0) {
            free(path);
            return (uint32_t)i;
        }
    char **grown = path ? grow(unit, table->files, table->file_count, sizeof *table->files) : NULL;
    if (!grown) {
        free(path);
        return 0;
    }
    table->files = grown;
    table->files[table->file_count] = path;
    return (uint32_t)table->file_count++;
}

static void add_file(struct unit *unit, struct sim_line_table *table, const char *name, uint64_t folder) {
    uint32_t *grown = grow(unit, unit->files, unit->file_count, sizeof *unit->files);
    if (!grown) return;
    unit->files = grown;
    unit->files[unit->file_count++] = keep_path(unit, table, join_path(unit, name, folder));
}

// ---- lists of folders and files

// Versions 2 to 4: folder 0 is that of the compilation, which stands elsewhere; files count from 1.
static void read_old_file(struct unit *unit, struct sim_line_table *table, const char *name) {
    const uint64_t folder = take_leb(&unit->from, false);
    take_leb(&unit->from, false); // time
    take_leb(&unit->from, false); // length
    add_file(unit, table, name, folder);
}

static void read_old_lists(struct unit *unit, struct sim_line_table *table) {
    add_folder(unit, "");
    for (const char *path; *(path = take_string(&unit->from)) && !unit->wrong;) add_folder(unit, path);
    add_file(unit, table, "", 0);
    for (const char *name; *(name = take_string(&unit->from)) && !unit->wrong;) read_old_file(unit, table, name);
}

enum { CONTENT_PATH = 1, CONTENT_FOLDER = 2 };

// A value of an entry: a text, or a number, or something of no use.
struct value {
    const char *text;
    uint64_t number;
};

static struct value read_value(struct unit *unit, uint64_t form) {
    struct cursor *from = &unit->from;
    switch (form) {
    case 0x08: // DW_FORM_string
        return (struct value){take_string(from), 0};
    case 0x1f: // DW_FORM_line_strp
        return (struct value){string_at(from, &unit->sections->line_strings, take_integer(from, unit->offset_bytes)),
                              0};
    case 0x0e: // DW_FORM_strp
        return (struct value){string_at(from, &unit->sections->strings, take_integer(from, unit->offset_bytes)), 0};
    case 0x0b: // DW_FORM_data1
        return (struct value){NULL, take_integer(from, 1)};
    case 0x05: // DW_FORM_data2
        return (struct value){NULL, take_integer(from, 2)};
    case 0x06: // DW_FORM_data4
        return (struct value){NULL, take_integer(from, 4)};
    case 0x07: // DW_FORM_data8
        return (struct value){NULL, take_integer(from, 8)};
    case 0x0f: // DW_FORM_udata
        return (struct value){NULL, take_leb(from, false)};
    case 0x1e: // DW_FORM_data16, as of MD5 sums
        take(from, 16);
        return (struct value){NULL, 0};
    case 0x09: // DW_FORM_block
        take(from, take_leb(from, false));
        return (struct value){NULL, 0};
    default:
        unit->wrong = "a list of files has values of a form that is not known";
        return (struct value){NULL, 0};
    }
}

// Version 5: a format, and entries of that format.
static void read_list(struct unit *unit, struct sim_line_table *table, bool of_files) {
    struct cursor *const from = &unit->from;
    const unsigned columns = (unsigned)take_integer(from, 1);
    const struct cursor format = *from;
    for (unsigned i = 0; i < 2 * columns; i++) take_leb(from, false);
    const uint64_t count = take_leb(from, false);
    if (columns == 0 && count) unit->wrong = "a list of files has entries of no format";
    for (uint64_t i = 0; i < count && !from->bad && !unit->wrong; i++) {
        struct cursor kinds = format;
        const char *path = "";
        uint64_t folder = 0;
        for (unsigned k = 0; k < columns; k++) {
            const uint64_t kind = take_leb(&kinds, false);
            const struct value value = read_value(unit, take_leb(&kinds, false));
            if (kind == CONTENT_PATH && value.text) path = value.text;
            if (kind == CONTENT_FOLDER) folder = value.number;
        }
        if (of_files)
            add_file(unit, table, path, folder);
        else
            add_folder(unit, path);
    }
}

// ---- the program

// The registers of the state machine.
struct state {
    uint64_t address, file, line;
};

static void add_row(struct unit *unit, struct sim_line_table *table, const struct state *state, bool ends) {
    if (table->count == table->capacity) {
        const size_t more = table->capacity ? 2 * table->capacity : 256;
        struct sim_line_row *rows = more > UINT32_MAX ? NULL : realloc(table->rows, more * sizeof *rows);
        if (!rows) {
            unit->wrong = no_memory;
            return;
        }
        table->rows = rows;
        table->capacity = more;
    }
    const uint32_t order = (uint32_t)table->count++;
    const bool known = !ends && state->file < unit->file_count && state->line <= UINT32_MAX;
    table->rows[order] = (struct sim_line_row){
        .address = state->address,
        .file = known ? unit->files[state->file] : 0,
        .line = known ? (uint32_t)state->line : 0,
        .order = ends ? 0 : order + 1,
    };
}

static const struct state first_state = {0, 1, 1};

static void run_extended(struct unit *unit, struct sim_line_table *table, struct state *state) {
    const uint64_t bytes = take_leb(&unit->from, false);
    const uint8_t *const begin = take(&unit->from, bytes);
    struct cursor from = {begin, begin ? begin + bytes : begin, false};
    switch (take_integer(&from, 1)) {
    case 1: // DW_LNE_end_sequence
        add_row(unit, table, state, true);
        *state = first_state;
        break;
    case 2: // DW_LNE_set_address
        state->address = take_integer(&from, bytes == 9 ? 8 : 4);
        break;
    case 3: { // DW_LNE_define_file
        const char *name = take_string(&from);
        add_file(unit, table, name, take_leb(&from, false));
        break;
    }
    default:
        break;
    }
    unit->from.bad |= from.bad;
}

static void run_standard(struct unit *unit, struct sim_line_table *table, struct state *state, uint8_t opcode) {
    struct cursor *const from = &unit->from;
    switch (opcode) {
    case 1: // DW_LNS_copy
        add_row(unit, table, state, false);
        break;
    case 2: // DW_LNS_advance_pc
        state->address += take_leb(from, false) * unit->least_step;
        break;
    case 3: // DW_LNS_advance_line
        state->line += take_leb(from, true);
        break;
    case 4: // DW_LNS_set_file
        state->file = take_leb(from, false);
        break;
    case 8: // DW_LNS_const_add_pc
        state->address += (uint64_t)((255 - unit->first_special) / unit->line_range) * unit->least_step;
        break;
    case 9: // DW_LNS_fixed_advance_pc
        state->address += take_integer(from, 2);
        break;
    default: // columns and the like
        for (uint8_t i = 0; i < unit->operands[opcode - 1]; i++) take_leb(from, false);
    }
}

static void run_program(struct unit *unit, struct sim_line_table *table) {
    struct state state = first_state;
    while (unit->from.at < unit->from.end && !unit->wrong) {
        const uint8_t opcode = (uint8_t)take_integer(&unit->from, 1);
        if (opcode >= unit->first_special) {
            const uint8_t adjusted = (uint8_t)(opcode - unit->first_special);
            state.address += (uint64_t)(adjusted / unit->line_range) * unit->least_step;
            state.line += (uint64_t)(unit->line_base + adjusted % unit->line_range);
            add_row(unit, table, &state, false);
        } else if (opcode) {
            run_standard(unit, table, &state, opcode);
        } else {
            run_extended(unit, table, &state);
        }
    }
}

// ---- units

// Reads the header up to the lists; returns where the program begins, NULL where that is not known.
static const uint8_t *read_header(struct unit *unit) {
    struct cursor *const from = &unit->from;
    unit->version = (unsigned)take_integer(from, 2);
    if (unit->version < 2 || unit->version > 5) {
        unit->wrong = "its version is none of 2 to 5";
        return NULL;
    }
    if (unit->version == 5) take_integer(from, 2); // sizes of addresses and segments
    const uint64_t bytes = take_integer(from, unit->offset_bytes);
    struct cursor program = *from;
    take(&program, bytes);
    unit->least_step = (uint8_t)take_integer(from, 1);
    if (unit->version >= 4 && take_integer(from, 1) != 1)
        unit->wrong = "it is of a machine with long instruction words";
    take_integer(from, 1); // whether rows begin statements
    unit->line_base = (int8_t)take_integer(from, 1);
    unit->line_range = (uint8_t)take_integer(from, 1);
    unit->first_special = (uint8_t)take_integer(from, 1);
    unit->operands = take(from, unit->first_special ? unit->first_special - 1u : 0);
    if (unit->line_range == 0 || unit->first_special == 0) unit->wrong = "its header has a zero where none may be";
    from->bad |= program.bad;
    return program.at;
}

static void read_unit(struct unit *unit, struct sim_line_table *table) {
    const uint8_t *const program = read_header(unit);
    if (unit->wrong || unit->from.bad) return;
    if (unit->version < 5) {
        read_old_lists(unit, table);
    } else {
        read_list(unit, table, false);
        if (!unit->wrong) read_list(unit, table, true);
    }
    if (unit->wrong || unit->from.bad) return;
    unit->from.at = program;
    run_program(unit, table);
}

static const char *read_units(const struct sim_line_sections *sections, struct sim_line_table *table) {
    struct cursor from = {sections->line.bytes, sections->line.bytes + sections->line.size, false};
    while (from.at < from.end) {
        struct unit unit = {.sections = sections, .offset_bytes = 4};
        uint64_t bytes = take_integer(&from, 4);
        if (bytes == 0xffffffff) {
            bytes = take_integer(&from, 8);
            unit.offset_bytes = 8;
        }
        unit.from.at = take(&from, bytes);
        if (from.bad) return "a unit lies outside of its section";
        unit.from.end = from.at;
        read_unit(&unit, table);
        free(unit.folders);
        free(unit.files);
        if (unit.wrong) return unit.wrong;
        if (unit.from.bad) return "something in it lies outside of its unit or section";
    }
    return NULL;
}

static int compare_rows(const void *a, const void *b) {
    const struct sim_line_row *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

const char *tessera_sim_read_lines(const struct sim_line_sections *sections, struct sim_line_table *table) {
    *table = (struct sim_line_table){0};
    const char *wrong = read_units(sections, table);
    if (wrong) tessera_sim_free_lines(table);
    if (table->count) qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
    return wrong;
}

void tessera_sim_free_lines(struct sim_line_table *table) {
    for (size_t i = 0; i < table->file_count; i++) free(table->files[i]);
    free(table->files);
    free(table->rows);
    *table = (struct sim_line_table){0};
}

const struct sim_line_row *tessera_sim_line_at(const struct sim_line_table *table, uint64_t address) {
    size_t first = 0, last = table->count; // rows before `first` begin at or before the address
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        if (table->rows[middle].address <= address)
            first = middle + 1;
        else
            last = middle;
    }
    return first && table->rows[first - 1].line ? &table->rows[first - 1] : NULL;
}
