/* One connection to one host: a socket, the client machine, and the content in between.
 */
#ifndef SMTP_DELIVERY_CLIENT_CONNECTION_H
#define SMTP_DELIVERY_CLIENT_CONNECTION_H

#include "base/net/net.h"
#include "queue/manager/manager.h"
#include "smtp/client/client.h"
#include "smtp/delivery/failed_dialogues.h"
#include "smtp/delivery/credentials.h"
#include "smtp/trust/security.h"
#include "smtp/trust/signing.h"

struct event_hub;
struct client_connection;

struct client_connection_settings {
    struct loop *loop;
    struct event_hub *events;
    struct log *log;         /* of these */
    struct queue *queue;     /* of the content; NULL: there will be no mail */
    struct id first;         /* a crash before any mail is attributed to this message */
    const char *hostname;    /* copied */
    const char *redirect_to; /* copied; see smtp/client/client.h */
    const char *add_header, *remove_header; /* likewise */
    const char *to; /* of the target, which lives as long; likewise */
    bool lmtp;
    double timeout_scale;
    int64_t data_rate_min;             /* bytes of content in a second; 0: any */
    struct net_connection *connection; /* connected; taken over */
    struct reply_outcome_peer peer;
    struct credentials *login; /* taken over; NULL: no login */
    struct security security;  /* its texts live as long as the connection */
    /* The owner's variable: it may replace the value. level NONE: may be NULL. */
    struct tls_client *const *tls;
    /* Likewise; NULL: all mail leaves as it is stored. */
    const struct outgoing_rules *outgoing;
    bool tagged; /* mail to one recipient has a tagged sender: outgoing_tag() */
    struct signing *signing; /* NULL: nothing is signed */
    /* Keeps it if it fails, under the name of the site, which is copied; NULL: nobody. */
    struct failed_dialogues *failed_dialogues;
    const char *site;
};

/* Every kind but CLIENT_CONTENT, CLIENT_PREPARE and CLIENT_SECURE, with the meaning of
 * smtp/client/client.h. After CLIENT_OVER, call only client_connection_free(). */
typedef void client_connection_happened(void *context,
                                        const struct client_event *event);

/* Events come from a later turn on. */
struct client_connection *
client_connection_new(const struct client_connection_settings *settings,
                      client_connection_happened *on_event, void *context);
/* Whether client_connection_send() may be called: since CLIENT_READY, CLIENT_DONE or
 * CLIENT_EARLY. Its commands leave at the end of this turn. */
bool client_connection_has_space(const struct client_connection *s);
void client_connection_send(struct client_connection *s,
                            const struct client_mail *mail);
/* client_probe(), within CLIENT_READY. */
void client_connection_probe(struct client_connection *s, struct text sender,
                             struct text recipient);
/* "TLSv1.3/TLS_AES_256_GCM_SHA384/verified", "/unverified", or the demand of the
 * destination, "/dane" or "/sts"; "" in cleartext. Until client_connection_free(). */
const char *client_connection_tls(const struct client_connection *s);
/* At CLIENT_VERDICT: tls, dkim and sender of the mail under way, which live until its
 * CLIENT_DONE. dkim: "D/S,D/S", the domains and selectors that sign it; empty: unsigned.
 * sender: as the mail has left, if it is not that of the envelope; else empty. */
void client_connection_note_mail(const struct client_connection *s, struct timing *out);
/* At CLIENT_OVER: see client_tls_failed(). */
bool client_connection_tls_failed(const struct client_connection *s);
/* From CLIENT_READY: see client_has_requiretls(). */
bool client_connection_has_requiretls(const struct client_connection *s);
/* The credentials of its login, or NULL. */
const struct credentials *
client_connection_credentials(const struct client_connection *s);
/* Since CLIENT_READY. */
struct client_limits client_connection_limits(const struct client_connection *s);
/* Fills in the activity of the connection, its beginning, and whether it carries that
 * message; the owner adds the scheme. */
void client_connection_activity(const struct client_connection *s, struct id message,
                                struct activity *out);
/* Recipients without a verdict get this one, then CLIENT_OVER comes, before it
 * returns. */
void client_connection_abandon(struct client_connection *s,
                               const struct outcome *outcome);
/* Sends QUIT between transactions and does not wait for the reply. No event comes any
 * more. */
void client_connection_free(struct client_connection **s);

#endif
