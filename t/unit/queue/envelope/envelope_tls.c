/* The wish of a sender for TLS: it is in each form of the envelope, and damage to it is damage. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "t/support/tap.h"

#include <stdlib.h>

static const struct id id = {.time_ms = 1750000000000, .hash = 7};

static struct envelope *
asking(enum envelope_tls tls)
{
    struct envelope *e = envelope_new();
    e->id = id;
    e->birth_ms = 1750000000000;
    e->tls = tls;
    if (!envelope_add(e, TEXT("a@b.test"), 0, TEXT("")))
        abort();
    return e;
}

TEST(forms)
{
    static const enum envelope_tls all[] = {ENVELOPE_TLS_WAIVED, ENVELOPE_TLS_PLAIN, ENVELOPE_TLS_REQUIRED};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct envelope *e = asking(all[i]), *read = envelope_new(), *again = envelope_new(), *given = envelope_new();
        FIXTURE(buffer, todo, buffer_init, buffer_free, 100000);
        FIXTURE(buffer, info, buffer_init, buffer_free, 100000);
        FIXTURE(buffer, gift, buffer_init, buffer_free, 100000);
        e->moved = (struct moved_state){.came = TEXT("other/01JXT3A8RD-9F3K2C7A"), .first = TEXT("01JXT3A8RD-9F3K2C7A"), .given = 1};
        envelope_release_at(e, 1750000100000, TEXT("for;100"));
        envelope_write_todo(e, &todo);
        envelope_write_info(e, 0, &info);
        ok(envelope_write_given(e, &gift));
        ok(envelope_read_todo(buffer_text(&todo), id, read) == PROGRESS_DONE);
        ok(envelope_read_info(buffer_text(&info), id, again) == PROGRESS_DONE);
        ok(envelope_read_todo(buffer_text(&gift), id, given) == PROGRESS_DONE);
        const struct envelope *const readings[] = {read, again, given};
        for (size_t k = 0; k < 3; k++) {
            is_number(readings[k]->tls, all[i], "what is asked");
            is_number(readings[k]->release_ms, 1750000100000, "what stands before it");
            is_number(readings[k]->moved.given, 1, "what stands behind it");
        }
        ok_named((memmem(todo.at, todo.length, "\nZ", 2) == NULL) == (all[i] == ENVELOPE_TLS_PLAIN), "nothing: an older version reads it");
        envelope_free(&e);
        envelope_free(&read);
        envelope_free(&again);
        envelope_free(&given);
    }
}
