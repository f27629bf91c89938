package gatewright

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

// row is one line of the contract that all clients share; its own "about" says what the fields mean.
type row struct {
	Name       string            `json:"name"`
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"`
	Body       json.RawMessage   `json:"body"`
	BodyBase64 string            `json:"bodyBase64"`
	BodyRepeat []any             `json:"bodyRepeat"`
	Pad        int               `json:"pad"`
	PadTo      int               `json:"padTo"`
	Chunked    bool              `json:"chunked"`
	Delay      int               `json:"delay"`
	DelayBody  int               `json:"delayBody"`
	Trickle    int               `json:"trickle"`
	HangUp     bool              `json:"hangUp"`
	CutAt      int               `json:"cutAt"`
	Timeout    int               `json:"timeout"`
	Want       want              `json:"want"`
}

type want struct {
	Allowed   bool   `json:"allowed"`
	Outcome   string `json:"outcome"`
	Reason    string `json:"reason"`
	Retryable bool   `json:"retryable"`
	Tells     string `json:"tells"`
}

type contract struct {
	About []string `json:"about"`
	Tool  string   `json:"tool"`
	Rows  []row    `json:"rows"`
}

func readContract(t *testing.T) contract {
	t.Helper()
	data, err := os.ReadFile("../testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	var c contract
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) < 80 {
		t.Fatalf("the contract has %d rows, it had 87", len(c.Rows))
	}
	return c
}

// body of the answer for a request's uid.
func (r row) body(uid string) []byte {
	text := string(r.Body)
	switch {
	case r.BodyBase64 != "":
		raw, err := base64.StdEncoding.DecodeString(r.BodyBase64)
		if err != nil {
			panic(err)
		}
		text = string(raw)
	case len(r.BodyRepeat) == 2:
		text = strings.Repeat(r.BodyRepeat[0].(string), int(r.BodyRepeat[1].(float64)))
	case strings.HasPrefix(text, `"`):
		if err := json.Unmarshal(r.Body, &text); err != nil {
			panic(err)
		}
	}
	text = strings.ReplaceAll(text, "{{uid}}", uid)
	return []byte(text + strings.Repeat(" ", max(r.Pad, r.PadTo-len(text), 0)))
}

// fakeGate answers as a row says, and keeps what it was asked.
type fakeGate struct {
	row row

	mu      sync.Mutex
	queries []*http.Request
	reviews []v1alpha1.ToolCallReview
	bodies  []string
}

func (g *fakeGate) askedTimes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.reviews)
}

func (g *fakeGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var review v1alpha1.ToolCallReview
	if err != nil || json.Unmarshal(raw, &review) != nil || review.Request == nil {
		http.Error(w, "bad review", http.StatusTeapot)
		return
	}
	g.mu.Lock()
	g.queries, g.reviews, g.bodies = append(g.queries, r), append(g.reviews, review), append(g.bodies, string(raw))
	g.mu.Unlock()
	pause(r, g.row.Delay)
	if g.row.HangUp {
		panic(http.ErrAbortHandler)
	}
	g.answer(w, r, g.row.body(review.Request.UID))
}

func (g *fakeGate) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	for name, value := range g.row.Headers {
		w.Header().Set(name, value)
	}
	if !g.row.Chunked && g.row.Status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(g.row.Status)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // a client that has gone away is part of some rows, here and below
	pause(r, g.row.DelayBody)
	switch {
	case g.row.Status == http.StatusNoContent:
	case g.row.CutAt > 0:
		_, _ = w.Write(body[:g.row.CutAt])
		_ = flush.Flush()
		panic(http.ErrAbortHandler)
	case g.row.Trickle > 0:
		for i := 0; i < len(body) && r.Context().Err() == nil; i++ {
			_, _ = w.Write(body[i : i+1])
			_ = flush.Flush()
			pause(r, g.row.Trickle)
		}
	default:
		_, _ = w.Write(body)
	}
}

func pause(r *http.Request, milliseconds int) {
	if milliseconds == 0 {
		return
	}
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
	}
}

func serve(t *testing.T, r row) (*fakeGate, *httptest.Server) {
	t.Helper()
	g := &fakeGate{row: r}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	return g, s
}

// allowRow answers every request with a clear Allow.
func allowRow(t *testing.T) row {
	t.Helper()
	return readContract(t).Rows[0]
}
