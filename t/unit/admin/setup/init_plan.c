/* Answers become settings: providers, URLs, users, networks; and what is refused. */
#include "admin/setup/init_plan.h"

#include "base/memory.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static struct init_plan *plan;

static void
fresh(bool is_root)
{
    memset(plan, 0, sizeof(*plan));
    plan->is_root = is_root;
    plan->found = "found.test";
}

static void
takes(enum init_question question, const char *answer)
{
    char why[INIT_WHY_MAX] = "";
    ok_named(init_plan_take(plan, question, text_from(answer), why), answer);
}

static void
refuses(enum init_question question, const char *answer, const char *part)
{
    char why[INIT_WHY_MAX] = "";
    struct init_plan *before = memory_new(sizeof(*before));
    *before = *plan;
    ok_named(!init_plan_take(plan, question, text_from(answer), why), answer);
    ok_named(strstr(why, part) != NULL && strstr(why, "write") != NULL, why);
    ok_named(memcmp(before, plan, sizeof(*plan)) == 0, "nothing has changed");
    free(before);
}

/* "key = value; ..." */
static void
gives(const char *want)
{
    static struct init_setting settings[INIT_SETTINGS_MAX];
    char all[8192] = "";
    size_t count = init_plan_settings(plan, "/d/password", settings);
    for (size_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s = %s", i > 0 ? "; " : "", settings[i].key, settings[i].value);
    is_string(all, want, want);
}

static void
prefers(const char *want, bool derived)
{
    ok(init_plan_asks(plan, INIT_SENDER));
    is_string(init_plan_preset(plan, INIT_SENDER), want, want);
    ok_named(init_plan_derives(plan, INIT_SENDER) == derived, derived ? "nobody is asked" : "asked");
}

/* The sender that a smarthost wants of cron's mail. */
TEST(sender)
{
    fresh(false);
    takes(INIT_HOSTNAME, "found.test");
    takes(INIT_LISTEN, "local");
    takes(INIT_RELAY, "mx");
    ok(!init_plan_asks(plan, INIT_SENDER) && !init_plan_derives(plan, INIT_SENDER));
    takes(INIT_RELAY, "hold");
    ok(!init_plan_asks(plan, INIT_SENDER));
    takes(INIT_RELAY, "smtp.test");
    takes(INIT_USER, "none");
    prefers("none", false);
    takes(INIT_ROOT, "ann@reader.test");
    prefers("ann@reader.test", false);
    takes(INIT_USER, "apikey");
    prefers("ann@reader.test", false);
    takes(INIT_RELAY, "smtp.test");
    takes(INIT_USER, "you+x@b.test");
    prefers("you+x@b.test", true);
    takes(INIT_SENDER, init_plan_preset(plan, INIT_SENDER));
    gives("relay = submission://you%2Bx%40b.test@smtp.test; relay_password_file = /d/password; root = ann@reader.test; rewrite = local you+x@b.test");
    takes(INIT_SENDER, "none");
    gives("relay = submission://you%2Bx%40b.test@smtp.test; relay_password_file = /d/password; root = ann@reader.test");
    takes(INIT_SENDER, "cron@b.test");
    refuses(INIT_SENDER, "cron", "no domain");
    takes(INIT_RELAY, "submission://me%40c.test@smtp.test:2525?tls=verify, smtp://other.test");
    prefers("me@c.test", true);
    takes(INIT_RELAY, "smtp://a%zz@smtp.test");
    prefers("ann@reader.test", false);
    takes(INIT_RELAY, "smtp://a%40b@smtp.test"); /* of a domain that is none elsewhere */
    prefers("ann@reader.test", false);
    takes(INIT_RELAY, "smtp://smtp.test?x=a@b.test");
    prefers("ann@reader.test", false);
}

TEST(relay)
{
    fresh(false);
    takes(INIT_HOSTNAME, "found.test");
    takes(INIT_LISTEN, "local");
    refuses(INIT_RELAY, "", "an answer is needed");
    takes(INIT_RELAY, "mx");
    gives("");
    ok(!init_plan_asks(plan, INIT_USER) && !init_plan_needs_password(plan));
    takes(INIT_RELAY, " HOLD ");
    gives("routes = * hold");
    static const char *const names[][2] = {{"gmail", "smtp.gmail.com"}, {"Google Workspace", "smtp-relay.gmail.com"}, {"microsoft", "smtp.office365.com"},
                                           {"Microsoft 365", "smtp.office365.com"}, {"SendGrid", "smtp.sendgrid.net"}, {"mailgun", "smtp.mailgun.org"},
                                           {"zoho", "smtp.zoho.com"}, {"gmx", "mail.gmx.net"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char want[200];
        takes(INIT_RELAY, names[i][0]);
        ok(init_plan_asks(plan, INIT_USER));
        takes(INIT_USER, "u");
        snprintf(want, sizeof(want), "relay = submission://u@%s; relay_password_file = /d/password", names[i][1]);
        gives(want);
        is_string(plan->host, names[i][1], "its host");
    }
    refuses(INIT_RELAY, "amazon", "email-smtp.eu-central-1.amazonaws.com");
    refuses(INIT_RELAY, "go", "neither a provider nor a host");
    refuses(INIT_RELAY, "nobody", "neither a provider nor a host");
    takes(INIT_RELAY, "smtp.example.org");
    gives("relay = submission://smtp.example.org");
    takes(INIT_RELAY, "email-smtp.eu-central-1.amazonaws.com");
    ok(plan->facts != NULL && init_plan_preset(plan, INIT_USER) == NULL);
    takes(INIT_RELAY, "sendgrid");
    is_string(init_plan_preset(plan, INIT_USER), "apikey", "a user that all have");
    takes(INIT_RELAY, "smtps://a%40b@smtp.example.org:465?tls=verify");
    ok(!init_plan_asks(plan, INIT_USER) && init_plan_needs_password(plan));
    is_string(plan->host, "smtp.example.org", "the host of a URL");
    gives("relay = smtps://a%40b@smtp.example.org:465?tls=verify; relay_password_file = /d/password");
    takes(INIT_RELAY, "smtp://a.test, smtp://b.test");
    ok(!init_plan_asks(plan, INIT_USER) && !init_plan_needs_password(plan));
    takes(INIT_RELAY, "smtp://a.test, smtp://me@b.test");
    ok_named(init_plan_needs_password(plan), "of the second host");
    takes(INIT_RELAY, "smtp://a.test?helo=me@here.test");
    ok_named(!init_plan_needs_password(plan), "an @ of an option is no login");
    takes(INIT_RELAY, "smtp://[2001:db8::1]:25");
    is_string(plan->host, "2001:db8::1", "an address");
}

TEST(user)
{
    char longest[600], many[INIT_ANSWER_MAX + 2];
    fresh(false);
    takes(INIT_HOSTNAME, "found.test");
    takes(INIT_LISTEN, "");
    takes(INIT_RELAY, "submission://smtp.example.org:587?x=y");
    is_string(init_plan_preset(plan, INIT_USER), "none", "nobody, perhaps");
    takes(INIT_USER, "none");
    gives("relay = submission://smtp.example.org:587?x=y");
    takes(INIT_USER, "");
    gives("relay = submission://smtp.example.org:587?x=y");
    takes(INIT_USER, "you@ex.org/%:\xc3\xa9 +");
    gives("relay = submission://you%40ex.org%2F%25%3A%C3%A9%20%2B@smtp.example.org:587?x=y; relay_password_file = /d/password");
    takes(INIT_RELAY, "gmail");
    refuses(INIT_USER, "", "requires a login");
    memset(longest, '@', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    takes(INIT_USER, longest); /* the check of settings refuses it */
    memset(many, 'x', sizeof(many));
    many[INIT_ANSWER_MAX + 1] = '\0';
    takes(INIT_RELAY, "gmail");
    refuses(INIT_USER, many, "too long");
    memset(many, '@', INIT_ANSWER_MAX);
    many[INIT_ANSWER_MAX] = '\0';
    takes(INIT_USER, many);
}

TEST(others)
{
    char many[INIT_ANSWER_MAX + 1];
    fresh(true);
    plan->daemon_user = "petrel";
    takes(INIT_RELAY, "mx");
    takes(INIT_HOSTNAME, "mail.example.org");
    takes(INIT_LISTEN, "local");
    gives("user = petrel; hostname = mail.example.org; listen = 127.0.0.1:25");
    takes(INIT_LISTEN, "192.168.1.0/24, 2001:db8::/32 10.0.0.1");
    gives("user = petrel; hostname = mail.example.org; listen = 0.0.0.0:25, [::]:25; relay_from = 127.0.0.0/8, ::1, 192.168.1.0/24, 2001:db8::/32, 10.0.0.1");
    takes(INIT_LISTEN, "192.168.1.5:2525, 192.168.1.0/24");
    gives("user = petrel; hostname = mail.example.org; listen = 192.168.1.5:2525; relay_from = 127.0.0.0/8, ::1, 192.168.1.0/24");
    takes(INIT_LISTEN, "[::1]:25");
    gives("user = petrel; hostname = mail.example.org; listen = [::1]:25");
    refuses(INIT_LISTEN, " , ", "the list is empty");
    refuses(INIT_ROOT, "alice", "has no domain, and there are no mailboxes here; write NAME@DOMAIN, or none");
    refuses(INIT_RELAY, "SES", "Amazon SES has a host for each region; write its name");
    refuses(INIT_RELAY, "gmial", "neither a provider nor a host; write gmail, googleworkspace, ");
    takes(INIT_ROOT, "me@example.org");
    takes(INIT_HTTP, "yes");
    gives("user = petrel; hostname = mail.example.org; listen = [::1]:25; root = me@example.org; http = 127.0.0.1:8025");
    takes(INIT_ROOT, "None");
    takes(INIT_HTTP, "no");
    gives("user = petrel; hostname = mail.example.org; listen = [::1]:25");
    takes(INIT_HTTP, "unix:/run/petrel/http");
    gives("user = petrel; hostname = mail.example.org; listen = [::1]:25; http = unix:/run/petrel/http");
    refuses(INIT_HOSTNAME, "", "a name is needed");
    for (int q = 0; q < INIT_QUESTIONS; q++) {
        refuses((enum init_question)q, "a\x01" "b", "control characters");
        refuses((enum init_question)q, "a\nhold", "control characters");
        refuses((enum init_question)q, "a\xff", "UTF-8");
        memset(many, '1', sizeof(many));
        many[INIT_ANSWER_MAX] = '\0';
    }
    /* The longest list that is taken, of networks. */
    for (size_t i = 0; i + 8 <= INIT_ANSWER_MAX; i += 8)
        memcpy(many + i, "1.0.0.0 ", 8);
    takes(INIT_LISTEN, many);
}

TEST(file)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, INIT_FILE_MAX);
    fresh(false);
    takes(INIT_HOSTNAME, "mail.example.org");
    takes(INIT_LISTEN, "local");
    takes(INIT_RELAY, "microsoft");
    takes(INIT_USER, "a@b.test");
    is_string(init_plan_oauth(plan), "microsoft", "its OAuth2");
    plan->has_oauth = true;
    gives("hostname = mail.example.org; routes = * hold");
    init_plan_write(plan, "/d/password", &out);
    (void)!buffer_add_byte(&out, '\0');
    ok(strstr(out.at, "# Written by `petrel init`") == out.at);
    ok(strstr(out.at, "\n# Name in the banner, HELO and Received. Unset: the system's host name.\nhostname = mail.example.org\n"));
    ok(strstr(out.at, "\nroutes = * hold\n") && !strstr(out.at, "relay_password_file"));
    ok(strstr(out.at, "\n# relay = submission://a%40b.test@smtp.office365.com\n# oauth = smtp.office365.com a@b.test microsoft client=ID\n"));
    buffer_clear(&out);
    init_plan_providers(&out);
    is_text(text_before(buffer_text(&out), 46), TEXT("gmail, googleworkspace, microsoft365, amazonse"), "names of providers");
    takes(INIT_RELAY, "gmail");
    is_string(init_plan_oauth(plan), "google", "Google's");
    takes(INIT_RELAY, "zoho");
    ok(init_plan_oauth(plan) == NULL);
}

int
main(void)
{
    plan = memory_new(sizeof(*plan));
    tap_tests("");
    free(plan);
    return done();
}
