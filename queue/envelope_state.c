/* The state of a message on disk: when it is due, its failures, and both in todo/ID of a message
 * that moves between the hosts of a group. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "base/memory.h"
#include "queue/envelope/envelope_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- The slot in info/ID --------------------------------------------------------- */

/* Overwritten in place: when the message is due, after how
 * many attempts, and whether its sender was notified of the delay. */
enum {
    DUE_DIGITS_MS = 14,
    ATTEMPTS_DIGITS = 7,
    AGE_END = DUE_DIGITS_MS + 1 + ATTEMPTS_DIGITS + 1,
    RELEASED = '+',
    /* With an age of warnings, which needs digits of the attempts; released or not. */
    AGED = '-',
    AGED_RELEASED = '*',
    AGED_ATTEMPTS_DIGITS = 3, /* of base 36, as the next */
    AGE_DIGITS = 5,
    DIGITS_BASE = 36
};
static const int64_t due_max_ms = 99999999999999;
static const unsigned attempts_max = 9999999;
static const int64_t aged_attempts_max = 46655,
                     age_max_s = 60466175; /* of the digits */

static void
age_digits_write(int64_t value, char *out, unsigned count)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (unsigned i = count; i > 0; i--, value /= DIGITS_BASE)
        out[i - 1] = digits[value % DIGITS_BASE];
    out[count] = '\0';
}

/* -1: others. */
static int64_t
age_digits_read(struct text t)
{
    int64_t value = 0;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.at[i];
        if (!text_is_digit(c) && (c < 'a' || c > 'z'))
            return -1;
        value = value * DIGITS_BASE + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
}

static int64_t
at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* Seven digits and a space, or in fewer digits and the age of the last warning. */
static void
write_attempts(const struct envelope *e, char out[ATTEMPTS_DIGITS + 2])
{
    if (e->delivery.warned_s <= 0) {
        snprintf(out, ATTEMPTS_DIGITS + 2, "%07u ",
                 (unsigned)at_most(e->delivery.attempts, attempts_max));
        return;
    }
    age_digits_write(at_most(e->delivery.attempts, aged_attempts_max), out,
                     AGED_ATTEMPTS_DIGITS);
    age_digits_write(at_most(e->delivery.warned_s, age_max_s),
                     out + AGED_ATTEMPTS_DIGITS, AGE_DIGITS);
}

/* The slot always has the same size, because it is overwritten in place; a checksum of
 * its own tells a torn write. */
void
envelope_write_due(const struct envelope *e, char out[ENVELOPE_DUE_SIZE])
{
    const struct delivery_state *d = &e->delivery;
    char slot[ENVELOPE_DUE_SIZE + 1], attempts[ATTEMPTS_DIGITS + 2];
    int64_t due = d->due_ms < 0 ? 0 : at_most(d->due_ms, due_max_ms);
    char kind = d->released ? RELEASED : ' ';
    if (d->warned_s > 0)
        kind = d->released ? AGED_RELEASED : AGED;
    write_attempts(e, attempts);
    int length =
        snprintf(slot, sizeof(slot), "%014" PRId64 "%c%s", due, kind, attempts);
    uint32_t crc = crc_add(envelope_crc_of_name(e->id), slot, (size_t)length);
    length +=
        snprintf(slot + length, sizeof(slot) - (size_t)length, "%08" PRIx32 "\n", crc);
    assert(length == ENVELOPE_DUE_SIZE);
    memcpy(out, slot, ENVELOPE_DUE_SIZE);
}

/* The age at which the sender was notified; 0: never. */
static int64_t
warned_read(struct text slot)
{
    char kind = slot.at[DUE_DIGITS_MS];
    if (kind != AGED && kind != AGED_RELEASED)
        return 0;
    int64_t age = age_digits_read(text_before(
        text_after(slot, DUE_DIGITS_MS + 1 + AGED_ATTEMPTS_DIGITS), AGE_DIGITS));
    return age > 0 ? age : 0;
}

/* False: they are no number. */
static bool
attempts_read(struct text slot, unsigned *attempts)
{
    struct text rest = text_after(slot, DUE_DIGITS_MS + 1);
    uint64_t number = 0;
    char kind = slot.at[DUE_DIGITS_MS];
    if (kind == AGED || kind == AGED_RELEASED) {
        int64_t read = age_digits_read(text_before(rest, AGED_ATTEMPTS_DIGITS));
        *attempts = (unsigned)read;
        return read >= 0;
    }
    bool good = text_number(text_before(rest, ATTEMPTS_DIGITS), attempts_max, &number);
    *attempts = (unsigned)number;
    return good;
}

static bool
envelope_read_slot(struct text slot, struct id id, struct envelope *e)
{
    uint64_t due = 0;
    struct envelope trial = {.id = id};
    char again[ENVELOPE_DUE_SIZE];
    e->delivery.due_ms = 0;
    e->delivery.attempts = 0;
    /* Warnings count even in a torn slot: else the sender would be warned again. */
    e->delivery.warned_s = e->delivery.warned_kept_s =
        slot.length >= AGE_END ? warned_read(slot) : 0;
    if (slot.length < ENVELOPE_DUE_SIZE ||
        !text_number(text_before(slot, DUE_DIGITS_MS), (uint64_t)due_max_ms, &due) ||
        !attempts_read(slot, &trial.delivery.attempts))
        return false;
    char kind = slot.at[DUE_DIGITS_MS];
    trial.delivery.due_ms = (int64_t)due;
    trial.delivery.released = kind == RELEASED || kind == AGED_RELEASED;
    trial.delivery.warned_s = e->delivery.warned_s;
    /* A slot counts only if its values, written again, give the same bytes. */
    envelope_write_due(&trial, again);
    if (!text_equal(slot, text_of(again, sizeof(again))))
        return false; /* torn write: due now */
    e->delivery.due_ms = trial.delivery.due_ms;
    e->delivery.attempts = trial.delivery.attempts;
    e->delivery.released = trial.delivery.released;
    return true;
}

void
envelope_read_due(struct text start, struct id id, struct envelope *e)
{
    struct text slot =
        text_before(text_after(start, ENVELOPE_DUE_OFFSET), ENVELOPE_DUE_SIZE);
    (void)envelope_read_slot(slot, id, e);
}

/* --- Failures -------------------------------------------------------------------- */

/* They are appended to bounce/ID, each with a checksum of its own. */
static const char failure_title[] = "\nfailure ";

enum {
    CIRCUMSTANCE_EXPIRED = 1,
    CIRCUMSTANCE_RELAYED = 2,
    CIRCUMSTANCE_NOTIFIED = 4,
    CIRCUMSTANCES = 7
};

/* The second record of a recipient replaces the first: it says that the failure was
 * reported. */
void
envelope_fail(struct envelope *e, const struct failure *failure)
{
    assert(failure->recipient < e->count);
    unsigned n = e->delivery.failure_count;
    if (n > 0 && e->delivery.failures[n - 1].recipient == failure->recipient) {
        e->delivery.failures[n - 1] = *failure;
        return;
    }
    if ((n & (n - 1)) == 0) /* full at each power of two */
        e->delivery.failures = memory_resize(
            e->delivery.failures, (n > 0 ? 2 * n : 1) * sizeof(*e->delivery.failures));
    e->delivery.failures[n] = *failure;
    e->delivery.failure_count++;
}

static unsigned
circumstances_of(const struct failure *f)
{
    return (f->expired ? CIRCUMSTANCE_EXPIRED : 0U) |
           (f->relayed ? CIRCUMSTANCE_RELAYED : 0U) |
           (f->notified ? CIRCUMSTANCE_NOTIFIED : 0U);
}

void
envelope_write_failure(const struct envelope *e, const struct failure *f,
                       struct buffer *out)
{
    const struct outcome *o = &f->outcome;
    struct buffer payload;
    buffer_init(&payload, 4096);
    bool fits = buffer_format(&payload, "%u %u %u %u %u %zu %zu %zu:%s%s%s",
                              f->recipient, circumstances_of(f), (unsigned)o->verdict,
                              (unsigned)o->blame, (unsigned)(o->code > 0 ? o->code : 0),
                              strlen(o->enhanced), strlen(o->text), strlen(o->remote),
                              o->enhanced, o->text, o->remote);
    assert(fits);
    uint32_t crc = crc_add(envelope_crc_of_name(e->id), payload.at, payload.length);
    fits = buffer_format(out, "%s%zu %" PRIu32 ":", failure_title, payload.length, crc);
    assert(fits);
    fits = buffer_add(out, buffer_text(&payload)) && buffer_add_byte(out, '\n');
    assert(fits);
    buffer_free(&payload);
}

static bool
parse_failure(struct text payload, unsigned recipients, struct failure *f)
{
    struct reading r = {.all = payload, .end = payload.length};
    *f = (struct failure){0};
    f->recipient = (unsigned)envelope_take_number(&r, ' ', ENVELOPE_STORED_MAX);
    uint64_t circumstances = envelope_take_number(&r, ' ', CIRCUMSTANCES);
    f->expired = (circumstances & CIRCUMSTANCE_EXPIRED) != 0;
    f->relayed = (circumstances & CIRCUMSTANCE_RELAYED) != 0;
    f->notified = (circumstances & CIRCUMSTANCE_NOTIFIED) != 0;
    f->outcome.verdict = (enum verdict)envelope_take_number(&r, ' ', VERDICT_FAILED);
    f->outcome.blame = (enum blame)envelope_take_number(&r, ' ', BLAME_DEMAND);
    f->outcome.code = (int)envelope_take_number(&r, ' ', 999);
    size_t enhanced =
        (size_t)envelope_take_number(&r, ' ', sizeof(f->outcome.enhanced) - 1);
    size_t text = (size_t)envelope_take_number(&r, ' ', sizeof(f->outcome.text) - 1);
    size_t remote =
        (size_t)envelope_take_number(&r, ':', sizeof(f->outcome.remote) - 1);
    text_copy(f->outcome.enhanced, sizeof(f->outcome.enhanced),
              envelope_take(&r, enhanced));
    text_copy(f->outcome.text, sizeof(f->outcome.text), envelope_take(&r, text));
    text_copy(f->outcome.remote, sizeof(f->outcome.remote), envelope_take(&r, remote));
    return !r.bad && r.at == r.end && f->recipient < recipients;
}

/* The size of the complete failure at the start of rest, or 0. */
static size_t
read_failure(struct text rest, const struct envelope *e, struct failure *f)
{
    struct reading r = {.all = rest, .end = rest.length};
    (void)envelope_take(&r, sizeof(failure_title) - 1);
    size_t length = (size_t)envelope_take_number(&r, ' ', 4096);
    uint64_t crc = envelope_take_number(&r, ':', UINT32_MAX);
    struct text payload = envelope_take(&r, length);
    if (!text_equal(envelope_take(&r, 1), TEXT("\n")) || r.bad ||
        crc_add(envelope_crc_of_name(e->id), payload.at, payload.length) != crc ||
        !parse_failure(payload, e->count, f))
        return 0;
    return r.at;
}

/* The text is durable no later than the D mark, which may be missing after a crash. */
static void
take_failure(struct envelope *e, const struct failure *f)
{
    envelope_fail(e, f);
    if (!e->recipients[f->recipient].done) {
        e->recipients[f->recipient].done = true;
        e->delivery.done++;
    }
}

/* An append that a crash cuts off leaves a part of a record, and later ones follow it.
 * So a damaged record is skipped, and the next title is searched. */
void
envelope_read_failures(struct text bytes, struct envelope *e)
{
    /* By recipient: where its failure stands, from 1. */
    unsigned *known = memory_array(e->count > 0 ? e->count : 1, sizeof(*known));
    for (unsigned i = 0; i < e->delivery.failure_count; i++)
        known[e->delivery.failures[i].recipient] = i + 1;
    for (;;) {
        struct failure f;
        const char *at = bytes.length == 0
                             ? NULL
                             : memmem(bytes.at, bytes.length, failure_title,
                                      sizeof(failure_title) - 1);
        if (at == NULL)
            break;
        bytes = text_after(bytes, (size_t)(at - bytes.at));
        size_t size = read_failure(bytes, e, &f);
        bytes = text_after(bytes, size > 0 ? size : 1);
        if (size == 0)
            continue;
        if (known[f.recipient] == 0) {
            take_failure(e, &f);
            known[f.recipient] = e->delivery.failure_count;
        } else if (f.notified) {
            e->delivery.failures[known[f.recipient] - 1].notified = true;
        }
    }
    free(known);
}

/* --- The state that comes from another host --------------------------------------- */

enum {
    STATE_MAX = 8 * 1024 * 1024, /* a record; longer ones stay where they are */
    FAILURE_SIZE_MAX = 4200      /* of envelope_write_failure() */
};

/* --- From where it came ----------------------------------------------------------- */

void
envelope_add_moves(const struct envelope *e, struct buffer *out)
{
    const struct moved_state *m = &e->moved;
    if (m->given == 0) /* then an older version can read it */
        return;
    bool fits = buffer_format(out, "H%zu:%u ", m->came.length + (m->given > 9 ? 3 : 2),
                              m->given) &&
                buffer_add(out, m->came) && buffer_add_byte(out, '\n');
    assert(fits && m->given <= ENVELOPE_MOVES_MAX);
    envelope_add_record(out, 'B', m->first);
}

/* HOST/ID */
static bool
given_is_place(struct text came)
{
    struct text host = text_before(came, text_find(came, '/'));
    struct id id;
    return came.length <= ENVELOPE_CAME_MAX && host.length > 0 &&
           host.length < came.length &&
           id_parse(text_after(came, host.length + 1), &id);
}

void
envelope_take_moves(struct reading *r, struct envelope *e)
{
    struct id id;
    struct text number;
    uint64_t given = 0;
    if (!envelope_stands_there(r, 'H'))
        return;
    struct text came = envelope_take_record(r, 'H');
    struct text first = envelope_take_record(r, 'B');
    if (!text_cut(&came, ' ', &number) || number.length > 2 ||
        !text_number(number, ENVELOPE_MOVES_MAX, &given) || given == 0 ||
        number.length != (given > 9 ? 2 : 1) || !given_is_place(came) ||
        !id_parse(first, &id)) {
        r->bad = true;
        return;
    }
    e->moved.given = (unsigned)given;
    e->moved.came = envelope_text(e, came);
    e->moved.first = envelope_text(e, first);
    r->bad = r->bad || e->moved.came.at == NULL || e->moved.first.at == NULL;
}

/* --- Its state -------------------------------------------------------------------- */

static bool
given_add_number(struct buffer *out, unsigned number, char behind)
{
    return buffer_add_number(out, number) && buffer_add_byte(out, behind);
}

static bool
given_add_marks(const struct envelope *e, struct buffer *out)
{
    bool fits = given_add_number(out, e->delivery.done, ':');
    for (unsigned i = 0; i < e->count && fits; i++)
        if (e->recipients[i].done)
            fits = given_add_number(out, i, ' ');
    return fits;
}

static bool
given_add_failures(const struct envelope *e, struct buffer *out)
{
    bool fits = given_add_number(out, e->delivery.failure_count, ':');
    for (unsigned i = 0; i < e->delivery.failure_count && fits; i++) {
        fits = out->length <= STATE_MAX - FAILURE_SIZE_MAX;
        if (fits)
            envelope_write_failure(e, &e->delivery.failures[i], out);
    }
    return fits;
}

bool
envelope_add_state(const struct envelope *e, struct buffer *out)
{
    struct buffer state;
    char slot[ENVELOPE_DUE_SIZE];
    struct text hold = text_before(e->moved.hold, ENVELOPE_HOLD_MAX);
    struct text reason = text_before(e->moved.reason, ENVELOPE_REASON_MAX);
    buffer_init(&state, STATE_MAX);
    envelope_write_due(e, slot);
    bool fits = buffer_add(&state, text_of(slot, sizeof(slot))) &&
                given_add_marks(e, &state) &&
                given_add_number(&state, (unsigned)hold.length, ':') &&
                buffer_add(&state, hold) &&
                given_add_number(&state, (unsigned)reason.length, ':') &&
                buffer_add(&state, reason) && given_add_failures(e, &state);
    if (fits)
        envelope_add_record(out, 'L', buffer_text(&state));
    buffer_free(&state);
    return fits;
}

/* In ascending order, so none stands twice. */
static void
given_take_marks(struct reading *r, struct envelope *e)
{
    uint64_t count = envelope_take_number(r, ':', e->count), least = 0;
    for (; count > 0 && !r->bad; count--) {
        uint64_t index = envelope_take_number(r, ' ', ENVELOPE_STORED_MAX);
        if (index < least || index >= e->count)
            r->bad = true;
        if (r->bad)
            return;
        least = index + 1;
        e->recipients[index].done = true;
        e->delivery.done++;
    }
}

void
envelope_take_state(struct reading *r, struct envelope *e)
{
    if (!envelope_stands_there(r, 'L'))
        return;
    struct text state = envelope_take_record(r, 'L');
    struct reading s = {.all = state, .end = state.length, .bad = r->bad};
    struct text slot = envelope_take(&s, ENVELOPE_DUE_SIZE);
    s.bad = s.bad || !envelope_read_slot(slot, e->id, e);
    given_take_marks(&s, e);
    size_t length = (size_t)envelope_take_number(&s, ':', ENVELOPE_HOLD_MAX);
    e->moved.hold = envelope_text(e, envelope_take(&s, length));
    length = (size_t)envelope_take_number(&s, ':', ENVELOPE_REASON_MAX);
    e->moved.reason = envelope_text(e, envelope_take(&s, length));
    uint64_t failures = envelope_take_number(&s, ':', e->count);
    if (!s.bad)
        envelope_read_failures(text_after(state, s.at), e);
    if (s.bad || e->moved.hold.at == NULL || e->moved.reason.at == NULL ||
        e->delivery.failure_count != failures)
        r->bad = true;
}
