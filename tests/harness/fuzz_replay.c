/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target over its corpus as an ordinary test, without libFuzzer. The arguments are
 * files or folders; a folder that does not exist is an empty corpus. The empty input is always
 * tried.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static int n_inputs;

/* The buffer is exactly as long as the file, so that a sanitizer catches reads past its end. */
static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return; /* a folder or something that vanished */
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        long size_bytes = ftell(file);
        rewind(file);
        uint8_t *data = malloc(size_bytes > 0 ? (size_t)size_bytes : 1);
        if (data != NULL && size_bytes >= 0 &&
            fread(data, 1, (size_t)size_bytes, file) == (size_t)size_bytes) {
            LLVMFuzzerTestOneInput(data, (size_t)size_bytes);
            n_inputs++;
        }
        free(data);
    }
    fclose(file);
}

static void replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        if (errno == ENOTDIR) {
            replay_file(folder);
        }
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char path[4096];
        if (entry->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path) {
            replay_file(path);
        }
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    uint8_t *nothing = calloc(1, 1);
    LLVMFuzzerTestOneInput(nothing, 0);
    free(nothing);
    for (int i = 1; i < argc; i++) {
        replay_folder(argv[i]);
    }
    printf("replayed %d inputs and the empty one\n", n_inputs);
    puts("1 passed, 0 failed, 0 skipped");
    return 0;
}
