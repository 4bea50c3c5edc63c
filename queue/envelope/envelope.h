/* The envelope: sender and recipients of a message, with the state of each; and its
 * form on disk with length, CRC32C and end mark (doc/dev/design.md "On-disk formats"). */
#ifndef QUEUE_ENVELOPE_ENVELOPE_H
#define QUEUE_ENVELOPE_ENVELOPE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/id.h"
#include "base/outcome.h"

enum {
    ENVELOPE_RECIPIENTS_MAX = 50000, /* `recipient_limit` is a setting below it */
    ENVELOPE_COPIES_MAX = 16,        /* recipients beyond it: envelope_add_copy() */
    ENVELOPE_STORED_MAX = ENVELOPE_RECIPIENTS_MAX + ENVELOPE_COPIES_MAX,
    ENVELOPE_BYTES_MAX = 64 * 1024 * 1024,
    ENVELOPE_PRIORITY_MAX = 9, /* and -9; RFC 6710 */
    ENVELOPE_MESSAGE_ID_MAX = 255,
    ENVELOPE_TAG_MAX = 128,
    ENVELOPE_POSTED_MAX = 160,
    ENVELOPE_REQUEST_MAX = 64,
    ENVELOPE_CAME_MAX = 320, /* HOST/ID */
    ENVELOPE_MOVES_MAX = 99, /* that can be read; GIVE_MOVES_MAX is below it */
    ENVELOPE_HOLD_MAX = 640, /* the reason of a hold, as in hold/ID */
    ENVELOPE_REASON_MAX = OUTCOME_TEXT_MAX + 4
};

/* RFC 3461 */
enum {
    NOTIFY_DEFAULT = 0, /* failure (and delay) */
    NOTIFY_NEVER = 1,
    NOTIFY_SUCCESS = 2,
    NOTIFY_FAILURE = 4,
    NOTIFY_DELAY = 8
};
enum envelope_return { RETURN_DEFAULT, RETURN_HEADERS, RETURN_FULL };

/* The wish of the sender for the TLS of each hop (RFC 8689), the least first: that demands of
 * recipients' domains do not count ("TLS-Required: No"); nothing; that it is certain
 * (REQUIRETLS). */
enum envelope_tls {
    ENVELOPE_TLS_WAIVED = -1,
    ENVELOPE_TLS_PLAIN,
    ENVELOPE_TLS_REQUIRED
};

enum channel { CHANNEL_LOCAL, CHANNEL_REMOTE }; /* which of qmail's two files */

/* The place of a recipient's T/D byte in S5: file and offset. Both are one fact, made when
 * the files are written, and never changed. What is in no file has no place. */
struct mark_place {
    enum channel channel;
    int32_t offset; /* -1: the message is not S5 */
};

/* How recipients came into the envelope through an alias. Some of them share it: one
 * transaction to them has one sender and one origin. */
struct recipient_way {
    struct recipient_way *next; /* of the envelope */
    unsigned number;            /* from 1 on */
    struct text origin;         /* the address as given, in normal form */
    /* Instead of the envelope's; empty: that one; "<>": the null sender, of a copy
     * (`copy_to`), whose origin is its own address. */
    struct text sender;
};

/* Why a recipient of an injector's mail, or of our own, fails when it is routed; not on disk,
 * but found again for files in todo/. */
enum recipient_refusal {
    RECIPIENT_GOOD,
    RECIPIENT_UNKNOWN,  /* a forged address of SRS */
    RECIPIENT_LOOPS,    /* its alias has forwarded the message before */
    RECIPIENT_TOO_MANY, /* addresses stand behind the message's aliases */
    RECIPIENT_EMPTY,    /* an alias without an address */
    RECIPIENT_UNSURE    /* of SRS, while its secret cannot be read: waits in todo/ */
};

struct recipient {
    struct text address;  /* normal form, see address_write() */
    struct text original; /* ORCPT as given, xtext: "rfc822;a+2Bb@c", or empty */
    unsigned notify;
    const struct recipient_way *way; /* through an alias; NULL: as given */
    bool done;                       /* D: delivered, failed or discarded */
    /* An alias that has been expanded. It is a recipient since the sender wants to know
     * of success: a notification says "expanded", or "delivered" (`way`) to a list. */
    bool expanded;
    enum recipient_refusal refused : 8;
    struct mark_place mark; /* on disk */
};

/* A result that a notification will report to the sender (bounce/ID): a failure, or a
 * success that the sender asked for (NOTIFY=SUCCESS); the outcome's verdict says
 * which. */
struct failure {
    unsigned recipient;
    bool expired; /* failed because the message's lifetime was over */
    struct outcome outcome;
    bool relayed;  /* sent to a host without DSN (RFC 3461 "relayed") */
    bool notified; /* a notification that reports it is durable */
};

/* The results up to now, and the next action. */
struct delivery_state {
    bool held;     /* hold/ID exists */
    bool released; /* by an operator: passes routes that hold; with due_ms */
    /* The age of the message up to which the sender has been notified of the delay, by
     * the times of the routes; 0: never. With due_ms.
     * warned_kept_s: the age in info/ID, durably. */
    int64_t warned_s, warned_kept_s;
    int64_t due_ms; /* S5: next attempt */
    unsigned attempts;
    unsigned done; /* recipients with done set */
    struct failure *failures;
    unsigned failure_count;
};

/* The relation of a message to fragments (RFC 2046 message/partial). */
struct fragment_state {
    bool awaits_parts; /* a fragment; its set is incomplete; in S5 defrag/ID exists */
    /* For a reassembled message: its parts, see defrag/reassembly/parts_list.h; or
     * empty. */
    struct text made_of;
    /* For a fragment to or from another of our hosts: "KEY;DEPTH;EPOCH" of its set
     * (queue/envelope/set_mark.h); or empty. */
    struct text set_mark;
    /* The fragment came from another of our hosts with a valid set_mark: only then is
     * the mark kept, and the fragment is never sent on to another host. */
    bool by_peer;
};

/* How the message moved between the hosts of a group (queue/group/give.h). It counts only
 * when it came by their door. */
struct moved_state {
    struct text came;  /* HOST/ID: the last giver, and the id there; "": born here */
    struct text first; /* the id at its birth */
    unsigned given;    /* how often it has moved */
    /* In the form of envelope_write_given() alone: the content of hold/ID, or "" if it is
     * not held. Likewise why it was deferred last, "CODE TEXT", or "": a hint. */
    struct text hold, reason;
};

/* How the message is stored. */
struct storage_state {
    bool in_todo;               /* S4 as read from todo/ID, also of an injector */
    bool injected;              /* S4 as read: submitted by sendmail(1) */
    unsigned injector;          /* then: the user, owner of todo/ID */
    bool preprocessed;          /* S5: info/ exists, todo/ does not */
    unsigned failures_recorded; /* S5 as read: bounce/ID has at least this many */
    bool has_texts; /* S5 as read: there is bounce/ID, perhaps without marks */
    bool fixed; /* S4 as read: files, or results, of these recipients are under way */
    unsigned given; /* recipients before aliases were looked up; 0: they were not */
};

/* Changes that the header of a message of ours may need before it leaves. */
enum {
    HEADER_NEEDS_FROM = 1, /* it has none */
    /* Bcc, Resent-Bcc, Return-Path, white space before a colon; or no empty line ends
     * it */
    HEADER_NEEDS_REMOVAL = 2,
    HEADER_NEEDS_DOMAIN = 4, /* an address may have no domain */
    HEADER_NEEDS_ALL = 7
};

struct envelope {
    struct id id;
    int64_t birth_ms;        /* first arrival; kept over requeues */
    int64_t birth_moved_ms;  /* by the clock, which has been set since; not on disk */
    struct text sender;      /* "" is the null path */
    struct text envelope_id; /* ENVID as given (xtext), or empty */
    enum envelope_return ret;
    bool eight_bit, utf8; /* BODY=8BITMIME, SMTPUTF8 */
    bool binary;          /* BODY=BINARYMIME: the content may hold any byte anywhere */
    bool ascii_header;    /* with utf8: no header field is known to have UTF-8 */
    bool double_bounce;   /* a notification to postmaster: its failure is only logged */
    int priority;         /* MT-PRIORITY; 0 = default */
    /* For content of type message/...: "auth:USER", "int" (may relay) or "ext", then
     * " net:" and the client's network, if there is a client; or "". */
    struct text trust;
    /* A client that may relay, sendmail(1) or this host itself has submitted it: only
     * such mail is rewritten and signed. */
    bool ours;
    unsigned header_needs; /* then: HEADER_NEEDS_... */
    struct text submitter; /* then: "user:NAME", "uid:N", or "" */
    /* While events are kept (base/event/event.h): the first Message-ID, and the
     * X-Petrel-Tag of mail that is ours; or "". */
    struct text message_id, tag;
    /* Posted with an idempotency key: "NAME/KEY/BODY" (admin/post/post_record.h), for this
     * host alone; or "". */
    struct text posted;
    /* RFC 4865: not delivered before, by the wall clock; 0: at any time. And what was asked
     * for, as a report has it: "for;SECONDS" or "until;DATE". */
    int64_t release_ms;
    struct text release_request;
    enum envelope_tls tls;
    struct text prefix;   /* header lines to send before the content, CRLF ended */
    int64_t content_size; /* of mess/ID */
    uint32_t content_crc;
    struct recipient *recipients;
    unsigned count, capacity;
    struct recipient_way *ways; /* the newest first */
    struct delivery_state delivery;
    struct fragment_state fragment;
    struct moved_state moved;
    struct storage_state storage;
    struct arena arena; /* holds all texts */
};

struct envelope *envelope_new(void);
void envelope_free(struct envelope **e);
/* Copies the texts. False: the limit of recipients or bytes is reached. */
bool envelope_add(struct envelope *e, struct text address, unsigned notify,
                  struct text original) __attribute__((warn_unused_result));
/* A recipient whom nobody has given: a copy of the message, as a mail of its own. The same as
 * above; there are at most ENVELOPE_COPIES_MAX. */
bool envelope_add_copy(struct envelope *e, struct text address)
    __attribute__((warn_unused_result));
bool envelope_is_copy(const struct recipient *r);
/* To be delivered then, as was asked. A time of 0, or of the past, is none. */
void envelope_release_at(struct envelope *e, int64_t release_ms, struct text request);
/* The recipients of another envelope of the message, with their results, instead of its
 * own, which must not be S5. False: the limit of bytes is reached. */
bool envelope_take_recipients(struct envelope *e, const struct envelope *from)
    __attribute__((warn_unused_result));
/* A way with these texts, copied: one that the envelope has, or a new one. NULL: the
 * limit of bytes is reached. */
const struct recipient_way *envelope_way(struct envelope *e, struct text origin,
                                         struct text sender)
    __attribute__((warn_unused_result));
/* The sender of mail that goes that way (NULL: as given). */
struct text envelope_way_sender(const struct envelope *e,
                                const struct recipient_way *way);
/* The sender of mail to the recipient, and the alias by which the recipient came
 * (empty: none). */
struct text envelope_sender_of(const struct envelope *e, const struct recipient *r);
struct text envelope_origin_of(const struct recipient *r);
/* Where a notification about the recipient goes: to the owner of its list, else to the
 * sender of the message. The latter also gets the one about an expanded alias, and the
 * one for a sender that SRS made. */
struct text envelope_notified(const struct envelope *e, const struct recipient *r);
/* Whether SRS made the address (mime/srs.h has the form). */
bool envelope_is_srs(struct text sender);
/* Whether the header, apart from addresses, needs SMTPUTF8 (RFC 6531 §3.2); true also
 * when that is unknown. */
bool envelope_has_utf8_header(const struct envelope *e);
/* An answer about a recipient is in memory alone (struct recipient). */
bool envelope_has_refused(const struct envelope *e);
/* A copy of t that lives as long as the envelope. */
struct text envelope_text(struct envelope *e, struct text t);
void envelope_fail(struct envelope *e, const struct failure *failure);

/* The form of todo/ID: everything but the failures, marks and due time. */
void envelope_write_todo(const struct envelope *e, struct buffer *out);
/* The same with the state of the message: marks, failures, due time, attempts,
 * `moved.hold`. For a message that another host gets, or has given. False: the failures
 * are too long for it. */
bool envelope_write_given(const struct envelope *e, struct buffer *out)
    __attribute__((warn_unused_result));
/* Reads both. DONE or BAD (any damage: short, long, checksum, unknown record). The CRC
 * covers the name, too: an envelope copied under another name is damaged. */
enum progress envelope_read_todo(struct text bytes, struct id id, struct envelope *e)
    __attribute__((warn_unused_result));
/* BAD because a newer version wrote it, if its first line is right. */
bool envelope_is_newer(struct text bytes);

/* The forms of info/ID and of local/ID or remote/ID (qmail's records, T or D first
 * byte). A D written over a T keeps the file valid. The due time in info may be
 * overwritten in place. */
/* local: recipients in local/ID. */
void envelope_write_info(const struct envelope *e, unsigned local, struct buffer *out);
enum progress envelope_read_info(struct text bytes, struct id id, struct envelope *e)
    __attribute__((warn_unused_result));
/* Both files, each recipient in one of them; a file without recipients stays empty.
 * places: of each recipient the channel, gets where its mark is. The envelope does not
 * change: it gets the places when the files count. */
void envelope_write_channels(const struct envelope *e, struct mark_place *places,
                             struct buffer *local, struct buffer *remote);
/* The files count from now on: S5. places: of all recipients. */
void envelope_take_places(struct envelope *e, const struct mark_place *places);
enum progress envelope_read_channel(struct text bytes, struct id id,
                                    enum channel channel, struct envelope *e)
    __attribute__((warn_unused_result));
/* The bytes to overwrite in info/ID for a new due time (with attempts, released and
 * warned_s), and where. */
enum { ENVELOPE_DUE_OFFSET = 16, ENVELOPE_DUE_SIZE = 32 };
void envelope_write_due(const struct envelope *e, char out[ENVELOPE_DUE_SIZE]);
/* Reads due_ms, attempts, released and warned_s alone, from the first 48 bytes of
 * info/ID. A torn slot means now; warned_s is trusted even then. */
void envelope_read_due(struct text start, struct id id, struct envelope *e);
/* One failure as appended to bounce/ID. Reading silently skips torn ones: a text is
 * durable before its D mark, so a torn one has no mark. Reading sets `done` of each
 * recipient found, which completes a crash between text and mark. The first failure of
 * a recipient counts; a later one can only add that it is notified. */
void envelope_write_failure(const struct envelope *e, const struct failure *f,
                            struct buffer *out);
void envelope_read_failures(struct text bytes, struct envelope *e);

#endif
