/* A registry that answers what the test wants. */
#include "t/sim/registry_stand_in.h"

void
answer(struct registry *r, enum registry_answer answer, const char *host)
{
    if (r->count == 0)
        abort();
    struct registry_claim *claim = r->asked[0];
    memmove(r->asked, r->asked + 1, --r->count * sizeof(r->asked[0]));
    claim->state = 0;
    claim->done(claim->context, answer, host);
}

void
registry_claim(struct registry *r, struct registry_claim *claim,
               const unsigned char key[REGISTRY_KEY_SIZE], int64_t ttl_ms,
               registry_claimed *told, void *context)
{
    if (r->count == ASKED_MAX || claim->state != 0)
        abort();
    memcpy(claim->key, key, REGISTRY_KEY_SIZE);
    claim->ttl_ms = ttl_ms;
    claim->done = told;
    claim->context = context;
    claim->state = 1;
    r->asked[r->count++] = claim;
    r->asked_ever++;
}

void
registry_cancel(struct registry *r, struct registry_claim *claim)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->asked[i] == claim)
            r->asked[i] = r->asked[--r->count];
    claim->state = 0;
}

void
registry_close(struct registry *r, const unsigned char key[REGISTRY_KEY_SIZE],
               int64_t memory_ms)
{
    r->closed++;
    memcpy(r->closed_key, key, REGISTRY_KEY_SIZE);
    r->closed_ms = memory_ms;
}

bool
registry_is_up(const struct registry *r)
{
    return !r->is_down;
}

struct registry_counts
registry_counts(const struct registry *r)
{
    return r->counts;
}
