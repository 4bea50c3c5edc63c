/* The spools of earlier builds (t/spools/): each opens, its messages have the state that was
 * written, take further results, and end. A change of the form adds a spool of the one before. */
/* link: t/sim/clock.c */
#include "queue/queue.h"
#include "queue/queue_operator.h"

#include "t/support/queue_home.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 65536 };

static struct kit kit;
static char home[64];

static const struct message {
    const char *sender;
    const char *marks; /* of each recipient: T open, D delivered, F failed */
    bool held;
    unsigned attempts;
} messages[] = {
    {"todo@s.test", "TT", false, 0},     {"files@s.test", "DTTFT", false, 1},
    {"inplace@s.test", "TDTFD", false, 7}, {"held@s.test", "TT", true, 0},
    {"journal@s.test", "DTTFT", false, 0}, {"large@s.test", "TD", false, 0},
    {"new@s.test", "TT", false, 0},
};
enum { MESSAGES = sizeof(messages) / sizeof(*messages) };

static const char *const spools[] = {
    /* Recipients of LMTP that are open are in remote/. */
    "form-1-until-2026-11-29",
};

static void
unpack(const char *spool)
{
    char command[300];
    queue_home_make_home(home);
    snprintf(command, sizeof(command), "tar xzf t/spools/%s.tar.gz --no-same-owner -C %s", spool,
             home);
    if (system(command) != 0)
        abort();
}

static void
start(int64_t journal_size)
{
    struct queue_settings settings = {.spool = home,
                                      .slices = 1,
                                      .message_size_limit = 1000000,
                                      .journal_size = journal_size,
                                      .journal_segment = SEGMENT,
                                      .journal_message_max = 4096};
    if (kit_open_with(&kit, &settings) != 0)
        ok_named(false, kit.error);
    for (int i = 0; i < 1000 && !queue_has_found_all(kit.queue); i++)
        wait_ms(&kit, 10);
}

/* Held ones are not reported. */
static struct envelope *
load(unsigned i)
{
    char path[200];
    struct id id;
    for (size_t f = 0; f < kit.found_count; f++) {
        struct envelope *e = queue_load(kit.queue, kit.found[f].id);
        if (e != NULL && text_equal(e->sender, text_from(messages[i].sender))) {
            is_number(kit.found[f].attempts, messages[i].attempts, "attempts");
            return e;
        }
        envelope_free(&e);
    }
    snprintf(path, sizeof(path), "%s/hold", home);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        if (messages[i].held && id_parse(text_from(entry->d_name), &id)) {
            closedir(directory);
            return queue_load(kit.queue, id);
        }
    if (directory != NULL)
        closedir(directory);
    return NULL;
}

static void
check(const struct message *m, const struct envelope *e)
{
    char marks[10] = "";
    unsigned failures = 0;
    for (unsigned r = 0; r < e->count && r < sizeof(marks) - 1; r++)
        marks[r] = e->recipients[r].done ? 'D' : 'T';
    for (unsigned f = 0; f < e->delivery.failure_count; f++) {
        const struct failure *failure = &e->delivery.failures[f];
        ok(strcmp(failure->outcome.text, "no such user") == 0 && failure->outcome.code == 550);
        marks[failure->recipient] = 'F';
        failures++;
    }
    is_string(marks, m->marks, m->sender);
    ok(e->delivery.held == m->held && failures == (strchr(m->marks, 'F') != NULL));
}

/* One more result each, and the rest after another start. */
static void
test_spool(const char *spool, int64_t journal_size)
{
    unpack(spool);
    start(journal_size);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct envelope *e = load(i);
        ok_named(e != NULL, messages[i].sender);
        check(&messages[i], e);
        unsigned first = (unsigned)(strchr(messages[i].marks, 'T') - messages[i].marks);
        queue_settle(kit.queue, e, first, NULL);
        queue_defer(kit.queue, &e, loop_now_ms(kit.loop), messages[i].attempts);
    }
    wait_ms(&kit, 300);
    kit_close(&kit);
    start(journal_size);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct envelope *e = load(i);
        unsigned before = 1;
        for (const char *mark = messages[i].marks; *mark != '\0'; mark++)
            before += *mark != 'T';
        ok_named(e != NULL && e->delivery.done == before, "one more is done");
        for (unsigned r = 0; r < e->count; r++)
            if (!e->recipients[r].done)
                queue_settle(kit.queue, e, r, NULL);
        queue_retire(kit.queue, &e);
    }
    wait_ms(&kit, 300);
    kit_close(&kit);
    is_number(count_all(home), 0, "nothing is left");
    remove_home(home);
}

int
main(void)
{
    clock_stop();
    for (size_t i = 0; i < sizeof(spools) / sizeof(*spools); i++) {
        test_spool(spools[i], 4 * SEGMENT);
        test_spool(spools[i], 0); /* the journal is adopted */
    }
    return done();
}
