/* Proves what becomes of tokens when files, clocks and processes do not behave: in
 * virtual time, on the disk's stand-in, with a provider that answers on command. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/loop.c */
#include "smtp/oauth/tokens.h"

#include "base/disk/disk.h"
#include "base/http/http_call.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No secret of a test may be in the log: each has this word. */
#define CANARY "canary"

enum { HOUR_MS = 3600 * 1000, CALLS = 128, SYNC_MS = 10 };

/* --- In place of base/http/http_call.c --------------------------------------------- */

struct http_call {
    http_called *called; /* NULL: over */
    void *context;
    char body[600];
};
static struct {
    struct http_call calls[CALLS];
    size_t started, cancelled;
} provider;

struct http_call *
http_call_start(struct http_caller *caller, struct text url,
                const struct http_request *request,
                const struct http_call_options *options, http_called *called,
                void *context)
{
    struct http_call *call = &provider.calls[provider.started++ % CALLS];
    (void)caller;
    (void)url;
    (void)options;
    ok(call->called == NULL);
    *call = (struct http_call){.called = called, .context = context};
    text_copy(call->body, sizeof(call->body), request->body);
    return call;
}

void
http_call_cancel(struct http_call **call)
{
    if (*call != NULL && (*call)->called != NULL) {
        (*call)->called = NULL;
        provider.cancelled++;
    }
    *call = NULL;
}

static struct http_call *
asked(void)
{
    return &provider.calls[(provider.started + CALLS - 1) % CALLS];
}

static void
answer_with(const char *response)
{
    static const struct http_limits limits = {HTTP_LINES_MAX, HTTP_HEAD_MAX,
                                              HTTP_BODY_MAX};
    struct http_call *call = asked();
    http_called *called = call->called;
    struct text input = text_from(response);
    FIXTURE(http_reader, reader, http_reader_init, http_reader_free, HTTP_RESPONSE, &limits);
    ok(http_reader_add(&reader, &input) == PROGRESS_DONE);
    call->called = NULL;
    if (called != NULL)
        called(call->context,
             &(struct http_result){.response = &reader, .connected = true});
}

static void
answer(const char *status, const char *fields, const char *body)
{
    char all[1000];
    snprintf(all, sizeof(all), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
             fields, strlen(body), body);
    answer_with(all);
}

static void
grant(const char *access, const char *refresh, int lifetime_s)
{
    char body[500];
    snprintf(body, sizeof(body), "{\"access_token\":\"%s\",\"expires_in\":%d%s%s%s}",
             access, lifetime_s, refresh[0] != '\0' ? ",\"refresh_token\":\"" : "",
             refresh, refresh[0] != '\0' ? "\"" : "");
    answer("200 OK", "", body);
}

/* --- A daemon ---------------------------------------------------------------------- */

struct daemon {
    struct loop *loop;
    struct disk *spool;
    struct log *log;
    struct tokens *tokens;
    struct oauth_account account;
    char path[64], key[OAUTH_KEY_SIZE]; /* absolute; of the state file */
    bool aio;                           /* each sync takes SYNC_MS in the background */
};

static void
daemon_begin(struct daemon *d)
{
    d->loop = sim_loop_new(1);
    sim_disk_set_time(loop_now_ms(d->loop));
    ok(disk_open(&d->spool, "/spool", true) == 0);
    if (d->aio) {
        sim_disk_set_syncing(DISK_SYNC_AIO, SYNC_MS);
        disk_sync_on(d->spool, d->loop);
    }
    d->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    d->tokens = tokens_new(
        &(struct tokens_settings){.loop = d->loop, .log = d->log, .spool = d->spool});
    tokens_set(d->tokens, &d->account, 1);
    loop_turn(d->loop, 0);
}

static void
daemon_end(struct daemon *d)
{
    tokens_free(&d->tokens);
    loop_turn(d->loop, 0);
    disk_close(&d->spool);
    log_free(&d->log);
    loop_free(&d->loop);
}

/* row: after HOST USER. */
static struct daemon
daemon_of(const char *row_end)
{
    struct daemon d = {0};
    char row[400], why[OAUTH_REASON_MAX] = "";
    sim_disk_reset();
    memset(&provider, 0, sizeof(provider));
    snprintf(row, sizeof(row),
             "smtp.x.test u@x.test custom client=c token=https://x.test/t %s", row_end);
    if (!oauth_parse_account(text_from(row), &d.account, why))
        printf("# %s\n", why);
    oauth_account_key(&d.account, d.key);
    snprintf(d.path, sizeof(d.path), "/spool/oauth/%s", d.key);
    return d;
}

static enum tokens_status
find(struct daemon *d, char got[200])
{
    struct text token = TEXT("");
    const char *why = "";
    enum tokens_status status = tokens_find(d->tokens, TEXT("smtp.x.test"), 587,
                                            TEXT("u@x.test"), &token, &why);
    text_copy(got, 200, status == TOKENS_FAILED ? text_from(why) : token);
    return status;
}

static void
is_ready(struct daemon *d, const char *want, const char *name)
{
    char got[200];
    is_number(find(d, got), TOKENS_READY, "ready");
    is_string(got, want, name);
}

/* Another program writes a file, not by renaming. */
static void
write_file(struct daemon *d, const char *path, const char *content)
{
    if (d->loop != NULL)
        sim_disk_set_time(loop_now_ms(d->loop));
    (void)disk_make_directory(d->spool, "/spool/oauth", 0700);
    (void)disk_unlink(d->spool, path);
    int file = disk_create(d->spool, path, 0600);
    ok(file >= 0 && disk_write(d->spool, file, text_from(content)) == 0);
    disk_close_file(d->spool, file);
}

static const char *
state_of(const char *access, int64_t expires_ms, int64_t updated_ms,
         const char *refresh)
{
    static char content[600];
    snprintf(content, sizeof(content),
             "{\"host\":\"smtp.x.test\",\"user\":\"u@x.test\",\"client\":\"c\","
             "\"access\":\"%s\",\"expires\":%lld,\"updated\":%lld,\"refresh\":\"%s\"}",
             access, (long long)expires_ms, (long long)updated_ms, refresh);
    return content;
}

/* Before its first start. */
static void
prepare(struct daemon *d, const char *content)
{
    ok(disk_open(&d->spool, "/spool", true) == 0);
    write_file(d, d->path, content);
    disk_close(&d->spool);
}

static bool
kept(const struct daemon *d, const char *word)
{
    struct text content = sim_disk_content(d->path);
    return content.at != NULL &&
           memmem(content.at, content.length, word, strlen(word)) != NULL;
}

/* --- Tests ------------------------------------------------------------------------- */

/* The provider may have exchanged the refresh token already: the answer must arrive. */
TEST(reload)
{
    struct daemon d = daemon_of("");
    char got[200];
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    daemon_begin(&d);
    is_number((long)provider.started, 1, "asked");
    tokens_set(d.tokens, &d.account, 1);
    loop_turn(d.loop, 0);
    is_number((long)provider.cancelled, 0, "a reload keeps the request");
    is_number((long)provider.started, 1, "  and makes no other");
    grant(CANARY "-a1", CANARY "-r1", 3600);
    is_ready(&d, CANARY "-a1", "its answer counts");
    ok_named(kept(&d, CANARY "-r1"), "  with the next refresh token");

    /* Memory knows more than the file does. */
    tokens_refused(d.tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                   TEXT(CANARY "-a1"));
    loop_turn(d.loop, 0);
    sim_disk_count_anew();
    sim_disk_fail_at(4, ENOSPC);
    grant(CANARY "-a2", CANARY "-r2", 3600);
    ok(sim_disk_has_failed());
    ok_named(!kept(&d, CANARY "-r2"), "the disk is full");
    tokens_set(d.tokens, &d.account, 1);
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 3, "a reload asks again");
    ok_named(strstr(asked()->body, CANARY "-r2") != NULL,
             "  with what the file does not have");
    grant(CANARY "-a3", CANARY "-r3", 3600);
    ok_named(kept(&d, CANARY "-r3"), "  and the file has it now");

    /* Another account. */
    struct oauth_account other = d.account;
    text_copy(other.user, sizeof(other.user), TEXT("v@x.test"));
    tokens_set(d.tokens, &other, 1);
    loop_turn(d.loop, 0);
    is_number(find(&d, got), TOKENS_NO_ACCOUNT, "an account that is gone");
    daemon_end(&d);
}

/* New settings of an account. */
TEST(reload_changed)
{
    struct daemon d = daemon_of("grant=client secret=" CANARY "-old");
    char got[200];
    daemon_begin(&d);
    answer("401 No", "", "{\"error\":\"invalid_client\"}");
    is_number(find(&d, got), TOKENS_FAILED, "refused");
    text_copy(d.account.secret, sizeof(d.account.secret), TEXT(CANARY "-new"));
    tokens_set(d.tokens, &d.account, 1);
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 2, "a reload asks immediately");
    ok_named(strstr(asked()->body, CANARY "-new") != NULL, "  with the new secret");
    is_number(find(&d, got), TOKENS_ASKED, "  and the old error is gone");
    grant(CANARY "-a", "", 3600);
    is_ready(&d, CANARY "-a", "the token");
    sim_loop_advance(d.loop, 5);
    write_file(&d, d.path, state_of(CANARY "-b", loop_now_ms(d.loop) + HOUR_MS, 0, ""));
    tokens_set(d.tokens, &d.account, 1);
    is_ready(&d, CANARY "-b", "a reload reads a file that has changed");
    daemon_end(&d);
}

/* A state that cannot be read neither stops an account nor makes it ask in a hurry. */
TEST(unreadable)
{
    struct daemon d = daemon_of("grant=client secret=" CANARY);
    char got[200];
    ok(disk_open(&d.spool, "/spool", true) == 0);
    (void)disk_make_directory(d.spool, "oauth", 0700);
    ok(disk_make_fifo(d.spool, d.path, 0600) == 0);
    disk_close(&d.spool);
    daemon_begin(&d);
    answer("401 No", "", "{\"error\":\"invalid_client\"}");
    sim_loop_advance(d.loop, 600 * 1000);
    is_number((long)provider.started, 1, "a FIFO: refused, and not asked for 10 min");
    is_number(find(&d, got), TOKENS_FAILED, "  as any other");
    sim_loop_advance(d.loop, 400 * 1000);
    is_number((long)provider.started, 2, "  but then");
    grant(CANARY "-a", "", 3600);
    is_ready(&d, CANARY "-a", "it is replaced");
    ok(kept(&d, CANARY "-a"));
    daemon_end(&d);
}

/* The state in memory was good; damage comes later. */
TEST(damaged)
{
    struct daemon d = daemon_of("");
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    daemon_begin(&d);
    grant(CANARY "-a1", CANARY "-r1", 3600);
    sim_loop_advance(d.loop, 10);
    write_file(&d, d.path, "{\"host\":");
    sim_loop_advance(d.loop, HOUR_MS - 60 * 1000);
    is_ready(&d, CANARY "-a1", "a minute is left");
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 2, "asked anew");
    ok_named(strstr(asked()->body, CANARY "-r1") != NULL,
             "a damaged file does not take the refresh token from memory");
    grant(CANARY "-a2", CANARY "-r2", 3600);
    ok_named(kept(&d, CANARY "-r2"), "  and is repaired");
    daemon_end(&d);
}

/* petrel oauth forget. */
TEST(forgotten)
{
    struct daemon d = daemon_of("");
    char got[200];
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    daemon_begin(&d);
    grant(CANARY "-a1", CANARY "-r1", 3600);
    ok(disk_unlink(d.spool, d.path) == 0);
    sim_loop_advance(d.loop, HOUR_MS);
    is_number((long)provider.started, 1, "a file that is gone is not written again");
    is_number(find(&d, got), TOKENS_FAILED, "somebody must log in");
    is_string(got, "nobody has logged in; run: petrel oauth login smtp.x.test u@x.test",
              "  it says");
    daemon_end(&d);
}

/* A token that is short-lived from the first. */
TEST(short)
{
    struct daemon d = daemon_of("grant=client secret=" CANARY);
    char got[200];
    daemon_begin(&d);
    grant(CANARY "-a1", "", 120);
    for (int i = 0; i < 50; i++) {
        (void)find(&d, got);
        sim_loop_advance(d.loop, 1000);
    }
    is_number((long)provider.started, 1, "120 s: not asked for again within 50 s");
    is_ready(&d, CANARY "-a1", "  and used");
    sim_loop_advance(d.loop, 11000);
    is_ready(&d, CANARY "-a1", "after half of the time");
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 2, "  it is asked for again");
    grant(CANARY "-a2", "", 3600);
    sim_loop_advance(d.loop, HOUR_MS - 301 * 1000);
    is_ready(&d, CANARY "-a2", "more than 5 minutes are left");
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 2, "  no request");
    sim_loop_advance(d.loop, 2000);
    is_ready(&d, CANARY "-a2", "less than 5 minutes");
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 3, "  a request");
    daemon_end(&d);
}

/* A first refresh token that did not work, and another one in the same file. */
TEST(first)
{
    struct daemon d = daemon_of("refresh=@/first");
    char got[200];
    ok(disk_open(&d.spool, "/spool", true) == 0);
    write_file(&d, "/first", CANARY "-r0\n");
    disk_close(&d.spool);
    daemon_begin(&d);
    ok(strstr(asked()->body, "refresh_token=" CANARY "-r0&") != NULL);
    answer("400 No", "", "{\"error\":\"invalid_grant\"}");
    write_file(&d, "/first", CANARY "-r9\n");
    tokens_set(d.tokens, &d.account, 1);
    loop_turn(d.loop, 0);
    ok_named(strstr(asked()->body, "refresh_token=" CANARY "-r9&") != NULL,
             "a reload takes the next one");
    grant(CANARY "-a1", CANARY "-r10", 3600);
    is_ready(&d, CANARY "-a1", "  which works");
    sim_loop_advance(d.loop, HOUR_MS);
    is_number(find(&d, got), TOKENS_ASKED, "later");
    loop_turn(d.loop, 0);
    ok_named(strstr(asked()->body, "refresh_token=" CANARY "-r10&") != NULL,
             "the provider's counts");
    daemon_end(&d);
}

/* A provider that repeats what it was asked with. */
TEST(hidden)
{
    struct daemon d = daemon_of("secret=" CANARY "-secret");
    char got[200];
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    daemon_begin(&d);
    answer("400 No", "",
           "{\"error\":\"invalid_grant\",\"error_description\":\"no token '" CANARY
           "-r0' of client:" CANARY "-secret\"}");
    is_number(find(&d, got), TOKENS_FAILED, "refused");
    is_string(got,
              "status 400: invalid_grant: no token (hidden) of (hidden); run: petrel "
              "oauth login smtp.x.test u@x.test",
              "without the secrets");
    daemon_end(&d);
}

/* A reload brings another secret, or none, before the provider answers. */
TEST(hidden_later)
{
    static const char *const after[] = {"another-secret", ""};
    for (size_t i = 0; i < 2; i++) {
        struct daemon d = daemon_of("secret=" CANARY "-secret");
        char got[200];
        prepare(&d, state_of("", 0, 0, CANARY "-r0"));
        daemon_begin(&d);
        text_copy(d.account.secret, sizeof(d.account.secret), text_from(after[i]));
        tokens_set(d.tokens, &d.account, 1);
        answer("400 No", "", "{\"error\":\"" CANARY "-secret of " CANARY "-r0\"}");
        is_number(find(&d, got), TOKENS_FAILED, "refused");
        is_string(got,
                  "status 400: (hidden) of (hidden); run: petrel oauth login "
                  "smtp.x.test u@x.test",
                  "without the secrets that were sent");
        daemon_end(&d);
    }
}

/* The secret of the settings is not a path, with any first character. */
TEST(literal)
{
    struct daemon d = daemon_of("secret=x");
    text_copy(d.account.secret, sizeof(d.account.secret), TEXT("@/" CANARY));
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    daemon_begin(&d);
    ok_named(strstr(asked()->body, "client_secret=%40%2F" CANARY) != NULL, "sent as it is");
    daemon_end(&d);
}

/* Killed before the rename: the provider may know the new refresh token alone. */
TEST(rest)
{
    static const char *const refresh[] = {"refresh_token=" CANARY "-r1&",
                                          "refresh_token=" CANARY "-r0&"};
    for (size_t i = 0; i < 2; i++) {
        struct daemon d = daemon_of("");
        char fresh[100];
        snprintf(fresh, sizeof(fresh), "%s.new", d.path);
        prepare(&d, state_of("", 0, 0, CANARY "-r0"));
        ok(disk_open(&d.spool, "/spool", true) == 0);
        write_file(&d, fresh, i == 0 ? state_of("", 0, 0, CANARY "-r1") : "{\"host\"");
        disk_close(&d.spool);
        daemon_begin(&d);
        ok_named(strstr(asked()->body, refresh[i]) != NULL,
                 i == 0 ? "the new one is used" : "half a file is not");
        ok_named(sim_disk_content(fresh).at == NULL, "no rest stays");
        daemon_end(&d);
    }
}

/* A token of a second, and no mail. */
TEST(shortest)
{
    struct daemon d = daemon_of("grant=client secret=" CANARY);
    char got[200];
    daemon_begin(&d);
    for (int i = 0; i < 600; i++) {
        if (asked()->called != NULL)
            grant(CANARY, "", 1);
        sim_loop_advance(d.loop, 100);
    }
    ok_named(provider.started >= 2 && provider.started <= 4, "renewed twice a minute");
    is_number(find(&d, got), TOKENS_ASKED, "it is over, mail asks for another one");
    loop_turn(d.loop, 0);
    ok(asked()->called != NULL);
    grant(CANARY, "", 1);
    is_ready(&d, CANARY, "and gets it");
    daemon_end(&d);
}

TEST(retry_after)
{
    struct daemon d = daemon_of("grant=client secret=" CANARY);
    daemon_begin(&d);
    answer("503 Busy", "Retry-After: 86400\r\n", "");
    sim_loop_advance(d.loop, HOUR_MS - 1000);
    is_number((long)provider.started, 1, "Retry-After of a day counts as one hour");
    sim_loop_advance(d.loop, 2000);
    is_number((long)provider.started, 2, "  not more");
    answer("503 Busy", "Retry-After: Mon, 23 Nov 2026 12:00:00 GMT\r\n", "");
    sim_loop_advance(d.loop, 61 * 1000);
    is_number((long)provider.started, 3, "a date is not heeded");
    daemon_end(&d);
}

/* Clocks that are set. */
TEST(clock)
{
    struct daemon d = daemon_of("grant=client secret=" CANARY);
    char got[200];
    daemon_begin(&d);
    grant(CANARY "-a1", "", 3600);
    sim_loop_step_wall(d.loop, -HOUR_MS);
    loop_turn(d.loop, 0);
    is_ready(&d, CANARY "-a1", "an hour back");
    sim_loop_step_wall(d.loop, -INT64_C(10000) * HOUR_MS);
    loop_turn(d.loop, 0);
    is_number(find(&d, got), TOKENS_ASKED, "a year back: asked for");
    loop_turn(d.loop, 0);
    grant(CANARY "-a2", "", 3600);
    is_ready(&d, CANARY "-a2", "  and good");
    sim_loop_step_wall(d.loop, INT64_C(10001) * HOUR_MS);
    loop_turn(d.loop, 0);
    is_number(find(&d, got), TOKENS_ASKED, "forward again: asked for");
    loop_turn(d.loop, 0);
    is_number((long)provider.started, 3, "three requests");
    daemon_end(&d);
}

/* Each request has a file open: its lock. */
TEST(many)
{
    enum { MANY = TOKENS_ASKING_MAX + 36 };
    struct daemon d = daemon_of("grant=client secret=" CANARY);
    struct oauth_account *accounts = calloc(MANY, sizeof(*accounts));
    daemon_begin(&d);
    grant(CANARY, "", 3600);
    for (int i = 0; i < MANY; i++) {
        accounts[i] = d.account;
        snprintf(accounts[i].user, sizeof(accounts[i].user), "u%d", i);
    }
    tokens_set(d.tokens, accounts, MANY);
    sim_loop_advance(d.loop, 5000);
    is_number((long)provider.started - 1, TOKENS_ASKING_MAX, "64 ask");
    for (int i = 1; i <= TOKENS_ASKING_MAX; i++) {
        http_called *called = provider.calls[i].called;
        provider.calls[i].called = NULL;
        called(provider.calls[i].context, &(struct http_result){.error = "no"});
    }
    sim_loop_advance(d.loop, 1000);
    is_number((long)provider.started - 1, MANY, "then the others");
    daemon_end(&d);
    free(accounts);
}

static struct daemon
daemon_writing(void)
{
    struct daemon d = daemon_of("");
    d.aio = true;
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    daemon_begin(&d);
    sim_disk_count_anew();
    grant(CANARY "-a1", CANARY "-r1", 3600);
    return d;
}

/* The loop waits for no disk, and a token for its file. */
TEST(background)
{
    struct daemon d = daemon_writing();
    char got[200];
    for (int ms = 0; ms < 3 * SYNC_MS; ms++) {
        is_number(find(&d, got), TOKENS_ASKED, "a token that is not durable");
        tokens_set(d.tokens, &d.account, 1);
        sim_loop_advance(d.loop, 1);
    }
    is_ready(&d, CANARY "-a1", "  is used when it is");
    ok_named(kept(&d, CANARY "-r1"), "  with its refresh token");
    is_number((long)provider.started, 1, "  no reload has asked meanwhile");

    tokens_refused(d.tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                   TEXT(CANARY "-a1"));
    loop_turn(d.loop, 0);
    grant(CANARY "-a2", CANARY "-r2", 3600);
    ok_named(tokens_refused(d.tokens, TEXT("smtp.x.test"), 587, TEXT("u@x.test"),
                            TEXT(CANARY "-a1")),
             "the old one is refused while the new one is written");
    sim_loop_advance(d.loop, 10 * SYNC_MS);
    is_ready(&d, CANARY "-a2", "  which is used then");
    is_number((long)provider.started, 2, "  without another request");
    daemon_end(&d);
}

/* A token that is still good while the next one is written. */
TEST(overlap)
{
    struct daemon d = daemon_writing();
    sim_loop_advance(d.loop, 10 * SYNC_MS);
    sim_loop_advance(d.loop, HOUR_MS - TOKENS_AHEAD_MS);
    is_number((long)provider.started, 2, "renewed before its end");
    grant(CANARY "-a2", CANARY "-r2", 3600);
    is_ready(&d, CANARY "-a1", "the old one is used until the new one is durable");
    sim_loop_advance(d.loop, 10 * SYNC_MS);
    is_ready(&d, CANARY "-a2", "then the new one");
    daemon_end(&d);
}

/* The account, or all, go meanwhile. */
TEST(left)
{
    for (int end = 0; end < 2; end++) {
        struct daemon d = daemon_writing();
            sim_loop_advance(d.loop, SYNC_MS / 2);
        if (end)
            tokens_free(&d.tokens);
        else
            tokens_set(d.tokens, NULL, 0);
        sim_loop_advance(d.loop, 10 * SYNC_MS);
        ok_named(kept(&d, CANARY "-r1"), "what was granted is written nevertheless");
        is_number((long)sim_disk_open_files(), 0, "  and no file stays open");
        daemon_end(&d);
    }
}

/* On a full disk mail must be able to leave. Only a refresh token that was exchanged must
 * be written before. */
TEST(full)
{
    static const struct {
        const char *row, *refresh, *next; /* what there is, what the provider sends */
        bool used;
    } rows[] = {
        {"grant=client secret=" CANARY, "", "", true},
        {"", CANARY "-r0", "", true},
        {"", CANARY "-r0", CANARY "-r0", true},
        {"", CANARY "-r0", CANARY "-r1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct daemon d = daemon_of(rows[i].row);
        char got[200];
        prepare(&d, state_of("", 0, 0, rows[i].refresh));
        daemon_begin(&d);
        sim_disk_count_anew();
        sim_disk_fail_at(4, ENOSPC);
        grant(CANARY "-a1", rows[i].next, 3600);
        ok(sim_disk_has_failed());
        is_number(find(&d, got), rows[i].used ? TOKENS_READY : TOKENS_FAILED,
                  "a full disk");
        if (rows[i].used)
            is_string(got, CANARY "-a1", "  the token is used");
        sim_loop_advance(d.loop, HOUR_MS);
        is_number((long)provider.started, 2, "  later the next one");
        grant(CANARY "-a2", rows[i].next, 3600);
        is_ready(&d, CANARY "-a2", "  is used");
        ok_named(kept(&d, CANARY "-a2"), "  and written");
        daemon_end(&d);
    }
}

/* The one law: an access token that is used has its refresh token on the disk. fault: 0:
 * the call fails; 1: the process is killed; 2: the power is cut. */
static bool
survives(uint64_t call, int fault, bool aio, bool *reached)
{
    struct daemon d = daemon_of("");
    d.aio = aio;
    char got[200];
    bool used, good;
    prepare(&d, state_of("", 0, 0, CANARY "-r0"));
    ok(disk_open(&d.spool, "/spool", true) == 0);
    ok(disk_sync_directory(d.spool, "oauth") == 0);
    int file = disk_open_file(d.spool, d.path, true);
    ok(disk_sync(d.spool, file) == 0);
    disk_close_file(d.spool, file);
    disk_close(&d.spool);
    sim_disk_count_anew();
    if (fault == 0)
        sim_disk_fail_at(call, EIO);
    else
        sim_disk_die_at(call);
    daemon_begin(&d);
    if (provider.started == 0 && fault == 0) /* it could not be asked, or not be read */
        sim_loop_advance(d.loop, 60 * 1000);
    ok(provider.started > 0 || fault != 0);
    if (provider.started > 0)
        grant(CANARY "-a1", CANARY "-r1", 3600);
    sim_loop_advance(d.loop, aio ? 10 * SYNC_MS : 0);
    used = find(&d, got) == TOKENS_READY;
    *reached = fault == 0 ? sim_disk_has_failed() : sim_disk_is_dead();
    if (fault == 2)
        sim_disk_power_cut();
    else
        sim_disk_restart();
    good = kept(&d, CANARY "-r1") || (!used && kept(&d, CANARY "-r0"));
    if (fault == 0 && !used) {
        /* Memory has it: the next request, and the file. */
        sim_loop_advance(d.loop, 60 * 1000);
        good = good && provider.started == 2 &&
               strstr(asked()->body, CANARY "-r1") != NULL;
        grant(CANARY "-a2", CANARY "-r2", 3600);
        sim_loop_advance(d.loop, aio ? 10 * SYNC_MS : 0);
        good = good && find(&d, got) == TOKENS_READY && kept(&d, CANARY "-r2");
    }
    daemon_end(&d);
    return good;
}

TEST(faults)
{
    static const char *const names[] = {"an error",           "a kill",
                                        "a power cut",        "an error and AIO",
                                        "a kill and AIO",     "a power cut and AIO"};
    for (int way = 0; way < 6; way++) {
        bool reached = true;
        unsigned wrong = 0;
        uint64_t call = 2; /* behind disk_open() */
        for (; reached && call < 100; call++)
            wrong += !survives(call, way % 3, way >= 3, &reached);
        is_number(wrong, 0, names[way]);
        ok_named(call > 12 && !reached, "  at each call");
    }
}

/* The log of the tests. */
static bool
is_logged(FILE *log, const char *word)
{
    static char all[64 * 1024];
    rewind(log);
    size_t length = fread(all, 1, sizeof(all), log);
    ok(length > 0 && length < sizeof(all));
    return memmem(all, length, word, strlen(word)) != NULL;
}

int
main(void)
{
    FILE *log = tmpfile();
    if (log == NULL || dup2(fileno(log), STDERR_FILENO) < 0)
        return 1;
    tap_tests("");
    ok_named(is_logged(log, "is omitted: it is damaged or of another account"),
             "damage is logged");
    ok_named(is_logged(log, " is omitted: Invalid argument"), "a FIFO, too");
    ok_named(!is_logged(log, CANARY), "no secret is");
    fclose(log);
    return done();
}
