/* Destinations: mail with a common next hop, by key. Internal to sched/.
 *
 * A destination is a domain or a named next hop, over one transport. Its mail waits at
 * its site. Until the servers of a domain are known it has a site of its own; then it
 * moves to the site of those servers (destination_move). Empty destinations are
 * remembered for a while, with the learnt state of their site. */
#ifndef SCHED_DESTINATION_H
#define SCHED_DESTINATION_H

#include "sched/site.h"

enum {
    DESTINATION_KEEP_MS = 3600000, /* an empty one keeps its site for this time */
    DESTINATION_EMPTY_MAX = 2000   /* empty ones; beyond that the one empty longest is
                                    * freed */
};

struct destination {
    UT_hash_handle hh;        /* the first of its key */
    struct destination *same; /* the next of its key, of another transport */
    struct destination *empty_prev, *empty_next;
    struct destination *site_prev, *site_next; /* members of its site */
    struct transport *transport;
    struct site *site;
    struct lane *lane;  /* of the site: that of its demand */
    char *key, *domain; /* domain "" unless TARGET_MX */
    int64_t free_at_ms;
    int64_t valid_until_ms; /* of its site and demand; 0: for ever */
    unsigned found;         /* set->found then; 0: they are not found yet */
    size_t entries;         /* of loaded messages, in any state */
    unsigned sessions;      /* opened for it */
    bool forget, is_empty;  /* forget: its domain does not exist */
    struct reason *reasons; /* all those in use by its recipients */
    struct entry *filling;  /* while a message is sorted by destination */
};

struct destinations {
    struct destination *by_key, *empty; /* empty longest first */
    struct sites sites;
    size_t count, empty_count;
    unsigned generation; /* of the settings; destinations_reload() */
    unsigned found;      /* answers of before count no more; see sched_ask_again() */
};

void destinations_init(struct destinations *set, uint64_t seed);
void destinations_free(struct destinations *set); /* no entry must wait */

/* The destination of that next hop and target, made if missing. After a reload, one
 * whose target has not been seen since moves to the present target, with its learnt
 * state. */
struct destination *destination_get(struct destinations *set,
                                    const struct target *target, struct text domain,
                                    int64_t now_ms);
/* Targets not seen from now on are obsolete. */
void destinations_reload(struct destinations *set);
const struct transport_params *destination_transport(const struct destination *d);

/* Its mail waits at the site with that key from now on. */
void destination_move(struct destinations *set, struct destination *d,
                      struct transport *transport, struct text key, int64_t now_ms);

/* Its mail goes only over sessions that have proven that demand from now on. */
void destination_demand(struct destinations *set, struct destination *d,
                        uint64_t demand);
/* It has a site of its own again, as before its servers were known; unless that is dead,
 * where its mail would wait for nothing. */
void destination_go_home(struct destinations *set, struct destination *d,
                         int64_t now_ms);

/* To be called after anything about d has changed, and for its site. d may be freed. */
void destination_update(struct destinations *set, struct destination *d,
                        int64_t now_ms);

/* The site of the first destination that has been without mail for an hour, or NULL;
 * that destination is forgotten, or kept for another hour while its site needs it. */
struct site *destinations_idle_site(const struct destinations *set, int64_t now_ms);
void destinations_forget_idle(struct destinations *set, int64_t now_ms);
int64_t destinations_wake_ms(const struct destinations *set); /* INT64_MAX = never */
/* Moves all times by delta_ms. */
void destinations_shift(struct destinations *set, int64_t delta_ms);

#endif
