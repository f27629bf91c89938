package language

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is one request whose language is known. Also is the language of its second sentence.
type sample struct {
	Language string `json:"language"`
	Also     string `json:"also"`
	Kind     string `json:"kind"`
	Text     string `json:"text"`
}

func samples(t *testing.T, name string) []sample {
	t.Helper()
	f, err := os.Open("../../testdata/language/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []sample
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// score counts how the requests of one language came out.
type score struct {
	// N requests. Known: one language was singled out; Right: and it was the right one.
	N, Known, Right int
	// Asked is how many an English decider would be asked about.
	Asked int
}

func measure(all []sample) map[string]score {
	out := map[string]score{}
	for _, s := range all {
		key := s.Language
		if s.Also != "" {
			key = s.Kind
		}
		m, r := out[key], Detect([]string{s.Text})
		m.N++
		if r.Known {
			m.Known++
		}
		if r.Known && r.Tag == s.Language {
			m.Right++
		}
		if r.ReadableBy([]string{"en"}) {
			m.Asked++
		}
		out[key] = m
	}
	return out
}

// The figures are those of docs/adr/0017-language-detection.md. The held-out requests were written when the rules stood, and
// nothing was changed after they were run.
func TestDetectionOnLabelledRequests(t *testing.T) {
	tests := map[string]map[string]score{
		"requests.jsonl": {
			"de": {N: 15, Known: 15, Right: 15}, "en": {N: 15, Known: 13, Right: 13, Asked: 15}, "es": {N: 15, Known: 11, Right: 11, Asked: 1},
			"fr": {N: 15, Known: 15, Right: 15}, "it": {N: 15, Known: 13, Right: 13, Asked: 1}, "ja": {N: 15, Known: 15, Right: 15},
			"nl": {N: 15, Known: 14, Right: 14}, "pl": {N: 15, Known: 15, Right: 15}, "pt": {N: 15, Known: 12, Right: 12}, "ru": {N: 15, Known: 5, Right: 5},
			"two-languages": {N: 10, Known: 9, Right: 2}, "und": {N: 15, Asked: 15},
		},
		"held-out.jsonl": {
			"de": {N: 5, Known: 4, Right: 4, Asked: 1}, "en": {N: 15, Known: 6, Right: 5, Asked: 14}, "es": {N: 5, Known: 3, Right: 3, Asked: 2},
			"fr": {N: 5, Known: 3, Right: 3, Asked: 2}, "it": {N: 5, Known: 4, Right: 4, Asked: 1}, "ja": {N: 5, Known: 5, Right: 4},
			"ko": {N: 5, Known: 5, Right: 5}, "nl": {N: 5, Known: 3, Right: 3, Asked: 1}, "pl": {N: 5, Known: 3, Right: 3, Asked: 2},
			"pt": {N: 5, Known: 3, Right: 3, Asked: 1}, "ru": {N: 5, Known: 2, Right: 2}, "sv": {N: 5, Known: 4, Right: 3, Asked: 1},
			"tr": {N: 5, Known: 4, Right: 4, Asked: 1},
		},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, measure(samples(t, name))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// turnsOf reads the user's turns of each case of a set.
func turnsOf(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open("../../testdata/evalsets/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out [][]string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			UserRequest  string `json:"userRequest"`
			Conversation []struct{ Role, Content string }
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		var turns []string
		for _, m := range c.Conversation {
			if m.Role == "user" {
				turns = append(turns, m.Content)
			}
		}
		out = append(out, append(turns, c.UserRequest))
	}
	return out
}

// All these cases are English: each one that is refused would be a question to a person for nothing.
func TestEnglishCasesAreRead(t *testing.T) {
	tests := map[string]struct{ wantCases, wantRefused int }{
		"public.jsonl":              {459, 0},
		"standard-240.jsonl":        {240, 0},
		"cloud-operations-45.jsonl": {16, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cases, refused := turnsOf(t, name), 0
			for _, turns := range cases {
				if r := Detect(turns); !r.ReadableBy([]string{"en"}) {
					refused++
					t.Logf("%q: %+v", turns, r)
				}
			}
			if len(cases) != tt.wantCases || refused != tt.wantRefused {
				t.Errorf("%d of %d are refused, want %d of %d", refused, len(cases), tt.wantRefused, tt.wantCases)
			}
		})
	}
}
