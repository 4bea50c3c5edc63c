/* A bank in Redis or Valkey: scripts, by the connection of this process. */
#ifndef QUEUE_GROUP_GROUP_REDIS_H
#define QUEUE_GROUP_GROUP_REDIS_H

#include "queue/group/group_engine.h"

/* redis outlives it; it ends with its `free`. name: of the group. */
struct group_engine group_redis_new(struct redis *redis, const char *name);

/* The heartbeat. KEYS: pm:GROUP, pi:GROUP. ARGV: the act, a host, its description in
 * JSON, the number of its run, the ages in ms at which hosts are forgotten, and are old.
 *   beat    the host is here; the answer is the number of hosts that are old
 *   list    the same, and then those that were seen: "NAME AGE NAME AGE ...",
 *           where a host that has left has the age "gone"; then, a line each, what
 *           they say of themselves: "NAME JSON", as far as it fits
 *   bye     it goes, or is to be forgotten
 * The answer to the first two begins with 1 if another run has the name, else with 0, and a
 * blank. */
extern const char group_redis_member[];

/* The bank's script, with its numbers as words of one text; the caller frees it. */
char *group_redis_grant(void);

#endif
