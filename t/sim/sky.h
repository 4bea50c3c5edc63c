/* Hosts that share sets of fragments, in one process and one virtual time: what is
 * known of them and of what they were sent, and their registry, which is not always to
 * be relied on. Chance decides what goes wrong. The hosts' doings: t/support/sky_hosts.h. */
#ifndef T_SIM_SKY_H
#define T_SIM_SKY_H

#include "defrag/channel_internal.h"
#include "sched/limits/retry.h"
#include "t/support/channel_world.h"
#include "t/sim/sim_disk.h"

enum {
    HOSTS_MAX = 4,
    SETS_MAX = 12,
    PARTS_MAX = 5,
    PEOPLE = 3,   /* recipients whose parts are joined, and one whose are not */
    SENT_MAX = 2, /* how often a part is sent */
    ANSWER_MS = 250
};

extern const char *const people[PEOPLE];
extern const char *const names[HOSTS_MAX];

/* --- Events ----------------------------------------------------------------------- */

struct host;
struct sky;

/* One that is asked for an answer. */
struct registry {
    struct host *host;
    struct question *questions;
    bool is_down, is_owing;
    struct loop_timer recover;
};

struct question {
    struct registry *registry;
    struct registry_claim *claim;
    enum registry_answer answer;
    char name[REGISTRY_HOST_MAX + 1];
    struct loop_timer timer;
    struct question *prev, *next;
};

struct owned_set {
    UT_hash_handle hh;
    unsigned char key[REGISTRY_KEY_SIZE];
    char name[REGISTRY_HOST_MAX + 1];
    int64_t until_ms;
};

/* A session to a next hop, or to another host. */
struct transport {
    struct transport *prev, *next;
    struct host *host;
    struct sched_session *session;
    struct delivery_request request;
    bool has_errand;
    char peer[32];
    void (*go_on)(void *context);
    struct loop_timer timer;
    struct outcome *outcomes; /* of the request, once the other host has answered */
    bool is_storing;          /* it has not said yet that it has it */
};

/* The answer that a host is about to give to another. */
struct arriving {
    struct host *at;
    struct transport *from; /* NULL: it is gone */
    bool reply_is_lost;
    struct arriving *prev, *next;
};

struct host {
    struct stage s; /* first: plugs get it */
    struct sky *sky;
    const char *name;
    unsigned which;
    struct registry registry;
    struct transport *carriers;
    bool is_up, refuses, answers_late, hop_is_down;
    int64_t starts_ms;
};

struct fate_of_part {
    unsigned sent;            /* so often */
    unsigned to[SENT_MAX];    /* bits of people */
    unsigned arrived[PEOPLE]; /* as it was */
    unsigned returned[PEOPLE];
    bool is_odd[PEOPLE]; /* a reply was lost, or an operator meddled */
    struct id ids[SENT_MAX];
    unsigned at[SENT_MAX];
};

struct fate_of_set {
    unsigned parts;
    bool late_total;
    bool is_odd;
    unsigned lines; /* that each part has besides: more than one turn looks at */
    struct fate_of_part part[PARTS_MAX];
    unsigned wholes[PEOPLE];
};

struct sky {
    uint64_t random, seed;
    struct loop *loop;
    struct host hosts[HOSTS_MAX];
    unsigned host_count, set_count;
    struct fate_of_set sets[SETS_MAX];
    struct owned_set *owned;
    struct arriving *arriving;
    struct buffer peers; /* defrag_peers */
    bool is_calm;        /* nothing goes wrong: all is joined */
    bool is_good;        /* from now on */
    bool lies;           /* registries do */
    bool loses;          /* replies get lost */
    enum channel_timeout on_timeout;
    bool short_life, is_narrow;
    unsigned wrong;
};

unsigned draw(struct sky *w, unsigned below);

bool one_in(struct sky *w, unsigned n);

bool trouble(struct sky *w, unsigned n);

void __attribute__((format(printf, 2, 3))) complain(struct sky *w, const char *format, ...);

/* --- The registry ----------------------------------------------------------------- */

void own(struct sky *w, const struct registry_claim *claim, const char *name);

void recovered(void *context);

void tell(void *context);

/* The answer to an honest host. */
void decide(struct registry *r, struct question *q);

#endif
