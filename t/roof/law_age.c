/* The end of lifetimes, and delay notifications. */
#include "t/roof/law_age.h"

#include "base/memory.h"
#include "t/roof/editor.h"
#include "t/roof/host.h"
#include "t/roof/roof.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    LATE_MS = 60 * 1000,
    EARLY_MS = 2 * 1000,      /* clocks of the queue count whole seconds */
    ACKED_LATE_MS = 60 * 1000 /* behind the birth, by a slow disk or a slow client */
};

static struct {
    bool is_short, is_forgiven;
} law;

/* A recipient to whom something is to have happened some time after its attempt. */
struct law_wait {
    struct model_rcpt *rcpt;
    bool for_end; /* or for a notification of its message */
    unsigned starts, reloads;
    struct roof_timer timer;
};

void
law_age_begin(bool is_short)
{
    law.is_short = is_short;
}

bool
law_age_is_short(void)
{
    return law.is_short;
}

void
law_age_forgive(void)
{
    law.is_forgiven = true;
}

static bool
has_come(const struct law_wait *w)
{
    const struct model_rcpt *r = w->rcpt;
    bool is_done = r->has_failed || r->stored > 0 || r->refused || r->may_vanish;
    return is_done || (!w->for_end && r->message->was_delayed);
}

static void
on_late(void *context)
{
    struct law_wait *w = context;
    const struct model_message *m = w->rcpt->message;
    bool same =
        host.running && !host.leaves && host.starts == w->starts && !law.is_forgiven;
    if (same && host.reloads == w->reloads && !has_come(w))
        roof_break("in time", m->id,
                   "m%ur%u is %" PRId64 " s old, and a minute after an attempt that "
                   "failed %s",
                   m->number, w->rcpt->index, (roof_now_ms() - m->acked_ms) / 1000,
                   w->for_end ? "it has not expired"
                              : "nobody is notified of the delay");
    free(w);
}

static void
expect(struct model_rcpt *r, bool for_end)
{
    struct law_wait *w = memory_new(sizeof(*w));
    w->rcpt = r;
    w->for_end = for_end;
    w->starts = host.starts;
    w->reloads = host.reloads;
    roof_timer_start(&w->timer, LATE_MS, on_late, w);
}

/* Both come at the end of all attempts of the message; the notification, when its time had
 * come as they began. */
void
law_age_deferred(struct model_rcpt *r, int64_t begun_ms)
{
    const struct editor_bounds *b = editor_bounds();
    const struct model_message *m = r->message;
    int64_t age_ms = roof_now_ms() - m->acked_ms;
    if (roof_breaks("age"))
        expect(r, true);
    if (m->state != MODEL_ACKED || m->rcpt_count > 1 || law.is_forgiven ||
        host.is_shared)
        return;
    if (age_ms - EARLY_MS >= b->life_most_ms)
        expect(r, true);
    else if (begun_ms - EARLY_MS >= b->notice_most_ms && model_wants_delay(m) &&
             !m->was_delayed)
        expect(r, false);
}

void
law_age_notified(struct model_rcpt *r)
{
    int64_t age_ms = roof_now_ms() - r->message->born_ms;
    if (!law.is_forgiven && r->message->state == MODEL_ACKED &&
        age_ms + ACKED_LATE_MS < editor_bounds()->notice_ms)
        roof_break("in time", r->message->id,
                   "the delay of m%ur%u is reported after %" PRId64 " s",
                   r->message->number, r->index, age_ms / 1000);
}
