/* A delivery between a fake manager, two hosts and a scripted DNS, for its tests. */
#include "t/sim/delivery_world.h"

#include "base/log/log_internal.h"
#include "t/support/port.h"

/* --- Stand-ins for the manager and the queue
 * -------------------------------------------- */

struct queue spool;

struct session_limits told_limits; /* of the host that greeted last */

/* --- The bed -------------------------------------------------------------------------
 */

void
add_mail(struct bed *b, const char *rcpts)
{
    struct manager *m = &b->manager;
    struct text words = text_from(rcpts), word;
    struct envelope *e = envelope_new();
    e->id = (struct id){1, m->count + 1};
    e->sender = TEXT("s@me.test");
    e->prefix = TEXT("Received: x\r\n");
    e->content_size = (int64_t)spool.length;
    e->content_crc = crc_add(0, spool.content, spool.length);
    while (text_word(&words, " ", &word)) {
        m->indexes[m->count][e->count] = e->count;
        host_must(envelope_add(e, word, 0, TEXT("")));
    }
    m->envelopes[m->count++] = e;
}

const char *bed_anchors;

void
bed_start(struct bed *b)
{
    char error[200];
    memset(b, 0, sizeof(*b));
    clock_stop();
    b->loop = loop_new();
    b->ours = net_new(b->loop);
    b->theirs = net_new(b->loop);
    b->dns = dns_new(b->loop, TEXT(""), error, sizeof(error));
    b->log = log_new(b->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    b->events = event_hub_new(b->log);
    buffer_init(&b->lines, HOST_BYTES_MAX);
    log_capture(b->log, &b->lines);
    sim_dns_delay(b->dns, 1);
    buffer_init(&b->manager.verdicts, HOST_BYTES_MAX);
    buffer_init(&b->manager.health, 65536);
    /* One that the kernel gave for the first address may be in use at the second. */
    static unsigned free;
    free = free > 0 ? free : free_port();
    uint16_t port = fake_host_start(&b->a, b->theirs, "127.0.0.2", (uint16_t)free);
    fake_host_start(&b->b, b->theirs, "127.0.0.3", port);
    sim_dns_mx(b->dns, "x.test", 10, "a.test");
    sim_dns_mx(b->dns, "x.test", 20, "b.test");
    sim_dns_address(b->dns, "a.test", "127.0.0.2");
    sim_dns_address(b->dns, "b.test", "127.0.0.3");
    b->settings = (struct delivery_settings){.hostname = "me.test",
                                             .smtp_port = port,
                                             .smtp_bind = TEXT("127.0.0.1 ::1"),
                                             .connect_timeout_ms = 5000,
                                             .mx_address_limit = 5,
                                             .reuse_idle_ms = 1};
    b->tls = tls_new(error, sizeof(error));
    host_must(b->tls != NULL);
    b->settings.tls = tls_client_new(b->tls, bed_anchors, error, sizeof(error));
    host_must(b->settings.tls != NULL);
    b->delivery =
        delivery_new(b->loop, b->ours, b->dns, b->events, &b->manager, &b->settings);
    b->settings.tls = NULL;
    b->target.kind = TARGET_MX;
    b->target.tls = TARGET_TLS_MAY;
    b->target.timeout_scale = 1;
    spool.fail_at = -1;
    spool.fail_to_open = false;
    spool.length =
        (size_t)snprintf(spool.content, CONTENT_MAX, "Subject: x\r\n\r\n.dot\r\nend");
}

void
bed_stop(struct bed *b)
{
    delivery_free(&b->delivery);
    is_number(spool.open, 0, "no content is left open");
    for (size_t i = 0; i < b->manager.count; i++)
        envelope_free(&b->manager.envelopes[i]);
    buffer_free(&b->manager.verdicts);
    buffer_free(&b->manager.health);
    fake_host_stop(&b->a);
    fake_host_stop(&b->b);
    dns_free(&b->dns);
    net_free(&b->ours);
    net_free(&b->theirs);
    event_hub_free(&b->events);
    log_free(&b->log);
    tls_free(&b->tls);
    buffer_free(&b->lines);
    loop_free(&b->loop);
}

struct sched_session *
place(struct bed *b)
{
    return (struct sched_session *)(void *)&b->manager.places[b->manager.opened++];
}

void
turns(struct bed *b, int64_t ms)
{
    clock_turns(b->loop, ms);
}

void
run(struct bed *b, const char *domain)
{
    unsigned before = b->manager.ended;
    delivery_open(b->delivery, place(b), &b->target, domain);
    host_must(b->manager.ended == before); /* never before it returns */
    for (int i = 0; i < 60000 && b->manager.ended == before; i++)
        clock_turn(b->loop);
    turns(b, 20);
    is_number(b->manager.ended, before + 1, "the session has ended, once");
}

void
is_settled(struct bed *b, const char *want, const char *name)
{
    is_text(buffer_text(&b->manager.verdicts), text_from(want), name);
}

void
is_trouble(struct bed *b, enum verdict verdict, const char *enhanced, const char *text)
{
    ok_named(b->manager.has_trouble, "with trouble");
    is_number(b->manager.trouble.verdict, verdict, "its verdict");
    is_string(b->manager.trouble.enhanced, enhanced, "its enhanced code");
    ok_named(strstr(b->manager.trouble.text, text) != NULL, text);
}

bool
has(const struct buffer *b, const char *what)
{
    return b->length > 0 && memmem(b->at, b->length, what, strlen(what)) != NULL;
}

struct id
queue_enter(struct queue *queue, struct id id)
{
    struct id before = queue->at_work;
    queue->at_work = id;
    return before;
}

void
queue_leave(struct queue *queue, struct id before)
{
    queue->at_work = before;
}

struct queue *
manager_queue(struct manager *manager)
{
    (void)manager;
    return &spool;
}

int
queue_content_open(struct queue *queue, const struct envelope *e)
{
    (void)e;
    if (queue->fail_to_open)
        return -5;
    queue->open++;
    return 7;
}

int64_t
queue_content_read(struct queue *queue, int content, int64_t offset, char *to,
                   size_t size)
{
    host_must(content == 7 && queue->open > 0 && queue->at_work.time_ms != 0);
    if (queue->fail_at >= 0 && offset >= queue->fail_at)
        return -5;
    struct text rest =
        text_after(text_of(queue->content, queue->length), (size_t)offset);
    rest = text_before(rest, size);
    if (rest.length > 0)
        memcpy(to, rest.at, rest.length);
    return (int64_t)rest.length;
}

void
queue_content_close(struct queue *queue, int content)
{
    host_must(content == 7 && queue->open-- > 0);
}

struct id
manager_first(const struct sched_session *session)
{
    (void)session;
    return (struct id){0};
}

struct id
manager_enter(struct manager *manager, const struct sched_session *session)
{
    (void)manager;
    (void)session;
    return (struct id){0};
}

void
manager_leave(struct manager *manager, struct id before)
{
    (void)manager;
    (void)before;
}

bool
manager_has_work(const struct manager *m, const struct sched_session *session)
{
    (void)session;
    return m->taken + m->hidden < m->count;
}

bool
manager_take(struct manager *m, struct sched_session *session,
             struct delivery_request *request)
{
    if (!manager_has_work(m, session))
        return false;
    host_must(m->open[1] == 0); /* two requests at a time */
    *request =
        (struct delivery_request){session, m->envelopes[m->taken], m->indexes[m->taken],
                                  m->envelopes[m->taken]->count};
    size_t at = m->open[0] > 0;
    host_must(at == 0 || m->holder == session);
    m->open[at] = request->count;
    m->under_way[at] = request->indexes;
    m->most = at + 1 > m->most ? at + 1 : m->most;
    m->holder = session;
    m->taken++;
    return true;
}

void
manager_settled(struct manager *m, const struct delivery_request *request, size_t which,
                const struct outcome *outcome, const struct timing *timing)
{
    static const char *const blames[] = {"none", "message", "site", "address"};
    struct recipient *r = &request->envelope->recipients[request->indexes[which]];
    host_must(!r->done && m->open[0] > 0 && request->indexes == m->under_way[0]);
    r->done = true;
    host_must(spool.at_work.time_ms == 0 ||
              id_compare(spool.at_work, request->envelope->id) == 0);
    if (--m->open[0] == 0) {
        m->open[0] = m->open[1];
        m->under_way[0] = m->under_way[1];
        m->open[1] = 0;
    }
    text_copy(m->tls, sizeof(m->tls),
              text_from(timing != NULL && timing->tls != NULL ? timing->tls : ""));
    m->timed = timing != NULL && timing->connect_ms >= 0 && timing->transmit_ms >= 0;
    host_must(buffer_format(&m->verdicts, "%.*s %s %s %s\n", TEXT_ARGS(r->address),
                            outcome_word(outcome->verdict), outcome->enhanced,
                            blames[outcome->blame]));
}

/* The scheduler is the manager. */
struct sched *
manager_sched(struct manager *m)
{
    return (struct sched *)m;
}

bool
manager_session_found(struct manager *m, struct sched_session *session, struct text key)
{
    (void)session;
    text_copy(m->found, sizeof(m->found), key);
    return !m->no_space;
}

void
sched_session_demand(struct sched *s, struct sched_session *session,
                       uint64_t demand, int64_t valid_ms)
{
    struct manager *m = (struct manager *)s;
    (void)session;
    m->demand = demand;
    m->valid_ms = valid_ms;
}

void
manager_set_watch(struct manager *m, manager_watch *watch, void *context)
{
    m->watch = watch;
    m->watch_context = context;
}

const char *
sched_session_site(const struct sched_session *session)
{
    (void)session;
    return "the site";
}

/* The site of all sessions but those of another. */
bool
sched_session_is_at(const struct sched_session *session,
                      const struct sched_site *site)
{
    return session != NULL && site->sessions == 0;
}

void
sched_host_good(struct sched *s, struct text address, int64_t service_ms)
{
    struct manager *m = (struct manager *)s;
    host_must(service_ms >= 0);
    host_must(buffer_format(&m->health, "good %.*s\n", TEXT_ARGS(address)));
}

void
sched_host_bad(struct sched *s, struct text address)
{
    struct manager *m = (struct manager *)s;
    host_must(buffer_format(&m->health, "bad %.*s\n", TEXT_ARGS(address)));
}

void
sched_hosts_order(struct sched *s, const struct text *addresses, const int *groups,
                    size_t count, size_t *order)
{
    struct manager *m = (struct manager *)s;
    (void)addresses;
    for (size_t i = 0; i < count; i++) {
        host_must(i == 0 || groups[i] >= groups[i - 1]);
        order[i] = m->backwards ? count - 1 - i : i;
    }
}

void
sched_session_limit(struct sched_session *session,
                      const struct session_limits *limits)
{
    host_must(session != NULL);
    told_limits = *limits;
}

void
sched_session_takes(struct sched *s, struct sched_session *session,
                      unsigned recipients)
{
    struct manager *m = (struct manager *)s;
    host_must(session != NULL);
    m->takes = recipients;
}

void
sched_ask_again(struct sched *s)
{
    struct manager *m = (struct manager *)s;
    m->asked_again++;
}

bool
sched_session_is_spent(const struct sched_session *session)
{
    (void)session;
    return false;
}

void
manager_session_ended(struct manager *m, struct sched_session *session,
                      const struct outcome *why)
{
    host_must(m->open[0] == 0 || m->holder != session); /* the contract */
    host_must(why != NULL && why->enhanced[0] != '\0' && why->text[0] != '\0');
    m->ended++;
    m->has_trouble = why->verdict != VERDICT_DELIVERED && why->blame != BLAME_MESSAGE;
    m->trouble = *why;
}
