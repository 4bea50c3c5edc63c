/* Keys and signals of a terminal, which is as before at the end: a pair of pseudo-terminals. */
#include "admin/command/screen.h"

#include "t/support/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int master = -1, output = -1;

static void
is_key(const char *typed, enum screen_key want, size_t length)
{
    size_t used = 0;
    ok_named(screen_key_of(text_from(typed), &used) == want && used == length, typed);
}

static void
test_keys(void)
{
    is_key("q", SCREEN_QUIT, 1);
    is_key("\x03", SCREEN_QUIT, 1);
    is_key("sq", SCREEN_ORDER, 1);
    is_key("p", SCREEN_PAUSE, 1);
    is_key("\x1b[A", SCREEN_UP, 3);
    is_key("\x1bOB", SCREEN_DOWN, 3);
    is_key("\x1b[5~", SCREEN_PAGE_UP, 4);
    is_key("\x1b[6~q", SCREEN_PAGE_DOWN, 4);
    is_key("\x1b", SCREEN_NONE, 1);
    is_key("\x1b[", SCREEN_NONE, 1);
    is_key("x", SCREEN_NONE, 1);
    is_key("\xff", SCREEN_NONE, 1);
}

/* Standard input and output are the terminal until terminal_end(); TAP waits for that. */
static void
terminal_begin(void)
{
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        abort();
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    fflush(stdout);
    output = dup(STDOUT_FILENO);
    if (slave < 0 || dup2(slave, STDIN_FILENO) < 0 || dup2(slave, STDOUT_FILENO) < 0)
        abort();
    close(slave);
}

static void
terminal_end(void)
{
    fflush(stdout);
    dup2(output, STDOUT_FILENO);
    close(output);
}

static struct {
    bool good;
    const char *name;
} notes[40];
static size_t noted;

#define note(condition) note_one((condition), #condition)

static void
note_one(bool good, const char *name)
{
    notes[noted].good = good;
    notes[noted++].name = name;
}

static void
note_all(void)
{
    for (size_t i = 0; i < noted; i++)
        ok_named(notes[i].good, notes[i].name);
    noted = 0;
}

static bool
rows_are(unsigned short told, int want)
{
    struct winsize size = {.ws_row = told, .ws_col = 100};
    return ioctl(STDOUT_FILENO, TIOCSWINSZ, &size) == 0 && screen_rows() == want;
}

static bool
waits_for(struct screen *s, const enum screen_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (screen_wait(s, 60000) != keys[i])
            return false;
    return true;
}

static void
test_terminal(void)
{
    static const char typed[] = "xsp\x1b[B\x1b[A";
    static const enum screen_key keys[] = {SCREEN_ORDER, SCREEN_PAUSE, SCREEN_DOWN, SCREEN_UP},
                                 resized[] = {SCREEN_RESIZED}, quit[] = {SCREEN_QUIT};
    struct screen s;
    struct termios before, during, after;
    char said[4000];
    terminal_begin();
    note(tcgetattr(STDIN_FILENO, &before) == 0 && screen_begin(&s));
    note(tcgetattr(STDIN_FILENO, &during) == 0 && (during.c_lflag & (tcflag_t)(ICANON | ECHO | ISIG)) == 0);
    note(rows_are(40, 40) && rows_are(1, 3) && rows_are(0, 24));
    while (screen_wait(&s, 0) == SCREEN_RESIZED)
        ; /* the terminal has said so */
    note(screen_wait(&s, 0) == SCREEN_NONE);
    note(write(master, typed, strlen(typed)) == (ssize_t)strlen(typed));
    note(waits_for(&s, keys, 4));
    note(kill(getpid(), SIGWINCH) == 0 && waits_for(&s, resized, 1));
    note(kill(getpid(), SIGTERM) == 0 && waits_for(&s, quit, 1));
    screen_show(TEXT("one\ntwo\nthree\n"), 2);
    screen_end(&s);
    note(tcgetattr(STDIN_FILENO, &after) == 0 && after.c_lflag == before.c_lflag);
    size_t length = 0;
    struct pollfd ready = {.fd = master, .events = POLLIN};
    /* A terminal may give what was written in pieces. */
    for (said[0] = '\0'; strstr(said, "1049l") == NULL && poll(&ready, 1, 60000) == 1; said[length] = '\0') {
        ssize_t got = read(master, said + length, sizeof(said) - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    terminal_end();
    note_all();
    ok(strstr(said, "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[Hone\x1b[K\r\r\ntwo\x1b[K\x1b[J\x1b[?7h\x1b[?25h\x1b[?1049l") != NULL);
    close(master);
}

/* The terminal goes while a key is awaited. */
static void
test_gone(void)
{
    struct screen s;
    terminal_begin();
    note(screen_begin(&s));
    close(master);
    note(screen_wait(&s, 60000) == SCREEN_QUIT);
    screen_end(&s);
    terminal_end();
    note_all();
}

static void
test_none(void)
{
    struct screen s;
    int null = open("/dev/null", O_RDWR);
    fflush(stdout);
    output = dup(STDOUT_FILENO);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    note(!screen_begin(&s));
    terminal_end();
    note_all();
    close(null);
}

int
main(void)
{
    test_none();
    test_keys();
    test_terminal();
    test_gone();
    return done();
}
