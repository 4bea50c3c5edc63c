/* The history of the daemon: its settings and its place in the spool. */
#ifndef ADMIN_STARTUP_HISTORY_WIRING_H
#define ADMIN_STARTUP_HISTORY_WIRING_H

#include "admin/control/questions.h"
#include "admin/history/history.h"
#include "admin/startup/configuration.h"

enum { HISTORY_SIZE_LEAST = 256 * 1024 };

/* As the spool's user, when the queue is open. The manager lives longer. */
struct history *history_wiring_start(struct loop *loop, struct log *log,
                                     struct event_hub *events, struct manager *manager,
                                     struct questions *questions,
                                     const struct configuration *configuration);
void history_wiring_reload(struct history *history, struct manager *manager,
                           const struct configuration *configuration);

#endif
