/* A command of the operator with its selection, as one line of JSON:
 *
 *   {"command": "hold"|"release"|"retry"|"bounce"|"rm",
 *    "ids": ["..."], "all": true,
 *    "to": "...", "from": "...", "older_ms": N, "place": "deferred", "first": "..."}
 *
 * What selects is as in filter.h; at least one of it must be there. */
#ifndef ADMIN_CONTROL_REQUEST_H
#define ADMIN_CONTROL_REQUEST_H

#include "admin/control/filter.h"
#include "queue/manager/manager.h"

#include <jansson.h>

bool request_find_verb(const char *word, enum manager_verb *verb);
const char *request_word(enum manager_verb verb);

/* The caller's. */
json_t *request_write(enum manager_verb verb, const struct filter *f);
/* The same for another command that selects messages. */
json_t *request_write_as(const char *command, const struct filter *f);
/* Reads all of it or nothing: NULL, or why not. Texts in the filter are the request's.
 */
const char *request_read(const json_t *request, enum manager_verb *verb,
                         struct filter *f) __attribute__((warn_unused_result));

/* The same for a command that changes nothing: without anything that selects it means
 * every message. */
const char *request_read_filter(const json_t *request, struct filter *f)
    __attribute__((warn_unused_result));

#endif
