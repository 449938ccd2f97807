/* Making diagnostics: the table of all of them, and the functions that build a pypto_status.
 *
 * Called wherever something can fail; status.c is the other half, which releases and renders. A
 * status is a chain of heap objects, each owning copies of all its strings (also of span.file),
 * because it outlives the arena of the compile that found the error.
 *
 * Running out of memory while reporting an error is itself an error, and the only one that needs no
 * memory: one constant diagnostic, which every status may point to, nobody writes and nobody frees.
 * A status that holds it holds nothing else. */
#include "base/diag.h"

#include "base/alloc.h"
#include "base/diag_internal.h"
#include "base/os.h"
#include "base/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const diag_info infos[DIAG_COUNT] = {
#define DIAG(name, code, kind, title) [DIAG_##name] = {code, PYPTO_ERROR_##kind, title},
#include "base/diagnostics.def"
#undef DIAG
};

const pypto_span SPAN_NONE = {NULL, 0, 0, 0, 0};

/* Not const, because a status has a plain pointer to it; still never written. */
pypto_diagnostic diag_exhausted = {
    .code = "PYPTO-I001",
    .kind = PYPTO_ERROR_MEMORY,
    .message = "memory is exhausted",
    .hint = "close other programs, or use smaller tensors or fewer devices",
};

const diag_info *diag_lookup(diag_code code)
{
    return &infos[(uint32_t)code < DIAG_COUNT ? code : DIAG_INTERNAL];
}

/* Tests of pypto want to know which diagnostics have been made at all. */
static void record(const diag_info *info)
{
    const char *path = setting_text(SETTING_CODES_LOG);
    if (path[0] != '\0')
        os_append_line(path, info->code);
}

pypto_status diag_no_memory(void)
{
    record(diag_lookup(DIAG_OUT_OF_MEMORY));
    return (pypto_status){PYPTO_ERROR_MEMORY, &diag_exhausted};
}

static void become_exhausted(pypto_status *status)
{
    pypto_status_clear(status);
    *status = diag_no_memory();
}

static pypto_diagnostic *last_of(const pypto_status *status)
{
    pypto_diagnostic *last = status->diagnostics;
    while (last != NULL && last->next != NULL)
        last = last->next;
    return last;
}

/* A diagnostic with copies of everything, or NULL when memory is exhausted. */
static pypto_diagnostic *make(const diag_info *info, pypto_span span, const char *hint,
                              const char *format, va_list args)
{
    pypto_diagnostic *d = alloc_zeroed(1, sizeof(pypto_diagnostic));
    if (d == NULL)
        return NULL;
    d->code = info->code;
    d->kind = info->kind;
    d->span = span;
    d->span.file = span.file != NULL ? alloc_strdup(span.file) : NULL;
    d->hint = hint != NULL ? alloc_strdup(hint) : NULL;
    d->message = alloc_vprintf(format, args);
    if ((span.file != NULL && d->span.file == NULL) || (hint != NULL && d->hint == NULL) ||
        d->message == NULL) {
        diag_release(d);
        return NULL;
    }
    return d;
}

void diag_vadd(pypto_status *status, diag_code code, pypto_span span, const char *hint,
               const char *format, va_list args)
{
    if (status->diagnostics == &diag_exhausted)
        return;
    record(diag_lookup(code));
    pypto_diagnostic *added = make(diag_lookup(code), span, hint, format, args);
    if (added == NULL) {
        become_exhausted(status);
        return;
    }
    pypto_diagnostic *last = last_of(status);
    if (last != NULL) {
        last->next = added;
    } else {
        status->diagnostics = added;
        status->kind = added->kind;
    }
}

void diag_add(pypto_status *status, diag_code code, pypto_span span, const char *hint,
              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_vadd(status, code, span, hint, format, args);
    va_end(args);
}

pypto_status diag_status(diag_code code, const char *hint, const char *format, ...)
{
    pypto_status status = STATUS_OK;
    va_list args;
    va_start(args, format);
    diag_vadd(&status, code, SPAN_NONE, hint, format, args);
    va_end(args);
    return status;
}

/* What to do about errors that have the same cure wherever they come up. To be freed; NULL: there is none, or no memory
 * for it. */
static char *usual_cure(int error)
{
    char limit[OS_LIMIT_TEXT];
    switch (error) {
    case EMFILE:
        return alloc_printf("raise %s, or use fewer devices: each takes two",
                            os_limit_text("files", limit, sizeof limit));
    case EFBIG: return alloc_printf("raise %s", os_limit_text("file size", limit, sizeof limit));
    case EAGAIN:
        return alloc_printf("raise %s, or use fewer devices: each takes two, one per thread",
                            os_limit_text("processes", limit, sizeof limit));
    case EACCES: return alloc_strdup("look at the permissions of that path, or choose another");
    case EROFS: return alloc_strdup("choose a directory on a file system that can be written to");
    case ENFILE:
        return alloc_strdup("the whole system has too many open files: end other programs");
    case ENOSPC: return alloc_strdup("free some space on that file system");
    case EDQUOT: return alloc_strdup("your quota on that file system is used up: remove files");
    default: return NULL;
    }
}

pypto_status diag_system(int error, const char *hint, const char *doing, ...)
{
    va_list args;
    va_start(args, doing);
    char *what = alloc_vprintf(doing, args);
    va_end(args);
    if (what == NULL)
        return diag_no_memory();
    char reason[128];
    char *cure = hint != NULL ? NULL : usual_cure(error);
    pypto_status status = diag_status(DIAG_SYSTEM, hint != NULL ? hint : cure, "cannot %s: %s",
                                      what, strerror_r(error, reason, sizeof reason));
    alloc_free(cure);
    alloc_free(what);
    return status;
}

void diag_note(pypto_status *status, const char *format, ...)
{
    pypto_diagnostic *last = last_of(status);
    if (last == NULL || last == &diag_exhausted)
        return;
    va_list args;
    va_start(args, format);
    char *note = alloc_vprintf(format, args);
    va_end(args);
    if (note != NULL && last->note != NULL) {
        char *joined = alloc_printf("%s\n%s", last->note, note);
        alloc_free(note);
        note = joined;
    }
    if (note == NULL)
        return; /* the error itself is worth more than its facts: keep it as it is */
    diag_free_text(last->note);
    last->note = note;
}

void diag_source(pypto_status *status, const char *line_text)
{
    pypto_diagnostic *last = last_of(status);
    if (last == NULL || last == &diag_exhausted)
        return;
    char *source = alloc_strdup(line_text);
    if (source == NULL)
        return;
    source[strcspn(source, "\r\n")] = '\0';
    diag_free_text(last->source);
    last->source = source;
}

void diag_hint(pypto_status *status, const char *hint)
{
    pypto_diagnostic *last = last_of(status);
    if (last != NULL && last != &diag_exhausted && last->hint == NULL)
        last->hint = alloc_strdup(hint);
}

void diag_append(pypto_status *to, pypto_status *from)
{
    if (from->diagnostics == NULL)
        return;
    if (from->diagnostics == &diag_exhausted) {
        become_exhausted(to);
    } else if (to->diagnostics == &diag_exhausted) {
        pypto_status_clear(from);
    } else if (to->diagnostics == NULL) {
        *to = *from;
    } else {
        last_of(to)->next = from->diagnostics;
    }
    *from = STATUS_OK;
}

void diag_place(pypto_status *status, pypto_span span)
{
    pypto_diagnostic *last = last_of(status);
    if (last == NULL || last == &diag_exhausted || last->span.line != 0)
        return;
    last->span = span;
    last->span.file = span.file != NULL ? alloc_strdup(span.file) : NULL;
}

/* ---- the order of a compile's errors ---- */

/* 0: others follow from it. A code's letter tells the rest: S is form, T types. */
static int importance(const pypto_diagnostic *d)
{
    static const diag_code roots[] = {
        DIAG_NO_SOURCE,  DIAG_BAD_DECORATOR,      DIAG_BAD_PROGRAM_CLASS,
        DIAG_BAD_METHOD, DIAG_UNDEFINED_NAME,     DIAG_UNKNOWN_OPERATION,
        DIAG_LATER,      DIAG_MISSING_ANNOTATION, DIAG_BAD_ANNOTATION,
    };
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        if (strcmp(infos[roots[i]].code, d->code) == 0)
            return 0;
    }
    const bool whole = d->kind == PYPTO_ERROR_VALUE || d->kind == PYPTO_ERROR_DOMAIN ||
                       d->kind == PYPTO_ERROR_INTERNAL;
    const char letter = d->code[strlen("PYPTO-")];
    return letter == 'S' ? 1 : letter == 'T' && !whole ? 2 : 3;
}

static bool same_text(const char *x, const char *y)
{
    return x == y || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

/* A diagnostic with what it is sorted by. */
typedef struct shown {
    pypto_diagnostic *diagnostic;
    int64_t importance;
    int64_t
        file; /* number of the first diagnostic in the same file: the entry's file comes first */
    int64_t found; /* its own number: what is equal keeps its order */
} shown;

static int compare_shown(const void *left, const void *right)
{
    const shown *x = left;
    const shown *y = right;
    const pypto_span *p = &x->diagnostic->span;
    const pypto_span *q = &y->diagnostic->span;
    const int64_t keys[][2] = {
        {x->importance, y->importance}, {x->file, y->file},   {p->line, q->line},
        {p->column, q->column},         {x->found, y->found},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    }
    return 0;
}

static bool repeats(const shown *x, const shown *y)
{
    const pypto_diagnostic *p = x->diagnostic;
    const pypto_diagnostic *q = y->diagnostic;
    return x->file == y->file && p->span.line == q->span.line && p->span.column == q->span.column &&
           strcmp(p->code, q->code) == 0 && same_text(p->message, q->message);
}

static void list_shown(const pypto_status *status, shown *list)
{
    int64_t count = 0;
    for (pypto_diagnostic *d = status->diagnostics; d != NULL; d = d->next) {
        shown *s = &list[count];
        *s = (shown){d, importance(d), count, count};
        for (int64_t i = 0; i < count && s->file == count; i++) {
            if (same_text(list[i].diagnostic->span.file, d->span.file))
                s->file = list[i].file;
        }
        count++;
    }
}

void diag_sort(pypto_status *status)
{
    int64_t count = 0;
    for (const pypto_diagnostic *d = status->diagnostics; d != NULL; d = d->next)
        count++;
    /* Without memory the order of finding remains. */
    shown *list = count < 2 ? NULL : alloc_zeroed(count, sizeof(shown));
    if (list == NULL)
        return;
    list_shown(status, list);
    qsort(list, (size_t)count, sizeof(shown), compare_shown);
    pypto_diagnostic *last = list[0].diagnostic;
    status->diagnostics = last;
    status->kind = last->kind;
    for (int64_t i = 1; i < count; i++) {
        if (repeats(&list[i - 1], &list[i])) {
            diag_release(list[i].diagnostic);
            list[i].diagnostic = last;
            continue;
        }
        last->next = list[i].diagnostic;
        last = list[i].diagnostic;
    }
    last->next = NULL;
    alloc_free(list);
}
