/* Logs in for an OAuth2 account: by the device flow (RFC 8628), by a code with PKCE that
 * is pasted (RFC 7636), or with the application's own right. One request at a time. */
#include "admin/command/oauth_login.h"

#include "admin/tool/prompt.h"
#include "base/format_time.h"
#include "admin/settings/complaint.h"
#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "base/dns/dns.h"
#include "base/http/http_call.h"
#include "smtp/oauth/oauth_file.h"
#include "base/loop/loop.h"
#include "base/net/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { SLOWER_MS = 5000, LOCK_TRY_MS = 100 };

static const char program[] = "petrel oauth";
#define REDIRECT TEXT("http://127.0.0.1:8976/")

struct login {
    const struct oauth_login *order;
    const struct oauth_account *account;
    struct loop *loop;
    struct http_caller *http;
    struct buffer form, body;
    unsigned status;
    char error[HTTP_ERROR_MAX]; /* "": there was a response */
};

static void
login_forget(struct buffer *b)
{
    if (b->at != NULL)
        digest_forget(b->at, b->capacity);
    buffer_clear(b);
}

static void
login_stop(void *context)
{
    loop_stop(context);
}

static void
login_pause(struct login *l, int64_t ms)
{
    struct loop_timer timer = {0};
    loop_timer_start(l->loop, &timer, ms, login_stop, l->loop);
    loop_run(l->loop);
}

static int
login_code(enum oauth_verdict verdict)
{
    return verdict == OAUTH_REFUSED ? EX_NOPERM : EX_TEMPFAIL;
}

static void
login_on_response(void *context, const struct http_result *result)
{
    struct login *l = context;
    l->error[0] = '\0';
    if (result->error != NULL) {
        snprintf(l->error, sizeof(l->error), "%s", result->error);
    } else {
        l->status = result->response->status;
        /* The call has the same limit. */
        (void)!buffer_add(&l->body, buffer_text(&result->response->body));
    }
    loop_stop(l->loop);
}

/* Sends the form, and waits. False: no response; l->error says why. */
static bool
login_post(struct login *l, const char *url)
{
    struct http_request request = {.method = TEXT("POST"),
                                   .type = TEXT(OAUTH_FORM),
                                   .fields = TEXT("Accept: application/json\r\n"),
                                   .body = buffer_text(&l->form)};
    login_forget(&l->body);
    http_call_start(l->http, text_from(url), &request,
                    &(struct http_call_options){.body_max = OAUTH_ANSWER_MAX},
                    login_on_response, l);
    login_forget(&l->form);
    loop_run(l->loop);
    return l->error[0] == '\0';
}

/* Asks for a token with the form; fits: the form is complete. To be freed. */
static void
login_ask(struct login *l, bool fits, struct text hidden, struct oauth_answer *answer)
{
    if (fits && login_post(l, l->account->token_url)) {
        oauth_read_token(l->status, buffer_text(&l->body), answer);
        login_forget(&l->body);
    } else {
        *answer =
            (struct oauth_answer){.verdict = fits ? OAUTH_TRY_AGAIN : OAUTH_REFUSED};
        snprintf(answer->reason, sizeof(answer->reason), "%.*s", OAUTH_REASON_MAX - 1,
                 fits ? l->error : "the request is too large");
    }
    oauth_hide(answer->reason, text_from(l->account->secret));
    oauth_hide(answer->reason, hidden);
}

/* --- Grants ----------------------------------------------------------------------- */

/* The daemon has the lock while it asks; its state is older than our answer. */
static int
login_write(struct login *l, const struct oauth_state *state)
{
    char path[OAUTH_FILE_PATH_MAX];
    int64_t end_ms = loop_monotonic_ms(l->loop) + OAUTH_LOGIN_LOCK_MS;
    int lock;
    oauth_file_path(l->account, path);
    while ((lock = oauth_file_lock(l->order->spool, path)) == -EWOULDBLOCK &&
           loop_monotonic_ms(l->loop) < end_ms)
        login_pause(l, LOCK_TRY_MS);
    if (lock < 0)
        return lock;
    int result = oauth_file_write(l->order->spool, path, l->account, state);
    disk_close_file(l->order->spool, lock);
    return result;
}

static int
login_keep(struct login *l, struct oauth_answer *answer)
{
    int64_t now_ms = loop_now_ms(l->loop);
    char until[FORMAT_TIME_MAX];
    struct oauth_state state;
    oauth_state_init(&state);
    struct buffer empty = state.access;
    state.access = answer->access;
    state.refresh = answer->refresh;
    answer->access = answer->refresh = empty;
    state.updated_ms = now_ms;
    state.expires_ms = now_ms + answer->lifetime_s * 1000;
    int result = login_write(l, &state);
    if (result < 0)
        complaint_say(program, 0, "the login cannot be kept", strerror(-result));
    else
        printf("Logged in as %s at %s. The token is valid until %s%s.\n",
               l->account->user, l->account->host,
               format_time_until(state.expires_ms, now_ms, until),
               l->account->grant == OAUTH_REFRESH ? " and renewed by the daemon" : "");
    oauth_state_free(&state);
    return result < 0 ? EX_IOERR : 0;
}

/* Takes the answer. */
static int
login_finish(struct login *l, struct oauth_answer *answer)
{
    int code;
    if (answer->verdict != OAUTH_GRANTED)
        code = complaint_say(program, login_code(answer->verdict),
                             "the provider gives no token", answer->reason);
    else if (l->account->grant == OAUTH_REFRESH && answer->refresh.length == 0)
        code =
            complaint_say(program, EX_NOPERM,
                          "the provider sent no refresh token: the login would end "
                          "with this token; scope= must ask for one (offline_access)",
                          "");
    else
        code = login_keep(l, answer);
    oauth_answer_free(answer);
    if (code == 0 && l->account->provider == OAUTH_GOOGLE)
        puts("Publish the application in the Google Cloud console: while its status is "
             "Testing,\nthe login ends after 7 days.");
    return code;
}

/* --- A device code (RFC 8628) ----------------------------------------------------- */

static int
login_poll(struct login *l, const struct oauth_device *device)
{
    int64_t end_ms = loop_monotonic_ms(l->loop) + device->lifetime_s * 1000;
    int64_t wait_ms = device->interval_s * 1000;
    struct text code = text_from(device->device_code);
    struct oauth_answer answer;
    for (int failures = 0; failures < OAUTH_LOGIN_FAILURES_MAX;) {
        if (loop_monotonic_ms(l->loop) + wait_ms > end_ms)
            return complaint_say(program, EX_TEMPFAIL,
                                 "nobody has entered the code in time: run it again",
                                 "");
        login_pause(l, wait_ms);
        bool fits = oauth_write_poll_request(&l->form, l->account,
                                             text_from(l->account->secret), code);
        login_ask(l, fits, code, &answer);
        switch (answer.verdict) {
        case OAUTH_PENDING:
            failures = 0;
            break;
        case OAUTH_SLOW_DOWN: /* §3.5 */
            failures = 0;
            wait_ms += SLOWER_MS;
            break;
        case OAUTH_TRY_AGAIN:
            if (++failures == OAUTH_LOGIN_FAILURES_MAX)
                return login_finish(l, &answer);
            wait_ms *= 2;
            break;
        case OAUTH_GRANTED:
        case OAUTH_REFUSED:
            return login_finish(l, &answer);
        }
        oauth_answer_free(&answer);
    }
    return EX_TEMPFAIL;
}

static int
login_by_device(struct login *l)
{
    struct oauth_device device = {.verdict = OAUTH_TRY_AGAIN};
    bool fits = oauth_write_device_request(&l->form, l->account);
    if (fits && login_post(l, l->account->device_url))
        oauth_read_device(l->status, buffer_text(&l->body), &device);
    else
        snprintf(device.reason, sizeof(device.reason), "%.*s", OAUTH_REASON_MAX - 1,
                 fits ? l->error : "the request is too large");
    login_forget(&l->body);
    if (device.verdict != OAUTH_GRANTED)
        return complaint_say(program, login_code(device.verdict),
                             "the provider gives no code", device.reason);
    printf("Open %s\n"
           "in a browser on any machine, log in as %s and enter the code %s\n",
           device.url, l->account->user, device.user_code);
    fflush(stdout);
    int code = login_poll(l, &device);
    digest_forget(&device, sizeof(device));
    return code;
}

/* --- A pasted address (RFC 6749 §4.1, RFC 7636) ----------------------------------- */

static void
login_make_word(struct login *l, char out[OAUTH_VERIFIER_SIZE])
{
    uint64_t random[4];
    for (size_t i = 0; i < 4; i++)
        random[i] = loop_random(l->loop);
    oauth_make_verifier(random, out);
    digest_forget(random, sizeof(random));
}

/* True, with the code of the address that was pasted. */
static bool
login_ask_person(struct login *l, const char *state, const char *verifier,
                 char code[OAUTH_SECRET_MAX])
{
    char line[PROMPT_LINE_MAX], why[OAUTH_REASON_MAX] = "";
    struct text address;
    if (!oauth_write_authorize_url(&l->form, l->account, REDIRECT, text_from(state),
                                   text_from(verifier))) {
        complaint_say(program, 0, "the address is too long", "");
        return false;
    }
    printf("Open this address in a browser on any machine and log in as %s:\n\n"
           "%.*s\n\n"
           "The browser then cannot open an address that begins with %.*s: this is as "
           "it\nshould be. Paste that address here: ",
           l->account->user, TEXT_ARGS(buffer_text(&l->form)), TEXT_ARGS(REDIRECT));
    fflush(stdout);
    login_forget(&l->form);
    bool good =
        prompt_ask("", false, line, &address) == PROMPT_GOOD && address.length > 0;
    if (!good)
        snprintf(why, sizeof(why), "no address, or one that is too long");
    good = good && oauth_read_redirect(address, text_from(state), code, why);
    digest_forget(line, sizeof(line));
    if (!good)
        complaint_say(program, 0, "not logged in", why);
    return good;
}

static int
login_by_address(struct login *l)
{
    char state[OAUTH_VERIFIER_SIZE], verifier[OAUTH_VERIFIER_SIZE];
    char code[OAUTH_SECRET_MAX];
    struct oauth_answer answer;
    int result = EX_DATAERR;
    login_make_word(l, state);
    login_make_word(l, verifier);
    if (login_ask_person(l, state, verifier, code)) {
        bool fits = oauth_write_code_request(
            &l->form, l->account, text_from(l->account->secret), text_from(code),
            REDIRECT, text_from(verifier));
        login_ask(l, fits, text_from(code), &answer);
        oauth_hide(answer.reason, text_from(verifier));
        result = login_finish(l, &answer);
    }
    digest_forget(code, sizeof(code));
    digest_forget(verifier, sizeof(verifier));
    return result;
}

/* --- public ----------------------------------------------------------------------- */

static int
login_by_right(struct login *l)
{
    struct oauth_answer answer;
    bool fits = oauth_write_token_request(&l->form, l->account,
                                          text_from(l->account->secret), TEXT(""));
    login_ask(l, fits, TEXT(""), &answer);
    return login_finish(l, &answer);
}

static int
login_choose(struct login *l)
{
    const struct oauth_account *a = l->account;
    if (a->grant == OAUTH_CLIENT)
        return login_by_right(l);
    if (a->device_url[0] != '\0' && !l->order->browser)
        return login_by_device(l);
    if (a->authorize_url[0] != '\0')
        return login_by_address(l);
    return complaint_say(program, EX_CONFIG,
                         l->order->browser
                             ? "--browser needs authorize= in the account"
                             : "the account has neither device= nor authorize=",
                         "");
}

int
oauth_login_run(const struct oauth_login *order)
{
    struct login l = {.order = order, .account = order->account};
    char error[256];
    l.loop = loop_new();
    struct dns *dns =
        dns_new(l.loop, text_from(order->dns_servers), error, sizeof(error));
    if (dns == NULL) {
        loop_free(&l.loop);
        return complaint_say(program, EX_CONFIG, error, "");
    }
    struct net *net = net_new(l.loop);
    l.http = http_caller_new(&(struct http_caller_settings){
        .loop = l.loop, .net = net, .dns = dns, .tls = &order->anchors});
    buffer_init(&l.form, OAUTH_REQUEST_MAX);
    buffer_init(&l.body, OAUTH_ANSWER_MAX);
    int code = login_choose(&l);
    struct buffer *buffers[] = {&l.form, &l.body};
    for (size_t i = 0; i < 2; i++) {
        login_forget(buffers[i]);
        buffer_free(buffers[i]);
    }
    http_caller_free(&l.http);
    dns_free(&dns);
    net_free(&net);
    loop_free(&l.loop);
    return code;
}
