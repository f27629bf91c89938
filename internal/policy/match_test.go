package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/testkit"
)

func TestMatch(t *testing.T) {
	long := strings.Repeat("a", 128)
	p := compiled(t, "p",
		testkit.WithTool("db.read", read),
		testkit.WithTool("db.read", write, testkit.OnServer("mcp.example.com")),
		testkit.WithTool("db.*", write),
		testkit.WithTool("db.admin.*", destructive),
		testkit.WithTool("db.admin.*", external, testkit.OnServer("mcp.example.com")),
		testkit.WithTool("db.admin.list", read),
		testkit.WithTool("only", read, testkit.OnServer("mcp.example.com")),
		testkit.WithTool("Case", read),
		testkit.WithTool(long, read),
	)
	all := compiled(t, "all", testkit.WithTool("*", write))
	for name, c := range map[string]struct {
		policy             *Compiled
		tool, server, want string
	}{
		"an exact name": {p, "db.read", "", "db.read"},
		"an exact name on a server that nobody names":  {p, "db.read", "other", "db.read"},
		"an exact name on its server":                  {p, "db.read", "mcp.example.com", "db.read@mcp.example.com"},
		"a server in other case":                       {p, "db.read", "MCP.example.com", "db.read"},
		"a prefix":                                     {p, "db.write", "", "db.*"},
		"the longer prefix":                            {p, "db.admin.drop", "", "db.admin.*"},
		"of equal prefixes the one with the server":    {p, "db.admin.drop", "mcp.example.com", "db.admin.*@mcp.example.com"},
		"an exact name before a longer match":          {p, "db.admin.list", "mcp.example.com", "db.admin.list"},
		"the prefix alone is no tool below it":         {p, "db.", "", ""},
		"a name without the dot of the prefix":         {p, "db", "", ""},
		"a name that only shares letters":              {p, "dbx", "", ""},
		"another server than the only one":             {p, "only", "other", ""},
		"no server where one is needed":                {p, "only", "", ""},
		"the only server":                              {p, "only", "mcp.example.com", "only@mcp.example.com"},
		"lower case for upper case":                    {p, "case", "", ""},
		"upper case for lower case":                    {p, "DB.READ", "", ""},
		"the name itself in its case":                  {p, "Case", "", "Case"},
		"a trailing space":                             {p, "db.read ", "", ""},
		"a leading space":                              {p, " db.read", "", ""},
		"a trailing newline":                           {p, "db.read\n", "", ""},
		"a NUL behind the name":                        {p, "db.read\x00", "", ""},
		"a NUL below a prefix":                         {p, "db.x\x00", "", ""},
		"a Cyrillic look-alike":                        {p, "db.r\u0435ad", "", ""},
		"a full-width look-alike":                      {p, "db\uff0eread", "", ""},
		"a zero-width space":                           {p, "db.\u200bread", "", ""},
		"a byte that is no UTF-8":                      {p, "db.\xff", "", ""},
		"a star is no name":                            {p, "db.*", "", ""},
		"no name":                                      {p, "", "", ""},
		"128 bytes":                                    {p, long, "", long},
		"129 bytes":                                    {p, long + "a", "", ""},
		"129 bytes below a prefix":                     {p, "db." + strings.Repeat("a", 126), "", ""},
		"128 bytes below a prefix":                     {p, "db." + strings.Repeat("a", 125), "", "db.*"},
		"a lone star matches every name that there is": {all, "anything", "", "*"},
		"a lone star does not match what is no name":   {all, "any thing", "", ""},
		"a lone star does not match the empty name":    {all, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := c.policy.match(c.tool, c.server); found != nil {
				got = strings.TrimSuffix(strings.TrimPrefix(found.place(), "tools["), "]")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestUnknownTools(t *testing.T) {
	listed := testkit.WithTool("act", read)
	blocks := compiled(t, "blocks", listed)
	confirms := compiled(t, "confirms", listed, testkit.UnknownTools("Confirm"))
	defers := compiled(t, "defers", listed, testkit.UnknownTools("Defer"))
	defersToo := compiled(t, "defers-too", testkit.UnknownTools("Defer"))
	lists := compiled(t, "lists", testkit.WithTool("other", read))
	unknown := func(outcome string) shown { return shown{outcome, ReasonUnknownTool, "rule:unknown-tool"} }
	for name, c := range map[string]struct {
		policies []*Compiled
		want     shown
	}{
		"Block by default": {[]*Compiled{blocks}, unknown("Block")},
		"Confirm":          {[]*Compiled{confirms}, unknown("Confirm")},
		"Defer alone leaves a tool that nobody lists": {[]*Compiled{defers}, unknown("Block")},
		"all Defer":                                    {[]*Compiled{defers, defersToo}, unknown("Block")},
		"Defer beside one that lists it":               {[]*Compiled{defers, lists}, allowed},
		"Block holds whatever others list":             {[]*Compiled{blocks, lists}, unknown("Block")},
		"Confirm holds whatever others list":           {[]*Compiled{confirms, lists}, unknown("Confirm")},
		"Block before Confirm":                         {[]*Compiled{confirms, blocks}, unknown("Block")},
		"Defer beside a cluster policy that lists it":  {[]*Compiled{defers, compiledCluster(t, "c", testkit.WithTool("other", read))}, unknown("Block")},
		"a cluster policy defers by default":           {[]*Compiled{lists, compiledCluster(t, "c")}, allowed},
		"a cluster policy may block what it lists not": {[]*Compiled{lists, compiledCluster(t, "c", testkit.UnknownTools("Block"))}, unknown("Block")},
		"Defer beside an Audit policy that lists it":   {[]*Compiled{defers, compiled(t, "a", testkit.InAudit(), testkit.WithTool("other", read))}, unknown("Block")},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(request("other", nil), c.policies...)
			if diff := cmp.Diff(c.want, show(j.Settle(nil, nil))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, base := j.Class(); c.want != allowed && base != "Destructive" {
				t.Errorf("a tool that is not listed counts as %s, want Destructive", base)
			}
		})
	}
}
