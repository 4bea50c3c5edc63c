/* Down-conversion: for a next hop that does not accept 8-bit or binary content.
 *
 * RFC 6152 §3, RFC 3030 §3, RFC 2045 §6. Two passes over the same content, in pieces of
 * any size. The first, the scan, examines each part and ends in a verdict, so that no
 * message is sent that can be converted only in part. The second converts: leaf parts
 * become quoted-printable or base64 of the same octets, multipart and message parts are
 * labelled 7bit, and nothing else changes.
 *
 *     d = downgrade_new(&way);
 *     downgrade_scan(d, piece); ...
 *     if (downgrade_scan_end(d) == DOWNGRADE_CONVERTIBLE) {
 *         downgrade_start(d, write, context);
 *         downgrade_add(d, piece); ...
 *         downgrade_end(d);
 *     }
 *     downgrade_free(&d);
 *
 * The verdict CONVERTIBLE promises output with lines of at most DOWNGRADE_LINE_MAX
 * bytes that end in CRLF, the last one too, without NUL and other CR or LF, and for a
 * hop without 8BITMIME without bytes above 127. Content that needs no conversion must
 * be sent as it is.
 *
 * Never converted, because their octets are signed, encrypted or incomplete:
 * multipart/signed, multipart/encrypted, message/partial, message/external-body. A
 * message/global is encoded as a unit (RFC 6532 §3.7). Preambles and epilogues, which
 * no reader shows, cannot be encoded: bytes not allowed there become '?'. */
#ifndef MIME_PARTS_DOWNGRADE_H
#define MIME_PARTS_DOWNGRADE_H

#include "base/text.h"

enum { DOWNGRADE_LINE_MAX = 998 };

struct downgrade;

struct downgrade_way {
    /* Received as BODY=BINARYMIME: a lone CR or LF in a body is data and is kept.
     * Otherwise a lone LF in a body is a line end and becomes CRLF. */
    bool from_binary;
    /* The hop has 8BITMIME: only parts with NUL, a lone CR or LF, or too long a line
     * are converted. */
    bool to_8bit;
};

enum downgrade_verdict {
    DOWNGRADE_NOT_NEEDED,  /* may be sent unchanged */
    DOWNGRADE_CONVERTIBLE, /* may be sent as converted by the second pass */
    DOWNGRADE_FORBIDDEN,   /* 5.6.3: the reason says why */
    DOWNGRADE_FRAGMENT /* forbidden, and the message is a message/partial: must not be
                          sent unchanged either (RFC 2046 §5.2.2: always 7bit) */
};

/* Why conversion is forbidden: the first reason found in the content. */
enum downgrade_reason {
    DOWNGRADE_NO_REASON,
    DOWNGRADE_HEADER,    /* in a header field, where nothing can be encoded */
    DOWNGRADE_SIGNED,    /* inside multipart/signed */
    DOWNGRADE_ENCRYPTED, /* inside multipart/encrypted */
    DOWNGRADE_PARTIAL,   /* message/partial: a piece of a message, RFC 2046 §5.2.2 */
    DOWNGRADE_EXTERNAL,  /* message/external-body */
    DOWNGRADE_COMPOSITE, /* another multipart or message that cannot be parsed */
    DOWNGRADE_ENCODED,   /* labelled base64, quoted-printable or an unknown encoding */
    DOWNGRADE_BROKEN     /* the structure is ambiguous, or above its limits */
};

struct downgrade *downgrade_new(const struct downgrade_way *way);
void downgrade_free(struct downgrade **d);

/* First pass. */
void downgrade_scan(struct downgrade *d, struct text piece);
/* Once, after the last piece. */
enum downgrade_verdict downgrade_scan_end(struct downgrade *d);

/* After the scan's end. */
enum downgrade_reason downgrade_reason(const struct downgrade *d);
/* A text for log lines and bounces: "the message is signed"; never NULL, "" without a
 * reason. */
const char *downgrade_reason_text(const struct downgrade *d);
/* The message has a DKIM-Signature: conversion is allowed (RFC 6376 §5.3 warns signers
 * of it) but breaks the signature. */
bool downgrade_breaks_dkim(const struct downgrade *d);
/* An upper bound of the result's size in bytes, for SIZE= (RFC 1870). */
uint64_t downgrade_size_max(const struct downgrade *d);

/* Second pass, only when CONVERTIBLE; may be started again at any time. write()
 * is called from downgrade_add() and downgrade_end() with bytes borrowed until it
 * returns; a piece of n bytes makes at most 4n + 500,000 bytes. */
void downgrade_start(struct downgrade *d,
                     void (*write)(void *context, struct text bytes), void *context);
/* The content must be that of the scan; for other content nothing above is guaranteed. */
void downgrade_add(struct downgrade *d, struct text piece);
void downgrade_end(struct downgrade *d);

#endif
