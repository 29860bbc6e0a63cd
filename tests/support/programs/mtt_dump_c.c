/* SPDX-License-Identifier: Apache-2.0
 *
 * mtt_dump_c FILE: the canonical dump of a trace by the library's own reader. The same text as
 * tests/format/mtt_dump.py writes, which says what the lines mean.
 */
#include <mtprof/reader.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Offsets with a problem. */
typedef struct problems {
    uint64_t *at;
    size_t count, capacity;
} problems;

static void add_problem(problems *p, uint64_t offset)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity * 2 + 16;
        p->at = realloc(p->at, p->capacity * sizeof *p->at);
        if (p->at == NULL) {
            abort();
        }
    }
    p->at[p->count++] = offset;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_problems(problems *p)
{
    if (p->count != 0) {
        qsort(p->at, p->count, sizeof *p->at, by_value);
    }
    for (size_t i = 0; i < p->count; i++) {
        if (i == 0 || p->at[i] != p->at[i - 1]) {
            printf("problem %" PRIu64 "\n", p->at[i]);
        }
    }
    free(p->at);
}

static void print_record(const mtprof_stream_info *stream, const mtprof_record *r)
{
    printf("r %u %u %" PRIu64 " %02x %u %u %u %u %" PRIu64 " %" PRIu64, stream->kind, stream->slot,
           r->offset, r->kind, r->aux, r->arg, r->epoch, r->thread, r->ticks, r->key);
    for (uint32_t i = 0; i < r->n_words; i++) {
        printf(" %" PRIx64, r->words[i]);
    }
    putchar('\n');
}

static int dump_stream(const mtprof_reader *reader, uint32_t index, problems *p)
{
    mtprof_stream_info stream = {.struct_size = sizeof stream};
    mtprof_cursor *cursor = NULL;
    if (mtprof_reader_get_stream(reader, index, &stream) != MTPROF_OK ||
        mtprof_cursor_open(reader, index, &cursor) != MTPROF_OK) {
        fprintf(stderr, "mtt_dump_c: %s\n", mtprof_last_error()->message);
        return 2;
    }
    mtprof_record record;
    mtprof_status status;
    while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
        if (status == MTPROF_OK) {
            print_record(&stream, &record);
        } else if (status == MTPROF_EFORMAT) {
            add_problem(p, (uint64_t)mtprof_last_error()->offset);
        } else {
            fprintf(stderr, "mtt_dump_c: %s\n", mtprof_last_error()->message);
            return 2;
        }
    }
    mtprof_cursor_close(cursor);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: mtt_dump_c FILE\n");
        return 2;
    }
    problems p = {0};
    mtprof_reader *reader = NULL;
    mtprof_status status = mtprof_reader_open(argv[1], &reader);
    if (status == MTPROF_EFORMAT || status == MTPROF_EVERSION) {
        printf("problem %" PRId64 "\n", mtprof_last_error()->offset);
        return 1;
    }
    if (status != MTPROF_OK) {
        fprintf(stderr, "mtt_dump_c: %s\n", mtprof_last_error()->message);
        return 2;
    }
    int failed = 0;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader) && failed == 0; i++) {
        failed = dump_stream(reader, i, &p);
    }
    mtprof_problem problem;
    for (uint32_t i = 0; mtprof_reader_problem(reader, i, &problem); i++) {
        add_problem(&p, problem.offset);
    }
    print_problems(&p);
    mtprof_reader_close(reader);
    return failed;
}
