/* Time, chance and record of a run. */
#include "t/roof/roof.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { RECORD_MAX = 1 << 30, LINE_SIZE = 1024, LIFE_LINES = 400, TAIL_LINES = 40 };

static struct {
    int64_t now_ms;
    uint64_t seed, random, timers_started, hash, events;
    struct heap timers;
    struct buffer record;
    bool traced;
    const char *broken; /* a law, by a test of it */
} roof;
static void (*on_break)(const char *law, const char *reason);

static bool
timer_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct roof_timer *x = memory_container(a, const struct roof_timer, node),
                            *y = memory_container(b, const struct roof_timer, node);
    return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->number < y->number;
}

/* In place of the system's: /metrics says the processor time used, whose digits would make
 * each run another one. */
int
getrusage(__rusage_who_t who, struct rusage *usage)
{
    (void)who;
    memset(usage, 0, sizeof(*usage));
    return 0;
}

void
roof_begin(uint64_t seed, bool traced)
{
    memset(&roof, 0, sizeof(roof));
    roof.seed = seed;
    roof.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    roof.traced = traced;
    roof.hash = UINT64_C(0xcbf29ce484222325);
    heap_init(&roof.timers, timer_before);
    buffer_init(&roof.record, RECORD_MAX);
}

int64_t
roof_now_ms(void)
{
    return roof.now_ms;
}

void
roof_set_now(int64_t now_ms)
{
    if (now_ms > roof.now_ms)
        roof.now_ms = now_ms;
}

void
roof_timer_start(struct roof_timer *t, int64_t delay_ms, void (*run)(void *context),
                 void *context)
{
    roof_timer_stop(t);
    t->due_ms = roof.now_ms + (delay_ms > 0 ? delay_ms : 0);
    t->number = ++roof.timers_started;
    t->run = run;
    t->context = context;
    heap_add(&roof.timers, &t->node);
}

void
roof_timer_stop(struct roof_timer *t)
{
    if (heap_has(&t->node))
        heap_remove(&roof.timers, &t->node);
}

static struct roof_timer *
first_timer(void)
{
    struct heap_node *n = heap_first(&roof.timers);
    return n != NULL ? memory_container(n, struct roof_timer, node) : NULL;
}

int64_t
roof_due_ms(void)
{
    const struct roof_timer *t = first_timer();
    return t != NULL ? t->due_ms : INT64_MAX;
}

bool
roof_run_due(void)
{
    struct roof_timer *t;
    bool any = false;
    while ((t = first_timer()) != NULL && t->due_ms <= roof.now_ms) {
        heap_remove(&roof.timers, &t->node);
        t->run(t->context);
        any = true;
    }
    return any;
}

uint64_t
roof_random_of(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

uint64_t
roof_fork(const char *name)
{
    uint64_t state = roof.seed;
    for (; name[0] != '\0'; name++)
        state = roof_random_of(&state) ^ (unsigned char)name[0];
    return state;
}

unsigned
roof_below_of(uint64_t *state, unsigned limit)
{
    return limit > 0 ? (unsigned)(roof_random_of(state) % limit) : 0;
}

int64_t
roof_between_of(uint64_t *state, int64_t from, int64_t to)
{
    return from + (int64_t)(roof_random_of(state) % (uint64_t)(to - from + 1));
}

uint64_t
roof_exchange_stream(uint64_t state)
{
    uint64_t before = roof.random;
    roof.random = state;
    return before;
}

uint64_t
roof_random(void)
{
    return roof_random_of(&roof.random);
}

unsigned
roof_below(unsigned limit)
{
    return limit > 0 ? (unsigned)(roof_random() % limit) : 0;
}

bool
roof_chance(unsigned permille)
{
    return roof_below(1000) < permille;
}

int64_t
roof_between(int64_t from, int64_t to)
{
    return from + (int64_t)(roof_random() % (uint64_t)(to - from + 1));
}

static void
record_line(struct text line)
{
    for (size_t i = 0; i < line.length; i++)
        roof.hash = (roof.hash ^ (unsigned char)line.at[i]) * UINT64_C(0x100000001b3);
    if (!buffer_add(&roof.record, line) || !buffer_add_byte(&roof.record, '\n'))
        buffer_clear(&roof.record);
    if (roof.traced)
        printf("%.*s\n", TEXT_ARGS(line));
}

void
roof_note(const char *format, ...)
{
    char line[LINE_SIZE];
    va_list list;
    int used = snprintf(line, sizeof(line), "%" PRId64 ".%03d ", roof.now_ms / 1000,
                        (int)(roof.now_ms % 1000));
    va_start(list, format);
    vsnprintf(line + used, sizeof(line) - (size_t)used, format, list);
    va_end(list);
    roof.events++;
    record_line(text_from(line));
}

void
roof_note_log(const char *who, struct text lines)
{
    struct text line;
    while (lines.length > 0) {
        text_cut(&lines, '\n', &line);
        struct text rest = line, time;
        text_cut(&rest, ' ', &time);
        roof_note("%s | %.*s", who, TEXT_ARGS(rest));
        roof.events--;
    }
}

uint64_t
roof_hash(void)
{
    return roof.hash;
}

uint64_t
roof_events(void)
{
    return roof.events;
}

void
roof_on_break(void (*broken)(const char *law, const char *reason))
{
    on_break = broken;
}

static bool
has_word(struct text line, const char *word)
{
    size_t length = strlen(word);
    const char *at = line.at, *end = line.at + line.length;
    while ((at = memmem(at, (size_t)(end - at), word, length)) != NULL) {
        const char *behind = at + length;
        bool ends = behind == end || *behind < '0' || *behind > '9';
        if (ends)
            return true;
        at++;
    }
    return false;
}

void
roof_print_life(const char *word)
{
    struct text rest = buffer_text(&roof.record), line;
    unsigned count = 0;
    while (rest.length > 0 && count < LIFE_LINES) {
        text_cut(&rest, '\n', &line);
        if (!has_word(line, word))
            continue;
        printf("  %.*s\n", TEXT_ARGS(line));
        count++;
    }
}

static void
print_tail(void)
{
    const char *start = roof.record.at, *at = start + roof.record.length;
    for (unsigned lines = 0; at > start && lines <= TAIL_LINES; at--)
        lines += at[-1] == '\n';
    printf("the last lines:\n%.*s", (int)(start + roof.record.length - at), at);
}

void
roof_set_broken(const char *law)
{
    roof.broken = law;
}

bool
roof_breaks(const char *law)
{
    return roof.broken != NULL && strcmp(roof.broken, law) == 0;
}

void
roof_break(const char *law, const char *about, const char *format, ...)
{
    char reason[LINE_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof(reason), format, list);
    va_end(list);
    if (on_break != NULL)
        on_break(law, reason);
    printf("seed %" PRIu64 " at %" PRId64 ".%03d s: %s: %s\n", roof.seed,
           roof.now_ms / 1000, (int)(roof.now_ms % 1000), law, reason);
    if (about != NULL) {
        printf("its life:\n");
        roof_print_life(about);
    }
    if (!roof.traced)
        print_tail();
    fflush(stdout);
    _Exit(1);
}
