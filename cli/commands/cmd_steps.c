/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof steps: the summaries that a flight recorder keeps of every step (docs/flight.md).
 */
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/units.h"

#include <mtprof/flight.h>

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    SHOWN_STEPS = 30,
    MOST_FILES = 4096,
    PATH_ROOM = 4096,
    LEAST_NAME = 12,
    FIXED_COLUMNS = 60 /* of the table, without the op's name */
};

static const char *const formats[] = {"table", "csv", NULL};

typedef struct steps_settings {
    cli_common common;
    bool slow;
    int format;
    int64_t limit;
} steps_settings;

#define AT(member) offsetof(steps_settings, member)

static const cli_option options[] = {
    {.name = "slow",
     .letter = 's',
     .type = CLI_FLAG,
     .help = "the slowest steps first, instead of the last ones in order",
     .offset = AT(slow)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "at most N steps of each file, or all (default 30; with --json and csv all)",
     .offset = AT(limit)},
    {.name = "format",
     .letter = 'f',
     .type = CLI_CHOICE,
     .value = "FORM",
     .choices = formats,
     .help = "table (default) or csv",
     .offset = AT(format)},
};

/* ---- what was read --------------------------------------------------------------------------- */

/* A summary with what it points to. */
typedef struct kept_step {
    mtprof_step_summary s;
    mtprof_step_op ops[MTPROF_STEPS_OPS];
    mtprof_step_device devices[MTPROF_STEPS_DEVICES];
    char names[MTPROF_STEPS_OPS][MTPROF_STEPS_NAME_BYTES];
    char types[MTPROF_STEPS_DEVICES][16];
} kept_step;

typedef struct steps_list {
    kept_step **items; /* those that are shown */
    size_t n, room, most;
    bool slow;
    uint64_t *durations; /* of each step; several that share a summary: the mean */
    size_t n_durations, durations_room;
    uint64_t all, lost, slowest_ns, slowest;
    mtprof_steps_info info;
    bool old; /* NAME.steps.old was there, too */
} steps_list;

static void keep_texts(kept_step *kept)
{
    mtprof_step_summary *s = &kept->s;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        kept->ops[i] = s->ops[i];
        size_t length = s->ops[i].name.length;
        length = length < sizeof kept->names[i] ? length : sizeof kept->names[i];
        memcpy(kept->names[i], s->ops[i].name.bytes, length);
        kept->ops[i].name = (mtprof_text){kept->names[i], length};
    }
    for (uint32_t i = 0; i < s->n_devices; i++) {
        kept->devices[i] = s->devices[i];
        size_t length = s->devices[i].type.length;
        length = length < sizeof kept->types[i] ? length : sizeof kept->types[i];
        memcpy(kept->types[i], s->devices[i].type.bytes, length);
        kept->devices[i].type = (mtprof_text){kept->types[i], length};
    }
    s->ops = kept->ops;
    s->devices = kept->devices;
}

static uint64_t mean_ns(const mtprof_step_summary *s)
{
    return s->duration_ns / (s->steps > 0 ? s->steps : 1);
}

static int slowest_first(const void *a, const void *b)
{
    const kept_step *left = *(kept_step *const *)a;
    const kept_step *right = *(kept_step *const *)b;
    uint64_t x = mean_ns(&left->s);
    uint64_t y = mean_ns(&right->s);
    return x != y ? (x < y ? 1 : -1) : left->s.first > right->s.first ? 1 : -1;
}

/* Brings the list back to its bound. It may have twice as many, so that this is seldom. */
static void drop_some(steps_list *list)
{
    if (list->n <= list->most) {
        return;
    }
    size_t extra = list->n - list->most;
    if (list->slow) {
        qsort(list->items, list->n, sizeof(kept_step *), slowest_first);
    }
    size_t from = list->slow ? list->most : 0;
    for (size_t i = 0; i < extra; i++) {
        free(list->items[from + i]);
    }
    if (!list->slow) {
        memmove(list->items, list->items + extra, list->most * sizeof(kept_step *));
    }
    list->n = list->most;
}

static bool grow(void **items, size_t *room, size_t need, size_t size)
{
    size_t more = *room * 2 > need ? *room * 2 : need + 16;
    void *grown = need <= *room ? *items : realloc(*items, more * size);
    if (grown == NULL) {
        return false;
    }
    *room = need <= *room ? *room : more;
    *items = grown;
    return true;
}

static bool add_step(steps_list *list, const mtprof_step_summary *s)
{
    kept_step *kept = calloc(1, sizeof *kept);
    if (kept == NULL || !grow((void **)&list->items, &list->room, list->n + 1, sizeof kept) ||
        !grow((void **)&list->durations, &list->durations_room, list->n_durations + 1,
              sizeof *list->durations)) {
        free(kept);
        return cli_no_memory("steps");
    }
    kept->s = *s;
    keep_texts(kept);
    list->items[list->n++] = kept;
    list->durations[list->n_durations++] = mean_ns(s);
    list->all += s->steps;
    list->lost += s->lost;
    if (mean_ns(s) > list->slowest_ns) {
        list->slowest_ns = mean_ns(s);
        list->slowest = s->first;
    }
    if (list->n / 2 > list->most) {
        drop_some(list);
    }
    return true;
}

static void free_list(steps_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i]);
    }
    free(list->items);
    free(list->durations);
}

static void add_info(mtprof_steps_info *to, const mtprof_steps_info *more)
{
    to->runs += more->runs;
    to->summaries += more->summaries;
    to->steps += more->steps;
    to->gaps += more->gaps;
    to->damaged += more->damaged;
    to->bytes_lost += more->bytes_lost;
    to->unknown += more->unknown;
    to->tail_bytes = more->tail_bytes;
    to->pid = more->pid != 0 ? more->pid : to->pid;
}

static bool read_file(const char *path, steps_list *list)
{
    mtprof_steps *steps = NULL;
    mtprof_step_summary s = {.struct_size = sizeof s};
    mtprof_steps_info info = {.struct_size = sizeof info};
    mtprof_status status = mtprof_steps_open(path, &steps);
    bool kept = true;
    while (status == MTPROF_OK && kept) {
        status = mtprof_steps_next(steps, &s);
        kept = status != MTPROF_OK || add_step(list, &s);
    }
    if (steps != NULL) {
        (void)mtprof_steps_get_info(steps, &info);
        add_info(&list->info, &info);
    }
    mtprof_steps_close(steps);
    return kept && (status == MTPROF_EEND || cli_ok(path, status));
}

/* The file and, before it, the one with the older half. */
static bool read_steps(const char *path, steps_list *list)
{
    char old[PATH_ROOM];
    struct stat st;
    int length = snprintf(old, sizeof old, "%s.old", path);
    list->old = length > 0 && (size_t)length < sizeof old && stat(old, &st) == 0;
    return (!list->old || read_file(old, list)) && read_file(path, list);
}

static int order_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median_ns(steps_list *list)
{
    if (list->n_durations == 0) {
        return 0;
    }
    qsort(list->durations, list->n_durations, sizeof *list->durations, order_u64);
    return list->durations[list->n_durations / 2];
}

static double busy_share(const mtprof_step_summary *s)
{
    double busy = 0;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        busy += s->devices[i].busy_ns;
    }
    double of = (double)s->duration_ns * s->n_devices;
    return of > 0 ? busy / of : (double)NAN;
}

/* ---- a table --------------------------------------------------------------------------------- */

static void print_when(int64_t real_ns)
{
    char text[32] = "-";
    time_t seconds = (time_t)(real_ns / 1000000000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL) {
        (void)strftime(text, sizeof text, "%m-%d %H:%M:%S", &utc);
    }
    printf("  %-14s", text);
}

static void print_row(const mtprof_step_summary *s, size_t name_width)
{
    char number[64];
    (void)snprintf(number, sizeof number, s->steps > 1 ? "%" PRIu64 "+%" PRIu64 : "%" PRIu64,
                   s->first, s->steps - 1);
    printf("%10s", number);
    print_when(s->start_real_ns);
    printf("  %8s", cli_duration((double)mean_ns(s)).text);
    double busy = busy_share(s);
    if (isfinite(busy)) {
        printf("  %3.0f%%", busy * 100 < 999 ? busy * 100 : 999);
    } else {
        printf("  %4s", "-");
    }
    printf("  %9s  ", s->rss_bytes >= 0 ? cli_bytes((double)s->rss_bytes).text : "-");
    if (s->n_ops > 0) {
        double share = s->duration_ns > 0 ? s->ops[0].self_ns / (double)s->duration_ns : 0;
        cli_print_text(stdout, s->ops[0].name, name_width);
        printf(" %3.0f%%", isfinite(share) && share < 9.99 ? share * 100 : 999);
    }
    if (s->lost > 0) {
        printf(" %s%s lost%s", cli_style(CLI_YELLOW), cli_count(s->lost).text,
               cli_style(CLI_PLAIN));
    }
    putchar('\n');
}

static void print_head(const char *path, steps_list *list)
{
    printf("%s", cli_style(CLI_BOLD));
    cli_print_text(stdout, cli_text(path), 0);
    printf("%s: %s step%s", cli_style(CLI_PLAIN), cli_count(list->all).text, cli_plural(list->all));
    if (list->info.runs > 1) {
        printf(" of %s runs", cli_count(list->info.runs).text);
    }
    if (list->all > 0) {
        printf(", median %s,\n  slowest %s (step %" PRIu64 ")",
               cli_duration((double)median_ns(list)).text,
               cli_duration((double)list->slowest_ns).text, list->slowest);
    }
    putchar('\n');
}

static void print_notes(const steps_list *list)
{
    const mtprof_steps_info *info = &list->info;
    cli_print_count(info->gaps, "step",
                    "have no summary: the disk was full, or a record is damaged");
    cli_print_count(info->damaged, "place", "of the file is no summary: damaged, or half written");
    cli_print_count(info->tail_bytes, "byte", "at the end: a summary that is not complete");
    cli_print_count(list->lost, "event", "lost by the recorder");
}

static void print_table(const steps_settings *settings, const char *path, steps_list *list)
{
    size_t longest = LEAST_NAME;
    for (size_t i = 0; i < list->n; i++) {
        const mtprof_step_summary *s = &list->items[i]->s;
        size_t width = s->n_ops > 0 ? cli_text_width(s->ops[0].name) : 0;
        longest = width > longest ? width : longest;
    }
    size_t width = cli_fit_column(longest, LEAST_NAME, FIXED_COLUMNS, cli_term_width());
    print_head(path, list);
    if (list->n > 0) {
        printf("\n%s%10s  %-14s  %8s  %4s  %9s  %s%s\n", cli_style(CLI_DIM), "Step", "Began (UTC)",
               "Took", "Busy", "RSS", "Most self time", cli_style(CLI_PLAIN));
    }
    for (size_t i = 0; i < list->n; i++) {
        print_row(&list->items[i]->s, width);
    }
    if (!settings->common.quiet) {
        print_notes(list);
        cli_print_more(list->n_durations - list->n, "row");
    }
}

/* ---- csv ------------------------------------------------------------------------------------- */

static void print_quoted(mtprof_text text)
{
    putchar('"');
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] == '"') {
            putchar('"');
        }
        putchar(text.bytes[i]);
    }
    putchar('"');
}

static void print_csv(const char *path, const steps_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const mtprof_step_summary *s = &list->items[i]->s;
        print_quoted(cli_text(path));
        printf(",%u,%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRIu64 ",", s->run, s->first, s->steps,
               s->start_real_ns, s->duration_ns);
        if (isfinite(busy_share(s))) {
            printf("%.6g", busy_share(s));
        }
        printf(",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.17g,%.6g,%" PRIu64 ",%" PRIu64 ",",
               s->rss_bytes, s->allocated, s->allocated_most, s->events, s->read_share, s->lost,
               s->missed);
        print_quoted(s->n_ops > 0 ? s->ops[0].name : (mtprof_text){"", 0});
        printf(",%.17g\n", s->n_ops > 0 ? s->ops[0].self_ns : 0);
    }
}

/* ---- json ------------------------------------------------------------------------------------ */

static void json_bytes(const char *key, int64_t bytes)
{
    if (bytes >= 0) {
        cli_json_int(key, bytes);
    }
}

static void json_step(const mtprof_step_summary *s)
{
    cli_json_object(NULL);
    cli_json_uint("run", s->run);
    cli_json_uint("step", s->first);
    cli_json_uint("steps", s->steps);
    cli_json_int("start_unix_ns", s->start_real_ns);
    cli_json_int("start_ns", s->start_ns);
    cli_json_uint("duration_ns", s->duration_ns);
    cli_json_real("events", s->events);
    cli_json_real("read_share", s->read_share);
    cli_json_uint("lost", s->lost);
    cli_json_uint("chunks_missed", s->missed);
    json_bytes("rss_bytes", s->rss_bytes);
    json_bytes("allocated_bytes", s->allocated);
    json_bytes("allocated_most_bytes", s->allocated_most);
    cli_json_real("self_ns", s->self_ns);
    cli_json_uint("rows_all", s->ops_all);
    cli_json_uint("devices_all", s->devices_all);
    cli_json_array("devices");
    for (uint32_t i = 0; i < s->n_devices; i++) {
        cli_json_object(NULL);
        cli_json_text("device_type", s->devices[i].type);
        cli_json_uint("device_index", s->devices[i].index);
        cli_json_real("busy_ns", s->devices[i].busy_ns);
        json_bytes("allocated_bytes", s->devices[i].allocated);
        json_bytes("reserved_bytes", s->devices[i].reserved_memory);
        cli_json_end_object();
    }
    cli_json_end_array();
    cli_json_array("rows");
    for (uint32_t i = 0; i < s->n_ops; i++) {
        cli_json_object(NULL);
        cli_json_text("name", s->ops[i].name);
        cli_json_bool("name_cut", s->ops[i].name_cut != 0);
        cli_json_uint("kind", s->ops[i].kind);
        cli_json_uint("device", s->ops[i].device);
        cli_json_real("self_ns", s->ops[i].self_ns);
        cli_json_real("total_ns", s->ops[i].total_ns);
        cli_json_real("calls", s->ops[i].calls);
        cli_json_end_object();
    }
    cli_json_end_array();
    cli_json_end_object();
}

static void print_json(const char *path, steps_list *list)
{
    cli_json_object(NULL);
    cli_json_string("file", path);
    cli_json_uint("pid", list->info.pid);
    cli_json_uint("runs", list->info.runs);
    cli_json_uint("steps", list->all);
    cli_json_uint("summaries", list->info.summaries);
    cli_json_uint("without_summary", list->info.gaps);
    cli_json_uint("damaged", list->info.damaged);
    cli_json_uint("tail_bytes", list->info.tail_bytes);
    cli_json_uint("lost", list->lost);
    cli_json_uint("median_ns", median_ns(list));
    cli_json_uint("slowest_ns", list->slowest_ns);
    cli_json_uint("slowest_step", list->slowest);
    cli_json_uint("left_out", list->n_durations - list->n);
    cli_json_array("summaries_shown");
    for (size_t i = 0; i < list->n; i++) {
        json_step(&list->items[i]->s);
    }
    cli_json_end_array();
    cli_json_end_object();
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct paths {
    char **items;
    size_t n, room;
} paths;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static bool add_path(paths *to, const char *folder, const char *name)
{
    char path[PATH_ROOM];
    int length = folder != NULL ? snprintf(path, sizeof path, "%s/%s", folder, name)
                                : snprintf(path, sizeof path, "%s", name);
    char *copy = length > 0 && (size_t)length < sizeof path ? strdup(path) : NULL;
    if (copy == NULL || !grow((void **)&to->items, &to->room, to->n + 1, sizeof copy)) {
        free(copy);
        return cli_no_memory("steps");
    }
    to->items[to->n++] = copy;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The operand, or the files of a folder. False: the error was printed. */
static bool find_paths(const char *operand, paths *to)
{
    struct stat st;
    DIR *folder = stat(operand, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(operand) : NULL;
    if (folder == NULL) {
        return add_path(to, NULL, operand);
    }
    bool ok = true;
    for (const struct dirent *e; ok && to->n < MOST_FILES && (e = readdir(folder)) != NULL;) {
        ok = !ends_with(e->d_name, ".steps") || add_path(to, operand, e->d_name);
    }
    closedir(folder);
    if (to->n > 1) {
        qsort(to->items, to->n, sizeof *to->items, by_text);
    }
    if (ok && to->n == 0) {
        cli_error("%s: no file of step summaries (NAME.steps) is there", operand);
        cli_hint("a flight recorder writes it, see docs/flight.md");
    } else if (to->n == MOST_FILES) {
        cli_error("%s: only the first %d files are read", operand, MOST_FILES);
    }
    return ok && to->n > 0;
}

static int show_file(const steps_settings *s, const char *path, size_t index)
{
    bool all = s->limit < 0 || (s->limit == 0 && (s->common.json || s->format != 0));
    steps_list list = {.slow = s->slow,
                       .most = all ? SIZE_MAX / 2
                                   : (s->limit != 0 ? (size_t)s->limit : (size_t)SHOWN_STEPS)};
    bool read = read_steps(path, &list);
    drop_some(&list);
    if (read && s->slow && list.n > 1) {
        qsort(list.items, list.n, sizeof *list.items, slowest_first);
    }
    if (read && s->common.json) {
        print_json(path, &list);
    } else if (read && s->format != 0) {
        print_csv(path, &list);
    } else if (read) {
        if (index > 0) {
            putchar('\n');
        }
        print_table(s, path, &list);
    }
    bool damaged = list.info.damaged > 0;
    free_list(&list);
    return !read ? CLI_FAILED : damaged ? CLI_DAMAGED : CLI_OK;
}

static int run(const cli_call *call)
{
    const steps_settings *s = call->settings;
    paths files = {0};
    int code = find_paths(call->operands[0], &files) ? CLI_OK : CLI_FAILED;
    if (code == CLI_OK && s->common.json) {
        cli_json_object(NULL);
        cli_json_array("files");
    } else if (code == CLI_OK && s->format != 0) {
        puts("file,run,step,steps,start_unix_ns,duration_ns,busy,rss_bytes,allocated_bytes,"
             "allocated_most_bytes,events,read_share,lost,chunks_missed,top_name,top_self_ns");
    }
    bool begun = code == CLI_OK;
    for (size_t i = 0; i < files.n; i++) {
        int one = show_file(s, files.items[i], i);
        code = code == CLI_OK || one == CLI_FAILED ? one : code;
        free(files.items[i]);
    }
    free(files.items);
    if (begun && s->common.json) {
        cli_json_end_array();
        cli_json_end_object();
    }
    return cli_finish_stdout(code);
}

const cli_command cli_cmd_steps = {
    .name = "steps",
    .summary = "What every step of a job was, from its flight recorder",
    .operands = "FILE|FOLDER",
    .details = "FILE is NAME.steps of a flight recorder; of a FOLDER all of them are shown. The "
               "job may run meanwhile, or have been killed.\n\n"
               "Steps that are so short that they share a summary are shown as 12+3: step 12 and "
               "the three that follow, with their mean time. Busy: the devices' part of the time. "
               "Most self time: the op, scope or kernel, and its part of the step.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(steps_settings),
    .run = run,
};
