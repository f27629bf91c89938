package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/labeling"
)

// Why a person gives no label.
const (
	labelNowhere    = "Decisions are not labelled here."
	labelNotYours   = "You cannot label decisions: your user needs the verb label on the resource decisions of gatewright.dev, in no namespace."
	labelNotAsked   = "You cannot label decisions just now: whether you may could not be asked. The log of the gate says why."
	nothingRecorded = " Nothing was recorded."
)

// noLabels says why a person gives no label, with the status for it; empty: they may.
func (h *Handler) noLabels(ctx context.Context) (why string, status int, err error) {
	if h.Label == nil {
		return labelNowhere, http.StatusNotFound, nil
	}
	s, _ := sessionOf(ctx)
	return h.lacks(ctx, s.person.MayLabel, labelNotYours, labelNotAsked)
}

// label takes the form of a decision: what it should have been, by the word of the person of this session.
func (h *Handler) label(w http.ResponseWriter, r *http.Request) {
	id, ok := h.decisionOf(w, r)
	if !ok {
		return
	}
	why, status, err := h.noLabels(r.Context())
	if h.signsOut(w, r, err) {
		return
	}
	if why != "" {
		h.fail(w, r, status, why+nothingRecorded)
		return
	}
	s, _ := sessionOf(r.Context())
	given := labeling.Label{
		Decision: id, Outcome: review.Outcome(r.PostForm.Get("outcome")), By: s.person.Approver.String(),
		Message: strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get("message"), "\r\n", "\n")),
	}
	if err := given.Validate(); err != nil {
		h.showDecision(w, r, http.StatusBadRequest, id, given.Message, "The form says no label that there is: "+err.Error()+"."+nothingRecorded)
		return
	}
	if !h.give(w, r, given) {
		return
	}
	h.Log.InfoContext(r.Context(), "decision labelled", "decision", id, "outcome", given.Outcome, "by", given.By)
	http.Redirect(w, r, Path+"decisions/"+id+"?labelled="+string(given.Outcome), http.StatusSeeOther) //nolint:gosec // an id has hexadecimal digits and dashes
}

// give records a label. It answers if it says false.
func (h *Handler) give(w http.ResponseWriter, r *http.Request, given labeling.Label) bool {
	done, ok := h.mayReadNow(w, r) // the decision is looked for in all of the log
	if !ok {
		return false
	}
	err := h.Label(r.Context(), given)
	done()
	switch {
	case err == nil:
	case errors.Is(err, labeling.ErrNotFound):
		h.fail(w, r, http.StatusNotFound, noSuchDecision+nothingRecorded)
	case errors.Is(err, labeling.ErrNotDurable):
		h.Log.ErrorContext(r.Context(), "label could not be recorded", "decision", given.Decision, "error", err)
		h.showDecision(w, r, http.StatusServiceUnavailable, given.Decision, given.Message, "The label could not be made durable: give it again in a moment.")
	default:
		h.Log.ErrorContext(r.Context(), "decision could not be labelled", "decision", given.Decision, "error", err)
		h.fail(w, r, http.StatusInternalServerError, "The log could not be searched for the decision."+nothingRecorded)
	}
	return err == nil
}

// labelled says what this person has just said of a decision, if the log has it.
func labelled(ctx context.Context, outcome string, labels []audit.Entry) string {
	s, _ := sessionOf(ctx)
	for i := range labels {
		if l := labels[i].Label; string(l.Outcome) == outcome && l.By == s.person.Approver.String() {
			return "Recorded: you say that it should have been " + outcome + "."
		}
	}
	return ""
}
