/* Replies of mail hosts to EHLO: good ones, one that refuses, one that is garbage, one
 * that closes, one that is not there. */
#include "admin/findings/greeting.h"

#include "base/loop/loop.h"

#include "t/support/must.h"
#include "t/support/tap.h"

struct bed {
    struct loop *loop;
    struct net *net;
    struct net_listener *listener;
    struct net_connection *peer;
    const char *banner, *answer; /* "": none; NULL: it closes */
    struct greeting *greeting;
    struct net_address from; /* of the client */
    bool over, good, quit;
    char text[GREETING_TEXT_MAX];
};

static void
peer_happened(void *context, enum net_event event)
{
    struct bed *b = context;
    struct text input = event == NET_INPUT ? net_input(b->peer) : TEXT("");
    if (event == NET_ENDED || event == NET_FAILED) {
        net_abort(&b->peer);
        return;
    }
    if (text_starts(input, TEXT("EHLO mail.test\r\n"))) {
        net_consume(b->peer, 16);
        if (b->answer == NULL)
            net_close(&b->peer);
        else
            net_send(b->peer, text_from(b->answer));
    } else if (text_starts(input, TEXT("QUIT\r\n"))) {
        b->quit = true;
        net_close(&b->peer);
    }
}

static void
accept_one(void *context, struct net_connection *connection)
{
    struct bed *b = context;
    b->peer = connection;
    b->from = *net_peer(connection);
    net_attach(connection, peer_happened, b);
    if (b->banner == NULL)
        net_close(&b->peer);
    else
        net_send(connection, text_from(b->banner));
}

static void
greeted(void *context, bool good, const char *text)
{
    struct bed *b = context;
    must(!b->over);
    b->over = true;
    b->good = good;
    snprintf(b->text, sizeof(b->text), "%s", text);
}

static void
talk(struct bed *b, const char *banner, const char *answer)
{
    char error[300];
    struct net_address any, from;
    *b = (struct bed){.loop = loop_new(), .banner = banner, .answer = answer};
    b->net = net_new(b->loop);
    must(net_address_parse(TEXT("127.0.0.1:0"), 0, &any) &&
         net_address_parse_ip(TEXT("127.0.0.7"), &from));
    b->listener = net_listen(b->net, &any, 0, accept_one, b, error, sizeof(error));
    must(b->listener != NULL);
    b->greeting = greeting_new(b->loop, b->net, net_listener_address(b->listener),
                               &from, "mail.test", greeted, b);
    must(!b->over);
    for (int i = 0; i < 600 && (!b->over || (b->good && !b->quit)); i++)
        loop_turn(b->loop, 100);
    greeting_free(&b->greeting);
    if (b->peer != NULL)
        net_abort(&b->peer);
    net_listener_free(&b->listener);
    net_free(&b->net);
    loop_free(&b->loop);
}

int
main(void)
{
    static char long_line[2 * GREETING_TEXT_MAX], lines[8 * GREETING_TEXT_MAX];
    struct bed b;
    char from[NET_ADDRESS_TEXT_MAX];
    talk(&b, "220-a\r\n220 mx\r\n",
         "250-mx at your service, [192.0.2.1]\r\n250 SIZE\r\n");
    ok(b.over && b.good && b.quit);
    is_string(b.text, "220-a\n220 mx\n250-mx at your service, [192.0.2.1]\n250 SIZE\n",
              "all lines");
    net_address_ip(&b.from, from);
    is_string(from, "127.0.0.7", "from the address that is bound");
    talk(&b, "554 5.7.1 \x1b[31mblocked\r\n", "");
    ok(b.over && !b.good);
    is_string(b.text, "it says: 554 5.7.1 \x1b[31mblocked", "a refusal, as it is");
    talk(&b, "220 mx\r\n", "550 no\r\n");
    ok(b.over && !b.good);
    talk(&b, "220 mx\r\n", NULL);
    is_string(b.text, "it closes the connection", "closed at EHLO");
    talk(&b, NULL, "");
    ok(b.over && !b.good);
    talk(&b, "HTTP/1.1 400 Bad Request\r\n", "");
    ok(b.over && !b.good);
    memset(long_line, 'x', sizeof(long_line) - 1);
    talk(&b, long_line, "");
    is_string(b.text, "it does not speak SMTP", "a line without an end");
    size_t at = 0;
    while (at + 20 < sizeof(lines))
        at += (size_t)snprintf(lines + at, sizeof(lines) - at, "250-line\r\n");
    snprintf(lines + at, sizeof(lines) - at, "250 end\r\n");
    talk(&b, "220 mx\r\n", lines);
    ok_named(b.over && b.good && strlen(b.text) < GREETING_TEXT_MAX,
             "many lines are cut");
    static char flood[3 * GREETING_HEARD_MAX];
    for (at = 0; at + 20 < sizeof(flood);)
        at += (size_t)snprintf(flood + at, sizeof(flood) - at, "220-flood\r\n");
    talk(&b, flood, "");
    is_string(b.text, "it does not end its reply", "lines without an end");
    talk(&b, "\x16\x03\x01\x02\x01\x01\xfc\r\n", "");
    ok_named(b.over && !b.good, "TLS in place of a greeting");
    talk(&b, "220\r\n", "250\r\n");
    ok_named(b.over && b.good, "codes alone");
    talk(&b, "\r\n", "");
    ok_named(b.over && !b.good, "an empty line");
    struct net_address closed;
    struct loop *loop = loop_new();
    struct net *net = net_new(loop);
    must(net_address_parse(TEXT("127.0.0.1:1"), 0, &closed));
    b = (struct bed){.loop = loop};
    b.greeting = greeting_new(loop, net, &closed, NULL, "mail.test", greeted, &b);
    for (int i = 0; i < 600 && !b.over; i++)
        loop_turn(loop, 100);
    ok(b.over && !b.good && b.text[0] != '\0');
    greeting_free(&b.greeting);
    b = (struct bed){.loop = loop};
    b.greeting = greeting_new(loop, net, &closed, NULL, "mail.test", greeted, &b);
    greeting_free(&b.greeting);
    loop_turn(loop, 10);
    ok_named(!b.over, "freed before its end: it does not come");
    net_free(&net);
    loop_free(&loop);
    return done();
}
