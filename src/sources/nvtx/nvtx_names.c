/* SPDX-License-Identifier: Apache-2.0
 *
 * Domains and categories of NVTX. Both live as long as the process (CO1 of collect.h): a program
 * may destroy a domain while another thread of it still reports to it.
 */
#include "base/alloc.h"
#include "sources/nvtx/nvtx_impl.h"

#include <string.h>

enum {
    MOST_DOMAINS = 4096,   /* beyond, events are in no domain, and counted as cut */
    MOST_CATEGORIES = 4096 /* of a domain; beyond, a category has its number alone */
};

static struct {
    nvtx_domain *list;
    uint32_t count;
    nvtx_domain unnamed; /* the default one */
} domains;               /* under collect_objects */

nvtx_domain *nvtx__create_domain(const char *name)
{
    mtb_lock_acquire(&collect_objects);
    nvtx_domain *domain = domains.list;
    while (domain != NULL && strcmp(domain->name, name) != 0) {
        domain = domain->next;
    }
    if (domain == NULL && domains.count < MOST_DOMAINS) {
        size_t bytes = strlen(name) + 1;
        domain = mtb_calloc(1, sizeof *domain + bytes);
        if (domain != NULL) {
            domain->name = memcpy(domain + 1, name, bytes);
            domain->next = domains.list;
            domains.list = domain;
            domains.count++;
        }
    }
    mtb_lock_release(&collect_objects);
    if (domain == NULL) {
        mtprof_count_cut(1);
    }
    return domain;
}

const char *nvtx__find_category(const nvtx_domain *domain, uint32_t number)
{
    domain = domain != NULL ? domain : &domains.unnamed;
    /* Partner: the store in nvtx__name_category(). */
    const nvtx_category *category = __atomic_load_n(&domain->categories, __ATOMIC_ACQUIRE);
    while (category != NULL && category->number != number) {
        category = category->next;
    }
    return category != NULL ? category->name : NULL;
}

void nvtx__name_category(nvtx_domain *domain, uint32_t number, const char *name)
{
    domain = domain != NULL ? domain : &domains.unnamed;
    const char *before = nvtx__find_category(domain, number);
    if (before != NULL && strcmp(before, name) == 0) {
        return;
    }
    size_t bytes = strlen(name) + 1;
    bool added = false;
    mtb_lock_acquire(&collect_objects);
    nvtx_category *category =
        domain->n_categories < MOST_CATEGORIES ? mtb_calloc(1, sizeof *category + bytes) : NULL;
    if (category != NULL) {
        *category = (nvtx_category){.number = number,
                                    .name = memcpy(category + 1, name, bytes),
                                    .next = domain->categories};
        __atomic_store_n(&domain->categories, category, __ATOMIC_RELEASE);
        domain->n_categories++;
        added = true;
    }
    mtb_lock_release(&collect_objects);
    if (!added) {
        mtprof_count_cut(1);
    }
}
