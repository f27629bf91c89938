package sqltext

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	pgast "github.com/pganalyze/pg_query_go/v6"
	pgquery "github.com/wasilibs/go-pgquery"
	"google.golang.org/protobuf/reflect/protoreflect"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

// errParserBroken is the answer of a parser that panicked once: its memory can no longer be trusted, and the library
// would hand it out again.
var errParserBroken = errors.New("the parser is out of order")

// parser runs one parse at a time. The library keeps a WebAssembly instance of its own for each parse that runs at the
// same time: every further one costs a second and tens of megabytes, more than waiting for a few milliseconds.
type parser struct {
	mu     sync.Mutex
	broken bool
}

// pg is shared by the process because the library's instances are.
var pg parser

func (p *parser) parse(text string) (tree *pgast.ParseResult, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return nil, errParserBroken
	}
	defer func() {
		if v := recover(); v != nil {
			p.broken = true
			tree, err = nil, fmt.Errorf("%w: %v", errParserBroken, v)
		}
	}()
	return pgquery.Parse(text)
}

// postgres judges a text of PostgreSQL.
func postgres(text string) Result {
	// With standard_conforming_strings off, the backslash keeps a string open that ends here otherwise.
	if strings.Contains(text, `\'`) {
		return unparsed("a string ends in two ways")
	}
	tree, err := pg.parse(text)
	if err != nil { // the message quotes the text, which is private
		return unparsed("the text is not PostgreSQL")
	}
	var c collector
	for _, stmt := range tree.Stmts {
		c.message(stmt.GetStmt().ProtoReflect())
	}
	if c.calls.hidden() {
		c.fail("a column of a function's result may be a call")
	}
	return c.result()
}

// message judges a node, then what it holds.
func (c *collector) message(m protoreflect.Message) {
	if !m.IsValid() {
		return
	}
	name := string(m.Descriptor().Name())
	if explain, ok := m.Interface().(*pgast.ExplainStmt); ok {
		c.explainStmt(explain)
		return
	}
	if kind, ok := strings.CutSuffix(name, "Stmt"); ok {
		c.statement(strings.ToLower(kind), pgStatements[name])
	} else if !pgNodes[name] {
		c.fail("a construct is not in the table: " + name)
	}
	c.details(m.Interface())
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				c.message(value.List().Get(i).Message())
			}
		default:
			c.message(value.Message())
		}
		return true
	})
}

// statement notes a kind of statement, whose zero effect means that it is not in the table.
func (c *collector) statement(kind string, set effect.Set) {
	c.statements = append(c.statements, kind)
	switch {
	case set == 0:
		c.raise(effect.Worst, "a statement is not in the table: "+kind)
	case !set.IsRead():
		c.raise(set, "a statement does more than read: "+kind)
	}
}

func (c *collector) explainStmt(stmt *pgast.ExplainStmt) {
	c.statements = append(c.statements, "explain")
	run := false
	for _, option := range stmt.Options {
		run = run || option.GetDefElem().GetDefname() == "analyze"
	}
	var inner collector
	inner.message(stmt.GetQuery().ProtoReflect())
	c.explain(inner, run)
}

// details judges what the kind of a node does not tell.
func (c *collector) details(node any) {
	switch n := node.(type) {
	case *pgast.RangeVar:
		c.tables = append(c.tables, strings.Join(nonEmpty(n.Catalogname, n.Schemaname, n.Relname), "."))
	case *pgast.VariableSetStmt:
		if meaningSettings[n.Name] || n.Kind == pgast.VariableSetKind_VAR_RESET_ALL {
			c.fail("a setting changes what later names mean, or whose rights hold")
		}
	case *pgast.DropStmt:
		for _, object := range n.Objects {
			c.dropped(object)
		}
	case *pgast.IntoClause:
		c.raise(effect.Writes, "a query makes a table")
	case *pgast.LockingClause:
		c.raise(effect.Writes, "a query locks rows")
	case *pgast.FuncCall:
		c.builtin(n.Funcname, pgFunctions, "a function is not in the table")
	case *pgast.TypeName:
		c.builtin(n.Names, pgTypes, "a type is not in the table")
	case *pgast.A_Expr:
		c.builtin(n.Name, pgOperators, "an operator is not in the table")
	case *pgast.A_Indirection:
		if slices.ContainsFunc(n.Indirection, isName) {
			c.fail("a field of an expression may be a call")
		}
	case *pgast.ColumnRef:
		c.calls.column(n.Fields)
	case *pgast.RangeFunction:
		if !c.calls.function(n) {
			c.fail("a function among the tables has no name")
		}
	case *pgast.SubLink:
		if len(n.OperName) > 0 {
			c.builtin(n.OperName, pgOperators, "an operator is not in the table")
		}
	case *pgast.SortBy:
		if len(n.UseOp) > 0 {
			c.builtin(n.UseOp, pgOperators, "an operator is not in the table")
		}
	}
}

// meaningSettings are settings by which the same words do something else from then on, in this text and in later ones on the
// same connection: which schema a name means, whose rights hold, whether triggers and the rules of rows apply.
var meaningSettings = set("search_path role session_authorization session_replication_role row_security",
	"session_preload_libraries local_preload_libraries client_encoding")

// dropped notes the name of an object, which is a list of words here and no relation.
func (c *collector) dropped(object *pgast.Node) {
	var parts []string
	for _, item := range object.GetList().GetItems() {
		parts = append(parts, item.GetString_().GetSval())
	}
	if len(parts) > 0 {
		c.tables = append(c.tables, strings.Join(parts, "."))
	}
}

// builtin accepts a name of the table, alone or in the schema of built-in things.
func (c *collector) builtin(names []*pgast.Node, table map[string]bool, why string) {
	if len(names) == 2 && names[0].GetString_().GetSval() == "pg_catalog" {
		names = names[1:]
	}
	if len(names) != 1 || !table[names[0].GetString_().GetSval()] {
		c.fail(why)
	}
}

func nonEmpty(parts ...string) []string {
	var out []string
	for _, part := range parts {
		if part != "" {
			out = append(out, part)
		}
	}
	return out
}
