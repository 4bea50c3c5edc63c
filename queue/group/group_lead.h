/* The bank of the slices of one machine, without Redis.
 *
 * Each slice binds a socket, lock/bank.sock.FIRST-LAST in the spool. The slice that gets
 * the lock on lock/bank writes FIRST-LAST there and has the bank; the others ask it, one
 * frame each way. When it goes, the next one gets the lock within LEAD_TRY_MS and begins
 * with an empty bank. All slices are always members: a dead one asks for nothing.
 *
 * A client that says anything else is cut off. So is a slice of a version whose questions
 * differ: while both run it has its own part. */
#ifndef QUEUE_GROUP_GROUP_LEAD_H
#define QUEUE_GROUP_GROUP_LEAD_H

#include "queue/group/group_engine.h"

struct disk;
struct log;
struct loop;
struct net;

enum {
    LEAD_TRY_MS = 250,
    LEAD_UNREAD_MAX = 64 * 1024, /* of answers that a client has not read */
    LEAD_VISITORS_MAX = 512      /* at a time, with those that are gone unnoticed */
};

struct group_lead_setup {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct disk *disk; /* of the spool, where lock/ is */
    const char *spool;
    unsigned slice, slices;
    int64_t patience_ms; /* 0: REDIS_ANSWER_MS; a test may have more */
};

/* The data that setup points to outlive it, but for spool. Before the
 * sandbox, which permits no socket that listens. Without a kind, and with one line in
 * error: the socket cannot be bound. */
struct group_engine group_lead_new(const struct group_lead_setup *setup, char *error,
                                   size_t size);
/* The answers of this bank, for questions from another process. False: an odd one, and
 * the bank is as it was. Pure. */
bool group_lead_grant(struct bank *bank, int64_t now_us, const struct group_ask *asks,
                      size_t count, struct bank_grant *out);

#endif
