/* Reads and writes the files of OAuth2 accounts. */
#include "smtp/oauth/oauth_file.h"

#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "smtp/oauth/tokens_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SECRET_FILE_MAX = OAUTH_TOKEN_MAX + 16 };

void
oauth_file_path(const struct oauth_account *account, char out[OAUTH_FILE_PATH_MAX])
{
    char key[OAUTH_KEY_SIZE];
    oauth_account_key(account, key);
    snprintf(out, OAUTH_FILE_PATH_MAX, "oauth/%s", key);
}

int
oauth_file_lock(struct disk *spool, const char *path)
{
    char lock[OAUTH_FILE_PATH_MAX + 8];
    snprintf(lock, sizeof(lock), "%s.lock", path);
    int result = disk_make_directory(spool, "oauth", 0700);
    return result == 0 ? disk_lock(spool, lock, 0, 1) : result;
}

int
oauth_file_read(struct disk *spool, const char *path,
                const struct oauth_account *account, struct oauth_state *state)
{
    char content[OAUTH_STATE_MAX + 1];
    int64_t changed_ms;
    int64_t length = tokens_file_read(spool, path, content, &changed_ms);
    int result = length < 0 ? (int)length : 0;
    if (result == -EFBIG ||
        (result == 0 &&
         !oauth_state_read(text_of(content, (size_t)length), account, state)))
        result = -EBADMSG;
    digest_forget(content, sizeof(content));
    return result;
}

static void
oauth_file_forget(struct buffer *content)
{
    if (content->at != NULL)
        digest_forget(content->at, content->capacity);
    buffer_free(content);
}

int
oauth_file_write(struct disk *spool, const char *path,
                 const struct oauth_account *account, const struct oauth_state *state)
{
    struct buffer content;
    int result = -EINVAL;
    buffer_init(&content, OAUTH_STATE_MAX);
    if (oauth_state_write(&content, account, state))
        result = tokens_file_write(spool, path, buffer_text(&content));
    oauth_file_forget(&content);
    return result;
}

struct tokens_write *
oauth_file_begin(struct disk *spool, const char *path,
                 const struct oauth_account *account, const struct oauth_state *state,
                 void (*done)(void *context, int result), void *context)
{
    struct buffer content;
    struct tokens_write *write = NULL;
    buffer_init(&content, OAUTH_STATE_MAX);
    if (oauth_state_write(&content, account, state))
        write = tokens_file_begin(spool, path, buffer_text(&content), done, context);
    else
        done(context, -EINVAL);
    oauth_file_forget(&content);
    return write;
}

int
oauth_file_settle(struct disk *spool, const char *path,
                  const struct oauth_account *account)
{
    struct oauth_state state;
    char fresh[TOKENS_FILE_PATH_MAX];
    tokens_file_fresh(path, fresh);
    oauth_state_init(&state);
    int result = oauth_file_read(spool, fresh, account, &state);
    oauth_state_free(&state);
    if (result == -ENOENT)
        return 0;
    /* It is damaged, or no file. A file that cannot be read now may be whole. */
    if (result == -EBADMSG || result == -EINVAL || result == -ELOOP)
        return disk_unlink(spool, fresh);
    if (result == 0)
        result = tokens_file_complete(spool, path);
    return result == 0 ? 1 : result;
}

bool
oauth_file_is_there(struct disk *spool, const char *path)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    struct disk_info info;
    tokens_file_fresh(path, fresh);
    return disk_inspect(spool, path, &info) != -ENOENT ||
           disk_inspect(spool, fresh, &info) != -ENOENT;
}

int
oauth_file_remove(struct disk *spool, const char *path)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    tokens_file_fresh(path, fresh);
    int left = disk_unlink(spool, fresh);
    int result = disk_unlink(spool, path);
    if (result == -ENOENT)
        result = left;
    return result == 0 ? disk_sync_directory(spool, "oauth") : result;
}

int
oauth_file_secret(const char *path, struct buffer *out)
{
    char *content = NULL;
    size_t length = 0;
    int result = disk_read_regular(path, SECRET_FILE_MAX, &content, &length);
    if (result == 0 && (buffer_reserve(out, out->limit) == NULL ||
                        !buffer_add(out, text_trim(text_of(content, length)))))
        result = -EFBIG;
    if (content != NULL)
        digest_forget(content, length);
    free(content);
    return result;
}
