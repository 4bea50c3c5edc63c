/* Hosts that share sets of fragments, in one process and one virtual time: what is
 * known of them and of what they were sent, and their registry, which is not always to
 * be relied on. Chance decides what goes wrong. The hosts' doings: t/support/sky_hosts.h. */
#ifndef T_SKY_H
#define T_SKY_H

#include "defrag/channel_internal.h"
#include "sched/limits/retry.h"
#include "t/support/channel_world.h"
#include "t/sim/sim_disk.h"

enum {
    HOSTS_MAX = 4,
    SETS_MAX = 12,
    PARTS_MAX = 5,
    PEOPLE = 3,   /* recipients whose parts are joined, and one whose are not */
    SENT_MAX = 2, /* how often a part is sent */
    ANSWER_MS = 250
};

static const char *const people[PEOPLE] = {"b@y", "c@y", "d@z"};
static const char *const names[HOSTS_MAX] = {"a.test", "b.test", "c.test", "d.test"};

/* --- What happens ----------------------------------------------------------------- */

struct host;
struct sky;

/* One that is asked for an answer. */
struct registry {
    struct host *host;
    struct question *questions;
    bool is_down, is_owing;
    struct loop_timer recover;
};

struct question {
    struct registry *registry;
    struct registry_claim *claim;
    enum registry_answer answer;
    char name[REGISTRY_HOST_MAX + 1];
    struct loop_timer timer;
    struct question *prev, *next;
};

struct owned_set {
    UT_hash_handle hh;
    unsigned char key[REGISTRY_KEY_SIZE];
    char name[REGISTRY_HOST_MAX + 1];
    int64_t until_ms;
};

/* A session to a next hop, or to another host. */
struct transport {
    struct transport *prev, *next;
    struct host *host;
    struct sched_session *session;
    struct delivery_request request;
    bool has_errand;
    char peer[32];
    void (*go_on)(void *context);
    struct loop_timer timer;
    struct outcome *outcomes; /* of the request, once the other host has answered */
    bool is_storing;          /* it has not said yet that it has it */
};

/* What a host is about to answer to another. */
struct arriving {
    struct host *at;
    struct transport *from; /* NULL: it is gone */
    bool reply_is_lost;
    struct arriving *prev, *next;
};

struct host {
    struct stage s; /* first: plugs get it */
    struct sky *sky;
    const char *name;
    unsigned which;
    struct registry registry;
    struct transport *carriers;
    bool is_up, refuses, answers_late, hop_is_down;
    int64_t starts_ms;
};

struct fate_of_part {
    unsigned sent;            /* so often */
    unsigned to[SENT_MAX];    /* bits of people */
    unsigned arrived[PEOPLE]; /* as it was */
    unsigned returned[PEOPLE];
    bool is_odd[PEOPLE]; /* a reply was lost, or an operator meddled */
    struct id ids[SENT_MAX];
    unsigned at[SENT_MAX];
};

struct fate_of_set {
    unsigned parts;
    bool late_total;
    bool is_odd;
    unsigned lines; /* that each part has besides: more than one turn looks at */
    struct fate_of_part part[PARTS_MAX];
    unsigned wholes[PEOPLE];
};

struct sky {
    uint64_t random, seed;
    struct loop *loop;
    struct host hosts[HOSTS_MAX];
    unsigned host_count, set_count;
    struct fate_of_set sets[SETS_MAX];
    struct owned_set *owned;
    struct arriving *arriving;
    struct buffer peers; /* defrag_peers */
    bool is_calm;        /* nothing goes wrong: all is joined */
    bool is_good;        /* from now on */
    bool lies;           /* registries do */
    bool loses;          /* replies get lost */
    enum channel_timeout on_timeout;
    bool short_life, is_narrow;
    unsigned wrong;
};

static inline unsigned
draw(struct sky *w, unsigned below)
{
    return (unsigned)(retry_random(&w->random) % below);
}

static inline bool
one_in(struct sky *w, unsigned n)
{
    return draw(w, n) == 0;
}

static inline bool
trouble(struct sky *w, unsigned n)
{
    return !w->is_calm && !w->is_good && one_in(w, n);
}

static inline void __attribute__((format(printf, 2, 3)))
complain(struct sky *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (w->wrong++ < 5) {
        printf("# seed %" PRIu64 ": ", w->seed);
        vprintf(format, list);
        printf("\n");
    }
    va_end(list);
}

/* --- The registry ----------------------------------------------------------------- */

static inline struct owned_set *
owned_by(struct sky *w, const unsigned char key[REGISTRY_KEY_SIZE])
{
    struct owned_set *o = NULL;
    HASH_FIND(hh, w->owned, key, REGISTRY_KEY_SIZE, o);
    if (o != NULL && o->until_ms <= loop_monotonic_ms(w->loop)) {
        HASH_DEL(w->owned, o);
        free(o);
        o = NULL;
    }
    return o;
}

static inline void
own(struct sky *w, const struct registry_claim *claim, const char *name)
{
    struct owned_set *o = memory_new(sizeof *o);
    memcpy(o->key, claim->key, sizeof o->key);
    snprintf(o->name, sizeof o->name, "%s", name);
    o->until_ms = loop_monotonic_ms(w->loop) + claim->ttl_ms;
    HASH_ADD(hh, w->owned, key, sizeof o->key, o);
}

static inline void
question_free(struct question *q)
{
    struct registry *r = q->registry;
    loop_timer_stop(r->host->sky->loop, &q->timer);
    DL_DELETE(r->questions, q);
    free(q);
}

static inline void
recovered(void *context)
{
    struct registry *r = context;
    if (r->is_down || !r->is_owing || !r->host->is_up)
        return;
    r->is_owing = false;
    channel_recover(r->host->s.channel);
}

static inline void
tell(void *context)
{
    struct question *q = context;
    struct registry *r = q->registry;
    struct registry_claim *claim = q->claim;
    enum registry_answer answer = q->answer;
    char name[REGISTRY_HOST_MAX + 1];
    memcpy(name, q->name, sizeof name);
    question_free(q);
    claim->state = 0;
    if (answer == REGISTRY_UNAVAILABLE)
        r->is_owing = true;
    if (r->is_owing && !r->is_down)
        loop_timer_start(r->host->sky->loop, &r->recover, 5000, recovered, r);
    claim->done(claim->context, answer, name);
}

/* What it would say to an honest host. */
static inline void
decide(struct registry *r, struct question *q)
{
    static const char *const odd[] = {
        "z.test",
        "A.TEST",
        "-",
        "a_b",
        "....",
        "b.test",
        "c.test",
        "d.test",
        "a123456789012345678901234567890123456789012345678901234567890123456789"
        "012345678901234567890123456789012345678901234567890123456789012345678"
        "90123456789012345678901234567890123456789012345678901234567890"};
    struct sky *w = r->host->sky;
    struct owned_set *o = owned_by(w, q->claim->key);
    if (w->lies && trouble(w, 4)) {
        const char *name = odd[draw(w, sizeof odd / sizeof *odd)];
        bool ours = strcasecmp(name, r->host->name) == 0; /* as registry.c has it */
        q->answer = ours || one_in(w, 3) ? REGISTRY_OWN : REGISTRY_OTHER;
        if (q->answer == REGISTRY_OTHER)
            snprintf(q->name, sizeof q->name, "%s", name);
        return;
    }
    if (o == NULL)
        own(w, q->claim, r->host->name);
    if (o == NULL || strcmp(o->name, r->host->name) == 0) {
        q->answer = REGISTRY_OWN;
    } else {
        q->answer = REGISTRY_OTHER;
        snprintf(q->name, sizeof q->name, "%s", o->name);
    }
}

void
registry_claim(struct registry *r, struct registry_claim *claim,
               const unsigned char key[REGISTRY_KEY_SIZE], int64_t ttl_ms,
               registry_claimed *told, void *context)
{
    struct sky *w = r->host->sky;
    struct question *q = memory_new(sizeof *q);
    int64_t delay_ms = draw(w, 3) == 0 ? 0 : draw(w, ANSWER_MS);
    if (claim->state != 0)
        abort();
    memcpy(claim->key, key, REGISTRY_KEY_SIZE);
    claim->ttl_ms = ttl_ms;
    claim->done = told;
    claim->context = context;
    claim->state = 1;
    q->registry = r;
    q->claim = claim;
    DL_APPEND(r->questions, q);
    if (r->is_down) {
        q->answer = REGISTRY_UNAVAILABLE;
        delay_ms = 0;
    } else if (trouble(w, 8)) { /* it may have been written all the same */
        decide(r, q);
        q->answer = REGISTRY_UNAVAILABLE;
        q->name[0] = '\0';
        delay_ms = ANSWER_MS;
    } else {
        decide(r, q);
    }
    loop_timer_start(w->loop, &q->timer, delay_ms, tell, q);
}

void
registry_cancel(struct registry *r, struct registry_claim *claim)
{
    struct question *q, *next;
    DL_FOREACH_SAFE (r->questions, q, next)
        if (q->claim == claim)
            question_free(q);
    claim->state = 0;
}

void
registry_close(struct registry *r, const unsigned char key[REGISTRY_KEY_SIZE],
               int64_t memory_ms)
{
    struct owned_set *o = owned_by(r->host->sky, key);
    if (r->is_down || o == NULL || strcmp(o->name, r->host->name) != 0)
        return;
    o->until_ms = loop_monotonic_ms(r->host->sky->loop) + memory_ms;
}

bool
registry_is_up(const struct registry *r)
{
    return !r->is_down;
}

struct registry_counts
registry_counts(const struct registry *r)
{
    (void)r;
    return (struct registry_counts){0};
}

#endif
