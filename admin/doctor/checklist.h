/* Results of checks: findings of doctor. Texts come from zones and hosts: bytes other
 * than printable ASCII are escaped here, so that no terminal obeys it. */
#ifndef ADMIN_DOCTOR_CHECKLIST_H
#define ADMIN_DOCTOR_CHECKLIST_H

#include "base/buffer.h"

#include <jansson.h>
#include <stdio.h>

enum { CHECKLIST_MAX = 20000, CHECKLIST_TEXT_MAX = 8 * 1024 };

enum check_severity { CHECK_OK, CHECK_HINT, CHECK_WARNING, CHECK_ERROR };

struct check {
    const char *code; /* constant: "spf.record" */
    enum check_severity severity;
    /* Never NULL. remedy may have several lines: records to paste are indented. */
    char *subject, *text, *remedy, *detail;
};
struct checklist {
    struct check *items;
    size_t count, capacity;
};

void checklist_free(struct checklist *list);
/* Drops all behind the first count. */
void checklist_cut(struct checklist *list, size_t count);
void checklist_add(struct checklist *list, const char *code,
                   enum check_severity severity, const char *subject,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Adds to the remedy of the last one; LF begins a line. */
void checklist_remedy(struct checklist *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds to its detail. */
void checklist_detail(struct checklist *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A record to paste into a zone, as a line of the remedy: TXT in strings of 255 octets,
 * quoted. */
void checklist_text_record(struct checklist *list, const char *name, struct text value);
/* value: in the form of zone files. */
void checklist_record(struct checklist *list, const char *name, const char *type,
                      const char *value);

size_t checklist_count(const struct checklist *list, enum check_severity severity);
/* Errors first, and among them those that others depend on. */
void checklist_sort(struct checklist *list);
void checklist_print(const struct checklist *list, FILE *out);
json_t *checklist_json(const struct checklist *list);

#endif
