/* Which counter a refused connection and a stored message move. */
#include "smtp/session/session.h"

#include "t/support/tap.h"

#include <string.h>

TEST(refused)
{
    static const struct {
        struct refusal refusal;
        const char *word;
    } rows[] = {
        {{421, "4.7.0", "too many connections, try again later"}, "sessions"},
        {{421, "4.7.0", "too many TLS sessions, try again later"}, "sessions"},
        {{421, "4.7.0", "too many connections from your address"}, "client_sessions"},
        {{421, "4.7.0", "too many connections from your network, try again later"}, "client_sessions"},
        {{421, "4.7.0", "too many sessions from your address, try again in 3 s"}, "rate"},
        {{421, "4.7.0", "too many sessions, try again in 3 s"}, "rate"},
        {{421, "4.7.0", "too many failed logins from your address, try again later"}, "lockout"},
        {{421, "4.3.2", "shutting down, try again later"}, "draining"},
        {{421, "4.3.2", "out of service, try again later"}, "draining"},
        {{554, "5.7.1", "user not allowed to send mail here"}, "other"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct session_counts counts = {0};
        session_counts_refuse(&counts, &rows[i].refusal);
        for (int j = 0; j < SESSION_REFUSED_REASONS; j++)
            is_number((int64_t)counts.refused[j], strcmp(session_refused_word((enum session_refused)j), rows[i].word) == 0, rows[i].refusal.text);
    }
}

TEST(accept)
{
    struct session_counts counts = {0};
    session_counts_accept(&counts, 1000);
    session_counts_accept(&counts, 1001);
    session_counts_accept(&counts, 61 * 1000000LL);
    is_number((int64_t)counts.accepts[0], 1, "a millisecond");
    is_number((int64_t)counts.accepts[1], 1, "a little more");
    is_number((int64_t)counts.accepts[SESSION_ACCEPT_BOUNDS], 1, "beyond all bounds");
    is_number(counts.accept_sum_us, 61002001, "the sum");
}
