/* Logs the events of mail as qmail-send does. */
#include "queue/manager/qmail_log.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>

/* Numbers start again beyond it: a handle has one bit less, and is not 0. */
enum { DELIVERIES_MAX = INT_MAX };

static const char *const channels[] = {
    [CHANNEL_LOCAL] = "local", [CHANNEL_REMOTE] = "remote"};

/* Makes one word: a line end becomes '/', other separators '_'. */
static struct text
qmail_log_clean(struct text t, char out[QMAIL_LOG_VALUE_MAX])
{
    size_t length = t.length < QMAIL_LOG_VALUE_MAX ? t.length : QMAIL_LOG_VALUE_MAX;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)t.at[i];
        bool strange = byte < 33 || byte > 126 || byte == '%';
        out[i] = byte == '\n' ? '/' : strange ? '_' : t.at[i];
    }
    return text_of(out, length);
}

bool
qmail_log_is_on(const struct qmail_log *s)
{
    return log_style(s->log) == LOG_STYLE_QMAIL;
}

static void
say_status(struct qmail_log *s)
{
    log_plain(s->log, "status: local %u/%u remote %u/%u", s->running[CHANNEL_LOCAL],
              s->limit, s->running[CHANNEL_REMOTE], s->limit);
}

void
qmail_log_new(struct qmail_log *s, const struct envelope *e)
{
    char sender[QMAIL_LOG_VALUE_MAX], id[ID_LENGTH + 1];
    if (!qmail_log_is_on(s))
        return;
    id_format(e->id, id);
    struct text from = qmail_log_clean(e->sender, sender);
    log_plain(s->log, "new msg %" PRIu64, e->id.hash);
    log_plain(s->log,
              "info msg %" PRIu64 ": bytes %" PRId64 " from <%.*s> qp 0 uid %u id %s",
              e->id.hash, (int64_t)e->prefix.length + e->content_size, TEXT_ARGS(from),
              e->storage.injector, id);
}

/* The handle: number and channel. */
static enum channel
qmail_log_channel_of(unsigned delivery)
{
    return (delivery & 1) != 0 ? CHANNEL_REMOTE : CHANNEL_LOCAL;
}

unsigned
qmail_log_start(struct qmail_log *s, const struct envelope *e, unsigned index,
                enum channel channel)
{
    char address[QMAIL_LOG_VALUE_MAX];
    if (!qmail_log_is_on(s))
        return 0;
    struct text to = qmail_log_clean(e->recipients[index].address, address);
    s->running[channel]++;
    s->deliveries = s->deliveries % DELIVERIES_MAX + 1;
    log_plain(s->log, "starting delivery %u: msg %" PRIu64 " to %s %.*s", s->deliveries,
              e->id.hash, channels[channel], TEXT_ARGS(to));
    say_status(s);
    return s->deliveries << 1 | (channel == CHANNEL_REMOTE);
}

/* The log style may have changed since the delivery began. */
static void
qmail_log_end_line(struct qmail_log *s, unsigned delivery, const char *word,
                   struct text why)
{
    char text[QMAIL_LOG_VALUE_MAX];
    assert(s->running[qmail_log_channel_of(delivery)] > 0);
    s->running[qmail_log_channel_of(delivery)]--;
    if (!qmail_log_is_on(s))
        return;
    struct text said = qmail_log_clean(why, text);
    log_plain(s->log, "delivery %u: %s: %.*s/", delivery >> 1, word, TEXT_ARGS(said));
    say_status(s);
}

static const char *
result_word(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_DELIVERED:
        return "success";
    case VERDICT_FAILED:
        return "failure";
    case VERDICT_DEFERRED:
        break;
    }
    return "deferral";
}

bool
qmail_log_result(struct qmail_log *s, unsigned delivery, const struct envelope *e,
                 unsigned index, enum channel channel, const struct outcome *outcome)
{
    if (delivery == 0)
        delivery = qmail_log_start(s, e, index, channel);
    if (delivery != 0)
        qmail_log_end_line(s, delivery, result_word(outcome->verdict),
                           text_from(outcome->text));
    return qmail_log_is_on(s);
}

void
qmail_log_stopped(struct qmail_log *s, unsigned delivery)
{
    if (delivery != 0)
        qmail_log_end_line(s, delivery, "deferral", TEXT("not made"));
}

void
qmail_log_bounce(struct qmail_log *s, struct id id)
{
    if (qmail_log_is_on(s))
        log_plain(s->log, "bounce msg %" PRIu64 " qp 0", id.hash);
}

void
qmail_log_discard(struct qmail_log *s, struct id id)
{
    if (qmail_log_is_on(s))
        log_plain(s->log, "triple bounce: discarding bounce/%" PRIu64, id.hash);
}

void
qmail_log_end(struct qmail_log *s, struct id id)
{
    if (qmail_log_is_on(s))
        log_plain(s->log, "end msg %" PRIu64, id.hash);
}

void
qmail_log_exit(struct qmail_log *s)
{
    if (qmail_log_is_on(s))
        log_plain(s->log, "status: exiting");
}
