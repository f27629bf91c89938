package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/records"
)

// page asks for something of the web page in a browser with one cookie at most, and gives the one that it has then.
func (d *desked) page(method, path, host, cookie string, form url.Values) (*httptest.ResponseRecorder, string) {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Host = host
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", cookie)
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, r)
	if set := w.Result().Cookies(); len(set) > 0 {
		cookie = set[0].Name + "=" + set[0].Value
	}
	return w, cookie
}

var formToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func tokenIn(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	found := formToken.FindStringSubmatch(w.Body.String())
	if found == nil {
		t.Fatalf("HTTP %d without a form: %s", w.Code, w.Body)
	}
	return found[1]
}

func TestApproversDecideOnTheWebPageAsTheyDoElsewhere(t *testing.T) {
	const host = "localhost:8470"
	d := newDesked(t)
	registry := prometheus.NewRegistry()
	if err := d.desk.metrics.register(registry); err != nil {
		t.Fatal(err)
	}
	if err := d.desk.openConsole(t.Context(), &records.Records{}); err != nil {
		t.Fatal(err)
	}
	d.mux = (&Config{}).routes(http.NotFoundHandler(), d.desk)
	a := d.raise("file.delete", func(c *approval.Call) { c.Class = "Write" })

	if w, _ := d.page(http.MethodGet, console.Path+"login", "evil.example:8470", "", nil); w.Code != http.StatusForbidden {
		t.Errorf("by a name that was pointed here: HTTP %d", w.Code)
	}
	form, cookie := d.page(http.MethodGet, console.Path+"login", host, "", nil)
	token := tokenIn(t, form)
	if w, _ := d.page(http.MethodPost, console.Path+"login", host, cookie, url.Values{"csrf": {token}, "secret": {"kim:" + kimsSecret}}); w.Code != http.StatusUnauthorized {
		t.Errorf("with something else than the secret: HTTP %d", w.Code)
	}
	w, cookie := d.page(http.MethodPost, console.Path+"login", host, cookie, url.Values{"csrf": {token}, "secret": {leesSecret}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("signing in: HTTP %d %s", w.Code, w.Body)
	}
	page, _ := d.page(http.MethodGet, console.Path+"calls/"+a.Name, host, cookie, nil)
	w, _ = d.page(http.MethodPost, console.Path+"calls/"+a.Name, host, cookie, url.Values{"csrf": {tokenIn(t, page)}, "approval": {a.ID}, "outcome": {"approve"}})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("approving: HTTP %d %s", w.Code, w.Body)
	}
	got, err := d.store.Get(t.Context(), a.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != approval.Approved || got.Decision.By != (approval.Approver{Type: approval.LocalSecret, Name: "lee"}) {
		t.Errorf("%s by %+v", got.State, got.Decision)
	}
	want := []string{
		`gatewright_approvals_decided_total{class="Write",outcome="Approved"} 1`,
		`gatewright_approvals_decided_total{class="Write",outcome="Rejected"} 0`,
	}
	if diff := cmp.Diff(want, series(t, registry, "gatewright_approvals_decided_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The page and the API share what was counted.
func TestApproversLabelOnTheWebPageAsTheyDoElsewhere(t *testing.T) {
	const host, id = "localhost:8470", "01a22c40-742e-78c3-acf5-000000000000"
	d, registry := newDesked(t), prometheus.NewRegistry()
	log, err := records.Open(t.Context(), records.Options{File: filepath.Join(t.TempDir(), "audit.jsonl"), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Append(t.Context(), &audit.Record{Kind: audit.KindDecision, ID: id, Time: deskNoon, Class: "Write", Outcome: review.Allow}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.desk.openLabels(log, registry), d.desk.openConsole(t.Context(), log)); err != nil {
		t.Fatal(err)
	}
	d.mux = (&Config{TokenFile: "tokens"}).routes(http.NotFoundHandler(), d.desk)
	form, cookie := d.page(http.MethodGet, console.Path+"login", host, "", nil)
	_, cookie = d.page(http.MethodPost, console.Path+"login", host, cookie, url.Values{"csrf": {tokenIn(t, form)}, "secret": {leesSecret}})
	page, _ := d.page(http.MethodGet, console.Path+"decisions/"+id, host, cookie, nil)
	if w, _ := d.page(http.MethodPost, console.Path+"decisions/"+id, host, cookie, url.Values{"csrf": {tokenIn(t, page)}, "outcome": {"Block"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("labelling: HTTP %d %s", w.Code, w.Body)
	}
	if code := d.do(http.MethodPost, LabelsPath, kimsSecret, `{"decision":"`+id+`","outcome":"Block"}`, nil); code != http.StatusOK {
		t.Fatalf("by the API: HTTP %d", code)
	}
	found, ok, err := audit.FindMarked(t.Context(), log.Path, id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	var by []string
	for _, l := range found.Labels {
		by = append(by, l.Label.By)
	}
	if diff := cmp.Diff([]string{"LocalSecret:lee", "LocalSecret:kim"}, by); diff != "" {
		t.Errorf("by (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`gatewright_labels_total{class="Write",label="block",outcome="Allow"} 1`}, series(t, registry, "gatewright_labels_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
