/* decide: what the scheduler's decisions cost, with a full queue and nothing around it.
 *
 *   decide MESSAGES SITES SENDERS [SESSIONS]
 * Loads one-recipient messages to so many sites, round robin; then sessions take and
 * settle all of them. Prints a line of JSON: nanoseconds for a message loaded, for a
 * decision (a session takes, settles, the message ends), and bytes for a message. For
 * the instructions of a decision: valgrind --tool=callgrind --toggle-collect=decide. */
#include "base/memory.h"
#include "sched/sched.h"
#include "t/support/message_now.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define START_MS INT64_C(1700000000000)

struct run {
    struct sched *s;
    struct target target;
    char (*domains)[32];
    long messages, sites, senders, sessions;
    struct sched_session **open;
    long opens, loads, takes;
};

static double
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t
heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void
act(struct run *r, const struct sched_action *a)
{
    if (a->verb == SCHED_OPEN) {
        r->open[r->opens++] = a->session;
    } else if (a->verb == SCHED_LOAD) {
        long number = r->loads++;
        struct sched_recipient to = {0, &r->target,
                                     text_from(r->domains[number % r->sites]), 0};
        struct sched_mail mail = {.birth_ms = START_MS,
                                  .sender =
                                      (uint64_t)(number / r->sites % r->senders),
                                  .size = 1000};
        sched_loaded_now(r->s, a->id, &mail, &to, 1);
    }
}

static void
load(struct run *r)
{
    struct sched_action a;
    for (long i = 0; i < r->messages; i++)
        sched_add(r->s, (struct id){START_MS + (uint64_t)i, (uint64_t)i},
                  START_MS, 0);
    while (r->loads < r->messages && sched_next(r->s, &a))
        act(r, &a);
}

/* Kept apart for callgrind. */
__attribute__((noinline)) static bool
decide(struct run *r, struct sched_session *session, const struct outcome *good)
{
    struct sched_work work;
    struct sched_action a;
    if (!sched_take(r->s, session, &work))
        return false;
    r->takes++;
    sched_settled(r->s, session, work.indexes[0], good);
    while (sched_next(r->s, &a))
        act(r, &a);
    return true;
}

static void
serve(struct run *r)
{
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct sched_action a;
    while (sched_next(r->s, &a))
        act(r, &a);
    for (bool any = true; any;) {
        any = false;
        for (long i = 0; i < r->opens; i++)
            any |= decide(r, r->open[i], &good);
    }
}

int
main(int argc, char **argv)
{
    if (argc < 4)
        return 64;
    struct run r = {.messages = atol(argv[1]),
                    .sites = atol(argv[2]),
                    .senders = atol(argv[3]),
                    .sessions = argc > 4 ? atol(argv[4]) : atol(argv[2])};
    if (r.messages < 1 || r.sites < 1 || r.senders < 1 || r.sessions < 1)
        return 64;
    static const int64_t start_ms = START_MS;
    r.target.kind = TARGET_MX;
    r.target.tls = TARGET_TLS_MAY;
    transport_params_default(&r.target.transport);
    r.target.transport.concurrency_limit = r.target.transport.initial_concurrency = 1;
    r.domains = memory_array((size_t)r.sites, sizeof(*r.domains));
    for (long i = 0; i < r.sites; i++)
        snprintf(r.domains[i], sizeof(*r.domains), "d%ld.example", i);
    r.open = memory_array((size_t)r.messages + (size_t)r.sites, sizeof(*r.open));
    r.s = sched_new(&(struct sched_settings){.active_limit = (int)r.messages,
                                             .session_limit = (int)r.sessions,
                                             .seed = 1}, &start_ms);
    size_t bytes = heap_bytes();
    double start = now_ns();
    load(&r);
    double loaded = now_ns();
    bytes = heap_bytes() - bytes;
    serve(&r);
    double served = now_ns();
    printf("{\"messages\": %ld, \"sites\": %zu, \"load_ns\": %.0f, \"decision_ns\": %.0f, "
           "\"bytes\": %.1f, \"taken\": %ld}\n",
           r.messages, sched_count(r.s).sites, (loaded - start) / (double)r.loads,
           (served - loaded) / (double)(r.takes ? r.takes : 1),
           (double)bytes / (double)r.messages, r.takes);
    return r.takes == r.messages ? 0 : 1;
}
