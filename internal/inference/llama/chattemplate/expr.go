package chattemplate

import (
	"slices"
	"strconv"
)

// expr is an expression. Its operands are args; text is a name, a literal's text or the operator.
type expr struct {
	kind string // bad, text, number, constant, name, list, attr, index, slice, call, filter, test, unary, binary, if
	text string
	args []*expr
	// names are those of a call's named arguments, which are the last ones in args.
	names []string
}

type exprParser struct {
	words []lexeme
	depth int
}

// parseLater keeps the error of an expression until it is evaluated: templates are full of branches, for tools and images,
// that a plain conversation never takes.
func parseLater(text string) *expr {
	e, err := parseExpr(text)
	if err != nil {
		return &expr{kind: "bad", text: err.Error()}
	}
	return e
}

func parseExpr(text string) (*expr, error) {
	words, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &exprParser{words: words}
	e, err := p.conditional()
	if err == nil && len(p.words) > 0 {
		err = notSupported("an expression goes on with %q", p.words[0].text)
	}
	return e, err
}

func (p *exprParser) take(kind byte, texts ...string) bool {
	if len(p.words) == 0 || p.words[0].kind != kind || !slices.Contains(texts, p.words[0].text) {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *exprParser) want(op string) error {
	if !p.take('o', op) {
		return notSupported("an expression lacks %q", op)
	}
	return nil
}

// conditional is the loosest binding: a if b else c.
func (p *exprParser) conditional() (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, notSupported("an expression is nested too deep")
	}
	defer func() { p.depth-- }()
	value, err := p.binary(0)
	if err != nil || !p.take('n', "if") {
		return value, err
	}
	condition, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	other := &expr{kind: "constant", text: "undefined"}
	if p.take('n', "else") {
		if other, err = p.conditional(); err != nil {
			return nil, err
		}
	}
	return &expr{kind: "if", args: []*expr{condition, value, other}}, nil
}

// levels are the binary operators from loose to tight. not stands between and and the comparisons.
var levels = [][]lexeme{
	{{'n', "or"}},
	{{'n', "and"}},
	{{'o', "=="}, {'o', "!="}, {'o', "<="}, {'o', ">="}, {'o', "<"}, {'o', ">"}, {'n', "in"}},
	{{'o', "~"}},
	{{'o', "+"}, {'o', "-"}},
	{{'o', "%"}},
}

func (p *exprParser) binary(level int) (*expr, error) {
	if level == len(levels) {
		return p.unary()
	}
	if level == 2 && p.take('n', "not") {
		inner, err := p.binary(level)
		return &expr{kind: "unary", text: "not", args: []*expr{inner}}, err
	}
	left, err := p.binary(level + 1)
	for err == nil {
		op, negated := p.operator(level)
		if op == "" {
			return left, nil
		}
		var right *expr
		right, err = p.binary(level + 1)
		left = &expr{kind: "binary", text: op, args: []*expr{left, right}}
		if negated {
			left = &expr{kind: "unary", text: "not", args: []*expr{left}}
		}
	}
	return nil, err
}

func (p *exprParser) operator(level int) (op string, negated bool) {
	for _, o := range levels[level] {
		if p.take(o.kind, o.text) {
			return o.text, false
		}
	}
	if level == 2 && len(p.words) > 1 && p.words[0] == (lexeme{'n', "not"}) && p.words[1] == (lexeme{'n', "in"}) {
		p.words = p.words[2:]
		return "in", true
	}
	return "", false
}

func (p *exprParser) unary() (*expr, error) {
	if p.take('o', "-") {
		inner, err := p.unary()
		return &expr{kind: "unary", text: "-", args: []*expr{inner}}, err
	}
	e, err := p.primary()
	for err == nil {
		switch {
		case p.take('o', "."):
			e, err = p.attribute(e)
		case p.take('o', "["):
			e, err = p.subscript(e)
		case p.take('o', "("):
			e, err = p.call("call", e)
		case p.take('o', "|"):
			e, err = p.filter(e)
		case p.take('n', "is"):
			e, err = p.test(e)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *exprParser) name() (string, error) {
	if len(p.words) == 0 || p.words[0].kind != 'n' {
		return "", notSupported("an expression lacks a name")
	}
	text := p.words[0].text
	p.words = p.words[1:]
	return text, nil
}

func (p *exprParser) attribute(of *expr) (*expr, error) {
	name, err := p.name()
	return &expr{kind: "attr", text: name, args: []*expr{of}}, err
}

func (p *exprParser) filter(of *expr) (*expr, error) {
	name, err := p.name()
	if err == nil && p.take('o', "(") {
		var e *expr
		if e, err = p.call("filter", of); err == nil {
			e.text = name
		}
		return e, err
	}
	return &expr{kind: "filter", text: name, args: []*expr{of}}, err
}

func (p *exprParser) test(of *expr) (*expr, error) {
	negated := p.take('n', "not")
	name, err := p.name()
	e := &expr{kind: "test", text: name, args: []*expr{of}}
	if negated {
		e = &expr{kind: "unary", text: "not", args: []*expr{e}}
	}
	return e, err
}

// subscript is x[i] or x[from:to:step]; a part that is left out is nil.
func (p *exprParser) subscript(of *expr) (*expr, error) {
	parts := []*expr{of, nil}
	for !p.take('o', "]") {
		if p.take('o', ":") {
			parts = append(parts, nil)
			continue
		}
		e, err := p.conditional()
		if err != nil {
			return nil, err
		}
		if parts[len(parts)-1] != nil {
			return nil, notSupported("an index has too many parts")
		}
		parts[len(parts)-1] = e
	}
	switch {
	case len(parts) == 2 && parts[1] != nil:
		return &expr{kind: "index", args: parts}, nil
	case len(parts) == 3 || len(parts) == 4:
		return &expr{kind: "slice", args: append(parts, nil)[:4]}, nil
	default:
		return nil, notSupported("an index has the wrong number of parts")
	}
}

func (p *exprParser) call(kind string, of *expr) (*expr, error) {
	e := &expr{kind: kind, args: []*expr{of}}
	for !p.take('o', ")") {
		if len(p.words) > 1 && p.words[0].kind == 'n' && p.words[1] == (lexeme{'o', "="}) {
			e.names = append(e.names, p.words[0].text)
			p.words = p.words[2:]
		}
		arg, err := p.conditional()
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, arg)
		if !p.take('o', ",") && (len(p.words) == 0 || p.words[0] != lexeme{'o', ")"}) {
			return nil, notSupported("a call is not closed")
		}
	}
	return e, nil
}

func (p *exprParser) primary() (*expr, error) {
	if len(p.words) == 0 {
		return nil, notSupported("an expression ends too early")
	}
	w := p.words[0]
	p.words = p.words[1:]
	switch {
	case w.kind == 's':
		return &expr{kind: "text", text: w.text}, nil
	case w.kind == 'i':
		if _, err := strconv.ParseInt(w.text, 10, 32); err != nil {
			return nil, notSupported("a number is too large")
		}
		return &expr{kind: "number", text: w.text}, nil
	case w.kind == 'n' && constants[w.text] != "":
		return &expr{kind: "constant", text: constants[w.text]}, nil
	case w.kind == 'n':
		return &expr{kind: "name", text: w.text}, nil
	case w.text == "(":
		e, err := p.conditional()
		if err != nil {
			return nil, err
		}
		return e, p.want(")")
	case w.text == "[":
		e, err := p.list()
		return e, err
	default:
		return nil, notSupported("an expression begins with %q", w.text)
	}
}

func (p *exprParser) list() (*expr, error) {
	e := &expr{kind: "list"}
	for !p.take('o', "]") {
		item, err := p.conditional()
		if err != nil {
			return nil, err
		}
		e.args = append(e.args, item)
		if !p.take('o', ",") && (len(p.words) == 0 || p.words[0] != lexeme{'o', "]"}) {
			return nil, notSupported("a list is not closed")
		}
	}
	return e, nil
}

var constants = map[string]string{"true": "true", "True": "true", "false": "false", "False": "false", "none": "none", "None": "none"}
