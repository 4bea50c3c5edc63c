/* Sessions that deliver into Maildirs: one message a turn, blocking only on the disk.
 */
#include "queue/local.h"

#include "base/loop.h"
#include "base/memory.h"
#include "queue/maildir.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

struct visit {
    struct visit *prev, *next;
    struct local *local;
    struct sched_session *session;
    const struct target *target;
    int64_t opened_ms; /* monotonic */
    bool forbidden;
    struct loop_task task;
};

struct local {
    struct loop *loop;
    struct manager *manager;
    const char *hostname;
    bool (*may_write)(const void *context, const char *directory);
    const void *ask_context;
    struct visit *visits;
};

static void
end(struct visit *v, const struct outcome *trouble)
{
    struct local *local = v->local;
    DL_DELETE(local->visits, v);
    manager_session_ended(local->manager, v->session, trouble);
    loop_unpost(local->loop, &v->task);
    loop_release(local->loop, free, v);
}

static bool
is_forbidden(const struct local *local, const struct target *target)
{
    char root[TARGET_PATH_MAX];
    maildir_root(target, root);
    return local->may_write && !local->may_write(local->ask_context, root);
}

static struct outcome
deliver(const struct visit *v, const struct errand *errand, unsigned recipient)
{
    struct local *local = v->local;
    char root[TARGET_PATH_MAX];
    if (!v->forbidden)
        return maildir_deliver(manager_queue(local->manager), local->loop, v->target,
                               local->hostname, errand->envelope, recipient);
    maildir_root(v->target, root);
    return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.5",
                        "the sandbox does not allow to write to %.300s: needs a "
                        "restart of Petrel",
                        root);
}

/* One errand, then the loop gets its turn: a slow disk must not starve the sockets. */
static void
work(void *context)
{
    struct visit *v = context;
    struct local *local = v->local;
    struct errand errand;
    if (!manager_take(local->manager, v->session, &errand)) {
        end(v, NULL);
        return;
    }
    struct queue *queue = manager_queue(local->manager);
    struct id before = queue_enter(queue, errand.envelope->id);
    for (size_t i = 0; i < errand.count; i++) {
        struct outcome outcome = deliver(v, &errand, errand.indexes[i]);
        manager_settled(local->manager, &errand, i, &outcome, NULL);
    }
    queue_leave(queue, before);
    loop_post(local->loop, &v->task, work, v);
}

/* Between two errands: it carries no message when anybody asks. */
static void
local_watch(void *context, const struct sched_site *site, struct id message,
            manager_saw *each, void *each_context)
{
    const struct local *local = context;
    const struct visit *v;
    int64_t gap_ms = loop_now_ms(local->loop) - loop_monotonic_ms(local->loop);
    (void)message;
    DL_FOREACH (local->visits, v) {
        struct activity a = {.kind = ACTIVITY_STORE, .since_ms = v->opened_ms + gap_ms};
        char root[TARGET_PATH_MAX];
        maildir_root(v->target, root);
        (void)text_copy(a.what, sizeof(a.what), text_from(root));
        if (manager_session_is_at(v->session, site))
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
    manager_plug_watch(manager, local_watch, local);
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

void
local_free(struct local **local)
{
    struct visit *v, *next;
    if (*local == NULL)
        return;
    DL_FOREACH_SAFE ((*local)->visits, v, next)
        end(v, NULL);
    manager_plug_watch((*local)->manager, NULL, *local);
    free(*local);
    *local = NULL;
}

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
    v->forbidden = is_forbidden(local, target);
    DL_APPEND(local->visits, v);
    loop_post(local->loop, &v->task, work, v);
}
