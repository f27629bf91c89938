package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

type decisionPage struct {
	audit.Marked
	Answers []answered
	Asked   []asked
	// Fields are the rest of the record, in its order.
	Fields []field
	Raw    string
	// Unlabelled says why this person gives no label; empty: they may.
	Unlabelled string
	// Message that the person had written before the form came back.
	Message string
}

type field struct{ Name, Value string }

// answered is an answer of a decider, with a bar for each probability in it.
type answered struct {
	Question string
	// Choice or level, or that the policy answered by itself.
	Text string
	Bars []bar
}

type asked struct {
	audit.Asked
	Answers []answered
}

func (h *Handler) decision(w http.ResponseWriter, r *http.Request) {
	if id, ok := h.decisionOf(w, r); ok {
		h.showDecision(w, r, http.StatusOK, id, "", "")
	}
}

// decisionOf gives the id of the decision that a request is about. It answers if it says false.
func (h *Handler) decisionOf(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	if h.hidesRecords(w, r) {
		return "", false
	}
	id = r.PathValue("id")
	if !isDecisionID(id) {
		h.fail(w, r, http.StatusNotFound, "That is no id of a decision.")
		return "", false
	}
	return id, true
}

// noSuchDecision is what a log says that has none.
const noSuchDecision = "The log has no decision with this id."

func (h *Handler) showDecision(w http.ResponseWriter, r *http.Request, status int, id, message, problem string) {
	unlabelled, _, err := h.noLabels(r.Context())
	if h.signsOut(w, r, err) {
		return
	}
	done, ok := h.mayReadNow(w, r)
	if !ok {
		return
	}
	defer done()
	found, ok, err := h.Records.Find(r.Context(), id)
	switch {
	case err != nil:
		h.unreadable(w, r, "the decision record", err)
		return
	case !ok:
		h.fail(w, r, http.StatusNotFound, noSuchDecision)
		return
	}
	page, err := newDecision(&found)
	if err != nil {
		h.unreadable(w, r, "the decision record", err)
		return
	}
	page.Unlabelled, page.Message = unlabelled, message
	f := frame{Title: string(found.Outcome) + " " + found.Tool, Here: "decisions", Problem: problem, Body: page}
	if r.Method == http.MethodGet {
		f.Notice = labelled(r.Context(), r.URL.Query().Get("labelled"), found.Labels)
	}
	h.show(w, r, status, "decision", f)
}

// isDecisionID: ids are UUIDs. Nothing else is looked for in a log.
func isDecisionID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for _, c := range id {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// shownApart are the fields that the page shows in a way of their own.
var shownApart = []string{"outcome", "reason", "by", "tool", "obligations", "wouldBe", "answers", "deciders", "policies", "time"}

func newDecision(found *audit.Marked) (decisionPage, error) {
	e := &found.Entry
	raw, err := json.Marshal(e)
	if err != nil {
		return decisionPage{}, err
	}
	tree, err := readArguments(raw, nil, nil)
	if err != nil {
		return decisionPage{}, err
	}
	p := decisionPage{Marked: *found, Answers: answersOf(e.Answers), Raw: string(raw)}
	for i := range e.Deciders {
		p.Asked = append(p.Asked, asked{e.Deciders[i], answersOf(e.Deciders[i].Answers)})
	}
	for i := range tree.Root.Children {
		n := &tree.Root.Children[i]
		if name := plain(n.Name); !slices.Contains(shownApart, name) {
			p.Fields = append(p.Fields, fieldsOf(name, n)...)
		}
	}
	return p, nil
}

// fieldsOf lays a value out as one line for each leaf.
func fieldsOf(name string, n *node) []field {
	if len(n.Children) == 0 {
		if n.Kind == "object" || n.Kind == "array" {
			return nil
		}
		return []field{{name, plain(n.Value)}}
	}
	var out []field
	for i := range n.Children {
		out = append(out, fieldsOf(name+"."+plain(n.Children[i].Name), &n.Children[i])...)
	}
	return out
}

func plain(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

func answersOf(all map[string]review.Answer) []answered {
	var out []answered
	for question, a := range all {
		one := answered{Question: question, Text: a.Choice}
		if a.FromCode {
			one.Text = strings.TrimSpace(one.Text + " answered by the policy's table of effects")
		}
		if a.Probability != nil {
			one.Bars = append(one.Bars, bar{Question: "yes", Text: percent(*a.Probability) + " %", Share: *a.Probability, HasBar: true})
		}
		if a.Score != nil {
			one.Text = strings.TrimSpace(one.Text + " level " + strconv.FormatFloat(*a.Score, 'f', 2, 64))
		}
		for option, p := range a.Probabilities {
			one.Bars = append(one.Bars, bar{Question: option, Text: percent(p) + " %", Share: p, HasBar: true})
		}
		slices.SortFunc(one.Bars, func(x, y bar) int { return strings.Compare(x.Question, y.Question) })
		out = append(out, one)
	}
	slices.SortFunc(out, func(x, y answered) int { return strings.Compare(x.Question, y.Question) })
	return out
}
