/* Where mail for an address goes: the tables `routes`, `sender_routes`, `relay`,
 * `local`. Pure: it looks nothing up and opens no file.
 *
 * First match wins. PATTERN: user@domain, domain, .domain (sub-domains), *. A recipient
 * in local_domains that only the pattern * would match goes to the `local` target.
 * Without one it goes to the target of *, unless that is mx (or there is none): then it
 * is unknown, since an MX look-up of our own domain only finds ourselves. relay
 * replaces a final `* mx`. Mail that no pattern matches goes by MX.
 *
 * Mail that only the pattern * matches goes to the target that sender_routes give for
 * its envelope sender, if any: the patterns are the same, and <> for bounces. */
#ifndef SCHED_ROUTE_ROUTE_H
#define SCHED_ROUTE_ROUTE_H

#include "mime/address.h"
#include "sched/route/bind_address.h"
#include "sched/route/secrets.h"
#include "sched/limits/transport_params.h"

/* The users of the system, as far as this file lists them. */
#define TARGET_USERS_SYSTEM "/etc/passwd"

enum target_kind {
    TARGET_MX,   /* look up the recipient's domain */
    TARGET_SMTP, /* a named host */
    TARGET_LMTP,
    TARGET_MAILDIR,
    TARGET_HTTP, /* a web application that gets a POST */
    TARGET_HOLD,
    TARGET_DISCARD,
    TARGET_ERROR,  /* refused at RCPT when possible, else bounced */
    TARGET_UNKNOWN /* local domain without a mailbox: 550 5.1.1 */
};
/* The TLS level that a route requires. */
enum target_tls {
    TARGET_TLS_NONE,
    TARGET_TLS_MAY,     /* if the host offers it, with any certificate; else
                         * cleartext */
    TARGET_TLS_ENCRYPT, /* any certificate; never cleartext */
    TARGET_TLS_VERIFY   /* a certificate from tls_ca for the host; never cleartext */
};
/* Wishes of the sender of a message for the TLS to next hops (RFC 8689). */
enum target_asks {
    TARGET_ASKS_NOTHING,
    TARGET_REQUIRES_TLS, /* REQUIRETLS: none but hosts that prove who they are and have it */
    TARGET_WAIVES_TLS /* "TLS-Required: No": demands of the recipient's domain do not count */
};
/* Addresses that a delivery may go to. */
enum target_family {
    TARGET_FAMILY_UNSET, /* smtp_family counts */
    TARGET_FAMILY_ANY,
    TARGET_FAMILY_IPV4,
    TARGET_FAMILY_IPV6
};
/* Whether mail that is ours is signed. */
enum target_dkim { TARGET_DKIM_UNSET, TARGET_DKIM_YES, TARGET_DKIM_NO };
/* Whether canaries ask the host (smarthost_probe.h); unset: if we log in. */
enum target_canary { TARGET_CANARY_UNSET, TARGET_CANARY_YES, TARGET_CANARY_NO };
enum {
    TARGET_HOST_MAX = 256,
    TARGET_PATH_MAX = 1024,
    TARGET_USERS_MAX = 256,
    TARGET_HOSTS_MAX = 8, /* in a fail-over list */
    TARGET_AUTH_MAX = 16,
    TARGET_NOTICES_MAX = 9,
    TARGET_TO_MAX = ADDRESS_MAX + 1,
    TARGET_FIELDS_MAX = 512
};

/* A further host of TARGET_SMTP. */
struct target_more {
    uint16_t host, user; /* offsets in path; user 0: none */
    uint16_t port;
    uint64_t secret;
};

struct target {
    enum target_kind kind;
    char host[TARGET_HOST_MAX]; /* name or bare IP literal; "" for Unix sockets */
    bool look_up_mx;            /* SMTP: the host's MX first? Only with ?mx=yes */
    uint16_t port;              /* 0 = smtp_port for MX */
    enum target_tls tls;        /* MX, SMTP, LMTP; default MAY, for LMTP NONE */
    bool tls_implicit;          /* TLS from the first byte, without STARTTLS */
    char path[TARGET_PATH_MAX]; /* Unix socket; Maildir with %u %d; ERROR text; SMTP:
                                 * users and more hosts, see target_host() */
    uint16_t user;       /* SMTP, HTTP: offset in path of the user of host; 0: none */
    uint16_t more_count; /* SMTP: further hosts, tried in this order */
    struct target_more more[TARGET_HOSTS_MAX - 1];
    uint64_t secret;            /* secrets_mark() of the user's password; 0: none */
    char auth[TARGET_AUTH_MAX]; /* SMTP: the only mechanism, in lower case; "": any;
                                 * HTTP: "bearer", else basic */
    bool auth_clear;            /* SMTP ?auth_clear=yes: log in even without TLS */
    uint16_t peer; /* SMTP: offset in path of the name of a peer (peers.h); 0:
                        * none */
    uint16_t
        helo; /* MX, SMTP ?helo=: offset in path of our name in EHLO; 0: hostname */
    uint16_t cert, key;   /* MX, SMTP ?cert=, ?key=: offsets in path; 0: none */
    uint16_t url;         /* HTTP: offset in path of that of the URL */
    uint16_t sign;        /* HTTP ?sign=: offset in path of the key's name; 0: none */
    uint64_t sign_secret; /* secrets_mark() of it */
    /* The one address that gets all mail of a `redirect:`; "": none. The rest of the
     * target is the way to it. */
    char to[TARGET_TO_MAX];
    /* MX, SMTP, LMTP: lines that its mail gets in front of the header, each with CRLF; and
     * names of fields that it loses, each with a comma. */
    char add_header[TARGET_FIELDS_MAX], remove_header[TARGET_FIELDS_MAX];
    bool is_json;    /* HTTP ?format=json */
    bool is_private; /* HTTP ?private=yes: a name may lead into our own networks */
    struct bind_address bind; /* MX, SMTP ?bind=: where it has none, smtp_bind */
    enum target_family family;
    enum target_dkim dkim;     /* MX, SMTP ?dkim= */
    enum target_canary canary; /* SMTP ?canary= */
    bool no_dane;              /* MX ?dane=no: TLSA records do not count */
    bool no_sts;               /* MX ?sts=no: nor do policies of MTA-STS */
    enum target_asks asks;     /* not of the route, but of mail: route_asked() */
    char enhanced[12];         /* ERROR */
    bool create; /* MAILDIR ?create=: missing user directories are made... */
    char users[TARGET_USERS_MAX]; /* ...for the names in this file; "": for all */
    struct transport_params
        transport;        /* scheduling, with this route's options applied */
    double timeout_scale; /* multiplies the RFC 5321 §4.5.3.2 time-outs */
    bool defragment;      /* ?defragment=yes: reassemble message/partial first */
    int64_t notices_ms;   /* first of ?notices=: a set waits for half of it */
    /* ?notices=: ages at which the sender is notified of the delay, rising; if none,
     * transport.delay_warning_ms is the only one. */
    int64_t notices[TARGET_NOTICES_MAX];
    unsigned notice_count;
};

struct peers;
struct route_table;

/* A host of TARGET_SMTP, borrowed from the target. */
struct target_host {
    struct text host, user; /* user: may be empty; then there is no AUTH */
    uint16_t port;
};
/* The hosts in the order of attempts; all have the target's options. 0: it has no
 * host. */
size_t target_host_count(const struct target *target);
struct target_host target_host(const struct target *target, size_t at);
/* The age in ms at which the sender is notified of the delay for the time that follows
 * `sent` notifications; INT64_MAX: not again. */
int64_t target_notice_ms(const struct target *target, unsigned sent);
/* Whether we log in to any of them. */
bool target_has_user(const struct target *target);
/* The name of the host that shares sets of fragments with us; NULL: the target is not
 * one. */
const char *target_peer(const struct target *target);
/* The URL of TARGET_HTTP, without its user: at most TARGET_URL_MAX. */
enum { TARGET_URL_MAX = TARGET_HOST_MAX + TARGET_PATH_MAX + 16 };
void target_url(const struct target *target, char out[TARGET_URL_MAX]);
/* The names in TARGET_HTTP: the user that logs in, and the key that signs; "": none. */
struct text target_user(const struct target *target);
struct text target_signer(const struct target *target);
/* Our name in EHLO; NULL: hostname. */
const char *target_helo(const struct target *target);
/* The files of the certificate that we present there, and of its key; borrowed. False:
 * there is none. */
bool target_certificate(const struct target *target, const char **certificate,
                        const char **key);
/* Whether our mail is signed on this way: unless ?dkim= says it, not for Amazon SES,
 * which replaces fields that we sign, and signs itself. */
bool target_signs(const struct target *target);
/* "any", "ipv4", "ipv6"; NULL-terminated, from TARGET_FAMILY_ANY on. */
extern const char *const target_families[];

/* All texts may be empty. base: the default_* settings, which a route's options
 * override. passwords: see sched/route/secrets.h. A host with a user and no secret is
 * an error, unless without_secrets, for callers that only ask where mail goes. Adds one
 * line per error to `errors` ("routes: 'x y': ...") and returns NULL then. */
struct route_settings {
    struct text routes, sender_routes, relay, local, local_domains;
    struct text defrag_host, defrag_peers; /* see peers.h; no host: no peers */
    struct text relay_password, passwords;
    const struct secrets_account *accounts; /* these users need no password */
    size_t account_count;
    bool without_secrets;
    uint16_t smtp_port;
    struct transport_params base;
};
struct route_table *route_new(const struct route_settings *settings,
                              struct buffer *errors);
void route_free(struct route_table **table);

/* Never NULL; borrowed from the table. A bare "postmaster" (no domain) is looked up
 * with the first of local_domains. Plus-addresses match only in full. */
const struct target *route_find(const struct route_table *table,
                                const struct address *address);
/* Whether any target verifies certificates, so that trust anchors are needed. */
bool route_demands_verify(const struct route_table *table);
/* Whether any target asks for reassembly of fragments. */
bool route_defragments(const struct route_table *table);
/* The address to which mail for the recipient goes on that target: its own, in normal
 * form, or the one of a redirect. */
struct text route_recipient(const struct target *target, struct text recipient);
/* As route_find(), for mail of that envelope sender, written as in MAIL FROM without
 * <>; "" for bounces. past_hold: an operator has released the mail, and routes that say
 * hold are ignored. */
const struct target *route_find_from(const struct route_table *table,
                                     struct text sender, const struct address *address,
                                     bool past_hold);
/* The target for mail on that way whose sender asks for that. Borrowed from the table, as
 * target is. */
const struct target *route_asked(const struct route_table *table,
                                 const struct target *target, enum target_asks asks);
/* Whether any route leads to exactly that target, whatever senders ask there: one with
 * another option or another password is another target. */
bool route_leads_to(const struct route_table *table, const struct target *target);
/* After a reload: the target of `now` that has replaced a target of `was` (NULL: none
 * has). It has other scheduling parameters and is the same in all else, so that sessions
 * of one serve the mail of the other. NULL: the target has stayed, or has no successor of
 * that kind, or several. Borrowed from `now`. */
const struct target *route_successor(const struct route_table *was,
                                     const struct route_table *now,
                                     const struct target *target);
/* Borrowed from the table; NULL: there is no defrag_host. */
const struct peers *route_peers(const struct route_table *table);
/* The secrets of the users in targets; borrowed from the table. */
const struct secrets *route_secrets(const struct route_table *table);
/* The first of local_domains, in normal form; "": there is none. */
struct text route_first_local_domain(const struct route_table *table);
/* Calls each with all of them, in their order. */
void route_each_local_domain(const struct route_table *table,
                             void (*each)(void *context, struct text domain),
                             void *context);
bool route_is_local_domain(const struct route_table *table, struct text domain);

/* The target of mail that no pattern matches. */
const struct target *route_default(const struct route_table *table);
/* Every target of the table but that one, in no order, once for each pattern. */
void route_each_target(const struct route_table *table,
                       void (*each)(void *context, const struct target *target),
                       void *context);

/* Every route that is never chosen, since the pattern `by` above it matches all that it
 * would match: the setting it stands in, and its pattern in normal form. */
typedef void route_hidden(void *context, const char *key, const char *pattern,
                          const char *by);
void route_each_hidden(const struct route_table *table, route_hidden *each,
                       void *context);

/* The key of the destination that all mail for the same next hop has:
 * "smtp:example.org", "smtp:[mail.example.org]:587", "lmtp:unix:/path", "maildir"; that
 * of a peer begins with "defrag:" and its name. Lower case, except paths. Other TLS
 * requirements make other destinations: the scheme is smtps for implicit TLS, and a
 * level other than the scheme's default is appended,
 * "smtp:[mail.example.org]:587?tls=verify" (also for submission://, which means
 * that). Mail with REQUIRETLS has "requiretls=yes". */
enum { ROUTE_KEY_MAX = 1100 };
size_t route_key(const struct target *target, struct text domain,
                 char out[ROUTE_KEY_MAX]);

#endif
