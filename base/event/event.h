/* Events of mail and of clients, reported once and read by several.
 *
 * The part that decides something tells it with event_tell(); the log, the history, the
 * counters and the live stream read it (event_read()). A reader never blocks and never
 * calls back into mail. A kind that nobody reads costs one test.
 *
 * An event is borrowed: its texts are valid until event_tell() returns. Members that a
 * kind does not use are zero. Bytes of peers are unescaped: each reader escapes them. */
#ifndef BASE_EVENT_EVENT_H
#define BASE_EVENT_EVENT_H

#include "base/gate.h"
#include "base/id.h"
#include "base/outcome.h"
#include "base/text.h"

struct log;
struct loop;

enum event_kind {
    /* Clients. */
    EVENT_CONNECTED,
    EVENT_DISCONNECTED, /* verbs */
    EVENT_SECURED,      /* TLS stands; client: in, relay: out */
    EVENT_REFUSED,      /* our 4yz or 5yz: outcome, reason, command */
    EVENT_DENIED,       /* a login failed: outcome, client->mechanism */
    EVENT_LOCKED,       /* the address is locked out: attempt failures, next_ms */
    EVENT_LOST,         /* a session ended badly: command is its last verb, size the */
    EVENT_TIMED_OUT,    /* bytes of content until then, or -1 outside content */
    EVENT_CUT_OFF,
    /* Messages. */
    EVENT_ACCEPTED,  /* durable, 250 follows; text "peer": a fragment of a peer host */
    EVENT_SUBMITTED, /* a message of sendmail(1) is taken over */
    EVENT_MADE,      /* a notification or a reassembled message is stored */
    EVENT_LOADED,    /* first time in the active queue */
    EVENT_DELIVERED, /* a recipient's verdict: outcome, relay, delay_ms, ... */
    EVENT_DEFERRED,
    EVENT_BOUNCED,
    EVENT_EXPIRED,
    EVENT_LIFETIME, /* once for a message, when some of its recipients expired */
    EVENT_NOTIFIED, /* of id, by other; text: the address and the cause; reason: its kind */
    EVENT_DISCARDED, /* a notification about a notification is not made */
    EVENT_ENDED,     /* nothing is left */
    EVENT_HELD,      /* an operator or a route did it: text */
    EVENT_RELEASED,
    EVENT_RETRIED,
    EVENT_REMOVED,
    EVENT_RETURNED,
    EVENT_GIVEN, /* to another host of the group, or taken from it: fields */
    EVENT_TAKEN,
    /* A report about the message has come back: fields; recipient, outcome, reason (its
     * class), relay (who reports), other (the report), sender (its domain alone). */
    EVENT_BOUNCED_LATER, /* command: "failed" or "delayed" */
    EVENT_COMPLAINED,    /* command: "abuse", "fraud" ... */
    /* Fragments. */
    EVENT_FRAGMENT, /* fields */
    /* Sites and upstreams. */
    EVENT_SITE_DEAD,
    EVENT_SITE_ALIVE,
    /* relay: which, text: what it does, reason: the code of a finding */
    EVENT_UPSTREAM_FAILED,
    EVENT_UPSTREAM_OK,
    EVENT_QUOTA,
    EVENT_SUPPRESSED, /* recipient is not tried again; reason: its class, text: why */
    /* The daemon. */
    EVENT_TROUBLE, /* a finding begins, ends: command is its code, hint its remedy */
    EVENT_RECOVERED,
    EVENT_STARTED,
    EVENT_RELOADED,
    EVENT_CERTIFICATE,
    EVENT_DRAINING,
    EVENT_STOPPING,
    EVENT_KINDS
};
#define EVENT_BIT(kind) (UINT64_C(1) << (kind))
#define EVENT_ALL       (EVENT_BIT(EVENT_KINDS) - 1)

#define EVENT_NO_UID UINT32_MAX

/* A client, as its session knows it. Strings may be NULL or empty: not known. */
struct event_client {
    const char *name; /* "[192.0.2.1]", "[IPv6:2001:db8::1]", "unix", "local" */
    const char *helo, *user, *mechanism;
    const char *protocol; /* "ESMTP" ... */
    const char *tls;      /* "TLSv1.3 with cipher ..." */
    uint32_t uid;         /* of a local client, or EVENT_NO_UID */
    bool is_trusted;      /* may relay by its address */
};

/* The commands of a session: how many were good, how many came. */
struct event_verb {
    const char *name; /* "ehlo"; NULL ends the list */
    uint32_t good, all;
};

/* A field of a kind that has many. */
struct event_field {
    const char *key;
    enum event_field_kind { EVENT_TEXT, EVENT_NUMBER, EVENT_ADDRESS } kind;
    struct text value;
    int64_t number;
};

/* Names the message of a recipient's verdict to the program that submitted it; only
 * while events are kept. */
struct event_origin {
    uint32_t recipient;          /* its number, from 1 on */
    struct text original;        /* ORCPT as given */
    struct text envelope_id;     /* ENVID as given */
    struct text message_id, tag; /* of the header */
    struct text submitter;       /* "user:NAME", "uid:N" */
};

struct event {
    enum event_kind kind;
    const char *program; /* log.h; NULL: the usual one of the kind */
    struct id id, other; /* all 0: none */
    const struct event_client *client;
    struct text sender, recipient;
    struct text left_as;           /* the sender with which it left, if another */
    struct text original;          /* the recipient before an alias */
    struct text message_id, relay; /* relay: "host[ip]:port", a Maildir, "none" */
    struct text tls, dkim, command, text, hint;
    const char
        *verb; /* REFUSED: of the command, in lower case; "connect": before any */
    const char *site;   /* of a verdict at a next hop: its site's name; NULL: none */
    const char *reason; /* REFUSED: of refusals.h; EVENT_NOTIFIED: its kind */
    int64_t size;
    uint32_t recipients, attempt, injector;
    bool is_again; /* DEFERRED: so was the message, in an attempt before */
    bool is_quiet; /* beyond the log's share of such lines: only for counters */
    const struct event_verb *verbs;
    const struct event_field *fields;
    size_t field_count;
    int64_t delay_ms[4]; /* before loading, in the queue, connection, transmission */
    int64_t total_ms, next_ms, since_ms;
    const struct event_origin *origin; /* NULL: nobody keeps events */
    const struct outcome *outcome;
};

enum { EVENT_READERS_MAX = 10 };

struct event_hub;
typedef void event_reader(void *context, const struct event *event);

/* The log is the first reader (event_log.h), and borrowed; NULL: it is none. */
struct event_hub *event_hub_new(struct log *log);
void event_hub_free(struct event_hub **hub);
/* From now on the log counts deferrals of waiting mail where they are many
 * (event_log.h). Free the hub before the loop. */
void event_hub_count_waiting(struct event_hub *hub, struct loop *loop);
/* For sentences that are no events. NULL without a hub or log. */
struct log *event_hub_log(const struct event_hub *hub);

/* kinds: EVENT_BIT()s; they replace those of a reader that is there with this context. 0:
 * it reads no more. */
void event_read(struct event_hub *hub, uint64_t kinds, event_reader *read,
                void *context);
/* Whether somebody reads the kind: for events that cost much to compose. hub may be
 * NULL. */
bool event_is_read(const struct event_hub *hub, enum event_kind kind);
/* hub may be NULL: nobody reads. */
void event_tell(struct event_hub *hub, const struct event *event);

/* Whether events are kept until a program has them (event_spool.h): then envelopes keep
 * the data of a message that these need. hub may be NULL. */
bool event_are_kept(const struct event_hub *hub);
void event_hub_keep(struct event_hub *hub, bool keeps);
/* Which results of deliveries may be written: those whose events are durable. Lives as
 * long as the hub; NULL without one. */
struct gate *event_hub_gate(struct event_hub *hub);

/* How it goes with kept events; zeros while nobody keeps them. */
enum { EVENT_KEEPING_WHY_MAX = 400 };
struct event_keeping {
    uint64_t pending_bytes, lost;
    int64_t
        failing_ms; /* the receiver has taken none for this time; 0: it takes them */
    bool stopped;   /* it has said that it is gone */
    char why[EVENT_KEEPING_WHY_MAX];
};
struct event_keeping event_hub_keeping(const struct event_hub *hub);
/* look NULL: nobody keeps them any more. */
void event_hub_on_keeping(struct event_hub *hub,
                          void (*look)(void *context, struct event_keeping *out),
                          void *context);

/* "accepted"; "lifetime", ... */
const char *event_word(enum event_kind kind);

#endif
