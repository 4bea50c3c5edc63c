/* A journal with a user that remembers each answer: the messages that must be there
 * after a crash, that may be, and that must not. */
#ifndef T_SUPPORT_JOURNAL_KIT_H
#define T_SUPPORT_JOURNAL_KIT_H

#include "queue/journal/journal_internal.h"

#include "base/crc.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <assert.h>
#include <errno.h>

enum { KIT_BLOCK = JOURNAL_BLOCK, KIT_MESSAGES = 8192, KIT_MARKS = 4 };

/* One that is ours, or (spool) one whose END only is. */
struct kit_message {
    size_t size;
    struct journal_place place;
    uint64_t batch, end_batch; /* 0: not */
    struct journal_place copy;
    uint64_t copy_batch; /* 0: no copy is being written */
    unsigned marks;
    bool spool, removed, checkpointed;
    bool acked, refused; /* its batch is durable, or failed */
    bool ended;          /* its END is durable */
    bool marked[KIT_MARKS], lost[KIT_MARKS]; /* a mark is durable; or a crash took it */
};

struct kit {
    struct disk *disk;
    struct spool spool;
    struct log *log;
    struct buffer lines;
    struct loop *loop;
    struct journal *journal;
    struct journal_settings settings;
    struct journal_summary summary;
    char error[200];

    struct kit_message *messages; /* by number, from 1 */
    unsigned count;
    uint64_t settled, settled_good; /* numbers */
    unsigned settles, failures, crowds, space_events, checkpoints_asked, refusals;
    int last_error;
    uint64_t crowded;
    bool in_order; /* every batch was settled once, in order */
    bool checkpoints, checkpoint_at_once, checkpoint_waits;
    int checkpoint_result;
    bool ends_crowded; /* moves what is asked for */
    bool copies;       /* or copies it, unless it has marks */
    unsigned copied, alone; /* copies made; found without what they are a copy of */
    bool hoards;       /* ends little: the ring is full all the time */

    /* The results of a reading. */
    struct kit_found {
        unsigned accepts, ends, marks[KIT_MARKS];
        struct journal_place place;
        bool wrong;
    } *found;
    unsigned damages, strangers;
    size_t damaged_bytes;
    char where[64];
};

struct id kit_id(unsigned number);

/* --- Events ---------------------------------------------------------------------- */

void kit_settled(void *context, uint64_t batch, int error);

void kit_on_space(void *context);

void kit_answer_checkpoint(struct kit *k);

void kit_checkpoint(void *context);

/* --- Reading --------------------------------------------------------------------- */

bool kit_is_payload(unsigned number, size_t size, struct text payload);

bool kit_record(void *context, const struct journal_record *record);

struct journal_reading journal_kit_reading(struct kit *k);

/* --- Begin and end --------------------------------------------------------------- */

int journal_kit_open(struct kit *k);

/* Everything but the journal, in the current world. */
void kit_begin_process(struct kit *k, bool blocking, uint64_t seed);

void kit_end_process(struct kit *k);

struct kit * kit_new(size_t blocks, unsigned segments);

void kit_free(struct kit **kit);

/* A new world with an empty journal in it. */
struct kit * kit_start(size_t blocks, unsigned segments, bool blocking);

void kit_stop(struct kit **k);

/* --- Acts of a user -------------------------------------------------------------- */

unsigned kit_accept_as(struct kit *k, size_t size, bool own);

unsigned journal_kit_accept(struct kit *k, size_t size);

bool kit_is_live(const struct kit_message *m);

/* With so many bytes behind it. */
void kit_mark(struct kit *k, unsigned number, size_t size);

/* False: no space. */
bool kit_copy(struct kit *k, unsigned number);

uint64_t kit_end(struct kit *k, unsigned number, enum record_type type);

unsigned kit_end_spool(struct kit *k);

/* When all is quiet every mark is durable. */
void kit_note_quiet(struct kit *k);

void kit_turn(struct kit *k);

/* Until nothing gathers, nothing is in flight. */
void kit_drain(struct kit *k);

/* --- Required messages ----------------------------------------------------------- */

/* After a reading. */
bool journal_kit_check(const struct kit *k, unsigned damages, const char *what);

/* After a start: what was found is what there is. */
void kit_adopt(struct kit *k);

unsigned kit_said(const struct kit *k, const char *what);

/* Frees what a dead process has left in our memory. */
void kit_bury(struct kit *k);

/* Until nothing is written, and no segment is made. */
void kit_calm(struct kit *k);

/* Ends the process; another one reads what is there. */
void kit_restart(struct kit *k);

enum { KIT_LARGE = 16 * KIT_BLOCK / 4 - 96 }; /* the largest in a segment of 16 blocks */

struct journal_figures kit_figures(const struct kit *k);

#endif
