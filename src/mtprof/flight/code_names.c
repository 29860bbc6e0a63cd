/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for addresses of code, see code_names.h.
 *
 *      /proc/self/maps ─► which file, which place in it ─► its program headers: address in the file
 *                                                        └► its symbols: the function around it
 */
#include "mtprof/flight/code_names.h"

#include "base/compiler.h"
#include "base/pages.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SECTIONS_MOST = 4096,
    SEGMENTS_MOST = 256,
    NOTE_MOST = 4096,
    SYMBOLS_AT_ONCE = 512
};

bool mtprof__code_names_add(mtprof__code_names *names, uint64_t address)
{
    if (!mtb_pages_grow((void **)&names->at, &names->capacity, names->count + 1,
                        sizeof *names->at)) {
        return false;
    }
    mtprof__code_name *name = &names->at[names->count++];
    memset(name, 0, sizeof *name);
    name->address = address;
    return true;
}

void mtprof__code_names_fini(mtprof__code_names *names)
{
    mtb_pages_give(names->at, names->capacity * sizeof *names->at);
    memset(names, 0, sizeof *names);
}

static bool is_before(const void *item, uint64_t address)
{
    return ((const mtprof__code_name *)item)->address < address;
}

static size_t first_from(const mtprof__code_names *names, uint64_t address)
{
    return mtb_search(names->at, names->count, sizeof *names->at, is_before, address);
}

const mtprof__code_name *mtprof__code_names_find(const mtprof__code_names *names, uint64_t address)
{
    size_t i = first_from(names, address);
    return i < names->count && names->at[i].address == address ? &names->at[i] : NULL;
}

/* Ascending, each once. qsort() may use the heap (CDN1), so the sort is a heap sort of our own. */
static void sift(mtprof__code_name *at, size_t from, size_t n)
{
    for (size_t child; (child = 2 * from + 1) < n; from = child) {
        if (child + 1 < n && at[child].address < at[child + 1].address) {
            child++;
        }
        if (at[from].address >= at[child].address) {
            return;
        }
        uint64_t address = at[from].address; /* nothing else is filled in yet */
        at[from].address = at[child].address;
        at[child].address = address;
    }
}

static void put_in_order(mtprof__code_names *names)
{
    mtprof__code_name *at = names->at;
    size_t n = names->count;
    for (size_t i = n / 2; i-- > 0;) {
        sift(at, i, n);
    }
    for (size_t end = n; end > 1; end--) {
        uint64_t largest = at[0].address;
        at[0].address = at[end - 1].address;
        at[end - 1].address = largest;
        sift(at, 0, end - 1);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || at[i].address != at[kept - 1].address) {
            at[kept++].address = at[i].address;
        }
    }
    names->count = kept;
}

ssize_t mtprof__read_proc(const char *path, char **text, size_t *capacity)
{
    *text = NULL;
    *capacity = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t used = 0;
    ssize_t got = -1;
    while (mtb_pages_grow((void **)text, capacity, used + 4096, 1)) {
        got = read(fd, *text + used, *capacity - used - 1);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    close(fd);
    if (got < 0) {
        mtb_pages_give(*text, *capacity);
        *text = NULL;
        return -1;
    }
    (*text)[used] = '\0';
    return (ssize_t)used;
}

/* ---- one file -------------------------------------------------------------------------------- */

typedef struct code_file {
    int fd;
    uint64_t bytes;
    ElfW(Ehdr) head;
    mtprof__code_name *names; /* those in this piece of the file, ascending */
    size_t n_names;
} code_file;

static bool read_at(const code_file *file, void *to, size_t bytes, uint64_t offset)
{
    return offset <= file->bytes && bytes <= file->bytes - offset &&
           pread(file->fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool read_head(code_file *file)
{
    return read_at(file, &file->head, sizeof file->head, 0) &&
           memcmp(file->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           file->head.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           file->head.e_phentsize == sizeof(ElfW(Phdr)) && file->head.e_phnum <= SEGMENTS_MOST;
}

static bool read_segment(const code_file *file, uint32_t i, ElfW(Phdr) * segment)
{
    return i < file->head.e_phnum &&
           read_at(file, segment, sizeof *segment, file->head.e_phoff + i * sizeof *segment);
}

/* From a place in the file to the address that the file's symbols use. */
static bool address_in_file(const code_file *file, uint64_t offset, uint64_t *address)
{
    ElfW(Phdr) s;
    for (uint32_t i = 0; read_segment(file, i, &s); i++) {
        if (s.p_type == PT_LOAD && offset >= s.p_offset && offset - s.p_offset < s.p_filesz) {
            *address = offset - s.p_offset + s.p_vaddr;
            return true;
        }
    }
    return false;
}

static bool lies_before(const void *item, uint64_t in_file)
{
    return ((const mtprof__code_name *)item)->in_file < in_file;
}

/* Gives a function to the addresses inside it. */
static void try_symbol(code_file *file, const ElfW(Sym) * symbol)
{
    unsigned type = symbol->st_info & 15;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name == 0) {
        return;
    }
    size_t i =
        mtb_search(file->names, file->n_names, sizeof *file->names, lies_before, symbol->st_value);
    for (; i < file->n_names && file->names[i].in_file - symbol->st_value < symbol->st_size; i++) {
        mtprof__code_name *name = &file->names[i];
        if (name->symbol_bytes == 0 || symbol->st_value > name->symbol) {
            name->symbol = symbol->st_value;
            name->symbol_bytes = symbol->st_size;
            name->name_at = symbol->st_name;
        }
    }
}

/* The text of a found symbol; a name that cannot be read is none. */
static void read_name(const code_file *file, uint64_t strings, uint64_t strings_bytes,
                      mtprof__code_name *name)
{
    char text[CODE_NAME_BYTES + 1];
    if (name->symbol_bytes == 0 || name->name[0] != '\0' || name->name_at >= strings_bytes) {
        return;
    }
    uint64_t left = strings_bytes - name->name_at;
    size_t bytes = left < CODE_NAME_BYTES ? (size_t)left : CODE_NAME_BYTES;
    if (!read_at(file, text, bytes, strings + name->name_at)) {
        return;
    }
    text[bytes] = '\0';
    size_t length = strlen(text);
    if (length == CODE_NAME_BYTES) {
        memcpy(text + CODE_NAME_BYTES - 4, "...", 4);
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = *c < ' ' || *c == 127 ? '?' : *c;
    }
    memcpy(name->name, text, strlen(text) + 1);
}

static void read_symbols(code_file *file, const ElfW(Shdr) * table, const ElfW(Shdr) * strings)
{
    ElfW(Sym) symbols[SYMBOLS_AT_ONCE];
    for (size_t i = 0; i < file->n_names; i++) {
        if (file->names[i].name[0] == '\0') {
            file->names[i].symbol_bytes = 0;
        }
    }
    uint64_t n = table->sh_size / sizeof *symbols;
    for (uint64_t i = 0; i < n; i += SYMBOLS_AT_ONCE) {
        size_t part = n - i < SYMBOLS_AT_ONCE ? (size_t)(n - i) : SYMBOLS_AT_ONCE;
        if (!read_at(file, symbols, part * sizeof *symbols,
                     table->sh_offset + i * sizeof *symbols)) {
            break;
        }
        for (size_t k = 0; k < part; k++) {
            try_symbol(file, &symbols[k]);
        }
    }
    for (size_t i = 0; i < file->n_names; i++) {
        read_name(file, strings->sh_offset, strings->sh_size, &file->names[i]);
    }
}

/* The full table first; the exported symbols are a part of it. */
static void find_functions(code_file *file)
{
    static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    const ElfW(Ehdr) *head = &file->head;
    if (head->e_shentsize != sizeof(ElfW(Shdr)) || head->e_shnum > SECTIONS_MOST) {
        return;
    }
    for (size_t kind = 0; kind < MT_COUNT(kinds); kind++) {
        for (uint32_t i = 0; i < head->e_shnum; i++) {
            ElfW(Shdr) table, strings;
            if (!read_at(file, &table, sizeof table, head->e_shoff + i * sizeof table)) {
                return;
            }
            if (table.sh_type == kinds[kind] && table.sh_entsize == sizeof(ElfW(Sym)) &&
                table.sh_link < head->e_shnum &&
                read_at(file, &strings, sizeof strings,
                        head->e_shoff + table.sh_link * sizeof strings)) {
                read_symbols(file, &table, &strings);
            }
        }
    }
}

/* The build id is a note; it names the file to a server of symbols. */
static void find_build_id(code_file *file)
{
    ElfW(Phdr) s;
    uint8_t bytes[NOTE_MOST];
    for (uint32_t i = 0; read_segment(file, i, &s); i++) {
        if (s.p_type != PT_NOTE || s.p_filesz > sizeof bytes ||
            !read_at(file, bytes, s.p_filesz, s.p_offset)) {
            continue;
        }
        uint64_t at = 0;
        while (at + sizeof(ElfW(Nhdr)) <= s.p_filesz) {
            ElfW(Nhdr) note;
            memcpy(&note, bytes + at, sizeof note);
            uint64_t text = at + sizeof note + mtb_round_up(note.n_namesz, 4);
            if (text + note.n_descsz > s.p_filesz) {
                break;
            }
            if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz <= CODE_BUILD_BYTES) {
                for (size_t k = 0; k < file->n_names; k++) {
                    memcpy(file->names[k].build, bytes + text, note.n_descsz);
                    file->names[k].build_bytes = (uint8_t)note.n_descsz;
                }
                return;
            }
            at = text + mtb_round_up(note.n_descsz, 4);
        }
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A line of /proc/self/maps. */
typedef struct mapping {
    uint64_t start, end, offset, inode;
    const char *path;
    size_t path_length;
} mapping;

static uint64_t read_number(const char **at, int base)
{
    char *end;
    uint64_t value = strtoull(*at, &end, base);
    *at = end + (*end != '\0' && *end != '\n'); /* and what separates it */
    return value;
}

/* "start-end rwxp offset major:minor inode   path". The end of the line. */
static const char *read_mapping(const char *line, mapping *m)
{
    const char *end = strchrnul(line, '\n');
    m->start = read_number(&line, 16);
    m->end = read_number(&line, 16);
    line = memchr(line, ' ', (size_t)(end - line));
    if (line == NULL) {
        m->end = m->start;
        return end;
    }
    line++;
    m->offset = read_number(&line, 16);
    (void)read_number(&line, 16);
    (void)read_number(&line, 16);
    m->inode = read_number(&line, 10);
    while (line < end && *line == ' ') {
        line++;
    }
    m->path = line < end ? line : end;
    m->path_length = (size_t)(end - m->path);
    return end;
}

static void name_file(mtprof__code_name *name, const mapping *m)
{
    const char *base = memrchr(m->path, '/', m->path_length);
    base = base != NULL ? base + 1 : m->path;
    (void)snprintf(name->file, sizeof name->file, "%.*s",
                   (int)(m->path_length - (size_t)(base - m->path)), base);
}

static void resolve_in(code_file *file, const mapping *m)
{
    uint64_t address;
    for (size_t i = 0; i < file->n_names; i++) {
        mtprof__code_name *name = &file->names[i];
        if (address_in_file(file, name->address - m->start + m->offset, &address)) {
            name->in_file = address;
        }
    }
    find_functions(file);
    find_build_id(file);
}

static void resolve_mapping(mtprof__code_name *names, size_t n, const mapping *m)
{
    for (size_t i = 0; i < n; i++) {
        names[i].in_file = names[i].address - m->start + m->offset;
        name_file(&names[i], m);
    }
    char path[4096];
    if (m->path_length == 0 || m->path[0] != '/' || m->path_length >= sizeof path) {
        return; /* the kernel's own code, or what a program made */
    }
    memcpy(path, m->path, m->path_length);
    path[m->path_length] = '\0';
    code_file file = {.names = names, .n_names = n};
    file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (file.fd >= 0 && fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode) &&
        (uint64_t)info.st_ino == m->inode) { /* still the file that is running */
        file.bytes = (uint64_t)info.st_size;
        if (read_head(&file)) {
            resolve_in(&file, m);
        }
    }
    if (file.fd >= 0) {
        close(file.fd);
    }
}

void mtprof__code_names_resolve(mtprof__code_names *names)
{
    put_in_order(names);
    char *maps;
    size_t capacity;
    if (mtprof__read_proc("/proc/self/maps", &maps, &capacity) < 0) {
        return;
    }
    for (const char *line = maps; *line != '\0';) {
        mapping m = {0};
        const char *end = read_mapping(line, &m);
        size_t from = first_from(names, m.start), to = first_from(names, m.end);
        if (m.end > m.start && from < to) {
            resolve_mapping(names->at + from, to - from, &m);
        }
        line = *end == '\n' ? end + 1 : end;
    }
    mtb_pages_give(maps, capacity);
}
