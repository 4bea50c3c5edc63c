/* smtp/listener with users: required logins, owned senders, reloads, Unix sockets and
 * the users behind them, old devices, errors and warnings. */
#include "queue/queue_operator.h"
#include "smtp/session/listener.h"

#include "t/support/listener_world.h"
#include "t/support/sasl_kit.h"

#include <sys/stat.h>
#include <sys/un.h>

#define GOOD "AUTH PLAIN AHVzZXIAcGVuY2ls\r\n"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20};
static struct world w;
static char users_path[100], listen_text[300];

static void
write_users(const char *content)
{
    snprintf(users_path, sizeof(users_path), "%s/users", w.spool);
    FILE *file = fopen(users_path, "w");
    dialog_must(file != NULL && fputs(content, file) >= 0 && fclose(file) == 0,
                "users");
    w.settings.auth_users = text_from(users_path);
}

static bool
is_logged(const char *what)
{
    for (int i = 0; i < 3; i++)
        loop_turn(w.loop, 0);
    return memmem(w.lines.at, w.lines.length, what, strlen(what)) != NULL;
}

/* Instead of what listens. at: behind the address of TCP, then more of `listen`. */
static bool
listen_at(const char *format)
{
    listener_free(&w.listener);
    loop_turn(w.loop, 0);
    w.port = free_port();
    int length =
        snprintf(listen_text, sizeof(listen_text), "127.0.0.1:%u%s", w.port, format);
    dialog_must(length < (int)sizeof(listen_text), "too long");
    w.settings.listen = text_from(listen_text);
    w.settings.auth_failure_limit = 3;
    buffer_clear(&w.lines);
    w.listener = listener_new(w.loop, w.net, w.events, w.manager, w.routes, &w.settings,
                              w.error, sizeof(w.error));
    return w.listener != NULL;
}

static void
start(bool may_relay)
{
    listener_world_start(&w, &plain, false, may_relay);
    write_users("user:" KIT_KEYS "\n");
    w.settings.auth_cleartext = TEXT("loopback");
}

static bool
sends(struct visitor *v, const char *from, const char *to)
{
    char line[300];
    snprintf(line, sizeof(line), "MAIL FROM:<%s>\r\n", from);
    bool good = asks(v, line, "250");
    snprintf(line, sizeof(line), "RCPT TO:<%s>\r\n", to);
    good = good && asks(v, line, "250") && asks(v, "DATA\r\n", "354") &&
           asks(v, "Subject: x\r\n\r\nx\r\n.\r\n", "250 2.0.0 Ok: queued");
    if (!good)
        (void)asks(v, "RSET\r\n", "250");
    return good;
}

static void
relaying(void)
{
    struct visitor v;
    start(false);
    ok_named(listen_at(""), w.error);
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(memmem(v.heard.at, v.heard.length,
                    "250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n", 36),
             "loopback, as it was told");
    ok_named(!sends(&v, "a@b.example", "c@elsewhere.example"),
             "a stranger may not relay");
    ok(asks(&v, GOOD, "235"));
    ok_named(sends(&v, "a@b.example", "c@elsewhere.example"), "a user may");
    ok(is_logged("proto=ESMTPA, sasl_method=PLAIN, sasl_username=user"));
    /* A bad file changes nothing; one without the user does. */
    write_users("broken\n");
    listener_reload(w.listener, w.routes, &w.settings);
    ok(is_logged("old settings stay: ") && is_logged("expected 'user:verifier'"));
    ok(sends(&v, "a@b.example", "c@elsewhere.example"));
    write_users("other:" KIT_KEYS "\n");
    listener_reload(w.listener, w.routes, &w.settings);
    ok_named(!sends(&v, "a@b.example", "c@elsewhere.example"), "who is out is out");
    say(&v, TEXT(GOOD), SIZE_MAX);
    listener_turns(&w, 30);
    ok(is_logged("refused=535 5.7.8"));
    leave(&v); /* the answer takes a second */
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(asks(&v, "AUTH PLAIN AG90aGVyAHBlbmNpbA==\r\n", "235"),
             "the new one is in");
    leave(&v);
    w.settings.auth_users = TEXT("/missing/users");
    listener_reload(w.listener, w.routes, &w.settings);
    ok(is_logged("auth_users: cannot read /missing/users: No such file or directory"));
    w.settings.auth_users = TEXT("");
    w.settings.auth_cleartext = TEXT("");
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(asks(&v, GOOD, "502"), "no users, no AUTH");
    leave(&v);
    listener_world_end(&w);
}

static void
required(void)
{
    struct visitor v;
    start(true);
    ok_named(listen_at("?auth=required"), w.error);
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(asks(&v, "MAIL FROM:<a@b.example>\r\n", "530 5.7.0"),
             "even in relay_from");
    ok(asks(&v, GOOD, "235") && sends(&v, "a@b.example", "c@elsewhere.example"));
    leave(&v);
    w.settings.auth_users = TEXT("");
    listener_reload(w.listener, w.routes, &w.settings);
    ok_named(is_logged("old settings stay: auth_users: unset"), "its promise stays");
    for (int i = 0; i < 3; i++) {
        visit(&v, &w);
        ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
        say(&v, TEXT("AUTH PLAIN AHVzZXIAcGVuY2lt\r\n"), SIZE_MAX);
        listener_turns(&w, 3);
        leave(&v); /* does not wait for the answer: it counts */
        listener_turns(&w, 30);
    }
    ok(is_logged("auth=locked, client=[127.0.0.1], failures=3, seconds=300"));
    visit(&v, &w);
    ok_named(asks(&v, "", "421 4.7.0 too many failed logins"), "locked out");
    leave(&v);
    ok(listen_at("?auth=no"));
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN") &&
       asks(&v, GOOD, "502"));
    leave(&v);
    listener_world_end(&w);
}

/* Whom a proxy does not name could be anybody: its own address is not theirs. */
TEST(unnamed)
{
    struct visitor v;
    start(true);
    w.settings.proxy_from = TEXT("127.0.0.1");
    ok_named(listen_at("?proxy"), w.error);
    visit(&v, &w);
    ok(asks(&v, "PROXY TCP4 127.0.0.1 127.0.0.1 4000 25\r\n", "220"));
    ok(asks(&v, "EHLO x\r\n", "250 DSN") && asks(&v, GOOD, "235"));
    leave(&v);
    visit(&v, &w);
    ok(asks(&v, "PROXY UNKNOWN\r\n", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(asks(&v, GOOD, "538 5.7.11"), "no password in clear from them");
    leave(&v);
    listener_world_end(&w);
}

TEST(senders)
{
    struct visitor v;
    start(false);
    w.settings.sender_login = TEXT("user user@example.org\nother other.example");
    w.settings.sender_domains = TEXT("example.org");
    ok_named(listen_at(""), w.error);
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(asks(&v, "MAIL FROM:<User@Example.org>\r\n", "553 5.7.1"),
             "a stranger with a user's address");
    ok(asks(&v, "MAIL FROM:<any@else.example>\r\n", "250") &&
       asks(&v, "RSET\r\n", "250"));
    ok(asks(&v, GOOD, "235"));
    ok_named(asks(&v, "MAIL FROM:<x@other.example>\r\n", "553 5.7.1"), "another's");
    ok_named(asks(&v, "MAIL FROM:<x@else.example>\r\n", "553 5.7.1"), "nobody's");
    ok(is_logged("refused=553 5.7.1, client=[127.0.0.1], helo=x, sasl_method=PLAIN, "
                 "sasl_username=user"));
    ok(sends(&v, "user@example.org", "c@elsewhere.example"));
    ok(sends(&v, "", "c@elsewhere.example"));
    leave(&v);
    w.settings.sender_login = TEXT("");
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN") &&
       asks(&v, GOOD, "235"));
    ok_named(asks(&v, "MAIL FROM:<x@else.example>\r\n", "550 5.7.1"), "sender_domains");
    ok(sends(&v, "any@example.org", "c@elsewhere.example"));
    leave(&v);
    listener_world_end(&w);
}

static void
visit_socket(struct visitor *v, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    text_copy(name.sun_path, sizeof(name.sun_path), text_from(path));
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    dialog_must(s >= 0 && connect(s, (struct sockaddr *)&name, sizeof(name)) == 0,
                "cannot connect to the socket");
    visitor_on(v, &w, s);
}

TEST(sockets)
{
    struct visitor v;
    struct stat info;
    char format[300], mine[100], others[100], uid[60];
    start(false);
    w.settings.auth_cleartext = TEXT("no");
    snprintf(mine, sizeof(mine), "%s/mine", w.spool);
    snprintf(others, sizeof(others), "%s/others", w.spool);
    snprintf(format, sizeof(format),
             ", unix:%s?mode=0640&uid=%u&uid=12345, "
             "unix:%s?uid=%u",
             mine, (unsigned)geteuid(), others, (unsigned)geteuid() + 1);
    ok_named(listen_at(format), w.error);
    ok_named(is_logged("warning:") == false, "nothing to warn of");
    ok(stat(mine, &info) == 0 && (info.st_mode & 0777) == 0640);
    ok(stat(others, &info) == 0 && (info.st_mode & 0777) == 0666);
    visit_socket(&v, mine);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok(memmem(v.heard.at, v.heard.length, "250-AUTH ", 9) != NULL);
    ok_named(sends(&v, "a@b.example", "c@elsewhere.example"), "our user may");
    snprintf(uid, sizeof(uid), "client=unix, helo=x, from=<a@b.example>");
    ok(is_logged(uid));
    snprintf(uid, sizeof(uid), ", uid=%u (queued)", (unsigned)geteuid());
    ok(is_logged(uid));
    ok_named(asks(&v, "AUTH PLAIN AHVzZXIAcGVuY2ls\r\n", "235"), "no TLS needed");
    leave(&v);
    visit_socket(&v, others);
    ok_named(asks(&v, "", "554 5.7.1 user not allowed"), "another's socket");
    ok(is_closed(&v));
    ok(is_logged("refused=554 5.7.1, client=unix"));
    snprintf(uid, sizeof(uid), "client=unix: uid=%u may not use this socket",
             (unsigned)geteuid());
    ok(is_logged(uid));
    leave(&v);
    visit(&v, &w);
    ok(asks(&v, "", "220") && asks(&v, "EHLO x\r\n", "250 DSN"));
    ok_named(asks(&v, GOOD, "538 5.7.11"), "by TCP TLS is");
    leave(&v);
    listener_world_end(&w);
}

TEST(old_devices)
{
    static const char all[] =
        "HELO scan_ner\nAUTH LOGIN dXNlcg==\ncGVuY2ls\nMAIL FROM:<s@b.example>\n"
        "RCPT TO:<c@elsewhere.example>\nDATA\nSubject: one\n\nline\n..dot\n.\n"
        "MAIL FROM:<s@b.example>\r\nRCPT TO:<d@elsewhere.example>\r\nDATA\r\n"
        "Subject: two\r\n\nmixed\n.\r\nQUIT\n";
    struct visitor v;
    struct stored s = {.world = &w};
    for (size_t piece = 1; piece < 1000; piece = piece * 7 + 3) {
        start(false);
        w.settings.auth_cleartext = TEXT("");
        ok_named(listen_at("?profile=legacy"), w.error);
        visit(&v, &w);
        say(&v, TEXT(all), piece);
        struct text line = TEXT("");
        while (next_line(&v, &line) && !text_starts(line, TEXT("221")))
            ;
        ok(text_starts(line, TEXT("221")));
        memset(&s, 0, sizeof(s));
        s.world = &w;
        listener_turns(&w, 3);
        dialog_must(queue_each(manager_queue(w.manager), collect, &s) == 0, "list");
        is_number(s.count, 2, "two messages, as they were meant");
        for (size_t i = 0; i < s.count; i++) {
            struct text t = buffer_text(&s.messages[i].content);
            for (size_t at = 0; at < t.length; at++)
                if (t.at[at] == '\n' && (at == 0 || t.at[at - 1] != '\r'))
                    ok_named(false, "a bare LF was kept");
            ok(text_ends_nocase(t, TEXT("line\r\n.dot\r\n")) ||
               text_ends_nocase(t, TEXT("\r\n\r\nmixed\r\n")));
            envelope_free(&s.messages[i].envelope);
            buffer_free(&s.messages[i].content);
        }
        leave(&v);
        listener_world_end(&w);
    }
    /* More than a piece at a time, and what stays forbidden. */
    start(true);
    ok(listen_at("?profile=legacy"));
    visit(&v, &w);
    ok(asks(&v, "HELO x\nMAIL FROM:<a@b.example>\nRCPT TO:<c@d.example>\nDATA\n",
            "220"));
    struct buffer large;
    buffer_init(&large, 1 << 20);
    for (int i = 0; i < 5000; i++)
        dialog_must(buffer_add(&large, TEXT("a line that ends as old devices do it\n")),
                    "");
    dialog_must(buffer_add(&large, TEXT(".\nNOOP\n")), "");
    say(&v, buffer_text(&large), SIZE_MAX);
    ok(hears(&v, TEXT("250 ")) && hears(&v, TEXT("250 ")) && hears(&v, TEXT("250 ")));
    ok(hears(&v, TEXT("354 ")) && hears(&v, TEXT("250 2.0.0 Ok: queued")));
    ok(hears(&v, TEXT("250 2.0.0 Ok")));
    ok_named(asks(&v, "NOOP\rNOOP\n", "521 5.5.2") && is_closed(&v), "no bare CR");
    leave(&v);
    buffer_free(&large);
    visit(&v, &w);
    ok(asks(&v, "BDAT 3\nx\n.\nQUIT\n", "220"));
    ok(hears(&v, TEXT("502 5.5.1")) && is_closed(&v));
    leave(&v);
    listener_world_end(&w);
}

static const char *
mistake(const char *at)
{
    static char line[500];
    struct buffer mistakes;
    struct listener_settings s = w.settings;
    buffer_init(&mistakes, 4096);
    s.listen = text_from(at);
    bool good = listener_check(&s, &mistakes);
    ok(good == (mistakes.length == 0));
    text_copy(line, sizeof(line), text_trim(buffer_text(&mistakes)));
    buffer_free(&mistakes);
    return line;
}

static void
mistakes(void)
{
    start(false);
    is_string(mistake("127.0.0.1:25?auth=required"), "", "loopback was allowed");
    w.settings.auth_cleartext = TEXT("no");
    ok(strstr(mistake("127.0.0.1:25?auth=required"), "AUTH needs TLS") != NULL);
    ok(strstr(mistake("127.0.0.1:25?auth=offered"), "AUTH needs TLS") != NULL);
    is_string(mistake("127.0.0.1:25?auth=required&profile=legacy"), "", "legacy");
    is_string(mistake("unix:/x?auth=required"), "", "a socket");
    is_string(mistake("127.0.0.1:25"), "", "the default does not insist");
    ok_named(listen_at(""), w.error);
    ok(is_logged("warning: auth_users is set, but AUTH is offered nowhere"));
    ok(listen_at(", 0.0.0.0:0?profile=legacy"));
    ok(is_logged("warning: listen: 0.0.0.0:"));
    ok(listen_at("?profile=legacy"));
    ok_named(!is_logged("warning:"), "on loopback nothing is wrong with it");
    w.settings.auth_cleartext = TEXT("yes");
    is_string(mistake("127.0.0.1:25"), "auth_cleartext: say no or loopback", "a word");
    w.settings.auth_cleartext = TEXT("");
    w.settings.auth_users = TEXT("");
    ok(strstr(mistake("127.0.0.1:25?auth=required"), "auth_users: unset") != NULL);
    w.settings.sender_login = TEXT("alice");
    ok(strstr(mistake("127.0.0.1:25"), "sender_login: 'alice'") != NULL);
    w.settings.sender_login = TEXT("");
    write_users("user:" KIT_KEYS "\nuser:x\n");
    ok(strstr(mistake("127.0.0.1:25"), "/users:2: user 'user': is already in line 1"));
    ok_named(strstr(mistake("127.0.0.1:25"), "W22Z") == NULL, "no secret is told");
    ok(!listen_at(""));
    ok_named(strstr(w.error, "is already in line 1") != NULL, w.error);
    listener_world_end(&w);
}

/* An unknown name has the same salt after a restart, as users have; with any error of
 * the disk. */
static void
decoys(void)
{
    unsigned char first[DIGEST_SIZE], again[DIGEST_SIZE];
    start(false);
    ok_named(listen_at(""), w.error);
    struct disk *disk = queue_disk(manager_queue(w.manager));
    listener_auth_secret(w.loop, disk, first);
    listener_auth_secret(w.loop, disk, again);
    ok_named(memcmp(first, again, sizeof(first)) == 0, "one secret, kept in the spool");
    int file = disk_open_file(disk, "lock/decoys", true);
    ok(file >= 0 && disk_write_at(disk, file, DIGEST_SIZE, TEXT("x")) == 0);
    disk_close_file(disk, file);
    listener_auth_secret(w.loop, disk, again);
    ok_named(memcmp(first, again, sizeof(first)) != 0, "a damaged file is made anew");
    listener_auth_secret(w.loop, disk, first);
    ok(memcmp(first, again, sizeof(first)) == 0);
    ok(disk_unlink(disk, "lock/decoys") == 0 &&
       disk_make_directory(disk, "lock/decoys", 0700) == 0);
    listener_auth_secret(w.loop, disk, first);
    ok_named(memcmp(first, again, sizeof(first)) != 0, "and without one it goes on");
    ok(listen_at(""));
    listener_world_end(&w);
}

int
main(void)
{
    relaying();
    required();
    tap_tests("");
    mistakes();
    decoys();
    return done();
}
