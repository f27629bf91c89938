package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/internal/permit"
)

func newKeys() *cobra.Command {
	c := &cobra.Command{
		Use: "keys", Short: "Rotate the keys of a gate", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newKeysRotate())
	return c
}

// rotation says which files get a new key.
type rotation struct {
	seal, permit, audit, capture string
	lead                         time.Duration
}

func newKeysRotate() *cobra.Command {
	var r rotation
	c := &cobra.Command{
		Use:   "rotate [--seal-key FILE] [--permit-key FILE] [--audit-key FILE] [--capture-key FILE]",
		Short: "Put a new key in front of those in a file",
		Long: "Makes a key in each file that is named. A gate that is running reads its files again by itself, within seconds.\n" +
			"Seals and permits: the new key signs after --lead; those before it verify until nothing that they have signed can count.\n" +
			"Audit log: the new key signs at once; of those before it only the public part stays, to check the log with.\n" +
			"Kept calls: FILE is the private key. Give FILE.pub to the gates; calls that are kept already stay readable with FILE.",
		Example: "  gatewright keys rotate --seal-key gatewright-approvals.jsonl.seal-key.json --permit-key gatewright-permit-key.json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return r.run(c.OutOrStdout(), clock.RealClock{}) },
	}
	f := c.Flags()
	f.StringVar(&r.seal, "seal-key", "", "file with the keys that approvals are sealed with, as gatewright serve made it")
	f.StringVar(&r.permit, "permit-key", "", "file with the keys that permits are signed with")
	f.StringVar(&r.audit, "audit-key", "", "file with the key that the audit log is signed with")
	f.StringVar(&r.capture, "capture-key", "", "file with the private key that kept calls are read with, as gatewright audit keypair made it")
	f.DurationVar(&r.lead, "lead", time.Minute, "after how long a new key for seals or permits signs: longer than all gates and tool servers need to learn of it")
	return c
}

func (r *rotation) run(w io.Writer, c clock.PassiveClock) error {
	if r.seal+r.permit+r.audit+r.capture == "" {
		return exit{exitUsage, "name a file of keys: --seal-key, --permit-key, --audit-key or --capture-key"}
	}
	if r.lead < 0 {
		return exit{exitUsage, "--lead is a duration from 0"}
	}
	for _, one := range []struct {
		flag, path string
		rotate     func(path string, c clock.PassiveClock) (string, error)
	}{
		{"--seal-key", r.seal, r.rotateSeal},
		{"--permit-key", r.permit, r.rotatePermit},
		{"--audit-key", r.audit, rotateAudit},
		{"--capture-key", r.capture, rotateCapture},
	} {
		if one.path == "" {
			continue
		}
		said, err := one.rotate(one.path, c)
		if err != nil {
			return fmt.Errorf("%s %s: %w", one.flag, cell(one.path), err)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", cell(one.path), said); err != nil {
			return err
		}
	}
	return nil
}

func (r *rotation) rotateSeal(path string, c clock.PassiveClock) (string, error) {
	seals, err := approval.LoadSeals(path, c)
	if err != nil {
		return "", err
	}
	return r.rotateRing(seals.Keys())
}

func (r *rotation) rotatePermit(path string, c clock.PassiveClock) (string, error) {
	keys, err := permit.LoadKeys(path, c)
	if err != nil {
		return "", err
	}
	return r.rotateRing(keys.Ring())
}

// rotateRing retires the keys before for as short as may be.
func (r *rotation) rotateRing(ring *keyring.Ring) (string, error) {
	if err := ring.Rotate(r.lead, ring.MinOverlap()); err != nil {
		return "", err
	}
	next := ring.Public()[0]
	from := next.SignsFrom.UTC()
	return fmt.Sprintf("key %s signs from %s on, those before it verify until %s", next.ID, from.Format(time.RFC3339),
		from.Add(ring.MinOverlap()).Format(time.RFC3339)), nil
}

func rotateAudit(path string, c clock.PassiveClock) (string, error) {
	kid, err := audit.RotateKeys(path, c)
	if err != nil {
		return "", err
	}
	return "key " + kid + " signs; keep what gatewright audit key prints where the log is checked", nil
}

func rotateCapture(path string, _ clock.PassiveClock) (string, error) {
	kid, err := capture.RotateKey(path)
	if err != nil {
		return "", err
	}
	return "key " + kid + " is in " + cell(path) + ".pub, for gates to encrypt for", nil
}
