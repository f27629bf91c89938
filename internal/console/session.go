package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/loopback"
)

const (
	// sessionCookie and visitCookie are sent back for this page alone. A visit is a browser before its person has signed in.
	sessionCookie = "gatewright-console"
	visitCookie   = "gatewright-visit"
	// sessionLength is a working day, idleLength a lunch.
	sessionLength = 8 * time.Hour
	idleLength    = time.Hour
	// maxSessions is more than a desk has people and browsers.
	maxSessions = 256
	// maxSessionsEach keeps one person, or a program with a token, from making all others sign in again.
	maxSessionsEach = 16
)

// session is a browser in which a person has signed in.
type session struct {
	key    [sha256.Size]byte // digest of the cookie
	person Person
	csrf   string
	ends   time.Time
	idle   time.Time // moves on with every page that the person opens
	// watch looks at what the person may see.
	watch *watch
}

// sessions are kept in memory: a restart ends them all.
type sessions struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*session
	// pages makes the tokens of forms of those who have not signed in.
	pages []byte
}

func newSessions(c clock.PassiveClock) *sessions {
	return &sessions{clock: c, byKey: map[[sha256.Size]byte]*session{}, pages: []byte(random())}
}

// random is 256 bits that nobody can guess.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it ends the process rather than to fail
	return base64.RawURLEncoding.EncodeToString(b)
}

// start signs a person in and gives the content of the cookie.
func (s *sessions) start(p Person, w *watch) string {
	id, now := random(), s.clock.Now()
	n := &session{key: sha256.Sum256([]byte(id)), person: p, csrf: random(), ends: now.Add(sessionLength), idle: now.Add(idleLength), watch: w}
	if !p.Until.IsZero() && p.Until.Before(n.ends) {
		n.ends = p.Until
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(now, maxSessions, func(*session) bool { return true })
	s.makeRoom(now, maxSessionsEach, func(o *session) bool { return o.person.Approver == p.Approver })
	s.byKey[n.key] = n
	return id
}

// makeRoom drops what has ended and, until fewer than most of those that count are left, what was idle longest.
func (s *sessions) makeRoom(now time.Time, most int, counts func(*session) bool) {
	for {
		var oldest *session
		found := 0
		for key, n := range s.byKey {
			switch {
			case n.hasEnded(now):
				delete(s.byKey, key)
			case counts(n):
				found++
				if oldest == nil || n.idle.Before(oldest.idle) {
					oldest = n
				}
			}
		}
		if found < most {
			return
		}
		delete(s.byKey, oldest.key)
	}
}

func (n *session) hasEnded(now time.Time) bool { return !now.Before(n.ends) || !now.Before(n.idle) }

// find gives a copy of the session that a request belongs to. isActive says that its person has done something.
func (s *sessions) find(r *http.Request, isActive bool) (session, bool) {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return session{}, false
	}
	return s.get(sha256.Sum256([]byte(c.Value)), isActive)
}

func (s *sessions) get(key [sha256.Size]byte, isActive bool) (session, bool) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byKey[key]
	if n == nil {
		return session{}, false
	}
	if n.hasEnded(now) {
		delete(s.byKey, key)
		return session{}, false
	}
	if isActive {
		n.idle = now.Add(idleLength)
	}
	return *n, true
}

func (s *sessions) end(key [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}

// tokenOf is what a form shown to a visit has to send back.
func (s *sessions) tokenOf(visit string) string {
	m := hmac.New(sha256.New, s.pages)
	m.Write([]byte(visit))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func isSame(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// cookie is one for this page alone. A browser that came by another name than loopback keeps it only if it came by TLS.
func cookie(r *http.Request, name, value string, lasts time.Duration) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // Secure is left out on loopback alone, where browsers would not send it without TLS
		Name: name, Value: value, Path: Path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || !loopback.IsHost(hostName(r.Host)), MaxAge: int(lasts / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
