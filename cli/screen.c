/* SPDX-License-Identifier: Apache-2.0
 *
 * The screen, see screen.h.
 */
#include "cli/screen.h"

#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static const char enter_text[] = "\033[?1049h\033[?25l\033[2J";
static const char leave_text[] = "\033[?25h\033[?1049l";

/* Signals that end the process or stop it. */
static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGTSTP,
                              SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGABRT};
enum {
    SIGNALS = sizeof numbers / sizeof *numbers
};

static volatile sig_atomic_t taken;
static struct termios before; /* of the terminal */
static struct sigaction actions_before[SIGNALS];
static int wake[2] = {-1, -1}; /* a pipe: a signal ends a wait that has not begun yet, too */

static char *frame;
static size_t frame_bytes;
static FILE *frame_file;

static void write_all(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDOUT_FILENO, text, length);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return; /* the terminal is gone */
        }
        if (n > 0) {
            text += n;
            length -= (size_t)n;
        }
    }
}

/* ---- taking and giving ----------------------------------------------------------------------- */

/* Safe in a signal handler, both. */
static void leave(void)
{
    if (taken) {
        taken = 0;
        write_all(leave_text, sizeof leave_text - 1);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
}

static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_all(enter_text, sizeof enter_text - 1);
    taken = 1;
}

static void note(int number)
{
    (void)number;
    int error = errno;
    (void)!write(wake[1], "x", 1);
    errno = error;
}

/* TTY1: gives the terminal back, and lets what was there before do its work. */
static void end_or_stop(int number)
{
    int error = errno;
    leave();
    for (int i = 0; i < SIGNALS; i++) {
        if (numbers[i] == number) {
            struct sigaction ours;
            sigset_t set;
            (void)sigaction(number, &actions_before[i], &ours);
            (void)sigemptyset(&set);
            (void)sigaddset(&set, number);
            (void)raise(number);
            (void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* it comes here; a stop ends here */
            (void)sigaction(number, &ours, NULL);
        }
    }
    enter(); /* it was a stop, and is over */
    note(number);
    errno = error;
}

bool cli_screen_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

bool cli_screen_open(void)
{
    struct sigaction action = {.sa_handler = end_or_stop};
    struct sigaction resize = {.sa_handler = note};
    if (tcgetattr(STDIN_FILENO, &before) != 0 || pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        cli_error("the terminal: %s", strerror(errno));
        return false;
    }
    (void)fflush(stdout);
    for (int i = 0; i < SIGNALS; i++) {
        (void)sigaction(numbers[i], NULL, &actions_before[i]);
        if (actions_before[i].sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
    (void)sigaction(SIGWINCH, &resize, NULL);
    (void)sigaction(SIGCONT, &resize, NULL);
    enter();
    return true;
}

void cli_screen_close(void)
{
    if (wake[0] < 0) {
        return;
    }
    leave();
    for (int i = 0; i < SIGNALS; i++) {
        (void)sigaction(numbers[i], &actions_before[i], NULL);
    }
    (void)signal(SIGWINCH, SIG_DFL);
    (void)signal(SIGCONT, SIG_DFL);
    close(wake[0]);
    close(wake[1]);
    wake[0] = wake[1] = -1;
}

void cli_screen_size(uint32_t *width, uint32_t *height)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
    *width = known ? size.ws_col : 80;
    *height = known ? size.ws_row : 24;
}

/* ---- frames ---------------------------------------------------------------------------------- */

FILE *cli_screen_begin(void)
{
    frame_file = open_memstream(&frame, &frame_bytes);
    return frame_file;
}

/* Each line clears what was behind it, and the last one what was below: nothing flickers. */
void cli_screen_end(void)
{
    char *text = NULL;
    size_t bytes = 0;
    if (frame_file == NULL || fclose(frame_file) != 0) {
        frame_file = NULL;
        return;
    }
    frame_file = NULL;
    FILE *out = open_memstream(&text, &bytes);
    if (out != NULL) {
        fputs("\033[H", out);
        for (size_t i = 0; i < frame_bytes; i++) {
            bool last = i + 1 == frame_bytes; /* a line feed there would scroll */
            if (frame[i] == '\n') {
                fputs(last ? "\033[K" : "\033[K\r\n", out);
            } else {
                fputc(frame[i], out);
            }
        }
        fputs("\033[J", out);
        if (fclose(out) == 0 && taken) {
            write_all(text, bytes);
        }
    }
    free(text);
    free(frame);
    frame = NULL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The rest of a sequence that began with ESC: it comes at once. */
static int read_sequence(void)
{
    static const struct {
        const char *text;
        int key;
    } sequences[] = {{"[A", CLI_KEY_UP},   {"OA", CLI_KEY_UP},       {"[B", CLI_KEY_DOWN},
                     {"OB", CLI_KEY_DOWN}, {"[5~", CLI_KEY_PAGE_UP}, {"[6~", CLI_KEY_PAGE_DOWN},
                     {"[H", CLI_KEY_HOME}, {"[1~", CLI_KEY_HOME},    {"OH", CLI_KEY_HOME},
                     {"[F", CLI_KEY_END},  {"[4~", CLI_KEY_END},     {"OF", CLI_KEY_END}};
    char text[8] = "";
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    for (size_t n = 0; n + 1 < sizeof text && poll(&in, 1, 20) == 1; n++) {
        if (read(STDIN_FILENO, text + n, 1) != 1) {
            break;
        }
        bool inside = n == 0 ? text[n] == '[' || text[n] == 'O' : text[n] >= '0' && text[n] <= ';';
        if (!inside) {
            break;
        }
    }
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        if (strcmp(sequences[i].text, text) == 0) {
            return sequences[i].key;
        }
    }
    return text[0] == '\0' ? '\033' : CLI_KEY_OTHER;
}

int cli_screen_key(int64_t wait_ms)
{
    struct pollfd waits[2] = {{.fd = wake[0], .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
    int n = poll(waits, 2, wait_ms < 0 ? 0 : wait_ms > 3600000 ? 3600000 : (int)wait_ms);
    if ((waits[0].revents & POLLIN) != 0 || (n < 0 && errno == EINTR)) {
        char bytes[64];
        while (read(wake[0], bytes, sizeof bytes) > 0) {
        }
        return CLI_KEY_RESIZE;
    }
    if (n <= 0 || waits[1].revents == 0) {
        return CLI_KEY_NONE;
    }
    unsigned char byte = 0;
    if (read(STDIN_FILENO, &byte, 1) != 1) {
        return CLI_KEY_CLOSED;
    }
    return byte == '\033' ? read_sequence() : byte;
}
