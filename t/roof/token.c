/* Answers of the provider, and the times of questions. */
#include "t/roof/token.h"

#include "base/crypto/base64.h"
#include "t/roof/host.h"
#include "t/roof/roof.h"
#include "t/roof/web.h"
#include "t/sim/sim_dns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PORT = 8444,
    GIVEN_MAX = 4096,
    WORD_MAX = 1024,
    RENEWED_MS = 30 * SECOND_MS, /* between two questions, if nothing is wrong... */
    TROUBLE_MS = 30 * SECOND_MS, /* ...after trouble, at least... */
    REFUSED_MS = 15 * MINUTE_MS, /* ...and after a refusal */
    UNDER_WAY_MS = MINUTE_MS,    /* a connection that begins, with its token */
    WAIT_MS = 18 * MINUTE_MS
};
#define TOKEN_WORD "token-of-the-roof-"

enum token_kind {
    TOKEN_GOOD,
    TOKEN_SHORT,
    TOKEN_REFUSED, /* 400 or 401 */
    TOKEN_BUSY,    /* 429 */
    TOKEN_NONSENSE,
    TOKEN_KINDS
};

static struct {
    uint64_t chance;
    bool has_begun, has_times;
    struct web *web;
    enum token_kind kind;
    unsigned count, valid_from; /* of those that were given */
    int64_t over_ms[GIVEN_MAX]; /* the end of each */
    /* The last question. */
    int64_t asked_ms, least_ms; /* until the next one; 0: there was none */
    unsigned starts, reloads;
    bool may_ask; /* a hop has refused a token since */
} token;

static unsigned
token_below(unsigned limit)
{
    return roof_below_of(&token.chance, limit);
}

/* --- Answers ------------------------------------------------------------------------ */

static void
judge_asked(void)
{
    int64_t gap_ms = roof_now_ms() - token.asked_ms;
    bool is_same = token.starts == host.starts && token.reloads == host.reloads;
    if (token.has_times && token.least_ms > 0 && is_same && !token.may_ask &&
        (gap_ms < token.least_ms || roof_breaks("token")))
        roof_break("bounds", NULL,
                   "a token is asked for %" PRId64
                   " ms after the last time, not %" PRId64,
                   gap_ms, token.least_ms);
    token.asked_ms = roof_now_ms();
    token.starts = host.starts;
    token.reloads = host.reloads;
    token.may_ask = false;
}

static void
give_token(struct buffer *out)
{
    char body[WORD_MAX];
    int64_t life_s = token.kind == TOKEN_SHORT || roof_breaks("token")
                         ? 2 + token_below(200)
                         : 600 + token_below(3600);
    unsigned number = token.count++;
    token.over_ms[number % GIVEN_MAX] = roof_now_ms() + life_s * SECOND_MS;
    token.least_ms =
        life_s * SECOND_MS / 2 < RENEWED_MS ? life_s * SECOND_MS / 2 : RENEWED_MS;
    snprintf(body, sizeof(body),
             "{\"access_token\":\"" TOKEN_WORD "%u\",\"token_type\":\"Bearer\","
             "\"expires_in\":%" PRId64 "}",
             number, life_s);
    roof_note("token: %u for %" PRId64 " s", number, life_s);
    web_answer(out, 200, "application/json", text_from(body));
}

static void
token_asked(void *context, struct text request, struct text body, struct buffer *out)
{
    static const struct {
        unsigned status;
        const char *body;
        int64_t least_ms;
    } rows[TOKEN_KINDS] = {
        [TOKEN_REFUSED] = {401, "{\"error\":\"invalid_client\"}", REFUSED_MS},
        [TOKEN_BUSY] = {429, "{\"error\":\"slow_down\"}",      TROUBLE_MS},
        [TOKEN_NONSENSE] = {200, "{\"access_token\":[1,2",         TROUBLE_MS},
    };
    (void)context;
    if (!text_starts(request, TEXT("POST /token ")) ||
        memmem(body.at, body.length, "client_secret=of-t0", 19) == NULL)
        roof_break("truth", NULL, "a question for a token: %.*s, %.*s",
                   TEXT_ARGS(request), TEXT_ARGS(body));
    judge_asked();
    if (token.kind < TOKEN_REFUSED) {
        give_token(out);
        return;
    }
    /* an answer that does not come is trouble */
    token.least_ms = web_is_up(token.web) ? rows[token.kind].least_ms : TROUBLE_MS;
    roof_note("token: %u", rows[token.kind].status);
    web_answer(out, rows[token.kind].status, "application/json",
               text_from(rows[token.kind].body));
}

/* --- Logins ------------------------------------------------------------------------- */

bool
token_is_good(struct text word, int64_t began_ms)
{
    static const char begin[] = "user=t0\x01"
                                "auth=Bearer " TOKEN_WORD;
    char clear[WORD_MAX];
    size_t length = 0;
    uint64_t number;
    bool good = base64_decode(word, clear, sizeof(clear), &length);
    struct text rest = text_of(clear, good ? length : 0), digits;
    if (!text_starts(rest, TEXT(begin)))
        roof_break("bounds", NULL, "a login without a token that was given: %.*s",
                   TEXT_ARGS(rest));
    rest = text_after(rest, sizeof(begin) - 1);
    text_cut(&rest, '\x01', &digits);
    if (!text_number(digits, UINT32_MAX, &number) || number >= token.count)
        roof_break("bounds", NULL, "a login with a token that was never given");
    if (token.has_times && number + GIVEN_MAX >= token.count &&
        began_ms > token.over_ms[number % GIVEN_MAX] + UNDER_WAY_MS)
        roof_break("bounds", NULL, "a login with token %" PRIu64 ", which is over",
                   number);
    bool is_valid = number >= token.valid_from &&
                    began_ms < token.over_ms[number % GIVEN_MAX] + UNDER_WAY_MS;
    if (!is_valid)
        token_refused();
    return is_valid;
}

void
token_refused(void)
{
    token.may_ask = true;
}

/* --- The course --------------------------------------------------------------------- */

void
token_fill_dns(struct dns *dns)
{
    if (token.has_begun)
        sim_dns_address(dns, TOKEN_PROVIDER, "10.0.4.8");
}

void
token_begin(bool has_times)
{
    token.has_begun = true;
    token.has_times = has_times;
    token.chance = roof_fork("tokens");
    token.web = web_new(TOKEN_PROVIDER, "10.0.4.8", PORT, token_asked, NULL);
    if (!roof_breaks("token"))
        token.kind = (enum token_kind)token_below(TOKEN_KINDS);
}

void
token_act(void)
{
    unsigned what = token_below(4);
    if (roof_breaks("token"))
        return;
    if (what == 0) {
        token.valid_from = token.count;
        roof_note("token: all are taken back");
    } else if (what == 1) {
        web_act(token.web);
    } else {
        token.kind = (enum token_kind)token_below(TOKEN_KINDS);
        roof_note("token: answers are of kind %u", token.kind);
    }
}

void
token_become_good(void)
{
    if (!token.has_begun)
        return;
    token.kind = TOKEN_GOOD;
    web_become_good(token.web);
}

int64_t
token_wait_ms(void)
{
    return token.has_begun ? WAIT_MS : 0;
}
