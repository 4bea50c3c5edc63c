/* Carries the lines of a session to a sibling. */
#include "admin/control/sibling_ask.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

static_assert((int)SIBLING_LINE_MAX > 16 * 1024, "a listing without recipients fits");

struct asking {
    struct control_service *service;
    struct sibling_asker asker;
    struct control_session *session; /* NULL: one too many */
    struct loop_task task;           /* begins, or ends a question that is too long */
    char *request;
    size_t length, bytes;
    bool is_over; /* too long: nothing more is written */
};

static void
sibling_ask_end(struct asking *a)
{
    a->asker.end(a->asker.context);
}

/* In a turn of its own: the writer of the answer is not ended within a line of it. */
static void
sibling_ask_cut(void *context)
{
    struct asking *a = context;
    control_session_free(&a->session);
    a->asker.line(a->asker.context,
                  TEXT("{\"ok\":false,\"error\":\"the answer is longer than 8 MiB: ask "
                       "for less\"}"));
    sibling_ask_end(a);
}

static void
sibling_ask_line(void *context, struct text json)
{
    struct asking *a = context;
    a->bytes += json.length;
    if (a->is_over)
        return;
    if (a->bytes <= SIBLING_ANSWER_MAX) {
        a->asker.line(a->asker.context, json);
        return;
    }
    a->is_over = true;
    loop_post(a->service->loop, &a->task, sibling_ask_cut, a);
}

static bool
sibling_ask_is_full(void *context)
{
    const struct asking *a = context;
    return a->is_over || a->asker.is_full(a->asker.context);
}

static bool
sibling_ask_is_idle(void *context)
{
    return !sibling_ask_is_full(context);
}

static void
sibling_ask_done(void *context)
{
    struct asking *a = context;
    if (!a->is_over)
        sibling_ask_end(a);
}

static void
sibling_ask_begin(void *context)
{
    struct asking *a = context;
    if (a->session == NULL)
        a->asker.line(a->asker.context,
                      TEXT("{\"ok\":false,\"error\":\"too many questions of other "
                           "hosts at a time: ask later\"}"));
    if (a->session == NULL ||
        control_session_take(a->session, text_of(a->request, a->length)))
        sibling_ask_done(a);
}

struct asking *
sibling_ask(struct control_service *service, struct text line,
            const struct sibling_asker *asker)
{
    struct asking *a = memory_new(sizeof(*a));
    a->service = service;
    a->asker = *asker;
    if (service->asked < SIBLING_ASKED_MAX)
        a->session = control_session_new(
            service, &(struct control_transport){.context = a,
                                                 .line = sibling_ask_line,
                                                 .is_full = sibling_ask_is_full,
                                                 .is_idle = sibling_ask_is_idle,
                                                 .done = sibling_ask_done,
                                                 .is_sibling = true,
                                                 .line_max = SIBLING_LINE_MAX});
    service->asked++;
    a->length = line.length;
    a->request = memory_new(line.length + 1);
    (void)!text_copy(a->request, line.length + 1, line);
    loop_post(service->loop, &a->task, sibling_ask_begin, a);
    return a;
}

void
sibling_ask_resume(struct asking *a)
{
    if (a->session != NULL)
        control_session_resume(a->session);
}

void
sibling_ask_drop(struct asking **asking)
{
    struct asking *a = *asking;
    *asking = NULL;
    a->service->asked--;
    loop_unpost(a->service->loop, &a->task);
    control_session_free(&a->session);
    loop_release(a->service->loop, free, a->request);
    loop_release(a->service->loop, free, a);
}
