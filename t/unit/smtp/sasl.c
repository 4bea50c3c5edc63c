/* AUTH as machines: RFC 4616's and 7677's dialogues, malformed and forged messages from
 * clients and from servers, and each mechanism against our own other side. */
#include "smtp/sasl.h"

#include "smtp/client/sasl_client.h"
#include "smtp/server/sasl_server.h"
#include "t/support/sasl_kit.h"

#define NONE ((struct text){NULL, 0})

static const char users_content[] = "user:" KIT_KEYS "\ntim:{PLAIN}tanstaaftanstaaf\n";

static struct sasl_server server;

/* As the gate of smtp/session/auth_gate.h does. */
static enum sasl_result
checked(enum sasl_result result)
{
    while (result == SASL_UNFINISHED)
        result = sasl_server_work(&server);
    return result;
}

static enum sasl_result
start(const struct users *users, enum sasl_mechanism mechanism, struct text initial)
{
    return checked(
        sasl_server_start(&server, mechanism, users, KIT_SERVER_NONCE, initial));
}

/* One attempt whose first message is t. */
static enum sasl_result
first(const struct users *users, enum sasl_mechanism mechanism, struct text t)
{
    sasl_server_end(&server);
    return start(users, mechanism, t.length ? kit_coded(t) : TEXT("="));
}

static enum sasl_result
feed(struct text t)
{
    return checked(sasl_server_feed(&server, kit_coded(t)));
}

static struct text
challenge(void)
{
    return kit_decoded(sasl_server_challenge(&server));
}

static void
test_names(void)
{
    char nonce[SASL_NONCE_SIZE];
    ok(sasl_find(TEXT("plain")) == SASL_PLAIN && sasl_find(TEXT("LOGIN")) == SASL_LOGIN);
    ok(sasl_find(TEXT("Scram-Sha-256")) == SASL_SCRAM_SHA_256);
    ok(sasl_find(TEXT("SCRAM-SHA-256-PLUS")) == SASL_NONE);
    ok(sasl_find(TEXT("")) == SASL_NONE && sasl_find(TEXT("PLAI")) == SASL_NONE);
    sasl_nonce((const uint64_t[3]){0, 0, 0}, nonce);
    is_string(nonce, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "a nonce");
}

static void
test_plain(const struct users *users)
{
    ok(start(users, SASL_PLAIN, NONE) == SASL_CHALLENGE);
    is_text(challenge(), TEXT(""), "an empty challenge");
    ok(feed(TEXT("\0tim\0tanstaaftanstaaf")) == SASL_DONE);
    is_string(sasl_server_user(&server), "tim", "RFC 4616's Tim");
    ok(first(users, SASL_PLAIN, TEXT("tim\0tim\0tanstaaftanstaaf")) == SASL_DONE);
    ok(first(users, SASL_PLAIN, TEXT("\0user\0pencil")) == SASL_DONE);
    ok_named(first(users, SASL_PLAIN, TEXT("Kurt\0tim\0tanstaaftanstaaf")) == SASL_FAILED,
             "nobody acts for another");
    ok(first(users, SASL_PLAIN, TEXT("\0tim\0tanstaaftanstaa")) == SASL_FAILED);
    ok(first(users, SASL_PLAIN, TEXT("\0tim\0")) == SASL_FAILED);
    ok(first(users, SASL_PLAIN, TEXT("\0mallory\0pencil")) == SASL_FAILED);
    ok(first(users, SASL_PLAIN, TEXT("\0user\0tanstaaftanstaaf")) == SASL_FAILED);
    ok(first(users, SASL_PLAIN, TEXT("\0tim\0a\xff")) == SASL_FAILED);
    static const struct text bad[] = {
        TEXT(""),           TEXT("tim"),       TEXT("\0tim"),        TEXT("\0\0pencil"),
        TEXT("\0user\0pencil\0"), TEXT("\0\0"), TEXT("\0us\ner\0pencil"),
        TEXT("\0us\xff\0pencil")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(first(users, SASL_PLAIN, bad[i]) == SASL_MALFORMED, "malformed PLAIN");
    sasl_server_end(&server);
}

static void
test_login(const struct users *users)
{
    ok(start(users, SASL_LOGIN, NONE) == SASL_CHALLENGE);
    is_text(sasl_server_challenge(&server), TEXT("VXNlcm5hbWU6"), "Username:");
    ok(feed(TEXT("user")) == SASL_CHALLENGE);
    is_text(sasl_server_challenge(&server), TEXT("UGFzc3dvcmQ6"), "Password:");
    ok(feed(TEXT("pencil")) == SASL_DONE);
    is_string(sasl_server_user(&server), "user", "who it is");
    ok_named(first(users, SASL_LOGIN, TEXT("user")) == SASL_CHALLENGE, "name at once");
    is_text(sasl_server_challenge(&server), TEXT("UGFzc3dvcmQ6"), "Password:");
    ok(feed(TEXT("pencils")) == SASL_FAILED);
    ok(first(users, SASL_LOGIN, TEXT("user")) == SASL_CHALLENGE);
    ok(feed(TEXT("")) == SASL_FAILED);
    ok(first(users, SASL_LOGIN, TEXT("mallory")) == SASL_CHALLENGE);
    ok(feed(TEXT("pencil")) == SASL_FAILED);
    ok(first(users, SASL_LOGIN, TEXT("")) == SASL_MALFORMED);
    ok(first(users, SASL_LOGIN, TEXT("a\0b")) == SASL_MALFORMED);
    sasl_server_end(&server);
}

static void
test_lines(const struct users *users)
{
    static const char *const bad[] = {"a", "****", "AGE=AGE=", "AGE", "AG E", "=="};
    char longest[2 * SASL_MESSAGE_MAX];
    memset(longest, 'A', sizeof(longest));
    for (enum sasl_mechanism m = SASL_PLAIN; m <= SASL_SCRAM_SHA_256; m++) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
            ok(start(users, m, text_from(bad[i])) == SASL_MALFORMED);
            sasl_server_end(&server);
        }
        ok(start(users, m, NONE) == SASL_CHALLENGE);
        ok(sasl_server_feed(&server, TEXT("*")) == SASL_CANCELLED);
        is_number(sasl_server_challenge(&server).length, 0, "nothing to send");
        sasl_server_end(&server);
        ok_named(start(users, m, text_of(longest, sizeof(longest))) == SASL_MALFORMED,
                 "too long");
        sasl_server_end(&server);
    }
}

/* A right final message of RFC 7677's user with another header. */
static struct text
proof_for(const char *header, char to[512])
{
    struct digest_stretch stretch;
    unsigned char key[DIGEST_SIZE], stored[DIGEST_SIZE], unused[DIGEST_SIZE];
    char auth[512], salt[16];
    size_t length;
    if (!base64_decode(TEXT("W22ZaJ0SNY7soEsUEjb6gQ=="), salt, sizeof(salt), &length))
        abort();
    digest_stretch_start(&stretch, TEXT("pencil"), text_of(salt, length), 4096);
    ok(digest_stretch_go(&stretch, 4096));
    verifier_keys(stretch.out, key, stored, unused);
    snprintf(auth, sizeof(auth),
             "n=user,r=" KIT_CLIENT_NONCE ",%s,%s,r=%s", KIT_CHALLENGE, header,
             KIT_CLIENT_NONCE KIT_SERVER_NONCE);
    sasl_scram_mix(key, stored, text_from(auth));
    struct text coded = kit_coded(text_of(key, sizeof(key)));
    snprintf(to, 512, "%s,r=%s,p=%.*s", header, KIT_CLIENT_NONCE KIT_SERVER_NONCE,
             TEXT_ARGS(coded));
    return text_from(to);
}

static void
test_scram(const struct users *users)
{
    char other[512];
    ok(start(users, SASL_SCRAM_SHA_256, NONE) == SASL_CHALLENGE);
    is_text(challenge(), TEXT(""), "an empty challenge");
    ok(feed(TEXT(KIT_FIRST)) == SASL_CHALLENGE);
    is_text(challenge(), TEXT(KIT_CHALLENGE), "RFC 7677's challenge");
    ok(feed(TEXT(KIT_FINAL)) == SASL_CHALLENGE);
    is_text(challenge(), TEXT(KIT_VERDICT), "RFC 7677's signature");
    ok(feed(TEXT("")) == SASL_DONE);
    is_string(sasl_server_user(&server), "user", "who it is");
    static const struct text finals[] = {
        TEXT("c=eSws,r=" KIT_CLIENT_NONCE KIT_SERVER_NONCE
             ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        TEXT("c=biws,r=" KIT_CLIENT_NONCE
             ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        TEXT("c=biws,r=" KIT_SERVER_NONCE
             ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        TEXT("c=biws,r=x" KIT_CLIENT_NONCE KIT_SERVER_NONCE
             ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        TEXT("c=biws,r=" KIT_CLIENT_NONCE KIT_SERVER_NONCE
             "x,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
        TEXT(KIT_UNPROVEN), TEXT(KIT_FIRST), TEXT("")};
    for (size_t i = 0; i < sizeof(finals) / sizeof(*finals); i++) {
        ok(first(users, SASL_SCRAM_SHA_256, TEXT(KIT_FIRST)) == SASL_CHALLENGE);
        ok_named(feed(finals[i]) == SASL_MALFORMED, "another header or nonce");
    }
    ok(first(users, SASL_SCRAM_SHA_256, TEXT(KIT_FIRST)) == SASL_CHALLENGE);
    ok_named(feed(TEXT(KIT_UNPROVEN ",p=eHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")) ==
                 SASL_FAILED,
             "another proof");
    /* The proof does not cover the header but by its repetition. */
    ok(first(users, SASL_SCRAM_SHA_256, TEXT("n,a=tim,n=user,r=" KIT_CLIENT_NONCE)) ==
       SASL_CHALLENGE);
    ok_named(feed(proof_for("c=bixhPXRpbSw=", other)) == SASL_FAILED,
             "nobody acts for another");
    ok(first(users, SASL_SCRAM_SHA_256, TEXT("n,a=user,n=user,r=" KIT_CLIENT_NONCE)) ==
       SASL_CHALLENGE);
    ok_named(feed(proof_for("c=bixhPXVzZXIs", other)) == SASL_CHALLENGE,
             "but for oneself");
    ok(first(users, SASL_SCRAM_SHA_256, TEXT(KIT_FIRST)) == SASL_CHALLENGE);
    ok(feed(TEXT(KIT_FINAL)) == SASL_CHALLENGE);
    ok_named(feed(TEXT("x")) == SASL_MALFORMED, "more than nothing at the end");
    ok(first(users, SASL_SCRAM_SHA_256, TEXT("p=tls-unique,,n=user,r=a")) ==
       SASL_MALFORMED);
    ok(first(users, SASL_SCRAM_SHA_256, TEXT("n,,n=mallory,r=a")) == SASL_CHALLENGE);
    ok_named(text_starts(challenge(), TEXT("r=a" KIT_SERVER_NONCE ",s=")) &&
                 text_ends_nocase(challenge(), TEXT(",i=4096")),
             "a stranger is asked as a user");
    sasl_server_end(&server);
}

/* --- The client ---------------------------------------------------------------- */

static struct sasl_client client;

static void
begin(enum sasl_mechanism mechanism, const char *password, const char *nonce)
{
    struct sasl_credentials c = {TEXT("user"), text_from(password), TEXT("")};
    sasl_client_start(&client, mechanism, &c, nonce);
}

static enum sasl_client_result
hear(struct text t)
{
    enum sasl_client_result result = sasl_client_feed(&client, kit_coded(t));
    while (result == SASL_WORK)
        result = sasl_client_work(&client);
    return result;
}

TEST(choice)
{
    struct text all = TEXT("PLAIN LOGIN SCRAM-SHA-256 XOAUTH2");
    ok(sasl_client_choose(all, false, 0) == SASL_SCRAM_SHA_256);
    ok(sasl_client_choose(all, false, 1u << SASL_SCRAM_SHA_256) == SASL_PLAIN);
    ok(sasl_client_choose(all, true, 0) == SASL_XOAUTH2);
    ok(sasl_client_choose(all, true, 1u << SASL_XOAUTH2) == SASL_NONE);
    ok(sasl_client_choose(TEXT("LOGIN plain"), false, 0) == SASL_PLAIN);
    ok(sasl_client_choose(TEXT("=LOGIN  CRAM-MD5"), false, 0) == SASL_LOGIN);
    ok(sasl_client_choose(TEXT("CRAM-MD5 SCRAM-SHA-256-PLUS"), false, 0) ==
       SASL_NONE);
    ok(sasl_client_choose(TEXT(""), false, 0) == SASL_NONE);
}

TEST(credentials)
{
    static char big[SASL_TOKEN_MAX + 1];
    memset(big, 'x', sizeof(big));
    struct sasl_credentials good = {TEXT("u"), TEXT("p"), TEXT("")}, c = good;
    ok(sasl_client_check(&good) == NULL);
    c.user = TEXT("");
    ok(sasl_client_check(&c) != NULL);
    c.user = TEXT("a\0b");
    ok(sasl_client_check(&c) != NULL);
    c = good;
    c.password = TEXT("");
    ok(sasl_client_check(&c) != NULL);
    c.password = TEXT("a\nb");
    ok(sasl_client_check(&c) != NULL);
    c.password = text_of(big, SASL_PASSWORD_MAX + 1);
    ok(sasl_client_check(&c) != NULL);
    c = good;
    c.token = TEXT("to ken");
    ok(sasl_client_check(&c) != NULL);
    c.token = text_of(big, SASL_TOKEN_MAX + 1);
    ok(sasl_client_check(&c) != NULL);
    c.token = text_of(big, SASL_TOKEN_MAX);
    c.user = text_of(big, SASL_NAME_MAX);
    ok(sasl_client_check(&c) == NULL);
    sasl_client_start(&client, SASL_XOAUTH2, &c, "n");
    ok(sasl_client_line(&client).length <= SASL_LINE_MAX);
    sasl_client_end(&client);
}

TEST(client_simple)
{
    begin(SASL_PLAIN, "pencil", "n");
    is_text(kit_decoded(sasl_client_line(&client)), TEXT("\0user\0pencil"), "PLAIN");
    ok(sasl_client_accepted(&client));
    ok(hear(TEXT("")) == SASL_STOP && client.problem != NULL);
    ok(!sasl_client_accepted(&client));
    is_number(sasl_client_line(&client).length, 0, "nothing is sent then");
    sasl_client_end(&client);

    begin(SASL_LOGIN, "pencil", "n");
    ok_named(sasl_client_line(&client).at == NULL, "LOGIN waits");
    ok(!sasl_client_accepted(&client));
    ok(sasl_client_feed(&client, TEXT("User Name")) == SASL_SEND);
    is_text(kit_decoded(sasl_client_line(&client)), TEXT("user"), "the name");
    ok(!sasl_client_accepted(&client));
    ok(hear(TEXT("Password:")) == SASL_SEND);
    is_text(kit_decoded(sasl_client_line(&client)), TEXT("pencil"), "the password");
    ok(sasl_client_accepted(&client));
    ok(hear(TEXT("Password:")) == SASL_STOP);
    sasl_client_end(&client);

    struct sasl_credentials c = {TEXT("someuser@example.com"), TEXT(""), TEXT("ya29.vF9")};
    sasl_client_start(&client, SASL_XOAUTH2, &c, "n");
    is_text(kit_decoded(sasl_client_line(&client)),
            TEXT("user=someuser@example.com\001auth=Bearer ya29.vF9\001\001"), "XOAUTH2");
    ok(sasl_client_accepted(&client));
    ok(hear(TEXT("{\"status\":\"401\"}")) == SASL_SEND);
    is_string(client.detail, "{\"status\":\"401\"}", "why not");
    is_number(sasl_client_line(&client).length, 0, "an empty line");
    ok(!sasl_client_accepted(&client));
    ok(hear(TEXT("{}")) == SASL_STOP);
    sasl_client_end(&client);
}

TEST(client_scram)
{
    begin(SASL_SCRAM_SHA_256, "pencil", KIT_CLIENT_NONCE);
    is_text(kit_decoded(sasl_client_line(&client)), TEXT(KIT_FIRST), "RFC 7677's first");
    ok(sasl_client_feed(&client, kit_coded(TEXT(KIT_CHALLENGE))) == SASL_WORK);
    ok(!sasl_client_accepted(&client));
    ok(sasl_client_work(&client) == SASL_SEND);
    is_text(kit_decoded(sasl_client_line(&client)), TEXT(KIT_FINAL), "and its final");
    ok_named(!sasl_client_accepted(&client), "a 235 without proof is none");
    ok(hear(TEXT(KIT_VERDICT)) == SASL_SEND);
    is_number(sasl_client_line(&client).length, 0, "an empty line");
    ok(sasl_client_accepted(&client));
    ok(hear(TEXT(KIT_VERDICT)) == SASL_STOP);
    sasl_client_end(&client);
}

TEST(impostors)
{
    static const struct text challenges[] = {
        TEXT(""), TEXT("x"), TEXT("r=other,s=AAAA,i=4096"),
        TEXT("r=" KIT_CLIENT_NONCE ",s=AAAA,i=4096"),
        TEXT("r=" KIT_CLIENT_NONCE "x,s=AAAA,i=4095"),
        TEXT("r=" KIT_CLIENT_NONCE "x,s=AAAA,i=1000001"),
        TEXT("m=x,r=" KIT_CLIENT_NONCE "x,s=AAAA,i=4096")};
    static const struct text verdicts[] = {
        TEXT(""), TEXT("e=invalid-proof"), TEXT("v=AAAA"),
        TEXT("v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")};
    for (size_t i = 0; i < sizeof(challenges) / sizeof(*challenges); i++) {
        begin(SASL_SCRAM_SHA_256, "pencil", KIT_CLIENT_NONCE);
        ok(hear(challenges[i]) == SASL_STOP && client.problem != NULL);
        sasl_client_end(&client);
    }
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++) {
        begin(SASL_SCRAM_SHA_256, "pencil", KIT_CLIENT_NONCE);
        ok(hear(TEXT(KIT_CHALLENGE)) == SASL_SEND);
        ok(hear(verdicts[i]) == SASL_STOP && !sasl_client_accepted(&client));
        sasl_client_end(&client);
    }
    begin(SASL_SCRAM_SHA_256, "pencil", KIT_CLIENT_NONCE);
    ok(sasl_client_feed(&client, TEXT("not base64")) == SASL_STOP);
    sasl_client_end(&client);
    begin(SASL_SCRAM_SHA_256, "pencil", KIT_CLIENT_NONCE);
    int turns = 1;
    ok(sasl_client_feed(&client,
                        kit_coded(TEXT("r=" KIT_CLIENT_NONCE "x,s=AAAA,i=20000"))) ==
       SASL_WORK);
    while (sasl_client_work(&client) == SASL_WORK)
        turns++;
    is_number(turns, 5, "much work is done in pieces");
    sasl_client_end(&client);
}

/* Our client against our server. */
static enum sasl_result
meet(const struct users *users, enum sasl_mechanism mechanism, struct text user,
     struct text password)
{
    struct sasl_credentials c = {user, password, TEXT("")};
    sasl_client_start(&client, mechanism, &c, "client");
    enum sasl_result result = start(users, mechanism, sasl_client_line(&client));
    while (result == SASL_CHALLENGE) {
        enum sasl_client_result heard =
            sasl_client_feed(&client, sasl_server_challenge(&server));
        while (heard == SASL_WORK)
            heard = sasl_client_work(&client);
        if (heard == SASL_STOP)
            break;
        result = checked(sasl_server_feed(&server, sasl_client_line(&client)));
    }
    ok((result == SASL_DONE) == sasl_client_accepted(&client) || result == SASL_FAILED);
    sasl_client_end(&client);
    sasl_server_end(&server);
    return result;
}

TEST(both)
{
    struct users *users = kit_users("a,=\xc3\xb6:{PLAIN}p\xc3\xa4ss,word=\n");
    struct text user = TEXT("a,=\xc3\xb6"), password = TEXT("p\xc3\xa4ss,word=");
    for (enum sasl_mechanism m = SASL_PLAIN; m <= SASL_SCRAM_SHA_256; m++) {
        ok_named(meet(users, m, user, password) == SASL_DONE, sasl_name(m));
        ok_named(meet(users, m, user, TEXT("password")) == SASL_FAILED, "wrong password");
        ok_named(meet(users, m, TEXT("b"), password) == SASL_FAILED, "wrong user");
    }
    users_free(&users);
}

/* --- The messages of SCRAM -------------------------------------------------------- */

/* The messages of SCRAM: RFC 7677's, and everything that is not of that form. */

static void
test_good(void)
{
    struct scram_first first;
    struct scram_challenge challenge;
    struct scram_final final;
    struct verifier v;
    unsigned char signature[DIGEST_SIZE], own[DIGEST_SIZE];
    struct text auth = TEXT("n=user,r=" KIT_CLIENT_NONCE "," KIT_CHALLENGE "," KIT_UNPROVEN);
    ok(sasl_scram_read_first(TEXT(KIT_FIRST), &first));
    is_text(first.header, TEXT("n,,"), "header");
    is_text(first.bare, TEXT("n=user,r=" KIT_CLIENT_NONCE), "bare");
    is_string(first.name, "user", "name");
    is_text(first.nonce, TEXT(KIT_CLIENT_NONCE), "nonce");
    ok(sasl_scram_read_challenge(TEXT(KIT_CHALLENGE), &challenge));
    is_number(challenge.iterations, 4096, "iterations");
    is_number(challenge.salt_length, 16, "salt");
    ok(sasl_scram_read_final(TEXT(KIT_FINAL), &final));
    is_text(final.unproven, TEXT(KIT_UNPROVEN), "what is proven");
    is_text(final.header, TEXT("biws"), "header again");
    ok(verifier_parse(&v, TEXT(KIT_KEYS)) == NULL);
    ok(sasl_scram_is_proven(final.proof, v.stored_key, auth));
    final.proof[31] ^= 1;
    ok(!sasl_scram_is_proven(final.proof, v.stored_key, auth));
    final.proof[31] ^= 1;
    ok(!sasl_scram_is_proven(final.proof, v.server_key, auth));
    ok(!sasl_scram_is_proven(final.proof, v.stored_key, text_before(auth, auth.length - 1)));
    ok(sasl_scram_read_verdict(TEXT(KIT_VERDICT), signature));
    digest_keyed(text_of(v.server_key, DIGEST_SIZE), auth, own);
    ok(digest_same(signature, own, DIGEST_SIZE));
}

static void
test_first(void)
{
    static const char *const good[] = {"y,,n=a,r=b", "n,a=x,n=a,r=b", "n,,n=a,r=b,x=y",
                                       "n,,n=a=2Cb=3Dc,r=b", "n,,n=\xc3\xa4,r=!"};
    static const char *const bad[] = {
        "", "n", "n,", "n,,", "n,,n=a", "n,,n=,r=b", "n,,n=a,r=", "n,,r=b,n=a",
        "p=tls-unique,,n=a,r=b", "p=,,n=a,r=b", "x,,n=a,r=b", "N,,n=a,r=b",
        "n,x,n=a,r=b", "n,a=,n=a,r=b", "n,,m=x,n=a,r=b", "n,,n=a,r=b,m=x",
        "n,,n=a,r=b,", "n,,n=a,r=b,,", "n,,n=a,r=b,x", "n,,n=a,r=b,x=", "n,,n=a,r=b,1=x",
        "n,,n=a=,r=b", "n,,n=a=2,r=b", "n,,n=a=2c,r=b", "n,,n==,r=b", "n,,n=a=3E,r=b",
        "n,,n=a\tb,r=b", "n,,n=\xff,r=b", "n,,n=a,r=b c", "n,,n=a,r=\xc3\xa4",
        "n,,n=a,r=b\x7f", " n,,n=a,r=b"};
    struct scram_first first;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        ok_named(sasl_scram_read_first(text_from(good[i]), &first), good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!sasl_scram_read_first(text_from(bad[i]), &first), bad[i]);
    ok(!sasl_scram_read_first(TEXT("n,,n=a\0b,r=b"), &first));
    ok(sasl_scram_read_first(TEXT("n,a=b=2C,n=a=2Cb=3Dc,r=b,x=y"), &first));
    is_string(first.name, "a,b=c", "escapes are undone");
    is_string(first.authzid, "b,", "for whom, too");
    is_text(first.header, TEXT("n,a=b=2C,"), "header with it");
    is_text(first.nonce, TEXT("b"), "nonce before an extension");
}

static void
test_limits(void)
{
    char t[2 * SASL_MESSAGE_MAX];
    struct scram_first first;
    size_t name = SASL_NAME_MAX;
    memset(t, 'x', sizeof(t));
    memcpy(t, "n,,n=", 5);
    memcpy(t + 5 + name, ",r=", 3);
    ok(sasl_scram_read_first(text_of(t, SASL_MESSAGE_MAX), &first));
    is_number(strlen(first.name), name, "the longest name");
    ok_named(!sasl_scram_read_first(text_of(t, SASL_MESSAGE_MAX + 1), &first), "a long message");
    t[5 + name] = 'x';
    memcpy(t + 6 + name, ",r=", 3);
    ok_named(!sasl_scram_read_first(text_of(t, SASL_MESSAGE_MAX), &first), "a long name");
}

static void
test_others(void)
{
    static const char *const challenges[] = {
        "", "r=a", "r=a,s=AAAA", "r=a,s=,i=1", "r=a,s=AAA,i=1", "r=a,s=AAAA,i=0",
        "r=a,s=AAAA,i=-1", "r=a,s=AAAA,i=", "r=a,s=AAAA,i=4294967296", "r=,s=AAAA,i=1",
        "s=AAAA,r=a,i=1", "m=x,r=a,s=AAAA,i=1", "r=a,s=AAAA,i=1,m=x", "e=other-error"};
    static const char *const finals[] = {
        "", "c=biws", "c=biws,r=a", "c=biws,r=a,p=", "c=biws,r=a,p=AAAA",
        "r=a,c=biws,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=,r=a",
        "c=biws,r=a,m=x,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=a,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=,x=y",
        "c=biws,r=a,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ"};
    static const char *const verdicts[] = {"", "v=", "v=AAAA", "e=invalid-proof",
                                           KIT_VERDICT ",", KIT_VERDICT "=", "V" };
    struct scram_challenge challenge;
    struct scram_final final;
    unsigned char signature[DIGEST_SIZE];
    for (size_t i = 0; i < sizeof(challenges) / sizeof(*challenges); i++)
        ok_named(!sasl_scram_read_challenge(text_from(challenges[i]), &challenge), challenges[i]);
    for (size_t i = 0; i < sizeof(finals) / sizeof(*finals); i++)
        ok_named(!sasl_scram_read_final(text_from(finals[i]), &final), finals[i]);
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++)
        ok_named(!sasl_scram_read_verdict(text_from(verdicts[i]), signature), verdicts[i]);
    ok(sasl_scram_read_challenge(TEXT("r=a,s=AAAA,i=1,x=y"), &challenge));
    ok(sasl_scram_read_verdict(TEXT(KIT_VERDICT ",x=y"), signature));
}

static void
test_written(void)
{
    struct buffer out;
    buffer_init(&out, 10);
    ok(sasl_scram_write_name(TEXT("a,=b"), &out));
    is_text(buffer_text(&out), TEXT("a=2C=3Db"), "escaped");
    ok(!sasl_scram_write_name(TEXT("ab,"), &out));
    is_text(buffer_text(&out), TEXT("a=2C=3Db"), "unchanged at the limit");
    buffer_free(&out);
}

static void
scram_tests(void)
{
    test_good();
    test_first();
    test_limits();
    test_others();
    test_written();
}


int
main(void)
{
    struct users *users = kit_users(users_content);
    test_names();
    test_plain(users);
    test_login(users);
    test_lines(users);
    test_scram(users);
    tap_tests("");
    users_free(&users);
    scram_tests();
    return done();
}
