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

static struct {
    pthread_mutex_t lock; /* attach and detach, not recording */
    bool known;           /* the library was opened and checked */
    mtprof_torch_info info;
    char failure[MTB_MESSAGE_BYTES]; /* of attaching */
    char missing[MTB_MESSAGE_BYTES]; /* of tier names */
    mtprof_source *source;           /* NULL: not attached */
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

static int know_torch(void)
{
    if (host.known) {
        return MTPROF_OK;
    }
    MT_TRY(th__library_open());
    const char *missing = host.missing;
    if (th__torch.lacks != NULL) {
        snprintf(host.missing, sizeof host.missing, "this libtorch has no %s; 2.7 to 2.15 have it",
                 th__torch.lacks);
    } else {
        missing = th__layout_check();
        host.info.memory = th__memory_check();
    }
    host.info.tier = missing[0] == '\0' ? MTPROF_TORCH_FULL : MTPROF_TORCH_NAMES;
    if (missing[0] == '\0' && !host.info.memory) {
        missing = "allocations are not reported as in torch 2.7 to 2.15";
    } else if (missing[0] == '\0' && th__fields.tag_double == TH_TAG_UNKNOWN) {
        missing = "real numbers among inputs are not known";
    } else if (missing[0] == '\0' && th__fields.tag_string == TH_TAG_UNKNOWN) {
        missing = "texts among inputs are not known";
    } else if (missing[0] == '\0' && !th__fields.identified) {
        missing = "memory of tensors is not found: memory timelines have no categories";
    }
    host.info.missing = missing;
    host.known = true;
    (void)pthread_atfork(NULL, NULL, after_fork);
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

void mtprof_torch_set_options(uint32_t options)
{
    __atomic_store_n(&host.options, options, __ATOMIC_RELAXED);
}

const char *mtprof_torch_tier_name(uint32_t tier)
{
    static const char *const names[] = {"none", "names", "full"};
    return tier < sizeof names / sizeof names[0] ? names[tier] : "unknown";
}
