/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces that torch wrote, against what torch printed with them: tables row by row, events one by
 * one, attributes of events. The files are recorded observations (tests/golden/torch-traces).
 *
 * Where torch is known to be wrong (its double counting of kernels through overheads,
 * torch-contract 3.4.6) or decides otherwise (overheads all on the first thread) the row is listed
 * below with the reason and with what is right instead.
 */
#include "base/gzip.h"
#include "base/text_writer.h"
#include "harness/mt_test.h"
#include "mtprof/import/import_source.h"
#include "mtprof/model/text/inputs_text.h"

#include <mtprof/averages.h>
#include <mtprof/export.h>
#include <mtprof/model.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN MT_SOURCE_DIR "/tests/golden/torch-traces/"

enum {
    CELLS_MAX = 24,
    NAME_WIDTH = 55
};

static void need_gzip(void)
{
    if (strcmp(mtb_gzip_library(), "none") == 0) {
        MT_SKIP("neither ISA-L nor zlib is there to unpack the golden files");
    }
}

/* A whole file, unpacked, with a zero after it. */
static char *read_text(const char *path)
{
    mtprof__source source;
    mtprof__any_file file;
    REQUIRE_OK(mtprof__any_file_open(&file, "open trace", path));
    REQUIRE_OK(mtprof__source_begin(&source, &file));
    size_t length = 0;
    char *text = NULL;
    do {
        REQUIRE_OK(mtprof__source_fill(&source));
        text = realloc(text, length + source.end - source.begin + 1);
        REQUIRE(text != NULL);
        memcpy(text + length, source.window + source.begin, source.end - source.begin);
        length += source.end - source.begin;
        source.begin = source.end;
    } while (!source.ended);
    text[length] = '\0';
    mtprof__source_close(&source);
    return text;
}

static mtprof_model *open_model(const char *path)
{
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_open(path, NULL, &model));
    REQUIRE(model != NULL);
    return model;
}

static mtprof_model_findings findings_of(mtprof_model *model)
{
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    REQUIRE_OK(mtprof_model_get_findings(model, &findings));
    return findings;
}

static const void *column(mtprof_model *model, enum mtprof_column_id id)
{
    mtprof_column out;
    REQUIRE_OK(mtprof_model_get_column(model, id, &out));
    return out.data;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row whose cell is not torch's, with what it has to be. */
typedef struct exception {
    const char *key;
    const char *column; /* "self_cpu", "self_device" or "device" */
    bool on_device;     /* which of two rows of that name */
    double us;
} exception;

/* torch-contract 3.4.6: an overhead inherits its op's id and so its kernels, and hands them to
 * all above. */
static const exception plain_exceptions[] = {
    {"Activity Buffer Request", "self_device", false, 0.0},
    {"Activity Buffer Request", "device", false, 0.0},
    {"aten::normal_", "device", false, 2.784},
    {"aten::randn", "device", false, 2.784},
    {"Lazy Function Loading", "self_device", false, 0.0},
    {"Lazy Function Loading", "device", false, 0.0},
    {"cudaLaunchKernel", "device", false, 0.0},
    {"aten::_foreach_mul_", "device", false, 2.592},
    {"Optimizer.step#SGD.step", "device", false, 8.128},
    /* Its overhead of 6,186.524 us ran on the autograd thread, inside it; torch lists it on thread
     * 1, where nothing ran. */
    {"aten::copy_", "self_cpu", false, 88.929},
    {NULL, NULL, false, 0},
};

static const exception full_exceptions[] = {
    {"Activity Buffer Request", "self_device", false, 0.0},
    {"Activity Buffer Request", "device", false, 0.0},
    {"aten::normal_", "device", false, 2.688},
    {"aten::randn", "device", false, 2.688},
    {NULL, NULL, false, 0},
};

/* Microseconds of "2.598ms", with half of its last digit. */
static double read_time(const char *cell, double *half)
{
    char *unit = NULL;
    double value = strtod(cell, &unit);
    double scale = strcmp(unit, "us") == 0 ? 1 : strcmp(unit, "ms") == 0 ? 1e3 : 1e6;
    REQUIRE(scale < 1e6 || strcmp(unit, "s") == 0);
    *half = scale == 1 ? 1e-6 : scale * 0.0005000001;
    return value * scale;
}

static void check_time(const char *table, const mtprof_row *row, const char *what, const char *cell,
                       int64_t ns, const exception *exceptions)
{
    double half = 0;
    double want = read_time(cell, &half);
    for (const exception *e = exceptions; e->key != NULL; e++) {
        if (strlen(e->key) == row->key.length &&
            memcmp(e->key, row->key.bytes, row->key.length) == 0 && strcmp(e->column, what) == 0 &&
            e->on_device == (row->device != 0)) {
            /* torch's must be another one: a listed row that is right is a stale list */
            if ((double)ns / 1e3 > want - half && (double)ns / 1e3 < want + half) {
                FAIL("%s: %s of %s is listed as an exception and equals torch's", table, what,
                     e->key);
            }
            want = e->us;
            half = 1e-6;
        }
    }
    double us = (double)ns / 1e3;
    if (us < want - half || us > want + half) {
        FAIL("%s: %.*s: %s is %.3f us, torch has %s", table, (int)row->key.length, row->key.bytes,
             what, us, cell);
    }
}

static void check_memory(const char *table, const mtprof_row *row, const char *what,
                         const char *cell, const char *unit, int64_t bytes)
{
    double scale = strcmp(unit, "B") == 0 ? 1 : strcmp(unit, "KB") == 0 ? 1024 : 1024 * 1024;
    double want = strtod(cell, NULL) * scale;
    double half = scale == 1 ? 0.5 : scale * 0.00501;
    if ((double)bytes < want - half || (double)bytes > want + half) {
        FAIL("%s: %.*s: %s is %lld, torch has %s %s", table, (int)row->key.length, row->key.bytes,
             what, (long long)bytes, cell, unit);
    }
}

/* The cells after the name, where blanks are. */
static int split(char *line, char **cells)
{
    int n = 0;
    for (char *word = strtok(line, " "); word != NULL && n < CELLS_MAX; word = strtok(NULL, " ")) {
        cells[n++] = word;
    }
    return n;
}

static void check_name(const char *table, const char *line, const mtprof_row *row)
{
    char name[NAME_WIDTH + 1];
    memcpy(name, line, NAME_WIDTH);
    name[NAME_WIDTH] = '\0';
    const char *text = name + strspn(name, " ");
    size_t length = strlen(text);
    bool cut = length > 3 && strcmp(text + length - 3, "...") == 0;
    length -= cut ? 3 : 0;
    if (row->key.length < length || memcmp(row->key.bytes, text, length) != 0 ||
        (!cut && row->key.length != length)) {
        FAIL("%s: row '%s' is '%.*s' here", table, text, (int)row->key.length, row->key.bytes);
    }
}

/* Self CPU %, Self CPU, CPU total %, CPU total, average, Self CUDA, %, CUDA total, average,
 * [CPU Mem, Self CPU Mem, CUDA Mem, Self CUDA Mem,] calls */
static void check_row(const char *table, char *line, const mtprof_row *row, bool memory,
                      const exception *exceptions)
{
    char *cells[CELLS_MAX];
    check_name(table, line, row);
    int n = split(line + NAME_WIDTH, cells);
    REQUIRE(n >= (memory ? 18 : 10));
    check_time(table, row, "self_cpu", cells[1], row->self_cpu_ns, exceptions);
    check_time(table, row, "cpu", cells[3], row->cpu_ns, exceptions);
    check_time(table, row, "self_device", cells[5], row->self_device_ns, exceptions);
    check_time(table, row, "device", cells[7], row->device_ns, exceptions);
    if (memory) {
        check_memory(table, row, "cpu_memory", cells[9], cells[10], row->cpu_memory);
        check_memory(table, row, "self_cpu_memory", cells[11], cells[12], row->self_cpu_memory);
        check_memory(table, row, "device_memory", cells[13], cells[14], row->device_memory);
        check_memory(table, row, "self_device_memory", cells[15], cells[16],
                     row->self_device_memory);
    }
    CHECK_EQ_U64(row->count, strtoull(cells[memory ? 17 : 9], NULL, 10));
}

static bool is_row(const char *line)
{
    return strlen(line) > NAME_WIDTH && strchr(line, '%') != NULL && strstr(line, "Name") == NULL;
}

static mtprof_row row_at(mtprof_averages *averages, uint32_t index)
{
    mtprof_row row = {.struct_size = sizeof row};
    REQUIRE_OK(mtprof_averages_get_row(averages, index, &row));
    return row;
}

/* Rows come in the order of their first event, here as there. */
static void check_table(const char *trace, const char *table, bool memory,
                        const exception *exceptions)
{
    need_gzip();
    char path[512];
    snprintf(path, sizeof path, GOLDEN "%s", table);
    char *text = read_text(path);
    snprintf(path, sizeof path, GOLDEN "%s", trace);
    mtprof_model *model = open_model(path);
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    uint32_t rows = 0;
    char *next = text;
    for (char *line = next; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (is_row(line)) {
            REQUIRE(rows < mtprof_averages_count(averages));
            mtprof_row row = row_at(averages, rows++);
            check_row(table, line, &row, memory, exceptions);
        }
    }
    CHECK_EQ_U64(rows, 88);
    CHECK_EQ_U64(rows, mtprof_averages_count(averages));
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    free(text);
}

TEST(plain_trace_gives_torchs_table)
{
    check_table("plain.fix.json", "plain.tab.gz", false, plain_exceptions);
}

TEST(full_trace_gives_torchs_table)
{
    check_table("full.fix.json.gz", "full.tab.gz", true, full_exceptions);
}

/* Grouped by shapes, sorted by torch: rows are looked for. */
TEST(full_trace_grouped_by_shapes)
{
    need_gzip();
    char *text = read_text(GOLDEN "full.tab2.gz");
    mtprof_model *model = open_model(GOLDEN "full.fix.json.gz");
    mtprof_averages_options options = {.struct_size = sizeof options, .group = MTPROF_GROUP_SHAPES};
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_new(model, &options, &averages));
    int found = 0;
    for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
        mtprof_row row = row_at(averages, i);
        char shown[512];
        char self[64];
        snprintf(shown, sizeof shown, "%.*s", (int)row.input_shapes.length, row.input_shapes.bytes);
        snprintf(self, sizeof self, " %.3fus ", (double)row.self_cpu_ns / 1e3);
        for (char *line = text; line != NULL; line = strchr(line + 1, '\n')) {
            char whole[1024];
            size_t length = strcspn(line + 1, "\n");
            if (length >= sizeof whole) {
                continue;
            }
            memcpy(whole, line + 1, length);
            whole[length] = '\0';
            bool named = row.key.length < NAME_WIDTH && strstr(whole, row.key.bytes) != NULL;
            if (row.kind == MTPROF_EVENT_KIND_OP && named && strstr(whole, self) != NULL) {
                CHECK(strstr(whole, shown) != NULL);
                found++;
            }
        }
    }
    CHECK(found >= 7);
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    free(text);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The text after a key in a line, up to any of `ends`. */
static const char *field(const char *line, const char *key, const char *ends)
{
    static char value[1024];
    const char *at = strstr(line, key);
    REQUIRE(at != NULL);
    at += strlen(key);
    size_t length = 0;
    while (at[length] != '\0' && strchr(ends, at[length]) == NULL) {
        length++;
    }
    REQUIRE(length < sizeof value);
    memcpy(value, at, length);
    value[length] = '\0';
    return value;
}

/* Next line of a text that begins with a prefix; the line is cut off there. */
static char *next_line(char **text, const char *prefix)
{
    while (*text != NULL && **text != '\0') {
        char *line = *text;
        char *end = strchr(line, '\n');
        *text = end != NULL ? end + 1 : NULL;
        if (end != NULL) {
            *end = '\0';
        }
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            return line;
        }
    }
    return NULL;
}

/* name=… up to overload_name; names have blanks. */
static void check_event_name(mtprof_model *model, uint32_t name, const char *line)
{
    const char *at = strstr(line, " name=") + 6;
    const char *end = strstr(at, " overload_name=");
    REQUIRE(end != NULL);
    mtprof_text text = mtprof_model_name(model, name);
    CHECK_EQ_U64(text.length, (uint64_t)(end - at));
    CHECK_EQ_MEM(text.bytes, at, text.length);
}

TEST(plain_trace_gives_torchs_events)
{
    need_gzip();
    char *text = read_text(GOLDEN "plain.ev.gz");
    mtprof_model *model = open_model(GOLDEN "plain.fix.json");
    uint64_t n = findings_of(model).events;
    const int64_t *start = column(model, MTPROF_COLUMN_START_NS);
    const int64_t *end = column(model, MTPROF_COLUMN_END_NS);
    const uint32_t *name = column(model, MTPROF_COLUMN_NAME);
    const uint8_t *device = column(model, MTPROF_COLUMN_DEVICE);
    const uint8_t *kind = column(model, MTPROF_COLUMN_KIND);
    const uint32_t *track = column(model, MTPROF_COLUMN_TRACK);
    char *rest = text;
    uint64_t i = 0;
    int64_t shift = INT64_MIN;
    for (char *line; (line = next_line(&rest, "<FunctionEvent id=")) != NULL; i++) {
        REQUIRE(i < n);
        check_event_name(model, name[i], line);
        bool on_device = strstr(line, "device_type=DeviceType.CUDA") != NULL;
        CHECK(on_device == (device[i] != 0));
        int64_t from = (int64_t)(strtod(field(line, "start_us=", " "), NULL) * 1e3 + 0.5);
        int64_t to = (int64_t)(strtod(field(line, "end_us=", " "), NULL) * 1e3 + 0.5);
        shift = shift == INT64_MIN ? start[i] - from : shift;
        CHECK_EQ_I64(start[i] - shift, from);
        CHECK_EQ_I64(end[i] - shift, to);
        mtprof_track of;
        REQUIRE(mtprof_model_track(model, track[i], &of));
        /* torch has overheads on thread 1, and runtime calls on the thread of their op */
        if (!on_device && kind[i] != MTPROF_EVENT_KIND_OVERHEAD &&
            kind[i] != MTPROF_EVENT_KIND_RUNTIME) {
            CHECK_EQ_U64(of.number, strtoull(field(line, " thread=", " "), NULL, 10));
        }
    }
    CHECK_EQ_U64(i, 335);
    CHECK_EQ_U64(i, n);
    mtprof_model_free(model);
    free(text);
}

/* Number of an attribute of torch's dump: 'thread': 1, */
static int64_t attribute(const char *line, const char *key)
{
    return strtoll(field(line, key, ",}"), NULL, 10);
}

static int collect(void *context, const void *bytes, size_t length)
{
    char *to = context;
    REQUIRE(strlen(to) + length < 1024);
    strncat(to, bytes, length);
    return 0;
}

static void check_shapes(mtprof_model *model, uint32_t inputs, const char *line)
{
    char shown[1024] = "[]";
    const uint64_t *words = NULL;
    uint32_t n = 0;
    if (inputs != 0) {
        mtb_writer writer;
        REQUIRE(mtprof_model_inputs(model, inputs, &words, &n));
        shown[0] = '\0';
        REQUIRE(mtb_writer_init(&writer, collect, shown));
        mtprof__inputs_view view = {.model = model, .words = words, .n_words = n};
        mtprof__write_input_shapes(&writer, &view);
        CHECK_EQ_I64(mtb_writer_finish(&writer), 0);
    }
    CHECK_EQ_STR(shown, field(line, "'input_shapes': '", "'"));
}

/* Attributes of the first events, as torch's objects have them. */
TEST(full_trace_gives_torchs_attributes)
{
    need_gzip();
    char *text = read_text(GOLDEN "full.evd.gz");
    mtprof_model *model = open_model(GOLDEN "full.fix.json.gz");
    uint64_t n = findings_of(model).events;
    const uint8_t *kind = column(model, MTPROF_COLUMN_KIND);
    const uint32_t *inputs = column(model, MTPROF_COLUMN_INPUTS);
    const int64_t *sequence = column(model, MTPROF_COLUMN_SEQUENCE);
    const uint32_t *forward = column(model, MTPROF_COLUMN_FORWARD_THREAD);
    const uint64_t *ids = column(model, MTPROF_COLUMN_CORRELATION);
    const int64_t *cpu = column(model, MTPROF_COLUMN_ALLOCATED_CPU);
    const int64_t *device = column(model, MTPROF_COLUMN_ALLOCATED_DEVICE);
    char *rest = text;
    uint64_t i = 0;
    int ops = 0;
    for (char *line; (line = next_line(&rest, "{'id': ")) != NULL; i++) {
        while (i < n && kind[i] == MTPROF_EVENT_KIND_FUNCTION) {
            i++;
        }
        REQUIRE(i < n);
        if (kind[i] != MTPROF_EVENT_KIND_OP) {
            continue;
        }
        CHECK_EQ_I64((int64_t)ids[i], attribute(line, "'id': "));
        CHECK_EQ_I64(sequence[i], attribute(line, "'sequence_nr': "));
        CHECK_EQ_I64(forward[i], attribute(line, "'fwd_thread': "));
        CHECK_EQ_I64(cpu[i], attribute(line, "'cpu_memory_usage': "));
        CHECK_EQ_I64(device[i], attribute(line, "'device_memory_usage': "));
        check_shapes(model, inputs[i], line);
        ops++;
    }
    CHECK(ops >= 30);
    mtprof_model_free(model);
    free(text);
}

/* ---- traces of the CPU, and files that are none ---------------------------------------------- */

/* obs_c.txt, "mem": key, calls, CPU memory, self CPU memory (FLOPs are not in the trace). */
static void check_cpu_memory(mtprof_model *model)
{
    static const struct {
        const char *key;
        uint64_t count;
        int64_t total, self;
    } rows[] = {
        {"aten::add", 3, 192, 192},      {"[memory]", 10, -312, -312},
        {"aten::empty", 3, 72, 72},      {"aten::detach", 4, 0, 0},
        {"aten::linear", 1, 32, 0},      {"aten::t", 4, 0, 0},
        {"aten::as_strided", 7, 0, 0},   {"aten::addmm", 1, 32, 32},
        {"aten::sum", 2, 12, 12},        {"aten::ones_like", 1, 4, 0},
        {"aten::empty_like", 2, 36, 0},  {"aten::empty_strided", 1, 4, 4},
        {"AddmmBackward0", 1, 32, 0},    {"aten::mm", 1, 32, 0},
        {"aten::clone", 1, 32, 0},       {"TBackward0", 1, 0, 0},
        {"aten::resolve_conj", 4, 0, 0}, {"aten::fill_", 3, 0, 0},
        {"aten::uniform_", 2, 0, 0},     {"aten::copy_", 2, 0, 0},
        {"aten::transpose", 4, 0, 0},    {"aten::view", 1, 0, 0},
    };
    mtprof_averages *averages = NULL;
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        bool found = false;
        for (uint32_t i = 0; i < mtprof_averages_count(averages); i++) {
            mtprof_row row = row_at(averages, i);
            if (row.key.length == strlen(rows[r].key) &&
                memcmp(row.key.bytes, rows[r].key, row.key.length) == 0) {
                found = true;
                if (row.count != rows[r].count || row.cpu_memory != rows[r].total ||
                    row.self_cpu_memory != rows[r].self) {
                    FAIL("%s: %llu calls, %lld and %lld bytes", rows[r].key,
                         (unsigned long long)row.count, (long long)row.cpu_memory,
                         (long long)row.self_cpu_memory);
                }
            }
        }
        if (!found) {
            FAIL("no row for %s", rows[r].key);
        }
    }
    mtprof_averages_free(averages);
}

TEST(cpu_traces_have_torchs_memory)
{
    need_gzip();
    static const char *const paths[] = {GOLDEN "c0.json.gz", GOLDEN "c1.json.gz"};
    for (int i = 0; i < 2; i++) {
        mtprof_model *model = open_model(paths[i]);
        mtprof_model_findings findings = findings_of(model);
        CHECK_EQ_U64(findings.skipped + findings.problems + findings.overlaps, 0);
        check_cpu_memory(model);
        mtprof_model_free(model);
    }
}

TEST(verbose_trace_has_stacks)
{
    need_gzip();
    mtprof_model *model = open_model(GOLDEN "c1.json.gz");
    const uint32_t *stack = column(model, MTPROF_COLUMN_STACK);
    const uint8_t *kind = column(model, MTPROF_COLUMN_KIND);
    uint32_t i = 0;
    while (kind[i] != MTPROF_EVENT_KIND_OP) {
        i++;
    }
    /* "<string>(13): op;<string>(27): f1;…;<string>(1): <module>;" */
    uint32_t node = stack[i];
    uint32_t parent = 0;
    mtprof_frame frame;
    REQUIRE(mtprof_model_stack(model, node, &parent, &frame));
    CHECK_EQ_STR(frame.function.bytes, "op");
    CHECK_EQ_STR(frame.file.bytes, "<string>");
    CHECK_EQ_U64(frame.line, 13);
    int depth = 1;
    for (; parent != 0; depth++) {
        REQUIRE(mtprof_model_stack(model, parent, &parent, &frame));
    }
    CHECK_EQ_I64(depth, 7);
    CHECK_EQ_STR(frame.function.bytes, "<module>");
    CHECK_EQ_U64(frame.line, 1);
    mtprof_model_free(model);
}

/* ---- there and back -------------------------------------------------------------------------- */

typedef struct text_block {
    char *bytes;
    size_t length;
} text_block;

static int append(void *context, const void *bytes, size_t length)
{
    text_block *block = context;
    char *larger = realloc(block->bytes, block->length + length + 1);
    if (larger == NULL) {
        return ENOMEM;
    }
    memcpy(larger + block->length, bytes, length);
    block->bytes = larger;
    block->length += length;
    larger[block->length] = '\0';
    return 0;
}

/* The whole table of a file, as torch would print it. */
static char *table_of(const char *path)
{
    text_block block = {NULL, 0};
    mtprof_output output = {.struct_size = sizeof output, .context = &block, .write = append};
    mtprof_table_options options = {.struct_size = sizeof options, .row_limit = -1};
    mtprof_averages *averages = NULL;
    mtprof_model *model = open_model(path);
    REQUIRE_OK(mtprof_averages_new(model, NULL, &averages));
    REQUIRE_OK(mtprof_averages_table(averages, &options, &output));
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    return block.bytes;
}

/* Ops and runtime calls of torch have ids of two families that collide, also in what we write of
 * such a trace; and folded ops must be in the file. */
TEST(an_export_of_torchs_trace_gives_the_same_table)
{
    static const char *const traces[] = {GOLDEN "plain.fix.json", GOLDEN "full.fix.json.gz",
                                         GOLDEN "c0.json.gz", GOLDEN "c1.json.gz"};
    need_gzip();
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        mtprof_model_options options = {.struct_size = sizeof options, .keep_duplicates = 1};
        mtprof_model *model = NULL;
        char path[512];
        (void)snprintf(path, sizeof path, "%s/again.json", mt_test_tmpdir());
        REQUIRE_OK(mtprof_model_open(traces[i], &options, &model));
        REQUIRE_OK(mtprof_export(model, MTPROF_EXPORT_CHROME, path, NULL));
        mtprof_model_free(model);
        char *before = table_of(traces[i]);
        char *after = table_of(path);
        CHECK_EQ_STR(after, before);
        free(before);
        free(after);
    }
}

TEST(event_list_export_is_scopes)
{
    mtprof_model *model = open_model(GOLDEN "el.json");
    const uint8_t *kind = column(model, MTPROF_COLUMN_KIND);
    const int64_t *self = column(model, MTPROF_COLUMN_SELF_NS);
    const uint32_t *track = column(model, MTPROF_COLUMN_TRACK);
    CHECK_EQ_U64(findings_of(model).events, 10);
    int64_t sum = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ_U64(kind[i], MTPROF_EVENT_KIND_SCOPE);
        sum += self[i];
    }
    CHECK_EQ_I64(sum, 347667); /* obs_c.txt: "Self CPU time total: 347.667us" */
    mtprof_track of;
    REQUIRE(mtprof_model_track(model, track[0], &of));
    CHECK_EQ_STR(of.process_name.bytes, "CPU functions");
    mtprof_model_free(model);
}

TEST(other_json_is_refused)
{
    static const struct {
        const char *path, *because;
    } files[] = {
        {GOLDEN "et.json", "without \"traceEvents\""},
        {GOLDEN "mt.json", "none of the entries is an event"},
        {MT_SOURCE_DIR "/tests/golden/mtt-1.0-closed.mtt.gz", "gunzip it first"},
    };
    int n = strcmp(mtb_gzip_library(), "none") != 0 ? 3 : 2;
    for (int i = 0; i < n; i++) {
        mtprof_model *model = NULL;
        CHECK_EQ_I64(mtprof_model_open(files[i].path, NULL, &model), MTPROF_EFORMAT);
        CHECK(model == NULL);
        const mtprof_error *error = mtprof_last_error();
        CHECK(strstr(error->message, files[i].because) != NULL);
        CHECK(strstr(error->message, files[i].path) != NULL);
    }
}
