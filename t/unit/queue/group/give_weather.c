/* link: t/sim/loop.c */
/* Three hosts give their queues to each other in a bad network, while operators give
 * commands, drains are cancelled and hosts stop and come back. No recipient is forgotten,
 * no failure is unreported, no hold vanishes; and where no answer is lost all of it happens
 * once.
 *
 * give_weather [rounds [seed]] */
#include "t/support/give_kit.h"

#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/support/manager_world.h"
#include "t/support/must.h"

#include <inttypes.h>

enum {
    HOSTS = 3,
    MAILS = 24,
    ACTS = 120,
    IDS_MAX = 400,
    STEP_MS = 20,
    ROUNDS = TAP_ADDRESS_SANITIZER ? 10 : 40
};

#define ROUTES "* smtp://smtp.b.test"

static const char *const names[HOSTS] = {"relay1", "relay2", "relay3"};

struct mail {
    bool good, bad, later;
    bool held, returned, removed; /* by an operator */
    unsigned delivered[3], reports;
};

struct run {
    struct world hosts[HOSTS];
    struct kit_wire wires[HOSTS]; /* of each, to the others */
    struct give *gives[HOSTS];
    bool is_giving[HOSTS]; /* else it rests */
    struct mail mails[MAILS];
    unsigned sent, wrong;
    bool gentle; /* no answer is lost */
    uint64_t seed, chance;
};

static unsigned
pick(struct run *r, unsigned below)
{
    r->chance =
        r->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(r->chance >> 33) % below;
}

static void
complain(struct run *r, const char *what, unsigned number)
{
    if (r->wrong++ < 5)
        printf("# seed %" PRIu64 "%s: %s (%u)\n", r->seed, r->gentle ? ", gentle" : "",
               what, number);
}

/* --- Hosts -------------------------------------------------------------------------- */

/* The host as the others see it. */
static struct kit_host *
seen_by(struct run *r, unsigned host, unsigned by)
{
    for (size_t i = 0; i < r->wires[by].host_count; i++)
        if (r->wires[by].hosts[i].name == names[host])
            return &r->wires[by].hosts[i];
    return NULL;
}

static void
say_state(struct run *r, unsigned host, const char *state)
{
    for (unsigned by = 0; by < HOSTS; by++)
        if (by != host)
            seen_by(r, host, by)->state = state;
}

static void
plug_in(struct run *r, unsigned host)
{
    struct world *w = &r->hosts[host];
    struct kit_host *first = NULL;
    /* One memory of what was taken, for all. */
    for (unsigned by = 0; by < HOSTS; by++) {
        if (by == host)
            continue;
        struct kit_host *h = seen_by(r, host, by);
        if (first == NULL) {
            kit_host_start(h, w->loop, w->events, w->manager);
            first = h;
        } else {
            h->loop = w->loop;
            h->manager = w->manager;
            h->take = first->take;
            h->service = first->service;
        }
    }
}

static void
plug_out(struct run *r, unsigned host)
{
    struct kit_host *first = NULL;
    for (unsigned by = 0; by < HOSTS; by++) {
        if (by == host)
            continue;
        struct kit_host *h = seen_by(r, host, by);
        if (first == NULL) {
            first = h;
        } else {
            h->take = NULL;
            h->loop = NULL;
        }
    }
    kit_host_stop(first);
}

static void
pass(struct run *r, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += STEP_MS) {
        for (unsigned i = 0; i < HOSTS; i++)
            while (kit_wire_carry(&r->wires[i]))
                ;
        for (unsigned i = 0; i < HOSTS; i++)
            sim_loop_advance(r->hosts[i].loop, STEP_MS);
    }
}

static void
on_drained(void *context)
{
    (void)context;
}

static void
on_over(void *context)
{
    (void)context;
}

static void
give_begin(struct run *r, unsigned host)
{
    struct world *w = &r->hosts[host];
    if (r->is_giving[host])
        return;
    r->is_giving[host] = true;
    say_state(r, host, "giving");
    manager_drain(w->manager, 0, on_drained, NULL);
    if (r->gives[host] != NULL) {
        give_again(r->gives[host], TEXT(""));
        return;
    }
    r->gives[host] = give_new(&(struct give_setup){.loop = w->loop,
                                                   .events = w->events,
                                                   .manager = w->manager,
                                                   .calls = &r->wires[host].calls,
                                                   .host = names[host],
                                                   .siblings = kit_wire_siblings,
                                                   .context = &r->wires[host]},
                              TEXT(""), on_over, r);
}

static void
give_cancel(struct run *r, unsigned host)
{
    if (!r->is_giving[host])
        return;
    r->is_giving[host] = false;
    give_rest(r->gives[host]);
    manager_cancel_drain(r->hosts[host].manager);
    say_state(r, host, "running");
}

static void
restart(struct run *r, unsigned host)
{
    for (unsigned i = 0; r->gentle && i < HOSTS; i++)
        if (r->is_giving[i] ||
            (r->gives[i] != NULL && give_progress(r->gives[i]).left > 0))
            return;
    give_free(&r->gives[host]);
    r->is_giving[host] = false;
    kit_wire_end(&r->wires[host]); /* its connections break */
    plug_out(r, host);
    for (unsigned i = 0; i < HOSTS; i++) /* and those to it */
        if (i != host)
            while (kit_wire_carry(&r->wires[i]))
                ;
    world_restart(&r->hosts[host]);
    plug_in(r, host);
    say_state(r, host, "running");
}

/* --- Events ------------------------------------------------------------------------- */

static void
send_mail(struct run *r, unsigned host)
{
    struct world *w = &r->hosts[host];
    char sender[40], to[120];
    if (r->sent == MAILS || r->is_giving[host])
        return;
    unsigned n = r->sent;
    struct mail *m = &r->mails[n];
    m->good = pick(r, 2) == 0;
    m->bad = pick(r, 2) == 0;
    m->later = pick(r, 4) != 0 || !(m->good || m->bad);
    snprintf(sender, sizeof(sender), "goods%u@a.test", n);
    snprintf(to, sizeof(to), "%s%s%s", m->good ? "good@x.test " : "",
             m->bad ? "bad@x.test " : "", m->later ? "later@x.test" : "");
    world_send(w, sender, to);
    for (int i = 0; i < 3 && !w->accepted; i++)
        loop_turn(w->loop, 0);
    if (w->accepted)
        r->sent++;
    else
        *m = (struct mail){0};
}

struct ids {
    struct id ids[IDS_MAX];
    size_t count;
};

static bool
note_id(void *context, struct id id, enum queue_place place)
{
    struct ids *ids = context;
    if (place != QUEUE_CORRUPT && ids->count < IDS_MAX)
        ids->ids[ids->count++] = id;
    return true;
}

/* -1: a notification. */
static int
number_of(struct world *w, struct id id)
{
    const struct envelope *active = manager_active(w->manager, id);
    struct envelope *e =
        active == NULL ? queue_load_envelope(manager_queue(w->manager), id) : NULL;
    const struct envelope *it = active != NULL ? active : e;
    int number = -1;
    if (it != NULL && text_starts(it->sender, TEXT("goods")))
        number = atoi(it->sender.at + 5);
    envelope_free(&e);
    return number;
}

static void
operate(struct run *r, unsigned host)
{
    static const enum manager_verb verbs[] = {
        MANAGER_HOLD,  MANAGER_HOLD,   MANAGER_RELEASE, MANAGER_RETRY,
        MANAGER_RETRY, MANAGER_BOUNCE, MANAGER_REMOVE};
    struct world *w = &r->hosts[host];
    struct ids ids = {.count = 0};
    char why[MANAGER_WHY_MAX];
    must(queue_each(manager_queue(w->manager), note_id, &ids) == 0);
    if (ids.count == 0)
        return;
    struct id id = ids.ids[pick(r, (unsigned)ids.count)];
    int number = number_of(w, id);
    enum manager_verb verb = verbs[pick(r, sizeof(verbs) / sizeof(verbs[0]))];
    if (number < 0) /* what tells of a failure stays */
        return;
    enum manager_result result = manager_operate(w->manager, verb, id, why);
    if (result != MANAGER_DONE && result != MANAGER_LATER)
        return;
    struct mail *m = &r->mails[number];
    m->held = verb == MANAGER_HOLD || (m->held && verb != MANAGER_RELEASE);
    m->returned = m->returned || verb == MANAGER_BOUNCE;
    m->removed = m->removed || verb == MANAGER_REMOVE;
}

static void
change_weather(struct run *r)
{
    static const enum kit_weather rough[] = {KIT_FAIR,     KIT_FAIR,  KIT_SILENT,
                                             KIT_CUT,      KIT_CUT,   KIT_CLOSED,
                                             KIT_REFUSING, KIT_OLDER, KIT_STUCK},
                                  gentle[] = {KIT_FAIR,     KIT_FAIR,  KIT_CLOSED,
                                              KIT_REFUSING, KIT_OLDER, KIT_STUCK};
    struct kit_wire *wire = &r->wires[pick(r, HOSTS)];
    struct kit_host *h = &wire->hosts[pick(r, (unsigned)wire->host_count)];
    h->weather = r->gentle ? gentle[pick(r, sizeof(gentle) / sizeof(gentle[0]))]
                           : rough[pick(r, sizeof(rough) / sizeof(rough[0]))];
}

static void
act(struct run *r)
{
    unsigned host = pick(r, HOSTS);
    switch (pick(r, 12)) {
    case 0:
    case 1:
    case 2:
        send_mail(r, host);
        break;
    case 3:
    case 4:
        operate(r, host);
        break;
    case 5:
    case 6:
        give_begin(r, host);
        break;
    case 7:
        give_cancel(r, host);
        break;
    case 8:
    case 9:
        change_weather(r);
        break;
    case 10:
        if (pick(r, 3) == 0)
            restart(r, host);
        break;
    case 11:
        manager_retry_all(r->hosts[host].manager);
        break;
    }
    static const int64_t times[] = {0, 0, 20, 40, 100, 500, 2000, 10000, 70000};
    pass(r, times[pick(r, pick(r, 8) == 0 ? 9 : 7)]);
}

/* --- The judge ---------------------------------------------------------------------- */

/* Counts the mail that the hosts have seen since the last time. */
static void
count_seen(struct run *r)
{
    static const char *const kinds[] = {"good@x", "bad@x", "later@x"};
    for (unsigned i = 0; i < HOSTS; i++) {
        struct text rest = buffer_text(&r->hosts[i].seen), word;
        while (text_word(&rest, " ", &word)) {
            bool is_report = text_starts(word, TEXT(">goods"));
            if (!is_report && !text_starts(word, TEXT("goods")))
                continue;
            unsigned n = (unsigned)atoi(word.at + (is_report ? 6 : 5));
            must(n < MAILS);
            r->mails[n].reports += is_report;
            for (unsigned k = 0; k < 3 && !is_report; k++)
                r->mails[n].delivered[k] += text_starts(
                    text_after(word, text_find(word, '>') + 1), text_from(kinds[k]));
        }
        buffer_clear(&r->hosts[i].seen);
    }
}

static void
deliver_all(struct run *r)
{
    for (unsigned k = 0; k < 3; k++)
        for (unsigned i = 0; i < HOSTS; i++) {
            manager_retry_all(r->hosts[i].manager);
            sim_loop_advance(r->hosts[i].loop, 1000);
        }
    for (unsigned i = 0; i < HOSTS; i++)
        sim_loop_advance(r->hosts[i].loop, 4 * 3600 * 1000);
}

static void
release_all(struct run *r)
{
    char why[MANAGER_WHY_MAX];
    for (unsigned i = 0; i < HOSTS; i++) {
        struct ids ids = {.count = 0};
        must(queue_each(manager_queue(r->hosts[i].manager), note_id, &ids) == 0);
        for (size_t k = 0; k < ids.count; k++)
            (void)manager_operate(r->hosts[i].manager, MANAGER_RELEASE, ids.ids[k],
                                  why);
    }
}

static void
judge_mail(struct run *r, unsigned n)
{
    const struct mail *m = &r->mails[n];
    bool ended = m->removed || m->returned;
    if (m->removed)
        return;
    if (m->good && m->delivered[0] == 0 && !ended)
        complain(r, "a message is lost", n);
    if (m->later && m->delivered[2] == 0 && !m->returned)
        complain(r, "a deferred message is lost", n);
    if (m->bad && m->reports == 0 && m->delivered[1] == 0)
        complain(r, "a failure is not reported", n);
    /* A later command may have taken its place. */
    if (m->returned &&
        m->reports + m->delivered[0] + m->delivered[1] + m->delivered[2] == 0)
        complain(r, "a return is not reported", n);
    if (!r->gentle)
        return;
    if (m->delivered[0] > 1 || m->delivered[2] > 1)
        complain(r, "twice", n);
    if (m->reports > 1 + (m->returned ? 1U : 0U))
        complain(r, "reported twice", n);
}

static void
judge(struct run *r)
{
    for (unsigned i = 0; i < HOSTS; i++)
        for (size_t k = 0; k < r->wires[i].host_count; k++)
            r->wires[i].hosts[k].weather = KIT_FAIR;
    pass(r, 2000);
    for (unsigned i = 0; i < HOSTS; i++)
        give_cancel(r, i);
    pass(r, 3000);
    for (unsigned i = 0; i < HOSTS; i++)
        give_cancel(r, i);
    pass(r, 3000);
    count_seen(r);
    for (unsigned n = 0; n < MAILS; n++) /* attempts, up to now */
        r->mails[n].delivered[1] = r->mails[n].delivered[2] = 0;
    for (unsigned i = 0; i < HOSTS; i++)
        r->hosts[i].all_good = true;
    deliver_all(r);
    count_seen(r);
    for (unsigned n = 0; n < r->sent && r->gentle; n++)
        if (r->mails[n].held && r->mails[n].delivered[2] > 0)
            complain(r, "its hold has vanished", n);
    release_all(r);
    deliver_all(r);
    count_seen(r);
    for (unsigned n = 0; n < r->sent; n++)
        judge_mail(r, n);
    for (unsigned i = 0; i < HOSTS; i++)
        if (!world_is_empty(&r->hosts[i]) && r->wrong++ < 5)
            printf("# seed %" PRIu64 ": something stays at %s\n", r->seed, names[i]);
}

static unsigned
weather(uint64_t seed)
{
    struct run *r = memory_new(sizeof(*r));
    r->seed = seed;
    r->chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    r->gentle = seed % 2 == 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        struct world *w = &r->hosts[i];
        manager_world_begin(w, ROUTES);
        w->settings.queue.journal_size = pick(r, 4) == 0 ? 0 : 2 * 1024 * 1024;
        w->settings.queue.journal_message_max = 64 * 1024;
        world_restart(w);
        for (unsigned k = 0; k <= i * 5; k++)
            (void)loop_random(w->loop); /* other names */
        kit_wire_begin(&r->wires[i], names[i], w->loop);
        for (unsigned k = 0; k < HOSTS; k++)
            if (k != i)
                (void)kit_wire_add(&r->wires[i], names[k]);
    }
    for (unsigned i = 0; i < HOSTS; i++)
        plug_in(r, i);
    for (unsigned i = 0; i < ACTS; i++)
        act(r);
    judge(r);
    for (unsigned i = 0; i < HOSTS; i++) {
        give_free(&r->gives[i]);
        kit_wire_end(&r->wires[i]);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        plug_out(r, i);
        manager_world_end(&r->hosts[i]);
    }
    unsigned wrong = r->wrong;
    free(r);
    return wrong;
}

int
main(int count, char **words)
{
    unsigned rounds = count > 1 ? (unsigned)atoi(words[1]) : ROUNDS, wrong = 0;
    uint64_t seed = count > 2 ? (uint64_t)atoll(words[2]) : 1;
    for (unsigned i = 0; i < rounds && wrong == 0; i++)
        wrong += weather(seed + i);
    is_number(wrong, 0, "nothing is lost, nor comes twice without a reason");
    return done();
}
