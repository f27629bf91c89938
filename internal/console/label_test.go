package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/labeling"
)

const (
	firstID  = "01a22c40-742e-78c3-acf5-000000000000"
	secondID = "01a22c40-742e-78c3-acf5-000000000001"
)

// given are the labels that a page has taken.
type given struct {
	all []labeling.Label
	err error
}

func (g *given) label(_ context.Context, l labeling.Label) error {
	if g.err == nil {
		g.all = append(g.all, l)
	}
	return g.err
}

func TestWhoMayLabel(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*office)
		want   int
		text   string // on the page without a form, and in the answer to one
	}{
		"who may":                          {func(*office) {}, http.StatusSeeOther, ""},
		"who may look alone":               {func(o *office) { o.mayLabel = false }, http.StatusForbidden, "needs the verb label on the resource decisions"},
		"while nobody can say":             {func(o *office) { o.labelling = errors.New("no route to host 10.0.0.1") }, http.StatusServiceUnavailable, "could not be asked"},
		"whose token is taken no longer":   {func(o *office) { o.labelling = ErrSignedOut }, http.StatusUnauthorized, "You were signed out"},
		"where nothing takes labels":       {func(o *office) { o.Label = nil }, http.StatusNotFound, "Decisions are not labelled here"},
		"who may not look":                 {func(o *office) { o.mayRead = false }, http.StatusForbidden, "needs the verb get on the resource decisions"},
		"where the record is in no file":   {func(o *office) { o.Records = nil }, http.StatusNotFound, "not in a file"},
		"where a person has no such right": {func(o *office) { o.noLabel = true }, http.StatusForbidden, "needs the verb label on the resource decisions"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, shop(t))
			g := &given{}
			o.mayRead, o.mayLabel, o.Label = true, true, g.label
			test.change(o)
			b := o.entered(t, "kim")
			csrf := token(t, b.do(t, http.MethodGet, Path, nil).Body.String())
			w := b.do(t, http.MethodPost, Path+"decisions/"+firstID, url.Values{"csrf": {csrf}, "outcome": {"Block"}, "message": {" why \r\nnot "}})
			if w.Code != test.want || !strings.Contains(w.Body.String(), test.text) {
				t.Errorf("HTTP %d %s, want %d and %q", w.Code, w.Body, test.want, test.text)
			}
			var want []labeling.Label
			if test.want == http.StatusSeeOther {
				want = []labeling.Label{{Decision: firstID, Outcome: review.Block, By: "KubernetesUser:kim", Message: "why \nnot"}}
			}
			if diff := cmp.Diff(want, g.all); diff != "" {
				t.Errorf("given (-want +got)\n%s", diff)
			}
			if test.want == http.StatusUnauthorized {
				b = o.entered(t, "kim")
			}
			page := b.do(t, http.MethodGet, Path+"decisions/"+firstID, nil).Body.String()
			if offers := strings.Contains(page, `id="label-form"`); offers != (test.want == http.StatusSeeOther) || !strings.Contains(page, test.text) {
				t.Errorf("offered: %v, want %q in %s", offers, test.text, page)
			}
		})
	}
}

func TestWhatComesOfAForm(t *testing.T) {
	for name, test := range map[string]struct {
		id, outcome, message, csrf string
		err                        error
		want                       int
		text                       string
	}{
		"it was wrong":                        {firstID, "Block", "", "", nil, http.StatusSeeOther, ""},
		"it was right":                        {secondID, "Allow", "<b>fine</b>", "", nil, http.StatusSeeOther, ""},
		"another outcome":                     {firstID, "Confirm", "kept text", "", nil, http.StatusBadRequest, "kept text</textarea>"},
		"no outcome":                          {firstID, "", "", "", nil, http.StatusBadRequest, "outcome is Allow or Block"},
		"no id":                               {"1", "Block", "", "", nil, http.StatusNotFound, "That is no id"},
		"an id that is none but looks so":     {strings.Repeat("-", 36), "Block", "", "", nil, http.StatusNotFound, "The log has no decision"},
		"a form of another page":              {firstID, "Block", "", "AAAA", nil, http.StatusForbidden, "not one that this page has made"},
		"a decision that is not in the log":   {firstID, "Block", "", "", labeling.ErrNotFound, http.StatusNotFound, "The log has no decision with this id. Nothing was recorded."},
		"a disk that is full":                 {firstID, "Block", "</textarea><script>", "", labeling.ErrNotDurable, http.StatusServiceUnavailable, "&lt;/textarea&gt;&lt;script&gt;</textarea>"},
		"a log that cannot be read":           {firstID, "Block", "", "", labeling.ErrUnsearched, http.StatusInternalServerError, "Nothing was recorded"},
		"a message that is longer than any":   {firstID, "Block", strings.Repeat("x", labeling.MaxMessage+1), "", nil, http.StatusBadRequest, "longer than 16 KiB"},
		"a message that is longer than forms": {firstID, "Block", strings.Repeat("x", maxForm), "", nil, http.StatusRequestEntityTooLarge, "Nothing has happened"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDesk(t, shop(t))
			g := &given{err: test.err}
			d.Label = g.label
			b := d.signIn(t)
			form := url.Values{"csrf": {token(t, b.do(t, http.MethodGet, Path, nil).Body.String())}, "outcome": {test.outcome}, "message": {test.message}}
			if test.csrf != "" {
				form.Set("csrf", test.csrf)
			}
			w := b.do(t, http.MethodPost, Path+"decisions/"+test.id, form)
			if w.Code != test.want || !strings.Contains(w.Body.String(), test.text) {
				t.Errorf("HTTP %d %s, want %d and %q", w.Code, w.Body, test.want, test.text)
			}
			var want []labeling.Label
			if test.want == http.StatusSeeOther {
				want = []labeling.Label{{Decision: test.id, Outcome: review.Outcome(test.outcome), By: "LocalSecret:kim", Message: test.message}}
			}
			if diff := cmp.Diff(want, g.all); diff != "" {
				t.Errorf("given (-want +got)\n%s", diff)
			}
			if test.want != http.StatusSeeOther {
				checkMarkup(t, w.Body.String())
			}
		})
	}
}

func TestLabelsAreShownWithTheirDecision(t *testing.T) {
	d := newTestDesk(t, testLog(t, audit.Options{},
		decisionOf("db.read", review.Allow, nil), decisionOf("db.read", review.Allow, nil),
		audit.Record{Kind: audit.KindLabel, Label: &audit.Label{Decision: firstID, Outcome: review.Block, By: "OIDC:https://id.example/lee", MessageDigest: "sha256:" + strings.Repeat("0", 64)}},
		audit.Record{Kind: audit.KindLabel, Label: &audit.Label{Decision: firstID, Outcome: review.Allow, By: "LocalSecret:kim"}},
	))
	d.Label = (&given{}).label
	b := d.signIn(t)
	for name, test := range map[string]struct {
		path           string
		want, unwanted []string
	}{
		"a decision with two":        {firstID, []string{"OIDC:https://id.example/lee", "with a message that is not kept", "LocalSecret:kim"}, []string{"Nobody has said", "Recorded:"}},
		"a decision with none":       {secondID, []string{"Nobody has said"}, []string{"OIDC:", "LocalSecret:kim"}},
		"after one's own":            {firstID + "?labelled=Allow", []string{"Recorded: you say that it should have been Allow"}, nil},
		"after one of somebody else": {firstID + "?labelled=Block", nil, []string{"Recorded:"}},
		"after one that is none":     {secondID + "?labelled=Allow", nil, []string{"Recorded:"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.do(t, http.MethodGet, Path+"decisions/"+test.path, nil).Body.String()
			for _, text := range test.want {
				if !strings.Contains(got, text) {
					t.Errorf("%q is not in %s", text, got)
				}
			}
			for _, text := range test.unwanted {
				if strings.Contains(got, text) {
					t.Errorf("%q is in %s", text, got)
				}
			}
		})
	}
}
