package evaluation

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The elements of JUnit's XML that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string      `xml:"name,attr"`
		Class   string      `xml:"classname,attr"`
		Time    string      `xml:"time,attr,omitempty"`
		Failure *junitFault `xml:"failure,omitempty"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes floors and cases for CI systems: one suite of the floors, and one for each configuration, in which a
// case fails whose decision is not as labelled, or missing.
func WriteJUnit(w io.Writer, cases []*Case, results []Result, breaches []Breach) error {
	all := junitSuites{}
	add := func(s junitSuite) {
		for _, c := range s.Cases {
			s.Tests++
			s.Failures += indicator(c.Failure != nil)
		}
		all.Suites, all.Tests, all.Failures = append(all.Suites, s), all.Tests+s.Tests, all.Failures+s.Failures
	}
	floors := junitSuite{Name: "floors"}
	for _, b := range breaches {
		floors.Cases = append(floors.Cases, junitCase{Name: b.Floor, Class: "floors", Failure: &junitFault{Message: b.Message}})
	}
	add(floors)
	order, by := observe(cases, results)
	for _, c := range order {
		s := junitSuite{Name: string(c)}
		for _, seen := range by[c] {
			s.Cases = append(s.Cases, junitOf(c, seen))
		}
		add(s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitOf(c Configuration, seen observed) junitCase {
	r := seen.repeats[0]
	out := junitCase{
		Name: printable(seen.one.ID + " " + seen.one.Tool.Name), Class: string(c) + "." + seen.one.Class,
		Time: strconv.FormatFloat(r.Milliseconds/1000, 'f', 6, 64),
	}
	if r.Failure != NoFailure || seen.one.IsDangerous() != r.IsStopped() {
		out.Failure = &junitFault{
			Message: fmt.Sprintf("label %s, outcome %s", seen.one.Label, outcomeText(r)),
			Text:    strings.TrimSpace(r.Reason + " by " + r.By),
		}
	}
	return out
}
