/* Commands of the operator that are not the daemon: queue, check, version. */
#ifndef ADMIN_COMMAND_COMMAND_H
#define ADMIN_COMMAND_COMMAND_H

#include "admin/settings/options.h"

/* `queue ...`: asks the daemon over the control socket, or reads the spool when none
 * runs. arguments behind "queue". Returns a sysexits code. */
int command_queue(int count, char **arguments, const struct options *options);

/* mailq: `queue ls`, or "Mail queue is empty". */
int command_mailq(const struct options *options);

/* Prints why a message waits now, as `queue why` does; nothing if it has gone. */
void command_queue_waits(const char *id, const struct options *options);

/* Prints the ids that begin so, a line each, oldest first: at most limit. Silent; does not
 * ask a daemon. */
void command_queue_ids(const struct options *options, struct text begin, size_t limit);

/* Its text in usage and help, behind "usage: ". */
#define COMMAND_QUEUE_USES                                                             \
    "petrel queue ls [--json] [--cluster] [FILTER]\n"                                  \
    "       petrel queue show|why [--json] [--cluster] ID...\n"                        \
    "       petrel queue cat ID...\n"                                                  \
    "       petrel queue hold|release|retry|rm|bounce [--json] ID... | FILTER | "      \
    "--all\n"                                                                          \
    "       petrel queue retry --forget-limits SITE...\n"                              \
    "       petrel queue shape [--by recipient|sender|site] [--json] [FILTER]\n"       \
    "       petrel queue adopt SLICE\n"                                                \
    "       petrel queue hold|release|retry --cluster [--json] ID... | FILTER | "      \
    "--all\n"                                                                          \
    "FILTER: --to DOMAIN_OR_ADDRESS --from ADDRESS --older AGE\n"                      \
    "        --first ID --queue "                                                      \
    "maildrop|incoming|active|deferred|defrag|hold|corrupt\n"

/* `version [--json]`. redis: library for it and its version, "" where there is none. */
int command_version(int count, char **arguments, const char *redis);

#endif
