/* Shared by world.c (the course), swarm.c (the draw of a seed), trouble.c (what goes wrong)
 * and judge.c. */
#ifndef T_ROOF_WORLD_INTERNAL_H
#define T_ROOF_WORLD_INTERNAL_H

#include "base/dns/dns.h"
#include "t/roof/hop.h"
#include "t/roof/network.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"

enum {
    HOPS = 8,
    SETTLE_MS = 5000,
    LARGE_STEPS_CLEAR = 3 /* of the clock: behind more of them no age is known */
};

struct course {
    bool with[FEATURES];
    unsigned messages, begun, domain_count;
    bool
        is_dense; /* rare conditions are drawn more often, as not when older seeds were kept */
    unsigned storm; /* ends of the host that are to follow each other */
    bool is_good;   /* the weather, for good */
    bool is_over;   /* no host starts again */
    bool disk_was_bad;
    bool is_audited;      /* it is known what each fault may cost */
    bool has_failed;      /* the disk, by the audit, since the host began */
    bool joins_not;       /* fragments, by the routes now */
    uint64_t pace;        /* chance, of the disk's */
    bool waits_stored;    /* the power fails when a hop has stored something */
    int64_t slowest_ms;   /* that a sync has been, beyond what is usual */
    unsigned large_steps; /* of the clock */
    int64_t stepped_ms;   /* the last of them; 0: none */
    int64_t span_ms;      /* of mail and trouble */
    struct hop *hops[HOPS];
    struct roof_timer mail, trouble[FEATURES], start, compare, settle, end, fate;
    enum wait {
        WAIT_NOT,
        WAIT_KILL,
        WAIT_CUT
    } waits; /* for the next acknowledgement */
    struct network_path path;
    struct dns *dns;
};
extern struct course course;
/* --- swarm.c --- */

void swarm_draw(const struct wishes *wishes);
void swarm_make_hops(void);
void swarm_fill_dns(struct dns *dns);
void swarm_draw_path(const struct net_address *to, struct network_path *out);
/* reports: of the hop that they go to. */
struct hop_mood swarm_draw_mood(bool reports);

/* --- trouble.c --- */

void trouble_begin(void);
void trouble_end_host(bool power_cut);
/* It has ended, and starts again after that. */
void trouble_start_later(int64_t delay_ms);
void trouble_set_pace(int64_t spread_ms);
/* By the host and the model. */
struct host;
void trouble_host_stopped(struct host *h);
void trouble_acked(void);
void trouble_stored(void);

/* --- judge.c --- */

/* No mail is left, and nobody has any to give. */
bool judge_is_empty(void);
/* The host runs, and clients have ended. */
bool judge_is_quiet(void);
/* All mail has begun. */
bool judge_is_fed(void);
/* No host runs. */
bool judge_has_ended(void);
/* It was to be empty after so long. */
void judge_drain(int64_t limit_ms);
void judge_spool(void);
void judge_connections(void);
/* Watches it as long as files may be left. */
void judge_wait_clean(void);
void judge_heard(void);

/* --- world.c --- */

void world_run_until(int64_t end_ms, bool (*is_done)(void));

#endif
