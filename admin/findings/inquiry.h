/* The questions of doctor to others: name servers, mail hosts, and, through its caller,
 * hosts by the two sides of SMTP. Each question is asked once, INQUIRY_RUNNING_MAX are
 * under way at a time, and when the time is over those without an answer have that as
 * their answer. So have all questions to name servers when INQUIRY_ROOT finds after
 * INQUIRY_DEAD_MS that these are silent.
 *
 * A check asks, and gets NULL while there is no answer; it is run again from its beginning
 * when there are new ones. So a check reads as if all were known. */
#ifndef ADMIN_FINDINGS_INQUIRY_H
#define ADMIN_FINDINGS_INQUIRY_H

#include "base/dns/dns.h"
#include "base/loop/loop.h"
#include "mime/auth/spf.h"
#include "sched/route/bind_address.h"

struct net;
struct inquiry;
struct inquiry_item;

enum {
    INQUIRY_RUNNING_MAX = 32,
    INQUIRY_ITEMS_MAX = 20000,
    INQUIRY_BYTES_MAX = 32 * 1024 * 1024, /* of all answers */
    INQUIRY_KEY_MAX = 1024,
    INQUIRY_REASON_MAX = 512,
    INQUIRY_DEAD_MS = 3000,
    INQUIRY_MS = 60 * 1000
};

enum inquiry_kind {
    INQUIRY_MX,
    INQUIRY_ADDRESSES, /* of name servers alone */
    INQUIRY_ALIAS,     /* the CNAME of a name */
    INQUIRY_HOSTS,     /* PTR; the key is an address */
    INQUIRY_TEXTS,
    INQUIRY_TLSA, /* texts: "3 1 1 HEX", lower case; validated if secure */
    INQUIRY_ROOT, /* whether the name servers answer, and validate: secure */
    INQUIRY_DNS,  /* the number of those above */
    INQUIRY_GREETING = INQUIRY_DNS, /* ADDRESS:PORT of a mail host: its words */
    INQUIRY_LOGIN,                  /* a smarthost */
    INQUIRY_WAY,                    /* a mail host, for mail of somebody */
    INQUIRY_POLICY,                 /* of MTA-STS */
    INQUIRY_KINDS
};

struct inquiry_answer {
    enum dns_status status;
    int verdict; /* of those that a source answers */
    bool secure;
    char reason[INQUIRY_REASON_MAX]; /* when not DNS_FOUND; may have any octets */
    struct spf_answer data;          /* texts, addresses, hosts */
    const unsigned *preferences;     /* of MX hosts */
};

/* Answers questions of a kind: start begins, and calls inquiry_answered() in a later turn.
 */
struct inquiry_source {
    void (*start)(void *context, struct inquiry_item *item, const char *key);
    void *context;
};

struct inquiry_settings {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct dns *validating; /* the same name servers, whose AD bit counts */
    const char *hostname;   /* in EHLO */
    struct bind_address bind;
    struct inquiry_source sources[INQUIRY_KINDS];
};
struct inquiry *inquiry_new(const struct inquiry_settings *settings);
/* Ends questions under way. */
void inquiry_free(struct inquiry **inquiry);

/* NULL: not yet. */
const struct inquiry_answer *inquiry_ask(struct inquiry *inquiry,
                                         enum inquiry_kind kind, const char *key);
/* The last question that had no answer since this was called; NULL: each had one. */
const struct inquiry_item *inquiry_missing(struct inquiry *inquiry);
bool inquiry_is_answered(const struct inquiry_item *item);
/* For a source; copies. */
void inquiry_answered(struct inquiry_item *item, const struct inquiry_answer *answer);
/* Turns the loop until there are new answers. False: nothing is under way. */
bool inquiry_wait(struct inquiry *inquiry);
/* Whether answers are missing because the time is over, or too much was asked. */
bool inquiry_is_cut(const struct inquiry *inquiry);

#endif
