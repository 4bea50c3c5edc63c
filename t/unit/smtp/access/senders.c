/* smtp/senders: owners of senders, domains, errors. */
#include "smtp/access/senders.h"

#include "t/support/tap.h"

static struct senders *
make(const char *login, const char *domains)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    struct senders *s = senders_new(text_from(login), text_from(domains), &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "no mistake");
    buffer_free(&mistakes);
    return s;
}

/* 0, or the code of the refusal. */
static int
asks(const struct senders *s, const char *user, bool trusted, const char *sender)
{
    struct outcome refusal = {.code = 0};
    if (senders_permit(s, user, trusted, text_from(sender), &refusal))
        return 0;
    if (strcmp(refusal.enhanced, "5.7.1") != 0 || refusal.verdict != VERDICT_FAILED)
        return -1;
    return refusal.code;
}

TEST(anything)
{
    struct senders *s = make("", "");
    ok(asks(s, "alice", false, "x@y.example") == 0);
    ok(asks(s, NULL, false, "x@y.example") == 0);
    ok(asks(s, NULL, true, "") == 0);
    senders_free(&s);
    s = make(" # only a comment\n\n", " , \n");
    ok_named(asks(s, "alice", false, "x@y.example") == 0, "empty is unset");
    senders_free(&s);
    ok(s == NULL);
    senders_free(&s);
}

TEST(owners)
{
    struct senders *s = make("# who may be whom\n"
                             "alice alice@example.org, Sales@Example.org\n"
                             "bob   bob.example .sub.example\r\n"
                             "carol *\n"
                             "alice \"alice\"@two.example\n"
                             "dave  sales@example.org\n",
                             "");
    ok_named(asks(s, "alice", false, "alice@example.org") == 0, "an address");
    ok_named(asks(s, "alice", false, "ALICE@EXAMPLE.ORG") == 0, "in any case");
    ok(asks(s, "alice", false, "sales@example.org") == 0);
    ok_named(asks(s, "alice", false, "alice@two.example") == 0,
             "lines add up, needless quotes go");
    ok_named(asks(s, "alice", false, "") == 0, "the null sender is everybody's");
    ok_named(asks(s, "alice", false, "bob@example.org") == 553, "not hers");
    ok_named(asks(s, "alice", true, "bob@example.org") == 553,
             "a user is held to it in relay_from, too");
    ok_named(asks(s, "Alice", false, "alice@example.org") == 553,
             "users' names have a case");
    ok_named(asks(s, "eve", false, "x@y.example") == 553, "who owns nothing sends nothing");
    ok_named(asks(s, "dave", false, "sales@example.org") == 0, "shared");
    ok(asks(s, "bob", false, "any@bob.example") == 0);
    ok_named(asks(s, "bob", false, "any@x.bob.example") == 553, "no sub-domain");
    ok(asks(s, "bob", false, "any@a.sub.example") == 0);
    ok(asks(s, "bob", false, "any@b.a.sub.example") == 0);
    ok_named(asks(s, "bob", false, "any@sub.example") == 553, "not the domain itself");
    ok_named(asks(s, "bob", false, "any@xsub.example") == 553, "no mere suffix");
    ok_named(asks(s, "carol", false, "alice@example.org") == 0, "*");
    ok_named(asks(s, NULL, false, "alice@example.org") == 553, "a stranger as alice");
    ok_named(asks(s, NULL, true, "alice@example.org") == 0, "who is trusted may");
    ok_named(asks(s, NULL, false, "x@bob.example") == 553, "a stranger as bob");
    ok_named(asks(s, NULL, false, "x@y.example") == 0, "* owns nothing");
    ok_named(asks(s, NULL, false, "*") == 0, "nor does it match itself");
    ok(asks(s, NULL, false, "") == 0);
    senders_free(&s);
}

static void
domains(void)
{
    struct senders *s = make("", "Example.org, .sub.example\n[192.0.2.1]");
    ok(asks(s, NULL, true, "a@example.org") == 0);
    ok(asks(s, "alice", false, "a@EXAMPLE.org") == 0);
    ok(asks(s, NULL, true, "a@x.sub.example") == 0);
    ok(asks(s, NULL, true, "a@[192.0.2.1]") == 0);
    ok(asks(s, NULL, true, "a@x.example.org") == 550);
    ok(asks(s, "alice", false, "a@sub.example") == 550);
    ok_named(asks(s, NULL, false, "a@other.example") == 0, "strangers may be anybody");
    ok_named(asks(s, NULL, true, "") == 0, "the null sender");
    senders_free(&s);
    s = make("alice *", "example.org");
    ok_named(asks(s, "alice", false, "a@other.example") == 550, "both count");
    ok(asks(s, "alice", false, "a@example.org") == 0);
    senders_free(&s);
}

static void
mistake(const char *login, const char *list, const char *want)
{
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
    struct senders *s = senders_new(text_from(login), text_from(list), &mistakes);
    ok(s == NULL);
    is_text(buffer_text(&mistakes), text_from(want), "told");
    senders_free(&s);
}

static void
mistakes(void)
{
    mistake("alice", "",
            "sender_login: 'alice': no addresses follow; lines are `user address...`\n");
    mistake("alice a@@b", "",
            "sender_login: 'a@@b': not one of user@domain, domain, .domain (subdomains), "
            "*\n");
    mistake("alice .\nbob -", "",
            "sender_login: '.': not one of user@domain, domain, .domain (subdomains), *\n"
            "sender_login: '-': not one of user@domain, domain, .domain (subdomains), "
            "*\n");
    mistake("al\x01 x.example", "", "sender_login: 'al\x01': not a valid user name\n");
    mistake("", "a@b.example",
            "sender_domains: 'a@b.example': neither a domain nor .domain (subdomains)\n");
    mistake("", "*", "sender_domains: '*': neither a domain nor .domain (subdomains)\n");
}

int
main(void)
{
    tap_tests("");
    domains();
    mistakes();
    return done();
}
