/* Conditions of readiness, and the question about them. */
#ifndef ADMIN_CONTROL_HEALTH_H
#define ADMIN_CONTROL_HEALTH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { HEALTH_CHECKS_MAX = 8 };

struct health_check {
    const char *name;
    bool good;
    char why[160]; /* when not */
};

/* Where the conditions come from. */
struct health {
    /* Fills the conditions, and returns their number. */
    size_t (*look)(void *context, struct health_check checks[HEALTH_CHECKS_MAX]);
    void *context;
};

/* True: all hold. count and checks as of look. */
bool health_is_ready(const struct health *health, size_t *count,
                     struct health_check checks[HEALTH_CHECKS_MAX]);
/* A questions_on() handler whose context is a struct health: {"command": "health"} is
 * answered by ready, and checks (name, ok, why). */
json_t *health_answer(void *health, const json_t *request);

#endif
