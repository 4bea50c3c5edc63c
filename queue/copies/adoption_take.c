/* Walks through copies page by page, and takes messages, a few at a time. */
#include "queue/copies/adoption_internal.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 16 /* messages, more or less */ };

/* --- A message --------------------------------------------------------------------- */

static void
slot_free(struct adoption_slot *slot)
{
    struct adoption *a = slot->adoption;
    if (slot->taking != NULL)
        a->gifts.take_drop(&slot->taking);
    buffer_free(&slot->form);
    slot->step = SLOT_FREE;
    adoption_stir(a);
}

/* It is tried again in the next round. */
static void
slot_later(struct adoption_slot *slot)
{
    slot->adoption->walk.later++;
    adoption_rest(slot->adoption);
    slot_free(slot);
}

/* Said once. It keeps nothing else waiting. */
static void
walk_note_unreadable(struct adoption *a, const char *name, struct text field,
                     const char *why)
{
    const struct adoption_row *row = adoption_find(a, text_from(name));
    char key[COPIES_KEY_MAX + 1];
    a->walk.unreadable += strcmp(name, a->walk.name) == 0;
    copies_key(a->setup.settings, name, key);
    snprintf(a->unreadable_at, sizeof(a->unreadable_at), "field %.*s of %s",
             (int)text_before(field, ID_LENGTH).length, field.at, key);
    if (row == NULL || row->unreadable == 0)
        log_say(a->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
                "a copy stays where it is, %s: %s", a->unreadable_at, why);
}

static void
slot_unreadable(struct adoption_slot *slot, const char *why)
{
    walk_note_unreadable(slot->adoption, slot->name, text_from(ID_TEXT(slot->id)), why);
    slot_free(slot);
}

static void slot_hear_taken(struct adoption *a, struct adoption_slot *slot,
                            const struct redis_reply *reply, const char *why);
static void slot_hear_piece(struct adoption *a, struct adoption_slot *slot,
                            const struct redis_reply *reply, const char *why);

static void
slot_say_taken(struct adoption_slot *slot)
{
    struct adoption *a = slot->adoption;
    char there[ADOPTION_ENTRY_MAX];
    snprintf(there, sizeof(there), "%s/%s", a->setup.settings->host,
             ID_TEXT(slot->own));
    slot->is_asked = true;
    adoption_ask(a, slot_hear_taken, slot, &adoption_script_taken, slot->name,
                 ADOPTION_WORDS(ID_TEXT(slot->id), there, slot->batch));
    slot->batch[0] = '\0';
}

static void
slot_decide(struct adoption_slot *slot, bool is_ours)
{
    struct adoption *a = slot->adoption;
    char host[GROUP_HOST_MAX + 1];
    (void)text_copy(host, sizeof(host), adoption_host(slot->name));
    a->walk.taken_ms = loop_monotonic_ms(a->setup.loop);
    take_decide(a->setup.take, host, slot->id, is_ours);
    if (is_ours && strcmp(slot->name, a->name) == 0)
        a->state.recalled++;
    else if (is_ours && id_compare(slot->id, slot->own) != 0)
        a->state.adopted++;
    slot_free(slot);
}

/* Without a word, or with an odd one, it waits for the next: it may be ours, or another host's. */
static void
slot_hear_taken(struct adoption *a, struct adoption_slot *slot,
                const struct redis_reply *reply, const char *why)
{
    (void)why;
    slot->is_asked = false;
    struct text word = reply != NULL ? reply->text : TEXT("");
    bool is_theirs = text_equal(word, TEXT("theirs"));
    if (!is_theirs && !text_equal(word, TEXT("ours")) &&
        !text_equal(word, TEXT("nobody's"))) {
        adoption_rest(a);
        return;
    }
    if (is_theirs)
        adoption_walk_lost(a, slot->name);
    slot_decide(slot, !is_theirs);
}

static void
slot_on_stored(void *context, struct id own, const struct outcome *refusal)
{
    struct adoption_slot *slot = context;
    struct adoption *a = slot->adoption;
    if (refusal != NULL) {
        if (refusal->code >= 500)
            slot_unreadable(slot, refusal->text);
        else
            slot_later(slot);
        return;
    }
    slot->own = own;
    slot->step = SLOT_STORED;
    if (copies_engine_is_ready(a->setup.engine))
        slot_say_taken(slot);
}

static void
slot_ask_piece(struct adoption_slot *slot)
{
    struct adoption *a = slot->adoption;
    bool is_form = slot->step == SLOT_FORM;
    char at[24], size[24];
    snprintf(at, sizeof(at), "%" PRId64,
             is_form ? (int64_t)slot->form.length : slot->at);
    snprintf(size, sizeof(size), "%d", ADOPTION_PIECE);
    slot->is_asked = true;
    adoption_ask(
        a, slot_hear_piece, slot, &adoption_script_piece, slot->name,
        ADOPTION_WORDS(ID_TEXT(slot->id), is_form ? "form" : "content", at, size));
}

static void
slot_go_on(struct adoption_slot *slot)
{
    struct adoption *a = slot->adoption;
    if (slot->at < slot->content) {
        slot_ask_piece(slot);
        return;
    }
    slot->step = SLOT_STORING;
    a->gifts.take_end(&slot->taking, slot_on_stored, slot);
}

/* NULL: it is being taken, or has ended meanwhile. */
static const char *
slot_begin_taking(struct adoption_slot *slot)
{
    struct adoption *a = slot->adoption;
    struct outcome refusal;
    struct text sections;
    uint64_t batch = 0;
    char host[GROUP_HOST_MAX + 1];
    struct envelope *e = envelope_new();
    bool is_whole = copies_read_field(buffer_text(&slot->form), &batch, &sections) &&
                    envelope_read_todo(sections, slot->id, e) == PROGRESS_DONE;
    slot->content = e->content_size;
    snprintf(slot->batch, sizeof(slot->batch), "%" PRIu64, batch);
    envelope_free(&e);
    if (!is_whole)
        return "its envelope cannot be read";
    const struct sibling_message message = {
        .id = slot->id, .sections = sections.length, .content = slot->content};
    (void)text_copy(host, sizeof(host), adoption_host(slot->name));
    slot->taking = take_adopt(a->setup.take, host, &message, &refusal);
    if (slot->taking == NULL) {
        slot_later(slot);
        return NULL;
    }
    a->gifts.take_bytes(slot->taking, sections);
    buffer_free(&slot->form);
    slot->step = SLOT_CONTENT;
    slot_go_on(slot);
    return NULL;
}

static void
slot_add_form(struct adoption_slot *slot, struct text bytes)
{
    const char *wrong = NULL;
    bool is_last = bytes.length < ADOPTION_PIECE;
    if (!buffer_add(&slot->form, bytes))
        wrong = "its envelope is too long";
    else if (!is_last)
        slot_ask_piece(slot);
    else if (slot->form.length == 0)
        slot_free(slot);
    else
        wrong = slot_begin_taking(slot);
    if (wrong != NULL)
        slot_unreadable(slot, wrong);
}

static void
slot_hear_piece(struct adoption *a, struct adoption_slot *slot,
                const struct redis_reply *reply, const char *why)
{
    slot->is_asked = false;
    if (slot->step != SLOT_FORM && slot->step != SLOT_CONTENT)
        return; /* the walk has ended */
    if (reply == NULL) {
        char name[COPIES_NAME_MAX + 1];
        memcpy(name, slot->name, sizeof(name));
        slot_later(slot);
        adoption_refused(a, name, why);
    } else if (slot->step == SLOT_FORM) {
        slot_add_form(slot, reply->text);
    } else if (reply->text.length == 0) {
        slot_unreadable(slot, "a part of its content is missing");
    } else {
        struct text bytes =
            text_before(reply->text, (size_t)(slot->content - slot->at));
        slot->at += (int64_t)bytes.length;
        a->gifts.take_bytes(slot->taking, bytes);
        slot_go_on(slot);
    }
}

/* NULL: all are in use. */
static struct adoption_slot *
slot_new(struct adoption *a, struct id id)
{
    for (size_t i = 0; i < ADOPTION_SLOTS; i++) {
        struct adoption_slot *slot = &a->slots[i];
        if (slot->step != SLOT_FREE || slot->is_asked)
            continue;
        slot->id = id;
        slot->at = slot->content = 0;
        slot->batch[0] = '\0';
        memcpy(slot->name, a->walk.name, sizeof(slot->name));
        buffer_init(&slot->form, SIBLING_SECTIONS_MAX + 24);
        return slot;
    }
    return NULL;
}

enum adoption_met
adoption_take_entry(struct adoption *a, const struct adoption_entry *entry)
{
    struct adoption_slot *slot = slot_new(a, entry->id);
    if (slot == NULL)
        return ENTRY_WAITS;
    slot->step = SLOT_FORM;
    slot_ask_piece(slot);
    return ENTRY_DONE;
}

enum adoption_met
adoption_drop_entry(struct adoption *a, const struct adoption_entry *entry)
{
    struct adoption_slot *slot = slot_new(a, entry->id);
    if (slot == NULL)
        return ENTRY_WAITS;
    slot->own = entry->id;
    slot->step = SLOT_STORED;
    slot_say_taken(slot);
    return ENTRY_DONE;
}

bool
adoption_is_taking(const struct adoption *a)
{
    for (size_t i = 0; i < ADOPTION_SLOTS; i++)
        if (a->slots[i].step != SLOT_FREE)
            return true;
    return false;
}

void
adoption_take_again(struct adoption *a)
{
    for (size_t i = 0; i < ADOPTION_SLOTS; i++)
        if (a->slots[i].step == SLOT_STORED && !a->slots[i].is_asked)
            slot_say_taken(&a->slots[i]);
}

/* --- Pages ------------------------------------------------------------------------- */

static void
walk_read_page(struct adoption *a, struct text page)
{
    struct adoption_walk *w = &a->walk;
    struct text id, word;
    uint64_t cursor;
    if (!text_word(&page, " ", &word) || !text_number(word, UINT64_MAX, &cursor) ||
        !text_copy(w->cursor, sizeof(w->cursor), word)) {
        w->is_last = true; /* odd: all that is left comes in the next round */
        w->later++;
        return;
    }
    w->is_last = strcmp(w->cursor, "0") == 0;
    w->count = w->next = 0;
    w->entries = memory_resize(w->entries, (page.length / (ID_LENGTH + 2) + 1) *
                                               sizeof(*w->entries));
    while (text_word(&page, " ", &id) && text_word(&page, " ", &word)) {
        struct adoption_entry *entry = &w->entries[w->count];
        if (id_parse(id, &entry->id) &&
            text_copy(entry->word, ADOPTION_ENTRY_MAX, word))
            w->count++;
        else
            walk_note_unreadable(a, w->name, id, "it has no name of a message");
    }
}

static void
walk_hear_page(struct adoption *a, struct adoption_slot *slot,
               const struct redis_reply *reply, const char *why)
{
    struct adoption_walk *w = &a->walk;
    char name[COPIES_NAME_MAX + 1];
    bool is_stale = w->is_stale;
    (void)slot;
    w->is_asked = w->is_stale = false;
    if (!is_stale && reply != NULL)
        walk_read_page(a, reply->text);
    memcpy(name, w->name, sizeof(name));
    if (!is_stale && reply == NULL)
        adoption_refused(a, name, why);
}

static void
walk_ask_page(struct adoption *a)
{
    struct adoption_walk *w = &a->walk;
    char count[8];
    snprintf(count, sizeof(count), "%d", PAGE);
    w->is_asked = true;
    adoption_ask(a, walk_hear_page, NULL,
                 w->is_adopted ? &adoption_script_page_adopted : &adoption_script_page,
                 w->name, ADOPTION_WORDS(w->cursor, count));
}

static void
walk_rewind(struct adoption_walk *w)
{
    w->count = w->next = w->later = w->unreadable = 0;
    w->is_last = false;
    snprintf(w->cursor, sizeof(w->cursor), "0");
}

void
adoption_walk_begin(struct adoption *a, const char *name, bool is_adopted,
                    enum adoption_met (*met)(struct adoption *a,
                                             const struct adoption_entry *entry),
                    void (*over)(struct adoption *a, const char *name))
{
    struct adoption_walk *w = &a->walk;
    snprintf(w->name, sizeof(w->name), "%s", name);
    w->is_adopted = is_adopted;
    w->met = met;
    w->over = over;
    w->taken_ms = loop_monotonic_ms(a->setup.loop);
    walk_rewind(w);
    adoption_stir(a);
}

void
adoption_walk_end(struct adoption *a)
{
    a->walk.name[0] = '\0';
    a->walk.is_stale = a->walk.is_asked;
    for (size_t i = 0; i < ADOPTION_SLOTS; i++) {
        struct adoption_slot *slot = &a->slots[i];
        if (slot->step == SLOT_FORM || slot->step == SLOT_CONTENT)
            slot_free(slot);
    }
}

void
adoption_walk_lost(struct adoption *a, const char *name)
{
    if (strcmp(name, a->walk.name) != 0)
        return;
    log_say(a->setup.log, LOG_LEVEL_INFO, "copies", NULL,
            "the rest of the mail of %.*s is another host's",
            TEXT_ARGS(adoption_host(name)));
    adoption_walk_end(a);
}

static void
walk_round_over(struct adoption *a)
{
    struct adoption_walk *w = &a->walk;
    char name[COPIES_NAME_MAX + 1];
    struct adoption_row *row = adoption_find(a, text_from(w->name));
    if (row != NULL && !w->is_adopted)
        row->unreadable = w->unreadable;
    if (w->later > 0) {
        adoption_rest(a);
        walk_rewind(w);
        return;
    }
    memcpy(name, w->name, sizeof(name));
    adoption_walk_end(a);
    w->over(a, name);
}

void
adoption_walk_go(struct adoption *a)
{
    struct adoption_walk *w = &a->walk;
    adoption_take_again(a);
    if (w->name[0] == '\0' || w->is_asked)
        return;
    if (w->later > 0 && strcmp(w->name, a->name) != 0 &&
        loop_monotonic_ms(a->setup.loop) - w->taken_ms >= ADOPTION_STUCK_MS) {
        adoption_leave(a);
        return;
    }
    while (w->next < w->count) {
        switch (w->met(a, &w->entries[w->next])) {
        case ENTRY_WAITS:
            return;
        case ENTRY_LATER:
            w->later++;
            break;
        case ENTRY_DONE:
            break;
        }
        if (w->name[0] == '\0')
            return;
        w->next++;
    }
    if (!w->is_last)
        walk_ask_page(a);
    else if (!adoption_is_taking(a))
        walk_round_over(a);
}
