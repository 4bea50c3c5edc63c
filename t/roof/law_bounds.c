/* Bounds of a daemon, after its turns. */
#include "t/roof/law_bounds.h"

#include "queue/group/give.h"
#include "queue/group/siblings.h"
#include "queue/queue_internal.h"
#include "t/roof/editor.h"
#include "t/roof/fleet.h"
#include "t/roof/group.h"
#include "t/roof/hop.h"
#include "t/roof/model.h"
#include "t/roof/network.h"
#include "t/roof/roof.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/sites_look.h"

#include <inttypes.h>

enum {
    TURNS_APART = 32, /* of the checks that count things */
    /* For what is there once: listeners, questions of operators, startup. Connections that
     * have been closed are there for half a minute if their peers say nothing. */
    SPARE_SOCKETS = 120 + NET_LINGERING_MAX,
    SPARE_FILES =
        200, /* of these up to 160 of messages that become S5 (preprocess.h) */
    SPARE_TIMERS = 80,
    ROUSED_MS = 60 * 1000, /* a clock that was set may tell a little less */
    SPARE_CLIENTS = 2      /* that are refused for their number */
};

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void
judge_most(const struct host *h, const char *what, size_t count, int64_t most)
{
    if ((int64_t)count > most)
        roof_break("bounds", NULL, "%s has %zu %s, with a limit of %" PRId64, h->name,
                   count, what, most);
}

static unsigned most_rcpts;

unsigned
law_bounds_take_rcpts(void)
{
    unsigned most = most_rcpts;
    most_rcpts = 0;
    return most;
}

/* As they were at any time: what has begun may go on behind a reload. */
static void
judge_limits(const struct host *h, const struct sched_counts *c)
{
    const struct editor_bounds *b = editor_bounds();
    unsigned rcpts = hops_take_most_rcpts();
    if (rcpts > most_rcpts)
        most_rcpts = rcpts;
    judge_most(h, "sessions", c->sessions, 2 * b->sessions);
    judge_most(h, "active messages", c->active, b->active);
    judge_most(h, "recipients in memory", c->recipients,
               larger(b->in_memory, MODEL_RCPTS_MAX));
    judge_most(h, "recipients in a transaction", rcpts,
               roof_breaks("bounds") ? 0 : larger(b->recipients, fleet_recipients()));
}

/* Things that nothing needs any more would become more and more. */
static void
judge_resources(struct host *h, const struct sched_counts *c)
{
    const struct daemon *d = &h->daemon;
    bool leaks = roof_breaks("leak");
    int64_t clients = (int64_t)listener_sessions(d->listener),
            sessions = (int64_t)c->sessions,
            given = (int64_t)group_count() * (SIBLING_UNANSWERED + GIVE_HURRY),
            mail = (int64_t)(c->incoming + c->active + c->deferred + c->sites);
    host_enter(h);
    size_t sockets = network_open(h->process), files = sim_disk_open_files();
    int64_t syncs = (int64_t)sim_disk_syncs();
    host_leave();
    judge_most(h, "sockets", sockets,
               leaks ? 0 : clients + 2 * sessions + SPARE_SOCKETS);
    judge_most(h, "files open", files,
               mail + sessions + clients + given + syncs + SPARE_FILES);
    judge_most(h, "timers", sim_loop_timers(d->loop),
               2 * (int64_t)sockets + mail + syncs + SPARE_TIMERS);
    if (h == &host)
        judge_most(h, "sessions of clients", (size_t)clients,
                   editor_bounds()->clients + SPARE_CLIENTS);
}

void
law_bounds_turn(struct host *h)
{
    struct sched_counts c = sched_count(manager_sched(h->daemon.manager));
    if (h == &host)
        judge_limits(h, &c);
    if (h->turns % TURNS_APART == 0)
        judge_resources(h, &c);
}

static void
judge_dead(void *context, const struct sched_site *site)
{
    const struct host *h = context;
    if (site->dead_until_ms > 0 &&
        site->dead_until_ms + ROUSED_MS < loop_now_ms(h->daemon.loop))
        roof_break("in time", NULL,
                   "%s: the time of a dead site is over, and it sleeps: %s", h->name,
                   site->key);
}

void
law_bounds_sleep(void)
{
    for (struct host *h = NULL; (h = host_next(h)) != NULL;) {
        if (!h->running)
            continue;
        if (manager_queue(h->daemon.manager)->marks.urgent)
            roof_break("in time", NULL, "%s sleeps, and results are to be written",
                       h->name);
        if (h->turns % TURNS_APART == 0)
            sites_look(manager_sched(h->daemon.manager), judge_dead, h);
    }
}
