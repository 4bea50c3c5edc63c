/* In the place of queue/copies/copies_keeper.c: notes what adoption tells it. */
#include "queue/copies/copies_keeper.h"

#include "t/support/adoption_kit.h"

static struct site *
site_of(const struct copies_keeper *keeper)
{
    return (struct site *)(uintptr_t)keeper;
}

void
copies_keeper_open(struct copies_keeper *keeper, uint64_t number, uint64_t least)
{
    struct site *s = site_of(keeper);
    s->opened++;
    s->losses += number < s->durable && !s->is_closed;
    s->is_closed = false;
    s->number = number > least ? number : least;
    s->why[0] = '\0';
    if (s->durable < number)
        s->durable = number;
}

void
copies_keeper_close(struct copies_keeper *keeper, const char *why)
{
    struct site *s = site_of(keeper);
    s->closed++;
    s->is_closed = true;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

uint64_t
copies_keeper_durable(struct copies_keeper *keeper)
{
    return site_of(keeper)->durable;
}

struct copies_state
copies_keeper_state(const struct copies_keeper *keeper)
{
    return (struct copies_state){.losses = site_of(keeper)->losses};
}

bool
copies_keeper_is_ending(const struct copies_keeper *keeper, struct id id)
{
    return id_compare(site_of(keeper)->ends, id) == 0;
}

bool
copies_keeper_has(const struct copies_keeper *keeper, struct id id)
{
    (void)id;
    return !site_of(keeper)->is_behind;
}

void
copies_keeper_remove(struct copies_keeper *keeper, struct id id)
{
    ids_add(&site_of(keeper)->removed, id);
}
