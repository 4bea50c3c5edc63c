/* Counts connections by their result. */
#include "smtp/session/session_counts.h"

#include <string.h>

const double session_accept_bounds_s[SESSION_ACCEPT_BOUNDS] = {0.001, 0.005, 0.025, 0.1,
                                                               0.5,   2.5,   10,    60};

const char *
session_refused_word(enum session_refused reason)
{
    static const char *const words[SESSION_REFUSED_REASONS] = {
        [SESSION_REFUSED_SESSIONS] = "sessions",
        [SESSION_REFUSED_CLIENT_SESSIONS] = "client_sessions",
        [SESSION_REFUSED_RATE] = "rate",
        [SESSION_REFUSED_LOCKOUT] = "lockout",
        [SESSION_REFUSED_PROXY] = "proxy",
        [SESSION_REFUSED_DRAINING] = "draining",
        [SESSION_REFUSED_DESCRIPTORS] = "descriptors",
        [SESSION_REFUSED_OTHER] = "other"};
    return words[reason];
}

/* By the reply to the client. */
static enum session_refused
session_refused_reason(const struct refusal *r)
{
    static const struct {
        const char *begins;
        enum session_refused reason;
    } rows[] = {
        {"too many connections from your", SESSION_REFUSED_CLIENT_SESSIONS},
        {"too many connections",           SESSION_REFUSED_SESSIONS       },
        {"too many TLS",                   SESSION_REFUSED_SESSIONS       },
        {"too many failed logins",         SESSION_REFUSED_LOCKOUT        },
        {"too many ",                      SESSION_REFUSED_RATE           },
    };
    if (strcmp(r->enhanced, "4.3.2") == 0)
        return SESSION_REFUSED_DRAINING;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (text_starts(text_from(r->text), text_from(rows[i].begins)))
            return rows[i].reason;
    return SESSION_REFUSED_OTHER;
}

void
session_counts_refuse(struct session_counts *counts, const struct refusal *refusal)
{
    counts->refused[session_refused_reason(refusal)]++;
}

void
session_counts_accept(struct session_counts *counts, int64_t took_us)
{
    size_t i = 0;
    while (i < SESSION_ACCEPT_BOUNDS &&
           (double)took_us > session_accept_bounds_s[i] * 1e6)
        i++;
    counts->accepts[i]++;
    counts->accept_sum_us += took_us;
}
