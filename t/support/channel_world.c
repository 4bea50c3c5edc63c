/* The defragment channel upon a queue manager. */
#include "t/support/channel_world.h"

bool
stage_read(struct queue *queue, const struct envelope *e, struct buffer *out)
{
    buffer_init(out, 64 * 1024 * 1024);
    char *space = buffer_reserve(out, (size_t)e->content_size + 1);
    int content = queue_content_open(queue, e);
    bool good = content >= 0 && space != NULL &&
                queue_content_read(queue, content, 0, space, (size_t)e->content_size) ==
                    e->content_size;
    if (content >= 0)
        queue_content_close(queue, content);
    if (good)
        out->length = (size_t)e->content_size;
    else
        buffer_free(out);
    return good;
}

static bool
stage_keep(struct stage *s, const struct delivery_request *request, size_t which, const char *peer)
{
    const struct envelope *e = request->envelope;
    const struct recipient *r = &e->recipients[request->indexes[which]];
    if (s->count == STAGE_DELIVERED_MAX)
        abort();
    struct delivered *d = &s->delivered[s->count];
    if (!stage_read(manager_queue(s->w.manager), e, &d->content))
        return false;
    s->count++;
    d->id = e->id;
    text_copy(d->trace, sizeof(d->trace),
              text_before(e->prefix, text_find(e->prefix, '\r')));
    d->notify = r->notify;
    d->birth_ms = e->birth_ms;
    d->priority = e->priority;
    d->ours = e->ours;
    d->header_needs = e->header_needs;
    snprintf(d->submitter, sizeof(d->submitter), "%.*s", TEXT_ARGS(e->submitter));
    snprintf(d->peer, sizeof(d->peer), "%s", peer);
    snprintf(d->mark, sizeof(d->mark), "%.*s", TEXT_ARGS(e->fragment.set_mark));
    snprintf(d->to, sizeof(d->to), "%.*s", TEXT_ARGS(r->address));
    return true;
}

static struct outcome
stage_verdict(struct stage *s, bool is_peer)
{
    s->asked += is_peer;
    if (is_peer && s->peers == PEERS_REFUSE)
        return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 554, "5.7.1", "not from us");
    if (s->refuses || (is_peer && s->peers == PEERS_DEFER))
        return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0",
                            "come again");
    return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "Ok");
}

static void
stage_settle(struct carrier_of *c)
{
    struct stage *s = c->stage;
    for (size_t i = 0; i < c->request.count; i++) {
        struct outcome outcome = stage_verdict(s, c->peer[0] != '\0');
        if (outcome.verdict == VERDICT_DELIVERED &&
            !stage_keep(s, &c->request, i, c->peer))
            outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                                   "it cannot be read");
        manager_settled(s->w.manager, &c->request, i, &outcome, NULL);
    }
}

static void
stage_carry(void *context)
{
    struct carrier_of *c = context;
    struct stage *s = c->stage;
    if (c->request.count > 0)
        stage_settle(c);
    c->request.count = 0;
    if (!manager_take(s->w.manager, c->session, &c->request)) {
        manager_session_ended(s->w.manager, c->session, &outcome_no_trouble);
        loop_release(s->w.loop, free, c);
    } else if (c->peer[0] != '\0' && s->peers == PEERS_SLOW) {
        loop_timer_start(s->w.loop, &c->timer, STAGE_SLOW_MS, stage_carry, c);
    } else {
        stage_settle(c);
        c->request.count = 0;
        loop_post(s->w.loop, &c->task, stage_carry, c);
    }
}

static void
stage_open(void *context, struct sched_session *session, const struct target *target,
           const char *domain)
{
    struct carrier_of *c = memory_new(sizeof(*c));
    (void)domain;
    if (target_peer(target))
        snprintf(c->peer, sizeof(c->peer), "%s", target_peer(target));
    c->stage = context;
    c->session = session;
    loop_post(c->stage->w.loop, &c->task, stage_carry, c);
}

static void
stage_plug(struct world *w)
{
    struct stage *s = (struct stage *)w;
    manager_set_channel(w->manager, TARGET_SMTP, stage_open, s);
    manager_set_channel(w->manager, TARGET_MX, stage_open, s);
    s->settings.peers = route_peers(w->routes);
    s->channel = channel_new(w->loop, w->events, w->manager, &s->settings);
}

void
stage_begin(struct stage *s, const char *routes)
{
    *s = (struct stage){
        .settings = {.hostname = "h.test",
                     .limits = {.parts = 1000,
                                .set_bytes = 100 * 1000 * 1000,
                                .sets = 1000,
                                .sender_sets = 100,
                                .bytes = 1000 * 1000 * 1000}}
    };
    manager_world_begin(&s->w, routes);
    s->w.plug = stage_plug;
    stage_plug(&s->w);
}

void
stage_stop(struct stage *s)
{
    channel_free(&s->channel);
    world_stop(&s->w);
}

void
stage_restart(struct stage *s)
{
    stage_stop(s);
    manager_world_start(&s->w);
}

void
stage_clear(struct stage *s)
{
    for (unsigned i = 0; i < s->count; i++)
        buffer_free(&s->delivered[i].content);
    s->count = 0;
}

void
stage_end(struct stage *s)
{
    stage_clear(s);
    channel_free(&s->channel);
    manager_world_end(&s->w);
}

void
stage_send(struct stage *s, const char *sender, const char *recipients,
           struct text content)
{
    struct world *w = &s->w;
    struct outcome refusal;
    struct envelope *e = envelope_new();
    struct text rest = text_from(recipients), one;
    e->sender = envelope_text(e, text_from(sender));
    e->priority = w->priority;
    if (s->envelope_id)
        e->envelope_id = envelope_text(e, text_from(s->envelope_id));
    if (s->trust)
        e->trust = envelope_text(e, text_from(s->trust));
    e->ours = s->submitter != NULL;
    if (s->submitter)
        e->submitter = envelope_text(e, text_from(s->submitter));
    e->tls = s->tls;
    e->fragment.by_peer = s->mark != NULL;
    if (s->mark)
        e->fragment.set_mark = envelope_text(e, text_from(s->mark));
    while (text_word(&rest, " ", &one))
        if (!envelope_add(e, one, w->notify, s->original))
            abort();
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    w->accepted = false;
    if (draft == NULL) {
        envelope_free(&e);
        return;
    }
    (void)!queue_write(draft, content);
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
}

void
stage_put(struct stage *s, const char *sender, const char *recipients, const char *id,
          unsigned number, unsigned total, const char *body)
{
    struct buffer b;
    char said[40] = "";
    buffer_init(&b, 64 * 1024 * 1024);
    if (total > 0)
        snprintf(said, sizeof(said), "; total=%u", total);
    if (!buffer_format(&b,
                       "From: a@x\r\nSubject: part %u\r\nMIME-Version: 1.0\r\n"
                       "Content-Type: message/partial; id=\"%s\"; number=%u%s\r\n\r\n",
                       number, id, number, said) ||
        !buffer_add(&b, text_from(body)))
        abort();
    stage_send(s, sender, recipients, buffer_text(&b));
    buffer_free(&b);
}

void
stage_part_to(struct stage *s, const char *sender, const char *recipients,
              const char *id, unsigned number, unsigned total, const char *body)
{
    stage_put(s, sender, recipients, id, number, total, body);
    world_turns(&s->w);
}

void
stage_part(struct stage *s, const char *id, unsigned number, unsigned total,
           const char *body)
{
    stage_part_to(s, "a@x", "b@y", id, number, total, body);
}

void
stage_arrived(const struct stage *s, unsigned which, const char *to,
              const char *content, const char *name)
{
    if (which >= s->count) {
        ok_named(false, name);
        return;
    }
    const struct delivered *d = &s->delivered[which];
    ok_named(strcmp(d->to, to) == 0, name);
    is_text(buffer_text(&d->content), text_from(content), name);
}

unsigned
stage_wholes(const struct stage *s, const char *whole)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->count; i++)
        count += text_equal(buffer_text(&s->delivered[i].content), text_from(whole));
    return count;
}

struct manager_fragments
stage_figures(const struct stage *s)
{
    struct manager_fragments figures = {0};
    if (!manager_fragments(s->w.manager, &figures))
        abort();
    return figures;
}

const char *
stage_why(const struct stage *s)
{
    return manager_reason(s->w.manager, s->w.id, 0);
}
