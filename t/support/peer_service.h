/* A sibling_service that writes down what it is asked, and answers when the test says so. */
#ifndef T_SUPPORT_PEER_SERVICE_H
#define T_SUPPORT_PEER_SERVICE_H

#include "base/buffer.h"
#include "base/memory.h"
#include "queue/group/siblings.h"
#include "t/support/tap.h"

enum { SERVICE_LOG_MAX = 1 << 20, SERVICE_KEEPS = 4096, SERVICE_PENDING = 256 };

struct service_world {
    struct sibling_service service;
    struct sibling_hello own;
    const char *unwelcome; /* greet refuses */
    const char *closed;    /* take refuses, with 451 */
    bool is_prompt;        /* messages are durable, and questions answered, at once */
    uint64_t ids;

    struct buffer log;   /* a line for each call */
    struct buffer bytes; /* of the messages, the first of each call */
    uint64_t byte_count;
    uint32_t crc; /* of the last message */
    size_t takings, askings; /* which exist */
    struct {
        sibling_taken *taken;
        void *context;
    } pending[SERVICE_PENDING];
    size_t pending_count;

    struct sibling_asker asker; /* of the question */
    size_t asked, resumed;
};

void service_start(struct service_world *w, const char *host);
void service_finish(struct service_world *w);
/* Answers the index-th message that waits. refusal NULL: it is durable. */
void service_taken(struct service_world *w, size_t index, const struct outcome *refusal);
struct text service_log(const struct service_world *w);

#endif
