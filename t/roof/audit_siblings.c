/* Questions to the hosts of a group: of gifts whose answer is lost; and, where they have copies
 * (siblings.h), of a first host with mail that is cut off from the engine and taken for lost. */
#include "t/roof/audit.h"

#include "t/roof/audit_internal.h"
#include "t/roof/engine.h"
#include "t/roof/group.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/law_adoption.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/siblings.h"
#include "t/roof/world_internal.h"

enum {
    SOME = 6, /* messages */
    COPIED_MS = 4 * 60 * 1000,
    SILENT_MS = 10 * 1000, /* before that an order is refused */
    CLAIMED_MS = 30 * 1000,
    SYNC_MS = 3000,
    SLOW_SYNC_MS = 900 * 1000,
    FENCED_MS = 95 * 1000, /* until a gift breaks the law (law_adoption.c) */
    DRAINS_MS = 20 * 1000,
    WELL_MS = 10 * 60 * 1000,
    ROUNDS = 4,
    GIVES_MS = 30 * 1000
};

static unsigned claims;

static bool
is_claimed(void)
{
    return law_adoption_claims() > claims;
}

/* The hosts beside the first that are there. */
static unsigned
heirs(unsigned out[GROUP_MEMBERS_MAX])
{
    unsigned count = 0;
    for (unsigned i = 1; i < group_count(); i++)
        if (!siblings_is_gone(i))
            out[count++] = i;
    return count;
}

static bool
is_fenced(void)
{
    return law_adoption_is_fenced(0);
}

/* The heir lives, and its disk is slow: the first host knows that its mail is another's, and is
 * cut off again before it can take it back. It drains. */
static void
ask_slow_heir(unsigned heir)
{
    siblings_slow_disk(heir, SLOW_SYNC_MS);
    siblings_order(heir, 0);
    (void)world_run_for(CLAIMED_MS, is_claimed);
    siblings_cut_engine(0, false);
    (void)world_run_for(CLAIMED_MS, is_fenced);
    siblings_cut_engine(0, true);
    (void)world_run_for(FENCED_MS, NULL);
    operator_tell(&host, "{\"command\":\"drain\",\"wait_ms\":15000}");
    (void)world_run_for(DRAINS_MS, NULL);
    operator_tell(&host, "{\"command\":\"drain\",\"cancel\":true}");
    siblings_cut_engine(0, false);
    siblings_slow_disk(heir, 0);
}

/* The heir is cut off, too, with messages on their way to its disk, and another goes on. */
static void
ask_lost_heir(unsigned heir, unsigned next)
{
    siblings_slow_disk(heir, SYNC_MS);
    siblings_order(heir, 0);
    (void)world_run_for(CLAIMED_MS, is_claimed);
    (void)world_run_for(roof_below(SYNC_MS), NULL);
    siblings_cut_engine(heir, true);
    (void)world_run_for(SILENT_MS, NULL);
    siblings_order(next, 0);
    (void)world_run_for(CLAIMED_MS, NULL);
    siblings_slow_disk(heir, 0);
    siblings_cut_engine(heir, false);
    (void)world_run_for(SILENT_MS, NULL);
    siblings_cut_engine(0, false);
}

static void
ask(unsigned heir, unsigned next)
{
    claims = law_adoption_claims();
    siblings_cut_engine(0, true);
    (void)world_run_for(SILENT_MS, NULL);
    if (roof_below(2) == 0)
        ask_slow_heir(heir);
    else
        ask_lost_heir(heir, next);
    (void)world_run_for(WELL_MS, siblings_are_well);
}

void
audit_siblings(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    unsigned there[GROUP_MEMBERS_MAX];
    uint64_t outer = roof_exchange_stream(roof_fork("audit of siblings"));
    for (unsigned i = 0; i < ROUNDS && heirs(there) > 1; i++) {
        world_set_moods(&refusing);
        for (unsigned j = 0; j < SOME; j++)
            (void)audit_give(j % 2, 1);
        bool first = roof_below(2) == 0;
        if (world_run_for(COPIED_MS, engine_has_all))
            ask(there[first], there[!first]);
        world_set_moods(&good);
        /* Some have been told by an heir's hop to come later, once more. */
        (void)audit_has_gone(audit_longest_ms());
        audit_departure("mail of a host that was taken for lost");
        (void)world_run_for(WELL_MS, judge_is_empty); /* two may have had it */
    }
    /* A gift may be on its way to a slow disk; then all hosts know that their mail has gone. */
    (void)world_run_for(SLOW_SYNC_MS + SILENT_MS, NULL);
    (void)world_run_for(WELL_MS, judge_is_empty);
    (void)roof_exchange_stream(outer);
}

/* The same host is asked again, though another has room: a message goes once. */
void
audit_gifts(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    if (group_count() < 3)
        return;
    world_set_moods(&refusing);
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(i % 2, 1);
    group_lose_answers(SOME / 2);
    operator_tell(&host, "{\"command\":\"drain\",\"wait_ms\":60000}");
    (void)world_run_for(GIVES_MS, NULL);
    operator_tell(&host, "{\"command\":\"drain\",\"cancel\":true}");
    group_lose_answers(0);
    world_set_moods(&good);
    audit_departure("mail of a host that has drained");
    (void)world_run_for(WELL_MS, judge_is_empty);
    (void)world_run_for(SILENT_MS, NULL); /* all hosts know that their mail has gone */
}
