/* SPDX-License-Identifier: Apache-2.0
 *
 * A screen of one's own in the terminal, for commands that redraw: the alternate screen, keys one
 * at a time, the size. Plain ANSI sequences.
 *
 *   TTY1  However the process ends, the terminal is as it was before: on return, on signals that
 *         end or stop it, on a crash.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_key {
    CLI_KEY_NONE = 0,     /* the time is over */
    CLI_KEY_RESIZE = 256, /* the size has changed, or the process was stopped: draw again */
    CLI_KEY_UP,
    CLI_KEY_DOWN,
    CLI_KEY_PAGE_UP,
    CLI_KEY_PAGE_DOWN,
    CLI_KEY_HOME,
    CLI_KEY_END,
    CLI_KEY_CLOSED, /* nothing more will come */
    CLI_KEY_OTHER   /* a key that has no meaning here */
};

/* Whether there is a terminal for keys and for output. */
bool cli_screen_possible(void);

/* Takes the terminal. False: it cannot be had, and the error was printed. */
bool cli_screen_open(void);
/* Gives it back; does nothing where it was not taken. */
void cli_screen_close(void);

void cli_screen_size(uint32_t *width, uint32_t *height);

/* A frame: what is printed to the file between the two calls, lines ended by '\n', is shown at
 * once. NULL: no memory. Lines beyond the height are the caller's mistake. */
FILE *cli_screen_begin(void);
void cli_screen_end(void);

/* Waits for a key: a byte, or one of enum cli_key. */
int cli_screen_key(int64_t wait_ms);

#endif /* CLI_SCREEN_H */
