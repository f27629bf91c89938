// Package approverapi is where people, and the front doors that speak for them, see what waits and decide it, over HTTP. Who may
// send a request is for whoever serves it to say.
package approverapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Path is where approvals are: GET lists, GET of a name shows one, POST to a name decides.
const Path = "/v1alpha1/approvals"

// Verdict is what a person says about a call.
type Verdict struct {
	// Outcome is Approve or Reject. Empty with Evidence, which says it.
	Outcome string `json:"outcome,omitempty"`
	// Message is handed on to the agent.
	Message string `json:"message,omitempty"`
	// ID of the approval that the person saw. If it is given and another stands under the name, nothing is decided.
	ID string `json:"id,omitempty"`
	// Evidence is what an end user's front door has signed, as a compact JWS.
	Evidence string `json:"evidence,omitempty"`
}

// Shown is an approval as a person sees it.
type Shown struct {
	approval.Approval
	// AlsoPending are the other calls of the same caller that wait, those of the same session first.
	AlsoPending []Other `json:"alsoPending,omitempty"`
}

// Other is another call that waits.
type Other struct {
	Name string `json:"name"`
	Tool string `json:"tool"`
	// Message asks in plain words.
	Message     string    `json:"message,omitempty"`
	SameSession bool      `json:"sameSession"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// Approvals are what waits and was decided.
type Approvals interface {
	Get(ctx context.Context, name string) (approval.Approval, error)
	List(ctx context.Context) ([]approval.Approval, error)
	Decide(ctx context.Context, name string, d approval.Decision) error
}

// Options of New.
type Options struct {
	Approvals Approvals
	// Who says who has sent a request. Nil: nobody decides in their own name, only with evidence.
	Who func(context.Context) approval.Approver
	// Decided is told what a person has just said. Nil: nobody is.
	Decided func(*approval.Approval)
	// Clock is the system's if nil.
	Clock clock.PassiveClock
	// Log gets what was decided, and what could not be.
	Log *slog.Logger
}

// API answers.
type API struct{ options Options }

// New makes one.
func New(o Options) *API {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &API{o}
}

// Refuse answers with an error object.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	Answer(w, status, review.Error{Code: code, Message: message})
}

// Answer answers with JSON that nobody keeps.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the person is gone if this fails
}

// List answers with all approvals, or with those that a query selects by state and caller.
func (a *API) List(w http.ResponseWriter, r *http.Request) {
	all, err := a.options.Approvals.List(r.Context())
	if err != nil {
		a.unreadable(w, r, err)
		return
	}
	query := r.URL.Query()
	for _, f := range []struct {
		name string
		of   func(a *approval.Approval) string
	}{
		{"state", func(a *approval.Approval) string { return string(a.State) }},
		{"caller", func(a *approval.Approval) string { return a.Call.Caller }},
	} {
		if query.Has(f.name) {
			all = slices.DeleteFunc(all, func(a approval.Approval) bool { return f.of(&a) != query.Get(f.name) })
		}
	}
	Answer(w, http.StatusOK, all)
}

func (a *API) unreadable(w http.ResponseWriter, r *http.Request, err error) {
	a.options.Log.ErrorContext(r.Context(), "approvals could not be read", "error", err)
	Refuse(w, http.StatusInternalServerError, "Internal", "approvals could not be read")
}

// Show answers with the approval that the path names, and with what else its caller waits for.
func (a *API) Show(w http.ResponseWriter, r *http.Request) {
	shown, err := a.view(r.Context(), r.PathValue("name"))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		Refuse(w, http.StatusNotFound, "NotFound", "there is no such approval")
	case err != nil:
		a.unreadable(w, r, err)
	default:
		Answer(w, http.StatusOK, shown)
	}
}

func (a *API) view(ctx context.Context, name string) (*Shown, error) {
	found, err := a.options.Approvals.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := a.options.Approvals.List(ctx)
	if err != nil {
		return nil, err
	}
	return &Shown{Approval: found, AlsoPending: Others(&found, all)}, nil
}

// Others are the calls of the same caller that wait, those of the same session first, then those that end first.
func Others(of *approval.Approval, all []approval.Approval) []Other {
	var out []Other
	for i := range all {
		o := &all[i]
		if o.ID == of.ID || o.State != approval.Pending || o.Call.Caller != of.Call.Caller {
			continue
		}
		out = append(out, Other{
			Name: o.Name, Tool: o.Call.Tool, Message: o.Call.Message, ExpiresAt: o.Call.ExpiresAt,
			SameSession: o.Call.Session != "" && o.Call.Session == of.Call.Session,
		})
	}
	slices.SortStableFunc(out, func(x, y Other) int {
		if x.SameSession != y.SameSession {
			return map[bool]int{true: -1, false: 1}[x.SameSession]
		}
		return x.ExpiresAt.Compare(y.ExpiresAt)
	})
	return out
}

// MaxVerdict bounds in bytes what a person sends: a message, and evidence of a front door.
const MaxVerdict = 24 << 10

// Decide decides the approval that the path names, and shows it to whoever may see it: who decides in their own name. Who
// brings evidence sees the approval itself and nothing beside it.
func (a *API) Decide(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxVerdict))
	if err != nil {
		Refuse(w, http.StatusRequestEntityTooLarge, "TooLarge", "the message is too long")
		return
	}
	var v Verdict
	if err := strictjson.Decode(data, strictjson.Limits{}, &v); err != nil {
		Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	name := r.PathValue("name")
	decision, err := a.decision(r.Context(), name, &v)
	if err == nil {
		err = a.options.Approvals.Decide(r.Context(), name, decision)
	}
	if err != nil {
		a.undecided(w, r, name, err)
		return
	}
	a.options.Log.InfoContext(r.Context(), "approval decided", "approval", name, "outcome", decision.Outcome, "by", decision.By.String())
	a.decided(w, r, name)
}

func (a *API) decided(w http.ResponseWriter, r *http.Request, name string) {
	found, err := a.options.Approvals.Get(r.Context(), name)
	if err == nil && a.options.Decided != nil {
		a.options.Decided(&found)
	}
	if err == nil && a.options.Who == nil {
		Answer(w, http.StatusOK, Shown{Approval: found})
		return
	}
	a.Show(w, r) // which says what is wrong
}

var (
	errOutcome  = errors.New("outcome is Approve or Reject; with evidence it stays empty, and so does the message")
	errEvidence = errors.New("only evidence of a front door decides here: decide in your own name at the API server")
)

// decision is what a person has said, in the name of whoever sent it or, with evidence, of whoever its front door names.
func (a *API) decision(ctx context.Context, name string, v *Verdict) (approval.Decision, error) {
	if v.Evidence != "" {
		if v.Outcome != "" || v.Message != "" {
			return approval.Decision{}, errOutcome // two voices
		}
		found, err := a.options.Approvals.Get(ctx, name)
		if err != nil {
			return approval.Decision{}, err
		}
		return found.Call.Approvers.Read(v.Evidence, found.ID, &found.Call, a.options.Clock.Now())
	}
	outcome := map[string]approval.State{"Approve": approval.Approved, "Reject": approval.Rejected}[v.Outcome]
	switch {
	case outcome == "":
		return approval.Decision{}, errOutcome
	case a.options.Who == nil:
		return approval.Decision{}, errEvidence
	}
	return approval.Decision{Outcome: outcome, By: a.options.Who(ctx), Message: v.Message, ID: v.ID}, nil
}

// ErrOverloaded is what Approvals give while they decide too much at once.
var ErrOverloaded = errors.New("too many decisions are looked at: send it again in a moment")

// undecided says why nothing was decided, in words for whoever sent it: the error itself is worded for a log.
func (a *API) undecided(w http.ResponseWriter, r *http.Request, name string, err error) {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(errOutcome):
		Refuse(w, http.StatusBadRequest, "InvalidField", errOutcome.Error())
	case is(errEvidence):
		Refuse(w, http.StatusBadRequest, "InvalidField", errEvidence.Error())
	case is(approval.ErrNotFound):
		Refuse(w, http.StatusNotFound, "NotFound", "there is no such approval")
	case is(approval.ErrExpired):
		Refuse(w, http.StatusConflict, "Decided", "its time is over, so nobody can decide it any more")
	case is(approval.ErrDecided):
		Refuse(w, http.StatusConflict, "Decided", "somebody has decided it before, and a decision is made once")
	case is(approval.ErrUsed):
		Refuse(w, http.StatusConflict, "Decided", "it was approved and used before")
	case is(approval.ErrSelfApproval):
		Refuse(w, http.StatusForbidden, "NotYours", approval.ErrSelfApproval.Error())
	case is(approval.ErrChannel):
		Refuse(w, http.StatusForbidden, "NotYours", approval.ErrChannel.Error())
	case is(approval.ErrTooLarge):
		Refuse(w, http.StatusBadRequest, "BadRequest", "the message is longer than "+strconv.Itoa(approval.MaxMessage)+" bytes: shorten it")
	case is(approval.ErrBadEvidence):
		Refuse(w, http.StatusBadRequest, "BadRequest", approval.ErrBadEvidence.Error())
	case is(approval.ErrBadDecision):
		Refuse(w, http.StatusBadRequest, "BadRequest", "this is not the call that you were shown, or the decision names nobody: look again")
	case is(ErrOverloaded):
		Refuse(w, http.StatusServiceUnavailable, "Overloaded", ErrOverloaded.Error())
	default:
		a.options.Log.ErrorContext(r.Context(), "approval could not be decided", "approval", name, "error", err)
		Refuse(w, http.StatusInternalServerError, "Internal", "the decision could not be kept: nothing has happened")
	}
}
