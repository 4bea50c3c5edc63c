/* The hub: readers by kind, and their limits; a word for each kind. */
#include "base/event/event.h"

#include "t/support/tap.h"

#include <string.h>

struct reader {
    unsigned events;
    enum event_kind last;
};

static void
note(void *context, const struct event *event)
{
    struct reader *r = context;
    r->events++;
    r->last = event->kind;
}

int
main(void)
{
    struct reader mail = {0}, all = {0};
    struct event_hub *hub = event_hub_new(NULL);
    struct event accepted = {.kind = EVENT_ACCEPTED}, refused = {.kind = EVENT_REFUSED};
    ok_named(!event_is_read(hub, EVENT_ACCEPTED), "nobody reads");
    event_tell(hub, &accepted);
    event_read(hub, EVENT_BIT(EVENT_ACCEPTED), note, &mail);
    ok(event_is_read(hub, EVENT_ACCEPTED) && !event_is_read(hub, EVENT_REFUSED));
    event_tell(hub, &accepted);
    event_tell(hub, &refused);
    is_number(mail.events, 1, "a reader gets its kinds");
    event_read(hub, EVENT_ALL, note, &all);
    event_tell(hub, &refused);
    ok(mail.events == 1 && all.events == 1 && all.last == EVENT_REFUSED);
    event_read(hub, EVENT_BIT(EVENT_REFUSED), note, &mail);
    event_tell(hub, &refused);
    is_number(mail.events, 2, "it may change them");
    event_read(hub, 0, note, &mail);
    event_tell(hub, &refused);
    ok_named(mail.events == 2 && all.events == 3, "and leave");
    event_read(hub, 0, note, &all);
    ok(!event_is_read(hub, EVENT_REFUSED));
    for (int i = 0; i < EVENT_KINDS; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(event_word((enum event_kind)i), event_word((enum event_kind)j)) ==
                0)
                ok_named(false, event_word((enum event_kind)i));
    event_hub_free(&hub);
    event_tell(NULL, &accepted);
    ok_named(!event_is_read(NULL, EVENT_ACCEPTED) && event_hub_log(NULL) == NULL,
             "without a hub nothing happens");
    return done();
}
