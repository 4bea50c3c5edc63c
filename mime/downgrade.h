/* Down-conversion: content for a next hop that takes no 8-bit or no binary content.
 *
 * RFC 6152 §3, RFC 3030 §3, RFC 2045 §6. Two passes over the same content, both in
 * pieces of any size. The first, the scan, gathers what each part holds and ends in a
 * verdict, so that nothing is sent of what cannot be converted as a whole. The second
 * converts: leaf parts become quoted-printable or base64 (with exactly the octets that
 * they had), multipart and message parts are labelled 7bit, and nothing else is
 * touched.
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
 * What comes out has lines of at most DOWNGRADE_LINE_MAX bytes that end in CRLF, no
 * NUL, no other CR or LF, for a hop without 8BITMIME no byte above 127, and ends in
 * CRLF. That is what the verdict promises; content without a need is not to be
 * converted, but sent as it is.
 *
 * Never converted, because their octets are signed, sealed, or of a part only:
 * multipart/signed, multipart/encrypted, message/partial, message/external-body. A
 * message/global is encoded whole (RFC 6532 §3.7). Preambles and epilogues, which no
 * reader shows, cannot be encoded: what may not stand there becomes '?'. */
#ifndef MIME_DOWNGRADE_H
#define MIME_DOWNGRADE_H

#include "base/text.h"

enum { DOWNGRADE_LINE_MAX = 998 };

struct downgrade;

struct downgrade_way {
    /* Came as BODY=BINARYMIME: a lone CR or LF in a body is data and survives.
     * Otherwise a lone LF in a body is a line end and becomes CRLF. */
    bool from_binary;
    /* The hop has 8BITMIME: only parts with NUL, a lone CR or LF, or too long a line
     * are converted. */
    bool to_8bit;
};

enum downgrade_verdict {
    DOWNGRADE_NOT_NEEDED,  /* may be sent as it is */
    DOWNGRADE_CONVERTIBLE, /* may be sent as the second pass makes it */
    DOWNGRADE_FORBIDDEN,   /* 5.6.3: the reason says why */
    DOWNGRADE_FRAGMENT /* the same, and all of it is a message/partial: it is not to go
                          as it is either (RFC 2046 §5.2.2: always 7bit) */
};

/* Why not; the first one met in the content. */
enum downgrade_reason {
    DOWNGRADE_NO_REASON,
    DOWNGRADE_HEADER,    /* in a header field, where nothing can be encoded */
    DOWNGRADE_SIGNED,    /* inside multipart/signed */
    DOWNGRADE_ENCRYPTED, /* inside multipart/encrypted */
    DOWNGRADE_PARTIAL,   /* message/partial: a piece of a message, RFC 2046 §5.2.2 */
    DOWNGRADE_EXTERNAL,  /* message/external-body */
    DOWNGRADE_COMPOSITE, /* another multipart or message that cannot be looked into */
    DOWNGRADE_ENCODED,   /* labelled base64, quoted-printable or an unknown encoding */
    DOWNGRADE_BROKEN     /* two ways to read the structure, or above its limits */
};

struct downgrade *downgrade_new(const struct downgrade_way *way);
void downgrade_free(struct downgrade **d);

/* First pass. */
void downgrade_scan(struct downgrade *d, struct text piece);
/* Once, after the last piece. */
enum downgrade_verdict downgrade_scan_end(struct downgrade *d);

/* After the scan's end. */
enum downgrade_reason downgrade_reason(const struct downgrade *d);
/* For log lines and bounces: "the message is signed"; never NULL, "" without one. */
const char *downgrade_reason_text(const struct downgrade *d);
/* A field DKIM-Signature stands at the top: converting is allowed (RFC 6376 §5.3 tells
 * signers to expect it) but makes that signature fail. */
bool downgrade_breaks_dkim(const struct downgrade *d);
/* No less than the size of the result in bytes, for SIZE= (RFC 1870). */
uint64_t downgrade_size_max(const struct downgrade *d);

/* Second pass, only when CONVERTIBLE; may be started again, also in the midst. write()
 * is called from downgrade_add() and downgrade_end() with bytes borrowed until it
 * returns; a piece of n bytes makes at most 4n + 500,000 bytes. */
void downgrade_start(struct downgrade *d,
                     void (*write)(void *context, struct text bytes), void *context);
/* The same content as in the scan. Other content is converted as well as may be, and
 * the promises above are off. */
void downgrade_add(struct downgrade *d, struct text piece);
void downgrade_end(struct downgrade *d);

#endif
