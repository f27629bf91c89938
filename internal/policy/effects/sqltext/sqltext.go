// Package sqltext tells from an SQL text what a database would do with it. Only statements, expressions, operators, types
// and functions of a table are reads; what cannot be parsed is the worst.
//
// What the text does not show stays unseen: a view may call functions, and a database may give a user's own function or
// operator the name of a plain one. Give a database account no more than the policy means to allow.
package sqltext

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

// MaxLength bounds a text, in bytes.
const MaxLength = 32 << 10

// maxTokens bounds what may nest in a text. PostgreSQL's parser overflows its stack between 1000 and 2000 levels of
// (SELECT, and every level has one letter run, operator or bracket at least.
const maxTokens = 1000

// maxItems bounds the lists of a result, so that a policy that walks one has a bounded cost.
const maxItems = 256

// Dialects.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
)

// Result is what a text does.
type Result struct {
	Effects effect.Set
	// Parsed tells that every statement is understood as far as the lists go.
	Parsed bool
	// Why tells what makes it more than a read; the first of several reasons.
	Why string
	// Statements are the kinds of all statements, inner ones included, in lower case, each once: select, delete, createtable.
	Statements []string
	// Tables are the names of all relations, as schema.name where a schema is written; names of common table expressions
	// count as well, since where they hide a table depends on the place. A MySQL name in upper case is listed in lower
	// case too.
	Tables []string
}

// Parse judges a text of one or more statements. For any dialect other than Postgres and MySQL, both must call it a read.
func Parse(text, dialect string) Result {
	if why := unusable(text); why != "" {
		return unparsed(why)
	}
	switch dialect {
	case Postgres:
		return postgres(text)
	case MySQL:
		return mysql(text)
	}
	return both(postgres(text), mysql(text))
}

// Warm makes PostgreSQL's parser ready. The first parse compiles it, which takes a second or more.
func Warm() error {
	_, err := pg.parse("SELECT 1")
	return err
}

func unparsed(why string) Result { return Result{Effects: effect.Worst, Why: why} }

// unusable refuses what parsers cut short, overflow on, or read in another encoding.
func unusable(text string) string {
	switch {
	case len(text) > MaxLength:
		return "the text is too long"
	case strings.IndexByte(text, 0) >= 0:
		return "the text holds a NUL"
	case !utf8.ValidString(text):
		return "the text is not UTF-8"
	case tokens(text) > maxTokens:
		return "the text holds too many words and operators"
	}
	return ""
}

// tokens counts runs of letters, operators and brackets, also inside strings and comments: whether those are strings is
// what only the parser knows.
func tokens(text string) int {
	n, inRun := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf
		if letter && !inRun || strings.IndexByte("+-*/<>=~!@#%^&|?:([.", c) >= 0 {
			n++
		}
		inRun = letter
	}
	return n
}

// both is the worse of two readings of one text.
func both(a, b Result) Result {
	c := collector{set: a.Effects, why: a.Why, statements: slices.Concat(a.Statements, b.Statements), tables: slices.Concat(a.Tables, b.Tables)}
	c.raise(b.Effects, b.Why)
	c.unknown = !a.Parsed || !b.Parsed
	return c.result()
}

// collector gathers the result of one reading.
type collector struct {
	set        effect.Set
	why        string
	unknown    bool
	statements []string
	tables     []string
	calls      attributes
}

// raise adds effects and keeps the first reason.
func (c *collector) raise(set effect.Set, why string) {
	c.set |= set
	if c.why == "" && !set.IsRead() {
		c.why = why
	}
}

// fail marks what is not in a table.
func (c *collector) fail(why string) {
	c.raise(effect.Worst, why)
	c.unknown = true
}

// explain judges the statement that an EXPLAIN holds. Without ANALYZE it is planned only, which still runs functions.
func (c *collector) explain(inner collector, run bool) {
	c.statements = append(c.statements, inner.statements...)
	c.tables = append(c.tables, inner.tables...)
	c.calls.add(inner.calls)
	planned := !run && !inner.unknown
	for _, kind := range inner.statements {
		planned = planned && plannable[kind]
	}
	if planned {
		return
	}
	c.raise(inner.set, inner.why)
	c.unknown = c.unknown || inner.unknown
}

var plannable = map[string]bool{"select": true, "setopr": true, "insert": true, "update": true, "delete": true, "merge": true, "show": true}

// result closes the collection. A text without a statement, and one with a list that is too long, is not parsed.
func (c *collector) result() Result {
	slices.Sort(c.tables)
	r := Result{Effects: c.set | effect.Reads, Parsed: !c.unknown, Why: c.why, Statements: unique(c.statements), Tables: slices.Compact(c.tables)}
	switch {
	case len(r.Statements) == 0 && !c.unknown:
		return unparsed("the text holds no statement")
	case len(r.Statements) > maxItems || len(r.Tables) > maxItems:
		return unparsed("the text names too many tables")
	case c.unknown:
		r.Effects = effect.Worst
	}
	return r
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
