/* The TLS policy of an outgoing connection, decided here alone; the trust anchors; and the
 * hosts whose TLS failed.
 *
 * Every connection of smtp/delivery/delivery.h gets it here: the route gives the least
 * TLS that it must have, and the demands of the destination (DANE, MTA-STS) raise
 * that. */
#ifndef SMTP_TRUST_SECURITY_H
#define SMTP_TRUST_SECURITY_H

#include "base/net_address.h"
#include "base/tls/tls.h"
#include "queue/manager/activity.h"
#include "sched/route/route.h"

enum { SECURITY_NAMES_MAX = 2 };

/* The demand of the destination for a host. */
enum security_proof {
    SECURITY_PROOF_NONE,
    SECURITY_PROOF_ENCRYPT, /* TLSA records, none of them usable */
    SECURITY_PROOF_DANE,    /* one of the TLSA records (RFC 7672) */
    SECURITY_PROOF_STS      /* a certificate for the host (RFC 8461) */
};
/* Texts are borrowed. */
struct security_demand {
    enum security_proof proof;
    const struct tls_dane_record *records; /* DANE */
    size_t record_count;
    struct text base; /* DANE: the name whose TLSA records these are */
    /* A policy in mode testing, which demands nothing: is_foreign says that it does not
     * name the host. */
    bool is_tested, is_foreign;
};

struct log;

struct security_question {
    const struct target *target;
    const char *host; /* found by MX, or the target's own */
    size_t
        place; /* in the target's list: of that host, or of the name it is found by */
    bool has_failed; /* a handshake with it failed in this session */
    bool needs_tls;  /* we log in there, and not in cleartext */
    const struct security_demand *demand; /* NULL: none. Only for TARGET_MX */
    const char *domain;                   /* of the mail, with a demand */
};

/* Texts are borrowed from the question. */
struct security {
    enum target_tls level;
    bool implicit;
    /* The host that hears mail is certainly the one that was meant: by DANE or MTA-STS, or by
     * its name in the settings. */
    bool is_certain;
    bool is_required;   /* by the sender (REQUIRETLS) */
    bool fallen_back;   /* level is NONE because has_failed */
    bool may_fall_back; /* after a failed handshake: one attempt in cleartext */
    struct text host;   /* the name to send (SNI) */
    /* VERIFY: the certificate must have one of them. */
    struct text names[SECURITY_NAMES_MAX];
    size_t name_count;
    enum security_proof proof;
    const struct tls_dane_record *records; /* DANE */
    size_t record_count;
    struct text dane_names[SECURITY_NAMES_MAX]; /* below a trust anchor of DANE */
    size_t dane_name_count;
    bool is_tested, is_foreign; /* as in the demand */
    struct tls_pair own;        /* our certificate there; certificate NULL: none */
};

/* The names of VERIFY: the host of the target, a name or an address; for a target by
 * MX, the host of the MX record. Such a record is not authenticated, so that this
 * proves the host's name, but not that the host is the domain's. The domain's own name
 * cannot be demanded, since a connection carries the mail of all domains with the same
 * hosts. smtp://HOST?mx=yes permits HOST, too. Each host of a list must show its own
 * name.
 *
 * A demand makes "may" encrypt (DANE) or verify (MTA-STS), and permits no way back to
 * cleartext. A route with tls=none has none: its operator has said so. */
void security_decide(const struct security_question *question, struct security *out);

/* The source of the demand for TLS, for people: "DANE", "MTA-STS", "REQUIRETLS"; NULL: the
 * route. */
const char *security_demander(const struct security *security);

/* For net_start_tls(); not for level NONE. */
struct tls_client_options security_tls_options(const struct security *security);

/* The scheme that the route to this port may need in place of its own, for people: each
 * side seems to wait for the other to begin. NULL: nothing suggests this. */
const char *security_other_scheme(const struct security *security, unsigned port,
                                  enum activity_kind kind, int64_t waited_ms);

/* --- Trust anchors ---------------------------------------------------------------- */

enum { TRUST_ANCHORS_PLACE_MAX = 512 };

/* tls_ca: a file of PEM certificates or a directory of such files. Empty: the first of
 * the usual places that can be read; if there is none, this is an error only if needed.
 * place: the one that was read, or "". NULL with one line in error. Reads files: to be
 * called at startup and reload only. */
struct tls_client *trust_anchors_read(struct text tls_ca, bool needed,
                                      char place[TRUST_ANCHORS_PLACE_MAX], char *error,
                                      size_t error_size);
/* Logs at startup which one is used. */
void trust_anchors_say(const char *place, struct log *log);

/* --- Hosts whose TLS failed ------------------------------------------------------- */

/* Hosts whose TLS failed not long ago, so that the failure is logged once for many
 * messages. TLS is tried again for each of them.
 *
 * Pure. Holds at most SECURITY_FAILURES_MAX addresses, then the oldest is forgotten. */

enum { SECURITY_FAILURES_MAX = 2000 };
#define SECURITY_FAILURES_QUIET_MS ((int64_t)60 * 60 * 1000)

struct security_failures { /* zeroed before its first use */
    struct {
        uint64_t address; /* a hash */
        int64_t until_ms; /* 0: free */
    } list[SECURITY_FAILURES_MAX];
    size_t next;
};
/* The handshake with address failed now (loop_monotonic_ms()). True: it is to be
 * logged, since none was within SECURITY_FAILURES_QUIET_MS. */
bool security_failures_add(struct security_failures *l,
                           const struct net_address *address, int64_t now_ms)
    __attribute__((warn_unused_result));

#endif
