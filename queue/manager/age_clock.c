/* Remembers the steps of the wall clock in this boot, in a file. */
#include "queue/manager/age_clock.h"

#include "base/buffer.h"
#include "queue/spool/spool.h"
#include "queue/manager/manager_internal.h"
#include "sched/limits/transport_params.h"
#include "sched/route/route.h"

#include <stdlib.h>
#include <string.h>

#define TITLE "petrel clock 1"

enum {
    CLOCK_FILE_MAX = 256 * 1024, /* spool_read_path() reads in pieces */
    SMALL_STEPS_MS = 2 * AGE_STEP_MS
};

static const char boot_path[] = "/proc/sys/kernel/random/boot_id";
static const int64_t time_max_ms = INT64_C(99999999999999);

void
age_clock_boot(char out[AGE_BOOT_MAX])
{
    char *content = NULL;
    size_t length = 0;
    out[0] = '\0';
    if (disk_read_regular(boot_path, AGE_BOOT_MAX, &content, &length) == 0) {
        struct text rest = text_of(content, length), word;
        if (text_word(&rest, " \n", &word) && word.length < AGE_BOOT_MAX)
            (void)text_copy(out, AGE_BOOT_MAX, word);
    }
    free(content);
}

static void
age_clock_write(const struct age_clock *clock, struct disk *disk, const char *path)
{
    struct buffer text;
    if (clock->boot[0] == '\0')
        return;
    buffer_init(&text, CLOCK_FILE_MAX);
    bool fits = buffer_format(&text, TITLE "\n%s\n%lld\n", clock->boot,
                              (long long)clock->lead_ms);
    for (size_t i = 0; i < clock->count; i++)
        fits = fits &&
               buffer_format(&text, "%lld %lld\n", (long long)clock->steps[i].until_ms,
                             (long long)clock->steps[i].by_ms);
    /* A hint: what fails is written with the next step. */
    if (fits)
        (void)!spool_write_path(disk, path, buffer_text(&text));
    buffer_free(&text);
}

static bool
clock_number(struct text word, int64_t *out)
{
    bool minus = word.length > 0 && word.at[0] == '-';
    uint64_t number;
    if (!text_number(text_after(word, minus), (uint64_t)time_max_ms, &number))
        return false;
    *out = minus ? -(int64_t)number : (int64_t)number;
    return true;
}

/* False: not a file of this boot. */
static bool
age_clock_parse(struct age_clock *clock, struct text rest)
{
    struct text line, word;
    if (!text_cut(&rest, '\n', &line) || !text_equal(line, TEXT(TITLE)) ||
        !text_cut(&rest, '\n', &line) || !text_equal(line, text_from(clock->boot)) ||
        !text_cut(&rest, '\n', &line) || !clock_number(line, &clock->lead_ms))
        return false;
    while (clock->count < AGE_STEPS_MAX && rest.length > 0 &&
           text_cut(&rest, '\n', &line)) {
        struct age_step step;
        if (!text_word(&line, " ", &word) || !clock_number(word, &step.until_ms) ||
            !text_word(&line, " ", &word) || !clock_number(word, &step.by_ms) ||
            (step.by_ms < AGE_STEP_MS && step.by_ms > -AGE_STEP_MS))
            return false;
        clock->steps[clock->count++] = step;
    }
    return true;
}

static void
age_clock_add(struct age_clock *clock, int64_t until_ms, int64_t by_ms)
{
    if (clock->count == AGE_STEPS_MAX)
        memmove(clock->steps, clock->steps + 1,
                --clock->count * sizeof(clock->steps[0]));
    clock->steps[clock->count++] =
        (struct age_step){.until_ms = until_ms, .by_ms = by_ms};
}

int64_t
age_clock_note(struct age_clock *clock, struct disk *disk, const char *path,
               int64_t now_ms, int64_t steady_ms)
{
    int64_t lead_ms = now_ms - steady_ms, by_ms = lead_ms - clock->lead_ms;
    if (by_ms < AGE_STEP_MS && by_ms > -AGE_STEP_MS)
        return 0;
    age_clock_add(clock, steady_ms + clock->lead_ms, by_ms);
    clock->lead_ms = lead_ms;
    age_clock_write(clock, disk, path);
    return by_ms;
}

void
age_clock_start(struct age_clock *clock, struct disk *disk, const char *path,
                const char *boot, int64_t now_ms, int64_t steady_ms)
{
    struct buffer all;
    *clock = (struct age_clock){.lead_ms = now_ms - steady_ms};
    if (boot[0] == '\0' || !text_copy(clock->boot, AGE_BOOT_MAX, text_from(boot)))
        return;
    buffer_init(&all, CLOCK_FILE_MAX);
    bool read = spool_read_path(disk, path, &all) >= 0 &&
                age_clock_parse(clock, buffer_text(&all));
    buffer_free(&all);
    if (read) {
        (void)age_clock_note(clock, disk, path, now_ms, steady_ms);
        return;
    }
    clock->count = 0;
    clock->lead_ms = now_ms - steady_ms;
    age_clock_write(clock, disk, path);
}

/* By that clock nothing came sooner. Steps that are too small to be known may have moved it
 * a little: then a birth may be in the time that a step ahead has left out, near its end
 * before all, else (gaps) anywhere. */
static int64_t
begun_ms(const struct age_clock *clock, size_t index, bool gaps)
{
    if (index == 0)
        return INT64_MIN;
    const struct age_step *step = &clock->steps[index - 1];
    int64_t ahead_ms = gaps ? AGE_STEP_MS : step->by_ms - SMALL_STEPS_MS;
    ahead_ms = ahead_ms < AGE_STEP_MS ? AGE_STEP_MS : ahead_ms;
    return step->until_ms + (step->by_ms < 0 ? step->by_ms - SMALL_STEPS_MS : ahead_ms);
}

/* False: by none of them. */
static bool
find_birth(const struct age_clock *clock, int64_t now_ms, bool gaps, int64_t *birth_ms)
{
    int64_t by_ms = 0, until_ms = now_ms + SMALL_STEPS_MS;
    for (size_t i = clock->count;; i--) {
        if (*birth_ms >= begun_ms(clock, i, gaps) && *birth_ms <= until_ms) {
            *birth_ms += by_ms;
            return true;
        }
        if (i == 0)
            return false;
        by_ms += clock->steps[i - 1].by_ms;
        until_ms = clock->steps[i - 1].until_ms + AGE_STEP_MS;
    }
}

int64_t
age_clock_birth_ms(const struct age_clock *clock, int64_t birth_ms, int64_t now_ms)
{
    if (!find_birth(clock, now_ms, false, &birth_ms))
        (void)find_birth(clock, now_ms, true, &birth_ms);
    return birth_ms;
}

int64_t
age_clock_written_ms(const struct age_clock *clock, int64_t birth_ms, int64_t now_ms)
{
    int64_t written_ms = birth_ms;
    for (size_t i = clock->count; i > 0; i--) {
        const struct age_step *step = &clock->steps[i - 1];
        if (written_ms >= step->until_ms + step->by_ms) /* when that clock began */
            break;
        written_ms -= step->by_ms;
    }
    bool is_read_so = age_clock_birth_ms(clock, written_ms, now_ms) == birth_ms;
    return is_read_so ? written_ms : birth_ms;
}

int64_t
age_clock_release_ms(const struct age_clock *clock, int64_t release_ms, int64_t now_ms)
{
    int64_t by_ms = 0, came_ms = now_ms;
    if (release_ms > now_ms)
        return now_ms;
    for (size_t i = clock->count; i > 0; i--) {
        const struct age_step *step = &clock->steps[i - 1];
        if (release_ms >= step->until_ms + step->by_ms)
            break;
        came_ms = step->until_ms + step->by_ms + by_ms; /* when that clock began */
        by_ms += step->by_ms;
    }
    return release_ms + by_ms < came_ms ? release_ms + by_ms : came_ms;
}

/* --- The manager's times --------------------------------------------------------- */

/* Times may have been written by another clock: one that was ahead or behind, in a boot or a
 * daemon before. */
enum {
    HOUR_MS = 60 * 60 * 1000,
    LONGEST_CLASS_MS = 4 * HOUR_MS, /* reply_class_delay_ms() */
    JITTER_PART = 10                /* retry_jitter_ms() adds up to a tenth */
};

static void
clock_note_backoff(void *context, const struct target *target)
{
    int64_t *most_ms = context;
    if (target->transport.maximal_backoff_ms > *most_ms)
        *most_ms = target->transport.maximal_backoff_ms;
}

void
manager_clock_limit(struct manager *m)
{
    int64_t most_ms = LONGEST_CLASS_MS;
    if (m->routes != NULL) {
        clock_note_backoff(&most_ms, route_default(m->routes));
        route_each_target(m->routes, clock_note_backoff, &most_ms);
    }
    m->wait_max_ms = most_ms + most_ms / JITTER_PART;
}

int64_t
manager_clock_due_ms(const struct manager *m, int64_t due_ms)
{
    int64_t now_ms = loop_now_ms(m->loop);
    return due_ms - now_ms > m->wait_max_ms ? now_ms : due_ms;
}

/* The new time may go to the disk unless it would be moved again when it is read. */
static void
clock_move_birth(const struct manager *m, struct envelope *e, int64_t by_ms)
{
    e->birth_ms += by_ms;
    e->birth_moved_ms += by_ms;
    if (age_clock_birth_ms(&m->age, e->birth_ms, loop_now_ms(m->loop)) == e->birth_ms)
        e->birth_moved_ms = 0;
}

void
manager_clock_set_birth(const struct manager *m, struct envelope *e)
{
    int64_t now_ms = loop_now_ms(m->loop);
    clock_move_birth(m, e,
                     age_clock_birth_ms(&m->age, e->birth_ms, now_ms) - e->birth_ms);
    if (e->birth_ms <= now_ms)
        return;
    e->birth_ms = now_ms;
    e->birth_moved_ms = 0;
}

int64_t
manager_clock_written_ms(const struct manager *m, int64_t birth_ms)
{
    return age_clock_written_ms(&m->age, birth_ms, loop_now_ms(m->loop));
}

int64_t
manager_clock_begun_ms(const struct manager *m, const struct envelope *e,
                       int64_t now_ms)
{
    int64_t begun_ms = e->release_ms > 0
                           ? age_clock_release_ms(&m->age, e->release_ms, now_ms)
                           : e->birth_ms;
    return begun_ms > e->birth_ms ? begun_ms : e->birth_ms;
}

static int64_t
manager_clock_stepped(void *context)
{
    struct manager *m = context;
    struct active *a, *next;
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, "clock", path);
    int64_t by_ms = age_clock_note(&m->age, queue_disk(m->queue), path,
                                   loop_now_ms(m->loop), loop_monotonic_ms(m->loop));
    if (by_ms == 0)
        return 0;
    HASH_ITER (hh, m->actives, a, next) {
        if (a->envelope != NULL)
            clock_move_birth(m, a->envelope, by_ms);
        if (by_ms < 0) /* all of them: the heap stays in order */
            a->overdue.due_ms += by_ms;
        if (by_ms < 0 && a->loaned) /* the scheduler has not got its time now */
            a->envelope->delivery.due_ms += by_ms;
    }
    return by_ms;
}

void
manager_clock_start(struct manager *m)
{
    char path[MANAGER_HINT_MAX], boot[AGE_BOOT_MAX];
    manager_clock_limit(m);
    manager_hint_path(m, "clock", path);
    age_clock_boot(boot);
    age_clock_start(&m->age, queue_disk(m->queue), path, boot, loop_now_ms(m->loop),
                    loop_monotonic_ms(m->loop));
    sched_on_step(m->sched, manager_clock_stepped);
}
