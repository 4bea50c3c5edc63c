/* Limits at random, and the count of recipients at hops. */
#include "t/roof/limits.h"

#include "base/memory.h"
#include "t/roof/editor.h"
#include "t/roof/roof.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RATE_LEAST = 5,
    ROUTES_MAX = 16,
    LINES_SIZE = 1000,
    OPTION_SIZE = 40,
    WINDOW_MS = 55 * MINUTE_MS /* of an hour, for what is late on its way */
};

static struct {
    bool is_on, is_forgiven;
    unsigned count;
    char lines[LINES_SIZE], options[ROUTES_MAX][OPTION_SIZE];
    int64_t pace_ms;
    /* The most that was permitted in an hour; 0: not always limited. */
    unsigned most[ROUTES_MAX];
    struct {
        int64_t *heard_ms; /* of each recipient */
        size_t count;
    } heard[ROUTES_MAX];
} limits;

static void
note_pace(int64_t ms)
{
    if (ms > limits.pace_ms)
        limits.pace_ms = ms;
}

static unsigned
draw(unsigned from, unsigned to)
{
    return from + roof_below(to - from + 1);
}

/* A quota counts a recipient for up to a 24th longer than its period. */
static int64_t
slot_ms(int64_t period_ms, unsigned number)
{
    return period_ms * 25 / 24 / number + 1;
}

static size_t
add_client_limits(char *at, size_t size)
{
    static const char *const names[] = {"client_session",   "client_message",
                                        "client_recipient", "server_session",
                                        "server_message",   "server_recipient"};
    size_t used = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (roof_chance(200)) {
            const char *unit = roof_chance(500) ? "s" : "m";
            used += (size_t)snprintf(at + used, size - used, "%s_rate = %u/%s\n",
                                     names[i], draw(RATE_LEAST, 100), unit);
        }
    return used;
}

/* For senders: submitted mail waits for them. */
static size_t
add_quotas(char *at, size_t size)
{
    static const char *const kinds[] = {"all", "sender:*", "domain:*",
                                        "domain:back.test"};
    unsigned number = draw(100, 400);
    note_pace(slot_ms(MINUTE_MS, number));
    return (size_t)snprintf(at, size, "quotas = %s %u/m\n", kinds[roof_below(4)],
                            number);
}

static size_t
add_rate(char *at, size_t size)
{
    unsigned number = draw(2, 100), burst = draw(1, 10);
    bool by_minute = roof_chance(500);
    note_pace((by_minute ? MINUTE_MS : SECOND_MS) / number + 1);
    return (size_t)snprintf(at, size, "default_destination_rate = %u/%s,burst=%u\n",
                            number, by_minute ? "m" : "s", burst);
}

static void
draw_option(unsigned route)
{
    char *out = limits.options[route];
    unsigned number = 0;
    out[0] = '\0';
    if (roof_chance(400)) {
        number = draw(100, 1000);
        snprintf(out, OPTION_SIZE, "quota=%u/h", number);
        note_pace(slot_ms(HOUR_MS, number));
    } else if (roof_chance(300)) {
        unsigned few = draw(5, 50);
        snprintf(out, OPTION_SIZE, "quota=%u/m", few);
        note_pace(slot_ms(MINUTE_MS, few));
    }
    if (number == 0 || limits.most[route] == 0)
        limits.most[route] = 0;
    else if (number > limits.most[route] || limits.most[route] == UINT32_MAX)
        limits.most[route] = number;
}

void
limits_edit(void)
{
    size_t used = 0;
    if (!limits.is_on)
        return;
    limits.lines[0] = '\0';
    used += add_client_limits(limits.lines + used, LINES_SIZE - used);
    if (roof_chance(500))
        used += add_quotas(limits.lines + used, LINES_SIZE - used);
    if (roof_chance(400))
        used += add_rate(limits.lines + used, LINES_SIZE - used);
    if (roof_chance(300))
        used += (size_t)snprintf(limits.lines + used, LINES_SIZE - used,
                                 "providers = big=mx3a.test,mx3b.test,mx4.test\n");
    for (unsigned i = 0; i < limits.count; i++)
        if (limits.most[i] == UINT32_MAX || roof_chance(300))
            draw_option(i);
    struct text rest = text_of(limits.lines, used), line;
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        roof_note("limits: %.*s", TEXT_ARGS(line));
    }
}

void
limits_begin(unsigned count)
{
    limits.is_on = true;
    limits.count = count;
    for (unsigned i = 0; i < count; i++)
        limits.most[i] = UINT32_MAX; /* none so far */
    limits_edit();
    editor_add(limits.lines);
}

const char *
limits_option(unsigned route)
{
    return limits.options[route];
}

int64_t
limits_pace_ms(void)
{
    return limits.pace_ms;
}

void
limits_forgive(void)
{
    limits.is_forgiven = true;
}

bool
limits_heard(unsigned route)
{
    if (!limits.is_on || route >= limits.count || limits.most[route] == 0)
        return false;
    size_t count = limits.heard[route].count++;
    limits.heard[route].heard_ms =
        memory_resize(limits.heard[route].heard_ms, (count + 1) * sizeof(int64_t));
    limits.heard[route].heard_ms[count] = roof_now_ms();
    size_t most = limits.most[route];
    if (!limits.is_forgiven && count >= most &&
        roof_now_ms() - limits.heard[route].heard_ms[count - most] < WINDOW_MS)
        roof_break("bounds", NULL, "more than %zu recipients of route %u in an hour",
                   most, route);
    return true;
}

void
limits_unheard(unsigned route, unsigned count)
{
    assert(count <= limits.heard[route].count);
    limits.heard[route].count -= count;
}
