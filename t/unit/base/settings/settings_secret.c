/* base/settings/settings.c: nothing of a secret stays in memory when the settings are
 * freed, wherever it came from. */
#include "base/settings/settings.h"

#include "base/settings/settings_value.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct secret_target {
    char *password, *other;
};

static const struct setting secret_rows[] = {
    {.key = "password",
     .kind = SETTING_STRING,
     .offset = offsetof(struct secret_target, password),
     .preset = "",
     .help = "h",
     .secret = true},
    {.key = "other",
     .kind = SETTING_STRING,
     .offset = offsetof(struct secret_target, other),
     .preset = "",
     .help = "h"},
    {.key = NULL}
};

enum { SECRET_LENGTH = 48 };

/* Made anew each time, so that no literal in the binary is found. */
static void
make_secret(char secret[SECRET_LENGTH + 1], int salt)
{
    for (int i = 0; i < SECRET_LENGTH; i++)
        secret[i] = (char)('a' + (i * 7 + salt * 5 + i * i) % 26);
    secret[SECRET_LENGTH] = '\0';
}

/* The second half of the secret: free() itself overwrites the first bytes. */
static bool
is_in_heap(const char *secret)
{
    char line[300];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from, to;
        if (strstr(line, "[heap]") == NULL || sscanf(line, "%lx-%lx", &from, &to) != 2)
            continue;
        /* Never read across what sanitizers may have poisoned: the kernel copies. */
        int memory = open("/proc/self/mem", O_RDONLY);
        static char copy[16 * 1024 * 1024];
        ssize_t got = memory < 0 ? -1
                                 : pread(memory, copy,
                                         to - from < sizeof(copy) ? to - from
                                                                  : sizeof(copy),
                                         (off_t)from);
        found = got > 0 && memmem(copy, (size_t)got, secret + SECRET_LENGTH / 2,
                                  SECRET_LENGTH / 2) != NULL;
        explicit_bzero(copy, sizeof(copy));
        if (memory >= 0)
            close(memory);
        break;
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void
write_secret(const char *path, const char *before, const char *secret, const char *after)
{
    char content[200]; /* dprintf() would leave a copy in the heap */
    int length = snprintf(content, sizeof(content), "%s%s%s", before, secret, after);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (file < 0 || write(file, content, (size_t)length) != length || close(file) != 0)
        abort();
    explicit_bzero(content, sizeof(content));
}

enum source { FROM_FILE, FROM_FILE_OF_ITS_OWN, FROM_ENVIRONMENT, FROM_ARGUMENT, SOURCES };

static void
read_from(struct settings *s, enum source source, const char *path, const char *own,
          const char *secret)
{
    char text[200];
    switch (source) {
    case FROM_FILE:
        write_secret(path, "other = x\npassword = ", secret, "\nother = y\n");
        settings_read_file(s, path);
        break;
    case FROM_FILE_OF_ITS_OWN:
        write_secret(own, "", secret, "\n");
        write_secret(path, "password_file = ", own, "\n");
        settings_read_file(s, path);
        break;
    case FROM_ENVIRONMENT: {
        snprintf(text, sizeof(text), "PETREL_PASSWORD=%s", secret);
        char *environment[] = {text, NULL};
        settings_read_environment(s, environment);
        break;
    }
    case FROM_ARGUMENT:
        settings_read_argument(s, "password=the first value, which is replaced");
        snprintf(text, sizeof(text), "password=%s", secret);
        settings_read_argument(s, text);
        break;
    case SOURCES:
        break;
    }
    explicit_bzero(text, sizeof(text));
}

/* credential:NAME: paths, lists, names that are none, a variable that is not set. */

static void
becomes(const char *value, const char *directory, const char *want, const char *wrong)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 600);
    const char *why = settings_credential_expand(text_from(value), directory, &out);
    ok_named(wrong == NULL ? why == NULL : why != NULL && strstr(why, wrong) != NULL, value);
    if (wrong == NULL)
        ok_named(text_equal(buffer_text(&out), text_from(want)), want);
}

static void
test_replace(void)
{
    char *value = text_string(TEXT("h joe secret=@credential:ms"));
    ok(settings_credential_replace(&value, "/d") == NULL);
    is_string(value, "h joe secret=@/d/ms", "in place");
    ok(settings_credential_replace(&value, NULL) == NULL);
    is_string(value, "h joe secret=@/d/ms", "once more changes nothing");
    free(value);
    value = text_string(TEXT("credential:a/b"));
    ok(settings_credential_replace(&value, "/d") != NULL);
    free(value);
}

static void
test_credential_all(void)
{
    char name[400], value[1000];
    test_replace();
    becomes("credential:relay", "/run/credentials/petrel.service", "/run/credentials/petrel.service/relay", NULL);
    becomes("/etc/a.pem, credential:b.pem,credential:c", "/d", "/etc/a.pem, /d/b.pem,/d/c", NULL);
    becomes("credential:a\nx credential:b y\n", "/d", "/d/a\nx /d/b y\n", NULL);
    becomes("no-credential:a xcredential:b", "/d", "no-credential:a xcredential:b", NULL);
    becomes("", "/d", "", NULL);
    becomes("h joe custom client=x secret=@credential:ms scope=y", "/d", "h joe custom client=x secret=@/d/ms scope=y", NULL);
    becomes("h joe @credential:token\n", "/d", "h joe @/d/token\n", NULL);
    becomes("smtp://joe@credential:25", "/d", "smtp://joe@credential:25", NULL);
    becomes("secret=@credential:a/b", "/d", NULL, "needs the name of a file");
    becomes("secret=@credential:a", NULL, NULL, "CREDENTIALS_DIRECTORY is not set");
    becomes("/plain", NULL, "/plain", NULL);
    becomes("credential:a", NULL, NULL, "CREDENTIALS_DIRECTORY is not set");
    becomes("credential:a", "", NULL, "CREDENTIALS_DIRECTORY is not set");
    becomes("credential:a", "relative", NULL, "CREDENTIALS_DIRECTORY is not set");
    becomes("credential:", "/d", NULL, "needs the name of a file");
    becomes("credential:.", "/d", NULL, "needs the name of a file");
    becomes("credential:..", "/d", NULL, "needs the name of a file");
    becomes("credential:../a", "/d", NULL, "needs the name of a file");
    becomes("credential:a/b", "/d", NULL, "needs the name of a file");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(value, sizeof(value), "credential:%s", name);
    becomes(value, "/d", NULL, "needs the name of a file");
    name[255] = '\0';
    snprintf(value, sizeof(value), "credential:%s credential:%.100s credential:%s", name, name, name);
    becomes(value, "/directory", NULL, "too long");
    ok(settings_credential_is_in(TEXT("a b=@credential:c")) && !settings_credential_is_in(TEXT("a@credential:b")));
    ok(settings_credential_is_in(TEXT("a, credential:b")) && settings_credential_is_in(TEXT("credential:")) && !settings_credential_is_in(TEXT("a credentials:b")) && !settings_credential_is_in(TEXT("")));
}

int
main(void)
{
    char directory[] = "/tmp/petrel-secret-XXXXXX", path[64], own[64];
    if (mkdtemp(directory) == NULL)
        abort();
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(path, sizeof(path), "%s/conf", directory);
    snprintf(own, sizeof(own), "%s/own", directory);
    for (int source = 0; source < SOURCES; source++) {
        char secret[SECRET_LENGTH + 1];
        struct secret_target target = {0};
        make_secret(secret, source);
        struct settings *s = settings_new(secret_rows, "PETREL", &target);
        read_from(s, (enum source)source, path, own, secret);
        settings_apply(s);
        ok_named(target.password != NULL && strcmp(target.password, secret) == 0,
                 "the secret is read");
        settings_free(&s);
        ok_named(!is_in_heap(secret), "and overwritten");
    }
    unlink(own);
    unlink(path);
    rmdir(directory);
    test_credential_all();
    return done();
}
