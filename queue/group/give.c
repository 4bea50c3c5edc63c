/* Gives the queue away, message by message.
 *
 * A walk lists the queue, in steps; a heap orders it by due time. Then each message is
 * lent by the manager, becomes a *gift*, and is sent. A gift without a certain answer is
 * *lost*: it may be there. After a walk of which nothing was left to try, it is over. One
 * that rests has only gifts, until each has its answer or its time is over. */
#include "queue/group/give.h"

#include "base/arena.h"
#include "base/crc.h"
#include "base/heap.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/event/event.h"
#include "queue/manager/manager.h"
#include "queue/queue_barrier.h"
#include "queue/queue_walk.h"
#include "queue/spool/id_set.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct give_row {
    struct heap_node node;
    struct id id;
    int64_t due_ms;
};

struct give_host {
    char name[GROUP_HOST_MAX + 1];
    bool is_there;     /* it takes mail, as far as the group knows */
    bool is_silent;    /* it owes answers: no more goes there before one */
    int64_t paused_ms; /* until then; monotonic */
    size_t sent;
};

enum gift_state { GIFT_READY, GIFT_SENT, GIFT_LOST };

struct gift {
    struct give *give;
    struct id id;
    const struct envelope *envelope; /* the manager's */
    uint64_t set;                    /* of fragments; 0: none */
    enum gift_state state;
    struct give_host *host; /* SENT, LOST: to whom */
    int64_t lost_ms;        /* since then it may be there; 0: it is not */
    int64_t again_ms;       /* LOST: the next question */
    int content;            /* handle; -1: none */
    /* Hosts, by their place, that cannot read its form; is_unread: any of them. */
    uint64_t unread[GROUP_HOSTS_MAX / 64];
    bool is_unread;
    struct gift *prev, *next;
};

struct give {
    struct give_setup setup;
    char *to; /* names; "": all */
    void (*over)(void *context);
    void *over_context;
    struct give_host *hosts[GROUP_HOSTS_MAX];
    size_t host_count, turn;
    struct queue_walk *walk; /* NULL: rows has what it found */
    bool walk_has_names;
    bool was_busy, was_sent; /* since the last walk began */
    int64_t again_ms;        /* no walk before: what was put off is tried again then */
    struct arena arena;      /* of the rows */
    struct heap rows;        /* soonest due first */
    struct id_set stay;
    struct gift *gifts;
    size_t gift_count, ready, unended; /* ready: gifts in that state */
    struct queue_barrier barrier;
    bool has_barrier, is_over, rests;
    size_t ending; /* of unended, those of the barrier */
    struct loop_task task;
    struct loop_timer timer;
    struct give_progress progress;
    char why[GIVE_WHY_MAX];
};

static inline int64_t
give_now_ms(const struct give *g)
{
    return loop_monotonic_ms(g->setup.loop);
}

static inline bool
give_is_open(const struct give *g, const struct give_host *h)
{
    return h->is_there && h->paused_ms <= give_now_ms(g);
}

/* --- Messages whose form some host cannot read ---------------------------------------
 *
 * A version is older than ours, and another host may have a newer one. */

/* Whether a host that is there may read it; SOON: and takes mail now, or when it has
 * answered. */
enum give_unread { GIVE_UNREAD_BY_ALL, GIVE_UNREAD_LATER, GIVE_UNREAD_SOON };

static bool
give_unread_by(const struct gift *x, size_t host)
{
    return (x->unread[host / 64] >> (host % 64) & 1) != 0;
}

static void
give_unread_note(struct gift *x)
{
    const struct give *g = x->give;
    for (size_t i = 0; i < g->host_count; i++)
        if (g->hosts[i] == x->host)
            x->unread[i / 64] |= UINT64_C(1) << (i % 64);
    x->is_unread = true;
}

static enum give_unread
give_unread_hope(const struct gift *x)
{
    const struct give *g = x->give;
    enum give_unread hope = GIVE_UNREAD_BY_ALL;
    for (size_t i = 0; i < g->host_count; i++) {
        const struct give_host *h = g->hosts[i];
        if (!h->is_there || give_unread_by(x, i))
            continue;
        if (!h->is_silent && give_is_open(g, h))
            return GIVE_UNREAD_SOON;
        hope = GIVE_UNREAD_LATER;
    }
    return hope;
}

enum {
    NAMES_PER_TURN = 5000, /* of files, read */
    ROWS_PER_TURN = 1000,  /* messages, listed */
    LENDS_PER_TURN = 64,   /* messages, loaded */
    BYTES_PER_TURN = 1024 * 1024,
    TICK_MS = 200,       /* while it waits for a time */
    AGAIN_MS = 1000,     /* after 4yz of all, or a lost answer */
    LOST_MS = 60 * 1000, /* for which the same host is asked */
    READY_MAX = 8        /* lent, with no host that has room for it: large content */
};

static void give_step(void *context);

static void
give_stir(struct give *g)
{
    if (!g->is_over)
        loop_post(g->setup.loop, &g->task, give_step, g);
}

static void
give_on_time(void *context)
{
    give_stir(context);
}

static void
give_wait(struct give *g, int64_t ms)
{
    if (!heap_has(&g->timer.node))
        loop_timer_start(g->setup.loop, &g->timer, ms, give_on_time, g);
}

/* --- Hosts ------------------------------------------------------------------------ */

static bool
give_is_wanted(const struct give *g, struct text name)
{
    struct text rest = text_from(g->to), word;
    bool is_any = true;
    while (text_word(&rest, ", \t", &word)) {
        if (text_equal_nocase(word, name))
            return true;
        is_any = false;
    }
    return is_any;
}

static struct give_host *
give_find_host(struct give *g, const char *name)
{
    for (size_t i = 0; i < g->host_count; i++)
        if (strcmp(g->hosts[i]->name, name) == 0)
            return g->hosts[i];
    if (g->host_count == GROUP_HOSTS_MAX)
        return NULL;
    struct give_host *h = memory_new(sizeof(*h));
    snprintf(h->name, sizeof(h->name), "%s", name);
    return g->hosts[g->host_count++] = h;
}

/* A host that says nothing of itself may take mail. */
static bool
give_takes_mail(const struct sibling *s)
{
    return !s->is_lost && (s->state == NULL || s->state[0] == '\0' ||
                           strcmp(s->state, "running") == 0);
}

static bool
give_see(void *context, const struct sibling *s)
{
    struct give *g = context;
    if (strcmp(s->host, g->setup.host) == 0)
        return true;
    struct give_host *h = give_find_host(g, s->host);
    if (h != NULL)
        h->is_there = give_takes_mail(s) && give_is_wanted(g, text_from(s->host));
    return true;
}

static void
give_look(struct give *g)
{
    for (size_t i = 0; i < g->host_count; i++)
        g->hosts[i]->is_there = false;
    g->setup.siblings(g->setup.context, give_see, g);
}

static bool
give_has_room(const struct give *g, const struct give_host *h, int64_t bytes)
{
    return give_is_open(g, h) && h->sent < SIBLING_UNANSWERED &&
           g->setup.calls->has_room(g->setup.calls->context, h->name, bytes);
}

/* The next one in turn; NULL: none can be given that now. Fragments of a set go to one host
 * as long as it takes mail, and wait for its room: elsewhere none would find the others. */
static struct give_host *
give_choose(struct give *g, const struct gift *x)
{
    size_t first = g->turn;
    if (x->set != 0 && g->host_count > 0)
        first = (size_t)(x->set % g->host_count);
    for (size_t i = 0; i < g->host_count; i++) {
        size_t at = (first + i) % g->host_count;
        struct give_host *h = g->hosts[at];
        if (h->is_silent || !give_is_open(g, h) || give_unread_by(x, at))
            continue;
        if (give_has_room(g, h, x->envelope->content_size)) {
            g->turn = (at + 1) % g->host_count;
            return h;
        }
        if (x->set != 0)
            return NULL;
    }
    return NULL;
}

/* Whether any host may take mail now or when it has answered; else it is said why not. While
 * mail is put off that is about those who could read it. */
static void
give_explain(struct give *g)
{
    bool is_any = false, is_good = false;
    for (size_t i = 0; i < g->host_count; i++) {
        const struct give_host *h = g->hosts[i];
        is_any = is_any || h->is_there;
        is_good = is_good || (!h->is_silent && give_is_open(g, h));
    }
    bool is_put_off = g->again_ms > 0 && give_now_ms(g) < g->again_ms + AGAIN_MS;
    if (is_good && !is_put_off)
        g->why[0] = '\0';
    else if (!is_any)
        snprintf(g->why, sizeof(g->why), "no other host takes mail");
    else if (g->why[0] == '\0')
        snprintf(g->why, sizeof(g->why), "no other host answers");
}

/* --- Gifts ------------------------------------------------------------------------ */

static void
gift_close(struct gift *x)
{
    if (x->content >= 0)
        queue_content_close(manager_queue(x->give->setup.manager), x->content);
    x->content = -1;
}

static void
gift_become(struct gift *x, enum gift_state state)
{
    struct give *g = x->give;
    g->ready -= x->state == GIFT_READY;
    g->ready += state == GIFT_READY;
    x->state = state;
}

/* The loan has ended. */
static void
gift_free(struct gift *x)
{
    struct give *g = x->give;
    gift_close(x);
    g->ready -= x->state == GIFT_READY;
    DL_DELETE(g->gifts, x);
    g->gift_count--;
    free(x);
}

static void
gift_return(struct gift *x)
{
    struct give *g = x->give;
    struct id id = x->id;
    gift_free(x);
    manager_take_back(g->setup.manager, id);
}

static void
gift_stays(struct gift *x)
{
    struct give *g = x->give;
    id_set_add(&g->stay, x->id);
    g->progress.refused++;
    gift_return(x);
}

static void
give_log(const struct give *g, struct id id, const char *why, const char *said)
{
    log_say(event_hub_log(g->setup.events), LOG_LEVEL_WARNING, "queue", ID_TEXT(id),
            "stays here: %s%s", why, said);
}

/* No host takes it now. Another walk finds it again, so that others are given meanwhile. */
static void
gift_put_off(struct gift *x)
{
    switch (give_unread_hope(x)) {
    case GIVE_UNREAD_BY_ALL:
        give_log(x->give, x->id, "no other host can read its envelope", "");
        gift_stays(x);
        break;
    case GIVE_UNREAD_LATER:
        x->give->again_ms = give_now_ms(x->give) + AGAIN_MS;
        gift_return(x);
        break;
    case GIVE_UNREAD_SOON:
        break;
    }
}

/* --- Ends ------------------------------------------------------------------------- */

static void give_begin_barrier(struct give *g);

static void
give_on_durable(void *context)
{
    struct give *g = context;
    g->has_barrier = false;
    g->unended -= g->ending;
    g->ending = 0;
    if (g->unended > 0)
        give_begin_barrier(g);
    give_stir(g);
}

/* At each moment at most GIVE_HURRY and the messages unanswered then could be given
 * twice. */
static void
give_begin_barrier(struct give *g)
{
    if (g->has_barrier)
        return;
    g->has_barrier = true;
    g->ending = g->unended;
    queue_barrier(manager_queue(g->setup.manager), &g->barrier, give_on_durable, g);
}

static void
give_end(struct gift *x, struct id there)
{
    struct give *g = x->give;
    struct id id = x->id;
    char host[GROUP_HOST_MAX + 1];
    snprintf(host, sizeof(host), "%s", x->host->name);
    gift_free(x);
    manager_give_away(g->setup.manager, id, host, there);
    g->progress.given++;
    if (++g->unended % GIVE_HURRY == 0)
        queue_hurry(manager_queue(g->setup.manager));
    give_begin_barrier(g);
}

/* --- Answers ---------------------------------------------------------------------- */

static void
gift_lose(struct gift *x)
{
    struct give *g = x->give;
    int64_t now_ms = give_now_ms(g);
    gift_become(x, GIFT_LOST);
    x->host->is_silent = true;
    if (x->lost_ms == 0)
        x->lost_ms = now_ms;
    x->again_ms = now_ms + AGAIN_MS;
}

static void
gift_later(struct gift *x, const struct outcome *outcome)
{
    struct give *g = x->give;
    x->host->paused_ms = give_now_ms(g) + AGAIN_MS;
    snprintf(g->why, sizeof(g->why), "%.60s: %.120s", x->host->name,
             outcome != NULL ? outcome->text : "");
    if (x->lost_ms != 0) { /* a host that says so may not have looked */
        gift_lose(x);
        return;
    }
    gift_become(x, GIFT_READY);
    x->host = NULL;
}

/* A host of another version may read it. */
static void
gift_refused_form(struct gift *x)
{
    give_unread_note(x);
    x->host = NULL;
    x->lost_ms = 0; /* what it has taken it could read */
    gift_become(x, GIFT_READY);
}

/* 5yz */
static void
gift_refused(struct gift *x, const struct outcome *outcome)
{
    struct give *g = x->give;
    const char *said = outcome != NULL ? outcome->text : "";
    const struct give_host *h = x->host;
    if (outcome != NULL && strcmp(outcome->enhanced, "5.5.4") == 0)
        gift_refused_form(x);
    if (x->state == GIFT_READY && give_unread_hope(x) != GIVE_UNREAD_BY_ALL)
        return;
    snprintf(g->progress.refusal, sizeof(g->progress.refusal), "%.60s: %.120s", h->name,
             said);
    give_log(g, x->id, "another host refuses it: ", said);
    gift_stays(x);
}

static void
give_on_answer(void *context, enum sibling_answer answer, struct id there,
               const struct outcome *outcome)
{
    struct gift *x = context;
    struct give *g = x->give;
    assert(x->state == GIFT_SENT && x->host->sent > 0);
    x->host->sent--;
    g->progress.sent--;
    gift_close(x);
    if (answer != SIBLING_LOST)
        x->host->is_silent = false;
    switch (answer) {
    case SIBLING_TAKEN:
        give_end(x, there);
        break;
    case SIBLING_LATER:
        gift_later(x, outcome);
        break;
    case SIBLING_REFUSED:
        gift_refused(x, outcome);
        break;
    case SIBLING_LOST:
        gift_lose(x);
        break;
    }
    give_stir(g);
}

/* --- Sending ---------------------------------------------------------------------- */

static int64_t
gift_read(void *context, int64_t offset, char *to, size_t size)
{
    struct gift *x = context;
    return queue_content_read(manager_queue(x->give->setup.manager), x->content, offset,
                              to, size);
}

/* False: it cannot be sent, and stays. */
static bool
gift_send(struct gift *x, struct give_host *h)
{
    struct give *g = x->give;
    const struct envelope *e = x->envelope;
    struct buffer form;
    buffer_init(&form, SIBLING_SECTIONS_MAX + BYTES_PER_TURN * 16);
    x->content = queue_content_open(manager_queue(g->setup.manager), e);
    bool fits = x->content >= 0 && envelope_write_given(e, &form) &&
                form.length <= SIBLING_SECTIONS_MAX;
    if (!fits) {
        buffer_free(&form);
        give_log(g, x->id,
                 x->content < 0 ? "its content cannot be read"
                                : "its envelope is too long",
                 "");
        gift_stays(x);
        return false;
    }
    gift_become(x, GIFT_SENT);
    x->host = h;
    h->sent++;
    g->progress.sent++;
    g->was_sent = true;
    struct sibling_gift gift = {
        .message = {.id = x->id,
                    .sections = form.length,
                    .content = e->content_size,
                    .crc = crc_join(crc_add(0, form.at, form.length), e->content_crc,
                    (uint64_t)e->content_size)},
        .sections = buffer_text(&form),
        .read = gift_read,
        .context = x,
        .given = give_on_answer
    };
    g->setup.calls->give(g->setup.calls->context, h->name, &gift);
    buffer_free(&form);
    return true;
}

/* The same host knows the messages it has taken. After a while it is taken for gone. */
static void
gift_ask_again(struct gift *x)
{
    struct give *g = x->give;
    int64_t now_ms = give_now_ms(g);
    if (now_ms - x->lost_ms >= LOST_MS) {
        gift_become(x, GIFT_READY);
        x->host = NULL;
        x->lost_ms = 0;
    } else if (now_ms >= x->again_ms &&
               give_has_room(g, x->host, x->envelope->content_size)) {
        (void)gift_send(x, x->host);
    }
}

/* While the manager is paused mail may be another host's.
 * Messages lent and not on their way: at most SIBLING_UNANSWERED a host, and one. */
static void
give_send_gifts(struct give *g)
{
    struct gift *x, *next;
    bool rests = g->rests || manager_is_paused(g->setup.manager);
    DL_FOREACH_SAFE (g->gifts, x, next) {
        if (x->state == GIFT_LOST)
            gift_ask_again(x);
    }
    DL_FOREACH_SAFE (g->gifts, x, next) {
        if (x->state != GIFT_READY)
            continue;
        struct give_host *h = rests ? NULL : give_choose(g, x);
        g->was_busy |= rests;
        if (h != NULL)
            (void)gift_send(x, h);
        else if (rests)
            gift_return(x);
        else if (x->is_unread)
            gift_put_off(x);
    }
}

/* A host is silent as long as a lost gift is there. */
static void
give_forget_silence(struct give *g)
{
    const struct gift *x;
    for (size_t i = 0; i < g->host_count; i++) {
        struct give_host *h = g->hosts[i];
        bool owes = false;
        if (!h->is_silent)
            continue;
        DL_FOREACH (g->gifts, x)
            owes = owes || (x->host == h && x->state != GIFT_READY && x->lost_ms != 0);
        if (!owes)
            h->paused_ms = give_now_ms(g) + AGAIN_MS;
        h->is_silent = owes;
    }
}

/* --- Lending ---------------------------------------------------------------------- */

static struct give_row *
give_first(const struct give *g)
{
    struct heap_node *node = heap_first(&g->rows);
    return node != NULL ? memory_container(node, struct give_row, node) : NULL;
}

static void
give_lent(struct give *g, struct id id, const struct manager_loan *loan)
{
    struct gift *x = memory_new(sizeof(*x));
    const struct envelope *e = loan->envelope;
    *x = (struct gift){.give = g,
                       .id = id,
                       .envelope = e,
                       .set = loan->set,
                       .state = GIFT_READY,
                       .content = -1};
    DL_APPEND(g->gifts, x);
    g->gift_count++;
    g->ready++;
    if (e->moved.given >= GIVE_MOVES_MAX) {
        give_log(g, id, "it has moved too often", "");
        gift_stays(x);
        return;
    }
    struct give_host *h = give_choose(g, x);
    if (h != NULL)
        (void)gift_send(x, h);
}

/* False: its content takes more turns; it stays first. */
static bool
give_lend_first(struct give *g, int64_t *budget)
{
    struct give_row *row = give_first(g);
    struct manager_loan loan = {.set = 0};
    struct id id = row->id;
    enum manager_lent lent = manager_lend(g->setup.manager, id, budget, &loan);
    if (lent == MANAGER_LEND_MORE)
        return false;
    heap_remove(&g->rows, &row->node);
    switch (lent) {
    case MANAGER_LENT:
        give_lent(g, id, &loan);
        break;
    case MANAGER_LEND_BUSY:
        g->was_busy = true;
        break;
    case MANAGER_LEND_GONE: /* its end may have left a notification */
        g->was_busy = true;
        id_set_add(&g->stay, id);
        break;
    case MANAGER_LEND_STAYS:
        g->progress.local++;
        id_set_add(&g->stay, id);
        break;
    case MANAGER_LEND_DAMAGED:
    case MANAGER_LEND_MORE:
        break;
    }
    return true;
}

static bool
give_may_lend(const struct give *g)
{
    bool is_open = false;
    for (size_t i = 0; i < g->host_count && !is_open; i++)
        is_open = !g->hosts[i]->is_silent && give_has_room(g, g->hosts[i], 0);
    return is_open && g->unended < GIVE_HURRY && g->ready < READY_MAX &&
           !manager_is_paused(g->setup.manager) && give_first(g) != NULL;
}

/* --- Listing ---------------------------------------------------------------------- */

static bool
give_is_sooner(const struct heap_node *first, const struct heap_node *second)
{
    const struct give_row *a = memory_container(first, struct give_row, node),
                          *b = memory_container(second, struct give_row, node);
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms
                                  : id_compare(a->id, b->id) < 0;
}

static bool
give_is_lent(const struct give *g, struct id id)
{
    const struct gift *x;
    DL_FOREACH (g->gifts, x)
        if (id_compare(x->id, id) == 0)
            return true;
    return false;
}

/* Mail of other slices in the same spool stays: their daemons are at work on it. */
static bool
give_wants(void *context, struct id id)
{
    const struct give *g = context;
    return manager_handles(g->setup.manager, id) && !id_set_has(&g->stay, id) &&
           !give_is_lent(g, id);
}

static void
give_begin_walk(struct give *g)
{
    assert(g->walk == NULL && give_first(g) == NULL);
    arena_free(&g->arena);
    arena_init(&g->arena, SIZE_MAX / 4); /* as many as there are messages */
    g->was_sent = g->walk_has_names = false;
    g->progress.quarantined = 0;
    /* A message that is being stored has no name yet: another walk follows. */
    g->was_busy = queue_is_storing(manager_queue(g->setup.manager));
    g->walk = queue_walk_begin(manager_queue(g->setup.manager), give_wants, g);
    give_stir(g);
}

/* Held mail comes last. */
static void
give_add_row(struct give *g, struct id id, enum queue_place place)
{
    struct sched_state known = sched_find(manager_sched(g->setup.manager), id);
    if (place == QUEUE_CORRUPT) {
        g->progress.quarantined++;
        return;
    }
    struct give_row *row = arena_get(&g->arena, sizeof(*row));
    *row = (struct give_row){.id = id,
                             .due_ms = place == QUEUE_HOLD ? INT64_MAX : known.due_ms};
    heap_add(&g->rows, &row->node);
}

/* True: the list is complete. */
static bool
give_list(struct give *g)
{
    struct id id;
    enum queue_place place;
    if (!g->walk_has_names) {
        int result = queue_walk_read(g->walk, NAMES_PER_TURN);
        g->walk_has_names = result <= 0;
        g->was_busy = g->was_busy || result < 0; /* another walk follows */
        return false;
    }
    for (size_t i = 0; i < ROWS_PER_TURN; i++) {
        if (!queue_walk_next(g->walk, &id, &place)) {
            queue_walk_end(&g->walk);
            return true;
        }
        give_add_row(g, id, place);
    }
    return false;
}

/* --- Steps ------------------------------------------------------------------------ */

/* A walk has found nothing more that could be given. Later mail, such as notifications,
 * is found by another one. */
static void
give_finish(struct give *g)
{
    if (g->gifts != NULL || g->unended > 0)
        return;
    if (g->was_sent && !g->rests && g->again_ms > give_now_ms(g)) {
        give_wait(g, AGAIN_MS);
    } else if (g->was_sent && !g->rests) {
        give_begin_walk(g);
    } else if (g->was_busy && !g->rests) {
        g->was_sent = true; /* so that a walk begins then */
        give_wait(g, AGAIN_MS);
    } else {
        g->is_over = true;
        loop_timer_stop(g->setup.loop, &g->timer);
        if (!g->rests)
            g->over(g->over_context);
    }
}

static void
give_send_some(struct give *g)
{
    int64_t budget = BYTES_PER_TURN;
    unsigned left = LENDS_PER_TURN;
    give_forget_silence(g);
    give_send_gifts(g);
    while (left > 0 && budget > 0 && give_may_lend(g)) {
        left--;
        if (!give_lend_first(g, &budget))
            break;
    }
    if (give_may_lend(g))
        give_stir(g);
    else if (give_first(g) != NULL || g->gifts != NULL)
        give_wait(g, TICK_MS); /* or the next answer */
    else
        give_finish(g);
}

static void
give_step(void *context)
{
    struct give *g = context;
    give_look(g);
    if (!g->rests)
        give_explain(g);
    if (g->walk == NULL)
        give_send_some(g);
    else if (give_list(g) || g->walk != NULL)
        give_stir(g);
}

/* --------------------------------------------------------------------------------- */

struct give *
give_new(const struct give_setup *setup, struct text to, void (*over)(void *context),
         void *over_context)
{
    struct give *g = memory_new(sizeof(*g));
    g->setup = *setup;
    g->over = over;
    g->over_context = over_context;
    g->to = text_string(to);
    arena_init(&g->arena, SIZE_MAX / 4);
    heap_init(&g->rows, give_is_sooner);
    manager_rest_loads(setup->manager);
    give_begin_walk(g);
    return g;
}

struct give_progress
give_progress(const struct give *g)
{
    struct give_progress p = g->progress;
    p.left = g->rows.count + g->gift_count;
    memcpy(p.why, g->why, sizeof(p.why));
    return p;
}

void
give_rest(struct give *g)
{
    queue_walk_end(&g->walk);
    heap_free(&g->rows);
    heap_init(&g->rows, give_is_sooner);
    arena_free(&g->arena);
    g->rests = true;
    give_stir(g);
}

void
give_again(struct give *g, struct text to)
{
    assert(g->rests);
    free(g->to);
    g->to = text_string(to);
    id_set_free(&g->stay);
    g->stay = (struct id_set){0};
    g->progress =
        (struct give_progress){.given = g->progress.given, .sent = g->progress.sent};
    g->why[0] = '\0';
    g->rests = g->is_over = false;
    manager_rest_loads(g->setup.manager);
    give_begin_walk(g);
}

void
give_free(struct give **give)
{
    struct give *g = *give;
    if (g == NULL)
        return;
    *give = NULL;
    g->is_over = true;
    loop_unpost(g->setup.loop, &g->task);
    loop_timer_stop(g->setup.loop, &g->timer);
    queue_barrier_cancel(&g->barrier);
    while (g->gifts != NULL) {
        struct gift *x = g->gifts;
        if (x->state == GIFT_SENT)
            g->setup.calls->ignore(g->setup.calls->context, x);
        gift_return(x);
    }
    queue_walk_end(&g->walk);
    heap_free(&g->rows);
    arena_free(&g->arena);
    id_set_free(&g->stay);
    for (size_t i = 0; i < g->host_count; i++)
        free(g->hosts[i]);
    free(g->to);
    free(g);
}
