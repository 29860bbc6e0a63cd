/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a flight recorder: their names, and which dumps stay.
 *
 * A dump's name is NAME-20261116T192233Z-0001-REASON.mtt, with the time in UTC: so names sort by
 * age. Only files whose names have exactly this form, with this recorder's NAME, are ever deleted.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/flight/flight_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    DUMP_NAME_MAX = 256
};

typedef struct old_dump {
    char name[DUMP_NAME_MAX];
    uint64_t bytes;
} old_dump;

mtprof_status mtprof__flight_make_folder(const char *folder)
{
    struct stat st;
    if (mkdir(folder, 0777) == 0 ||
        (errno == EEXIST && stat(folder, &st) == 0 && S_ISDIR(st.st_mode))) {
        return MTPROF_OK;
    }
    return mtb_fail_errno(MTPROF_EIO, errno == EEXIST ? ENOTDIR : errno,
                          "flight_start: cannot make the folder %s", folder);
}

void mtprof__flight_path(const mtprof_flight *flight, const char *suffix, char *to)
{
    (void)snprintf(to, MTPROF_FLIGHT_PATH_BYTES, "%s/%s.%s", flight->folder, flight->name, suffix);
}

/* The reason as part of a file's name. */
static void put_slug(const char *reason, char *to)
{
    size_t n = 0;
    for (; reason[n] != '\0' && n < MTPROF__FLIGHT_REASON_MAX; n++) {
        char c = reason[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        to[n] = plain ? c : '_';
    }
    to[n] = '\0';
}

void mtprof__flight_dump_path(const mtprof_flight *flight, uint32_t sequence, const char *reason,
                              char *to)
{
    char slug[MTPROF__FLIGHT_REASON_MAX + 1];
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    put_slug(reason, slug);
    (void)strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
    (void)snprintf(to, MTPROF_FLIGHT_PATH_BYTES, "%s/%s-%s-%04u-%s.mtt", flight->folder,
                   flight->name, when, sequence % 10000, slug);
}

/* Whether `text` begins as the pattern says, where '0' stands for a digit. */
static bool fits(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; text++, pattern++) {
        bool digit = *text >= '0' && *text <= '9';
        if (*pattern == '0' ? !digit : *text != *pattern) {
            return false;
        }
    }
    return true;
}

static bool is_dump(const mtprof_flight *flight, const char *file)
{
    static const char pattern[] = "-00000000T000000Z-0000-";
    size_t name = strlen(flight->name);
    size_t length = strlen(file);
    return length < DUMP_NAME_MAX && length >= name + sizeof pattern - 1 + 4 &&
           strncmp(file, flight->name, name) == 0 && fits(file + name, pattern) &&
           strcmp(file + length - 4, ".mtt") == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const old_dump *)a)->name, ((const old_dump *)b)->name);
}

/* The dumps in the folder by age; what cannot be listed is left alone. */
static size_t list_dumps(const mtprof_flight *flight, DIR *folder, old_dump **out)
{
    size_t n = 0;
    size_t capacity = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat st;
        if (!is_dump(flight, entry->d_name) ||
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        if (!mtb_grow((void **)out, &capacity, n + 1, sizeof **out)) {
            break;
        }
        (void)snprintf((*out)[n].name, DUMP_NAME_MAX, "%s", entry->d_name);
        (*out)[n++].bytes = (uint64_t)st.st_size;
    }
    if (n > 1) {
        qsort(*out, n, sizeof **out, by_name);
    }
    return n;
}

uint64_t mtprof__flight_apply_budget(const mtprof_flight *flight, const char *newest)
{
    uint64_t deleted = 0;
    old_dump *dumps = NULL;
    DIR *folder = opendir(flight->folder);
    if (folder == NULL) {
        return 0;
    }
    size_t n = list_dumps(flight, folder, &dumps);
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += dumps[i].bytes;
    }
    const char *slash = strrchr(newest, '/');
    const char *keep = slash != NULL ? slash + 1 : newest;
    uint64_t left = n;
    for (size_t i = 0;
         i < n && (left > flight->config.dumps_max || bytes > flight->config.dumps_bytes_max);
         i++) {
        if (strcmp(dumps[i].name, keep) != 0 && unlinkat(dirfd(folder), dumps[i].name, 0) == 0) {
            bytes -= dumps[i].bytes;
            left--;
            deleted++;
        }
    }
    mtb_free(dumps);
    closedir(folder);
    return deleted;
}
