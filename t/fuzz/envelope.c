/* Fuzz target: the files of an envelope. Bytes are read as they are, and once more with
 * length and checksum put right, as an injector could forge them. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "mime/address.h"
#include "queue/spool/injected.h"

#include "t/support/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FORM_MAX = 1024 * 1024, LENGTH_LINE = 18 };

static const struct id id = {.time_ms = 1700000000000, .hash = 0x1234567890};

static void
check_envelope(const struct envelope *e, bool complete)
{
    unsigned done = 0;
    must(e->count <= ENVELOPE_RECIPIENTS_MAX && e->birth_ms >= 0 &&
         e->content_size >= 0 && e->ret <= RETURN_FULL);
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        must(!complete || (r->address.at != NULL && r->original.at != NULL));
        done += r->done;
    }
    must(done == e->delivery.done);
    for (unsigned i = 0; i < e->delivery.failure_count; i++)
        must(e->delivery.failures[i].recipient < e->count);
}

/* An envelope that was read can be written, and is read again as the same. */
static void
check_todo_again(const struct envelope *e)
{
    struct buffer form, again;
    buffer_init(&form, 2 * FORM_MAX);
    buffer_init(&again, 2 * FORM_MAX);
    struct envelope *copy = envelope_new();
    envelope_write_todo(e, &form);
    must(envelope_read_todo(buffer_text(&form), id, copy) == PROGRESS_DONE);
    envelope_write_todo(copy, &again);
    must(text_equal(buffer_text(&form), buffer_text(&again)));
    envelope_free(&copy);
    buffer_free(&form);
    buffer_free(&again);
}

/* The same for what another host gives. */
static void
check_given_again(const struct envelope *e)
{
    struct buffer form, again;
    buffer_init(&form, 16 * FORM_MAX);
    buffer_init(&again, 16 * FORM_MAX);
    struct envelope *copy = envelope_new();
    must(e->moved.given <= ENVELOPE_MOVES_MAX &&
         e->moved.came.length <= ENVELOPE_CAME_MAX &&
         e->moved.hold.length <= ENVELOPE_HOLD_MAX);
    must(envelope_write_given(e, &form));
    must(envelope_read_todo(buffer_text(&form), id, copy) == PROGRESS_DONE);
    must(copy->delivery.done == e->delivery.done &&
         copy->delivery.failure_count == e->delivery.failure_count &&
         copy->delivery.due_ms == e->delivery.due_ms);
    must(envelope_write_given(copy, &again));
    must(text_equal(buffer_text(&form), buffer_text(&again)));
    envelope_free(&copy);
    buffer_free(&form);
    buffer_free(&again);
}

/* The accepted part of another user's envelope has only values that it may set, in
 * words fit for a wire. */
static void
check_injected(struct envelope *e)
{
    const int64_t now_ms = 1763800000000;
    struct address address;
    if (injected_take(e, 1000, now_ms) != NULL)
        return;
    must(e->fragment.made_of.length == 0 && e->fragment.set_mark.length == 0 && !e->fragment.by_peer);
    must(e->message_id.length == 0 && e->tag.length == 0);
    must(e->moved.given == 0 && e->moved.came.length == 0 && e->moved.hold.length == 0);
    must(e->delivery.done == 0 && e->delivery.failure_count == 0 &&
         e->delivery.due_ms == 0 && !e->delivery.released);
    must(e->priority == 0 && !e->double_bounce && !e->ascii_header);
    must(text_equal(e->trust, TEXT("int")) && e->count > 0);
    must(e->birth_ms > 0 && e->birth_ms <= now_ms);
    must(e->sender.length == 0 || address_parse(e->sender, &address));
    must(e->envelope_id.length == 0 || !text_has_control(e->envelope_id));
    for (unsigned i = 0; i < e->count; i++)
        must(e->recipients[i].address.length > 0 &&
             e->recipients[i].address.length <= INJECTED_ADDRESS_MAX &&
             !text_has_control(e->recipients[i].original));
    check_todo_again(e);
}

static void
read_todo(struct text form)
{
    struct envelope *e = envelope_new();
    if (envelope_read_todo(form, id, e) == PROGRESS_DONE) {
        check_envelope(e, true);
        check_todo_again(e);
        check_given_again(e);
        check_injected(e);
    }
    envelope_free(&e);
}

/* The three files of S5 behind one another, cut at what the first bytes say. */
static void
read_preprocessed(struct text info, struct text local, struct text failures)
{
    struct envelope *e = envelope_new();
    if (envelope_read_info(info, id, e) == PROGRESS_DONE) {
        check_envelope(e, false);
        bool whole =
            envelope_read_channel(local, id, CHANNEL_LOCAL, e) == PROGRESS_DONE;
        for (unsigned i = 0; i < e->count; i++)
            whole = whole && e->recipients[i].address.at != NULL;
        if (whole) {
            envelope_read_failures(failures, e);
            check_envelope(e, true);
        }
    }
    envelope_free(&e);
}

/* Title, due slot, length and trailer around the records. */
static void
forge(const char *title, struct text records, struct buffer *out)
{
    char name[ID_LENGTH + 1];
    bool has_due = strncmp(title, "petrel-info", 11) == 0;
    buffer_init(out, FORM_MAX);
    id_format(id, name);
    must(buffer_format(out, "%s", title));
    if (has_due) {
        struct envelope due = {.id = id, .delivery.due_ms = 1700000001000, .delivery.attempts = 3};
        char slot[ENVELOPE_DUE_SIZE];
        envelope_write_due(&due, slot);
        must(buffer_add(out, text_of(slot, sizeof(slot))));
    }
    size_t start = out->length;
    must(buffer_format(out, "length %010zu\n",
                       start + LENGTH_LINE + records.length + 17) &&
         buffer_add(out, records));
    uint32_t crc = crc_add(crc_add(0, name, ID_LENGTH), title, strlen(title));
    crc = crc_add(crc, out->at + start, out->length - start);
    must(buffer_format(out, "crc %08" PRIx32 "\nend\n", crc));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text t = text_of(data, size), rest = t, info, local;
    struct buffer todo, first, second;
    read_todo(t);
    /* A line of its own parts the two files and the failures. */
    const char *parted = size > 0 ? memmem(t.at, t.length, "\n--\n", 4) : NULL;
    info = text_before(t, parted ? (size_t)(parted - t.at) + 1 : t.length);
    rest = text_after(t, parted ? info.length + 3 : t.length);
    parted = rest.length > 0 ? memmem(rest.at, rest.length, "\n--\n", 4) : NULL;
    local = text_before(rest, parted ? (size_t)(parted - rest.at) + 1 : rest.length);
    rest = text_after(rest, parted ? local.length + 3 : rest.length);
    read_preprocessed(info, local, rest);
    forge("petrel-todo   1\n", t, &todo);
    forge("petrel-info   1\n", info, &first);
    forge("petrel-local  1\n", local, &second);
    read_todo(buffer_text(&todo));
    read_preprocessed(buffer_text(&first), buffer_text(&second), rest);
    buffer_free(&todo);
    buffer_free(&first);
    buffer_free(&second);
    return 0;
}
