/* What becomes of mail of sendmail(1) when the daemon has read it for the first time. */
#include "mime/header.h"
#include "queue/event/event.h"
#include "queue/queue_internal.h"

enum { PICKUP_HEAD_MAX = 4096 /* where Message-ID and tag are looked for */ };

static void
scan_head(struct queue *q, const struct envelope *e, struct header_scan *scan)
{
    char head[PICKUP_HEAD_MAX];
    int content = queue_content_open(q, e);
    int64_t got =
        content >= 0 ? queue_content_read(q, content, 0, head, sizeof(head)) : 0;
    header_scan_start(scan);
    header_scan_add(scan, e->prefix);
    header_scan_add(scan, text_of(head, got > 0 ? (size_t)got : 0));
    if (content >= 0)
        queue_content_close(q, content);
}

static void
tell_pickup(struct queue *q, const struct envelope *e, struct text message_id)
{
    q->picked_up++;
    event_tell(q->settings.events, &(struct event){.kind = EVENT_SUBMITTED,
                                                   .message_id = message_id,
                                                   .id = e->id,
                                                   .sender = e->sender,
                                                   .size = e->content_size,
                                                   .recipients = e->count,
                                                   .injector = e->storage.injector});
}

/* The envelope does not say what the header does: its writer may be anybody. */
void
queue_picked_up(struct queue *q, struct envelope *e)
{
    struct header_scan scan;
    bool kept = event_are_kept(q->settings.events);
    bool ours = e->storage.injected && q->own_loop == NULL;
    bool first = ours && id_set_report(&q->seen, e->id);
    if (!first && !(ours && kept))
        return;
    scan_head(q, e, &scan);
    if (kept) {
        e->message_id = envelope_text(e, header_scan_message_id(&scan));
        e->tag = envelope_text(e, header_scan_tag(&scan));
    }
    if (first)
        tell_pickup(q, e, header_scan_message_id(&scan));
}
