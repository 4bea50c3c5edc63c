/* base/redis/redis.c against servers that say what the test wants: which of several is
 * used, when the list is tried again, and how scripts are asked. */
#include "base/redis/redis_internal.h"

#include "base/dns/dns.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "t/support/tap.h"
#include "t/support/until.h"

#include <stdlib.h>
#include <string.h>

enum { SERVERS = 2 };

struct fake {
    struct net_listener *listener;
    struct net_connection *connection;
    const char *greeting; /* the reply to the first command */
    const char *reply;    /* to others; by EVALSHA: sha_reply, if that is not NULL */
    const char *sha_reply;
    char last[4096]; /* command */
    unsigned accepted, commands;
};

struct world {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct redis *redis;
    struct redis_client client;
    struct fake servers[SERVERS];
    struct redis_place places[SERVERS];
    unsigned ready, failed, replies;
    char why[256], told[256];
    enum redis_kind kind;
    void *subject;
};

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
    net_consume(f->connection, input.length);
    while (at != NULL) {
        char *next = strstr(at + 1, "\r\n*");
        size_t length = next == NULL ? strlen(at) : (size_t)(next - at + 2);
        (void)!text_copy(f->last, sizeof(f->last), text_of(at, length));
        bool by_sha = strstr(f->last, "EVALSHA") != NULL && f->sha_reply != NULL;
        net_send(f->connection, text_from(f->commands++ == 0 ? f->greeting
                                          : by_sha           ? f->sha_reply
                                                             : f->reply));
        at = next == NULL ? NULL : next + 2;
    }
    free(copy);
}

static void
on_accept(void *context, struct net_connection *c)
{
    struct fake *f = context;
    net_abort(&f->connection);
    f->connection = c;
    f->accepted++;
    f->commands = 0;
    net_attach(c, on_client, f);
}

static void
listen_at(struct world *w, struct fake *f)
{
    struct net_address any;
    char error[256];
    if (!net_address_parse(TEXT("127.0.0.1:0"), 0, &any))
        abort();
    *f = (struct fake){.greeting = "$-1\r\n", .reply = "+OK\r\n"};
    f->listener = net_listen(w->net, &any, 0, on_accept, f, error, sizeof(error));
    if (f->listener == NULL)
        abort();
}

static void
on_ready(void *context)
{
    struct world *w = context;
    w->ready++;
}

static void
on_failed(void *context, const char *why)
{
    struct world *w = context;
    w->failed++;
    (void)!text_copy(w->why, sizeof(w->why), text_from(why));
}

static void
on_reply(void *context, void *subject, const struct redis_reply *reply)
{
    struct world *w = context;
    w->replies++;
    w->subject = subject;
    w->kind = reply->kind;
    (void)!text_copy(w->told, sizeof(w->told), reply->text);
    if (redis_is_misplaced(reply))
        redis_refuse(w->redis, "PING", reply);
}

static void
world_open(struct world *w)
{
    char error[256];
    *w = (struct world){.loop = loop_new()};
    w->net = net_new(w->loop);
    w->dns = dns_new(w->loop, TEXT("127.0.0.1:1"), error, sizeof(error));
    for (size_t i = 0; i < SERVERS; i++) {
        listen_at(w, &w->servers[i]);
        w->places[i].port = net_listener_address(w->servers[i].listener)->port;
        snprintf(w->places[i].host, sizeof(w->places[i].host), "127.0.0.1");
    }
}

static void
world_start(struct world *w)
{
    char error[256];
    struct redis_setup setup = {.loop = w->loop,
                                .net = w->net,
                                .dns = w->dns,
                                .places = w->places,
                                .count = SERVERS,
                                .probe = "ps:"};
    w->redis = redis_new(&setup, error, sizeof(error));
    if (w->redis == NULL)
        abort();
    w->redis->patience_ms = 60000; /* the machine may be busy */
    w->redis->breaker.retry_ms = 1;
    w->client = (struct redis_client){
        .ready = on_ready, .failed = on_failed, .context = w};
    redis_join(w->redis, &w->client);
}

static void
world_end(struct world *w)
{
    redis_free(&w->redis);
    for (size_t i = 0; i < SERVERS; i++) {
        net_abort(&w->servers[i].connection);
        net_listener_free(&w->servers[i].listener);
    }
    dns_free(&w->dns);
    net_free(&w->net);
    loop_free(&w->loop);
}

static void
ping(struct world *w, void *subject)
{
    const char *const words[] = {"PING"};
    redis_send(w->redis, words, 1, &(struct redis_question){on_reply, w, subject});
}

TEST(list)
{
    FIXTURE(world, w, world_open, world_end);
    w.servers[0].greeting = "-READONLY You can't write against a read only replica.\r\n";
    world_start(&w);
    until(&w, w.ready == 1);
    is_number(redis_server(w.redis)->port, w.places[1].port,
              "a replica is passed over for the next server");
    is_number(w.failed, 0, "which is no failure");
    ping(&w, &w);
    until(&w, w.replies == 1);
    is_string(w.told, "OK", "that one answers");
    ok_named(w.subject == &w, "for what was asked");
    w.servers[0].greeting = "$-1\r\n";
    w.servers[1].greeting = "-READONLY\r\n";
    w.servers[1].reply = "-READONLY You can't write against a read only replica.\r\n";
    ping(&w, NULL);
    until(&w, w.ready == 2);
    is_number(redis_server(w.redis)->port, w.places[0].port,
              "it is a replica now: the list is tried again");
    is_string(w.why, "PING: READONLY You can't write against a read only replica.",
              "who asks hears why");
    net_close(&w.servers[0].connection);
    w.servers[0].greeting = "-LOADING\r\n";
    w.servers[1].greeting = "$-1\r\n";
    until(&w, w.ready == 3);
    is_number(redis_server(w.redis)->port, w.places[1].port,
              "so it is when the connection ends");
}

TEST(nobody)
{
    FIXTURE(world, w, world_open, world_end);
    world_start(&w);
    w.redis->breaker.pause_ms = w.redis->breaker.pause_max_ms = 20;
    net_listener_free(&w.servers[0].listener);
    w.servers[1].greeting = "-NOAUTH Authentication required.\r\n";
    until(&w, !redis_is_up(w.redis));
    is_number(w.failed, 3, "a walk of the list is one failure, three open the breaker");
    is_string(w.why, "SET: NOAUTH Authentication required.", "the last one's reason");
    ok_named(!redis_is_ready(w.redis), "nothing may be asked");
    w.servers[1].greeting = "$-1\r\n";
    until(&w, w.ready == 1);
    ok_named(redis_is_up(w.redis), "one greeting closes it");
}

TEST(scripts)
{
    struct redis_script script = {.text = "return 1"};
    const char *const words[] = {"1", "ps:x", "5"};
    FIXTURE(world, w, world_open, world_end);
    world_start(&w);
    until(&w, w.ready == 1);
    w.servers[0].reply = "$1\r\n7\r\n";
    w.servers[0].sha_reply = "-NOSCRIPT No matching script.\r\n";
    redis_eval(w.redis, &script, words, 3,
               &(struct redis_question){on_reply, &w, &script});
    until(&w, w.replies == 1);
    is_string(script.sha, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "its SHA-1");
    is_string(w.told, "7", "a server that does not know it");
    is_string(w.servers[0].last,
              "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$4\r\nps:x\r\n$1\r\n5\r\n",
              "gets its text");
    ok_named(w.subject == &script, "and answers the same question");
    w.servers[0].sha_reply = "$1\r\n8\r\n";
    redis_eval(w.redis, &script, words, 3,
               &(struct redis_question){on_reply, &w, &script});
    until(&w, w.replies == 2);
    is_string(w.told, "8", "one that knows it needs no more than that");
    is_number(w.failed, 0, "neither is a failure");
}

/* The script may go with the one that has asked. */
TEST(left)
{
    struct redis_script script = {.text = text_string(TEXT("return 2"))};
    const char *const words[] = {"0"};
    FIXTURE(world, w, world_open, world_end);
    world_start(&w);
    until(&w, w.ready == 1);
    w.servers[0].sha_reply = "-NOSCRIPT No matching script.\r\n";
    unsigned before = w.servers[0].commands;
    redis_eval(w.redis, &script, words, 1,
               &(struct redis_question){on_reply, w.client.context, NULL});
    redis_leave(w.redis, &w.client);
    free((void *)(uintptr_t)script.text);
    until(&w, w.servers[0].commands > before);
    for (int i = 0; i < 20; i++)
        loop_turn(w.loop, 1);
    is_number(w.servers[0].commands, before + 1, "nobody asks again");
    is_number(w.replies, 0, "nor hears it");
    redis_join(w.redis, &w.client);
}

TEST(forgotten)
{
    FIXTURE(world, w, world_open, world_end);
    world_start(&w);
    until(&w, w.ready == 1);
    ping(&w, &w);
    redis_forget(w.redis, &w);
    until(&w, w.replies == 1);
    ok_named(w.subject == NULL, "what is forgotten has an answer, about nothing");
    ping(&w, &w);
    redis_leave(w.redis, &w.client);
    unsigned commands = w.servers[0].commands;
    until(&w, w.servers[0].commands > commands);
    for (int i = 0; i < 20; i++)
        loop_turn(w.loop, 1);
    is_number(w.replies, 1, "who has left hears nothing");
}

int
main(void)
{
    if (*redis_version() == '\0') {
        printf("1..0 # SKIP built without hiredis\n");
        return 0;
    }
    tap_tests("");
    return done();
}
