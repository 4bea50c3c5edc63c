/* Aliases in the manager: the table, and the mail of injectors. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "mime/header.h"
#include "queue/manager/expansion.h"

#include <stdlib.h>

enum { HEADER_BYTES_MAX = 256 * 1024, HEADER_PIECE_BYTES = 16 * 1024 };
enum { UNSURE_EVERY_MS = 10 * 60 * 1000 };  /* a secret that can be read comes before */
enum { UNSURE_SHARED_MS = 60 * 60 * 1000 }; /* while other recipients wait, too */

/* Its first words say why a message waits, as the reply of SMTP does. */
#define UNSURE_REASON "addresses of SRS cannot be verified now"

static void
retry_unsure(void *context, struct id id, unsigned number)
{
    struct manager *m = context;
    (void)number;
    if (manager_is_unsure(m, id))
        (void)sched_retry(m->sched, id);
}

void
manager_set_aliases(struct manager *m, struct aliases *aliases, const struct srs *srs)
{
    bool was_blind = m->srs != NULL && srs_is_blind(m->srs);
    if (!was_blind)
        m->blind_since_ms = loop_now_ms(m->loop);
    m->aliases = aliases;
    m->srs = srs;
    if (!was_blind || (srs != NULL && srs_is_blind(srs)))
        return;
    deferral_reasons_each(m->reasons, retry_unsure, m);
    manager_wake(m);
}

static struct expansion_rules
manager_expansion(const struct manager *m)
{
    return (struct expansion_rules){
        .routes = m->routes, .aliases = m->aliases, .srs = m->srs, .verp = m->verp};
}

/* The header of a message, read when the first alias is found in it. */
struct alias_header {
    struct queue *queue;
    const struct envelope *envelope;
    struct header_scan scan;
    bool is_read;
};

static void
alias_header_read(struct alias_header *h)
{
    int content = queue_content_open(h->queue, h->envelope);
    char *piece = memory_new(HEADER_PIECE_BYTES);
    int64_t at = 0, got = 0;
    h->is_read = true;
    header_scan_start(&h->scan);
    header_scan_add(&h->scan, h->envelope->prefix);
    while (content >= 0 && !h->scan.ended && at < HEADER_BYTES_MAX &&
           (got = queue_content_read(h->queue, content, at, piece,
                                     HEADER_PIECE_BYTES)) > 0) {
        header_scan_add(&h->scan, text_of(piece, (size_t)got));
        at += got;
    }
    if (content >= 0)
        queue_content_close(h->queue, content);
    free(piece);
}

static bool
alias_was_delivered(void *context, struct text address)
{
    struct alias_header *h = context;
    if (!h->is_read)
        alias_header_read(h);
    return header_scan_was_delivered(&h->scan, address);
}

void
manager_expand_own(struct manager *m, struct envelope *e)
{
    struct expansion_rules rules = manager_expansion(m);
    m->routed_now += expansion_apply(e, &rules, loop_now_ms(m->loop), NULL, NULL);
}

/* Also mail that a daemon without a journal has accepted and expanded: members have a way,
 * and are not expanded again. Not durable: as long as the message is S4 it is expanded
 * again when it is loaded, and none of its recipients has a mark. S5 has the members. */
void
manager_expand(struct manager *m, struct envelope *e)
{
    struct expansion_rules rules = manager_expansion(m);
    struct alias_header header = {.queue = m->queue, .envelope = e};
    if ((expansion_is_idle(&rules) && copies_are_empty(m->copies)) ||
        !e->storage.in_todo || e->storage.preprocessed || e->storage.fixed ||
        e->delivery.done > 0 || e->moved.given > 0) /* its giver has done so */
        return;
    if (e->storage.given == 0)
        e->storage.given = e->count;
    m->routed_now +=
        expansion_apply(e, &rules, loop_now_ms(m->loop), alias_was_delivered, &header);
    if (e->storage.injected)
        manager_copy(m, e);
}

bool
manager_must_expand(const struct envelope *e)
{
    return !e->storage.preprocessed && e->delivery.done == 0 && envelope_has_refused(e);
}

void
manager_expand_again(struct active *a)
{
    struct manager *m = a->manager;
    if (!manager_must_expand(a->envelope))
        return;
    m->recipients -= a->envelope->count;
    manager_expand(m, a->envelope);
    m->recipients += a->envelope->count;
}

/* --- While the secret of SRS cannot be read --------------------------------------- */

bool
manager_is_unsure(const struct manager *m, struct id id)
{
    return text_starts(text_from(deferral_reasons_find(m->reasons, id)),
                       TEXT(UNSURE_REASON));
}

static const struct recipient *
manager_find_unsure(const struct envelope *e)
{
    for (unsigned i = 0; i < e->count; i++)
        if (e->recipients[i].refused == RECIPIENT_UNSURE && !e->recipients[i].done)
            return &e->recipients[i];
    return NULL;
}

/* Another recipient can have the message, and the sender hears of this one. */
static bool
manager_unsure_delays(const struct envelope *e)
{
    bool delays = false;
    for (unsigned i = 0; e->sender.length > 0 && i < e->count && !delays; i++)
        delays = e->recipients[i].refused == RECIPIENT_GOOD;
    return delays;
}

/* Else it fails now. Only a message as a whole can wait in todo/. */
static bool
manager_unsure_lives(const struct active *a, const struct recipient *r)
{
    struct address address;
    const struct envelope *e = a->envelope;
    const struct target *target = attempt_route(a->manager, e, r, &address);
    int64_t now_ms = loop_now_ms(a->manager->loop);
    if (manager_unsure_delays(e) && now_ms - e->birth_ms >= UNSURE_SHARED_MS &&
        now_ms - a->manager->blind_since_ms >= UNSURE_SHARED_MS)
        return false;
    return target != NULL &&
           now_ms - e->birth_ms <
               transport_params_lifetime_ms(&target->transport, e->sender.length == 0);
}

bool
manager_unsure_waits(struct active *a)
{
    struct manager *m = a->manager;
    const struct recipient *r = manager_find_unsure(a->envelope);
    bool is_known = manager_is_unsure(m, a->id);
    if (r == NULL || !manager_unsure_lives(a, r)) {
        if (is_known)
            deferral_reasons_forget(m->reasons, a->id);
        return false;
    }
    struct outcome why = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0",
                                      UNSURE_REASON ": their secret cannot be read");
    begin_wait(a, &why, is_known, loop_now_ms(m->loop) + UNSURE_EVERY_MS);
    return true;
}
