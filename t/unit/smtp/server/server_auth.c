/* AUTH in the server machine: every mechanism, its place, its bad inputs, what the log
 * shows; what a legacy client and a full house of TLS get. */
#include "smtp/server/server.h"

#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "smtp/reply.h"
#include "t/support/sasl_kit.h"
#include "t/support/server_fake.h"

static struct users *users;

static struct server_rules rules = {.hostname = "mx.example.org",
                                    .size_limit = 100000,
                                    .recipient_limit = 100,
                                    .hop_limit = 50,
                                    .error_limit = 0,
                                    .etrn = true};
static struct fake f;
static struct buffer lines;

/* As session.c does. */
static void
begin(enum server_auth auth, bool secure)
{
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&lines, 1 << 20);
    log_capture(log, &lines);
    fake_start(&f, &rules, event_hub_new(log), false, false);
    f.server.offer.auth = auth;
    f.server.offer.starttls = true;
    if (secure)
        server_secured(&f.server, "TLSv1.3", "TLS_TEST");
}

static void
end(void)
{
    struct event_hub *events = f.server.events;
    struct log *log = event_hub_log(events);
    server_fake_end(&f);
    event_hub_free(&events);
    log_free(&log);
    buffer_free(&lines);
}

static bool
is_logged(const char *what)
{
    return memmem(lines.at, lines.length, what, strlen(what)) != NULL;
}

/* The server's reply to it; a static string. */
static const char *
said(const char *bytes)
{
    static char all[20000];
    buffer_clear(&f.out);
    fake_feed(&f, text_from(bytes));
    text_copy(all, sizeof(all), buffer_text(&f.out));
    return all;
}

static bool
hears(const char *bytes, const char *prefix)
{
    const char *all = said(bytes);
    if (strncmp(all, prefix, strlen(prefix)) == 0)
        return true;
    printf("# said '%.60s', heard '%s'\n", bytes, all);
    return false;
}

static void
places(void)
{
    rules.users = NULL;
    begin(SERVER_AUTH_CLEAR, false);
    ok(strstr(said("EHLO x\r\n"), "AUTH") == NULL);
    ok_named(hears("AUTH PLAIN =\r\n", "502 5.5.1"), "nobody could log in");
    end();
    rules.users = users;
    begin(SERVER_AUTH_NO, true);
    ok(strstr(said("EHLO x\r\n"), "AUTH") == NULL);
    ok_named(hears("AUTH PLAIN =\r\n", "502 5.5.1"), "not here");
    end();
    begin(SERVER_AUTH_SECURE, false);
    ok_named(hears("AUTH PLAIN =\r\n", "503 5.5.1"), "send EHLO first");
    ok(strstr(said("EHLO x\r\n"), "AUTH") == NULL);
    ok_named(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "538 5.7.11"), "TLS first");
    ok(is_logged("refused=538 5.7.11"));
    ok_named(!is_logged("AHVz"), "the log does not show what was sent");
    ok(hears("STARTTLS\r\n", "220"));
    ok(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "503 5.5.1"));
    ok_named(strstr(said("EHLO x\r\n"), "250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n") != NULL,
             "offered under TLS");
    ok(strstr(said("HELP\r\n"), "AUTH") != NULL);
    ok(hears("MAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "503 5.5.1"),
             "not within a transaction");
    ok(hears("RSET\r\n", "250"));
    ok(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "235 2.7.0"));
    ok_named(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "503 5.5.1"), "once is enough");
    ok_named(hears("EHLO x\r\n", "250"), "EHLO forgets no user");
    ok(server_may_relay(&f.server) && !f.server.offer.may_relay);
    server_forget_user(&f.server);
    ok_named(!server_may_relay(&f.server), "but who is out is out");
    end();
    begin(SERVER_AUTH_CLEAR, false);
    ok(hears("HELO x\r\n", "250"));
    ok_named(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "503 5.5.1 send EHLO"), "EHLO, not HELO");
    ok(strstr(said("EHLO x\r\n"), "250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n") != NULL);
    ok_named(strstr(said("EHLO x\r\n"), "AUTH=") == NULL, "no old spelling");
    ok(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "235"));
    ok(hears("STARTTLS\r\n", "220"));
    ok_named(!server_may_relay(&f.server), "STARTTLS forgets who logged in in clear");
    end();
}

/* The first line, the second where it is asked for, and the last reply. */
static void
mechanisms(void)
{
    static const struct {
        const char *first, *reply, *second, *last, *name;
    } cases[] = {
        {"AUTH PLAIN AHVzZXIAcGVuY2ls\r\n",         "235 2.7.0 ",             NULL,                     NULL,         "PLAIN at once"          },
        {"auth plain AHVzZXIAcGVuY2ls\r\n",         "235 2.7.0 ",             NULL,                     NULL,         "in any case"            },
        {"AUTH  PLAIN  AHVzZXIAcGVuY2ls \r\n",      "235 2.7.0 ",             NULL,                     NULL,         "blanks"                 },
        {"AUTH PLAIN\r\n",                          "334 \r\n",               "AHVzZXIAcGVuY2ls\r\n",   "235 2.7.0 ", "PLAIN, asked"           },
        {"AUTH PLAIN\r\n",                          "334 \r\n",               "*\r\n",                  "501 5.7.0 ", "cancelled"              },
        {"AUTH PLAIN\r\n",                          "334 \r\n",               "\r\n",                   "501 5.5.2 ", "empty"                  },
        {"AUTH PLAIN\r\n",                          "334 \r\n",               "QUIT\r\n",               "501 5.5.2 ", "no command is one"      },
        {"AUTH PLAIN =\r\n",                        "501 5.5.2 ",             NULL,                     NULL,         "PLAIN, empty"           },
        {"AUTH PLAIN A\r\n",                        "501 5.5.2 ",             NULL,                     NULL,         "no base64"              },
        {"AUTH PLAIN *\r\n",                        "501 5.7.0 ",             NULL,                     NULL,         "cancelled at once"      },
        {"AUTH PLAIN AHVzZXIAcGVuY2ls x\r\n",       "501 5.5.4 ",             NULL,                     NULL,         "two words"              },
        {"AUTH PLAIN AHVzZXI=\r\n",                 "501 5.5.2 ",             NULL,                     NULL,         "no password"            },
        {"AUTH PLAIN AHVzZXIAcGVuY2lsAHg=\r\n",     "501 5.5.2 ",             NULL,                     NULL,         "a NUL too many"         },
        {"AUTH PLAIN AHVzZXIAcGVuY2lt\r\n",         "535 5.7.8 ",             NULL,                     NULL,         "wrong password"         },
        {"AUTH PLAIN AG5vYm9keQBwZW5jaWw=\r\n",     "535 5.7.8 ",             NULL,                     NULL,         "nobody's name"          },
        {"AUTH PLAIN dXNlcgB1c2VyAHBlbmNpbA==\r\n", "235 2.7.0 ",             NULL,                     NULL,         "as himself"             },
        {"AUTH PLAIN cm9vdAB1c2VyAHBlbmNpbA==\r\n", "535 5.7.8 ",             NULL,                     NULL,         "for another"            },
        {"AUTH LOGIN dXNlcg==\r\n",                 "334 UGFzc3dvcmQ6\r\n",   "cGVuY2ls\r\n",           "235 2.7.0 ", "LOGIN"                  },
        {"AUTH LOGIN dXNlcg==\r\n",                 "334 UGFzc3dvcmQ6\r\n",   "cGVuY2lt\r\n",           "535 5.7.8 ", "LOGIN, wrong"           },
        {"AUTH LOGIN dXNlcg==\r\n",                 "334 UGFzc3dvcmQ6\r\n",   "*\r\n",                  "501 5.7.0 ", "LOGIN, cancelled"       },
        {"AUTH LOGIN =\r\n",                        "501 5.5.2 ",             NULL,                     NULL,         "LOGIN, no name"         },
        {"AUTH SCRAM-SHA-256 !\r\n",                "501 5.5.2 ",             NULL,                     NULL,         "SCRAM, no base64"       },
        {"AUTH SCRAM-SHA-256\r\n",                  "334 \r\n",               "eHl6\r\n",               "501 5.5.2 ", "SCRAM, no message"      },
        {"AUTH CRAM-MD5\r\n",                       "504 5.5.4 ",             NULL,                     NULL,         "not offered"            },
        {"AUTH XOAUTH2 x\r\n",                      "504 5.5.4 ",             NULL,                     NULL,         "of clients alone"       },
        {"AUTH SCRAM-SHA-256-PLUS\r\n",             "504 5.5.4 ",             NULL,                     NULL,         "no channel binding"     },
        {"AUTH\r\n",                                "501 5.5.4 ",             NULL,                     NULL,         "no mechanism"           },
        {"AUTH \r\n",                               "501 5.5.4 ",             NULL,                     NULL,         "nor here"               },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int late = 0; late < 2; late++) {
            begin(SERVER_AUTH_SECURE, true);
            f.late = late != 0;
            (void)said("EHLO x\r\n");
            bool good = hears(cases[i].first, cases[i].reply) &&
                        (cases[i].second == NULL || hears(cases[i].second, cases[i].last));
            ok_named(good, cases[i].name);
            const char *last = cases[i].last ? cases[i].last : cases[i].reply;
            ok_named((f.server.user != NULL) == (last[0] == '2'), "a user, or none");
            ok_named(server_is_idle(&f.server), "it is over");
            ok_named(hears("NOOP\r\n", "250"), "commands are commands again");
            end();
        }
}

static void
scram(const char *final, const char *last)
{
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n");
    char line[600];
    snprintf(line, sizeof(line), "AUTH SCRAM-SHA-256 %.*s\r\n",
             TEXT_ARGS(kit_coded(TEXT(KIT_FIRST))));
    char challenge[400];
    snprintf(challenge, sizeof(challenge), "334 %.*s\r\n",
             TEXT_ARGS(kit_coded(TEXT(KIT_CHALLENGE))));
    ok(hears(line, challenge));
    ok_named(!server_is_idle(&f.server), "the rules may not be replaced meanwhile");
    snprintf(line, sizeof(line), "%.*s\r\n", TEXT_ARGS(kit_coded(text_from(final))));
    ok(hears(line, last));
    if (last[0] == '3') {
        ok_named(f.server.user == NULL, "not before it has seen ours");
        ok(hears("\r\n", "235 2.7.0"));
        is_string(f.server.user, "user", "SCRAM");
        ok(f.server.mechanism == SASL_SCRAM_SHA_256);
        is_number(f.checks, 0, "which costs no time");
    }
    end();
}

/* A line longer than a reply must arrive whole; one longer than the limit of AUTH
 * closes. */
TEST(long_lines)
{
    static char line[SASL_LINE_MAX + 100], nonce[800];
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n");
    memset(nonce, 'n', sizeof(nonce) - 1);
    char first[900];
    int length = snprintf(first, sizeof(first), "n,,n=user,r=%s", nonce);
    snprintf(line, sizeof(line), "AUTH SCRAM-SHA-256 %.*s\r\n",
             TEXT_ARGS(kit_coded(text_of(first, (size_t)length))));
    const char *all = said(line);
    ok_named(strlen(all) > 1000 && strstr(all, "\r\n") == all + strlen(all) - 2,
             "a long challenge is one line");
    ok(hears("*\r\n", "501 5.7.0"));
    memset(line, 'A', sizeof(line) - 1);
    memcpy(line, "AUTH PLAIN ", 11);
    memcpy(line + SASL_LINE_MAX - 4, "\r\n", 3);
    ok_named(hears(line, "501 5.5.2"), "12288 bytes are read");
    ok(!f.closed && f.server.errors == 2);
    memset(line, 'A', sizeof(line) - 1);
    memcpy(line, "AUTH PLAIN ", 11);
    ok_named(hears(line, "500 5.5.2") && f.closed, "more are not");
    end();
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n");
    ok(hears("AUTH PLAIN\r\n", "334"));
    memset(line, 'A', sizeof(line) - 1);
    ok_named(hears(line, "500 5.5.2") && f.closed, "nor within");
    end();
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\nAUTH PLAIN\r\n");
    ok_named(hears("AA\nAA\r\n", "521 5.5.2") && f.closed, "a bare LF within");
    end();
}

/* For any input in the wrong place, the log keeps secrets out. */
TEST(secrets)
{
    static const char *const bad[] = {
        "AUTH LOGIN c2VjcmV0\r\nc2VjcmV0\r\n", /* in clear: a client that does not wait */
        "AUTH c2VjcmV0\r\n", "AUTH PLAIN c2VjcmV0 c2VjcmV0\r\n", "aUtH CRAM c2VjcmV0\r\n",
        " AUTH PLAIN c2VjcmV0\r\n", "AUTH\tPLAIN c2VjcmV0\r\n",
        "AUTHPLAIN c2VjcmV0\r\nc2VjcmV0\r\n", "AUTH: LOGIN\r\nc2VjcmV0\r\nc2VjcmV0\r\n",
        "AUTH LOGIN\r\nc2Vj\x01cmV0\r\nc2VjcmV0\r\n"};
    for (int secure = 0; secure < 2; secure++)
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            begin(SERVER_AUTH_SECURE, secure != 0);
            (void)said("EHLO x\r\n");
            (void)said(bad[i]);
            (void)said("*\r\n");
            ok_named(!is_logged("c2Vj") && !is_logged("cmV0"), bad[i]);
            (void)said("NOOP\r\n");
            (void)said("WIZARD c2VjcmV0\r\n");
            ok_named(is_logged("command=WIZARD c2VjcmV0"), "other commands are shown");
            end();
        }
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\nAUTH PLAIN AHVzZXIAcGVuY2lt\r\n");
    ok_named(is_logged("refused=535 5.7.8, client=[127.0.0.1], helo=x, "
                       "sasl_method=PLAIN, sasl_username=user"),
             "a failure has its line");
    buffer_clear(&lines);
    (void)said("AUTH LOGIN YSwgYj1jCg==\r\n"); /* "a, b=c\n" */
    ok(!is_logged("\n\n"));
    buffer_clear(&lines);
    (void)said("AUTH LOGIN YSwgY2xpZW50PXg=\r\neA==\r\n"); /* "a, client=x" */
    ok_named(is_logged("sasl_username=a\\x2c client=x"), "a name can forge no field");
    end();
}

/* The operator can read a name with its domain, the client cannot. */
TEST(whole_addresses)
{
    static const char hint[] = "auth_users lists this user without the domain";
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n"); /* user@example.org, someone@example.org, user; a bad word */
    is_string(said("AUTH PLAIN AHVzZXJAZXhhbXBsZS5vcmcAcGVuY2ls\r\n"),
              "535 5.7.8 authentication failed\r\n", "no word of it to the client");
    ok_named(is_logged("sasl_username=user@example.org") && is_logged(hint),
             "but to the operator");
    buffer_clear(&lines);
    is_string(said("AUTH PLAIN AHNvbWVvbmVAZXhhbXBsZS5vcmcAcGVuY2ls\r\n"),
              "535 5.7.8 authentication failed\r\n", "the same of others");
    ok_named(is_logged("refused=535") && !is_logged(hint), "of whom there is nothing to say");
    buffer_clear(&lines);
    (void)said("AUTH PLAIN AHVzZXIAcGVuY2lt\r\n");
    ok_named(is_logged("refused=535") && !is_logged(hint), "nor of a wrong password");
    end();
}

TEST(mail)
{
    static const char send[] = "MAIL FROM:<a@example.net> AUTH=<>\r\n"
                               "RCPT TO:<b@example.com>\r\nDATA\r\nx: y\r\n\r\nz\r\n.\r\n";
    begin(SERVER_AUTH_SECURE, true);
    f.server.offer.auth_required = true;
    (void)said("EHLO x\r\n");
    ok_named(hears("MAIL FROM:<a@example.net>\r\n", "530 5.7.0"), "AUTH first");
    ok(hears("VRFY a@example.net\r\n", "530 5.7.0"));
    ok(hears("ETRN a.example\r\n", "530 5.7.0"));
    ok(hears("RCPT TO:<a@example.net>\r\n", "503 5.5.1"));
    ok(hears("NOOP\r\n", "250") && hears("RSET\r\n", "250") && hears("HELP\r\n", "214"));
    ok(hears("AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "235"));
    ok(strstr(said(send), "250 2.0.0 Ok: queued") != NULL);
    ok(is_logged("proto=ESMTPSA, tls=TLSv1.3 with cipher TLS_TEST, sasl_method=PLAIN, "
                 "sasl_username=user"));
    is_number(f.count, 1, "stored");
    char prefix[2000];
    text_copy(prefix, sizeof(prefix), f.messages[0].envelope->prefix);
    ok_named(strstr(prefix, "with ESMTPSA") != NULL, "RFC 3848");
    ok_named(strstr(prefix, "user") == NULL, "the user is not told");
    ok_named(strstr(prefix, "Date: ") && strstr(prefix, "Message-ID: "),
             "a submission gets what it lacks");
    end();
    begin(SERVER_AUTH_SECURE, false);
    f.server.offer.auth_required = true;
    (void)said("EHLO x\r\n");
    ok_named(hears("MAIL FROM:<a@example.net>\r\n", "530 5.7.0 must issue a STARTTLS"),
             "who is not told of AUTH hears what comes before it");
    f.server.offer.starttls = false;
    ok(hears("MAIL FROM:<a@example.net>\r\n", "530 5.7.0 authentication required"));
    end();
    begin(SERVER_AUTH_CLEAR, false);
    f.server.uid = 1000;
    (void)said("EHLO x\r\nAUTH PLAIN AHVzZXIAcGVuY2ls\r\n");
    ok(strstr(said(send), "250 2.0.0 Ok: queued") != NULL);
    ok(is_logged("proto=ESMTPA, sasl_method=PLAIN, sasl_username=user, uid=1000"));
    text_copy(prefix, sizeof(prefix), f.messages[0].envelope->prefix);
    ok(strstr(prefix, "with ESMTPA") && strstr(prefix, "uid=1000)"));
    end();
}

static void
events(void)
{
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\nAUTH LOGIN\r\n");
    server_timed_out(&f.server);
    ok_named(hears("", "") && f.closed && server_is_idle(&f.server),
             "a time-out within AUTH ends both");
    end();
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\nAUTH LOGIN\r\n");
    server_shut_down(&f.server);
    (void)said("");
    ok_named(f.closed, "so does the end of the daemon");
    end();
    rules.error_limit = 3;
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n");
    for (int i = 0; i < 3; i++)
        ok(hears("AUTH PLAIN !\r\n", "501 5.5.2"));
    ok_named(hears("AUTH PLAIN !\r\n", "421 4.7.0") && f.closed, "errors add up");
    end();
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n");
    for (int i = 0; i < 3; i++)
        ok(hears("AUTH PLAIN AHVzZXIAeA==\r\n", "535 5.7.8"));
    ok_named(hears("AUTH PLAIN AHVzZXIAeA==\r\n", "421 4.7.0") && f.closed,
             "failed logins do");
    end();
    rules.error_limit = 0;
}

/* The owner's refusals, at each of its two occasions. */
static void
refusals(void)
{
    static const struct refusal later = {454, "4.7.0", "later"}, gone = {421, "4.7.0", "bye"};
    struct text input = TEXT("AUTH PLAIN AHVzZXIAcGVuY2lt\r\nNOOP\r\n");
    begin(SERVER_AUTH_SECURE, true);
    (void)said("EHLO x\r\n");
    buffer_clear(&f.out);
    ok(server_step(&f.server, &input) == SERVER_LOGIN);
    ok(server_step(&f.server, &input) == SERVER_WAIT && input.length == 6);
    ok_named(server_login_step(&f.server, FAKE_NONCE) == SASL_UNFINISHED, "a password to check");
    server_login_refused(&f.server, &later);
    ok(text_starts(buffer_text(&f.out), TEXT("454 4.7.0 later\r\n")));
    ok(server_step(&f.server, &input) == SERVER_GO_ON && server_is_idle(&f.server));
    input = TEXT("AUTH PLAIN AHVzZXIAcGVuY2lt\r\n");
    ok(server_step(&f.server, &input) == SERVER_LOGIN);
    ok(server_login_step(&f.server, FAKE_NONCE) == SASL_UNFINISHED);
    ok_named(!is_logged("535 5.7.8"), "a check that was not made has no line");
    ok(server_login_work(&f.server) == SASL_FAILED);
    ok_named(is_logged("535 5.7.8"), "logged before it is told");
    buffer_clear(&f.out);
    server_login_refused(&f.server, &gone);
    ok(text_starts(buffer_text(&f.out), TEXT("421 4.7.0 bye\r\n")));
    ok(server_step(&f.server, &input) == SERVER_CLOSE);
    end();
}

static void
legacy(void)
{
    begin(SERVER_AUTH_CLEAR, false);
    f.server.offer.legacy = true;
    const char *all = said("EHLO [192.168.1.9]\r\n");
    ok(strstr(all, "250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n") != NULL);
    ok(strstr(all, "250-AUTH=PLAIN LOGIN SCRAM-SHA-256\r\n") != NULL);
    ok(strstr(all, "CHUNKING") == NULL && strstr(said("HELP\r\n"), "BDAT") == NULL);
    ok(hears("HELO scan_ner\r\n", "250") && hears("HELO 192.168.1.9\r\n", "250"));
    ok(hears("AUTH LOGIN\r\n", "334 VXNlcm5hbWU6\r\n"));
    ok(hears("dXNlcg==\r\n", "334 UGFzc3dvcmQ6\r\n"));
    ok(hears("cGVuY2ls\r\n", "235"));
    ok_named(hears("BDAT 6\r\nQUIT\r\n", "502 5.5.1") && f.closed,
             "a chunk's bytes are no commands");
    end();
}

static void
full(void)
{
    begin(SERVER_AUTH_SECURE, false);
    f.server.offer.may_relay = f.server.load.tls_full = true;
    ok_named(strstr(said("EHLO x\r\n"), "STARTTLS") != NULL, "it is never hidden");
    ok(hears("STARTTLS\r\n", "454 4.7.0"));
    f.server.load.tls_full = false;
    ok(strstr(said("EHLO x\r\n"), "STARTTLS") != NULL && hears("STARTTLS\r\n", "220"));
    end();
    begin(SERVER_AUTH_SECURE, false);
    f.server.load.tls_full = true;
    ok_named(hears("EHLO x\r\n", "421 4.7.0") && f.closed,
             "an untrusted client is not led to send in clear");
    end();
}

/* A file with a crypt: SCRAM would not do for all. */
static void
without_scram(void)
{
    struct users *mixed = kit_users(
        "a:$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdc"
        "bYEdFCoEOfaS35inz1\nuser:" KIT_KEYS "\n");
    rules.users = mixed;
    begin(SERVER_AUTH_SECURE, true);
    ok(strstr(said("EHLO x\r\n"), "250-AUTH PLAIN LOGIN\r\n") != NULL);
    ok(hears("AUTH SCRAM-SHA-256\r\n", "504 5.5.4"));
    ok(hears("AUTH PLAIN AGEASGVsbG8gd29ybGQh\r\n", "235"));
    end();
    rules.users = users;
    users_free(&mixed);
}

int
main(void)
{
    users = kit_users("user:" KIT_KEYS "\n");
    places();
    mechanisms();
    scram(KIT_FINAL, "334 ");
    scram(KIT_UNPROVEN ",p=AAAZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQA=", "535 5.7.8");
    scram("n=user", "501 5.5.2");
    tap_tests("");
    events();
    refusals();
    legacy();
    full();
    without_scram();
    users_free(&users);
    return done();
}
