/* Idempotency keys: a message that is posted again with its key is not sent again.
 *
 * A record is kept for POST_RECORD_MS, over restarts: in SPOOL/lock/posted, a title, then a
 * line "TIME ID MARK" for each. The mark is in the message's envelope, too (posted), and so
 * in the journal: the file is synced behind the answer, and what it lost is found there at
 * the next start. So a message and its record are one fact, at any cut. */
#ifndef ADMIN_POST_POST_RECORDS_H
#define ADMIN_POST_POST_RECORDS_H

#include "admin/post/post_keys.h"
#include "base/crypto/digest.h"
#include "base/id.h"

struct log;
struct loop;
struct queue;
struct post_records;

enum {
    POST_RECORDS_MAX = 100000,
    POST_RECORDS_OF_KEY = 20000, /* of one submission key; then 429 */
    POST_MARK_MAX = POST_KEY_NAME_MAX + 2 * 33 + 1,
    POST_DIGEST_SIZE = 16 /* of a key, of a body: that much is kept */
};
#define POST_RECORD_MS (INT64_C(24) * 60 * 60 * 1000)

struct post_record {
    unsigned char key[POST_DIGEST_SIZE]; /* of name and idempotency key */
    unsigned char body[POST_DIGEST_SIZE];
    char name[POST_KEY_NAME_MAX + 1];
    struct id id;
    bool pending; /* the message is not durable yet */
};

/* path: below the spool. Reads the file, and the journal. */
struct post_records *post_records_new(struct loop *loop, struct log *log,
                                      struct queue *queue, const char *path);
void post_records_free(struct post_records **records);

void post_records_digest(const char *name, struct text idempotency_key,
                         unsigned char key[POST_DIGEST_SIZE]);
/* NULL: none. Valid until the next call. */
const struct post_record *post_records_find(struct post_records *records,
                                            const unsigned char key[POST_DIGEST_SIZE]);
/* Whether one more of that name may be kept. */
bool post_records_have_room(struct post_records *records, const char *name);
/* Before the message is committed: pending until one of the next two. mark: for its
 * envelope. */
void post_records_add(struct post_records *records, const char *name,
                      const unsigned char key[POST_DIGEST_SIZE],
                      const unsigned char body[POST_DIGEST_SIZE],
                      char mark[POST_MARK_MAX]);
void post_records_keep(struct post_records *records,
                       const unsigned char key[POST_DIGEST_SIZE], struct id id);
void post_records_drop(struct post_records *records,
                       const unsigned char key[POST_DIGEST_SIZE]);

#endif
