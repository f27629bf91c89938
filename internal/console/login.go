package console

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type sessionKey struct{}

func sessionOf(ctx context.Context) (session, bool) {
	s, ok := ctx.Value(sessionKey{}).(session)
	return s, ok
}

// liveHeader marks a request that the page makes by itself, which keeps nobody signed in.
const liveHeader = "Gatewright-Live"

func isLive(r *http.Request) bool {
	return r.Header.Get(liveHeader) != "" || strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream")
}

// maxForm bounds what a form sends: a message, and what the page put beside it.
const maxForm = 24 << 10

// guard lets in who has signed in, and with a form only what this page has made for that person.
func (h *Handler) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		isLive := isLive(r)
		s, ok := h.sessions.find(r, !isLive)
		switch {
		case !ok && isLive:
			http.Error(w, "sign in again", http.StatusUnauthorized)
			return
		case !ok && r.Method == http.MethodGet:
			http.Redirect(w, r, Path+"login?next="+nextOf(r), http.StatusSeeOther)
			return
		case !ok:
			h.fail(w, r, http.StatusUnauthorized, "You are no longer signed in. Nothing has happened: sign in and do it again. "+h.lost(r))
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, s))
		if r.Method == http.MethodPost && !h.readForm(w, r, s.csrf) {
			return
		}
		next(w, r)
	}
}

// readForm reads a form and checks its token. It answers if it says false.
func (h *Handler) readForm(w http.ResponseWriter, r *http.Request, token string) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		h.fail(w, r, http.StatusRequestEntityTooLarge, "The form could not be read: the message may be too long. Nothing has happened.")
		return false
	}
	if !isSame(r.PostForm.Get("csrf"), token) {
		h.fail(w, r, http.StatusForbidden, "The form is not one that this page has made for you. Nothing has happened: open the page anew. "+h.lost(r))
		return false
	}
	return true
}

// nextOf is where to go on after signing in: the page that was asked for, without its query.
func nextOf(r *http.Request) string { return strings.TrimPrefix(r.URL.EscapedPath(), Path) }

// localPath is a path of this page, whatever a link says.
func localPath(next string) string {
	for _, c := range next {
		isPlain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./", c)
		if !isPlain {
			return Path
		}
	}
	if strings.Contains(next, "..") || strings.HasPrefix(next, "/") || strings.HasPrefix(next, "log") || next == "events" {
		return Path
	}
	return Path + next
}

type loginPage struct{ Token, Next string }

func (h *Handler) loginForm(w http.ResponseWriter, r *http.Request) {
	h.showLogin(w, r, http.StatusOK, r.URL.Query().Get("next"), h.lost(r))
}

func (h *Handler) showLogin(w http.ResponseWriter, r *http.Request, status int, next, problem string) {
	visit := ""
	if c, err := r.Cookie(visitCookie); err == nil && len(c.Value) >= 32 {
		visit = c.Value
	} else {
		visit = random()
		http.SetCookie(w, cookie(r, visitCookie, visit, sessionLength))
	}
	next = strings.TrimPrefix(localPath(next), Path)
	h.show(w, r, status, "login", frame{Title: "Sign in", Here: "login", Problem: problem, Body: loginPage{h.sessions.tokenOf(visit), next}})
}

func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	visit, err := r.Cookie(visitCookie)
	if err != nil {
		h.showLogin(w, r, http.StatusForbidden, "", "Your browser has sent no cookie. This page needs cookies, and TLS unless it is on this machine.")
		return
	}
	if !h.readForm(w, r, h.sessions.tokenOf(visit.Value)) {
		return
	}
	next, address := r.PostForm.Get("next"), addressOf(r.RemoteAddr)
	if wait, ok := h.limiter.take(address); !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		h.showLogin(w, r, http.StatusTooManyRequests, next, "Too many attempts. Wait "+wait.Round(time.Second).String()+" and try again.")
		return
	}
	person, err := h.person(r.Context(), strings.TrimSpace(r.PostForm.Get("secret")))
	if err != nil {
		h.notIn(w, r, next, err)
		return
	}
	h.limiter.giveBack(address)
	if old, ok := h.sessions.find(r, false); ok {
		h.sessions.end(old.key)
	}
	http.SetCookie(w, cookie(r, sessionCookie, h.sessions.start(person, h.watchOf(&person)), sessionLength))
	http.SetCookie(w, cookie(r, visitCookie, "", 0))
	h.Log.InfoContext(r.Context(), "signed in to the console", "approver", person.Approver.String())
	http.Redirect(w, r, localPath(next), http.StatusSeeOther) //nolint:gosec // localPath begins with Path and has no letter that leads elsewhere
}

// notIn says why somebody is not signed in. The attempt counts.
func (h *Handler) notIn(w http.ResponseWriter, r *http.Request, next string, err error) {
	switch {
	case !errors.Is(err, ErrUnknown):
		h.Log.ErrorContext(r.Context(), "who signs in to the console could not be asked", "error", err)
		h.showLogin(w, r, http.StatusServiceUnavailable, next, "Whose token it is could not be asked. The gate's log says why: try again.")
	case h.isOfPerson():
		h.Log.WarnContext(r.Context(), "signing in to the console was refused", "address", addressOf(r.RemoteAddr))
		h.showLogin(w, r, http.StatusUnauthorized, next, "The API server does not take this token. One that an agent has for the gate does not do.")
	default:
		h.Log.WarnContext(r.Context(), "signing in to the console was refused", "address", addressOf(r.RemoteAddr))
		h.showLogin(w, r, http.StatusUnauthorized, next, "That is no approver's secret. A caller's token does not do.")
	}
}

func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	if s, ok := sessionOf(r.Context()); ok {
		h.sessions.end(s.key)
	}
	http.SetCookie(w, cookie(r, sessionCookie, "", 0))
	http.Redirect(w, r, Path+"login", http.StatusSeeOther)
}
