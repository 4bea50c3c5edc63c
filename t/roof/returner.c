/* Reports that come back. */
#include "t/roof/returner.h"

#include "base/memory.h"
#include "t/roof/dead.h"
#include "t/roof/law_log.h"
#include "t/roof/peer.h"
#include "t/roof/roof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    ADDRESS_SIZE = 128,
    STAMP_SIZE = 800,
    CONTENT_SIZE = 4000,
    COMEBACKS_MAX = 300, /* of a run */
    ONE_IN = 3,          /* recipients that are reported */
    FIRST_MS = 20 * 60 * 1000,
    AGAIN_MS = 90 * 1000,
    PATIENCE_MS = 10 * 60 * 1000
};

enum comeback_kind {
    COMEBACK_FAILED,
    COMEBACK_DELAYED,
    COMEBACK_COMPLAINED,
    COMEBACK_BAD_TAG, /* those from here on are forged */
    COMEBACK_BAD_RECIPIENT,
    COMEBACK_UNTAGGED,
    COMEBACKS
};

enum comeback_step {
    STEP_GREETING,
    STEP_EHLO,
    STEP_MAIL,
    STEP_RCPT,
    STEP_DATA,
    STEP_END,
    STEP_QUIT
};

static const struct {
    const char *word; /* as in the log; NULL: it is not to be there */
    const char *action;
} kinds[COMEBACKS] = {
    [COMEBACK_FAILED] = {"failed",     "failed" },
    [COMEBACK_DELAYED] = {"delayed",    "delayed"},
    [COMEBACK_COMPLAINED] = {"complained", NULL     },
    [COMEBACK_BAD_TAG] = {NULL,         "failed" },
    [COMEBACK_BAD_RECIPIENT] = {NULL,         "failed" },
    [COMEBACK_UNTAGGED] = {NULL,         "failed" },
};

struct comeback {
    struct comeback *prev, *next;
    enum comeback_kind kind;
    char recipient[MODEL_ADDRESS_MAX], tagged[ADDRESS_SIZE], stamp[STAMP_SIZE];
    struct peer peer;
    struct roof_timer timer, patience;
    enum comeback_step step;
    bool was_sent, was_taken, is_over;
    unsigned excuses; /* when it was taken */
    unsigned told;
};

static struct {
    bool is_on;
    uint64_t chance;
    unsigned count, open;
    struct comeback *list;
} returner;

static void comeback_call(void *context);

static void
comeback_again(struct comeback *c)
{
    roof_timer_start(&c->timer, roof_between_of(&returner.chance, 1000, AGAIN_MS),
                     comeback_call, c);
}

static void
comeback_end(struct comeback *c)
{
    if (!c->is_over)
        returner.open--;
    c->is_over = true;
}

static void
comeback_on_over(void *context)
{
    struct comeback *c = context;
    roof_timer_stop(&c->patience);
    if (!c->is_over)
        comeback_again(c);
}

static void
comeback_on_patience(void *context)
{
    struct comeback *c = context;
    peer_cut(&c->peer, PEER_RESET);
}

/* --- The report -------------------------------------------------------------------- */

static void
comeback_content(const struct comeback *c, char out[CONTENT_SIZE])
{
    const char *about =
        c->kind == COMEBACK_BAD_RECIPIENT ? "somebody.else@far.test" : c->recipient;
    if (c->kind == COMEBACK_COMPLAINED)
        snprintf(out, CONTENT_SIZE,
                 "From: loop@far.test\r\nContent-Type: multipart/report; "
                 "report-type=feedback-report; boundary=f\r\n\r\n--f\r\n"
                 "Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n"
                 "User-Agent: roof\r\n\r\n--f\r\nContent-Type: message/rfc822\r\n\r\n"
                 "Return-Path: <%s>\r\n%s\r\nSubject: x\r\n\r\nx\r\n--f--\r\n.\r\n",
                 c->tagged, c->stamp);
    else
        snprintf(
            out, CONTENT_SIZE,
            "From: MAILER-DAEMON@far.test\r\nContent-Type: multipart/report; "
            "report-type=delivery-status; boundary=f\r\n\r\n--f\r\n"
            "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; far.test"
            "\r\n\r\nFinal-Recipient: rfc822; %s\r\nAction: %s\r\nStatus: 5.1.1\r\n"
            "Diagnostic-Code: smtp; 550 5.1.1 nobody\r\n\r\n--f--\r\n.\r\n",
            about, kinds[c->kind].action);
}

static void
comeback_say_rcpt(struct comeback *c)
{
    char line[2 * ADDRESS_SIZE], *at;
    bool is_plain = c->kind == COMEBACK_COMPLAINED || c->kind == COMEBACK_UNTAGGED;
    snprintf(line, sizeof(line), "RCPT TO:<%s>\r\n",
             is_plain ? "bounce@came.test" : c->tagged);
    at = strchr(line, '@');
    if (c->kind == COMEBACK_BAD_TAG)
        at[-1] = at[-1] == 'A' ? 'B' : 'A';
    peer_say(&c->peer, text_from(line));
}

static void
comeback_taken(struct comeback *c)
{
    roof_note("returner: %s for %s is taken",
              kinds[c->kind].word != NULL ? "a report" : "a forged one", c->recipient);
    c->was_taken = true;
    c->excuses = law_log_excuses();
    comeback_end(c);
}

static void
comeback_next(struct comeback *c)
{
    char content[CONTENT_SIZE];
    switch (c->step++) {
    case STEP_GREETING:
        peer_say(&c->peer, TEXT("EHLO far.test\r\n"));
        break;
    case STEP_EHLO:
        peer_say(&c->peer, TEXT("MAIL FROM:<>\r\n"));
        break;
    case STEP_MAIL:
        comeback_say_rcpt(c);
        break;
    case STEP_RCPT:
        peer_say(&c->peer, TEXT("DATA\r\n"));
        break;
    case STEP_DATA:
        c->was_sent = true; /* before: it may be cut within the call */
        comeback_content(c, content);
        peer_say(&c->peer, text_from(content));
        break;
    case STEP_END:
        comeback_taken(c);
        peer_say(&c->peer, TEXT("QUIT\r\n"));
        break;
    case STEP_QUIT:
        peer_close(&c->peer);
        break;
    }
}

/* A forged tag is refused for good. */
static bool
comeback_on_line(void *context, struct text line)
{
    struct comeback *c = context;
    char code = line.length > 0 ? line.at[0] : '\0';
    if (line.length > 3 && line.at[3] == '-')
        return true;
    if (code == '2' || code == '3') {
        if (c->kind == COMEBACK_BAD_TAG && c->step == STEP_RCPT)
            roof_break("truth", NULL, "RCPT with a forged tag is taken: %s", c->tagged);
        comeback_next(c);
        return true;
    }
    if (code == '5' && c->kind == COMEBACK_BAD_TAG && c->step == STEP_RCPT)
        comeback_end(c);
    peer_cut(&c->peer, PEER_FIN);
    return false;
}

static void
comeback_on_connected(void *context)
{
    (void)context;
}

static void
comeback_call(void *context)
{
    struct comeback *c = context;
    struct net_address from =
                           {
                               .family = NET_IPV4, .ip = {10, 5, 0, 1}
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 25};
    from.ip[3] = (unsigned char)(1 + roof_below_of(&returner.chance, 200));
    c->step = STEP_GREETING;
    c->peer = (struct peer){.connected = comeback_on_connected,
                            .line = comeback_on_line,
                            .over = comeback_on_over,
                            .context = c};
    roof_timer_start(&c->patience, PATIENCE_MS, comeback_on_patience, c);
    peer_connect(&c->peer, &from, &to);
}

/* --- Seen ------------------------------------------------------------------ */

void
returner_begin(void)
{
    returner.is_on = true;
    returner.chance = roof_fork("returner");
}

static void
comeback_find_stamp(struct comeback *c, struct text content)
{
    static const char name[] = "X-Petrel-Return: ";
    struct text line;
    while (content.length > 0 && text_cut(&content, '\n', &line))
        if (text_starts(line, TEXT("X-Petrel-Return: ")) &&
            line.length > sizeof(name)) {
            (void)text_copy(c->stamp, sizeof(c->stamp), text_trim(line));
            return;
        }
    roof_break("truth", NULL, "mail with a tag comes without a stamp: %s", c->tagged);
}

void
returner_stored(struct text from, const struct model_rcpt *r, struct text content)
{
    if (!returner.is_on || !text_starts(from, TEXT("bounce+")) ||
        returner.count == COMEBACKS_MAX || roof_below_of(&returner.chance, ONE_IN) > 0)
        return;
    struct comeback *c = memory_new(sizeof(*c));
    c->kind = (enum comeback_kind)roof_below_of(&returner.chance, COMEBACKS);
    model_rcpt_address(r, c->recipient);
    (void)text_copy(c->tagged, sizeof(c->tagged), from);
    comeback_find_stamp(c, content);
    DL_APPEND(returner.list, c);
    returner.count++;
    returner.open++;
    roof_timer_start(&c->timer, roof_between_of(&returner.chance, 0, FIRST_MS),
                     comeback_call, c);
}

/* "to=<ADDRESS>, returned=WORD, ..." */
bool
returner_line(struct text line)
{
    static const char name[] = ", returned=";
    struct comeback *c, *found = NULL;
    struct text rest = line, address, word;
    const char *at =
        line.length > 0 ? memmem(line.at, line.length, name, strlen(name)) : NULL;
    if (at == NULL || !text_starts(line, TEXT("to=<")))
        return false;
    rest = text_after(rest, 4);
    (void)text_cut(&rest, '>', &address);
    rest = text_after(line, (size_t)(at - line.at) + strlen(name));
    (void)text_cut(&rest, ',', &word);
    DL_FOREACH (returner.list, c)
        if (kinds[c->kind].word != NULL && c->was_sent &&
            text_equal(address, text_from(c->recipient)) &&
            text_equal(word, text_from(kinds[c->kind].word)) &&
            (found == NULL || c->told < found->told))
            found = c;
    if (found == NULL || roof_breaks("returned"))
        roof_break("truth", NULL, "nobody has reported that: %.*s", TEXT_ARGS(line));
    found->told++;
    if (found->kind != COMEBACK_DELAYED)
        dead_returned(model_find(address));
    return true;
}

unsigned
returner_open(void)
{
    return returner.open;
}

int64_t
returner_wait_ms(void)
{
    return returner.is_on ? FIRST_MS + 4 * AGAIN_MS : 0;
}

/* A line of the last moment before the host ended may be missing. */
void
returner_judge(void)
{
    const struct comeback *c;
    DL_FOREACH (returner.list, c)
        if (c->was_taken && kinds[c->kind].word != NULL && c->told == 0 &&
            c->excuses == law_log_excuses())
            roof_break("truth", NULL, "a report for %s was taken, and is not told",
                       c->recipient);
}

void
returner_tally(unsigned *told, unsigned *forged)
{
    const struct comeback *c;
    *told = *forged = 0;
    DL_FOREACH (returner.list, c) {
        *told += c->is_over && kinds[c->kind].word != NULL;
        *forged += c->is_over && kinds[c->kind].word == NULL;
    }
}
