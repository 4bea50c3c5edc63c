/* Questions about suppressed addresses, by the control socket, HTTP, and commands without a
 * daemon. While `suppress` is off they are refused.
 *
 *   suppress-list    {from, limit, q}: entries, limit at most, from that number on; and next,
 *                    from which to go on (0: these were the last), and count, of all. q: only
 *                    addresses that have it. An entry:
 *                    address, sender_domain ("": for all senders), class (doubtful, hard,
 *                    complaint, manual), reason, strikes, at_ms, until_ms (0: for ever)
 *   suppress-add     {lines}: as suppression_import_line(); added, and bad: index and error of
 *                    each line that is none
 *   suppress-remove  {addresses}: removed, the number of entries of each */
#ifndef ADMIN_ANSWER_SUPPRESSION_ANSWER_H
#define ADMIN_ANSWER_SUPPRESSION_ANSWER_H

#include "queue/manager/manager.h"

#include <jansson.h>

enum { SUPPRESSION_PAGE_MAX = 500, SUPPRESSION_LINES_MAX = 1000 };

/* The answer to the request, whose "command" is one of these; NULL: it is none. */
json_t *suppression_answer(struct manager *manager, int64_t now_ms,
                           const json_t *request);

#endif
