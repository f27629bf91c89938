package sqltext

import (
	"slices"

	pgast "github.com/pganalyze/pg_query_go/v6"
)

// attributes finds calls in disguise. PostgreSQL reads x.f as f(x) where x has no column f: behind an expression in
// brackets, and behind the name of a function among the tables, whose row is the function's plain result. What stands
// behind the name of a table or a subquery is passed a whole row, which only functions made for rows take.
type attributes struct {
	// columns are the names that are columns for sure, by the name of the function among the tables.
	columns map[string]map[string]bool
	refs    [][2]string
}

// resultColumns are the columns that built-in functions name themselves.
var resultColumns = set("key value ordinality")

// plainResults are functions whose one column has the alias for its name.
var plainResults = set("unnest generate_series generate_subscripts regexp_split_to_table string_to_table")

// column notes a name behind another.
func (a *attributes) column(fields []*pgast.Node) {
	if len(fields) < 2 {
		return
	}
	table, column := fields[len(fields)-2].GetString_(), fields[len(fields)-1].GetString_()
	if table != nil && column != nil {
		a.refs = append(a.refs, [2]string{table.GetSval(), column.GetSval()})
	}
}

// function notes a function among the tables, and fails where it has no plain name.
func (a *attributes) function(f *pgast.RangeFunction) bool {
	name := functionName(f)
	alias, columns := name, map[string]bool{}
	if f.Alias != nil {
		alias = f.Alias.Aliasname
		for _, column := range f.Alias.Colnames {
			columns[column.GetString_().GetSval()] = true
		}
	}
	for _, column := range f.Coldeflist {
		columns[column.GetColumnDef().GetColname()] = true
	}
	if len(columns) == 0 && plainResults[name] {
		columns[alias] = true
	}
	if a.columns == nil {
		a.columns = map[string]map[string]bool{}
	}
	if known, twice := a.columns[alias]; twice { // in another query: a column of both only
		for column := range known {
			known[column] = columns[column]
		}
		return alias != ""
	}
	a.columns[alias] = columns
	return alias != ""
}

// functionName is the name of the only function, or empty.
func functionName(f *pgast.RangeFunction) string {
	if len(f.Functions) != 1 {
		return ""
	}
	call := f.Functions[0].GetList().GetItems()
	if len(call) == 0 || call[0].GetFuncCall() == nil {
		return ""
	}
	names := call[0].GetFuncCall().Funcname
	return names[len(names)-1].GetString_().GetSval()
}

func (a *attributes) add(other attributes) {
	a.refs = append(a.refs, other.refs...)
	for alias, columns := range other.columns {
		if a.columns == nil {
			a.columns = map[string]map[string]bool{}
		}
		if _, twice := a.columns[alias]; twice {
			columns = nil
		}
		a.columns[alias] = columns
	}
}

// hidden tells whether a name behind a function among the tables may be a call of anything but a plain function.
func (a *attributes) hidden() bool {
	return slices.ContainsFunc(a.refs, func(ref [2]string) bool {
		columns, ok := a.columns[ref[0]]
		return ok && !columns[ref[1]] && !resultColumns[ref[1]] && !pgFunctions[ref[1]]
	})
}

func isName(n *pgast.Node) bool { return n.GetString_() != nil }
