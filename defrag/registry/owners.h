/* Which host has which set, as the registry tells (registry.h): asked once for each set
 * that has begun here, and kept in mind for as long as the claim stands. What could not
 * be claimed is claimed when the registry is back. */
#ifndef DEFRAG_OWNERS_H
#define DEFRAG_OWNERS_H

#include "defrag/registry/registry.h"

enum {
    OWNERS_MAX = 20000,        /* sets; more are not claimed */
    OWNERS_RECOVER_SIZE = 100, /* claimed at once, when the registry is back... */
    OWNERS_RECOVER_MS = 1000   /* ...and then after so long the next */
};

struct owners;

struct owners_setup {
    struct loop *loop;
    struct registry *registry; /* outlives them */
    /* Another host has it, after owners_claim() had told that nobody is known. */
    void (*other)(void *context, const unsigned char key[REGISTRY_KEY_SIZE],
                  const char *host);
    void *context;
};
struct owners *owners_new(const struct owners_setup *setup);
void owners_free(struct owners **owners);

enum owner {
    OWNER_UNKNOWN, /* never asked here */
    OWNER_ASKED,
    OWNER_ALONE, /* the registry does not answer: each host works for itself */
    OWNER_US,
    OWNER_OTHER
};
struct owner_view {
    enum owner owner;
    const char *host; /* OTHER: borrowed, until the next turn; else NULL */
};
/* A part has come: claims the set for us, if nothing is known of it. ttl_ms: see
 * registry_claim(). */
struct owner_view owners_claim(struct owners *owners,
                               const unsigned char key[REGISTRY_KEY_SIZE],
                               int64_t ttl_ms);
struct owner_view owners_find(const struct owners *owners,
                              const unsigned char key[REGISTRY_KEY_SIZE]);
/* The set has ended here: see registry_close(). Nothing is known of it any more. */
void owners_close(struct owners *owners, const unsigned char key[REGISTRY_KEY_SIZE],
                  int64_t memory_ms);
/* The registry answers again: what we have alone is claimed. */
void owners_recover(struct owners *owners);

struct owners_count {
    size_t known, alone;
};
struct owners_count owners_count(const struct owners *owners);

#endif
