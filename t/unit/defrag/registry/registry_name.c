/* defrag/registry/registry.c, names, and how a directory keeps them: a namesake is
 * reported once; a host that comes back after a crash is not one. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "t/sim/sim_disk.h"

#include "t/support/registry_kit.h"
#include "t/sim/sim.h"

enum { MINUTE_MS = 60000, HOUR_MS = 3600000 };

static void
begin(struct world *w, const char *host)
{
    struct disk *disk;
    sim_disk_reset();
    sim_disk_set_time(SIM_WALL_START_MS);
    if (disk_open(&disk, "/shared", true) != 0)
        abort();
    disk_close(&disk);
    registry_world_start(w, host, "dir:/shared");
}

/* In both clocks. */
static void
pass(struct world *w, int64_t ms)
{
    for (; ms > 0; ms -= 1000) {
        sim_loop_advance(w->loop, ms < 1000 ? ms : 1000);
        sim_disk_set_time(loop_now_ms(w->loop));
    }
}

static struct registry *
another(struct world *w, const char *host)
{
    char error[256];
    struct registry *r = registry_of(w, host, "dir:/shared", error);
    if (r == NULL)
        abort();
    return r;
}

/* Alone on the disk: what it has written stays. */
static void
crash(struct registry **r)
{
    sim_disk_die_at(sim_disk_calls() + 1);
    registry_free(r);
    sim_disk_restart();
}

static bool
keep_path(void *context, const char *name)
{
    snprintf(context, 80, "id/%.64s", name);
    return true;
}

/* The file of the only name. */
static void
take_name(struct disk *disk, char path[80])
{
    *path = '\0';
    (void)disk_list(disk, "id", keep_path, path);
}

static void
until_up(struct world *w)
{
    for (int i = 0; i < 600 && !registry_is_up(w->registry); i++)
        pass(w, 1000);
}

static uint64_t
found(const struct registry *r)
{
    return registry_counts(r).namesakes;
}

TEST(alone)
{
    FIXTURE(world, w, begin, registry_world_end, "a.example");
    pass(&w, 1000);
    is_number(sim_disk_count("/shared"), 1, "the name is there");
    pass(&w, 3 * HOUR_MS);
    is_number(sim_disk_count("/shared"), 1, "for hours");
    is_number(w.said.length, 0, "without a word");
    struct registry *other = another(&w, "b.example");
    pass(&w, HOUR_MS);
    is_number(sim_disk_count("/shared"), 2, "that of another host too");
    registry_free(&other);
    is_number(sim_disk_count("/shared"), 1, "who ends takes it away");
    registry_free(&w.registry);
    is_number(sim_disk_count("/shared"), 0, "the last one too");
    is_number(w.said.length, 0, "still without a word");
}

TEST(two)
{
    FIXTURE(world, w, begin, registry_world_end, "a.example");
    pass(&w, 10000);
    struct registry *second = another(&w, "A.Example");
    pass(&w, 10000);
    is_number(found(second), 0, "a namesake, who may be dead");
    pass(&w, 110000);
    is_number(found(second), 1, "is alive after two minutes");
    ok_named(has_said(&w, "another process in the registry dir:/shared has the name "
                          "A.Example: each host needs its own defrag_host"),
             "which is told");
    buffer_clear(&w.said);
    pass(&w, 3 * HOUR_MS);
    is_number(found(second), 1, "it is found once");
    is_number(found(w.registry), 0, "by who came later");
    is_number(w.said.length, 0, "and told once");
    registry_free(&second);
    is_number(sim_disk_count("/shared"), 1, "who has not the name does not remove it");
    second = another(&w, "a.example");
    pass(&w, 2 * MINUTE_MS);
    is_number(found(second), 1, "the next one is told too");
    crash(&w.registry);
    pass(&w, 5 * MINUTE_MS);
    ok_named(registry_is_up(second), "the first one is dead");
    is_number(found(second), 1, "the second is alone");
    w.registry = another(&w, "a.example");
    pass(&w, 2 * MINUTE_MS);
    is_number(found(w.registry), 1, "now who comes back is the later one");
    registry_free(&second);
    pass(&w, 2 * MINUTE_MS);
    second = another(&w, "a.example");
    pass(&w, 2 * MINUTE_MS);
    is_number(found(second), 1, "who then gets the name, and keeps it");
    is_number(found(w.registry), 1, "without another word");
    registry_free(&second);
}

TEST(crashes)
{
    FIXTURE(world, w, begin, registry_world_end, "a.example");
    for (unsigned i = 0; i < 40; i++) {
        /* The look is at 0, 30, 60, ... s. */
        pass(&w, 1000 + 7000 * (int64_t)(i % 13));
        if (found(w.registry) != 0)
            break;
        crash(&w.registry);
        w.registry = another(&w, "a.example");
    }
    is_number(found(w.registry), 0,
              "who comes back after a crash is nobody's namesake");
    pass(&w, HOUR_MS);
    is_number(found(w.registry), 0, "nor later");
    is_number(w.said.length, 0, "nothing is told");
    is_number(sim_disk_count("/shared"), 1, "and nothing left behind");
}

/* As another version, or nobody, would write it. */
static void
write_name(const char *host, const char *content)
{
    unsigned char key[REGISTRY_KEY_SIZE];
    char hex[REGISTRY_HEX_SIZE], name[80];
    struct disk *disk;
    digest_plain(text_from(host), key);
    text_hex(key, REGISTRY_KEY_SIZE, hex);
    snprintf(name, sizeof(name), "id/%s", hex);
    if (disk_open(&disk, "/shared", false) != 0)
        abort();
    (void)disk_make_directory(disk, "id", 0700);
    int file = disk_create(disk, name, 0600);
    if (file < 0 || disk_write(disk, file, text_from(content)) != 0)
        abort();
    disk_close_file(disk, file);
    disk_close(&disk);
}

TEST(odd)
{
    static const char *const contents[] = {
        "", "\n", "a.example", "a.example 60000 1750000000000 0123456789abcdefg\n",
        "a.example 60000 0 0123456789abcdef\n"};
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        FIXTURE(world, w, begin, registry_world_end, "b.example");
        write_name("a.example", contents[i]);
        struct registry *a = another(&w, "a.example");
        pass(&w, 1000);
        is_string(a->name.other, "", "what is no instance is nobody's");
        pass(&w, 10 * MINUTE_MS);
        is_number(w.said.length, 0, "... and not told");
        is_number(sim_disk_count("/shared"), 2, "... but replaced");
        registry_free(&a);
    }
}

TEST(names)
{
    char name[REGISTRY_HOST_MAX + 1] = "";
    const char *const names[] = {"..", ".", "t0123456789abcdef", name};
    memset(name, 'a', REGISTRY_HOST_MAX);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        FIXTURE(world, w, begin, registry_world_end, names[i]);
        pass(&w, HOUR_MS);
        is_number(sim_disk_count("/shared/id"), 1, names[i]);
        is_number(registry_counts(w.registry).failures, 0, "... is a name as others");
        is_string(claim(&w, 1), "own", "... that owns");
    }
}

TEST(down)
{
    FIXTURE(world, w, begin, registry_world_end, "a.example");
    pass(&w, 1000);
    sim_disk_die_at(sim_disk_calls() + 1);
    pass(&w, 40000);
    ok_named(!registry_is_up(w.registry), "a look that fails opens the breaker");
    sim_disk_restart();
    pass(&w, 10 * MINUTE_MS);
    ok_named(registry_is_up(w.registry), "until it works again");
    is_number(found(w.registry), 0, "we are no namesake of ours");
    is_number(sim_disk_count("/shared"), 1, "and have our name");
}

/* Where nobody tells when it was refreshed: after a minute the dead are gone. */
TEST(untold)
{
    FIXTURE(world, w, registry_world_start, registry_world_end, "a.example", "local");
    struct registry *r = w.registry;
    const struct text one = TEXT("one"), two = TEXT("two");
    registry_name_other(r, one, 0);
    for (int i = 0; i < 60; i++) {
        pass(&w, 1000);
        registry_name_other(r, one, 0);
    }
    is_number(found(r), 0, "for a minute it may be dead");
    registry_name_other(r, two, 0);
    pass(&w, 2000);
    registry_name_other(r, two, 0);
    is_number(found(r), 0, "another one: the minute begins anew");
    pass(&w, 60000);
    registry_name_other(r, two, 0);
    is_number(found(r), 1, "and ends");
    registry_name_ours(&r->name);
    registry_name_other(r, two, 0);
    pass(&w, 60000);
    registry_name_other(r, two, 0);
    is_number(found(r), 1, "the name was ours: anew");
    pass(&w, 2000);
    registry_name_other(r, two, 0);
    is_number(found(r), 2, "and again found");
    for (int i = 0; i < 5; i++) {
        pass(&w, MINUTE_MS);
        registry_name_other(r, TEXT("12345678901234567"), 0);
        registry_name_other(r, TEXT(""), 0);
    }
    is_number(found(r), 2, "what is no instance is no namesake");
}

/* A directory that is made anew has not our name; after a failure that is seen at once. */
TEST(emptied)
{
    struct disk *disk;
    char name[80];
    FIXTURE(world, w, begin, registry_world_end, "a.example");
    pass(&w, MINUTE_MS);
    is_number(w.emptied, 0, "an empty directory at startup is no loss");
    if (disk_open(&disk, "/shared", false) != 0)
        abort();
    take_name(disk, name);
    (void)disk_unlink(disk, name);
    pass(&w, MINUTE_MS / 2 + 1000);
    ok_named(w.emptied == 1 && w.recovered == 1, "our name is gone: claim all again");
    ok_named(has_said(&w, "the registry dir:/shared has forgotten this host, which claims "
                          "its messages again"),
             "which is told");
    is_number(sim_disk_count("/shared"), 1, "the name is there again");
    sim_disk_die_at(sim_disk_calls() + 1);
    pass(&w, 20000);
    ok_named(!registry_is_up(w.registry), "the disk fails");
    sim_disk_restart();
    (void)disk_unlink(disk, name);
    until_up(&w);
    pass(&w, 1000);
    is_number(w.emptied, 2, "back, and empty");
    pass(&w, HOUR_MS);
    is_number(w.emptied, 2, "once");
    disk_close(&disk);
}
