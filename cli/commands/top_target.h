/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof top` is to look at: a file, or the file that a process records into.
 */
#ifndef CLI_COMMANDS_TOP_TARGET_H
#define CLI_COMMANDS_TOP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file: the operand where there is such a file, or it is no number; else of the process of that
 * number. NULL: the error was printed. The caller frees it. */
char *cli_top_target(const char *operand);

/* Whether a process of that number maps the file: in another namespace it may be another one. */
bool cli_process_maps(uint64_t pid, const char *path);
/* Resident bytes of a process, -1: not known. */
int64_t cli_process_rss(uint64_t pid);
/* Its name, "" where it is not known. */
void cli_process_name(uint64_t pid, char *name, size_t size);

#endif /* CLI_COMMANDS_TOP_TARGET_H */
