/* A table of conversations by the name of the site. */
#include "smtp/delivery/conversations.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct conversations {
    struct conversation *list[CONVERSATIONS_MAX]; /* NULL: free */
    uint64_t order;                               /* of the last one */
};

struct conversations *
conversations_new(void)
{
    return memory_new(sizeof(struct conversations));
}

static void
conversation_free(struct conversation *c)
{
    if (c != NULL)
        free(c->site);
    free(c);
}

void
conversations_free(struct conversations **conversations)
{
    struct conversations *all = *conversations;
    *conversations = NULL;
    for (size_t i = 0; all != NULL && i < CONVERSATIONS_MAX; i++)
        conversation_free(all->list[i]);
    free(all);
}

const struct conversation *
conversations_find(const struct conversations *all, const char *site)
{
    for (size_t i = 0; i < CONVERSATIONS_MAX; i++)
        if (all->list[i] != NULL && strcasecmp(all->list[i]->site, site) == 0)
            return all->list[i];
    return NULL;
}

/* That of the site, else a free one, else the oldest. */
static struct conversation **
conversations_place(struct conversations *all, const char *site)
{
    struct conversation **best = NULL;
    for (size_t i = 0; i < CONVERSATIONS_MAX; i++) {
        struct conversation **at = &all->list[i];
        if (*at != NULL && strcmp((*at)->site, site) == 0)
            return at;
        if (best == NULL ||
            (*best != NULL && (*at == NULL || (*at)->order < (*best)->order)))
            best = at;
    }
    return best;
}

void
conversations_keep(struct conversations *all, const char *site, const char *relay,
                   int64_t begun_ms, const struct transcript *transcript)
{
    struct conversation **place = conversations_place(all, site);
    conversation_free(*place);
    struct conversation *c = *place = memory_new(sizeof(*c));
    c->site = memory_string(site);
    (void)!text_copy(c->relay, sizeof(c->relay), text_from(relay));
    c->begun_ms = begun_ms;
    c->order = ++all->order;
    c->transcript = *transcript;
}
