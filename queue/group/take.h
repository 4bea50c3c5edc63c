/* Takes mail that siblings give: the messages of sibling_service.
 *
 * A taken message gets an id of its own; birth, due time, attempts, marks, failures and
 * hold are those it had. They are durable with it. The envelope has its origin (`came`:
 * the giver and the id there; `first`: the id at its birth; `given`: how often it moved).
 * Messages taken within an hour are known, at most TAKE_KNOWN_MAX, also after a restart
 * as far as the journal reaches: a message that is given again is answered by the same
 * id, and not stored. */
#ifndef QUEUE_GROUP_TAKE_H
#define QUEUE_GROUP_TAKE_H

#include "queue/group/siblings.h"

struct event_hub;
struct loop;
struct manager;
struct take;

enum {
    TAKE_KNOWN_MAX = 100000,
    TAKE_KNOWN_MS = 3600 * 1000,
    /* Bytes of sections of all messages that are being read or stored; then 451. */
    TAKE_SECTIONS_MAX = 2 * SIBLING_SECTIONS_MAX
};

struct take_setup {
    struct loop *loop;
    struct event_hub *events;
    struct manager *manager;
    int64_t message_size_limit;
    /* Why no mail is taken now (the host leaves, or is draining); NULL: it is taken. */
    const char *(*closed)(void *context);
    void *context;
};

struct take *take_new(const struct take_setup *setup);
void take_free(struct take **take);
/* For mail that comes from now on. */
void take_reload(struct take *take, int64_t message_size_limit);
/* Fills in take, take_bytes, take_end, take_drop and take_ignore of a service whose
 * context is the take. */
void take_serve(struct take *take, struct sibling_service *service);

/* A copy of a message of a lost host (queue/copies/adoption.h), which is read by take_bytes()
 * and take_end() of the service: of any size, and however often it moved. When it is durable it
 * is not delivered yet: `taken` is followed by take_decide(). A copy of what this run has taken
 * from where that host had it, or the other way round, is the same message. NULL: as `take`. */
struct taking *take_adopt(struct take *take, const char *host,
                          const struct sibling_message *message,
                          struct outcome *refusal);
/* The message that was `was` at that host is ours, and known to the scheduler from now on; or
 * another host has it, and it is removed. A second time nothing happens. */
void take_decide(struct take *take, const char *host, struct id was, bool is_ours);

#endif
