package suite

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"gatewright.dev/gatewright/internal/policy"
)

// Report is what came of all suites.
type Report struct {
	Suites []SuiteReport `json:"suites"`
}

// SuiteReport is what came of one suite.
type SuiteReport struct {
	Name string `json:"name"`
	File string `json:"file"`
	// Error says why the suite could not be run at all.
	Error    string       `json:"error,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
	Cases    []CaseReport `json:"cases"`
	// Coverage is nil if only some cases were run.
	Coverage        *Coverage `json:"coverage,omitempty"`
	MinimumCoverage int       `json:"minimumCoverage,omitempty"`
}

// CaseReport is what came of one case.
type CaseReport struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Error says why there is no verdict.
	Error       string       `json:"error,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
}

// Difference is one field of the verdict that is not as wanted.
type Difference struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// Coverage counts the points of the policies that cases reached.
type Coverage struct {
	Reached    int            `json:"reached"`
	Total      int            `json:"total"`
	NotReached []policy.Point `json:"notReached,omitempty"`
}

// Percent of the points that were reached, rounded down, so that 100 means all.
func (c *Coverage) Percent() int {
	if c.Total == 0 {
		return 100
	}
	return c.Reached * 100 / c.Total
}

// Passed says whether the case came out as wanted.
func (c *CaseReport) Passed() bool { return c.Error == "" && len(c.Differences) == 0 }

// Passed says whether the suite ran, all its cases came out as wanted and it reached enough.
func (s *SuiteReport) Passed() bool {
	return s.Error == "" && s.failed() == 0 && len(s.Cases) > 0 && !s.reachesTooLittle()
}

func (s *SuiteReport) reachesTooLittle() bool {
	return s.Coverage != nil && s.Coverage.Percent() < s.MinimumCoverage
}

func (s *SuiteReport) failed() int {
	n := 0
	for i := range s.Cases {
		if !s.Cases[i].Passed() {
			n++
		}
	}
	return n
}

// Passed says whether everything did.
func (r *Report) Passed() bool {
	for i := range r.Suites {
		if !r.Suites[i].Passed() {
			return false
		}
	}
	return len(r.Suites) > 0
}

// WriteText writes the report for people: every difference, and nothing about cases that passed.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range r.Suites {
		r.Suites[i].text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *SuiteReport) text(b *strings.Builder) {
	word := "ok  "
	if !s.Passed() {
		word = "FAIL"
	}
	fmt.Fprintf(b, "%s %s: %d of %d cases passed", word, s.Name, len(s.Cases)-s.failed(), len(s.Cases))
	if s.Coverage != nil {
		fmt.Fprintf(b, ", %d of %d rules, thresholds and fallbacks reached (%d %%)", s.Coverage.Reached, s.Coverage.Total, s.Coverage.Percent())
	}
	b.WriteByte('\n')
	if s.Error != "" {
		fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(s.Error, "\n", "\n  "))
	}
	for _, text := range s.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", text)
	}
	for i := range s.Cases {
		s.Cases[i].text(b, s.File)
	}
	if s.reachesTooLittle() {
		fmt.Fprintf(b, "  coverage is %d %%, wanted are %d %%\n", s.Coverage.Percent(), s.MinimumCoverage)
	}
	if s.Coverage != nil {
		for _, p := range s.Coverage.NotReached {
			fmt.Fprintf(b, "  not reached: %s %s\n", p.Policy, p.Place)
		}
	}
}

func (c *CaseReport) text(b *strings.Builder, file string) {
	if c.Passed() {
		return
	}
	fmt.Fprintf(b, "  %s:%d: %s\n", file, c.Line, c.Name)
	for _, line := range c.faults() {
		fmt.Fprintf(b, "    %s\n", line)
	}
}

func (c *CaseReport) faults() []string {
	var out []string
	if c.Error != "" {
		out = append(out, c.Error)
	}
	for _, d := range c.Differences {
		out = append(out, fmt.Sprintf("%s: want %s, got %s", d.Field, d.Want, d.Got))
	}
	return out
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Passed bool `json:"passed"`
		*Report
	}{r.Passed(), r})
}

// The elements of JUnit's XML that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		File     string      `xml:"file,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string      `xml:"name,attr"`
		Class   string      `xml:"classname,attr"`
		File    string      `xml:"file,attr"`
		Line    int         `xml:"line,attr,omitempty"`
		Failure *junitFault `xml:"failure,omitempty"`
		Error   *junitFault `xml:"error,omitempty"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report for CI systems. A suite that could not be run, or reaches too little, has a case of its
// own for that, because these systems count cases.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{}
	for i := range r.Suites {
		s := r.Suites[i].junit()
		all.Suites = append(all.Suites, s)
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *SuiteReport) junit() junitSuite {
	out := junitSuite{Name: s.Name, File: s.File}
	add := func(c junitCase) {
		c.Class, c.File = s.Name, s.File
		out.Tests++
		if c.Failure != nil {
			out.Failures++
		}
		if c.Error != nil {
			out.Errors++
		}
		out.Cases = append(out.Cases, c)
	}
	for i := range s.Cases {
		c := junitCase{Name: s.Cases[i].Name, Line: s.Cases[i].Line}
		switch faults := s.Cases[i].faults(); {
		case s.Cases[i].Error != "":
			c.Error = &junitFault{Message: "no verdict", Text: strings.Join(faults, "\n")}
		case faults != nil:
			c.Failure = &junitFault{Message: faults[0], Text: strings.Join(faults, "\n")}
		}
		add(c)
	}
	if s.Error != "" {
		add(junitCase{Name: "the suite can be run", Error: &junitFault{Message: "the suite cannot be run", Text: s.Error}})
	}
	if s.reachesTooLittle() {
		text := fmt.Sprintf("coverage is %d %%, wanted are %d %%", s.Coverage.Percent(), s.MinimumCoverage)
		add(junitCase{Name: "the suite reaches enough of its policies", Failure: &junitFault{Message: text, Text: text}})
	}
	return out
}
