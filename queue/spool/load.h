/* Loads a message from its files and checks that they are complete.
 *
 * Changes no file, with one exception: when spool.adopts, content that another user
 * owns is copied while it is read; a copy that matches the envelope is synced and
 * replaces the original. The owner could change the original, or link it to a file of a
 * third user, between a check and the delivery. */
#ifndef QUEUE_SPOOL_LOAD_H
#define QUEUE_SPOOL_LOAD_H

#include "queue/spool/spool.h"

enum load_result {
    LOAD_DONE,
    LOAD_GONE,    /* neither todo nor info */
    LOAD_DAMAGED, /* the files cannot be trusted; reason is set */
    LOAD_LATER    /* the disk did not answer: nothing is known */
};
enum { LOAD_REASON_MAX = 160 };

/* S4 or S5 (if both are there, S5 counts when it is complete); checks size and CRC of
 * the content. Sets *e only with LOAD_DONE. */
enum load_result load_message(struct spool *s, struct id id, struct envelope **e,
                              char reason[LOAD_REASON_MAX]);
/* The same without a check of the content and without `held` and `awaits_parts`: for
 * lists of many messages. */
enum load_result load_envelope(struct spool *s, struct id id, struct envelope **e,
                               char reason[LOAD_REASON_MAX]);
/* Sets held and awaits_parts. */
void load_places(struct spool *s, struct envelope *e);
/* The S5 files alone, without content: whether a message that has todo too is
 * preprocessed. */
enum load_result load_preprocessed(struct spool *s, struct id id, struct envelope **e,
                                   char reason[LOAD_REASON_MAX]);
/* S5 alone, of a message moved from a journal; whole: with its content. A todo of that
 * name is not ours and is ignored. */
enum load_result load_moved(struct spool *s, struct id id, bool whole,
                            struct envelope **e, char reason[LOAD_REASON_MAX]);

/* --- A check over several turns --------------------------------------------------- */

/* load_message() reads the content in one call. A caller that must not block that long
 * has it read before, by a load_check, in pieces; a copy is synced in the background.
 * Changes of the message meanwhile are found at the end: until load_checked() has found
 * its files complete, the copy is a nameless draft in pid/. */

enum load_check_stage {
    LOAD_CHECK_NONE,
    LOAD_CHECK_READING,
    LOAD_CHECK_SYNCING,
    LOAD_CHECK_UNWANTED, /* stopped during its sync */
    LOAD_CHECK_OVER
};
enum load_step { LOAD_STEP_OVER, LOAD_STEP_MORE, LOAD_STEP_WAITS };

/* Zeroed at first. Must not move until its last sync is over. */
struct load_check {
    struct spool *spool;
    struct id id;
    enum load_check_stage stage;
    int64_t size; /* of the envelope when the check began, like crc */
    uint32_t crc, sum;
    int64_t at;
    int file, copy; /* copy < 0: none */
    bool foreign, copy_failed;
    bool is_nameless; /* the copy is no longer in pid/ */
    int error;        /* of reading, or of writing the copy: then copy_failed */
    struct disk_sync sync;
};

/* False: no check is needed, because our own content has at most budget bytes, or
 * because load_message() will report the error; the stage stays NONE. */
bool load_check_start(struct load_check *c, struct spool *s, struct id id,
                      int64_t budget) __attribute__((warn_unused_result));
/* Reads at most *budget bytes and subtracts them. WAITS: for the disk, which answers in
 * a later turn. */
enum load_step load_check_go(struct load_check *c, int64_t *budget);
/* load_message() after a finished check, which need not be of this content. */
enum load_result load_checked(struct spool *s, struct id id, struct load_check *check,
                              struct envelope **e, char reason[LOAD_REASON_MAX]);
/* Removes the copy, unless it has replaced the original. */
void load_check_stop(struct load_check *c);

#endif
