/* The files of `petrel init`: names, what may be replaced, what is kept, and what is refused. */
#include "admin/setup/init_files.h"

#include "t/support/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static char folder[] = "/tmp/petrel-init-files-XXXXXX", why[INIT_FILES_WHY_MAX];

static const char *
path(const char *name)
{
    static char paths[4][300];
    static unsigned turn;
    char *out = paths[turn++ % 4];
    snprintf(out, 300, "%s/%s", folder, name);
    return out;
}

static void
spit(const char *name, const char *content)
{
    FILE *f = fopen(path(name), "w");
    if (f == NULL || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

static void
has(const char *name, const char *want, unsigned mode)
{
    char content[200] = "";
    struct stat status;
    FILE *f = fopen(path(name), "r");
    size_t length = f != NULL ? fread(content, 1, sizeof(content) - 1, f) : 0;
    content[length] = '\0';
    is_string(f != NULL ? content : "(none)", want, name);
    if (f != NULL) {
        ok(fstat(fileno(f), &status) == 0 && (status.st_mode & 07777) == mode);
        fclose(f);
    }
}

static int
writes(const char *name, bool force, const char *settings, const char *password)
{
    struct init_files f = {0};
    why[0] = '\0';
    int code = init_files_open(&f, path(name), force, why);
    if (code == 0)
        code = init_files_write(&f, text_from(settings), text_from(password), NULL, why);
    init_files_close(&f);
    ok_named(code == 0 || why[0] != '\0', why);
    return code;
}

TEST(names)
{
    struct init_files f = {0};
    char here[1000], want[1100], longest[3000];
    is_number(init_files_name(&f, "/etc/petrel/petrel.conf", why), 0, "usual");
    is_string(f.directory, "/etc/petrel", "its directory");
    is_string(f.password, "/etc/petrel/password", "its neighbour");
    is_number(init_files_name(&f, "/x.conf", why), 0, "at the root");
    is_string(f.directory, "/", "its directory");
    is_string(f.password, "/password", "its neighbour");
    if (getcwd(here, sizeof(here)) == NULL)
        abort();
    is_number(init_files_name(&f, "x.conf", why), 0, "here");
    is_string(f.directory, here, "its directory");
    is_number(init_files_name(&f, "a/x.conf", why), 0, "below");
    snprintf(want, sizeof(want), "%s/a/password", here);
    is_string(f.password, want, "its neighbour");
    is_number(init_files_name(&f, "", why), EX_USAGE, "no name");
    is_number(init_files_name(&f, "/etc/petrel/password", why), EX_USAGE, "that of the password");
    is_number(init_files_name(&f, "/etc/", why), EX_USAGE, "a directory");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    is_number(init_files_name(&f, longest, why), EX_USAGE, "too long");
    longest[0] = longest[2000] = '/';
    longest[2010] = '\0';
    is_number(init_files_name(&f, longest, why), EX_USAGE, "a long directory");
}

TEST(writing)
{
    is_number(writes("a.conf", false, "one\n", ""), 0, "new settings");
    has("a.conf", "one\n", 0644);
    ok(access(path("password"), F_OK) != 0);
    is_number(writes("a.conf", false, "two\n", ""), EX_CANTCREAT, "not replaced");
    ok(strstr(why, "run it with --force to replace them (the old ones stay as a.conf.old)") != NULL);
    has("a.conf", "one\n", 0644);
    is_number(writes("a.conf", true, "two\n", "secret"), 0, "replaced");
    has("a.conf", "two\n", 0644);
    has("a.conf.old", "one\n", 0644);
    has("password", "secret", 0600);
    is_number(writes("b.conf", false, "three\n", "other"), EX_CANTCREAT, "a password is not replaced");
    ok(strstr(why, "remove it, or run it with --force") && access(path("b.conf"), F_OK) != 0);
    is_number(writes("a.conf", true, "three\n", "other"), 0, "both replaced");
    has("a.conf.old", "two\n", 0644);
    has("password.old", "secret", 0600);
    has("password", "other", 0600);
    ok(access(path("a.conf.new"), F_OK) != 0 && access(path("password.new"), F_OK) != 0);
}

static void
test_mark(void)
{
    static const struct {
        const char *content;
        int code;
    } rows[] = {
        {"# petrel: as installed\nuser = petrel\n", 0           },
        {"# petrel: as installed",                  0           },
        {"# petrel: as installed.\n",               EX_CANTCREAT},
        {"\n# petrel: as installed\n",              EX_CANTCREAT},
        {"# petrel: as",                            EX_CANTCREAT},
        {"",                                        EX_CANTCREAT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        spit("mark.conf", rows[i].content);
        is_number(writes("mark.conf", false, "new\n", ""), rows[i].code, rows[i].content);
        has("mark.conf", rows[i].code == 0 ? "new\n" : rows[i].content, 0644);
        ok(access(path("mark.conf.old"), F_OK) != 0);
    }
}

static void
test_refused(void)
{
    if (symlink("nowhere", path("link.conf")) != 0 || mkdir(path("directory.conf"), 0700) != 0)
        abort();
    is_number(writes("link.conf", true, "x\n", ""), EX_CANTCREAT, "a link");
    ok(strstr(why, "remove it") && access(path("nowhere"), F_OK) != 0);
    is_number(writes("directory.conf", true, "x\n", ""), EX_CANTCREAT, "a directory");
    is_number(writes("missing/below/x.conf", true, "x\n", ""), EX_CANTCREAT, "two directories are missing");
    is_number(writes("missing/x.conf", true, "x\n", ""), 0, "one is made");
    spit("file", "x");
    is_number(writes("file/x.conf", true, "x\n", ""), EX_CANTCREAT, "a file in the way");
    struct init_files f = {0};
    is_number(init_files_open(&f, path("u.conf"), false, why), 0, "opened");
    is_number(init_files_write(&f, TEXT("x\n"), TEXT("x"), geteuid() == 0 ? "nobody-here" : NULL, why), geteuid() == 0 ? EX_NOUSER : EX_CANTCREAT, "no such user");
    init_files_close(&f);
    ok(access(path("u.conf"), F_OK) != 0);
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    umask(077);
    tap_tests("");
    umask(022);
    test_mark();
    test_refused();
    char command[100];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command) == 0 ? done() : 1;
}
