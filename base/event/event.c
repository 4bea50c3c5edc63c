/* The hub of events: a table of readers. */
#include "base/event/event.h"

#include "base/memory.h"
#include "base/event/event_log.h"

#include <assert.h>
#include <stdlib.h>

struct event_hub {
    struct event_log log;
    uint64_t kinds; /* that somebody reads */
    bool keeps;
    struct gate gate;
    void (*look)(void *context, struct event_keeping *out);
    void *look_context;
    size_t count;
    struct event_hub_reader {
        uint64_t kinds;
        event_reader *read;
        void *context;
    } readers[EVENT_READERS_MAX];
};

static const char *const words[] = {
    [EVENT_CONNECTED] = "connected",
    [EVENT_DISCONNECTED] = "disconnected",
    [EVENT_SECURED] = "secured",
    [EVENT_REFUSED] = "refused",
    [EVENT_DENIED] = "denied",
    [EVENT_LOCKED] = "locked",
    [EVENT_LOST] = "lost",
    [EVENT_TIMED_OUT] = "timed_out",
    [EVENT_CUT_OFF] = "cut_off",
    [EVENT_ACCEPTED] = "accepted",
    [EVENT_SUBMITTED] = "submitted",
    [EVENT_MADE] = "made",
    [EVENT_LOADED] = "loaded",
    [EVENT_DELIVERED] = "delivered",
    [EVENT_DEFERRED] = "deferred",
    [EVENT_BOUNCED] = "bounced",
    [EVENT_EXPIRED] = "expired",
    [EVENT_LIFETIME] = "lifetime",
    [EVENT_NOTIFIED] = "notified",
    [EVENT_DISCARDED] = "discarded",
    [EVENT_ENDED] = "ended",
    [EVENT_HELD] = "held",
    [EVENT_RELEASED] = "released",
    [EVENT_RETRIED] = "retried",
    [EVENT_REMOVED] = "removed",
    [EVENT_RETURNED] = "returned",
    [EVENT_GIVEN] = "given",
    [EVENT_TAKEN] = "taken",
    [EVENT_BOUNCED_LATER] = "bounced_later",
    [EVENT_COMPLAINED] = "complained",
    [EVENT_FRAGMENT] = "fragment",
    [EVENT_SITE_DEAD] = "site_dead",
    [EVENT_SITE_ALIVE] = "site_alive",
    [EVENT_UPSTREAM_FAILED] = "upstream_failed",
    [EVENT_UPSTREAM_OK] = "upstream_ok",
    [EVENT_QUOTA] = "quota",
    [EVENT_SUPPRESSED] = "suppressed",
    [EVENT_TROUBLE] = "trouble",
    [EVENT_RECOVERED] = "recovered",
    [EVENT_STARTED] = "started",
    [EVENT_RELOADED] = "reloaded",
    [EVENT_CERTIFICATE] = "certificate",
    [EVENT_DRAINING] = "draining",
    [EVENT_STOPPING] = "stopping",
};
static_assert(EVENT_KINDS <= 64, "a kind is a bit");

struct event_hub *
event_hub_new(struct log *log)
{
    struct event_hub *hub = memory_new(sizeof(*hub));
    hub->log.log = log;
    return hub;
}

void
event_hub_count_waiting(struct event_hub *hub, struct loop *loop)
{
    event_log_waiting_start(&hub->log.waiting, loop, hub->log.log);
}

void
event_hub_free(struct event_hub **hub)
{
    if (*hub != NULL)
        event_log_waiting_stop(&(*hub)->log.waiting);
    free(*hub);
    *hub = NULL;
}

struct log *
event_hub_log(const struct event_hub *hub)
{
    return hub != NULL ? hub->log.log : NULL;
}

static struct event_hub_reader *
reader_find(struct event_hub *hub, event_reader *read, const void *context)
{
    for (size_t i = 0; i < hub->count; i++)
        if (hub->readers[i].read == read && hub->readers[i].context == context)
            return &hub->readers[i];
    assert(hub->count < EVENT_READERS_MAX);
    return &hub->readers[hub->count++];
}

void
event_read(struct event_hub *hub, uint64_t kinds, event_reader *read, void *context)
{
    struct event_hub_reader *found = reader_find(hub, read, context);
    *found = (struct event_hub_reader){kinds, read, context};
    if (kinds == 0)
        *found = hub->readers[--hub->count];
    hub->kinds = 0;
    for (size_t i = 0; i < hub->count; i++)
        hub->kinds |= hub->readers[i].kinds;
}

bool
event_is_read(const struct event_hub *hub, enum event_kind kind)
{
    return hub != NULL && (hub->log.log != NULL || (hub->kinds & EVENT_BIT(kind)) != 0);
}

void
event_tell(struct event_hub *hub, const struct event *event)
{
    if (hub == NULL)
        return;
    if (hub->log.log != NULL)
        event_log(&hub->log, event);
    for (size_t i = 0; i < hub->count; i++)
        if ((hub->readers[i].kinds & EVENT_BIT(event->kind)) != 0)
            hub->readers[i].read(hub->readers[i].context, event);
}

bool
event_are_kept(const struct event_hub *hub)
{
    return hub != NULL && hub->keeps;
}

void
event_hub_keep(struct event_hub *hub, bool keeps)
{
    hub->keeps = keeps;
}

struct gate *
event_hub_gate(struct event_hub *hub)
{
    return hub != NULL ? &hub->gate : NULL;
}

struct event_keeping
event_hub_keeping(const struct event_hub *hub)
{
    struct event_keeping keeping = {0};
    if (hub != NULL && hub->look != NULL)
        hub->look(hub->look_context, &keeping);
    return keeping;
}

void
event_hub_on_keeping(struct event_hub *hub,
                     void (*look)(void *context, struct event_keeping *out),
                     void *context)
{
    hub->look = look;
    hub->look_context = context;
}

const char *
event_word(enum event_kind kind)
{
    return words[kind];
}
