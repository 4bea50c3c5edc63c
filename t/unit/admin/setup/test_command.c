/* Refusals of `petrel test`, its output without a daemon, and its letter in a real spool;
 * t/e2e/test_command.t has the rest. */
#include "admin/setup/test_command.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static struct command_world world;

static void
waits(const char *line)
{
    is_refused(run(test_command, line), EX_TEMPFAIL,
               "petrel test: no daemon runs (control socket");
    ok(strstr(world.errors, " is safe in ") &&
       strstr(world.errors, "run `systemctl start petrel`"));
}

static const char *to, *from;
static bool shows;
static char id[ID_LENGTH + 1];

static int
send(int count, char **arguments, const struct options *options)
{
    (void)count, (void)arguments;
    struct test_letter letter = {.to = to, .from = from, .shows = shows};
    struct loop *loop = loop_new();
    int code = test_send(&letter, loop, options);
    memcpy(id, letter.id, sizeof(id));
    loop_free(&loop);
    return code;
}

static bool
count_one(void *context, struct id one, enum queue_place place)
{
    (void)one, (void)place;
    ++*(size_t *)context;
    return true;
}

/* The message with that id, out of the spool; NULL without one. total: how many are there. */
static struct envelope *
look(size_t *total)
{
    char error[512];
    struct id name;
    struct queue *queue;
    struct options o = command_world_options(&world);
    struct queue_settings settings = o.manager.queue;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    *total = 0;
    if (queue_open_injector(&queue, log, &settings, error, sizeof(error)) != 0)
        abort();
    if (queue_each(queue, count_one, total) != 0)
        abort();
    struct envelope *e =
        id_parse(text_from(id), &name) ? queue_load(queue, name) : NULL;
    queue_close(&queue);
    log_free(&log);
    return e;
}

static void
accepts(const char *recipient, const char *sender, const char *want_to,
        const char *want_from)
{
    size_t before, after;
    struct envelope *e = look(&before);
    envelope_free(&e);
    to = recipient;
    from = sender;
    is_number(run(send, ""), 0, recipient);
    e = look(&after);
    is_number((long)after, (long)before + 1, "one message more");
    ok(e != NULL && e->count == 1 && e->ours);
    is_text(e->recipients[0].address, text_from(want_to), "its recipient");
    if (want_from != NULL)
        is_text(e->sender, text_from(want_from), "its sender");
    ok(e->content_size > 0 && e->prefix.length > 0);
    envelope_free(&e);
}

static void
refuses(const char *recipient, const char *sender, const char *why)
{
    size_t before, after;
    struct envelope *e = look(&before);
    envelope_free(&e);
    to = recipient;
    from = sender;
    is_refused(run(send, ""), EX_DATAERR, why);
    e = look(&after);
    envelope_free(&e);
    is_number((long)after, (long)before, "nothing is queued");
}

static void
test_letters(void)
{
    static char longest[12 * 1024];
    memset(longest, 'x', sizeof(longest) - 1);
    accepts("bob@b.test", "ann@a.test", "bob@b.test", "ann@a.test");
    accepts("<bob@B.test>", "", "bob@b.test", "");
    accepts("bob@b.test", "<>", "bob@b.test", "");
    accepts("bob@b.test", NULL, "bob@b.test", NULL);
    static const char *const wrong[] = {
        "",   "a@b@c", "a@b.test, c@d.test", "a b@c.test", "a@b.test\r\nX: y",
        "-f", longest};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (strcmp(wrong[i], "-f") != 0) /* a local part like any other */
            refuses(wrong[i], NULL,
                    "petrel test: this is not one mail address; write NAME@DOMAIN");
        if (wrong[i][0] != '\0' && strcmp(wrong[i], "-f") != 0)
            refuses("bob@b.test", wrong[i],
                    "petrel test: the sender is not a mail address; write --from "
                    "NAME@DOMAIN");
    }
    shows = true;
    accepts("bob@b.test", "ann@a.test", "bob@b.test", "ann@a.test");
    ok(strstr(world.output, "From: <ann@a.test>\r\nTo: <bob@b.test>\r\n") ==
       world.output);
}

int
main(void)
{
    static const char *const wrong[] = {"",
                                        "a@b.test c@d.test",
                                        "-v",
                                        "--from",
                                        "--from a@b.test",
                                        "a@b.test --for",
                                        "a@b.test --for x",
                                        "a@b.test --for 25h",
                                        "a@b.test --json",
                                        "-x a@b.test"};
    command_world_begin(&world, "test_command");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        is_refused(run(test_command, wrong[i]), EX_USAGE,
                   "usage: petrel test [-v] ADDRESS ");
    is_refused(run(test_command, "a@b@c"), EX_DATAERR,
               "petrel test: this is not one mail address");
    waits("a@b.test");
    waits("--for 10s a@b.test --from c@d.test");
    test_letters();
    command_world_end(&world);
    return done();
}
