/* The query of a trace: an id, `<message-id>`, an address, `@domain`, an IP address, or
 * else words of a line. Letters' case does not matter. Pure. */
#ifndef ADMIN_HISTORY_TRACE_QUERY_H
#define ADMIN_HISTORY_TRACE_QUERY_H

#include "admin/history/history_line.h"

enum { TRACE_QUERIES_MAX = 16, TRACE_QUERY_MAX = 1000 };

enum trace_query_kind {
    TRACE_ID,
    TRACE_BRACKETED, /* the whole of a value: <message-id>, <address> */
    TRACE_ADDRESS,
    TRACE_DOMAIN, /* with its @ */
    TRACE_IP,     /* canonical */
    TRACE_WORDS
};

/* The members are borrowed but for text. */
struct trace_query {
    enum trace_query_kind kind;
    struct id id;
    char text[TRACE_QUERY_MAX + 1]; /* lower case */
};

/* False: it is empty or too long. */
bool trace_query_read(struct text t, struct trace_query *out)
    __attribute__((warn_unused_result));
/* id: of the line, all 0 if it has none. */
bool trace_query_matches(const struct trace_query *query, struct id id,
                         struct text line);

#endif
