/* Replies of hosts, and the class that each of them is of. */
#include "t/support/refusal_rows.h"

#include "sched/limits/refusal.h"
#include "t/support/tap.h"

void
refusal_rows_check(const struct refusal_row *rows, size_t count)
{
    char text[1000];
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text),
                 "host %s[192.0.2.25] said: %s (in reply to end of DATA command)",
                 rows[i].host, rows[i].reply);
        is_string(refusal_name(refusal_classify_text(text)), rows[i].class,
                  rows[i].reply);
    }
}
