/* Treats mail of sendmail(1) when the daemon has read it for the first time. */
#include "base/event/event.h"
#include "queue/queue_internal.h"
#include "queue/spool/injected.h"

enum { PICKUP_HEAD_MAX = 4096 /* where Message-ID and tag are looked for */ };

static void
read_names(struct queue *q, const struct envelope *e, struct injected_names *names)
{
    char head[PICKUP_HEAD_MAX];
    int content = queue_content_open(q, e);
    int64_t got =
        content >= 0 ? queue_content_read(q, content, 0, head, sizeof(head)) : 0;
    injected_read_names(e->prefix, text_of(head, got > 0 ? (size_t)got : 0), names);
    if (content >= 0)
        queue_content_close(q, content);
}

static void
tell_pickup(struct queue *q, const struct envelope *e, struct text message_id)
{
    struct event_origin origin = {.tag = e->tag};
    q->picked_up++;
    event_tell(q->settings.events, &(struct event){.kind = EVENT_SUBMITTED,
                                                   .message_id = message_id,
                                                   .id = e->id,
                                                   .origin = &origin,
                                                   .sender = e->sender,
                                                   .size = e->content_size,
                                                   .recipients = e->count,
                                                   .injector = e->storage.injector});
}

/* The envelope lacks the facts of the header: its writer may be anybody. */
void
queue_picked_up(struct queue *q, struct envelope *e)
{
    struct injected_names names;
    bool kept = event_are_kept(q->settings.events);
    bool ours = e->storage.injected && q->own_loop == NULL;
    bool first = ours && id_set_report(&q->seen, e->id);
    if (!first && !(ours && kept))
        return;
    read_names(q, e, &names);
    if (kept) {
        e->message_id = envelope_text(e, text_from(names.message_id));
        e->tag = envelope_text(e, text_from(names.tag));
    }
    if (first)
        tell_pickup(q, e, text_from(names.message_id));
}
