/* A group of hosts that share the limits of next hops (doc/cluster.md).
 *
 * It tells the scheduler the members and carries its questions to the bank, which is a
 * script in Redis, or one of the slices of this machine: sites of one turn in one question,
 * at most one question under way. It gives the answers back, says that there is none after
 * 250 ms, and that the bank is away when Redis is. The scheduler then goes on with this
 * host's own part. So mail never waits for Redis, and no mail is lost with its data.
 *
 * Every 2 s the host says that it is here; every 10 s it reads the list of the others. The
 * names are kept in lock/group, so that a host knows its part when it starts without
 * Redis. */
#ifndef QUEUE_GROUP_GROUP_H
#define QUEUE_GROUP_GROUP_H

#include "queue/group/group_engine.h"
#include "queue/group/group_members.h"
#include "queue/group/group_settings.h"

struct group;
struct log;
struct loop;
struct manager;
struct redis;

/* The key that the connection writes to see whether it may write. */
#define GROUP_PROBE "ps:"

struct group_setup {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct redis *redis; /* NULL: the lead is asked */
    /* The bank of this machine's slices (group_lead.h), which the group frees. Without
     * this, too, each host has its own part, always. */
    struct group_engine lead;
    const struct group_settings *settings;
};

/* The data that setup points to outlive it, but for the settings. */
struct group *group_new(const struct group_setup *setup);
/* Says goodbye. Not from within a callback. */
void group_free(struct group **group);
/* Describes this host for others, before each heartbeat. */
typedef void group_described(void *context, struct group_self *self);
void group_describe(struct group *group, group_described *describe, void *context);
/* The other hosts, until each returns false. Their descriptions in Redis count; the
 * address of one that says nothing is that of cluster_peers. */
void group_siblings(struct group *group,
                    bool (*each)(void *context, const struct sibling *sibling),
                    void *context);
/* Other peers; the rest needs a restart. */
void group_reload(struct group *group, const struct group_settings *settings);

enum group_bank { GROUP_BANK_NONE, GROUP_BANK_UP, GROUP_BANK_AWAY };
struct group_state {
    const char *name, *host, *egress;
    const struct group_members *members;
    enum group_bank bank;
    int64_t away_ms;       /* since it was logged; 0: it was not */
    const char *why;       /* it is away; "" */
    size_t fallback_sites; /* that go on with our own part now */
    uint64_t asks, sites;  /* questions, and sites in them */
    uint64_t failures;     /* questions without an answer */
    uint64_t namesakes;    /* 1: another host has our name */
    const char *server;    /* where the bank is, or is looked for; "" */
};
/* Borrowed until anything else is called. */
struct group_state group_state(struct group *group);
/* An operator says that the host has gone for good: its part is free. False: no other
 * host of that name is known. */
bool group_forget(struct group *group, struct text host);

#endif
