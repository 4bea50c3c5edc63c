/* Remembers which host owns which set: each set that begins here is claimed once in the
 * registry (registry.h), and remembered until the claim expires. Sets that could not be
 * claimed are claimed when the registry answers again. */
#ifndef DEFRAG_REGISTRY_CLAIMS_H
#define DEFRAG_REGISTRY_CLAIMS_H

#include "defrag/registry/registry.h"

enum {
    CLAIMS_MAX = 20000,        /* sets; more are not claimed */
    CLAIMS_RECOVER_SIZE = 100, /* claimed together, when the registry is back... */
    CLAIMS_RECOVER_MS = 1000   /* ...and then, after this time, the next */
};

struct claims;

struct claims_setup {
    struct loop *loop;
    struct registry *registry; /* outlives them */
    /* Another host owns the set, for which claims_claim() had returned ASKED or ALONE. */
    void (*other)(void *context, const unsigned char key[REGISTRY_KEY_SIZE],
                  const char *host);
    void *context;
};
struct claims *claims_new(const struct claims_setup *setup);
void claims_free(struct claims **claims);

enum owner {
    OWNER_UNKNOWN, /* never asked here */
    OWNER_ASKED,
    OWNER_ALONE, /* the registry does not answer: each host works alone */
    OWNER_US,
    OWNER_OTHER
};
struct owner_view {
    enum owner owner;
    const char *host; /* OTHER: borrowed, until the next turn; else NULL */
};
/* A part has arrived: claims the set for this host, unless it is remembered. ttl_ms: see
 * registry_claim(). */
struct owner_view claims_claim(struct claims *claims,
                               const unsigned char key[REGISTRY_KEY_SIZE],
                               int64_t ttl_ms);
struct owner_view claims_find(const struct claims *claims,
                              const unsigned char key[REGISTRY_KEY_SIZE]);
/* The set has ended here: forgets it, see registry_close(). */
void claims_close(struct claims *claims, const unsigned char key[REGISTRY_KEY_SIZE],
                  int64_t memory_ms);
/* The registry answers again: claims the sets that were begun without it; all sets of
 * this host if it is empty. */
void claims_recover(struct claims *claims, bool is_empty);

struct claims_count {
    size_t known, alone;
};
struct claims_count claims_count(const struct claims *claims);

#endif
