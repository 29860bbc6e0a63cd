/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes, see top_target.h. A recording is a file that its process maps, shared and writable,
 * and that begins as a trace does: the kernel tells, and nobody else has to.
 */
#include "cli/commands/top_target.h"

#include "cli/term.h"
#include "cli/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trace(const char *path)
{
    static const char magic[] = "MTTRACE\n";
    char start[sizeof magic - 1];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
              pread(fd, start, sizeof start, 0) == (ssize_t)sizeof start &&
              memcmp(start, magic, sizeof start) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

/* A line of /proc/PID/maps: "ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH". The path of a shared
 * and writable mapping of a file, or NULL. */
static char *mapped_path(char *line, uint64_t *inode)
{
    char *at = line;
    bool shared = false;
    for (int field = 0; field < 5; field++) {
        if (field == 1) {
            shared = strncmp(at, "rw-s", 4) == 0;
        } else if (field == 4) {
            *inode = strtoull(at, NULL, 10);
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    at[strcspn(at, "\n")] = '\0';
    return shared && *at == '/' ? at : NULL;
}

/* Traces that a process maps: the first, and how many different ones. */
static char *find_mapped(FILE *maps, int64_t pid, size_t *n_found)
{
    char *line = NULL;
    size_t room = 0;
    char *found = NULL;
    while (getline(&line, &room, maps) > 0) {
        uint64_t inode = 0;
        char *path = mapped_path(line, &inode);
        char *inside = NULL; /* as seen from its own root */
        if (path == NULL || (found != NULL && strcmp(found, path) == 0)) {
            continue;
        }
        if (!is_trace(path) && asprintf(&inside, "/proc/%" PRId64 "/%s%s", pid, "root", path) > 0 &&
            is_trace(inside)) {
            path = inside;
        }
        if (is_trace(path) && (found == NULL || strcmp(found, path) != 0)) {
            ++*n_found;
            found = found != NULL ? found : strdup(path);
        }
        free(inside);
    }
    free(line);
    return found;
}

static char *file_of_process(int64_t pid)
{
    char name[64];
    size_t n = 0;
    (void)snprintf(name, sizeof name, "/proc/%" PRId64 "/maps", pid);
    FILE *maps = fopen(name, "re");
    if (maps == NULL) {
        int why = errno;
        cli_error("top: process %" PRId64 ": %s", pid,
                  why == ENOENT ? "there is no such process, and no such file" : strerror(why));
        return NULL;
    }
    errno = 0;
    char *found = find_mapped(maps, pid, &n);
    bool refused = ferror(maps) != 0;
    fclose(maps);
    if (n == 1) {
        return found;
    }
    if (n > 1) {
        cli_error("top: process %" PRId64 " has %zu traces open", pid, n);
        cli_hint("name the file; one of them is %s", found);
    } else if (refused) {
        cli_error("top: process %" PRId64 ": its mappings cannot be read", pid);
        cli_hint("it belongs to somebody else; ask for the file's path");
    } else {
        cli_error("top: process %" PRId64 " records into no file", pid);
        cli_hint("what is recorded into memory cannot be followed; 'mtprof run' and a path in the "
                 "configuration make a file");
    }
    free(found);
    return NULL;
}

char *cli_top_target(const char *operand)
{
    int64_t pid = 0;
    if (access(operand, F_OK) != 0 && cli_parse_int(operand, &pid) && pid > 0) {
        return file_of_process(pid);
    }
    char *path = strdup(operand);
    if (path == NULL) {
        (void)cli_no_memory("top");
    }
    return path;
}

bool cli_process_maps(uint64_t pid, const char *path)
{
    char name[64];
    char *line = NULL;
    size_t room = 0;
    struct stat info;
    bool maps = false;
    (void)snprintf(name, sizeof name, "/proc/%" PRIu64 "/maps", pid);
    FILE *file = stat(path, &info) == 0 ? fopen(name, "re") : NULL;
    while (file != NULL && !maps && getline(&line, &room, file) > 0) {
        uint64_t inode = 0;
        maps = mapped_path(line, &inode) != NULL && inode == (uint64_t)info.st_ino;
    }
    if (file != NULL) {
        fclose(file);
    }
    free(line);
    return maps;
}

int64_t cli_process_rss(uint64_t pid)
{
    char name[64];
    long long pages = -1;
    (void)snprintf(name, sizeof name, "/proc/%" PRIu64 "/statm", pid);
    FILE *file = fopen(name, "re");
    if (file == NULL) {
        return -1;
    }
    char text[128] = "";
    char *end = NULL;
    if (fgets(text, sizeof text, file) != NULL) {
        const char *second = strchr(text, ' ');
        pages = second != NULL ? strtoll(second, &end, 10) : -1;
    }
    fclose(file);
    return pages >= 0 ? (int64_t)pages * sysconf(_SC_PAGESIZE) : -1;
}

void cli_process_name(uint64_t pid, char *name, size_t size)
{
    char path[64];
    *name = '\0';
    (void)snprintf(path, sizeof path, "/proc/%" PRIu64 "/comm", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL && fgets(name, (int)size, file) != NULL) {
        name[strcspn(name, "\n")] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
}
