package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
)

const header = "TOOL\tCLASS\tOUTCOME\tBY\tREASON\tANSWERS\tMS"

// showSamples sends the sample calls and prints a table for each namespace. It returns how many were not as expected of the
// embedded decider, and marks them where that is the one that is shown.
func showSamples(ctx context.Context, url string, index []entry, tokens map[string]string, mark bool) (int, error) {
	wrong := 0
	var namespaces []string
	for _, e := range index {
		if !slices.Contains(namespaces, e.Caller.Namespace) {
			namespaces = append(namespaces, e.Caller.Namespace)
		}
	}
	for _, namespace := range namespaces {
		fmt.Printf("\n== namespace %s\n", namespace)
		t := table()
		for _, e := range index {
			if e.Caller.Namespace != namespace {
				continue
			}
			call, err := readCall(filepath.Join(calls, e.File))
			if err != nil {
				return 0, err
			}
			response, err := ask(ctx, url, tokens[e.Caller.String()], call)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", e.File, err)
			}
			note := ""
			if string(response.Outcome) != e.Want.Outcome || e.Want.Reason != "" && response.Reason != e.Want.Reason {
				wrong++
				if mark {
					note = fmt.Sprintf("  <- expected %s %s (%s)", e.Want.Outcome, e.Want.Reason, e.File)
				}
			}
			row(t, call.Request.Tool.Name, response, note)
		}
		if err := t.Flush(); err != nil {
			return 0, err
		}
	}
	return wrong, nil
}

func table() *tabwriter.Writer {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, header)
	return t
}

func row(t io.Writer, tool string, r *review.Response, mark string) {
	class := r.Decision.Class
	if class == "" {
		class = "-"
	}
	answers := answersOf(r.Decision.Answers)
	if answers == "" {
		answers = "-"
	}
	_, _ = fmt.Fprintf(t, "%q\t%s\t%s\t%s\t%s\t%s\t%.2f%s\n", tool, class, r.Outcome, r.By, r.Reason, answers, r.Decision.Milliseconds, mark)
}

// answersOf writes answers in one line, with the probability of what was chosen.
func answersOf(answers map[string]review.Answer) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		text := name + " " + answers[name].String()
		if p, ok := answers[name].Probabilities[answers[name].Choice]; ok {
			text += fmt.Sprintf(" %.2f", p)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// showPublic sends public cases, which their authors have labelled, and prints how the decisions compare.
func showPublic(ctx context.Context, url string, cases []*evaluation.Case, tokens map[string]string) error {
	fmt.Printf("\n== %d public cases, labelled by the authors of benchmarks (%s)\n", len(cases), publicCases)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "LABEL\t"+header)
	var count [2][2]int // by label: stopped, allowed
	for i := range cases {
		response, err := ask(ctx, url, tokens[publicCaller.String()], cases[i].Review())
		if err != nil {
			return fmt.Errorf("%s: %w", cases[i].ID, err)
		}
		_, _ = fmt.Fprint(t, cases[i].Label, "\t")
		row(t, cases[i].Tool.Name, response, "")
		count[index(cases[i].IsDangerous())][index(response.Outcome == review.Allow)]++
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Printf("\ndangerous calls stopped: %d of %d   benign calls stopped: %d of %d   (a question to a person counts as stopped)\n",
		count[1][0], count[1][0]+count[1][1], count[0][0], count[0][0]+count[0][1])
	return nil
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func ask(ctx context.Context, url, token string, call *review.ToolCallReview) (*review.Response, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	call.Request.UID = id.String()
	body, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+review.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var out review.ToolCallReview
	if err := json.Unmarshal(data, &out); err != nil || answer.StatusCode != http.StatusOK || out.Response == nil {
		return nil, fmt.Errorf("HTTP %d: %s", answer.StatusCode, data)
	}
	return out.Response, nil
}
