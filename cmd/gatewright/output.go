package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is how a command prints.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

func addOutput(c *cobra.Command, f *format) {
	*f = formatTable
	c.Flags().VarP(f, "output", "o", "how to print: table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("want table, json or yaml")
}

// print writes a value as JSON or YAML, or lets table write it.
func (f format) print(w io.Writer, v any, table func(io.Writer) error) error {
	switch f {
	case formatJSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case formatYAML:
		out, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(out)
		return err
	case formatTable:
	}
	return table(w)
}
