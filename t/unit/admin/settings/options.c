/* Options: defaults, where the file is looked for, what the machine fills in, and each
 * rule that a value must keep. */
#include "admin/settings/options.h"

#include "base/disk/disk.h"
#include "t/support/printed.h"
#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static void
must(bool it)
{
    if (!it)
        abort();
}

static char folder[] = "/tmp/petrel-options-XXXXXX";

static void
write_file(const char *name, const char *content)
{
    FILE *file = fopen(name, "w");
    if (file == NULL || fputs(content, file) < 0 || fclose(file) != 0)
        abort();
}

struct fixture {
    struct options options;
    struct settings *settings;
};

static void
begin(struct fixture *f, const char *file, char *const *overrides,
      char *const *environment)
{
    struct options_sources sources = {
        .file = file, .overrides = overrides, .environment = environment};
    f->settings = options_read(&sources, &f->options);
}

static void
end(struct fixture *f)
{
    settings_free(&f->settings);
}

/* One argument: exactly this mistake, or none. */
static void
mistake(const char *argument, const char *want)
{
    char copy[1000], line[1400] = "";
    snprintf(copy, sizeof(copy), "%s", argument);
    char *const overrides[] = {copy, NULL};
    FIXTURE(fixture, f, begin, end, NULL, overrides, NULL);
    if (want[0])
        snprintf(line, sizeof(line), "command line: %s\n", want);
    is_text(settings_errors(f.settings), text_from(line), argument);
}

#define NO_NAME                                                                        \
    "command line: hostname: '[127.0.0.1]' is not a name: set defrag_host, by which "  \
    "the "                                                                             \
    "other hosts know this one\n"

/* Two that make a mistake together, or none. */
static void
two(const char *one, const char *other, const char *want)
{
    char copies[2][200];
    snprintf(copies[0], sizeof(copies[0]), "%s", one);
    snprintf(copies[1], sizeof(copies[1]), "%s", other);
    char *const overrides[] = {copies[0], copies[1], NULL};
    FIXTURE(fixture, f, begin, end, NULL, overrides, NULL);
    is_text(settings_errors(f.settings), text_from(want), other);
}

/* One mistake hides no other, and brings no second one about the same key. */
TEST(all_told)
{
    char routes[] = "routs=* mx", longest[] = "maximal_backoff_time=x",
         style[] = "log_style=loud", host[] = "hostname_file=/nowhere/at/all";
    char *const overrides[] = {routes, longest, style, host, NULL};
    FIXTURE(fixture, f, begin, end, NULL, overrides, NULL);
    struct text told = settings_errors(f.settings), line;
    int lines = 0;
    while (text_cut(&told, '\n', &line))
        lines += line.length > 0;
    told = settings_errors(f.settings);
    is_number(lines, 4, "four mistakes");
    static const char *const keys[] = {"line: routs: ", "line: maximal_backoff_time: ",
                                       "line: log_style: ", "line: hostname_file: "};
    for (size_t i = 0; i < 4; i++)
        ok_named(memmem(told.at, told.length, keys[i], strlen(keys[i])) != NULL,
                 keys[i]);
}

TEST(stop)
{
    char hands_over[] = "stop=hand_over", keeps[] = "stop=keep";
    char *const rows[][2] = {{hands_over, NULL}, {keeps, NULL}, {NULL}};
    for (size_t i = 0; i < 3; i++) {
        FIXTURE(fixture, f, begin, end, NULL, rows[i], NULL);
        is_number(f.options.hands_over, i == 0, rows[i][0] ? rows[i][0] : "unset");
        is_number(f.options.hand_over_timeout_ms, 100000, "hand_over_timeout");
    }
    mistake("stop=never", "stop: 'never': say keep or hand_over");
}

TEST(defaults)
{
    FIXTURE(fixture, f, begin, end, NULL, NULL, NULL);
    const struct options *o = &f.options;
    is_text(settings_errors(f.settings), TEXT(""), "the defaults are no mistakes");
    is_text(o->server.listen, TEXT("127.0.0.1:2525"), "listen");
    is_text(o->server.relay_from, TEXT("127.0.0.0/8, ::1"), "relay_from");
    is_string(o->routes, "* mx", "routes");
    ok(o->relay == NULL && o->local == NULL && o->user == NULL);
    ok(o->dns_servers == NULL && o->delivery.smtp_bind.length == 0 && !o->server.allow_open_relay);
    is_number(o->message_size_limit, 50 << 20, "50M");
    is_number(o->server.recipient_limit, 1000, "recipient_limit");
    is_number(o->server.clients.sessions, 1000, "server_session_limit");
    is_number(o->server.clients.sessions_per_client, 50, "client_session_limit");
    is_number(o->server.hop_limit, 50, "hopcount_limit");
    is_number(o->server.error_limit, 20, "smtpd_hard_error_limit");
    is_number(o->server.idle_timeout_ms, 300000, "smtpd_timeout");
    is_number(o->server.handshake_timeout_ms, 20000, "smtpd_starttls_timeout");
    is_number(o->drain_timeout_ms, 20000, "drain_timeout");
    is_number(o->delivery.smtp_port, 25, "smtp_port");
    is_number(o->manager.sched.active_limit, 20000, "active_limit");
    is_number(o->manager.sched.recipient_limit, 40000, "active_recipient_limit");
    is_number(o->manager.bounce_size_limit, 50 << 10, "bounce_size_limit");
    ok(o->log_style == LOG_STYLE_PETREL);
    ok(o->sandbox == SANDBOX_YES);
    ok(o->log_level == LOG_LEVEL_INFO);
    ok_named(o->hostname && o->hostname[0], "the machine has a name");
    is_string(o->local_domains, o->hostname, "mail for it is ours");
    char control[1000];
    snprintf(control, sizeof(control), "%s/control", o->spool);
    is_string(o->control, control, "control lies in the spool");
}

/* Our defaults are those of the scheduler, so that neither says them alone. */
TEST(transport)
{
    struct fixture f;
    struct transport_params ours, presets;
    begin(&f, NULL, NULL, NULL);
    memset(&presets, 0, sizeof(presets));
    transport_params_default(&presets);
    ours = f.options.transport;
    is_number(ours.initial_concurrency, presets.initial_concurrency, "initial");
    is_number(ours.concurrency_limit, presets.concurrency_limit, "concurrency");
    is_number(ours.recipient_limit, presets.recipient_limit, "recipients");
    is_number(ours.failed_cohort_limit, presets.failed_cohort_limit, "cohorts");
    is_number(ours.rate_delay_ms, presets.rate_delay_ms, "rate delay");
    is_number(ours.slot_cost, presets.slot_cost, "slot cost");
    is_number(ours.slot_loan, presets.slot_loan, "slot loan");
    is_number(ours.slot_discount, presets.slot_discount, "slot discount");
    is_number(ours.minimum_slots, presets.minimum_slots, "minimum slots");
    is_number(ours.minimal_backoff_ms, presets.minimal_backoff_ms, "minimal backoff");
    is_number(ours.maximal_backoff_ms, presets.maximal_backoff_ms, "maximal backoff");
    is_number(ours.lifetime_ms, presets.lifetime_ms, "lifetime");
    is_number(ours.bounce_lifetime_ms, presets.bounce_lifetime_ms, "bounce lifetime");
    ok(ours.positive.kind == presets.positive.kind && ours.positive.denominator == 1);
    ok(ours.negative.kind == presets.negative.kind && ours.negative.numerator == 1);
    end(&f);

    char positive[] = "default_destination_concurrency_positive_feedback=1/concurrency";
    char limit[] = "default_destination_concurrency_limit=7";
    char lifetime[] = "maximal_queue_lifetime=0";
    char cost[] = "default_delivery_slot_cost=0";
    char *const overrides[] = {positive, limit, lifetime, cost, NULL};
    begin(&f, NULL, overrides, NULL);
    ours = f.options.transport;
    ok(ours.positive.kind == FEEDBACK_CONCURRENCY);
    is_number(ours.concurrency_limit, 7, "a limit of ours");
    is_number(ours.lifetime_ms, 0, "at once");
    is_number(ours.slot_cost, 0, "nobody passes");
    end(&f);
}

TEST(names)
{
    char hostname[] = "hostname=a.test", spool[] = "spool=/x/y";
    char *const overrides[] = {hostname, spool, NULL};
    struct fixture f;
    begin(&f, NULL, overrides, NULL);
    is_string(f.options.local_domains, "a.test", "follows hostname");
    is_string(f.options.control, "/x/y/control", "follows spool");
    end(&f);

    char domains[] = "local_domains=", control[] = "control=/run/c";
    char *const more[] = {hostname, spool, domains, control, NULL};
    begin(&f, NULL, more, NULL);
    is_text(settings_errors(f.settings), TEXT(""), "no local domains is a choice");
    ok(f.options.local_domains == NULL);
    is_string(f.options.control, "/run/c", "as told");
    end(&f);
}

TEST(mistakes)
{
    mistake("hostname=a b", "hostname: 'a b' is not a host name");
    mistake("hostname=", "hostname: '' is not a host name");
    mistake("hostname=-a.test", "hostname: '-a.test' is not a host name");
    mistake("hostname=b\xc3\xbc.test", "hostname: 'b\xc3\xbc.test' is not a host name");
    mistake("hostname=a_b.test", "hostname: 'a_b.test' is not a host name");
    mistake("hostname=[127.0.0.1]", "");
    mistake("spool=", "spool: must be a directory");
    char path[200];
    snprintf(path, sizeof(path), "control=/%0150d", 0);
    mistake(path, "control: is longer than 103 bytes");
    mistake("control=", "control: must be a path");
    mistake("log_style=xml", "log_style: 'xml': say petrel, postfix or json");
    mistake("log_style=qmail", "log_style: 'qmail': say petrel, postfix or json");
    mistake("log_style=", "log_style: '': say petrel, postfix or json");
    mistake("log_style=Json", "log_style: 'Json': say petrel, postfix or json");
    mistake("defrag_key=recipient",
            "defrag_key: 'recipient': say sender, strict or id");
    mistake("defrag_key=strict", "");
    mistake("partial_policy=no", "partial_policy: 'no': say pass or reject");
    mistake("partial_policy=reject", "");
    mistake("defrag_registry_password=secret",
            "defrag_registry_password: only redis:// and rediss:// of defrag_registry "
            "have one");
    mistake("defrag_registry_password=", "");
    two("defrag_registry_password=secret", "defrag_registry=redis://10.0.0.1", "");
    two("hostname=[127.0.0.1]", "defrag_host=a", "");
    two("hostname=[127.0.0.1]", "defrag_registry=dir:/shared", NO_NAME);
    two("hostname=[127.0.0.1]", "defrag_peers=b=10.0.0.2", NO_NAME);
    mistake("sandbox=perhaps", "sandbox: 'perhaps': say yes, no or require");
    mistake("log_level=all", "log_level: 'all': say error, warning, info or debug");
    mistake("log_level=", "log_level: '': say error, warning, info or debug");
    mistake("default_destination_concurrency_positive_feedback=2",
            "default_destination_concurrency_positive_feedback: '2' is not 1, a/b, "
            "a/concurrency or a/sqrt_concurrency");
    mistake("default_destination_concurrency_negative_feedback=",
            "default_destination_concurrency_negative_feedback: '' is not 1, a/b, "
            "a/concurrency or a/sqrt_concurrency");
    mistake("minimal_backoff_time=5000s",
            "minimal_backoff_time: is longer than maximal_backoff_time");
    mistake(
        "default_destination_rate=fast",
        "default_destination_rate: 'fast' is not N/s, N/m, N/h or N/d, optionally with "
        ",burst=B, or none");
    mistake("default_destination_rate=10/m,burst=5", "");
    mistake("slices=3", "slices: 3 is not a power of two (1, 2, 4, ...)");
    mistake("slice=1", "slice: 1: with slices = 1 it is 0 to 0");
    two("slices=4", "slice=4",
        "command line: slice: 4: with slices = 4 it is 0 to 3\n");
    two("slices=4", "slice=3", "");
    mistake("recipient_limit=0", "recipient_limit: 0 is less than the minimum, 1");
    mistake("recipient_limit=50001",
            "recipient_limit: 50001 is more than the maximum, 50000");
    mistake("message_size_limit=1023",
            "message_size_limit: 1023 bytes is less than the minimum, 1024 bytes");
    mistake("smtp_port=65536", "smtp_port: 65536 is more than the maximum, 65535");
    mistake("smtp_port=0", "smtp_port: 0 is less than the minimum, 1");
    mistake("lisen=x", "lisen: unknown setting; did you mean 'listen'?");
    mistake("default_destination_concurrency_limit=0", "");
    mistake("drain_timeout=0", "");
}

/* The longest name with which the addresses of bounces are still addresses. */
TEST(long_hostname)
{
    char argument[400] = "hostname=";
    for (int i = 0; i < 24; i++)
        strcat(argument, "abcdefghi.");
    argument[9 + 240] = '\0';
    argument[9 + 239] = 'x';
    mistake(argument, "");
    argument[9 + 240] = 'x';
    mistake(argument, "hostname: is longer than 240 bytes");
}

/* A word means the value of its enum. */
TEST(words)
{
#define WORD(argument, field, value) {argument, offsetof(struct options, field), sizeof(((struct options *)0)->field), value}
    static const struct {
        const char *argument;
        size_t offset, size;
        int value;
    } rows[] = {WORD("log_style=petrel", log_style, LOG_STYLE_PETREL), WORD("log_style=postfix", log_style, LOG_STYLE_POSTFIX),
                WORD("log_style=json", log_style, LOG_STYLE_JSON), WORD("log_level=error", log_level, LOG_LEVEL_ERROR),
                WORD("log_level=warning", log_level, LOG_LEVEL_WARNING), WORD("log_level=info", log_level, LOG_LEVEL_INFO),
                WORD("log_level=debug", log_level, LOG_LEVEL_DEBUG), WORD("sandbox=yes", sandbox, SANDBOX_YES),
                WORD("sandbox=no", sandbox, SANDBOX_NO), WORD("sandbox=require", sandbox, SANDBOX_REQUIRE),
                WORD("dns_trust=auto", dns_trust, DNS_TRUST_AUTO), WORD("dns_trust=yes", dns_trust, DNS_TRUST_YES),
                WORD("dns_trust=no", dns_trust, DNS_TRUST_NO), WORD("user=", dns_trust, DNS_TRUST_AUTO),
                WORD("dane=auto", delivery.dane, true), WORD("dane=no", delivery.dane, false),
                WORD("smtp_family=any", delivery.smtp_family, TARGET_FAMILY_ANY), WORD("smtp_family=ipv4", delivery.smtp_family, TARGET_FAMILY_IPV4),
                WORD("smtp_family=ipv6", delivery.smtp_family, TARGET_FAMILY_IPV6), WORD("defrag_key=sender", fragments.keying, ORIGIN_BY_SENDER),
                WORD("defrag_key=strict", fragments.keying, ORIGIN_STRICT), WORD("defrag_key=id", fragments.keying, ORIGIN_BY_ID),
                WORD("defrag_on_timeout=release", fragments.on_timeout, CHANNEL_RELEASE), WORD("defrag_on_timeout=bounce", fragments.on_timeout, CHANNEL_BOUNCE),
                WORD("defrag_on_timeout=hold", fragments.on_timeout, CHANNEL_HOLD), WORD("partial_policy=pass", server.refuses_partial, false),
                WORD("partial_policy=reject", server.refuses_partial, true)};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char copy[40];
        int value = 0;
        snprintf(copy, sizeof(copy), "%s", rows[i].argument);
        char *const overrides[] = {copy, NULL};
        struct fixture f;
        begin(&f, NULL, overrides, NULL);
        memcpy(&value, (const char *)&f.options + rows[i].offset, rows[i].size);
        is_number(value, rows[i].value, rows[i].argument);
        end(&f);
    }
    mistake("dns_trust=always", "dns_trust: 'always': say auto, yes or no");
    mistake("smtp_family=ipv5", "smtp_family: 'ipv5': say any, ipv4 or ipv6");
    mistake("dane=", "dane: '': say auto or no");
    mistake("sandbox=never", "sandbox: 'never': say yes, no or require");
}

/* Variables that a container gets from Kubernetes are no errors. */
TEST(environment)
{
    char a[] = "PETREL_SERVICE_HOST=10.0.0.1", b[] = "PETREL_SERVICE_PORT=25",
         c[] = "PETREL_PORT=tcp://10.0.0.1:25",
         d[] = "PETREL_PORT_25_TCP=tcp://10.0.0.1:25",
         e[] = "PETREL_PORT_25_TCP_PROTO=tcp", g[] = "PETREL_PORT_25_TCP_PORT=25",
         h[] = "PETREL_PORT_25_TCP_ADDR=10.0.0.1", i[] = "PETREL_SERVICE_PORT_SMTP=25",
         own[] = "PETREL_SMTP_PORT=2500",
         path[] = "PETREL_CONFIG=", other[] = "PATH=/bin";
    char *const environment[] = {a, b, c, d, e, g, h, i, own, path, other, NULL};
    struct fixture f;
    begin(&f, NULL, NULL, environment);
    is_text(settings_errors(f.settings), TEXT(""), "a service of our name");
    is_number(f.options.delivery.smtp_port, 2500, "and what is ours counts");
    end(&f);

    char slip[] = "PETREL_HOSTNAM=x";
    char *const wrong[] = {slip, NULL};
    begin(&f, NULL, NULL, wrong);
    is_text(settings_errors(f.settings),
            TEXT("environment: PETREL_HOSTNAM: unknown setting; did you mean "
                 "'PETREL_HOSTNAME'?\n"),
            "a slip is a mistake");
    end(&f);
}

/* -c, then $PETREL_CONFIG, then ./petrel.conf. */
TEST(files)
{
    struct fixture f;
    write_file("petrel.conf", "smtp_port = 1\n");
    write_file("variable.conf", "smtp_port = 2\n");
    write_file("argument.conf", "smtp_port = 3\n");
    char variable[] = "PETREL_CONFIG=variable.conf", empty[] = "PETREL_CONFIG=";
    char *const environment[] = {variable, NULL}, *const none[] = {empty, NULL};
    begin(&f, NULL, NULL, NULL);
    is_number(f.options.delivery.smtp_port, 1, "the working directory's");
    end(&f);
    begin(&f, NULL, NULL, none);
    is_number(f.options.delivery.smtp_port, 1, "an empty variable says nothing");
    end(&f);
    begin(&f, NULL, NULL, environment);
    is_number(f.options.delivery.smtp_port, 2, "the variable's");
    end(&f);
    begin(&f, "argument.conf", NULL, environment);
    is_number(f.options.delivery.smtp_port, 3, "the argument's");
    end(&f);
    begin(&f, "missing.conf", NULL, NULL);
    is_text(settings_errors(f.settings),
            TEXT("missing.conf: cannot read: No such file or directory\n"),
            "a file that was named must be there");
    end(&f);
    char wrong[] = "PETREL_CONFIG=/nowhere/x";
    char *const missing[] = {wrong, NULL};
    begin(&f, NULL, NULL, missing);
    is_text(settings_errors(f.settings),
            TEXT("/nowhere/x: cannot read: No such file or directory\n"),
            "by the variable too");
    end(&f);
    unlink("petrel.conf");
    if (mkdir("petrel.conf", 0700) != 0)
        abort();
    begin(&f, NULL, NULL, NULL);
    is_text(settings_errors(f.settings),
            TEXT("./petrel.conf: cannot read: Is a directory\n"),
            "what is there and cannot be read is a mistake");
    end(&f);
    rmdir("petrel.conf");
    unlink("variable.conf");
    unlink("argument.conf");
}

/* Root calls petrel in directories of others, too: what they put there says nothing. */
static void
must_be_refused(const char *what, const char *name)
{
    struct options_sources sources = {0};
    struct fixture f = {.settings = options_read(&sources, &f.options)};
    struct text errors = settings_errors(f.settings);
    is_number(f.options.delivery.smtp_port, 25, name);
    ok_named(memmem(errors.at, errors.length, what, strlen(what)) != NULL &&
                 memmem(errors.at, errors.length, "petrel -c ./petrel.conf", 23) != NULL,
             what);
    end(&f);
}

static void
must_obey(const char *name)
{
    struct options_sources sources = {.file = "petrel.conf"};
    struct fixture f = {.settings = options_read(&sources, &f.options)};
    is_number(f.options.delivery.smtp_port, 1, name);
    end(&f);
}

/* sendmail(1) is called in directories where others put files. */
TEST(careful)
{
    struct options_sources sources = {.careful = true};
    struct fixture f;
    struct stat before;
    write_file("petrel.conf", "smtp_port = 1\n");
    f.settings = options_read(&sources, &f.options);
    is_number(f.options.delivery.smtp_port, 1, "our own file counts");
    end(&f);
    if (geteuid() != 0 || chown("petrel.conf", 12345, 12345) != 0) {
        printf("ok %d # SKIP only root can give a file away\n", ++tap_count);
    } else {
        f.settings = options_read(&sources, &f.options);
        is_number(f.options.delivery.smtp_port, 25, "a stranger's does not");
        is_number(settings_apply(f.settings), 0, "and is passed over");
        end(&f);
        must_be_refused("it belongs to uid 12345", "a stranger's file");
        must_obey("a file that was named");
        unlink("petrel.conf");
        write_file("petrel.conf", "smtp_port = 1\n");
        must(chown(".", 12345, 12345) == 0);
        must_be_refused("its directory belongs to uid 12345", "a stranger's directory");
        must(chown(".", 0, 0) == 0);
    }
    must(chmod("petrel.conf", 0666) == 0);
    must_be_refused("mode 666", "a file that others write");
    must_obey("a file that was named");
    must(chmod("petrel.conf", 0644) == 0 && stat(".", &before) == 0 && chmod(".", 01777) == 0);
    must_be_refused("its directory", "a directory that others write");
    must(chmod(".", before.st_mode & 07777) == 0);
    unlink("petrel.conf");
}

TEST(routes)
{
    char hostname[] = "hostname=a.test", relay[] = "relay=mail.test:2500",
         local[] = "local=maildir:/m/%u", bad[] = "routes=* nonsense//";
    char *const overrides[] = {hostname, relay, local, NULL};
    struct fixture f;
    struct address address;
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
    begin(&f, NULL, overrides, NULL);
    struct route_table *routes = options_routes(&f.options, &mistakes);
    ok(routes != NULL && mistakes.length == 0);
    ok(address_parse(TEXT("x@other.test"), &address));
    const struct target *target = route_find(routes, &address);
    ok(target->kind == TARGET_SMTP && target->port == 2500);
    ok(address_parse(TEXT("x@a.test"), &address));
    ok(route_find(routes, &address)->kind == TARGET_MAILDIR);
    route_free(&routes);
    end(&f);
    char literal[] = "hostname=[127.0.0.1]";
    char *const nameless[] = {literal, NULL};
    begin(&f, NULL, nameless, NULL);
    routes = options_routes(&f.options, &mistakes);
    ok_named(routes != NULL, "who shares nothing needs no name");
    route_free(&routes);
    end(&f);
    char *const wrong[] = {hostname, bad, NULL};
    begin(&f, NULL, wrong, NULL);
    ok(options_routes(&f.options, &mistakes) == NULL);
    ok(text_starts(buffer_text(&mistakes), TEXT("routes: '* nonsense//': ")));
    end(&f);
}

/* One error about the file, not one for each user whose password it would have. */
TEST(passwords)
{
    char path[100], words[120], relay[] = "relay=submission://ann@h.test";
    char spool[] = "spool=/s", slices[] = "slices=4", slice[] = "slice=2";
    char *const overrides[] = {relay, words, spool, slices, slice, NULL};
    struct fixture f;
    snprintf(path, sizeof(path), "%s/passwords", folder);
    snprintf(words, sizeof(words), "auth_passwords=%s", path);
    unlink(path);
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
    begin(&f, NULL, overrides, NULL);
    ok(options_routes(&f.options, &mistakes) == NULL);
    char line[200];
    snprintf(line, sizeof(line),
             "auth_passwords: cannot read '%s': No such file or directory\n", path);
    is_text(buffer_text(&mistakes), text_from(line), "a file that is not there");
    buffer_clear(&mistakes);
    write_file(path, "h.test ann pencil\n");
    struct route_table *routes = options_routes(&f.options, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "a password for the user");
    ok(routes != NULL);
    route_free(&routes);
    write_file(path, "h.test bob pencil\n");
    ok(options_routes(&f.options, &mistakes) == NULL);
    ok_named(mistakes.length > 0, "and one for another");
    f.options.without_secrets = true;
    buffer_clear(&mistakes);
    routes = options_routes(&f.options, &mistakes);
    ok_named(routes != NULL && mistakes.length == 0,
             "which users other than the daemon's "
             "are not asked for");
    route_free(&routes);
    struct manager_settings m = f.options.manager;
    ok(m.queue.slices == 4 && m.queue.slice == 2);
    is_string(m.queue.spool, "/s", "the manager's settings");
    is_number(m.sched.active_limit, 20000, "active_limit");
    is_number(m.sched.recipient_limit, 40000, "active_recipient_limit");
    is_number(m.sched.session_limit, 500, "delivery_session_limit");
    unlink(path);
    end(&f);
}

static void
needs_restart(char *argument, const char *want, const char *name)
{
    char *const none[] = {NULL}, *const one[] = {argument, NULL};
    char out[OPTIONS_RESTART_MAX];
    struct fixture old, fresh;
    begin(&old, NULL, none, NULL);
    begin(&fresh, NULL, one, NULL);
    options_need_restart(&old.options, &fresh.options, out);
    is_string(out, want, name);
    end(&old);
    end(&fresh);
}

TEST(restart)
{
    char same[] = "listen=127.0.0.1:2525", listen[] = "listen=127.0.0.1:25",
         user[] = "user=mail", relay[] = "relay=192.0.2.1", slices[] = "slices=2",
         spool[] = "spool=/elsewhere";
    needs_restart(same, "", "nothing changed");
    needs_restart(relay, "", "what a reload can do");
    needs_restart(listen, "listen", "other ports");
    needs_restart(user, "user", "unset before");
    needs_restart(spool, "spool, control", "and what comes from it");
    needs_restart(slices, "control, slices", "numbers");
    char host[] = "defrag_host=a", hostname[] = "hostname=a.test";
    needs_restart(host, "defrag_host", "a name in the registry");
    needs_restart(hostname, "defrag_host", "or where that comes from");
    char secret[] = "cluster_secret=one", peers[] = "cluster_peers=b=10.0.0.2";
    needs_restart(secret, "cluster_secret", "the first secret of a group");
    needs_restart(peers, "", "but other hosts are known immediately");
}

TEST(restart_for_all)
{
    char all[][40] = {"listen=127.0.0.1:25",
                      "spool=/elsewhere",
                      "user=mail",
                      "sandbox=no",
                      "control=/there",
                      "dns_servers=127.0.0.1",
                      "slices=2",
                      "slice=1",
                      "journal_size=0",
                      "defrag_registry=dir:/shared",
                      "defrag_host=a",
                      "cluster=mail",
                      "cluster_host=a",
                      "cluster_redis=none",
                      "cluster_secret=one",
                      "cluster_address=a.test",
                      "cluster_egress=own",
                      "journal_message_max=64K"};
    enum { COUNT = sizeof(all) / sizeof(*all) };
    char *const none[] = {NULL};
    char *arguments[COUNT + 1] = {NULL}, out[OPTIONS_RESTART_MAX];
    struct fixture old, fresh;
    for (size_t i = 0; i < COUNT; i++)
        arguments[i] = all[i];
    begin(&old, NULL, none, NULL);
    begin(&fresh, NULL, arguments, NULL);
    options_need_restart(&old.options, &fresh.options, out);
    is_string(out,
              "listen, spool, user, sandbox, control, dns_servers, slices, slice, "
              "journal_size, defrag_registry, defrag_host, cluster, cluster_host, "
              "cluster_redis, cluster_secret, cluster_address, cluster_egress, "
              "journal_message_max",
              "there is room for all of them");
    end(&old);
    end(&fresh);
}

/* For the file system of this test's directory. */
TEST(fragments)
{
    char set[] = "defrag_max_total=64G", key[] = "defrag_key=strict",
         policy[] = "partial_policy=reject";
    char *const overrides[] = {set, key, policy, NULL};
    struct fixture f;
    struct disk *disk;
    struct disk_space space;
    if (disk_open(&disk, folder, false) != 0 || disk_space(disk, &space) != 0)
        abort();
    int64_t tenth = space.bytes / 10, two = INT64_C(2) << 30;
    begin(&f, NULL, NULL, NULL);
    is_number(options_fragments_max(&f.options, f.settings, disk),
              tenth < two ? tenth : two, "2G, or a tenth of the file system");
    is_number(f.options.fragments.keying, ORIGIN_BY_SENDER, "by sender");
    ok(!f.options.server.refuses_partial);
    end(&f);
    begin(&f, NULL, overrides, NULL);
    is_number(options_fragments_max(&f.options, f.settings, disk), INT64_C(64) << 30,
              "what is said counts");
    is_number(f.options.fragments.keying, ORIGIN_STRICT, "strictly");
    ok(f.options.server.refuses_partial);
    end(&f);
    disk_close(&disk);
}

TEST(ready_age)
{
    static const struct {
        const char *list;
        int64_t age_ms;
        bool upstream;
    } cases[] = {
        {"accepting", 0, false},
        {"age:30m", 30 * 60 * 1000, false},
        {"accepting, age:2h upstream", 2 * 60 * 60 * 1000, true},
        {"age:2h, age:90s", 90 * 1000, false},
        {"age:0", 0, false},
        {"age:", 0, false},
        {"age:x", 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char list[80];
        snprintf(list, sizeof(list), "%s", cases[i].list);
        struct options o = {.ready_when = list};
        is_number(options_ready_age_ms(&o), cases[i].age_ms, cases[i].list);
        ok(options_ready_needs_upstream(&o) == cases[i].upstream);
    }
}

/* t/unit/settings.t compares all of it with config.example. */
TEST(example)
{
    struct printed p;
    printed_begin(&p);
    options_print_example();
    const char *text = printed_end(&p);
    ok(strstr(text, "\n#listen = 127.0.0.1:2525\n") != NULL);
    ok_named(text[0] == '#', "all of it is comments");
}

int
main(void)
{
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        abort();
    tap_tests("");
    if (chdir("/") != 0 || rmdir(folder) != 0)
        abort();
    return done();
}
