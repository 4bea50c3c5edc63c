/* The model: what was given, what became of it, and the laws (roof "What is judged").
 *
 * Actors say what they saw; the model never asks the daemon. Every recipient's address is
 * one of a kind, so that each event finds its recipient. */
#ifndef T_ROOF_MODEL_H
#define T_ROOF_MODEL_H

#include "base/buffer.h"
#include "base/text.h"

enum {
    MODEL_RCPTS_MAX = 300,
    MODEL_ADDED_MAX = 800,
    MODEL_ADDRESS_MAX = 64,
    MODEL_ID_MAX = 32,
    MODEL_REPORT_ID_MAX = 100
};
#define MODEL_BACK "back.test" /* the domain of all senders */

enum model_notify {
    NOTIFY_AS_USUAL,
    NOTIFY_NOTHING,
    NOTIFY_OF_FAILURE, /* and of delays */
    NOTIFY_OF_SUCCESS, /* this and those behind it with WITH_DSN alone */
    NOTIFY_OF_ALL,
    NOTIFY_OF_DELAY
};

struct model_rcpt {
    struct model_message *message;
    unsigned index, domain;
    bool accepted;    /* RCPT was answered 250 */
    unsigned stored;  /* by a hop */
    unsigned chances; /* to be stored once more: lost replies, ends of the host */
    unsigned failed;  /* reports that say so */
    unsigned told;    /* reports of its success */
    bool passed_on;   /* stored by a hop that reports success itself */
    bool refused;     /* for good, by a hop or the operator */
    bool may_vanish;  /* the operator has asked for its removal */
    int64_t stored_ms;
    int64_t refused_ms;
    unsigned delayed;      /* reports that say so */
    int64_t deferred_ms;   /* by a hop's 4yz reply; 0: not, or it may come soon again */
    unsigned reloads;      /* that there were when it was deferred last */
    bool is_hurried;       /* by an operator: another attempt may follow that of now */
    bool has_fate;         /* by the log of the first host */
    unsigned fate_excuses; /* law_log.c */
    bool has_failed;       /* by any log */
    bool is_unmarked;      /* the same, and its report may not be in the queue */
    bool heard_stored, heard_failed; /* by the webhook */
    int64_t relayed_ms; /* to another host, whose mail it is then; 0: not yet */
    bool copied;        /* a host may have it twice, each with its own times */
};

enum model_state {
    MODEL_UNSENT,
    MODEL_MAYBE, /* its end was sent, and no reply came */
    MODEL_ACKED,
    MODEL_REFUSED
};

struct model_message {
    unsigned number;
    enum model_state state;
    enum model_notify notify;
    bool is_omitted;     /* by the plan: nobody sends it */
    bool is_null;        /* its sender */
    struct split *split; /* NULL: it is given in one piece */
    bool is_aliased;     /* given to one name, which has them all */
    bool is_ageless;     /* its host may take it for older than it is */
    int64_t release_ms;  /* no hop hears of it before; 0: it may go */
    bool requires_tls;   /* it may fail where that is not to be had */
    bool has_original;   /* ORCPT */
    bool wants_header;   /* RET=HDRS */
    char id[MODEL_ID_MAX];
    struct buffer content; /* lines end with CRLF */
    struct form *form;     /* of its parts; NULL: it has none */
    struct model_rcpt *rcpts;
    unsigned rcpt_count;
    int64_t acked_ms;
    int64_t born_ms; /* no host has it before; the answer to a first post may be lost */
    unsigned report_chances;
    int64_t reported_ms;
    unsigned reports;                    /* one that comes again counts once */
    char report_id[MODEL_REPORT_ID_MAX]; /* of the last one */
    int64_t notified_ms;                 /* by a log: a report is in the queue */
    int64_t site_failed_ms;
    bool was_delayed;  /* by a log: one of its delay is */
    int64_t logged_ms; /* the last end of an attempt that a log has */
    int64_t heard_ms;  /* the time of the latest event that the webhook has */
};

void model_begin(unsigned messages);
unsigned model_count(void);
/* One more than that. */
struct model_message *model_add(void);
struct model_message *model_at(unsigned number);

/* A message with recipients at these domains, and content of this seed. */
void model_draw(struct model_message *m, unsigned rcpts, size_t size);
void model_rcpt_address(const struct model_rcpt *r, char out[MODEL_ADDRESS_MAX]);
void model_sender_address(const struct model_message *m, char out[MODEL_ADDRESS_MAX]);
/* " NOTIFY=..." as in RCPT, or "". */
const char *model_notify_words(const struct model_message *m);
/* " ORCPT=rfc822;...", or "". */
enum { MODEL_ORIGINAL_MAX = MODEL_ADDRESS_MAX + 20 };
void model_rcpt_original(const struct model_rcpt *r, char out[MODEL_ORIGINAL_MAX]);
/* Its sender is told of delays. */
bool model_wants_delay(const struct model_message *m);
/* NULL: none of ours. */
struct model_rcpt *model_find(struct text address);
struct model_message *model_find_sender(struct text address);
/* As many as the client names: one where they are aliased. */
unsigned model_given(const struct model_message *m);
/* The address of one of these, and the reply to it. */
void model_given_address(const struct model_message *m, unsigned index,
                         char out[MODEL_ADDRESS_MAX]);
void model_given_accepted(struct model_message *m, unsigned index, bool is_accepted);
void model_set_domains(const char *const *names, unsigned count);
const char *model_domain(unsigned index);
unsigned model_domains(void);

/* Messages have parts (form.h). */
void model_have_forms(void);
/* Each message has a copy for the archive (`copy_to`), which is a recipient behind the
 * others, in all that is said of marks, moves and chances. */
#define MODEL_ARCHIVE "archive@" MODEL_BACK
void model_copy(void);
/* The copy that has this content; none of ours: a law is broken. */
struct model_rcpt *model_find_copy(struct text content);

/* Said by clients. */
void model_acked(struct model_message *m, struct text id);
/* acked() comes with each. */
void model_on_acked(void (*acked)(void));
/* stored() comes with each recipient that a hop has stored. */
void model_on_stored(void (*stored)(void));
/* Said by hops. */
void model_attempted(struct model_rcpt *r);
/* attempted() comes with each, or NULL. */
void model_on_attempted(void (*attempted)(struct model_rcpt *r));
void model_deferred(struct model_rcpt *r);
void model_refused(struct model_rcpt *r);
void model_stored(struct model_rcpt *r, struct text content);
/* The same by a program that reads the message: why it is not what was given, or NULL. */
void model_read(struct model_rcpt *r, const char *why);
/* The reply to what was stored may not have come. */
void model_unconfirmed(struct model_rcpt *r);
/* The hop says 250 before the end: it may be stored or not, once more or not. */
void model_lied(struct model_rcpt *r);
void model_report_lied(struct model_message *m);
/* Stored by a hop that tells the sender of it. */
void model_passed_on(struct model_rcpt *r);
void model_reported(struct model_message *m, struct text content);
void model_report_unconfirmed(struct model_message *m);
/* Said by the wire to another host of the run: it has taken the recipient over; and that
 * the reply may not have come. */
void model_relayed(struct model_rcpt *r);
void model_relay_unconfirmed(struct model_rcpt *r);
/* Mail that has no fate, or got it within window_ms, may be at two hosts of a group. */
void model_given_twice(int64_t window_ms);
/* The same of the message that had this id first; none of ours: of a report, or of one whose
 * id nobody knows. */
void model_moved_twice(struct text first);
/* Said of that host: the same as below, of what was relayed to it. */
void model_relay_ended(int64_t window_ms);
/* Said of the host: marks of the last window_ms may be lost. */
void model_host_ended(int64_t window_ms);
/* The same of a daemon that handles these slices of the spool, by bits. */
void model_slices_ended(int64_t window_ms, unsigned slices, unsigned mask);
/* Said by a log: a recipient's attempt has ended; and the report is in the queue. A failure
 * is marked with its report, when all attempts of the message have ended: what a kill soon
 * behind them takes back is done again. */
enum model_end { MODEL_SUCCESS, MODEL_DELAY, MODEL_FAILURE };
void model_logged(struct model_rcpt *r, enum model_end end);
/* And that is not what the recipient was told. */
void model_site_failed(struct model_message *m);
void model_notified(struct model_message *m, enum model_end end);
/* Mail may be tried again immediately. */
void model_forget_waits(void);
/* An operator has released all mail. */
void model_released(void);
/* The same, and mail whose attempt is under way may be, at its end (sched_rerouted()). */
void model_reloaded(void);
/* The shortest life that mail had by any settings. */
void model_set_lifetime(int64_t lifetime_ms);
/* Another boot does not know that the clock was set far: the mail until then may be as old
 * as its times say (doc/scheduler.md). */
void model_forget_ages(int64_t until_ms);
/* Its host can know its age, whatever clocks did. */
bool model_has_age(const struct model_message *m);

/* Said by the webhook. time_ms: of the event; 0: times prove nothing. */
enum model_news { NEWS_DELIVERED, NEWS_FAILED, NEWS_DEFERRED };
void model_heard(struct model_rcpt *r, enum model_news news, struct text id,
                 int64_t time_ms);
/* It has heard of every recipient's fate. */
bool model_has_heard(void);
void model_judge_heard(void);

/* Open recipients: acknowledged, and without a fate. */
unsigned model_open(void);
/* One of them is to be delivered, and has not been refused. */
bool model_is_waiting(const struct model_message *m);
/* Its id belongs to the slice of slices; or nobody knows its id. */
bool model_is_of(const struct model_message *m, unsigned slices, unsigned slice);
/* The same, and none of it may have gone to another host. */
bool model_is_here(const struct model_message *m);
/* All laws about fates, when nothing can happen any more. */
void model_judge(void);
void model_print(void);

struct model_tally {
    unsigned acked, maybe, refused, rcpts, stored, twice, reported, removed;
};
struct model_tally model_tally(void);

#endif
