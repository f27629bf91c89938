package chattemplate

import (
	"strconv"
	"strings"
)

// node is a statement of a template.
type node struct {
	kind string // text, print, if, for, set
	text string // of text; the variable of for and set
	attr string // of set, when a member of a namespace is set
	expr *expr
	body []node
	// other is what else does: elif is an if inside it.
	other []node
}

type parser struct{ pieces []piece }

// body reads statements up to a tag that closes or continues the enclosing one, and returns that tag.
func (p *parser) body(depth int) ([]node, string, error) {
	if depth > maxDepth {
		return nil, "", notSupported("its tags are nested too deep")
	}
	var nodes []node
	for len(p.pieces) > 0 {
		at := p.pieces[0]
		p.pieces = p.pieces[1:]
		if at.kind == 't' {
			nodes = append(nodes, node{kind: "text", text: at.text})
			continue
		}
		if at.kind == '{' {
			nodes = append(nodes, node{kind: "print", expr: parseLater(at.text)})
			continue
		}
		word, rest, _ := strings.Cut(at.text, " ")
		switch word {
		case "endif", "endfor", "else", "elif":
			return nodes, at.text, nil
		}
		n, err := p.statement(word, rest, depth)
		if err != nil {
			return nil, "", err
		}
		nodes = append(nodes, n)
	}
	return nodes, "", nil
}

func (p *parser) statement(word, rest string, depth int) (node, error) {
	switch word {
	case "if":
		return p.branch(rest, depth)
	case "for":
		return p.loop(rest, depth)
	case "set":
		return parseSet(rest)
	default:
		return node{}, notSupported("tag %q is not known", word)
	}
}

func (p *parser) branch(condition string, depth int) (node, error) {
	n := node{kind: "if", expr: parseLater(condition)}
	var (
		end string
		err error
	)
	if n.body, end, err = p.body(depth + 1); err != nil {
		return node{}, err
	}
	if rest, ok := strings.CutPrefix(end, "elif "); ok {
		inner, err := p.branch(rest, depth+1)
		n.other = []node{inner}
		return n, err
	}
	if end == "else" {
		if n.other, end, err = p.body(depth + 1); err != nil {
			return node{}, err
		}
	}
	if end != "endif" {
		return node{}, notSupported("an if is not closed")
	}
	return n, nil
}

func (p *parser) loop(rest string, depth int) (node, error) {
	name, list, ok := strings.Cut(rest, " in ")
	name = strings.TrimSpace(name)
	if !ok || !isName(name) {
		return node{}, notSupported("a for has no single variable")
	}
	n := node{kind: "for", text: name, expr: parseLater(list)}
	var (
		end string
		err error
	)
	if n.body, end, err = p.body(depth + 1); err != nil {
		return node{}, err
	}
	if end != "endfor" {
		return node{}, notSupported("a for is not closed")
	}
	return n, nil
}

func parseSet(rest string) (node, error) {
	name, value, ok := strings.Cut(rest, "=")
	name, attr, _ := strings.Cut(strings.TrimSpace(name), ".")
	if !ok || !isName(name) || attr != "" && !isName(attr) {
		return node{}, notSupported("a set has no single variable and value")
	}
	return node{kind: "set", text: name, attr: attr, expr: parseLater(value)}, nil
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// lexeme is a word of an expression. Kind n is a name, s a text, i a number, o an operator.
type lexeme struct {
	kind byte
	text string
}

var operators = []string{"==", "!=", "<=", ">=", "(", ")", "[", "]", ".", ",", ":", "|", "+", "-", "~", "%", "<", ">", "="}

func lex(text string) ([]lexeme, error) {
	var words []lexeme
	for {
		text = strings.TrimLeft(text, " \t\n\r")
		if text == "" {
			return words, nil
		}
		word, rest, err := lexOne(text)
		if err != nil {
			return nil, err
		}
		words, text = append(words, word), rest
	}
}

func lexOne(text string) (lexeme, string, error) {
	c := text[0]
	if c == '\'' || c == '"' {
		return lexText(text)
	}
	n := 0
	for n < len(text) && (isName(text[n:n+1]) || n > 0 && text[n] >= '0' && text[n] <= '9') {
		n++
	}
	if n > 0 {
		return lexeme{'n', text[:n]}, text[n:], nil
	}
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n > 0 {
		return lexeme{'i', text[:n]}, text[n:], nil
	}
	for _, op := range operators {
		if strings.HasPrefix(text, op) {
			return lexeme{'o', op}, text[len(op):], nil
		}
	}
	return lexeme{}, "", notSupported("an expression holds %s", strconv.QuoteRune(rune(c)))
}

func lexText(text string) (lexeme, string, error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			return lexeme{'s', b.String()}, text[i+1:], nil
		case c != '\\':
			b.WriteByte(c)
		default:
			i++
			if i == len(text) {
				continue
			}
			e, known := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"'}[text[i]]
			if !known {
				return lexeme{}, "", notSupported("a text has an unknown escape")
			}
			b.WriteByte(e)
		}
	}
	return lexeme{}, "", notSupported("a text is not closed")
}
