package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/labeling"
)

// hostile texts, each of which would do something in some place of a careless page.
var hostile = map[string]string{
	"an element":               "<script>alert(1)</script>",
	"an end of elements":       "</textarea></title></style></script></svg></details><script>alert(1)</script>",
	"an end of an attribute":   `" onmouseover="alert(1)" x="`,
	"the other quote":          "' autofocus onfocus='alert(1)",
	"an address that runs":     "javascript:alert(1)",
	"an address of elsewhere":  "//evil.example/",
	"a way up":                 "../../v1alpha1/approvals",
	"a template":               `{{.CSRF}}{{template "layout.html"}}`,
	"a comment":                "<!-- --><!--[if IE]><script>alert(1)</script><![endif]-->",
	"a drawing":                `<svg onload=alert(1)><animate onbegin=alert(1)>`,
	"a frame":                  `<iframe srcdoc="<script>alert(1)</script>">`,
	"a base":                   `<base href=//evil.example/><meta http-equiv=refresh content=0;url=//evil.example/>`,
	"a form":                   `<form action=//evil.example/><button formaction=javascript:alert(1)>`,
	"a direction":              "\u202Etxt.exe\u2066",
	"a terminal":               "\x1b]8;;https://evil.example\a",
	"an ID of the page":        `" id="csrf`,
	"half a character":         "\xc3\x28\xff<",
	"a name that is an entity": "&lt;script&gt;&#60;script&#62;",
}

// elements and attributes that the pages have. Anything else came from outside.
var (
	ownElements = strings.Fields("html head meta title link script body a header img nav span form input button kbd main p dialog h1 h2 h3 dl div dt dd section ol ul li article code details summary pre mark blockquote strong label textarea time svg rect g figure figcaption table thead tbody tr th td fieldset legend datalist option noscript")
	ownAttrs    = strings.Fields("lang charset name content rel href type src defer class id tabindex width height alt aria-label aria-labelledby aria-live aria-hidden aria-current role method action value hidden for maxlength autocomplete rows data-events data-now data-live data-version data-count data-row data-ends datetime title open viewbox preserveaspectratio x y scope placeholder list checked required autofocus spellcheck")
)

// checkMarkup says what of a page is not the page's own.
func checkMarkup(t *testing.T, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("a comment: %q", n.Data)
		}
		isOwnText := n.Type == html.TextNode && n.Parent.Data == "textarea" // what the person has written comes back as it was
		if n.Type == html.TextNode && !isOwnText && strings.ContainsAny(n.Data, "\u202E\u2066\x1b\a") {
			t.Errorf("a character that hides: %q", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" {
			scripts++
		}
		if !slices.Contains(ownElements, n.Data) {
			t.Errorf("an element: %s", n.Data)
		}
		for _, a := range n.Attr {
			checkAttribute(t, n.Data, a)
		}
	}
	if scripts != 1 {
		t.Errorf("%d scripts", scripts)
	}
}

func checkAttribute(t *testing.T, element string, a html.Attribute) {
	t.Helper()
	if !slices.Contains(ownAttrs, strings.ToLower(a.Key)) {
		t.Errorf("an attribute: %s %s=%q", element, a.Key, a.Val)
	}
	isLink := slices.Contains([]string{"href", "src", "action"}, a.Key)
	if isLink && !strings.HasPrefix(a.Val, Path) && a.Val != "#main" {
		t.Errorf("a link: %s %s=%q", element, a.Key, a.Val)
	}
	if isLink && slices.Contains(strings.Split(a.Val, "/"), "..") {
		t.Errorf("a way up: %s %s=%q", element, a.Key, a.Val)
	}
}

func TestNothingFromACallBecomesMarkup(t *testing.T) {
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			d := newTestDesk(t, nil)
			b := d.signIn(t)
			text, err := json.Marshal(map[string]any{s: s, "list": []any{s, strings.Repeat(s, foldOver)}})
			if err != nil {
				t.Fatal(err)
			}
			a := approval.Approval{Name: s, ID: s, State: approval.Pending, Call: approval.Call{
				Binding: approval.Binding{Caller: s, Tool: s, Server: s, Session: s, OnBehalfOf: s, ArgumentsDigest: s},
				Class:   s, Base: s, Message: s, ToolDescription: s, UserRequest: s, EarlierTurns: []string{s}, Arguments: text,
				Sensitive: []string{s}, Sources: map[string]string{"/list/0": s, s: s}, Answers: map[string]string{s: s}, Probabilities: map[string]float64{s: 0.5},
				Reasons: []approval.Reason{{Key: s, Policy: s, By: s, Reason: s, Message: s}}, InbandClaims: []string{s}, Fingerprint: s, Policies: []string{s},
				Approvers: approval.Approvers{Channels: []approval.Channel{approval.Channel(s)}}, ExpiresAt: start,
			}}
			for _, state := range []approval.State{approval.Pending, approval.Rejected, approval.State(s)} {
				for _, attested := range []string{"", s} {
					a.State, a.Call.AttestedBy = state, attested
					a.Decision = &approval.Decision{Outcome: approval.State(s), By: approval.Approver{Type: approval.LocalSecret, Name: s}, Message: s}
					d.Approvals = fixed{a}
					checkMarkup(t, b.do(t, http.MethodGet, Path, nil).Body.String())
					checkMarkup(t, b.do(t, http.MethodGet, Path+"calls/ta-1", nil).Body.String())
				}
			}
		})
	}
}

// entries is a record of one entry.
type entries struct {
	audit.Entry
	labels []audit.Entry
}

func (entries) Head() audit.Head { return audit.Head{} }

func (e entries) Newest(_ context.Context, each func(audit.Entry) bool) error {
	each(e.Entry)
	return nil
}

func (e entries) Find(context.Context, string) (audit.Marked, bool, error) {
	return audit.Marked{Entry: e.Entry, Labels: e.labels}, true, nil
}

func TestNothingFromARecordBecomesMarkup(t *testing.T) {
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			answers := map[string]review.Answer{s: {Choice: s, Probabilities: map[string]float64{s: 0.5}}}
			e := audit.Entry{Prev: s, Record: audit.Record{
				Kind: audit.KindDecision, ID: s, UID: s, Caller: audit.Caller{Namespace: s, ServiceAccount: s}, OnBehalfOf: s, Session: s, Tool: s, Server: s,
				Class: s, Base: s, Outcome: review.Outcome(s), Reason: s, By: s, Obligations: []review.Obligation{{Outcome: review.Outcome(s), Reason: s, By: s, Policy: s}},
				WouldBe: []review.WouldBe{{Policy: s, Outcome: review.Outcome(s), Reason: s, By: s}}, Policies: []string{s}, Answers: answers, Decider: s,
				Deciders: []audit.Asked{{Policy: s, Decider: s, Answers: answers, Fingerprint: s, Error: s}}, Approval: &audit.Approval{Name: s, By: s, Outcome: s},
				DeciderError: s, GateVersion: s,
			}}
			said := audit.Entry{Record: audit.Record{Kind: audit.KindLabel, Captured: s, Label: &audit.Label{Decision: s, Outcome: review.Outcome(s), By: s, MessageDigest: s}}}
			d := newTestDesk(t, entries{e, []audit.Entry{said}})
			d.Label = func(context.Context, labeling.Label) error { return labeling.ErrNotDurable }
			b := d.signIn(t)
			for _, path := range []string{"decisions", "decisions/01a22c40-742e-78c3-acf5-000000000000"} {
				w := b.do(t, http.MethodGet, Path+path, nil)
				if w.Code != http.StatusOK {
					t.Fatalf("HTTP %d", w.Code)
				}
				checkMarkup(t, w.Body.String())
			}
			for _, form := range []url.Values{{"outcome": {"Block"}, "message": {s}}, {"outcome": {s}, "message": {s}}} {
				form.Set("csrf", token(t, b.do(t, http.MethodGet, Path, nil).Body.String()))
				w := b.do(t, http.MethodPost, Path+"decisions/01a22c40-742e-78c3-acf5-000000000000", form)
				if w.Code == http.StatusSeeOther || w.Code == http.StatusForbidden {
					t.Fatalf("HTTP %d", w.Code)
				}
				checkMarkup(t, w.Body.String())
			}
		})
	}
}

func TestNothingFromAQueryBecomesMarkup(t *testing.T) {
	b := newTestDesk(t, shop(t)).signIn(t)
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"decisions?", "login?next=x&", "?decided=x&", "decisions/01a22c40-742e-78c3-acf5-000000000000?"} {
				query := ""
				for _, field := range []string{"outcome", "tool", "caller", "reason", "class", "by", "text", "before", "next", "decided", "labelled"} {
					query += field + "=" + url.QueryEscape(s) + "&"
				}
				checkMarkup(t, b.do(t, http.MethodGet, Path+path+query, nil).Body.String())
			}
		})
	}
}
