/* Takes mail that siblings give: reads it into a draft, checks it, has it stored with its
 * state, and remembers it, so that it is taken once. */
#include "queue/group/take.h"

#include "base/crc.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/event/event.h"
#include "queue/group/give.h"
#include "queue/manager/manager.h"
#include "queue/queue_operator.h"
#include "queue/spool/injected.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
    CAME_MAX = ENVELOPE_CAME_MAX + 1,
    SIZE_SLACK = 10,     /* percent above message_size_limit */
    WAY_MS = 60 * 1000,  /* clocks that differ by less agree: the way takes time, too */
    CROWD_MOVES = 10000, /* messages that wait to become files */
};

/* A message that was taken, or is being stored: then waiting has its givers, also of a
 * second time. */
struct known {
    char *came; /* HOST/ID */
    struct id own;
    int64_t taken_ms;       /* monotonic */
    struct taking *waiting; /* NULL: it is durable */
    struct envelope *kept;  /* adopted: then, until take_decide(); and its hold */
    char *hold;
    char *before; /* where the giver had it from; "", or NULL: of an earlier run */
    struct known *prev, *next;
    struct known *storing_prev, *storing_next;
    UT_hash_handle hh;
};

struct taking {
    struct take *take;
    char came[CAME_MAX], host[GROUP_HOST_MAX + 1];
    struct sibling_message message;
    struct known *known; /* as which it is being stored */
    struct id own;       /* the answer */
    int64_t behind_ms;   /* the clock of the giver, behind ours */
    struct buffer sections;
    struct queue_draft *draft;
    int64_t content; /* bytes that have come */
    uint32_t crc, content_crc;
    struct outcome refusal;
    bool refused, counts; /* counts: its sections do */
    bool adopts;
    char hold[ENVELOPE_HOLD_MAX + 1];
    sibling_taken *taken; /* NULL: nobody waits for the answer */
    void *context;
    struct taking *prev, *next; /* of those that are to be answered, or of known */
};

struct take {
    struct take_setup setup;
    struct known *by_came, *oldest; /* oldest: in the order in which they were taken */
    struct known *storing;          /* those that are not durable */
    struct taking *answers;
    struct loop_task answer;
    size_t sections; /* announced, of those that were not answered */
};

/* --- Taken messages --------------------------------------------------------------- */

static struct known *
take_find(const struct take *t, const char *came)
{
    struct known *k = NULL;
    HASH_FIND_STR(t->by_came, came, k);
    return k;
}

static void
known_free(struct take *t, struct known *k)
{
    assert(k->waiting == NULL);
    HASH_DEL(t->by_came, k);
    DL_DELETE(t->oldest, k);
    envelope_free(&k->kept);
    free(k->hold);
    free(k->before);
    free(k->came);
    free(k);
}

/* Those that are being stored are among the newest, and few. */
static void
take_forget_old(struct take *t)
{
    int64_t now_ms = loop_monotonic_ms(t->setup.loop);
    struct known *k = t->oldest;
    while (k != NULL && k->waiting == NULL && k->kept == NULL &&
           (HASH_COUNT(t->by_came) > TAKE_KNOWN_MAX ||
            k->taken_ms < now_ms - TAKE_KNOWN_MS)) {
        struct known *next = k->next;
        known_free(t, k);
        k = next;
    }
}

static struct known *
take_remember(struct take *t, const char *came, int64_t taken_ms)
{
    struct known *k = memory_new(sizeof(*k));
    k->came = memory_string(came);
    k->taken_ms = taken_ms;
    HASH_ADD_KEYPTR(hh, t->by_came, k->came, strlen(k->came), k);
    DL_APPEND(t->oldest, k);
    take_forget_old(t);
    return k;
}

/* Notes a message of an earlier run: its id says when. A copy of the record names the same
 * message. */
static void
take_recall(void *context, const char *came, struct id id)
{
    struct take *t = context;
    struct known *k = take_find(t, came);
    int64_t age_ms = loop_now_ms(t->setup.loop) - (int64_t)id.time_ms;
    if (k == NULL)
        take_remember(t, came,
                      loop_monotonic_ms(t->setup.loop) - (age_ms > 0 ? age_ms : 0));
    k = take_find(t, came); /* it may have been too old */
    if (k != NULL)
        k->own = id;
}

/* --- Whether it is taken ---------------------------------------------------------- */

/* A journal that is full only makes answers late, and few are outstanding. */
static bool
take_is_crowded(const struct take *t)
{
    return queue_moves(manager_queue(t->setup.manager)) >= CROWD_MOVES;
}

static bool
take_is_too_large(const struct take *t, const struct sibling_message *message)
{
    int64_t limit = t->setup.message_size_limit;
    return message->sections > SIBLING_SECTIONS_MAX || message->content < 0 ||
           (limit > 0 && message->content > limit + limit / 100 * SIZE_SLACK);
}

static bool
take_is_closed(const struct take *t, struct outcome *refusal)
{
    const char *closed =
        t->setup.closed != NULL ? t->setup.closed(t->setup.context) : NULL;
    if (closed != NULL)
        outcome_refuse(refusal, 451, "4.3.2", closed);
    return closed != NULL;
}

/* Before a byte of it is read. An adopted message has no other host to go to. */
static bool
take_admits(const struct take *t, const struct sibling_message *message, bool adopts,
            struct outcome *refusal)
{
    if (!adopts && take_is_too_large(t, message))
        return outcome_refuse(refusal, 552, "5.3.4", "Message is too large");
    if (take_is_closed(t, refusal))
        return false;
    if (take_is_crowded(t) || t->sections + message->sections > TAKE_SECTIONS_MAX)
        return outcome_refuse(refusal, 451, "4.3.2",
                              "Too much mail comes: try another host");
    return true;
}

/* By how much a time there is earlier than the same here. */
static int64_t
take_behind_ms(const struct take *t, const struct sibling_hello *from)
{
    if (from->now_ms == 0)
        return 0;
    int64_t since_ms = loop_monotonic_ms(t->setup.loop) - from->heard_ms;
    int64_t behind_ms = loop_now_ms(t->setup.loop) - (from->now_ms + since_ms);
    return behind_ms < WAY_MS && behind_ms > -WAY_MS ? 0 : behind_ms;
}

static void
take_write_came(const char *host, struct id was, char out[CAME_MAX])
{
    char id[ID_LENGTH + 1];
    id_format(was, id);
    snprintf(out, CAME_MAX, "%s/%s", host, id);
}

static struct taking *
take_open(struct take *t, const char *host, const struct sibling_message *message,
          bool adopts, struct outcome *refusal)
{
    char came[CAME_MAX];
    take_write_came(host, message->id, came);
    take_forget_old(t);
    struct known *k = take_find(t, came);
    struct queue_draft *draft = NULL;
    if (k == NULL) {
        if (!take_admits(t, message, adopts, refusal))
            return NULL;
        draft = queue_begin(manager_queue(t->setup.manager), message->content, refusal);
        if (draft == NULL)
            return NULL;
    }
    struct taking *taking = memory_new(sizeof(*taking));
    taking->take = t;
    taking->message = *message;
    taking->draft = draft;
    taking->adopts = adopts;
    snprintf(taking->came, sizeof(taking->came), "%s", came);
    snprintf(taking->host, sizeof(taking->host), "%s", host);
    buffer_init(&taking->sections, message->sections + 1);
    if (draft != NULL)
        t->sections += message->sections;
    taking->counts = draft != NULL;
    return taking;
}

static struct taking *
take_begin(void *context, const struct sibling_hello *from,
           const struct sibling_message *message, struct outcome *refusal)
{
    struct take *t = context;
    struct taking *taking = take_open(t, from->host, message, false, refusal);
    if (taking != NULL)
        taking->behind_ms = take_behind_ms(t, from);
    return taking;
}

struct taking *
take_adopt(struct take *t, const char *host, const struct sibling_message *message,
           struct outcome *refusal)
{
    return take_open(t, host, message, true, refusal);
}

static void
taking_free(struct taking *g)
{
    if (g->counts)
        g->take->sections -= g->message.sections;
    queue_discard(&g->draft);
    buffer_free(&g->sections);
    free(g);
}

static void
taking_refuse(struct taking *g, int code, const char *enhanced, const char *text)
{
    outcome_refuse(&g->refusal, code, enhanced, text);
    g->refused = true;
}

/* A known message is read and dropped. */
static void
take_bytes(struct taking *g, struct text bytes)
{
    size_t want = g->message.sections - g->sections.length;
    struct text sections = text_before(bytes, want),
                content = text_after(bytes, sections.length);
    g->crc = crc_add(g->crc, bytes.at, bytes.length);
    if (g->draft == NULL)
        return;
    if (sections.length > 0) {
        bool fits = buffer_add(&g->sections, sections);
        assert(fits);
    }
    content = text_before(content, (size_t)(g->message.content - g->content));
    if (content.length == 0)
        return;
    g->content += (int64_t)content.length;
    g->content_crc = crc_add(g->content_crc, content.at, content.length);
    (void)queue_write(g->draft, content);
}

/* --- Answers ---------------------------------------------------------------------- */

static void
take_answer(void *context)
{
    struct take *t = context;
    while (t->answers != NULL) {
        struct taking *g = t->answers;
        DL_DELETE(t->answers, g);
        if (g->taken != NULL)
            g->taken(g->context, g->own, g->refused ? &g->refusal : NULL);
        taking_free(g);
    }
}

/* In a later turn. */
static void
taking_answer(struct taking *g)
{
    struct take *t = g->take;
    if (g->known != NULL && !g->refused)
        g->own = g->known->own;
    g->known = NULL;
    DL_APPEND(t->answers, g);
    loop_post(t->setup.loop, &t->answer, take_answer, t);
}

static void
take_tell(const struct take *t, const struct envelope *e, bool adopted)
{
    struct text was = e->moved.came, host;
    (void)!text_cut(&was, '/', &host);
    struct id id = {0};
    (void)!id_parse(was, &id);
    const struct event_field fields[] = {
        {.key = "from",   .kind = EVENT_TEXT, .value = host           },
        {.key = "was",    .kind = EVENT_TEXT, .value = was            },
        {.key = "first",  .kind = EVENT_TEXT, .value = e->moved.first },
        {.key = "status", .kind = EVENT_TEXT, .value = TEXT("adopted")}
    };
    size_t count = sizeof(fields) / sizeof(fields[0]) - !adopted;
    event_tell(t->setup.events, &(struct event){.kind = EVENT_TAKEN,
                                                .id = e->id,
                                                .other = id,
                                                .fields = fields,
                                                .field_count = count});
}

static void
take_remember_before(struct take *t, const struct known *k)
{
    if (k->before[0] == '\0' || take_find(t, k->before) != NULL)
        return;
    struct known *same = take_remember(t, k->before, k->taken_ms);
    same->own = k->own;
    same->before = memory_string("");
}

static void
known_take_over(struct take *t, struct known *k, bool adopted)
{
    if (adopted)
        take_remember_before(t, k);
    take_tell(t, k->kept, adopted);
    manager_take_over(t->setup.manager, &k->kept, k->hold);
    free(k->hold);
    k->hold = NULL;
}

/* Its owner has given it: whatever the engine says of its copy afterwards it is ours. */
static bool
known_is_given(const struct known *k)
{
    const struct taking *g;
    DL_FOREACH (k->waiting, g)
        if (!g->adopts)
            return true;
    return false;
}

/* All that have asked for it get the same answer. A refused one is not known. */
static void
take_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct known *k = context;
    struct taking *g, *next, *first = k->waiting;
    struct take *t = first->take;
    if (refusal == NULL) {
        k->own = e->id;
        k->kept = e;
        k->hold = memory_string(first->hold);
        if (known_is_given(k))
            known_take_over(t, k, first->adopts);
    }
    DL_DELETE2(t->storing, k, storing_prev, storing_next);
    /* The one that was stored last had its id before others waited for it. */
    DL_FOREACH_SAFE (k->waiting, g, next) {
        DL_DELETE(k->waiting, g);
        g->refused = refusal != NULL;
        if (g->refused)
            g->refusal = *refusal;
        taking_answer(g);
    }
    if (refusal != NULL)
        known_free(t, k);
}

/* --- Every byte has come ---------------------------------------------------------- */

static bool
taking_is_whole(const struct taking *g)
{
    return (g->adopts || g->crc == g->message.crc) &&
           g->sections.length == g->message.sections &&
           g->content == g->message.content;
}

/* Its times are by our clock from now on: it keeps its age, and waits as long as there. A
 * time that no clock shows stays as it is, to be judged as such. */
static void
taking_set_times(const struct taking *g, struct envelope *e)
{
    int64_t *const times[] = {&e->birth_ms, &e->delivery.due_ms};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (*times[i] > 0 && *times[i] <= SIBLING_TIME_MAX_MS)
            *times[i] += g->behind_ms;
}

/* NULL: good. */
static const char *
taking_judge(const struct taking *g, struct envelope *e)
{
    taking_set_times(g, e);
    const char *why = injected_take_given(e, loop_now_ms(g->take->setup.loop));
    e->birth_ms = manager_clock_written_ms(g->take->setup.manager, e->birth_ms);
    return why;
}

/* NULL: it is refused. */
static struct envelope *
taking_read(struct taking *g)
{
    struct envelope *e = envelope_new();
    const char *why;
    char text[OUTCOME_TEXT_MAX];
    if (!taking_is_whole(g))
        taking_refuse(g, 451, "4.3.0", "Its bytes have changed on the way");
    else if (envelope_read_todo(buffer_text(&g->sections), g->message.id, e) !=
                 PROGRESS_DONE ||
             e->count == 0 || e->content_size != g->content ||
             e->content_crc != g->content_crc)
        taking_refuse(g, 554, "5.5.4", "This version cannot read its envelope");
    else if ((why = taking_judge(g, e)) != NULL) {
        snprintf(text, sizeof(text), "Not an envelope: %s", why);
        taking_refuse(g, 554, "5.5.4", text);
    } else if (e->moved.given >= (g->adopts ? ENVELOPE_MOVES_MAX : GIVE_MOVES_MAX))
        taking_refuse(g, 554, "5.4.6", "It has moved too often");
    if (g->refused)
        envelope_free(&e);
    return e;
}

/* The first name stays. */
static void
taking_note_move(const struct taking *g, struct envelope *e)
{
    char id[ID_LENGTH + 1];
    id_format(g->message.id, id);
    if (e->moved.given == 0)
        e->moved.first = envelope_text(e, text_from(id));
    e->moved.came = envelope_text(e, text_from(g->came));
    e->moved.given++;
}

static bool
taking_is_known(struct taking *g, const char *came)
{
    struct known *k = take_find(g->take, came);
    if (k == NULL)
        return false;
    g->known = k;
    if (k->kept != NULL && !g->adopts)
        known_take_over(g->take, k, true);
    if (k->waiting != NULL)
        DL_APPEND(k->waiting, g);
    else
        taking_answer(g);
    return true;
}

/* The lost host had adopted it, and the copy that it had it from may be left: one message. The
 * disk may have lost what an earlier run took. */
static bool
taking_is_known_before(struct taking *g, const struct envelope *e)
{
    char *before = text_string(e->moved.came);
    const struct known *k = take_find(g->take, before);
    bool is_known = k != NULL && k->before != NULL && taking_is_known(g, before);
    free(before);
    return is_known;
}

static void
taking_store(struct taking *g, struct envelope *e)
{
    struct take *t = g->take;
    struct known *k = take_remember(t, g->came, loop_monotonic_ms(t->setup.loop));
    k->before = text_string(e->moved.came);
    (void)text_copy(g->hold, sizeof(g->hold), e->moved.hold);
    taking_note_move(g, e);
    g->known = k;
    DL_APPEND(k->waiting, g);
    DL_APPEND2(t->storing, k, storing_prev, storing_next);
    queue_name(g->draft, e);
    queue_takes(g->draft);
    queue_commit(&g->draft, &e, take_stored, k);
}

static void
take_end(struct taking **taking, sibling_taken *taken, void *taken_context)
{
    struct taking *g = *taking;
    *taking = NULL;
    g->taken = taken;
    g->context = taken_context;
    /* Perhaps it was given a second time before the first was durable. */
    if (taking_is_known(g, g->came))
        return;
    if (g->draft == NULL) { /* it was forgotten meanwhile */
        taking_refuse(g, 451, "4.3.0", "Give it once more");
        taking_answer(g);
        return;
    }
    /* Meanwhile: it would come too late to leave. */
    g->refused = take_is_closed(g->take, &g->refusal);
    struct envelope *e = g->refused ? NULL : taking_read(g);
    if (e == NULL)
        taking_answer(g);
    else if (g->adopts && taking_is_known_before(g, e))
        envelope_free(&e);
    else
        taking_store(g, e);
}

void
take_decide(struct take *t, const char *host, struct id was, bool is_ours)
{
    char came[CAME_MAX];
    take_write_came(host, was, came);
    struct known *k = take_find(t, came);
    if (k == NULL || k->kept == NULL)
        return;
    struct id own = k->own;
    if (is_ours) {
        known_take_over(t, k, true);
        return;
    }
    known_free(t, k);
    queue_disown(manager_queue(t->setup.manager), own);
}

static void
take_drop(struct taking **taking)
{
    if (*taking != NULL)
        taking_free(*taking);
    *taking = NULL;
}

static void
take_ignore(void *context, void *taken_context)
{
    struct take *t = context;
    struct taking *g;
    DL_FOREACH (t->answers, g)
        if (g->context == taken_context)
            g->taken = NULL;
    /* Not all that are known: a connection that breaks has up to 64 to ignore. */
    for (struct known *k = t->storing; k != NULL; k = k->storing_next)
        DL_FOREACH (k->waiting, g)
            if (g->context == taken_context)
                g->taken = NULL;
}

/* --------------------------------------------------------------------------------- */

struct take *
take_new(const struct take_setup *setup)
{
    struct take *t = memory_new(sizeof(*t));
    t->setup = *setup;
    queue_each_taken(manager_queue(setup->manager), TAKE_KNOWN_MAX, take_recall, t);
    return t;
}

void
take_free(struct take **take)
{
    struct take *t = *take;
    struct known *k, *next;
    struct taking *g, *following;
    if (t == NULL)
        return;
    *take = NULL;
    loop_unpost(t->setup.loop, &t->answer);
    DL_FOREACH_SAFE (t->answers, g, following) {
        DL_DELETE(t->answers, g);
        taking_free(g);
    }
    DL_FOREACH_SAFE (t->oldest, k, next) {
        if (k->waiting != NULL)
            queue_commit_ignore(manager_queue(t->setup.manager), k);
        DL_FOREACH_SAFE (k->waiting, g, following) {
            DL_DELETE(k->waiting, g);
            taking_free(g);
        }
        known_free(t, k);
    }
    free(t);
}

void
take_reload(struct take *t, int64_t message_size_limit)
{
    t->setup.message_size_limit = message_size_limit;
}

void
take_serve(struct take *t, struct sibling_service *service)
{
    service->context = t;
    service->take = take_begin;
    service->take_bytes = take_bytes;
    service->take_end = take_end;
    service->take_drop = take_drop;
    service->take_ignore = take_ignore;
}
