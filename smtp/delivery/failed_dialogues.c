/* A table of conversations by the name of the site. */
#include "smtp/delivery/failed_dialogues.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct failed_dialogues {
    struct failed_dialogue *list[FAILED_DIALOGUES_MAX]; /* NULL: free */
    uint64_t order;                                     /* of the last one */
};

struct failed_dialogues *
failed_dialogues_new(void)
{
    return memory_new(sizeof(struct failed_dialogues));
}

static void
failed_dialogue_free(struct failed_dialogue *c)
{
    if (c != NULL)
        free(c->site);
    free(c);
}

void
failed_dialogues_free(struct failed_dialogues **failed_dialogues)
{
    struct failed_dialogues *all = *failed_dialogues;
    *failed_dialogues = NULL;
    for (size_t i = 0; all != NULL && i < FAILED_DIALOGUES_MAX; i++)
        failed_dialogue_free(all->list[i]);
    free(all);
}

const struct failed_dialogue *
failed_dialogues_find(const struct failed_dialogues *all, const char *site)
{
    for (size_t i = 0; i < FAILED_DIALOGUES_MAX; i++)
        if (all->list[i] != NULL && strcasecmp(all->list[i]->site, site) == 0)
            return all->list[i];
    return NULL;
}

/* That of the site, else a free one, else the oldest. */
static struct failed_dialogue **
failed_dialogues_place(struct failed_dialogues *all, const char *site)
{
    struct failed_dialogue **best = NULL;
    for (size_t i = 0; i < FAILED_DIALOGUES_MAX; i++) {
        struct failed_dialogue **at = &all->list[i];
        if (*at != NULL && strcmp((*at)->site, site) == 0)
            return at;
        if (best == NULL ||
            (*best != NULL && (*at == NULL || (*at)->order < (*best)->order)))
            best = at;
    }
    return best;
}

void
failed_dialogues_keep(struct failed_dialogues *all, const char *site, const char *relay,
                      int64_t begun_ms, const struct transcript *transcript)
{
    struct failed_dialogue **place = failed_dialogues_place(all, site);
    failed_dialogue_free(*place);
    struct failed_dialogue *c = *place = memory_new(sizeof(*c));
    c->site = memory_string(site);
    (void)!text_copy(c->relay, sizeof(c->relay), text_from(relay));
    c->begun_ms = begun_ms;
    c->order = ++all->order;
    c->transcript = *transcript;
}
