/* The bank of the slices of one machine, without Redis.
 *
 * Each slice binds a socket, lock/bank.sock.FIRST-LAST in the spool. The slice that gets
 * the lock on lock/bank writes FIRST-LAST there and has the bank (group_server.h); the
 * others ask it. When it goes, the next one gets the lock within LEAD_TRY_MS and begins
 * with an empty bank. All slices are always members: a dead one asks for nothing. */
#ifndef QUEUE_GROUP_GROUP_LEAD_H
#define QUEUE_GROUP_GROUP_LEAD_H

#include "queue/group/group_engine.h"
#include "queue/group/group_settings.h"

struct disk;
struct log;
struct loop;
struct net;

enum { LEAD_TRY_MS = 250 };

struct group_lead_setup {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct disk *disk; /* of the spool, where lock/ is */
    const char *spool;
    const struct group_settings *settings;
    unsigned slice, slices;
    int64_t patience_ms; /* 0: REDIS_ANSWER_MS; a test may have more */
};

/* The data that setup points to outlive it, but for spool and settings. Before the
 * sandbox, which permits no socket that listens. Without a kind, and with one line in
 * error: the socket cannot be bound. */
struct group_engine group_lead_new(const struct group_lead_setup *setup, char *error,
                                   size_t size);

#endif
