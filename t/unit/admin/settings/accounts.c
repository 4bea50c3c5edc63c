/* The setting oauth: accounts, and the mistakes in them. */
#include "admin/settings/accounts.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[8192];

static bool
reads(char *table, struct accounts *accounts)
{
    struct options options = {.oauth = table};
    struct buffer errors;
    buffer_init(&errors, sizeof(said) - 1);
    bool good = accounts_read(&options, accounts, &errors);
    snprintf(said, sizeof(said), "%.*s", TEXT_ARGS(buffer_text(&errors)));
    buffer_free(&errors);
    return good;
}

static void
refuses(const char *table, const char *expected)
{
    struct accounts accounts;
    char *copy = strdup(table);
    ok_named(!reads(copy, &accounts), table);
    is_string(said, expected, "its error");
    ok_named(accounts.count == 0 && accounts.list == NULL, "no account");
    free(copy);
}

TEST(good)
{
    struct accounts accounts;
    char table[] = "# a comment\n\n"
                   "smtp.office365.com:587 a@contoso.com microsoft tenant=contoso.com "
                   "client=ID secret=CANARY grant=client\r\n"
                   "  Smtp.Gmail.COM joe google client=x refresh=@/run/r\n";
    ok_named(reads(table, &accounts), "two accounts");
    is_number((long)accounts.count, 2, "and no more");
    is_string(accounts.list[0].user, "a@contoso.com", "the user");
    is_number(accounts.list[0].port, 587, "the port");
    is_string(accounts.list[1].host, "smtp.gmail.com", "hosts are in lower case");
    accounts_free(&accounts);
    ok_named(accounts.list == NULL && accounts.count == 0, "freed");
    ok_named(reads(NULL, &accounts) && accounts.count == 0, "unset: none");
    ok_named(accounts.list == NULL, "and no memory");
}

TEST(mistakes)
{
    refuses("h.test joe google\n", "oauth: account 1: client= is missing\n");
    refuses("# none\nh.test joe micro client=x\ng.test joe google client=x\ng.test",
            "oauth: account 1: PROVIDER: say microsoft, google or custom\n"
            "oauth: account 3: say HOST USER PROVIDER KEY=VALUE...\n");
    refuses("h.test joe google client=x\nH.test joe google client=y",
            "oauth: account 2: an account above is for the same host and user: remove "
            "one\n");
    refuses("h.test joe google client=x CANARY", "oauth: account 1: something that is "
                                                 "not KEY=VALUE\n");
    refuses(
        "h.test joe google client=x secretCANARY=y",
        "oauth: account 1: word 5 has no key of google: client secret scope refresh "
        "grant\n");
}

TEST(user)
{
    char table[300];
    memset(table, 'u', sizeof(table));
    memcpy(table, "h.test ", 7);
    strcpy(table + 140, " google client=x");
    refuses(table, "oauth: account 1: the user is longer than 128 bytes\n");
}

TEST(limit)
{
    size_t rows = 1001, row = 40;
    char *table = calloc(rows, row);
    for (size_t i = 0, at = 0; table != NULL && i < rows; i++)
        at += (size_t)snprintf(table + at, row, "h.test u%zu google client=x\n", i);
    refuses(table, "oauth: 1001 accounts are more than 1000\n");
    free(table);
}

TEST(secrets)
{
    struct accounts accounts;
    char file[] = "/tmp/petrel-secret-XXXXXX", table[400], longest[OAUTH_SECRET_MAX + 1];
    int handle = mkstemp(file);
    memset(longest, 'x', sizeof(longest));
    FIXTURE(buffer, errors, buffer_init, buffer_free, 1000);
    snprintf(table, sizeof(table),
             "h.test joe google client=x secret=@/none refresh=@/none\n"
             "h.test jim google client=x secret=@%s\n"
             "h.test jan google client=x secret=plain\n",
             file);
    ok(reads(table, &accounts));
    ok(write(handle, " @/s3cret\n", 10) == 10);
    accounts_read_secrets(&accounts, &errors);
    is_text(buffer_text(&errors), TEXT("oauth: cannot read '/none': No such file or directory\n"), "a file that is not there");
    ok_named(strcmp(accounts.list[1].secret, "@/s3cret") == 0, "the content, without white space");
    ok_named(strcmp(accounts.list[2].secret, "plain") == 0, "one that is no path");
    accounts_free(&accounts);

    static const struct {
        size_t length;
        const char *why;
    } bad[] = {{0, "No data available"}, {OAUTH_SECRET_MAX, "File too large"}, {OAUTH_SECRET_MAX + 1, "File too large"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char expected[200];
        ok(ftruncate(handle, 0) == 0 && pwrite(handle, longest, bad[i].length, 0) == (ssize_t)bad[i].length);
        buffer_clear(&errors);
        snprintf(table, sizeof(table), "h.test jim google client=x secret=@%s\n", file);
        ok(reads(table, &accounts));
        accounts_read_secrets(&accounts, &errors);
        snprintf(expected, sizeof(expected), "oauth: cannot read '%s': %s\n", file, bad[i].why);
        is_text(buffer_text(&errors), text_from(expected), "no secret");
        accounts_free(&accounts);
    }
    close(handle);
    unlink(file);
}

static char files[256];

static void
note_file(void *context, const char *path)
{
    (void)context;
    strcat(files, path);
    strcat(files, " ");
}

TEST(files)
{
    char table[] = "h.test joe google client=x secret=@/a refresh=@/b\n"
                   "h.test jim google client=x secret=plain\n";
    struct options options = {.oauth = table};
    accounts_each_file(&options, note_file, NULL);
    is_string(files, "/a /b ", "secrets and first tokens");
    options.oauth = NULL;
    files[0] = '\0';
    accounts_each_file(&options, note_file, NULL);
    is_string(files, "", "none");
}
