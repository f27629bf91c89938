package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/console"
)

// tokenReviews answers what it is told to, about a token for the API server itself.
type tokenReviews struct {
	asked  int
	status authenticationv1.TokenReviewStatus
	err    error
}

func (r *tokenReviews) Create(_ context.Context, in *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.asked++
	if len(in.Spec.Audiences) != 0 {
		return nil, errors.New("asked for an audience")
	}
	out := in.DeepCopy()
	out.Status = r.status
	return out, r.err
}

func TestWhoSignsInWithAToken(t *testing.T) {
	carol := authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "carol"}}
	as := func(change func(*authenticationv1.TokenReviewStatus)) authenticationv1.TokenReviewStatus {
		s := carol
		change(&s)
		return s
	}
	for name, test := range map[string]struct {
		token     string
		status    authenticationv1.TokenReviewStatus
		err       error
		want      string
		wantErr   error
		wantAsked int
	}{
		"who the API server knows":               {"opaque", carol, nil, "carol", nil, 1},
		"whom it does not know":                  {"opaque", as(func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }), nil, "", console.ErrUnknown, 1},
		"whom it knows with an error":            {"opaque", as(func(s *authenticationv1.TokenReviewStatus) { s.Error = "expired" }), nil, "", console.ErrUnknown, 1},
		"who has no name":                        {"opaque", as(func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "" }), nil, "", console.ErrUnknown, 1},
		"who is nobody":                          {"opaque", as(func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:anonymous" }), nil, "", console.ErrUnknown, 1},
		"when the API server does not answer":    {"opaque", carol, context.DeadlineExceeded, "", context.DeadlineExceeded, 1},
		"without a token nothing is asked":       {"", carol, nil, "", console.ErrUnknown, 0},
		"nor with one that no header can hold":   {"a\r\nImpersonate-User: admin", carol, nil, "", console.ErrUnknown, 0},
		"nor with one that is longer than all":   {string(slices.Repeat([]byte("x"), maxToken+1)), carol, nil, "", console.ErrUnknown, 0},
		"nor with one of letters that none have": {"tökén", carol, nil, "", console.ErrUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reviews := &tokenReviews{status: test.status, err: test.err}
			got, err := NewPeople(PeopleOptions{
				Server: &rest.Config{Host: "https://api.test"}, Reviews: reviews, Clock: clocktesting.NewFakeClock(noon),
			}).SignIn(t.Context(), test.token)
			if !errors.Is(err, test.wantErr) || got.Approver.Name != test.want || reviews.asked != test.wantAsked {
				t.Errorf("%+v, %v, asked %d times", got.Approver, err, reviews.asked)
			}
			if isPerson := got.Approvals != nil && got.MayRead != nil && got.MayLabel != nil; isPerson != (test.want != "") {
				t.Errorf("is a person: %v", isPerson)
			}
		})
	}
}

// The gate has rights that a person has not.
func TestNothingOfTheGateGoesAlongWithAPerson(t *testing.T) {
	server := &rest.Config{
		Host: "https://api.test", BearerToken: "gate", BearerTokenFile: "/var/run/token", Username: "gate", Password: "gate", UserAgent: "gatewright-gate/1",
		Impersonate:     rest.ImpersonationConfig{UserName: "gate"},
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("gate"), KeyData: []byte("gate"), CertFile: "gate", KeyFile: "gate"},
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return next },
		QPS:             -1,
	}
	got := NewPeople(PeopleOptions{Server: server}).config("carol")
	if got.BearerToken != "carol" || got.BearerTokenFile != "" || got.Username != "" || got.Password != "" || got.Impersonate.UserName != "" || got.WrapTransport != nil {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(rest.TLSClientConfig{CAData: []byte("ca")}, got.TLSClientConfig); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.QPS != personQPS || got.Timeout != personTimeout || got.Host != server.Host {
		t.Errorf("got %+v", got)
	}
}

func TestWhenATokenEnds(t *testing.T) {
	of := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, test := range map[string]struct {
		token string
		want  time.Time
	}{
		"as it says":             {of(`{"exp":1767355800}`), noon.Add(10 * time.Minute)},
		"in part of a second":    {of(`{"exp":1767355800.9}`), noon.Add(10 * time.Minute)},
		"when it says nothing":   {of(`{"sub":"carol"}`), time.Time{}},
		"when it says words":     {of(`{"exp":"tomorrow"}`), time.Time{}},
		"when it says never":     {of(`{"exp":1e300}`), time.Time{}},
		"before all time":        {of(`{"exp":-1}`), time.Time{}},
		"when it cannot be read": {"a.b!.c", time.Time{}},
		"when it is opaque":      {"letmein", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endOf(test.token); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// selfReviews answers what the one who asks may do.
type selfReviews struct {
	asked  []authorizationv1.ResourceAttributes
	status authorizationv1.SubjectAccessReviewStatus
	err    error
}

func (r *selfReviews) Create(_ context.Context, in *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	r.asked = append(r.asked, *in.Spec.ResourceAttributes)
	out := in.DeepCopy()
	out.Status = r.status
	return out, r.err
}

func TestWhoMayReadOrLabelDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		status     authorizationv1.SubjectAccessReviewStatus
		err        error
		want       bool
		wantErr    bool
		isSignedIn bool
	}{
		"who is allowed":                    {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, true, false, true},
		"who is not":                        {authorizationv1.SubjectAccessReviewStatus{}, nil, false, false, true},
		"who is allowed and denied":         {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, false, false, true},
		"when the API server cannot say":    {authorizationv1.SubjectAccessReviewStatus{EvaluationError: "webhook"}, nil, false, true, true},
		"when it does not answer":           {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, context.DeadlineExceeded, false, true, true},
		"whose token is taken no longer":    {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, apierrors.NewUnauthorized("no"), false, true, false},
		"allowed although a part has erred": {authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "webhook"}, nil, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"get", "label"} {
				reviews := &selfReviews{status: test.status, err: test.err}
				got, err := (&right{verb: verb, reviews: reviews, clock: clocktesting.NewFakeClock(noon)}).has(t.Context())
				if got != test.want || (err != nil) != test.wantErr || errors.Is(err, console.ErrSignedOut) == test.isSignedIn {
					t.Errorf("%s: got %v, %v", verb, got, err)
				}
				want := []authorizationv1.ResourceAttributes{{Group: "gatewright.dev", Version: "v1alpha1", Resource: "decisions", Verb: verb}}
				if diff := cmp.Diff(want, reviews.asked); diff != "" {
					t.Errorf("asked (-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestARightCountsForAMoment(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	reviews := &selfReviews{status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	r := &right{verb: DecisionsVerb, reviews: reviews, clock: clock}
	for _, step := range []struct {
		after     time.Duration
		want      bool
		wantAsked int
	}{{0, true, 1}, {allowedTTL - 1, true, 1}, {1, false, 2}, {allowedTTL, false, 3}} {
		clock.Step(step.after)
		got, err := r.has(t.Context())
		if err != nil || got != step.want || len(reviews.asked) != step.wantAsked {
			t.Errorf("after %s: %v, %v, asked %d times", step.after, got, err, len(reviews.asked))
		}
		reviews.status.Allowed = false
	}
}

// scripted is an API server that answers each path with a status.
func scripted(t *testing.T, answers map[string]int) (*rest.Config, *[]string) {
	t.Helper()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		code := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code == http.StatusOK {
			_, _ = w.Write([]byte(`{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolApprovalList","items":[]}`))
			return
		}
		reason := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 401: metav1.StatusReasonUnauthorized, 404: metav1.StatusReasonNotFound}[code]
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"` + string(reason) + `"}`))
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}, &asked
}

const apiPath = "/apis/gatewright.dev/v1alpha1"

func all(namespace string) string {
	if namespace == "" {
		return apiPath + "/toolapprovals"
	}
	return apiPath + "/namespaces/" + namespace + "/toolapprovals"
}

func TestWhereApprovalsAreLookedFor(t *testing.T) {
	for name, test := range map[string]struct {
		answers   map[string]int
		where     error
		wantAsked []string
		wantErr   error
	}{
		"in all namespaces at once": {map[string]int{all(""): 200}, nil, []string{all(""), all("")}, nil},
		"in each that is known, and again where it was allowed": {
			map[string]int{all(""): 403, all("a"): 403, all("b"): 200}, nil, []string{all(""), all("a"), all("b"), all("b")}, nil,
		},
		"not at all without the token":                {map[string]int{all(""): 401}, nil, []string{all(""), all("")}, console.ErrSignedOut},
		"nor after it was taken back between two":     {map[string]int{all(""): 403, all("a"): 401}, nil, []string{all(""), all("a"), all("a")}, console.ErrSignedOut},
		"not in part where one cannot be read":        {map[string]int{all(""): 403, all("a"): 200, all("b"): 404}, nil, []string{all(""), all("a"), all("b"), all("a"), all("b")}, approval.ErrUnavailable},
		"not while the gate does not know namespaces": {map[string]int{all(""): 403}, approval.ErrUnavailable, []string{all("")}, approval.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server, asked := scripted(t, test.answers)
			person, err := NewPeople(PeopleOptions{
				Server: server, Clock: clocktesting.NewFakeClock(noon),
				Reviews: &tokenReviews{status: authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "carol"}}},
				Where:   func(string) ([]string, error) { return []string{"a", "b"}, test.where },
				Verify:  func(*approval.Approval) error { return nil },
			}).SignIn(t.Context(), "carol")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // what was refused is not asked again at once
				if _, err = person.Approvals.List(t.Context()); !errors.Is(err, test.wantErr) {
					t.Errorf("got %v, want %v", err, test.wantErr)
				}
			}
			if diff := cmp.Diff(test.wantAsked, *asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}
