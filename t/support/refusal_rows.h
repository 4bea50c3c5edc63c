/* Replies of hosts, and the class that each of them is of. */
#ifndef T_SUPPORT_REFUSAL_ROWS_H
#define T_SUPPORT_REFUSAL_ROWS_H

#include <stddef.h>

struct refusal_row {
    const char *class, *host, *reply;
};

/* Each as the log has it, by the name of its reply. */
void refusal_rows_check(const struct refusal_row *rows, size_t count);

#endif
