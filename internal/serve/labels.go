package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/records"
	"gatewright.dev/gatewright/internal/strictjson"
)

// LabelsPath is where a person says by POST what a decision should have been.
const LabelsPath = "/v1alpha1/labels"

// Label is a person's word about a decision.
type Label struct {
	// Decision is its id.
	Decision string `json:"decision"`
	// Outcome that was right: Allow or Block.
	Outcome review.Outcome `json:"outcome"`
	// Message says why. The log has its digest; it is kept where the call is, or not at all.
	Message string `json:"message,omitempty"`
}

// maxLabel bounds what a person sends.
const maxLabel = 16 << 10

// labelTimeout is how long a decision is looked for, and the disk waited for.
const labelTimeout = 20 * time.Second

// labeler puts labels into the log. One at a time: each may read all of the log.
type labeler struct {
	records *records.Records
	metrics *deskMetrics
	log     *slog.Logger
}

// looking keeps several searches from reading the log at once.
var looking sync.Mutex

func (l labeler) take(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLabel))
	if err != nil {
		approverapi.Refuse(w, http.StatusRequestEntityTooLarge, "TooLarge", "the message is too long")
		return
	}
	var label Label
	if err := strictjson.Decode(data, strictjson.Limits{}, &label); err != nil {
		approverapi.Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	if _, err := uuid.Parse(label.Decision); err != nil || len(label.Decision) != 36 {
		approverapi.Refuse(w, http.StatusBadRequest, "InvalidField", "decision is the id of a decision, as in its answer and its record")
		return
	}
	if label.Outcome != review.Allow && label.Outcome != review.Block {
		approverapi.Refuse(w, http.StatusBadRequest, "InvalidField", "outcome is Allow or Block")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), labelTimeout)
	defer cancel()
	l.write(ctx, w, &label)
}

func (l labeler) write(ctx context.Context, w http.ResponseWriter, label *Label) {
	decision, ok, err := l.find(ctx, label.Decision)
	switch {
	case err != nil:
		l.log.ErrorContext(ctx, "decision could not be looked for", "decision", label.Decision, "error", err)
		approverapi.Refuse(w, http.StatusInternalServerError, "Internal", "the log could not be searched for the decision: nothing was written")
		return
	case !ok:
		approverapi.Refuse(w, http.StatusNotFound, "NotFound", "the log has no decision with this id")
		return
	}
	record := &audit.Record{
		Kind: audit.KindLabel, Time: time.Now(), Label: &audit.Label{Decision: label.Decision, Outcome: label.Outcome, By: approverOf(ctx).String()}, //nolint:forbidigo // when a person said it
	}
	if label.Message != "" {
		record.Label.MessageDigest, record.Captured = l.keep(ctx, &decision, label.Message)
	}
	if err := l.records.Append(ctx, record); err != nil {
		l.log.ErrorContext(ctx, "label could not be recorded", "decision", label.Decision, "error", err)
		approverapi.Refuse(w, http.StatusServiceUnavailable, "Unavailable", "the label could not be made durable: give it again in a moment")
		return
	}
	l.metrics.label(label.Decision, &decision, label.Outcome)
	approverapi.Answer(w, http.StatusOK, label)
}

// find looks for the decision in the file of the log. A log that is in no file cannot be searched: then any id is taken.
func (l labeler) find(ctx context.Context, id string) (audit.Entry, bool, error) {
	if l.records.Path == "" {
		return audit.Entry{}, true, nil
	}
	looking.Lock()
	defer looking.Unlock()
	return audit.FindDecision(ctx, l.records.Path, id)
}

// keep keeps what the person wrote as the call itself is kept, and returns its digest.
func (l labeler) keep(ctx context.Context, decision *audit.Entry, message string) (digest, captured string) {
	text, err := json.Marshal(map[string]string{"message": message})
	if err != nil {
		return "", ""
	}
	sum := sha256.Sum256(text)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	mode := capture.Mode(decision.Captured)
	if l.records.Store == nil || !l.records.Store.Keeps(mode) {
		return digest, ""
	}
	if err := l.records.Store.Put(mode, digest, text); err != nil {
		l.log.WarnContext(ctx, "message could not be kept", "error", fmt.Errorf("keeping a message: %w", err))
		return digest, ""
	}
	return digest, string(mode)
}
