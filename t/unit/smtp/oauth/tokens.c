/* Proves how tokens are fetched, kept and renewed, with a provider in the same process:
 * over TLS, and with every failure. */
/* link: t/sim/clock.c */
/* link: t/sim/dns.c */
#include "smtp/oauth/tokens.h"

#include "base/http/http_call.h"
#include "base/log/log.h"
#include "t/sim/clock.h"
#include "t/sim/sim_dns.h"
#include "t/support/folder.h"
#include "t/support/tls_world.h"

/* No secret of a test may be in the log: each has this word. */
#define CANARY "canary"

struct provider {
    struct world *world;
    struct dns *dns;
    struct tls_server *server;
    struct tls_client *client;
    struct net_connection *connection;
    struct http_caller *http;
    struct disk *spool;
    struct log *log;
    struct tokens *tokens;
    struct oauth_account account;
    char folder[64], path[160];
    char answer[1000]; /* "" : none, the request waits */
    int requests, changed, drained;
    char body[2000]; /* of the last request */
    char told[600];  /* when `changed` was called */
    char seen[4096]; /* the state file when `changed` was called */
};

static const struct secrets *secrets;

static void
provider_happened(void *context, enum net_event event)
{
    struct provider *p = context;
    struct text input = net_input(p->connection), body;
    if (event == NET_ENDED || event == NET_FAILED)
        net_abort(&p->connection);
    if (event != NET_INPUT || !text_ends_nocase(input, TEXT("end")))
        return;
    const char *blank = memmem(input.at, input.length, "\r\n\r\n", 4);
    body = text_after(input, (size_t)(blank - input.at) + 4);
    text_copy(p->body, sizeof(p->body), body);
    p->requests++;
    net_consume(p->connection, input.length);
    if (p->answer[0] == '\0')
        return;
    net_send(p->connection, text_from(p->answer));
    net_close(&p->connection);
}

static void
provider_accepted(void *context, struct net_connection *connection)
{
    struct provider *p = context;
    struct net_tls tls = as_server(p->server);
    p->connection = connection;
    net_attach(connection, provider_happened, p);
    net_start_tls(connection, &tls);
}

static void
provider_changed(void *context, const struct tokens_view *view)
{
    struct provider *p = context;
    FILE *f = fopen(p->path, "r");
    size_t size = f != NULL ? fread(p->seen, 1, sizeof(p->seen) - 1, f) : 0;
    p->seen[size] = '\0';
    if (f != NULL)
        fclose(f);
    ok(strcmp(view->account->user, p->account.user) == 0);
    snprintf(p->told, sizeof(p->told), "%d %s", (int)view->status, view->why);
    p->changed++;
}

static void
answers(struct provider *p, const char *status, const char *fields, const char *body)
{
    snprintf(p->answer, sizeof(p->answer),
             "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, fields,
             strlen(body), body);
}

static void
grants(struct provider *p, const char *access, const char *refresh, int lifetime_s)
{
    char body[500];
    snprintf(body, sizeof(body), "{\"access_token\":\"%s\",\"expires_in\":%d%s%s%s}",
             access, lifetime_s, refresh[0] != '\0' ? ",\"refresh_token\":\"" : "",
             refresh, refresh[0] != '\0' ? "\"" : "");
    answers(p, "200 OK", "", body);
}

static void
tokens_begin(struct provider *p)
{
    p->tokens = tokens_new(&(struct tokens_settings){p->world->loop, p->log, p->spool,
                                                     p->http, provider_changed, p});
}

static void
tokens_use(struct provider *p)
{
    tokens_set(p->tokens, &p->account, 1);
}

/* row: after HOST USER; the request ends with "end". */
static struct provider *
provider_start(const char *keys)
{
    static struct provider provider;
    struct provider *p = &provider;
    struct net_address at = address("127.0.0.1:0");
    char error[OAUTH_REASON_MAX], row[600], key[OAUTH_KEY_SIZE];
    memset(p, 0, sizeof(*p));
    p->world = start(NULL);
    p->dns = dns_new(p->world->loop, TEXT(""), error, sizeof(error));
    sim_dns_address(p->dns, "mail.example.net", "127.0.0.1");
    p->server = server_of(secrets, "good");
    p->client = client_of(secrets, "ca.pem");
    p->world->listener =
        net_listen(p->world->net, &at, 0, provider_accepted, p, error, sizeof(error));
    p->http = http_caller_new(&(struct http_caller_settings){
        .loop = p->world->loop, .net = p->world->net, .dns = p->dns, .tls = &p->client});
    folder_make(p->folder, sizeof(p->folder), "tokens");
    ok(disk_open(&p->spool, p->folder, true) == 0);
    p->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    snprintf(row, sizeof(row),
             "smtp.x.test u@x.test custom client=c scope=end "
             "token=https://mail.example.net:%u/token %s",
             net_where(p->world)->port, keys);
    ok(oauth_parse_account(text_from(row), &p->account, error));
    oauth_account_key(&p->account, key);
    snprintf(p->path, sizeof(p->path), "%.63s/oauth/%s", p->folder, key);
    tokens_begin(p);
    return p;
}

static void
provider_finish(struct provider *p)
{
    tokens_free(&p->tokens);
    http_caller_free(&p->http);
    dns_free(&p->dns);
    net_abort(&p->connection);
    tls_server_free(&p->server);
    tls_client_free(&p->client);
    loop_turn(p->world->loop, 0);
    disk_close(&p->spool);
    log_free(&p->log);
    net_finish(p->world);
    folder_remove(p->folder);
}

static enum tokens_status
find(struct provider *p, char token[200], char why[400])
{
    struct text t = TEXT("");
    const char *reason = "";
    enum tokens_status status =
        tokens_find(p->tokens, TEXT("SMTP.x.test"), 587, TEXT("u@x.test"), &t, &reason);
    text_copy(token, 200, t);
    text_copy(why, 400, text_from(reason));
    return status;
}

static void
is_ready(struct provider *p, const char *token, const char *name)
{
    char got[200], why[400];
    until(p->world, find(p, got, why) == TOKENS_READY && strcmp(got, token) == 0);
    is_string(got, token, name);
}

static void
is_failed(struct provider *p, const char *want, const char *name)
{
    char got[200], why[400];
    until(p->world, find(p, got, why) == TOKENS_FAILED);
    is_string(why, want, name);
}

TEST(client)
{
    struct provider *p = provider_start("grant=client secret=" CANARY "-secret");
    struct stat info;
    char got[200], why[400];
    struct text none;
    const char *reason;
    is_number(tokens_find(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"), &none,
                          &reason),
              TOKENS_NO_ACCOUNT, "no account yet");
    grants(p, CANARY "-1", "", 3600);
    tokens_use(p);
    is_number(p->requests, 0, "nothing happens within the start");
    is_number(find(p, got, why), TOKENS_ASKED, "asked without being told");
    is_ready(p, CANARY "-1", "the token");
    is_string(p->body,
              "grant_type=client_credentials&client_id=c&client_secret=" CANARY
              "-secret&scope=end",
              "the request");
    is_number(p->changed, 1, "the user is told");
    is_string(p->told, "1 ", "  that it is there");
    ok(stat(p->path, &info) == 0 && (info.st_mode & 07777) == 0600);
    ok_named(strstr(p->seen, CANARY "-1") != NULL, "durable before it is used");
    for (int i = 0; i < 1000; i++)
        (void)find(p, got, why);
    is_number(find(p, got, why), TOKENS_READY, "ready");
    loop_turn(p->world->loop, 5);
    is_number(p->requests, 1, "and is not asked for again");

    tokens_free(&p->tokens);
    tokens_begin(p);
    tokens_use(p);
    is_number(find(p, got, why), TOKENS_READY, "after a restart it is there");
    loop_turn(p->world->loop, 5);
    is_number(p->requests, 1, "  from the file");

    grants(p, CANARY "-2", "", 3600);
    ok(tokens_refused(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                      TEXT("other")));
    is_number(find(p, got, why), TOKENS_READY, "another one was refused");
    ok(tokens_refused(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                      TEXT(CANARY "-1")));
    ok_named(find(p, got, why) != TOKENS_READY, "a refused one is not used again");
    is_ready(p, CANARY "-2", "but replaced");
    is_number(p->requests, 2, "two requests in all");
    provider_finish(p);
}

TEST(rotation)
{
    struct provider *p;
    char first[100];
    snprintf(first, sizeof(first), "refresh=@%s/first", secrets->directory);
    FILE *f = fopen(first + 9, "w");
    fprintf(f, " " CANARY "-r0\n");
    fclose(f);
    p = provider_start(first);
    grants(p, CANARY "-a1", CANARY "-r1", 3600);
    tokens_use(p);
    is_ready(p, CANARY "-a1", "by the first refresh token");
    ok(strstr(p->body, "refresh_token=" CANARY "-r0&client_id=c&scope=end") != NULL);
    ok_named(strstr(p->seen, CANARY "-r1") != NULL,
             "the next one was durable before anything was used");
    grants(p, CANARY "-a2", "", 3600);
    ok(tokens_refused(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                      TEXT(CANARY "-a1")));
    is_ready(p, CANARY "-a2", "by the next one");
    ok(strstr(p->body, "refresh_token=" CANARY "-r1&") != NULL);
    tokens_free(&p->tokens);
    tokens_begin(p);
    grants(p, CANARY "-a3", "", 3600);
    tokens_use(p);
    ok(tokens_refused(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                      TEXT(CANARY "-a2")));
    is_ready(p, CANARY "-a3", "after a restart");
    ok_named(strstr(p->body, "refresh_token=" CANARY "-r1&") != NULL,
             "the file's counts, not the first");
    provider_finish(p);
}

/* The clock stands but for these milliseconds. */
static void
later(struct provider *p, int64_t ms)
{
    clock_turns(p->world->loop, 30);
    clock_pass(ms);
    clock_turns(p->world->loop, 60);
    for (int i = 0; i < 2000 && p->connection != NULL; i++)
        clock_turn(p->world->loop);
}

static void
count_view(void *context, const struct tokens_view *view)
{
    struct provider *p = context;
    snprintf(p->told, sizeof(p->told), "%s %d %lld %s%s", view->account->host,
             (int)view->status, (long long)view->until_ms, view->trouble,
             view->refused ? " refused" : "");
}

TEST(trouble)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    char got[200], why[400];
    answers(p, "503 Busy", "", "<html>" CANARY);
    clock_stop();
    loop_turn(p->world->loop, 0);
    tokens_use(p);
    later(p, 0);
    is_number(find(p, got, why), TOKENS_FAILED, "trouble");
    ok_named(strncmp(why, "status 503: a web page, not JSON: check the provider's address", 62) == 0, "  and why");
    is_number(p->requests, 1, "asked once");
    later(p, 29000);
    is_number(p->requests, 1, "again after 30 s");
    later(p, 2000);
    is_number(p->requests, 2, "  not before");
    later(p, 58000);
    is_number(p->requests, 2, "then after 60 s");
    answers(p, "429 Later", "Retry-After: 600\r\n", "");
    later(p, 3000);
    is_number(p->requests, 3, "  and so on");
    later(p, 590000);
    is_number(p->requests, 3, "Retry-After is heeded");
    grants(p, CANARY "-1", "", 3600);
    later(p, 15000);
    is_number(find(p, got, why), TOKENS_READY, "it works again");
    is_number(p->requests, 4, "  after 600 s");
    is_string(why, "", "  and nothing is wrong");
    clock_go();
    provider_finish(p);
}

TEST(refused)
{
    struct provider *p = provider_start("secret=" CANARY);
    char got[200], why[400], content[600];
    tokens_use(p);
    is_failed(p, "nobody has logged in; run: petrel oauth login smtp.x.test u@x.test",
              "without a refresh token");
    is_number(p->requests, 0, "  nobody is asked");
    tokens_free(&p->tokens);
    snprintf(
        content, sizeof(content),
        "{\"host\":\"smtp.x.test\",\"user\":\"u@x.test\",\"client\":\"c\",\"access\":"
        "\"\",\"expires\":0,\"refresh\":\"" CANARY "-r\"}");
    FILE *f = fopen(p->path, "w");
    fputs(content, f);
    fclose(f);
    tokens_begin(p);
    answers(p, "400 Bad", "",
            "{\"error\":\"invalid_grant\",\"error_description\":\"AADSTS70008\"}");
    clock_stop();
    loop_turn(p->world->loop, 0);
    tokens_use(p);
    later(p, 0);
    is_number(find(p, got, why), TOKENS_FAILED, "refused");
    is_string(why,
              "status 400: invalid_grant: AADSTS70008; run: petrel oauth login "
              "smtp.x.test u@x.test",
              "with what to do");
    tokens_each(p->tokens, count_view, p);
    ok_named(strstr(p->told, "u@x.test refused") != NULL, "the view says that it lasts");
    later(p, 400000);
    later(p, 400000);
    is_number(p->requests, 1, "not asked again for 15 min");
    grants(p, CANARY "-1", "", 3600);
    f = fopen(p->path, "w");
    fputs(content, f);
    fclose(f);
    later(p, 5000);
    is_number(find(p, got, why), TOKENS_READY, "but when somebody has logged in");
    tokens_each(p->tokens, count_view, p);
    ok_named(strstr(p->told, "refused") == NULL, "then it is over");
    clock_go();
    provider_finish(p);
}

/* Another process asks for the same account. */
TEST(lock)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    char got[200], why[400], lock[200];
    ok(disk_make_directory(p->spool, "oauth", 0700) == 0);
    snprintf(lock, sizeof(lock), "oauth/%s.lock", strrchr(p->path, '/') + 1);
    int other = disk_lock(p->spool, lock, 0, 1);
    ok(other >= 0);
    grants(p, CANARY "-1", "", 3600);
    clock_stop();
    loop_turn(p->world->loop, 0);
    tokens_use(p);
    later(p, 10000);
    is_number(p->requests, 0, "nobody is asked meanwhile");
    is_number(find(p, got, why), TOKENS_ASKED, "we wait");
    FILE *f = fopen(p->path, "w");
    fprintf(
        f,
        "{\"host\":\"smtp.x.test\",\"user\":\"u@x.test\",\"client\":\"c\",\"access\":"
        "\"" CANARY "-other\",\"expires\":%lld,\"refresh\":\"\"}",
        (long long)loop_now_ms(p->world->loop) + 3000000);
    fclose(f);
    disk_close_file(p->spool, other);
    later(p, 1000);
    is_number(find(p, got, why), TOKENS_READY, "the other one's token is taken");
    is_string(got, CANARY "-other", "  from the file");
    is_number(p->requests, 0, "  without a request");
    clock_go();
    provider_finish(p);
}

TEST(files)
{
    char got[200], why[400];
    struct provider *p = provider_start("grant=client secret=" CANARY);
    snprintf(why, sizeof(why), "mkdir -p %s.new/x", p->path);
    ok(system(why) == 0);
    grants(p, CANARY "-1", CANARY "-r1", 3600);
    tokens_use(p);
    until(p->world, find(p, got, why) == TOKENS_FAILED);
    ok_named(strstr(why, "cannot be written: ") != NULL,
             "a token whose refresh token is not durable is not used");
    tokens_free(&p->tokens);
    snprintf(why, sizeof(why), "rmdir %s.new/x %s.new", p->path, p->path);
    ok(system(why) == 0);
    FILE *f = fopen(p->path, "w");
    fputs("{" CANARY, f);
    fclose(f);
    tokens_begin(p);
    tokens_use(p);
    is_ready(p, CANARY "-1", "a damaged file is replaced");

    /* The expiry of a clock that was ahead by a year. */
    tokens_free(&p->tokens);
    f = fopen(p->path, "w");
    fprintf(
        f,
        "{\"host\":\"smtp.x.test\",\"user\":\"u@x.test\",\"client\":\"c\",\"access\":"
        "\"" CANARY "-future\",\"expires\":%lld,\"refresh\":\"\"}",
        (long long)loop_now_ms(p->world->loop) + 31536000000);
    fclose(f);
    tokens_begin(p);
    tokens_use(p);
    is_ready(p, CANARY "-1", "nor is one believed that is good for a year");
    provider_finish(p);
}

static bool
refused(struct provider *p, const char *token)
{
    return tokens_refused(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                          text_from(token));
}

/* A fresh token that is refused, too, is as a wrong password; but not for ever. */
TEST(refused_twice)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    char got[200], why[400];
    grants(p, CANARY "-1", "", 3600);
    tokens_use(p);
    is_ready(p, CANARY "-1", "the first");
    grants(p, CANARY "-2", "", 3600);
    ok_named(refused(p, CANARY "-1") && refused(p, CANARY "-1"),
             "refused by two sessions: there will be another one");
    is_ready(p, CANARY "-2", "there it is");
    is_number(p->requests, 2, "  by one request");
    ok_named(refused(p, CANARY "-1"), "an old session: it is there already");
    ok_named(!refused(p, CANARY "-2"), "a fresh one is as a wrong password");
    is_number(find(p, got, why), TOKENS_READY, "  and stays");
    is_number(p->requests, 2, "  without a request");
    grants(p, CANARY "-3", "", 3600);
    ok_named(refused(p, CANARY "-2"), "refused later: another one");
    is_ready(p, CANARY "-3", "there it is");
    ok_named(!tokens_refused(p->tokens, TEXT("other.test"), 0, TEXT("x"), TEXT("y")),
             "of no account");
    provider_finish(p);
}

/* Both clocks. */
static void
pass(struct provider *p, int64_t ms)
{
    clock_step(ms);
    later(p, ms);
}

/* Renewed without mail; when that fails the owner learns when the token ends. */
TEST(renewal)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    char got[200], why[400];
    grants(p, CANARY "-1", "", 3600);
    clock_stop();
    loop_turn(p->world->loop, 0);
    tokens_use(p);
    pass(p, 0);
    is_number(find(p, got, why), TOKENS_READY, "there");
    pass(p, 54 * 60 * 1000);
    is_number(p->requests, 1, "not renewed before");
    answers(p, "503 Busy", "", "");
    pass(p, 62 * 1000);
    is_number(p->requests, 2, "renewed 5 min before its end");
    is_number(find(p, got, why), TOKENS_READY, "in vain, but it is still good");
    is_string(p->told, "1 ", "the owner knows it as good");
    tokens_each(p->tokens, count_view, p);
    ok_named(strstr(p->told, " status 503") != NULL, "a view has the trouble");
    ok_named(strstr(p->told, "refused") == NULL, "which is no refusal");
    for (int i = 0; i < 6; i++)
        pass(p, 59 * 1000);
    is_number(find(p, got, why), TOKENS_FAILED, "then it has ended");
    is_string(p->told, "3 no token of u@x.test from mail.example.net: status 503",
              "the owner has learnt it");
    grants(p, CANARY "-2", "", 3600);
    pass(p, 16 * 60 * 1000);
    is_number(find(p, got, why), TOKENS_READY, "there again");
    is_string(p->told, "1 ", "the owner has learnt it");
    tokens_set(p->tokens, NULL, 0);
    is_string(p->told, "0 ", "an account that is removed");
    clock_go();
    provider_finish(p);
}

/* The clock is set forward by a day while nothing happens. */
TEST(clock)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    char got[200], why[400];
    grants(p, CANARY "-1", "", 3600);
    clock_stop();
    loop_turn(p->world->loop, 0);
    tokens_use(p);
    pass(p, 0);
    grants(p, CANARY "-2", "", 3600);
    clock_step(86400000);
    loop_turn(p->world->loop, 0);
    (void)find(p, got, why);
    pass(p, 0);
    is_number(find(p, got, why), TOKENS_READY, "asked without delay");
    is_string(got, CANARY "-2", "  for another one");
    grants(p, CANARY "-3", "", 3600);
    clock_step(-INT64_C(2) * 86400000);
    loop_turn(p->world->loop, 0);
    ok_named(find(p, got, why) != TOKENS_READY, "set back: no token is immortal");
    pass(p, 0);
    is_number(find(p, got, why), TOKENS_READY, "  and a new one comes");
    clock_go();
    provider_finish(p);
}

static void
note_drained(void *context)
{
    struct provider *p = context;
    p->drained++;
}

/* A stop waits for the answer, which has a new refresh token. */
TEST(drain)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    char got[200], why[400];
    tokens_use(p);
    until(p->world, p->requests == 1);
    tokens_drain(p->tokens, 60000, note_drained, p);
    loop_turn(p->world->loop, 5);
    is_number(p->drained, 0, "a request is under way");
    grants(p, CANARY "-1", "", 3600);
    net_send(p->connection, text_from(p->answer));
    net_close(&p->connection);
    until(p->world, p->drained == 1);
    is_number(find(p, got, why), TOKENS_READY, "its answer was taken");
    ok_named(strstr(p->seen, CANARY "-1") != NULL, "and is durable");
    (void)tokens_refused(p->tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                         TEXT(CANARY "-1"));
    loop_turn(p->world->loop, 5);
    is_number(p->requests, 1, "no other request begins");
    provider_finish(p);

    p = provider_start("grant=client secret=" CANARY);
    tokens_use(p);
    until(p->world, p->requests == 1);
    tokens_drain(p->tokens, 1, note_drained, p);
    until(p->world, p->drained == 1);
    is_number(p->changed, 0, "a silent provider is not waited for");
    provider_finish(p);

    p = provider_start("grant=client secret=" CANARY);
    tokens_drain(p->tokens, 60000, note_drained, p);
    is_number(p->drained, 0, "not within the call");
    loop_turn(p->world->loop, 5);
    is_number(p->drained, 1, "nothing is under way");
    provider_finish(p);
}

/* Ends while the provider is silent: neither a call nor a lock is left. */
TEST(end)
{
    struct provider *p = provider_start("grant=client secret=" CANARY);
    tokens_use(p);
    until(p->world, p->requests == 1);
    tokens_free(&p->tokens);
    loop_turn(p->world->loop, 5);
    is_number(p->changed, 0, "nobody is told");
    net_abort(&p->connection);
    tokens_begin(p);
    grants(p, CANARY "-1", "", 3600);
    tokens_use(p);
    is_ready(p, CANARY "-1", "and the lock is free");
    tokens_use(p); /* a reload */
    is_ready(p, CANARY "-1", "a reload keeps the token");
    is_number(p->requests, 2, "  without a request");
    provider_finish(p);
}

int
main(void)
{
    struct secrets made;
    char log[100], word[200];
    make_secrets(&made);
    secrets = &made;
    snprintf(log, sizeof(log), "%s/log", made.directory);
    if (freopen(log, "w", stderr) == NULL)
        abort();
    tap_tests("");
    fflush(stderr);
    snprintf(word, sizeof(word), "! grep " CANARY " %s", log);
    ok_named(system(word) == 0, "no secret is in the log");
    snprintf(word, sizeof(word),
             "grep -q 'token for u@x.test at smtp.x.test until 20' %s", log);
    ok_named(system(word) == 0, "but that there is a token");
    snprintf(
        word, sizeof(word),
        "grep -q 'oauth.*error.*no token for u@x.test at smtp.x.test: status 400' %s",
        log);
    ok_named(system(word) == 0, "or why not");
    if (tap_failed > 0) {
        snprintf(word, sizeof(word), "sed 's/^/# /' %s", log);
        (void)!system(word);
    }
    drop_secrets(&made);
    return done();
}
