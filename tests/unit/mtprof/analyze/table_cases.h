/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that torch printed, with the rows it printed them from (tests/golden/torch/, the format is
 * described in torch_table_cases.py), and such rows as an input for our own table code.
 */
#ifndef TESTS_UNIT_MTPROF_ANALYZE_TABLE_CASES_H
#define TESTS_UNIT_MTPROF_ANALYZE_TABLE_CASES_H

#include "mtprof/analyze/table/table_impl.h"

enum {
    CASE_ROWS = 128,
    CASE_FRAMES = 8
};

typedef struct case_row {
    mtprof_row row;
    mtprof_text frames[CASE_FRAMES];
    uint32_t n_frames;
} case_row;

typedef struct table_case {
    char name[64];
    char device[32];
    bool memory, flops;
    mtprof_table_options options;
    char sort_by[64]; /* empty: as they are */
    case_row rows[CASE_ROWS];
    uint32_t n_rows;
    uint32_t order[CASE_ROWS];
    char *expected;
    size_t expected_length;
    char texts[65536];
    size_t texts_used;
} table_case;

/* Reads a file of tests/golden/torch/. Requires that it is there. The caller frees. */
char *cases_load(const char *name, size_t *length);

/* The next case; false at the end. *at starts as the loaded text and moves on. */
bool cases_next(char **at, char *end, table_case *out);

/* A row with nothing in it but a key. */
case_row *case_add(table_case *rows, const char *key);

/* The rows as an input, in the order of the case (sorted where it says so). */
void case_input(table_case *rows, mtprof__table_input *input);

/* What our code writes for it, with a zero byte after it. The caller frees. NULL where it fails,
 * with the status. */
char *case_write(const mtprof__table_input *input, const mtprof_table_options *options,
                 size_t *length, int *status);

#endif /* TESTS_UNIT_MTPROF_ANALYZE_TABLE_CASES_H */
