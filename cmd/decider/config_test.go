package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/questions"
)

func TestWrongCommandLines(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":                         {nil, "-model and -library are required"},
		"no hash":                         {[]string{"-model", "m", "-library", "l"}, "-sha256 is required"},
		"a hash in capitals":              {enough("-sha256", strings.Repeat("A", 64)), "-sha256 is required"},
		"a hash that is short":            {enough("-sha256", "abc"), "-sha256 is required"},
		"an unknown flag":                 {enough("-gpu"), "flag provided but not defined"},
		"an argument":                     {enough("serve"), "unexpected argument"},
		"threads below 0":                 {enough("-threads", "-1"), "must not be negative"},
		"no queue":                        {enough("-queue", "0"), "-queue must be at least 1"},
		"a body too small":                {enough("-max-body", "10"), "-max-body at least 1024"},
		"no time":                         {enough("-request-timeout", "0s"), "times must be above 0"},
		"hashing all the time":            {enough("-verify-interval", "10ms"), "at least 1s"},
		"a certificate without key":       {enough("-tls-cert", "c"), "go together"},
		"an authority without TLS":        {enough("-client-ca", "c"), "needs -tls-cert"},
		"a record without file":           {enough("-golden-record"), "needs -golden"},
		"a tolerance of everything":       {enough("-golden-tolerance", "1"), "at most 0.2"},
		"profiles for everybody":          {enough("-pprof", "0.0.0.0:6060"), "loopback"},
		"profiles without host":           {enough("-pprof", ":6060"), "loopback"},
		"a socket without a path":         {enough("-listen", "unix:"), "the path of a socket"},
		"TLS on a socket":                 {enough("-listen", "unix:/tmp/d.sock", "-tls-cert", "a", "-tls-key", "b"), "no TLS"},
		"a base fingerprint of no kind":   {enough("-calibrated-for", "abc"), "-calibrated-for must be"},
		"a way of reading nobody knows":   {enough("-readout", "Tea"), "-readout must be"},
		"a coverage of nothing":           {enough("-min-coverage", "0"), "above 0"},
		"an address without port":         {enough("-listen", "127.0.0.1"), "with a port"},
		"plain text beyond loopback":      {enough("-listen", "0.0.0.0:0"), "needs -tls-cert"},
		"plain text on all addresses":     {enough("-listen", ":0"), "needs -tls-cert"},
		"a temperature of nothing":        {enough("-temperature", "noul"), "such as noul=1300"},
		"a temperature of another type":   {enough("-temperature", "box=1000"), "such as noul=1300"},
		"a temperature of 0":              {enough("-temperature", "noul=0"), "such as noul=1300"},
		"a level of another kind":         {enough("-log-level", "loud"), "log-level"},
		"a file that is not there":        {enough("-config", filepath.Join(dir, "none")), "reading configuration"},
		"a file that is no YAML":          {enough("-config", file("{")), "reading configuration"},
		"a file with a name twice":        {enough("-config", file("queue: 1\nqueue: 2\n")), "reading configuration"},
		"a file with another name":        {enough("-config", file("gpu: true\n")), "no flag that a file may set"},
		"a file that names a file":        {enough("-config", file("config: x\n")), "no flag that a file may set"},
		"a file with a wrong value":       {enough("-config", file("queue: many\n")), "queue"},
		"a file with a map":               {enough("-config", file("queue: {a: 1}\n")), "a text, a number"},
		"a file with half a number":       {enough("-config", file("queue: 1.5\n")), "queue"},
		"a file that breaks another rule": {enough("-config", file("queue: 0\n")), "-queue must be at least 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, line := try(t, opens(&scripted{}), tt.args...)
			if code != exitUsage || !strings.Contains(line, tt.want) {
				t.Errorf("exit %d, %s", code, line)
			}
		})
	}
}

func TestConfigurationFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "model: m.gguf\nlibrary: lib\nsha256: " + wantHash + "\nthreads: 2\nqueue: 7\nalias: [judge, default]\ntemperature: noul=1300\n" +
		"request-timeout: 3s\nplain-http: true\nlisten: :8017\ngolden-tolerance: 0.05\nlog-level: debug\nmax-body: 1048576\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse([]string{"-config", path, "-queue", "9"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.model, c.threads, c.queue, c.aliases, c.temperatures, c.requestTimeout, c.plainHTTP, c.listen, c.golden.Tolerance, c.logLevel.String(), c.maxBody}
	want := []any{"m.gguf", 2, 9, []string{"judge", "default"}, map[questions.Type]int{questions.YesNo: 1300}, 3 * time.Second, true, ":8017", 0.05, "DEBUG", 1048576}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestVersionAndHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if err := run(t.Context(), process{args: []string{"-version"}, stdout: &out, stderr: &errs}); err != nil || out.String() != "decider dev\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := run(t.Context(), process{args: []string{"-h"}, stdout: &out, stderr: &errs}); err != nil || !strings.Contains(errs.String(), "-parent-stdin") {
		t.Errorf("%v, %q", err, errs.String())
	}
}
