/* Writes answers. */
#include "admin/http/http_exchange.h"

#include "base/memory.h"

#include <stdlib.h>

void
http_exchange_wake(struct http_exchange *x)
{
    x->wake(x->wake_context);
}

const char *
http_exchange_parameters(const struct http_exchange *x,
                         const char *(*read)(void *context,
                                             const struct http_parameter *parameter),
                         void *context)
{
    struct http_parameter *p = memory_new(sizeof(*p));
    struct text rest = x->target.query;
    const char *why = NULL;
    while (why == NULL && http_parameter_next(&rest, p))
        why = read(context, p);
    free(p);
    return why;
}

json_t *
http_exchange_body(const struct http_exchange *x)
{
    struct text body = buffer_text(&x->request->body);
    return json_loadb(body.length > 0 ? body.at : "", body.length,
                      JSON_REJECT_DUPLICATES, NULL);
}

static const char *
http_status_phrase(unsigned status)
{
    static const struct {
        unsigned status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"                             },
        {202, "Accepted"                       },
        {400, "Bad Request"                    },
        {401, "Unauthorized"                   },
        {403, "Forbidden"                      },
        {404, "Not Found"                      },
        {405, "Method Not Allowed"             },
        {406, "Not Acceptable"                 },
        {408, "Request Timeout"                },
        {409, "Conflict"                       },
        {411, "Length Required"                },
        {413, "Content Too Large"              },
        {414, "URI Too Long"                   },
        {415, "Unsupported Media Type"         },
        {417, "Expectation Failed"             },
        {421, "Misdirected Request"            },
        {422, "Unprocessable Content"          },
        {429, "Too Many Requests"              },
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"          },
        {501, "Not Implemented"                },
        {503, "Service Unavailable"            },
        {505, "HTTP Version Not Supported"     },
    };
    for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Error";
}

void
http_answer_json(struct http_exchange *x, unsigned status, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    http_answer_text(x, status, text);
}

void
http_answer_text(struct http_exchange *x, unsigned status, char *text)
{
    buffer_clear(&x->body);
    x->status = status;
    x->type = "application/json";
    /* NULL: some text in it is no UTF-8. */
    if (text == NULL || !buffer_add(&x->body, text_from(text)) ||
        !buffer_add_byte(&x->body, '\n')) {
        buffer_clear(&x->body);
        x->status = 500;
        (void)!buffer_add(
            &x->body, TEXT("{\"ok\":false,\"error\":\"cannot be written as JSON\"}\n"));
    }
    free(text);
}

void
http_answer_rule(struct http_exchange *x, unsigned status, const char *field,
                 const char *rule, const char *why)
{
    http_answer_json(x, status,
                     json_pack("{s:{s:s?,s:s,s:s}}", "error", "field", field, "rule",
                               rule, "message", why));
}

/* RFC 9110 12.4.2: a weight of nothing but zeros. */
static bool
http_exchange_refuses(struct text parameter)
{
    bool refuses = text_starts_nocase(parameter, TEXT("q=0"));
    for (size_t i = 2; i < parameter.length && refuses; i++)
        refuses = parameter.at[i] == '0' || parameter.at[i] == '.';
    return refuses;
}

bool
http_exchange_accepts(const struct http_exchange *x, struct text field,
                      struct text value)
{
    struct text all = http_reader_field(x->request, field), one;
    while (all.at != NULL && text_word(&all, ",", &one)) {
        struct text parameter, name;
        bool refused = false;
        if (!text_cut(&one, ';', &name) || !text_equal_nocase(text_trim(name), value))
            continue;
        while (one.at != NULL && text_cut(&one, ';', &parameter))
            refused = refused || http_exchange_refuses(text_trim(parameter));
        if (!refused)
            return true;
    }
    return false;
}

void
http_answer_error(struct http_exchange *x, unsigned status, const char *why)
{
    if (x->path == HTTP_PATH_MAIL)
        http_answer_rule(x, status, NULL, "request", why);
    else
        http_answer_json(x, status, json_pack("{s:b,s:s}", "ok", false, "error", why));
}

void
http_answer_line(struct http_exchange *x, unsigned status, const char *line)
{
    buffer_clear(&x->body);
    x->status = status;
    x->type = "text/plain; charset=utf-8";
    (void)!buffer_format(&x->body, "%s\n", line);
}

void
http_answer_field(struct http_exchange *x, const char *name, const char *value)
{
    (void)!buffer_format(&x->fields, "%s: %s\r\n", name, value);
}

/* A browser may only show an answer to our own page. */
static const char every_answer[] =
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'\r\n";

bool
http_answer_head(const struct http_exchange *x, enum http_body body, bool closes,
                 struct buffer *out)
{
    return buffer_format(out, "HTTP/1.1 %u %s\r\n", x->status,
                         http_status_phrase(x->status)) &&
           buffer_add(out, text_from(every_answer)) &&
           buffer_format(out, "Cache-Control: %s\r\n",
                         x->may_be_kept ? "no-cache" : "no-store") &&
           buffer_add(out, buffer_text(&x->fields)) &&
           (x->type == NULL || buffer_format(out, "Content-Type: %s\r\n", x->type)) &&
           (body != HTTP_BODY_WHOLE || x->status == 304 ||
            buffer_format(out, "Content-Length: %zu\r\n", x->body.length)) &&
           (body != HTTP_BODY_CHUNKED ||
            buffer_add(out, TEXT("Transfer-Encoding: chunked\r\n"))) &&
           (!closes || buffer_add(out, TEXT("Connection: close\r\n"))) &&
           buffer_add(out, TEXT("\r\n"));
}

void
http_lines_begin(struct http_lines *l, struct http_exchange *x)
{
    *l = (struct http_lines){.exchange = x};
    buffer_init(&l->told, HTTP_ANSWER_MAX);
    x->status = 200;
    x->type = "application/x-ndjson";
}

void
http_lines_add(struct http_lines *l, json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (line != NULL && buffer_add(&l->told, text_from(line)))
        (void)!buffer_add_byte(&l->told, '\n');
    free(line);
    http_exchange_wake(l->exchange);
}

enum progress
http_lines_more(struct http_lines *l, struct buffer *out)
{
    if (!buffer_add(out, buffer_text(&l->told)))
        return PROGRESS_BAD;
    buffer_clear(&l->told);
    return l->ended ? PROGRESS_DONE : PROGRESS_MORE;
}
