/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded code, see modules.h.
 */
#include "mtprof/record/define/modules.h"

#include "base/pages.h"

#include <link.h>
#include <string.h>
#include <unistd.h>

mtb_lock mtprof__loader_lock = MTB_LOCK_INIT(MTB_RANK_LOADER);

enum {
    PIECES_SPARE = 64, /* of libraries that are loaded meanwhile */
    PATH_BYTES = 4096
};

typedef struct piece {
    uint64_t start, end, file_offset;
    const char *path;
} piece;

struct pieces {
    piece *at;
    uint32_t count, room; /* there are count; those beyond the room were left out */
    const char *program;
};

/* The loader's lock is held here: only collect. */
static int collect(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct pieces *pieces = context;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) {
            continue;
        }
        if (pieces->count++ >= pieces->room) {
            continue;
        }
        bool named = info->dlpi_name != NULL && info->dlpi_name[0] != '\0';
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        pieces->at[pieces->count - 1] = (piece){start, start + part->p_memsz, part->p_offset,
                                                named ? info->dlpi_name : pieces->program};
    }
    return 0;
}

void mtprof__define_modules(mtprof__recording *recording)
{
    struct pieces pieces = {0};
    mtb_lock_acquire(&mtprof__loader_lock);
    char program[PATH_BYTES] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    pieces.program = program;
    dl_iterate_phdr(collect, &pieces); /* how many there are */
    uint32_t room = pieces.count + PIECES_SPARE;
    pieces.at = mtb_pages_take(room * sizeof *pieces.at);
    pieces.room = pieces.at != NULL ? room : 0;
    pieces.count = 0;
    dl_iterate_phdr(collect, &pieces);
    uint32_t kept = pieces.count < pieces.room ? pieces.count : pieces.room;
    if (kept < pieces.count) {
        mtprof__store_count(recording->store, MTPROF_HEALTH_TEXTS_CUT, pieces.count - kept);
    }
    for (uint32_t i = 0; i < kept; i++) {
        const piece *p = &pieces.at[i];
        uint64_t record[5] = {mtprof__word0(MTPROF_REC_DEF_MODULE, 5, 0, 0), p->start, p->end,
                              p->file_offset, mtprof__intern(p->path, strlen(p->path))};
        uint32_t cause;
        mtprof__definition_append(recording, record, 5, &cause);
    }
    mtb_pages_give(pieces.at, room * sizeof *pieces.at);
    mtb_lock_release(&mtprof__loader_lock);
}
