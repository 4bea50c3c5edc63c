/* Counts events. */
#include "admin/metrics/metrics_counters.h"

#include "sched/limits/refusal.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *const metrics_sources[] = {"smtp",         "lmtp",        "sendmail",
                                       "notification", "reassembled", "peer"};
const char *const metrics_statuses[] = {"delivered", "deferred", "bounced", "expired"};
const char *const metrics_channels[] = {"smtp", "lmtp", "maildir", "other"};
/* The last one takes reasons without a name of their own. */
const char *const metrics_reasons[] = {
    "relay", "user",    "size",    "sender",     "helo", "rate",
    "quota", "syntax",  "auth",    "tls",        "disk", "spool",
    "loop",  "partial", "content", "recipients", "other"};
const char *const metrics_kinds[] = {"failure", "delay", "success", "postmaster"};
const char *const metrics_tls[] = {"none", "TLSv1.2", "TLSv1.3"};
const char *const metrics_stages[] = {"arrival", "queue", "connect", "transmit"};
const double metrics_delays[] = {0.01, 0.1, 1, 10, 60, 600, 3600, 86400};

const char *
metrics_class(size_t index)
{
    const char *name =
        index < REFUSAL_CLASSES ? refusal_name((enum refusal_class)index) : "none";
    return name[0] != '\0' ? name : "other";
}

/* The place of a word in a list; the last place when it is not there. */
static size_t
metrics_place(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (word != NULL && strcmp(words[i], word) == 0)
            return i;
    return count - 1;
}

static void
count_intake(struct metrics_counters *m, size_t source, const struct event *e)
{
    m->messages[source]++;
    m->recipients[source] += e->recipients;
    m->bytes[source] += e->size > 0 ? (uint64_t)e->size : 0;
}

static size_t
accepted_source(const struct event *e)
{
    const char *protocol = e->client != NULL ? e->client->protocol : NULL;
    if (memmem(e->text.at != NULL ? e->text.at : "", e->text.length, "peer", 4) != NULL)
        return METRICS_PEER;
    return protocol != NULL && strstr(protocol, "LMTP") != NULL ? METRICS_LMTP
                                                                : METRICS_SMTP;
}

static void
count_refusal_event(struct metrics_counters *m, const struct event *e)
{
    int class = e->outcome != NULL ? e->outcome->code / 100 : 0;
    if (class == 4 || class == 5)
        m->refusals[class - 4]
                   [metrics_place(metrics_reasons, METRICS_REASONS, e->reason)]++;
}

static void
count_reply(struct metrics_counters *m, const struct event *e)
{
    size_t class = e->outcome == NULL || e->outcome->code == 0
                       ? (size_t)REFUSAL_CLASSES
                       : (size_t)refusal_classify(e->outcome);
    m->replies[class]++;
}

static void
count_tls(struct metrics_counters *m, const struct event *e)
{
    size_t version = text_starts(e->tls, TEXT("TLSv1.3"))   ? 2
                     : text_starts(e->tls, TEXT("TLSv1.2")) ? 1
                                                            : 0;
    m->delivered[version][text_ends_nocase(e->tls, TEXT("/verified"))]++;
}

static void
count_verdict(struct metrics_counters *m, const struct event *e)
{
    size_t status = (size_t)(e->kind - EVENT_DELIVERED);
    const char *program = e->program != NULL ? e->program : "";
    size_t channel = metrics_place(metrics_channels, METRICS_CHANNELS,
                                   strcmp(program, "local") == 0 ? "maildir" : program);
    m->deliveries[status][channel]++;
    if (e->kind != EVENT_DELIVERED) {
        count_reply(m, e);
        return;
    }
    for (size_t i = 0; i < METRICS_STAGES; i++)
        metric_histogram_add(&m->delays[i], metrics_delays, METRICS_DELAYS,
                             (double)e->delay_ms[i] / 1000);
    if (channel <= METRICS_LMTP)
        count_tls(m, e);
}

uint64_t
metrics_events(void)
{
    return EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED) |
           EVENT_BIT(EVENT_MADE) | EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_DENIED) |
           EVENT_BIT(EVENT_LOCKED) | EVENT_BIT(EVENT_DELIVERED) |
           EVENT_BIT(EVENT_DEFERRED) | EVENT_BIT(EVENT_BOUNCED) |
           EVENT_BIT(EVENT_EXPIRED) | EVENT_BIT(EVENT_NOTIFIED);
}

void
metrics_count(void *context, const struct event *e)
{
    struct metrics_counters *m = context;
    if (e->kind == EVENT_ACCEPTED)
        count_intake(m, accepted_source(e), e);
    else if (e->kind == EVENT_SUBMITTED)
        count_intake(m, METRICS_SENDMAIL, e);
    else if (e->kind == EVENT_MADE)
        count_intake(m,
                     e->reason != NULL && strcmp(e->reason, "reassembled") == 0
                         ? METRICS_REASSEMBLED
                         : METRICS_NOTIFICATION,
                     e);
    else if (e->kind == EVENT_REFUSED)
        count_refusal_event(m, e);
    else if (e->kind == EVENT_DENIED)
        m->denied++;
    else if (e->kind == EVENT_LOCKED)
        m->locked++;
    else if (e->kind == EVENT_NOTIFIED)
        m->notifications[metrics_place(metrics_kinds, METRICS_KINDS, e->reason)]++;
    else if (e->kind >= EVENT_DELIVERED && e->kind <= EVENT_EXPIRED)
        count_verdict(m, e);
}

/* --- As metrics ---------------------------------------------------------------------- */

/* The words of one index of an array. */
struct metrics_axis {
    const char *key;
    const char *const *words; /* NULL: metrics_class() */
    size_t count;
};
#define AXIS(key, words, count)                                                        \
    {                                                                                  \
        key, words, count                                                              \
    }
#define NO_AXIS AXIS(NULL, NULL, 1)
#define SOURCES AXIS("source", metrics_sources, METRICS_SOURCES)
#define ARRAY(family, member, first, second)                                           \
    {                                                                                  \
        family, offsetof(struct metrics_counters, member), first, second               \
    }

static const char *const refusal_digits[] = {"4", "5"};
static const char *const verified_words[] = {"no", "yes"};

/* The arrays of counters, each a family. */
static const struct metrics_array {
    const char *family;
    size_t offset;
    struct metrics_axis first, second;
} metrics_arrays[] = {
    ARRAY("petrel_messages_accepted", messages, SOURCES, NO_AXIS),
    ARRAY("petrel_recipients_accepted", recipients, SOURCES, NO_AXIS),
    ARRAY("petrel_accepted_bytes", bytes, SOURCES, NO_AXIS),
    ARRAY("petrel_refusals", refusals, AXIS("class", refusal_digits, 2),
          AXIS("reason", metrics_reasons, METRICS_REASONS)),
    ARRAY("petrel_deliveries", deliveries,
          AXIS("status", metrics_statuses, METRICS_STATUSES),
          AXIS("via", metrics_channels, METRICS_CHANNELS)),
    ARRAY("petrel_replies", replies, AXIS("class", NULL, METRICS_CLASSES), NO_AXIS),
    ARRAY("petrel_delivered_tls", delivered, AXIS("tls", metrics_tls, METRICS_TLS),
          AXIS("verified", verified_words, 2)),
    ARRAY("petrel_notifications", notifications,
          AXIS("kind", metrics_kinds, METRICS_KINDS), NO_AXIS),
};

static const char *
metrics_axis_word(const struct metrics_axis *a, size_t index)
{
    return a->words != NULL ? a->words[index] : metrics_class(index);
}

static void
metrics_array_write(const struct metrics_array *a, const uint64_t *counts,
                    struct metrics_writer *w)
{
    char labels[METRICS_LABELS_MAX];
    for (size_t i = 0; i < a->first.count * a->second.count; i++) {
        size_t second = i % a->second.count;
        int length = snprintf(labels, sizeof(labels), "%s=\"%s\"", a->first.key,
                              metrics_axis_word(&a->first, i / a->second.count));
        if (a->second.key != NULL)
            snprintf(labels + length, sizeof(labels) - (size_t)length, ",%s=\"%s\"",
                     a->second.key, metrics_axis_word(&a->second, second));
        metrics_write_count(w, labels, counts[i]);
    }
}

void
metrics_counters_write(const struct metrics_counters *m, struct metrics_writer *w)
{
    for (size_t i = 0; i < sizeof(metrics_arrays) / sizeof(metrics_arrays[0]); i++)
        if (w->family != NULL && strcmp(metrics_arrays[i].family, w->family->name) == 0)
            metrics_array_write(
                &metrics_arrays[i],
                (const uint64_t *)(const void *)((const char *)m +
                                                 metrics_arrays[i].offset),
                w);
}
