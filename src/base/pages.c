/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory straight from the kernel, see pages.h.
 */
#include "base/pages.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096
};

void *mtb_pages_take(size_t bytes)
{
    if (mtb_fail_here()) {
        return NULL;
    }
    int before = errno; /* recording calls must not change it */
    void *pages = mmap(NULL, bytes != 0 ? bytes : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = before;
    return pages != MAP_FAILED ? pages : NULL;
}

void mtb_pages_give(void *pages, size_t bytes)
{
    if (pages != NULL) {
        munmap(pages, bytes != 0 ? bytes : 1);
    }
}

bool mtb_pages_grow(void **array, size_t *capacity, size_t needed, size_t element_size)
{
    if (needed <= *capacity) {
        return true;
    }
    size_t larger = *capacity < PAGE / element_size ? PAGE / element_size : *capacity * 2;
    larger = larger < needed ? needed : larger;
    void *moved = mtb_pages_take(larger * element_size);
    if (moved == NULL) {
        return false;
    }
    if (*array != NULL) {
        memcpy(moved, *array, *capacity * element_size);
        mtb_pages_give(*array, *capacity * element_size);
    }
    *array = moved;
    *capacity = larger;
    return true;
}
