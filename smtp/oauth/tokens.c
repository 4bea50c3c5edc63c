/* One struct account_tokens for each account goes round: it has a token; it asks; it
 * waits after a failure. */
#include "smtp/oauth/tokens.h"

#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "base/http/http_call.h"
#include "smtp/oauth/oauth_file.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

struct tokens_secrets {
    struct buffer client, refresh; /* empty: none */
};

struct account_tokens {
    struct tokens *tokens;
    struct account_tokens *prev, *next;
    struct oauth_account account;
    char path[OAUTH_FILE_PATH_MAX];
    struct oauth_state state;
    struct oauth_state granted; /* becomes state when it is durable */
    struct oauth_write *write;  /* of granted; NULL: none is under way */
    bool exchanged;             /* the file's refresh token is not valid any more */
    int64_t read_ms;            /* ctime of the file that state is from; 0: none */
    bool is_unread;             /* it could not be read */
    int lock;                   /* a file handle; -1: not locked */
    struct http_call *call;
    struct tokens_secrets sent;    /* with the call */
    struct loop_timer timer;       /* asks again */
    bool renews;                   /* the timer is to renew a good token */
    bool dropped, replaced;        /* after a refusal: the token; it, by this one */
    enum tokens_status told;       /* to the owner */
    int64_t retry_ms, retry_at_ms; /* after trouble: the delay; when (monotonic) */
    bool refused;                  /* why is a refusal */
    char why[2 * OAUTH_REASON_MAX];
};

struct tokens {
    struct tokens_settings settings;
    struct account_tokens *accounts;
    size_t locked;                  /* of them; at most TOKENS_ASKING_MAX */
    void (*drained)(void *context); /* NULL: requests may begin */
    void *drain_context;
    struct loop_timer drain;
    void (*ask)(struct account_tokens *a);
};

/* --- The file -------------------------------------------------------------------- */

/* 0: there is none. */
static int64_t
tokens_file_ms(const struct account_tokens *a)
{
    struct disk_info info;
    int result = disk_inspect(a->tokens->settings.spool, a->path, &info);
    if (result == 0)
        return info.changed_ms;
    return result == -ENOENT ? 0 : a->read_ms; /* not known: as it was */
}

static bool
tokens_file_changed(const struct account_tokens *a)
{
    return tokens_file_ms(a) != a->read_ms;
}

static void
tokens_take_state(struct account_tokens *a, struct oauth_state *state)
{
    oauth_state_free(&a->state);
    a->state = *state;
    oauth_state_init(state);
}

/* A file that is gone was forgotten by its owner. One that cannot be used says nothing:
 * the state in memory, if any, stays and is written with the next token. */
static void
tokens_read_state(struct account_tokens *a)
{
    const struct tokens_settings *s = &a->tokens->settings;
    struct oauth_state state;
    oauth_state_init(&state);
    a->read_ms = tokens_file_ms(a);
    int result = oauth_file_read(s->spool, a->path, &a->account, &state, &a->read_ms);
    a->is_unread = result < 0 && result != -ENOENT && result != -EBADMSG;
    if (result == 0 || result == -ENOENT)
        tokens_take_state(a, &state);
    else
        log_say(s->log, LOG_LEVEL_WARNING, "oauth", NULL, "%s is omitted: %s", a->path,
                result == -EBADMSG ? "it is damaged or of another account"
                                   : strerror(-result));
    oauth_state_free(&state);
}

/* --- Time ------------------------------------------------------------------------ */

/* 0: none. A clock that was set back makes no token immortal. */
static int64_t
tokens_left_ms(const struct account_tokens *a)
{
    int64_t left_ms = a->state.expires_ms - loop_now_ms(a->tokens->settings.loop);
    bool sane = left_ms > 0 && left_ms <= (int64_t)OAUTH_LIFETIME_MAX_S * 1000;
    return a->state.access.length > 0 && sane ? left_ms : 0;
}

/* Until 5 minutes before its end; if it is short-lived, until half of its time is over:
 * not all the time. */
static int64_t
tokens_rest_ms(const struct account_tokens *a)
{
    int64_t ahead_ms = (a->state.expires_ms - a->state.updated_ms) / 2;
    if (ahead_ms < 0 || ahead_ms > TOKENS_AHEAD_MS)
        ahead_ms = TOKENS_AHEAD_MS;
    return tokens_left_ms(a) - ahead_ms;
}

static bool
tokens_is_due(const struct account_tokens *a)
{
    return tokens_rest_ms(a) <= 0;
}

static void
tokens_on_drained(void *context)
{
    struct tokens *t = context;
    t->drained(t->drain_context);
}

static void
tokens_note_drained(struct tokens *t)
{
    if (t->drained != NULL && t->locked == 0 && heap_has(&t->drain.node))
        loop_timer_start(t->settings.loop, &t->drain, 0, tokens_on_drained, t);
}

static void
tokens_unlock(struct account_tokens *a)
{
    if (a->lock < 0)
        return;
    disk_close_file(a->tokens->settings.spool, a->lock);
    a->lock = -1;
    a->tokens->locked--;
    tokens_note_drained(a->tokens);
}

static void
tokens_on_timer(void *context)
{
    struct account_tokens *a = context;
    a->tokens->ask(a);
}

static void
tokens_wait(struct account_tokens *a, int64_t delay_ms)
{
    a->renews = false;
    loop_timer_start(a->tokens->settings.loop, &a->timer, delay_ms, tokens_on_timer, a);
}

/* Also without mail: the provider may end a login that is not used, and the operator
 * learns of trouble before mail waits. */
static void
tokens_plan_renewal(struct account_tokens *a, int64_t least_ms)
{
    int64_t rest_ms = tokens_rest_ms(a);
    tokens_wait(a, rest_ms > least_ms ? rest_ms : least_ms);
    a->renews = true;
}

/* --- Secrets --------------------------------------------------------------------- */

static void
tokens_forget_secrets(struct tokens_secrets *secrets)
{
    buffer_forget(&secrets->client);
    buffer_forget(&secrets->refresh);
}

/* From settings, state, and the file of a first refresh token, which counts until there
 * is a second one. False, with the reason. */
static bool
tokens_read_secrets(const struct account_tokens *a, struct tokens_secrets *out,
                    char why[OAUTH_REASON_MAX])
{
    const struct oauth_account *account = &a->account;
    struct text refresh = buffer_text(&a->state.refresh);
    int result = 0;
    buffer_init(&out->client, OAUTH_SECRET_MAX);
    buffer_init(&out->refresh, OAUTH_TOKEN_MAX);
    bool fits = buffer_add(&out->client, text_from(account->secret));
    assert(fits);
    if (refresh.length == 0 && account->refresh[0] != '\0')
        result = oauth_file_secret(account->refresh, &out->refresh);
    else if (!buffer_add(&out->refresh, refresh))
        result = -EFBIG;
    if (result < 0)
        snprintf(why, OAUTH_REASON_MAX, "its refresh token cannot be read: %s",
                 disk_explain(result));
    else if (account->grant == OAUTH_REFRESH && out->refresh.length == 0)
        snprintf(why, OAUTH_REASON_MAX, "%s",
                 a->is_unread ? "its state cannot be read" : "nobody has logged in");
    return why[0] == '\0';
}

/* --- The end of a request -------------------------------------------------------- */

/* For the provider, or for the disk. */
static bool
tokens_is_busy(const struct account_tokens *a)
{
    return a->call != NULL || a->write != NULL;
}

static enum tokens_status
tokens_status(const struct account_tokens *a)
{
    if (tokens_left_ms(a) > 0)
        return TOKENS_READY;
    return a->why[0] != '\0' && !tokens_is_busy(a) ? TOKENS_FAILED : TOKENS_ASKED;
}

static void
tokens_show(const struct account_tokens *a, tokens_each_view *each, void *context)
{
    const struct oauth_account *account = &a->account;
    struct tokens_view view = {.account = account,
                               .status = tokens_status(a),
                               .why = "",
                               .trouble = a->why,
                               .refused = a->refused};
    char why[sizeof(a->why) + OAUTH_NAME_MAX + HTTP_URL_MAX + 100];
    struct http_url url = {.host = ""};
    const char *wrong;
    (void)!http_url_parse(text_from(account->token_url), &url, &wrong);
    switch (view.status) {
    case TOKENS_NO_ACCOUNT:
        break;
    case TOKENS_READY:
        view.until_ms = a->state.expires_ms;
        break;
    case TOKENS_ASKED:
        snprintf(why, sizeof(why), "waits for a token of %s from %s", account->user,
                 url.host);
        view.why = why;
        break;
    case TOKENS_FAILED:
        snprintf(why, sizeof(why), "no token of %s from %s: %s", account->user,
                 url.host, a->why);
        view.why = why;
        break;
    }
    each(context, &view);
}

static void
tokens_tell(struct account_tokens *a)
{
    const struct tokens_settings *s = &a->tokens->settings;
    a->told = tokens_status(a);
    if (s->changed != NULL)
        tokens_show(a, s->changed, s->context);
}

/* Some changes come with time alone. */
static void
tokens_tell_new(struct account_tokens *a)
{
    if (tokens_status(a) != a->told)
        tokens_tell(a);
}

/* The provider is asked again later; a token that is still good ends before. */
static void
tokens_rest(struct account_tokens *a, int64_t delay_ms)
{
    int64_t left_ms = tokens_left_ms(a);
    tokens_wait(a, left_ms > 0 && left_ms < delay_ms ? left_ms : delay_ms);
}

/* Nobody logs in for an application that has the right itself. */
static void
tokens_write_why(struct account_tokens *a, bool refused, const char *why)
{
    if (!refused)
        snprintf(a->why, sizeof(a->why), "%s", why);
    else if (a->account.grant == OAUTH_CLIENT)
        snprintf(a->why, sizeof(a->why),
                 "%s; check client, secret and tenant in oauth, and the rights of the "
                 "application",
                 why);
    else
        snprintf(a->why, sizeof(a->why), "%s; run: petrel oauth login %s %s", why,
                 a->account.host, a->account.user);
}

/* Last in its function. least_ms: the delay that the provider has asked for. */
static void
tokens_fail(struct account_tokens *a, bool refused, int64_t least_ms, const char *why)
{
    const struct tokens_settings *s = &a->tokens->settings;
    int64_t delay_ms = a->retry_ms > 0 ? a->retry_ms * 2 : TOKENS_RETRY_MS;
    if (refused || delay_ms > TOKENS_RETRY_MAX_MS)
        delay_ms = TOKENS_RETRY_MAX_MS;
    a->retry_ms = delay_ms;
    if (delay_ms < least_ms)
        delay_ms = least_ms;
    a->retry_at_ms = loop_monotonic_ms(s->loop) + delay_ms;
    a->refused = refused;
    tokens_write_why(a, refused, why);
    log_say(s->log, refused ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "oauth", NULL,
            "no token for %s at %s: %s", a->account.user, a->account.host, a->why);
    tokens_unlock(a);
    tokens_rest(a, refused ? TOKENS_LOOK_MS : delay_ms);
    tokens_tell(a);
}

static void
tokens_say_granted(struct account_tokens *a)
{
    char until[32] = "";
    time_t seconds = (time_t)(a->state.expires_ms / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(until, sizeof(until), "%Y-%m-%d %H:%M:%S UTC", &utc);
    log_say(a->tokens->settings.log, LOG_LEVEL_INFO, "oauth", NULL,
            "token for %s at %s until %s", a->account.user, a->account.host, until);
}

/* Last in its function: there is a token that is not due. */
static void
tokens_good(struct account_tokens *a)
{
    a->retry_ms = a->retry_at_ms = 0;
    a->why[0] = '\0';
    a->refused = false;
    a->replaced = a->dropped;
    a->dropped = false;
    tokens_unlock(a);
    tokens_plan_renewal(a, TOKENS_RENEWED_MS);
    tokens_tell(a);
}

static void
tokens_written(void *context, int result)
{
    struct account_tokens *a = context;
    char why[200];
    a->write = NULL;
    tokens_take_state(a, &a->granted);
    /* Also after an error: a file that is perhaps not durable is not read. */
    a->read_ms = tokens_file_ms(a);
    if (result < 0)
        snprintf(why, sizeof(why), "%s cannot be written: %s", a->path,
                 strerror(-result));
    if (result < 0 && a->exchanged) {
        /* The new refresh token stays in memory: the next request uses it. */
        a->state.expires_ms = 0;
        tokens_fail(a, false, 0, why);
        return;
    }
    /* Nothing would be lost but this token. On a full disk mail must be able to leave. */
    if (result < 0)
        log_say(a->tokens->settings.log, LOG_LEVEL_WARNING, "oauth", NULL, "%s", why);
    else
        a->exchanged = false;
    tokens_say_granted(a);
    tokens_good(a);
}

/* The old state counts until the new one is durable. */
static void
tokens_granted(struct account_tokens *a, struct oauth_answer *answer)
{
    const struct tokens_settings *s = &a->tokens->settings;
    struct oauth_state *new = &a->granted;
    struct buffer *refresh =
        answer->refresh.length > 0 ? &answer->refresh : &a->state.refresh;
    bool fits = buffer_reserve(&new->refresh, OAUTH_TOKEN_MAX) != NULL &&
                buffer_add(&new->refresh, buffer_text(refresh));
    assert(fits);
    a->exchanged = a->exchanged ||
                   !text_equal(buffer_text(refresh), buffer_text(&a->state.refresh));
    struct buffer empty = new->access;
    new->access = answer->access;
    answer->access = empty;
    new->updated_ms = loop_now_ms(s->loop);
    new->expires_ms = new->updated_ms + answer->lifetime_s * 1000;
    a->write =
        oauth_write_begin(s->spool, a->path, &a->account, new, tokens_written, a);
}

/* Seconds alone, an hour at most; a date is not heeded. */
static int64_t
tokens_retry_after_ms(const struct http_reader *response)
{
    uint64_t seconds = 0;
    struct text value = http_reader_field(response, TEXT("Retry-After"));
    if (value.at == NULL || !text_number(value, INT64_MAX, &seconds))
        return 0;
    return seconds < TOKENS_HEEDED_MS / 1000 ? (int64_t)seconds * 1000
                                             : TOKENS_HEEDED_MS;
}

static void
tokens_on_response(void *context, const struct http_result *result)
{
    struct account_tokens *a = context;
    struct oauth_answer answer;
    a->call = NULL;
    if (result->error != NULL) {
        tokens_forget_secrets(&a->sent);
        tokens_fail(a, false, 0, result->error);
        return;
    }
    const struct http_reader *response = result->response;
    int64_t least_ms = tokens_retry_after_ms(response);
    oauth_read_token(response->status, buffer_text(&response->body), &answer);
    /* A provider may repeat parts of the request; the files may be others now. */
    oauth_hide(answer.reason, buffer_text(&a->sent.client));
    oauth_hide(answer.reason, buffer_text(&a->sent.refresh));
    tokens_forget_secrets(&a->sent);
    if (answer.verdict == OAUTH_GRANTED)
        tokens_granted(a, &answer);
    else
        tokens_fail(a, answer.verdict == OAUTH_REFUSED, least_ms, answer.reason);
    oauth_answer_free(&answer);
}

/* --- A request ------------------------------------------------------------------- */

/* 0, or -errno; -EWOULDBLOCK: another process asks, or enough of ours do. */
static int
tokens_lock(struct account_tokens *a)
{
    if (a->tokens->locked == TOKENS_ASKING_MAX)
        return -EWOULDBLOCK;
    int result = oauth_file_lock(a->tokens->settings.spool, a->path);
    if (result < 0)
        return result;
    a->lock = result;
    a->tokens->locked++;
    return 0;
}

/* False: the request is too large. */
static bool
tokens_send(struct account_tokens *a)
{
    struct buffer body;
    buffer_init(&body, OAUTH_REQUEST_MAX);
    bool fits =
        buffer_reserve(&body, OAUTH_REQUEST_MAX) != NULL &&
        oauth_write_token_request(&body, &a->account, buffer_text(&a->sent.client),
                                  buffer_text(&a->sent.refresh));
    struct http_request request = {.method = TEXT("POST"),
                                   .type = TEXT(OAUTH_FORM),
                                   .fields = TEXT("Accept: application/json\r\n"),
                                   .body = buffer_text(&body)};
    if (fits)
        a->call = http_call_start(
            a->tokens->settings.http, text_from(a->account.token_url), &request,
            &(struct http_call_options){.body_max = OAUTH_ANSWER_MAX},
            tokens_on_response, a);
    buffer_forget(&body);
    return fits;
}

static void
tokens_request(struct account_tokens *a)
{
    char why[OAUTH_REASON_MAX] = "";
    bool read = tokens_read_secrets(a, &a->sent, why);
    if (read && tokens_send(a))
        return;
    tokens_forget_secrets(&a->sent);
    if (read)
        tokens_fail(a, true, 0, "the request is too large");
    else
        tokens_fail(a, !a->is_unread, 0, why);
}

/* After a wait for the lock, and after a refusal, the file is read anew: a login or
 * another process may have written it. */
static void
tokens_ask(struct account_tokens *a)
{
    const struct tokens_settings *s = &a->tokens->settings;
    bool changed = tokens_file_changed(a);
    int64_t rest_ms = a->retry_at_ms - loop_monotonic_ms(s->loop);
    if (tokens_is_busy(a) || a->tokens->drained != NULL)
        return;
    if (!changed && a->retry_at_ms > 0 && rest_ms > 0) {
        tokens_rest(a, rest_ms < TOKENS_LOOK_MS ? rest_ms : TOKENS_LOOK_MS);
        tokens_tell_new(a);
        return;
    }
    int result = tokens_lock(a);
    if (result == -EWOULDBLOCK) {
        tokens_wait(a, TOKENS_LOCKED_MS);
        tokens_tell_new(a);
        return;
    }
    if (result < 0) {
        tokens_fail(a, false, 0, strerror(-result));
        return;
    }
    int settled = oauth_file_settle(s->spool, a->path, &a->account);
    if (settled < 0 && a->account.grant == OAUTH_REFRESH) {
        /* A provider may end the login that shows it the token before. */
        char why[200];
        snprintf(why, sizeof(why), "%s.new, which a crash has left, cannot be used: %s",
                 a->path, strerror(-settled));
        a->is_unread = true; /* perhaps it has its name */
        tokens_fail(a, false, 0, why);
        return;
    }
    if (settled > 0 || tokens_file_changed(a) || a->is_unread)
        tokens_read_state(a);
    if (settled > 0 && a->is_unread) {
        tokens_fail(a, false, 0, "its state cannot be read");
        return;
    }
    if (!tokens_is_due(a)) {
        tokens_good(a);
        return;
    }
    tokens_request(a);
    if (a->call != NULL && a->why[0] == '\0') /* a further attempt is no news */
        tokens_tell_new(a);
}

/* --- Accounts -------------------------------------------------------------------- */

static void
tokens_release(void *object)
{
    struct account_tokens *a = object;
    oauth_state_free(&a->state);
    oauth_state_free(&a->granted);
    tokens_forget_secrets(&a->sent);
    digest_forget(a, sizeof(*a));
    free(a);
}

static void
tokens_remove_all(struct tokens *tokens, struct account_tokens **list)
{
    struct account_tokens *a;
    while ((a = *list) != NULL) {
        http_call_cancel(&a->call);
        oauth_write_leave(&a->write);
        loop_timer_stop(tokens->settings.loop, &a->timer);
        tokens_unlock(a);
        DL_DELETE(*list, a);
        loop_release(tokens->settings.loop, tokens_release, a);
    }
}

/* In the next turn, so that a start function calls nobody back. */
static void
tokens_add(struct tokens *tokens, const struct oauth_account *account)
{
    struct account_tokens *a = memory_new(sizeof(*a));
    a->tokens = tokens;
    a->lock = -1;
    a->account = *account;
    oauth_file_path(account, a->path);
    oauth_state_init(&a->state);
    oauth_state_init(&a->granted);
    tokens_read_state(a);
    DL_APPEND(tokens->accounts, a);
    a->told = tokens_status(a);
    tokens_plan_renewal(a, 0);
}

/* Moves the account from the old list, if it is there. A request under way goes on, since
 * its answer may have the only valid refresh token; and memory may have one that could
 * not be written. */
static bool
tokens_keep(struct tokens *tokens, struct account_tokens **old,
            const struct oauth_account *account)
{
    struct account_tokens *a;
    char key[OAUTH_KEY_SIZE];
    oauth_account_key(account, key);
    DL_FOREACH (*old, a)
        if (a->account.port == account->port &&
            strcmp(a->path + strlen("oauth/"), key) == 0)
            break;
    if (a == NULL)
        return false;
    DL_DELETE(*old, a);
    DL_APPEND(tokens->accounts, a);
    a->account = *account;
    if (tokens_is_busy(a))
        return true;
    a->retry_ms = a->retry_at_ms = 0;
    a->why[0] = '\0';
    a->refused = false;
    if (tokens_file_changed(a))
        tokens_read_state(a);
    a->told = tokens_status(a);
    tokens_plan_renewal(a, 0);
    return true;
}

static struct account_tokens *
tokens_account(struct tokens *tokens, struct text host, uint16_t port, struct text user)
{
    struct account_tokens *a, *any = NULL;
    DL_FOREACH (tokens->accounts, a) {
        if (!text_equal_nocase(host, text_from(a->account.host)) ||
            !text_equal(user, text_from(a->account.user)))
            continue;
        if (a->account.port == port)
            return a;
        if (a->account.port == 0)
            any = a;
    }
    return any;
}

/* --- public ---------------------------------------------------------------------- */

struct tokens *
tokens_new(const struct tokens_settings *settings)
{
    struct tokens *tokens = memory_new(sizeof(*tokens));
    tokens->settings = *settings;
    tokens->ask = tokens_ask;
    return tokens;
}

void
tokens_drain(struct tokens *t, int64_t grace_ms, void (*done)(void *context),
             void *context)
{
    t->drained = done;
    t->drain_context = context;
    loop_timer_start(t->settings.loop, &t->drain, t->locked > 0 ? grace_ms : 0,
                     tokens_on_drained, t);
}

void
tokens_free(struct tokens **tokens)
{
    struct tokens *t = *tokens;
    *tokens = NULL;
    if (t == NULL)
        return;
    loop_timer_stop(t->settings.loop, &t->drain);
    tokens_remove_all(t, &t->accounts);
    loop_release(t->settings.loop, free, t);
}

void
tokens_set(struct tokens *tokens, const struct oauth_account *accounts, size_t count)
{
    struct account_tokens *old = tokens->accounts;
    tokens->accounts = NULL;
    for (size_t i = 0; i < count && i < TOKENS_ACCOUNTS_MAX; i++)
        if (!tokens_keep(tokens, &old, &accounts[i]))
            tokens_add(tokens, &accounts[i]);
    struct account_tokens *a;
    DL_FOREACH (old, a)
        if (tokens->settings.changed != NULL)
            tokens->settings.changed(tokens->settings.context,
                                     &(struct tokens_view){.account = &a->account,
                                                           .status = TOKENS_NO_ACCOUNT,
                                                           .why = "",
                                                           .trouble = ""});
    tokens_remove_all(tokens, &old);
}

enum tokens_status
tokens_find(struct tokens *tokens, struct text host, uint16_t port, struct text user,
            struct text *token, const char **why)
{
    struct account_tokens *a = tokens_account(tokens, host, port, user);
    if (a == NULL)
        return TOKENS_NO_ACCOUNT;
    enum tokens_status status = tokens_status(a);
    bool rests = tokens_is_busy(a) || (heap_has(&a->timer.node) && !a->renews);
    if ((tokens_is_due(a) || status != a->told) && !rests)
        tokens_wait(a, 0);
    *token = buffer_text(&a->state.access);
    *why = a->why;
    return status;
}

bool
tokens_refused(struct tokens *tokens, struct text host, uint16_t port, struct text user,
               struct text token)
{
    struct account_tokens *a = tokens_account(tokens, host, port, user);
    if (a == NULL)
        return false;
    if (a->dropped || !text_equal(buffer_text(&a->state.access), token))
        return true;
    if (a->replaced) {
        a->replaced = false;
        return false;
    }
    a->dropped = true;
    a->state.expires_ms = 0;
    if (!tokens_is_busy(a))
        tokens_wait(a, 0);
    return true;
}

void
tokens_look(struct tokens *tokens)
{
    struct account_tokens *a;
    DL_FOREACH (tokens->accounts, a) {
        if (tokens_is_busy(a) || (a->why[0] == '\0' && !tokens_file_changed(a)))
            continue;
        a->retry_ms = a->retry_at_ms = 0;
        tokens_wait(a, 0);
    }
}

void
tokens_each(const struct tokens *tokens, tokens_each_view *each, void *context)
{
    const struct account_tokens *a;
    DL_FOREACH (tokens->accounts, a)
        tokens_show(a, each, context);
}
