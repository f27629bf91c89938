package strictjson

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestCanonical(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	tests := map[string]struct {
		tree    any
		want    string
		wantErr string
	}{
		"scalars":                        {tree: []any{nil, true, false, "s", int64(-5)}, want: `[null,true,false,"s",-5]`},
		"keys in byte order":             {tree: map[string]any{"b": int64(1), "a": int64(2), "": int64(3), "aa": int64(4)}, want: `{"":3,"a":2,"aa":4,"b":1}`},
		"supplementary keys stand first": {tree: map[string]any{"\ue000": int64(1), "😀": int64(2), "\ud7ff": int64(3), "\uffff": int64(4)}, want: "{\"\ud7ff\":3,\"😀\":2,\"\ue000\":1,\"\uffff\":4}"},
		"the fewest escapes":             {tree: "\x00\b\t\n\v\f\r\x1f\"\\/\u2028é<\x7f", want: "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u2028é<\x7f\""},
		"numbers as ECMAScript":          {tree: []any{0.1, 1e21, 1e20, 1e-6, 1e-7, 1.5e-10, 5e-324, math.Copysign(0, -1), -2.5e300}, want: `[0.1,1e+21,100000000000000000000,0.000001,1e-7,1.5e-10,5e-324,0,-2.5e+300]`},
		"a whole double":                 {tree: 5.0, want: `5`},
		"an Object":                      {tree: Object{"a": Object{}}, want: `{"a":{}}`},
		"NaN":                            {tree: []any{math.NaN()}, wantErr: "number is not finite"},
		"Infinity":                       {tree: math.Inf(-1), wantErr: "number is not finite"},
		"another Go type":                {tree: map[string]any{"a": 5}, wantErr: "type int has no canonical form, use the types of a parsed tree"},
		"a whole number that is inexact": {tree: int64(1<<53 + 1), wantErr: "whole number is beyond ±2^53, which is not exact as a double"},
		"text that is not UTF-8":         {tree: "a\xff", wantErr: "text is not UTF-8"},
		"a key that is not UTF-8":        {tree: map[string]any{"a\xff": nil}, wantErr: "text is not UTF-8"},
		"a nil object":                   {tree: Object(nil), wantErr: "object is nil, which is neither null nor an object"},
		"a nil array":                    {tree: []any{[]any(nil)}, wantErr: "array is nil, which is neither null nor an array"},
		"a tree without end":             {tree: cyclic, wantErr: "tree is nested deeper than 1000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			const before = "kept "
			got, err := AppendCanonical([]byte(before), tt.tree)
			if msg := fmt.Sprint(err); tt.wantErr != "" && msg != tt.wantErr || tt.wantErr == "" && err != nil {
				t.Fatalf("error %v, want %q", err, tt.wantErr)
			}
			if diff := cmp.Diff(before+tt.want, string(got)); diff != "" {
				t.Errorf("canonical form (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCanonicalAfterAnErrorIsClean(t *testing.T) {
	bad := map[string]any{"a": int64(1), "b": map[string]any{"c": 1, "d": int64(1)}}
	for range 10 {
		if _, err := Digest(bad); err == nil {
			t.Fatal("a Go int has a digest")
		}
		got, err := Canonical(map[string]any{"z": map[string]any{"y": int64(1)}})
		if err != nil || string(got) != `{"z":{"y":1}}` {
			t.Fatalf("canonical form %s, error %v", got, err)
		}
	}
}

func TestCompareUTF16AgreesWithCodeUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	alphabet := []rune{'a', 'z', 'é', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\ufffd', '\uffff', '😀', '\U00010000', '\U0010ffff'}
	word := func() string {
		var b strings.Builder
		for range r.IntN(4) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 20_000 {
		a, b := word(), word()
		want := compareUnits(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		if got := compareUTF16(a, b); got != want {
			t.Fatalf("%q and %q: got %d, want %d", a, b, got, want)
		}
	}
}

func compareUnits(a, b []uint16) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return map[bool]int{true: -1, false: 1}[a[i] < b[i]]
		}
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}

func TestDigest(t *testing.T) {
	sum := sha256.Sum256([]byte(`{"a":[1,0.5],"b":"x"}`))
	want := "sha256:" + hex.EncodeToString(sum[:])
	for _, body := range []string{`{"a":[1,0.5],"b":"x"}`, " {\"b\":\"\\u0078\", \"a\":[1.0, 5e-1]}\n"} {
		tree, err := Parse([]byte(body), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Digest(tree)
		if err != nil || got != want {
			t.Errorf("%s: digest %q, error %v, want %q", body, got, err, want)
		}
	}
}

func TestAppendCanonicalAllocatesAtMostOncePerObject(t *testing.T) {
	objects, tree := 1, map[string]any{}
	for i := range 20 {
		tree[fmt.Sprint("k", i)] = []any{map[string]any{"b": 0.5, "a": "x\n"}, int64(1 << 40)}
		objects++
	}
	buf := make([]byte, 0, 4096)
	got := testing.AllocsPerRun(100, func() {
		if _, err := AppendCanonical(buf, tree); err != nil {
			t.Error(err)
		}
	})
	if got > float64(objects) {
		t.Errorf("%v allocations for %d objects", got, objects)
	}
}

func TestCanonicalProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	accepted := 0
	for range 3000 {
		body := randomBody(r)
		if checkRoundTrip(t, body) {
			accepted++
		}
	}
	if accepted < 1500 {
		t.Errorf("only %d of 3000 bodies were accepted", accepted)
	}
}

// checkRoundTrip holds what is true of every accepted body, and reports
// whether this one was accepted.
func checkRoundTrip(t *testing.T, body []byte) bool {
	t.Helper()
	tree, err := Parse(body, Limits{})
	if err != nil {
		return false
	}
	canonical, err := Canonical(tree)
	if err != nil {
		t.Fatalf("accepted body has no canonical form: %v\n%s", err, body)
	}
	peer := jsontext.Value(append([]byte(nil), body...))
	if err := peer.Canonicalize(); err != nil || string(peer) != string(canonical) {
		t.Fatalf("canonical form differs from jsontext's (%v):\n%s\n%s", err, canonical, peer)
	}
	again, err := Parse(canonical, Limits{MaxBytes: math.MaxInt})
	if err != nil {
		t.Fatalf("canonical form is refused: %v\n%s", err, canonical)
	}
	if diff := cmp.Diff(tree, again); diff != "" {
		t.Fatalf("tree changed in a round trip (-first +second):\n%s", diff)
	}
	if second, err := Canonical(again); err != nil || string(second) != string(canonical) {
		t.Fatalf("canonical form is not stable (%v):\n%s\n%s", err, canonical, second)
	}
	return true
}

// randomBody writes a JSON text with free spacing, escapes and key order.
func randomBody(r *rand.Rand) []byte {
	var write func(b []byte, depth int) []byte
	write = func(b []byte, depth int) []byte {
		b = append(b, " \t\n"[:r.IntN(3)]...)
		kind := r.IntN(7)
		if depth > 4 {
			kind = r.IntN(5)
		}
		switch kind {
		case 0:
			return append(b, [...]string{"null", "true", "false"}[r.IntN(3)]...)
		case 1, 2:
			return append(b, randomNumberText(r)...)
		case 3, 4:
			return appendRandomString(b, r)
		case 5:
			b = append(b, '[')
			for i := range r.IntN(5) {
				if i > 0 {
					b = append(b, ',')
				}
				b = write(b, depth+1)
			}
			return append(b, ']')
		default:
			b = append(b, '{')
			for i := range r.IntN(6) {
				if i > 0 {
					b = append(b, ", "...)
				}
				b = appendRandomString(b, r)
				b = write(append(b, " :"...), depth+1)
			}
			return append(b, '}')
		}
	}
	return write(nil, 0)
}

func randomNumberText(r *rand.Rand) string {
	for {
		if text := randomNumber(r); r.IntN(50) == 0 || exactByRationals(text) {
			return strings.Replace(text, "e+", "E", r.IntN(2))
		}
	}
}

func appendRandomString(b []byte, r *rand.Rand) []byte {
	b = append(b, '"')
	for range r.IntN(8) {
		c := rune(r.IntN(0x250))
		switch r.IntN(8) {
		case 0:
			c = rune(0xe000 + r.IntN(0x1ff0))
		case 1:
			c = rune(0x10000 + r.IntN(0x10000))
		}
		switch hi, lo := utf16.EncodeRune(c); {
		case hi != utf8.RuneError && r.IntN(2) == 0:
			b = fmt.Appendf(b, `\u%04x\u%04X`, hi, lo)
		case c < 0x10000 && (c < ' ' || c == '"' || c == '\\' || r.IntN(4) == 0):
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}
