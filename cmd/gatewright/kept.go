package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/serve"
	"gatewright.dev/gatewright/internal/strictjson"
)

// keptCalls are the calls that a gate kept beside its log.
type keptCalls struct {
	folder, secret string
	store          *capture.Store
}

func (k *keptCalls) bind(c *cobra.Command, use string) {
	c.Flags().StringVar(&k.folder, "capture-dir", "", "folder that serve keeps calls in"+use)
	c.Flags().StringVar(&k.secret, "capture-key", "", "file with the private key, for calls that are kept encrypted")
}

// open opens the folder, if one is named.
func (k *keptCalls) open() (err error) {
	if k.folder == "" {
		return nil
	}
	if k.store, err = capture.Open(k.folder, capture.Options{Identity: k.secret}); err != nil {
		return fmt.Errorf("--capture-dir: %w", err)
	}
	return nil
}

// call returns the call of a decision. It is the one that was judged, or an error.
func (k *keptCalls) call(e *audit.Entry) (*capture.State, error) {
	if e.Captured == "" {
		return nil, serve.ErrDigestOnly
	}
	data, err := k.store.Get(e.StateDigest)
	if err != nil {
		return nil, err
	}
	return gate.KeptState(data, e.StateDigest)
}

// show prints a call for a person who has to say what should have become of it. All of it is data.
func (k *keptCalls) show(w io.Writer, e *audit.Entry) error {
	_, err := fmt.Fprintf(w, "\n%s  %s of class %s was %s: %s by %s\n", cell(e.ID), cell(e.Tool), cell(e.Class), cell(string(e.Outcome)), cell(e.Reason), cell(e.By))
	if err != nil {
		return err
	}
	s, err := k.call(e)
	if err != nil {
		_, err = fmt.Fprintf(w, "  not shown: %s\n", cell(whyNot(err)))
		return err
	}
	for _, m := range s.Request.Context.Messages {
		if _, err := fmt.Fprintf(w, "  %s: %s\n", cell(string(m.Role)), lines(m.Content)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "  user: %s\n", lines(s.Request.Context.UserRequest)); err != nil {
		return err
	}
	arguments, err := strictjson.AppendCanonical(nil, s.Request.Arguments)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "  call: %s %s\n", cell(e.Tool), cell(string(arguments)))
	return err
}

// lines keeps the lines of a text below each other, and everything else harmless.
func lines(s string) string {
	parts := strings.Split(s, "\n")
	for i := range parts {
		parts[i] = cell(parts[i])
	}
	return strings.Join(parts, "\n    ")
}
