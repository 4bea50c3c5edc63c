/* A registry that answers what the test wants, when it wants: in place of
 * defrag/registry/registry.c, which must not be linked. */
#ifndef T_SIM_REGISTRY_STAND_IN_H
#define T_SIM_REGISTRY_STAND_IN_H

#include "defrag/registry/registry.h"

#include <stdlib.h>
#include <string.h>

enum { ASKED_MAX = 512 };

struct registry {
    struct registry_claim *asked[ASKED_MAX];
    size_t count, asked_ever, closed;
    unsigned char closed_key[REGISTRY_KEY_SIZE];
    int64_t closed_ms;
    bool is_down;
    struct registry_counts counts;
};

/* The oldest that was asked. */
void answer(struct registry *r, enum registry_answer answer, const char *host);

#endif
