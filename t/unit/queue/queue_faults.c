/* Faults of the disk that the queue's users see: mail is refused, marks wait, a Maildir gets all or nothing. Each call that
 * fails, dies or loses power in a workload: t/crash/. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/support/maildir_now.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum {
    MESSAGES = 7,
    LARGE = 150000,
    FLUSH_MS = 150,
    RETRY_MS = 25 * 1000 /* beyond two retries of refused marks */
};

static const char spool[] = "/spool";
static const char *const addresses[] = {"a@example.org", "b@example.net",
                                        "c@example.com", NULL};

static struct text
content_of(unsigned message)
{
    static char large[LARGE];
    static char small[MESSAGES][100];
    if (message == MESSAGES - 1) {
        for (size_t i = 0; i < sizeof(large); i++)
            large[i] = (char)(i * 31 + i / 256);
        return text_of(large, sizeof(large));
    }
    snprintf(small[message], sizeof(small[message]), "Subject: %u\r\n\r\nbody %u\r\n",
             message, message * 77);
    return text_from(small[message]);
}

static struct outcome
failure_outcome(unsigned message, unsigned recipient)
{
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "failure %u.%u",
                        message, recipient);
}

static size_t
count_messages_files(void)
{
    return sim_disk_count(spool) - sim_disk_count("/spool/lock");
}

/* After EIO from a sync: no new mail, but deliveries are still written. */
TEST(unhealthy)
{
    struct kit *k = memory_new(sizeof(*k));
    sim_disk_reset();
    queue_kit_open(k, spool);
    struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(0));
    k->answers = 0;
    ok(kit_commit(k, kit_envelope("", addresses), content_of(1)));
    ok(kit_commit(k, kit_envelope("", addresses), content_of(2)));
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO); /* the fsync of the first mess/ID */
    kit_turns(k, 1);
    ok(k->refused && k->refusal.code == 451);
    is_number(k->answers, 2, "the whole batch is answered");
    ok_named(k->stored == NULL && sim_disk_count("/spool/todo") == 1,
             "and refused: a failed sync is fatal for all of it");
    is_string(k->refusal.enhanced, "4.3.0", "a failed sync refuses");
    struct queue_health health = queue_health(k->queue);
    ok_named(!health.accepting && strstr(health.reason, "sync") != NULL,
             "and makes the spool unhealthy");
    ok(kit_logged(k, "spool unhealthy"));
    ok_named(kit_logged(k, "(see dmesg), then restart petrel"), "and says what to do");
    ok_named(!kit_commit(k, kit_envelope("", addresses), content_of(2)) &&
                 k->refusal.code == 451,
             "no new mail is taken");
    is_number(sim_disk_count("/spool/mess"), 1, "the refused one is gone");
    queue_settle(k->queue, e, 0, NULL);
    sim_loop_advance(k->loop, FLUSH_MS);
    is_number(sim_disk_count("/spool/info"), 1, "delivery goes on");
    queue_retire(k->queue, &e);
    kit_close(k);
    free(k);
}

/* Marks that a full disk refuses stay in memory: nobody gets it twice. */
TEST(full_disk)
{
    struct kit *k = memory_new(sizeof(*k));
    struct failure failure = {
        .recipient = 1, .expired = false, .outcome = failure_outcome(0, 1)};
    sim_disk_reset();
    queue_kit_open(k, spool);
    struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(0));
    struct id id = e->id;
    queue_settle(k->queue, e, 0, NULL);
    queue_settle(k->queue, e, 1, &failure);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOSPC);
    queue_defer(k->queue, &e, 1000, 2);
    kit_turns(k, 1);
    is_number(sim_disk_count("/spool/info"), 0, "the disk refused S5");
    e = queue_load(k->queue, id);
    ok_named(e != NULL && !e->storage.preprocessed && e->delivery.done == 2 && e->recipients[0].done &&
                 e->recipients[1].done,
             "what was done is still known");
    ok_named(e->delivery.failure_count == 1, "and the failure");
    envelope_free(&e);
    kit_turns(k, 1);
    e = queue_load(k->queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->delivery.done == 2 && e->delivery.failure_count == 1 &&
                 e->delivery.attempts == 2,
             "with space again it is written");
    queue_retire(k->queue, &e);
    is_number(count_messages_files(), 0, "and retired");

    e = queue_kit_accept(k, kit_envelope("", addresses), content_of(1));
    queue_settle(k->queue, e, 0, NULL);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOSPC);
    sim_loop_advance(k->loop, FLUSH_MS);
    is_number(sim_disk_count("/spool/info"), 0, "refused");
    sim_loop_advance(k->loop, RETRY_MS);
    is_number(sim_disk_count("/spool/info"), 1, "and tried again by itself");
    ok(e->storage.preprocessed);
    queue_retire(k->queue, &e);
    sim_disk_set_space(1000, 1000000);
    sim_loop_advance(k->loop, 2000);
    ok_named(!kit_commit(k, kit_envelope("", addresses), content_of(1)) &&
                 k->refusal.code == 452,
             "below the reserve of bytes mail is refused");
    sim_disk_set_space(INT64_C(1) << 40, 10);
    sim_loop_advance(k->loop, 2000);
    ok_named(!kit_commit(k, kit_envelope("", addresses), content_of(1)) &&
                 k->refusal.code == 452,
             "below the reserve of inodes as well");
    sim_disk_set_space(INT64_C(1) << 40, 1000);
    sim_loop_advance(k->loop, 2000);
    e = queue_kit_accept(k, kit_envelope("", addresses), content_of(1));
    ok_named(e != NULL, "with space it is taken again");
    queue_retire(k->queue, &e);
    kit_close(k);
    free(k);
}

/* The journal cannot be written for ever: a client that waits for room in it hears 451 after
 * a minute, and its message is not taken later. */
static void
test_full_journal(unsigned message)
{
    struct queue_settings settings = {.spool = spool,
                                      .slices = 1,
                                      .journal_size = 4 * 65536,
                                      .journal_segment = 65536,
                                      .journal_message_max = 8192};
    struct kit *k = memory_new(sizeof(*k));
    sim_disk_reset();
    if (kit_open_with(k, &settings) != 0)
        abort();
    sim_disk_fail_syncs(1000000, ENOSPC);
    ok(kit_commit(k, kit_envelope("", addresses), content_of(0)));
    sim_loop_advance(k->loop, FLUSH_MS);
    ok_named(k->answers == 1 && k->refusal.code == 452, "a batch fails");
    k->answers = 0;
    k->refused = false;
    sim_disk_fail_syncs(0, 0);
    ok_named(kit_commit(k, kit_envelope("", addresses), content_of(message)), "the journal rests");
    kit_turns(k, 1);
    sim_disk_fail_syncs(1000000, ENOSPC);
    sim_loop_advance(k->loop, 58 * 1000);
    is_number(k->answers, 0, "a message waits for it");
    sim_loop_advance(k->loop, 3 * 1000);
    ok_named(k->answers == 1 && k->refused && k->refusal.code == 451, "but for a minute");
    is_number(sim_disk_count("/spool/mess"), 0, "no file is left");
    sim_disk_fail_syncs(0, 0);
    sim_loop_advance(k->loop, RETRY_MS);
    is_number(k->answers, 1, "it is answered once");
    struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(2));
    ok_named(e != NULL, "with space the next one is taken");
    envelope_free(&e);
    kit_close(k);
    sim_disk_restart();
    if (kit_open_with(k, &settings) != 0)
        abort();
    kit_turns(k, 3);
    is_number(k->found_count, 1, "and alone is there after a restart");
    kit_close(k);
    free(k);
}

/* A Maildir delivery that fails leaves nothing; one that does not is durable. */
static void
test_maildir(int error, const char *enhanced)
{
    struct target target = {.kind = TARGET_MAILDIR, .path = "/mail/%u", .create = true};
    unsigned wrong = 0, deferred = 0, calls = 1;
    for (unsigned at = 0; at <= calls; at++) {
        struct kit *k = memory_new(sizeof(*k));
        sim_disk_reset();
        queue_kit_open(k, spool);
        struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(6));
        sim_disk_count_anew();
        sim_disk_fail_at(at, error);
        struct outcome o = maildir_deliver(k->queue, k->loop, &target, "h", e, 0);
        calls = at == 0 ? (unsigned)sim_disk_calls() : calls;
        bool delivered = o.verdict == VERDICT_DELIVERED;
        wrong += !delivered && (o.verdict != VERDICT_DEFERRED ||
                                (strcmp(o.enhanced, enhanced) != 0 &&
                                 strstr(o.text, "read the message") == NULL));
        sim_disk_die_at(1);
        kit_close(k);
        envelope_free(&e);
        free(k);
        if (delivered)
            sim_disk_power_cut();
        else
            sim_disk_restart();
        wrong += sim_disk_count("/mail/a/new") != delivered;
        deferred += !delivered;
    }
    is_number(wrong, 0, "a Maildir delivery is whole or deferred");
    ok(deferred > calls / 2);
}

int
main(void)
{
    tap_tests("");
    test_full_journal(1);
    test_full_journal(MESSAGES - 1); /* whose content is a file */
    test_maildir(EIO, "4.3.0");
    test_maildir(ENOSPC, "4.3.1");
    test_maildir(EDQUOT, "4.2.2");
    return done();
}
