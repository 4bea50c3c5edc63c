/* Mail of given sizes for one destination of a real scheduler. */
#include "t/support/job_post.h"
#include "t/support/message_now.h"

void
post_must(bool good, const char *what)
{
    if (!good) {
        tap_result(false, what, __FILE__, __LINE__);
        abort();
    }
}

void
post_start(struct post *p, int concurrency)
{
    *p = (struct post){.now = INT64_C(1700000000000)};
    p->s = sched_new(&(struct sched_settings){
        .active_limit = 20000, .session_limit = 100, .seed = 7}, &p->now);
    p->target.kind = TARGET_MX;
    p->target.tls = TARGET_TLS_MAY;
    transport_params_default(&p->target.transport);
    p->target.transport.adaptive = 0;
    p->target.transport.recipient_limit = 1;
    p->target.transport.initial_concurrency = concurrency;
    p->target.transport.concurrency_limit = concurrency;
}

void
post_end(struct post *p)
{
    sched_free(&p->s);
    free(p->letters);
    free(p->recipients);
}

struct id
post_id(unsigned letter)
{
    return (struct id){1000 + letter, letter};
}

static void
post_load(struct post *p, struct id id)
{
    struct letter *l = &p->letters[id.hash];
    post_must(!l->loaded && l->open > 0, "loaded once");
    l->taken = l->size - l->open;
    struct sched_mail mail = {.owner = (void *)(uintptr_t)(id.hash + 1),
                              .birth_ms = p->now};
    l->loaded = sched_loaded_now(p->s, id, &mail, p->recipients, l->open);
}

void
post_run(struct post *p)
{
    struct sched_action a;
    while (sched_next(p->s, &a)) {
        struct letter *l = &p->letters[a.id.hash];
        switch (a.verb) {
        case SCHED_LOAD:
            post_load(p, a.id);
            break;
        case SCHED_OPEN:
            post_must(p->session_count < POST_SESSIONS, "sessions within the window");
            p->sessions[p->session_count++] = a.session;
            break;
        case SCHED_SETTLE:
            p->settles++;
            p->expired += a.expired;
            l->open -= a.outcome->verdict != VERDICT_DEFERRED;
            break;
        case SCHED_WAIT:
            post_must(l->loaded && l->open > 0, "it waits for somebody");
            l->loaded = false;
            p->waits++;
            break;
        case SCHED_FINISH:
            post_must(l->loaded && l->open == 0, "nobody is open at the end");
            l->loaded = false;
            l->gone = true;
            p->finishes++;
            break;
        }
    }
}

unsigned
post_add(struct post *p, unsigned size)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 64;
        p->letters = memory_resize(p->letters, p->capacity * sizeof(*p->letters));
    }
    if (size > p->largest) {
        p->recipients = memory_resize(p->recipients, size * sizeof(*p->recipients));
        for (unsigned i = p->largest; i < size; i++)
            p->recipients[i] =
                (struct sched_recipient){i, &p->target, TEXT("a.example"), 0};
        p->largest = size;
    }
    p->letters[p->count] = (struct letter){.size = size, .open = size};
    sched_add(p->s, post_id(p->count), p->now, 0);
    post_run(p);
    return p->count++;
}

int
post_take(struct post *p, int session, struct sched_work *work)
{
    if (!sched_take(p->s, p->sessions[session], work))
        return -1;
    unsigned letter = (unsigned)(uintptr_t)work->owner - 1;
    post_must(work->count == 1, "one recipient in a transaction");
    post_must(p->letters[letter].loaded, "of a message in memory");
    post_must(p->letters[letter].taken++ < p->letters[letter].size, "nobody twice");
    return (int)letter;
}

void
post_settle(struct post *p, int session, const struct sched_work *work,
            enum verdict verdict, enum blame blame)
{
    struct outcome o = outcome_make(verdict, blame, 0, "4.0.0", "answer");
    unsigned letter = (unsigned)(uintptr_t)work->owner - 1;
    p->letters[letter].open -= verdict != VERDICT_DEFERRED;
    p->verdicts++;
    sched_settled(p->s, p->sessions[session], work->indexes[0], &o);
    post_run(p);
}

int
post_serve(struct post *p)
{
    struct sched_work work;
    int letter = post_take(p, 0, &work);
    if (letter >= 0)
        post_settle(p, 0, &work, VERDICT_DELIVERED, BLAME_NONE);
    return letter;
}

void
post_digits(struct post *p, unsigned count, char *out)
{
    int letter;
    unsigned i = 0;
    while ((count == 0 || i < count) && (letter = post_serve(p)) >= 0)
        out[i++] = (char)('1' + letter);
    out[i] = '\0';
}
