package main

import (
	"strings"
	"testing"
)

func TestProxyRefusesAWrongCommandLine(t *testing.T) {
	good := []string{"--upstream", "http://127.0.0.1:9000", "--gate-url", "https://gate.example", "--audience", "shop"}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing":                           {nil, exitUsage, "--upstream is required"},
		"several replicas with a file each": {append(good, "--replicas", "2"), exitUsage, "--permit-store nats"},
		"a flag that is not known":          {append(good, "--permissive"), exitUsage, "unknown flag"},
		"a time that is none":               {append(good, "--call-timeout", "soon"), exitUsage, "call-timeout"},
		"a word too many":                   {append(good, "now"), exitUsage, "unknown command"},
		"a file of permits that cannot be":  {append(good, "--permit-log", "/dev/null/x", "--listen", "127.0.0.1:0", "--probe-listen", "127.0.0.1:0"), exitError, "--permit-log"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := command(t, "", append([]string{"proxy"}, tc.args...)...)
			if code != tc.code || !strings.Contains(errs, tc.want) {
				t.Errorf("exit %d, %s; want %d with %q", code, errs, tc.code, tc.want)
			}
		})
	}
}
