/* A bank in Redis or Valkey: scripts, by the connection of this process. */
#ifndef QUEUE_GROUP_GROUP_REDIS_H
#define QUEUE_GROUP_GROUP_REDIS_H

#include "queue/group/group_engine.h"

/* redis outlives it; it ends with its `free`. */
struct group_engine group_redis_new(struct redis *redis);

#endif
