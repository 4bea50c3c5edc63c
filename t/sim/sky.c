/* Hosts that share sets of fragments. */
#include "t/sim/sky.h"

const char *const people[PEOPLE] = {"b@y", "c@y", "d@z"};

const char *const names[HOSTS_MAX] = {"a.test", "b.test", "c.test", "d.test"};

/* --- Events ----------------------------------------------------------------------- */

unsigned
draw(struct sky *w, unsigned below)
{
    return (unsigned)(retry_random(&w->random) % below);
}

bool
one_in(struct sky *w, unsigned n)
{
    return draw(w, n) == 0;
}

bool
trouble(struct sky *w, unsigned n)
{
    return !w->is_calm && !w->is_good && one_in(w, n);
}

void __attribute__((format(printf, 2, 3)))
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

static struct owned_set *
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

void
own(struct sky *w, const struct registry_claim *claim, const char *name)
{
    struct owned_set *o = memory_new(sizeof(*o));
    memcpy(o->key, claim->key, sizeof(o->key));
    snprintf(o->name, sizeof(o->name), "%s", name);
    o->until_ms = loop_monotonic_ms(w->loop) + claim->ttl_ms;
    HASH_ADD(hh, w->owned, key, sizeof(o->key), o);
}

static void
question_free(struct question *q)
{
    struct registry *r = q->registry;
    loop_timer_stop(r->host->sky->loop, &q->timer);
    DL_DELETE(r->questions, q);
    free(q);
}

void
recovered(void *context)
{
    struct registry *r = context;
    if (r->is_down || !r->is_owing || !r->host->is_up)
        return;
    r->is_owing = false;
    channel_recover(r->host->s.channel, false);
}

void
tell(void *context)
{
    struct question *q = context;
    struct registry *r = q->registry;
    struct registry_claim *claim = q->claim;
    enum registry_answer answer = q->answer;
    char name[REGISTRY_HOST_MAX + 1];
    memcpy(name, q->name, sizeof(name));
    question_free(q);
    claim->state = 0;
    if (answer == REGISTRY_UNAVAILABLE)
        r->is_owing = true;
    if (r->is_owing && !r->is_down)
        loop_timer_start(r->host->sky->loop, &r->recover, 5000, recovered, r);
    claim->done(claim->context, answer, name);
}

void
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
        const char *name = odd[draw(w, sizeof(odd) / sizeof(*odd))];
        bool ours = strcasecmp(name, r->host->name) == 0; /* as registry.c has it */
        q->answer = ours || one_in(w, 3) ? REGISTRY_OWN : REGISTRY_OTHER;
        if (q->answer == REGISTRY_OTHER)
            snprintf(q->name, sizeof(q->name), "%s", name);
        return;
    }
    if (o == NULL)
        own(w, q->claim, r->host->name);
    if (o == NULL || strcmp(o->name, r->host->name) == 0) {
        q->answer = REGISTRY_OWN;
    } else {
        q->answer = REGISTRY_OTHER;
        snprintf(q->name, sizeof(q->name), "%s", o->name);
    }
}

void
registry_claim(struct registry *r, struct registry_claim *claim,
               const unsigned char key[REGISTRY_KEY_SIZE], int64_t ttl_ms,
               registry_claimed *told, void *context)
{
    struct sky *w = r->host->sky;
    struct question *q = memory_new(sizeof(*q));
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
