/* The other hosts of a run, beside the one to which clients give their mail. Each has its
 * own kills, power cuts, stops and reloads, drawn from a stream of its own. */
#ifndef T_ROOF_FLEET_H
#define T_ROOF_FLEET_H

#include "t/roof/host.h"

struct fleet_plan {
    uint64_t seed;
    bool clocks;   /* are set */
    bool visitors; /* it answers HTTP */
    bool posts;    /* and takes mail so */
    bool paths;    /* may be narrow */
    bool hook;     /* the first host reports events */
    bool slices;   /* the first host is one of several on its spool */
    bool relay;    /* a smarthost: some domains go there, by a wire */
    bool group;    /* the first host is one of several that share limits */
    bool redis;    /* whose Redis comes and goes */
    bool fragments;
    bool kills, cuts, stops, reloads, disks; /* what may happen to them */
    const char *const *domains, *const *targets;
    unsigned domain_count; /* the last one is that of reports */
    unsigned used;         /* of them, that mail is for */
    void (*fill_dns)(struct dns *dns);
};

enum { FLEET_TARGETS_MAX = 16 };
/* Makes and starts them. */
void fleet_begin(const struct fleet_plan *plan);
/* The targets of the first host. */
const char *const *fleet_targets(void);
/* A sync of their disks may take so long. */
void fleet_note_sync(int64_t sync_ms);
void fleet_begin_trouble(void);
void fleet_become_good(void);
/* All run, and none is to end. */
bool fleet_is_up(void);
void fleet_terminate(void);
/* Their longest backoff, and recipients of a transaction, at most; 0: there are none. */
int64_t fleet_backoff_ms(void);
int64_t fleet_recipients(void);

#endif
