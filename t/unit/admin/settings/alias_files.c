/* Files of aliases: read with what they include, refused when all users can write them,
 * and noticed when they change. */
#include "admin/settings/alias_files.h"

#include "base/log/log_internal.h"
#include "sched/route/route.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char directory[] = "/tmp/alias_files.XXXXXX";

static void
write_file(const char *name, const char *content, mode_t mode)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    if (f == NULL || fputs(content, f) < 0 || fclose(f) != 0 || chmod(path, mode) != 0)
        abort();
}

struct reading {
    char names[400];
    struct options options;
    struct route_table *routes;
    struct aliases *table;
    struct alias_files *files;
    struct buffer errors;
    bool good;
};

/* list: names in the directory. */
static void
read_files(struct reading *r, const char *list, char *root)
{
    struct text rest = text_from(list), word;
    *r = (struct reading){0};
    while (text_word(&rest, " ", &word))
        snprintf(r->names + strlen(r->names), sizeof(r->names) - strlen(r->names),
                 "%s/%.*s, ", directory, TEXT_ARGS(word));
    r->options = (struct options){.aliases = *list ? r->names : NULL,
                                  .root = root,
                                  .hostname = (char *)"host.test"};
    r->routes =
        route_new(&(struct route_settings){.local_domains = TEXT("d.test")}, NULL);
    buffer_init(&r->errors, 8192);
    r->good =
        alias_files_read(&r->options, r->routes, &r->table, &r->files, &r->errors);
    (void)!buffer_add_byte(&r->errors, '\0');
}

static void
end(struct reading *r)
{
    aliases_free(&r->table);
    alias_files_free(&r->files);
    route_free(&r->routes);
    buffer_free(&r->errors);
}

static void
count_path(void *context, const char *path)
{
    ok_named(path[0] == '/', path);
    ++*(unsigned *)context;
}

static int64_t
soon_ms(void)
{
    return ((int64_t)time(NULL) + 10) * 1000;
}

TEST(reading)
{
    struct reading r;
    char include[200], root[] = "alerts@x.test";
    unsigned paths = 0;
    snprintf(include, sizeof(include), "list: :include:%s/members\n", directory);
    write_file("one", "ann: a@x.test\n", 0644);
    write_file("two", include, 0644);
    write_file("members", "b@x.test\nc@x.test\n", 0644);
    read_files(&r, "one two", root);
    is_string(r.errors.at, "", "no errors");
    is_number(aliases_names(r.table), 2, "names of both files");
    is_number(aliases_values(r.table), 3, "addresses, the included ones, too");
    alias_files_each(r.files, count_path, &paths);
    is_number(paths, 3, "three files are watched");
    ok(!alias_files_have_changed(r.files, soon_ms()));
    write_file("members", "b@x.test\n", 0644);
    ok_named(!alias_files_have_changed(r.files, soon_ms() - 9000),
             "a file that is being written is not read yet");
    ok_named(alias_files_have_changed(r.files, soon_ms()), "it has changed");
    end(&r);
    read_files(&r, "", NULL);
    ok_named(r.good && r.table == NULL && r.files == NULL, "nothing is set");
    ok(!alias_files_have_changed(NULL, 0));
    end(&r);
    read_files(&r, "", root);
    ok_named(r.good && r.table != NULL && !aliases_are_empty(r.table), "root alone");
    end(&r);
}

static void
refuses(const char *list, const char *why)
{
    FIXTURE(reading, r, read_files, end, list, NULL);
    ok_named(!r.good && r.table == NULL, why);
    if (strstr(r.errors.at, why) == NULL)
        is_string(r.errors.at, why, "the error");
}

TEST(refusals)
{
    char include[200];
    refuses("none", "none': No such file or directory");
    write_file("open", "ann: a@x.test\n", 0666);
    refuses("open", "all users can write it, and would decide where mail goes");
    snprintf(include, sizeof(include), "l: :include:%s/open\n", directory);
    write_file("opener", include, 0644);
    refuses("opener", ":1: :include:");
    write_file("bad", "a: b\nc: |/bin/sh\n", 0644);
    refuses("bad", "/bad:2: '|/bin/sh': a program");
    FIXTURE(reading, r, read_files, end, "late", NULL);
    ok_named(!alias_files_have_changed(r.files, soon_ms()), "it is still missing");
    write_file("late", "a: b\n", 0644);
    ok_named(alias_files_have_changed(r.files, soon_ms()), "it is there now");
}

TEST(warnings)
{
    struct reading r;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    FIXTURE(buffer, lines, buffer_init, buffer_free, 65536);
    log_capture(log, &lines);
    write_file("group", "u@far.test: a@x.test\n", 0664);
    read_files(&r, "group", NULL);
    alias_files_warn(&r.options, r.routes, r.table, r.files, log);
    (void)!buffer_add_byte(&lines, '\0');
    ok(strstr(lines.at, "the group of ") != NULL);
    ok(strstr(lines.at, "group:1: the domain of 'u@far.test' is not in local_domains"));
    ok(strstr(lines.at, "the hostname host.test is not in local_domains") != NULL);
    ok(strstr(lines.at, "nobody gets mail for root and postmaster: set root\n") !=
       NULL);
    end(&r);
    log_free(&log);
}

/* The warnings of check about root and postmaster with these settings; files: as
 * read_files(). */
static void
is_warned(const char *files, char *root, const struct route_settings *settings,
          const char *want, const char *name)
{
    struct reading r;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    FIXTURE(buffer, lines, buffer_init, buffer_free, 65536);
    log_capture(log, &lines);
    read_files(&r, files, root);
    route_free(&r.routes);
    r.routes = route_new(settings, NULL);
    is_string(r.errors.at, "", name);
    alias_files_warn(&r.options, r.routes, r.table, r.files, log);
    (void)!buffer_add_byte(&lines, '\0');
    const char *said = strstr(lines.at, "nobody gets");
    char line[200] = "";
    if (said != NULL)
        (void)!text_copy(line, sizeof(line),
                         text_before(text_from(said), strcspn(said, "\n")));
    is_string(line, want, name);
    end(&r);
    log_free(&log);
}

/* Whenever their mail would be refused, and only then. */
TEST(nobody)
{
    char ann[] = "ann", far[] = "ann@far.test", path[200], mailbox[200], create[240],
         one[200];
    struct route_settings mx = {.routes = TEXT("* mx"),
                                .local_domains = TEXT("d.test")};
    struct route_settings relay = mx, local = mx, made = mx, fixed = mx, named = mx;
    snprintf(path, sizeof(path), "maildir:%s/%%u", directory);
    snprintf(create, sizeof(create), "maildir:%s/%%u?create=yes", directory);
    snprintf(one, sizeof(one), "maildir:%s/all", directory);
    relay.routes = TEXT("* smtp://relay.test");
    local.local = text_from(path);
    made.local = text_from(create);
    fixed.local = text_from(one);
    named.routes = TEXT("root@d.test hold, * mx");
    static const char both[] = "nobody gets mail for root and postmaster: set root";
    is_warned("", NULL, &mx, both, "nothing is set");
    is_warned("", far, &mx, "", "root");
    is_warned("", ann, &mx,
              "nobody gets mail for root and postmaster: the alias leads to no user",
              "root is a user that is none");
    is_warned("", NULL, &relay, "", "a smarthost has them");
    is_warned("", NULL, &local, both, "local, and no mailbox of theirs");
    is_warned("", NULL, &made, "", "mailboxes are made");
    is_warned("", NULL, &fixed, "", "one mailbox for all");
    is_warned("", NULL, &named, "nobody gets mail for postmaster: set root",
              "a route for root");
    write_file("nobody", "root: postmaster\npostmaster: bob\n", 0644);
    is_warned("nobody", NULL, &mx,
              "nobody gets mail for root and postmaster: the alias leads to no user",
              "aliases that lead to nobody");
    is_warned("nobody", far, &mx,
              "nobody gets mail for postmaster: the alias leads to no user",
              "they come before root, which catches what cron writes to bob");
    write_file("half", "root: bob, ann@far.test\n", 0644);
    is_warned("half", NULL, &mx, "nobody gets mail for postmaster: set root",
              "an alias for root");
    write_file("whole", "@d.test: ann@far.test\n", 0644);
    is_warned("whole", NULL, &local, "", "an alias for all");
    snprintf(mailbox, sizeof(mailbox), "%s/root", directory);
    if (mkdir(mailbox, 0700) != 0)
        abort();
    is_warned("", NULL, &local, "nobody gets mail for postmaster: set root",
              "a mailbox of root");
    mx.local_domains = TEXT("");
    is_warned("", NULL, &mx, "", "no local domain");
}

/* "list: :include:DIRECTORY/name" is an error that says so. */
static void
include_is(const char *name, const char *error)
{
    char file[300], want[400];
    snprintf(file, sizeof(file), "x: y@x.test\nlist: :include:%s/%s\n", directory,
             name);
    write_file("includer", file, 0644);
    if (error == NULL) {
        struct reading r;
        read_files(&r, "includer", NULL);
        is_string(r.errors.at, "", name);
        is_number(aliases_names(r.table), 2, name);
        end(&r);
        return;
    }
    snprintf(want, sizeof(want), "/includer:2: :include:%s/%s: %s\n", directory, name,
             error);
    refuses("includer", want);
}

/* Any file there is an error with its line, or read, and nothing is waited for. */
TEST(includes)
{
    char path[200], other[200];
    write_file("addresses", "a@x.test\r\n# comment\r\n\r\n\tb@x.test, \\c\r\n", 0644);
    include_is("addresses", NULL);
    snprintf(path, sizeof(path), "%s/link", directory);
    if (symlink("addresses", path) != 0)
        abort();
    include_is("link", NULL);
    snprintf(path, sizeof(path), "%s/circle", directory);
    if (symlink("circle", path) != 0)
        abort();
    include_is("circle", strerror(ELOOP)); /* in the words of this C library */
    snprintf(path, sizeof(path), "%s/fifo", directory);
    if (mkfifo(path, 0644) != 0)
        abort();
    include_is("fifo", "it is not a regular file");
    snprintf(path, sizeof(path), "%s/folder", directory);
    if (mkdir(path, 0755) != 0)
        abort();
    include_is("folder", "Is a directory");
    snprintf(path, sizeof(path), "%s/zero", directory);
    if (symlink("/dev/zero", path) != 0)
        abort();
    include_is("zero",
               "all users can write it, and would decide where mail goes: chmod o-w");
    include_is("missing", "No such file or directory");
    write_file("open2", "a@x.test\n", 0666);
    include_is("open2",
               "all users can write it, and would decide where mail goes: chmod o-w");
    write_file("large", "", 0644);
    snprintf(path, sizeof(path), "%s/large", directory);
    if (truncate(path, ALIAS_FILES_INCLUDE_MAX + 1) != 0)
        abort();
    include_is("large", "File too large");
    /* Itself, and another level: lines of the included file. */
    snprintf(other, sizeof(other), "list: :include:%s/itself\n", directory);
    write_file("itself", other, 0644);
    refuses("itself", "/itself:1: 'list: :include:");
    snprintf(other, sizeof(other), "a@x.test\n:include:%s/addresses\n", directory);
    write_file("second", other, 0644);
    snprintf(other, sizeof(other), "list: :include:%s/second\n", directory);
    write_file("deep", other, 0644);
    refuses("deep", "/second:2: ':include:");
    refuses("deep", "a file of :include: cannot include another");
    write_file("programs", "a@x.test\n|/bin/sh\n/var/mail/x\n", 0644);
    snprintf(other, sizeof(other), "list: :include:%s/programs\n", directory);
    write_file("runs", other, 0644);
    refuses("runs", "/programs:2: '|/bin/sh': a program: Petrel starts no programs");
    refuses("runs", "/programs:3: '/var/mail/x': a file: Petrel starts no programs");
}

/* A million bytes in a line, lines without an end, files that are no texts. */
TEST(sizes)
{
    enum { LARGE = 1024 * 1024 };
    struct reading r;
    char *large = malloc(LARGE + 1), want[200];
    memset(large, 'x', LARGE);
    large[LARGE] = '\0';
    write_file("line", large, 0644);
    snprintf(want, sizeof(want),
             "/line:1: '%.60s': not of the form NAME: ADDRESS, ...\n", large);
    refuses("line", want);
    large[1] = ':';
    write_file("line", large, 0644);
    snprintf(want, sizeof(want), "/line:1: '%.60s': too long\n", large + 2);
    refuses("line", want);
    large[0] = '"';
    large[1] = 'x';
    write_file("line", large, 0644);
    refuses("line", "/line:1: '\"xxx");
    memset(large, ',', LARGE);
    large[0] = 'x';
    large[1] = ':';
    large[LARGE / 2] = 'y';
    write_file("line", large, 0644);
    read_files(&r, "line", NULL);
    is_string(r.errors.at, "", "a million commas");
    is_number(aliases_values(r.table), 1, "and one address");
    end(&r);
    for (int i = 0; i < LARGE; i++)
        large[i] = i % 2 ? ',' : 'x';
    memcpy(large, "x: ", 3);
    write_file("line", large, 0644);
    refuses("line", "/line:1: 'x' has more than 1000 addresses\n");
    for (int i = 0; i < LARGE; i++)
        large[i] = i % 2 ? '\n' : '|';
    write_file("line", large, 0644);
    refuses("line", "more errors\n");
    free(large);
    write_file("bell", "a: b\n\nc: d\a\n", 0644);
    refuses("bell", "/bell:3: a control character\n");
    write_file("bare", "a: b\rc: d\n", 0644);
    refuses("bare", "/bare:1: a control character\n");
    write_file("bad8", "a: \xff\xfe@x.test\n", 0644);
    refuses("bad8", "/bad8:1: '\xff\xfe@x.test': not an address");
    write_file("empty", "", 0644);
    read_files(&r, "empty", NULL);
    ok_named(r.good && aliases_are_empty(r.table), "an empty file");
    end(&r);
}

int
main(void)
{
    if (mkdtemp(directory) == NULL)
        abort();
    tap_tests("");
    return done();
}
