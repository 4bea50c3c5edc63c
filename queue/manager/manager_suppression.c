/* Suppressed recipients: what verdicts teach, and mail that is not tried. */
#include "queue/manager/manager_internal.h"

#include "base/event/event.h"
#include "queue/suppression/suppression_slices.h"

/* Those of this host, and of other hosts for which it accepts mail, come and go as their
 * administrators make them: each is asked every time. */
static bool
suppress_concerns(const struct manager *m, enum target_kind kind,
                  const struct address *address)
{
    return (kind == TARGET_MX || kind == TARGET_SMTP) &&
           !route_is_local_domain(m->routes, address->domain);
}

/* A reply to a redirect speaks of another address. A copy is the operator's, and nobody
 * learns that it does not leave: it is tried each time. */
static bool
suppress_spares(struct active *a, unsigned index)
{
    const struct recipient *r = &a->envelope->recipients[index];
    struct address address;
    const struct target *target = attempt_route(a->manager, a->envelope, r, &address);
    return envelope_is_copy(r) || target == NULL || target->to[0] != '\0';
}

void
manager_suppress_end(struct manager *m)
{
    suppression_slices_free(&m->slices);
    suppression_free(&m->suppression);
}

void
manager_suppress_follow(struct manager *m)
{
    const struct suppression_settings *settings = &m->settings.suppression;
    const struct queue_settings *q = &m->settings.queue;
    char path[MANAGER_HINT_MAX];
    if (!settings->is_on) {
        manager_suppress_end(m);
    } else if (m->suppression != NULL) {
        suppression_set(m->suppression, settings);
    } else {
        manager_hint_path(m, "suppressed", path);
        m->suppression =
            suppression_new(m->loop, m->log, queue_disk(m->queue), path, settings);
        m->slices = suppression_slices_new(m->loop, m->log, queue_disk(m->queue),
                                           m->suppression, "lock/suppressed", q->slices,
                                           q->slice);
    }
}

struct suppression *
manager_suppression(struct manager *m)
{
    return m->suppression;
}

bool
manager_suppresses(struct manager *m, struct text sender, struct text recipient,
                   struct outcome *refusal)
{
    struct address address;
    if (!suppression_refuses(m->suppression, sender, recipient, refusal) ||
        !address_parse(recipient, &address))
        return false;
    const struct target *target = route_find_from(m->routes, sender, &address, false);
    if (target->to[0] != '\0' || !suppress_concerns(m, target->kind, &address))
        return false;
    suppression_used(m->suppression, true);
    return true;
}

bool
manager_suppress_now(struct active *a, unsigned index, enum target_kind kind,
                     struct outcome *refusal)
{
    const struct manager *m = a->manager;
    const struct recipient *r = &a->envelope->recipients[index];
    struct address address;
    return suppression_refuses(m->suppression, a->envelope->sender, r->address,
                               refusal) &&
           !awaiting_is_redirected(a, index) && address_parse(r->address, &address) &&
           suppress_concerns(m, kind, &address) && !suppress_spares(a, index);
}

static void
suppress_tell(const struct manager *m, struct text sender,
              const struct suppression_entry *entry)
{
    event_tell(m->events,
               &(struct event){.kind = EVENT_SUPPRESSED,
                               .sender = sender,
                               .recipient = entry->address,
                               .reason = suppression_class_name(entry->class),
                               .text = entry->reason});
}

static bool
suppress_is_alone(const struct envelope *e)
{
    unsigned count = 0;
    for (unsigned i = 0; i < e->count && count < 2; i++)
        count += !e->recipients[i].expanded && !envelope_is_copy(&e->recipients[i]);
    return count == 1;
}

void
manager_suppress_hear(struct active *a, unsigned index, const struct outcome *outcome)
{
    struct manager *m = a->manager;
    const struct recipient *r = &a->envelope->recipients[index];
    struct suppression_entry entry;
    struct address address;
    if (m->suppression != NULL && address_parse(r->address, &address) &&
        suppress_concerns(m, a->kinds[index], &address) && !suppress_spares(a, index) &&
        suppression_hear(m->suppression, a->envelope->sender, r->address,
                         suppress_is_alone(a->envelope), outcome, &entry))
        suppress_tell(m, a->envelope->sender, &entry);
}

void
manager_suppress(struct manager *m, struct text sender, struct text recipient,
                 enum suppression_class class, struct text reason)
{
    struct suppression_entry entry;
    struct address address;
    if (m->suppression != NULL && address_parse(recipient, &address) &&
        (m->routes == NULL || !route_is_local_domain(m->routes, address.domain)) &&
        suppression_note(m->suppression, sender, recipient, class, reason, &entry))
        suppress_tell(m, sender, &entry);
}

/* True: the work has a recipient that is suppressed since it was routed. The attempt ends,
 * and the message is routed again immediately. */
bool
manager_suppress_work(struct active *a, const struct sched_work *work)
{
    struct outcome refusal;
    if (a->manager->suppression == NULL)
        return false;
    for (size_t i = 0; i < work->count; i++)
        if (manager_suppress_now(a, work->indexes[i], a->kinds[work->indexes[i]],
                                 &refusal)) {
            a->pending = PENDING_RETRY;
            return true;
        }
    return false;
}
