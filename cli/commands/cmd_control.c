/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof ps, status, start, stop and dump: processes that listen (docs/control.md).
 */
#include "cli/command.h"
#include "cli/commands/control_calls.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- states as text -------------------------------------------------------------------------- */

static const char *recording_word(const mtprof_control_state *state)
{
    return state->recording == MTPROF_CONTROL_ON       ? "on"
           : state->recording == MTPROF_CONTROL_PAUSED ? "paused"
                                                       : "off";
}

static void print_json_state(const mtprof_control_state *s)
{
    cli_json_int("pid", s->pid);
    cli_json_string("program", s->program);
    cli_json_string("rank", s->rank[0] != 0 ? s->rank : NULL);
    cli_json_string("version", s->version);
    cli_json_string("recording", recording_word(s));
    cli_json_bool("by_control", s->by_control != 0);
    cli_json_string("path", s->path[0] != 0 ? s->path : NULL);
    cli_json_uint("since_us", s->since_us);
    cli_json_array("wants");
    for (unsigned bit = 0; bit < 64; bit++) {
        if ((s->wants >> bit & 1) != 0 && cli_want_name(bit) != NULL) {
            cli_json_string(NULL, cli_want_name(bit));
        }
    }
    cli_json_end_array();
    cli_json_uint("begins", s->begins);
    cli_json_uint("others", s->others);
    cli_json_uint("lost", s->lost);
    cli_json_uint("evicted", s->evicted);
    cli_json_uint("bytes", s->bytes);
    cli_json_uint("threads", s->threads);
    cli_json_uint("refused_connections", s->refused);
    cli_json_uint("dropped_connections", s->dropped);
}

static void print_key(const char *key)
{
    printf("%s%-11s%s", cli_style(CLI_DIM), key, cli_style(CLI_PLAIN));
}

static void print_events(const mtprof_control_state *s)
{
    uint64_t events = s->begins + s->others;
    printf("%s event%s of %s thread%s, ", cli_count(events).text, cli_plural(events),
           cli_count(s->threads).text, cli_plural(s->threads));
    if (s->lost > 0) {
        printf("%s%s lost%s", cli_style(CLI_YELLOW), cli_count(s->lost).text, cli_style(CLI_PLAIN));
    } else {
        fputs("none lost", stdout);
    }
    if (s->evicted > 0) {
        printf(", %s older ones let go", cli_count(s->evicted).text);
    }
    putchar('\n');
}

static void print_wants(uint64_t wants)
{
    const char *between = "";
    for (unsigned bit = 0; bit < 64; bit++) {
        if ((wants >> bit & 1) != 0 && cli_want_name(bit) != NULL) {
            printf("%s%s", between, cli_want_name(bit));
            between = ", ";
        }
    }
    putchar('\n');
}

static void print_state(const mtprof_control_state *s)
{
    print_key("process");
    printf("%lld, ", (long long)s->pid);
    cli_print_text(stdout, cli_text(s->program), 0);
    putchar('\n');
    if (s->rank[0] != 0) {
        print_key("rank");
        cli_print_text(stdout, cli_text(s->rank), 0);
        putchar('\n');
    }
    print_key("recording");
    if (s->recording == MTPROF_CONTROL_OFF) {
        puts("off");
    } else {
        printf("%s, for %s, started %s\n", recording_word(s), control_since(s->since_us).text,
               s->by_control ? "over the socket" : "by the program");
        print_key("file");
        if (s->path[0] != 0) {
            cli_print_text(stdout, cli_text(s->path), 0);
            printf(", %s\n", cli_bytes((double)s->bytes).text);
        } else {
            printf("in memory, %s\n", cli_bytes((double)s->bytes).text);
        }
        print_key("events");
        print_events(s);
        if (s->wants != 0) {
            print_key("has");
            print_wants(s->wants);
        }
    }
    if (s->refused != 0) {
        print_key("refused");
        printf("%s connection%s of other users\n", cli_count(s->refused).text,
               cli_plural(s->refused));
    }
}

/* ---- ps -------------------------------------------------------------------------------------- */

typedef struct ps_row {
    int64_t pid;
    bool answered;
    mtprof_control_state state;
} ps_row;

typedef struct ps_rows {
    ps_row *items;
    size_t n, room;
    bool failed;
} ps_rows;

static void add_row(void *user, int64_t pid, const mtprof_control_state *state)
{
    ps_rows *rows = user;
    if (rows->n == rows->room) {
        size_t room = rows->room * 2 + 8;
        ps_row *items = realloc(rows->items, room * sizeof *items);
        if (items == NULL) {
            rows->failed = true;
            return;
        }
        rows->items = items;
        rows->room = room;
    }
    ps_row *row = &rows->items[rows->n++];
    row->pid = pid;
    row->answered = state != NULL;
    if (state != NULL) {
        row->state = *state;
    }
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return path[0] == 0 ? "(memory)" : slash != NULL ? slash + 1 : path;
}

static void print_rows(const ps_rows *rows)
{
    enum {
        FIXED = 8 + 2 + 6 + 2 + 7 + 2 + 10 + 2 + 2 /* all but file and program */
    };
    size_t longest = 4;
    size_t width = cli_term_width();
    for (size_t i = 0; i < rows->n; i++) {
        const ps_row *row = &rows->items[i];
        size_t length = row->answered && row->state.recording != MTPROF_CONTROL_OFF
                            ? cli_text_width(cli_text(file_name(row->state.path)))
                            : 1;
        longest = length > longest ? length : longest;
    }
    size_t file = cli_fit_column(longest, 4, FIXED + 16, width);
    size_t program = width > FIXED + file + 16 ? width - FIXED - file : 16;
    printf("%s%8s  %-6s  %7s  %10s  %-*s  %s%s\n", cli_style(CLI_BOLD), "PID", "RECORD", "SINCE",
           "EVENTS", (int)file, "FILE", "PROGRAM", cli_style(CLI_PLAIN));
    for (size_t i = 0; i < rows->n; i++) {
        const ps_row *row = &rows->items[i];
        const mtprof_control_state *s = &row->state;
        bool on = row->answered && s->recording != MTPROF_CONTROL_OFF;
        printf("%8lld  %-6s  %7s  %10s  ", (long long)row->pid,
               row->answered ? recording_word(s) : "?", on ? control_since(s->since_us).text : "-",
               on ? cli_count(s->begins + s->others).text : "-");
        cli_print_text(stdout, cli_text(on ? file_name(s->path) : "-"), file);
        fputs("  ", stdout);
        cli_print_text(stdout, cli_text(row->answered ? s->program : "(does not answer)"),
                       row->answered && cli_text_width(cli_text(s->program)) > program ? program
                                                                                       : 0);
        putchar('\n');
    }
}

static void print_json_rows(const ps_rows *rows)
{
    cli_json_object(NULL);
    cli_json_array("processes");
    for (size_t i = 0; i < rows->n; i++) {
        cli_json_object(NULL);
        if (rows->items[i].answered) {
            print_json_state(&rows->items[i].state);
        } else {
            cli_json_int("pid", rows->items[i].pid);
        }
        cli_json_end_object();
    }
    cli_json_end_array();
    cli_json_end_object();
}

static int run_ps(const cli_call *call)
{
    const control_settings *s = call->settings;
    control_folders folders;
    ps_rows rows = {0};
    int code = CLI_OK;
    control_find_folders(s, 0, &folders);
    for (size_t i = 0; i < folders.n; i++) {
        if (mtprof_control_visit(folders.paths[i], add_row, &rows) != MTPROF_OK) {
            cli_error("ps: %s", mtprof_last_error()->message);
            code = CLI_FAILED;
        }
    }
    if (rows.failed) {
        code = cli_no_memory("ps") ? CLI_OK : CLI_FAILED;
    } else if (s->common.json) {
        print_json_rows(&rows);
    } else if (rows.n > 0) {
        print_rows(&rows);
    } else if (code == CLI_OK && !s->common.quiet) {
        puts("No process listens.");
        cli_hint("a Python program that imports mtprof listens when it is started with "
                 "MTPROF_CONTROL=1; so does one that 'mtprof run' starts");
    }
    free(rows.items);
    return code;
}

static const cli_option folder_options[] = {CONTROL_FOLDER_OPTION};

const cli_command cli_cmd_ps = {
    .name = "ps",
    .summary = "Processes that listen, and what they record",
    .operands = "",
    .details = "A process listens when it was started with MTPROF_CONTROL=1 and imports mtprof, "
               "when 'mtprof run' started it, or when it calls mtprof_control_listen(). Sockets "
               "that killed processes left are removed.",
    .options = folder_options,
    .n_options = sizeof folder_options / sizeof *folder_options,
    .settings_bytes = sizeof(control_settings),
    .run = run_ps,
};

/* ---- status ---------------------------------------------------------------------------------- */

static int run_status(const cli_call *call)
{
    mtprof_control_request request = {.struct_size = sizeof request,
                                      .command = MTPROF_CONTROL_STATUS};
    mtprof_control_state state;
    int64_t pid = control_pid(call);
    if (pid == 0) {
        return CLI_MISUSE;
    }
    int code = control_do(call, pid, &request, &state);
    if (code == CLI_OK && call->common->json) {
        cli_json_object(NULL);
        print_json_state(&state);
        cli_json_end_object();
    } else if (code == CLI_OK) {
        print_state(&state);
    }
    return code;
}

const cli_command cli_cmd_status = {
    .name = "status",
    .summary = "What a running process records",
    .operands = "PID",
    .options = folder_options,
    .n_options = sizeof folder_options / sizeof *folder_options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(control_settings),
    .first_operand = control_pids,
    .run = run_status,
};

/* ---- start ----------------------------------------------------------------------------------- */

static const cli_option start_options[] = {CONTROL_START_OPTIONS, CONTROL_FOLDER_OPTION};

static int run_start(const cli_call *call)
{
    const control_start_settings *s = call->settings;
    mtprof_control_state state;
    int64_t pid = control_pid(call);
    if (pid == 0) {
        return CLI_MISUSE;
    }
    int code = control_start(call, pid, s, &state);
    if (code == CLI_OK && s->control.common.json) {
        cli_json_object(NULL);
        print_json_state(&state);
        cli_json_end_object();
    } else if (code == CLI_OK && !s->control.common.quiet) {
        printf("Process %lld records to ", (long long)pid);
        cli_print_text(stdout, cli_text(state.path), 0);
        printf("; 'mtprof stop %lld' ends it.\n", (long long)pid);
    }
    return code;
}

const cli_command cli_cmd_start = {
    .name = "start",
    .summary = "A running process begins to record",
    .operands = "PID",
    .details = "The process listens ('mtprof ps') and does not record yet. A Python program "
               "records as mtprof.profile does, with the ops of torch if torch is there; others "
               "record what their scopes and ops are. The file is written by the process, as it "
               "runs, and is there whatever ends it.",
    .options = start_options,
    .n_options = sizeof start_options / sizeof *start_options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(control_start_settings),
    .first_operand = control_pids,
    .run = run_start,
};

/* ---- stop ------------------------------------------------------------------------------------ */

static int run_stop(const cli_call *call)
{
    mtprof_control_state state;
    int64_t pid = control_pid(call);
    if (pid == 0) {
        return CLI_MISUSE;
    }
    int code = control_stop(call, pid, &state);
    if (code == CLI_OK && call->common->json) {
        cli_json_object(NULL);
        print_json_state(&state);
        cli_json_end_object();
    } else if (code == CLI_OK && !call->common->quiet) {
        control_print_stopped(&state);
    }
    return code;
}

const cli_command cli_cmd_stop = {
    .name = "stop",
    .summary = "A running process stops recording",
    .operands = "PID",
    .details = "Ends what 'mtprof start' began, and the recording of 'mtprof run'. A recording "
               "that the program started itself is left to it: the process refuses.",
    .options = folder_options,
    .n_options = sizeof folder_options / sizeof *folder_options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(control_settings),
    .first_operand = control_pids,
    .run = run_stop,
};

/* ---- dump ------------------------------------------------------------------------------------ */

typedef struct dump_settings {
    control_settings control;
    const char *output, *reason;
} dump_settings;

static const cli_option dump_options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     .value = "FILE",
     .help = "the trace that is written (default: in the flight recorder's folder, or "
             "NAME-PID.dump.mtt where the process has none)",
     .offset = offsetof(dump_settings, output)},
    {.name = "reason",
     .type = CLI_TEXT,
     .value = "TEXT",
     .help = "a note for the trace: why it was written",
     .offset = offsetof(dump_settings, reason)},
    CONTROL_FOLDER_OPTION,
};

static int run_dump(const cli_call *call)
{
    const dump_settings *s = call->settings;
    char path[MTPROF_CONTROL_PATH_BYTES];
    mtprof_control_state state;
    int64_t pid = control_pid(call);
    if (pid == 0 || !control_output("dump", s->output, pid, ".dump.mtt", path, sizeof path)) {
        return CLI_MISUSE;
    }
    mtprof_control_request request = {.struct_size = sizeof request,
                                      .command = MTPROF_CONTROL_DUMP,
                                      .path = s->output != NULL ? path : NULL,
                                      .reason = s->reason};
    mtprof_status status = control_ask(call->settings, pid, &request, &state);
    if (status == MTPROF_ESTATE && request.path == NULL) { /* no flight recorder */
        request.path = path;
        status = control_ask(call->settings, pid, &request, &state);
    }
    if (status != MTPROF_OK) {
        return control_failed("dump", pid, status);
    }
    if (call->common->json) {
        cli_json_object(NULL);
        cli_json_string("output", state.dump);
        print_json_state(&state);
        cli_json_end_object();
    } else if (!call->common->quiet) {
        cli_print_text(stdout, cli_text(state.dump), 0);
        printf(": what process %lld has recorded; it goes on\n", (long long)pid);
    }
    return CLI_OK;
}

const cli_command cli_cmd_dump = {
    .name = "dump",
    .summary = "A trace of what a running process has recorded so far",
    .operands = "PID",
    .details = "The process writes it, and goes on recording.",
    .options = dump_options,
    .n_options = sizeof dump_options / sizeof *dump_options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(dump_settings),
    .first_operand = control_pids,
    .run = run_dump,
};
