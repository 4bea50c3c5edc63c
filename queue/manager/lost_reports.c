/* Remembers that notifications are refused: nobody learns then that mail has failed. */
#include "base/memory.h"
#include "queue/manager/manager_internal.h"

#include <stdio.h>

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

void
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
