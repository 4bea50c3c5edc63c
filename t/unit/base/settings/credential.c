/* credential:NAME: paths, lists, names that are none, a variable that is not set. */
#include "base/settings/credential.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static void
becomes(const char *value, const char *directory, const char *want, const char *wrong)
{
    struct buffer out;
    buffer_init(&out, 600);
    const char *why = credential_expand(text_from(value), directory, &out);
    ok_named(wrong == NULL ? why == NULL : why != NULL && strstr(why, wrong) != NULL, value);
    if (wrong == NULL)
        ok_named(text_equal(buffer_text(&out), text_from(want)), want);
    buffer_free(&out);
}

static void
test_replace(void)
{
    char *value = text_string(TEXT("h joe secret=@credential:ms"));
    ok(credential_replace(&value, "/d") == NULL);
    is_string(value, "h joe secret=@/d/ms", "in place");
    ok(credential_replace(&value, NULL) == NULL);
    is_string(value, "h joe secret=@/d/ms", "once more changes nothing");
    free(value);
    value = text_string(TEXT("credential:a/b"));
    ok(credential_replace(&value, "/d") != NULL);
    free(value);
}

int
main(void)
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
    ok(credential_is_in(TEXT("a b=@credential:c")) && !credential_is_in(TEXT("a@credential:b")));
    ok(credential_is_in(TEXT("a, credential:b")) && credential_is_in(TEXT("credential:")) && !credential_is_in(TEXT("a credentials:b")) && !credential_is_in(TEXT("")));
    return done();
}
