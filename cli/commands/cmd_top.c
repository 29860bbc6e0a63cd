/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof top: what takes the time in a recording that runs.
 */
#include "cli/command.h"
#include "cli/commands/top_target.h"
#include "cli/commands/top_view.h"
#include "cli/screen.h"
#include "cli/term.h"
#include "cli/units.h"

#include <mtprof/live.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ONCE_ROWS = 30,
    /* Of records, a second: a sample of that size takes a few percent of a core (docs/top.md). */
    BYTES_A_SECOND = 24 << 20,
    ONCE_BYTES = 256 << 20
};

static const int64_t second_ns = 1000000000;

typedef struct top_settings {
    cli_common common;
    bool once, all, functions;
    int64_t interval_ns, window_ns, limit;
    int sort, group;
    const char *filter;
} top_settings;

#define AT(member) offsetof(top_settings, member)

static const cli_option options[] = {
    {.name = "once",
     .letter = '1',
     .type = CLI_FLAG,
     .help = "print one table of the last seconds, and end",
     .offset = AT(once)},
    {.name = "interval",
     .letter = 'i',
     .type = CLI_DURATION,
     .value = "TIME",
     .help = "look again after this time (default 1s; 100ms to 1000s)",
     .offset = AT(interval_ns)},
    {.name = "window",
     .letter = 'w',
     .type = CLI_DURATION,
     .value = "TIME",
     .help = "the table is about this time (default 5s)",
     .offset = AT(window_ns)},
    {.name = "sort",
     .letter = 's',
     .type = CLI_CHOICE,
     .value = "KEY",
     .choices = cli_top_sorts,
     .help = "largest first by this: self (default), total, calls, mean; or name",
     .offset = AT(sort)},
    {.name = "group",
     .letter = 'g',
     .type = CLI_CHOICE,
     .value = "WHAT",
     .choices = cli_top_groups,
     .help = "rows by op (default), or also by module, thread or shapes",
     .offset = AT(group)},
    {.name = "filter",
     .letter = 'f',
     .type = CLI_TEXT,
     .value = "TEXT",
     .help = "only names that have this in them (* ? [a-z] as in patterns)",
     .offset = AT(filter)},
    {.name = "functions",
     .type = CLI_FLAG,
     .help = "functions of the host's language beside ops, too",
     .offset = AT(functions)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "at most N rows, or all, where it is not a screen (default 30; with --json all)",
     .offset = AT(limit)},
    {.name = "all",
     .letter = 'a',
     .type = CLI_FLAG,
     .help = "read every event, whatever that takes, instead of a sample where there are many",
     .offset = AT(all)},
};

/* ---- looking --------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads what is new and asks for the rows. */
static mtprof_status refresh(cli_top *top)
{
    mtprof_status status = mtprof_live_poll(top->live, 0);
    return status == MTPROF_OK ? cli_top_ask(top) : status;
}

/* ---- without a screen ------------------------------------------------------------------------ */

static size_t row_limit(const top_settings *s)
{
    if (s->limit != 0) {
        return s->limit < 0 ? SIZE_MAX : (size_t)s->limit;
    }
    return s->common.json ? SIZE_MAX : ONCE_ROWS;
}

static void print_once(cli_top *top, const top_settings *s)
{
    size_t limit = row_limit(s);
    if (s->common.json) {
        cli_top_json(top, limit);
        return;
    }
    uint32_t hidden = top->n_rows > limit ? top->n_rows - (uint32_t)limit : 0;
    top->n_rows -= hidden;
    cli_top_print(top, stdout, cli_term_width(), 0);
    if (top->n_rows == 0 && !s->common.quiet) {
        fputs("Nothing was recorded in this time.\n", stdout);
    } else if (!s->common.quiet) {
        cli_print_more(hidden, "row");
    }
}

/* One table after the other until the recording ends. */
static mtprof_status run_plain(cli_top *top, const top_settings *s)
{
    for (;;) {
        mtprof_status status = refresh(top);
        if (status != MTPROF_OK) {
            return status;
        }
        print_once(top, s);
        (void)fflush(stdout);
        if (s->once || s->common.json || top->info.state != MTPROF_LIVE_RUNNING ||
            ferror(stdout) != 0) {
            return MTPROF_OK;
        }
        putchar('\n');
        struct timespec wait = {s->interval_ns / second_ns, s->interval_ns % second_ns};
        (void)nanosleep(&wait, NULL);
    }
}

/* ---- on a screen ----------------------------------------------------------------------------- */

enum mode {
    MODE_TABLE,
    MODE_HELP,
    MODE_FILTER
};

typedef struct screen {
    cli_top *top;
    enum mode mode;
    char typed[CLI_TOP_FILTER]; /* of a filter that is being typed */
    size_t window;              /* place in window_choices */
} screen;

static const int64_t window_choices[] = {1, 5, 15, 60}; /* seconds */

static void print_help(FILE *out)
{
    fputs("Keys\n\n"
          "  q, Ctrl-C     quit\n"
          "  s             sort: self, total, calls, mean, name\n"
          "  g             group: op, module, thread, shapes\n"
          "  /             filter names: text, or a pattern with * ? [a-z]; empty: all\n"
          "  w             window: 1, 5, 15 or 60 seconds\n"
          "  f             functions of the host's language beside ops\n"
          "  p, space      pause: nothing is read until it is pressed again\n"
          "  up, down, page up, page down, home, end\n"
          "                scroll\n"
          "  h, ?          this help; any key goes back\n\n"
          "Self: time without what ran inside. Wall: of the window. Share: of all rows.\n"
          "Mean: of the calls that ended, with what ran inside.\n",
          out);
}

static void print_bottom(const screen *view, FILE *out, uint32_t width)
{
    if (view->mode == MODE_FILTER) {
        (void)fprintf(out, "filter: %s_\n", view->typed);
        return;
    }
    const char *keys = "q quit  s sort  g group  / filter  w window  p pause  ? help";
    (void)fprintf(out, "%s%.*s%s\n", cli_style(CLI_DIM), (int)width, keys, cli_style(CLI_PLAIN));
}

static void draw(const screen *view)
{
    uint32_t width, height;
    cli_screen_size(&width, &height);
    FILE *out = cli_screen_begin();
    if (out == NULL) {
        return;
    }
    if (view->mode == MODE_HELP) {
        print_help(out);
    } else {
        cli_top_print(view->top, out, width, height);
        size_t shown = view->top->n_rows - view->top->first;
        for (size_t i = shown; i < cli_top_page(view->top, height); i++) {
            fputc('\n', out);
        }
        print_bottom(view, out, width);
    }
    cli_screen_end();
}

static void scroll(cli_top *top, int64_t rows, int64_t pages)
{
    uint32_t width, height;
    cli_screen_size(&width, &height);
    size_t page = cli_top_page(top, height);
    int64_t last = top->n_rows > page ? (int64_t)(top->n_rows - page) : 0;
    int64_t first = (int64_t)top->first + rows + pages * (int64_t)page;
    top->first = (size_t)(first < 0 ? 0 : first > last ? last : first);
}

/* A key while a filter is being typed. */
static void type_filter(screen *view, int key)
{
    size_t length = strlen(view->typed);
    if (key == '\n' || key == '\r') {
        memcpy(view->top->filter, view->typed, sizeof view->typed);
        view->top->first = 0;
        view->mode = MODE_TABLE;
    } else if (key == '\033') {
        view->mode = MODE_TABLE;
    } else if ((key == 127 || key == '\b') && length > 0) {
        view->typed[length - 1] = '\0';
    } else if (key >= ' ' && key < 127 && length + 1 < sizeof view->typed) {
        view->typed[length] = (char)key;
    }
}

static void next_window(screen *view)
{
    view->window = (view->window + 1) % (sizeof window_choices / sizeof *window_choices);
    (void)mtprof_live_set_window(view->top->live, window_choices[view->window] * second_ns);
}

/* False: to quit. */
static bool press(screen *view, int key)
{
    cli_top *top = view->top;
    if (view->mode == MODE_FILTER) {
        type_filter(view, key);
        return true;
    }
    if (view->mode == MODE_HELP) {
        view->mode = MODE_TABLE;
        return key != 'q';
    }
    switch (key) {
    case 'q': return false;
    case 's': top->sort = (top->sort + 1) % MTPROF_LIVE_SORT_COUNT; break;
    case 'g': top->group = (top->group + 1) % CLI_TOP_GROUPS; break;
    case 'f': top->functions = !top->functions; break;
    case 'p':
    case ' ': top->paused = !top->paused; break;
    case 'w': next_window(view); break;
    case '/':
        view->mode = MODE_FILTER;
        memset(view->typed, 0, sizeof view->typed);
        break;
    case 'h':
    case '?': view->mode = MODE_HELP; break;
    case CLI_KEY_UP: scroll(top, -1, 0); break;
    case CLI_KEY_DOWN: scroll(top, 1, 0); break;
    case CLI_KEY_PAGE_UP: scroll(top, 0, -1); break;
    case CLI_KEY_PAGE_DOWN: scroll(top, 0, 1); break;
    case CLI_KEY_HOME: top->first = 0; break;
    case CLI_KEY_END: scroll(top, INT32_MAX, 0); break;
    default: break;
    }
    return true;
}

static mtprof_status run_screen(cli_top *top, const top_settings *s)
{
    screen view = {.top = top, .window = 1};
    int64_t interval_ms = s->interval_ns / 1000000;
    int64_t next_ms = 0;
    mtprof_status status = MTPROF_OK;
    int key = CLI_KEY_NONE;
    while (status == MTPROF_OK && key != CLI_KEY_CLOSED) {
        bool due = now_ms() >= next_ms;
        if (due && !top->paused) {
            status = refresh(top);
        } else {
            status = cli_top_ask(top); /* sorted and grouped otherwise, perhaps */
        }
        next_ms = due ? now_ms() + interval_ms : next_ms;
        top->first = top->first < top->n_rows ? top->first : 0;
        if (status == MTPROF_OK) {
            draw(&view);
            key = cli_screen_key(next_ms - now_ms());
        }
        if (key != CLI_KEY_NONE && key != CLI_KEY_RESIZE && !press(&view, key)) {
            break;
        }
    }
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static uint64_t most_bytes(const top_settings *s, bool screen_used)
{
    if (s->all) {
        return 0;
    }
    if (!screen_used && (s->once || s->common.json)) {
        return ONCE_BYTES;
    }
    uint64_t bytes = (uint64_t)((double)s->interval_ns / (double)second_ns * BYTES_A_SECOND);
    return bytes > 0 ? bytes : 1;
}

static bool check(const top_settings *s)
{
    if (s->interval_ns < second_ns / 10 || s->interval_ns > 1000 * second_ns) {
        cli_error("top: option '--interval': expected 100ms to 1000s");
        return false;
    }
    if (s->window_ns <= 0) {
        cli_error("top: option '--window': expected a time");
        return false;
    }
    if (s->filter != NULL && strlen(s->filter) >= CLI_TOP_FILTER) {
        cli_error("top: option '--filter': expected fewer than %d bytes", CLI_TOP_FILTER);
        return false;
    }
    return true;
}

static int run_on(const top_settings *s, const char *path)
{
    bool on_screen = !s->once && !s->common.json && cli_screen_possible();
    const mtprof_live_options live_options = {.struct_size = sizeof live_options,
                                              .window_ns = s->window_ns,
                                              .most_bytes = most_bytes(s, on_screen)};
    cli_top top = {.path = path,
                   .sort = (uint32_t)s->sort,
                   .group = (uint32_t)s->group,
                   .functions = s->functions,
                   .quiet = s->common.quiet};
    if (!cli_ok(path, mtprof_live_open(path, &live_options, &top.live))) {
        return CLI_FAILED;
    }
    (void)snprintf(top.filter, sizeof top.filter, "%s", s->filter != NULL ? s->filter : "");
    mtprof_live_info info = {.struct_size = sizeof info};
    (void)mtprof_live_get_info(top.live, &info);
    top.known_process = cli_process_maps(info.pid, path);
    int code = CLI_FAILED;
    if (!on_screen || cli_screen_open()) {
        mtprof_status status = on_screen ? run_screen(&top, s) : run_plain(&top, s);
        cli_screen_close();
        code = status == MTPROF_OK ? CLI_OK : cli_library_error(path, status);
    }
    mtprof_live_close(top.live);
    return code;
}

static int run(const cli_call *call)
{
    top_settings s = *(const top_settings *)call->settings;
    s.interval_ns = s.interval_ns != 0 ? s.interval_ns : second_ns;
    s.window_ns = s.window_ns != 0 ? s.window_ns : 5 * second_ns;
    if (!check(&s)) {
        return CLI_MISUSE;
    }
    char *path = cli_top_target(call->operands[0]);
    int code = path != NULL ? run_on(&s, path) : CLI_FAILED;
    free(path);
    return code;
}

const cli_command cli_cmd_top = {
    .name = "top",
    .summary = "What takes the time right now, in a recording that runs",
    .operands = "FILE|PID",
    .details =
        "Follows the file that a program records into, without the program noticing, and shows "
        "the ops of the last seconds, the largest self time first. PID: the file that this process "
        "records into. A recording that has ended is shown with its last seconds.\n"
        "\n"
        "\"Wall\" is self time in percent of the window: 200 % are two threads. \"Share\" is of "
        "all rows, those of devices among themselves. What is still open counts with the time it "
        "took so far.\n"
        "\n"
        "A program may record more than can be read beside it. Then a sample of the chunks is "
        "read, numbers are scaled up, and the second line says how much was read; --all reads "
        "everything.\n"
        "\n"
        "On a terminal it redraws until q is pressed; ? lists the keys. Elsewhere it prints a "
        "table each interval until the recording ends.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(top_settings),
    .run = run,
};
