/* Journaled messages: the messages of the journal, from acceptance to END or MOVED.
 *
 * Most messages are delivered from here and never become files. The payload of an
 * ACCEPT record is
 *   length of the envelope, flags (two 32-bit numbers)
 *   the envelope as todo/ID has it, with the size and CRC of the content
 *   of a notification that reports failures of a journaled message: the length of the
 *   rest, ID of that message, the failures as bounce/ID has them, marked as reported
 *   the content, unless it is large: then mess/ID has the content
 * and that of a MARK
 *   count, then that number of recipient indexes (32 bits each)
 *   the failures among them, as bounce/ID has them
 * Envelopes and contents are kept in memory up to a limit; others are read back from
 * the journal. */
#ifndef QUEUE_JOURNAL_JOURNALED_H
#define QUEUE_JOURNAL_JOURNALED_H

#include "queue/journal/journal.h"
#include "queue/spool/id_set.h"

#include <uthash.h>

/* The bytes of a message, shared by their readers. */
struct journaled_content {
    unsigned references;
    struct buffer bytes;
};
void journaled_content_release(struct journaled_content **content);

struct journaled_results; /* the marks written to the journal */
struct journaled_copy;    /* a copy that is not durable yet */
struct journaled_message {
    struct id id;
    const char *directory; /* of its journal */
    struct journal_place place;
    uint32_t envelope_length, recipients;
    uint32_t note_length; /* the note of the reported message, with its length */
    bool large;
    bool held;         /* hold/ID exists */
    bool awaits_parts; /* a fragment; it gets its mark in defrag/ when it moves */
    bool made;         /* found at startup, with an envelope that has made_of */
    bool recovered;    /* found at startup and not yet examined: recover.c */
    uint8_t copies;    /* within the journal: journaled_copy() */
    /* Not acknowledged yet, and its record may not be written: not a message to other
     * modules. */
    bool is_new;
    bool refused;   /* it ends, since its client was */
    int64_t due_ms; /* for a message that another host gave: its next attempt, and: */
    unsigned attempts;
    struct journaled_content *content; /* NULL: only in the journal */
    struct buffer form;                /* envelope; empty: only in the journal */
    struct journaled_results *results; /* NULL: none */
    struct journaled_copy *copy;       /* NULL: none is being written */
    UT_hash_handle hh;
};

struct journaled {
    struct spool *spool;
    struct loop *loop;
    const char *directory;   /* of the journal, below the spool */
    struct journal *journal; /* NULL: only read, or turned off */
    struct journaled_message *messages;
    struct journaled_copy *copies;
    struct id_set ended; /* with an END found at startup: their files go */
    size_t cached;       /* bytes of contents and forms in memory */
    uint64_t live;       /* bytes of messages in the journal */
    unsigned damages;
};

/* One result (D mark), and the length of its failure in the texts beside the marks. */
struct journaled_mark {
    unsigned recipient;
    uint32_t text_length;
};

/* Opens the journal and reads it. The caller sets spool, loop and directory before. 0,
 * or -errno with one line in error. */
int journaled_open(struct journaled *y, const struct journal_settings *settings,
                   const struct journal_events *events, char *error, size_t error_size);
/* Only reads the journal, for operators and for journals of other slices. keeps: copies
 * damaged bytes to corrupt/. 0 or -errno. */
int journaled_read(struct journaled *y, bool keeps);
/* Waits until all records are durable. */
void journaled_close(struct journaled *y);
/* Frees the list of ended messages, which only startup needs. */
void journaled_forget_ended(struct journaled *y);

/* The messages that other hosts gave, ended or not, as far back as segments are there:
 * the newest `most` of them, oldest first. */
void journaled_each_taken(struct journaled *y, size_t most,
                          void (*each)(void *context, const char *came, struct id id),
                          void *context);

/* The same of posted messages. */
void journaled_each_posted(struct journaled *y, size_t most,
                           void (*each)(void *context, const char *mark, struct id id),
                           void *context);

struct journaled_message *journaled_find(const struct journaled *y,
                                         struct id id); /* or NULL */
/* False: too large for a record, with its content or (large) without. */
bool journaled_fits(const struct journaled *y, const struct envelope *e,
                    size_t form_length, bool large);
/* The failures that a notification reports, marked as reported; failures: empty: it
 * reports none. */
struct journaled_note {
    struct id of;
    struct text failures;
};
/* Adds the message to the journal; takes content (NULL: large) with JOURNAL_APPENDED.
 * form: of todo/ID, with the state that the message brings. The note is in the same
 * record, if it fits and its message is journaled. */
enum journal_appended journaled_accept(struct journaled *y, const struct envelope *e,
                                       struct text form, struct buffer *content,
                                       const struct journaled_note *note, bool own,
                                       uint64_t *batch);

/* NULL: for the reason in reason; later: the disk did not answer, so the message may be
 * intact. Sets the marks that the journal has. */
struct envelope *journaled_load(struct journaled *y, struct journaled_message *m,
                                bool *later, char *reason, size_t reason_size);
/* The whole content with a reference for the caller; not for a large message. NULL with
 * *error: the disk did not answer, or the bytes differ from those accepted. */
struct journaled_content *
journaled_read_content(struct journaled *y, struct journaled_message *m, int *error);
/* Writes marks to the journal, durable within 100 ms. */
void journaled_add_results(struct journaled *y, struct journaled_message *m,
                           const struct journaled_mark *marks, size_t count,
                           struct text texts);
/* Copies a message to the end of the journal, so that its segment can be recycled.
 * False: it has marks, waits for something other than its turn, or there is no space
 * for it: move it to files. */
bool journaled_copy(struct journaled *y, struct journaled_message *m)
    __attribute__((warn_unused_result));
/* A batch has settled: its copies count, or (-errno) are forgotten. */
void journaled_settled(struct journaled *y, uint64_t batch, int error);
/* Writes END or MOVED to the journal and frees m. Returns the batch. */
uint64_t journaled_end(struct journaled *y, struct journaled_message *m,
                       enum record_type type);
/* Frees m, which never became durable: its client was refused. */
void journaled_drop(struct journaled *y, struct journaled_message *m);
/* Copies the message to corrupt/, durably, with its files in the spool and a note; then
 * the message may end. 0 or -errno. */
int journaled_quarantine(struct journaled *y, struct journaled_message *m,
                         const char *reason);

#endif
