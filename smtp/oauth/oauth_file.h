/* The files of an OAuth2 account: its state, SPOOL/oauth/KEY, and files with secrets that
 * the settings name. The daemon and `petrel oauth` use the same functions, so that each
 * reads only whole files of the other. */
#ifndef SMTP_OAUTH_OAUTH_FILE_H
#define SMTP_OAUTH_OAUTH_FILE_H

#include "smtp/oauth/oauth_state.h"

struct disk;
struct tokens_write;

enum { OAUTH_FILE_PATH_MAX = 16 + OAUTH_KEY_SIZE };

/* "oauth/KEY" */
void oauth_file_path(const struct oauth_account *account,
                     char out[OAUTH_FILE_PATH_MAX]);
/* A handle, whose lock ends with disk_close_file(), or -errno. -EWOULDBLOCK: another
 * process asks for a token of the account. Makes the directory. */
int oauth_file_lock(struct disk *spool, const char *path)
    __attribute__((warn_unused_result));
/* Into an initialised state. 0, or -errno: -ENOENT, nobody has logged in; -EBADMSG, the
 * file is damaged or of another account. */
int oauth_file_read(struct disk *spool, const char *path,
                    const struct oauth_account *account, struct oauth_state *state)
    __attribute__((warn_unused_result));
/* Durable when it returns 0: file, name, directory, and the directory's name. */
int oauth_file_write(struct disk *spool, const char *path,
                     const struct oauth_account *account,
                     const struct oauth_state *state)
    __attribute__((warn_unused_result));
/* The same in the background (tokens_file_begin()). */
struct tokens_write *
oauth_file_begin(struct disk *spool, const char *path,
                 const struct oauth_account *account, const struct oauth_state *state,
                 void (*done)(void *context, int result), void *context)
    __attribute__((warn_unused_result));
/* For the holder of the lock: completes a write that a crash has ended, whose content may
 * be the only valid refresh token; one that is not whole is removed. 1: the file is
 * another one now. Below 0: it cannot be completed now; the token in the file may be one
 * that is not valid any more. */
int oauth_file_settle(struct disk *spool, const char *path,
                      const struct oauth_account *account)
    __attribute__((warn_unused_result));
/* The file, or the rest of it after a crash. */
bool oauth_file_is_there(struct disk *spool, const char *path);
/* Durable, too, and so are the rests that a crash has left. -ENOENT: there is none. */
int oauth_file_remove(struct disk *spool, const char *path)
    __attribute__((warn_unused_result));
/* The content of a file that the settings name, without white space at its ends. out has
 * its limit. 0 or -errno. */
int oauth_file_secret(const char *path, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
