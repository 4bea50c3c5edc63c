/* How many lines of the log one client's refusals may fill: the first of each second
 * are written, the rest is summed up in one line when the second is over.
 *
 * So no client, and no crowd of them, fills a disk with what it is refused. */
#ifndef SMTP_SERVER_REFUSALS_H
#define SMTP_SERVER_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>

struct log;
struct loop;
struct refusals;

enum {
    REFUSALS_EACH_MAX = 20,     /* lines of one client in a second... */
    REFUSALS_ALL_MAX = 250,     /* ...one alone above these of all clients... */
    REFUSALS_CLIENTS_MAX = 1000 /* ...and of these clients; others share a sum */
};

struct refusals *refusals_new(struct loop *loop, struct log *log);
/* Writes the sums that are due. */
void refusals_free(struct refusals **refusals);

/* A client ("[192.0.2.1]") is refused something. True: its line may be written. NULL
 * counts nothing: always true. */
bool refusals_admit(struct refusals *refusals, const char *client)
    __attribute__((warn_unused_result));

#endif
