/* Reads and writes the states of OAuth2 accounts, and their files: whole or not at all. */
#include "smtp/oauth/oauth_file.h"

#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "base/memory.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- The state, as JSON ----------------------------------------------------------- */

void
oauth_state_init(struct oauth_state *state)
{
    memset(state, 0, sizeof(*state));
    buffer_init(&state->access, OAUTH_TOKEN_MAX);
    buffer_init(&state->refresh, OAUTH_TOKEN_MAX);
}

void
oauth_state_free(struct oauth_state *state)
{
    buffer_forget(&state->access);
    buffer_forget(&state->refresh);
}

static bool
oauth_state_token(struct buffer *out, const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    struct text token = text_of(json_string_value(value), json_string_length(value));
    for (size_t i = 0; i < token.length; i++)
        if (token.at[i] <= ' ' || token.at[i] > '~')
            return false;
    return json_is_string(value) && buffer_reserve(out, OAUTH_TOKEN_MAX) != NULL &&
           buffer_add(out, token);
}

static bool
oauth_state_is(const json_t *json, const char *name, const char *wanted)
{
    const char *value = json_string_value(json_object_get(json, name));
    return value != NULL && strcmp(value, wanted) == 0;
}

static int64_t
oauth_state_time(const json_t *json, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(json, name));
    return value > 0 ? value : 0;
}

static bool
oauth_state_take(const json_t *json, const struct oauth_account *account,
                 struct oauth_state *state)
{
    struct text error = text_from(json_string_value(json_object_get(json, "error")));
    state->expires_ms = oauth_state_time(json, "expires");
    state->updated_ms = oauth_state_time(json, "updated");
    if (text_is_ascii(error) && !text_has_control(error))
        text_copy(state->error, sizeof(state->error), error);
    return oauth_state_is(json, "host", account->host) &&
           oauth_state_is(json, "user", account->user) &&
           oauth_state_is(json, "client", account->client) &&
           oauth_state_token(&state->access, json, "access") &&
           oauth_state_token(&state->refresh, json, "refresh");
}

bool
oauth_state_read(struct text content, const struct oauth_account *account,
                 struct oauth_state *state)
{
    json_t *json =
        json_loadb(content.at != NULL ? content.at : "", content.length, 0, NULL);
    bool good = oauth_state_take(json, account, state);
    json_decref(json);
    if (!good) {
        oauth_state_free(state);
        oauth_state_init(state);
    }
    return good;
}

bool
oauth_state_write(struct buffer *out, const struct oauth_account *account,
                  const struct oauth_state *state)
{
    struct text access = buffer_text(&state->access);
    struct text refresh = buffer_text(&state->refresh);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s%, s:I, s:s%, s:I, s:s}", "host", account->host, "user",
        account->user, "client", account->client, "access", access.at, access.length,
        "expires", (json_int_t)state->expires_ms, "refresh", refresh.at, refresh.length,
        "updated", (json_int_t)state->updated_ms, "error", state->error);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    bool good = text != NULL && buffer_reserve(out, OAUTH_STATE_MAX) != NULL &&
                buffer_add(out, text_from(text)) && buffer_add_byte(out, '\n');
    if (text != NULL)
        digest_forget(text, strlen(text));
    free(text);
    json_decref(json);
    return good;
}

/* --- The file --------------------------------------------------------------------- */

enum {
    OAUTH_FRESH_MAX = OAUTH_FILE_PATH_MAX + 4,
    SECRET_FILE_MAX = OAUTH_TOKEN_MAX + 16
};

void
oauth_file_path(const struct oauth_account *account, char out[OAUTH_FILE_PATH_MAX])
{
    char key[OAUTH_KEY_SIZE];
    oauth_account_key(account, key);
    snprintf(out, OAUTH_FILE_PATH_MAX, "oauth/%s", key);
}

/* The name of the file until it is whole. */
static void
oauth_file_fresh(const char *path, char out[OAUTH_FRESH_MAX])
{
    snprintf(out, OAUTH_FRESH_MAX, "%.*s.new", OAUTH_FILE_PATH_MAX - 1, path);
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
                const struct oauth_account *account, struct oauth_state *state,
                int64_t *changed_ms)
{
    char content[OAUTH_STATE_MAX + 1];
    struct disk_info info;
    int file = disk_open_file(spool, path, false);
    if (file < 0)
        return file;
    int64_t length = disk_read(spool, file, 0, content, sizeof(content));
    if (changed_ms != NULL && disk_file_info(spool, file, &info) == 0)
        *changed_ms = info.changed_ms;
    disk_close_file(spool, file);
    int result = length < 0 ? (int)length : 0;
    if (result == 0 &&
        (length > OAUTH_STATE_MAX ||
         !oauth_state_read(text_of(content, (size_t)length), account, state)))
        result = -EBADMSG;
    digest_forget(content, sizeof(content));
    return result;
}

/* --- Writing ---------------------------------------------------------------------- */

static void
oauth_file_drop(struct disk *spool, const char *path)
{
    char fresh[OAUTH_FRESH_MAX];
    oauth_file_fresh(path, fresh);
    (void)disk_unlink(spool, fresh);
}

static int
oauth_file_create(struct disk *spool, const char *path, struct text content)
{
    char fresh[OAUTH_FRESH_MAX];
    oauth_file_fresh(path, fresh);
    int result = disk_make_directory(spool, "oauth", 0700);
    if (result < 0)
        return result;
    (void)disk_unlink(spool, fresh); /* its name must not be taken */
    int file = disk_create(spool, fresh, 0600);
    result = file >= 0 ? disk_write(spool, file, content) : file;
    if (file >= 0 && result < 0)
        disk_close_file(spool, file);
    return result < 0 ? result : file;
}

/* The new file as a handle, or -errno: none is left. */
static int
oauth_file_write_new(struct disk *spool, const char *path,
                     const struct oauth_account *account,
                     const struct oauth_state *state)
{
    struct buffer content;
    int file = -EINVAL;
    buffer_init(&content, OAUTH_STATE_MAX);
    if (oauth_state_write(&content, account, state))
        file = oauth_file_create(spool, path, buffer_text(&content));
    buffer_forget(&content);
    if (file < 0)
        oauth_file_drop(spool, path);
    return file;
}

/* Content, then name. Closes the file. */
static int
oauth_file_name(struct disk *spool, int file, const char *path)
{
    char fresh[OAUTH_FRESH_MAX];
    oauth_file_fresh(path, fresh);
    int result = disk_sync(spool, file);
    disk_close_file(spool, file);
    if (result == 0)
        result = disk_rename(spool, fresh, path);
    if (result == 0)
        result = disk_sync_directory(spool, "oauth");
    return result == 0 ? disk_sync_directory(spool, "") : result;
}

int
oauth_file_write(struct disk *spool, const char *path,
                 const struct oauth_account *account, const struct oauth_state *state)
{
    int file = oauth_file_write_new(spool, path, account, state);
    if (file < 0)
        return file;
    int result = oauth_file_name(spool, file, path);
    if (result < 0)
        oauth_file_drop(spool, path);
    return result;
}

/* Data to sync, in this order. */
enum oauth_write_step { OAUTH_WRITE_CONTENT, OAUTH_WRITE_NAME, OAUTH_WRITE_DIRECTORY };

struct oauth_write {
    struct disk *spool;
    char path[OAUTH_FILE_PATH_MAX];
    enum oauth_write_step step;
    int file;
    struct disk_sync sync;
    void (*done)(void *context, int result); /* NULL: nobody waits */
    void *context;
};

static void
oauth_write_end(struct oauth_write *w, int result)
{
    void (*done)(void *context, int result) = w->done;
    void *context = w->context;
    if (result < 0)
        oauth_file_drop(w->spool, w->path);
    free(w);
    if (done != NULL)
        done(context, result);
}

/* The next step: its file as a handle, or -errno. */
static int
oauth_write_next(struct oauth_write *w)
{
    char fresh[OAUTH_FRESH_MAX];
    int result = 0;
    oauth_file_fresh(w->path, fresh);
    if (w->step == OAUTH_WRITE_CONTENT)
        result = disk_rename(w->spool, fresh, w->path);
    if (result < 0)
        return result;
    w->step++;
    return disk_open_directory(w->spool, w->step == OAUTH_WRITE_NAME ? "oauth" : "");
}

/* One step after the other, until a sync is in the background. True: it is. */
static bool
oauth_write_go(struct oauth_write *w, int result)
{
    while (result == 0) {
        disk_close_file(w->spool, w->file);
        bool last = w->step == OAUTH_WRITE_DIRECTORY;
        result = last ? 0 : oauth_write_next(w);
        if (last || result < 0) {
            oauth_write_end(w, result);
            return false;
        }
        w->file = result;
        result = disk_sync_begin(w->spool, w->file, false, &w->sync);
    }
    if (result == DISK_SYNCING)
        return true;
    disk_close_file(w->spool, w->file);
    oauth_write_end(w, result);
    return false;
}

static void
oauth_write_synced(void *context, int result)
{
    (void)oauth_write_go(context, result);
}

struct oauth_write *
oauth_write_begin(struct disk *spool, const char *path,
                  const struct oauth_account *account, const struct oauth_state *state,
                  void (*done)(void *context, int result), void *context)
{
    int file = oauth_file_write_new(spool, path, account, state);
    if (file < 0) {
        done(context, file);
        return NULL;
    }
    struct oauth_write *w = memory_new(sizeof(*w));
    *w = (struct oauth_write){
        .spool = spool, .file = file, .done = done, .context = context};
    (void)text_copy(w->path, sizeof(w->path), text_from(path));
    w->sync.done = oauth_write_synced;
    w->sync.context = w;
    return oauth_write_go(w, disk_sync_begin(spool, file, false, &w->sync)) ? w : NULL;
}

void
oauth_write_leave(struct oauth_write **write)
{
    if (*write != NULL)
        (*write)->done = NULL;
    *write = NULL;
}

/* --- The rests of crashes, and of logins ------------------------------------------- */

int
oauth_file_settle(struct disk *spool, const char *path,
                  const struct oauth_account *account)
{
    struct oauth_state state;
    char fresh[OAUTH_FRESH_MAX];
    oauth_file_fresh(path, fresh);
    oauth_state_init(&state);
    int result = oauth_file_read(spool, fresh, account, &state, NULL);
    oauth_state_free(&state);
    if (result == -ENOENT)
        return 0;
    /* It is damaged, or no file. A file that cannot be read now may be whole. */
    if (result == -EBADMSG || result == -EINVAL || result == -ELOOP)
        return disk_unlink(spool, fresh);
    int file = result == 0 ? disk_open_file(spool, fresh, true) : result;
    if (file >= 0)
        result = oauth_file_name(spool, file, path);
    return file < 0 ? file : result == 0 ? 1 : result;
}

bool
oauth_file_is_there(struct disk *spool, const char *path)
{
    char fresh[OAUTH_FRESH_MAX];
    struct disk_info info;
    oauth_file_fresh(path, fresh);
    return disk_inspect(spool, path, &info) != -ENOENT ||
           disk_inspect(spool, fresh, &info) != -ENOENT;
}

int
oauth_file_remove(struct disk *spool, const char *path)
{
    char fresh[OAUTH_FRESH_MAX];
    oauth_file_fresh(path, fresh);
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
