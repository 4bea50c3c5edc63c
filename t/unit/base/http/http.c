/* Proves that the reader of HTTP takes every form of head and body, in any pieces, and
 * refuses forms that two programs could read differently. */
#include "base/http/http.h"

#include "t/support/tap.h"

static const struct http_limits limits = {8, 300, 40};

struct sample {
    const char *name, *bytes;
    const char *outcome; /* "200 BODY", "GET /TARGET BODY", "more", "end: BODY", error */
    size_t rest;         /* octets that do not belong to the message */
};
#define OK "HTTP/1.1 200 OK\r\n"

static const struct sample responses[] = {
    {"a length", OK "Content-Length: 5\r\n\r\nhello", "200 hello", 0},
    {"and more behind it", OK "Content-Length: 5\r\n\r\nhelloHTTP/", "200 hello", 5},
    {"an empty body", OK "content-LENGTH:0\r\n\r\n", "200 ", 0},
    {"the same length twice", OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
     "200 hello", 0},
    {"in a list", OK "Content-Length: 5 , 5\r\n\r\nhello", "200 hello", 0},
    {"up to the end", OK "\r\nhello", "end: 200 hello", 0},
    {"nothing up to the end", OK "\r\n", "end: 200 ", 0},
    {"HTTP/1.0", "HTTP/1.0 404 Not Found\r\n\r\nno", "end: 404 no", 0},
    {"no reason phrase", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 ", 0},
    {"nor its space", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 ", 0},
    {"a reason beyond ASCII", "HTTP/1.1 200 \xc3\xbc\r\nContent-Length: 0\r\n\r\n",
     "200 ", 0},
    {"204 has no body", "HTTP/1.1 204 No Content\r\n\r\nrest", "204 ", 4},
    {"nor has 304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 ", 0},
    {"chunks", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
     "200 abcde", 0},
    {"in capitals, with extensions and zeros",
     OK "transfer-encoding: CHUNKED\r\n\r\n00A;a=b;c=\"d\"\r\n0123456789\r\n0 ; e\r\n\r\n",
     "200 0123456789", 0},
    {"with trailers",
     OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\nrest",
     "200 x", 4},
    {"a chunk of CRLF", OK "Transfer-Encoding: chunked\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n",
     "200 \r\n", 0},
    {"1xx before it",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK
     "Content-Length: 2\r\n\r\nok",
     "200 ok", 0},
    {"identity", OK "Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
     "200 ok", 0},
    {"the largest body",
     OK "Content-Length: 40\r\n\r\n0123456789012345678901234567890123456789",
     "200 0123456789012345678901234567890123456789", 0},
    {"seven fields are eight lines",
     OK "A:1\r\nB:2\r\nC:3\r\nD:4\r\nE:5\r\nF:6\r\nContent-Length: 0\r\n\r\n", "200 ",
     0},

    {"nothing", "", "more", 0},
    {"half a status line", "HTTP/1.", "more", 0},
    {"half a head", OK "Content-Length: 5\r\n", "more", 0},
    {"half a body", OK "Content-Length: 5\r\n\r\nhell", "more", 0},
    {"chunks without the last", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
     "more", 0},
    {"trailers without an end", OK "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n",
     "more", 0},
    {"1xx alone", "HTTP/1.1 100 Continue\r\n\r\n", "more", 0},

    {"another protocol", "220 mail.example.net ESMTP\r\n", "not HTTP/1.1 or HTTP/1.0",
     0},
    {"HTTP/2", "HTTP/2 200 OK\r\n\r\n", "not HTTP/1.1 or HTTP/1.0", 0},
    {"HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", "not HTTP/1.1 or HTTP/1.0", 0},
    {"an empty line first", "\r\n" OK "\r\n", "not HTTP/1.1 or HTTP/1.0", 0},
    {"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "the status line is malformed",
     0},
    {"of four", "HTTP/1.1 2000 OK\r\n\r\n", "the status line is malformed", 0},
    {"below 100", "HTTP/1.1 099 OK\r\n\r\n", "the status line is malformed", 0},
    {"above 599", "HTTP/1.1 600 OK\r\n\r\n", "the status line is malformed", 0},
    {"no status", "HTTP/1.1\r\n\r\n", "the status line is malformed", 0},
    {"101", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
     "the server changes the protocol", 0},
    {"a length and chunks",
     OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "Content-Length together with Transfer-Encoding", 0},
    {"in the other order",
     OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
     "Content-Length together with Transfer-Encoding", 0},
    {"two lengths", OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
     "two different Content-Lengths", 0},
    {"two in a list", OK "Content-Length: 5, 6\r\n\r\nhello",
     "two different Content-Lengths", 0},
    {"a negative length", OK "Content-Length: -5\r\n\r\n", "Content-Length is malformed",
     0},
    {"a signed one", OK "Content-Length: +5\r\n\r\nhello", "Content-Length is malformed",
     0},
    {"an empty one", OK "Content-Length:\r\n\r\n", "Content-Length is malformed", 0},
    {"a huge one", OK "Content-Length: 99999999999999999999\r\n\r\n",
     "Content-Length is malformed", 0},
    {"one beyond the limit", OK "Content-Length: 41\r\n\r\n", "the body is too large",
     0},
    {"gzip as transfer coding", OK "Transfer-Encoding: gzip, chunked\r\n\r\n",
     "a transfer coding that is not accepted", 0},
    {"chunked twice",
     OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
     "a transfer coding that is not accepted", 0},
    {"chunked by HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
     "a transfer coding that is not accepted", 0},
    {"gzip as content coding", OK "Content-Encoding: gzip\r\n\r\n",
     "a content coding that was not asked for", 0},
    {"a bare LF", "HTTP/1.1 200 OK\n\r\n", "a bare LF in the header", 0},
    {"a bare LF in the fields", OK "A: b\nC: d\r\n\r\n", "a bare LF in the header", 0},
    {"LF as the empty line", OK "\n", "a bare LF in the header", 0},
    {"a bare CR", OK "A: b\rC: d\r\n\r\n", "a control character in the header", 0},
    {"CR CR LF", OK "A: b\r\r\n\r\n", "a control character in the header", 0},
    {"an escape", OK "A: \x1b[2J\r\n\r\n", "a control character in the header", 0},
    {"DEL", OK "A: \x7f\r\n\r\n", "a control character in the header", 0},
    {"folding", OK "A: b\r\n c\r\n\r\n", "a header field is folded", 0},
    {"by a tab", OK "A: b\r\n\tc\r\n\r\n", "a header field is folded", 0},
    {"a space before the colon", OK "Content-Length : 5\r\n\r\n",
     "a header field is malformed", 0},
    {"no name", OK ": 5\r\n\r\n", "a header field is malformed", 0},
    {"no colon", OK "Content-Length\r\n\r\n", "a header field is malformed", 0},
    {"nine lines",
     OK "A:1\r\nB:2\r\nC:3\r\nD:4\r\nE:5\r\nF:6\r\nG:7\r\nH:8\r\n\r\n",
     "the header has too many lines", 0},
    {"nine trailers",
     OK "Transfer-Encoding: chunked\r\n\r\n0\r\nA:1\r\nB:2\r\nC:3\r\nD:4\r\nE:5\r\nF:6\r\n"
        "G:7\r\nH:8\r\nI:9\r\n\r\n",
     "the header has too many lines", 0},
    {"a folded trailer", OK "Transfer-Encoding: chunked\r\n\r\n0\r\n A: b\r\n\r\n",
     "a header field is folded", 0},
    {"a chunk beyond the limit", OK "Transfer-Encoding: chunked\r\n\r\n29\r\n",
     "a chunk is too large", 0},
    {"the sum of chunks beyond it",
     OK "Transfer-Encoding: chunked\r\n\r\n14\r\n01234567890123456789\r\n15\r\n",
     "a chunk is too large", 0},
    {"a huge chunk", OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
     "a chunk is too large", 0},
    {"no size of a chunk", OK "Transfer-Encoding: chunked\r\n\r\n\r\n",
     "a chunk's size is malformed", 0},
    {"a size that is no number", OK "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello",
     "a chunk's size is malformed", 0},
    {"a negative one", OK "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello",
     "a chunk's size is malformed", 0},
    {"a chunk's size with a bare LF", OK "Transfer-Encoding: chunked\r\n\r\n5\nhello",
     "a bare LF in the header", 0},
    {"a chunk that is longer", OK "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
     "a chunk does not end where its size says", 0},
    {"a body without end", OK "\r\n0123456789012345678901234567890123456789x",
     "the body is too large", 0},
};

static const struct sample requests[] = {
    {"GET", "GET /status?a=b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /status?a=b ", 0},
    {"POST", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nabc", "POST / ab", 1},
    {"no body without a length", "PUT /x HTTP/1.1\r\nhost:\r\n\r\nabc", "PUT /x ", 3},
    {"any method", "M-SEARCH * HTTP/1.1\r\nHost: a\r\n\r\n", "M-SEARCH * ", 0},
    {"part of one", "GET / HTTP/1.1\r\nHo", "more", 0},
    {"nine digits", "POST / HTTP/1.0\r\nContent-Length: 000000002\r\n\r\nab", "POST / ab",
     0},
    {"no version", "GET /\r\n\r\n", "400 the request line is malformed", 0},
    {"no target", "GET  HTTP/1.1\r\n\r\n", "400 the request line is malformed", 0},
    {"two spaces", "GET /  HTTP/1.1\r\n\r\n", "505 not HTTP/1.1 or HTTP/1.0", 0},
    {"a space in the target", "GET /a b HTTP/1.1\r\n\r\n",
     "505 not HTTP/1.1 or HTTP/1.0", 0},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", "505 not HTTP/1.1 or HTTP/1.0", 0},
    {"an empty line before it", "\r\nGET / HTTP/1.1\r\n",
     "400 the request line is malformed", 0},
    {"a target beyond ASCII", "GET /\xc3\xbc HTTP/1.1\r\n\r\n",
     "400 the request line is malformed", 0},
    {"a method with a colon", "GET: / HTTP/1.1\r\n\r\n",
     "400 the request line is malformed", 0},
    {"chunks in a request",
     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "501 a transfer coding that is not accepted", 0},
    {"chunks and a length",
     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     "501 a transfer coding that is not accepted", 0},
    {"a coded body",
     "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n",
     "415 a content coding that was not asked for", 0},
    {"two lengths in a request",
     "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
     "400 two Content-Lengths", 0},
    {"the same length twice",
     "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
     "400 two Content-Lengths", 0},
    {"a list of lengths", "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na",
     "400 Content-Length is malformed", 0},
    {"a length with a sign", "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na",
     "400 Content-Length is malformed", 0},
    {"no digit", "POST / HTTP/1.1\r\nContent-Length:\r\n\r\na",
     "400 Content-Length is malformed", 0},
    {"ten digits", "POST / HTTP/1.1\r\nContent-Length: 0000000001\r\n\r\na",
     "400 Content-Length is malformed", 0},
    {"no length", "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
     "411 POST without Content-Length", 0},
    {"a large body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 41\r\n\r\n",
     "413 the body is too large", 0},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", "400 no Host", 0},
    {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n", "400 two Hosts", 0},
    {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
     "400 two Hosts", 0},
    {"eight fields", "GET / HTTP/1.1\r\nA:1\r\nB:2\r\nC:3\r\nD:4\r\nE:5\r\nF:6\r\nG:7\r\nH:8\r\n",
     "431 the header has too many lines", 0},
    {"a long request line",
     "GET /ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
     "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
     "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
     "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp",
     "414 the header is too large", 0},
    {"a long field",
     "GET / HTTP/1.1\r\nA: pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
     "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
     "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
     "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp",
     "431 the header is too large", 0},
    {"folding", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "400 a header field is folded",
     0},
    {"a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
     "400 a header field is malformed", 0},
    {"a bare LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", "400 a bare LF in the header", 0},
    {"a bare CR", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
     "400 a control character in the header", 0},
    {"a control", "GET / HTTP/1.1\r\nHost: \x01\r\n\r\n",
     "400 a control character in the header", 0},
    {"a TLS client hello", "\x16\x03\x01\x02\n", "400 a bare LF in the header", 0},
};

static void
describe(struct http_reader *reader, enum progress progress, char *out, size_t size)
{
    const char *ended = "";
    if (progress == PROGRESS_MORE && reader->stage == HTTP_UNTIL_END) {
        progress = http_reader_end(reader);
        ended = "end: ";
    }
    if (progress == PROGRESS_BAD && reader->kind == HTTP_REQUEST)
        snprintf(out, size, "%u %s", reader->refusal, reader->error);
    else if (progress == PROGRESS_BAD)
        snprintf(out, size, "%s", reader->error);
    else if (progress == PROGRESS_MORE)
        snprintf(out, size, "more");
    else if (reader->kind == HTTP_RESPONSE)
        snprintf(out, size, "%s%u %.*s", ended, reader->status,
                 TEXT_ARGS(buffer_text(&reader->body)));
    else
        snprintf(out, size, "%.*s %.*s %.*s", TEXT_ARGS(reader->method),
                 TEXT_ARGS(reader->target), TEXT_ARGS(buffer_text(&reader->body)));
}

/* In pieces of that size, each in memory of its own. */
static void
read_sample(enum http_kind kind, const struct sample *sample, size_t piece, char *out,
            size_t size, size_t *rest)
{
    struct text all = text_from(sample->bytes);
    enum progress progress = PROGRESS_MORE;
    FIXTURE(http_reader, reader, http_reader_init, http_reader_free, kind, &limits);
    *rest = all.length;
    while (*rest > 0 && progress == PROGRESS_MORE) {
        char *copy = text_string(text_before(text_after(all, all.length - *rest), piece));
        struct text part = text_from(copy);
        size_t before = part.length;
        progress = http_reader_add(&reader, &part);
        *rest -= before - part.length;
        if (progress == PROGRESS_MORE && part.length > 0)
            ok_named(false, "all is taken");
        free(copy);
    }
    describe(&reader, progress, out, size);
}

static void
test_samples(enum http_kind kind, const struct sample *samples, size_t count)
{
    static const size_t pieces[] = {SIZE_MAX, 1, 2, 7};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++) {
            char out[400];
            size_t rest;
            read_sample(kind, &samples[i], pieces[k], out, sizeof(out), &rest);
            is_string(out, samples[i].outcome, samples[i].name);
            if (k == 0 && (out[0] == '2' || samples[i].rest > 0))
                is_number(rest, samples[i].rest, "  what follows is left alone");
        }
}

#define STREAM "POST /s HTTP/1.1\r\nHost: h\r\n"

/* Bodies that stream may be larger than others, and in chunks; the caller takes them out. */
TEST(streams)
{
    static const struct sample streaming[] = {
        {"a length", STREAM "Content-Length: 60\r\n\r\n012345678901234567890123456789012345678901234567890123456789", "60", 0},
        {"chunks", STREAM "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: u\r\n\r\n", "5", 0},
        {"with a query", "POST /s?a=b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "0", 0},
        {"beyond its limit", STREAM "Content-Length: 101\r\n\r\n", "413 the body is too large", 0},
        {"in chunks", STREAM "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n62\r\n", "413 a chunk is too large", 0},
        {"both", STREAM "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "400 Content-Length together with Transfer-Encoding", 0},
        {"neither", STREAM "\r\n", "411 POST without Content-Length", 0},
        {"another path", "POST /t HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "501 a transfer coding that is not accepted", 0},
        {"a path below", "POST /s/t HTTP/1.1\r\nHost: h\r\nContent-Length: 60\r\n\r\n", "413 the body is too large", 0},
        {"GET", "GET /s HTTP/1.1\r\nHost: h\r\nContent-Length: 60\r\n\r\n", "413 the body is too large", 0},
        {"a cut", STREAM "Transfer-Encoding: chunked\r\n\r\n3\r\nab", "more", 0},
    };
    for (size_t i = 0; i < sizeof(streaming) / sizeof(streaming[0]); i++)
        for (size_t piece = 1; piece < 100; piece += 33) {
            struct text all = text_from(streaming[i].bytes);
            enum progress progress = PROGRESS_MORE;
            char out[100] = "more";
            size_t taken = 0;
            FIXTURE(http_reader, reader, http_reader_init, http_reader_free, HTTP_REQUEST, &limits);
            http_reader_stream(&reader, "/s", 100);
            for (; all.length > 0 && progress == PROGRESS_MORE; all = text_after(all, piece)) {
                struct text part = text_before(all, piece);
                progress = http_reader_add(&reader, &part);
                taken += reader.body.length;
                buffer_clear(&reader.body);
            }
            if (progress == PROGRESS_BAD)
                snprintf(out, sizeof(out), "%u %s", reader.refusal, reader.error);
            else if (progress == PROGRESS_DONE)
                snprintf(out, sizeof(out), "%zu", taken);
            is_string(out, streaming[i].outcome, streaming[i].name);
        }
}

/* Each beginning of a message that is whole wants more, and its end says so. */
TEST(cut)
{
    static const char whole[] = OK "Transfer-Encoding: chunked\r\nA: b\r\n\r\n"
                                   "3;x\r\nabc\r\n0\r\nT: u\r\n\r\n";
    size_t head = (size_t)(strstr(whole, "\r\n\r\n") - whole) + 4;
    int wrong = 0;
    for (size_t length = 0; length < sizeof(whole) - 1; length++) {
        struct text part = text_of(whole, length);
        FIXTURE(http_reader, reader, http_reader_init, http_reader_free, HTTP_RESPONSE, &limits);
        wrong += http_reader_add(&reader, &part) != PROGRESS_MORE;
        wrong += http_reader_has_head(&reader) != (length >= head);
        wrong += http_reader_end(&reader) != PROGRESS_BAD;
        wrong += strstr(reader.error, length < head ? "header" : "body") == NULL;
    }
    is_number(wrong, 0, "a message that is cut anywhere is refused");
}

TEST(nul)
{
    static const char bytes[] = OK "A: b\0c\r\n\r\n";
    struct text part = text_of(bytes, sizeof(bytes) - 1);
    FIXTURE(http_reader, reader, http_reader_init, http_reader_free, HTTP_RESPONSE, &limits);
    is_number(http_reader_add(&reader, &part), PROGRESS_BAD, "a NUL");
    is_string(reader.error, "a control character in the header", "  is refused");
    is_number(http_reader_add(&reader, &part), PROGRESS_BAD, "  for good");
}

/* A head without an end, a line without one, interim responses without one. */
TEST(endless)
{
    static const struct {
        const char *piece, *error;
    } rows[] = {
        {"x", "the header is too large"},
        {"HTTP/1.1 100 Continue\r\n\r\n", "too many interim responses"},
        {OK "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"
            "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n",
         "the header is too large"},
        {OK "Transfer-Encoding: chunked\r\n\r\n"
            "1;bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n",
         "the header is too large"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t fed = 0;
        FIXTURE(http_reader, reader, http_reader_init, http_reader_free, HTTP_RESPONSE, &limits);
        for (enum progress p = PROGRESS_MORE; p == PROGRESS_MORE && fed < 10000;) {
            struct text part = text_from(rows[i].piece);
            fed += part.length;
            p = http_reader_add(&reader, &part);
        }
        is_string(reader.error, rows[i].error, "without end");
        ok_named(fed < 700, "  and soon refused");
    }
}

TEST(fields)
{
    struct text input = TEXT(OK "A: 1\r\nRetry-After:\t 120 \r\na: 2\r\n"
                                "Empty:\r\nContent-Length: 0\r\n\r\n");
    struct text name, value, rest;
    struct http_reader reader;
    int count = 0;
    http_reader_init(&reader, HTTP_RESPONSE, &limits);
    is_number(http_reader_add(&reader, &input), PROGRESS_DONE, "fields");
    is_text(http_reader_field(&reader, TEXT("retry-after")), TEXT("120"), "by name");
    is_text(http_reader_field(&reader, TEXT("A")), TEXT("1"), "the first of two");
    is_number(http_reader_field(&reader, TEXT("Empty")).length, 0, "an empty one");
    ok(http_reader_field(&reader, TEXT("Empty")).at != NULL);
    ok(http_reader_field(&reader, TEXT("None")).at == NULL);
    for (rest = http_reader_fields(&reader); http_field_next(&rest, &name, &value);)
        count++;
    is_number(count, 5, "all of them");
    http_reader_free(&reader);

    http_reader_init(&reader, HTTP_RESPONSE, &limits);
    input = TEXT("HTTP/1.1 103 Hints\r\nA: early\r\n\r\n" OK "Content-Length: 3\r\n\r\n");
    reader.expects_no_body = true;
    is_number(http_reader_add(&reader, &input), PROGRESS_DONE, "the response to HEAD");
    ok_named(http_reader_field(&reader, TEXT("A")).at == NULL,
             "fields of an interim response are gone");
    http_reader_free(&reader);
}

TEST(urls)
{
    static const struct {
        const char *url, *outcome;
    } rows[] = {
        {"https://a.example", "443 s a.example /"},
        {"HTTPS://A.Example.:8443/b/c?d=e", "8443 s a.example /b/c?d=e"},
        {"https://a.example?x=1", "443 s a.example ?x=1"},
        {"http://127.0.0.1:80/", "80 - 127.0.0.1 /"},
        {"http://relay/x", "80 - relay /x"},
        {"https://[2001:db8::1]:444/x", "444 s 2001:db8::1 /x"},
        {"https://[::1]", "443 s ::1 /"},
        {"", "the URL does not begin with https://"},
        {"ftp://a.example/", "the URL does not begin with https://"},
        {"https:/a.example/", "the URL does not begin with https://"},
        {"https://", "the URL has no valid host"},
        {"https:///x", "the URL has no valid host"},
        {"https://:443/", "the URL has no valid host"},
        {"https://[::1/", "the URL has no valid host"},
        {"https://[127.0.0.1]/", "the URL has no valid host"},
        {"https://a_b..c/", "the URL has no valid host"},
        {"https://a%2eb/", "the URL has no valid host"},
        {"https://::1/", "the URL has no valid host"},
        {"https://a.example:/", "the URL has no valid port"},
        {"https://a.example:0/", "the URL has no valid port"},
        {"https://a.example:65536/", "the URL has no valid port"},
        {"https://[::1]443/", "the URL has no valid port"},
        {"https://user:pass@a.example/", "the URL has a user name"},
        {"https://a.example/#x", "the URL has a fragment"},
        {"https://a.example/a b", "the URL has a character that must be encoded"},
        {"https://a.example/\r\nX: y", "the URL has a character that must be encoded"},
        {"https://b\xc3\xbc.example/", "the URL has a character that must be encoded"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_url url;
        const char *why = "";
        char out[400];
        if (http_url_parse(text_from(rows[i].url), &url, &why))
            snprintf(out, sizeof(out), "%u %s %s %.*s", url.port, url.secure ? "s" : "-",
                     url.host, TEXT_ARGS(url.path));
        else
            snprintf(out, sizeof(out), "%s", why);
        is_string(out, rows[i].outcome, rows[i].url);
    }
    struct http_url url;
    const char *why = "";
    char *huge = calloc(1, HTTP_URL_MAX + 2);
    memset(huge, 'a', HTTP_URL_MAX + 1);
    memcpy(huge, "https://a/", 10);
    ok(!http_url_parse(text_from(huge), &url, &why));
    is_string(why, "the URL is too long", "2 KiB is the limit");
    free(huge);
}

TEST(write)
{
    static const struct http_request get = {.method = {"GET", 3}};
    static const struct http_request post = {.method = {"POST", 4},
                                             .type = {"text/x", 6},
                                             .fields = {"A: b\r\n", 6},
                                             .body = {"body", 4}};
    static const struct http_request untyped = {.method = {"POST", 4}, .body = {"GET /", 5}};
    static const struct {
        const char *url;
        const struct http_request *request;
        const char *head, *tail;
    } rows[] = {
        {"https://a.example", &get, "GET / HTTP/1.1\r\nHost: a.example\r\n",
         "Connection: close\r\n\r\n"},
        {"https://a.example?b", &get, "GET /?b HTTP/1.1\r\nHost: a.example\r\n",
         "Connection: close\r\n\r\n"},
        {"https://a.example:444/c", &post,
         "POST /c HTTP/1.1\r\nHost: a.example:444\r\n",
         "Connection: close\r\nA: b\r\nContent-Type: text/x\r\nContent-Length: 4\r\n\r\n"
         "body"},
        {"https://a.example/d", &untyped, "POST /d HTTP/1.1\r\nHost: a.example\r\n",
         "Connection: close\r\nContent-Length: 0\r\n\r\n"},
        {"http://[::1]:443/c", &get, "GET /c HTTP/1.1\r\nHost: [::1]:443\r\n",
         "Connection: close\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_url url;
        struct http_reader reader;
        struct buffer out;
        const char *why = "";
        char want[400];
        buffer_init(&out, 1000);
        snprintf(want, sizeof(want),
                 "%sUser-Agent: petrel\r\nAccept-Encoding: identity\r\n%s", rows[i].head,
                 rows[i].tail);
        ok(http_url_parse(text_from(rows[i].url), &url, &why));
        ok(http_request_write(&out, &url, rows[i].request));
        is_text(buffer_text(&out), text_from(want), rows[i].url);
        struct text input = buffer_text(&out);
        http_reader_init(&reader, HTTP_REQUEST, &limits);
        is_number(http_reader_add(&reader, &input), PROGRESS_DONE, "our reader takes it");
        is_number(input.length, 0, "  to the end");
        is_text(buffer_text(&reader.body),
                rows[i].request->type.length > 0 ? rows[i].request->body : TEXT(""),
                "with its body");
        http_reader_free(&reader);
        buffer_free(&out);
        for (size_t limit = 0; limit < strlen(want); limit += 13) {
            buffer_init(&out, limit);
            ok_named(!http_request_write(&out, &url, rows[i].request), "no space");
            buffer_free(&out);
        }
    }
}

int
main(void)
{
    test_samples(HTTP_RESPONSE, responses, sizeof(responses) / sizeof(responses[0]));
    test_samples(HTTP_REQUEST, requests, sizeof(requests) / sizeof(requests[0]));
    tap_tests("");
    return done();
}
