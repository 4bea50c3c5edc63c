/* A group of hosts: the heartbeat, and questions to the bank. */
#include "queue/group/group.h"

#include "base/crypto/digest.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/printable.h"
#include "queue/group/group_internal.h"
#include "queue/group/group_redis.h"
#include "queue/group/group_suppression.h"
#include "queue/manager/manager.h"
#include "queue/queue_operator.h"
#include "queue/spool/spool.h"
#include "sched/limits/bank.h"
#include "sched/sched.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BEAT_MS = 2000,
    BEATS_A_LIST = 5, /* 10 s */
    REFUSED_MS = 30 * 1000,
    UNANSWERED_MAX = 3, /* questions in a row */
    FILE_MAX = (GROUP_HOSTS_MAX + GROUP_FORGOTTEN_MAX + 1) * (GROUP_HOST_MAX + 12)
};

/* --- The bank ----------------------------------------------------------------------- */

static bool
group_may_ask(const struct group *g)
{
    return g->engine.kind != NULL && g->engine.kind->is_ready(g->engine.bank);
}

static void
group_fail(struct group *g, const char *why)
{
    g->engine.kind->fail(g->engine.bank, why);
}

/* --- The scheduler ------------------------------------------------------------------ */

static void
group_tell_scheduler(struct group *g)
{
    size_t lost = group_members_lost(&g->members);
    size_t late = g->has_bank ? group_members_late(&g->members) : 0;
    struct sched_group hosts = {.members = (int)(g->members.count - lost),
                                .lost = (int)lost,
                                .late = (int)late,
                                .index = (int)group_members_rank(&g->members),
                                .has_bank = g->has_bank,
                                .shares_addresses = g->shares_addresses};
    manager_group(g->setup.manager, &hosts);
}

/* Another machine may have said it; it goes to JSON and to terminals. */
static void
group_note_why(struct group *g, const char *why)
{
    (void)!text_copy(g->why, sizeof(g->why),
                     text_before(text_from(why), sizeof(g->why) - 1));
    printable_make(g->why);
}

/* It is logged once the connection gives up, not at each attempt. */
static void
group_bank_failed(struct group *g, const char *why, bool is_away)
{
    if (g->has_bank) {
        g->has_bank = false;
        group_tell_scheduler(g);
    }
    if (g->away_since_ms != 0)
        return;
    group_note_why(g, why);
    if (!is_away)
        return;
    g->away_since_ms = loop_monotonic_ms(g->setup.loop);
    log_say(g->setup.log, LOG_LEVEL_WARNING, "group", NULL,
            "bank away (%s), %zu sites at our part (1/%zu)", g->why,
            sched_shared_sites(manager_sched(g->setup.manager)), g->members.count);
}

/* A heartbeat that is answered says little of a bank that has refused a question: it is
 * tried again after a while, and is back when it has answered one. Where no site has any,
 * one is made (group_pump()). */
static void
group_bank_answered(struct group *g, bool is_grant)
{
    int64_t now_ms = loop_monotonic_ms(g->setup.loop);
    bool is_trial = g->refused_ms != 0 && !is_grant;
    if (is_trial && now_ms - g->refused_ms < REFUSED_MS)
        return;
    g->is_on_trial = is_trial;
    if (!g->has_bank) {
        g->has_bank = true;
        group_tell_scheduler(g);
    }
    if (is_trial)
        return;
    g->refused_ms = 0;
    if (g->away_since_ms == 0)
        return;
    log_say(g->setup.log, LOG_LEVEL_INFO, "group", NULL,
            "bank back after %" PRId64 " s", (now_ms - g->away_since_ms) / 1000);
    g->away_since_ms = 0;
}

/* Others wait behind it for the same server. */
static void
on_group_late(void *context)
{
    struct group *g = context;
    group_fail(g, "no answer in time");
}

/* --- Questions -------------------------------------------------------------------- */

/* The same on all hosts that share it, and no name of a domain. */
static void
group_key(const struct group *g, const struct sched_wish *wish, char out[BANK_KEY_MAX])
{
    unsigned char sum[DIGEST_SIZE];
    char hex[BANK_KEY_MAX + 1];
    struct digest d;
    digest_begin(&d);
    digest_add(&d, text_from(wish->is_account ? "account" : g->egress));
    digest_add(&d, TEXT(" "));
    digest_add(&d, text_from(wish->site));
    digest_end(&d, sum);
    text_hex(sum, BANK_KEY_MAX / 2, hex);
    memcpy(out, hex, BANK_KEY_MAX);
}

static void
group_note_wish(void *context, const struct sched_wish *wish)
{
    struct group *g = context;
    assert(g->ask_count < GROUP_ASK_MAX);
    struct group_ask *ask = &g->asks[g->ask_count];
    group_key(g, wish, ask->key);
    ask->question = *wish->question;
    ask->question.hosts = (int)g->members.count;
    g->sites[g->ask_count++] = memory_string(wish->site);
}

/* grants NULL: there are none. */
static void
group_give(struct group *g, const struct bank_grant *grants)
{
    size_t count = g->ask_count;
    loop_timer_stop(g->setup.loop, &g->ask_late);
    g->ask_count = 0;
    g->failures += grants == NULL;
    for (size_t i = 0; i < count; i++) {
        manager_granted(g->setup.manager, g->sites[i],
                        grants != NULL ? &grants[i] : NULL);
        free(g->sites[i]);
    }
}

static void
on_group_grants(void *context, const struct bank_grant *grants, const char *refused)
{
    struct group *g = context;
    group_give(g, grants);
    if (grants != NULL) {
        g->unanswered = 0;
        group_bank_answered(g, true);
        return;
    }
    g->refused_ms = loop_monotonic_ms(g->setup.loop);
    if (refused != NULL)
        group_bank_failed(g, refused, true);
}

static void
group_send_asks(struct group *g)
{
    g->is_on_trial = false;
    g->asked++;
    g->asked_sites += g->ask_count;
    loop_timer_start(g->setup.loop, &g->ask_late, g->patience_ms, on_group_late, g);
    g->engine.kind->ask(g->engine.bank, g->asks, g->ask_count);
}

/* Every turn, behind the scheduler's. */
static void
group_pump(void *context)
{
    static const struct bank_question nothing = {
        .burst = 1, .weight = 1, .had = -1, .hosts = 1};
    struct group *g = context;
    if (g->ask_count > 0 || !g->has_bank || !group_may_ask(g))
        return;
    if (manager_wishes(g->setup.manager, GROUP_ASK_MAX, group_note_wish, g) == 0 &&
        g->is_on_trial)
        group_note_wish(g, &(struct sched_wish){.site = "", .question = &nothing});
    if (g->ask_count > 0)
        group_send_asks(g);
}

/* --- Members ---------------------------------------------------------------------- */

/* A hint: an error is one of the disk, which is reported elsewhere. */
static void
group_keep(struct group *g)
{
    char path[MANAGER_HINT_MAX];
    struct buffer text;
    struct disk *disk = queue_disk(manager_queue(g->setup.manager));
    buffer_init(&text, FILE_MAX);
    group_members_write(&g->members, g->name, &text);
    manager_hint_path(g->setup.manager, "group", path);
    (void)!spool_write_path(disk, path, buffer_text(&text));
    buffer_free(&text);
}

static void
group_recall(struct group *g)
{
    char path[MANAGER_HINT_MAX];
    struct buffer text;
    struct disk *disk = queue_disk(manager_queue(g->setup.manager));
    buffer_init(&text, FILE_MAX);
    manager_hint_path(g->setup.manager, "group", path);
    if (spool_read_path(disk, path, &text) >= 0)
        group_members_recall(&g->members, g->name, buffer_text(&text),
                             loop_monotonic_ms(g->setup.loop));
    buffer_free(&text);
}

static void
group_add_peers(struct group *g, const struct group_settings *settings)
{
    free(g->configured);
    g->configured = memory_array(settings->peer_count + 1, sizeof(*g->configured));
    g->configured_count = settings->addresses != NULL ? settings->peer_count : 0;
    for (size_t i = 0; i < g->configured_count; i++) {
        memcpy(g->configured[i].host, settings->peers[i], sizeof(settings->peers[i]));
        memcpy(g->configured[i].address, settings->addresses[i],
               sizeof(settings->addresses[i]));
    }
    for (size_t i = 0; i < settings->peer_count; i++)
        group_members_add(&g->members, text_from(settings->peers[i]),
                          loop_monotonic_ms(g->setup.loop));
}

static void
on_group_change(void *context, const char *name, enum group_change change)
{
    static const char *const words[] = {[GROUP_CAME] = "came",
                                        [GROUP_LOST] = "lost",
                                        [GROUP_BACK] = "back",
                                        [GROUP_LEFT] = "left",
                                        [GROUP_FORGOTTEN] = "forgotten"};
    struct group *g = context;
    g->has_changed = true;
    log_say(g->setup.log, change == GROUP_LOST ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
            "group", NULL, "%s %s", name, words[change]);
}

static void
group_changed_now(struct group *g)
{
    g->has_changed = false;
    group_tell_scheduler(g);
    group_keep(g);
}

/* A killed run of this host leaves its number behind; one that is there again after we
 * have written ours lives. */
static void
group_meet_namesake(struct group *g, bool is_there)
{
    bool is_alive = is_there && g->beats > 1;
    if (!is_alive || g->namesakes > 0)
        return;
    g->namesakes = 1;
    log_say(g->setup.log, LOG_LEVEL_WARNING, "group", NULL,
            "another host of the group has the name %s: each host needs its own "
            "cluster_host, or shared limits are exceeded",
            g->host);
}

static void
group_hear_siblings(struct group *g, struct text infos)
{
    const struct group_sibling *most = NULL;
    group_siblings_read(&g->siblings, infos);
    for (size_t i = 0; i < g->siblings.count; i++) {
        const struct group_sibling *other = &g->siblings.all[i];
        if (most == NULL || other->self.suppress_limit > most->self.suppress_limit)
            most = other;
    }
    if (most != NULL && g->suppression != NULL)
        group_suppression_compare(g->suppression, most->host,
                                  most->self.suppress_limit);
}

static void
on_group_heard(void *context, const struct group_heard *heard, const char *refused)
{
    struct group *g = context;
    bool is_list = g->is_list;
    size_t late = group_members_late(&g->members);
    loop_timer_stop(g->setup.loop, &g->beat_late);
    if (heard == NULL) {
        if (refused != NULL)
            group_bank_failed(g, refused, true);
        return;
    }
    if (is_list &&
        !group_members_read(&g->members, heard->list, loop_monotonic_ms(g->setup.loop),
                            on_group_change, g)) {
        group_fail(g, "an odd list of members");
        return;
    }
    if (is_list)
        group_hear_siblings(g, heard->infos);
    else /* more hosts, or fewer, are late or lost than in the last list */
        g->has_news = heard->old >= 0 && (size_t)heard->old != g->members.old;
    group_members_hear(&g->members, loop_monotonic_ms(g->setup.loop));
    group_meet_namesake(g, heard->is_taken);
    group_bank_answered(g, false);
    if (g->has_changed)
        group_changed_now(g);
    else if (late != group_members_late(&g->members))
        group_tell_scheduler(g);
    if (g->has_news)
        loop_timer_start(g->setup.loop, &g->beat, 0, g->beat.fire, g);
}

/* In a while the bank would have it again from others. If it is not known the bank hears
 * of it again behind a heartbeat. */
static void
on_group_parted(void *context, bool is_known)
{
    struct group *g = context;
    g->is_forgetting = false;
    if (!is_known)
        return;
    group_members_forgotten(&g->members);
    group_keep(g);
}

static void
group_say_forgotten(struct group *g)
{
    if (g->is_forgetting || g->members.forgotten_count == 0 || !group_may_ask(g) ||
        g->engine.kind->part == NULL)
        return;
    g->is_forgetting = true;
    g->engine.kind->part(g->engine.bank, g->members.forgotten[0]);
}

static void
group_beat(struct group *g)
{
    if (heap_has(&g->beat_late.node) || !group_may_ask(g))
        return;
    if (g->engine.kind->beat == NULL) {
        group_bank_answered(g, false);
        return;
    }
    struct group_self self = {.state = "running", .version = PETREL_VERSION};
    const struct suppression *s = manager_suppression(g->setup.manager);
    self.suppress_limit = s != NULL ? suppression_count(s).limit : 0;
    g->is_list = g->beats++ % BEATS_A_LIST == 0 || g->has_news ||
                 group_members_late(&g->members) > 0;
    g->has_news = false;
    if (g->describe != NULL)
        g->describe(g->describe_context, &self);
    group_siblings_write(&self, g->run, g->info);
    loop_timer_start(g->setup.loop, &g->beat_late, g->patience_ms, on_group_late, g);
    g->engine.kind->beat(g->engine.bank, g->host, g->info, g->run, g->is_list);
    group_say_forgotten(g);
}

static void
on_group_beat(void *context)
{
    struct group *g = context;
    loop_timer_start(g->setup.loop, &g->beat, BEAT_MS, on_group_beat, g);
    group_beat(g);
    if (g->suppression != NULL)
        group_suppression_beat(g->suppression);
}

/* --- The connection ----------------------------------------------------------------- */

static void
on_group_ready(void *context)
{
    struct group *g = context;
    g->beats -= g->beats % BEATS_A_LIST; /* with the list */
    group_beat(g);
}

static void
on_group_failed(void *context, const char *why)
{
    struct group *g = context;
    loop_timer_stop(g->setup.loop, &g->beat_late);
    g->is_forgetting = false;
    g->unanswered += g->ask_count > 0;
    /* Such a bank may answer heartbeats all the time. */
    bool is_deaf = g->unanswered >= UNANSWERED_MAX;
    if (is_deaf)
        g->refused_ms = loop_monotonic_ms(g->setup.loop);
    group_bank_failed(g, why, is_deaf || !g->engine.kind->is_up(g->engine.bank));
    if (g->ask_count > 0)
        group_give(g, NULL);
}

static void
group_connect(struct group *g)
{
    g->has_bank = true; /* until it has failed: our part may be all if we know nobody */
    g->asker = (struct group_asker){
        .connection = {.ready = on_group_ready,
                       .failed = on_group_failed,
                       .context = g},
        .granted = on_group_grants,
        .heard = on_group_heard,
        .parted = on_group_parted
    };
    g->engine.kind->join(g->engine.bank, &g->asker);
    loop_timer_start(g->setup.loop, &g->beat, 0, on_group_beat, g);
    loop_at_end(g->setup.loop, LOOP_ANSWER_GROUP, group_pump, g);
}

struct group *
group_new(const struct group_setup *setup)
{
    struct group *g = memory_new(sizeof(*g));
    const struct group_settings *s = setup->settings;
    g->setup = *setup;
    g->setup.settings = NULL;
    g->patience_ms = REDIS_ANSWER_MS;
    g->shares_addresses = s->shares_addresses;
    memcpy(g->name, s->name, sizeof(g->name));
    memcpy(g->host, s->host, sizeof(g->host));
    memcpy(g->egress, s->egress, sizeof(g->egress));
    snprintf(g->run, sizeof(g->run), "%016" PRIx64, loop_random(setup->loop));
    group_members_init(&g->members, g->host, loop_monotonic_ms(setup->loop));
    if (setup->redis != NULL)
        group_recall(g);
    group_add_peers(g, s);
    if (setup->redis != NULL) {
        g->engine = group_redis_new(setup->redis, g->name);
        g->suppression = group_suppression_new(setup->loop, setup->log, setup->manager,
                                               setup->redis, g->name);
    } else {
        g->engine = setup->lead;
    }
    if (g->engine.kind != NULL)
        group_connect(g);
    group_tell_scheduler(g);
    return g;
}

void
group_free(struct group **group)
{
    struct group *g = *group;
    if (g == NULL)
        return;
    *group = NULL;
    group_suppression_free(&g->suppression);
    if (g->engine.kind != NULL) {
        if (group_may_ask(g) && g->engine.kind->part != NULL)
            g->engine.kind->part(g->engine.bank, g->host);
        g->engine.kind->leave(g->engine.bank, &g->asker);
        g->engine.kind->free(g->engine.bank);
        loop_at_end_remove(g->setup.loop, LOOP_ANSWER_GROUP, group_pump, g);
    }
    loop_timer_stop(g->setup.loop, &g->beat);
    loop_timer_stop(g->setup.loop, &g->beat_late);
    loop_timer_stop(g->setup.loop, &g->ask_late);
    for (size_t i = 0; i < g->ask_count; i++)
        free(g->sites[i]);
    group_siblings_free(&g->siblings);
    free(g->configured);
    free(g);
}

void
group_describe(struct group *g, group_described *describe, void *context)
{
    g->describe = describe;
    g->describe_context = context;
}

static const char *
group_configured_address(const struct group *g, const char *host)
{
    for (size_t i = 0; i < g->configured_count; i++)
        if (strcmp(g->configured[i].host, host) == 0)
            return g->configured[i].address;
    return "";
}

void
group_siblings(struct group *g,
               bool (*each)(void *context, const struct sibling *sibling),
               void *context)
{
    static const struct group_self silent = {.waiting = 0};
    for (size_t i = 0; i < g->members.count; i++) {
        const struct group_member *m = &g->members.all[i];
        const struct group_self *said = group_siblings_find(&g->siblings, m->name);
        const struct group_self *self = said != NULL ? said : &silent;
        struct sibling sibling = {.host = m->name,
                                  .address = self->address,
                                  .state = self->state,
                                  .version = self->version,
                                  .spool = self->spool,
                                  .is_lost = m->is_lost};
        if (strcmp(m->name, g->members.own) == 0)
            continue;
        if (sibling.address[0] == '\0')
            sibling.address = group_configured_address(g, m->name);
        if (!each(context, &sibling))
            return;
    }
}

/* A bank knows better which hosts have gone. */
void
group_reload(struct group *g, const struct group_settings *settings)
{
    if (strcmp(settings->name, g->name) != 0)
        return; /* waits for a restart */
    if (g->engine.kind == NULL)
        group_members_init(&g->members, g->host, loop_monotonic_ms(g->setup.loop));
    group_add_peers(g, settings);
    group_tell_scheduler(g);
}

struct group_state
group_state(struct group *g)
{
    struct group_state s = {.name = g->name,
                            .host = g->host,
                            .egress = g->egress,
                            .members = &g->members,
                            .bank = GROUP_BANK_NONE,
                            .why = "",
                            .server = "",
                            .asks = g->asked,
                            .sites = g->asked_sites,
                            .failures = g->failures,
                            .namesakes = g->namesakes};
    if (g->engine.kind != NULL) {
        s.bank = g->has_bank && g->away_since_ms == 0 ? GROUP_BANK_UP : GROUP_BANK_AWAY;
        g->engine.kind->place(g->engine.bank, g->server);
        s.server = g->server;
    }
    if (s.bank == GROUP_BANK_AWAY)
        s.why = g->why;
    if (g->away_since_ms != 0)
        s.away_ms = loop_monotonic_ms(g->setup.loop) - g->away_since_ms + 1;
    if (!g->has_bank)
        s.fallback_sites = sched_shared_sites(manager_sched(g->setup.manager));
    return s;
}

bool
group_forget(struct group *g, struct text host)
{
    char name[GROUP_HOST_MAX + 1];
    if (!text_copy(name, sizeof(name), host) ||
        !group_members_forget(&g->members, host))
        return false;
    text_lower(name, host.length);
    on_group_change(g, name, GROUP_FORGOTTEN);
    group_changed_now(g);
    group_say_forgotten(g);
    return true;
}
