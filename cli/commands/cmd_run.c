/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof run -- PROGRAM: runs any program with NVTX or ITT in it and records what it reports, and
 * what it does with NVIDIA's GPUs.
 * Python programs ("mtprof run SCRIPT") are run by mtprof-run of the Python package; main.c decides
 * by cli_run_has_program().
 *
 *   PROGRAM's process ── NVTX, ITT or CUDA opens ──► libmtprof_nvtx.so, libmtprof_itt.so or
 *                             │                       libmtprof_cuda.so
 *                             └─► libmtprof.so: a session, into the file
 *   this process waits, then reads the file, exports it where asked to, and tells what there is
 */
#include "cli/command.h"
#include "cli/commands/run_process.h"
#include "cli/programs.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/averages.h>
#include <mtprof/check.h>
#include <mtprof/export.h>

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROWS = 10,              /* of the table */
    TABLE_BYTES = 128 << 20 /* a larger trace is not read for the table */
};

typedef struct run_settings {
    cli_common common;
    const char *output, *path;
    int64_t rows; /* 0: ROWS; -1: none */
    uint64_t ring;
} run_settings;

#define AT(member) offsetof(run_settings, member)

static bool parse_rows(void *value, const char *text, cli_refusal *why)
{
    int64_t rows;
    if (!cli_parse_int(text, &rows) || rows < 0) {
        (void)snprintf(why->text, sizeof why->text, "expected a number of rows");
        return false;
    }
    *(int64_t *)value = rows == 0 ? -1 : rows;
    return true;
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     .value = "FILE",
     .help = "the trace; .json, .json.gz, .pftrace and others are exported when the program ends "
             "(default: NAME-PID.mtt)",
     .offset = AT(output)},
    {.name = "path",
     .type = CLI_FILE,
     .value = "FOLDER",
     .help = "folder for the trace, made where it is missing",
     .offset = AT(path)},
    {.name = "ring",
     .type = CLI_SIZE,
     .value = "SIZE",
     .help = "keep only the latest events, in this many bytes (64M, 1G)",
     .offset = AT(ring)},
    {.name = "rows",
     .letter = 'n',
     .type = CLI_CUSTOM,
     .value = "N",
     .parse = parse_rows,
     .help = "rows of the summary (default: 10)",
     .offset = AT(rows)},
};

/* ---- which program --------------------------------------------------------------------------- */

bool cli_run_has_program(int n_words, char **words)
{
    /* Options of mtprof run that take a value as the next word, ours and those for Python. */
    static const char *const with_value[] = {
        "-o",       "-n",      "--output",   "--path", "--wait", "--warmup", "--active",
        "--repeat", "--delay", "--duration", "--ring", "--rows", "--color"};
    for (int i = 0; i < n_words; i++) {
        if (strcmp(words[i], "--") == 0) {
            return true;
        }
        if (words[i][0] != '-' || strncmp(words[i], "-m", 2) == 0 ||
            strncmp(words[i], "-c", 2) == 0 || words[i][1] == 0) {
            return false; /* a script, -m, -c or - */
        }
        for (size_t v = 0; v < sizeof with_value / sizeof *with_value; v++) {
            if (strcmp(words[i], with_value[v]) == 0) {
                i++;
                break;
            }
        }
    }
    return false;
}

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct run_file {
    const run_settings *settings;
    const char *program;
    char folder[PATH_MAX]; /* absolute, of what was asked for */
    char shown[PATH_MAX];  /* what was asked for, as it was */
    bool exported;         /* the recording is in shown.mtt until the end */
} run_file;

static bool join(char *to, size_t size, const char *folder, const char *name)
{
    int length = folder[0] == 0 || name[0] == '/' ? snprintf(to, size, "%s", name)
                                                  : snprintf(to, size, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= size) {
        cli_error("run: %s: the name is too long", name);
        return false;
    }
    return true;
}

/* What was asked for, or NAME-PID.mtt by the program's name. */
static bool shown_path(run_file *f, pid_t pid)
{
    char name[PATH_MAX];
    const char *slash = strrchr(f->program, '/');
    (void)snprintf(name, sizeof name, "%s-%ld.mtt", slash != NULL ? slash + 1 : f->program,
                   (long)pid);
    const run_settings *s = f->settings;
    return join(f->shown, sizeof f->shown, s->path != NULL ? s->path : "",
                s->output != NULL ? s->output : name);
}

/* A run_program.choose_path: absolute, since the program may change its folder. */
static bool recording_path(void *context, pid_t pid, char *path, size_t size)
{
    run_file *f = context;
    if (!shown_path(f, pid)) {
        return false;
    }
    const char *slash = strrchr(f->shown, '/');
    char name[PATH_MAX + 8];
    (void)snprintf(name, sizeof name, "%s%s", slash != NULL ? slash + 1 : f->shown,
                   f->exported ? ".mtt" : "");
    return join(path, size, f->folder, name);
}

static bool make_folder(char *folder)
{
    for (char *at = folder + 1; *at != 0; at++) {
        if (*at == '/') {
            *at = 0;
            (void)mkdir(folder, 0777); /* the last one tells */
            *at = '/';
        }
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        cli_error("run: %s: %s", folder, strerror(errno));
        return false;
    }
    return true;
}

/* Whether the trace can be written where it is asked for; an exit code if not. */
static int prepare_file(run_file *f)
{
    const run_settings *s = f->settings;
    char folder[PATH_MAX];
    enum mtprof_export_format format;
    size_t length = s->output != NULL ? strlen(s->output) : 0;
    f->exported = length > 0 && (length < 4 || strcmp(s->output + length - 4, ".mtt") != 0);
    if (f->exported && mtprof_export_parse(s->output, &format) != MTPROF_OK) {
        cli_error("run: option '--output': the ending of '%s' is none of a trace", s->output);
        cli_hint(".mtt, .json, .json.gz, .pftrace and those that 'man mtprof' lists under export");
        return CLI_MISUSE;
    }
    if (s->path != NULL) {
        (void)snprintf(folder, sizeof folder, "%s", s->path);
        if (strlen(s->path) >= sizeof folder || folder[0] == 0 || !make_folder(folder)) {
            return CLI_FAILED;
        }
    }
    if (!shown_path(f, 0)) {
        return CLI_FAILED;
    }
    (void)snprintf(folder, sizeof folder, "%s", f->shown);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[slash == folder ? 1 : 0] = 0;
    }
    if (realpath(slash != NULL ? folder : ".", f->folder) == NULL) {
        cli_error("run: %s: %s", folder, strerror(errno));
        return CLI_FAILED;
    }
    struct stat about;
    if (access(f->folder, W_OK | X_OK) != 0 ||
        (stat(f->shown, &about) == 0 && S_ISDIR(about.st_mode))) {
        cli_error("run: %s: cannot be written", f->shown);
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* ---- the summary, on standard error ---------------------------------------------------------- */

static int write_error(void *context, const void *bytes, size_t length)
{
    (void)context;
    return fwrite(bytes, 1, length, stderr) == length ? 0 : -1;
}

static void print_table(const run_settings *s, mtprof_model *model, const char *path)
{
    mtprof_averages_options averages = {.struct_size = sizeof averages};
    mtprof_table_options table = {.struct_size = sizeof table,
                                  .format = MTPROF_TABLE_FIT,
                                  .row_limit = s->rows == 0 ? ROWS : s->rows,
                                  .width = 80};
    mtprof_output output = {.struct_size = sizeof output, .write = write_error};
    mtprof_averages *rows = NULL;
    mtprof_status status = mtprof_averages_new(model, &averages, &rows);
    if (status == MTPROF_OK) {
        status = mtprof_averages_sort(rows, "self_cpu_time_total");
    }
    mtprof_row total = {.struct_size = sizeof total};
    if (status == MTPROF_OK && mtprof_averages_get_total(rows, &total) == MTPROF_OK &&
        total.self_device_ns > 0) { /* kernels first, which take no CPU time */
        status = mtprof_averages_sort(rows, "device_time_total");
    }
    if (status == MTPROF_OK && mtprof_averages_count(rows) > 0 && s->rows >= 0) {
        fputc('\n', stderr);
        status = mtprof_averages_table(rows, &table, &output);
        fputc('\n', stderr);
    }
    if (status != MTPROF_OK) {
        (void)cli_library_error(path, status);
    }
    mtprof_averages_free(rows);
}

/* Whether anything was recorded. */
static bool print_health(mtprof_model *model)
{
    mtprof_health h = {.struct_size = sizeof h};
    if (mtprof_model_get_health(model, &h) != MTPROF_OK) {
        return true;
    }
    uint64_t events = h.begins + h.others;
    fprintf(stderr, "%s event%s, %s lost", cli_count(events).text, cli_plural(events),
            h.lost > 0 ? cli_count(h.lost).text : "none");
    if (h.unmatched > 0) {
        fprintf(stderr, ", %s launch%s without work of a GPU", cli_count(h.unmatched).text,
                h.unmatched == 1 ? "" : "es");
    }
    if (h.truncated > 0) {
        fprintf(stderr, ", %s scope%s truncated", cli_count(h.truncated).text,
                cli_plural(h.truncated));
    }
    if (h.texts_cut > 0) {
        fprintf(stderr, ", %s detail%s left out", cli_count(h.texts_cut).text,
                cli_plural(h.texts_cut));
    }
    fputc('\n', stderr);
    return events + h.lost > 0;
}

static bool is_new(const char *path, const struct timespec *since, struct stat *about)
{
    return stat(path, about) == 0 &&
           (about->st_mtim.tv_sec > since->tv_sec ||
            (about->st_mtim.tv_sec == since->tv_sec && about->st_mtim.tv_nsec >= since->tv_nsec));
}

/* Recordings of other processes, NAME.PID.mtt. Returns how many there are. */
static size_t print_children(const char *recording, const struct timespec *since, bool quiet)
{
    char pattern[PATH_MAX + 32];
    glob_t found = {0};
    struct stat about;
    size_t n = 0;
    (void)snprintf(pattern, sizeof pattern, "%.*s.[0-9]*.mtt", (int)strlen(recording) - 4,
                   recording);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            if (is_new(found.gl_pathv[i], since, &about)) {
                n++;
                if (!quiet) {
                    fprintf(stderr, "Another process: %s, %s\n", found.gl_pathv[i],
                            cli_bytes((double)about.st_size).text);
                }
            }
        }
    }
    globfree(&found);
    return n;
}

static bool export_it(const run_file *f, mtprof_model *model, const char *recording)
{
    enum mtprof_export_format format;
    mtprof_export_options o = {.struct_size = sizeof o};
    if (mtprof_export_parse(f->shown, &format) != MTPROF_OK ||
        !cli_ok(f->shown, mtprof_export(model, format, f->shown, &o))) {
        cli_hint("the recording is in %s", recording);
        return false;
    }
    (void)unlink(recording);
    return true;
}

static void print_how_it_ended(int status, bool recorded)
{
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "The program was killed by signal %d (%s)%s.\n", WTERMSIG(status),
                strsignal(WTERMSIG(status)),
                recorded ? "; the trace has what it reported until then" : "");
    }
}

/* What the program recorded: exported where asked for, and told. */
static void tell(const cli_call *call, const run_file *f, const char *recording,
                 const struct stat *about, int status, const struct timespec *since)
{
    const run_settings *s = f->settings;
    bool quiet = s->common.quiet;
    if (WIFSIGNALED(status) &&
        !cli_ok(recording, mtprof_recover(recording, NULL, NULL))) { /* it opens all the same */
        cli_hint("'mtprof check %s' tells more", recording);
    }
    bool read = f->exported || (!quiet && about->st_size <= TABLE_BYTES);
    mtprof_model *model = read ? cli_open_trace(call, recording) : NULL;
    cli_progress_end();
    struct stat now = *about;
    if (f->exported && model != NULL && export_it(f, model, recording)) {
        (void)stat(f->shown, &now);
    } else {
        (void)stat(recording, &now);
    }
    if (!quiet) {
        fprintf(stderr, "\nmtprof: %s, %s\n", f->shown, cli_bytes((double)now.st_size).text);
        print_how_it_ended(status, true);
        (void)print_children(recording, since, false);
        bool some = true;
        if (model != NULL) {
            some = print_health(model);
            print_table(s, model, recording);
        } else if (!read) {
            fputs("No table here: reading it takes a while.\n", stderr);
        }
        size_t length = strlen(f->shown);
        if (some && (!f->exported || strstr(f->shown, ".json") != NULL)) {
            fprintf(stderr, "  mtprof report %s\n", f->shown);
        }
        if (some && !f->exported) {
            fprintf(stderr, "  mtprof export %s -o %.*s.json.gz\n", f->shown, (int)length - 4,
                    f->shown);
        }
    }
    mtprof_model_free(model);
}

static void tell_nothing(const run_file *f, const char *recording, int status,
                         const struct timespec *since)
{
    if (f->settings->common.quiet) {
        return;
    }
    fputc('\n', stderr);
    if (print_children(recording, since, false) == 0) {
        fprintf(stderr,
                "mtprof: nothing recorded: %s did not use CUDA\n"
                "and reported nothing to NVTX or ITT, which is what this records.\n"
                "A Python program is recorded by 'mtprof run SCRIPT', without '--'.\n",
                f->program);
    }
    print_how_it_ended(status, false);
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool names_python(const char *word)
{
    size_t length = strlen(word);
    return length > 3 && strcmp(word + length - 3, ".py") == 0;
}

static int refuse(const char *program, int error)
{
    cli_error("run: %s: %s", program, error == ENOENT ? "no such program" : strerror(error));
    if (names_python(program)) {
        cli_hint("a Python script stands without '--': mtprof run %s", program);
    }
    return run_refusal(error);
}

static void note_replaced(const run_collectors *collectors)
{
    for (size_t i = 0; i < RUN_COLLECTORS; i++) {
        const char *set = getenv(run_collector_list[i].variable);
        if (set != NULL && set[0] != 0 && strcmp(set, collectors->paths[i]) != 0) {
            cli_error("run: %s was %s: for this program it is mtprof's",
                      run_collector_list[i].variable, set);
        }
    }
}

static int run(const cli_call *call)
{
    const run_settings *s = call->settings;
    static run_collectors collectors;
    const char *missing;
    run_file *file = NULL;
    if (s->common.json) {
        cli_error("run: there is no --json here: 'mtprof report --json' has it");
        return CLI_MISUSE;
    }
    if (s->ring != 0 && s->ring < 1 << 16) {
        cli_error("run: option '--ring': expected a number of bytes, as in 64M or 1G, 64K or more");
        return CLI_MISUSE;
    }
    if (!run_find_collectors(&collectors, &missing)) {
        cli_error("run: %s was not found: it is installed with mtprof's libraries", missing);
        return CLI_FAILED;
    }
    char **words = calloc(call->n_operands + 1, sizeof *words);
    file = calloc(1, sizeof *file);
    if (words == NULL || file == NULL) {
        free(words);
        free(file);
        return cli_no_memory("run") ? CLI_OK : CLI_FAILED;
    }
    for (size_t i = 0; i < call->n_operands; i++) {
        words[i] = (char *)(uintptr_t)call->operands[i]; /* execvp() does not write to them */
    }
    *file = (run_file){.settings = s, .program = words[0] != NULL ? words[0] : ""};
    int code = prepare_file(file), status = 0;
    if (code == CLI_OK) {
        struct timespec since;
        struct stat about;
        char recording[PATH_MAX];
        pid_t pid = 0;
        note_replaced(&collectors);
        (void)clock_gettime(CLOCK_REALTIME_COARSE, &since);
        int error = run_and_wait(&(run_program){.words = words,
                                                .collectors = &collectors,
                                                .choose_path = recording_path,
                                                .context = file,
                                                .ring_bytes = s->ring},
                                 &pid, &status);
        if (error != 0) {
            code = refuse(file->program, error);
        } else if (recording_path(file, pid, recording, sizeof recording)) {
            if (is_new(recording, &since, &about)) {
                tell(call, file, recording, &about, status, &since);
            } else {
                tell_nothing(file, recording, status, &since);
            }
        }
    }
    free(words);
    free(file);
    if (code == CLI_OK) {
        run_end_like(status);
    }
    return code;
}

const cli_command cli_cmd_run = {
    .name = "run",
    .summary = "Run any program and record what it reports to NVTX or ITT",
    .operands = "-- PROGRAM [ARGUMENTS]",
    .details =
        "Exit status: the program's, also where a signal ended it; 127 where there is no such "
        "program, 126 where it cannot be run, 1 where nothing can be recorded to the file, 2 for a "
        "wrong command line.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = SIZE_MAX,
    .settings_bytes = sizeof(run_settings),
    .runs_program = true,
    .run = run,
};
