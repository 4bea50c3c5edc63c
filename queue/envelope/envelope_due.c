/* The slot in info/ID that is overwritten in place: when the message is due, after how
 * many attempts, and whether its sender was notified of the delay. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "queue/envelope/envelope_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

bool
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
