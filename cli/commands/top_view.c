/* SPDX-License-Identifier: Apache-2.0
 *
 * The picture of `mtprof top`, see top_view.h.
 */
#include "cli/commands/top_view.h"

#include "cli/commands/top_target.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/units.h"

#include <mtprof/model.h>

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_NAME = 12,
    TEXT_ROOM = 160,
    HEAD_LINES = 5 /* facts, an empty line is not among them, and the head of the table */
};

const char *const cli_top_sorts[] = {"self", "total", "calls", "mean", "name", NULL};
static_assert(sizeof cli_top_sorts / sizeof *cli_top_sorts == MTPROF_LIVE_SORT_COUNT + 1,
              "one each");
const char *const cli_top_groups[] = {"op", "module", "thread", "shapes", NULL};
static const uint32_t group_bits[CLI_TOP_GROUPS] = {0, MTPROF_LIVE_BY_MODULE, MTPROF_LIVE_BY_THREAD,
                                                    MTPROF_LIVE_BY_SHAPES};
static const char *const group_heads[CLI_TOP_GROUPS] = {"", "Module", "Thread", "Shapes"};

/* ---- asking ---------------------------------------------------------------------------------- */

static mtprof_status ask(cli_top *top, const char *name)
{
    const mtprof_live_query query = {.struct_size = sizeof query,
                                     .group = group_bits[top->group],
                                     .sort = top->sort,
                                     .name = name,
                                     .functions = top->functions};
    return mtprof_live_get_rows(top->live, &query, &top->rows, &top->n_rows);
}

mtprof_status cli_top_ask(cli_top *top)
{
    top->info = (mtprof_live_info){.struct_size = sizeof top->info};
    mtprof_status status = mtprof_live_get_info(top->live, &top->info);
    if (status == MTPROF_OK) {
        status = ask(top, NULL); /* shares are of everything */
    }
    top->self_sum_ns[0] = top->self_sum_ns[1] = 0;
    for (uint32_t i = 0; status == MTPROF_OK && i < top->n_rows; i++) {
        bool function = top->rows[i].kind == MTPROF_EVENT_KIND_FUNCTION; /* beside, not among ops */
        top->self_sum_ns[top->rows[i].device != 0] += function ? 0 : top->rows[i].self_ns;
    }
    return status == MTPROF_OK && top->filter[0] != '\0' ? ask(top, top->filter) : status;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {"running", "stopped", "gone", "closed"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}

/* What happened to the recording, for people. */
static const char *state_text(uint32_t state)
{
    switch (state) {
    case MTPROF_LIVE_RUNNING: return "running";
    case MTPROF_LIVE_STOPPED: return "recording has stopped";
    case MTPROF_LIVE_GONE: return "process is gone";
    default: return "recording has ended";
    }
}

static double seconds(const cli_top *top)
{
    return top->info.window_ns > 0 ? (double)top->info.window_ns / 1e9 : 0;
}

static double per_second(const cli_top *top, double count)
{
    return top->info.window_ns > 0 ? count / seconds(top) : 0;
}

/* Of the events in the window: read. */
static double read_share(const cli_top *top)
{
    uint64_t all = top->info.bytes_new;
    return all > 0 ? (double)top->info.bytes_read / (double)all : 1;
}

/* "12.3 M": three digits and a power of 1000. */
static cli_quantity rate(double count)
{
    static const char *const powers[] = {"", " k", " M", " G"};
    cli_quantity out;
    size_t power = 0;
    while (count >= 999.5 && power < 3) {
        count /= 1000;
        power++;
    }
    int digits = count >= 99.95 || (power == 0 && count == (double)(int64_t)count) ? 0
                 : count >= 9.995                                                  ? 1
                                                                                   : 2;
    (void)snprintf(out.text, sizeof out.text, "%.*f%s", digits, count, powers[power]);
    return out;
}

/* A line, cut to the width. */
static void print_line(FILE *out, enum cli_style style, const char *text, uint32_t width)
{
    fputs(cli_style(style), out);
    cli_print_text(out, cli_text(text), cli_text_width(cli_text(text)) > width ? width : 0);
    fputs(style != CLI_PLAIN ? cli_style(CLI_PLAIN) : "", out);
    fputc('\n', out);
}

/* printf that adds to a text, as far as there is room. */
static void add(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
}

static void print_title(const cli_top *top, FILE *out, uint32_t width)
{
    char text[512] = "";
    char name[64] = "";
    const mtprof_live_info *info = &top->info;
    bool running = info->state == MTPROF_LIVE_RUNNING;
    const char *slash = strrchr(top->path, '/');
    if (running && top->known_process) {
        cli_process_name(info->pid, name, sizeof name);
    }
    add(text, sizeof text, "mtprof top   %s   pid %" PRIu64, slash != NULL ? slash + 1 : top->path,
        info->pid);
    if (name[0] != '\0') {
        add(text, sizeof text, " (%s)", name);
    }
    add(text, sizeof text, "   %s", state_text(info->state));
    add(text, sizeof text, running ? " for %s" : " after %s",
        cli_duration((double)(info->now_ns - info->start_ns)).text);
    print_line(out, running ? CLI_BOLD : CLI_YELLOW, text, width);
}

static void print_rates(const cli_top *top, FILE *out, uint32_t width)
{
    char text[512] = "";
    const mtprof_live_info *info = &top->info;
    bool trouble = info->lost > 0 || info->damaged > 0;
    add(text, sizeof text, "%s events/s", rate(per_second(top, info->events_all)).text);
    if (info->step >= 0) {
        add(text, sizeof text, "   step %" PRId64 ", %s/s", info->step,
            rate(per_second(top, info->steps)).text);
    } else if (info->steps > 0) {
        add(text, sizeof text, "   %s steps/s", rate(per_second(top, info->steps)).text);
    }
    add(text, sizeof text, "   %u thread%s   lost %s", info->threads, cli_plural(info->threads),
        cli_count(info->lost).text);
    if (info->missed > 0) {
        add(text, sizeof text, "   missed %s chunk%s", cli_count(info->missed).text,
            cli_plural(info->missed));
    }
    if (info->damaged > 0) {
        add(text, sizeof text, ", %s damaged", cli_count(info->damaged).text);
    }
    if (info->rows_merged > 0) {
        add(text, sizeof text, ", rows merged");
    }
    print_line(out, trouble ? CLI_RED : CLI_PLAIN, text, width);
}

static void print_memory(const cli_top *top, FILE *out, uint32_t width)
{
    char text[512] = "memory";
    const mtprof_live_info *info = &top->info;
    int64_t rss =
        info->state == MTPROF_LIVE_RUNNING && top->known_process ? cli_process_rss(info->pid) : -1;
    if (info->allocated >= 0) {
        add(text, sizeof text, " %s allocated", cli_bytes((double)info->allocated).text);
    }
    if (rss >= 0) {
        add(text, sizeof text, "%s %s RSS", info->allocated >= 0 ? "," : "",
            cli_bytes((double)rss).text);
    }
    if (info->allocated < 0 && rss < 0) {
        add(text, sizeof text, " not recorded");
    }
    add(text, sizeof text, ", trace %s", cli_bytes((double)info->file_bytes).text);
    for (uint32_t i = 0; i < info->devices; i++) {
        mtprof_live_device device = {.struct_size = sizeof device};
        if (mtprof_live_get_device(top->live, i, &device) != MTPROF_OK) {
            continue;
        }
        double busy = info->window_ns > 0 ? 100 * device.busy_ns / (double)info->window_ns : 0;
        add(text, sizeof text, "   %.*s:%u %.0f %% busy", (int)device.type.length,
            device.type.bytes, device.index, busy < 100 ? busy : 100);
        if (device.allocated >= 0) {
            add(text, sizeof text, ", %s", cli_bytes((double)device.allocated).text);
        }
    }
    print_line(out, CLI_PLAIN, text, width);
}

static void print_choice(const cli_top *top, FILE *out, uint32_t width)
{
    char text[256] = "";
    add(text, sizeof text, "last %.3g s, by %s, %s", seconds(top), cli_top_groups[top->group],
        top->sort == MTPROF_LIVE_SORT_NAME ? "in order of names" : "largest ");
    if (top->sort != MTPROF_LIVE_SORT_NAME) {
        add(text, sizeof text, "%s%s first", cli_top_sorts[top->sort],
            top->sort == MTPROF_LIVE_SORT_CALLS ? "" : " time");
    }
    if (read_share(top) < 0.995) {
        add(text, sizeof text, "   read %.2g %% of the events", 100 * read_share(top));
    }
    if (top->filter[0] != '\0') {
        add(text, sizeof text, "   names with \"%s\"", top->filter);
    }
    add(text, sizeof text, "%s", top->functions ? "   with functions" : "");
    if (top->paused) {
        add(text, sizeof text, "   PAUSED");
    }
    print_line(out, top->paused ? CLI_YELLOW : CLI_PLAIN, text, width);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* What stands beside the name of a row. */
static mtprof_text second_text(const cli_top *top, const mtprof_live_row *row, char *room,
                               size_t size)
{
    mtprof_thread_info thread;
    if (row->device != 0) {
        mtprof_live_device device = {.struct_size = sizeof device};
        (void)mtprof_live_get_device(top->live, row->device - 1, &device);
        (void)snprintf(room, size, "%.*s:%u", (int)device.type.length,
                       device.type.bytes != NULL ? device.type.bytes : "", device.index);
        return cli_text(room);
    }
    switch (group_bits[top->group]) {
    case MTPROF_LIVE_BY_MODULE: return row->module;
    case MTPROF_LIVE_BY_SHAPES: return row->shapes;
    case MTPROF_LIVE_BY_THREAD:
        if (!mtprof_live_thread(top->live, row->thread, &thread)) {
            (void)snprintf(room, size, "#%u", row->thread);
        } else if (thread.name.length > 0) {
            (void)snprintf(room, size, "%" PRIu64 " %.*s", thread.os_id, (int)thread.name.length,
                           thread.name.bytes);
        } else {
            (void)snprintf(room, size, "%" PRIu64, thread.os_id);
        }
        return cli_text(room);
    default: return cli_text("");
    }
}

static mtprof_text row_name(const mtprof_live_row *row)
{
    return row->name.length > 0 ? row->name : cli_text("(no name)");
}

/* Widths of the two columns of texts, and how many of numbers there is room for. */
typedef struct widths {
    size_t name, second; /* second 0: there is none */
    size_t n_numbers;
} widths;

/* Of each column of numbers, with the blanks before it: self, wall, share, calls, mean. */
static const size_t number_widths[] = {12, 8, 8, 10, 10};
enum {
    NUMBERS = sizeof number_widths / sizeof *number_widths
};

/* The columns of numbers that leave room for names; how wide they are together. */
static size_t fit_numbers(uint32_t width, size_t *n)
{
    size_t used = number_widths[0];
    for (*n = 1; *n < NUMBERS && used + number_widths[*n] + LEAST_NAME <= width; ++*n) {
        used += number_widths[*n];
    }
    return used;
}

static widths fit(const cli_top *top, size_t first, size_t n, uint32_t width)
{
    char room[TEXT_ROOM];
    size_t name = 4;
    size_t second = 0;
    for (size_t i = first; i < first + n; i++) {
        size_t one = cli_text_width(row_name(&top->rows[i]));
        size_t two = cli_text_width(second_text(top, &top->rows[i], room, sizeof room));
        name = one > name ? one : name;
        second = two > second ? two : second;
    }
    if (second > 0 && second < strlen(group_heads[top->group])) {
        second = strlen(group_heads[top->group]);
    }
    size_t n_numbers = 0;
    size_t numbers = fit_numbers(width, &n_numbers);
    size_t texts = width > numbers + LEAST_NAME ? width - numbers : LEAST_NAME;
    if (second == 0 || texts < LEAST_NAME + 4) {
        return (widths){name < texts ? name : texts, 0, n_numbers};
    }
    texts -= 2;
    if (name + second > texts) { /* the longer one gives way, up to a half */
        size_t half = texts / 2;
        name = second <= half ? texts - second : name <= half ? name : half;
        second = texts > name ? texts - name : 1;
    }
    return (widths){name, second, n_numbers};
}

static void print_head(const cli_top *top, FILE *out, widths w)
{
    fputs(cli_style(CLI_BOLD), out);
    cli_print_text(out, cli_text("Name"), w.name);
    if (w.second > 0) {
        fputs("  ", out);
        cli_print_text(out, cli_text(top->group != 0 ? group_heads[top->group] : "On"), w.second);
    }
    static const char *const heads[NUMBERS] = {"Self", "Wall", "Share", "Calls/s", "Mean"};
    for (size_t i = 0; i < w.n_numbers; i++) {
        (void)fprintf(out, "%*s", (int)number_widths[i], heads[i]);
    }
    fputs(cli_style(CLI_PLAIN), out);
    fputc('\n', out);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* A column of numbers, by its place. */
static cli_quantity number_text(const cli_top *top, const mtprof_live_row *row, size_t place)
{
    cli_quantity out = {""};
    double self = row->self_ns > 0 ? row->self_ns : 0;
    switch (place) {
    case 0: return cli_duration(self);
    case 1:
        (void)snprintf(out.text, sizeof out.text, "%.1f %%",
                       percent(self, (double)top->info.window_ns));
        return out;
    case 2:
        if (row->kind != MTPROF_EVENT_KIND_FUNCTION) {
            (void)snprintf(out.text, sizeof out.text, "%.1f %%",
                           percent(self, top->self_sum_ns[row->device != 0]));
        }
        return out;
    case 3: return rate(per_second(top, row->calls));
    default: return row->ended > 0 ? cli_duration(row->total_ns / row->ended) : (cli_quantity){"-"};
    }
}

static void print_row(const cli_top *top, FILE *out, const mtprof_live_row *row, widths w)
{
    char room[TEXT_ROOM];
    cli_print_text(out, row_name(row), w.name);
    if (w.second > 0) {
        fputs("  ", out);
        cli_print_text(out, second_text(top, row, room, sizeof room), w.second);
    }
    for (size_t i = 0; i < w.n_numbers; i++) {
        (void)fprintf(out, "%*s", (int)number_widths[i], number_text(top, row, i).text);
    }
    fputc('\n', out);
}

size_t cli_top_page(const cli_top *top, uint32_t height)
{
    (void)top;
    return height > HEAD_LINES + 1 ? height - HEAD_LINES - 1 : 1; /* and the line of keys */
}

void cli_top_print(const cli_top *top, FILE *out, uint32_t width, uint32_t height)
{
    size_t first = top->first < top->n_rows ? top->first : 0;
    size_t n = top->n_rows - first;
    size_t most = height > 0 ? cli_top_page(top, height) : n;
    n = n < most ? n : most;
    if (!top->quiet) {
        print_title(top, out, width);
        print_rates(top, out, width);
        print_memory(top, out, width);
        print_choice(top, out, width);
    }
    widths w = fit(top, first, n, width);
    print_head(top, out, w);
    for (size_t i = first; i < first + n; i++) {
        print_row(top, out, &top->rows[i], w);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_devices(const cli_top *top)
{
    cli_json_array("devices");
    for (uint32_t i = 0; i < top->info.devices; i++) {
        mtprof_live_device device = {.struct_size = sizeof device};
        if (mtprof_live_get_device(top->live, i, &device) != MTPROF_OK) {
            continue;
        }
        cli_json_object(NULL);
        cli_json_text("device_type", device.type);
        cli_json_uint("device_index", device.index);
        cli_json_real("busy", percent(device.busy_ns, (double)top->info.window_ns) / 100);
        if (device.allocated >= 0) {
            cli_json_int("allocated_bytes", device.allocated);
        }
        if (device.reserved_memory >= 0) {
            cli_json_int("reserved_bytes", device.reserved_memory);
        }
        cli_json_end_object();
    }
    cli_json_end_array();
}

static void json_row(const cli_top *top, const mtprof_live_row *row)
{
    char room[TEXT_ROOM];
    cli_json_object(NULL);
    cli_json_text("name", row->name);
    cli_json_string("kind", mtprof_event_kind_name(row->kind));
    if (top->group != 0 && row->device == 0) {
        cli_json_text(cli_top_groups[top->group], second_text(top, row, room, sizeof room));
    }
    if (row->device != 0) {
        cli_json_text("device", second_text(top, row, room, sizeof room));
    }
    cli_json_real("self_ns", row->self_ns);
    cli_json_real("share", percent(row->self_ns, top->self_sum_ns[row->device != 0]) / 100);
    cli_json_real("calls", row->calls);
    cli_json_real("calls_per_second", per_second(top, row->calls));
    cli_json_real("total_ns", row->total_ns);
    cli_json_real("mean_ns", row->ended > 0 ? row->total_ns / row->ended : 0);
    cli_json_end_object();
}

void cli_top_json(const cli_top *top, size_t limit)
{
    const mtprof_live_info *info = &top->info;
    cli_json_object(NULL);
    cli_json_string("trace", top->path);
    cli_json_uint("pid", info->pid);
    cli_json_string("state", state_name(info->state));
    cli_json_real("window_seconds", seconds(top));
    cli_json_real("events_per_second", per_second(top, info->events_all));
    cli_json_uint("events_read", info->events);
    cli_json_real("read_share", read_share(top));
    cli_json_real("steps_per_second", per_second(top, info->steps));
    if (info->step >= 0) {
        cli_json_int("step", info->step);
    }
    cli_json_uint("threads", info->threads);
    cli_json_uint("lost", info->lost);
    cli_json_uint("chunks_missed", info->missed);
    cli_json_uint("damaged", info->damaged);
    if (info->allocated >= 0) {
        cli_json_int("allocated_bytes", info->allocated);
    }
    if (info->state == MTPROF_LIVE_RUNNING && top->known_process) {
        cli_json_int("rss_bytes", cli_process_rss(info->pid));
    }
    json_devices(top);
    cli_json_array("rows");
    for (size_t i = 0; i < top->n_rows && i < limit; i++) {
        json_row(top, &top->rows[i]);
    }
    cli_json_end_array();
    cli_json_end_object();
}
