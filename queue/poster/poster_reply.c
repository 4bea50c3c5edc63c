/* Classes of status codes, and the sentence of a response.
 *
 * The status decides, even if the page behind it is cut or malformed. */
#include "queue/poster/poster_reply.h"

#include "base/http/http_retry.h"
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

enum { EXCERPT_MAX = 200, RETRY_MAX_MS = 24 * 3600 * 1000, WHERE_MAX = 160 };

#define RATE_CODE     450
#define RATE_ENHANCED "4.7.28"

struct class
{
    unsigned from, to;
    enum verdict verdict;
    enum blame blame;
    int code; /* a reply of SMTP that means the same */
    const char *enhanced;
    const char *words;
};

/* The first row that matches decides. What an operator can repair is deferred: a refused
 * password, a URL that has moved. */
static const struct class classes[] = {
    {200, 299, VERDICT_DELIVERED, BLAME_NONE,    250,       "2.0.0",       ""},
    {300, 399, VERDICT_DEFERRED,  BLAME_SITE,    451,       "4.3.5",
     ": redirects are not followed"                                          },
    {401, 401, VERDICT_DEFERRED,  BLAME_SITE,    454,       "4.7.8",
     ": it does not take our user or token"                                  },
    {407, 407, VERDICT_DEFERRED,  BLAME_SITE,    454,       "4.7.8",
     ": it does not take our user or token"                                  },
    {403, 403, VERDICT_FAILED,    BLAME_MESSAGE, 550,       "5.7.1",       ""},
    {408, 408, VERDICT_DEFERRED,  BLAME_MESSAGE, 451,       "4.4.2",       ""},
    {413, 413, VERDICT_FAILED,    BLAME_MESSAGE, 552,       "5.3.4",       ""},
    {425, 425, VERDICT_DEFERRED,  BLAME_MESSAGE, 451,       "4.3.0",       ""},
    {429, 429, VERDICT_DEFERRED,  BLAME_SITE,    RATE_CODE, RATE_ENHANCED, ""},
    {400, 400, VERDICT_FAILED,    BLAME_MESSAGE, 554,       "5.6.0",       ""},
    {415, 415, VERDICT_FAILED,    BLAME_MESSAGE, 554,       "5.6.0",       ""},
    {422, 422, VERDICT_FAILED,    BLAME_MESSAGE, 554,       "5.6.0",       ""},
    {400, 499, VERDICT_FAILED,    BLAME_MESSAGE, 554,       "5.3.0",       ""},
    {502, 504, VERDICT_DEFERRED,  BLAME_SITE,    421,       "4.3.2",       ""},
    {0,   999, VERDICT_DEFERRED,  BLAME_MESSAGE, 451,       "4.3.0",       ""},
};

static const struct class early = {0,
                                   999,
                                   VERDICT_DEFERRED,
                                   BLAME_MESSAGE,
                                   451,
                                   "4.5.0",
                                   ": it answered before it had the message"};

static const struct class *
poster_reply_class(unsigned status, bool is_early)
{
    const struct class *c = classes;
    if (status / 100 == 2 && is_early)
        return &early;
    while (status < c->from || status > c->to)
        c++;
    return c;
}

/* "name[ip]" */
static void
poster_reply_where(const struct target *target, const struct http_result *result,
                   char out[WHERE_MAX])
{
    char ip[NET_ADDRESS_TEXT_MAX];
    if (result->peer == NULL) {
        snprintf(out, WHERE_MAX, "%.100s", target->host);
        return;
    }
    net_address_ip(result->peer, ip);
    snprintf(out, WHERE_MAX, "%.100s[%.45s]", target->host, ip);
}

/* The start of the page, on one line. */
static void
poster_reply_excerpt(struct text body, char out[EXCERPT_MAX + 3])
{
    size_t length = 0;
    for (size_t i = 0; i < body.length && length < EXCERPT_MAX; i++) {
        bool space = text_is_space(body.at[i]);
        if (space && (length == 0 || out[length - 1] == ' '))
            continue;
        if (length == 0) {
            out[length++] = ':';
            out[length++] = ' ';
        }
        out[length++] = space ? ' ' : body.at[i] == '\0' ? '?' : body.at[i];
    }
    out[length] = '\0';
    printable_make(out);
}

static struct outcome
poster_reply_of_status(const struct target *target, const struct http_result *result,
                       int64_t now_ms)
{
    const struct http_reader *head = result->head;
    const struct class *c = poster_reply_class(head->status, result->is_early);
    char where[WHERE_MAX], excerpt[EXCERPT_MAX + 3] = "", after[64] = "";
    char reply[EXCERPT_MAX + 200];
    struct text wait = http_reader_field(head, TEXT("Retry-After"));
    int64_t wait_ms = http_retry_after_ms(wait, now_ms, RETRY_MAX_MS);
    bool asks = c->verdict == VERDICT_DEFERRED && wait_ms > 0;
    struct outcome o = outcome_make(c->verdict, c->blame, asks ? RATE_CODE : c->code,
                                    asks ? RATE_ENHANCED : c->enhanced, "%s", "");
    if (asks)
        snprintf(after, sizeof(after), ", try again in %lld seconds",
                 (long long)((wait_ms + 999) / 1000));
    if (head->status / 100 != 3)
        poster_reply_excerpt(buffer_text(&head->body), excerpt);
    snprintf(reply, sizeof(reply), "HTTP %u%s%s%s", head->status, c->words, after,
             excerpt);
    poster_reply_where(target, result, where);
    outcome_say_reply(&o, where, text_from(reply), "in reply to POST");
    return o;
}

/* No response: the host is not found, does not answer, or its certificate is wrong. */
static struct outcome
poster_reply_of_failure(const struct http_result *result)
{
    if (result->refused)
        return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "%s",
                            result->error);
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0,
                        result->connected ? "4.4.2"
                        : result->tried   ? "4.4.1"
                                          : "4.4.3",
                        "post to %s", result->error);
}

struct outcome
poster_reply_judge(const struct target *target, const struct http_result *result,
                   int64_t now_ms)
{
    char where[WHERE_MAX];
    struct outcome o = result->head != NULL
                           ? poster_reply_of_status(target, result, now_ms)
                           : poster_reply_of_failure(result);
    poster_reply_where(target, result, where);
    snprintf(o.remote, sizeof(o.remote), "%s:%u", where, (unsigned)target->port);
    return o;
}
