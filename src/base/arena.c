/* SPDX-License-Identifier: Apache-2.0
 *
 * Bump allocation in blocks, see arena.h.
 */
#include "base/arena.h"

#include "base/pages.h"

#include <stdint.h>
#include <string.h>

enum {
    BLOCK_BYTES = (64 << 10) - 16 /* with its head: whole pages */
};

struct mtb_arena_block {
    struct mtb_arena_block *next;
    size_t bytes; /* of the whole block */
    uint64_t data[];
};

void *mtb_arena_take(mtb_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = (bytes + 7) & ~(size_t)7;
    if (arena->blocks == NULL || arena->size - arena->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        struct mtb_arena_block *block = mtb_pages_take(sizeof *block + size);
        if (block == NULL) {
            return NULL;
        }
        block->bytes = sizeof *block + size;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = 0;
        arena->size = size;
    }
    char *piece = (char *)arena->blocks->data + arena->used;
    arena->used += bytes;
    return piece;
}

char *mtb_arena_copy_text(mtb_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX / 2 ? mtb_arena_take(arena, length + 1) : NULL;
    if (copy != NULL) {
        if (length != 0) {
            memcpy(copy, text, length);
        }
        copy[length] = '\0';
    }
    return copy;
}

void mtb_arena_undo(mtb_arena *arena, mtb_arena before)
{
    if (arena->blocks == before.blocks) {
        arena->used = before.used;
    }
}

void mtb_arena_reset(mtb_arena *arena)
{
    while (arena->blocks != NULL) {
        struct mtb_arena_block *next = arena->blocks->next;
        mtb_pages_give(arena->blocks, arena->blocks->bytes);
        arena->blocks = next;
    }
    arena->used = 0;
    arena->size = 0;
}
