/* Reads heads line by line, bodies piece by piece; writes requests. */
#include "base/http/http.h"

#include "base/dns/dns_reply.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { HTTPS_PORT = 443, HTTP_PORT = 80, LENGTH_DIGITS = 9 };
enum {
    STATUS_SWITCHING = 101,
    BAD_REQUEST = 400,
    LENGTH_REQUIRED = 411,
    CONTENT_TOO_LARGE = 413,
    URI_TOO_LONG = 414,
    UNSUPPORTED_TYPE = 415,
    HEADER_TOO_LARGE = 431,
    NOT_IMPLEMENTED = 501,
    VERSION_NOT_SUPPORTED = 505
};

/* --- URL ------------------------------------------------------------------------- */

static bool
http_url_refuse(const char **why, const char *sentence)
{
    *why = sentence;
    return false;
}

static bool
http_is_printable(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] <= ' ' || t.at[i] > '~')
            return false;
    return true;
}

/* Cuts "[::1]" or "name" off *rest, a ":port" stays. */
static bool
http_url_host(struct text *rest, struct http_url *out)
{
    struct net_address address;
    size_t end;
    if (rest->length > 0 && rest->at[0] == '[') {
        end = text_find(*rest, ']');
        struct text literal = text_before(text_after(*rest, 1), end - 1);
        if (end == TEXT_NONE || !net_address_parse_ip(literal, &address) ||
            address.family != NET_IPV6)
            return false;
        *rest = text_after(*rest, end + 1);
        return text_copy(out->host, sizeof(out->host), literal);
    }
    end = text_find(*rest, ':');
    struct text name = end == TEXT_NONE ? *rest : text_before(*rest, end);
    *rest = text_after(*rest, name.length);
    return dns_host_copy(out->host, name);
}

static bool
http_url_port(struct text rest, struct http_url *out)
{
    uint64_t port = out->secure ? HTTPS_PORT : HTTP_PORT;
    if (rest.length > 0 &&
        (rest.at[0] != ':' || !text_number(text_after(rest, 1), UINT16_MAX, &port)))
        return false;
    out->port = (uint16_t)port;
    return port > 0;
}

bool
http_url_parse(struct text url, struct http_url *out, const char **why)
{
    struct text rest, authority;
    size_t end = 0;
    *out = (struct http_url){.secure = text_starts_nocase(url, TEXT("https://"))};
    if (!out->secure && !text_starts_nocase(url, TEXT("http://")))
        return http_url_refuse(why, "the URL does not begin with https://");
    if (url.length > HTTP_URL_MAX)
        return http_url_refuse(why, "the URL is too long");
    if (!http_is_printable(url))
        return http_url_refuse(why, "the URL has a character that must be encoded");
    if (text_find(url, '#') != TEXT_NONE)
        return http_url_refuse(why, "the URL has a fragment");
    rest = text_after(url, text_find(url, ':') + 3);
    while (end < rest.length && rest.at[end] != '/' && rest.at[end] != '?')
        end++;
    authority = text_before(rest, end);
    out->path = text_after(rest, end);
    if (text_find(authority, '@') != TEXT_NONE)
        return http_url_refuse(why, "the URL has a user name");
    if (!http_url_host(&authority, out))
        return http_url_refuse(why, "the URL has no valid host");
    if (!http_url_port(authority, out))
        return http_url_refuse(why, "the URL has no valid port");
    if (out->path.length == 0)
        out->path = TEXT("/");
    return true;
}

bool
http_url_is_private(const char *host)
{
    struct net_address address;
    if (net_address_parse_ip(text_from(host), &address))
        return !net_address_is_public(&address);
    return strchr(host, '.') == NULL;
}

/* --- Request --------------------------------------------------------------------- */

static bool
http_write_host(struct buffer *out, const struct http_url *url)
{
    bool six = strchr(url->host, ':') != NULL;
    return buffer_format(out, six ? "Host: [%s]" : "Host: %s", url->host) &&
           (url->port == (url->secure ? HTTPS_PORT : HTTP_PORT) ||
            buffer_format(out, ":%u", url->port)) &&
           buffer_add(out, TEXT("\r\n"));
}

bool
http_request_write(struct buffer *out, const struct http_url *url,
                   const struct http_request *request)
{
    bool query_only = url->path.at[0] == '?';
    bool has_body =
        request->type.length > 0; /* otherwise it would be another request */
    return buffer_format(out, "%.*s %s%.*s HTTP/1.1\r\n", TEXT_ARGS(request->method),
                         query_only ? "/" : "", TEXT_ARGS(url->path)) &&
           http_write_host(out, url) &&
           buffer_add(out, TEXT("User-Agent: petrel\r\nAccept-Encoding: identity\r\n"
                                "Connection: close\r\n")) &&
           buffer_add(out, request->fields) &&
           (!has_body ||
            buffer_format(out, "Content-Type: %.*s\r\nContent-Length: %" PRId64 "\r\n",
                          TEXT_ARGS(request->type),
                          (int64_t)request->body.length + request->more)) &&
           (has_body || !text_equal(request->method, TEXT("POST")) ||
            buffer_add(out, TEXT("Content-Length: 0\r\n"))) &&
           buffer_add(out, TEXT("\r\n")) &&
           (!has_body || buffer_add(out, request->body));
}

/* --- Fields ---------------------------------------------------------------------- */

struct text
http_reader_fields(const struct http_reader *reader)
{
    return text_after(buffer_text(&reader->head), reader->start_line);
}

bool
http_field_next(struct text *rest, struct text *name, struct text *value)
{
    size_t colon = text_find(*rest, ':'), end = text_find(*rest, '\n');
    if (end == TEXT_NONE || colon > end)
        return false;
    *name = text_before(*rest, colon);
    *value = text_trim(text_after(text_before(*rest, end), colon + 1));
    *rest = text_after(*rest, end + 1);
    return true;
}

struct text
http_reader_field(const struct http_reader *reader, struct text name)
{
    struct text rest = http_reader_fields(reader), found, value;
    while (http_field_next(&rest, &found, &value))
        if (text_equal_nocase(found, name))
            return value;
    return (struct text){NULL, 0};
}

/* --- Lines ----------------------------------------------------------------------- */

static bool
http_refuse_as(struct http_reader *reader, unsigned status, const char *sentence)
{
    reader->error = sentence;
    reader->refusal = status;
    reader->stage = HTTP_REFUSED;
    return false;
}

static bool
http_refuse(struct http_reader *reader, const char *sentence)
{
    return http_refuse_as(reader, BAD_REQUEST, sentence);
}

static bool
http_refuse_large_head(struct http_reader *reader)
{
    return http_refuse_as(
        reader, reader->stage == HTTP_START_LINE ? URI_TOO_LONG : HEADER_TOO_LARGE,
        "the header is too large");
}

/* A token of RFC 9110 §5.6.2. */
static bool
http_is_token(struct text t)
{
    for (size_t i = 0; i < t.length; i++) {
        char c = t.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !text_is_digit(c) &&
            (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return t.length > 0;
}

static bool
http_read_version(struct http_reader *reader, struct text version)
{
    if (!text_equal(version, TEXT("HTTP/1.1")) &&
        !text_equal(version, TEXT("HTTP/1.0")))
        return http_refuse_as(reader, VERSION_NOT_SUPPORTED,
                              "not HTTP/1.1 or HTTP/1.0");
    reader->minor = version.at[7] == '1';
    return true;
}

static bool
http_read_status_line(struct http_reader *reader, struct text line)
{
    struct text version = text_before(line, 8), rest = text_after(line, 8);
    struct text digits = text_before(text_after(rest, 1), 3);
    uint64_t status = 0;
    if (!http_read_version(reader, version))
        return false;
    if (rest.length < 4 || rest.at[0] != ' ' || digits.length != 3 ||
        !text_number(digits, 599, &status) || status < 100 ||
        (rest.length > 4 && rest.at[4] != ' '))
        return http_refuse(reader, "the status line is malformed");
    reader->status = (unsigned)status;
    return status != STATUS_SWITCHING ||
           http_refuse(reader, "the server changes the protocol");
}

/* The slices point into head, whose memory may move: set when the head is complete. */
static bool
http_read_request_line(struct http_reader *reader, struct text line)
{
    struct text rest = line;
    if (!text_cut(&rest, ' ', &reader->method) ||
        !text_cut(&rest, ' ', &reader->target) || rest.at == NULL ||
        !http_is_token(reader->method) || reader->target.length == 0 ||
        !http_is_printable(reader->target))
        return http_refuse(reader, "the request line is malformed");
    return http_read_version(reader, rest);
}

static bool
http_read_field_line(struct http_reader *reader, struct text line)
{
    size_t colon = text_find(line, ':');
    if (text_is_blank(line.at[0]))
        return http_refuse(reader, "a header field is folded");
    return (colon != TEXT_NONE && http_is_token(text_before(line, colon))) ||
           http_refuse(reader, "a header field is malformed");
}

/* --- Framing --------------------------------------------------------------------- */

/* Equal values may be repeated, in a list, too (RFC 9110 §8.6). */
static bool
http_read_length(struct http_reader *reader, struct text list, bool *found,
                 uint64_t *length)
{
    struct text item;
    uint64_t one;
    while (text_cut(&list, ',', &item)) {
        if (!text_number(text_trim(item), SIZE_MAX / 2, &one))
            return http_refuse(reader, "Content-Length is malformed");
        if (*found && one != *length)
            return http_refuse(reader, "two different Content-Lengths");
        *found = true;
        *length = one;
    }
    return true;
}

struct framing {
    bool chunked, sized;
    uint64_t length;
    unsigned hosts;
};

/* For a request. */
static bool
http_read_one_length(struct http_reader *reader, struct text value,
                     struct framing *framing)
{
    if (framing->sized)
        return http_refuse(reader, "two Content-Lengths");
    framing->sized = true;
    return (value.length <= LENGTH_DIGITS &&
            text_number(value, SIZE_MAX / 2, &framing->length)) ||
           http_refuse(reader, "Content-Length is malformed");
}

/* RFC 9112 §3.2. */
static bool
http_check_request(struct http_reader *reader, const struct framing *framing)
{
    if (framing->hosts > 1)
        return http_refuse(reader, "two Hosts");
    if (framing->hosts == 0 && reader->minor == 1)
        return http_refuse(reader, "no Host");
    return framing->sized || framing->chunked ||
           !text_equal(reader->method, TEXT("POST")) ||
           http_refuse_as(reader, LENGTH_REQUIRED, "POST without Content-Length");
}

static bool
http_read_framing(struct http_reader *reader, struct framing *framing)
{
    struct text rest = http_reader_fields(reader), name, value;
    bool answer = reader->kind == HTTP_RESPONSE;
    while (http_field_next(&rest, &name, &value)) {
        if (text_equal_nocase(name, TEXT("Content-Length"))) {
            if (answer ? !http_read_length(reader, value, &framing->sized,
                                           &framing->length)
                       : !http_read_one_length(reader, value, framing))
                return false;
        } else if (text_equal_nocase(name, TEXT("Host"))) {
            framing->hosts++;
        } else if (text_equal_nocase(name, TEXT("Transfer-Encoding"))) {
            if ((!answer && !reader->streams) || framing->chunked ||
                reader->minor == 0 || !text_equal_nocase(value, TEXT("chunked")))
                return http_refuse_as(reader, NOT_IMPLEMENTED,
                                      "a transfer coding that is not accepted");
            framing->chunked = true;
        } else if (text_equal_nocase(name, TEXT("Content-Encoding")) &&
                   !text_equal_nocase(value, TEXT("identity"))) {
            return http_refuse_as(reader, UNSUPPORTED_TYPE,
                                  "a content coding that was not asked for");
        }
    }
    if (framing->chunked && framing->sized)
        return http_refuse(reader, "Content-Length together with Transfer-Encoding");
    return answer || http_check_request(reader, framing);
}

static void
http_find_stream(struct http_reader *reader)
{
    struct text path = text_before(reader->target, text_find(reader->target, '?'));
    reader->streams = reader->stream_path != NULL &&
                      text_equal(reader->method, TEXT("POST")) &&
                      text_equal(path, text_from(reader->stream_path));
    if (reader->streams)
        reader->body.limit = HTTP_STREAM_PIECE;
}

static size_t
http_body_max(const struct http_reader *reader)
{
    return reader->streams ? reader->stream_max : reader->limits.body;
}

static bool
http_is_interim(const struct http_reader *reader)
{
    return reader->kind == HTTP_RESPONSE && reader->status < 200;
}

static void
http_next_head(struct http_reader *reader)
{
    if (++reader->interim > HTTP_INTERIM_MAX) {
        http_refuse(reader, "too many interim responses");
        return;
    }
    buffer_clear(&reader->head);
    reader->lines = reader->octets = 0;
    reader->stage = HTTP_START_LINE;
}

/* RFC 9112 §6.3. */
static void
http_head_complete(struct http_reader *reader)
{
    struct framing framing = {0};
    bool answer = reader->kind == HTTP_RESPONSE;
    if (!answer)
        (void)http_read_request_line(
            reader, text_without_line_end(
                        text_before(buffer_text(&reader->head), reader->start_line)));
    if (!answer)
        http_find_stream(reader);
    reader->has_head = !http_is_interim(reader);
    if (!http_read_framing(reader, &framing))
        return;
    reader->lines = reader->octets = 0;
    reader->left = (size_t)framing.length;
    if (http_is_interim(reader))
        http_next_head(reader);
    else if (answer && (reader->expects_no_body || reader->status == 204 ||
                        reader->status == 304))
        reader->stage = HTTP_DONE;
    else if (framing.length > http_body_max(reader))
        http_refuse_as(reader, CONTENT_TOO_LARGE, "the body is too large");
    else if (framing.chunked)
        reader->stage = HTTP_CHUNK_SIZE;
    else if (framing.sized || !answer)
        reader->stage = reader->left > 0 ? HTTP_SIZED : HTTP_DONE;
    else
        reader->stage = HTTP_UNTIL_END;
}

/* --- Chunks ---------------------------------------------------------------------- */

static void
http_read_chunk_size(struct http_reader *reader, struct text line)
{
    size_t size = 0, digits = 0;
    while (digits < line.length && text_hex_digit(line.at[digits]) >= 0) {
        size = size * 16 + (size_t)text_hex_digit(line.at[digits++]);
        if (size > http_body_max(reader) - reader->taken) {
            http_refuse_as(reader, CONTENT_TOO_LARGE, "a chunk is too large");
            return;
        }
    }
    struct text extension = text_trim(text_after(line, digits));
    if (digits == 0 || (extension.length > 0 && extension.at[0] != ';')) {
        http_refuse(reader, "a chunk's size is malformed");
        return;
    }
    reader->left = size;
    reader->stage = size > 0 ? HTTP_CHUNK : HTTP_TRAILERS;
}

/* --- The reader ------------------------------------------------------------------ */

static void
http_read_start_line(struct http_reader *reader, struct text line)
{
    bool good = reader->kind == HTTP_REQUEST ? http_read_request_line(reader, line)
                                             : http_read_status_line(reader, line);
    if (good)
        reader->stage = HTTP_FIELDS;
    reader->start_line = line.length + 2;
}

/* line: without its CRLF. */
static void
http_read_line(struct http_reader *reader, struct text line)
{
    switch (reader->stage) {
    case HTTP_START_LINE:
        http_read_start_line(reader, line);
        break;
    case HTTP_FIELDS:
        if (line.length == 0)
            http_head_complete(reader);
        else
            http_read_field_line(reader, line);
        break;
    case HTTP_CHUNK_SIZE:
        http_read_chunk_size(reader, line);
        break;
    case HTTP_CHUNK_END:
        reader->stage = HTTP_CHUNK_SIZE;
        if (line.length > 0)
            http_refuse(reader, "a chunk does not end where its size says");
        break;
    case HTTP_TRAILERS:
        if (line.length == 0)
            reader->stage = HTTP_DONE;
        else
            http_read_field_line(reader, line);
        break;
    case HTTP_SIZED:
    case HTTP_UNTIL_END:
    case HTTP_CHUNK:
    case HTTP_DONE:
    case HTTP_REFUSED:
        assert(false);
    }
}

/* A bare LF, a bare CR, NUL and their like. */
static bool
http_line_is_clean(struct http_reader *reader, struct text line)
{
    if (line.length < 2 || line.at[line.length - 2] != '\r')
        return http_refuse(reader, "a bare LF in the header");
    for (size_t i = 0; i + 2 < line.length; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') ||
            line.at[i] == 0x7f)
            return http_refuse(reader, "a control character in the header");
    return true;
}

/* Trailers are read, not kept. */
static bool
http_count_line(struct http_reader *reader, struct text line)
{
    bool keeps = reader->stage == HTTP_START_LINE || reader->stage == HTTP_FIELDS;
    if (!keeps && reader->stage != HTTP_TRAILERS)
        return true;
    reader->octets += line.length;
    if (line.length > 2 && ++reader->lines > reader->limits.lines)
        return http_refuse_as(reader, HEADER_TOO_LARGE,
                              "the header has too many lines");
    if (keeps && line.length > 2 && !buffer_add(&reader->head, line))
        return http_refuse_large_head(reader);
    return true;
}

static size_t
http_line_max(const struct http_reader *reader)
{
    if (reader->stage == HTTP_CHUNK_SIZE || reader->stage == HTTP_CHUNK_END)
        return HTTP_CHUNK_LINE_MAX;
    return reader->limits.head > reader->octets ? reader->limits.head - reader->octets
                                                : 0;
}

static void
http_take_line(struct http_reader *reader, struct text *input)
{
    size_t end = text_find(*input, '\n');
    struct text part = end == TEXT_NONE ? *input : text_before(*input, end + 1);
    *input = text_after(*input, part.length);
    if (reader->line.length + part.length > http_line_max(reader) ||
        !buffer_add(&reader->line, part)) {
        http_refuse_large_head(reader);
        return;
    }
    if (end == TEXT_NONE)
        return;
    struct text line = buffer_text(&reader->line);
    if (http_line_is_clean(reader, line) && http_count_line(reader, line))
        http_read_line(reader, text_before(line, line.length - 2));
    buffer_clear(&reader->line);
}

static void
http_take_body(struct http_reader *reader, struct text *input)
{
    bool counted = reader->stage != HTTP_UNTIL_END;
    struct text part = counted ? text_before(*input, reader->left) : *input;
    *input = text_after(*input, part.length);
    if (!buffer_add(&reader->body, part)) {
        http_refuse_as(reader, CONTENT_TOO_LARGE, "the body is too large");
        return;
    }
    reader->taken += part.length;
    if (!counted || (reader->left -= part.length) > 0)
        return;
    reader->stage = reader->stage == HTTP_CHUNK ? HTTP_CHUNK_END : HTTP_DONE;
}

static enum progress
http_reader_progress(const struct http_reader *reader)
{
    if (reader->stage == HTTP_REFUSED)
        return PROGRESS_BAD;
    return reader->stage == HTTP_DONE ? PROGRESS_DONE : PROGRESS_MORE;
}

/* --- public ---------------------------------------------------------------------- */

void
http_reader_init(struct http_reader *reader, enum http_kind kind,
                 const struct http_limits *limits)
{
    assert(limits->lines <= HTTP_LINES_MAX && limits->head <= HTTP_HEAD_MAX &&
           limits->body <= HTTP_BODY_MAX);
    *reader = (struct http_reader){.kind = kind, .limits = *limits};
    buffer_init(&reader->head, limits->head);
    buffer_init(&reader->body, limits->body);
    buffer_init(&reader->line, limits->head > HTTP_CHUNK_LINE_MAX
                                   ? limits->head
                                   : HTTP_CHUNK_LINE_MAX);
}

void
http_reader_stream(struct http_reader *reader, const char *path, size_t max)
{
    reader->stream_path = path;
    reader->stream_max = max;
}

void
http_reader_free(struct http_reader *reader)
{
    buffer_free(&reader->head);
    buffer_free(&reader->body);
    buffer_free(&reader->line);
}

enum progress
http_reader_add(struct http_reader *reader, struct text *input)
{
    enum progress progress;
    while ((progress = http_reader_progress(reader)) == PROGRESS_MORE &&
           input->length > 0) {
        if (reader->stage == HTTP_SIZED || reader->stage == HTTP_CHUNK ||
            reader->stage == HTTP_UNTIL_END)
            http_take_body(reader, input);
        else
            http_take_line(reader, input);
    }
    return progress;
}

enum progress
http_reader_end(struct http_reader *reader)
{
    if (reader->stage == HTTP_UNTIL_END)
        reader->stage = HTTP_DONE;
    else if (reader->stage < HTTP_DONE)
        http_refuse(reader, http_reader_has_head(reader)
                                ? "the connection ended within the body"
                                : "the connection ended within the header");
    return http_reader_progress(reader);
}

bool
http_reader_has_head(const struct http_reader *reader)
{
    return reader->stage > HTTP_FIELDS && reader->stage < HTTP_REFUSED;
}
