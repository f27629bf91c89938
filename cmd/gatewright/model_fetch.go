package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/fetch"
)

func newModelFetch() *cobra.Command {
	var o fetch.Options
	c := &cobra.Command{
		Use:   "fetch",
		Short: "Download a model file whose SHA-256 is known",
		Long: "Downloads a file over https, hashing it as it comes, and puts it under its name when it is whole and right. A file that\n" +
			"is there and right is left as it is. Redirects have to be https too, and may not lead to private addresses.\n" +
			"Exit status: 0 when the file is there, 10 if it has another hash, 1 otherwise.",
		Example: "  gatewright model fetch --url https://models.example.com/judge.gguf --sha256 \"$SHA256\" --out judge.gguf",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return fetchModel(c.Context(), o, c.ErrOrStderr()) },
	}
	f := c.Flags()
	f.StringVar(&o.URL, "url", "", "https address of the file (required)")
	f.StringVar(&o.SHA256, "sha256", "", "SHA-256 that it must have, 64 lower-case hexadecimal digits (required)")
	f.StringVar(&o.Out, "out", "", "file to write (required)")
	f.Int64Var(&o.MaxBytes, "max-bytes", fetch.DefaultMaxBytes, "largest file in bytes that is taken")
	f.BoolVar(&o.AllowPrivate, "allow-private-redirects", false, "let redirects lead to private and loopback addresses")
	return c
}

func fetchModel(ctx context.Context, o fetch.Options, progress io.Writer) error {
	last, began := time.Now(), time.Now()
	o.Progress = func(done, total int64) {
		if now := time.Now(); now.Sub(last) > 5*time.Second {
			last = now
			of := ""
			if total >= 0 {
				of = fmt.Sprintf(" of %d", total>>20)
			}
			_, _ = fmt.Fprintf(progress, "%d%s MiB after %s\n", done>>20, of, now.Sub(began).Round(time.Second))
		}
	}
	err := fetch.File(ctx, o)
	if wrong, ok := errors.AsType[*fetch.HashError](err); ok {
		return exit{exitHash, "HashMismatch: " + wrong.Error()}
	}
	return err
}
