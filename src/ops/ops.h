/* The operations of the DSL: one table (ops.def and the family files it includes), from which come the
 * Python names and their help, argument binding, type rules, the verifier and the emitter.
 *
 * A row is
 *   OP(ID, spellings, signature, result, planes, effects, rule, emit, doc)
 *
 *   spellings  the dotted names that call it, separated by spaces; the first is canonical and printed
 *   signature  parameters as Python writes them, each with its operand kind after a colon, e.g.
 *              "source: memory, offsets: offsets, shapes: extents"; "= default" makes one optional,
 *              a "*" entry makes those after it keyword-only. "input/tensor/tile: tile" has a name each
 *              for pl., pl.tensor. and pl.tile., the last also for those behind it; help shows the one of
 *              the spelling, calls may use any, the columns below the first. Kinds (table.c parses them):
 *                tile (not of 4-bit elements; tile4 of those as well) | memory (tensor or window) | block (either) | window | tensor | array | buffer | comm | tile|scalar | tile|offsets
 *                scalar (any) | int (integer scalar) | offsets (integer scalars, one per dimension)
 *                extents (constants) | shape (integer scalars) | int|shape | indices (offsets, or
 *                one integer) | word:RoundMode (a string) | text | valid (integer
 *                scalars, one per dimension) | dtype | bool (True or False) | pad (of PadValue) |
 *                enum:NotifyOp ...
 *   result     what its value is, in a word of the same set; "none"; "=name": the storage of that operand;
 *              "tile:name": a tile that is valid where that operand is (else where its first tile is)
 *   planes     where it may stand: H, C, I (host, chip, in-core), any combination; T: in a wrapper as
 *              well, where it becomes a task that does nothing else
 *   effects    which operands' storage it reads and writes: "r:source w:target"; an
 *              operand whose cells it notifies, or waits for: "n:target", "a:signal"; the signal of a
 *              collective: "c:signal", or of a barrier, which is a fence in a task of its own: "f:signal"
 *   rule       the type rule: a function of rules.h, shared by a family: given the operands it checks
 *              them and gives the result type
 *   emit       the C text, with placeholders:
 *                {name}               an operand; a list becomes PLD_AT(...) or PLD_EXTENTS(...)
 *                {name.count}         a list's length
 *                {tile.extents} {tile.valid} {tile.ndim} {tile.rows} {tile.columns}   a tile's shape,
 *                                     valid extents and so on: codegen/emit_parts.c has all parts
 *                {tile.extents:memory} {tile.valid:memory}   with an entry per dimension of the memory
 *                {out} {out.valid}    the result tile and its valid extents
 *                {out.buffer} {out.devices}   an allocation's index and device set
 *                {array.at:i} {array.slot:i}   the element that another operand counts, as a value and
 *                                     as what is assigned
 *                {core} {host}        the call's context
 *                {type} {element}     the first operand's element type as pld_math.h spells it: what it
 *                                     computes in, and what is stored
 *                {name.as:tile}       a scalar as an element of that tile; {name.pad:tile} a pad value
 *                {name.store:memory}  the call that writes a tile or a tensor into that operand
 *                {name.pointer:tile}  elements and their distance: those of a tile, or one scalar
 *              A tile result is written through {out}; any other result is the value of the text as a
 *              C expression. Behind a newline stands the text for ragged tiles. Empty: the front end
 *              turns the operation into a loop or a scalar expression, so it never reaches the IR.
 *              "elementwise: <expression>" is the family that becomes one loop over the result, where
 *              {x} is x's element (or the scalar), {x.bits} the element unconverted, {x.row} and
 *              {x.column} those of the row and column, {mask.bit} the element's bit of a mask, {row} and
 *              {column} its place; behind a newline the statement that sets {out.valid}.
 *              "elementwise: <expression> unless <condition>: <other expression>" looks at all elements first: where
 *              one meets the condition, the loop is that of the other expression, which is right for all but slow.
 *              "operator: <operator>": what two scalars give; computed in the front end
 *   doc        what help() shows: first line, blank line, the rest
 *
 * Rows that share a spelling are forms of one operation: of those that have the spelling as it was
 * written, the kind of the first argument decides (pl.cast of a scalar and of a tile).
 *
 * Adding an elementwise operation is one row. The table is data; nothing in it points upward. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "base/export.h"
#include "base/text.h"
#include "ir/ir.h"

typedef enum op_id {
#define OP(id, ...) OP_##id,
#include "ops/ops.def"
#undef OP
    OP_COUNT
} op_id;

/* What a parameter accepts. */
typedef enum op_operand {
    OPERAND_TILE,
    OPERAND_MEMORY, /* tensor or window */
    OPERAND_BLOCK,  /* tile, tensor or window */
    OPERAND_WINDOW,
    OPERAND_TENSOR,
    OPERAND_ARRAY,
    OPERAND_BUFFER,
    OPERAND_COMM,
    OPERAND_TILE_OR_SCALAR,
    OPERAND_TILE_OR_OFFSETS,
    OPERAND_SCALAR,
    OPERAND_INT,
    OPERAND_INT_OR_SHAPE,
    OPERAND_OFFSETS,
    OPERAND_INDICES, /* the same, or one integer alone */
    OPERAND_EXTENTS,
    OPERAND_VALID, /* extents that may be 0 or known at run time only */
    OPERAND_SHAPE,
    OPERAND_DTYPE,
    OPERAND_BOOL, /* a constant: True or False */
    OPERAND_ENUM,
    OPERAND_TEXT,
    OPERAND_PAD, /* a member of PadValue, or 0, inf, -inf */
    OPERAND_WORD /* a member of an enumeration, as a string or by its number */
} op_operand;

typedef struct op_param {
    const char
        *name; /* the first of its names, which stand in one string, each with a NUL behind it */
    int32_t name_count; /* any of them is accepted as a keyword */
    op_operand kind;
    const char *enum_name;    /* OPERAND_ENUM: "NotifyOp" */
    const char *default_text; /* NULL: required; else as written, e.g. "None" */
    bool keyword_only;
    bool takes_packed; /* OPERAND_TILE: also elements that lie two in a byte */
} op_param;

#define OP_MAX_PARAMS 12
#define OP_MAX_SPELLINGS 4

typedef struct op_call {
    ir_program *program;
    ir_function *function;
    const struct op_def *op;
    ir_operand *operands; /* one per parameter */
    pypto_span span;
    pypto_status *errors;
} op_call;

/* Checks operands, may normalise them (an int to a constant of the right dtype), sets *result.
 * False after it has added exactly one diagnostic. */
typedef bool (*op_rule)(op_call *call, ir_type *result);

typedef struct op_def {
    op_id id;
    const char *id_name;
    const char *const *spellings; /* NULL-terminated; [0] is canonical */
    const char *signature;
    op_param params[OP_MAX_PARAMS];
    int32_t param_count;
    const char *result;
    int32_t result_param; /* "=name": the index of that parameter, else -1 */
    int32_t valid_param;  /* "tile:name": the index of that parameter, else -1 */
    bool on_host;
    bool on_chip;
    bool in_core;
    bool as_task; /* in a wrapper it becomes a kernel of its own */
    const char *effects;
    uint32_t reads;    /* bit i: reads the storage of operand i */
    uint32_t writes;   /* bit i: writes it */
    uint32_t notifies; /* bit i: sends signals through it, which counts as writing too */
    uint32_t awaits;   /* bit i: waits for signals in it, which counts as reading too */
    uint32_t
        fences; /* bit i: a signal that all windows of its domain are ordered by, in a task of its own */
    uint32_t signals; /* bit i: is the signal of a collective, which counts as both */
    op_rule rule;
    /* Another row that shares a spelling, for operands of another kind; NULL behind the last. */
    const struct op_def *next_form;
    const char *emit;
    const char *doc;
} op_def;

/* What messages call an entry of a list: "offset" for the parameter offsets. */
const char *op_entry_name(const op_param *param);

/* Parses the table once; thread-safe. Never NULL for 0 <= id < OP_COUNT. */
const op_def *op_get(op_id id) EXPORTED(op_get);
/* Whether it reads, writes or notifies another rank's slice of a window: the one that its operand `peer` names. */
bool op_reaches_peers(const op_def *op);
/* Whether it makes a tensor, in a host function or on a device. */
bool op_creates_tensor(const op_def *op);
/* Whether an operation is called by that spelling. */
bool op_is_spelled(const op_def *op, const char *spelling);
/* By any spelling ("pl.load", "pl.tile.load"); NULL when there is none. */
const op_def *op_find(const char *spelling);
/* The spelling nearest to a misspelt one, for "did you mean"; NULL when nothing is near. Of what is in pld, one in pld. */
const char *op_nearest(const char *spelling);
/* "pld.rank, pld.nranks, ...": the operations that are called without a category between the module and their name. */
void op_list_short_forms(text *out, const char *module);
/* What is wrong with the table's text, for the unit test; NULL when every row could be parsed. */
const char *op_table_problem(void);

/* Whether an op writes / reads the storage of operand i. */
bool op_writes(const op_def *op, int32_t param);
bool op_reads(const op_def *op, int32_t param);
/* The parameter of that name, or -1. */
int32_t op_param_index(const op_def *op, const char *name);
/* A family that becomes one loop: the result may take the place of an operand. */
bool op_is_elementwise(const op_def *op);
/* Of an elementwise one: whether it reads element i of an operand for element i of the result only, so
 * that the result may take the operand's place. */
bool op_in_place(const op_def *op, int32_t param);
/* Of a form that scalars take: the operator of Python that it stands for, else NULL. */
const char *op_operator(const op_def *op);
/* Whether the operation may stand in functions of that plane, in the IR. */
bool op_allowed(const op_def *op, pld_plane plane);

/* Checks the operands against the kinds of the signature, then by the rule. What the front end calls
 * for every operation, and the verifier may call again. */
bool op_check(op_call *call, ir_type *result);

/* Enumerations of pl and pld: ("NotifyOp", "Set", 1) ...: one table, ops/enums.def. */
typedef struct enum_member {
    const char *module; /* "pl" or "pld" */
    const char *enumeration;
    const char *member;
    int64_t value;
    const char *c_name;
} enum_member;

const enum_member *enum_members(int32_t *count) EXPORTED(enum_members);
const enum_member *enum_find(const char *enumeration, const char *member);
const char *enum_member_name(const char *enumeration, int64_t value);

/* The words of the language that are no operations (pl.range, pl.yield_): one table, ops/words.def. */
typedef struct language_word {
    const char *path;       /* "pl.yield_" */
    const char *parameters; /* as Python writes them */
    const char *doc;
} language_word;

enum {
#define WORD(path, ...) +1
    WORD_COUNT = 0
#include "ops/words.def"
#undef WORD
};

const language_word *language_words(void) EXPORTED(language_words); /* WORD_COUNT rows */
bool is_language_word(const char *path);

/* Whether a dotted name ("pl.matmul") belongs to the language, but not to this version. Asked when
 * nothing else knows it. */
bool op_is_later(const char *path) EXPORTED(op_is_later);
/* What to do instead of using such a name, or NULL. */
const char *op_later_hint(const char *path) EXPORTED(op_later_hint);

/* For "did you mean": the candidate with the fewest typing errors in it, or NULL when none is near.
 * Candidates may be NULL and are then skipped. */
const char *nearest_word(const char *word, const char *const *candidates, int64_t count);

#endif
