/* Warns of refusals that an operator can end: once an hour for a class and a host. The
 * outcome lines have each of them, but not the remedy. */
#include "base/crc.h"
#include "queue/manager/manager_internal.h"

#include <string.h>

enum { HOUR_MS = 60 * 60 * 1000 };

/* Those of the mail itself are the sender's to end. */
static bool refusal_is_operators(enum refusal_class class)
{
    switch (class) {
    case REFUSAL_AUTH:
    case REFUSAL_PTR:
    case REFUSAL_REPUTATION:
    case REFUSAL_SENDER:
    case REFUSAL_LOGIN:
    case REFUSAL_QUOTA:
    case REFUSAL_RELAY:
    case REFUSAL_POLICY:
        return true;
    case REFUSAL_OTHER:
    case REFUSAL_NO_USER:
    case REFUSAL_NO_DOMAIN:
    case REFUSAL_FULL:
    case REFUSAL_TOO_BIG:
    case REFUSAL_CONTENT:
    case REFUSAL_TLS:
    case REFUSAL_FORM:
    case REFUSAL_CLASSES:
        break;
    }
    return false;
}

struct text
refusal_host(const struct outcome *outcome)
{
    struct text host = text_from(outcome->remote);
    size_t bracket = text_find(host, '[');
    return bracket == 0 ? host : text_before(host, bracket);
}

/* A key that another one has overwritten is logged again: the table is small. */
static bool
is_due(struct manager *m, enum refusal_class class, struct text host)
{
    uint32_t key = crc_add((uint32_t) class, host.at, host.length);
    struct refusal_logged *at =
        &m->refusals_logged[key % (sizeof(m->refusals_logged) /
                                   sizeof(m->refusals_logged[0]))];
    int64_t now = loop_now_ms(m->loop);
    if (at->key == key && at->ms != 0 && now >= at->ms && now - at->ms < HOUR_MS)
        return false;
    *at = (struct refusal_logged){key, now};
    return true;
}

void
refusal_warning(struct manager *m, const struct outcome *outcome)
{
    char hint[REFUSAL_HINT_MAX];
    enum refusal_class class = refusal_classify(outcome);
    if (outcome->blame == BLAME_ADDRESS || !refusal_is_operators(class) ||
        !refusal_hint(outcome, hint) || !is_due(m, class, refusal_host(outcome)))
        return;
    log_say(m->log, LOG_LEVEL_WARNING, "smtp", NULL, "%.*s refuses mail (%s): %s",
            TEXT_ARGS(refusal_host(outcome)), refusal_name(class), hint);
}
