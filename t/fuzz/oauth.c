/* Fuzz target: rows of OAuth2 accounts, answers of providers, addresses pasted by users.
 * What is taken is fit for a command and a terminal, and every refusal has one printable
 * sentence. */
#include "base/http/oauth.h"

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
        if (oauth_read_redirect(rest, TEXT("st"), code, why))
            must(code[0] != '\0' && !text_has_control(text_from(code)));
        else
            must(why[0] != '\0' && !text_has_control(text_from(why)));
    }
    return 0;
}
