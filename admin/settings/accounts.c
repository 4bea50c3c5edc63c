/* Reads the accounts of `oauth`. */
#include "admin/settings/accounts.h"

#include "base/crypto/digest.h"
#include "smtp/oauth/oauth_file.h"
#include "smtp/oauth/tokens.h"
#include "base/memory.h"
#include "sched/route/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next line that is an account. */
static bool
accounts_next(struct text *table, struct text *row, size_t *number)
{
    while (table->length > 0 && text_cut(table, '\n', row)) {
        *row = text_trim(*row);
        if (row->length == 0 || row->at[0] == '#')
            continue;
        ++*number;
        return true;
    }
    return false;
}

static bool
accounts_is_twice(const struct accounts *accounts, const struct oauth_account *new)
{
    for (size_t i = 0; i < accounts->count; i++) {
        const struct oauth_account *a = &accounts->list[i];
        if (a->port == new->port && strcmp(a->host, new->host) == 0 &&
            strcmp(a->user, new->user) == 0)
            return true;
    }
    return false;
}

static bool
accounts_add(struct accounts *accounts, struct text row, char why[OAUTH_REASON_MAX])
{
    struct oauth_account *account = &accounts->list[accounts->count];
    if (!oauth_parse_account(row, account, why))
        return false;
    if (strlen(account->user) > SECRETS_USER_MAX)
        snprintf(why, OAUTH_REASON_MAX, "the user is longer than %d bytes",
                 SECRETS_USER_MAX);
    else if (accounts_is_twice(accounts, account))
        snprintf(why, OAUTH_REASON_MAX,
                 "an account above is for the same host and user: remove one");
    else
        accounts->count++;
    return why[0] == '\0';
}

bool
accounts_read(const struct options *options, struct accounts *out,
              struct buffer *errors)
{
    struct text table = text_from(options->oauth), row;
    size_t count = 0, number = 0;
    bool good = true;
    *out = (struct accounts){0};
    while (accounts_next(&table, &row, &count))
        ;
    if (count == 0)
        return true;
    if (count > TOKENS_ACCOUNTS_MAX) {
        (void)!buffer_format(errors, "oauth: %zu accounts are more than %d\n", count,
                             TOKENS_ACCOUNTS_MAX);
        return false;
    }
    out->list = memory_new(count * sizeof(*out->list));
    table = text_from(options->oauth);
    while (accounts_next(&table, &row, &number)) {
        char why[OAUTH_REASON_MAX] = "";
        if (accounts_add(out, row, why))
            continue;
        good = false;
        /* A full buffer has enough errors. */
        (void)!buffer_format(errors, "oauth: account %zu: %s\n", number, why);
    }
    if (!good)
        accounts_free(out);
    return good;
}

void
accounts_free(struct accounts *accounts)
{
    if (accounts->list != NULL)
        digest_forget(accounts->list, accounts->count * sizeof(*accounts->list));
    free(accounts->list);
    *accounts = (struct accounts){0};
}

void
accounts_read_secrets(struct accounts *accounts, struct buffer *errors)
{
    for (size_t i = 0; i < accounts->count; i++) {
        struct oauth_account *a = &accounts->list[i];
        struct buffer content;
        char why[DISK_REASON_MAX];
        if (a->secret[0] != '@')
            continue;
        buffer_init(&content, OAUTH_SECRET_MAX - 1);
        int error = oauth_file_secret(a->secret + 1, &content);
        if (error == 0 && content.length == 0)
            error = -ENODATA;
        if (error < 0)
            (void)!buffer_format(errors, "oauth: cannot read '%.1000s': %s\n",
                                 a->secret + 1,
                                 disk_explain_file(a->secret + 1, error, why));
        else
            (void)!text_copy(a->secret, sizeof(a->secret), buffer_text(&content));
        buffer_forget(&content);
    }
}

void
accounts_each_file(const struct options *options,
                   void (*each)(void *context, const char *path), void *context)
{
    struct accounts accounts;
    struct buffer errors;
    buffer_init(&errors, OAUTH_REASON_MAX); /* reported when the settings were read */
    (void)!accounts_read(options, &accounts, &errors);
    buffer_free(&errors);
    for (size_t i = 0; i < accounts.count; i++) {
        const struct oauth_account *a = &accounts.list[i];
        if (a->secret[0] == '@')
            each(context, a->secret + 1);
        if (a->refresh[0] != '\0')
            each(context, a->refresh);
    }
    accounts_free(&accounts);
}
