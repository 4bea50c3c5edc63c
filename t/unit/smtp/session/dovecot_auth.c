/* The connection to Dovecot's authentication server: handshake, answers to many requests, silence, pauses; with a server of
 * our own at a socket, and a clock that stands. */
#include "smtp/session/dovecot_auth.h"

#include "base/log/log.h"
#include "base/loop/loop.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char greeting[] = "VERSION\t1\t2\nMECH\tPLAIN\tplaintext\nMECH\tXOAUTH2\nDONE\n";

static struct {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct net_listener *listener;
    struct net_connection *peer; /* the last one */
    unsigned connections;
    struct buffer heard;
    struct dovecot_auth *auth;
    char folder[200];
    struct net_address at;
    unsigned answers[4];
    char text[200];
} w;

static void
on_peer(void *context, enum net_event event)
{
    (void)context;
    if (event == NET_INPUT && buffer_add(&w.heard, net_input(w.peer)))
        net_consume(w.peer, net_input(w.peer).length);
    if (event == NET_ENDED || event == NET_FAILED)
        net_abort(&w.peer);
}

static void
on_accept(void *context, struct net_connection *connection)
{
    (void)context;
    if (w.peer != NULL)
        net_abort(&w.peer);
    w.peer = connection;
    w.connections++;
    buffer_clear(&w.heard);
    net_attach(connection, on_peer, NULL);
}

static void
turns(void)
{
    for (int i = 0; i < 12; i++)
        clock_turn(w.loop);
}

static void
say(const char *text)
{
    if (w.peer != NULL)
        net_send(w.peer, text_from(text));
    turns();
}

static void
answered(void *context, enum dovecot_answer answer, struct text text)
{
    (void)context;
    w.answers[answer]++;
    text_copy(w.text, sizeof(w.text), text);
}

static struct dovecot_request *
request(const char *response)
{
    struct net_address remote, local;
    (void)!net_address_parse(TEXT("192.0.2.7:999"), 0, &remote);
    (void)!net_address_parse(TEXT("[2001:db8::1]:25"), 0, &local);
    struct dovecot_client client = {.remote = &remote, .local = &local, .secured = true};
    return dovecot_request_new(w.auth, SASL_PLAIN, &client, text_from(response), answered, NULL);
}

static void
begin(void)
{
    char error[200];
    memset(&w, 0, sizeof(w));
    folder_make(w.folder, sizeof(w.folder), "dovecot");
    w.loop = loop_new();
    w.net = net_new(w.loop);
    w.log = log_new(w.loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    buffer_init(&w.heard, 1 << 20);
    w.at = (struct net_address){.family = NET_UNIX};
    snprintf(w.at.path, sizeof(w.at.path), "%.80s/auth", w.folder);
    w.listener = net_listen(w.net, &w.at, 0, on_accept, NULL, error, sizeof(error));
    ok_named(w.listener != NULL, "a server");
    clock_stop();
    w.auth = dovecot_auth_new(w.loop, w.net, w.log);
    dovecot_auth_use(w.auth, w.at.path);
    turns();
}

static void
end(void)
{
    dovecot_auth_free(&w.auth);
    if (w.peer != NULL)
        net_abort(&w.peer);
    net_listener_free(&w.listener);
    clock_go();
    net_free(&w.net);
    log_free(&w.log);
    loop_free(&w.loop);
    buffer_free(&w.heard);
    folder_remove(w.folder);
}

TEST(requests)
{
    begin();
    is_number(w.connections, 1, "one connection");
    is_number(*dovecot_auth_mechanisms(w.auth), 1 << SASL_PLAIN, "PLAIN, until it is known");
    struct dovecot_request *early = request("AAAA");
    turns();
    ok_named(memmem(w.heard.at, w.heard.length, "AUTH", 4) == NULL, "nothing is sent before the greeting");
    say(greeting);
    is_number(*dovecot_auth_mechanisms(w.auth), 1 << SASL_PLAIN | 1 << SASL_XOAUTH2, "then what it has");
    ok(dovecot_auth_trouble(w.auth) == NULL);
    static const char line[] = "AUTH\t1\tPLAIN\tservice=smtp\tnologin\tsecured\tlip=2001:db8::1\tlport=25\trip=192.0.2.7\trport=999\tresp=AAAA\n";
    ok_named(memmem(w.heard.at, w.heard.length, line, strlen(line)) != NULL, "then it is");
    struct dovecot_request *second = request("BBBB"), *third = request("CCCC");
    turns();
    say("OK\t2\tuser=two\n");
    is_number(w.answers[DOVECOT_ANSWER_OK], 1, "in any order");
    is_string(w.text, "two", "its user");
    say("OK\t2\tuser=two\nFAIL\t2\nFAIL\t9\nFAIL\t1\n");
    is_number(w.answers[DOVECOT_ANSWER_OK], 1, "once");
    is_number(w.answers[DOVECOT_ANSWER_FAILED], 1, "the first");
    say("CONT\t3\tZZZZ\n");
    is_string(w.text, "ZZZZ", "a challenge");
    ok(dovecot_request_go_on(third, TEXT("DDDD")));
    turns();
    ok_named(memmem(w.heard.at, w.heard.length, "CONT\t3\tDDDD\n", 12) != NULL, "its response");
    dovecot_request_free(&third);
    turns();
    ok_named(memmem(w.heard.at, w.heard.length, "CANCEL\t3\n", 9) != NULL, "cancelled");
    dovecot_request_free(&early);
    dovecot_request_free(&second);
    char *longest = malloc(DOVECOT_REQUESTS_MAX * 100);
    memset(longest, 'A', 9000);
    longest[9000] = '\0';
    ok_named(request(longest) == NULL, "too long for Dovecot");
    free(longest);
    struct dovecot_request *many[DOVECOT_REQUESTS_MAX];
    for (int i = 0; i < DOVECOT_REQUESTS_MAX; i++)
        many[i] = request("AAAA");
    ok_named(many[DOVECOT_REQUESTS_MAX - 1] != NULL && request("AAAA") == NULL, "too many");
    for (int i = 0; i < DOVECOT_REQUESTS_MAX; i++)
        dovecot_request_free(&many[i]);
    end();
}

TEST(silence)
{
    begin();
    clock_pass(DOVECOT_HANDSHAKE_MS);
    turns();
    ok_named(strstr(dovecot_auth_trouble(w.auth), "it does not greet") != NULL, "no greeting");
    struct dovecot_request *r = request("AAAA");
    turns();
    is_number(w.answers[DOVECOT_ANSWER_TEMPORARY], 1, "in a pause there is no waiting");
    dovecot_request_free(&r);
    clock_pass(DOVECOT_RETRY_MS);
    turns();
    is_number(w.connections, 2, "another connection");
    say(greeting);
    ok_named(dovecot_auth_trouble(w.auth) == NULL, "the trouble is over");
    r = request("AAAA");
    struct dovecot_request *other = request("BBBB");
    turns();
    clock_pass(DOVECOT_REQUEST_MS - 1000);
    turns();
    say("FAIL\t3\n");
    is_number(w.answers[DOVECOT_ANSWER_FAILED], 1, "it answers another one");
    clock_pass(1000);
    turns();
    is_number(w.answers[DOVECOT_ANSWER_TEMPORARY], 2, "one that has no answer in time");
    ok_named(dovecot_auth_trouble(w.auth) == NULL, "is no reason to hang up");
    dovecot_request_free(&r);
    dovecot_request_free(&other);
    r = request("AAAA");
    turns();
    clock_pass(DOVECOT_REQUEST_MS);
    turns();
    is_number(w.answers[DOVECOT_ANSWER_TEMPORARY], 3, "no answer to anybody");
    ok_named(strstr(dovecot_auth_trouble(w.auth), "it does not answer") != NULL, "is one");
    dovecot_request_free(&r);
    /* Each pause is longer, up to a minute. */
    unsigned before = w.connections;
    for (int i = 0; i < 20; i++) {
        clock_pass(DOVECOT_RETRY_MAX_MS);
        turns();
        say("no Dovecot\nDONE\n");
    }
    is_number(w.connections - before, 20, "it is tried each minute");
    clock_pass(DOVECOT_RETRY_MAX_MS / 2);
    turns();
    is_number(w.connections - before, 20, "and no earlier");
    dovecot_auth_use(w.auth, "");
    clock_pass(DOVECOT_RETRY_MAX_MS);
    turns();
    is_number(w.connections - before, 20, "without a path never");
    ok(dovecot_auth_trouble(w.auth) == NULL);
    end();
}
