/* Proves the walk over name servers: a dead one costs one query, each failure has its
 * words, and the name servers of a resolv.conf are those that it has now. The servers are
 * in this process, and the clock stands.
 */
/* link: t/sim/clock.c */
#include "base/dns/dns.h"

#include "t/sim/clock.h"
#include "t/support/dns_ask.h"
#include "t/support/port.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SILENT = -1, WIRE_MAX = 600, NOTES_MAX = 4000 };

struct fake {
    int udp, code; /* the response code, or SILENT */
    unsigned port, asked;
    struct loop_watch *watch;
};

static struct loop *loop;
static char notes[NOTES_MAX]; /* what was said */

static void
fake_answer(void *context, int events)
{
    struct fake *f = context;
    unsigned char w[WIRE_MAX];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t got = recvfrom(f->udp, w, 256, 0, (struct sockaddr *)&from, &size);
    size_t at = 12;
    (void)events;
    if (got <= 12)
        return;
    f->asked++;
    if (f->code == SILENT)
        return;
    while (at < 250 && w[at] != 0)
        at += w[at] + 1u;
    unsigned type = w[at + 2];
    at += 5;
    w[2] = 0x81;
    w[3] = (unsigned char)(0x80 | f->code);
    memset(w + 6, 0, 6);
    if (f->code == 0 && type == 15) {
        memcpy(w + at, "\xc0\x0c\0\x0f\0\1\0\0\0\x3c\0\x09\0\5\4good\xc0\x0c", 21);
        w[7] = 1;
        at += 21;
    } else if (f->code == 0 && type == 1) {
        memcpy(w + at, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1", 16);
        w[7] = 1;
        at += 16;
    }
    sendto(f->udp, w, at, 0, (struct sockaddr *)&from, size);
}

static void
fake_open(struct fake *f, int code, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *f = (struct fake){.code = code, .port = port};
    f->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ok(bind(f->udp, (struct sockaddr *)&a, sizeof(a)) == 0);
    f->watch = loop_watch_new(loop, f->udp, LOOP_READ, fake_answer, f);
}

static void
fake_close(struct fake *f)
{
    loop_watch_free(&f->watch);
    close(f->udp);
}

static void
note(void *context, bool wrong, const char *text)
{
    size_t length = strlen(notes);
    (void)context;
    snprintf(notes + length, NOTES_MAX - length, "%s%s\n", wrong ? "! " : "", text);
}

static struct dns *
dns_of(const char *servers)
{
    char error[200] = "";
    struct dns *dns = dns_new(loop, text_from(servers), error, sizeof(error));
    if (!ok_named(dns != NULL, "a resolver"))
        printf("# %s\n", error);
    notes[0] = '\0';
    dns_listen(dns, note, NULL);
    return dns;
}

/* Loopback is synchronous: what is sent is there. */
static void
turns(void)
{
    for (int i = 0; i < 20; i++)
        loop_turn(loop, 0);
}

static void
pass(int64_t ms)
{
    clock_pass(ms);
    turns();
}

/* The answer, and the time that had to pass for it. */
static int64_t
ask_passing(struct dns *dns, dns_find *find, const char *name,
            struct dns_answer *answer)
{
    struct asked a;
    int64_t passed_ms = 0;
    ask_start(dns, find, name, &a);
    while (a.times == 0 && passed_ms < 100000) {
        turns();
        if (a.times == 0) {
            clock_pass(100);
            passed_ms += 100;
        }
    }
    *answer = a.answer;
    return passed_ms;
}

/* Nothing listens at the first, whatever is asked for. With one socket for A and AAAA the
 * error of one would be taken for that of the other, which then waited 5 s. */
TEST(refused)
{
    struct dns_answer a;
    char servers[100], expected[200];
    unsigned dead = free_port();
    FIXTURE(fake, good, fake_open, fake_close, 0, free_port());
    snprintf(servers, sizeof(servers), "127.0.0.9:%u 127.0.0.1:%u", dead, good.port);
    struct dns *dns = dns_of(servers);
    for (int i = 0; i < 3; i++) {
        is_number(ask_passing(dns, dns_find_addresses, "a.test", &a), 0, "immediately");
        is_string(answer_text(&a, dns_find_addresses), "127.0.0.1", "found");
        is_number(ask_passing(dns, dns_find_mx, "a.test", &a), 0, "immediately");
    }
    snprintf(expected, sizeof(expected),
             "! name server 127.0.0.9:%u cannot be reached: it is asked last until it "
             "answers\n",
             dead);
    is_string(notes, expected, "said once");
    ok(dns_trouble(dns, notes, sizeof(notes)));
    snprintf(expected, sizeof(expected),
             "1 of 2 name servers does not answer: 127.0.0.9:%u", dead);
    is_string(notes, expected, "and shown");
    dns_free(&dns);
    /* connect() itself fails, as without an IPv6 route: no scope. */
    snprintf(servers, sizeof(servers), "[fe80::1]:%u 127.0.0.1:%u", dead, good.port);
    dns = dns_of(servers);
    is_number(ask_passing(dns, dns_find_addresses, "a.test", &a), 0, "no way to it");
    is_string(answer_text(&a, dns_find_addresses), "127.0.0.1", "found");
    dns_free(&dns);
    loop_turn(loop, 0);
}

/* The first is silent: one query pays for that, once a minute. */
TEST(silent)
{
    struct fake silent, good;
    struct dns_answer a;
    char servers[100], expected[300];
    fake_open(&silent, SILENT, free_port());
    fake_open(&good, 0, free_port());
    snprintf(servers, sizeof(servers), "127.0.0.1:%u 127.0.0.1:%u", silent.port,
             good.port);
    struct dns *dns = dns_of(servers);
    is_number(ask_passing(dns, dns_find_mx, "a.test", &a), 5000, "the first one pays");
    is_number(ask_passing(dns, dns_find_addresses, "a.test", &a), 0, "the next do not");
    is_number(ask_passing(dns, dns_find_mx, "b.test", &a), 0, "nor this one");
    pass(61000);
    is_number(ask_passing(dns, dns_find_mx, "c.test", &a), 5000, "a minute later");
    silent.code = 0;
    pass(61000);
    is_number(ask_passing(dns, dns_find_mx, "d.test", &a), 0, "it is back");
    snprintf(expected, sizeof(expected),
             "! name server 127.0.0.1:%u does not answer: it is asked last until it "
             "does\nname server 127.0.0.1:%u answers again\n",
             silent.port, silent.port);
    is_string(notes, expected, "each is said once");
    ok_named(!dns_trouble(dns, notes, sizeof(notes)), "nothing is wrong any more");
    /* Both are dead: both are asked. */
    silent.code = good.code = SILENT;
    ask_passing(dns, dns_find_mx, "e.test", &a);
    is_number(a.status, DNS_TRY_AGAIN, "none answers");
    silent.asked = good.asked = 0;
    ask_passing(dns, dns_find_mx, "f.test", &a);
    ok_named(silent.asked > 0 && good.asked > 0, "each is asked nevertheless");
    good.code = 0;
    is_number(ask_passing(dns, dns_find_mx, "g.test", &a), 5000, "and one is back");
    dns_free(&dns);
    loop_turn(loop, 0);
    fake_close(&silent);
    fake_close(&good);
}

/* A server that answers others is not dead when it is silent about one domain. */
TEST(silent_domain)
{
    struct asked silent;
    struct dns_answer a;
    char servers[40];
    FIXTURE(fake, f, fake_open, fake_close, SILENT, free_port());
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", f.port);
    struct dns *dns = dns_of(servers);
    ask_start(dns, dns_find_mx, "silent.test", &silent);
    pass(1000);
    f.code = 0;
    is_number(ask_passing(dns, dns_find_mx, "good.test", &a), 0, "another is answered");
    f.code = SILENT;
    for (int i = 0; i < 400 && silent.times == 0; i++) {
        pass(100);
        if (i == 60)
            is_string(notes, "", "its first try is over: nobody is blamed");
    }
    is_number(silent.answer.status, DNS_TRY_AGAIN, "it has no answer");
    dns_free(&dns);
    loop_turn(loop, 0);
}

/* Each failure has its own sentence, which names who failed; the next is asked. */
TEST(words)
{
    static const struct {
        int code;
        const char *said;
    } rows[] = {
        {1,      "answered FORMERR" },
        {2,      "answered SERVFAIL"},
        {4,      "answered NOTIMP"  },
        {5,      "answered REFUSED" },
        {9,      "answered error 9" },
        {SILENT, "does not answer"  },
    };
    struct fake bad, good;
    struct dns_answer a;
    char servers[100], expected[200];
    fake_open(&good, 0, free_port());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_open(&bad, rows[i].code, free_port());
        snprintf(servers, sizeof(servers), "127.0.0.1:%u", bad.port);
        struct dns *dns = dns_of(servers);
        ask_passing(dns, dns_find_mx, "a.test", &a);
        snprintf(expected, sizeof(expected),
                 "the name server 127.0.0.1:%u %s for the MX of a.test", bad.port,
                 rows[i].said);
        is_number(a.status, DNS_TRY_AGAIN, "not known");
        is_string(a.reason, expected, "and why");
        if (rows[i].code != SILENT)
            is_string(notes, "", "it is not dead");
        dns_free(&dns);
        snprintf(servers, sizeof(servers), "127.0.0.1:%u 127.0.0.1:%u", bad.port,
                 good.port);
        dns = dns_of(servers);
        is_number(ask_passing(dns, dns_find_mx, "a.test", &a),
                  rows[i].code == SILENT ? 5000 : 0, "the next server");
        is_string(answer_text(&a, dns_find_mx), "5 good.a.test", "  has the answer");
        dns_free(&dns);
        /* It tells more than one that is not there. */
        snprintf(servers, sizeof(servers), "127.0.0.1:%u 127.0.0.9:%u", bad.port,
                 free_port());
        dns = dns_of(servers);
        ask_passing(dns, dns_find_mx, "a.test", &a);
        ok_named((strcmp(a.reason, expected) == 0) == (rows[i].code != SILENT),
                 "the most telling reason counts");
        dns_free(&dns);
        loop_turn(loop, 0);
        fake_close(&bad);
    }
    unsigned port = free_port();
    snprintf(servers, sizeof(servers), "127.0.0.9:%u", port);
    struct dns *dns = dns_of(servers);
    ask_passing(dns, dns_find_mx, "a.test", &a);
    snprintf(expected, sizeof(expected),
             "the name server 127.0.0.9:%u cannot be reached for the MX of a.test",
             port);
    is_string(a.reason, expected, "nothing listens there");
    dns_free(&dns);
    loop_turn(loop, 0);
    fake_close(&good);
}

/* More queries than places, and the first server is silent: each yields to another one,
 * and then asks the second. */
TEST(yield)
{
    enum { CROWD = 2 * DNS_OPEN_MAX };
    struct fake silent, good;
    static struct asked crowd[CROWD];
    char servers[100];
    int found = 0;
    fake_open(&silent, SILENT, free_port());
    fake_open(&good, 0, free_port());
    snprintf(servers, sizeof(servers), "127.0.0.1:%u 127.0.0.1:%u", silent.port,
             good.port);
    struct dns *dns = dns_of(servers);
    for (int i = 0; i < CROWD; i++)
        ask_start(dns, i % 2 ? dns_find_mx : dns_find_addresses, "a.test", &crowd[i]);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 20; i++) /* a server reads one in a turn */
            turns();
        clock_pass(2500);
    }
    for (int i = 0; i < CROWD; i++)
        found += crowd[i].answer.status == DNS_FOUND && crowd[i].times == 1;
    is_number(found, CROWD, "all are found within 10 s");
    dns_free(&dns);
    loop_turn(loop, 0);
    fake_close(&silent);
    fake_close(&good);
}

/* ---- resolv.conf ---- */

static void
write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    fputs(content, file);
    fclose(file);
}

static void
found_by(struct dns *dns, struct fake *f, const char *what)
{
    struct dns_answer a;
    f->asked = 0;
    pass(DNS_FOLLOW_MS);
    (void)ask_passing(dns, dns_find_mx, "a.test", &a);
    ok_named(f->asked == 1, what);
}

/* It cannot be used for a while: the servers stay. */
static void
lose(struct dns *dns, struct fake f[2], const char *path, const char *other,
     const char *two)
{
    char text[300];
    notes[0] = '\0';
    ok(unlink(other) == 0);
    found_by(dns, &f[1], "gone: what is known stays");
    ok_named(strncmp(notes, "! ", 2) == 0 && strstr(notes, "is missing") != NULL,
             "said");
    notes[0] = '\0';
    found_by(dns, &f[1], "still gone");
    is_string(notes, "", "said once");
    write_file(other, two);
    found_by(dns, &f[1], "back with the same server");
    ok_named(notes[0] != '\0' && notes[0] != '!', "which is said");
    ok_named(!dns_trouble(dns, text, sizeof(text)), "nothing is wrong any more");
    ok(unlink(path) == 0 && mkdir(path, 0700) == 0);
    found_by(dns, &f[1], "a directory");
    ok(dns_trouble(dns, text, sizeof(text)));
    ok_named(strstr(text, "cannot be read") != NULL, "cannot be read");
    ok(rmdir(path) == 0);
}

TEST(following)
{
    char directory[] = "/tmp/petrel-resolv.XXXXXX", path[64], other[64], one[64],
         two[64];
    char error[200], text[300];
    struct fake f[2];
    ok(mkdtemp(directory) != NULL);
    snprintf(path, sizeof(path), "%s/resolv.conf", directory);
    snprintf(other, sizeof(other), "%s/stub", directory);
    for (int i = 0; i < 2; i++)
        fake_open(&f[i], 0, free_port());
    snprintf(one, sizeof(one), "nameserver 127.0.0.1:%u\n", f[0].port);
    snprintf(two, sizeof(two), "nameserver 127.0.0.1:%u\n", f[1].port);
    notes[0] = '\0';
    struct dns *dns = dns_new_following(loop, path, error, sizeof(error));
    dns_listen(dns, note, NULL);
    snprintf(text, sizeof(text), "! %s is missing; asked is 127.0.0.1\n", path);
    is_string(notes, text, "missing at first");
    ok_named(dns_trouble(dns, text, sizeof(text)), "is shown");
    pass(DNS_FOLLOW_MS);
    dns_reload(dns);
    notes[0] = '\0';
    write_file(path, "# nothing yet\n");
    pass(DNS_FOLLOW_MS);
    ok_named(dns_trouble(dns, text, sizeof(text)), "empty");
    ok_named(strstr(text, "names no name server that can be used") != NULL,
             "other words");
    notes[0] = '\0';
    write_file(path, one);
    found_by(dns, &f[0], "written in place");
    snprintf(text, sizeof(text), "name servers are now those of %s: 127.0.0.1:%u\n",
             path, f[0].port);
    is_string(notes, text, "said");
    ok_named(!dns_trouble(dns, text, sizeof(text)), "nothing is wrong any more");
    write_file(other, two);
    ok(rename(other, path) == 0);
    found_by(dns, &f[1], "replaced by a rename");
    write_file(other, one);
    ok(unlink(path) == 0 && symlink("stub", path) == 0);
    found_by(dns, &f[0], "replaced by a link");
    write_file(other, two);
    found_by(dns, &f[1], "changed behind the link");
    lose(dns, f, path, other, two);
    /* Within the second nothing is read, but by a reload. */
    write_file(path, one);
    f[0].asked = f[1].asked = 0;
    struct dns_answer a;
    ask_passing(dns, dns_find_mx, "a.test", &a);
    is_number(f[1].asked, 1, "not more than once a second");
    dns_reload(dns);
    ask_passing(dns, dns_find_mx, "a.test", &a);
    is_number(f[0].asked, 1, "but by a reload immediately");
    dns_free(&dns);
    loop_turn(loop, 0);
    unlink(path);
    unlink(other);
    rmdir(directory);
    fake_close(&f[0]);
    fake_close(&f[1]);
}

/* The servers change while one of the old ones is silent: the new ones are asked then. */
TEST(change_meanwhile)
{
    char path[] = "/tmp/petrel-resolv.XXXXXX", line[64], error[200];
    struct fake f[2];
    struct asked a;
    close(mkstemp(path));
    fake_open(&f[0], SILENT, free_port());
    fake_open(&f[1], 0, free_port());
    snprintf(line, sizeof(line), "nameserver 127.0.0.1:%u\n", f[0].port);
    write_file(path, line);
    struct dns *dns = dns_new_following(loop, path, error, sizeof(error));
    notes[0] = '\0';
    dns_listen(dns, note, NULL);
    ask_start(dns, dns_find_mx, "a.test", &a);
    turns();
    snprintf(line, sizeof(line), "nameserver 127.0.0.1:%u\n", f[1].port);
    write_file(path, line);
    dns_reload(dns);
    for (int i = 0; i < 52 && a.times == 0; i++) {
        pass(100);
    }
    is_string(answer_text(&a.answer, dns_find_mx), "5 good.a.test",
              "by the new server");
    ok_named(strstr(notes, "does not answer") == NULL, "the old one is not blamed");
    dns_free(&dns);
    loop_turn(loop, 0);
    unlink(path);
    fake_close(&f[0]);
    fake_close(&f[1]);
}

int
main(void)
{
    loop = loop_new();
    clock_stop();
    tap_tests("");
    clock_go();
    loop_free(&loop);
    return done();
}
