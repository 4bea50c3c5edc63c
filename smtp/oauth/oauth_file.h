/* The files of an OAuth2 account: its state, SPOOL/oauth/KEY, a JSON object, and files with
 * secrets that the settings name. The daemon and `petrel oauth` use the same functions, so
 * that each reads only whole files of the other. */
#ifndef SMTP_OAUTH_OAUTH_FILE_H
#define SMTP_OAUTH_OAUTH_FILE_H

#include "smtp/oauth/oauth.h"

struct disk;

enum {
    OAUTH_FILE_PATH_MAX = 16 + OAUTH_KEY_SIZE,
    OAUTH_STATE_MAX = 40 * 1024 /* of the file: each octet may be escaped */
};

struct oauth_state {
    struct buffer access, refresh; /* empty: none */
    int64_t expires_ms;            /* of access; wall clock, as updated_ms */
    int64_t updated_ms;
    char error[OAUTH_REASON_MAX]; /* why the last request failed, or "" */
};

void oauth_state_init(struct oauth_state *state);
/* Overwrites the tokens. */
void oauth_state_free(struct oauth_state *state);
/* Into an initialised state. False, with the state empty: damaged, or another
 * account's. */
bool oauth_state_read(struct text content, const struct oauth_account *account,
                      struct oauth_state *state) __attribute__((warn_unused_result));
/* False: out's limit is reached, or a member is not UTF-8. */
bool oauth_state_write(struct buffer *out, const struct oauth_account *account,
                       const struct oauth_state *state)
    __attribute__((warn_unused_result));

/* "oauth/KEY" */
void oauth_file_path(const struct oauth_account *account,
                     char out[OAUTH_FILE_PATH_MAX]);
/* A handle, whose lock ends with disk_close_file(), or -errno. -EWOULDBLOCK: another
 * process asks for a token of the account. Makes the directory. */
int oauth_file_lock(struct disk *spool, const char *path)
    __attribute__((warn_unused_result));
/* Into an initialised state. 0, or -errno: -ENOENT, nobody has logged in; -EBADMSG, the
 * file is damaged or of another account. changed_ms: of the file, if it could be opened;
 * or NULL. */
int oauth_file_read(struct disk *spool, const char *path,
                    const struct oauth_account *account, struct oauth_state *state,
                    int64_t *changed_ms) __attribute__((warn_unused_result));
/* 0: file, name, directory, and the directory's name are durable. Else -errno: the file is
 * the old or the new one. */
int oauth_file_write(struct disk *spool, const char *path,
                     const struct oauth_account *account,
                     const struct oauth_state *state)
    __attribute__((warn_unused_result));
/* A write for the daemon, whose loop must not wait for a disk (disk_sync_begin()): done is
 * called once, with a result as of oauth_file_write(), in a later turn, or before this
 * function returns, which then returns NULL. */
struct oauth_write;
struct oauth_write *
oauth_write_begin(struct disk *spool, const char *path,
                  const struct oauth_account *account, const struct oauth_state *state,
                  void (*done)(void *context, int result), void *context)
    __attribute__((warn_unused_result));
/* The write goes on by itself: done will not be called. */
void oauth_write_leave(struct oauth_write **write);
/* For the holder of the lock: completes a write that a crash has ended, whose content may
 * be the only valid refresh token; a file that is not whole is removed. 1: the file is
 * another one now. Below 0: the write cannot be completed now; the token in the file may
 * be one that is not valid any more. */
int oauth_file_settle(struct disk *spool, const char *path,
                      const struct oauth_account *account)
    __attribute__((warn_unused_result));
/* The file, or the rest of it after a crash. */
bool oauth_file_is_there(struct disk *spool, const char *path);
/* Durably removes the file, and the rests that a crash has left. -ENOENT: there is
 * neither. */
int oauth_file_remove(struct disk *spool, const char *path)
    __attribute__((warn_unused_result));
/* The content of a file that the settings name, without white space at its ends. out has
 * its limit. 0 or -errno. */
int oauth_file_secret(const char *path, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
