/* Shared by fleet.c and those who make hosts of one kind. */
#ifndef T_ROOF_FLEET_INTERNAL_H
#define T_ROOF_FLEET_INTERNAL_H

#include "t/roof/fleet.h"
#include "t/roof/roof.h"

/* The first of the overrides that the first host alone has. */
enum { FLEET_OWN = 8 };

struct member {
    struct host *host;
    struct roof_timer start;
    bool disk_was_bad;
    void (*ended)(struct member *m, int64_t window_ms);
    void (*write)(struct member *m);     /* its settings, new ones; NULL: it has none */
    bool (*may_start)(struct member *m); /* NULL: always */
    bool is_away;                        /* it does not run, and that is right */
};

struct fleet {
    struct fleet_plan plan;
    uint64_t chance;
    bool is_good;
    int64_t sync_ms; /* the longest that a sync of a disk may have taken */
    const char *targets[FLEET_TARGETS_MAX];
    struct member members[HOSTS_MAX];
    unsigned count;
    struct roof_timer trouble, settle;
};
extern struct fleet fleet;

unsigned fleet_draw(unsigned limit);
/* With a disk of its own, or as a further process of machine. */
struct member *fleet_add(const char *name, const char *ip, struct host *machine);
/* Tries to start it, until it runs. */
void fleet_start(struct member *m, int64_t delay_ms);
/* The member of a host; NULL: it is the first host. */
struct member *fleet_member(const struct host *h);

#endif
