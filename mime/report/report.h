/* Delivery status notifications: RFC 3464 multipart/report, RFC 6522, RFC 6533. */
#ifndef MIME_REPORT_REPORT_H
#define MIME_REPORT_REPORT_H

#include "base/outcome.h"

enum report_action {
    REPORT_FAILED,
    REPORT_DELAYED,
    REPORT_DELIVERED,
    REPORT_RELAYED,
    REPORT_EXPANDED /* an alias: its members have got the message */
};

struct report_recipient {
    struct text address;  /* the address used in RCPT */
    struct text original; /* ORCPT "rfc822;..." already decoded, or empty */
    enum report_action action;
    bool expired;           /* FAILED: the queue lifetime ended; the text says so */
    int64_t retry_until_ms; /* DELAYED: it fails then; 0 = not mentioned */
    const struct outcome *outcome;
};

enum { REPORT_HINT_MAX = 240 };

struct report {
    struct text reporting_host;  /* our host name */
    struct text to;              /* the original sender, or postmaster */
    struct text from;            /* MAILER-DAEMON@host */
    struct text original_sender; /* other than `to`: a double bounce, which names it */
    struct text id;              /* of the original message */
    struct text envelope_id;     /* ENVID decoded, or empty */
    struct text release_request; /* of RFC 4865, or empty */
    struct text boundary;        /* unique: the caller's id of the report */
    int64_t arrival_ms, now_ms;
    bool full;       /* the whole message follows, not just its header */
    bool utf8;       /* the original was SMTPUTF8: message/global types */
    bool waives_tls; /* the sender has waived TLS ("TLS-Required: No") */
    bool eight_bit;  /* the original part has bytes >= 0x80 */
    const struct report_recipient *recipients;
    size_t count;
    /* The remedy; false: none. NULL: no hints. */
    bool (*hint)(const struct outcome *outcome, char out[REPORT_HINT_MAX]);
};

/* The progress of a report; zeroed before its start. */
struct report_place {
    unsigned list;
    size_t next;
};

/* Writes everything up to the copy of the original, CRLF line ends, header first
 * (From, To, Subject, Date, Message-ID, Auto-Submitted, MIME). Text of peers is
 * escaped and folded; lines stay below 998 bytes. A call visits at most `most`
 * recipients; the next call with the same r continues there. Each recipient is visited
 * REPORT_LISTS times. True: complete. The caller then writes the original's header, or
 * all of the original... */
enum { REPORT_LISTS = 6 };
bool report_begin(const struct report *r, struct report_place *place, size_t most,
                  void (*write)(void *, struct text), void *context)
    __attribute__((warn_unused_result));
/* ...and this closes the report. */
void report_end(const struct report *r, void (*write)(void *, struct text),
                void *context);

#endif
