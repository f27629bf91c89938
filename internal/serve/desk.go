package serve

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/loopback"
	"gatewright.dev/gatewright/internal/periodic"
	"gatewright.dev/gatewright/internal/permit"
)

// ApprovalsPath is where a person sees what waits and decides it.
const ApprovalsPath = approverapi.Path

type (
	// Verdict is what a person sends.
	Verdict = approverapi.Verdict
	// Shown is an approval as a person sees it.
	Shown = approverapi.Shown
	// Other is what else waits from the same session.
	Other = approverapi.Other
)

// desk is where a person decides. Its secrets are its own: no token of a caller opens it.
type desk struct {
	approvers approvers
	// tokens tells approvers by tokens of an issuer; nil: none does.
	tokens    *tokenVerifier
	approvals approval.Store
	// keys publishes the public keys of permits, for tool servers.
	keys http.Handler
	// page is the web page; nil: there is none.
	page    http.Handler
	labels  labels
	metrics *deskMetrics
	clock   clock.PassiveClock
	log     *slog.Logger
}

// newDesk reads the approvers' secrets, or makes one that only the user of this process can read.
func newDesk(path string, approvals approval.Store, keys http.Handler, log *slog.Logger) (*desk, error) {
	all, err := loadApprovers(path)
	if err != nil {
		return nil, err
	}
	return &desk{approvers: all, approvals: approvals, keys: keys, metrics: newDeskMetrics(), clock: clock.RealClock{}, log: log}, nil
}

func (d *desk) api() *approverapi.API {
	return approverapi.New(approverapi.Options{Approvals: d.approvals, Who: approverOf, Decided: d.metrics.decision, Clock: d.clock, Log: d.log})
}

// routes puts the desk beside the gate. Without tokens a request has to be addressed to loopback by name, so that a web
// page that points its own name there cannot ask.
func (c *Config) routes(gate http.Handler, d *desk) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", gate)
	mux.Handle("GET "+permit.JWKSPath, d.keys)
	api := d.api()
	mux.HandleFunc("GET "+ApprovalsPath, d.guard(api.List))
	mux.HandleFunc("GET "+ApprovalsPath+"/{name}", d.guard(api.Show))
	mux.HandleFunc("POST "+ApprovalsPath+"/{name}", d.guard(api.Decide))
	mux.HandleFunc("POST "+LabelsPath, d.guard(d.labels.take))
	if d.page != nil {
		mux.Handle(console.Path, d.page)
	}
	if c.TokenFile != "" {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback.IsAddress(r.Host) || !isLocalOrigin(r.Header.Get("Origin")) {
			approverapi.Refuse(w, http.StatusForbidden, "NotLocal", "this gate answers requests to localhost only")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func isLocalOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && loopback.IsAddress(u.Host)
}

// tidyEvery is how often the journal of approvals is looked through for what ended more than an hour ago.
const tidyEvery = 10 * time.Minute

// tidier keeps the journal of approvals short. The function that it returns ends that, and waits for it.
func tidier(ctx context.Context, approvals *approval.File, c clock.WithTicker, log *slog.Logger) (stop func()) {
	return periodic.Start(ctx, c, tidyEvery, func(ctx context.Context) {
		if err := approvals.Tidy(ctx); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "the journal of approvals could not be tidied up", "error", err)
		}
	})
}

// maxReported bounds what is logged about one journal; all of it is counted.
const maxReported = 20

// reportIgnored says which lines of the journal were not believed.
func reportIgnored(ctx context.Context, all []approval.Ignored, count func(reason string), log *slog.Logger) {
	for i, line := range all {
		count(string(line.Reason))
		if i < maxReported {
			log.ErrorContext(ctx, "a line of the approval log is not this gate's and was ignored", "line", line.Line, "op", line.Op, "approval", line.Name, "reason", line.Reason)
		}
	}
	if len(all) > maxReported {
		log.ErrorContext(ctx, "more lines of the approval log were ignored", "lines", len(all))
	}
}
