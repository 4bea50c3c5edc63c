/* Sessions that deliver into Maildirs: each writes for one recipient in a turn until
 * its time is over, and blocks only on the disk. */
#include "queue/manager/local.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/manager/maildir.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

enum { STEP_BYTES = 1024 * 1024, TURN_US = 10 * 1000 };

struct visit {
    struct visit *prev, *next;
    struct local *local;
    struct sched_session *session;
    const struct target *target;
    int64_t opened_ms; /* monotonic */
    bool forbidden;
    bool in_request;
    struct delivery_request request;
    size_t next_recipient;             /* of the request: the first that is not
                                        * settled */
    struct maildir_delivery *delivery; /* of that recipient; NULL: not begun */
};

struct local {
    struct loop *loop;
    struct manager *manager;
    const char *hostname;
    bool (*may_write)(const void *context, const char *directory);
    const void *ask_context;
    struct visit *visits; /* the next one first */
    struct loop_task task;
};

static void
local_settle(struct visit *v, const struct outcome *outcome)
{
    size_t which = v->next_recipient++;
    struct delivery_request request = v->request;
    /* It ends with its last verdict. */
    v->in_request = v->next_recipient < request.count;
    manager_settled(v->local->manager, &request, which, outcome, NULL);
}

static void
local_end(struct visit *v, const struct outcome *why)
{
    struct local *local = v->local;
    assert(!v->in_request);
    DL_DELETE(local->visits, v);
    manager_session_ended(local->manager, v->session, why);
    loop_release(local->loop, free, v);
}

static void
local_abort(struct visit *v)
{
    struct outcome stopped = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2",
                                          "Petrel is shutting down");
    maildir_stop(&v->delivery);
    while (v->in_request)
        local_settle(v, &stopped);
    local_end(v, &stopped);
}

/* The sandbox was closed at startup, before a reload named this directory. Mail waits,
 * and the reason names the remedy. */
static bool
local_is_forbidden(const struct local *local, const struct target *target)
{
    char root[TARGET_PATH_MAX];
    maildir_root(target, root);
    return local->may_write && !local->may_write(local->ask_context, root);
}

static struct outcome
local_forbid(const struct visit *v)
{
    char root[TARGET_PATH_MAX];
    maildir_root(v->target, root);
    return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.5",
                        "the sandbox does not permit writing to %.300s: "
                        "restart Petrel",
                        root);
}

/* False: the delivery needs another turn. A large message takes several steps: between
 * them the sockets have their turn. */
static bool
deliver(struct visit *v, struct outcome *outcome)
{
    struct local *local = v->local;
    if (v->forbidden) {
        *outcome = local_forbid(v);
        return true;
    }
    if (v->delivery == NULL)
        v->delivery = maildir_start(manager_queue(local->manager), local->loop,
                                    v->target, local->hostname, v->request.envelope,
                                    v->request.indexes[v->next_recipient]);
    return maildir_go(&v->delivery, STEP_BYTES, outcome);
}

/* The message counts as at work during its step alone, so that a crash in another's
 * step is not charged to it. */
static void
local_step(struct visit *v)
{
    struct local *local = v->local;
    struct outcome outcome;
    if (!v->in_request) {
        v->in_request = manager_take(local->manager, v->session, &v->request);
        v->next_recipient = 0;
    }
    if (!v->in_request) {
        local_end(v, &outcome_no_trouble);
        return;
    }
    struct queue *queue = manager_queue(local->manager);
    struct id before = queue_enter(queue, v->request.envelope->id);
    if (deliver(v, &outcome))
        local_settle(v, &outcome);
    queue_leave(queue, before);
    /* To the end of the list, so that every session gets its step. */
    DL_DELETE(local->visits, v);
    DL_APPEND(local->visits, v);
}

/* Returns to the loop after its time: a slow disk must not starve the sockets. */
static void
local_work(void *context)
{
    struct local *local = context;
    struct visit *v;
    int64_t until_us = loop_clock_us() + TURN_US;
    size_t left;
    DL_COUNT(local->visits, v, left);
    while (left-- > 0) {
        local_step(local->visits);
        if (loop_clock_us() >= until_us)
            break;
    }
    if (local->visits)
        loop_post(local->loop, &local->task, local_work, local);
}

static void
local_watch(void *context, const struct sched_site *site, struct id message,
            manager_saw *each, void *each_context)
{
    const struct local *local = context;
    const struct visit *v;
    int64_t gap_ms = loop_now_ms(local->loop) - loop_monotonic_ms(local->loop);
    DL_FOREACH (local->visits, v) {
        struct activity a = {.kind = ACTIVITY_STORE,
                             .since_ms = v->opened_ms + gap_ms,
                             .has_message =
                                 v->in_request &&
                                 id_compare(v->request.envelope->id, message) == 0};
        char root[TARGET_PATH_MAX];
        maildir_root(v->target, root);
        (void)text_copy(a.what, sizeof(a.what), text_from(root));
        if (sched_session_is_at(v->session, site))
            each(each_context, &a);
    }
}

struct local *
local_new(struct loop *loop, struct manager *manager, const char *hostname)
{
    struct local *local = memory_new(sizeof(*local));
    local->loop = loop;
    local->manager = manager;
    local->hostname = hostname;
    manager_set_watch(manager, local_watch, local);
    return local;
}

void
local_reload(struct local *local, const char *hostname)
{
    local->hostname = hostname;
}

void
local_on_ask(struct local *local,
             bool (*may_write)(const void *context, const char *directory),
             const void *context)
{
    local->may_write = may_write;
    local->ask_context = context;
}

/* Deliveries that are cut off are repeated after the next startup: a file in tmp/ is no
 * mail yet. */
void
local_free(struct local **local)
{
    struct visit *v, *next;
    if (*local == NULL)
        return;
    DL_FOREACH_SAFE ((*local)->visits, v, next)
        local_abort(v);
    loop_unpost((*local)->loop, &(*local)->task);
    manager_set_watch((*local)->manager, NULL, *local);
    free(*local);
    *local = NULL;
}

/* It starts in the next turn: a channel never ends a session before it returns. */
void
local_open(void *context, struct sched_session *session, const struct target *target,
           const char *domain)
{
    struct local *local = context;
    struct visit *v = memory_new(sizeof(*v));
    assert(target->kind == TARGET_MAILDIR);
    (void)domain;
    v->local = local;
    v->session = session;
    v->target = target;
    v->opened_ms = loop_monotonic_ms(local->loop);
    v->forbidden = local_is_forbidden(local, target);
    DL_APPEND(local->visits, v);
    loop_post(local->loop, &local->task, local_work, local);
}
