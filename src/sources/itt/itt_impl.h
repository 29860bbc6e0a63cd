/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of libmtprof_itt. Each lists its functions by ITT's names.
 */
#ifndef SOURCES_ITT_ITT_IMPL_H
#define SOURCES_ITT_ITT_IMPL_H

#include "sources/collect/collect.h"
#include "sources/itt/itt_abi.h"

/* A function as __itt_api_init() hands it out. */
typedef struct itt_function {
    const char *name;
    void (*function)(void);
} itt_function;

#define ITT_FUNCTION(name, function)              \
    {                                             \
        "__itt_" name, (void (*)(void))(function) \
    }

extern const itt_function itt__task_functions[], itt__counter_functions[], itt__range_functions[];

/* The name of a handle; NULL where it has none, or there is no memory. */
collect_name *itt__name(itt_string_handle *handle);
const char *itt__text(const itt_string_handle *handle, const char *otherwise);
itt_string_handle *itt__create_string(const char *text);

/* Notes the domain of a range, unless it has none or is torch's. */
void itt__add_domain(mtprof_token token, itt_domain *domain);

/* Adds `count` values under a key; several ones get the text "1, 2, 3". */
void itt__add_values(mtprof_token token, uint32_t key, int type, size_t count, const void *data);

/* A value of a type that is known: true: *whole, a whole number that fits; false: *real. */
bool itt__read_number(int type, const void *data, int64_t *whole, double *real);

/* The token of an open range that has an id; 0: there is none. */
mtprof_token itt__find_range(const itt_domain *domain, itt_id id);

/* Whether the program wants its calls recorded (__itt_pause). */
extern bool itt__paused;
MT_INLINE bool itt__is_paused(void)
{
    return MT_UNLIKELY(__atomic_load_n(&itt__paused, __ATOMIC_RELAXED));
}

#endif /* SOURCES_ITT_ITT_IMPL_H */
