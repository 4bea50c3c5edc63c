/* Programs that post mail. */
#include "t/roof/poster.h"

#include "base/crypto/digest.h"
#include "base/memory.h"
#include "t/roof/host.h"
#include "t/roof/peer.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEAD_MAX = 64 * 1024, PATIENCE_MS = 5 * 60 * 1000, RATE = 350 };
#define TOKEN "a-key-of-the-roof"

struct poster {
    struct model_message *message;
    struct peer peer;
    struct buffer head;
    bool answered; /* 202, or a refusal for good */
    bool is_again; /* posted once more, behind a 202 */
    bool is_deaf;
    int status;
    struct roof_timer again, patience;
};

static struct {
    bool on, is_good;
    uint64_t chance, again; /* again: of posts that come once more */
    unsigned open, count;
} posters;

static unsigned
below(unsigned limit)
{
    return roof_below_of(&posters.chance, limit);
}

unsigned
posters_open(void)
{
    return posters.open;
}

unsigned
posters_count(void)
{
    return posters.count;
}

void
posters_begin(void)
{
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1], line[200];
    posters.on = true;
    posters.chance = roof_fork("posters");
    posters.again = roof_fork("posts again");
    digest_plain(TEXT(TOKEN), digest);
    text_hex(digest, sizeof(digest), hex);
    snprintf(line, sizeof(line), "roof %s *\n", hex);
    host_write_file(&host, HOST_FOLDER, "post_keys", text_from(line));
}

void
posters_become_good(void)
{
    posters.is_good = true;
}

bool
posters_take(const struct model_message *m)
{
    return posters.on && m->split == NULL && below(1000) < RATE;
}

static void
release_poster(void *context)
{
    struct poster *p = context;
    buffer_free(&p->head);
    free(p);
}

static void try_post(void *context);

/* A program that died with the answer posts its mail once more, with the same key. */
static bool
posts_again(struct poster *p)
{
    if (posters.is_good || p->is_again || p->status != 202 ||
        roof_below_of(&posters.again, 2) == 0)
        return false;
    p->is_again = true;
    p->answered = false;
    return true;
}

static void
poster_on_over(void *context)
{
    struct poster *p = context;
    struct model_message *m = p->message;
    size_t whole = p->head.length + m->content.length;
    roof_timer_stop(&p->patience);
    if (m->state == MODEL_UNSENT && p->peer.sent >= whole)
        m->state = MODEL_MAYBE;
    if (!p->answered || posts_again(p)) {
        roof_timer_start(&p->again, 1000 + below(60000), try_post, p);
        return;
    }
    posters.open--;
    roof_timer_start(&p->again, 0, release_poster, p);
}

static void
poster_on_impatience(void *context)
{
    struct poster *p = context;
    peer_cut(&p->peer, PEER_RESET);
}

/* {"id":"..."} */
static void
poster_on_raw(void *context, struct text bytes)
{
    struct poster *p = context;
    struct model_message *m = p->message;
    if (p->status == 202 && bytes.length > 26) {
        struct text id = text_of(bytes.at + 7, 19);
        p->answered = true;
        if (m->state == MODEL_ACKED && !text_equal(id, text_from(m->id)))
            roof_break("once", m->id, "m%u is posted once more, and is another message",
                       m->number);
        model_acked(m, id);
    } else if (p->status >= 400 && p->status != 503 && p->status != 429 &&
               p->status != 408) {
        roof_note("poster: m%u: %.*s", m->number, TEXT_ARGS(bytes));
        p->answered = true;
        if (m->state == MODEL_UNSENT)
            m->state = MODEL_REFUSED;
    }
    peer_close(&p->peer);
}

static bool
poster_on_line(void *context, struct text line)
{
    struct poster *p = context;
    uint64_t size;
    if (p->is_deaf) {
        peer_cut(&p->peer, (enum peer_end)below(2));
        return false;
    }
    if (text_starts(line, TEXT("HTTP/1.1 "))) {
        p->status = atoi(line.at + 9);
        roof_note("poster: m%u: %d", p->message->number, p->status);
    } else if (text_starts_nocase(line, TEXT("content-length:"))) {
        if (text_number(text_trim(text_after(line, 15)), 1 << 20, &size))
            p->peer.raw_left = 0, p->head.limit = (size_t)size + HEAD_MAX;
    } else if (line.length == 0) {
        p->peer.raw_left = p->head.limit - HEAD_MAX;
    }
    return true;
}

static void
poster_on_connected(void *context)
{
    struct poster *p = context;
    peer_add(&p->peer, buffer_text(&p->head));
    peer_add(&p->peer, buffer_text(&p->message->content));
    peer_send(&p->peer);
}

static void
try_post(void *context)
{
    struct poster *p = context;
    struct net_address from =
                           {
                               .family = NET_IPV4, .ip = {10, 1, 0, 1}
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 8080};
    size_t whole = p->head.length + p->message->content.length;
    from.ip[3] = (unsigned char)(201 + below(40));
    p->peer = (struct peer){.connected = poster_on_connected,
                            .line = poster_on_line,
                            .raw = poster_on_raw,
                            .over = poster_on_over,
                            .context = p};
    p->status = 0;
    p->is_deaf = !posters.is_good && below(6) == 0;
    if (!posters.is_good && below(4) == 0) {
        p->peer.cut_at = 1 + below((unsigned)whole);
        p->peer.cut_how = (enum peer_end)below(PEER_ENDS);
    }
    roof_timer_start(&p->patience, PATIENCE_MS, poster_on_impatience, p);
    peer_connect(&p->peer, &from, &to);
}

void
poster_begin(struct model_message *m)
{
    struct poster *p = memory_new(sizeof(*p));
    char address[MODEL_ADDRESS_MAX];
    p->message = m;
    m->born_ms = roof_now_ms();
    m->notify = NOTIFY_AS_USUAL;
    m->has_original = m->wants_header = false;
    buffer_init(&p->head, HEAD_MAX);
    model_sender_address(m, address);
    bool fits = buffer_format(&p->head,
                              "POST /v1/messages HTTP/1.1\r\nHost: "
                              "10.0.0.1:8080\r\nAuthorization: Bearer " TOKEN
                              "\r\nContent-Type: message/rfc822\r\nIdempotency-Key: "
                              "%u\r\nConnection: close\r\n"
                              "Content-Length: %zu\r\nX-Envelope-From: <%s>\r\n",
                              m->number, m->content.length, address);
    unsigned count = model_given(m);
    for (unsigned i = 0; i < count; i++) {
        model_given_address(m, i, address);
        model_given_accepted(m, i, true); /* all are, or none */
        fits = fits &&
               buffer_format(&p->head, "%s%s%s", i % 40 == 0 ? "X-Envelope-To: " : ",",
                             address, i % 40 == 39 || i + 1 == count ? "\r\n" : "");
    }
    if (!fits || !buffer_add(&p->head, TEXT("\r\n")))
        abort();
    posters.open++;
    posters.count++;
    roof_note("poster: m%u, %u recipients", m->number, count);
    try_post(p);
}
