/* Messages given, and their fates. */
#include "t/roof/model.h"

#include "base/id.h"
#include "base/memory.h"
#include "t/roof/form.h"
#include "t/roof/law_adoption.h"
#include "t/roof/law_age.h"
#include "t/roof/names.h"
#include "t/roof/roof.h"
#include "t/roof/split.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECOND_TRY_MS = 1000,
    CONTENT_MAX = 4 << 20,
    LINE_MAX_SIZE = 1000,
    EARLY_MS = 2 * 1000 /* clocks of the queue count whole seconds */
};

static struct {
    struct model_message *messages;
    unsigned count, messages_max;
    const char *const *domains;
    unsigned domain_count, reloads;
    bool copies; /* one of each message */
    bool forms;  /* messages have parts */
    int64_t lifetime_ms;
    void (*acked)(void), (*stored)(void);
    void (*attempted)(struct model_rcpt *r);
} model;

void
model_begin(unsigned messages)
{
    model.count = messages;
    model.messages_max = messages + MODEL_ADDED_MAX;
    model.messages = memory_array(messages + MODEL_ADDED_MAX, sizeof(*model.messages));
    model.lifetime_ms = INT64_MAX;
    for (unsigned i = 0; i < messages + MODEL_ADDED_MAX; i++) {
        model.messages[i].number = i;
        buffer_init(&model.messages[i].content, CONTENT_MAX);
    }
}

struct model_message *
model_add(void)
{
    assert(model.count < model.messages_max);
    return &model.messages[model.count++];
}

unsigned
model_count(void)
{
    return model.count;
}

struct model_message *
model_at(unsigned number)
{
    assert(number < model.count);
    return &model.messages[number];
}

void
model_set_domains(const char *const *names, unsigned count)
{
    model.domains = names;
    model.domain_count = count;
}

const char *
model_domain(unsigned index)
{
    return model.domains[index];
}

unsigned
model_domains(void)
{
    return model.domain_count;
}

/* Ten letters of each number. */
static void
draw_line(struct buffer *to, unsigned length)
{
    static const char letters[64] =
        "abcdefghijklmnopqrstuvwxyz .-=0123456789ABCDEFGHIJKLMNOPQRSTUV,;";
    char line[LINE_MAX_SIZE];
    uint64_t random = 0;
    assert(length < LINE_MAX_SIZE);
    for (unsigned i = 0; i < length; i++, random >>= 6) {
        if (i % 10 == 0)
            random = roof_random();
        line[i] = letters[random & 63];
    }
    bool fits = buffer_add(to, text_of(line, length)) && buffer_add(to, TEXT("\r\n"));
    assert(fits);
}

static void
draw_fields(struct model_message *m)
{
    char subject[100];
    snprintf(subject, sizeof(subject), "message %u", m->number);
    bool fits = buffer_format(&m->content,
                              "X-Roof: m%u\r\nFrom: s%u@" MODEL_BACK
                              "\r\nTo: all@roof.test\r\nDate: Sun, 15 Jun "
                              "2025 15:06:40 +0000\r\nMessage-ID: "
                              "<m%u@roof.test>\r\nSubject: %s\r\n",
                              m->number, m->number, m->number,
                              m->form != NULL ? form_subject(m->form) : subject);
    assert(fits);
}

/* Lines of dots, empty ones and long ones are among them. */
static void
draw_body(struct model_message *m, size_t size)
{
    struct buffer *b = &m->content;
    bool fits = buffer_add(b, TEXT("\r\n"));
    assert(fits);
    size_t end = b->length + size;
    while (b->length < end) {
        unsigned kind = roof_below(20);
        if (kind == 0)
            fits = buffer_add(b, TEXT(".\r\n"));
        else if (kind == 1)
            fits = buffer_add(b, TEXT("..\r\n"));
        else if (kind == 2)
            fits = buffer_add(b, TEXT("\r\n"));
        else
            draw_line(b, kind == 3 ? 900 : roof_below(76));
        assert(fits);
    }
    draw_line(b, 10);
}

void
model_draw(struct model_message *m, unsigned rcpts, size_t size)
{
    m->rcpts = memory_array(rcpts + 1, sizeof(*m->rcpts));
    m->rcpt_count = rcpts;
    m->rcpts[rcpts] =
        (struct model_rcpt){.message = m, .index = rcpts, .accepted = true};
    for (unsigned i = 0; i < rcpts; i++)
        m->rcpts[i] = (struct model_rcpt){
            .message = m, .index = i, .domain = roof_below(model.domain_count)};
    uint64_t own = roof_fork("form") + m->number;
    m->form = model.forms ? form_draw(size, &own) : NULL;
    draw_fields(m);
    if (m->form != NULL)
        form_write(m->form, &m->content);
    else
        draw_body(m, size);
}

void
model_rcpt_address(const struct model_rcpt *r, char out[MODEL_ADDRESS_MAX])
{
    snprintf(out, MODEL_ADDRESS_MAX, "m%ur%u@%s", r->message->number, r->index,
             model.domains[r->domain]);
}

unsigned
model_given(const struct model_message *m)
{
    return m->is_aliased ? 1 : m->rcpt_count;
}

void
model_given_address(const struct model_message *m, unsigned index,
                    char out[MODEL_ADDRESS_MAX])
{
    if (m->is_aliased)
        names_address(m, out);
    else
        model_rcpt_address(&m->rcpts[index], out);
}

void
model_given_accepted(struct model_message *m, unsigned index, bool is_accepted)
{
    unsigned first = m->is_aliased ? 0 : index,
             end = m->is_aliased ? m->rcpt_count : index + 1;
    for (unsigned i = first; i < end; i++)
        m->rcpts[i].accepted = is_accepted;
}

void
model_sender_address(const struct model_message *m, char out[MODEL_ADDRESS_MAX])
{
    if (m->is_null)
        out[0] = '\0';
    else
        snprintf(out, MODEL_ADDRESS_MAX, "s%u@" MODEL_BACK, m->number);
}

const char *
model_notify_words(const struct model_message *m)
{
    static const char *const words[] = {
        [NOTIFY_AS_USUAL] = "",
        [NOTIFY_NOTHING] = " NOTIFY=NEVER",
        [NOTIFY_OF_FAILURE] = " NOTIFY=FAILURE,DELAY",
        [NOTIFY_OF_SUCCESS] = " NOTIFY=SUCCESS",
        [NOTIFY_OF_ALL] = " NOTIFY=SUCCESS,FAILURE,DELAY",
        [NOTIFY_OF_DELAY] = " NOTIFY=DELAY",
    };
    return words[m->notify];
}

void
model_rcpt_original(const struct model_rcpt *r, char out[MODEL_ORIGINAL_MAX])
{
    out[0] = '\0';
    if (r->message->has_original)
        snprintf(out, MODEL_ORIGINAL_MAX, " ORCPT=rfc822;o%u.%u@first.test",
                 r->message->number, r->index);
}

static bool
cut_number(struct text *t, unsigned *number)
{
    size_t digits = 0;
    *number = 0;
    while (digits < t->length && t->at[digits] >= '0' && t->at[digits] <= '9')
        *number = *number * 10 + (unsigned)(t->at[digits++] - '0');
    *t = text_after(*t, digits);
    return digits > 0;
}

struct model_rcpt *
model_find(struct text t)
{
    unsigned number, index;
    if (!text_starts(t, TEXT("m")))
        return NULL;
    t = text_after(t, 1);
    if (!cut_number(&t, &number) || !text_starts(t, TEXT("r")) || number >= model.count)
        return NULL;
    t = text_after(t, 1);
    if (!cut_number(&t, &index) || index >= model.messages[number].rcpt_count)
        return NULL;
    return &model.messages[number].rcpts[index];
}

struct model_message *
model_find_sender(struct text t)
{
    unsigned number;
    if (!text_starts(t, TEXT("s")))
        return NULL;
    t = text_after(t, 1);
    return cut_number(&t, &number) && number < model.count ? &model.messages[number]
                                                           : NULL;
}

static unsigned
with_copy(const struct model_message *m)
{
    return m->rcpt_count + (m->rcpts != NULL && model.copies);
}

static bool
is_copy(const struct model_rcpt *r)
{
    return model.copies && r->index == r->message->rcpt_count;
}

void
model_have_forms(void)
{
    model.forms = true;
}

void
model_copy(void)
{
    model.copies = true;
}

struct model_rcpt *
model_find_copy(struct text content)
{
    static const char name[] = "X-Roof: m";
    unsigned number;
    const char *at = memmem(content.at, content.length, name, sizeof(name) - 1);
    if (at == NULL)
        roof_break("whole", NULL, "the archive gets what nobody has sent");
    struct text rest =
        text_after(content, (size_t)(at - content.at) + sizeof(name) - 1);
    bool is_ours = cut_number(&rest, &number) && number < model.count;
    assert(is_ours);
    return &model.messages[number].rcpts[model.messages[number].rcpt_count];
}

static noreturn void
break_rcpt(const char *law, const struct model_rcpt *r, const char *why)
{
    char address[MODEL_ADDRESS_MAX], about[MODEL_ADDRESS_MAX];
    model_rcpt_address(r, address);
    snprintf(about, sizeof(about), "%s",
             r->message->id[0] != '\0' ? r->message->id : address);
    printf("recipient %s (%s), accepted %d, stored %u (chances %u), failed %u, refused "
           "%d, "
           "removed %d; what the hops saw:\n",
           address, r->message->id, r->accepted, r->stored, r->chances, r->failed,
           r->refused, r->may_vanish);
    *strchr(address, '@') = '\0';
    roof_print_life(address);
    roof_break(law, about, "m%ur%u: %s", r->message->number, r->index, why);
}

void
model_acked(struct model_message *m, struct text id)
{
    if (m->state == MODEL_ACKED)
        return;
    m->state = MODEL_ACKED;
    m->acked_ms = roof_now_ms();
    m->born_ms = m->born_ms > 0 ? m->born_ms : m->acked_ms;
    text_copy(m->id, sizeof(m->id), id);
    roof_note("client: m%u acknowledged as %s", m->number, m->id);
    if (model.acked != NULL)
        model.acked();
}

void
model_on_acked(void (*acked)(void))
{
    model.acked = acked;
}

void
model_on_stored(void (*stored)(void))
{
    model.stored = stored;
}

/* --- Hops --- */

/* A message is loaded as a whole: when one of its sites is back, its recipients at other
 * sites are tried again, too, however short ago they were deferred; and so are those whom
 * the site itself deferred before it failed. */
static bool
is_tried_alone(const struct model_message *m)
{
    if (model.copies)
        return false;
    for (unsigned i = 1; i < m->rcpt_count; i++)
        if (m->rcpts[i].domain != m->rcpts[0].domain)
            return false;
    return m->rcpt_count == 1 || roof_now_ms() - m->site_failed_ms >= SECOND_TRY_MS;
}

void
model_attempted(struct model_rcpt *r)
{
    if (r->deferred_ms > 0 && is_tried_alone(r->message) && !r->copied &&
        r->message->split == NULL && roof_now_ms() - r->deferred_ms < SECOND_TRY_MS)
        break_rcpt("in time", r, "tried again within a second");
    if (roof_now_ms() < r->message->release_ms || roof_breaks("release"))
        break_rcpt("in time", r, "tried before the time that its sender asked for");
    r->deferred_ms = 0;
    if (model.attempted != NULL)
        model.attempted(r);
}

void
model_on_attempted(void (*attempted)(struct model_rcpt *r))
{
    model.attempted = attempted;
}

void
model_deferred(struct model_rcpt *r)
{
    bool may_follow = r->reloads != model.reloads || r->is_hurried;
    r->deferred_ms = may_follow ? 0 : roof_now_ms();
    r->reloads = model.reloads;
    r->is_hurried = false;
}

void
model_refused(struct model_rcpt *r)
{
    r->refused = true;
    r->refused_ms = roof_now_ms();
}

/* Before our first field: trace fields alone. */
static bool
is_trace(struct text prefix)
{
    struct text line;
    bool first = true;
    while (prefix.length > 0) {
        text_cut(&prefix, '\n', &line);
        bool continues = line.length > 0 && (line.at[0] == ' ' || line.at[0] == '\t');
        bool known = text_starts(line, TEXT("Received: ")) ||
                     text_starts(line, TEXT("Return-Path: ")) ||
                     text_starts(line, TEXT("X-Petrel-Return: ")) ||
                     text_starts(line, TEXT("Delivered-To: "));
        if (continues ? first : !known)
            return false;
        first = false;
    }
    return true;
}

static void
judge_content(const struct model_rcpt *r, struct text content)
{
    struct text want = buffer_text((struct buffer *)&r->message->content);
    const char *at = memmem(content.at, content.length, "X-Roof: ", 8);
    if (at == NULL)
        break_rcpt("whole", r, "what was stored has not our header");
    size_t before = (size_t)(at - content.at);
    if (!is_trace(text_before(content, before)))
        break_rcpt("whole", r, "there are more than trace fields before our header");
    if (!text_equal(text_after(content, before), want))
        break_rcpt("whole", r, "what was stored is not what was given");
}

static void
model_note_stored(struct model_rcpt *r)
{
    if (r->message->state == MODEL_REFUSED)
        break_rcpt("whole", r, "stored, but refused");
    if (!r->accepted)
        break_rcpt("whole", r, "stored for a recipient that was not accepted");
    r->stored += roof_breaks("once") || (roof_breaks("copy") && is_copy(r)) ? 2 : 1;
    r->stored_ms = roof_now_ms();
    if (model.stored != NULL)
        model.stored();
}

void
model_stored(struct model_rcpt *r, struct text content)
{
    if (r->message->split != NULL) {
        split_stored(r, content);
        return;
    }
    if (roof_breaks("whole"))
        content.length--;
    judge_content(r, content);
    model_note_stored(r);
}

void
model_read(struct model_rcpt *r, const char *why)
{
    if (why != NULL)
        break_rcpt("whole", r, why);
    model_note_stored(r);
}

void
model_unconfirmed(struct model_rcpt *r)
{
    r->chances++;
}

void
model_report_unconfirmed(struct model_message *m)
{
    m->report_chances++;
}

void
model_lied(struct model_rcpt *r)
{
    r->chances++;
    r->may_vanish = true;
}

void
model_report_lied(struct model_message *m)
{
    for (unsigned i = 0; i < m->rcpt_count; i++)
        model_lied(&m->rcpts[i]);
    m->report_chances++;
}

void
model_passed_on(struct model_rcpt *r)
{
    r->passed_on = true;
}

/* --- Reports --- */

static bool
wants_failure(const struct model_message *m)
{
    return !m->is_null &&
           (m->notify == NOTIFY_AS_USUAL || m->notify == NOTIFY_OF_FAILURE ||
            m->notify == NOTIFY_OF_ALL);
}

bool
model_wants_delay(const struct model_message *m)
{
    return !m->is_null && m->notify != NOTIFY_NOTHING && m->notify != NOTIFY_OF_SUCCESS;
}

static bool
wants_success(const struct model_message *m)
{
    return !m->is_null &&
           (m->notify == NOTIFY_OF_SUCCESS || m->notify == NOTIFY_OF_ALL);
}

/* One recipient of a report. False: nobody asked for that. */
static bool
take_action(struct model_rcpt *r, struct text action)
{
    const struct model_message *m = r->message;
    roof_note("back: m%ur%u is reported as %.*s", m->number, r->index,
              TEXT_ARGS(action));
    if (text_equal(action, TEXT("failed"))) {
        r->failed++;
        return wants_failure(m);
    }
    if (text_equal(action, TEXT("delayed"))) {
        r->delayed++;
        law_age_notified(r);
        return model_wants_delay(m);
    }
    if (!text_equal(action, TEXT("relayed")) && !text_equal(action, TEXT("delivered")))
        return false;
    r->told++;
    return wants_success(m);
}

static void
judge_original(const struct model_rcpt *r, struct text original)
{
    char want[MODEL_ORIGINAL_MAX];
    model_rcpt_original(r, want);
    if (want[0] != '\0' &&
        !text_equal(original, text_from(want + sizeof(" ORCPT=") - 1)))
        break_rcpt("truth", r, "the report has another Original-Recipient");
}

/* Its last line is in no header. */
static void
judge_returned(const struct model_message *m, struct text report)
{
    struct text content = buffer_text((struct buffer *)(uintptr_t)&m->content);
    size_t line = sizeof("0123456789\r\n") - 1;
    if (m->wants_header && m->rcpt_count > 0 &&
        memmem(report.at, report.length, content.at + content.length - line, line) !=
            NULL)
        break_rcpt("truth", &m->rcpts[0], "RET=HDRS, and the report has the content");
}

/* One whose mark was lost comes again as it was. */
static void
count_report(struct model_message *m, struct text line, bool *has_id)
{
    if (*has_id || !text_starts(line, TEXT("Message-ID: ")))
        return;
    *has_id = true; /* that of the message within follows */
    m->reports += !text_equal(line, text_from(m->report_id));
    text_copy(m->report_id, sizeof(m->report_id), line);
}

/* The fields of one recipient are together (RFC 3464 §2.3). */
void
model_reported(struct model_message *m, struct text content)
{
    static const char original_name[] = "Original-Recipient: ",
                      action_name[] = "Action: ",
                      final_name[] = "Final-Recipient: rfc822; ";
    struct text line, original = TEXT(""), rest = content;
    struct model_rcpt *r = NULL;
    bool has_id = false;
    m->reported_ms = roof_now_ms();
    judge_returned(m, content);
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        line = text_trim(line);
        count_report(m, line, &has_id);
        if (text_starts(line, text_from(original_name)))
            original = text_after(line, sizeof(original_name) - 1);
        if (text_starts(line, text_from(final_name))) {
            r = model_find(text_after(line, sizeof(final_name) - 1));
        } else if (r != NULL && text_starts(line, text_from(action_name))) {
            if (r->message != m)
                break_rcpt("once", r, "reported to another sender");
            if (!take_action(r, text_after(line, sizeof(action_name) - 1)))
                break_rcpt("once", r, "reported against NOTIFY");
            judge_original(r, original);
        } else if (line.length == 0) {
            r = NULL;
            original = TEXT("");
        }
    }
}

/* Its end may not have been marked when the host ended. */
static bool
lost_mark(const struct model_rcpt *r, int64_t since_ms)
{
    /* of fragments all, not only the message that they are */
    bool any_stored = r->stored > 0 || (r->message->split != NULL && r->stored_ms > 0);
    return (any_stored && r->stored_ms >= since_ms) ||
           (r->refused && r->refused_ms >= since_ms) ||
           (r->is_unmarked && r->message->logged_ms >= since_ms) ||
           (r->has_failed && r->message->notified_ms >= since_ms);
}

bool
model_is_of(const struct model_message *m, unsigned slices, unsigned slice)
{
    struct id id;
    if (slices == 1 || !id_parse(text_from(m->id), &id))
        return true;
    return id_slice(id, slices) == slice;
}

static bool
is_of_any(const struct model_message *m, unsigned slices, unsigned mask)
{
    for (unsigned i = 0; i < slices; i++)
        if ((mask >> i & 1) != 0 && model_is_of(m, slices, i))
            return true;
    return false;
}

static void
process_ended(int64_t since_ms, unsigned slices, unsigned mask,
              bool (*lost_mark_of)(const struct model_rcpt *r, int64_t ms))
{
    for (unsigned i = 0; i < model.count; i++) {
        struct model_message *m = &model.messages[i];
        if (!is_of_any(m, slices, mask))
            continue;
        m->report_chances += m->reported_ms > 0 && m->reported_ms >= since_ms;
        m->report_chances += m->notified_ms > 0 && m->notified_ms >= since_ms;
        for (unsigned j = 0; j < with_copy(m); j++) {
            bool lost = lost_mark_of(&m->rcpts[j], since_ms);
            m->rcpts[j].chances += lost;
            m->report_chances +=
                lost && (m->rcpts[j].refused || m->rcpts[j].has_failed);
        }
    }
    model_forget_waits();
}

/* For its first host the end of what is relayed is that it was taken. */
static bool
lost_first_mark(const struct model_rcpt *r, int64_t since_ms)
{
    return r->relayed_ms > 0 ? r->relayed_ms >= since_ms : lost_mark(r, since_ms);
}

static bool
lost_relay_mark(const struct model_rcpt *r, int64_t since_ms)
{
    return r->relayed_ms > 0 && lost_mark(r, since_ms);
}

void
model_host_ended(int64_t window_ms)
{
    model_slices_ended(window_ms, 1, 1);
}

void
model_slices_ended(int64_t window_ms, unsigned slices, unsigned mask)
{
    int64_t since_ms = roof_now_ms() - window_ms;
    for (unsigned i = 0; i < model.count; i++)
        for (unsigned j = 0; j < with_copy(&model.messages[i]); j++) {
            struct model_rcpt *r = &model.messages[i].rcpts[j];
            bool again = r->relayed_ms > 0 && r->relayed_ms >= since_ms;
            r->copied = r->copied || again;
            r->message->report_chances += again; /* the copy may be refused, too */
        }
    process_ended(since_ms, slices, mask, lost_first_mark);
}

void
model_relay_ended(int64_t window_ms)
{
    process_ended(roof_now_ms() - window_ms, 1, 1, lost_relay_mark);
}

void
model_site_failed(struct model_message *m)
{
    m->site_failed_ms = roof_now_ms();
}

void
model_logged(struct model_rcpt *r, enum model_end end)
{
    r->has_failed = r->has_failed || end == MODEL_FAILURE;
    r->is_unmarked = r->is_unmarked || end == MODEL_FAILURE;
    r->message->logged_ms = roof_now_ms();
}

void
model_notified(struct model_message *m, enum model_end end)
{
    m->notified_ms = roof_now_ms();
    m->was_delayed = m->was_delayed || end == MODEL_DELAY;
    for (unsigned j = 0; end == MODEL_FAILURE && j < m->rcpt_count; j++)
        m->rcpts[j].is_unmarked = false;
}

void
model_relayed(struct model_rcpt *r)
{
    r->relayed_ms = roof_now_ms();
}

/* Each of the two has its own times. */
static void
excuse_second(struct model_rcpt *r)
{
    r->chances++;
    r->copied = true;
    r->message->report_chances++;
}

void
model_relay_unconfirmed(struct model_rcpt *r)
{
    excuse_second(r);
}

void
model_given_twice(int64_t window_ms)
{
    int64_t since_ms = roof_now_ms() - window_ms;
    for (unsigned i = 0; i < model.count; i++) {
        struct model_message *m = &model.messages[i];
        for (unsigned j = 0; j < with_copy(m); j++) {
            struct model_rcpt *r = &m->rcpts[j];
            bool is_settled =
                (r->stored > 0 && r->stored_ms < since_ms) ||
                (r->refused && r->failed > 0 && m->reported_ms < since_ms);
            if (!is_settled)
                excuse_second(r);
        }
    }
    model_forget_waits();
}

void
model_moved_twice(struct text first)
{
    bool is_known = false;
    for (unsigned i = 0; i < model.count; i++)
        is_known = is_known || text_equal(text_from(model.messages[i].id), first);
    for (unsigned i = 0; i < model.count; i++) {
        struct model_message *m = &model.messages[i];
        if (is_known && !text_equal(text_from(m->id), first))
            continue;
        m->report_chances++;
        for (unsigned j = 0; j < with_copy(m); j++) {
            m->rcpts[j].chances += is_known || m->id[0] == '\0';
            m->rcpts[j].deferred_ms = 0;
            m->rcpts[j].copied |= is_known; /* each has its own times */
        }
    }
}

void
model_forget_waits(void)
{
    for (unsigned i = 0; i < model.count; i++)
        for (unsigned j = 0; j < with_copy(&model.messages[i]); j++)
            model.messages[i].rcpts[j].deferred_ms = 0;
}

void
model_released(void)
{
    for (unsigned i = 0; i < model.count; i++)
        model.messages[i].release_ms = 0;
}

void
model_reloaded(void)
{
    model.reloads++;
    model_forget_waits();
}

void
model_set_lifetime(int64_t lifetime_ms)
{
    if (lifetime_ms < model.lifetime_ms)
        model.lifetime_ms = lifetime_ms;
}

void
model_forget_ages(int64_t until_ms)
{
    for (unsigned i = 0; i < model.count; i++) {
        struct model_message *m = &model.messages[i];
        m->is_ageless =
            m->is_ageless || (m->state != MODEL_UNSENT && m->acked_ms <= until_ms);
    }
}

bool
model_has_age(const struct model_message *m)
{
    return !m->is_ageless && model.lifetime_ms > 0;
}

/* --- Judgement --- */

static bool
may_have_failed(const struct model_rcpt *r)
{
    return r->refused || r->message->requires_tls || r->message->is_ageless ||
           roof_now_ms() - r->message->born_ms + EARLY_MS >= model.lifetime_ms;
}

static bool
is_reported(const struct model_rcpt *r)
{
    /* with ages that nobody knows the report may have expired, too, or where mail expires
     * soon */
    bool may_be_lost = law_age_is_short() && r->message->notified_ms > 0;
    return wants_failure(r->message) && !is_copy(r) && model.lifetime_ms > 0 &&
           !r->message->is_ageless && !may_be_lost;
}

/* Its success is to be reported, and nobody has. */
static bool
is_untold(const struct model_rcpt *r)
{
    return r->stored > 0 && wants_success(r->message) && !is_copy(r) && !r->passed_on &&
           r->told == 0 && r->failed == 0 && !r->may_vanish && !may_have_failed(r);
}

/* Without a fate. */
static bool
is_open(const struct model_rcpt *r)
{
    if (!r->accepted || r->message->state != MODEL_ACKED)
        return false;
    if (r->message->split != NULL && split_has_arrived(r))
        return false;
    return is_untold(r) || (r->stored == 0 && r->failed == 0 && !r->may_vanish &&
                            !(may_have_failed(r) && !is_reported(r)));
}

bool
model_is_waiting(const struct model_message *m)
{
    for (unsigned j = 0; j < m->rcpt_count; j++)
        if (is_open(&m->rcpts[j]) && m->rcpts[j].stored == 0 &&
            !may_have_failed(&m->rcpts[j]))
            return true;
    return false;
}

bool
model_is_here(const struct model_message *m)
{
    for (unsigned j = 0; j < m->rcpt_count; j++)
        if (m->rcpts[j].relayed_ms > 0)
            return false;
    return model_is_waiting(m);
}

unsigned
model_open(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < model.count; i++)
        for (unsigned j = 0; j < with_copy(&model.messages[i]); j++)
            count += is_open(&model.messages[i].rcpts[j]);
    return count;
}

/* Successes are reported at the end of the message: that of any of its recipients, or of its
 * copy, may be lost and come again. */
static unsigned
most_chances(const struct model_message *m)
{
    unsigned most = 0;
    for (unsigned i = 0; i < with_copy(m); i++)
        if (m->rcpts[i].chances > most)
            most = m->rcpts[i].chances;
    return most;
}

static void
judge_rcpt(const struct model_rcpt *r)
{
    const struct model_message *m = r->message;
    if (m->split != NULL) {
        split_judge(r);
        if (is_open(r))
            break_rcpt("once", r, "fragments are lost");
        return;
    }
    if (r->stored > 0 && (m->state == MODEL_UNSENT || m->state == MODEL_REFUSED))
        break_rcpt("whole", r, "stored, but not acknowledged");
    if (is_open(r))
        break_rcpt("once", r, "lost: neither stored nor reported");
    if (r->stored > 1 + r->chances && !law_adoption_excuses(m))
        break_rcpt("once", r, "stored more often than replies were lost");
    if (r->failed > 0 && !may_have_failed(r))
        break_rcpt("once", r, "reported as failed, and nobody has refused it");
    if (r->failed > 0 && r->stored > 0 && r->chances == 0 &&
        !law_adoption_excuses(m))
        break_rcpt("once", r, "reported as failed, and stored");
    if (r->told > 1 + most_chances(m) + m->report_chances && !law_adoption_excuses(m))
        break_rcpt("once", r, "its success is reported too often");
    if (r->told > 0 && r->stored == 0 && !r->may_vanish)
        break_rcpt("once", r, "reported as delivered, and not stored");
    if (r->failed > 1 + m->report_chances && !law_adoption_excuses(m))
        break_rcpt("once", r, "reported more often than replies were lost");
}

void
model_judge(void)
{
    for (unsigned i = 0; i < model.count; i++)
        for (unsigned j = 0; j < with_copy(&model.messages[i]); j++)
            judge_rcpt(&model.messages[i].rcpts[j]);
}

/* An event that came again has a time of the past, and a fate that is known. */
void
model_heard(struct model_rcpt *r, enum model_news news, struct text id, int64_t time_ms)
{
    struct model_message *m = r->message;
    if (m->split != NULL)
        return; /* each fragment has events of its own */
    bool again = (news == NEWS_DELIVERED && r->heard_stored) ||
                 (news == NEWS_FAILED && r->heard_failed);
    if (m->state == MODEL_ACKED && !text_equal(id, text_from(m->id)))
        break_rcpt("truth", r, "an event has another id");
    if (news == NEWS_DELIVERED && r->stored == 0 && r->relayed_ms == 0 &&
        !r->may_vanish)
        break_rcpt("truth", r, "an event says that it is delivered");
    if (news == NEWS_FAILED && !may_have_failed(r))
        break_rcpt("truth", r, "an event says that it has failed");
    if (news != NEWS_DEFERRED && !again && time_ms > 0 && time_ms < m->heard_ms)
        break_rcpt("truth", r, "an event came behind a later one");
    if (time_ms > m->heard_ms)
        m->heard_ms = time_ms;
    r->heard_stored = r->heard_stored || news == NEWS_DELIVERED;
    r->heard_failed = r->heard_failed || news == NEWS_FAILED;
}

static const struct model_rcpt *
first_unheard(void)
{
    for (unsigned i = 0; i < model.count; i++)
        for (unsigned j = 0; j < model.messages[i].rcpt_count; j++) {
            const struct model_rcpt *r = &model.messages[i].rcpts[j];
            if (r->accepted && r->message->state == MODEL_ACKED &&
                r->message->split == NULL && !r->may_vanish && !r->heard_stored &&
                !r->heard_failed)
                return r;
        }
    return NULL;
}

bool
model_has_heard(void)
{
    return first_unheard() == NULL;
}

void
model_judge_heard(void)
{
    const struct model_rcpt *r = first_unheard();
    if (r != NULL)
        break_rcpt("once", r, "no event has told its fate");
}

void
model_print(void)
{
    for (unsigned i = 0, shown = 0; i < model.count && shown < 20; i++)
        for (unsigned j = 0; j < with_copy(&model.messages[i]) && shown < 20; j++) {
            const struct model_rcpt *r = &model.messages[i].rcpts[j];
            if (!is_open(r))
                continue;
            shown++;
            printf("open: m%ur%u@%s (%s)\n", i, j, model.domains[r->domain],
                   r->message->id);
        }
}

struct model_tally
model_tally(void)
{
    struct model_tally t = {0};
    for (unsigned i = 0; i < model.count; i++) {
        const struct model_message *m = &model.messages[i];
        t.acked += m->state == MODEL_ACKED;
        t.maybe += m->state == MODEL_MAYBE;
        t.refused += m->state == MODEL_REFUSED;
        for (unsigned j = 0; j < m->rcpt_count; j++) {
            const struct model_rcpt *r = &m->rcpts[j];
            t.rcpts += r->accepted;
            t.stored += r->stored;
            t.twice += r->stored > 1;
            t.reported += r->failed;
            t.removed += r->may_vanish;
        }
    }
    return t;
}
