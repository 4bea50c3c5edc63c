/* defrag/closed_file.c, channel.c: what is known of a set that has ended holds over a
 * restart, and a reload of the routes holds for sets that wait. */
/* link: t/sim/loop.c */
#include "defrag/closed_file.h"
#include "t/support/channel_world.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROUTES "* smtp://h?defragment=yes&notices=2h"
#define ONE    "Subject: whole\r\n\r\none\r\n"
#define TWO    "two\r\n"
#define THREE  "three\r\n"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static const char *
memory_path(const struct stage *s)
{
    static char path[100];
    snprintf(path, sizeof(path), "%s/lock/fragments", s->w.folder);
    return path;
}

static void
memory_write(const struct stage *s, const char *mode, const char *content)
{
    FILE *f = fopen(memory_path(s), mode);
    if (f == NULL || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

/* The lines of the file, without its title; -1: there is none. */
static int
memory_lines(const struct stage *s, char *first, size_t size)
{
    char line[200];
    int count = -1;
    FILE *f = fopen(memory_path(s), "r");
    for (; f != NULL && fgets(line, sizeof(line), f) != NULL; count++)
        if (count == 0 && first != NULL)
            snprintf(first, size, "%s", line);
    if (f != NULL)
        (void)fclose(f);
    return count;
}

static unsigned
memory_logged(const struct stage *s, const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text((struct buffer *)&s->w.lines), line;
    while (text_cut(&rest, '\n', &line))
        count += memmem(line.at, line.length, words, strlen(words)) != NULL;
    return count;
}

static void
memory_waits(const struct stage *s, const char *name)
{
    is_number((long long)stage_figures(s).messages, 0, name);
}

/* --- Over a restart --------------------------------------------------------------- */

static void
contradict(struct stage *s)
{
    stage_part(s, "i", 1, 4, ONE);
    stage_part(s, "i", 2, 4, TWO);
    stage_part(s, "i", 2, 4, "other\r\n");
}

TEST(conflict)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    contradict(&s);
    is_number(s.count, 3, "a contradiction releases all");
    stage_restart(&s);
    stage_part(&s, "i", 3, 4, THREE);
    is_number(s.count, 4, "what comes after a restart passes");
    ok(world_logged(&s.w, "status=passed (the fragments contradict each other)"));
    memory_waits(&s, "and does not wait");
    stage_restart(&s);
    stage_part(&s, "i", 4, 4, THREE);
    is_number(s.count, 5, "so after the next");
    sim_loop_advance(s.w.loop, STAGE_HALF_MS + 1000);
    stage_part(&s, "i", 3, 4, THREE);
    is_number(s.count, 5, "until it is forgotten");
}

/* They are offered again after the restart, in any order. */
TEST(deferred)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    contradict(&s);
    s.refuses = true;
    stage_part(&s, "i", 3, 4, THREE);
    stage_part(&s, "i", 4, 4, THREE);
    memory_waits(&s, "passed, and deferred by the next hop");
    s.refuses = false;
    stage_restart(&s);
    sim_loop_advance(s.w.loop, 20 * 60 * 1000);
    memory_waits(&s, "they form no new set");
    is_number(s.count, 5, "and go on with the next attempt");
}

TEST(other_ends)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 2, ONE);
    stage_part(&s, "i", 2, 2, TWO);
    is_number(s.count, 1, "reassembled");
    stage_restart(&s);
    stage_part(&s, "i", 2, 2, TWO);
    memory_waits(&s, "a repetition after a restart does not wait for the first part");
    is_number(s.count, 2, "nobody knows its digest any more: it passes");
    stage_part(&s, "j", 1, 2, ONE);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS + 1000);
    stage_restart(&s);
    stage_part(&s, "j", 2, 2, TWO);
    is_number(s.count, 4, "late, after a restart");
    ok(world_logged(&s.w, "status=passed (the others did not come in time)"));
    stage_part(&s, "k", 1, 2, ONE);
    (void)world_operate(&s.w, MANAGER_REMOVE);
    world_turns(&s.w);
    stage_restart(&s);
    stage_part(&s, "k", 1, 2, ONE);
    is_number((long long)stage_figures(&s).messages, 1,
              "what an operator removed may come again");
}

/* --- The file --------------------------------------------------------------------- */

TEST(damage)
{
    char line[200];
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    contradict(&s);
    is_number(memory_lines(&s, line, sizeof(line)), 1, "one line");
    stage_stop(&s);
    memory_write(&s, "a", "\xff\n\n0 1 2 conflict\n");
    memory_write(&s, "a", "00"); /* a power cut */
    manager_world_start(&s.w);
    is_number(memory_logged(&s, "lock/fragments: damaged"), 1,
              "garbage is one warning");
    stage_part(&s, "i", 3, 4, THREE);
    is_number(s.count, 4, "the rest counts");
    stage_part(&s, "j", 1, 2, ONE);
    stage_part(&s, "j", 1, 2, TWO);
    is_number(memory_lines(&s, NULL, 0), 2, "the next set writes it anew");
    stage_stop(&s);
    memory_write(&s, "w", "something else\n");
    manager_world_start(&s.w);
    is_number(memory_logged(&s, "lock/fragments: damaged"), 2, "another file");
    stage_part(&s, "i", 4, 4, THREE);
    is_number((long long)stage_figures(&s).messages, 1, "knows nothing");
}

TEST(write_faults)
{
    char inner[120];
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    snprintf(inner, sizeof(inner), "%s/x", memory_path(&s));
    if (mkdir(memory_path(&s), 0700) != 0 || mkdir(inner, 0700) != 0)
        abort();
    contradict(&s);
    stage_part(&s, "j", 1, 2, ONE);
    stage_part(&s, "j", 1, 2, TWO);
    is_number(s.count, 5, "mail goes on");
    is_number(memory_logged(&s, "lock/fragments: cannot be written"), 1, "one warning");
    if (rmdir(inner) != 0 || rmdir(memory_path(&s)) != 0)
        abort();
    stage_part(&s, "k", 1, 2, ONE);
    stage_part(&s, "k", 1, 2, TWO);
    is_number(memory_logged(&s, "lock/fragments: written again"), 1, "then again");
    is_number(memory_lines(&s, NULL, 0), 3, "with all that is known");
}

/* A clock that was ahead, and a line that nobody of us wrote. */
TEST(future)
{
    char line[200], more[400];
    long long ended;
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    contradict(&s);
    (void)memory_lines(&s, line, sizeof(line));
    char *rest = strchr(line, ' ');
    if (rest == NULL || sscanf(rest, "%lld", &ended) != 1)
        abort();
    *rest = '\0';
    stage_stop(&s);
    snprintf(more, sizeof(more), "petrel fragments 1\n%s %lld %d conflict\n", line,
             ended + 10LL * DAY_MS, STAGE_HALF_MS);
    memory_write(&s, "w", more);
    manager_world_start(&s.w);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS - 60 * 1000);
    stage_part(&s, "i", 3, 4, THREE);
    is_number(s.count, 4, "from the future: from now on");
    sim_loop_advance(s.w.loop, 2 * 60 * 1000);
    stage_part(&s, "i", 3, 4, THREE);
    is_number(s.count, 4, "and no longer than it was to be");
    stage_stop(&s);
    snprintf(more, sizeof(more), "petrel fragments 1\n%s %lld %lld conflict\n", line,
             ended, 51LL * DAY_MS);
    memory_write(&s, "w", more);
    manager_world_start(&s.w);
    is_number(memory_logged(&s, "lock/fragments: damaged"), 1,
              "no set is remembered for 51 days");
}

TEST(bound)
{
    struct set_closed closed = {.memory_ms = 1000, .reason = SET_CONFLICT};
    struct closed_file f;
    int most = 0;
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    struct sets *sets = sets_new(&(struct set_limits){.sets = 10});
    closed_file_start(&f, s.w.manager, s.w.log, sets, 1000);
    for (uint32_t i = 0; i < 5 * CLOSED_FILE_SETS_MAX / 2; i++) {
        memcpy(closed.key, &i, sizeof(i));
        sets_recall(sets, &closed, 1000);
        closed_file_note(&f, &closed, 1000);
        if (i % 1000 == 999) {
            closed_file_flush(&f, sets);
            int lines = memory_lines(&s, NULL, 0);
            most = lines > most ? lines : most;
        }
    }
    ok_named(most > CLOSED_FILE_SETS_MAX && most <= 2 * CLOSED_FILE_SETS_MAX,
             "the file does not grow for ever");
    int lines = memory_lines(&s, NULL, 0);
    ok_named(lines < CLOSED_FILE_SETS_MAX, "it was written anew");
    closed_file_end(&f);
    sets_free(&sets);
}

/* --- A reload --------------------------------------------------------------------- */

static void
reload_routes(struct stage *s, const char *routes, struct route_table **kept)
{
    s->w.routes_text.routes = text_from(routes);
    *kept = world_routes(&s->w);
    manager_reload(s->w.manager, &s->w.settings, *kept);
    channel_reload(s->channel, &s->settings);
    world_turns(&s->w);
}

TEST(shorter)
{
    struct route_table *other[3];
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    struct route_table *before = s.w.routes;
    stage_part(&s, "i", 1, 3, ONE);
    sim_loop_advance(s.w.loop, 60 * 1000);
    stage_part(&s, "i", 2, 3, TWO);
    reload_routes(&s, "* smtp://h?defragment=yes&notices=40m", &other[0]);
    is_number((long long)stage_figures(&s).messages, 2, "they wait");
    sim_loop_advance(s.w.loop, 18 * 60 * 1000);
    is_number(s.count, 0, "half of the new time");
    sim_loop_advance(s.w.loop, 2 * 60 * 1000);
    is_number(s.count, 2, "and no longer");
    stage_part(&s, "j", 1, 3, ONE);
    reload_routes(&s, "* smtp://h?defragment=yes&notices=4h", &other[1]);
    sim_loop_advance(s.w.loop, 21 * 60 * 1000);
    is_number(s.count, 3, "a longer time is for new sets");
    stage_part(&s, "k", 1, 3, ONE);
    sim_loop_advance(s.w.loop, 110 * 60 * 1000);
    is_number(s.count, 3, "it is");
    reload_routes(&s, "* smtp://h?defragment=yes&notices=1h", &other[2]);
    sim_loop_advance(s.w.loop, 10 * 1000);
    is_number(s.count, 4, "a time that is over counts after a moment");
    manager_reload(s.w.manager, &s.w.settings, before);
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        route_free(&other[i]);
}
