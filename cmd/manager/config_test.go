package main

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/cmdline"
)

func TestCommandLine(t *testing.T) {
	for name, row := range map[string]struct {
		args    []string
		wantErr string
	}{
		"the defaults are good":                  {nil, ""},
		"no probes and no metrics":               {[]string{"-metrics-listen", "0", "-probe-listen", "0"}, ""},
		"names of the gate":                      {[]string{"-gate-dns-name", "gate.example.com", "-gate-dns-name", "*.gate.example.com"}, ""},
		"a namespace that cannot be":             {[]string{"-namespace", "Not_A_Name"}, "-namespace"},
		"an address without a port":              {[]string{"-metrics-listen", "localhost"}, "-metrics-listen"},
		"a probe address without a port":         {[]string{"-probe-listen", "localhost"}, "-probe-listen"},
		"a name of the gate that is none":        {[]string{"-gate-dns-name", "no name"}, "-gate-dns-name"},
		"gates that are asked without a pause":   {[]string{"-gate-poll", "1ms"}, "-gate-poll"},
		"gates that are hardly asked":            {[]string{"-gate-poll", "1h"}, "-gate-poll"},
		"no time to end":                         {[]string{"-shutdown-timeout", "0"}, "-shutdown-timeout"},
		"a level that there is not":              {[]string{"-log-level", "loud"}, "-log-level"},
		"an image that is none":                  {[]string{"-decider-image", "two words"}, "-decider-image"},
		"a certificate source that there is not": {[]string{"-webhook-cert-source", "mine"}, "certificate source"},
		"a flag that there is not":               {[]string{"-unknown"}, "unknown"},
		"an argument":                            {[]string{"run"}, "run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(row.args, &bytes.Buffer{})
			if got := err != nil; got != (row.wantErr != "") || err != nil && !strings.Contains(err.Error(), row.wantErr) {
				t.Errorf("error %v, want %q", err, row.wantErr)
			}
		})
	}
}

func TestStartWithoutACluster(t *testing.T) {
	for name, row := range map[string]struct {
		args     []string
		wantCode int
		wantOut  string
		wantErr  string
	}{
		"its version":         {[]string{"-version"}, cmdline.ExitOK, "manager dev\n", ""},
		"its flags":           {[]string{"-h"}, cmdline.ExitOK, "", "-gate-poll"},
		"a wrong flag":        {[]string{"-gate-poll", "x"}, cmdline.ExitUsage, "", "-gate-poll"},
		"no cluster to be in": {[]string{"-kubeconfig", "/does/not/exist"}, cmdline.ExitError, "", "finding the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, text bytes.Buffer
			code := cmdline.Report(&text, "manager", start(t.Context(), row.args, &out, &text))
			if diff := cmp.Diff(row.wantOut, out.String()); diff != "" || code != row.wantCode || !strings.Contains(text.String(), row.wantErr) {
				t.Errorf("code %d, want %d; text %q, want %q in it; output (-want +got):\n%s", code, row.wantCode, text.String(), row.wantErr, diff)
			}
		})
	}
}

// TestFlagsAreInTheReference compares the flags with the table of the reference, both ways.
func TestFlagsAreInTheReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/manager.md")
	if err != nil {
		t.Fatal(err)
	}
	want, got := []string{}, []string{}
	for _, match := range regexp.MustCompile("(?m)^\\| `-([a-z-]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		want = append(want, match[1])
	}
	var c config
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	c.BindFlags(f)
	f.VisitAll(func(f *flag.Flag) { got = append(got, f.Name) })
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-reference +source):\n%s", diff)
	}
}
