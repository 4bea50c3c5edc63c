/* Limits the log lines about refusals; logs the number of those omitted. */
#include "smtp/access/refusals.h"

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { NAME_MAX_SIZE = 64, PERIOD_MS = 1000 };

struct refused {
    UT_hash_handle hh;
    char client[NAME_MAX_SIZE];
    unsigned lines, more;
};

struct refusals {
    struct loop *loop;
    struct log *log;
    struct loop_timer timer; /* runs while the table is not empty */
    struct refused *table;
    unsigned lines;       /* of all clients, in this period */
    unsigned long others; /* refusals of clients beyond the table */
};

static void
refusals_sum_up(void *context)
{
    struct refusals *r = context;
    struct refused *each, *next;
    HASH_ITER (hh, r->table, each, next) {
        if (each->more > 0)
            log_say(r->log, LOG_LEVEL_INFO, "smtpd", NULL,
                    "client=%s: %u more refusals in this second, not logged",
                    each->client, each->more);
        HASH_DEL(r->table, each);
        free(each);
    }
    if (r->others > 0)
        log_say(r->log, LOG_LEVEL_INFO, "smtpd", NULL,
                "%lu refusals of other clients in this second, not logged", r->others);
    r->others = r->lines = 0;
}

struct refusals *
refusals_new(struct loop *loop, struct log *log)
{
    struct refusals *r = memory_new(sizeof(*r));
    r->loop = loop;
    r->log = log;
    return r;
}

void
refusals_free(struct refusals **refusals)
{
    struct refusals *r = *refusals;
    *refusals = NULL;
    if (r == NULL)
        return;
    loop_timer_stop(r->loop, &r->timer);
    refusals_sum_up(r); /* the log must not lose the last second */
    free(r);
}

/* NULL: the table is full. */
static struct refused *
find_refused(struct refusals *r, const char *client)
{
    struct refused *found;
    HASH_FIND_STR(r->table, client, found);
    if (found != NULL || HASH_COUNT(r->table) >= REFUSALS_CLIENTS_MAX)
        return found;
    /* The table is for one period: the first entry starts it, the timer empties it. */
    if (r->table == NULL)
        loop_timer_start(r->loop, &r->timer, PERIOD_MS, refusals_sum_up, r);
    found = memory_new(sizeof(*found));
    text_copy(found->client, sizeof(found->client), text_from(client));
    HASH_ADD_STR(r->table, client, found);
    return found;
}

/* Each client may fill a part of the log; when all together have filled theirs, each
 * new one still has one line. The rest is counted, so the log never hides that there
 * was more. */
bool
refusals_admit(struct refusals *r, const char *client)
{
    struct refused *refused = r != NULL ? find_refused(r, client) : NULL;
    if (r == NULL)
        return true;
    if (refused == NULL) {
        r->others++;
        return false;
    }
    unsigned limit = r->lines < REFUSALS_ALL_MAX ? REFUSALS_EACH_MAX : 1;
    if (refused->lines >= limit) {
        refused->more++;
        return false;
    }
    refused->lines++;
    r->lines++;
    return true;
}

/* The first row that matches. NULL matches all. */
static const struct reason_row {
    const char *verb, *enhanced;
    const char *reason;
} reasons[] = {
    {"rcpt",     "5.7.1",  "relay"     },
    {"etrn",     NULL,     "relay"     },
    {"mail",     "5.7.1",  "sender"    },
    {NULL,       "5.1.7",  "sender"    },
    {NULL,       "5.1.8",  "sender"    },
    {"ehlo",     "5.7.1",  "helo"      },
    {"helo",     "5.7.1",  "helo"      },
    {"lhlo",     "5.7.1",  "helo"      },
    {"auth",     NULL,     "auth"      },
    {NULL,       "5.7.0",  "auth"      },
    {NULL,       "5.7.8",  "auth"      },
    {NULL,       "5.7.11", "auth"      },
    {"connect",  "5.7.1",  "auth"      },
    {"starttls", NULL,     "tls"       },
    {NULL,       "4.7.0",  "rate"      },
    {NULL,       "4.7.1",  "rate"      },
    {NULL,       "5.1.1",  "user"      },
    {NULL,       "5.1.2",  "user"      },
    {NULL,       "5.1.3",  "syntax"    },
    {NULL,       "5.5.1",  "syntax"    },
    {NULL,       "5.5.2",  "syntax"    },
    {NULL,       "5.5.4",  "syntax"    },
    {NULL,       "5.6.7",  "syntax"    },
    {NULL,       "5.3.4",  "size"      },
    {NULL,       "4.3.1",  "disk"      },
    {NULL,       "4.3.0",  "spool"     },
    {NULL,       "4.5.3",  "recipients"},
    {NULL,       "5.4.6",  "loop"      },
    {NULL,       "5.6.1",  "partial"   },
};

const char *
refusals_reason(const char *verb, int code, const char *enhanced, const char *text)
{
    if (text_starts(text_from(text), TEXT("Quota: ")))
        return "quota";
    if (code == 501 && strcmp(enhanced, "5.1.7") == 0)
        return "syntax";
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const struct reason_row *row = &reasons[i];
        if ((row->verb == NULL || strcmp(row->verb, verb) == 0) &&
            (row->enhanced == NULL || strcmp(row->enhanced, enhanced) == 0))
            return row->reason;
    }
    return "other";
}
