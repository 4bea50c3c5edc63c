/* Declarations that delivery*.c share. No other file includes this. */
#ifndef SMTP_DELIVERY_DELIVERY_INTERNAL_H
#define SMTP_DELIVERY_DELIVERY_INTERNAL_H

#include "base/loop/loop.h"
#include "smtp/connect/address_race.h"
#include "smtp/delivery/delivery.h"
#include "smtp/connect/exchange.h"
#include "smtp/connect/happy_eyeballs.h"
#include "smtp/connect/mx_lookup.h"
#include "smtp/trust/security.h"
#include "smtp/trust/tls_reports.h"
#include "smtp/delivery/client_connection.h"
#include "sched/route/bind_address.h"

struct event_hub;

/* Sites that have refused our IPv6 address; one more replaces that which ends first, and
 * is asked once more then. Times are monotonic. */
enum { DELIVERY_IPV6_RESTS_MAX = 64 };
struct ipv6_rest {
    uint64_t site;
    int64_t until_ms;
};

struct delivery {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct event_hub *events;
    struct log *log; /* of these */
    struct manager *manager;
    struct delivery_settings settings; /* without hostname, peers, tls and the texts */
    char *hostname;
    struct outgoing_rules outgoing, outgoing_mx; /* by MX bounces have no sender */
    struct bind_address sources, peer_sources;
    struct site_keys *providers;
    struct tls_client *tls;
    uint64_t tls_number; /* how many of them there were */
    struct signing *signing;
    struct security_failures tls_failures;
    struct tls_reports *tls_reports;
    struct failed_dialogues *failed_dialogues;
    struct tokens *tokens;
    struct sts_cache *sts;
    struct ipv6_rest ipv6_rests[DELIVERY_IPV6_RESTS_MAX];
    int64_t ipv6_rests_until_ms; /* none lasts longer */
    int64_t no_ipv4_until_ms;    /* this host had no route for IPv4; monotonic */
    struct delivery_session *sessions;
    struct delivery_session *idle;  /* kept for more mail */
    struct delivery_session *early; /* their dot leaves in this turn, mail may, too */
};

struct delivery_session {
    struct delivery_session *prev, *next;
    struct delivery_session *early_prev, *early_next;
    struct delivery_session *idle_prev, *idle_next;
    struct delivery *delivery;
    struct sched_session *session; /* the scheduler's */
    const struct target *target;
    const char *domain; /* for TARGET_MX; borrowed */
    uint64_t site;      /* a hash of the name of its servers */
    struct bind_address sources;
    bool skip_v4, skip_v6; /* addresses of that family are not tried */
    struct exchange *exchange;
    struct mx_lookup_list *relays; /* in place of exchange: for a list of hosts */
    unsigned refused; /* hosts of the list that have refused our user, as bits */
    struct mx_lookup_host socket; /* a Unix socket, which needs no look-up */
    struct address_race candidates;
    size_t race[2];                    /* the hosts to which it connects now */
    struct credentials *login;         /* for the first of them, until one answers */
    struct happy_eyeballs *connecting; /* while it connects */
    happy_eyeballs_happened *on_connecting;
    int64_t connecting_ms;
    bool greeted; /* the connection now */
    struct reply_outcome_peer peer;
    struct security security;             /* of the connection now */
    const struct mx_lookup_host *clear;   /* whose handshake failed in this session */
    struct client_connection *connection; /* the connection now, or NULL */
    bool in_request;                      /* request is not settled */
    bool sent; /* over this connection: the machine settles it */
    struct delivery_request request;
    unsigned *rest; /* which of its recipients are in the transaction; NULL: all */
    unsigned *rest_indexes; /* likewise, of the envelope */
    size_t rest_count, later_count;
    struct outcome later; /* why the first later_count of rest go in another one */
    bool has_next;        /* the next request is taken and sent */
    struct delivery_request next_request;
    bool prompt, is_early, is_idle;
    int64_t dot_ms, next_request_ms;
    bool has_trouble, closing;
    bool has_other_trouble; /* than delivery_refuses_required() */
    struct outcome trouble;
    bool lacks_token; /* of a host: no trouble, since the scheduler waits for it */
    int64_t opened_ms, request_ms;
    struct timing timing;
    int64_t idle_since_ms;
    struct loop_timer idle_end;
    struct loop_task task;
};

/* Sets sources and families of a new session. False: the outcome says which source
 * address this host does not have. */
bool delivery_choose_source(struct delivery_session *s, struct outcome *why)
    __attribute__((warn_unused_result));

/* Looks up the hosts; done gets the session. */
void delivery_ask_hosts(struct delivery_session *s, const char *domain,
                        mx_lookup_found *done);
/* Whether the session may serve the site that its domain's mail exchangers are. */
bool delivery_belongs_to_site(struct delivery_session *s,
                              const struct mx_lookup_answer *answer);
/* The number in the target's list, of the host or of the name that it is found by. */
size_t delivery_host_number(const struct delivery_session *s,
                            const struct mx_lookup_host *host);
/* For the next connection, to that host. */
void delivery_decide_security(struct delivery_session *s,
                              const struct mx_lookup_host *host);
/* A host is certain, and does not offer REQUIRETLS. */
bool delivery_lacks_requiretls(const struct outcome *outcome);
/* A host that fails so will never get mail whose sender requires TLS. */
bool delivery_refuses_required(const struct outcome *outcome);
/* Why a session ends without a host; failed, if each of them has failed so. */
struct outcome delivery_judge_required(const struct delivery_session *s,
                                       const struct outcome *why);

/* Counts the result of the domain's demand: the host has greeted. Logs a host that a
 * policy in mode testing would have refused. */
void delivery_report_greeted(const struct delivery_session *s);
/* Count the result of the demand when a connection has failed, or no host was found. */
void delivery_report_failed(const struct delivery_session *s,
                            const struct outcome *outcome);
void delivery_report_no_host(const struct delivery_session *s,
                             const struct outcome *outcome);

/* Whether the session's connection is over IPv6, which the site has refused: it gets no
 * more mail. */
bool delivery_family_rests(const struct delivery_session *s);
/* Leaves IPv6 out of the candidates if the site has refused it, and has IPv4, too. */
void delivery_family_choose(struct delivery_session *s);
/* An address could not be connected to. error: errno, or 0. */
void delivery_family_failed(struct delivery_session *s,
                            const struct mx_lookup_host *host, int error);
/* True: the outcome is of our IPv6 address, and the mail can go over IPv4. */
bool delivery_family_refused(struct delivery_session *s, const struct outcome *outcome);
/* The outcome for the mail: deferred, if it is of our IPv6 address. */
struct outcome delivery_family_judge(struct delivery_session *s,
                                     const struct outcome *outcome);

#endif
