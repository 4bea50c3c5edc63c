/* What the control socket reports of the parts that it does not know. */
#include "admin/startup/control_wiring.h"

size_t
control_wiring_sessions(void *listener, bool *stressed)
{
    *stressed = listener_is_stressed(listener);
    return listener_sessions(listener);
}

static json_t *
dkim_status(void *context)
{
    const struct control_wiring *w = context;
    struct signing_counts counts;
    if (!delivery_signing(w->delivery, &counts))
        return NULL;
    return json_pack("{s:I,s:I,s:I}", "signed", (json_int_t)counts.signed_count,
                     "failed", (json_int_t)counts.failed, "longest",
                     (json_int_t)counts.longest);
}

void
control_wiring_start(struct control_wiring *w)
{
    struct questions *questions = control_server_questions(w->control);
    questions_on_count(questions, control_wiring_sessions, w->listener);
    questions_on_part(questions, "dkim", dkim_status, w);
}
