/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_torch's functions, and its source, which libmtprof calls where a recording begins and
 * ends.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "hosts/torch/torch_impl.h"

#include <mtprof/source.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t lock; /* attach and detach, not recording */
    bool known;           /* the library was opened and checked */
    mtprof_torch_info info;
    char failure[MTB_MESSAGE_BYTES]; /* of attaching */
    char missing[MTB_MESSAGE_BYTES]; /* of the tier */
    char shim[4096];                 /* of COMPILED */
    mtprof_source *source;           /* NULL: not attached */
    uint32_t chosen;                 /* enum mtprof_torch_tier; NONE: as FULL */
    uint32_t options;                /* atomic */
} host = {.lock = PTHREAD_MUTEX_INITIALIZER, .info = {.missing = ""}};

/* ---- the source ---- */

static mtprof_status begin(void *context, mtprof_source *source, uint64_t wants)
{
    (void)context;
    (void)source;
    th__observers_remove(); /* a child of fork() has its parent's */
    th__observers_add(wants, __atomic_load_n(&host.options, __ATOMIC_RELAXED));
    return MTPROF_OK;
}

static void finish(void *context)
{
    (void)context;
    th__observers_remove();
    th__memory_leave();
}

/* ---- attaching ---- */

static void after_fork(void)
{
    host.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    th__sites_after_fork();
}

/* What a tier with a checked layout lacks. */
static const char *find_gaps(void)
{
    if (!host.info.memory) {
        return "allocations are not reported as in torch 2.7 to 2.15";
    }
    if (th__fields.tag_double == TH_TAG_UNKNOWN) {
        return "real numbers among inputs are not known";
    }
    if (th__fields.tag_string == TH_TAG_UNKNOWN) {
        return "texts among inputs are not known";
    }
    return th__fields.identified ? ""
                                 : "memory of tensors is not found: memory timelines have no "
                                   "categories";
}

static uint32_t find_tier(void)
{
    const char *of_shim = "";
    host.missing[0] = '\0';
    if (th__torch.lacks != NULL) {
        snprintf(host.missing, sizeof host.missing, "this libtorch has no %s; 2.7 to 2.15 have it",
                 th__torch.lacks);
        return MTPROF_TORCH_NAMES;
    }
    host.info.memory = th__memory_check();
    if (host.chosen == MTPROF_TORCH_NAMES) {
        th__layout_forget();
        return MTPROF_TORCH_NAMES;
    }
    if (host.chosen == MTPROF_TORCH_COMPILED) {
        of_shim = th__layout_check(host.shim);
        if (of_shim[0] == '\0') {
            snprintf(host.missing, sizeof host.missing, "%s", find_gaps());
            return MTPROF_TORCH_COMPILED;
        }
    }
    const char *missing = th__layout_check(NULL);
    bool full = missing[0] == '\0';
    const char *gaps = full ? find_gaps() : missing;
    const char *between = of_shim[0] != '\0' && gaps[0] != '\0' ? "; " : "";
    snprintf(host.missing, sizeof host.missing, "%s%s%s", of_shim, between, gaps);
    return full ? MTPROF_TORCH_FULL : MTPROF_TORCH_NAMES;
}

static int know_torch(void)
{
    static bool forks; /* our handler is registered */
    if (host.known) {
        return MTPROF_OK;
    }
    MT_TRY(th__library_open());
    host.info.tier = find_tier();
    host.info.missing = host.missing;
    host.known = true;
    if (!forks) {
        forks = pthread_atfork(NULL, NULL, after_fork) == 0;
    }
    return MTPROF_OK;
}

static int attach(void)
{
    static const mtprof_source_ops ops = {.struct_size = sizeof ops,
                                          .abi = MTPROF_SOURCE_ABI,
                                          .name = "torch",
                                          .start = begin,
                                          .stop = finish};
    MT_TRY(know_torch());
    return host.source != NULL ? MTPROF_OK : mtprof_source_register(&ops, &host.source);
}

mtprof_status mtprof_torch_attach(mtprof_torch_info *info)
{
    if (info != NULL && info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "torch: struct_size of the info is 0");
    }
    pthread_mutex_lock(&host.lock);
    int status = attach();
    mtprof_torch_info now = host.info;
    if (status != MTPROF_OK) {
        snprintf(host.failure, sizeof host.failure, "%s", mtb_last_failure()->message);
        now.missing = host.failure;
    }
    pthread_mutex_unlock(&host.lock);
    if (info != NULL) {
        now.refused = __atomic_load_n(&th__memory_refused, __ATOMIC_RELAXED);
        now.unreadable = __atomic_load_n(&th__unreadable, __ATOMIC_RELAXED);
        mtb_write_struct(info, &now);
    }
    return status;
}

void mtprof_torch_detach(void)
{
    pthread_mutex_lock(&host.lock);
    mtprof_source *source = host.source;
    host.source = NULL;
    pthread_mutex_unlock(&host.lock);
    mtprof_source_unregister(source);
}

mtprof_status mtprof_torch_choose(uint32_t tier, const char *shim)
{
    if (tier < MTPROF_TORCH_NAMES || tier > MTPROF_TORCH_COMPILED) {
        return mtb_fail(MTPROF_EINVAL, "torch: %u is no tier to choose", tier);
    }
    if (tier == MTPROF_TORCH_COMPILED && (shim == NULL || strlen(shim) >= sizeof host.shim)) {
        return mtb_fail(MTPROF_EINVAL, "torch: tier compiled needs the path of a shim");
    }
    pthread_mutex_lock(&host.lock);
    bool attached = host.source != NULL;
    pthread_mutex_unlock(&host.lock);
    if (attached && __atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED) != 0) {
        return mtb_fail(MTPROF_ESTATE, "torch: tier %s cannot be chosen while something records",
                        mtprof_torch_tier_name(tier));
    }
    mtprof_torch_detach();
    pthread_mutex_lock(&host.lock);
    host.chosen = tier;
    host.known = false;
    snprintf(host.shim, sizeof host.shim, "%s", tier == MTPROF_TORCH_COMPILED ? shim : "");
    pthread_mutex_unlock(&host.lock);
    return MTPROF_OK;
}

void mtprof_torch_set_options(uint32_t options)
{
    __atomic_store_n(&host.options, options, __ATOMIC_RELAXED);
}

const char *mtprof_torch_tier_name(uint32_t tier)
{
    static const char *const names[] = {"none", "names", "full", "compiled"};
    return tier < sizeof names / sizeof names[0] ? names[tier] : "unknown";
}
