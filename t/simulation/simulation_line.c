/* The client's connections in a simulation: look-up, addresses, mail, idleness. */
#include "t/simulation/simulation_internal.h"

#include "base/memory.h"
#include "sched/limits/retry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    ROUND_TRIP_MIN_US = 1000,
    ROUND_TRIP_MAX_US = 4000,
    PROMPT_US = SCHED_PROMPT_MS * 1000,
    LOOK_EVERY_US = 50000, /* how often idle sessions ask regardless of events, */
    LOOK_ALWAYS = 100      /* with more than these; the daemon asks in each turn */
};

enum step { /* the next event */
            STEP_FOUND,
            STEP_CONNECT,
            STEP_GREET,
            STEP_GIVE_UP, /* connection or greeting timed out */
            STEP_CONTENT, /* a transaction's recipients have been accepted */
            STEP_ANSWER,  /* the reply to a transaction */
            STEP_QUIT     /* idle for long enough */
};

struct line {
    struct event event;
    enum step step;
    struct line *prev, *next;                 /* all */
    struct line *idle_prev, *idle_next;       /* of a site */
    struct line *station_prev, *station_next; /* of a server */
    struct line *waiting_prev, *waiting_next; /* in its queue */
    struct sched_session *session;
    const struct scenario_domain *domain;
    struct station *station;       /* its server; NULL: none */
    size_t *order, tried;          /* of the site's addresses */
    struct outcome trouble;        /* of the last address tried */
    struct sched_work work, early; /* early: the next */
    enum receipt receipt;
    int64_t service_us, reply_us, connected_ms;
    unsigned carried;
    bool found, queued, greeted, busy, idle, has_early;
    bool prompt; /* its server's last reply to content */
};

static const char *
station_name(const struct station *station)
{
    return station->server.settings.name;
}

static struct place *
line_place(struct simulation *s, const struct line *l)
{
    return &s->places[l->domain->site];
}

static int64_t
round_trip_us(struct simulation *s)
{
    return ROUND_TRIP_MIN_US + (int64_t)(retry_random(&s->random) %
                                         (ROUND_TRIP_MAX_US - ROUND_TRIP_MIN_US + 1));
}

static void
plan(struct simulation *s, struct line *l, enum step step, int64_t in_us)
{
    l->step = step;
    simulation_plan(s, &l->event, s->now_us + in_us);
}

static void
set_idle(struct simulation *s, struct line *l, bool idle)
{
    if (l->idle == idle)
        return;
    struct place *place = line_place(s, l);
    l->idle = idle;
    if (idle)
        DL_APPEND2(place->idle, l, idle_prev, idle_next);
    else
        DL_DELETE2(place->idle, l, idle_prev, idle_next);
}

void
line_touch(struct simulation *s, size_t place)
{
    if (s->places[place].is_touched)
        return;
    s->places[place].is_touched = true;
    s->touched[s->touched_count++] = place;
}

/* Frees its place at the server for the next that waits. */
static void
leave_station(struct simulation *s, struct line *l)
{
    struct station *station = l->station;
    if (!station)
        return;
    struct fake_server *r = &station->server;
    l->station = NULL;
    DL_DELETE2(station->lines, l, station_prev, station_next);
    if (l->queued) {
        l->queued = false;
        DL_DELETE2(station->waiting, l, waiting_prev, waiting_next);
        fake_server_gave_up(r);
        return;
    }
    bool is_followed = fake_server_left(r);
    if (!is_followed)
        return;
    struct line *next = station->waiting;
    DL_DELETE2(station->waiting, next, waiting_prev, waiting_next);
    next->queued = false;
    plan(s, next, STEP_GREET, fake_server_delay_us(r, r->settings.greeting_us));
}

static void
line_remove(struct simulation *s, struct line *l)
{
    set_idle(s, l, false);
    DL_DELETE(s->lines, l);
    s->line_count--;
    if (l->found)
        s->result->sites[l->domain->site].sessions--;
}

/* Ends the session. */
static void
line_end(struct simulation *s, struct line *l, const struct outcome *why)
{
    size_t place = l->domain->site;
    bool failed = why->blame == BLAME_SITE, greeted = l->greeted;
    assert(!l->busy && !l->has_early);
    leave_station(s, l);
    simulation_cancel(s, &l->event);
    line_remove(s, l);
    simulation_note(s, "end", "%s%s%s", l->domain->name, failed ? ": " : "",
                    failed ? why->text : "");
    sched_session_ended(s->sched, l->session, why);
    line_touch(s, place);
    if (failed && !greeted)
        simulation_feedback(s, place);
    free(l->order);
    free(l);
}

/* As smtp/delivery/delivery.c: nothing is wrong. */
static void
line_done(struct simulation *s, struct line *l)
{
    line_end(s, l, &outcome_no_trouble);
}

static void
simulation_line_settle(struct simulation *s, struct line *l,
                       const struct outcome *outcome)
{
    struct mail *mail = l->work.owner;
    size_t count = l->work.count;
    l->busy = false;
    simulation_note(s, outcome_word(outcome->verdict), "%zu of message %td to %s%s%s",
                    count, mail - s->mails + 1, l->domain->name,
                    outcome->text[0] ? ": " : "", outcome->text);
    for (size_t i = 0; i < count; i++) {
        simulation_verdict(s, mail, l->work.indexes[i], outcome);
        sched_settled(s->sched, l->session,
                      l->work.indexes[i], outcome);
    }
    line_touch(s, l->domain->site);
    simulation_feedback(s, l->domain->site);
}

/* The same of mail that was taken early and not sent. */
static void
settle_early(struct simulation *s, struct line *l, const struct outcome *outcome)
{
    if (!l->has_early)
        return;
    l->work = l->early;
    l->has_early = false;
    simulation_line_settle(s, l, outcome);
}

/* --- Addresses -------------------------------------------------------------------- */

/* The order in which a session tries the addresses of its site, by the health that the
 * scheduler knows of. */
static size_t *
address_order(struct simulation *s, const struct line *l)
{
    const struct place *place = line_place(s, l);
    size_t count = place->station_count;
    size_t *order = memory_array(count, sizeof(*order));
    struct text *names = memory_array(count, sizeof(*names));
    int *groups = memory_array(count, sizeof(*groups));
    for (size_t i = 0; i < count; i++) {
        names[i] = text_from(station_name(&place->stations[i]));
        groups[i] = 0;
    }
    sched_hosts_order(s->sched, names, groups, count, order);
    free(names);
    free(groups);
    return order;
}

static void
host_failed(struct simulation *s, const struct station *station)
{
    sched_host_bad(s->sched, text_from(station_name(station)));
}

static void
try_next(struct simulation *s, struct line *l)
{
    if (l->tried == line_place(s, l)->station_count) {
        struct outcome trouble = l->trouble;
        settle_early(s, l, &trouble);
        line_end(s, l, &trouble);
        return;
    }
    plan(s, l, STEP_CONNECT, round_trip_us(s));
}

static void
simulation_line_on_found(struct simulation *s, struct line *l)
{
    struct place *place = line_place(s, l);
    struct simulation_site *site = &s->result->sites[l->domain->site];
    if (!sched_session_found(s->sched, l->session,
                             text_of(place->key, place->key_length))) {
        struct outcome no_place =
            outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2",
                         "its site has as many sessions as it may have");
        line_end(s, l, &no_place);
        return;
    }
    l->found = true;
    if (++site->sessions > site->peak_sessions)
        site->peak_sessions = site->sessions;
    l->order = address_order(s, l);
    try_next(s, l);
}

static void
simulation_line_refused(struct simulation *s, struct line *l,
                        const struct station *station, int code, const char *what)
{
    s->result->refused++;
    l->trouble =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, code, code ? "4.7.0" : "4.4.1",
                     "%s %s", station_name(station), what);
    simulation_note(s, "refused", "%s", l->trouble.text);
    host_failed(s, station);
    try_next(s, l);
}

static void
enter_station(struct line *l, struct station *station)
{
    l->station = station;
    DL_APPEND2(station->lines, l, station_prev, station_next);
}

static void
on_connect(struct simulation *s, struct line *l)
{
    struct station *station = &line_place(s, l)->stations[l->order[l->tried++]];
    struct fake_server *r = &station->server;
    l->trouble = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
                              "%s: connection timed out", station_name(station));
    s->result->connects++;
    l->connected_ms = s->now_ms;
    switch (fake_server_connect(r)) {
    case RECEPTION_SESSION:
        enter_station(l, station);
        plan(s, l, STEP_GREET, fake_server_delay_us(r, r->settings.greeting_us));
        return;
    case RECEPTION_QUEUED:
        enter_station(l, station);
        l->queued = true;
        DL_APPEND2(station->waiting, l, waiting_prev, waiting_next);
        plan(s, l, STEP_GIVE_UP, r->settings.greeting_timeout_us);
        return;
    case RECEPTION_421:
        simulation_line_refused(s, l, station, 421,
                                "said: 421 4.7.0 too many connections");
        return;
    case RECEPTION_REFUSED:
        simulation_line_refused(s, l, station, 0, "refused the connection");
        return;
    case RECEPTION_UNANSWERED:
        plan(s, l, STEP_GIVE_UP, r->settings.connect_timeout_us);
        return;
    }
}

static void
on_give_up(struct simulation *s, struct line *l)
{
    leave_station(s, l);
    s->result->timed_out++;
    simulation_note(s, "timeout", "%s", l->trouble.text);
    host_failed(s, &line_place(s, l)->stations[l->order[l->tried - 1]]);
    try_next(s, l);
}

/* --- Mail ------------------------------------------------------------------------- */

static void
transaction_begin(struct simulation *s, struct line *l)
{
    struct fake_server *r = &l->station->server;
    l->busy = true;
    s->result->transactions++;
    l->receipt = fake_server_begin(r, s->now_ms);
    l->service_us = l->receipt == RECEIPT_TAKEN
                        ? fake_server_service_us(r, l->work.count, &l->reply_us)
                        : round_trip_us(s);
    if (l->receipt == RECEIPT_TAKEN && l->prompt)
        plan(s, l, STEP_CONTENT, l->service_us - l->reply_us);
    else
        plan(s, l, STEP_ANSWER, l->service_us);
}

/* Gives the session mail, or makes it idle, or ends it. */
static void
take_mail(struct simulation *s, struct line *l)
{
    if (!sched_take(s->sched, l->session, &l->work)) {
        if (sched_session_is_spent(l->session) || s->scenario->idle_us == 0) {
            line_done(s, l);
        } else if (!l->idle) {
            set_idle(s, l, true);
            plan(s, l, STEP_QUIT, s->scenario->idle_us);
        }
        return;
    }
    set_idle(s, l, false);
    simulation_begin(s, l->work.owner);
    transaction_begin(s, l);
}

/* As smtp/delivery/delivery.c: the next envelope goes out with the content. */
static void
on_content(struct simulation *s, struct line *l)
{
    plan(s, l, STEP_ANSWER, l->reply_us);
    if (!sched_has_work(s->sched, l->session) ||
        !sched_take(s->sched, l->session, &l->early))
        return;
    l->has_early = true;
    simulation_begin(s, l->early.owner);
}

static void
early_begin(struct simulation *s, struct line *l)
{
    l->work = l->early;
    l->has_early = false;
    transaction_begin(s, l);
}

static void
on_greet(struct simulation *s, struct line *l)
{
    struct simulation_site *site = &s->result->sites[l->domain->site];
    const struct place *place = line_place(s, l);
    unsigned open = 0;
    l->greeted = true;
    s->result->greeted++;
    sched_host_good(s->sched,
                    text_from(station_name(l->station)),
                    s->now_ms - l->connected_ms);
    for (size_t i = 0; i < place->station_count; i++)
        open += place->stations[i].server.sessions;
    if (open > site->peak_open)
        site->peak_open = open;
    simulation_note(s, "greeted", "%s by %s", l->domain->name,
                    station_name(l->station));
    if (l->has_early)
        early_begin(s, l);
    else
        take_mail(s, l);
}

/* The server has hung up before mail that was taken early: the same address gets it by
 * another connection. */
static void
line_reconnect(struct simulation *s, struct line *l)
{
    leave_station(s, l);
    l->greeted = l->prompt = false;
    l->carried = 0;
    l->tried--;
    plan(s, l, STEP_CONNECT, round_trip_us(s));
}

/* The outcome that smtp/client/reply_outcome.h would make. */
static struct outcome
simulation_line_judge(const struct fake_server *r, enum receipt receipt)
{
    int code = (int)r->settings.rate_reply;
    switch (receipt) {
    case RECEIPT_TAKEN:
        break;
    case RECEIPT_TEMPFAIL:
        return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0",
                            "host %s said: 451 4.3.0 try again later",
                            r->settings.name);
    case RECEIPT_RATE:
        return outcome_make(VERDICT_DEFERRED, BLAME_SITE, code, "4.7.1",
                            "host %s said: %d 4.7.1 rate limited, slow down",
                            r->settings.name, code);
    }
    return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "%s", "");
}

static void
on_answer(struct simulation *s, struct line *l)
{
    struct simulation_result *result = s->result;
    const struct fake_server *r = &l->station->server;
    struct outcome outcome = simulation_line_judge(r, l->receipt);
    if (l->receipt == RECEIPT_TAKEN) {
        result->works++;
        result->sites[l->domain->site].delivered++;
        result->sites[l->domain->site].busy_us += l->service_us;
    } else if (l->receipt == RECEIPT_TEMPFAIL) {
        result->tempfails++;
    } else if (l->receipt == RECEIPT_RATE) {
        result->tempfails++;
        result->rate_limited++;
    }
    l->carried++;
    l->prompt = l->receipt == RECEIPT_TAKEN && l->reply_us <= PROMPT_US;
    simulation_line_settle(s, l, &outcome);
    bool hangs_up = outcome.code == 421 || (r->settings.per_session > 0 &&
                                            l->carried >= r->settings.per_session);
    if (hangs_up && l->has_early)
        line_reconnect(s, l);
    else if (hangs_up && outcome.code == 421)
        line_end(s, l, &outcome);
    else if (hangs_up)
        line_done(s, l);
    else if (l->has_early)
        early_begin(s, l);
    else
        take_mail(s, l);
}

/* --- Public ----------------------------------------------------------------------- */

void
line_open(struct simulation *s, const struct sched_action *action)
{
    struct line *l = memory_new(sizeof(*l));
    struct text domain = text_from(action->domain);
    HASH_FIND(hh, s->scenario->domains, domain.at, domain.length, l->domain);
    assert(l->domain);
    l->event.kind = EVENT_LINE;
    l->session = action->session;
    DL_APPEND(s->lines, l);
    s->line_count++;
    s->result->opens++;
    if (s->line_count > s->result->peak_sessions)
        s->result->peak_sessions = s->line_count;
    simulation_note(s, "open", "%s", l->domain->name);
    plan(s, l, STEP_FOUND, s->scenario->dns_us);
}

void
line_happened(struct simulation *s, struct event *event)
{
    struct line *l = memory_container(event, struct line, event);
    s->is_ready = true;
    switch (l->step) {
    case STEP_FOUND:
        simulation_line_on_found(s, l);
        return;
    case STEP_CONNECT:
        on_connect(s, l);
        return;
    case STEP_GREET:
        on_greet(s, l);
        return;
    case STEP_GIVE_UP:
        on_give_up(s, l);
        return;
    case STEP_CONTENT:
        on_content(s, l);
        return;
    case STEP_ANSWER:
        on_answer(s, l);
        return;
    case STEP_QUIT:
        if (sched_has_work(s->sched, l->session))
            take_mail(s, l);
        if (l->idle)
            line_done(s, l);
        return;
    }
}

/* True: a session has taken mail, or has ended for other mail. */
static bool
wake_place(struct simulation *s, struct place *place)
{
    struct line *l, *next;
    bool woke = false;
    DL_FOREACH_SAFE2 (place->idle, l, next, idle_next)
        if (sched_has_work(s->sched, l->session)) {
            take_mail(s, l);
            woke = true;
        } else if (sched_session_is_spent(l->session)) {
            simulation_cancel(s, &l->event);
            line_end(s, l, &outcome_no_trouble);
            woke = true;
        }
    return woke;
}

/* At that number the scheduler ends an idle one for each that it needs. */
static bool
has_all_lines(const struct simulation *s)
{
    return s->line_count / 2 >= (size_t)s->scenario->sched.session_limit;
}

bool
line_wake_idle(struct simulation *s, bool all)
{
    struct line *l;
    bool woke = false;
    if (all || s->line_count <= LOOK_ALWAYS || has_all_lines(s) ||
        s->now_us - s->looked_us >= LOOK_EVERY_US) {
        s->looked_us = s->now_us;
        DL_FOREACH (s->lines, l)
            if (l->idle)
                line_touch(s, l->domain->site);
    }
    while (s->touched_count > 0) {
        struct place *place = &s->places[s->touched[--s->touched_count]];
        place->is_touched = false;
        woke |= wake_place(s, place);
    }
    return woke;
}

/* A server that goes down drops its connections. */
void
line_station_changed(struct simulation *s, struct station *station)
{
    struct line *l;
    if (station->server.settings.state == FAKE_SERVER_UP)
        return;
    while ((l = station->lines)) {
        struct outcome lost =
            outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.2",
                         "lost connection with %s", station_name(station));
        s->result->lost++;
        s->is_ready = true;
        if (l->queued || !l->greeted) {
            simulation_cancel(s, &l->event);
            leave_station(s, l);
            l->trouble = lost;
            try_next(s, l);
            continue;
        }
        bool was_busy = l->busy;
        if (was_busy) {
            simulation_cancel(s, &l->event);
            simulation_line_settle(s, l, &lost);
            settle_early(s, l, &lost);
        }
        if (was_busy)
            line_end(s, l, &lost);
        else
            line_done(s, l);
    }
}

void
line_end_all(struct simulation *s)
{
    struct line *l, *next;
    DL_FOREACH_SAFE (s->lines, l, next) {
        leave_station(s, l);
        simulation_cancel(s, &l->event);
        line_remove(s, l);
        free(l->order);
        free(l);
    }
}
