/* The hosts of t/sim/sky.h. */
#include "base/log/log_internal.h"
#include "base/event/event.h"
#include "t/support/sky_hosts.h"

/* --- Arrivals --------------------------------------------------------------------- */

unsigned
person(struct text address)
{
    for (unsigned i = 0; i < PEOPLE; i++)
        if (text_equal(address, text_from(people[i])))
            return i;
    return PEOPLE;
}

/* Behind the words stands a number. */
static bool
number_behind(struct text t, const char *words, unsigned *number)
{
    const char *at =
        t.length == 0 ? NULL : memmem(t.at, t.length, words, strlen(words));
    if (at == NULL)
        return false;
    *number = (unsigned)strtoul(at + strlen(words), NULL, 10);
    return true;
}

void
part_body(const struct fate_of_set *set, unsigned which, unsigned number,
          struct buffer *out)
{
    bool fits = number > 1 || buffer_format(out, "Subject: whole-%u\r\n\r\n", which);
    fits = fits && buffer_format(out, "%u.%u\r\n", which, number);
    for (unsigned i = 0; fits && i < set->lines; i++)
        fits = buffer_format(out, "%900u\r\n", i);
    if (!fits)
        abort();
}

static void
whole_body(const struct fate_of_set *set, unsigned which, struct buffer *out)
{
    bool fits = buffer_add(out, TEXT("From: a@x\r\n"));
    for (unsigned n = 1; fits && n <= set->parts; n++)
        part_body(set, which, n, out);
    if (!fits)
        abort();
}

struct fate_of_part *
part_of(struct sky *w, struct text content, unsigned *set)
{
    unsigned number;
    if (!number_behind(content, "id=\"s", set) ||
        !number_behind(content, "; number=", &number) || *set >= w->set_count ||
        number < 1 || number > w->sets[*set].parts)
        return NULL;
    return &w->sets[*set].part[number - 1];
}

static void
note_whole(struct sky *w, struct text content, unsigned set, unsigned who)
{
    struct buffer want;
    buffer_init(&want, 16 * 1024 * 1024);
    if (set >= w->set_count || who >= PEOPLE) {
        complain(w, "a whole of no set, or for nobody");
        return;
    }
    whole_body(&w->sets[set], set, &want);
    if (!text_equal(buffer_text(&want), content))
        complain(w, "set %u is joined wrongly:\n%.*s", set, TEXT_ARGS(content));
    w->sets[set].wholes[who]++;
    buffer_free(&want);
}

static void
note_notice(struct sky *w, struct text content)
{
    unsigned set;
    struct fate_of_part *part = part_of(w, content, &set);
    bool is_whole = part == NULL && number_behind(content, "Subject: whole-", &set) &&
                    set < w->set_count;
    if (part == NULL && !is_whole) {
        complain(w, "a notice about nothing:\n%.*s", TEXT_ARGS(content));
        return;
    }
    struct text delayed = TEXT("Action: delayed");
    if (memmem(content.at, content.length, delayed.at, delayed.length) != NULL)
        return; /* the mail is still tried, at one of the times of notices= */
    bool is_timeout = !is_whole && w->on_timeout != CHANNEL_RELEASE;
    if (!is_timeout && !w->short_life && !w->sets[set].is_odd)
        complain(w, "a notice:\n%.*s", TEXT_ARGS(content));
    for (unsigned i = 0; i < PEOPLE; i++) {
        char words[60];
        snprintf(words, sizeof(words), "Final-Recipient: rfc822; %s", people[i]);
        if (memmem(content.at, content.length, words, strlen(words)) == NULL)
            continue;
        if (is_whole)
            w->sets[set].wholes[i]++;
        else
            part->returned[i]++;
    }
}

static bool
read_errand(const struct transport *c, struct buffer *content)
{
    return stage_read(manager_queue(c->host->s.w.manager), c->request.envelope, content);
}

static void
note_arrival(struct transport *c, struct text content, size_t which)
{
    struct sky *w = c->host->sky;
    const struct envelope *e = c->request.envelope;
    unsigned who = person(e->recipients[c->request.indexes[which]].address);
    unsigned set;
    if (e->sender.length == 0) {
        note_notice(w, content);
        return;
    }
    struct fate_of_part *part = part_of(w, content, &set);
    if (part != NULL && who < PEOPLE)
        part->arrived[who]++;
    else if (number_behind(content, "Subject: whole-", &set))
        note_whole(w, content, set, who);
    else
        complain(w, "what is that?\n%.*s", TEXT_ARGS(content));
}

/* It may come twice. */
static void
note_odd(struct sky *w, struct text content)
{
    unsigned set;
    if (part_of(w, content, &set) != NULL ||
        (number_behind(content, "Subject: whole-", &set) && set < w->set_count))
        w->sets[set].is_odd = true;
}

/* --- Sessions --------------------------------------------------------------------- */

struct outcome
delivered(void)
{
    return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "Ok");
}

static struct outcome
not_now(void)
{
    return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0", "come again");
}

static struct outcome
not_there(void)
{
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "connection refused");
}

struct outcome
never(void)
{
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 554, "5.7.1", "not from you");
}

static void
settle_errand(struct transport *c)
{
    c->has_errand = false;
    for (size_t i = 0; i < c->request.count; i++)
        manager_settled(c->host->s.w.manager, &c->request, i, &c->outcomes[i], NULL);
    free(c->outcomes);
    c->outcomes = NULL;
}

void
sky_transport_end(struct transport *c, const struct outcome *why)
{
    struct host *h = c->host;
    struct arriving *a;
    DL_FOREACH (h->sky->arriving, a)
        if (a->from == c)
            a->from = NULL;
    DL_DELETE(h->carriers, c);
    loop_timer_stop(h->sky->loop, &c->timer);
    manager_session_ended(h->s.w.manager, c->session,
                          why != NULL ? why : &outcome_no_trouble);
    loop_release(h->sky->loop, free, c);
}

void
answered(void *context)
{
    struct transport *c = context;
    settle_errand(c);
    loop_timer_start(c->host->sky->loop, &c->timer, 0, c->go_on, c);
}

static void
arrival_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct arriving *a = context;
    struct host *at = a->at;
    struct transport *c = a->from;
    DL_DELETE(at->sky->arriving, a);
    if (e != NULL)
        manager_accept(at->s.w.manager, &e);
    for (size_t i = 0; c != NULL && i < c->request.count; i++)
        if (c->outcomes[i].verdict == VERDICT_DELIVERED &&
            (refusal != NULL || a->reply_is_lost))
            c->outcomes[i] = not_now();
    free(a);
    if (c == NULL)
        return;
    c->is_storing = false;
    loop_timer_start(at->sky->loop, &c->timer, draw(at->sky, 50), answered, c);
}

static struct host *
host_named(struct sky *w, const char *name)
{
    for (unsigned i = 0; i < w->host_count; i++)
        if (strcmp(w->hosts[i].name, name) == 0)
            return &w->hosts[i];
    return NULL;
}

/* The envelope that a server makes of it: smtp/redirect.c. */
static struct envelope *
envelope_at(struct host *at, const struct transport *c)
{
    const struct envelope *from = c->request.envelope;
    struct envelope *e = envelope_new();
    struct set_mark mark;
    e->sender = envelope_text(e, from->sender);
    e->fragment.set_mark = envelope_text(e, from->fragment.set_mark);
    e->fragment.by_peer = true;
    if (!set_mark_read(from->fragment.set_mark, &mark))
        abort();
    if (mark.epoch_s * 1000 <= loop_now_ms(at->sky->loop))
        e->birth_ms = mark.epoch_s * 1000;
    for (size_t i = 0; i < c->request.count; i++)
        if (c->outcomes[i].verdict == VERDICT_DELIVERED &&
            !envelope_add(e, from->recipients[c->request.indexes[i]].address,
                          NOTIFY_DEFAULT, TEXT("")))
            abort();
    return e;
}

static void
store_at(struct host *at, struct transport *c, struct text content)
{
    struct sky *w = at->sky;
    struct outcome refusal;
    struct envelope *e = envelope_at(at, c);
    struct queue_draft *draft =
        e->count == 0 ? NULL : queue_begin(manager_queue(at->s.w.manager), 0, &refusal);
    if (draft == NULL) {
        for (size_t i = 0; i < c->request.count; i++)
            if (c->outcomes[i].verdict == VERDICT_DELIVERED)
                c->outcomes[i] = not_now();
        envelope_free(&e);
        answered(c);
        return;
    }
    struct arriving *a = memory_new(sizeof(*a));
    a->at = at;
    a->from = c;
    a->reply_is_lost = w->loses && trouble(w, 6);
    if (a->reply_is_lost)
        note_odd(w, content);
    DL_APPEND(w->arriving, a);
    c->is_storing = true;
    (void)!queue_write(draft, content);
    queue_name(draft, e);
    queue_commit(&draft, &e, arrival_stored, a);
}

/* False: it cannot be read. */
static bool
say_to_peer(struct transport *c)
{
    struct sky *w = c->host->sky;
    struct host *at = host_named(w, c->peer);
    struct buffer content;
    if (c->request.envelope->fragment.by_peer)
        complain(w, "what came from a peer goes to %s", c->peer);
    if (at == c->host)
        complain(w, "%s is its own peer", c->peer);
    if (!read_errand(c, &content))
        return false;
    for (size_t i = 0; i < c->request.count; i++)
        c->outcomes[i] = at == NULL || at->refuses ? never()
                         : !at->is_up              ? not_now()
                         : trouble(w, 12)          ? never()
                         : trouble(w, 12)          ? not_now()
                                                   : delivered();
    if (at == NULL || at->refuses || !at->is_up)
        answered(c);
    else
        store_at(at, c, buffer_text(&content));
    buffer_free(&content);
    return true;
}

static bool
say_to_hop(struct transport *c)
{
    struct sky *w = c->host->sky;
    struct buffer content;
    if (!read_errand(c, &content))
        return false;
    for (size_t i = 0; i < c->request.count; i++) {
        bool lost = w->loses && trouble(w, 20);
        bool comes = lost || w->short_life || !trouble(w, 6);
        c->outcomes[i] = comes && !lost ? delivered() : not_now();
        if (comes)
            note_arrival(c, buffer_text(&content), i);
        if (lost)
            note_odd(w, buffer_text(&content));
    }
    buffer_free(&content);
    answered(c);
    return true;
}

void
speak(void *context)
{
    struct transport *c = context;
    c->outcomes = memory_array(c->request.count, sizeof(*c->outcomes));
    if (c->peer[0] != '\0' ? say_to_peer(c) : say_to_hop(c))
        return;
    for (size_t i = 0; i < c->request.count; i++)
        c->outcomes[i] = not_now();
    answered(c);
}

static bool
is_away(const struct transport *c)
{
    struct host *at = c->peer[0] == '\0' ? NULL : host_named(c->host->sky, c->peer);
    return c->peer[0] == '\0' ? c->host->hop_is_down : at != NULL && !at->is_up;
}

static void
carrier_go_on(void *context)
{
    struct transport *c = context;
    struct sky *w = c->host->sky;
    if (is_away(c)) {
        struct outcome why = not_there();
        sky_transport_end(c, &why);
        return;
    }
    if (!manager_take(c->host->s.w.manager, c->session, &c->request)) {
        sky_transport_end(c, NULL);
        return;
    }
    c->has_errand = true;
    bool is_slow = trouble(w, 10);
    loop_timer_start(w->loop, &c->timer, draw(w, is_slow ? 3000 * 1000 : 300), speak,
                     c);
}

static void
carrier_open_session(void *context, struct sched_session *session,
                     const struct target *target, const char *domain)
{
    struct host *h = context;
    struct transport *c = memory_new(sizeof(*c));
    (void)domain;
    if (target_peer(target))
        snprintf(c->peer, sizeof(c->peer), "%s", target_peer(target));
    c->host = h;
    c->go_on = carrier_go_on;
    c->session = session;
    DL_APPEND(h->carriers, c);
    loop_timer_start(h->sky->loop, &c->timer, draw(h->sky, 100), carrier_go_on, c);
}

/* The connection breaks: what was said of it is not known. */
static void
carrier_break(struct transport *c)
{
    struct buffer content;
    if (c->has_errand) {
        if (c->outcomes != NULL && read_errand(c, &content)) {
            note_odd(c->host->sky, buffer_text(&content));
            buffer_free(&content);
        }
        free(c->outcomes);
        c->outcomes = memory_array(c->request.count, sizeof(*c->outcomes));
        for (size_t i = 0; i < c->request.count; i++)
            c->outcomes[i] = not_now();
        settle_errand(c);
    }
    sky_transport_end(c, NULL);
}

/* --- Hosts ------------------------------------------------------------------------ */

static void
weather_plug(struct world *world)
{
    struct host *h = (struct host *)world;
    manager_set_channel(world->manager, TARGET_SMTP, carrier_open_session, h);
    manager_set_channel(world->manager, TARGET_MX, carrier_open_session, h);
    h->s.settings.peers = route_peers(world->routes);
    h->s.channel = channel_new(world->loop, world->events, world->manager, &h->s.settings);
}

void
sky_host_start(struct host *h)
{
    h->is_up = true;
    h->registry.is_owing = false;
    manager_world_start(&h->s.w);
}

void
sky_host_stop(struct host *h)
{
    struct transport *c, *next;
    struct arriving *a;
    DL_FOREACH_SAFE (h->carriers, c, next)
        carrier_break(c);
    channel_free(&h->s.channel);
    DL_FOREACH (h->sky->arriving, a)
        if (a->at == h)
            queue_commit_ignore(manager_queue(h->s.w.manager), a);
    manager_free(&h->s.w.manager);
    loop_timer_stop(h->sky->loop, &h->registry.recover);
    if (h->registry.questions != NULL)
        complain(h->sky, "%s: a claim is left behind", h->name);
    h->is_up = false;
}

void
host_begin(struct sky *w, unsigned which)
{
    static const char routes[] = "z smtp://h\n* smtp://h?defragment=yes&notices=2h";
    struct host *h = &w->hosts[which];
    *h = (struct host){.sky = w, .name = names[which], .which = which};
    h->registry.host = h;
    h->s.settings = (struct channel_settings){
        .hostname = "h.test",
        .registry = &h->registry,
        .on_timeout = w->on_timeout,
        .limits = {.parts = 1000,
                   .set_bytes = 100 * 1000 * 1000,
                   .sets = 1000,
                   .sender_sets = 100,
                   .bytes = 100 * 1000 * 1000}
    };
    if (w->is_narrow) {
        struct set_limits *l = &h->s.settings.limits;
        l->sets = 1 + draw(w, 5);
        l->sender_sets = 1 + draw(w, 5);
        l->recipients = 1 + draw(w, 8);
        l->bytes = 100 + draw(w, 1000);
    }
    struct world *world = &h->s.w;
    snprintf(world->folder, sizeof(world->folder), "/host-%u", which);
    world->loop = w->loop;
    world->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    world->events = event_hub_new(world->log);
    buffer_init(&world->lines, 16 * 1024 * 1024);
    log_capture(world->log, &world->lines);
    buffer_init(&world->seen, 1000);
    world->plug = weather_plug;
    world->routes_text =
        (struct route_settings){.routes = text_from(routes),
                                .local_domains = TEXT("h.test"),
                                .defrag_host = text_from(h->name),
                                .defrag_peers = buffer_text(&w->peers)};
    world->settings.queue.journal_size = one_in(w, 2) ? 1024 * 1024 : 0;
    world->settings.queue.journal_segment = 65536;
    world->settings.queue.journal_message_max = one_in(w, 4) ? 1 : 10000;
    world->settings.sched.active_limit = one_in(w, 6) ? 3 : 1000;
    if (w->short_life)
        h->s.w.routes_text.routes =
            TEXT("z smtp://h\n* smtp://h?defragment=yes&notices=2h&lifetime=30m");
    world->routes = world_routes(world);
    sky_host_start(h);
}

void
host_end(struct host *h)
{
    if (h->is_up)
        sky_host_stop(h);
    route_free(&h->s.w.routes);
    event_hub_free(&h->s.w.events);
    log_free(&h->s.w.log);
    buffer_free(&h->s.w.lines);
    buffer_free(&h->s.w.seen);
}

void
host_reload(struct host *h)
{
    struct world *world = &h->s.w;
    struct route_table *old = world->routes;
    world->routes = world_routes(world);
    h->s.settings.peers = route_peers(world->routes);
    if (h->is_up) {
        manager_reload(world->manager, &world->settings, world->routes);
        channel_reload(h->s.channel, &h->s.settings);
    }
    route_free(&old);
}
