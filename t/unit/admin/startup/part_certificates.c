/* New certificates are used when their files rest, and only if they are good: the steps in virtual time, with real files. */
#include "admin/startup/parts.h"

#include "base/memory.h"
#include "smtp/delivery/delivery_internal.h"
#include "smtp/trust/client_certificates.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/listener_world.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct server_rules plain = {.hostname = "mx.example.org", .size_limit = 10000000, .recipient_limit = 100, .hop_limit = 50, .error_limit = 20};
static char directory[] = "/tmp/petrel-keeper-XXXXXX";
static struct world w;
static struct daemon d;
static unsigned changes;
static char certificate[200], key[200];

static void __attribute__((format(printf, 1, 2)))
shell(const char *format, ...)
{
    char command[1000];
    va_list list;
    int used = snprintf(command, sizeof(command), "cd %s && ", directory);
    va_start(list, format);
    vsnprintf(command + used, sizeof(command) - (size_t)used, format, list);
    va_end(list);
    dialog_must(system(command) == 0, command);
}

/* As a tool writes it: beside, then in its place. */
static void
put(const char *from, const char *to)
{
    shell("cp %s new && mv new %s", from, to);
}

static void
put_pair(const char *name)
{
    char file[64];
    snprintf(file, sizeof(file), "%s.pem", name);
    put(file, "live.pem");
    snprintf(file, sizeof(file), "%s.key", name);
    put(file, "live.key");
}

static const char *
served(void)
{
    static struct tls_certificate c;
    return listener_tls(w.listener) != NULL && tls_server_certificate(listener_tls(w.listener), 0, &c) ? c.name : "(none)";
}

static const char *
trouble(void)
{
    const char *why = part_tls_trouble(&d);
    return why != NULL ? why : "";
}

static bool
logs(const char *text)
{
    for (int i = 0; i < 3; i++)
        loop_turn(w.loop, 0);
    return memmem(w.lines.at, w.lines.length, text, strlen(text)) != NULL;
}

static void
pass(int64_t ms)
{
    clock_pass(ms);
    clock_turn(w.loop);
    clock_turn(w.loop);
}

/* To the next look, which sees a change. */
static void
look(void)
{
    pass(PART_TLS_LOOK_MS);
}

static void
settle(void)
{
    pass(PART_TLS_SETTLED_MS);
}

/* A stand-in: the findings are asked for. */
void
findings_look(struct findings *findings)
{
    (void)findings;
    changes++;
}

static void
use(const char *certificates, const char *keys)
{
    w.settings.tls_certificate = text_from(certificates);
    w.settings.tls_key = text_from(keys);
    part_tls_note(&d, &w.settings);
    listener_reload(w.listener, w.routes, &w.settings);
    (void)part_tls_start(&d);
}

static void
begin(void)
{
    listener_world_start(&w, &plain, false, true);
    d = (struct daemon){.loop = w.loop, .log = w.log, .events = w.events, .listener = w.listener, .findings.findings = (struct findings *)&changes};
    changes = 0;
    put_pair("good");
    snprintf(certificate, sizeof(certificate), "%s/live.pem", directory);
    snprintf(key, sizeof(key), "%s/live.key", directory);
    clock_stop();
    use(certificate, key);
    is_string(served(), "mail.example.net", "in use");
}

static void
end(void)
{
    part_tls_stop(&d);
    clock_go();
    listener_world_end(&w);
}

TEST(renewal)
{
    begin();
    struct tls_server *first = listener_tls(w.listener);
    look();
    settle();
    ok_named(listener_tls(w.listener) == first, "nothing has changed: nothing is read");
    put_pair("exact");
    pass(PART_TLS_LOOK_MS - PART_TLS_SETTLED_MS - 1000);
    is_string(served(), "mail.example.net", "not looked at yet");
    pass(1000 + PART_TLS_SETTLED_MS);
    is_string(served(), "mail.example.net", "seen");
    settle();
    is_string(served(), "one.example.org", "and taken up when the files have rested");
    ok_named(logs("main: new certificate in use: one.example.org, valid until 2049-01-01 00:00:00Z\n"), "the log says so");
    is_number(changes, 0, "without trouble");
    put("exact.pem", "live.pem"); /* the same content in another file */
    look();
    settle();
    is_string(served(), "one.example.org", "the same again");
    end();
}

/* A tool that writes for a while, or the key before the certificate. */
TEST(half)
{
    begin();
    put("exact.key", "live.key");
    look();
    shell("head -c 300 exact.pem > live.pem");
    settle();
    is_string(trouble(), "", "the files do not rest yet");
    is_string(served(), "mail.example.net", "so the old one stays");
    shell("cat exact.pem > live.pem");
    settle();
    is_string(served(), "mail.example.net", "nor now");
    settle();
    is_string(served(), "one.example.org", "complete, and at rest");
    is_number(changes, 0, "nobody was told of trouble");

    shell("head -c 300 good.pem > live.pem");
    look();
    settle();
    ok_named(strstr(trouble(), "live.pem: ") != NULL, trouble());
    is_string(served(), "one.example.org", "half a file at rest is trouble");
    is_number(changes, 1, "of which is told");
    put("good.pem", "live.pem");
    look();
    settle();
    ok_named(strstr(trouble(), "live.key is not that of the certificate in ") != NULL, trouble());
    is_string(served(), "one.example.org", "a new certificate with the old key");
    is_number(changes, 2, "another trouble");
    pass(PART_TLS_LOOK_MS + PART_TLS_SETTLED_MS);
    is_number(changes, 2, "told once");
    put("good.key", "live.key");
    look();
    settle();
    is_string(served(), "mail.example.net", "both");
    is_string(trouble(), "", "the trouble is over");
    is_number(changes, 3, "which is told");
    end();
}

TEST(wrong)
{
    static const struct {
        const char *pair, *why;
    } cases[] = {
        {"expired", "live.pem: the certificate expired on 2021-02-03 04:05:06Z"                 },
        {"future",  "live.pem: the certificate is not valid before 2048-01-01 00:00:00Z"        },
        {"usage",   "the certificate in "                                                       },
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        put_pair(cases[i].pair);
        look();
        settle();
        ok_named(strstr(trouble(), cases[i].why) != NULL, trouble());
        is_string(served(), "mail.example.net", cases[i].pair);
    }
    shell("echo junk > live.pem");
    look();
    settle();
    ok_named(strstr(trouble(), "live.pem") != NULL, trouble());
    shell("rm live.pem");
    look();
    settle();
    ok_named(strstr(trouble(), "live.pem: No such file or directory") != NULL, trouble());
    is_string(served(), "mail.example.net", "a deleted file");
    put_pair("good");
    put("locked.key", "live.key");
    look();
    settle();
    ok_named(strstr(trouble(), "the key has a passphrase") != NULL, trouble());
    put_pair("good");
    look();
    settle();
    is_string(trouble(), "", "as it was");
    end();
}

/* A change of rights or of the clock makes files good without another change. */
TEST(later)
{
    begin();
    put_pair("future");
    look();
    settle();
    ok_named(strstr(trouble(), "not valid before") != NULL, trouble());
    is_number(changes, 1, "trouble");
    int64_t ahead_ms = (INT64_C(2461449600) + 3600) * 1000 - loop_now_ms(w.loop); /* 2048-01-01 01:00 */
    clock_step(ahead_ms);
    look();
    settle();
    is_string(trouble(), "", "its time has come");
    is_number(changes, 2, "the trouble is over");
    struct tls_certificate c;
    ok(tls_server_certificate(listener_tls(w.listener), 0, &c));
    is_number(c.from_ms, INT64_C(2461449600000), "it is in use");
    clock_step(-ahead_ms);
    end();
    if (geteuid() == 0)
        return; /* may read everything */
    begin();
    put_pair("exact");
    shell("chmod 0 live.key");
    look();
    settle();
    ok_named(strstr(trouble(), "live.key: Permission denied") != NULL, trouble());
    shell("chmod 600 live.key");
    look();
    settle();
    is_string(served(), "one.example.org", "readable");
    end();
}

/* As Kubernetes does: live.pem -> ..data/live.pem, ..data -> a directory, which is swapped. */
TEST(links)
{
    listener_world_start(&w, &plain, false, true);
    d = (struct daemon){.loop = w.loop, .log = w.log, .events = w.events, .listener = w.listener};
    shell("mkdir -p secret/..1 secret/..2 && cp good.pem secret/..1/tls.crt && cp good.key secret/..1/tls.key && cp exact.pem secret/..2/tls.crt && cp exact.key secret/..2/tls.key");
    shell("ln -s ..1 secret/..data && ln -s ..data/tls.crt secret/tls.crt && ln -s ..data/tls.key secret/tls.key");
    snprintf(certificate, sizeof(certificate), "%s/secret/tls.crt", directory);
    snprintf(key, sizeof(key), "%s/secret/tls.key", directory);
    clock_stop();
    use(certificate, key);
    is_string(served(), "mail.example.net", "by two links");
    shell("cd secret && ln -s ..2 ..new && mv -T ..new ..data && rm -r ..1");
    look();
    settle();
    is_string(served(), "one.example.org", "the link leads elsewhere");
    end();
}

/* Several pairs, one is renewed; a reload; no certificates. */
TEST(several)
{
    char both[450], keys[450];
    begin();
    put("rsa.pem", "second.pem");
    put("rsa.key", "second.key");
    snprintf(both, sizeof(both), "%s, %s/second.pem", certificate, directory);
    snprintf(keys, sizeof(keys), "%s, %s/second.key", key, directory);
    use(both, keys);
    is_string(served(), "mail.example.net", "two pairs");
    put("exact.pem", "second.pem");
    put("exact.key", "second.key");
    look();
    settle();
    struct tls_certificate c;
    ok(tls_server_certificate(listener_tls(w.listener), 1, &c));
    is_string(c.name, "one.example.org", "the second is new");
    ok_named(logs("in use: one.example.org"), "and told");
    ok_named(!logs("in use: mail.example.net"), "the first is not");
    ok_named(strstr(part_tls_file(&d, 1), "/second.pem") != NULL, "its file");
    is_string(part_tls_file(&d, 2), "", "there is no third");
    put("expired.pem", "second.pem");
    put("expired.key", "second.key");
    put_pair("wild");
    look();
    settle();
    is_string(served(), "mail.example.net", "one bad pair: none is taken");
    ok_named(trouble()[0] != '\0', trouble());
    use(certificate, key);
    is_string(served(), "*.example.org", "a reload reads them again");
    is_string(trouble(), "", "and the trouble is over");
    use("", "");
    is_string(served(), "(none)", "no certificates");
    look();
    settle();
    is_string(served(), "(none)", "nothing to look at");
    end();
}

/* The certificate presented by that number; "": none. */
static const char *
presented(size_t index)
{
    static struct tls_certificate c;
    return tls_client_certificate(*delivery_tls(d.delivery), index, &c) ? c.name : "";
}

/* Two pairs for next hops, each for itself. */
TEST(next_hops)
{
    char routes[2000], error[TLS_ERROR_MAX];
    struct buffer errors;
    static struct delivery delivery;
    struct configuration fresh = {0};
    begin();
    put_pair("usage"); /* for clients alone */
    put("exact.pem", "second.pem");
    put("exact.key", "second.key");
    snprintf(routes, sizeof(routes), "a.test smtp://127.0.0.1?cert=%s&key=%s\nb.test mx?cert=%s/second.pem&key=%s/second.key\nc.test smtp://127.0.0.2?cert=%s&key=%s",
             certificate, key, directory, directory, certificate, key);
    buffer_init(&errors, 4096);
    fresh.routes = route_new(&(struct route_settings){.routes = text_from(routes), .smtp_port = 25}, &errors);
    ok_named(fresh.routes != NULL, "routes");
    struct tls *tls = tls_new(error, sizeof(error));
    delivery.tls = tls_client_new(tls, NULL, error, sizeof(error));
    d.delivery = &delivery;
    ok_named(client_certificates_read(fresh.routes, delivery.tls, error, sizeof(error)), "both are read");
    part_hop_tls_reload(&d, &fresh);
    ok_named(d.client_tls != NULL && d.client_tls->pairs.count == 2, "two different pairs");
    is_string(presented(2), "", "no third");
    bool second = strcmp(presented(1), "one.example.org") == 0;
    is_string(presented(second), "one.example.org", "one");
    is_string(presented(!second), "mail.example.net", "and the other");
    put_pair("wild");
    put("good.pem", "second.pem"); /* with another key */
    look();
    is_string(presented(!second), "mail.example.net", "seen");
    settle();
    is_string(presented(!second), "*.example.org", "a new one");
    is_string(presented(second), "one.example.org", "while the other one stays");
    ok_named(strstr(trouble(), "second.key is not that of the certificate in ") != NULL, trouble());
    ok_named(logs("main: new client certificate in use: *.example.org, valid until 2049-01-01 00:00:00Z\n"), "the log says so");
    put("expired.pem", "second.pem");
    put("expired.key", "second.key");
    look();
    settle();
    ok_named(strstr(trouble(), "second.pem: the certificate expired on") != NULL, trouble());
    put("exact.pem", "second.pem");
    put("exact.key", "second.key");
    look();
    settle();
    is_string(trouble(), "", "repaired");
    snprintf(routes, sizeof(routes), "a.test mx");
    route_free(&fresh.routes);
    fresh.routes = route_new(&(struct route_settings){.routes = text_from(routes), .smtp_port = 25}, &errors);
    part_hop_tls_reload(&d, &fresh);
    ok_named(d.client_tls == NULL, "no route has one: no timer, no memory");
    route_free(&fresh.routes);
    tls_client_free(&delivery.tls);
    tls_free(&tls);
    buffer_free(&errors);
    end();
}

int
main(void)
{
    char command[300];
    dialog_must(mkdtemp(directory) != NULL, "no directory");
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s", directory);
    dialog_must(system(command) == 0, "no certificates");
    tap_tests("");
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0 || done();
}
