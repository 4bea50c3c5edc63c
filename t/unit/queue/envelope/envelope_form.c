/* The number of the form is the last digit of the title: any but our own and earlier ones is refused, and a later one is
 * known as such. */
#include "queue/envelope/envelope.h"

#include "t/support/tap.h"

int
main(void)
{
    struct envelope *e = envelope_new();
    struct buffer todo;
    e->id = (struct id){.time_ms = 1, .hash = 2};
    ok(envelope_add(e, TEXT("a@x.test"), NOTIFY_DEFAULT, TEXT("")));
    buffer_init(&todo, 64 * 1024);
    envelope_write_todo(e, &todo);
    ok(text_starts(buffer_text(&todo), TEXT("petrel-todo   1\n")));
    ok_named(!envelope_is_newer(buffer_text(&todo)), "our own is not newer");
    for (const char *digit = "1 0:29"; *digit != '\0'; digit++) {
        struct envelope *read = envelope_new();
        todo.at[14] = *digit;
        ok_named((envelope_read_todo(buffer_text(&todo), e->id, read) == PROGRESS_DONE) == (*digit == '1'), "our own is read");
        ok_named(envelope_is_newer(buffer_text(&todo)) == (*digit == '2' || *digit == '9'), "newer, or damage");
        envelope_free(&read);
    }
    ok_named(!envelope_is_newer(TEXT("petrel-todo   2")), "cut off");
    ok_named(!envelope_is_newer(TEXT("petrel-info   2\n")), "another file");
    buffer_free(&todo);
    envelope_free(&e);
    return done();
}
