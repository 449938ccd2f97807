/* Where paths of the function part and meet: what a name is bound to behind an if or a loop. */
#ifndef FRONTEND_FLOW_H
#define FRONTEND_FLOW_H

#include "frontend/bindings.h"
#include "frontend/lower.h"

/* A way to reach a place where paths meet: what it binds, other than all did where they parted. */
typedef struct flow_path {
    ir_block *block; /* where it ends */
    bool jumps;      /* by a break or continue, which is the block's last statement */
    name_changes changes;
} flow_path;
typedef VEC(flow_path) flow_paths;

/* ---- flow.c ---- */

void lower_if(lowering *fl, const syntax_stmt *s);
/* What the path that ends here has bound since the trail was `mark`. */
flow_path path_here(lowering *fl, int64_t mark, ir_block *block, bool jumps);
/* What the path has each of the names bound to; called where paths parted. */
binding **path_bindings(lowering *fl, const flow_path *p, const name_set *names);
/* target = what b is bound to, at the end of the path. */
void path_assign(lowering *fl, flow_path *p, ir_var *target, const binding *b);
/* One binding for a name that is bs[i] at the end of paths[i]; assigns on the paths what differs. */
binding *merge_bindings(lowering *fl, int64_t name, pypto_span span, flow_path *paths, binding **bs,
                        int64_t count);
bool same_type(const binding *x, const binding *y);
/* Whether a variable of type `wide` holds what one of type `narrow` does. */
bool type_widens(const ir_type *narrow, const ir_type *wide);
/* The type of one variable that holds what any of the bindings does; false: there is none. */
bool meeting_type(lowering *fl, binding *const *bs, int64_t count, ir_type *type);
binding *copy_binding(lowering *fl, const binding *b);
binding *state_binding(lowering *fl, binding_state state, pypto_span span);
binding *conflict_binding(lowering *fl, const binding *x, const binding *y);

/* ---- open_names.c: names that a loop binds only if it has had a turn ---- */

/* `b`, which the paths that bind the name agree on, as its binding where a way past the loop, or a path that
 * does not bind it, leads too. `loop`: each turn that comes to its end, or breaks, binds it; NULL: not each. */
binding *open_binding(lowering *fl, int64_t name, binding *b, const ir_stmt *loop, flow_path *paths,
                      binding *const *bs, int64_t count);
/* What an open binding holds may never have been assigned. */
void mark_open(const binding *b);
/* The name is bound where these paths end, as far as their bindings are not open themselves. */
void note_bound(lowering *fl, int64_t name, const flow_path *paths, binding *const *bs,
                int64_t count);
/* Fails at run time where the name has not been bound. Behind that it is, for the path at hand. */
void check_bound(lowering *fl, int64_t name, binding *b, pypto_span span);

/* ---- mentions.c ---- */

/* The names that the block reads or binds, each once, in the order of writing. */
name_set mentioned(lowering *fl, const syntax_block *block);
/* The block will not be lowered: notes the window buffers that it uses. */
void leave_out(lowering *fl, const syntax_block *block);
/* Whether the first mention of the name, in the order of evaluation, reads it. */
bool reads_first(const syntax_block *block, const char *name);
/* Whether the function may read, outside of a scope, what the name was bound to in it. */
bool crosses_scopes(lowering *fl, int64_t name);

#endif
