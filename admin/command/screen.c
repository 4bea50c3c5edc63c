/* Takes a terminal and gives it back. */
#include "admin/command/screen.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { ROWS_USUAL = 24, ROWS_MIN = 3 };

/* The alternate screen, no cursor, no wrapping of long lines; and back. */
static const char screen_on[] = "\x1b[?1049h\x1b[?25l\x1b[?7l",
                  screen_off[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

static void
screen_write(const char *bytes)
{
    fputs(bytes, stdout);
    fflush(stdout);
}

/* Signals are read like keys, so that nothing ends the process in between. */
static void
screen_take_signals(struct screen *s)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t all;
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        sigaddset(&all, numbers[i]);
    sigprocmask(SIG_BLOCK, &all, &s->mask);
    s->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool
screen_begin(struct screen *s)
{
    *s = (struct screen){.signals = -1};
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &s->before) != 0)
        return false;
    struct termios raw = s->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    screen_take_signals(s);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    screen_write(screen_on);
    return true;
}

void
screen_end(struct screen *s)
{
    screen_write(screen_off);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    if (s->signals >= 0)
        close(s->signals);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

int
screen_rows(void)
{
    struct winsize size;
    int rows = ROWS_USUAL;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        rows = size.ws_row;
    return rows < ROWS_MIN ? ROWS_MIN : rows;
}

/* Each line erases the rest of the one before it: nothing flickers. */
void
screen_show(struct text lines, int rows)
{
    struct text line;
    fputs("\x1b[H", stdout);
    for (int i = 0; i < rows && lines.length > 0 && text_cut(&lines, '\n', &line); i++)
        printf("%s%.*s\x1b[K", i > 0 ? "\r\n" : "", TEXT_ARGS(line));
    screen_write("\x1b[J");
}

enum screen_key
screen_key_of(struct text typed, size_t *used)
{
    static const struct {
        struct text bytes;
        enum screen_key key;
    } keys[] = {
        {TEXT("\x1b[A"),  SCREEN_UP       },
        {TEXT("\x1b[B"),  SCREEN_DOWN     },
        {TEXT("\x1bOA"),  SCREEN_UP       },
        {TEXT("\x1bOB"),  SCREEN_DOWN     },
        {TEXT("\x1b[5~"), SCREEN_PAGE_UP  },
        {TEXT("\x1b[6~"), SCREEN_PAGE_DOWN},
        {TEXT("q"),       SCREEN_QUIT     },
        {TEXT("Q"),       SCREEN_QUIT     },
        {TEXT("\x03"),    SCREEN_QUIT     },
        {TEXT("s"),       SCREEN_ORDER    },
        {TEXT("p"),       SCREEN_PAUSE    },
        {TEXT("k"),       SCREEN_UP       },
        {TEXT("j"),       SCREEN_DOWN     },
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (text_starts(typed, keys[i].bytes)) {
            *used = keys[i].bytes.length;
            return keys[i].key;
        }
    *used = 1;
    return SCREEN_NONE;
}

/* Keys without a meaning are passed over. */
static enum screen_key
screen_typed(struct screen *s)
{
    enum screen_key key = SCREEN_NONE;
    size_t used;
    while (s->count > 0 && key == SCREEN_NONE) {
        key = screen_key_of(text_of(s->typed, s->count), &used);
        s->count -= used;
        memmove(s->typed, s->typed + used, s->count);
    }
    return key;
}

static enum screen_key
screen_read(struct screen *s, short events)
{
    ssize_t got = 0;
    if (events & (POLLIN | POLLHUP | POLLERR)) {
        got = read(STDIN_FILENO, s->typed + s->count, sizeof(s->typed) - s->count);
        if (got <= 0)
            return SCREEN_QUIT; /* the terminal has gone */
        s->count += (size_t)got;
    }
    return screen_typed(s);
}

enum screen_key
screen_wait(struct screen *s, int timeout_ms)
{
    struct signalfd_siginfo signal;
    struct pollfd fds[] = {
        {STDIN_FILENO, POLLIN, 0},
        {s->signals,   POLLIN, 0}
    };
    enum screen_key key = screen_typed(s);
    if (key != SCREEN_NONE)
        return key;
    if (poll(fds, 2, timeout_ms) <= 0)
        return SCREEN_NONE;
    if ((fds[1].revents & POLLIN) &&
        read(s->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal))
        return signal.ssi_signo == SIGWINCH ? SCREEN_RESIZED : SCREEN_QUIT;
    return screen_read(s, fds[0].revents);
}
