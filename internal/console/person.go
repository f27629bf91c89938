package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gatewright.dev/gatewright/internal/approval"
)

// Person is who has signed in, where what people see and do depends on who they are.
type Person struct {
	Approver approval.Approver
	// Approvals as this person may see them and decide about them. They give ErrSignedOut or a Refusal where that is why.
	Approvals Approvals
	// MayRead says whether the person may see the decision record. Nil, where people sign in with tokens of their own: no.
	// Nil elsewhere: whoever has signed in may.
	MayRead func(ctx context.Context) (bool, error)
	// MayLabel says whether the person may say what decisions should have been. Nil, where people sign in with tokens of
	// their own: no. Nil elsewhere: whoever has signed in may.
	MayLabel func(ctx context.Context) (bool, error)
	// Until is when the session ends at the latest; zero: when all do.
	Until time.Time
}

var (
	// ErrUnknown says that nobody is known by what was given to sign in with.
	ErrUnknown = errors.New("nobody is known by this")
	// ErrSignedOut says that what a person has signed in with is taken no longer. It ends the session.
	ErrSignedOut = errors.New("what the person has signed in with is taken no longer")
)

// Refusal says that this person may not do it.
type Refusal struct {
	// Text says why, to the person.
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// isOfPerson says that people sign in with tokens of their own.
func (h *Handler) isOfPerson() bool { return h.SignIn != nil }

// person finds out who holds a secret.
func (h *Handler) person(ctx context.Context, secret string) (Person, error) {
	if h.isOfPerson() {
		return h.SignIn(ctx, secret)
	}
	who, ok := h.Identify(secret)
	if !ok {
		return Person{}, ErrUnknown
	}
	return Person{Approver: who}, nil
}

// watchOf looks at what a person may see. Those who all see the same share one.
func (h *Handler) watchOf(p *Person) *watch {
	if !h.isOfPerson() {
		return h.watch
	}
	w := newWatch(p.Approvals, h.Records, h.Clock)
	w.mayRead, w.fresh = p.MayRead, freshOfOne
	return w
}

// mine are the approvals as the person of a request sees them.
func (h *Handler) mine(ctx context.Context) Approvals {
	if !h.isOfPerson() {
		return h.Approvals
	}
	s, _ := sessionOf(ctx)
	return s.person.Approvals
}

// Why there is no panel of decisions.
const (
	noFile   = "The decision record of this gate is not in a file, so it cannot be read here."
	notYours = "Decisions are not shown: your user needs the verb get on the resource decisions of gatewright.dev, in no namespace."
	notAsked = "Decisions are not shown: whether you may see them could not be asked. The log of the gate says why."
)

// noRecords says why a person does not see the record of decisions, with the status for it; empty: they do.
func (h *Handler) noRecords(ctx context.Context) (why string, status int, err error) {
	if h.Records == nil {
		return noFile, http.StatusNotFound, nil
	}
	s, _ := sessionOf(ctx)
	return h.lacks(ctx, s.person.MayRead, notYours, notAsked)
}

// lacks says why a person does not have a right, in words for each case, with the status for it; empty: they have it.
func (h *Handler) lacks(ctx context.Context, right func(context.Context) (bool, error), not, unknown string) (why string, status int, err error) {
	switch {
	case right == nil && !h.isOfPerson():
		return "", 0, nil
	case right == nil:
		return not, http.StatusForbidden, nil
	}
	may, err := right(ctx)
	switch {
	case errors.Is(err, ErrSignedOut):
		return unknown, http.StatusUnauthorized, err
	case err != nil:
		h.Log.ErrorContext(ctx, "what a person may do could not be asked", "error", err)
		return unknown, http.StatusServiceUnavailable, nil
	case !may:
		return not, http.StatusForbidden, nil
	}
	return "", 0, nil
}

// hidesRecords answers that the person of a request does not see the record. It says false if they do.
func (h *Handler) hidesRecords(w http.ResponseWriter, r *http.Request) bool {
	why, status, err := h.noRecords(r.Context())
	if h.signsOut(w, r, err) {
		return true
	}
	if why != "" {
		h.fail(w, r, status, why)
	}
	return why != ""
}

// signsOut ends the session of a person whose token is taken no longer, and asks them to sign in again. It says false if
// an error is none of that.
func (h *Handler) signsOut(w http.ResponseWriter, r *http.Request, err error) bool {
	if !errors.Is(err, ErrSignedOut) {
		return false
	}
	s, _ := sessionOf(r.Context())
	h.sessions.end(s.key)
	h.Log.InfoContext(r.Context(), "signed out of the console: the token is taken no longer", "approver", s.person.Approver.String())
	if isLive(r) {
		http.Error(w, "sign in again", http.StatusUnauthorized)
		return true
	}
	http.SetCookie(w, cookie(r, sessionCookie, "", 0))
	r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, nil))
	next, problem := nextOf(r), "You were signed out: your token is taken no longer. Sign in with a new one."
	if r.Method != http.MethodGet {
		next, problem = "", problem+" Nothing has happened."
	}
	h.showLogin(w, r, http.StatusUnauthorized, next, problem)
	return true
}

// lost says why a browser with a session may be told that it has none, where several replicas keep their own.
func (h *Handler) lost(r *http.Request) string {
	if _, err := r.Cookie(sessionCookie); err != nil || h.Replica == "" {
		return ""
	}
	return "The replica " + h.Replica + " does not know your session. It has ended, or another replica keeps it: your connection has to stay at one."
}
