package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestTraces asks once in vain and once with success, within a trace of the caller.
func TestTraces(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	r := start(t, newScripted(), func(o *Options) { o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)) })
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.post(t, asks(`"do-not-leak"`), "Traceparent", parent)
	r.post(t, `{"state":"do-not-leak"}`, "Traceparent", parent)
	eventually(t, "all spans ended", func() bool { return len(recorder.Ended()) == 4 })
	var names []string
	for _, span := range recorder.Ended() {
		names = append(names, span.Name()+" "+span.Status().Code.String())
		if span.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in another trace", span.Name())
		}
		if span.Status().Code == codes.Error && span.Status().Description != string(CodeValidation) {
			t.Errorf("status %+v", span.Status())
		}
		for _, a := range span.Attributes() {
			if strings.Contains(a.Value.String(), "do-not-leak") {
				t.Errorf("%s holds text of the state", a.Key)
			}
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"POST /v1/systemone Error", "POST /v1/systemone Unset", "prompt Unset", "queue Unset"}, names); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
