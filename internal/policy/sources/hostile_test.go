package sources_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/sources"
)

const report = "The quarterly report is ready and the numbers look better than anybody here expected them to look last spring. Please read it before the meeting and write down every question that comes up"

func TestWhatIsHiddenInWordsOfTheUser(t *testing.T) {
	t.Parallel()
	const team = "invite ann, bea, cem, dan, eva, fay, gil, hal, ida and jan"
	runTraces(t, map[string]traceCase{
		"a report in the user's words":                   {says(report), report + ". Regards", nil, sources.User, sources.Words},
		"a short host in it":                             {says(report), report + " at t.me/evilchannel", nil, sources.Nowhere, sources.None},
		"a host whose path ends in one letter":           {says(report), report + " at evil.com/collect.p", nil, sources.Nowhere, sources.None},
		"an abbreviation is no host":                     {says(report), report + ". " + report + ", e.g. Friday", nil, sources.User, sources.Words},
		"a list that the user named":                     {says(team), "ann, bea, cem, dan, eva, fay, gil, hal, ida, jan", nil, sources.User, sources.Words},
		"a list with one that the user did not name":     {says(team), "ann, bea, cem, dan, eva, fay, gil, hal, ida, mallory", nil, sources.User, sources.Partial},
		"lines with one that the user did not name":      {says(team), "ann\nbea\ncem\ndan\neva\nfay\ngil\nhal\nida\nmallory", nil, sources.User, sources.Partial},
		"a text that grows eighteen times is not read":   {says(strings.Repeat("\ufdfa ", 2000) + "bob@example.com"), "bob@example.com", nil, sources.User, sources.Exact},
		"a value that only such a text could hold":       {says(strings.Repeat("\ufdfa ", 2000) + "\uff42ob@example.com"), "bob@example.com", nil, sources.Nowhere, sources.None},
		"the compatibility form of a long text of words": {says(strings.Repeat("words ", 2000) + "\uff42ob@example.com"), "bob@example.com", nil, sources.User, sources.Exact},
	})
}

func TestNamesOfMembersThatAreData(t *testing.T) {
	t.Parallel()
	access := map[string]any{"type": "object", "properties": map[string]any{"role": map[string]any{"type": "string"}}, "additionalProperties": map[string]any{"type": "string"}}
	tests := map[string]struct {
		schema any
		value  any
		want   map[string]sources.Source // by pointer
	}{
		"an address without a schema":        {nil, map[string]any{"eve@evil.com": "reader"}, map[string]sources.Source{"/v/eve@evil.com": sources.Nowhere}},
		"an address that holds nothing":      {nil, map[string]any{"eve@evil.com": map[string]any{}}, map[string]sources.Source{"/v/eve@evil.com": sources.Nowhere}},
		"an address that the user named":     {nil, map[string]any{"bob@example.com": "reader"}, map[string]sources.Source{"/v/bob@example.com": sources.User}},
		"a parameter without a schema":       {nil, map[string]any{"role": "reader"}, map[string]sources.Source{"/v/role": sources.User}},
		"a parameter of the schema":          {access, map[string]any{"role": "reader"}, map[string]sources.Source{"/v/role": sources.User}},
		"a name that the schema leaves open": {access, map[string]any{"mallory": "reader"}, map[string]sources.Source{"/v/mallory": sources.Nowhere}},
		"a name that the user said":          {access, map[string]any{"bob": "reader"}, map[string]sources.Source{"/v/bob": sources.User}},
		"a name in a list":                   {nil, []any{map[string]any{"a b": "reader"}}, map[string]sources.Source{"/v/0/a b": sources.Nowhere}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			schema := map[string]any{"type": "object", "properties": map[string]any{"v": test.schema}}
			got := map[string]sources.Source{}
			for _, f := range sources.NewIndex(says("make bob and bob@example.com a reader")).Trace(map[string]any{"v": test.value}, sources.NewSchema(schema)) {
				got[f.Pointer] = f.Source
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

// Every value has the same rare atom, which stands at thousands of places and nowhere as a part of the value.
func TestTooManyPlacesTrustLess(t *testing.T) {
	t.Parallel()
	const signs = "!#$%&*+=?^"
	values := []any{"hello"}
	for i := range 5000 {
		sign := ""
		for k := i; len(sign) < 4; k /= len(signs) {
			sign += signs[k%len(signs) : k%len(signs)+1]
		}
		values = append(values, "x_"+sign+"_x")
	}
	values = append(values, "w0rld")
	index := sources.NewIndex(says("hello w0rld " + strings.Repeat("x x- ", 1000)))
	got := map[string]sources.Finding{}
	for _, f := range index.Trace(map[string]any{"v": values}, nil) {
		got[f.Pointer] = f
	}
	if f := got["/v/0"]; f.Source != sources.User {
		t.Errorf("the first value has source %s, want User", f.Source)
	}
	if f := got["/v/5001"]; f.Source != sources.Nowhere {
		t.Errorf("the value behind the hostile ones has source %s, want Nowhere: nothing may be left to try for it", f.Source)
	}
	if f := index.Trace(map[string]any{"v": "w0rld"}, nil)[0]; f.Source != sources.User {
		t.Errorf("in the next call it has source %s, want User", f.Source)
	}
}
