/* What delivery.c and delivery_watch.c share. Nobody else includes this. */
#ifndef SMTP_DELIVERY_INTERNAL_H
#define SMTP_DELIVERY_INTERNAL_H

#include "base/loop/loop.h"
#include "smtp/client/candidates.h"
#include "smtp/client/delivery.h"
#include "smtp/client/happy_eyeballs.h"
#include "smtp/client/mx_lookup.h"
#include "smtp/client/tls_failures.h"
#include "smtp/client/relayhosts.h"
#include "smtp/client/client_connection.h"
#include "smtp/client/bind_address.h"

struct delivery {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct log *log;
    struct manager *manager;
    struct delivery_settings settings; /* without the two texts: */
    char *hostname;
    struct bind_address sources, peer_sources;
    struct site_keys *providers;
    struct tls_client *tls;
    struct tls_failures *lapses;
    struct delivery_session *sessions;
    struct delivery_session *early; /* said the dot in this turn: more may go with it */
};

struct delivery_session {
    struct delivery_session *prev, *next;
    struct delivery_session *early_prev, *early_next;
    struct delivery *delivery;
    struct sched_session *place; /* the scheduler's */
    const struct target *target;
    const char *domain; /* of an MX; borrowed */
    struct mx_lookup *exchange;
    struct relayhosts *relays; /* instead of exchange: of a list of hosts */
    unsigned refused; /* those of the list that have refused our user, as bits */
    struct mx_lookup_host socket; /* of a Unix socket, which has no exchange */
    struct candidates candidates;
    size_t race[2];            /* those of the hosts that are called now, at most */
    struct credentials *login; /* for the first of them, until somebody answers */
    struct happy_eyeballs *dialing; /* while they are */
    happy_eyeballs_happened *on_dialing;
    int64_t connecting_ms;
    bool greeted; /* the connection now */
    struct reply_outcome_peer peer;
    struct security security; /* of the connection now */
    const struct mx_lookup_host
        *clear;                        /* that whose handshake failed in this session */
    struct client_connection *sending; /* the connection now, or NULL */
    bool again;      /* it failed an request that goes over a new one */
    bool in_request; /* some of it is not settled, as far as we know */
    bool sent;       /* over the connection now: the machine settles it */
    struct delivery_request request;
    bool has_next; /* the request behind it is taken and said */
    struct delivery_request next_request;
    bool prompt, is_early;
    int64_t dot_ms, next_request_ms;
    bool has_trouble, closing;
    struct outcome trouble;
    int64_t opened_ms, request_ms;
    struct timing timing;
    int64_t idle_since_ms;
    struct loop_timer idle;
    struct loop_task task;
};

/* A manager_watch(); context is the struct delivery. */
manager_watch delivery_watch;

#endif
