/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* smtp/delivery with TLS: levels, certificates, the way back to clear text, hosts that
 * cheat. */
#include "t/sim/delivery_world.h"
#include "t/support/tls_world.h"

static struct secrets secrets;

/* y.test has two hosts that have certificates: mail.example.net is a, mx.example.net is
 * b. */
static void
tls_bed_start(struct bed *b, enum target_tls level, const char *a, const char *z)
{
    bed_anchors = tls_path_of(&secrets, "ca", ".pem");
    bed_start(b);
    b->target.tls = level;
    sim_dns_mx(b->dns, "y.test", 10, "mail.example.net");
    sim_dns_mx(b->dns, "y.test", 20, "mx.example.net");
    sim_dns_address(b->dns, "mail.example.net", "127.0.0.2");
    sim_dns_address(b->dns, "mx.example.net", "127.0.0.3");
    static const struct host_rule offers[] = {
        {"EHLO",     "250-host\r\n250-PIPELINING\r\n250 STARTTLS\r\n", 0, 0},
        {"LHLO",     "250-host\r\n250 STARTTLS\r\n",                   0, 0},
        {"STARTTLS", "220 go\r\n",                                     0, 0},
        {NULL,       NULL,                                             0, 0}
    };
    b->a.rules = b->b.rules = offers;
    b->a.tls = a ? server_of(&secrets, a) : NULL;
    b->b.tls = z ? server_of(&secrets, z) : NULL;
}

static void
tls_bed_stop(struct bed *b)
{
    struct tls_server *a = b->a.tls, *z = b->b.tls;
    bed_stop(b);
    tls_server_free(&a);
    tls_server_free(&z);
}

static const char in_clear[] = "EHLO me.test\nMAIL";
static const char under_tls[] = "EHLO me.test\nSTARTTLS\n(tls)\nEHLO me.test\nMAIL";

static bool
heard(const struct host *h, const char *start)
{
    bool same = text_starts(buffer_text(&h->commands), text_from(start));
    if (!same)
        printf("# heard: %.*s\n", TEXT_ARGS(buffer_text(&h->commands)));
    return same;
}

/* --- Levels and certificates ------------------------------------------------------ */

static void
good_hosts(void)
{
    for (enum target_tls level = TARGET_TLS_NONE; level <= TARGET_TLS_VERIFY; level++) {
        FIXTURE(bed, b, tls_bed_start, tls_bed_stop, level, "good", "good");
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_settled(&b, "u@y.test sent 2.0.0 none\n", "sent");
        ok(heard(&b.a, level == TARGET_TLS_NONE ? in_clear : under_tls));
        ok_named(level == TARGET_TLS_NONE
                     ? b.manager.tls[0] == '\0'
                     : text_starts(text_from(b.manager.tls), TEXT("TLSv1.")) &&
                           strstr(b.manager.tls, "/verified") != NULL,
                 "the verdict says how");
        ok(has(&b.lines, "Verified TLS connection established to "
                         "mail.example.net[127.0.0.2]:") == (level != TARGET_TLS_NONE));
        is_string(b.manager.health.at ? "told" : "", "told", "a host in good health");
    }
}

/* Any certificate encrypts; a connection later resumes. */
static void
untrusted(void)
{
    static const char *const names[] = {"self", "expired", "stranger", "exact"};
    for (size_t i = 0; i < 4; i++) {
        FIXTURE(bed, b, tls_bed_start, tls_bed_stop,
                i % 2 ? TARGET_TLS_ENCRYPT : TARGET_TLS_MAY, names[i], NULL);
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_settled(&b, "u@y.test sent 2.0.0 none\n", names[i]);
        ok(heard(&b.a, under_tls));
        ok(strstr(b.manager.tls, "/unverified") != NULL);
        ok(has(&b.lines, "Untrusted TLS connection established to "));
    }
}

static void
resumed(void)
{
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_VERIFY, "good", NULL);
    add_mail(&b, "u@y.test");
    run(&b, "y.test");
    ok_named(!has(&b.lines, ", resumed"), "the first connection is new");
    add_mail(&b, "v@y.test");
    run(&b, "y.test");
    is_settled(&b, "u@y.test sent 2.0.0 none\nv@y.test sent 2.0.0 none\n", "twice");
    ok_named(has(&b.lines, ", resumed"), "the second one resumes");
    ok(strstr(b.manager.tls, "/verified") != NULL);
}

/* The first host cannot prove itself, the second one can. */
static void
next_host(void)
{
    static const struct {
        const char *name, *why;
    } rows[] = {
        {"self",     "self-signed"     },
        {"expired",  "expired"         },
        {"stranger", "not trusted"     },
        {"exact",    "mail.example.net"},
    };
    for (size_t i = 0; i < 4; i++) {
        struct bed b;
        tls_bed_start(&b, TARGET_TLS_VERIFY, rows[i].name, "good");
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_settled(&b, "u@y.test sent 2.0.0 none\n", rows[i].name);
        is_text(buffer_text(&b.a.commands), TEXT("EHLO me.test\nSTARTTLS\n"),
                "no mail is spoken of to the first");
        ok(heard(&b.b, under_tls));
        ok_named(!has(&b.manager.health, "bad"), "other routes may still like it");
        tls_bed_stop(&b);
        tls_bed_start(&b, TARGET_TLS_VERIFY, rows[i].name, rows[i].name);
        fake_host_stop(&b.b);
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_settled(&b, "", "nobody else: the mail waits");
        is_trouble(&b, VERDICT_DEFERRED, "4.7.5",
                   "TLS is demanded by the route (tls=verify) but host "
                   "mail.example.net[127.0.0.2] failed in the TLS handshake: ");
        printf("# %s\n", b.manager.trouble.text);
        is_number(b.a.connections, 1, "it is tried once");
        fake_host_start(&b.b, b.theirs, "127.0.0.3", 0);
        tls_bed_stop(&b);
    }
}

/* The certificate is good, but not for what the route says. */
static void
names(void)
{
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_VERIFY, "good", NULL);
    b.target.kind = TARGET_SMTP;
    b.target.port = b.settings.smtp_port;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("a.test"));
    add_mail(&b, "u@x.test v@x.test");
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "handshake: ");
    text_copy(b.target.host, sizeof(b.target.host), TEXT("127.0.0.2"));
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "handshake: ");
    text_copy(b.target.host, sizeof(b.target.host), TEXT("mx.example.net"));
    sim_dns_address(b.dns, "mx.example.net", "127.0.0.2");
    fake_host_stop(&b.b);
    fake_host_start(&b.b, b.theirs, "127.0.0.3", 0);
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n",
               "a name of several");
}

TEST(implicit)
{
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_VERIFY, "good", NULL);
    b.a.tls_implicit = b.target.tls_implicit = true;
    b.target.kind = TARGET_SMTP;
    b.target.port = b.settings.smtp_port;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("mail.example.net"));
    add_mail(&b, "u@x.test");
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "smtps");
    ok(heard(&b.a, "(tls)\nEHLO me.test\nMAIL"));
    ok(strstr(b.manager.tls, "/verified") != NULL);
    tls_server_free(&b.a.tls); /* it greets in clear text */
    add_mail(&b, "v@x.test");
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "handshake: ");
    host_shut(&b.a);
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.4.1", "connect to mail.example.net[127.0.0.2]");
}

TEST(lmtp)
{
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_VERIFY, "good", NULL);
    b.target.kind = TARGET_LMTP;
    b.target.port = b.settings.smtp_port;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("mail.example.net"));
    add_mail(&b, "u@x.test");
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "LMTP");
    ok(heard(&b.a, "LHLO me.test\nSTARTTLS\n(tls)\nLHLO me.test\nMAIL"));
}

/* --- The way back ----------------------------------------------------------------- */

static size_t
count(const struct buffer *b, const char *what)
{
    size_t n = 0;
    struct text left = buffer_text(b);
    for (; left.length >= strlen(what); left = text_after(left, 1))
        n += text_starts(left, text_from(what));
    return n;
}

TEST(falls_back)
{
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_MAY, NULL, NULL);
    b.a.tls_breaks = true;
    add_mail(&b, "u@y.test");
    run(&b, "y.test");
    is_settled(&b, "u@y.test sent 2.0.0 none\n", "sent");
    ok(heard(&b.a, "EHLO me.test\nSTARTTLS\nEHLO me.test\nMAIL"));
    is_number(b.a.connections, 2, "by one new connection to the same host");
    is_string(b.manager.tls, "", "in clear text");
    is_number(told_limits.mails, 1, "for one message");
    ok_named(!has(&b.manager.health, "bad"), "that host is well");
    ok(has(&b.lines, "warning: host mail.example.net[127.0.0.2] failed in the TLS "
                     "handshake: "));
    ok(has(&b.lines, "sending one message to it in cleartext, as tls=may allows"));
    add_mail(&b, "v@y.test");
    run(&b, "y.test");
    is_number(b.a.connections, 4, "the next session tries TLS again");
    is_number((int64_t)count(&b.a.commands, "STARTTLS\n"), 2, "and fails by itself");
    is_number((int64_t)count(&b.lines, "in cleartext, as tls=may"), 1, "it is said once");
    b.a.tls_breaks = false;
    b.a.tls = server_of(&secrets, "self");
    add_mail(&b, "x@y.test");
    run(&b, "y.test");
    ok_named(b.a.connections == 5 && strstr(b.manager.tls, "/unverified") != NULL,
             "when it works again the next message goes by TLS");
    b.target.tls = TARGET_TLS_ENCRYPT;
    add_mail(&b, "w@y.test");
    run(&b, "y.test");
    ok_named(strstr(b.manager.tls, "/unverified") != NULL,
             "a route that demands TLS does not care");
}

/* A host that is silent when it should begin TLS, or then refuses mail for lack of it.
 */
TEST(falls_back_late)
{
    static const struct host_rule silent[] = {
        {"EHLO",     "250-host\r\n250 STARTTLS\r\n", 0, 0},
        {"STARTTLS", "",                             0, 0},
        {"MAIL",     "530 5.7.0 STARTTLS first\r\n", 0, 0},
        {NULL,       NULL,                           0, 0}
    };
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_MAY, NULL, NULL);
    b.a.rules = silent;
    b.target.timeout_scale = 0.002; /* 120 ms for STARTTLS */
    add_mail(&b, "u@y.test");
    run(&b, "y.test");
    is_number(b.a.connections, 2, "after the time-out once more");
    is_settled(&b, "u@y.test deferred 4.7.0 site\n", "and no bounce for lack of TLS");
}

TEST(never_back)
{
    for (enum target_tls level = TARGET_TLS_ENCRYPT; level <= TARGET_TLS_VERIFY;
         level++) {
        FIXTURE(bed, b, tls_bed_start, tls_bed_stop, level, NULL, "good");
        b.a.tls_breaks = true;
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_settled(&b, "u@y.test sent 2.0.0 none\n", "the next host takes it");
        is_number(b.a.connections, 1, "the first is not tried again");
        is_text(buffer_text(&b.a.commands), TEXT("EHLO me.test\nSTARTTLS\n"),
                "and hears of no mail");
        ok(heard(&b.b, under_tls));
    }
}

/* One host strips or refuses STARTTLS, the other cannot be reached. */
TEST(not_offered)
{
    static const struct host_rule rules[][3] = {
        {{"EHLO", "250-host\r\n250 PIPELINING\r\n", 0, 0}, {NULL, NULL, 0, 0}},
        { {"EHLO", "250-host\r\n250 STARTTLS\r\n", 0, 0},
         {"STARTTLS", "454 4.7.0 no\r\n", 0, 0},
         {NULL, NULL, 0, 0}}
    };
    for (size_t i = 0; i < 4; i++) {
        FIXTURE(bed, b, tls_bed_start, tls_bed_stop,
                i % 2 ? TARGET_TLS_VERIFY : TARGET_TLS_MAY, NULL, NULL);
        b.a.rules = rules[i / 2];
        host_shut(&b.b);
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_number(b.a.connections, 1, "one connection");
        ok_named(has(&b.a.commands, "MAIL") == (i % 2 == 0), "mail only with may");
        if (i % 2)
            is_trouble(&b, VERDICT_DEFERRED, "4.7.4", "demanded by the route");
        else
            is_settled(&b, "u@y.test sent 2.0.0 none\n", "in clear text");
    }
}

TEST(injected)
{
    static const struct host_rule rules[] = {
        {"EHLO",     "250-host\r\n250 STARTTLS\r\n", 0, 0},
        {"STARTTLS", "220 go\r\n250 host\r\n",       0, 0},
        {NULL,       NULL,                           0, 0}
    };
    for (enum target_tls level = TARGET_TLS_MAY; level <= TARGET_TLS_VERIFY; level++) {
        FIXTURE(bed, b, tls_bed_start, tls_bed_stop, level, NULL, NULL);
        b.a.rules = b.b.rules = rules;
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "sent 10 bytes in cleartext where");
        is_text(buffer_text(&b.a.commands), TEXT("EHLO me.test\nSTARTTLS\n"),
                "that was all");
        is_number(b.a.connections, 1, "no way back from an attack");
    }
}

/* --- In the middle ---------------------------------------------------------------- */

/* New authorities between connecting and STARTTLS: those count. */
TEST(reloaded)
{
    char error[TLS_ERROR_MAX];
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop, TARGET_TLS_VERIFY, "good", NULL);
    fake_host_stop(&b.b);
    fake_host_start(&b.b, b.theirs, "127.0.0.3", 0);
    add_mail(&b, "u@y.test");
    delivery_open(b.delivery, place(&b), &b.target, "y.test");
    for (int i = 0; i < 1000 && !has(&b.a.commands, "EHLO"); i++)
        clock_turn(b.loop);
    b.settings.tls = tls_client_new(b.tls, tls_path_of(&secrets, "other-ca", ".pem"), error,
                                    sizeof(error));
    delivery_reload(b.delivery, &b.settings);
    for (int i = 0; i < 1000 && b.manager.ended == 0; i++)
        clock_turn(b.loop);
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "handshake: ");
    b.settings.tls = NULL;
    delivery_reload(b.delivery, &b.settings);
    run(&b, "y.test");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "handshake: ");
}

TEST(stopped)
{
    FIXTURE(bed, b, tls_bed_start, tls_bed_stop,
            TARGET_TLS_MAY, NULL, NULL); /* says 220, and then nothing */
    b.settings.reuse_idle_ms = 5000;
    add_mail(&b, "u@y.test");
    delivery_open(b.delivery, place(&b), &b.target, "y.test");
    for (int i = 0; i < 1000 && !has(&b.a.commands, "STARTTLS"); i++)
        clock_turn(b.loop);
    b.a.tls_breaks = true; /* what comes is no line */
    b.a.links[0].broken = true;
    delivery_free(&b.delivery);
    is_number(b.manager.ended, 1, "the session has ended");
    is_settled(&b, "", "its mail stays");
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    make_secrets(&secrets);
    good_hosts();
    untrusted();
    resumed();
    next_host();
    names();
    tap_tests("");
    drop_secrets(&secrets);
    free(spool.content);
    return done();
}
