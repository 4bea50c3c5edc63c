/* The table of aliases: which name counts for an address, its members, and errors of
 * the files. */
#include "sched/route/aliases.h"

#include "sched/route/route.h"
#include "t/support/aliases_whole.h"
#include "t/support/tap.h"

#include <stdarg.h>

static struct route_table *
routes_of(const char *routes, const char *local, const char *domains)
{
    struct buffer errors;
    buffer_init(&errors, 4096);
    struct route_table *table =
        route_new(&(struct route_settings){.routes = text_from(routes),
                                           .local = text_from(local),
                                           .local_domains = text_from(domains)},
                  &errors);
    is_text(buffer_text(&errors), TEXT(""), "routes");
    buffer_free(&errors);
    return table;
}

static bool
include(void *context, const char *path, char **content, size_t *length,
        char error[ALIASES_ERROR_MAX])
{
    if (strcmp(path, "/list") != 0) {
        snprintf(error, ALIASES_ERROR_MAX, "No such file");
        return false;
    }
    *content = strdup(context);
    *length = strlen(context);
    return true;
}

static char included[] = "one@x.test\ntwo@x.test\n";

/* errors NULL: there must be none. */
static struct aliases *
table_with(const struct route_table *routes, const char *first, const char *second,
           const char *root, bool has_local, const char *errors)
{
    struct aliases_file files[] = {
        {"a", text_from(first) },
        {"b", text_from(second)}
    };
    struct buffer got;
    buffer_init(&got, 64 * 1024);
    struct aliases *a = aliases_whole(&(struct aliases_settings){.files = files,
                                                               .file_count = 2,
                                                               .root = text_from(root),
                                                               .has_local = has_local,
                                                               .routes = routes,
                                                               .include = include,
                                                               .context = included},
                                    &got);
    is_text(buffer_text(&got), text_from(errors), first);
    ok_named((a == NULL) == (errors != NULL), "a table, or errors");
    buffer_free(&got);
    return a;
}

static bool
on_member(void *context, const struct aliases_member *m)
{
    (void)!buffer_format(context, " %.*s", TEXT_ARGS(m->address));
    if (m->owner.length > 0)
        (void)!buffer_format(context, "(%.*s)", TEXT_ARGS(m->owner));
    return true;
}

static void
goes_to(struct aliases *a, const struct route_table *routes, bool ours,
        const char *address, const char *want)
{
    static const char *const answers[] = {[ALIASES_NONE] = "none",
                                          [ALIASES_ONE] = "one",
                                          [ALIASES_SEVERAL] = "several",
                                          [ALIASES_LIST] = "list",
                                          [ALIASES_EMPTY] = "empty",
                                          [ALIASES_TOO_MANY] = "too many"};
    struct aliases_question q = {routes, text_from(address), ours};
    char whole[4096];
    FIXTURE(buffer, got, buffer_init, buffer_free, 2048);
    enum aliases_answer answer = aliases_expand(a, &q, on_member, &got);
    snprintf(whole, sizeof(whole), "%s%.*s", answers[answer],
             TEXT_ARGS(buffer_text(&got)));
    is_string(whole, want, address);
}

TEST(look_up)
{
    struct route_table *r = routes_of("", "maildir:/m/%u", "d.test, e.test");
    struct aliases *a =
        table_with(r,
                   "postmaster: root\n"
                   "root: ann@far.test\n"
                   "bob@e.test: eve\n"
                   "bob: carl@far.test\n"
                   "@e.test: all\n"
                   "all+x: tagged@far.test\n"
                   "self: self, other@far.test\n"
                   "exact: \\exact, \\root\n"
                   "both: ann@far.test, root\n"
                   "\"a b\": ann@far.test\n"
                   "u@out.test: ann@far.test\n",
                   "root: never@far.test\nlast: z@far.test\n", "", true, NULL);
    is_number(aliases_names(a), 12, "names");
    is_number(aliases_values(a), 15, "addresses");
    goes_to(a, r, false, "root@d.test", "one ann@far.test");
    goes_to(a, r, false, "ROOT@d.test", "one ann@far.test");
    goes_to(a, r, false, "postmaster@e.test", "one ann@far.test");
    goes_to(a, r, false, "root+cron@d.test", "one ann@far.test");
    goes_to(a, r, false, "root@far.test", "none");
    goes_to(a, r, false, "bob@d.test", "one carl@far.test");
    goes_to(a, r, false, "bob@e.test", "one eve@d.test");
    goes_to(a, r, false, "bob+x@e.test", "one eve@d.test");
    goes_to(a, r, false, "who@e.test", "one all@d.test");
    goes_to(a, r, false, "who@d.test", "none");
    goes_to(a, r, false, "all+x@d.test", "one tagged@far.test");
    goes_to(a, r, false, "self@e.test", "several self@d.test other@far.test");
    goes_to(a, r, false, "exact@d.test", "several exact@d.test root@d.test");
    goes_to(a, r, false, "both@d.test", "several ann@far.test ann@far.test");
    goes_to(a, r, false, "\"a b\"@d.test", "one ann@far.test");
    goes_to(a, r, false, "u@out.test", "one ann@far.test");
    goes_to(a, r, false, "last@d.test", "one z@far.test");
    goes_to(a, r, true, "nobody@d.test", "none");
    aliases_free(&a);
    route_free(&r);
}

TEST(catch_all)
{
    struct route_table *r = routes_of("", "maildir:/m/%u", "d.test, e.test");
    struct aliases *a = table_with(r,
                                   "bob: carl@far.test\n"
                                   "@e.test: eve@far.test\n"
                                   "dan: \\dan\n"
                                   "*: me@far.test\n",
                                   "", "ann@far.test", true, NULL);
    goes_to(a, r, false, "who@d.test", "one me@far.test");
    goes_to(a, r, true, "who@d.test", "one me@far.test");
    goes_to(a, r, false, "who+x@d.test", "one me@far.test");
    goes_to(a, r, false, "bob@d.test", "one carl@far.test");
    goes_to(a, r, false, "dan@d.test", "one dan@d.test");
    goes_to(a, r, false, "who@e.test", "one eve@far.test");
    goes_to(a, r, false, "root@d.test", "one ann@far.test");
    goes_to(a, r, false, "who@far.test", "none");
    goes_to(a, r, true, "who@far.test", "none");
    aliases_free(&a);
    a = table_with(r, "*: me\nbob: me, carl\n", "", "", true, NULL);
    goes_to(a, r, false, "who@d.test", "one me@d.test");
    goes_to(a, r, false, "me@d.test", "one me@d.test");
    aliases_free(&a);
    table_with(r, "*: me\n*: you\n", "", "", true,
               "aliases: a:2: duplicate name '*': the other is in line 1; remove one\n");
    route_free(&r);
}

TEST(include)
{
    struct route_table *r = routes_of("", "", "d.test");
    struct aliases *a =
        table_with(r, "list: :include:/list, three\n", "", "", false, NULL);
    goes_to(a, r, false, "list@d.test", "several one@x.test two@x.test three@d.test");
    aliases_free(&a);
    table_with(r, "list: :include:/none\n", "", "", false,
               "aliases: a:1: :include:/none: No such file\n");
    memcpy(included, "one@x.test\n|two      \n", sizeof(included));
    table_with(r, "x: y\nlist: :include:/list\n", "", "", false,
               "aliases: /list:2: '|two': a program: Petrel starts no programs and "
               "writes no files here; see routes\n");
    route_free(&r);
}

TEST(root)
{
    struct route_table *r = routes_of("* smtp://relay.test", "", "d.test");
    struct aliases *a = table_with(r, "ann: ann@far.test\nabuse: \\abuse\n", "",
                                   "alerts@far.test", false, NULL);
    goes_to(a, r, false, "root@d.test", "one alerts@far.test");
    goes_to(a, r, false, "postmaster@d.test", "one alerts@far.test");
    goes_to(a, r, false, "root@other.test", "none");
    goes_to(a, r, false, "abuse@d.test", "one abuse@d.test");
    goes_to(a, r, false, "www-data@d.test", "none");
    goes_to(a, r, true, "www-data@d.test", "one alerts@far.test");
    goes_to(a, r, true, "www-data@other.test", "none");
    goes_to(a, r, true, "ann@d.test", "one ann@far.test");
    aliases_free(&a);
    a = table_with(r, "", "", "alerts@far.test", true, NULL);
    goes_to(a, r, true, "www-data@d.test", "none");
    goes_to(a, r, true, "root@d.test", "one alerts@far.test");
    aliases_free(&a);
    route_free(&r);
    r = routes_of("www@d.test smtp://web.test, * mx", "", "d.test");
    a = table_with(r, "", "", "ann", false, NULL);
    goes_to(a, r, true, "www@d.test", "none");
    goes_to(a, r, true, "cron@d.test", "one ann@d.test");
    goes_to(a, r, true, "ann@d.test", "one ann@d.test");
    goes_to(a, r, true, "root@d.test", "one ann@d.test");
    ok(!aliases_are_empty(a));
    aliases_free(&a);
    a = table_with(r, "", "", "", false, NULL);
    ok(aliases_are_empty(a) && aliases_are_empty(NULL));
    goes_to(a, r, true, "root@d.test", "none");
    goes_to(NULL, r, true, "root@d.test", "none");
    aliases_free(&a);
    table_with(r, "", "", "a@x.test, b@x.test", false,
               "root: 'a@x.test, b@x.test': not an address; write user or user@domain, "
               "one; several need a line 'root: ...' in a file of aliases\n");
    route_free(&r);
}

TEST(owners)
{
    struct route_table *r = routes_of("", "", "d.test, e.test");
    struct aliases *a = table_with(r,
                                   "list: a@x.test, inner, b@x.test\n"
                                   "owner-list: ann\n"
                                   "inner: c@x.test\n"
                                   "deep: list, d@x.test\n"
                                   "l2@e.test: a@x.test\n"
                                   "owner-l2@e.test: ann\n"
                                   "l3@e.test: a@x.test\n"
                                   "owner-l3: ann\n",
                                   "", "", false, NULL);
    goes_to(a, r, false, "list@e.test",
            "list a@x.test(owner-list@e.test) c@x.test(owner-list@e.test) "
            "b@x.test(owner-list@e.test)");
    goes_to(a, r, false, "deep@d.test",
            "several a@x.test(owner-list@d.test) c@x.test(owner-list@d.test) "
            "b@x.test(owner-list@d.test) d@x.test");
    goes_to(a, r, false, "owner-list@d.test", "one ann@d.test");
    goes_to(a, r, false, "l2@e.test", "list a@x.test(owner-l2@e.test)");
    goes_to(a, r, false, "l3@e.test", "list a@x.test(owner-l3@e.test)");
    aliases_free(&a);
    route_free(&r);
}

TEST(errors)
{
    struct route_table *r = routes_of("", "", "d.test");
    table_with(r, "a: b\nb: c\nc: a\n", "", "", false,
               "aliases: a:1: 'a' leads back to itself through other names\n"
               "aliases: a:2: 'b' leads back to itself through other names\n"
               "aliases: a:3: 'c' leads back to itself through other names\n");
    table_with(r, "a: b@d.test\nb@d.test: a, x@x.test\nz: a\n", "", "", false,
               "aliases: a:1: 'a' leads back to itself through other names\n"
               "aliases: a:2: 'b@d.test' leads back to itself through other names\n");
    table_with(r, "ann: postmaster\n", "", "ann", false,
               "aliases: a:1: 'ann' leads back to itself through other names\n"
               "root: 'root' leads back to itself through other names\n");
    table_with(
        r, "a: b\n\nA: c\n", "", "", false,
        "aliases: a:3: duplicate name 'a': the other is in line 1; remove one\n");
    table_with(r, "a: b\nx: |y\n", "q:\n", "", false,
               "aliases: a:2: '|y': a program: Petrel starts no programs and writes no "
               "files here; see routes\n"
               "aliases: b:1: a name without an address\n");
    char chain[400] = "";
    for (int i = 0; i < 10; i++)
        snprintf(chain + strlen(chain), sizeof(chain) - strlen(chain), "n%d: n%d\n", i,
                 i + 1);
    aliases_free(&(struct aliases *){table_with(r, chain, "", "", false, NULL)});
    strcat(chain, "n10: x@x.test\n");
    table_with(r, chain, "", "", false,
               "aliases: a:1: 'n0' leads through more than 10 names\n");
    route_free(&r);
}

/* NAME: n members. */
static char *
list_of(const char *name, unsigned members)
{
    char *made = malloc(40 + 20 * (size_t)members);
    int at = sprintf(made, "%s: x0@x.test", name);
    for (unsigned i = 1; i < members; i++)
        at += sprintf(made + at, ",\n x%u@x.test", i);
    return made;
}

/* "all: b, b, ...": what is repeated costs a look-up, and is no member again. */
TEST(repeated)
{
    struct route_table *r = routes_of("", "", "d.test");
    for (unsigned many = 9999; many <= 10000; many++) {
        FIXTURE(buffer, file, buffer_init, buffer_free, 64 * 1024);
        bool good = buffer_add(&file, TEXT("b: x@x.test\nall: b"));
        for (unsigned i = 1; i < many; i++)
            good = buffer_add(&file, TEXT(", b")) && good;
        good = buffer_add(&file, TEXT("\n\0")) && good;
        ok(good);
        struct aliases *a = table_with(
            r, buffer_text(&file).at, "", "", false,
            many == 9999 ? NULL
                         : "aliases: a:2: 'all' leads to more than 10000 names and "
                           "addresses, with those that are repeated\n");
        if (a != NULL)
            goes_to(a, r, false, "all@d.test", "one x@x.test");
        aliases_free(&a);
    }
    route_free(&r);
}

TEST(limits)
{
    struct route_table *r = routes_of("", "", "d.test");
    char *thousand = list_of("many", 1000), *more = list_of("more", 1001);
    struct aliases *a = table_with(r, thousand, "all: many\n", "", false, NULL);
    aliases_free(&a);
    table_with(r, more, "", "", false,
               "aliases: a:1: 'more' has more than 1000 addresses\n");
    char *half = list_of("half", 600), *other = list_of("other", 401);
    char both[64 * 1024];
    snprintf(both, sizeof(both), "%s\nall: half, other\n", other);
    table_with(r, half, both, "", false,
               "aliases: b:402: 'all' has more than 1000 addresses\n");
    free(thousand);
    free(more);
    free(half);
    free(other);
    size_t size = 0, room = 4 * 1024 * 1024;
    char *file = malloc(room);
    for (unsigned i = 0; i < ALIASES_NAMES_MAX; i++)
        size += (size_t)snprintf(file + size, room - size, "n%u: m%u@x.test\n", i, i);
    a = table_with(r, file, "", "", false, NULL);
    goes_to(a, r, false, "n99999@d.test", "one m99999@x.test");
    aliases_free(&a);
    table_with(r, file, "one: more\n", "", false,
               "aliases: b:1: more than 100000 names, or too large in all\n");
    free(file);
    route_free(&r);
}

struct include_count {
    unsigned calls;
    size_t members;
};

static bool
include_many(void *context, const char *path, char **content, size_t *length,
             char error[ALIASES_ERROR_MAX])
{
    struct include_count *count = context;
    (void)path;
    (void)error;
    count->calls++;
    *content = calloc(count->members, 20);
    for (size_t i = 0; i < count->members; i++)
        *length += (size_t)sprintf(*content + *length, "i%zu@x.test\n", i);
    return true;
}

static struct aliases_making *
begin_with(const struct route_table *routes, const char *content, size_t include_members,
           struct buffer *errors)
{
    static struct aliases_file file;
    static struct include_count count;
    file = (struct aliases_file){"a", text_from(content)};
    count = (struct include_count){.members = include_members};
    return aliases_begin(&(struct aliases_settings){.files = &file,
                                                    .file_count = 1,
                                                    .routes = routes,
                                                    .include = include_many,
                                                    .context = &count},
                         errors);
}

/* A loop serves others between them. */
TEST(steps)
{
    struct route_table *r = routes_of("", "", "d.test");
    struct buffer errors;
    size_t size = 0, room = 4 * 1024 * 1024, turns = 1;
    char *file = malloc(room);
    size = (size_t)sprintf(file, "list: first, :include:/x, last\nowner-list: n1\n");
    for (unsigned i = 0; i < ALIASES_NAMES_MAX - 2; i++)
        size += (size_t)snprintf(file + size, room - size, "n%u: m%u@x.test\n", i, i);
    buffer_init(&errors, 4096);
    struct aliases_making *making = begin_with(r, file, 900, &errors);
    for (; !aliases_go_on(making); turns++)
        ;
    /* A line and an address each, the search for an owner, the walk with its address. */
    size_t steps = 5 * ALIASES_NAMES_MAX;
    ok_named(turns >= steps / ALIASES_STEPS_PER_TURN, "as many turns as its work needs");
    ok_named(turns <= steps / ALIASES_STEPS_PER_TURN + 3, "and not more");
    struct aliases *a = aliases_end(&making);
    ok(making == NULL);
    is_text(buffer_text(&errors), TEXT(""), "no errors");
    is_number(aliases_names(a), ALIASES_NAMES_MAX, "all names");
    is_number(aliases_values(a), ALIASES_NAMES_MAX + 901, "and all addresses");
    aliases_free(&a);

    /* A list in one line, and one in a file, of more than may be. */
    char *line = list_of("list", 50 * 1000);
    for (char *end = line; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    for (int how = 0; how < 2; how++) {
        making = begin_with(r, how == 1 ? "list: :include:/x\n" : line, 50 * 1000,
                            &errors);
        for (turns = 1; !aliases_go_on(making); turns++)
            ;
        ok_named(turns >= 50 * 1000 / ALIASES_STEPS_PER_TURN, "many turns as well");
        ok(aliases_end(&making) == NULL);
        is_text(buffer_text(&errors),
                TEXT("aliases: a:1: 'list' has more than 1000 addresses\n"),
                "an error");
        buffer_clear(&errors);
    }
    free(line);

    /* Given up in each phase: nothing is left. */
    for (size_t until = 0, ended = 0; ended == 0; until++) {
        making = begin_with(r, "list: :include:/x, b\nowner-list: b\n", 6000, &errors);
        for (turns = 0; turns < until && !ended; turns++)
            ended = aliases_go_on(making);
        ok_named(aliases_end(&making) == NULL, "there is no table");
    }
    buffer_free(&errors);
    free(file);
    route_free(&r);
}

/* Names that nobody stands behind: included files of nobody. */
TEST(empty)
{
    char name[400];
    struct route_table *r = routes_of("", "", "d.test");
    struct buffer errors;
    buffer_init(&errors, 4096);
    snprintf(name, sizeof(name), "list: :include:/x\nowned: :include:/x\nowner-owned: ann\nall: list, owned\n"
                                 "some: list, ann@far.test\n@d.test: list\n");
    struct aliases_making *making = begin_with(r, name, 0, &errors);
    while (!aliases_go_on(making))
        ;
    struct aliases *a = aliases_end(&making);
    is_text(buffer_text(&errors), TEXT(""), "no errors");
    goes_to(a, r, false, "list@d.test", "empty");
    goes_to(a, r, false, "owned@d.test", "empty");
    goes_to(a, r, false, "all@d.test", "empty");
    goes_to(a, r, false, "whoever@d.test", "empty");
    goes_to(a, r, false, "some@d.test", "one ann@far.test");
    aliases_free(&a);
    buffer_free(&errors);
    route_free(&r);
}

/* Included members stand where they were named, with anything behind them. */
TEST(include_order)
{
    struct route_table *r = routes_of("", "", "d.test");
    struct buffer errors;
    buffer_init(&errors, 4096);
    struct aliases_making *making =
        begin_with(r, "x: a, :include:/1, b, :include:/2\n c\ny: d\n", 2, &errors);
    while (!aliases_go_on(making))
        ;
    struct aliases *a = aliases_end(&making);
    is_text(buffer_text(&errors), TEXT(""), "no errors");
    goes_to(a, r, false, "x@d.test",
            "several a@d.test i0@x.test i1@x.test b@d.test i0@x.test i1@x.test c@d.test");
    goes_to(a, r, false, "y@d.test", "one d@d.test");
    is_number(aliases_values(a), 8, "addresses");
    aliases_free(&a);
    buffer_free(&errors);
    route_free(&r);
}

static void
on_foreign(void *context, const char *file, unsigned line, const char *name)
{
    (void)!buffer_format(context, "%s:%u %s\n", file, line, name);
}

TEST(foreign)
{
    struct route_table *r = routes_of("", "", "d.test");
    struct buffer got;
    struct aliases *a =
        table_with(r, "a: b\nu@out.test: b\nu@d.test: b\n@other.test: b\n\"x@y\": b\n",
                   "", "", false, NULL);
    buffer_init(&got, 1000);
    aliases_each_foreign(a, r, on_foreign, &got);
    is_text(buffer_text(&got), TEXT("a:2 u@out.test\na:4 @other.test\n"),
            "names in domains that are not local");
    buffer_free(&got);
    aliases_free(&a);
    route_free(&r);
}
