// Package natsstore remembers used permits in a key-value bucket of NATS JetStream, for tool servers of several replicas.
// A use is a key that is created if the bucket has never held it; that is one atomic step of the server.
package natsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/permit"
)

const (
	// DefaultBucket holds the used permits.
	DefaultBucket = "gatewright-permits"
	// Kept is how long a bucket remembers a permit, longer than any permit has to be remembered.
	Kept = 10 * time.Minute
	// DefaultTimeout bounds one use.
	DefaultTimeout = 2 * time.Second
	// maxValue bounds what stands under a key: 20 bytes of a time, and up to 300 that the client's headers count for.
	maxValue = 1024
)

// ErrBadBucket says that a bucket would forget permits too early. Its text says why.
var ErrBadBucket = errors.New("bucket cannot keep used permits")

// Options of Open.
type Options struct {
	// URL of the servers, separated by commas: nats://, or tls:// anywhere but on loopback.
	URL string
	// CredentialsFile of the account, empty for none.
	CredentialsFile string
	// CAFile holds the only authorities to trust, empty for the system's.
	CAFile string
	// Bucket, DefaultBucket if empty. It is made if it is not there.
	Bucket string
	// Replicas of a bucket that is made, 1 if zero. With one a server that is lost takes the bucket with it.
	Replicas int
	// Timeout of one use, DefaultTimeout if zero.
	Timeout time.Duration
	// Clock, the system's if nil.
	Clock clock.PassiveClock
}

// Store is a permit.SharedStore in a bucket.
type Store struct {
	conn    *nats.Conn
	bucket  jetstream.KeyValue
	clock   clock.PassiveClock
	timeout time.Duration
}

var _ permit.SharedStore = (*Store)(nil)

// Open connects, and makes the bucket if it is not there. One that is there and would forget too early is refused.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Bucket == "" {
		o.Bucket = DefaultBucket
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	conn, err := nats.Connect(o.URL, connectOptions(&o)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	bucket, err := openBucket(ctx, conn, &o)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("opening bucket %s: %w", o.Bucket, err)
	}
	return &Store{conn: conn, bucket: bucket, clock: o.Clock, timeout: o.Timeout}, nil
}

// connectOptions reconnect for ever, and keep nothing back meanwhile: a use that cannot be sent now is refused now.
func connectOptions(o *Options) []nats.Option {
	options := []nats.Option{
		nats.Name("gatewright permits"), nats.Timeout(o.Timeout), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
	}
	if o.CredentialsFile != "" {
		options = append(options, nats.UserCredentials(o.CredentialsFile))
	}
	if o.CAFile != "" {
		options = append(options, nats.RootCAs(o.CAFile))
	}
	return options
}

func openBucket(ctx context.Context, conn *nats.Conn, o *Options) (jetstream.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*o.Timeout)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	bucket, err := js.KeyValue(ctx, o.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		bucket, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: o.Bucket, Description: "permits of Gatewright that were used", TTL: Kept, MaxValueSize: maxValue,
			Storage: jetstream.FileStorage, Replicas: max(o.Replicas, 1),
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another replica made it at once
			bucket, err = js.KeyValue(ctx, o.Bucket)
		}
	}
	if err != nil {
		return nil, err
	}
	status, err := bucket.Status(ctx)
	if err != nil {
		return nil, err
	}
	return bucket, checkBucket(status.Config())
}

// checkBucket refuses what forgets. A bucket of its own making passes.
func checkBucket(c jetstream.KeyValueConfig) error {
	switch {
	case c.TTL != 0 && c.TTL < Kept:
		return fmt.Errorf("%w: its time to live is %s, and it has to be at least %s", ErrBadBucket, c.TTL, Kept)
	case c.Storage != jetstream.FileStorage:
		return fmt.Errorf("%w: it is kept in memory, so that a restart of the server makes permits good again", ErrBadBucket)
	case c.Mirror != nil || len(c.Sources) > 0:
		return fmt.Errorf("%w: it is a copy of another one", ErrBadBucket)
	}
	return nil
}

// SharedByReplicas implements permit.SharedStore.
func (s *Store) SharedByReplicas() {}

// Use implements permit.Store. A key that was deleted stays used: the bucket has held it.
func (s *Store) Use(ctx context.Context, jti string, until time.Time) error {
	if err := permit.CheckUse(ctx, jti); err != nil {
		return err
	}
	left := until.Sub(s.clock.Now())
	if left <= 0 || left > Kept {
		return fmt.Errorf("permit would have to be remembered for %s, and the bucket remembers for %s", left, Kept)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// Revision 0 means that no message has the key, a marker of a deletion included; Create would write over one.
	_, err := s.bucket.Update(ctx, jti, []byte(until.UTC().Format(time.RFC3339)), 0)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return fmt.Errorf("%w: %w", permit.ErrUsed, err)
	}
	return fmt.Errorf("writing down a used permit: %w", err)
}

// Ready says whether permits can be used now.
func (s *Store) Ready(ctx context.Context) error {
	if !s.conn.IsConnected() {
		return errors.New("not connected to NATS")
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	status, err := s.bucket.Status(ctx)
	if err != nil {
		return fmt.Errorf("looking at bucket: %w", err)
	}
	return checkBucket(status.Config())
}

// Close ends the connection. Afterwards nothing can be used.
func (s *Store) Close() error {
	s.conn.Close()
	return nil
}
