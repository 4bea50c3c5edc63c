/* Proves look-ups against a real name server: NSD with t/e2e/zones/example.test.zone.
 */
#include "base/dns/dns.h"

#include "t/support/dns_ask.h"
#include "t/support/port.h"
#include "t/support/folder.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NSD "/usr/sbin/nsd"

struct server {
    char directory[32];
    unsigned port;
    pid_t pid;
};

static struct sockaddr_in
loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool
is_listening(unsigned port)
{
    struct sockaddr_in a = loopback(port);
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    bool good = connect(tcp, (struct sockaddr *)&a, sizeof(a)) == 0;
    close(tcp);
    return good;
}

/* The zone file of servfail.test does not exist: NSD answers SERVFAIL for it. */
static bool
write_config(const struct server *s, const char *path)
{
    char zone[PATH_MAX], reverse[PATH_MAX];
    FILE *config = fopen(path, "w");
    if (config == NULL || realpath("t/e2e/zones/example.test.zone", zone) == NULL ||
        realpath("t/e2e/zones/2.0.192.in-addr.arpa.zone", reverse) == NULL)
        return false;
    fprintf(config,
            "server:\n ip-address: 127.0.0.1@%u\n server-count: 1\n username: \"\"\n"
            " chroot: \"\"\n zonesdir: \"%s\"\n pidfile: \"%s/nsd.pid\"\n"
            " database: \"\"\n xfrdfile: \"%s/xfrd.state\"\n xfrdir: \"%s\"\n"
            " zonelistfile: \"%s/zone.list\"\n logfile: \"%s/nsd.log\"\n"
            " rrl-ratelimit: 0\n"
            "remote-control:\n control-enable: no\n"
            "zone:\n name: \"example.test\"\n zonefile: \"%s\"\n"
            "zone:\n name: \"2.0.192.in-addr.arpa\"\n zonefile: \"%s\"\n"
            "zone:\n name: \"servfail.test\"\n zonefile: \"%s/missing.zone\"\n",
            s->port, s->directory, s->directory, s->directory, s->directory,
            s->directory, s->directory, zone, reverse, s->directory);
    return fclose(config) == 0;
}

static void
server_stop(struct server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGTERM);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

static bool
server_start_once(struct server *s)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/nsd.conf", s->directory);
    if (s->port == 0 || !write_config(s, path))
        return false;
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        execl(NSD, NSD, "-d", "-c", path, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 3000; i++) {
        if (is_listening(s->port))
            return true;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        usleep(20000);
    }
    server_stop(s);
    return false;
}

static bool
server_start(struct server *s)
{
    strcpy(s->directory, "/tmp/petrel-dns.XXXXXX");
    if (mkdtemp(s->directory) == NULL)
        return false;
    for (int i = 0; i < 5; i++) { /* somebody may have taken the port meanwhile */
        s->port = free_port();
        if (server_start_once(s))
            return true;
    }
    return false;
}

static int
remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static struct dns *
dns_at(struct loop *loop, unsigned port)
{
    char servers[32], error[200] = "";
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", port);
    struct dns *dns = dns_new(loop, text_from(servers), error, sizeof(error));
    ok_named(dns != NULL && error[0] == '\0', "a resolver");
    return dns;
}

static void
test_mx(struct loop *loop, struct dns *dns)
{
    static const struct {
        const char *name, *answer;
    } rows[] = {
        {"example.test",           "10 mx1.example.test"                },
        {"EXAMPLE.Test.",          "10 mx1.example.test"                },
        {"equal.example.test",
         "10 mx1.example.test, 10 mx2.example.test, 10 mx3.example.test"},
        {"different.example.test",
         "30 mx3.example.test, 10 mx1.example.test, 20 mx2.example.test"},
        {"upper.example.test",     "10 mx1.example.test"                },
        {"tolocal.example.test",   "10 localhost"                       },
        {"null.example.test",      "0 "                                 },
        {"nullmore.example.test",  "0 , 10 mx1.example.test"            },
        {"aliasmx.example.test",
         "30 mx3.example.test, 10 mx1.example.test, 20 mx2.example.test"},
        {"alias.example.test",     "no data"                            },
        {"outside.example.test",   "try again"                          },
        {"loop1.example.test",     "no data"                            },
        {"dangling.example.test",  "no name"                            },
        {"four.example.test",      "no data"                            },
        {"text.example.test",      "no data"                            },
        {"nosuch.example.test",    "no name"                            },
        {"servfail.test",          "try again"                          },
        {"mail.servfail.test",     "try again"                          },
        {"refused.invalid",        "try again"                          },
        {"127.0.0.1",              "try again"                          },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_answer a = ask(loop, dns, dns_find_mx, rows[i].name);
        is_string(answer_text(&a, dns_find_mx), rows[i].answer, rows[i].name);
        ok_named(reason_fits(&a), "  with a reason if not found");
    }
    struct dns_answer a = ask(loop, dns, dns_find_mx, "example.test");
    is_number(a.ttl_s, 300, "the TTL");
    a = ask(loop, dns, dns_find_mx, "big.example.test");
    is_number(a.count, DNS_MX_MAX, "a set of 60, by TCP, bounded");
    is_number(a.mx[0].preference, DNS_MX_MAX, "without its least preferred");
    is_string(a.mx[DNS_MX_MAX - 1].host, "host01.big.example.test", "with its best");
}

static void
test_addresses(struct loop *loop, struct dns *dns)
{
    static const struct {
        const char *name, *answer;
    } rows[] = {
        {"four.example.test",                                                      "127.0.0.14"     },
        {"six.example.test",                                                       "::1"            },
        {"both.example.test",                                                      "::1, 127.0.0.15"},
        {"BOTH.example.test.",                                                     "::1, 127.0.0.15"},
        {"alias.example.test",                                                     "127.0.0.14"     },
        {"chain.example.test",                                                     "127.0.0.14"     },
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb."
         "ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc."
         "dddddddddddddddddddddddddddddddddddddddddddddddd.example.test", "127.0.0.17"     },
        {"text.example.test",                                                      "no data"        },
        {"null.example.test",                                                      "no data"        },
        {"outside.example.test",                                                   "try again"      },
        {"loop1.example.test",                                                     "no data"        },
        {"dangling.example.test",                                                  "no name"        },
        {"nosuch.example.test",                                                    "no name"        },
        {"servfail.test",                                                          "try again"      },
        {"refused.invalid",                                                        "try again"      },
        {"192.0.2.7",                                                              "192.0.2.7"      },
        {"2001:DB8::7",                                                            "2001:db8::7"    },
        {"deep.localhost",                                                         "::1, 127.0.0.1" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_answer a = ask(loop, dns, dns_find_addresses, rows[i].name);
        is_string(answer_text(&a, dns_find_addresses), rows[i].answer, rows[i].name);
        ok_named(reason_fits(&a), "  with a reason if not found");
    }
    struct dns_answer a = ask(loop, dns, dns_find_addresses, "short.example.test");
    is_number(a.ttl_s, 60, "the TTL");
    is_number(a.addresses[0].port, 0, "no port");
    a = ask(loop, dns, dns_find_addresses, "crowd.example.test");
    is_number(a.count, DNS_ADDRESS_MAX, "60 addresses, bounded");
}

/* many.example.test has two IPv6 and four IPv4 addresses. */
static void
test_order(struct loop *loop, struct dns *dns)
{
    static const enum net_family families[6] = {NET_IPV6, NET_IPV4, NET_IPV6,
                                                NET_IPV4, NET_IPV4, NET_IPV4};
    unsigned first_six = 0, first_four = 0;
    int wrong = 0;
    for (int round = 0; round < 100; round++) {
        struct dns_answer a = ask(loop, dns, dns_find_addresses, "many.example.test");
        unsigned seen = 0;
        if (a.count != 6) {
            wrong++;
            continue;
        }
        for (size_t i = 0; i < 6; i++) {
            wrong += a.addresses[i].family != families[i];
            seen |= a.addresses[i].family == NET_IPV6 ? 1U << a.addresses[i].ip[15]
                                                      : 16U << a.addresses[i].ip[3];
        }
        wrong += seen != (2 | 4 | 32 | 64 | 128 | 256);
        first_six |= 1U << a.addresses[0].ip[15];
        first_four |= 1U << a.addresses[1].ip[3];
    }
    is_number(wrong, 0, "families take turns, IPv6 first, nothing is lost");
    is_number(first_six, 2 | 4, "each IPv6 address is first at times");
    is_number(first_four, 2 | 4 | 8 | 16, "each IPv4 address too");
}

static void
test_texts(struct loop *loop, struct dns *dns, struct server *server)
{
    struct dns_answer a = ask(loop, dns, dns_find_texts, "_mta-sts.example.test");
    is_number(a.count, 1, "TXT");
    ok_named(!a.secure, "an authoritative server validates nothing");
    a = ask(loop, dns, dns_find_texts, "s1._domainkey.example.test");
    is_number(a.count, 1, "a long one");
    is_number(a.texts[0].length, 410, "joined"); /* its octets are gone by now */
    a = ask(loop, dns, dns_find_texts, "many._domainkey.example.test");
    is_number(a.count, 2, "two");
    a = ask(loop, dns, dns_find_texts, "alias.example.test");
    is_number(a.status, DNS_NO_DATA, "none");
    is_string(a.reason, "alias.example.test is an alias of four.example.test, which has no TXT record",
              "  with its reason");
    ok_named(a.is_alias, "  an alias");
    a = ask(loop, dns, dns_find_texts, "dangling.example.test");
    is_number(a.status, DNS_NO_NAME, "an alias of nothing");
    is_string(a.reason, "dangling.example.test is an alias of nosuch.example.test, which does not exist (NXDOMAIN)",
              "  says of what");
    a = ask(loop, dns, dns_find_texts, "mx1.example.test");
    is_string(a.reason, "mx1.example.test has no TXT record", "no alias");
    ok(!a.is_alias);
    a = ask(loop, dns, dns_find_texts, "nosuch.example.test");
    is_number(a.status, DNS_NO_NAME, "no such name");
    a = ask(loop, dns, dns_find_texts, "mail.servfail.test");
    is_number(a.status, DNS_TRY_AGAIN, "unknown");
    server_stop(server);
    a = ask(loop, dns, dns_find_texts, "_MTA-STS.Example.test.");
    is_number(a.count, 1, "kept, it needs no server");
    a = ask(loop, dns, dns_find_texts, "nosuch.example.test");
    is_number(a.status, DNS_NO_NAME, "nor does what is not there");
    ok_named(server_start_once(server), "the server is back");
    a = ask(loop, dns, dns_find_texts, "mail.servfail.test");
    is_number(a.status, DNS_TRY_AGAIN, "a failure is not kept");
}

static void
hear_text(void *context, const struct dns_answer *answer)
{
    struct text t = answer->count > 0 ? answer->texts[0] : TEXT("");
    text_copy(context, 600, t);
}

static struct dns_query *
find_hosts_of(struct dns *dns, const char *ip, dns_answered *heard, void *context)
{
    struct net_address address;
    ok(net_address_parse_ip(text_from(ip), &address));
    return dns_find_hosts(dns, &address, heard, context);
}

static void
test_more_types(struct loop *loop, struct dns *dns)
{
    char got[600] = "";
    for (int kept = 0; kept < 2; kept++) {
        dns_find_texts(dns, "s1._domainkey.example.test", hear_text, got);
        for (int i = 0; i < 600 && got[0] == '\0'; i++)
            loop_turn(loop, 100);
        is_number(strlen(got), 410, kept ? "the same, kept" : "strings joined");
        is_string(got + 400, "0123456789", "  to their end");
        ok(strncmp(got, "v=DKIM1; p=", 11) == 0);
        got[0] = '\0';
    }
    dns_set_trust(dns, DNS_TRUST_YES);
    struct dns_answer a = ask(loop, dns, dns_find_tlsa, "_25._tcp.mx1.example.test");
    is_number(a.count, 2, "TLSA");
    ok(a.tlsa[0].usage + a.tlsa[1].usage == 5 && !a.secure);
    is_number(a.tlsa[0].data.length + a.tlsa[1].data.length, 96, "with their data");
    a = ask(loop, dns, dns_find_tlsa, "_25._tcp.mx2.example.test");
    is_number(a.status, DNS_NO_NAME, "none");
    dns_set_trust(dns, DNS_TRUST_AUTO);
    a = ask(loop, dns, find_hosts_of, "192.0.2.1");
    is_number(a.count, 2, "PTR");
    is_number(strlen(a.hosts[0]) + strlen(a.hosts[1]), 2 * strlen("mx1.example.test"),
              "host names");
    a = ask(loop, dns, find_hosts_of, "192.0.2.2");
    is_number(a.status, DNS_NO_NAME, "no name");
    a = ask(loop, dns, find_hosts_of, "2001:db8::1");
    is_number(a.status, DNS_TRY_AGAIN, "another zone");
}

/* The first line of /etc/hosts that is good for a test. */
static void
test_hosts_file(struct loop *loop, struct dns *dns)
{
    char line[512], ip[NET_ADDRESS_TEXT_MAX], name[256];
    struct dns_answer a = ask(loop, dns, dns_find_addresses, "localhost");
    ok_named(a.status == DNS_FOUND && net_address_is_loopback(&a.addresses[0]),
             "localhost is here");
    a = ask(loop, dns, dns_find_addresses, "LOCALHOST.");
    ok_named(a.status == DNS_FOUND && net_address_is_loopback(&a.addresses[0]),
             "in any spelling");
    FILE *hosts = fopen("/etc/hosts", "r");
    while (hosts != NULL && fgets(line, sizeof(line), hosts) != NULL)
        if (sscanf(line, "%100[0-9.] %255[a-z0-9]", ip, name) == 2 &&
            strcmp(name, "localhost") != 0) {
            a = ask(loop, dns, dns_find_addresses, name);
            ok_named(strstr(answer_text(&a, dns_find_addresses), ip) != NULL,
                     "a name of /etc/hosts");
            a = ask(loop, dns, dns_find_mx, name);
            is_string(answer_text(&a, dns_find_mx), "try again",
                      "which says nothing about mail exchangers");
            break;
        }
    if (hosts != NULL)
        fclose(hosts);
}

static void
test_bad_names(struct loop *loop, struct dns *dns)
{
    char long_name[300];
    const char *const bad[] = {"",    ".",      "a..test",       ".test",    "a b.test",
                               "a\n", "a\x01b", "\xc3\xbc.test", "a\\.test", long_name};
    memset(long_name, 'a', sizeof(long_name));
    for (size_t i = 49; i < sizeof(long_name); i += 50)
        long_name[i] = '.';
    long_name[254] = '\0';
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct dns_answer mx = ask(loop, dns, dns_find_mx, bad[i]);
        struct dns_answer ip = ask(loop, dns, dns_find_addresses, bad[i]);
        ok_named(mx.status == DNS_NO_NAME && ip.status == DNS_NO_NAME, "a bad name");
        ok_named(reason_fits(&mx) && reason_fits(&ip), "  with a printable reason");
    }
}

static void
cancel_other(void *context, const struct dns_answer *answer)
{
    struct asked *others = context; /* [0] is this one */
    asked_answered(&others[0], answer);
    for (int i = 1; i < 4; i++)
        dns_cancel(&others[i].query);
}

static void
cancel_self(void *context, const struct dns_answer *answer)
{
    struct asked *a = context;
    a->answer = *answer;
    a->times++;
    dns_cancel(&a->query);
}

static void
test_cancel(struct loop *loop, struct dns *dns)
{
    struct asked a[4];
    ask_start(dns, dns_find_mx, "example.test", &a[0]);
    ask_start(dns, dns_find_addresses, "both.example.test", &a[1]);
    ask_start(dns, dns_find_addresses, "127.0.0.1", &a[2]);
    ask_start(dns, dns_find_mx, "equal.example.test", &a[3]);
    for (int i = 0; i < 3; i++)
        dns_cancel(&a[i].query);
    ok(a[0].query == NULL);
    dns_cancel(&a[0].query);
    ask_wait(loop, &a[3].times, 1);
    loop_turn(loop, 50);
    ok_named(a[0].times + a[1].times + a[2].times == 0, "cancelled ones are silent");
    is_number(a[3].times, 1, "others are not touched");

    memset(a, 0, sizeof(a));
    a[0].query = dns_find_addresses(dns, "127.0.0.1", cancel_other, a);
    a[1].query = dns_find_addresses(dns, "127.0.0.2", cancel_other, a);
    a[2].query = dns_find_mx(dns, "example.test", cancel_other, a);
    a[3].query = dns_find_addresses(dns, "many.example.test", cancel_other, a);
    ask_wait(loop, &a[0].times, 1);
    for (int i = 0; i < 5; i++)
        loop_turn(loop, 20);
    is_number(a[0].times, 1, "an answer cancels the others");

    memset(a, 0, sizeof(a));
    a[0].query = dns_find_mx(dns, "example.test", cancel_self, &a[0]);
    ask_wait(loop, &a[0].times, 1);
    loop_turn(loop, 20);
    is_number(a[0].times, 1, "cancelling oneself in the callback is harmless");
}

struct crowd {
    struct loop *loop;
    struct dns *dns;
    int answered, good, twice;
    struct crowd_member {
        struct crowd *crowd;
        int number, times;
        bool again;
    } members[500];
};

static const char *
crowd_name(const struct crowd_member *m)
{
    static const char *const names[] = {"different.example.test", "both.example.test",
                                        "nosuch.example.test", "equal.example.test"};
    return m->number % 20 == 3 ? "big.example.test" : names[m->number % 4];
}

static void
crowd_answered(void *context, const struct dns_answer *answer)
{
    struct crowd_member *m = context;
    const size_t counts[] = {3, 2, 0, 3};
    size_t wanted = m->number % 20 == 3 ? DNS_MX_MAX : counts[m->number % 4];
    m->crowd->twice += m->times++ > (m->again ? 1 : 0);
    if (m->number % 20 == 1 && !m->again) {
        m->again = true; /* a question from within an answer */
        dns_find_addresses(m->crowd->dns, crowd_name(m), crowd_answered, m);
        return;
    }
    m->crowd->good += answer->count == wanted;
    m->crowd->answered++;
}

static void
test_crowd(struct loop *loop, struct dns *dns)
{
    struct crowd *c = calloc(1, sizeof(*c));
    int before = folder_descriptors();
    c->loop = loop;
    c->dns = dns;
    dns_set_patience(dns, ASK_LIMIT_MS, 1); /* a packet that is lost stays so */
    for (int i = 0; i < 500; i++) {
        struct crowd_member *m = &c->members[i];
        *m = (struct crowd_member){.crowd = c, .number = i};
        dns_find *find = i % 4 == 1 ? dns_find_addresses : dns_find_mx;
        find(dns, crowd_name(m), crowd_answered, m);
    }
    ask_wait(loop, &c->answered, 500);
    is_number(c->answered, 500, "500 at once are answered");
    is_number(c->good, 500, "each with its own answer");
    is_number(c->twice, 0, "none twice");
    loop_turn(loop, 0);
    is_number(folder_descriptors(), before, "idle holds no socket");
    free(c);
}

static void
free_within(void *context, const struct dns_answer *answer)
{
    struct dns **dns = context;
    (void)answer;
    dns_free(dns);
}

static void
test_free(struct loop *loop, unsigned port)
{
    struct asked a[300];
    struct dns *dns = dns_at(loop, port);
    int told = 0;
    for (int i = 0; i < 300; i++)
        ask_start(dns, i % 2 == 0 ? dns_find_mx : dns_find_addresses,
                  i % 3 == 0 ? "localhost" : "example.test", &a[i]);
    loop_turn(loop, 20);
    for (int i = 0; i < 300; i++)
        told += a[i].times;
    ok_named(told < 300, "some are out");
    dns_free(&dns);
    ok(dns == NULL);
    for (int i = 0; i < 5; i++)
        loop_turn(loop, 20);
    for (int i = 0; i < 300; i++)
        told -= a[i].times;
    is_number(told, 0, "no answer comes after the end");
    dns_free(&dns);

    dns = dns_at(loop, port);
    ask_start(dns, dns_find_mx, "example.test", &a[0]);
    ask_start(dns, dns_find_addresses, "127.0.0.1", &a[1]);
    dns_find_addresses(dns, "127.0.0.1", free_within, &dns);
    dns_find_addresses(dns, "127.0.0.1", free_within, &dns);
    for (int i = 0; i < 5; i++)
        loop_turn(loop, 20);
    ok_named(dns == NULL, "the end may come within an answer");
    is_number(a[0].times, 0, "what was out stays out");

    dns = dns_at(loop, port);
    ask_start(dns, dns_find_mx, "example.test", &a[0]);
    dns_cancel(&a[0].query);
    dns_set_patience(dns, 1000, 2);
    struct dns_answer after = ask(loop, dns, dns_find_mx, "example.test");
    is_number(after.count, 1, "patience may change when all is cancelled");
    dns_free(&dns);
}

static void
test_servers(struct loop *loop, unsigned port)
{
    static const char *const bad[] = {
        "nonsense",
        "1.2.3.4:port",
        "1.2.3.4:0",
        "1.2.3.4:65536",
        "unix:/dev/null",
        "[::1",
        "::1::2",
        "127.0.0.1 ns.example.test",
        "1.2.3.4 5.6.7.8:",
        "1.2.3.4,;",
        ("1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4 1.1.1.5 1.1.1.6 1.1.1.7 1.1.1.8 1.1.1.9 "
         "1.1.1.10 1.1.1.11 1.1.1.12 1.1.1.13 1.1.1.14 1.1.1.15 1.1.1.16 1.1.1.17"),
    };
    static const char *const good[] = {
        "",    " ,\n",     "127.0.0.1",
        "::1", "[::1]:53", "10.0.0.1:5353, [2001:db8::1]:54\n ::1\t1.2.3.4"};
    char error[200], servers[100];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error[0] = '\0';
        struct dns *dns = dns_new(loop, text_from(bad[i]), error, sizeof(error));
        ok_named(dns == NULL && error[0] != '\0' && strchr(error, '\n') == NULL,
                 bad[i]);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct dns *dns = dns_new(loop, text_from(good[i]), error, sizeof(error));
        ok_named(dns != NULL,
                 i < 2 ? "the system's servers" : "servers of all spellings");
        dns_free(&dns);
    }
    snprintf(servers, sizeof(servers), "127.0.0.1:%u 127.0.0.1:%u", free_port(), port);
    struct dns *dns = dns_new(loop, text_from(servers), error, sizeof(error));
    struct dns_answer a = ask(loop, dns, dns_find_mx, "example.test");
    is_number(a.count, 1, "the next server answers for one that is down");
    dns_free(&dns);
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", free_port());
    dns = dns_new(loop, text_from(servers), error, sizeof(error));
    dns_set_patience(dns, 100, 2);
    a = ask(loop, dns, dns_find_addresses, "example.test");
    is_string(answer_text(&a, dns_find_addresses), "try again", "none is there");
    ok(reason_fits(&a));
    dns_free(&dns);
}

/* Dies and comes back: nothing has to be restarted. */
static void
test_return(struct loop *loop, struct server *s)
{
    struct dns *dns = dns_at(loop, s->port);
    dns_set_patience(dns, 100, 2);
    server_stop(s);
    struct dns_answer a = ask(loop, dns, dns_find_mx, "example.test");
    is_string(answer_text(&a, dns_find_mx), "try again", "the server is gone");
    if (ok_named(server_start_once(s), "and is back")) {
        dns_set_patience(dns, 5000, 3);
        a = ask(loop, dns, dns_find_mx, "example.test");
        is_number(a.count, 1, "found again");
    }
    dns_free(&dns);
}

int
main(void)
{
    struct server s = {.pid = 0};
    struct loop *loop;
    struct dns *dns;
    if (access(NSD, X_OK) != 0) {
        printf("1..0 # SKIP nsd is not installed\n");
        return 0;
    }
    if (ok_named(server_start(&s), "nsd runs")) {
        loop = loop_new();
        dns = dns_at(loop, s.port);
        ok(strlen(dns_version()) > 0);
        test_mx(loop, dns);
        test_addresses(loop, dns);
        test_order(loop, dns);
        test_hosts_file(loop, dns);
        test_texts(loop, dns, &s);
        test_more_types(loop, dns);
        test_bad_names(loop, dns);
        test_cancel(loop, dns);
        test_crowd(loop, dns);
        test_free(loop, s.port);
        test_servers(loop, s.port);
        test_return(loop, &s);
        dns_free(&dns);
        loop_free(&loop);
    }
    server_stop(&s);
    nftw(s.directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return done();
}
