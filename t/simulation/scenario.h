/* Scenarios: a weather script for the scheduler, as text. Parsing only;
 * t/simulation/simulation.h runs them. Pure.
 *
 * One statement a line; `#` begins a comment. Times are 10ms, 5s, 30m, 2h, 1d.
 *
 *   seed N                      of all random choices; 1
 *   until TIME | until done     when to stop; done: when no message is left
 *   active_limit N              also active_recipient_limit, delivery_session_limit
 *                               and site_active_share: as the settings
 *   transport KEY=VALUE...      options of a route: concurrency=20 adaptive=no
 *   target NAME [KEY=VALUE...]  another target of the routes; begins with the options
 *                               of the transport above
 *   client dns=5ms idle=2s      time of a look-up; how long a session stays idle
 *   site NAME [A..B] [SETTING...]
 *                               servers; settings as in
 *                               t/simulation/fake_server.h
 *   address SITE NAME [SETTING...]
 *                               one of several servers of a site, instead of the
 *                               one it has by default; begins with the site's
 *                               settings
 *   domain NAME [A..B] site SITE [target NAME]
 *                               a domain with those servers
 *   at TIME site SITE SETTING...
 *   at TIME address SITE NAME SETTING...
 *                               other settings from then on
 *   at TIME flush               as `petrel queue retry --all`
 *   arrive domain=D [count=N] [recipients=N] [size=10K] [sender=S] [class=C]
 *          [name=X] [at=TIME] [every=TIME | rate=10/s] [for=TIME] [random]
 *                               mail; for: in place of count
 *
 * NAME with %d and a range A..B stands for that many names. Later the name with %d
 * means all of them, and the name with a number means one. Domains are spread over the
 * sites of such a name in turn, and messages over its domains. sender=u%d@x.example:
 * each message has its own sender. Without every= or rate= all messages arrive
 * together; random: at random times of that rate. */
#ifndef T_SIMULATION_SCENARIO_H
#define T_SIMULATION_SCENARIO_H

#include "base/buffer.h"
#include "t/simulation/fake_server.h"
#include "sched/sched.h"

#include <uthash.h>

enum {
    SCENARIO_NAME_MAX = 200,
    SCENARIO_ADDRESSES_MAX = 100, /* of a site */
    SCENARIO_SITES_MAX = 100000,
    SCENARIO_DOMAINS_MAX = 1000000,
    SCENARIO_TARGETS_MAX = 100,
    SCENARIO_MESSAGES_MAX = 10000000,
    SCENARIO_RECIPIENTS_MAX = 100000 /* of a message */
};

struct scenario_site {
    UT_hash_handle hh;
    char *name;
    size_t number;
    struct fake_server_settings base, *servers; /* base: the defaults of an address */
    size_t server_count;
    bool has_addresses;
};
struct scenario_domain {
    UT_hash_handle hh;
    char *name;
    size_t number, site, target;
};
struct scenario_target {
    char *name; /* NULL: the first, that of domains without "target" */
    struct transport_params transport;
};
/* A name that stands for one or more in sequence. */
struct scenario_family {
    char *name;
    size_t first, count;
};
struct scenario_families {
    struct scenario_family *at;
    size_t count, capacity;
};
enum scenario_change_kind {
    SCENARIO_SERVERS,
    SCENARIO_FLUSH
};
struct scenario_change {
    int64_t at_us;
    enum scenario_change_kind kind;
    size_t first, count; /* sites */
    char *address;       /* NULL: all of theirs */
    char *options;       /* of t/simulation/fake_server.h, separated by blanks;
                          * checked */
};
struct scenario_arrival {
    char *name;
    size_t first, count; /* domains */
    unsigned messages, recipients;
    uint64_t size;
    char *sender;
    enum sched_class class;
    int64_t at_us, every_us; /* every_us: between two; 0: all together */
    bool random;
};

struct scenario {
    uint64_t seed;
    int64_t until_us; /* INT64_MAX: done */
    struct sched_settings sched;
    struct scenario_target targets[SCENARIO_TARGETS_MAX];
    size_t target_count;
    int64_t dns_us, idle_us;
    struct scenario_site *sites, **site_at; /* by name; by number */
    struct scenario_domain *domains, **domain_at;
    size_t site_count, site_capacity, domain_count, domain_capacity;
    struct scenario_families site_names, domain_names;
    struct scenario_change *changes;
    struct scenario_arrival *arrivals;
    size_t change_count, change_capacity, arrival_count, arrival_capacity;
    uint64_t messages; /* in all */
};

/* The values where the text gives none. */
struct scenario_defaults {
    struct transport_params transport;
    struct sched_settings sched;
    int64_t connect_timeout_ms, idle_ms;
    uint64_t bulk_size; /* mail of this size or more is bulk; 0 = never */
};
/* Those of a Petrel without settings. */
struct scenario_defaults scenario_defaults(void);

/* name: of the file, for the errors: one line "name:LINE: what" for each. NULL if there
 * are errors. */
struct scenario *scenario_new(struct text content, const char *name,
                              const struct scenario_defaults *defaults,
                              struct buffer *errors);
void scenario_free(struct scenario **scenario);

#endif
