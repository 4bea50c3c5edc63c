/* defrag/channel.c, channel_offer.c, completion.c, reassembled.c; queue/manager/manager_awaiting.c: fragments
 * wait, are joined, absorbed, released. */
/* link: t/sim/loop.c */
#include "t/support/channel_world.h"

#define ROUTES "* smtp://h?defragment=yes&notices=2h"
#define WHOLE                                                                          \
    "From: a@x\r\nSubject: whole\r\nContent-Type: text/plain\r\n\r\none\r\ntwo\r\n"    \
    "three\r\n"
#define ONE   "Subject: whole\r\nContent-Type: text/plain\r\n\r\none\r\n"
#define TWO   "two\r\n"
#define THREE "three\r\n"

static const char *const bodies[] = {ONE, TWO, THREE};

static void
test_orders(int64_t journal)
{
    static const unsigned orders[][3] = {
        {1, 2, 3},
        {1, 3, 2},
        {2, 1, 3},
        {2, 3, 1},
        {3, 1, 2},
        {3, 2, 1}
    };
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.w.settings.queue.journal_size = journal;
    stage_restart(&s);
    for (size_t o = 0; o < 6; o++) {
        char id[8];
        snprintf(id, sizeof(id), "id%zu", o);
        for (size_t i = 0; i < 3; i++)
            stage_part(&s, id, orders[o][i], 3, bodies[orders[o][i] - 1]);
        is_number(s.count, o + 1, "check 14: one message more");
        stage_arrived(&s, (unsigned)o, "b@y", WHOLE, "the whole");
    }
    is_number(stage_figures(&s).reassembled, 6, "are counted");
    is_number(stage_figures(&s).sets, 0, "nothing waits");
    ok_named(world_is_empty(&s.w), "no part is left");
    /* One is a set by itself. */
    stage_part(&s, "alone", 1, 1, ONE);
    stage_arrived(&s, 6, "b@y",
                  "From: a@x\r\nSubject: whole\r\nContent-Type: text/plain\r\n\r\n"
                  "one\r\n",
                  "check 13: total=1");
    /* A message that is no fragment passes. */
    stage_send(&s, "a@x", "b@y", TEXT("Content-Type: message/partial\r\n\r\nx\r\n"));
    world_turns(&s.w);
    stage_arrived(&s, 7, "b@y", "Content-Type: message/partial\r\n\r\nx\r\n",
                  "malformed");
    ok(world_logged(&s.w, "not a fragment"));
    is_number(stage_figures(&s).malformed, 1, "is counted");
}

/* E2: the last comes first, and is the only one that tells the total. */
TEST(late_total)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 3, 3, THREE);
    stage_part(&s, "i", 1, 0, ONE);
    is_number(s.count, 0, "E2: two are held");
    stage_part(&s, "i", 2, 0, TWO);
    stage_arrived(&s, 0, "b@y", WHOLE, "check 15: E2: complete with the third");
    stage_part(&s, "j", 1, 3, ONE);
    stage_part(&s, "j", 2, 0, TWO);
    stage_part(&s, "j", 3, 0, THREE);
    stage_arrived(&s, 1, "b@y", WHOLE, "check 16: the first tells it");
    stage_part(&s, "k", 3, 0, THREE);
    stage_part(&s, "k", 1, 0, ONE);
    stage_part(&s, "k", 2, 0, TWO);
    is_number(s.count, 2, "E2: nobody tells it: they wait");
    sim_loop_advance(s.w.loop, STAGE_HALF_MS);
    is_number(s.count, 5, "E2: and go on when their time is over");
    ok(world_is_empty(&s.w));
}

/* As many as may be, from the last to the first. */
TEST(thousand)
{
    enum { PARTS = 1000 };
    struct stage s;
    struct buffer whole;
    char body[40];
    buffer_init(&whole, 100 * 1000);
    bool fits = buffer_add(&whole, TEXT("From: a@x\r\nSubject: s\r\n\r\n"));
    for (unsigned n = 1; n <= PARTS; n++)
        fits = fits && buffer_format(&whole, "line %u\r\n", n);
    stage_begin(&s, ROUTES);
    s.w.settings.queue.journal_size = 4 * 1024 * 1024;
    stage_restart(&s);
    for (unsigned n = PARTS; n >= 1; n--) {
        snprintf(body, sizeof(body), "%sline %u\r\n",
                 n == 1 ? "Subject: s\r\n\r\n" : "", n);
        stage_put(&s, "a@x", "b@y", "i", n, PARTS, body);
        if (n % 50 == 1)
            world_turns(&s.w);
    }
    sim_loop_advance(s.w.loop, 1000);
    is_number(s.count, 1, "check 30: a thousand parts");
    ok(fits && s.count == 1 &&
       text_equal(buffer_text(&s.delivered[0].content), buffer_text(&whole)));
    ok(world_is_empty(&s.w));
    stage_part(&s, "i", 1, PARTS + 1, ONE);
    is_number(s.count, 2, "check 31: one more is no fragment");
    buffer_free(&whole);
    stage_end(&s);
}

TEST(words)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 2, 0, TWO);
    ok_named(strstr(stage_why(&s),
                    "have 1 of an unknown number; missing parts: 1; owner "
                    "this host; released at Sun, 15 Jun 2025 16:0") != NULL,
             stage_why(&s));
    stage_part(&s, "i", 9, 9, TWO);
    ok_named(strstr(stage_why(&s), "have 2 of 9; missing parts: 1, 3-8; ") != NULL,
             stage_why(&s));
    ok(world_place(&s.w) != SCHED_ACTIVE);
    ok(manager_active(s.w.manager, s.w.id) == NULL);
}

TEST(repetitions)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 3, ONE);
    stage_part(&s, "i", 1, 3, ONE);
    ok(world_logged(&s.w, "absorbed"));
    stage_part(&s, "i", 2, 3, TWO);
    stage_part(&s, "i", 3, 3, THREE);
    is_number(s.count, 1, "check 32: joined once");
    stage_part(&s, "i", 2, 3, TWO);
    is_number(s.count, 1, "check 39: late, absorbed");
    stage_part(&s, "i", 2, 3, "other\r\n");
    is_number(s.count, 2, "check 39: late and other: passed");
    ok(world_is_empty(&s.w));
    stage_part(&s, "j", 1, 3, ONE);
    stage_part(&s, "j", 1, 3, TWO);
    is_number(s.count, 4, "check 33: a contradiction releases all");
    stage_part(&s, "j", 2, 3, TWO);
    is_number(s.count, 5, "E7: and what comes then");
    stage_part(&s, "k", 1, 3, ONE);
    stage_part(&s, "k", 2, 4, TWO);
    is_number(s.count, 7, "check 34: two totals");
    is_number(stage_figures(&s).conflicts, 2, "are counted");
    ok(world_is_empty(&s.w));
}

TEST(time)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 2, 3, TWO);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS / 2);
    stage_part(&s, "i", 1, 3, ONE);
    stage_restart(&s);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS / 2 - 10 * 1000);
    is_number(s.count, 0, "check 42: they wait, over a restart");
    sim_loop_advance(s.w.loop, 10 * 1000);
    is_number(s.count, 2,
              "check 42: and are released half an interval after the first");
    ok_named(s.count == 2 &&
                 memmem(s.delivered[0].content.at, s.delivered[0].content.length,
                        "number=1; total=3\r\n\r\n" ONE, 21 + strlen(ONE)) != NULL,
             "check 43: the first, as it came");
    ok_named(s.count == 2 &&
                 memmem(s.delivered[1].content.at, s.delivered[1].content.length,
                        "number=2; total=3\r\n\r\ntwo\r\n", 26) != NULL,
             "check 43: then the second");
    ok(world_is_empty(&s.w));
    stage_part(&s, "i", 3, 3, THREE);
    is_number(s.count, 3, "check 40: what comes late passes");
    is_number(stage_figures(&s).timed_out, 2, "are counted");
}

TEST(timeouts)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.settings.on_timeout = CHANNEL_BOUNCE;
    channel_reload(s.channel, &s.settings);
    stage_part(&s, "i", 2, 3, TWO);
    ok_named(strstr(stage_why(&s), "; returned to its sender at ") != NULL,
             stage_why(&s));
    sim_loop_advance(s.w.loop, STAGE_HALF_MS + 1000);
    is_number(s.count, 1, "a bounce, and no fragment");
    ok(s.count == 1 && strcmp(s.delivered[0].to, "a@x") == 0);
    ok(world_logged(&s.w, "status=returned (the others did not come in time)"));
    ok(world_is_empty(&s.w));
    s.settings.on_timeout = CHANNEL_HOLD;
    channel_reload(s.channel, &s.settings);
    stage_part(&s, "j", 2, 3, TWO);
    ok_named(strstr(stage_why(&s), "; held at ") != NULL, stage_why(&s));
    sim_loop_advance(s.w.loop, STAGE_HALF_MS + 1000);
    is_number(s.count, 1, "held");
    ok(world_logged(&s.w, "held by defrag_on_timeout"));
    ok_named(!world_logged(&s.w, "held by the operator"), "who had no part in it");
    is_number(world_files(&s.w, "hold"), 1, "with a mark");
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_DONE, "and released");
    world_turns(&s.w);
    is_number(s.count, 2, "it goes");
    ok(world_is_empty(&s.w));
}

TEST(recipients)
{
    FIXTURE(stage, s, stage_begin, stage_end, "z smtp://h\n" ROUTES);
    stage_part_to(&s, "a@x", "a@y b@y", "i", 1, 3, ONE);
    stage_part_to(&s, "a@x", "a@y", "i", 2, 3, TWO);
    stage_part_to(&s, "a@x", "b@y", "i", 2, 3, TWO);
    is_number(s.count, 0, "nobody has all");
    stage_part_to(&s, "a@x", "a@y", "i", 3, 3, THREE);
    is_number(s.count, 1, "one has all");
    stage_arrived(&s, 0, "a@y", WHOLE, "check 38: he gets the whole");
    stage_part_to(&s, "a@x", "a@y b@y", "i", 3, 3, THREE);
    is_number(s.count, 2, "the other has, too");
    stage_arrived(&s, 1, "b@y", WHOLE, "check 38: and gets it");
    ok(world_is_empty(&s.w));
    /* Others of the same message do not wait. */
    stage_clear(&s);
    stage_part_to(&s, "a@x", "a@y c@z", "j", 1, 2, ONE);
    is_number(s.count, 1, "who does not defragment is served at once");
    stage_restart(&s);
    world_turns(&s.w);
    stage_part_to(&s, "a@x", "a@y", "j", 2, 2, "two\r\nthree\r\n");
    stage_arrived(&s, 1, "a@y", WHOLE, "the other later, over a restart");
    is_number(s.count, 2, "each once");
    ok(world_is_empty(&s.w));
    /* The others are late. */
    stage_clear(&s);
    s.refuses = true;
    stage_part_to(&s, "a@x", "a@y c@z", "k", 1, 2, ONE);
    s.refuses = false;
    stage_part_to(&s, "a@x", "a@y", "k", 2, 2, "two\r\nthree\r\n");
    is_number(s.count, 1, "the whole");
    sim_loop_advance(s.w.loop, 1000 * 1000);
    is_number(s.count, 2, "and a retry of the fragment for the other");
    stage_arrived(&s, 0, "a@y", WHOLE, "the whole");
    ok_named(s.count == 2 && strcmp(s.delivered[1].to, "c@z") == 0, "to each his own");
    ok(world_is_empty(&s.w));
    /* Two senders, the null sender. */
    stage_clear(&s);
    stage_part_to(&s, "a@x", "b@y", "l", 1, 2, ONE);
    stage_part_to(&s, "c@x", "b@y", "l", 2, 2, TWO);
    is_number(s.count, 0, "check 36: of two senders");
    stage_part_to(&s, "", "b@y", "l", 1, 2, ONE);
    is_number(s.count, 1, "check 41: the null sender passes");
    /* A client that forges a user's address cannot put anything into the user's
     * mail. */
    stage_clear(&s);
    stage_part_to(&s, "a@x", "b@y", "m", 2, 3, "forged\r\n");
    s.trust = "int";
    stage_part_to(&s, "a@x", "b@y", "m", 2, 3, "forged\r\n");
    s.trust = "auth:b";
    stage_part_to(&s, "a@x", "b@y", "m", 2, 3, "forged\r\n");
    s.trust = "auth:a";
    for (unsigned n = 1; n <= 3; n++)
        stage_part_to(&s, "a@x", "b@y", "m", n, 3, bodies[n - 1]);
    is_number(s.count, 1, "check 37: joined by trust");
    stage_arrived(&s, 0, "b@y", WHOLE, "from the user's own");
}

/* Sends three parts; a submitter NULL: that part is not ours. */
static void
submit_parts(struct stage *s, const char *id, const char *const submitters[3])
{
    stage_clear(s);
    for (unsigned n = 1; n <= 3; n++) {
        s->submitter = submitters[n - 1];
        stage_part_to(s, "a@x", "b@y", id, n, 3, bodies[n - 1]);
    }
    is_number(s->count, 1, "joined");
}

TEST(submitter)
{
    static const char *const ours[3] = {"user:a", "user:a", "user:a"},
                             *const none[3] = {NULL, NULL, NULL},
                             *const last[3] = {NULL, NULL, "user:a"},
                             *const first[3] = {"user:a", NULL, NULL};
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    submit_parts(&s, "o1", ours);
    ok_named(s.delivered[0].ours, "of parts that are ours the whole is ours");
    is_string(s.delivered[0].submitter, "user:a", "of the same user");
    is_number(s.delivered[0].header_needs, HEADER_NEEDS_ALL, "its header is not known");
    submit_parts(&s, "o2", none);
    ok_named(!s.delivered[0].ours && s.delivered[0].header_needs == 0, "of others not");
    submit_parts(&s, "o3", last);
    ok_named(!s.delivered[0].ours, "nor if one of them is not");
    is_string(s.delivered[0].submitter, "", "then it has no submitter");
    submit_parts(&s, "o4", first);
    ok_named(!s.delivered[0].ours, "whichever it is");
    /* Parts from another of our hosts say so themselves. */
    char mark[SET_MARK_SIZE] = "";
    for (int letter = 0; letter < 2; letter++) {
        snprintf(mark, sizeof(mark), "%064d;0;1750000000%s", 7 + letter,
                 letter ? "o" : "");
        s.mark = mark;
        submit_parts(&s, letter ? "o6" : "o5", none);
        ok_named(s.delivered[0].ours == (letter == 1), "by the letter of a peer");
        s.mark = NULL;
    }
}

TEST(parameters)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.w.notify = NOTIFY_NEVER;
    s.original = TEXT("rfc822;one@y");
    s.envelope_id = "first";
    s.w.priority = -2;
    stage_part(&s, "i", 1, 3, ONE);
    int64_t birth = (int64_t)s.w.id.time_ms;
    sim_loop_advance(s.w.loop, 60 * 1000);
    s.w.notify = NOTIFY_SUCCESS;
    s.original = TEXT("rfc822;two@y");
    s.w.priority = 3;
    stage_part(&s, "i", 2, 3, TWO);
    s.w.notify = NOTIFY_DEFAULT;
    s.w.priority = 0;
    stage_part(&s, "i", 3, 3, THREE);
    is_number(s.count, 2, "joined; and one notice of success, for the whole");
    const struct delivered *d = &s.delivered[0];
    is_number(d->notify, NOTIFY_SUCCESS | NOTIFY_FAILURE | NOTIFY_DELAY, "all wishes");
    is_number(d->priority, 3, "the highest priority");
    ok(d->birth_ms >= birth - 100 && d->birth_ms <= birth + 100);
    ok(s.count == 2 && strcmp(s.delivered[1].to, "a@x") == 0);
    ok_named(s.count == 2 &&
                 memmem(s.delivered[1].content.at, s.delivered[1].content.length,
                        "Original-Envelope-Id: first\r\n", 29) != NULL &&
                 memmem(s.delivered[1].content.at, s.delivered[1].content.length,
                        "Original-Recipient: rfc822;one@y\r\n", 34) != NULL,
             "ENVID and ORCPT of the first");
    ok(world_is_empty(&s.w));
}

TEST(nested)
{
    static const char nested[] = "Subject: in\r\nContent-Type: message/partial; id=%u; "
                                 "number=1; total=1\r\n\r\n";
    char header[200];
    FIXTURE(buffer, b, buffer_init, buffer_free, 10000);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(header, sizeof(header), nested, i);
        if (!buffer_add(&b, text_from(header)))
            abort();
    }
    if (!buffer_add(&b, TEXT(ONE)) || !buffer_add_byte(&b, '\0'))
        abort();
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 1, b.at);
    sim_loop_advance(s.w.loop, 5000);
    is_number(s.count, 1, "one message");
    is_number(stage_figures(&s).reassembled, 3, "check 29: E8: no deeper than that");
    ok(s.count == 1 && memmem(s.delivered[0].content.at, s.delivered[0].content.length,
                              "id=2; number=1", 14) != NULL);
    ok(world_is_empty(&s.w));
}

TEST(large)
{
    enum { SIZE = 1000 * 1000 };
    char *body = memory_array(SIZE + 1, 1), *whole = memory_array(3 * SIZE, 1);
    memset(body, 'x', SIZE);
    memcpy(body + SIZE - 2, "\r\n", 3);
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.w.settings.queue.journal_size = 4 * 1024 * 1024;
    s.w.settings.queue.journal_message_max = 4096;
    stage_restart(&s);
    stage_part(&s, "i", 3, 3, body);
    stage_part(&s, "i", 2, 3, body);
    stage_part(&s, "i", 2, 3, body);
    sim_loop_advance(s.w.loop, 2000);
    ok_named(strstr(stage_why(&s), "have") == NULL, "the repetition is absorbed");
    stage_part(&s, "i", 1, 3, ONE);
    sim_loop_advance(s.w.loop, 2000);
    snprintf(
        whole, 3 * (size_t)SIZE,
        "From: a@x\r\nSubject: whole\r\nContent-Type: text/plain\r\n\r\none\r\n%s%s",
        body, body);
    is_number(s.count, 1, "joined");
    ok(s.count == 1 &&
       text_equal(buffer_text(&s.delivered[0].content), text_from(whole)));
    sim_loop_advance(s.w.loop, 2000);
    ok(world_is_empty(&s.w));
    free(body);
    free(whole);
}

TEST(operator)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 2, ONE);
    is_number(world_operate(&s.w, MANAGER_RETRY), MANAGER_DONE, "a retry");
    world_turns(&s.w);
    is_number(s.count, 0, "changes nothing");
    is_number(world_operate(&s.w, MANAGER_HOLD), MANAGER_DONE, "held");
    is_number(stage_figures(&s).messages, 0, "it waits no more, at once");
    struct id first = s.w.id;
    stage_part(&s, "i", 2, 2, TWO);
    is_number(s.count, 0, "what is held is not joined: the other waits");
    ok(strstr(stage_why(&s), "have 1 of 2; missing parts: 1;") != NULL);
    s.w.id = first;
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_DONE, "and released");
    world_turns(&s.w);
    is_number(s.count, 1, "goes on as it is");
    stage_part(&s, "j", 1, 3, ONE);
    first = s.w.id;
    stage_part(&s, "j", 2, 3, TWO);
    ok(strstr(stage_why(&s), "have 2 of 3; missing parts: 3;") != NULL);
    struct id second = s.w.id;
    s.w.id = first;
    is_number(world_operate(&s.w, MANAGER_REMOVE), MANAGER_DONE, "removed");
    s.w.id = second;
    ok_named(strstr(stage_why(&s), "have 1 of 3; missing parts: 1, 3;") != NULL,
             "the others know at once");
    stage_part(&s, "j", 1, 3, ONE);
    stage_part(&s, "j", 3, 3, THREE);
    stage_arrived(&s, 1, "b@y", WHOLE, "sent again it completes them");
    stage_part(&s, "k", 1, 2, ONE);
    is_number(world_operate(&s.w, MANAGER_BOUNCE), MANAGER_DONE, "bounced");
    is_number(stage_figures(&s).messages, 1, "and out of its set");
    world_turns(&s.w);
    is_number(s.count, 3, "its sender is told");
    sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
    is_number(s.count, 4, "its set ends in silence, the other's is over");
    is_number(stage_figures(&s).messages, 0, "and is gone");
    ok(world_is_empty(&s.w));
}

/* Large mail, when the operator comes while it is examined. */
/* An operator can release it without holding it first. */
static void
test_operator_releases(int64_t journal)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.w.settings.queue.journal_size = journal;
    stage_restart(&s);
    stage_part(&s, "i", 2, 3, TWO);
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_DONE, "released");
    world_turns(&s.w);
    is_number(s.count, 1, "goes on as it is");
    is_number(stage_figures(&s).messages, 0, "and is in no set");
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_UNKNOWN, "gone");
    s.refuses = true;
    stage_part(&s, "j", 1, 3, ONE);
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_DONE, "while it is down");
    world_turns(&s.w);
    ok(stage_why(&s)[0] == '\0' || strstr(stage_why(&s), "fragment") == NULL);
    stage_restart(&s);
    stage_part(&s, "j", 2, 3, TWO);
    stage_part(&s, "j", 3, 3, THREE);
    is_number(stage_figures(&s).messages, 2, "it is not joined after a restart either");
    s.refuses = false;
    sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
    is_number(s.count, 4, "all as they are");
    ok(world_is_empty(&s.w));
}

static void
test_operator_early(void)
{
    enum { SIZE = 4 * 1000 * 1000 };
    static const enum manager_verb verbs[] = {MANAGER_HOLD, MANAGER_REMOVE};
    char *body = memory_array(SIZE + 1, 1);
    memset(body, 'x', SIZE);
    memcpy(body + SIZE - 2, "\r\n", 3);
    for (size_t i = 0; i < 2; i++) {
        FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
        stage_put(&s, "a@x", "b@y", "i", 2, 2, body);
        for (int t = 0; t < 100 && stage_why(&s)[0] == '\0'; t++)
            loop_turn(s.w.loop, 0);
        ok(strstr(stage_why(&s), "being examined") != NULL);
        is_number(world_operate(&s.w, verbs[i]), MANAGER_DONE, "at once");
        world_turns(&s.w);
        is_number(stage_figures(&s).messages, 0, "it has come into no set");
        is_number(s.count, 0, "nor further");
        is_number(world_files(&s.w, "mess"), i == 0, "held, or gone");
    }
    free(body);
}

/* A start does not open what would be closed to a daemon that ran. */
static void
test_overdue(void)
{
    struct stage s;
    stage_begin(&s, ROUTES);
    s.settings.on_timeout = CHANNEL_HOLD;
    stage_restart(&s);
    stage_part(&s, "i", 2, 3, TWO);
    stage_part(&s, "i", 1, 3, ONE);
    stage_stop(&s);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS);
    manager_world_start(&s.w);
    sim_loop_advance(s.w.loop, 1000);
    is_number(s.count, 0, "nothing passes");
    is_number(world_files(&s.w, "hold"), 2, "its time was over at the start: held");
    is_number(stage_figures(&s).timed_out, 2, "are counted");
    stage_restart(&s);
    is_number(world_files(&s.w, "hold"), 2, "and stay so");
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_DONE, "until released");
    world_turns(&s.w);
    is_number(s.count, 1, "as they are");
    stage_end(&s);

    stage_begin(&s, ROUTES);
    s.settings.on_timeout = CHANNEL_BOUNCE;
    stage_restart(&s);
    stage_part(&s, "i", 2, 3, TWO);
    stage_stop(&s);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS);
    manager_world_start(&s.w);
    sim_loop_advance(s.w.loop, 1000);
    ok_named(s.count == 1 && strcmp(s.delivered[0].to, "a@x") == 0, "or returned");
    ok(world_is_empty(&s.w));
    stage_end(&s);

    stage_begin(&s, ROUTES);
    stage_part(&s, "i", 2, 3, TWO);
    stage_stop(&s);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS);
    manager_world_start(&s.w);
    sim_loop_advance(s.w.loop, 1000);
    is_number(s.count, 0, "or, after others of its set may have been loaded,");
    sim_loop_advance(s.w.loop, 9 * 1000);
    ok_named(s.count == 1 && strcmp(s.delivered[0].to, "b@y") == 0, "released");
    ok(world_is_empty(&s.w));
    stage_end(&s);
}

static void
test_routes(void)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 2, ONE);
    s.w.routes_text.routes = TEXT("* smtp://h");
    struct route_table *plain = world_routes(&s.w);
    manager_reload(s.w.manager, &s.w.settings, plain);
    manager_retry_all(s.w.manager);
    world_turns(&s.w);
    is_number(s.count, 1, "a route that does not defragment lets it go");
    stage_part(&s, "i", 2, 2, TWO);
    is_number(s.count, 2, "nor are others joined with it");
    ok(world_is_empty(&s.w));
    manager_reload(s.w.manager, &s.w.settings, s.w.routes);
    route_free(&plain);
}

static void
test_limits(void)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.settings.limits = (struct set_limits){.parts = 10, .sender_sets = 2};
    channel_reload(s.channel, &s.settings);
    stage_part(&s, "i", 11, 0, TWO);
    is_number(s.count, 1, "check 31: too many parts");
    stage_part(&s, "i", 1, 2, ONE);
    stage_part(&s, "j", 1, 2, ONE);
    stage_part(&s, "k", 1, 2, ONE);
    is_number(s.count, 2, "too many sets of a sender");
    ok(world_logged(&s.w, "there are too many"));
    stage_part(&s, "j", 2, 2, "two\r\nthree\r\n");
    stage_arrived(&s, 2, "b@y", WHOLE, "what is there is joined");
}

/* One network may have so many, under any HELO. */
static void
test_clients(void)
{
    char sender[20];
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.settings.limits.client_sets = 20;
    channel_reload(s.channel, &s.settings);
    s.trust = "ext net:192.0.2.0/24";
    for (unsigned i = 0; i < 30; i++) {
        snprintf(sender, sizeof(sender), "s%c@x", 'a' + i);
        stage_part_to(&s, sender, "b@y", "i", 1, 10, ONE);
    }
    is_number(s.count, 10, "check 54: a client's limit: the rest passes");
    is_number(stage_figures(&s).messages, 20, "check 54: 20 wait");
    s.trust = "ext net:192.0.3.0/24";
    stage_part_to(&s, "zz@x", "b@y", "i", 1, 10, ONE);
    s.trust = "int net:";
    stage_part_to(&s, "zz@x", "b@y", "i", 1, 10, ONE);
    is_number(s.count, 10, "others are others");
    stage_restart(&s);
    is_number(stage_figures(&s).messages, 22, "the same after a restart");
    s.trust = "ext net:192.0.2.0/24";
    stage_part_to(&s, "zy@x", "b@y", "i", 1, 10, ONE);
    is_number(s.count, 11, "so is the limit");
}

/* The values of `defrag_key`. */
static void
test_keyings(void)
{
    static const struct {
        enum origin_keying keying;
        unsigned joined;
    } rows[] = {
        {ORIGIN_BY_SENDER, 2},
        {ORIGIN_BY_ID,     3},
        {ORIGIN_STRICT,    1}
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
        s.settings.keying = rows[i].keying;
        channel_reload(s.channel, &s.settings);
        s.trust = "ext net:192.0.2.0/24";
        stage_part_to(&s, "prvs=1234abcdef=a@x", "b@y", "same", 1, 2, ONE);
        stage_part_to(&s, "prvs=2234abcdef=a@x", "b@y", "same", 2, 2, TWO);
        stage_part_to(&s, "a@x", "b@y", "net", 1, 2, ONE);
        s.trust = "ext net:192.0.3.0/24";
        stage_part_to(&s, "a@x", "b@y", "net", 2, 2, TWO);
        stage_part_to(&s, "c@x", "b@y", "sender", 1, 2, ONE);
        stage_part_to(&s, "d@x", "b@y", "sender", 2, 2, TWO);
        is_number(stage_figures(&s).reassembled, rows[i].joined,
                  "sets by what they have in common");
    }
}

/* More than the journal holds: what waits moves to files, and is found there. */
static void
test_many(void)
{
    enum { SETS = 40, SIZE = 20000 };
    char body[SIZE + 1], id[20];
    memset(body, 'x', SIZE);
    memcpy(body + SIZE - 2, "\r\n", 3);
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.w.settings.queue.journal_size = 512 * 1024;
    s.w.settings.queue.journal_segment = 65536;
    s.w.settings.queue.journal_message_max = 30000;
    stage_restart(&s);
    for (unsigned i = 0; i < SETS; i++) {
        snprintf(id, sizeof(id), "i%u", i);
        stage_part(&s, id, 2, 3, body);
        stage_part(&s, id, 3, 3, body);
    }
    ok_named(world_files(&s.w, "info") > 0, "the journal had no room for all");
    is_number(stage_figures(&s).messages, 2 * SETS, "all wait");
    stage_restart(&s);
    sim_loop_advance(s.w.loop, 5000);
    is_number(stage_figures(&s).messages, 2 * SETS, "and do after a restart");
    for (unsigned i = 0; i < SETS; i++) {
        snprintf(id, sizeof(id), "i%u", i);
        stage_part(&s, id, 1, 3, ONE);
    }
    sim_loop_advance(s.w.loop, 5000);
    is_number(s.count, SETS, "all are joined");
    ok(world_is_empty(&s.w));
}

/* Ids without end from one sender, and from many: all is held or passed. */
static void
test_flood(void)
{
    enum { IDS = 150 };
    char id[20], sender[20];
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    s.settings.limits = (struct set_limits){.parts = 10, .sender_sets = 30, .sets = 50};
    channel_reload(s.channel, &s.settings);
    for (unsigned i = 0; i < IDS; i++) {
        snprintf(id, sizeof(id), "i%u", i);
        stage_put(&s, "a@x", "b@y", id, 1, 10, ONE);
        if (i % 10 == 9)
            world_turns(&s.w);
    }
    is_number(stage_figures(&s).messages, 30, "check 54: of one sender");
    is_number(s.count, IDS - 30, "check 54: the others pass");
    stage_clear(&s);
    for (unsigned i = 0; i < IDS; i++) {
        snprintf(sender, sizeof(sender), "%c%c@x", 'a' + i / 26, 'a' + i % 26);
        stage_put(&s, sender, "b@y", "i", 1, 10, ONE);
        if (i % 10 == 9)
            world_turns(&s.w);
    }
    is_number(stage_figures(&s).messages, 50, "of all");
    is_number(s.count, IDS + 30 - 50, "the oldest go");
    is_number(stage_figures(&s).limited, IDS - 30 + IDS + 30 - 50, "are counted");
    stage_clear(&s);
    sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
    is_number(s.count, 50, "check 54: and in the end all");
    ok(world_is_empty(&s.w));
}

static void
test_garbage(void)
{
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 2, "no header\r\n");
    stage_part(&s, "i", 2, 2, TWO);
    is_number(s.count, 2, "check 28: what cannot be joined is released");
    ok(world_logged(&s.w, "cannot be reassembled"));
    is_number(stage_figures(&s).failed, 2, "is counted");
    ok(world_is_empty(&s.w));
}

int
main(void)
{
    test_orders(0);
    test_orders(4 * 1024 * 1024);
    tap_tests("");
    test_operator_releases(0);
    test_operator_releases(1 << 20);
    test_operator_early();
    test_overdue();
    test_routes();
    test_limits();
    test_clients();
    test_keyings();
    test_garbage();
    test_many();
    test_flood();
    return done();
}
