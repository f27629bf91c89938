package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// stream is the body of a watch that a test ends.
type stream struct {
	io.Reader
	closed int
}

func (s *stream) Close() error { s.closed++; return nil }

// watched opens a request through a Contact, and gives its body.
func watched(t *testing.T, c *Contact, url string, status int) io.ReadCloser {
	t.Helper()
	body := &stream{Reader: strings.NewReader("event")}
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: body}, nil
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Wrap(next).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return response.Body
}

func TestContactNeedsAnAnswerAndEveryWatch(t *testing.T) {
	const a, b = "https://server/apis/x/v1/as?watch=true", "https://server/apis/x/v1/bs/?watch=1&resourceVersion=3"
	for name, test := range map[string]struct {
		do   func(t *testing.T, c *Contact)
		ping error
		want bool
	}{
		"an answer and both watches": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			watched(t, c, b, http.StatusOK)
		}, nil, true},
		"both watches and no answer": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			watched(t, c, b, http.StatusOK)
		}, errors.New("away"), false},
		"an answer and no watch":  {func(*testing.T, *Contact) {}, nil, false},
		"an answer and one watch": {func(t *testing.T, c *Contact) { watched(t, c, a, http.StatusOK) }, nil, false},
		"a watch that was refused": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			watched(t, c, b, http.StatusForbidden)
		}, nil, false},
		"a list is no watch": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			watched(t, c, "https://server/apis/x/v1/bs", http.StatusOK)
		}, nil, false},
		"a watch of something else": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			watched(t, c, "https://server/apis/x/v1/cs?watch=true", http.StatusOK)
		}, nil, false},
		"a watch whose stream has ended": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			body := watched(t, c, b, http.StatusOK)
			if data, err := io.ReadAll(body); err != nil || string(data) != "event" {
				t.Errorf("%q, %v", data, err)
			}
		}, nil, false},
		"a watch that was closed, twice": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			body := watched(t, c, b, http.StatusOK)
			_, _ = body.Close(), body.Close()
		}, nil, false},
		"a watch that was opened again before the old one ended": {func(t *testing.T, c *Contact) {
			watched(t, c, a, http.StatusOK)
			old := watched(t, c, b, http.StatusOK)
			watched(t, c, b, http.StatusOK)
			_ = old.Close()
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			c := NewContact(ContactOptions{
				Ping: func(context.Context) error { return test.ping }, Paths: []string{"/apis/x/v1/as", "/apis/x/v1/bs"},
				Limit: time.Minute, Clock: clock, Log: slog.New(slog.DiscardHandler),
			})
			if !c.IsAway() || c.Age() != 0 || !c.Last().IsZero() {
				t.Error("it begins in contact")
			}
			clock.Step(time.Minute)
			test.do(t, c)
			c.beat(t.Context())
			if c.IsAway() != (test.ping != nil) {
				t.Errorf("away %v", c.IsAway())
			}
			clock.Step(3 * time.Second)
			wantAge, wantLast := 63*time.Second, time.Time{}
			if test.want {
				wantAge, wantLast = 3*time.Second, noon.Add(time.Minute)
			}
			if c.Age() != wantAge || !c.Last().Equal(wantLast) {
				t.Errorf("age %s, last %s", c.Age(), c.Last())
			}
		})
	}
}

// What changes while an answer is on its way may be missing, so contact counts from before the question.
func TestContactCountsFromTheQuestion(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	c := NewContact(ContactOptions{Ping: func(context.Context) error { clock.Step(2 * time.Second); return nil }, Limit: time.Minute, Clock: clock, Log: slog.New(slog.DiscardHandler)})
	c.beat(t.Context())
	if c.Age() != 2*time.Second {
		t.Errorf("age %s", c.Age())
	}
}

func TestContactBeatsOftenEnoughForItsLimit(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{5 * time.Minute: 5 * time.Second, 30 * time.Second: 5 * time.Second, 6 * time.Second: time.Second} {
		c := NewContact(ContactOptions{Limit: limit, Clock: clocktesting.NewFakeClock(noon)})
		if c.every != want {
			t.Errorf("limit %s: every %s", limit, c.every)
		}
	}
}
