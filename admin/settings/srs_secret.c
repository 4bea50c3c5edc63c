/* Reads or makes the secrets of SRS, of tagged senders and of hashed addresses. */
#include "admin/settings/srs_secret.h"

#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "mime/address.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SECRET_BYTES = 32,
    NAME_BYTES_MAX = 64,
    DRAFT_LENGTH = 4 + 16, /* srs.0123456789abcdef */
    OWNER_ONLY = 0600
};

static const char path[] = "lock/srs";
static const char separators[] = ", \t\r\n";

static void
srs_secret_find_tagged(void *context, const struct target *target)
{
    bool *tags = context;
    *tags = *tags || target->transport.verp != 0;
}

static void
srs_secret_check_tags(const struct options *o, const struct route_table *routes,
                      struct buffer *errors)
{
    bool tags = o->transport.verp != 0;
    if (routes != NULL)
        route_each_target(routes, srs_secret_find_tagged, &tags);
    if (o->bounces == NULL && tags)
        (void)!buffer_format(errors, "verp: needs `bounces`, the address to which "
                                     "reports come back\n");
    if (o->bounces != NULL && !verp_fits(text_from(o->bounces)))
        (void)!buffer_format(errors,
                             "bounces: '%.100s': say LOCAL@DOMAIN, LOCAL of letters, "
                             "digits, '.', '-', '_', at most %d\n",
                             o->bounces, VERP_LOCAL_MAX);
}

void
srs_secret_check(const struct options *o, const struct route_table *routes,
                 struct buffer *errors)
{
    srs_secret_check_tags(o, routes, errors);
    struct text rest = text_from(o->srs_secret), word;
    size_t count = 0;
    while (text_word(&rest, separators, &word)) {
        count++;
        if (word.length < SRS_SECRET_MIN)
            (void)!buffer_format(errors, "srs_secret: has fewer than %d characters\n",
                                 SRS_SECRET_MIN);
    }
    if (count > SRS_SECRETS_MAX)
        (void)!buffer_format(errors, "srs_secret: more than %d secrets\n",
                             SRS_SECRETS_MAX);
    if (o->srs_domain != NULL && !address_is_domain(text_from(o->srs_domain)))
        (void)!buffer_add_error(errors, "srs_domain", text_from(o->srs_domain),
                                "not a domain");
}

/* 0, or -errno. */
static int
srs_secret_read(struct disk *spool, char secret[SECRET_BYTES])
{
    int64_t got = disk_read_at(spool, path, 0, secret, SECRET_BYTES);
    if (got < 0)
        return (int)got;
    return got == SECRET_BYTES ? 0 : -EILSEQ;
}

/* Complete and durable before it has its name: addresses that it signs are elsewhere for
 * weeks. Another slice may be first, and then its secret counts. */
static int
srs_secret_make(struct disk *spool, const uint64_t random[SRS_SECRET_RANDOM],
                char secret[SECRET_BYTES])
{
    char name[NAME_BYTES_MAX];
    static_assert(SECRET_BYTES == (SRS_SECRET_RANDOM - 1) * sizeof(*random),
                  "all of it");
    memcpy(secret, random, SECRET_BYTES);
    snprintf(name, sizeof(name), "lock/srs.%016" PRIx64, random[SRS_SECRET_RANDOM - 1]);
    int error = disk_write_new(spool, name, OWNER_ONLY, text_of(secret, SECRET_BYTES));
    if (error == 0)
        error = disk_link(spool, name, path);
    (void)!disk_unlink(spool, name);
    if (error == 0)
        error = disk_sync_directory(spool, "lock");
    /* ENOENT: another slice has a secret, and has removed our draft. */
    return error == -EEXIST || error == -ENOENT ? srs_secret_read(spool, secret)
                                                : error;
}

static bool
srs_secret_remove_draft(void *context, const char *name)
{
    char whole[NAME_BYTES_MAX];
    struct text draft = text_from(name);
    if (!text_starts(draft, TEXT("srs.")) || draft.length != DRAFT_LENGTH)
        return true;
    snprintf(whole, sizeof(whole), "lock/%s", name);
    (void)!disk_unlink(context, whole);
    return true;
}

/* Removes drafts of a process that died. With a secret in its place no draft can become
 * one. */
static void
srs_secret_clean(struct disk *spool)
{
    (void)!disk_list(spool, "lock", srs_secret_remove_draft, spool);
}

/* -ENOENT: there is none, and none is wanted. */
static int
srs_secret_get(struct disk *spool, const uint64_t random[SRS_SECRET_RANDOM],
               bool wanted, char secret[SECRET_BYTES])
{
    int error = srs_secret_read(spool, secret);
    if (error == -ENOENT && wanted)
        error = srs_secret_make(spool, random, secret);
    if (error == 0)
        srs_secret_clean(spool);
    return error;
}

static struct srs *
srs_of_file(struct text domain, struct disk *spool,
            const uint64_t random[SRS_SECRET_RANDOM], bool wanted, int *error)
{
    char secret[SECRET_BYTES];
    struct text one = text_of(secret, sizeof(secret));
    *error = srs_secret_get(spool, random, wanted, secret);
    if (*error == -ENOENT && !wanted) {
        *error = 0;
        return NULL;
    }
    struct srs *made = srs_new(domain, &one, *error == 0 ? 1 : 0);
    digest_forget(secret, sizeof(secret));
    return made;
}

static size_t
srs_secret_list(const struct options *o, struct text secrets[SRS_SECRETS_MAX])
{
    struct text rest = text_from(o->srs_secret), word;
    size_t count = 0;
    while (count < SRS_SECRETS_MAX && text_word(&rest, separators, &word))
        secrets[count++] = word;
    return count;
}

struct srs *
srs_secret_use(const struct options *o, const struct route_table *routes,
               struct disk *spool, const uint64_t random[SRS_SECRET_RANDOM],
               bool wanted, int *error)
{
    struct text secrets[SRS_SECRETS_MAX];
    struct text domain = o->srs_domain != NULL ? text_from(o->srs_domain)
                                               : route_first_local_domain(routes);
    *error = 0;
    if (!o->srs || domain.length == 0)
        return NULL;
    size_t count = srs_secret_list(o, secrets);
    return count > 0 ? srs_new(domain, secrets, count)
                     : srs_of_file(domain, spool, random, wanted, error);
}

struct verp *
srs_secret_tags(const struct options *o, struct disk *spool,
                const uint64_t random[SRS_SECRET_RANDOM], int *error)
{
    struct text secrets[SRS_SECRETS_MAX];
    *error = 0;
    if (o->bounces == NULL)
        return NULL;
    size_t count = srs_secret_list(o, secrets);
    return verp_new(text_from(o->bounces),
                    count > 0 ? srs_new(TEXT(""), secrets, count)
                              : srs_of_file(TEXT(""), spool, random, true, error));
}

int
srs_secret_mask(const struct options *o, struct disk *spool,
                const uint64_t random[SRS_SECRET_RANDOM],
                unsigned char key[DIGEST_SIZE])
{
    struct text secrets[SRS_SECRETS_MAX];
    char secret[SECRET_BYTES];
    int error = 0;
    if (srs_secret_list(o, secrets) == 0) {
        error = srs_secret_get(spool, random, true, secret);
        secrets[0] = text_of(secret, sizeof(secret));
    }
    if (error == 0)
        digest_keyed(secrets[0], TEXT("log_addresses"), key);
    digest_forget(secret, sizeof(secret));
    return error;
}

void
srs_secret_why(int error, char out[SRS_SECRET_WHY_MAX])
{
    snprintf(out, SRS_SECRET_WHY_MAX, "%s: %s", path,
             error == -EILSEQ ? "damaged; remove it to have a new one"
                              : strerror(-error));
}
