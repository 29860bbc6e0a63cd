/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is allocated in pieces and freed all at once. Pieces never move.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

typedef struct mtb_arena {
    struct mtb_arena_block *blocks;
    size_t used, size; /* of the newest block */
} mtb_arena;

/* `bytes` of memory aligned to 8, or NULL. Not zeroed. */
void *mtb_arena_take(mtb_arena *arena, size_t bytes);

/* A copy, followed by a zero byte, or NULL. */
char *mtb_arena_copy_text(mtb_arena *arena, const char *text, size_t length);

/* Frees what was taken since the arena was in the state `before`, as far as that is cheap. */
void mtb_arena_undo(mtb_arena *arena, mtb_arena before);

/* Frees everything; the arena is empty and usable again. */
void mtb_arena_reset(mtb_arena *arena);

#endif /* BASE_ARENA_H */
