/* Reads a message back from its files and says whether they are whole.
 *
 * Changes nothing but this: when spool.adopts, content that another user owns is copied
 * while it is read, and a copy that is what the envelope says is synced and takes its
 * place. He could change it, or put a link to a stranger's file there, between any
 * check and its delivery. */
#ifndef QUEUE_LOAD_H
#define QUEUE_LOAD_H

#include "queue/spool/spool.h"

enum load_result {
    LOAD_DONE,
    LOAD_GONE,    /* neither todo nor info */
    LOAD_DAMAGED, /* what is there cannot be trusted: reason says why */
    LOAD_LATER    /* the disk did not answer: nothing is known */
};
enum { LOAD_REASON_MAX = 160 };

/* S4 or S5 (which counts when both are there and it is whole); content size and CRC are
 * checked. *e only when done. */
enum load_result load_message(struct spool *s, struct id id, struct envelope **e,
                              char reason[LOAD_REASON_MAX]);
/* The same but for the content, which is not looked at, and for `held` and
 * `awaits_parts`: for lists of many messages. */
enum load_result load_envelope(struct spool *s, struct id id, struct envelope **e,
                               char reason[LOAD_REASON_MAX]);
/* Sets held and awaits_parts. */
void load_places(struct spool *s, struct envelope *e);
/* The S5 files alone, without content: whether a message that has todo too is
 * preprocessed. */
enum load_result load_preprocessed(struct spool *s, struct id id, struct envelope **e,
                                   char reason[LOAD_REASON_MAX]);
/* S5 alone, what young mail becomes; whole: content included. A todo of that name is
 * another's doing, and not looked at. */
enum load_result load_moved(struct spool *s, struct id id, bool whole,
                            struct envelope **e, char reason[LOAD_REASON_MAX]);
/* Due time and attempts from the head of info/ID; now and 0 when it cannot be read. */
void load_due(struct spool *s, struct id id, int64_t *due_ms, unsigned *attempts);

/* --- Some in a turn ------------------------------------------------------------------
 *
 * load_message() reads the content at once. Who must not stop that long has it read
 * before, by a load_check, in pieces; a copy is synced in the background. Whatever
 * becomes of the message meanwhile is judged in the end: until load_checked() has found
 * its files whole, the copy is a nameless draft in pid/. */

enum load_check_stage {
    LOAD_CHECK_NONE,
    LOAD_CHECK_READING,
    LOAD_CHECK_SYNCING,
    LOAD_CHECK_UNWANTED, /* stopped, but its sync is not over */
    LOAD_CHECK_OVER
};
enum load_step { LOAD_STEP_OVER, LOAD_STEP_MORE, LOAD_STEP_WAITS };

/* Zeroed at first. In its place until its last sync is over. */
struct load_check {
    struct spool *spool;
    struct id id;
    enum load_check_stage stage;
    int64_t size; /* as the envelope said at the start, like crc */
    uint32_t crc, sum;
    int64_t at;
    int file, copy; /* copy < 0: none */
    bool foreign, copy_failed;
    bool is_nameless; /* the copy is not in pid/ any more */
    int error;        /* of reading, or of writing the copy: then copy_failed */
    struct disk_sync sync;
};

/* False: load_message() can do it at once: our own content has at most budget bytes, or
 * it will say what is wrong. The stage must be NONE, and is then again. */
bool load_check_start(struct load_check *c, struct spool *s, struct id id,
                      int64_t budget) __attribute__((warn_unused_result));
/* At most *budget bytes, which it takes off. WAITS: for the disk, which answers in a
 * later turn. */
enum load_step load_check_go(struct load_check *c, int64_t *budget);
/* load_message() after a check that is over, which need not be of this content. */
enum load_result load_checked(struct spool *s, struct id id, struct load_check *check,
                              struct envelope **e, char reason[LOAD_REASON_MAX]);
/* Nothing is left of the copy, unless it has taken its place. */
void load_check_stop(struct load_check *c);

#endif
