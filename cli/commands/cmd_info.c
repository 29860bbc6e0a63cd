/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof info: what a trace contains, and how it was recorded.
 */
#include "cli/command.h"
#include "cli/commands/info_facts.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/format.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL = 12, /* columns of the labels on the left */
    MOST_COLUMNS = 79,
    MOST_LISTED = 20,     /* threads and windows, unless --all */
    MOST_STACK_LINES = 60 /* likewise */
};

typedef struct info_settings {
    cli_common common;
    bool all;
} info_settings;

static const cli_option options[] = {
    {.name = "all",
     .letter = 'a',
     .type = CLI_FLAG,
     .help = "list every thread and window, also where there are many",
     .offset = offsetof(info_settings, all)},
};

/* ---- for people ------------------------------------------------------------------------------ */

static void label(const char *name)
{
    printf("%s%-*s%s", cli_style(CLI_BOLD), LABEL, name, cli_style(CLI_PLAIN));
}

/* The label of a section, before its first line only. */
static void label_first(bool first, const char *name)
{
    if (first) {
        label(name);
    } else {
        printf("%*s", LABEL, "");
    }
}

static void print_file(const cli_facts *f)
{
    label("file");
    cli_print_text(stdout, cli_text(f->path), 0);
    printf("\n%*s%s", LABEL, "", f->format);
    if (f->reader != NULL) {
        printf(" %u.%u", f->trace.major, f->trace.minor);
    }
    printf(", %s", cli_bytes((double)f->file_bytes).text);
    if (f->reader != NULL) {
        fputs(f->info.closed != 0 ? ", closed" : ", not closed: still recording, or killed",
              stdout);
    }
    putchar('\n');
}

static void print_who(const cli_facts *f)
{
    label("recorded");
    printf("%s for %s", f->when, cli_duration((double)(f->info.end_ns - f->info.start_ns)).text);
    if (f->info.pid != 0) {
        printf(", process %" PRIu64, f->info.pid);
    }
    putchar('\n');
    if (f->reader != NULL) {
        label("id");
        printf("%s\n", f->uuid);
    }
}

/* An item of a list, which continues on the next line when the line is full. */
static void list_item(size_t *column, const char *item)
{
    size_t width = strlen(item);
    if (*column > LABEL && *column + 2 + width > MOST_COLUMNS) {
        printf(",\n%*s", LABEL, "");
        *column = LABEL;
    } else if (*column > LABEL) {
        fputs(", ", stdout);
        *column += 2;
    }
    fputs(item, stdout);
    *column += width;
}

static void print_wants(const cli_facts *f)
{
    size_t column = LABEL;
    label("holds");
    for (unsigned bit = 0; bit < 64; bit++) {
        const char *name = (f->info.wants >> bit & 1) != 0 ? cli_want_name(bit) : NULL;
        if (name != NULL) {
            list_item(&column, name);
        }
    }
    puts(column > LABEL ? "" : "unknown");
}

static void print_marks(const cli_facts *f)
{
    const struct {
        const char *name;
        uint64_t n;
    } kinds[] = {{"counter samples", f->marks.counters},
                 {"instants", f->marks.instants},
                 {"flow points", f->marks.flows}};
    size_t column = LABEL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].n > 0) {
            char item[64];
            if (column == LABEL) {
                label("marks");
            }
            (void)snprintf(item, sizeof item, "%s %s", kinds[i].name, cli_count(kinds[i].n).text);
            list_item(&column, item);
        }
    }
    fputs(column > LABEL ? "\n" : "", stdout);
}

static void print_events(const cli_facts *f)
{
    size_t column = LABEL;
    char item[64];
    label("events");
    (void)snprintf(item, sizeof item, "%s in all", cli_count(f->findings.events).text);
    list_item(&column, item);
    for (unsigned kind = 0; kind < CLI_KINDS; kind++) {
        if (f->kinds[kind] > 0) {
            (void)snprintf(item, sizeof item, "%s %s", cli_kinds_name(kind),
                           cli_count(f->kinds[kind]).text);
            list_item(&column, item);
        }
    }
    putchar('\n');
    print_marks(f);
    if (f->first_step >= 0) {
        label("steps");
        printf("%s, %d to %d\n", cli_count(f->n_steps).text, f->first_step, f->last_step);
    }
}

/* A line of the health section; the label only before the first. */
static void health_line(size_t *n, enum cli_style style, const char *text)
{
    label_first((*n)++ == 0, "health");
    printf("%s%s%s\n", cli_style(style), text, style == CLI_PLAIN ? "" : cli_style(CLI_PLAIN));
}

static void count_line(size_t *n, uint64_t count, const char *noun, const char *what)
{
    char text[160];
    if (count > 0) {
        (void)snprintf(text, sizeof text, "%s %s%s%s", cli_count(count).text, noun,
                       cli_plural(count), what);
        health_line(n, CLI_YELLOW, text);
    }
}

/* What a limit of the overhead left out, and of which names most. */
static void print_limit(size_t *n, const cli_facts *f)
{
    const mtprof_health *h = &f->health;
    enum {
        NAME = 32 /* columns */
    };
    char text[160];
    if (h->unrecorded > 0) {
        (void)snprintf(text, sizeof text, "%s event%s left out for the overhead limit of %g %%",
                       cli_count(h->unrecorded).text, cli_plural(h->unrecorded),
                       h->limit_ppm / 1e4);
        health_line(n, CLI_YELLOW, text);
    }
    count_line(n, h->unrecorded_estimated, "event", " of them by an estimate");
    for (size_t i = 0; i < f->n_sampled; i++) {
        const cli_sampled *s = &f->sampled[i];
        label_first((*n)++ == 0, "health");
        printf("  %s of ", cli_count(s->left_out).text);
        cli_print_text(stdout, s->name, cli_text_width(s->name) > NAME ? NAME : 0);
        printf(", %s recorded\n", cli_count(s->kept).text);
    }
    count_line(n, h->without_payload, "event", " without its payloads, for the limit");
}

static void print_health(const cli_facts *f)
{
    const mtprof_health *h = &f->health;
    size_t n = 0;
    char text[160];
    for (uint32_t cause = 0; cause < MTPROF_HEALTH_LOST_END; cause++) {
        if (h->lost_by[cause] > 0) {
            (void)snprintf(text, sizeof text, "%s event%s lost: %s",
                           cli_count(h->lost_by[cause]).text, cli_plural(h->lost_by[cause]),
                           mtprof_lost_cause(cause));
            health_line(&n, CLI_RED, text);
        }
    }
    if (f->n_problems > 0) {
        (void)snprintf(text, sizeof text, "%s damaged place%s, %s unreadable, the first at byte %s",
                       cli_count(f->n_problems).text, cli_plural(f->n_problems),
                       cli_bytes((double)f->findings.problem_bytes).text,
                       cli_count(f->findings.problem_offset).text);
        health_line(&n, CLI_RED, text);
    }
    count_line(&n, f->findings.truncated_in_gaps, "event", " cut off where records are missing");
    count_line(&n, h->evicted, "event", " let go by ring mode");
    count_line(&n, f->findings.truncated - f->findings.truncated_in_gaps, "event",
               " cut off by the end of a window");
    count_line(&n, f->findings.unmatched, "launch record", " without device work");
    count_line(&n, f->findings.orphans, "device record", " without a launch");
    count_line(&n, f->findings.ends_without_begin, "end", " without a begin");
    count_line(&n, f->findings.overlaps, "event", " outlived the one around it");
    count_line(&n, f->findings.clock_back, "event", " with a clock that went back");
    count_line(&n, h->texts_cut, "payload", " cut to fit");
    count_line(&n, f->findings.left_out, "detail", " left out: more than a model keeps");
    count_line(&n, h->stacks_missed, "event", " without its stack");
    count_line(&n, h->busy_at_stop, "thread", " busy at a stop");
    print_limit(&n, f);
    if (f->findings.skipped > 0) {
        (void)snprintf(text, sizeof text, "%s skipped: no events, or a field is missing",
                       cli_count(f->findings.skipped).text);
        health_line(&n, CLI_YELLOW, text);
    }
    if (n == 0) {
        health_line(&n, CLI_GREEN, "complete: nothing lost, nothing damaged");
    }
    if (h->written_behind != 0) {
        health_line(&n, CLI_PLAIN, "written behind: the file system cannot map files");
    }
    if (h->unlocked != 0) {
        health_line(&n, CLI_PLAIN, "recorded without a lock: the file system has none");
    }
    if (h->pair_cost_ps > 0) {
        (void)snprintf(text, sizeof text, "own cost %.1f ns an event",
                       (double)h->pair_cost_ps / 1e3);
        health_line(&n, CLI_PLAIN, text);
    }
    if (h->limit_ppm > 0) {
        double share =
            h->own_cost_of_ns > 0 ? (double)h->own_cost_ns / (double)h->own_cost_of_ns : 0;
        (void)snprintf(text, sizeof text,
                       "overhead %.2f %% by its own account, limit %g %%, %s change%s of level",
                       share * 100, h->limit_ppm / 1e4, cli_count(h->limit_changes).text,
                       cli_plural(h->limit_changes));
        health_line(&n, CLI_PLAIN, text);
    }
}

static void print_more(uint64_t n)
{
    if (n > 0) {
        printf("%*s%s%s more; --all lists them%s\n", LABEL, "", cli_style(CLI_DIM),
               cli_count(n).text, cli_style(CLI_PLAIN));
    }
}

static void print_windows(const cli_facts *f, size_t most)
{
    for (size_t i = 0; i < f->n_windows && i < most; i++) {
        const cli_window *w = &f->windows[i];
        label_first(i == 0, "windows");
        printf("%-3u %10s  from step %u, %s%s\n", w->number, cli_duration((double)w->open_ns).text,
               w->step, w->fate, w->parts > 1 ? ", with pauses" : "");
    }
    print_more(f->n_windows > most ? f->n_windows - most : 0);
}

static void print_track(const cli_facts *f, uint32_t index, bool first)
{
    const mtprof_track *t = &f->tracks[index].track;
    mtprof_device device;
    char text[64];
    label_first(first, t->device == 0 ? "threads" : "queues");
    if (t->device == 0) {
        (void)snprintf(text, sizeof text, "#%u tid %" PRId64, t->number, t->tid);
    } else if (mtprof_model_device(f->model, t->device, &device)) {
        (void)snprintf(text, sizeof text, "%.20s %d queue %" PRId64, device.type.bytes,
                       device.index, t->tid);
    } else {
        (void)snprintf(text, sizeof text, "queue %" PRId64, t->tid);
    }
    uint64_t events = f->tracks[index].events;
    printf("%-20s %14s event%s", text, cli_count(events).text, cli_plural(events));
    if (t->name.length > 0) {
        size_t room = MOST_COLUMNS - LABEL - 20 - 1 - 14 - 8 - 2;
        fputs(events == 1 ? "   " : "  ", stdout);
        cli_print_text(stdout, t->name, cli_text_width(t->name) > room ? room : 0);
    }
    putchar('\n');
}

static void print_tracks(const cli_facts *f, bool devices, size_t most)
{
    size_t shown = 0, left_out = 0;
    for (uint32_t i = 0; i < f->n_tracks; i++) {
        bool of_device = f->tracks[i].track.device != 0;
        if (of_device != devices || f->tracks[i].events == 0) {
            continue;
        }
        if (shown < most) {
            print_track(f, i, shown == 0);
            shown++;
        } else {
            left_out++;
        }
    }
    print_more(left_out);
}

/* A flight recorder's stacks of a program that hung: a text of many lines. */
static bool is_stacks(const mtprof_metadatum *m)
{
    static const char key[] = "dump_stacks";
    return m->key.length == sizeof key - 1 && memcmp(m->key.bytes, key, m->key.length) == 0 &&
           m->type == MTPROF_META_TEXT;
}

static void print_stacks(const cli_facts *f, bool all)
{
    mtprof_metadatum m;
    for (uint32_t i = 0; mtprof_model_metadata(f->model, i, &m); i++) {
        uint64_t lines = 0, left_out = 0;
        size_t at = 0, end = is_stacks(&m) ? m.text.length : 0;
        while (at < end) {
            const char *line = m.text.bytes + at;
            const char *stop = memchr(line, '\n', end - at);
            size_t length = stop != NULL ? (size_t)(stop - line) : end - at;
            at += length + 1;
            if (lines >= MOST_STACK_LINES && !all) {
                left_out++;
                continue;
            }
            label_first(lines++ == 0, "stacks");
            mtprof_text text = {line, length};
            size_t room = MOST_COLUMNS - LABEL;
            cli_print_text(stdout, text, cli_text_width(text) > room && !all ? room : 0);
            putchar('\n');
        }
        print_more(left_out);
    }
}

static void print_metadata(const cli_facts *f)
{
    mtprof_metadatum m;
    bool first = true;
    for (uint32_t i = 0; mtprof_model_metadata(f->model, i, &m); i++) {
        if (is_stacks(&m)) {
            continue;
        }
        label_first(first, "metadata");
        first = false;
        size_t width = cli_text_width(m.key), room = MOST_COLUMNS - LABEL;
        cli_print_text(stdout, m.key, width > 24 ? 24 : width);
        fputs(" = ", stdout);
        room -= (width > 24 ? 24 : width) + 3;
        cli_metadatum value;
        mtprof_text text = cli_metadatum_text(&m, &value);
        cli_print_text(stdout, text, cli_text_width(text) > room ? room : 0);
        putchar('\n');
    }
}

static void print_facts(const cli_facts *f, bool all)
{
    size_t most = all ? SIZE_MAX : MOST_LISTED;
    print_file(f);
    print_who(f);
    print_wants(f);
    print_events(f);
    print_health(f);
    print_windows(f, most);
    print_tracks(f, false, most);
    print_tracks(f, true, most);
    print_metadata(f);
    print_stacks(f, all);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void json_file(const cli_facts *f)
{
    cli_json_string("file", f->path);
    cli_json_string("format", f->reader != NULL ? "mtt" : "chrome");
    cli_json_uint("file_bytes", f->file_bytes);
    cli_json_bool("closed", f->info.closed != 0);
    if (f->reader != NULL) {
        char version[16];
        (void)snprintf(version, sizeof version, "%u.%u", f->trace.major, f->trace.minor);
        cli_json_string("format_version", version);
        cli_json_string("uuid", f->uuid);
        cli_json_uint("chunks", f->trace.chunks);
        cli_json_uint("chunks_damaged", f->trace.chunks_damaged);
    }
    cli_json_uint("pid", f->info.pid);
    cli_json_int("start_unix_ns", f->info.start_ns + f->info.real_offset_ns);
    cli_json_int("start_ns", f->info.start_ns);
    cli_json_int("duration_ns", f->info.end_ns - f->info.start_ns);
    cli_json_string("device_type", f->info.device_type);
    cli_json_array("recorded");
    for (unsigned bit = 0; bit < 64; bit++) {
        const char *name = (f->info.wants >> bit & 1) != 0 ? cli_want_name(bit) : NULL;
        if (name != NULL) {
            cli_json_string(NULL, name);
        }
    }
    cli_json_end_array();
}

static void json_counts(const cli_facts *f)
{
    cli_json_object("events");
    cli_json_uint("total", f->findings.events);
    for (unsigned kind = 0; kind < CLI_KINDS; kind++) {
        if (f->kinds[kind] > 0) {
            cli_json_uint(mtprof_event_kind_name(kind), f->kinds[kind]);
        }
    }
    cli_json_end_object();
    cli_json_object("marks");
    cli_json_uint("counters", f->marks.counters);
    cli_json_uint("instants", f->marks.instants);
    cli_json_uint("flows", f->marks.flows);
    cli_json_end_object();
    cli_json_object("steps");
    cli_json_uint("count", f->n_steps);
    cli_json_int("first", f->first_step);
    cli_json_int("last", f->last_step);
    cli_json_end_object();
}

static void json_health(const cli_facts *f)
{
    const mtprof_health *h = &f->health;
    cli_json_object("health");
    cli_json_uint("lost", h->lost);
    cli_json_object("lost_by");
    for (uint32_t cause = 0; cause < MTPROF_HEALTH_LOST_END; cause++) {
        if (h->lost_by[cause] > 0) {
            cli_json_uint(mtprof_lost_cause(cause), h->lost_by[cause]);
        }
    }
    cli_json_end_object();
    cli_json_uint("problems", f->n_problems);
    cli_json_uint("problem_bytes", f->findings.problem_bytes);
    cli_json_uint("problem_offset", f->findings.problem_offset);
    cli_json_uint("evicted", h->evicted);
    cli_json_uint("truncated", f->findings.truncated);
    cli_json_uint("truncated_in_gaps", f->findings.truncated_in_gaps);
    cli_json_uint("unmatched", f->findings.unmatched);
    cli_json_uint("orphans", f->findings.orphans);
    cli_json_uint("ends_without_begin", f->findings.ends_without_begin);
    cli_json_uint("overlaps", f->findings.overlaps);
    cli_json_uint("clock_back", f->findings.clock_back);
    cli_json_uint("collapsed", f->findings.collapsed);
    cli_json_uint("texts_cut", h->texts_cut);
    cli_json_uint("left_out", f->findings.left_out);
    cli_json_uint("stacks_missed", h->stacks_missed);
    cli_json_uint("busy_at_stop", h->busy_at_stop);
    cli_json_uint("stalls", h->stalls);
    cli_json_uint("skipped", f->findings.skipped);
    cli_json_uint("pair_cost_ps", h->pair_cost_ps);
    cli_json_uint("limit_ppm", h->limit_ppm);
    cli_json_uint("limit_level", h->limit_level);
    cli_json_uint("limit_changes", h->limit_changes);
    cli_json_uint("unrecorded", h->unrecorded);
    cli_json_uint("unrecorded_estimated", h->unrecorded_estimated);
    cli_json_uint("without_payload", h->without_payload);
    cli_json_uint("own_cost_ns", h->own_cost_ns);
    cli_json_uint("own_cost_of_ns", h->own_cost_of_ns);
    cli_json_end_object();
}

static void json_windows(const cli_facts *f)
{
    cli_json_array("windows");
    for (size_t i = 0; i < f->n_windows; i++) {
        const cli_window *w = &f->windows[i];
        cli_json_object(NULL);
        cli_json_uint("window", w->number);
        cli_json_uint("step", w->step);
        cli_json_uint("parts", w->parts);
        cli_json_int("open_ns", w->open_ns);
        cli_json_string("fate", w->fate);
        cli_json_end_object();
    }
    cli_json_end_array();
}

static void json_tracks(const cli_facts *f)
{
    cli_json_array("tracks");
    for (uint32_t i = 0; i < f->n_tracks; i++) {
        const mtprof_track *t = &f->tracks[i].track;
        cli_json_object(NULL);
        cli_json_string("kind", t->device == 0 ? "thread" : "queue");
        cli_json_uint("number", t->number);
        cli_json_int("pid", t->pid);
        cli_json_int("tid", t->tid);
        cli_json_text("name", t->name);
        if (t->device != 0) {
            cli_json_device(f->model, t->device);
        }
        cli_json_uint("events", f->tracks[i].events);
        cli_json_end_object();
    }
    cli_json_end_array();
}

static void json_metadata(const cli_facts *f)
{
    mtprof_metadatum m;
    cli_json_object("metadata");
    for (uint32_t i = 0; mtprof_model_metadata(f->model, i, &m); i++) {
        cli_json_member(m.key);
        cli_metadatum value;
        cli_json_text(NULL, cli_metadatum_text(&m, &value));
    }
    cli_json_end_object();
}

static void print_json(const cli_facts *f)
{
    cli_json_object(NULL);
    json_file(f);
    json_counts(f);
    json_health(f);
    json_windows(f);
    json_tracks(f);
    json_metadata(f);
    cli_json_end_object();
}

static int look(const cli_call *call, mtprof_model *model, const char *path)
{
    const info_settings *s = call->settings;
    cli_facts facts;
    int code = cli_gather_facts(model, path, &facts) ? CLI_OK : CLI_FAILED;
    cli_progress_end();
    if (code == CLI_OK && s->common.json) {
        print_json(&facts);
    } else if (code == CLI_OK) {
        print_facts(&facts, s->all);
    }
    cli_free_facts(&facts);
    return code;
}

static int run(const cli_call *call)
{
    return cli_look_at_trace(call, look);
}

const cli_command cli_cmd_info = {
    .name = "info",
    .summary = "Who recorded a trace, when, what is in it, and whether it is whole",
    .operands = "TRACE",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(info_settings),
    .reads_trace = true,
    .run = run,
};
