/* The header of a message: facts gathered while it streams by, and its fields.
 *
 * No input is an error: a line that is not a field ends the header. */
#ifndef MIME_HEADER_H
#define MIME_HEADER_H

#include "base/buffer.h"

enum {
    HEADER_ID_MAX = 255,  /* bytes of a Message-ID that are kept */
    HEADER_TAG_MAX = 128, /* of an X-Petrel-Tag */
    HEADER_DELIVERED_MAX = 32
};

/* Facts that a relay needs, from any split of the bytes. LF and CRLF both end lines. */
struct header_scan {
    unsigned received; /* count of Received and Delivered-To */
    bool has_from, has_date, has_message_id;
    /* Any Resent- field; and these two of them. */
    bool has_resent, has_resent_date, has_resent_message_id;
    /* Bcc, Resent-Bcc, Return-Path or X-Petrel-Tag: not for the next hop. */
    bool has_private;
    bool has_odd_name;  /* white space between a name and its colon */
    bool has_eight_bit; /* a byte >= 0x80 in it */
    bool is_message;    /* Content-Type is message, or ambiguous */
    bool is_partial;    /* Content-Type (one of them) is message/partial */
    bool composite; /* Content-Type is multipart or message: there are inner headers */
    bool headless;  /* the first line is not a field: everything is body */
    bool unseparated;  /* a line that is not a field ends it: no empty line does */
    bool mailbox_line; /* the first line is "From SENDER DATE" of mbox */
    bool ended;        /* by the empty line, or by a line that is not a field */
    size_t length;     /* bytes before the empty line (or the odd line) */
    /* Private to header.c: */
    unsigned char state;
    char name[17]; /* "resent-message-id" */
    unsigned char name_length;
    size_t line_start;
    unsigned char in_type; /* the place in Content-Type: its words go to name */
    unsigned comments;     /* open ones there, or in a list */
    bool quoted_pair;      /* in one of them, or in a quoted string */
    /* In the value of an address field: the entry of the list that is being read. */
    bool in_list, has_at, has_word, bare;
    bool in_from, from_at; /* in From; it has an @ */
    unsigned char angle;   /* of the entry: 1 in angle brackets, 2 behind them */
    unsigned char delivered_count;            /* values of Delivered-To */
    uint64_t delivered[HEADER_DELIVERED_MAX]; /* their hashes */
    bool in_delivered;                        /* in the value of one */
    bool in_id;                               /* in the value of the first Message-ID */
    unsigned char id_length;
    char id[HEADER_ID_MAX];
    bool in_tag, has_tag; /* in the value of the first X-Petrel-Tag; there is one */
    unsigned char tag_length;
    char tag[HEADER_TAG_MAX];
    bool in_tls;              /* in the value of TLS-Required */
    unsigned char tls_fields; /* 2: or more */
    unsigned char tls_length; /* 3: longer than the value of interest */
    char tls[2];
    char closing; /* of an open quoted string or address literal; or 0 */
};
void header_scan_start(struct header_scan *s);
void header_scan_add(struct header_scan *s, struct text bytes);
/* Whether a Delivered-To (one of the first HEADER_DELIVERED_MAX) has the address, in any
 * case. */
bool header_scan_was_delivered(const struct header_scan *s, struct text address);
/* The first Message-ID without white space, cut at its limit; or empty. */
struct text header_scan_message_id(const struct header_scan *s);
/* The first X-Petrel-Tag, by which a program recognises its message in events: printable
 * ASCII, without space at its ends, cut at its limit; or empty. */
struct text header_scan_tag(const struct header_scan *s);
/* "TLS-Required: No", with white space around the value alone; it may be there once (RFC
 * 8689 §3). */
bool header_scan_waives_tls(const struct header_scan *s);
/* True: From, Sender, Reply-To, To, Cc or a Resent- one of them may have an address
 * without a domain, or From may be empty or malformed. Also true for some odd lists that
 * have none. */
bool header_scan_has_bare(const struct header_scan *s);

/* Drops a first line "From SENDER DATE" (mbox), perhaps with '>' before it. */
void header_skip_mailbox_line(struct text *message);

/* One field of a header held in memory; value is still folded and has no final line
 * end. */
struct header_field {
    struct text name, value, whole; /* whole: from name to the end of the last line,
                                       line end included */
};
/* Cuts the next field off *rest. False at the empty line (which is cut off, too), at a
 * line that is not a field (left in place), or at the end. */
bool header_next(struct text *rest, struct header_field *field);

/* Appends value with folding undone (CRLF + white space becomes that white space). */
bool header_unfold(struct text value, struct buffer *out)
    __attribute__((warn_unused_result));

/* t starts with "(": the length of that comment, with the comments in it (RFC 5322
 * §3.2.2); TEXT_NONE if it is not closed. */
size_t header_comment_length(struct text t);

/* An address in an address list: "local@domain", or a local part alone; and the place of
 * its addr-spec (RFC 5322 §3.4.1): bytes [start, end), with its route, without angle
 * brackets and comments around it. */
struct address_place {
    struct text mailbox;
    size_t start, end;
    size_t angle;  /* of '<'; TEXT_NONE: there is none */
    bool has_name; /* a display name stands before it */
};
typedef void address_list_met(void *context, const struct address_place *place);
/* Calls each with each address of an address list, which may be folded (RFC 5322 §3.4:
 * display names, comments, groups, quoted strings, routes), and broken, unless NULL, with
 * the text of each malformed entry, trimmed. Returns the number of these. */
size_t address_list_read(struct text value, address_list_met *each,
                         void (*broken)(void *context, struct text entry),
                         void *context);

#endif
