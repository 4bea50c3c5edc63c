/* Fuzz target: rows of OAuth2 accounts, answers of providers, addresses pasted by users,
 * states in files. An accepted value is fit for a command and a terminal, and every
 * refusal has one printable sentence. */
#include "smtp/oauth/oauth.h"

#include "smtp/oauth/oauth_file.h"
#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
is_printable(struct text t, char least)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] < least || t.at[i] > '~')
            return false;
    return true;
}

static void
check_token(struct text body, unsigned status)
{
    struct oauth_answer a;
    oauth_read_token(status, body, &a);
    bool granted = a.verdict == OAUTH_GRANTED;
    must(granted == (a.reason[0] == '\0') && is_printable(text_from(a.reason), ' '));
    if (granted) {
        must(a.access.length > 0 && is_printable(buffer_text(&a.access), '!'));
        must(is_printable(buffer_text(&a.refresh), '!'));
        must(a.lifetime_s > 0 && a.lifetime_s <= OAUTH_LIFETIME_MAX_S);
    }
    oauth_answer_free(&a);
}

static void
check_device(struct text body, unsigned status)
{
    struct oauth_device d;
    oauth_read_device(status, body, &d);
    must((d.verdict == OAUTH_GRANTED) == (d.reason[0] == '\0'));
    must(is_printable(text_from(d.reason), ' '));
    must(d.verdict != OAUTH_GRANTED || (d.interval_s > 0 && d.lifetime_s > 0));
    must(is_printable(text_from(d.user_code), ' ') &&
         is_printable(text_from(d.url), ' '));
}

static void
check_account(struct text row)
{
    struct oauth_account a;
    char why[OAUTH_REASON_MAX] = "";
    struct http_url url;
    const char *wrong;
    if (!oauth_parse_account(row, &a, why)) {
        must(why[0] != '\0');
        return;
    }
    must(a.host[0] != '\0' && a.user[0] != '\0' && a.client[0] != '\0');
    must(http_url_parse(text_from(a.token_url), &url, &wrong) && url.secure);
    struct buffer out;
    buffer_init(&out, OAUTH_REQUEST_MAX);
    must(oauth_write_token_request(&out, &a, text_from(a.secret), TEXT("r")));
    must(is_printable(buffer_text(&out), '!'));
    buffer_free(&out);
}

/* A state that is read can be written, and is then read the same. */
static void
check_state(struct text content)
{
    struct oauth_account a = {.host = "h", .user = "u", .client = "c"};
    struct oauth_state one, two;
    struct buffer out;
    oauth_state_init(&one);
    oauth_state_init(&two);
    buffer_init(&out, OAUTH_STATE_MAX);
    if (oauth_state_read(content, &a, &one)) {
        must(one.expires_ms >= 0 && one.updated_ms >= 0);
        must(is_printable(buffer_text(&one.access), '!'));
        must(is_printable(text_from(one.error), ' '));
        must(oauth_state_write(&out, &a, &one));
        must(oauth_state_read(buffer_text(&out), &a, &two));
        must(text_equal(buffer_text(&one.access), buffer_text(&two.access)));
        must(text_equal(buffer_text(&one.refresh), buffer_text(&two.refresh)));
        must(one.expires_ms == two.expires_ms && one.updated_ms == two.updated_ms);
    } else {
        must(one.access.length == 0 && one.refresh.length == 0);
    }
    buffer_free(&out);
    oauth_state_free(&one);
    oauth_state_free(&two);
}

/* The first line is the secret. */
static void
check_hidden(struct text rest)
{
    char reason[OAUTH_REASON_MAX];
    struct text secret;
    if (!text_cut(&rest, '\n', &secret))
        return;
    secret = text_trim(secret); /* as rows and files of secrets have it */
    text_copy(reason, sizeof(reason), rest);
    oauth_hide(reason, secret);
    must(strlen(reason) < sizeof(reason));
    /* It has no part of "(hidden)" itself. */
    bool is_odd = text_find(secret, '(') != TEXT_NONE ||
                  text_find(secret, ')') != TEXT_NONE || secret.length == 0 ||
                  memmem("hidden", 6, secret.at, secret.length) != NULL;
    size_t known = secret.length < 8 ? secret.length : 8;
    for (size_t i = 0; !is_odd && i + known <= secret.length; i++)
        must(memmem(reason, strlen(reason), secret.at + i, known) == NULL);
}

/* The first byte chooses. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned statuses[] = {200, 400, 401, 429, 503, 302, 200, 200};
    if (size == 0)
        return 0;
    struct text rest = text_of(data + 1, size - 1);
    unsigned status = statuses[data[0] >> 2 & 7];
    char code[OAUTH_SECRET_MAX], why[OAUTH_REASON_MAX] = "";
    switch (data[0] & 3) {
    case 0:
        check_token(rest, status);
        break;
    case 1:
        check_device(rest, status);
        break;
    case 2:
        check_account(rest);
        break;
    default:
        if (data[0] & 32) {
            check_state(rest);
            return 0;
        }
        if (data[0] & 64) {
            check_hidden(rest);
            return 0;
        }
        if (oauth_read_redirect(rest, TEXT("st"), code, why))
            must(code[0] != '\0' && !text_has_control(text_from(code)));
        else
            must(why[0] != '\0' && !text_has_control(text_from(why)));
    }
    return 0;
}
