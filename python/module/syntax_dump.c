/* The syntax tree as text: for the tests of ast_import.c, and for a developer who wonders what the
 * front end was given. One statement per line, nested blocks indented; expressions are written as
 * calls of their kind. Places are shown where a diagnostic would use them: "line:column-column" of
 * statements, parameters, names and keywords.
 *
 *     def f 3:0-5
 *       param x 3:6-7 : name(pl 3:9-11).Tensor
 *       return 4:4-12 = binary(+, name(x 4:11-12), int(1)) */
#include "core.h"

static void dump_expr(text *out, const syntax_expr *e);

static void dump_span(text *out, pypto_span span)
{
    text_printf(out, "%d:%d-", span.line, span.column);
    if (span.end_line != span.line)
        text_printf(out, "%d:", span.end_line);
    text_printf(out, "%d", span.end_column);
}

static void dump_list(text *out, const char *open, const syntax_exprs *items, const char *close)
{
    text_add(out, open);
    for (int64_t i = 0; i < items->count; i++) {
        text_add(out, i == 0 ? "" : ", ");
        dump_expr(out, items->items[i]);
    }
    text_add(out, close);
}

static void dump_call(text *out, const syntax_expr *e)
{
    dump_expr(out, e->a);
    dump_list(out, "(", &e->items, "");
    for (int64_t i = 0; i < e->keywords.count; i++) {
        const syntax_keyword *k = &e->keywords.items[i];
        text_add(out, i + e->items.count == 0 ? "" : ", ");
        text_add(out, k->name == NULL ? "**" : k->name);
        text_add(out, " ");
        dump_span(out, k->span);
        text_add(out, "=");
        dump_expr(out, k->value);
    }
    text_add(out, ")");
}

static void dump_compare(text *out, const syntax_expr *e)
{
    text_add(out, "compare(");
    dump_expr(out, e->a);
    for (int64_t i = 0; i < e->items.count; i++) {
        text_printf(out, " %s ", e->texts.items[i]);
        dump_expr(out, e->items.items[i]);
    }
    text_add(out, ")");
}

/* kind(x, y, z), with the operands that are there */
static void dump_operands(text *out, const char *kind, const char *operator_, const syntax_expr *e)
{
    const syntax_expr *operands[] = {e->a, e->b, e->c};
    text_printf(out, "%s(%s", kind, operator_);
    for (int i = 0; i < 3; i++) {
        if (operands[i] == NULL && e->kind != SYNTAX_SLICE)
            continue;
        text_add(out, i == 0 && operator_[0] == 0 ? "" : ", ");
        dump_expr(out, operands[i]);
    }
    text_add(out, ")");
}

static void dump_expr(text *out, const syntax_expr *e)
{
    if (e == NULL) {
        text_add(out, "-");
        return;
    }
    switch (e->kind) {
    case SYNTAX_NAME:
        text_printf(out, "name(%s ", e->text);
        dump_span(out, e->span);
        text_add(out, ")");
        break;
    case SYNTAX_INT:
        text_printf(out,
                    e->overflow      ? "int(too large)"
                    : e->is_unsigned ? "int(%llu)"
                                     : "int(%lld)",
                    (long long)e->integer);
        break;
    case SYNTAX_FLOAT: text_printf(out, "float(%.17g)", e->real); break;
    case SYNTAX_BOOL: text_add(out, e->integer ? "bool(true)" : "bool(false)"); break;
    case SYNTAX_NONE: text_add(out, "none"); break;
    case SYNTAX_STRING:
        text_add(out, "string(");
        text_quoted(out, e->text);
        text_add(out, ")");
        break;
    case SYNTAX_ATTRIBUTE:
        dump_expr(out, e->a);
        text_printf(out, ".%s", e->text);
        break;
    case SYNTAX_CALL: dump_call(out, e); break;
    case SYNTAX_SUBSCRIPT:
        dump_expr(out, e->a);
        dump_list(out, "[", &e->items, "]");
        break;
    case SYNTAX_SLICE: dump_operands(out, "slice", "", e); break;
    case SYNTAX_TUPLE: dump_list(out, "tuple(", &e->items, ")"); break;
    case SYNTAX_LIST: dump_list(out, "list(", &e->items, ")"); break;
    case SYNTAX_UNARY: dump_operands(out, "unary", e->text, e); break;
    case SYNTAX_BINARY: dump_operands(out, "binary", e->text, e); break;
    case SYNTAX_COMPARE: dump_compare(out, e); break;
    case SYNTAX_BOOLOP:
        text_add(out, e->text);
        dump_list(out, "(", &e->items, ")");
        break;
    case SYNTAX_IFEXP: dump_operands(out, "ifexp", "", e); break;
    case SYNTAX_STARRED: dump_operands(out, "starred", "", e); break;
    case SYNTAX_COMPREHENSION: dump_operands(out, "comprehension", "", e); break;
    case SYNTAX_OTHER: text_printf(out, "other(%s)", e->text); break;
    }
}

static void dump_block(text *out, const syntax_block *block, int depth);

static void dump_labelled(text *out, const char *label, const syntax_expr *e)
{
    if (e == NULL)
        return;
    text_add(out, label);
    dump_expr(out, e);
}

static void dump_stmt(text *out, const syntax_stmt *s, int depth)
{
    static const char *const names[] = {
        [SYNTAX_ASSIGN] = "assign",
        [SYNTAX_ANNOTATED] = "annotated",
        [SYNTAX_AUGMENTED] = "augmented",
        [SYNTAX_EXPR] = "expr",
        [SYNTAX_FOR] = "for",
        [SYNTAX_WHILE] = "while",
        [SYNTAX_IF] = "if",
        [SYNTAX_WITH] = "with",
        [SYNTAX_RETURN] = "return",
        [SYNTAX_BREAK] = "break",
        [SYNTAX_CONTINUE] = "continue",
        [SYNTAX_PASS] = "pass",
        [SYNTAX_STMT_OTHER] = "other",
    };
    text_printf(out, "%*s%s ", 2 * depth, "", names[s->kind]);
    dump_span(out, s->span);
    dump_labelled(out, " ", s->target);
    dump_labelled(out, " : ", s->annotation);
    if (s->text != NULL)
        text_printf(out, " %s", s->text);
    dump_labelled(out, " = ", s->value);
    if (s->kind == SYNTAX_WITH)
        dump_list(out, " (", &s->items, ")");
    text_add(out, "\n");
    dump_block(out, &s->body, depth + 1);
    if (s->orelse.count > 0) {
        text_printf(out, "%*selse\n", 2 * depth, "");
        dump_block(out, &s->orelse, depth + 1);
    }
}

static void dump_block(text *out, const syntax_block *block, int depth)
{
    for (int64_t i = 0; i < block->count; i++)
        dump_stmt(out, block->items[i], depth);
}

void syntax_dump(text *out, const syntax_function *f)
{
    text_printf(out, "def %s ", f->name);
    dump_span(out, f->span);
    text_add(out, "\n");
    for (int64_t i = 0; i < f->params.count; i++) {
        const syntax_param *p = &f->params.items[i];
        text_printf(out, "  param %s ", p->name);
        dump_span(out, p->span);
        dump_labelled(out, " : ", p->annotation);
        dump_labelled(out, " = ", p->fallback);
        text_add(out, "\n");
    }
    for (int64_t i = 0; i < f->refusals.count; i++) {
        text_printf(out, "  refused %s ", f->refusals.items[i].what);
        dump_span(out, f->refusals.items[i].span);
        text_add(out, "\n");
    }
    if (f->returns != NULL) {
        dump_labelled(out, "  returns ", f->returns);
        text_add(out, "\n");
    }
    dump_block(out, &f->body, 1);
}
