/* Proves that a name server that lies, breaks or is silent costs little and proves
 * nothing.
 */
/* link: t/sim/clock.c */
#include "base/dns/dns.h"

#include "t/sim/clock.h"
#include "t/support/dns_ask.h"
#include "t/support/port.h"

#include <ctype.h>
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_MX = 15, TYPE_AAAA = 28, WIRE_MAX = 4096, AUTHENTIC = 0x20 };

/* ---- the server: a process of its own ---- */

struct wire {
    char at[WIRE_MAX];
    size_t length;
};

static void
add(struct wire *w, const void *bytes, size_t size)
{
    memcpy(w->at + w->length, bytes, size);
    w->length += size;
}

static void
add_record(struct wire *w, unsigned type, const void *data, size_t size)
{
    char head[12] = {'\xc0', 12, 0, (char)type, 0, 1, 0, 0, 0, 60, 0, (char)size};
    add(w, head, sizeof(head));
    add(w, data, size);
}
#define RECORD(w, type, octets) add_record(w, type, octets, sizeof(octets) - 1)

struct hostile {
    const char *name;    /* first label of the question */
    const char *records; /* as octets, behind the question */
    size_t size;
    unsigned count; /* promised in the header */
    int code;
};

#define HEAD "\xc0\x0c\0\x0f\0\1\0\0\0\x3c"
#define ROW(name, count, octets)                                                       \
    {                                                                                  \
        name, octets, sizeof(octets) - 1, count, 0                                     \
    }
static const struct hostile hostiles[] = {
    ROW("good", 1, HEAD "\0\x09\0\5\4good\xc0\x0c"),
    ROW("mx0", 1, HEAD "\0\0"),
    ROW("mx1", 1, HEAD "\0\1\0"),
    ROW("mx2", 1, HEAD "\0\2\0\5"),
    ROW("past", 1, HEAD "\0\x40\0\5\4good\xc0\x0c"),
    ROW("self", 1, HEAD "\0\4\0\5\xc0\x2a"),
    ROW("forward", 1, HEAD "\0\4\0\5\xc0\xff"),
    ROW("counts", 65535, ""),
    ROW("fewer", 3, HEAD "\0\x09\0\5\4good\xc0\x0c"),
    ROW("control", 1, HEAD "\0\x09\0\5\4g\r\nd\xc0\x0c"),
    ROW("space", 1, HEAD "\0\x09\0\5\4g  d\xc0\x0c"),
    ROW("nul", 1, HEAD "\0\x09\0\5\4g\0\0d\xc0\x0c"),
    ROW("high", 1, HEAD "\0\x09\0\5\4g\xc3\xbc\x64\xc0\x0c"),
    ROW("dotted", 1, HEAD "\0\x09\0\5\4g.od\xc0\x0c"),
    ROW("mixed", 3,
        HEAD "\0\x09\0\5\4g\r\nd\xc0\x0c" HEAD "\0\x09\0\5\4good\xc0\x0c" HEAD
             "\0\x09\0\5\4g\xc3\xbc\x64\xc0\x0c"),
    ROW("a3", 1, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\3\1\2\3"),
    ROW("chaos", 1, "\xc0\x0c\0\x0f\0\3\0\0\0\x3c\0\x09\0\5\4good\xc0\x0c"),
    ROW("nothing", 0, ""),
    {"formerr",  "", 0, 0, 1 },
    {"servfail", "", 0, 0, 2 },
    {"nxdomain", "", 0, 0, 3 },
    {"notimp",   "", 0, 0, 4 },
    {"refused",  "", 0, 0, 5 },
    {"reserved", "", 0, 0, 11},
};

static const struct hostile *
hostile_find(const char *name)
{
    for (size_t i = 0; i < sizeof(hostiles) / sizeof(hostiles[0]); i++)
        if (strcmp(hostiles[i].name, name) == 0)
            return &hostiles[i];
    return NULL;
}

/* Header and question of the answer to a question, all counts but that of answers. */
static void
begin(struct wire *w, const char *question, size_t size, unsigned count, int code)
{
    w->length = 0;
    add(w, question, size);
    w->at[2] = (char)0x81;
    w->at[3] = (char)(0x80 | code);
    w->at[6] = (char)(count >> 8);
    w->at[7] = (char)count;
    memset(w->at + 8, 0, 4);
    w->at[3] = (char)(w->at[3] | (question[3] & AUTHENTIC)); /* as far as asked for */
}

static uint32_t
chance(void)
{
    static uint32_t state = 7;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/* "aliasN" is the alias of "aliasN-1", and nothing more is said of it; "alias0" has an MX
 * that is validated, an alias is not; with "proofN" it is. "round1" and "round2" are each
 * other's. */
static bool
add_alias(struct wire *w, const char *name)
{
    static const char mx[] = "\0\5\4good\xc0\x0c";
    char target[] = "\6alias?\xc0\x13";
    bool is_round = strncmp(name, "round", 5) == 0, proof = strncmp(name, "proof", 5) == 0;
    if (!is_round && !proof && strncmp(name, "alias", 5) != 0)
        return false;
    memcpy(target + 1, name, 6);
    target[6] = (char)(is_round ? '1' + '2' - name[5] : name[5] - 1);
    if (name[5] == '0') {
        add_record(w, TYPE_MX, mx, sizeof(mx) - 1);
        return true;
    }
    add_record(w, TYPE_CNAME, target, sizeof(target) - 1);
    w->at[w->length - sizeof(target) + 1 - 3] = '\x07'; /* a TTL of 7 s */
    if (!proof)
        w->at[3] = (char)(w->at[3] & ~AUTHENTIC);
    return true;
}

static void
begin_special(struct wire *w, const char *name, const char *question, size_t size)
{
    begin(w, question, size, 1, 0);
    if (add_alias(w, name)) {
    } else if (strcmp(name, "garbage") == 0) {
        w->length = 40;
        for (size_t i = 2; i < w->length; i++)
            w->at[i] = (char)chance();
    } else if (strcmp(name, "short") == 0) {
        w->length = 5;
    } else if (strcmp(name, "empty") == 0) {
        w->length = 0;
    } else if (strcmp(name, "header") == 0) {
        w->length = 12;
    } else if (strcmp(name, "wrongid") == 0) {
        w->at[0] ^= 1;
        RECORD(w, TYPE_MX, "\0\1\0");
    } else if (strcmp(name, "other") == 0) {
        w->at[13] ^= 1; /* another question */
        RECORD(w, TYPE_MX, "\0\1\0");
    } else if (strcmp(name, "truncated") == 0) {
        w->at[2] = (char)0x83; /* and nobody listens for TCP */
        w->at[7] = 0;
    } else if (strcmp(name, "oversize") == 0) { /* more than we asked for */
        begin(w, question, size, 200, 0);
        for (int i = 0; i < 200; i++)
            add_record(w, TYPE_MX, "\0\1", 3);
    } else if (strcmp(name, "half") == 0) {
        RECORD(w, TYPE_A, "\x7f\0\0\1");
    } else if (strcmp(name, "huge") == 0) {
        begin(w, question, size, 70, 0);
        for (int i = 0; i < 70; i++)
            add_record(w, TYPE_A, "\1\2\3\4", 4);
    } else if (strncmp(name, "fuzz", 4) == 0) {
        begin(w, question, size, 3, 0);
        RECORD(w, TYPE_MX, "\0\1\4good\xc0\x0c");
        RECORD(w, TYPE_A, "\x7f\0\0\1");
        RECORD(w, TYPE_AAAA, "0123456789abcdef");
        for (uint32_t i = chance() % 4 + 1; i > 0; i--)
            w->at[2 + chance() % (w->length - 2)] = (char)chance();
        if (chance() % 4 == 0)
            w->length = chance() % w->length;
    }
}

/* The length of the question in a query, 0 when it has none; its first label. */
static size_t
question_size(const char *query, size_t length, char name[64], unsigned *type)
{
    size_t at = 12, label;
    if (length < 12 || length <= 12 + (size_t)(unsigned char)query[12])
        return 0;
    snprintf(name, 64, "%.*s", (int)(unsigned char)query[12], query + 13);
    /* Newer versions of c-ares ask in mixed case. */
    for (char *each = name; *each; each++)
        *each = (char)tolower((unsigned char)*each);
    while (at < length && (label = (unsigned char)query[at]) != 0)
        at += label + 1;
    if (at + 5 > length)
        return 0;
    *type = (unsigned)(unsigned char)query[at + 2];
    return at + 5;
}

/* The reply to a question, or false: none. */
static bool
reply_to(const char *query, size_t length, struct wire *w, char name[64])
{
    unsigned type;
    size_t question = question_size(query, length, name, &type);
    if (question == 0 || strcmp(name, "silence") == 0 ||
        (strcmp(name, "half") == 0 && type != TYPE_A))
        return false;
    const struct hostile *h = hostile_find(name);
    if (h != NULL) {
        begin(w, query, question, h->count, h->code);
        add(w, h->records, h->size);
    } else {
        begin_special(w, name, query, question);
    }
    return true;
}

/* Those that are answered late, so that questions overlap. */
enum { LATE_MAX = 64, LATE_MS = 200 };
struct late {
    int64_t due_ms;
    struct sockaddr_in to;
    struct wire w;
} late[LATE_MAX];
static size_t late_count;

/* By UDP: "port..." hears from which port it asked, as its preference; "slow..." and
 * "port..." after LATE_MS; "tcp-..." to come again by TCP. */
static void
serve_udp(int udp)
{
    char query[WIRE_MAX], name[64];
    struct sockaddr_in from;
    struct wire w;
    socklen_t size = sizeof(from);
    ssize_t length =
        recvfrom(udp, query, sizeof(query), 0, (struct sockaddr *)&from, &size);
    if (length < 0)
        _exit(1);
    if (!reply_to(query, (size_t)length, &w, name))
        return;
    if (strncmp(name, "tcp-", 4) == 0) {
        w.at[2] = (char)0x83;
        w.at[7] = 0;
    }
    if (strncmp(name, "port", 4) == 0 || strncmp(name, "slow", 4) == 0) {
        char mx[] = "\0\0\4good\xc0\x0c";
        memcpy(mx, &from.sin_port, 2);
        RECORD(&w, TYPE_MX, mx);
        if (late_count < LATE_MAX) /* or else it is lost */
            late[late_count++] = (struct late){
                .due_ms = ask_clock_ms() + LATE_MS, .to = from, .w = w};
        return;
    }
    sendto(udp, w.at, w.length, 0, (struct sockaddr *)&from, size);
}

static void
serve_late(int udp)
{
    while (late_count > 0 && late[0].due_ms <= ask_clock_ms()) {
        sendto(udp, late[0].w.at, late[0].w.length, 0, (struct sockaddr *)&late[0].to,
               sizeof(late[0].to));
        memmove(late, late + 1, --late_count * sizeof(late[0]));
    }
}

/* "tcp-dead" ends at once, "tcp-reset" by RST, "tcp-half" after half of the answer,
 * "tcp-silent" never. */
static void
serve_tcp(int tcp)
{
    char query[WIRE_MAX], name[64];
    struct wire w;
    int peer = accept(tcp, NULL, NULL);
    ssize_t length = recv(peer, query, sizeof(query), 0);
    if (length > 2 && reply_to(query + 2, (size_t)length - 2, &w, name)) {
        char head[2] = {(char)(w.length >> 8), 0};
        struct linger reset = {.l_onoff = 1};
        RECORD(&w, TYPE_MX, "\0\x09\4good\xc0\x0c");
        head[1] = (char)w.length;
        if (strcmp(name, "tcp-silent") == 0)
            return; /* open till the end */
        if (strcmp(name, "tcp-reset") == 0)
            setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        if (strcmp(name, "tcp-half") == 0 || strcmp(name, "tcp-good") == 0) {
            send(peer, head, 2, MSG_NOSIGNAL | MSG_MORE);
            send(peer, w.at, w.length / (name[4] == 'h' ? 2 : 1), MSG_NOSIGNAL);
        }
    }
    close(peer);
}

static void
serve(int udp, int tcp)
{
    struct pollfd ready[2] = {
        {.fd = udp, .events = POLLIN},
        {.fd = tcp, .events = POLLIN}
    };
    for (;;) {
        if (poll(ready, 2, late_count > 0 ? 10 : -1) < 0)
            _exit(1);
        if (ready[0].revents != 0)
            serve_udp(udp);
        if (ready[1].revents != 0)
            serve_tcp(tcp);
        serve_late(udp);
    }
}

/* With TCP, or refusing that. */
static pid_t
server_start(unsigned *port, bool by_tcp)
{
    *port = free_port();
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)*port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = -1;
    /* The clock stands: a question that is lost for want of space is not asked again. */
    int space = 1 << 20;
    setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &space, sizeof(space));
    if (bind(udp, (struct sockaddr *)&a, sizeof(a)) != 0)
        return -1;
    if (by_tcp) {
        tcp = socket(AF_INET, SOCK_STREAM, 0);
        int one = 1; /* this number may have been another's a moment ago */
        setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(tcp, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(tcp, 64) != 0)
            return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        serve(udp, tcp);
    }
    close(udp);
    if (by_tcp)
        close(tcp);
    return pid;
}

/* ---- the tests: the clock stands, so that no answer is late but those that a test
 * lets be ---- */

/* All answers to earlier questions are in, since the server answers in order. Where it
 * has been asked too much at once, one more question is lost. */
static void
answers_are_in(struct loop *loop, struct dns *dns)
{
    struct asked a = {0};
    for (int tries = 0; tries < 120 && a.times == 0; tries++) {
        int64_t end_ms = ask_clock_ms() + 500;
        ask_start(dns, dns_find_mx, "good", &a);
        while (a.times == 0 && ask_clock_ms() < end_ms)
            loop_turn(loop, 100);
        dns_cancel(&a.query);
    }
    is_number(a.answer.count, 1, "a good answer is in");
}

/* Time passes until it is answered, at most 100 tries; what that took. */
static int64_t
pass_until(struct loop *loop, const struct asked *a, int64_t step_ms)
{
    int64_t passed_ms = 0;
    for (int i = 0; i < 1000 && a->times == 0; i++, passed_ms += step_ms) {
        clock_pass(step_ms);
        loop_turn(loop, 0);
    }
    is_number(a->times, 1, "an answer came");
    return passed_ms;
}

/* Answered at once, or not at all. */
static struct dns_answer
ask_for_long(struct loop *loop, struct dns *dns, dns_find *find, const char *name)
{
    struct asked a;
    ask_start(dns, find, name, &a);
    answers_are_in(loop, dns);
    pass_until(loop, &a, 20);
    return a.answer;
}

static void
test_mx(struct loop *loop, struct dns *dns)
{
    static const struct {
        const char *name, *answer;
    } rows[] = {
        {"good",      "5 good.good" },
        {"mx0",       "try again"   },
        {"mx1",       "try again"   },
        {"mx2",       "try again"   },
        {"past",      "try again"   },
        {"self",      "try again"   },
        {"forward",   "try again"   },
        {"counts",    "try again"   },
        {"fewer",     "try again"   },
        {"control",   "try again"   },
        {"space",     "try again"   },
        {"nul",       "try again"   },
        {"high",      "try again"   },
        {"dotted",    "try again"   },
        {"mixed",     "5 good.mixed"},
        {"chaos",     "no data"     },
        {"nothing",   "no data"     },
        {"formerr",   "try again"   },
        {"nxdomain",  "no name"     },
        {"servfail",  "try again"   },
        {"notimp",    "try again"   },
        {"refused",   "try again"   },
        {"reserved",  "try again"   },
        {"garbage",   "try again"   },
        {"short",     "try again"   },
        {"empty",     "try again"   },
        {"header",    "try again"   },
        {"wrongid",   "try again"   },
        {"other",     "try again"   },
        {"truncated", "try again"   },
        {"silence",   "try again"   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_answer a = ask_for_long(loop, dns, dns_find_mx, rows[i].name);
        is_string(answer_text(&a, dns_find_mx), rows[i].answer, rows[i].name);
        ok_named(reason_fits(&a), "  with a reason if not found");
    }
}

/* A name server that follows no alias. */
static void
test_aliases(struct loop *loop, struct dns *dns)
{
    static const char lost[] =
        " is an alias that leads nowhere: a loop, or more than 8 aliases";
    struct dns_answer a = ask(loop, dns, dns_find_mx, "alias1");
    is_string(answer_text(&a, dns_find_mx), "5 good.alias0", "an alias is followed");
    is_number(a.ttl_s, 7, "for as long as it lives");
    ok_named(!a.secure, "an end is not secure that is reached by no proof");
    a = ask(loop, dns, dns_find_mx, "proof2");
    ok_named(a.secure, "but by proofs");
    a = ask(loop, dns, dns_find_mx, "alias8");
    is_string(answer_text(&a, dns_find_mx), "5 good.alias0", "eight are");
    a = ask(loop, dns, dns_find_mx, "alias9");
    is_string(answer_text(&a, dns_find_mx), "no data", "nine are not");
    ok_named(text_ends_nocase(text_from(a.reason), text_from(lost)) && a.is_alias,
             a.reason);
    a = ask(loop, dns, dns_find_mx, "round1");
    is_string(answer_text(&a, dns_find_mx), "no data", "nor is a loop");
    is_text(text_after(text_from(a.reason), 6), text_from(lost), "which is said");
    a = ask(loop, dns, dns_find_texts, "alias2");
    is_string(a.reason, "alias2 is an alias of alias0, which has no TXT record",
              "the end is named");
    a = ask(loop, dns, dns_find_alias, "alias2");
    is_string(a.hosts[0], "alias1", "who asks for an alias gets that");
}

static void
test_addresses(struct loop *loop, struct dns *dns)
{
    struct dns_answer a = ask_for_long(loop, dns, dns_find_addresses, "a3");
    is_string(answer_text(&a, dns_find_addresses), "try again", "an A of 3 octets");
    a = ask_for_long(loop, dns, dns_find_addresses, "half");
    is_string(answer_text(&a, dns_find_addresses), "127.0.0.1",
              "one family is silent: the other will do");
    a = ask_for_long(loop, dns, dns_find_addresses, "silence");
    is_string(answer_text(&a, dns_find_addresses), "try again", "both are silent");
    ok(reason_fits(&a));
    a = ask_for_long(loop, dns, dns_find_addresses, "huge");
    is_number(a.count, DNS_ADDRESS_MAX, "70 addresses are too many");
    a = ask_for_long(loop, dns, dns_find_addresses, "nxdomain");
    is_string(answer_text(&a, dns_find_addresses), "no name", "neither family exists");
}

/* Patience ends a query even while c-ares goes on. */
static void
test_patience(struct loop *loop, struct dns *dns)
{
    struct asked silent[100], other;
    int told = 0;
    dns_set_patience(dns, 50, 20);
    for (int i = 0; i < 100; i++)
        ask_start(dns, dns_find_addresses, "silence", &silent[i]);
    int64_t passed_ms = pass_until(loop, &silent[99], 5);
    for (int i = 0; i < 100; i++)
        told += silent[i].times;
    is_number(told, 100, "each is told, those in the queue too");
    if (!ok_named(passed_ms >= 300 && passed_ms <= 310, "after 6 tries' time"))
        printf("# %d ms\n", (int)passed_ms);
    is_number(silent[99].answer.status, DNS_TRY_AGAIN, "that nothing is known");
    ask_start(dns, dns_find_addresses, "127.0.0.1", &other);
    ask_wait(loop, &other.times, 1);
    is_number(other.answer.count, 1, "what needs no server is answered meanwhile");
}

static void
test_free(struct loop *loop, unsigned port)
{
    struct asked silent[200];
    char servers[32], error[100];
    int told = 0;
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", port);
    struct dns *dns = dns_new(loop, text_from(servers), error, sizeof(error));
    for (int i = 0; i < 200; i++)
        ask_start(dns, dns_find_addresses, "silence", &silent[i]);
    loop_turn(loop, 10);
    for (int i = 0; i < 200; i += 3)
        dns_cancel(&silent[i].query); /* with the server as well as in the queue */
    loop_turn(loop, 10);
    dns_free(&dns);
    loop_turn(loop, 10);
    for (int i = 0; i < 200; i++)
        told += silent[i].times;
    is_number(told, 0, "the end with 200 questions out");
}

/* Its answers depend on chance: only their sanity is known. */
static void
test_fuzz(struct loop *loop, struct dns *dns)
{
    struct asked a[50];
    int sane = 0, found = 0, rounds = 40;
    dns_set_patience(dns, 20, 1);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 50; i++)
            ask_start(dns, i % 2 == 0 ? dns_find_mx : dns_find_addresses, "fuzz",
                      &a[i]);
        answers_are_in(loop, dns);
        for (int i = 0; i < 50; i++) {
            pass_until(loop, &a[i], 5);
            bool hosts_fit = true;
            for (size_t j = 0; i % 2 == 0 && j < a[i].answer.count; j++)
                hosts_fit =
                    hosts_fit && !text_has_control(text_from(a[i].answer.mx[j].host));
            sane += a[i].times == 1 && hosts_fit && reason_fits(&a[i].answer);
            found += a[i].answer.status == DNS_FOUND;
        }
    }
    is_number(sane, 50 * rounds, "mutilated answers are found or not, never nonsense");
    ok_named(found > 0 && found < 50 * rounds, "some of each");
    printf("# %d of %d found\n", found, 50 * rounds);
}

static struct dns *
dns_at(struct loop *loop, unsigned port)
{
    char servers[32], error[100];
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", port);
    return dns_new(loop, text_from(servers), error, sizeof(error));
}

/* Each overlaps with all the others. */
static void
test_ports(struct loop *loop, struct dns *dns)
{
    enum { COUNT = 32 };
    struct asked a[COUNT];
    char name[16];
    int equal = 0;
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "port%d", i);
        ask_start(dns, dns_find_mx, name, &a[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        ask_wait(loop, &a[i].times, 1);
        equal += a[i].answer.count != 1;
        for (int j = 0; j < i; j++)
            equal += a[i].answer.mx[0].preference == a[j].answer.mx[0].preference;
    }
    is_number(equal, 0, "of questions that overlap each has a port of its own");
}

/* Nothing that happens to one by TCP is felt by another. */
static void
test_tcp(struct loop *loop, struct dns *dns)
{
    static const char *const bad[] = {"tcp-dead", "tcp-reset", "tcp-half",
                                      "tcp-silent"};
    struct asked slow[4], good[4], failed[4];
    dns_set_patience(dns, 6000, 1);
    for (int i = 0; i < 4; i++)
        ask_start(dns, dns_find_mx, "slow", &slow[i]);
    for (int i = 0; i < 4; i++) {
        ask_start(dns, dns_find_mx, bad[i], &failed[i]);
        ask_start(dns, dns_find_mx, "tcp-good", &good[i]);
    }
    for (int i = 0; i < 4; i++) {
        ask_wait(loop, &slow[i].times, 1);
        ask_wait(loop, &good[i].times, 1);
        is_number(slow[i].answer.count, 1, "a slow one is found meanwhile");
        is_string(answer_text(&good[i].answer, dns_find_mx), "9 good.tcp-good",
                  "and so is one by TCP");
    }
    is_number(failed[3].times, 0, "without waiting for what is silent");
    for (int i = 0; i < 4; i++) {
        pass_until(loop, &failed[i], 100);
        is_string(answer_text(&failed[i].answer, dns_find_mx), "try again", bad[i]);
    }
}

/* A query that nobody waits for any more gives its place to the next one
 * immediately. */
static void
test_places(struct loop *loop, struct dns *dns)
{
    struct asked silent[DNS_OPEN_MAX], next;
    dns_set_patience(dns, 30000, 1);
    for (int i = 0; i < DNS_OPEN_MAX; i++)
        ask_start(dns, dns_find_mx, "silence", &silent[i]);
    ask_start(dns, dns_find_mx, "good", &next);
    for (int i = 0; i < 5; i++)
        loop_turn(loop, 20);
    is_number(next.times, 0, "one more than may be out waits");
    ok(dns_is_in_line(next.query) && !dns_is_in_line(silent[0].query));
    dns_cancel(&silent[7].query);
    ask_wait(loop, &next.times, 1);
    is_number(next.answer.count, 1, "until another one is cancelled");
    ok_named(!next.answer.unasked, "and has been asked");
    for (int i = 0; i < DNS_OPEN_MAX; i++)
        dns_cancel(&silent[i].query);
}

/* Any number of names with silent servers keeps nobody from asking. */
static void
test_turns(struct loop *loop, struct dns *dns)
{
    enum { CROWD = 3 * DNS_OPEN_MAX, TRY_MS = 1000, TURN_MS = TRY_MS / 2 };
    /* The last in the line, and one that comes then, when all places are taken. */
    static const int turns[2] = {CROWD / DNS_OPEN_MAX, 1};
    struct asked half, silent[CROWD], good[2];
    int told = 0;
    dns_set_patience(dns, TRY_MS, 1);
    answers_are_in(loop, dns); /* and the server has nothing more to do */
    ask_start(dns, dns_find_addresses, "half", &half);
    answers_are_in(loop, dns);
    for (int i = 0; i < CROWD; i++)
        ask_start(dns, dns_find_mx, "silence", &silent[i]);
    for (int i = 0; i < 2; i++) {
        ask_start(dns, dns_find_mx, "good", &good[i]);
        for (int turn = 0; turn < turns[i]; turn++) {
            clock_pass(TURN_MS);
            loop_turn(loop, 0);
        }
        ask_wait(loop, &good[i].times, 1);
        is_number(good[i].answer.count, 1, "who waits for them is asked");
    }
    for (int i = 0; i < CROWD; i++)
        told += silent[i].times;
    is_number(told, 0, "those that are silent gave way before they are given up");
    pass_until(loop, &half, TURN_MS);
    is_string(answer_text(&half.answer, dns_find_addresses), "127.0.0.1",
              "what is known of one that gave way is told");
    for (int i = 0; i < CROWD; i++) {
        pass_until(loop, &silent[i], TURN_MS);
        is_number(silent[i].answer.status, DNS_TRY_AGAIN, "told at last");
    }
}

/* The server says AD when the question asked for it. */
static void
test_secure(struct loop *loop, struct dns *dns)
{
    static const struct {
        const char *name;
        bool secure;
    } rows[] = {
        {"good", true},      {"nothing", true},  {"nxdomain", true}, {"mixed", true},
        {"servfail", false}, {"refused", false}, {"mx0", false},     {"short", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dns_set_trust(dns, DNS_TRUST_AUTO);
        struct dns_answer a = ask_for_long(loop, dns, dns_find_mx, rows[i].name);
        ok_named(a.secure == rows[i].secure, rows[i].name);
        dns_set_trust(dns, DNS_TRUST_NO);
        a = ask_for_long(loop, dns, dns_find_mx, rows[i].name);
        ok_named(!a.secure, "  whom nobody trusts cannot make it secure");
    }
    struct dns_answer a = ask_for_long(loop, dns, dns_find_tlsa, "good");
    is_string(a.reason, "no TLSA record is asked for: the name servers are not trusted",
              "nor are they asked for TLSA");
    is_number(a.status, DNS_NO_DATA, "  there is none then");
    dns_set_trust(dns, DNS_TRUST_YES);
    a = ask_for_long(loop, dns, dns_find_tlsa, "good");
    is_string(a.reason, "good has no TLSA record", "trusted, they are");
    ok(a.secure && dns_is_trusted(dns));
    a = ask_for_long(loop, dns, dns_find_addresses, "huge");
    ok_named(a.secure, "addresses");
    a = ask_for_long(loop, dns, dns_find_addresses, "localhost");
    ok_named(!a.secure, "but not those of this host");
    a = ask_for_long(loop, dns, dns_find_addresses, "192.0.2.1");
    ok_named(!a.secure, "nor a literal");
    a = ask_for_long(loop, dns, dns_find_texts, "good");
    ok_named(a.status == DNS_NO_DATA && a.secure, "that there is no TXT");
    dns_set_trust(dns, DNS_TRUST_NO);
    a = ask_for_long(loop, dns, dns_find_texts, "good");
    ok_named(a.status == DNS_NO_DATA && !a.secure,
             "is not secure by what was known when it was trusted");
    dns_set_trust(dns, DNS_TRUST_AUTO);
    a = ask_for_long(loop, dns, dns_find_texts, "good");
    ok_named(a.secure, "and is again when it is trusted again");
}

int
main(void)
{
    unsigned port = 0, port_tcp = 0;
    pid_t server = server_start(&port, false), other = server_start(&port_tcp, true);
    clock_stop();
    struct loop *loop = loop_new();
    if (!ok(server > 0 && other > 0))
        return done();
    struct dns *dns = dns_at(loop, port), *dns_tcp = dns_at(loop, port_tcp);
    dns_set_patience(dns, 100, 2);
    test_addresses(loop, dns);
    test_aliases(loop, dns);
    test_mx(loop, dns);
    test_secure(loop, dns);
    test_fuzz(loop, dns);
    test_patience(loop, dns);
    test_turns(loop, dns);
    test_free(loop, port);
    test_ports(loop, dns_tcp);
    test_tcp(loop, dns_tcp);
    test_places(loop, dns_tcp);
    dns_free(&dns);
    dns_free(&dns_tcp);
    loop_free(&loop);
    kill(server, SIGTERM);
    kill(other, SIGTERM);
    waitpid(server, NULL, 0);
    waitpid(other, NULL, 0);
    return done();
}
