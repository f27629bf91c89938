package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
)

const secret = "0123456789abcdef0123456789abcdef"

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// desk is a console over a real store of approvals.
type desk struct {
	*Handler
	store *approval.Memory
	clock *clocktesting.FakeClock
	told  []approval.State
}

func newTestDesk(t *testing.T, records Records) *desk {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	d := &desk{store: approval.NewMemory(clock), clock: clock}
	h, err := New(Options{
		Approvals: d.store, Records: records, Clock: clock, Log: slog.New(slog.DiscardHandler),
		Identify: func(s string) (approval.Approver, bool) {
			return approval.Approver{Type: approval.LocalSecret, Name: "kim"}, s == secret
		},
		Decided: func(a *approval.Approval) { d.told = append(d.told, a.State) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	d.Handler = h
	return d
}

// raise puts a call before a person.
func (d *desk) raise(t *testing.T, arguments string, change func(*approval.Call)) approval.Approval {
	t.Helper()
	c := approval.Call{
		Binding: approval.Binding{
			PolicyDigest: "sha256:" + strings.Repeat("1", 64), Caller: "agents/assistant", Tool: "file.delete", Session: "chat-1",
			ArgumentsDigest: "sha256:" + strings.Repeat("2", 64), ConfirmReasons: []string{"Irreversible"},
		},
		Class: "Destructive", Base: "Destructive", Message: "Delete it?", Arguments: json.RawMessage(arguments),
		Reasons:   []approval.Reason{{Key: "Irreversible", Reason: "Irreversible", By: "policy:irreversible", Message: "cannot be undone"}},
		Approvers: approval.Approvers{Channels: []approval.Channel{approval.ChannelKubernetes}},
		RaisedAt:  d.clock.Now(), ExpiresAt: d.clock.Now().Add(10 * time.Minute),
	}
	if change != nil {
		change(&c)
	}
	a, err := d.store.Raise(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// browser keeps cookies, as a browser does.
type browser struct {
	desk    *desk
	cookies map[string]string
	header  http.Header
}

func (b *browser) do(t *testing.T, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:8470"
	maps.Copy(r.Header, b.header)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	w := httptest.NewRecorder()
	b.desk.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

var tokenOfForm = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func token(t *testing.T, page string) string {
	t.Helper()
	found := tokenOfForm.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no form in %s", page)
	}
	return found[1]
}

func (d *desk) visit() *browser { return &browser{desk: d, cookies: map[string]string{}} }

// signIn gives a browser in which kim has signed in.
func (d *desk) signIn(t *testing.T) *browser {
	t.Helper()
	b := d.visit()
	form := b.do(t, http.MethodGet, Path+"login", nil).Body.String()
	w := b.do(t, http.MethodPost, Path+"login", url.Values{"csrf": {token(t, form)}, "secret": {secret}})
	if w.Code != http.StatusSeeOther || b.cookies[sessionCookie] == "" {
		t.Fatalf("signing in: HTTP %d %s", w.Code, w.Body)
	}
	return b
}

func TestNothingIsShownBeforeSomebodySignedIn(t *testing.T) {
	d := newTestDesk(t, nil)
	a := d.raise(t, `{"path":"/secret-place"}`, nil)
	for name, test := range map[string]struct {
		path, accept string
		want         int
		location     string
	}{
		"the queue asks to sign in":             {Path, "", http.StatusSeeOther, Path + "login?next="},
		"a call asks, and comes back":           {Path + "calls/" + a.Name, "", http.StatusSeeOther, Path + "login?next=calls/" + a.Name},
		"the stream says that it is not for it": {Path + "events", "text/event-stream", http.StatusUnauthorized, ""},
		"the style is for everybody":            {Path + "static/console.css", "", http.StatusOK, ""},
		"there is no other file":                {Path + "static/layout.html", "", http.StatusNotFound, ""},
		"there is no other page":                {Path + "nothing", "", http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := d.visit()
			b.header = http.Header{"Accept": {test.accept}}
			w := b.do(t, http.MethodGet, test.path, nil)
			if w.Code != test.want || w.Header().Get("Location") != test.location {
				t.Errorf("HTTP %d to %q, want %d to %q", w.Code, w.Header().Get("Location"), test.want, test.location)
			}
			if strings.Contains(w.Body.String(), "secret-place") {
				t.Error("it shows the call")
			}
		})
	}
}

func TestSigningIn(t *testing.T) {
	for name, test := range map[string]struct {
		secret, token string
		noCookie      bool
		next          string
		want          int
		location      string
	}{
		"with the secret":                          {secret: secret, want: http.StatusSeeOther, location: Path},
		"with a line feed behind it":               {secret: secret + "\n", want: http.StatusSeeOther, location: Path},
		"with another":                             {secret: "x" + secret, want: http.StatusUnauthorized},
		"with none":                                {secret: "", want: http.StatusUnauthorized},
		"with the token of another form":           {secret: secret, token: "AAAA", want: http.StatusForbidden},
		"without cookies":                          {secret: secret, noCookie: true, want: http.StatusForbidden},
		"on the way to a call":                     {secret: secret, next: "calls/ta-1", want: http.StatusSeeOther, location: Path + "calls/ta-1"},
		"with a link to another site":              {secret: secret, next: "//evil.example/", want: http.StatusSeeOther, location: Path},
		"with a link to another site, in disguise": {secret: secret, next: `\\evil.example`, want: http.StatusSeeOther, location: Path},
		"with a link to elsewhere on the gate":     {secret: secret, next: "../v1alpha1/approvals", want: http.StatusSeeOther, location: Path},
		"with a link that signs out":               {secret: secret, next: "logout", want: http.StatusSeeOther, location: Path},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestDesk(t, nil).visit()
			form := url.Values{"csrf": {token(t, b.do(t, http.MethodGet, Path+"login", nil).Body.String())}, "secret": {test.secret}, "next": {test.next}}
			if test.token != "" {
				form.Set("csrf", test.token)
			}
			if test.noCookie {
				clear(b.cookies)
			}
			w := b.do(t, http.MethodPost, Path+"login", form)
			if w.Code != test.want || w.Header().Get("Location") != test.location {
				t.Errorf("HTTP %d to %q, want %d to %q", w.Code, w.Header().Get("Location"), test.want, test.location)
			}
			if signedIn := b.cookies[sessionCookie] != ""; signedIn != (test.want == http.StatusSeeOther) {
				t.Errorf("signed in: %v", signedIn)
			}
			if strings.Contains(w.Body.String(), secret) {
				t.Error("the secret comes back")
			}
		})
	}
}

func TestCookiesAreForThisPageAlone(t *testing.T) {
	for name, test := range map[string]struct {
		host       string
		wantSecure bool
	}{
		"on this machine":  {"127.0.0.1:8470", false},
		"by name":          {"localhost:8470", false},
		"from a network":   {"gate.example", true},
		"by IPv6 loopback": {"[::1]:8470", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path, nil)
			r.Host = test.host
			c := cookie(r, sessionCookie, "x", time.Hour)
			if c.Secure != test.wantSecure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != Path || c.Domain != "" {
				t.Errorf("got %s", c)
			}
		})
	}
}

func TestASessionEnds(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(t *testing.T, d *desk, b *browser)
		want int
	}{
		"it is there":                              {func(*testing.T, *desk, *browser) {}, http.StatusOK},
		"an hour after the last page":              {func(_ *testing.T, d *desk, _ *browser) { d.clock.Step(idleLength) }, http.StatusSeeOther},
		"not while pages are opened":               {opening(func(*browser) {}, 3), http.StatusOK},
		"all the same while a page updates itself": {opening(func(b *browser) { b.header = http.Header{liveHeader: {"1"}} }, 3), http.StatusSeeOther},
		"after a working day, whatever is opened":  {opening(func(*browser) {}, 17), http.StatusSeeOther},
		"when its person signs out":                {signOut, http.StatusSeeOther},
		"for a cookie that nobody gave":            {func(_ *testing.T, _ *desk, b *browser) { b.cookies[sessionCookie] = random() }, http.StatusSeeOther},
		"when the gate starts anew and forgot it":  {func(_ *testing.T, d *desk, _ *browser) { d.Handler.sessions = newSessions(d.clock) }, http.StatusSeeOther},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDesk(t, nil)
			b := d.signIn(t)
			test.do(t, d, b)
			b.header = nil
			if w := b.do(t, http.MethodGet, Path, nil); w.Code != test.want {
				t.Errorf("HTTP %d, want %d", w.Code, test.want)
			}
		})
	}
}

// opening opens the page every half hour.
func opening(change func(*browser), times int) func(t *testing.T, d *desk, b *browser) {
	return func(t *testing.T, d *desk, b *browser) {
		change(b)
		for range times {
			d.clock.Step(idleLength / 2)
			b.do(t, http.MethodGet, Path, nil)
		}
	}
}

func signOut(t *testing.T, _ *desk, b *browser) {
	kept := b.cookies[sessionCookie]
	form := url.Values{"csrf": {token(t, b.do(t, http.MethodGet, Path, nil).Body.String())}}
	if w := b.do(t, http.MethodPost, Path+"logout", form); w.Code != http.StatusSeeOther {
		t.Fatalf("HTTP %d", w.Code)
	}
	b.cookies[sessionCookie] = kept // a browser that keeps it all the same
}

func TestAttemptsToSignInAreLimited(t *testing.T) {
	d := newTestDesk(t, nil)
	b := d.visit()
	try := func(s string) *httptest.ResponseRecorder {
		form := b.do(t, http.MethodGet, Path+"login", nil).Body.String()
		return b.do(t, http.MethodPost, Path+"login", url.Values{"csrf": {token(t, form)}, "secret": {s}})
	}
	for i := range burstOfOne {
		if w := try("wrong"); w.Code != http.StatusUnauthorized {
			t.Fatalf("attempt %d: HTTP %d", i, w.Code)
		}
	}
	w := try(secret)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Fatalf("after %d failures: HTTP %d", burstOfOne, w.Code)
	}
	d.clock.Step(everyOfOne)
	if w := try(secret); w.Code != http.StatusSeeOther {
		t.Errorf("after a while: HTTP %d", w.Code)
	}
	for range 2 * burstOfOne { // what succeeds does not count
		d.clock.Step(everyOfOne)
		if w := try(secret); w.Code != http.StatusSeeOther {
			t.Fatalf("HTTP %d", w.Code)
		}
	}
}

func TestManyAddressesShareWhatAllMayTry(t *testing.T) {
	l := newLimiter(clocktesting.NewFakePassiveClock(start))
	let := 0
	for i := range 3 * maxAddresses {
		if _, ok := l.take(strings.Repeat("a", i+1)); ok {
			let++
		}
	}
	if let != burstOfAll {
		t.Errorf("%d attempts were let through, want %d", let, burstOfAll)
	}
	if len(l.each) > maxAddresses+1 {
		t.Errorf("%d addresses are kept", len(l.each))
	}
}

// decideForm is the form of a call as its page has it.
func (b *browser) decideForm(t *testing.T, a approval.Approval, outcome string) url.Values {
	t.Helper()
	page := b.do(t, http.MethodGet, Path+"calls/"+a.Name, nil).Body.String()
	return url.Values{"csrf": {token(t, page)}, "approval": {a.ID}, "outcome": {outcome}, "message": {"keep it\r\nplease"}}
}

func TestDeciding(t *testing.T) {
	for name, test := range map[string]struct {
		outcome   string
		change    func(t *testing.T, d *desk, b *browser, a approval.Approval, form url.Values)
		call      func(*approval.Call)
		want      int
		wantState approval.State
		wantText  string
	}{
		"approving lets it run once":       {outcome: "approve", want: http.StatusSeeOther, wantState: approval.Approved},
		"rejecting refuses it":             {outcome: "reject", want: http.StatusSeeOther, wantState: approval.Rejected},
		"anything else decides nothing":    {outcome: "maybe", want: http.StatusBadRequest, wantState: approval.Pending},
		"without its token it is nobody's": {outcome: "approve", change: without("csrf"), want: http.StatusForbidden, wantState: approval.Pending},
		"without the id of what was shown": {outcome: "approve", change: without("approval"), want: http.StatusBadRequest, wantState: approval.Pending},
		"with the id of another call": {outcome: "approve", change: func(_ *testing.T, _ *desk, _ *browser, _ approval.Approval, form url.Values) {
			form.Set("approval", strings.Repeat("0", 32))
		}, want: http.StatusConflict, wantState: approval.Pending, wantText: "not the call that you were shown"},
		"with the token of another person": {outcome: "approve", change: func(t *testing.T, d *desk, _ *browser, a approval.Approval, form url.Values) {
			form.Set("csrf", d.signIn(t).decideForm(t, a, "approve").Get("csrf"))
		}, want: http.StatusForbidden, wantState: approval.Pending},
		"from a page of another site": {outcome: "approve", change: func(_ *testing.T, _ *desk, b *browser, _ approval.Approval, _ url.Values) {
			b.header = http.Header{"Origin": {"https://evil.example"}}
		}, want: http.StatusForbidden, wantState: approval.Pending},
		"from another port of this machine": {outcome: "approve", change: func(_ *testing.T, _ *desk, b *browser, _ approval.Approval, _ url.Values) {
			b.header = http.Header{"Origin": {"http://127.0.0.1:3000"}}
		}, want: http.StatusForbidden, wantState: approval.Pending},
		"from what the browser calls cross-site": {outcome: "approve", change: func(_ *testing.T, _ *desk, b *browser, _ approval.Approval, _ url.Values) {
			b.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
		}, want: http.StatusForbidden, wantState: approval.Pending},
		"from its own page": {outcome: "approve", change: func(_ *testing.T, _ *desk, b *browser, _ approval.Approval, _ url.Values) {
			b.header = http.Header{"Origin": {"http://127.0.0.1:8470"}, "Sec-Fetch-Site": {"same-origin"}}
		}, want: http.StatusSeeOther, wantState: approval.Approved},
		"when its time is over": {outcome: "approve", change: func(_ *testing.T, d *desk, _ *browser, _ approval.Approval, _ url.Values) {
			d.clock.Step(10 * time.Minute)
		}, want: http.StatusConflict, wantState: approval.Expired, wantText: "was over"},
		"when somebody was faster": {outcome: "approve", change: func(t *testing.T, d *desk, _ *browser, a approval.Approval, _ url.Values) {
			err := d.store.Decide(t.Context(), a.Name, approval.Decision{Outcome: approval.Rejected, By: approval.Approver{Type: approval.LocalSecret, Name: "lee"}})
			if err != nil {
				t.Fatal(err)
			}
		}, want: http.StatusConflict, wantState: approval.Rejected, wantText: "before you"},
		"where the policy wants another channel": {outcome: "approve", call: func(c *approval.Call) { c.Approvers.Channels = []approval.Channel{approval.ChannelAttested} },
			want: http.StatusForbidden, wantState: approval.Pending, wantText: "does not take an approval"},
		"with a novel": {outcome: "reject", change: func(_ *testing.T, _ *desk, _ *browser, _ approval.Approval, form url.Values) {
			form.Set("message", strings.Repeat("x", maxForm))
		}, want: http.StatusRequestEntityTooLarge, wantState: approval.Pending},
		"with a message that is too long": {outcome: "reject", change: func(_ *testing.T, _ *desk, _ *browser, _ approval.Approval, form url.Values) {
			form.Set("message", strings.Repeat("x", approval.MaxMessage+1))
		}, want: http.StatusBadRequest, wantState: approval.Pending, wantText: "longer than 4 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDesk(t, nil)
			a := d.raise(t, `{"path":"a"}`, test.call)
			b := d.signIn(t)
			form := b.decideForm(t, a, test.outcome)
			if test.change != nil {
				test.change(t, d, b, a, form)
			}
			w := b.do(t, http.MethodPost, Path+"calls/"+a.Name, form)
			got, err := d.store.Get(t.Context(), a.Name)
			if err != nil {
				t.Fatal(err)
			}
			if w.Code != test.want || got.State != test.wantState || !strings.Contains(w.Body.String(), test.wantText) {
				t.Errorf("HTTP %d and %s, want %d and %s\n%s", w.Code, got.State, test.want, test.wantState, w.Body)
			}
			if w.Code == http.StatusSeeOther {
				if got.Decision.Message != "keep it\nplease" || got.Decision.By.Name != "kim" || got.Decision.ID != a.ID || len(d.told) != 1 {
					t.Errorf("decided %+v, told %v", got.Decision, d.told)
				}
			} else if len(d.told) != 0 {
				t.Errorf("told %v", d.told)
			}
		})
	}
}

func without(name string) func(*testing.T, *desk, *browser, approval.Approval, url.Values) {
	return func(_ *testing.T, _ *desk, _ *browser, _ approval.Approval, form url.Values) { form.Del(name) }
}

func TestEveryAnswerForbidsWhatThePageDoesNotNeed(t *testing.T) {
	d := newTestDesk(t, nil)
	b := d.signIn(t)
	for _, path := range []string{Path, Path + "login", Path + "static/console.js", Path + "nothing", Path + "calls/none"} {
		h := b.do(t, http.MethodGet, path, nil).Result().Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if got := h.Get("Cache-Control"); got != "no-store" && !strings.Contains(path, "static") {
			t.Errorf("%s may be kept: %q", path, got)
		}
	}
}

// failing is a store that cannot be read.
type failing struct{ Approvals }

func (failing) List(context.Context) ([]approval.Approval, error) { return nil, io.ErrUnexpectedEOF }

func (failing) Get(context.Context, string) (approval.Approval, error) {
	return approval.Approval{}, errors.New("no")
}

func TestWhatCannotBeReadIsNotShownAsNothing(t *testing.T) {
	d := newTestDesk(t, nil)
	b := d.signIn(t)
	d.Approvals = failing{}
	for _, path := range []string{Path, Path + "calls/ta-1"} {
		w := b.do(t, http.MethodGet, path, nil)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "could not be read") {
			t.Errorf("%s: HTTP %d %s", path, w.Code, w.Body)
		}
	}
}
