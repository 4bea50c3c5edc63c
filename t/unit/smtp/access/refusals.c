/* smtp/refusals: how many lines a client's refusals get, and what is said of the rest. */
#include "smtp/access/refusals.h"

/* link: t/sim/loop.c */
#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

static struct loop *loop;
static struct log *log_;
static struct buffer said;

/* How many of count lines may be written. */
static unsigned
admitted(struct refusals *r, const char *client, unsigned count)
{
    unsigned admits = 0;
    for (unsigned i = 0; i < count; i++)
        admits += refusals_admit(r, client);
    return admits;
}

static bool
was_said(const char *what)
{
    return said.length > 0 &&
           memmem(said.at, said.length, what, strlen(what)) != NULL;
}

static void
each(void)
{
    struct refusals *r = refusals_new(loop, log_);
    buffer_clear(&said);
    is_number(admitted(r, "[192.0.2.1]", 500), REFUSALS_EACH_MAX, "the first are written");
    is_number(admitted(r, "[192.0.2.2]", 3), 3, "others have lines of their own");
    is_number((int64_t)said.length, 0, "nothing is summed up before the second is over");
    sim_loop_advance(loop, 1000);
    is_text(buffer_text(&said),
            TEXT("smtpd: client=[192.0.2.1]: 480 more refusals in this second, not "
                 "logged\n"),
            "one line for the rest, none for who had no rest");
    is_number(admitted(r, "[192.0.2.1]", 500), REFUSALS_EACH_MAX, "a new second");
    refusals_free(&r);
    ok_named(r == NULL && was_said("480 more refusals"), "the end sums up too");
    ok_named(refusals_admit(NULL, "[192.0.2.1]"), "nobody counts: all are written");
}

/* A crowd: each is heard once, then none; the sum of all lines has a limit. */
static void
crowd(void)
{
    struct refusals *r = refusals_new(loop, log_);
    unsigned lines = 0, clients = 3 * REFUSALS_CLIENTS_MAX;
    char name[32];
    buffer_clear(&said);
    for (unsigned i = 0; i < clients; i++) {
        snprintf(name, sizeof(name), "[10.0.%u.%u]", i / 256, i % 256);
        unsigned own = admitted(r, name, 100);
        if (own == 0 && i < REFUSALS_CLIENTS_MAX)
            break;
        lines += own;
    }
    ok_named(lines >= REFUSALS_CLIENTS_MAX, "the first line of each client is written");
    ok_named(lines <= REFUSALS_ALL_MAX + REFUSALS_EACH_MAX + REFUSALS_CLIENTS_MAX,
             "the lines of a crowd have a limit in sum");
    sim_loop_advance(loop, 1000);
    ok(was_said("200000 refusals of other clients in this second, not logged"));
    ok(was_said("client=[10.0.3.231]: 99 more refusals in this second"));
    is_number(admitted(r, "[192.0.2.9]", 5), 5, "then there is place again");
    refusals_free(&r);
}

int
main(void)
{
    loop = sim_loop_new(1);
    log_ = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&said, 1 << 20);
    log_capture(log_, &said);
    each();
    crowd();
    log_free(&log_);
    loop_free(&loop);
    buffer_free(&said);
    return done();
}
