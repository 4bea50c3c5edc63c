/* Fuzz target: the bytes of a server of copies: its reply to INFO and CONFIG, answers of scripts, and of the waits for its
 * disk. Each question has one answer, in order, and an answer is words within its bounds. */
/* link: t/sim/loop.c */
#include "queue/copies/copies_batch.h"

#include "base/dns/dns.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "t/sim/sim.h"
#include "t/support/must.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- The network: one connection, whose input is the test's ----------------------------------- */

static struct {
    net_happened *heard;
    void *context;
    struct buffer in;
    dns_answered *found;
    void *finder;
    bool is_there;
} wire;

struct net_connection *
net_connect(struct net *net, const struct net_address *to, const struct net_address *from, net_happened *callback,
            void *context)
{
    (void)net, (void)to, (void)from;
    wire.heard = callback;
    wire.context = context;
    wire.is_there = true;
    return (struct net_connection *)&wire;
}

void
net_send(struct net_connection *c, struct text bytes)
{
    (void)c;
    must(wire.is_there && bytes.length < 1 << 20);
}

struct text
net_input(const struct net_connection *c)
{
    (void)c;
    return buffer_text(&wire.in);
}

void
net_consume(struct net_connection *c, size_t count)
{
    (void)c;
    buffer_take(&wire.in, count);
}

void
net_abort(struct net_connection **c)
{
    wire.is_there = false;
    *c = NULL;
}

void
net_close(struct net_connection **c)
{
    net_abort(c);
}

const char *
net_error(const struct net_connection *c)
{
    (void)c;
    return "it failed";
}

void
net_start_tls(struct net_connection *c, const struct net_tls *tls)
{
    (void)c, (void)tls;
}

struct dns_query *
dns_find_addresses(struct dns *dns, const char *name, dns_answered *callback, void *context)
{
    (void)dns, (void)name;
    wire.found = callback;
    wire.finder = context;
    return (struct dns_query *)&wire;
}

void
dns_cancel(struct dns_query **query)
{
    *query = NULL;
    wire.found = NULL;
}

/* --- Questions -------------------------------------------------------------------------------- */

static unsigned asked, answered;

static void
on_answer(void *context, const struct redis_reply *reply, const char *why)
{
    struct copies_answer answer;
    struct text owner;
    struct id id;
    size_t missing = 0;
    must(*(unsigned *)context == answered);
    answered++;
    must(why != NULL && strlen(why) < COPIES_WHY_MAX && (reply == NULL) == (why[0] != '\0'));
    must(!text_has_control(text_from(why)));
    if (reply == NULL) {
        must(!copies_is_fenced(why, &owner) || owner.length < COPIES_WHY_MAX);
        return;
    }
    must(reply->kind != REDIS_ERROR);
    if (copies_answer_read(reply->text, &answer))
        while (copies_answer_missing(&answer, &id))
            missing++;
    must(missing <= reply->text.length / ID_LENGTH);
}

static void
on_change(void *context)
{
    (void)context;
}

static void
feed(struct text bytes)
{
    if (!wire.is_there || bytes.length == 0)
        return;
    must(buffer_add(&wire.in, bytes));
    wire.heard(wire.context, NET_INPUT);
}

/* Until it says INFO. */
static void
connect_engine(struct loop *loop)
{
    static struct net_address address = {.family = NET_IPV4};
    static struct dns_answer answer = {.status = DNS_FOUND, .count = 1};
    answer.addresses[0] = address;
    sim_loop_advance(loop, 0);
    must(wire.found != NULL);
    wire.found(wire.finder, &answer);
    wire.heard(wire.context, NET_CONNECTED);
}

/* By its first byte: with a greeting of its own; else the server is an old or a new one. */
static struct text
greet(struct text bytes)
{
    static const char *const versions[] = {"7.0.15", "8.0.2"};
    char info[160], said[256];
    char kind = bytes.length > 0 ? bytes.at[0] : 0;
    bytes = text_after(bytes, 1);
    if ((kind & 3) > 1)
        return bytes;
    snprintf(info, sizeof(info), "redis_version:%s\r\nrole:master\r\nconnected_slaves:1\r\naof_enabled:1\r\n",
             versions[kind & 1]);
    snprintf(said, sizeof(said), "$%zu\r\n%s\r\n%s", strlen(info), info,
             (kind & 1) == 0 ? "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n" : "");
    feed(text_from(said));
    return bytes;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct copies_settings settings = {.places = {{.host = "redis.test", .port = 6379}}, .place_count = 1, .replicas = 1};
    static unsigned numbers[4];
    const struct text words[] = {TEXT("0")};
    struct text rest = text_of((const char *)data, size);
    char error[256];
    struct loop *loop = sim_loop_new(1);
    struct copies_client client = {.ready = on_change, .lost = on_change};
    struct copies_engine_setup setup = {.loop = loop, .net = (struct net *)&wire, .dns = (struct dns *)&wire, .settings = &settings};
    struct copies_engine *engine = copies_engine_new(&setup, error, sizeof(error));
    must(engine != NULL);
    buffer_init(&wire.in, 1 << 20);
    asked = answered = 0;
    copies_engine_join(engine, &client);
    connect_engine(loop);
    rest = greet(rest);
    for (; asked < 4 && copies_engine_is_ready(engine); asked++) {
        numbers[asked] = asked;
        copies_engine_run(engine, "return 1", words, 1, asked != 2, on_answer, &numbers[asked]);
    }
    while (rest.length > 0 && wire.is_there) {
        size_t some = rest.length > 40 ? rest.length / 2 : rest.length;
        feed(text_before(rest, some));
        rest = text_after(rest, some);
    }
    must(answered <= asked && strlen(copies_engine_why(engine)) < COPIES_WHY_MAX);
    must(wire.is_there || answered == asked);
    copies_engine_leave(engine, &client);
    copies_engine_free(&engine);
    buffer_free(&wire.in);
    loop_free(&loop);
    return 0;
}
