/* Rows of accounts, forms, and JSON. */
#include "smtp/oauth/oauth.h"

#include "base/crypto/base64.h"
#include "base/crypto/digest.h"
#include "base/dns/dns_reply.h"
#include "base/printable.h"

#include <jansson.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SHOWN_MAX = 200,   /* octets of a provider's description */
    HIDDEN_LENGTH = 8, /* octets in a row that are of a secret by no accident */
    INTERVAL_S = 5,
    INTERVAL_MAX_S = 60,
    DEVICE_LIFETIME_S = 900
};

static bool __attribute__((format(printf, 2, 3)))
oauth_refuse(char why[OAUTH_REASON_MAX], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, OAUTH_REASON_MAX, format, list);
    va_end(list);
    return false;
}

/* --- Accounts -------------------------------------------------------------------- */

static const char *const oauth_providers[] = {"microsoft", "google", "custom"};

/* A place of the account for each key; tenant has none. */
struct oauth_key {
    const char *name;
    size_t offset, size;
    unsigned providers; /* bits */
};
#define OAUTH_PLACE(member)                                                            \
    offsetof(struct oauth_account, member), sizeof(((struct oauth_account *)0)->member)
enum { OAUTH_ALL = 7, OAUTH_OF_CUSTOM = 1 << OAUTH_CUSTOM };
static const struct oauth_key oauth_keys[] = {
    {"client",    OAUTH_PLACE(client),        OAUTH_ALL      },
    {"secret",    OAUTH_PLACE(secret),        OAUTH_ALL      },
    {"scope",     OAUTH_PLACE(scope),         OAUTH_ALL      },
    {"refresh",   OAUTH_PLACE(refresh),       OAUTH_ALL      },
    {"token",     OAUTH_PLACE(token_url),     OAUTH_OF_CUSTOM},
    {"device",    OAUTH_PLACE(device_url),    OAUTH_OF_CUSTOM},
    {"authorize", OAUTH_PLACE(authorize_url), OAUTH_OF_CUSTOM},
};

struct oauth_row {
    struct oauth_account *account;
    char tenant[OAUTH_NAME_MAX];
    size_t words;
    char *why;
};

/* The word is not repeated: it may be a secret whose key was forgotten. */
static bool
oauth_refuse_key(const struct oauth_row *row)
{
    enum oauth_provider provider = row->account->provider;
    char keys[100] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof(oauth_keys) / sizeof(oauth_keys[0]); i++)
        if ((oauth_keys[i].providers & 1U << provider) != 0)
            length += (size_t)snprintf(keys + length, sizeof(keys) - length, "%s ",
                                       oauth_keys[i].name);
    return oauth_refuse(row->why, "word %zu has no key of %s: %sgrant%s", row->words,
                        oauth_providers[provider], keys,
                        provider == OAUTH_MICROSOFT ? " tenant" : "");
}

static bool
oauth_take_host(struct oauth_row *row, struct text word)
{
    uint64_t port = 0;
    size_t colon = text_find(word, ':');
    if (colon != TEXT_NONE &&
        (!text_number(text_after(word, colon + 1), UINT16_MAX, &port) || port == 0))
        return oauth_refuse(row->why, "HOST has no valid port");
    row->account->port = (uint16_t)port;
    return dns_host_copy(row->account->host, text_before(word, colon)) ||
           oauth_refuse(row->why, "HOST is not the name of a host");
}

static bool
oauth_take_provider(struct oauth_row *row, struct text word)
{
    for (size_t i = 0; i < 3; i++)
        if (text_equal(word, text_from(oauth_providers[i]))) {
            row->account->provider = (enum oauth_provider)i;
            return true;
        }
    return oauth_refuse(row->why, "PROVIDER: say microsoft, google or custom");
}

static bool
oauth_take_grant(struct oauth_row *row, struct text value)
{
    row->account->grant =
        text_equal(value, TEXT("client")) ? OAUTH_CLIENT : OAUTH_REFRESH;
    return row->account->grant == OAUTH_CLIENT || text_equal(value, TEXT("refresh")) ||
           oauth_refuse(row->why, "grant: say refresh or client");
}

static bool
oauth_take_tenant(struct oauth_row *row, struct text value)
{
    return (row->account->provider == OAUTH_MICROSOFT &&
            dns_host_copy(row->tenant, value)) ||
           oauth_refuse(row->why, "tenant: a domain or id of microsoft");
}

/* The value is not repeated: it may be a secret. */
static bool
oauth_take_option(struct oauth_row *row, struct text word)
{
    size_t equals = text_find(word, '=');
    if (equals == TEXT_NONE)
        return oauth_refuse(row->why, "something that is not KEY=VALUE");
    struct text key = text_before(word, equals), value = text_after(word, equals + 1);
    if (text_equal(key, TEXT("grant")))
        return oauth_take_grant(row, value);
    if (text_equal(key, TEXT("tenant")))
        return oauth_take_tenant(row, value);
    for (size_t i = 0; i < sizeof(oauth_keys) / sizeof(oauth_keys[0]); i++) {
        const struct oauth_key *known = &oauth_keys[i];
        if (!text_equal(key, text_from(known->name)) ||
            (known->providers & 1U << row->account->provider) == 0)
            continue;
        if (value.length == 0 || text_has_control(value) || !text_is_ascii(value) ||
            !text_copy((char *)row->account + known->offset, known->size, value))
            return oauth_refuse(row->why,
                                "%s: empty, too long or with foreign characters",
                                known->name);
        return true;
    }
    return oauth_refuse_key(row);
}

static void
oauth_fill_microsoft(struct oauth_row *row)
{
    struct oauth_account *a = row->account;
    const char *tenant = row->tenant[0] != '\0' ? row->tenant : "common";
    static const char *base = "https://login.microsoftonline.com";
    snprintf(a->token_url, sizeof(a->token_url), "%s/%s/oauth2/v2.0/token", base,
             tenant);
    snprintf(a->device_url, sizeof(a->device_url), "%s/%s/oauth2/v2.0/devicecode", base,
             tenant);
    snprintf(a->authorize_url, sizeof(a->authorize_url), "%s/%s/oauth2/v2.0/authorize",
             base, tenant);
    if (a->scope[0] == '\0')
        snprintf(a->scope, sizeof(a->scope), "%s",
                 a->grant == OAUTH_CLIENT
                     ? "https://outlook.office365.com/.default"
                     : "https://outlook.office.com/SMTP.Send offline_access");
}

/* Google's device flow refuses the scopes of mail. */
static void
oauth_fill_google(struct oauth_row *row)
{
    struct oauth_account *a = row->account;
    snprintf(a->token_url, sizeof(a->token_url), "https://oauth2.googleapis.com/token");
    snprintf(a->authorize_url, sizeof(a->authorize_url),
             "https://accounts.google.com/o/oauth2/v2/auth");
    if (a->scope[0] == '\0')
        snprintf(a->scope, sizeof(a->scope), "https://mail.google.com/");
}

static bool
oauth_check_url(char why[OAUTH_REASON_MAX], const char *key, const char *url)
{
    struct http_url parts;
    const char *wrong = "the URL does not begin with https://";
    return url[0] == '\0' ||
           (http_url_parse(text_from(url), &parts, &wrong) && parts.secure) ||
           oauth_refuse(why, "%s: %s", key, wrong);
}

static bool
oauth_check_account(struct oauth_row *row)
{
    struct oauth_account *a = row->account;
    for (char *at = a->scope; *at != '\0'; at++)
        if (*at == '+')
            *at = ' ';
    if (a->client[0] == '\0')
        return oauth_refuse(row->why, "client= is missing");
    if (a->grant == OAUTH_CLIENT && a->provider == OAUTH_GOOGLE)
        return oauth_refuse(row->why, "grant=client is not possible at google");
    if (a->grant == OAUTH_CLIENT && a->secret[0] == '\0')
        return oauth_refuse(row->why, "grant=client needs secret=");
    if (a->grant == OAUTH_CLIENT && a->provider == OAUTH_MICROSOFT &&
        row->tenant[0] == '\0')
        return oauth_refuse(row->why, "grant=client needs tenant=");
    if (a->secret[0] == '@' && a->secret[1] != '/')
        return oauth_refuse(row->why, "secret=@ needs an absolute path");
    if (a->refresh[0] != '\0' && strncmp(a->refresh, "@/", 2) != 0)
        return oauth_refuse(row->why, "refresh= is @ and an absolute path");
    if (a->provider == OAUTH_MICROSOFT)
        oauth_fill_microsoft(row);
    else if (a->provider == OAUTH_GOOGLE)
        oauth_fill_google(row);
    else if (a->token_url[0] == '\0')
        return oauth_refuse(row->why, "token= is missing");
    memmove(a->refresh, a->refresh + (a->refresh[0] == '@'),
            strlen(a->refresh) + (a->refresh[0] != '@'));
    return oauth_check_url(row->why, "token", a->token_url) &&
           oauth_check_url(row->why, "device", a->device_url) &&
           oauth_check_url(row->why, "authorize", a->authorize_url);
}

bool
oauth_parse_account(struct text row_text, struct oauth_account *out,
                    char why[OAUTH_REASON_MAX])
{
    struct oauth_row row = {.account = out, .words = 3, .why = why};
    struct text host, user, provider, word;
    memset(out, 0, sizeof(*out));
    /* No word is repeated: it may be a secret in a wrong place. A user with = would be
     * named in warnings. */
    if (!text_word(&row_text, " \t", &host) || !text_word(&row_text, " \t", &user) ||
        !text_word(&row_text, " \t", &provider) || text_find(host, '=') != TEXT_NONE ||
        text_find(user, '=') != TEXT_NONE || text_find(provider, '=') != TEXT_NONE)
        return oauth_refuse(why, "say HOST USER PROVIDER KEY=VALUE...");
    if (!oauth_take_host(&row, host) || !oauth_take_provider(&row, provider))
        return false;
    if (text_has_control(user) || !text_is_utf8(user) ||
        !text_copy(out->user, sizeof(out->user), user))
        return oauth_refuse(
            why, "the user is too long, not UTF-8 or has control characters");
    while (text_word(&row_text, " \t", &word)) {
        row.words++;
        if (!oauth_take_option(&row, word))
            return false;
    }
    return oauth_check_account(&row);
}

void
oauth_account_key(const struct oauth_account *account, char out[OAUTH_KEY_SIZE])
{
    char all[3 * OAUTH_NAME_MAX];
    unsigned char digest[DIGEST_SIZE];
    int length = snprintf(all, sizeof(all), "%s\n%s\n%s", account->host, account->user,
                          account->client);
    digest_plain(text_of(all, (size_t)length), digest);
    text_hex(digest, (OAUTH_KEY_SIZE - 1) / 2, out);
}

/* --- Requests -------------------------------------------------------------------- */

static bool
oauth_add_encoded(struct buffer *out, struct text value)
{
    for (size_t i = 0; i < value.length; i++) {
        char c = value.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     text_is_digit(c) || (c != '\0' && strchr("-._~", c) != NULL);
        if (!(plain ? buffer_add_byte(out, c)
                    : buffer_format(out, "%%%02X", (unsigned)(unsigned char)c)))
            return false;
    }
    return true;
}

/* Empty values are omitted. */
static bool
oauth_add_field(struct buffer *out, const char *name, struct text value)
{
    char last = out->length > 0 ? out->at[out->length - 1] : '?';
    bool first = last == '?' || last == '&';
    return value.length == 0 || (buffer_format(out, "%s%s=", first ? "" : "&", name) &&
                                 oauth_add_encoded(out, value));
}

static bool
oauth_add_client(struct buffer *out, const struct oauth_account *account,
                 struct text secret)
{
    return oauth_add_field(out, "client_id", text_from(account->client)) &&
           oauth_add_field(out, "client_secret", secret);
}

bool
oauth_write_token_request(struct buffer *out, const struct oauth_account *account,
                          struct text secret, struct text refresh)
{
    bool is_client = account->grant == OAUTH_CLIENT;
    return oauth_add_field(out, "grant_type",
                           is_client ? TEXT("client_credentials")
                                     : TEXT("refresh_token")) &&
           (is_client || oauth_add_field(out, "refresh_token", refresh)) &&
           oauth_add_client(out, account, secret) &&
           oauth_add_field(out, "scope", text_from(account->scope));
}

bool
oauth_write_code_request(struct buffer *out, const struct oauth_account *account,
                         struct text secret, struct text code, struct text redirect,
                         struct text verifier)
{
    return oauth_add_field(out, "grant_type", TEXT("authorization_code")) &&
           oauth_add_field(out, "code", code) &&
           oauth_add_field(out, "redirect_uri", redirect) &&
           oauth_add_client(out, account, secret) &&
           oauth_add_field(out, "code_verifier", verifier);
}

bool
oauth_write_device_request(struct buffer *out, const struct oauth_account *account)
{
    return oauth_add_client(out, account, TEXT("")) &&
           oauth_add_field(out, "scope", text_from(account->scope));
}

bool
oauth_write_poll_request(struct buffer *out, const struct oauth_account *account,
                         struct text secret, struct text device_code)
{
    return oauth_add_field(out, "grant_type",
                           TEXT("urn:ietf:params:oauth:grant-type:device_code")) &&
           oauth_add_field(out, "device_code", device_code) &&
           oauth_add_client(out, account, secret);
}

void
oauth_make_verifier(const uint64_t random[4], char out[OAUTH_VERIFIER_SIZE])
{
    base64_write_url(random, DIGEST_SIZE, out);
}

bool
oauth_write_authorize_url(struct buffer *out, const struct oauth_account *account,
                          struct text redirect, struct text state, struct text verifier)
{
    unsigned char digest[DIGEST_SIZE];
    char challenge[OAUTH_VERIFIER_SIZE];
    bool has_query = strchr(account->authorize_url, '?') != NULL;
    digest_plain(verifier, digest);
    base64_write_url(digest, DIGEST_SIZE, challenge);
    return buffer_format(out, "%s%s", account->authorize_url, has_query ? "&" : "?") &&
           oauth_add_field(out, "response_type", TEXT("code")) &&
           oauth_add_field(out, "client_id", text_from(account->client)) &&
           oauth_add_field(out, "redirect_uri", redirect) &&
           oauth_add_field(out, "scope", text_from(account->scope)) &&
           oauth_add_field(out, "state", state) &&
           oauth_add_field(out, "code_challenge", text_from(challenge)) &&
           oauth_add_field(out, "code_challenge_method", TEXT("S256")) &&
           (account->provider != OAUTH_GOOGLE ||
            buffer_add(out, TEXT("&access_type=offline&prompt=consent")));
}

/* The octet that "%41" at this place stands for; -1: it is not of this form. */
static int
oauth_escaped(struct text t, size_t at)
{
    if (at + 2 >= t.length || t.at[at] != '%')
        return -1;
    int high = text_hex_digit(t.at[at + 1]), low = text_hex_digit(t.at[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Decodes a parameter of a query; false when it is too long or malformed. */
static bool
oauth_decode(struct text value, char *out, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < value.length; i++) {
        bool escaped = value.at[i] == '%';
        int octet = oauth_escaped(value, i);
        if (length + 1 >= size || (escaped && octet < 0))
            return false;
        out[length++] = escaped ? (char)octet : value.at[i];
        i += escaped ? 2 : 0;
    }
    out[length] = '\0';
    struct text whole = text_from(out);
    return length > 0 && whole.length == length && !text_has_control(whole) &&
           text_is_ascii(
               whole); /* as RFC 6749 appendix A.11; it may go to a terminal */
}

static struct text
oauth_query_value(struct text query, struct text name)
{
    struct text field;
    while (text_cut(&query, '&', &field)) {
        size_t equals = text_find(field, '=');
        if (equals != TEXT_NONE && text_equal(text_before(field, equals), name))
            return text_after(field, equals + 1);
    }
    return TEXT("");
}

bool
oauth_read_redirect(struct text address, struct text state, char code[OAUTH_SECRET_MAX],
                    char why[OAUTH_REASON_MAX])
{
    address = text_trim(address);
    size_t mark = text_find(address, '?'), hash = text_find(address, '#');
    struct text query = text_after(text_before(address, hash), mark + 1);
    struct text given = oauth_query_value(query, TEXT("state"));
    char got[OAUTH_SECRET_MAX], error[OAUTH_NAME_MAX];
    if (mark == TEXT_NONE)
        return oauth_refuse(why,
                            "this is not the address that the browser was sent to");
    if (!oauth_decode(given, got, sizeof(got)) || !text_equal(text_from(got), state))
        return oauth_refuse(why, "this address belongs to another login");
    if (oauth_decode(oauth_query_value(query, TEXT("error")), error, sizeof(error)))
        return oauth_refuse(why, "the provider refuses: %.200s", error);
    return oauth_decode(oauth_query_value(query, TEXT("code")), code,
                        OAUTH_SECRET_MAX) ||
           oauth_refuse(why, "there is no code in this address");
}

/* --- Answers --------------------------------------------------------------------- */

/* Texts of a provider go into logs. */
static void
oauth_add_shown(char why[OAUTH_REASON_MAX], const char *said)
{
    size_t length = strlen(why);
    if (said == NULL || said[0] == '\0')
        return;
    snprintf(why + length, OAUTH_REASON_MAX - length, ": %.*s", SHOWN_MAX, said);
    printable_make(why + length);
}

/* Marks the octets of the reason that may be of the secret: as they are, or decoded, since
 * a provider may repeat the form that the secret came in. */
static void
oauth_find_secret(struct text reason, bool decodes, struct text secret,
                  bool marks[OAUTH_REASON_MAX])
{
    char plain[OAUTH_REASON_MAX];
    size_t places[OAUTH_REASON_MAX], length = 0;
    size_t known = secret.length < HIDDEN_LENGTH ? secret.length : HIDDEN_LENGTH;
    for (size_t at = 0; at < reason.length; length++) {
        int octet = decodes ? oauth_escaped(reason, at) : -1;
        plain[length] = octet >= 0 ? (char)octet : reason.at[at];
        places[length] = at;
        at += octet >= 0 ? 3 : 1;
    }
    places[length] = reason.length;
    for (size_t i = 0; i + known <= length; i++)
        if (memmem(secret.at, secret.length, plain + i, known) != NULL)
            memset(marks + places[i], true, places[i + known] - places[i]);
}

/* Runs of spaces become one: a secret may have them, and they are no word to hide. */
static void
oauth_hide_words(char reason[OAUTH_REASON_MAX], struct text secret)
{
    char out[OAUTH_REASON_MAX];
    bool marks[OAUTH_REASON_MAX] = {false};
    struct text rest = text_from(reason), word;
    size_t length = 0;
    oauth_find_secret(rest, false, secret, marks);
    oauth_find_secret(rest, true, secret, marks);
    out[0] = '\0';
    while (text_word(&rest, " ", &word) && length < sizeof(out)) {
        if (memchr(marks + (word.at - reason), 1, word.length))
            word = TEXT("(hidden)");
        length += (size_t)snprintf(out + length, sizeof(out) - length, "%s%.*s",
                                   length > 0 ? " " : "", TEXT_ARGS(word));
    }
    text_copy(reason, OAUTH_REASON_MAX, text_from(out));
}

/* Once more: words that came together may be of the secret. */
void
oauth_hide(char reason[OAUTH_REASON_MAX], struct text secret)
{
    if (secret.length == 0)
        return;
    oauth_hide_words(reason, secret);
    oauth_hide_words(reason, secret);
}

static const char *
oauth_member(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* The verdict on a status that is not 200, or on an error that came with it. */
static enum oauth_verdict
oauth_judge(unsigned status, const char *error)
{
    static const struct {
        const char *error;
        enum oauth_verdict verdict;
    } rows[] = {
        {"authorization_pending",   OAUTH_PENDING  },
        {"slow_down",               OAUTH_SLOW_DOWN},
        {"temporarily_unavailable", OAUTH_TRY_AGAIN},
        {"server_error",            OAUTH_TRY_AGAIN},
    };
    for (size_t i = 0; error != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(error, rows[i].error) == 0)
            return rows[i].verdict;
    return status == 429 || status >= 500 ? OAUTH_TRY_AGAIN : OAUTH_REFUSED;
}

/* HTML comes from a proxy, or from an address that is not the provider's. */
static const char oauth_page[] =
    "a web page, not JSON: check the provider's address in oauth (tenant, token), and "
    "proxies on the way";

static bool
oauth_is_page(struct text body)
{
    return text_starts(text_trim(body), TEXT("<"));
}

/* With a status that promises a token. */
static enum oauth_verdict
oauth_refuse_page(char reason[OAUTH_REASON_MAX])
{
    snprintf(reason, OAUTH_REASON_MAX, "the answer is %s", oauth_page);
    return OAUTH_TRY_AGAIN;
}

static enum oauth_verdict
oauth_explain(unsigned status, struct text body, const json_t *json,
              char reason[OAUTH_REASON_MAX])
{
    const char *error = oauth_member(json, "error");
    const char *what = status / 100 == 3     ? "redirects are not followed"
                       : oauth_is_page(body) ? oauth_page
                                             : "";
    snprintf(reason, OAUTH_REASON_MAX, "status %u%s%s", status,
             what[0] != '\0' ? ": " : "", what);
    oauth_add_shown(reason, error);
    oauth_add_shown(reason, oauth_member(json, "error_description"));
    return oauth_judge(status, error);
}

/* 0: not a number of seconds that can be; a missing one has the default. */
static int64_t
oauth_seconds(const json_t *value, int64_t preset, int64_t max)
{
    uint64_t digits = 0;
    int64_t seconds = preset;
    if (json_is_integer(value))
        seconds = json_integer_value(value);
    else if (json_is_real(value))
        seconds = json_real_value(value) >= 1 && json_real_value(value) < 1e9
                      ? (int64_t)json_real_value(value)
                      : 0;
    else if (json_is_string(value))
        seconds = text_number(text_from(json_string_value(value)), INT32_MAX, &digits)
                      ? (int64_t)digits
                      : 0;
    else if (value != NULL && !json_is_null(value))
        seconds = 0;
    return seconds < 0 ? 0 : seconds > max ? max : seconds;
}

/* Printable ASCII without spaces: it goes into a command. */
static bool
oauth_take_token(struct buffer *out, const json_t *value)
{
    struct text token = text_of(json_string_value(value), json_string_length(value));
    for (size_t i = 0; i < token.length; i++)
        if (token.at[i] <= ' ' || token.at[i] > '~')
            return false;
    return token.length > 0 && token.length <= OAUTH_TOKEN_MAX &&
           buffer_reserve(out, OAUTH_TOKEN_MAX) != NULL && buffer_add(out, token);
}

static const char *
oauth_take_answer(const json_t *json, struct oauth_answer *out)
{
    const json_t *refresh = json_object_get(json, "refresh_token");
    const json_t *access = json_object_get(json, "access_token");
    if (!json_is_object(json))
        return "the answer is not JSON";
    if (!json_is_string(access))
        return "the answer has no access_token";
    if (!oauth_take_token(&out->access, access))
        return "the access_token is empty, too long or has foreign characters";
    if (refresh != NULL && !json_is_null(refresh) &&
        !oauth_take_token(&out->refresh, refresh))
        return "the refresh_token is empty, too long or has foreign characters";
    out->lifetime_s = oauth_seconds(json_object_get(json, "expires_in"),
                                    OAUTH_LIFETIME_DEFAULT_S, OAUTH_LIFETIME_MAX_S);
    return out->lifetime_s > 0 ? NULL : "expires_in is not a time to come";
}

/* jansson's memory is freed, but not overwritten. */
void
oauth_read_token(unsigned status, struct text body, struct oauth_answer *out)
{
    json_t *json = json_loadb(body.at != NULL ? body.at : "", body.length, 0, NULL);
    const char *wrong = NULL;
    memset(out, 0, sizeof(*out));
    buffer_init(&out->access, OAUTH_TOKEN_MAX);
    buffer_init(&out->refresh, OAUTH_TOKEN_MAX);
    if (status / 100 != 2 || oauth_member(json, "error") != NULL) {
        out->verdict = oauth_explain(status, body, json, out->reason);
    } else if (oauth_is_page(body)) {
        out->verdict = oauth_refuse_page(out->reason);
    } else if ((wrong = oauth_take_answer(json, out)) != NULL) {
        out->verdict = OAUTH_TRY_AGAIN;
        snprintf(out->reason, sizeof(out->reason), "%s", wrong);
    }
    json_decref(json);
}

void
oauth_answer_free(struct oauth_answer *answer)
{
    buffer_forget(&answer->access);
    buffer_forget(&answer->refresh);
}

static bool
oauth_take_string(char *out, size_t size, const json_t *json, const char *name)
{
    const char *value = oauth_member(json, name);
    return value != NULL && value[0] != '\0' && !text_has_control(text_from(value)) &&
           text_is_ascii(text_from(value)) && text_copy(out, size, text_from(value));
}

void
oauth_read_device(unsigned status, struct text body, struct oauth_device *out)
{
    json_t *json = json_loadb(body.at != NULL ? body.at : "", body.length, 0, NULL);
    memset(out, 0, sizeof(*out));
    out->interval_s =
        oauth_seconds(json_object_get(json, "interval"), INTERVAL_S, INTERVAL_MAX_S);
    out->lifetime_s = oauth_seconds(json_object_get(json, "expires_in"),
                                    DEVICE_LIFETIME_S, OAUTH_LIFETIME_MAX_S);
    if (status / 100 != 2 || oauth_member(json, "error") != NULL) {
        out->verdict = oauth_explain(status, body, json, out->reason);
    } else if (oauth_is_page(body)) {
        out->verdict = oauth_refuse_page(out->reason);
    } else if (!oauth_take_string(out->device_code, sizeof(out->device_code), json,
                                  "device_code") ||
               !oauth_take_string(out->user_code, sizeof(out->user_code), json,
                                  "user_code") ||
               /* Google says verification_url. */
               (!oauth_take_string(out->url, sizeof(out->url), json,
                                   "verification_uri") &&
                !oauth_take_string(out->url, sizeof(out->url), json,
                                   "verification_url")) ||
               out->interval_s == 0 || out->lifetime_s == 0) {
        out->verdict = OAUTH_TRY_AGAIN;
        snprintf(out->reason, sizeof(out->reason),
                 "the answer has no device_code, user_code and verification_uri");
    }
    json_decref(json);
}
