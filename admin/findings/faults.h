/* Faults: of the settings, of the running daemon, and of this host as receivers see it.
 *
 * One table (faults_table.c) has a row for each: its code, its severity, when it is
 * looked for, the judge that finds it, its sentence and its remedy. A judge asks parsed
 * objects, and adds what it finds to a list. Four readers run the judges: `petrel
 * check` and each reading of the settings (faults_log()), the running daemon
 * (findings.h), and `petrel doctor` (doctor.h). */
#ifndef ADMIN_FINDINGS_FAULTS_H
#define ADMIN_FINDINGS_FAULTS_H

#include "admin/settings/accounts.h"
#include "admin/settings/options.h"
#include "base/log/log.h"

#include <jansson.h>
#include <stdio.h>

enum { FAULTS_MAX = 20000, FAULTS_TEXT_MAX = 8 * 1024, FAULTS_OBJECT_MAX = 256 };

enum fault_severity { FAULT_OK, FAULT_HINT, FAULT_WARNING, FAULT_ERROR };

enum fault_when {
    FAULT_CHECK = 1, /* `petrel check` */
    FAULT_START = 2, /* root has been given up */
    FAULT_RELOAD = 4,
    FAULT_READ = FAULT_CHECK | FAULT_START | FAULT_RELOAD,
    FAULT_RUNNING = 8,   /* it is a finding as long as it lasts */
    FAULT_BY_EVENT = 16, /* it is a finding that events begin and end */
    FAULT_DOCTOR = 32
};

struct doctor;
struct faults;
struct finding_facts;

/* The objects that judges ask. NULL: their reader has none. */
struct fault_world {
    const struct options *options;
    const struct settings *settings;
    const struct route_table *routes;
    const struct rewrites *rewrites;
    const struct accounts *accounts;
    const struct finding_facts *facts; /* of the running daemon */
    struct doctor *doctor;
    const char *subject; /* of a judge of doctor */
};

/* Adds what it finds. True: the row holds, and its sentence says all. One of doctor
 * says false when an answer is missing: what it has added is dropped, and it is run
 * again. */
typedef bool fault_judge(const struct fault_world *world, struct faults *out);

struct fault_row {
    const char *code; /* rows of doctor may have the same */
    enum fault_severity severity;
    unsigned when;
    /* NULL: the judge above finds it, too, or others name it. */
    fault_judge *judge;
    size_t fact;          /* the member of the facts that the judges of members ask */
    const char *sentence; /* NULL: its judge words it */
    /* A finding has one, which begins with the thing to do. Text in backticks can be
     * typed: a hole in it ("{SITE}") is filled with what the finding is about. */
    const char *remedy;
};

/* The table; NULL behind the last. */
const struct fault_row *faults_row_at(size_t index);
/* The first of that code, or NULL. */
const struct fault_row *faults_row(const char *code);
/* The first with that judge. */
const struct fault_row *faults_row_of(fault_judge *judge);

/* One that was found. */
struct fault {
    const struct fault_row *row;
    enum fault_severity severity;
    /* Never NULL. remedy may have several lines: records to paste are indented. object:
     * for the hole. */
    char *subject, *text, *remedy, *detail, *object;
};
struct faults {
    unsigned when;               /* its reader */
    const struct fault_row *row; /* whose judge runs */
    struct fault *items;
    size_t count, capacity;
};

/* Runs the judges that can ask this world, in the order of the table. */
void faults_judge(struct faults *out, const struct fault_world *world);
/* The faults of the settings, a line each; at FAULT_CHECK also on files that `user`
 * cannot read, if root asks. */
void faults_log(const struct fault_world *world, enum fault_when when, struct log *log);
void faults_free(struct faults *list);
/* Drops all behind the first count. */
void faults_cut(struct faults *list, size_t count);

/* For judges: a fault of the row that is judged. */
void faults_add(struct faults *out, enum fault_severity severity, const char *subject,
                const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds a fault of the row's severity, without a subject. Returns false, as the judge then
 * does. */
bool faults_found(struct faults *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The row of that code, if it holds: its sentence. */
void faults_if(struct faults *out, const char *code, bool holds);

/* Add to the last fault of the list: to its remedy, in which LF begins a line, to its
 * detail, and the object of its remedy. */
void faults_remedy(struct faults *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void faults_detail(struct faults *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool faults_about(struct faults *list, const char *object);
/* A record to paste into a zone, as a line of the remedy: TXT in strings of 255 octets,
 * quoted; or with a value in the form of zone files. */
void faults_text_record(struct faults *list, const char *name, struct text value);
void faults_record(struct faults *list, const char *name, const char *type,
                   const char *value);

/* Texts come from zones and hosts: bytes other than printable ASCII are escaped, so
 * that no terminal obeys them. */
void faults_escape(struct faults *list);
size_t faults_count(const struct faults *list, enum fault_severity severity);
/* Errors first, and among them those that others depend on. */
void faults_sort(struct faults *list);
void faults_print(const struct faults *list, FILE *out);
json_t *faults_json(const struct faults *list);
const char *fault_severity_word(enum fault_severity severity);

#endif
