/* Suppressed addresses of a group of hosts.
 *
 * A stream in Redis has the changes of all hosts, the newest some 200,000. A host that has read
 * it to its end adds what it knows and has not read there, and reads on at each heartbeat.
 * Each keeps its own file (suppression.h), so the stream may be lost: a host does not find
 * the change that it read last, reads from the beginning, and adds what is missing. A change
 * says how old it is, and Redis when that was: clocks of hosts may differ. */
#ifndef QUEUE_GROUP_GROUP_SUPPRESSION_H
#define QUEUE_GROUP_GROUP_SUPPRESSION_H

#include <stdint.h>

struct group_suppression;
struct log;
struct loop;
struct manager;
struct redis;

struct group_suppression *group_suppression_new(struct loop *loop, struct log *log,
                                                struct manager *manager,
                                                struct redis *redis, const char *name);
void group_suppression_free(struct group_suppression **sharing);
/* The host with the largest suppress_limit, and that: the stream keeps what it needs. A
 * host whose own is smaller says so once. */
void group_suppression_compare(struct group_suppression *sharing, const char *host,
                               int64_t limit);
/* Reads and tells, if mail is suppressed here, and Redis answers. */
void group_suppression_beat(struct group_suppression *sharing);

/* ARGV: the change that was read last, or 0; the number of changes that stay, of those
 * to read; then age in ms and line of each to add. "ID NOW", and in lines "TIME LINE" of
 * those that follow; "lost": the first is not there. */
extern const char group_suppression_script[];

#endif
