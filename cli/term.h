/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal: width, colours, errors, progress, and safe output of any text.
 *
 * Standard output is for results, standard error for everything else. A reader that goes away
 * (mtprof report | head) is no failure: what is left to print is dropped, and the command ends with
 * the exit code it would have had.
 */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <mtprof/output.h>
#include <mtprof/reader.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_color {
    CLI_COLOR_AUTO = 0,
    CLI_COLOR_ALWAYS,
    CLI_COLOR_NEVER
};

enum cli_style {
    CLI_PLAIN = 0, /* back to normal */
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_STYLE_COUNT
};

/* Once, at the start. */
void cli_term_start(void);
/* Before another program takes this process over: ignored signals are again as they were given. */
void cli_term_give_up(void);
/* What --color says. */
void cli_term_color(enum cli_color color);
/* The sequence for standard output; "" where there are no colours. */
const char *cli_style(enum cli_style style);

/* How wide standard output is: COLUMNS, else what its terminal reports, else 80. */
uint32_t cli_term_width(void);

/* "mtprof: …", a line on standard error; the hint is a second line for what to do. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* An error: out of memory for a file or command. Always false. */
bool cli_no_memory(const char *what);
void cli_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The last failure of the library with a file: "mtprof: FILE: message (at byte N)" and what can be
 * done about it. Returns the exit code. */
int cli_library_error(const char *path, mtprof_status status);
/* Whether a call succeeded; if not, the error has been printed. */
bool cli_ok(const char *path, mtprof_status status);

/* Standard output for the library. */
extern const mtprof_output cli_stdout;
/* Flushes standard output; the exit code, or CLI_FAILED with a message where not all was written.
 */
int cli_finish_stdout(int code);

/* ---- progress -------------------------------------------------------------------------------- */

/* A line on standard error, redrawn in place, once the work has taken a second; only on a terminal.
 */

/* From here on work is about `subject`; quiet: show nothing. */
void cli_progress_start(const char *subject, bool quiet);
/* A mtprof_progress. */
int cli_progress_step(void *user, const char *what, uint64_t done, uint64_t total);
/* Removes the line, if there is one. */
void cli_progress_end(void);
/* For tests: the clock in milliseconds, where the line goes, and whether that is a terminal. */
void cli_progress_test(int64_t (*clock_ms)(void), FILE *out);

/* ---- text of traces: any bytes --------------------------------------------------------------- */

/* Bytes of the UTF-8 character at the start of the text, 0 where there is none. */
size_t cli_utf8_length(const char *text, size_t length);
/* Columns that a text takes when it is shown safely. */
size_t cli_text_width(mtprof_text text);
/* Prints at most `width` columns of it ("…" in the middle) padded to width; 0: all, not padded.
 * Control characters are shown as \xNN, bytes that are no UTF-8 as U+FFFD. */
void cli_print_text(FILE *out, mtprof_text text, size_t width);
/* The same for two texts with a blank between them; `second` may be empty. */
void cli_print_two(mtprof_text first, mtprof_text second, size_t width);
size_t cli_two_width(mtprof_text first, mtprof_text second);
mtprof_text cli_text(const char *text);
/* How wide a column of texts is: as its longest, at least `least`, and no wider than what `fixed`
 * columns leave of `width`. */
size_t cli_fit_column(size_t longest, size_t least, size_t fixed, size_t width);
/* "12 more rows; --limit all shows them", where there are more; what: "row", or "" */
void cli_print_more(size_t n, const char *what);

/* ---- lines of a text that the library writes ------------------------------------------------- */

/* Set line and context; the rest is zero. */
typedef struct cli_lines {
    void (*line)(void *context, char *line, size_t length); /* without its end; zero-terminated */
    void *context;
    char *bytes;
    size_t used, room;
} cli_lines;
/* For mtprof_output.write; the lines are its context. */
int cli_lines_write(void *context, const void *bytes, size_t length);
/* Frees it; with `whole` a last line without an end counts. */
void cli_lines_end(cli_lines *lines, bool whole);

#endif /* CLI_TERM_H */
