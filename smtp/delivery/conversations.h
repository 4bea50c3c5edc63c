/* The last failed conversation with each site, in memory: of CONVERSATIONS_MAX sites;
 * beyond, the one that failed the longest ago is forgotten. */
#ifndef SMTP_DELIVERY_CONVERSATIONS_H
#define SMTP_DELIVERY_CONVERSATIONS_H

#include "base/outcome.h"
#include "smtp/client/transcript.h"

enum { CONVERSATIONS_MAX = 100 };

struct conversations;

struct conversation {
    char *site;
    char relay[OUTCOME_REMOTE_MAX]; /* "host[ip]:port" */
    int64_t begun_ms;               /* since 1970 */
    uint64_t order;                 /* private */
    struct transcript transcript;
};

struct conversations *conversations_new(void);
void conversations_free(struct conversations **conversations);
/* Copies all. begun_ms: since 1970. */
void conversations_keep(struct conversations *conversations, const char *site,
                        const char *relay, int64_t begun_ms,
                        const struct transcript *transcript);
/* NULL: none is known. Borrowed until the next call of conversations_keep(). */
const struct conversation *conversations_find(const struct conversations *conversations,
                                              const char *site);

#endif
