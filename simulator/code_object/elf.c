// SPDX-License-Identifier: MIT
// Loading code objects: ELF images of code object version 3 to 6.
#include "module.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "machine/error.h"

enum {
    EM_AMDGPU_MACHINE = 224,
    OSABI_AMDGPU_HSA = 64,
    ABI_VERSION_V3 = 1, // to 4: v6
    ABI_VERSION_V6 = 4,
    NOTE_METADATA = 32,
    RELOCATION_ABS64 = 3,
    RELOCATION_RELATIVE64 = 13,
    MACHINE_MASK = 0xff,
    MACHINE_GFX9_4_GENERIC = 0x5f,
    MOST_PRELOADED = 16,     // most user SGPRs that the hardware preloads
    USES_DYNAMIC_STACK = 11, // a bit of the descriptor's kernel_code_properties
};

static const uint8_t machines[SIM_ARCHS] = {[SIM_GFX90A] = 0x3f, [SIM_GFX942] = 0x4c, [SIM_GFX950] = 0x4f};

// An image and what its headers say; all offsets in it have been checked against its size.
struct image {
    const uint8_t *bytes;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Phdr *segments;
    const Elf64_Sym *symbols; // copied, because images need not be aligned
    size_t symbol_count;
    const char *names;
    size_t names_bytes;
};

#define BAD(...) tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "image: " __VA_ARGS__)

static bool inside(const struct image *image, uint64_t offset, uint64_t bytes) {
    return offset <= image->size && bytes <= image->size - offset;
}

static tessera_status check_header(const struct image *image, enum sim_arch arch) {
    const Elf64_Ehdr *header = &image->header;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB)
        return BAD("not a 64-bit little-endian ELF file");
    if (header->e_machine != EM_AMDGPU_MACHINE || header->e_ident[EI_OSABI] != OSABI_AMDGPU_HSA)
        return BAD("machine %u, OS ABI %u: code for amdgcn-amd-amdhsa is accepted", header->e_machine,
                   header->e_ident[EI_OSABI]);
    const unsigned version = header->e_ident[EI_ABIVERSION];
    if (version < ABI_VERSION_V3 || version > ABI_VERSION_V6)
        return BAD("code object ABI version %u: accepted are 1 to 4 (code object version 3 to 6)", version);
    if (header->e_type != ET_DYN) return BAD("ELF type %u: a linked, shared object is accepted", header->e_type);
    const unsigned machine = header->e_flags & MACHINE_MASK;
    if (machine != machines[arch] && !(machine == MACHINE_GFX9_4_GENERIC && arch != SIM_GFX90A))
        return BAD("made for another GPU (machine 0x%x); %s has 0x%x", machine, tessera_sim_arch_names[arch],
                   machines[arch]);
    if (header->e_phentsize != sizeof(Elf64_Phdr) ||
        !inside(image, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr)))
        return BAD("its program headers lie outside of it");
    return TESSERA_SUCCESS;
}

static tessera_status read_segments(struct image *image) {
    const size_t bytes = image->header.e_phnum * sizeof(Elf64_Phdr);
    image->segments = malloc(bytes ? bytes : 1);
    if (!image->segments) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
    memcpy(image->segments, image->bytes + image->header.e_phoff, bytes);
    for (unsigned i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (!inside(image, segment->p_offset, segment->p_filesz)) return BAD("segment %u lies outside of it", i);
        if (segment->p_type == PT_LOAD &&
            (segment->p_memsz < segment->p_filesz || segment->p_memsz > UINT32_MAX || segment->p_vaddr > UINT32_MAX))
            return BAD("segment %u has senseless sizes", i);
    }
    return TESSERA_SUCCESS;
}

static tessera_status read_symbols(struct image *image) {
    const Elf64_Ehdr *header = &image->header;
    if (header->e_shentsize != sizeof(Elf64_Shdr) ||
        !inside(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
        return BAD("its section headers lie outside of it");
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section, strings;
        memcpy(&section, image->bytes + header->e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_DYNSYM || section.sh_link >= header->e_shnum) continue;
        memcpy(&strings, image->bytes + header->e_shoff + section.sh_link * sizeof strings, sizeof strings);
        if (!inside(image, section.sh_offset, section.sh_size) || !inside(image, strings.sh_offset, strings.sh_size) ||
            strings.sh_size == 0 || image->bytes[strings.sh_offset + strings.sh_size - 1] != 0)
            return BAD("its symbol table lies outside of it");
        Elf64_Sym *symbols = malloc(section.sh_size + 1);
        if (!symbols) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
        memcpy(symbols, image->bytes + section.sh_offset, section.sh_size);
        image->symbols = symbols;
        image->symbol_count = section.sh_size / sizeof *symbols;
        image->names = (const char *)image->bytes + strings.sh_offset;
        image->names_bytes = strings.sh_size;
        return TESSERA_SUCCESS;
    }
    return BAD("it has no dynamic symbols");
}

static const char *symbol_name(const struct image *image, const Elf64_Sym *symbol) {
    return symbol->st_name < image->names_bytes ? image->names + symbol->st_name : "";
}

// Copies the segments to their places and registers them.
static tessera_status load_segments(tessera_sim_module *module, const struct image *image) {
    enum { PAGE = 4096 };
    size_t bytes = 0;
    for (unsigned i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type == PT_LOAD && segment->p_vaddr + segment->p_memsz > bytes)
            bytes = segment->p_vaddr + segment->p_memsz;
    }
    module->bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    module->memory = bytes ? aligned_alloc(PAGE, module->bytes) : NULL;
    if (!module->memory) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
    memset(module->memory, 0, module->bytes);
    for (unsigned i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_LOAD || segment->p_memsz == 0) continue;
        if (module->range_count == sizeof module->ranges / sizeof *module->ranges)
            return BAD("it has too many segments");
        uint8_t *target = module->memory + segment->p_vaddr;
        memcpy(target, image->bytes + segment->p_offset, segment->p_filesz);
        const struct sim_range range = {
            .base = (uintptr_t)target, .bytes = segment->p_memsz, .read_only = !(segment->p_flags & PF_W)};
        const tessera_status status = tessera_sim_memory_add(&module->sim->memory, range);
        if (status != TESSERA_SUCCESS) return status;
        module->ranges[module->range_count++] = range.base;
        if (segment->p_flags & PF_X) {
            module->code_base = range.base;
            module->code_bytes = segment->p_memsz;
        }
    }
    if (!module->code_base) return BAD("it has no code");
    module->code = calloc(module->code_bytes / 4 + 1, sizeof *module->code);
    return module->code ? TESSERA_SUCCESS : tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
}

static tessera_status relocate_one(tessera_sim_module *module, const struct image *image, const Elf64_Rela *entry) {
    const unsigned type = ELF64_R_TYPE(entry->r_info);
    const size_t index = ELF64_R_SYM(entry->r_info);
    if (entry->r_offset > module->bytes - 8) return BAD("a relocation lies outside of its segments");
    uint64_t value;
    if (type == RELOCATION_RELATIVE64) {
        value = (uintptr_t)module->memory + (uint64_t)entry->r_addend;
    } else if (type == RELOCATION_ABS64 && index < image->symbol_count) {
        const Elf64_Sym *symbol = &image->symbols[index];
        if (symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_WEAK)
            return BAD("symbol %s is not defined", symbol_name(image, symbol));
        value = symbol->st_shndx == SHN_UNDEF ? 0 : (uintptr_t)module->memory + symbol->st_value;
        value += (uint64_t)entry->r_addend;
    } else {
        return BAD("relocation type %u is not known", type);
    }
    memcpy(module->memory + entry->r_offset, &value, sizeof value);
    return TESSERA_SUCCESS;
}

static tessera_status relocate(tessera_sim_module *module, const struct image *image) {
    uint64_t table = 0, bytes = 0;
    for (unsigned i = 0; i < image->header.e_phnum; i++) {
        if (image->segments[i].p_type != PT_DYNAMIC) continue;
        for (size_t at = 0; at + sizeof(Elf64_Dyn) <= image->segments[i].p_filesz; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry;
            memcpy(&entry, image->bytes + image->segments[i].p_offset + at, sizeof entry);
            if (entry.d_tag == DT_RELA) table = entry.d_un.d_ptr;
            if (entry.d_tag == DT_RELASZ) bytes = entry.d_un.d_val;
        }
    }
    if (bytes > module->bytes || table > module->bytes - bytes) return BAD("its relocations lie outside of it");
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes; at += sizeof(Elf64_Rela)) {
        Elf64_Rela entry;
        memcpy(&entry, module->memory + table + at, sizeof entry);
        const tessera_status status = relocate_one(module, image, &entry);
        if (status != TESSERA_SUCCESS) return status;
    }
    return TESSERA_SUCCESS;
}

// ---- line tables

static const char *section_name(const struct image *image, const Elf64_Shdr *section) {
    Elf64_Shdr names;
    if (image->header.e_shstrndx >= image->header.e_shnum) return "";
    memcpy(&names, image->bytes + image->header.e_shoff + image->header.e_shstrndx * sizeof names, sizeof names);
    if (!inside(image, names.sh_offset, names.sh_size) || section->sh_name >= names.sh_size ||
        image->bytes[names.sh_offset + names.sh_size - 1] != 0)
        return "";
    return (const char *)image->bytes + names.sh_offset + section->sh_name;
}

// Copies a section if it is there and can be read: one that is compressed cannot.
static bool keep_section(const struct image *image, const char *name, struct sim_section *out) {
    *out = (struct sim_section){(const uint8_t *)"", 0};
    for (unsigned i = 0; i < image->header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image->bytes + image->header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_PROGBITS || section.sh_flags & SHF_COMPRESSED || section.sh_size == 0 ||
            !inside(image, section.sh_offset, section.sh_size) || strcmp(section_name(image, &section), name) != 0)
            continue;
        uint8_t *copy = malloc(section.sh_size);
        if (!copy) return false;
        memcpy(copy, image->bytes + section.sh_offset, section.sh_size);
        *out = (struct sim_section){copy, section.sh_size};
        return true;
    }
    return true;
}

static tessera_status keep_lines(tessera_sim_module *module, const struct image *image) {
    struct sim_line_sections *lines = &module->lines;
    const bool kept = keep_section(image, ".debug_line", &lines->line) &&
                      (lines->line.size == 0 || (keep_section(image, ".debug_line_str", &lines->line_strings) &&
                                                 keep_section(image, ".debug_str", &lines->strings)));
    return kept ? TESSERA_SUCCESS : tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
}

static void free_lines(tessera_sim_module *module) {
    struct sim_section *const sections[] = {&module->lines.line, &module->lines.line_strings, &module->lines.strings};
    for (int i = 0; i < 3; i++)
        if (sections[i]->size) free((void *)sections[i]->bytes);
}

// ---- symbols

static int compare_symbols(const void *a, const void *b) {
    const struct sim_symbol *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static tessera_status keep_symbols(tessera_sim_module *module, const struct image *image) {
    module->symbols = calloc(image->symbol_count + 1, sizeof *module->symbols);
    if (!module->symbols) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
    for (size_t i = 0; i < image->symbol_count; i++) {
        const Elf64_Sym *symbol = &image->symbols[i];
        if (symbol->st_shndx == SHN_UNDEF || symbol->st_value >= module->bytes) continue;
        const char *name = symbol_name(image, symbol);
        name = tessera_sim_keep_string(module, name, strlen(name));
        if (!name) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
        module->symbols[module->symbol_count++] = (struct sim_symbol){
            .name = name,
            .address = (uintptr_t)module->memory + symbol->st_value,
            .bytes = symbol->st_size,
            .type = ELF64_ST_TYPE(symbol->st_info),
        };
    }
    qsort(module->symbols, module->symbol_count, sizeof *module->symbols, compare_symbols);
    return TESSERA_SUCCESS;
}

static bool is_descriptor(const tessera_sim_module *module, const struct sim_symbol *symbol) {
    const size_t length = strlen(symbol->name);
    return length > 3 && strcmp(symbol->name + length - 3, ".kd") == 0 &&
           symbol->bytes == sizeof(struct sim_descriptor) &&
           symbol->address - (uintptr_t)module->memory <= module->bytes - sizeof(struct sim_descriptor);
}

static tessera_status keep_kernels(tessera_sim_module *module) {
    _Static_assert(sizeof(struct sim_descriptor) == 64, "a kernel descriptor has 64 bytes");
    module->kernels = calloc(module->symbol_count + 1, sizeof *module->kernels);
    if (!module->kernels) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
    for (size_t i = 0; i < module->symbol_count; i++) {
        const struct sim_symbol *symbol = &module->symbols[i];
        if (!is_descriptor(module, symbol)) continue;
        tessera_sim_kernel *kernel = &module->kernels[module->kernel_count++];
        kernel->module = module;
        kernel->info.name = tessera_sim_keep_string(module, symbol->name, strlen(symbol->name) - 3);
        if (!kernel->info.name) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
        kernel->descriptor_address = symbol->address;
        memcpy(&kernel->descriptor, (const void *)symbol->address, sizeof kernel->descriptor);
        kernel->entry = symbol->address + (uintptr_t)kernel->descriptor.kernel_code_entry_byte_offset;
        if (kernel->entry - module->code_base >= module->code_bytes || kernel->entry % 4 != 0)
            return BAD("kernel %s starts outside of the code", kernel->info.name);
        const uint32_t preload = kernel->descriptor.kernarg_preload & 0x7f,
                       skip = kernel->descriptor.kernarg_preload >> 7;
        if (preload > MOST_PRELOADED || 4 * (skip + preload) > kernel->descriptor.kernarg_size + 3)
            return BAD("kernel %s preloads %u words of arguments from word %u on, but has %u bytes", kernel->info.name,
                       preload, skip, kernel->descriptor.kernarg_size);
        kernel->dynamic_stack = kernel->descriptor.kernel_code_properties >> USES_DYNAMIC_STACK & 1;
        // Used where the metadata say nothing.
        kernel->info.kernarg_bytes = kernel->info.explicit_kernarg_bytes = kernel->descriptor.kernarg_size;
        kernel->info.lds_bytes = kernel->descriptor.group_segment_fixed_size;
        kernel->info.private_bytes = kernel->descriptor.private_segment_fixed_size;
        kernel->info.max_workgroup_size = 1024;
    }
    return TESSERA_SUCCESS;
}

static tessera_status read_notes(tessera_sim_module *module, const struct image *image) {
    for (unsigned i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_NOTE) continue;
        const uint8_t *at = image->bytes + segment->p_offset, *end = at + segment->p_filesz;
        Elf64_Nhdr note;
        for (; (size_t)(end - at) >= sizeof note;) {
            memcpy(&note, at, sizeof note);
            at += sizeof note;
            const uint64_t name = (note.n_namesz + UINT64_C(3)) & ~UINT64_C(3);
            const uint64_t content = (note.n_descsz + UINT64_C(3)) & ~UINT64_C(3);
            if (name > (size_t)(end - at) || content > (size_t)(end - at) - name) break;
            if (note.n_type == NOTE_METADATA && note.n_namesz == sizeof "AMDGPU" && memcmp(at, "AMDGPU", 7) == 0)
                return tessera_sim_read_metadata(module, at + name, note.n_descsz);
            at += name + content;
        }
    }
    return TESSERA_SUCCESS;
}

static tessera_status load(tessera_sim_module *module, struct image *image) {
    tessera_status status = check_header(image, module->sim->arch);
    if (status == TESSERA_SUCCESS) status = read_segments(image);
    if (status == TESSERA_SUCCESS) status = read_symbols(image);
    if (status == TESSERA_SUCCESS) status = load_segments(module, image);
    if (status == TESSERA_SUCCESS) status = relocate(module, image);
    if (status == TESSERA_SUCCESS) status = keep_lines(module, image);
    if (status == TESSERA_SUCCESS) status = keep_symbols(module, image);
    if (status == TESSERA_SUCCESS) status = keep_kernels(module);
    if (status == TESSERA_SUCCESS) status = read_notes(module, image);
    return status;
}

tessera_status tessera_sim_load(tessera_sim *sim, const void *bytes, size_t size, tessera_sim_module **out) {
    if (!bytes || size < sizeof(Elf64_Ehdr)) return BAD("%zu bytes are no ELF file", bytes ? size : 0);
    struct image image = {.bytes = bytes, .size = size};
    memcpy(&image.header, bytes, sizeof image.header);
    tessera_sim_module *module = calloc(1, sizeof *module);
    if (!module) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the module");
    module->sim = sim;
    pthread_mutex_lock(&sim->lock);
    module->next = sim->modules;
    sim->modules = module;
    pthread_mutex_unlock(&sim->lock);
    const tessera_status status = load(module, &image);
    free(image.segments);
    free((void *)image.symbols);
    if (status == TESSERA_SUCCESS)
        *out = module;
    else
        tessera_sim_unload(module);
    return status;
}

void tessera_sim_unload(tessera_sim_module *module) {
    if (!module) return;
    tessera_sim *sim = module->sim;
    pthread_mutex_lock(&sim->lock);
    tessera_sim_module **link = &sim->modules;
    while (*link != module) link = &(*link)->next;
    *link = module->next;
    pthread_mutex_unlock(&sim->lock);
    for (size_t i = 0; i < module->range_count; i++) tessera_sim_memory_remove(&sim->memory, module->ranges[i]);
    for (size_t i = 0; module->code && i < module->code_bytes / 4 + 1; i++) free(module->code[i]);
    for (size_t i = 0; i < module->kernel_count; i++) free(module->kernels[i].arguments);
    tessera_sim_free_strings(module);
    free_lines(module);
    free(module->kernels);
    free(module->symbols);
    free(module->code);
    free(module->memory);
    free(module);
}

size_t tessera_sim_kernel_count(const tessera_sim_module *module) { return module->kernel_count; }

const tessera_sim_kernel *tessera_sim_kernel_at(const tessera_sim_module *module, size_t index) {
    return index < module->kernel_count ? &module->kernels[index] : NULL;
}

const tessera_sim_kernel *tessera_sim_kernel_find(const tessera_sim_module *module, const char *name) {
    for (size_t i = 0; i < module->kernel_count; i++)
        if (strcmp(module->kernels[i].info.name, name) == 0) return &module->kernels[i];
    return NULL;
}

const tessera_sim_kernel_info *tessera_sim_kernel_get_info(const tessera_sim_kernel *kernel) { return &kernel->info; }

tessera_status tessera_sim_global(const tessera_sim_module *module, const char *name, void **address, size_t *bytes) {
    for (size_t i = 0; i < module->symbol_count; i++) {
        const struct sim_symbol *symbol = &module->symbols[i];
        if (symbol->type != STT_OBJECT || strcmp(symbol->name, name) != 0) continue;
        *address = (void *)symbol->address;
        *bytes = symbol->bytes;
        return TESSERA_SUCCESS;
    }
    return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "name=%s: the module has no such global variable", name);
}
