/* A world for the scheduler. */
#include "t/support/sched_world.h"
#include "t/support/message_now.h"
#include "t/support/sites_look.h"

void
world_must(bool good, const char *what)
{
    if (!good) {
        tap_result(false, what, __FILE__, __LINE__);
        abort();
    }
}

void
sched_world_start(struct world *w, int active_limit, int session_limit)
{
    memset(w, 0, sizeof(*w));
    w->s = sched_new(&(struct sched_settings){
        .active_limit = active_limit, .session_limit = session_limit, .seed = 7}, &w->now);
    w->now = INT64_C(1700000000000);
    w->target.kind = TARGET_MX;
    w->target.tls = TARGET_TLS_MAY;
    w->target.look_up_mx = true;
    transport_params_default(&w->target.transport);
    w->target.transport.adaptive = 0; /* Postfix's rules alone */
}

void
sched_world_end(struct world *w)
{
    sched_free(&w->s);
    while (w->channels) {
        struct channel *next = w->channels->next;
        free(w->channels);
        w->channels = next;
    }
    for (unsigned i = 0; i < w->count; i++)
        for (unsigned j = 0; j < w->mails[i].count; j++)
            free(w->mails[i].to[j].last);
    free(w->mails);
}

unsigned
world_add(struct world *w, const char *domains, int64_t delay_ms, unsigned attempts)
{
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 64;
        w->mails = memory_resize(w->mails, w->capacity * sizeof(*w->mails));
    }
    struct mail *m = &w->mails[w->count];
    *m = (struct mail){
        .id = {(uint64_t)w->now + w->count, w->count},
        .birth = w->now,
        .due = w->now + delay_ms,
        .attempts = attempts
    };
    struct text rest = text_from(domains), word;
    while (text_word(&rest, " ", &word)) {
        world_must(m->count < WORLD_RECIPIENTS, "recipients of a test mail");
        text_copy(m->to[m->count++].domain, WORLD_DOMAIN, word);
    }
    sched_add(w->s, m->id, m->due, attempts);
    return w->count++;
}

void
world_verdict(struct mail *m, unsigned index, const struct outcome *o,
              bool expired)
{
    world_must(index < m->count && m->loaded, "a verdict for a loaded recipient");
    world_must(m->to[index].fate == FATE_OPEN, "no verdict after the final one");
    switch (o->verdict) {
    case VERDICT_DEFERRED:
        m->deferrals++;
        break;
    case VERDICT_DELIVERED:
        m->to[index].fate = FATE_SENT;
        m->finals++;
        break;
    case VERDICT_FAILED:
        m->to[index].fate = expired ? FATE_EXPIRED : FATE_FAILED;
        m->finals++;
        break;
    }
    if (!m->to[index].last)
        m->to[index].last = memory_new(sizeof(*o));
    *m->to[index].last = *o;
}

void
world_load(struct world *w, struct id id)
{
    struct mail *m = &w->mails[id.hash];
    struct sched_recipient recipients[WORLD_RECIPIENTS];
    size_t count = 0;
    bool is_due = m->due <= w->now || w->may_be_early;
    world_must(!m->loaded && !m->gone && is_due, "only due mail is loaded");
    if (!sched_admit(w->s, id, m->count))
        return;
    for (unsigned i = 0; i < m->count; i++)
        if (m->to[i].fate == FATE_OPEN)
            recipients[count++] =
                (struct sched_recipient){i, &w->target, text_from(m->to[i].domain), 0};
    w->loaded[w->loads++ % 64] = (unsigned)id.hash;
    m->loaded = true;
    w->active++;
    if (w->active > w->active_max)
        w->active_max = w->active;
    struct sched_mail mail = {.owner = (void *)(uintptr_t)(id.hash + 1),
                              .birth_ms = m->birth,
                              .null_sender = m->null_sender,
                              .sender = m->sender,
                              .class = m->class,
                              .size = m->size};
    if (!sched_loaded_now(w->s, id, &mail, recipients, count)) {
        m->loaded = false;
        w->active--;
        w->backlogged++;
    }
}

void
sched_world_open(struct world *w, const struct sched_action *a)
{
    struct channel *c = memory_new(sizeof(*c)), **end = &w->channels;
    *c = (struct channel){.session = a->session, .domain = a->domain, .opened = w->now};
    while (*end)
        end = &(*end)->next;
    *end = c;
    world_must(a->target->kind == w->target.kind, "the target as given");
    w->opens++;
    w->open_now++;
}

void
world_act(struct world *w, const struct sched_action *a)
{
    struct mail *m = &w->mails[a->id.hash];
    switch (a->verb) {
    case SCHED_LOAD:
        world_load(w, a->id);
        return;
    case SCHED_OPEN:
        sched_world_open(w, a);
        return;
    case SCHED_SETTLE:
        world_must(a->owner == (void *)(uintptr_t)(a->id.hash + 1), "the owner");
        world_verdict(m, a->index, a->outcome, a->expired);
        w->settles++;
        return;
    case SCHED_WAIT:
        m->attempts = a->attempts;
        m->due = a->due_ms;
        world_must(a->due_ms > w->now, "a deferred message waits");
        world_must(m->finals < m->count, "for an open recipient");
        w->waits++;
        break;
    case SCHED_FINISH:
        world_must(m->finals == m->count, "finished: every recipient has its verdict");
        m->gone = true;
        w->finishes++;
        break;
    }
    world_must(m->loaded, "only what is loaded ends");
    m->loaded = false;
    m->rounds++;
    w->active--;
}

void
world_run(struct world *w)
{
    struct sched_action a;
    while (sched_next(w->s, &a))
        world_act(w, &a);
}

void
world_pass(struct world *w, int64_t ms)
{
    int64_t until = w->now + ms;
    world_run(w);
    while (sched_wake_ms(w->s) <= until) {
        world_must(sched_wake_ms(w->s) > w->now, "no wake-up for what is done");
        w->now = sched_wake_ms(w->s);
        world_run(w);
    }
    w->now = until;
    world_run(w);
}

struct channel *
world_channel(struct world *w, const char *domain, int nth)
{
    for (struct channel *c = w->channels; c; c = c->next)
        if (!c->ended && (!*domain || !strcmp(c->domain, domain)) && nth-- == 0)
            return c;
    return NULL;
}

int
world_channels(struct world *w, const char *domain)
{
    int count = 0;
    while (world_channel(w, domain, count))
        count++;
    return count;
}

bool
channel_take(struct world *w, struct channel *c)
{
    bool expected = sched_has_work(w->s, c->session);
    c->busy = sched_take(w->s, c->session, &c->work);
    world_must(c->busy || !expected || !c->greeted,
               "has_work promised what take gives");
    c->greeted = true;
    c->idle = !c->busy;
    world_run(w);
    return c->busy;
}

struct mail *
channel_mail(struct world *w, const struct channel *c)
{
    return &w->mails[(uintptr_t)c->work.owner - 1];
}

void
channel_settle(struct world *w, struct channel *c, size_t nth, const struct outcome *o)
{
    unsigned index = c->work.indexes[nth];
    world_verdict(channel_mail(w, c), index, o, false);
    sched_settled(w->s, c->session, index, o);
}

void
channel_answer(struct world *w, struct channel *c, enum verdict verdict,
               enum blame blame)
{
    struct outcome o =
        outcome_make(verdict, blame, 0, "4.0.0", "%s", outcome_word(verdict));
    for (size_t i = 0; i < c->work.count; i++)
        channel_settle(w, c, i, &o);
    c->busy = false;
    world_run(w);
}

void
channel_send(struct world *w, struct channel *c)
{
    channel_answer(w, c, VERDICT_DELIVERED, BLAME_NONE);
}

void
channel_end(struct world *w, struct channel *c, const struct outcome *trouble)
{
    c->ended = true;
    w->open_now--;
    sched_session_ended(w->s, c->session,
                        trouble != NULL ? trouble : &outcome_no_trouble);
    world_run(w);
}

struct outcome
world_trouble(enum verdict verdict, const char *text)
{
    return outcome_make(verdict, BLAME_SITE, 0,
                        verdict == VERDICT_FAILED ? "5.1.2" : "4.4.1", "%s", text);
}

void
channel_refuse(struct world *w, struct channel *c)
{
    struct outcome refused = world_trouble(VERDICT_DEFERRED, "connection refused");
    channel_end(w, c, &refused);
}

int
channel_drain(struct world *w, struct channel *c)
{
    int works = 0;
    for (; channel_take(w, c); works++)
        channel_send(w, c);
    channel_end(w, c, NULL);
    return works;
}

static void
world_site_each(void *context, const struct sched_site *site)
{
    struct world_site_query *q = context;
    if (strcmp(site->key, q->key) != 0)
        return;
    q->site = *site;
    q->text[0] = '\0';
    if (site->reason)
        snprintf(q->text, sizeof(q->text), "%s", site->reason->text);
}

struct world_site_query
world_site(struct world *w, const char *key)
{
    struct world_site_query q = {.key = key};
    sites_look(w->s, world_site_each, &q);
    return q;
}

void
sched_world_learns(struct world *w, int active_limit, int share)
{
    sched_world_start(w, active_limit, 100);
    sched_change(w->s, &(struct sched_settings){.active_limit = active_limit,
                                                .session_limit = 100,
                                                .site_share = share});
    w->target.transport.adaptive = 1;
    w->may_be_early = true;
}

void
world_add_many(struct world *w, const char *domains, int count)
{
    for (int i = 0; i < count; i++)
        world_add(w, domains, 0, 0);
}

bool
channel_found(struct world *w, struct channel *c, const char *key)
{
    bool good = sched_session_found(w->s, c->session, text_from(key));
    if (good)
        world_run(w);
    else
        channel_end(w, c, NULL);
    return good;
}

static void
keep_site(void *context, const struct sched_site *site)
{
    *(struct sched_site *)context = *site;
}

struct sched_site
world_last_site(struct world *w)
{
    struct sched_site site = {0};
    sites_look(w->s, keep_site, &site);
    return site;
}
