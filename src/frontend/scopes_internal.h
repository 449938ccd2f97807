/* A scope while it is lowered, for the files that share the work. */
#ifndef FRONTEND_SCOPES_INTERNAL_H
#define FRONTEND_SCOPES_INTERNAL_H

#include "frontend/scopes.h"

typedef struct scope {
    const syntax_stmt *syntax;
    const syntax_expr *call;
    const char *word;          /* "pl.at" */
    const syntax_expr *target; /* of `as`, or NULL */
} scope;

/* ---- scopes.c ---- */

/* The body where it stands: it becomes no function. */
void lower_in_place(lowering *fl, const syntax_stmt *s);

/* ---- scope_at.c ---- */

void lower_at(lowering *fl, const scope *sc);

/* ---- scope_spmd.c ---- */

void lower_spmd(lowering *fl, const scope *sc);
void lower_spmd_loop(lowering *fl, const scope *sc);

/* ---- scope_arguments.c ---- */

/* The name of what the scope becomes. */
bool scope_name(lowering *fl, const char *word, const syntax_expr *hint, const char **name);
/* optimizations=[...] (or NULL), which has no effect; false after an error. */
bool check_optimizations(lowering *fl, const char *word, const syntax_expr *list);
/* Reports `as tid` of a scope that is no task; false. */
bool no_capture(lowering *fl, const scope *sc);
/* Binds the name behind `as`, if there is one, to the id of the task that the request has submitted. */
void capture_id(lowering *fl, const scope *sc, launch_request *request);
/* A member that the table has. */
int64_t enum_value(const char *enumeration, const char *member);

#endif
