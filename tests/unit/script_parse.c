/* A parser for the part of Python that DSL modules are written in; see script.h.
 *
 * Two steps: tokens, with indentation turned into INDENT and DEDENT as Python does, then recursive
 * descent, one function per level of precedence. Spans are those of Python's `ast`: lines from 1,
 * columns in bytes from 0, ends exclusive.
 *
 * The fuzzer sends arbitrary text through here, so every loop ends at TOKEN_END, and nesting has the
 * limit that Python's parser has. */
#include "script_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef enum token_kind {
    TOKEN_NAME,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_OP,
    TOKEN_NEWLINE,
    TOKEN_INDENT,
    TOKEN_DEDENT,
    TOKEN_END
} token_kind;

typedef struct token {
    token_kind kind;
    const char *text;
    pypto_span span;
} token;

typedef struct parser {
    arena *a;
    const char *file;
    const char *source;
    VEC(token) tokens;
    int64_t at;
    int32_t depth; /* of expressions and blocks */
    const script_reader *reader;
} parser;

#define MOST_INDENTS 100 /* as Python */
#define MOST_NESTING 200

/* ---- tokens ---- */

static void __attribute__((noreturn)) give_up(const parser *p, int32_t line, const char *what)
{
    script_give_up(p->reader,
                   arena_printf(p->a, "%s:%d: the test's script parser %s", p->file, line, what));
}

/* Around whatever can nest; leave() at the end. */
static void enter(parser *p)
{
    if (++p->depth > MOST_NESTING)
        give_up(p, p->tokens.items[p->at].span.line, "met too much nesting");
}

static void leave(parser *p)
{
    p->depth--;
}

static void add_token(parser *p, token_kind kind, const char *start, int64_t length, int32_t line,
                      int64_t column)
{
    token t = {kind,
               arena_strndup(p->a, start, length),
               {p->file, line, (int32_t)column, line, (int32_t)(column + length)}};
    vec_push(p->a, &p->tokens, t);
}

static int64_t operator_length(const char *s)
{
    static const char *const longs[] = {"**=", "//=", ">>=", "<<=", "...", "**", "//", "<<",
                                        ">>",  "<=",  ">=",  "==",  "!=",  "->", "+=", "-=",
                                        "*=",  "/=",  "%=",  "&=",  "|=",  "^="};
    for (size_t i = 0; i < sizeof longs / sizeof longs[0]; i++) {
        if (strncmp(s, longs[i], strlen(longs[i])) == 0)
            return (int64_t)strlen(longs[i]);
    }
    return 1;
}

/* One token that does not begin with a blank; returns its length. */
static int64_t scan_token(parser *p, const char *s, int32_t line, int64_t column)
{
    int64_t n = 0;
    if (isalpha((unsigned char)*s) || *s == '_') {
        while (isalnum((unsigned char)s[n]) || s[n] == '_')
            n++;
        add_token(p, TOKEN_NAME, s, n, line, column);
    } else if (isdigit((unsigned char)*s)) {
        bool real = false;
        while (isalnum((unsigned char)s[n]) || s[n] == '.' || s[n] == '_' ||
               ((s[n] == '-' || s[n] == '+') && s[n - 1] == 'e')) {
            real = real || s[n] == '.' || s[n] == 'e';
            n++;
        }
        add_token(p, real ? TOKEN_FLOAT : TOKEN_INT, s, n, line, column);
    } else if (*s == '"' || *s == '\'') {
        n = 1;
        while (s[n] != *s && s[n] != '\0' && s[n] != '\n')
            n++;
        if (s[n] != *s)
            give_up(p, line, "met a string without an end");
        n++;
        add_token(p, TOKEN_STRING, s, n, line, column);
    } else {
        n = operator_length(s);
        add_token(p, TOKEN_OP, s, n, line, column);
    }
    return n;
}

static int64_t change_indent(parser *p, int64_t *stack, int64_t depth, int64_t indent, int32_t line)
{
    if (indent > stack[depth]) {
        if (depth + 1 == MOST_INDENTS)
            give_up(p, line, "met too much indentation");
        stack[++depth] = indent;
        add_token(p, TOKEN_INDENT, "", 0, line, indent);
    }
    while (indent < stack[depth]) {
        depth--;
        add_token(p, TOKEN_DEDENT, "", 0, line, indent);
    }
    return depth;
}

static void tokenize(parser *p)
{
    int64_t stack[MOST_INDENTS] = {0};
    int64_t depth = 0;
    int brackets = 0;
    int32_t line = 1;
    for (const char *s = p->source; *s != '\0'; line++) {
        const char *end = strchr(s, '\n');
        end = end == NULL ? s + strlen(s) : end;
        const char *at = s + strspn(s, " ");
        bool blank = at >= end || *at == '#';
        if (!blank && brackets == 0)
            depth = change_indent(p, stack, depth, at - s, line);
        while (at < end && *at != '#') {
            int64_t n = *at == ' ' ? 1 : scan_token(p, at, line, at - s);
            brackets +=
                (n == 1 && strchr("([{", *at) != NULL) - (n == 1 && strchr(")]}", *at) != NULL);
            at += n;
        }
        if (!blank && brackets == 0)
            add_token(p, TOKEN_NEWLINE, "", 0, line, end - s);
        s = *end == '\n' ? end + 1 : end;
    }
    (void)change_indent(p, stack, depth, 0, line);
    add_token(p, TOKEN_END, "", 0, line, 0);
}

/* ---- helpers of the descent ---- */

static const token *peek(const parser *p)
{
    return &p->tokens.items[p->at];
}

static bool is(const parser *p, const char *word)
{
    const token *t = peek(p);
    return (t->kind == TOKEN_OP || t->kind == TOKEN_NAME) && strcmp(t->text, word) == 0;
}

static bool accept(parser *p, const char *word)
{
    if (!is(p, word))
        return false;
    p->at++;
    return true;
}

static void expect(parser *p, const char *word)
{
    if (!accept(p, word))
        give_up(p, peek(p)->span.line, arena_printf(p->a, "wanted '%s'", word));
}

static void expect_kind(parser *p, token_kind kind)
{
    if (peek(p)->kind != kind)
        give_up(p, peek(p)->span.line, "met something else than it wanted");
    p->at++;
}

static pypto_span up_to_here(const parser *p, pypto_span start)
{
    const pypto_span *last = &p->tokens.items[p->at - 1].span;
    start.end_line = last->end_line;
    start.end_column = last->end_column;
    return start;
}

static syntax_expr *new_expr(parser *p, syntax_expr_kind kind, pypto_span start)
{
    syntax_expr *e = arena_new(p->a, syntax_expr);
    e->kind = kind;
    e->span = up_to_here(p, start);
    return e;
}

/* ---- expressions ---- */

static syntax_expr *parse_expr(parser *p);
static syntax_expr *parse_tuple(parser *p);

static void skip_brackets(parser *p)
{
    for (int depth = 1; depth > 0; p->at++) {
        if (peek(p)->kind == TOKEN_END)
            give_up(p, peek(p)->span.line, "met brackets without an end");
        depth +=
            (is(p, "(") || is(p, "[") || is(p, "{")) - (is(p, ")") || is(p, "]") || is(p, "}"));
    }
}

static syntax_expr *other(parser *p, const char *class_name, pypto_span start)
{
    skip_brackets(p);
    syntax_expr *e = new_expr(p, SYNTAX_OTHER, start);
    e->text = class_name;
    return e;
}

static syntax_expr *parse_number(parser *p)
{
    const token *t = peek(p);
    p->at++;
    syntax_expr *e = new_expr(p, t->kind == TOKEN_INT ? SYNTAX_INT : SYNTAX_FLOAT, t->span);
    errno = 0;
    if (t->kind == TOKEN_INT)
        e->integer = strtoll(t->text, NULL, 0);
    else
        e->real = strtod(t->text, NULL);
    e->is_unsigned = t->kind == TOKEN_INT && errno == ERANGE;
    errno = 0;
    if (e->is_unsigned)
        e->integer = (int64_t)strtoull(t->text, NULL, 0);
    e->overflow = errno == ERANGE;
    return e;
}

static syntax_expr *parse_name(parser *p)
{
    const token *t = peek(p);
    p->at++;
    bool truth = strcmp(t->text, "True") == 0;
    syntax_expr_kind kind = truth || strcmp(t->text, "False") == 0 ? SYNTAX_BOOL
                            : strcmp(t->text, "None") == 0         ? SYNTAX_NONE
                                                                   : SYNTAX_NAME;
    syntax_expr *e = new_expr(p, kind, t->span);
    e->text = t->text;
    e->integer = truth;
    return e;
}

/* ( ... ), or [ ... ] with `close` "]". */
static syntax_expr *parse_brackets(parser *p, const char *close, pypto_span start)
{
    syntax_exprs items = {0};
    bool comma = false;
    while (!is(p, close)) {
        syntax_expr *item = parse_expr(p);
        if (is(p, "for"))
            return other(p, *close == ']' ? "ListComp" : "GeneratorExp", start);
        vec_push(p->a, &items, item);
        comma = accept(p, ",");
        if (!comma)
            break;
    }
    expect(p, close);
    if (*close == ')' && items.count == 1 && !comma)
        return items.items[0];
    syntax_expr *e = new_expr(p, *close == ']' ? SYNTAX_LIST : SYNTAX_TUPLE, start);
    e->items = items;
    return e;
}

static syntax_expr *parse_atom(parser *p)
{
    const token *t = peek(p);
    if (t->kind == TOKEN_INT || t->kind == TOKEN_FLOAT)
        return parse_number(p);
    if (t->kind == TOKEN_NAME)
        return parse_name(p);
    if (t->kind == TOKEN_END)
        give_up(p, t->span.line, "wanted an expression");
    p->at++;
    if (t->kind == TOKEN_STRING) {
        syntax_expr *e = new_expr(p, SYNTAX_STRING, t->span);
        e->text = arena_strndup(p->a, t->text + 1, (int64_t)strlen(t->text) - 2);
        return e;
    }
    if (strcmp(t->text, "(") == 0)
        return parse_brackets(p, ")", t->span);
    if (strcmp(t->text, "[") == 0)
        return parse_brackets(p, "]", t->span);
    if (strcmp(t->text, "{") == 0)
        return other(p, "Dict", t->span);
    give_up(p, t->span.line, "wanted an expression");
}

static void parse_arguments(parser *p, syntax_expr *call)
{
    while (!is(p, ")")) {
        pypto_span start = peek(p)->span;
        bool named = peek(p)->kind == TOKEN_NAME && p->tokens.items[p->at + 1].kind == TOKEN_OP &&
                     strcmp(p->tokens.items[p->at + 1].text, "=") == 0;
        if (named || is(p, "**")) {
            syntax_keyword k = {.name = named ? peek(p)->text : NULL};
            p->at += named ? 2 : 1;
            k.value = parse_expr(p);
            k.span = up_to_here(p, start);
            vec_push(p->a, &call->keywords, k);
        } else {
            vec_push(p->a, &call->items, parse_expr(p));
        }
        if (!accept(p, ","))
            break;
    }
    expect(p, ")");
}

static syntax_expr *parse_index(parser *p)
{
    pypto_span start = peek(p)->span;
    syntax_expr *lower = is(p, ":") ? NULL : parse_expr(p);
    if (!accept(p, ":"))
        return lower;
    syntax_expr *upper = is(p, ":") || is(p, "]") || is(p, ",") ? NULL : parse_expr(p);
    syntax_expr *step = accept(p, ":") && !is(p, "]") && !is(p, ",") ? parse_expr(p) : NULL;
    syntax_expr *e = new_expr(p, SYNTAX_SLICE, start);
    e->a = lower;
    e->b = upper;
    e->c = step;
    return e;
}

static syntax_expr *parse_postfix(parser *p)
{
    pypto_span start = peek(p)->span;
    syntax_expr *e = parse_atom(p);
    for (;;) {
        syntax_expr *outer = arena_new(p->a, syntax_expr);
        outer->a = e;
        if (accept(p, ".")) {
            outer->kind = SYNTAX_ATTRIBUTE;
            outer->text = peek(p)->text;
            expect_kind(p, TOKEN_NAME);
        } else if (accept(p, "(")) {
            outer->kind = SYNTAX_CALL;
            parse_arguments(p, outer);
        } else if (accept(p, "[")) {
            outer->kind = SYNTAX_SUBSCRIPT;
            do {
                if (!is(p, "]"))
                    vec_push(p->a, &outer->items, parse_index(p));
            } while (accept(p, ","));
            expect(p, "]");
        } else {
            return e;
        }
        outer->span = up_to_here(p, start);
        e = outer;
    }
}

static syntax_expr *parse_unary(parser *p)
{
    pypto_span start = peek(p)->span;
    if (is(p, "-") || is(p, "+") || is(p, "~")) {
        const char *op = peek(p)->text;
        p->at++;
        enter(p);
        syntax_expr *operand = parse_unary(p);
        leave(p);
        syntax_expr *e = new_expr(p, SYNTAX_UNARY, start);
        e->text = op;
        e->a = operand;
        return e;
    }
    syntax_expr *e = parse_postfix(p);
    if (!accept(p, "**"))
        return e;
    enter(p);
    syntax_expr *exponent = parse_unary(p);
    leave(p);
    syntax_expr *power = new_expr(p, SYNTAX_BINARY, start);
    power->text = "**";
    power->a = e;
    power->b = exponent;
    return power;
}

static syntax_expr *parse_binary(parser *p, int level)
{
    static const char *const levels[][6] = {{"|"},        {"^"},      {"&"},
                                            {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}};
    if (level == 6)
        return parse_unary(p);
    pypto_span start = peek(p)->span;
    syntax_expr *e = parse_binary(p, level + 1);
    for (;;) {
        const char *op = NULL;
        for (int i = 0; i < 6 && levels[level][i] != NULL; i++)
            op = is(p, levels[level][i]) ? levels[level][i] : op;
        if (op == NULL)
            return e;
        p->at++;
        syntax_expr *right = parse_binary(p, level + 1);
        syntax_expr *outer = new_expr(p, SYNTAX_BINARY, start);
        outer->text = op;
        outer->a = e;
        outer->b = right;
        e = outer;
    }
}

static const char *comparison(parser *p)
{
    static const char *const all[] = {"<", "<=", ">", ">=", "==", "!=", "is", "in"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (accept(p, all[i]))
            return all[i];
    }
    return NULL;
}

static syntax_expr *parse_comparison(parser *p)
{
    pypto_span start = peek(p)->span;
    syntax_expr *first = parse_binary(p, 0);
    const char *op = comparison(p);
    if (op == NULL)
        return first;
    syntax_expr *e = arena_new(p->a, syntax_expr);
    e->kind = SYNTAX_COMPARE;
    e->a = first;
    for (; op != NULL; op = comparison(p)) {
        vec_push(p->a, &e->texts, op);
        vec_push(p->a, &e->items, parse_binary(p, 0));
    }
    e->span = up_to_here(p, start);
    return e;
}

static syntax_expr *parse_not(parser *p)
{
    pypto_span start = peek(p)->span;
    if (!accept(p, "not"))
        return parse_comparison(p);
    enter(p);
    syntax_expr *operand = parse_not(p);
    leave(p);
    syntax_expr *e = new_expr(p, SYNTAX_UNARY, start);
    e->text = "not";
    e->a = operand;
    return e;
}

static syntax_expr *parse_logic(parser *p, const char *op)
{
    bool is_or = strcmp(op, "or") == 0;
    pypto_span start = peek(p)->span;
    syntax_expr *first = is_or ? parse_logic(p, "and") : parse_not(p);
    if (!is(p, op))
        return first;
    syntax_expr *e = arena_new(p->a, syntax_expr);
    e->kind = SYNTAX_BOOLOP;
    e->text = op;
    vec_push(p->a, &e->items, first);
    while (accept(p, op))
        vec_push(p->a, &e->items, is_or ? parse_logic(p, "and") : parse_not(p));
    e->span = up_to_here(p, start);
    return e;
}

static syntax_expr *parse_any(parser *p)
{
    pypto_span start = peek(p)->span;
    if (accept(p, "*")) {
        syntax_expr *inner = parse_expr(p);
        syntax_expr *e = new_expr(p, SYNTAX_STARRED, start);
        e->a = inner;
        return e;
    }
    syntax_expr *e = parse_logic(p, "or");
    if (!accept(p, "if"))
        return e;
    syntax_expr *test = parse_logic(p, "or");
    expect(p, "else");
    syntax_expr *orelse = parse_expr(p);
    syntax_expr *outer = new_expr(p, SYNTAX_IFEXP, start);
    outer->a = e;
    outer->b = test;
    outer->c = orelse;
    return outer;
}

static syntax_expr *parse_expr(parser *p)
{
    enter(p);
    syntax_expr *e = parse_any(p);
    leave(p);
    return e;
}

static syntax_expr *parse_tuple(parser *p)
{
    pypto_span start = peek(p)->span;
    syntax_expr *first = parse_expr(p);
    if (!is(p, ","))
        return first;
    syntax_expr *e = arena_new(p->a, syntax_expr);
    e->kind = SYNTAX_TUPLE;
    vec_push(p->a, &e->items, first);
    while (accept(p, ",")) {
        if (peek(p)->kind != TOKEN_NEWLINE && !is(p, "=") && !is(p, "in"))
            vec_push(p->a, &e->items, parse_expr(p));
    }
    e->span = up_to_here(p, start);
    return e;
}

/* ---- statements ---- */

static void parse_block(parser *p, syntax_block *block);

static bool parse_simple_keyword(parser *p, syntax_stmt *s)
{
    static const struct {
        const char *word;
        syntax_stmt_kind kind;
        const char *class_name;
    } words[] = {
        {"pass", SYNTAX_PASS, NULL},
        {"break", SYNTAX_BREAK, NULL},
        {"continue", SYNTAX_CONTINUE, NULL},
        {"return", SYNTAX_RETURN, NULL},
        {"assert", SYNTAX_STMT_OTHER, "Assert"},
        {"del", SYNTAX_STMT_OTHER, "Delete"},
        {"raise", SYNTAX_STMT_OTHER, "Raise"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!accept(p, words[i].word))
            continue;
        s->kind = words[i].kind;
        s->text = words[i].class_name;
        if (peek(p)->kind != TOKEN_NEWLINE)
            s->value = parse_tuple(p);
        return true;
    }
    return false;
}

static void parse_assignment(parser *p, syntax_stmt *s)
{
    syntax_expr *first = parse_tuple(p);
    s->kind = SYNTAX_EXPR;
    s->value = first;
    if (accept(p, ":")) {
        s->kind = SYNTAX_ANNOTATED;
        s->annotation = parse_expr(p);
        s->value = accept(p, "=") ? parse_tuple(p) : NULL;
        s->target = first;
    } else if (accept(p, "=")) {
        s->kind = SYNTAX_ASSIGN;
        s->target = first;
        s->value = parse_tuple(p);
        if (accept(p, "=")) {
            s->kind = SYNTAX_STMT_OTHER;
            s->text = "Assign";
            (void)parse_tuple(p);
        }
    } else if (peek(p)->kind == TOKEN_OP) {
        const char *op = peek(p)->text;
        if (strlen(op) < 2 || op[strlen(op) - 1] != '=' || strchr("<>=!", op[0]) == op)
            give_up(p, peek(p)->span.line, "wanted the end of the statement");
        s->kind = SYNTAX_AUGMENTED;
        s->text = arena_strndup(p->a, op, (int64_t)strlen(op) - 1);
        s->target = first;
        p->at++;
        s->value = parse_tuple(p);
    }
}

static void parse_if(parser *p, syntax_stmt *s, pypto_span start)
{
    s->kind = SYNTAX_IF;
    s->value = parse_expr(p);
    parse_block(p, &s->body);
    pypto_span here = peek(p)->span;
    if (accept(p, "elif")) {
        syntax_stmt *inner = arena_new(p->a, syntax_stmt);
        enter(p);
        parse_if(p, inner, here);
        leave(p);
        vec_push(p->a, &s->orelse, inner);
    } else if (accept(p, "else")) {
        parse_block(p, &s->orelse);
    }
    s->span = up_to_here(p, start);
}

static void parse_with(parser *p, syntax_stmt *s)
{
    s->kind = SYNTAX_WITH;
    do {
        vec_push(p->a, &s->items, parse_expr(p));
        syntax_expr *name = accept(p, "as") ? parse_postfix(p) : NULL;
        vec_push(p->a, &s->items, name);
    } while (accept(p, ","));
    parse_block(p, &s->body);
}

static syntax_stmt *parse_stmt(parser *p)
{
    syntax_stmt *s = arena_new(p->a, syntax_stmt);
    pypto_span start = peek(p)->span;
    bool compound = true;
    if (accept(p, "if")) {
        parse_if(p, s, start);
    } else if (accept(p, "for")) {
        s->kind = SYNTAX_FOR;
        pypto_span at = peek(p)->span;
        s->target = parse_postfix(p);
        if (is(p, ",")) {
            syntax_expr *tuple = new_expr(p, SYNTAX_TUPLE, at);
            vec_push(p->a, &tuple->items, s->target);
            while (accept(p, ","))
                vec_push(p->a, &tuple->items, parse_postfix(p));
            s->target = tuple;
        }
        expect(p, "in");
        s->value = parse_expr(p);
        parse_block(p, &s->body);
        if (accept(p, "else"))
            parse_block(p, &s->orelse);
    } else if (accept(p, "while")) {
        s->kind = SYNTAX_WHILE;
        s->value = parse_expr(p);
        parse_block(p, &s->body);
    } else if (accept(p, "with")) {
        parse_with(p, s);
    } else {
        compound = false;
        if (!parse_simple_keyword(p, s))
            parse_assignment(p, s);
    }
    s->span = up_to_here(p, start);
    if (!compound)
        expect_kind(p, TOKEN_NEWLINE);
    return s;
}

static void parse_block(parser *p, syntax_block *block)
{
    expect(p, ":");
    if (peek(p)->kind != TOKEN_NEWLINE) {
        enter(p);
        vec_push(p->a, block, parse_stmt(p));
        leave(p);
        return;
    }
    expect_kind(p, TOKEN_NEWLINE);
    expect_kind(p, TOKEN_INDENT);
    enter(p);
    while (peek(p)->kind != TOKEN_DEDENT)
        vec_push(p->a, block, parse_stmt(p));
    leave(p);
    p->at++;
}

static void parse_params(parser *p, syntax_function *f)
{
    while (!is(p, ")")) {
        syntax_param param = {.span = peek(p)->span};
        bool variadic = accept(p, "*");
        param.name = peek(p)->text;
        expect_kind(p, TOKEN_NAME);
        if (accept(p, ":"))
            param.annotation = parse_expr(p);
        param.span = up_to_here(p, param.span);
        if (accept(p, "="))
            param.fallback = parse_expr(p);
        if (variadic) {
            syntax_refusal refusal = {arena_printf(p->a, "*%s", param.name), "name every parameter",
                                      param.span, param.name};
            vec_push(p->a, &f->refusals, refusal);
        } else if (f->refusals.count == 0) {
            vec_push(p->a, &f->params, param);
        }
        if (!accept(p, ","))
            break;
    }
    expect(p, ")");
}

static script_def *parse_def(parser *p, const syntax_exprs *decorators)
{
    script_def *def = arena_new(p->a, script_def);
    syntax_function *f = arena_new(p->a, syntax_function);
    def->syntax = f;
    def->decorators = *decorators;
    pypto_span start = p->tokens.items[p->at - 1].span;
    f->name = peek(p)->text;
    expect_kind(p, TOKEN_NAME);
    expect(p, "(");
    parse_params(p, f);
    f->returns = accept(p, "->") ? parse_expr(p) : NULL;
    f->span = up_to_here(p, start);
    parse_block(p, &f->body);
    return def;
}

/* ---- modules ---- */

static const char *parse_dotted(parser *p)
{
    const char *path = peek(p)->text;
    expect_kind(p, TOKEN_NAME);
    while (accept(p, ".")) {
        path = arena_printf(p->a, "%s.%s", path, peek(p)->text);
        expect_kind(p, TOKEN_NAME);
    }
    return path;
}

static void parse_import(parser *p, bool from, script_imports *imports)
{
    const char *module = parse_dotted(p);
    if (from)
        expect(p, "import");
    do {
        script_import i = {.path = module, .name = module};
        if (from) {
            i.name = parse_dotted(p);
            i.path = arena_printf(p->a, "%s.%s", module, i.name);
        }
        if (accept(p, "as"))
            i.name = parse_dotted(p);
        vec_push(p->a, imports, i);
    } while (from && accept(p, ","));
    expect_kind(p, TOKEN_NEWLINE);
}

void parse_module(arena *a, const script_reader *reader, const char *file, const char *source,
                  script_statements *statements, script_imports *imports)
{
    parser p = {.a = a, .file = file, .source = source, .reader = reader};
    syntax_exprs decorators = {0};
    tokenize(&p);
    while (peek(&p)->kind != TOKEN_END) {
        if (is(&p, "import") || is(&p, "from")) {
            p.at++;
            parse_import(&p, strcmp(p.tokens.items[p.at - 1].text, "from") == 0, imports);
        } else if (accept(&p, "@")) {
            vec_push(a, &decorators, parse_postfix(&p));
            expect_kind(&p, TOKEN_NEWLINE);
        } else if (accept(&p, "def")) {
            script_statement added = {.def = parse_def(&p, &decorators)};
            vec_push(a, statements, added);
            decorators = (syntax_exprs){0};
        } else {
            script_statement added = {.stmt = parse_stmt(&p)};
            vec_push(a, statements, added);
        }
    }
}
