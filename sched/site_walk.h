/* Walks over all sites, some at a time, while sites come and go between the steps: those
 * that are there from begin to end are met once, others perhaps. Internal to sched/;
 * sched.h has sched_walk_begin(). */
#ifndef SCHED_SITE_WALK_H
#define SCHED_SITE_WALK_H

#include "sched/site.h"

struct site_walk {
    struct site_walk *prev, *next;
    struct sites *set; /* NULL: the sites are gone */
    struct site *site; /* the next one; NULL: none is left */
};

struct site_walk *site_walk_begin(struct sites *set);
/* Meets at most `most`; each frees none. False: none is left. */
bool site_walk_step(struct site_walk *walk, size_t most,
                    void (*each)(void *context, struct site *site), void *context);
/* Leaves the site where it stands, which is not NULL, for the next one. */
void site_walk_pass(struct site_walk *walk);
void site_walk_end(struct site_walk **walk); /* NULL inside: nothing */

/* The site is about to be freed. */
void site_walks_leave(struct sites *set, const struct site *site);
/* The sites are about to be freed; walks find none any more, and are still to be ended. */
void site_walks_forget(struct sites *set);

#endif
