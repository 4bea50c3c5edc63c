/* Proves what is counted in which second and minute, what waits in between, and that it is bounded. */
#include "admin/metrics/series.h"

#include "base/loop/loop.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"
/* link: t/sim/loop.c */

#include <jansson.h>

struct world {
    struct loop *loop;
    struct event_hub *events;
    struct series *series;
    size_t waiting;
    unsigned asked;
};

static size_t
waiting(void *context)
{
    struct world *w = context;
    w->asked++;
    return w->waiting;
}

static void
begin(struct world *w)
{
    *w = (struct world){.loop = sim_loop_new(1)};
    w->events = event_hub_new(NULL);
    w->series = series_new(
        &(struct series_setup){.loop = w->loop, .events = w->events, .waiting = waiting, .context = w});
}

static void
end(struct world *w)
{
    series_free(&w->series);
    ok(w->series == NULL);
    series_free(&w->series);
    ok_named(!event_is_read(w->events, EVENT_ACCEPTED), "nobody reads any more");
    event_hub_free(&w->events);
    loop_free(&w->loop);
}

static void
tell(struct world *w, enum event_kind kind, unsigned count)
{
    while (count-- > 0)
        event_tell(w->events, &(struct event){.kind = kind});
}

static json_t *answer;

/* Asks anew. */
static void
ask(struct world *w)
{
    json_error_t error;
    FIXTURE(buffer, out, buffer_init, buffer_free, SERIES_TEXT_MAX);
    ok(series_write(w->series, &out));
    json_decref(answer);
    answer = json_loadb(out.at, out.length, 0, &error);
    ok_named(answer != NULL, "the answer is JSON");
}

/* The number of the step that lies so many before the last. */
static int64_t
number(const char *ring, const char *kind, size_t before)
{
    json_t *list = json_object_get(json_object_get(answer, ring), kind);
    return json_integer_value(json_array_get(list, json_array_size(list) - 1 - before));
}

static int64_t
sum(const char *ring, const char *kind)
{
    json_t *list = json_object_get(json_object_get(answer, ring), kind), *value;
    size_t i;
    int64_t all = 0;
    json_array_foreach (list, i, value)
        all += json_integer_value(value);
    return all;
}

static size_t
size_of(const char *ring, const char *kind)
{
    return json_array_size(json_object_get(json_object_get(answer, ring), kind));
}

TEST(form)
{
    static const char *const kinds[] = {"accepted", "refused", "delivered", "deferred", "bounced", "waiting"};
    FIXTURE(world, w, begin, end);
    ask(&w);
    is_number(json_integer_value(json_object_get(answer, "now_ms")), SIM_WALL_START_MS, "now");
    is_number(json_integer_value(json_object_get(answer, "since_ms")), SIM_WALL_START_MS, "since when");
    is_number(json_integer_value(json_object_get(json_object_get(answer, "second"), "step_ms")), 1000, "a second");
    is_number(json_integer_value(json_object_get(json_object_get(answer, "minute"), "step_ms")), 60000, "a minute");
    for (size_t i = 0; i < 6; i++) {
        is_number(size_of("second", kinds[i]), SERIES_SECONDS, kinds[i]);
        is_number(size_of("minute", kinds[i]), SERIES_MINUTES, kinds[i]);
        is_number(sum("second", kinds[i]) + sum("minute", kinds[i]), 0, "nothing yet");
    }
    FIXTURE(buffer, small, buffer_init, buffer_free, 1000);
    ok_named(!series_write(w.series, &small), "too little room is an error");
}

TEST(counts)
{
    FIXTURE(world, w, begin, end);
    tell(&w, EVENT_ACCEPTED, 3);
    tell(&w, EVENT_SUBMITTED, 1);
    tell(&w, EVENT_MADE, 1);
    tell(&w, EVENT_REFUSED, 7);
    tell(&w, EVENT_DELIVERED, 2);
    sim_loop_advance(w.loop, 1000);
    tell(&w, EVENT_DEFERRED, 4);
    tell(&w, EVENT_BOUNCED, 1);
    tell(&w, EVENT_EXPIRED, 1);
    tell(&w, EVENT_ENDED, 9);
    tell(&w, EVENT_LOADED, 9);
    event_tell(w.events, &(struct event){.kind = EVENT_REFUSED, .is_quiet = true});
    ask(&w);
    is_number(number("second", "accepted", 1), 5, "accepted, whatever the source");
    is_number(number("second", "refused", 1), 7, "refused");
    is_number(number("second", "delivered", 1), 2, "delivered");
    is_number(number("second", "accepted", 0), 0, "the next second begins with nothing");
    is_number(number("second", "deferred", 0), 4, "deferred");
    is_number(number("second", "bounced", 0), 2, "bounced or expired");
    is_number(number("second", "refused", 0), 1, "those that the log leaves out, too");
    is_number(sum("second", "accepted"), 5, "and nowhere else");
    is_number(sum("minute", "accepted"), 5, "the minute has all,");
    is_number(sum("minute", "bounced"), 2, "of each kind");
    sim_loop_advance(w.loop, 60 * 1000);
    tell(&w, EVENT_DELIVERED, 1);
    ask(&w);
    is_number(number("minute", "delivered", 0), 1, "the next minute");
    is_number(number("minute", "delivered", 1), 2, "and the one before");
    is_number(number("second", "delivered", 61), 2, "a second has its place");
}

TEST(waiting)
{
    FIXTURE(world, w, begin, end);
    w.waiting = 5;
    sim_loop_advance(w.loop, 1000);
    is_number(w.asked, 1, "what was found on the disk");
    tell(&w, EVENT_ACCEPTED, 1);
    w.waiting = 6; /* the queue counts it when the event is over */
    sim_loop_advance(w.loop, 1000);
    is_number(w.asked, 2, "asked once after events");
    sim_loop_advance(w.loop, 10000);
    is_number(w.asked, 2, "and not while nothing happens");
    tell(&w, EVENT_REFUSED, 1000);
    sim_loop_advance(w.loop, 10000);
    is_number(w.asked, 2, "nor because clients are refused");
    tell(&w, EVENT_ENDED, 100);
    w.waiting = 0;
    sim_loop_advance(w.loop, 1000);
    is_number(w.asked, 3, "what ends changes it");
    ask(&w);
    is_number(number("second", "waiting", 0), 0, "now");
    is_number(number("second", "waiting", 1), 6, "before");
    is_number(number("second", "waiting", 15), 6, "also while nothing happened");
    is_number(number("second", "waiting", 22), 5, "at the beginning");
    sim_loop_advance(w.loop, SERIES_REST_MS * 3);
    is_number(w.asked, 4 + 3, "a look each minute");
    w.waiting = (size_t)1 << 40;
    ask(&w);
    is_number(number("second", "waiting", 0), UINT32_MAX, "what is too much");
}

/* The rings forget, also after a pause that is longer than they are. */
TEST(age)
{
    FIXTURE(world, w, begin, end);
    tell(&w, EVENT_ACCEPTED, 1);
    sim_loop_advance(w.loop, (SERIES_SECONDS - 1) * 1000);
    ask(&w);
    is_number(number("second", "accepted", SERIES_SECONDS - 1), 1, "the oldest");
    sim_loop_advance(w.loop, 1000);
    ask(&w);
    is_number(sum("second", "accepted"), 0, "is forgotten");
    is_number(sum("minute", "accepted"), 1, "but not by the minutes");
    tell(&w, EVENT_ACCEPTED, 1);
    w.waiting = 4;
    ask(&w);
    sim_loop_advance(w.loop, INT64_C(60000) * SERIES_MINUTES * 3);
    ask(&w);
    is_number(sum("second", "accepted") + sum("minute", "accepted"), 0, "all is forgotten");
    is_number(sum("minute", "waiting"), 4 * SERIES_MINUTES, "what waits stays");
}

/* The largest answer fits. */
TEST(size)
{
    FIXTURE(world, w, begin, end);
    w.waiting = UINT32_MAX;
    sim_loop_advance(w.loop, INT64_C(60000) * SERIES_MINUTES);
    FIXTURE(buffer, out, buffer_init, buffer_free, SERIES_TEXT_MAX);
    ok(series_write(w.series, &out) && out.length > 2000 * 11);
}

int
main(void)
{
    tap_tests("");
    json_decref(answer);
    return done();
}
