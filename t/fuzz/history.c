/* Fuzz target: lines of the history, which any writer of the spool can forge, and queries. Every line becomes JSON,
 * and fields never overlap. The first line is the query. */
#include "admin/history/life.h"
#include "admin/history/trace_query.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_line(struct text line)
{
    struct history_line read;
    struct history_field field;
    struct id id;
    int64_t time_ms;
    if (!history_line_read(line, &read)) {
        must(life_event(line) == NULL);
        return;
    }
    must(history_line_glance(line, &time_ms, &id) && time_ms == read.time_ms && time_ms >= 0);
    must(id_compare(id, read.id) == 0 && read.event.length > 0);
    struct text rest = read.fields;
    const char *at = rest.at;
    for (size_t count = 0; history_line_field(&rest, &field); count++) {
        must(count < line.length);
        must(field.key.length == 0 || field.key.at >= at);
        must(field.value.length == 0 || field.value.at >= at);
        must(field.value.at + field.value.length <= line.at + line.length);
        at = field.value.at + field.value.length;
    }
    (void)history_line_value(&read, "to");
    json_t *event = life_event(line);
    must(json_is_object(event) && json_is_string(json_object_get(event, "type")));
    json_decref(event);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct trace_query query;
    struct text rest = text_of(data, size), line;
    bool has_query = text_cut(&rest, '\n', &line) && trace_query_read(line, &query);
    struct text lines = rest;
    while (text_cut(&rest, '\n', &line)) {
        struct id id;
        int64_t time_ms;
        (void)!history_line_glance(line, &time_ms, &id);
        if (has_query)
            (void)trace_query_matches(&query, id, line);
        read_line(line);
    }
    json_t *life = life_make((struct id){.time_ms = 1, .hash = 1}, lines, 0);
    char *text = json_dumps(life, JSON_COMPACT);
    must(text != NULL && json_is_string(json_object_get(life, "state")));
    free(text);
    json_decref(life);
    return 0;
}
