package serve

import (
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/labeling"
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

// labels takes what people say of decisions.
type labels struct {
	labeler *labeling.Labeler
	log     *slog.Logger
}

// openLabels lets those who may decide at the desk label as well.
func (d *desk) openLabels(r *records.Records, registry prometheus.Registerer) (err error) {
	d.labels.log = d.log
	d.labels.labeler, err = labeling.New(labeling.Options{Log: r, Path: r.Path, Store: r.Store, Clock: d.clock, Logger: d.log, Registry: registry})
	return err
}

func (l labels) take(w http.ResponseWriter, r *http.Request) {
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
	given := labeling.Label{Decision: label.Decision, Outcome: label.Outcome, By: approverOf(r.Context()).String(), Message: label.Message}
	if err := given.Validate(); err != nil {
		approverapi.Refuse(w, http.StatusBadRequest, "InvalidField", err.Error())
		return
	}
	err = l.labeler.Give(r.Context(), given)
	switch {
	case err == nil:
		approverapi.Answer(w, http.StatusOK, &label)
	case errors.Is(err, labeling.ErrNotFound):
		approverapi.Refuse(w, http.StatusNotFound, "NotFound", "the log has no decision with this id")
	case errors.Is(err, labeling.ErrUnsearched):
		l.log.ErrorContext(r.Context(), "decision could not be looked for", "decision", label.Decision, "error", err)
		approverapi.Refuse(w, http.StatusInternalServerError, "Internal", "the log could not be searched for the decision: nothing was written")
	default:
		l.log.ErrorContext(r.Context(), "label could not be recorded", "decision", label.Decision, "error", err)
		approverapi.Refuse(w, http.StatusServiceUnavailable, "Unavailable", "the label could not be made durable: give it again in a moment")
	}
}
