/* SMTP and LMTP client: sessions to the hosts of a destination. The front door of all
 * rooms for mail out, which never know those for mail in and never decide when mail is
 * due.
 *
 * Connects smtp/client/client.h (a machine without sockets) with base/dns/dns.h,
 * base/net/net.h and queue/manager/manager.h. A session looks up the MX, connects to
 * the addresses in order until one greets, carries requests as long as there is mail
 * for the host, and quits. smtp/trust/security.h decides which TLS a connection must
 * have. A host whose TLS fails is passed over like one that is down, but its health
 * does not change, since other routes may demand less. With tls=may the session
 * connects to it once more, in cleartext; the host is then reported once an hour. */
#ifndef SMTP_DELIVERY_DELIVERY_H
#define SMTP_DELIVERY_DELIVERY_H

#include "base/dns/dns.h"
#include "queue/manager/manager.h"
#include "smtp/trust/signing.h"

struct event_hub;

struct delivery_settings {
    const char *hostname; /* EHLO */
    uint16_t smtp_port;   /* for MX */
    struct text
        smtp_bind; /* list of source addresses, at most one a family; may be empty */
    enum target_family smtp_family; /* unless a target has one; UNSET: any */
    bool dane;    /* TLSA records count, where name servers are trusted */
    bool mta_sts; /* policies count, where there are trust anchors */
    /* They may know this host by a source address; NULL: none. Read within the call
     * only. */
    const struct peers *peers;
    int64_t connect_timeout_ms; /* 30 s an address */
    int64_t data_rate_min;      /* of content, bytes in a second; 0: any */
    int mx_address_limit;       /* 5 addresses tried a session */
    struct text providers;      /* see sched/site_key.h; copied */
    int64_t reuse_idle_ms;      /* an idle connection is kept for more mail: 2 s */
    /* Taken over. Not NULL for delivery_new(); for delivery_reload() NULL keeps the old
     * one and its TLS sessions. delivery_check() ignores it. */
    struct tls_client *tls;
    /* Taken over; NULL: nothing is signed. delivery_check() ignores it. */
    struct dkim_keys *dkim_keys;
    /* for the users of targets; borrowed until the next settings */
    const struct secrets *secrets;
    /* for submitted mail; borrowed likewise. NULL: none */
    const struct rewrites *rewrites;
    /* the sender of notifications to next hops that a route names; NULL: "<>" */
    const char *bounce_sender;
};
struct net;
struct tokens;
struct delivery;

/* False with one line per error (smtp_bind, providers). */
bool delivery_check(const struct delivery_settings *settings, struct buffer *errors);
struct delivery *delivery_new(struct loop *loop, struct net *net, struct dns *dns,
                              struct event_hub *events, struct manager *manager,
                              const struct delivery_settings *settings);
/* For connections opened from now on; reuse_idle_ms for all. */
void delivery_reload(struct delivery *d, const struct delivery_settings *settings);
/* Ends idle sessions and those without a connection that has greeted; the others end
 * when their mail is done. */
void delivery_drain(struct delivery *d);
/* Aborts the sessions that are left: their requests are settled as deferred. Not within a
 * callback of a session. */
void delivery_cut(struct delivery *d);
/* Aborts all sessions and frees; d may point to NULL. */
void delivery_free(struct delivery **d);
/* The tokens of the accounts among secrets; NULL: there are no accounts. tokens live
 * longer than d. */
void delivery_set_tokens(struct delivery *d, struct tokens *tokens);
/* Tagged senders; NULL: there are none. Borrowed until the next ones. */
struct verp;
void delivery_set_verp(struct delivery *d, const struct verp *verp);
/* The policies of MTA-STS; NULL: no policy counts. sts lives longer than d. */
struct sts_cache;
void delivery_set_sts(struct delivery *d, struct sts_cache *sts);
/* The settings of a canary to the target; borrowed until the next ones. */
struct smarthost_probe_settings;
void delivery_probe_settings(const struct delivery *d, const struct target *target,
                             struct smarthost_probe_settings *out);
/* The trust anchors in use, for others. */
struct tls_client *const *delivery_tls(const struct delivery *d);
/* Counts of the results of demands by DANE and MTA-STS. */
struct tls_reports;
struct tls_reports *delivery_tls_reports(const struct delivery *d);
/* The last failed conversation with each site. */
struct failed_dialogues;
const struct failed_dialogues *delivery_failed_dialogues(const struct delivery *d);
/* The signatures of outgoing mail, and their keys. */
const struct signing *delivery_signing(const struct delivery *d);
/* A manager_open(); context is the struct delivery. For TARGET_MX, _SMTP and _LMTP. */
void delivery_open(void *context, struct sched_session *session,
                   const struct target *target, const char *domain);

#endif
