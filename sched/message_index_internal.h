/* For the tests of message_index.c. No other file includes this. */
#ifndef SCHED_MESSAGE_INDEX_INTERNAL_H
#define SCHED_MESSAGE_INDEX_INTERNAL_H

#include "sched/message_index.h"

/* Bytes allocated. */
size_t message_index_memory(const struct message_index_set *set);

#endif
