/* queue/suppression/suppression.c: which replies suppress an address, for whom and how long; and its file
 * over restarts, kills, power cuts and a disk that fails. */
/* link: t/sim/loop.c t/sim/disk.c t/sim/disk_world.c t/sim/disk_copy.c t/sim/disk_cut.c */
#include "queue/suppression/suppression.h"
#include "queue/spool/appended_file.h"
#include "queue/suppression/suppression_record.h"
#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>

#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)

struct fixture {
    struct loop *loop;
    struct log *log;
    struct buffer lines; /* of the log */
    struct disk *disk;
    struct suppression *s;
    struct suppression_settings settings;
    struct suppression_entry entry;
};

static void
fixture_start(struct fixture *f)
{
    if (disk_open(&f->disk, "/spool", true) != 0 || disk_make_directory(f->disk, "lock", 0700) != 0)
        abort();
    (void)disk_sync_on(f->disk, f->loop);
    f->log = log_new(f->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(f->log, &f->lines);
    f->s = suppression_new(f->loop, f->log, f->disk, "lock/suppressed", &f->settings);
}

static void
fixture_begin(struct fixture *f, const struct suppression_settings *settings)
{
    sim_disk_reset();
    *f = (struct fixture){.loop = sim_loop_new(1), .settings = *settings};
    buffer_init(&f->lines, 1 << 20);
    fixture_start(f);
}

static void
fixture_stop(struct fixture *f)
{
    suppression_free(&f->s);
    disk_close(&f->disk);
    log_free(&f->log);
}

static void
fixture_end(struct fixture *f)
{
    fixture_stop(f);
    loop_free(&f->loop);
    buffer_free(&f->lines);
}

static bool
says(const struct fixture *f, const char *words)
{
    return f->lines.length > 0 && memmem(f->lines.at, f->lines.length, words, strlen(words)) != NULL;
}

/* A process that ends without a word: its memory is gone. */
static void
fixture_killed(struct fixture *f, void (*how)(void))
{
    sim_disk_die_at(sim_disk_calls() + 1);
    fixture_stop(f);
    how();
    loop_free(&f->loop);
    f->loop = sim_loop_new(1);
    fixture_start(f);
}

static const struct suppression_settings usual = {
    .is_on = true, .hard_ms = 90 * DAY_MS, .limit = 100000};

static struct outcome
reply(const char *words, const char *answered)
{
    int code = atoi(words);
    struct outcome o = outcome_make(code / 100 == 5   ? VERDICT_FAILED
                                    : code / 100 == 2 ? VERDICT_DELIVERED
                                                      : VERDICT_DEFERRED,
                                    code / 100 == 2 ? BLAME_NONE : BLAME_MESSAGE, code, "5.0.0", "%s", words);
    if (code / 100 != 2)
        outcome_say_reply(&o, "mx.b.example[192.0.2.1]", text_from(words), answered);
    text_copy(o.remote, sizeof(o.remote), TEXT("mx.b.example[192.0.2.1]:25"));
    return o;
}

static bool
hear(struct fixture *f, const char *sender, const char *recipient, const char *words)
{
    struct outcome o = reply(words, "in reply to RCPT TO command");
    return suppression_hear(f->s, text_from(sender), text_from(recipient), true, &o, &f->entry);
}

static bool
refuses(const struct fixture *f, const char *sender, const char *recipient)
{
    struct outcome o;
    return suppression_refuses(f->s, text_from(sender), text_from(recipient), &o);
}

static const struct {
    const char *words;
    enum suppression_class rcpt, data;
} judged[] = {
    {"550 5.1.1 User unknown", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 5.1.1 <a@b.example>: Recipient address rejected: User unknown in virtual mailbox table", SUPPRESSION_HARD,
     SUPPRESSION_DOUBTFUL},
    {"550 5.1.6 moved", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 5.2.1 disabled", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 No such user here", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"554 delivery error: user doesn't have a yahoo.com account", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 sorry, no mailbox here by that name (#5.1.1)", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 5.1.2 no such domain", SUPPRESSION_DOUBTFUL, SUPPRESSION_NONE},
    {"550 rejected", SUPPRESSION_DOUBTFUL, SUPPRESSION_NONE},
    {"550 5.2.0 rejected", SUPPRESSION_DOUBTFUL, SUPPRESSION_NONE},
    {"550 5.1.0 rejected", SUPPRESSION_DOUBTFUL, SUPPRESSION_NONE},
    {"554 rejected", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.7.1 rejected", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.5.0 rejected", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.8 bad sender", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"450 4.1.1 User unknown, perhaps", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"552 5.2.2 mailbox full", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.7.26 DMARC", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 blocked using zen.spamhaus.org", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 DMARC policy of your domain", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 relay access denied", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.2.1 Your account has been disabled", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 Too many invalid recipients", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 too many messages", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 rate limited", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 policy violation", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 service unavailable; client host blocked", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.2.1 The user you are trying to contact is receiving mail too quickly", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 Sender mailbox does not exist", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.8 sender domain does not exist", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 Return path does not exist", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 MAIL FROM address does not exist", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 Callback setup failed while verifying <me@a.example>: no such user", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 HELO host does not exist", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 unknown user or password incorrect", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the "
     "recipient's email address for typos",
     SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 4.4.7 QUEUE.Expired; message expired", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"550 5.2.1 This mailbox has been blocked due to inactivity", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 5.7.1 Policy rejection on the target address: no such user", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"550 Requested action not taken: mailbox unavailable", SUPPRESSION_HARD, SUPPRESSION_DOUBTFUL},
    {"535 5.7.8 authentication failed", SUPPRESSION_NONE, SUPPRESSION_NONE},
    {"250 2.1.5 ok", SUPPRESSION_NONE, SUPPRESSION_NONE},
};

TEST(judge)
{
    for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
        struct outcome rcpt = reply(judged[i].words, "in reply to RCPT TO command");
        struct outcome data = reply(judged[i].words, "in reply to end of DATA command");
        is_number(suppression_judge(&rcpt), judged[i].rcpt, judged[i].words);
        is_number(suppression_judge(&data), judged[i].data, "the same as a reply to the content");
    }
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "unknown user: our own words");
    is_number(suppression_judge(&o), SUPPRESSION_NONE, "no receiver has said it");
}

TEST(hard)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    struct outcome o;
    ok_named(!refuses(&f, "me@a.example", "dead@b.example"), "nothing is suppressed at first");
    ok(hear(&f, "me@a.example", "Dead@B.example", "550 5.1.1 <Dead@B.example> User unknown"));
    is_text(f.entry.reason, TEXT("550 5.1.1 User unknown"), "the reason has no address");
    ok(suppression_refuses(f.s, TEXT("x@c.example"), TEXT("dead@b.example"), &o));
    is_number(o.code, 550, "550");
    is_string(o.enhanced, "5.1.1", "5.1.1");
    is_string(o.text,
              "the address is suppressed since 2025-06-15 after a hard bounce (550 5.1.1 User unknown): "
              "`petrel suppress rm ADDRESS` lifts it",
              "says since when, why, and how to lift it");
    ok_named(refuses(&f, "", "DEAD@b.EXAMPLE"), "for all senders, in any case");
    ok_named(!refuses(&f, "me@a.example", "deadly@b.example"), "and nobody else");
    ok_named(!hear(&f, "me@a.example", "dead@b.example", "550 5.1.1 User unknown"), "it is told once");
    is_number(suppression_count(f.s).added, 1, "and counted once");
    sim_loop_advance(f.loop, 90 * DAY_MS - 1000);
    ok_named(refuses(&f, "me@a.example", "dead@b.example"), "it counts for 90 days");
    sim_loop_advance(f.loop, 2000);
    ok_named(!refuses(&f, "me@a.example", "dead@b.example"), "and no longer");
}

TEST(postmaster)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    ok(!hear(&f, "me@a.example", "Postmaster@b.example", "550 5.1.1 User unknown"));
    ok(!refuses(&f, "me@a.example", "postmaster@b.example"));
    struct suppression_entry e = {.address = TEXT("postmaster@b.example"), .class = SUPPRESSION_MANUAL};
    ok(suppression_add(f.s, &e) != NULL);
}

TEST(doubtful)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    ok(!hear(&f, "me@a.example", "x@b.example", "550 rejected"));
    ok(!hear(&f, "me@a.example", "x@b.example", "550 rejected"));
    ok_named(!refuses(&f, "me@a.example", "x@b.example"), "twice is not enough");
    ok(!hear(&f, "me@a.example", "x@b.example", "450 4.2.0 later"));
    ok(!hear(&f, "me@a.example", "x@b.example", "250 ok"));
    is_number(suppression_count(f.s).entries, 0, "a success ends the row");
    ok(!hear(&f, "me@a.example", "x@b.example", "550 rejected"));
    ok(!hear(&f, "me@a.example", "x@b.example", "550 rejected"));
    ok(hear(&f, "me@a.example", "x@b.example", "550 rejected"));
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "three in a row suppress");
    ok(hear(&f, "me@a.example", "y@b.example", "550 5.1.1 User unknown"));
    ok(!hear(&f, "me@a.example", "y@b.example", "250 ok"));
    ok_named(refuses(&f, "me@a.example", "y@b.example"), "a success that was under way lifts no hard one");
}

TEST(lists)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    struct suppression_record r;
    is_string(suppression_import_line(TEXT("x@b.example,550 no,2025-06-01,doubtful"), 0, &r), "", "a line of a list");
    ok(suppression_add(f.s, &r.entry) == NULL);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "a doubtful one of a list is suppressed");
    ok(suppression_note(f.s, TEXT(""), TEXT("x@b.example"), SUPPRESSION_COMPLAINT, TEXT("abuse"), &f.entry));
    is_string(suppression_import_line(TEXT("x@b.example,550 no,2025-06-01,hard"), 0, &r), "", "an older list");
    ok(suppression_add(f.s, &r.entry) == NULL);
    sim_loop_advance(f.loop, 4000 * DAY_MS);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "shortens no complaint");
}

TEST(complaint_stays)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    ok(hear(&f, "me@a.example", "x@b.example", "550 5.1.1 User unknown"));
    ok_named(suppression_note(f.s, TEXT("me@a.example"), TEXT("x@b.example"), SUPPRESSION_COMPLAINT, TEXT("abuse"),
                              &f.entry),
             "a complaint outweighs a bounce");
    ok(!hear(&f, "me@a.example", "x@b.example", "550 5.1.1 User unknown"));
    sim_loop_advance(f.loop, 4000 * DAY_MS);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "and never ends");
    is_number(suppression_remove(f.s, TEXT("x@b.example")), 1, "until it is removed");
    ok(!refuses(&f, "me@a.example", "x@b.example"));
}

TEST(by_domain)
{
    struct suppression_settings settings = usual;
    settings.by_domain = true;
    FIXTURE(fixture, f, fixture_begin, fixture_end, &settings);
    ok(hear(&f, "me@A.example", "x@b.example", "550 5.1.1 User unknown"));
    ok_named(refuses(&f, "you@a.example", "x@b.example"), "for the sender's domain");
    ok_named(!refuses(&f, "you@c.example", "x@b.example"), "alone");
    ok_named(!hear(&f, "", "y@b.example", "550 5.1.1 User unknown"), "a notification has none");
    for (int i = 0; i < SUPPRESSION_SCOPES_MAX; i++) {
        char sender[40];
        snprintf(sender, sizeof(sender), "me@s%d.example", i);
        (void)!hear(&f, sender, "x@b.example", "550 5.1.1 User unknown");
    }
    is_number(suppression_count(f.s).entries, SUPPRESSION_SCOPES_MAX + 1, "no long row of one address");
    ok_named(refuses(&f, "you@other.example", "x@b.example"), "then it is for all");
    is_number(suppression_remove(f.s, TEXT("x@b.example")), SUPPRESSION_SCOPES_MAX + 1, "all of them are removed");
}

TEST(limit)
{
    struct suppression_settings settings = usual;
    settings.limit = 3;
    FIXTURE(fixture, f, fixture_begin, fixture_end, &settings);
    ok(hear(&f, "me@a.example", "a@b.example", "550 5.1.1 x"));
    ok(hear(&f, "me@a.example", "b@b.example", "550 5.1.1 x"));
    ok(hear(&f, "me@a.example", "c@b.example", "550 5.1.1 x"));
    ok_named(!hear(&f, "me@a.example", "d@b.example", "550 5.1.1 x"), "a full list takes no more");
    ok(suppression_count(f.s).is_full);
    sim_loop_advance(f.loop, 91 * DAY_MS);
    ok_named(hear(&f, "me@a.example", "d@b.example", "550 5.1.1 x"), "until some are over");
}

/* --- The file ---------------------------------------------------------------------- */

static bool
has_file(const char *path)
{
    struct disk *disk;
    struct disk_info info;
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    bool has = disk_inspect(disk, path, &info) == 0;
    disk_close(&disk);
    return has;
}

TEST(restart)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    ok_named(!has_file("lock/suppressed"), "without an entry there is no file");
    ok(hear(&f, "me@a.example", "x@b.example", "550 5.1.1 User unknown"));
    fixture_stop(&f);
    fixture_start(&f);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "a restart forgets nothing");
    is_number(suppression_remove(f.s, TEXT("x@b.example")), 1, "nor a removal");
    fixture_stop(&f);
    fixture_start(&f);
    is_number(suppression_count(f.s).entries, 0, "it stays removed");
}

TEST(kill)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    ok(hear(&f, "me@a.example", "x@b.example", "550 5.1.1 User unknown"));
    loop_turn(f.loop, 0);
    fixture_killed(&f, sim_disk_restart);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "a kill forgets nothing of turns that have ended");
}

TEST(power_cut)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    ok(hear(&f, "me@a.example", "x@b.example", "550 5.1.1 User unknown"));
    sim_loop_advance(f.loop, SUPPRESSION_SYNC_MS + 100);
    ok(hear(&f, "me@a.example", "y@b.example", "550 5.1.1 User unknown"));
    loop_turn(f.loop, 0);
    fixture_killed(&f, sim_disk_power_cut);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "a power cut forgets nothing that is older than a second");
    ok(hear(&f, "me@a.example", "z@b.example", "550 5.1.1 User unknown"));
    fixture_stop(&f);
    fixture_start(&f);
    ok_named(refuses(&f, "me@a.example", "z@b.example"), "the file goes on");
}

/* 3,000 changes of few addresses. */
TEST(written_anew)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    for (int i = 0; i < 3000; i++) {
        char address[40];
        snprintf(address, sizeof(address), "x%d@b.example", i % 50);
        struct text text = text_from(address);
        (void)!hear(&f, "me@a.example", address, "550 5.1.1 User unknown");
        if (i < 2990)
            (void)suppression_remove(f.s, text);
        loop_turn(f.loop, 0);
    }
    sim_loop_advance(f.loop, 5000);
    struct disk_info info;
    int file = disk_open_file(f.disk, "lock/suppressed", false);
    ok(disk_file_info(f.disk, file, &info) == 0 && info.size < 200 * 1000);
    disk_close_file(f.disk, file);
    ok_named(!has_file("lock/suppressed.new"), "nothing is left beside it");
    fixture_killed(&f, sim_disk_power_cut);
    is_number(suppression_count(f.s).entries, 10, "what is left is what counts");
    ok(refuses(&f, "me@a.example", "x40@b.example"));
}

static void
spoil(struct fixture *f, struct text bytes, int64_t at)
{
    int file = disk_open_file(f->disk, "lock/suppressed", true);
    struct disk_info info;
    if (disk_file_info(f->disk, file, &info) != 0 ||
        disk_write_at(f->disk, file, at < 0 ? info.size + at + 1 : at, bytes) != 0)
        abort();
    disk_close_file(f->disk, file);
}

static void
two_entries(struct fixture *f)
{
    ok(hear(f, "me@a.example", "x@b.example", "550 5.1.1 User unknown"));
    ok(hear(f, "me@a.example", "y@b.example", "550 5.1.1 User unknown"));
    suppression_free(&f->s);
}

static void
reopen(struct fixture *f)
{
    f->s = suppression_new(f->loop, f->log, f->disk, "lock/suppressed", &f->settings);
}

TEST(damage)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    two_entries(&f);
    spoil(&f, TEXT("0123abcd 17"), -1);
    reopen(&f);
    ok_named(refuses(&f, "me@a.example", "y@b.example"), "a torn line costs no other");
    ok(says(&f, "lock/suppressed: cut off its last line, which was not whole"));
    ok(hear(&f, "me@a.example", "z@b.example", "550 5.1.1 User unknown"));
    suppression_free(&f.s);
    reopen(&f);
    ok_named(refuses(&f, "me@a.example", "z@b.example"), "and none behind it");
    suppression_free(&f.s);
    spoil(&f, TEXT("?"), 30);
    reopen(&f);
    ok_named(!refuses(&f, "me@a.example", "x@b.example"), "a damaged line is passed over");
    ok(says(&f, "lock/suppressed: passed over 1 damaged lines"));
    ok_named(refuses(&f, "me@a.example", "y@b.example") && refuses(&f, "me@a.example", "z@b.example"),
             "the others count");
    suppression_free(&f.s);
    spoil(&f, TEXT("?"), 3);
    reopen(&f);
    is_number(suppression_count(f.s).entries, 0, "a file of others is not read");
    ok_named(has_file("lock/suppressed.bad"), "nor lost");
}

TEST(foreign)
{
    bool has_failed = true, is_kept = true;
    for (uint64_t n = 1; n < 50 && has_failed; n++) {
        FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
        two_entries(&f);
        spoil(&f, TEXT("?"), 3);
        sim_disk_count_anew();
        sim_disk_fail_at(n, EIO);
        reopen(&f);
        has_failed = sim_disk_has_failed();
        sim_loop_advance(f.loop, 120000);
        suppression_free(&f.s);
        reopen(&f);
        is_kept = is_kept && has_file("lock/suppressed.bad");
    }
    ok_named(!has_failed && is_kept, "a file of others is never written over");
}

TEST(unreadable)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    two_entries(&f);
    sim_disk_count_anew();
    sim_disk_fail_at(2, EIO);
    reopen(&f);
    ok_named(sim_disk_has_failed(), "a read fails");
    is_number(suppression_count(f.s).entries, 0, "nothing was read");
    ok_named(has_file("lock/suppressed.bad"), "and nothing is lost");
    ok(says(&f, "lock/suppressed: ") && says(&f, strerror(EIO))); /* in the words of this C library */
    ok(says(&f, ": it is lock/suppressed.bad now, and goes on with the 0"));
    ok(hear(&f, "me@a.example", "z@b.example", "550 5.1.1 User unknown"));
    suppression_free(&f.s);
    reopen(&f);
    ok_named(refuses(&f, "me@a.example", "z@b.example"), "a new file is there");
}

TEST(full_disk)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    two_entries(&f);
    reopen(&f);
    sim_disk_fail_calls(ENOSPC);
    ok(hear(&f, "me@a.example", "z@b.example", "550 5.1.1 User unknown"));
    sim_loop_advance(f.loop, 5 * APPENDED_AGAIN_MS);
    ok_named(refuses(&f, "me@a.example", "z@b.example"), "a full disk costs nothing in memory");
    ok(says(&f, "lock/suppressed: cannot be written: No space left on device"));
    sim_disk_fail_calls(0);
    sim_loop_advance(f.loop, 2 * APPENDED_AGAIN_MS);
    ok(says(&f, "lock/suppressed: written again"));
    fixture_killed(&f, sim_disk_power_cut);
    ok_named(refuses(&f, "me@a.example", "z@b.example") && refuses(&f, "me@a.example", "x@b.example"),
             "and is made up for");
}

/* Entries, one removed, and a file that is written anew, with the n-th call failing or the last. */
static uint64_t
work_with(uint64_t fail_at, uint64_t die_at)
{
    struct fixture f;
    fixture_begin(&f, &usual);
    sim_disk_count_anew();
    if (fail_at > 0)
        sim_disk_fail_at(fail_at, EIO);
    if (die_at > 0)
        sim_disk_die_at(die_at);
    for (int i = 0; i < 1100; i++) {
        (void)!hear(&f, "me@a.example", "x@b.example", "550 5.1.1 x");
        if (i < 1099)
            (void)suppression_remove(f.s, TEXT("x@b.example"));
        if (i % 100 == 0)
            loop_turn(f.loop, 0);
    }
    sim_loop_advance(f.loop, 3 * APPENDED_AGAIN_MS);
    uint64_t calls = sim_disk_calls();
    if (die_at > 0) {
        fixture_stop(&f);
        sim_disk_power_cut();
        loop_free(&f.loop);
        f.loop = sim_loop_new(1);
        fixture_start(&f);
        (void)!hear(&f, "me@a.example", "x@b.example", "550 5.1.1 x");
    } else {
        sim_disk_fail_calls(0);
        fixture_killed(&f, sim_disk_power_cut);
    }
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "the last entry counts");
    fixture_stop(&f);
    fixture_start(&f);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "after a restart, too");
    fixture_end(&f);
    return calls;
}

TEST(each_call_fails)
{
    uint64_t calls = work_with(0, 0);
    ok(calls > 20);
    for (uint64_t n = 1; n <= calls; n++)
        (void)work_with(n, 0);
    for (uint64_t n = 1; n <= calls; n++)
        (void)work_with(0, n);
}

/* --- Other hosts -------------------------------------------------------------------- */

static bool
count_news(void *context, const struct suppression_entry *entry)
{
    (void)entry;
    ++*(int *)context;
    return true;
}

static int
news(struct suppression *s)
{
    int count = 0;
    suppression_each_news(s, count_news, &count);
    return count;
}

static struct suppression_entry
entry_of(enum suppression_class class, int64_t at_s)
{
    return (struct suppression_entry){.address = TEXT("x@b.example"),
                                      .at_s = at_s,
                                      .class = class,
                                      .strikes = class == SUPPRESSION_REMOVED ? SUPPRESSION_REMOVED_STRIKES : SUPPRESSION_STRIKES};
}

static bool
class_of(void *context, const struct suppression_entry *entry, int64_t until_ms)
{
    (void)until_ms;
    *(enum suppression_class *)context = entry->class;
    return true;
}

/* The class that x has after both. */
static enum suppression_class
learnt(const struct suppression_entry *first, const struct suppression_entry *second)
{
    struct fixture f;
    enum suppression_class class = SUPPRESSION_NONE;
    fixture_begin(&f, &usual);
    suppression_learn(f.s, first, true);
    suppression_learn(f.s, second, true);
    suppression_each(f.s, 0, 1, class_of, &class);
    fixture_end(&f);
    return class;
}

TEST(learnt_in_any_order)
{
    static const struct {
        enum suppression_class one, other, result;
        int64_t later_s;
    } rows[] = {
        {SUPPRESSION_HARD,      SUPPRESSION_COMPLAINT, SUPPRESSION_COMPLAINT, 100},
        {SUPPRESSION_COMPLAINT, SUPPRESSION_HARD,      SUPPRESSION_COMPLAINT, 100},
        {SUPPRESSION_MANUAL,    SUPPRESSION_COMPLAINT, SUPPRESSION_MANUAL,    100},
        {SUPPRESSION_DOUBTFUL,  SUPPRESSION_HARD,      SUPPRESSION_HARD,      0  },
        {SUPPRESSION_HARD,      SUPPRESSION_REMOVED,   SUPPRESSION_NONE,      1  },
        {SUPPRESSION_REMOVED,   SUPPRESSION_HARD,      SUPPRESSION_HARD,      1  },
        {SUPPRESSION_REMOVED,   SUPPRESSION_MANUAL,    SUPPRESSION_MANUAL,    100},
        {SUPPRESSION_MANUAL,    SUPPRESSION_REMOVED,   SUPPRESSION_NONE,      100},
    };
    struct loop *loop = sim_loop_new(1);
    int64_t now_s = loop_now_ms(loop) / 1000 - 1000;
    loop_free(&loop);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct suppression_entry one = entry_of(rows[i].one, now_s), other = entry_of(rows[i].other, now_s + rows[i].later_s);
        is_number(learnt(&one, &other), rows[i].result, "in their order");
        is_number(learnt(&other, &one), rows[i].result, "in the other order");
    }
}

TEST(news)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    struct suppression_entry e = entry_of(SUPPRESSION_HARD, loop_now_ms(f.loop) / 1000);
    ok(!hear(&f, "me@a.example", "y@b.example", "550 5.2.0 maybe"));
    ok(hear(&f, "me@a.example", "x@b.example", "550 5.1.1 x"));
    is_number(news(f.s), 1, "a bounce is news, a doubt is not");
    suppression_learn(f.s, &e, true);
    is_number(news(f.s), 0, "until it comes back");
    e.at_s -= 1000;
    suppression_learn(f.s, &e, true);
    is_number(news(f.s), 0, "an older one changes nothing");
    ok(!suppression_is_shared(f.s));
    suppression_share(f.s);
    is_number(news(f.s), 1, "if what was told is lost it is news again");
    is_number(suppression_remove(f.s, TEXT("x@b.example")), 1, "the operator removes it");
    is_number(suppression_remove(f.s, TEXT("x@b.example")), 0, "once");
    is_number(suppression_count(f.s).entries, 1, "the doubt is left");
    is_number(news(f.s), 1, "which is news");
    suppression_learn(f.s, &e, true);
    ok_named(!refuses(&f, "me@a.example", "x@b.example"), "what others knew before does not bring it back");
    loop_turn(f.loop, 0);
    fixture_killed(&f, sim_disk_restart);
    suppression_learn(f.s, &e, true);
    ok_named(!refuses(&f, "me@a.example", "x@b.example"), "after a kill, too");
    e = entry_of(SUPPRESSION_HARD, e.at_s);
    e.address = TEXT("postmaster@b.example");
    suppression_learn(f.s, &e, true);
    is_number(suppression_count(f.s).entries, 1, "postmaster is nobody's to suppress");
    sim_loop_advance(f.loop, 31 * DAY_MS);
    e = entry_of(SUPPRESSION_COMPLAINT, loop_now_ms(f.loop) / 1000 - 40 * 24 * 3600);
    suppression_learn(f.s, &e, true);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "a removal counts for thirty days");
}

/* --- Times to come ------------------------------------------------------------------------ */

/* A file, another host, and a list: it lasts as long as any other, over restarts. */
TEST(time_to_come)
{
    for (int way = 0; way < 3; way++) {
        FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
        struct suppression_entry e = entry_of(SUPPRESSION_HARD, UINT32_MAX);
        if (way == 0)
            suppression_learn(f.s, &e, true);
        else if (way == 1)
            ok(suppression_add(f.s, &e) == NULL);
        if (way == 2) {
            struct buffer out;
            buffer_init(&out, 4096);
            ok(buffer_add(&out, TEXT(SUPPRESSION_TITLE)) && suppression_record_write(&e, &out));
            fixture_stop(&f);
            struct disk *disk;
            if (disk_open(&disk, "/spool", false) != 0 || disk_write_new(disk, "lock/suppressed", 0600, buffer_text(&out)) != 0)
                abort();
            disk_close(&disk);
            buffer_free(&out);
            fixture_start(&f);
            ok(says(&f, "lock/suppressed: 1 lines have a time to come: they count from now on"));
        }
        ok(refuses(&f, "me@a.example", "x@b.example"));
        sim_loop_advance(f.loop, 80 * DAY_MS);
        fixture_stop(&f);
        fixture_start(&f);
        ok_named(refuses(&f, "me@a.example", "x@b.example"), "it counts");
        sim_loop_advance(f.loop, 11 * DAY_MS);
        ok_named(!refuses(&f, "me@a.example", "x@b.example"), "for as long as one of today");
    }
}

/* A machine without a clock of its own starts in 1970: what it has read is right. */
TEST(clock_not_set)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    int64_t now_ms = loop_now_ms(f.loop);
    ok(hear(&f, "me@a.example", "x@b.example", "550 5.1.1 x"));
    fixture_stop(&f);
    sim_loop_step_wall(f.loop, 1000 - now_ms);
    sim_loop_advance(f.loop, 10);
    ok(loop_now_ms(f.loop) < 2000);
    fixture_start(&f);
    sim_loop_step_wall(f.loop, now_ms - 1000);
    sim_loop_advance(f.loop, 10);
    ok(loop_now_ms(f.loop) >= now_ms);
    ok_named(refuses(&f, "me@a.example", "x@b.example"), "an entry is as old as it was");
}

/* --- The work of many entries ------------------------------------------------------------- */

enum { MANY = 20000, PAGE = 200, TOLD = 100 };

static void
add_many(struct fixture *f, int from, int to)
{
    for (int i = from; i < to; i++) {
        char address[40];
        snprintf(address, sizeof(address), "x%d@b.example", i);
        struct suppression_entry e = {.address = text_from(address), .at_s = loop_now_ms(f->loop) / 1000, .class = SUPPRESSION_MANUAL};
        if (suppression_add(f->s, &e) != NULL)
            abort();
    }
}

static bool
see_one(void *context, const struct suppression_entry *e, int64_t until_ms)
{
    unsigned char *seen = context;
    (void)until_ms;
    seen[atoi(e->address.at + 1)]++;
    return true;
}

/* Pages of a list, of which four of five entries go meanwhile, so that it is compacted. */
TEST(pages)
{
    struct suppression_settings settings = usual;
    settings.limit = MANY; /* one more sweeps the list */
    FIXTURE(fixture, f, fixture_begin, fixture_end, &settings);
    static unsigned char seen[2 * MANY];
    unsigned bad = 0, pages = 0;
    add_many(&f, 0, MANY);
    uint64_t before = suppression_count(f.s).walked;
    for (size_t from = 0; pages == 0 || from > 0; pages++)
        from = suppression_each(f.s, from, PAGE, see_one, seen);
    for (int i = 0; i < MANY; i++)
        bad += seen[i] != 1;
    is_number(bad, 0, "each is on one page");
    ok_named(suppression_count(f.s).walked - before < 2 * MANY, "and is met once or so");
    memset(seen, 0, sizeof(seen));
    pages = 0;
    for (size_t from = 0; pages == 0 || from > 0; pages++) {
        from = suppression_each(f.s, from, PAGE, see_one, seen);
        if (pages == 50) {
            sim_loop_advance(f.loop, 1000);
            for (int i = 0; i < MANY; i++)
                if (i % 5 != 0) {
                    struct suppression_entry e = {.address = TEXT("")};
                    char address[40];
                    snprintf(address, sizeof(address), "x%d@b.example", i);
                    e.address = text_from(address);
                    (void)suppression_remove(f.s, e.address);
                }
            sim_loop_advance(f.loop, 31 * DAY_MS);
            add_many(&f, MANY, MANY + 1);
        }
    }
    for (int i = 0; i < MANY; i += 5)
        bad += seen[i] != 1;
    is_number(bad + (seen[MANY] != 1), 0, "also if others go meanwhile");
    is_number(suppression_each(f.s, 3, 2, see_one, seen), 5, "a page that follows no other is counted from the first entry");
}

struct telling {
    struct suppression_entry entries[TOLD];
    char addresses[TOLD][40];
    size_t count;
};

static bool
tell_one(void *context, const struct suppression_entry *e)
{
    struct telling *t = context;
    if (t->count == TOLD)
        return false;
    snprintf(t->addresses[t->count], sizeof(t->addresses[0]), "%.*s", TEXT_ARGS(e->address));
    t->entries[t->count] = *e;
    t->entries[t->count].address = text_from(t->addresses[t->count]);
    t->count++;
    return true;
}

/* Some at a time, as Redis is told, until all have come back. */
static size_t
tell_all(struct fixture *f)
{
    size_t told = 0, questions = 0;
    for (; suppression_count(f->s).news > 0 && questions < 2 * MANY; questions++) {
        struct telling t = {.count = 0};
        suppression_each_news(f->s, tell_one, &t);
        told += t.count;
        for (size_t i = 0; i < t.count && questions % 7 != 3; i++) /* a question may be lost */
            suppression_learn(f->s, &t.entries[i], true);
    }
    return told;
}

TEST(telling)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, &usual);
    add_many(&f, 0, MANY);
    suppression_share(f.s);
    uint64_t before = suppression_count(f.s).walked;
    ok_named(tell_all(&f) >= MANY, "all are told");
    ok_named(suppression_count(f.s).walked - before < 3 * MANY, "and met a time or two");
    is_number(suppression_remove(f.s, TEXT("x7@b.example")), 1, "one of the first changes");
    add_many(&f, MANY, MANY + 1);
    is_number(tell_all(&f), 2, "it is told, beside one that is new");
}
