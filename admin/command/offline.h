/* The queue without its daemon: opened and locked as by the daemon, but without mail in
 * or out. */
#ifndef ADMIN_COMMAND_OFFLINE_H
#define ADMIN_COMMAND_OFFLINE_H

#include "admin/settings/options.h"
#include "queue/manager/manager.h"

struct event_hub;
struct offline;

/* The owner of the spool at path. One that is missing is not made: nothing could be in it.
 * 0, or a sysexits code with one line in error. */
int offline_find(const char *path, unsigned *owner, char *error, size_t error_size);

/* Root becomes that owner, for good: the daemon must be able to read the files. 0, or a
 * sysexits code with one line in error. */
int offline_become_owner(const char *path, char *error, size_t error_size);

/* Begins with offline_become_owner(). 0, or a sysexits code with one line in error;
 * EX_TEMPFAIL: somebody has the lock. loop is the caller's. */
int offline_open(struct offline **offline, struct loop *loop, struct event_hub *events,
                 const struct options *options, char *error, size_t error_size);
struct manager *offline_manager(struct offline *offline);
/* Everything is on disk when it returns. */
void offline_close(struct offline **offline);

#endif
