// Package console is the web page for those who approve calls and those who look at decisions. All of it is made on the
// server and works without a script; one small script adds live updates and the keyboard. Whatever came from a call is
// text in it and never anything that a browser runs.
package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/labeling"
)

// Path is where the page is.
const Path = "/console/"

// Approvals is what waits for a person. It gives only what carries a gate's seal.
type Approvals interface {
	List(ctx context.Context) ([]approval.Approval, error)
	Get(ctx context.Context, name string) (approval.Approval, error)
	Decide(ctx context.Context, name string, d approval.Decision) error
}

// Options of New.
type Options struct {
	Approvals Approvals
	// Records that the panel of decisions shows. Nil: there is none.
	Records Records
	// Label takes what a person says of a decision, in a label by their name. Nil: nothing can be said here.
	Label func(ctx context.Context, l labeling.Label) error
	// Identify says who holds a secret.
	Identify func(secret string) (approval.Approver, bool)
	// SignIn takes the place of Approvals and Identify where people differ in what they may see and do: it says who holds a
	// token. ErrUnknown: nobody does; any other error: that could not be asked.
	SignIn func(ctx context.Context, token string) (Person, error)
	// Replica names this gate among several. Sessions and the record are its own. Empty: there is only one.
	Replica string
	// Decided is told what a person has decided here; nil: nobody is.
	Decided func(a *approval.Approval)
	Clock   clock.WithTicker
	// Log takes who signed in and what was decided.
	Log *slog.Logger
}

// Handler serves everything below Path.
type Handler struct {
	Options
	mux      http.Handler
	pages    map[string]*template.Template
	sessions *sessions
	limiter  *limiter
	watch    *watch
	reading  chan struct{} // bounds who reads the record at the same time
	done     chan struct{}
	close    sync.Once
}

//go:embed web
var web embed.FS

// New makes the page.
func New(o Options) (*Handler, error) {
	h := &Handler{
		Options: o, sessions: newSessions(o.Clock), limiter: newLimiter(o.Clock), watch: newWatch(o.Approvals, o.Records, o.Clock), reading: make(chan struct{}, maxReaders),
		done: make(chan struct{}),
	}
	var err error
	if h.pages, err = parsePages(); err != nil {
		return nil, fmt.Errorf("reading the templates of the console: %w", err)
	}
	h.mux = h.routes()
	return h, nil
}

// Close ends the streams of live updates, for which a server that shuts down would wait.
func (h *Handler) Close() { h.close.Do(func() { close(h.done) }) }

func parsePages() (map[string]*template.Template, error) {
	layout, err := template.New("layout.html").Funcs(template.FuncMap{
		"prose": prose, "value": value, "plain": func(s string) string { return plain(prose(s)) }, "at": at, "left": left, "percent": percent, "compact": compact, "path": func() string { return Path }, "segment": url.PathEscape,
	}).ParseFS(web, "web/layout.html", "web/parts.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, name := range []string{"login", "queue", "call", "decisions", "decision", "error"} {
		page, err := template.Must(layout.Clone()).ParseFS(web, "web/"+name+".html")
		if err != nil {
			return nil, err
		}
		pages[name] = page
	}
	return pages, nil
}

func (h *Handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"{$}", h.guard(h.queue))
	mux.HandleFunc("GET "+Path+"calls/{name}", h.guard(h.call))
	mux.HandleFunc("POST "+Path+"calls/{name}", h.guard(h.decide))
	mux.HandleFunc("GET "+Path+"decisions", h.guard(h.decisions))
	mux.HandleFunc("GET "+Path+"decisions/{id}", h.guard(h.decision))
	mux.HandleFunc("POST "+Path+"decisions/{id}", h.guard(h.label))
	mux.HandleFunc("GET "+Path+"events", h.guard(h.events))
	mux.HandleFunc("GET "+Path+"login", h.loginForm)
	mux.HandleFunc("POST "+Path+"login", h.login)
	mux.HandleFunc("POST "+Path+"logout", h.guard(h.logout))
	mux.HandleFunc("GET "+Path+"static/{file}", static)
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return http.NewCrossOriginProtection().Handler(mux)
}

// policy of content: nothing but this page's own style and script, no frame around it, no form to elsewhere, and no way
// to make HTML of text in the script.
const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
	} {
		w.Header().Set(name, value)
	}
	if !isOwnOrigin(r) {
		h.fail(w, r, http.StatusForbidden, "This page answers its own forms only.")
		return
	}
	h.mux.ServeHTTP(w, r)
}

// isOwnOrigin says that a request that may change something comes from a page of this very host and port, as far as the
// browser tells.
func isOwnOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if r.Method == http.MethodGet || r.Method == http.MethodHead || origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// static gives the files that every page uses. They are of this binary, so they may be kept.
func static(w http.ResponseWriter, r *http.Request) {
	types := map[string]string{"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
	name := r.PathValue("file")
	data, err := web.ReadFile("web/" + name)
	if types[name] == "" || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(data)
}

// frame is what every page has around it.
type frame struct {
	Title string
	// Here is the part of the page that is current.
	Here string
	// Who is empty before somebody has signed in.
	Who, CSRF  string
	HasRecords bool
	// NoRecords says why there are none for this person, where that is worth a line.
	NoRecords string
	// ByToken says that people sign in with tokens of their own, and Replica where.
	ByToken bool
	Replica string
	Now     time.Time
	// Refresh reloads the page now and then where no script does.
	Refresh bool
	// Notice says what has just happened, and Problem what did not.
	Notice, Problem string
	Body            any
}

// show writes a page. It is made whole before any of it leaves, so that an error never looks like half a call.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, status int, page string, f frame) {
	f.Now, f.ByToken, f.Replica = h.Clock.Now(), h.isOfPerson(), h.Replica
	if s, ok := sessionOf(r.Context()); ok {
		f.Who, f.CSRF = s.person.Approver.Name, s.csrf
		why, _, _ := h.noRecords(r.Context()) // an end of the session is told by what the page itself asks
		if f.HasRecords = why == ""; f.ByToken {
			f.NoRecords = why
		}
	}
	var out bytes.Buffer
	if err := h.pages[page].ExecuteTemplate(&out, "layout.html", f); err != nil {
		h.Log.ErrorContext(r.Context(), "console page could not be made", "page", page, "error", err)
		http.Error(w, "the page could not be made: see the gate's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	h.show(w, r, status, "error", frame{Title: http.StatusText(status), Problem: message})
}

// unreadable says that what the page shows could not be read.
func (h *Handler) unreadable(w http.ResponseWriter, r *http.Request, what string, err error) {
	if errors.Is(err, context.Canceled) || h.signsOut(w, r, err) {
		return
	}
	h.Log.ErrorContext(r.Context(), what+" could not be read for the console", "error", err)
	h.fail(w, r, http.StatusInternalServerError, strings.ToUpper(what[:1])+what[1:]+" could not be read. The gate's log says why.")
}
