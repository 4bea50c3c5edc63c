/* The calling side of the peer door, alone, and against the called side. */
#include "smtp/peer/peer_client.h"

#include "base/crc.h"
#include "smtp/peer/peer_server.h"
#include "t/support/peer_service.h"

#define HELLO                                                                                      \
    "XPEER 1 {\"host\":\"relay1\",\"group\":\"mail\",\"spool\":\"00112233445566778899aabbccddeeff\","  \
    "\"run\":5,\"now\":0,\"version\":\"0.1.0\",\"state\":\"running\"}\r\n"
#define HELLO_REPLY                                                                                \
    "250 {\"host\":\"relay2\",\"group\":\"mail\",\"spool\":\"aa\",\"run\":7,"                      \
    "\"version\":\"0.2\",\"state\":\"running\"}\r\n"
#define NOW_MS 10
#define ID  "01JD3ZK5Q8-9F3K2C7A"
#define ID2 "01JD3ZK5Q8-9F3K2C7B"

struct call {
    struct service_world world;
    struct peer_client client;
    struct buffer told; /* a line for each callback */
};

/* A message of ours. */
struct gift {
    struct call *call;
    const char *name;
    int64_t fails_at; /* its content cannot be read from there on; 0: it can */
    struct peer_client *then_gives;
    struct sibling_gift *then;
    size_t reads;
};

static void
call_open(struct call *c)
{
    memset(c, 0, sizeof(*c));
    service_start(&c->world, "relay1");
    buffer_init(&c->told, 1 << 20);
    c->client.service = &c->world.service;
    strcpy(c->client.host, "relay2");
    peer_client_init(&c->client);
    peer_client_start(&c->client);
}

static void
call_close(struct call *c)
{
    peer_client_free(&c->client);
    service_finish(&c->world);
    buffer_free(&c->told);
}

static int64_t
gift_read(void *context, int64_t offset, char *to, size_t size)
{
    struct gift *g = context;

    g->reads++;
    if (g->fails_at > 0 && offset + (int64_t)size > g->fails_at)
        return -5;
    for (size_t i = 0; i < size; i++)
        to[i] = (char)('a' + (offset + (int64_t)i) % 26);
    return (int64_t)size;
}

static void
gift_given(void *context, enum sibling_answer answer, struct id there, const struct outcome *outcome)
{
    static const char *const words[] = {"taken", "later", "refused", "lost"};
    struct gift *g = context;
    char id[ID_LENGTH + 1];

    id_format(there, id);
    (void)!buffer_format(&g->call->told, "%s: %s %s %d %s %s\n", g->name, words[answer], answer == SIBLING_TAKEN ? id : "-", outcome->code,
                         outcome->enhanced, outcome->text);
    if (g->then != NULL)
        peer_client_give(g->then_gives, g->then);
    g->then = NULL;
}

static struct sibling_gift
gift_of(struct gift *g, struct call *c, const char *name, const char *sections, int64_t content)
{
    struct sibling_gift gift = {.sections = text_from(sections), .read = gift_read, .context = g, .given = gift_given};

    *g = (struct gift){.call = c, .name = name};
    ok(id_parse(TEXT(ID), &gift.message.id));
    gift.message.sections = gift.sections.length;
    gift.message.content = content;
    gift.message.crc = 0x0badcafe;
    return gift;
}

static void
ask_line(void *context, const char *host, struct text json)
{
    struct call *c = context;

    (void)!buffer_format(&c->told, "%s: %.*s\n", host, TEXT_ARGS(text_before(json, 60)));
}

static void
ask_end(void *context, const char *host, const char *trouble)
{
    struct call *c = context;

    (void)!buffer_format(&c->told, "%s: end %s\n", host, trouble != NULL ? trouble : "");
}

static void
ask(struct call *c, const char *line, int64_t until_ms)
{
    const struct sibling_listener listener = {ask_line, ask_end, c};

    peer_client_ask(&c->client, text_from(line), until_ms, &listener);
}

/* Its output. */
static struct text
said(struct call *c)
{
    static char text[1 << 18];

    peer_client_fill(&c->client, sizeof(text) - 1, NOW_MS);
    text_copy(text, sizeof(text), buffer_text(&c->client.out));
    buffer_clear(&c->client.out);
    return text_from(text);
}

static void
hears(struct call *c, const char *reply)
{
    struct text input = text_from(reply);

    peer_client_read(&c->client, &input);
}

/* Its callbacks since the last time. */
static struct text
told(struct call *c)
{
    static char text[8192];

    text_copy(text, sizeof(text), buffer_text(&c->told));
    buffer_clear(&c->told);
    return text_from(text);
}

TEST(hello)
{
    static const struct {
        const char *reply, *why;
    } wrong[] = {
        {"554 5.7.1 another group\r\n", "it said: 554 5.7.1 another group"},
        {"421 4.3.2 draining\r\n", "it said: 421 4.3.2 draining"},
        {"250 hello\r\n", "it does not say who it is"},
        {"250 {\"host\":\"relay2\",\"group\":\"post\",\"spool\":\"aa\",\"run\":7,\"version\":\"0.2\",\"state\":\"a\"}\r\n", "it is of another group, post"},
        {"250 {\"host\":\"relay3\",\"group\":\"mail\",\"spool\":\"aa\",\"run\":7,\"version\":\"0.2\",\"state\":\"a\"}\r\n", "another host is there, relay3"},
        {"220 mail.example ESMTP\r\n", "it does not say who it is"},
        {"HTTP/1.1 400 Bad Request\r\n", "an odd reply"},
    };
    struct call c;
    struct gift g;
    struct sibling_gift gift;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        call_open(&c);
        gift = gift_of(&g, &c, "one", "s", 3);
        peer_client_give(&c.client, &gift);
        ask(&c, "{}", 100);
        is_text(said(&c), TEXT(HELLO), "nothing but XPEER before its reply");
        hears(&c, wrong[i].reply);
        ok(c.client.is_over && !c.client.is_ready);
        is_string(c.client.why, wrong[i].why, wrong[i].why);
        is_text(told(&c), TEXT(""), "nobody is called back by reading that");
        peer_client_lose(&c.client, "");
        ok(strstr(told(&c).at, "one: later - 0 4.4.2 relay2: ") != NULL);
        call_close(&c);
    }
}

TEST(give)
{
    struct call c;
    struct gift one, two, three;
    struct sibling_gift first, second, third;

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    ok(c.client.is_ready && strcmp(c.client.other.version, "0.2") == 0);
    first = gift_of(&one, &c, "one", "SECTIONS", 5);
    second = gift_of(&two, &c, "two", "S", 0);
    third = gift_of(&three, &c, "three", "S", 30);
    peer_client_give(&c.client, &first);
    peer_client_give(&c.client, &second);
    peer_client_give(&c.client, &third);
    is_text(said(&c),
            TEXT("XGIVE " ID " 8 5 0badcafe\r\nSECTIONSabcdeXGIVE " ID " 1 0 0badcafe\r\nSXGIVE " ID
                 " 1 30 0badcafe\r\nSabcdefghijklmnopqrstuvwxyzabcd"),
            "all are sent before the first is answered");
    hears(&c, "250 2.0.0 " ID2 "\r\n452 4.3.1 no space\r\n554 5.5.4 a form");
    is_text(told(&c), TEXT("one: taken " ID2 " 250 2.0.0 " ID2 "\ntwo: later - 452 4.3.1 no space\n"), "answers in order");
    peer_client_lose(&c.client, "it ended the connection");
    is_text(told(&c), TEXT("three: lost - 0 4.4.2 relay2: it ended the connection\n"), "and the end of the connection");
    ok(peer_client_is_idle(&c.client));
    call_close(&c);

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    peer_client_give(&c.client, &first);
    said(&c);
    hears(&c, "421 4.3.2 this host stops\r\n");
    ok(c.client.is_over);
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT("one: lost - 0 4.4.2 relay2: it said: 421 4.3.2 this host stops\n"), "421 does not say what became of a message");
    call_close(&c);
}

/* Neither yes nor no. */
TEST(odd_reply)
{
    struct call c;
    struct gift one;
    struct sibling_gift first;

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    first = gift_of(&one, &c, "one", "S", 5);
    peer_client_give(&c.client, &first);
    said(&c);
    hears(&c, "354 go on\r\n");
    ok(c.client.is_over);
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT("one: lost - 0 4.4.2 relay2: an odd reply to a message: 354 go on\n"), "its fate is not known");
    call_close(&c);
}

/* A caller may be refused while it is still sending. */
TEST(early)
{
    struct call c;
    struct gift one, two;
    struct sibling_gift first, second;

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    first = gift_of(&one, &c, "one", "SECTIONS", 300000);
    second = gift_of(&two, &c, "two", "S", 1);
    peer_client_give(&c.client, &first);
    peer_client_give(&c.client, &second);
    peer_client_fill(&c.client, 1000, NOW_MS);
    ok_named(c.client.out.length >= 1000 && c.client.out.length <= 1000 + PEER_PIECE && one.reads == 1, "one piece of it is in memory");
    hears(&c, "552 5.3.4 too large\r\n");
    is_text(told(&c), TEXT(""), "the rest is still to be read");
    buffer_clear(&c.client.out);
    said(&c);
    buffer_clear(&c.client.out);
    peer_client_fill(&c.client, 1 << 20, NOW_MS);
    is_text(told(&c), TEXT("one: refused - 552 5.3.4 too large\n"), "then its owner hears it");
    hears(&c, "250 2.0.0 " ID2 "\r\n");
    is_text(told(&c), TEXT("two: taken " ID2 " 250 2.0.0 " ID2 "\n"), "the next one is not disturbed");
    peer_client_give(&c.client, &first);
    buffer_clear(&c.client.out);
    peer_client_fill(&c.client, 1000, NOW_MS);
    hears(&c, "250 2.0.0 " ID2 "\r\n");
    ok_named(c.client.is_over, "what was not sent cannot be durable");
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT("one: lost - 0 4.4.2 relay2: an odd reply to a message: 250 " ID2 "\n"), "its fate is not known");
    call_close(&c);
}

TEST(unreadable)
{
    struct call c;
    struct gift one, two;
    struct sibling_gift first, second;

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    first = gift_of(&one, &c, "one", "S", 10);
    second = gift_of(&two, &c, "two", "S", 100000);
    two.fails_at = 50000;
    peer_client_give(&c.client, &first);
    peer_client_give(&c.client, &second);
    peer_client_fill(&c.client, 1 << 20, NOW_MS);
    ok(c.client.is_over);
    peer_client_lose(&c.client, "");
    is_text(told(&c),
            TEXT("one: lost - 0 4.4.2 relay2: a message could not be read\ntwo: refused - 0 5.3.0 its content cannot be read here\n"),
            "what cannot be read stays; of the others nothing is known");
    call_close(&c);
}

TEST(room)
{
    struct call c;
    struct gift g;
    struct sibling_gift gift;

    call_open(&c);
    gift = gift_of(&g, &c, "one", "S", SIBLING_UNANSWERED_BYTES * 2LL);
    ok_named(peer_client_has_room(&c.client, UINT64_MAX / 2), "one alone may be large");
    peer_client_give(&c.client, &gift);
    ok_named(!peer_client_has_room(&c.client, 1), "then nothing else");
    peer_client_give(&c.client, &gift);
    is_number(peer_client_next_ms(&c.client), 0, "it ends soon");
    is_text(buffer_text(&c.told), TEXT(""), "but not within the call");
    peer_client_expire(&c.client, 1);
    is_text(buffer_text(&c.told), TEXT("one: later - 0 4.4.5 too much waits for an answer\n"), "and says why");
    ok(peer_client_ignore(&c.client, &g));
    gift.message.content = 1;
    for (int i = 0; i < SIBLING_UNANSWERED; i++) {
        ok(peer_client_has_room(&c.client, 2));
        peer_client_give(&c.client, &gift);
    }
    ok(!peer_client_has_room(&c.client, 2));
    for (int i = 0; i < PEER_ASKS_MAX; i++)
        ask(&c, "{}", 100);
    buffer_clear(&c.told);
    peer_client_expire(&c.client, 1);
    is_text(buffer_text(&c.told), TEXT(""), "all have room");
    ask(&c, "{}", 100);
    ask(&c, "", 100);
    peer_client_expire(&c.client, 1);
    is_text(buffer_text(&c.told), TEXT("relay2: end too much waits for an answer\nrelay2: end too much waits for an answer\n"), "questions are few, too");
    call_close(&c);
}

TEST(ask)
{
    static char line[SIBLING_LINE_MAX + 32];
    struct call c;
    struct text input;

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    ask(&c, "{\"do\":\"status\"}", 100);
    ask(&c, "{}", 50);
    is_text(said(&c), TEXT("XASK 15\r\n{\"do\":\"status\"}"), "a question");
    hears(&c, "250-{\"a\":1}\r\n250-");
    hears(&c, "{}\r\n250 e");
    is_text(said(&c), TEXT(""), "the next one waits for its end");
    hears(&c, "nd\r\n");
    is_text(said(&c), TEXT("XASK 2\r\n{}"), "another question");
    hears(&c, "502 5.5.1 no questions\r\n");
    is_text(told(&c), TEXT("relay2: {\"a\":1}\nrelay2: {}\nrelay2: end \nrelay2: end it said: 502 5.5.1 no questions\n"), "answers");
    ask(&c, "{}", 100);
    said(&c);
    memset(line, 'x', sizeof(line));
    memcpy(line, "250-", 4);
    memcpy(line + SIBLING_LINE_MAX + 4, "\r\n250 end\r\n", 12);
    hears(&c, line);
    ok_named(!c.client.is_over && strstr(told(&c).at, "relay2: end ") != NULL, "64 KiB in a line");
    ask(&c, "{}", 100);
    ask(&c, "{}", 70);
    ask(&c, "{}", 90);
    is_number(peer_client_next_ms(&c.client), 70, "the next end");
    said(&c);
    peer_client_expire(&c.client, 90);
    is_text(told(&c), TEXT("relay2: end no answer in time\nrelay2: end no answer in time\n"), "time is over for two");
    ok_named(!c.client.is_over, "that were not sent");
    hears(&c, "250 end\r\n");
    is_text(told(&c), TEXT("relay2: end \n"), "the first is answered");
    ok(peer_client_is_idle(&c.client) && !c.client.is_over);
    ask(&c, "{}", 100);
    said(&c);
    memset(line, 'x', sizeof(line));
    input = text_of(line, sizeof(line));
    peer_client_read(&c.client, &input);
    ok_named(c.client.is_over, "more than 64 KiB in a line");
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT("relay2: end a line of an answer is too long\n"), "ends it");
    call_close(&c);
    call_open(&c);
    ask(&c, "{}", 100);
    said(&c);
    hears(&c, HELLO_REPLY);
    said(&c);
    hears(&c, "250-\r\n");
    ok_named(c.client.is_over, "a line without a byte would never be too much");
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT("relay2: end an odd answer to a question\n"), "it is none");
    call_close(&c);
}

TEST(odd_answers)
{
    static const char *const odd[] = {"250-a\r\n220 end\r\n", "250 End\r\n", "\r\n", "251-x\r\n", "end\r\n", "99 x\r\n"};
    struct call c;

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        call_open(&c);
        said(&c);
        hears(&c, HELLO_REPLY);
        ask(&c, "{}", 100);
        said(&c);
        hears(&c, odd[i]);
        ok_named(c.client.is_over, "an odd answer");
        is_string(c.client.why, "an odd answer to a question", "says why");
        call_close(&c);
    }
    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY "250 2.0.0 here\r\n");
    ok_named(c.client.is_over, "a reply to nothing");
    call_close(&c);
    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY "421 4.3.2 this host stops\r\n");
    is_string(c.client.why, "it said: 421 4.3.2 this host stops", "421 comes at any time");
    call_close(&c);
}

/* A byte of a reply now and then keeps nothing here for ever, nor what was sent behind it. */
TEST(slow_reply)
{
    struct call c;
    struct gift one, two;
    struct sibling_gift first, second;

    call_open(&c);
    said(&c);
    is_number(peer_client_next_ms(&c.client), NOW_MS + PEER_REPLY_MS, "that of XPEER, too");
    hears(&c, HELLO_REPLY);
    first = gift_of(&one, &c, "one", "S", 100000);
    second = gift_of(&two, &c, "two", "S", 5);
    peer_client_give(&c.client, &first);
    peer_client_fill(&c.client, 1000, NOW_MS);
    peer_client_expire(&c.client, 10 * PEER_REPLY_MS);
    ok_named(!c.client.is_over, "what is still being sent has time");
    peer_client_give(&c.client, &second);
    peer_client_fill(&c.client, 1 << 20, 11 * PEER_REPLY_MS);
    for (int at = 0; at < 4; at++) {
        char byte[] = {"250 2.0."[at], '\0'};
        hears(&c, byte);
        peer_client_expire(&c.client, 11 * PEER_REPLY_MS + at * 14000);
    }
    ok(!c.client.is_over);
    is_number(peer_client_next_ms(&c.client), 12 * PEER_REPLY_MS, "its time");
    peer_client_expire(&c.client, 12 * PEER_REPLY_MS);
    ok_named(c.client.is_over, "is over");
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT("one: lost - 0 4.4.2 relay2: no reply in time\ntwo: lost - 0 4.4.2 relay2: no reply in time\n"), "both may be there");
    call_close(&c);

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    ask(&c, "{}", 3 * PEER_REPLY_MS);
    said(&c);
    hears(&c, "250-{");
    peer_client_expire(&c.client, 2 * PEER_REPLY_MS);
    ok_named(!c.client.is_over, "a question has the time that it was given");
    peer_client_expire(&c.client, 3 * PEER_REPLY_MS);
    ok(c.client.is_over);
    is_text(told(&c), TEXT("relay2: end no answer in time\n"), "not more");
    call_close(&c);
}

TEST(ignore)
{
    struct call c;
    struct gift one, two, three;
    struct sibling_gift first, second, third;

    call_open(&c);
    said(&c);
    hears(&c, HELLO_REPLY);
    first = gift_of(&one, &c, "one", "S", 5);
    second = gift_of(&two, &c, "two", "S", 100000);
    third = gift_of(&three, &c, "three", "S", 5);
    peer_client_give(&c.client, &first);
    peer_client_give(&c.client, &second);
    peer_client_give(&c.client, &third);
    peer_client_fill(&c.client, 1000, NOW_MS);
    ok_named(peer_client_ignore(&c.client, &three), "one that was not begun");
    ok_named(peer_client_ignore(&c.client, &one), "one that was sent");
    hears(&c, "250 2.0.0 " ID2 "\r\n");
    is_text(told(&c), TEXT(""), "nobody hears of it");
    ok_named(!peer_client_ignore(&c.client, &two) && c.client.is_over, "one that is being sent ends the connection");
    two.reads = 0;
    peer_client_fill(&c.client, 1 << 20, NOW_MS);
    is_number(two.reads, 0, "it is not read any more");
    peer_client_lose(&c.client, "");
    is_text(told(&c), TEXT(""), "nor its owner called");
    call_close(&c);
}

/* The other host would go on with a question that it has, and all behind it would wait. */
TEST(leave)
{
    struct call c, another;
    const struct sibling_listener listener = {ask_line, ask_end, &another};

    for (int by_time = 0; by_time < 2; by_time++) {
        call_open(&c);
        buffer_init(&another.told, 1000);
        said(&c);
        hears(&c, HELLO_REPLY);
        peer_client_ask(&c.client, TEXT("{\"a\":1}"), 10, &listener);
        ask(&c, "{\"b\":2}", 100);
        said(&c);
        if (by_time)
            peer_client_expire(&c.client, 10);
        else
            ok_named(!peer_client_ignore(&c.client, &another), "the connection must end");
        ok(c.client.is_over && c.client.is_left);
        peer_client_noop(&c.client);
        hears(&c, "250-{\"late\":1}\r\n250 end\r\n");
        peer_client_lose(&c.client, "");
        is_text(buffer_text(&another.told), by_time ? TEXT("relay2: end no answer in time\n") : TEXT(""), "nobody hears of it");
        is_text(told(&c), TEXT(""), "the other one has time");
        ok(!peer_client_is_idle(&c.client) && !c.client.is_left);
        peer_client_start(&c.client);
        is_text(said(&c), TEXT(HELLO), "a new connection");
        hears(&c, HELLO_REPLY);
        is_text(said(&c), TEXT("XASK 7\r\n{\"b\":2}"), "has what was not sent");
        hears(&c, "250 end\r\n");
        is_text(told(&c), TEXT("relay2: end \n"), "which is answered");
        ask(&c, "{}", 100);
        ok(peer_client_ignore(&c.client, &c) && !c.client.is_over);
        ask(&c, "{}", 100);
        ask(&c, "{}", 200);
        said(&c);
        peer_client_lose(&c.client, "gone");
        is_text(told(&c), TEXT("relay2: end gone\nrelay2: end gone\n"), "what breaks ends all");
        buffer_free(&another.told);
        call_close(&c);
    }
}

/* The owner gives the next one when it hears of the last. */
TEST(again)
{
    struct call c;
    struct gift one, two;
    struct sibling_gift first, second;

    call_open(&c);
    first = gift_of(&one, &c, "one", "S", 5);
    second = gift_of(&two, &c, "two", "S", 5);
    one.then = &second;
    one.then_gives = &c.client;
    peer_client_give(&c.client, &first);
    peer_client_lose(&c.client, "connection refused");
    is_text(told(&c), TEXT("one: later - 0 4.4.2 relay2: connection refused\n"), "no connection: it is not there");
    peer_client_start(&c.client);
    said(&c);
    hears(&c, HELLO_REPLY);
    is_text(said(&c), TEXT("XGIVE " ID " 1 5 0badcafe\r\nSabcde"), "what came meanwhile is sent by the next one");
    peer_client_noop(&c.client);
    peer_client_noop(&c.client);
    is_text(said(&c), TEXT("NOOP\r\n"), "one NOOP at a time");
    peer_client_quit(&c.client);
    is_text(said(&c), TEXT(""), "no QUIT while a reply is due");
    hears(&c, "250 2.0.0 " ID2 "\r\n250 2.0.0 here\r\n");
    peer_client_quit(&c.client);
    is_text(said(&c), TEXT("QUIT\r\n"), "then");
    hears(&c, "221 2.0.0 goodbye\r\n");
    ok(c.client.is_over);
    is_string(c.client.why, "goodbye", "goodbye");
    call_close(&c);
}

static void
pair_wake(void *context)
{
    (void)context;
}

/* Both machines, with pipes of every width between them. */
static void
test_pair(size_t width)
{
    struct call c;
    struct service_world other;
    struct peer_server *server = memory_new(sizeof(*server));
    struct gift gifts[5];
    struct sibling_gift gift;
    struct buffer there, back;
    int64_t sizes[5] = {0, 1, 100, 70000, 7};

    call_open(&c);
    service_start(&other, "relay2");
    other.is_prompt = true;
    server->service = &other.service;
    server->content_max = 80000;
    server->wake = pair_wake;
    peer_server_start(server);
    buffer_init(&there, 1 << 20);
    buffer_init(&back, 1 << 20);
    for (size_t i = 0; i < 5; i++) {
        gift = gift_of(&gifts[i], &c, "gift", "SECTIONS", sizes[i]);
        peer_client_give(&c.client, &gift);
    }
    ask(&c, "{\"question\":1}", 1000);
    for (int i = 0; i < 300000 && !peer_client_is_idle(&c.client); i++) {
        struct text input;
        size_t before;

        peer_client_fill(&c.client, 4096, NOW_MS);
        (void)!buffer_add(&there, buffer_text(&c.client.out));
        buffer_clear(&c.client.out);
        input = text_before(buffer_text(&there), width);
        before = input.length;
        peer_server_go(server, &input);
        buffer_take(&there, before - input.length);
        if (other.askings > 0) {
            other.asker.line(other.asker.context, TEXT("{\"answer\":1}"));
            other.asker.end(other.asker.context);
            input = TEXT("");
            peer_server_go(server, &input);
        }
        (void)!buffer_add(&back, buffer_text(&server->out));
        buffer_clear(&server->out);
        input = text_before(buffer_text(&back), width);
        before = input.length;
        peer_client_read(&c.client, &input);
        buffer_take(&back, before - input.length);
        /* A machine takes what it can use: more of a line must be shown with its begin. */
        if (width < 512 && before > 0 && input.length == before)
            width += 64;
        if (width < 512 && there.length > width)
            width += 64;
    }
    ok(server->taken == 5 && server->asked == 1 && server->refused == 0);
    is_number(other.crc, crc_add(crc_add(0, "SECTIONS", 8), "abcdefg", 7), "the last one is whole");
    ok(strstr(told(&c).at, "relay2: {\"answer\":1}\nrelay2: end \n") != NULL);
    peer_server_stop(server);
    free(server);
    service_finish(&other);
    buffer_free(&there);
    buffer_free(&back);
    call_close(&c);
}

int
main(void)
{
    tap_tests("");
    test_pair(1);
    test_pair(700);
    test_pair(1 << 16);
    return done();
}
