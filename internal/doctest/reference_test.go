package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/audit"
)

// sourceOf parses the Go files of a package, without its tests.
func sourceOf(t *testing.T, dir string) []*ast.File {
	t.Helper()
	isSource := func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }
	parsed, err := parser.ParseDir(token.NewFileSet(), filepath.Join(root, dir), isSource, parser.SkipObjectResolution) //nolint:staticcheck // no build tags matter here
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, p := range parsed {
		for _, f := range p.Files {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no Go files", dir)
	}
	return files
}

// constants returns the values of the exported constants of a type, by name.
func constants(t *testing.T, dir, typeName string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range sourceOf(t, dir) {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.ValueSpec) //nolint:forcetypeassert // a constant declaration holds nothing else
				if nameOf(spec.Type) != typeName {
					continue
				}
				for i, name := range spec.Names {
					if name.IsExported() {
						found[name.Name] = text(t, spec.Values[i])
					}
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no constants of type %s", dir, typeName)
	}
	return found
}

// nameOf is the last part of a name: Reason for policy.Reason.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func text(t *testing.T, e ast.Expr) string {
	t.Helper()
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%v is no literal", e)
	}
	s, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func values(byName map[string]string) []string {
	var out []string
	for _, v := range byName {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

var codeSpan = regexp.MustCompile("^`([^`]+)`$")

// table returns the rows below a heading whose first cell is code, by that code; the cells are what follows it.
func table(t *testing.T, page, heading string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	below := false
	for i, line := range strings.Split(read(t, page), "\n") {
		if strings.HasPrefix(line, "#") {
			below = strings.TrimSpace(strings.TrimLeft(line, "#")) == heading
			continue
		}
		if !below || !strings.HasPrefix(line, "|") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|") {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
		}
		code := codeSpan.FindStringSubmatch(cells[0])
		if code == nil {
			continue
		}
		if rows[code[1]] != nil {
			t.Errorf("%s:%d: %s stands twice", page, i+1, code[1])
		}
		if slices.Contains(cells[1:], "") {
			t.Errorf("%s:%d: %s has an empty cell", page, i+1, code[1])
		}
		rows[code[1]] = cells[1:]
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table below %q", page, heading)
	}
	return rows
}

func keys(rows map[string][]string) []string {
	var out []string
	for k := range rows {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the source (-) and the page (+) differ:\n%s", what, diff)
	}
}

const reasonsPage = "docs/reference/reasons.md"

// TestReasonsAreComplete compares the tables of reasons with the constants, both ways.
func TestReasonsAreComplete(t *testing.T) {
	policyRows := append(keys(table(t, reasonsPage, "Rules and classes")), keys(table(t, reasonsPage, "Allowed"))...)
	policyRows = append(policyRows, keys(table(t, reasonsPage, "The decider"))...)
	same(t, "reasons of policies", values(constants(t, "internal/policy", "Reason")), policyRows)
	same(t, "reasons of the gate", values(constants(t, "internal/gate", "Reason")), keys(table(t, reasonsPage, "The gate")))
	same(t, "reasons of the decider's client", values(constants(t, "internal/inference", "Reason")), keys(table(t, reasonsPage, "What the record says of a decider")))
}

// TestRetryableIsAsInTheSource compares the column "retryable" with what the gate does.
func TestRetryableIsAsInTheSource(t *testing.T) {
	gateReasons, policyReasons := constants(t, "internal/gate", "Reason"), constants(t, "internal/policy", "Reason")
	var blocks, temporary []string
	for _, file := range sourceOf(t, "internal/gate") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if nameOf(n.Fun) == "block" && len(n.Args) == 3 && nameOf(n.Args[2]) == "true" {
					blocks = append(blocks, gateReasons[nameOf(n.Args[0])])
				}
			case *ast.FuncDecl:
				if n.Name.Name == "isTemporary" {
					temporary = namesIn(n.Body, policyReasons)
				}
			}
			return true
		})
	}
	slices.Sort(blocks)
	same(t, "retryable reasons of the gate", slices.Compact(blocks), retryable(table(t, reasonsPage, "The gate")))
	same(t, "retryable reasons of the decider", temporary, retryable(table(t, reasonsPage, "The decider")))
	same(t, "retryable reasons of rules", nil, retryable(table(t, reasonsPage, "Rules and classes")))
}

func namesIn(body *ast.BlockStmt, known map[string]string) []string {
	var out []string
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && known[s.Sel.Name] != "" {
			out = append(out, known[s.Sel.Name])
		}
		return true
	})
	return out
}

func retryable(rows map[string][]string) []string {
	var out []string
	for reason, cells := range rows {
		if cells[len(cells)-1] == "yes" {
			out = append(out, reason)
		}
	}
	return out
}

// TestCodesAreComplete compares the tables of error codes with the constants, both ways.
func TestCodesAreComplete(t *testing.T) {
	const page = "docs/reference/http-errors.md"
	same(t, "codes of the gate", values(constants(t, "internal/gate", "Code")), keys(table(t, page, "Codes of the gate")))
	bodies := values(constants(t, "internal/strictjson", "Code"))
	same(t, "codes of bodies", slices.DeleteFunc(bodies, func(c string) bool { return c == "TooLarge" }), keys(table(t, page, "Codes of a body that is not read")))
}

// TestDeskCodesAreComplete compares the codes of the approver's desk with the page: each is there or among the gate's own.
func TestDeskCodesAreComplete(t *testing.T) {
	const page = "docs/reference/http-errors.md"
	known := table(t, page, "Codes of the gate")
	var want []string
	for _, file := range slices.Concat(sourceOf(t, "internal/serve"), sourceOf(t, "internal/approverapi"), sourceOf(t, "internal/cluster")) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) == "Refuse" && len(call.Args) == 4 {
				if code := text(t, call.Args[2]); known[code] == nil {
					want = append(want, code)
				}
			}
			return true
		})
	}
	slices.Sort(want)
	same(t, "codes of the desk", slices.Compact(want), keys(table(t, page, "Codes of the approver's desk")))
}

// TestMetricsAreComplete compares the table of metrics with what is registered: names and labels, both ways.
func TestMetricsAreComplete(t *testing.T) {
	var want, got []string
	for _, file := range sourceOf(t, "internal/gate") {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && strings.HasPrefix(nameOf(call.Fun), "New") && len(call.Args) > 0 {
				if name := metricName(t, call.Args[0]); name != "" {
					want = append(want, name+" "+strings.Join(labelsOf(t, call), ", "))
				}
			}
			return true
		})
	}
	for name, cells := range table(t, "docs/reference/metrics.md", "Metrics") {
		labels := strings.ReplaceAll(cells[1], "`", "")
		if labels == "none" {
			labels = ""
		}
		got = append(got, name+" "+labels)
	}
	same(t, "metrics", want, got)
}

func metricName(t *testing.T, e ast.Expr) string {
	t.Helper()
	options, ok := e.(*ast.CompositeLit)
	if !ok || !strings.HasSuffix(nameOf(options.Type), "Opts") {
		return ""
	}
	for _, element := range options.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok && nameOf(kv.Key) == "Name" {
			return text(t, kv.Value)
		}
	}
	return ""
}

func labelsOf(t *testing.T, call *ast.CallExpr) []string {
	t.Helper()
	if len(call.Args) < 2 {
		return nil
	}
	list, ok := call.Args[1].(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var out []string
	for _, e := range list.Elts {
		out = append(out, text(t, e))
	}
	return out
}

// TestRecordFieldsAreComplete compares the table of fields with a line of the log, both ways.
func TestRecordFieldsAreComplete(t *testing.T) {
	same(t, "fields of a record", jsonNames(reflect.TypeFor[audit.Entry]()), keys(table(t, "docs/guides/audit-log.md", "Fields")))
}

func jsonNames(s reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(s) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !f.Anonymous {
			out = append(out, name)
		}
	}
	return out
}

// TestExitCodesAreComplete compares the table of exit codes with the constants of the command.
func TestExitCodesAreComplete(t *testing.T) {
	var want []string
	for _, file := range sourceOf(t, "cmd/gatewright") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "exit") && len(spec.Values) == 1 {
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
					want = append(want, literal.Value)
				}
			}
			return true
		})
	}
	same(t, "exit codes", want, keys(table(t, "docs/reference/cli.md", "Exit codes")))
}

var (
	flagLine    = regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[\w-]+)`)
	commandLine = regexp.MustCompile(`(?m)^  ([\w-]+)  `)
)

// TestCommandsAreComplete compares the sections and flags with what the commands say themselves.
func TestCommandsAreComplete(t *testing.T) {
	const page = "docs/reference/cli.md"
	var want, got []string
	for _, command := range commands(t) {
		want = append(want, "gatewright "+strings.Join(command, " "))
	}
	for line := range strings.SplitSeq(read(t, page), "\n") {
		if heading, ok := strings.CutPrefix(line, "## gatewright "); ok {
			got = append(got, "gatewright "+heading)
		}
	}
	same(t, "commands", want, got)
	for _, command := range commands(t) {
		flags := flagsOf(help(t, command...))
		if len(flags) > 0 {
			name := "gatewright " + strings.Join(command, " ")
			same(t, "flags of "+name, flags, keys(table(t, page, name)))
		}
	}
}

// commands returns every command that does something, subcommands in place of their parent.
func commands(t *testing.T, parent ...string) [][]string {
	t.Helper()
	_, list, found := strings.Cut(help(t, parent...), "Available Commands:")
	if !found {
		return [][]string{parent}
	}
	list, _, _ = strings.Cut(list, "Flags:")
	var out [][]string
	for _, name := range commandLine.FindAllStringSubmatch(list, -1) {
		if name[1] != "help" && name[1] != "completion" {
			out = append(out, commands(t, append(slices.Clone(parent), name[1])...)...)
		}
	}
	return out
}

func help(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(binaries, "gatewright"), append(command, "--help")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func flagsOf(help string) []string {
	_, flags, _ := strings.Cut(help, "\nFlags:")
	var out []string
	for _, found := range flagLine.FindAllStringSubmatch(flags, -1) {
		if found[1] != "--help" {
			out = append(out, found[1])
		}
	}
	return out
}
