/* defrag/registry/registry_dir.c: one owner for a key, with any number of claims; files that are
 * stale, left behind, unwritable, missing or slow. */
#include "t/support/registry_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

struct home {
    char path[64], setting[80];
};

static void
home_make(struct home *h)
{
    registry_make_home(h->path);
    snprintf(h->setting, sizeof(h->setting), "dir:%s", h->path);
}

static void
path_of_key(const struct home *h, unsigned number, char out[256])
{
    unsigned char key[REGISTRY_KEY_SIZE];
    int length = snprintf(out, 256, "%s/", h->path);
    key_from(number, key);
    length += snprintf(out + length, 256 - (size_t)length, "%02x/", key[0]);
    for (size_t i = 0; i < sizeof(key); i++)
        length += snprintf(out + length, 256 - (size_t)length, "%02x", key[i]);
}

static size_t seen;

static int
count_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)walk;
    seen += type == FTW_F && strstr(path, "/id/") == NULL;
    return 0;
}

/* But for the names of hosts. */
static size_t
files_in(const struct home *h)
{
    seen = 0;
    nftw(h->path, count_entry, 8, FTW_PHYS);
    return seen;
}

static void
write_file(const char *path, const char *content)
{
    char parent[256];
    snprintf(parent, sizeof(parent), "%s", path);
    *strrchr(parent, '/') = '\0';
    mkdir(parent, 0700);
    FILE *f = fopen(path, "w");
    if (f == NULL || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

static bool
file_has(const char *path, const char *words)
{
    char content[512] = "";
    FILE *f = fopen(path, "r");
    size_t got = f == NULL ? 0 : fread(content, 1, sizeof(content) - 1, f);
    if (f != NULL)
        fclose(f);
    content[got] = '\0';
    return strstr(content, words) != NULL;
}

/* The start has less patience. */
static void
await(struct world *w)
{
    until(w, registry_is_up(w->registry));
    w->registry->counts = (struct registry_counts){0};
}

TEST(two)
{
    struct home h;
    struct world a, b;
    home_make(&h);
    registry_world_start(&a, "a.example", h.setting);
    registry_world_start(&b, "b.example", h.setting);
    is_number(files_in(&h), 0, "nothing is left by the start");
    await(&a);
    await(&b);
    is_string(sure(&a, 1), "own", "the first has it");
    is_string(sure(&b, 1), "a.example", "the second is told so");
    is_string(sure(&a, 1), "own", "the first, once more");
    is_string(sure(&b, 2), "own", "another key");
    is_string(sure(&a, 2), "b.example", "is the other's");
    is_number(files_in(&h), 2, "a file for each, and no other");
    registry_free(&a.registry);
    char error[256];
    a.registry = registry_of(&a, "A.EXAMPLE", h.setting, error);
    await(&a);
    is_string(sure(&a, 1), "own", "after a restart it is still ours");
    close_key(&b, 1, 0);
    pass_ms(&b, 20);
    is_string(sure(&b, 1), "a.example", "only the owner closes a set");
    close_key(&b, 2, 0);
    until(&b, files_in(&h) == 1);
    is_number(files_in(&h), 1, "closed and not remembered");
    close_key(&b, 3, 1000);
    pass_ms(&b, 20);
    is_number(files_in(&h), 1, "what was never claimed is not closed");
    is_number(registry_counts(a.registry).failures +
                  registry_counts(b.registry).failures,
              0, "nothing of this is a failure");
    registry_world_end(&a);
    registry_world_end(&b);
    remove_tree(h.path);
}

TEST(stale)
{
    struct home h;
    struct world a, b;
    char path[256];
    home_make(&h);
    registry_world_start(&a, "a.example", h.setting);
    registry_world_start(&b, "b.example", h.setting);
    is_string(sure_for(&a, 1, 30), "own", "a claim for 30 ms");
    pass_ms(&a, 60);
    is_string(sure(&b, 1), "own", "is another's afterwards");
    is_string(sure(&a, 1), "b.example", "who keeps it");
    is_string(sure_for(&a, 2, 30), "own", "again for 30 ms");
    pass_ms(&a, 60);
    is_string(sure(&a, 2), "own", "claimed anew by its owner");
    is_string(sure(&b, 2), "a.example", "it counts from there");
    is_string(sure_for(&a, 3, 30), "own", "once more for 30 ms");
    path_of_key(&h, 3, path);
    close_key(&a, 3, 3600000);
    until(&a, file_has(path, " 3600000 "));
    pass_ms(&a, 60);
    is_string(sure(&b, 3), "a.example", "closed, it is remembered");
    close_key(&a, 3, 30);
    until(&a, file_has(path, " 30 "));
    pass_ms(&a, 60);
    is_string(sure(&b, 3), "own", "for as long as it was told");
    path_of_key(&h, 4, path);
    write_file(path, "");
    is_string(sure(&a, 4), "own", "an empty file is nobody's");
    path_of_key(&h, 5, path);
    write_file(path, "a.example x y\n");
    is_string(sure(&b, 5), "own", "nor is one without sense");
    path_of_key(&h, 6, path);
    write_file(path, "a/../b 3600000 1750000000000 0123456789abcdef\n");
    is_string(sure(&b, 6), "own", "nor that of an odd host");
    path_of_key(&h, 8, path);
    write_file(path, "b.example 3600000 1750000000000 0123456789abcdef\n");
    is_string(sure(&a, 8), "own", "one of long ago is stale, however new the file");
    path_of_key(&h, 9, path);
    write_file(path, "b.example 3600000 4750000000000 0123456789abcdef\n");
    is_string(sure(&a, 9), "own", "nor does one from the future count");
    path_of_key(&h, 10, path);
    write_file(path, "b.example 4611686018427387903 1750000000000 0123456789abcdef\n");
    is_string(sure(&a, 10), "own", "nor one for ever");
    is_number(files_in(&h), 9, "nothing else is left");
    path_of_key(&h, 7, path);
    mkdir(path, 0700);
    *strrchr(path, '/') = '\0';
    mkdir(path, 0700);
    path_of_key(&h, 7, path);
    mkdir(path, 0700);
    is_string(claim(&b, 7), "unavailable", "a directory in the place of the file");
    registry_world_end(&a);
    registry_world_end(&b);
    remove_tree(h.path);
}

enum { KEYS = 300, ROUNDS = 2 };

/* All keys in an order of its own; tells the parent whose they are. */
static void
race(const struct home *h, const char *host, bool backwards, int out, int64_t ttl_ms)
{
    struct world w;
    struct told *t = memory_array(KEYS, sizeof(*t));
    char whose[KEYS];
    registry_world_start(&w, host, h->setting);
    breaker_of(w.registry)->pause_ms = breaker_of(w.registry)->pause_max_ms = 10;
    /* In groups, so that none waits longer than claims may. */
    for (unsigned from = 0; from < KEYS; from += 10) {
        for (unsigned i = from; i < from + 10; i++)
            claim_start(&w, &t[i], backwards ? KEYS - 1 - i : i, ttl_ms);
        until(&w, t[from + 9].times > 0);
    }
    for (unsigned i = 0; i < KEYS; i++)
        while (t[i].answer == REGISTRY_UNAVAILABLE) { /* a busy machine */
            until(&w, registry_is_up(w.registry));
            claim_start(&w, &t[i], backwards ? KEYS - 1 - i : i, ttl_ms);
            until(&w, t[i].times > 0);
        }
    for (unsigned i = 0; i < KEYS; i++)
        whose[backwards ? KEYS - 1 - i : i] = t[i].times != 1               ? '!'
                                              : t[i].answer == REGISTRY_OWN ? host[0]
                                              : t[i].answer == REGISTRY_OTHER
                                                  ? t[i].host[0]
                                                  : '?';
    if (write(out, whose, KEYS) != KEYS)
        abort();
    registry_world_end(&w);
    free(t);
}

static void
run_race(const struct home *h, int64_t ttl_ms, char whose[2][KEYS])
{
    int pipes[2][2];
    pid_t children[2];
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        if (pipe(pipes[i]) != 0 || (children[i] = fork()) < 0)
            abort();
        if (children[i] == 0) {
            race(h, i == 0 ? "a.example" : "b.example", i == 1, pipes[i][1], ttl_ms);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        ssize_t got = read(pipes[i][0], whose[i], KEYS);
        if (got != KEYS)
            ok_named(false, "a process told what it has heard");
        waitpid(children[i], NULL, 0);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

TEST(race)
{
    char whose[2][KEYS];
    struct home h;
    home_make(&h);
    /* In the second round all claims are stale. */
    for (int round = 0; round < ROUNDS; round++) {
        unsigned same = 0, a = 0, unknown = 0;
        run_race(&h, round == 0 ? 1 : 3600000, whose);
        if (round == 0)
            continue;
        for (int i = 0; i < KEYS; i++) {
            unknown += whose[0][i] == '?' || whose[1][i] == '?';
            same += whose[0][i] == whose[1][i];
            a += whose[0][i] == 'a';
        }
        is_number(same, KEYS, "two processes agree on the owner of each stale key");
        is_number(unknown, 0, "and all were answered");
        printf("# %u of %d are the first one's\n", a, KEYS);
    }
    remove_tree(h.path);
    home_make(&h);
    unsigned same = 0;
    run_race(&h, 3600000, whose);
    for (int i = 0; i < KEYS; i++)
        same += whose[0][i] == whose[1][i] && whose[0][i] != '?';
    is_number(same, KEYS, "and of each new one");
    is_number(files_in(&h), KEYS, "nothing else is left");
    remove_tree(h.path);
}

TEST(missing)
{
    struct home h;
    struct world w;
    home_make(&h);
    remove_tree(h.path);
    registry_world_start(&w, "a.example", h.setting);
    ok_named(!registry_is_up(w.registry), "a directory that is missing is down");
    ok_named(has_said(&w, "does not answer, this host works alone: No such file"),
             "which is told");
    is_string(claim(&w, 1), "unavailable", "nothing is known then");
    close_key(&w, 1, 0);
    is_number(w.recovered, 0, "it has not recovered");
    ok_named(access(h.path, F_OK) != 0, "it is not made by us");
    registry_world_end(&w);
    registry_make_home(h.path);
    snprintf(h.setting, sizeof(h.setting), "dir:%.64s", h.path);
    registry_world_start(&w, "a.example", h.setting);
    is_string(sure(&w, 1), "own", "one that is there");
    remove_tree(h.path);
    is_string(claim(&w, 2), "unavailable", "is removed under our feet");
    is_string(claim(&w, 3), "unavailable", "for all");
    ok_named(!registry_is_up(w.registry), "it is down");
    registry_world_end(&w);
}

TEST(unwritable)
{
    struct home h;
    struct world w;
    char file[70];
    home_make(&h);
    /* No directory at all, which stops root too. */
    snprintf(file, sizeof(file), "%s/file", h.path);
    write_file(file, "");
    snprintf(h.setting, sizeof(h.setting), "dir:%.70s", file);
    registry_world_start(&w, "a.example", h.setting);
    is_string(claim(&w, 1), "unavailable", "a file in the place of the directory");
    ok_named(has_said(&w, "Not a directory"), "which is told");
    registry_world_end(&w);
    /* /proc takes no files, for any user. */
    registry_world_start(&w, "a.example", "dir:/proc");
    is_string(claim(&w, 1), "unavailable", "a directory that takes no files");
    ok_named(!registry_is_up(w.registry), "is down");
    registry_world_end(&w);
    remove_tree(h.path);
}

static void
on_alarm(int number)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    (void)number;
    nanosleep(&pause, NULL);
}

/* A call that takes long: a signal comes in the middle of the work, and sleeps. */
TEST(slow)
{
    enum { MANY = 4000 };
    struct home h;
    struct world w;
    struct told *t = memory_array(MANY, sizeof(*t));
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    home_make(&h);
    registry_world_start(&w, "a.example", h.setting);
    is_string(sure(&w, MANY), "own", "as long as it is fast");
    registry_be_patient(w.registry, 50);
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 5 && registry_is_up(w.registry); i++) {
        struct itimerval soon = {.it_value = {.tv_usec = 5000}};
        for (unsigned n = 0; n < MANY; n++)
            claim_start(&w, &t[n], n, 3600000);
        setitimer(ITIMER_REAL, &soon, NULL);
        until(&w, t[MANY - 1].times > 0);
    }
    ok_named(!registry_is_up(w.registry), "one slow call is enough to leave it alone");
    ok_named(has_said(&w, "a call took "), "which is told");
    until_ms(&w, 1000, t[MANY - 1].times > 0);
    unsigned told = 0, unknown = 0;
    for (unsigned n = 0; n < MANY; n++) {
        told += t[n].times == 1;
        unknown += t[n].answer == REGISTRY_UNAVAILABLE;
    }
    is_number(told, MANY, "all who wait are answered");
    ok_named(unknown > 0, "some of them: unavailable");
    is_string(claim(&w, MANY), "unavailable", "so are those who come then");
    close_key(&w, 1, 0);
    registry_world_end(&w);
    remove_tree(h.path);
    free(t);
}
