/* The local channel: sessions of the scheduler that deliver into Maildirs. */
#ifndef QUEUE_MANAGER_LOCAL_H
#define QUEUE_MANAGER_LOCAL_H

#include "queue/manager/manager.h"

struct local;

struct local *local_new(struct loop *loop, struct manager *manager,
                        const char *hostname);
/* hostname is borrowed. */
void local_reload(struct local *local, const char *hostname);
/* Sets a callback that says whether a directory tree may be written; without it all
 * may. Mail for others is deferred. */
void local_on_ask(struct local *local,
                  bool (*may_write)(const void *context, const char *directory),
                  const void *context);
void local_free(struct local **local); /* ends the rest as deferred */
/* A manager_open() for TARGET_MAILDIR; context is the struct local. */
void local_open(void *context, struct sched_session *session,
                const struct target *target, const char *domain);

#endif
