/* The options as the modules below take them. */
#include "admin/settings/options.h"

#include "admin/settings/accounts.h"
#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "base/memory.h"
#include "mime/address.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* malloc'ed; NULL if there is none, or with an error if it cannot be read. */
static char *
read_passwords(const struct options *o, size_t *length, struct buffer *errors)
{
    char *content, why[DISK_REASON_MAX];
    *length = 0;
    if (o->auth_passwords == NULL || o->without_secrets)
        return NULL;
    int error =
        disk_read_regular(o->auth_passwords, SECRETS_FILE_MAX, &content, length);
    if (error >= 0)
        return content;
    (void)!buffer_format(errors, "auth_passwords: cannot read '%.1000s': %s\n",
                         o->auth_passwords,
                         disk_explain_file(o->auth_passwords, error, why));
    return NULL;
}

/* As routes have them; borrowed from accounts, and from keys. malloc'ed. */
static struct secrets_account *
name_accounts(const struct accounts *accounts, char keys[][OAUTH_KEY_SIZE])
{
    struct secrets_account *named = memory_new((accounts->count + 1) * sizeof(*named));
    for (size_t i = 0; i < accounts->count; i++) {
        const struct oauth_account *a = &accounts->list[i];
        oauth_account_key(a, keys[i]);
        named[i] = (struct secrets_account){.host = text_from(a->host),
                                            .user = text_from(a->user),
                                            .port = a->port,
                                            .name = text_from(keys[i])};
    }
    return named;
}

/* local_domains has a preset, the hostname: only a value that was set counts. */
struct rewrites *
options_rewrites(const struct options *options, const struct settings *settings,
                 struct buffer *errors)
{
    bool is_set = settings_origin(settings, TEXT("local_domains")) != NULL;
    struct rewrites_settings table = {
        .table = text_from(options->rewrite),
        .hostname = options->hostname,
        .local_domains = is_set ? text_from(options->local_domains) : TEXT("")};
    return rewrites_new(&table, errors);
}

struct route_table *
options_routes(const struct options *options, struct buffer *errors)
{
    size_t length = 0, before = errors->length;
    struct accounts accounts;
    struct route_table *table = NULL;
    char *passwords = read_passwords(options, &length, errors);
    bool good = accounts_read(options, &accounts, errors);
    char(*keys)[OAUTH_KEY_SIZE] = memory_new((accounts.count + 1) * sizeof(*keys));
    struct secrets_account *named = name_accounts(&accounts, keys);
    struct route_settings settings = {
        .routes = text_from(options->routes),
        .sender_routes = text_from(options->sender_routes),
        .relay = text_from(options->relay),
        .relay_password = text_from(options->relay_password),
        .passwords = text_of(passwords, length),
        .accounts = named,
        .account_count = accounts.count,
        .without_secrets = options->without_secrets,
        .local = text_from(options->local),
        .local_domains = text_from(options->local_domains),
        .defrag_host = text_from(options_host_of(options)),
        .defrag_peers = text_from(options->defrag_peers),
        .smtp_port = options->delivery.smtp_port,
        .base = options->transport,
    };
    /* One error, not one for each user that has no password because of it. */
    if (good && errors->length == before)
        table = route_new(&settings, errors);
    if (passwords)
        digest_forget(passwords, length);
    free(passwords);
    free(named);
    free(keys);
    accounts_free(&accounts);
    return table;
}

int64_t
options_fragments_max(const struct options *options, const struct settings *settings,
                      struct disk *spool)
{
    struct disk_space space;
    int64_t max = options->fragments.limits.bytes;
    bool is_set = settings_origin(settings, TEXT("defrag_max_total")) != NULL;
    if (is_set || disk_space(spool, &space) != 0 || space.bytes == 0 ||
        space.bytes / 10 > max)
        return max;
    /* Not 0, which would be no limit. */
    return space.bytes / 10 > 0 ? space.bytes / 10 : 1;
}

/* A setting of one word is a directory. */
const char *
options_key_directory(const struct options *options)
{
    static const char blanks[] = " \t\r\n";
    struct text rest = text_from(options->dkim_keys), word;
    bool is_one = text_word(&rest, blanks, &word) && !text_word(&rest, blanks, &word);
    return is_one ? options->dkim_keys : NULL;
}
