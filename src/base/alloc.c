/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator seam, see alloc.h.
 */
#include "base/alloc.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

/* Counts down to the request that fails; 0 = off. Only tests set it. */
static uint64_t fail_at;
static bool fail_forever;
static uint64_t requests;

uint64_t mtb_fail_nth(uint64_t n, bool forever)
{
    __atomic_store_n(&fail_forever, forever, __ATOMIC_RELAXED);
    __atomic_store_n(&fail_at, n, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&requests, 0, __ATOMIC_RELAXED);
}

bool mtb_fail_here(void)
{
    uint64_t number = __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
    uint64_t at = __atomic_load_n(&fail_at, __ATOMIC_RELAXED);
    if (MT_LIKELY(at == 0)) {
        return false;
    }
    return number == at || (number > at && __atomic_load_n(&fail_forever, __ATOMIC_RELAXED));
}

void *mtb_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (mtb_fail_here() || __builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return calloc(bytes != 0 ? bytes : 1, 1);
}

void *mtb_resize(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (mtb_fail_here() || __builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return realloc(block, bytes != 0 ? bytes : 1);
}

char *mtb_copy_text(const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? mtb_calloc(length + 1, 1) : NULL;
    if (copy != NULL && length != 0) {
        memcpy(copy, text, length);
    }
    return copy;
}

void *mtb_aligned_take(size_t bytes)
{
    if (mtb_fail_here() || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    return aligned_alloc(64, (size_t)mtb_round_up(bytes != 0 ? bytes : 1, 64));
}

void mtb_free(void *block)
{
    free(block);
}

bool mtb_grow(void **array, size_t *capacity, size_t needed, size_t element_size)
{
    if (needed <= *capacity) {
        return true;
    }
    size_t larger = *capacity < 8 ? 16 : *capacity * 2;
    if (larger < needed) {
        larger = needed;
    }
    void *moved = mtb_resize(*array, larger, element_size);
    if (moved == NULL) {
        return false;
    }
    *array = moved;
    *capacity = larger;
    return true;
}

bool mtb_extend(void **array, size_t *capacity, size_t needed, size_t element_size)
{
    size_t before = *capacity;
    if (!mtb_grow(array, capacity, needed, element_size)) {
        return false;
    }
    memset((char *)*array + before * element_size, 0, (*capacity - before) * element_size);
    return true;
}
