package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// Options say which suites to run.
type Options struct {
	// Paths are suite files, or folders that are searched for them.
	Paths []string
	// Only runs the cases whose name matches; nil runs all. Coverage is then not counted.
	Only *regexp.Regexp
	// MinimumCoverage in percent: a suite that reaches less has failed. 0 asks for none.
	MinimumCoverage int
}

// maxSuiteBytes bounds a suite file.
const maxSuiteBytes = 16 << 20

// Run runs all suites. The error is about paths that hold none; what is wrong with a suite stands in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	files, err := find(o.Paths)
	if err != nil {
		return nil, err
	}
	report := &Report{Suites: make([]SuiteReport, 0, len(files))}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("running suites: %w", err)
		}
		report.Suites = append(report.Suites, runFile(ctx, file, o))
	}
	return report, nil
}

// isSuite recognises suites among other files of a folder.
var isSuite = regexp.MustCompile(`(?m)^["']?apiVersion["']?\s*:\s*["']?suite\.gatewright\.dev/`)

// find lists suite files. A file that is named is one, whatever stands in it.
func find(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("looking for suites: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		before := len(files)
		if files, err = search(files, path); err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, fmt.Errorf("no suites in %s: a suite is a .yaml file with apiVersion: %s", path, APIVersion)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no suites: name files or folders")
	}
	return files, nil
}

func search(files []string, folder string) ([]string, error) {
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || entry.IsDir() || ext != ".yaml" && ext != ".yml" {
			return err
		}
		data, err := readFile(path)
		if err == nil && isSuite.Match(data) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for suites in %s: %w", folder, err)
	}
	return files, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxSuiteBytes:
		return nil, fmt.Errorf("%s has more than %d bytes: split it", path, maxSuiteBytes)
	}
	return os.ReadFile(path)
}

// runner runs the cases of one suite.
type runner struct {
	file     *File
	set      *policy.Set
	pinned   map[string]string // fingerprint by policy
	policies []*policy.Compiled
	tested   int // the first so many policies count for coverage
	reached  map[policy.Point]bool
}

func runFile(ctx context.Context, path string, o Options) SuiteReport {
	out := SuiteReport{Name: path, File: path}
	data, err := readFile(path)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	file, err := read(path, data)
	if file != nil && file.Metadata.Name != "" {
		out.Name = file.Metadata.Name
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	r := &runner{file: file, pinned: map[string]string{}, reached: map[policy.Point]bool{}}
	if out.Warnings, err = r.load(path); err != nil {
		out.Error = err.Error()
		return out
	}
	for i := range file.Cases {
		if c := &file.Cases[i]; o.Only == nil || o.Only.MatchString(c.Name) {
			out.Cases = append(out.Cases, r.run(ctx, c))
		}
	}
	if o.Only == nil {
		out.Coverage = r.coverage()
		out.MinimumCoverage = o.MinimumCoverage
	}
	return out
}

// load compiles the policies of the suite, as strictly as a gate does.
func (r *runner) load(path string) (warnings []string, err error) {
	known := map[string]bool{}
	for _, name := range questions.BuiltinNames() {
		known[name] = true
	}
	var errs []error
	for i, name := range slices.Concat(r.file.Policies, r.file.Alongside) {
		set, err := r.open(path, name)
		errs = append(errs, err)
		for _, q := range declared(set) {
			known[string(q.Name)] = true
			warnings = append(warnings, lint(name, q)...)
		}
		if i < len(r.file.Policies) {
			r.tested = len(r.policies)
		}
	}
	r.set = policy.NewSet(r.policies)
	if err := errors.Join(errs...); err != nil {
		return warnings, err
	}
	return warnings, r.checkAnswers(path, known)
}

// open reads one file of policies, whose name is relative to the suite's.
func (r *runner) open(path, name string) (*manifest.Set, error) {
	file := filepath.FromSlash(name)
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(path), file)
	}
	data, err := readFile(file)
	if err != nil {
		return &manifest.Set{}, fmt.Errorf("%s: policies: %w", path, err)
	}
	set := manifest.Read(name, data)
	return set, errors.Join(set.Err(), r.compile(name, set))
}

func (r *runner) compile(name string, set *manifest.Set) error {
	var errs []error
	before := len(r.policies)
	for _, p := range set.ToolPolicies() {
		compiled, faults := policy.Compile(p)
		if faults != nil {
			errs = append(errs, fmt.Errorf("%s: ToolPolicy %s/%s: %w", name, p.Namespace, p.Name, faults.ToAggregate()))
		}
		r.add(compiled, &p.Spec.PolicyRules)
	}
	for _, p := range set.ClusterToolPolicies() {
		compiled, faults := policy.CompileCluster(p)
		if faults != nil {
			errs = append(errs, fmt.Errorf("%s: ClusterToolPolicy %s: %w", name, p.Name, faults.ToAggregate()))
		}
		r.add(compiled, &p.Spec.PolicyRules)
	}
	if len(r.policies) == before && len(set.Problems) == 0 {
		errs = append(errs, fmt.Errorf("%s: holds no ToolPolicy and no ClusterToolPolicy", name))
	}
	return errors.Join(errs...)
}

// checkAnswers refuses answers to questions that no policy can ask: a typing error must not leave a default in force.
func (r *runner) checkAnswers(path string, known map[string]bool) error {
	var errs []error
	check := func(s *Script) {
		if s == nil {
			return
		}
		for name, reply := range s.Answers {
			if !known[name] {
				errs = append(errs, fmt.Errorf("%s:%d: decider.answers: no policy of this suite knows the question %q", path, reply.line, name))
			}
		}
	}
	check(r.file.Defaults.Decider)
	for i := range r.file.Cases {
		check(r.file.Cases[i].Decider)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func (r *runner) coverage() *Coverage {
	out := &Coverage{}
	for _, p := range r.policies[:r.tested] {
		for _, point := range p.Points() {
			out.Total++
			if r.reached[point] {
				out.Reached++
			} else {
				out.NotReached = append(out.NotReached, point)
			}
		}
	}
	return out
}
