/* The last failed conversation with each site, in memory: of FAILED_DIALOGUES_MAX sites;
 * beyond, the one that failed the longest ago is forgotten. */
#ifndef SMTP_DELIVERY_FAILED_DIALOGUES_H
#define SMTP_DELIVERY_FAILED_DIALOGUES_H

#include "base/outcome.h"
#include "smtp/client/transcript.h"

enum { FAILED_DIALOGUES_MAX = 100 };

struct failed_dialogues;

struct failed_dialogue {
    char *site;
    char relay[OUTCOME_REMOTE_MAX]; /* "host[ip]:port" */
    int64_t begun_ms;               /* since 1970 */
    uint64_t order;                 /* private */
    struct transcript transcript;
};

struct failed_dialogues *failed_dialogues_new(void);
void failed_dialogues_free(struct failed_dialogues **failed_dialogues);
/* Copies all. begun_ms: since 1970. */
void failed_dialogues_keep(struct failed_dialogues *failed_dialogues, const char *site,
                           const char *relay, int64_t begun_ms,
                           const struct transcript *transcript);
/* NULL: none is known. Borrowed until the next call of failed_dialogues_keep(). */
const struct failed_dialogue *
failed_dialogues_find(const struct failed_dialogues *failed_dialogues,
                      const char *site);

#endif
