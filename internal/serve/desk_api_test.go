package serve

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
)

const kimsSecret, leesSecret = "kim-0123456789abcdef0123456789abcdef", "lee-0123456789abcdef0123456789abcdef"

var deskNoon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

// desked is a desk with a store in reach.
type desked struct {
	t     *testing.T
	store *approval.Memory
	mux   http.Handler
	desk  *desk
	clock *clocktesting.FakePassiveClock
}

func newDesked(t *testing.T) *desked {
	t.Helper()
	sum := sha256.Sum256([]byte(leesSecret))
	path := filepath.Join(t.TempDir(), "approvers")
	if err := os.WriteFile(path, []byte("# who decides\nkim:"+kimsSecret+"\n\nlee:sha256:"+hex.EncodeToString(sum[:])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := clocktesting.NewFakePassiveClock(deskNoon)
	store := approval.NewMemory(c)
	d, err := newDesk(path, store, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.clock = c
	config := &Config{TokenFile: "tokens"}
	return &desked{t, store, config.routes(http.NotFoundHandler(), d), d, c}
}

func (d *desked) raise(tool string, change ...func(c *approval.Call)) approval.Approval {
	d.t.Helper()
	c := approval.Call{
		Binding:  approval.Binding{Caller: "shop/agent", Tool: tool, Session: "s", OnBehalfOf: "jo", ConfirmReasons: []string{"r"}},
		Message:  "Run " + tool + "?",
		RaisedAt: deskNoon, ExpiresAt: deskNoon.Add(time.Minute), Approvers: approval.Approvers{Channels: []approval.Channel{approval.ChannelKubernetes}},
	}
	for _, f := range change {
		f(&c)
	}
	a, err := d.store.Raise(d.t.Context(), c)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

func (d *desked) do(method, path, secret, body string, into any) int {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, r)
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			d.t.Fatalf("HTTP %d %s: %v", w.Code, w.Body, err)
		}
	}
	return w.Code
}

func TestRecordsNameWhoDecided(t *testing.T) {
	d := newDesked(t)
	for secret, want := range map[string]string{kimsSecret: "LocalSecret:kim", leesSecret: "LocalSecret:lee"} {
		a := d.raise(want)
		var shown Shown
		body := `{"outcome":"Approve","message":"fine","id":"` + a.ID + `"}`
		if code := d.do(http.MethodPost, ApprovalsPath+"/"+a.Name, secret, body, &shown); code != http.StatusOK {
			t.Fatalf("HTTP %d", code)
		}
		if shown.State != approval.Approved || shown.Decision.By.String() != want || shown.Decision.Message != "fine" {
			t.Errorf("%s by %s", shown.State, shown.Decision.By)
		}
	}
	for _, secret := range []string{"", "kim", kimsSecret[:35], kimsSecret + " ", "kim:" + kimsSecret, "lee:sha256:", strings.ToUpper(kimsSecret)} {
		if code := d.do(http.MethodGet, ApprovalsPath, secret, "", nil); code != http.StatusUnauthorized {
			t.Errorf("%q opens the desk: HTTP %d", secret, code)
		}
	}
}

func TestTheDeskShowsWhatElseWaits(t *testing.T) {
	d := newDesked(t)
	one := d.raise("one")
	d.raise("elsewhere", func(c *approval.Call) { c.Session, c.ExpiresAt = "t", deskNoon.Add(time.Second) })
	d.raise("later", func(c *approval.Call) { c.ExpiresAt = deskNoon.Add(time.Hour) })
	d.raise("another's", func(c *approval.Call) { c.Caller = "shop/other" })
	done := d.raise("done")
	if code := d.do(http.MethodPost, ApprovalsPath+"/"+done.Name, kimsSecret, `{"outcome":"Reject"}`, nil); code != http.StatusOK {
		t.Fatalf("HTTP %d", code)
	}
	var shown Shown
	if code := d.do(http.MethodGet, ApprovalsPath+"/"+one.Name, kimsSecret, "", &shown); code != http.StatusOK {
		t.Fatalf("HTTP %d", code)
	}
	var others []string
	for _, o := range shown.AlsoPending {
		others = append(others, o.Tool+map[bool]string{true: " here"}[o.SameSession])
	}
	if diff := cmp.Diff([]string{"later here", "elsewhere"}, others); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for query, want := range map[string]int{"": 5, "?state=Pending": 4, "?state=Rejected": 1, "?caller=shop/other": 1, "?caller=shop/other&state=Rejected": 0} {
		var all []approval.Approval
		if code := d.do(http.MethodGet, ApprovalsPath+query, kimsSecret, "", &all); code != http.StatusOK || len(all) != want {
			t.Errorf("%q: HTTP %d with %d, want %d", query, code, len(all), want)
		}
	}
}

func TestWhatTheDeskRefuses(t *testing.T) {
	d := newDesked(t)
	own := d.raise("own", func(c *approval.Call) { c.OnBehalfOf = "Kim" })
	closed := d.raise("closed", func(c *approval.Call) { c.Approvers.Channels = []approval.Channel{approval.ChannelAttested} })
	plain, decided := d.raise("plain"), d.raise("decided")
	if code := d.do(http.MethodPost, ApprovalsPath+"/"+decided.Name, kimsSecret, `{"outcome":"Reject"}`, nil); code != http.StatusOK {
		t.Fatalf("HTTP %d", code)
	}
	for name, test := range map[string]struct {
		name, body string
		want       int
		code       string
	}{
		"what is decided":     {decided.Name, `{"outcome":"Approve"}`, http.StatusConflict, "Decided"},
		"a message of a book": {plain.Name, `{"outcome":"Reject","message":"` + strings.Repeat("x", approval.MaxMessage+1) + `"}`, http.StatusBadRequest, "BadRequest"},

		"one's own call":              {own.Name, `{"outcome":"Approve"}`, http.StatusForbidden, "NotYours"},
		"a channel that is closed":    {closed.Name, `{"outcome":"Approve"}`, http.StatusForbidden, "NotYours"},
		"another call than was shown": {plain.Name, `{"outcome":"Approve","id":"` + own.ID + `"}`, http.StatusBadRequest, "BadRequest"},
		"evidence that is none":       {plain.Name, `{"evidence":"a.b.c"}`, http.StatusBadRequest, "BadRequest"},
		"two voices":                  {plain.Name, `{"evidence":"a.b.c","outcome":"Approve"}`, http.StatusBadRequest, "InvalidField"},
		"evidence about nothing":      {"ta-none", `{"evidence":"a.b.c"}`, http.StatusNotFound, "NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			var refused struct{ Code, Message string }
			if code := d.do(http.MethodPost, ApprovalsPath+"/"+test.name, kimsSecret, test.body, &refused); code != test.want || refused.Code != test.code {
				t.Errorf("HTTP %d %s, want %d %s", code, refused.Code, test.want, test.code)
			}
			if strings.Contains(refused.Message, "deciding approval") {
				t.Errorf("%q is for a log and no person", refused.Message)
			}
		})
	}
	for _, a := range []approval.Approval{own, closed, plain} {
		if got, err := d.store.Get(t.Context(), a.Name); err != nil || got.State != approval.Pending {
			t.Errorf("%s is %s %v", a.Call.Tool, got.State, err)
		}
	}
	if code := d.do(http.MethodGet, ApprovalsPath+"/ta-none", kimsSecret, "", nil); code != http.StatusNotFound {
		t.Errorf("HTTP %d", code)
	}
}

func TestAFrontDoorPostsWhatItsUserSays(t *testing.T) {
	d := newDesked(t)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	jwk, err := json.Marshal(jose.JSONWebKey{Key: key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	a := d.raise("act", func(c *approval.Call) {
		c.Approvers = approval.Approvers{SelfApproval: true, Channels: []approval.Channel{approval.ChannelAttested}, Attestors: []approval.Attestor{{Name: "chat", Key: jwk}}}
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, (&jose.SignerOptions{}).WithType(approval.EvidenceType))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]any{"call": a.ID, "namespace": "shop", "outcome": "Approve", "user": "jo", "message": "go", "iat": deskNoon.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	var shown Shown
	if code := d.do(http.MethodPost, ApprovalsPath+"/"+a.Name, kimsSecret, `{"evidence":"`+text+`"}`, &shown); code != http.StatusOK {
		t.Fatalf("HTTP %d", code)
	}
	if shown.State != approval.Approved || shown.Decision.By.String() != "Attested:chat/jo" || shown.Decision.Evidence != text {
		t.Errorf("%s by %s", shown.State, shown.Decision.By)
	}
}

func TestFilesOfApprovers(t *testing.T) {
	long := strings.Repeat("s", 32)
	digest := strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		text  string
		names []string
		want  string
	}{
		"a secret alone":        {long, []string{"approver"}, ""},
		"two names":             {"kim:" + long + "\nlee:" + long + "2\n", []string{"kim", "lee"}, ""},
		"by a digest":           {"kim:sha256:" + digest, []string{"kim"}, ""},
		"comments and space":    {"\n# x\n  kim:" + long + "  \n", []string{"kim"}, ""},
		"a name twice":          {"kim:" + long + "\nkim:" + long + "2", nil, "line 2: kim is there twice"},
		"a secret twice":        {"kim:" + long + "\nlee:" + long, nil, "has the secret of kim"},
		"a short secret":        {"kim:short", nil, "shorter than 32"},
		"no secret":             {"kim:", nil, "shorter than 32"},
		"no name":               {":" + long, nil, "name"},
		"a name with a space":   {"kim lee:" + long, nil, "name"},
		"a digest that is none": {"kim:sha256:abc", nil, "no SHA-256"},
		"nothing":               {"# nobody\n", nil, "shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "approvers")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := loadApprovers(path)
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), long)) {
				t.Fatalf("loadApprovers: %v, want %q", err, test.want)
			}
			var names []string
			for _, a := range all {
				names = append(names, a.name)
			}
			if diff := cmp.Diff(test.names, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A line that somebody else has put into the log is reported when the gate starts, and lets nothing through.
func TestAForgedApprovalLogIsReported(t *testing.T) {
	var log strings.Builder
	counted := map[string]int{}
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(deskNoon)
	if err := os.WriteFile(path, []byte(strings.Repeat(`{"v":2,"seal":"k.AAAA","event":{"op":"raise","id":"1","name":"ta-forged-1"}}`+"\n", maxReported+5)), 0o600); err != nil {
		t.Fatal(err)
	}
	seals, err := approval.OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := approval.OpenFile(path, c, seals)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reportIgnored(t.Context(), f.Ignored(), func(reason string) { counted[reason]++ }, slog.New(slog.NewTextHandler(&log, nil)))
	if diff := cmp.Diff(map[string]int{"UnknownKey": maxReported + 5}, counted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), "\n"); n != maxReported+1 || !strings.Contains(log.String(), "ta-forged-1") {
		t.Errorf("%d lines are logged:\n%s", n, log.String())
	}
	if all, err := f.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}
