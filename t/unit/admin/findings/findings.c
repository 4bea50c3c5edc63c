/* Proves that each finding begins and ends, is reported once an hour, and has a remedy;
 * and that petrel(8) has the table.
 *
 * To make its list anew: FINDINGS_MANUAL=1 build/t/unit/admin/findings/findings.t */
#include "admin/findings/findings.h"

#include "base/log/log.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/tap.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };

static struct finding_facts now;
static struct faults settled;
static struct loop *loop;
static struct event_hub *hub;
static unsigned troubles, recoveries;
static char last[64], last_subject[FINDINGS_SUBJECT_MAX], last_hint[200];

static const char *names[FINDINGS_NAMED_MAX + 8]; /* "CODE SUBJECT" */
static size_t names_count;

static void
collect(void *context, struct finding_facts *facts)
{
    static char codes[FINDINGS_NAMED_MAX + 8][64]; /* borrowed by the facts */
    (void)context;
    *facts = now;
    for (size_t i = 0; i < names_count; i++) {
        size_t length = strcspn(names[i], " ");
        snprintf(codes[i], sizeof(codes[0]), "%.*s", (int)length, names[i]);
        findings_name(facts, codes[i], names[i] + length + 1, "what is wrong");
    }
}

static void
heard(void *context, const struct event *v)
{
    (void)context;
    troubles += v->kind == EVENT_TROUBLE;
    ok_named(v->since_ms > 0, "since when");
    recoveries += v->kind == EVENT_RECOVERED;
    snprintf(last, sizeof(last), "%.*s", TEXT_ARGS(v->command));
    snprintf(last_subject, sizeof(last_subject), "%.*s", TEXT_ARGS(v->relay));
    snprintf(last_hint, sizeof(last_hint), "%.*s", TEXT_ARGS(v->hint));
}

static void
fine(void)
{
    now = (struct finding_facts){
        .health = {.accepting = true, .bytes_free = 1 << 30, .bytes_reserve = 1 << 20, .inodes_free = -1},
        .sandbox_missing = "",
        .settled = &settled};
    faults_cut(&settled, 0);
}

static struct findings *
begin(void)
{
    loop = loop_new();
    hub = event_hub_new(NULL);
    event_read(hub, EVENT_BIT(EVENT_TROUBLE) | EVENT_BIT(EVENT_RECOVERED), heard, NULL);
    troubles = recoveries = 0;
    last[0] = '\0';
    fine();
    return findings_new(&(struct findings_setup){.loop = loop, .events = hub, .collect = collect});
}

static void
end(struct findings *f)
{
    findings_free(&f);
    ok_named(f == NULL, "freed");
    event_hub_free(&hub);
    loop_free(&loop);
}

/* --- Each code ------------------------------------------------------------------- */

static void not_accepting(void) { now.health.accepting = false; }
static void disk_low(void) { now.health.bytes_free = (2 << 20) - 1; }
static void inodes_low(void) { now.health.inodes_free = 199, now.health.inodes_reserve = 100; }
static void sync_blocking(void) { now.health.sync_blocks = true; }
static void journal_full(void) { now.health.journal_full = true; }
static void journal_damaged(void) { now.health.damages = 2; }
static void corrupt(void) { now.quarantined = 1; }
static void history_paused(void) { now.history_paused = true; }
static void disk_unsafe(void) { now.health.unsafe = "the file system of the spool (tmpfs) may lose mail: it is in memory"; }
static void log_lost(void) { now.log_lost = 12; }
static void certificate_expires(void) { now.certificate = "mail.example", now.certificate_ms = (int64_t)FINDINGS_CERTIFICATE_DAYS * 24 * HOUR; }
static void certificate_expired(void) { now.certificate = "mail.example", now.certificate_ms = -3 * HOUR; }
static void auth_down(void) { now.auth_trouble = "/run/dovecot/petrel: it closed the connection"; }
static void certificate_mismatch(void) { now.certificate_trouble = "the key in k.pem is not that of the certificate in c.pem"; }
static void loop_slow(void) { now.slow_us = 251900, now.slow_part = "timers and long work"; }
static void clock_ahead(void) { now.jump_ms = 61 * MINUTE; }
static void clock_back(void) { now.jump_ms = -3 * HOUR; }
static void namesake(void) { now.namesake = true; }
static void fragments_stuck(void) { now.fragments = 2, now.fragments_ms = HOUR; }
static void
port_25_blocked(void)
{
    now.sites.silent = FINDINGS_SILENT;
    now.sites.smtp_port = 25;
}

static void
set_site(struct finding_site *site, const char *name, const char *why, int64_t since_ms)
{
    *site = (struct finding_site){.since_ms = since_ms, .mail = 3};
    snprintf(site->name, sizeof(site->name), "%s", name);
    snprintf(site->why, sizeof(site->why), "%s", why);
}

static void
site_dead(void)
{
    now.sites.dead = 1;
    set_site(&now.sites.worst_dead, "mx:a.example", "connect to a: refused", 16 * MINUTE);
}

static void
sites_dead(void)
{
    site_dead();
    now.sites.dead = 7;
    now.sites.worst_dead.since_ms = 5 * HOUR;
}

static void
site_clogs(void)
{
    now.sites.clogged = 2;
    set_site(&now.sites.worst_clogged, "mx:b.example", "bound: window", 2 * 24 * HOUR);
}

static void
site_slow(void)
{
    now.sites.slow = 2;
    set_site(&now.sites.worst_slow, "mx:b.example", "60 messages in an hour", 20 * MINUTE);
}

static void
mail_old(void)
{
    now.behind_ms = now.oldest_ms = 61 * MINUTE;
    snprintf(now.behind, sizeof(now.behind), "01JD3ZK5Q8-9F3K2C7A, not yet tried");
    snprintf(now.behind_id, sizeof(now.behind_id), "01JD3ZK5Q8-9F3K2C7A");
}

static void
expires_soon(void)
{
    now.lifetime_ms = 5 * 24 * HOUR;
    now.oldest_ms = 4 * 24 * HOUR;
}

static void held_long(void) { now.held_ms = 7 * 24 * HOUR; }
static void hold_by_route(void) { now.holds_by_route = true, now.held = 3; }
static void registry_down(void) { now.registry_down = true; }
static void bank_away(void) { now.bank_away = "no answer in time"; now.bank_sites = 3; }
static void copies_away(void) { now.copies_away = "the server is full"; now.copies_required = true; }
static void copies_behind(void) { now.copies_behind = 1204; }
static void copies_namesake(void) { now.copies_namesake = true; }
static void copies_unreadable(void) { now.copies_unreadable = 3, now.copies_unreadable_at = "field F of K"; }
static void copies_lost(void) { now.copies_losses = 1; }
static void name_servers(void) { now.name_servers = "/etc/resolv.conf is missing"; }
static void sandbox_missing(void) { now.sandbox_missing = "Landlock"; }
static void sandbox_was_refused(void) { now.sandbox_refused = 1; }
static void running_as_root(void) { now.is_root = true; }
static void
settle(const char *code, const char *text)
{
    settled.row = faults_row(code);
    faults_found(&settled, "%s", text);
    faults_about(&settled, "/etc/petrel/password");
}
static void hostname_odd(void) { settle("hostname_odd", "hostname 'x' is not a full name"); }
static void open_relay(void) { now.open_relay = true; }
static void
secrets_readable(void)
{
    settle("secrets_readable", "/etc/petrel/password can be read by all users");
    settle("secrets_readable", "another can be read by all users");
}
static void auth_cleartext(void) { now.auth_cleartext = true; }
static void
events_stuck(void)
{
    now.events = (struct event_keeping){.pending_bytes = 5000, .failing_ms = FINDINGS_STUCK_MS, .why = "status 500"};
}
static void copies_failed(void) { now.copies_failed = 2, now.copy_failed_to = "arc@x.test"; }
static void reload_refused(void) { now.reload_refused = true; }
static void settings_changed(void) { now.changed_settings = "/etc/petrel/petrel.conf"; }

static const struct {
    const char *code;
    void (*wrong)(void);
    const char *text; /* has this */
} cases[] = {
    {"not_accepting", not_accepting, "refused for now"},
    {"disk_low", disk_low, "1 MiB free; below 1 MiB"},
    {"disk_low", inodes_low, "199 inodes free; below 100"},
    {"disk_unsafe", disk_unsafe, "(tmpfs) may lose mail: it is in memory"},
    {"log_lost", log_lost, "12 lines of the log were lost"},
    {"certificate_expires", certificate_expires, "the certificate of mail.example expires in 14 days"},
    {"certificate_expired", certificate_expired, "the certificate of mail.example expired 3 hours ago"},
    {"certificate_mismatch", certificate_mismatch, "not used, the old certificates stay: the key in k.pem is not that of"},
    {"auth_down", auth_down, "nobody can log in, Dovecot cannot be asked: /run/dovecot/petrel: it closed the connection"},
    {"loop_slow", loop_slow, "took 251 ms, in which nothing else ran; most of it: timers and long work"},
    {"clock_jumped", clock_ahead, "the clock was set ahead by 61 minutes"},
    {"clock_jumped", clock_back, "the clock was set back by 3 hours"},
    {"namesake", namesake, "another host uses the name"},
    {"fragments_stuck", fragments_stuck, "2 fragments wait for others, the oldest for 60 minutes"},
    {"sync_blocking", sync_blocking, "wait for each sync"},
    {"journal_full", journal_full, "waits for the spool"},
    {"journal_damaged", journal_damaged, "2 pieces"},
    {"corrupt", corrupt, "1 message is quarantined in"},
    {"history_paused", history_paused, "pauses"},
    {"hold_by_route", hold_by_route, "3 messages are held"},
    {"port_25_blocked", port_25_blocked, "5 sites do not answer on port 25"},
    {"site_dead", site_dead, "mx:a.example has not worked for 16 minutes, and mail waits: connect to a: refused"},
    {"site_dead", sites_dead, "7 sites have not worked for 2 minutes, and mail waits; most for mx:a.example (5 hours): connect"},
    {"site_clogs", site_clogs, "mail for mx:b.example has waited on disk for 2 days: bound: window"},
    {"site_slow", site_slow, "mx:b.example has asked us to slow down for 20 minutes: 60 messages in an hour"},
    {"mail_old", mail_old, "mail has waited for 61 minutes: 01JD3ZK5Q8-9F3K2C7A, not yet tried"},
    {"expires_soon", expires_soon, "waited for 4 days, and is returned in 24 hours"},
    {"held_long", held_long, "came 7 days ago"},
    {"registry_down", registry_down, "does not answer"},
    {"bank_away", bank_away, "does not answer (no answer in time): 3 sites go on with"},
    {"copies_away", copies_away, "no copies of mail can be kept (the server is full): new mail is refused"},
    {"copies_behind", copies_behind, "1204 messages have no copy yet"},
    {"copies_namesake", copies_namesake, "another host that lives has the name of this one, or a clone of its spool"},
    {"copies_unreadable", copies_unreadable, "3 copies in Redis cannot be read; the last is field F of K"},
    {"copies_lost", copies_lost, "has lost copies 1 time since startup"},
    {"name_servers", name_servers, "/etc/resolv.conf is missing"},
    {"sandbox_missing", sandbox_missing, "lacks: Landlock"},
    {"sandbox_refused", sandbox_was_refused, "refused 1 system call"},
    {"running_as_root", running_as_root, "as root"},
    {"hostname_odd", hostname_odd, "not a full name"},
    {"open_relay", open_relay, "every address"},
    {"secrets_readable", secrets_readable, "/etc/petrel/password can be read"},
    {"auth_cleartext", auth_cleartext, "without TLS"},
    {"events_stuck", events_stuck, "has taken none for 15 minutes (status 500), and 5 KiB wait"},
    {"copies_failed", copies_failed, "2 copies for the addresses of copy_to failed since startup, the last one for <arc@x.test>"},
    {"reload_refused", reload_refused, "the old settings stay"},
    {"settings_changed", settings_changed, "petrel.conf has changed"},
};

/* A word in capitals within backticks: what is printed could not be typed. */
static bool
has_hole(const char *remedy)
{
    bool is_code = false;
    for (const char *at = remedy; *at != '\0'; at++) {
        is_code = is_code != (*at == '`');
        if (is_code && isupper((unsigned char)at[0]) && isupper((unsigned char)at[1]) && at[-1] == ' ' && strncmp(at, "NAME@DOMAIN", 11) != 0)
            return true;
    }
    return false;
}

static void
fills(const char *code, const char *object, const char *want)
{
    char out[FINDINGS_REMEDY_MAX];
    findings_remedy(faults_row(code)->remedy, object, out);
    ok_named(strstr(out, want) != NULL, out);
}

/* Objects come from domains of recipients, too: a shell runs nothing of them. */
TEST(objects)
{
    fills("oauth_refused", "smtp.test joe@a.test", "`petrel oauth login smtp.test joe@a.test`");
    fills("receiver_refuses_us", "127.0.0.1", "`petrel trace 127.0.0.1`");
    fills("receiver_refuses_us", "a$(reboot)", "`petrel trace 'a$(reboot)'`");
    fills("receiver_refuses_us", "a'b", "`petrel trace RECEIVER`");
    fills("receiver_refuses_us", "a`b", "`petrel trace RECEIVER`");
    fills("receiver_refuses_us", "a\nb", "`petrel trace RECEIVER`");
    fills("receiver_refuses_us", "-x", "`petrel trace RECEIVER`");
    fills("receiver_refuses_us", "", "`petrel trace RECEIVER`");
    fills("sts_unreachable", "a.test", "reaches mta-sts.a.test by");
    fills("site_dead", "smtp:[127.0.0.1]:25?tls=none", "`petrel status --site 'smtp:[127.0.0.1]:25?tls=none'`");
    fills("site_dead", "mx:10 in.shop.test", "`petrel status --site 'mx:10 in.shop.test'`");
    fills("oauth_refused", "smtp.test a$b", "`petrel oauth login smtp.test 'a$b'`");
    fills("corrupt", "x", "`petrel queue ls --queue corrupt`");
}

TEST(each)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct findings *f = begin();
        findings_look(f);
        ok_named(findings_count(f) == 0, "all is well");
        cases[i].wrong();
        findings_look(f);
        findings_look(f);
        ok_named(findings_count(f) == 1 && findings_has(f, cases[i].code), cases[i].code);
        json_t *list = findings_json(f), *one = json_array_get(list, 0);
        ok_named(strstr(json_string_value(json_object_get(one, "text")), cases[i].text) != NULL, "its text");
        bool is_hint = strcmp(json_string_value(json_object_get(one, "severity")), "hint") == 0;
        is_number(findings_count_wrong(f), is_hint ? 0 : 1, "counted, unless a hint");
        ok_named(troubles == (is_hint ? 0U : 1U), "reported once, unless a hint");
        ok_named(is_hint || strcmp(last, cases[i].code) == 0, "by its code");
        ok_named(is_hint || last_hint[0] != '\0', "with its remedy");
        const char *remedy = json_string_value(json_object_get(one, "remedy"));
        ok_named(!has_hole(remedy), remedy);
        json_decref(list);
        fine();
        findings_look(f);
        ok_named(findings_count(f) == 0 && !findings_has(f, cases[i].code), "over");
        ok_named(recoveries == (is_hint ? 0U : 1U), "its end is reported, too");
        end(f);
    }
}

/* One less than each limit. */
TEST(limits)
{
    struct findings *f = begin();
    port_25_blocked();
    now.sites.silent--;
    now.behind_ms = HOUR - 1;
    now.lifetime_ms = 5 * 24 * HOUR;
    now.oldest_ms = 4 * 24 * HOUR - 1;
    now.held_ms = (int64_t)7 * 24 * HOUR - 1;
    certificate_expires();
    now.certificate_ms += 1;
    fragments_stuck();
    now.fragments_ms -= 1;
    findings_look(f);
    is_number(findings_count(f), 0, "nothing is wrong yet");
    port_25_blocked();
    now.sites.direct_greeted = true;
    now.lifetime_ms = 0; /* once */
    now.oldest_ms = 100 * (int64_t)24 * HOUR;
    findings_look(f);
    is_number(findings_count(f), 0, "mail has reached a site; mail that is tried once does not expire");
    now.lifetime_ms = 30 * MINUTE;
    now.oldest_ms = 25 * MINUTE;
    findings_look(f);
    is_number(findings_count(f), 0, "a short lifetime is meant");
    end(f);
}

/* Those of findings; NULL behind the last. */
static const struct fault_row *
row_at(size_t *index)
{
    const struct fault_row *row;
    while ((row = faults_row_at((*index)++)) != NULL && (row->when & (FAULT_RUNNING | FAULT_BY_EVENT)) == 0)
        ;
    return row;
}

TEST(rows)
{
    const struct fault_row *row;
    for (size_t i = 0; (row = row_at(&i)) != NULL;) {
        bool is_tested = row->judge == NULL; /* test_named(), test_upstreams() */
        for (size_t j = 0; j < sizeof(cases) / sizeof(*cases); j++)
            is_tested = is_tested || strcmp(cases[j].code, row->code) == 0;
        ok_named(is_tested, row->code);
        size_t length = strlen(row->remedy);
        ok_named(isupper((unsigned char)row->remedy[0]) && row->remedy[length - 1] == '.', "a sentence");
        ok(faults_row(row->code) == row);
    }
}

TEST(stopping)
{
    struct findings *f = begin();
    not_accepting();
    now.is_stopping = true;
    findings_look(f);
    ok_named(findings_count(f) == 0, "who stops accepts nothing");
    fine();
    now.held = 3;
    findings_look(f);
    ok_named(findings_count(f) == 0, "held by an operator");
    end(f);
}

/* --- Once an hour ---------------------------------------------------------------- */

static void
advance(int64_t ms)
{
    clock_pass(ms);
    clock_turn(loop);
}

TEST(hour)
{
    clock_stop();
    struct findings *f = begin();
    advance(5000);
    corrupt();
    findings_look(f);
    fine();
    findings_look(f);
    is_number(troubles, 1, "reported");
    is_number(recoveries, 1, "over");
    corrupt();
    findings_look(f);
    ok_named(findings_has(f, "corrupt"), "again: shown");
    is_number(troubles, 1, "not reported within the hour");
    fine();
    findings_look(f);
    is_number(recoveries, 1, "nor is its end");
    corrupt();
    findings_look(f);
    advance(FINDINGS_QUIET_MS - 1000);
    findings_look(f);
    is_number(troubles, 1, "not yet");
    advance(1000);
    findings_look(f);
    is_number(troubles, 2, "it lasts: reported after the hour");
    advance(2 * FINDINGS_QUIET_MS);
    findings_look(f);
    is_number(troubles, 2, "once");
    fine();
    findings_look(f);
    is_number(recoveries, 2, "with its end");
    corrupt();
    advance(FINDINGS_LOOK_MS);
    ok_named(findings_has(f, "corrupt"), "it looks by itself");
    end(f);
    clock_go();
}

/* --- Events ---------------------------------------------------------------------- */

static void
fail(const char *relay, const char *reason)
{
    event_tell(hub, &(struct event){.kind = EVENT_UPSTREAM_FAILED, .relay = text_from(relay), .reason = reason, .text = TEXT("a\nb")});
}

static void
succeed(const char *relay)
{
    event_tell(hub, &(struct event){.kind = EVENT_UPSTREAM_OK, .relay = text_from(relay)});
}

TEST(upstreams)
{
    struct findings *f = begin();
    fail("a:25", NULL);
    fail("b:25", "login_refused");
    fail("c:25", "sender_refused");
    fail("d:25", "unheard_of");
    is_number(findings_count(f), 4, "each upstream");
    ok_named(findings_has(f, "login_refused") && findings_has(f, "sender_refused"), "by their codes");
    findings_look(f);
    is_number(findings_count(f), 4, "a look does not end them");
    json_t *list = findings_json(f);
    is_text(text_from(json_string_value(json_object_get(json_array_get(list, 0), "text"))), TEXT("a\\x0ab"), "escaped");
    json_decref(list);
    fail("a:25", "login_refused");
    is_number(findings_count(f), 4, "another failure takes the place of the last");
    is_number(recoveries, 1, "which is over");
    succeed("b:25");
    succeed("x:25");
    is_number(findings_count(f), 3, "it works again");
    is_text(text_from(last_subject), TEXT("b:25"), "its end names it");
    succeed("a:25"), succeed("c:25"), succeed("d:25");
    is_number(findings_count(f), 0, "all work");
    ok(!findings_has(NULL, "corrupt"));
    end(f);
}

TEST(limit)
{
    struct findings *f = begin();
    char name[20];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            snprintf(name, sizeof(name), "host%d-%d:25", round, i);
            fail(name, NULL);
        }
        is_number(findings_count(f), FINDINGS_MAX, "64 at most");
        for (int i = 0; i < 200; i++) {
            snprintf(name, sizeof(name), "host%d-%d:25", round, i);
            succeed(name);
        }
        is_number(findings_count(f), 0, "none left");
    }
    is_number(troubles, 3 * FINDINGS_MAX, "the others were not reported");
    end(f);
}

/* --- The order, the manual ------------------------------------------------------- */

TEST(order)
{
    struct findings *f = begin();
    sync_blocking(), hold_by_route(), corrupt(), disk_low();
    findings_look(f);
    json_t *list = findings_json(f);
    static const char *const wanted[] = {"error", "warning", "warning", "hint"};
    for (size_t i = 0; i < 4; i++)
        is_text(text_from(json_string_value(json_object_get(json_array_get(list, i), "severity"))), text_from(wanted[i]), "errors come first");
    json_decref(list);
    end(f);
}

/* Those of several subjects begin and end by themselves, and each is reported once an hour. */
TEST(named)
{
    clock_stop();
    struct findings *f = begin();
    names[0] = "receiver_refuses_us mx.a.test";
    names[1] = "receiver_refuses_us Google";
    names[2] = "sts_unreachable a.test";
    names_count = 3;
    findings_look(f);
    is_number(findings_count(f), 3, "three subjects, three findings");
    is_number(troubles, 3, "each is reported");
    findings_look(f);
    is_number(troubles, 3, "once");
    /* An upstream of the same name is another matter. */
    event_tell(hub, &(struct event){.kind = EVENT_UPSTREAM_OK, .relay = TEXT("mx.a.test")});
    is_number(findings_count(f), 3, "an upstream that works ends none of them");
    names_count = 1;
    findings_look(f);
    is_number(findings_count(f), 1, "two have ended");
    is_number(recoveries, 2, "which is reported");
    ok_named(findings_has(f, "receiver_refuses_us") && !findings_has(f, "sts_unreachable"), "by their codes");
    names_count = 3;
    advance(30 * MINUTE);
    findings_look(f);
    is_number(findings_count(f), 3, "again");
    is_number(troubles, 3, "not reported within the hour");
    advance(31 * MINUTE);
    findings_look(f);
    is_number(troubles, 5, "but after it");
    static char many[FINDINGS_NAMED_MAX + 8][64];
    for (names_count = 0; names_count < FINDINGS_NAMED_MAX + 8; names_count++) {
        snprintf(many[names_count], sizeof(many[0]), "quota_used_up s%zu", names_count);
        names[names_count] = many[names_count];
    }
    findings_look(f);
    is_number(findings_count(f), FINDINGS_NAMED_MAX, "more than fit are omitted");
    names[0] = "no_such_code x";
    names_count = 1;
    findings_look(f);
    is_number(findings_count(f), 0, "an unknown code is nothing");
    names_count = 0;
    end(f);
    clock_go();
}

TEST(manual)
{
    static char manual[300000];
    struct buffer wanted;
    char remedy[FINDINGS_REMEDY_MAX];
    const struct fault_row *row;
    FILE *file = fopen("man/petrel.8", "r");
    size_t size = file ? fread(manual, 1, sizeof(manual) - 1, file) : 0;
    if (file)
        fclose(file);
    manual[size] = '\0';
    buffer_init(&wanted, 100000);
    for (size_t i = 0; (row = row_at(&i)) != NULL;)
        ok(buffer_format(&wanted, ".TP\n.BR %s \" (%s)\"\n%s\n", row->code, fault_severity_word(row->severity),
                         findings_remedy(row->remedy, "", remedy)));
    if (getenv("FINDINGS_MANUAL"))
        fprintf(stderr, "%.*s", TEXT_ARGS(buffer_text(&wanted)));
    ok_named(memmem(manual, size, wanted.at, wanted.length) != NULL, "man/petrel.8 has the table");
    buffer_free(&wanted);
}

int
main(void)
{
    tap_tests("");
    faults_free(&settled);
    return done();
}
