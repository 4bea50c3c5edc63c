/* Other hosts of a group in this process. */
#include "t/support/siblings_memory.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct memory_question {
    struct memory_question *prev, *next;
    struct siblings_memory *memory;
    struct memory_host *host;
    struct sibling_listener listener;
    struct asking *asking;
    struct loop_task task;
    char *answer;
    bool is_over;
};

static void
question_end(struct memory_question *q)
{
    q->is_over = true;
    DL_DELETE(q->memory->questions, q);
    loop_unpost(q->memory->loop, &q->task);
    if (q->asking != NULL)
        sibling_ask_drop(&q->asking);
    loop_release(q->memory->loop, free, q->answer);
    loop_release(q->memory->loop, free, q);
}

static void
question_line(void *context, struct text json)
{
    struct memory_question *q = context;
    q->listener.line(q->listener.context, q->host->name, json);
}

static void
question_over(void *context)
{
    struct memory_question *q = context;
    struct sibling_listener listener = q->listener;
    const char *name = q->host->name, *breaks = q->host->breaks;
    question_end(q);
    listener.end(listener.context, name, breaks);
}

static bool
is_never_full(void *context)
{
    (void)context;
    return false;
}

static void
question_turn(void *context)
{
    struct memory_question *q = context;
    struct text rest = text_from(q->answer), line;
    while (!q->is_over && rest.length > 0 && text_cut(&rest, '\n', &line))
        question_line(q, line);
    if (!q->is_over)
        question_over(q);
}

static struct memory_host *
memory_find(struct siblings_memory *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->hosts[i].name, name) == 0)
            return &m->hosts[i];
    abort();
}

static void
memory_ask(void *context, const char *host, struct text line, int64_t timeout_ms,
           const struct sibling_listener *listener)
{
    struct siblings_memory *m = context;
    struct memory_question *q = memory_new(sizeof(*q));
    (void)timeout_ms;
    q->memory = m;
    q->host = memory_find(m, host);
    q->listener = *listener;
    q->host->asked++;
    if (!text_copy(q->host->line, sizeof(q->host->line), line))
        abort();
    DL_APPEND(m->questions, q);
    const char *answer = q->host->answers != NULL ? q->host->answers(q->host, q->host->line) : q->host->answer;
    if (q->host->service != NULL) {
        q->asking = sibling_ask(q->host->service, line, &(struct sibling_asker){question_line, question_over, is_never_full, q});
    } else if (answer != NULL || q->host->breaks != NULL) {
        q->answer = memory_string(answer != NULL ? answer : "");
        loop_post(m->loop, &q->task, question_turn, q);
    }
}

static void
memory_ignore(void *context, void *callback_context)
{
    struct siblings_memory *m = context;
    struct memory_question *q, *next;
    DL_FOREACH_SAFE (m->questions, q, next)
        if (q->listener.context == callback_context) {
            q->host->ignored++;
            question_end(q);
        }
}

static void
memory_siblings(void *context, bool (*each)(void *context, const struct sibling *sibling), void *each_context)
{
    struct siblings_memory *m = context;
    for (size_t i = 0; i < m->count; i++) {
        struct sibling s = {.host = m->hosts[i].name, .address = m->hosts[i].has_no_address ? "" : "127.0.0.1:1", .state = "running", .version = "1", .spool = "", .is_lost = m->hosts[i].is_lost};
        if (!each(each_context, &s))
            return;
    }
}

void
siblings_memory_begin(struct siblings_memory *m, struct loop *loop, const char *own)
{
    *m = (struct siblings_memory){.loop = loop};
    m->calls = (struct sibling_calls){.context = m, .ask = memory_ask, .ignore = memory_ignore};
    m->who = (struct cluster_hosts){.calls = &m->calls, .why = "", .host = own, .siblings = memory_siblings, .context = m};
}

struct memory_host *
siblings_memory_add(struct siblings_memory *m, const char *name)
{
    struct memory_host *h = &m->hosts[m->count++];
    *h = (struct memory_host){.name = name};
    return h;
}

unsigned
siblings_memory_open(const struct siblings_memory *m)
{
    struct memory_question *q;
    unsigned count = 0;
    DL_COUNT(m->questions, q, count);
    return count;
}
