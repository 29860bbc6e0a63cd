/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded code, see modules.h.
 */
#include "mtprof/record/modules.h"

#include <link.h>
#include <string.h>
#include <unistd.h>

mtb_lock mtprof__loader_lock = MTB_LOCK_INIT(MTB_RANK_LOADER);

enum {
    PIECES_MAX = 1024,
    PATH_BYTES = 512
};

typedef struct piece {
    uint64_t start, end, file_offset;
    const char *path;
} piece;

struct pieces {
    piece at[PIECES_MAX];
    uint32_t count;
    const char *program;
};

/* The loader's lock is held here: only collect. */
static int collect(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct pieces *pieces = context;
    for (uint32_t i = 0; i < info->dlpi_phnum && pieces->count < PIECES_MAX; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) {
            continue;
        }
        bool named = info->dlpi_name != NULL && info->dlpi_name[0] != '\0';
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        pieces->at[pieces->count++] = (piece){start, start + part->p_memsz, part->p_offset,
                                              named ? info->dlpi_name : pieces->program};
    }
    return 0;
}

void mtprof__define_modules(mtprof__recording *recording)
{
    static struct pieces pieces; /* guarded by the loader lock */
    mtb_lock_acquire(&mtprof__loader_lock);
    char program[PATH_BYTES] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    pieces.count = 0;
    pieces.program = program;
    dl_iterate_phdr(collect, &pieces);
    for (uint32_t i = 0; i < pieces.count; i++) {
        const piece *p = &pieces.at[i];
        uint64_t record[5] = {mtprof__word0(MTPROF_REC_DEF_MODULE, 5, 0, 0), p->start, p->end,
                              p->file_offset, mtprof__intern(p->path, strlen(p->path))};
        uint32_t cause;
        mtprof__definition_append(recording, record, 5, &cause);
    }
    mtb_lock_release(&mtprof__loader_lock);
}
