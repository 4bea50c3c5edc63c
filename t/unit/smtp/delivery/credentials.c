/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Sessions that log in: each host gets its own password, and a wrong one is not tried
 * again at another address. */
#include "smtp/delivery/credentials.h"

#include "smtp/oauth/tokens.h"
#include "sched/route/target.h"
#include "t/sim/delivery_world.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- A stand-in for the keeper of tokens ----------------------------------------- */

struct tokens {
    enum tokens_status status;
    const char *token, *why;
    bool is_renewed;
    int asked, refused;
};

enum tokens_status
tokens_find(struct tokens *t, struct text host, uint16_t port, struct text user,
            struct text *token, const char **why)
{
    ok(text_equal(host, TEXT("a.test")) && port != 0 && text_equal(user, TEXT("joe")));
    t->asked++;
    *token = text_from(t->token);
    *why = t->why;
    return t->status;
}

bool
tokens_refused(struct tokens *t, struct text host, uint16_t port, struct text user,
               struct text token)
{
    ok(text_equal(host, TEXT("a.test")) && port != 0 && text_equal(user, TEXT("joe")) &&
       text_equal(token, text_from(t->token)));
    t->refused++;
    return t->is_renewed;
}

/* --------------------------------------------------------------------------------- */

static const struct host_rule welcome[] = {
    {"EHLO", "250-host\r\n250 AUTH PLAIN XOAUTH2\r\n", 0, 0},
    {"AUTH", "235 2.7.0 welcome\r\n",                  0, 0},
    {NULL,   NULL,                                     0, 0}
};
static const struct host_rule refusal[] = {
    {"EHLO", "250-host\r\n250 AUTH PLAIN XOAUTH2\r\n", 0, 0},
    {"AUTH", "535 5.7.8 no\r\n",                       0, 0},
    {NULL,   NULL,                                     0, 0}
};
/* "\0joe\0one" and "\0jim\0two" */
static const char joe[] = "AUTH PLAIN AGpvZQBvbmU=\n",
                  jim[] = "AUTH PLAIN AGppbQB0d28=\n";

static struct secrets *
begin(struct bed *b, const char *target, const char *table)
{
    struct transport_params base;
    struct buffer mistakes;
    char problem[TARGET_PROBLEM_MAX];
    buffer_init(&mistakes, 4096);
    transport_params_default(&base);
    bed_start(b);
    b->a.rules = b->b.rules = welcome;
    struct secrets *secrets = secrets_new(text_from(table), &mistakes);
    host_must(secrets != NULL && target_parse(text_from(target), b->settings.smtp_port,
                                              &base, &b->target, problem));
    b->target.port = b->settings.smtp_port; /* both hosts have the system's choice */
    if (b->target.more_count > 0)
        b->target.more[0].port = b->settings.smtp_port;
    b->target.tls = TARGET_TLS_NONE;
    b->settings.secrets = secrets;
    delivery_reload(b->delivery, &b->settings);
    add_mail(b, "u@x.test");
    return secrets;
}

static void
end(struct bed *b, struct secrets *secrets)
{
    bed_stop(b);
    secrets_free(&secrets);
}

TEST(one)
{
    struct bed b;
    struct secrets *s = begin(&b, "smtp://joe@a.test", "a.test joe one");
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "sent");
    ok_named(has(&b.a.commands, joe), "after the login");
    end(&b, s);
}

TEST(no_user)
{
    struct bed b;
    struct secrets *s = begin(&b, "smtp://a.test", "a.test joe one");
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "sent");
    ok_named(!has(&b.a.commands, "AUTH"),
             "nobody logs in whom the target does not name");
    end(&b, s);
}

TEST(next)
{
    static const char *const greetings[] = {NULL, "421 busy\r\n", "220 ok\r\n"};
    for (size_t i = 0; i < 3; i++) {
        struct bed b;
        struct secrets *s = begin(&b, "smtp://joe@a.test|jim@b.test",
                                  "a.test joe one\nb.test jim two\nb.test joe three");
        b.a.greeting = greetings[i];
        b.a.rules = refusal;
        run(&b, "");
        is_settled(&b, "u@x.test sent 2.0.0 none\n", "sent by the second");
        is_number(b.a.connections, 1, "the first was tried once");
        ok_named(has(&b.b.commands, jim), "with its own user");
        ok_named(!has(&b.b.commands, joe), "and not with the other's");
        ok(!b.manager.has_trouble);
        ok_named(has(&b.lines, "refuses our user joe: 535 5.7.8 no") == (i == 2),
                 "the log tells of a refused user");
        end(&b, s);
    }
}

TEST(second_without_user)
{
    struct bed b;
    struct secrets *s = begin(&b, "smtp://joe@a.test|b.test", "a.test joe one");
    b.a.greeting = NULL;
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "sent by the second");
    ok_named(!has(&b.b.commands, "AUTH"), "which wants no user");
    end(&b, s);
}

TEST(refused)
{
    struct bed b;
    struct secrets *s = begin(&b, "smtp://joe@a.test", "a.test joe one");
    sim_dns_address(b.dns, "a.test", "127.0.0.3");
    b.a.rules = b.b.rules = refusal;
    run(&b, "");
    is_settled(&b, "", "no verdict for any mail");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.8", "the smarthost a.test[127.0.0.");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.8",
               "] refuses our user joe: 535 5.7.8 no; check auth_passwords");
    is_number(b.a.connections + b.b.connections, 1, "tried at one of its addresses");
    ok_named(!has(&b.lines, "one"), "the log does not tell the password");
    end(&b, s);
}

/* A refusal is reported, even if the next host has a reason of its own. */
TEST(refused_and_busy)
{
    struct bed b;
    struct secrets *s = begin(&b, "smtp://joe@a.test|b.test", "a.test joe one");
    b.a.rules = refusal;
    b.b.greeting = "421 4.3.2 busy\r\n";
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.8", "refuses our user joe");
    is_number(b.b.connections, 1, "the second was tried");
    end(&b, s);
}

TEST(gone)
{
    struct bed b;
    struct secrets *s = begin(&b, "smtp://joe@a.test", "a.test jim one");
    run(&b, "");
    is_trouble(
        &b, VERDICT_DEFERRED, "4.3.5",
        "cannot log in to the smarthost a.test as joe: its password is no longer "
        "in the settings");
    is_number(b.a.connections, 0, "nobody was asked");
    end(&b, s);
}

static void
write_file(const char *path, const char *content, size_t size)
{
    FILE *f = fopen(path, "w");
    host_must(f != NULL && fwrite(content, 1, size, f) == size && fclose(f) == 0);
}

TEST(token)
{
    char path[] = "/tmp/petrel-login-XXXXXX", table[100], large[10000];
    int file = mkstemp(path);
    host_must(file >= 0 && close(file) == 0);
    snprintf(table, sizeof(table), "a.test joe @%s", path);
    memset(large, 'x', sizeof(large));
    static const struct {
        const char *content, *trouble;
    } all[] = {
        {"a-token\n", NULL                                 },
        {"",          "the password is empty"              },
        {"two words", "the token is too long or has spaces"},
        {NULL,        "its token file: File too large"     },
    };
    for (size_t i = 0; i < 4; i++) {
        struct bed b;
        struct secrets *s = begin(&b, "smtp://joe@a.test?auth=xoauth2", table);
        if (all[i].content)
            write_file(path, all[i].content, strlen(all[i].content));
        else
            write_file(path, large, sizeof(large));
        run(&b, "");
        if (all[i].trouble)
            is_trouble(&b, VERDICT_DEFERRED, "4.3.5", all[i].trouble);
        else
            ok_named(has(&b.a.commands,
                         "AUTH XOAUTH2 dXNlcj1qb2UBYXV0aD1CZWFyZXIgYS10b2"
                         "tlbgEB\n"),
                     "the token, without its line end");
        end(&b, s);
    }
    unlink(path);
    struct bed b;
    struct secrets *s = begin(&b, "smtp://joe@a.test|b.test", table);
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "no token: the next host");
    ok(has(&b.lines, "its token file: No such file"));
    end(&b, s);
    host_must(mkfifo(path, 0600) == 0);
    int writer = open(path, O_RDWR);
    s = begin(&b, "smtp://joe@a.test|b.test", table);
    alarm(60);
    run(&b, "");
    alarm(0);
    ok_named(has(&b.lines, "its token file: it is not a regular file"),
             "a FIFO, whose writer says nothing, is not waited for");
    end(&b, s);
    close(writer);
    unlink(path);
}

/* Where the address is not our own, nothing is said without TLS. */
TEST(distant)
{
    struct bed b;
    struct target *t = &b.target;
    struct secrets *s = begin(&b, "smtp://joe@a.test", "a.test joe one");
    struct credentials *login = NULL;
    struct net_address address;
    struct outcome why;
    host_must(net_address_parse(TEXT("192.0.2.1:25"), 0, &address));
    ok(credentials_new(&login, b.loop, s, NULL, t, 0, &address, &why) && login != NULL);
    ok_named(!credentials_login(login)->may_be_clear, "a distant host");
    char nonce[SASL_NONCE_SIZE];
    memcpy(nonce, credentials_login(login)->nonce, sizeof(nonce));
    credentials_free(&login);
    t->auth_clear = true;
    ok(credentials_new(&login, b.loop, s, NULL, t, 0, &address, &why));
    ok_named(credentials_login(login)->may_be_clear, "the user allows it");
    ok_named(memcmp(nonce, credentials_login(login)->nonce, sizeof(nonce)) != 0,
             "a fresh nonce");
    is_text(credentials_login(login)->credentials.password, TEXT("one"), "a copy");
    credentials_free(&login);
    ok(login == NULL && credentials_login(NULL) == NULL);
    credentials_free(&login);
    end(&b, s);
}

static struct secrets *
begin_account(struct bed *b, const char *target, struct tokens *tokens)
{
    static const struct secrets_account account = {TEXT("a.test"), TEXT("joe"), 0,
                                                   TEXT("name")};
    struct secrets *s = begin(b, target, "a.test joe x");
    struct buffer errors;
    buffer_init(&errors, 1000);
    secrets_free(&s);
    s = secrets_new(TEXT("b.test jim two"), &errors);
    host_must(s != NULL && secrets_add_account(s, &account, &errors));
    b->settings.secrets = s;
    delivery_reload(b->delivery, &b->settings);
    delivery_set_tokens(b->delivery, tokens);
    return s;
}

TEST(account)
{
    struct bed b;
    struct tokens t = {.status = TOKENS_READY, .token = "a-token", .why = ""};
    struct secrets *s = begin_account(&b, "smtp://joe@a.test", &t);
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "sent");
    ok_named(has(&b.a.commands, "AUTH XOAUTH2 "
                                "dXNlcj1qb2UBYXV0aD1CZWFyZXIgYS10b2tlbgEB\n"),
             "with the token of the account");
    is_number(t.refused, 0, "nothing was refused");
    end(&b, s);
    s = begin_account(&b, "smtp://joe@a.test", NULL);
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.3.5",
               "its account is no longer in the settings");
    end(&b, s);
}

/* The scheduler knows that the token lacks: no trouble of the site. */
TEST(account_lacks)
{
    static const enum tokens_status lacks[] = {TOKENS_ASKED, TOKENS_FAILED};
    for (size_t i = 0; i < 2; i++) {
        struct bed b;
        struct tokens t = {.status = lacks[i], .token = "", .why = "nobody is there"};
        struct secrets *s = begin_account(&b, "smtp://joe@a.test", &t);
        run(&b, "");
        is_settled(&b, "", "no verdict");
        ok_named(!b.manager.has_trouble && b.manager.ended == 1,
                 "it ends without trouble");
        is_number(b.a.connections, 0, "nobody was asked");
        end(&b, s);
        s = begin_account(&b, "smtp://joe@a.test|jim@b.test", &t);
        run(&b, "");
        is_settled(&b, "u@x.test sent 2.0.0 none\n", "sent by the second host");
        end(&b, s);
        s = begin_account(&b, "smtp://joe@a.test|jim@b.test", &t);
        b.b.greeting = "421 4.3.2 busy\r\n";
        run(&b, "");
        is_trouble(&b, VERDICT_DEFERRED, "4.3.2", "busy");
        end(&b, s);
    }
}

TEST(account_refused)
{
    struct bed b;
    struct tokens t = {
        .status = TOKENS_READY, .token = "a-token", .why = "", .is_renewed = true};
    struct secrets *s = begin_account(&b, "smtp://joe@a.test", &t);
    sim_dns_address(b.dns, "a.test", "127.0.0.3");
    b.a.rules = b.b.rules = refusal;
    run(&b, "");
    is_settled(&b, "", "no verdict");
    ok_named(!b.manager.has_trouble && b.manager.ended == 1, "it ends without trouble");
    is_number(b.a.connections + b.b.connections, 1, "tried at one of its addresses");
    is_number(t.refused, 1, "the token is dropped");
    ok(has(&b.lines, "refuses our user joe: 535 5.7.8 no"));
    ok(has(&b.lines, "; trying another token"));
    ok_named(!has(&b.lines, "a-token"), "the log does not tell the token");
    end(&b, s);
    t.is_renewed = false;
    s = begin_account(&b, "smtp://joe@a.test", &t);
    b.a.rules = refusal;
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.8",
               "535 5.7.8 no; check oauth, and the rights of the account there");
    end(&b, s);
}

int
main(void)
{
    spool.content = malloc(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    return done();
}
