/* The totals that receivers see of all hosts: transactions of a minute, sessions, and
 * how long a host waits for its turn. */
#include "t/simulation/simulation_internal.h"

#include "base/memory.h"

#include <stdlib.h>

#define MINUTE_US      INT64_C(60000000)
#define WINDOW_LONG_US (5 * MINUTE_US)

void
simulation_count_wait(const struct simulation *s, struct seat *seat)
{
    if (seat->waiting++ == 0)
        seat->served_us = s->now_us;
}

static void
count_turn(struct simulation *s, const struct seat *seat, size_t place)
{
    struct simulation_site *site = &s->result->sites[place];
    int64_t took_us = s->now_us - seat->served_us;
    if (seat->waiting > 0 && took_us > site->turn_us)
        site->turn_us = took_us;
}

void
simulation_count_gone(struct seat *seat)
{
    seat->waiting--;
}

static int64_t
begun_at_us(const struct begun *t, size_t number)
{
    return t->at_us[(t->first + number) % t->capacity];
}

static void
begun_grow(struct begun *t)
{
    size_t capacity = t->capacity ? 2 * t->capacity : 64;
    int64_t *grown = memory_array(capacity, sizeof(*grown));
    for (size_t i = 0; i < t->count; i++)
        grown[i] = begun_at_us(t, i);
    free(t->at_us);
    *t = (struct begun){
        .at_us = grown, .count = t->count, .capacity = capacity, .older = t->older};
}

static void
begun_add(struct begun *t, int64_t now_us)
{
    while (t->count > 0 && begun_at_us(t, 0) <= now_us - WINDOW_LONG_US) {
        t->first = (t->first + 1) % t->capacity;
        t->count--;
        t->older -= t->older > 0;
    }
    while (t->older < t->count && begun_at_us(t, t->older) <= now_us - MINUTE_US)
        t->older++;
    if (t->count == t->capacity)
        begun_grow(t);
    t->at_us[(t->first + t->count++) % t->capacity] = now_us;
}

void
simulation_count_begin(struct simulation *s, struct seat *seat, size_t place)
{
    struct simulation_site *site = &s->result->sites[place];
    struct begun *tally = &s->places[place].tally;
    count_turn(s, seat, place);
    seat->served_us = s->now_us;
    site->begun++;
    if (site->rate.amount == 0)
        return;
    begun_add(tally, s->now_us);
    size_t minute = tally->count - tally->older;
    if (minute > site->worst_minute)
        site->worst_minute = (unsigned)minute;
    if (tally->count > site->worst_five)
        site->worst_five = (unsigned)tally->count;
}

void
simulation_count_sessions(struct simulation *s, size_t number)
{
    struct place *place = &s->places[number];
    struct simulation_site *site = &s->result->sites[number];
    int64_t time_us = s->now_us - place->changed_us, limit = site->limit;
    site->open_us += time_us * place->open;
    if (limit > 0 && place->open > limit)
        site->over_us += time_us * (place->open - limit);
    place->changed_us = s->now_us;
    place->open = 0;
    for (size_t i = 0; i < place->station_count; i++)
        place->open += place->stations[i].server.sessions;
}

void
simulation_count_end(struct simulation *s)
{
    for (size_t i = 0; i < s->scenario->site_count; i++) {
        simulation_count_sessions(s, i);
        for (size_t j = 0; j < s->scenario->host_count; j++)
            count_turn(s, &s->hosts[j].seats[i], i);
    }
}
