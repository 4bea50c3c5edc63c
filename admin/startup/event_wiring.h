/* Connects kept events with the daemon: their files, and their poster. */
#ifndef ADMIN_STARTUP_EVENT_WIRING_H
#define ADMIN_STARTUP_EVENT_WIRING_H

#include "admin/control/questions.h"
#include "admin/startup/configuration.h"
#include "admin/startup/token_keeper.h"
#include "base/event/event_post.h"

/* Zeroed until `events` is set. */
struct event_wiring {
    struct event_hub *hub;
    struct disk *disk; /* the spool, with syncs of its own: events outlive the queue */
    struct event_spool *spool;
    struct http_caller *http;
    struct event_post *post;
    bool answers; /* the part of the status */
};

/* At startup, after the queue is open; of the keeper, the parts of the daemon. False:
 * events cannot be kept, with one line in error. */
bool event_wiring_use(struct event_wiring *wiring, struct event_hub *hub,
                      const struct token_keeper *parts, struct questions *questions,
                      const struct configuration *configuration, char *error,
                      size_t error_size) __attribute__((warn_unused_result));
/* The same at a reload; an error is logged. */
void event_wiring_reload(struct event_wiring *wiring, struct event_hub *hub,
                         const struct token_keeper *parts, struct questions *questions,
                         const struct configuration *configuration);
/* Nothing is posted any more. Before delivery_free(). */
void event_wiring_pause(struct event_wiring *wiring);
/* The last events are written. After manager_free(). */
void event_wiring_stop(struct event_wiring *wiring);

#endif
