/* Filters: how they are written, and which messages they mean. */
#include "admin/answer/filter.h"

#include "t/support/tap.h"

static char *
argument(const char *text)
{
    static char copies[64][80];
    static int used;
    char *copy = copies[used++ % 64];
    snprintf(copy, sizeof(copies[0]), "%s", text);
    return copy;
}

/* Words separated by spaces. */
static bool
parse(struct filter *f, const char *words)
{
    char *arguments[32];
    int count = 0;
    struct text rest = text_from(words), word;
    while (text_word(&rest, " ", &word)) {
        char copy[80];
        text_copy(copy, sizeof(copy), word);
        arguments[count++] = argument(strcmp(copy, "''") == 0 ? "" : copy);
    }
    return filter_parse(f, count, arguments);
}

static const struct filter *
parsed(const char *words)
{
    static struct filter f;
    ok_named(parse(&f, words), words);
    return &f;
}

static struct id
id_of(const char *name)
{
    struct id id;
    if (!id_parse(text_from(name), &id))
        abort();
    return id;
}

#define ONE "01JD3ZK5Q8-9F3K2C7A"
#define TWO "01JD3ZK5Q9-9F3K2C7A"

TEST(form)
{
    static struct filter f;
    ok(filter_is_open(parsed("")));
    ok(filter_is_open(parsed("--json")));
    ok(!filter_is_open(parsed("--all")));
    ok(filter_is_all(parsed("--all --json")));
    ok(!filter_is_all(parsed("--all --older 1h")));
    ok(!filter_is_all(parsed("")));
    ok(!filter_is_open(parsed(ONE)));
    ok(!filter_is_open(parsed("--to x.test")));
    ok(!filter_is_open(parsed("--from=''")));
    ok(!filter_is_open(parsed("--older 0")));
    ok(!filter_is_open(parsed("--queue hold")));
    is_number(parsed("--older=90m")->older_ms, 90 * 60000, "a time behind =");
    is_string(parsed("--to a=b@x.test")->to, "a=b@x.test", "an = in a value");
    is_string(parsed("--to=a=b@x.test")->to, "a=b@x.test", "and behind one");
    is_string(parsed("--from <>")->from, "", "the null sender");
    ok(parsed("--json --queue corrupt")->json);
    is_number(parsed(ONE " " TWO " " ONE)->id_count, 2, "an id counts once");
    static const char *const wrong[] = {
        "--to",        "--older",      "--older x",   "--older -1h", "--queue new",
        "--queue=",    "--nonsense",   "-x",          "--nonsense x", "--to ''",
        "01JD3ZK5Q8",  "01jd3zk5q8-9f3k2c7", "x",    "--json=yes",  "--all=1",
        "--tox y",     "--=y",         "''",          "-",
    };
    fclose(stderr);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ok_named(!parse(&f, wrong[i]), wrong[i]);
}

TEST(many_ids)
{
    static struct filter f;
    static char names[FILTER_IDS_MAX + 1][ID_LENGTH + 1];
    static char *arguments[FILTER_IDS_MAX + 1];
    for (unsigned i = 0; i <= FILTER_IDS_MAX; i++) {
        id_format((struct id){.time_ms = i, .hash = 1}, names[i]);
        arguments[i] = names[i];
    }
    ok(filter_parse(&f, FILTER_IDS_MAX, arguments));
    ok(!filter_parse(&f, FILTER_IDS_MAX + 1, arguments));
}

TEST(ids)
{
    static struct filter f;
    ok(parse(&f, ""));
    ok_named(filter_wants_id(&f, id_of(ONE)), "no id means any");
    ok(filter_missing(&f) == NULL);
    ok(parse(&f, ONE " " TWO));
    ok(!filter_wants_id(&f, id_of("01JD3ZK5Q8-9F3K2C7B")));
    ok(filter_wants_id(&f, id_of(TWO)));
    const struct id *missing = filter_missing(&f);
    ok(missing && id_compare(*missing, id_of(ONE)) == 0);
    ok(filter_wants_id(&f, id_of(ONE)));
    ok(filter_missing(&f) == NULL);
    filter_lose_id(&f, id_of(TWO));
    missing = filter_missing(&f);
    ok_named(missing && id_compare(*missing, id_of(TWO)) == 0, "it had not come");
    filter_lose_id(&f, id_of("01JD3ZK5Q8-9F3K2C7B"));
    filter_clear(&f);
    ok(filter_is_open(&f) && !filter_needs_envelope(&f));
    ok(filter_add_id(&f, id_of(ONE)) && filter_add_id(&f, id_of(ONE)));
    is_number(f.id_count, 1, "an id counts once");
}

TEST(needs)
{
    ok(filter_is_place("maildrop") && filter_is_place("hold") && !filter_is_place(""));
    ok(filter_needs_envelope(parsed("--to x.test")));
    ok(filter_needs_envelope(parsed("--from <>")));
    ok(filter_needs_envelope(parsed("--older 0s")));
    ok(!filter_needs_envelope(parsed("--all --queue maildrop")));
}

static struct envelope *
make_envelope(const char *sender, const char *first, const char *second)
{
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, text_from(sender));
    e->birth_ms = 1000000;
    if (!envelope_add(e, text_from(first), 0, TEXT("")) ||
        !envelope_add(e, text_from(second), 0, TEXT("")))
        abort();
    return e;
}

static void
matches(const char *words, const char *sender, bool want)
{
    static struct filter f;
    struct envelope *e = make_envelope(sender, "Bob@b.test", "carol@sub.c.test");
    ok(parse(&f, words));
    ok_named(filter_matches(&f, e, "deferred", 1000000 + 60000) == want, words);
    envelope_free(&e);
}

TEST(conditions)
{
    matches("", "a@a.test", true);
    matches("--to bob@B.test", "a@a.test", true);
    matches("--to b.test", "a@a.test", true);
    matches("--to sub.c.test", "a@a.test", true);
    matches("--to c.test", "a@a.test", false);
    matches("--to bob", "a@a.test", false);
    matches("--to a.test", "a@a.test", false);
    matches("--from A@a.test", "a@a.test", true);
    matches("--from a.test", "a@a.test", true);
    matches("--from b.test", "a@a.test", false);
    matches("--from <>", "a@a.test", false);
    matches("--from <>", "", true);
    matches("--from a.test", "", false);
    matches("--older 60", "a@a.test", true);
    matches("--older 61s", "a@a.test", false);
    matches("--older 0", "a@a.test", true);
    matches("--queue deferred", "a@a.test", true);
    matches("--queue active", "a@a.test", false);
    matches("--to b.test --from a.test --older 1m --queue deferred", "a@a.test", true);
    matches("--to b.test --from x.test", "a@a.test", false);
    matches("--to x.test --from a.test", "a@a.test", false);
}

TEST(place)
{
    ok(filter_matches_place(parsed(""), "corrupt"));
    ok(filter_matches_place(parsed("--all"), "corrupt"));
    ok(filter_matches_place(parsed("--queue corrupt"), "corrupt"));
    ok(!filter_matches_place(parsed("--queue hold"), "corrupt"));
    ok(!filter_matches_place(parsed("--to x"), "corrupt"));
    ok(!filter_matches_place(parsed("--from x"), "corrupt"));
    ok(!filter_matches_place(parsed("--older 0"), "corrupt"));
}

/* Wherever a message has gone, it has the id of its birth in its envelope. */
TEST(first)
{
    struct envelope *e = envelope_new();
    e->id = id_of(ONE);
    ok_named(filter_matches(parsed("--first " ONE), e, "deferred", 0), "one that has not moved");
    ok_named(!filter_matches(parsed("--first " TWO), e, "deferred", 0), "another one");
    e->moved.first = TEXT(TWO);
    ok_named(filter_matches(parsed("--first " TWO), e, "deferred", 0), "one that has moved");
    ok_named(!filter_matches(parsed("--first " ONE), e, "deferred", 0), "not by its own id");
    e->moved.first = TEXT("nonsense");
    ok_named(!filter_matches(parsed("--first " ONE), e, "deferred", 0), "nor by what is no id");
    ok(!filter_is_open(parsed("--first " ONE)) && !filter_is_all(parsed("--all --first " ONE)));
    ok_named(!filter_matches_place(parsed("--first " ONE), "corrupt"), "what cannot be read does not match");
    static struct filter f;
    ok(!parse(&f, "--first nonsense"));
    envelope_free(&e);
}
