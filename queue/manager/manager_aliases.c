/* Aliases in the manager: the table, and the mail of injectors. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "mime/header.h"

#include <stdlib.h>

enum { HEADER_BYTES_MAX = 256 * 1024, HEADER_PIECE_BYTES = 16 * 1024 };

void
manager_set_aliases(struct manager *m, struct aliases *aliases, const struct srs *srs)
{
    m->aliases = aliases;
    m->srs = srs;
}

struct expansion_rules
manager_expansion(const struct manager *m)
{
    return (struct expansion_rules){
        .routes = m->routes, .aliases = m->aliases, .srs = m->srs};
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

/* Also what a daemon without a journal has accepted, and expanded: members have a way, and
 * are not expanded again. Not durable: as long as the message is S4 it is expanded again
 * when it is loaded, and none of its recipients has a mark. S5 has the members. */
void
manager_expand(struct manager *m, struct envelope *e)
{
    struct expansion_rules rules = manager_expansion(m);
    struct alias_header header = {.queue = m->queue, .envelope = e};
    if (expansion_is_idle(&rules) || !e->storage.in_todo || e->storage.preprocessed ||
        e->delivery.done > 0)
        return;
    e->storage.given = e->count;
    m->routed_now +=
        expansion_apply(e, &rules, loop_now_ms(m->loop), alias_was_delivered, &header);
}
