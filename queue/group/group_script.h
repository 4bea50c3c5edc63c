/* The scripts that a group runs at Redis. Each answers with one text. */
#ifndef QUEUE_GROUP_GROUP_SCRIPT_H
#define QUEUE_GROUP_GROUP_SCRIPT_H

#include "base/redis/redis.h"

/* The heartbeat. KEYS: pm:GROUP, pi:GROUP. ARGV: the act, a host, its description in
 * JSON, the number of its run, the ages in ms at which hosts are forgotten, and are old.
 *   beat    the host is here; the answer is the number of hosts that are old
 *   list    the same, and then those that were seen: "NAME AGE NAME AGE ...",
 *           where a host that has left has the age "gone"; then, a line each, what
 *           they say of themselves: "NAME JSON", as far as it fits
 *   bye     it goes, or is to be forgotten
 * The answer to the first two begins with 1 if another run has the name, else with 0, and a
 * blank. */
extern const char group_script_member[];

/* The bank's script, with its numbers as words of one text; the caller frees it. */
char *group_script_grant(void);

#endif
