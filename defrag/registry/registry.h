/* Says which host owns a set of fragments: hosts share a registry so that all parts of a
 * message meet at one of them (doc/defragment.md "Registry").
 *
 * A hint, never custody: the spool holds the mail. The first host that claims a key owns
 * it until the claim expires. While the registry does not answer each host works alone;
 * that can cost a set its reassembly, never mail. Two owners of one key, possible after a
 * failover or a race of three hosts for an expired claim, cost no more.
 *
 * Places in the settings:
 *   local                    this host owns everything
 *   dir:/path                a directory that the hosts share: see registry_dir.c
 *   redis://[[user]:password@]host[:port][/database]       Redis or Valkey
 *   rediss://...             the same by TLS
 * %XX is decoded in user and password. */
#ifndef DEFRAG_REGISTRY_REGISTRY_H
#define DEFRAG_REGISTRY_REGISTRY_H

#include "base/crypto/digest.h"
#include "base/redis/redis.h"

struct log;
struct registry;

enum {
    REGISTRY_KEY_SIZE = DIGEST_SIZE,
    REGISTRY_HOST_MAX = REDIS_HOST_MAX,   /* bytes of a host's name */
    REGISTRY_ANSWER_MS = REDIS_ANSWER_MS, /* after that the answer is `unavailable` */
    REGISTRY_RECOVER_MS = 5000,           /* between two calls of recovered, at least */
    REGISTRY_SETTING_MAX = REDIS_URL_MAX, /* bytes */
    REGISTRY_CLOSES_MAX = 10000           /* pending; further ones are left to expire */
};

/* --- Its place -------------------------------------------------------------------- */

enum registry_kind { REGISTRY_LOCAL, REGISTRY_DIR, REGISTRY_REDIS };

struct registry_place {
    enum registry_kind kind;
    char path[REGISTRY_SETTING_MAX]; /* DIR */
    struct redis_place redis;        /* REDIS */
};

/* False with one line in error, which never has the password. Refuses redis in a build
 * without hiredis. */
bool registry_parse(struct text setting, struct registry_place *place, char *error,
                    size_t error_size);
/* As registry_parse(), with the password of its own setting. */
bool registry_configure(struct text setting, struct text password,
                        struct registry_place *place, char *error, size_t error_size);
/* The setting without user and password, for the log. */
void registry_place_text(const struct registry_place *place,
                         char out[REGISTRY_SETTING_MAX]);
/* Letters, digits, "-", "_" and ".", 1 to REGISTRY_HOST_MAX. */
bool registry_is_host(struct text name);

/* --- Claims ----------------------------------------------------------------------- */

struct registry_setup {
    struct loop *loop;
    struct log *log;
    /* For Redis alone. redis: the connection of this process; NULL: one of its own is
     * made of the others. */
    struct redis *redis;
    struct net *net;
    struct dns *dns;
    struct tls_client *tls; /* for rediss; with anchors, since it is verified */
    /* The name of this host: registry_is_host(), permanent and unique. Another host of
     * that name is logged within two minutes; nothing else changes. */
    const char *host;
    /* The registry answers again after claims were unavailable: time to claim the sets
     * that were begun meanwhile. is_empty: it has forgotten this host, so perhaps all
     * claims: time to claim all sets again. May be NULL. */
    void (*recovered)(void *context, bool is_empty);
    void *context;
};

/* The data that setup points to outlive the registry. NULL with one line in error only
 * if it can never work: a registry that is down is not an error. */
struct registry *registry_new(const struct registry_setup *setup,
                              const struct registry_place *place, char *error,
                              size_t error_size);
/* Not from within a callback. No callback comes later; claims under way are void. */
void registry_free(struct registry **registry);

enum registry_answer {
    REGISTRY_OWN,        /* of this host, perhaps since an earlier claim */
    REGISTRY_OTHER,      /* of the named host */
    REGISTRY_UNAVAILABLE /* not known: work alone */
};
/* host is borrowed, "" unless OTHER. */
typedef void registry_claimed(void *context, enum registry_answer answer,
                              const char *host);

/* Embedded in its owner, which keeps it until done is called; zeroed before first
 * use. */
struct registry_claim {
    struct registry_claim *prev, *next; /* the registry's own, from here on */
    registry_claimed *done;
    void *context;
    unsigned char key[REGISTRY_KEY_SIZE];
    int64_t ttl_ms, due_ms;
    unsigned char state;
    enum registry_answer answer;
    char host[REGISTRY_HOST_MAX + 1];
};

/* Claims the key. An existing claim stays, and is not prolonged. done is called once,
 * in a later turn, within REGISTRY_ANSWER_MS and a turn. ttl_ms > 0; it should outlive
 * the set, so that late parts find the owner, too. */
void registry_claim(struct registry *registry, struct registry_claim *claim,
                    const unsigned char key[REGISTRY_KEY_SIZE], int64_t ttl_ms,
                    registry_claimed *done, void *context);
/* done will not be called. Harmless after it was called, and if nothing is claimed. */
void registry_cancel(struct registry *registry, struct registry_claim *claim);
/* The set is closed: if this host owns it, the claim now lasts for memory_ms (0: is
 * removed). There is no answer: a claim that cannot be changed expires in time. */
void registry_close(struct registry *registry,
                    const unsigned char key[REGISTRY_KEY_SIZE], int64_t memory_ms);

/* False: claims are answered `unavailable` immediately. */
bool registry_is_up(const struct registry *registry);

struct registry_counts {
    uint64_t own, other, unavailable;
    uint64_t failures;  /* of the place, not of claims */
    uint64_t namesakes; /* other hosts found to use our name */
};
struct registry_counts registry_counts(const struct registry *registry);

#endif
