/* Records of idempotency keys: their limits, their age, the file with its damages, and the journal. */
/* link: t/sim/clock.c */
#include "admin/post/post_records.h"

#include "base/disk/disk.h"
#include "t/support/queue_home.h"

#define FILE_NAME "lock/posted"

static struct kit k;
static char home[64];

static void
open_queue(void)
{
    struct queue_settings settings = {.spool = home, .journal_size = 1024 * 1024, .journal_message_max = 65536};
    is_number(kit_open_with(&k, &settings), 0, "a queue with a journal");
}

static void
key_of(unsigned number, unsigned char key[POST_DIGEST_SIZE])
{
    char text[20];
    snprintf(text, sizeof(text), "%u", number);
    post_records_digest("app", text_from(text), key);
}

static struct id
number_of(unsigned number)
{
    return (struct id){.time_ms = (uint64_t)loop_now_ms(k.loop), .hash = number};
}

/* Its body is its key. */
static void
keep(struct post_records *r, const char *name, unsigned number)
{
    unsigned char key[POST_DIGEST_SIZE];
    char mark[POST_MARK_MAX];
    key_of(number, key);
    post_records_add(r, name, key, key, mark);
    post_records_keep(r, key, number_of(number));
}

/* The number, by its message; 0: none. */
static unsigned
known(struct post_records *r, unsigned number)
{
    unsigned char key[POST_DIGEST_SIZE];
    key_of(number, key);
    const struct post_record *found = post_records_find(r, key);
    return found != NULL && digest_same(found->body, key, POST_DIGEST_SIZE) && !found->pending ? (unsigned)found->id.hash : 0;
}

static struct post_records *
records(void)
{
    return post_records_new(k.loop, k.log, k.queue, FILE_NAME);
}

static int64_t
size_of_file(void)
{
    struct disk_info info;
    return disk_inspect(queue_disk(k.queue), FILE_NAME, &info) == 0 ? info.size : -1;
}

TEST(records_of_a_file)
{
    queue_home_make_home(home);
    clock_stop();
    open_queue();
    struct post_records *r = records();
    is_number(size_of_file(), -1, "no file without a record");
    for (unsigned i = 1; i <= 3; i++)
        keep(r, "app", i);
    unsigned char key[POST_DIGEST_SIZE];
    char mark[POST_MARK_MAX];
    key_of(4, key);
    post_records_add(r, "app", key, key, mark);
    ok_named(post_records_find(r, key) != NULL && post_records_find(r, key)->pending, "a message that is being stored");
    is_number(strlen(mark), 3 + 2 * 33, "its mark");
    post_records_drop(r, key);
    ok_named(post_records_find(r, key) == NULL, "is refused");
    post_records_free(&r);
    kit_turns(&k, 3);
    int file = disk_open_file(queue_disk(k.queue), FILE_NAME, true);
    (void)!disk_write_at(queue_disk(k.queue), file, size_of_file(), TEXT("torn 12\n1 x y\n\n99 "));
    disk_close_file(queue_disk(k.queue), file);
    r = records();
    for (unsigned i = 1; i <= 3; i++)
        is_number(known(r, i), i, "is known after a start");
    is_number(known(r, 4), 0, "no other is");
    clock_step(23 * 3600 * 1000);
    kit_turns(&k, 1);
    keep(r, "app", 5);
    is_number(known(r, 1), 1, "for a day");
    clock_step(2 * 3600 * 1000);
    kit_turns(&k, 1);
    is_number(known(r, 1), 0, "no longer");
    is_number(known(r, 5), 5, "each by itself");
    post_records_free(&r);
    r = records();
    is_number(known(r, 1), 0, "nor from the file");
    is_number(known(r, 5), 5, "the other is");
    post_records_free(&r);
    kit_close(&k);
    remove_home(home);
}

TEST(limits)
{
    queue_home_make_home(home);
    open_queue();
    struct post_records *r = records();
    unsigned number = 0;
    while (post_records_have_room(r, "app"))
        keep(r, "app", ++number);
    is_number(number, POST_RECORDS_OF_KEY, "of one key");
    ok_named(post_records_have_room(r, "other"), "another has room");
    int64_t full = size_of_file();
    clock_step(25 * 3600 * 1000);
    kit_turns(&k, 1);
    /* Each comes while the sync of one before is under way. */
    for (unsigned i = 0; i < 100; i++)
        keep(r, "app", ++number);
    for (int i = 0; i < 5; i++) {
        disk_sync_wait(queue_disk(k.queue));
        kit_turns(&k, 1);
    }
    ok_named(size_of_file() < full / 2, "old lines go while it runs");
    keep(r, "app", ++number);
    is_number(known(r, number), number, "the newest is known");
    post_records_free(&r);
    r = records();
    unsigned lost = 0;
    for (unsigned i = 0; i <= 100; i++)
        lost += known(r, number - i) != number - i;
    is_number(lost, 0, "and all of that day are, after a start");
    is_number(known(r, number - 101), 0, "none before");
    post_records_free(&r);
    kit_close(&k);
    remove_home(home);
}

TEST(a_clock_that_was_ahead)
{
    queue_home_make_home(home);
    open_queue();
    clock_step(INT64_C(9000) * 3600 * 1000);
    kit_turns(&k, 1);
    struct post_records *r = records();
    keep(r, "app", 1);
    post_records_free(&r);
    clock_step(INT64_C(-9000) * 3600 * 1000);
    kit_turns(&k, 1);
    r = records();
    is_number(known(r, 1), 1, "its record is known");
    clock_step(25 * 3600 * 1000);
    kit_turns(&k, 1);
    is_number(known(r, 1), 0, "for a day");
    post_records_free(&r);
    kit_close(&k);
    remove_home(home);
}

/* The file was not written before the cut. */
TEST(the_journal_knows)
{
    static const char *const recipients[] = {"u@example.org", NULL};
    unsigned char key[POST_DIGEST_SIZE];
    char mark[POST_MARK_MAX];
    queue_home_make_home(home);
    open_queue();
    struct post_records *r = records();
    key_of(1, key);
    post_records_add(r, "app", key, key, mark);
    struct envelope *e = kit_envelope("a@b.example", recipients);
    e->posted = envelope_text(e, text_from(mark));
    e = queue_kit_accept(&k, e, TEXT("x\r\n"));
    ok(e != NULL);
    struct id id = e->id;
    queue_retire(k.queue, &e);
    kit_turns(&k, 100);
    post_records_drop(r, key);
    post_records_free(&r);
    kit_close(&k);
    open_queue();
    r = records();
    const struct post_record *found = post_records_find(r, key);
    ok_named(found != NULL && id_compare(found->id, id) == 0, "a message that has been delivered");
    ok_named(size_of_file() > 0, "and the file knows it from now on");
    post_records_free(&r);
    kit_close(&k);
    remove_home(home);
}

/* A mark is in the journal, whatever the size of the message: in todo/ nobody would look for it. */
TEST(a_small_journal)
{
    enum { CONTENT = 60000, MANY = 8000, FEWER = 4500 };
    static char content[CONTENT], names[MANY][50];
    static const char *to[MANY + 1];
    unsigned char key[POST_DIGEST_SIZE];
    char mark[POST_MARK_MAX];
    queue_home_make_home(home);
    open_queue();
    memset(content, 'x', sizeof(content));
    memcpy(content + CONTENT - 2, "\r\n", 2);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "somebody-%020u@example.org", i);
        to[i] = names[i];
    }
    for (unsigned row = 0; row < 2; row++) {
        struct post_records *r = records();
        key_of(row, key);
        post_records_add(r, "app", key, key, mark);
        to[FEWER] = row == 0 ? NULL : names[FEWER];
        struct envelope *e = kit_envelope("a@b.example", to);
        e->posted = envelope_text(e, text_from(mark));
        ok(kit_commit(&k, e, row == 0 ? text_of(content, CONTENT) : TEXT("x\r\n")));
        kit_turns(&k, 200);
        bool stored = k.stored != NULL;
        ok_named(stored == (row == 0), row == 0 ? "its content goes to a file" : "an envelope of more than a record is refused");
        if (stored)
            queue_retire(k.queue, &k.stored);
        kit_turns(&k, 10);
        post_records_drop(r, key);
        post_records_free(&r);
        kit_close(&k);
        open_queue();
        r = records();
        ok_named((post_records_find(r, key) != NULL) == stored, "and its mark is known after a start");
        post_records_free(&r);
    }
    kit_close(&k);
    remove_home(home);
}
