/* Daemons of one spool. */
#include "t/roof/slices.h"

#include "t/roof/dead.h"
#include "t/roof/model.h"
#include "t/roof/operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLICES_MAX = 4 };

static struct {
    struct member *members[SLICES_MAX]; /* NULL: that of the first host */
    unsigned count;                     /* of slices; 0: there are none */
    unsigned next;              /* their number after all have ended; 0: as it is */
    unsigned masks[SLICES_MAX]; /* the slices that each has handled, by bits */
    const struct host *takers[SLICES_MAX]; /* of a dead one's slice */
} slices;

static struct host *
slice_host(unsigned slice)
{
    return slice == 0 ? &host : slices.members[slice]->host;
}

static void
set_number(unsigned count)
{
    slices.count = count;
    slices.next = 0;
    for (unsigned i = 0; i < SLICES_MAX; i++) {
        struct host *h = slice_host(i);
        h->slices = count;
        h->slice = i < count ? i : 0;
        slices.masks[i] = 1U << i;
        slices.takers[i] = NULL;
        if (i > 0)
            slices.members[i]->is_away = i >= count;
    }
    roof_note("slices: %u", count);
}

static bool
all_have_ended(void)
{
    for (unsigned i = 0; i < SLICES_MAX; i++)
        if (slice_host(i)->running)
            return false;
    return true;
}

/* While the number is to change nobody starts before all have ended. */
bool
slices_may_start(void)
{
    if (slices.count == 0 || slices.next == 0)
        return true;
    if (!all_have_ended())
        return false;
    set_number(slices.next);
    for (unsigned i = 1; i < slices.count; i++)
        fleet_start(slices.members[i], SECOND_MS);
    return true;
}

static bool
slice_may_start(struct member *m)
{
    return slices_may_start() && !m->is_away && slices.takers[m->host->slice] == NULL;
}

/* The slices that it took over are free again. */
static void
forget_taker(const struct host *h)
{
    for (unsigned i = 0; i < SLICES_MAX; i++)
        if (slices.takers[i] == h)
            slices.takers[i] = NULL;
    slices.masks[h->slice] = 1U << h->slice;
}

static void
take_over(unsigned dead, unsigned taker)
{
    char line[80];
    if (dead == taker || slice_host(dead)->running || !slice_host(taker)->running ||
        slice_host(taker)->leaves || slices.takers[taker] != NULL ||
        slices.takers[dead] != NULL)
        return;
    roof_note("slices: %u takes over slice %u", taker, dead);
    slices.masks[taker] |= 1U << dead;
    slices.takers[dead] = slice_host(taker);
    snprintf(line, sizeof(line), "{\"command\":\"adopt\",\"slice\":%u}", dead);
    operator_tell(slice_host(taker), line);
}

static void
slice_ended(struct member *m, int64_t window_ms)
{
    unsigned slice = m->host->slice;
    if (m->is_away)
        return;
    dead_host_ended(0, window_ms / 4);
    model_slices_ended(fleet.plan.disks ? INT64_MAX / 2 : window_ms, slices.count,
                       slices.masks[slice]);
    forget_taker(m->host);
    if (!fleet.is_good && slices.next == 0 && fleet_draw(2) == 0)
        take_over(slice, fleet_draw(slices.count));
}

void
slices_first_ended(int64_t window_ms)
{
    if (slices.count == 0) {
        model_host_ended(window_ms);
        return;
    }
    model_slices_ended(fleet.plan.disks ? INT64_MAX / 2 : window_ms, slices.count,
                       slices.masks[0]);
    forget_taker(&host);
}

void
slices_begin(void)
{
    static const char *const names[SLICES_MAX] = {"", "slice1", "slice2", "slice3"};
    snprintf(host.overrides[3], HOST_OVERRIDE_SIZE, "listen = 10.0.0.1:25?share");
    for (unsigned i = 1; i < SLICES_MAX; i++) {
        struct member *m = slices.members[i] = fleet_add(names[i], "10.0.0.1", &host);
        m->ended = slice_ended;
        m->may_start = slice_may_start;
        memcpy(m->host->overrides, host.overrides, sizeof(host.overrides));
        m->host->overrides[FLEET_OWN][0] = '\0'; /* they cannot share a port of HTTP */
    }
    host.is_shared = true;
    set_number(1U << (1 + fleet_draw(2)));
    for (unsigned i = 1; i < slices.count; i++)
        fleet_start(slices.members[i], SECOND_MS);
}

void
slices_act(void)
{
    if (slices.count == 0 || slices.next != 0)
        return;
    /* before another number of slices all events are to be taken (doc/events.md) */
    if (fleet.plan.hook || fleet_draw(3) > 0) {
        for (unsigned i = 1; i < slices.count; i++)
            take_over(i, fleet_draw(slices.count));
        return;
    }
    slices.next = 1U << fleet_draw(3);
    roof_note("slices: all are to end, to be %u", slices.next);
    for (unsigned i = 0; i < SLICES_MAX; i++)
        host_terminate(slice_host(i));
}

/* Each takes its own slice again. */
void
slices_become_good(void)
{
    for (unsigned i = 0; i < slices.count; i++)
        if (slices.takers[i] != NULL)
            host_terminate(slice_host(slices.takers[i]->slice));
}
