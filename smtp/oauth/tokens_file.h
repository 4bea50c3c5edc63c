/* The file with the state of an OAuth2 account. */
#ifndef SMTP_OAUTH_TOKENS_FILE_H
#define SMTP_OAUTH_TOKENS_FILE_H

#include "smtp/oauth/oauth_state.h"

struct disk;

enum { TOKENS_FILE_PATH_MAX = 64 };

/* The number of bytes, or -errno; *changed_ms is the file's then. */
int64_t tokens_file_read(struct disk *spool, const char *path,
                         char content[OAUTH_STATE_MAX + 1], int64_t *changed_ms);
/* 0: durable: file, name, directory, and that directory's name. Else -errno: it is the old
 * or the new one. */
int tokens_file_write(struct disk *spool, const char *path, struct text content);
/* The same for a daemon, whose loop must not wait for a disk (disk_sync_begin()): done is
 * called once, with the result of tokens_file_write(), in a later turn, or before this
 * function returns, which then returns NULL. */
struct tokens_write;
struct tokens_write *
tokens_file_begin(struct disk *spool, const char *path, struct text content,
                  void (*done)(void *context, int result), void *context)
    __attribute__((warn_unused_result));
/* done will not be called; the write goes on by itself. */
void tokens_file_leave(struct tokens_write **write);
/* The name of the file until it is whole. */
void tokens_file_fresh(const char *path, char out[TOKENS_FILE_PATH_MAX]);
/* Ends a write that was ended before: as tokens_file_write(). */
int tokens_file_complete(struct disk *spool, const char *path);

#endif
