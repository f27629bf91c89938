package console

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// testLog is a log in a folder of its own, with one decision for each second.
func testLog(t testing.TB, o audit.Options, records ...audit.Record) FileRecords {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	for i := range records {
		r := &records[i]
		r.Time = start.Add(time.Duration(i) * time.Second)
		if r.Kind == "" {
			r.Kind = audit.KindDecision
		}
		if r.ID == "" {
			r.ID = fmt.Sprintf("01a22c40-742e-78c3-acf5-%012d", i)
		}
		if err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return FileRecords{Path: path, End: log.Head}
}

func decisionOf(tool string, outcome review.Outcome, change func(*audit.Record)) audit.Record {
	r := audit.Record{
		Tool: tool, Outcome: outcome, Reason: "RulesPassed", By: "rules", Class: "ReadOnly",
		Caller: audit.Caller{Namespace: "agents", ServiceAccount: "assistant"}, Milliseconds: 0.1,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// newest reads at most n entries.
func newest(t *testing.T, r Records, n int) []uint64 {
	t.Helper()
	var got []uint64
	err := r.Newest(t.Context(), func(e audit.Entry) bool {
		if e.Kind == audit.KindDecision {
			got = append(got, e.Seq)
		}
		return len(got) < n
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTheNewestEntriesComeFirst(t *testing.T) {
	many := make([]audit.Record, 150) // several chunks
	for i := range many {
		many[i] = decisionOf("search", review.Allow, func(r *audit.Record) { r.Policies = []string{strings.Repeat("p", 5000)} })
	}
	for name, o := range map[string]audit.Options{
		"in one file":      {},
		"in several files": {Rotation: audit.Rotation{MaxBytes: 200 << 10}},
	} {
		t.Run(name, func(t *testing.T) {
			r := testLog(t, o, many...)
			got := newest(t, r, len(many)+1)
			if len(got) != len(many) {
				t.Fatalf("%d of %d", len(got), len(many))
			}
			for i := 1; i < len(got); i++ {
				if got[i] >= got[i-1] {
					t.Fatalf("%d comes after %d", got[i], got[i-1])
				}
			}
			if few := newest(t, r, 3); !cmp.Equal(few, got[:3]) {
				t.Errorf("three are %v, want %v", few, got[:3])
			}
		})
	}
}

func TestALineThatIsBeingWrittenIsLeftOut(t *testing.T) {
	r := testLog(t, audit.Options{}, decisionOf("a", review.Allow, nil), decisionOf("b", review.Allow, nil))
	whole := newest(t, r, 10)
	for name, rest := range map[string]string{"a piece": `{"v":1,"seq":3`, "a long piece": strings.Repeat("x", 2*chunk)} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(r.Path)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "copy.jsonl")
			if err := os.WriteFile(path, append(data, rest...), 0o600); err != nil {
				t.Fatal(err)
			}
			got := newest(t, FileRecords{Path: path, End: r.End}, 10)
			if diff := cmp.Diff(whole, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestALogThatIsNoneIsNoEmptyLog(t *testing.T) {
	for name, content := range map[string]string{
		"another file":          "hello\n",
		"a line without an end": strings.Repeat("x", 3*chunk) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log.jsonl")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := FileRecords{Path: path}.Newest(t.Context(), func(audit.Entry) bool { return true })
			if err == nil {
				t.Error("read without an error")
			}
			d := newTestDesk(t, FileRecords{Path: path, End: func() audit.Head { return audit.Head{} }})
			if w := d.signIn(t).do(t, http.MethodGet, Path+"decisions", nil); w.Code != http.StatusInternalServerError {
				t.Errorf("the panel is HTTP %d", w.Code)
			}
		})
	}
}

func half() *float64 { p := 0.5; return &p }

// shop is a log with something of everything.
func shop(t *testing.T) FileRecords {
	t.Helper()
	return testLog(t, audit.Options{},
		decisionOf("db.read", review.Allow, nil),
		decisionOf("db.drop", review.Block, func(r *audit.Record) { r.Reason, r.Class = "UnknownTool", "Destructive" }),
		decisionOf("mail.send", review.Confirm, func(r *audit.Record) {
			r.Reason, r.Class, r.By = "Irreversible", "External", "policy:irreversible"
			r.Caller.ServiceAccount = "mailer"
			r.Approval = &audit.Approval{Name: "ta-0123"}
			r.Obligations = []review.Obligation{{Outcome: review.Confirm, Reason: "Irreversible", By: "policy:irreversible", Policy: "ToolPolicy/agents/p"}}
			r.Answers = map[string]review.Answer{"asked": {Probability: half()}, "verdict": {Choice: "allow", Probabilities: map[string]float64{"allow": 0.7, "block": 0.3}}, "severity": {Score: half()}}
			r.Milliseconds = 12.5
		}),
		audit.Record{Kind: audit.KindLabel, Label: &audit.Label{Decision: "01a22c40-742e-78c3-acf5-000000000000", Outcome: review.Block, By: "LocalSecret:kim"}},
	)
}

func TestThePanelShowsWhatItsFilterSelects(t *testing.T) {
	b := newTestDesk(t, shop(t)).signIn(t)
	for name, test := range map[string]struct {
		query string
		want  []string
	}{
		"everything":                     {"", []string{"mail.send", "db.drop", "db.read"}},
		"an outcome":                     {"outcome=Block", []string{"db.drop"}},
		"two outcomes":                   {"outcome=Block&outcome=Confirm", []string{"mail.send", "db.drop"}},
		"a class":                        {"class=External", []string{"mail.send"}},
		"a tool":                         {"tool=db.read", []string{"db.read"}},
		"tools by the beginning":         {"tool=db.*", []string{"db.drop", "db.read"}},
		"a caller":                       {"caller=agents/mailer", []string{"mail.send"}},
		"a reason":                       {"reason=UnknownTool", []string{"db.drop"}},
		"text of any field, in any case": {"text=IRREVERS", []string{"mail.send"}},
		"the name of an approval":        {"text=ta-0123", []string{"mail.send"}},
		"all must hold":                  {"tool=db.*&outcome=Allow", []string{"db.read"}},
		"nothing that is there":          {"text=nothing", nil},
		"older ones":                     {"before=3", []string{"db.drop", "db.read"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.do(t, http.MethodGet, Path+"decisions?"+test.query, nil)
			if w.Code != http.StatusOK {
				t.Fatalf("HTTP %d %s", w.Code, w.Body)
			}
			_, table, _ := strings.Cut(w.Body.String(), `<div id="panel"`)
			var got []string
			for row := range strings.SplitSeq(table, "<tr data-row") {
				for _, tool := range []string{"db.read", "db.drop", "mail.send"} {
					if strings.Contains(row, `mono long">`+tool+"<") {
						got = append(got, tool)
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAFilterThatIsWrongSaysSo(t *testing.T) {
	b := newTestDesk(t, shop(t)).signIn(t)
	for name, query := range map[string]string{
		"an outcome that is none":  "outcome=Maybe",
		"a star within":            "tool=a*b",
		"a caller without a place": "caller=mailer",
		"no number":                "before=x",
	} {
		t.Run(name, func(t *testing.T) {
			w := b.do(t, http.MethodGet, Path+"decisions?"+query, nil)
			if !strings.Contains(w.Body.String(), `class="problem"`) || strings.Contains(w.Body.String(), "data-row") {
				t.Errorf("got %s", w.Body)
			}
		})
	}
}

func TestPagesOfDecisionsFollowEachOther(t *testing.T) {
	all := make([]audit.Record, 2*pageRows+7)
	for i := range all {
		all[i] = decisionOf("search", review.Allow, func(r *audit.Record) { r.By = `"><&x=1` })
	}
	b := newTestDesk(t, testLog(t, audit.Options{}, all...)).signIn(t)
	seen := map[string]bool{}
	next := Path + "decisions?tool=se*&by=" + url.QueryEscape(`"><&x=1`)
	for n := 0; next != ""; n++ {
		page := html.UnescapeString(b.do(t, http.MethodGet, next, nil).Body.String())
		for _, row := range regexp.MustCompile(`<tr data-row id="(r-\d+)"`).FindAllStringSubmatch(page, -1) {
			if seen[row[1]] {
				t.Errorf("%s comes twice", row[1])
			}
			seen[row[1]] = true
		}
		if want := fmt.Sprintf("%d of the newest", len(all)); !strings.Contains(page, want) {
			t.Errorf("page %d does not say %q: the drawings are of all that match", n, want)
		}
		next = ""
		if link := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(page); link != nil {
			next = link[1]
		}
		if n > 5 {
			t.Fatal("the pages do not end")
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d on the pages", len(seen), len(all))
	}
}

// endless is a record that never ends.
type endless struct{ FileRecords }

func (endless) Newest(_ context.Context, each func(audit.Entry) bool) error {
	for each(audit.Entry{Seq: 1, Record: decisionOf("search", review.Allow, nil)}) {
	}
	return nil
}

func TestALongLogIsLookedThroughToABound(t *testing.T) {
	d := newTestDesk(t, endless{})
	p := decisionsPage{}
	if err := d.look(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	if p.Looked != maxLooked || !p.IsPartial {
		t.Errorf("looked at %d, and says that there are more: %v", p.Looked, p.IsPartial)
	}
}

func TestReadersOfTheRecordAreBounded(t *testing.T) {
	d := newTestDesk(t, shop(t))
	b := d.signIn(t)
	for range maxReaders {
		d.reading <- struct{}{}
	}
	for _, path := range []string{"decisions", "decisions/01a22c40-742e-78c3-acf5-000000000000"} {
		if w := b.do(t, http.MethodGet, Path+path, nil); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: HTTP %d", path, w.Code)
		}
	}
	<-d.reading
	if w := b.do(t, http.MethodGet, Path+"decisions", nil); w.Code != http.StatusOK {
		t.Errorf("HTTP %d", w.Code)
	}
}

func TestOneDecisionIsShownWhole(t *testing.T) {
	b := newTestDesk(t, shop(t)).signIn(t)
	for name, test := range map[string]struct {
		id   string
		want int
		has  []string
	}{
		"a decision": {"01a22c40-742e-78c3-acf5-000000000002", http.StatusOK, []string{
			"mail.send", "Irreversible", "ToolPolicy/agents/p", "verdict", "allow", "70.0 %", "30.0 %", "level 0.50", "12.500 ms",
			`href="/console/calls/ta-0123"`, "caller.serviceAccount", "mailer", "prev",
		}},
		"none with this id": {"01a22c40-742e-78c3-acf5-999999999999", http.StatusNotFound, nil},
		"no id":             {"01A22C40-742e-78c3-acf5-00000000000*", http.StatusNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.do(t, http.MethodGet, Path+"decisions/"+test.id, nil)
			if w.Code != test.want {
				t.Errorf("HTTP %d, want %d", w.Code, test.want)
			}
			for _, text := range test.has {
				if !strings.Contains(w.Body.String(), text) {
					t.Errorf("%s is missing", text)
				}
			}
		})
	}
}

func TestAGateWithoutALogInFilesHasNoPanel(t *testing.T) {
	b := newTestDesk(t, nil).signIn(t)
	if strings.Contains(b.do(t, http.MethodGet, Path, nil).Body.String(), "/console/decisions") {
		t.Error("the queue leads to a panel")
	}
	for _, path := range []string{"decisions", "decisions/01a22c40-742e-78c3-acf5-000000000002"} {
		if w := b.do(t, http.MethodGet, Path+path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: HTTP %d", path, w.Code)
		}
	}
}
