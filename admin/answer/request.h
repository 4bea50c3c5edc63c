/* A command of the operator with its selection, as one line of JSON:
 *
 *   {"command": "hold"|"release"|"retry"|"bounce"|"rm",
 *    "ids": ["..."], "all": true,
 *    "to": "...", "from": "...", "older_ms": N, "place": "deferred", "first": "..."}
 *
 * What selects is as in filter.h; at least one of it must be there. */
#ifndef ADMIN_ANSWER_REQUEST_H
#define ADMIN_ANSWER_REQUEST_H

#include "admin/answer/filter.h"
#include "queue/manager/manager.h"

#include <jansson.h>
#include <stdbool.h>

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

/* The types of the members of requests to the control socket, for all its commands.
 *
 * A member of a wrong type would be read as if it were missing, and something else be
 * answered or done than was meant. */
enum { REQUEST_TYPES_WHY_MAX = 96 };

/* False: it is no object, its command no string, or a member that this command has is of
 * another type, null included; why names the member and both types. Commands and members
 * that are not known here pass: others judge them. */
bool request_types_check(const json_t *request, char why[REQUEST_TYPES_WHY_MAX])
    __attribute__((warn_unused_result));

#endif
