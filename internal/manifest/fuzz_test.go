package manifest

import (
	"bytes"
	"testing"

	yamlv2 "go.yaml.in/yaml/v2"
)

// FuzzDocuments holds the splitting of a file against the parser's own: no document that the parser sees may be missing,
// and what is good must stay good when it is read again.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		"", "a: b", "a: b\n---\nc: d\n", "---\n---\na: b\n...\n---\nc: d", "a: |\n  x\n---\nb: c", "a: 'x\n---\nb'", "%YAML 1.1\n---\na: b\n",
		"a: b\r---\rc: d", "a: b\u2028---\u2028c: d", "a: b\u0085--- {c: d}", "--- a\n--- b\n", "# c\n--- # d\na: b\n--- \n", "...\na: b\n...\n...\nc: d",
		"{\"a\": 1}", "{\"a\": 1} {\"a\": 2}", "a: &x [1]\nb: *x\n", "a: 1\na: 2\n", "on: 1\n", "\ufeffa: b\n---\nc: d", "- a\n- b\n--- !!str\nx",
		policy("p", "a", "{}") + "---\n" + policy("q", "a", "{mode: X}"), policy("p", "a", "{subjects: [x, x]}"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			t.Skip("long inputs find nothing more")
		}
		found := documents(data)
		if want, whole := parsed(bytes.TrimPrefix(data, byteOrderMark)); whole && len(found) < want {
			t.Errorf("%d documents were found, the parser sees %d", len(found), want)
		}
		first, again := Read("f", data), Read("f", data)
		if len(first.Objects) != len(again.Objects) || len(first.Problems) != len(again.Problems) {
			t.Errorf("read twice: %d and %d objects, %d and %d problems", len(first.Objects), len(again.Objects), len(first.Problems), len(again.Problems))
		}
		for _, p := range first.Problems {
			if p.Err == nil || p.Error() == "" {
				t.Error("a problem says nothing")
			}
		}
	})
}

// parsed counts the documents that hold something, and says whether the parser came to the end.
func parsed(data []byte) (count int, whole bool) {
	dec := yamlv2.NewDecoder(bytes.NewReader(data))
	for {
		var v any
		err := dec.Decode(&v)
		switch {
		case err != nil && err.Error() == "EOF":
			return count, true
		case err != nil:
			return count, false
		case v != nil:
			count++
		}
	}
}
