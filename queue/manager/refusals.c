/* Refusals of receivers, for an operator: warnings, the receivers that refuse this host, and
 * notifications that are lost. */
#include "base/memory.h"
#include "queue/manager/manager_internal.h"
#include "base/crc.h"

#include <stdio.h>
#include <string.h>

/* "host[ip]:port" without the address: the hosts of a receiver often have many. */
static struct text
refusal_host(const struct outcome *outcome)
{
    struct text host = text_from(outcome->remote);
    size_t bracket = text_find(host, '[');
    return bracket == 0 ? host : text_before(host, bracket);
}

/* --- Warnings -------------------------------------------------------------------- */

/* Once an hour for a class and a host. The outcome lines have each of them, but not the
 * remedy. */

enum { HOUR_MS = 60 * 60 * 1000 };

/* Those of the mail itself are the sender's to end. */
static bool refusal_is_operators(enum refusal_class class)
{
    switch (class) {
    case REFUSAL_AUTH:
    case REFUSAL_PTR:
    case REFUSAL_REPUTATION:
    case REFUSAL_SENDER:
    case REFUSAL_LOGIN:
    case REFUSAL_QUOTA:
    case REFUSAL_RELAY:
    case REFUSAL_POLICY:
        return true;
    case REFUSAL_OTHER:
    case REFUSAL_NO_USER:
    case REFUSAL_NO_DOMAIN:
    case REFUSAL_FULL:
    case REFUSAL_TOO_BIG:
    case REFUSAL_CONTENT:
    case REFUSAL_TLS:
    case REFUSAL_FORM:
    case REFUSAL_CLASSES:
        break;
    }
    return false;
}

/* A key that another one has overwritten is logged again: the table is small. */
static bool
is_due(struct manager *m, enum refusal_class class, struct text host)
{
    uint32_t key = crc_add((uint32_t) class, host.at, host.length);
    struct refusal_logged *at =
        &m->refusals_logged[key % (sizeof(m->refusals_logged) /
                                   sizeof(m->refusals_logged[0]))];
    int64_t now = loop_now_ms(m->loop);
    if (at->key == key && at->ms != 0 && now >= at->ms && now - at->ms < HOUR_MS)
        return false;
    *at = (struct refusal_logged){key, now};
    return true;
}

static void
refusal_warning(struct manager *m, const struct outcome *outcome)
{
    char hint[REFUSAL_HINT_MAX];
    enum refusal_class class = refusal_classify(outcome);
    if (outcome->blame == BLAME_ADDRESS || !refusal_is_operators(class) ||
        !refusal_hint(outcome, hint) || !is_due(m, class, refusal_host(outcome)))
        return;
    log_say(m->log, LOG_LEVEL_WARNING, "smtp", NULL, "%.*s refuses mail (%s): %s",
            TEXT_ARGS(refusal_host(outcome)), refusal_name(class), hint);
}

/* --- Receivers that refuse this host, or its mail for a lack of its own ---------- */

#define REFUSER_HOUR_MS    (INT64_C(60) * 60 * 1000)
#define REFUSER_LONGEST_MS (6 * REFUSER_HOUR_MS)

enum { REFUSER_NAME_MAX = 256 };

struct refusers {
    struct refuser {
        char name[REFUSER_NAME_MAX]; /* "": unused */
        char what[REFUSAL_HINT_MAX + 40];
        int64_t refused_ms; /* monotonic, the last time */
        bool took;          /* mail since then */
    } list[MANAGER_REFUSERS_MAX];
};

static bool
refuser_is_over(const struct refuser *r, int64_t now_ms)
{
    return now_ms - r->refused_ms >= (r->took ? REFUSER_HOUR_MS : REFUSER_LONGEST_MS);
}

/* That of the name, else one that is free, else that refused longest ago. */
static struct refuser *
refuser_find(struct refusers *all, struct text name)
{
    struct refuser *best = &all->list[0];
    for (struct refuser *r = all->list; r < all->list + MANAGER_REFUSERS_MAX; r++)
        if (text_equal(text_from(r->name), name))
            return r;
    for (struct refuser *r = all->list; r < all->list + MANAGER_REFUSERS_MAX; r++)
        if (best->name[0] != '\0' &&
            (r->name[0] == '\0' || r->refused_ms < best->refused_ms))
            best = r;
    return best;
}

/* Large receivers have many hosts, and one mind. */
static struct text
refuser_name(const struct outcome *outcome)
{
    struct text host = refusal_host(outcome);
    const char *receiver = refusal_receiver(host);
    return receiver != NULL ? text_from(receiver)
                            : text_before(host, REFUSER_NAME_MAX - 1);
}

static bool refuses_us(enum refusal_class class)
{
    return class == REFUSAL_AUTH || class == REFUSAL_PTR || class == REFUSAL_REPUTATION;
}

static void
refuser_took(struct refusers *all, struct text name)
{
    struct refuser *r = refuser_find(all, name);
    if (text_equal(text_from(r->name), name))
        r->took = true;
}

/* Mail that goes to IPv4 instead is not refused. */
static void
refusers_note(struct manager *m, const struct outcome *outcome)
{
    char hint[REFUSAL_HINT_MAX];
    if (outcome->verdict == VERDICT_DELIVERED) {
        if (m->refusers != NULL && outcome->remote[0] != '\0')
            refuser_took(m->refusers, refuser_name(outcome));
        return;
    }
    enum refusal_class class = refusal_classify(outcome);
    if (!refuses_us(class) || outcome->blame == BLAME_ADDRESS ||
        !refusal_hint(outcome, hint))
        return;
    struct text name = refuser_name(outcome);
    if (name.length == 0)
        return;
    if (m->refusers == NULL)
        m->refusers = memory_new(sizeof(*m->refusers));
    struct refuser *r = refuser_find(m->refusers, name);
    *r = (struct refuser){.refused_ms = loop_monotonic_ms(m->loop)};
    (void)!text_copy(r->name, sizeof(r->name), name);
    snprintf(r->what, sizeof(r->what), "refuses mail (%s): %s", refusal_name(class),
             hint);
}

/* --- Notifications that are lost: nobody learns then that mail has failed -------- */

#define LOST_REPORTS_LAST_MS (INT64_C(7) * 24 * 60 * 60 * 1000)

enum { LOST_REPORTS_NAME_MAX = 256 };

struct lost_reports { /* of the host that refused one last */
    char host[LOST_REPORTS_NAME_MAX];
    char what[OUTCOME_TEXT_MAX + 100];
    int64_t at_ms; /* monotonic */
};

/* One to postmaster that fails has no other way. A smarthost that refuses the null sender
 * refuses all of them, also where they wait because we have logged in. */
static bool
is_lost(const struct envelope *e, const struct outcome *o)
{
    return (e->double_bounce && o->verdict == VERDICT_FAILED) ||
           (o->code != 0 && refusal_classify(o) == REFUSAL_SENDER);
}

static void
lost_reports_note(struct manager *m, const struct envelope *e, const struct outcome *o)
{
    struct text host = text_before(refusal_host(o), LOST_REPORTS_NAME_MAX - 1);
    struct lost_reports *r = m->lost_reports;
    if (e->sender.length > 0)
        return;
    if (o->verdict == VERDICT_DELIVERED) {
        if (r != NULL && (r->host[0] == '\0' || text_equal(text_from(r->host), host)))
            r->at_ms = INT64_MIN;
        return;
    }
    if (!is_lost(e, o))
        return;
    if (r == NULL)
        r = m->lost_reports = memory_new(sizeof(*r));
    r->at_ms = loop_monotonic_ms(m->loop);
    (void)!text_copy(r->host, sizeof(r->host), host);
    snprintf(r->what, sizeof(r->what),
             "notifications of failed mail are lost, so nobody learns of it: %s",
             o->text);
}

/* --- All ------------------------------------------------------------------------- */

void
refusals_note(struct manager *m, const struct envelope *e,
              const struct outcome *outcome)
{
    if (outcome->verdict != VERDICT_DELIVERED)
        refusal_warning(m, outcome);
    refusers_note(m, outcome);
    lost_reports_note(m, e, outcome);
}

void
manager_lost_reports(const struct manager *m,
                     void (*each)(void *context, const char *host, const char *what),
                     void *context)
{
    const struct lost_reports *r = m->lost_reports;
    if (r != NULL && r->at_ms != INT64_MIN &&
        loop_monotonic_ms(m->loop) - r->at_ms < LOST_REPORTS_LAST_MS)
        each(context, r->host[0] != '\0' ? r->host : "postmaster", r->what);
}

void
manager_refusers(const struct manager *m,
                 void (*each)(void *context, const char *receiver, const char *what),
                 void *context)
{
    for (size_t i = 0; m->refusers != NULL && i < MANAGER_REFUSERS_MAX; i++) {
        const struct refuser *r = &m->refusers->list[i];
        if (r->name[0] != '\0' && !refuser_is_over(r, loop_monotonic_ms(m->loop)))
            each(context, r->name, r->what);
    }
}
