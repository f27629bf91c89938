package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/inference/front"
	"gatewright.dev/gatewright/internal/inference/server"
)

type frontOptions struct {
	listen, upstream string
	files            server.TLSFiles
	maxInFlight      int
}

// newTLSFront is run by pods of runtime Container, beside an image of somebody else.
func newTLSFront() *cobra.Command {
	var o frontOptions
	c := &cobra.Command{
		Use: "tls-front", Hidden: true, Args: cobra.NoArgs,
		Short: "End TLS in front of a decider that speaks plain HTTP in the same pod",
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.ErrOrStderr()) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", ":8443", "address to listen on")
	f.StringVar(&o.upstream, "upstream", "", "address of the decider, http://127.0.0.1 and a port")
	f.StringVar(&o.files.Cert, "tls-cert", "", "file with the certificate chain; read anew when it changes")
	f.StringVar(&o.files.Key, "tls-key", "", "file with its key")
	f.StringVar(&o.files.ClientCA, "client-ca", "", "file with the authority of client certificates")
	f.IntVar(&o.maxInFlight, "max-in-flight", 1, "requests that the decider gets at once")
	return c
}

func (o *frontOptions) run(ctx context.Context, stderr io.Writer) error {
	if o.files.Cert == "" || o.files.Key == "" || o.files.ClientCA == "" {
		return exit{exitUsage, "--tls-cert, --tls-key and --client-ca are required"}
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	secure, err := o.files.Config(log)
	if err != nil {
		return err
	}
	upstream, err := url.Parse(o.upstream)
	if err != nil {
		return exit{exitUsage, "--upstream cannot be read as an address"}
	}
	f, err := front.New(front.Options{Upstream: upstream, MaxInFlight: o.maxInFlight, TLS: secure, Log: log})
	if err != nil {
		return exit{exitUsage, err.Error()}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	log.Info("listening", "address", l.Addr().String())
	return f.Serve(ctx, l)
}
