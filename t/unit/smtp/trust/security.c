/* security, tls_failures and trust_anchors: what TLS a host must have, whose failed,
 * and whose certificates are trusted. */
#include "smtp/trust/security.h"

#include "base/disk/disk.h"
#include "base/memory.h"
#include "t/support/tls_world.h"

/* --- Decisions -------------------------------------------------------------------- */

enum way { MX, SMTP, SMTP_MX, SMTPS, LMTP };

static struct target
target_of(enum way way, enum target_tls tls, const char *host)
{
    struct target t;
    memset(&t, 0, sizeof(t));
    t.kind = way == MX ? TARGET_MX : way == LMTP ? TARGET_LMTP : TARGET_SMTP;
    t.look_up_mx = way == MX || way == SMTP_MX;
    t.tls_implicit = way == SMTPS;
    t.tls = tls;
    text_copy(t.host, sizeof(t.host), text_from(host));
    return t;
}

/* "level host name,name", and what else there is. */
static const char *
decide(enum way way, enum target_tls tls, const char *configured, const char *found,
       bool has_failed)
{
    static char out[600];
    static const char *const levels[] = {"none", "may", "encrypt", "verify"};
    struct target target = target_of(way, tls, configured);
    struct security_question question = {.target = &target, .host = found, .has_failed = has_failed};
    struct security s;
    security_decide(&question, &s);
    size_t length = (size_t)snprintf(out, sizeof(out), "%s %.*s ", levels[s.level],
                                     TEXT_ARGS(s.host));
    for (size_t i = 0; i < s.name_count; i++)
        length += (size_t)snprintf(out + length, sizeof(out) - length, "%s%.*s",
                                   i ? "," : "", TEXT_ARGS(s.names[i]));
    snprintf(out + length, sizeof(out) - length, "%s%s%s", s.implicit ? " implicit" : "",
             s.may_fall_back ? " may-fall-back" : "",
             s.fallen_back ? " fallen-back" : "");
    return out;
}

/* Each host of a list has its own name. */
TEST(list)
{
    struct target target = target_of(SMTPS, TARGET_TLS_VERIFY, "first.test");
    struct security_question question = {.target = &target, .host = "second.test", .place = 1};
    struct security s;
    target.more_count = 1;
    target.more[0].host = 1;
    text_copy(target.path + 1, sizeof(target.path) - 1, TEXT("second.test"));
    security_decide(&question, &s);
    is_text(s.host, TEXT("second.test"), "the second of a list: its name is told");
    is_number((long)s.name_count, 1, "one name");
    is_text(s.names[0], TEXT("second.test"), "which is asked for");
    target.tls_implicit = false;
    target.look_up_mx = true;
    question.host = "mx.test";
    security_decide(&question, &s);
    is_number((long)s.name_count, 2, "by MX either of two, as for a host alone");
    is_text(s.names[0], TEXT("mx.test"), "the host's");
    is_text(s.names[1], TEXT("second.test"), "and that in the list");
    target.asks = TARGET_REQUIRES_TLS;
    for (question.place = 0; question.place < 2; question.place++) {
        security_decide(&question, &s);
        is_number((long)s.name_count, 1, "REQUIRETLS by MX: one name");
        is_text(s.names[0], question.place == 0 ? TEXT("first.test") : TEXT("second.test"), "that in the list");
    }
}

TEST(decisions)
{
    is_string(decide(MX, TARGET_TLS_NONE, "", "mx.test", false), "none  ", "nothing");
    is_string(decide(MX, TARGET_TLS_NONE, "", "mx.test", true), "none  ",
              "a failure is none where TLS is not wanted");
    is_string(decide(MX, TARGET_TLS_MAY, "", "mx.test", false),
              "may mx.test mx.test may-fall-back", "when it can be had");
    is_string(decide(MX, TARGET_TLS_MAY, "", "mx.test", true), "none   fallen-back",
              "and not when it failed just now");
    for (int failed = 0; failed < 2; failed++) {
        is_string(decide(MX, TARGET_TLS_ENCRYPT, "", "mx.test", failed),
                  "encrypt mx.test mx.test", "encrypt never falls back");
        is_string(decide(MX, TARGET_TLS_VERIFY, "", "mx.test", failed),
                  "verify mx.test mx.test", "verify: the host that MX names");
        is_string(
            decide(SMTP, TARGET_TLS_VERIFY, "host.test", "elsewhere.test", failed),
            "verify host.test host.test", "a host by name: that name alone");
        is_string(decide(SMTPS, TARGET_TLS_VERIFY, "host.test", "host.test", failed),
                  "verify host.test host.test implicit", "from the first byte");
        is_string(decide(SMTP_MX, TARGET_TLS_VERIFY, "d.test", "mx.test", failed),
                  "verify mx.test mx.test,d.test", "?mx=yes: either name");
        is_string(decide(LMTP, TARGET_TLS_VERIFY, "store.test", "store.test", failed),
                  "verify store.test store.test", "LMTP as well");
    }
    is_string(decide(SMTP, TARGET_TLS_VERIFY, "192.0.2.1", "[192.0.2.1]", false),
              "verify 192.0.2.1 192.0.2.1", "an address is a name too");
    is_string(decide(MX, TARGET_TLS_VERIFY, "", "[192.0.2.1]", false),
              "verify 192.0.2.1 192.0.2.1", "that of a domain without brackets");
    is_string(decide(MX, TARGET_TLS_VERIFY, "", "[IPv6:2001:db8::1]", false),
              "verify 2001:db8::1 2001:db8::1", "and without its tag");
    is_string(decide(MX, TARGET_TLS_VERIFY, "", "mx.test.", false),
              "verify mx.test mx.test", "a name without its last dot");
}

/* smtp://joe@host?tls=may: a handshake that failed once must not keep its mail for an
 * hour, since the password is not sent without TLS. */
TEST(login)
{
    struct target target = target_of(SMTP, TARGET_TLS_MAY, "host.test");
    struct security_question question = {.target = &target, .host = "host.test", .has_failed = true, .needs_tls = true};
    struct security s;
    security_decide(&question, &s);
    is_number(s.level, TARGET_TLS_MAY, "TLS is tried again at once");
    ok_named(!s.may_fall_back && !s.fallen_back, "and there is no way back");
    question.needs_tls = false;
    security_decide(&question, &s);
    is_number(s.level, TARGET_TLS_NONE, "who logs in without goes without");
}

TEST(wish)
{
    struct target target = target_of(SMTP_MX, TARGET_TLS_VERIFY, "d.test");
    struct security_question question = {.target = &target, .host = "mx.test"};
    struct security s;
    security_decide(&question, &s);
    struct tls_client_options options = security_tls_options(&s);
    ok(options.level == TLS_LEVEL_VERIFY && options.name_count == 2);
    is_text(options.host, TEXT("mx.test"), "SNI names the host");
    is_text(options.names[1], TEXT("d.test"), "and the domain will do");
    target.tls = TARGET_TLS_ENCRYPT;
    security_decide(&question, &s);
    ok_named(security_tls_options(&s).level == TLS_LEVEL_NONE, "any certificate encrypts");
}

/* REQUIRETLS: the host is proven by the demand of its domain, or by its name in the settings. */
TEST(required)
{
    static const struct {
        enum way way;
        enum target_tls tls;
        const char *names;
    } rows[] = {
        {SMTP, TARGET_TLS_MAY, "host.test"},
        {SMTP, TARGET_TLS_ENCRYPT, "host.test"},
        {SMTPS, TARGET_TLS_VERIFY, "host.test"},
        {SMTP_MX, TARGET_TLS_MAY, "host.test"},
        {LMTP, TARGET_TLS_NONE, "host.test"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct target target = target_of(rows[i].way, rows[i].tls, "host.test");
        struct security_question question = {.target = &target, .host = rows[i].way == SMTP_MX ? "mx.test" : "host.test", .has_failed = true};
        struct security s;
        target.asks = TARGET_REQUIRES_TLS;
        security_decide(&question, &s);
        ok(s.level == TARGET_TLS_VERIFY && s.is_certain && s.is_required && !s.may_fall_back && !s.fallen_back);
        is_number((long)s.name_count, 1, "one name");
        is_text(s.names[0], text_from(rows[i].names), "that of the settings");
        is_string(security_demander(&s), "REQUIRETLS", "who demands it");
    }
    struct target mx = target_of(MX, TARGET_TLS_VERIFY, "");
    struct security_demand demand = {.proof = SECURITY_PROOF_STS};
    struct security_question question = {.target = &mx, .host = "mx.test", .domain = "d.test"};
    struct security s;
    security_decide(&question, &s);
    ok_named(!s.is_certain && !s.is_required, "a name that DNS gave is proven, but not that it is meant");
    question.demand = &demand;
    security_decide(&question, &s);
    ok_named(s.is_certain, "by its policy it is");
    demand.proof = SECURITY_PROOF_ENCRYPT;
    security_decide(&question, &s);
    ok_named(!s.is_certain, "TLSA records that are not known prove nothing");
}

/* The demand of a destination raises the level of the route, and permits no way
 * back. */
TEST(demands)
{
    struct tls_dane_record record = {3, 1, 1, TEXT("x")};
    struct security_demand demand = {
        .proof = SECURITY_PROOF_DANE, .records = &record, .record_count = 1, .base = TEXT("mx.test")};
    struct target target = target_of(MX, TARGET_TLS_MAY, "");
    struct security_question question = {.target = &target, .host = "mx.test", .demand = &demand, .domain = "y.test"};
    struct security s;
    static const enum target_tls dane[] = {TARGET_TLS_NONE, TARGET_TLS_ENCRYPT, TARGET_TLS_ENCRYPT, TARGET_TLS_VERIFY};
    for (int failed = 0; failed < 2; failed++)
        for (enum target_tls tls = TARGET_TLS_NONE; tls <= TARGET_TLS_VERIFY; tls++) {
            target.tls = tls;
            question.has_failed = failed;
            demand.proof = SECURITY_PROOF_DANE;
            security_decide(&question, &s);
            is_number(s.level, dane[tls], "DANE encrypts");
            ok_named(!s.may_fall_back && !s.fallen_back, "always");
            struct tls_client_options options;
            if (tls == TARGET_TLS_NONE)
                continue; /* the operator has said so */
            options = security_tls_options(&s);
            ok_named(options.dane == &record && options.dane_count == 1, "by the records");
            is_text(options.dane_names[0], TEXT("mx.test"), "for the host");
            is_text(options.dane_names[1], TEXT("y.test"), "or the domain");
            is_string(security_demander(&s), "DANE", "which it says");
            demand.proof = SECURITY_PROOF_ENCRYPT;
            security_decide(&question, &s);
            ok_named(s.level == dane[tls] && s.record_count == 0, "records that prove nothing encrypt");
            demand.proof = SECURITY_PROOF_STS;
            security_decide(&question, &s);
            ok_named(s.level == TARGET_TLS_VERIFY && s.record_count == 0 && !s.may_fall_back, "MTA-STS verifies");
            is_string(security_demander(&s), "MTA-STS", "which it says");
            ok_named(s.name_count == 1 && text_equal(s.names[0], TEXT("mx.test")), "the host's name alone");
        }
    target.tls = TARGET_TLS_MAY;
    question.has_failed = false;
    demand.proof = SECURITY_PROOF_NONE;
    security_decide(&question, &s);
    ok_named(s.level == TARGET_TLS_MAY && s.may_fall_back && security_demander(&s) == NULL, "no demand");
    demand.proof = SECURITY_PROOF_DANE;
    target.kind = TARGET_SMTP;
    security_decide(&question, &s);
    ok_named(s.level == TARGET_TLS_MAY && s.record_count == 0, "nothing is demanded of hosts with a name");
}

/* --- Lapses ----------------------------------------------------------------------- */

static struct net_address
address_of(unsigned number, uint16_t port)
{
    return (struct net_address){
        .family = NET_IPV4,
        .ip = {10, (unsigned char)(number >> 16), (unsigned char)(number >> 8),
               (unsigned char)number},
        .port = port
    };
}

TEST(lapses)
{
    static struct security_failures failures, *l = &failures;
    struct net_address a = address_of(1, 25), b = address_of(1, 587), c;
    ok_named(security_failures_add(l, &a, 1000), "the first is told");
    ok(!security_failures_add(l, &a, 1000) && !security_failures_add(l, &a, 1000 + SECURITY_FAILURES_QUIET_MS - 1));
    ok_named(security_failures_add(l, &b, 1001), "another port is another server");
    ok_named(security_failures_add(l, &a, 1000 + SECURITY_FAILURES_QUIET_MS), "an hour later once more");
    ok(!security_failures_add(l, &a, 1000 + SECURITY_FAILURES_QUIET_MS) && !security_failures_add(l, &b, 1002));
    for (unsigned i = 0; i < SECURITY_FAILURES_MAX - 2; i++) {
        c = address_of(100 + i, 25);
        ok(security_failures_add(l, &c, 7000));
    }
    ok(!security_failures_add(l, &a, 7000) && !security_failures_add(l, &b, 7000));
    c = address_of(99, 25);
    ok(security_failures_add(l, &c, 7000));
    ok_named(security_failures_add(l, &b, 7000), "of too many the oldest is forgotten");
    ok(!security_failures_add(l, &c, 7000));
}

/* --- Anchors ---------------------------------------------------------------------- */

static bool
reads(const struct secrets *k, const char *name, const char *says)
{
    char path[200], place[TRUST_ANCHORS_PLACE_MAX], error[600] = "";
    snprintf(path, sizeof(path), "%s/%s", k->directory, name);
    struct tls_client *client =
        trust_anchors_read(text_from(path), false, place, error, sizeof(error));
    bool good = client != NULL;
    if (good)
        is_string(place, path, "its place");
    else
        ok_named(text_starts(text_from(error), TEXT("tls_ca: ")), "the setting's name");
    if (strstr(error, says) == NULL)
        printf("# %s\n", error);
    ok_named(strstr(error, says) != NULL, says);
    tls_client_free(&client);
    return good;
}

TEST(anchors)
{
    char place[TRUST_ANCHORS_PLACE_MAX], error[600] = "", path[600];
    FIXTURE(secrets, k, make_secrets, drop_secrets);
    ok(reads(&k, "ca.pem", ""));
    ok(reads(&k, "anchors", ""));
    ok(!reads(&k, "nothing.pem", "No such file"));
    ok(!reads(&k, "empty", "no certificates in the directory"));
    ok(!reads(&k, "good.key", "no certificate in"));
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ok(!trust_anchors_read(text_from(path), false, place, error, sizeof(error)));
    is_string(error, "tls_ca: the path is too long", "a limit");
    /* The anchors of the system are not known here: a place and no error, or
     * neither. */
    error[0] = '\0';
    struct tls_client *client =
        trust_anchors_read(TEXT(""), false, place, error, sizeof(error));
    ok_named(client != NULL, "without a demand it is no error");
    tls_client_free(&client);
    client = trust_anchors_read(TEXT(""), true, path, error, sizeof(error));
    ok_named((client != NULL) == (place[0] != '\0'), "with one it is");
    ok_named(client != NULL || strstr(error, "a route demands tls=verify") != NULL,
             "and says so");
    tls_client_free(&client);
}

TEST(other_scheme)
{
    static const struct {
        bool implicit;
        unsigned port;
        enum activity_kind kind;
        int64_t waited_ms;
        const char *want;
    } cases[] = {
        {false, 465,  ACTIVITY_GREETING,  0,     "smtps"     },
        {false, 587,  ACTIVITY_GREETING,  9999,  "none"      },
        {false, 587,  ACTIVITY_GREETING,  10000, "smtps"     },
        {false, 465,  ACTIVITY_CONNECT,   99999, "none"      },
        {false, 587,  ACTIVITY_HANDSHAKE, 99999, "none"      },
        {true,  465,  ACTIVITY_GREETING,  99999, "none"      },
        {true,  465,  ACTIVITY_HANDSHAKE, 99999, "none"      },
        {true,  587,  ACTIVITY_HANDSHAKE, 0,     "submission"},
        {true,  25,   ACTIVITY_HANDSHAKE, 0,     "smtp"      },
        {true,  2525, ACTIVITY_HANDSHAKE, 99999, "submission"},
        {true,  2587, ACTIVITY_HANDSHAKE, 0,     "submission"},
        {false, 2465, ACTIVITY_GREETING,  0,     "smtps"     },
        {true,  2465, ACTIVITY_HANDSHAKE, 99999, "none"      },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct security s = {.implicit = cases[i].implicit};
        const char *scheme = security_other_scheme(&s, cases[i].port, cases[i].kind,
                                                   cases[i].waited_ms);
        is_string(scheme ? scheme : "none", cases[i].want, "the scheme");
    }
}
