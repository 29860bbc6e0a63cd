/* SPDX-License-Identifier: Apache-2.0
 *
 * How copies of the library in one process find each other, see rendezvous.h.
 *
 * Each copy exports one struct under one name. Copies in the global scope are found by that name;
 * copies opened locally by asking every loaded object for it.
 */
#include "mtprof/control/rendezvous.h"

#include "base/fail.h"
#include "mtprof/record/define/modules.h"

#include <mtprof/api.h>

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RENDEZVOUS_MAGIC 0x6D7470726F663031u /* "mtprof01" */

/* What copies know of each other. Only ever appended to. */
typedef struct mtprof_rendezvous_t {
    uint64_t magic;
    uint32_t struct_size;
    uint32_t reserved;
    int (*active)(void);
} mtprof_rendezvous_t;

extern MTPROF_API const mtprof_rendezvous_t mtprof_rendezvous;
const mtprof_rendezvous_t mtprof_rendezvous = {RENDEZVOUS_MAGIC, sizeof mtprof_rendezvous, 0,
                                               mtprof__session_active};

static const char *path_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "(unknown)";
}

static const mtprof_rendezvous_t *look_into(const char *object)
{
    void *handle = dlopen(object, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL);
    if (handle == NULL) {
        return NULL;
    }
    const mtprof_rendezvous_t *found = dlsym(handle, "mtprof_rendezvous");
    dlclose(handle);
    return found;
}

static bool is_other(const mtprof_rendezvous_t *found)
{
    return found != NULL && found != &mtprof_rendezvous && found->magic == RENDEZVOUS_MAGIC;
}

enum {
    OBJECTS_MAX = 512
};

struct objects {
    const char *names[OBJECTS_MAX];
    int count;
};

/* The loader's lock is held here: only collect, ask later. */
static int collect(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct objects *objects = context;
    if (info->dlpi_name != NULL && info->dlpi_name[0] != '\0' && objects->count < OBJECTS_MAX &&
        strstr(info->dlpi_name, "mtprof") != NULL) {
        objects->names[objects->count++] = info->dlpi_name;
    }
    return 0;
}

mtprof_status mtprof__rendezvous_check(void)
{
    struct objects objects = {.count = 0};
    mtb_lock_acquire(&mtprof__loader_lock);
    dl_iterate_phdr(collect, &objects);
    const mtprof_rendezvous_t *other = dlsym(RTLD_DEFAULT, "mtprof_rendezvous");
    for (int i = 0; i < objects.count && !is_other(other); i++) {
        other = look_into(objects.names[i]);
    }
    mtb_lock_release(&mtprof__loader_lock);
    if (is_other(other) && other->active() != 0) {
        return mtb_fail(MTPROF_EBUSY,
                        "session_start: another copy of libmtprof is recording in this process: %s "
                        "(this one is %s)",
                        path_of(other), path_of(&mtprof_rendezvous));
    }
    return MTPROF_OK;
}
