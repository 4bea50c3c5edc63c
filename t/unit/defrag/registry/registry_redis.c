/* defrag/registry/registry_redis.c against a server that gives any reply of the test, or
 * none: the commands, the meaning of each reply, and that nobody waits too long. */
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/registry_kit.h"

/* A server with one connection at a time. */
struct fake {
    struct world w;
    struct net_listener *listener;
    struct net_connection *connection;
    struct buffer heard, unsaid; /* of all connections */
    struct loop_timer pump;
    const char *greeting; /* the reply to the first SET of a connection */
    const char *reply;    /* to all later commands but AUTH and SELECT */
    bool is_silent, cuts; /* says nothing; says a byte in a piece */
    bool ends;            /* at the first claim */
    unsigned accepted, sets;
};

static bool
holds(struct text t, const char *words)
{
    char *copy = text_string(t);
    bool found = strstr(copy, words) != NULL;
    free(copy);
    return found;
}

/* A byte in a turn. */
static void
on_pump(void *context)
{
    struct fake *f = context;
    if (f->connection == NULL || f->unsaid.length == 0)
        return;
    net_send(f->connection, text_before(buffer_text(&f->unsaid), 1));
    buffer_take(&f->unsaid, 1);
    loop_timer_start(f->w.loop, &f->pump, 1, on_pump, f);
}

static void
say(struct fake *f, const char *words)
{
    if (!f->cuts) {
        net_send(f->connection, text_from(words));
        return;
    }
    if (!buffer_add(&f->unsaid, text_from(words)))
        abort();
    loop_timer_start(f->w.loop, &f->pump, 0, on_pump, f);
}

static void
answer_command(struct fake *f, struct text command)
{
    if (holds(command, "\r\nAUTH\r\n") || holds(command, "\r\nSELECT\r\n")) {
        say(f, "+OK\r\n");
        return;
    }
    f->sets++;
    if (f->sets > 1 && f->ends)
        net_close(&f->connection);
    else
        say(f, f->sets == 1 ? f->greeting : f->reply);
}

static void
on_client(void *context, enum net_event event)
{
    struct fake *f = context;
    if (event == NET_ENDED || event == NET_FAILED)
        net_abort(&f->connection);
    if (event != NET_INPUT)
        return;
    struct text input = net_input(f->connection);
    char *copy = text_string(input), *at = copy;
    if (!buffer_add(&f->heard, input))
        abort();
    net_consume(f->connection, input.length);
    while (at != NULL && !f->is_silent && f->connection != NULL) {
        char *next = strstr(at + 1, "\r\n*");
        answer_command(
            f, text_of(at, next == NULL ? strlen(at) : (size_t)(next - at + 2)));
        at = next == NULL ? NULL : next + 2;
    }
    free(copy);
}

static void
on_accept(void *context, struct net_connection *c)
{
    struct fake *f = context;
    if (f->connection != NULL)
        net_abort(&f->connection);
    f->connection = c;
    f->accepted++;
    f->sets = 0;
    net_attach(c, on_client, f);
}

static const char *
setting_of(const struct fake *f, const char *login, const char *database)
{
    static char setting[256];
    snprintf(setting, sizeof(setting), "redis://%s127.0.0.1:%u%s", login,
             net_listener_address(f->listener)->port, database);
    return setting;
}

static void
fake_open(struct fake *f)
{
    struct net_address any;
    char error[256];
    *f = (struct fake){.greeting = "$-1\r\n", .reply = "$-1\r\n"};
    registry_world_open(&f->w);
    world_connect(&f->w);
    buffer_init(&f->heard, 1 << 20);
    buffer_init(&f->unsaid, 1 << 20);
    if (!net_address_parse(TEXT("127.0.0.1:0"), 0, &any))
        abort();
    f->listener = net_listen(f->w.net, &any, 0, on_accept, f, error, sizeof(error));
    if (f->listener == NULL)
        abort();
}

static void
fake_start_with(struct fake *f, const char *login, const char *database)
{
    char error[256];
    f->w.registry =
        registry_of(&f->w, "a.example", setting_of(f, login, database), error);
    if (f->w.registry == NULL)
        abort();
}

static void
fake_fall_silent(struct fake *f, int64_t patience_ms)
{
    f->is_silent = true;
    registry_be_patient(f->w.registry, patience_ms);
}

static bool
has_heard_claims(const struct fake *f, unsigned count)
{
    char *all = text_string(buffer_text(&f->heard)), *at = all;
    for (; count > 0 && at != NULL; count--) {
        at = strstr(at, "SET\r\n");
        if (at != NULL)
            at++;
    }
    free(all);
    return at != NULL;
}

static void
fake_end(struct fake *f)
{
    registry_free(&f->w.registry);
    if (f->connection != NULL)
        net_abort(&f->connection);
    net_listener_free(&f->listener);
    buffer_free(&f->heard);
    buffer_free(&f->unsaid);
    loop_timer_stop(f->w.loop, &f->pump);
    registry_world_end(&f->w);
}

static void
fake_start(struct fake *f)
{
    fake_open(f);
    fake_start_with(f, "", "");
    is_string(sure(&f->w, 99), "own", "it is ready");
}

TEST(bytes)
{
    struct fake f;
    char want[1024];
    fake_open(&f);
    fake_start_with(&f, "user:p%25w@", "/3");
    until(&f.w, f.sets > 0);
    ok_named(text_starts(buffer_text(&f.heard),
                         TEXT("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$3\r\np%w\r\n"
                              "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
                              "*7\r\n$3\r\nSET\r\n$25\r\ndf:probe-")),
             "the greeting: who we are, which database, and a claim to try");
    ok_named(holds(buffer_text(&f.heard), "$2\r\nPX\r\n$4\r\n1000\r\n"),
             "which expires in a second");
    pass_ms(&f.w, 10);
    buffer_clear(&f.heard);
    is_string(sure_for(&f.w, 1, 176400000), "own", "a claim");
    unsigned char key[REGISTRY_KEY_SIZE];
    char hex[REGISTRY_HEX_SIZE];
    key_from(1, key);
    text_hex(key, REGISTRY_KEY_SIZE, hex);
    snprintf(want, sizeof(want),
             "*7\r\n$3\r\nSET\r\n$67\r\ndf:%s\r\n$9\r\na.example\r\n$2\r\nNX\r\n"
             "$3\r\nGET\r\n$2\r\nPX\r\n$9\r\n176400000\r\n",
             hex);
    is_text(buffer_text(&f.heard), text_from(want), "is one command");
    buffer_clear(&f.heard);
    close_key(&f.w, 1, 5000);
    until(&f.w, f.heard.length > 0);
    ok_named(text_starts(buffer_text(&f.heard), TEXT("*6\r\n$4\r\nEVAL\r\n")) &&
                 holds(buffer_text(&f.heard), "$9\r\na.example\r\n$4\r\n5000\r\n"),
             "closing is one too");
    ok_named(!has_said(&f.w, "p%w"), "no password in the log");
    fake_end(&f);
    fake_open(&f);
    fake_start_with(&f, ":pw@", "");
    until(&f.w, f.sets > 0);
    ok_named(text_starts(buffer_text(&f.heard),
                         TEXT("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*7\r\n$3\r\nSET\r\n")),
             "a password alone, and the first database");
    fake_end(&f);
}

/* The command sent after this reply to the look for our name. */
static void
check_name(const char *reply, const char *sent, const char *name)
{
    char want[512];
    FIXTURE(fake, f, fake_start, fake_end);
    f.reply = reply;
    sure(&f.w, 1); /* the look at the start has been answered */
    buffer_clear(&f.heard);
    snprintf(f.w.registry->name.instance, INSTANCE_SIZE, "0123456789abcdef");
    registry_redis_check_name(f.w.registry->redis);
    sure(&f.w, 1);
    snprintf(want, sizeof(want),
             "*7\r\n$3\r\nSET\r\n$16\r\ndfhost:a.example\r\n$16\r\n0123456789abcdef"
             "\r\n$2\r\nNX\r\n$3\r\nGET\r\n$2\r\nPX\r\n$5\r\n60000\r\n*7");
    ok_named(text_starts(buffer_text(&f.heard), text_from(want)), "our name is set");
    pass_ms(&f.w, 10);
    ok_named(holds(buffer_text(&f.heard), "EVAL") == (sent != NULL), name);
    if (sent != NULL)
        ok_named(holds(buffer_text(&f.heard), sent), "... for a minute more");
    is_number(registry_counts(f.w.registry).failures, 0, "it is no failure");
    ok_named(registry_is_up(f.w.registry), "nor does it end anything");
}

TEST(name)
{
    check_name("$-1\r\n", NULL, "it was nobody's");
    check_name("$16\r\n0123456789abcdef\r\n",
               "$16\r\ndfhost:a.example\r\n$16\r\n0123456789abcdef\r\n$5\r\n60000\r\n",
               "ours is refreshed");
    check_name("$16\r\n0123456789abcdee\r\n", NULL, "another's is not");
    check_name("$3\r\na b\r\n", NULL, "nor what is no instance at all");
}

TEST(old)
{
    FIXTURE(fake, f, fake_open, fake_end);
    f.greeting = "-ERR syntax error\r\n";
    fake_start_with(&f, "", "");
    is_string(sure(&f.w, 99), "own", "a server before Redis 7");
    is_number(f.accepted, 1, "is asked in another way at once");
    buffer_clear(&f.heard);
    f.reply = "$9\r\nb.example\r\n";
    is_string(sure_for(&f.w, 1, 176400000), "b.example", "its answers are the same");
    ok_named(
        text_starts(buffer_text(&f.heard), TEXT("*6\r\n$4\r\nEVAL\r\n")) &&
            holds(buffer_text(&f.heard), "\r\n$9\r\na.example\r\n$9\r\n176400000\r\n"),
        "to one command");
    is_number(registry_counts(f.w.registry).failures, 0, "which is no failure");
    f.greeting = "$-1\r\n";
    net_close(&f.connection);
    until(&f.w, f.accepted > 1);
    buffer_clear(&f.heard);
    is_string(sure(&f.w, 1), "b.example", "the next one may be new");
    ok_named(holds(buffer_text(&f.heard), "$3\r\nSET\r\n"), "and is asked as such");
}

struct example {
    const char *reply, *told, *name;
    bool good; /* the connection stays */
};

static const struct example replies[] = {
    {"$-1\r\n",                              "own",         "nil",                  true },
    {"$9\r\nb.example\r\n",                  "b.example",   "another's name",       true },
    {"$9\r\na.example\r\n",                  "own",         "our name",             true },
    {"$9\r\nA.EXAMPLE\r\n",                  "own",         "our name in capitals", true },
    {"$3\r\na b\r\n",                        "unavailable", "no name",              true },
    {"$0\r\n\r\n",                           "unavailable", "an empty one",         true },
    {"$4\r\na\r\nb\r\n",                     "unavailable", "two lines",            true },
    {"-ERR no\r\n",                          "unavailable", "an error",             false},
    {"-LOADING Redis is loading\r\n",        "unavailable", "LOADING",              false},
    {"-READONLY You can't write\r\n",        "unavailable", "READONLY",             false},
    {"-OOM command not allowed\r\n",         "unavailable", "OOM",                  false},
    {"-MOVED 1 127.0.0.1:1\r\n",             "unavailable", "MOVED",                false},
    {"-NOAUTH Authentication required.\r\n", "unavailable", "NOAUTH",               false},
    {"-CLUSTERDOWN The cluster is down\r\n", "unavailable", "CLUSTERDOWN",          false},
    {"-BUSY Redis is busy\r\n",              "unavailable", "BUSY",                 false},
    {"-WRONGTYPE Operation\r\n",             "unavailable", "WRONGTYPE",            false},
    {"+OK\r\n",                              "unavailable", "a status",             false},
    {":1\r\n",                               "unavailable", "a number",             false},
    {"$-1\r\n$-1\r\n",                       "own",         "a reply too many",     false},
};

TEST(replies)
{
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        for (int cuts = 0; cuts < 2; cuts++) {
            FIXTURE(fake, f, fake_start, fake_end);
            f.reply = replies[i].reply;
            f.cuts = cuts != 0;
            bool is_known = strcmp(replies[i].told, "unavailable") != 0;
            is_string(is_known ? sure(&f.w, 1) : claim(&f.w, 1), replies[i].told,
                      replies[i].name);
            f.cuts = false;
            until_ms(&f.w, replies[i].good ? 20 : 60000, f.accepted > 1);
            is_number(f.accepted > 1, !replies[i].good, "... and the connection");
            ok_named(registry_is_up(f.w.registry), "one failure is not the end");
        }
    }
}

/* Input that is no reply at all: asked again on the next connection, as long as there
 * is time.
 */
static const char *const nonsense[] = {"*1\r\n$1\r\na\r\n",
                                       "*1000000000\r\n",
                                       "%1\r\n",
                                       "_\r\n",
                                       "HTTP/1.1 400\r\n\r\n",
                                       "$-2\r\n",
                                       "$x\r\n",
                                       "\r\n",
                                       "$99999999999999999999\r\n",
                                       "\n"};

TEST(nonsense)
{
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        struct told t;
        FIXTURE(fake, f, fake_start, fake_end);
        f.reply = nonsense[i];
        claim_start(&f.w, &t, 1, 1000);
        until(&f.w, f.accepted > 1);
        is_number(t.times, 0, "nonsense is no answer");
        f.reply = "$9\r\nb.example\r\n";
        until(&f.w, t.times > 0);
        is_string(told_text(&t), "b.example", "that comes by the next connection");
        is_number(registry_counts(f.w.registry).failures, 1, "one failure is counted");
    }
}

TEST(endless_reply)
{
    struct fake f;
    struct told t;
    char *much = memory_new(200001);
    memset(much, 'x', 200000);
    memcpy(much, "$900000000\r\n", 12);
    fake_start(&f);
    f.reply = much;
    claim_start(&f.w, &t, 1, 1000);
    until(&f.w, f.accepted > 1);
    ok_named(f.accepted > 1, "a reply without end ends the connection");
    f.reply = "$-1\r\n";
    until(&f.w, t.times > 0);
    fake_end(&f);
    fake_start(&f);
    memset(much, 'x', 200000);
    much[0] = '-';
    f.reply = much;
    claim_start(&f.w, &t, 1, 1000);
    until(&f.w, f.accepted > 1);
    ok_named(f.accepted > 1, "so does a line without end");
    fake_end(&f);
    free(much);
}

TEST(greetings)
{
    static const struct example greetings[] = {
        {"-NOAUTH Authentication required.\r\n",          "SET: NOAUTH Authentication", "NOAUTH",
         false                                                                                                                            },
        {"-ERR syntax error\r\n-ERR unknown command\r\n", "SET: ERR unknown command",
         "a server that is too old",                                                                                                 false},
        {"-READONLY You can't\r\n",                       "SET: READONLY",              "one that does not write",                   false},
        {"+OK\r\n",                                       "an odd reply to SET",        "one that is none",                          false},
        {"220 mail.example ESMTP\r\n",                    "its reply is malformed",   "another kind",
         false                                                                                                                            },
        {"-ERR \033[2J\r\n",                              "\\x1b",                      "one that would like to write on terminals",
         false                                                                                                                            },
    };
    for (size_t i = 0; i < sizeof(greetings) / sizeof(greetings[0]); i++) {
        FIXTURE(fake, f, fake_open, fake_end);
        f.greeting = greetings[i].reply;
        fake_start_with(&f, "", "");
        until(&f.w, !registry_is_up(f.w.registry));
        is_number(f.accepted, 3, "after three tries it is down");
        ok_named(has_said(&f.w, greetings[i].told), greetings[i].name);
        is_string(claim(&f.w, 1), "unavailable", "nothing is known then");
    }
}

static void
some_turns(struct world *w)
{
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
}

TEST(silent)
{
    struct told t, others[3];
    FIXTURE(fake, f, fake_start, fake_end);
    clock_stop();
    some_turns(&f.w); /* the loop's time is that of its last turn */
    fake_fall_silent(&f, REGISTRY_ANSWER_MS); /* as long as in life */
    claim_start(&f.w, &t, 1, 1000);
    for (unsigned i = 0; i < 3; i++)
        claim_start(&f.w, &others[i], 2 + i, 1000);
    some_turns(&f.w);
    clock_pass(REGISTRY_ANSWER_MS - 1);
    some_turns(&f.w);
    is_number(t.times, 0, "a server that falls silent is waited for");
    clock_pass(2);
    some_turns(&f.w);
    is_string(told_text(&t), "unavailable", "and not for long");
    is_number(others[0].times + others[1].times + others[2].times, 3,
              "so are all that were asked with it");
    clock_go();
    registry_be_patient(f.w.registry, IMPATIENT_MS);
    until(&f.w, !registry_is_up(f.w.registry));
    ok_named(!registry_is_up(f.w.registry), "silent in greetings too, it is down");
    ok_named(has_said(&f.w, "no answer in time"), "which is told");
    claim_start(&f.w, &t, 1, 1000);
    loop_turn(f.w.loop, 0);
    loop_turn(f.w.loop, 0);
    is_string(told_text(&t), "unavailable", "now it is not waited for");
    is_number(f.w.recovered, 0, "nothing has recovered");
}

TEST(recovery)
{
    FIXTURE(fake, f, fake_open, fake_end);
    fake_start_with(&f, "", "");
    fake_fall_silent(&f, IMPATIENT_MS);
    breaker_of(f.w.registry)->pause_ms = breaker_of(f.w.registry)->pause_max_ms = IMPATIENT_MS;
    is_string(claim(&f.w, 1), "unavailable", "silent from the beginning");
    until(&f.w, !registry_is_up(f.w.registry));
    unsigned accepted = f.accepted;
    until(&f.w, f.accepted > accepted);
    ok_named(f.accepted > accepted, "it is tried again and again");
    ok_named(!registry_is_up(f.w.registry), "and is down meanwhile");
    registry_be_patient(f.w.registry, PATIENCE_MS);
    f.is_silent = false;
    until(&f.w, f.w.recovered > 0);
    ok_named(registry_is_up(f.w.registry), "one answer and it is up");
    is_string(sure(&f.w, 1), "own", "it answers");
    pass_ms(&f.w, 2 * IMPATIENT_MS);
    is_number(f.w.recovered, 1, "who had no answer hears of it once");
    ok_named(has_said(&f.w, "answers again"), "and the log");
    f.reply = "-ERR\r\n";
    is_string(claim(&f.w, 2), "unavailable", "another failure");
    pass_ms(&f.w, 3 * IMPATIENT_MS);
    is_number(f.w.recovered, 1, "is told again after five seconds at the earliest");
}

TEST(ended)
{
    struct fake f;
    struct told t[2];
    fake_start(&f);
    f.ends = true;
    claim_start(&f.w, &t[0], 1, 1000);
    claim_start(&f.w, &t[1], 2, 1000);
    until(&f.w, f.accepted > 1);
    f.ends = false;
    f.reply = "$9\r\nb.example\r\n";
    until(&f.w, t[1].times > 0);
    is_string(told_text(&t[0]), "b.example", "the connection ends: asked again");
    is_string(told_text(&t[1]), "b.example", "so is the second, in order");
    fake_end(&f);
    /* Nobody is asked: ended by the server, which is idle. */
    fake_start(&f);
    net_close(&f.connection);
    until(&f.w, f.accepted > 1);
    is_string(sure(&f.w, 1), "own", "an idle connection that ends is made anew");
    fake_end(&f);
}

TEST(cancel)
{
    struct told t[3];
    FIXTURE(fake, f, fake_start, fake_end);
    f.is_silent = true;
    for (unsigned i = 0; i < 3; i++)
        claim_start(&f.w, &t[i], i, 1000);
    until(&f.w, has_heard_claims(&f, 5));
    registry_cancel(f.w.registry, &t[1].claim);
    f.is_silent = false;
    say(&f, "$1\r\nx\r\n$1\r\ny\r\n$1\r\nz\r\n");
    until(&f.w, t[2].times > 0);
    is_string(told_text(&t[0]), "x", "the first answer is for the first");
    is_number(t[1].times, 0, "the second one nobody wants");
    is_string(told_text(&t[2]), "z", "the third for the third");
    f.is_silent = true;
    for (unsigned i = 0; i < 3; i++)
        claim_start(&f.w, &t[i], i, 1000);
    until(&f.w, has_heard_claims(&f, 8));
    registry_free(&f.w.registry);
    pass_ms(&f.w, 20);
    is_number(t[0].times + t[1].times + t[2].times, 0, "freed, no answer comes");
}

TEST(nobody)
{
    struct world w;
    struct told t;
    /* Port 1 refuses; of a name that does not exist nothing is known. */
    registry_world_start(&w, "a.example", "redis://127.0.0.1:1");
    is_string(claim(&w, 1), "unavailable", "nobody is there");
    until(&w, !registry_is_up(w.registry));
    ok_named(!registry_is_up(w.registry), "that is soon known");
    ok_named(has_said(&w, "redis://127.0.0.1:1/0 does not answer"), "and told");
    registry_world_end(&w);
    registry_world_start(&w, "a.example", "redis://no.such.name.example");
    registry_be_patient(w.registry, IMPATIENT_MS);
    claim_start(&w, &t, 1, 1000);
    is_number(t.times, 0, "a name is looked for while the loop goes on");
    until(&w, t.times > 0);
    is_string(told_text(&t), "unavailable", "and is not found");
    registry_world_end(&w);
}

TEST(complaint)
{
    FIXTURE(fake, f, fake_start, fake_end);
    f.reply = "-NOPERM this user has no permissions to run the 'eval' command\r\n";
    close_key(&f.w, 1, 1000);
    close_key(&f.w, 2, 1000);
    until(&f.w, f.w.said.length > 0);
    ok_named(has_said(&f.w, "they will expire: NOPERM"),
             "a server that does not let us close sets is told");
    is_number(registry_counts(f.w.registry).failures, 0, "and is no failure");
    f.reply = "$-1\r\n";
    is_string(sure(&f.w, 1), "own", "claims go on");
}

int
main(void)
{
    char error[256] = "";
    struct world w;
    if (*redis_version() == '\0') {
        printf("1..0 # SKIP built without hiredis\n");
        return 0;
    }
    ok(text_starts(text_from(redis_version()), TEXT("hiredis ")));
    tap_tests("");
    registry_world_open(&w);
    world_connect(&w);
    ok_named(registry_of(&w, "a.example", "rediss://h", error) == NULL &&
                 strstr(error, "certificates") != NULL,
             "TLS without anyone to trust is refused");
    registry_world_end(&w);
    return done();
}
