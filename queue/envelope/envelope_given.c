/* The data that a message brings from another host of the group: its origin, and its
 * state there. */
#include "queue/envelope/envelope.h"

#include "queue/envelope/envelope_internal.h"

#include <assert.h>

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
        uint64_t index = envelope_take_number(r, ' ', ENVELOPE_RECIPIENTS_MAX);
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
