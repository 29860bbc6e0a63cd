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
#include "base/flops.h"
#include "base/hash.h"
#include "hosts/torch/torch_impl.h"

#include <pthread.h>
#include <string.h>

enum {
    BUCKETS = 4096,
    MOST_SITES = 16384 /* torch has some 3,000 ops; names beyond are recorded by their text */
};

static struct {
    pthread_mutex_t lock;
    th__site *buckets[BUCKETS];
    size_t count;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t flops_rule(const char *name)
{
    static const struct {
        const char *name;
        uint32_t rule;
    } rules[] = {
        {"aten::add", MTB_FLOPS_ADD},       {"aten::mul", MTB_FLOPS_MUL},
        {"aten::mm", MTB_FLOPS_MM},         {"aten::addmm", MTB_FLOPS_ADDMM},
        {"aten::bmm", MTB_FLOPS_BMM},       {"aten::baddbmm", MTB_FLOPS_BADDBMM},
        {"aten::conv2d", MTB_FLOPS_CONV2D},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(name, rules[i].name) == 0) {
            return rules[i].rule;
        }
    }
    return MTB_FLOPS_NONE;
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
    site->site = (mtprof_site){
        .flags = MTPROF_KIND_OP, .struct_size = sizeof(mtprof_site), .name = text, .file = ""};
    site->length = length;
    site->wrapper = strncmp(name, wrapper, sizeof wrapper - 1) == 0;
    site->flops = flops_rule(name);
    return site;
}

static th__site *find_or_make(const char *name, size_t length, uint64_t hash)
{
    pthread_mutex_lock(&sites.lock);
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
    pthread_mutex_unlock(&sites.lock);
    return site;
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
