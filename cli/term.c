/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal, see term.h.
 */
#include "cli/term.h"

#include "cli/command.h"
#include "cli/units.h"

#include <mtprof/export.h>
#include <mtprof/version.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_WIDTH = 80,
    LEAST_WIDTH = 40,
    MOST_WIDTH = 1000,
    PROGRESS_AFTER_MS = 1000,
    PROGRESS_EVERY_MS = 100
};

static bool colors;
static bool reader_gone;

static bool want_colors(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (no_color == NULL || *no_color == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

void cli_term_color(enum cli_color color)
{
    colors = color == CLI_COLOR_ALWAYS || (color == CLI_COLOR_AUTO && want_colors());
}

const char *cli_style(enum cli_style style)
{
    static const char *const sequences[] = {"\033[0m",  "\033[1m",  "\033[2m",
                                            "\033[31m", "\033[32m", "\033[33m"};
    static_assert(sizeof sequences / sizeof *sequences == CLI_STYLE_COUNT, "one each");
    return colors ? sequences[style] : "";
}

uint32_t cli_term_width(void)
{
    int64_t width = 0;
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    if (columns == NULL || !cli_parse_int(columns, &width) || width < 1) {
        width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    }
    if (width < 1) {
        return DEFAULT_WIDTH;
    }
    return width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : (uint32_t)width;
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t line_shown; /* of progress */

static void end_by_signal(int number)
{
    mtprof_remove_unfinished();
    if (line_shown) {
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    }
    (void)raise(number); /* its action is the default one again */
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = SA_RESETHAND | SA_NODEFER};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}

/* What the process that started this one had set; another program gets it back. */
static void (*given_pipe)(int) = SIG_DFL;
static void (*given_size)(int) = SIG_DFL;

void cli_term_give_up(void)
{
    (void)signal(SIGPIPE, given_pipe);
    (void)signal(SIGXFSZ, given_size);
}

void cli_term_start(void)
{
    /* Writing to a closed pipe shall fail, not kill: the exit code of a diff still counts. So shall
     * writing past the limit on a file's size. */
    given_pipe = signal(SIGPIPE, SIG_IGN);
    given_size = signal(SIGXFSZ, SIG_IGN);
    catch_signals();
    colors = want_colors();
}

/* ---- errors ---------------------------------------------------------------------------------- */

void cli_error(const char *format, ...)
{
    va_list arguments;
    cli_progress_end();
    (void)fflush(stdout); /* in order with what was printed before, where both go to one place */
    fputs("mtprof: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

bool cli_no_memory(const char *what)
{
    cli_error("%s: out of memory", what);
    return false;
}

void cli_hint(const char *format, ...)
{
    va_list arguments;
    fputs("  hint: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* The library's messages name the path, or one made from it; the line already begins with it:
 * "open PATH: why" becomes "open: why", "PATH is a folder" becomes "it is a folder". */
static void print_without_path(const char *message, const char *path)
{
    size_t length = strlen(path);
    const char *at = length > 0 ? strstr(message, path) : NULL;
    const char *why = at != NULL ? strstr(at, ": ") : NULL;
    if (at == NULL) {
        fputs(message, stderr);
        return;
    }
    size_t before = (size_t)(at - message);
    if (at[length] == ' ' || why == NULL) {
        (void)fprintf(stderr, "%.*sit%s", (int)before, message, at + length);
        return;
    }
    while (before > 0 && (message[before - 1] == ' ' || message[before - 1] == ':')) {
        before--;
    }
    (void)fprintf(stderr, "%.*s%s", (int)before, message, before > 0 ? why : why + 2);
}

static void hint_for(const char *path, const mtprof_error *error)
{
    switch (error->status) {
    case MTPROF_EFORMAT: cli_hint("'mtprof check %s' tells what is wrong", path); break;
    case MTPROF_EVERSION:
        cli_hint("this is mtprof %s; read the trace with the version that wrote it, or a newer one",
                 mtprof_version_string());
        break;
    case MTPROF_ENOSPC: cli_hint("free some space, or name another place with -o"); break;
    case MTPROF_ENOMEM: cli_hint("look at part of the trace with --window, or export it"); break;
    case MTPROF_EBUSY: cli_hint("wait until the process that records into it has ended"); break;
    case MTPROF_ENOTSUP: cli_hint("'mtprof info %s' tells what was recorded", path); break;
    default:
        if (error->system_error == ENOENT) {
            cli_hint("there is no such file or folder; is the path right?");
        } else if (error->system_error == EACCES) {
            cli_hint("its permissions do not allow that");
        }
        break;
    }
}

int cli_library_error(const char *path, mtprof_status status)
{
    const mtprof_error *error = mtprof_last_error();
    cli_progress_end();
    if (reader_gone) {
        return CLI_OK;
    }
    (void)fflush(stdout);
    (void)fprintf(stderr, "mtprof: %s: ", path);
    if (error->status == status && error->message[0] != '\0') {
        print_without_path(error->message, path);
        if (error->offset >= 0) {
            (void)fprintf(stderr, " (at byte %lld)", (long long)error->offset);
        }
    } else {
        fputs(mtprof_status_text(status), stderr);
    }
    fputc('\n', stderr);
    hint_for(path, error);
    return status == MTPROF_EINVAL ? CLI_MISUSE : CLI_FAILED; /* an option's value was refused */
}

bool cli_ok(const char *path, mtprof_status status)
{
    if (status != MTPROF_OK) {
        (void)cli_library_error(path, status);
    }
    return status == MTPROF_OK;
}

/* ---- standard output ------------------------------------------------------------------------- */

static int write_stdout(void *context, const void *bytes, size_t length)
{
    (void)context;
    if (fwrite(bytes, 1, length, stdout) == length) {
        return 0;
    }
    reader_gone = errno == EPIPE;
    return errno != 0 ? errno : EIO;
}

const mtprof_output cli_stdout = {.struct_size = sizeof cli_stdout, .write = write_stdout};

int cli_finish_stdout(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return code;
    }
    int why = errno;
    /* The write that failed may have been any printf() before; a pipe without reader still says so.
     */
    struct pollfd end = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (reader_gone || why == EPIPE || (poll(&end, 1, 0) == 1 && (end.revents & POLLERR) != 0)) {
        return code;
    }
    cli_error("standard output: %s", strerror(why != 0 ? why : EIO));
    return CLI_FAILED;
}

/* ---- progress -------------------------------------------------------------------------------- */

static int64_t monotonic_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct {
    const char *subject;
    int64_t (*clock_ms)(void);
    FILE *out;
    int64_t start_ms, drawn_ms;
    bool on, shown;
} progress = {.clock_ms = monotonic_ms};

void cli_progress_start(const char *subject, bool quiet)
{
    bool terminal = progress.out != NULL || isatty(STDERR_FILENO) != 0;
    cli_progress_end();
    progress.subject = subject;
    progress.on = !quiet && terminal;
    progress.start_ms = progress.clock_ms();
    progress.drawn_ms = 0;
}

int cli_progress_step(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)user;
    if (!progress.on) {
        return 0;
    }
    int64_t now = progress.clock_ms();
    if (now - progress.start_ms < PROGRESS_AFTER_MS ||
        (progress.shown && now - progress.drawn_ms < PROGRESS_EVERY_MS)) {
        return 0;
    }
    FILE *out = progress.out != NULL ? progress.out : stderr;
    (void)fprintf(out, "\r\033[K%s: %s", progress.subject, what != NULL ? what : "working");
    if (total > 0) {
        double part = done < total ? (double)done / (double)total : 1;
        (void)fprintf(out, " %3.0f %%", 100 * part);
    } else if (done > 0) {
        (void)fprintf(out, " %s", cli_count(done).text);
    }
    (void)fflush(out);
    progress.drawn_ms = now;
    progress.shown = true;
    line_shown = progress.out == NULL;
    return 0;
}

void cli_progress_end(void)
{
    if (progress.shown) {
        FILE *out = progress.out != NULL ? progress.out : stderr;
        fputs("\r\033[K", out);
        (void)fflush(out);
        progress.shown = false;
        line_shown = 0;
    }
}

void cli_progress_test(int64_t (*clock_ms)(void), FILE *out)
{
    progress.clock_ms = clock_ms;
    progress.out = out;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* One character of a text as it is shown. */
typedef struct glyph {
    char bytes[8];
    size_t length, columns;
} glyph;

size_t cli_utf8_length(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (n == 0 || n > length || at[0] > 0xF4) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool bad = (at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
               (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F);
    return bad ? 0 : n;
}

/* The next character: how it is shown, and how many bytes of the text it stands for. */
static size_t next_glyph(mtprof_text text, size_t at, glyph *out)
{
    const unsigned char *bytes = (const unsigned char *)text.bytes + at;
    size_t n = cli_utf8_length(text.bytes + at, text.length - at);
    bool c1 = n == 2 && bytes[0] == 0xC2 && bytes[1] < 0xA0;
    if (n == 0) {
        memcpy(out->bytes, "\xEF\xBF\xBD", 3);
        out->length = 3;
        out->columns = 1;
        return 1;
    }
    if (bytes[0] < 0x20 || bytes[0] == 0x7F || c1) {
        (void)snprintf(out->bytes, sizeof out->bytes, "\\x%02x", bytes[n - 1]);
        out->length = out->columns = 4;
        return n;
    }
    memcpy(out->bytes, bytes, n);
    out->length = n;
    out->columns = 1;
    return n;
}

size_t cli_text_width(mtprof_text text)
{
    size_t columns = 0;
    glyph g;
    for (size_t at = 0; at < text.length;) {
        at += next_glyph(text, at, &g);
        columns += g.columns;
    }
    return columns;
}

void cli_print_text(FILE *out, mtprof_text text, size_t width)
{
    size_t used = 0, most = SIZE_MAX;
    glyph g;
    /* Where it is too long: the beginning, "…", and from `tail` on the end of it. */
    size_t whole = width > 0 ? cli_text_width(text) : 0, seen = 0, tail = 0;
    if (width > 0 && whole > width) {
        most = width / 2;
        tail = whole - (width - 1 - most);
    }
    for (size_t at = 0; at < text.length; seen += g.columns) {
        at += next_glyph(text, at, &g);
        if (seen + g.columns <= most) {
            (void)fwrite(g.bytes, 1, g.length, out);
            used += g.columns;
        } else if (seen >= tail) {
            fputs(tail > 0 ? "\xE2\x80\xA6" : "", out);
            used += tail > 0;
            tail = 0;
            most = SIZE_MAX;
            (void)fwrite(g.bytes, 1, g.length, out);
            used += g.columns;
        }
    }
    if (tail > 0) { /* the end is a part of a character that is shown as several */
        fputs("\xE2\x80\xA6", out);
        used++;
    }
    for (; used < width; used++) {
        fputc(' ', out);
    }
}

mtprof_text cli_text(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

size_t cli_two_width(mtprof_text first, mtprof_text second)
{
    return cli_text_width(first) + (second.length > 0 ? 1 + cli_text_width(second) : 0);
}

void cli_print_two(mtprof_text first, mtprof_text second, size_t width)
{
    char *both = NULL;
    int n = second.length == 0 ? -1 : asprintf(&both, "%s %s", first.bytes, second.bytes);
    cli_print_text(stdout, n < 0 ? first : cli_text(both), width);
    free(n < 0 ? NULL : both);
}

size_t cli_fit_column(size_t longest, size_t least, size_t fixed, size_t width)
{
    size_t room = width > fixed + least ? width - fixed : least;
    longest = longest > least ? longest : least;
    return longest < room ? longest : room;
}

void cli_print_more(size_t n, const char *what)
{
    if (n > 0) {
        printf("%s%s more%s%s%s; --limit all shows them%s\n", cli_style(CLI_DIM), cli_count(n).text,
               *what != '\0' ? " " : "", what, *what != '\0' ? cli_plural(n) : "",
               cli_style(CLI_PLAIN));
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void end_line(cli_lines *lines)
{
    lines->bytes[lines->used] = '\0';
    lines->line(lines->context, lines->bytes, lines->used);
    lines->used = 0;
}

int cli_lines_write(void *context, const void *bytes, size_t length)
{
    cli_lines *lines = context;
    const char *at = bytes;
    if (lines->used + length + 1 > lines->room) {
        size_t room = 2 * (lines->used + length + 1);
        char *larger = realloc(lines->bytes, room);
        if (larger == NULL) {
            return ENOMEM;
        }
        lines->bytes = larger;
        lines->room = room;
    }
    for (size_t i = 0; i < length; i++) {
        if (at[i] == '\n') {
            end_line(lines);
        } else {
            lines->bytes[lines->used++] = at[i];
        }
    }
    return 0;
}

void cli_lines_end(cli_lines *lines, bool whole)
{
    if (whole && lines->used > 0) {
        end_line(lines);
    }
    free(lines->bytes);
}
