/* Fuzz target: the SMTP server machine. The first byte chooses pieces, answers and
 * LMTP; the second where AUTH is offered, and the line ends of old devices. */
#include "smtp/server/server.h"

#include "smtp/server/normalize_newlines.h"
#include "t/support/sasl_kit.h"
#include "t/support/server_fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct answers {
    struct outcome refusal;
    unsigned pattern;
};

/* Every other bit of the pattern refuses. */
static const struct outcome *
answer(void *context, bool begin)
{
    struct answers *a = context;
    a->pattern = a->pattern << 1 | a->pattern >> 7;
    return (a->pattern & (begin ? 1 : 2)) != 0 ? &a->refusal : NULL;
}

/* Replies are lines of "DDD text" in printable ASCII, CRLF ended; challenges of AUTH
 * may be long. */
static void
check_replies(struct text out)
{
    struct text line;
    while (text_cut(&out, '\n', &line) && out.at != NULL) {
        assert(line.length >= 4);
        assert(line.length <= 511 || text_starts(line, TEXT("334 ")));
        assert(line.at[line.length - 1] == '\r');
        assert(line.at[0] >= '2' && line.at[0] <= '5');
        assert(!text_has_control(text_before(line, line.length - 1)));
        assert(text_is_ascii(line));
    }
    assert(line.length == 0);
}

/* Nothing in it can end another server's lines or content early. */
static bool
is_strict(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] == '\0' ||
            (t.at[i] == '\r' && (i + 1 == t.length || t.at[i + 1] != '\n')) ||
            (t.at[i] == '\n' && (i == 0 || t.at[i - 1] != '\r')))
            return false;
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct server_rules rules = {.hostname = "mx.example.org",
                                        .size_limit = 2000,
                                        .recipient_limit = 10,
                                        .hop_limit = 3,
                                        .error_limit = 0,
                                        .etrn = true,
                                        .priority = true};
    static struct fake f;
    struct answers answers = {.pattern = 0};
    struct newlines_stream newlines = {.rule = NEWLINES_LF};
    struct buffer repaired;
    if (size < 2)
        return 0;
    if (rules.users == NULL)
        rules.users = kit_users("user:" KIT_KEYS "\n");
    answers.refusal = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0", "no");
    answers.pattern = data[0] & 0x80 ? 0x55 : 0;
    size_t piece = (size_t)(data[0] & 0x1f) + 1;
    fake_start(&f, &rules, NULL, (data[0] & 0x40) != 0, (data[0] & 0x20) != 0);
    f.server.offer.defrag_host = (data[1] & 0x10) != 0 ? "mx.example.org" : NULL;
    f.server.offer.auth = data[1] % 3; /* NO, SECURE, CLEAR */
    f.server.offer.starttls = (data[1] & 0x20) != 0;
    f.server.offer.auth_required = (data[1] & 0x40) != 0;
    f.server.offer.legacy = (data[1] & 0x80) != 0;
    f.answer = answer;
    f.context = &answers;
    f.late = (data[0] & 0x10) != 0;
    struct text rest = text_of(data + 2, size - 2);
    buffer_init(&repaired, 2 * size);
    if (f.server.offer.legacy) {
        normalize_stream(&newlines, rest, &repaired);
        rest = buffer_text(&repaired);
    }
    for (; rest.length > 0 && !f.closed; rest = text_after(rest, piece))
        fake_feed(&f, text_before(rest, piece));
    check_replies(buffer_text(&f.out));
    for (size_t i = 0; i < f.count; i++) {
        const struct envelope *e = f.messages[i].envelope;
        assert(e->count > 0 && e->count <= (unsigned)rules.recipient_limit);
        assert(!text_has_control(e->sender) && !text_has_control(e->envelope_id));
        for (unsigned r = 0; r < e->count; r++)
            assert(!text_has_control(e->recipients[r].address) &&
                   !text_has_control(e->recipients[r].original));
        assert(f.messages[i].content.length <= (size_t)rules.size_limit);
        assert(e->binary || is_strict(buffer_text(&f.messages[i].content)));
        assert(!e->fragment.by_peer || (f.server.offer.defrag_host != NULL && e->trust.length == 0));
        assert(e->fragment.by_peer == (e->fragment.set_mark.length > 0));
    }
    server_fake_end(&f);
    buffer_free(&repaired);
    return 0;
}
