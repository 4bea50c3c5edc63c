/* One question: asks the name servers, one after the other, until one of them answers.
 *
 * Each try has a channel of c-ares of its own, for one question to one server. So each
 * question has its own ports; a failure belongs to a server that has a name; and with
 * 1.18 no question takes the error of another one from a socket that both use. A server
 * that says SERVFAIL, REFUSED or the like, or that cannot be reached, is not asked again;
 * one that is silent is, up to the number of tries, with a time-out that doubles.
 *
 * A reply that names an alias (CNAME) and nothing else is followed: not every name server
 * does that itself. */
#ifndef BASE_DNS_DNS_QUESTION_H
#define BASE_DNS_DNS_QUESTION_H

#include "base/dns/dns_reply.h"
#include "base/dns/dns_servers.h"
#include "base/loop/loop.h"

struct dns_socket;

/* Shared by all questions. */
struct dns_asker {
    struct loop *loop;
    struct dns_servers servers;
    enum dns_trust trust;
    int64_t try_ms;
    int tries;
    dns_said *said; /* may be NULL */
    void *said_context;
};

/* The result of a try. */
struct dns_tried {
    int code; /* c-ares' */
    bool cut; /* bytes are only a part of the reply */
    char *bytes;
    size_t length;
    struct net_address by; /* the server; NET_NONE: none */
};

enum { DNS_ALIASES_MAX = 8 }; /* followed one after the other */

/* Embedded in its owner; private, but for what dns_question_init() gives it. */
struct dns_question {
    struct dns_asker *asker;
    const char *name;         /* borrowed */
    char alias[DNS_NAME_MAX]; /* asked for in its place; "": none */
    unsigned aliases;         /* followed so far */
    uint32_t alias_ttl_s;     /* the least of theirs */
    bool unproved;            /* one of them was not validated */
    bool endless;             /* they come back, or are too many */
    enum dns_type type;
    void (*done)(void *context); /* in a later turn, once, when it is answered */
    void *context;
    bool answered;
    struct ares_channeldata *channel; /* NULL: no try is under way */
    struct dns_socket *sockets;
    struct loop_timer timer; /* the next time-out of c-ares */
    struct loop_task settling;
    /* The try: */
    size_t server; /* its place in the list of that generation */
    unsigned generation;
    int64_t asked_ms; /* monotonic */
    int round;
    unsigned asked, spent; /* bits of servers: in this round; for good */
    bool by_tcp, trusted;
    struct dns_tried now, best; /* its result; the most telling one so far */
    char *joined;               /* texts of best */
};

void dns_question_init(struct dns_question *question, struct dns_asker *asker,
                       const char *name, enum dns_type type,
                       void (*done)(void *context), void *context);
/* Begins, or goes on after dns_question_yield(). */
void dns_question_ask(struct dns_question *question);
/* Ends the try, so that the next one asks another server, if there is one. */
void dns_question_yield(struct dns_question *question);
/* No callback comes later. Never within a callback of c-ares. */
void dns_question_stop(struct dns_question *question);
void dns_question_free(struct dns_question *question);

bool dns_asker_is_trusted(const struct dns_asker *asker);
/* The answer, as far as it is known; its texts live as long as the question. */
void dns_question_read(struct dns_question *question, struct dns_answer *answer);

#endif
