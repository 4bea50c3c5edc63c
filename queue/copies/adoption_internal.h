/* Shared by adoption.c (owners, leases), adoption_take.c (walks through copies, and what is
 * taken) and comparison.c (our own copies). No other file includes it. */
#ifndef QUEUE_COPIES_ADOPTION_INTERNAL_H
#define QUEUE_COPIES_ADOPTION_INTERNAL_H

#include "base/loop/loop.h"
#include "queue/copies/adoption.h"
#include "queue/copies/adoption_scripts.h"
#include "queue/copies/copies_keys.h"
#include "queue/group/take.h"
#include "queue/queue_barrier.h"

struct adoption;
struct adoption_slot;

typedef void adoption_heard(struct adoption *a, struct adoption_slot *slot,
                            const struct redis_reply *reply, const char *why);
enum {
    ADOPTION_ASKS_MAX = 64, /* without an answer; each slot has one */
    ADOPTION_WORDS_MAX = 80,
    ADOPTION_ENTRY_MAX = ENVELOPE_CAME_MAX + 1,
    ADOPTION_FIELD_MAX = COPIES_KEY_MAX + ID_LENGTH + 32
};

struct adoption_ask {
    adoption_heard *heard;
    struct adoption_slot *slot;
};

/* Copies, their owner, and when we saw a new sign of it. */
struct adoption_row {
    char name[COPIES_NAME_MAX + 1], owner[ADOPTION_WHO_MAX + 1], beat[24];
    int64_t since_ms;
    unsigned signs; /* of this owner, that were new */
    bool is_listed, is_ordered;
    size_t unreadable;     /* at the last walk */
    int64_t rest_until_ms; /* then they are tried again */
};

enum adoption_step { SLOT_FREE, SLOT_FORM, SLOT_CONTENT, SLOT_STORING, SLOT_STORED };
struct adoption_slot {
    struct adoption *adoption;
    enum adoption_step step;
    bool is_asked; /* the engine, or the queue */
    char name[COPIES_NAME_MAX + 1];
    struct id id, own;
    char batch[24]; /* of the copy; "" once it is asked whose the message is */
    struct buffer form;
    int64_t at, content; /* bytes of the content */
    struct taking *taking;
};

/* A message of a page, and the first word of its field. */
struct adoption_entry {
    struct id id;
    char word[ADOPTION_ENTRY_MAX];
};
enum adoption_met {
    ENTRY_DONE,
    ENTRY_LATER, /* in the next walk */
    ENTRY_WAITS  /* for a slot */
};
/* A walk through a hash of messages, page by page. */
struct adoption_walk {
    char name[COPIES_NAME_MAX + 1]; /* whose; "": none is under way */
    bool is_adopted;                /* the hash of adopted ones */
    enum adoption_met (*met)(struct adoption *a, const struct adoption_entry *entry);
    void (*over)(struct adoption *a, const char *name); /* all are done */
    struct adoption_entry *entries;
    size_t count, next;
    char cursor[24];
    bool is_asked, is_last;
    bool is_stale; /* what was asked: for a walk that has ended */
    size_t later, unreadable;
    int64_t taken_ms; /* the last message, or the begin */
};

enum adoption_stage {
    ADOPTION_AWAY,      /* the engine is */
    ADOPTION_CLOSED,    /* our copies are not ours */
    ADOPTION_GIVING_UP, /* ours, but others have adopted some */
    ADOPTION_COMPARING, /* there and not here? */
    ADOPTION_OPEN
};

struct adoption {
    struct adoption_setup setup;
    char name[COPIES_NAME_MAX + 1]; /* of our copies */
    struct copies_client client;
    struct sibling_service gifts; /* of take */
    enum adoption_stage stage;
    bool is_fenced; /* others have our mail, and not all of that has ended here */
    struct adoption_row *rows;
    size_t row_count;
    int64_t heard_ms; /* the last list */
    int64_t start_ms;
    bool has_counted, had_mail; /* then */
    uint64_t beats;
    bool is_beating, is_claiming;
    bool is_waiting;                   /* nothing is delivered: adoption_release() */
    char claimed[COPIES_NAME_MAX + 1]; /* by us, now */
    struct loop_timer beat, patience, read;
    struct adoption_ask asks[ADOPTION_ASKS_MAX]; /* a ring */
    unsigned ask_first, ask_count;
    struct adoption_slot slots[ADOPTION_SLOTS];
    struct adoption_walk walk;
    struct loop_task task, doubt;
    int64_t away_ms,
        sent_ms; /* when the engine went (0: it is there), mail was delivered */
    int64_t rest_until_ms, adopt_after_ms;
    /* comparison.c */
    uint64_t number,
        bound;       /* of the engine's last batch; up to which our disk has all */
    uint64_t losses; /* of the engine, at the last comparison */
    bool is_bound_synced, has_compared, is_checking;
    struct queue_barrier barrier;
    struct adoption_state state;
    char why[ADOPTION_WHY_MAX];
    char unreadable_at[ADOPTION_FIELD_MAX];
};

/* adoption.c */
/* Asks about the copies of that name; words: the arguments behind it. */
void adoption_ask(struct adoption *a, adoption_heard *heard, struct adoption_slot *slot,
                  const struct adoption_script *script, const char *name,
                  const char *const *words);
#define ADOPTION_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
/* An answer that is an error: FENCED, or the engine is gone. */
void adoption_refused(struct adoption *a, const char *name, const char *why);
/* HOST of "HOST:IDENTITY" or "HOST RUN". */
struct text adoption_host(const char *name);
/* NULL: nobody owns such copies, or we do not see it. */
struct adoption_row *adoption_find(const struct adoption *a, struct text name);
/* The next thing to do, if there is any. */
void adoption_stir(struct adoption *a);
/* Nothing more is asked for a while: the engine, or we, cannot do it now. */
void adoption_rest(struct adoption *a);
bool adoption_is_here(const struct adoption *a, struct id id);
/* Deliveries may begin, but for a while not before the copies that our disk had under another
 * name are taken: what is delivered first would be missing here, and be taken from there. */
void adoption_release(struct adoption *a);

/* We cannot take those that are left: others may. */
void adoption_leave(struct adoption *a);

/* adoption_take.c */
void adoption_walk_begin(struct adoption *a, const char *name, bool is_adopted,
                         enum adoption_met (*met)(struct adoption *a,
                                                  const struct adoption_entry *entry),
                         void (*over)(struct adoption *a, const char *name));
/* Messages that are being read are dropped; those that are stored wait. */
void adoption_walk_end(struct adoption *a);
/* Those copies are another host's: a walk through them ends. */
void adoption_walk_lost(struct adoption *a, const char *name);
void adoption_walk_go(struct adoption *a);
bool adoption_is_taking(const struct adoption *a);
/* The engine is back: messages that are stored wait for its word. */
void adoption_take_again(struct adoption *a);
enum adoption_met adoption_take_entry(struct adoption *a,
                                      const struct adoption_entry *entry);
/* A copy of a message that is on our disk anyway leaves that hash. */
enum adoption_met adoption_drop_entry(struct adoption *a,
                                      const struct adoption_entry *entry);

/* comparison.c */
/* Our copies are ours; adopted: how many others have adopted. */
void comparison_begin(struct adoption *a, uint64_t number, uint64_t adopted);
void comparison_go(struct adoption *a);
/* Any walk ends, too. */
void comparison_stop(struct adoption *a);
/* Reads lock/copies. At startup, when the journal has been read. */
void comparison_read_bound(struct adoption *a);
/* Notes how far both places have all. */
void comparison_note(struct adoption *a);

#endif
