/* A story of what a loop has called. */
#include "t/support/loop_story.h"

#include "t/support/tap.h"

void
story_add(struct story *s, char letter)
{
    size_t length = strlen(s->told);

    if (length + 1 < sizeof(s->told)) {
        s->told[length] = letter;
        s->told[length + 1] = '\0';
    }
}

void
say_a(void *story)
{
    story_add(story, 'a');
}

void
say_b(void *story)
{
    story_add(story, 'b');
}

void
say_c(void *story)
{
    story_add(story, 'c');
}

void
story_stop(void *story)
{
    struct story *s = story;

    story_add(s, '.');
    loop_stop(s->loop);
}

void
story_finish(struct story *s)
{
    loop_free(&s->loop);
    ok_named(!s->loop, "loop_free() empties the pointer");
}
