/* SPDX-License-Identifier: Apache-2.0
 *
 * ITT's counters are counters of libmtprof of the same name. ITT adds to some of them; the sum is
 * kept here, also while nothing records. Counters live as long as the process, destroyed or not:
 * programs may still use them.
 */
#include "base/alloc.h"
#include "sources/itt/itt_impl.h"

#include <string.h>

enum {
    MOST_COUNTERS = 65536 /* beyond, none is made */
};

typedef struct itt_counter {
    mtprof_site site;
    int type;
    int64_t sum; /* atomic: threads add to it */
    const char *domain;
    struct itt_counter *next;
} itt_counter;

static struct {
    itt_counter *list;
    uint32_t count;
} counters; /* under collect_objects */

/* The same counter for the same names: calls of v3 name it each time. */
static itt_counter *find_counter(const char *name, const char *domain)
{
    itt_counter *counter = counters.list;
    while (counter != NULL &&
           (strcmp(counter->site.name, name) != 0 || strcmp(counter->domain, domain) != 0)) {
        counter = counter->next;
    }
    return counter;
}

static itt_counter *create_typed(const char *name, const char *domain, int type)
{
    name = name != NULL ? name : "counter";
    domain = domain != NULL ? domain : "";
    mtb_lock_acquire(&collect_objects);
    itt_counter *counter = find_counter(name, domain);
    if (counter == NULL && counters.count < MOST_COUNTERS) {
        size_t name_bytes = strlen(name) + 1, domain_bytes = strlen(domain) + 1;
        counter = mtb_calloc(1, sizeof *counter + name_bytes + domain_bytes);
        if (counter != NULL) {
            char *texts = (char *)(counter + 1);
            memcpy(texts, name, name_bytes);
            memcpy(texts + name_bytes, domain, domain_bytes);
            counter->site =
                (mtprof_site){.struct_size = sizeof(mtprof_site), .name = texts, .file = ""};
            counter->domain = texts + name_bytes;
            counter->type = type > ITT_UNKNOWN && type <= ITT_DOUBLE ? type : ITT_U64;
            counter->next = counters.list;
            counters.list = counter;
            counters.count++;
        }
    }
    mtb_lock_release(&collect_objects);
    return counter;
}

static itt_counter *create(const char *name, const char *domain)
{
    return create_typed(name, domain, ITT_U64);
}

static itt_counter *create_v3(const itt_domain *domain, const char *name, int type)
{
    return create_typed(name, domain != NULL ? domain->name : NULL, type);
}

static itt_counter *counter_of(const itt_domain *domain, const itt_string_handle *name)
{
    return create_v3(domain, itt__text(name, "counter"), ITT_U64);
}

static void destroy(itt_counter *counter)
{
    (void)counter;
}

/* ---- values ---- */

static void record_sum(itt_counter *counter, int64_t sum)
{
    if (!itt__is_paused()) {
        mtprof_counter(&counter->site, sum);
    }
}

static void add(itt_counter *counter, uint64_t delta)
{
    if (counter != NULL) {
        int64_t before = __atomic_fetch_add(&counter->sum, (int64_t)delta, __ATOMIC_RELAXED);
        record_sum(counter, (int64_t)((uint64_t)before + delta));
    }
}

static void subtract(itt_counter *counter, uint64_t delta)
{
    add(counter, 0 - delta);
}

static void increment(itt_counter *counter)
{
    add(counter, 1);
}

static void decrement(itt_counter *counter)
{
    add(counter, UINT64_MAX);
}

static void add_v3(const itt_domain *domain, const itt_string_handle *name, uint64_t delta)
{
    add(counter_of(domain, name), delta);
}

static void subtract_v3(const itt_domain *domain, const itt_string_handle *name, uint64_t delta)
{
    subtract(counter_of(domain, name), delta);
}

static void increment_v3(const itt_domain *domain, const itt_string_handle *name)
{
    add_v3(domain, name, 1);
}

static void decrement_v3(const itt_domain *domain, const itt_string_handle *name)
{
    subtract_v3(domain, name, 1);
}

static void set_value(itt_counter *counter, const void *value)
{
    int64_t whole;
    double real;
    if (counter == NULL || value == NULL) {
        return;
    }
    if (itt__read_number(counter->type, value, &whole, &real)) {
        __atomic_store_n(&counter->sum, whole, __ATOMIC_RELAXED);
        record_sum(counter, whole);
    } else if (!itt__is_paused()) {
        mtprof_counter_real(&counter->site, real);
    }
}

static void set_value_ex(itt_counter *counter, void *clock, itt_timestamp when, const void *value)
{
    (void)clock;
    (void)when;
    set_value(counter, value);
}

const itt_function itt__counter_functions[] = {
    ITT_FUNCTION("counter_create", create),
    ITT_FUNCTION("counter_create_typed", create_typed),
    ITT_FUNCTION("counter_create_v3", create_v3),
    ITT_FUNCTION("counter_destroy", destroy),
    ITT_FUNCTION("counter_inc", increment),
    ITT_FUNCTION("counter_inc_delta", add),
    ITT_FUNCTION("counter_dec", decrement),
    ITT_FUNCTION("counter_dec_delta", subtract),
    ITT_FUNCTION("counter_inc_v3", increment_v3),
    ITT_FUNCTION("counter_inc_delta_v3", add_v3),
    ITT_FUNCTION("counter_dec_v3", decrement_v3),
    ITT_FUNCTION("counter_dec_delta_v3", subtract_v3),
    ITT_FUNCTION("counter_set_value", set_value),
    ITT_FUNCTION("counter_set_value_ex", set_value_ex),
    ITT_FUNCTION("counter_set_value_v3", set_value),
    {NULL, NULL},
};
