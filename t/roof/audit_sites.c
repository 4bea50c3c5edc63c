/* Questions about sites: away, slow, small, without a place, and with a quota. */
#include "t/roof/audit_internal.h"

#include "t/roof/editor.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/law_bounds.h"
#include "t/roof/law_truth.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"

#include <inttypes.h>

enum {
    SOME = 8,                  /* messages */
    CONDEMNED_MS = 60 * 1000,  /* some failures, and what is under way */
    WATCHED_MS = 20 * 1000,    /* for the next attempts */
    PROBES_MAX = 3,            /* meanwhile: the first one comes after 10 s */
    THROTTLED_MS = 20 * 1000,  /* a hop says that it is too much */
    THROTTLED = 40,            /* messages then */
    RECOVERY_MS = 130 * 1000,  /* until it gets its mail again */
    PLACE_MS = 60 * 1000,      /* mail waits for no idle session */
    TAKES = 5,                 /* recipients of a transaction */
    GIVEN = 17,                /* of a message */
    QUOTA_MS = 25 * 60 * 1000, /* twice within an hour */
    PACES = 6,
    PACE_MS = 1000,
    PACE_SLACK_MS = 500, /* the first one waits for its connection, too */
    PAUSE_MS = 5000,
    PAUSE_SLACK_MS = 300, /* the way to the hop */
    LMTP_DOMAIN = 2,
    EARLY_SIZE = 200 * 1000, /* more than is on its way at a time */
    VISITS_MAX = 40,
    SLOW_MS = 50 * 1000, /* a reply */
    OCCUPIED_MS = 3 * 60 * 1000,
    CROWD = 2100, /* recipients of a message: more than one turn routes */
    CROWD_PERMILLE = 150,
    CROWD_MS = 1000, /* until the first is tried */
    SITES_MIN = 3    /* more than may be idle with one session */
};

static unsigned attempts;

/* Mail of before may be due again, at another next hop. */
static void
sites_attempted(struct model_rcpt *r)
{
    attempts += r->domain == 0;
}

static bool
is_attempted(void)
{
    return attempts > 0;
}

/* Nothing else decides when the first domain's mail goes. */
static bool
is_plain(void)
{
    const struct options *o = audit_options();
    return o->transport.adaptive && o->transport.failed_cohort_limit > 0 &&
           o->transport.rate_delay_ms == 0 &&
           o->transport.transport_rate_delay_ms == 0 &&
           o->manager.sched.active_limit > THROTTLED &&
           o->manager.sched.recipient_limit > 4 * THROTTLED;
}

/* A host that ends each connection is dead: mail that comes later waits for a probe. */
static void
ask_of_useless(const struct hop_mood *leaving)
{
    struct hop_mood good = {0};
    if (!is_plain())
        return;
    world_set_moods(leaving);
    hops_reset(); /* no connection is kept */
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(0, 1);
    (void)world_run_for(CONDEMNED_MS, NULL);
    hops_forget_visits();
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(0, 1);
    law_truth_reason(model_at(model_count() - 1)->id, "the site has been dead since",
                     "one session tries the site before others do");
    (void)world_run_for(WATCHED_MS, NULL);
    if (hops_visits() > PROBES_MAX)
        roof_break("bounds", NULL,
                   "a host that is dead has %u visits in 20 s, for new mail",
                   hops_visits());
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of a host that was dead");
}

static void
audit_condemned(void)
{
    ask_of_useless(&(struct hop_mood){.hang_up = 1000});
}

/* The same of one that says so. */
void
audit_turned_away(void)
{
    ask_of_useless(&(struct hop_mood){.greeting = 1000});
}

/* A site that refused all mail for a moment gets it soon again. */
static void
audit_throttle(void)
{
    struct hop_mood good = {0}, throttling = {.slow_down = 1000};
    if (!is_plain())
        return;
    editor_set("minimal_backoff_time", "10s");
    world_set_route("");
    world_set_moods(&throttling);
    for (unsigned i = 0; i < THROTTLED; i++)
        (void)audit_give(0, 1);
    (void)world_run_for(THROTTLED_MS, NULL);
    world_set_moods(&good);
    if (!audit_has_gone(RECOVERY_MS)) {
        model_print();
        roof_break("in time", NULL, "a site that was too slow for 20 s has %u waiting",
                   model_open());
    }
    editor_set("minimal_backoff_time", "");
    world_set_route("");
}

/* Recipients that were too many for one transaction come in the next one. */
static void
audit_too_many(void)
{
    struct hop_mood good = {0}, small = {.most = TAKES};
    if (!is_plain() || audit_options()->server.recipient_limit < GIVEN)
        return;
    editor_set("minimal_backoff_time", "");
    world_set_route("");
    world_set_moods(&small);
    (void)audit_give(0, GIVEN);
    if (!audit_has_gone(PLACE_MS))
        roof_break("in time", NULL, "%u recipients wait, which were too many",
                   model_open());
    world_set_moods(&good);
}

/* Idle sessions of other sites give their places to mail. */
static void
audit_places(void)
{
    if (!is_plain() || model_domains() < SITES_MIN)
        return;
    editor_set("delivery_session_limit", "1");
    editor_set("smtp_connection_cache_time_limit", "1000s");
    world_set_route("");
    for (unsigned domain = 0; domain < model_domains(); domain++) {
        (void)audit_give(domain, 1);
        if (!audit_has_gone(PLACE_MS))
            roof_break("in time", NULL, "mail waits, and other sites are idle");
    }
    editor_set("delivery_session_limit", "");
    editor_set("smtp_connection_cache_time_limit", "");
    world_set_route("");
}

/* The use of a quota is known after a restart, and to each transaction. */
static void
audit_quota(void)
{
    if (!is_plain())
        return;
    world_set_route("quota=4/h");
    model_on_attempted(sites_attempted);
    attempts = 0;
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(0, 3); /* 3 and 1, and not 6 */
    (void)world_run_for(QUOTA_MS, NULL);
    world_restart(false);
    (void)world_run_for(QUOTA_MS, NULL);
    if (attempts > 4)
        roof_break("bounds", NULL, "%u recipients in an hour, with a quota of 4",
                   attempts);
    model_on_attempted(NULL);
    world_set_route("");
    audit_departure("mail that waited for a quota");
}

/* A transaction has as many recipients as its route says, and no more. */
static void
audit_small_transactions(void)
{
    if (audit_options()->server.recipient_limit < GIVEN)
        return;
    world_set_route("recipients=5");
    (void)law_bounds_take_rcpts();
    (void)audit_give(0, GIVEN);
    audit_departure("mail in small transactions");
    unsigned most = law_bounds_take_rcpts();
    if (most > TAKES)
        roof_break("bounds", NULL, "a transaction has %u recipients, with a limit of 5",
                   most);
    world_set_route("");
}

static int64_t tried_ms;

static void
pause_attempted(struct model_rcpt *r)
{
    if (r->domain != 0)
        return;
    if (tried_ms > 0 && roof_now_ms() - tried_ms < PAUSE_MS - PAUSE_SLACK_MS)
        roof_break("bounds", NULL,
                   "an attempt %" PRId64 " ms behind another, and not %d",
                   roof_now_ms() - tried_ms, PAUSE_MS);
    tried_ms = roof_now_ms();
}

/* The delay between two transactions of a site. */
static void
audit_pauses(void)
{
    editor_set("default_destination_rate_delay", "5s");
    world_set_route("");
    tried_ms = 0;
    model_on_attempted(pause_attempted);
    for (unsigned i = 0; i < TAKES; i++)
        (void)audit_give(0, 1);
    audit_departure("mail with a pause between transactions");
    model_on_attempted(NULL);
    editor_set("default_destination_rate_delay", "");
    world_set_route("");
}

/* A site with one session has it again behind failures. */
static void
audit_narrow_site(void)
{
    struct hop_mood good = {0}, closing = {.close = 1000};
    editor_set("default_destination_concurrency_failed_cohort_limit", "50");
    world_set_route("concurrency=1");
    world_set_moods(&closing);
    hops_reset();
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(0, 1);
    (void)world_run_for(CONDEMNED_MS, NULL);
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of a site with one session");
    editor_set("default_destination_concurrency_failed_cohort_limit", "");
    world_set_route("");
}

/* A message to thousands is tried with nothing else to wake the daemon: its client stays,
 * and is silent. */
void
audit_crowd(void)
{
    const struct options *o = audit_options();
    uint64_t own = roof_fork("crowd");
    if (!world_is_dense() || roof_below_of(&own, 1000) >= CROWD_PERMILLE ||
        !is_plain() || o->manager.sched.recipient_limit < CROWD)
        return;
    editor_set("recipient_limit", "2100");
    world_set_route("");
    attempts = 0;
    model_on_attempted(sites_attempted);
    if (!audit_give_and_stay(0, CROWD, CROWD_MS, is_attempted))
        roof_break("in time", NULL, "a message has %d recipients, and none is tried",
                   CROWD);
    model_on_attempted(NULL);
    editor_set("recipient_limit", "");
    world_set_route("");
    audit_departure("a message to thousands");
}

/* Each recipient of LMTP has a reply of its own. */
static void
audit_own_replies(void)
{
    struct hop_mood good = {0}, mixed = {.end = 500};
    if (model_domains() <= LMTP_DOMAIN ||
        audit_options()->server.recipient_limit < SOME)
        return;
    world_set_moods(&mixed);
    for (unsigned i = 0; i < TAKES; i++)
        (void)audit_give(LMTP_DOMAIN, SOME);
    (void)world_run_for(audit_longest_ms(), NULL);
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail by LMTP");
}

/* A refusal that comes within the content is one of this message alone. */
static void
audit_early(void)
{
    struct hop_mood good = {0}, early = {.early = 1000};
    unsigned domain = model_domains() > 1; /* whose host takes no chunks */
    world_set_route("concurrency=1");
    for (unsigned i = 0; i < TAKES; i++) {
        world_set_moods(i > 0 ? &early : &good);
        (void)audit_try(audit_message(domain, 1, EARLY_SIZE));
        (void)audit_give(domain, 1);
    }
    (void)world_run_for(CONDEMNED_MS, NULL);
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of a host that answers early");
    world_set_route("");
}

/* A probe whose mail has no place in memory is one probe. */
static void
audit_no_place(void)
{
    struct hop_mood good = {0}, leaving = {.hang_up = 1000};
    if (!is_plain() || model_domains() < 2)
        return;
    editor_set("active_limit", "2");
    world_set_route("");
    world_set_moods(&leaving);
    hops_reset();
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(i % 2, 1);
    (void)world_run_for(CONDEMNED_MS, NULL);
    hops_forget_visits();
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    if (hops_visits() > VISITS_MAX)
        roof_break("bounds", NULL, "%u visits for %d messages", hops_visits(), SOME);
    editor_set("active_limit", "");
    world_set_route("");
    audit_departure("mail that had no place");
}

/* The same where mail of another site, which is slow, has all places meanwhile. */
void
audit_occupied(void)
{
    struct hop_mood good = {0}, leaving = {.hang_up = 1000},
                    slow = {.reply_ms = SLOW_MS};
    if (!is_plain() || model_domains() < 2)
        return;
    editor_set("active_limit", "2");
    editor_set("site_active_share", "100");
    world_set_route("");
    world_set_moods(&slow);
    world_set_first_mood(&leaving);
    hops_reset();
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(0, 1);
    (void)world_run_for(CONDEMNED_MS, NULL);
    for (unsigned i = 0; i < SOME; i++)
        (void)audit_give(1, 1);
    (void)world_run_for(OCCUPIED_MS, NULL);
    hops_forget_visits();
    world_set_first_mood(&good);
    (void)world_run_for(OCCUPIED_MS, NULL);
    if (hops_visits() > SOME)
        roof_break("bounds", NULL,
                   "%u visits for %d messages, of which few had a place", hops_visits(),
                   SOME);
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    editor_set("active_limit", "");
    editor_set("site_active_share", "");
    world_set_route("");
    audit_departure("mail whose places were taken");
}

static int64_t paces_ms[PACES];
static unsigned paced;

static void
pace_attempted(struct model_rcpt *r)
{
    if (r->domain != 0)
        return;
    for (unsigned i = 0; i < paced; i++)
        if (roof_now_ms() - paces_ms[i] + PACE_SLACK_MS < (paced - i) * PACE_MS)
            roof_break("bounds", NULL,
                       "%u transactions in %" PRId64 " ms, with a rate of 1/s",
                       paced - i + 1, roof_now_ms() - paces_ms[i]);
    if (paced < PACES)
        paces_ms[paced++] = roof_now_ms();
}

/* One a second, and no less. */
void
audit_rate(void)
{
    world_set_route("rate=1/s");
    paced = 0;
    model_on_attempted(pace_attempted);
    for (unsigned i = 0; i < PACES; i++)
        (void)audit_give(0, 1);
    audit_departure("mail at a rate of 1/s");
    model_on_attempted(NULL);
    world_set_route("");
}

void
audit_sites(void)
{
    static void (*const questions[])(void) = {
        audit_condemned, audit_throttle,    audit_too_many,
        audit_places,    audit_quota,       audit_small_transactions,
        audit_pauses,    audit_narrow_site, audit_own_replies,
        audit_early,     audit_no_place};
    for (unsigned i = 0; i < sizeof(questions) / sizeof(*questions); i++)
        if (roof_chance(500))
            questions[i]();
}
