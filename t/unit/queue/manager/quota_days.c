/* Days in virtual time: a smarthost that may have 500 recipients a day and 100 an hour, three users with quotas of their own (the
 * password of one is stolen), a local cron; over a reload, a restart, SIGKILL and a clock that is set. Nothing is lost, nothing
 * comes twice, and no window has more than its quota. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/manager/manager_internal.h"
#include "t/support/manager_world.h"
#include "t/sim/sim_disk.h"

enum { MINUTE_MS = 60 * 1000, MINUTES = 5 * 24 * 60, DAY = 24 * 60, HOUR = 60, USERS = 3 };

static const char table[] = "user:alice 300/d\nuser:bob 600/d,200/h\nuser:* 150/d,60/h\nall 1100/d\n";
static const char *const users[USERS] = {"alice", "bob", "carol"};

/* The mail sent or accepted in each minute. */
static unsigned sent[MINUTES + 1], accepted[USERS + 1][MINUTES + 1];

/* As a session does it: one recipient, then the message is stored. */
static bool
submit(struct world *w, unsigned user, int minute)
{
    struct quotas_refusal refusal;
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas *q = manager_quotas(w->manager);
    struct quotas_sender who = {.user = text_from(users[user]), .uid = QUOTAS_NO_UID, .address = TEXT("s@here.test")};
    if (!quotas_take(q, &who, 1, loop_monotonic_ms(w->loop), &claim, &refusal)) {
        manager_tell_quota(w->manager, &refusal);
        return false;
    }
    world_send(w, "", "good@there.test");
    quotas_settle(q, &claim, 1, loop_monotonic_ms(w->loop));
    manager_note_quotas(w->manager);
    accepted[user][minute]++;
    accepted[USERS][minute]++;
    return true;
}

static unsigned
most_within(const unsigned *counts, int minutes)
{
    unsigned sum = 0, most = 0;
    for (int i = 0; i <= MINUTES; i++) {
        sum += counts[i];
        if (i >= minutes)
            sum -= counts[i - minutes];
        most = sum > most ? sum : most;
    }
    return most;
}

static unsigned
total(const unsigned *counts)
{
    unsigned sum = 0;
    for (int i = 0; i <= MINUTES; i++)
        sum += counts[i];
    return sum;
}

static void
pass_minute(struct world *w, int minute)
{
    unsigned before = w->attempts;
    sim_loop_advance(w->loop, MINUTE_MS);
    sent[minute] += w->attempts - before;
    buffer_clear(&w->seen);
    buffer_clear(&w->lines);
}

/* 1,000 a second: 60,000 tries in this minute. */
static void
steal(struct world *w, int minute)
{
    for (int i = 0; i < 60000; i++)
        (void)submit(w, 2, minute);
}

static void
happen(struct world *w, int minute)
{
    switch (minute) {
    case 6 * HOUR: /* a reload with the same quotas */
        manager_reload(w->manager, &w->settings, w->routes);
        break;
    case 9 * HOUR:
        world_restart(w);
        break;
    case 11 * HOUR: /* SIGKILL, more than a minute after the last that was counted */
        sim_disk_restart();
        world_restart(w);
        break;
    case 15 * HOUR:
        sim_loop_step_wall(w->loop, INT64_C(3) * HOUR * MINUTE_MS);
        break;
    case 20 * HOUR:
        sim_loop_step_wall(w->loop, -INT64_C(5) * HOUR * MINUTE_MS);
        break;
    default:
        break;
    }
}

TEST(days)
{
    struct world w;
    sim_disk_reset();
    manager_world_begin(&w, "* smtp://smart.test?quota=500/d,100/h");
    w.settings.queue.journal_size = 4 << 20;
    w.settings.quotas = text_from(table);
    world_restart(&w);
    for (int minute = 0; minute < MINUTES; minute++) {
        bool calm = (minute > 10 * HOUR + 55 && minute <= 11 * HOUR);
        if (minute < DAY && !calm) {
            if (minute % 2 == 0) /* 30 an hour, all day */
                (void)submit(&w, 0, minute);
            for (int i = 0; minute >= 2 * HOUR && minute < 8 * HOUR && i < 4; i++) /* a newsletter of 1,440 */
                (void)submit(&w, 1, minute);
            if (minute >= 3 * HOUR && minute < 4 * HOUR)
                steal(&w, minute);
            else if (minute >= 12 * HOUR && minute % 3 == 0)
                (void)submit(&w, 2, minute);
        }
        happen(&w, minute);
        pass_minute(&w, minute);
    }
    char name[120];
    is_number(total(accepted[0]), 300, "alice: exactly 300 of 690");
    is_number(most_within(accepted[1], HOUR), 200, "bob: exactly 200 of 240 in an hour");
    is_number(most_within(accepted[1], DAY), 600, "and 600 in the day");
    is_number(most_within(accepted[2], HOUR), 60, "carol's thief: exactly 60 in the hour of 3,600,000 tries");
    is_number(most_within(accepted[2], DAY), 150, "and 150 in the day");
    ok_named(most_within(accepted[USERS], DAY) <= 1100, "all of them: at most 1,100 a day");
    snprintf(name, sizeof(name), "%u and %u and %u are accepted", total(accepted[0]), total(accepted[1]), total(accepted[2]));
    ok_named(total(accepted[USERS]) > 800, name);
    ok_named(most_within(sent, HOUR) <= 100 && most_within(sent, HOUR) >= 95, "the smarthost: at most 100 an hour, and nearly as many");
    is_number(most_within(sent, DAY), 500, "exactly 500 a day");
    is_number(total(sent), total(accepted[USERS]), "each message left, once");
    char path[100];
    snprintf(path, sizeof(path), "%s/mess", w.folder);
    is_number((long)sim_disk_count(path), 0, "nothing is left");
    manager_world_end(&w);
}
