/* smtp/listener under TLS: STARTTLS, TLS from the first byte, what is forgotten, what a
 * reload changes. */
#include "smtp/session/listener.h"

#include "t/support/listener_world.h"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20};

/* A client with TLS in the same loop. */
struct caller {
    struct world *w;
    struct net_connection *connection;
    char said[20000];
    bool secured, failed, ended;
};

static char directory[] = "/tmp/petrel-ltls-XXXXXX";
static struct tls_client *client;

static void
on_event(void *context, enum net_event event)
{
    struct caller *c = context;
    struct text input = net_input(c->connection);
    size_t length = strlen(c->said);

    if (event == NET_INPUT) {
        text_copy(c->said + length, sizeof(c->said) - length, input);
        net_consume(c->connection, input.length);
    }
    c->secured = c->secured || event == NET_SECURED;
    c->failed = c->failed || event == NET_FAILED;
    c->ended = c->ended || event == NET_ENDED;
}

/* From 127.0.0.last. */
static void
call_from(struct caller *c, struct world *w, unsigned port, unsigned char last)
{
    struct net_address at = {
        .family = NET_IPV4, .ip = {127, 0, 0, 1}
    };
    struct net_address from = {
        .family = NET_IPV4, .ip = {127, 0, 0, last}
    };

    at.port = (uint16_t)port;
    memset(c, 0, sizeof(*c));
    c->w = w;
    c->connection = net_connect(w->net, &at, &from, on_event, c);
}

static void
call(struct caller *c, struct world *w, unsigned port)
{
    call_from(c, w, port, 1);
}

static void
secure(struct caller *c)
{
    struct net_tls tls = {
        .client = client,
        .options = {.level = TLS_LEVEL_VERIFY, .host = TEXT("mail.example.net")}
    };

    net_start_tls(c->connection, &tls);
}

/* Says it, and waits until the answer has what is expected; what was heard then. */
static bool
answers(struct caller *c, const char *line, const char *expected)
{
    memset(c->said, 0, sizeof(c->said));
    net_send(c->connection, text_from(line));
    for (int i = 0; i < 400 && strstr(c->said, expected) == NULL && !c->failed; i++)
        loop_turn(c->w->loop, 5);
    if (strstr(c->said, expected) != NULL)
        return true;
    printf("# heard '%s' %s\n", c->said, net_error(c->connection));
    return false;
}

static void
depart(struct caller *c)
{
    net_abort(&c->connection);
    for (int i = 0; i < 200 && listener_sessions(c->w->listener) > 0; i++)
        loop_turn(c->w->loop, 5);
    ok(listener_sessions(c->w->listener) == 0);
}

static void
set_tls(struct world *w, const char *name)
{
    static char certificate[100], key[100];

    snprintf(certificate, sizeof(certificate), "%s/%s.pem", directory, name);
    snprintf(key, sizeof(key), "%s/%s.key", directory, name);
    w->settings.tls_certificate = name[0] ? text_from(certificate) : TEXT("");
    w->settings.tls_key = name[0] ? text_from(key) : TEXT("");
}

static bool
is_logged(struct world *w, const char *what)
{
    for (int i = 0; i < 3; i++)
        loop_turn(w->loop, 0);
    return memmem(w->lines.at, w->lines.length, what, strlen(what)) != NULL;
}

/* A proxy's header goes before TLS, and in one piece with its beginning. */
static void
behind_a_proxy(void)
{
    static struct world w;
    struct caller c;
    char listen[100];
    unsigned port = free_port(), clear = free_port();
    static const char header[] = "PROXY TCP4 192.0.2.7 198.51.100.1 40000 465\r\n";
    listener_world_start(&w, &plain, false, true);
    set_tls(&w, "good");
    snprintf(listen, sizeof(listen), "127.0.0.1:%u?tls&proxy, 127.0.0.1:%u?proxy", port,
             clear);
    listener_free(&w.listener);
    loop_turn(w.loop, 0);
    w.settings.listen = text_from(listen);
    w.settings.proxy_from = TEXT("127.0.0.1");
    w.listener = listener_new(w.loop, w.net, w.events, w.manager, w.routes, &w.settings,
                              w.error, sizeof(w.error));
    ok_named(w.listener != NULL, w.error);
    call(&c, &w, port);
    net_send(c.connection, text_from(header));
    secure(&c);
    ok(answers(&c, "", "220 mx.example.org ESMTP"));
    ok(c.secured && answers(&c, "EHLO a.example\r\n", "250 DSN"));
    ok(answers(&c, "XXXX\r\n", "500") && is_logged(&w, "client=[192.0.2.7]"));
    depart(&c);
    call(&c, &w, port);
    secure(&c);
    ok_named(!answers(&c, "", "220") && !c.secured, "TLS without a header is none");
    ok(is_logged(&w, "proxy protocol: no valid header"));
    depart(&c);
    call(&c, &w, port);
    net_send(c.connection, text_from(header));
    ok_named(!answers(&c, "EHLO a.example\r\n", "2"), "clear text behind it neither");
    depart(&c);
    call(&c, &w, clear);
    ok(answers(&c, header, "220"));
    ok(answers(&c, "EHLO a.example\r\n", "250-STARTTLS"));
    ok(answers(&c, "STARTTLS\r\n", "220 2.0.0"));
    secure(&c);
    ok_named(answers(&c, "EHLO a.example\r\n", "250 DSN") && c.secured, "STARTTLS");
    w.settings.proxy_from = TEXT("");
    listener_reload(w.listener, w.routes, &w.settings);
    ok_named(is_logged(&w, "old settings stay: proxy_from: unset"),
             "a reload does not turn the proxy away");
    depart(&c);
    listener_world_end(&w);
}

static void
starttls(void)
{
    static struct world w;
    struct caller c;
    listener_world_start(&w, &plain, false, true);
    call(&c, &w, w.port);
    ok(answers(&c, "EHLO a.example\r\n", "250 DSN"));
    ok_named(strstr(c.said, "STARTTLS") == NULL,
             "without a certificate none is offered");
    ok(answers(&c, "STARTTLS\r\n", "502 5.5.1"));
    set_tls(&w, "good");
    listener_reload(w.listener, w.routes, &w.settings);
    ok_named(answers(&c, "EHLO a.example\r\n", "250-STARTTLS\r\n"),
             "after a reload it is, to those who are there");
    ok(answers(&c, "STARTTLS now\r\n", "501 5.5.4"));
    ok(answers(&c, "MAIL FROM:<a@a.example>\r\n", "250 2.1.0"));
    ok_named(answers(&c, "STARTTLS\r\n", "503 5.5.1"), "not within a transaction");
    ok(answers(&c, "RSET\r\n", "250 2.0.0"));
    ok(answers(&c, "STARTTLS\r\nMAIL FROM:<evil@a.example>\r\nNOOP\r\n", "220 2.0.0"));
    secure(&c);
    ok_named(answers(&c, "RCPT TO:<b@b.example>\r\n", "503 5.5.1"), "EHLO comes first");
    ok_named(c.secured && net_tls_facts(c.connection).is_verified, "under TLS");
    is_string(c.said, "503 5.5.1 send EHLO first\r\n",
              "and nothing that was sent in clear is answered");
    ok(answers(&c, "EHLO a.example\r\n", "250 DSN"));
    ok_named(strstr(c.said, "STARTTLS") == NULL, "once is enough");
    ok(answers(&c, "STARTTLS\r\n", "503 5.5.1 TLS is already active"));
    ok_named(answers(&c, "RCPT TO:<b@b.example>\r\n", "503 5.5.1 send MAIL first"),
             "the old transaction is gone");
    ok(answers(&c, "MAIL FROM:<a@a.example>\r\nRCPT TO:<b@b.example>\r\nDATA\r\n",
               "354"));
    ok(answers(&c, "Subject: x\r\n\r\nbody\r\n.\r\n", "250 2.0.0 Ok: queued"));
    ok(is_logged(&w, "proto=ESMTPS, tls=TLSv1."));
    ok(answers(&c, "QUIT\r\n", "221"));
    for (int i = 0; i < 200 && !c.ended; i++)
        loop_turn(w.loop, 5);
    ok_named(c.ended && !c.failed, "an orderly end");
    depart(&c);
    listener_world_end(&w);
}

static void
junk(void)
{
    static struct world w;
    struct caller c;
    listener_world_start(&w, &plain, false, true);
    set_tls(&w, "good");
    listener_reload(w.listener, w.routes, &w.settings);
    call(&c, &w, w.port);
    ok(answers(&c, "EHLO a.example\r\n", "250 DSN"));
    ok(answers(&c, "STARTTLS\r\n", "220"));
    ok_named(!answers(&c, "NOOP\r\n", "25"), "no answer in clear after that");
    ok(c.failed || c.ended);
    ok(is_logged(&w, "TLS: the peer does not speak TLS"));
    depart(&c);
    listener_world_end(&w);
}

static void
from_the_first_byte(void)
{
    static struct world w;
    struct caller c;
    char listen[100];
    unsigned port = free_port(), clear = free_port();
    listener_world_start(&w, &plain, false, true);
    set_tls(&w, "good");
    snprintf(listen, sizeof(listen), "127.0.0.1:%u?tls, 127.0.0.1:%u?starttls=no", port,
             clear);
    listener_free(&w.listener);
    loop_turn(w.loop, 0);
    w.settings.listen = text_from(listen);
    w.listener = listener_new(w.loop, w.net, w.events, w.manager, w.routes, &w.settings,
                              w.error, sizeof(w.error));
    ok_named(w.listener != NULL, w.error);
    call(&c, &w, port);
    secure(&c);
    ok(answers(&c, "", "220 mx.example.org ESMTP"));
    ok(c.secured && answers(&c, "EHLO a.example\r\n", "250 DSN"));
    ok(strstr(c.said, "STARTTLS") == NULL);
    /* A reload without a certificate would make it speak clear text. */
    set_tls(&w, "");
    listener_reload(w.listener, w.routes, &w.settings);
    ok(is_logged(&w, "old settings stay: tls_certificate: unset"));
    ok(answers(&c, "NOOP\r\n", "250 2.0.0"));
    depart(&c);
    call(&c, &w, port);
    secure(&c);
    ok_named(answers(&c, "", "220 mx.example.org ESMTP"), "TLS goes on");
    depart(&c);
    call(&c, &w, port);
    ok_named(!answers(&c, "EHLO a.example\r\n", "2"), "clear text is not answered");
    depart(&c);
    call(&c, &w, clear);
    ok(answers(&c, "EHLO a.example\r\n", "250 DSN"));
    ok_named(strstr(c.said, "STARTTLS") == NULL, "starttls=no");
    ok(answers(&c, "STARTTLS\r\n", "502 5.5.1"));
    depart(&c);
    listener_world_end(&w);
}

/* Listens on w->port and, by TLS from the first byte, on port; places as given. */
static void
listen_at_both(struct world *w, unsigned port, int places, bool may_relay)
{
    static char listen[100];
    listener_world_start(w, &plain, false, may_relay);
    set_tls(w, "good");
    snprintf(listen, sizeof(listen), "127.0.0.1:%u, 127.0.0.1:%u?tls", w->port, port);
    listener_free(&w->listener);
    loop_turn(w->loop, 0);
    w->settings.listen = text_from(listen);
    w->settings.server_tls_session_limit = places;
    w->listener = listener_new(w->loop, w->net, w->events, w->manager, w->routes,
                               &w->settings, w->error, sizeof(w->error));
    ok_named(w->listener != NULL, w->error);
}

/* Memory for TLS has a limit of its own. */
static void
crowd(void)
{
    static struct world w;
    struct caller a, b, c;
    unsigned port = free_port();
    listen_at_both(&w, port, 2, true);
    call(&a, &w, port);
    secure(&a);
    ok(answers(&a, "", "220 mx.example.org ESMTP"));
    call(&b, &w, w.port);
    ok(answers(&b, "EHLO a.example\r\n", "250-STARTTLS"));
    ok(answers(&b, "STARTTLS\r\n", "220 2.0.0"));
    secure(&b);
    ok_named(answers(&b, "EHLO a.example\r\n", "250 DSN"), "two are within the limit");
    struct listener_view view;
    ok(listener_describe(w.listener, 0, &view));
    is_string(view.tls, "starttls", "the first socket");
    is_string(view.kind, "smtp", "what it is for");
    is_number(view.address->port, w.port, "its port");
    is_number((long)view.accepted, 1, "who came");
    ok(listener_describe(w.listener, 1, &view));
    is_string(view.tls, "tls", "the second");
    is_number((long)view.sessions, 1, "who is there");
    ok_named(!listener_describe(w.listener, 2, &view), "there is no third");
    call(&c, &w, w.port);
    ok_named(answers(&c, "EHLO a.example\r\n", "250-STARTTLS"), "it is never hidden");
    ok(answers(&c, "STARTTLS\r\n", "454 4.7.0 too many TLS sessions"));
    ok_named(answers(&c, "NOOP\r\n", "250"), "and a trusted client may go on in clear");
    net_abort(&a.connection);
    for (int i = 0; i < 200 && listener_sessions(w.listener) > 2; i++)
        loop_turn(w.loop, 5);
    ok(answers(&c, "STARTTLS\r\n", "220 2.0.0"));
    secure(&c);
    ok_named(answers(&c, "EHLO a.example\r\n", "250 DSN"), "when a place is free");
    call(&a, &w, port);
    ok_named(answers(&a, "", "421 4.7.0 too many TLS sessions"),
             "instead of a handshake");
    net_abort(&a.connection);
    w.settings.clients.sessions = 2;
    listener_reload(w.listener, w.routes, &w.settings);
    call(&a, &w, port);
    ok_named(answers(&a, "", "421 4.7.0 too many connections"),
             "nor is one begun for who is refused for another reason");
    net_abort(&a.connection);
    net_abort(&b.connection);
    depart(&c);
    listener_world_end(&w);
}

/* Without a place an untrusted client is not led to speak in clear. */
TEST(untrusted_crowd)
{
    static struct world w;
    struct caller a, b;
    unsigned port = free_port();
    listen_at_both(&w, port, 4, false); /* a fourth of the places is one */
    call(&a, &w, w.port);
    ok(answers(&a, "EHLO a.example\r\n", "250-STARTTLS"));
    ok(answers(&a, "STARTTLS\r\n", "220 2.0.0"));
    secure(&a);
    ok(answers(&a, "EHLO a.example\r\n", "250 DSN"));
    call(&b, &w, w.port);
    ok_named(answers(&b, "EHLO a.example\r\n", "421 4.7.0 too many TLS sessions"),
             "it comes again later");
    net_abort(&b.connection);
    call(&b, &w, w.port);
    ok_named(answers(&b, "HELO a.example\r\n", "250 mx.example.org"),
             "who cannot use TLS is served");
    net_abort(&b.connection);
    depart(&a);
    listener_world_end(&w);
}

/* A client whose bytes we choose, in clear. */
static void
say_raw(struct caller *c, const char *bytes, size_t size)
{
    net_send(c->connection, text_of(bytes, size));
    for (int i = 0; i < 4; i++)
        loop_turn(c->w->loop, 5);
}

/* The beginning of a ClientHello of 512 bytes. */
static const char half_hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

/* STARTTLS and silence takes no place; half a hello takes one until another comes. */
TEST(half_open)
{
    enum { SILENT = 5 };
    static struct world w;
    static struct caller silent[SILENT];
    struct caller half, good;
    unsigned port = free_port();
    listen_at_both(&w, port, 1, false);
    for (int i = 0; i < SILENT; i++) {
        call(&silent[i], &w, i % 2 == 0 ? w.port : port);
        if (i % 2 == 0)
            ok(answers(&silent[i], "EHLO a.example\r\n", "250-STARTTLS") &&
               answers(&silent[i], "STARTTLS\r\n", "220 2.0.0"));
    }
    call(&half, &w, port);
    say_raw(&half, half_hello, sizeof(half_hello) - 1);
    call(&good, &w, w.port);
    ok_named(answers(&good, "EHLO a.example\r\n", "250-STARTTLS"), "others have TLS");
    ok(answers(&good, "STARTTLS\r\n", "220 2.0.0"));
    secure(&good);
    ok_named(answers(&good, "EHLO a.example\r\n", "250 DSN"), "and can begin it");
    ok_named(is_logged(&w, "[127.0.0.1]: TLS: handshake took too long while others "
                           "wait"),
             "half a hello has given way");
    for (int i = 0; i < 400 && !half.failed && !half.ended; i++)
        loop_turn(w.loop, 5);
    ok_named(half.failed || half.ended, "and is cut off");
    is_number(listener_sessions(w.listener), SILENT + 1,
              "the silent ones are in nobody's way");
    net_abort(&half.connection);
    for (int i = 0; i < SILENT; i++)
        net_abort(&silent[i].connection);
    depart(&good);
    listener_world_end(&w);
}

/* The handshake of a client that may relay gives way to nobody. */
TEST(half_open_trusted)
{
    static struct world w;
    struct caller trusted, half, good;
    unsigned port = free_port();
    listen_at_both(&w, port, 2, false);
    w.settings.relay_from = TEXT("127.0.0.1");
    listener_reload(w.listener, w.routes, &w.settings);
    call(&trusted, &w, port);
    say_raw(&trusted, half_hello, sizeof(half_hello) - 1);
    call_from(&half, &w, port, 2);
    say_raw(&half, half_hello, sizeof(half_hello) - 1);
    call_from(&good, &w, port, 3);
    secure(&good);
    ok_named(answers(&good, "EHLO a.example\r\n", "250 DSN"), "a third one finds room");
    ok_named(is_logged(&w, "[127.0.0.2]: TLS: handshake took too long"),
             "of the untrusted one");
    ok_named(!is_logged(&w, "[127.0.0.1]: TLS: handshake took too long"),
             "though it is not the oldest");
    net_abort(&trusted.connection);
    net_abort(&half.connection);
    depart(&good);
    listener_world_end(&w);
}

/* The handshake as a whole has its time. */
TEST(late_hello)
{
    static struct world w;
    struct caller c[3];
    unsigned port = free_port();
    listen_at_both(&w, port, 10, true);
    w.settings.handshake_timeout_ms = 200;
    listener_reload(w.listener, w.routes, &w.settings);
    call(&c[0], &w, w.port);
    ok(answers(&c[0], "EHLO a.example\r\n", "250-STARTTLS"));
    ok(answers(&c[0], "STARTTLS\r\n", "220 2.0.0"));
    call(&c[1], &w, port);
    call(&c[2], &w, port);
    say_raw(&c[2], half_hello, sizeof(half_hello) - 1);
    for (int i = 0; i < 2000 && listener_sessions(w.listener) > 0; i++)
        loop_turn(w.loop, 5);
    is_number(
        listener_sessions(w.listener), 0,
        "silent after STARTTLS, silent from the beginning, and with half a hello");
    is_string(c[0].said, "220 2.0.0 go ahead\r\n", "nothing is said in clear any more");
    is_string(c[1].said, "", "nor before TLS");
    for (int i = 0; i < 3; i++)
        net_abort(&c[i].connection);
    listener_world_end(&w);
}

/* Line ends that are repaired wait in another place: that is emptied, too. */
TEST(old_device)
{
    static struct world w;
    struct caller c;
    char listen[100];
    listener_world_start(&w, &plain, false, true);
    set_tls(&w, "good");
    snprintf(listen, sizeof(listen), "127.0.0.1:%u?profile=legacy", w.port);
    listener_free(&w.listener);
    loop_turn(w.loop, 0);
    w.settings.listen = text_from(listen);
    w.listener = listener_new(w.loop, w.net, w.events, w.manager, w.routes, &w.settings,
                              w.error, sizeof(w.error));
    ok_named(w.listener != NULL, w.error);
    call(&c, &w, w.port);
    ok(answers(&c, "EHLO a.example\n", "250-STARTTLS"));
    ok(answers(&c, "STARTTLS\nMAIL FROM:<evil@a.example>\nNOOP\nNOOP\r", "220 2.0.0"));
    secure(&c);
    ok(answers(&c, "RCPT TO:<b@b.example>\n", "503 5.5.1"));
    is_string(c.said, "503 5.5.1 send EHLO first\r\n",
              "nothing that was sent in clear is answered, or ends a line");
    ok(answers(&c, "EHLO a.example\n", "250 DSN"));
    ok(answers(&c, "MAIL FROM:<a@a.example>\nRCPT TO:<b@b.example>\nDATA\n", "354"));
    ok(answers(&c, "Subject: x\n\nbody\n.\n", "250 2.0.0 Ok: queued"));
    depart(&c);
    listener_world_end(&w);
}

static const char *
mistake(struct listener_settings s, const char *certificates, const char *keys)
{
    static char line[1000];
    struct buffer mistakes;
    buffer_init(&mistakes, 65536);
    s.tls_certificate = text_from(certificates);
    s.tls_key = text_from(keys);
    bool good = listener_check(&s, &mistakes);
    ok(good == (mistakes.length == 0));
    text_copy(line, sizeof(line), buffer_text(&mistakes));
    buffer_free(&mistakes);
    return line;
}

static void
mistakes(void)
{
    static struct world w;
    char one[200], two[400], many[600] = "";
    listener_world_start(&w, &plain, false, true);
    struct listener_settings s = w.settings;
    snprintf(one, sizeof(one), "%s/good-both.pem", directory);
    snprintf(two, sizeof(two), "%s/good.pem, %s/rsa.pem", directory, directory);
    is_string(mistake(s, one, ""), "", "key and certificate in one file");
    is_string(mistake(s, two, one),
              "tls_certificate: must name as many files as tls_key, at most 64\n", "too few");
    is_string(mistake(s, "", one),
              "tls_certificate: must name as many files as tls_key, at most 64\n", "too many");
    for (int i = 0; i < TLS_PAIRS_MAX + 1; i++)
        strcat(many, "x ");
    is_string(mistake(s, many, ""),
              "tls_certificate: must name as many files as tls_key, at most 64\n", "a crowd");
    is_string(mistake(s, "/missing.pem", ""),
              "tls_certificate: cannot read /missing.pem: No such file or directory\n",
              "none there");
    s.listen = TEXT("127.0.0.1:465?tls");
    is_string(mistake(s, "", ""),
              "tls_certificate: unset, but `listen` has an address with ?tls\n", "needed");
    listener_world_end(&w);
}

int
main(void)
{
    char text[300], error[TLS_ERROR_MAX];
    dialog_must(mkdtemp(directory) != NULL, "no directory");
    snprintf(text, sizeof(text), "sh t/support/tls_certificates.sh %s", directory);
    dialog_must(system(text) == 0, "no certificates");
    struct tls *tls = tls_new(error, sizeof(error));
    snprintf(text, sizeof(text), "%s/ca.pem", directory);
    client = tls_client_new(tls, text, error, sizeof(error));
    dialog_must(client != NULL, error);
    tls_free(&tls);
    starttls();
    junk();
    from_the_first_byte();
    behind_a_proxy();
    crowd();
    tap_tests("");
    mistakes();
    tls_client_free(&client);
    snprintf(text, sizeof(text), "rm -rf %s", directory);
    return system(text) != 0 || done();
}
