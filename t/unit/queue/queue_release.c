/* queue/queue_operator.c: a release that fails changes nothing, and the crashes of the
 * message still count. */
/* link: t/sim/clock.c */
#include "queue/queue_operator.h"

#include "base/log/log_internal.h"
#include "t/support/guard_kit.h"
#include "t/support/queue_home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static struct kit k;
static char home[64];

/* How often the daemon has ended with the message; `crashes`: it does so once more. */
static unsigned
ends_of(struct id id, bool crashes)
{
    struct disk *disk;
    struct guard guard = {0};
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    if (disk_open(&disk, home, false) < 0)
        abort();
    guard_open(&guard, disk, log, 1, 0);
    unsigned ends = guard_ends(&guard, id);
    if (crashes) {
        (void)guard_enter(&guard, id);
        guard.page->crashed = 1;
    } else {
        guard_stop(&guard);
    }
    guard_close(&guard);
    disk_close(&disk);
    log_free(&log);
    return ends;
}

static void
reopen(void)
{
    if (queue_kit_open(&k, home) != 0)
        abort();
    kit_turns(&k, 3);
}

int
main(void)
{
    char mark[200], inner[300];
    clock_stop();
    queue_home_make_home(home);
    reopen();
    struct envelope *e =
        queue_kit_accept(&k, kit_envelope("a@x", (const char *[]){"b@y", NULL}),
                         TEXT("Subject: x\r\n\r\n"));
    ok(e != NULL && queue_hold(k.queue, e, "for a test", true) == 0);
    struct id id = e->id;
    envelope_free(&e);
    kit_close(&k);
    is_number(ends_of(id, true), 0, "no crash yet");
    is_number(ends_of(id, false), 1, "one crash");

    reopen();
    queue_home_path_of(home, "hold", id, mark);
    snprintf(inner, sizeof(inner), "%s/x", mark);
    ok(unlink(mark) == 0 && mkdir(mark, 0700) == 0 && mkdir(inner, 0700) == 0);
    ok_named(queue_release(k.queue, id) < 0, "its mark cannot be removed");
    kit_close(&k);
    is_number(ends_of(id, false), 1, "the crash still counts");

    reopen();
    is_number(queue_release(k.queue, (struct id){id.time_ms, id.hash + 1}), -ENOENT,
              "another message that nothing holds");
    ok(rmdir(inner) == 0 && rmdir(mark) == 0);
    int file = open(mark, O_CREAT | O_WRONLY, 0600);
    ok(file >= 0 && close(file) == 0);
    is_number(queue_release(k.queue, id), 0, "released");
    kit_close(&k);
    is_number(ends_of(id, false), 0, "by an operator who trusts it: no crash counts");
    remove_home(home);
    return done();
}
