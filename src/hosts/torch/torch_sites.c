/* SPDX-License-Identifier: Apache-2.0
 *
 * From the name of an op to its site. Sites are made once for each name and live as long as the
 * process: libmtprof writes a name once and refers to it by the site.
 *
 * Names of ops lie at fixed addresses, those of autograd's nodes do not: torch makes them anew each
 * time. So a thread remembers sites by address first, then by text; the text is compared in either
 * case, since an address may be used again for another name. Only a name that the thread has not
 * met (or that another one has pushed out) takes the lock.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/lock.h"
#include "hosts/flops.h"
#include "hosts/torch/torch_impl.h"

#include <string.h>

enum {
    BUCKETS = 4096,
    MOST_SITES = 16384 /* torch has some 3,000 ops; names beyond are recorded by their text */
};

static struct {
    mtb_lock lock;
    th__site *buckets[BUCKETS];
    size_t count;
} sites = {.lock = MTB_LOCK_INIT(MTB_RANK_TORCH_SITES)};

static uint32_t flops_rule(const char *name)
{
    static const struct {
        const char *name;
        uint32_t rule;
    } rules[] = {
        {"aten::add", HOST_FLOPS_ADD},       {"aten::mul", HOST_FLOPS_MUL},
        {"aten::mm", HOST_FLOPS_MM},         {"aten::addmm", HOST_FLOPS_ADDMM},
        {"aten::bmm", HOST_FLOPS_BMM},       {"aten::baddbmm", HOST_FLOPS_BADDBMM},
        {"aten::conv2d", HOST_FLOPS_CONV2D},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(name, rules[i].name) == 0) {
            return rules[i].rule;
        }
    }
    return HOST_FLOPS_NONE;
}

static th__site *make(const char *name, size_t length)
{
    static const char wrapper[] = "autograd::engine::evaluate_function: ";
    th__site *site = mtb_calloc(1, sizeof *site + length + 1);
    if (site == NULL) {
        return NULL;
    }
    char *text = (char *)(site + 1);
    memcpy(text, name, length);
    site->site =
        (mtprof_site){.flags = MTPROF_KIND_OP | MTPROF_BEGIN_MAY_WAIT, /* ops run without the GIL */
                      .struct_size = sizeof(mtprof_site),
                      .name = text,
                      .file = ""};
    site->length = length;
    site->wrapper = strncmp(name, wrapper, sizeof wrapper - 1) == 0;
    site->flops = flops_rule(name);
    return site;
}

static th__site *find_or_make(const char *name, size_t length, uint64_t hash)
{
    mtb_lock_acquire(&sites.lock);
    th__site **bucket = &sites.buckets[hash % BUCKETS];
    th__site *site = *bucket;
    while (site != NULL && (site->length != length || memcmp(site->site.name, name, length) != 0)) {
        site = site->next;
    }
    if (site == NULL && sites.count < MOST_SITES) {
        site = make(name, length);
        if (site != NULL) {
            site->next = *bucket;
            *bucket = site;
            sites.count++;
        }
    }
    mtb_lock_release(&sites.lock);
    return site;
}

void th__sites_after_fork(void)
{
    mtb_locks_forget();
    mtb_lock_reset(&sites.lock); /* a site is complete before it is in the table */
}

static MT_NOINLINE th__site *find_by_text(th__cache *cache, const char *name, size_t address_slot)
{
    size_t length = strlen(name);
    uint64_t hash = mtb_hash_bytes(name, length);
    th__site **place = &cache->by_text[hash % TH_CACHE];
    th__site *site = *place;
    if (site == NULL || site->length != length || memcmp(site->site.name, name, length) != 0) {
        site = find_or_make(name, length, hash);
        if (site == NULL) {
            return NULL;
        }
        *place = site;
    }
    cache->by_address[address_slot].address = name;
    cache->by_address[address_slot].site = site;
    return site;
}

th__site *th__site_of(th__cache *cache, const char *name)
{
    uintptr_t address = (uintptr_t)name;
    size_t slot = (address >> 4 ^ address >> 13) % TH_CACHE;
    th__site *site = cache->by_address[slot].site;
    if (MT_LIKELY(cache->by_address[slot].address == name && site != NULL &&
                  strcmp(site->site.name, name) == 0)) {
        return site;
    }
    return find_by_text(cache, name, slot);
}
