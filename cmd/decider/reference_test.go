package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

const page = "../../docs/reference/decider.md"

func rows(t *testing.T, heading string) map[string][]string {
	t.Helper()
	return testkit.ReferenceTable(t, page, heading)
}

func names[T any](m map[string]T) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func same(t *testing.T, what string, source, reference []string) {
	t.Helper()
	slices.Sort(source)
	slices.Sort(reference)
	if diff := cmp.Diff(source, reference); diff != "" || len(source) == 0 {
		t.Errorf("%s: the source (-) and the page (+) differ:\n%s", what, diff)
	}
}

func TestReferenceOfFlags(t *testing.T) {
	var c config
	fs := flag.NewFlagSet("decider", flag.ContinueOnError)
	c.bind(fs)
	listed := rows(t, "Flags")
	var flags []string
	fs.VisitAll(func(f *flag.Flag) {
		flags = append(flags, "-"+f.Name)
		cells, ok := listed["-"+f.Name]
		zero := f.DefValue == "" || f.DefValue == "0"
		if ok && !zero && cells[0] != "`"+f.DefValue+"`" {
			t.Errorf("-%s has the default %q, the page says %s", f.Name, f.DefValue, cells[0])
		}
	})
	same(t, "flags", flags, names(listed))
}

// source parses the Go files of a folder, tests left out.
func source(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// literals are the values of constants whose name begins so, by name.
func literals(t *testing.T, dir, prefix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, f := range source(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if strings.HasPrefix(name.Name, prefix) && i < len(spec.Values) {
					if value, ok := spec.Values[i].(*ast.BasicLit); ok {
						found[name.Name] = strings.Trim(value.Value, `"`)
					}
				}
			}
			return true
		})
	}
	return found
}

func TestReferenceOfExitCodes(t *testing.T) {
	var codes, listed []string
	for name, value := range literals(t, ".", "exit") {
		codes = append(codes, value+" `"+name+"`")
	}
	for code, cells := range rows(t, "Exit codes") {
		listed = append(listed, code+" "+cells[0])
	}
	same(t, "exit codes", codes, listed)
}

func TestReferenceOfErrors(t *testing.T) {
	var codes []string
	for _, value := range literals(t, "../../internal/inference/server", "Code") {
		codes = append(codes, value)
	}
	same(t, "errors", codes, names(rows(t, "Errors")))
}

func TestReferenceOfMetrics(t *testing.T) {
	var registered []string
	for _, f := range source(t, "../../internal/inference/server") {
		ast.Inspect(f, func(n ast.Node) bool {
			if value, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(value.Value, `"gatewright_`) {
				registered = append(registered, strings.Trim(value.Value, `"`))
			}
			return true
		})
	}
	same(t, "metrics", registered, names(rows(t, "Metrics")))
}

// TestReferenceOfReasons has a server answer with each status and error of the page, and compares what the gate's client
// makes of it.
func TestReferenceOfReasons(t *testing.T) {
	for code, cells := range rows(t, "Errors") {
		if cells[0] == "499" {
			continue // nobody reads it
		}
		statuses, reasons := strings.Split(cells[0], ", "), strings.Split(cells[2], ", ")
		for i, text := range statuses {
			status, err := strconv.Atoi(text)
			if err != nil || len(statuses) != len(reasons) {
				t.Fatalf("%s: %v", code, cells)
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"detail":{"error_type":%q,"message":"x"}}`, code)
			}))
			transport := inference.NewTransport()
			client, err := inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: inference.ServerOptions{BaseURL: s.URL, Model: "m", Transport: transport}})
			if err != nil {
				t.Fatal(err)
			}
			asked, _ := questions.Builtin("asked")
			_, err = client.Decide(t.Context(), inference.Request{Questions: []questions.Question{asked}})
			if got := string(inference.ReasonOf(err)); got != reasons[i] {
				t.Errorf("%s with %d: the client says %s, the page %s", code, status, got, reasons[i])
			}
			transport.CloseIdleConnections()
			s.Close()
		}
	}
}
