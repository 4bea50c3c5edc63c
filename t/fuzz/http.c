/* Fuzz target: HTTP heads and bodies, requests and responses; URLs, and the requests for
 * them. The verdict does not depend on the pieces that the input comes in, nothing grows
 * beyond its limit, and fields are well formed. */
#include "base/http/http.h"
#include "base/http/http_retry.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_limits limits = {6, 500, 200};

static void
check_fields(const struct http_reader *reader)
{
    struct text rest = http_reader_fields(reader), name, value;
    size_t count = 0;
    while (http_field_next(&rest, &name, &value)) {
        must(name.length > 0 && text_find(name, ' ') == TEXT_NONE);
        must(text_find(value, '\r') == TEXT_NONE &&
             text_find(value, '\n') == TEXT_NONE);
        must(text_find(value, '\0') == TEXT_NONE);
        must(http_reader_field(reader, name).at != NULL);
        count++;
    }
    must(rest.length == 0 && count < limits.lines);
}

/* In pieces of that size, each in memory of its own; returns what was taken. */
static size_t
feed(struct http_reader *reader, struct text all, size_t piece, enum progress *progress)
{
    size_t taken = 0;
    *progress = PROGRESS_MORE;
    while (*progress == PROGRESS_MORE && taken < all.length) {
        struct text part = text_before(text_after(all, taken), piece);
        char *copy = malloc(part.length);
        must(copy != NULL);
        memcpy(copy, part.at, part.length);
        struct text input = text_of(copy, part.length);
        *progress = http_reader_add(reader, &input);
        taken += part.length - input.length;
        must(*progress != PROGRESS_MORE || input.length == 0);
        free(copy);
    }
    return taken;
}

/* For any accepted URL our own reader finds one request for that path and host. */
static void
check_url(struct text t)
{
    static const struct http_limits wide = {HTTP_LINES_MAX, HTTP_HEAD_MAX, 100};
    struct http_request post = {TEXT("POST"), TEXT("a/b"), TEXT("C: d\r\n"),
                                TEXT("body")};
    struct http_reader reader;
    struct http_url url;
    struct buffer out;
    const char *why = NULL;
    if (!http_url_parse(t, &url, &why)) {
        must(why != NULL && !text_has_control(text_from(why)));
        return;
    }
    must(url.host[0] != '\0' && url.port > 0 && url.path.length > 0);
    buffer_init(&out, 4 * HTTP_HEAD_MAX);
    must(http_request_write(&out, &url, &post));
    http_reader_init(&reader, HTTP_REQUEST, &wide);
    struct text input = buffer_text(&out);
    must(http_reader_add(&reader, &input) == PROGRESS_DONE && input.length == 0);
    must(text_ends_nocase(reader.target, url.path) && reader.target.at[0] == '/');
    must(reader.target.length - url.path.length <= 1);
    must(text_equal(buffer_text(&reader.body), TEXT("body")));
    struct text host = http_reader_field(&reader, TEXT("Host"));
    struct text name = text_from(url.host);
    must(text_starts(text_after(host, host.at[0] == '['), name));
    http_reader_free(&reader);
    buffer_free(&out);
}

/* The first byte chooses what the rest is, and the pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_reader one, two;
    enum progress first, second;
    if (size == 0)
        return 0;
    enum http_kind kind = data[0] & 1 ? HTTP_REQUEST : HTTP_RESPONSE;
    struct text all = text_of(data + 1, size - 1);
    if (data[0] & 4) {
        check_url(all);
        int64_t after_ms = http_retry_after_ms(all, INT64_C(1750000000000), 3600 * 1000);
        must(after_ms >= -1 && after_ms <= 3600 * 1000);
        return 0;
    }
    http_reader_init(&one, kind, &limits);
    http_reader_init(&two, kind, &limits);
    one.expects_no_body = two.expects_no_body = (data[0] & 2) != 0;
    size_t whole = feed(&one, all, SIZE_MAX, &first);
    size_t parts = feed(&two, all, 1 + (data[0] >> 4), &second);
    must(first == second && one.stage == two.stage && one.status == two.status);
    must(first == PROGRESS_BAD ||
         text_equal(buffer_text(&one.body), buffer_text(&two.body)));
    must(text_equal(buffer_text(&one.head), buffer_text(&two.head)));
    must(first == PROGRESS_BAD || whole == parts);
    must((first == PROGRESS_BAD) == (one.error != NULL));
    must(one.body.length <= limits.body && one.head.length <= limits.head);
    if (http_reader_has_head(&one))
        check_fields(&one);
    if (first == PROGRESS_MORE)
        must(http_reader_end(&one) != PROGRESS_MORE);
    http_reader_free(&one);
    http_reader_free(&two);
    return 0;
}
