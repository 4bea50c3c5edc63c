/* smtp/check: what a stranger says of itself. */
#include "smtp/access/policy.h"

#include "t/support/tap.h"

static struct outcome refusal;

static bool
mail(bool check_helo, bool check_sender, const char *helo, const char *sender)
{
    struct policy_checks rules = {check_helo, check_sender};
    struct net_address own;
    if (!net_address_parse(TEXT("198.51.100.1:25"), 0, &own))
        return false;
    refusal = (struct outcome){.code = 0};
    return policy_check_mail(&rules, text_from(helo), text_from(sender), "mx.example.org",
                      &own, &refusal) == (refusal.code == 0) &&
           refusal.code == 0;
}

TEST(helos)
{
    static const char *const good[] = {"client.example",      "a.b.c.example",
                                       "[192.0.2.1]",         "[IPv6:2001:db8::1]",
                                       "[ipv6:2001:db8::1]",  "xn--bcher-kva.example",
                                       "MX.example.org.test", "mail.mx.example.org"};
    static const char *const bad[] = {
        "localhost",   "DESKTOP-4711",      "192.0.2.1",      "2001:db8::1",
        "[192.0.2]",   "[2001:db8::1]",     "[IPv6:1.2.3.4]", "[",
        "[]",          "client..example",   ".example",       "client_.example!",
        "a b.example", "[192.0.2.1] extra", "[IPv6:]",        "friend"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ok_named(mail(true, false, good[i], "a@b.example"), good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_named(!mail(true, false, bad[i], "a@b.example"), bad[i]);
        ok(refusal.code == 550 && strcmp(refusal.enhanced, "5.7.1") == 0);
        ok_named(mail(false, true, bad[i], "a@b.example"), "only when it is told to");
    }
    static const char *const ours[] = {"mx.example.org", "MX.Example.ORG",
                                       "[198.51.100.1]", "[IPv6:::ffff:198.51.100.1]"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        ok_named(!mail(true, false, ours[i], ""), ours[i]);
        is_string(refusal.text, "HELO names this host, not yours", "is ours");
        ok(mail(false, false, ours[i], ""));
    }
}

TEST(senders)
{
    ok(mail(true, true, "c.example", ""));
    ok(mail(true, true, "c.example", "a@b.example"));
    ok(mail(true, true, "c.example", "\"a@b\"@b.example"));
    ok(mail(true, true, "c.example", "a@[192.0.2.1]"));
    static const char *const bad[] = {"a@localhost", "a@b", "a", "\"a@b.example\"@b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_named(!mail(false, true, "c.example", bad[i]), bad[i]);
        ok(refusal.code == 550 && strcmp(refusal.enhanced, "5.1.8") == 0);
        ok(mail(true, false, "c.example", bad[i]));
    }
}

TEST(bounces)
{
    struct policy_checks on = {.sender = true}, off = {.helo = true};
    ok(policy_check_recipient(&on, TEXT(""), 0, &refusal));
    ok(!policy_check_recipient(&on, TEXT(""), 1, &refusal));
    is_number(refusal.code, 452, "the sender's host asks again for the others");
    is_string(refusal.enhanced, "4.5.3", "as for too many recipients");
    ok(policy_check_recipient(&on, TEXT("a@b.example"), 50, &refusal));
    ok(policy_check_recipient(&off, TEXT(""), 50, &refusal));
}
