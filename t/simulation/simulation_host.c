/* Hosts of a simulation: which run, their knowledge of each other, and their questions
 * to the bank. */
#include "t/simulation/simulation_internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_MAX = 200, /* questions that go out together */
    WAY_US = 500,    /* to the bank, or back */
    PATIENCE_US = 250000,
    RETRY_US = 50000,   /* until the next connection */
    BEAT_US = 2000000,  /* how often a host says that it is there, */
    LATE_US = 3000000,  /* not seen for that long: it may be lost */
    LIST_US = 10000000, /* and asks who else is; without it in that time: lost */
    FORGET_US = 600000000
};

#define NEVER_US (-INT64_C(1) - FORGET_US)

struct host_question {
    char *site, key[BANK_KEY_MAX + 1];
    struct bank_question asked;
    struct bank_grant grant;
};
struct host_batch {
    bool is_answered, is_lost;
    size_t count;
    struct host_question questions[BATCH_MAX];
};

static bool
host_reaches_bank(const struct simulation *s, const struct simulation_host *host)
{
    return s->bank && !s->is_bank_down && !host->is_cut;
}

void
simulation_host_touch(struct simulation *s, struct simulation_host *host)
{
    if (host->is_ready)
        return;
    host->is_ready = true;
    host->next_ready = NULL;
    if (s->ready)
        *s->ready_last = host;
    else
        s->ready = host;
    s->ready_last = &host->next_ready;
}

/* --- The members ------------------------------------------------------------------ */

/* As it knows the group. */
static void
host_set_group(struct simulation *s, struct simulation_host *host)
{
    struct sched_group group = {
        .members = 1, .has_bank = host->has_bank, .shares_addresses = true};
    int64_t now_us = host->listed_us;
    for (size_t i = 0; i < s->scenario->host_count; i++) {
        if (i == host->number)
            continue;
        if (host->seen_us[i] > now_us - LIST_US)
            group.members++;
        else if (host->seen_us[i] > now_us - FORGET_US)
            group.lost++;
        else
            continue;
        group.index += i < host->number;
    }
    group.late = host->has_bank && host->late < group.members ? host->late : 0;
    if (s->scenario->host_count > 1 || s->bank)
        sched_members(host->sched, &group);
    simulation_host_touch(s, host);
}

/* The bank knows better, but may have lost its memory. */
static void
host_list(struct simulation *s, struct simulation_host *host)
{
    host->listed_us = s->now_us;
    for (size_t i = 0; i < s->scenario->host_count; i++)
        if (s->bank_seen_us[i] > host->seen_us[i] || s->bank_seen_us[i] == NEVER_US)
            host->seen_us[i] = s->bank_seen_us[i];
}

/* Members that may be lost. */
static int
host_late(const struct simulation *s, const struct simulation_host *host)
{
    int late = 0;
    for (size_t i = 0; i < s->scenario->host_count; i++)
        late += i != host->number && host->seen_us[i] > host->listed_us - LIST_US &&
                s->bank_seen_us[i] != NEVER_US &&
                s->bank_seen_us[i] <= s->now_us - LATE_US;
    return late;
}

/* After a pause the others must say first that they are there. */
static void
host_beat(struct simulation *s, struct simulation_host *host)
{
    bool had_bank = host->has_bank;
    simulation_plan(s, &host->beat, s->now_us + BEAT_US);
    host->has_bank = host_reaches_bank(s, host);
    if (host->has_bank) {
        s->bank_seen_us[host->number] = s->now_us;
        int late = host_late(s, host);
        bool is_same = late == host->late;
        host->late = late;
        if (!had_bank)
            host->listed_us = s->now_us;
        else if (s->now_us - host->listed_us >= LIST_US || late > 0)
            host_list(s, host);
        else if (is_same)
            return;
    } else if (!had_bank) {
        return;
    }
    simulation_note(s, host->has_bank ? "bank" : "alone", "host %zu", host->number + 1);
    host_set_group(s, host);
}

/* --- Questions -------------------------------------------------------------------- */

/* Names are hashes, as in the daemon. */
static void
host_add_question(void *context, const struct sched_wish *wish)
{
    struct host_batch *batch = context;
    struct host_question *q = &batch->questions[batch->count++];
    q->site = memory_string(wish->site);
    q->asked = *wish->question;
    snprintf(q->key, sizeof(q->key), "%016llx",
             (unsigned long long)sched_sender(text_from(wish->site)));
}

void
simulation_host_ask(struct simulation *s, struct simulation_host *host)
{
    if (host->batch)
        return;
    struct host_batch *batch = memory_new(sizeof(*batch));
    if (sched_wishes(host->sched, BATCH_MAX, host_add_question,
                     batch) == 0) {
        free(batch);
        return;
    }
    s->result->batches++;
    s->result->questions += batch->count;
    host->batch = batch;
    simulation_plan(s, &host->question, s->now_us + WAY_US);
}

static void
host_batch_free(struct simulation_host *host)
{
    for (size_t i = 0; host->batch && i < host->batch->count; i++)
        free(host->batch->questions[i].site);
    free(host->batch);
    host->batch = NULL;
}

static void
host_answer(struct simulation *s, struct simulation_host *host)
{
    struct host_batch *batch = host->batch;
    for (size_t i = 0; i < batch->count; i++) {
        struct host_question *q = &batch->questions[i];
        sched_granted(host->sched, q->site,
                      batch->is_lost ? NULL : &q->grant);
    }
    if (batch->is_lost) {
        host->has_bank = false;
        simulation_note(s, "alone", "host %zu", host->number + 1);
        host_set_group(s, host);
    }
    host_batch_free(host);
    simulation_host_touch(s, host);
}

/* At the bank, or after its answer, or when none has come. */
static void
host_question(struct simulation *s, struct simulation_host *host)
{
    struct host_batch *batch = host->batch;
    int64_t bank_us = SIMULATION_START_MS * 1000 + s->now_us;
    if (batch->is_answered || batch->is_lost) {
        host_answer(s, host);
        return;
    }
    batch->is_lost = !host_reaches_bank(s, host);
    for (size_t i = 0; i < batch->count && !batch->is_lost; i++) {
        struct host_question *q = &batch->questions[i];
        q->grant = bank_ask(s->bank, text_from(q->key), bank_us, &q->asked);
        simulation_note(s, "grant", "host %zu: %d transactions, %d sessions: %s",
                        host->number + 1, q->grant.tokens, q->grant.sessions, q->site);
    }
    batch->is_answered = true;
    simulation_plan(s, &host->question,
                    s->now_us + (batch->is_lost ? PATIENCE_US - WAY_US : WAY_US));
}

void
simulation_host_happened(struct simulation *s, struct event *event)
{
    if (event->kind == EVENT_BEAT)
        host_beat(s, memory_container(event, struct simulation_host, beat));
    else
        host_question(s, memory_container(event, struct simulation_host, question));
}

/* --- Running hosts ---------------------------------------------------------------- */

struct simulation_host *
simulation_host_running(struct simulation *s, size_t number)
{
    size_t count = s->scenario->host_count;
    for (size_t i = 0; i < count; i++) {
        struct simulation_host *host = &s->hosts[(number + i) % count];
        if (host->sched && !host->is_draining)
            return host;
    }
    return &s->hosts[number];
}

void
simulation_host_give(struct simulation *s, struct simulation_host *host,
                     const struct mail *mail)
{
    int64_t birth_ms = SIMULATION_START_MS + mail->born_us / 1000;
    struct id id = {(uint64_t)birth_ms, (uint64_t)(mail - s->mails)};
    if (!host->sched)
        return;
    sched_add(host->sched, id, birth_ms, 0);
    sched_weigh(host->sched, id, mail->count);
    simulation_host_touch(s, host);
}

/* With its queue, if it has one. */
static void
host_start(struct simulation *s, struct simulation_host *host)
{
    struct sched_settings settings = s->scenario->sched;
    settings.seed = s->scenario->seed + host->number;
    host->sched = sched_new(&settings, &s->now_ms);
    host->has_bank = host_reaches_bank(s, host);
    if (host->has_bank) {
        s->bank_seen_us[host->number] = s->now_us;
        host_list(s, host);
    }
    host_set_group(s, host);
    for (uint64_t i = 0; i < s->mail_count; i++)
        if (s->mails[i].host == host->number && s->mails[i].open > 0)
            simulation_host_give(s, host, &s->mails[i]);
    if (s->bank)
        simulation_plan(
            s, &host->beat,
            s->now_us + (int64_t)(host->number * BEAT_US / s->scenario->host_count));
}

static void
host_stop(struct simulation *s, struct simulation_host *host)
{
    simulation_cancel(s, &host->beat);
    simulation_cancel(s, &host->question);
    host_batch_free(host);
    line_host_died(s, host);
    sched_free(&host->sched);
    host->is_draining = false;
    simulation_host_touch(s, host);
}

/* It has said goodbye: nothing is kept for it. */
void
simulation_host_drained(struct simulation *s, struct simulation_host *host)
{
    size_t turn = host->number;
    host_stop(s, host);
    if (host_reaches_bank(s, host))
        s->bank_seen_us[host->number] = NEVER_US;
    for (uint64_t i = 0; i < s->mail_count; i++) {
        struct mail *mail = &s->mails[i];
        if (mail->host != host->number || mail->open == 0)
            continue;
        struct simulation_host *to = simulation_host_running(s, turn);
        turn = (to->number + 1) % s->scenario->host_count;
        simulation_count_gone(simulation_mail_seat(s, mail));
        mail->host = (unsigned)to->number;
        simulation_count_wait(s, simulation_mail_seat(s, mail));
        simulation_host_give(s, to, mail);
    }
}

static void
host_change(struct simulation *s, struct simulation_host *host,
            enum scenario_change_kind kind)
{
    if (kind == SCENARIO_HOST_JOIN) {
        host->is_cut = false;
        if (!host->sched)
            host_start(s, host);
        else if (host->is_draining)
            sched_cancel_drain(host->sched);
        host->is_draining = false;
    } else if (kind == SCENARIO_HOST_CUT) {
        host->is_cut = true;
    } else if (kind == SCENARIO_HOST_DIE && host->sched) {
        host_stop(s, host);
    } else if (kind == SCENARIO_HOST_DRAIN && host->sched) {
        host->is_draining = true;
        sched_drain(host->sched);
    }
}

/* Another bank takes over: connections end, and are made anew. */
static void
host_reconnect(struct simulation *s, struct simulation_host *host)
{
    if (!host->sched || !host->has_bank)
        return;
    host->has_bank = false;
    if (host->batch)
        host->batch->is_lost = true;
    host_set_group(s, host);
    simulation_plan(s, &host->beat, s->now_us + RETRY_US);
}

static void
bank_replace(struct simulation *s, struct bank *bank)
{
    bank_free(&s->bank);
    s->bank = bank;
}

static const char *
change_word(enum scenario_change_kind kind)
{
    static const char *const words[] = {
        [SCENARIO_BANK_DOWN] = "bank down",   [SCENARIO_BANK_UP] = "bank up",
        [SCENARIO_BANK_EMPTY] = "bank empty", [SCENARIO_BANK_KEEP] = "bank keep",
        [SCENARIO_BANK_LOSE] = "bank lose",   [SCENARIO_HOST_CUT] = "cut",
        [SCENARIO_HOST_JOIN] = "join",        [SCENARIO_HOST_DIE] = "die",
        [SCENARIO_HOST_DRAIN] = "drain"};
    return words[kind];
}

void
simulation_host_change(struct simulation *s, struct queue_command *command)
{
    const struct scenario_change *change = command->what;
    simulation_note(s, "change", "%s", change_word(change->kind));
    if (change->kind >= SCENARIO_HOST_CUT) {
        for (size_t i = 0; i < change->count; i++)
            host_change(s, &s->hosts[change->first + i], change->kind);
    } else if (change->kind == SCENARIO_BANK_KEEP) {
        command->kept = bank_copy(s->bank);
    } else if (change->kind == SCENARIO_BANK_LOSE) {
        bank_replace(s, command[-1].kept);
        command[-1].kept = NULL;
        for (size_t i = 0; i < s->scenario->host_count; i++)
            host_reconnect(s, &s->hosts[i]);
    } else if (change->kind == SCENARIO_BANK_EMPTY) {
        bank_replace(s, bank_new());
    } else {
        s->is_bank_down = change->kind == SCENARIO_BANK_DOWN;
    }
}

/* --- Beginning and end ------------------------------------------------------------ */

/* Sets the shared limits of each site: those of its first domain. */
static void
sites_set_limits(struct simulation *s)
{
    const struct scenario *scenario = s->scenario;
    for (size_t i = scenario->domain_count; i > 0; i--) {
        const struct scenario_domain *domain = scenario->domain_at[i - 1];
        const struct transport_params *t = &scenario->targets[domain->target].transport;
        struct simulation_site *site = &s->result->sites[domain->site];
        bool is_shared = t->shared != TRANSPORT_NOT_SHARED;
        if (is_shared)
            site->rate = t->rate;
        if (is_shared && transport_params_is_strict(t))
            site->limit = t->concurrency_limit;
    }
}

/* A host whose first change is that it joins comes with it. */
static bool
host_is_there(const struct scenario *scenario, size_t number)
{
    const struct scenario_change *first = NULL;
    for (size_t i = 0; i < scenario->change_count; i++) {
        const struct scenario_change *c = &scenario->changes[i];
        if (c->kind >= SCENARIO_HOST_CUT && number >= c->first &&
            number < c->first + c->count && (!first || c->at_us < first->at_us))
            first = c;
    }
    return !first || first->kind != SCENARIO_HOST_JOIN;
}

/* A group that knows itself. */
void
simulation_hosts_init(struct simulation *s)
{
    size_t count = s->scenario->host_count, sites = s->scenario->site_count;
    s->hosts = memory_array(count, sizeof(*s->hosts));
    s->bank_seen_us = memory_array(count, sizeof(*s->bank_seen_us));
    s->bank = s->scenario->has_bank ? bank_new() : NULL;
    sites_set_limits(s);
    for (size_t i = 0; i < count; i++)
        s->bank_seen_us[i] = host_is_there(s->scenario, i) ? 0 : NEVER_US;
    for (size_t i = 0; i < count; i++) {
        struct simulation_host *host = &s->hosts[i];
        host->number = i;
        host->beat.kind = EVENT_BEAT;
        host->question.kind = EVENT_QUESTION;
        host->seats = memory_array(sites, sizeof(*host->seats));
        host->touched = memory_array(sites, sizeof(*host->touched));
        host->seen_us = memory_array(count, sizeof(*host->seen_us));
        for (size_t j = 0; j < count; j++)
            host->seen_us[j] = s->bank_seen_us[j];
        if (s->bank_seen_us[i] == 0)
            host_start(s, host);
    }
}

void
simulation_hosts_free(struct simulation *s)
{
    for (size_t i = 0; i < s->scenario->host_count; i++) {
        struct simulation_host *host = &s->hosts[i];
        host_stop(s, host);
        free(host->seats);
        free(host->touched);
        free(host->seen_us);
    }
    for (size_t i = 0; i < s->scenario->change_count; i++)
        bank_free(&s->changes[i].kept);
    free(s->hosts);
    free(s->bank_seen_us);
    bank_free(&s->bank);
}
