package serve

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/uuid"

	"gatewright.dev/gatewright/internal/inference/judge"
)

func TestExplainNamesTheFactsBehindTheEmbeddedJudge(t *testing.T) {
	body := fmt.Appendf(nil, `{"apiVersion": "review.gatewright.dev/v1alpha1", "kind": "ToolCallReview", "request": {"uid": %q, "tool": {"name": "send_message"},
		"arguments": {"to": "ada@example.com", "text": "Hello"}, "context": {"userRequest": "Say hello to ada@example.com."}}}`, uuid.Must(uuid.NewV7()))
	got, err := Explain(t.Context(), ExplainOptions{Manifests: "../../config/samples", Caller: "crm/agent", Log: slog.New(slog.DiscardHandler)}, body)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(got.Drivers, func(d judge.Drivers) bool { return d.Question == "matches_request" })
	if i < 0 || len(got.Drivers[i].Pushes) != mostPushes || got.Drivers[i].Arguments["/to"] != "User" {
		t.Errorf("drivers = %+v", got.Drivers)
	}
}
