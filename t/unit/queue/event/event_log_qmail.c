/* The log in qmail's words: every line is one of its grammar, and they add up as its
 * readers count. */
/* link: t/sim/loop.c */
#include "queue/event/event_log.h"

#include "t/support/manager_world.h"

#include <limits.h>
#include <regex.h>

/* qmail-log(5); what follows "uid" and is ours stands at the end. */
static const char *const grammar[] = {
    "^new msg [0-9]+$",
    "^info msg [0-9]+: bytes [0-9]+ from <[!-~]*> qp [0-9]+ uid [0-9]+ id [0-9A-Z-]+$",
    "^starting delivery [0-9]+: msg [0-9]+ to (local|remote) [!-~]+$",
    "^status: local [0-9]+/[0-9]+ remote [0-9]+/[0-9]+$",
    "^delivery [0-9]+: (success|failure|deferral): [!-~]*/$",
    "^bounce msg [0-9]+ qp [0-9]+$",
    "^triple bounce: discarding bounce/[0-9]+$",
    "^end msg [0-9]+$",
    "^status: exiting$",
    "^(warning|alert): ",
    "^queue: ", /* sentences of others */
};
enum { RULES = sizeof(grammar) / sizeof(grammar[0]) };

static regex_t rules[RULES];

struct tally {
    unsigned lines[RULES];
    unsigned strange;
    unsigned running, wrong; /* by "starting", "delivery" and "status" */
};

static void
count_status(struct tally *t, const char *line)
{
    unsigned local, remote, limits[2];
    if (sscanf(line, "status: local %u/%u remote %u/%u", &local, &limits[0], &remote,
               &limits[1]) == 4)
        t->wrong += local + remote != t->running || limits[0] != limits[1];
}

static void
count_line(struct tally *t, const char *line)
{
    for (int i = 0; i < RULES; i++)
        if (regexec(&rules[i], line, 0, NULL, 0) == 0) {
            t->lines[i]++;
            t->running += i == 2;
            t->running -= i == 4;
            count_status(t, line);
            return;
        }
    printf("# strange: %s\n", line);
    t->strange++;
}

static struct tally
tally(const struct world *w)
{
    struct tally t = {0};
    char *lines = text_string(buffer_text(&w->lines)), *rest = lines, *line;
    while ((line = strsep(&rest, "\n")))
        if (*line != '\0')
            count_line(&t, line);
    free(lines);
    return t;
}

static void
begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    log_restyle(w->log, LOG_STYLE_QMAIL, LOG_LEVEL_INFO);
    buffer_clear(&w->lines);
}

/* '#' in format stands for the number. */
static bool
says(const struct world *w, const char *format, unsigned long number)
{
    char want[200];
    const char *mark = strchr(format, '#');
    int before = mark ? (int)(mark - format) : (int)strlen(format);
    snprintf(want, sizeof(want), "%.*s", before, format);
    if (mark)
        snprintf(want + before, sizeof(want) - (size_t)before, "%lu%s", number,
                 mark + 1);
    return world_logged(w, want);
}

static void
test_story(void)
{
    struct world w;
    char id[ID_LENGTH + 1];
    begin(&w, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "good@b.test bad@b.test later@b.test");
    unsigned long n = w.id.hash;
    id_format(w.id, id);
    ok(says(&w, "new msg #\n", n));
    ok(says(&w, "info msg #: bytes ", n));
    ok(world_logged(&w, id));
    ok(says(&w, " from <ann@a.test> qp 0 uid 0 id ", 0));
    ok(says(&w, "starting delivery 1: msg # to remote good@b.test\n", n));
    ok(says(&w, "starting delivery 2: msg # to remote bad@b.test\n", n));
    ok(says(&w, "delivery 1: success: Ok/\n", 0));
    ok(says(&w, "delivery 2: failure: no_such_user/\n", 0));
    ok(says(&w, "delivery 3: deferral: come_again/\n", 0));
    ok(!says(&w, "end msg #\n", n));
    struct tally t = tally(&w);
    is_number(t.strange + t.wrong + t.running, 0,
              "all of it is the grammar, and adds up");
    is_number(t.lines[3], 8, "a status for each change, of the bounce's delivery, too");

    w.all_good = true;
    sim_loop_advance(w.loop, 3600 * 1000);
    ok(says(&w, "bounce msg # qp 0\n", n));
    ok(says(&w, "end msg #\n", n));
    ok(says(&w, " from <> qp 0 uid 0 id ", 0));
    ok(says(&w, "to remote ann@a.test\n", 0));
    t = tally(&w);
    is_number(t.lines[0], 2, "the message and its bounce are new");
    is_number(t.lines[7], 2, "and both end");
    world_stop(&w);
    manager_world_start(&w);
    manager_world_end(&w);
}

/* Text chosen by peers and senders must not look like something else. */
static void
test_hostile(void)
{
    struct world w;
    struct tally t;
    begin(&w, "* error:5.7.1 no end msg 5");
    world_deliver(&w, "a%b%\"@a.test", "x@b.test");
    t = tally(&w);
    is_number(t.strange, 0, "no line that is none");
    ok(world_logged(&w, ": failure: "));
    ok(!world_logged(&w, "%"));
    manager_world_end(&w);
}

/* Without a beginning: no session was ever open. Held, removed, and a style that
 * changes meanwhile: nothing stays counted. */
static void
test_odd_ends(void)
{
    struct world w;
    begin(&w, "none.test error:5.1.2 no\n* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "x@none.test");
    ok(says(&w, "starting delivery 1: msg # to remote x@none.test\n", w.id.hash));
    ok(world_logged(&w, "delivery 1: failure: "));
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    struct delivery_request request;
    if (!manager_take(w.manager, w.fakes->session, &request))
        abort();
    ok(world_logged(&w, "\nstatus: local 0/100 remote 1/100\n"));
    log_restyle(w.log, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    fake_settle(w.fakes, &request);
    ok(world_logged(&w, "to=<good@b.test>"));
    log_restyle(w.log, LOG_STYLE_QMAIL, LOG_LEVEL_INFO);
    buffer_clear(&w.lines);
    world_unstall(&w);
    world_turns(&w);
    world_deliver(&w, "ann@a.test", "good@b.test");
    struct tally t = tally(&w);
    is_number(t.strange + t.wrong + t.running, 0, "the next one is alone");

    struct event one = {.kind = EVENT_ATTEMPTED,
                        .id = {.time_ms = 1, .hash = 76},
                        .recipient = TEXT("y@b.test"),
                        .delivery = 1,
                        .is_local = true};
    struct event other = one;
    other.delivery = UINT_MAX;
    other.is_local = false;
    event_hub_limit(w.events, 5);
    event_tell(w.events, &one);
    event_tell(w.events, &other);
    ok(world_logged(&w, "\nstatus: local 1/5 remote 1/5\n"));
    one.kind = other.kind = EVENT_WITHDRAWN;
    event_tell(w.events, &one);
    ok(world_logged(&w, "\ndelivery 1: deferral: not_made/\n"
                        "status: local 0/5 remote 1/5\n"));
    event_tell(w.events, &other);
    ok(world_logged(&w, "\ndelivery 4294967295: deferral: not_made/\n"
                        "status: local 0/5 remote 0/5\n"));
    event_tell(w.events, &(struct event){.kind = EVENT_DISCARDED, .id = one.id});
    ok(world_logged(&w, "\ntriple bounce: discarding bounce/76\n"));
    event_tell(w.events, &(struct event){.kind = EVENT_STOPPING});
    ok(world_logged(&w, "status: exiting\n"));
    manager_world_end(&w);
}

/* A program that counts sees the limit in force. */
static void
test_limit(void)
{
    struct world w;
    struct delivery_request request;
    begin(&w, "* smtp://sink.test");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    if (!manager_take(w.manager, w.fakes->session, &request))
        abort();
    ok(world_logged(&w, "\nstatus: local 0/100 remote 1/100\n"));
    struct manager_settings changed = w.settings;
    changed.sched.session_limit = 7;
    manager_reload(w.manager, &changed, w.routes);
    fake_settle(w.fakes, &request);
    ok(world_logged(&w, "\nstatus: local 0/7 remote 0/7\n"));
    world_unstall(&w);
    world_turns(&w);
    manager_world_end(&w);
}

int
main(void)
{
    for (int i = 0; i < RULES; i++)
        if (regcomp(&rules[i], grammar[i], REG_EXTENDED | REG_NOSUB) != 0)
            abort();
    test_story();
    test_hostile();
    test_odd_ends();
    test_limit();
    for (int i = 0; i < RULES; i++)
        regfree(&rules[i]);
    return done();
}
