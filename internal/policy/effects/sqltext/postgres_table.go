package sqltext

import (
	"strings"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

func set(lists ...string) map[string]bool {
	names := map[string]bool{}
	for _, list := range lists {
		for name := range strings.FieldsSeq(list) {
			names[name] = true
		}
	}
	return names
}

const (
	writes  = effect.Reads | effect.Writes
	deletes = effect.Reads | effect.Writes | effect.Deletes
)

// pgStatements is the table of statements, by the name of their node. Those that run code or leave the database (DO,
// CALL, EXECUTE, PREPARE, COPY, CREATE FUNCTION, NOTIFY, GRANT and many more) are missing on purpose.
var pgStatements = map[string]effect.Set{
	"SelectStmt": effect.Reads, "VariableShowStmt": effect.Reads,
	"InsertStmt": writes, "UpdateStmt": writes, "TransactionStmt": writes, "VariableSetStmt": writes, "LockStmt": writes,
	"CreateStmt": writes, "CreateTableAsStmt": writes, "IndexStmt": writes, "ViewStmt": writes, "CreateSchemaStmt": writes,
	"CreateSeqStmt": writes, "RenameStmt": writes, "RefreshMatViewStmt": writes, "VacuumStmt": writes,
	"MergeStmt": deletes, "DeleteStmt": deletes, "TruncateStmt": deletes, "DropStmt": deletes, "DropdbStmt": deletes,
	"DropRoleStmt": deletes, "DropTableSpaceStmt": deletes, "DropOwnedStmt": deletes, "AlterTableStmt": deletes,
}

// pgNodes are the nodes that do nothing by themselves. Those that only statements beyond reads hold are listed last.
var pgNodes = set("Node ResTarget ColumnRef A_Star String Integer Float Boolean BitString A_Const A_Expr BoolExpr NullTest",
	"BooleanTest FuncCall TypeCast TypeName CaseExpr CaseWhen CoalesceExpr MinMaxExpr SubLink RangeVar RangeSubselect",
	"RangeFunction JoinExpr Alias SortBy WindowDef WithClause CommonTableExpr GroupingSet GroupingFunc A_ArrayExpr",
	"A_Indirection A_Indices RowExpr SQLValueFunction CollateClause List NamedArgExpr ParamRef IntoClause LockingClause",
	"SetToDefault MultiAssignRef OnConflictClause InferClause IndexElem DefElem ColumnDef Constraint MergeWhenClause",
	"AlterTableCmd RoleSpec VacuumRelation ObjectWithArgs")

// pgTypes are built-in types, under the names that the parser gives them.
var pgTypes = set("bool int2 int4 int8 float4 float8 numeric text varchar bpchar char name bytea date time timetz timestamp",
	"timestamptz interval uuid json jsonb jsonpath xml inet cidr macaddr macaddr8 bit varbit money oid regclass regtype regproc",
	"regprocedure regnamespace regrole point line lseg box path polygon circle tsvector tsquery int4range int8range numrange",
	"tsrange tstzrange daterange serial bigserial smallserial serial4 serial8 record")

// pgOperators are built-in operators that compare, calculate or look inside values.
var pgOperators = set("= <> != < > <= >= + - * / % ^ || ~ ~* !~ !~* ~~ ~~* !~~ !~~* & | # << >> -> ->> #> #>> @> <@ ? ?| ?& @? @@",
	"&& |/ ||/ @ &< &> -|- <-> ^@ BETWEEN IN #-")

// pgFunctions are built-in functions that neither change anything, nor read files, settings of other sessions or
// connections, nor run a text as SQL, nor wait.
var pgFunctions = set(
	"count sum avg min max array_agg string_agg bool_and bool_or every bit_and bit_or json_agg jsonb_agg json_object_agg",
	"jsonb_object_agg stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp regr_slope",
	"percentile_cont percentile_disc mode row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value",
	"last_value nth_value any_value",
	"abs ceil ceiling floor round trunc sign sqrt cbrt power pow exp ln log log10 mod div gcd lcm pi degrees radians sin cos",
	"tan asin acos atan atan2 random width_bucket greatest least",
	"length char_length character_length octet_length bit_length lower upper initcap concat concat_ws format left right lpad",
	"rpad ltrim rtrim btrim trim substr substring overlay position strpos replace translate reverse repeat split_part",
	"string_to_array string_to_table starts_with ascii chr md5 sha224 sha256 sha384 sha512 encode decode quote_ident",
	"quote_literal quote_nullable to_hex regexp_match regexp_matches regexp_replace regexp_split_to_array",
	"regexp_split_to_table regexp_count regexp_instr regexp_like regexp_substr similar_escape similar_to_escape like_escape normalize unistr",
	"now clock_timestamp statement_timestamp transaction_timestamp timeofday age date_part date_trunc date_bin extract",
	"make_date make_time make_timestamp make_timestamptz make_interval isfinite justify_days justify_hours justify_interval",
	"to_char to_date to_timestamp to_number timezone overlaps",
	"array_append array_cat array_dims array_length array_lower array_ndims array_position array_positions array_prepend",
	"array_remove array_replace array_to_string array_upper cardinality unnest generate_series generate_subscripts",
	"to_json to_jsonb row_to_json array_to_json json_build_object jsonb_build_object json_build_array jsonb_build_array",
	"json_array_length jsonb_array_length json_each jsonb_each json_each_text jsonb_each_text json_array_elements",
	"jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_extract_path jsonb_extract_path",
	"json_extract_path_text jsonb_extract_path_text json_object_keys jsonb_object_keys json_typeof jsonb_typeof jsonb_set",
	"jsonb_insert jsonb_strip_nulls json_strip_nulls jsonb_pretty jsonb_path_exists jsonb_path_match jsonb_path_query",
	"jsonb_path_query_array jsonb_path_query_first",
	"to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline",
	"host hostmask masklen netmask network family abbrev lower_inc upper_inc isempty range_merge",
	"gen_random_uuid num_nulls num_nonnulls pg_typeof version current_database current_schema current_schemas",
	"obj_description col_description pg_table_size pg_total_relation_size pg_relation_size pg_indexes_size",
	"pg_database_size pg_size_pretty format_type pg_get_viewdef pg_get_indexdef pg_get_constraintdef pg_get_functiondef pg_get_expr",
	"has_table_privilege has_schema_privilege has_column_privilege to_regclass to_regtype xmlforest")
