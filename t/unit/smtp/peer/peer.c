/* link: t/sim/clock.c */
/* The peer door over loopback: two hosts of a group in one process, and what others do. */
#include "smtp/peer/peer_internal.h"

#include "base/crc.h"
#include "base/dns/dns.h"
#include "base/log/log.h"
#include "t/sim/clock.h"
#include "t/support/net_world.h"
#include "t/support/peer_service.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "another secret, which has 32 bytes and some more"

/* One of two hosts. */
struct host {
    struct service_world world;
    struct peer *peer;
    struct peer_settings settings;
    char address[NET_ADDRESS_TEXT_MAX]; /* of its door */
    struct pair *pair;
};

struct pair {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct log *log;
    struct buffer said; /* the log */
    struct host one, two;
    const char *name; /* which address() finds, instead of the door */
    struct buffer told;
};

static void
pair_log(void *context, struct text line)
{
    (void)!buffer_add(&((struct pair *)context)->said, line);
}

static bool
pair_says(const struct pair *p, const char *what)
{
    return p->said.length > 0 && memmem(p->said.at, p->said.length, what, strlen(what)) != NULL;
}

static const char *
host_address(void *context, const char *name)
{
    const struct host *h = context;

    if (h->pair->name != NULL)
        return h->pair->name;
    if (strcmp(name, "relay1") == 0)
        return h->pair->one.address;
    return strcmp(name, "relay2") == 0 ? h->pair->two.address : NULL;
}

static void
host_start(struct host *h, struct pair *p, const char *name, const char *secret)
{
    static struct net_address loopback;
    const struct peer_setup setup = {.loop = p->loop,
                                     .net = p->net,
                                     .dns = p->dns,
                                     .log = p->log,
                                     .service = &h->world.service,
                                     .address = host_address,
                                     .context = h};
    char error[512] = "";
    struct net_address at;
    struct net_listener_counts counts;

    loopback = address("127.0.0.1:0");
    h->pair = p;
    service_start(&h->world, name);
    h->world.is_prompt = true;
    h->settings = (struct peer_settings){.listen = &loopback, .listen_count = 1, .secret = text_from(secret), .group = "mail", .message_size_limit = 1 << 20};
    h->peer = peer_new(&setup, &h->settings, error, sizeof(error));
    is_string(error, "", "a peer");
    ok(peer_door(h->peer, 0, &at, &counts));
    net_address_format(&at, h->address);
}

static struct pair *
pair_start(const char *first, const char *second)
{
    struct pair *p = memory_new(sizeof(*p));
    char error[512];

    p->loop = loop_new();
    p->net = net_new(p->loop);
    p->dns = dns_new(p->loop, TEXT("127.0.0.1:9"), error, sizeof(error));
    buffer_init(&p->said, 1 << 20);
    buffer_init(&p->told, 1 << 20);
    p->log = log_new_apart(p->loop, pair_log, p);
    host_start(&p->one, p, "relay1", first);
    host_start(&p->two, p, "relay2", second);
    return p;
}

static void
pair_finish(struct pair *p)
{
    peer_free(&p->one.peer);
    peer_free(&p->two.peer);
    service_finish(&p->one.world);
    service_finish(&p->two.world);
    dns_free(&p->dns);
    net_free(&p->net);
    log_free(&p->log);
    loop_free(&p->loop);
    buffer_free(&p->said);
    buffer_free(&p->told);
    free(p);
}

static int64_t
pair_read(void *context, int64_t offset, char *to, size_t size)
{
    (void)context;
    for (size_t i = 0; i < size; i++)
        to[i] = (char)((offset + (int64_t)i) * 7 >> 3);
    return (int64_t)size;
}

static void
pair_given(void *context, enum sibling_answer answer, struct id there, const struct outcome *outcome)
{
    static const char *const words[] = {"taken", "later", "refused", "lost"};
    struct pair *p = context;

    (void)there;
    (void)!buffer_format(&p->told, "%s %s\n", words[answer], answer == SIBLING_TAKEN ? "" : outcome->text);
}

static void
pair_line(void *context, const char *host, struct text json)
{
    (void)!buffer_format(&((struct pair *)context)->told, "%s %.*s\n", host, TEXT_ARGS(json));
}

static void
pair_end(void *context, const char *host, const char *trouble)
{
    (void)!buffer_format(&((struct pair *)context)->told, "%s end %s\n", host, trouble ? trouble : "");
}

static void
pair_give(struct pair *p, const char *to, int64_t content)
{
    const struct sibling_calls *calls = peer_calls(p->one.peer);
    struct sibling_gift gift = {
        .message = {.id = {1000, 5}, .sections = 8, .content = content},
        .sections = TEXT("SECTIONS"), .read = pair_read, .context = p, .given = pair_given};

    calls->give(calls->context, to, &gift);
}

static void
pair_ask(struct pair *p, const char *to, int64_t timeout_ms)
{
    const struct sibling_calls *calls = peer_calls(p->one.peer);
    const struct sibling_listener listener = {pair_line, pair_end, p};

    calls->ask(calls->context, to, TEXT("{}"), timeout_ms, &listener);
}

static bool
pair_told(const struct pair *p, const char *what)
{
    return p->told.length > 0 && memmem(p->told.at, p->told.length, what, strlen(what)) != NULL;
}

static size_t
pair_count(const struct pair *p, const char *what)
{
    size_t count = 0;

    for (const char *at = p->told.at; at != NULL && at < p->told.at + p->told.length; count++) {
        at = memmem(at, p->told.length - (size_t)(at - p->told.at), what, strlen(what));
        if (at == NULL)
            break;
        at++;
    }
    return count;
}

TEST(check)
{
    static const struct {
        const char *group, *secret;
        bool listens;
        const char *error;
    } all[] = {
        {"mail", A, true, ""},
        {"mail", "  " A "\r\n\n" B "\n", true, ""},
        {"mail", "", false, ""},
        {"mail", A, false, ""},
        {"mail", "", true, "listen: ?peer needs cluster_secret, the same on all hosts of the group\n"},
        {"mail", "\n \n", true, "listen: ?peer needs cluster_secret, the same on all hosts of the group\n"},
        {"", A, true, "listen: ?peer is for a group of hosts: set cluster\n"},
        {"mail", A "\nshort", false, "cluster_secret: line 2 has 5 bytes, not 32 to 1024: openssl rand -hex 32 makes a good one\n"},
        {"mail", A "\n" A "\n" A "\n" A "\n" A "\n" A "\n" A "\n" A "\n" A, true, "cluster_secret: at most 8 lines\n"},
    };
    struct net_address at = address("127.0.0.1:4650");

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct peer_settings s = {.listen = &at, .listen_count = all[i].listens, .secret = text_from(all[i].secret), .group = all[i].group};
        struct buffer errors;

        buffer_init(&errors, 10000);
        ok(peer_check(&s, &errors) == (all[i].error[0] == '\0'));
        is_text(buffer_text(&errors), text_from(all[i].error), "one line for each error");
        buffer_free(&errors);
    }
}

TEST(give)
{
    struct pair *p = pair_start(A, A);
    const struct sibling_calls *calls = peer_calls(p->one.peer);
    uint32_t crc = crc_add(0, "SECTIONS", 8);
    char *content = memory_new(900000);

    ok(calls->has_room(calls->context, "relay2", 1 << 20));
    for (int i = 0; i < SIBLING_UNANSWERED; i++)
        pair_give(p, "relay2", 10);
    ok_named(!calls->has_room(calls->context, "relay2", 18), "64 without an answer");
    ok_named(calls->has_room(calls->context, "relay2", PEER_LARGE + 1), "large ones have a connection of their own");
    pair_give(p, "relay2", 10);
    ok_named(p->told.length == 0, "nothing is called before a later turn");
    until(p, pair_count(p, "\n") == SIBLING_UNANSWERED + 1);
    is_number(pair_count(p, "taken"), SIBLING_UNANSWERED, "64 are taken");
    is_number(pair_count(p, "later too much waits"), 1, "one more was too many");
    pair_give(p, "relay2", 900000);
    until(p, pair_count(p, "taken") == SIBLING_UNANSWERED + 1);
    pair_read(NULL, 0, content, 900000);
    is_number(p->two.world.crc, crc_add(crc, content, 900000), "a large one is whole");
    is_number(peer_counts(p->two.peer).named, 2, "it came by a connection of its own");
    pair_ask(p, "relay2", 60000);
    until(p, p->two.world.asked == 1);
    p->two.world.asker.line(p->two.world.asker.context, TEXT("{\"a\":1}"));
    p->two.world.asker.end(p->two.world.asker.context);
    until(p, pair_told(p, "relay2 {\"a\":1}\nrelay2 end \n"));
    pair_ask(p, "relay2", 1);
    until(p, pair_told(p, "relay2 end no answer in time\n"));
    ok(p->one.peer->entry_count == 0 && p->two.peer->entry_count == 3 && p->two.peer->entering == 0);
    ok_named(!pair_says(p, "warning"), "nothing to complain of");
    free(content);
    pair_finish(p);
}

TEST(unreachable)
{
    struct pair *p = pair_start(A, B);
    const struct sibling_calls *calls = peer_calls(p->one.peer);

    pair_give(p, "relay2", 10);
    pair_ask(p, "relay2", 60000);
    until(p, pair_count(p, "\n") == 2);
    ok(pair_told(p, "later relay2: TLS: the other host does not know the secret of the group\n"));
    ok(pair_told(p, "relay2 end TLS: the other host does not know the secret of the group\n"));
    until(p, pair_says(p, "[127.0.0.1]: TLS: the other host does not know the secret of the group"));
    ok_named(pair_says(p, "peer: warning: relay2: TLS: the other host does not know the secret"), "both sides log it");
    buffer_clear(&p->told);
    pair_give(p, "relay7", 10);
    until(p, pair_told(p, "later relay7: its address is not known\n"));
    p->name = "127.0.0.1:1";
    pair_give(p, "relay8", 10);
    until(p, pair_told(p, "later relay8: "));
    p->name = "host.invalid:4650";
    pair_give(p, "relay9", 10);
    calls->ignore(calls->context, p);
    p->name = "odd";
    pair_give(p, "relay10", 10);
    until(p, pair_told(p, "later relay10: its address is no ADDRESS:PORT\n"));
    ok(!pair_told(p, "relay9"));
    p->name = p->two.address;
    p->two.settings.secret = TEXT(A);
    peer_reload(p->two.peer, &p->two.settings);
    pair_give(p, "relay3", 10);
    until(p, pair_told(p, "later relay3: another host is there, relay2\n"));
    pair_finish(p);
}

/* A name, by /etc/hosts; and a host that is back. */
TEST(name)
{
    struct pair *p = pair_start(A, B "\n" A);
    char name[100];

    snprintf(name, sizeof(name), "localhost%s", strrchr(p->two.address, ':'));
    p->name = name;
    pair_give(p, "relay2", 10);
    until(p, pair_told(p, "\n"));
    ok_named(pair_told(p, "taken"), "by its name, of which another address may not answer; the secret is its second");
    pair_finish(p);
}

TEST(reload)
{
    struct pair *p = pair_start(A, A);

    pair_give(p, "relay2", 10);
    until(p, pair_count(p, "taken") == 1);
    p->two.settings.secret = TEXT(B "\n" A);
    peer_reload(p->two.peer, &p->two.settings);
    pair_give(p, "relay2", 10);
    until(p, pair_count(p, "taken") == 2);
    is_number(peer_counts(p->two.peer).named, 1, "a secret more disturbs no connection");
    p->two.settings.secret = TEXT(B);
    peer_reload(p->two.peer, &p->two.settings);
    is_number(p->two.peer->entry_count, 0, "one that is withdrawn ends all");
    until(p, pair_says(p, "relay2: it said: 421 4.3.2 the secret has changed"));
    buffer_clear(&p->told);
    pair_give(p, "relay2", 10);
    until(p, pair_told(p, "later relay2: TLS: the other host does not know"));
    p->one.settings.secret = TEXT(B);
    peer_reload(p->one.peer, &p->one.settings);
    pair_give(p, "relay2", 10);
    until(p, pair_told(p, "taken"));
    ok(pair_says(p, "relay2: is back"));
    pair_finish(p);
}

static bool
is_closed(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno != EAGAIN);
}

static int
raw_to(struct pair *p, const char *text)
{
    struct net_address to = address(text);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(to.port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    uint64_t accepted = peer_counts(p->two.peer).accepted;

    memcpy(&name.sin_addr, to.ip, 4);
    ok_named(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0, "somebody connects");
    until(p, peer_counts(p->two.peer).accepted > accepted);
    return fd;
}

static bool
all_are_siblings(void *context, const struct net_address *address_)
{
    (void)context;
    (void)address_;
    return true;
}

static size_t
pair_lines(const struct pair *p, const char *what)
{
    size_t count = 0;
    struct text rest = buffer_text(&p->said), line;

    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        count += memmem(line.at, line.length, what, strlen(what)) != NULL;
    return count;
}

TEST(intruders)
{
    struct pair *p = pair_start(A, A);
    int fd = raw_to(p, p->two.address), other;

    ok(write(fd, "EHLO client.example\r\n", 21) == 21);
    until(p, pair_says(p, "[127.0.0.1]: TLS: the peer does not speak TLS"));
    until(p, is_closed(fd));
    close(fd);
    other = raw_to(p, p->two.address);
    close(other);
    until(p, pair_says(p, "ended the connection in the handshake"));
    for (int i = 0; i < 20; i++)
        close(raw_to(p, p->two.address));
    until(p, p->two.peer->entry_count == 0);
    size_t lines = pair_lines(p, "[127.0.0.1]: ");
    is_number(lines, PEER_COMPLAINTS_MAX, "few lines of them");
    p->one.settings.secret = TEXT(B);
    peer_reload(p->one.peer, &p->one.settings);
    p->two.peer->setup.is_sibling = all_are_siblings;
    pair_give(p, "relay2", 10);
    until(p, pair_told(p, "later relay2: "));
    until(p, pair_says(p, "warning: [127.0.0.1]: TLS: the other host does not know the secret"));
    ok_named(pair_lines(p, "[127.0.0.1]: ") == lines + 1, "they do not hide that a sibling has another secret");
    clock_stop();
    clock_pass(61 * 1000);
    p->two.peer->setup.is_sibling = NULL;
    close(raw_to(p, p->two.address));
    until(p, pair_says(p, "more lines on callers were left out"));
    clock_go();
    pair_finish(p);
}

static int
open_of(const int *fds, int count)
{
    int open = 0;

    for (int i = 0; i < count; i++)
        open += !is_closed(fds[i]);
    return open;
}

/* Half handshakes push each other out, but no sibling. */
TEST(crowd)
{
    enum { MANY = PEER_HANDSHAKES_MAX };
    struct pair *p = pair_start(A, A);
    int first[MANY], second[MANY], third[MANY];

    clock_stop();
    for (int i = 0; i < MANY; i++)
        first[i] = raw_to(p, p->two.address);
    is_number(open_of(first, MANY), MANY, "there is room for 64");
    clock_pass(PEER_ENTER_MS + 100);
    for (int i = 0; i < MANY; i++)
        second[i] = raw_to(p, p->two.address);
    is_number(p->two.peer->entering, MANY, "not for more");
    is_number(peer_counts(p->two.peer).pushed_out, MANY, "others must go");
    ok_named(open_of(first, MANY) == 0 && open_of(second, MANY) == MANY, "those that had time enough");
    for (int i = 0; i < MANY; i++)
        third[i] = raw_to(p, p->two.address);
    is_number(open_of(second, MANY) + open_of(third, MANY), MANY, "in a flood any of them");
    ok(!is_closed(third[MANY - 1]));
    clock_go();
    pair_give(p, "relay2", 10);
    until(p, pair_told(p, "\n"));
    ok(pair_told(p, "taken"));
    ok_named(p->two.peer->entry_count == MANY && p->two.peer->entering == MANY - 1,
             "a sibling comes in, and then is no newcomer any more");
    for (int i = 0; i < MANY; i++) {
        close(first[i]);
        close(second[i]);
        close(third[i]);
    }
    until(p, p->two.peer->entry_count == 1);
    pair_finish(p);
}

/* Those from where siblings are have the room of others, but not the reverse. */
TEST(crowd_of_known)
{
    enum { MANY = PEER_HANDSHAKES_MAX };
    struct pair *p = pair_start(A, A);
    int known[MANY], other;

    p->two.peer->setup.is_sibling = all_are_siblings;
    for (int i = 0; i < MANY; i++)
        known[i] = raw_to(p, p->two.address);
    p->two.peer->setup.is_sibling = NULL;
    other = raw_to(p, p->two.address);
    until(p, is_closed(other));
    ok_named(open_of(known, MANY) == MANY && peer_counts(p->two.peer).turned_away == 1, "an unknown one is turned away");
    close(other);
    p->two.peer->setup.is_sibling = all_are_siblings;
    other = raw_to(p, p->two.address);
    ok_named(!is_closed(other) && open_of(known, MANY) == MANY - 1, "a known one has the place of another");
    close(other);
    for (int i = 0; i < MANY; i++)
        close(known[i]);
    until(p, p->two.peer->entry_count == 0);
    pair_finish(p);
}

/* A host has four connections; the fifth ends the oldest. */
TEST(too_many)
{
    struct pair *p = pair_start(A, A);
    struct peer_setup setup = p->one.peer->setup;
    struct peer *more[3];
    char error[512];

    pair_give(p, "relay2", 10);
    pair_give(p, "relay2", 300000);
    pair_ask(p, "relay2", 60000);
    until(p, p->two.peer->entry_count == 3 && p->two.peer->entering == 0);
    for (int i = 0; i < 3; i++) {
        const struct sibling_calls *calls;
        const struct sibling_listener listener = {pair_line, pair_end, p};
        uint64_t named = peer_counts(p->two.peer).named;

        more[i] = peer_new(&setup, &(struct peer_settings){.secret = TEXT(A), .group = "mail"}, error, sizeof(error));
        calls = peer_calls(more[i]);
        calls->ask(calls->context, "relay2", TEXT("{}"), 60000, &listener);
        until(p, peer_counts(p->two.peer).named > named);
    }
    until(p, p->two.peer->entry_count == PEER_CONNECTIONS_MAX);
    until(p, pair_says(p, "421 4.7.0 too many connections of this host"));
    for (int i = 0; i < 3; i++)
        peer_free(&more[i]);
    pair_finish(p);
}

/* A question that nobody waits for any more does not hold up the next one, nor does one that
 * takes long. */
TEST(questions)
{
    struct pair *p = pair_start(A, A);
    const struct sibling_calls *calls = peer_calls(p->one.peer);
    int long_one, short_one;
    const struct sibling_listener first = {pair_line, pair_end, &long_one}, second = {pair_line, pair_end, &short_one};

    calls->ask(calls->context, "relay2", TEXT("{}"), PEER_ASK_MS + 1, &first);
    until(p, p->two.world.askings == 1);
    calls->ask(calls->context, "relay2", TEXT("{}"), PEER_ASK_MS, &second);
    until(p, p->two.world.askings == 2);
    pair_ask(p, "relay2", PEER_ASK_MS);
    is_number(p->two.peer->entry_count, 2, "a connection for questions, and one for long ones");
    calls->ignore(calls->context, &long_one);
    until(p, p->two.world.askings == 1);
    ok_named(p->two.world.asked == 2, "what nobody waits for ends there");
    calls->ignore(calls->context, &short_one);
    until(p, p->two.world.asked == 3);
    is_number(p->two.world.askings, 1, "the next one is asked");
    p->two.world.asker.end(p->two.world.asker.context);
    until(p, pair_told(p, "relay2 end \n"));
    until(p, p->two.world.askings == 0);
    ok_named(!pair_says(p, "warning"), "nothing to complain of");
    pair_finish(p);
}

/* The host dies while a message waits for its answer. */
TEST(death)
{
    struct pair *p = pair_start(A, A);

    p->two.world.is_prompt = false;
    pair_give(p, "relay2", 10);
    until(p, p->two.world.pending_count == 1);
    peer_free(&p->two.peer);
    is_number(p->two.world.pending_count, 0, "what becomes durable later is answered to nobody");
    until(p, p->told.length > 0);
    is_text(buffer_text(&p->told), TEXT("lost relay2: it said: 421 4.3.2 this host stops\n"),
            "the giver does not know what became of it");
    pair_finish(p);
}

/* --- In time: the other side is by hand -------------------------------------------------- */

struct hand {
    struct pair *pair;
    struct net_connection *connection;
    struct tls_server *server;
    struct tls_client *client;
    struct net_listener *listener;
    struct buffer heard;
    bool is_over, answers;
};

/* In steps of half a second, with turns enough for both sides to hear each other. */
static void
pair_pass(struct pair *p, int64_t ms)
{
    for (; ms > 0; ms -= 500) {
        clock_pass(ms < 500 ? ms : 500);
        for (int turn = 0; turn < 10; turn++)
            loop_turn(p->loop, 1);
    }
}

static void
hand_on_event(void *context, enum net_event event)
{
    struct hand *h = context;

    if (event == NET_ENDED || event == NET_FAILED)
        h->is_over = true;
    if (event != NET_INPUT)
        return;
    (void)!buffer_add(&h->heard, net_input(h->connection));
    net_consume(h->connection, net_input(h->connection).length);
    if (h->answers && memmem(h->heard.at, h->heard.length, "\r\n", 2) != NULL) {
        h->answers = false;
        net_send(h->connection, TEXT("250 {\"host\":\"relay2\",\"group\":\"mail\",\"spool\":\"aa\",\"run\":7,\"version\":\"1\",\"state\":\"running\"}\r\n"));
    }
}

static void
hand_on_accept(void *context, struct net_connection *connection)
{
    struct hand *h = context;
    const struct net_tls tls = {.server = h->server};

    h->connection = connection;
    net_attach(connection, hand_on_event, h);
    net_start_tls(connection, &tls);
}

static void
hand_start(struct hand *h, struct pair *p)
{
    char error[512];
    struct tls *tls = tls_new(error, sizeof(error));
    const struct tls_shared shared = {.group = "mail", .secrets = {TEXT(A)}, .count = 1};

    memset(h, 0, sizeof(*h));
    h->pair = p;
    h->server = tls_server_new_shared(tls, &shared, error, sizeof(error));
    h->client = tls_client_new_shared(tls, &shared, error, sizeof(error));
    tls_free(&tls);
    buffer_init(&h->heard, 1 << 20);
}

static void
hand_finish(struct hand *h)
{
    if (h->connection != NULL)
        net_abort(&h->connection);
    net_listener_free(&h->listener);
    tls_server_free(&h->server);
    tls_client_free(&h->client);
    buffer_free(&h->heard);
}

static void
hand_call(struct hand *h, const char *says)
{
    const struct net_tls tls = {.client = h->client, .options = {.level = TLS_LEVEL_NONE}};
    struct net_address to = address(h->pair->two.address);

    h->connection = net_connect(h->pair->net, &to, NULL, hand_on_event, h);
    net_start_tls(h->connection, &tls);
    net_send(h->connection, text_from(says));
}

/* A caller that does not name itself, and one that says nothing more. */
TEST(silent_callers)
{
    struct pair *p = pair_start(A, A);
    struct hand nobody, relay;

    hand_start(&nobody, p);
    hand_start(&relay, p);
    hand_call(&nobody, "");
    hand_call(&relay, "XPEER 1 {\"host\":\"relay1\",\"group\":\"mail\",\"spool\":\"aa\",\"run\":7,\"version\":\"1\",\"state\":\"running\"}\r\n");
    until(p, relay.heard.length > 0 && p->two.peer->entry_count == 2);
    clock_stop();
    pair_pass(p, PEER_SILENCE_MS - 1000);
    ok(!nobody.is_over && !relay.is_over);
    net_send(relay.connection, TEXT("NOOP\r\n"));
    buffer_clear(&relay.heard);
    for (int i = 0; i < 60000 && relay.heard.length == 0; i++)
        loop_turn(p->loop, 1);
    pair_pass(p, 1500);
    for (int i = 0; i < 60000 && !nobody.is_over; i++)
        loop_turn(p->loop, 1);
    ok_named(nobody.is_over && !relay.is_over, "who has not said who it is goes after 15 s");
    ok(pair_says(p, "[127.0.0.1]: has not said who it is in time"));
    pair_pass(p, PEER_SILENCE_MS);
    for (int i = 0; i < 60000 && !relay.is_over; i++)
        loop_turn(p->loop, 1);
    ok_named(relay.is_over, "silence of 15 s ends a connection");
    ok(pair_says(p, "relay1 is silent"));
    is_number(p->two.peer->entry_count, 0, "nobody is left");
    clock_go();
    hand_finish(&nobody);
    hand_finish(&relay);
    pair_finish(p);
}

TEST(silent_sibling)
{
    struct pair *p = pair_start(A, A);
    struct net_address any = address("127.0.0.1:0");
    char error[512], at[NET_ADDRESS_TEXT_MAX];
    struct hand h;

    hand_start(&h, p);
    h.listener = net_listen(p->net, &any, 0, hand_on_accept, &h, error, sizeof(error));
    net_address_format(net_listener_address(h.listener), at);
    p->name = at;
    h.answers = true;
    pair_give(p, "relay2", 10);
    until(p, h.heard.length > 0 && memmem(h.heard.at, h.heard.length, "SECTIONS", 8) != NULL);
    clock_stop();
    pair_pass(p, PEER_NOOP_MS + 500);
    for (int i = 0; i < 60000 && memmem(h.heard.at, h.heard.length, "NOOP\r\n", 6) == NULL; i++)
        loop_turn(p->loop, 1);
    ok_named(memmem(h.heard.at, h.heard.length, "NOOP\r\n", 6) != NULL, "NOOP after 5 s");
    ok_named(p->told.length == 0, "it waits");
    pair_pass(p, PEER_NOOP_MS + 500);
    for (int i = 0; i < 10; i++)
        loop_turn(p->loop, 0);
    const struct peer_link *link = peer_link_find(p->one.peer, "relay2", PEER_LINK_MAIL);
    ok_named(link->timer.due_ms > loop_monotonic_ms(p->loop), "without work, while NOOP has no answer");
    pair_pass(p, PEER_SILENCE_MS);
    is_text(buffer_text(&p->told), TEXT("lost relay2: it is silent\n"), "not longer than 15 s");
    clock_go();
    hand_finish(&h);
    pair_finish(p);
}

/* A connection that nobody needs ends, and so does what is remembered of the host. */
TEST(idle)
{
    struct pair *p = pair_start(A, A);

    pair_give(p, "relay2", 10);
    until(p, pair_told(p, "taken"));
    ok(HASH_COUNT(p->one.peer->hosts) == 1 && p->two.peer->entry_count == 1);
    clock_stop();
    for (int i = 0; i < 10; i++) {
        pair_pass(p, PEER_NOOP_MS);
    }
    ok_named(p->two.peer->entry_count == 1, "for a while it stays");
    for (int i = 0; i < 10; i++) {
        pair_pass(p, PEER_NOOP_MS);
    }
    ok(p->two.peer->entry_count == 0 && HASH_COUNT(p->one.peer->hosts) == 0);
    ok_named(!pair_says(p, "warning"), "that is no trouble");
    clock_go();
    pair_give(p, "relay2", 10);
    until(p, pair_count(p, "taken") == 2);
    is_number(peer_counts(p->two.peer).named, 2, "the next message has a new one");
    pair_finish(p);
}

/* One that is tried again each second is logged once, and is forgotten later. */
TEST(asked_often)
{
    struct pair *p = pair_start(A, A);

    p->name = "127.0.0.1:1";
    clock_stop();
    for (unsigned i = 1; i <= 6; i++) {
        pair_give(p, "relay2", 10);
        for (int turn = 0; turn < 60 && pair_count(p, "relay2") < i; turn++)
            pair_pass(p, 500);
        pair_pass(p, 1000);
    }
    is_number(pair_lines(p, "peer: warning: relay2: "), 1, "one line for all");
    for (int i = 0; i < 20; i++)
        pair_pass(p, PEER_NOOP_MS);
    is_number(HASH_COUNT(p->one.peer->hosts), 0, "nothing is left of it after a while");
    clock_go();
    pair_finish(p);
}

int
main(void)
{
    signal(SIGPIPE, SIG_IGN);
    tap_tests("");
    return done();
}
