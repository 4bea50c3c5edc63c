/* Remembers the nodes that have said ETRN, and walks over the queue for them. */
#include "admin/control/flush.h"

#include "admin/answer/operation.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { NODE_MAX = 1 + 255, CHECK_MS = 250 };

enum stage { STAGE_WAITING, STAGE_WALKED, STAGE_OVER };

struct node {
    UT_hash_handle hh; /* in the order in which they asked */
    char name[NODE_MAX + 1];
    enum stage stage;
    int64_t asked_ms; /* monotonic */
    uint64_t counted; /* the message that was counted last */
    unsigned long messages;
};

struct flush {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct node *nodes;
    struct operation *operation; /* a walk; NULL: none */
    struct loop_timer timer;     /* the next one, when some wait */
    int64_t began_ms, rested_ms; /* monotonic: of the last walk; when another may be */
    uint64_t looked_at;          /* messages, since startup */
};

static struct node *
flush_find(const struct flush *f, struct text name)
{
    struct node *node;
    HASH_FIND(hh, f->nodes, name.at, name.length, node);
    return node;
}

static void
flush_forget(struct flush *f, struct node *node)
{
    HASH_DEL(f->nodes, node);
    free(node);
}

static void
forget_old(struct flush *f)
{
    struct node *node, *next;
    int64_t now = loop_monotonic_ms(f->loop);
    HASH_ITER (hh, f->nodes, node, next) {
        if (now - node->asked_ms < FLUSH_AGAIN_MS)
            return;
        if (node->stage == STAGE_OVER)
            flush_forget(f, node);
    }
}

/* --- Which messages --------------------------------------------------------------- */

static bool
flush_count(struct flush *f, struct text name)
{
    struct node *node = flush_find(f, name);
    if (node == NULL || node->stage != STAGE_WALKED)
        return false;
    if (node->counted != f->looked_at)
        node->messages++;
    node->counted = f->looked_at;
    return true;
}

/* "example.org", then "@example.org" and "@org". */
static bool
flush_is_wanted(struct flush *f, struct text domain)
{
    char name[NODE_MAX + 1] = "@";
    if (domain.length == 0 || !text_copy(name + 1, sizeof(name) - 1, domain))
        return false;
    text_lower(name + 1, domain.length);
    struct text wide = text_of(name, domain.length + 1);
    bool wanted = flush_count(f, text_after(wide, 1));
    for (size_t at = 0; at < domain.length; at++) {
        if (at > 0 && name[at] != '.')
            continue;
        name[at] = '@';
        wanted = flush_count(f, text_after(wide, at)) || wanted;
    }
    return wanted;
}

/* One that is not done. */
static bool
wants(void *context, const struct envelope *e)
{
    struct flush *f = context;
    bool wanted = false;
    f->looked_at++;
    for (unsigned i = 0; i < e->count; i++) {
        struct text address = e->recipients[i].address;
        size_t at = text_find_last(address, '@');
        if (!e->recipients[i].done && at != TEXT_NONE)
            wanted = flush_is_wanted(f, text_after(address, at + 1)) || wanted;
    }
    return wanted;
}

/* --- Walks ------------------------------------------------------------------------ */

static void
flush_on_told(void *context, struct id id, int code, const char *text)
{
    (void)context;
    (void)id;
    (void)code;
    (void)text; /* the manager has logged its act */
}

static void
log_end_of(const struct flush *f, const struct node *node, const char *error)
{
    if (error)
        log_say(f->log, LOG_LEVEL_ERROR, "etrn", NULL, "node %s: given up: %s",
                node->name, error);
    else
        log_say(f->log, LOG_LEVEL_INFO, "etrn", NULL,
                "node %s: done, %lu messages are due now", node->name, node->messages);
}

static void
flush_on_ended(void *context, const char *error)
{
    struct flush *f = context;
    struct node *node, *next;
    int64_t now = loop_monotonic_ms(f->loop), took_ms = now - f->began_ms;
    f->rested_ms = now + (took_ms < FLUSH_PAUSE_MAX_MS ? took_ms : FLUSH_PAUSE_MAX_MS);
    operation_free(&f->operation);
    HASH_ITER (hh, f->nodes, node, next) {
        if (node->stage != STAGE_WALKED)
            continue;
        node->stage = STAGE_OVER;
        log_end_of(f, node, error);
    }
}

static void
flush_begin(struct flush *f)
{
    struct operation_events events = {
        .context = f, .told = flush_on_told, .ended = flush_on_ended};
    struct filter *filter = memory_new(sizeof(*filter));
    struct node *node, *next;
    filter_clear(filter);
    filter->place = "deferred";
    filter->wants = wants;
    filter->context = f;
    HASH_ITER (hh, f->nodes, node, next)
        if (node->stage == STAGE_WAITING)
            node->stage = STAGE_WALKED;
    f->began_ms = loop_monotonic_ms(f->loop);
    f->operation =
        operation_new(f->loop, f->log, f->manager, MANAGER_RETRY, filter, &events);
    free(filter);
}

/* Somebody waits. */
static void
flush_look(void *context)
{
    struct flush *f = context;
    if (f->operation == NULL && loop_monotonic_ms(f->loop) >= f->rested_ms)
        flush_begin(f);
    else
        loop_timer_start(f->loop, &f->timer, CHECK_MS, flush_look, f);
}

/* ---------------------------------------------------------------------------------- */

struct flush *
flush_new(struct loop *loop, struct log *log, struct manager *manager)
{
    struct flush *f = memory_new(sizeof(*f));
    f->loop = loop;
    f->log = log;
    f->manager = manager;
    f->rested_ms = loop_monotonic_ms(loop);
    return f;
}

void
flush_free(struct flush **flush)
{
    struct flush *f = *flush;
    struct node *node, *next;
    if (f == NULL)
        return;
    *flush = NULL;
    loop_timer_stop(f->loop, &f->timer);
    operation_free(&f->operation);
    HASH_ITER (hh, f->nodes, node, next)
        flush_forget(f, node);
    free(f);
}

enum flush_answer
flush_ask(struct flush *f, const char *name, const char *client)
{
    size_t length = strlen(name);
    if (length == 0 || length > NODE_MAX)
        return FLUSH_FULL;
    forget_old(f);
    if (flush_find(f, text_from(name)) != NULL)
        return FLUSH_RECENT;
    if (HASH_COUNT(f->nodes) >= FLUSH_NODES_MAX) {
        log_say(f->log, LOG_LEVEL_WARNING, "etrn", NULL,
                "node %s: refused to client %s: %d others have asked", name, client,
                FLUSH_NODES_MAX);
        return FLUSH_FULL;
    }
    struct node *node = memory_new(sizeof(*node));
    text_copy(node->name, sizeof(node->name), text_from(name));
    node->asked_ms = loop_monotonic_ms(f->loop);
    HASH_ADD(hh, f->nodes, name, length, node);
    log_say(f->log, LOG_LEVEL_INFO, "etrn", NULL,
            "node %s: queuing is started for client %s", name, client);
    if (!heap_has(&f->timer.node))
        loop_timer_start(f->loop, &f->timer, 0, flush_look, f);
    return FLUSH_STARTED;
}
