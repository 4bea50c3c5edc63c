/* The shape of the queue: how much mail waits for whom, and since when. A table of names
 * by ages, whose columns are those of Postfix's qshape(1). */
#ifndef ADMIN_COMMAND_SHAPE_H
#define ADMIN_COMMAND_SHAPE_H

#include "base/text.h"
#include "queue/envelope/envelope.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SHAPE_AGES = 10,         /* columns: up to 5, 10, 20 ... 1280 minutes, and older */
    SHAPE_ROWS = 20,         /* shown by name; the rest is `other` */
    SHAPE_NAMES_MAX = 200000 /* kept; further names count as `other` */
};

struct shape;

struct shape *shape_new(void);
void shape_free(struct shape **s);
/* count more of this name, in any case of its letters. */
void shape_add(struct shape *s, struct text name, int64_t age_ms, uint64_t count);
/* Those with most mail first. */
void shape_print(struct shape *s, FILE *out);
/* {ages_min, total {count, ages}, rows [{name, count, ages}], other {names, count, ages}}. */
json_t *shape_make(struct shape *s);

/* `petrel queue shape`: the counts of a message, and their names. */
enum shape_by { SHAPE_BY_RECIPIENT, SHAPE_BY_SENDER, SHAPE_BY_SITE };

/* Takes --by X or --by=X out of the arguments, whose number becomes less. False: one line
 * was written to standard error. */
bool shape_parse(int *count, char **arguments, enum shape_by *by)
    __attribute__((warn_unused_result));
const char *shape_word(enum shape_by by);

/* Adds the recipients that wait, by their domains or by the site that they wait for, or
 * the message by its sender's domain. why: the daemon's answer, whose hops have the sites;
 * NULL: it does not know the message. */
void shape_add_message(struct shape *s, enum shape_by by, const struct envelope *e,
                       const json_t *why, int64_t now_ms);

#endif
