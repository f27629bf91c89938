// Package natssink keeps an audit log in a NATS JetStream stream. A batch of lines is one message, so that it is there
// whole or not at all, and it counts as durable when the stream has acknowledged it.
package natssink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gatewright.dev/gatewright/internal/audit"
)

// Options of Open.
type Options struct {
	// URL of the servers, nats:// or tls://, several with commas.
	URL string
	// Stream that keeps the log. It is made if it is not there: with files, replicas, and no bound.
	Stream string
	// Subject of this log, one for each gate: two that share one would break each other's chain. Stream + ".log" by default.
	Subject string
	// Replicas of a stream that is made, 1 by default.
	Replicas int
	// MaxBytes of a stream that is made, 0 for no bound. A full one refuses records, and the gate blocks.
	MaxBytes int64
	// Credentials is a file with a JWT and a seed; empty: none.
	Credentials string
	// Timeout of one exchange, 3 s by default.
	Timeout time.Duration
}

// Parse reads nats://HOST:PORT/STREAM?subject=S&replicas=N&maxBytes=N&credentials=FILE, or the same with tls://.
func Parse(s string) (Options, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
		return Options{}, errors.New("want nats://HOST:PORT/STREAM or tls://HOST:PORT/STREAM")
	}
	o := Options{Stream: strings.Trim(u.Path, "/")}
	if o.Stream == "" || strings.ContainsAny(o.Stream, "/. *>\t") {
		return Options{}, fmt.Errorf("%q is no name of a stream: want nats://HOST:PORT/STREAM", o.Stream)
	}
	for name, values := range u.Query() {
		value := values[len(values)-1]
		switch name {
		case "subject":
			o.Subject = value
		case "credentials":
			o.Credentials = value
		case "replicas":
			if o.Replicas, err = strconv.Atoi(value); err != nil || o.Replicas < 1 || o.Replicas > 5 {
				return Options{}, fmt.Errorf("replicas=%s: want 1 to 5", value)
			}
		case "maxBytes":
			if o.MaxBytes, err = strconv.ParseInt(value, 10, 64); err != nil || o.MaxBytes < 1 {
				return Options{}, fmt.Errorf("maxBytes=%s: want a number from 1", value)
			}
		default:
			return Options{}, fmt.Errorf("%s is not known: there are subject, replicas, maxBytes and credentials", name)
		}
	}
	u.Path, u.RawQuery = "", ""
	o.URL = u.String()
	return o, nil
}

func (o *Options) setDefaults() {
	o.Subject = cmp.Or(o.Subject, o.Stream+".log")
	o.Replicas = max(o.Replicas, 1)
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
}

// connection says how to connect. Nothing is kept for later while there is no connection: a publish fails at once, and the
// gate blocks.
func (o *Options) connection() []nats.Option {
	options := []nats.Option{nats.Name("gatewright audit"), nats.Timeout(o.Timeout), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectBufSize(-1)}
	if o.Credentials != "" {
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	return options
}

// Sink is a log in a stream. It implements audit.Resumer. Its methods are for one goroutine.
type Sink struct {
	options Options
	conn    *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	last    uint64 // of the stream, on our subject; 0 if there is none
	payload int64
}

// room is what a message has beside its data: headers of the client.
const room = 8 << 10

// Open connects, makes the stream if it is not there, and returns the end of the log in it.
func Open(ctx context.Context, o Options) (*Sink, audit.Head, error) {
	o.setDefaults()
	s := &Sink{options: o}
	var err error
	if s.conn, err = nats.Connect(o.URL, o.connection()...); err != nil {
		return nil, audit.Head{}, fmt.Errorf("connecting to NATS: %w", err)
	}
	head, err := s.prepare(ctx)
	if err != nil {
		s.conn.Close()
		return nil, audit.Head{}, err
	}
	return s, head, nil
}

func (s *Sink) prepare(ctx context.Context) (audit.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*s.options.Timeout)
	defer cancel()
	var err error
	if s.js, err = jetstream.New(s.conn); err != nil {
		return audit.Head{}, fmt.Errorf("using JetStream: %w", err)
	}
	if s.payload = s.conn.MaxPayload() - room; s.payload < audit.MaxRecord+room {
		return audit.Head{}, fmt.Errorf("the server takes messages of %d bytes, and a record may have %d: raise max_payload", s.conn.MaxPayload(), audit.MaxRecord)
	}
	if err := s.openStream(ctx); err != nil {
		return audit.Head{}, err
	}
	return s.end(ctx)
}

func (s *Sink) openStream(ctx context.Context) error {
	o := s.options
	stream, err := s.js.Stream(ctx, o.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: o.Stream, Subjects: []string{o.Stream + ".>"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
			Replicas: o.Replicas, MaxBytes: cmp.Or(o.MaxBytes, -1), DenyDelete: true, DenyPurge: true,
		})
	}
	if err != nil {
		return fmt.Errorf("opening stream %s: %w", o.Stream, err)
	}
	s.stream = stream
	c := stream.CachedInfo().Config
	switch {
	case c.Storage != jetstream.FileStorage:
		return fmt.Errorf("stream %s is kept in memory: an audit log needs file storage", o.Stream)
	case c.Discard != jetstream.DiscardNew && (c.MaxMsgs > 0 || c.MaxBytes > 0), c.MaxMsgsPerSubject > 0:
		return fmt.Errorf("stream %s drops old messages without a word when it is full: set discard to new, and no bound by subject", o.Stream)
	case c.MaxAge > 0:
		return fmt.Errorf("stream %s drops messages after %s without a word: set no maximum age", o.Stream, c.MaxAge)
	case c.Retention != jetstream.LimitsPolicy:
		return fmt.Errorf("stream %s drops what was read: set retention to limits", o.Stream)
	case c.NoAck:
		return fmt.Errorf("stream %s acknowledges nothing: set no_ack to false", o.Stream)
	}
	return nil
}

// end finds the last message of the log, and the end of the chain in it.
func (s *Sink) end(ctx context.Context) (audit.Head, error) {
	m, err := s.stream.GetLastMsgForSubject(ctx, s.options.Subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		s.last = 0
		return audit.Head{}, nil
	}
	if err != nil {
		return audit.Head{}, fmt.Errorf("reading the end of the log: %w", err)
	}
	head, err := audit.LastHead(m.Data)
	if err != nil {
		return audit.Head{}, fmt.Errorf("message %d of stream %s is no part of an audit log: %w", m.Sequence, s.options.Stream, err)
	}
	s.last = m.Sequence
	return head, nil
}

// MaxBatch is the longest batch in bytes.
func (s *Sink) MaxBatch() int { return int(s.payload) }

// Append implements audit.Sink. The stream takes the message only if the last one on the subject is the one that this
// sink wrote or read, so that two writers cannot mix.
func (s *Sink) Append(lines []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Timeout)
	defer cancel()
	ack, err := s.js.Publish(ctx, s.options.Subject, lines, jetstream.WithExpectLastSequencePerSubject(s.last), jetstream.WithExpectStream(s.options.Stream))
	if err != nil {
		return fmt.Errorf("publishing to stream %s: %w", s.options.Stream, err)
	}
	s.last = ack.Sequence
	return nil
}

// Resume implements audit.Resumer.
func (s *Sink) Resume() (audit.Head, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Timeout)
	defer cancel()
	return s.end(ctx)
}

// Close implements audit.Sink.
func (s *Sink) Close() error {
	s.conn.Close()
	return nil
}

// Logs are the subjects of a stream on which there is something, sorted: one log each. The stream has to be there.
func Logs(ctx context.Context, o Options) ([]string, error) {
	o.setDefaults()
	s := &Sink{options: o}
	var err error
	if s.conn, err = nats.Connect(o.URL, o.connection()...); err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	defer s.conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*o.Timeout)
	defer cancel()
	if s.js, err = jetstream.New(s.conn); err != nil {
		return nil, fmt.Errorf("using JetStream: %w", err)
	}
	stream, err := s.js.Stream(ctx, o.Stream)
	if err != nil {
		return nil, fmt.Errorf("opening stream %s: %w", o.Stream, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", o.Stream, err)
	}
	return slices.Sorted(maps.Keys(info.State.Subjects)), nil
}

// Read gives the lines of a log in a stream to each, message by message, oldest first, up to the end at the time of the
// call. The last batch is durable, and what is read is whole lines.
func Read(ctx context.Context, o Options, each func(lines []byte) error) error {
	o.setDefaults()
	s, head, err := Open(ctx, o)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	if head.Seq == 0 {
		return nil
	}
	consumer, err := s.js.OrderedConsumer(ctx, o.Stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{o.Subject}})
	if err != nil {
		return fmt.Errorf("reading stream %s: %w", o.Stream, err)
	}
	for {
		m, err := consumer.Next(jetstream.FetchMaxWait(o.Timeout))
		if err != nil {
			return fmt.Errorf("reading stream %s: %w", o.Stream, err)
		}
		about, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("reading stream %s: %w", o.Stream, err)
		}
		if err := cmp.Or(ctx.Err(), each(m.Data())); err != nil {
			return err
		}
		if about.Sequence.Stream >= s.last {
			return nil
		}
	}
}

var _ audit.Resumer = (*Sink)(nil)
