// Package otlpsink gives the lines of an audit log on as OpenTelemetry log records, over HTTP. It is a copy for people who
// search and watch, and no place where a record is safe: that is the log itself.
package otlpsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// Options of New.
type Options struct {
	// URL of the receiver, http or https. Without a path it gets /v1/logs.
	URL string
	// Version of the gate, in the resource.
	Version string
	// QueueBytes and Timeout as in audit.MirrorOptions.
	QueueBytes int
	Timeout    time.Duration
	// Warn is told that records are being dropped.
	Warn func(error)
}

// New starts a mirror to a receiver. The receiver need not be there.
func New(ctx context.Context, o Options) (*audit.Mirror, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("want an http or https address of an OTLP receiver, such as http://localhost:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/logs"
	}
	// A record that cannot be sent now is dropped: retrying would hold up those behind it, and the log has them all.
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(u.String()), otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("making an OTLP exporter: %w", err)
	}
	s := &sender{exporter: exporter}
	about := resource.NewSchemaless(attribute.String("service.name", "gatewright"), attribute.String("service.version", o.Version))
	s.logger = sdklog.NewLoggerProvider(sdklog.WithProcessor(&s.collected), sdklog.WithResource(about)).Logger("gatewright.dev/gatewright/internal/audit")
	return audit.NewMirror(audit.MirrorOptions{Send: s.send, QueueBytes: o.QueueBytes, Timeout: o.Timeout, Warn: o.Warn}), nil //nolint:contextcheck // what is sent outlives the start
}

// sender is used by one goroutine.
type sender struct {
	exporter  sdklog.Exporter
	logger    log.Logger
	collected collector
}

func (s *sender) send(ctx context.Context, lines []byte) error {
	s.collected.records = s.collected.records[:0]
	for line := range bytes.Lines(lines) {
		s.emit(ctx, bytes.TrimSuffix(line, []byte{'\n'}))
	}
	return s.exporter.Export(ctx, s.collected.records)
}

// emit makes a log record of a line: its body is the line itself, so that a receiver can check the chain.
func (s *sender) emit(ctx context.Context, line []byte) {
	e, err := audit.Decode(line)
	if err != nil {
		return // cannot be: the log has just written it
	}
	var r log.Record
	r.SetTimestamp(e.Time)
	r.SetEventName("gatewright.audit." + e.Kind)
	r.SetSeverity(severity(&e))
	r.SetSeverityText(strings.ToUpper(r.Severity().String()))
	r.SetBody(attribute.StringValue(string(line)))
	r.AddAttributes(attribute.Int64("gatewright.seq", int64(e.Seq)))
	for name, value := range map[string]string{
		"gatewright.decision": e.ID, "gatewright.outcome": string(e.Outcome), "gatewright.reason": e.Reason, "gatewright.by": e.By,
		"gatewright.tool": e.Tool, "gatewright.class": e.Class, "k8s.namespace.name": e.Caller.Namespace, "gatewright.service_account": e.Caller.ServiceAccount,
	} {
		if value != "" {
			r.AddAttributes(attribute.String(name, value))
		}
	}
	s.logger.Emit(ctx, r)
}

// severity makes what was stopped stand out.
func severity(e *audit.Entry) log.Severity {
	switch {
	case e.Kind == audit.KindUnrecorded || e.Kind == audit.KindRecovered || e.Kind == audit.KindAdopted:
		return log.SeverityError
	case e.Outcome == review.Block:
		return log.SeverityWarn
	}
	return log.SeverityInfo
}

// collector keeps what the SDK makes of records, for one export.
type collector struct{ records []sdklog.Record }

// Enabled implements sdklog.Processor.
func (c *collector) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// OnEmit implements sdklog.Processor.
func (c *collector) OnEmit(_ context.Context, r *sdklog.Record) error {
	c.records = append(c.records, r.Clone())
	return nil
}

// Shutdown implements sdklog.Processor.
func (c *collector) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdklog.Processor.
func (c *collector) ForceFlush(context.Context) error { return nil }
