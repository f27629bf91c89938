package sqltext_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/sqltext"
)

const (
	read   = effect.Reads
	write  = effect.Reads | effect.Writes
	remove = effect.Reads | effect.Writes | effect.Deletes
	worst  = effect.Worst
)

func TestMain(m *testing.M) {
	if err := sqltext.Warm(); err != nil {
		fmt.Fprintln(os.Stderr, "warming the parser:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestPostgres(t *testing.T) {
	tests := map[string]struct {
		text           string
		want           effect.Set
		wantStatements string
		wantTables     string
	}{
		"a query":                        {"SELECT a, count(*) FROM s.t WHERE b = 'x' GROUP BY a ORDER BY 2 DESC LIMIT 5", read, "select", "s.t"},
		"a deletion in a string":         {"SELECT 'DROP TABLE x; --'", read, "select", ""},
		"a deletion in dollar quotes":    {"SELECT $$; DROP TABLE x$$", read, "select", ""},
		"a deletion in a comment":        {"SELECT 1 /* ; DROP TABLE x /* */ */ -- DELETE FROM t", read, "select", ""},
		"a join with subqueries":         {"SELECT * FROM a JOIN b USING (id) LEFT JOIN LATERAL (SELECT 1 FROM c WHERE c.x IN (SELECT y FROM d)) z ON true", read, "select", "a b c d"},
		"a query with a name":            {"WITH x AS (SELECT 1 FROM t) SELECT * FROM x", read, "select", "t x"},
		"a union":                        {"SELECT 1 UNION ALL SELECT 2 FROM t", read, "select", "t"},
		"a window":                       {"SELECT row_number() OVER (PARTITION BY a ORDER BY b), x::int, CAST(y AS text), z->>'k' FROM t", read, "select", "t"},
		"functions of the grammar":       {"SELECT extract(year FROM a), a AT TIME ZONE 'utc', current_user, coalesce(a, 1), position('a' IN b) FROM t", read, "select", "t"},
		"a function in its schema":       {"SELECT pg_catalog.lower('x')", read, "select", ""},
		"a table of functions":           {"SELECT * FROM generate_series(1, 2) WITH ORDINALITY", read, "select", ""},
		"values":                         {"VALUES (1, 'a'), (2, 'b')", read, "select", ""},
		"a short query":                  {"TABLE t", read, "select", "t"},
		"two queries":                    {"SELECT 1; SELECT 2;", read, "select", ""},
		"a plan":                         {"EXPLAIN SELECT * FROM t", read, "explain select", "t"},
		"the plan of a deletion":         {"EXPLAIN (VERBOSE) DELETE FROM t", read, "explain delete", "t"},
		"a setting":                      {"SHOW search_path", read, "variableshow", ""},
		"a parameter":                    {"SELECT * FROM t WHERE a = $1", read, "select", "t"},
		"a name in quotes":               {`SELECT * FROM "T""x"`, read, "select", `T"x`},
		"a long list":                    {"SELECT * FROM t WHERE a IN (1" + strings.Repeat(",2", 9000) + ")", read, "select", "t"},
		"columns of a function":          {"SELECT g.n, g.ordinality FROM generate_series(1, 2) WITH ORDINALITY g(n)", read, "select", ""},
		"the column of a function":       {"SELECT g.g FROM generate_series(1, 2) g", read, "select", ""},
		"columns that a function names":  {"SELECT e.key, e.value ->> 'a', t.x[1], (t.y).* FROM t, jsonb_each(t.x) e", read, "select", "t"},
		"a column of a subquery":         {"SELECT s.pg_read_file FROM (SELECT 1 AS pg_read_file) s", read, "select", ""},
		"an insertion":                   {"INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING RETURNING a", write, "insert select", "t"},
		"a change":                       {"UPDATE t SET a = a + 1 WHERE b", write, "update", "t"},
		"a new table":                    {"CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x')", write, "create", "t"},
		"a query into a table":           {"SELECT * INTO u FROM t", write, "select", "t u"},
		"a query as a table":             {"CREATE TABLE u AS SELECT * FROM t", write, "createtableas select", "t u"},
		"a lock":                         {"SELECT * FROM t FOR UPDATE", write, "select", "t"},
		"a setting that is set":          {"SET statement_timeout = 1", write, "variableset", ""},
		"a transaction":                  {"BEGIN; SELECT 1; COMMIT", write, "transaction select", ""},
		"a deletion":                     {"DELETE FROM t", remove, "delete", "t"},
		"a deletion behind a query":      {"SELECT 1; DELETE FROM t", remove, "select delete", "t"},
		"a deletion behind a comment":    {"-- x\n; DELETE FROM t", remove, "delete", "t"},
		"a deletion with a name":         {"WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", remove, "select delete", "t x"},
		"a deletion that is analysed":    {"EXPLAIN ANALYZE DELETE FROM t", remove, "explain delete", "t"},
		"a deletion, analysed in braces": {"EXPLAIN (COSTS, ANALYZE) DELETE FROM t", remove, "explain delete", "t"},
		"a dropped table":                {"DROP TABLE s.t, u", remove, "drop", "s.t u"},
		"an emptied table":               {"TRUNCATE t", remove, "truncate", "t"},
		"a merge":                        {"MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", remove, "merge", "t u"},
		"a dropped column":               {"ALTER TABLE t DROP COLUMN a", remove, "altertable", "t"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := sqltext.Parse(test.text, sqltext.Postgres)
			if r.Effects != test.want || !r.Parsed || (r.Why == "") != (test.want == read) {
				t.Errorf("effects = %b, parsed = %v, why = %q, want effects %b", r.Effects, r.Parsed, r.Why, test.want)
			}
			compare(t, test.wantStatements, r.Statements)
			compare(t, test.wantTables, r.Tables)
		})
	}
}

func compare(t *testing.T, want string, got []string) {
	t.Helper()
	if diff := cmp.Diff(strings.Fields(want), append([]string{}, got...)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestPostgresWorst(t *testing.T) {
	for name, text := range map[string]string{
		"a stopped session": "SELECT pg_terminate_backend(1)", "a set sequence": "SELECT setval('s', 1)", "a drawn number": "SELECT nextval('s')",
		"an exported object": "SELECT lo_export(1, '/x')", "a file": "SELECT pg_read_file('/etc/passwd')", "another database": "SELECT * FROM dblink('x', 'SELECT 1') AS t(a int)",
		"text run as SQL": "SELECT query_to_xml('DELETE FROM t', true, true, '')", "a setting by function": "SELECT set_config('a', 'b', false)", "waiting": "SELECT pg_sleep(10)",
		"a user's function": "SELECT f()", "a user's function of a known name": "SELECT evil.lower('x')", "a function in a condition": "SELECT 1 FROM t WHERE f(a) > 1",
		"a function in a filter": "SELECT count(*) FILTER (WHERE f()) FROM t", "a function in an order": "SELECT 1 ORDER BY f()", "a function in a limit": "SELECT 1 LIMIT f()",
		"a function in a join": "SELECT 1 FROM a JOIN b ON f()", "a function in a case": "SELECT CASE WHEN f() THEN 1 END", "a function in a list": "SELECT ARRAY[f()]",
		"a function in a plan": "EXPLAIN SELECT f()", "a function that a plan of a change runs": "EXPLAIN UPDATE t SET a = f()",
		"a user's operator": "SELECT 1 OPERATOR(evil.+) 2", "an unknown operator": "SELECT 1 <+> 2", "a user's type": "SELECT 'x'::evil", "a type of a schema": "SELECT 'x'::evil.text",
		"an order by operator": "SELECT * FROM t ORDER BY a USING <+>", "copying to a program": "COPY t TO PROGRAM 'sh'", "copying to a file": "COPY t TO '/x'", "copying from input": "COPY t FROM STDIN",
		"code": "DO $$ BEGIN DELETE FROM t; END $$", "a call": "CALL p()", "a prepared statement": "PREPARE x AS DELETE FROM t", "a run statement": "EXECUTE x", "a plan of a run statement": "EXPLAIN EXECUTE x",
		"a function made": "CREATE FUNCTION f() RETURNS int AS 'x' LANGUAGE sql", "rights given": "GRANT ALL ON t TO x", "an extension": "CREATE EXTENSION dblink", "a message": "NOTIFY x", "a cursor": "DECLARE c CURSOR FOR SELECT 1",
		"a system setting": "ALTER SYSTEM SET a = b", "a loaded library": "LOAD 'x'", "a sample": "SELECT * FROM t TABLESAMPLE evil(1)",
		"a call as field": "SELECT ('/etc/passwd'::text).pg_read_file", "a call as field of an element": "SELECT (ARRAY['/x'])[1].pg_read_file", "a call as field of a column": "SELECT (s.a).pg_read_file FROM t s",
		"a call as column": "SELECT x.pg_read_file FROM unnest(ARRAY['/x']) x", "a call as column, planned": "EXPLAIN SELECT x.pg_sleep FROM generate_series(1, 2) x", "a call as column of an unnamed function": "SELECT unnest.pg_read_file FROM unnest(ARRAY['/x'])",
		"a call by the name of the alias": "SELECT pg_read_file.pg_read_file FROM jsonb_array_elements_text('[1]') AS pg_read_file", "a call by an alias with columns": "SELECT pg_sleep.pg_sleep FROM generate_series(1, 2) pg_sleep(x)",
		"a call on an expression of the grammar": `SELECT "coalesce".pg_read_file FROM coalesce('/x')`, "a call behind rows from": "SELECT g.pg_sleep FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY[1])) g",
		"a call where another query has the column": "SELECT x.pg_read_file FROM unnest(ARRAY['/x']) x, (SELECT x.pg_read_file FROM unnest(ARRAY['/x']) x(pg_read_file)) z",
		"another schema for names":                  "SET search_path = x", "another schema for one transaction": "SET LOCAL search_path = x", "the schema of the role": "RESET search_path", "all settings": "RESET ALL",
		"another role": "SET ROLE postgres", "another encoding": "SET NAMES 'SJIS'", "the role before": "RESET ROLE", "another session": "SET SESSION AUTHORIZATION x", "no triggers": "SET session_replication_role = replica", "no rules of rows": "SET row_security = off",
		"a query and a call": "SELECT 1; CALL p()", "an expression of an index": "CREATE INDEX ON t (f(a))",
	} {
		t.Run(name, func(t *testing.T) { wantWorst(t, text, sqltext.Postgres) })
	}
}

func wantWorst(t *testing.T, text, dialect string) {
	t.Helper()
	if r := sqltext.Parse(text, dialect); r.Effects != worst || r.Why == "" {
		t.Errorf("Parse(%.80q, %q) = %+v, want the worst and a reason", text, dialect, r)
	}
}

func TestMySQL(t *testing.T) {
	tests := map[string]struct {
		text           string
		want           effect.Set
		wantStatements string
		wantTables     string
	}{
		"a query":                     {"SELECT `a`, COUNT(*) FROM s.t WHERE b LIKE 'x%' GROUP BY a HAVING 1 ORDER BY 2 LIMIT 5", read, "select", "s.t"},
		"a deletion in a string":      {"SELECT 'DROP TABLE x; --'", read, "select", ""},
		"a deletion in a comment":     {"SELECT 1 /* ; DROP TABLE x */ -- DELETE FROM t", read, "select", ""},
		"a name in upper case":        {"SELECT * FROM Orders", read, "select", "Orders orders"},
		"a join with a subquery":      {"SELECT * FROM a JOIN (SELECT x FROM b WHERE EXISTS (SELECT 1 FROM c)) d ON a.x = d.x", read, "select", "a b c"},
		"a query with a name":         {"WITH x AS (SELECT 1 FROM t) SELECT * FROM x", read, "select", "t x"},
		"a union":                     {"SELECT 1 UNION SELECT IF(a, 1, 2) FROM t", read, "setopr select", "t"},
		"a window":                    {"SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b), CAST(a AS CHAR), DATE_ADD(a, INTERVAL 1 DAY) FROM t", read, "select", "t"},
		"a description":               {"SHOW TABLES; DESCRIBE t", read, "show explain", "t"},
		"a plan of a deletion":        {"EXPLAIN DELETE FROM t", read, "explain delete", "t"},
		"a server's setting":          {"SELECT @@version, NOW()", read, "select", ""},
		"an insertion":                {"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", write, "insert", "t"},
		"a change":                    {"UPDATE t SET a = 1", write, "update", "t"},
		"a lock":                      {"SELECT * FROM t FOR UPDATE", write, "select", "t"},
		"a shared lock":               {"SELECT * FROM t LOCK IN SHARE MODE", write, "select", "t"},
		"a variable in an expression": {"SELECT @a := 1", write, "select", ""},
		"a setting that is set":       {"SET @a = 1", write, "set", ""},
		"a replacement":               {"REPLACE INTO t VALUES (1)", remove, "insert", "t"},
		"a deletion":                  {"DELETE FROM t", remove, "delete", "t"},
		"a deletion behind a query":   {"SELECT 1; DELETE FROM t", remove, "select delete", "t"},
		"a deletion that is analysed": {"EXPLAIN ANALYZE DELETE FROM t", remove, "explain delete", "t"},
		"a dropped table":             {"DROP TABLE t", remove, "droptable", "t"},
		"a dropped column":            {"ALTER TABLE t DROP COLUMN a", remove, "altertable", "t"},
		"dollar quotes are a name":    {"SELECT $$; DROP TABLE t", remove, "select droptable", "t"},
		"a string that ends elsewhere without escapes": {`SELECT '\'; DROP TABLE t; -- '`, remove, "select droptable", "t"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := sqltext.Parse(test.text, sqltext.MySQL)
			if r.Effects != test.want || !r.Parsed || (r.Why == "") != (test.want == read) {
				t.Errorf("effects = %b, parsed = %v, why = %q, want effects %b", r.Effects, r.Parsed, r.Why, test.want)
			}
			compare(t, test.wantStatements, r.Statements)
			compare(t, test.wantTables, r.Tables)
		})
	}
}

func TestMySQLWorst(t *testing.T) {
	for name, text := range map[string]string{
		"a comment that is run": "SELECT 1 /*! ; DROP TABLE t */", "a comment that is run by version": "/*!50000 DROP TABLE t */", "a comment that MariaDB runs": "SELECT 1 /*M! ; DROP TABLE t */",
		"a comment that TiDB runs": "SELECT 1 /*T! ; DROP TABLE t */", "a hint": "SELECT /*+ SET_VAR(a=1) */ 1",
		"a file written": "SELECT 1 INTO OUTFILE '/x'", "a file dumped": "SELECT 1 INTO DUMPFILE '/x'", "a file read": "SELECT LOAD_FILE('/etc/passwd')", "a file loaded": "LOAD DATA INFILE '/x' INTO TABLE t",
		"a lock by function": "SELECT GET_LOCK('a', 1)", "waiting": "SELECT SLEEP(10)", "much work": "SELECT BENCHMARK(1000000000, 1)", "a user's function": "SELECT f()", "a function of a schema": "SELECT x.lower('a')",
		"a function in a plan": "EXPLAIN SELECT f()", "a call": "CALL p()", "a statement that is run": "EXECUTE x", "a statement that is prepared": "PREPARE x FROM 'DROP TABLE t'",
		"do": "DO f()", "another database": "USE x", "another database for a query": "USE x; SELECT 1", "another role": "SET ROLE x",
		"another encoding": "SET NAMES gbk", "another encoding by its setting": "SET @@session.Character_Set_Client = gbk", "another character set": "SET CHARACTER SET gbk", "a kept setting": "SET PERSIST max_connections = 1", "a kept setting by its prefix": "SET @@persist.max_connections = 1", "a setting for the next start": "SET @@persist_only.max_connections = 1", "a setting of the server by its prefix": "SET @@global.max_connections = 1",
		"an encoding in which a character takes a backquote": "SET NAMES gbk; SELECT 中`; DROP TABLE t; -- `", "a killed session": "KILL 1", "a setting of the server": "SET GLOBAL a = 1", "a password": "SET PASSWORD = 'x'", "rights": "GRANT ALL ON *.* TO x", "a user": "CREATE USER x", "shutdown": "SHUTDOWN", "a flush": "FLUSH TABLES",
	} {
		t.Run(name, func(t *testing.T) { wantWorst(t, text, sqltext.MySQL) })
	}
}

func TestNotParsed(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "a comment": "-- x", "no statement": ";", "no SQL": "hello", "half a query": "SELECT FROM WHERE", "an open string": "SELECT 'x",
		"a NUL": "SELECT 1\x00; DROP TABLE t", "a broken character": "SELECT '\xff'", "a string that ends in two ways": `SELECT 'a\'' ; DROP TABLE t; --'`,
		"too long": "SELECT '" + strings.Repeat("1", sqltext.MaxLength) + "'", "too deep": "SELECT " + strings.Repeat("(SELECT ", 2000) + "1" + strings.Repeat(")", 2000),
		"too many operators": "SELECT 1" + strings.Repeat("+1", 5000), "too many tables": "SELECT 1 FROM t" + manyTables(300), "a command of a client": `\! rm x`,
	} {
		for _, dialect := range []string{sqltext.Postgres, sqltext.MySQL, "ansi", ""} {
			t.Run(name+" in "+dialect, func(t *testing.T) {
				if r := sqltext.Parse(text, dialect); r.Parsed || r.Effects != worst || r.Why == "" {
					t.Errorf("Parse = %+v, want the worst, not parsed, and a reason", r)
				}
			})
		}
	}
}

func manyTables(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", t%d", i)
	}
	return b.String()
}

func TestUnknownDialectNeedsBoth(t *testing.T) {
	tests := map[string]struct {
		text string
		want effect.Set
	}{
		"plain in both":                 {"SELECT a FROM t WHERE b = 1", read},
		"a deletion in both":            {"DELETE FROM t", remove},
		"two readings of dollar quotes": {"SELECT $$; DROP TABLE users$$", worst},
		"two readings of backquotes":    {"SELECT `a` FROM t", worst},
		"a comment that MySQL runs":     {"SELECT 1 /*! ; DROP TABLE t */", worst},
		"a comment of one only":         {"SELECT 1 # 2\n; DROP TABLE t", worst},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, dialect := range []string{"ansi", "", "oracle", "Postgres"} {
				if got := sqltext.Parse(test.text, dialect).Effects; got != test.want && !(test.want == worst && !got.IsRead()) {
					t.Errorf("effects in %q = %b, want %b", dialect, got, test.want)
				}
			}
		})
	}
}

// Every construct just below the bound on words and operators leaves the parser in order.
func TestDeepTextsLeaveTheParserInOrder(t *testing.T) {
	for name, unit := range map[string][3]string{
		"sums": {"SELECT 1", "+1", ""}, "queries": {"SELECT ", "(SELECT ", ")"}, "brackets": {"SELECT ", "(", ")"}, "calls": {"SELECT ", "lower(", ")"},
		"casts": {"SELECT 1", "::int", ""}, "subscripts": {"SELECT a", "[1]", ""}, "unions": {"SELECT 1", " UNION SELECT 1", ""}, "nots": {"SELECT ", "NOT ", ""},
		"minuses": {"SELECT ", "- ", ""}, "names": {"", "WITH a AS (SELECT 1 ", ") SELECT 1"}, "arrays": {"SELECT ", "ARRAY[", "]"}, "joins": {"SELECT * FROM a", " JOIN a ON true", ""},
		"cases": {"SELECT ", "CASE WHEN 1 THEN ", " END"}, "tests": {"SELECT 1", " ISNULL", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{990, 495, 330} { // one, two or three words and operators to a level
				sqltext.Parse(unit[0]+strings.Repeat(unit[1], n)+"1"+strings.Repeat(unit[2], n), sqltext.Postgres)
				if r := sqltext.Parse("SELECT 1", sqltext.Postgres); !r.Effects.IsRead() {
					t.Fatalf("a plain query after %d levels = %+v", n, r)
				}
			}
		})
	}
}

func TestParseIsForConcurrentUse(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 20 {
				want := read
				text := fmt.Sprintf("SELECT %d FROM t", i*j)
				if j%2 == 1 {
					text, want = text+"; DELETE FROM t", remove
				}
				if got := sqltext.Parse(text, "ansi").Effects; got != want {
					t.Errorf("Parse(%q) = %b, want %b", text, got, want)
				}
			}
		})
	}
	group.Wait()
}

func FuzzSQL(f *testing.F) {
	for _, text := range []string{"SELECT 1", "SELECT * FROM t WHERE a IN ('b')", "WITH x AS (DELETE FROM t) SELECT 1", "SELECT $$a$$", "SELECT 'a\\'b'",
		"EXPLAIN ANALYZE DELETE FROM t", "SELECT `a`", "/*! x */", "COPY t TO PROGRAM 'x'", "SELECT a::int[1:2]", "SHOW x; SET x = 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, dialect := range []string{sqltext.Postgres, sqltext.MySQL, "ansi"} {
			r := sqltext.Parse(text, dialect)
			if diff := cmp.Diff(r, sqltext.Parse(text, dialect)); diff != "" {
				t.Errorf("judging twice differs:\n%s", diff)
			}
			if !r.Parsed && r.Effects != worst {
				t.Errorf("not parsed, yet %b", r.Effects)
			}
			if r.Effects.IsRead() != (r.Why == "") {
				t.Errorf("read = %v, but why = %q", r.Effects.IsRead(), r.Why)
			}
			if r.Parsed && sqltext.Parse("DROP TABLE t; "+text, dialect).Effects.IsRead() {
				t.Error("a deletion before it is still a read")
			}
			if r.Parsed && sqltext.Parse(text+"\n; DROP TABLE t", dialect).Effects.IsRead() {
				t.Error("a deletion behind it is still a read")
			}
		}
		if r := sqltext.Parse("SELECT 1", sqltext.Postgres); !r.Effects.IsRead() {
			t.Fatalf("the parser is out of order: %+v", r)
		}
	})
}
