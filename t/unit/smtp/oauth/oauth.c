/* Proves how accounts are read, what providers are asked, and what becomes of each
 * answer. */
#include "smtp/oauth/oauth.h"

#include "base/memory.h"
#include "t/support/tap.h"

#define MICROSOFT                                                                      \
    "smtp.office365.com alerts@contoso.com microsoft tenant=contoso.com client=ID-1 "  \
    "secret=s3cr3t&x grant=client"

static struct oauth_account
account(const char *row)
{
    struct oauth_account a;
    char why[OAUTH_REASON_MAX] = "";
    if (!ok_named(oauth_parse_account(text_from(row), &a, why), row))
        printf("# %s\n", why);
    return a;
}

TEST(accounts)
{
    struct oauth_account a = account(MICROSOFT);
    is_string(a.host, "smtp.office365.com", "the host");
    is_string(a.user, "alerts@contoso.com", "the user");
    ok(a.port == 0 && a.grant == OAUTH_CLIENT && a.provider == OAUTH_MICROSOFT);
    is_string(a.secret, "s3cr3t&x", "the secret");
    is_string(a.token_url, "https://login.microsoftonline.com/contoso.com/oauth2/v2.0/token",
              "where tokens are");
    is_string(a.scope, "https://outlook.office365.com/.default", "the scope");
    a = account("SMTP.Office365.com:587  u@x.test\tmicrosoft client=a");
    is_string(a.host, "smtp.office365.com", "in lower case");
    ok(a.port == 587 && a.grant == OAUTH_REFRESH && a.secret[0] == '\0');
    is_string(a.scope, "https://outlook.office.com/SMTP.Send offline_access", "a user's");
    is_string(a.device_url,
              "https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
              "the device flow");
    is_string(a.authorize_url,
              "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
              "the browser's");
    a = account("smtp.gmail.com u@gmail.com google client=a secret=@/run/s refresh=@/run/r");
    is_string(a.secret, "@/run/s", "a secret in a file");
    is_string(a.refresh, "/run/r", "a refresh token, too");
    is_string(a.token_url, "https://oauth2.googleapis.com/token", "google");
    is_string(a.scope, "https://mail.google.com/", "its scope");
    ok_named(a.device_url[0] == '\0', "no device flow");
    a = account("h u custom client=a token=https://t.test/x device=https://t.test/d "
                "authorize=https://t.test/a?b=c scope=one+two");
    is_string(a.token_url, "https://t.test/x", "custom");
    is_string(a.scope, "one two", "a scope of two words");
    ok(a.refresh[0] == '\0' && a.device_url[0] != '\0' && a.authorize_url[0] != '\0');
}

TEST(mistakes)
{
    static const struct {
        const char *row, *why;
    } rows[] = {
        {"", "say HOST USER PROVIDER KEY=VALUE..."},
        {"h u", "say HOST USER PROVIDER KEY=VALUE..."},
        {"h:0 u google client=a", "HOST has no valid port"},
        {"h:x u google client=a", "HOST has no valid port"},
        {"h:65536 u google client=a", "HOST has no valid port"},
        {"a..b u google client=a", "HOST is not the name of a host"},
        {"h u yahoo client=a", "PROVIDER: say microsoft, google or custom"},
        {"h u s3cr3t google client=a", "PROVIDER: say microsoft, google or custom"},
        {"secret:s3cr3t h u google client=a", "HOST has no valid port"},
        {"(s3cr3t) h u google client=a", "HOST is not the name of a host"},
        {"h secret=s3cr3t google client=a", "say HOST USER PROVIDER KEY=VALUE..."},
        {"h u google", "client= is missing"},
        {"h u google client=", "client: empty, too long or with foreign characters"},
        {"h u google client=a s3cr3t", "something that is not KEY=VALUE"},
        {"h u google client=a pass=s3cr3t",
         "word 5 has no key of google: client secret scope refresh grant"},
        {"h u google client=a token=https://x/",
         "word 5 has no key of google: client secret scope refresh grant"},
        {"h u google client=a secret= c3Vzcg==s3cr3t",
         "secret: empty, too long or with foreign characters"},
        {"h u microsoft s3cr3t== client=a",
         "word 4 has no key of microsoft: client secret scope refresh grant tenant"},
        {"h u custom s3cr3t=1",
         "word 4 has no key of custom: client secret scope refresh token device "
         "authorize grant"},
        {"h google secret=s3cr3t client=a", "say HOST USER PROVIDER KEY=VALUE..."},
        {"secret=s3cr3t h u google", "say HOST USER PROVIDER KEY=VALUE..."},
        {"secret=s3cr3t:x h u google", "say HOST USER PROVIDER KEY=VALUE..."},
        {"h u google client=a tenant=x", "tenant: a domain or id of microsoft"},
        {"h u microsoft client=a tenant=x/y", "tenant: a domain or id of microsoft"},
        {"h u google client=a grant=both", "grant: say refresh or client"},
        {"h u google client=a secret=x grant=client",
         "grant=client is not possible at google"},
        {"h u microsoft client=a tenant=x grant=client", "grant=client needs secret="},
        {"h u microsoft client=a secret=x grant=client", "grant=client needs tenant="},
        {"h u google client=a secret=@s3cr3t", "secret=@ needs an absolute path"},
        {"h u google client=a refresh=s3cr3t", "refresh= is @ and an absolute path"},
        {"h u custom client=a", "token= is missing"},
        {"h u custom client=a token=http://t.test/",
         "token: the URL does not begin with https://"},
        {"h u custom client=a token=https://t.test/ device=x",
         "device: the URL does not begin with https://"},
        {"h u custom client=a token=https://t.test/ authorize=https://u@t/",
         "authorize: the URL has a user name"},
        {"h u google client=a secret=\xc3\xbc",
         "secret: empty, too long or with foreign characters"},
        {"h u\x01 google client=a",
         "the user is too long, not UTF-8 or has control characters"},
        {"h u\xff google client=a",
         "the user is too long, not UTF-8 or has control characters"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct oauth_account a;
        char why[OAUTH_REASON_MAX] = "";
        ok(!oauth_parse_account(text_from(rows[i].row), &a, why));
        is_string(why, rows[i].why, rows[i].row);
        ok_named(strstr(why, "s3cr3t") == NULL, "  no secret is repeated");
    }
}

TEST(key)
{
    struct oauth_account a = account(MICROSOFT), b = a;
    char one[OAUTH_KEY_SIZE], other[OAUTH_KEY_SIZE];
    oauth_account_key(&a, one);
    is_number(strspn(one, "0123456789abcdef"), 16, "16 digits");
    b.secret[0] = 'x';
    b.port = 25;
    oauth_account_key(&b, other);
    is_string(other, one, "a new secret does not change it");
    b.client[0] = 'x';
    oauth_account_key(&b, other);
    ok_named(strcmp(one, other) != 0, "another client does");
}

TEST(requests)
{
    struct oauth_account a = account(MICROSOFT);
    struct buffer out;
    buffer_init(&out, OAUTH_REQUEST_MAX);
    ok(oauth_write_token_request(&out, &a, text_from(a.secret), TEXT("unused")));
    is_text(buffer_text(&out),
            TEXT("grant_type=client_credentials&client_id=ID-1&client_secret=s3cr3t%26x&"
                 "scope=https%3A%2F%2Foutlook.office365.com%2F.default"),
            "client credentials");
    a = account("h u google client=a");
    buffer_clear(&out);
    ok(oauth_write_token_request(&out, &a, TEXT(""), TEXT("r/t+1~\xff")));
    is_text(buffer_text(&out),
            TEXT("grant_type=refresh_token&refresh_token=r%2Ft%2B1~%FF&client_id=a&"
                 "scope=https%3A%2F%2Fmail.google.com%2F"),
            "a refresh token, of a client without a secret");
    buffer_clear(&out);
    ok(oauth_write_code_request(&out, &a, TEXT("s"), TEXT("c 1"),
                                TEXT("http://127.0.0.1:8976/"), TEXT("v")));
    is_text(buffer_text(&out),
            TEXT("grant_type=authorization_code&code=c%201&redirect_uri=http%3A%2F%2F"
                 "127.0.0.1%3A8976%2F&client_id=a&client_secret=s&code_verifier=v"),
            "a code");
    buffer_clear(&out);
    ok(oauth_write_device_request(&out, &a));
    is_text(buffer_text(&out),
            TEXT("client_id=a&scope=https%3A%2F%2Fmail.google.com%2F"), "a device");
    buffer_clear(&out);
    ok(oauth_write_poll_request(&out, &a, TEXT(""), TEXT("d")));
    is_text(buffer_text(&out),
            TEXT("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&"
                 "device_code=d&client_id=a"),
            "its poll");
    buffer_free(&out);
    for (size_t limit = 0; limit < 60; limit++) {
        buffer_init(&out, limit);
        ok_named(!oauth_write_token_request(&out, &a, TEXT("s"), TEXT("r")), "no space");
        buffer_free(&out);
    }
}

/* RFC 7636, appendix B. */
TEST(authorize)
{
    struct oauth_account a = account("h u google client=a");
    uint64_t random[4];
    char verifier[OAUTH_VERIFIER_SIZE];
    static const unsigned char octets[] = {
        116, 24,  223, 180, 151, 153, 224, 37,  79,  250, 96,  125, 216, 173, 187, 186,
        22,  212, 37,  77,  105, 214, 191, 240, 91,  88,  5,   88,  83,  132, 141, 121};
    memcpy(random, octets, sizeof(random));
    oauth_make_verifier(random, verifier);
    is_string(verifier, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "the verifier");
    FIXTURE(buffer, out, buffer_init, buffer_free, HTTP_URL_MAX);
    ok(oauth_write_authorize_url(&out, &a, TEXT("http://127.0.0.1:8976/"), TEXT("st"),
                                 text_from(verifier)));
    is_text(buffer_text(&out),
            TEXT("https://accounts.google.com/o/oauth2/v2/auth?response_type=code&"
                 "client_id=a&redirect_uri=http%3A%2F%2F127.0.0.1%3A8976%2F&"
                 "scope=https%3A%2F%2Fmail.google.com%2F&state=st&"
                 "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&"
                 "code_challenge_method=S256&access_type=offline&prompt=consent"),
            "what the user opens");
    buffer_clear(&out);
    a = account("h u custom client=a token=https://t/ authorize=https://t/a?b=c scope=x");
    ok(oauth_write_authorize_url(&out, &a, TEXT("r"), TEXT("s"), TEXT("v")));
    ok_named(text_starts(buffer_text(&out), TEXT("https://t/a?b=c&response_type=code&")),
             "a query is kept");
}

TEST(redirect)
{
    static const struct {
        const char *address, *outcome;
    } rows[] = {
        {"http://127.0.0.1:8976/?code=4%2F0Ab&state=st&scope=x", "4/0Ab"},
        {" http://127.0.0.1:8976/?state=st&code=c#frag \r\n", "c"},
        {"http://127.0.0.1:8976/", "this is not the address that the browser was sent to"},
        {"", "this is not the address that the browser was sent to"},
        {"http://127.0.0.1:8976/?code=c", "this address belongs to another login"},
        {"http://127.0.0.1:8976/?code=c&state=other",
         "this address belongs to another login"},
        {"?state=st&error=access_denied", "the provider refuses: access_denied"},
        {"?state=st", "there is no code in this address"},
        {"?state=st&code=", "there is no code in this address"},
        {"?state=st&code=%zz", "there is no code in this address"},
        {"?state=st&code=%0d%0a", "there is no code in this address"},
        {"?state=st&code=a%00b", "there is no code in this address"},
        {"?state=st&code=%4", "there is no code in this address"},
        {"?state=st&code=%c2%9b", "there is no code in this address"},
        {"?state=st&error=%9b2J", "there is no code in this address"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char code[OAUTH_SECRET_MAX] = "", why[OAUTH_REASON_MAX] = "";
        bool good = oauth_read_redirect(text_from(rows[i].address), TEXT("st"), code, why);
        is_string(good ? code : why, rows[i].outcome, rows[i].address);
    }
}

static const struct {
    unsigned status;
    const char *body, *access, *refresh; /* access NULL: not granted */
    int64_t lifetime_s;
    enum oauth_verdict verdict;
    const char *reason;
} answers[] = {
    {200, "{\"access_token\":\"at\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
     "at", "", 3599, OAUTH_GRANTED, ""},
    {200, "{\"access_token\":\"at\",\"expires_in\":\"1800\",\"refresh_token\":\"r\"}",
     "at", "r", 1800, OAUTH_GRANTED, ""},
    {200, "{\"access_token\":\"at\"}", "at", "", 3600, OAUTH_GRANTED, ""},
    {200, "{\"access_token\":\"at\",\"expires_in\":null,\"refresh_token\":null}", "at",
     "", 3600, OAUTH_GRANTED, ""},
    {200, "{\"access_token\":\"at\",\"expires_in\":1e6}", "at", "", 86400,
     OAUTH_GRANTED, ""},
    {200, "{\"access_token\":\"at\",\"expires_in\":99999999999}", "at", "", 86400,
     OAUTH_GRANTED, ""},
    {200, "{\"access_token\":\"at\",\"expires_in\":-1}", NULL, "", 0,
     OAUTH_TRY_AGAIN, "expires_in is not a time to come"},
    {200, "{\"access_token\":\"at\",\"expires_in\":\"-1\"}", NULL, "", 0,
     OAUTH_TRY_AGAIN, "expires_in is not a time to come"},
    {200, "{\"access_token\":\"at\",\"expires_in\":[]}", NULL, "", 0,
     OAUTH_TRY_AGAIN, "expires_in is not a time to come"},
    {200, "<html>canary</html>", NULL, "", 0, OAUTH_TRY_AGAIN,
     "the answer is a web page, not JSON: check the provider's address in oauth "
     "(tenant, token), and proxies on the way"},
    {200, " \r\n<!DOCTYPE html>", NULL, "", 0, OAUTH_TRY_AGAIN,
     "the answer is a web page, not JSON: check the provider's address in oauth "
     "(tenant, token), and proxies on the way"},
    {403, "<html>canary</html>", NULL, "", 0, OAUTH_REFUSED,
     "status 403: a web page, not JSON: check the provider's address in oauth "
     "(tenant, token), and proxies on the way"},
    {302, "<html>moved</html>", NULL, "", 0, OAUTH_REFUSED,
     "status 302: redirects are not followed"},
    {200, "", NULL, "", 0, OAUTH_TRY_AGAIN, "the answer is not JSON"},
    {200, "[]", NULL, "", 0, OAUTH_TRY_AGAIN, "the answer is not JSON"},
    {200, "{}", NULL, "", 0, OAUTH_TRY_AGAIN, "the answer has no access_token"},
    {200, "{\"access_token\":7}", NULL, "", 0, OAUTH_TRY_AGAIN,
     "the answer has no access_token"},
    {200, "{\"access_token\":\"canary\\r\\nMAIL\"}", NULL, "", 0, OAUTH_TRY_AGAIN,
     "the access_token is empty, too long or has foreign characters"},
    {200, "{\"access_token\":\"\"}", NULL, "", 0, OAUTH_TRY_AGAIN,
     "the access_token is empty, too long or has foreign characters"},
    {200, "{\"access_token\":\"at\",\"refresh_token\":\"canary x\"}", NULL, "", 0,
     OAUTH_TRY_AGAIN,
     "the refresh_token is empty, too long or has foreign characters"},
    {400, "{\"error\":\"invalid_grant\",\"error_description\":\"AADSTS70008: old\"}",
     NULL, "", 0, OAUTH_REFUSED, "status 400: invalid_grant: AADSTS70008: old"},
    {401, "{\"error\":\"invalid_client\"}", NULL, "", 0, OAUTH_REFUSED,
     "status 401: invalid_client"},
    {400, "no JSON", NULL, "", 0, OAUTH_REFUSED, "status 400"},
    {200, "{\"error\":\"invalid_grant\"}", NULL, "", 0, OAUTH_REFUSED,
     "status 200: invalid_grant"},
    {400, "{\"error\":\"x\\u001b[2J\\r\\n\"}", NULL, "", 0, OAUTH_REFUSED,
     "status 400: x?[2J??"},
    {400, "{\"error\":\"authorization_pending\"}", NULL, "", 0, OAUTH_PENDING,
     "status 400: authorization_pending"},
    {400, "{\"error\":\"slow_down\"}", NULL, "", 0, OAUTH_SLOW_DOWN,
     "status 400: slow_down"},
    {400, "{\"error\":\"temporarily_unavailable\"}", NULL, "", 0, OAUTH_TRY_AGAIN,
     "status 400: temporarily_unavailable"},
    {429, "", NULL, "", 0, OAUTH_TRY_AGAIN, "status 429"},
    {503, "<html>", NULL, "", 0, OAUTH_TRY_AGAIN,
     "status 503: a web page, not JSON: check the provider's address in oauth "
     "(tenant, token), and proxies on the way"},
    {503, "no <html>", NULL, "", 0, OAUTH_TRY_AGAIN, "status 503"},
    {302, "", NULL, "", 0, OAUTH_REFUSED, "status 302: redirects are not followed"},
    {404, "{\"error\":7}", NULL, "", 0, OAUTH_REFUSED, "status 404"},
};

TEST(tokens)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct oauth_answer a;
        oauth_read_token(answers[i].status, text_from(answers[i].body), &a);
        is_number(a.verdict, answers[i].verdict, answers[i].body);
        is_string(a.reason, answers[i].reason, "  the reason");
        ok_named(strstr(a.reason, "canary") == NULL, "  without a secret");
        if (answers[i].access != NULL) {
            is_text(buffer_text(&a.access), text_from(answers[i].access), "  the token");
            is_text(buffer_text(&a.refresh), text_from(answers[i].refresh), "  the other");
            is_number(a.lifetime_s, answers[i].lifetime_s, "  its lifetime");
        }
        oauth_answer_free(&a);
        ok(a.access.at == NULL);
    }
}

TEST(long)
{
    for (size_t length = OAUTH_TOKEN_MAX; length <= OAUTH_TOKEN_MAX + 1; length++) {
        char *body = memory_new(length + 100);
        struct oauth_answer a;
        strcpy(body, "{\"access_token\":\"");
        memset(body + strlen(body), 'x', length);
        strcat(body, "\"}");
        oauth_read_token(200, text_from(body), &a);
        is_number(a.verdict, length > OAUTH_TOKEN_MAX ? OAUTH_TRY_AGAIN : OAUTH_GRANTED,
                  "8 KiB at most");
        oauth_answer_free(&a);
        free(body);
    }
    char body[1200];
    struct oauth_answer a;
    int length = snprintf(body, sizeof(body), "{\"error\":\"invalid_grant\",\"error_description\":\"%0999d\"}", 7);
    oauth_read_token(400, text_of(body, (size_t)length), &a);
    is_number(strlen(a.reason), strlen("status 400: invalid_grant: ") + 200,
              "200 octets of a description");
    oauth_answer_free(&a);
    length = snprintf(body, sizeof(body),
                      "{\"error\":\"%0200d\",\"error_description\":\"%0200d\"}", 1, 2);
    oauth_read_token(302, text_of(body, (size_t)length), &a);
    is_number(strlen(a.reason), OAUTH_REASON_MAX - 1, "as much as fits");
    ok_named(strstr(a.reason, "status 302: redirects are not followed: 0") == a.reason,
             "  our own words first");
    oauth_answer_free(&a);
}

/* Some providers repeat what they were asked with. */
TEST(hidden)
{
    static const struct {
        const char *reason, *secret, *shown;
    } rows[] = {
        {"status 400: token canary-12345 is old", "canary-12345",
         "status 400: token (hidden) is old"},
        {"canary-12345", "canary-12345", "(hidden)"},
        {"'canary-12345' and canary-12345x", "canary-12345",
         "(hidden) and (hidden)"},
        {"cut: canary-1", "canary-12345", "cut: (hidden)"},
        {"key=canary-12345&x=y bad", "canary-12345", "(hidden) bad"},
        {"canary is a bird", "canary-12345", "canary is a bird"},
        {"a short one is abc", "abc", "a short one is (hidden)"},
        {"refresh_token=1%2F%2F0canary&x=1 bad", "1//0canary-12345", "(hidden) bad"},
        {"refresh_token=1%2f%2f0canary-1", "1//0canary-12345", "(hidden)"},
        {"100% of 1%2F%2F0canary%", "1//0canary-12345", "100% of (hidden)"},
        {"as is: a%2Fcanary", "a%2Fcanary-12345", "as is: (hidden)"},
        {"one that ends with ry-12345", "canary-12345", "one that ends with (hidden)"},
        {"an end of y-12345", "canary-12345", "an end of y-12345"},
        {"the words old canary are wrong", "my old canary sings",
         "the words (hidden) (hidden) are wrong"},
        {"a          b", "x         y", "a b"},
        {"x         y is wrong", "x         y", "(hidden) (hidden) is wrong"},
        {"ab cd ef  gh", "ab cd ef gh", "(hidden) (hidden) (hidden) gh"},
        {"%", "%", "(hidden)"},
        {"none", "", "none"},
        {"", "canary-12345", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char reason[OAUTH_REASON_MAX];
        text_copy(reason, sizeof(reason), text_from(rows[i].reason));
        oauth_hide(reason, text_from(rows[i].secret));
        is_string(reason, rows[i].shown, rows[i].reason);
    }
    char reason[OAUTH_REASON_MAX];
    for (size_t i = 0; i < sizeof(reason) - 1; i++)
        reason[i] = i % 2 ? ' ' : 's';
    reason[sizeof(reason) - 1] = '\0';
    oauth_hide(reason, TEXT("s"));
    ok_named(strlen(reason) < sizeof(reason) && strchr(reason, 's') == NULL,
             "a full one stays within its size");
}

TEST(device)
{
    struct oauth_device d;
    oauth_read_device(200,
                      TEXT("{\"device_code\":\"dc\",\"user_code\":\"AB-CD\","
                           "\"verification_uri\":\"https://microsoft.com/devicelogin\","
                           "\"expires_in\":900,\"interval\":7}"),
                      &d);
    is_number(d.verdict, OAUTH_GRANTED, "a device code");
    is_string(d.device_code, "dc", "for us");
    is_string(d.user_code, "AB-CD", "for the user");
    is_string(d.url, "https://microsoft.com/devicelogin", "the page");
    ok(d.lifetime_s == 900 && d.interval_s == 7);
    oauth_read_device(200,
                      TEXT("{\"device_code\":\"dc\",\"user_code\":\"AB\","
                           "\"verification_url\":\"https://x\"}"),
                      &d);
    ok(d.verdict == OAUTH_GRANTED && d.interval_s == 5 && d.lifetime_s == 900);
    oauth_read_device(200, TEXT("{\"device_code\":\"dc\",\"user_code\":\"A\\u001b\","
                                "\"verification_uri\":\"https://x\"}"),
                      &d);
    is_number(d.verdict, OAUTH_TRY_AGAIN, "what would go to the terminal");
    oauth_read_device(200, TEXT("nothing"), &d);
    is_string(d.reason, "the answer has no device_code, user_code and verification_uri",
              "no JSON");
    oauth_read_device(200, TEXT("<html>canary</html>"), &d);
    is_number(d.verdict, OAUTH_TRY_AGAIN, "HTML");
    ok(strstr(d.reason, "the answer is a web page, not JSON: check ") == d.reason);
    oauth_read_device(400, TEXT("{\"error\":\"invalid_scope\"}"), &d);
    is_number(d.verdict, OAUTH_REFUSED, "refused");
    is_string(d.reason, "status 400: invalid_scope", "with its reason");
}
