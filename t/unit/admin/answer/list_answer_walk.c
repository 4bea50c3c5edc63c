/* A walk through the queue: which messages, where it goes on, and that it changes nothing. */
#include "admin/answer/list_answer.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

enum { SOME = 20, MESSAGES = 7 };

static char folder[40];
static struct world w;
static struct filter filter;

static struct list_walk
begin_walk(void)
{
    struct list_walk walk = {.loop = w.loop, .manager = w.manager, .questions = control_server_questions(w.control), .filter = &filter};
    return walk;
}

/* How many are wanted; the last one's id is in name. */
static size_t
walk_through(struct list_walk *walk, char name[ID_LENGTH + 1])
{
    size_t found = 0;
    while (list_walk_read(walk))
        ;
    while (!list_walk_is_over(walk)) {
        json_t *listing = list_walk_next(walk);
        if (listing == NULL)
            continue;
        found++;
        text_copy(name, ID_LENGTH + 1, text_from(json_string_value(json_object_get(listing, "queue_id"))));
        is_string(json_string_value(json_object_get(listing, "queue_name")), "hold", "its place");
        json_decref(listing);
    }
    return found;
}

TEST(all)
{
    char first[ID_LENGTH + 1] = "", name[ID_LENGTH + 1] = "";
    filter_clear(&filter);
    struct list_walk walk = begin_walk();
    is_number((long)walk_through(&walk, first), MESSAGES, "all");
    is_number((long)list_walk_seen(&walk), MESSAGES, "looked at");
    ok_named(list_walk_rest(&walk, name) == NULL, "nothing more");
    list_walk_end(&walk);
    walk = begin_walk();
    while (list_walk_read(&walk))
        ;
    json_decref(list_walk_next(&walk));
    json_decref(list_walk_next(&walk));
    const char *rest = list_walk_rest(&walk, name);
    ok_named(rest != NULL, "two of them, and where it goes on");
    list_walk_end(&walk);
    walk = begin_walk();
    walk.has_after = id_parse(text_from(name), &walk.after);
    is_number((long)walk_through(&walk, name), MESSAGES - 2, "the others");
    list_walk_end(&walk);
    walk = begin_walk();
    walk.has_after = id_parse(text_from(first), &walk.after);
    is_number((long)walk_through(&walk, name), 0, "behind the last there is none");
    ok(list_walk_rest(&walk, name) == NULL);
    list_walk_end(&walk);
}

TEST(some)
{
    char name[ID_LENGTH + 1] = "";
    filter_clear(&filter);
    ok(filter_add_id(&filter, w.id));
    struct list_walk walk = begin_walk();
    is_number((long)walk_through(&walk, name), 1, "one id");
    list_walk_end(&walk);
    filter_clear(&filter);
    filter.to = "elsewhere.test";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), 0, "no such recipient");
    is_number((long)list_walk_seen(&walk), MESSAGES, "all were looked at");
    list_walk_end(&walk);
    filter.to = "keep.test";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), MESSAGES, "all are to that domain");
    list_walk_end(&walk);
    filter.place = "deferred";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), 0, "none is deferred");
    list_walk_end(&walk);
}

/* A message that goes meanwhile, and one that cannot be read. */
TEST(gone)
{
    char why[MANAGER_WHY_MAX], name[ID_LENGTH + 1] = "";
    filter_clear(&filter);
    struct list_walk walk = begin_walk();
    while (list_walk_read(&walk))
        ;
    ok(manager_operate(w.manager, MANAGER_REMOVE, w.id, why) == MANAGER_DONE);
    control_turns(&w, SOME);
    size_t found = 0;
    while (!list_walk_is_over(&walk)) {
        json_t *listing = list_walk_next(&walk);
        found += listing != NULL;
        json_decref(listing);
    }
    is_number((long)found, MESSAGES - 1, "it is not listed");
    list_walk_end(&walk);
    filter.place = "corrupt";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), 0, "none is quarantined");
    list_walk_end(&walk);
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "list");
    control_world_begin(&w, folder, TEXT("keep.test hold\n* discard"));
    control_turns(&w, SOME);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, 1, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    control_turns(&w, SOME);
    tap_tests("");
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
