/* The file with the state of an OAuth2 account. */
#ifndef BASE_HTTP_TOKENS_FILE_H
#define BASE_HTTP_TOKENS_FILE_H

#include "base/http/oauth_state.h"

struct disk;

/* The number of bytes, or -errno; *changed_ms is the file's then. */
int64_t tokens_file_read(struct disk *spool, const char *path,
                         char content[OAUTH_STATE_MAX + 1], int64_t *changed_ms);
/* 0: durable: file, name, directory, and that directory's name. Else -errno: it is the old
 * or the new one. */
int tokens_file_write(struct disk *spool, const char *path, struct text content);

#endif
