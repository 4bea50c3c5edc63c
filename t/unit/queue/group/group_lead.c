/* queue/group/group_lead.c: slices of one process, as the lock is of a handle. The slice
 * with the bank, the questions to it, the end of one, and a slice with the bank that says
 * odd things or nothing. */
#include "queue/group/group_lead.h"

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "t/support/folder.h"
#include "t/support/net_world.h"

enum { SLICES = 4, LONG_MS = 60000 };

static const char *const question[] = {"1", "ps:a", "5000000", "60000", "4",  "0",
                                       "0", "1",    "2",       "0",     "1",  "0",
                                       "0", "0",    "-1",      "0",     "1",  "0.5"},
                         *const list[] = {"2", "pm:x", "pi:x", "list", "h"},
                         *const bye[] = {"2", "pm:x", "pi:x", "bye", "h"};
static struct disk *disk;
static struct log *log_;
static char folder[64];

struct slice {
    struct group_engine engine;
    struct redis_client client;
    struct group_settings settings;
    unsigned ready, failed, answers;
    enum redis_kind kind;
    char why[200], text[200];
};

static void
on_ready(void *context)
{
    struct slice *s = context;
    s->ready++;
}

static void
on_failed(void *context, const char *why)
{
    struct slice *s = context;
    s->failed++;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

static void
on_reply(void *context, void *subject, const struct redis_reply *reply)
{
    struct slice *s = context;
    (void)subject;
    s->answers++;
    s->kind = reply->kind;
    (void)!text_copy(s->text, sizeof(s->text), text_before(reply->text, 199));
}

static void
slice_start(struct world *w, struct slice *s, unsigned number, int64_t patience_ms)
{
    char error[200];
    struct group_texts texts = {.slice = number, .slices = SLICES};
    *s = (struct slice){.ready = 0};
    if (!group_settings_read(&texts, &s->settings, NULL) || !s->settings.has_lead)
        abort();
    struct group_lead_setup setup = {.loop = w->loop,
                                     .net = w->net,
                                     .log = log_,
                                     .disk = disk,
                                     .spool = folder,
                                     .settings = &s->settings,
                                     .slice = number,
                                     .slices = SLICES,
                                     .patience_ms = patience_ms};
    s->engine = group_lead_new(&setup, error, sizeof(error));
    if (s->engine.kind == NULL)
        abort();
    s->client =
        (struct redis_client){.ready = on_ready, .failed = on_failed, .context = s};
    s->engine.kind->join(s->engine.bank, &s->client);
}

static void
slice_end(struct slice *s)
{
    s->engine.kind->leave(s->engine.bank, &s->client);
    s->engine.kind->free(s->engine.bank);
    group_settings_free(&s->settings);
}

static bool
may_ask(const struct slice *s)
{
    return s->engine.kind->is_ready(s->engine.bank);
}

static void
ask(struct slice *s, const char *const *words, size_t count, enum group_script script)
{
    const struct redis_question asked = {on_reply, s, NULL};
    s->engine.kind->eval(s->engine.bank, script, words, count, &asked);
}

static void
ask_grant(struct world *w, struct slice *s)
{
    unsigned before = s->answers;
    ask(s, question, sizeof(question) / sizeof(*question), GROUP_SCRIPT_GRANT);
    ok_named(s->answers == before, "an answer comes later");
    until(w, s->answers > before);
}

static const char *
place(const struct slice *s)
{
    static char out[REDIS_URL_MAX];
    s->engine.kind->place(s->engine.bank, out);
    return out;
}

static void
test_two(struct world *w)
{
    struct slice one, two;
    slice_start(w, &one, 1, LONG_MS);
    until(w, may_ask(&one));
    slice_start(w, &two, 0, LONG_MS);
    until(w, may_ask(&two));
    ok_named(one.ready == 1 && two.ready == 1, "both may ask");
    is_string(place(&one), "slice 1", "the first one has the bank");
    is_string(place(&two), "slice 1", "the other one asks it");
    ask_grant(w, &one);
    ok_named(one.kind == REDIS_TEXT && strncmp(one.text, "0 1 1 0 ", 8) == 0, one.text);
    ask_grant(w, &two);
    ok_named(two.kind == REDIS_TEXT && strncmp(two.text, "0 1 1 0 ", 8) == 0, two.text);
    ask(&two, question, 1, GROUP_SCRIPT_GRANT);
    until(w, two.answers == 2);
    ok_named(two.kind == REDIS_ERROR, "an odd question is refused");
    ask(&one, question, 1, GROUP_SCRIPT_GRANT);
    until(w, one.answers == 2);
    ok_named(one.kind == REDIS_ERROR, "by itself, too");
    ask(&two, list, 5, GROUP_SCRIPT_MEMBER);
    until(w, two.answers == 3);
    is_string(two.text, "0 slice.1 0 slice.2 0 slice.3 0", "all slices are members");
    ask(&two, bye, 5, GROUP_SCRIPT_MEMBER);
    loop_turn(w->loop, 1);
    is_number(two.answers, 3, "a goodbye has no answer");
    ask(&one, list, 5, GROUP_SCRIPT_MEMBER);
    one.engine.kind->fail(one.engine.bank, "a reason");
    is_string(one.why, "a reason", "one gives up");
    until(w, one.ready == 2);
    ok_named(one.answers == 2, "what it asked has no answer, but it may ask again");
    ask(&two, question, sizeof(question) / sizeof(*question), GROUP_SCRIPT_GRANT);
    slice_end(&one);
    until(w, two.ready == 2);
    is_number(two.failed, 1, "the slice with the bank goes");
    is_string(two.why, "the slice with the bank has gone", "which is noticed");
    is_number(two.answers, 3, "what was asked has no answer");
    is_string(place(&two), "slice 0", "the other one has the bank now");
    ask_grant(w, &two);
    ok_named(strncmp(two.text, "0 1 1 0 ", 8) == 0, "an empty one");
    slice_end(&two);
}

/* --- A slice with the bank that is none ------------------------------------------- */

struct liar {
    struct world *world;
    struct net_connection *connection;
    const char *greeting, *answer;
    int lines;
};

static void
liar_on_event(void *context, enum net_event event)
{
    struct liar *l = context;
    struct text input = net_input(l->connection), line;
    if (event == NET_FAILED || event == NET_ENDED) {
        net_abort(&l->connection);
        return;
    }
    while (text_find(input, '\n') != TEXT_NONE && text_cut(&input, '\n', &line)) {
        const char *says = l->lines++ == 0 ? l->greeting : l->answer;
        net_consume(l->connection, line.length + 1);
        net_send(l->connection, text_from(says));
        input = net_input(l->connection);
    }
}

static void
liar_on_accept(void *context, struct net_connection *connection)
{
    struct liar *l = context;
    net_abort(&l->connection);
    l->connection = connection;
    l->lines = 0;
    net_attach(connection, liar_on_event, l);
}

static void
test_liar(struct world *w)
{
    static char endless[20000];
    static const struct {
        const char *greeting, *answer, *why;
    } rows[] = {
        {"",                                       "",  "no answer in time"      },
        {"no\n",                                   "",  "an odd line of the"     },
        {"{}\n",                                   "",  "an odd line of the"     },
        {"{\"answer\":1}\n",                       "",  "an odd line of the"     },
        {"{\"refused\":\"\"}\n",                   "",  "an answer to nothing"   },
        {"{\"answer\":\"\"}\n{\"answer\":\"\"}\n", "",  "an answer to nothing"   },
        {endless,                                  "",  "a long line of the"     },
        {"{\"answer\":\"\"}\n",                    "\n", "an odd line of the"    },
        {"{\"answer\":\"\"}\n",                    endless, "a long line of the" },
        {"{\"answer\":\"\"}\n",
         "{\"answer\":\"1\"}\n{\"answer\":\"2\"}\n", "an answer to nothing"},
    };
    memset(endless, 'x', sizeof(endless) - 1);
    char error[200];
    struct net_address at = {.family = NET_UNIX};
    snprintf(at.path, sizeof(at.path), "%s/lock/bank.sock.0256-0511", folder);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct liar liar = {w, NULL, rows[i].greeting, rows[i].answer, 0};
        struct net_listener *listener =
            net_listen(w->net, &at, 0600, liar_on_accept, &liar, error, sizeof(error));
        int lock = disk_lock(disk, "lock/bank", 0, 1);
        if (listener == NULL || lock < 0 ||
            disk_write_at(disk, lock, 0, TEXT("0256-0511\n")) < 0)
            abort();
        struct slice s;
        slice_start(w, &s, 0, rows[i].greeting[0] != '\0' ? LONG_MS : 0);
        until(w, may_ask(&s) || s.failed > 0);
        if (may_ask(&s) && rows[i].answer[0] != '\0')
            ask(&s, question, sizeof(question) / sizeof(*question), GROUP_SCRIPT_GRANT);
        until(w, s.failed > 0);
        ok_named(strncmp(s.why, rows[i].why, strlen(rows[i].why)) == 0, s.why);
        until(w, s.failed >= 3 || s.ready > 1);
        ok_named(s.engine.kind->is_up(s.engine.bank) == (s.failed < 3),
                 "after three times it is away");
        net_listener_free(&listener);
        net_abort(&liar.connection);
        disk_close_file(disk, lock);
        s.ready = 0;
        until(w, s.ready > 0);
        is_string(place(&s), "slice 0", "its lock is free: the other one is the bank");
        slice_end(&s);
    }
}

/* The file says what no slice is. */
static void
test_file(struct world *w)
{
    static const char *const lines[] = {"", "\n", "0000-1023\n", "0256-0511 \n", "x"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        (void)!disk_unlink(disk, "lock/bank");
        int lock = disk_lock(disk, "lock/bank", 0, 1);
        struct slice s;
        if (disk_write_at(disk, lock, 0, text_from(lines[i])) < 0)
            abort();
        slice_start(w, &s, 3, LONG_MS);
        until(w, s.failed > 0);
        is_string(s.why, "no slice has the bank yet", lines[i]);
        disk_close_file(disk, lock);
        until(w, s.ready > 0);
        slice_end(&s);
    }
}

int
main(void)
{
    struct world *w = start(NULL);
    char lock[80];
    folder_make(folder, sizeof(folder), "lead");
    snprintf(lock, sizeof(lock), "%s/lock", folder);
    mkdir(lock, 0700);
    if (disk_open(&disk, folder, false) < 0)
        abort();
    log_ = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    test_two(w);
    test_liar(w);
    test_file(w);
    loop_turn(w->loop, 0);
    disk_close(&disk);
    log_free(&log_);
    net_finish(w);
    folder_remove(folder);
    return done();
}
