/* Simulations: the clock, mail that arrives, and the actions of the scheduler. */
#include "t/simulation/simulation.h"

#include "base/memory.h"
#include "sched/site_key.h"
#include "sched/limits/retry.h"
#include "sched/sched_internal.h"
#include "t/simulation/simulation_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHED_SITES_MAX = 16, NOTE_MAX = 1024 };

static void
simulation_set_now(struct simulation *s, int64_t now_us)
{
    s->now_us = now_us;
    s->now_ms = SIMULATION_START_MS + now_us / 1000;
}

static bool
happens_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct event *x = memory_container(a, struct event, node);
    const struct event *y = memory_container(b, struct event, node);
    return x->at_us != y->at_us ? x->at_us < y->at_us : x->number < y->number;
}

void
simulation_plan(struct simulation *s, struct event *event, int64_t at_us)
{
    simulation_cancel(s, event);
    event->at_us = at_us;
    event->number = s->number++;
    heap_add(&s->events, &event->node);
}

void
simulation_cancel(struct simulation *s, struct event *event)
{
    if (heap_has(&event->node))
        heap_remove(&s->events, &event->node);
}

void
simulation_note(struct simulation *s, const char *what, const char *format, ...)
{
    char line[NOTE_MAX];
    va_list list;
    if (!s->trace)
        return;
    int at = snprintf(line, sizeof(line), "%lld.%06lld %s ",
                      (long long)(s->now_us / 1000000),
                      (long long)(s->now_us % 1000000), what);
    va_start(list, format);
    vsnprintf(line + at, sizeof(line) - (size_t)at, format, list);
    va_end(list);
    s->trace(s->context, text_from(line));
}

/* --- Mail ------------------------------------------------------------------------- */

static void
mail_ended(struct simulation *s, struct mail *mail)
{
    struct generator *g = &s->generators[mail->group];
    struct simulation_group *group = &s->result->groups[mail->group];
    int64_t now_ms = s->now_us / 1000;
    s->ended++;
    free(mail->done);
    mail->done = NULL;
    if (mail->failed) {
        group->failed++;
        s->result->messages_failed++;
        return;
    }
    int64_t took_ms = (s->now_us - mail->born_us) / 1000;
    g->took_ms[group->delivered++] =
        took_ms > UINT32_MAX ? UINT32_MAX : (unsigned)took_ms;
    if (group->delivered == 1)
        group->first_ms = now_ms;
    group->last_ms = s->result->last_delivery_ms = now_ms;
    s->result->messages_delivered++;
}

void
simulation_verdict(struct simulation *s, struct mail *mail, unsigned index,
                   const struct outcome *outcome)
{
    assert(index < mail->count && mail->open > 0);
    assert(!mail->done || !mail->done[index]);
    switch (outcome->verdict) {
    case VERDICT_DEFERRED:
        s->result->deferred++;
        return;
    case VERDICT_DELIVERED:
        s->result->recipients_delivered++;
        break;
    case VERDICT_FAILED:
        s->result->recipients_failed++;
        mail->failed = true;
        break;
    }
    if (mail->done)
        mail->done[index] = 1;
    if (--mail->open == 0)
        mail_ended(s, mail);
}

void
simulation_begin(struct simulation *s, struct mail *mail)
{
    struct simulation_group *group = &s->result->groups[mail->group];
    if (mail->begun)
        return;
    mail->begun = true;
    unsigned place = s->generators[mail->group].begun++;
    if (place > mail->number && place - mail->number > group->behind)
        group->behind = place - mail->number;
}

static void
simulation_arrive(struct simulation *s, struct generator *g)
{
    const struct scenario_arrival *a = g->arrival;
    struct mail *mail = &s->mails[s->mail_count];
    *mail = (struct mail){.born_us = s->now_us,
                          .group = (unsigned)(g - s->generators),
                          .number = g->sent,
                          .domain = (unsigned)(a->first + g->sent % a->count),
                          .count = a->recipients,
                          .open = a->recipients};
    g->sent++;
    if (mail->count > 1)
        mail->done = memory_new(mail->count);
    s->mail_count++;
    int64_t birth_ms = SIMULATION_START_MS + mail->born_us / 1000;
    struct id id = {(uint64_t)birth_ms, (uint64_t)(mail - s->mails)};
    sched_add(s->sched, id, birth_ms, 0);
    sched_weigh(s->sched, id, mail->count);
    s->is_ready = true;
    size_t queue = (size_t)(s->mail_count - s->ended);
    if (queue > s->result->peak_queue)
        s->result->peak_queue = queue;
}

double
simulation_chance(struct simulation *s)
{
    return (double)(retry_random(&s->random) >> 11) / 9007199254740992.0;
}

/* Exponential, so that arrivals are a Poisson process. Von Neumann's comparisons: a run
 * that falls from x on has odd length with probability e^-x. */
static int64_t
random_gap_us(struct simulation *s, int64_t mean_us)
{
    for (double whole = 0;; whole++) {
        double first = simulation_chance(s), last = first, next;
        bool odd = true;
        while ((next = simulation_chance(s)) < last) {
            last = next;
            odd = !odd;
        }
        if (odd)
            return (int64_t)((whole + first) * (double)mean_us);
    }
}

static void
on_arrival(struct simulation *s, struct generator *g)
{
    const struct scenario_arrival *a = g->arrival;
    do
        simulation_arrive(s, g);
    while (a->every_us == 0 && g->sent < a->messages);
    if (g->sent < a->messages)
        simulation_plan(s, &g->event,
                        s->now_us +
                            (a->random ? random_gap_us(s, a->every_us) : a->every_us));
}

static uint64_t
mail_sender(const struct generator *g, unsigned number)
{
    char sender[SCENARIO_NAME_MAX + 32];
    const char *pattern = g->arrival->sender, *mark = strstr(pattern, "%d");
    if (!mark)
        return g->sender;
    snprintf(sender, sizeof(sender), "%.*s%u%s", (int)(mark - pattern), pattern, number,
             mark + 2);
    return sched_sender(text_from(sender));
}

static void
simulation_load(struct simulation *s, struct id id)
{
    struct mail *mail = &s->mails[id.hash];
    const struct generator *g = &s->generators[mail->group];
    const struct scenario_arrival *a = g->arrival;
    const struct scenario_domain *domain = s->scenario->domain_at[mail->domain];
    size_t count = 0;
    for (unsigned i = 0; i < mail->count; i++)
        if (!mail->done || !mail->done[i])
            s->recipients[count++] = (struct sched_recipient){
                i, &s->targets[domain->target], text_from(domain->name), 0};
    struct sched_mail as = {.owner = mail,
                            .birth_ms = SIMULATION_START_MS + mail->born_us / 1000,
                            .class = a->class,
                            .sender = mail_sender(g, mail->number),
                            .size = a->size};
    line_touch(s, domain->site);
    if (!sched_loaded_now(s->sched, id, &as, s->recipients, count))
        simulation_note(s, "backlogged", "message %llu",
                        (unsigned long long)id.hash + 1);
}

/* --- Observation ------------------------------------------------------------------ */

struct window_question {
    const char *key;
    int size; /* 0: the site is dead */
};

static void
window_see(void *context, struct site *site)
{
    struct window_question *q = context;
    if (strcmp(site->key, q->key) == 0)
        q->size = site->dead ? 0 : site->window.size;
}

void
simulation_feedback(struct simulation *s, size_t place)
{
    if (s->scenario->site_count > WATCHED_SITES_MAX)
        return;
    struct window_question q = {.key = s->places[place].key};
    sites_each(&s->sched->destinations.sites, window_see, &q);
    if (q.size == 0)
        return;
    s->result->window_events++;
    s->window_sum += q.size;
    s->window_squares += (double)q.size * q.size;
}

static void
observe(struct simulation *s)
{
    struct sched_counts counts = sched_count(s->sched);
    struct simulation_result *r = s->result;
    if (counts.dead > s->dead)
        r->deaths += counts.dead - s->dead;
    s->dead = counts.dead;
    if (counts.active > r->peak_active)
        r->peak_active = counts.active;
    if (counts.recipients > r->peak_recipients)
        r->peak_recipients = counts.recipients;
}

/* --- The run ---------------------------------------------------------------------- */

static void
simulation_act(struct simulation *s, const struct sched_action *action)
{
    s->result->actions++;
    switch (action->verb) {
    case SCHED_LOAD:
        simulation_load(s, action->id);
        return;
    case SCHED_OPEN:
        line_open(s, action);
        return;
    case SCHED_SETTLE:
        if (!action->expired)
            s->result->suspended++;
        simulation_note(s, outcome_word(action->outcome->verdict), "message %llu: %s",
                        (unsigned long long)action->id.hash + 1, action->outcome->text);
        simulation_verdict(s, action->owner, action->index, action->outcome);
        return;
    case SCHED_WAIT:
        simulation_note(s, "wait", "message %llu for %lld ms",
                        (unsigned long long)action->id.hash + 1,
                        (long long)(action->due_ms - s->now_ms));
        return;
    case SCHED_FINISH:
        simulation_note(s, "finish", "message %llu",
                        (unsigned long long)action->id.hash + 1);
        return;
    }
}

/* All actions of the scheduler now; woken: by its own clock. */
static void
simulation_pump(struct simulation *s, bool woken)
{
    struct sched_action action;
    do {
        while (sched_work(s->sched))
            continue;
        while (sched_next(s->sched, &action))
            simulation_act(s, &action);
    } while (line_wake_idle(s, woken));
    observe(s);
    int64_t wake_ms = sched_wake_ms(s->sched);
    s->wake_us =
        wake_ms == INT64_MAX ? INT64_MAX : (wake_ms - SIMULATION_START_MS) * 1000;
}

static void
simulation_change_servers(struct simulation *s, const struct scenario_change *change)
{
    struct buffer problem;
    buffer_init(&problem, NOTE_MAX);
    for (size_t i = change->first; i < change->first + change->count; i++) {
        struct place *place = &s->places[i];
        for (size_t j = 0; j < place->station_count; j++) {
            struct fake_server_settings *settings = &place->stations[j].server.settings;
            if (change->address && strcmp(change->address, settings->name) != 0)
                continue;
            struct text rest = text_from(change->options), option;
            while (text_word(&rest, " \t", &option)) {
                bool good = fake_server_option(settings, option, &problem);
                assert(good); /* the scenario has checked it */
            }
            simulation_note(s, "change", "%s: %s", settings->name, change->options);
            line_station_changed(s, &place->stations[j]);
        }
    }
    buffer_free(&problem);
}

static void
on_change(struct simulation *s, struct queue_command *command)
{
    switch (command->what->kind) {
    case SCENARIO_SERVERS:
        simulation_change_servers(s, command->what);
        break;
    case SCENARIO_FLUSH:
        sched_retry_all(s->sched);
        break;
    }
    s->is_ready = true;
}

static void
happen(struct simulation *s, struct event *event)
{
    heap_remove(&s->events, &event->node);
    switch (event->kind) {
    case EVENT_ARRIVAL:
        on_arrival(s, memory_container(event, struct generator, event));
        return;
    case EVENT_CHANGE:
        on_change(s, memory_container(event, struct queue_command, event));
        return;
    case EVENT_LINE:
        line_happened(s, event);
        return;
    }
}

/* False: no event is left, or the end has come. */
static bool
simulation_step(struct simulation *s)
{
    struct heap_node *first = heap_first(&s->events);
    struct event *event = first ? memory_container(first, struct event, node) : NULL;
    int64_t next_us = event && event->at_us <= s->wake_us ? event->at_us : s->wake_us;
    if (next_us == INT64_MAX || s->ended == s->scenario->messages)
        return false;
    if (next_us > s->scenario->until_us) {
        simulation_set_now(s, s->scenario->until_us);
        return false;
    }
    if (next_us > s->now_us)
        simulation_set_now(s, next_us);
    if (event && event->at_us <= s->now_us)
        happen(s, event);
    else
        s->is_ready = true;
    while (s->is_ready) {
        s->is_ready = false;
        simulation_pump(s, s->wake_us <= s->now_us);
    }
    return true;
}

/* --- Beginning and end ------------------------------------------------------------ */

static void
place_init(struct simulation *s, struct place *place, const struct scenario_site *site)
{
    struct exchange_name *names = memory_array(site->server_count, sizeof(*names));
    char(*hosts)[SCENARIO_NAME_MAX + FAKE_SERVER_NAME_MAX + 32] =
        memory_array(site->server_count, sizeof(*hosts));
    char key[SITE_KEY_KEY_MAX];
    place->station_count = site->server_count;
    place->stations = memory_array(site->server_count, sizeof(*place->stations));
    for (size_t i = 0; i < site->server_count; i++) {
        struct fake_server *r = &place->stations[i].server;
        r->settings = site->servers[i];
        r->random = &s->random;
        snprintf(hosts[i], sizeof(*hosts), "%s.%s", r->settings.name, site->name);
        names[i] = (struct exchange_name){text_from(hosts[i]), 0};
    }
    place->key_length = site_key_key(NULL, names, site->server_count, key);
    place->key = text_string(text_of(key, place->key_length));
    free(hosts);
    free(names);
}

static void
generator_init(struct simulation *s, struct generator *g,
               const struct scenario_arrival *arrival, struct simulation_group *group)
{
    g->arrival = arrival;
    g->event.kind = EVENT_ARRIVAL;
    g->took_ms = memory_array(arrival->messages, sizeof(*g->took_ms));
    g->sender = sched_sender(text_from(arrival->sender));
    group->name = arrival->name;
    group->messages = arrival->messages;
    simulation_plan(s, &g->event, arrival->at_us);
}

static void
simulation_init(struct simulation *s, const struct scenario *scenario)
{
    struct simulation_result *result = memory_new(sizeof(*result));
    unsigned recipients = 1;
    s->scenario = scenario;
    s->result = result;
    s->random = scenario->seed;
    for (size_t i = 0; i < scenario->target_count; i++)
        s->targets[i] = (struct target){.kind = TARGET_MX,
                                        .look_up_mx = true,
                                        .tls = TARGET_TLS_MAY,
                                        .port = (unsigned short)i,
                                        .transport = scenario->targets[i].transport};
    heap_init(&s->events, happens_before);
    result->messages = scenario->messages;
    result->group_count = scenario->arrival_count;
    result->groups = memory_array(result->group_count, sizeof(*result->groups));
    result->site_count = scenario->site_count;
    result->sites = memory_array(result->site_count, sizeof(*result->sites));
    s->mails = memory_array((size_t)scenario->messages, sizeof(*s->mails));
    s->places = memory_array(scenario->site_count, sizeof(*s->places));
    for (size_t i = 0; i < scenario->site_count; i++) {
        result->sites[i].name = scenario->site_at[i]->name;
        place_init(s, &s->places[i], scenario->site_at[i]);
    }
    s->touched = memory_array(scenario->site_count, sizeof(*s->touched));
    struct sched_settings settings = scenario->sched;
    settings.seed = scenario->seed;
    s->sched = sched_new(&settings, &s->now_ms);
    s->wake_us = INT64_MAX;
    s->is_ready = true;
    s->changes = memory_array(scenario->change_count + 1, sizeof(*s->changes));
    for (size_t i = 0; i < scenario->change_count; i++) {
        s->changes[i].event.kind = EVENT_CHANGE;
        s->changes[i].what = &scenario->changes[i];
        simulation_plan(s, &s->changes[i].event, scenario->changes[i].at_us);
    }
    s->generators = memory_array(scenario->arrival_count, sizeof(*s->generators));
    for (size_t i = 0; i < scenario->arrival_count; i++) {
        const struct scenario_arrival *a = &scenario->arrivals[i];
        generator_init(s, &s->generators[i], a, &result->groups[i]);
        recipients = a->recipients > recipients ? a->recipients : recipients;
    }
    s->recipients = memory_array(recipients, sizeof(*s->recipients));
}

static int
compare_times(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

static void
group_sum_up(struct simulation_group *group, struct generator *g)
{
    unsigned n = group->delivered;
    uint64_t sum = 0;
    if (n == 0)
        return;
    qsort(g->took_ms, n, sizeof(*g->took_ms), compare_times);
    for (unsigned i = 0; i < n; i++)
        sum += g->took_ms[i];
    group->mean_ms = (int64_t)(sum / n);
    group->median_ms = g->took_ms[(n - 1) / 2];
    group->p99_ms = g->took_ms[((uint64_t)n * 99 + 99) / 100 - 1];
    group->max_ms = g->took_ms[n - 1];
}

static double
square_root(double square)
{
    double root = square > 1 ? square : 1;
    for (int i = 0; square > 0 && i < 100; i++)
        root = (root + square / root) / 2;
    return square > 0 ? root : 0;
}

static void
simulation_sum_up(struct simulation *s)
{
    struct simulation_result *r = s->result;
    double n = (double)r->window_events;
    r->finished = s->ended == s->scenario->messages;
    r->end_ms = s->now_us / 1000;
    if (n > 1) {
        double variance =
            (s->window_squares - s->window_sum * s->window_sum / n) / (n - 1);
        r->window_mean = s->window_sum / n;
        r->window_deviation = square_root(variance);
    }
    for (size_t i = 0; i < r->group_count; i++)
        group_sum_up(&r->groups[i], &s->generators[i]);
}

static void
simulation_end(struct simulation *s)
{
    line_end_all(s);
    sched_free(&s->sched);
    heap_free(&s->events);
    for (size_t i = 0; i < s->scenario->site_count; i++) {
        free(s->places[i].stations);
        free(s->places[i].key);
    }
    for (size_t i = 0; i < s->scenario->arrival_count; i++) {
        free(s->generators[i].took_ms);
    }
    for (uint64_t i = 0; i < s->mail_count; i++)
        free(s->mails[i].done);
    free(s->places);
    free(s->touched);
    free(s->changes);
    free(s->generators);
    free(s->mails);
    free(s->recipients);
}

struct simulation_result *
simulation_run(const struct scenario *scenario,
               void (*trace)(void *context, struct text line), void *context)
{
    struct simulation s = {.trace = trace, .context = context, .now_ms = SIMULATION_START_MS};
    simulation_init(&s, scenario);
    while (simulation_step(&s))
        ;
    simulation_sum_up(&s);
    simulation_end(&s);
    return s.result;
}

void
simulation_free(struct simulation_result **result)
{
    if (!*result)
        return;
    free((*result)->groups);
    free((*result)->sites);
    free(*result);
    *result = NULL;
}
