/* SPDX-License-Identifier: Apache-2.0
 */
#include "table_cases.h"

#include "harness/mt_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

char *cases_load(const char *name, size_t *length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/torch/%s", MT_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    REQUIRE(file != NULL);
    REQUIRE(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    REQUIRE(size > 0);
    rewind(file);
    char *text = calloc(1, (size_t)size + 1);
    REQUIRE(text != NULL);
    REQUIRE_EQ_U64(fread(text, 1, (size_t)size, file), (uint64_t)size);
    fclose(file);
    *length = (size_t)size;
    return text;
}

static mtprof_text decode_text(table_case *out, const char *from, size_t length)
{
    mtprof_text text = {out->texts + out->texts_used, 0};
    char *to = out->texts + out->texts_used;
    REQUIRE(out->texts_used + length + 1 < sizeof out->texts);
    for (size_t i = 0; i < length; i++) {
        if (from[i] == '%') {
            char digits[3] = {from[i + 1], from[i + 2], '\0'};
            to[text.length++] = (char)strtol(digits, NULL, 16);
            i += 2;
        } else {
            to[text.length++] = from[i];
        }
    }
    to[text.length] = '\0';
    out->texts_used += text.length + 1;
    return text;
}

static void read_stack(table_case *out, case_row *row, const char *from, size_t length)
{
    size_t start = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i == length || from[i] == ';') {
            REQUIRE(row->n_frames < CASE_FRAMES);
            row->frames[row->n_frames++] = decode_text(out, from + start, i - start);
            start = i + 1;
        }
    }
}

case_row *case_add(table_case *rows, const char *key)
{
    REQUIRE(rows->n_rows < CASE_ROWS);
    case_row *row = &rows->rows[rows->n_rows++];
    *row = (case_row){.row = {.struct_size = sizeof row->row, .node_id = -1, .step = INT32_MIN}};
    row->row.count = 1;
    row->row.track = UINT32_MAX;
    row->row.key = (mtprof_text){key, strlen(key)};
    row->row.overload = row->row.input_shapes = row->row.module = (mtprof_text){"", 0};
    return row;
}

static void read_row_field(table_case *out, case_row *to, const char *name, const char *value,
                           size_t length)
{
    mtprof_row *row = &to->row;
    long long number = strtoll(value, NULL, 10);
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {
        {"cpu", &row->cpu_ns},           {"self", &row->self_cpu_ns},
        {"dev", &row->device_ns},        {"selfdev", &row->self_device_ns},
        {"cpumem", &row->cpu_memory},    {"selfcpumem", &row->self_cpu_memory},
        {"devmem", &row->device_memory}, {"selfdevmem", &row->self_device_memory},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].to = number;
            return;
        }
    }
    if (strcmp(name, "key") == 0) {
        row->key = decode_text(out, value, length);
    } else if (strcmp(name, "overload") == 0) {
        row->overload = decode_text(out, value, length);
    } else if (strcmp(name, "shapes") == 0) {
        row->input_shapes = decode_text(out, value, length);
    } else if (strcmp(name, "stack") == 0) {
        read_stack(out, to, value, length);
    } else if (strcmp(name, "count") == 0) {
        row->count = (uint64_t)number;
    } else if (strcmp(name, "flops") == 0) {
        row->flops = (uint64_t)number;
    } else if (strcmp(name, "node") == 0) {
        row->node_id = (int32_t)number;
    } else if (strcmp(name, "device") == 0) {
        row->device = (uint8_t)number;
    } else if (strcmp(name, "async") == 0) {
        row->is_async = (uint8_t)number;
    } else if (strcmp(name, "annotation") == 0) {
        row->is_user_annotation = (uint8_t)number;
    } else if (strcmp(name, "parent") == 0) {
        row->has_parent = (uint32_t)number;
    } else {
        FAIL("a row has the unknown field %s", name);
    }
}

/* torch's values of options as ours: None is -1, a row limit of 0 means no rows. */
static void read_option(table_case *out, const char *name, const char *value, size_t length)
{
    bool none = strncmp(value, "None", 4) == 0;
    int32_t number = none ? -1 : (int32_t)strtol(value, NULL, 10);
    mtprof_table_options *options = &out->options;
    if (strcmp(name, "sort_by") == 0) {
        snprintf(out->sort_by, sizeof out->sort_by, "%.*s", (int)length, value);
    } else if (strcmp(name, "row_limit") == 0) {
        options->row_limit = !none && number == 0 ? MTPROF_TABLE_NO_ROWS : number;
    } else if (strcmp(name, "max_src_column_width") == 0) {
        options->max_src_column_width = number;
    } else if (strcmp(name, "max_name_column_width") == 0) {
        options->max_name_column_width = number;
    } else if (strcmp(name, "max_shapes_column_width") == 0) {
        options->max_shapes_column_width = number;
    } else if (strcmp(name, "header") == 0) {
        options->header = decode_text(out, value, length).bytes;
    } else if (strcmp(name, "time_unit") == 0) {
        options->time_unit = decode_text(out, value, length).bytes;
    } else if (strcmp(name, "top_level_events_only") == 0) {
        options->top_level_only = 1;
    } else {
        FAIL("unknown option %s", name);
    }
}

static void read_fact(table_case *out, const char *name, const char *value, size_t length)
{
    if (strcmp(name, "device") == 0) {
        snprintf(out->device, sizeof out->device, "%.*s", (int)length, value);
    } else if (strcmp(name, "memory") == 0) {
        out->memory = *value == '1';
    } else {
        out->flops = *value == '1';
    }
}

/* The "name=value" parts of a line. */
static void read_parts(table_case *out, const char *line, const char *end, char what)
{
    case_row *row = what == 'r' ? case_add(out, "") : NULL;
    while (line < end) {
        const char *equal = memchr(line, '=', (size_t)(end - line));
        const char *stop = memchr(line, ' ', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        if (equal == NULL || equal > stop) {
            break;
        }
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(equal - line), line);
        size_t length = (size_t)(stop - equal - 1);
        if (what == 'r') {
            read_row_field(out, row, name, equal + 1, length);
        } else if (what == 'o') {
            read_option(out, name, equal + 1, length);
        } else {
            read_fact(out, name, equal + 1, length);
        }
        line = stop + 1;
    }
}

bool cases_next(char **at, char *end, table_case *out)
{
    memset(out, 0, sizeof *out);
    out->options.struct_size = sizeof out->options;
    while (*at < end) {
        char *line = *at;
        char *stop = memchr(line, '\n', (size_t)(end - line));
        REQUIRE(stop != NULL);
        *at = stop + 1;
        if (strncmp(line, "case ", 5) == 0) {
            snprintf(out->name, sizeof out->name, "%.*s", (int)(stop - line - 5), line + 5);
        } else if (strncmp(line, "facts ", 6) == 0) {
            read_parts(out, line + 6, stop, 'f');
        } else if (strncmp(line, "options ", 8) == 0) {
            read_parts(out, line + 8, stop, 'o');
        } else if (strncmp(line, "row ", 4) == 0) {
            read_parts(out, line + 4, stop, 'r');
        } else if (strncmp(line, "table ", 6) == 0) {
            out->expected_length = strtoul(line + 6, NULL, 10);
            out->expected = *at;
            *at += out->expected_length + 1;
            REQUIRE(*at <= end);
            return true;
        }
    }
    return false;
}

/* ---- as an input ----------------------------------------------------------------------------- */

static int get_row(void *context, uint32_t index, mtprof_row *row)
{
    table_case *rows = context;
    *row = rows->rows[rows->order[index]].row;
    row->first_event = rows->order[index]; /* so that the stack is found */
    return 0;
}

static int get_stack(void *context, const mtprof_row *row, const mtprof_text **frames, uint32_t *n)
{
    table_case *rows = context;
    *n = 0;
    if (row->first_event >= rows->n_rows) { /* the sum over no rows */
        return 0;
    }
    *frames = rows->rows[row->first_event].frames;
    *n = rows->rows[row->first_event].n_frames;
    return 0;
}

void case_input(table_case *rows, mtprof__table_input *input)
{
    *input = (mtprof__table_input){.n_rows = rows->n_rows,
                                   .context = rows,
                                   .row = get_row,
                                   .stack = get_stack,
                                   .device = rows->device[0] != '\0' ? rows->device : NULL,
                                   .memory = rows->memory,
                                   .flops = rows->flops};
    for (uint32_t i = 0; i < rows->n_rows; i++) {
        rows->order[i] = i;
    }
    if (rows->sort_by[0] != '\0') {
        uint32_t order[CASE_ROWS];
        REQUIRE_OK(mtprof__table_order(input, rows->sort_by, order));
        memcpy(rows->order, order, sizeof order);
    }
}

typedef struct text_sink {
    char *bytes;
    size_t length;
} text_sink;

static int take_bytes(void *context, const void *bytes, size_t length)
{
    text_sink *sink = context;
    char *grown = realloc(sink->bytes, sink->length + length + 1);
    if (grown == NULL) {
        return ENOMEM;
    }
    memcpy(grown + sink->length, bytes, length);
    sink->bytes = grown;
    sink->length += length;
    grown[sink->length] = '\0';
    return 0;
}

char *case_write(const mtprof__table_input *input, const mtprof_table_options *options,
                 size_t *length, int *status)
{
    text_sink sink = {calloc(1, 1), 0};
    mtb_writer writer;
    REQUIRE(sink.bytes != NULL);
    REQUIRE(mtb_writer_init(&writer, take_bytes, &sink));
    *status = mtprof__table_write(input, options, &writer);
    CHECK_EQ_I64(mtb_writer_finish(&writer), 0);
    *length = sink.length;
    if (*status != 0) {
        free(sink.bytes);
        return NULL;
    }
    return sink.bytes;
}
