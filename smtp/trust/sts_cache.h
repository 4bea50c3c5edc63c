/* MTA-STS policies of the domains that mail goes to (RFC 8461): looked up, fetched, and
 * kept for as long as they say, also over restarts: those of 500 domains, written at each
 * change.
 *
 * A policy is fetched by HTTPS when the domain's TXT record has a new id, when none is
 * kept, and once a day while mail goes there. A policy that is kept holds for its
 * max_age, also while TXT or HTTPS fail: an attacker who suppresses them must not lift
 * it. A domain without a kept policy that gives no answer has none; but a domain that could
 * not be asked, because too many others were being asked, is unknown: an attacker who
 * makes these slow must not lift its policy. */
#ifndef SMTP_TRUST_STS_CACHE_H
#define SMTP_TRUST_STS_CACHE_H

#include "smtp/trust/sts.h"

struct disk;
struct dns;
struct http_caller;
struct log;
struct loop;
struct sts_cache;
struct sts_query;

enum {
    STS_CACHE_DOMAINS_MAX = 500, /* then the least recently used goes */
    STS_CACHE_BYTES_MAX =
        STS_CACHE_DOMAINS_MAX * (STS_PATTERNS_MAX + 1024), /* of the file */
    STS_CACHE_WAIT_MS = 10000,   /* mail waits for an answer, once it is asked for... */
    STS_CACHE_LINE_MS = 30000,   /* ...and in line for that */
    STS_CACHE_RETRY_MS = 300000, /* after a failure, then doubled... */
    STS_CACHE_DAY_MS = 86400000, /* ...up to this; and a policy is fetched again */
    STS_CACHE_LONG_MS = 3600000, /* since a policy could be fetched: trouble */
    STS_CACHE_WHY_MAX = 200
};

/* For the caller of policies: a limit of its own, and one for each network, since anyone
 * can have domains whose policy hosts hang. */
enum { STS_CACHE_FETCHES_MAX = 64, STS_CACHE_NETWORK_FETCHES_MAX = 8 };

struct tls_reports;

struct sts_cache_settings {
    struct loop *loop;
    struct log *log;
    struct dns *dns;
    struct http_caller *http; /* lives longer */
    struct disk *spool;       /* NULL: nothing is kept over restarts */
    const char *path;         /* in it: "lock/sts"; copied */
    uint16_t port;            /* 443; only there must hosts have public addresses */
    /* Counts the fetches that fail; lives until no callback comes any more, or NULL. */
    struct tls_reports *reports;
};

/* Reads the file. */
struct sts_cache *sts_cache_new(const struct sts_cache_settings *settings);
void sts_cache_set_port(struct sts_cache *cache, uint16_t port);
/* Waits for the file, if it is being written. No callback comes after this. */
void sts_cache_free(struct sts_cache **cache);

/* policy: of the domain, borrowed during the call; NULL: it has none, or is_unknown: it
 * has not been asked yet, and mail must wait. */
typedef void sts_cache_found(void *context, const struct sts_policy *policy,
                             bool is_unknown);
/* The callback comes once, in a later turn; then the query is void. domain: in ASCII. */
struct sts_query *sts_cache_ask(struct sts_cache *cache, const char *domain,
                                sts_cache_found *done, void *context);
/* The callback will not come. */
void sts_cache_cancel(struct sts_query **query);
/* Whether the policy of the domain allows none of its hosts, so that mail waits. */
void sts_cache_note_hosts(struct sts_cache *cache, const char *domain, bool forbidden);

/* A policy in mode enforce that holds although it cannot be fetched: for
 * STS_CACHE_LONG_MS, or mail waits because of it. */
struct sts_cache_lost {
    const char *domain, *why;  /* borrowed */
    int64_t since_ms, left_ms; /* durations */
    bool forbids;
};
void sts_cache_each_lost(const struct sts_cache *cache,
                         void (*each)(void *context, const struct sts_cache_lost *lost),
                         void *context);
#endif
