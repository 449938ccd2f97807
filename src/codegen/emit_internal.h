/* What the files of the emitter share: its state, the writing of lines, expressions as C text.
 *
 *   emit.c           a program: head comment, functions, glue, table
 *   emit_function.c  one function: signature, tiles, dimensions
 *   emit_statements.c its statements, declarations, branches
 *   emit_loops.c     its loops
 *   emit_calls.c     dispatches, tasks, calls between kernels
 *   emit_frames.c    blocks that keep the stack frames of long functions small
 *   emit_vars.c      where its variables live: declared where, pointer or value, used at all
 *   emit_expr.c      scalar expressions
 *   emit_ops.c       operations as statements, loops over elements
 *   emit_templates.c their C text, from the table
 *   emit_operands.c, emit_elements.c  what the text is made of
 *   emit_valid.c     valid extents of ragged tiles
 *   emit_shared.c    loops that several statements share
 *   emit_table.c     entries, parameter tables, pld_function and pld_program
 *   emit_lines.c     indentation, #line, wrapped lists */
#ifndef CODEGEN_EMIT_INTERNAL_H
#define CODEGEN_EMIT_INTERNAL_H

#include "base/map.h"
#include "base/text.h"
#include "ir/ir.h"
#include "ops/ops.h"

/* How a variable appears in C. */
typedef enum storage {
    STORAGE_NONE,    /* not at all: nobody reads it */
    STORAGE_PLAIN,   /* a scalar, pld_buffer or const pld_comm *: assigned by = */
    STORAGE_TILE,    /* a pointer into scratch memory */
    STORAGE_POINTER, /* const pld_tensor *x: a parameter, or an alias of one */
    STORAGE_VALUE    /* pld_tensor x: a view made here; operands are &x */
} storage;

typedef struct var_info {
    storage storage;
    int32_t reads;
    int32_t definitions;
    bool written;              /* by a statement that is not dropped */
    const ir_stmt *defined_by; /* the statement whose assignment is also the declaration, or NULL */
    const ir_stmt
        *declare_before;    /* else: the statement in front of which it is declared, or NULL */
    bool cleared;           /* declared with a zero value: no path analysis says it is set */
    const char *valid_name; /* a ragged tile: of the array that holds its valid extents */
    int64_t last_mention;   /* while frame_groups() works: in which statement of the block */
    const char *param_name; /* a parameter of STORAGE_VALUE: what the C parameter is called */
} var_info;

typedef struct emitter {
    arena *a;
    text *out;
    const ir_program *p;
    /* The function being emitted. */
    const ir_function *f;
    var_info *vars; /* by variable id */
    /* Variables that are declared in front of a statement, sorted by it, then by id. */
    const ir_var **before;
    int64_t before_count;
    const char *context; /* "core" or "host" */
    const char *index;   /* a free name for the loops over elements */
    const char *row;     /* the same over rows and columns, while a broadcast is emitted */
    const char *column;
    map loops; /* shared ones: text -> what emit_shared.c knows of it */
    bool splits_frame;
    const char *turn; /* a free name for the counter of dispatches without device=, or NULL */
    /* Writing. */
    int depth;
    int64_t c_line;      /* of the line being written, from 1 */
    const char *at_file; /* what the C compiler takes that line for */
    int64_t at_line;
} emitter;

/* ---- emit_lines.c ---- */

#define EMIT_INDENT 4
#define EMIT_COLUMNS 100
#define EMIT_CALL_COLUMNS 140 /* of a line that may not be broken: it notes __LINE__ */

/* One line, indented; `format` without newline. */
void emit_line(emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_blank(emitter *e);
/* A #line directive, if the compiler would otherwise take the next line for another one. */
void emit_place(emitter *e, const pypto_span *span);
/* The same for parts that belong to no script. */
void emit_own_place(emitter *e);
/* `head` items `tail`, items separated by ", ", on one line where it fits, else filled lines
 * aligned behind the head. */
void emit_list(emitter *e, const char *head, const char *const *items, int64_t count,
               const char *tail);
/* Text that is safe inside a comment. */
const char *emit_comment_text(emitter *e, const char *string);
const char *emit_base_name(const char *path);
/* Whether a line of that length, indented, fits into that many columns. */
bool emit_fits(const emitter *e, size_t length, size_t columns);
/* `wish`, or with a number behind it, so that it is free in the function at hand. */
const char *emit_free_name(emitter *e, const char *wish);

/* ---- emit_function.c ---- */

/* Whether a statement is a call of the library, or of another function, as opposed to arithmetic. */
bool calls_library(const ir_stmt *s);

/* ---- emit_frames.c ---- */

/* Whether the function at hand needs blocks of its own for what takes stack: behind plan_vars(). */
void plan_frames(emitter *e);
/* For each statement of the block, how many from there on share such a block; 0: it has none. NULL: none has. */
const int32_t *frame_groups(emitter *e, const ir_block *block);

/* ---- emit_shared.c ---- */

/* Functions for the loops that many statements of the function at hand have in common; in front of it. */
void emit_shared_loops(emitter *e);

/* ---- emit_expr.c ---- */

/* The type that C computes a text in. */
typedef enum c_class { C_INT, C_UINT, C_LONG, C_ULONG, C_FLOAT } c_class;

/* A scalar expression as C text. */
typedef struct c_expr {
    const char *text;
    int precedence; /* of its outermost operator: PRECEDENCE_... */
    c_class class;
} c_expr;

enum {
    PRECEDENCE_LIST = 1, /* lowest: may stand between commas */
    PRECEDENCE_TERNARY = 3,
    PRECEDENCE_OR,
    PRECEDENCE_AND,
    PRECEDENCE_BITOR,
    PRECEDENCE_BITXOR,
    PRECEDENCE_BITAND,
    PRECEDENCE_EQUAL,
    PRECEDENCE_LESS,
    PRECEDENCE_SHIFT,
    PRECEDENCE_SUM,
    PRECEDENCE_PRODUCT,
    PRECEDENCE_UNARY,
    PRECEDENCE_PRIMARY
};

c_expr expr_c(emitter *e, const ir_expr *expr);
/* In parentheses if its operator binds less tightly. */
const char *expr_text(emitter *e, const ir_expr *expr, int precedence);
/* Converted to a dtype, as a value that may be assigned to its C type without a warning. */
c_expr expr_as(emitter *e, const ir_expr *expr, pypto_dtype dtype);
/* For an int64_t parameter or array element. */
const char *expr_int64(emitter *e, const ir_expr *expr);
/* A text of C type `from`, converted. */
c_expr expr_convert(emitter *e, c_expr c, pypto_dtype from, pypto_dtype to);

/* "float", "int32_t": of a scalar variable and of a tile's element. 16-bit floats are held as
 * rounded floats in scalars, as bits in tiles. */
const char *c_scalar_type(pypto_dtype dtype);
const char *c_element_type(pypto_dtype dtype);

/* The end of the name of a function of pld_math.h that computes values of that type: "i8", "f32". */
const char *compute_suffix(pypto_dtype dtype);

/* "PYPTO_FP32" */
const char *c_dtype_name(pypto_dtype dtype);

/* ---- emit_operands.c, emit_templates.c ---- */

/* A handle or tile as operand: "x" or "&x". */
const char *handle_text(emitter *e, const ir_var *var);
/* An operation's C text with its operands filled in. `target` may be NULL. */
const char *op_text(emitter *e, const op_def *op, const ir_operand *operands, const ir_var *target);
/* The array of a ragged tile's valid extents. */
const char *tile_valid_name(emitter *e, const ir_var *tile);

/* ---- emit_valid.c ---- */

/* After an assignment or operation: the target's valid extents, where it is ragged, are those of the
 * first tile operand, less the axes that the operation reduced. */
void emit_valid_copy(emitter *e, const ir_stmt *s);
/* Of the tiles, by id: whether the C text of a statement names the pointer, reads the valid extents. Of the tiles that
 * an elementwise operation combines only one gives the result's extents. */
typedef struct tile_uses {
    bool *pointer;
    bool *valid;
} tile_uses;

void mark_tile_uses(const ir_stmt *s, tile_uses *uses);

/* ---- emit_ops.c ---- */

/* A DO statement. */
void emit_operation(emitter *e, const ir_stmt *s);

/* ---- emit_calls.c ---- */

void emit_call(emitter *e, const ir_stmt *s);

/* ---- emit_vars.c ---- */

/* Fills e->vars for e->f. */
void plan_vars(emitter *e);
/* Whether a statement is not emitted, because nobody reads what it assigns and it has no effect. */
bool is_dropped(const emitter *e, const ir_stmt *s);
/* The part of e->before that belongs to a statement: *first and as many as are returned. */
int64_t declared_before(const emitter *e, const ir_stmt *s, const ir_var *const **first);

/* ---- emit_statements.c ---- */

/* `name = value;` or `value;`, as one line with its place. */
void emit_value(emitter *e, const ir_stmt *s, const char *value);
/* A handle as the value of an assignment to `target`. */
const char *alias_text(emitter *e, const ir_var *target, const ir_var *source);
void emit_block(emitter *e, const ir_block *block);

/* ---- emit_loops.c ---- */

void emit_for(emitter *e, const ir_stmt *s);
void emit_while(emitter *e, const ir_stmt *s);

/* ---- emit_function.c ---- */

/* The C function with the user's name and natural parameters. */
void emit_function(emitter *e, const ir_function *f);
/* An extent of a parameter, which is a pointer called `tensor`. */
const char *param_extent(emitter *e, int64_t param, const char *tensor, int32_t d);
/* const int64_t NR = (x->shape[0] - 2) / 4; `tensor` is the C text of the parameter's tensor. */
void emit_dim(emitter *e, const ir_dim *dim, const char *tensor);

/* ---- emit_table.c ---- */

/* Its entry, parameters and pld_function. */
void emit_table(emitter *e, const ir_function *f);
void emit_program_table(emitter *e);

#endif
