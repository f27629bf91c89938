package sqltext

import (
	"reflect"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	mysqlmode "github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/test_driver" // the parser needs values; this is its own driver without the database

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

// mysqlModes are the settings of a server that change where strings end. Which of them hold is not in the text, so the
// text is read under each.
var mysqlModes = []mysqlmode.SQLMode{
	mysqlmode.ModeNone,
	mysqlmode.ModeANSIQuotes,
	mysqlmode.ModeNoBackslashEscapes,
	mysqlmode.ModeANSIQuotes | mysqlmode.ModeNoBackslashEscapes,
}

// executableComments are comments that one server runs and another skips, by its version or its make.
var executableComments = []string{"/*!", "/*m!", "/*t!", "/*+"}

// mysql judges a text of MySQL.
func mysql(text string) Result {
	lower := strings.ToLower(text)
	for _, opening := range executableComments {
		if strings.Contains(lower, opening) {
			return unparsed("a comment is run by some servers")
		}
	}
	r := mysqlMode(text, mysqlModes[0])
	for _, mode := range mysqlModes[1:] {
		r = both(r, mysqlMode(text, mode))
	}
	return r
}

func mysqlMode(text string, mode mysqlmode.SQLMode) (r Result) {
	defer func() {
		if recover() != nil {
			r = unparsed("the parser gave up")
		}
	}()
	p := tidb.New() // a parser is not for concurrent use, and costs little
	p.SetSQLMode(mode)
	stmts, _, err := p.ParseSQL(text)
	if err != nil { // the message quotes the text, which is private
		return unparsed("the text is not MySQL in every mode of quoting")
	}
	var c collector
	for _, stmt := range stmts {
		stmt.Accept(&visitor{&c})
	}
	return c.result()
}

// visitor judges every node on the way in.
type visitor struct{ c *collector }

func (v *visitor) Enter(n ast.Node) (ast.Node, bool) {
	if explain, ok := n.(*ast.ExplainStmt); ok {
		v.explain(explain)
		return n, true
	}
	name := reflect.TypeOf(n).Elem().Name()
	if kind, ok := strings.CutSuffix(name, "Stmt"); ok {
		v.c.statement(strings.ToLower(kind), mysqlStatements[name])
	} else if _, value := n.(*test_driver.ValueExpr); !value && !mysqlNodes[name] {
		v.c.fail("a construct is not in the table: " + name)
	}
	v.details(n)
	return n, false
}

func (v *visitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }

func (v *visitor) explain(stmt *ast.ExplainStmt) {
	v.c.statements = append(v.c.statements, "explain")
	if stmt.Stmt == nil || stmt.Explore || stmt.PlanDigest != "" || stmt.SQLDigest != "" {
		v.c.fail("a form of EXPLAIN is not in the table")
		return
	}
	var inner collector
	stmt.Stmt.Accept(&visitor{&inner})
	v.c.explain(inner, stmt.Analyze)
}

// details judges what the kind of a node does not tell.
func (v *visitor) details(n ast.Node) {
	switch n := n.(type) {
	case *ast.SelectStmt:
		if n.SelectIntoOpt != nil {
			v.c.fail("a query writes a file or a variable")
		}
		if n.LockInfo != nil && n.LockInfo.LockType != ast.SelectLockNone {
			v.c.raise(effect.Writes, "a query locks rows")
		}
	case *ast.InsertStmt:
		if n.IsReplace {
			v.c.raise(deletes, "a statement replaces rows")
		}
	case *ast.UseStmt:
		v.c.fail("a setting changes what later names mean")
	case *ast.TableName:
		v.table(n)
	case *ast.VariableAssignment:
		switch {
		case n.IsGlobal || strings.Contains(n.Name, "."): // persist.x and persist_only.x
			v.c.fail("a setting of the server is set")
		case encodingSettings[strings.ToLower(n.Name)]: // in some, one character takes a quote or a backslash with it
			v.c.fail("a setting changes how later texts are read")
		}
	case *ast.VariableExpr:
		if n.Value != nil {
			v.c.raise(effect.Writes, "an expression sets a variable")
		}
	case *ast.FuncCallExpr:
		if n.Schema.L != "" || !mysqlFunctions[n.FnName.L] {
			v.c.fail("a function is not in the table")
		}
	case *ast.AggregateFuncExpr:
		if !mysqlFunctions[strings.ToLower(n.F)] {
			v.c.fail("a function is not in the table")
		}
	case *ast.WindowFuncExpr:
		if !mysqlFunctions[strings.ToLower(n.Name)] {
			v.c.fail("a function is not in the table")
		}
	}
}

// encodingSettings are settings that say in which encoding a text is read, under the names that the parser gives them.
var encodingSettings = set("setnames setcharset character_set_client character_set_connection collation_connection")

// table notes a name as written, and in lower case, in which some servers look it up.
func (v *visitor) table(n *ast.TableName) {
	v.c.tables = append(v.c.tables, strings.Join(nonEmpty(n.Schema.O, n.Name.O), "."), strings.Join(nonEmpty(n.Schema.L, n.Name.L), "."))
}

// mysqlStatements is the table of statements, by the name of their node.
var mysqlStatements = map[string]effect.Set{
	"SelectStmt": effect.Reads, "SetOprStmt": effect.Reads, "ShowStmt": effect.Reads,
	"InsertStmt": writes, "UpdateStmt": writes, "BeginStmt": writes, "CommitStmt": writes, "RollbackStmt": writes,
	"SetStmt": writes, "UseStmt": writes, "LockTablesStmt": writes, "UnlockTablesStmt": writes, "CreateTableStmt": writes,
	"CreateDatabaseStmt": writes, "CreateIndexStmt": writes, "CreateViewStmt": writes, "RenameTableStmt": writes,
	"AnalyzeTableStmt": writes, "OptimizeTableStmt": writes,
	"DeleteStmt": deletes, "TruncateTableStmt": deletes, "DropTableStmt": deletes, "DropDatabaseStmt": deletes,
	"DropIndexStmt": deletes, "DropUserStmt": deletes, "DropSequenceStmt": deletes, "AlterTableStmt": deletes,
}

// mysqlNodes are the nodes that do nothing by themselves. Those that only statements beyond reads hold are listed last.
var mysqlNodes = set("SetOprSelectList FieldList SelectField WildCardField TableRefsClause Join TableSource TableName OnCondition",
	"GroupByClause HavingClause OrderByClause ByItem Limit WithClause CommonTableExpression WindowSpec PartitionByClause",
	"FrameClause FrameBound RowExpr BetweenExpr BinaryOperationExpr WhenClause CaseExpr SubqueryExpr CompareSubqueryExpr",
	"ColumnName ColumnNameExpr DefaultExpr ExistsSubqueryExpr PatternInExpr IsNullExpr IsTruthExpr PatternLikeOrIlikeExpr",
	"ParenthesesExpr PositionExpr PatternRegexpExpr UnaryOperationExpr ValuesExpr VariableExpr SetCollationExpr FuncCallExpr",
	"FuncCastExpr TrimDirectionExpr AggregateFuncExpr WindowFuncExpr TimeUnitExpr GetFormatSelectorExpr ParamMarkerExpr",
	"MaxValueExpr TableNameExpr",
	"Assignment DeleteTableList ColumnDef ColumnOption Constraint IndexPartSpecification ReferenceDef OnDeleteOpt OnUpdateOpt",
	"IndexOption AlterTableSpec ColumnPosition VariableAssignment TableToTable IndexLockAndAlgorithm")

// mysqlFunctions are built-in functions that neither change anything, nor read files, nor lock, nor wait.
var mysqlFunctions = set(
	"count sum avg min max group_concat bit_and bit_or bit_xor std stddev stddev_pop stddev_samp variance var_pop var_samp",
	"json_arrayagg json_objectagg any_value row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value",
	"last_value nth_value",
	"abs ceil ceiling floor round truncate sign sqrt power pow exp ln log log2 log10 mod pi degrees radians sin cos tan cot",
	"asin acos atan atan2 rand crc32 conv greatest least",
	"length char_length character_length octet_length bit_length lower lcase upper ucase concat concat_ws format left right",
	"lpad rpad ltrim rtrim trim substr substring substring_index mid position locate instr replace reverse repeat insert_func",
	"ascii ord char char_func space strcmp field find_in_set elt hex unhex bin oct md5 sha sha1 sha2 to_base64 from_base64 quote",
	"soundex regexp_like regexp_replace regexp_instr regexp_substr make_set export_set",
	"now curdate current_date curtime current_time current_timestamp localtime localtimestamp sysdate utc_date utc_time",
	"utc_timestamp date time year month day hour minute second microsecond week weekday weekofyear yearweek quarter dayname",
	"dayofmonth dayofweek dayofyear monthname last_day extract date_add date_sub adddate subdate addtime subtime datediff",
	"timediff timestampdiff timestampadd date_format time_format str_to_date from_unixtime unix_timestamp from_days to_days",
	"to_seconds makedate maketime sec_to_time time_to_sec period_add period_diff convert_tz timestamp get_format",
	"if ifnull nullif coalesce isnull interval convert cast charset collation coercibility",
	"json_extract json_unquote json_object json_array json_contains json_contains_path json_keys json_length json_type",
	"json_valid json_depth json_search json_quote json_pretty json_set json_insert json_replace json_remove json_merge_patch",
	"json_merge_preserve json_overlaps json_value",
	"uuid uuid_to_bin bin_to_uuid is_uuid inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6 version database schema",
	"user current_user session_user system_user connection_id row_count found_rows bit_count grouping")
