package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/approval"
)

// row is a call in a list.
type row struct {
	approval.Approval
	// Why are the reasons to ask, in short.
	Why []string
	// Alarm says that the list itself should warn: somebody claims an approval, or values came from nowhere.
	Alarm string
	// SameSession as the call that is shown beside it.
	SameSession bool
}

func newRow(a *approval.Approval) row {
	out := row{Approval: *a}
	for _, r := range a.Call.Reasons {
		if !slices.Contains(out.Why, r.Reason) {
			out.Why = append(out.Why, r.Reason)
		}
	}
	if len(a.Call.InbandClaims) > 0 {
		out.Alarm = "somebody claims it was approved"
	}
	return out
}

type queuePage struct {
	Pending []row
	// Done are those that were decided or have ended lately, newest first.
	Done    []row
	Version string
}

// doneShown is how many calls that no longer wait are listed.
const doneShown = 20

func (h *Handler) queue(w http.ResponseWriter, r *http.Request) {
	all, err := h.mine(r.Context()).List(r.Context())
	if err != nil {
		h.unreadable(w, r, "approvals", err)
		return
	}
	f := frame{Title: "Waiting calls", Here: "queue", Refresh: true}
	f.Notice = h.decided(r.Context(), r.URL.Query().Get("decided"))
	f.Body = newQueue(all)
	h.show(w, r, http.StatusOK, "queue", f)
}

func newQueue(all []approval.Approval) queuePage {
	var p queuePage
	for i := range all {
		if all[i].State == approval.Pending {
			p.Pending = append(p.Pending, newRow(&all[i]))
		} else {
			p.Done = append(p.Done, newRow(&all[i]))
		}
	}
	slices.SortStableFunc(p.Pending, func(x, y row) int { return x.Call.ExpiresAt.Compare(y.Call.ExpiresAt) })
	slices.SortStableFunc(p.Done, func(x, y row) int { return y.lastChange().Compare(x.lastChange()) })
	p.Done = p.Done[:min(len(p.Done), doneShown)]
	return p
}

// decided says what became of a call that this person has just decided.
func (h *Handler) decided(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	a, err := h.mine(ctx).Get(ctx, name)
	if err != nil || a.Decision == nil {
		return ""
	}
	switch a.Decision.Outcome {
	case approval.Approved:
		return a.Name + " is approved: the call may run once, when the agent makes it again."
	case approval.Rejected:
		return a.Name + " is rejected: the agent is told when it makes the call again."
	default:
		return ""
	}
}

type callPage struct {
	row
	Arguments arguments
	// Unread says why the arguments could not be laid out: then only their text is shown, and nothing can be approved.
	Unread string
	Words  words
	Bars   []bar
	// Others are the other calls of the same caller that wait, those of the same session first.
	Others []row
	// Message that the person had written before the form came back.
	Message string
}

// words are what the end user is said to have said.
type words struct {
	// By is the front door that has signed them; empty: the agent claims them.
	By      string
	Request string
	Earlier []string
	Omitted int
}

// bar is an answer of a decider.
type bar struct {
	Question, Text string
	// Share from 0 to 1, if the number is a probability.
	Share  float64
	HasBar bool
}

func (h *Handler) call(w http.ResponseWriter, r *http.Request) {
	h.showCall(w, r, http.StatusOK, r.PathValue("name"), "", "")
}

func (h *Handler) showCall(w http.ResponseWriter, r *http.Request, status int, name, message, problem string) {
	a, err := h.mine(r.Context()).Get(r.Context(), name)
	if errors.Is(err, approval.ErrNotFound) {
		h.fail(w, r, http.StatusNotFound, "There is no such approval. It goes an hour after it has ended.")
		return
	}
	if err != nil {
		h.unreadable(w, r, "approvals", err)
		return
	}
	all, err := h.mine(r.Context()).List(r.Context())
	if err != nil {
		h.unreadable(w, r, "approvals", err)
		return
	}
	page := newCall(&a, all)
	page.Message = message
	h.show(w, r, status, "call", frame{Title: a.Call.Tool + " " + a.Name, Here: "queue", Problem: problem, Body: page})
}

func newCall(a *approval.Approval, all []approval.Approval) callPage {
	c := &a.Call
	p := callPage{row: newRow(a), Words: words{By: c.AttestedBy, Request: c.UserRequest, Earlier: c.EarlierTurns, Omitted: c.OmittedTurns}}
	var err error
	if p.Arguments, err = readArguments(c.Arguments, c.Sources, c.Sensitive); err != nil {
		p.Unread = err.Error()
	}
	p.Bars = barsOf(c)
	for i := range all {
		o := &all[i]
		if o.ID == a.ID || o.State != approval.Pending || o.Call.Caller != c.Caller {
			continue
		}
		other := newRow(o)
		other.SameSession = o.Call.Session != "" && o.Call.Session == c.Session
		p.Others = append(p.Others, other)
	}
	slices.SortStableFunc(p.Others, func(x, y row) int {
		if x.SameSession != y.SameSession {
			return cmp.Compare(fromBool(y.SameSession), fromBool(x.SameSession))
		}
		return x.Call.ExpiresAt.Compare(y.Call.ExpiresAt)
	})
	return p
}

func fromBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// barsOf gives the answers in the order of their questions. The number behind a level is no probability and has no bar.
func barsOf(c *approval.Call) []bar {
	var out []bar
	for question, text := range c.Answers {
		p, ok := c.Probabilities[question]
		out = append(out, bar{Question: question, Text: text, Share: p, HasBar: ok && p >= 0 && p <= 1 && !strings.HasPrefix(text, "level ")})
	}
	slices.SortFunc(out, func(x, y bar) int { return strings.Compare(x.Question, y.Question) })
	return out
}

// decide takes the form of a call. What counts is the id that the page has shown, never what stands under the name by now.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request) {
	s, _ := sessionOf(r.Context())
	name, message := r.PathValue("name"), strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get("message"), "\r\n", "\n"))
	outcome := map[string]approval.State{"approve": approval.Approved, "reject": approval.Rejected}[r.PostForm.Get("outcome")]
	id := r.PostForm.Get("approval")
	if outcome == "" || id == "" {
		h.fail(w, r, http.StatusBadRequest, "The form says neither approve nor reject of a call that was shown. Nothing has happened.")
		return
	}
	err := h.mine(r.Context()).Decide(r.Context(), name, approval.Decision{Outcome: outcome, By: s.person.Approver, Message: message, ID: id})
	if err != nil {
		h.undecided(w, r, name, message, err)
		return
	}
	h.Log.InfoContext(r.Context(), "approval decided", "approval", name, "outcome", outcome, "by", s.person.Approver.String())
	if a, err := h.mine(r.Context()).Get(r.Context(), name); err == nil && h.Decided != nil {
		h.Decided(&a)
	}
	http.Redirect(w, r, Path+"?decided="+url.QueryEscape(name), http.StatusSeeOther)
}

// undecided shows the call again, and why nothing was decided.
func (h *Handler) undecided(w http.ResponseWriter, r *http.Request, name, message string, err error) {
	if h.signsOut(w, r, err) {
		return
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		h.showCall(w, r, http.StatusForbidden, name, message, refused.Text+" Nothing was changed by you.")
		return
	}
	for _, known := range []struct {
		err    error
		status int
		text   string
	}{
		{approval.ErrNotFound, http.StatusNotFound, ""},
		{approval.ErrDecided, http.StatusConflict, "Somebody has decided this call before you."},
		{approval.ErrUsed, http.StatusConflict, "This approval was given and used before."},
		{approval.ErrExpired, http.StatusConflict, "The time of this call was over before you decided."},
		{approval.ErrSelfApproval, http.StatusForbidden, "You cannot approve a call that is made on your own behalf."},
		{approval.ErrChannel, http.StatusForbidden, "The policy does not take an approval from this page. You can still reject."},
		{approval.ErrTooLarge, http.StatusBadRequest, "The message is longer than 4 KiB."},
		{approval.ErrBadDecision, http.StatusConflict, "This is not the call that you were shown: another stands under its name. Look again."},
	} {
		if errors.Is(err, known.err) {
			h.showCall(w, r, known.status, name, message, known.text+" Nothing was changed by you.")
			return
		}
	}
	h.Log.ErrorContext(r.Context(), "approval could not be decided", "approval", name, "error", err)
	h.showCall(w, r, http.StatusInternalServerError, name, message, "The decision could not be kept. Nothing has happened: try again.")
}
