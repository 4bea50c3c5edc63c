/* Limits the log lines about refusals of a client: the first of each second are written,
 * one line at its end has the number of the others. Neither one client nor many can fill
 * the disk with refusals. */
#ifndef SMTP_ACCESS_REFUSALS_H
#define SMTP_ACCESS_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>

struct log;
struct loop;
struct refusals;

enum {
    REFUSALS_EACH_MAX = 20,     /* lines of a client per second */
    REFUSALS_ALL_MAX = 250,     /* lines of all per second; beyond it one per client */
    REFUSALS_CLIENTS_MAX = 1000 /* clients counted separately */
};

struct refusals *refusals_new(struct loop *loop, struct log *log);
/* Writes the sums that are due. */
void refusals_free(struct refusals **refusals);

/* Counts a refusal of client ("[192.0.2.1]"). True: log it. refusals NULL: always
 * true. */
bool refusals_admit(struct refusals *refusals, const char *client)
    __attribute__((warn_unused_result));

/* The subject of a refusal, for counters and other styles of the log: relay user size
 * sender helo rate quota syntax auth tls disk spool loop partial recipients other. verb: in
 * lower case, "connect" before the first command. */
const char *refusals_reason(const char *verb, int code, const char *enhanced,
                            const char *text);

#endif
