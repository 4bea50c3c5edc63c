/* HTTP/1.1 (RFC 9110, RFC 9112): reads heads and bodies, writes requests.
 *
 * Pure: bytes in, bytes out. One reader serves both roles: the caller names the kind of
 * message and the limits. Strict, so that no two programs can differ about where a
 * message ends: a line ends in CRLF, a bare CR, a bare LF, a NUL, another control
 * character and folding are refused, as are Content-Length together with
 * Transfer-Encoding and two different Content-Lengths. Chunks are read in responses, and
 * in requests that stream, only. No content coding is read.
 *
 * Requests are read more strictly, since they come from anybody: one Host, which
 * HTTP/1.0 may leave out, at most one Content-Length of 1 to 9 digits, and POST has it.
 * http_target.h judges the target. */
#ifndef BASE_HTTP_HTTP_H
#define BASE_HTTP_HTTP_H

#include "base/buffer.h"
#include "base/net_address.h"

enum {
    HTTP_LINES_MAX = 65,            /* of a head: 64 fields; of trailers */
    HTTP_HEAD_MAX = 16 * 1024,      /* octets of a head, and of trailers */
    HTTP_BODY_MAX = 256 * 1024,     /* no caller may ask for more */
    HTTP_CHUNK_LINE_MAX = 256,      /* a chunk's size and extensions */
    HTTP_INTERIM_MAX = 8,           /* 1xx responses before the final one */
    HTTP_STREAM_PIECE = 128 * 1024, /* of a body that streams, between two calls */
    HTTP_URL_MAX = 2048,
    HTTP_HOST_MAX = 256
};

/* --- URL ------------------------------------------------------------------------- */

struct http_url {
    bool secure; /* https */
    uint16_t port;
    char host[HTTP_HOST_MAX]; /* lower case; an IPv6 address without brackets */
    struct text path;         /* with its query; borrowed; "/" when there is none */
};
/* "https://HOST[:PORT][/PATH][?QUERY]" or http://, in ASCII. User names and fragments
 * are refused: *why is a sentence then. */
bool http_url_parse(struct text url, struct http_url *out, const char **why)
    __attribute__((warn_unused_result));

/* Whether a host of a URL is one that http:// may name: an address of our own networks, or
 * a name without a dot. */
bool http_url_is_private(const char *host);

/* --- Request --------------------------------------------------------------------- */

struct http_request {
    struct text method; /* "GET", "POST" */
    struct text type;   /* Content-Type; empty: no body is sent */
    struct text fields; /* further header lines, each with its CRLF */
    struct text body;
    /* Behind body, by the writer of the request: more octets of it. */
    int64_t more;
};
/* Asks for a connection that ends after the response, and for no content coding. False:
 * out's limit is reached. */
bool http_request_write(struct buffer *out, const struct http_url *url,
                        const struct http_request *request)
    __attribute__((warn_unused_result));

/* --- Reader ---------------------------------------------------------------------- */

enum http_kind { HTTP_REQUEST, HTTP_RESPONSE };
struct http_limits {
    size_t lines; /* of the head, the start line included; of trailers */
    size_t head;  /* octets of it; of trailers */
    size_t body;
};

/* One message. Members are for reading. */
struct http_reader {
    enum http_kind kind;
    struct http_limits limits;
    enum http_stage {
        HTTP_START_LINE,
        HTTP_FIELDS,
        HTTP_SIZED,     /* body by Content-Length */
        HTTP_UNTIL_END, /* body up to the end of the connection */
        HTTP_CHUNK_SIZE,
        HTTP_CHUNK,
        HTTP_CHUNK_END,
        HTTP_TRAILERS,
        HTTP_DONE,
        HTTP_REFUSED
    } stage;
    unsigned status, minor; /* response; HTTP/1.minor. Valid from the head on */
    bool has_head;          /* it is complete, even if it or the rest is malformed */
    struct text method, target; /* request; within head, valid from the head on */
    struct buffer head, body;
    const char *error; /* HTTP_REFUSED: one sentence */
    unsigned refusal;  /* request: the status of the answer, 400 to 505 */

    struct buffer line; /* the line under way, with its CRLF */
    size_t lines, octets, interim;
    size_t left;  /* octets of body or chunk to come */
    size_t taken; /* octets of the body so far */
    const char *stream_path;
    size_t stream_max;
    bool streams; /* valid from the head on */
    size_t start_line;
    bool expects_no_body;
};

/* limits: as the caller needs, none beyond the maxima above. expects_no_body: the
 * response to HEAD. */
void http_reader_init(struct http_reader *reader, enum http_kind kind,
                      const struct http_limits *limits);
/* Behind that, for requests: POST to this path (with any query) streams. Its body has up to
 * max octets, perhaps in chunks, and the caller empties `body` after each call. */
void http_reader_stream(struct http_reader *reader, const char *path, size_t max);
void http_reader_free(struct http_reader *reader);
/* Takes the bytes of the message from input. PROGRESS_DONE: it is complete; 1xx
 * responses have been passed over. PROGRESS_BAD: see error. */
enum progress http_reader_add(struct http_reader *reader, struct text *input)
    __attribute__((warn_unused_result));
/* The connection has ended, and not by an error: DONE or BAD. */
enum progress http_reader_end(struct http_reader *reader)
    __attribute__((warn_unused_result));
/* The head is complete. */
bool http_reader_has_head(const struct http_reader *reader);
/* The value of the first field of that name, without surrounding white space; at is
 * NULL when there is none. */
struct text http_reader_field(const struct http_reader *reader, struct text name);
/* The next field from *rest, which begins as http_reader_fields(). */
struct text http_reader_fields(const struct http_reader *reader);
bool http_field_next(struct text *rest, struct text *name, struct text *value);

#endif
