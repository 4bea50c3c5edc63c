/* Reads or makes the identity of a spool. */
#include "queue/spool/spool_identity.h"

#include "base/disk/disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DRAFT_MAX = 64, IDENTITY_MODE = 0640 };

static const char identity_path[] = "lock/identity";

/* 0, or -errno. */
static int
spool_identity_read(struct disk *spool, char out[SPOOL_IDENTITY_DIGITS + 1])
{
    char bytes[SPOOL_IDENTITY_DIGITS];
    int64_t got = disk_read_at(spool, identity_path, 0, bytes, sizeof(bytes));
    if (got < 0)
        return (int)got;
    for (int64_t i = 0; i < got; i++)
        if (strchr("0123456789abcdef", bytes[i]) == NULL || bytes[i] == '\0')
            return -EILSEQ;
    if (got != SPOOL_IDENTITY_DIGITS)
        return -EILSEQ;
    memcpy(out, bytes, sizeof(bytes));
    out[SPOOL_IDENTITY_DIGITS] = '\0';
    return 0;
}

/* Drafts of a process that died, and of slices that are too late. */
static bool
spool_identity_clean(void *context, const char *name)
{
    char draft[DRAFT_MAX];
    if (text_starts(text_from(name), TEXT("identity.")) &&
        snprintf(draft, sizeof(draft), "lock/%s", name) < (int)sizeof(draft))
        (void)!disk_unlink(context, draft);
    return true;
}

/* Complete and durable before it has its name. Another slice may be first, and then its
 * identity counts. */
static int
spool_identity_make(struct disk *spool, const uint64_t random[2],
                    char out[SPOOL_IDENTITY_DIGITS + 1])
{
    char draft[DRAFT_MAX], text[SPOOL_IDENTITY_DIGITS + 2];
    snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "\n", random[0],
             random[1]);
    snprintf(draft, sizeof(draft), "%s.%.16s", identity_path, text);
    int error = disk_write_new(spool, draft, IDENTITY_MODE, text_from(text));
    if (error == 0)
        error = disk_link(spool, draft, identity_path);
    (void)!disk_unlink(spool, draft);
    if (error == 0)
        error = disk_sync_directory(spool, "lock");
    if (error == 0)
        (void)!disk_list(spool, "lock", spool_identity_clean, spool);
    /* ENOENT: another slice was first, and has removed our draft. */
    return error == 0 || error == -EEXIST || error == -ENOENT
               ? spool_identity_read(spool, out)
               : error;
}

/* One that is damaged is not made anew: another identity would say that this spool is
 * gone. */
int
spool_identity(struct disk *spool, const uint64_t random[2],
               char out[SPOOL_IDENTITY_DIGITS + 1])
{
    out[0] = '\0';
    int error = spool_identity_read(spool, out);
    return error == -ENOENT ? spool_identity_make(spool, random, out) : error;
}
