/* The types of the members of requests to the control socket, for all its commands.
 *
 * A member of a wrong type would be read as if it were missing, and something else be
 * answered or done than was meant. */
#ifndef ADMIN_CONTROL_REQUEST_TYPES_H
#define ADMIN_CONTROL_REQUEST_TYPES_H

#include <jansson.h>
#include <stdbool.h>

enum { REQUEST_TYPES_WHY_MAX = 96 };

/* False: it is no object, its command no string, or a member that this command has is of
 * another type, null included; why names the member and both types. Commands and members
 * that are not known here pass: others judge them. */
bool request_types_check(const json_t *request, char why[REQUEST_TYPES_WHY_MAX])
    __attribute__((warn_unused_result));

#endif
