package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/audit/natssink"
	"gatewright.dev/gatewright/internal/capture"
)

func newAuditKey() *cobra.Command {
	var rotate bool
	c := &cobra.Command{
		Use: "key FILE", Short: "Print the public audit keys, or rotate the key",
		Long: "Prints the public keys of an audit key file, to be kept where logs are checked. With --rotate it first puts a new key in\n" +
			"front, as gatewright keys rotate does; the old one stays to check what it has signed.",
		Example: "  gatewright audit key gatewright-audit-key.json > audit-keys.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if rotate {
				kid, err := audit.RotateKeys(args[0], clock.RealClock{})
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.ErrOrStderr(), "key %s signs as soon as the gate has read the file again, within seconds\n", kid); err != nil {
					return err
				}
			}
			keys, err := audit.LoadKeys(args[0])
			if err != nil {
				return err
			}
			return keys.WritePublic(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&rotate, "rotate", false, "put a new key in front first")
	return c
}

func newAuditKeyPair() *cobra.Command {
	return &cobra.Command{
		Use: "keypair FILE", Short: "Make a key pair to encrypt kept calls with",
		Long: "Makes FILE with the private key, readable by its owner only, and FILE.pub with the public one. The gate needs only the\n" +
			"public one (serve --capture-key FILE.pub): keep the private one where calls are judged again.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			kid, err := capture.MakeKey(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "key %s: %s and %s.pub\n", kid, cell(args[0]), cell(args[0]))
			return err
		},
	}
}

func newAuditExport() *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use: "export nats://HOST:PORT/STREAM[?subject=SUBJECT]", Short: "Print an audit log that is in NATS JetStream",
		Long: "Prints the lines of a log in a stream, oldest first, as they would stand in a file, to be checked and searched like one.\n" +
			"A stream holds a log for each gate, by subject: --list prints the subjects. Without one it is STREAM.log, that of a gate\n" +
			"which was told none.",
		Example: "  gatewright audit export nats://localhost:4222/GATEWRIGHT --list\n" +
			"  gatewright audit export 'nats://localhost:4222/GATEWRIGHT?subject=GATEWRIGHT.log' > audit.jsonl",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := natssink.Parse(args[0])
			if err != nil {
				return exit{exitUsage, err.Error()}
			}
			if list {
				return listLogs(c.Context(), o, c.OutOrStdout())
			}
			return natssink.Read(c.Context(), o, func(lines []byte) error {
				_, err := c.OutOrStdout().Write(lines)
				return err
			})
		},
	}
	c.Flags().BoolVar(&list, "list", false, "print the subjects of the logs in the stream instead")
	return c
}

func listLogs(ctx context.Context, o natssink.Options, out io.Writer) error {
	logs, err := natssink.Logs(ctx, o)
	if err != nil {
		return err
	}
	for _, subject := range logs {
		if _, err := fmt.Fprintln(out, cell(subject)); err != nil {
			return err
		}
	}
	return nil
}
