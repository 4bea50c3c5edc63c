/* The explanation for a message that waits, and its lines for people. */
/* link: t/sim/loop.c */
#include "admin/view/why.h"

#include "base/text.h"
#include "t/support/manager_world.h"
#include "t/support/printed.h"
#include "t/support/tap.h"

#include <string.h>

static json_t *
asked(struct world *w)
{
    json_t *answer = json_object();
    why_add(answer, w->manager, w->id);
    return answer;
}

static const json_t *
hop_at(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer, "hops"), i);
}

static void
is_at(const json_t *object, const char *key, json_int_t want)
{
    const json_t *value = json_object_get(object, key);
    is_number(json_is_integer(value) ? json_integer_value(value) : -99, want, key);
}

static void
is_word(const json_t *object, const char *key, const char *want)
{
    const char *word = json_string_value(json_object_get(object, key));
    is_string(word ? word : "(none)", want, key);
}

/* --- From a manager --------------------------------------------------------------- */

TEST(active)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://sink.test?concurrency=1&initial=1&recipients=1");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good1@b.test");
    world_deliver(&w, "ann@a.test", "good2@b.test good3@b.test");
    json_t *answer = asked(&w);
    ok(json_is_false(json_object_get(answer, "loading")));
    ok(json_is_false(json_object_get(answer, "backlogged")));
    is_at(answer, "active", 2);
    is_at(answer, "active_limit", 1000);
    ok(json_is_false(json_object_get(answer, "lacks_room")));
    is_at(answer, "active_recipients", 3);
    is_at(answer, "active_recipient_limit", 0);
    is_at(answer, "delivery_session_limit", 100);
    is_at(answer, "sessions", 1);
    is_at(answer, "ahead", 0);
    is_at(answer, "hops_more", 0);
    is_number((long)json_array_size(json_object_get(answer, "hops")), 1, "one hop");
    const json_t *hop = hop_at(answer, 0), *site = json_object_get(hop, "site");
    is_word(hop, "destination", "smtp:[sink.test]:25");
    is_at(hop, "open", 2);
    is_at(hop, "waiting", 2);
    is_at(hop, "taken", 0);
    is_word(site, "bound", "window");
    is_at(site, "waiting", 3);
    ok(json_integer_value(json_object_get(answer, "expires_ms")) ==
       json_integer_value(json_object_get(hop, "expires_ms")));
    json_decref(answer);
    world_unstall(&w);
    world_turns(&w);
}

/* A channel that tells of twelve sessions; the last carries the message. */
static void
watch(void *context, const struct sched_site *site, struct id message,
      manager_saw *each, void *each_context)
{
    const struct world *w = context;
    ok(site->sessions == 1);
    ok(id_compare(message, w->id) == 0);
    for (int i = 0; i < 12; i++) {
        struct activity a = {.kind = ACTIVITY_CONNECT, .has_message = i == 11};
        snprintf(a.remote, sizeof(a.remote), "host%d", i);
        each(each_context, &a);
    }
}

TEST(sessions)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://sink.test?concurrency=1&initial=1&recipients=1");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good1@b.test");
    json_t *answer = asked(&w);
    is_number((long)json_array_size(json_object_get(hop_at(answer, 0), "sessions")), 0,
              "nobody tells of any");
    is_at(hop_at(answer, 0), "sessions_more", 0);
    json_decref(answer);
    manager_set_watch(w.manager, watch, &w);
    answer = asked(&w);
    const json_t *sessions = json_object_get(hop_at(answer, 0), "sessions");
    is_number((long)json_array_size(sessions), 10, "there is a limit");
    is_at(hop_at(answer, 0), "sessions_more", 2);
    is_word(json_array_get(sessions, 0), "remote", "host11");
    is_word(json_array_get(sessions, 1), "remote", "host0");
    is_word(json_array_get(sessions, 9), "remote", "host8");
    json_decref(answer);
    manager_set_watch(w.manager, NULL, &w);
    world_unstall(&w);
    world_turns(&w);
}

TEST(deferred)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
                        "b.test smtp://one.test?lifetime=1d\nc.test smtp://two.test\n"
                        "d.test discard\n* smtp://sink.test");
    world_deliver(&w, "", "later1@b.test later2@b.test good@b.test later@c.test");
    json_t *answer = asked(&w);
    const json_t *hops = json_object_get(answer, "hops");
    is_number((long)json_array_size(hops), 2, "two hops");
    const json_t *one = hop_at(answer, 0), *two = hop_at(answer, 1);
    is_word(one, "destination", "smtp:[one.test]:25");
    is_at(one, "open", 2);
    is_word(two, "destination", "smtp:[two.test]:25");
    is_at(two, "open", 1);
    is_word(json_object_get(one, "site"), "state", "alive");
    json_int_t first = json_integer_value(json_object_get(one, "expires_ms"));
    json_int_t second = json_integer_value(json_object_get(two, "expires_ms"));
    is_number((second - first) / 3600000, 4 * 24, "each has its lifetime");
    is_at(answer, "expires_ms", first);
    json_decref(answer);

    world_restart(&w);
    answer = asked(&w);
    ok(!json_object_get(hop_at(answer, 0), "site"));
    is_at(hop_at(answer, 0), "open", 2);
    json_decref(answer);

    w.id = (struct id){1, 1};
    answer = asked(&w);
    is_number((long)json_array_size(json_object_get(answer, "hops")), 0,
              "nothing of what is not there");
    ok(!json_object_get(answer, "expires_ms"));
    json_decref(answer);
}

TEST(many)
{
    char text[20000];
    size_t used = 0;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* mx");
    for (int i = 0; i < 130; i++)
        used +=
            (size_t)snprintf(&text[used], sizeof(text) - used, "later@n%d.test ", i);
    text[used - 1] = '\0';
    world_deliver(&w, "ann@a.test", text);
    json_t *answer = asked(&w);
    is_number((long)json_array_size(json_object_get(answer, "hops")), 100,
              "an answer has its limit");
    is_at(answer, "hops_more", 30);
    json_decref(answer);
}

TEST(routes)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* hold");
    world_deliver(&w, "ann@a.test", "x@b.test");
    json_t *answer = asked(&w);
    is_word(hop_at(answer, 0), "destination", "hold");
    ok(!json_object_get(hop_at(answer, 0), "site"));
    json_decref(answer);
}

/* --- For people ------------------------------------------------------------------- */

static const int64_t now = INT64_C(1700000000000); /* 22:13:20Z */

/* listing and why as JSON with ' for ". */
static const char *
printed(const char *listing_text, const char *why_text)
{
    static struct printed p;
    char text[4096];
    snprintf(text, sizeof(text), "%s", listing_text);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *listing = json_loads(text, 0, NULL);
    if (why_text) {
        snprintf(text, sizeof(text), "%s", why_text);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        json_object_set_new(listing, "why", json_loads(text, 0, NULL));
    }
    printed_begin(&p);
    why_print(listing, now);
    json_decref(listing);
    return printed_end(&p);
}

#define HEAD                                                                           \
    "'queue_id':'I','sender':'a@b','arrival_time':1699999990,'attempts':2,"            \
    "'due_time':1700000060,'recipients':[{'address':'x@c','done':false,"               \
    "'delay_reason':'no'},{'address':'y@c','done':true}]}"
#define HEAD_WORDS                                                                     \
    "from:     <a@b>\narrived:  22:13:10Z (10 s ago)\nattempts: 2 so far\n"

static void
has(const char *text, const char *line)
{
    if (!ok_named(strstr(text, line) != NULL, "it says so"))
        printf("# want: %s\n# in: %s\n", line, text);
}

TEST(places)
{
    is_string(
        printed("{'queue_name':'deferred'," HEAD, NULL),
        "id:       I\nqueue:    deferred: on disk until its next attempt\n" HEAD_WORDS
        "next:     22:14:20Z (in 1 min)\n"
        "because:  no daemon runs; nothing is delivered until it is started; the "
        "reasons below are those of its last run\n"
        "to:       <x@c> no\n",
        "without a daemon");
    has(printed("{'queue_name':'incoming','recipients':[{'address':'x@c'}]}", NULL),
        "\nbecause:  no daemon runs; nothing is delivered until it is started\n"
        "to:       <x@c>\n");
    is_string(
        printed("{'queue_name':'hold','reason':'by a route','since':1699999000," HEAD,
                NULL),
        "id:       I\nqueue:    hold: not delivered, not retried and never expiring "
        "until it is released\n" HEAD_WORDS
        "because:  by a route, 21:56:40Z (16 min ago)\nto:       <x@c> no\n",
        "held");
    is_string(
        printed("{'queue_name':'maildrop'," HEAD, "{'place':'unknown'}"),
        "id:       I\nqueue:    maildrop: submitted by sendmail, not yet taken up by "
        "the daemon\n" HEAD_WORDS
        "because:  the daemon that answers does not have it: it is another slice's, "
        "or has not been reached since startup\nto:       <x@c> no\n",
        "not known to the daemon");
    is_string(
        printed("{'queue_name':'active'," HEAD, "{'place':'active','loading':true}"),
        "id:       I\nqueue:    active: being read from the disk\n" HEAD_WORDS
        "to:       <x@c> no\n",
        "being loaded");
}

TEST(because)
{
    has(printed("{'queue_name':'incoming'," HEAD,
                "{'place':'incoming','due_ms':1,'active':20000,'active_limit':20000,"
                "'ahead':7}"),
        "\nbecause:  the active set is full: 20000 of 20000 messages (active_limit); "
        "messages before it: 7\n");
    has(printed("{'queue_name':'incoming'," HEAD,
                "{'place':'incoming','due_ms':1,'active':3,'active_limit':20000,"
                "'lacks_room':true,'active_recipients':35000,"
                "'active_recipient_limit':40000,'ahead':2}"),
        "\nbecause:  the active set has no room for its recipients: it has 35000 of "
        "40000 (active_recipient_limit); messages before it: 2\n");
    has(printed("{'queue_name':'incoming'," HEAD,
                "{'place':'incoming','due_ms':1,'active':3,'active_limit':20000}"),
        "\nbecause:  it is due, and is read from the disk in its turn; messages before "
        "it: "
        "0\n");
    has(printed("{'queue_name':'incoming'," HEAD,
                "{'place':'incoming','due_ms':1,'draining':true,'active':3,'active_limit':20000}"),
        "\nbecause:  no delivery begins: the daemon is out of service (`petrel drain --cancel` ends that), or stops\nto:");
    has(printed("{'queue_name':'deferred'," HEAD,
                "{'place':'deferred','due_ms':1700000060000,'draining':true}"),
        ", or stops\nbecause:  the next attempt is at 22:14:20Z (in 1 min)\n");
    has(printed("{'queue_name':'deferred'," HEAD,
                "{'place':'deferred','due_ms':1700000060000,'backlogged':true}"),
        "\nbecause:  the next attempt is at 22:14:20Z (in 1 min), or as soon as its "
        "site works again\n");
    has(printed("{'queue_name':'deferred'," HEAD,
                "{'place':'deferred','due_ms':1,'backlogged':true,'excess':true}"),
        "\nbecause:  backlogged: its site has more than its share of the active set "
        "(site_active_share); it returns when the site has less\n");
    has(printed("{'queue_name':'defrag'," HEAD,
                "{'place':'defrag','due_ms':1700000060000,'backlogged':false}"),
        "\nbecause:  other fragments of its message have not arrived; the missing ones "
        "and the time limit are below\n");
    has(printed(
            "{'queue_name':'active'," HEAD,
            "{'place':'active','delivery_session_limit':9,'expires_ms':1700000060000,"
            "'hops_more':4,'hops':[{'destination':'smtp:c','open':3,'waiting':2,"
            "'taken':1,'deferred':0,'sessions':[{'doing':'looking_up','what':"
            "'MX of "
            "c','since_ms':1699999988000}],'sessions_more':3,'site':{'site':'mx:m','"
            "domains':['c','d'],"
            "'destinations':12,'bound':'delivery_session_limit','waiting':5,'"
            "backlogged':6}}]}"),
        "next hop: smtp:c: recipients: 3 (2 waiting, 1 being delivered, 0 deferred)\n"
        "site:     mx:m, shared by c, d and 10 more\n"
        "because:  delivery_session_limit: all 9 sessions are in use; 5 recipients "
        "wait "
        "there\n"
        "session:  looking up MX of c for 12 s\n"
        "          and 3 more\n"
        "backlog:  messages that wait on disk for that site: 6\n"
        "          and 4 next hops more\n"
        "expires:  22:14:20Z (in 1 min): open recipients then fail, and <a@b> is "
        "notified\n");
    ok_named(strstr(printed("{'queue_name':'active'," HEAD,
                            "{'place':'active','draining':true,'hops':[{'destination':"
                            "'smtp:c','open':1,'waiting':1,'taken':0,'deferred':0,"
                            "'site':{'site':'smtp:c','bound':'nothing','waiting':1}}]}"),
                    "nothing holds it back") == NULL,
             "a drain holds it");
    has(printed("{'queue_name':'deferred','sender':''}",
                "{'place':'deferred','due_ms':1,'expires_ms':1}"),
        "\nexpires:  now: open recipients then fail; there is no sender to notify\n");
}

TEST(recipients)
{
    char text[4000];
    size_t used = (size_t)snprintf(text, sizeof(text),
                                   "{'queue_name':'deferred',"
                                   "'recipients':[");
    for (int i = 0; i < 25; i++)
        used += (size_t)snprintf(&text[used], sizeof(text) - used,
                                 "%s{'address':'r%d@c'}", i ? "," : "", i);
    snprintf(&text[used], sizeof(text) - used, "]}");
    const char *shown = printed(text, NULL);
    has(shown, "\nto:       <r19@c>\n          and 5 recipients more\n");
    ok(!strstr(shown, "r20@c"));
}


static const char *
sentence(enum activity_kind kind, int64_t for_ms, bool has_message, const char *scheme)
{
    static char text[2000];
    struct activity a = {.kind = kind,
                         .since_ms = now - for_ms,
                         .has_message = has_message,
                         .what = "DATA",
                         .remote = "mx\x1b.test[192.0.2.1]:465",
                         .scheme = scheme};
    struct buffer out;
    buffer_init(&out, sizeof(text));
    json_t *doing = why_session(&a);
    why_explain_session(doing, now, &out);
    text_copy(text, sizeof(text), buffer_text(&out));
    buffer_free(&out);
    json_decref(doing);
    return text;
}

TEST(words)
{
    static const struct {
        enum activity_kind kind;
        const char *words;
    } cases[] = {
        {ACTIVITY_LOOK_UP,   "looking up DATA for 3 s"                               },
        {ACTIVITY_CONNECT,   "connecting to mx\\x1b.test[192.0.2.1]:465 for 3 s"     },
        {ACTIVITY_GREETING,
         "connected to mx\\x1b.test[192.0.2.1]:465, no greeting for 3 s"             },
        {ACTIVITY_HANDSHAKE, "TLS handshake with mx\\x1b.test[192.0.2.1]:465 for 3 s"},
        {ACTIVITY_REPLY,
         "waiting for the reply to DATA from mx\\x1b.test[192.0.2.1]:465 for 3 s"    },
        {ACTIVITY_CONTENT,   "sending content to mx\\x1b.test[192.0.2.1]:465 for 3 s"},
        {ACTIVITY_PREPARE,
         "preparing commands for mx\\x1b.test[192.0.2.1]:465 for 3 s"                },
        {ACTIVITY_IDLE,      "connected to mx\\x1b.test[192.0.2.1]:465, idle for 3 s"},
        {ACTIVITY_STORE,     "delivering to Maildirs in DATA for 3 s"                },
        {ACTIVITY_NONE,      "open for 3 s"                                          },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_string(sentence(cases[i].kind, 3000, false, NULL), cases[i].words,
                  "a sentence");
    is_string(
        sentence(ACTIVITY_CONTENT, 120000, true, NULL),
        "sending content to mx\\x1b.test[192.0.2.1]:465 for 2 min, with this message",
        "that of this message");
    is_string(sentence(ACTIVITY_GREETING, 40000, false, "smtps"),
              "connected to mx\\x1b.test[192.0.2.1]:465, no greeting for 40 s (does "
              "this port need smtps://?)",
              "with a question");
    is_string(sentence(ACTIVITY_IDLE, -5000, false, NULL),
              "connected to mx\\x1b.test[192.0.2.1]:465, idle for 0 s",
              "since a time to come");
}

TEST(object)
{
    struct activity a = {.kind = ACTIVITY_REPLY, .since_ms = now, .what = "DATA"};
    json_t *doing = why_session(&a);
    char *text = json_dumps(doing, JSON_COMPACT);
    is_string(text,
              "{\"doing\":\"reply\",\"since_ms\":1700000000000,\"what\":\"DATA\","
              "\"remote\":\"\",\"this_message\":false}",
              "an object");
    free(text);
    json_decref(doing);
}

/* An answer of another daemon. */
TEST(unknown)
{
    struct buffer out;
    json_t *doing = json_loads("{\"doing\":7}", 0, NULL);
    buffer_init(&out, 2000);
    why_explain_session(doing, 0, &out);
    is_text(buffer_text(&out), TEXT("open for 0 s"), "what is not known");
    buffer_free(&out);
    json_decref(doing);
}
