/* The queue on the real disk: accept, deliver, restart, injectors, operators. */
/* link: t/sim/clock.c */
#include "queue/queue.h"
#include "queue/queue_operator.h"

#include "t/support/queue_home.h"

#include <errno.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static const char *const one[] = {"a@example.org", NULL};
static const char *const four[] = {"a@example.org", "b@example.org", "c@example.net",
                                   "d@example.net", NULL};

/* --- Opening --------------------------------------------------------------------- */

TEST(open)
{
    static const struct {
        const char *name;
        unsigned mode;
    } dirs[] = {
        {"",              0711 },
        {"/pid",          01733},
        {"/mess",         01733},
        {"/intd",         01733},
        {"/todo",         01733},
        {"/info",         0700 },
        {"/local",        0700 },
        {"/remote",       0700 },
        {"/hold",         0700 },
        {"/bounce",       0700 },
        {"/lock",         0711 },
        {"/corrupt",      0700 },
        {"/lock/trigger", 0622 }
    };
    char home[64], spool[100], path[200];
    struct kit k, second;
    queue_home_make_home(home);
    snprintf(spool, sizeof(spool), "%s/var/spool", home);
    umask(077);
    is_number(queue_kit_open(&k, spool), 0, "missing parents are made");
    umask(022);
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        struct stat status = {0};
        snprintf(path, sizeof(path), "%s%s", spool, dirs[i].name);
        stat(path, &status);
        is_number(status.st_mode & 07777, dirs[i].mode, path + strlen(spool));
    }
    ok_named(queue_health(k.queue).accepting, "a new queue takes mail");
    is_number(queue_kit_open(&second, spool), EX_TEMPFAIL, "a second daemon is told");
    ok(strstr(second.error, spool) != NULL &&
       strstr(second.error, "lock/daemon") != NULL);
    ok_named(strchr(second.error, '\n') == NULL, "in one line");
    ok(second.queue == NULL);
    kit_close(&second);
    kit_turns(&k, 3);
    is_number(k.found_count, 0, "an empty queue has no messages");
    kit_close(&k);
    is_number(queue_kit_open(&k, spool), 0, "the lock goes with the daemon");
    kit_close(&k);

    snprintf(path, sizeof(path), "%s/file", home);
    fclose(fopen(path, "w"));
    snprintf(path, sizeof(path), "%s/file/spool", home);
    is_number(queue_kit_open(&k, path), EX_CANTCREAT, "a file in the way");
    ok_named(strstr(k.error, path) != NULL && strstr(k.error, "set `spool`") != NULL,
             "is told with path and remedy");
    kit_close(&k);
    is_number(kit_open_injector(&k, path), EX_CANTCREAT, "to an injector as well");
    kit_close(&k);
    snprintf(path, sizeof(path), "%s/other", home);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/other/mess", home);
    fclose(fopen(path, "w"));
    snprintf(path, sizeof(path), "%s/other", home);
    is_number(queue_kit_open(&k, path), EX_CANTCREAT, "a file instead of mess/");
    ok(strstr(k.error, "mess") != NULL);
    kit_close(&k);
    remove_home(home);
}

TEST(open_without_rights)
{
    char home[64], spool[100];
    struct kit k;
    if (geteuid() != 0) {
        ok_named(true, "rights: # SKIP needs root to become somebody else");
        return;
    }
    queue_home_make_home(home);
    chmod(home, 0755);
    snprintf(spool, sizeof(spool), "%s/spool", home);
    if (seteuid(65534) != 0)
        abort();
    is_number(queue_kit_open(&k, spool), EX_CANTCREAT, "an unwritable place is told");
    ok(strstr(k.error, "Permission denied") != NULL);
    kit_close(&k);
    if (seteuid(0) != 0)
        abort();
    is_number(queue_kit_open(&k, spool), 0, "opened by its owner");
    kit_close(&k);
    if (seteuid(65534) != 0)
        abort();
    is_number(queue_kit_open(&k, spool), EX_CANTCREAT,
              "another user's daemon gets no lock");
    kit_close(&k);
    if (seteuid(0) != 0)
        abort();
    remove_home(home);
}

/* --- Accepting ------------------------------------------------------------------- */

static void
test_accept(const char *home)
{
    struct kit k;
    is_number(queue_kit_open(&k, home), 0, "open");
    struct envelope *e = kit_envelope("sender@example.org", four);
    ok(kit_commit(&k, e, TEXT("Subject: x\r\n\r\nbody\r\n")));
    is_number(k.answers, 0, "the answer never comes at once");
    kit_turns(&k, 1);
    is_number(k.answers, 1, "but at the end of the turn");
    e = k.stored;
    k.stored = NULL;
    ok_named(e != NULL && !k.refused, "stored");
    is_string(queue_home_where(home, e->id), "mit", "S4: mess, intd, todo");
    ok(e->birth_ms > 1700000000000 && (int64_t)e->id.time_ms == e->birth_ms);
    is_number(e->content_size, 20, "its size is known");
    ok(kit_content_is(&k, e, TEXT("Subject: x\r\n\r\nbody\r\n")));
    is_number(queue_health(k.queue).stored, 1, "counted");
    struct stat status;
    char path[200];
    queue_home_path_of(home, "mess", e->id, path);
    stat(path, &status);
    is_number(status.st_mode & 07777, 0400, "nobody else reads it, nobody writes it");

    struct envelope *loaded = queue_load(k.queue, e->id);
    ok(loaded != NULL && loaded->count == 4 && !loaded->storage.preprocessed &&
       !loaded->delivery.held);
    is_text(loaded->prefix, TEXT("Received: by test\r\n"), "the prefix is kept");
    is_text(loaded->sender, TEXT("sender@example.org"), "and the sender");
    envelope_free(&loaded);
    uint64_t syncs = queue_health(k.queue).syncs;
    queue_retire(k.queue, &e);
    ok(e == NULL);
    is_number(count_all(home), 0, "retired: nothing is left");
    ok_named(queue_health(k.queue).syncs == syncs, "and no sync was spent on it");
    is_number(queue_health(k.queue).retired, 1, "counted");
    kit_turns(&k, 3);
    is_number(k.found_count, 0, "what was accepted here is not reported");
    kit_close(&k);
}

static void
test_group(const char *home)
{
    struct id ids[20];
    FIXTURE(kit, k, queue_kit_open, kit_close, home);
    uint64_t before = queue_health(k.queue).syncs;
    for (unsigned i = 0; i < 20; i++) {
        struct envelope *e = kit_envelope("", one);
        struct queue_draft *d = queue_begin(k.queue, 0, &k.refusal);
        (void)!queue_write(d, TEXT("same\r\n"));
        queue_name(d, e);
        ids[i] = e->id;
        queue_commit(&d, &e, kit_stored, &k);
        if (i < 19)
            queue_commit_ignore(k.queue, i < 10 ? &k : NULL);
    }
    queue_commit_ignore(k.queue, &k);
    kit_turns(&k, 1);
    is_number(k.answers, 0, "ignored: no answer");
    is_number(queue_health(k.queue).syncs - before, 41,
              "20 messages: two syncs each and one for all");
    kit_turns(&k, 2);
    is_number(k.found_count, 20, "but the messages are reported");
    bool in_order = true;
    for (unsigned i = 1; i < 20; i++)
        in_order &= id_compare(ids[i - 1], ids[i]) < 0;
    ok_named(in_order, "messages of one moment have names in their order");
    for (unsigned i = 0; i < 20; i++) {
        struct envelope *e = queue_load(k.queue, ids[i]);
        if (e != NULL)
            queue_retire(k.queue, &e);
    }
    is_number(count_all(home), 0, "all retired");
}

static void
test_draft(const char *home)
{
    static char big[3000000];
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (char)(i * 7 + i / 4096);
    FIXTURE(kit, k, queue_kit_open, kit_close, home);
    struct queue_draft *d = queue_begin(k.queue, 100, &k.refusal);
    ok(queue_write(d, text_of(big, 60000)));
    is_number(count_all(home), 0, "a small draft has no file");
    is_number(queue_draft_size(d), 60000, "its size is known");
    ok(queue_write(d, text_of(big, 60000)));
    is_number(count_files(home, "pid"), 1, "a large one is in pid/");
    queue_discard(&d);
    ok(d == NULL);
    queue_discard(&d);
    is_number(count_all(home), 0, "discarded: gone");
    d = queue_begin(k.queue, 100, &k.refusal);
    struct envelope *e = kit_envelope("", one);
    queue_name(d, e);
    is_number(count_files(home, "mess"), 1, "a named draft is in mess/");
    queue_discard(&d);
    is_number(count_all(home), 0, "and goes from there");
    envelope_free(&e);

    e = queue_kit_accept(&k, kit_envelope("s@x", one), text_of(big, sizeof(big)));
    ok_named(e != NULL, "a large message is stored");
    is_string(queue_home_where(home, e->id), "mit", "S4");
    is_number(count_files(home, "pid"), 0, "pid/ is empty again");
    ok_named(kit_content_is(&k, e, text_of(big, sizeof(big))), "byte for byte");
    struct envelope *again = queue_load(k.queue, e->id);
    ok(again != NULL);
    envelope_free(&again);
    queue_retire(k.queue, &e);
    e = queue_kit_accept(&k, kit_envelope("s@x", one), TEXT(""));
    ok_named(e != NULL && e->content_size == 0, "an empty message is stored");
    e->birth_ms = 0;
    queue_retire(k.queue, &e);
    e = kit_envelope("", one);
    e->birth_ms = 1234567890123;
    e = queue_kit_accept(&k, e, TEXT("x"));
    is_number(e->birth_ms, 1234567890123, "an older birth is kept");
    queue_retire(k.queue, &e);
}

static void
test_space(const char *home)
{
    struct kit k;
    queue_kit_open(&k, home);
    ok(queue_begin(k.queue, INT64_MAX / 2, &k.refusal) == NULL);
    is_number(k.refusal.code, 452, "more than the disk has is refused");
    is_string(k.refusal.enhanced, "4.3.1", "as a full system");
    k.refusal.code = 0;
    ok(!queue_admits(k.queue, INT64_MAX / 2, &k.refusal));
    is_number(k.refusal.code, 452, "and so is the question whether it may come");
    ok(queue_admits(k.queue, 1000, &k.refusal) && queue_admits(k.queue, 0, &k.refusal));
    kit_close(&k);
    struct queue_settings settings = {.spool = home, .bytes_reserve = INT64_MAX / 2};
    struct loop *loop = loop_new();
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct queue *q;
    ok(queue_open(&q, loop, log, &settings, kit_found, &k, k.error, sizeof(k.error)) ==
       0);
    ok(!queue_health(q).accepting && strstr(queue_health(q).reason, "full") != NULL);
    ok(queue_begin(q, 0, &k.refusal) == NULL);
    ok(!queue_admits(q, 0, &k.refusal));
    queue_close(&q);
    log_free(&log);
    loop_free(&loop);
}

/* --- Delivering ------------------------------------------------------------------ */

static struct failure
a_failure(unsigned index)
{
    return (struct failure){.recipient = index,
                            .expired = false,
                            .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550,
                                                    "5.1.1", "no such user %u", index)};
}

static void
test_settle(const char *home)
{
    struct kit k;
    queue_kit_open(&k, home);
    struct envelope *e =
        queue_kit_accept(&k, kit_envelope("s@x", four), TEXT("body\r\n"));
    struct failure failure = a_failure(2);
    struct id id = e->id;
    queue_settle(k.queue, e, 0, NULL);
    ok(e->recipients[0].done && e->delivery.done == 1);
    kit_turns(&k, 1);
    is_string(queue_home_where(home, id), "mit", "a mark is not written at once");
    wait_ms(&k, 150);
    is_string(queue_home_where(home, id), "mIlr", "but after 100 ms: S5, without todo");
    ok_named(e->storage.preprocessed && e->recipients[0].mark.offset > 0,
             "the envelope knows");
    queue_settle(k.queue, e, 2, &failure);
    ok_named(e->delivery.failure_count == 1, "a failure is in the envelope");
    wait_ms(&k, 150);
    is_string(queue_home_where(home, id), "mIlrb", "its text is in bounce/");

    int64_t due = loop_now_ms(k.loop) + 3600000;
    queue_defer(k.queue, &e, due, 5);
    ok(e == NULL);
    kit_turns(&k, 2);
    for (unsigned round = 0; round < 2; round++) {
        kit_close(&k);
        queue_kit_open(&k, home);
        is_number(k.found_count, 0, "nothing is reported inside queue_open");
        kit_turns(&k, 2);
        is_number(k.found_count, 1, "a restart finds it");
        ok(id_compare(k.found[0].id, id) == 0);
        is_number(k.found[0].due_ms, due, "with its due time");
        is_number(k.found[0].attempts, 5, "and attempts");
    }
    e = queue_load(k.queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->count == 4 &&
                 e->delivery.done == 2,
             "loaded");
    ok(e->recipients[0].done && e->recipients[2].done && !e->recipients[1].done);
    ok(e->delivery.due_ms == due && e->delivery.attempts == 5);
    is_number(e->delivery.failure_count, 1, "with its failure");
    is_string(e->delivery.failures[0].outcome.text, "no such user 2", "word for word");
    queue_settle(k.queue, e, 1, NULL);
    queue_defer(k.queue, &e, due + 1, 6);
    e = queue_load(k.queue, id);
    ok_named(e != NULL && e->delivery.done == 3 && e->delivery.due_ms == due + 1 &&
                 e->delivery.attempts == 6,
             "a load writes first what is pending");
    failure = a_failure(3);
    queue_settle(k.queue, e, 3, &failure);
    queue_retire(k.queue, &e);
    is_number(count_all(home), 0, "retired from S5: nothing is left");
    wait_ms(&k, 150);
    is_number(count_all(home), 0, "and nothing comes back");
    kit_close(&k);
}

/* Two messages that are settled in the turn whose end writes the marks of a third. */
struct journaled {
    struct kit k;
    const char *home;
    struct envelope *brief, *lasting;
    struct loop_task task;
    char *seen; /* where brief was when it was retired */
};

static void
settle_young(void *context)
{
    struct journaled *y = context;
    queue_settle(y->k.queue, y->brief, 0, NULL);
    queue_settle(y->k.queue, y->lasting, 0, NULL);
}

static void
retire_young(void *context)
{
    struct journaled *y = context;
    if (y->brief == NULL || !y->brief->recipients[0].done)
        return;
    y->seen = strdup(queue_home_where(y->home, y->brief->id));
    queue_retire(y->k.queue, &y->brief);
}

static void
test_young_marks(const char *home)
{
    struct journaled y = {.home = home};
    queue_kit_open(&y.k, home);
    struct envelope *old =
        queue_kit_accept(&y.k, kit_envelope("s@x", four), TEXT("body\r\n"));
    y.brief = queue_kit_accept(&y.k, kit_envelope("s@x", one), TEXT("body\r\n"));
    y.lasting = queue_kit_accept(&y.k, kit_envelope("s@x", four), TEXT("body\r\n"));
    loop_at_end(y.k.loop, LOOP_ANSWER_MANAGER, retire_young, &y);
    queue_settle(y.k.queue, old, 0, NULL);
    clock_pass(110);
    loop_post(y.k.loop, &y.task, settle_young, &y);
    kit_turns(&y.k, 1);
    is_string(queue_home_where(home, old->id), "mIlr",
              "marks that are old enough are written");
    ok_named(y.seen != NULL && strcmp(y.seen, "mit") == 0,
             "what is settled and retired in that turn costs no write");
    is_string(queue_home_where(home, y.lasting->id), "mit",
              "nor is its neighbour written yet");
    wait_ms(&y.k, 150);
    is_string(queue_home_where(home, y.lasting->id), "mIlr", "but 100 ms later it is");
    queue_retire(y.k.queue, &old);
    queue_retire(y.k.queue, &y.lasting);
    is_number(count_all(home), 0, "nothing is left");
    free(y.seen);
    kit_close(&y.k);
}

static void
test_many_marks(const char *home)
{
    char address[40];
    FIXTURE(kit, k, queue_kit_open, kit_close, home);
    struct envelope *e = envelope_new();
    for (unsigned i = 0; i < 100; i++) {
        snprintf(address, sizeof(address), "u%u@example.org", i);
        if (!envelope_add(e, text_from(address), 0, TEXT("")))
            abort();
    }
    e = queue_kit_accept(&k, e, TEXT("x"));
    struct id id = e->id;
    for (unsigned i = 0; i < 64; i++) {
        is_string(i % 16 == 0 ? queue_home_where(home, id) : "mit", "mit", "not yet");
        queue_settle(k.queue, e, i, NULL);
    }
    kit_turns(&k, 1);
    is_string(queue_home_where(home, id), "mIlr", "64 marks are written without delay");
    queue_defer(k.queue, &e, 1, 1);
    kit_turns(&k, 1);
    e = queue_load(k.queue, id);
    is_number(e->delivery.done, 64, "all of them");
    queue_retire(k.queue, &e);
}

static void
test_many_deferrals(const char *home)
{
    struct kit k;
    enum { MANY = 150 };
    queue_kit_open(&k, home);
    for (unsigned i = 0; i < MANY; i++) {
        struct envelope *e = queue_kit_accept(&k, kit_envelope("", one), TEXT("x"));
        queue_defer(k.queue, &e, 1000 + i, i);
    }
    for (unsigned i = 0; i < 10; i++)
        kit_turns(&k, 1);
    is_number(count_files(home, "info"), MANY, "deferrals are all written");
    is_number(count_files(home, "todo"), 0, "and have left todo/");
    kit_close(&k);
    queue_kit_open(&k, home);
    kit_turns(&k, 2);
    is_number(k.found_count, MANY, "all are found");
    bool ordered = true;
    for (size_t i = 1; i < k.found_count; i++)
        ordered &= id_compare(k.found[i - 1].id, k.found[i].id) < 0;
    ok_named(ordered, "oldest first");
    for (size_t i = 0; i < k.found_count; i++)
        queue_remove(k.queue, k.found[i].id);
    is_number(count_all(home), 0, "removed");
    kit_close(&k);
}

/* --- Injectors ------------------------------------------------------------------- */

/* Commits a message of this size. */
static void
gather(struct kit *k, size_t size)
{
    struct outcome refusal;
    struct queue_draft *d = queue_begin(k->queue, 0, &refusal);
    struct envelope *e = kit_envelope("s@x", one);
    char block[1000] = {0};
    for (size_t left = size; left > 0; left -= left < 1000 ? left : 1000)
        (void)!queue_write(d, text_of(block, left < 1000 ? left : 1000));
    queue_name(d, e);
    queue_commit(&d, &e, kit_stored, k);
}

/* The result of the last kit_stored() is freed. */
static void
test_together(const char *home)
{
    struct kit k, injector;
    is_number(kit_open_injector(&injector, home), 0, "an injector opens");
    queue_commit_begin(injector.queue);
    for (size_t size = 1; size <= 3; size++)
        gather(&injector, size * 100000);
    is_number(injector.answers, 0, "no answer comes before all are durable");
    queue_kit_open(&k, home);
    wait_ms(&k, 150);
    is_number(k.found_count, 0, "none is a message");
    queue_commit_end(injector.queue);
    is_number(injector.answers, 3, "then all are");
    wait_ms(&k, 150);
    is_number(k.found_count, 3, "and the daemon is told of each");
    for (unsigned i = 0; i < k.found_count; i++) {
        struct envelope *e = queue_load(k.queue, k.found[i].id);
        if (e != NULL)
            queue_retire(k.queue, &e);
    }
    is_number(count_all(home), 0, "delivered");
    queue_commit_begin(injector.queue);
    gather(&injector, 100);
    gather(&injector, 2000000);
    gather(&injector, 100);
    queue_commit_end(injector.queue);
    is_number(injector.answers, 6, "when one is too large");
    ok(injector.refused && injector.refusal.code == 552);
    is_number(count_all(home), 0, "none of them stays");
    gather(&injector, 100);
    ok_named(injector.answers == 7 && !injector.refused, "the next one is alone again");
    wait_ms(&k, 150);
    is_number(k.found_count, 4, "and found");
    struct envelope *e = queue_load(k.queue, k.found[3].id);
    ok(e != NULL);
    if (e != NULL)
        queue_retire(k.queue, &e);
    kit_close(&injector);
    kit_close(&k);
}

static void
test_injector(const char *home)
{
    struct kit k, injector;
    is_number(kit_open_injector(&injector, home), 0, "an injector opens");
    ok_named(!queue_has_daemon(injector.queue), "no daemon is there");
    struct envelope *e =
        queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("one\r\n"));
    ok_named(injector.answers == 1 && e != NULL, "stored before commit returns");
    struct id first = e->id;
    is_string(queue_home_where(home, first), "mit", "S4");
    envelope_free(&e);

    queue_kit_open(&k, home);
    ok_named(queue_has_daemon(injector.queue), "a daemon is there");
    ok(queue_has_daemon(k.queue));
    wait_ms(&k, 150);
    is_number(k.found_count, 1, "a start finds what was injected before");
    ok(kit_entry(&k, first) != NULL);

    e = queue_kit_accept(&injector, kit_envelope("s@x", four), TEXT("two\r\n"));
    struct id second = e->id;
    envelope_free(&e);
    wait_ms(&k, 20);
    is_number(k.found_count, 2, "the trigger is answered at once");
    ok(kit_entry(&k, second) != NULL);
    e = queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("three\r\n"));
    envelope_free(&e);
    e = queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("four\r\n"));
    envelope_free(&e);
    wait_ms(&k, 250);
    is_number(k.found_count, 4, "each is reported once");
    for (unsigned i = 0; i < 4; i++) {
        e = queue_load(k.queue, k.found[i].id);
        ok(e != NULL && e->content_size > 0);
        if (e != NULL)
            queue_retire(k.queue, &e);
    }
    is_number(count_all(home), 0, "delivered");
    struct outcome refusal;
    struct queue_draft *d = queue_begin(injector.queue, 0, &refusal);
    char block[1000] = {0};
    bool taken = true;
    for (unsigned i = 0; i < 1001 && taken; i++)
        taken = queue_write(d, text_of(block, sizeof(block)));
    ok_named(!taken, "above message_size_limit nothing is taken");
    e = kit_envelope("", one);
    queue_name(d, e);
    queue_commit(&d, &e, kit_stored, &injector);
    ok(injector.refused && injector.refusal.code == 552);
    is_number(count_all(home), 0, "and nothing stays");
    kit_close(&injector);
    kit_close(&k);
}

/* --- Operators ------------------------------------------------------------------- */

struct each {
    struct id ids[20];
    enum queue_place places[20];
    size_t count, stop_at;
};

static bool
note_each(void *context, struct id id, enum queue_place place)
{
    struct each *all = context;
    all->ids[all->count] = id;
    all->places[all->count++] = place;
    return all->count != all->stop_at;
}

static void
test_operators(const char *home)
{
    struct kit k;
    struct id ids[4];
    queue_kit_open(&k, home);
    for (unsigned i = 0; i < 4; i++) {
        struct envelope *e =
            queue_kit_accept(&k, kit_envelope("s@x", one), TEXT("x\r\n"));
        ids[i] = e->id;
        if (i == 1) {
            queue_defer(k.queue, &e, 1, 1);
            kit_turns(&k, 1);
        } else if (i == 2) {
            is_number(queue_hold(k.queue, e, "by order", true), 0, "held");
            is_number(queue_hold(k.queue, e, "by order, again", true), 0,
                      "twice is no harm");
        }
        envelope_free(&e);
        wait_ms(&k, 2);
    }
    queue_quarantine(k.queue, ids[3], "of no use");
    is_string(queue_home_where(home, ids[3]), "", "quarantined: out of the way");
    is_number(count_files(home, "corrupt"), 4, "mess, intd, todo and a note");
    ok_named(queue_load(k.queue, ids[3]) == NULL, "and cannot be loaded");
    is_number(queue_health(k.queue).quarantined, 1, "counted");
    ok(kit_logged(&k, "of no use"));
    struct each all = {.count = 0};
    is_number(queue_each(k.queue, note_each, &all), 0, "each");
    is_number(all.count, 4, "all four, once");
    for (unsigned i = 0; i < 4; i++)
        ok(all.count == 4 && id_compare(all.ids[i], ids[i]) == 0);
    ok(all.places[0] == QUEUE_MAILDROP && all.places[1] == QUEUE_DEFERRED);
    ok(all.places[2] == QUEUE_HOLD && all.places[3] == QUEUE_CORRUPT);
    all = (struct each){.stop_at = 2};
    queue_each(k.queue, note_each, &all);
    is_number(all.count, 2, "it stops when told");
    struct envelope *e = queue_load(k.queue, ids[2]);
    ok_named(e != NULL && e->delivery.held, "held mail can be looked at");
    envelope_free(&e);
    kit_close(&k);

    queue_kit_open(&k, home);
    kit_turns(&k, 3);
    is_number(k.found_count, 2, "held and quarantined mail is not reported");
    for (unsigned i = 0; i < 4; i++)
        ok_named(queue_remove(k.queue, ids[i]), "removed wherever it is");
    ok_named(!queue_remove(k.queue, ids[0]), "a second time there is none");
    is_number(count_all(home), 0, "nothing is left");
    ok(queue_load(k.queue, ids[0]) == NULL);
    is_number(queue_health(k.queue).quarantined, 0, "gone is not damaged");
    kit_close(&k);
}

static void
test_damage(const char *home)
{
    char path[200];
    FIXTURE(kit, k, queue_kit_open, kit_close, home);
    struct envelope *e =
        queue_kit_accept(&k, kit_envelope("s@x", one), TEXT("good content"));
    queue_home_path_of(home, "mess", e->id, path);
    FILE *file = fopen(path, "r+");
    fputs("bad ", file);
    fclose(file);
    struct kit onlooker;
    is_number(kit_open_injector(&onlooker, home), 0, "an operator looks on");
    ok_named(queue_load(onlooker.queue, e->id) == NULL, "damage is not shown");
    is_number(count_files(home, "corrupt"), 0, "nor touched: it may be a removal");
    kit_close(&onlooker);
    ok_named(queue_load(k.queue, e->id) == NULL, "changed content is not delivered");
    is_number(count_files(home, "corrupt"), 4, "but quarantined");
    snprintf(path, sizeof(path), "%s/corrupt/", home);
    size_t length = strlen(path);
    id_format(e->id, path + length);
    strcat(path, ".note");
    char note[200] = "";
    file = fopen(path, "r");
    ok(file != NULL && fgets(note, sizeof(note), file) != NULL);
    fclose(file);
    ok_named(strstr(note, "content is damaged") != NULL, "with the reason");
    ok(kit_logged(&k, "quarantined"));
    queue_remove(k.queue, e->id);
    envelope_free(&e);

    e = queue_kit_accept(&k, kit_envelope("s@x", one), TEXT("x"));
    queue_home_path_of(home, "todo", e->id, path);
    unlink(path);
    if (symlink("/etc/passwd", path) != 0)
        abort();
    ok_named(queue_load(k.queue, e->id) == NULL, "a symbolic link is no envelope");
    queue_remove(k.queue, e->id);
    envelope_free(&e);
    is_number(count_all(home), 0, "removed");
}

int
main(void)
{
    char home[64];
    queue_home_make_home(home);
    clock_stop();
    tap_tests("");
    test_accept(home);
    test_group(home);
    test_draft(home);
    test_space(home);
    test_settle(home);
    test_young_marks(home);
    test_many_marks(home);
    test_many_deferrals(home);
    test_injector(home);
    test_together(home);
    test_operators(home);
    test_damage(home);
    remove_home(home);
    return done();
}
