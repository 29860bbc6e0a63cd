/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of libmtprof_nvtx.
 */
#ifndef SOURCES_NVTX_NVTX_IMPL_H
#define SOURCES_NVTX_NVTX_IMPL_H

#include "sources/collect/collect.h"
#include "sources/nvtx/nvtx_abi.h"

typedef struct nvtx_category {
    uint32_t number;
    const char *name;
    struct nvtx_category *next;
} nvtx_category;

/* The program has a pointer to it; NULL there is the default domain. */
typedef struct nvtx_domain {
    const char *name;
    nvtx_category *categories; /* atomic; the newest first, none is ever removed */
    uint32_t n_categories;
    struct nvtx_domain *next;
} nvtx_domain;

nvtx_domain *nvtx__create_domain(const char *name);
/* The name of a category, or NULL. domain NULL: the default one. */
const char *nvtx__find_category(const nvtx_domain *domain, uint32_t number);
void nvtx__name_category(nvtx_domain *domain, uint32_t number, const char *name);

#endif /* SOURCES_NVTX_NVTX_IMPL_H */
