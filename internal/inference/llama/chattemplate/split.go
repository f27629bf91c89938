package chattemplate

import "strings"

// piece is a stretch of a template: text, the inside of {{ }}, or the inside of {% %}.
type piece struct {
	kind byte // 't', '{' or '%'
	text string
}

// split cuts a template into pieces and applies its rules for white space: a minus sign next to a tag takes all of it
// away; a tag alone on its line takes its line break and what stands before it, but an expression does not.
func split(text string) ([]piece, error) {
	var pieces []piece
	lineStart := true
	for text != "" {
		open := nextOpen(text)
		if open < 0 {
			return append(pieces, piece{'t', text}), nil
		}
		kind := text[open+1]
		before, inside := text[:open], text[open+2:]
		closing := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[kind]
		end := closeOf(inside, closing, kind)
		if end < 0 {
			return nil, notSupported("a tag is not closed")
		}
		after := inside[end+2:]
		inside = inside[:end]
		taken := len(after)
		before, inside, after = trim(before, inside, after, kind, lineStart)
		// A tag begins a line if the one before took the line break in front of it.
		taken -= len(after)
		lineStart = taken > 0 && text[len(text)-len(after)-1] == '\n'
		if before != "" {
			pieces = append(pieces, piece{'t', before})
		}
		if kind != '#' {
			pieces = append(pieces, piece{kind, strings.TrimSpace(inside)})
		}
		text = after
	}
	return pieces, nil
}

func nextOpen(text string) int {
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '{' && (text[i+1] == '{' || text[i+1] == '%' || text[i+1] == '#') {
			return i
		}
	}
	return -1
}

// closeOf finds the end of a tag outside of its quoted texts. A comment has none.
func closeOf(inside, closing string, kind byte) int {
	quote := byte(0)
	for i := 0; i < len(inside); i++ {
		switch c := inside[i]; {
		case kind == '#':
			if strings.HasPrefix(inside[i:], closing) {
				return i
			}
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && strings.HasPrefix(inside[i:], closing):
			return i
		}
	}
	return -1
}

func trim(before, inside, after string, kind byte, lineStart bool) (b, i, a string) {
	const space = " \t\n\r\v\f"
	if rest, ok := strings.CutPrefix(inside, "-"); ok {
		inside, before = rest, strings.TrimRight(before, space)
	} else if kind != '{' {
		inside = strings.TrimPrefix(inside, "+")
		line := strings.TrimRight(before, " \t")
		if strings.HasSuffix(line, "\n") || line == "" && lineStart {
			before = line
		}
	}
	if rest, ok := strings.CutSuffix(inside, "-"); ok {
		inside, after = rest, strings.TrimLeft(after, space)
	} else if kind != '{' {
		after = strings.TrimPrefix(after, "\n")
	}
	return before, inside, after
}
