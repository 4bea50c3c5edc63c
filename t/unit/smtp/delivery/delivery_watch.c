/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Delivery: the reports about sessions, for operators who ask why mail waits. */
#include "smtp/delivery/delivery.h"

#include "t/sim/delivery_world.h"

#include <arpa/inet.h>
#include <sys/socket.h>

/* MUCH: more than the system holds between two sockets. */
enum { PLUGS = 3, MUCH = 32 * 1024 * 1024 };

struct id_set {
    unsigned count;
    struct activity last;
};

static void
see(void *context, const struct activity *a)
{
    struct id_set *seen = context;
    seen->count++;
    seen->last = *a;
}

static struct id_set
watched(struct bed *b, struct id message)
{
    struct id_set seen = {0};
    struct sched_site site = {.sessions = 0};
    host_must(b->manager.watch != NULL);
    b->manager.watch(b->manager.watch_context, &site, message, see, &seen);
    return seen;
}

/* The one session; it was not so before `since_ms`, but for what two clocks round. */
static struct activity
is_doing(struct bed *b, enum activity_kind kind, const char *what, const char *remote,
         int64_t since_ms)
{
    struct id_set seen = watched(b, (struct id){1, 1});
    is_number(seen.count, 1, "one session");
    is_number(seen.last.kind, kind, "what it does");
    is_string(seen.last.what, what, "of what");
    size_t length = strlen(remote);
    ok_named(strncmp(seen.last.remote, remote, length) == 0, "with whom");
    ok_named(seen.last.since_ms >= since_ms - 1 &&
                 seen.last.since_ms <= loop_now_ms(b->loop),
             "since when");
    return seen.last;
}

static int64_t
open_one(struct bed *b, const char *domain)
{
    int64_t now_ms = loop_now_ms(b->loop);
    if (b->manager.count == 0)
        add_mail(b, "u@x.test");
    delivery_open(b->delivery, place(b), &b->target, domain);
    turns(b, 100);
    return now_ms;
}

/* --- Before anybody is connected -------------------------------------------------- */

TEST(look_up)
{
    struct bed b;
    bed_start(&b);
    sim_dns_delay(b.dns, 1000000);
    int64_t since_ms = open_one(&b, "x.test");
    is_doing(&b, ACTIVITY_LOOK_UP, "MX of x.test", "", since_ms);
    bed_stop(&b);

    bed_start(&b);
    since_ms = loop_now_ms(b.loop);
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    sim_dns_delay(b.dns, 1000000); /* MX is asked; addresses are not yet */
    turns(&b, 100);
    is_doing(&b, ACTIVITY_LOOK_UP, "addresses of MX hosts of x.test", "", since_ms);
    bed_stop(&b);

    bed_start(&b);
    sim_dns_delay(b.dns, 1000000);
    b.target.kind = TARGET_SMTP;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("a.test"));
    since_ms = open_one(&b, "");
    is_doing(&b, ACTIVITY_LOOK_UP, "addresses of a.test", "", since_ms);
    struct sched_site other = {.sessions = 1};
    struct id_set seen = {0};
    b.manager.watch(b.manager.watch_context, &other, (struct id){1, 1}, see, &seen);
    is_number(seen.count, 0, "nothing of another site");
    delivery_free(&b.delivery);
    ok_named(b.manager.watch == NULL, "nobody is asked when it is gone");
    bed_stop(&b);
}

static int
listen_at(const char *ip, int backlog, uint16_t *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t size = sizeof(name);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, ip, &name.sin_addr);
    host_must(bind(listener, (struct sockaddr *)&name, size) == 0 &&
              listen(listener, backlog) == 0 &&
              getsockname(listener, (struct sockaddr *)&name, &size) == 0);
    *port = ntohs(name.sin_port);
    return listener;
}

/* A listener whose backlog is full: the system drops what comes. */
TEST(connect)
{
    struct bed b;
    struct sockaddr_in name = {.sin_family = AF_INET};
    uint16_t port;
    int plugs[PLUGS], listener = listen_at("127.0.0.4", 0, &port);
    inet_pton(AF_INET, "127.0.0.4", &name.sin_addr);
    name.sin_port = htons(port);
    for (size_t i = 0; i < PLUGS; i++) {
        plugs[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(plugs[i], (struct sockaddr *)&name, sizeof(name));
    }
    bed_start(&b);
    b.target.kind = TARGET_SMTP;
    b.target.port = port;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("127.0.0.4"));
    int64_t since_ms = open_one(&b, "");
    is_doing(&b, ACTIVITY_CONNECT, "", "127.0.0.4[127.0.0.4]:", since_ms);
    bed_stop(&b);
    close(listener);
    for (size_t i = 0; i < PLUGS; i++)
        close(plugs[i]);
}

/* --- Connected -------------------------------------------------------------------- */

TEST(greeting)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.greeting = "";
    int64_t since_ms = open_one(&b, "x.test");
    struct activity a =
        is_doing(&b, ACTIVITY_GREETING, "", "a.test[127.0.0.2]:", since_ms);
    ok_named(a.scheme == NULL, "by MX there is no scheme to change");
    ok_named(!a.has_message, "it has no mail yet");
}

/* The system takes the connection; nobody reads what comes. */
TEST(handshake)
{
    struct bed b;
    uint16_t port;
    int listener = listen_at("127.0.0.4", 5, &port);
    bed_start(&b);
    b.target.kind = TARGET_SMTP;
    b.target.port = port;
    b.target.tls = TARGET_TLS_ENCRYPT;
    b.target.tls_implicit = true;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("127.0.0.4"));
    int64_t since_ms = open_one(&b, "");
    is_doing(&b, ACTIVITY_HANDSHAKE, "", "127.0.0.4[127.0.0.4]:", since_ms);
    bed_stop(&b);
    close(listener);
}

/* Nothing is answered to a command, nor to those that follow it in a group. */
static void
test_reply(const char *start, const char *command, bool has_message)
{
    bool first = strcmp(start, "MAIL") == 0;
    struct host_rule rules[] = {
        {start,                   "",   0, 0},
        {first ? "RCPT" : "none", "",   0, 0},
        {first ? "DATA" : "none", "",   0, 0},
        {NULL,                    NULL, 0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    int64_t since_ms = open_one(&b, "x.test");
    struct activity a =
        is_doing(&b, ACTIVITY_REPLY, command, "a.test[127.0.0.2]:", since_ms);
    ok_named(a.has_message == has_message, "whether it has the message");
    ok_named(!watched(&b, (struct id){1, 9}).last.has_message, "it has no other");
}

static void
test_content(void)
{
    struct bed b;
    bed_start(&b);
    b.a.deaf = true;
    char *small = spool.content;
    spool.content = memory_new(MUCH);
    for (size_t i = 1; i <= MUCH; i++)
        spool.content[i - 1] = i % 64 == 0 ? '\n' : i % 64 == 63 ? '\r' : 'x';
    spool.length = MUCH;
    int64_t since_ms = open_one(&b, "x.test");
    turns(&b, 200);
    struct activity a =
        is_doing(&b, ACTIVITY_CONTENT, "", "a.test[127.0.0.2]:", since_ms);
    ok_named(a.has_message, "it has the message");
    bed_stop(&b);
    free(spool.content);
    spool.content = small;
}

/* All recipients are refused, and the envelope may be gone, while DATA has no answer.
 */
static void
test_refused(void)
{
    static const struct host_rule rules[] = {
        {"RCPT", "550 no\r\n", 0, 0},
        {"DATA", "",           0, 0},
        {NULL,   NULL,         0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    int64_t since_ms = open_one(&b, "x.test");
    is_settled(&b, "u@x.test bounced 5.0.0 message\n", "it is refused");
    struct envelope *e = b.manager.envelopes[0];
    b.manager.envelopes[0] = envelope_new();
    envelope_free(&e);
    struct activity a =
        is_doing(&b, ACTIVITY_REPLY, "DATA", "a.test[127.0.0.2]:", since_ms);
    ok_named(a.has_message, "the session is about the message");
}

static void
test_idle(void)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.settings.reuse_idle_ms = 1000000;
    delivery_reload(b.delivery, &b.settings);
    int64_t since_ms = open_one(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "it is sent");
    struct activity a = is_doing(&b, ACTIVITY_IDLE, "", "a.test[127.0.0.2]:", since_ms);
    ok_named(!a.has_message, "the message is gone");
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    test_reply("EHLO", "EHLO", false);
    test_reply("MAIL", "MAIL FROM", true);
    test_reply("DATA", "DATA", true);
    test_reply(".", "the end of the content", true);
    test_content();
    test_refused();
    test_idle();
    free(spool.content);
    return done();
}
