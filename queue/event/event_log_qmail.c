/* The events of mail in the words of qmail-send's log (qmail-log(5)). */
#include "queue/event/event_log.h"

#include <inttypes.h>
#include <string.h>

enum { QMAIL_VALUE_MAX = 1024 };

/* Makes one word: a line end becomes '/', other separators '_'. */
static struct text
qmail_clean(struct text t, char out[QMAIL_VALUE_MAX])
{
    size_t length = t.length < QMAIL_VALUE_MAX ? t.length : QMAIL_VALUE_MAX;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)t.at[i];
        bool strange = byte < 33 || byte > 126 || byte == '%';
        out[i] = byte == '\n' ? '/' : strange ? '_' : t.at[i];
    }
    return text_of(out, length);
}

static void
qmail_status(const struct event_log *l)
{
    const struct event_log_qmail *q = &l->qmail;
    log_plain(l->log, "status: local %u/%u remote %u/%u", q->running[true], q->limit,
              q->running[false], q->limit);
}

static void
qmail_new(struct event_log *l, const struct event *v)
{
    char sender[QMAIL_VALUE_MAX], id[ID_LENGTH + 1];
    id_format(v->id, id);
    struct text from = qmail_clean(v->sender, sender);
    log_plain(l->log, "new msg %" PRIu64, v->id.hash);
    log_plain(l->log,
              "info msg %" PRIu64 ": bytes %" PRId64 " from <%.*s> qp 0 uid %u id %s",
              v->id.hash, v->size, TEXT_ARGS(from), v->injector, id);
}

static void
qmail_start(const struct event_log *l, const struct event *v)
{
    char address[QMAIL_VALUE_MAX];
    struct text to = qmail_clean(v->recipient, address);
    log_plain(l->log, "starting delivery %u: msg %" PRIu64 " to %s %.*s", v->delivery,
              v->id.hash, v->is_local ? "local" : "remote", TEXT_ARGS(to));
    qmail_status(l);
}

static bool
qmail_end(const struct event_log *l, const struct event *v, const char *word,
          const char *why)
{
    char text[QMAIL_VALUE_MAX];
    struct text said = qmail_clean(text_from(why), text);
    if (v->delivery == 0) /* the style was another one when it began */
        return false;
    log_plain(l->log, "delivery %u: %s: %.*s/", v->delivery, word, TEXT_ARGS(said));
    qmail_status(l);
    return true;
}

void
event_log_count(struct event_log *l, const struct event *v)
{
    unsigned *running = &l->qmail.running[v->is_local];
    if (v->kind == EVENT_ATTEMPTED)
        ++*running;
    else if (v->delivery > 0 && *running > 0)
        --*running;
}

bool
event_log_qmail(struct event_log *l, const struct event *v)
{
    switch ((unsigned)v->kind) {
    case EVENT_LOADED:
        qmail_new(l, v);
        return true;
    case EVENT_ATTEMPTED:
        qmail_start(l, v);
        return true;
    case EVENT_WITHDRAWN:
        return qmail_end(l, v, "deferral", "not made");
    case EVENT_DELIVERED:
        return qmail_end(l, v, "success", v->outcome->text);
    case EVENT_DEFERRED:
        return qmail_end(l, v, "deferral", v->outcome->text);
    case EVENT_BOUNCED:
    case EVENT_EXPIRED:
        return qmail_end(l, v, "failure", v->outcome->text);
    case EVENT_NOTIFIED:
        event_log_petrel(l, v);
        if (strcmp(v->reason, "delay") != 0)
            log_plain(l->log, "bounce msg %" PRIu64 " qp 0", v->id.hash);
        return true;
    case EVENT_DISCARDED:
        log_plain(l->log, "triple bounce: discarding bounce/%" PRIu64, v->id.hash);
        return true;
    case EVENT_ENDED:
        log_plain(l->log, "end msg %" PRIu64, v->id.hash);
        return true;
    case EVENT_STOPPING:
        log_plain(l->log, "status: exiting");
        return true;
    case EVENT_SUBMITTED: /* "info msg" says it */
        return true;
    default:
        return false;
    }
}
