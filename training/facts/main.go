// Command facts writes what the judge's own code computes about the calls of case files, so that training sees exactly
// the numbers that the judge will see.
//
//	facts -catalog                  the facts, one JSON object a line
//	facts FILE...                   one CSV line a call: its labels, then its facts
//	facts -strict FILE...           the same, with the facts for heads to which the agent's own calls are no reason for anything
//	facts -with-results FILE...     the same as if each call had returned "done" where the file has no result
package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"gatewright.dev/gatewright/internal/inference/judge"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/training/cases"
)

// labels are the columns of what is known about a call.
var labels = []string{"block", "mismatch", "exceeds", "ungrounded", "clarify", "inject"}

func main() {
	catalog := flag.Bool("catalog", false, "list the facts")
	strict := flag.Bool("strict", false, "the strict facts")
	results := flag.Bool("with-results", false, "add results that are missing")
	flag.Parse()
	if err := run(os.Stdout, *catalog, *strict, *results, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer, catalog, strict, results bool, files []string) error {
	out := bufio.NewWriter(w)
	if catalog {
		for _, f := range judge.Catalog() {
			if err := json.NewEncoder(out).Encode(map[string]any{"name": f.Name, "doc": f.Doc, "direction": f.Direction}); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	compute := judge.Facts
	if strict {
		compute = judge.Strict
	}
	table := csv.NewWriter(out)
	if err := table.Write(header()); err != nil {
		return err
	}
	for _, file := range files {
		all, err := cases.ReadFile(file)
		if err != nil {
			return err
		}
		if results {
			addResults(all)
		}
		rows, err := factsOf(filepath.Base(file), all, compute)
		if err != nil {
			return err
		}
		if err := table.WriteAll(rows); err != nil {
			return err
		}
	}
	table.Flush()
	return out.Flush()
}

func header() []string {
	names := []string{"file", "id", "source", "kind", "split", "class", "digest", "request"}
	names = append(names, labels...)
	for _, f := range judge.Catalog() {
		names = append(names, f.Name)
	}
	return names
}

// addResults puts a result behind each call that none follows.
func addResults(all []cases.Case) {
	for i := range all {
		var out []cases.Message
		for k, m := range all[i].Conversation {
			out = append(out, m)
			returned := k+1 < len(all[i].Conversation) && all[i].Conversation[k+1].Role == questions.RoleTool
			if strings.HasPrefix(m.Content, questions.CallPrefix) && !returned {
				out = append(out, cases.Message{Role: questions.RoleTool, Content: "done"})
			}
		}
		all[i].Conversation = out
	}
}

// factsOf computes on all processors; the rows keep the order of the cases.
func factsOf(file string, all []cases.Case, compute func(*questions.State) judge.Vector) ([][]string, error) {
	rows, errs := make([][]string, len(all)), make([]error, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				rows[i], errs[i] = row(file, &all[i], compute)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func row(file string, c *cases.Case, compute func(*questions.State) judge.Vector) ([]string, error) {
	s, err := c.State()
	if err != nil {
		return nil, err
	}
	out := []string{file, c.ID, c.Source, c.Kind, c.Split, c.Class, c.Digest(), c.UserRequest}
	for _, name := range labels {
		known := c.Known(name)
		if name == "block" {
			known = c.Risk()
		}
		out = append(out, strconv.Itoa(known))
	}
	for _, x := range compute(&s) {
		out = append(out, strconv.FormatFloat(x, 'g', -1, 64))
	}
	if len(out) != len(header()) {
		return nil, fmt.Errorf("%s has %d columns", c.ID, len(out))
	}
	return out, nil
}
