/* The accounts of the setting `oauth`: users of routes that log in with a token. */
#ifndef ADMIN_SETTINGS_ACCOUNTS_H
#define ADMIN_SETTINGS_ACCOUNTS_H

#include "admin/settings/options.h"
#include "smtp/oauth/oauth.h"

/* They have secrets: accounts_free() overwrites them. */
struct accounts {
    struct oauth_account *list;
    size_t count; /* at most TOKENS_ACCOUNTS_MAX */
};

/* One account a line; "#" begins a comment line. False, with one line per error in
 * errors; no line shows a secret. None without the setting, or without secrets. */
bool accounts_read(const struct options *options, struct accounts *out,
                   struct buffer *errors) __attribute__((warn_unused_result));
void accounts_free(struct accounts *accounts);
/* Replaces the path of each client secret by the content of the file; one line for each
 * that cannot be read, or is empty. Once, after accounts_read(). */
void accounts_read_secrets(struct accounts *accounts, struct buffer *errors);

/* Calls each with the files of client secrets and first refresh tokens. */
void accounts_each_file(const struct options *options,
                        void (*each)(void *context, const char *path), void *context);

#endif
