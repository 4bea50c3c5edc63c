/* The time of release: it is in each form of the envelope, and damage to it is damage. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "t/support/tap.h"

#include <stdlib.h>

static const struct id id = {.time_ms = 1750000000000, .hash = 7};

static struct envelope *
released(int64_t ms, struct text request)
{
    struct envelope *e = envelope_new();
    e->id = id;
    e->birth_ms = 1750000000000;
    if (!envelope_add(e, TEXT("a@b.test"), 0, TEXT("")))
        abort();
    envelope_release_at(e, ms, request);
    return e;
}

TEST(forms)
{
    struct envelope *e = released(1750000100000, TEXT("for;100")), *read = envelope_new(), *again = envelope_new(), *given = envelope_new();
    FIXTURE(buffer, todo, buffer_init, buffer_free, 100000);
    FIXTURE(buffer, info, buffer_init, buffer_free, 100000);
    FIXTURE(buffer, gift, buffer_init, buffer_free, 100000);
    e->moved = (struct moved_state){.came = TEXT("other/01JXT3A8RD-9F3K2C7A"), .first = TEXT("01JXT3A8RD-9F3K2C7A"), .given = 1};
    envelope_write_todo(e, &todo);
    envelope_write_info(e, 0, &info);
    ok(envelope_write_given(e, &gift));
    ok(envelope_read_todo(buffer_text(&todo), id, read) == PROGRESS_DONE);
    ok(envelope_read_info(buffer_text(&info), id, again) == PROGRESS_DONE);
    ok(envelope_read_todo(buffer_text(&gift), id, given) == PROGRESS_DONE);
    const struct envelope *const all[] = {read, again, given};
    for (size_t i = 0; i < 3; i++) {
        is_number(all[i]->release_ms, 1750000100000, "the time");
        is_text(all[i]->release_request, TEXT("for;100"), "the request");
        is_number(all[i]->moved.given, 1, "what stands behind it");
    }
    envelope_free(&e);
    envelope_free(&read);
    envelope_free(&again);
    envelope_free(&given);
}

/* An older version reads mail without one. */
TEST(without)
{
    struct envelope *e = released(0, TEXT(""));
    FIXTURE(buffer, todo, buffer_init, buffer_free, 100000);
    envelope_write_todo(e, &todo);
    ok(memmem(todo.at, todo.length, "\nW", 2) == NULL);
    envelope_free(&e);
}
