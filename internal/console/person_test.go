package console

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
)

// office is where people sign in with tokens of their own: the name of each, which the office takes until it takes it no
// longer.
type office struct {
	*desk
	isGone  atomic.Bool // no token is taken any more
	asking  error       // what becomes of asking whose token it is
	mayRead bool
	reading error // what becomes of asking whether decisions may be seen
	// mayLabel and labelling are the same for labels; noLabel: there is no such right.
	mayLabel, noLabel bool
	labelling         error
	refusal           error // what becomes of deciding
	until             time.Time
}

// own is what one person sees: all for kim, nothing for others.
type own struct {
	*office
	name string
}

func (o *own) List(ctx context.Context) ([]approval.Approval, error) {
	if o.isGone.Load() {
		return nil, ErrSignedOut
	}
	if o.name != "kim" {
		return nil, nil
	}
	return o.store.List(ctx)
}

func (o *own) Get(ctx context.Context, name string) (approval.Approval, error) {
	if o.isGone.Load() {
		return approval.Approval{}, ErrSignedOut
	}
	if o.name != "kim" {
		return approval.Approval{}, approval.ErrNotFound
	}
	return o.store.Get(ctx, name)
}

func (o *own) Decide(ctx context.Context, name string, d approval.Decision) error {
	if o.isGone.Load() {
		return ErrSignedOut
	}
	if o.refusal != nil {
		return o.refusal
	}
	return o.store.Decide(ctx, name, d)
}

func newOffice(t *testing.T, records Records) *office {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	o := &office{desk: &desk{store: approval.NewMemory(clock), clock: clock}}
	h, err := New(Options{
		Records: records, Clock: clock, Log: slog.New(slog.DiscardHandler), Replica: "gate-7",
		SignIn: func(_ context.Context, token string) (Person, error) {
			if token == "" || o.asking != nil {
				return Person{}, cmp.Or(o.asking, ErrUnknown)
			}
			p := Person{
				Approver: approval.Approver{Type: approval.KubernetesUser, Name: token}, Approvals: &own{o, token}, Until: o.until,
				MayRead:  func(context.Context) (bool, error) { return o.mayRead, o.reading },
				MayLabel: func(context.Context) (bool, error) { return o.mayLabel, o.labelling },
			}
			if o.noLabel {
				p.MayLabel = nil
			}
			return p, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	o.Handler = h
	return o
}

// enter gives the status of signing in, and the browser.
func (o *office) enter(t *testing.T, secret string) (int, string, *browser) {
	t.Helper()
	b := o.visit()
	form := b.do(t, http.MethodGet, Path+"login", nil).Body.String()
	w := b.do(t, http.MethodPost, Path+"login", url.Values{"csrf": {token(t, form)}, "secret": {secret}})
	return w.Code, w.Body.String(), b
}

func (o *office) entered(t *testing.T, name string) *browser {
	t.Helper()
	code, page, b := o.enter(t, name)
	if code != http.StatusSeeOther {
		t.Fatalf("signing in: HTTP %d %s", code, page)
	}
	return b
}

func TestSigningInWithATokenOfOnesOwn(t *testing.T) {
	for name, test := range map[string]struct {
		token  string
		asking error
		want   int
		text   string
	}{
		"with one that is known":     {"kim", nil, http.StatusSeeOther, ""},
		"with one that is not":       {"", nil, http.StatusUnauthorized, "The API server does not take this token"},
		"while nobody can be asked":  {"kim", errors.New("no route to host 10.0.0.1"), http.StatusServiceUnavailable, "could not be asked"},
		"when it is nobody's, asked": {"kim", ErrUnknown, http.StatusUnauthorized, "The API server does not take this token"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, nil)
			o.asking = test.asking
			code, page, b := o.enter(t, test.token)
			if code != test.want || !strings.Contains(page, test.text) || strings.Contains(page, "10.0.0.1") {
				t.Errorf("HTTP %d, want %d and %q in %s", code, test.want, test.text, page)
			}
			if signedIn := b.cookies[sessionCookie] != ""; signedIn != (test.want == http.StatusSeeOther) {
				t.Errorf("signed in: %v", signedIn)
			}
		})
	}
}

func TestPeopleSeeWhatIsTheirs(t *testing.T) {
	o := newOffice(t, nil)
	a := o.raise(t, `{"path":"/x"}`, nil)
	for name, want := range map[string]bool{"kim": true, "lee": false} {
		b := o.entered(t, name)
		page := b.do(t, http.MethodGet, Path, nil).Body.String()
		if strings.Contains(page, a.Name) != want || !strings.Contains(page, name) {
			t.Errorf("%s sees it: %v", name, !want)
		}
		if code := b.do(t, http.MethodGet, Path+"calls/"+a.Name, nil).Code; (code == http.StatusOK) != want {
			t.Errorf("%s: HTTP %d", name, code)
		}
		l := b.listen(t, t.Context(), "")
		l.next(t)
		if got := l.next(t); strings.Contains(got, `{"pending":1}`) != want {
			t.Errorf("%s hears %q", name, got)
		}
	}
}

func TestASessionEndsWithItsToken(t *testing.T) {
	decide := func(o *office, a *approval.Approval) func(*testing.T, *browser) (int, string) {
		return func(t *testing.T, b *browser) (int, string) {
			o.isGone.Store(false)
			page := b.do(t, http.MethodGet, Path+"calls/"+a.Name, nil).Body.String()
			o.isGone.Store(true)
			w := b.do(t, http.MethodPost, Path+"calls/"+a.Name, url.Values{"csrf": {token(t, page)}, "approval": {a.ID}, "outcome": {"approve"}})
			return w.Code, w.Body.String()
		}
	}
	get := func(path string) func(*office, *approval.Approval) func(*testing.T, *browser) (int, string) {
		return func(*office, *approval.Approval) func(*testing.T, *browser) (int, string) {
			return func(t *testing.T, b *browser) (int, string) {
				w := b.do(t, http.MethodGet, Path+path, nil)
				return w.Code, w.Body.String()
			}
		}
	}
	for name, test := range map[string]struct {
		do   func(*office, *approval.Approval) func(*testing.T, *browser) (int, string)
		live string
		text string
	}{
		"when the list is read":            {get(""), "", "You were signed out"},
		"when the page renews itself":      {get(""), "1", "sign in again"},
		"when a call is read":              {get("calls/ta-1"), "", "You were signed out"},
		"when decisions are asked for":     {get("decisions"), "", "You were signed out"},
		"when a decision is to be written": {decide, "", "Nothing has happened"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, &heads{})
			a := o.raise(t, `{"path":"/x"}`, nil)
			b := o.entered(t, "kim")
			o.isGone.Store(true)
			if strings.HasSuffix(name, "asked for") {
				o.reading = ErrSignedOut
			}
			b.header = http.Header{}
			if test.live != "" {
				b.header.Set(liveHeader, test.live)
			}
			code, page := test.do(o, &a)(t, b)
			if code != http.StatusUnauthorized || !strings.Contains(page, test.text) || strings.Contains(page, "/x") {
				t.Errorf("HTTP %d %s", code, page)
			}
			o.isGone.Store(false) // whoever was signed out stays so
			b.header.Del(liveHeader)
			if code := b.do(t, http.MethodGet, Path, nil).Code; code != http.StatusSeeOther {
				t.Errorf("HTTP %d after that", code)
			}
			if got, err := o.store.Get(t.Context(), a.Name); err != nil || got.State != approval.Pending {
				t.Errorf("%s (%v)", got.State, err)
			}
		})
	}
}

func TestAStreamEndsTheSessionOfATokenThatIsTakenNoLonger(t *testing.T) {
	o := newOffice(t, nil)
	b := o.entered(t, "kim")
	l := b.listen(t, t.Context(), "")
	l.next(t)
	l.next(t)
	o.isGone.Store(true)
	o.pass(t, freshOfOne)
	select {
	case <-l.ended:
	case <-time.After(5 * time.Second):
		t.Fatal("it goes on")
	}
	o.isGone.Store(false)
	if code := b.do(t, http.MethodGet, Path, nil).Code; code != http.StatusSeeOther {
		t.Errorf("HTTP %d after that", code)
	}
}

func TestASessionIsNoLongerThanItsToken(t *testing.T) {
	o := newOffice(t, nil)
	o.until = start.Add(10 * time.Minute)
	b := o.entered(t, "kim")
	o.clock.Step(10*time.Minute - time.Second)
	if code := b.do(t, http.MethodGet, Path, nil).Code; code != http.StatusOK {
		t.Errorf("HTTP %d just before", code)
	}
	o.clock.Step(time.Second)
	if code := b.do(t, http.MethodGet, Path, nil).Code; code != http.StatusSeeOther {
		t.Errorf("HTTP %d at its end", code)
	}
}

func TestARefusalIsToldInItsOwnWords(t *testing.T) {
	o := newOffice(t, nil)
	o.refusal = &Refusal{Text: "The API server refuses: <no> verb."}
	a := o.raise(t, `{"path":"/x"}`, nil)
	b := o.entered(t, "kim")
	page := b.do(t, http.MethodGet, Path+"calls/"+a.Name, nil).Body.String()
	w := b.do(t, http.MethodPost, Path+"calls/"+a.Name, url.Values{"csrf": {token(t, page)}, "approval": {a.ID}, "outcome": {"approve"}})
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "The API server refuses: &lt;no&gt; verb.") {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
}

func TestDecisionsAreForWhoMaySeeThem(t *testing.T) {
	for name, test := range map[string]struct {
		records Records
		may     bool
		err     error
		want    int
		text    string
		seq     uint64
	}{
		"who may":                  {&some{}, true, nil, http.StatusOK, "gate-7", 7},
		"who may not":              {&some{}, false, nil, http.StatusForbidden, notYours, 0},
		"while that is not known":  {&some{}, true, errors.New("no route to host 10.0.0.1"), http.StatusServiceUnavailable, notAsked, 0},
		"of a log that is no file": {nil, true, nil, http.StatusNotFound, noFile, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, test.records)
			o.mayRead, o.reading = test.may, test.err
			b := o.entered(t, "kim")
			for _, path := range []string{"decisions", "decisions/00000000-0000-0000-0000-000000000000"} {
				w := b.do(t, http.MethodGet, Path+path, nil)
				want := test.want
				if want == http.StatusOK && path != "decisions" {
					want = http.StatusNotFound // the log has none of that id
				}
				if w.Code != want || path == "decisions" && !strings.Contains(w.Body.String(), test.text) {
					t.Errorf("%s: HTTP %d, want %d and %q in %s", path, w.Code, want, test.text, w.Body)
				}
			}
			page := b.do(t, http.MethodGet, Path, nil).Body.String()
			if offers := strings.Contains(page, Path+"decisions"); offers != (test.want == http.StatusOK) || !offers && !strings.Contains(page, test.text) {
				t.Errorf("offered: %v in %s", offers, page)
			}
			if got := o.seen(t); got != test.seq {
				t.Errorf("hears of record %d, want %d", got, test.seq)
			}
		})
	}
}

// some are records of which there are seven, all alike.
type some struct{}

func (some) Head() audit.Head { return audit.Head{Seq: 7} }

func (some) Newest(context.Context, func(audit.Entry) bool) error { return nil }

func (some) Find(context.Context, string) (audit.Marked, bool, error) {
	return audit.Marked{}, false, nil
}

// seen is the last record as a stream of the only session would tell it.
func (o *office) seen(t *testing.T) uint64 {
	t.Helper()
	for _, s := range o.sessions.byKey {
		now, err := s.watch.state(t.Context())
		if err != nil {
			return 0
		}
		return now.seq
	}
	t.Fatal("no session")
	return 0
}

func TestOnePersonDoesNotTakeTheSessionsOfAll(t *testing.T) {
	o := newOffice(t, nil)
	kim, first := o.entered(t, "kim"), o.entered(t, "lee")
	for range maxSessionsEach {
		o.clock.Step(time.Second)
		o.entered(t, "lee")
	}
	if code := kim.do(t, http.MethodGet, Path, nil).Code; code != http.StatusOK {
		t.Errorf("kim: HTTP %d", code)
	}
	if code := first.do(t, http.MethodGet, Path, nil).Code; code != http.StatusSeeOther {
		t.Errorf("lee's first session: HTTP %d", code)
	}
	if got := len(o.sessions.byKey); got != maxSessionsEach+1 {
		t.Errorf("%d sessions", got)
	}
}

func TestWhoComesToAnotherReplicaIsTold(t *testing.T) {
	o, other := newOffice(t, nil), newOffice(t, nil)
	b := o.entered(t, "kim")
	page := b.do(t, http.MethodGet, Path, nil).Body.String()
	b.desk = other.desk
	if w := b.do(t, http.MethodGet, Path+"login", nil); !strings.Contains(w.Body.String(), "gate-7 does not know your session") {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
	w := b.do(t, http.MethodPost, Path+"logout", url.Values{"csrf": {token(t, page)}})
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "gate-7 does not know your session") {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
}
