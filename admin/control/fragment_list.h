/* The sets of fragments that wait, for operators. */
#ifndef ADMIN_CONTROL_FRAGMENT_LIST_H
#define ADMIN_CONTROL_FRAGMENT_LIST_H

#include "queue/manager/manager.h"

#include <jansson.h>

/* At most count sets, oldest first, but for the first `from` of them; an empty array at
 * the end. Between two calls sets come and go. A set:
 *
 *   set          its name in the log
 *   sender       null: not known now
 *   recipient    one of them
 *   recipients, messages, bytes
 *   have, missing  arrays of numbers: at most 100 each, those up to 1000
 *   have_count, total  numbers; total null: not known
 *   since_ms, until_ms
 *   owner        the host that reassembles it, in words
 *   reassembling
 *
 * The envelope of one message of each is read. */
json_t *fragment_list_page(struct manager *manager, size_t from, size_t count);

#endif
