/* A mail host on random walks. */
#include "t/support/client_walk_peer.h"

void
walk_must(bool good, const char *what, const char *detail)
{
    if (good)
        return;
    printf("# %s: %s\n", what, detail);
    fflush(stdout);
    abort();
}

unsigned
peer_chance(struct peer *p, unsigned below)
{
    p->random = p->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((p->random >> 33) % below);
}

bool
peer_shows_secret(const struct peer *p, const char *text)
{
    for (size_t i = 0; i < 6 && p->secrets[i] != NULL; i++)
        if (strstr(text, p->secrets[i]) != NULL)
            return true;
    return false;
}

/* --- Output ----------------------------------------------------------------------- */

void
peer_say(struct peer *p, const char *format, ...)
{
    va_list list;
    size_t before = p->says.length;
    va_start(list, format);
    walk_must(buffer_format_list(&p->says, format, list), "room", "");
    va_end(list);
    p->owed_end = p->says.length;
    if (p->loud)
        printf("# S: %.*s\n", TEXT_ARGS(text_after(buffer_text(&p->says), before)));
}

static void
peer_say_word(struct peer *p, const char *word)
{
    p->in_data = text_equal(text_from(p->last), TEXT("DATA")) && word[0] == '3';
    peer_say(p, "%s", word);
}

/* Anything, instead of the answer. */
static void
peer_misbehave(struct peer *p)
{
    static const char *const words[] = {
        "250 ok\r\n",
        "250 ok\r\n250 and more\r\n",
        "250-ok\r\n",
        "250-ok\r\n354 go\r\n",
        "354 go\r\n",
        "334 \r\n",
        "334 ====\r\n",
        "220 go\r\n",
        "235 2.7.0 welcome\r\n",
        "451 4.7.1 later\r\n",
        "452 too many\r\n",
        "550 5.1.1 no\r\n",
        "530 5.7.0 STARTTLS first\r\n",
        "25",
        "2500 ok\r\n",
        "junk\r\n",
        "\r\n",
        "999 no\r\n",
        "334 eyJzdGF0dXMiOiI0MDEiLCJ0IjoieWEyOS1adzl4US1yZXN0LW9mLWl0In0=\r\n",
    };
    const struct client_login *login = p->settings->login;
    unsigned which = peer_chance(p, sizeof(words) / sizeof(*words) + 8);
    if (which < sizeof(words) / sizeof(*words))
        peer_say_word(p, words[which]);
    else if (which % 2 && p->auth_heard)
        peer_say(p, "%d 5.7.8 no, %.*s%.*s\r\n", peer_chance(p, 2) ? 421 : 535,
                 TEXT_ARGS(login->credentials.password),
                 TEXT_ARGS(login->credentials.token));
    else if (which % 4)
        peer_say(p, "421 4.5.1 I do not like %s\r\n", p->last);
    else
        peer_say(p, "%d 5.5.2 what is %s\r\n", peer_chance(p, 2) ? 500 : 554, p->last);
}

static void
peer_introduce(struct peer *p)
{
    static const struct {
        enum offer offer;
        const char *line;
    } lines[] = {
        {OFFERS_PIPELINING, "PIPELINING"     },
        {OFFERS_8BITMIME,   "8BITMIME"       },
        {OFFERS_SMTPUTF8,   "SMTPUTF8"       },
        {OFFERS_SIZE,       "SIZE 1000"      },
        {OFFERS_DSN,        "DSN"            },
        {OFFERS_CHUNKING,   "CHUNKING"       },
        {OFFERS_BINARYMIME, "BINARYMIME"     },
        {OFFERS_LIMITS,     "LIMITS MAILMAX="},
        {OFFERS_STARTTLS,   "STARTTLS"       },
        {OFFERS_AUTH,       "AUTH "          },
    };
    static const char *const auth[] = {"PLAIN", "LOGIN", "PLAIN LOGIN XOAUTH2",
                                       "SCRAM-SHA-256 PLAIN", "GSSAPI"};
    p->offers = peer_chance(p, 2) ? peer_chance(p, 1024) : peer_chance(p, 1024) | 1023;
    if (peer_chance(p, 2))
        p->offers |= OFFERS_PIPELINING;
    p->mails = 1 + peer_chance(p, 9);
    peer_say(p, "250-host\r\n");
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        if ((p->offers & lines[i].offer) == 0)
            continue;
        peer_say(p, "250-%s", lines[i].line);
        if (lines[i].offer == OFFERS_LIMITS)
            peer_say(p, "%u", p->mails);
        if (lines[i].offer == OFFERS_AUTH)
            peer_say(p, "%s", auth[peer_chance(p, 5)]);
        peer_say(p, "\r\n");
    }
    peer_say(p, "250 HELP\r\n");
}

/* --- AUTH ------------------------------------------------------------------------- */

static void
peer_on_auth(struct peer *p, struct text line)
{
    bool login = text_starts(line, TEXT("AUTH LOGIN"));
    unsigned luck = peer_chance(p, 12);
    p->auth_steps = login ? 2 : 0;
    p->authenticating = true;
    if (login) {
        peer_say(p, "334 VXNlcm5hbWU6\r\n");
        return;
    }
    if (text_starts(line, TEXT("AUTH SCRAM"))) {
        p->auth_steps = 1;
        peer_say(p, "%s",
                 luck ? "334 cj1mcmVzaCxzPWMyRnNkQT09LGk9NDA5Ng==\r\n"
                      : "334 cj1mcmVzaC1hbmQtbW9yZSxzPWMyRnNkQT09LGk9NDA5Ng==\r\n");
        return;
    }
    p->authenticating = false;
    if (luck == 0)
        peer_say(p, "535 5.7.8 bad\r\n");
    else if (luck == 1)
        peer_say(p, "504 5.5.4 mechanism\r\n");
    else if (luck == 2)
        peer_say(p, "454 4.7.0 later\r\n");
    else
        peer_say(p, "235 2.7.0 welcome\r\n");
}

static void
peer_on_response(struct peer *p, struct text line)
{
    if (text_equal(line, TEXT("*"))) {
        p->authenticating = false;
        peer_say(p, "501 5.7.0 as you like\r\n");
    } else if (--p->auth_steps > 0) {
        peer_say(p, "334 UGFzc3dvcmQ6\r\n");
    } else {
        p->authenticating = false;
        peer_say(p, "%s",
                 peer_chance(p, 8) ? "235 2.7.0 welcome\r\n" : "535 5.7.8 no\r\n");
    }
}

/* --- Checks ----------------------------------------------------------------------- */

static bool
peer_offers(const struct peer *p, unsigned offers)
{
    return (p->offers & offers) == offers;
}

/* Nothing but what may be said in clear; nothing of the host of before TLS. */
static void
peer_watch(const struct peer *p, struct text line, const char *at)
{
    static const char *const harmless[] = {"EHLO me.example", "LHLO me.example",
                                           "HELO me.example", "STARTTLS", "QUIT"};
    static const struct {
        const char *word;
        unsigned offers;
    } needs[] = {
        {" SIZE=",           OFFERS_SIZE                        },
        {" BODY=8BITMIME",   OFFERS_8BITMIME                    },
        {" BODY=BINARYMIME", OFFERS_BINARYMIME | OFFERS_CHUNKING},
        {" SMTPUTF8",        OFFERS_SMTPUTF8                    },
        {" RET=",            OFFERS_DSN                         },
        {" ENVID=",          OFFERS_DSN                         },
        {" NOTIFY=",         OFFERS_DSN                         },
        {" ORCPT=",          OFFERS_DSN                         },
    };
    const struct client_settings *s = p->settings;
    bool is_harmless = false;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
        is_harmless = is_harmless || text_equal(line, text_from(harmless[i]));
    walk_must(p->secure || !s->tls_implicit, "a word before TLS", at);
    walk_must(p->secure || is_harmless || s->tls < TARGET_TLS_ENCRYPT, "clear", at);
    walk_must(p->secure || (s->login != NULL && s->login->may_be_clear) ||
                  (!p->authenticating && !text_starts(line, TEXT("AUTH")) &&
                   !peer_shows_secret(p, at)),
              "a secret in clear", at);
    walk_must(!text_starts(line, TEXT("MAIL")) || s->login == NULL || p->auth_heard,
              "mail before AUTH", at);
    walk_must(p->taken >= p->owed_end || p->offers & OFFERS_PIPELINING || is_harmless ||
                  p->naughty > 0,
              "it does not wait", at);
    walk_must(!text_starts(line, TEXT("RCPT")) || text_is_ascii(line) ||
                  strstr(p->mail, " SMTPUTF8") != NULL,
              "UTF-8 without SMTPUTF8", at);
    if (!p->authenticating)
        for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++)
            walk_must(strstr(at, needs[i].word) == NULL ||
                          peer_offers(p, needs[i].offers),
                      "not offered", at);
}

/* --- Input ------------------------------------------------------------------------ */

/* After the content: LMTP answers for each recipient. */
static void
peer_on_end(struct peer *p)
{
    static const char *const words[] = {"250 2.0.0 taken\r\n", "250 2.0.0 taken\r\n",
                                        "451 4.3.0 later\r\n", "554 5.6.0 no\r\n"};
    unsigned count = p->settings->lmtp ? p->accepted : 1;
    p->in_data = false;
    for (unsigned i = 0; i < count; i++)
        peer_say(p, "%s", words[peer_chance(p, 4)]);
    p->accepted = 0;
}

static void
peer_on_mail_words(struct peer *p, struct text line)
{
    unsigned luck = peer_chance(p, 10);
    if (text_starts(line, TEXT("DATA")) && luck < (p->accepted ? 9u : 2u)) {
        p->in_data = true;
        peer_say(p, "354 go\r\n");
    } else if (luck == 8 || text_starts(line, TEXT("DATA"))) {
        peer_say(p, "451 4.3.0 later\r\n");
    } else if (luck == 9) {
        peer_say(p, "550 5.7.1 no\r\n");
    } else {
        p->accepted += text_starts(line, TEXT("RCPT")) && p->mailed;
        p->mailed = p->mailed || text_starts(line, TEXT("MAIL"));
        peer_say(p, "250 2.1.0 ok\r\n");
    }
}

static void
peer_on_bdat(struct peer *p, struct text line)
{
    struct text number = text_after(line, 5);
    p->chunk_is_last = text_find(number, ' ') != TEXT_NONE;
    number = text_before(number, text_find(number, ' '));
    walk_must(peer_offers(p, OFFERS_CHUNKING | OFFERS_BINARYMIME) &&
                  text_number(number, INT64_MAX, &p->chunk_left),
              "BDAT", p->last);
    if (p->chunk_left > 0)
        return;
    if (p->chunk_is_last)
        peer_on_end(p);
    else
        peer_say(p, "250 2.0.0 chunk\r\n");
}

static void
peer_on_command(struct peer *p, struct text line)
{
    bool is_mail = text_starts(line, TEXT("MAIL")),
         is_rset = text_starts(line, TEXT("RSET"));
    if (is_mail || is_rset) {
        p->accepted = 0;
        p->mailed = false;
        text_copy(p->mail, sizeof(p->mail), line);
    }
    if (text_starts(line, TEXT("BDAT")))
        peer_on_bdat(p, line);
    else if (text_starts(line, TEXT("QUIT")))
        p->quit = true;
    else if (peer_chance(p, 100) < p->naughty)
        peer_misbehave(p);
    else if (p->authenticating)
        peer_on_response(p, line);
    else if (text_starts(line, TEXT("AUTH")))
        peer_on_auth(p, line);
    else if (text_starts(line, TEXT("EHLO")) && peer_chance(p, 20) == 0)
        peer_say(p, "502 5.5.1 what\r\n");
    else if (text_starts(line, TEXT("EHLO")) || text_starts(line, TEXT("LHLO")))
        peer_introduce(p);
    else if (text_starts(line, TEXT("STARTTLS")))
        peer_say(p, "%s%s", peer_chance(p, 10) ? "220 go\r\n" : "454 4.7.0 no\r\n",
                 peer_chance(p, 6) ? "" : "250 injected\r\n250-");
    else if (is_rset || text_starts(line, TEXT("HELO")))
        peer_say(p, "250 ok\r\n");
    else
        peer_on_mail_words(p, line);
}

static void
peer_on_line(struct peer *p, struct text line)
{
    if (p->in_data) {
        if (text_equal(line, TEXT(".")))
            peer_on_end(p);
        return;
    }
    (void)text_copy(p->last, sizeof(p->last), line);
    if (p->loud)
        printf("# C: %s\n", p->last);
    walk_must(!p->quit, "after QUIT", p->last);
    peer_watch(p, line, p->last);
    p->auth_heard = p->auth_heard || text_starts(line, TEXT("AUTH"));
    if (text_starts(line, TEXT("EHLO")) || text_starts(line, TEXT("HELO")))
        p->offers = 0;
    peer_on_command(p, line);
}

void
peer_hear(struct peer *p, struct buffer *output)
{
    walk_must(buffer_add(&p->heard, buffer_text(output)), "room", "");
    buffer_clear(output);
    struct text left = buffer_text(&p->heard);
    while (left.length > 0) {
        if (p->chunk_left > 0) {
            size_t some =
                p->chunk_left < left.length ? (size_t)p->chunk_left : left.length;
            left = text_after(left, some);
            p->chunk_left -= some;
            if (p->chunk_left == 0)
                peer_say(p, "250 2.0.0 chunk\r\n");
            continue;
        }
        size_t end = text_find(left, '\n');
        if (end == TEXT_NONE)
            break;
        struct text line = text_before(left, end);
        walk_must(end > 0 && line.at[end - 1] == '\r', "a bare LF", p->last);
        line.length--;
        walk_must(text_find(line, '\r') == TEXT_NONE, "a bare CR", p->last);
        left = text_after(left, end + 1);
        peer_on_line(p, line);
    }
    buffer_take(&p->heard, p->heard.length - left.length);
}
