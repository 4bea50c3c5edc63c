/* Sites by mail exchangers: providers and their mistakes, canonical keys. */
#include "sched/site_key.h"

#include "t/support/tap.h"

enum { HOSTS_MAX = 200 };

static char key[SITE_KEY_KEY_MAX];

/* hosts: "10 mx.example 20 other.example" */
static const char *
key_of(const struct site_keys *p, const char *hosts)
{
    struct exchange_name names[HOSTS_MAX];
    struct text rest = text_from(hosts), number, name;
    size_t count = 0;
    while (text_word(&rest, " ", &number) && text_word(&rest, " ", &name)) {
        uint64_t preference;
        if (!text_number(number, UINT32_MAX, &preference) || count == HOSTS_MAX)
            abort();
        names[count++] = (struct exchange_name){name, (unsigned)preference};
    }
    memset(key, '?', sizeof(key));
    size_t length = site_key_key(p, names, count, key);
    if (length >= sizeof(key) || strlen(key) != length)
        return "a wrong length";
    return key;
}

static struct site_keys *
providers_of(const char *list)
{
    return site_keys_new(text_from(list), NULL);
}

static bool
is_bad(const char *list)
{
    struct site_keys *p = providers_of(list);
    bool bad = p == NULL;
    site_keys_free(&p);
    return bad;
}

TEST(grammar)
{
    static const char *const good[] = {"",
                                       "  \t\n",
                                       "a=mx.example",
                                       "a=*.example",
                                       "a=*.example,mx.other.example",
                                       "a=*.example\n\tb=*.b.example  c=c.example",
                                       "A-1_x=MX.Example",
                                       "a=b=c"};
    static const char *const bad[] = {"a",
                                      "a=",
                                      "=mx.example",
                                      "=",
                                      "a=*",
                                      "a=*.",
                                      "a=m*.example",
                                      "a=*.*.example",
                                      "a=**.example",
                                      "a=mx.example,*",
                                      "a=*x.example",
                                      "ok=*.example bad"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        ok_named(!is_bad(good[i]), i == 1 ? "blanks" : i == 5 ? "lines" : good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(is_bad(bad[i]), bad[i]);
    struct site_keys *none = NULL;
    site_keys_free(&none);
    ok_named(!none, "nothing can be freed");
}

TEST(mistakes)
{
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
    ok(!site_keys_new(TEXT("good=*.example bad two=mx.example,*"), &mistakes));
    struct text said = buffer_text(&mistakes), line;
    ok(text_cut(&said, '\n', &line));
    is_text(line, TEXT("providers: 'bad': write NAME=PATTERN,PATTERN"),
            "what is wrong and what would be right");
    ok(text_cut(&said, '\n', &line));
    ok_named(text_starts(line, TEXT("providers: '*': not a pattern")), "and the next one");
    is_number(said.length, 0, "one line a mistake");
    buffer_clear(&mistakes);
    struct site_keys *p = site_keys_new(TEXT("good=*.example"), &mistakes);
    ok_named(p && mistakes.length == 0, "no mistake, not a word");
    site_keys_free(&p);
}

TEST(most_patterns)
{
    static char list[SITE_KEYS_MAX * 16];
    size_t length = (size_t)snprintf(list, sizeof(list), "many=");
    for (int i = 0; i < SITE_KEYS_MAX; i++)
        length += (size_t)snprintf(list + length, sizeof(list) - length,
                                   "%smx%d.example", i > 0 ? "," : "", i);
    struct site_keys *p = providers_of(list);
    ok_named(p != NULL, "as many patterns as there may be");
    is_string(key_of(p, "1 mx999.example"), "provider:many", "the last one counts");
    site_keys_free(&p);
    snprintf(list + length, sizeof(list) - length, " b=x.example");
    ok_named(is_bad(list), "one more is a mistake");
}

TEST(provider)
{
    struct site_keys *p =
        providers_of("google=*.google.com,*.googlemail.com,gmx.example "
                     "other=*.mail.google.com,*.other.example");
    is_string(key_of(p, "5 aspmx.l.google.com 10 alt1.aspmx.l.google.com"),
              "provider:google", "all hosts of a provider");
    is_string(key_of(p, "5 ASPMX.L.Google.COM."), "provider:google",
              "in any case, with a dot at the end");
    is_string(key_of(p, "5 a.google.com 7 b.googlemail.com"), "provider:google",
              "by any of its patterns");
    is_string(key_of(p, "5 gmx.example"), "provider:google", "a pattern may be a name");
    is_string(key_of(p, "5 GMX.example."), "provider:google", "compared like hosts");
    is_string(key_of(p, "5 x.gmx.example"), "mx:5 x.gmx.example",
              "a name is not the end of one");
    is_string(key_of(p, "5 google.com"), "mx:5 google.com", "nor a suffix a name");
    is_string(key_of(p, "5 .google.com"), "mx:5 .google.com", "whatever is put there");
    is_string(key_of(p, "5 evilgoogle.com"), "mx:5 evilgoogle.com", "labels are whole");
    is_string(key_of(p, "5 a.google.com.evil.example"),
              "mx:5 a.google.com.evil.example", "a suffix stands at the end");
    is_string(key_of(p, "5 a.google.com 9 mx.own.example"),
              "mx:5 a.google.com,9 mx.own.example", "one foreign host: no provider");
    is_string(key_of(p, "5 a.google.com 9 b.other.example"),
              "mx:5 a.google.com,9 b.other.example", "two providers are none");
    is_string(key_of(p, "1 x.mail.google.com"), "provider:google",
              "of two that match the first");
    is_string(key_of(p, "1 x.mail.google.com 2 y.other.example"), "provider:other",
              "or the one for all of them");
    is_string(key_of(NULL, "5 a.google.com"), "mx:5 a.google.com", "no providers");
    site_keys_free(&p);
}

TEST(provider_names)
{
    struct site_keys *p = providers_of("one=*.Example. two=*.two.org one=mx.two.org.");
    is_string(key_of(p, "1 MX.example"), "provider:one", "patterns with dots and case");
    is_string(key_of(p, "1 mx.two.org"), "provider:two", "the first to match");
    site_keys_free(&p);
    char list[600];
    memset(list, 'n', sizeof(list));
    snprintf(list + 500, sizeof(list) - 500, "=*.example");
    p = providers_of(list);
    ok_named(p && strlen(key_of(p, "1 a.example")) < SITE_KEY_KEY_MAX,
             "an absurd name is cut");
    ok(!strncmp(key, "provider:nnn", 12));
    site_keys_free(&p);
}

TEST(canonical)
{
    const char *want = "mx:5 c.example,10 a.example,10 b.example";
    is_string(key_of(NULL, "10 b.example 10 a.example 5 c.example"), want, "sorted");
    is_string(key_of(NULL, "5 C.example. 10 A.EXAMPLE 10 b.Example."), want,
              "the same set in another dress");
    ok(strcmp(key_of(NULL, "10 c.example 10 a.example 10 b.example"), want) != 0);
    ok(strcmp(key_of(NULL, "5 c.example 10 a.example"), want) != 0);
    is_string(key_of(NULL, "0 x 4294967295 y"), "mx:0 x,4294967295 y", "extremes");
    is_string(key_of(NULL, "0 ."), "mx:0 ", "the root");
    char with[64];
    snprintf(with, sizeof(with), "%s", key_of(NULL, "1 mx.a.co 1 mx.a.co-op"));
    is_string(key_of(NULL, "1 mx.a.co. 1 mx.a.co-op."), with,
              "dots at the end do not change the order");
}

/* count hosts of 40 characters from the first on; in a letter's case, backwards. */
static const char *
many(unsigned first, unsigned count, bool backwards, bool upper, unsigned preference)
{
    static char hosts[HOSTS_MAX * 60], result[SITE_KEY_KEY_MAX];
    size_t length = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned number = first + (backwards ? count - 1 - i : i);
        length += (size_t)snprintf(hosts + length, sizeof(hosts) - length,
                                   upper ? "%u MX%04u.A-RATHER-LONG-NAME.EXAMPLE.ORG "
                                         : "%u mx%04u.a-rather-long-name.example.org ",
                                   preference, number);
    }
    snprintf(result, sizeof(result), "%s", key_of(NULL, hosts));
    return result;
}

TEST(long_sets)
{
    char first[SITE_KEY_KEY_MAX];
    snprintf(first, sizeof(first), "%s", many(0, 50, false, false, 10));
    ok_named(
        !strncmp(first, "mx:10 mx0000.a-rather-long-name.example.org,10 mx0001.", 54),
        "what has room stands there");
    const char *hash = strchr(first, '~');
    ok_named(hash && strlen(hash) == 17, "then a hash");
    ok(strlen(first) < SITE_KEY_KEY_MAX);
    is_string(many(0, 50, true, false, 10), first, "the same in any order");
    is_string(many(0, 50, false, true, 10), first, "and in any case");
    ok_named(strcmp(many(0, 49, false, false, 10), first) != 0,
             "different where it is cut off: one less");
    ok_named(strcmp(many(0, 51, false, false, 10), first) != 0, "one more");
    ok(strcmp(many(0, 50, false, false, 11), first) != 0);
    is_string(many(0, 100, true, false, 10), many(0, 100, false, false, 10),
              "as many as are looked at, in any order");
    char whole[SITE_KEY_KEY_MAX];
    snprintf(whole, sizeof(whole), "%s", many(0, 100, false, false, 10));
    is_string(many(0, HOSTS_MAX, false, false, 10), whole, "more are not looked at");
    const char *both = many(0, 5, false, false, 10);
    ok_named(!strchr(both, '~') && strlen(both) == 3 + 5 * 41 - 1,
             "short sets are whole");
}

/* One name as long as the key and longer: no byte beyond, and still told apart. */
TEST(long_names)
{
    char name[400], longest[SITE_KEY_KEY_MAX];
    bool whole = true;
    for (int length = 200; length < 300; length++) {
        snprintf(name, sizeof(name), "1 %.*s", length, "");
        memset(name + 2, 'a', (size_t)length);
        name[2 + length] = '\0';
        snprintf(longest, sizeof(longest), "%s", key_of(NULL, name));
        name[1 + length] = 'b';
        whole &=
            strcmp(key_of(NULL, name), longest) != 0 && strchr(longest, 'w') == NULL;
    }
    ok_named(whole, "long names are told apart, at every length");
}
