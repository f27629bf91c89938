package cluster

import (
	"context"
	"log/slog"
	"net/http"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
)

// maxVerdicts bounds how many decisions of front doors are looked at at once: each asks the API server.
const maxVerdicts = 16

// NamedApprovals are approvals that are known by a cache to be there before the API server is asked.
type NamedApprovals interface {
	approverapi.Approvals
	// Where gives the namespaces in which there are approvals of a name.
	Where(name string) ([]string, error)
}

// FrontDoors decides approvals for users that the API server does not know, by what their front doors have signed, and by
// nothing else: no token of a caller decides. The signature is verified here and again when the approval is used. Who may
// send a request is for whoever serves it to say.
func FrontDoors(all NamedApprovals, c clock.PassiveClock, log *slog.Logger) http.Handler {
	api := approverapi.New(approverapi.Options{Approvals: signed{all}, Clock: c, Log: log})
	free := make(chan struct{}, maxVerdicts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
			api.Decide(w, r)
		default:
			approverapi.Refuse(w, http.StatusServiceUnavailable, "Overloaded", "too many decisions are looked at: send it again in a moment")
		}
	})
}

// signed keeps names that nobody has raised from the API server.
type signed struct{ NamedApprovals }

// Get implements approverapi.Approvals.
func (s signed) Get(ctx context.Context, name string) (approval.Approval, error) {
	namespaces, err := s.Where(name)
	switch {
	case err != nil:
		return approval.Approval{}, err
	case len(namespaces) == 0:
		return approval.Approval{}, approval.ErrNotFound
	}
	return s.NamedApprovals.Get(ctx, name)
}
