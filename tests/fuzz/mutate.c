/* See mutate.h. Everything works on text: a lexer finds the words, indentation finds the blocks,
 * brackets and commas find the arguments. A mutation that finds nothing to work on leaves the text as
 * it is. The only state is the random number generator, so a seed names a result. */
#include "mutate.h"

#include "ops/ops.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PIECES 4096

typedef struct piece {
    size_t start;
    size_t end;
} piece;

typedef struct pieces {
    piece items[MOST_PIECES];
    int64_t count;
} pieces;

int64_t draw(random_bits *r, int64_t below)
{
    r->state += 0x9e3779b97f4a7c15U; /* splitmix64 */
    uint64_t x = r->state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    return below < 1 ? 0 : (int64_t)(x % (uint64_t)below);
}

#define PICK(r, array) ((array)[draw((r), (int64_t)(sizeof(array) / sizeof((array)[0])))])

static void add_piece(pieces *all, size_t start, size_t end)
{
    if (all->count < MOST_PIECES)
        all->items[all->count++] = (piece){start, end};
}

/* ---- editing ---- */

typedef struct editor {
    random_bits *r;
    char *text;
    size_t size;
    size_t most;
} editor;

static bool replace(editor *e, piece old, const char *with, size_t length)
{
    size_t size = e->size - (old.end - old.start) + length;
    if (size > e->most)
        return false;
    memmove(e->text + old.start + length, e->text + old.end, e->size - old.end);
    memcpy(e->text + old.start, with, length);
    e->size = size;
    return true;
}

static void replace_word(editor *e, piece old, const char *with)
{
    (void)replace(e, old, with, strlen(with));
}

/* A copy that lives until the next call; the editor's text moves when it is edited. */
static const char *copy_of(const editor *e, piece p, size_t *length)
{
    static char buffer[1 << 16];
    *length = p.end - p.start < sizeof buffer ? p.end - p.start : 0;
    memcpy(buffer, e->text + p.start, *length);
    return buffer;
}

/* ---- words ---- */

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static bool is_operator_byte(char c)
{
    return c != '\0' && strchr("+-*/%<>=!&|^~@", c) != NULL;
}

/* Names with their dots, numbers, operators. */
static void find_words(const editor *e, pieces *all)
{
    all->count = 0;
    for (size_t i = 0; i < e->size;) {
        size_t n = 0;
        if (is_word_byte(e->text[i])) {
            while (i + n < e->size && is_word_byte(e->text[i + n]))
                n++;
            add_piece(all, i, i + n);
        } else if (is_operator_byte(e->text[i])) {
            while (i + n < e->size && is_operator_byte(e->text[i + n]))
                n++;
            add_piece(all, i, i + n);
        }
        i += n == 0 ? 1 : n;
    }
}

static bool pick_word(const editor *e, piece *word)
{
    static pieces all;
    find_words(e, &all);
    if (all.count == 0)
        return false;
    *word = all.items[draw(e->r, all.count)];
    return true;
}

static const char *new_number(random_bits *r)
{
    static const char *const numbers[] = {
        "0",
        "1",
        "2",
        "3",
        "4",
        "7",
        "8",
        "16",
        "31",
        "32",
        "63",
        "64",
        "65",
        "127",
        "128",
        "255",
        "256",
        "1000",
        "4096",
        "65535",
        "1048576",
        "2147483647",
        "2147483648",
        "4294967295",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "0.0",
        "1.5",
        "1e300",
        "1e-300",
        "1e999",
        "0x7fffffff",
        "True",
        "None",
    };
    return PICK(r, numbers);
}

static const char *new_operator(random_bits *r)
{
    static const char *const operators[] = {
        "+",  "-",  "*",   "/",   "//",    "%",    "**",   "<<",  ">>", "&",
        "|",  "^",  "<",   "<=",  ">",     ">=",   "==",   "!=",  "@",  "=",
        "+=", "-=", "//=", "<<=", " and ", " or ", " in ", " is "};
    return PICK(r, operators);
}

/* A dotted name of the language. */
static const char *new_path(random_bits *r)
{
    static char buffer[128];
    static const char *const others[] = {
        "pl.range",
        "pl.parallel",
        "pl.unroll",
        "pl.pipeline",
        "pl.while_",
        "pl.const",
        "pl.cast",
        "pl.min",
        "pl.max",
        "pl.abs",
        "min",
        "max",
        "abs",
        "range",
        "len",
        "print",
        "pl.yield_",
        "pl.cond",
        "pl.static_assert",
        "pl.static_print",
        "pl.dynamic",
        "pl.Tensor",
        "pl.Out",
        "pl.InOut",
        "pl.Scalar",
        "pl.Tile",
        "pld.DistributedTensor",
        "pl.Tuple",
        "tuple",
        "pl.constexpr",
        "pl.Ptr",
        "pl.array",
        "pl.Array",
        "pl.create_tensor",
        "pl.submit",
        "pl.spmd",
        "pl.at",
        "pl.scope",
        "pl.manual_scope",
        "pl.tensor.dim",
        "pl.jit",
        "pld",
    };
    int64_t kind = draw(r, 8);
    int32_t count;
    const enum_member *members = enum_members(&count);
    if (kind == 0) {
        const enum_member *m = &members[draw(r, count)];
        snprintf(buffer, sizeof buffer, "%s.%s.%s", m->module, m->enumeration, m->member);
    } else if (kind == 1) {
        static const char *const dtypes[] = {
#define DTYPE_PATH(name, text, bits, class_) "pl." #name,
            PYPTO_DTYPES(DTYPE_PATH)
#undef DTYPE_PATH
        };
        return PICK(r, dtypes);
    } else if (kind < 4) {
        return PICK(r, others);
    } else {
        const op_def *op = op_get((op_id)draw(r, OP_COUNT));
        int64_t spellings = 0;
        while (op->spellings[spellings] != NULL)
            spellings++;
        return op->spellings[draw(r, spellings)];
    }
    return buffer;
}

static const char *new_word_like(editor *e, char first)
{
    if (isdigit((unsigned char)first))
        return new_number(e->r);
    if (is_operator_byte(first))
        return new_operator(e->r);
    return new_path(e->r);
}

static void exchange_word(editor *e)
{
    piece old;
    piece other;
    if (!pick_word(e, &old))
        return;
    if (draw(e->r, 2) == 0) {
        replace_word(e, old, new_word_like(e, e->text[old.start]));
        return;
    }
    for (int i = 0; i < 8 && pick_word(e, &other); i++) {
        bool operators = is_operator_byte(e->text[old.start]);
        if (is_operator_byte(e->text[other.start]) != operators)
            continue;
        size_t length;
        const char *copy = copy_of(e, other, &length);
        (void)replace(e, old, copy, length);
        return;
    }
}

/* ---- arguments ---- */

/* Ends at the comma or bracket that closes the argument that begins at `start`. */
static size_t argument_end(const editor *e, size_t start)
{
    int depth = 0;
    size_t i = start;
    for (; i < e->size && e->text[i] != '\n'; i++) {
        char c = e->text[i];
        if (c == '(' || c == '[' || c == '{')
            depth++;
        else if (c == ')' || c == ']' || c == '}') {
            if (depth == 0)
                break;
            depth--;
        } else if (c == ',' && depth == 0) {
            break;
        }
    }
    return i;
}

static void find_arguments(const editor *e, pieces *all)
{
    all->count = 0;
    for (size_t i = 0; i + 1 < e->size; i++) {
        if (e->text[i] != '(' && e->text[i] != '[' && e->text[i] != ',')
            continue;
        size_t start = i + 1;
        while (start < e->size && e->text[start] == ' ')
            start++;
        size_t end = argument_end(e, start);
        if (end > start && end < e->size && e->text[end] != '\n')
            add_piece(all, start, end);
    }
}

static bool pick_argument(const editor *e, piece *argument)
{
    static pieces all;
    find_arguments(e, &all);
    if (all.count == 0)
        return false;
    *argument = all.items[draw(e->r, all.count)];
    return true;
}

/* A name that the text uses. */
static void some_name(editor *e, char *out, size_t bytes)
{
    piece word;
    snprintf(out, bytes, "x");
    for (int i = 0; i < 16 && pick_word(e, &word); i++) {
        size_t length = word.end - word.start;
        if ((isalpha((unsigned char)e->text[word.start]) || e->text[word.start] == '_') &&
            memchr(e->text + word.start, '.', length) == NULL && length < bytes) {
            memcpy(out, e->text + word.start, length);
            out[length] = '\0';
            return;
        }
    }
}

static void new_expression(editor *e, char *out, size_t bytes)
{
    char x[64];
    char y[64];
    some_name(e, x, sizeof x);
    some_name(e, y, sizeof y);
    const char *number = new_number(e->r);
    switch (draw(e->r, 18)) {
    case 0: snprintf(out, bytes, "%s if %s > %s else %s", x, y, number, y); break;
    case 1: snprintf(out, bytes, "[%s, %s]", x, number); break;
    case 2: snprintf(out, bytes, "(%s, %s)", x, y); break;
    case 3: snprintf(out, bytes, "%s[%s]", x, number); break;
    case 4: snprintf(out, bytes, "%s[%s:%s]", x, number, y); break;
    case 5: snprintf(out, bytes, "%s[%s, :]", x, y); break;
    case 6: snprintf(out, bytes, "-%s", x); break;
    case 7: snprintf(out, bytes, "not %s", x); break;
    case 8: snprintf(out, bytes, "%s < %s <= %s", x, number, y); break;
    case 9: snprintf(out, bytes, "%s and %s or %s", x, y, number); break;
    case 10: snprintf(out, bytes, "pl.cast(%s, %s)", x, new_path(e->r)); break;
    case 11: snprintf(out, bytes, "%s.shape[%s]", x, number); break;
    case 12: snprintf(out, bytes, "'%s'", x); break;
    case 13: snprintf(out, bytes, "*%s", x); break;
    case 14: snprintf(out, bytes, "%s(%s, %s)", new_path(e->r), x, y); break;
    case 15: snprintf(out, bytes, "%s %s %s", x, new_operator(e->r), number); break;
    case 16: snprintf(out, bytes, "%s", number); break;
    default: snprintf(out, bytes, "%s", x); break;
    }
}

static void exchange_argument(editor *e)
{
    piece old;
    piece other;
    if (!pick_argument(e, &old))
        return;
    if (draw(e->r, 2) == 0 && pick_argument(e, &other)) {
        size_t length;
        const char *copy = copy_of(e, other, &length);
        (void)replace(e, old, copy, length);
        return;
    }
    char expression[512];
    new_expression(e, expression, sizeof expression);
    replace_word(e, old, expression);
}

static void drop_argument(editor *e)
{
    piece old;
    if (!pick_argument(e, &old))
        return;
    if (old.end < e->size && e->text[old.end] == ',')
        old.end++;
    (void)replace(e, old, "", 0);
}

static void double_argument(editor *e)
{
    piece old;
    if (!pick_argument(e, &old))
        return;
    char copy[1024];
    int length =
        snprintf(copy, sizeof copy, "%.*s, ", (int)(old.end - old.start), e->text + old.start);
    if (length > 0 && (size_t)length < sizeof copy)
        (void)replace(e, (piece){old.start, old.start}, copy, (size_t)length);
}

/* ---- blocks ---- */

static size_t line_end(const char *text, size_t size, size_t start)
{
    while (start < size && text[start] != '\n')
        start++;
    return start < size ? start + 1 : size;
}

static size_t indentation(const char *text, size_t size, size_t start)
{
    size_t n = 0;
    while (start + n < size && text[start + n] == ' ')
        n++;
    return n;
}

/* Each statement with all lines that are indented under it. */
static void find_blocks(const char *text, size_t size, size_t least_indent, pieces *all)
{
    all->count = 0;
    for (size_t start = 0; start < size; start = line_end(text, size, start)) {
        size_t indent = indentation(text, size, start);
        size_t end = line_end(text, size, start);
        while (end < size && text[end] != '\n' && indentation(text, size, end) > indent)
            end = line_end(text, size, end);
        if (indent >= least_indent && text[start + indent] != '\n')
            add_piece(all, start, end);
    }
}

static bool pick_block(random_bits *r, const char *text, size_t size, piece *block)
{
    static pieces all;
    find_blocks(text, size, draw(r, 16) == 0 ? 0 : 4, &all);
    if (all.count == 0)
        return false;
    *block = all.items[draw(r, all.count)];
    return true;
}

/* The block, moved to another indentation, behind a line of its own when `header` is not NULL. */
static size_t indented_copy(const char *text, piece block, size_t indent, const char *header,
                            char *out, size_t most)
{
    size_t size = 0;
    size_t old = indentation(text, block.end, block.start);
    if (header != NULL) {
        int n = snprintf(out, most, "%*s%s:\n", (int)indent, "", header);
        size = n < 0 || (size_t)n >= most ? 0 : (size_t)n;
        indent += 4;
    }
    for (size_t at = block.start; at < block.end;) {
        size_t end = line_end(text, block.end, at);
        size_t own = indentation(text, block.end, at);
        size_t now = own < old ? indent : own - old + indent;
        size_t start = at + own;
        if (size + now + (end - start) >= most)
            return size;
        memset(out + size, ' ', now);
        memcpy(out + size + now, text + start, end - start);
        size += now + (end - start);
        at = end;
    }
    return size;
}

static char block_buffer[1 << 16];

static void move_block(editor *e)
{
    piece from;
    piece to;
    if (!pick_block(e->r, e->text, e->size, &from) || !pick_block(e->r, e->text, e->size, &to))
        return;
    size_t indent = indentation(e->text, e->size, to.start);
    size_t length = indented_copy(e->text, from, indent, NULL, block_buffer, sizeof block_buffer);
    size_t at = draw(e->r, 2) == 0 ? to.start : to.end;
    (void)replace(e, (piece){at, draw(e->r, 4) == 0 ? to.end : at}, block_buffer, length);
}

static void drop_block(editor *e)
{
    piece block;
    if (pick_block(e->r, e->text, e->size, &block))
        (void)replace(e, block, "", 0);
}

static void wrap_block(editor *e)
{
    char x[64];
    char y[64];
    char header[256];
    piece block;
    if (!pick_block(e->r, e->text, e->size, &block))
        return;
    some_name(e, x, sizeof x);
    some_name(e, y, sizeof y);
    switch (draw(e->r, 9)) {
    case 0: snprintf(header, sizeof header, "if %s > %s", x, new_number(e->r)); break;
    case 1: snprintf(header, sizeof header, "while %s", x); break;
    case 2: snprintf(header, sizeof header, "for i in pl.range(%s)", x); break;
    case 3:
        snprintf(header, sizeof header, "for %s in pl.range(%s, %s)", x, y, new_number(e->r));
        break;
    case 4:
        snprintf(header, sizeof header, "for i, (%s,) in pl.range(3, init_values=(%s,))", x, y);
        break;
    case 5: snprintf(header, sizeof header, "for i in pl.unroll(%s)", new_number(e->r)); break;
    case 6:
        snprintf(header, sizeof header, "for (%s,) in pl.while_(init_values=(%s,))", x, y);
        break;
    case 7: snprintf(header, sizeof header, "with pl.at(%s)", x); break;
    default: snprintf(header, sizeof header, "for i in pl.parallel(0, %s)", x); break;
    }
    size_t indent = indentation(e->text, e->size, block.start);
    size_t length =
        indented_copy(e->text, block, indent, header, block_buffer, sizeof block_buffer);
    (void)replace(e, block, block_buffer, length);
}

/* A call of an operation as its signature wants it, with names that the text has. */
static void new_operation(editor *e, char *out, size_t bytes)
{
    const op_def *op = op_get((op_id)draw(e->r, OP_COUNT));
    char x[64];
    some_name(e, x, sizeof x);
    size_t n = (size_t)snprintf(out, bytes, "%s = %s(", x, op->spellings[0]);
    for (int32_t i = 0; i < op->param_count && n + 128 < bytes; i++) {
        const op_param *p = &op->params[i];
        if (p->default_text != NULL && draw(e->r, 3) != 0)
            continue;
        char value[192];
        some_name(e, x, sizeof x);
        switch (p->kind) {
        case OPERAND_OFFSETS:
        case OPERAND_INDICES:
        case OPERAND_VALID: snprintf(value, sizeof value, "[%s, 0]", x); break;
        case OPERAND_EXTENTS:
        case OPERAND_SHAPE:
        case OPERAND_INT_OR_SHAPE: snprintf(value, sizeof value, "[4, 8]"); break;
        case OPERAND_DTYPE: snprintf(value, sizeof value, "pl.FP32"); break;
        case OPERAND_BOOL: snprintf(value, sizeof value, "True"); break;
        default:
            if (draw(e->r, 4) == 0)
                new_expression(e, value, sizeof value);
            else
                snprintf(value, sizeof value, "%s", x);
            break;
        }
        bool named = p->keyword_only || p->default_text != NULL || draw(e->r, 8) == 0;
        n += (size_t)snprintf(out + n, bytes - n, "%s%s%s, ", named ? p->name : "",
                              named ? "=" : "", value);
        if (n >= bytes)
            break;
    }
    n = n < bytes - 2 ? n : bytes - 3;
    snprintf(out + n, bytes - n, ")\n");
}

static void new_statement(editor *e, char *out, size_t bytes)
{
    static const char *const words[] = {"break\n", "continue\n", "pass\n", "return\n"};
    char x[64];
    char value[512];
    some_name(e, x, sizeof x);
    new_expression(e, value, sizeof value);
    switch (draw(e->r, 8)) {
    case 0: snprintf(out, bytes, "%s", PICK(e->r, words)); break;
    case 1: snprintf(out, bytes, "%s = %s\n", x, value); break;
    case 2: snprintf(out, bytes, "%s += %s\n", x, value); break;
    case 3: snprintf(out, bytes, "return %s\n", value); break;
    case 4: snprintf(out, bytes, "%s[%s] = %s\n", x, new_number(e->r), value); break;
    default: new_operation(e, out, bytes); break;
    }
}

static void insert_statement(editor *e)
{
    piece block;
    char line[2048];
    if (!pick_block(e->r, e->text, e->size, &block))
        return;
    size_t indent = indentation(e->text, e->size, block.start);
    memset(line, ' ', indent < 64 ? indent : 64);
    indent = indent < 64 ? indent : 64;
    new_statement(e, line + indent, sizeof line - indent);
    size_t at = draw(e->r, 2) == 0 ? block.start : block.end;
    (void)replace(e, (piece){at, at}, line, strlen(line));
}

/* ---- the mutations ---- */

size_t mutate_script(random_bits *r, char *text, size_t size, size_t most)
{
    static void (*const mutations[])(editor *) = {
        exchange_word, exchange_word,    exchange_argument, exchange_argument,
        drop_argument, move_block,       double_argument,   drop_block,
        wrap_block,    insert_statement, insert_statement,
    };
    editor e = {r, text, size, most};
    PICK(r, mutations)(&e);
    return e.size;
}

size_t cross_scripts(random_bits *r, const char *text, size_t size, const char *other,
                     size_t other_size, char *out, size_t most)
{
    piece from;
    piece to;
    if (size > most)
        return 0;
    memcpy(out, text, size);
    if (!pick_block(r, other, other_size, &from) || !pick_block(r, text, size, &to))
        return size;
    size_t indent = indentation(text, size, to.start);
    size_t length = indented_copy(other, from, indent, NULL, block_buffer, sizeof block_buffer);
    editor e = {r, out, size, most};
    (void)replace(&e, (piece){to.start, draw(r, 2) == 0 ? to.start : to.end}, block_buffer, length);
    return e.size;
}
