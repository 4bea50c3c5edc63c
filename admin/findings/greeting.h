/* The replies of a mail host to EHLO and QUIT: some name the address of the client. */
#ifndef ADMIN_FINDINGS_GREETING_H
#define ADMIN_FINDINGS_GREETING_H

#include "base/net/net.h"

struct greeting;
struct loop;

enum {
    GREETING_CONNECT_MS = 15000,
    GREETING_MS = 25000, /* all of it */
    GREETING_TEXT_MAX = 4096,
    GREETING_HEARD_MAX = 64 * 1024 /* of all lines */
};

/* text: the greeting and the answer to EHLO, lines with LF; else the error, in one line.
 * Any octets but NUL. */
typedef void greeting_done(void *context, bool good, const char *text);

/* from may be NULL. done comes once, in a later turn. */
struct greeting *greeting_new(struct loop *loop, struct net *net,
                              const struct net_address *to,
                              const struct net_address *from, const char *hostname,
                              greeting_done *done, void *context);
/* Before done it then does not come. Also within done. */
void greeting_free(struct greeting **greeting);

#endif
