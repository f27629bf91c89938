package evaluation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// Header is the first line of kept results: what was run. Only a run that agrees in all of it may go on.
type Header struct {
	// Format of the file.
	Format string `json:"format"`
	// CasesDigest of the case file.
	CasesDigest string `json:"casesDigest"`
	// PoliciesDigest of the policies, or empty for a gate at an address.
	PoliciesDigest string `json:"policiesDigest,omitempty"`
	// URL of the gate, if it is at an address.
	URL            string          `json:"url,omitempty"`
	Caller         string          `json:"caller,omitempty"`
	Configurations []Configuration `json:"configurations"`
	Repeats        int             `json:"repeats"`
	Concurrency    int             `json:"concurrency"`
	// Temperature at which generative deciders drew their answers.
	Temperature float64 `json:"temperature,omitempty"`
	// Version of the binary that judged.
	Version string `json:"version"`
}

// journalFormat is the version of the file.
const journalFormat = "gatewright-evaluation/1"

// Journal keeps results as they arrive, one JSON object a line, so that an interrupted run can go on.
type Journal struct{ file *os.File }

// OpenJournal opens or makes a file of results and returns those that it holds. A last line that was cut off is dropped.
// A file of another run is refused, and the error says in what it differs.
func OpenJournal(path string, h Header, cases []*Case) (*Journal, []Result, error) {
	h.Format = journalFormat
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	results, err := resume(f, h, cases)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return &Journal{f}, results, nil
}

func resume(f *os.File, h Header, cases []*Case) ([]Result, error) {
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) == 0 {
		return nil, begin(f, h)
	}
	lines := bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	if err := h.agrees(lines[0]); err != nil {
		return nil, err
	}
	results := make([]Result, len(lines)-1)
	for i, line := range lines[1:] {
		if err := json.Unmarshal(line, &results[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	if err := checkDone(results, cases, h.Configurations, h.Repeats); err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(len(whole))); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekEnd)
	return results, err
}

func begin(f *os.File, h Header) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return writeLine(f, h)
}

// agrees names the first field in which the run differs from the one that is kept.
func (h Header) agrees(line []byte) error {
	var kept Header
	if err := json.Unmarshal(line, &kept); err != nil || kept.Format != journalFormat {
		return errors.New("is no file of kept results: name another with --resume")
	}
	have, want := reflect.ValueOf(kept), reflect.ValueOf(h)
	for i := range want.NumField() {
		if !reflect.DeepEqual(have.Field(i).Interface(), want.Field(i).Interface()) {
			name, _, _ := strings.Cut(want.Type().Field(i).Tag.Get("json"), ",")
			return fmt.Errorf("%w: %s was %v and is %v: run with what it was begun with, or name another file", errOtherRun, name,
				have.Field(i).Interface(), want.Field(i).Interface())
		}
	}
	return nil
}

// Keep appends a result.
func (j *Journal) Keep(r Result) error { return writeLine(j.file, r) }

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

func writeLine(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
