/* The count of a long command, for a terminal alone. */
#include "admin/command/counter.h"

#include "base/loop/loop.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *written;
static size_t size;

static void
begin(struct counter *p, bool shows, bool counts)
{
    FILE *out = open_memstream(&written, &size);
    if (out == NULL)
        abort();
    counter_start(p, out, shows, counts);
}

static void
end(struct counter *p, const char *expected, const char *label)
{
    fclose(p->out);
    is_string(written, expected, label);
    free(written);
}

/* As after a pause. */
static void
step_late(struct counter *p)
{
    p->next_us = loop_clock_us();
    counter_look(p);
}

/* At any load of the machine. */
static void
step_early(struct counter *p)
{
    p->next_us = INT64_MAX;
    counter_look(p);
}

/* --- A terminal ------------------------------------------------------------------- */

enum { PATIENCE_MS = 60 * 1000 };

/* The output of a program there, once it is as long as the wanted text: the kernel
 * carries the text from one end to the other in its own time. */
static void
is_shown(int terminal, const char *wanted, const char *name)
{
    struct pollfd readable = {.fd = terminal, .events = POLLIN};
    char text[500];
    size_t length = 0;
    while (length < strlen(wanted) && poll(&readable, 1, PATIENCE_MS) == 1) {
        ssize_t got = read(terminal, text + length, sizeof(text) - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    is_string(text, wanted, name);
}

/* The text before it is all that was shown. */
static void
write_mark(int file)
{
    if (write(file, "|", 1) != 1)
        abort();
}

/* A count, and a line at the end, with these as standard output and error. */
static void
count_there(int out, int err, bool whole)
{
    struct counter p;
    int saved[2] = {dup(1), dup(2)};
    fflush(NULL);
    if (dup2(out, 1) < 0 || dup2(err, 2) < 0)
        abort();
    counter_start_here(&p, whole);
    step_late(&p);
    counter_end(&p, 1, "");
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
}

static void
test_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    int nowhere = open("/dev/null", O_RDWR);
    if (terminal < 0) {
        printf("# no terminals here\n");
        close(nowhere);
        return;
    }
    if (grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        abort();
    int person = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    if (person < 0 || nowhere < 0)
        abort();
    count_there(nowhere, person, false);
    is_shown(terminal, "\r1 looked at, 0 done\x1b[K\r\x1b[K1 message\r\n", "somebody waits");
    count_there(person, person, false);
    is_shown(terminal, "1 message\r\n", "no count within its lines");
    count_there(person, person, true);
    is_shown(terminal, "\r1 looked at, 0 done\x1b[K\r\x1b[K1 message\r\n", "but between them");
    int script[2];
    if (pipe2(script, O_NONBLOCK) != 0)
        abort();
    count_there(person, script[1], true);
    write_mark(person);
    write_mark(script[1]);
    is_shown(terminal, "|", "nothing on standard output");
    is_shown(script[0], "|", "nothing for a script");
    close(script[0]);
    close(script[1]);
    close(person);
    close(terminal);
    close(nowhere);
}

int
main(void)
{
    test_terminal();
    struct counter p;
    begin(&p, false, true);
    step_late(&p);
    counter_end(&p, 1, "");
    end(&p, "", "a script sees nothing");

    begin(&p, true, false);
    step_late(&p);
    counter_end(&p, 1, "");
    end(&p, "1 message\n", "beside its lines the end alone");

    begin(&p, true, true);
    ok_named(p.next_us > loop_clock_us() + 500 * 1000, "no count in the first second");
    step_early(&p);
    int64_t before_us = loop_clock_us();
    step_late(&p);
    ok_named(p.visible && p.next_us > before_us, "and then a pause");
    step_early(&p);
    counter_hide(&p);
    counter_hide(&p);
    ok(!p.visible);
    p.next_us = 0;
    counter_done(&p);
    counter_done(&p);
    counter_end(&p, 3, ", 1 failed");
    end(&p, "\r2 looked at, 0 done\x1b[K\r\x1b[K\r3 looked at, 1 done\x1b[K\r\x1b[K3 messages, 1 failed\n",
        "written over each other, and gone at the end");

    begin(&p, true, true);
    p.unit = " kB";
    p.next_us = 0;
    counter_look_at(&p, 1234567);
    p.next_us = 0;
    counter_look_at(&p, 7);
    p.next_us = 0;
    p.looked = UINT64_MAX;
    p.done = 1000;
    counter_look_at(&p, 0);
    p.next_us = INT64_MAX;
    counter_done(&p);
    is_number((int64_t)p.done, 1001, "counted though not shown");
    counter_hide(&p);
    end(&p, "\r1,234,567 kB looked at, 0 done\x1b[K\r1,234,567 kB looked at, 0 done\x1b[K"
            "\r18,446,744,073,709,551,615 kB looked at, 1,000 done\x1b[K\r\x1b[K",
        "digits in threes; it never goes back");

    begin(&p, true, true);
    p.next_us = 0;
    counter_done(&p);
    counter_hide(&p);
    end(&p, "\r1 looked at, 1 done\x1b[K\r\x1b[K", "what is done was looked at");

    struct counter none = {0}; /* of a silent command */
    counter_look(&none);
    counter_done(&none);
    counter_hide(&none);
    counter_end(&none, 1, "");
    is_number((int64_t)none.done, 1, "without a place to show it");
    return done();
}
