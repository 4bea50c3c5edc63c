/* A run: what a seed draws, and the virtual days of it. */
#ifndef T_ROOF_WORLD_H
#define T_ROOF_WORLD_H

#include "base/buffer.h"
#include "t/roof/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* The actors and faults of a run, by name: ONLY=reload,kill. */
enum feature {
    WITH_RELOADS,
    WITH_KILLS,
    WITH_CUTS,    /* of the power */
    WITH_STOPS,   /* SIGTERM, and a start */
    WITH_MOODS,   /* hops refuse, cut, wait, lie */
    WITH_WEATHER, /* hops are away */
    WITH_OPERATOR,
    WITH_INJECTORS,
    WITH_CLOCKS,            /* the wall clock is set */
    WITH_DISKS,             /* calls of the disk fail; it is full */
    WITH_PATHS,             /* slow, narrow and choppy connections */
    WITH_MX,                /* records change */
    FEATURES_OF_ONE_STREAM, /* those behind it have streams of their own */
    WITH_TLS = FEATURES_OF_ONE_STREAM,
    WITH_RELAY,    /* a smarthost, itself one of ours */
    WITH_SLICES,   /* daemons that share the spool */
    WITH_PACES,    /* syncs of the disk take their time, in any order */
    WITH_VISITORS, /* clients of HTTP */
    WITH_HOOK,     /* a program hears of events by HTTP */
    WITH_DSN,      /* NOTIFY, ORCPT and RET */
    WITH_DOUBLE,   /* replies come twice, or within the content */
    WITH_AUTH,     /* clients log in, and the host at hops; needs WITH_TLS */
    WITH_ALIASES,
    WITH_MAILDIRS,
    WITH_FRAGMENTS,
    WITH_LIMITS,   /* quotas, rates, providers */
    WITH_UPGRADES, /* a version with another form of files */
    WITH_GROUP,    /* hosts that share limits, and take each other's mail */
    WITH_REDIS,    /* their Redis comes and goes; needs WITH_GROUP */
    WITH_POLICIES, /* of MTA-STS; with WITH_TLS alone */
    WITH_AGES,     /* mail expires within hours */
    WITH_TOKENS,   /* of OAuth2; with WITH_TLS alone */
    WITH_COPIES,   /* of each message, for an archive */
    WITH_APP,      /* a web application gets the mail of a domain */
    WITH_RETURNS,  /* tagged senders, and reports that come back to them */
    WITH_DEAD,     /* addresses that are suppressed; on the first host alone */
    WITH_RELEASES, /* mail that is to be delivered later */
    WITH_POSTS,    /* mail by HTTP; needs WITH_VISITORS */
    WITH_REQUIRES, /* REQUIRETLS; with WITH_TLS alone */
    WITH_DAY,      /* 24 h of what providers are paid for (day_features); drawn by no seed */
    WITH_ENGINE,   /* copies in a Redis that comes and goes; on the first host; drawn by a theme */
    WITH_LOST_DISK, /* of the first host; needs WITH_ENGINE; drawn by a theme */
    WITH_SIBLINGS, /* hosts of a group are lost or cut off, and adopted; drawn by a theme */
    WITH_DRILL, /* little mail, and exact questions again and again; drawn by a theme */
    FEATURES
};
extern const char *const feature_names[FEATURES];

struct wishes {
    uint64_t seed;
    const char *only;   /* NULL: what the seed draws */
    const char *broken; /* a law that this run breaks on purpose, or NULL */
    struct plan *plan;  /* what it omits; it counts its items there */
    bool traced;
};

struct tally {
    unsigned runs; /* in a sum */
    uint64_t hash, turns;
    int64_t virtual_ms;
    unsigned messages, recipients, stored, reported, twice;
    unsigned kills, cuts, reloads, starts, commands;
    unsigned compared, explained, remembered; /* law_truth.h, law_history.h */
    unsigned posted;           /* poster.h */
    unsigned returned, forged; /* returner.h */
    unsigned to_dead, dead_tries, dead_addresses; /* dead.h */
    unsigned claims; /* law_adoption.h */
};

/* For the audit. Runs for so long, or until is_done(), which may be NULL; true: it is. */
bool world_run_for(int64_t ms, bool (*is_done)(void));
/* The host ends, in order or not, and runs again. */
void world_restart(bool by_kill);
/* between() is called while it is down. */
void world_restart_with(bool by_kill, void (*between)(void));
void world_cut(void);
void world_step_clock(int64_t step_ms);
/* For all hops but that of reports. */
struct hop_mood;
void world_set_moods(const struct hop_mood *m);
/* For the first domain's hop alone. */
void world_set_first_mood(const struct hop_mood *m);
/* For that of reports alone. */
void world_set_back_mood(const struct hop_mood *m);
/* They take connections, or refuse them. */
void world_set_hops(bool up);
/* The first domain has a route with these options from now on ("": without any), and the
 * host reads all settings of the editor. */
void world_set_route(const char *options);
/* Not a run as when older seeds were kept. */
bool world_is_dense(void);
/* So many calls of the disk from now on one fails: EIO. */
void world_fail_call(unsigned calls);
/* The disk fails now: what it keeps then is told in the log of the next start. */
void world_note_fault(void);
/* It has, since the host began. */
bool world_has_failed(void);
/* The host has so many open. */
size_t world_sockets(void);

/* One run. A broken law ends the process. */
struct tally world_run(const struct wishes *wishes);

#endif
