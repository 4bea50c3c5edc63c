/* Young mail: the messages of the journal, from their acceptance to END or MOVED.
 *
 * Most mail lives and dies here. The payload of an ACCEPT record is
 *   length of the envelope, flags (two 32-bit numbers)
 *   the envelope as todo/ID has it, with the size and CRC of the content
 *   the content, unless it is large: then it is mess/ID
 * and that of a MARK
 *   count, then so many recipient indexes (32 bits each)
 *   the failures among them, as bounce/ID has them
 * Envelopes and contents are kept in memory up to a limit and else read back from the
 * journal. */
#ifndef QUEUE_JOURNALED_H
#define QUEUE_JOURNALED_H

#include "queue/journal/journal.h"
#include "queue/spool/id_set.h"

#include <uthash.h>

/* A message's bytes, shared by those who read them. */
struct journaled_content {
    unsigned references;
    struct buffer bytes;
};
void journaled_content_release(struct journaled_content **content);

struct journaled_told; /* marks that the journal has */
struct journaled_message {
    struct id id;
    const char *directory; /* of its journal */
    struct journal_place place;
    uint32_t envelope_length, recipients;
    bool large;
    bool held;         /* hold/ID is there */
    bool awaits_parts; /* it waits for other fragments, and is marked when it moves */
    bool made;         /* found at the start, with an envelope that has made_of */
    bool recovered;    /* found at the start and not yet looked at: recover.c */
    bool moving;       /* the spool is getting it: preprocess.h */
    bool is_new; /* its owner has not heard yet; its record may not be written: it is
                       no message to anybody else */
    struct journaled_content *content; /* NULL: only in the journal */
    struct buffer form;                /* its envelope; empty: only in the journal */
    struct journaled_told *told;       /* NULL: nothing */
    UT_hash_handle hh;
};

struct journaled {
    struct spool *spool;
    struct loop *loop;
    const char *directory;   /* of the journal, below the spool */
    struct journal *journal; /* NULL: only read, or turned off */
    struct journaled_message *messages;
    struct id_set ended; /* whose END was found at the start: their files go */
    size_t cached;       /* bytes of contents and forms in memory */
    unsigned damages;
};

/* One decision (D mark) and the bytes of its failure in the texts beside it. */
struct journaled_mark {
    unsigned recipient;
    uint32_t text_length;
};

/* Opens the journal and reads it. spool to space are the caller's to set before. 0, or
 * -errno with one line in error. */
int journaled_open(struct journaled *y, const struct journal_settings *settings,
                   const struct journal_events *events, char *error, size_t error_size);
/* Reads it alone, for operators and for journals of other slices. keeps: damaged bytes
 * go to corrupt/. 0 or -errno. */
int journaled_read(struct journaled *y, bool keeps);
/* Waits for what is not yet durable. */
void journaled_close(struct journaled *y);
/* What the start has learnt of ended messages is not needed any more. */
void journaled_forget_ended(struct journaled *y);

struct journaled_message *journaled_find(const struct journaled *y,
                                         struct id id); /* or NULL */
/* False: too large for a record, with its content or (large) without. */
bool journaled_fits(const struct journaled *y, const struct envelope *e,
                    size_t form_length, bool large);
/* Into the journal; content (NULL: large) is taken when appended. form: of todo/ID. */
enum journal_appended journaled_accept(struct journaled *y, const struct envelope *e,
                                       struct text form, struct buffer *content,
                                       bool own, uint64_t *batch);

/* NULL: the reason says why; later tells that the disk did not answer, so that nothing
 * is known. Marks that the journal has are set. */
struct envelope *journaled_load(struct journaled *y, struct journaled_message *m,
                                bool *later, char *reason, size_t reason_size);
/* The whole content with a reference for the caller; not of a large message. NULL: the
 * disk did not answer, or the bytes are not those that were accepted: *error. */
struct journaled_content *
journaled_read_content(struct journaled *y, struct journaled_message *m, int *error);
/* Into the journal, durable within 100 ms. */
void journaled_tell(struct journaled *y, struct journaled_message *m,
                    const struct journaled_mark *marks, size_t count,
                    struct text texts);
/* END or MOVED into the journal; m is gone. Returns the batch. */
uint64_t journaled_end(struct journaled *y, struct journaled_message *m,
                       enum record_type type);
/* m never became durable: its client has been told so. */
void journaled_drop(struct journaled *y, struct journaled_message *m);
/* The whole of it to corrupt/, durably, with what the spool has of it and a note; then
 * it may end. 0 or -errno. */
int journaled_quarantine(struct journaled *y, struct journaled_message *m,
                         const char *reason);

#endif
