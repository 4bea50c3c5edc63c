/* Questions about ages: of clocks that were ahead, of mail that waits in memory for its turn,
 * and of a host that is never of use. */
#include "t/roof/audit_internal.h"

#include "t/roof/editor.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/model.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"

enum {
    SETTLED_MS = 10 * 1000, /* until marks and due times are durable */
    LATE_MS = 60 * 1000,
    ATTEMPT_MINUTES = 15, /* of silence, at several steps */
    VISITS_MAX = 2000     /* in two hours */
};
#define MINUTE_MS INT64_C(60000)
#define DAY_MS    (24 * 60 * MINUTE_MS)

static void
set_right(void)
{
    world_step_clock(-10 * DAY_MS);
}

/* Due times that a clock has written that was ten days ahead are not waited for. */
void
audit_clock_ahead(void)
{
    const struct options *o = audit_options();
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    int64_t most_ms = o->transport.maximal_backoff_ms > 4 * 60 * MINUTE_MS ? o->transport.maximal_backoff_ms
                                                                 : 4 * 60 * MINUTE_MS;
    world_step_clock(10 * DAY_MS);
    world_set_moods(&refusing);
    audit_give_to_first(1);
    (void)world_run_for(SETTLED_MS, NULL);
    world_set_moods(&good);
    world_restart_with(roof_chance(500), set_right);
    if (!audit_has_gone(most_ms * 11 / 10 + LATE_MS))
        roof_break("in time", NULL, "mail waits for a clock that was ahead");
}

/* Mail that waits in memory for its turn expires, and its delay is reported, all the
 * same. */
static void
audit_turns(void)
{
    const struct options *o = audit_options();
    if (o->manager.sched.active_limit < 10 || o->manager.sched.recipient_limit < 40)
        return; /* mail that waits in memory leaves no room for its reports */
    world_set_route("rate=1/d");
    audit_give_to_first(3);
    const struct model_message *last = model_at(model_count() - 1);
    (void)world_run_for(30 * MINUTE_MS, NULL);
    if (!last->is_null && last->rcpts[0].delayed != 1)
        roof_break("in time", last->id, "m%u waits for its turn, and has %u notices",
                   last->number, last->rcpts[0].delayed);
    (void)world_run_for(110 * MINUTE_MS, NULL);
    if (last->rcpts[0].failed != 1 || last->rcpts[0].delayed != 1)
        roof_break("in time", last->id, "m%u has %u notices and %u failures",
                   last->number, last->rcpts[0].delayed, last->rcpts[0].failed);
    world_set_route("");
    audit_departure("mail that waited for its turn");
}

/* A host that is never of use is not tried without end, and without a word: its mail
 * expires, too. */
static void
audit_useless(void)
{
    static const struct hop_mood moods[] = {
        {.cut = 1000}, {.greeting = 1000}, {.ahead = 1000}};
    struct hop_mood good = {0};
    world_set_moods(&moods[roof_below(3)]);
    hops_forget_visits();
    audit_give_to_first(2);
    const struct model_message *last = model_at(model_count() - 1);
    (void)world_run_for((120 + ATTEMPT_MINUTES) * MINUTE_MS + audit_longest_ms(), NULL);
    if (last->rcpts[0].failed != 1)
        roof_break("in time", last->id, "m%u has %u failures, at a host of no use",
                   last->number, last->rcpts[0].failed);
    if (hops_visits() > VISITS_MAX)
        roof_break("in time", NULL, "a host of no use is tried %u times in two hours",
                   hops_visits());
    world_set_moods(&good);
}

void
audit_lifetimes(void)
{
    editor_set("delay_warning_time", "600s");
    editor_set("maximal_queue_lifetime", "2h");
    model_set_lifetime(120 * MINUTE_MS);
    world_set_route("");
    audit_useless();
    audit_turns();
    editor_set("delay_warning_time", "");
    editor_set("maximal_queue_lifetime", "");
    world_set_route("");
}
