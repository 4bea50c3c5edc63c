/* The plan of a run. What a seed draws comes as items, numbered in their kind: messages,
 * troubles, settings, moods. Each has a stream of chance of its own and may be omitted,
 * and neither changes the others: so a run that broke a law can be shrunk (shrink.h).
 *
 * A list of omitted items is "mail:0-3.7 kill:2": of the kind `mail` 0 to 3 and 7, of
 * `kill` 2. */
#ifndef T_ROOF_PLAN_H
#define T_ROOF_PLAN_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    PLAN_KINDS_MAX = 64,
    PLAN_ITEMS_MAX = 4096, /* of a kind; later ones are never omitted */
    PLAN_NAME_MAX = 16,
    PLAN_TEXT_MAX = 16 * 1024
};

/* Without pointers: another process reads it. */
struct plan {
    struct plan_kind {
        char name[PLAN_NAME_MAX];
        unsigned count; /* that a run came to */
        unsigned char omitted[PLAN_ITEMS_MAX / 8];
    } kinds[PLAN_KINDS_MAX];
    size_t kind_count;
};

/* False: not such a list. */
bool plan_read(struct plan *p, struct text list);
void plan_write(const struct plan *p, char out[PLAN_TEXT_MAX]);
bool plan_omits(const struct plan_kind *k, unsigned number);
void plan_omit(struct plan_kind *k, unsigned from, unsigned end, bool omitted);

/* The plan of this run, which counts its items in p from now on. */
void plan_begin(struct plan *p);
/* The item is to be. */
bool plan_takes(const char *kind, unsigned number);
/* The number of the next one of the kind. */
unsigned plan_next(const char *kind);
/* Chance is that of the item until plan_leave(); one within another is allowed. */
void plan_enter(const char *kind, unsigned number);
void plan_leave(void);

#endif
