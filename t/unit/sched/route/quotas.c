/* The table of quotas: which entries match, what is counted, what is refused. */
#include "sched/route/quotas.h"

#include "t/support/tap.h"

#define DAY_MS  INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)
#define NOW     INT64_C(1700000000000)

static struct quotas *
table(const char *text)
{
    struct quotas *q = quotas_new();
    struct buffer errors;
    buffer_init(&errors, 4096);
    if (!quotas_set(q, text_from(text), &errors))
        printf("# %.*s\n", (int)errors.length, errors.at);
    buffer_free(&errors);
    return q;
}

static struct quotas_sender
sender(const char *user, const char *address)
{
    return (struct quotas_sender){
        .user = text_from(user), .uid = QUOTAS_NO_UID, .address = text_from(address)};
}

/* How many messages to one recipient pass, of 100. */
static int
passes_at(struct quotas *q, const struct quotas_sender *who, int64_t now,
          struct quotas_refusal *refusal)
{
    int passed = 0;
    for (int i = 0; i < 100; i++) {
        struct quotas_claim claim = {.parts = {{NULL, 0}}};
        bool good = quotas_take(q, who, 1, now, &claim, refusal);
        quotas_settle(q, &claim, good, now);
        passed += good;
    }
    return passed;
}

static int
passes(struct quotas *q, const char *user, const char *address)
{
    struct quotas_refusal refusal;
    struct quotas_sender who = sender(user, address);
    return passes_at(q, &who, NOW, &refusal);
}

static void
is_error(const char *text, const char *want)
{
    struct quotas *q = table("user:* 7/d");
    struct buffer errors;
    buffer_init(&errors, 4096);
    bool good = quotas_set(q, text_from(text), &errors);
    ok_named(!good, text);
    struct text got = buffer_text(&errors);
    ok_named(memmem(got.at, got.length, want, strlen(want)) != NULL, want);
    is_number(passes(q, "bob", ""), 7, "and the old table stays");
    buffer_free(&errors);
    quotas_free(&q);
}

TEST(errors)
{
    is_error("alice 5/d", "quotas: 'alice 5/d': is not one of user:NAME");
    is_error("user: 5/d", "is not one of");
    is_error("everybody 5/d", "is not one of");
    is_error("all: 5/d", "is not one of");
    is_error("user:alice", "the limit is none of N/s");
    is_error("user:alice 5", "the limit is none of N/s");
    is_error("user:alice 5/d,5/d", "'user:alice 5/d,5/d': the limit is none of");
    is_error("uid:alice 5/d", "is not the number of a user");
    is_error("uid:4294967295 5/d", "is not the number of a user");
    is_error("sender:a@b@c 5/d", "is neither an address nor a domain");
    is_error("sender:a..b 5/d", "is neither an address nor a domain");
    is_error("domain:a@b.example 5/d", "is not a domain");
    is_error("all 5/d\nall 6/d", "quotas: 'all 6/d': stands above already");
    is_error("all 5/d, sender:B@x 1/d, sender:b@X 2/d", "stands above already");
    is_error("uid:7 5/d\nuid:007 6/d", "stands above already");
    char text[2 * QUOTAS_NAME_MAX] = "user:";
    memset(text + 5, 'x', QUOTAS_NAME_MAX);
    strcpy(text + 5 + QUOTAS_NAME_MAX, " 5/d");
    is_error(text, "is too long");
}

TEST(many_rows)
{
    struct quotas *q = quotas_new();
    struct buffer rows, errors;
    buffer_init(&rows, 1 << 20);
    buffer_init(&errors, 4096);
    for (int i = 0; i < QUOTAS_ROWS_MAX; i++)
        if (!buffer_format(&rows, "user:u%d %d/d\n", i, i + 1))
            ok_named(false, "a row");
    ok(quotas_set(q, buffer_text(&rows), &errors));
    is_number(passes(q, "u41", ""), 42, "the 42nd counts");
    ok(buffer_add(&rows, TEXT("user:more 1/d")));
    ok(!quotas_set(q, buffer_text(&rows), &errors));
    ok_named(text_ends_nocase(buffer_text(&errors), TEXT("is one entry too many\n")),
             "one too many");
    buffer_free(&rows);
    buffer_free(&errors);
    quotas_free(&q);
}

TEST(kinds)
{
    struct quotas *q = table("# a comment\n"
                             "user:alice 3/d, user:root none,\n"
                             "user:* 5/d,4/h\n"
                             "\n"
                             "  sender:Boss@Example.ORG 9/d\n"
                             "sender:example.org 6/d ,sender:* 8/d\n"
                             "domain:example.com 7/d\n");
    ok(!quotas_are_empty(q));
    is_number(passes(q, "alice", ""), 3, "a user by name");
    is_number(passes(q, "carol", ""), 4, "each other user by itself");
    is_number(passes(q, "dave", ""), 4, "another");
    is_number(passes(q, "Alice", ""), 4, "the case of user names counts");
    is_number(passes(q, "root", ""), 100, "none");
    is_number(passes(q, "root", "boss@example.org"), 9, "an address");
    is_number(passes(q, "root", "BOSS@EXAMPLE.org"), 0, "in any case");
    is_number(passes(q, "root", "a@example.org"), 6, "each address of a domain");
    is_number(passes(q, "root", "b@example.org"), 6, "by itself");
    is_number(passes(q, "root", "b@sub.example.org"), 8, "not of its sub-domains");
    is_number(passes(q, "root", "a@example.com"), 7, "a domain as a whole");
    is_number(passes(q, "root", "b@example.com"), 0, "whoever sends");
    is_number(passes(q, "root", ""), 100, "the null sender has no quota of senders");
    is_number(passes(q, "eve", "x@example.net"), 4, "all kinds apply");
    is_number(passes(q, NULL, "x@example.net"), 4, "what the other refused is not used");
    quotas_free(&q);
    q = table("");
    ok(quotas_are_empty(q));
    is_number(passes(q, "alice", "a@example.org"), 100, "no table, no quota");
    quotas_free(&q);
}

TEST(first_row)
{
    struct quotas *q = table("user:* 5/d\nuser:alice 3/d\nsender:* 2/d, sender:a@b none");
    is_number(passes(q, "alice", ""), 5, "the first that matches counts");
    is_number(passes(q, NULL, "a@b"), 2, "of senders, too");
    quotas_free(&q);
}

TEST(uid_and_all)
{
    struct quotas *q = table("uid:0033 2/d\nuid:* 3/d\nall 6/d");
    struct quotas_refusal refusal;
    struct quotas_sender www = {.uid = 33}, other = {.uid = 0};
    is_number(passes_at(q, &www, NOW, &refusal), 2, "a local user");
    is_string(refusal.name, "uid:33", "by number");
    is_number(passes_at(q, &other, NOW, &refusal), 3, "another");
    struct quotas_sender nobody = {.uid = QUOTAS_NO_UID};
    is_number(passes_at(q, &nobody, NOW, &refusal), 1, "all together");
    is_string(refusal.name, "all", "the name");
    ok_named(text_starts(text_from(refusal.outcome.text),
                         TEXT("Quota: 6 recipients a day of all senders are used; "
                              "the next in 2")),
             refusal.outcome.text);
    quotas_free(&q);
}

TEST(refusal)
{
    struct quotas *q = table("user:* 5/d,2/h");
    struct quotas_sender alice = sender("alice", "");
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas_refusal refusal;
    int64_t start = NOW / 3600000 * 3600000;
    ok(quotas_take(q, &alice, 1, start, &claim, &refusal));
    ok(quotas_take(q, &alice, 1, start, &claim, &refusal));
    ok(!quotas_take(q, &alice, 1, start, &claim, &refusal));
    is_string(refusal.outcome.text,
              "Quota: more recipients than the 2 an hour of user alice",
              "this message can never pass");
    is_number(refusal.outcome.code, 550, "550");
    is_string(refusal.outcome.enhanced, "5.7.1", "5.7.1");
    is_number(refusal.ready_ms, INT64_MAX, "never");
    ok_named(refusal.first, "the operator should know");
    struct quotas_claim second = {.parts = {{NULL, 0}}};
    ok(!quotas_take(q, &alice, 1, start, &second, &refusal));
    is_number(refusal.outcome.code, 450, "but others later");
    is_string(refusal.outcome.enhanced, "4.7.1", "4.7.1");
    is_string(refusal.outcome.text,
              "Quota: 2 recipients an hour of user alice are used; the next in 1h 3m",
              "when");
    ok_named(!refusal.first, "once a window");
    quotas_settle(q, &second, 0, start);
    quotas_settle(q, &claim, 2, start);
    is_number(passes_at(q, &alice, start + HOUR_MS / 2, &refusal), 0, "half an hour: none");
    ok_named(!refusal.first, "the same window");
    is_number(passes_at(q, &alice, start + 2 * HOUR_MS, &refusal), 2, "two hours: two");
    is_number(passes_at(q, &alice, start + 4 * HOUR_MS, &refusal), 1, "then the day");
    ok_named(text_starts(text_from(refusal.outcome.text),
                         TEXT("Quota: 5 recipients a day of user alice are used; the "
                              "next in 21h 0m")),
             refusal.outcome.text);
    quotas_free(&q);
}

TEST(given_back)
{
    struct quotas *q = table("user:* 5/d\nall 6/d");
    struct quotas_sender alice = sender("alice", "");
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas_refusal refusal;
    ok(quotas_take(q, &alice, 4, NOW, &claim, &refusal));
    is_number(passes(q, "alice", ""), 1, "a message under way counts");
    quotas_settle(q, &claim, 1, NOW);
    is_number(claim.parts[QUOTAS_USER].count, 0, "the claim is over");
    quotas_settle(q, &claim, 1, NOW);
    is_number(passes(q, "alice", ""), 3, "what was not sent is given back");
    is_number(passes(q, "bob", ""), 1, "for all, too");
    ok(!quotas_take(q, &alice, 1, NOW, &claim, &refusal));
    ok_named(claim.parts[QUOTAS_ALL].name == NULL, "a refusal reserves nothing");
    quotas_free(&q);
}

/* A reload in the middle of a message. */
TEST(reload)
{
    struct quotas *q = table("user:* 5/d");
    struct quotas_sender alice = sender("alice", "a@b.example");
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas_refusal refusal;
    struct buffer errors;
    buffer_init(&errors, 1000);
    ok(quotas_take(q, &alice, 2, NOW, &claim, &refusal));
    ok(quotas_set(q, TEXT("user:alice 4/d\ndomain:* 10/d"), &errors));
    ok(quotas_take(q, &alice, 1, NOW, &claim, &refusal));
    is_number(claim.parts[QUOTAS_USER].count, 3, "three of the user");
    is_number(claim.parts[QUOTAS_DOMAIN].count, 1, "one of the domain");
    ok(quotas_set(q, TEXT(""), &errors));
    ok(quotas_take(q, &alice, 50, NOW, &claim, &refusal));
    quotas_settle(q, &claim, 53, NOW);
    ok(quotas_set(q, TEXT("user:alice 4/d\ndomain:* 10/d"), &errors));
    is_number(passes(q, "alice", "x@b.example"), 1, "what was counted stays");
    is_number(passes(q, NULL, "x@b.example"), 8, "of each kind");
    buffer_free(&errors);
    quotas_free(&q);
}

TEST(forgets)
{
    struct quotas *q = table("sender:* 5/d");
    struct quotas_refusal refusal;
    struct quotas_sender heavy = sender(NULL, "heavy@example.org");
    struct quotas_claim held = {.parts = {{NULL, 0}}}, none;
    struct quotas_sender holder = sender(NULL, "holder@example.org");
    char name[64];
    is_number(passes_at(q, &heavy, NOW, &refusal), 5, "one has used its quota");
    ok(quotas_take(q, &holder, 5, NOW, &held, &refusal));
    for (int i = 0; i < 3 * QUOTAS_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), "a%d@example.org", i);
        struct quotas_sender who = sender(NULL, name);
        none = (struct quotas_claim){.parts = {{NULL, 0}}};
        if (!quotas_take(q, &who, 1, NOW, &none, &refusal))
            ok_named(false, "a new name passes");
        quotas_settle(q, &none, 1, NOW);
    }
    is_number(passes_at(q, &heavy, NOW, &refusal), 0, "those with least use go first");
    is_number(passes_at(q, &holder, NOW, &refusal), 0, "and none with mail under way");
    quotas_settle(q, &held, 5, NOW);
    quotas_free(&q);
}

struct seen {
    int count;
    char names[200];
    uint32_t used;
};

static void
see(void *context, const struct quotas_state *state)
{
    struct seen *seen = context;
    seen->count++;
    snprintf(seen->names, sizeof(seen->names), "%s", state->name);
    seen->used = quota_used(state->use, QUOTA_DAY, NOW);
    ok_named(state->quota->amounts[QUOTA_DAY] == 5, "its quota");
}

TEST(reset)
{
    struct quotas *q = table("user:* 5/d\nall 9/d");
    struct quotas_sender alice = sender("alice", "");
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas_refusal refusal;
    is_number(passes(q, "alice", ""), 5, "all used");
    ok(quotas_reset(q, TEXT("user:alice")));
    ok(!quotas_reset(q, TEXT("user:alice")));
    ok(!quotas_reset(q, TEXT("user:bob")));
    ok(!quotas_reset(q, TEXT("alice")));
    ok(quotas_take(q, &alice, 3, NOW, &claim, &refusal));
    ok(quotas_reset(q, TEXT("user:alice")));
    ok(quotas_reset(q, TEXT("all")));
    quotas_settle(q, &claim, 3, NOW);
    is_number(passes(q, "alice", ""), 2, "mail under way counts from now");
    is_number(passes(q, "bob", ""), 4, "for all, too");
    quotas_free(&q);
}

TEST(restart)
{
    struct quotas *q = table("user:* 5/d"), *after = table("user:* 5/d");
    struct seen seen = {.count = 0};
    uint32_t counts[QUOTA_SLOTS];
    int64_t end;
    quotas_each(q, NOW, see, &seen);
    is_number(seen.count, 0, "nobody has sent");
    is_number(passes(q, "alice", "x@y"), 5, "somebody does");
    quotas_each(q, NOW, see, &seen);
    is_number(seen.count, 1, "one name");
    is_string(seen.names, "user:alice", "this one");
    is_number(seen.used, 5, "its use");
    quotas_each(q, NOW + 2 * DAY_MS, see, &seen);
    is_number(seen.count, 1, "two days later it is over");
    ok(quota_keep(quotas_recall(q, TEXT("user:alice")), QUOTA_DAY, NOW, counts, &end));
    ok(quotas_recall(after, TEXT("sender:a@b")) == NULL);
    ok(quotas_recall(after, TEXT("nonsense")) == NULL);
    quota_restore(quotas_recall(after, TEXT("user:alice")), QUOTA_DAY, NOW, counts, end);
    is_number(passes(after, "alice", ""), 0, "the new process knows it");
    quotas_free(&q);
    quotas_free(&after);
}

TEST(times)
{
    char text[QUOTAS_TIME_MAX];
    quotas_format_time(0, text);
    is_string(text, "1s", "at least a second");
    quotas_format_time(59001, text);
    is_string(text, "1m 0s", "rounded up");
    quotas_format_time(12 * 60000 + 5000, text);
    is_string(text, "12m 5s", "minutes");
    quotas_format_time(12000000, text);
    is_string(text, "3h 20m", "hours");
    quotas_format_time(HOUR_MS * 3 - 1, text);
    is_string(text, "3h 0m", "not 2h 0m");
}
