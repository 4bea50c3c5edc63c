/* Which host owns a set of fragments: what several hosts share so that all parts of a
 * message meet at one of them (doc/defragment.md "Registry").
 *
 * A hint, never custody: the spool holds the mail. The first host that claims a key
 * owns it, until the claim expires. When the registry does not answer its users go on
 * alone; that costs a set its joining, never mail. Two owners of one key, which a
 * failover or a race of three over an expired claim can make, cost no more than that.
 *
 * Places that can be named in the settings:
 *   local                    this host owns everything
 *   dir:/path                a directory that the hosts share: see registry_dir.c
 *   redis://[[user]:password@]host[:port][/database]       Redis or Valkey
 *   rediss://...             the same by TLS
 * Of user and password %XX is decoded. */
#ifndef DEFRAG_REGISTRY_H
#define DEFRAG_REGISTRY_H

#include "base/crypto/digest.h"

struct dns;
struct log;
struct loop;
struct net;
struct tls_client;
struct registry;

enum {
    REGISTRY_KEY_SIZE = DIGEST_SIZE,
    REGISTRY_HOST_MAX = 255,     /* bytes of a host's name */
    REGISTRY_ANSWER_MS = 250,    /* later the answer is: unavailable */
    REGISTRY_RECOVER_MS = 5000,  /* between two calls of recovered, at least */
    REGISTRY_SETTING_MAX = 1024, /* bytes */
    REGISTRY_SECRET_MAX = 256,   /* bytes of user, of password */
    REGISTRY_CLOSES_MAX = 10000  /* not yet done; more are left to expire */
};

/* --- Where it is ------------------------------------------------------------------ */

enum registry_kind { REGISTRY_LOCAL, REGISTRY_DIR, REGISTRY_REDIS };

struct registry_place {
    enum registry_kind kind;
    char path[REGISTRY_SETTING_MAX];  /* DIR */
    char host[REGISTRY_HOST_MAX + 1]; /* REDIS: a name or an address, no brackets */
    uint16_t port;
    unsigned database;
    char user[REGISTRY_SECRET_MAX + 1], password[REGISTRY_SECRET_MAX + 1];
    bool tls;
};

/* False with one line in error, in which no password is. Refuses redis where this
 * program was built without hiredis. */
bool registry_parse(struct text setting, struct registry_place *place, char *error,
                    size_t error_size);
/* The same as the settings have it, where the password stands apart. */
bool registry_configure(struct text setting, struct text password,
                        struct registry_place *place, char *error, size_t error_size);
/* As it was given, without user and password: for people. */
void registry_place_text(const struct registry_place *place,
                         char out[REGISTRY_SETTING_MAX]);
/* Letters, digits, "-", "_" and ".", 1 to REGISTRY_HOST_MAX. */
bool registry_is_host(struct text name);
/* "hiredis 0.14.1"; "" when built without. */
const char *registry_redis_version(void);

/* --- What it is asked ------------------------------------------------------------- */

struct registry_setup {
    struct loop *loop;
    struct log *log;
    struct net *net; /* this and the next for redis alone */
    struct dns *dns;
    struct tls_client *tls; /* for rediss; with anchors, since it is verified */
    /* Our name: registry_is_host(); stays the same for ever, and nobody else has it. If
     * somebody has, that is logged within two minutes, and nothing else changes. */
    const char *host;
    /* It answers again after a claim was unavailable, or was never asked since it was
     * known to be down: time to claim what was held meanwhile. May be NULL. */
    void (*recovered)(void *context);
    void *context;
};

/* What setup points to outlives it. NULL with one line in error only when it can never
 * work: a registry that is down now is no error. */
struct registry *registry_new(const struct registry_setup *setup,
                              const struct registry_place *place, char *error,
                              size_t error_size);
/* Not from within a callback. No callback comes any more; claims under way are void. */
void registry_free(struct registry **registry);

enum registry_answer {
    REGISTRY_OWN,        /* ours, perhaps since an earlier claim */
    REGISTRY_OTHER,      /* of the host that is named */
    REGISTRY_UNAVAILABLE /* nothing is known: go on alone */
};
/* host is borrowed, "" unless OTHER. */
typedef void registry_claimed(void *context, enum registry_answer answer,
                              const char *host);

/* Embedded in its owner, who keeps it until done is called; zeroed before first use. */
struct registry_claim {
    struct registry_claim *prev, *next; /* from here on the registry's own */
    registry_claimed *done;
    void *context;
    unsigned char key[REGISTRY_KEY_SIZE];
    int64_t ttl_ms, due_ms;
    unsigned char state;
    enum registry_answer answer;
    char host[REGISTRY_HOST_MAX + 1];
};

/* Ours if nobody has claimed it in his time; a claim that stands is not prolonged. done
 * is called in a later turn, once, within REGISTRY_ANSWER_MS and a turn. ttl_ms > 0; it
 * should outlive the set, so that late parts find the owner too. */
void registry_claim(struct registry *registry, struct registry_claim *claim,
                    const unsigned char key[REGISTRY_KEY_SIZE], int64_t ttl_ms,
                    registry_claimed *done, void *context);
/* done will not be called. Harmless when it was, or never was to be. */
void registry_cancel(struct registry *registry, struct registry_claim *claim);
/* The set is closed: if we own it, it is remembered for memory_ms from now on (0: not
 * at all) in place of the claim's own time. Nothing is answered: what fails expires. */
void registry_close(struct registry *registry,
                    const unsigned char key[REGISTRY_KEY_SIZE], int64_t memory_ms);

/* False: claims are unavailable at once, and nothing waits for it. */
bool registry_is_up(const struct registry *registry);

struct registry_counts {
    uint64_t own, other, unavailable;
    uint64_t failures;  /* of the place, not of claims */
    uint64_t namesakes; /* others that were found to use our name */
};
struct registry_counts registry_counts(const struct registry *registry);

#endif
