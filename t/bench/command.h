/* The commands of SMTP and LMTP as the sink understands them. */
#ifndef T_BENCH_COMMAND_H
#define T_BENCH_COMMAND_H

#include "t/bench/fault.h"

static void
on_helo(struct session *s, struct text verb, struct text argument)
{
    const struct sink *sink = s->sink;
    bool extended = !text_equal_nocase(verb, TEXT("HELO"));
    if (sink->lmtp != text_equal_nocase(verb, TEXT("LHLO"))) {
        answer(s, "500 5.5.1 Other protocol\r\n");
        return;
    }
    if (extended && sink->no_ehlo) {
        answer(s, "502 5.5.1 Not implemented\r\n");
        return;
    }
    if (argument.length == 0) {
        answer(s, "501 5.5.4 Who is there?\r\n");
        return;
    }
    if (!pass_stage(s, STAGE_HELO))
        return;
    reset_transaction(s);
    s->esmtp = extended;
    if (!extended) {
        answer(s, "250 sink\r\n");
        return;
    }
    char size[48];
    snprintf(size, sizeof(size), "250-SIZE %lld\r\n", (long long)sink->size);
    answer(s, "250-sink\r\n");
    answer(s, sink->no_pipelining ? "" : "250-PIPELINING\r\n");
    answer(s, size);
    answer(s, sink->no_8bitmime ? "" : "250-8BITMIME\r\n250-SMTPUTF8\r\n");
    answer(s, sink->no_dsn ? "" : "250-DSN\r\n");
    answer(s, "250 ENHANCEDSTATUSCODES\r\n");
}

/* The "<...>" of "FROM:<...> rest", or empty. */
static struct text
path_of(struct text argument, struct text *rest)
{
    size_t start = text_find(argument, '<'), end = TEXT_NONE;
    bool quoted = false;
    for (size_t at = start; at < argument.length && end == TEXT_NONE; at++) {
        if (argument.at[at] == '\\' && quoted)
            at++;
        else if (argument.at[at] == '"')
            quoted = !quoted;
        else if (argument.at[at] == '>' && !quoted)
            end = at;
    }
    if (end == TEXT_NONE)
        return TEXT("");
    *rest = text_trim(text_after(argument, end + 1));
    return text_of(argument.at + start, end + 1 - start);
}

static bool
is_too_large(const struct sink *sink, struct text parameters)
{
    struct text word;
    uint64_t size;
    while (sink->size > 0 && text_word(&parameters, " ", &word))
        if (text_starts_nocase(word, TEXT("SIZE=")) &&
            text_number(text_after(word, 5), INT64_MAX, &size) &&
            (int64_t)size > sink->size)
            return true;
    return false;
}

static void
on_mail(struct session *s, struct text verb, struct text argument)
{
    (void)verb;
    struct text rest = TEXT(""), path = path_of(argument, &rest);
    if (s->has_mail || path.length == 0) {
        answer(s, s->has_mail ? "503 5.5.1 Nested MAIL\r\n" : "501 5.5.4 Syntax\r\n");
        return;
    }
    if (s->sink->max_messages > 0 && s->messages >= s->sink->max_messages) {
        answer_code(s, 421);
        return;
    }
    if (!pass_stage(s, STAGE_MAIL))
        return;
    if (is_too_large(s->sink, rest)) {
        answer(s, "552 5.3.4 Too large\r\n");
        return;
    }
    s->has_mail = true;
    bool fits = buffer_format(
        &s->envelope,
        "X-Sink-Protocol: %s\nX-Sink-Connection: %llu\nX-Sink-From: %.*s\n",
        s->sink->lmtp ? "LMTP"
        : s->esmtp    ? "ESMTP"
                      : "SMTP",
        s->number, TEXT_ARGS(path));
    if (fits && rest.length > 0)
        fits = buffer_format(&s->envelope, "X-Sink-From-Parameters: %.*s\n",
                             TEXT_ARGS(rest));
    assert(fits);
    answer(s, "250 2.1.0 Ok\r\n");
}

static void
on_rcpt(struct session *s, struct text verb, struct text argument)
{
    (void)verb;
    struct text rest = TEXT(""), path = path_of(argument, &rest);
    if (!s->has_mail || path.length <= 2) {
        answer(s, s->has_mail ? "501 5.5.4 Syntax\r\n" : "503 5.5.1 send MAIL first\r\n");
        return;
    }
    struct fault *f = find_fault(s->sink, FAULT_RCPT, STAGE_RCPT, path);
    if (f != NULL) {
        answer_code(s, f->code);
        return;
    }
    if (!pass_stage(s, STAGE_RCPT))
        return;
    f = find_fault(s->sink, FAULT_LMTP, STAGE_DOT, path);
    int code = f == NULL ? 250 : f->code;
    if (s->recipients == RECIPIENTS_MAX ||
        !buffer_format(&s->envelope, "X-Sink-To: %.*s\n%s%.*s%s", TEXT_ARGS(path),
                       rest.length > 0 ? "X-Sink-To-Parameters: " : "", TEXT_ARGS(rest),
                       rest.length > 0 ? "\n" : "") ||
        !buffer_add(&s->failing, text_of(&code, sizeof(code)))) {
        answer(s, "452 4.5.3 Too many recipients\r\n");
        return;
    }
    s->recipients++;
    answer(s, "250 2.1.5 Ok\r\n");
}

static void
on_data(struct session *s, struct text verb, struct text argument)
{
    (void)verb;
    if (s->recipients == 0 || argument.length > 0) {
        answer(s, s->has_mail ? "554 5.5.1 No valid recipients\r\n"
                              : "503 5.5.1 MAIL and RCPT first\r\n");
        return;
    }
    if (!pass_stage(s, STAGE_DATA))
        return;
    if (s->sink->directory != NULL) {
        snprintf(s->name, sizeof(s->name), "incoming.%llu", s->number);
        s->content = disk_create(s->sink->directory, s->name, 0644);
        if (s->content < 0) {
            answer(s, "452 4.3.1 Cannot keep it\r\n");
            return;
        }
    }
    s->state = SESSION_CONTENT;
    s->line_start = true;
    s->after_cr = false;
    answer(s, "354 Go on\r\n");
}

static void
on_rset(struct session *s, struct text verb, struct text argument)
{
    (void)verb;
    (void)argument;
    reset_transaction(s);
    answer(s, "250 2.0.0 Ok\r\n");
}

static void
on_noop(struct session *s, struct text verb, struct text argument)
{
    (void)argument;
    answer(s, text_equal_nocase(verb, TEXT("VRFY")) ? "252 2.0.0 Perhaps\r\n"
                                                    : "250 2.0.0 Ok\r\n");
}

static void
on_quit(struct session *s, struct text verb, struct text argument)
{
    (void)verb;
    (void)argument;
    answer(s, "221 2.0.0 Bye\r\n");
    session_end(s, false);
}

static const struct command {
    const char *verb;
    enum stage stage; /* STAGES: no faults */
    void (*run)(struct session *s, struct text verb, struct text argument);
} commands[] = {
    {"MAIL", STAGE_MAIL, on_mail},
    {"RCPT", STAGE_RCPT, on_rcpt},
    {"DATA", STAGE_DATA, on_data},
    {"EHLO", STAGE_HELO, on_helo},
    {"HELO", STAGE_HELO, on_helo},
    {"LHLO", STAGE_HELO, on_helo},
    {"RSET", STAGES,     on_rset},
    {"NOOP", STAGES,     on_noop},
    {"VRFY", STAGES,     on_noop},
    {"QUIT", STAGES,     on_quit},
};

/* One line off the input. False when there is none, or the session waits or has ended.
 */
static bool
take_command(struct session *s)
{
    struct text in = net_input(s->connection);
    const char *end = memmem(in.at, in.length, "\r\n", 2);
    if (end == NULL || end - in.at > COMMAND_MAX) {
        if (end != NULL || in.length > COMMAND_MAX) {
            answer(s, "500 5.5.2 Line too long\r\n");
            session_end(s, false);
        }
        return false;
    }
    struct text line = text_of(in.at, (size_t)(end - in.at));
    char copy[COMMAND_MAX + 1]; /* the input goes before the command has run */
    text_copy(copy, sizeof(copy), line);
    struct text argument = text_of(copy, line.length), verb = TEXT("");
    text_cut(&argument, ' ', &verb);
    argument = argument.at == NULL ? TEXT("") : text_trim(argument);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!text_equal_nocase(verb, text_from(commands[i].verb)))
            continue;
        if (commands[i].stage != STAGES && !enter_stage(s, commands[i].stage))
            return false;
        net_consume(s->connection, line.length + 2);
        if (s->refused && commands[i].run != on_quit)
            answer(s, "503 5.5.1 Not served\r\n");
        else
            commands[i].run(s, verb, argument);
        return s->connection != NULL;
    }
    net_consume(s->connection, line.length + 2);
    answer(s, "502 5.5.2 Unknown command\r\n");
    return true;
}

#endif
