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
    struct session *sessions;
    struct session *early; /* said the dot in this turn: more may go with it */
};

struct session {
    struct session *prev, *next;
    struct session *early_prev, *early_next;
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
    bool again;     /* it failed an errand that goes over a new one */
    bool in_errand; /* some of it is not settled, as far as we know */
    bool sent;      /* over the connection now: the machine settles it */
    struct errand errand;
    bool has_next; /* the errand behind it is taken and said */
    struct errand next_errand;
    bool prompt, is_early;
    int64_t dot_ms, next_errand_ms;
    bool has_trouble, closing;
    struct outcome trouble;
    int64_t opened_ms, errand_ms;
    struct timing timing;
    int64_t idle_since_ms;
    struct loop_timer idle;
    struct loop_task task;
};

/* A manager_watch(); context is the struct delivery. */
manager_watch delivery_watch;

#endif
