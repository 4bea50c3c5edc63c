/* smtp/session: the dialogues of t/dialog/ over real sockets, into a real queue. */
#include "queue/queue_operator.h"
#include "smtp/session/session.h"

#include "t/support/listener_world.h"
#include "t/support/until.h"
#include "t/support/tap.h"

#include <glob.h>
#include <string.h>

/* Two messages of one millisecond have no order: any message that fits will do. */
static bool
find_message(struct stored *s, const struct dialog *d, size_t first, size_t end)
{
    struct buffer shown;
    bool fits = false;
    buffer_init(&shown, DIALOG_BYTES_MAX);
    for (size_t m = 0; m < s->count && !fits; m++) {
        fits = !s->messages[m].shown;
        for (size_t i = first; i < end && fits; i++)
            fits = dialog_fits(&d->steps[i], s->messages[m].envelope,
                               buffer_text(&s->messages[m].content), &shown);
        s->messages[m].shown = s->messages[m].shown || fits;
    }
    buffer_free(&shown);
    if (!fits)
        printf("# not stored: %.*s\n", TEXT_ARGS(buffer_text(&d->steps[first].bytes)));
    return fits;
}

static bool
is_message(enum dialog_kind kind)
{
    return kind == DIALOG_CONTENT || kind == DIALOG_PREFIX || kind == DIALOG_LACKS;
}

static bool
messages_fit(struct world *w, const struct dialog *d)
{
    static struct stored s;
    bool good = true;
    size_t asked = 0;
    s = (struct stored){.world = w};
    listener_turns(w, 3);
    dialog_must(queue_each(manager_queue(w->manager), collect, &s) == 0, "cannot list");
    for (size_t i = 0; i < d->count; i++) {
        if (d->steps[i].kind != DIALOG_MESSAGE)
            continue;
        size_t end = i + 1;
        while (end < d->count && is_message(d->steps[end].kind))
            end++;
        good = find_message(&s, d, i, end) && good;
        asked++;
    }
    if (asked != s.count)
        printf("# %zu messages stored, %zu asked for\n", s.count, asked);
    for (size_t i = 0; i < s.count; i++) {
        envelope_free(&s.messages[i].envelope);
        buffer_free(&s.messages[i].content);
    }
    return good && asked == s.count;
}

/* paced: each command waits for the replies before it. */
static bool
converse(struct visitor *v, const struct dialog *d, bool paced, size_t piece)
{
    bool good = true, closes = false;
    for (size_t i = 0; i < d->count && !paced; i++)
        if (d->steps[i].kind == DIALOG_SEND)
            say(v, buffer_text(&d->steps[i].bytes), piece);
    for (size_t i = 0; i < d->count && good; i++) {
        struct text bytes = buffer_text(&d->steps[i].bytes);
        if (d->steps[i].kind == DIALOG_SEND && paced)
            say(v, bytes, piece);
        else if (d->steps[i].kind == DIALOG_REPLY)
            good = hears(v, bytes);
        else if (d->steps[i].kind == DIALOG_CLOSED)
            closes = true;
    }
    listener_turns(v->world, 2);
    hear(v);
    if (closes)
        return good && is_closed(v);
    return good && !v->closed && v->read == v->heard.length;
}

static bool
play(const struct dialog *d, bool paced, size_t piece)
{
    static struct world w;
    struct visitor v;
    world_start_among(&w, &d->rules, d->lmtp, d->may_relay,
                      d->peer ? "other.example=127.0.0.1:2525" : "");
    visit(&v, &w);
    bool good = converse(&v, d, paced, piece);
    leave(&v);
    until(&w, listener_sessions(w.listener) == 0);
    good = messages_fit(&w, d) && good;
    if (listener_sessions(w.listener) != 0) {
        printf("# a session is left\n");
        good = false;
    }
    listener_world_end(&w);
    return good;
}

TEST(dialogs)
{
    glob_t found;
    unsigned played = 0;
    dialog_must(glob("t/dialog/*.smtp", 0, NULL, &found) == 0, "no dialogues");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct dialog *d = dialog_read(found.gl_pathv[i]);
        size_t bytes = 0;
        for (size_t s = 0; s < d->count; s++)
            bytes += d->steps[s].bytes.length;
        if (!d->faked && !d->paced) {
            bool good = play(d, true, SIZE_MAX) && play(d, false, SIZE_MAX);
            good = (bytes > 4000 || play(d, false, 1)) && good;
            ok_named(good, found.gl_pathv[i]);
            played++;
        }
        dialog_free(d);
    }
    ok_named(played >= 40, "40 dialogues at least over a socket");
    globfree(&found);
}

/* --- Which counter a refused connection and a stored message move ----------------- */

static void
test_refused(void)
{
    static const struct {
        struct refusal refusal;
        const char *word;
    } rows[] = {
        {{421, "4.7.0", "too many connections, try again later"}, "sessions"},
        {{421, "4.7.0", "too many TLS sessions, try again later"}, "sessions"},
        {{421, "4.7.0", "too many connections from your address"}, "client_sessions"},
        {{421, "4.7.0", "too many connections from your network, try again later"}, "client_sessions"},
        {{421, "4.7.0", "too many sessions from your address, try again in 3 s"}, "rate"},
        {{421, "4.7.0", "too many sessions, try again in 3 s"}, "rate"},
        {{421, "4.7.0", "too many failed logins from your address, try again later"}, "lockout"},
        {{421, "4.3.2", "shutting down, try again later"}, "draining"},
        {{421, "4.3.2", "out of service, try again later"}, "draining"},
        {{554, "5.7.1", "user not allowed to send mail here"}, "other"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct session_counts counts = {0};
        session_counts_refuse(&counts, &rows[i].refusal);
        for (int j = 0; j < SESSION_REFUSED_REASONS; j++)
            is_number((int64_t)counts.refused[j], strcmp(session_refused_word((enum session_refused)j), rows[i].word) == 0, rows[i].refusal.text);
    }
}

static void
test_accept(void)
{
    struct session_counts counts = {0};
    session_counts_accept(&counts, 1000);
    session_counts_accept(&counts, 1001);
    session_counts_accept(&counts, 61 * 1000000LL);
    is_number((int64_t)counts.accepts[0], 1, "a millisecond");
    is_number((int64_t)counts.accepts[1], 1, "a little more");
    is_number((int64_t)counts.accepts[SESSION_ACCEPT_BOUNDS], 1, "beyond all bounds");
    is_number(counts.accept_sum_us, 61002001, "the sum");
}

TEST(session_counts_tests)
{
    test_refused();
    test_accept();
}
